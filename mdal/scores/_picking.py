"""Ways to pick rows: the best, diverse ones at random, or those that cover the rest."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import pairwise_distances_argmin_min

from .._validation import check_count, check_matrix, check_seed
from ._gradients import check_factors, squared_norms
from ._uncertainty import by_blocks

_ROWS = 4096  # compared with new centres at a time
_CENTRES = 32  # new centres that wait at most until all rows are compared with them
_PROPOSALS = 16  # drawn at a time


def check_pickable(n, n_rows: int) -> int:
    """Return how many rows to pick, at most all of them."""
    n = check_count(n, "n")
    if n > n_rows:
        raise ValueError(f"n={n} exceeds the {n_rows} rows; ask for at most {n_rows}")
    return n


def top_n(scores: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return the rows of the n largest scores, the largest first, ties by row.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Numbers; infinity is allowed.
    n : int
        How many rows, at most all.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from mdal.scores import top_n
    >>> top_n([1.0, 3.0, 2.0, 3.0], 3)
    array([1, 3, 2])
    """
    scores = np.asarray(scores)
    if scores.ndim != 1 or scores.dtype.kind not in "iuf":
        raise ValueError(
            f"scores is an array of shape {scores.shape} and type {scores.dtype}; "
            "pass one number for each sample"
        )
    if np.isnan(scores).any():
        raise ValueError("scores contains NaN; replace it by a number")
    n = check_pickable(n, len(scores))
    if n == 0:
        return np.empty(0, dtype=np.intp)
    last = np.partition(scores, len(scores) - n)[len(scores) - n]
    above = np.flatnonzero(scores > last)
    tied = np.flatnonzero(scores == last)[: n - len(above)]
    rows = np.concatenate([above, tied])
    # A stable sort of the reversed rows, reversed, puts the lower row first in a tie.
    rows = np.sort(rows)[::-1]
    return rows[np.argsort(scores[rows], kind="stable")][::-1]


def rescaled(*arrays: NDArray) -> tuple[int, *tuple[NDArray, ...]]:
    """Return an exponent e, mostly 0, and the arrays divided by 2^e.

    No square of the result overflows, nor does that of its largest number vanish.
    Powers of 2 divide without rounding.

    Parameters
    ----------
    *arrays : ndarray
        Arrays that are compared with each other.

    Returns
    -------
    int
        The exponent: 0 if the largest number is between 0.001 and 1000.
    *arrays : ndarray
        As they were given, if the exponent is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.scores import rescaled
    >>> exponent, z = rescaled(np.array([[3.0 * 2.0**600]]))
    >>> exponent, z
    (602, array([[0.75]]))
    """
    largest = max(np.abs([a.max(initial=0), a.min(initial=0)]).max() for a in arrays)
    if largest == 0 or 1e-3 < largest < 1e3:
        return 0, *arrays
    exponent = int(np.frexp(largest)[1])
    return exponent, *(np.ldexp(array, -exponent) for array in arrays)


def _rounding(dtype, width: int) -> float:
    """Return what rounding leaves of a row's distance to its copy.

    It is relative to their squared norm: some dot products and a difference.
    """
    return (16 + 2 * width**0.5) * np.finfo(dtype).eps


class _Seeding:
    """The state of k-means++: squared distances to the nearest centre, and a draw.

    New centres wait until `catch_up` compares all rows with all of them at once. Until
    then the squared distances are upper bounds.
    """

    def __init__(self, factors: list[NDArray]):
        self.factors = [rescaled(factor)[1] for factor in factors]
        self.norms = np.prod([squared_norms(f) for f in self.factors], axis=0)
        self.squared = np.full(len(self.norms), np.inf, self.norms.dtype)
        self.cumulative = None
        self.chosen = np.zeros(len(self.norms), dtype=bool)
        self.waiting: list[int] = []
        width = sum(factor.shape[1] for factor in factors)
        self.rounding = _rounding(self.norms.dtype, width)

    def draw(self, rng) -> int | None:
        """Return the next centre, or None if every row is at distance 0 from one."""
        if self.cumulative is None and not self.waiting:
            row = int(self.norms.argmax()) if self.norms.any() else None
        else:
            if self.cumulative is None or len(self.waiting) >= _CENTRES:
                self.catch_up()
            row = self._kept_proposal(rng)
            if row is None and self.waiting:
                self.catch_up()
                row = self._kept_proposal(rng)
        if row is not None:
            self.chosen[row] = True
            self.waiting.append(row)
        return row

    def catch_up(self) -> None:
        """Compare all rows with the centres that wait."""
        centres = [factor[self.waiting] for factor in self.factors]
        centres[0] = -2 * centres[0]
        offsets = self.norms[self.waiting][:, None]
        for start in range(0, len(self.norms), _ROWS):
            rows = slice(start, start + _ROWS)
            # |g_c|^2 - 2 <g_c, g_a>; what is missing, |g_a|^2, moves no minimum.
            products = centres[0] @ self.factors[0][rows].T
            for centre, factor in zip(centres[1:], self.factors[1:], strict=True):
                products *= centre @ factor[rows].T
            products += offsets
            nearest = products.min(axis=0) + self.norms[rows]
            nearest[nearest < self.rounding * self.norms[rows]] = 0
            np.minimum(self.squared[rows], nearest, out=self.squared[rows])
        self.squared[self.chosen] = 0
        self.cumulative = np.cumsum(self.squared, dtype=np.float64)
        self.waiting = []

    def _kept_proposal(self, rng) -> int | None:
        """Draw rows by the bounds, and keep one by its true distance, if it can be."""
        points = rng.random_sample(_PROPOSALS) * self.cumulative[-1]
        rows = np.searchsorted(self.cumulative, points, side="right")
        rows = np.minimum(rows, len(self.cumulative) - 1)
        kept = rng.random_sample(_PROPOSALS) * self.squared[rows] < self._exactly(rows)
        return int(rows[kept.argmax()]) if kept.any() else None

    def _exactly(self, rows: NDArray) -> NDArray:
        """Return the squared distances of a few rows to all centres, in float64."""
        squared = self.squared[rows].astype(np.float64)
        if not self.waiting:
            return squared
        inner, norms, centre_norms = 1.0, 1.0, 1.0
        for factor in self.factors:
            a = factor[rows].astype(np.float64)
            b = factor[self.waiting].astype(np.float64)
            inner = inner * (a @ b.T)
            norms = norms * squared_norms(a)
            centre_norms = centre_norms * squared_norms(b)
        nearest = (centre_norms - 2 * inner).min(axis=1) + norms
        nearest[nearest < self.rounding * norms] = 0
        nearest[self.chosen[rows]] = 0
        return np.minimum(squared, nearest)


def kmeans_plus_plus(
    factors, n: int, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.intp]:
    r"""Pick rows by the seeding of k-means++, on outer products kept as factors.

    The first row is the one with the largest norm (the first of them, in a tie).
    Every next one is drawn with probability proportional to its squared distance to
    the nearest row picked so far,

    .. math::

        \|g_a - g_b\|^2 = \|g_a\|^2 + \|g_b\|^2 - 2 \langle g_a, g_b \rangle,
        \qquad \langle g_a, g_b \rangle = \prod_f \langle f_a, f_b \rangle,

    where f runs over the factors. When all distances are 0, the rest is drawn
    uniformly.

    Parameters
    ----------
    factors : array-like of shape (n_samples, ...), or tuple of these
        Each row stands for the outer product of its rows; see
        :func:`gradient_factors`. A single array stands for itself.
    n : int
        How many rows, at most all.
    random_state : int, RandomState or None, default=None
        Seed or generator.

    Returns
    -------
    ndarray of shape (n,)
        Distinct rows in the order in which they were picked.

    Notes
    -----
    The drawing is exact though distances are brought up to date only once for many
    picks: an old distance d is an upper bound of the present one d', so a row drawn
    by d and kept with probability d' / d is drawn by d'. Comparing all rows with many
    new centres at once makes matrix products of what would be a pass through all
    data for each pick. Memory beside the input is some numbers per row; time is
    :math:`O(n_{samples} \, n \, \sum_f D_f)`.

    Distances that cannot be told from 0 in the precision of the input count as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.scores import kmeans_plus_plus
    >>> rows = kmeans_plus_plus(np.array([[0.0], [0.0], [5.0], [9.0]]), 3, 0)
    >>> rows[0].item(), sorted(rows.tolist())[1:]
    (3, [2, 3])
    """
    factors = check_factors(factors)
    n = check_pickable(n, len(factors[0]))
    rng = check_seed(random_state)
    seeding = _Seeding(factors)
    picked = np.empty(n, dtype=np.intp)
    for pick in range(n):
        row = seeding.draw(rng)
        if row is None:
            rest = np.flatnonzero(~seeding.chosen)
            picked[pick:] = rng.permutation(rest)[: n - pick]
            break
        picked[pick] = row
    return picked


def distance_to_labelled(
    embedding: ArrayLike, labelled: ArrayLike | None = None
) -> NDArray:
    r"""Return the distance of each row to the nearest labelled one.

    .. math:: \min_{b \in L} \|z_a - z_b\|

    Parameters
    ----------
    embedding : array-like of shape (n_samples, width)
        The rows :math:`z_a`.
    labelled : array-like of shape (n_labelled, width), default=None
        The rows of :math:`L`. Without any, distances are to the origin.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import distance_to_labelled
    >>> distance_to_labelled([[0.0], [4.0]], labelled=[[1.0], [2.0]])
    array([1., 2.])
    """
    embedding, labelled = _check_embeddings(embedding, labelled)
    exponent, embedding, labelled = rescaled(embedding, labelled)
    return np.ldexp(_nearest(embedding, labelled), exponent)


def _check_embeddings(embedding, labelled) -> tuple[NDArray, NDArray]:
    embedding = check_matrix(embedding, "embedding")
    width = embedding.shape[1]
    if labelled is None:
        return embedding, np.empty((0, width), embedding.dtype)
    labelled = check_matrix(labelled, "labelled")
    if labelled.shape[1] != width:
        raise ValueError(
            f"labelled has {labelled.shape[1]} columns, but embedding has {width}; "
            "pass embeddings of the same network"
        )
    return embedding, labelled


def _nearest(embedding: NDArray, labelled: NDArray) -> NDArray:
    if len(labelled) == 0 or len(embedding) == 0:
        return np.linalg.norm(embedding, axis=1)
    labelled = labelled.astype(embedding.dtype, copy=False)
    _, distances = pairwise_distances_argmin_min(embedding, labelled)
    return distances.astype(embedding.dtype, copy=False)


def k_centre(
    embedding: ArrayLike, n: int, labelled: ArrayLike | None = None
) -> NDArray[np.intp]:
    r"""Pick rows that cover the others: always the one farthest from all so far.

    .. math:: \arg\max_a \min_{b \in L} \|z_a - z_b\|,

    where L has the labelled rows and those picked so far.

    Parameters
    ----------
    embedding : array-like of shape (n_samples, width)
        The rows :math:`z` to pick from.
    n : int
        How many rows, at most all.
    labelled : array-like of shape (n_labelled, width), default=None
        Rows that count as picked already. Without any, the first pick is the row
        farthest from the origin.

    Returns
    -------
    ndarray of shape (n,)
        Distinct rows in the order in which they were picked, ties by row.

    Examples
    --------
    >>> from mdal.scores import k_centre
    >>> k_centre([[0.0], [1.0], [5.0], [9.0]], 2, labelled=[[0.0]])
    array([3, 2])
    """
    embedding, labelled = _check_embeddings(embedding, labelled)
    n = check_pickable(n, len(embedding))
    _, embedding, labelled = rescaled(embedding, labelled)
    squared = _nearest(embedding, labelled) ** 2
    # Distances from the mean are smaller numbers, of which rounding leaves more.
    mean = embedding.mean(axis=0, dtype=np.float64).astype(embedding.dtype)
    norms = by_blocks(lambda rows: squared_norms(rows - mean), embedding)
    rounding = _rounding(embedding.dtype, embedding.shape[1])
    picked = np.empty(n, dtype=np.intp)
    for pick in range(n):
        row = picked[pick] = squared.argmax()
        centre = embedding[row] - mean
        new = norms + norms[row] - 2 * (embedding @ centre - mean @ centre)
        left_over = norms + norms[row] + np.linalg.norm(mean) * norms[row] ** 0.5
        new[new < rounding * left_over] = 0
        # Without labelled rows, the origin has served to find the first centre only.
        known = pick > 0 or len(labelled) > 0
        squared = np.minimum(squared, new) if known else new
        squared[row] = -1  # below every distance, for ever
    return picked
