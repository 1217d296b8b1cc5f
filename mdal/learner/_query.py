"""Which samples to label next, from what a learner has learned."""

import numpy as np
from numpy.typing import NDArray

from ..net import Observation
from ..strategies import PoolView, Random, select_streamed
from ..streams import Rows
from ._allocation import split_budget
from ._pool import Pool
from ._samples import take

_BLOCK = 2000  # samples that the net sees at a time
_IN_MEMORY = 200_000  # samples of a domain up to which a strategy sees all


def pick(learned: dict, allocation, strategy, n: int, free: NDArray) -> NDArray:
    """Return n of the free rows, by the budget of each domain and then the strategy."""
    pool = learned["pool_"]
    split, groups = split_budget(learned, allocation, n, free)
    wanted = {group: int(m) for group, m in enumerate(split) if m > 0}
    rows = np.flatnonzero(free)
    picked = select_streamed(
        strategy,
        _views(learned, strategy, rows, groups[pool.domains[rows]]),
        wanted,
        threshold=_IN_MEMORY,
        random_state=learned["seeds_"][1],
    )
    return np.concatenate([rows[:0], *(rows[picked[group]] for group in wanted)])


def utilities(learned: dict, strategy, free: NDArray) -> NDArray:
    """Return what the strategy looks at first, NaN for rows that are not free."""
    rows, values = np.flatnonzero(free), np.full(len(free), np.nan)
    start = 0
    for view in _views(learned, strategy, rows, learned["pool_"].domains[rows]):
        here = rows[start : start + len(view)]
        values[here] = strategy.screen(view, np.ones(len(view)))[:, 0]
        start += len(view)
    return values


def _views(learned: dict, strategy, rows: NDArray, groups: NDArray):
    """Yield what is known about some rows, in blocks."""
    pool, net, known = learned["pool_"], learned.get("net_"), {}
    if isinstance(strategy, Random):
        net = None  # whose answers it would not look at
    if net is not None and len(rows):
        labelled = np.flatnonzero(pool.labelled)
        known = {
            "labelled_embedding": _said(net, pool, labelled).penultimate,
            "labels": np.searchsorted(net.classes_, pool.labels[labelled]),
        }
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        if net is not None:
            said = _said(net, pool, rows[block])
        else:
            said = _unknown(pool, rows[block], strategy)
        yield PoolView(
            said.logits,
            embedding=said.penultimate,
            outlier=said.outlier,
            domains=groups[block],
            **known,
        )


def _said(net, pool: Pool, rows: NDArray) -> Observation:
    """Return what the net says about rows."""
    return net.observe(take(pool.X, rows), pool.names[pool.domains[rows]])


def _unknown(pool: Pool, rows: NDArray, strategy) -> Observation:
    """Return what there is without a net: features, for those who look at them."""
    features = None
    if not isinstance(strategy, Random):
        features = Rows(take(pool.X, rows))[np.arange(len(rows))]
        features = features.flatten(1).numpy()
    return Observation(np.zeros((len(rows), 1)), features, features)
