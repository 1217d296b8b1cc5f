"""Files of a data set: where they are, and whether they are the right ones."""

import gzip
import hashlib
import os
import zlib
from pathlib import Path


def data_folder(data_home) -> Path:
    """Return the folder that `data_home` stands for, without making it."""
    if data_home is None:
        # scikit-learn's own function would make the folder.
        home = os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")
        data_home = Path(home) / "mdal"
    return Path(data_home).expanduser()


def located(folders, names) -> Path | None:
    """Return the first of the files that is in one of the folders."""
    paths = (folder / name for folder in folders for name in names)
    return next((path for path in paths if path.is_file()), None)


def content(path: Path) -> bytes:
    """Return what a file holds, unzipped if its name ends in .gz."""
    packed = path.read_bytes()
    if path.suffix != ".gz":
        return packed
    try:
        return gzip.decompress(packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} cannot be unzipped ({error}); it is damaged: get it again"
        ) from error


def verified(data: bytes, sha256: str, origin) -> bytes:
    """Return the data if they have this SHA-256."""
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{origin} has SHA-256 {found} (unzipped), expected {sha256}; it is "
            "damaged or another version: get it again"
        )
    return data


def missing(what: str, names, folder: Path, remedy: str) -> FileNotFoundError:
    """Return the error that files are not in a folder."""
    return FileNotFoundError(
        f"{what} is incomplete in {folder}: no {', '.join(names)}; {remedy}"
    )
