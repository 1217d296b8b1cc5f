"""What a learner was fitted to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    """

    X: object
    shape: tuple
    names: NDArray
    domains: NDArray
    classes: NDArray
    labels: NDArray
    excluded: NDArray

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
