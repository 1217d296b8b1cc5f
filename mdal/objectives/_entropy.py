"""Minimax entropy, the training of CLUE."""

from torch import Tensor
from torch.nn import functional

from .._validation import check_number, check_option
from ..losses import at_least_single, domain_mean
from ._dann import reversed_gradient
from ._interface import (
    BATCH_NORMS,
    Objective,
    embedded,
    label_shares,
    penultimate_apart,
)


def mean_entropy(logits: Tensor) -> Tensor:
    r"""Return the mean entropy of predictions.

    .. math:: -\frac{1}{n} \sum_x \sum_y p_y(x) \ln p_y(x)

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)

    Returns
    -------
    Tensor
        A scalar.

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import mean_entropy
    >>> round(mean_entropy(torch.zeros(3, 2)).item(), 4)
    0.6931
    """
    log_p = functional.log_softmax(at_least_single(logits), dim=1)
    return -(log_p.exp() * log_p).sum(dim=1).mean()


class MinimaxEntropy(Objective):
    r"""The last layer raises the entropy of the pool, all layers before it lower it.

    .. math::

        \min_C \; V - w H, \qquad \min_F \; V + w H, \qquad
        V = \frac{1}{M} \sum_j \mathbb{E}^{L_j}[L_Y(C(F(x)), y)]

    with the last layer C, the layers F before it, and the mean entropy H of predictions
    on the pool (:func:`mean_entropy`). A reversed gradient between C and F lets both
    step at once. This is how CLUE trains: with the strategy ``clue`` it is the whole
    method. Labelled domains weigh the same, as in ``erm``.

    Parameters
    ----------
    weight : float, default=0.1
        The weight w.
    batch_norm : {"together", "separate"}, default="together"
        Whether labelled and pool samples pass the encoder in one batch or in two, which
        matters where it normalises over batches, as in :class:`CAL`.

    References
    ----------
    Saito et al., "Semi-supervised Domain Adaptation via Minimax Entropy", ICCV 2019.
    Prabhu et al., "Active Domain Adaptation via Clustering Uncertainty-weighted
    Embeddings", ICCV 2021.

    Examples
    --------
    >>> from mdal.net import CompositeNet
    >>> CompositeNet("minimax_entropy", method__weight=0.5).method
    'minimax_entropy'
    """

    def __init__(self, weight=0.1, *, batch_norm="together"):
        self.weight = weight
        self.batch_norm = batch_norm

    def check(self):
        """Raise an error if a parameter cannot be used."""
        check_number(self.weight, "weight")
        check_option(self.batch_norm, "batch_norm", BATCH_NORMS)

    def start(self, nets, averaged, task):
        """Take the shares of the labelled domains."""
        self.beta_ = label_shares(nets, task)

    def losses(self, nets, batch, averaged):
        """Yield the loss of classes and the entropy of the pool."""
        module = nets["module"]
        z, pool_z = embedded(module, batch, self.batch_norm)
        hidden, pool_hidden = penultimate_apart(module, z, pool_z)
        errors = functional.cross_entropy(
            module.shared_logits(hidden), batch.y, reduction="none"
        )
        entropy = mean_entropy(module.shared_logits(reversed_gradient(pool_hidden)))
        yield (
            "module",
            {
                "v_h": domain_mean(errors, batch.domains, self.beta_),
                "entropy": -self.weight * entropy,
            },
        )
