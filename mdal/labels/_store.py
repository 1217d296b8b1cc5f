"""The labels of a pool: samples, rounds and votes."""

import json
import sqlite3
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._sheets import check_name
from .._validation import check_option
from ._sqlite import (
    APPLICATION,
    FORMAT,
    SCHEMA,
    checked,
    named,
    opened,
    put,
    transaction,
)
from ._votes import (
    RULES,
    Asked,
    Vote,
    check_annotator,
    check_classes,
    check_ids,
    check_time,
    decided,
    now,
)


def _round(row: int, vote: Vote, asked: set, last: dict) -> int | None:
    """Return the round that a vote says, if it asked for the sample, or the last."""
    return vote.round if (row, vote.round) in asked else last.get(row)


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
        self._connection = opened(self.path)
        try:
            self.about, self.classes = checked(self._connection, self.path)
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
            connection = opened(temporary)
            with transaction(connection, temporary):
                for statement in SCHEMA.values():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
                connection.executemany(
                    "INSERT INTO samples VALUES (?, ?, ?, ?)",
                    zip(range(len(ids)), ids, domains, shown, strict=True),
                )
            connection.close()
            with cls(temporary) as store:
                store.add(votes, source="known from the start")
            put(temporary, path)
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

    def add(
        self, votes: Iterable[Vote], *, source: str = "", digest: str | None = None
    ) -> int:
        """Add votes, all or none, and return how many of them are new.

        A vote that says what the same annotator last said of the sample is not new, nor
        is one that has a time and was given before. A vote that says something else is
        kept beside the older ones and counts instead of them.

        Parameters
        ----------
        votes : iterable of Vote
            The votes; of samples in the pool, with declared classes.
        source : str, default=""
            Where they come from, for the record.
        digest : str, default=None
            A hash of what they come from. What was added under the same one adds
            nothing, even if people have changed their minds since.

        Returns
        -------
        int
        """
        moment = now()
        votes = [self._checked(Vote(*vote), moment) for vote in votes]
        asked = {(row, each.number) for each in self.rounds() for row in each.rows}
        last = dict(sorted(asked))
        new = 0
        with transaction(self._connection, self.path):
            if digest is not None and not self._is_first(digest, source, moment):
                return 0
            for row, vote, timed in votes:
                if self._is_known(row, vote, timed):
                    continue
                self._connection.execute(
                    "INSERT INTO votes (row, annotator, label, ground_truth, time, "
                    "round, source) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(row, vote.annotator, vote.label, int(vote.ground_truth)),
                        *(vote.time, _round(row, vote, asked, last), source),
                    ),
                )
                new += 1
        return new

    def _checked(self, vote: Vote, moment: str) -> tuple[int, Vote, bool]:
        """Return the row of a vote, the vote, and whether it says when it was given."""
        row = self._row.get(vote.id)
        if row is None:
            raise ValueError(
                f"there is no sample with id {vote.id!r:.80}; nothing was imported: "
                "remove it, or import into the session that it belongs to"
            )
        check_annotator(vote.annotator, vote.id)
        if vote.label is not None:
            check_name(vote.label, f"the label of {vote.id!r}")
            if self.classes is not None and vote.label not in self.classes:
                raise ValueError(
                    f"sample {vote.id!r} has the label {vote.label!r:.80}, and classes "
                    f"are {', '.join(self.classes)}; nothing was imported: correct it"
                )
        time = moment if vote.time is None else check_time(vote.time, vote.id)
        return row, vote._replace(time=time), vote.time is not None

    def _is_known(self, row: int, vote: Vote, timed: bool) -> bool:
        """Return whether an annotator has said the same at that time, or last."""
        said = self._rows(
            "SELECT label, ground_truth, time FROM votes WHERE row = ? AND "
            "annotator = ? ORDER BY time, number",
            (row, vote.annotator),
        )
        here = (vote.label, int(vote.ground_truth))
        if timed:
            return (*here, vote.time) in said
        return bool(said) and said[-1][:2] == here

    def _is_first(self, digest: str, source: str, moment: str) -> bool:
        """Write down what is imported, and return whether it is for the first time."""
        written = self._connection.execute(
            "INSERT OR IGNORE INTO imports VALUES (?, ?, ?)", (digest, source, moment)
        )
        return written.rowcount == 1

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
            labels[row], agreed = decided(votes, rule)
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
        for row, label, annotator, time, truth, round in self._rows(
            "SELECT row, label, annotator, time, ground_truth, round FROM votes "
            "ORDER BY time, number"
        ):
            votes = last.setdefault(row, {})
            votes.pop(annotator, None)
            votes[annotator] = Vote(
                self.ids[row], label, annotator, time, bool(truth), round
            )
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
        with transaction(self._connection, self.path):
            self._connection.execute(
                "INSERT INTO rounds VALUES (?, ?, ?)", (number, now(), text)
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
            raise named(error, self.path) from error
