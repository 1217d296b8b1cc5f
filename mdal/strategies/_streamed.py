"""Selection from pools that are too large to be held in memory."""

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import check_count, check_seed
from ..scores import top_n
from ._base import RankingStrategy, at_most
from ._names import get_strategy
from ._view import PoolView, check_alike, joined

_ALL = object()  # the one group of a pool whose domains do not matter


def select_streamed(
    strategy, blocks, n, *, keep=20, threshold=20_000, random_state=None
):
    """Pick samples from a pool that comes in blocks.

    Of strategies that rank samples (:class:`RankingStrategy`) a few numbers for each
    row are kept, and the answer is that of ``strategy.select``. Others work in two
    stages: while the blocks pass, the rows that the strategy finds most promising are
    kept (by :meth:`Strategy.screen`, ties by row); then the strategy picks among them.
    A pool of at most `threshold` rows is kept whole, so that the answer is again that
    of ``strategy.select``. It never depends on how the pool is cut into blocks.

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
    if not asked:
        return {}
    if random_state is None:
        random_state = getattr(strategy, "random_state", None)
    rng = check_seed(random_state)
    # A copy is asked for a seed, so that `select` begins where it would alone.
    chance = np.random.RandomState(deepcopy(rng).randint(np.iinfo(np.int32).max))

    room = {domain: max(threshold, keep * m) for domain, m in asked.items()}
    shortlist, seen = _shortlist(strategy, blocks, room, chance)
    picked = {}
    for domain, where in _groups(shortlist, asked):
        if domain not in seen:
            raise ValueError(
                f"n asks for samples of domain {domain!r}, which is not in the pool; "
                f"its domains are {sorted(seen - {_ALL}, key=repr)}"
            )
        kept = shortlist.take(where)
        place = "" if domain is _ALL else f" in domain {domain!r}"
        m = at_most(asked[domain], len(kept), place)
        if m == 0:
            chosen = where[:0]
        elif kept.view is None:
            chosen = strategy.choose(kept.worth, m)
        else:
            chosen = strategy.select(kept.view, m, rng)
        picked[domain] = kept.rows[chosen]
    return picked if isinstance(n, dict) else picked[_ALL]


def _shortlist(strategy, blocks, room: dict, chance) -> tuple["_Shortlist", set]:
    """Return the rows that are kept, and all domains that were seen."""
    ranking = isinstance(strategy, RankingStrategy)
    parts, start, seen = [], 0, {_ALL}
    for view in _views(blocks):
        rows = view.candidates()
        luck = chance.random_sample(len(view))
        worth = _check_worth(strategy.screen(view, luck), len(view))
        part = _Shortlist(
            None if ranking else view, worth, start + np.arange(len(view)), view.domains
        )
        parts.append(part.take(rows))
        start += len(view)
        if view.domains is not None:
            seen.update(view.domains.tolist())
        # Small blocks wait, so that rows are not copied over and over.
        if sum(map(len, parts)) > 2 * worth.shape[1] * sum(room.values()):
            parts = [_shortened(parts, room)]
    if not parts:
        raise ValueError("there is no block; pass at least one")
    return _shortened(parts, room), seen


def _views(blocks):
    """Yield blocks as views, all with the labelled samples of the first."""
    if isinstance(blocks, PoolView | np.ndarray):
        raise TypeError(
            f"blocks is one {type(blocks).__name__}; pass a list or a generator of "
            "blocks, or use select"
        )
    first = None
    for block in blocks:
        view = block if isinstance(block, PoolView) else PoolView(block)
        first = view if first is None else first
        check_alike(first, view)
        yield replace(
            view, labelled_embedding=first.labelled_embedding, labels=first.labels
        )


def _check_worth(worth, n_rows: int) -> NDArray:
    worth = np.asarray(worth)
    if worth.ndim != 2 or len(worth) != n_rows or worth.shape[1] == 0:
        raise ValueError(
            f"screen returned an array of shape {worth.shape} for {n_rows} samples; "
            "return one row for each sample and one column for each respect"
        )
    return worth


@dataclass(frozen=True, eq=False)
class _Shortlist:
    """Some rows of a pool and what they are worth; the view if it is still needed."""

    view: PoolView | None
    worth: NDArray
    rows: NDArray
    domains: NDArray | None

    def __len__(self):
        return len(self.rows)

    def take(self, which: NDArray) -> "_Shortlist":
        return _Shortlist(
            None if self.view is None else self.view.take(which),
            self.worth[which],
            self.rows[which],
            None if self.domains is None else self.domains[which],
        )


def _shortened(parts: list[_Shortlist], room: dict) -> _Shortlist:
    """Return one shortlist of those rows for which there is room."""
    parts = [part for part in parts if len(part)] or parts[:1]
    ranking, domains = parts[0].view is None, None
    if parts[0].domains is not None:
        domains = np.concatenate([part.domains for part in parts])
    together = _Shortlist(
        None if ranking else joined([part.view for part in parts]),
        np.concatenate([part.worth for part in parts]),
        np.concatenate([part.rows for part in parts]),
        domains,
    )
    if ranking:
        return together
    best = [
        _best(together.worth, where, room[domain])
        for domain, where in _groups(together, room)
    ]
    return together.take(np.sort(np.concatenate(best)))


def _groups(shortlist: _Shortlist, asked: dict):
    """Yield each domain that samples are asked of, and its rows."""
    if _ALL in asked:
        yield _ALL, np.arange(len(shortlist))
        return
    if shortlist.domains is None:
        raise ValueError(
            "n is given by domain, but the blocks have no domains; pass domains= to "
            "each view, or one number as n"
        )
    for domain in asked:
        if shortlist.domains.dtype == object:
            same = [each == domain for each in shortlist.domains]
        else:
            same = shortlist.domains == domain
        yield domain, np.flatnonzero(same)


def _best(worth: NDArray, rows: NDArray, n: int) -> NDArray:
    """Return those of the rows that are among the n best in any respect."""
    if len(rows) <= n:
        return rows
    best = [top_n(column, n) for column in worth[rows].T]
    return rows[np.unique(np.concatenate(best))]
