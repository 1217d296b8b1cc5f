"""The file of a label store: whole or not there, and open in one process only."""

import json
import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path

from ._votes import check_classes

FORMAT = 1
APPLICATION = 0x6D64616C  # "mdal", by which SQLite tells files apart
SCHEMA = {
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
    "imports": "CREATE TABLE imports (digest TEXT PRIMARY KEY, source TEXT NOT NULL,"
    " time TEXT NOT NULL) STRICT",
    "votes_of_rows": "CREATE INDEX votes_of_rows ON votes (row)",
}


def put(temporary: Path, path: Path) -> None:
    """Move a file to a place where there must be none, whoever comes in between."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise FileExistsError(f"{path} was made in between; open it") from None
    except OSError:  # a disk without links
        os.replace(temporary, path)


def opened(path: Path) -> sqlite3.Connection:
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
        raise named(error, path) from error
    return connection


def checked(connection, path: Path) -> tuple[dict, list | None]:
    """Return what a file says about itself, if it is one of ours and undamaged."""
    unknown = f"{path} is no label store of this library, or damaged; use a copy of it"
    try:
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((written,),) = connection.execute("PRAGMA user_version").fetchall()
        if application != APPLICATION:
            raise ValueError(unknown)
        if written > FORMAT:
            raise ValueError(
                f"{path} has format {written} of a newer version of mdal; this one "
                f"reads formats up to {FORMAT}: upgrade it"
            )
        schema = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        if dict(connection.execute(schema).fetchall()) != SCHEMA:
            raise ValueError(unknown)
        if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise ValueError(unknown)
        if connection.execute("PRAGMA foreign_key_check").fetchall():
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
def transaction(connection, path: Path):
    """Write all or nothing."""
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.DatabaseError):
            raise named(error, path) from error
        raise


def named(error: sqlite3.DatabaseError, path: Path) -> Exception:
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
