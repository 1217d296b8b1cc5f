"""Training and test rows that have the same share of every domain."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._validation import check_codes, check_domains, check_labels, check_number
from ._bunch import generator, restricted


def development_split(dataset, *, test_size=0.2, random_state=0):
    """Divide the training rows of a data set, to choose settings without its test rows.

    Parameters
    ----------
    dataset : Bunch
        As the loaders return it.
    test_size : float, default=0.2
        Share of each domain's training rows (or documents, if there are `groups`) that
        the new ``test`` has, stratified by class.
    random_state : int, RandomState or None, default=0
        Seed of the split.

    Returns
    -------
    Bunch
        Made of the training rows alone: ``train`` and ``test`` divide them, and the old
        test rows are gone.

    Notes
    -----
    Features that were fitted to the training rows (columns scaled, words counted) were
    fitted to both of the new parts.

    Examples
    --------
    >>> from mdal.datasets import development_split, make_shifted_domains
    >>> data = make_shifted_domains(100, 2, test_size=0.5)
    >>> part = development_split(data)
    >>> len(part.X), len(part.train), len(part.test)
    (100, 80, 20)
    """
    test_size, rng = check_share(test_size), generator(random_state)
    if not isinstance(dataset, Bunch) or not {"X", "y", "domains", "train"} <= set(
        dataset
    ):
        raise TypeError(
            f"dataset is of type {type(dataset).__name__}, or has no X, y, domains and "
            "train; pass a Bunch as the loaders of mdal.datasets return it"
        )
    n_samples = dataset.X.shape[0]
    rows = check_codes(dataset.train, "train", len(dataset.train), n_samples)
    if len(rows) == 0:
        raise ValueError("dataset.train is empty; load it with subset='all' or 'train'")
    domains = check_domains(dataset.domains, n_samples)[1][rows]
    labels = check_labels(dataset.y, n_samples)[1][rows]
    groups = dataset.get("groups")
    groups = None if groups is None else groups[rows]
    test = held_out(domains, labels, groups, test_size, rng)
    return restricted(dataset, rows, test)


def check_share(test_size) -> float:
    """Return the share of rows to hold out, strictly between 0 and 1."""
    return check_number(test_size, "test_size", low=0, high=1, strict=True)


def held_out(
    domains: NDArray,
    labels: NDArray,
    groups: NDArray | None,
    share: float,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return a mask of the rows to test on: a share of each domain, whole documents.

    Of a domain's documents (each row is one without `groups`), sorted by their most
    frequent class and then by size, every k-th is taken, which stratifies by both. At
    least one is taken and one left, and a domain's only one is left.
    """
    n_samples = len(domains)
    first = document = np.arange(n_samples)
    if groups is not None:
        _, first, document = np.unique(groups, return_index=True, return_inverse=True)
    n_classes = labels.max() + 2  # with -1, no label
    cells = document * n_classes + labels + 1
    counts = np.bincount(cells, minlength=len(first) * n_classes).reshape(
        len(first), -1
    )
    order = np.lexsort(
        (rng.random(len(first)), counts.sum(axis=1), counts.argmax(axis=1))
    )
    chosen = np.zeros(len(first), dtype=bool)
    for domain in np.unique(domains):
        mine = order[domains[first[order]] == domain]
        n_test = min(max(round(share * len(mine)), 1), len(mine) - 1)
        if n_test > 0:
            steps = np.arange(len(mine) + 1) * n_test + rng.integers(len(mine))
            chosen[mine[np.diff(steps // len(mine)) > 0]] = True
    return chosen[document]
