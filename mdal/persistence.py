"""Files without code: tensors in the safetensors format, with a JSON header.

One file has arrays (weights, labels) and plain values (parameters, names) for any part
of the library. Reading one can execute nothing. A file is written beside its place and
then moved there, so it is there as a whole or not at all.
"""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ._version import __version__

__all__ = ["is_plain", "load", "names", "plain_names", "save"]

FORMAT = 1


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
        Plain values: None, booleans, finite numbers, strings, and lists and dicts of
        them.

    Examples
    --------
    >>> import os, tempfile, torch
    >>> from mdal.persistence import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "state.safetensors")
    ...     save(path, "example", {"a": torch.ones(2)}, {"names": ["x", "y"]})
    ...     load(path, "example")
    ({'a': tensor([1., 1.])}, {'names': ['x', 'y']})
    """
    path = Path(path)
    text = json.dumps(
        {"format": FORMAT, "kind": kind, "mdal": __version__, "header": header},
        allow_nan=False,
    )
    # Each tensor in memory of its own, as the format wants it.
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in tensors.items()
    }
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        save_file(tensors, temporary, metadata={"mdal": text})
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


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
        The plain values.

    Examples
    --------
    See :func:`save`.

    >>> from mdal.persistence import load
    >>> load("README.md", "net")
    Traceback (most recent call last):
    ...
    ValueError: README.md is not a file of this library; pass one that save wrote
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a file that save wrote")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("mdal")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        found = json.loads(text)
        written, file_kind, header = found["format"], found["kind"], found["header"]
    except (SafetensorError, TypeError, KeyError, ValueError) as error:
        raise ValueError(
            f"{path} is not a file of this library; pass one that save wrote"
        ) from error
    if written > FORMAT:
        raise ValueError(
            f"{path} has format {written}, written by mdal {found.get('mdal')}; this "
            f"is mdal {__version__}, which reads formats up to {FORMAT}: upgrade it"
        )
    if file_kind != kind:
        raise ValueError(f"{path} holds a {file_kind!r}; pass a file with a {kind!r}")
    return tensors, header


def is_plain(value) -> bool:
    """Tell whether a value survives JSON: what is read back is what was written.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    bool

    Examples
    --------
    >>> from mdal.persistence import is_plain
    >>> is_plain({"width": 64, "betas": [0.9, 0.99]}), is_plain((1, 2)), is_plain(print)
    (True, False, False)
    """
    try:
        back = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return False
    return type(back) is type(value) and back == value


def plain_names(names: NDArray) -> dict:
    """Return an array of names (numbers, strings, tuples of them) as plain values.

    Parameters
    ----------
    names : ndarray of shape (n,)
        Of classes or domains.

    Returns
    -------
    dict
        For :func:`names`.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.persistence import plain_names
    >>> plain_names(np.array(["a", "b"]))
    {'dtype': '<U1', 'values': ['a', 'b']}
    """
    values = names.tolist()
    for value in values:
        if not is_plain(list(value) if isinstance(value, tuple) else value):
            raise TypeError(
                f"the name {value!r} of type {type(value).__name__} cannot be saved; "
                "use numbers, strings or tuples of them as names"
            )
    return {"dtype": names.dtype.str, "values": values}


def names(plain: dict) -> NDArray:
    """Return the array of names that :func:`plain_names` was given.

    Parameters
    ----------
    plain : dict
        From :func:`plain_names`.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from mdal.persistence import names
    >>> names({"dtype": "<U1", "values": ["a", "b"]})
    array(['a', 'b'], dtype='<U1')
    """
    values = plain["values"]
    if np.dtype(plain["dtype"]) != object:
        return np.array(values, dtype=plain["dtype"])
    array = np.empty(len(values), dtype=object)
    array[:] = [tuple(v) if isinstance(v, list) else v for v in values]
    return array
