"""Files without code: tensors in the safetensors format, with a JSON header.

One file has arrays (weights, labels) and plain values (parameters, names) for any part
of the library. Reading one can execute nothing. A file is written beside its place and
then moved there, so it is there as a whole or not at all.
"""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from ._atomic import write_whole
from ._version import __version__

__all__ = ["from_plain", "load", "save", "to_plain"]

FORMAT = 1

# The header is a tensor of bytes: safetensors' own has a limit.
_HEADER = "mdal_header"


def save(path, kind: str, tensors: dict[str, torch.Tensor], header: dict) -> None:
    """Write tensors and plain values to one file.

    Parameters
    ----------
    path : str or path-like
        Where to write; an existing file is replaced.
    kind : str
        What the file is, which :func:`load` checks.
    tensors : dict of str to Tensor
        The arrays.
    header : dict
        Everything else: what :func:`to_plain` takes.

    Examples
    --------
    >>> import os, tempfile, torch
    >>> from mdal.persistence import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "state.safetensors")
    ...     save(path, "example", {"a": torch.ones(2)}, {"names": ("x", "y")})
    ...     load(path, "example")
    ({'a': tensor([1., 1.])}, {'names': ('x', 'y')})
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it first")
    text = json.dumps(to_plain(header), allow_nan=False)
    # Each tensor in memory of its own, as the format wants it.
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in tensors.items()
    }
    tensors[_HEADER] = torch.tensor(bytearray(text.encode()), dtype=torch.uint8)
    metadata = {"format": str(FORMAT), "kind": kind, "mdal": __version__}
    metadata["sha256"] = _digest(tensors)
    write_whole(path, safetensors.torch.save(tensors, metadata))


def load(path, kind: str) -> tuple[dict[str, torch.Tensor], dict]:
    """Read tensors and plain values from a file that :func:`save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str
        What it is expected to be.

    Returns
    -------
    tensors : dict of str to Tensor
        On the CPU.
    header : dict
        Everything else.

    Examples
    --------
    See :func:`save`.

    >>> from mdal.persistence import load
    >>> load("no/such/file", "net")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no/such/file does not exist; pass a file that save wrote
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a file that save wrote")
    unknown = (
        f"{path} is not a file of this library, or damaged; pass one that save wrote"
    )
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            written, found = int(metadata["format"]), metadata["kind"]
            if written > FORMAT:
                raise _Newer
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if _digest(tensors) != metadata["sha256"]:
            raise ValueError(unknown)
        header = from_plain(json.loads(bytes(tensors.pop(_HEADER).tolist())))
    except _Newer:
        raise ValueError(
            f"{path} has format {written}, written by mdal {metadata.get('mdal')}; "
            f"mdal {__version__} reads formats up to {FORMAT}: upgrade it"
        ) from None
    except (
        *(SafetensorError, TypeError, KeyError, ValueError, MemoryError),
        RecursionError,
    ) as error:
        raise ValueError(unknown) from error
    if not isinstance(header, dict):
        raise ValueError(unknown)
    if found != kind:
        raise ValueError(f"{path} holds a {found!r}; pass a file with a {kind!r}")
    return tensors, header


class _Newer(Exception):
    """A file is of a format that is not known yet."""


def _digest(tensors: dict[str, torch.Tensor]) -> str:
    """Return a hash of tensors and their names, which a damaged file does not have."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def to_plain(value):
    """Return a value as JSON can hold it, so that :func:`from_plain` gives it back.

    Parameters
    ----------
    value : object
        None, a boolean, a number, a string, an array of them, or a list, tuple or
        dict (with strings as keys) of such values. NumPy's numbers become Python's.

    Returns
    -------
    object
        Of lists, dicts, strings, finite numbers, booleans and None.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.persistence import to_plain
    >>> to_plain({"betas": (0.9, 0.99), "width": np.int64(64)})
    {'betas': {'$tuple': [0.9, 0.99]}, 'width': 64}
    >>> to_plain(np.array(["a", "b"]))
    {'$array': ['a', 'b'], 'dtype': '<U1', 'shape': [2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, np.ndarray):
        return {
            "$array": to_plain(value.ravel().tolist()),
            "dtype": value.dtype.str,
            "shape": list(value.shape),
        }
    if type(value) is tuple:
        return {"$tuple": to_plain(list(value))}
    if isinstance(value, list):
        return [to_plain(part) for part in value]
    if isinstance(value, dict) and all(
        isinstance(key, str) and not key.startswith("$") for key in value
    ):
        return {key: to_plain(part) for key, part in value.items()}
    raise TypeError(
        f"{value!r} of type {type(value).__name__} cannot be written to a file; use "
        "numbers, strings, arrays, and lists, tuples or dicts of them"
    )


def from_plain(value):
    """Return the value that :func:`to_plain` was given.

    Parameters
    ----------
    value : object
        From :func:`to_plain`.

    Returns
    -------
    object

    Examples
    --------
    >>> from mdal.persistence import from_plain
    >>> from_plain({"$tuple": [1, 2]})
    (1, 2)
    """
    if isinstance(value, list):
        return [from_plain(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$tuple" in value:
        return tuple(from_plain(value["$tuple"]))
    if "$array" in value:
        array = np.empty(len(value["$array"]), dtype=value["dtype"])
        array[:] = from_plain(value["$array"])
        return array.reshape(value["shape"])
    return {key: from_plain(part) for key, part in value.items()}
