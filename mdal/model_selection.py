"""Folds and scores for partly labelled samples of several domains."""

import warnings
from inspect import signature
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import Pipeline

from ._unchanged import unchanged_on_failure
from ._validation import (
    NOT_GIVEN,
    check_classes,
    check_count,
    check_domains,
    check_labels,
    check_number,
    check_option,
    check_seed,
    check_weights,
    minus_one_is_a_class,
    only_domains,
)

__all__ = [
    "ActivePipeline",
    "DomainScorer",
    "DomainsUnknownWarning",
    "LabelledKFold",
    "domain_accuracy",
]


def domain_accuracy(
    y: ArrayLike,
    predicted: ArrayLike,
    *,
    domains: ArrayLike | None = None,
    average: str | dict | None = "mean",
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> float | dict:
    """Return the accuracy on labelled samples, over domains.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels, with -1, NaN or None for samples that have none and do not count.
    predicted : array-like of shape (n_samples,)
        Predicted classes.
    domains : array-like of shape (n_samples,), default=None
        Domain of each sample; None is a single domain.
    average : {"mean", "worst", "samples"}, dict or None, default="mean"
        The mean over domains that have labels, the worst of them, the mean over
        samples, or a mean with these weights of domains by name. None is no mean.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of samples.
    classes : array-like, default=None
        All classes that can be predicted. If -1 is one of them, it is a label in `y`.

    Returns
    -------
    float, or dict of float
        With ``average=None`` the accuracy of each domain that has labels, by its name.

    Examples
    --------
    >>> from mdal.model_selection import domain_accuracy
    >>> y, predicted = [0, 1, 1, -1], [0, 1, 0, 0]
    >>> domain_accuracy(y, predicted, domains=["a", "a", "b", "b"])
    0.5
    >>> domain_accuracy(y, predicted, domains=["a", "a", "b", "b"], average=None)
    {'a': 1.0, 'b': 0.0}
    >>> domain_accuracy(y, predicted, domains=["a", "a", "b", "b"],
    ...                 average={"a": 3, "b": 1})
    0.75
    """
    if average is not None and not isinstance(average, dict):
        check_option(average, "average", {"mean", "worst", "samples"})
    predicted = np.asarray(predicted)
    if predicted.ndim != 1:
        raise ValueError(
            f"predicted has shape {predicted.shape}; pass one class per sample"
        )
    names, codes = check_domains(domains, len(predicted))
    minus_one = classes is not None and -1 in np.asarray(classes).tolist()
    classes, labels = check_labels(y, len(predicted), minus_one=minus_one)
    weights = np.ones(len(predicted)) if sample_weight is None else sample_weight
    weights = check_weights(weights, "sample_weight", len(predicted))
    labelled = (labels >= 0) & (weights > 0)
    if not labelled.any():
        raise ValueError("y has no label to compare with; pass at least one")
    if _is_text(classes) != _is_text(predicted):
        raise ValueError(
            f"y has classes such as {classes[0]!r} and predicted such as "
            f"{predicted[0]!r}; pass text or numbers for both"
        )
    right = np.zeros(len(predicted))
    right[labelled] = classes[labels[labelled]] == predicted[labelled]
    weights = np.where(labelled, weights, 0.0)
    if average == "samples":
        return float(np.average(right, weights=weights))
    total = np.bincount(codes, weights, minlength=len(names))
    hits = np.bincount(codes, weights * right, minlength=len(names))
    seen = total > 0
    accuracies = hits[seen] / total[seen]
    if average is None:
        return dict(zip(names[seen].tolist(), accuracies.tolist(), strict=True))
    if average == "worst":
        return float(accuracies.min())
    if average == "mean":
        return float(accuracies.mean())
    return float(np.average(accuracies, weights=_weights(average, names[seen])))


def _is_text(values: NDArray) -> bool:
    return all(isinstance(value, str) for value in values[:1].tolist())


def _weights(average: dict, names: NDArray) -> NDArray:
    """Return the weights of domains that a user gave by name."""
    missing = [name for name in names.tolist() if name not in average]
    if missing:
        raise ValueError(
            f"average has no weight for domain {missing[0]!r}; pass one for each of "
            f"{names.tolist()}"
        )
    weights = np.array(
        [check_number(average[name], f"average[{name!r}]") for name in names.tolist()]
    )
    if weights.sum() == 0:
        raise ValueError(
            f"average={average!r} gives no weight to any domain that has labels; pass "
            "one above 0"
        )
    return weights


class DomainsUnknownWarning(UserWarning):
    """A score was asked for over domains, and is over samples.

    Examples
    --------
    >>> import warnings
    >>> from mdal.model_selection import DomainsUnknownWarning
    >>> warnings.simplefilter("ignore", DomainsUnknownWarning)
    """


class DomainScorer(BaseEstimator):
    """A scorer for grid searches: the accuracy on labelled samples, over domains.

    Scikit-learn's own scorers count -1 as a class. With metadata routing the scorer is
    given the domains; without it, it is not: then all samples are one domain, and
    :class:`DomainsUnknownWarning` says so.

    Parameters
    ----------
    average : {"mean", "worst", "samples"} or dict, default="mean"
        See :func:`domain_accuracy`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from mdal.model_selection import DomainScorer
    >>> X, y, domains = [[0.0]] * 4, [1, 1, 0, -1], ["a", "a", "b", "b"]
    >>> ones = DummyClassifier(strategy="constant", constant=1).fit(X[:3], y[:3])
    >>> DomainScorer("worst")(ones, X, y, domains=domains)
    0.0
    """

    __metadata_request__score: ClassVar = {"domains": True, "y_mask": True}

    def __init__(self, average="mean"):
        self.average = average

    def __call__(self, estimator, X, y=None, **metadata):
        """Return the score, as :meth:`score` does."""
        return self.score(estimator, X, y, **metadata)

    def score(self, estimator, X, y=None, *, domains=None, y_mask=None):
        """Return the score of an estimator's predictions of X.

        Parameters
        ----------
        estimator : estimator
            With `predict`, which is given the domains if it takes them.
        X : array-like
            Samples.
        y, y_mask : array-like of shape (n_samples,), default=None
            Labels; `y_mask` counts where both are given. In `y`, -1 is a label if it
            is one of the estimator's classes.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample; None is a single domain.

        Returns
        -------
        float
        """
        known, n_domains = {}, len(getattr(estimator, "domains_", ()))
        if domains is None and n_domains > 1 and self.average != "samples":
            if isinstance(self.average, dict):
                raise ValueError(
                    "average has weights of domains, and domains are not given; call "
                    "sklearn.set_config(enable_metadata_routing=True) first"
                )
            warnings.warn(
                f"the score is over samples and not the {self.average} over domains, "
                "which are not given; call "
                "sklearn.set_config(enable_metadata_routing=True) first, or choose "
                'average="samples"',
                DomainsUnknownWarning,
                stacklevel=2,
            )
        if domains is not None and "domains" in signature(estimator.predict).parameters:
            known["domains"] = domains
        return domain_accuracy(
            y if y_mask is None else y_mask,
            estimator.predict(X, **known),
            domains=domains,
            average=self.average,
            classes=getattr(estimator, "classes_", None) if y_mask is None else None,
        )


class LabelledKFold(BaseCrossValidator):
    """Folds for partly labelled samples: labelled ones are held out, others never.

    Held-out samples are stratified by class and by domain. A class's only labelled
    sample and a domain's only sample are never held out, and no fold holds out all
    samples of a class or of a domain: one that would stays in its training part.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    classes : array-like, default=None
        As of the learner: if -1 is one of them, it is a label in `y`. With None it is
        one if the labels in `y` are exactly -1 and 1.
    random_state : int, RandomState or None, default=None
        Seed or generator; which samples are held out together is random.

    Examples
    --------
    >>> from mdal.model_selection import LabelledKFold
    >>> y = [0, 0, 1, 1, -1, -1]
    >>> for train, test in LabelledKFold(2, random_state=0).split(y, y):
    ...     print(len(train), len(test))
    4 2
    4 2
    """

    __metadata_request__split: ClassVar = {
        "groups": True,
        "domains": True,
        "y_mask": True,
    }

    def __init__(self, n_splits=5, *, classes=None, random_state=None):
        self.n_splits = n_splits
        self.classes = classes
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None, *, domains=None, y_mask=None):
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups, domains, y_mask : object
            Ignored.

        Returns
        -------
        int
        """
        return check_count(self.n_splits, "n_splits", minimum=2)

    def split(self, X, y=None, groups=None, *, domains=None, y_mask=None):
        """Yield rows to train on and rows to test on.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Samples; only their number counts.
        y, y_mask : array-like of shape (n_samples,), default=None
            Labels, with -1, NaN or None for samples that have none; `y_mask` counts
            where both are given.
        groups : array-like of shape (n_samples,), default=None
            Taken for the domains where these are not given: without metadata routing
            grid searches pass on nothing else.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample; None is a single domain.

        Yields
        ------
        train : ndarray
            All rows but those of `test`.
        test : ndarray
            Labelled rows.
        """
        n_splits = self.get_n_splits()
        if X is None:
            raise TypeError("X is None; pass samples, of which only the number counts")
        n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
        labels = y if y_mask is None else y_mask
        if labels is None:
            raise ValueError("y is missing; pass labels, with -1 where there is none")
        known = None if self.classes is None else check_classes(self.classes)
        minus_one = y_mask is None and minus_one_is_a_class(labels, known)
        _, labels = check_labels(labels, n_samples, minus_one=minus_one)
        _, codes = check_domains(groups if domains is None else domains, n_samples)
        several = np.bincount(labels[labels >= 0], minlength=1)[labels] > 1
        sizes = np.bincount(codes)
        rows = np.flatnonzero((labels >= 0) & several & (sizes[codes] > 1))
        if len(rows) < n_splits:
            raise ValueError(
                f"n_splits={n_splits} exceeds the {len(rows)} labelled samples that "
                "can be held out; label more or use fewer folds"
            )
        luck = check_seed(self.random_state).random_sample(len(rows))
        # Neighbours in this order go to different folds: those of one class and domain.
        order = rows[np.lexsort([luck, codes[rows], labels[rows]])]
        for fold in range(n_splits):
            test = order[fold::n_splits]
            gone = np.flatnonzero(
                np.bincount(codes[test], minlength=len(sizes)) == sizes
            )
            kept = [np.flatnonzero(codes[test] == domain)[0] for domain in gone]
            test = np.sort(np.delete(test, kept))
            yield np.delete(np.arange(n_samples), test), test


class ActivePipeline(Pipeline):
    """A pipeline that ends with a learner: with its `fit`, `query` and predictions.

    ``fit(X, domains, y_mask)`` works as it does on the learner, whether metadata
    routing is on or off; the other steps transform X before. ``pipe[-1]`` is the
    learner, with `history_`, `bound_` and the rest.

    Parameters
    ----------
    steps : list of tuple
        Names and estimators, the last one a
        :class:`mdal.CompositeActiveLearner`.
    transform_input, memory, verbose
        As in :class:`sklearn.pipeline.Pipeline`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mdal import CompositeActiveLearner
    >>> from mdal.model_selection import ActivePipeline
    >>> pipe = ActivePipeline([
    ...     ("scale", StandardScaler()),
    ...     ("learn", CompositeActiveLearner(budget_per_round=4, random_state=0)),
    ... ])
    >>> X, domains = np.eye(6), list("aaabbb")
    >>> len(pipe.fit(X, domains, [-1] * 6).query())
    4
    >>> pipe.allocate_budget()
    {'a': 2, 'b': 2}
    """

    def fit(self, X, y=None, y_mask=NOT_GIVEN, **params):
        """Fit all steps; see the learner's `fit`.

        Parameters
        ----------
        X : array-like
            Samples, for the first step.
        y : array-like of shape (n_samples,), default=None
            Labels; or the domains, if `y_mask` is given.
        y_mask : array-like of shape (n_samples,)
            Labels, with -1, NaN or None for samples that have none.
        **params
            ``domains`` and ``exclude``, and what scikit-learn's pipeline takes.

        Returns
        -------
        self
            A fit that fails changes no step.
        """
        if y_mask is not NOT_GIVEN:
            domains = only_domains(y, params.pop("domains", None))
            params, y = {**params, "domains": domains, "y_mask": y_mask}, None
        last = self.steps[-1][1] if self.steps else None
        if not hasattr(last, "query") or isinstance(last, type):
            raise TypeError(
                f"the last step is {last!r}, which has no query; pass a "
                "CompositeActiveLearner"
            )
        steps = {
            id(part): part
            for part in [self, *self.get_params(deep=True).values()]
            if hasattr(part, "fit") and not isinstance(part, type)
        }
        with unchanged_on_failure(*steps.values()):
            return super().fit(X, y, **self._addressed(params))

    def fit_transform(self, X, y=None, y_mask=NOT_GIVEN, **params):
        """Fit all steps, and return the learner's embedding of the samples.

        Parameters
        ----------
        X, y, y_mask, **params
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, width)
        """
        return self.fit(X, y, y_mask, **params).transform(X)

    def score(self, X, *labels, **params):
        """Return the learner's score of transformed samples.

        Parameters
        ----------
        X : array-like
            Samples, for the first step.
        *labels, **params
            What the learner's `score` takes: ``y``, or ``domains, y_mask``.

        Returns
        -------
        float
        """
        return self[-1].score(self._prepared(X), *labels, **params)

    def predict(self, X, domains=None):
        """Return the learner's predictions of transformed samples.

        Parameters
        ----------
        X : array-like
            Samples, for the first step.
        domains : array-like of shape (n_samples,), default=None
            Their domains, for methods whose predictions depend on them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self[-1].predict(self._prepared(X), domains)

    def predict_proba(self, X, domains=None):
        """Return the learner's class probabilities of transformed samples.

        Parameters
        ----------
        X, domains
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self[-1].predict_proba(self._prepared(X), domains)

    def query(self, n=None, **options):
        """Return the rows to label next; see the learner's `query`.

        Parameters
        ----------
        n : int, default=None
            Labels in all.
        **options
            What the learner's `query` takes.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self[-1].query(n, **options)

    def allocate_budget(self, n=None):
        """Return the labels of the next round by domain.

        Parameters
        ----------
        n : int, default=None
            Labels in all.

        Returns
        -------
        Allocation
        """
        return self[-1].allocate_budget(n)

    def _prepared(self, X):
        """Return samples as the learner sees them."""
        return self[:-1].transform(X) if len(self) > 1 else X

    def _addressed(self, params: dict) -> dict:
        """Return parameters under the names that scikit-learn wants at the moment."""
        if get_config()["enable_metadata_routing"]:
            return params
        last = self.steps[-1][0]
        return {
            name if "__" in name else f"{last}__{name}": value
            for name, value in params.items()
        }
