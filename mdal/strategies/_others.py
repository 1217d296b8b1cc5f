"""Other people's strategies: any callable, and those of scikit-activeml."""

import inspect
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..scores import by_blocks, softmax
from ._base import Strategy
from ._view import PoolView


class CallableStrategy(Strategy):
    """A function as a strategy.

    Parameters
    ----------
    function : callable
        Called with a :class:`PoolView` of which every row may be picked, the number n
        of samples, at most its length, and a RandomState. Returns n distinct rows of
        the view.
    random_state : int, RandomState or None, default=None
        Seed or generator.

    Examples
    --------
    >>> from mdal.scores import free_energy, top_n
    >>> from mdal.strategies import CallableStrategy
    >>> def unlike_all(view, n, rng):
    ...     return top_n(free_energy(view.logits), n)
    >>> CallableStrategy(unlike_all).select([[9.0, 0.0], [0.0, 0.0]], 1)
    array([1])
    """

    def __init__(self, function, random_state=None):
        self.function = function
        self.random_state = random_state

    def pick(self, view, n, rng):
        """Return the function's answer; see :meth:`Strategy.pick`."""
        return self.function(view, n, rng)


class SkactivemlStrategy(Strategy):
    """A pool strategy of scikit-activeml.

    The strategy sees the view's embeddings (or logits, where there are none) as
    features: those of the labelled samples with their labels, and those of the samples
    to pick from without.

    Parameters
    ----------
    query_strategy : scikit-activeml pool strategy
        With a method ``query(X, y, ...)`` or ``query(X, y, clf, ...)``, without other
        arguments that must be given. It is copied.
    clf : scikit-activeml classifier, default=None
        For strategies that take one: fitted to the labelled embeddings by the strategy.
        By default the strategy sees the predictions of the view.
    random_state : int, RandomState or None, default=None
        Seed or generator; it takes the place of the strategy's own.

    Examples
    --------
    >>> from mdal.strategies import SkactivemlStrategy
    >>> from skactiveml.pool import UncertaintySampling
    >>> strategy = SkactivemlStrategy(UncertaintySampling(), random_state=0)
    >>> strategy.select([[3.0, 0.0], [0.1, 0.0], [1.0, 0.0]], 1)
    array([1])
    """

    def __init__(self, query_strategy, clf=None, random_state=None):
        self.query_strategy = query_strategy
        self.clf = clf
        self.random_state = random_state

    def pick(self, view, n, rng):
        """Return the strategy's answer; see :meth:`Strategy.pick`."""
        X, y, n_labelled = _partly_labelled(view)
        seed = rng.randint(np.iinfo(np.int32).max)
        strategy = clone(self.query_strategy)
        strategy.set_params(missing_label=np.nan, random_state=seed)
        model = self._model(strategy, view, X[n_labelled:])
        # Some of these strategies cluster with NumPy's global generator.
        with _global_generator(seed):
            rows = strategy.query(
                X,
                y,
                **model,
                candidates=np.arange(n_labelled, len(X)),
                batch_size=n,
            )
        return np.asarray(rows) - n_labelled

    def _model(self, strategy, view: PoolView, X: NDArray) -> dict:
        """Return the argument for the classifier, for strategies that take one."""
        parameters = inspect.signature(strategy.query).parameters
        required = [
            name
            for name, parameter in parameters.items()
            if parameter.default is parameter.empty
            and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            and name not in ("X", "y")
        ]
        if not required:
            return {}
        if required not in (["clf"], ["estimator"]):
            raise TypeError(
                f"{type(strategy).__name__}.query needs {', '.join(required)}; only "
                "strategies that take (X, y) or (X, y, clf) can be used here: give "
                "the rest by a function of your own"
            )
        (name,) = required
        if self.clf is not None:
            return {name: clone(self.clf)}
        return {name: _predictions(X, view), f"fit_{name}": False}


@contextmanager
def _global_generator(seed: int):
    """Seed NumPy's global generator, and put it back afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _partly_labelled(view: PoolView) -> tuple[NDArray, NDArray, int]:
    """Return features and labels, labelled samples first, and how many those are."""
    X, y = view.positions, np.full(len(view), np.nan)
    if view.labelled_embedding is None:
        return X.astype(np.float64), y, 0
    if view.labels is None:
        raise ValueError(
            "labels is missing; scikit-activeml needs the classes of the labelled "
            "samples: pass labels= to the view"
        )
    X = np.concatenate([view.labelled_embedding, X], dtype=np.float64)
    return X, np.concatenate([view.labels, y]), len(view.labels)


def _predictions(X: NDArray, view: PoolView):
    """Return a scikit-activeml classifier that knows the view's probabilities of X."""
    from skactiveml.base import SkactivemlClassifier

    class Predictions(SkactivemlClassifier):
        def fit(self, X, y, sample_weight=None):
            raise TypeError(
                "this strategy trains its classifier; pass one: "
                "SkactivemlStrategy(query_strategy, clf=...)"
            )

        def predict_proba(self, X):
            try:
                rows = [self.rows_[row.tobytes()] for row in np.asarray(X)]
            except KeyError:
                raise TypeError(
                    "this strategy asks for predictions of other samples than those "
                    "to pick from; pass a classifier: "
                    "SkactivemlStrategy(query_strategy, clf=...)"
                ) from None
            return self.probabilities_[rows]

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    classes = np.arange(view.logits.shape[1])
    predictions = Predictions(classes=classes.tolist())
    predictions.classes_ = classes
    # Samples of the same embedding have the same logits, as these depend on nothing
    # else; where they do not, the first one's are taken for all.
    predictions.rows_ = {row.tobytes(): i for i, row in reversed([*enumerate(X)])}
    predictions.probabilities_ = by_blocks(softmax, view.logits).astype(np.float64)
    return predictions
