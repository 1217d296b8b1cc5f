"""What a learner was fitted to, and the forms in which people pass it."""

import warnings
from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import (
    NOT_GIVEN,
    check_classes,
    check_domains,
    check_finite,
    check_labels,
    declared,
    minus_one_is_a_class,
    only_domains,
)
from ..streams import Rows
from ._samples import check_samples, fingerprint, take


class MinusOneIsAClassWarning(UserWarning):
    """The labels are -1 and 1, and -1 was taken for a class.

    Examples
    --------
    >>> import warnings
    >>> from mdal.learner import MinusOneIsAClassWarning
    >>> warnings.simplefilter("ignore", MinusOneIsAClassWarning)
    """


@dataclass(frozen=True, eq=False)
class Pool:
    """All samples, their domains and labels, and which of them may never be picked.

    Attributes
    ----------
    X : array, Dataset or None
        The samples; None if they are not at hand.
    shape : tuple of int
        Of one sample.
    names : ndarray of shape (n_domains,)
    domains : ndarray of shape (n_samples,)
        Position of each sample's domain in `names`.
    classes : ndarray of shape (n_classes,)
    labels : ndarray of shape (n_samples,)
        Position of each sample's class in `classes`, -1 where there is no label.
    excluded : ndarray of bool of shape (n_samples,)
    fingerprint : str or None
        By which the samples are known again.
    """

    X: object
    shape: tuple
    names: NDArray
    domains: NDArray
    classes: NDArray
    labels: NDArray
    excluded: NDArray
    fingerprint: str | None = None

    @property
    def labelled(self) -> NDArray:
        """Whether each sample has a label."""
        return self.labels >= 0

    @property
    def free(self) -> NDArray:
        """Whether each sample may be labelled next."""
        return ~self.labelled & ~self.excluded

    def count(self, mask: NDArray) -> NDArray:
        """Return how many samples of a mask each domain has."""
        return np.bincount(self.domains[mask], minlength=len(self.names))


def check_pool(learner, X, y, y_mask, domains, exclude) -> Pool:
    """Return what `fit` was given, in any of its forms."""
    if y_mask is not NOT_GIVEN:
        domains = only_domains(y, domains)
    X = check_samples(learner, X, fitted=False)
    names, codes = check_domains(domains, len(X))
    known = None if learner.classes is None else check_classes(learner.classes)
    if y_mask is not NOT_GIVEN:
        classes, labels = check_labels(y_mask, len(X), "y_mask")
    else:
        classes, labels = _check_y(learner, y, len(X), known)
    if known is not None:
        name = "y" if y_mask is NOT_GIVEN else "y_mask"
        classes, labels = declared(classes, labels, known, name)
    excluded = check_rows(exclude, len(X), "exclude")
    shape = X.shape[1:] if isinstance(X, np.ndarray) else Rows(take(X, [0])).shape
    known = fingerprint(X, len(X))
    return Pool(X, shape, names, codes, classes, labels, excluded, known)


def _check_y(learner, y, n_samples: int, known: NDArray | None):
    """Return classes and labels of y, in which -1 may be a class."""
    if y is None:
        raise ValueError(
            f"This {type(learner).__name__} estimator requires y to be passed, but "
            "the target y is None; pass fit(X, domains, y_mask), with -1 for "
            "samples without a label"
        )
    minus_one = minus_one_is_a_class(y, known)
    if minus_one and known is None:
        warnings.warn(
            "y has the labels -1 and 1, and -1 is taken for a class; pass y_mask= if "
            "it means that there is no label, or classes=[-1, 1] if it is one",
            MinusOneIsAClassWarning,
            stacklevel=4,
        )
    classes, labels = check_labels(y, n_samples, minus_one=minus_one)
    if not (labels >= 0).any():
        raise ValueError(
            "y has no label at all; label at least one sample, or pass "
            "y_mask= for a first round without labels"
        )
    return classes, labels


def check_rows(rows, n_samples: int, name: str) -> NDArray:
    """Return a mask of the rows that are given by number or by a mask."""
    mask = np.zeros(n_samples, dtype=bool)
    if rows is None:
        return mask
    rows = np.asarray(list(rows) if isinstance(rows, Set | Iterator) else rows)
    if rows.dtype == object and all(isinstance(row, bool) for row in rows.flat):
        rows = rows.astype(bool)
    if rows.ndim == 0 or rows.dtype.kind not in "biuf":
        raise TypeError(f"{name}={rows!r:.80}; pass row numbers, or a list of booleans")
    if rows.dtype == bool:
        if rows.shape != (n_samples,):
            raise ValueError(
                f"{name} has shape {rows.shape} for {n_samples} samples; pass one "
                "value per sample, or row numbers"
            )
        return rows.copy()
    rows = check_finite(rows, name, (None,)) if rows.size else rows.astype(np.intp)
    wrong = (rows != np.floor(rows)) | (rows < 0) | (rows >= n_samples)
    if wrong.any():
        raise ValueError(
            f"{name} contains {rows[wrong][0]}; pass row numbers from 0 to "
            f"{n_samples - 1}"
        )
    if len(rows) == n_samples > 2 and rows.max() <= 1:
        raise ValueError(
            f"{name} has a 0 or 1 for each of the {n_samples} samples, which may be a "
            "mask or row numbers; pass booleans for a mask, each row once otherwise"
        )
    mask[rows.astype(np.intp)] = True
    return mask
