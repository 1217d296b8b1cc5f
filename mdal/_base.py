"""What the transformers of partly labelled features of several domains share."""

from typing import ClassVar

from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from ._validation import check_partly_labelled


class DomainTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """A transformer with one output per domain, fitted on partly labelled features.

    A subclass implements ``_learn(data)``, which returns the fitted attributes by name.
    They are set when it has succeeded: a fit that fails changes nothing.
    """

    __metadata_request__fit: ClassVar = {"domains": True}

    def fit(self, X, y, *, domains=None):
        """Fit on features of all samples, some of them labelled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of all samples of all domains.
        y : array-like of shape (n_samples,)
            Labels, with -1, NaN or None for samples that have none.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample; None is a single domain.

        Returns
        -------
        self
        """
        data = check_partly_labelled(self, X, y, domains)
        with threadpool_limits(1):  # threads slow many small fits down
            learned = self._learn(data)
        validate_data(self, X, skip_check_array=True)  # records the features
        for name, value in {**learned, "domains_": data.names}.items():
            setattr(self, name, value)
        self._n_features_out = len(data.names)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
