"""How unsure a classifier is about each sample."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .._validation import check_matrix, check_number, check_probabilities

_BLOCK_ELEMENTS = 2**18  # of an array, at a time: they stay in the processor's cache


def by_blocks(function, *arrays: NDArray) -> NDArray:
    """Apply a function of rows to some rows after the other, which saves memory.

    Parameters
    ----------
    function : callable
        Takes as many arrays as there are, and returns an array with as many rows;
        each row of it depends on the same rows of its arguments alone.
    *arrays : ndarray of shape (n_samples, ...)
        What it is applied to.

    Returns
    -------
    ndarray of shape (n_samples, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.scores import by_blocks, margin, softmax
    >>> logits = np.array([[0.0, 0.0], [1000.0, 0.0]])
    >>> by_blocks(lambda block: margin(softmax(block)), logits)
    array([0., 1.])
    """
    n_rows = len(arrays[0])
    step = max(1, _BLOCK_ELEMENTS * n_rows // max(1, max(a.size for a in arrays)))
    first = function(*(array[:step] for array in arrays))
    if step >= n_rows:
        return first
    result = np.empty((n_rows, *first.shape[1:]), first.dtype)
    result[:step] = first
    for start in range(step, n_rows, step):
        block = slice(start, start + step)
        result[block] = function(*(array[block] for array in arrays))
    return result


def softmax(logits: ArrayLike, temperature: float = 1.0) -> NDArray:
    r"""Return class probabilities at a temperature.

    .. math:: p_c = \frac{\exp(l_c / T)}{\sum_k \exp(l_k / T)}

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        The logits :math:`l`.
    temperature : float, default=1.0
        The temperature :math:`T`; below 1 it sharpens.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> from mdal.scores import softmax
    >>> softmax([[0.0, 1.0]], temperature=0.5).round(2)
    array([[0.12, 0.88]])
    """
    logits = _check_logits(logits)
    temperature = check_number(temperature, "temperature", strict=True)
    if len(logits) == 0:
        return logits
    limits = np.finfo(logits.dtype)
    temperature = logits.dtype.type(np.clip(temperature, limits.tiny, limits.max))
    with np.errstate(over="ignore"):
        # The largest logit becomes 0 first, so that others can only become -infinity.
        powers = (logits - logits.max(axis=1, keepdims=True)) / temperature
    np.exp(powers, out=powers)
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def _two_largest(values: NDArray, missing: float) -> tuple[NDArray, NDArray]:
    """Return the largest and the second largest of each row, where there is one."""
    if values.shape[1] == 1:
        return values[:, 0], np.full(len(values), missing, values.dtype)
    second, largest = np.partition(values, -2, axis=1)[:, -2:].T
    return largest, second


def margin(probabilities: ArrayLike) -> NDArray:
    r"""Return the margin between the two most probable classes.

    .. math:: p_{(1)} - p_{(2)}

    Small margins are uncertain. A single class has probability 1 and no rival, so
    its margin is 1.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Class probabilities :math:`p`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import margin
    >>> margin([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    array([0.25, 1.  ])
    """
    largest, second = _two_largest(check_probabilities(probabilities), missing=0.0)
    return largest - second


def entropy(probabilities: ArrayLike) -> NDArray:
    r"""Return the entropy of the classes, in nats.

    .. math:: -\sum_c p_c \ln p_c, \qquad 0 \ln 0 = 0

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Class probabilities :math:`p`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import entropy
    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(3)
    array([0.693, 0.   ])
    """
    return special.entr(check_probabilities(probabilities)).sum(axis=1)


def without_predicted(probabilities: NDArray) -> tuple[NDArray, NDArray]:
    """Return the predicted classes, and a copy in which their probability is 0."""
    predicted = probabilities.argmax(axis=1)
    others = probabilities.copy()
    others[np.arange(len(others)), predicted] = 0
    return predicted, others


def least_confidence(probabilities: ArrayLike) -> NDArray:
    r"""Return what is left for all but the predicted class.

    .. math:: 1 - \max_c p_c = \sum_{c \ne \hat y} p_c

    It is computed as the sum, which is exact where the prediction is nearly certain.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Class probabilities :math:`p`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import least_confidence
    >>> least_confidence([[0.5, 0.25, 0.25], [1.0, 1e-20, 0.0]])
    array([5.e-01, 1.e-20])
    """
    return without_predicted(check_probabilities(probabilities))[1].sum(axis=1)


def _check_logits(logits: ArrayLike) -> NDArray:
    logits = check_matrix(logits, "logits")
    if logits.shape[1] == 0:
        raise ValueError("logits has no column; pass one for each class")
    return logits


def free_energy(logits: ArrayLike) -> NDArray:
    r"""Return the free energy of each sample: high for those unlike the training data.

    .. math:: F = -\ln \sum_c \exp l_c

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        The logits :math:`l`; unlike probabilities, they say how large the sum is.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import free_energy
    >>> free_energy([[0.0, 0.0], [10.0, 0.0]]).round(3)
    array([ -0.693, -10.   ])
    """
    with np.errstate(over="ignore"):
        return -special.logsumexp(_check_logits(logits), axis=1)


def logit_margin(logits: ArrayLike) -> NDArray:
    r"""Return the margin between the two largest logits.

    .. math:: l_{(1)} - l_{(2)}

    With a single class it is infinite.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        The logits :math:`l`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mdal.scores import logit_margin
    >>> logit_margin([[3.0, 1.0, 0.0], [2.0, 2.0, 0.0]])
    array([2., 0.])
    """
    largest, second = _two_largest(_check_logits(logits), missing=-np.inf)
    with np.errstate(over="ignore"):
        return largest - second
