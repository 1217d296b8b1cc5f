"""Multinomial adversarial networks: shared and private features."""

from typing import ClassVar

from torch.nn import functional

from .._validation import check_number, check_option
from ..losses import domain_mean
from ..modules import DomainClassifier, SharedPrivateClassifier
from ._interface import BATCH_NORMS, Objective, embedded, label_shares


class MAN(Objective):
    r"""Features that all domains share, and private ones of each domain.

    .. math::

        \min_{h, e, e_i} \max_c \; \frac{1}{M} \sum_j
        \mathbb{E}^{L_j}[L_Y(h(e(x), e_j(x)), y)]
        - w \, \mathbb{E}^{O}[L_C(c(e(x)), i)]

    The classifier h sees the features of the shared encoder e beside those of the
    encoder :math:`e_j` of the sample's domain; a classifier c of the domains keeps the
    shared ones from telling the domain. On each batch c takes its step first. Samples
    whose domain is not given, or has no label, have private features of 0, as in the
    paper. Labelled domains weigh the same, as in ``erm``.

    Parameters
    ----------
    weight : float, default=0.05
        The weight w.
    batch_norm : {"together", "separate"}, default="together"
        Whether labelled and pool samples pass the encoder in one batch or in two, which
        matters where it normalises over batches, as in :class:`CAL`.

    References
    ----------
    Chen and Cardie, "Multinomial Adversarial Networks for Multi-Domain Text
    Classification", NAACL 2018.
    He et al., "Multi-Domain Active Learning: Literature Review and Comparative Study",
    IEEE TETCI 2023.

    Examples
    --------
    >>> from mdal.net import CompositeNet
    >>> CompositeNet("man", method__weight=0.1).method
    'man'
    """

    networks: ClassVar = {"domain_classifier": DomainClassifier}

    def __init__(self, weight=0.05, *, batch_norm="together"):
        self.weight = weight
        self.batch_norm = batch_norm

    def check(self):
        """Raise an error if a parameter cannot be used."""
        check_number(self.weight, "weight")
        check_option(self.batch_norm, "batch_norm", BATCH_NORMS)

    def build(self, make, task):
        """Return the encoders with their classifier, and the classifier of domains."""
        module = make(
            "module",
            SharedPrivateClassifier,
            shape=task.shape,
            n_classes=task.n_classes,
            n_domains=task.n_domains,
        )
        if not hasattr(module, "private_features"):
            raise TypeError(
                f"module is a {type(module).__name__} without private_features; pass a "
                "SharedPrivateClassifier or a class like it"
            )
        domain_classifier = make(
            "domain_classifier",
            DomainClassifier,
            n_features=module.n_features,
            n_domains=task.n_domains,
        )
        return {"module": module, "domain_classifier": domain_classifier}

    def start(self, nets, averaged, task):
        """Take the shares of the labelled domains."""
        self.beta_ = label_shares(nets, task)

    def losses(self, nets, batch, averaged):
        """Yield the loss of the classifier of domains, then those of the others."""
        module, guess = nets["module"], nets["domain_classifier"]
        z, pool_z = embedded(module, batch, self.batch_norm)
        yield (
            "domain_classifier",
            {
                "domain_loss": functional.cross_entropy(
                    guess(pool_z.detach()), batch.pool_domains
                )
            },
        )
        private_z = module.private_features(batch.X, batch.domains)
        logits = module.shared_logits(module.penultimate(z, private_z))
        errors = functional.cross_entropy(logits, batch.y, reduction="none")
        unlike = functional.cross_entropy(guess(pool_z), batch.pool_domains)
        yield (
            "module",
            {
                "v_h": domain_mean(errors, batch.domains, self.beta_),
                "alignment": -self.weight * unlike,
            },
        )

    def predictions(self, nets, X, domains=None):
        """Use the private features of domains that are given and have labels."""
        module = nets["module"]
        features, private = module.embed(X), None
        if domains is not None:
            trained = self.beta_[domains] > 0
            private = module.private_features(X, domains) * trained[:, None]
        penultimate = module.penultimate(features, private)
        return {
            "logits": module.shared_logits(penultimate),
            "penultimate": penultimate,
            "features": features,
        }
