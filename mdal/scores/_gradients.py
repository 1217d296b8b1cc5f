"""How far a sample would move the last layer of the classifier."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_matrix, check_probabilities
from ._uncertainty import by_blocks, without_predicted


def gradient_factors(
    probabilities: ArrayLike, embedding: ArrayLike | None = None
) -> tuple[NDArray, ...]:
    r"""Return the gradient embedding of each sample as factors of an outer product.

    The gradient of the cross-entropy with respect to the last layer's weights, as if
    the predicted class :math:`\hat y` were right, is

    .. math:: g = q \otimes z, \qquad q = p - \mathrm{onehot}(\hat y).

    It has :math:`C D` numbers and is not built: :math:`\langle g_a, g_b \rangle =
    \langle q_a, q_b \rangle \langle z_a, z_b \rangle`.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Class probabilities :math:`p`.
    embedding : array-like of shape (n_samples, width), default=None
        What the last layer sees, :math:`z`. Without it the gradient is that of the
        last layer's bias, :math:`q` alone.

    Returns
    -------
    tuple of ndarray
        ``(q, z)``, or ``(q,)`` without an embedding.

    Examples
    --------
    >>> from mdal.scores import gradient_factors
    >>> q, z = gradient_factors([[0.75, 0.25]], [[1.0, 2.0, 3.0]])
    >>> q
    array([[-0.25,  0.25]])
    """
    probabilities = check_probabilities(probabilities)
    q = by_blocks(_residual, probabilities)
    if embedding is None:
        return (q,)
    return q, check_matrix(embedding, "embedding", len(probabilities))


def _residual(probabilities: NDArray) -> NDArray:
    """Return p - onehot(y^), without the cancellation in p - 1 where p is almost 1."""
    predicted, q = without_predicted(probabilities)
    q[np.arange(len(q)), predicted] = -q.sum(axis=1)
    return q


def squared_norms(array: NDArray) -> NDArray:
    """Return the squared length of each row."""
    return np.einsum("ij,ij->i", array, array)


def gradient_norm(factors: tuple[NDArray, ...]) -> NDArray:
    r"""Return the length of each sample's gradient embedding.

    .. math:: \|g\| = \|q\| \, \|z\|

    Parameters
    ----------
    factors : tuple of ndarray of shape (n_samples, ...)
        As :func:`gradient_factors` returns them.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import gradient_factors, gradient_norm
    >>> gradient_norm(gradient_factors([[0.75, 0.25]], [[3.0, 4.0]])).round(3)
    array([1.768])
    """
    factors = check_factors(factors)
    return np.prod([by_blocks(_norms, factor) for factor in factors], axis=0)


def _norms(array: NDArray) -> NDArray:
    """Return the length of each row; no square overflows or vanishes."""
    largest = np.abs(array).max(axis=1, initial=0)
    scale = np.where(largest > 0, largest, 1)
    return largest * np.linalg.norm(array / scale[:, None], axis=1)


def check_factors(factors) -> list[NDArray]:
    """Return the factors of outer products: matrices of the same number of rows."""
    factors = factors if isinstance(factors, tuple) else (factors,)
    if not factors:
        raise ValueError("factors is empty; pass at least one array")
    first = check_matrix(factors[0], "factors[0]")
    return [first] + [
        check_matrix(factor, f"factors[{number}]", len(first))
        for number, factor in enumerate(factors[1:], 1)
    ]


def expected_gradient_length(
    probabilities: ArrayLike, embedding: ArrayLike | None = None
) -> NDArray:
    r"""Return the expected length of the gradient under the predicted classes.

    .. math::

        \sum_y p_y \|(p - \mathrm{onehot}(y)) \otimes z\|
        = \|z\| \sum_y p_y \sqrt{\|p\|^2 - 2 p_y + 1}

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Class probabilities :math:`p`.
    embedding : array-like of shape (n_samples, width), default=None
        What the last layer sees, :math:`z`. Without it :math:`\|z\|` counts as 1.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import expected_gradient_length
    >>> expected_gradient_length([[0.5, 0.5], [1.0, 0.0]], [[2.0], [2.0]]).round(3)
    array([1.414, 0.   ])
    """
    p = check_probabilities(probabilities)
    # |p|^2 - 2 p_y + 1 = (1 - p_y)^2 + the other squares. For the predicted class
    # both are sums of small numbers, not differences of numbers near 1.
    _, rest = without_predicted(p)
    others = (p**2).sum(axis=1, keepdims=True) - rest**2
    length = (rest * np.sqrt((1 - rest) ** 2 + others)).sum(axis=1)
    length += p.max(axis=1) * np.hypot(rest.sum(axis=1), np.linalg.norm(rest, axis=1))
    if embedding is None:
        return length
    embedding = check_matrix(embedding, "embedding", len(p))
    return length * by_blocks(_norms, embedding)
