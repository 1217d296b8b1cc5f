"""The samples that a learner takes: arrays of all kinds, and larger sources."""

import hashlib

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
    if isinstance(X, Dataset) and not hasattr(X, "__len__"):
        raise TypeError(
            f"X is of type {type(X).__name__}, which has no length; pass a Dataset "
            "with __len__ and __getitem__"
        )
    if np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).any():
        raise ValueError(
            "X has masked values; fill them in with X.filled(value), or drop the rows"
        )
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


def fingerprint(X, n: int) -> str | None:
    """Return a hash of a hundred of the first n samples, by which they are known again.

    A Dataset has none: it may give others every time.
    """
    if isinstance(X, Dataset):
        return None
    rows = np.unique(np.linspace(0, n - 1, 100).astype(int))
    values = X[rows] if isinstance(X, Densified) else np.asarray(X[rows])
    with np.errstate(over="ignore"):
        return hashlib.sha256(values.astype(np.float32).tobytes()).hexdigest()


def take(X, rows):
    """Return some samples, of the same kind."""
    return Subset(X, rows) if isinstance(X, Dataset) else X[rows]
