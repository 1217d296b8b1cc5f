"""Selection from pools that are too large to be held in memory."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import check_count, check_seed
from ..scores import top_n
from ._names import get_strategy
from ._view import PoolView, joined

_ALL = object()  # the one group of a pool whose domains do not matter


def select_streamed(
    strategy, blocks, n, *, keep=20, threshold=20_000, random_state=None
):
    """Pick samples from a pool that comes in blocks, in two stages.

    While the blocks pass, the rows that the strategy finds most promising are kept
    (by :meth:`Strategy.screen`, ties by row); then the strategy picks among them. A
    pool of at most `threshold` rows is kept whole, so the answer is that of
    ``strategy.select``. It is also in larger pools for strategies that rank samples by
    scores, and it never depends on how the pool is cut into blocks.

    Parameters
    ----------
    strategy : str, Strategy or callable
        What :func:`get_strategy` knows.
    blocks : iterable of PoolView or of arrays of shape (n_rows, n_classes)
        The pool, in the order of its rows; an array is taken as logits. The labelled
        samples are those of the first block.
    n : int, or dict of int by domain
        How many samples to pick in all; or in each domain, by its name in the blocks'
        `domains`.
    keep : int, default=20
        How many times as many rows as are asked for to keep, at least.
    threshold : int, default=20000
        How many rows to keep, at least; in each domain, where n is by domain.
    random_state : int, RandomState or None, default=None
        None is the strategy's own.

    Returns
    -------
    ndarray of shape (n,), or dict of these by domain
        Rows, counted through all blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.strategies import Margin, select_streamed
    >>> logits = np.random.default_rng(0).normal(size=(1000, 3))
    >>> select_streamed("margin", np.array_split(logits, 7), 4)
    array([337, 992, 847, 459])
    >>> Margin().select(logits, 4)
    array([337, 992, 847, 459])
    """
    strategy = get_strategy(strategy)
    keep = check_count(keep, "keep", minimum=1)
    threshold = check_count(threshold, "threshold")
    if isinstance(n, dict):
        asked = {domain: check_count(m, f"n[{domain!r}]") for domain, m in n.items()}
    else:
        asked = {_ALL: check_count(n, "n")}
    if random_state is None:
        random_state = getattr(strategy, "random_state", None)
    rng = check_seed(random_state)
    # A copy is asked for a seed, so that `select` begins where it would alone.
    screening = np.random.RandomState(deepcopy(rng).randint(np.iinfo(np.int32).max))

    shortlist, start = None, 0
    for block in blocks:
        view = block if isinstance(block, PoolView) else PoolView(block)
        rows = view.candidates()
        worth = strategy.screen(view, screening)[rows]
        new = _Shortlist(view.take(rows), worth, start + rows)
        shortlist = new if shortlist is None else shortlist.joined(new)
        best = [
            _best(shortlist.worth, where, max(threshold, keep * asked[domain]))
            for domain, where in _groups(shortlist.view, asked)
        ]
        shortlist = shortlist.take(np.sort(np.concatenate(best)))
        start += len(view)
    if shortlist is None:
        raise ValueError("there is no block; pass at least one")
    picked = {}
    for domain, where in _groups(shortlist.view, asked):
        kept = shortlist.take(where)
        picked[domain] = kept.rows[strategy.select(kept.view, asked[domain], rng)]
    return picked if isinstance(n, dict) else picked[_ALL]


@dataclass(frozen=True, eq=False)
class _Shortlist:
    """Some rows of a pool, and what they are worth in each respect."""

    view: PoolView
    worth: NDArray
    rows: NDArray

    def take(self, which: NDArray) -> "_Shortlist":
        return _Shortlist(self.view.take(which), self.worth[which], self.rows[which])

    def joined(self, other: "_Shortlist") -> "_Shortlist":
        return _Shortlist(
            joined([self.view, other.view]),
            np.concatenate([self.worth, other.worth]),
            np.concatenate([self.rows, other.rows]),
        )


def _groups(view: PoolView, asked: dict):
    """Yield each domain that samples are asked of, and its rows."""
    if _ALL in asked:
        yield _ALL, np.arange(len(view))
        return
    if view.domains is None:
        raise ValueError(
            "n is given by domain, but the blocks have no domains; pass domains= to "
            "each view, or one number as n"
        )
    for domain in asked:
        yield domain, np.flatnonzero(view.domains == domain)


def _best(worth: NDArray, rows: NDArray, n: int) -> NDArray:
    """Return those of the rows that are among the n best in any respect."""
    if len(rows) <= n:
        return rows
    best = [top_n(column, n) for column in worth[rows].T]
    return rows[np.unique(np.concatenate(best))]
