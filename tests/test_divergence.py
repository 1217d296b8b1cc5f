import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from mdal.divergence import (
    DomainDivergence,
    hdh_distance,
    hdh_distances,
    proxy_a_distance,
)
from mdal.tables import domain_tables

scores = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_distances_by_hand():
    # One of four originals is missed, one of two surrogates taken for original.
    assert hdh_distance([1, 1, 1, 0], [1, 0]) == pytest.approx(2 * (1 - 0.25 - 0.5))
    assert proxy_a_distance([1, 1, 1, 0], [1, 0]) == pytest.approx(2 * (1 - 4 / 6))
    assert hdh_distance([0.9, 0.8], [0.1]) == 2
    assert hdh_distance([0.1], [0.9]) == 0  # worse than chance is clipped


@given(scores, scores)
def test_distances_lie_between_0_and_2(original, surrogate):
    assert 0 <= hdh_distance(original, surrogate) <= 2
    assert 0 <= proxy_a_distance(original, surrogate) <= 2


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(*[
    st.lists(st.floats(0, 1), min_size=n, max_size=n)] * 2)))  # fmt: skip
def test_both_distances_agree_on_samples_of_equal_size(sides):
    assert hdh_distance(*sides) == pytest.approx(proxy_a_distance(*sides))


@given(st.integers(0, 10**6))
def test_both_forms_of_the_distance_agree_on_a_resampled_surrogate(seed):
    # With whole-number weights the surrogate can be sampled exactly: labelled
    # domains of equal size, repeated in proportion to alpha.
    rng = np.random.default_rng(seed)
    n, size = 3, 4
    repeats = rng.integers(0, 5, (n, n))
    repeats[np.arange(n), np.arange(n)] += 1
    alpha = repeats / repeats.sum(axis=1, keepdims=True)
    labelled, labelled_domains = (
        rng.uniform(size=(n * size, n)),
        np.repeat(range(n), size),
    )
    pool, pool_domains = rng.uniform(size=30), np.r_[range(n), rng.integers(n, size=27)]
    tables = domain_tables(pool, pool_domains, labelled, labelled_domains)
    for i, distance in enumerate(hdh_distances(tables, alpha)):
        surrogate = np.repeat(labelled[:, i], repeats[i][labelled_domains])
        assert distance == pytest.approx(
            hdh_distance(pool[pool_domains == i], surrogate)
        )


def test_far_domains_are_far_from_a_mixture_and_near_themselves(two_far_domains):
    X, y, domains = two_far_domains
    mixed = DomainDivergence(random_state=0).fit(X, y, domains=domains)
    own = DomainDivergence(alpha="identity", random_state=0).fit(X, y, domains=domains)
    # Half of each surrogate is the other domain: the best discriminator errs on the
    # half that is its own, so the distance is 2 (1 - 1 / 2) = 1.
    np.testing.assert_allclose(mixed.distances_, 1, atol=0.1)
    assert own.distances_.max() < 0.3


def test_distances_are_those_of_the_given_alpha(two_far_domains):
    X, y, domains = two_far_domains
    alpha = [[0.9, 0.1], [0.3, 0.7]]
    fitted = DomainDivergence(alpha=alpha, random_state=0).fit(X, y, domains=domains)
    tables = fitted.tables_
    by_hand = [
        2
        * (1 - tables.misses[i] - sum(alpha[i][j] * tables.hits[i, j] for j in (0, 1)))
        for i in (0, 1)
    ]
    np.testing.assert_allclose(fitted.distances_, by_hand)
    assert fitted.distances_[0] < fitted.distances_[1]


def test_identical_domains_cannot_be_told_apart(identical_domains):
    X, y, domains = identical_domains
    fitted = DomainDivergence(random_state=0).fit(X, y, domains=domains)
    assert fitted.distances_.max() < 0.25
    assert np.abs(fitted.transform(X) - 0.5).mean() < 0.1


def test_scores_tell_samples_of_the_original_from_outliers(two_far_domains):
    X, y, domains = two_far_domains
    fitted = DomainDivergence(random_state=0).fit(X, y, domains=domains)
    scores = fitted.transform(X)
    assert scores.shape == (400, 2)
    assert scores[:200, 0].mean() > 0.6 > 0.3 > scores[200:, 0].mean()
    assert fitted.get_feature_names_out().tolist() == [
        "domaindivergence0",
        "domaindivergence1",
    ]


def test_scores_are_the_density_ratio():
    # O = N(0, 1), labelled rows all below 0, so S = N(0, 1) given z < 0 and
    # f = O / (O + S) = 1 / 3 below 0 and 1 above.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 1))
    y = np.where(X[:, 0] < 0, 0, -1)
    boosted = HistGradientBoostingClassifier(max_iter=30)
    fitted = DomainDivergence(boosted, random_state=0).fit(X, y)
    below, above = fitted.transform([[-0.5]])[0, 0], fitted.transform([[0.5]])[0, 0]
    assert below == pytest.approx(1 / 3, abs=0.05)
    assert above > 0.95
    # Optimal: misses 1/2 (f < 1/2 below 0), hits 0, so d = 2 (1 - 1/2) = 1.
    assert fitted.distances_[0] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    "discriminator",
    [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["classifier", "pipeline"],
)
def test_any_weighted_classifier_can_be_the_discriminator(
    discriminator, two_far_domains
):
    X, y, domains = two_far_domains
    fitted = DomainDivergence(discriminator, random_state=0).fit(X, y, domains=domains)
    np.testing.assert_allclose(fitted.distances_, 1, atol=0.1)
    assert not hasattr(discriminator, "classes_")


def test_a_discriminator_that_memorises_is_judged_on_rows_it_has_not_seen(
    identical_domains,
):
    X, y, domains = identical_domains
    tree = DecisionTreeClassifier()
    fitted = DomainDivergence(tree, random_state=0).fit(X, y, domains=domains)
    assert fitted.distances_.max() < 0.4
    # On rows that they have seen, the same trees would tell the domains apart.
    codes, seen = np.repeat([0, 1, 2], 300), fitted.transform(X)
    own, rows = seen[np.arange(900), codes], y >= 0
    tables = domain_tables(own, codes, seen[rows], codes[rows])
    assert hdh_distances(tables, fitted.alpha_).min() > 0.8


def test_randomness_of_a_given_discriminator_is_seeded(two_far_domains):
    X, y, domains = two_far_domains
    forest = RandomForestClassifier(5)
    scores = [
        DomainDivergence(forest, cv=2, random_state=0)
        .fit(X, y, domains=domains)
        .transform(X)
        for _ in range(2)
    ]
    assert np.array_equal(*scores)


def test_one_labelled_sample_is_no_evidence_of_a_distance():
    # It cannot be held out and learned from at the same time. As with a little weight
    # on other domains, it then looks like any sample of its own domain.
    X = np.random.default_rng(0).normal(size=(80, 2)) + np.repeat(
        [[0], [4]], 40, axis=0
    )
    y, domains = np.full(80, -1), np.repeat([0, 1], 40)
    y[[3, 44]] = 1
    for alpha in (np.eye(2), [[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]]):
        fitted = DomainDivergence(alpha=alpha, random_state=0).fit(
            X, y, domains=domains
        )
        assert fitted.distances_.tolist() == [0, 0]
        assert np.isfinite(fitted.transform(X)).all()


def test_a_domain_of_one_sample_is_legal():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y, domains = np.arange(30) % 3 - 1, np.arange(30) // 29
    for alpha in (None, "identity"):
        fitted = DomainDivergence(alpha=alpha, random_state=0).fit(
            X, y, domains=domains
        )
        assert np.isfinite(fitted.distances_).all()


def test_scores_are_the_mean_over_the_folds_discriminators(two_far_domains):
    X, y, domains = two_far_domains
    fitted = DomainDivergence(LogisticRegression(), random_state=0)
    scores = fitted.fit_transform(X, y, domains=domains)
    for i, models in enumerate(fitted.discriminators_):
        assert len(models) == 5
        mean = sum(model.predict_proba(X)[:, 1] for model in models) / 5
        np.testing.assert_allclose(scores[:, i], mean)


def test_the_same_seed_gives_the_same_distances(two_far_domains):
    X, y, domains = two_far_domains
    fits = [
        DomainDivergence(random_state=seed).fit(X, y, domains=domains).transform(X)
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
