"""Strategies that pick samples which are uncertain and unlike each other."""

import math
import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from .._validation import check_count, check_number, check_seed
from ..scores import (
    by_blocks,
    distance_to_labelled,
    entropy,
    gradient_factors,
    gradient_norm,
    k_centre,
    kmeans_plus_plus,
    margin,
    rescaled,
    softmax,
    top_n,
)
from ._base import TransformerStrategy


class BADGE(TransformerStrategy):
    r"""Large and diverse gradients: k-means++ seeding on gradient embeddings.

    .. math:: g = q \otimes z, \qquad q = p - \mathrm{onehot}(\hat y)

    The first sample has the largest gradient; every next one is drawn with probability
    proportional to the squared distance to the nearest one so far. The embeddings are
    never built, see :func:`mdal.scores.kmeans_plus_plus`; only `transform` does, and
    needs n_samples x n_classes x width numbers for it.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        Seed or generator.

    References
    ----------
    Ash et al., "Deep Batch Active Learning by Diverse, Uncertain Gradient Lower
    Bounds", ICLR 2020.

    Examples
    --------
    >>> from mdal.strategies import BADGE
    >>> BADGE(random_state=0).select([[3.0, 0.0], [0.1, 0.0], [1.0, 0.0]], 1)
    array([1])
    """

    def __init__(self, random_state=None):
        self.random_state = random_state

    def factors(self, view) -> tuple[NDArray, ...]:
        """Return gradient embeddings; see :func:`mdal.scores.gradient_factors`."""
        return self._factors(view, temperature=1.0)

    def _factors(self, view, temperature) -> tuple[NDArray, ...]:
        q = by_blocks(
            lambda logits: gradient_factors(softmax(logits, temperature))[0],
            view.logits,
        )
        return (q,) if view.embedding is None else (q, view.embedding)

    def describe(self, view):
        """Return the gradient embeddings; see :meth:`transform`."""
        q, *others = self.factors(view)
        for z in others:
            built = q[:, :, None] * z[:, None, :]
            q = built.reshape(len(q), q.shape[1] * z.shape[1])
        return q

    def screen(self, view, luck):
        """Return the gradients' lengths; see :meth:`Strategy.screen`."""
        return gradient_norm(self.factors(view))[:, None]

    def pick(self, view, n, rng):
        """Return rows by k-means++; see :meth:`Strategy.pick`."""
        return kmeans_plus_plus(self.factors(view), n, rng)


class GraDS(BADGE):
    r"""BADGE on gradients that are multiplied by the outlier score.

    .. math::

        g = f(z, i) \; q \otimes z, \qquad
        q = \mathrm{softmax}(l / T) - \mathrm{onehot}(\hat y)

    The outlier score :math:`f(z, i)` is large for samples of domain i that the labelled
    data do not stand for. Without it, every sample counts the same; with T = 1 that is
    :class:`BADGE`.

    Parameters
    ----------
    temperature : float, default=0.5
        The temperature T; below 1 it makes uncertain samples' gradients relatively
        larger. The paper recommends a value below 1 and gives none; on development
        data 0.25, 0.5 and 1 could not be told apart.
    random_state : int, RandomState or None, default=None
        Seed or generator.

    References
    ----------
    Hao et al., "Composite Active Learning", AAAI 2024, Supplement 1.5. The code
    published with it does something else: it appends the gradient of the
    discriminator and does not use the score.

    Examples
    --------
    >>> from mdal.strategies import GraDS, PoolView
    >>> view = PoolView([[1.0, 0.0], [1.0, 0.0]], outlier=[0.1, 0.9])
    >>> GraDS(random_state=0).select(view, 1)
    array([1])
    """

    def __init__(self, temperature=0.5, random_state=None):
        super().__init__(random_state=random_state)
        self.temperature = temperature

    def factors(self, view):
        """Return the factors; see :func:`mdal.scores.gradient_factors`."""
        temperature = check_number(self.temperature, "temperature", strict=True)
        q, *others = self._factors(view, temperature)
        if view.outlier is not None:
            q *= view.outlier[:, None]
        return q, *others

    def pick(self, view, n, rng):
        """Return rows by k-means++; see :meth:`Strategy.pick`."""
        # Only ratios of the scores matter. Relative to the largest, a constant score
        # is 1, and the rows are those of BADGE to the last bit.
        if view.outlier is not None and view.outlier.any():
            view = replace(view, outlier=view.outlier / view.outlier.max())
        return super().pick(view, n, rng)


class ClusterMargin(TransformerStrategy):
    """Small margins, spread over clusters, the smallest clusters first.

    The samples of smallest margin, `factor` times as many as asked for, are grouped by
    the cluster to which they belong. From each cluster in turn, beginning with those
    that have fewest such samples, one is taken at random, until there are enough.

    Clusters are those of average linkage on the embeddings, cut where their mean size
    reaches `cluster_size`. Of a pool of more than `max_clustered` samples a random part
    is clustered, and every other sample belongs to the cluster of the nearest one of
    these, so memory does not grow with the square of the pool. Without `fit` the
    clusters are made anew in every `select`, from the embeddings which that is given;
    after `fit` they stay, which is right as long as embeddings come from one network.

    Parameters
    ----------
    factor : float, default=5.0
        How many samples of smallest margin to look at for each that is picked.
    cluster_size : int, default=5
        The mean number of clustered samples in a cluster, at least.
    max_clustered : int, default=4000
        The largest number of samples to cluster by linkage.
    random_state : int, RandomState or None, default=None
        Seed or generator.

    Attributes
    ----------
    exemplars_ : ndarray of shape (n_clustered, width)
        Embeddings of the clustered samples. Set by `fit`.
    clusters_ : ndarray of shape (n_clustered,)
        Their clusters. Set by `fit`.

    References
    ----------
    Citovsky et al., "Batch Active Learning at Scale", NeurIPS 2021.

    Examples
    --------
    >>> from mdal.strategies import ClusterMargin, PoolView
    >>> view = PoolView([[0.1, 0.0]] * 4, [[0.0], [0.1], [0.2], [9.0]])
    >>> strategy = ClusterMargin(cluster_size=2, random_state=0)
    >>> strategy.select(view, 1)  # the cluster of one sample comes first
    array([3])
    """

    def __init__(
        self, factor=5.0, cluster_size=5, max_clustered=4000, random_state=None
    ):
        self.factor = factor
        self.cluster_size = cluster_size
        self.max_clustered = max_clustered
        self.random_state = random_state

    def _learn(self, view):
        rng = check_seed(self.random_state)
        exemplars, clusters = self._cluster(view.positions, rng)
        own = {"exemplars_": exemplars, "clusters_": clusters}
        return {**super()._learn(view), **own}

    def describe(self, view):
        """Return negative margins as a column; see :meth:`transform`."""
        margins = by_blocks(lambda logits: -margin(softmax(logits)), view.logits)
        return margins[:, None]

    def screen(self, view, luck):
        """Return negative margins; see :meth:`Strategy.screen`."""
        return self.describe(view)

    def pick(self, view, n, rng):
        """Return rows from each cluster in turn; see :meth:`Strategy.pick`."""
        factor = check_number(self.factor, "factor", low=1)
        if hasattr(self, "clusters_"):
            exemplars, clusters = self.exemplars_, self.clusters_
        else:
            exemplars, clusters = self._cluster(view.positions, rng)
        looked_at = math.ceil(min(factor * n, len(view)))
        rows = np.sort(top_n(self.describe(view)[:, 0], looked_at))
        positions = view.positions[rows].astype(np.float64)
        if positions.shape[1] != exemplars.shape[1]:
            raise ValueError(
                f"the embedding has {positions.shape[1]} columns where fit saw "
                f"{exemplars.shape[1]}; fit again"
            )
        _, positions, exemplars = rescaled(positions, exemplars)
        nearest = pairwise_distances_argmin(positions, exemplars)
        return rows[_in_turn(clusters[nearest], n, rng)]

    def _cluster(self, embedding, rng) -> tuple[NDArray, NDArray]:
        """Return the embeddings that were clustered, and their clusters."""
        cluster_size = check_count(self.cluster_size, "cluster_size", minimum=1)
        largest = check_count(self.max_clustered, "max_clustered", minimum=1)
        if len(embedding) == 0:
            raise ValueError("there is no sample to cluster; pass at least one")
        if len(embedding) > largest:
            embedding = embedding[np.sort(rng.permutation(len(embedding))[:largest])]
        embedding = embedding.astype(np.float64)
        if len(embedding) == 1:
            return embedding, np.zeros(1, dtype=np.intp)
        most = max(1, len(embedding) // cluster_size)
        tree = linkage(pdist(rescaled(embedding)[1]), method="average")
        return embedding, fcluster(tree, most, criterion="maxclust")


def _in_turn(clusters: NDArray, n: int, rng) -> NDArray:
    """Return n rows, one of each cluster in turn, the smallest clusters first.

    Chance decides about the order within a cluster and of clusters of one size.
    """
    shuffled = rng.permutation(len(clusters))
    _, first, codes, sizes = np.unique(
        clusters[shuffled], return_index=True, return_inverse=True, return_counts=True
    )
    # How many of its cluster come before a row is the turn in which it is taken.
    turns = np.empty(len(clusters), dtype=np.intp)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    turns[np.argsort(codes, kind="stable")] = np.arange(len(clusters)) - starts
    return shuffled[np.lexsort([first[codes], sizes[codes], turns])[:n]]


class CLUE(TransformerStrategy):
    r"""Uncertain samples that stand for others: k-means weighted by entropy.

    .. math:: \min_\mu \sum_a w_a \min_k \|z_a - \mu_k\|^2,
              \qquad w = \text{entropy of } \mathrm{softmax}(l / T),

    with as many centroids as samples are asked for. Each centroid takes the sample
    nearest to it that no earlier one has taken.

    Parameters
    ----------
    temperature : float, default=1.0
        The temperature T: 1 for digits, 0.1 for larger nets, say its authors.
    max_rows : int, default=20000
        Of a pool larger than this, and than 20 times what is asked for, only the
        samples of largest weight are clustered.
    random_state : int, RandomState or None, default=None
        Seed or generator.

    References
    ----------
    Prabhu et al., "Active Domain Adaptation via Clustering Uncertainty-weighted
    Embeddings", ICCV 2021.

    Examples
    --------
    >>> from mdal.strategies import CLUE, PoolView
    >>> view = PoolView([[0.0, 0.0]] * 4, [[0.0], [0.1], [0.2], [9.0]])
    >>> sorted(CLUE(random_state=0).select(view, 2).tolist())
    [1, 3]
    """

    def __init__(self, temperature=1.0, max_rows=20_000, random_state=None):
        self.temperature = temperature
        self.max_rows = max_rows
        self.random_state = random_state

    def describe(self, view):
        """Return the weights as a column; see :meth:`transform`."""
        temperature = check_number(self.temperature, "temperature", strict=True)
        weights = by_blocks(
            lambda logits: entropy(softmax(logits, temperature)), view.logits
        )
        return weights[:, None]

    def screen(self, view, luck):
        """Return the weights; see :meth:`Strategy.screen`."""
        return self.describe(view)

    def pick(self, view, n, rng):
        """Return the rows nearest to centroids; see :meth:`Strategy.pick`."""
        largest = max(check_count(self.max_rows, "max_rows", minimum=1), 20 * n)
        weights = self.describe(view)[:, 0]
        rows = np.sort(top_n(weights, min(len(view), largest)))
        weights = _relative(weights[rows])
        _, embedding = rescaled(view.positions[rows])
        # Distances from the mean are smaller numbers, of which rounding leaves more.
        embedding = embedding - embedding.mean(axis=0, dtype=np.float64)
        centroids = _centroids(embedding, n, weights, rng)
        norms = np.einsum("ij,ij->i", embedding, embedding)
        picked = np.empty(n, dtype=np.intp)
        for k, centroid in enumerate(centroids):
            picked[k] = np.argmin(norms - 2 * (embedding @ centroid))
            norms[picked[k]] = np.inf  # taken
        return rows[picked]


def _relative(weights: NDArray) -> NDArray:
    """Return weights relative to the largest, and hardly any that is 0.

    Where all are 0, all are the same.
    """
    weights = weights.astype(np.float64)
    if not weights.any():
        return np.ones_like(weights)
    return np.maximum(weights / weights.max(), 1e-9)


def _centroids(embedding: NDArray, n: int, weights, rng) -> NDArray:
    means = KMeans(n, random_state=rng.randint(np.iinfo(np.int32).max))
    with warnings.catch_warnings():
        # Copies of a sample share a centroid; the next nearest samples are then taken.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return means.fit(embedding, sample_weight=weights).cluster_centers_


class CoreSet(TransformerStrategy):
    """Samples that cover the pool: farthest from all labelled ones first.

    See :func:`mdal.scores.k_centre`; the view's `labelled_embedding` has the labelled
    samples.

    References
    ----------
    Sener and Savarese, "Active Learning for Convolutional Neural Networks: A Core-Set
    Approach", ICLR 2018.

    Examples
    --------
    >>> from mdal.strategies import CoreSet, PoolView
    >>> view = PoolView(
    ...     [[0.0, 0.0]] * 3, [[0.0], [4.0], [9.0]], labelled_embedding=[[0.0]]
    ... )
    >>> CoreSet().select(view, 2)
    array([2, 1])
    """

    def describe(self, view):
        """Return the embedding; see :meth:`transform`."""
        return view.positions.copy()

    def screen(self, view, luck):
        """Return distances to labelled samples; see :meth:`Strategy.screen`."""
        return distance_to_labelled(view.positions, view.labelled_embedding)[:, None]

    def pick(self, view, n, rng):
        """Return rows by k-centre; see :meth:`Strategy.pick`."""
        return k_centre(view.positions, n, view.labelled_embedding)
