"""What an objective is: networks, groups of parameters, and losses for each."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ..modules import CompositeClassifier

Nets = dict[str, nn.Module]
BATCH_NORMS = ("separate", "together")


@dataclass(frozen=True, eq=False)
class Task:
    """What is known about the data before training.

    Attributes
    ----------
    shape : tuple of int
        Shape of one sample.
    n_classes : int
        Number of classes.
    counts : ndarray of shape (n_domains,)
        Labelled samples in each domain.
    sizes : ndarray of shape (n_domains,)
        All samples of each domain: its part of the pool.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.objectives import Task
    >>> Task((28, 28), 10, np.array([5, 7]), np.array([100, 80])).n_domains
    2
    """

    shape: tuple[int, ...]
    n_classes: int
    counts: NDArray
    sizes: NDArray

    @property
    def n_domains(self) -> int:
        """Number of domains N."""
        return len(self.sizes)


class Batch(NamedTuple):
    """Labelled samples and samples of the pool for one step.

    Attributes
    ----------
    X, y, domains : Tensor
        Labelled samples, positions of their classes and of their domains.
    pool_X, pool_domains : Tensor or None
        Samples of the pool and positions of their domains, for an objective that
        needs the pool.
    progress : float
        Part of the training that is over, from 0 to 1.
    generator : torch.Generator or None
        For an objective that draws at random, on the device of the samples.

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import Batch
    >>> batch = Batch(torch.ones(2, 3), torch.tensor([0, 1]), torch.tensor([0, 0]))
    >>> batch.progress
    0.0
    """

    X: Tensor
    y: Tensor
    domains: Tensor
    pool_X: Tensor | None = None
    pool_domains: Tensor | None = None
    progress: float = 0.0
    generator: torch.Generator | None = None


class Group(NamedTuple):
    """Parameters that are trained together.

    Attributes
    ----------
    parameters : list of (str, torch.nn.Parameter)
        With their names.
    optimizer : type, default=None
        The optimiser; None takes the net's.
    settings : dict, default={}
        Settings of the optimiser that differ from the net's.

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import Group
    >>> layer = torch.nn.Linear(2, 2)
    >>> Group(list(layer.named_parameters()), settings={"lr": 0.1}).settings
    {'lr': 0.1}
    """

    parameters: list[tuple[str, nn.Parameter]]
    optimizer: type[torch.optim.Optimizer] | None = None
    settings: dict = {}  # noqa: RUF012 (never written to)


class Objective(BaseEstimator, ABC):
    """A training method: which networks there are, and what each of them minimises.

    The net calls ``build`` and ``groups`` once and ``losses`` for every batch. A
    subclass implements ``losses`` and, where it needs more than a classifier,
    ``build`` and ``groups``. It knows nothing of the loop, of devices, or of data.

    Examples
    --------
    Training on the labelled samples alone, whatever their domains:

    >>> from torch.nn import functional
    >>> from mdal.objectives import Objective
    >>> class Plain(Objective):
    ...     needs_pool = False
    ...     def losses(self, nets, batch, averaged):
    ...         logits = nets["module"](batch.X)
    ...         yield "module", {"loss": functional.cross_entropy(logits, batch.y)}
    >>> import numpy as np
    >>> from mdal.net import CompositeNet
    >>> X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    >>> net = CompositeNet(Plain(), max_epochs=2, random_state=0)
    >>> net.fit(X, (X[:, 0] > 0).astype(int)).predict(X).shape
    (40,)
    """

    #: Whether ``losses`` looks at the pool. Otherwise it is never loaded.
    needs_pool = True
    #: Whether there is an alpha, from which an optimal budget can be split.
    has_alpha = False
    #: Networks beside "module" and "discriminator", by name, with their classes.
    networks: ClassVar[dict[str, type[nn.Module]]] = {}

    def check(self) -> None:
        """Raise an error if a parameter cannot be used, before there are any data."""

    def build(self, make: Callable[..., nn.Module], task: Task) -> Nets:
        """Return the networks by name; "module" is the one that predicts.

        Parameters
        ----------
        make : callable
            ``make(name, default, **settings)`` makes a network: of the class that the
            user has given for this name, or else of the default class, with these
            settings and those that the user has given.
        task : Task
            The data's sizes.

        Returns
        -------
        dict of str to torch.nn.Module
        """
        return {
            "module": make(
                "module",
                CompositeClassifier,
                shape=task.shape,
                n_classes=task.n_classes,
            )
        }

    def groups(self, nets: Nets) -> dict[str, Group]:
        """Return the groups of parameters by name, each with an optimiser of its own.

        The optimiser of group "module" is ``optimizer_``, that of any other group
        ``optimizer_<group>_``.
        """
        return {name: Group(list(net.named_parameters())) for name, net in nets.items()}

    def start(self, nets: Nets, averaged: Nets, task: Task) -> None:
        """Prepare what ``losses`` needs beside the networks, at the start of a fit.

        With a warm start the networks come from an earlier fit.
        """

    @abstractmethod
    def losses(
        self, nets: Nets, batch: Batch, averaged: Nets
    ) -> Iterator[tuple[str, dict[str, Tensor]]]:
        """Yield the name of a group and its losses by name, in the order of the steps.

        The net takes a step of that group's optimiser down the sum of its losses
        before it asks for the next, so later losses see updated parameters. A group
        may come several times.

        Parameters
        ----------
        nets : dict of str to torch.nn.Module
            The networks, in training mode.
        batch : Batch
            The samples.
        averaged : dict of str to torch.nn.Module
            The same networks with averaged weights, in evaluation mode.

        Yields
        ------
        group : str
        losses : dict of str to Tensor
            Scalars; their names and values appear in the history.
        """

    def epoch_record(self, averaged: Nets) -> dict:
        """Return plain values for the history at the end of an epoch, by name."""
        return {}

    def predictions(
        self, nets: Nets, X: Tensor, domains: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return what the classifier says about a batch of samples.

        Parameters
        ----------
        nets : dict of str to torch.nn.Module
            The networks, averaged or in training.
        X : Tensor of shape (n_samples, ...)
            The samples.
        domains : Tensor of shape (n_samples,), default=None
            Positions of their domains, if they are known.

        Returns
        -------
        dict of str to Tensor
            "logits", "penultimate" and "features".
        """
        module = nets["module"]
        features = module.embed(X)
        penultimate = module.penultimate(features)
        return {
            "logits": module.shared_logits(penultimate),
            "penultimate": penultimate,
            "features": features,
        }

    def observe(
        self, averaged: Nets, X: Tensor, domains: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return all that the averaged networks say about a batch of samples.

        Parameters
        ----------
        averaged, X, domains
            As in :meth:`predictions`, with networks in evaluation mode.

        Returns
        -------
        dict of str to Tensor
            The predictions, and "outlier" where there is one: the parts of a
            :class:`mdal.net.Observation`.
        """
        return self.predictions(averaged, X, domains)


def label_shares(nets: Nets, task: Task) -> Tensor:
    """Return beta, each domain's share of the labelled samples, on the nets' device."""
    return shares(nets, task.counts)


def shares(nets: Nets, counts: NDArray) -> Tensor:
    """Return each domain's part of a number of samples, on the nets' device.

    An encoder may have weights of any type: of half precision, or quantised.
    """
    parameter = next(nets["module"].parameters())
    dtype = torch.promote_types(parameter.dtype, torch.float32)
    counts = torch.as_tensor(counts, dtype=dtype, device=parameter.device)
    return counts / counts.sum()


def embedded(module: nn.Module, batch: Batch, batch_norm: str) -> tuple[Tensor, Tensor]:
    """Return the features of labelled and of pool samples.

    The encoder normalises them as one batch ("together") or as two ("separate").
    """
    if batch_norm == "separate":
        return module.embed(batch.X), module.embed(batch.pool_X)
    both = module.embed(torch.cat([batch.X, batch.pool_X]))
    return both.split([len(batch.X), len(batch.pool_X)])


def penultimate_apart(
    module: nn.Module, z: Tensor, pool_z: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what the last layer sees of labelled and of pool features.

    They pass the classifier in two batches. In one, batch normalisation within it lets
    the loss of labelled samples depend on the pool: on digits, with the other losses
    weighing nothing, that cost 8 points of accuracy.
    """
    return module.penultimate(z), module.penultimate(pool_z)
