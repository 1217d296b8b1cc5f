"""Consistency: the same answer for a sample of the pool and for a perturbed copy."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .._validation import check_number
from ..losses import at_least_single, domain_mean
from ..perturbations import get_perturbation
from ._interface import Objective, label_shares, shares

_TARGETS = {
    "images": {"threshold": 0.8, "temperature": 0.0, "centre": False},
    "vectors": {"threshold": 0.0, "temperature": 1.0, "centre": True},
}
_DECAY = 0.95  # of the mean predictions, in each step


def default_targets() -> dict[str, dict[str, float | bool]]:
    """Return which samples a teacher teaches, and what, by their shape.

    Returns
    -------
    dict of str to dict
        What the settings of :class:`Consistency` are where nobody says otherwise.

    Examples
    --------
    >>> from mdal.objectives import default_targets
    >>> default_targets()["vectors"]
    {'threshold': 0.0, 'temperature': 1.0, 'centre': True}
    """
    return {kind: dict(settings) for kind, settings in _TARGETS.items()}


def balanced(logits: Tensor, means: Tensor, strength: float) -> Tensor:
    r"""Return logits that favour classes which are predicted seldom.

    .. math:: \tilde p_y(x) \propto p_y(x) / m_{iy}^s

    with the mean predictions :math:`m_i` of the sample's domain. With a strength of 1
    the classes are about as frequent among targets in every domain: what is predicted
    too often, as by a net that has seen few labels, is not taught to it again.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)
        Of the samples.
    means : Tensor of shape (n_samples, n_classes)
        Mean predictions of each sample's domain.
    strength : float
        The exponent s, from 0 to 1.

    Returns
    -------
    Tensor of shape (n_samples, n_classes)

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import balanced
    >>> logits, means = torch.tensor([[0.6, 0.4]]).log(), torch.tensor([[0.9, 0.1]])
    >>> balanced(logits, means, 1.0).softmax(dim=1).round(decimals=3)
    tensor([[0.1430, 0.8570]])
    """
    return at_least_single(logits) - strength * means.clamp(min=1e-6).log()


def centred(logits: Tensor, taught: Tensor, sure: Tensor) -> Tensor:
    r"""Return logits that are, on average over a batch, those of a teacher.

    .. math:: l(x') - \mathbb{E}[l(x') - \bar l(x)]

    with the logits :math:`\bar l` of the teacher, and a plain mean over the samples
    that it is sure of. They do not change when all samples move towards a class alike,
    so that no loss of them has a part in such a move; a single sample teaches nothing.
    Otherwise a net that learns from its own predictions, and has few labels to hold
    it, may drift towards some of the classes.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)
        Of perturbed copies.
    taught : Tensor of shape (n_samples, n_classes)
        The teacher's of the samples themselves.
    sure : Tensor of shape (n_samples,)
        Whether the teacher is sure of each sample.

    Returns
    -------
    Tensor of shape (n_samples, n_classes)

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import centred
    >>> taught = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> logits = taught + torch.tensor([5.0, 0.0])
    >>> centred(logits, taught, sure=torch.tensor([True, True]))
    tensor([[1., 0.],
            [0., 1.]])
    """
    moves = (logits - taught) * sure[:, None]
    return logits - moves.sum(dim=0) / sure.sum().clamp(min=1)


def consistency_losses(
    logits: Tensor,
    taught: Tensor,
    threshold: float,
    temperature: float = 0.0,
    centre: bool = False,
) -> Tensor:
    r"""Return the loss of each sample against what a teacher is sure of.

    .. math::

        - \mathbb{1}[\max_y \bar p_y(x) \ge \tau] \sum_y q_y(x) \log h_y(e(x')), \qquad
        q_y(x) \propto \bar p_y(x)^{1 / T}

    with a sample x, its perturbed copy x', and the teacher's probabilities
    :math:`\bar p`. Targets q are the teacher's with a temperature T of 1, sharper below
    it, and the one class :math:`\arg\max_y \bar p_y(x)` at 0.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)
        Of the perturbed copies.
    taught : Tensor of shape (n_samples, n_classes)
        The teacher's logits of the samples themselves.
    threshold : float
        The probability :math:`\tau` from which the teacher is sure.
    temperature : float, default=0.0
        The temperature T of the targets.
    centre : bool, default=False
        Whether the logits of the copies are :func:`centred` before.

    Returns
    -------
    Tensor of shape (n_samples,)
        0 where the teacher is not sure.

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import consistency_losses
    >>> taught = torch.tensor([[5.0, 0.0], [0.2, 0.0]])
    >>> consistency_losses(torch.zeros(2, 2), taught, 0.95).round(decimals=3)
    tensor([0.6930, 0.0000])
    """
    logits, taught = at_least_single(logits), at_least_single(taught.detach())
    certainty, target = taught.softmax(dim=1).max(dim=1)
    sure = certainty >= threshold
    if centre:
        logits = centred(logits, taught, sure)
    if temperature > 0:
        target = (taught / temperature).softmax(dim=1)
    losses = functional.cross_entropy(logits, target, reduction="none")
    return torch.where(sure, losses, losses.new_zeros(()))


class Consistency(Objective):
    r"""Another method, and the same answer for perturbed samples of the pool.

    The net with averaged weights, which predicts, is the teacher. By default, where it
    is sure of an image's class, the net learns that class for a perturbed copy of the
    image; for a perturbed copy of a vector it learns all that the teacher says, sure or
    not, but for what would move all samples towards a class alike. So the unlabelled
    part of the pool is trained on, too.

    .. math::

        \min \; \mathrm{base}
        + w(p) \, \frac{1}{N} \sum_i \mathbb{E}^{O_i}[\ell(h(e(x')), \bar p(x))]
        + v \, \frac{1}{M} \sum_j \mathbb{E}^{L_j}[L_Y(h(e(x')), y)]

    with the loss :math:`\ell` of :func:`consistency_losses`, and a weight w that rises
    in proportion to the progress p of the training until p is `ramp`. The last sum,
    over the M domains that have labels, is of perturbed copies of labelled samples.
    With `balance`, :math:`\bar p` is what :func:`balanced` makes of the teacher; with
    `centre`, the logits of h are :func:`centred`.

    Parameters
    ----------
    base : Objective
        The method that it is added to. Its parameters have the prefix ``base__``.
    perturb : str, mapping or callable, default="auto"
        Makes perturbed samples, see :func:`mdal.perturbations.get_perturbation`.
    weight : float, default=1.0
        What w rises to.
    threshold : float, default=None
        The probability :math:`\tau` from which the teacher is sure. None is 0.8 where
        it teaches one class, and 0 otherwise: it then teaches all samples.
    temperature : float, default=None
        The temperature T of the targets: 0 is the class that the teacher is sure of, 1
        all that it says. None is 0 for images and 1 for vectors, of which a teacher is
        often sure without being right.
    centre : bool, default=None
        Whether it is left to the base, and so to the labels, to move all samples
        towards a class alike, see :func:`centred`. None is True where the temperature
        is above 0, unless classes are balanced: of centred targets, `balance` moves
        those of one domain against those of another alone.
    ramp : float, default=0.2
        Part of the training in which the weight rises.
    label_weight : float, default=1.0
        The weight v of perturbed copies of labelled samples.
    balance : float, default=0.0
        How much the teacher's classes are balanced within each domain, from 0 to 1, see
        :func:`balanced`: for domains whose classes are about equally frequent.

    References
    ----------
    Sohn et al., "FixMatch: Simplifying Semi-Supervised Learning with Consistency and
    Confidence", NeurIPS 2020.
    Tarvainen and Valpola, "Mean teachers are better role models", NeurIPS 2017.

    Examples
    --------
    >>> from mdal.net import CompositeNet
    >>> CompositeNet("cal_consistency", method__threshold=0.9).method
    'cal_consistency'
    """

    needs_pool = True

    def __init__(
        self,
        base,
        *,
        perturb="auto",
        weight=1.0,
        threshold=None,
        temperature=None,
        centre=None,
        ramp=0.2,
        label_weight=1.0,
        balance=0.0,
    ):
        self.base = base
        self.perturb = perturb
        self.weight = weight
        self.threshold = threshold
        self.temperature = temperature
        self.centre = centre
        self.ramp = ramp
        self.label_weight = label_weight
        self.balance = balance

    @property
    def has_alpha(self) -> bool:
        """Whether the base has one."""
        return self.base.has_alpha

    @property
    def networks(self) -> dict:
        """Those of the base."""
        return self.base.networks

    def check(self):
        """Raise an error if a parameter cannot be used."""
        if not isinstance(self.base, Objective):
            raise TypeError(f"base={self.base!r} is no objective; pass one, as CAL()")
        self.base.check()
        get_perturbation(self.perturb, (1, 1))
        check_number(self.weight, "weight")
        if self.threshold is not None:
            check_number(self.threshold, "threshold", high=1)
        if self.temperature is not None:
            check_number(self.temperature, "temperature")
        if self.centre is not None and not isinstance(self.centre, bool | np.bool_):
            raise TypeError(f"centre={self.centre!r}; pass True, False or None")
        check_number(self.ramp, "ramp", high=1)
        check_number(self.label_weight, "label_weight")
        check_number(self.balance, "balance", high=1)

    def _given(self) -> dict[str, float | bool]:
        """Return threshold, temperature and centre, where the shape does not decide."""
        given = {
            "threshold": self.threshold,
            "temperature": self.temperature,
            "centre": False if self.centre is None and self.balance else self.centre,
        }
        return {name: value for name, value in given.items() if value is not None}

    def build(self, make, task):
        """Return the networks of the base."""
        self.perturb_ = get_perturbation(self.perturb, task.shape)
        given = self._given()
        one_class = given.get("temperature", len(task.shape) == 1) == 0
        self.targets_ = {**_TARGETS["images" if one_class else "vectors"], **given}
        return self.base.build(make, task)

    def groups(self, nets):
        """Return the groups of the base."""
        return self.base.groups(nets)

    def start(self, nets, averaged, task):
        """Prepare the base, and take the shares of the domains."""
        self.base.start(nets, averaged, task)
        self.beta_, self.gamma_ = label_shares(nets, task), shares(nets, task.sizes)
        uniform = 1 / task.n_classes
        self.means_ = self.gamma_.new_full((task.n_domains, task.n_classes), uniform)

    def losses(self, nets, batch, averaged):
        """Yield the losses of the base, and with those of the classifier its own."""
        for group, named in self.base.losses(nets, batch, averaged):
            if group == "module":
                named = {**named, **self._own(nets, batch, averaged)}
            yield group, named

    def _own(self, nets, batch, averaged) -> dict[str, Tensor]:
        """Return the losses of perturbed copies, which pass the net in one batch."""
        X, domains, n_labelled = batch.pool_X, batch.pool_domains, 0
        if self.label_weight:
            X = torch.cat([batch.X, X])
            domains = torch.cat([batch.domains, domains])
            n_labelled = len(batch.X)
        with torch.no_grad():
            taught = self.base.predictions(averaged, batch.pool_X, batch.pool_domains)
            targets = self._balanced(taught["logits"], batch.pool_domains)
            perturbed = self.perturb_(X, batch.generator)
        logits = self.base.predictions(nets, perturbed, domains)["logits"]
        losses = consistency_losses(logits[n_labelled:], targets, **self.targets_)
        rise = min(batch.progress / self.ramp, 1.0) if self.ramp else 1.0
        mean = domain_mean(losses, batch.pool_domains, self.gamma_)
        named = {"consistency": self.weight * rise * mean}
        if self.label_weight:
            errors = functional.cross_entropy(
                at_least_single(logits[:n_labelled]), batch.y, reduction="none"
            )
            mean = domain_mean(errors, batch.domains, self.beta_)
            named["perturbed_v_h"] = self.label_weight * mean
        return named

    def _balanced(self, taught, domains) -> Tensor:
        """Return the teacher's logits by which the net learns."""
        if self.balance == 0:
            return taught
        p = at_least_single(taught).softmax(dim=1).to(self.means_.dtype)
        counts = torch.bincount(domains, minlength=len(self.means_))[:, None]
        sums = torch.zeros_like(self.means_).index_add_(0, domains, p)
        followed = torch.lerp(sums / counts.clamp(min=1), self.means_, _DECAY)
        self.means_ = torch.where(counts > 0, followed, self.means_)
        return balanced(taught, self.means_[domains], self.balance)

    def epoch_record(self, averaged):
        """Return that of the base."""
        return self.base.epoch_record(averaged)

    def predictions(self, nets, X, domains=None):
        """Return those of the base."""
        return self.base.predictions(nets, X, domains)

    def observe(self, averaged, X, domains=None):
        """Return what the base observes."""
        return self.base.observe(averaged, X, domains)
