"""Alpha from features, by matching kernel means."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from .._validation import (
    PartlyLabelled,
    check_counts,
    check_finite,
    check_number,
    check_seed,
)
from ._transformer import Similarity

# Kernel values that are held in memory at a time.
_BLOCK = 4_000_000


def mixture_weights(gram: ArrayLike, target: ArrayLike) -> NDArray:
    r"""Return the mixture of some vectors that is nearest to a target.

    .. math:: \min_{a \ge 0, \sum_j a_j = 1}
              \Big\| \mu - \sum_j a_j \mu_j \Big\|^2

    Parameters
    ----------
    gram : array-like of shape (n, n)
        Inner products :math:`\langle \mu_j, \mu_k \rangle`.
    target : array-like of shape (n,)
        Inner products :math:`\langle \mu, \mu_j \rangle`.

    Returns
    -------
    ndarray of shape (n,)
        The weights a.

    Notes
    -----
    On the simplex :math:`\mu - \sum_j a_j \mu_j = -\sum_j a_j (\mu_j - \mu)`, so this
    is the shortest vector in the convex hull of the differences. For a direction of
    a and its best length, the non-negative least squares problem :math:`\min_{a \ge
    0} \|\sum_j a_j (\mu_j - \mu)\|^2 + (\sum_j a_j - 1)^2` has a value that grows
    with that vector's length: its solution, scaled to sum 1, is the exact answer.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import mixture_weights
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> mixture_weights(points @ points.T, points @ [0.3, 0.2]).round(6)
    array([0.5, 0.3, 0.2])
    """
    target = check_finite(target, "target", (None,))
    n = len(target)
    gram = check_finite(gram, "gram", (n, n))
    if n == 0:
        raise ValueError(
            "there is no vector to mix; pass inner products of at least one"
        )
    precision = np.finfo(np.result_type(gram, np.float32)).eps
    gram, target = gram.astype(np.float64), target.astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    slack = np.sqrt(precision) * np.abs(gram).max()
    if np.abs(gram - gram.T).max() > slack or values[0] < -slack:
        raise ValueError(
            "gram is not symmetric and positive semi-definite; pass inner products of "
            "vectors"
        )
    spanned = values > values[-1] * n * precision
    lengths = np.sqrt(values[spanned])
    # Coordinates in the span; what sticks out of it is the same for all weights.
    points = vectors[:, spanned] * lengths
    differences = points - (target @ vectors[:, spanned]) / lengths
    scale = np.linalg.norm(differences, axis=1).max(initial=0.0) or 1.0
    weights, _ = nnls(
        np.vstack([differences.T / scale, np.ones(n)]),
        np.r_[np.zeros(spanned.sum()), 1.0],
    )
    return weights / weights.sum()


def even_gram(gram: ArrayLike, counts: ArrayLike, alone: ArrayLike) -> NDArray:
    r"""Return the gram matrix of kernel means as if of equally many samples each.

    The mean of a few samples is longer than that of their distribution. With
    :math:`u_j`, the mean of the kernel over pairs of different samples, and a kernel
    that is 1 for a sample and itself,

    .. math:: \|\mu_j\|^2 = u_j + \frac{1 - u_j}{n_j}.

    In the nearest mixture of domains that are alike, weights are therefore in
    proportion to numbers of samples; and a budget that follows such weights gives most
    labels to those that have most, in round after round. Here the geometric mean of
    all numbers stands for every :math:`n_j`: a smaller number (the harmonic mean) would
    blur all weights because of one domain with few samples, and a larger one makes
    chance decide between domains that are alike. Where numbers differ very much, it
    does a little too much: of two domains that are alike, with 8 and 120 samples, the
    first has 0.63 of the weight on average, instead of 0.07 without this.

    Parameters
    ----------
    gram : array-like of shape (n, n)
        Inner products of the means.
    counts : array-like of shape (n,)
        Samples of each mean, at least one.
    alone : array-like of shape (n,)
        Stands for :math:`u_j` where there is one sample: its mean kernel value with
        others that are like it.

    Returns
    -------
    ndarray of shape (n, n)
        With other values in the diagonal. Where that makes an eigenvalue negative,
        it is set to 0, which changes other values, too.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import even_gram, mixture_weights
    >>> gram = np.array([[0.5 + 0.5 / 10, 0.5], [0.5, 0.5 + 0.5 / 40]])
    >>> mixture_weights(gram, [0.5, 0.5]).round(3)  # alike, with 10 and 40 samples
    array([0.2, 0.8])
    >>> even = even_gram(gram, [10, 40], alone=[0.5, 0.5])
    >>> mixture_weights(even, [0.5, 0.5]).round(3)
    array([0.5, 0.5])
    """
    counts = check_counts(counts, "counts", None)
    n = len(counts)
    gram = check_finite(gram, "gram", (n, n)).astype(np.float64)
    alone = check_finite(alone, "alone", (n,))
    if n == 0 or (counts == 0).any():
        raise ValueError(
            "counts is empty or contains 0, and there is no mean of no sample; leave "
            "out domains without one"
        )
    pairs = (counts * np.diag(gram) - 1) / np.maximum(counts - 1, 1)
    pairs = np.where(counts == 1, alone, pairs)
    even = gram.copy()
    np.fill_diagonal(even, pairs + (1 - pairs) / np.exp(np.log(counts).mean()))
    values, vectors = np.linalg.eigh(even)
    if values[0] >= 0:
        return even
    return (vectors * np.maximum(values, 0)) @ vectors.T


class KernelMeanSimilarity(Similarity):
    r"""Alpha by matching kernel means: a small quadratic programme per domain.

    .. math::

        \alpha_i = \arg\min_{a \ge 0, \sum_j a_j = 1}
        \Big\| \mu_{O_i} - \sum_j a_j \mu_{L_j} \Big\|^2

    with the mean embeddings :math:`\mu` of the original and labelled domains in the
    space of a Gaussian kernel on standardised features; see :func:`mixture_weights`.
    It needs no discriminator. The cost is one kernel value for each pair of a sample
    and a labelled sample, in blocks. The :math:`\mu_{L_j}` have the lengths that
    equally many labels would give them (:func:`even_gram`), so that domains which are
    alike do not get weight in proportion to their labels.

    Parameters
    ----------
    gamma : float, default=None
        The kernel is :math:`\exp(-\gamma \|x - x'\|^2)`. None takes one over the
        median squared distance of up to 1,000 samples that are not equal.
    random_state : int, RandomState instance or None, default=None
        Chooses the samples for gamma.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_domains, n_domains)
        ``alpha_[i, j]`` is the weight of labelled domain j in the surrogate of
        original domain i. The column of a domain without a label is 0.
    column_means_ : ndarray of shape (n_domains,)
        :math:`\alpha_j`, the weights of the domains in the labelling budget.
    gamma_ : float
        The kernel's parameter.
    domains_ : ndarray of shape (n_domains,)
        Names of the domains, sorted.
    counts_ : ndarray of shape (n_domains,)
        Labelled samples in each domain.
    sizes_ : ndarray of shape (n_domains,)
        Samples in each domain, labelled ones included.

    See Also
    --------
    AdversarialSimilarity : The paper's game against a discriminator.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import KernelMeanSimilarity
    >>> rng = np.random.default_rng(0)
    >>> centre = np.repeat([[0.0, 0.0], [0.0, 0.0], [4.0, 4.0]], 200, axis=0)
    >>> X = centre + rng.normal(size=(600, 2))
    >>> domains = np.repeat(["clinic", "hospital", "ward"], 200)
    >>> y = np.where(np.arange(600) % 4 == 0, 0, -1)
    >>> similarity = KernelMeanSimilarity(random_state=0).fit(X, y, domains=domains)
    >>> similarity.alpha_[2].round(2)
    array([0., 0., 1.])
    """

    def __init__(self, gamma=None, *, random_state=None):
        self.gamma = gamma
        self.random_state = random_state

    def _estimate(self, data: PartlyLabelled) -> dict:
        X = StandardScaler().set_output(transform="default").fit_transform(data.X)
        rng = check_seed(self.random_state)
        if self.gamma is None:
            gamma = 1 / _median_squared_distance(X, rng)
        else:
            gamma = check_number(self.gamma, "gamma", strict=True)
        present, n_domains = np.flatnonzero(data.counts), len(data.names)
        rows = np.flatnonzero(data.labelled)
        samples, known = (X, data.domains), (X[rows], data.domains[rows])
        gram = _kernel_means(known, known, gamma, n_domains)[np.ix_(present, present)]
        targets = _kernel_means(samples, known, gamma, n_domains)[:, present]
        sizes = np.bincount(data.domains)[present]
        alone = _without_itself(targets[present].diagonal(), sizes)
        gram = even_gram(gram, data.counts[present], alone)
        # Among equally good weights, as for copies of a domain, the most even ones.
        gram += 1e-9 * np.eye(len(gram))
        alpha = np.zeros((n_domains, n_domains))
        for i, target in enumerate(targets):
            alpha[i, present] = mixture_weights(gram, target)
        return {"alpha_": alpha, "gamma_": gamma}


def _kernel_means(left, right, gamma: float, n_domains: int) -> NDArray:
    """Mean kernel value between the samples of every two domains, in blocks."""
    (X, domains), (X_other, other_domains) = left, right
    counts = np.bincount(domains, minlength=n_domains)
    other_counts = np.bincount(other_domains, minlength=n_domains)
    membership = (
        np.eye(n_domains)[other_domains]
        / np.maximum(other_counts, 1)[other_domains, None]
    )
    sums = np.zeros((n_domains, n_domains))
    for block in gen_batches(len(X), max(1, _BLOCK // len(X_other))):
        kernel = rbf_kernel(X[block], X_other, gamma=gamma)
        np.add.at(sums, domains[block], kernel @ membership)
    return sums / np.maximum(counts, 1)[:, None]


def _without_itself(means: NDArray, sizes: NDArray) -> NDArray:
    """Return mean kernel values of a sample with all of a domain but itself."""
    return np.where(sizes > 1, (sizes * means - 1) / np.maximum(sizes - 1, 1), means)


def _median_squared_distance(X: NDArray, rng) -> float:
    """Median squared distance of up to 1,000 samples; 1 if all are equal."""
    sample = X[rng.permutation(len(X))[:1000]]
    distances = euclidean_distances(sample, squared=True)
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0
