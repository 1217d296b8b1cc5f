"""What a model says about a pool of samples, as one small object."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import (
    check_codes,
    check_domains,
    check_matrix,
    check_probabilities,
    check_scores,
)

_PER_ROW = ("logits", "embedding", "outlier", "domains", "available")


@dataclass(frozen=True, eq=False)
class PoolView:
    """What a model says about the samples that could be labelled next.

    Only logits are required. Arrays of float32 or float64 are kept and not copied.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        The classifier's logits.
    embedding : array-like of shape (n_samples, width), default=None
        What the classifier's last layer sees. Where it is missing, strategies that
        need positions use the logits.
    outlier : array-like of shape (n_samples,), default=None
        The outlier score f(z, i): the probability that a sample comes from its
        original domain i and not from the surrogate. Missing, it counts as 1.
    domains : array-like of shape (n_samples,), default=None
        The domain of each sample.
    labelled_embedding : array-like of shape (n_labelled, width), default=None
        The embeddings of samples that have a label already.
    labels : array-like of shape (n_labelled,), default=None
        Their classes, as columns of the logits.
    available : array-like of bool of shape (n_samples,), default=None
        Which samples may be picked; None is all.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.strategies import Margin, PoolView
    >>> view = PoolView(
    ...     logits=[[3.0, 0.0], [0.1, 0.0], [0.2, 0.0]],
    ...     available=[True, False, True],
    ... )
    >>> Margin().select(view, 1)
    array([2])
    """

    logits: NDArray
    embedding: NDArray | None = None
    outlier: NDArray | None = None
    domains: NDArray | None = None
    labelled_embedding: NDArray | None = None
    labels: NDArray | None = None
    available: NDArray | None = None

    def __post_init__(self):
        logits = check_matrix(self.logits, "logits")
        n_samples, n_classes = logits.shape
        if n_classes == 0:
            raise ValueError("logits has no column; pass one for each class")
        checked = {"logits": logits}
        if self.embedding is not None:
            checked["embedding"] = check_matrix(self.embedding, "embedding", n_samples)
        if self.outlier is not None:
            outlier = check_scores(self.outlier, "outlier", (n_samples,))
            checked["outlier"] = outlier
        if self.domains is not None:
            names, codes = check_domains(self.domains, n_samples)
            checked["domains"] = names[codes]
        if self.labelled_embedding is not None:
            checked["labelled_embedding"] = self._check_labelled(checked)
        if self.labels is not None:
            checked["labels"] = self._check_labels(checked, n_classes)
        if self.available is not None:
            checked["available"] = _check_mask(self.available, n_samples)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _check_labelled(self, checked) -> NDArray:
        labelled = check_matrix(self.labelled_embedding, "labelled_embedding")
        width = checked.get("embedding", checked["logits"]).shape[1]
        if labelled.shape[1] != width:
            raise ValueError(
                f"labelled_embedding has {labelled.shape[1]} columns where the pool's "
                f"has {width}; pass embeddings of the same network"
            )
        return labelled

    def _check_labels(self, checked, n_classes: int) -> NDArray:
        if self.labelled_embedding is None:
            raise ValueError(
                "labels came without labelled_embedding; pass the embeddings of the "
                "labelled samples, too"
            )
        n_labelled = len(checked["labelled_embedding"])
        return check_codes(self.labels, "labels", n_labelled, n_classes)

    @classmethod
    def from_probabilities(cls, probabilities: ArrayLike, **others) -> "PoolView":
        """Return a view of class probabilities: their logarithms are the logits.

        Free energies, which measure how large logits are, are then all 0.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, n_classes)
            Every row sums to 1.
        **others
            The other parameters of a view.

        Returns
        -------
        PoolView
        """
        probabilities = check_probabilities(probabilities)
        tiny = np.finfo(probabilities.dtype).tiny
        return cls(np.log(np.maximum(probabilities, tiny)), **others)

    def __len__(self):
        return len(self.logits)

    @property
    def positions(self) -> NDArray:
        """The embedding, or the logits where there is none."""
        return self.logits if self.embedding is None else self.embedding

    def candidates(self) -> NDArray[np.intp]:
        """Return the rows that may be picked.

        Returns
        -------
        ndarray of shape (n_available,)
        """
        if self.available is None:
            return np.arange(len(self))
        return np.flatnonzero(self.available)

    def take(self, rows: NDArray) -> "PoolView":
        """Return a view of some rows.

        Parameters
        ----------
        rows : ndarray of int, or slice
            The rows, in the order in which they are wanted.

        Returns
        -------
        PoolView
        """
        there = {name: getattr(self, name) for name in _PER_ROW}
        return replace(
            self, **{k: None if v is None else v[rows] for k, v in there.items()}
        )


def check_alike(first: PoolView, other: PoolView) -> None:
    """Refuse a block of a pool that does not go with the first one."""
    for name in ("logits", "embedding", "outlier", "domains"):
        ours, theirs = getattr(first, name), getattr(other, name)
        if (ours is None) != (theirs is None):
            raise ValueError(
                f"{name} is missing in some blocks; pass it in all or in none"
            )
        if ours is None:
            continue
        if ours.shape[1:] != theirs.shape[1:]:
            raise ValueError(
                f"{name} has {theirs.shape[1]} columns in one block and "
                f"{ours.shape[1]} in the first; pass blocks of one model"
            )
        text = {part.dtype.kind in "US" for part in (ours, theirs) if len(part)}
        if len(text) > 1:
            raise TypeError(
                f"{name} is text in one block and not in another; pass names of one "
                "type"
            )


def joined(views: list[PoolView]) -> PoolView:
    """Return one view of all rows; the labelled samples are those of the first."""
    parts = [view for view in views if len(view)] or views[:1]

    def column(name):
        columns = [getattr(view, name) for view in parts]
        return None if columns[0] is None else np.concatenate(columns)

    return replace(views[0], **{name: column(name) for name in _PER_ROW})


def _check_mask(values: ArrayLike, n_samples: int) -> NDArray:
    mask = np.asarray(values)
    if mask.dtype != bool and mask.size:
        raise TypeError(
            f"available holds {mask.dtype} values; pass True for each sample that may "
            "be picked"
        )
    if mask.shape != (n_samples,):
        raise ValueError(
            f"available has shape {mask.shape} for {n_samples} samples; pass one value "
            "per sample"
        )
    return mask.astype(bool, copy=False)
