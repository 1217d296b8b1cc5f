"""How many labels each domain gets: an exact integer split, and rules that use it.

:func:`allocate` is the formula. The budget objects below it are thin: each maps
what is known about the domains (alpha, errors, sizes, labels spent, room left)
to labels per group of domains.
"""

import heapq
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from ._validation import (
    check_alpha,
    check_count,
    check_counts,
    check_number,
    check_weights,
)

__all__ = [
    "CallableBudget",
    "ErrorBudget",
    "JointBudget",
    "OptimalBudget",
    "SizeBudget",
    "UniformBudget",
    "allocate",
    "budget_names",
    "get_budget",
]


def allocate(
    weights: ArrayLike,
    budget: int,
    *,
    spent: ArrayLike | None = None,
    capacity: ArrayLike | None = None,
) -> NDArray[np.int64]:
    r"""Split a labelling budget between domains so that the error bound is least.

    The bound :math:`U_E` depends on the split only through

    .. math:: \sum_j \frac{w_j^2}{n_j}, \qquad n_j = s_j + m_j,

    with the weight :math:`w_j` of domain j (for CAL the column mean
    :math:`\alpha_j`), the labels :math:`s_j` spent so far and the new ones
    :math:`m_j`. The whole numbers :math:`0 \le m_j \le c_j` that minimise it
    are found exactly: the sum is separable and convex, so giving one label at a
    time to the domain with the largest :math:`w_j^2 / (n_j (n_j + 1))` is
    optimal (Huntington-Hill apportionment). Without floors and capacities the
    shares tend to :math:`n_j \propto w_j`, the paper's :math:`\beta_j =
    \alpha_j`.

    Parameters
    ----------
    weights : array-like of shape (n_domains,)
        Importance of each domain, at least 0; only ratios matter.
    budget : int
        Labels to give out in all.
    spent : array-like of shape (n_domains,), default=None
        Labels that each domain has already; None means none.
    capacity : array-like of shape (n_domains,), default=None
        How many more samples each domain has to label; None means no limit.

    Returns
    -------
    ndarray of shape (n_domains,), int64
        New labels for each domain, with sum ``min(budget, sum(capacity))``.

    Notes
    -----
    A domain with positive weight and no label comes before all others, the
    largest weight first. Domains of zero weight get labels only when nobody
    else has room, the one with the fewest labels first. Ties go to the lowest
    index. Priorities are compared as exact fractions of the weights given, so
    neither rounding nor overflow can change the answer; 0.1 and 0.6, though, are not
    exactly one to six in binary, where 1 and 6 are.

    References
    ----------
    Hao et al., "Composite Active Learning", AAAI 2024, Theorem 4.2.

    Examples
    --------
    >>> from mdal.budget import allocate
    >>> allocate([0.5, 0.3, 0.2], 100)
    array([50, 30, 20])
    >>> allocate([0.5, 0.3, 0.2], 60, spent=[20, 20, 20], capacity=[100, 5, 100])
    array([48,  5,  7])
    """
    weights = check_weights(weights, "weights", None)
    budget = check_count(budget, "budget")
    spent, capacity, _ = _check_room(spent, capacity, None, len(weights), budget)
    budget = min(budget, sum(capacity.tolist()))

    positive = weights > 0
    new = np.zeros(len(weights), dtype=np.int64)
    share = min(budget, int(capacity[positive].sum()))
    new[positive] = _apportion(
        weights[positive], share, spent[positive], capacity[positive]
    )
    new[~positive] = _level(spent[~positive], capacity[~positive], budget - share)
    return new


def _check_room(spent, capacity, sizes, n_domains: int, budget: int):
    """Return what is spent, what is left (at most the budget) and the sizes."""
    if n_domains == 0:
        raise ValueError("there is no domain; pass one value for each domain")
    spent = np.zeros(n_domains) if spent is None else spent
    spent = check_counts(spent, "spent", n_domains)
    room = np.full(n_domains, budget, dtype=np.int64)
    if sizes is not None:
        sizes = check_counts(sizes, "sizes", n_domains)
        _check_within(spent, sizes, "spent", "samples; count each labelled one once")
        room = sizes - spent
    if capacity is not None:
        capacity = check_counts(capacity, "capacity", n_domains)
        if sizes is not None:
            _check_within(capacity, room, "capacity", "unlabelled samples")
        room = capacity
    return spent, np.minimum(room, budget), sizes


def _check_within(counts, limit, name: str, what: str) -> None:
    over = np.flatnonzero(counts > limit)
    if len(over):
        domain = int(over[0])
        raise ValueError(
            f"{name} is {counts[domain]} for domain {domain}, which has only "
            f"{limit[domain]} {what}"
        )


def _apportion(weights, budget: int, spent, capacity) -> NDArray[np.int64]:
    """Split a budget that fits into the capacity, all weights being positive."""
    if not budget:
        return np.zeros(len(weights), dtype=np.int64)
    new = _apportion_below(weights, budget, spent, capacity)
    squares = [Fraction(weight) ** 2 for weight in weights.tolist()]

    def entry(domain, count):
        # The n-th label is worth w^2 / ((n - 1) n), and the first one everything.
        worth = squares[domain] / (count * (count + 1) if count else 1)
        return (count > 0, -worth, domain)

    queue = [
        entry(domain, int(spent[domain] + new[domain]))
        for domain in np.flatnonzero(new < capacity).tolist()
    ]
    heapq.heapify(queue)
    for _ in range(budget - int(new.sum())):
        domain = queue[0][2]
        new[domain] += 1
        if new[domain] < capacity[domain]:
            count = int(spent[domain] + new[domain])
            heapq.heapreplace(queue, entry(domain, count))
        else:
            heapq.heappop(queue)
    return new


def _apportion_below(weights, budget: int, spent, capacity) -> NDArray[np.int64]:
    """Return a split in which no domain has more than in the optimal one.

    In the optimal split, a domain with room has a count within one of t w for some
    t that is common to all. The largest t for which counts of t w + 1 stay within
    the budget is a lower bound for it, so counts of t w - 2, with one to spare for
    rounding, leave only a few labels per domain to the exact queue.
    """
    ratio = weights / weights.max()

    def counts(threshold, offset):
        target = np.minimum(ratio * threshold, spent + capacity + 2.0)
        return np.clip(np.ceil(target + offset).astype(np.int64) - spent, 0, capacity)

    def fits(threshold):
        return counts(threshold, 1).sum() <= budget

    low, high = 0.0, 1.0
    for _ in range(1000):  # 2^1000 is still finite
        if not fits(high):
            break
        low, high = high, 2 * high
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return counts(low, -3)


def _level(counts, capacity, budget: int, order=None) -> NDArray[np.int64]:
    """Raise the lowest counts one by one; ties go by `order`, then by index."""
    if not budget:
        return np.zeros(len(counts), dtype=np.int64)

    def fill(level):
        return np.clip(level - counts, 0, capacity)

    low, high = int(counts.min()), int((counts + capacity).max())
    while low < high:  # the highest level that the budget can fill
        middle = (low + high + 1) // 2
        fits = fill(middle).sum() <= budget
        low, high = (middle, high) if fits else (low, middle - 1)
    new = fill(low)
    next_in_line = np.flatnonzero((counts + new == low) & (new < capacity))
    if order is not None:
        next_in_line = next_in_line[np.argsort(order[next_in_line], kind="stable")]
    new[next_in_line[: budget - int(new.sum())]] += 1
    return new


class _Budget(BaseEstimator):
    """A rule that splits a budget; one group for each domain unless it says otherwise.

    A rule has no `fit`: it learns nothing, and its parameters say all there is.
    """

    def groups(self, n_domains: int) -> NDArray[np.intp]:
        """Return the group of each domain, shape (n_domains,)."""
        return np.arange(check_count(n_domains, "n_domains", minimum=1))

    def split(
        self,
        budget: int,
        *,
        alpha: ArrayLike | None = None,
        errors: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
        spent: ArrayLike | None = None,
        capacity: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Return the new labels for each group of domains.

        Every rule takes the same keywords and uses what it needs; at least one of
        them must be given, to tell how many domains there are.

        Parameters
        ----------
        budget : int
            Labels to give out in all.
        alpha : array-like of shape (n_domains, n_domains), default=None
            ``alpha[i, j]`` is the weight of labelled domain j in the surrogate of
            original domain i. The optimal budget needs it.
        errors : array-like of shape (n_domains,), default=None
            Error of the classifier on held-out labels of each domain. The
            error-driven budget needs it.
        sizes : array-like of shape (n_domains,), default=None
            Samples in each domain, labelled ones included. The budget by size
            needs it.
        spent : array-like of shape (n_domains,), default=None
            Labels that each domain has already; None means none.
        capacity : array-like of shape (n_domains,), default=None
            How many more samples each domain has to label; None means
            ``sizes - spent``, or no limit without sizes.

        Returns
        -------
        ndarray of shape (n_groups,), int64
            New labels, with sum ``min(budget, sum(capacity))``.
        """
        budget = check_count(budget, "budget")
        given = [v for v in (sizes, capacity, spent, errors, alpha) if v is not None]
        if not given:
            raise ValueError(
                "nothing says how many domains there are; pass sizes=, one per domain"
            )
        n_domains = len(np.atleast_1d(given[0]))
        spent, capacity, sizes = _check_room(spent, capacity, sizes, n_domains, budget)
        if alpha is not None:
            alpha = check_alpha(alpha, n_domains)
        if errors is not None:
            errors = check_weights(errors, "errors", n_domains)
        budget = min(budget, sum(capacity.tolist()))
        return self._split(budget, sizes, spent, capacity, alpha, errors)


class OptimalBudget(_Budget):
    r"""CAL's budget: the cumulative shares that minimise the error bound.

    These are :math:`\beta_j = \alpha_j` before rounding. The weight of a domain is
    alpha's column mean, :math:`\alpha_j = \frac{1}{N}
    \sum_i \alpha_{ij}`; :func:`allocate` does the rest. Where others have labels,
    the column of a domain without one cannot be estimated and counts as
    :math:`1/N`, so that nobody is starved. Where nothing is labelled, alpha is taken
    at its word.

    Examples
    --------
    >>> from mdal.budget import OptimalBudget
    >>> alpha = [[0.8, 0.2], [0.4, 0.6]]
    >>> OptimalBudget().split(40, sizes=[500, 500], spent=[10, 10], alpha=alpha)
    array([26, 14])
    """

    def _split(self, budget, sizes, spent, room, alpha, errors):
        if alpha is None:
            raise ValueError(
                "alpha is missing; the optimal budget needs alpha=, or use 'uniform'"
            )
        weights = alpha.mean(axis=0)
        if spent.any():
            weights = np.where(spent > 0, weights, 1 / len(spent))
        return allocate(weights, budget, spent=spent, capacity=room)


class UniformBudget(_Budget):
    """The paper's 'separate' budget: each round in equal parts.

    What a full domain cannot take goes to the others in equal parts; a remainder
    goes to the domains with the fewest labels, then to the lowest index.

    Examples
    --------
    >>> from mdal.budget import UniformBudget
    >>> UniformBudget().split(10, sizes=[500, 2, 500], spent=[9, 1, 4])
    array([4, 1, 5])
    """

    def _split(self, budget, sizes, spent, room, alpha, errors):
        return _level(np.zeros_like(room), room, budget, order=spent)


class SizeBudget(_Budget):
    """Labels in proportion to the domains' sizes, counted over all rounds.

    Examples
    --------
    >>> from mdal.budget import SizeBudget
    >>> SizeBudget().split(60, sizes=[4000, 1000, 1000])
    array([40, 10, 10])
    """

    def _split(self, budget, sizes, spent, room, alpha, errors):
        if sizes is None:
            raise ValueError(
                "sizes is missing; the budget by size needs sizes=, the samples of "
                "each domain, or use 'uniform'"
            )
        return allocate(sizes, budget, spent=spent, capacity=room)


class JointBudget(_Budget):
    """All domains as one pool: a single group that gets the whole budget.

    Examples
    --------
    >>> from mdal.budget import JointBudget
    >>> JointBudget().split(60, sizes=[4000, 1000, 1000])
    array([60])
    >>> JointBudget().groups(3)
    array([0, 0, 0])
    """

    def groups(self, n_domains: int) -> NDArray[np.intp]:
        """Return the group of each domain: 0 for all."""
        return np.zeros_like(super().groups(n_domains))

    def _split(self, budget, sizes, spent, room, alpha, errors):
        return np.array([budget], dtype=np.int64)


class ErrorBudget(_Budget):
    r"""The paper's heuristic: more labels where the held-out error is larger.

    The new labels of a round are shared in proportion to

    .. math:: \frac{u}{N} + (1 - u) \frac{\epsilon_j}{\sum_k \epsilon_k}

    with the held-out error :math:`\epsilon_j` of domain j and the share u that is
    spread evenly. :func:`allocate` rounds them, without regard to what was spent
    in earlier rounds.

    Parameters
    ----------
    uniform_share : float, default=0.5
        The share u between 0 (errors alone) and 1 (uniform). The code published
        with the paper mixes half and half.

    Examples
    --------
    >>> from mdal.budget import ErrorBudget
    >>> ErrorBudget().split(40, sizes=[500, 500], errors=[0.3, 0.1])
    array([25, 15])
    """

    def __init__(self, uniform_share=0.5):
        self.uniform_share = uniform_share

    def _split(self, budget, sizes, spent, room, alpha, errors):
        if errors is None:
            raise ValueError(
                "errors is missing; the error-driven budget needs errors=, the "
                "held-out error of each domain, or use 'uniform'"
            )
        uniform = check_number(self.uniform_share, "uniform_share", high=1)
        # Without any error there is nothing to tell the domains apart.
        driven = errors if errors.any() else np.ones_like(errors)
        shares = uniform / len(room) + (1 - uniform) * driven / driven.sum()
        return allocate(shares, budget, capacity=room)


class CallableBudget(_Budget):
    """A user's own rule.

    Parameters
    ----------
    function : callable
        Called with the budget and the keywords ``sizes``, ``spent``, ``capacity``,
        ``alpha`` and ``errors`` (arrays, or None where they were not given). The
        budget is at most what there is room for, and a capacity at most the budget.
        Returns the new labels for each domain, with the budget as their sum.

    Examples
    --------
    >>> from mdal.budget import CallableBudget
    >>> def all_to_the_first(budget, *, capacity, **others):
    ...     return [budget] + [0] * (len(capacity) - 1)
    >>> CallableBudget(all_to_the_first).split(40, sizes=[500, 500])
    array([40,  0])
    """

    def __init__(self, function):
        self.function = function

    def _split(self, budget, sizes, spent, room, alpha, errors):
        new = self.function(
            budget,
            sizes=sizes,
            spent=spent.copy(),
            capacity=room.copy(),
            alpha=alpha,
            errors=errors,
        )
        new = check_counts(new, "the budget function's answer", len(room))
        if new.sum() != budget or (new > room).any():
            raise ValueError(
                f"the budget function's answer is {new.tolist()}; expected whole "
                f"numbers that sum to {budget}, at most {room.tolist()}"
            )
        return new


_BUDGETS = {
    "error": ErrorBudget,
    "joint": JointBudget,
    "optimal": OptimalBudget,
    "separate": UniformBudget,
    "size": SizeBudget,
    "uniform": UniformBudget,
}


def budget_names() -> list[str]:
    """Return the names that :func:`get_budget` knows.

    Examples
    --------
    >>> from mdal.budget import budget_names
    >>> budget_names()
    ['error', 'joint', 'optimal', 'separate', 'size', 'uniform']
    """
    return sorted(_BUDGETS)


def get_budget(budget):
    """Return the budget object that a name, a callable or an object stands for.

    Parameters
    ----------
    budget : str, callable or budget object
        One of :func:`budget_names`; a function as :class:`CallableBudget` takes
        it; or an object with `split` and `groups`, which is returned as it is.

    Examples
    --------
    >>> from mdal.budget import get_budget
    >>> get_budget("optimal")
    OptimalBudget()
    """
    if isinstance(budget, str):
        if budget not in _BUDGETS:
            raise ValueError(
                f"budget={budget!r} is unknown; choose one of {', '.join(_BUDGETS)}, "
                "or pass a callable"
            )
        return _BUDGETS[budget]()
    if isinstance(budget, type):
        raise TypeError(f"budget is the class {budget.__name__}; pass an object of it")
    if hasattr(budget, "split") and hasattr(budget, "groups"):
        return budget
    if callable(budget):
        return CallableBudget(budget)
    raise TypeError(
        f"budget={budget!r} is of type {type(budget).__name__}; pass a name, a "
        "callable or a budget object"
    )
