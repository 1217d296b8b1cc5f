"""What each round has bought, from what a learner knew and what it knows now."""

import numpy as np
from numpy.typing import NDArray

from ._pool import Pool
from ._rounds import Round
from ._samples import fingerprint, take
from ._training import predicted_classes

_TERMS = ("labelled_error", "divergence", "lambda_")
_WATCHED = 2000  # samples that are enough to see changes of 1 %


def history(before: dict, learned: dict) -> list[Round]:
    """Return all rounds, the last one with what it has bought.

    Parameters
    ----------
    before, learned : dict
        The fitted attributes of the last fit, if there was one, and of this one.
    """
    pool, last = learned["pool_"], before.get("pool_")
    if last is None or not _goes_on(last, pool):
        return [_round(learned)]
    *earlier, old = rounds = before["history_"]
    if np.array_equal(_labels(last), _labels(pool)):  # no new labels, no new round
        return [*earlier, _round(learned, **_bought(old))]
    if "net_" not in before or "net_" not in learned:
        return [*rounds, _round(learned)]
    return [*rounds, _round(learned, **_seen(before, learned, old))]


def _goes_on(last: Pool, pool: Pool) -> bool:
    """Return whether samples are those of the last fit, or these and others after."""
    n = len(last.labels)
    if pool.shape != last.shape or len(pool.labels) < n:
        return False
    return last.fingerprint in (None, fingerprint(pool.X, n))


def _round(learned: dict, **bought) -> Round:
    """Return what there is to say about one fit alone."""
    pool, bound = learned["pool_"], learned.get("bound_")
    spent = pool.count(pool.labelled).tolist()
    terms = None
    if bound is not None:
        terms = {name: float(getattr(bound, name)) for name in _TERMS}
    by_domain = dict(zip(pool.names.tolist(), spent, strict=True))
    return Round(sum(spent), by_domain, terms, **bought)


def _labels(pool: Pool) -> NDArray:
    """Return the labels by name, None where there is none."""
    return np.append(pool.classes.astype(object), None)[pool.labels]


def _bought(old: Round) -> dict:
    """Return what a round has bought, for another fit in its place."""
    names = ("change", "accuracy_on_new", "agreement")
    return {name: getattr(old, name) for name in names}


def _seen(before: dict, learned: dict, old: Round) -> dict:
    """Compare the nets of two rounds, on samples and on the new labels."""
    pool, last = learned["pool_"], before["pool_"]

    same_domains = np.array_equal(pool.names, last.names)

    def predicted(state, rows):
        domains = pool.names[pool.domains[rows]] if same_domains else None
        found = predicted_classes(state["net_"], take(pool.X, rows), domains)
        return state["pool_"].classes[found]

    # The same samples in every round, so that rounds can be compared.
    watched = np.random.RandomState(0).permutation(len(pool.labels))[:_WATCHED]
    agree = predicted(before, watched) == predicted(learned, watched)
    known = np.zeros(len(pool.labels), dtype=bool)
    known[: len(last.labels)] = last.labelled
    new = np.flatnonzero(~known & pool.labelled)
    right = None
    if len(new):
        right = predicted(before, new) == pool.classes[pool.labels[new]]
    change, now = None, _round(learned).bound
    if now is not None and old.bound is not None:
        change = {name: now[name] - old.bound[name] for name in now}
    return {
        "change": change,
        "accuracy_on_new": None if right is None else float(np.mean(right)),
        "agreement": float(np.mean(agree)),
    }
