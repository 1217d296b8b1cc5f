"""The estimator that people use: wiring, and nothing else."""

import copy
import warnings
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._validation import NOT_GIVEN, check_count, check_option, check_seed, only_domains
from ..budget import ErrorBudget, get_budget
from ..model_selection import domain_accuracy
from ..net import CompositeNet
from ..strategies import FewerSamplesWarning, get_strategy
from . import _files as files
from ._allocation import allocation_by_name, domain_errors, hold_out
from ._history import history
from ._pool import Pool, check_pool, check_rows
from ._query import pick, utilities
from ._rounds import Allocation
from ._samples import check_samples, feature_record, take
from ._training import (
    bound_of,
    check_output,
    new_net,
    probabilities,
    settings,
    trained,
    trained_on,
)


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
        `sample_weight` is trained on X as it is, with domains weighted by alpha, or
        all the same with ``method="erm"``; `lambda_d` then has no part in it. One whose
        `fit` takes `domains`, such as :class:`mdal.svm_text.SVMText`, is told them, and
        neither `method` nor alpha has a part.
    strategy : str, Strategy or callable, default="grads"
        Which samples, see :func:`mdal.strategies.get_strategy`.
    budget_per_round : int or None, default=100
        Labels in a round; None makes `query` and `allocate_budget` ask for it.
    allocation : str, budget object or callable, default="optimal"
        How many of them in each domain, see :func:`mdal.budget.get_budget`; "optimal"
        needs a method that estimates alpha. With
        "error", `fit` trains another net without a fifth of the labels, to measure
        errors; where there are none, domains get the same.
    method : str or Objective, default="auto"
        What the net minimises, see :func:`mdal.objectives.get_objective`. "auto" is
        "cal_consistency" for images (samples of two or three dimensions), because it
        is worth many labels there, and otherwise "cal", the paper's method; also "cal"
        with an encoder of yours, or with settings ``method__...`` in `net`. A method
        other than "cal" that is set in `net` wins.
    lambda_d : float, default=1.0
        The weight of the distance between domains and surrogates. A
        ``method__lambda_d`` that is set in `net` wins, a method that is an object keeps
        its own, and methods without one take no notice.
    classes : array-like, default=None
        All classes that there can be: any other label is an error, and `classes_` and
        `predict_proba` have all of them from the first round on. None is those that
        have labels.
    similarity : estimator of alpha, default=None
        For a scikit-learn classifier as `net`; None is
        :class:`mdal.similarity.KernelMeanSimilarity`.
    first_round : str, Strategy or callable, default="random"
        How to pick while there is no label at all: "random", "coreset" to spread the
        samples over the features, or an object that needs no predictions. Each domain
        gets the same number then.
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
    alpha_ : ndarray of shape (n_domains, n_domains) or None
        ``alpha_[i, j]`` is the weight of labelled domain j in surrogate i; None of a
        method that has none. As `bound_` and `net_`, it is there from the first label
        on.
    bound_ : mdal.bounds.Bound or None
        The terms of the error bound, without the complexity of deep nets, which nobody
        knows; None of a method without alpha, or whose alpha looks at other losses.
    budget_ : Allocation or None
        The labels of the next round by domain; None if `budget_per_round` is.
    history_ : list of Round
        One for each set of labels, on the same samples or with others after them, with
        what the new ones have bought.
    net_ : CompositeNet or classifier
        The trained net, which numbers the classes.
    pool_ : Pool
        The samples, domains and labels of the last fit; ``pool_.free`` tells which may
        be picked next.

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
        method="auto",
        lambda_d=1.0,
        classes=None,
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
        self.classes = classes
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
        net = params.get("net", self.net)
        if of_net and net is None:
            params = {**params, "net": CompositeNet()}
        elif of_net and not hasattr(net, "set_params"):
            raise TypeError(
                f"net={net!r} has no parameters; pass a CompositeNet or a scikit-learn "
                "classifier"
            )
        # What is wrong is said of copies: a net is written into.
        copies = {
            name: clone(value, safe=False) if hasattr(value, "get_params") else value
            for name, value in params.items()
        }
        super(CompositeActiveLearner, clone(self)).set_params(**copies)
        return super().set_params(**params)

    def fit(self, X, y=None, y_mask=NOT_GIVEN, *, domains=None, exclude=None):
        """Train on all samples, some of them labelled.

        ``fit(X, domains, y_mask)``, ``fit(X, domains=..., y_mask=...)`` and
        ``fit(X, y, domains=...)`` are the same: with `y_mask`, the second argument is
        taken for the domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), sparse matrix or Dataset
            Samples of all domains. Arrays are not copied: `query` looks at them again.
        y : array-like of shape (n_samples,), default=None
            Labels, as `y_mask`, but at least one; or the domains, if `y_mask` is given.
            If `classes` has -1, it is a class here; if there are no `classes` and the
            labels are exactly -1 and 1, it is one, too, with a warning.
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
        pool = check_pool(self, X, y, y_mask, domains, exclude)
        learned = {**feature_record(X), **self._learn(pool)}
        if isinstance(self.random_state, np.random.RandomState):
            self._seeds(self.random_state)  # which it may move now
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).pop("_n_features_out", None)
        vars(self).update(learned)
        return self

    def fit_transform(self, X, y=None, y_mask=NOT_GIVEN, *, domains=None, exclude=None):
        """Fit, and return the embedding of the samples.

        Parameters
        ----------
        X, y, y_mask, domains, exclude
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_hidden)
        """
        return self.fit(X, y, y_mask, domains=domains, exclude=exclude).transform(X)

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
        if isinstance(self.first_round, str):
            check_option(self.first_round, "first_round", {"coreset", "random"})
        if self.budget_per_round is not None:
            check_count(self.budget_per_round, "budget_per_round")
        if not isinstance(self.warm_start, bool | np.bool_):
            raise TypeError(f"warm_start={self.warm_start!r}; pass True or False")
        seeds = self._seeds(copy.deepcopy(check_seed(self.random_state)))
        learned = {
            "classes_": pool.classes,
            "domains_": pool.names,
            "pool_": pool,
            "seeds_": seeds,
            "errors_": None,
        }
        if pool.labelled.any():
            learned |= self._train(pool, seeds)
        else:
            new_net(self, seeds[0], pool.shape)  # what is wrong is said at once
        learned["history_"] = history(vars(self), learned)
        learned["budget_"] = None
        if self.budget_per_round is not None:
            n = self.budget_per_round
            learned["budget_"] = allocation_by_name(learned, self.allocation, n)
        return learned

    @staticmethod
    def _seeds(rng) -> list[int]:
        """Return the seeds of the net, of the query, and of what is held out."""
        return rng.randint(2**31 - 1, size=3).tolist()

    def _train(self, pool: Pool, seeds) -> dict:
        """Return the net, and what follows from it."""
        errors = None
        if isinstance(get_budget(self.allocation), ErrorBudget):
            held_out = hold_out(pool, seeds[2])
            if held_out.any():
                labels = np.where(held_out, -1, pool.labels)
                net = trained(self, pool, seeds[0], labels)
                errors = domain_errors(net, pool, held_out)
        if self.warm_start:
            net = trained_on(self, pool, seeds[0])
        else:
            net = trained(self, pool, seeds[0], pool.labels)
        seen = net.observe(take(pool.X, [0]))
        check_output(seen.logits)
        return {
            "net_": net,
            "alpha_": getattr(net, "alpha_", None),
            "bound_": bound_of(net, pool.names),
            "errors_": errors,
            "settings_": settings(self),
            "_n_features_out": seen.penultimate.shape[1],
        }

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
            free = free & check_rows(candidates, len(free), "candidates")
        if asked > free.sum():
            warnings.warn(
                f"n={asked} exceeds the {free.sum()} samples that are left to label; "
                "all of them are returned",
                FewerSamplesWarning,
                stacklevel=2,
            )
        trained = hasattr(self, "net_")
        strategy = get_strategy(self.strategy if trained else self.first_round)
        rows = pick(vars(self), self.allocation, strategy, asked, free)
        if not return_utilities:
            return rows
        return rows, utilities(vars(self), strategy, free)

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
        return probabilities(net, X, len(self.classes_), domains)

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
        ndarray of shape (n_samples, n_hidden)
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

    def score(self, X, y=None, y_mask=NOT_GIVEN, *, domains=None, sample_weight=None):
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
        check_is_fitted(self)
        classes = self.classes_
        if y_mask is not NOT_GIVEN:  # there, -1 is never a class
            y, domains, classes = y_mask, only_domains(y, domains), None
        return domain_accuracy(
            y,
            self.predict(X, domains),
            domains=domains,
            sample_weight=sample_weight,
            classes=classes,
        )

    def save(self, folder):
        """Write the learner to a folder of files without code.

        The files have the net, the labels and domains of all samples, the rounds, and
        those parameters that are values. Samples are not written, nor parameters that
        are objects (a strategy, an encoder, a scikit-learn classifier): these have to
        be passed to :meth:`load`.

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
            The samples of the last fit, in the same order; `query` needs them, and a
            scikit-learn classifier, which is trained again.
        **others
            Parameters that were no values, those of the net with ``net__``.

        Returns
        -------
        CompositeActiveLearner
        """
        return files.load(cls, folder, X, others)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
