"""Weighted scikit-learn classifiers that are judged on rows they have not seen."""

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter


def row_folds(domains: NDArray, labelled: NDArray, n_folds: int, rng) -> NDArray:
    """Deal the rows out to folds, evenly within labelled and unlabelled rows by domain.

    A labelled row stands both in its original and in its labelled domain; a fold is
    a property of the row, so both copies are held out together. Dealing goes on
    from one domain to the next, so any two labelled rows that are neighbours in the
    deal are in different folds, however few there are of each domain.
    """
    order = np.lexsort((rng.uniform(size=len(domains)), domains, ~labelled))
    folds = np.empty(len(domains), dtype=np.intp)
    folds[order] = np.arange(len(domains)) % n_folds
    return folds


def check_classifier(classifier, name: str) -> None:
    """Raise an error unless it takes sample weights and gives probabilities."""
    if not isinstance(classifier, BaseEstimator) and not hasattr(classifier, "fit"):
        raise TypeError(f"{name}={classifier!r} is not a scikit-learn classifier")
    last = classifier[-1] if isinstance(classifier, Pipeline) else classifier
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"{name}={classifier!r} takes no sample_weight, which carries alpha; use "
            "one that does, LogisticRegression for example"
        )
    if not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"{name}={classifier!r} has no predict_proba; wrap it in "
            "CalibratedClassifierCV or use LogisticRegression"
        )


def resolve_classifier(classifier, rng):
    """Return a seeded clone of the classifier, or of a logistic regression for None."""
    if classifier is None:
        classifier = make_pipeline(
            StandardScaler().set_output(transform="default"),
            LogisticRegression(max_iter=1000),
        )
    check_classifier(classifier, "classifier")
    return seeded_clone(classifier, rng)


def seeded_clone(estimator, random_state):
    """Clone an estimator and seed every random state in it that was left None."""
    estimator = clone(estimator)
    rng = check_random_state(random_state)
    seeds = {
        name: rng.randint(np.iinfo(np.int32).max)
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and name.endswith("random_state")
    }
    return estimator.set_params(**seeds)


def fit_weighted(classifier, X, y, weights: NDArray):
    """Fit with weights scaled to mean 1, so that regularisation keeps its meaning.

    Most classifiers refuse a single class; there the answer is known without them.
    """
    weights = weights / weights.mean()
    if len(np.unique(y)) == 1:
        return DummyClassifier().fit(X, y)
    name = "sample_weight"
    if isinstance(classifier, Pipeline):
        name = f"{classifier.steps[-1][0]}__{name}"
    # With metadata routing, nothing that was not requested would be passed on.
    with config_context(enable_metadata_routing=False):
        return classifier.fit(X, y, **{name: weights})


def surrogate_weights(alpha_row: NDArray, domains: NDArray) -> NDArray:
    """Return alpha_ij / n_j for labelled rows of the given domains, with sum 1.

    Where a domain has no row here its share goes to the others.
    """
    counts = np.bincount(domains, minlength=len(alpha_row))
    weights = alpha_row[domains] / counts[domains]
    return weights / weights.sum()


def weighted_heads(classifier, X, labels, domains, alpha, folds=None):
    """Train one classifier per row of alpha, on labelled rows weighted by it.

    Parameters
    ----------
    classifier : scikit-learn classifier
    X, labels, domains : ndarrays with one entry for each labelled row
    alpha : ndarray of shape (n_heads, n_domains)
    folds : ndarray of shape (n_labelled,), default=None
        None trains on all rows and predicts the same rows.

    Returns
    -------
    models : list of list
        ``models[head][fold]``.
    probabilities : ndarray of shape (n_heads, n_labelled, n_classes)
        Predictions for rows that the model has not seen, unless folds is None.
    """
    folds = np.zeros(len(X), dtype=np.intp) if folds is None else folds
    n_classes = int(labels.max()) + 1
    probabilities = np.zeros((len(alpha), len(X), n_classes))
    models = [[] for _ in alpha]
    for head, row in enumerate(alpha):
        mixed_in = row[domains] > 0
        for fold in range(int(folds.max()) + 1):
            seen = mixed_in & (folds != fold)
            if not seen.any():
                seen = mixed_in  # too few rows to hold any out
            weights = surrogate_weights(row, domains[seen])
            model = fit_weighted(clone(classifier), X[seen], labels[seen], weights)
            models[head].append(model)
            held_out = folds == fold
            if held_out.any():
                probabilities[head, held_out] = class_probabilities(
                    model, X[held_out], n_classes
                )
    return models, probabilities


def class_probabilities(classifier, X, n_classes: int) -> NDArray:
    """Predict for classes 0 .. n_classes - 1, with 0 for those not seen in fit."""
    probabilities = np.zeros((len(X), n_classes))
    probabilities[:, classifier.classes_.astype(np.intp)] = classifier.predict_proba(X)
    return probabilities
