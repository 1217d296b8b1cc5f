"""The terms of the objective, against slow loops written from the paper's equations."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from mdal import losses
from mdal.losses import Pairs, all_pairs, sampled_pairs, table_sums
from mdal.tables import domain_tables

N, N_CLASSES, N_INPUTS = 3, 4, 5


class Situation:
    """Uneven labelled domains and pools, random alpha, and small networks."""

    def __init__(self, seed, n_domains=N):
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        def some(n, high):
            # Every domain at least once, and not equally often.
            extra = torch.randint(high, (n,), generator=generator) ** 2 // high
            return torch.cat([torch.arange(high), extra])

        self.n_domains = n_domains
        self.domains, self.pool_domains = some(9, n_domains), some(14, n_domains)
        self.X = normal(len(self.domains), N_INPUTS)
        self.pool_X = normal(len(self.pool_domains), N_INPUTS)
        self.y = torch.randint(N_CLASSES, (len(self.X),), generator=generator)
        self.alpha = torch.softmax(normal(n_domains, n_domains), dim=1)
        self.beta = torch.bincount(self.domains).double() / len(self.domains)
        self.gamma = torch.bincount(self.pool_domains).double() / len(self.pool_domains)
        self.encoder = normal(N_INPUTS, 3).requires_grad_()
        self.heads = normal(n_domains + 1, 3, N_CLASSES).requires_grad_()
        self.f = normal(3 + n_domains, 1).requires_grad_()

    def e(self, x):
        return torch.tanh(x @ self.encoder)

    def discriminate(self, z, i):
        """Logit that z comes from original domain i."""
        index = functional.one_hot(i, self.n_domains).to(z.dtype)
        return (torch.cat([z, index], dim=-1) @ self.f).squeeze(-1)

    def class_losses(self):
        logits = torch.einsum("nd,hdc->nhc", self.e(self.X), self.heads)
        return losses.class_losses(logits, self.y)

    def discriminator_losses(self, pairs):
        pool = self.discriminate(self.e(self.pool_X), self.pool_domains)
        pair = self.discriminate(self.e(self.X)[pairs.rows], pairs.domains)
        return losses.pair_losses(pool, True), losses.pair_losses(pair, False)

    def v_d(self, pairs):
        pool, labelled = self.discriminator_losses(pairs)
        return losses.v_d(
            pool,
            self.pool_domains,
            labelled,
            self.domains,
            pairs,
            self.alpha,
            self.beta,
            self.gamma,
        )

    def all_pairs(self):
        return all_pairs(len(self.X), self.n_domains, self.X)

    # The paper's equations, sample by sample

    def label_loss(self, head, row):
        logits = self.e(self.X[row]) @ self.heads[head]
        return -torch.log(torch.softmax(logits, dim=0)[self.y[row]])

    def mean_over_labelled(self, j, loss):
        rows = [k for k in range(len(self.X)) if self.domains[k] == j]
        return sum(loss(k) for k in rows) / len(rows)

    def slow_v_h(self):
        total = 0
        for j in range(self.n_domains):
            alpha_j = sum(self.alpha[i, j] for i in range(self.n_domains))
            error = self.mean_over_labelled(j, lambda k: self.label_loss(0, k))
            total = total + alpha_j / self.n_domains * error
        return total

    def slow_v_lambda(self):
        total = 0
        for i in range(self.n_domains):
            for j in range(self.n_domains):
                error = self.mean_over_labelled(
                    j, lambda k, i=i: self.label_loss(1 + i, k)
                )
                total = total + self.alpha[i, j] * error
        return total / self.n_domains

    def slow_v_d(self):
        total = 0
        for i in range(self.n_domains):
            index = torch.tensor(i)
            rows = [k for k in range(len(self.pool_X)) if self.pool_domains[k] == i]
            for k in rows:
                f = torch.sigmoid(self.discriminate(self.e(self.pool_X[k]), index))
                total = total - torch.log(f) / len(rows)
            for j in range(self.n_domains):

                def loss(k, index=index):
                    f = torch.sigmoid(self.discriminate(self.e(self.X[k]), index))
                    return -torch.log(1 - f)

                total = total + self.alpha[i, j] * self.mean_over_labelled(j, loss)
        return total / (2 * self.n_domains)


def fast_and_slow(situation):
    errors = situation.class_losses()
    shared = situation.domains, situation.alpha, situation.beta
    return {
        "v_h": (losses.v_h(errors[:, 0], *shared), situation.slow_v_h()),
        "v_lambda": (
            losses.v_lambda(errors[:, 1:], *shared),
            situation.slow_v_lambda(),
        ),
        "v_d": (situation.v_d(situation.all_pairs()), situation.slow_v_d()),
    }


@pytest.mark.parametrize("n_domains", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("term", ["v_h", "v_lambda", "v_d"])
def test_terms_and_gradients_are_those_of_the_papers_sums(term, seed, n_domains):
    situation = Situation(seed, n_domains)
    fast, slow = fast_and_slow(situation)[term]
    assert fast.item() == pytest.approx(slow.item(), rel=1e-9)
    weights = [situation.encoder, situation.f if term == "v_d" else situation.heads]
    for ours, theirs in zip(
        torch.autograd.grad(fast, weights),
        torch.autograd.grad(slow, weights),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_the_share_that_counts_is_that_of_the_column(monkeypatch):
    """The row's beta, which the published code divides by, fails the test above."""

    def wrong(values, domains, alpha, beta):
        weights = alpha / (len(alpha) * beta[:, None])
        return (weights.T[domains] * values).sum(dim=1).mean()

    monkeypatch.setattr(losses, "v_lambda", wrong)
    with pytest.raises(AssertionError):
        test_terms_and_gradients_are_those_of_the_papers_sums("v_lambda", 0, N)


@given(seed=st.integers(0, 1000))
def test_the_mean_over_batches_is_the_value_on_all_data(seed):
    """Batches of one: only shares of all the data make them unbiased."""
    situation = Situation(seed)
    errors = situation.class_losses().detach()
    for term, values in (
        (losses.v_h, errors[:, 0]),
        (losses.v_lambda, errors[:, 1:]),
    ):
        shared = situation.alpha, situation.beta
        whole = term(values, situation.domains, *shared)
        parts = [
            term(values[k : k + 1], situation.domains[k : k + 1], *shared)
            for k in range(len(values))
        ]
        assert torch.stack(parts).mean().item() == pytest.approx(whole.item())


def test_a_discriminator_that_knows_nothing_costs_log_two():
    situation = Situation(1)
    with torch.no_grad():
        situation.f.zero_()
    assert situation.v_d(situation.all_pairs()).item() == pytest.approx(np.log(2))


@pytest.mark.parametrize("n_pairs", [1, 7, 40])
def test_sampled_pairs_are_unbiased_in_value_and_gradient(n_pairs):
    situation = Situation(2)
    exact = situation.v_d(situation.all_pairs())
    (slope,) = torch.autograd.grad(exact, [situation.encoder])
    generator = torch.Generator().manual_seed(0)
    draws = []
    for _ in range(3000):
        pairs = sampled_pairs(
            situation.domains, situation.alpha, situation.beta, n_pairs, generator
        )
        value = situation.v_d(pairs)
        (gradient,) = torch.autograd.grad(value, [situation.encoder])
        draws.append(torch.cat([value.detach().view(1), gradient.flatten()]))
    draws = torch.stack(draws)
    error = draws.mean(0) - torch.cat([exact.detach().view(1), slope.flatten()])
    spread = draws.std(0) / len(draws) ** 0.5
    assert (error.abs() < 4.5 * spread).all()


def test_sampled_pairs_reach_domains_of_no_weight():
    """Otherwise alpha could never learn of a domain that it has left."""
    domains, shares = torch.tensor([0, 1]), torch.tensor([0.5, 0.5])
    generator = torch.Generator().manual_seed(0)
    pairs = sampled_pairs(domains, torch.eye(2), shares, 200, generator)
    off_diagonal = domains[pairs.rows] != pairs.domains
    assert 20 < off_diagonal.sum() < 90
    assert pairs.weights.sum() == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("kind", ["zero_one", "probability", "cross_entropy"])
@pytest.mark.parametrize("seed", range(3))
def test_tables_are_those_of_the_predictions(kind, seed):
    situation = Situation(seed)
    pairs = situation.all_pairs()
    with torch.no_grad():
        pool = situation.discriminate(
            situation.e(situation.pool_X), situation.pool_domains
        )
        labelled = situation.discriminate(
            situation.e(situation.X)[pairs.rows], pairs.domains
        )
        logits = torch.einsum("nd,hdc->nhc", situation.e(situation.X), situation.heads)
    sums = table_sums(
        losses.pair_losses(pool, True, kind),
        situation.pool_domains,
        losses.pair_losses(labelled, False, kind),
        situation.domains,
        pairs,
        losses.class_losses(logits, situation.y, kind),
        N,
    )
    expected = domain_tables(
        torch.sigmoid(pool).numpy(),
        situation.pool_domains.numpy(),
        torch.sigmoid(labelled).view(-1, N).numpy(),
        situation.domains.numpy(),
        probabilities=torch.softmax(logits, dim=2).transpose(0, 1).numpy(),
        labels=situation.y.numpy(),
        loss=kind,
    )
    for ours, name in zip(sums.means(), ("misses", "hits", "errors"), strict=True):
        np.testing.assert_allclose(ours, getattr(expected, name), rtol=1e-6)


def test_running_tables_forget_old_batches_and_keep_what_is_not_seen():
    def sums(miss, number):
        full = [torch.full((2,), miss * number), torch.full((2,), number)]
        square = [part.expand(2, 2) for part in full]
        return losses.TableSums(*full, *square, *square)

    old, new = sums(1.0, 4.0), sums(0.0, 2.0)
    new = new._replace(originals=torch.tensor([2.0, 0.0]), misses=torch.zeros(2))
    merged = old.followed_by(new, decay=0.5)
    misses, hits, _ = merged.means()
    assert misses.tolist() == [0.5, 1.0]  # (0.5 * 4 + 0) / (0.5 * 4 + 2)
    assert hits.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_losses_stay_finite_for_extreme_logits():
    logits = torch.tensor([-1e4, 1e4])
    for original in (True, False):
        assert torch.isfinite(losses.pair_losses(logits, original)).all()
    far = torch.tensor([[[1e4, -1e4]]])
    assert torch.isfinite(losses.class_losses(far, torch.tensor([1]))).all()


def test_losses_stay_on_the_device_of_their_inputs():
    domains = torch.zeros(4, dtype=torch.long, device="meta")
    alpha = torch.ones(1, 1, device="meta")
    shares = torch.ones(1, device="meta")
    pairs = all_pairs(4, 1, alpha)
    assert isinstance(pairs, Pairs)
    values = nn.functional.softplus(torch.ones(4, device="meta"))
    total = losses.v_h(values, domains, alpha, shares) + losses.v_d(
        values, domains, values, domains, pairs, alpha, shares, shares
    )
    assert total.device.type == "meta"


@pytest.mark.parametrize("kind", ["zero_one", "probability", "cross_entropy"])
def test_half_precision_is_left_before_sums_are_taken(kind):
    logits = torch.zeros(900, dtype=torch.bfloat16)
    values = losses.pair_losses(logits, True, kind)
    heads = losses.class_losses(
        logits.view(-1, 1, 1).repeat(1, 2, 3), torch.zeros(900).long(), kind
    )
    codes = torch.zeros(900, dtype=torch.long)
    sums = table_sums(
        values, codes, values, codes, Pairs(codes, codes, values * 0 + 1), heads, 1
    )
    assert sums.originals.item() == sums.labelled[0, 0].item() == 900
