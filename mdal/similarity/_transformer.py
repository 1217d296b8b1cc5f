"""What every transformer that estimates alpha does with it."""

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import DomainTransformer
from .._validation import PartlyLabelled, check_domains


class Similarity(DomainTransformer):
    """What the estimators of alpha share: a subclass learns at least ``alpha_``."""

    __metadata_request__transform: ClassVar = {"domains": True}

    def _learn(self, data: PartlyLabelled) -> dict:
        learned = self._estimate(data)
        return {
            **learned,
            "column_means_": learned["alpha_"].mean(axis=0),
            "counts_": data.counts,
            "sizes_": np.bincount(data.domains),
        }

    def transform(self, X, *, domains=None):
        r"""Return the weight of each sample in each surrogate domain, once labelled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; only their number of rows and columns matters.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample, among those seen in `fit`; None is allowed if there
            was one only.

        Returns
        -------
        ndarray of shape (n_samples, n_domains)
            :math:`\alpha_{ij} / n_j` for a sample of domain j, with the :math:`n_j`
            labels that the domain had in `fit`; 0 if it had none. Over the labelled
            samples each column sums to 1.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        _, codes = check_domains(domains, len(X), self.domains_)
        return (self.alpha_ / np.maximum(self.counts_, 1)).T[codes]

    def fit_transform(self, X, y, *, domains=None):
        """Fit, and transform the same samples; see `fit` and `transform`."""
        return self.fit(X, y, domains=domains).transform(X, domains=domains)
