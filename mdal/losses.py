r"""The terms of CAL's objective, as functions of tensors.

.. math:: \min_{h, e, h_i} \min_\alpha \max_f \; V_h - \lambda_d V_d + V_\lambda

Each term is an expectation over domains, and a batch is drawn from all of them
together. So every sample carries the ratio of the weight that its domain has in the
term to the share that its domain has in what the batch is drawn from: beta for labelled
samples, gamma for the pool. The shares are those of all the data, not of the batch,
which makes the mean over a batch an unbiased estimate of the term.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

__all__ = [
    "Pairs",
    "TableSums",
    "all_pairs",
    "at_least_single",
    "class_losses",
    "domain_mean",
    "pair_losses",
    "sampled_pairs",
    "table_sums",
    "v_d",
    "v_h",
    "v_lambda",
]


class Pairs(NamedTuple):
    """Pairs of a labelled sample and an original domain, at which f is evaluated.

    Attributes
    ----------
    rows : Tensor of shape (n_pairs,)
        Position of the sample in the batch.
    domains : Tensor of shape (n_pairs,)
        Position i of the original domain.
    weights : Tensor of shape (n_pairs,)
        How many pairs of the batch each stands for: sums over the pairs with these
        weights are, or estimate, sums over all.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import all_pairs
    >>> all_pairs(n_samples=2, n_domains=2, like=torch.zeros(1)).domains
    tensor([0, 1, 0, 1])
    """

    rows: Tensor
    domains: Tensor
    weights: Tensor


class TableSums(NamedTuple):
    """Sums and numbers of losses by domain, of which the means make DomainTables.

    Attributes
    ----------
    misses, originals : Tensor of shape (n_domains,)
        Losses of f on the pool, and their number.
    hits, pairs : Tensor of shape (n_domains, n_domains)
        Losses of f on labelled domain j (column) for original domain i (row), and
        their number.
    errors, labelled : Tensor of shape (n_heads, n_domains)
        Losses of each head on each labelled domain, and their number.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import TableSums
    >>> sums, numbers = torch.tensor([[3.0]]), torch.tensor([[4.0]])
    >>> TableSums(sums[0], numbers[0], sums, numbers, sums, numbers).means()[0]
    tensor([0.7500])
    """

    misses: Tensor
    originals: Tensor
    hits: Tensor
    pairs: Tensor
    errors: Tensor
    labelled: Tensor

    def means(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean misses, hits and errors."""
        return (
            self.misses / self.originals,
            self.hits / self.pairs,
            self.errors / self.labelled,
        )

    def followed_by(self, new: "TableSums", decay: float) -> "TableSums":
        """Return the sums with a new batch added and older ones shrunk by a factor.

        Entries of which the new batch has nothing to say stay as they are.
        """
        merged = []
        for old_sum, old_number, new_sum, new_number in zip(
            self[::2], self[1::2], new[::2], new[1::2], strict=True
        ):
            seen = new_number > 0
            merged += [
                torch.where(seen, decay * old_sum + new_sum, old_sum),
                torch.where(seen, decay * old_number + new_number, old_number),
            ]
        return TableSums(*merged)


def v_h(losses: Tensor, domains: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    r"""Return the error of the shared classifier on all surrogate domains.

    .. math::

        V_h = \sum_j \alpha_j \mathbb{E}^{L_j}[L_Y(h(e(x)), y)], \qquad
        \alpha_j = \frac{1}{N} \sum_i \alpha_{ij}

    so that a labelled sample of domain j weighs :math:`\alpha_j / \beta_j`.

    Parameters
    ----------
    losses : Tensor of shape (n_samples,)
        Loss :math:`L_Y` of h on each labelled sample of the batch.
    domains : Tensor of shape (n_samples,)
        Position j of its domain.
    alpha : Tensor of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.
    beta : Tensor of shape (n_domains,)
        Share of each domain in all labelled samples.

    Returns
    -------
    Tensor
        A scalar.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import v_h
    >>> alpha = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    >>> losses, domains = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 1, 1])
    >>> v_h(losses, domains, alpha, beta=torch.tensor([1 / 3, 2 / 3])).item()
    1.375
    """
    weights = alpha.mean(dim=0) / beta  # alpha_j / beta_j
    return (weights[domains] * losses).mean()


def domain_mean(losses: Tensor, domains: Tensor, beta: Tensor) -> Tensor:
    r"""Return the mean over labelled domains of their mean losses.

    .. math:: \frac{1}{M} \sum_{j : \beta_j > 0} \mathbb{E}^{L_j}[L_Y(h(e(x)), y)]

    with the M domains that have labels, so that a labelled sample of domain j weighs
    :math:`1 / (M \beta_j)`: :func:`v_h` with a uniform alpha, for methods that have
    none.

    Parameters
    ----------
    losses, domains, beta
        As in :func:`v_h`.

    Returns
    -------
    Tensor
        A scalar.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import domain_mean
    >>> losses, domains = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 1, 1])
    >>> domain_mean(losses, domains, beta=torch.tensor([1 / 3, 2 / 3, 0.0])).item()
    2.0
    """
    weights = 1 / ((beta > 0).sum() * beta)  # 1 / (M beta_j)
    return (weights[domains] * losses).mean()


def v_lambda(losses: Tensor, domains: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    r"""Return the error of each domain's classifier on its own surrogate domain.

    .. math::

        V_\lambda = \frac{1}{N} \sum_{i, j} \alpha_{ij}
        \mathbb{E}^{L_j}[L_Y(h_i(e(x)), y)]

    so that a labelled sample of domain j weighs :math:`\alpha_{ij} / (N \beta_j)` for
    head i: it is the share of its own domain j, the column of alpha, that counts.

    Parameters
    ----------
    losses : Tensor of shape (n_samples, n_domains)
        Loss :math:`L_Y` of each domain's classifier on each labelled sample.
    domains, alpha, beta
        As in :func:`v_h`.

    Returns
    -------
    Tensor
        A scalar.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import v_lambda
    >>> alpha = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    >>> losses = torch.tensor([[1.0, 4.0], [2.0, 1.0], [3.0, 1.0]])
    >>> domains = torch.tensor([0, 1, 1])
    >>> v_lambda(losses, domains, alpha, beta=torch.tensor([1 / 3, 2 / 3])).item()
    1.75
    """
    weights = alpha / (len(alpha) * beta)  # alpha_ij / (N beta_j)
    return (weights.T[domains] * losses).sum(dim=1).mean()


def v_d(
    pool_losses: Tensor,
    pool_domains: Tensor,
    losses: Tensor,
    domains: Tensor,
    pairs: Pairs,
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
) -> Tensor:
    r"""Return the loss of the discriminator, averaged over domains.

    .. math::

        V_d = \frac{1}{2N} \sum_i \Big\{\mathbb{E}^{O_i}[L_D(f(e(x), i), 1)]
        + \sum_j \alpha_{ij} \mathbb{E}^{L_j}[L_D(f(e(x), i), 0)]\Big\}

    so that a pool sample of domain i weighs :math:`1 / (2 N \gamma_i)`, and the pair
    of a labelled sample of domain j with i weighs
    :math:`\alpha_{ij} / (2 N \beta_j)`.

    Parameters
    ----------
    pool_losses : Tensor of shape (n_pool,)
        Loss of f on each pool sample of the batch, for its own domain.
    pool_domains : Tensor of shape (n_pool,)
        Position i of its domain.
    losses : Tensor of shape (n_pairs,)
        Loss of f on each of the pairs.
    domains : Tensor of shape (n_samples,)
        Position j of the domain of each labelled sample of the batch.
    pairs : Pairs
        Where the losses were taken: all pairs, or a sample of them.
    alpha, beta
        As in :func:`v_h`.
    gamma : Tensor of shape (n_domains,)
        Share of each domain in the pool.

    Returns
    -------
    Tensor
        A scalar.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import all_pairs, v_d
    >>> shares = torch.tensor([0.5, 0.5])
    >>> chance = torch.full((4,), 0.7)
    >>> domains = torch.tensor([0, 1])
    >>> v_d(chance[:2], domains, chance, domains, all_pairs(2, 2, chance),
    ...     torch.eye(2), shares, shares).item()
    0.699999988079071
    """
    n_domains = len(alpha)
    original = 1 / (2 * n_domains * gamma)  # 1 / (2 N gamma_i)
    labelled = alpha / (2 * n_domains * beta)  # alpha_ij / (2 N beta_j)
    weights = pairs.weights * labelled[pairs.domains, domains[pairs.rows]]
    return (original[pool_domains] * pool_losses).mean() + (weights * losses).sum() / (
        len(domains)
    )


def all_pairs(n_samples: int, n_domains: int, like: Tensor) -> Pairs:
    """Return every pair of a labelled sample and an original domain.

    Parameters
    ----------
    n_samples : int
        Labelled samples in the batch.
    n_domains : int
        Number of domains N.
    like : Tensor
        On whose device, and of which type, the pairs are to be.

    Returns
    -------
    Pairs
        ``n_samples * n_domains`` pairs of weight 1, sample by sample.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import all_pairs
    >>> rows, domains, weights = all_pairs(2, 3, torch.zeros(1))
    >>> rows.tolist(), domains.tolist()
    ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])
    """
    rows = torch.arange(n_samples, device=like.device).repeat_interleave(n_domains)
    domains = torch.arange(n_domains, device=like.device).repeat(n_samples)
    return Pairs(rows, domains, like.new_ones(n_samples * n_domains))


def sampled_pairs(
    domains: Tensor,
    alpha: Tensor,
    beta: Tensor,
    n_pairs: int,
    generator: torch.Generator | None = None,
) -> Pairs:
    r"""Return a sample of the pairs whose weighted sums are unbiased.

    Half of the pairs are drawn in proportion to their weight in :func:`v_d`, where
    they count, half uniformly, so that alpha hears of every domain. A pair that is
    drawn with probability q stands for :math:`1 / (q \, n_{pairs})` pairs.

    Parameters
    ----------
    domains : Tensor of shape (n_samples,)
        Position j of the domain of each labelled sample of the batch.
    alpha, beta
        As in :func:`v_h`.
    n_pairs : int
        How many to draw, with replacement.
    generator : torch.Generator, default=None
        Where the randomness comes from.

    Returns
    -------
    Pairs
        The sample, with weights.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import sampled_pairs
    >>> domains, shares = torch.tensor([0, 1, 1]), torch.tensor([1 / 3, 2 / 3])
    >>> pairs = sampled_pairs(domains, torch.eye(2), shares, n_pairs=4)
    >>> len(pairs.rows)
    4
    """
    n_domains = len(alpha)
    weights = (alpha / beta).T[domains].flatten()  # row by row of the batch
    q = 0.5 / len(weights) + 0.5 * weights / weights.sum()
    drawn = torch.multinomial(q, n_pairs, replacement=True, generator=generator)
    return Pairs(drawn // n_domains, drawn % n_domains, 1 / (q[drawn] * n_pairs))


def pair_losses(logits: Tensor, original: bool, loss: str = "cross_entropy") -> Tensor:
    r"""Return the loss :math:`L_D` of the discriminator's logits.

    Parameters
    ----------
    logits : Tensor of shape (n,)
        Of 'original' against 'surrogate'.
    original : bool
        What the samples are.
    loss : {"cross_entropy", "probability", "zero_one"}, default="cross_entropy"
        Of which kind, as in :func:`mdal.tables.domain_tables`.

    Returns
    -------
    Tensor of shape (n,)
        The losses; those of kind "zero_one" have no gradient.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import pair_losses
    >>> pair_losses(torch.tensor([-1.0, 3.0]), original=True, loss="zero_one")
    tensor([1., 0.])
    """
    logits = at_least_single(logits)
    if loss == "zero_one":
        return ((logits > 0) != original).to(logits.dtype)
    against = -logits if original else logits
    if loss == "probability":
        return torch.sigmoid(against)
    return functional.softplus(against)


def class_losses(logits: Tensor, y: Tensor, loss: str = "cross_entropy") -> Tensor:
    r"""Return the loss :math:`L_Y` of every head on every sample.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_heads, n_classes)
        From all heads.
    y : Tensor of shape (n_samples,)
        Class positions.
    loss : {"cross_entropy", "probability", "zero_one"}, default="cross_entropy"
        Of which kind, as in :func:`mdal.tables.domain_tables`.

    Returns
    -------
    Tensor of shape (n_samples, n_heads)
        The losses; those of kind "zero_one" have no gradient.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import class_losses
    >>> class_losses(torch.zeros(1, 3, 2), torch.tensor([1])).round(decimals=3)
    tensor([[0.6930, 0.6930, 0.6930]])
    """
    logits = at_least_single(logits)
    if loss == "zero_one":
        return (logits.argmax(dim=2) != y[:, None]).to(logits.dtype)
    n_heads = logits.shape[1]
    right = functional.log_softmax(logits, dim=2).gather(
        2, y[:, None, None].expand(-1, n_heads, 1)
    )
    right = right.squeeze(2)
    return -torch.expm1(right) if loss == "probability" else -right


@torch.no_grad()
def table_sums(
    pool_losses: Tensor,
    pool_domains: Tensor,
    losses: Tensor,
    domains: Tensor,
    pairs: Pairs,
    head_losses: Tensor,
    n_domains: int,
) -> TableSums:
    """Sum a batch's losses by domain.

    Parameters
    ----------
    pool_losses, pool_domains, losses, domains, pairs
        As in :func:`v_d`, of the kind that alpha looks at.
    head_losses : Tensor of shape (n_samples, n_heads)
        Losses of every head on the labelled samples, of the same kind.
    n_domains : int
        Number of domains N.

    Returns
    -------
    TableSums
        The sums and the numbers of losses that went into them.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import all_pairs, table_sums
    >>> domains = torch.tensor([0, 1])
    >>> sums = table_sums(torch.tensor([0.0, 1.0]), domains, torch.ones(4), domains,
    ...                   all_pairs(2, 2, torch.ones(4)), torch.zeros(2, 3), 2)
    >>> sums.hits
    tensor([[1., 1.],
            [1., 1.]])
    """
    cells = pairs.domains * n_domains + domains[pairs.rows]
    n_heads = head_losses.shape[1]

    def add(where: Tensor, values: Tensor, *shape: int) -> Tensor:
        start = values.new_zeros(*shape)
        return start.index_add_(0, where, values)

    return TableSums(
        misses=add(pool_domains, pool_losses, n_domains),
        originals=add(pool_domains, torch.ones_like(pool_losses), n_domains),
        hits=add(cells, pairs.weights * losses, n_domains**2).view(n_domains, -1),
        pairs=add(cells, pairs.weights, n_domains**2).view(n_domains, -1),
        errors=add(domains, head_losses, n_domains, n_heads).T,
        labelled=add(domains, torch.ones_like(head_losses), n_domains, n_heads).T,
    )


def at_least_single(logits: Tensor) -> Tensor:
    """Leave half precision, in which sums of a few hundred losses are wrong.

    Parameters
    ----------
    logits : Tensor

    Returns
    -------
    Tensor
        The same in single precision, or in double precision if it was.

    Examples
    --------
    >>> import torch
    >>> from mdal.losses import at_least_single
    >>> at_least_single(torch.zeros(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
