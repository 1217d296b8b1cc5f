r"""The networks of Composite Active Learning.

An encoder e maps samples to features z; a classifier has a trunk and one last layer
for each of the shared head h and the domain heads :math:`h_i`; a conditional
discriminator f(z, i) tells original domain i from its surrogate. The matrix alpha is a
module, too, so that it is trained, averaged and saved like the others.
"""

import copy
import math
from itertools import chain, pairwise

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from ._validation import check_alpha, check_count, check_option

__all__ = [
    "BatchNorm",
    "CompositeClassifier",
    "ConditionalDiscriminator",
    "DomainClassifier",
    "ImageEncoder",
    "SharedPrivateClassifier",
    "Surrogates",
    "VectorEncoder",
    "default_encoder",
    "padded",
]

INDEXES = ("one_hot", "scalar")
# Of encoder and trunk, where nobody says otherwise.
SIZES = {"images": {"width": 64, "depth": 2}, "vectors": {"width": 256, "depth": 0}}


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of vectors or images that takes a batch of one value.

    With a single value per channel there is no variance to divide by. PyTorch raises
    an error; here the running statistics are used, as in prediction.

    Parameters
    ----------
    num_features : int
        Number of channels, with the other parameters of ``torch.nn.BatchNorm1d``.

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import BatchNorm
    >>> BatchNorm(3)(torch.ones(1, 3)).shape
    torch.Size([1, 3])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each channel."""
        if self.training and x.numel() == x.shape[1]:
            return functional.batch_norm(
                x,
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                eps=self.eps,
            )
        return super().forward(x)

    def _check_input_dim(self, x: Tensor) -> None:
        """Take images as well as vectors."""


class VectorEncoder(nn.Sequential):
    """Two hidden layers for vectors.

    They have to be wide, and the classifier has no further layers of its own behind
    them (see :class:`CompositeClassifier`), or few labels are not enough: the
    benchmark page compares nets for vectors.

    Parameters
    ----------
    n_inputs : int
        Length of a sample.
    width : int, default=256
        Units of each of the two hidden layers.
    n_features : int, default=100
        Length of the features.

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import VectorEncoder
    >>> VectorEncoder(20)(torch.zeros(5, 20)).shape
    torch.Size([5, 100])
    """

    def __init__(self, n_inputs: int, *, width: int = 256, n_features: int = 100):
        super().__init__(
            nn.Flatten(),
            *_dense(n_inputs, width),
            *_dense(width, width),
            nn.Linear(width, n_features),
            nn.ReLU(),
        )


class ImageEncoder(nn.Sequential):
    """The paper's convolutional net.

    Convolutions of stride 2 halve the image until its shorter side is at most 4, and
    one that spans what is left makes the features. For 28 x 28 pixels and a width of
    256 these are the four layers in the paper's table. A bias before batch
    normalisation would have no effect and is left out.

    Parameters
    ----------
    n_channels, height, breadth : int
        Shape of a sample.
    width : int, default=64
        Channels of the hidden layers. The paper has 256; 64 is right for a CPU.
    n_features : int, default=100
        Length of the features.

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import ImageEncoder
    >>> ImageEncoder(1, 28, 28)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 100])
    """

    def __init__(
        self,
        n_channels: int,
        height: int,
        breadth: int,
        *,
        width: int = 64,
        n_features: int = 100,
    ):
        layers, size = [], (height, breadth)
        while min(size) > 4:
            layers += [
                nn.Conv2d(n_channels, width, 3, stride=2, padding=1, bias=False),
                BatchNorm(width),
                nn.ReLU(),
            ]
            n_channels = width
            size = tuple(math.ceil(side / 2) for side in size)
        # A convolution that spans the image is a product of matrices, and quicker so.
        last = nn.Linear(n_channels * math.prod(size), n_features)
        super().__init__(*layers, nn.Flatten(), last, nn.ReLU())
        # Channels last: the same numbers in an order that convolutions prefer.
        self.to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of a batch of images, shape (n_samples, n_features)."""
        return super().forward(x.contiguous(memory_format=torch.channels_last))


def default_encoder(shape: tuple[int, ...], width: int | None = None) -> nn.Module:
    """Return the encoder for samples of a shape.

    Parameters
    ----------
    shape : tuple of int
        Shape of one sample: (length,) is a vector, (height, width) a grey image,
        (channels, height, width) an image.
    width : int, default=None
        Width of the hidden layers; None is the encoder's own default.

    Returns
    -------
    torch.nn.Module
        A :class:`VectorEncoder` or an :class:`ImageEncoder`.

    Examples
    --------
    >>> from mdal.modules import default_encoder
    >>> type(default_encoder((800,))).__name__
    'VectorEncoder'
    >>> type(default_encoder((3, 32, 32))).__name__
    'ImageEncoder'
    """
    size = {} if width is None else {"width": width}
    if len(shape) == 1:
        return VectorEncoder(shape[0], **size)
    if len(shape) == 2:
        return nn.Sequential(
            nn.Unflatten(1, (1, shape[0])), ImageEncoder(1, *shape, **size)
        )
    if len(shape) == 3:
        return ImageEncoder(*shape, **size)
    raise ValueError(
        f"samples have shape {tuple(shape)}; there is a default encoder for vectors "
        "and for images of 2 or 3 dimensions: pass an encoder of your own"
    )


class CompositeClassifier(nn.Module):
    r"""Encoder e, and classifiers h and :math:`h_1, \dots, h_N` that share a trunk.

    All share every layer but the last; the last layers are one matrix, so that all
    classifiers cost one product. ``forward`` gives the logits of the shared h, which
    predicts.

    Parameters
    ----------
    shape : tuple of int
        Shape of one sample.
    n_classes : int
        Number of classes.
    n_domains : int, default=0
        Number of domain heads; 0 for methods that have none.
    encoder : torch.nn.Module or callable, default=None
        A module that maps a batch of samples to features, copied so that the one
        passed stays as it is, or a function that makes one. None takes
        :func:`default_encoder`.
    width : int, default=None
        Width of the default encoder and of the trunk; None is 256 for a
        :class:`VectorEncoder`, and otherwise 64, where the paper has 256.
    depth : int, default=None
        Layers of the trunk. None is two, as in the paper, and none after a
        :class:`VectorEncoder`.

    Attributes
    ----------
    n_features : int
        Length of the features.

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import CompositeClassifier
    >>> net = CompositeClassifier((20,), n_classes=3, n_domains=2)
    >>> X = torch.zeros(5, 20)
    >>> net(X).shape
    torch.Size([5, 3])
    >>> net.all_logits(net.embed(X)).shape
    torch.Size([5, 3, 3])
    """

    n_parts = 1  # features that the classifier sees beside each other

    def __init__(
        self,
        shape: tuple[int, ...],
        n_classes: int,
        n_domains: int = 0,
        *,
        encoder=None,
        width: int | None = None,
        depth: int | None = None,
    ):
        super().__init__()
        if width is not None:
            width = check_count(width, "width", minimum=1)
        if depth is not None:
            depth = check_count(depth, "depth")
        self.encoder = _new_encoder(encoder, shape, width)
        self.n_features = _n_features(self.encoder, shape)
        self.n_heads, self.n_classes = n_domains + 1, n_classes
        kind = "vectors" if isinstance(self.encoder, VectorEncoder) else "images"
        width = SIZES[kind]["width"] if width is None else width
        depth = SIZES[kind]["depth"] if depth is None else depth
        sizes = [self.n_parts * self.n_features] + [width] * depth
        layers = [_dense(*pair) for pair in pairwise(sizes)]
        self.trunk = nn.Sequential(*chain.from_iterable(layers))
        self.heads = nn.Linear(sizes[-1], self.n_heads * n_classes)

    def embed(self, X: Tensor) -> Tensor:
        """Return the features z = e(x), shape (n_samples, n_features)."""
        return self.encoder(X).flatten(1)

    def penultimate(self, z: Tensor) -> Tensor:
        """Return what the last layers see: z itself, where there is no trunk."""
        return self.trunk(z)

    def all_logits(self, z: Tensor) -> Tensor:
        """Return the logits of h and every h_i, (n_samples, n_heads, n_classes)."""
        logits = self.heads(self.penultimate(z))
        return logits.view(-1, self.n_heads, self.n_classes)

    def shared_logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of h alone, given the penultimate layer."""
        first_block = (0, 0, self.n_classes)
        return functional.linear(
            hidden,
            self.heads.weight.narrow(*first_block),
            self.heads.bias.narrow(*first_block),
        )

    def forward(self, X: Tensor) -> Tensor:
        """Return the logits of h for a batch of samples."""
        return self.shared_logits(self.penultimate(self.embed(X)))


class SharedPrivateClassifier(CompositeClassifier):
    """A shared encoder, one private encoder for each domain, and a classifier of both.

    The classifier sees shared and private features beside each other. Without domains
    the private ones are 0.

    Parameters
    ----------
    shape : tuple of int
        Shape of one sample.
    n_classes : int
        Number of classes.
    n_domains : int
        Number of private encoders.
    encoder, width, depth
        As in :class:`CompositeClassifier`; each domain has an encoder of this kind.

    Attributes
    ----------
    n_features : int
        Length of the shared features, and of the private ones.

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import SharedPrivateClassifier
    >>> net = SharedPrivateClassifier((20,), n_classes=3, n_domains=2)
    >>> net(torch.zeros(5, 20), torch.tensor([0, 1, 1, 0, 1])).shape
    torch.Size([5, 3])
    """

    n_parts = 2

    def __init__(
        self,
        shape: tuple[int, ...],
        n_classes: int,
        n_domains: int,
        *,
        encoder=None,
        width: int | None = None,
        depth: int | None = None,
    ):
        super().__init__(shape, n_classes, encoder=encoder, width=width, depth=depth)
        self.private = nn.ModuleList(
            _new_encoder(encoder, shape, width) for _ in range(n_domains)
        )
        weights = [list(part.parameters()) for part in (self.encoder, *self.private)]
        frozen = weights[0] and not any(w.requires_grad for w in weights[0])
        if frozen or len({id(w) for part in weights for w in part}) < sum(
            map(len, weights)
        ):
            raise ValueError(
                "the encoder is frozen, or one object for all domains, so that their "
                "private features would be the same; pass a module that can be "
                "trained, or a function that makes a new one"
            )

    def private_features(self, X: Tensor, domains: Tensor) -> Tensor:
        """Return what the encoder of each sample's domain says of it."""
        rows, found = [], []
        for domain in domains.unique().tolist():
            here = torch.nonzero(domains == domain).flatten()
            # As many rows as at all times: see padded.
            chosen = here if self.training else padded(here)
            encoder = self.private[domain]
            encoder.train(self.training and len(here) > 1)  # as BatchNorm does
            found.append(encoder(X[chosen]).flatten(1)[: len(here)])
            encoder.train(self.training)
            rows.append(here)
        return torch.cat(found)[torch.cat(rows).argsort()]

    def penultimate(self, z: Tensor, private: Tensor | None = None) -> Tensor:
        """Return what the last layer sees, of shared and private features."""
        private = torch.zeros_like(z) if private is None else private
        return self.trunk(torch.cat([z, private], dim=1))

    def forward(self, X: Tensor, domains: Tensor | None = None) -> Tensor:
        """Return the logits of a batch of samples."""
        private = None if domains is None else self.private_features(X, domains)
        return self.shared_logits(self.penultimate(self.embed(X), private))


class DomainClassifier(nn.Sequential):
    """Tells from features which domain a sample comes from, for adversarial methods.

    Parameters
    ----------
    n_features : int
        Length of the features z.
    n_domains : int
        Number of domains N.
    width : int, default=256
        Units of each of the two hidden layers.

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import DomainClassifier
    >>> DomainClassifier(n_features=100, n_domains=6)(torch.zeros(4, 100)).shape
    torch.Size([4, 6])
    """

    def __init__(self, n_features: int, n_domains: int, *, width: int = 256):
        width = check_count(width, "width", minimum=1)
        super().__init__(
            *_dense(n_features, width, nn.LeakyReLU),
            *_dense(width, width, nn.LeakyReLU),
            nn.Linear(width, n_domains),
        )


class ConditionalDiscriminator(nn.Module):
    """f(z, i): the logit that z comes from original domain i, not its surrogate.

    Parameters
    ----------
    n_features : int
        Length of the features z.
    n_domains : int
        Number of domains N.
    width : int, default=256
        Units of each of the three hidden layers, as in the paper.
    index : {"scalar", "one_hot"}, default="scalar"
        How the domain enters: as the number i / N, or as a vector with a 1 in place
        i, which the paper's CAL++ has.

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import ConditionalDiscriminator
    >>> f = ConditionalDiscriminator(n_features=100, n_domains=6)
    >>> f(torch.zeros(4, 100), torch.tensor([0, 1, 5, 5])).shape
    torch.Size([4])
    """

    def __init__(
        self,
        n_features: int,
        n_domains: int,
        *,
        width: int = 256,
        index: str = "scalar",
    ):
        super().__init__()
        width = check_count(width, "width", minimum=1)
        check_option(index, "index", INDEXES)
        table = (
            torch.eye(n_domains)
            if index == "one_hot"
            else torch.arange(n_domains)[:, None] / n_domains
        )
        self.register_buffer("table", table, persistent=False)
        self.layers = nn.Sequential(
            *_dense(n_features + table.shape[1], width, nn.LeakyReLU),
            *_dense(width, width, nn.LeakyReLU),
            *_dense(width, width, nn.LeakyReLU),
            nn.Linear(width, 1),
        )

    def forward(self, z: Tensor, domains: Tensor) -> Tensor:
        """Return one logit for each row of z and position i of its domain."""
        # Under mixed precision the features may be of lower precision.
        index = self.table.index_select(0, domains).to(z.dtype)
        return self.layers(torch.cat([z, index], dim=1)).squeeze(1)


class Surrogates(nn.Module):
    """Alpha, the weights of the labelled domains in each surrogate domain.

    Parameters
    ----------
    alpha : array-like of shape (n_domains, n_domains)
        Where to start; rows sum to 1.

    Attributes
    ----------
    alpha : torch.nn.Parameter of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.

    Examples
    --------
    >>> from mdal.modules import Surrogates
    >>> Surrogates([[0.5, 0.5], [0.0, 1.0]])()
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, alpha: ArrayLike):
        super().__init__()
        alpha = torch.as_tensor(check_alpha(alpha), dtype=torch.float32)
        self.alpha = nn.Parameter(alpha)

    def forward(self):
        """Return alpha as an array of float64 whose rows sum to 1."""
        alpha = self.alpha.detach().cpu().double().numpy()
        return alpha / alpha.sum(axis=1, keepdims=True)


def _dense(n_inputs: int, width: int, activation=nn.ReLU) -> list[nn.Module]:
    return [nn.Linear(n_inputs, width, bias=False), BatchNorm(width), activation()]


def _new_encoder(encoder, shape: tuple[int, ...], width: int | None) -> nn.Module:
    """Return a copy of a module, what a function makes, or the default encoder."""
    if encoder is None:
        return default_encoder(shape, width)
    if isinstance(encoder, nn.Module):
        return copy.deepcopy(encoder)
    if callable(encoder):
        return encoder()
    raise TypeError(
        f"encoder={encoder!r} is of type {type(encoder).__name__}; pass a "
        "torch.nn.Module or a function that makes one"
    )


def _n_features(encoder: nn.Module, shape: tuple[int, ...]) -> int:
    """Length of the features that an encoder gives for samples of a shape."""
    parameter = next(encoder.parameters(), None)
    device = None if parameter is None else parameter.device
    training = encoder.training
    with torch.no_grad():
        z = encoder.eval()(torch.zeros(2, *shape, device=device))
    encoder.train(training)
    if not isinstance(z, Tensor) or z.shape[:1] != (2,):
        got = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise ValueError(
            f"the encoder gives {got} for two samples of shape {tuple(shape)}; it must "
            "give a tensor with one row for each sample"
        )
    return z.flatten(1).shape[1]


def padded(rows: Tensor) -> Tensor:
    """Repeat the first row until the number of rows is a multiple of 32.

    Matrix products of few rows, or of an odd number, may add up in another order: up
    to 8 rows on some processors. This way a sample gets the same answer, to the last
    bit, whichever samples are beside it.

    Parameters
    ----------
    rows : Tensor of shape (n_rows, ...)

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import torch
    >>> from mdal.modules import padded
    >>> padded(torch.arange(3)).shape
    torch.Size([32])
    """
    repeated = rows[:1].expand(-len(rows) % 32, *rows.shape[1:])
    return torch.cat([rows, repeated]) if len(repeated) else rows
