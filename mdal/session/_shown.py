"""Samples as people see them: the images behind addresses, or drawn from numbers."""

import base64
import io
import mimetypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._pools import image_file


def check_shown(X: NDArray, settings: Mapping, shown) -> None:
    """Raise an error if samples do not suit the net, or cannot be shown."""
    if settings["net"] != "composite" and X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}, and net={settings['net']!r} takes two dimensions; "
            "flatten it, or choose net='composite'"
        )
    if X.ndim == 4 and X.shape[3] in (1, 3, 4) and X.shape[1] > 4:
        raise ValueError(
            f"X has shape {X.shape}; pass channels first: X.transpose(0, 3, 1, 2)"
        )
    if settings["kind"] == "image" and (shown is None or "" in shown):
        if X.ndim not in (3, 4):
            raise ValueError(f"X has shape {X.shape}; pass images, or their addresses")
        drawn(X[0])
    elif settings["kind"] == "image":
        for address in shown:
            if not _is_elsewhere(address):
                image_file(address, Path(settings["images"]))


def _is_elsewhere(address: str) -> bool:
    return "://" in address or address.startswith("data:image/")


def embedded(address: str, folder: str) -> str:
    """Return an image's address, or the image itself where it is a file."""
    if _is_elsewhere(address):
        return address
    path = image_file(address, Path(folder))
    kind = mimetypes.guess_type(path.name)[0] or "image/png"
    return _address(path.read_bytes(), kind)


def drawn(sample: NDArray) -> str:
    """Return a sample of two or three dimensions as an image."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images need Pillow; install mdal-learn[session]") from None
    low, high = float(sample.min()), float(sample.max())
    grey = np.uint8(255 * (sample - low) / ((high - low) or 1.0))
    if grey.ndim == 3:
        grey = grey.transpose(1, 2, 0)
        grey = grey if grey.shape[2] == 3 else grey[:, :, 0]
    content = io.BytesIO()
    Image.fromarray(grey).resize((224, 224)).save(content, "PNG")
    return _address(content.getvalue(), "image/png")


def _address(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
