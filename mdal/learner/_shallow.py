"""A scikit-learn classifier in the place of a deep net."""

import numpy as np
from torch.utils.data import Dataset

from .._crossfit import class_probabilities, seeded_clone
from .._validation import check_domains, check_seed
from ..bounds import DomainBound
from ..divergence import DomainDivergence
from ..net import Observation
from ..similarity import KernelMeanSimilarity
from ..streams import Densified, Rows


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
        logits = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
        outlier = None
        if domains is not None:
            _, codes = check_domains(domains, len(X), known=self.domains_)
            scores = np.asarray(self.divergence_.transform(X))
            outlier = scores[np.arange(len(X)), codes]
        return Observation(logits, X, X, outlier)


def _dense(X):
    """Return features as an array of two dimensions."""
    if isinstance(X, Dataset):
        X = Rows(X)[np.arange(len(X))].numpy()
    X = X[:] if isinstance(X, Densified) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}, but a scikit-learn classifier as net takes two "
            "dimensions; pass X.reshape(len(X), -1), or features of another model"
        )
    return X
