r"""What the networks say about each domain, as a few small tables.

Between domains everything in Composite Active Learning depends on the
networks only through means over domains: how often the discriminator misses an
original domain, how often it takes a labelled domain for an original one, and
how often each classifier errs on each labelled domain. :class:`DomainTables`
holds them; alpha, distances and bounds are functions of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._validation import (
    check_codes,
    check_counts,
    check_option,
    check_scores,
    check_table,
    resolve_alpha,
)

__all__ = ["DomainTables", "domain_tables"]

LOSSES = ("cross_entropy", "probability", "zero_one")

# Keeps the cross-entropy of a saturated prediction finite.
_SMALLEST = 1e-7


@dataclass(frozen=True, eq=False)
class DomainTables:
    """Mean losses by domain, for N original and N labelled domains.

    Parameters
    ----------
    misses : array-like of shape (n_domains,)
        ``misses[i]``: mean loss :math:`L_D(f(z, i), 1)` of the discriminator over
        original domain i. With 0/1 losses, the share that it takes for the
        surrogate.
    hits : array-like of shape (n_domains, n_domains)
        ``hits[i, j]``: mean loss :math:`L_D(f(z, i), 0)` over labelled domain j.
        With 0/1 losses, the share that it takes for original domain i.
    counts : array-like of shape (n_domains,)
        Labelled samples in each domain. Alpha may give no weight to a domain without
        any, so the entries of its column do not matter.
    errors : array-like of shape (n_domains + 1, n_domains), default=None
        ``errors[0, j]``: mean loss :math:`L_Y` of the shared classifier h over
        labelled domain j; ``errors[1 + i, j]``: that of the domain classifier
        :math:`h_i`. None means that there are no classifiers: all 0.
    loss : {"zero_one", "probability", "cross_entropy"}, default="zero_one"
        What the losses are, see :func:`domain_tables`.

    Examples
    --------
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20])
    >>> tables.n_domains
    2
    >>> tables.beta.round(3)
    array([0.333, 0.667])
    """

    misses: NDArray
    hits: NDArray
    counts: NDArray
    errors: NDArray | None = None
    loss: str = "zero_one"

    def __post_init__(self):
        check_option(self.loss, "loss", LOSSES)
        counts = check_counts(self.counts, "counts", None)
        n = len(counts)
        errors = np.zeros((n + 1, n)) if self.errors is None else self.errors
        clean = {
            "misses": check_table(self.misses, "misses", (n,)),
            "hits": check_table(self.hits, "hits", (n, n)),
            "counts": counts,
            "errors": check_table(errors, "errors", (n + 1, n)),
        }
        if not counts.any():
            raise ValueError("counts are all 0; label at least one sample")
        for name, table in clean.items():
            table.setflags(write=False)
            object.__setattr__(self, name, table)

    @property
    def n_domains(self) -> int:
        """Number of domains N."""
        return len(self.counts)

    @property
    def beta(self) -> NDArray:
        """Share of each domain in the labels, shape (n_domains,)."""
        return self.counts / self.counts.sum()


def domain_tables(
    pool_scores: ArrayLike,
    pool_domains: ArrayLike,
    labelled_scores: ArrayLike,
    labelled_domains: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    loss: str = "zero_one",
) -> DomainTables:
    r"""Return the tables for a discriminator's and the classifiers' predictions.

    Parameters
    ----------
    pool_scores : array-like of shape (n_pool,)
        f(z, i) of each sample of the original domains, for its own domain i: the
        probability that it comes from the original domain.
    pool_domains : array-like of shape (n_pool,)
        Position of its domain, 0 .. n_domains - 1.
    labelled_scores : array-like of shape (n_labelled, n_domains)
        f(z, i) of each labelled sample, for every i.
    labelled_domains : array-like of shape (n_labelled,)
        Position of its domain, 0 .. n_domains - 1.
    probabilities : array-like, default=None
        Of shape (n_domains + 1, n_labelled, n_classes): class probabilities of
        each labelled sample, from the shared classifier (first) and from every
        domain's own. None leaves the error table at 0.
    labels : array-like of shape (n_labelled,), default=None
        Class positions 0 .. n_classes - 1, with `probabilities`.
    loss : {"zero_one", "probability", "cross_entropy"}, default="zero_one"
        The losses :math:`L_D` and :math:`L_Y`. With the probability p of the right
        answer, "probability" is :math:`1 - p` and "cross_entropy" :math:`-\ln p`,
        where p is taken to be at least 1e-7.
        "zero_one" is 1 for a wrong decision and 0 for a right one; the decision is
        'original' if f(z, i) > 1/2, and the most probable class.

    Returns
    -------
    DomainTables
        Means of the losses by domain.

    Examples
    --------
    >>> from mdal.tables import domain_tables
    >>> tables = domain_tables(
    ...     pool_scores=[0.9, 0.4, 0.7, 0.8], pool_domains=[0, 0, 1, 1],
    ...     labelled_scores=[[0.6, 0.2], [0.3, 0.1], [0.8, 0.7]],
    ...     labelled_domains=[0, 0, 1])
    >>> tables.misses
    array([0.5, 0. ])
    >>> tables.hits
    array([[0.5, 1. ],
           [0. , 1. ]])
    """
    check_option(loss, "loss", LOSSES)
    labelled_scores = check_scores(labelled_scores, "labelled_scores", (None, None))
    n_labelled, n = labelled_scores.shape
    labelled_domains = check_codes(labelled_domains, "labelled_domains", n_labelled, n)
    pool_scores = check_scores(pool_scores, "pool_scores", (None,))
    pool_domains = check_codes(pool_domains, "pool_domains", len(pool_scores), n)
    empty = np.flatnonzero(np.bincount(pool_domains, minlength=n) == 0)
    if len(empty):
        raise ValueError(
            f"domain {empty[0]} has no sample in the pool; every original domain "
            "needs at least one: leave that domain out"
        )
    errors = None
    if (probabilities is None) != (labels is None):
        raise ValueError(
            "probabilities and labels go together; pass both for the classifiers' "
            "errors, or neither"
        )
    if probabilities is not None:
        probabilities = check_scores(
            probabilities, "probabilities", (n + 1, n_labelled, None)
        )
        sums = probabilities.sum(axis=2)
        off = np.abs(sums - 1) > 1e-3
        if off.any():
            raise ValueError(
                f"probabilities of one sample sum to {sums[off][0]:.3g} and not to 1; "
                "pass probabilities of all classes"
            )
        labels = check_codes(labels, "labels", n_labelled, probabilities.shape[2])
        losses = _class_losses(probabilities, labels, loss)
        errors = _domain_means(losses.T, labelled_domains, n).T
    return DomainTables(
        misses=_domain_means(
            _discriminator_losses(pool_scores, True, loss), pool_domains, n
        ),
        hits=_domain_means(
            _discriminator_losses(labelled_scores, False, loss), labelled_domains, n
        ).T,
        counts=np.bincount(labelled_domains, minlength=n),
        errors=errors,
        loss=loss,
    )


def check_tables(tables, alpha: ArrayLike) -> NDArray:
    """Return alpha if it fits the tables: no weight where there is no label."""
    if not isinstance(tables, DomainTables):
        raise TypeError(
            f"tables is of type {type(tables).__name__}; pass DomainTables, which "
            "domain_tables makes from predictions"
        )
    return resolve_alpha(alpha, tables.counts)


def _discriminator_losses(scores: NDArray, original: bool, loss: str) -> NDArray:
    """Loss :math:`L_D` of each score, for samples that are original or labelled."""
    if loss == "zero_one":
        return ((scores > 0.5) != original).astype(np.float64)
    return _soft_losses(scores if original else 1 - scores, loss)


def _class_losses(probabilities: NDArray, labels: NDArray, loss: str) -> NDArray:
    """Loss :math:`L_Y` of each head on each sample, shape (n_heads, n_labelled)."""
    if loss == "zero_one":
        return (probabilities.argmax(axis=2) != labels).astype(np.float64)
    return _soft_losses(probabilities[:, np.arange(len(labels)), labels], loss)


def _soft_losses(right: NDArray, loss: str) -> NDArray:
    """Loss given the probability of the right answer."""
    return 1 - right if loss == "probability" else -np.log(np.maximum(right, _SMALLEST))


def _domain_means(values: NDArray, domains: NDArray, n_domains: int) -> NDArray:
    """Mean of the rows of `values` in each domain; 0 where there is none."""
    sums = np.zeros((n_domains, *values.shape[1:]))
    np.add.at(sums, domains, values)
    counts = np.maximum(np.bincount(domains, minlength=n_domains), 1)
    return sums / counts.reshape(-1, *[1] * (values.ndim - 1))
