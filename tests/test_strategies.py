"""Strategies: laws that hold for all of them, and what each is said to do."""

import tracemalloc
import warnings
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from skactiveml import pool
from skactiveml.classifier import ParzenWindowClassifier, SklearnClassifier
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mdal.scores import (
    distance_to_labelled,
    entropy,
    free_energy,
    gradient_norm,
    margin,
    softmax,
)
from mdal.strategies import (
    BADGE,
    CLUE,
    EADA,
    CallableStrategy,
    ClusterMargin,
    CoreSet,
    Energy,
    Entropy,
    ExpectedGradientLength,
    FewerSamplesWarning,
    GraDS,
    LeastConfidence,
    Margin,
    Mixture,
    PoolView,
    Random,
    ScoreStrategy,
    SkactivemlStrategy,
    Strategy,
    get_strategy,
    select_streamed,
    strategy_names,
)


def last_rows(view, n, rng):
    return np.arange(len(view))[::-1][:n]


SCORED = [Margin(), Entropy(), LeastConfidence(), ExpectedGradientLength()]
DETERMINISTIC = [*SCORED, Energy(), EADA(), CoreSet()]
DRAWN = [
    Random(),
    BADGE(),
    GraDS(),
    ClusterMargin(),
    CLUE(),
    Mixture(["badge", "random", "random"], [2, 1, 1]),
]
OTHERS = [
    CallableStrategy(last_rows),
    SkactivemlStrategy(pool.UncertaintySampling()),
    SkactivemlStrategy(pool.CoreSet()),
]
ALL = [*DETERMINISTIC, *DRAWN, *OTHERS]


def name(strategy):
    if isinstance(strategy, SkactivemlStrategy):
        return f"skactiveml {type(strategy.query_strategy).__name__}"
    return type(strategy).__name__


def each(strategies):
    return pytest.mark.parametrize("strategy", strategies, ids=name)


@st.composite
def views(draw, max_rows=25, mask=True):
    """Pools with copies, ties, certain predictions, zero embeddings, one class, ..."""
    n, n_classes = draw(st.integers(1, max_rows)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    coarse, saturated, zero, with_embedding, with_outlier, with_labelled = (
        draw(st.booleans()) for _ in range(6)
    )
    logits = rng.normal(size=(n, n_classes))
    embedding = rng.normal(size=(n, 3))
    if coarse:
        logits, embedding = logits.round(), embedding.round()
    if saturated:
        logits *= 1e4
    embedding *= not zero
    labelled = rng.normal(size=(2, 3 if with_embedding else n_classes)).astype(dtype)
    available = rng.uniform(size=n) < draw(st.sampled_from([0.3, 0.8]))
    return PoolView(
        logits.astype(dtype),
        embedding.astype(dtype) if with_embedding else None,
        outlier=rng.uniform(size=n).round(1) if with_outlier else None,
        domains=rng.choice(["a", "b"], size=n),
        labelled_embedding=labelled if with_labelled else None,
        labels=[0, n_classes - 1] if with_labelled else None,
        available=available if mask and draw(st.booleans()) else None,
    )


@pytest.fixture
def normal_view():
    """A pool in which no two numbers are the same."""
    rng = np.random.default_rng(0)
    return PoolView(
        2 * rng.normal(size=(200, 4)),
        np.abs(rng.normal(size=(200, 5))),
        outlier=rng.uniform(size=200),
        labelled_embedding=np.abs(rng.normal(size=(8, 5))),
        labels=np.arange(8) % 4,
    )


def as_type(view, dtype):
    return PoolView(
        view.logits.astype(dtype),
        view.embedding.astype(dtype),
        outlier=view.outlier,
        labelled_embedding=view.labelled_embedding.astype(dtype),
    )


# Laws of all strategies


@each(ALL)
@given(views(), st.integers(0, 30), st.integers(0, 9))
@settings(max_examples=60)
def test_picks_are_distinct_available_and_as_many_as_asked(strategy, view, n, seed):
    allowed = set(view.candidates().tolist())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = strategy.select(view, n, seed)
    assert len(set(rows.tolist())) == len(rows) == min(n, len(allowed))
    assert set(rows.tolist()) <= allowed and rows.dtype == np.intp
    told = [w for w in caught if w.category is FewerSamplesWarning]
    assert len(told) == (n > len(allowed))
    assert {w.category for w in caught} <= {FewerSamplesWarning}


@each(ALL)
@given(views(), st.integers(0, 9))
@settings(max_examples=30)
def test_the_same_seed_gives_the_same_picks(strategy, view, seed):
    n = len(view.candidates()) // 2
    before = repr(np.random.get_state())
    rows = strategy.select(view, n, seed)
    assert np.array_equal(rows, strategy.select(view, n, seed))
    assert np.array_equal(rows, strategy.select(view, n, np.random.RandomState(seed)))
    assert repr(np.random.get_state()) == before
    if "random_state" in strategy.get_params():
        own = clone(strategy).set_params(random_state=seed)
        assert np.array_equal(rows, own.select(view, n))


@each(DETERMINISTIC)
def test_deterministic_strategies_need_no_seed(strategy, normal_view):
    assert "random_state" not in strategy.get_params()
    rows = strategy.select(normal_view, 20, 0)
    assert np.array_equal(rows, strategy.select(normal_view, 20, 1))


@each(ALL)
@given(views(), st.data())
@settings(max_examples=40)
def test_a_stream_that_fits_is_the_pool(strategy, view, data):
    """However it is cut, and whoever may be picked."""
    n = data.draw(st.integers(0, len(view.candidates())))
    rows = strategy.select(view, n, 3)
    assert np.array_equal(
        select_streamed(strategy, cut(view, data), n, random_state=3), rows
    )


@each(ALL)
@given(views(), st.data())
@settings(max_examples=40)
def test_a_stream_that_is_cut_short_does_not_depend_on_blocks(strategy, view, data):
    n = data.draw(st.integers(0, min(3, len(view.candidates()))))
    settings = {"keep": 2, "threshold": 0, "random_state": 3}
    whole = select_streamed(strategy, [view], n, **settings)
    rows = select_streamed(strategy, cut(view, data), n, **settings)
    assert np.array_equal(whole, rows)
    assert len(set(rows.tolist())) == n
    assert set(rows.tolist()) <= set(view.candidates().tolist())


def cut(view, data):
    """Cut a view into blocks, of which some may be empty."""
    places = data.draw(st.lists(st.integers(0, len(view)), max_size=5))
    edges = [0, *sorted(places), len(view)]
    return [view.take(slice(a, b)) for a, b in pairwise(edges)]


@each([*SCORED, Energy(), EADA()])
@given(views(), st.data())
def test_ranking_loses_nothing_in_a_stream(strategy, view, data):
    n = data.draw(st.integers(0, len(view.candidates())))
    streamed = select_streamed(strategy, cut(view, data), n, keep=1, threshold=0)
    assert np.array_equal(streamed, strategy.select(view, n))


@each(ALL)
@given(views(mask=False), st.data())
@settings(max_examples=20)
def test_a_stream_serves_each_domain(strategy, view, data):
    asked = {
        domain: data.draw(st.integers(0, int((view.domains == domain).sum())))
        for domain in set(view.domains.tolist())
    }
    picked = select_streamed(strategy, cut(view, data), asked, keep=2, threshold=0)
    for domain, rows in picked.items():
        assert len(set(rows.tolist())) == asked[domain]
        assert set(view.domains[rows]) <= {domain}


@each(DETERMINISTIC)
def test_deterministic_strategies_follow_a_permuted_pool(strategy, normal_view):
    order = np.random.default_rng(1).permutation(len(normal_view))
    rows = strategy.select(normal_view, 30)
    assert np.array_equal(order[strategy.select(normal_view.take(order), 30)], rows)


@each(SCORED)
def test_ties_go_to_the_first_row(strategy):
    view = PoolView(np.tile([[1.0, 0.0], [0.5, 0.0]], (5, 1)))
    assert strategy.select(view, 7).tolist() == [1, 3, 5, 7, 9, 0, 2]


@each(DETERMINISTIC)
def test_precision_changes_no_deterministic_pick(strategy, normal_view):
    exact = as_type(as_type(normal_view, np.float32), np.float64)
    rows = strategy.select(as_type(normal_view, np.float32), 20)
    assert np.array_equal(rows, strategy.select(exact, 20))


@each(DRAWN)
@pytest.mark.parametrize("change", ["order", "precision"])
def test_order_and_precision_do_not_change_the_distribution(strategy, change):
    rng = np.random.default_rng(2)
    view = PoolView(
        rng.normal(size=(12, 3)),
        rng.normal(size=(12, 2)),
        outlier=rng.uniform(size=12),
        labelled_embedding=np.empty((0, 2)),
    )
    order = rng.permutation(12)
    other = view.take(order) if change == "order" else as_type(view, np.float32)
    back = order if change == "order" else np.arange(12)
    strategy = clone(strategy)
    if isinstance(strategy, ClusterMargin):
        strategy.set_params(cluster_size=3, factor=2)
    counts = np.zeros((2, 12))
    for seed in range(800):
        counts[0, strategy.select(view, 3, seed)[2]] += 1
        counts[1, back[strategy.select(other, 3, 10_000 + seed)[2]]] += 1
    counts = counts[:, counts.sum(axis=0) > 20]
    if counts.shape[1] > 1:
        assert stats.chi2_contingency(counts).pvalue > 1e-3
    assert isinstance(strategy, CLUE) or counts.shape[1] > 1


@each(ALL)
def test_the_last_sample_can_be_picked(strategy):
    view = PoolView([[1.0, 2.0]], [[0.5]])
    assert strategy.select(view, 1, 0).tolist() == [0]
    assert strategy.select(view, 0, 0).tolist() == []
    nothing = PoolView(np.empty((0, 2)), np.empty((0, 1)))
    assert strategy.select(nothing, 0, 0).tolist() == []
    with pytest.warns(FewerSamplesWarning, match="n=1 exceeds the 0 samples"):
        assert strategy.select(nothing, 1, 0).tolist() == []


@each([s for s in ALL if s not in OTHERS])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_no_scale_of_embeddings_is_too_large_or_small(strategy, scale, normal_view):
    def scaled(by):
        return PoolView(
            normal_view.logits.astype(np.float32),
            (by * normal_view.embedding).astype(np.float32),
            labelled_embedding=by * normal_view.labelled_embedding,
        )

    rows = strategy.select(scaled(scale), 10, 0)
    assert len(set(rows) & set(strategy.select(scaled(1.0), 10, 0))) >= 9


@each(ALL)
def test_strategies_change_no_input(strategy, normal_view):
    for array in vars(normal_view).values():
        if array is not None:
            array.flags.writeable = False
    strategy.select(normal_view, 5, 0)


@each([s for s in ALL if s not in OTHERS])
def test_a_pipeline_shows_what_a_strategy_sees(strategy):
    X = np.random.default_rng(0).normal(size=(30, 3))
    pipe = make_pipeline(StandardScaler(), clone(strategy)).fit(X)
    shown = pipe.transform(X)
    assert np.array_equal(shown, strategy.transform(StandardScaler().fit_transform(X)))
    assert shown.shape == (30, len(pipe.get_feature_names_out()))


def kept_in_a_stream(strategy, view, n, **settings):
    """The rows that are left to pick from, in order."""
    seen = []

    class Spy(type(strategy)):
        def pick(self, view, n, rng):
            seen.append(view.logits[:, -1].astype(int).tolist())
            return range(n)

    spy = Spy(**strategy.get_params(deep=False))
    numbered = np.column_stack([view.logits, np.arange(len(view)) - 1e6])
    view = PoolView(
        numbered, view.embedding, labelled_embedding=view.labelled_embedding
    )
    select_streamed(
        spy, [view.take(slice(90)), view.take(slice(90, None))], n, **settings
    )
    return [row + 10**6 for row in seen[0]]


@pytest.mark.parametrize(
    ("strategy", "worth"),
    [
        (BADGE(), lambda view: np.linalg.norm(BADGE().transform(view), axis=1)),
        (CoreSet(), lambda view: distance_to_labelled(*positions(view))),
        (CLUE(), lambda view: entropy(softmax(view.logits))),
        (ClusterMargin(), lambda view: -margin(softmax(view.logits))),
    ],
    ids=["badge", "coreset", "clue", "cluster margin"],
)
def test_the_most_promising_rows_of_a_stream_are_kept(strategy, worth, normal_view):
    best = np.argsort(-worth(normal_view))
    for limits, n_kept in (
        ({"keep": 10, "threshold": 0}, 30),
        ({"keep": 1, "threshold": 50}, 50),
        ({"keep": 1, "threshold": 0}, 3),
        ({}, 200),
    ):
        kept = kept_in_a_stream(strategy, normal_view, 3, **limits)
        assert kept == sorted(best[:n_kept])


def positions(view):
    return view.embedding, view.labelled_embedding


def test_a_mixture_keeps_what_any_of_its_strategies_would(normal_view):
    mixture = Mixture([BADGE(), CoreSet()])
    kept = kept_in_a_stream(mixture, normal_view, 3, keep=5, threshold=0)
    each_kept = [
        kept_in_a_stream(strategy, normal_view, 3, keep=5, threshold=0)
        for strategy in (BADGE(), CoreSet())
    ]
    assert kept == sorted({*each_kept[0], *each_kept[1]})


def test_the_labelled_samples_of_the_first_block_are_those_of_the_pool(normal_view):
    later = PoolView(normal_view.logits, normal_view.embedding)
    blocks = [normal_view.take(slice(9)), later.take(slice(9, None))]
    blocks[0] = PoolView(
        blocks[0].logits,
        blocks[0].embedding,
        labelled_embedding=normal_view.labelled_embedding,
    )
    streamed = select_streamed("coreset", blocks, 4, keep=1, threshold=0)
    whole = PoolView(
        normal_view.logits,
        normal_view.embedding,
        labelled_embedding=normal_view.labelled_embedding,
    )
    expected = select_streamed("coreset", [whole], 4, keep=1, threshold=0)
    assert np.array_equal(streamed, expected)


def test_domains_of_a_stream_may_have_any_names():
    logits = np.zeros((4, 2))
    for names in ([("a", 1), ("a", 2)] * 2, [1, 2] * 2, [1.5, 2.5] * 2):
        view = PoolView(logits, domains=names)
        picked = select_streamed("margin", [view], {names[1]: 2, names[0]: 1})
        assert {k: v.tolist() for k, v in picked.items()} == {
            names[1]: [1, 3],
            names[0]: [0],
        }
    assert select_streamed("margin", [view], {}) == {}


def test_an_exhausted_domain_is_named():
    view = PoolView(
        np.zeros((3, 2)), domains=list("aab"), available=[True, True, False]
    )
    with pytest.warns(FewerSamplesWarning, match="n=1 exceeds the 0 .* domain 'b'"):
        picked = select_streamed("badge", [view], {"a": 1, "b": 1})
    assert len(picked["a"]) == 1 and len(picked["b"]) == 0


# What each one does


@pytest.mark.parametrize(
    ("strategy", "score"),
    [
        (Margin(), lambda view: -margin(softmax(view.logits))),
        (Entropy(), lambda view: entropy(softmax(view.logits))),
        (LeastConfidence(), lambda view: -softmax(view.logits).max(axis=1)),
    ],
    ids=["margin", "entropy", "least confidence"],
)
def test_the_most_uncertain_come_first(strategy, score, normal_view):
    rows = strategy.select(normal_view, 20)
    assert np.array_equal(rows, np.argsort(-score(normal_view))[:20])


def test_random_picks_are_uniform():
    counts = np.bincount(
        [Random().select(np.zeros((7, 2)), 1, s)[0] for s in range(999)]
    )
    assert stats.chisquare(counts).pvalue > 1e-3


def test_badge_begins_with_the_largest_gradient(normal_view):
    gradients = BADGE().transform(normal_view)
    largest = np.linalg.norm(gradients, axis=1).argmax()
    assert {BADGE().select(normal_view, 1, seed)[0] for seed in range(5)} == {largest}


def test_badge_without_an_embedding_has_the_bias_gradient():
    logits = np.random.default_rng(0).normal(size=(9, 3))
    p = softmax(logits)
    expected = p - np.eye(3)[p.argmax(axis=1)]
    assert BADGE().transform(logits) == pytest.approx(expected)


@given(st.floats(0.01, 1), st.integers(0, 99))
def test_grads_with_a_constant_outlier_score_is_badge(score, seed):
    rng = np.random.default_rng(seed)
    logits, z = 3 * rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    constant = PoolView(logits, z, outlier=np.full(60, score))
    grads = GraDS(temperature=1.0).select(constant, 20, seed)
    assert np.array_equal(grads, BADGE().select(PoolView(logits, z), 20, seed))
    assert np.array_equal(
        grads, GraDS(temperature=1.0).select(PoolView(logits, z), 20, seed)
    )


def test_grads_multiplies_gradients_by_the_outlier_score(normal_view):
    view = PoolView(normal_view.logits / 0.3, normal_view.embedding)
    expected = BADGE().transform(view) * normal_view.outlier[:, None]
    assert GraDS(temperature=0.3).transform(normal_view) == pytest.approx(expected)
    lengths = gradient_norm(GraDS(temperature=0.3).factors(normal_view))
    assert lengths == pytest.approx(np.linalg.norm(expected, axis=1))
    assert GraDS(temperature=0.3).select(normal_view, 1)[0] == lengths.argmax()


def test_grads_prefers_outliers():
    rng = np.random.default_rng(0)
    logits, z = rng.normal(size=(100, 3)), rng.normal(size=(100, 4))
    outlier = np.where(np.arange(100) < 50, 0.9, 0.1)
    picked = [
        GraDS().select(PoolView(logits, z, outlier=outlier), 10, seed)
        for seed in range(50)
    ]
    assert np.mean(np.concatenate(picked) < 50) > 0.9


def test_energy_takes_a_share_by_energy_and_the_rest_by_margin(normal_view):
    logits = normal_view.logits
    by_energy = np.argsort(-free_energy(logits))
    ordered = np.sort(logits, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    for share, n in ((0.5, 7), (0.2, 20), (0.0, 5), (1.0, 5)):
        first = by_energy[: int(share * n)].tolist()
        by_margin = [row for row in np.argsort(margins) if row not in first]
        expected = first + by_margin[: n - len(first)]
        assert Energy(share).select(normal_view, n).tolist() == expected


def test_eada_takes_small_margins_among_high_energies(normal_view):
    logits = normal_view.logits
    ordered = np.sort(logits, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    half = np.argsort(-free_energy(logits))[:100]
    expected = half[np.argsort(margins[half])][:10]
    assert np.array_equal(EADA().select(normal_view, 10), expected)
    assert len(EADA(kept=0.0).select(normal_view, 10)) == 10
    odd = normal_view.take(np.arange(3))  # half of 3 is 2
    by_energy = np.argsort(-free_energy(odd.logits))
    margins = np.diff(np.sort(odd.logits, axis=1)[:, -2:])[:, 0]
    assert EADA().select(odd, 1)[0] == min(by_energy[:2], key=lambda a: margins[a])


def slow_cluster_margin(view, n, rng, factor=5, cluster_size=5):
    """Clustering anew at every threshold, and a plain round robin."""
    n_rows = len(view)
    tree = AgglomerativeClustering(
        n_clusters=1, linkage="average", compute_distances=True
    ).fit(view.embedding)
    for threshold in [0, *np.sort(tree.distances_)]:
        clusters = AgglomerativeClustering(
            n_clusters=None,
            linkage="average",
            distance_threshold=np.nextafter(threshold, np.inf),
        ).fit_predict(view.embedding)
        if n_rows / (clusters.max() + 1) >= cluster_size:
            break
    margins = margin(softmax(view.logits))
    rows = sorted(sorted(range(n_rows), key=lambda a: margins[a])[: factor * n])
    members = {}
    for place in rng.permutation(len(rows)):
        members.setdefault(clusters[rows[place]], []).append(rows[place])
    waiting = sorted(members.values(), key=len)
    picked = []
    while len(picked) < n:
        for cluster in waiting:
            if cluster and len(picked) < n:
                picked.append(cluster.pop(0))
    return picked


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [1, 7, 30])
def test_cluster_margin_equals_a_slow_reference(seed, n):
    rng = np.random.default_rng(seed)
    view = PoolView(rng.normal(size=(150, 3)), rng.normal(size=(150, 2)))
    expected = slow_cluster_margin(view, n, np.random.RandomState(seed))
    assert ClusterMargin().select(view, n, seed).tolist() == expected


def test_cluster_margin_keeps_its_clusters_after_fit(normal_view):
    rows = ClusterMargin(random_state=0).select(normal_view, 20)
    fitted = ClusterMargin(random_state=0).fit(normal_view)
    assert np.array_equal(fitted.select(normal_view, 20), rows)
    assert len(np.unique(fitted.clusters_)) == 40
    # Labelled rows leave the pool; the others keep their clusters.
    left = np.delete(np.arange(200), rows)
    clusters = fitted.clusters_.copy()
    assert len(fitted.select(normal_view.take(left), 20)) == 20
    assert np.array_equal(fitted.clusters_, clusters)


def test_cluster_margin_needs_no_quadratic_memory():
    rng = np.random.default_rng(0)
    n = 30_000  # all distances would take 3.6 GB
    view = PoolView(rng.normal(size=(n, 4)), rng.normal(size=(n, 8)))
    tracemalloc.start()
    rows = ClusterMargin(max_clustered=1000, random_state=0).select(view, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows) == 100 and peak < 40e6


def test_clusters_of_a_part_are_nearly_those_of_all():
    """Far groups are found though only a fifth of the pool is clustered."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 50)
    z = 100.0 * groups[:, None] + rng.normal(size=(1000, 2))
    view = PoolView(np.zeros((1000, 2)), z)
    strategy = ClusterMargin(cluster_size=10, max_clustered=200, factor=50)
    rows = strategy.select(view, 20, 0)
    assert sorted(groups[rows]) == list(range(20))


def nearest_to(centroids, z):
    picked = []
    for centroid in centroids:
        order = np.argsort(((z - centroid) ** 2).sum(axis=1), kind="stable")
        picked.append(next(row for row in order if row not in picked))
    return picked


def test_clue_with_equal_weights_is_k_means():
    z = np.random.default_rng(0).normal(size=(80, 3))
    view = PoolView(np.zeros((80, 2)), z)
    seed = np.random.RandomState(7).randint(np.iinfo(np.int32).max)
    means = KMeans(10, random_state=seed).fit(z)
    picked = CLUE().select(view, 10, 7)
    assert picked.tolist() == nearest_to(means.cluster_centers_, z)


def test_clue_weighs_by_entropy_at_a_temperature(normal_view):
    weights = entropy(softmax(normal_view.logits, 0.2))
    assert CLUE(0.2).transform(normal_view)[:, 0] == pytest.approx(weights)
    seed = np.random.RandomState(7).randint(np.iinfo(np.int32).max)
    means = KMeans(10, random_state=seed)
    means.fit(normal_view.embedding, sample_weight=weights)
    expected = nearest_to(means.cluster_centers_, normal_view.embedding)
    assert CLUE(0.2).select(normal_view, 10, 7).tolist() == expected


def test_clue_looks_at_the_heaviest_rows_of_a_large_pool(normal_view):
    heavy = CLUE().transform(normal_view)[:, 0].argsort()[::-1][:40]
    for seed in range(5):
        rows = CLUE(max_rows=40).select(normal_view, 2, seed)
        assert set(rows) <= set(heavy)
        assert set(CLUE(max_rows=5).select(normal_view, 2, seed)) == set(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clue_weighs_the_nearly_certain_relative_to_each_other(dtype):
    rng = np.random.default_rng(0)
    logits = np.zeros((50, 2), dtype)
    logits[:, 0] = (97 if dtype == np.float32 else 720) + rng.uniform(size=50)
    view = PoolView(logits, rng.normal(size=(50, 3)).astype(dtype))
    assert len(set(CLUE().select(view, 5, 0))) == 5


@each([CoreSet(), CLUE()])
def test_a_common_offset_is_not_lost_in_single_precision(strategy):
    rng = np.random.default_rng(0)
    z, zeros = rng.normal(size=(300, 16)) + 1000, np.zeros((300, 2))
    labelled = rng.normal(size=(5, 16)) + 1000

    def picked(dtype):
        view = PoolView(
            zeros, z.astype(dtype), labelled_embedding=labelled.astype(dtype)
        )
        return strategy.select(view, 20, 0)

    assert len(set(picked(np.float32)) & set(picked(np.float64))) >= 19


def test_coreset_goes_away_from_what_is_labelled():
    z = np.array([[0.0, 0], [0, 1], [8, 0], [9, 0]])
    view = PoolView(np.zeros((4, 2)), z, labelled_embedding=[[9.0, 0]])
    assert CoreSet().select(view, 2).tolist() == [1, 0]


def test_a_mixture_fills_its_quotas_in_turn(normal_view):
    mixture = Mixture(["margin", "entropy"], quotas=[5, 5])
    by_margin = Margin().select(normal_view, 5)
    rows = mixture.select(normal_view, 10)
    assert np.array_equal(rows[:5], by_margin)
    by_entropy = [r for r in Entropy().select(normal_view, 10) if r not in by_margin]
    assert rows[5:].tolist() == by_entropy[:5]


@pytest.mark.parametrize(
    ("quotas", "n", "shares"),
    [([5, 5], 10, [5, 5]), ([3, 1], 8, [6, 2]), (None, 7, [4, 3]), ([1, 0], 4, [4, 0])],
)
def test_quotas_are_shares_of_what_is_asked(quotas, n, shares):
    marked = [
        CallableStrategy(lambda view, n, rng: np.argsort(view.logits[:, 0])[:n]),
        CallableStrategy(lambda view, n, rng: np.argsort(-view.logits[:, 0])[:n]),
    ]
    logits = np.arange(100.0)[:, None]
    rows = Mixture(marked, quotas).select(logits, n)
    assert [int((rows < 50).sum()), int((rows >= 50).sum())] == shares


def test_a_mixture_may_have_members_without_scores(normal_view):
    mixture = Mixture([last_rows, "margin"]).fit(normal_view)
    assert mixture.select(normal_view, 2)[0] == 199
    with pytest.raises(TypeError, match="has no transform"):
        mixture.transform(normal_view)


def test_a_mixture_of_one_is_that_one(normal_view):
    alone = BADGE().select(normal_view, 20, 5)
    assert np.array_equal(Mixture(["badge"]).select(normal_view, 20, 5), alone)


# Views


def test_a_view_of_probabilities_has_them_back():
    p = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    assert softmax(PoolView.from_probabilities(p).logits) == pytest.approx(p)


def test_a_view_keeps_arrays_without_a_copy(normal_view):
    view = PoolView(normal_view.logits, normal_view.embedding)
    assert CoreSet().transform(view) is not view.embedding
    assert view.logits is normal_view.logits
    assert view.embedding is normal_view.embedding


def test_an_array_of_logits_is_a_view(normal_view):
    for strategy in (Margin(), CoreSet()):
        rows = strategy.select(normal_view.logits, 5)
        assert np.array_equal(rows, strategy.select(PoolView(normal_view.logits), 5))
    lists = normal_view.logits.tolist()
    assert np.array_equal(Margin().select(lists, 5), Margin().select(normal_view, 5))


# Names, functions, and scikit-activeml


def test_every_name_gives_a_strategy():
    assert {"grads", "badge", "margin", "random"} <= set(strategy_names())
    for each_name in strategy_names():
        strategy = get_strategy(each_name)
        assert len(strategy.select(np.eye(4), 2, 0)) == 2
        assert get_strategy(strategy) is strategy


def test_every_strategy_that_needs_nothing_has_a_name():
    named = {type(get_strategy(each_name)) for each_name in strategy_names()}
    without = {CallableStrategy, Mixture, SkactivemlStrategy}
    assert named == {type(s) for s in ALL} - without


def test_a_function_is_a_strategy(normal_view):
    assert get_strategy(last_rows).select(normal_view, 3).tolist() == [199, 198, 197]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0, 0], "2 distinct rows"),
        ([0], "must return 2 rows"),
        ([0, 5], "from 0 to 4"),
        ([-1, 0], "from 0 to 4"),
        ([0.0, 1.0], "whole numbers"),
        (None, "must return 2 rows"),
    ],
)
def test_wrong_answers_of_a_function_are_named(answer, message):
    with pytest.raises(ValueError, match=message):
        get_strategy(lambda view, n, rng: answer).select(np.eye(5), 2)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (pool.UncertaintySampling(method="margin_sampling"), Margin()),
        (pool.UncertaintySampling(method="entropy"), Entropy()),
        (pool.UncertaintySampling(method="least_confident"), LeastConfidence()),
        (pool.CoreSet(), CoreSet()),
    ],
    ids=["margin", "entropy", "least confidence", "core set"],
)
def test_scikit_activeml_picks_the_same(theirs, ours, normal_view):
    rows = get_strategy(theirs).select(normal_view, 20, 0)
    assert set(rows) == set(ours.select(normal_view, 20))


def test_scikit_activeml_badge_picks_with_the_same_frequencies(normal_view):
    view = normal_view.take(np.arange(15))
    counts = np.zeros((2, 15))
    for seed in range(400):
        counts[0, get_strategy(pool.Badge()).select(view, 3, seed)[2]] += 1
        counts[1, BADGE().select(view, 3, seed)[2]] += 1
    counts = counts[:, counts.sum(axis=0) > 20]
    assert stats.chi2_contingency(counts).pvalue > 1e-3


WITHOUT_CLASSIFIER = [
    pool.CoreSet(),
    pool.CostEmbeddingAL(classes=[0, 1, 2, 3]),
    pool.GreedySamplingX(),
    pool.MaxHerding(),
    pool.ProbCover(),
    pool.Quire(classes=[0, 1, 2, 3]),
    pool.RandomSampling(),
    pool.TypiClust(),
]
OUR_PREDICTIONS = [
    pool.Badge(),
    pool.Clue(),
    pool.Falcun(),
    pool.UncertaintySampling(),
]
WITH_CLASSIFIER = [
    *OUR_PREDICTIONS,
    pool.ContrastiveAL(),
    pool.DropQuery(),
    pool.MonteCarloEER(),
    pool.ProbabilisticAL(),
    pool.ValueOfInformationEER(),
]


def check_foreign(strategy, view):
    rows = strategy.select(view, 4, 0)
    assert len(set(rows.tolist())) == 4 and set(rows) <= set(view.candidates())
    before = repr(np.random.get_state())
    np.random.random_sample()
    assert np.array_equal(rows, strategy.select(view, 4, 0))
    assert repr(np.random.get_state()) != before  # ours was not put back to theirs
    return rows


@pytest.fixture
def small_view(normal_view):
    view = normal_view.take(np.arange(40))
    return PoolView(
        view.logits,
        view.embedding,
        labelled_embedding=view.labelled_embedding,
        labels=view.labels,
        available=np.arange(40) % 4 > 0,
    )


@pytest.mark.parametrize(
    "theirs", WITHOUT_CLASSIFIER + OUR_PREDICTIONS, ids=lambda s: type(s).__name__
)
def test_strategies_of_scikit_activeml_work(theirs, small_view):
    check_foreign(get_strategy(theirs), small_view)


@pytest.mark.parametrize("theirs", WITH_CLASSIFIER, ids=lambda s: type(s).__name__)
def test_strategies_of_scikit_activeml_may_train_a_classifier(theirs, small_view):
    classifier = ParzenWindowClassifier(classes=[0, 1, 2, 3])
    check_foreign(SkactivemlStrategy(theirs, classifier), small_view)


def test_a_classifier_is_fitted_to_the_labelled_embeddings(small_view):
    classifier = SklearnClassifier(LogisticRegression(), classes=[0, 1, 2, 3])
    strategy = SkactivemlStrategy(pool.UncertaintySampling(), classifier)
    model = LogisticRegression().fit(small_view.labelled_embedding, small_view.labels)
    confidence = model.predict_proba(small_view.embedding).max(axis=1)
    allowed = small_view.candidates()
    expected = allowed[np.argsort(confidence[allowed])[:5]]
    assert set(strategy.select(small_view, 5, 0)) == set(expected)


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (pool.QueryByCommittee(), "needs ensemble"),
        (pool.DiscriminativeAL(), "needs discriminator"),
        (pool.ContrastiveAL(), "pass a classifier"),
        (pool.DropQuery(), "pass a classifier"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_strategies_of_scikit_activeml_that_need_more_say_so(
    theirs, message, small_view
):
    with pytest.raises(TypeError, match=message):
        get_strategy(theirs).select(small_view, 2)


def test_equal_embeddings_have_the_predictions_of_the_first():
    view = PoolView([[0.1, 0.0], [5.0, 0.0], [1.0, 0.0]], [[1.0], [1.0], [2.0]])
    rows = get_strategy(pool.UncertaintySampling()).select(view, 2, 0)
    assert set(rows.tolist()) == {0, 1}


def test_scikit_activeml_needs_the_labels(small_view):
    view = PoolView(
        small_view.logits,
        small_view.embedding,
        labelled_embedding=small_view.labelled_embedding,
    )
    with pytest.raises(ValueError, match="labels is missing"):
        get_strategy(pool.CoreSet()).select(view, 2)


# A strategy of one's own


def test_a_strategy_of_ones_own_is_a_few_lines(normal_view):
    class Confused(ScoreStrategy):
        def utilities(self, view):
            return -np.abs(view.logits[:, 0] - view.logits[:, 1])

    rows = Confused().select(normal_view, 5)
    gaps = np.abs(normal_view.logits[:, 0] - normal_view.logits[:, 1])
    assert np.array_equal(rows, np.argsort(gaps)[:5])
    streamed = select_streamed(Confused(), [normal_view], 5, keep=1, threshold=0)
    assert np.array_equal(rows, streamed)


def test_rows_of_a_plain_strategy_are_kept_at_random():
    class First(Strategy):
        def pick(self, view, n, rng):
            return range(n)

    firsts = Counter(
        int(select_streamed(First(), [np.zeros((10, 2))], 1, keep=1, threshold=0,
                            random_state=seed)[0])
        for seed in range(1000)
    )  # fmt: skip
    assert stats.chisquare([firsts[row] for row in range(10)]).pvalue > 1e-3
