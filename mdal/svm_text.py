r"""A linear baseline for several domains: SVM-Text.

Each sample stands beside a copy of itself that only samples of its domain have, so that
a linear classifier learns what all domains share and what is particular to each.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score
from sklearn.svm import LinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._validation import check_domains, check_seed

__all__ = ["SVMText", "augmented"]


def augmented(X, domains: NDArray, n_domains: int) -> csr_array:
    r"""Return each sample beside a copy in the block of its domain.

    .. math:: \phi(x, d) = [x; 0; \dots; 0; \underbrace{x}_{\text{block } d}; 0; \dots]

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples.
    domains : ndarray of shape (n_samples,)
        Position d of each sample's domain; -1 for samples of no known domain, all of
        whose blocks are 0.
    n_domains : int
        Number of domains.

    Returns
    -------
    csr_array of shape (n_samples, n_features * (1 + n_domains))

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.svm_text import augmented
    >>> augmented([[1.0, 2.0], [3.0, 4.0]], np.array([1, -1]), 2).toarray()
    array([[1., 2., 0., 0., 1., 2.],
           [3., 4., 0., 0., 0., 0.]])
    """
    X, domains = csr_array(X), np.asarray(domains)
    blocks = [diags_array((domains == d) * 1.0) @ X for d in range(n_domains)]
    whole = hstack([X, *blocks], format="csr")
    whole.eliminate_zeros()
    return whole


class SVMText(ClassifierMixin, BaseEstimator):
    r"""A linear support vector machine on features of all domains and of each one.

    It sees :math:`\phi(x, d) = [x; 0; \dots; x; \dots; 0]`, see :func:`augmented`. With
    the smallest margins of all domains together (``strategy=Energy(share=0)``, which
    looks at decision values, and ``allocation="joint"``) it is the method that the
    paper calls SVM-Text.

    Parameters
    ----------
    C : float, default=1.0
        Of :class:`sklearn.svm.LinearSVC`: smaller is more regular.
    random_state : int, RandomState or None, default=None
        Seed or generator.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    domains_ : ndarray of shape (n_domains,)

    References
    ----------
    Li et al., "Multi-Domain Active Learning for Text Classification", KDD 2012.
    Daumé, "Frustratingly Easy Domain Adaptation", ACL 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.svm_text import SVMText
    >>> X, y = np.array([[-2.0], [1.0], [-1.0], [2.0]]), np.array([0, 1, 1, 0])
    >>> domains = np.array(["a", "a", "b", "b"])  # in "b" it is the other way round
    >>> SVMText(random_state=0).fit(X, y, domains=domains).predict(X, domains)
    array([0, 1, 1, 0])
    """

    __metadata_request__fit: ClassVar = {"domains": True}
    __metadata_request__predict: ClassVar = {"domains": True}
    __metadata_request__decision_function: ClassVar = {"domains": True}
    __metadata_request__score: ClassVar = {"domains": True}

    def __init__(self, C=1.0, *, random_state=None):
        self.C = C
        self.random_state = random_state

    def fit(self, X, y, *, domains=None):
        """Train on labelled samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, all of them labelled.
        y : array-like of shape (n_samples,)
            Their classes.
        domains : array-like of shape (n_samples,), default=None
            Their domains; None is a single one.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        names, codes = check_domains(domains, X.shape[0])
        machine = LinearSVC(C=self.C, random_state=check_seed(self.random_state))
        if len(np.unique(y)) == 1:  # which a machine refuses, and nobody need learn
            machine = DummyClassifier()
        self.machine_ = machine.fit(augmented(X, codes, len(names)), y)
        self.domains_, self.classes_ = names, machine.classes_
        return self

    def decision_function(self, X, domains=None):
        """Return how far samples are from the boundary of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        domains : array-like of shape (n_samples,), default=None
            Their domains. Without, or in a domain that was not there in `fit`, only
            what all domains share counts.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of shape (n_samples,) for two classes: positive for the second.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        codes = np.full(X.shape[0], -1)
        if domains is not None:
            names, positions = check_domains(domains, X.shape[0])
            known = {name: code for code, name in enumerate(self.domains_.tolist())}
            codes = np.array([known.get(n, -1) for n in names.tolist()])[positions]
        if len(self.classes_) == 1:
            return np.zeros((X.shape[0], 1))
        return self.machine_.decision_function(augmented(X, codes, len(self.domains_)))

    def predict(self, X, domains=None):
        """Return the class of each sample.

        Parameters
        ----------
        X, domains
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self.decision_function(X, domains)
        best = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
        return self.classes_[best]

    def score(self, X, y, sample_weight=None, *, domains=None):
        """Return the accuracy.

        Parameters
        ----------
        X, domains
            As in :meth:`decision_function`.
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of samples.

        Returns
        -------
        float
        """
        found = self.predict(X, domains)
        return accuracy_score(y, found, sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
