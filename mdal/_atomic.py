"""Files that are there as a whole or not at all."""

import os
import re
import uuid
from contextlib import suppress
from pathlib import Path


def write_whole(path, content: bytes) -> None:
    """Write a file beside its place, wait for the disk, and move it there."""
    path = Path(path)
    temporary = beside(path)
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        why = error.strerror or error
        raise type(error)(
            f"{path} cannot be written ({why}); what was there is as it was"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """Return a hidden name in the same folder that nobody else has."""
    return path.parent / f".{path.name}.{uuid.uuid4().hex}"


def remove_unfinished(path: Path) -> None:
    """Remove what kills have left of a file that was being written, and its journal."""
    name = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{32}(-journal)?")
    for file in path.parent.iterdir():
        if name.fullmatch(file.name):
            file.unlink(missing_ok=True)
