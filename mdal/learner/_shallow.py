"""A scikit-learn classifier in the place of a deep net."""

import numpy as np
from scipy.special import softmax
from torch.utils.data import Dataset

from .._crossfit import class_probabilities, seeded_clone
from .._validation import check_domains, check_seed
from ..bounds import DomainBound
from ..divergence import DomainDivergence
from ..net import Observation
from ..similarity import KernelMeanSimilarity
from ..streams import Densified, Rows
from ._samples import take

_LARGEST = 1e100  # distances between samples have to be numbers


class AlphaWeightedClassifier:
    r"""A classifier on features that stay as they are, its domains weighted by alpha.

    Alpha is estimated on the features. A labelled sample of domain j then weighs
    :math:`\alpha_j / n_j`, with alpha's column mean and the labels of the domain, and
    its outlier score comes from discriminators of each domain from its surrogate. It
    has the methods of a :class:`mdal.net.CompositeNet` that a learner needs.

    Parameters
    ----------
    classifier : scikit-learn classifier
        With `predict_proba`, and a `fit` that takes `sample_weight`.
    similarity : estimator of alpha, default=None
        None is :class:`mdal.similarity.KernelMeanSimilarity`.
    learn_alpha : bool, default=True
        Whether to estimate alpha; otherwise all labelled domains weigh the same.
    random_state : int, RandomState or None, default=None
        Seed or generator, for all that has none of its own.
    """

    def __init__(
        self, classifier, similarity=None, *, learn_alpha=True, random_state=None
    ):
        self.classifier = classifier
        self.similarity = similarity
        self.learn_alpha = learn_alpha
        self.random_state = random_state

    def fit(self, X, y, *, domains):
        """Estimate alpha, and train the classifier with it."""
        X = _dense(X)
        rng = check_seed(self.random_state)
        alpha = None
        if self.learn_alpha:
            similarity = self.similarity
            similarity = KernelMeanSimilarity() if similarity is None else similarity
            alpha = seeded_clone(similarity, rng).fit(X, y, domains=domains).alpha_
        estimated = [
            seeded_clone(estimator, rng).fit(X, y, domains=domains)
            for estimator in (
                DomainBound(self.classifier, alpha=alpha),
                DomainDivergence(alpha=alpha),
            )
        ]
        self.bound_, self.divergence_ = estimated
        self.alpha_, self.domains_ = self.bound_.alpha_, self.bound_.domains_
        self.classes_ = self.bound_.classes_
        return self

    @property
    def tables_(self):
        """Held-out losses by domain."""
        return self.bound_.tables_

    def predict_proba(self, X, domains=None):
        """Return class probabilities; domains make no difference."""
        X = _dense(X)
        check_domains(domains, len(X))
        return class_probabilities(self.bound_.classifier_, X, len(self.classes_))

    def observe(self, X, domains=None):
        """Return log probabilities, features and outlier scores."""
        X = _dense(X)
        probabilities = self.predict_proba(X)
        logits = _logs(probabilities)
        outlier = None
        if domains is not None:
            _, codes = check_domains(domains, len(X), known=self.domains_)
            scores = np.asarray(self.divergence_.transform(X))
            outlier = scores[np.arange(len(X)), codes]
        return Observation(logits, X, X, outlier)


class DomainAwareClassifier:
    """A classifier that is told the domains, and trained on labelled samples alone.

    It has the methods of a :class:`mdal.net.CompositeNet` that a learner needs, and no
    alpha.

    Parameters
    ----------
    classifier : scikit-learn classifier
        Its `fit` takes ``domains=``, its `decision_function` or `predict_proba` takes
        them as the second argument. Samples of several dimensions are flattened.
    random_state : int, RandomState or None, default=None
        Seed or generator, if the classifier has none of its own.
    """

    def __init__(self, classifier, *, random_state=None):
        self.classifier = classifier
        self.random_state = random_state

    def fit(self, X, y, *, domains):
        """Train the classifier on samples whose label is not -1."""
        rows = np.flatnonzero(y >= 0)
        classifier = seeded_clone(self.classifier, check_seed(self.random_state))
        self.classifier_ = classifier.fit(
            _flat(take(X, rows)), y[rows], domains=domains[rows]
        )
        self.classes_ = self.classifier_.classes_
        return self

    def predict_proba(self, X, domains=None):
        """Return class probabilities; of decision values, by their softmax."""
        return softmax(self.observe(X, domains).logits, axis=1)

    def observe(self, X, domains=None):
        """Return decision values or log probabilities, and features."""
        X = _flat(X)
        if hasattr(self.classifier_, "decision_function"):
            logits = self.classifier_.decision_function(X, domains)
            if logits.ndim == 1:  # of the second class of two
                logits = np.column_stack([-logits / 2, logits / 2])
        else:
            logits = _logs(self.classifier_.predict_proba(X, domains))
        return Observation(logits, X, X)


def _logs(probabilities):
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


def _array(X):
    """Return samples of any kind as an array."""
    if isinstance(X, Dataset):
        return Rows(X)[np.arange(len(X))].numpy()
    X = X[:] if isinstance(X, Densified) else np.asarray(X)
    return X.astype(np.float32) if X.dtype == bool else X


def _flat(X):
    """Return samples as an array of two dimensions, whatever their shape."""
    X = _array(X)
    return X.reshape(len(X), -1)


def _dense(X):
    """Return features as an array of two dimensions."""
    X = _array(X)
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}, but a scikit-learn classifier as net takes two "
            "dimensions; pass X.reshape(len(X), -1), or features of another model"
        )
    if not np.isfinite(X).all():
        raise ValueError("X contains NaN or infinity; replace it by a number")
    if float(np.abs(X).max(initial=0)) > _LARGEST:
        raise ValueError(
            f"X contains {X.flat[np.abs(X).argmax()]:g}, whose square is no number; "
            "scale X"
        )
    return X
