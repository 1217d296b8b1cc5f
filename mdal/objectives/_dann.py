"""Domain-adversarial training."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._validation import check_number, check_option
from ..losses import domain_mean
from ..modules import DomainClassifier
from ._interface import BATCH_NORMS, Group, Objective, embedded, label_shares


class _ReversedGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, weight):
        ctx.weight = weight
        return z.view_as(z)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.weight * gradient, None


def reversed_gradient(z: Tensor, weight: float = 1.0) -> Tensor:
    """Return the same features; gradients pass back through them times -weight.

    Parameters
    ----------
    z : Tensor
        Features.
    weight : float, default=1.0
        Factor of the gradient.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import reversed_gradient
    >>> z = torch.ones(2, requires_grad=True)
    >>> (3 * reversed_gradient(z, 0.5)).sum().backward()
    >>> z.grad
    tensor([-1.5000, -1.5000])
    """
    return _ReversedGradient.apply(z, weight)


def ramp(progress: float, steepness: float = 10.0) -> float:
    r"""Return the weight of the reversed gradient: from 0 at first to almost 1.

    .. math:: \frac{2}{1 + \exp(-s \, p)} - 1

    Parameters
    ----------
    progress : float
        Part p of the training that is over.
    steepness : float, default=10.0
        The constant s.

    Returns
    -------
    float

    Examples
    --------
    >>> from mdal.objectives import ramp
    >>> ramp(0.0), round(ramp(0.1), 3), round(ramp(1.0), 3)
    (0.0, 0.462, 1.0)
    """
    return 2 / (1 + math.exp(-steepness * progress)) - 1


class DANN(Objective):
    r"""Domain-adversarial training: features that do not tell the domain.

    .. math::

        \min_{h, e} \max_c \; \frac{1}{M} \sum_j \mathbb{E}^{L_j}[L_Y(h(e(x)), y)]
        - w(p) \, \mathbb{E}^{O}[L_C(c(e(x)), i)]

    with a classifier c of the N domains, which learns which domain i a sample of the
    pool comes from, and a weight that rises with the progress p of the training
    (:func:`ramp`). All original domains are aligned with each other. Labelled domains
    weigh the same, as in ``erm``. A reversed gradient lets one optimiser step all, the
    classifier of domains with the same settings as the others.

    Parameters
    ----------
    weight : float, default=1.0
        What w rises to.
    steepness : float, default=10.0
        Of the ramp.
    batch_norm : {"together", "separate"}, default="together"
        Whether labelled and pool samples pass the encoder in one batch or in two, which
        matters where it normalises over batches, as in :class:`CAL`.

    References
    ----------
    Ganin et al., "Domain-Adversarial Training of Neural Networks", JMLR 2016.

    Examples
    --------
    >>> from mdal.net import CompositeNet
    >>> CompositeNet("dann", method__weight=0.1).method
    'dann'
    """

    networks: ClassVar = {"domain_classifier": DomainClassifier}

    def __init__(self, weight=1.0, *, steepness=10.0, batch_norm="together"):
        self.weight = weight
        self.steepness = steepness
        self.batch_norm = batch_norm

    def check(self):
        """Raise an error if a parameter cannot be used."""
        check_number(self.weight, "weight")
        check_number(self.steepness, "steepness")
        check_option(self.batch_norm, "batch_norm", BATCH_NORMS)

    def build(self, make, task):
        """Return encoder and classifier, and the classifier of domains."""
        nets = super().build(make, task)
        nets["domain_classifier"] = make(
            "domain_classifier",
            DomainClassifier,
            n_features=nets["module"].n_features,
            n_domains=task.n_domains,
        )
        return nets

    def groups(self, nets):
        """Return one group: the reversed gradient lets all step at once."""
        return {"module": Group(list(nn.ModuleDict(nets).named_parameters()))}

    def start(self, nets, averaged, task):
        """Take the shares of the labelled domains."""
        self.beta_ = label_shares(nets, task)

    def losses(self, nets, batch, averaged):
        """Yield the losses of classes and of domains."""
        module = nets["module"]
        z, pool_z = embedded(module, batch, self.batch_norm)
        logits = module.shared_logits(module.penultimate(z))
        weight = self.weight * ramp(batch.progress, self.steepness)
        guesses = nets["domain_classifier"](reversed_gradient(pool_z, weight))
        errors = functional.cross_entropy(logits, batch.y, reduction="none")
        yield (
            "module",
            {
                "v_h": domain_mean(errors, batch.domains, self.beta_),
                "domain_loss": functional.cross_entropy(guesses, batch.pool_domains),
            },
        )
