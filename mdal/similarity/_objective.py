"""Alpha from tables: the objective, its gradient, one step, and the solution."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from .. import bounds
from .._validation import (
    check_alpha,
    check_count,
    check_finite,
    check_number,
    check_option,
    resolve_alpha,
)
from ..tables import DomainTables, check_tables

COMPLEXITIES = ("mean", "row")


def alpha_objective(
    tables: DomainTables,
    alpha: ArrayLike,
    *,
    lambda_d: float = 1.0,
    complexity: str | None = None,
    vc_dimension: int = 1,
    delta: float = 0.05,
) -> float:
    r"""Return the objective that alpha minimises, for fixed networks.

    .. math::

        T(\alpha) = \sum_j \alpha_j \epsilon_j
        - \frac{\lambda_d}{2N} \sum_i \Big(m_i + \sum_j \alpha_{ij} H_{ij}\Big)
        + \frac{1}{N} \sum_{i,j} \alpha_{ij} E_{ij}

    the paper's :math:`V_h - \lambda_d V_d + V_\lambda`, with the tables' errors
    :math:`\epsilon_j` of the shared and :math:`E_{ij}` of the domains' classifiers,
    misses :math:`m_i` and hits :math:`H_{ij}`.

    Parameters
    ----------
    tables : DomainTables
        Mean losses by domain, of any of the three kinds.
    alpha : array-like of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.
    lambda_d : float, default=1.0
        Weight of the discriminator. With 0/1 losses the mean of
        :math:`\frac{1}{2} d_{H \Delta H}` is :math:`1 - 2 V_d`, so the bound itself
        corresponds to 2; the paper's objective has 1.
    complexity : {None, "mean", "row"}, default=None
        Adds a complexity term of the bound, see :func:`mdal.bounds.complexity`.
        "mean" is that of :math:`U_E`: it sees only alpha's column means, so it does
        not spread the rows. "row" is the looser
        :math:`\frac{1}{N} \sum_i 2 \sqrt{C \sum_j \alpha_{ij}^2 / \beta_j}` at
        :math:`\delta / N`, which does. ``lambda_d=2, complexity="mean"`` is
        :math:`U_E` up to constants.
    vc_dimension : int, default=1
        Of the classifiers, for the complexity.
    delta : float, default=0.05
        Probability that the bound fails, for the complexity.

    Returns
    -------
    float
        The value.

    Examples
    --------
    >>> from mdal.similarity import alpha_objective
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20])
    >>> alpha_objective(tables, [[0.5, 0.5], [0.0, 1.0]])
    -0.3875
    """
    alpha = check_tables(tables, alpha)
    n = tables.n_domains
    value = (alpha * _linear_part(tables, lambda_d)).sum()
    value -= lambda_d / (2 * n) * tables.misses.sum()
    if complexity is not None:
        _, term = _complexity_term(tables, alpha, complexity, vc_dimension, delta)
        value += np.mean(term)
    return float(value)


def alpha_gradient(
    tables: DomainTables,
    alpha: ArrayLike,
    *,
    lambda_d: float = 1.0,
    complexity: str | None = None,
    vc_dimension: int = 1,
    delta: float = 0.05,
) -> NDArray:
    r"""Return the gradient of :func:`alpha_objective` with respect to alpha.

    .. math::

        \frac{\partial T}{\partial \alpha_{ij}} = \frac{1}{N}
        \Big(\epsilon_j + E_{ij} - \frac{\lambda_d}{2} H_{ij}\Big)

    which does not depend on alpha, plus the gradient of the complexity term if there
    is one. Alpha moves towards labelled domains that are classified well and that the
    discriminator takes for original domain i.

    Parameters
    ----------
    tables, alpha, lambda_d, complexity, vc_dimension, delta
        As in :func:`alpha_objective`.

    Returns
    -------
    ndarray of shape (n_domains, n_domains)
        The gradient; 0 in the columns of domains without a label.

    Examples
    --------
    >>> from mdal.similarity import alpha_gradient
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20])
    >>> alpha_gradient(tables, [[0.5, 0.5], [0.0, 1.0]])
    array([[-0.075, -0.15 ],
           [-0.025, -0.125]])
    """
    alpha = check_tables(tables, alpha)
    gradient = _linear_part(tables, lambda_d)
    if complexity is not None:
        weights, term = _complexity_term(tables, alpha, complexity, vc_dimension, delta)
        labelled = tables.counts > 0
        # The term is c sqrt(sum_j w_j^2 / beta_j), so its slope is
        # term * (w_j / beta_j) / (sum_j w_j^2 / beta_j), and dw_j / dalpha_ij = 1 / N.
        ratio = np.where(labelled, weights / np.where(labelled, tables.beta, 1), 0.0)
        spread = (weights * ratio).sum(axis=-1)
        gradient += np.expand_dims(term / spread, -1) * ratio / tables.n_domains
    return gradient


def _complexity_term(tables, alpha, complexity, vc_dimension, delta):
    """Return the weights that the term is about, and its value for each row of them."""
    check_option(complexity, "complexity", COMPLEXITIES)
    delta = check_number(delta, "delta", high=1, strict=True)
    if complexity == "mean":
        weights = alpha.mean(axis=0)
    else:
        weights, delta = alpha, delta / tables.n_domains
    term = bounds.complexity(
        weights, tables.counts, vc_dimension=vc_dimension, delta=delta
    )
    return weights, term


def _linear_part(tables: DomainTables, lambda_d: float) -> NDArray:
    lambda_d = check_number(lambda_d, "lambda_d")
    terms = tables.errors[0] + tables.errors[1:] - lambda_d / 2 * tables.hits
    return np.where(tables.counts > 0, terms, 0.0) / tables.n_domains


def alpha_step(
    alpha: NDArray,
    gradient: NDArray,
    *,
    step_size: float = 1.0,
    average: NDArray | None = None,
    average_weight: float = 1.0,
) -> tuple[NDArray, NDArray]:
    r"""Take one multiplicative step and update the average of the iterates.

    .. math::

        \alpha_{ij} \leftarrow \frac{\alpha_{ij} e^{-\eta N g_{ij}}}
        {\sum_k \alpha_{ik} e^{-\eta N g_{ik}}}, \qquad
        \bar\alpha \leftarrow (1 - w) \bar\alpha + w \alpha

    Rows stay on the simplex, and weights of 0 stay 0. For fixed tables the objective
    is linear in alpha and its solution a corner; it is the average over a game
    against a discriminator that adapts which is a mixture. The factor N makes a step
    independent of the number of domains. With :math:`w = 1/t` in step t the average
    is that of all iterates; a constant w forgets old ones.

    Parameters
    ----------
    alpha : ndarray of shape (n_domains, n_domains)
        The current iterate.
    gradient : ndarray of shape (n_domains, n_domains)
        From :func:`alpha_gradient`.
    step_size : float, default=1.0
        The step :math:`\eta`.
    average : ndarray of shape (n_domains, n_domains), default=None
        The average so far; None starts with the new iterate.
    average_weight : float, default=1.0
        Weight w of the new iterate in the average.

    Returns
    -------
    alpha : ndarray of shape (n_domains, n_domains)
        The next iterate.
    average : ndarray of shape (n_domains, n_domains)
        The next average.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import alpha_step
    >>> alpha = np.full((2, 2), 0.5)
    >>> gradient = np.array([[0.0, -0.5], [0.0, 0.0]])
    >>> alpha, average = alpha_step(alpha, gradient, average=alpha, average_weight=0.5)
    >>> alpha.round(3)
    array([[0.269, 0.731],
           [0.5  , 0.5  ]])
    >>> average.round(3)
    array([[0.384, 0.616],
           [0.5  , 0.5  ]])
    """
    alpha = check_alpha(alpha)
    gradient = check_finite(gradient, "gradient", alpha.shape)
    step_size = check_number(step_size, "step_size")
    weight = check_number(average_weight, "average_weight", high=1)
    with np.errstate(divide="ignore"):
        logits = np.log(alpha) - step_size * len(alpha) * gradient
    alpha = softmax(logits, axis=1)
    if average is None:
        return alpha, alpha.copy()
    return alpha, (1 - weight) * check_alpha(average, len(alpha)) + weight * alpha


def solve_alpha(
    tables: DomainTables,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    **objective,
) -> NDArray:
    r"""Return the alpha that minimises :func:`alpha_objective` for fixed tables.

    Without a complexity term the solution is a corner: each row puts everything on
    one labelled domain (the lowest index among equals). With one, the problem is
    convex and solved by spectral projected gradients until the duality gap

    .. math:: \sum_i \Big(\sum_j \alpha_{ij} g_{ij} - \min_j g_{ij}\Big)

    which bounds the distance to the optimal value, is at most `tol` times one plus
    that value.

    Parameters
    ----------
    tables : DomainTables
        Mean losses by domain.
    tol : float, default=1e-6
        The gap to reach, relative to one plus the value.
    max_iter : int, default=10_000
        Steps after which to return what there is, with a ConvergenceWarning.
    **objective
        ``lambda_d``, ``complexity``, ``vc_dimension`` and ``delta`` of
        :func:`alpha_objective`.

    Returns
    -------
    ndarray of shape (n_domains, n_domains)
        The solution.

    References
    ----------
    Birgin, Martinez and Raydan, "Nonmonotone spectral projected gradient methods on
    convex sets", SIAM Journal on Optimization 2000.

    Examples
    --------
    >>> from mdal.similarity import solve_alpha
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.4, 0.1]], counts=[10, 20])
    >>> solve_alpha(tables)
    array([[0., 1.],
           [1., 0.]])
    >>> solve_alpha(tables, complexity="row").round(2)
    array([[0.31, 0.69],
           [0.36, 0.64]])
    """
    alpha = resolve_alpha(None, tables.counts)
    labelled = tables.counts > 0
    gradient = alpha_gradient(tables, alpha, **objective)
    if objective.get("complexity") is None:
        costs = np.where(labelled, gradient, np.inf)
        return np.eye(len(alpha))[costs.argmin(axis=1)]

    tol = check_number(tol, "tol", strict=True)
    values, step_size = [alpha_objective(tables, alpha, **objective)], 1.0
    for _ in range(check_count(max_iter, "max_iter", minimum=1)):
        least = np.where(labelled, gradient, np.inf).min(axis=1)
        gap = (alpha * gradient).sum() - least.sum()
        if gap <= tol * (1 + abs(values[-1])):
            return alpha
        target = np.where(labelled, alpha - step_size * gradient, -np.inf)
        direction = _nearest_on_simplex(target) - alpha
        slope, length = (direction * gradient).sum(), 1.0
        while True:  # halve the way until the value is below the worst of the last ten
            new = alpha + length * direction
            value = alpha_objective(tables, new, **objective)
            if value <= max(values[-10:]) + 1e-4 * length * slope or length < 1e-12:
                break
            length /= 2
        new_gradient = alpha_gradient(tables, new, **objective)
        moved, turned = new - alpha, new_gradient - gradient
        curvature = (moved * turned).sum()
        # The step that fits the curvature seen along the last move.
        step_size = np.clip((moved**2).sum() / max(curvature, 1e-18), 1e-6, 1e6)
        alpha, gradient = new, new_gradient
        values.append(value)
    warnings.warn(
        f"alpha is within {gap:.3g} of the best value after max_iter={max_iter} steps, "
        f"which misses tol={tol:g}; allow more steps or a larger gap",
        ConvergenceWarning,
        stacklevel=2,
    )
    return alpha


def _nearest_on_simplex(points: NDArray) -> NDArray:
    """Project each row onto the simplex; entries of -inf become 0."""
    ordered = -np.sort(-points, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1
    rank = np.arange(1, points.shape[1] + 1)
    kept = (ordered * rank > excess).sum(axis=1)
    threshold = excess[np.arange(len(points)), kept - 1] / kept
    return np.maximum(points - threshold[:, None], 0.0)
