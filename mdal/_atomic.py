"""Files that are there as a whole or not at all."""

import os
import uuid
from pathlib import Path


def write_whole(path, content: bytes) -> None:
    """Write a file beside its place, wait for the disk, and move it there."""
    path = Path(path)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
