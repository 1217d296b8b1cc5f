"""The estimator that people use: wiring, and nothing else."""

import copy
import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._validation import (
    check_count,
    check_domains,
    check_finite,
    check_labels,
    check_seed,
)
from ..bounds import error_bound, lambda_bound
from ..budget import ErrorBudget, get_budget
from ..divergence import hdh_distances
from ..model_selection import domain_accuracy
from ..net import CompositeNet, Observation
from ..strategies import (
    FewerSamplesWarning,
    PoolView,
    Random,
    get_strategy,
    select_streamed,
)
from ..streams import Rows
from . import _files as files
from ._allocation import (
    allocation_by_name,
    domain_errors,
    hold_out,
    predicted_classes,
    split_budget,
)
from ._pool import Pool
from ._rounds import Allocation, Round, compare, share, terms
from ._samples import check_samples, record_samples, take
from ._shallow import AlphaWeightedClassifier

_NOT_GIVEN = object()
_BLOCK = 2000  # samples that the net sees at a time
_IN_MEMORY = 200_000  # samples of a domain up to which a strategy sees all


class MinusOneIsAClassWarning(UserWarning):
    """The labels are -1 and 1, and -1 was taken for a class.

    Examples
    --------
    >>> import warnings
    >>> from mdal.learner import MinusOneIsAClassWarning
    >>> warnings.simplefilter("ignore", MinusOneIsAClassWarning)
    """


class StartedAnewWarning(UserWarning):
    """A warm start was not possible, and training began with new weights.

    Examples
    --------
    >>> import warnings
    >>> from mdal.learner import StartedAnewWarning
    >>> warnings.simplefilter("ignore", StartedAnewWarning)
    """


class CompositeActiveLearner(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    r"""Learns from several partly labelled domains, and says what to label next.

    Every `fit` trains from new weights, as the paper does; with ``warm_start=True`` it
    goes on from the last ones. After `fit`, `allocate_budget` splits the labels of the
    next round between domains and `query` picks the samples; both depend on nothing but
    the fitted state, so asking twice gives the same answer.

    Parameters
    ----------
    net : CompositeNet or scikit-learn classifier, default=None
        What to train. None is a :class:`mdal.net.CompositeNet`, whose parameters have
        the prefix ``net__``. A classifier with `predict_proba` that takes
        `sample_weight` is trained on X as it is, with domains weighted by alpha.
    strategy : str, Strategy or callable, default="grads"
        Which samples, see :func:`mdal.strategies.get_strategy`.
    budget_per_round : int or None, default=100
        Labels in a round; None makes `query` and `allocate_budget` ask for it.
    allocation : str, budget object or callable, default="optimal"
        How many of them in each domain, see :func:`mdal.budget.get_budget`. "error"
        trains another net without a fifth of the labels, to measure errors.
    method : str or Objective, default="cal"
        What the net minimises, see :func:`mdal.objectives.get_objective`. A method
        that is set in `net` wins.
    lambda_d : float, default=1.0
        The weight of the distance between domains and surrogates. A
        ``method__lambda_d`` that is set in `net` wins, and a method that is an object
        keeps its own.
    similarity : estimator of alpha, default=None
        For a scikit-learn classifier as `net`; None is
        :class:`mdal.similarity.KernelMeanSimilarity`.
    first_round : str, Strategy or callable, default="random"
        How to pick while there is no label at all: "random", or "coreset" to spread the
        samples over the features. Each domain gets the same number then.
    warm_start : bool, default=False
        Whether to go on from the last weights. A new class, domain, shape of samples
        or parameter of the net makes training begin anew, with a warning. A
        scikit-learn classifier always does.
    random_state : int, RandomState or None, default=None
        Where all randomness comes from.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    domains_ : ndarray of shape (n_domains,)
        Names, in the order of rows and columns of alpha.
    alpha_ : ndarray of shape (n_domains, n_domains)
        ``alpha_[i, j]`` is the weight of labelled domain j in surrogate i.
    bound_ : mdal.bounds.Bound
        The terms of the error bound, without the complexity of deep nets, which nobody
        knows.
    budget_ : Allocation or None
        The labels of the next round by domain; None if `budget_per_round` is.
    history_ : list of Round
        One for each fit on samples of the same number and shape, with what it has
        bought since the one before.
    net_ : CompositeNet or classifier
        The trained net, which numbers the classes.

    References
    ----------
    Hao et al., "Composite Active Learning", AAAI 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal import CompositeActiveLearner
    >>> rng = np.random.default_rng(0)
    >>> domains = np.repeat(["near", "far"], 100)
    >>> X = rng.normal(size=(200, 4)) + 2.0 * (domains == "far")[:, None]
    >>> truth = X[:, 0] > X[:, 1]
    >>> y_mask = np.full(200, -1)
    >>> learner = CompositeActiveLearner(budget_per_round=20, random_state=0)
    >>> learner.set_params(net__max_epochs=2)
    CompositeActiveLearner(...)
    >>> for _ in range(2):
    ...     rows = learner.fit(X, domains, y_mask).query()
    ...     y_mask[rows] = truth[rows]
    >>> int((y_mask >= 0).sum())
    40
    """

    __metadata_request__fit: ClassVar = {
        "domains": True,
        "y_mask": True,
        "exclude": True,
    }
    __metadata_request__score: ClassVar = {"domains": True, "y_mask": True}
    __metadata_request__predict: ClassVar = {"domains": True}
    __metadata_request__predict_proba: ClassVar = {"domains": True}

    def __init__(
        self,
        net=None,
        *,
        strategy="grads",
        budget_per_round=100,
        allocation="optimal",
        method="cal",
        lambda_d=1.0,
        similarity=None,
        first_round="random",
        warm_start=False,
        random_state=None,
    ):
        self.net = net
        self.strategy = strategy
        self.budget_per_round = budget_per_round
        self.allocation = allocation
        self.method = method
        self.lambda_d = lambda_d
        self.similarity = similarity
        self.first_round = first_round
        self.warm_start = warm_start
        self.random_state = random_state

    def set_params(self, **params):
        """Set parameters; those of the net make the default net if there is none.

        Parameters
        ----------
        **params
            Parameters by name, with ``net__`` for those of the net.

        Returns
        -------
        self
        """
        of_net = any(name.startswith("net__") for name in params)
        if of_net and params.get("net", self.net) is None:
            params = {**params, "net": CompositeNet()}
        return super().set_params(**params)

    def fit(self, X, y=None, y_mask=_NOT_GIVEN, *, domains=None, exclude=None):
        """Train on all samples, some of them labelled.

        ``fit(X, domains, y_mask)``, ``fit(X, domains=..., y_mask=...)`` and
        ``fit(X, y, domains=...)`` are the same: with `y_mask`, the second argument is
        taken for the domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), sparse matrix or Dataset
            Samples of all domains.
        y : array-like of shape (n_samples,), default=None
            Labels, as `y_mask`, but at least one; or the domains, if `y_mask` is given.
            If the labels are exactly -1 and 1, -1 is a class, with a warning.
        y_mask : array-like of shape (n_samples,)
            Labels, with -1, NaN, None or a mask for samples that have none. Without
            any label, `query` gives the first round and `predict` has to wait.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample; None is a single domain.
        exclude : array-like of int or of bool, default=None
            Rows that `query` must not give, or whether each row is one (which is what
            cross-validation needs). The next `fit` has to be told again.

        Returns
        -------
        self
            A fit that fails changes nothing.
        """
        pool = self._check_pool(X, y, y_mask, domains, exclude)
        learned = self._learn(pool)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).pop("_n_features_out", None)
        record_samples(self, X)
        vars(self).update(learned)
        return self

    def _check_pool(self, X, y, y_mask, domains, exclude) -> Pool:
        if y_mask is not _NOT_GIVEN:
            domains = _only(y, domains)
        X = check_samples(self, X, fitted=False)
        names, codes = check_domains(domains, len(X))
        if y_mask is not _NOT_GIVEN:
            classes, labels = check_labels(y_mask, len(X), "y_mask")
        else:
            classes, labels = self._check_y(y, len(X))
        excluded = _check_rows(exclude, len(X), "exclude")
        shape = Rows(take(X, [0])).shape
        return Pool(X, shape, names, codes, classes, labels, excluded)

    def _check_y(self, y, n_samples):
        """Return classes and labels of y, in which -1 may be a class."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but "
                "the target y is None; pass fit(X, domains, y_mask), with -1 for "
                "samples without a label"
            )
        classes, labels = check_labels(y, n_samples)
        if classes.tolist() == [1] and (labels < 0).any():
            values = np.asarray(y)
            if values.dtype.kind in "if" and set(values.tolist()) == {-1, 1}:
                warnings.warn(
                    "y has the labels -1 and 1, and -1 is taken for a class; pass "
                    "y_mask= if it means that there is no label",
                    MinusOneIsAClassWarning,
                    stacklevel=4,
                )
                return np.array([-1, 1], values.dtype), labels + 1
        if not (labels >= 0).any():
            raise ValueError(
                "y has no label at all; label at least one sample, or pass "
                "y_mask= for a first round without labels"
            )
        return classes, labels

    def _learn(self, pool: Pool) -> dict:
        """Return the fitted attributes by name."""
        for name, known in (
            ("strategy", get_strategy),
            ("first_round", get_strategy),
            ("allocation", get_budget),
        ):
            try:
                known(getattr(self, name))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name} cannot be used: {error}") from None
        if self.budget_per_round is not None:
            check_count(self.budget_per_round, "budget_per_round")
        if not isinstance(self.warm_start, bool | np.bool_):
            raise TypeError(f"warm_start={self.warm_start!r}; pass True or False")
        seeds = check_seed(self.random_state).randint(2**31 - 1, size=3)
        learned = {
            "classes_": pool.classes,
            "domains_": pool.names,
            "pool_": pool,
            "seed_": int(seeds[1]),
        }
        spent = pool.count(pool.labelled).tolist()
        by_domain = dict(zip(pool.names.tolist(), spent, strict=True))
        now = Round(sum(spent), by_domain)
        errors = None
        if pool.labelled.any():
            if isinstance(get_budget(self.allocation), ErrorBudget):
                errors = self._held_out_errors(pool, seeds)
            net = self._trained(pool, seeds[0])
            alpha = getattr(net, "alpha_", None)
            bound = _bound(net, alpha, pool.names)
            learned |= {"net_": net, "alpha_": alpha, "bound_": bound}
            embedding = net.observe(take(pool.X, [0])).penultimate
            learned["_n_features_out"] = embedding.shape[1]
            now = replace(now, bound=None if bound is None else terms(bound))
        learned["errors_"] = errors
        learned["history_"] = self._history(now, learned)
        learned["budget_"] = None
        if self.budget_per_round is not None:
            n = self.budget_per_round
            learned["budget_"] = allocation_by_name(learned, self.allocation, n)
        return learned

    def _new_net(self, seed):
        """Return a net to train, with what the learner says about it."""
        if isinstance(self.net, type):
            raise TypeError(f"net is the class {self.net.__name__}; pass an object")
        if self.net is not None and not hasattr(self.net, "get_params"):
            raise TypeError(
                f"net={self.net!r} is of type {type(self.net).__name__}; pass a "
                "CompositeNet or a scikit-learn classifier"
            )
        net = CompositeNet() if self.net is None else clone(self.net)
        if not isinstance(net, CompositeNet):
            return AlphaWeightedClassifier(net, self.similarity, seed)
        if net.method == CompositeNet().method:
            net.set_params(method=self.method)
        if isinstance(net.method, str) and "method__lambda_d" not in net.get_params():
            net.set_params(method__lambda_d=self.lambda_d)
        if net.random_state is None:
            net.set_params(random_state=seed)
        return net

    def _held_out_errors(self, pool: Pool, seeds):
        """Return each domain's error on labels that a net was trained without."""
        held_out = hold_out(pool, seeds[2])
        if not held_out.any():
            return None
        net, labels = self._new_net(int(seeds[0])), np.where(held_out, -1, pool.labels)
        net.fit(pool.X, labels, domains=pool.names[pool.domains])
        return domain_errors(net, pool, held_out)

    def _trained(self, pool: Pool, seed):
        """Return a net that was trained on what is labelled."""
        labels, domains = pool.labels, pool.names[pool.domains]
        net = self._new_net(int(seed))
        last = getattr(self, "net_", None)
        deep = isinstance(net, CompositeNet) and isinstance(last, CompositeNet)
        if self.warm_start and deep:
            changed = [
                what
                for what, now, then in (
                    ("classes", pool.classes.tolist(), self.classes_.tolist()),
                    ("domains", pool.names.tolist(), self.domains_.tolist()),
                    ("the shape of samples", pool.shape, self.pool_.shape),
                    ("the net's parameters", _settings(net), _settings(last)),
                )
                if now != then
            ]
            if not changed:
                last = copy.deepcopy(last)
                return last.partial_fit(pool.X, labels, domains=domains)
            warnings.warn(
                f"{', '.join(changed)} changed since the last fit; training starts "
                "with new weights",
                StartedAnewWarning,
                stacklevel=4,
            )
        return net.fit(pool.X, labels, domains=domains)

    def _history(self, now: Round, learned: dict) -> list[Round]:
        """Return all rounds, the last one with what it has bought."""
        pool, last = learned["pool_"], getattr(self, "pool_", None)
        same = last is not None and last.shape == pool.shape
        if not same or len(last.labels) != len(pool.labels):
            return [now]
        rounds = self.history_
        if not hasattr(self, "net_") or "net_" not in learned:
            return [*rounds, now]
        new = np.flatnonzero(~last.labelled & pool.labelled)
        if len(new) == 0 and np.array_equal(last.labels, pool.labels):
            return [*rounds[:-1], replace(rounds[-1], bound=now.bound)]
        # The same two thousand in every round are enough to see changes of 1 %.
        watched = np.random.RandomState(0).permutation(len(pool.labels))[:2000]
        before = last.classes[predicted_classes(self.net_, take(pool.X, watched))]
        after = pool.classes[predicted_classes(learned["net_"], take(pool.X, watched))]
        seen = {"agreement": share(before == after), "accuracy_on_new": None}
        if len(new):
            predicted = last.classes[predicted_classes(self.net_, take(pool.X, new))]
            seen["accuracy_on_new"] = share(predicted == pool.classes[pool.labels[new]])
        return [*rounds, compare(rounds[-1], now, seen)]

    def allocate_budget(self, n=None) -> Allocation:
        """Split the labels of the next round between domains.

        Parameters
        ----------
        n : int, default=None
            Labels in all; None is `budget_per_round`.

        Returns
        -------
        Allocation
            Labels for each domain, by its name; whole numbers that sum to n, or to what
            is left to label.
        """
        check_is_fitted(self)
        return allocation_by_name(vars(self), self.allocation, self._asked(n))

    def _asked(self, n) -> int:
        if n is None and self.budget_per_round is None:
            raise ValueError(
                "n is missing; pass the number of labels, or set budget_per_round"
            )
        if n is None:
            return check_count(self.budget_per_round, "budget_per_round")
        return check_count(n, "n")

    def query(self, n=None, *, return_utilities=False, candidates=None):
        """Pick the samples to label next.

        Parameters
        ----------
        n : int, default=None
            Labels in all; None is `budget_per_round`.
        return_utilities : bool, default=False
            Whether to say what each sample was worth, too.
        candidates : array-like of int or of bool, default=None
            Rows to pick from, or whether each row is one; None is all. Labelled and
            excluded rows are never picked.

        Returns
        -------
        rows : ndarray of shape (n,)
            Distinct rows of the X of `fit`. If fewer are left than were asked for, all
            of them, with a :class:`mdal.strategies.FewerSamplesWarning`.
        utilities : ndarray of shape (n_samples,)
            Only with `return_utilities`: what the strategy looks at first (a score, or
            the length of a gradient), NaN for rows that could not be picked. Strategies
            that spread their picks do not take the largest.
        """
        check_is_fitted(self)
        asked, pool = self._asked(n), self.pool_
        if pool.X is None:
            raise ValueError(
                "this learner was loaded without samples; pass load(folder, X=...)"
            )
        free = pool.free
        if candidates is not None:
            free = free & _check_rows(candidates, len(free), "candidates")
        if asked > free.sum():
            warnings.warn(
                f"n={asked} exceeds the {free.sum()} samples that are left to label; "
                "all of them are returned",
                FewerSamplesWarning,
                stacklevel=2,
            )
        split, groups = split_budget(vars(self), self.allocation, asked, free)
        wanted = {group: int(m) for group, m in enumerate(split) if m > 0}
        rows, strategy = np.flatnonzero(free), self._strategy()
        picked = select_streamed(
            strategy,
            self._views(rows, groups[pool.domains[rows]]),
            wanted,
            threshold=_IN_MEMORY,
            random_state=self.seed_,
        )
        found = np.concatenate([rows[:0], *(rows[picked[group]] for group in wanted)])
        if not return_utilities:
            return found
        utilities = np.full(len(free), np.nan)
        utilities[rows] = np.concatenate(
            [
                np.empty(0),
                *(
                    strategy.screen(view, np.ones(len(view)))[:, 0]
                    for view in self._views(rows, pool.domains[rows])
                ),
            ]
        )
        return found, utilities

    def _strategy(self):
        trained = hasattr(self, "net_")
        return get_strategy(self.strategy if trained else self.first_round)

    def _views(self, rows, groups):
        """Yield what is known about some rows, in blocks."""
        known = {}
        if hasattr(self, "net_") and len(rows):
            labelled = np.flatnonzero(self.pool_.labelled)
            known = {
                "labelled_embedding": self._said(labelled).penultimate,
                "labels": self.pool_.labels[labelled],
            }
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            said = self._said(rows[block])
            yield PoolView(
                said.logits,
                embedding=said.penultimate,
                outlier=said.outlier,
                domains=groups[block],
                **known,
            )

    def _said(self, rows) -> Observation:
        """Return what the net says about rows; without one, their features."""
        pool = self.pool_
        if hasattr(self, "net_"):
            domains = pool.names[pool.domains[rows]]
            return self.net_.observe(take(pool.X, rows), domains)
        features = None
        if not isinstance(self._strategy(), Random):
            features = Rows(take(pool.X, rows))[np.arange(len(rows))]
            features = features.flatten(1).numpy()
        return Observation(np.zeros((len(rows), 1)), features, features)

    def predict_proba(self, X, domains=None):
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), sparse matrix or Dataset
            Samples.
        domains : array-like of shape (n_samples,), default=None
            Their domains, for methods whose predictions depend on them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        net, X = self._ready(X)
        return net.predict_proba(X, domains)

    def predict(self, X, domains=None):
        """Return the most probable class of each sample.

        Parameters
        ----------
        X, domains
            As in :meth:`predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X, domains).argmax(axis=1)
        return self.classes_[best]

    def transform(self, X):
        """Return the embedding: what the last layer of the classifier sees.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), sparse matrix or Dataset
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, width)
        """
        net, X = self._ready(X)
        return net.observe(X).penultimate

    def _ready(self, X):
        """Return the trained net and samples for it."""
        check_is_fitted(self)
        if not hasattr(self, "net_"):
            raise NotFittedError(
                "nothing is labelled yet, so there is nothing to predict with; label "
                "what query returns and fit again"
            )
        return self.net_, check_samples(self, X, fitted=True)

    def score(self, X, y=None, y_mask=_NOT_GIVEN, *, domains=None, sample_weight=None):
        """Return the accuracy on labelled samples, as a mean over domains.

        Parameters
        ----------
        X, y, y_mask, domains
            As in :meth:`fit`. Samples without a label do not count; all domains that
            have labels count the same.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of samples within their domains.

        Returns
        -------
        float
        """
        if y_mask is not _NOT_GIVEN:
            y, domains = y_mask, _only(y, domains)
        predicted = self.predict(X, domains)
        if y_mask is _NOT_GIVEN and -1 in self.classes_.tolist():
            # Here -1 is a class; other names for it and 1 leave NaN what it is.
            y = np.array(y, dtype=object)
            y[y == -1], predicted = 0, np.where(predicted == -1, 0, predicted)
        return domain_accuracy(
            y, predicted, domains=domains, sample_weight=sample_weight
        )

    def save(self, folder):
        """Write the learner to a folder of files without code.

        The files have the net, the labels and domains of all samples, the rounds, and
        those parameters that are values. Samples are not written, nor parameters that
        are objects (a strategy, an encoder): these have to be passed to :meth:`load`.

        Parameters
        ----------
        folder : str or path-like
            Made if it is not there. What is in it is replaced when the new files are
            complete.
        """
        check_is_fitted(self)
        files.save(self, folder)

    @classmethod
    def load(cls, folder, X=None, **others):
        """Read a learner from a folder that `save` wrote.

        Parameters
        ----------
        folder : str or path-like
            The folder.
        X : array-like of shape (n_samples, ...), sparse matrix or Dataset, default=None
            The samples of the last fit, in the same order; `query` needs them.
        **others
            Parameters that were no values, those of the net with ``net__``.

        Returns
        -------
        CompositeActiveLearner
        """
        learner = files.load(cls, folder, others)
        if hasattr(learner, "net_"):
            learner.bound_ = _bound(learner.net_, learner.alpha_, learner.domains_)
        if X is not None:
            X = check_samples(learner, X, fitted=True)
            shape = (len(learner.pool_.labels), *learner.pool_.shape)
            found = (len(X), *Rows(take(X, [0])).shape)
            if found != shape:
                raise ValueError(
                    f"X has {found[0]} samples of shape {found[1:]}, but the learner "
                    f"in {folder} was fitted to {shape[0]} of shape {shape[1:]}; pass "
                    "the same ones"
                )
            learner.pool_ = replace(learner.pool_, X=X)
        return learner

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _only(second, domains):
    """Return the domains, which are the second argument where y_mask is given."""
    if second is not None and domains is not None:
        raise TypeError(
            "got domains twice: with y_mask the second argument is the domains; pass "
            "(X, domains, y_mask)"
        )
    return second if domains is None else domains


def _check_rows(rows, n_samples: int, name: str) -> NDArray:
    """Return a mask of the rows that are given by number or by a mask."""
    mask = np.zeros(n_samples, dtype=bool)
    if rows is None:
        return mask
    rows = np.asarray(rows)
    if rows.dtype == bool:
        if rows.shape != (n_samples,):
            raise ValueError(
                f"{name} has shape {rows.shape} for {n_samples} samples; pass one "
                "value per sample, or row numbers"
            )
        return rows.copy()
    rows = check_finite(rows, name, (None,)) if rows.size else rows.astype(np.intp)
    wrong = (rows != np.floor(rows)) | (rows < 0) | (rows >= n_samples)
    if wrong.any():
        raise ValueError(
            f"{name} contains {rows[wrong][0]}; pass row numbers from 0 to "
            f"{n_samples - 1}"
        )
    mask[rows.astype(np.intp)] = True
    return mask


def _settings(net: CompositeNet) -> dict:
    """Return the parameters of a net, to be compared; each fit has its own seed."""
    return {
        name: repr(value)
        for name, value in net.get_params(deep=False).items()
        if name != "random_state" and not name.startswith("_")
    }


def _bound(net, alpha, names):
    """Return the bound by the tables of the training, if they are of 0/1 losses."""
    tables = getattr(net, "tables_", None)
    objective = getattr(net, "objective_", None)
    if alpha is None or tables is None or tables.errors is None:
        return None
    if getattr(objective, "alpha_loss", "zero_one") != "zero_one":
        return None
    return error_bound(
        alpha,
        tables.errors[0],
        hdh_distances(tables, alpha),
        lambda_bound(alpha, tables.errors[1:]),
        domains=names.tolist(),
    )
