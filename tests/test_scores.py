"""Scores and picks: values by hand, slow references, laws."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from mdal.scores import (
    by_blocks,
    distance_to_labelled,
    entropy,
    expected_gradient_length,
    free_energy,
    gradient_factors,
    gradient_norm,
    k_centre,
    kmeans_plus_plus,
    least_confidence,
    logit_margin,
    margin,
    softmax,
    top_n,
)

log = np.log


def numbers(largest):
    return st.floats(-largest, largest, width=32)


@st.composite
def logits(draw, largest=50):
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 5)))
    values = numbers(largest) | st.sampled_from([0.0, 1.0])
    return draw(arrays(np.float64, shape, elements=values))


# Scores


def test_scores_of_one_sample_by_hand():
    p = [[0.5, 0.375, 0.125]]
    assert margin(p) == [0.125]
    assert least_confidence(p) == [0.5]
    by_hand = 0.5 * log(2) + 0.375 * log(8 / 3) + 0.125 * log(8)
    assert entropy(p) == pytest.approx(by_hand)
    logits = [[1.0, 3.0, 0.0]]
    assert logit_margin(logits) == [2.0]
    assert free_energy(logits) == pytest.approx(-log(np.e + np.e**3 + 1))


def test_scores_are_of_logits_scaled_by_temperature():
    assert softmax([[2.0, 0.0]], 2.0) == pytest.approx(softmax([[1.0, 0.0]]))


def test_certain_predictions_have_finite_scores():
    p = np.array([[1.0, 0.0, 0.0]], dtype=np.float32)
    assert entropy(p) == [0] and margin(p) == [1] and least_confidence(p) == [0]
    assert expected_gradient_length(p) == [0]


def test_one_class_leaves_no_doubt():
    assert margin([[1.0]]) == [1] and entropy([[1.0]]) == [0]
    assert logit_margin([[3.0]]) == [np.inf]
    assert free_energy([[3.0]]) == [-3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_keep_their_precision(dtype):
    x = np.array([[1.0, 2.0, 0.5]], dtype=dtype)
    p = softmax(x)
    for score in (margin(p), entropy(p), least_confidence(p)):
        assert score.dtype == dtype
    for score in (p, free_energy(x), logit_margin(x), expected_gradient_length(p, x)):
        assert score.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_and_smallest_numbers_overflow_nothing(dtype):
    largest = np.finfo(dtype).max
    x = np.array([[largest, -largest, 0], [0, 0, 0]], dtype=dtype)
    for temperature in (1.0, 1e-60, 1e60):
        p = softmax(x, temperature)
        assert np.isfinite(p).all() and p.sum(axis=1) == pytest.approx(1)
    assert np.isfinite(free_energy(x)).all()
    assert logit_margin(x).tolist() == [largest, 0]


@given(logits())
def test_entropy_margin_and_confidence_rank_two_classes_alike(x):
    p = softmax(x[:, :1] * [[1, 0]])
    order = np.argsort(margin(p), kind="stable")
    assert np.all(np.diff(entropy(p)[order]) <= 1e-12)
    assert np.all(np.diff(least_confidence(p)[order]) <= 1e-12)


@given(logits())
def test_scores_are_within_their_limits(x):
    p = softmax(x)
    n_classes = x.shape[1]
    assert np.all((margin(p) >= 0) & (margin(p) <= 1 + 1e-12))
    assert np.all((entropy(p) >= 0) & (entropy(p) <= log(n_classes) + 1e-12))
    assert np.all(least_confidence(p) <= 1 - 1 / n_classes + 1e-12)
    assert np.all(free_energy(x) <= -x.max(axis=1))


def explicit_gradients(p, z):
    """p - onehot(predicted), times z, written out."""
    g = np.zeros((*p.shape, z.shape[1]))
    for a in range(len(p)):
        for c in range(p.shape[1]):
            g[a, c] = (p[a, c] - (c == p[a].argmax())) * z[a]
    return g.reshape(len(p), -1)


@given(logits(), st.integers(1, 4), st.integers(0, 99))
def test_gradient_factors_are_the_gradient_of_the_cross_entropy(x, width, seed):
    p, z = softmax(x), np.random.default_rng(seed).normal(size=(len(x), width))
    q, same = gradient_factors(p, z)
    built = (q[:, :, None] * z[:, None]).reshape(len(x), -1)
    assert built == pytest.approx(explicit_gradients(p, z), abs=1e-14)
    assert same is z
    norms = np.linalg.norm(explicit_gradients(p, z), axis=1)
    assert gradient_norm((q, z)) == pytest.approx(norms, abs=1e-14)


@given(logits(), st.integers(0, 99))
def test_expected_gradient_length_is_the_sum_over_classes(x, seed):
    p, z = softmax(x), np.random.default_rng(seed).normal(size=(len(x), 3))
    expected = [
        sum(
            p[a, y] * np.linalg.norm(np.outer(p[a] - np.eye(p.shape[1])[y], z[a]))
            for y in range(p.shape[1])
        )
        for a in range(len(p))
    ]
    assert expected_gradient_length(p, z) == pytest.approx(expected, abs=1e-12)


@given(logits(largest=10), st.floats(1.01, 5))
def test_gradients_shrink_as_predictions_become_certain(x, scale):
    norms = [gradient_norm(gradient_factors(softmax(s * x))) for s in (1, scale)]
    assert np.all(norms[1] <= norms[0] + 1e-12)


def test_gradients_of_nearly_certain_predictions_are_not_lost_in_rounding():
    x = np.array([[40.0, 0.0], [80.0, 0.0]], dtype=np.float32)
    small, smaller = gradient_norm(gradient_factors(softmax(x)))
    assert 0 < smaller < small < 1e-16


def test_blocks_change_nothing(monkeypatch):
    x = np.random.default_rng(0).normal(size=(1000, 7)).astype(np.float32)
    whole = margin(softmax(x))
    for elements in (1, 70, 6999, 7001):
        monkeypatch.setattr("mdal.scores._uncertainty._BLOCK_ELEMENTS", elements)
        assert np.array_equal(by_blocks(lambda b: margin(softmax(b)), x), whole)


# The best


@given(
    arrays(
        np.float64,
        st.integers(0, 30),
        elements=st.sampled_from([0.0, 1.0, 2.0, -np.inf, np.inf]),
    ),
    st.data(),
)
def test_top_n_is_a_full_sort_with_ties_by_row(scores, data):
    n = data.draw(st.integers(0, len(scores)))
    slow = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:n]
    assert top_n(scores, n).tolist() == slow


# k-means++


def materialised_kmeans_plus_plus(g, n, rng):
    """The textbook: all distances anew for every pick, on explicit vectors."""
    norms = (g**2).sum(axis=1)
    picked = [int(norms.argmax())]
    while len(picked) < n:
        squared = ((g[:, None] - g[picked]) ** 2).sum(axis=2).min(axis=1)
        picked.append(int(rng.choice(len(g), p=squared / squared.sum())))
    return picked


def probabilities_of_picks(g, n):
    """The exact probability of every sequence of picks."""
    first = int((g**2).sum(axis=1).argmax())
    result = {}
    for rest in permutations(set(range(len(g))) - {first}, n - 1):
        picked, probability = [first], 1.0
        for row in rest:
            squared = ((g[:, None] - g[picked]) ** 2).sum(axis=2).min(axis=1)
            probability *= squared[row] / squared.sum()
            picked.append(row)
        result[tuple(picked)] = probability
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kmeans_plus_plus_draws_by_squared_distance(dtype):
    rng = np.random.default_rng(5)
    p, z = softmax(rng.normal(size=(7, 3)) * 2), rng.normal(size=(7, 2))
    factors = gradient_factors(p.astype(dtype), z.astype(dtype))
    exact = probabilities_of_picks(explicit_gradients(p, z), 4)
    n_runs, generator = 20_000, np.random.RandomState(0)
    seen = Counter(
        tuple(kmeans_plus_plus(factors, 4, generator).tolist()) for _ in range(n_runs)
    )
    assert set(seen) <= set(exact)
    frequent = [picks for picks in exact if exact[picks] * n_runs >= 10]
    observed = [seen[picks] for picks in frequent]
    expected = [exact[picks] * n_runs for picks in frequent]
    observed.append(n_runs - sum(observed))
    expected.append(n_runs - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_kmeans_plus_plus_agrees_with_a_materialised_one():
    """Many picks, so that centres wait for each other; how far the rest then is."""
    rng = np.random.default_rng(0)
    p, z = softmax(3 * rng.normal(size=(300, 4))), np.abs(rng.normal(size=(300, 5)))
    g, factors = explicit_gradients(p, z), gradient_factors(p, z)

    def left(rows):
        return ((g[:, None] - g[rows]) ** 2).sum(axis=2).min(axis=1).sum()

    ours = [left(kmeans_plus_plus(factors, 60, seed)) for seed in range(100)]
    theirs = [
        left(materialised_kmeans_plus_plus(g, 60, np.random.default_rng(seed)))
        for seed in range(100)
    ]
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
    # The same test notices distances that are not squared.
    unsquared = [left(_unsquared(g, 60, seed)) for seed in range(100)]
    assert stats.ks_2samp(unsquared, theirs).pvalue < 1e-6


def _unsquared(g, n, seed):
    rng = np.random.default_rng(seed)
    picked = [int((g**2).sum(axis=1).argmax())]
    while len(picked) < n:
        distances = np.sqrt(((g[:, None] - g[picked]) ** 2).sum(axis=2).min(axis=1))
        picked.append(int(rng.choice(len(g), p=distances / distances.sum())))
    return picked


def test_the_first_pick_is_the_largest():
    g = np.array([[1.0, 0], [0, -3], [3, 0]])
    assert {kmeans_plus_plus(g, 1, seed)[0] for seed in range(5)} == {1}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e18])
def test_copies_of_picked_rows_come_last(dtype, scale):
    rng = np.random.default_rng(0)
    different = rng.normal(size=(20, 100)) + 3
    g = (scale * np.repeat(different, 30, axis=0)).astype(dtype)
    picked = kmeans_plus_plus((g, g[:, :3]), 20, 0)
    assert sorted(picked // 30) == list(range(20))


def test_rows_without_distance_are_drawn_uniformly():
    for rows in (np.zeros((5, 2)), np.ones((5, 2))):
        picks = [tuple(kmeans_plus_plus(rows, 5, seed)) for seed in range(600)]
        assert all(sorted(pick) == list(range(5)) for pick in picks)
        last = np.bincount([pick[-1] for pick in picks], minlength=5)
        if rows.any():  # then the first pick is the first of the largest
            assert last[0] == 0 and stats.chisquare(last[1:]).pvalue > 1e-3
        else:
            assert stats.chisquare(last).pvalue > 1e-3


def test_a_single_array_is_its_own_factor():
    x = np.random.default_rng(0).normal(size=(50, 3))
    assert np.array_equal(kmeans_plus_plus(x, 9, 0), kmeans_plus_plus((x,), 9, 0))


@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 9), st.data())
def test_kmeans_plus_plus_never_repeats(n_rows, width, seed, data):
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, size=(n_rows, width)).astype(np.float32)
    n = data.draw(st.integers(0, n_rows))
    picked = kmeans_plus_plus((x, x), n, seed)
    assert len(picked) == len(set(picked.tolist())) == n
    assert np.array_equal(picked, kmeans_plus_plus((x, x), n, seed))


def test_the_rows_compared_at_a_time_change_no_pick(monkeypatch):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(700, 4)), rng.normal(size=(700, 6))
    whole = kmeans_plus_plus(factors, 100, 0)
    for rows in (1, 64, 699):
        monkeypatch.setattr("mdal.scores._picking._ROWS", rows)
        assert np.array_equal(kmeans_plus_plus(factors, 100, 0), whole)


def test_kmeans_plus_plus_changes_no_input():
    x = np.random.default_rng(0).normal(size=(50, 3)) * 1e8
    x.flags.writeable = False
    kmeans_plus_plus((x, x), 20, 0)


# k-centre


def slow_k_centre(z, n, labelled):
    picked = []
    for _ in range(n):
        centres = [*labelled, *(z[row] for row in picked)] or [np.zeros(z.shape[1])]
        distances = [min(np.linalg.norm(row - c) for c in centres) for row in z]
        distances = [-1 if a in picked else d for a, d in enumerate(distances)]
        picked.append(int(np.argmax(distances)))
    return picked


@given(st.integers(1, 15), st.integers(0, 4), st.integers(0, 999), st.data())
def test_k_centre_takes_the_farthest(n_rows, n_labelled, seed, data):
    rng = np.random.default_rng(seed)
    z, labelled = rng.normal(size=(n_rows, 2)), rng.normal(size=(n_labelled, 2))
    n = data.draw(st.integers(0, n_rows))
    assert k_centre(z, n, labelled).tolist() == slow_k_centre(z, n, labelled)


def test_k_centre_of_points_on_a_line():
    z = [[0.0], [1.0], [2.0], [7.0], [10.0]]
    assert k_centre(z, 3, labelled=[[0.0]]).tolist() == [4, 3, 2]
    assert k_centre(z, 2).tolist() == [4, 0]


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25])
def test_distances_do_not_overflow(scale):
    z = (scale * np.array([[0.0], [3.0], [4.0]])).astype(np.float32)
    assert k_centre(z, 2, labelled=z[:1]).tolist() == [2, 1]
    found = distance_to_labelled(z, z[:1]).astype(np.float64) / scale
    assert found == pytest.approx([0, 3, 4])


def test_copies_are_picked_in_the_order_of_rows():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        z = rng.permutation(np.repeat(rng.normal(size=(5, 9)) + 5, 4, axis=0))
        picked = k_centre(z.astype(dtype), 12)
        assert len(np.unique(z[picked[:5]], axis=0)) == 5
        rest = np.delete(np.arange(20), picked[:5])
        assert picked[5:].tolist() == rest[:7].tolist()


def test_distances_without_labelled_rows_are_to_the_origin():
    assert distance_to_labelled([[3.0, 4.0]]) == [5.0]
    assert distance_to_labelled([[3.0, 4.0]], np.empty((0, 2))) == [5.0]


def test_softmax_is_that_of_scipy():
    x = np.random.default_rng(0).normal(size=(9, 4))
    assert softmax(x) == pytest.approx(special.softmax(x, axis=1))
