"""Records on disk: a folder for each configuration, a file for each seed."""

import json
import os
from pathlib import Path

from .._atomic import write_whole
from ._config import config_hash

_CONFIG = "config.json"


def run_folder(folder, config: dict) -> Path:
    """Return the folder of a configuration."""
    return Path(folder) / config_hash(config)


def seed_file(folder, config: dict, seed: int) -> Path:
    """Return the file that has one record a line, one for each round."""
    return run_folder(folder, config) / f"seed-{seed}.jsonl"


def write_config(folder, config: dict) -> None:
    """Write a configuration beside its records; as a whole or not at all."""
    path = run_folder(folder, config) / _CONFIG
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(config, indent=1) + "\n").encode())


def append(path: Path, record: dict) -> None:
    """Add a record to a file; when this returns it is on the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def rounds_in(path: Path) -> list[dict]:
    """Return the whole records of a file: a kill may have cut off the last line."""
    if not path.exists():
        return []
    *lines, rest = path.read_text(encoding="utf-8").split("\n")
    del rest  # empty, or a line without an end
    return [json.loads(line) for line in lines]


def n_rounds_in(path: Path) -> int:
    """Return how many whole records a file has, without reading what they say."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def forget_unfinished_line(path: Path) -> None:
    """Cut a line without an end off a file."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)


def read_records(folder) -> list[dict]:
    """Return all records in a folder, each with the name of its method.

    Parameters
    ----------
    folder : str or path-like
        Where :func:`run` has written, or a folder of such folders.

    Returns
    -------
    list of dict
        One for each round of each run, by name, seed and round: ``name``, ``seed``,
        ``round``, ``labels``, ``accuracy``, ``by_domain``, ``spent`` (labels by
        domain), ``budget`` (labels of the next round by domain), ``rows`` (those of
        the training part that were picked for it), ``alpha``, ``bound``, ``seconds``
        (``fit`` is None where another method had trained the same net), ``versions``
        and ``config`` (the hash of the configuration).

    Examples
    --------
    >>> from mdal.experiment import read_records
    >>> read_records("no/such/folder")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no/such/folder does not exist; pass a folder of records
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; pass a folder of records")
    found = []
    for path in sorted(folder.rglob(_CONFIG)):
        config = json.loads(path.read_text(encoding="utf-8"))
        for seed in sorted(path.parent.glob("seed-*.jsonl")):
            for record in rounds_in(seed):
                found.append(
                    {"name": config["name"], "config": path.parent.name, **record}
                )
    return sorted(found, key=lambda r: (r["name"], r["seed"], r["round"]))
