"""How many labels each domain gets, from what a learner has learned."""

import numpy as np
from numpy.typing import NDArray

from ..budget import ErrorBudget, get_budget
from ._pool import Pool
from ._rounds import Allocation
from ._samples import take
from ._training import predicted_classes

_ALL_DOMAINS = "all domains"


def hold_out(pool: Pool, seed) -> NDArray:
    """Return a fifth of the labelled rows of each domain, no class's last one."""
    rng, held_out = np.random.RandomState(seed), np.zeros(len(pool.labels), dtype=bool)
    left = np.bincount(pool.labels[pool.labelled], minlength=len(pool.classes))
    for domain in range(len(pool.names)):
        rows = rng.permutation(np.flatnonzero(pool.labelled & (pool.domains == domain)))
        for row in rows[: len(rows) // 5]:
            if left[pool.labels[row]] > 1:
                left[pool.labels[row]] -= 1
                held_out[row] = True
    return held_out


def domain_errors(net, pool: Pool, held_out) -> NDArray:
    """Return each domain's error on held-out rows; the mean where there are none."""
    rows = np.flatnonzero(held_out)
    domains = pool.names[pool.domains[rows]]
    wrong = predicted_classes(net, take(pool.X, rows), domains) != pool.labels[rows]
    counts = pool.count(held_out)
    sums = np.bincount(pool.domains[rows], wrong, minlength=len(pool.names))
    return np.where(counts > 0, sums / np.maximum(counts, 1), wrong.mean())


def split_budget(learned: dict, allocation, n: int, free) -> tuple[NDArray, NDArray]:
    """Return the labels of each group of domains, and the group of each domain."""
    pool, alpha = learned["pool_"], learned.get("alpha_")
    budget, errors = get_budget(allocation), learned["errors_"]
    # Without labels, or without any to hold out, nothing is known about domains.
    if "net_" not in learned or (isinstance(budget, ErrorBudget) and errors is None):
        budget = get_budget("uniform")
    new = budget.split(
        min(n, int(free.sum())),
        alpha=alpha,
        errors=errors,
        sizes=pool.count(np.ones(len(free), dtype=bool)),
        spent=pool.count(pool.labelled),
        capacity=pool.count(free),
    )
    return new, budget.groups(len(pool.names))


def allocation_by_name(learned: dict, allocation, n: int) -> Allocation:
    """Return the labels of each domain, or group of domains, by its name."""
    pool = learned["pool_"]
    new, groups = split_budget(learned, allocation, n, pool.free)
    names = [[] for _ in new]
    for name, group in zip(pool.names.tolist(), groups, strict=True):
        names[group].append(name)
    if len(names) == 1 < len(pool.names):
        return Allocation({_ALL_DOMAINS: int(new[0])})
    named = [tuple(group) if len(group) > 1 else group[0] for group in names]
    return Allocation(zip(named, new.tolist(), strict=True))
