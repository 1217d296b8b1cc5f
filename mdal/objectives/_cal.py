"""Composite Active Learning and its variants."""

import math
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import losses as terms
from .._validation import check_count, check_number, check_option, resolve_alpha
from ..modules import CompositeClassifier, ConditionalDiscriminator, Surrogates
from ..similarity import alpha_gradient, alpha_step
from ..tables import LOSSES, DomainTables
from ._interface import BATCH_NORMS, Objective, embedded, label_shares


class MultiplicativeWeights(torch.optim.Optimizer):
    """Multiplicative steps of alpha, which keep its rows on the simplex.

    A step is :func:`mdal.similarity.alpha_step`. It takes place on the CPU, in double
    precision.

    Parameters
    ----------
    params : iterable of torch.nn.Parameter
        Square matrices whose rows sum to 1.
    lr : float, default=0.05
        Size of the step.

    Examples
    --------
    >>> import torch
    >>> from mdal.objectives import MultiplicativeWeights
    >>> alpha = torch.nn.Parameter(torch.full((2, 2), 0.5))
    >>> optimizer = MultiplicativeWeights([alpha], lr=1.0)
    >>> (alpha * torch.tensor([[0.0, -0.5], [0.0, 0.0]])).sum().backward()
    >>> optimizer.step()
    >>> alpha.detach()
    tensor([[0.2689, 0.7311],
            [0.5000, 0.5000]])
    """

    def __init__(self, params, lr: float = 0.05):
        super().__init__(params, {"lr": check_number(lr, "lr")})

    @torch.no_grad()
    def step(self, closure=None):
        """Take one step along the gradients that ``backward`` has left."""
        for group in self.param_groups:
            for alpha in group["params"]:
                old = alpha.cpu().double().numpy()
                new, _ = alpha_step(
                    old / old.sum(axis=1, keepdims=True),
                    alpha.grad.cpu().double().numpy(),
                    step_size=group["lr"],
                )
                alpha.copy_(torch.as_tensor(new))


class CAL(Objective):
    r"""Composite Active Learning's min-max game, and every variant of it.

    .. math:: \min_{h, e, h_i} \min_\alpha \max_f \; V_h - \lambda_d V_d + V_\lambda

    On each batch the discriminator f takes a step up, alpha one down, then encoder and
    classifiers one down, each with what the earlier ones have become (Algorithm 1). The
    samples pass the encoder once; the discriminator's step does not reach it, and
    alpha's needs no backward pass.

    Parameters
    ----------
    lambda_d : float, default=1.0
        Weight of :math:`V_d`, for the encoder and for alpha. With 0/1 losses the mean
        of :math:`\frac{1}{2} d_{H \Delta H}` is :math:`1 - 2 V_d`, so the bound
        itself corresponds to 2; the paper's objective has 1.
    fade_from : float, default=0.0
        Part of each fit after which the encoder's weight of :math:`V_d` falls
        linearly, to reach 0 at the end; 1 is never, as in the paper. With few labels,
        alignment that goes on to the end costs accuracy; with many it gains a little.
    second_term, third_term : bool, default=True
        Whether :math:`V_d` and :math:`V_\lambda` are part of the objective.
    alignment : bool, default=True
        Whether the encoder learns to confuse the discriminator. Without, only alpha
        does: the paper's CAL-alpha.
    learn_alpha : bool, default=True
        Whether alpha takes steps.
    alpha : array-like of shape (n_domains, n_domains), "identity" or None, default=None
        Where alpha starts, or stays; None is uniform over the labelled domains.
    alpha_from : float, default=0.1
        Part of each fit after which alpha begins to move. As long as the
        classifiers know nothing, what they err on says nothing of the domains; but a
        domain that loses its weight for that is no longer trained on, goes on being
        erred on, and never comes back.
    alpha_loss : {"zero_one", "probability", "cross_entropy"}, default="zero_one"
        The losses that alpha looks at.
    complexity : {None, "mean", "row"}, default=None
        A complexity term in alpha's objective, see
        :func:`mdal.similarity.alpha_objective`.
    two_updates : bool, default=False
        Whether the discriminator takes a second step, after alpha's (CAL++).
    index : {"scalar", "one_hot"}, default="scalar"
        How domains enter the discriminator; CAL++ has "one_hot".
    batch_norm : {"together", "separate"}, default="together"
        Whether labelled and pool samples pass the encoder in one batch or in two, as
        published, which matters where it normalises over batches. In two, the
        discriminator can tell them apart by what the normalisation has done to each
        and, in prediction, sees features unlike those that it was trained on. Without
        the second term there is a pool in the batch only if something around this
        objective asks for it, as :class:`Consistency` does.
    max_pairs : int, default=2000
        The discriminator sees every labelled sample of a batch with every domain. If
        there are more such pairs than this, it sees a sample of them, weighted so
        that :math:`V_d` and its gradient are unbiased.
    table_decay : float, default=0.9
        The tables that alpha looks at are means over the last batches; a batch's part
        in them shrinks by this factor in every step.

    Attributes
    ----------
    tables_ : mdal.tables.DomainTables
        The last tables, if alpha is learned.

    References
    ----------
    Hao et al., "Composite Active Learning: Towards Multi-Domain Active Learning with
    Theoretical Guarantees", AAAI 2024.

    Examples
    --------
    >>> from mdal.net import CompositeNet
    >>> from mdal.objectives import CAL
    >>> CompositeNet(CAL(lambda_d=0.5, third_term=False)).method
    CAL(lambda_d=0.5, third_term=False)
    """

    def __init__(
        self,
        lambda_d=1.0,
        *,
        fade_from=0.0,
        second_term=True,
        third_term=True,
        alignment=True,
        learn_alpha=True,
        alpha=None,
        alpha_from=0.1,
        alpha_loss="zero_one",
        complexity=None,
        two_updates=False,
        index="scalar",
        batch_norm="together",
        max_pairs=2000,
        table_decay=0.9,
    ):
        self.lambda_d = lambda_d
        self.fade_from = fade_from
        self.second_term = second_term
        self.third_term = third_term
        self.alignment = alignment
        self.learn_alpha = learn_alpha
        self.alpha = alpha
        self.alpha_from = alpha_from
        self.alpha_loss = alpha_loss
        self.complexity = complexity
        self.two_updates = two_updates
        self.index = index
        self.batch_norm = batch_norm
        self.max_pairs = max_pairs
        self.table_decay = table_decay

    has_alpha = True
    networks: ClassVar = {"discriminator": ConditionalDiscriminator}

    @property
    def needs_pool(self) -> bool:
        """Whether there is a discriminator, for which the pool is loaded."""
        return self.second_term

    def check(self):
        """Raise an error if a parameter cannot be used."""
        check_number(self.lambda_d, "lambda_d")
        check_number(self.fade_from, "fade_from", high=1)
        check_number(self.alpha_from, "alpha_from", high=1)
        check_count(self.max_pairs, "max_pairs", minimum=1)
        check_number(self.table_decay, "table_decay", high=1)
        check_option(self.alpha_loss, "alpha_loss", LOSSES)
        check_option(self.batch_norm, "batch_norm", BATCH_NORMS)

    def build(self, make, task):
        """Return encoder and classifiers, the discriminator, and alpha."""
        self.check()
        module = make(
            "module",
            CompositeClassifier,
            shape=task.shape,
            n_classes=task.n_classes,
            n_domains=task.n_domains if self.third_term else 0,
        )
        nets = {"module": module}
        if self.second_term:
            nets["discriminator"] = make(
                "discriminator",
                ConditionalDiscriminator,
                n_features=module.n_features,
                n_domains=task.n_domains,
                index=self.index,
            )
        nets["surrogates"] = make(
            "surrogates", Surrogates, alpha=resolve_alpha(self.alpha, task.counts)
        )
        return nets

    def groups(self, nets):
        """Return a group for each network; alpha's takes multiplicative steps."""
        groups = super().groups(nets)
        alpha = groups.pop("surrogates")
        if self.learn_alpha:
            groups["alpha"] = alpha._replace(
                optimizer=MultiplicativeWeights, settings={"lr": 0.05}
            )
        return groups

    def start(self, nets, averaged, task):
        """Take the shares of the domains; start alpha anew if others are labelled."""
        alpha = nets["surrogates"].alpha
        self.counts_ = task.counts
        sizes = alpha.new_tensor(task.sizes)
        self.beta_, self.gamma_ = label_shares(nets, task), sizes / sizes.sum()
        self.running_ = None
        begin = torch.as_tensor(resolve_alpha(self.alpha, task.counts))
        for surrogates in (nets["surrogates"], averaged["surrogates"]):
            used = surrogates().sum(axis=0) > 0
            if not self.learn_alpha or (used != (task.counts > 0)).any():
                with torch.no_grad():
                    surrogates.alpha.copy_(begin)

    def losses(self, nets, batch, averaged):
        """Yield the losses of f, of alpha, and of encoder and classifiers."""
        module, surrogates = nets["module"], nets["surrogates"]
        alpha = surrogates.alpha.detach()  # the same memory: it follows alpha's steps
        z, pool_z = self._features(module, batch)
        logits = module.all_logits(z)
        verdict = None
        if self.second_term:
            f = nets["discriminator"]
            pairs = self._pairs(batch, alpha)
            verdict = _judge(f, z.detach(), pool_z.detach(), batch, pairs)
            yield "discriminator", {"v_d": self._v_d(verdict, batch, alpha)}
            verdict = _judge(f, z, pool_z, batch, pairs)
        if self.learn_alpha and batch.progress >= self.alpha_from:
            slope = self._alpha_slope(logits, verdict, batch, surrogates)
            yield "alpha", {"alpha_loss": (slope * surrogates.alpha).sum()}
        if self.second_term and self.two_updates:
            verdict = _judge(f, z.detach(), pool_z.detach(), batch, pairs)
            yield "discriminator", {"v_d_again": self._v_d(verdict, batch, alpha)}
            verdict = _judge(f, z, pool_z, batch, pairs)
        yield "module", self._module_losses(logits, verdict, batch, alpha)

    def _features(self, module, batch) -> tuple[Tensor, Tensor | None]:
        """Return the features of the labelled and of the pool samples."""
        if self.batch_norm == "together" and batch.pool_X is not None:
            return embedded(module, batch, "together")
        z = module.embed(batch.X)
        if not self.second_term:
            return z, None
        with torch.set_grad_enabled(self.alignment):
            return z, module.embed(batch.pool_X)

    def _pairs(self, batch, alpha) -> terms.Pairs:
        n_samples, n_domains = len(batch.domains), len(alpha)
        if n_samples * n_domains <= self.max_pairs:
            return terms.all_pairs(n_samples, n_domains, alpha)
        return terms.sampled_pairs(
            batch.domains, alpha, self.beta_, self.max_pairs, batch.generator
        )

    def _v_d(self, verdict, batch, alpha) -> Tensor:
        return terms.v_d(
            terms.pair_losses(verdict.pool, original=True),
            batch.pool_domains,
            terms.pair_losses(verdict.labelled, original=False),
            batch.domains,
            verdict.pairs,
            alpha,
            self.beta_,
            self.gamma_,
        )

    def _module_losses(self, logits, verdict, batch, alpha) -> dict[str, Tensor]:
        losses = terms.class_losses(logits, batch.y)
        shared, own = losses[:, 0], losses[:, 1:]
        named = {"v_h": terms.v_h(shared, batch.domains, alpha, self.beta_)}
        if self.third_term:
            named["v_lambda"] = terms.v_lambda(own, batch.domains, alpha, self.beta_)
        if self.second_term and self.alignment:
            weight = self.lambda_d * _faded(batch.progress, self.fade_from)
            named["alignment"] = -weight * self._v_d(verdict, batch, alpha)
        return named

    def _alpha_slope(self, logits, verdict, batch, surrogates) -> Tensor:
        """Return the gradient of alpha's objective, from the tables of late batches."""
        kind, n_domains = self.alpha_loss, len(self.counts_)
        head_losses = terms.class_losses(logits.detach(), batch.y, kind)
        if verdict is None:
            verdict = _no_verdict(logits, batch)
        new = terms.table_sums(
            terms.pair_losses(verdict.pool, True, kind),
            batch.pool_domains if self.second_term else verdict.pairs.domains,
            terms.pair_losses(verdict.labelled, False, kind),
            batch.domains,
            verdict.pairs,
            head_losses,
            n_domains,
        )
        if self.running_ is None:  # undecided, where nothing has been seen
            undecided = math.log(2) if kind == "cross_entropy" else 0.5
            sums = [torch.full_like(part, undecided) for part in new[::2]]
            ones = [torch.ones_like(part) for part in new[::2]]
            pairs = zip(sums, ones, strict=True)
            self.running_ = terms.TableSums(*[part for pair in pairs for part in pair])
        self.running_ = self.running_.followed_by(new, self.table_decay)
        self.tables_ = _handed_over(self.running_, self.counts_, kind)
        slope = alpha_gradient(
            self.tables_,
            surrogates(),
            lambda_d=self.lambda_d if self.second_term else 0.0,
            complexity=self.complexity,
        )
        return surrogates.alpha.new_tensor(slope)

    def epoch_record(self, averaged):
        """Return alpha and the tables."""
        record = {"alpha": averaged["surrogates"]().tolist()}
        if hasattr(self, "tables_"):
            record["tables"] = {
                "misses": self.tables_.misses.tolist(),
                "hits": self.tables_.hits.tolist(),
                "errors": self.tables_.errors.tolist(),
                "loss": self.tables_.loss,
            }
        return record

    def observe(self, averaged, X, domains=None):
        """Add the outlier score f(z, i)."""
        seen = super().observe(averaged, X, domains)
        if self.second_term and domains is not None:
            f = averaged["discriminator"]
            seen["outlier"] = torch.sigmoid(f(seen["features"], domains))
        return seen


def _faded(progress: float, start: float) -> float:
    """Return 1 until `start`, then a line down to 0 at the end of the training."""
    return 1.0 if progress <= start else (1 - progress) / (1 - start)


class _Verdict(NamedTuple):
    """The discriminator's logits on the pool, and on pairs of labelled samples."""

    pool: Tensor
    labelled: Tensor
    pairs: terms.Pairs


def _judge(f, z, pool_z, batch, pairs) -> _Verdict:
    logits = f(
        torch.cat([pool_z, z[pairs.rows]]),
        torch.cat([batch.pool_domains, pairs.domains]),
    )
    return _Verdict(*logits.split([len(pool_z), len(pairs.rows)]), pairs)


def _no_verdict(logits, batch) -> _Verdict:
    """Return that of no discriminator at all."""
    values, codes = logits.new_zeros(0), batch.domains[:0]
    return _Verdict(values, values, terms.Pairs(codes, codes, values))


def _handed_over(sums: terms.TableSums, counts, kind: str) -> DomainTables:
    """Take the tables from the device to NumPy, which waits for the device."""
    misses, hits, errors = (part.double().cpu().numpy() for part in sums.means())
    if len(errors) == 1:  # no domain has a classifier of its own
        errors = np.concatenate([errors, np.zeros_like(hits)])
    return DomainTables(misses, hits, counts, errors, kind)
