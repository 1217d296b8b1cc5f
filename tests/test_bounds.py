from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from mdal.bounds import (
    DomainBound,
    compare_bounds,
    complexity,
    error_bound,
    lambda_bound,
    one_domain_bound,
    table_bound,
)
from mdal.budget import allocate
from mdal.tables import DomainTables

seeds = st.integers(0, 10**6)


def random_alpha(rng, n):
    return rng.dirichlet(np.ones(n), n)


def test_complexity_by_hand():
    # sum alpha^2 / beta = 0.25 / 0.25 + 0.25 / 0.75 = 4 / 3, M = 100, d = 5.
    rate = (10 * np.log(202) + np.log(4 / 0.1)) / 100
    value = complexity([0.5, 0.5], [25, 75], vc_dimension=5, delta=0.1)
    assert value == pytest.approx(2 * np.sqrt(4 / 3 * rate))
    printed = 10 * np.log(202 + np.log(4 / 0.1)) / 100
    value = complexity([0.5, 0.5], [25, 75], vc_dimension=5, delta=0.1, printed=True)
    assert value == pytest.approx(2 * np.sqrt(4 / 3 * printed))


@pytest.mark.parametrize("weight", [0.5, 1e-100, 1e-300])
def test_complexity_is_infinite_for_weight_without_labels(weight):
    assert complexity([1 - weight, weight], [5, 0], vc_dimension=2) == np.inf
    assert complexity([1, 0], [5, 0], vc_dimension=2) < np.inf


def test_one_domain_bound_by_hand():
    bound = one_domain_bound([0.2, 0.8], [0.5, 0.25], distance=0.6, lambda_=0.1)
    assert bound == pytest.approx(0.1 + 0.2 + 0.3 + 0.1)


def test_lambda_bound_by_hand():
    errors = [[0.1, 0.4], [0.2, 0.1]]
    np.testing.assert_allclose(lambda_bound([[1, 0], [0.5, 0.5]], errors), [1.1, 1.15])


@given(seeds)
def test_the_terms_add_up_and_the_mean_over_domains_is_the_bound(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    alpha, errors = random_alpha(rng, n), rng.uniform(size=n)
    distances, lambdas = rng.uniform(0, 2, n), rng.uniform(size=n)
    bound = error_bound(
        alpha, errors, distances, lambdas, counts=[9] * n, vc_dimension=3
    )
    each = [
        one_domain_bound(alpha[i], errors, distances[i], lambdas[i]) for i in range(n)
    ]
    assert bound.u == pytest.approx(np.mean(each))
    assert bound.u_e == pytest.approx(bound.u + bound.complexity)
    without = [v for k, v in bound.per_domain.items() if k != "complexity"]
    np.testing.assert_allclose(sum(without), each)
    # Each row has its own complexity, at delta / N; that is the larger on average.
    rows = [complexity(a, [9] * n, vc_dimension=3, delta=0.05 / n) for a in alpha]
    np.testing.assert_allclose(bound.per_domain["complexity"], rows)
    assert bound.per_domain["complexity"].mean() >= bound.complexity


@given(seeds)
def test_the_best_shares_are_alpha_and_the_budget_finds_them(seed):
    rng = np.random.default_rng(seed)
    n, total = int(rng.integers(2, 5)), 400
    alpha = random_alpha(rng, n).mean(axis=0)

    def cost(counts):
        return complexity(alpha, counts, vc_dimension=4)

    # At beta = alpha, sum alpha^2 / beta = 1, and every other beta is worse ...
    exact, beta = np.round(alpha * 10**12), rng.dirichlet(np.ones(n))
    other = np.round(beta * 10**12)
    other[0] += exact.sum() - other.sum()
    assert cost(exact) <= cost(other)
    # ... which is a limit that whole numbers do not go below ...
    found = allocate(alpha, total)
    rate = (8 * np.log(2 * (total + 1)) + np.log(4 / 0.05)) / total
    assert cost(found) >= 2 * np.sqrt(rate) * (1 - 1e-12)
    # ... no other split of the same labels is better than the budget's ...
    for _ in range(20):
        other = rng.multinomial(total - n, rng.dirichlet(np.ones(n))) + 1
        assert cost(found) <= cost(other) * (1 + 1e-12)
    # ... nor is one that moves a single label.
    for j, k in product(range(n), range(n)):
        if j != k and found[j] > 1:
            moved = found.copy()
            moved[j] -= 1
            moved[k] += 1
            assert cost(found) <= cost(moved) * (1 + 1e-12)


@given(seeds)
def test_identity_alpha_decouples_the_domains(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    errors, distances = rng.uniform(size=n), rng.uniform(0, 2, n)
    lambdas, counts = rng.uniform(size=n), rng.integers(1, 50, n)
    bound = error_bound(
        np.eye(n), errors, distances, lambdas, counts=counts, vc_dimension=2
    )
    changed = errors.copy()
    changed[0] = rng.uniform()
    other = error_bound(
        np.eye(n), changed, distances, lambdas, counts=counts, vc_dimension=2
    )
    for term, values in bound.per_domain.items():
        np.testing.assert_array_equal(values[1:], other.per_domain[term][1:])
    np.testing.assert_allclose(bound.per_domain["labelled_error"], errors)


def test_one_domain_is_the_classical_bound():
    bound = error_bound([[1.0]], [0.2], [0.0], [0.0], counts=[50], vc_dimension=3)
    rate = (6 * np.log(102) + np.log(80)) / 50
    assert bound.u_e == pytest.approx(0.2 + 2 * np.sqrt(rate))


def test_u_is_below_u_e_in_nearly_all_draws():
    # Thresholds on a line (VC dimension 1) in three labelled domains with noisy
    # labels; the largest gap over all thresholds between true and empirical error is
    # what the complexity term must cover. A tenth of the term does not cover it.
    rng = np.random.default_rng(0)
    alpha = np.array([0.5, 0.3, 0.2])
    counts, noise, delta = np.array([40, 25, 15]), 0.2, 0.1
    offset = np.array([-0.5, 0.0, 0.7])
    thresholds = np.linspace(-3, 3, 121)

    def true_errors(j):
        """P(label != [z > t]) with z uniform on [-3, 3], label [z > offset] flipped."""
        between = np.abs(thresholds - offset[j]) / 6
        return between * (1 - noise) + (1 - between) * noise

    truth = alpha @ [true_errors(j) for j in range(3)]
    gaps = []
    for _ in range(400):
        empirical = np.zeros(len(thresholds))
        for j, n in enumerate(counts):
            z = rng.uniform(-3, 3, n)
            label = (z > offset[j]) ^ (rng.uniform(size=n) < noise)
            empirical += alpha[j] * np.mean(
                (z[:, None] > thresholds) != label[:, None], 0
            )
        gaps.append((truth - empirical).max())
    term = complexity(alpha, counts, vc_dimension=1, delta=delta)
    assert np.mean(np.array(gaps) <= term) >= 1 - delta
    assert np.mean(np.array(gaps) <= term / 10) < 1 - delta


def test_the_whole_chain_holds_on_a_finite_world():
    # Points 0..5, all thresholds as hypotheses, true distributions known: the mean
    # error over original domains never exceeds U, for any h and alpha.
    rng = np.random.default_rng(0)
    points, thresholds = np.arange(6), np.arange(7)
    decisions = points[None] >= thresholds[:, None]  # (h, z)
    disagreements = decisions[:, None] != decisions[None]  # H delta H
    for _ in range(200):
        n = 3
        original, labelled = rng.dirichlet(np.ones(6), (2, n))
        truth = rng.uniform(size=6)  # P(y = 1 | z), the same everywhere
        wrong = np.where(decisions, 1 - truth, truth)  # (h, z)
        alpha = random_alpha(rng, n)
        surrogate = alpha @ labelled
        distances = [
            2 * np.abs(disagreements @ (original[i] - surrogate[i])).max()
            for i in range(n)
        ]
        lambdas = [(wrong @ (original[i] + surrogate[i])).min() for i in range(n)]
        for h in range(7):
            errors = wrong[h] @ labelled.T
            bound = error_bound(alpha, errors, distances, lambdas)
            assert np.mean(original @ wrong[h]) <= bound.u + 1e-12


@given(seeds)
def test_the_order_of_the_four_bounds(seed):
    # U for each classifier, encoder and alpha; the errors depend on the classifier,
    # the distances on encoder and alpha, lambda on alpha.
    rng = np.random.default_rng(seed)
    n, classifiers, encoders, alphas = 3, 4, 3, 5
    weights = [np.full((n, n), 1 / n)] + [
        random_alpha(rng, n) for _ in range(alphas - 1)
    ]
    errors = rng.uniform(size=(classifiers, n))
    hits = rng.uniform(0, 0.5, (encoders, n, n))
    misses = rng.uniform(0, 0.5, (encoders, n))
    heads = rng.uniform(size=(n, n))
    totals = np.array(
        [
            [
                [
                    table_bound(
                        DomainTables(m, g, [5] * n, np.vstack([e, heads])),
                        a,
                        vc_dimension=2,
                    ).u
                    for a in weights
                ]
                for m, g in zip(misses, hits, strict=True)
            ]
            for e in errors
        ]
    )
    bounds = compare_bounds(totals)
    by_hand = {
        "CAL": min(totals[c, e, a] for c, e, a in np.ndindex(totals.shape)),
        "CAL-alpha": min(totals[c, 0, a] for c in range(4) for a in range(5)),
        "CAL-FA": min(totals[c, e, 0] for c in range(4) for e in range(3)),
        "ERM": min(totals[c, 0, 0] for c in range(4)),
    }
    assert bounds == by_hand
    for variant in ("CAL-alpha", "CAL-FA"):
        assert bounds["CAL"] <= bounds[variant] <= bounds["ERM"]


def test_the_two_variants_are_not_ordered():
    totals = np.array([[[3.0, 1.0], [2.0, 1.0]]])
    bounds = compare_bounds(totals)
    assert bounds["CAL-alpha"] < bounds["CAL-FA"]
    bounds = compare_bounds(totals.transpose(0, 2, 1))
    assert bounds["CAL-alpha"] > bounds["CAL-FA"]


def test_a_bound_prints_as_a_table():
    bound = error_bound(np.eye(2), [0.1, 0.2], [0.3, 0.5], [0, 1], domains=["a", "bb"])
    assert str(bound).splitlines() == [
        "                   all       a      bb",
        "labelled_error  0.1500  0.1000  0.2000",
        "complexity      0.0000  0.0000  0.0000",
        "divergence      0.2000  0.1500  0.2500",
        "lambda          0.5000  0.0000  1.0000",
        "total           0.8500  0.2500  1.4500",
    ]


def test_estimated_terms_see_distance_and_difficulty(two_far_domains):
    X, y, domains = two_far_domains
    mixed = DomainBound(random_state=0).fit(X, y, domains=domains).bound_
    own = (
        DomainBound(alpha="identity", random_state=0).fit(X, y, domains=domains).bound_
    )
    assert own.divergence < mixed.divergence
    # The two domains' labels need different offsets, which one linear h with both
    # features can still give; a useless feature space cannot.
    noise = np.random.default_rng(0).normal(size=X.shape)
    useless = DomainBound(random_state=0).fit(noise, y, domains=domains).bound_
    assert useless.labelled_error > mixed.labelled_error + 0.2
    assert useless.lambda_ > mixed.lambda_ + 0.2


def test_estimated_bound_is_that_of_its_tables(two_far_domains):
    X, y, domains = two_far_domains
    fitted = DomainBound(random_state=0, delta=0.2).fit(X, y, domains=domains)
    again = table_bound(fitted.tables_, fitted.alpha_, vc_dimension=4, delta=0.2)
    assert fitted.bound_.u_e == again.u_e
    assert fitted.bound_.domains == ("near", "off")
    rows = y >= 0
    errors = [
        np.mean(
            fitted.classifier_.predict(X[rows & (domains == d)])
            != y[rows & (domains == d)]
        )
        for d in ("near", "off")
    ]
    np.testing.assert_allclose(fitted.tables_.errors[0], errors)


def test_the_shared_classifier_is_trained_on_the_mean_of_the_surrogates(
    two_far_domains,
):
    X, y, domains = two_far_domains
    y = np.where((domains == "off") & (np.arange(400) % 4 > 0), -1, y)
    alpha = [[0.9, 0.1], [0.6, 0.4]]
    fitted = DomainBound(LogisticRegression(), alpha=alpha, random_state=0)
    fitted.fit(X, y, domains=domains)
    rows = y >= 0
    weights = np.where(domains == "near", 0.75 / 100, 0.25 / 50)[rows]
    reference = LogisticRegression().fit(X[rows], y[rows], weights / weights.mean())
    np.testing.assert_allclose(fitted.classifier_.coef_, reference.coef_, rtol=1e-4)


def test_domain_classifiers_are_judged_on_rows_that_they_have_not_seen(two_far_domains):
    X, y, domains = two_far_domains
    noise = np.where(y >= 0, np.random.default_rng(0).integers(2, size=400), -1)
    tree = DecisionTreeClassifier()
    fitted = DomainBound(tree, random_state=0).fit(X, noise, domains=domains)
    assert fitted.tables_.errors[0].tolist() == [0, 0]  # the shared one remembers
    assert abs(fitted.tables_.errors[1:].mean() - 0.5) < 0.1


def test_domain_classifiers_are_trained_on_their_own_surrogate(two_far_domains):
    # Opposite labels: each domain's own classifier is right at home and wrong abroad.
    X, y, domains = two_far_domains
    y = np.where(y >= 0, (X[:, 0] - X[:, 1] > 0) ^ (domains == "off"), -1)
    fitted = DomainBound(alpha="identity", random_state=0).fit(X, y, domains=domains)
    errors = fitted.tables_.errors[1:]
    assert np.diagonal(errors).max() < 0.1
    assert errors[0, 1] > 0.8 < errors[1, 0]
    # So the two cannot both agree with the shared one.
    assert fitted.transform(X).sum(axis=1).min() > 0.5
    assert abs(fitted.bound_.lambda_ - 1) < 0.1


def test_the_printed_formula_reaches_the_bound(two_far_domains):
    X, y, domains = two_far_domains
    plain, printed = (
        DomainBound(printed=flag, random_state=0).fit(X, y, domains=domains)
        for flag in (False, True)
    )
    again = table_bound(plain.tables_, plain.alpha_, vc_dimension=4, printed=True)
    assert printed.bound_.u_e == again.u_e != plain.bound_.u_e


def test_disagreement_is_between_the_shared_and_each_domains_classifier(
    two_far_domains,
):
    X, y, domains = two_far_domains
    y = np.where(y >= 0, X[:, 0] > X[:, 1], -1)  # both classes in both domains
    fitted = DomainBound(alpha="identity", random_state=0).fit(X, y, domains=domains)
    disagreement = fitted.transform(X)
    assert disagreement.shape == (400, 2)
    shared = fitted.classifier_.predict_proba(X)
    for i, models in enumerate(fitted.domain_classifiers_):
        own = sum(model.predict_proba(X) for model in models) / len(models)
        by_hand = shared[:, 0] * own[:, 1] + shared[:, 1] * own[:, 0]
        np.testing.assert_allclose(disagreement[:, i], by_hand)


def test_one_class_has_no_errors():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) % 3 == 0, 7, -1)
    bound = DomainBound(random_state=0).fit(X, y, domains=np.arange(60) // 30).bound_
    assert bound.labelled_error == 0
    assert bound.lambda_ == 1
