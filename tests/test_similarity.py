import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.spatial.distance import pdist
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from mdal.bounds import table_bound
from mdal.similarity import (
    AdversarialSimilarity,
    KernelMeanSimilarity,
    alpha_gradient,
    alpha_objective,
    alpha_step,
    even_gram,
    mixture_weights,
    solve_alpha,
)
from mdal.tables import DomainTables

seeds = st.integers(0, 10**6)


def random_tables(rng, n=3):
    """Tables of random losses with a few labels everywhere."""
    return DomainTables(
        misses=rng.uniform(size=n),
        hits=rng.uniform(size=(n, n)),
        counts=rng.integers(1, 50, n),
        errors=rng.uniform(size=(n + 1, n)),
    )


def slow_objective(tables, alpha, lambda_d):
    """V_h - lambda_d V_d + V_lambda, term by term from the paper's equations."""
    n = len(alpha)
    v_h = sum(
        np.mean([alpha[i][j] for i in range(n)]) * tables.errors[0][j] for j in range(n)
    )
    v_d = sum(
        tables.misses[i] + sum(alpha[i][j] * tables.hits[i][j] for j in range(n))
        for i in range(n)
    ) / (2 * n)
    v_lambda = sum(
        alpha[i][j] * tables.errors[1 + i][j] for i in range(n) for j in range(n)
    )
    return v_h - lambda_d * v_d + v_lambda / n


@given(seeds, st.floats(0, 3))
def test_the_objective_is_the_papers(seed, lambda_d):
    rng = np.random.default_rng(seed)
    tables, alpha = random_tables(rng), rng.dirichlet(np.ones(3), 3)
    value = alpha_objective(tables, alpha, lambda_d=lambda_d)
    assert value == pytest.approx(slow_objective(tables, alpha, lambda_d))


@pytest.mark.parametrize("complexity", [None, "mean", "row"])
@given(seed=seeds)
def test_the_gradient_is_that_of_the_objective(complexity, seed):
    rng = np.random.default_rng(seed)
    tables, alpha = random_tables(rng), rng.dirichlet(np.full(3, 5.0), 3)
    options = {"lambda_d": 1.5, "complexity": complexity, "vc_dimension": 4}
    gradient = alpha_gradient(tables, alpha, **options)

    # Along directions that keep the rows on the simplex.
    for _ in range(3):
        direction = rng.normal(size=(3, 3))
        direction -= direction.mean(axis=1, keepdims=True)
        slope = approx_fprime(
            [0.0],
            lambda t, d=direction: alpha_objective(tables, alpha + t * d, **options),
            1e-7,
        )
        assert (gradient * direction).sum() == pytest.approx(slope[0], abs=1e-5)


def test_complexity_terms_by_hand():
    tables = DomainTables([0, 0], np.zeros((2, 2)), counts=[25, 75])
    alpha = [[1.0, 0.0], [0.5, 0.5]]  # column means 0.75, 0.25

    def term(spread, delta):
        rate = (2 * 3 * np.log(2 * 101) + np.log(4 / delta)) / 100
        return 2 * np.sqrt(spread * rate)

    options = {"vc_dimension": 3, "delta": 0.1}
    mean = alpha_objective(tables, alpha, complexity="mean", **options)
    assert mean == pytest.approx(term(0.75**2 / 0.25 + 0.25**2 / 0.75, 0.1))
    row = alpha_objective(tables, alpha, complexity="row", **options)
    each = term(1 / 0.25, 0.05), term(0.25 / 0.25 + 0.25 / 0.75, 0.05)
    assert row == pytest.approx(np.mean(each))


@given(seeds)
def test_the_full_bound_is_the_objective_with_lambda_2_and_complexity(seed):
    rng = np.random.default_rng(seed)
    n = 3
    # Misses and hits of at most 1/2 keep the distances from being clipped.
    tables = DomainTables(
        rng.uniform(0, 0.5, n),
        rng.uniform(0, 0.5, (n, n)),
        rng.integers(1, 50, n),
        rng.uniform(size=(n + 1, n)),
    )
    alphas = rng.dirichlet(np.ones(n), (2, n))
    options = {"lambda_d": 2, "complexity": "mean", "vc_dimension": 4}
    values = [alpha_objective(tables, alpha, **options) for alpha in alphas]
    bounds = [table_bound(tables, alpha, vc_dimension=4).u_e for alpha in alphas]
    assert values[0] - values[1] == pytest.approx(bounds[0] - bounds[1])


@given(seeds, st.floats(0, 50))
def test_a_step_stays_on_the_simplex_and_goes_down(seed, step_size):
    rng = np.random.default_rng(seed)
    tables, alpha = random_tables(rng), rng.dirichlet(np.ones(3), 3)
    gradient = alpha_gradient(tables, alpha)
    new, _ = alpha_step(alpha, gradient, step_size=step_size)
    np.testing.assert_allclose(new.sum(axis=1), 1)
    assert (new >= 0).all()
    assert (new * gradient).sum() <= (alpha * gradient).sum() + 1e-9


def test_a_step_by_hand():
    alpha = np.array([[0.5, 0.5], [0.8, 0.2]])
    gradient = np.array([[0.0, np.log(2) / 2], [0.0, 0.0]])
    new, average = alpha_step(alpha, gradient, average=alpha, average_weight=0.25)
    np.testing.assert_allclose(new, [[2 / 3, 1 / 3], [0.8, 0.2]])
    np.testing.assert_allclose(
        average[0], [0.75 / 2 + 0.25 * 2 / 3, 0.75 / 2 + 0.25 / 3]
    )


def test_weights_of_zero_stay_zero():
    new, _ = alpha_step(
        np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[-9, 0], [0, 0.0]])
    )
    assert new.tolist() == [[0, 1], [0, 1]]


def test_without_complexity_the_solution_is_a_corner():
    rng = np.random.default_rng(0)
    tables = random_tables(rng)
    solution = solve_alpha(tables)
    corners = [np.eye(3)[list(js)] for js in np.ndindex(3, 3, 3)]
    best = min(corners, key=lambda a: slow_objective(tables, a, 1.0))
    assert solution.tolist() == best.tolist()


@pytest.mark.parametrize("complexity", ["mean", "row"])
def test_with_complexity_the_solution_is_that_of_a_general_solver(complexity):
    for seed in range(3):
        tables = random_tables(np.random.default_rng(seed))
        options = {"complexity": complexity, "vc_dimension": 2}
        solution = solve_alpha(tables, **options)

        def objective(flat, tables=tables, options=options):
            alpha = np.clip(flat.reshape(3, 3), 1e-12, None)
            alpha /= alpha.sum(axis=1, keepdims=True)
            return alpha_objective(tables, alpha, **options)

        reference = minimize(
            objective,
            np.full(9, 1 / 3),
            bounds=[(0, 1)] * 9,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        found = alpha_objective(tables, solution, **options)
        assert found == pytest.approx(reference.fun, abs=1e-5)
        assert found <= reference.fun + 1e-6


@pytest.mark.parametrize("complexity", ["mean", "row"])
@given(seed=seeds, n=st.integers(1, 8), vc_dimension=st.sampled_from([1, 20, 100]))
def test_no_corner_lies_below_the_solution(complexity, seed, n, vc_dimension):
    # Convexity: a slope of at least -tol towards every corner proves optimality.
    tables = random_tables(np.random.default_rng(seed), n)
    options = {"complexity": complexity, "vc_dimension": vc_dimension}
    solution = solve_alpha(tables, **options)
    np.testing.assert_allclose(solution.sum(axis=1), 1)
    gradient = alpha_gradient(tables, solution, **options)
    slopes = gradient.min(axis=1) - (solution * gradient).sum(axis=1)
    value = alpha_objective(tables, solution, **options)
    assert slopes.sum() >= -1e-6 * (1 + abs(value)) - 1e-12


def test_a_solution_that_stops_early_says_how_far_it_is():
    tables = random_tables(np.random.default_rng(0))
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps"):
        solve_alpha(tables, complexity="row", max_iter=1)


def test_only_the_complexity_by_row_spreads_the_rows():
    tables = DomainTables(
        misses=[0.5, 0.5], hits=[[1.0, 0.9], [0.9, 1.0]], counts=[500, 500]
    )
    by_mean = solve_alpha(tables, complexity="mean", vc_dimension=3)
    by_row = solve_alpha(tables, complexity="row", vc_dimension=3)
    # Identity rows have uniform column means: nothing spreads them.
    np.testing.assert_allclose(by_mean, np.eye(2), atol=0.01)
    assert by_row[0, 0] < 0.9


def test_domains_without_labels_get_no_weight():
    tables = DomainTables([0.5, 0.5], [[0.1, 0.0], [0.3, 0.0]], counts=[9, 0])
    assert solve_alpha(tables).tolist() == [[1, 0], [1, 0]]
    assert solve_alpha(tables, complexity="row").tolist() == [[1, 0], [1, 0]]
    assert (alpha_gradient(tables, [[1, 0], [1, 0]])[:, 1] == 0).all()


@given(seeds)
def test_mixture_weights_are_optimal(seed):
    rng = np.random.default_rng(seed)
    n, dimension = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    points = rng.normal(size=(n, dimension))
    target = rng.normal(size=dimension)
    weights = mixture_weights(points @ points.T, points @ target)
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    # Optimal on the simplex: no vertex lies in a direction of descent.
    residual = weights @ points - target
    slopes = points @ residual
    assert slopes.min() >= weights @ slopes - 1e-6 * (1 + np.abs(slopes).max())


def test_mixture_weights_take_single_precision():
    for seed in range(50):
        points = np.random.default_rng(seed).normal(size=(8, 3)).astype(np.float32)
        weights = mixture_weights(points @ points.T, points @ points[0])
        np.testing.assert_allclose(weights @ points, points[0], atol=1e-2)


def planted(seed=0, n=1500):
    """Three domains whose labelled rows are Gaussians, and all rows known mixtures."""
    rng = np.random.default_rng(seed)
    truth = np.array([[0.6, 0.4, 0.0], [0.1, 0.5, 0.4], [0.3, 0.0, 0.7]])
    centres = 2.0 * np.eye(3, 5)
    X, labelled, domains = [], [], []
    for i, row in enumerate(truth):
        source = np.repeat(range(3), np.round(row * n).astype(int))
        X.append(centres[source] + rng.normal(size=(len(source), 5)))
        labelled.append(source == i)
        domains.append(np.full(len(source), i))
    X, labelled = np.concatenate(X), np.concatenate(labelled)
    y = np.where(labelled, X[:, 4] > 0, -1)
    return X, y, np.concatenate(domains), truth


ESTIMATORS = [
    KernelMeanSimilarity(random_state=0),
    AdversarialSimilarity("zero_one", random_state=0),
    AdversarialSimilarity("probability", random_state=0),
    AdversarialSimilarity("cross_entropy", random_state=0),
    AdversarialSimilarity("zero_one", classifier=LogisticRegression(), random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: str(e)[:60])
def test_planted_mixtures_are_found(estimator):
    X, y, domains, truth = planted()
    found = estimator.fit(X, y, domains=domains)
    assert np.abs(found.alpha_ - truth).mean() < 0.04
    np.testing.assert_allclose(found.alpha_.sum(axis=1), 1)
    np.testing.assert_allclose(found.column_means_, found.alpha_.mean(axis=0))


def test_kernel_means_are_matched_on_standardised_features():
    X, y, domains, _ = planted(n=40)
    X = X * [1, 10, 100, 1, 1] + 7
    found = KernelMeanSimilarity(gamma=0.3).fit(X, y, domains=domains)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)

    def mean_kernel(rows, others):
        return np.mean(
            [np.exp(-0.3 * ((Z[a] - Z[b]) ** 2).sum()) for a in rows for b in others]
        )

    pools = [np.flatnonzero(domains == i) for i in range(3)]
    labelled = [np.flatnonzero((domains == i) & (y >= 0)) for i in range(3)]
    gram = np.array([[mean_kernel(a, b) for b in labelled] for a in labelled])
    counts = [len(rows) for rows in labelled]
    assert len(set(counts)) > 1
    for j, rows in enumerate(labelled):  # as if all had the same number of labels
        u = np.mean([mean_kernel([a], rows[rows != a]) for a in rows])
        gram[j, j] = u + (1 - u) / np.prod(counts) ** (1 / 3)
    for i, pool in enumerate(pools):
        target = [mean_kernel(pool, rows) for rows in labelled]
        weights = mixture_weights(gram, target)
        np.testing.assert_allclose(found.alpha_[i], weights, atol=1e-6)


@pytest.mark.parametrize("counts", [(5, 20), (20, 80), (1, 1)])
def test_more_labels_are_no_reason_for_more_weight(counts):
    """Of two domains that are the same, each has about half of the weight.

    Without the correction one would have 0.8 of it, where the labels are uneven.
    """
    rng = np.random.default_rng(0)
    weights = []
    for _ in range(40):
        X, domains = rng.normal(size=(400, 8)), np.repeat([0, 1], 200)
        y = np.where((np.arange(400) % 200) < np.array(counts)[domains], 0, -1)
        found = KernelMeanSimilarity(random_state=0).fit(X, y, domains=domains)
        weights.append(found.column_means_[1])
    assert np.mean(weights) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("n_labels", [1, 5, 20])
def test_few_labels_of_a_far_domain_hardly_blur_the_others(n_labels):
    rng = np.random.default_rng(0)
    centres = np.zeros((3, 5))
    centres[1, 0], centres[2, 1] = 1.5, 6
    X = np.repeat(centres, 600, axis=0) + rng.normal(size=(1800, 5))
    domains = np.repeat([0, 1, 2], 600)
    y = np.where(np.arange(1800) % 600 < np.array([300, 300, n_labels])[domains], 0, -1)
    found = KernelMeanSimilarity(random_state=0).fit(X, y, domains=domains)
    assert found.alpha_[0, 0] > 0.85 and found.alpha_[1, 1] > 0.85
    assert found.alpha_[:2, 2].max() < 0.05


def test_a_gram_matrix_of_equal_counts_stays_as_it_is():
    points = np.random.default_rng(0).uniform(size=(5, 9))
    points /= 2 * np.linalg.norm(points, axis=1, keepdims=True)
    gram = points @ points.T
    np.testing.assert_allclose(even_gram(gram, [7] * 5, [0] * 5), gram, atol=1e-12)


def test_an_even_gram_matrix_is_one_of_vectors():
    gram = [[0.4, 0.39], [0.39, 0.39]]  # of which even counts would leave less
    even = even_gram(gram, [3, 1000], [0, 0])
    assert np.linalg.eigvalsh(even).min() > -1e-12
    mixture_weights(even, [0.3, 0.3])


@pytest.mark.parametrize(
    ("counts", "alone", "message"),
    [([0, 2], [0, 0], "contains 0"), ([2, 2], [0], "alone"), ([2], [0], "gram")],
)
def test_a_gram_matrix_of_nothing_is_refused(counts, alone, message):
    with pytest.raises(ValueError, match=message):
        even_gram(np.eye(2), counts, alone)


def test_the_kernels_width_is_the_median_distance():
    X, y, domains, _ = planted(n=100)
    found = KernelMeanSimilarity().fit(X, y, domains=domains)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    distances = pdist(Z, "sqeuclidean")
    assert found.gamma_ == pytest.approx(1 / np.median(distances))


def test_copies_of_a_domain_share_its_weight():
    X, y, domains, _ = planted(n=60)
    twice = np.concatenate([domains, domains + 3])
    found = KernelMeanSimilarity().fit(np.tile(X, (2, 1)), np.tile(y, 2), domains=twice)
    np.testing.assert_allclose(found.alpha_[:, :3], found.alpha_[:, 3:], atol=1e-4)


def test_domain_classifiers_specialise():
    # Two far domains with opposite labels: the shared classifier cannot serve both.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2)) + np.repeat([[0, 0], [0, 6]], 400, axis=0)
    domains = np.repeat([0, 1], 400)
    y = np.where(np.arange(800) % 2, -1, (X[:, 0] > 0) ^ domains)
    found = AdversarialSimilarity(
        classifier=LogisticRegression(), n_steps=10, random_state=0
    ).fit(X, y, domains=domains)
    shared, *own = found.tables_.errors
    assert np.diagonal(own).max() < 0.1 < 0.3 < shared.max()


@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=["kernel", "adversarial"])
def test_a_domain_without_labels_is_explained_by_the_others(estimator):
    X, y, domains, _ = planted(n=400)
    y = np.where(domains == 1, -1, y)
    found = estimator.fit(X, y, domains=domains)
    assert found.alpha_[:, 1].tolist() == [0, 0, 0]
    np.testing.assert_allclose(found.alpha_.sum(axis=1), 1)
    weights = found.transform(X, domains=domains)
    assert (weights[domains == 1] == 0).all()


def test_a_classifier_moves_alpha_away_from_difficult_domains():
    # Two domains with the same features; the labels of the second are noise.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    domains = np.repeat([0, 1], 400)
    y = np.where(domains == 0, X[:, 0] > 0, rng.uniform(size=800) > 0.5).astype(int)
    y[np.arange(800) % 2 == 0] = -1
    plain = AdversarialSimilarity(random_state=0).fit(X, y, domains=domains)
    aware = AdversarialSimilarity(
        classifier=LogisticRegression(), step_size=1.0, random_state=0
    ).fit(X, y, domains=domains)
    assert abs(plain.column_means_[0] - 0.5) < 0.25
    assert aware.column_means_[0] > plain.column_means_[0] + 0.15


def test_without_the_discriminator_and_classifiers_alpha_stays_uniform():
    X, y, domains, _ = planted(n=100)
    found = AdversarialSimilarity(lambda_d=0, n_steps=3).fit(X, y, domains=domains)
    np.testing.assert_allclose(found.alpha_, 1 / 3)


def test_tables_hold_the_losses_that_were_asked_for():
    X, y, domains, _ = planted(n=200)
    hits = {
        loss: AdversarialSimilarity(loss, n_steps=1, random_state=0)
        .fit(X, y, domains=domains)
        .tables_.hits
        for loss in ("zero_one", "probability", "cross_entropy")
    }
    # The discriminators are the same in the first step: -ln(1 - f) > f.
    assert (hits["cross_entropy"] > hits["probability"]).all()
    shares = hits["zero_one"] * np.bincount(domains[y >= 0])
    np.testing.assert_allclose(shares, np.round(shares), atol=1e-9)


def test_classifiers_are_judged_on_rows_that_they_have_not_seen():
    X, y, domains, _ = planted(n=200)
    noise = np.where(y >= 0, np.random.default_rng(0).integers(2, size=len(y)), -1)
    found = AdversarialSimilarity(
        classifier=DecisionTreeClassifier(), n_steps=1, random_state=0
    ).fit(X, noise, domains=domains)
    assert abs(found.tables_.errors.mean() - 0.5) < 0.1


def test_the_dimension_is_that_of_linear_classifiers_unless_given():
    X, y, domains, _ = planted(n=200)
    alphas = [
        AdversarialSimilarity(
            complexity="row", vc_dimension=dimension, n_steps=2, random_state=0
        )
        .fit(X, y, domains=domains)
        .alpha_
        for dimension in (None, 6, 1)
    ]
    assert np.array_equal(alphas[0], alphas[1])
    assert not np.array_equal(alphas[0], alphas[2])


def test_the_complexity_by_row_pulls_alpha_to_the_shares_of_labels():
    X, y, domains, _ = planted(n=400)
    plain = AdversarialSimilarity(random_state=0).fit(X, y, domains=domains)
    spread = AdversarialSimilarity(
        complexity="row", vc_dimension=1, random_state=0
    ).fit(X, y, domains=domains)
    beta = plain.counts_ / plain.counts_.sum()
    assert np.abs(spread.alpha_ - beta).sum() < np.abs(plain.alpha_ - beta).sum()


@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=["kernel", "adversarial"])
def test_weights_of_labelled_samples_sum_to_one_in_every_surrogate(estimator):
    X, y, domains, _ = planted(n=400)
    weights = estimator.fit_transform(X, y, domains=domains)
    assert weights.shape == (len(X), 3)
    np.testing.assert_allclose(weights[y >= 0].sum(axis=0), 1)


def test_an_ensemble_can_be_classifier_and_discriminator():
    X, y, domains, _ = planted(n=60)
    forest = RandomForestClassifier(5)  # an unfitted ensemble has no truth value
    estimator = AdversarialSimilarity(
        discriminator=forest, classifier=forest, n_steps=2, random_state=0
    )
    assert estimator.fit(X, y, domains=domains).tables_.errors.any()


def test_one_domain_has_one_weight():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = np.where(np.arange(50) < 20, 1, -1)
    for estimator in (AdversarialSimilarity(), KernelMeanSimilarity()):
        assert estimator.fit(X, y).alpha_.tolist() == [[1.0]]
        assert np.unique(estimator.transform(X)).tolist() == [1 / 20]


def test_iterates_start_uniform_and_the_mean_of_the_second_half_is_the_answer():
    X, y, domains, _ = planted(n=200)
    found = AdversarialSimilarity(n_steps=7, random_state=0).fit(X, y, domains=domains)
    assert found.history_.shape == (8, 3, 3)
    assert (found.history_[0] == 1 / 3).all()
    np.testing.assert_allclose(found.history_[4:].mean(axis=0), found.alpha_)


def test_blocks_do_not_change_kernel_means(monkeypatch):
    X, y, domains, _ = planted(n=100)
    whole = KernelMeanSimilarity(random_state=0).fit(X, y, domains=domains).alpha_
    monkeypatch.setattr("mdal.similarity._kernel._BLOCK", 500)
    parts = KernelMeanSimilarity(random_state=0).fit(X, y, domains=domains).alpha_
    np.testing.assert_allclose(whole, parts, atol=1e-8)


def test_progress_is_shown_only_when_asked(capsys):
    X, y, domains, _ = planted(n=60)
    AdversarialSimilarity(n_steps=2).fit(X, y, domains=domains)
    assert capsys.readouterr().err == ""
    AdversarialSimilarity(n_steps=2, verbose=True).fit(X, y, domains=domains)
    assert "2/2" in capsys.readouterr().err
