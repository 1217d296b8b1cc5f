"""What every strategy does: check, pick among what may be picked, and check again."""

import warnings
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from .._validation import check_count, check_seed
from ..scores import top_n
from ._view import PoolView

_PRECISIONS = [np.float64, np.float32]


class FewerSamplesWarning(UserWarning):
    """There were fewer samples than asked for, and all of them were picked.

    Examples
    --------
    >>> import warnings
    >>> from mdal.strategies import FewerSamplesWarning, Margin
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FewerSamplesWarning)
    ...     Margin().select([[0.0, 1.0]], 10)
    array([0])
    """


class Strategy(BaseEstimator, ABC):
    """Picks samples to label, given what a model says about a pool.

    A subclass implements `pick`. Where it is given a `random_state` in its constructor,
    that is what `select` uses unless it is given another.

    Examples
    --------
    >>> from mdal.strategies import Strategy
    >>> class EverySecond(Strategy):
    ...     def pick(self, view, n, rng):
    ...         return [*range(1, len(view), 2), *range(0, len(view), 2)][:n]
    >>> EverySecond().select([[0.0, 1.0]] * 5, 3)
    array([1, 3, 0])
    """

    @abstractmethod
    def pick(self, view: PoolView, n: int, rng: np.random.RandomState):
        """Return n distinct rows of a view.

        Parameters
        ----------
        view : PoolView
            Every row of it may be picked.
        n : int
            From 1 to the length of the view.
        rng : RandomState
            Where randomness comes from.

        Returns
        -------
        array-like of shape (n,)
            Rows of the view.
        """

    def screen(self, view: PoolView, luck: NDArray) -> NDArray:
        """Return how promising each row of a large pool is, in one or more respects.

        Of a pool that is too large to be held, the rows that are best in any respect
        are kept. By default rows are kept at random.

        Parameters
        ----------
        view : PoolView
            Some rows of the pool.
        luck : ndarray of shape (n_samples,)
            A random number between 0 and 1 for each row.

        Returns
        -------
        ndarray of shape (n_samples, n_respects)
            The value of a row must not depend on other rows.
        """
        return luck[:, None]

    def fit(self, X, y=None):
        """Record the number of classes; not needed before `select`.

        Parameters
        ----------
        X : PoolView or array-like of shape (n_samples, n_classes)
            What the model says; an array is taken as logits.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        if isinstance(X, PoolView):
            view = X
        else:
            view = PoolView(check_array(X, dtype=_PRECISIONS, estimator=self))
        learned = self._learn(view)
        logits = X.logits if isinstance(X, PoolView) else X
        validate_data(self, logits, skip_check_array=True)  # records the classes
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def _learn(self, view: PoolView) -> dict:
        """Return the fitted attributes by name; a fit that fails sets none of them."""
        return {}

    def select(self, X, n, random_state=None):
        """Pick samples to label next.

        Parameters
        ----------
        X : PoolView or array-like of shape (n_samples, n_classes)
            What the model says; an array is taken as logits.
        n : int
            How many samples.
        random_state : int, RandomState or None, default=None
            None is the strategy's own.

        Returns
        -------
        ndarray of shape (n,)
            Distinct rows of X that are available; all of them, with a
            :class:`FewerSamplesWarning`, if there are fewer than n.
        """
        view = self._check_view(X)
        n = check_count(n, "n")
        if random_state is None:
            random_state = getattr(self, "random_state", None)
        rng = check_seed(random_state)
        rows = view.candidates()
        n = at_most(n, len(rows))
        if n == 0:
            return rows[:0]
        among = view if view.available is None else view.take(rows)
        return rows[_check_picked(self.pick(among, n, rng), n, len(rows))]

    def _check_view(self, X) -> PoolView:
        """Return a view with the number of classes of `fit`, if there was a fit."""
        if isinstance(X, PoolView):
            validate_data(self, X.logits, reset=False, skip_check_array=True)
            return X
        return PoolView(
            validate_data(self, X, reset=False, dtype=_PRECISIONS, ensure_min_samples=0)
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def at_most(n: int, n_rows: int, where: str = "") -> int:
    """Return n, or the number of rows, with a warning, if there are fewer."""
    if n > n_rows:
        warnings.warn(
            f"n={n} exceeds the {n_rows} samples that may be picked{where}; all of "
            "them are returned",
            FewerSamplesWarning,
            stacklevel=3,
        )
    return min(n, n_rows)


def _check_picked(picked, n: int, n_rows: int) -> NDArray[np.intp]:
    """Return picked rows if they are what a strategy must return."""
    rows = np.asarray(picked)
    if rows.shape != (n,) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"the strategy returned {rows.dtype} values of shape {rows.shape}; a "
            f"strategy must return {n} rows of the view, as whole numbers"
        )
    if rows.min() < 0 or rows.max() >= n_rows or len(np.unique(rows)) < n:
        raise ValueError(
            f"the strategy returned {np.array2string(rows, threshold=10)}; a strategy "
            f"must return {n} distinct rows from 0 to {n_rows - 1}"
        )
    return rows


class TransformerStrategy(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Strategy):
    """A strategy that picks by numbers which `transform` shows.

    A subclass implements `describe`, and `pick`.

    Examples
    --------
    >>> from mdal.scores import k_centre
    >>> from mdal.strategies import TransformerStrategy
    >>> class CoverLogits(TransformerStrategy):
    ...     def describe(self, view):
    ...         return view.logits
    ...     def pick(self, view, n, rng):
    ...         return k_centre(self.describe(view), n)
    >>> CoverLogits().select([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]], 2)
    array([2, 1])
    """

    @abstractmethod
    def describe(self, view: PoolView) -> NDArray:
        """Return scores or an embedding of the samples of a view.

        Parameters
        ----------
        view : PoolView
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
        """

    def _learn(self, view):
        return {"_n_features_out": self.describe(view.take(slice(1))).shape[1]}

    def transform(self, X):
        """Return the scores or the embedding by which samples are picked.

        Parameters
        ----------
        X : PoolView or array-like of shape (n_samples, n_classes)
            What the model says; an array is taken as logits.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Of all rows, available or not.
        """
        view = self._check_view(X)
        return self.describe(view)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RankingStrategy(TransformerStrategy):
    """A strategy that needs to know nothing but a few numbers of each sample.

    A subclass implements `describe` and `choose`. Of a stream only those numbers are
    kept, and the picks are the same as from a pool in memory.

    Examples
    --------
    >>> from mdal.scores import top_n
    >>> from mdal.strategies import RankingStrategy
    >>> class AboveTheMean(RankingStrategy):
    ...     def describe(self, view):
    ...         return view.logits.max(axis=1, keepdims=True)
    ...     def choose(self, described, n):
    ...         return top_n(-abs(described[:, 0] - described.mean()), n)
    >>> AboveTheMean().select([[0.0, 1.0], [0.0, 2.0], [4.0, 0.0]], 1)
    array([1])
    """

    @abstractmethod
    def choose(self, described: NDArray, n: int) -> NDArray:
        """Return n distinct rows of what `describe` returned.

        Parameters
        ----------
        described : ndarray of shape (n_samples, n_outputs)
            The numbers of each sample that may be picked.
        n : int
            From 1 to the number of samples.

        Returns
        -------
        ndarray of shape (n,)
        """

    def pick(self, view, n, rng):
        """Return the rows that are chosen; see :meth:`Strategy.pick`."""
        return self.choose(self.describe(view), n)

    def screen(self, view, luck):
        """Return the same as `describe`; see :meth:`Strategy.screen`."""
        return self.describe(view)


class ScoreStrategy(RankingStrategy):
    """A strategy that picks the samples of the largest utility, ties by row.

    A subclass implements `utilities`.

    Examples
    --------
    >>> from mdal.strategies import ScoreStrategy
    >>> class LargestLogit(ScoreStrategy):
    ...     def utilities(self, view):
    ...         return view.logits.max(axis=1)
    >>> LargestLogit().select([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]], 2)
    array([2, 1])
    """

    @abstractmethod
    def utilities(self, view: PoolView) -> NDArray:
        """Return how much each sample is worth labelling.

        Parameters
        ----------
        view : PoolView
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The value of a row must not depend on other rows.
        """

    def describe(self, view):
        """Return the utilities as a column; see :meth:`transform`."""
        utilities = np.asarray(self.utilities(view))
        if utilities.shape != (len(view),):
            raise ValueError(
                f"{type(self).__name__}.utilities returned an array of shape "
                f"{utilities.shape} for {len(view)} samples; return one number for each"
            )
        return utilities[:, None]

    def choose(self, described, n):
        """Return the rows of the largest; see :meth:`RankingStrategy.choose`."""
        return top_n(described[:, 0], n)
