"""Perturbed samples that keep their class: small jitter of images and of vectors.

Each function maps a batch to perturbed copies of it, all samples at once, on the
device of the batch, with randomness from a generator on that device.
:func:`get_perturbation` knows them by name.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from ._validation import check_number, check_option

__all__ = [
    "affine",
    "default_strengths",
    "dropped",
    "erased",
    "feature_jitter",
    "get_perturbation",
    "image_jitter",
    "mixed",
    "noisy",
]


def affine(
    X: Tensor,
    generator: torch.Generator | None = None,
    *,
    rotation: float = 0.0,
    shift: float = 0.0,
    scale: float = 0.0,
) -> Tensor:
    r"""Return images that are turned, moved and resized at random.

    A pixel at u from the centre, in units of half the image's sides, gets the value at
    :math:`s R(\theta) u + t`, interpolated between pixels; beyond the border it is that
    of the border.

    Parameters
    ----------
    X : Tensor of shape (n_samples, [n_channels,] height, breadth)
        The images.
    generator : torch.Generator, default=None
        Where the randomness comes from, on the device of the images.
    rotation : float, default=0.0
        Largest angle :math:`\theta` in degrees, in both directions.
    shift : float, default=0.0
        Largest move, as a part of the image's side, in both directions.
    scale : float, default=0.0
        Largest change of size, as a part of it: s is between 1 - scale and 1 + scale.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import affine
    >>> affine(torch.ones(5, 1, 8, 8), rotation=25, shift=0.1).mean().item()
    1.0
    """
    images = X if X.ndim == 4 else X[:, None]
    n, _, height, breadth = images.shape

    def between(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * _uniform(X, generator, *shape)

    angle = between(-math.radians(rotation), math.radians(rotation), n)
    size = between(1 - scale, 1 + scale, n)
    cos, sin = size * angle.cos(), size * angle.sin()
    # Coordinates run from -1 to 1 along both sides, so that angles need the ratio.
    ratio = height / breadth
    turn = torch.stack([cos, -sin * ratio, sin / ratio, cos], dim=1).view(n, 2, 2)
    move = between(-2 * shift, 2 * shift, n, 2, 1)
    grid = functional.affine_grid(
        torch.cat([turn, move], dim=2), list(images.shape), align_corners=False
    )
    moved = functional.grid_sample(
        images, grid.to(X.dtype), padding_mode="border", align_corners=False
    )
    return moved.view(X.shape)


def noisy(
    X: Tensor, generator: torch.Generator | None = None, *, noise: float = 0.1
) -> Tensor:
    """Return samples with normal noise, in proportion to the spread of the batch.

    Parameters
    ----------
    X : Tensor of shape (n_samples, ...)
        The samples.
    generator : torch.Generator, default=None
        Where the randomness comes from, on the device of the samples.
    noise : float, default=0.1
        Standard deviation of the noise over that of the batch: of each feature of
        vectors, of all pixels of images.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import noisy
    >>> X = torch.tensor([[0.0, 5.0], [9.0, 5.0]])
    >>> (noisy(X)[:, 1] == 5).all().item()  # a feature that never varies
    True
    """
    spread = X.std(dim=0, correction=0) if X.ndim == 2 else X.std(correction=0)
    draw = torch.randn(X.shape, generator=generator, device=X.device, dtype=X.dtype)
    return X + noise * spread * draw


def erased(
    X: Tensor, generator: torch.Generator | None = None, *, erase: float = 0.3
) -> Tensor:
    """Return images in which a rectangle has the mean value of the image.

    Parameters
    ----------
    X : Tensor of shape (n_samples, [n_channels,] height, breadth)
        The images.
    generator : torch.Generator, default=None
        Where the randomness comes from, on the device of the images.
    erase : float, default=0.3
        Largest sides of the rectangle, as parts of those of the image.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import erased
    >>> X = torch.rand(5, 8, 8)
    >>> ((erased(X, erase=0.5) != X).sum(dim=(1, 2)) <= 16).all().item()
    True
    """
    inside = X.new_ones((), dtype=torch.bool)
    for axis in (-2, -1):
        side = X.shape[axis]
        length = (_uniform(X, generator, len(X)) * (erase * side + 1)).floor()
        length = length.clamp(max=side)
        start = (_uniform(X, generator, len(X)) * (side - length + 1)).floor()
        places = torch.arange(side, device=X.device)
        along = (places >= start[:, None]) & (places < (start + length)[:, None])
        shape = [len(X), *[1] * (X.ndim - 1)]
        shape[axis] = side
        inside = inside & along.view(shape)
    return torch.where(inside, X.mean(dim=(-2, -1), keepdim=True), X)


def dropped(
    X: Tensor, generator: torch.Generator | None = None, *, drop: float = 0.2
) -> Tensor:
    """Return samples without some of their features, which become 0.

    A word that is left out of a bag of words has the count 0; a standardised feature
    has its mean.

    Parameters
    ----------
    X : Tensor of shape (n_samples, ...)
        The samples.
    generator : torch.Generator, default=None
        Where the randomness comes from, on the device of the samples.
    drop : float, default=0.2
        Probability of each feature to be left out.

    Returns
    -------
    Tensor
        Of the same shape. What is left stays as it is.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import dropped
    >>> dropped(torch.ones(2, 3), drop=1.0)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return torch.where(_uniform(X, generator, *X.shape) < drop, X.new_zeros(()), X)


def mixed(
    X: Tensor, generator: torch.Generator | None = None, *, mix: float = 0.2
) -> Tensor:
    r"""Return samples that are moved towards others of the batch.

    .. math:: (1 - u) x + u x', \qquad u \sim \mathrm{Uniform}(0, \mathrm{mix})

    with a random other sample x'.

    Parameters
    ----------
    X : Tensor of shape (n_samples, ...)
        The samples.
    generator : torch.Generator, default=None
        Where the randomness comes from, on the device of the samples.
    mix : float, default=0.2
        The other sample's largest part; below a half, x has the larger one.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import mixed
    >>> mixed(torch.tensor([[3.0], [3.0]]))
    tensor([[3.],
            [3.]])
    """
    other = X[torch.randperm(len(X), generator=generator, device=X.device)]
    u = mix * _uniform(X, generator, len(X), *[1] * (X.ndim - 1))
    return torch.lerp(X, other, u)


def image_jitter(
    X: Tensor,
    generator: torch.Generator | None = None,
    *,
    rotation: float = 0.0,
    shift: float = 0.15,
    scale: float = 0.15,
    noise: float = 0.1,
    erase: float = 0.3,
) -> Tensor:
    """Return images that are moved, resized, made noisy and erased in part.

    Nothing is turned or mirrored unless it is asked for: that can change the class.

    Parameters
    ----------
    X : Tensor of shape (n_samples, [n_channels,] height, breadth)
        The images.
    generator : torch.Generator, default=None
        Where the randomness comes from, on the device of the images.
    rotation, shift, scale
        As in :func:`affine`.
    noise
        As in :func:`noisy`.
    erase
        As in :func:`erased`.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import image_jitter
    >>> image_jitter(torch.rand(5, 1, 8, 8)).shape
    torch.Size([5, 1, 8, 8])
    """
    moved = affine(X, generator, rotation=rotation, shift=shift, scale=scale)
    return erased(noisy(moved, generator, noise=noise), generator, erase=erase)


def feature_jitter(
    X: Tensor,
    generator: torch.Generator | None = None,
    *,
    noise: float = 0.1,
    drop: float = 0.2,
    mix: float = 0.0,
) -> Tensor:
    """Return vectors that are mixed, made noisy, and without some of their features.

    Parameters
    ----------
    X : Tensor of shape (n_samples, n_features)
        The vectors.
    generator : torch.Generator, default=None
        Where the randomness comes from, on the device of the vectors.
    noise
        As in :func:`noisy`.
    drop
        As in :func:`dropped`.
    mix
        As in :func:`mixed`.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import feature_jitter
    >>> feature_jitter(torch.rand(5, 3)).shape
    torch.Size([5, 3])
    """
    moved = noisy(mixed(X, generator, mix=mix), generator, noise=noise)
    return dropped(moved, generator, drop=drop)


_NAMED = {
    "features": feature_jitter,
    "images": image_jitter,
    "words": dropped,
}


def get_perturbation(
    perturb, shape: tuple[int, ...]
) -> Callable[[Tensor, torch.Generator | None], Tensor]:
    """Return the function that a name stands for, for samples of a shape.

    =============  ================================================================
    name           what it does
    =============  ================================================================
    ``images``     moves, resizes, adds noise, erases a part (:func:`image_jitter`)
    ``features``   adds noise and leaves features out (:func:`feature_jitter`)
    ``words``      leaves features out (:func:`dropped`), for counts of words
    ``auto``       ``images`` for two dimensions or more, ``features`` for vectors
    =============  ================================================================

    Parameters
    ----------
    perturb : str, mapping or callable
        A name; a mapping with ``name`` and other strengths than the default ones,
        ``{"name": "images", "rotation": 25}``; or a function of yours, which takes a
        batch and returns perturbed samples of the same shape.
    shape : tuple of int
        Shape of one sample.

    Returns
    -------
    callable
        A function of a batch and a generator.

    Examples
    --------
    >>> import torch
    >>> from mdal.perturbations import get_perturbation
    >>> perturb = get_perturbation({"name": "words", "drop": 0.5}, shape=(1000,))
    >>> perturb(torch.ones(2, 1000), None).mean().round(decimals=1)
    tensor(0.5000)
    """
    if callable(perturb):
        return partial(_perturbed_by, function=perturb)
    settings = dict(perturb) if isinstance(perturb, Mapping) else {"name": perturb}
    name = check_option(settings.pop("name", "auto"), "perturb", {"auto", *_NAMED})
    if name == "auto":
        name = "images" if len(shape) > 1 else "features"
    if name == "images" and len(shape) not in (2, 3):
        raise ValueError(
            f"perturb={perturb!r} is for images, and samples have shape {shape}; "
            "choose 'features' or 'words', or pass a function"
        )
    function = _NAMED[name]
    known = function.__kwdefaults__
    for setting, value in settings.items():
        check_option(setting, f"perturb: the setting of {name!r}", known)
        check_number(value, setting, high=180 if setting == "rotation" else 1)
    return partial(function, **settings)


def default_strengths() -> dict[str, dict[str, float]]:
    """Return how strong each named perturbation is, where nobody says otherwise.

    Returns
    -------
    dict of str to dict of str to float

    Examples
    --------
    >>> from mdal.perturbations import default_strengths
    >>> default_strengths()["words"]
    {'drop': 0.2}
    """
    return {name: dict(function.__kwdefaults__) for name, function in _NAMED.items()}


def _perturbed_by(X: Tensor, generator, *, function) -> Tensor:
    """Return what a function of the user makes of a batch, if it can be used."""
    perturbed = function(X)
    if not isinstance(perturbed, Tensor) or perturbed.shape != X.shape:
        found = getattr(perturbed, "shape", type(perturbed).__name__)
        raise ValueError(
            f"perturb makes {found} of a batch of shape {tuple(X.shape)}; return a "
            "tensor of the same shape"
        )
    return perturbed


def _uniform(X: Tensor, generator: torch.Generator | None, *shape: int) -> Tensor:
    return torch.rand(shape, generator=generator, device=X.device, dtype=X.dtype)
