"""Energy alignment, the training of EADA."""

import torch
from torch import Tensor
from torch.nn import functional

from .._validation import check_number, check_option
from ..losses import at_least_single, domain_mean
from ._interface import (
    BATCH_NORMS,
    Objective,
    embedded,
    label_shares,
    penultimate_apart,
)


def free_energy(logits: Tensor) -> Tensor:
    r"""Return the free energy of each sample.

    .. math:: F(x) = -\ln \sum_y \exp l_y(x)

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)

    Returns
    -------
    Tensor of shape (n_samples,)

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import free_energy
    >>> free_energy(torch.tensor([[0.0, 0.0], [2.0, 2.0]])).round(decimals=3)
    tensor([-0.6930, -2.6930])
    """
    return -torch.logsumexp(at_least_single(logits), dim=1)


class EnergyAlignment(Objective):
    r"""Pulls the free energy of the pool down to that of the labelled samples.

    .. math::

        \min_{h, e} \; \frac{1}{M} \sum_j \mathbb{E}^{L_j}[L_Y(h(e(x)), y)]
        + w \, \mathbb{E}^{O}[\max(0, F(x) - \Delta)]

    with the free energy F (:func:`free_energy`), and :math:`\Delta` its mean over the
    labelled samples of the last batches. This is how EADA trains: with the strategy
    ``eada`` it is the whole method. Labelled domains weigh the same, as in ``erm``.

    Parameters
    ----------
    weight : float, default=0.01
        The weight w.
    decay : float, default=0.9
        A batch's part in :math:`\Delta` shrinks by this factor in every step.
    batch_norm : {"together", "separate"}, default="together"
        Whether labelled and pool samples pass the encoder in one batch or in two, which
        matters where it normalises over batches, as in :class:`CAL`.

    Attributes
    ----------
    margin_ : Tensor
        The present :math:`\Delta`.

    References
    ----------
    Xie et al., "Active Learning for Domain Adaptation: An Energy-Based Approach",
    AAAI 2022.

    Examples
    --------
    >>> from mdal.net import CompositeNet
    >>> CompositeNet("energy_alignment", method__weight=0.1).method
    'energy_alignment'
    """

    def __init__(self, weight=0.01, *, decay=0.9, batch_norm="together"):
        self.weight = weight
        self.decay = decay
        self.batch_norm = batch_norm

    def check(self):
        """Raise an error if a parameter cannot be used."""
        check_number(self.weight, "weight")
        check_number(self.decay, "decay", high=1)
        check_option(self.batch_norm, "batch_norm", BATCH_NORMS)

    def start(self, nets, averaged, task):
        """Take the shares of the labelled domains, and forget the last energies."""
        self.beta_, self.margin_ = label_shares(nets, task), None

    def losses(self, nets, batch, averaged):
        """Yield the loss of classes and the pool's excess of energy."""
        module = nets["module"]
        z, pool_z = embedded(module, batch, self.batch_norm)
        logits, pool_logits = (
            module.shared_logits(hidden)
            for hidden in penultimate_apart(module, z, pool_z)
        )
        here = free_energy(logits.detach()).mean()
        self.margin_ = (
            here if self.margin_ is None else here.lerp(self.margin_, self.decay)
        )
        errors = functional.cross_entropy(logits, batch.y, reduction="none")
        excess = functional.relu(free_energy(pool_logits) - self.margin_).mean()
        yield (
            "module",
            {
                "v_h": domain_mean(errors, batch.domains, self.beta_),
                "excess_energy": self.weight * excess,
            },
        )
