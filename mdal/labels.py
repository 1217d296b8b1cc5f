"""Labels that people gave, in one SQLite file: nothing is ever lost.

A :class:`LabelStore` has the samples' ids and domains, the rounds with the samples that
were asked for, and every vote of every annotator. Votes are added in one transaction,
all or none, and when :meth:`LabelStore.add` returns they are on the disk. The file is
locked as long as it is open: a second process gets an error and can change nothing.
"""

import json
import os
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._sheets import is_formula
from ._validation import check_option

__all__ = ["Asked", "LabelStore", "Vote"]

FORMAT = 1
RULES = ("latest", "leave", "majority", "raise")
_AHEAD = timedelta(minutes=10)  # that other people's clocks may be
_APPLICATION = 0x6D64616C  # "mdal", by which SQLite tells files apart
_SCHEMA = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "samples": "CREATE TABLE samples (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
    " domain TEXT NOT NULL, shown TEXT NOT NULL) STRICT",
    "rounds": "CREATE TABLE rounds (number INTEGER PRIMARY KEY, time TEXT NOT NULL,"
    " about TEXT NOT NULL) STRICT",
    "asked": "CREATE TABLE asked (round INTEGER NOT NULL REFERENCES rounds,"
    " rank INTEGER NOT NULL, row INTEGER NOT NULL REFERENCES samples,"
    " prediction TEXT, PRIMARY KEY (round, rank), UNIQUE (round, row)) STRICT",
    "votes": "CREATE TABLE votes (number INTEGER PRIMARY KEY,"
    " row INTEGER NOT NULL REFERENCES samples, annotator TEXT NOT NULL, label TEXT,"
    " ground_truth INTEGER NOT NULL, time TEXT NOT NULL, round INTEGER,"
    " source TEXT NOT NULL) STRICT",
    "votes_of_rows": "CREATE INDEX votes_of_rows ON votes (row)",
}


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


class LabelStore:
    """All labels of a pool, in a file.

    Make a new file with :meth:`create`; the constructor opens one.

    Parameters
    ----------
    path : str or path-like
        The file.

    Attributes
    ----------
    ids, domains : ndarray of shape (n_samples,)
        Of each sample, in the order of the pool's rows.
    classes : list of str or None
        All classes, if they were declared.
    about : dict
        What was written with the file when it was made.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mdal.labels import LabelStore, Vote
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.sqlite")
    ...     LabelStore.create(path, ["s1", "s2"], ["shop", "ward"])
    ...     with LabelStore(path) as store:
    ...         print(store.add([Vote("s2", "cat", "Ann"), Vote("s1", None, "Ann")]))
    ...         print(store.add([Vote("s2", "cat", "Ann")]))  # nothing new
    ...         print(store.y_mask().tolist(), store.skipped().tolist())
    2
    0
    [None, 'cat'] [True, False]
    """

    def __init__(self, path):
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(
                f"{path} does not exist; pass a file that LabelStore.create made"
            )
        self._connection = _opened(self.path)
        try:
            self.about, self.classes = _checked(self._connection, self.path)
            found = self._rows("SELECT id, domain FROM samples ORDER BY row")
        except BaseException:
            self.close()
            raise
        self.ids = np.array([id for id, _ in found], dtype=object)
        self.domains = np.array([domain for _, domain in found], dtype=object)
        self._row = {id: row for row, id in enumerate(self.ids)}

    @classmethod
    def create(
        cls,
        path,
        ids: Sequence[str],
        domains: Sequence[str],
        *,
        classes: Sequence[str] | None = None,
        shown: Sequence[str] | None = None,
        votes: Iterable[Vote] = (),
        about: Mapping | None = None,
    ) -> None:
        """Make a file for a pool; it appears as a whole or not at all.

        Parameters
        ----------
        path : str or path-like
            Where. There must be no file yet.
        ids, domains : sequence of str
            Id and domain of each sample; ids are all different.
        classes : sequence of str, default=None
            All classes that there can be: any other label is an error.
        shown : sequence of str, default=None
            What people see of each sample: a text, or the address of an image.
        votes : iterable of Vote, default=()
            What is known from the start.
        about : mapping, default=None
            Anything else to keep with the labels, as JSON.
        """
        path = Path(path)
        for file in (path, Path(f"{path}-journal")):
            if file.exists():
                raise FileExistsError(
                    f"{file} is there already; open what is there, or choose another "
                    "place"
                )
        ids, domains = check_ids(ids), [check_name(d, "domain") for d in domains]
        shown = [""] * len(ids) if shown is None else [str(text) for text in shown]
        if not len(ids) == len(domains) == len(shown):
            raise ValueError(
                f"there are {len(ids)} ids, {len(domains)} domains and {len(shown)} "
                "texts; pass one of each for every sample"
            )
        meta = {
            "about": json.dumps(dict(about or {}), allow_nan=False),
            "classes": json.dumps(None if classes is None else check_classes(classes)),
        }
        temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
        try:
            connection = _opened(temporary)
            with _transaction(connection, temporary):
                for statement in _SCHEMA.values():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
                connection.executemany(
                    "INSERT INTO samples VALUES (?, ?, ?, ?)",
                    zip(range(len(ids)), ids, domains, shown, strict=True),
                )
            connection.close()
            with cls(temporary) as store:
                store.add(votes, source="known from the start")
            _put(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self.ids)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Close the file, for others to open."""
        self._connection.close()

    def add(self, votes: Iterable[Vote], *, source: str = "") -> int:
        """Add votes, all or none, and return how many of them are new.

        A vote that says what the same annotator said of the sample before is not new,
        so that a file can be imported again. A vote that says something else is kept
        beside the older one and counts instead of it.

        Parameters
        ----------
        votes : iterable of Vote
            The votes; of samples in the pool, with declared classes.
        source : str, default=""
            Where they come from, for the record.

        Returns
        -------
        int
        """
        now = _now()
        checked = [self._checked(Vote(*vote), now) for vote in votes]
        rounds = {row: each.number for each in self.rounds() for row in each.rows}
        new = 0
        with _transaction(self._connection, self.path):
            for row, vote, timed in checked:
                if self._is_known(row, vote, timed):
                    continue
                self._connection.execute(
                    "INSERT INTO votes (row, annotator, label, ground_truth, time, "
                    "round, source) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(row, vote.annotator, vote.label, int(vote.ground_truth)),
                        *(vote.time, rounds.get(row), source),
                    ),
                )
                new += 1
        return new

    def _checked(self, vote: Vote, now: str) -> tuple[int, Vote, bool]:
        """Return the row of a vote, the vote, and whether it says when it was given."""
        row = self._row.get(vote.id)
        if row is None:
            raise ValueError(
                f"there is no sample with id {vote.id!r:.80}; nothing was imported: "
                "remove it, or import into the session that it belongs to"
            )
        if not isinstance(vote.annotator, str):
            raise TypeError(f"annotator={vote.annotator!r} of {vote.id!r} is no string")
        if vote.label is not None:
            check_name(vote.label, f"the label of {vote.id!r}")
            if self.classes is not None and vote.label not in self.classes:
                raise ValueError(
                    f"sample {vote.id!r} has the label {vote.label!r:.80}, and classes "
                    f"are {', '.join(self.classes)}; nothing was imported: correct it"
                )
        time = now if vote.time is None else check_time(vote.time, vote.id)
        return row, vote._replace(time=time), vote.time is not None

    def _is_known(self, row: int, vote: Vote, timed: bool) -> bool:
        """Return whether an annotator has said the same at that time, or last."""
        said = self._rows(
            "SELECT label, ground_truth, time FROM votes WHERE row = ? AND "
            "annotator = ? ORDER BY time, number",
            (row, vote.annotator),
        )
        if timed:
            said = [each for each in said if each[2] == vote.time]
        return bool(said) and said[-1][:2] == (vote.label, int(vote.ground_truth))

    def votes(self) -> list[dict]:
        """Return every vote ever given, in the order of import.

        Returns
        -------
        list of dict
            With ``id``, ``domain``, ``label``, ``annotator``, ``time``,
            ``ground_truth``, ``round`` and ``source``.
        """
        found = self._rows(
            "SELECT id, domain, label, annotator, time, ground_truth, round, source "
            "FROM votes JOIN samples USING (row) ORDER BY number"
        )
        names = ("id", "domain", "label", "annotator", "time", "ground_truth")
        return [
            {
                **dict(zip((*names, "round", "source"), vote, strict=True)),
                "ground_truth": bool(vote[5]),
            }
            for vote in found
        ]

    def y_mask(self, rule: str = "raise") -> NDArray:
        """Return one label for each sample, None where there is none.

        The last vote of each annotator counts. A ground truth decides; otherwise all
        who have not skipped the sample must agree, or `rule` decides.

        Parameters
        ----------
        rule : {"raise", "majority", "latest", "leave"}, default="raise"
            If annotators disagree: an error that names the samples; the class that most
            of them say (no label if two have as many); the last vote; or no label.

        Returns
        -------
        ndarray of shape (n_samples,)
            Of strings and None.
        """
        check_option(rule, "rule", RULES)
        labels, disputed = np.full(len(self), None, dtype=object), []
        for row, votes in self.standing().items():
            labels[row], agreed = _decided(votes, rule)
            if not agreed:
                disputed.append(self.ids[row])
        if disputed and rule == "raise":
            raise ValueError(
                f"annotators disagree on {len(disputed)} samples: "
                f"{', '.join(disputed[:10])}{', ...' if len(disputed) > 10 else ''}; "
                "choose the rule majority, latest or leave, or import votes that are "
                "ground truth"
            )
        return labels

    def standing(self) -> dict[int, list[Vote]]:
        """Return the votes that count: the last one of each annotator.

        Returns
        -------
        dict of int to list of Vote
            By row, for samples that have votes, the latest vote last.
        """
        last = {}
        for row, annotator, label, truth, time in self._rows(
            "SELECT row, annotator, label, ground_truth, time FROM votes "
            "ORDER BY time, number"
        ):
            votes = last.setdefault(row, {})
            votes.pop(annotator, None)
            votes[annotator] = Vote(self.ids[row], label, annotator, time, bool(truth))
        return {row: list(votes.values()) for row, votes in last.items()}

    def answered(self) -> NDArray:
        """Return whether each sample has a vote, be it that it was skipped.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
        """
        mask = np.zeros(len(self), dtype=bool)
        mask[list(self.standing())] = True
        return mask

    def skipped(self) -> NDArray:
        """Return whether each sample was looked at and has no label.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
        """
        mask = np.zeros(len(self), dtype=bool)
        for row, votes in self.standing().items():
            mask[row] = all(vote.label is None for vote in votes)
        return mask

    def add_round(self, rows, predictions=None, *, about: Mapping | None = None) -> int:
        """Write down which samples are asked for next, and return the round's number.

        Parameters
        ----------
        rows : sequence of int
            Rows of the pool, in the order of their importance.
        predictions : sequence of (str or None), default=None
            What the classifier takes them for.
        about : mapping, default=None
            Anything else to keep with the round, as JSON.

        Returns
        -------
        int
            The first is 0.
        """
        rows = [int(row) for row in rows]
        if len(set(rows)) < len(rows) or not set(rows) <= set(range(len(self))):
            raise ValueError(
                f"rows={rows!r:.80}; pass different row numbers below {len(self)}"
            )
        predictions = [None] * len(rows) if predictions is None else list(predictions)
        ((number,),) = self._rows("SELECT count(*) FROM rounds")
        text = json.dumps(dict(about or {}), allow_nan=False)
        with _transaction(self._connection, self.path):
            self._connection.execute(
                "INSERT INTO rounds VALUES (?, ?, ?)", (number, _now(), text)
            )
            self._connection.executemany(
                "INSERT INTO asked VALUES (?, ?, ?, ?)",
                [
                    (number, rank, row, prediction)
                    for rank, (row, prediction) in enumerate(
                        zip(rows, predictions, strict=True), start=1
                    )
                ],
            )
        return number

    def rounds(self) -> list[Asked]:
        """Return all rounds.

        Returns
        -------
        list of Asked
        """
        asked = {}
        for number, row, prediction in self._rows(
            "SELECT round, row, prediction FROM asked ORDER BY round, rank"
        ):
            asked.setdefault(number, []).append((row, prediction))
        return [
            Asked(
                number,
                [row for row, _ in asked.get(number, [])],
                [prediction for _, prediction in asked.get(number, [])],
                json.loads(about),
                time,
            )
            for number, time, about in self._rows(
                "SELECT number, time, about FROM rounds ORDER BY number"
            )
        ]

    def shown(self, rows) -> list[str]:
        """Return what people see of some samples.

        Parameters
        ----------
        rows : sequence of int
            Rows of the pool.

        Returns
        -------
        list of str
        """
        return [
            self._rows("SELECT shown FROM samples WHERE row = ?", (int(row),))[0][0]
            for row in rows
        ]

    def check_integrity(self) -> None:
        """Raise an error if the file is damaged, by SQLite's own full check."""
        found = self._rows("PRAGMA integrity_check")
        found += self._rows("PRAGMA foreign_key_check")
        if found != [("ok",)]:
            raise ValueError(f"{self.path} is damaged: {found[0]}; use a copy of it")

    def _rows(self, statement: str, values=()) -> list[tuple]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise _named(error, self.path) from error


def _decided(votes: list[Vote], rule: str) -> tuple[str | None, bool]:
    """Return the label that votes give a sample, and whether they agree on it."""
    truths = [v.label for v in votes if v.ground_truth and v.label is not None]
    labels = truths[-1:] or [v.label for v in votes if v.label is not None]
    if len(set(labels)) <= 1:
        return (labels[-1] if labels else None), True
    if rule == "latest":
        return labels[-1], False
    (first, n), (_, m), *_ = Counter(labels).most_common()
    return (first if rule == "majority" and n > m else None), False


def _put(temporary: Path, path: Path) -> None:
    """Move a file to a place where there must be none, whoever comes in between."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise FileExistsError(f"{path} was made in between; open it") from None
    except OSError:  # a disk without links
        os.replace(temporary, path)


def check_name(value, what: str) -> str:
    """Return a name that every tool can keep: printable, and no formula."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r:.80}; pass a string")
    if not value.strip() or not value.isprintable():
        raise ValueError(f"{what} is {value!r:.80}; pass a printable name")
    if is_formula(value):
        raise ValueError(
            f"{what} is {value!r:.80}, which a spreadsheet would run as a formula; "
            "let it begin with a letter or a digit"
        )
    return value


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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _opened(path: Path) -> sqlite3.Connection:
    """Return a connection that nobody else can have at the same time."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        for setting in (
            "trusted_schema = OFF",
            "foreign_keys = ON",
            "locking_mode = EXCLUSIVE",
            "journal_mode = DELETE",
            "synchronous = EXTRA",
        ):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _named(error, path) from error
    return connection


def _checked(connection, path: Path) -> tuple[dict, list | None]:
    """Return what a file says about itself, if it is one of ours and undamaged."""
    unknown = f"{path} is no label store of this library, or damaged; use a copy of it"
    try:
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((written,),) = connection.execute("PRAGMA user_version").fetchall()
        if application != _APPLICATION:
            raise ValueError(unknown)
        if written > FORMAT:
            raise ValueError(
                f"{path} has format {written} of a newer version of mdal; this one "
                f"reads formats up to {FORMAT}: upgrade it"
            )
        schema = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        if dict(connection.execute(schema).fetchall()) != _SCHEMA:
            raise ValueError(unknown)
        if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise ValueError(unknown)
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        about, classes = json.loads(meta["about"]), json.loads(meta["classes"])
        rounds = connection.execute("SELECT about FROM rounds").fetchall()
        tables = [about, *(json.loads(text) for (text,) in rounds)]
        if not all(isinstance(part, dict) for part in tables):
            raise ValueError(unknown)
        return about, None if classes is None else check_classes(classes)
    except (sqlite3.DatabaseError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(unknown) from error
    except json.JSONDecodeError as error:
        raise ValueError(unknown) from error


@contextmanager
def _transaction(connection, path: Path):
    """Write all or nothing."""
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.DatabaseError):
            raise _named(error, path) from error
        raise


def _named(error: sqlite3.DatabaseError, path: Path) -> Exception:
    """Return an error that says what to do."""
    text = str(error)
    if "locked" in text:
        return BlockingIOError(
            f"another process is using {path}; wait until it has finished"
        )
    if "full" in text:
        return OSError(
            f"the disk is full; nothing was written to {path}, and all labels in it "
            "are as they were: make room and do it again"
        )
    if "readonly" in text or "unable to open" in text:
        return PermissionError(f"{path} cannot be written: {text}")
    if "disk I/O" in text:
        return OSError(f"{path} cannot be read or written: {text}")
    return ValueError(
        f"{path} is no label store of this library, or damaged ({text}); use a copy"
    )
