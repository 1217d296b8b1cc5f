"""What annotators say, in a form that every tool can keep, and what follows from it."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from .._sheets import check_name

RULES = ("latest", "leave", "majority", "raise")
_LONGEST = 200  # letters of an annotator's name
_AHEAD = timedelta(minutes=10)  # that other people's clocks may be


class Vote(NamedTuple):
    """What one annotator says about one sample.

    Attributes
    ----------
    id : str
        The sample.
    label : str or None
        Its class; None is "skipped": looked at, and not labelled.
    annotator : str
        Who says so.
    time : str or None
        When, in ISO 8601; None is the moment of the import.
    ground_truth : bool
        Whether it decides, whatever others say.
    round : int or None
        In which round it was asked for; None is the last one that asked for it.

    Examples
    --------
    >>> from mdal.labels import Vote
    >>> Vote("s1", "cat").annotator
    ''
    """

    id: str
    label: str | None
    annotator: str = ""
    time: str | None = None
    ground_truth: bool = False
    round: int | None = None


class Asked(NamedTuple):
    """The samples of one round, in the order in which they were picked.

    Attributes
    ----------
    number : int
        The round, from 0.
    rows : list of int
        Rows of the pool.
    predictions : list of (str or None)
        What the classifier took them for.
    about : dict
        Anything else that is known of the round.
    time : str
        When they were picked.

    Examples
    --------
    >>> from mdal.labels import Asked
    >>> Asked(0, [7, 2], [None, None], {}, "2026-01-01T00:00:00+00:00").rows
    [7, 2]
    """

    number: int
    rows: list[int]
    predictions: list[str | None]
    about: dict
    time: str


def decided(votes: list[Vote], rule: str) -> tuple[str | None, bool]:
    """Return the label that votes give a sample, and whether they agree on it."""
    truths = [v.label for v in votes if v.ground_truth and v.label is not None]
    labels = truths[-1:] or [v.label for v in votes if v.label is not None]
    if len(set(labels)) <= 1:
        return (labels[-1] if labels else None), True
    if rule == "latest":
        return labels[-1], False
    (first, n), (_, m), *_ = Counter(labels).most_common()
    return (first if rule == "majority" and n > m else None), False


def check_annotator(name, id: str) -> str:
    """Return the name of an annotator, "" for nobody in particular."""
    if not isinstance(name, str):
        raise TypeError(f"annotator={name!r:.80} of {id!r} is no string")
    if not name.isprintable() or len(name) > _LONGEST:
        raise ValueError(
            f"annotator={name!r:.80} of {id!r} is not printable, or longer than "
            f"{_LONGEST} letters; pass a shorter name"
        )
    return name


def check_ids(ids) -> list[str]:
    """Return ids of samples: names that differ, and lead nowhere as paths."""
    ids = [check_name(id, "an id") for id in ids]
    if not ids:
        raise ValueError("there is no sample; pass at least one")
    for id, count in Counter(ids).most_common(1):
        if count > 1:
            raise ValueError(f"{count} samples have the id {id!r:.80}; make ids differ")
    for id in ids:
        if ".." in Path(id).parts or Path(id).is_absolute():
            raise ValueError(f"an id is {id!r:.80}, a path; pass a name instead")
    return ids


def check_classes(classes) -> list[str]:
    """Return names of classes, all different."""
    if isinstance(classes, str):
        raise TypeError(f"classes={classes!r} is a string; pass a list of names")
    classes = [check_name(name, "a class") for name in classes]
    if len(set(classes)) < max(len(classes), 2):
        raise ValueError(f"classes={classes}; pass two or more different names")
    return classes


def check_time(text, id: str) -> str:
    """Return a time in ISO 8601 and UTC; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        moment = moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"sample {id!r} has the time {text!r:.80}; use ISO 8601, such as "
            "2026-01-31T12:00:00Z"
        ) from None
    if moment > datetime.now(UTC) + _AHEAD:  # it would count before all that follows
        raise ValueError(
            f"sample {id!r} has the time {text!r:.80}, which is still to come; give "
            "the zone, such as 2026-01-31T12:00:00+02:00"
        )
    return moment.isoformat(timespec="microseconds")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
