import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from mdal._crossfit import (
    class_probabilities,
    fit_weighted,
    row_folds,
    seeded_clone,
    surrogate_weights,
    weighted_heads,
)


@given(
    n_labelled=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    n_folds=st.integers(2, 5),
)
def test_two_labelled_rows_are_never_all_in_one_fold(n_labelled, n_folds):
    domains = np.repeat(np.arange(len(n_labelled)), 6)
    labelled = np.concatenate([np.arange(6) < n for n in n_labelled])
    folds = row_folds(domains, labelled, n_folds, np.random.default_rng(0))
    if sum(n_labelled) > 1:
        assert len(set(folds[labelled])) == min(n_folds, sum(n_labelled))
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1


def test_folds_are_even_within_domains_and_random():
    domains, labelled = np.repeat([0, 1], 50), np.tile(np.arange(50) < 20, 2)
    folds = [
        row_folds(domains, labelled, 5, np.random.default_rng(seed)) for seed in (0, 1)
    ]
    for domain in (0, 1):
        for known in (True, False):
            group = (domains == domain) & (labelled == known)
            assert set(np.bincount(folds[0][group])) == {group.sum() // 5}
    assert not np.array_equal(folds[0], folds[1])


def test_a_surrogate_weighs_domains_by_alpha_and_not_by_size():
    weights = surrogate_weights(np.array([0.2, 0.8, 0.0]), np.array([0, 0, 0, 0, 1]))
    np.testing.assert_allclose(weights, [0.05, 0.05, 0.05, 0.05, 0.8])
    # The share of a domain that has no row here goes to the others.
    weights = surrogate_weights(np.array([0.2, 0.4, 0.4]), np.array([0, 1]))
    np.testing.assert_allclose(weights, [1 / 3, 2 / 3])


def test_heads_are_trained_on_their_surrogate_and_judged_on_rows_they_have_not_seen():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 2)), rng.integers(3, size=60)
    domains, folds = np.repeat([0, 0, 1], 20), np.arange(60) % 3
    alpha = np.array([[0.3, 0.7], [1.0, 0.0]])
    models, probabilities = weighted_heads(
        LogisticRegression(), X, labels, domains, alpha, folds
    )
    for head in (0, 1):
        for fold in range(3):
            rows = folds != fold
            counts = np.bincount(domains[rows], minlength=2)
            weights = (alpha[head] / counts)[domains[rows]]
            keep = weights > 0
            reference = LogisticRegression().fit(
                X[rows][keep], labels[rows][keep], weights[keep] / weights[keep].mean()
            )
            np.testing.assert_allclose(models[head][fold].coef_, reference.coef_)
            np.testing.assert_allclose(
                probabilities[head, ~rows], reference.predict_proba(X[~rows])
            )


def test_regularisation_does_not_depend_on_the_scale_of_the_weights():
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(40, 2)), np.arange(40) % 2, rng.uniform(size=40)
    small = fit_weighted(LogisticRegression(), X, y, weights)
    large = fit_weighted(LogisticRegression(), X, y, 1000 * weights)
    np.testing.assert_allclose(small.coef_, large.coef_)


def test_classes_that_were_not_seen_have_probability_0():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = LogisticRegression().fit(X, np.where(np.arange(20) % 2, 3, 1))
    probabilities = class_probabilities(model, X, 5)
    assert (probabilities[:, [0, 2, 4]] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("given_seed", [None, 7])
def test_clones_are_seeded_where_no_seed_was_given(given_seed):
    tree = DecisionTreeClassifier(random_state=given_seed)
    seeds = [seeded_clone(tree, seed).random_state for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1]
    assert (seeds[0] != seeds[2]) == (given_seed is None)
    assert tree.random_state is given_seed
