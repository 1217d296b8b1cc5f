"""The samples that a learner takes: arrays of all kinds, and larger sources."""

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data
from torch.utils.data import Dataset, Subset

from ..streams import Densified

_KINDS = {"accept_sparse": "csr", "allow_nd": True, "dtype": "numeric"}


def check_samples(estimator, X, *, fitted: bool):
    """Return samples with a length, of which `take` takes rows.

    Those for a fitted estimator must have its features; nothing is recorded.
    """
    if isinstance(X, Dataset) or (isinstance(X, np.memmap) and X.ndim >= 2):
        return X
    if fitted:
        X = validate_data(estimator, X, reset=False, **_KINDS)
    else:
        X = check_array(X, estimator=estimator, input_name="X", **_KINDS)
    return Densified(X) if issparse(X) else X


def feature_record(X) -> dict:
    """Return the number and the names of features by attribute, where there are any."""
    recorded = BaseEstimator()
    if not isinstance(X, Dataset):
        validate_data(recorded, X, skip_check_array=True)
    return vars(recorded)


def take(X, rows):
    """Return some samples, of the same kind."""
    return Subset(X, rows) if isinstance(X, Dataset) else X[rows]
