import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdal.tables import LOSSES, DomainTables, domain_tables


def slow_tables(pool, pool_domains, labelled, labelled_domains, probabilities, y, loss):
    """Means of the losses, sample by sample, as the paper's expectations read."""
    n = labelled.shape[1]

    def binary(score, original):
        p = score if original else 1 - score
        decision = score > 0.5
        return {
            "zero_one": float(decision != original),
            "probability": 1 - p,
            "cross_entropy": -np.log(max(p, 1e-7)),
        }[loss]

    def classes(p, label):
        return {
            "zero_one": float(np.argmax(p) != label),
            "probability": 1 - p[label],
            "cross_entropy": -np.log(max(p[label], 1e-7)),
        }[loss]

    misses, hits, errors = np.zeros(n), np.zeros((n, n)), np.zeros((n + 1, n))
    for i in range(n):
        misses[i] = np.mean(
            [binary(s, True) for s, d in zip(pool, pool_domains, strict=True) if d == i]
        )
        rows = [k for k, d in enumerate(labelled_domains) if d == i]
        for j in range(n):
            hits[j, i] = np.mean([binary(labelled[k, j], False) for k in rows])
        for head in range(n + 1):
            errors[head, i] = np.mean(
                [classes(probabilities[head, k], y[k]) for k in rows]
            )
    return misses, hits, errors


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6))
def test_tables_are_means_over_samples(loss, seed):
    rng = np.random.default_rng(seed)
    n, n_pool, n_labelled = 3, 20, 12
    pool = rng.choice([0.0, 0.5, 1.0, *rng.uniform(size=5)], n_pool)
    pool_domains = np.r_[np.arange(n), rng.integers(n, size=n_pool - n)]
    labelled = rng.choice([0.0, 0.5, 1.0, *rng.uniform(size=5)], (n_labelled, n))
    labelled_domains = np.r_[np.arange(n), rng.integers(n, size=n_labelled - n)]
    probabilities = rng.dirichlet(np.ones(4), (n + 1, n_labelled))
    y = rng.integers(4, size=n_labelled)
    tables = domain_tables(
        pool,
        pool_domains,
        labelled,
        labelled_domains,
        probabilities=probabilities,
        labels=y,
        loss=loss,
    )
    misses, hits, errors = slow_tables(
        pool, pool_domains, labelled, labelled_domains, probabilities, y, loss
    )
    np.testing.assert_allclose(tables.misses, misses)
    np.testing.assert_allclose(tables.hits, hits)
    np.testing.assert_allclose(tables.errors, errors)
    assert tables.counts.tolist() == np.bincount(labelled_domains).tolist()


def test_domains_without_a_label_have_zero_columns():
    tables = domain_tables([0.9, 0.9], [0, 1], [[0.8, 0.6]], [1])
    assert tables.counts.tolist() == [0, 1]
    assert tables.hits[:, 0].tolist() == [0, 0]
    assert tables.hits[:, 1].tolist() == [1, 1]


def test_tables_copy_what_they_are_given():
    misses = np.array([0.2])
    tables = DomainTables(misses, [[0.1]], counts=[3])
    misses[0] = 0.9
    assert tables.misses.tolist() == [0.2]
