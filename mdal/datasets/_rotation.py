"""Rotated images, and the ranges of angles that make their domains."""

import re
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.nn import functional

from .._validation import check_finite

_BLOCK = 5000  # images at a time: a grid takes twice the memory of its image
_PAIRS = {
    "D1&5": [(0, 2), (86, 88), (88, 90), (90, 92), (92, 94), (94, 96)],
    "D3&3": [(0, 2), (2, 4), (4, 6), (90, 92), (92, 94), (94, 96)],
}


def rotated(images: ArrayLike, degrees: ArrayLike) -> NDArray[np.float32]:
    """Rotate each image about its centre, with bilinear interpolation.

    Parameters
    ----------
    images : array-like of shape (n_images, size, size) or \
(n_images, n_channels, size, size)
        Square images. Bytes are divided by 255, other numbers are left as they are.
    degrees : array-like of shape (n_images,)
        Angle of each, counterclockwise with the first row on top.

    Returns
    -------
    ndarray of shape (n_images, n_channels, size, size), float32
        What comes from outside of an image is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.datasets import rotated
    >>> image = np.array([[0, 255], [0, 0]], dtype=np.uint8)
    >>> rotated([image, image], [0, 90]).round(3)[:, 0] + 0.0
    array([[[0., 1.],
            [0., 0.]],
    <BLANKLINE>
           [[1., 0.],
            [0., 0.]]], dtype=float32)
    """
    images = np.asarray(images)
    if images.ndim == 3:
        images = images[:, None]
    if images.ndim != 4 or images.shape[2] != images.shape[3]:
        raise ValueError(
            f"images has shape {images.shape}; pass square images of shape "
            "(n, size, size) or (n, channels, size, size)"
        )
    images = check_finite(images, "images", images.shape)
    degrees = check_finite(degrees, "degrees", (len(images),))
    result = np.empty(images.shape, dtype=np.float32)
    for start in range(0, len(images), _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = _turned(images[block], degrees[block])
    return result


def _turned(images: NDArray, degrees: NDArray) -> NDArray:
    pixels = torch.tensor(images).float()
    if images.dtype == np.uint8:
        pixels /= 255
    angles = torch.tensor(np.deg2rad(degrees)).float()
    cos, sin, zero = angles.cos(), angles.sin(), torch.zeros(len(angles))
    turn = torch.stack([cos, -sin, zero, sin, cos, zero], dim=1).view(-1, 2, 3)
    grid = functional.affine_grid(turn, pixels.shape, align_corners=False)
    return functional.grid_sample(pixels, grid, align_corners=False).numpy()


class Ranges(NamedTuple):
    """The angles of domains: (start + u) * span / parts degrees, u from 0 to 1."""

    start: NDArray
    span: NDArray
    parts: int

    def degrees(self, domains: NDArray, u: NDArray) -> NDArray:
        """Return the angle at u of each one's domain."""
        return (self.start[domains] + u) * self.span[domains] / self.parts

    def names(self) -> NDArray:
        """Return names such as "030-060", whose order is that of the angles."""
        domains = np.arange(len(self.start))
        edges = np.stack([self.degrees(domains, u) for u in (0.0, 1.0)], axis=1)
        exact = (np.abs(edges - edges.round(k)).max() < 1e-9 for k in range(2))
        decimals = next((k for k, is_exact in enumerate(exact) if is_exact), 2)
        width = len(f"{edges.max():.{decimals}f}")
        names = [
            "-".join(f"{edge:0{width}.{decimals}f}" for edge in pair) for pair in edges
        ]
        if len(set(names)) < len(names):
            raise ValueError(
                f"ranges has the domain {max(names, key=names.count)} twice (to two "
                "decimals); pass ranges that can be told apart"
            )
        return np.array(names)

    def draw(self, n_images: int, rng: np.random.Generator):
        """Return a random domain and an angle for each image; domains are equal."""
        n_domains = len(self.start)
        if n_images < n_domains:
            raise ValueError(
                f"ranges has {n_domains} domains for {n_images} images; pass at most "
                "as many ranges as there are images"
            )
        domains = np.empty(n_images, dtype=int)
        domains[rng.permutation(n_images)] = np.arange(n_images) * n_domains // n_images
        return domains, self.degrees(domains, rng.uniform(size=n_images))


def angle_ranges(ranges) -> Ranges:
    """Return what a name, or a sequence of pairs of degrees, stands for."""
    if not isinstance(ranges, str):
        return _from_pairs(ranges)
    if ranges in _PAIRS:
        return _from_pairs(_PAIRS[ranges])
    match = re.fullmatch(r"D([1-9][0-9]{0,4})(?:-([1-9][0-9]{0,2}))?", ranges)
    if match is None or int(match[2] or 180) > 360:
        raise ValueError(
            f"ranges={ranges!r} is unknown; choose 'D6' (or another number of parts of "
            "180 degrees), 'D6-90' (of 90 degrees), 'D1&5' or 'D3&3', or pass pairs "
            "of degrees"
        )
    parts, span = int(match[1]), float(match[2] or 180)
    return Ranges(np.arange(parts, dtype=float), np.full(parts, span), parts)


def _from_pairs(ranges) -> Ranges:
    pairs = check_finite(ranges, "ranges", (None, 2)).astype(float)
    low, high = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].T
    if len(pairs) == 0 or (low < 0).any() or (high > 360).any() or (low >= high).any():
        raise ValueError(
            f"ranges={pairs.tolist()} has no pair, or one that is not in order; pass "
            "pairs with 0 <= low < high <= 360"
        )
    return Ranges(low / (high - low), high - low, 1)
