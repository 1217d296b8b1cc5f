"""Wrong input for scores, views and strategies is named, and changes nothing."""

import pickle

import numpy as np
import pandas as pd
import pytest

from mdal.scores import (
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
from mdal.strategies import (
    BADGE,
    CLUE,
    EADA,
    ClusterMargin,
    CoreSet,
    Energy,
    GraDS,
    Margin,
    Mixture,
    PoolView,
    Random,
    ScoreStrategy,
    get_strategy,
    select_streamed,
)

nan, inf = float("nan"), float("inf")
good = np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.6]])
three = np.ones((3, 4))
p = softmax(good)

WRONG = {
    # scores
    "NaN in logits": (lambda: softmax([[nan, 1.0]]), ValueError, "logits contains NaN"),
    "infinite logits": (lambda: free_energy([[inf, 1.0]]), ValueError, "infinity"),
    "logits of one dimension": (lambda: softmax([1.0, 2.0]), ValueError, "shape"),
    "logits of three dimensions": (
        lambda: logit_margin(np.zeros((2, 2, 2))),
        ValueError,
        "shape",
    ),
    "softmax without classes": (
        lambda: softmax(np.zeros((2, 0))),
        ValueError,
        "no column",
    ),
    "logits without classes": (
        lambda: logit_margin(np.zeros((2, 0))),
        ValueError,
        "no column",
    ),
    "logits as text": (lambda: softmax([["a", "b"]]), TypeError, "logits holds"),
    "ragged logits": (lambda: softmax([[1.0], [1.0, 2.0]]), ValueError, "ragged"),
    "complex logits": (lambda: softmax([[1j, 1.0]]), TypeError, "complex"),
    "boolean logits": (lambda: softmax([[True, False]]), TypeError, "bool"),
    "temperature of zero": (lambda: softmax(good, 0), ValueError, "temperature=0"),
    "negative temperature": (lambda: softmax(good, -1.0), ValueError, "=-1.0"),
    "temperature NaN": (lambda: softmax(good, nan), ValueError, "temperature=nan"),
    "temperature as text": (lambda: softmax(good, "1"), TypeError, "temperature='1'"),
    "logits for probabilities": (
        lambda: margin(good),
        ValueError,
        "row 1 .* sums to 2",
    ),
    "rows that sum to 2": (lambda: entropy([[1.0, 1.0]]), ValueError, "row 0 .* to 2"),
    "negative probabilities": (
        lambda: least_confidence([[-0.5, 1.5]]),
        ValueError,
        "contains -0.5",
    ),
    "rows that sum to a little more": (
        lambda: entropy([[1.004, 0.0]]),
        ValueError,
        "row 0 .* 1.004",
    ),
    "probabilities NaN": (lambda: margin([[nan, 1.0]]), ValueError, "probabilities"),
    "probabilities without classes": (
        lambda: entropy(np.zeros((2, 0))),
        ValueError,
        "no column",
    ),
    "embedding too short": (
        lambda: gradient_factors(p, three[:2]),
        ValueError,
        "embedding has 2 rows for 3 samples",
    ),
    "embedding of one dimension": (
        lambda: expected_gradient_length(p, [1.0, 1.0, 1.0]),
        ValueError,
        "embedding has shape",
    ),
    "no factors": (lambda: gradient_norm(()), ValueError, "factors is empty"),
    "factors of different lengths": (
        lambda: kmeans_plus_plus((good, three[:2]), 1),
        ValueError,
        r"factors\[1\] has 2 rows",
    ),
    "factors NaN": (lambda: kmeans_plus_plus(nan * good, 1), ValueError, "NaN"),
    # picks
    "negative n": (lambda: top_n([1.0], -1), ValueError, "n=-1"),
    "fractional n": (lambda: top_n([1.0, 2.0], 1.5), ValueError, "n=1.5"),
    "n above the rows": (lambda: top_n([1.0], 2), ValueError, "n=2 exceeds the 1 rows"),
    "n as text": (lambda: k_centre(good, "2"), TypeError, "n='2'"),
    "n true": (lambda: kmeans_plus_plus(good, True), TypeError, "n=True"),
    "scores NaN": (lambda: top_n([1.0, nan], 1), ValueError, "scores contains NaN"),
    "scores of two dimensions": (lambda: top_n(good, 1), ValueError, "shape"),
    "scores as text": (lambda: top_n(["a"], 1), ValueError, "one number"),
    "labelled of another width": (
        lambda: k_centre(good, 1, three),
        ValueError,
        "labelled has 4 columns",
    ),
    "labelled NaN": (
        lambda: distance_to_labelled(good, [[nan, 0.0]]),
        ValueError,
        "labelled contains NaN",
    ),
    "seed as text": (
        lambda: kmeans_plus_plus(good, 1, "a"),
        ValueError,
        "cannot be used to seed",
    ),
    # views
    "view of NaN": (lambda: PoolView([[nan, 0.0]]), ValueError, "logits contains NaN"),
    "view of a vector": (lambda: PoolView([1.0, 2.0]), ValueError, "logits has shape"),
    "view without classes": (
        lambda: PoolView(np.zeros((3, 0))),
        ValueError,
        "no column",
    ),
    "embedding infinite": (
        lambda: PoolView(good, [[inf], [0.0], [0.0]]),
        ValueError,
        "embedding contains",
    ),
    "masked embedding": (
        lambda: PoolView(good, np.ma.masked_array(three, mask=three > 0)),
        ValueError,
        "embedding has masked values",
    ),
    "whole numbers of other samples": (
        lambda: PoolView(good, [[1, 2]]),
        ValueError,
        "embedding has 1 rows for 3 samples",
    ),
    "embedding of other samples": (
        lambda: PoolView(good, three[:2]),
        ValueError,
        "embedding has 2 rows for 3 samples",
    ),
    "outlier too long": (
        lambda: PoolView(good, outlier=[0.5] * 4),
        ValueError,
        "outlier has shape",
    ),
    "outlier above 1": (
        lambda: PoolView(good, outlier=[0.5, 2.0, 0.5]),
        ValueError,
        "outlier spans",
    ),
    "outlier NaN": (
        lambda: PoolView(good, outlier=[0.5, nan, 0.5]),
        ValueError,
        "outlier contains NaN",
    ),
    "domains too short": (
        lambda: PoolView(good, domains=["a"]),
        ValueError,
        "domains has 1 values for 3 samples",
    ),
    "domain missing": (
        lambda: PoolView(good, domains=["a", None, "b"]),
        ValueError,
        "no value in row 1",
    ),
    "labelled embedding of another width": (
        lambda: PoolView(good, three, labelled_embedding=good),
        ValueError,
        "labelled_embedding has 2 columns",
    ),
    "labels without embeddings": (
        lambda: PoolView(good, labels=[0]),
        ValueError,
        "without labelled_embedding",
    ),
    "labels too long": (
        lambda: PoolView(good, labelled_embedding=good, labels=[0]),
        ValueError,
        "labels has shape",
    ),
    "labels outside": (
        lambda: PoolView(good, labelled_embedding=good, labels=[0, 1, 2]),
        ValueError,
        "labels contains 2",
    ),
    "available as rows": (
        lambda: PoolView(good, available=[0, 1, 1]),
        TypeError,
        "available holds int",
    ),
    "available too short": (
        lambda: PoolView(good, available=[True]),
        ValueError,
        "available has shape",
    ),
    "view of what are no probabilities": (
        lambda: PoolView.from_probabilities(good),
        ValueError,
        "sums to 2",
    ),
    # strategies
    "select a negative number": (
        lambda: Margin().select(good, -1),
        ValueError,
        "n=-1",
    ),
    "select a fraction": (lambda: BADGE().select(good, 0.5), ValueError, "n=0.5"),
    "select text": (lambda: Random().select(good, "5"), TypeError, "n='5'"),
    "select true": (lambda: Random().select(good, True), TypeError, "n=True"),
    "select NaN": (lambda: Random().select(good, nan), ValueError, "n=nan"),
    "select from NaN": (lambda: Margin().select([[nan, 0.0]], 1), ValueError, "NaN"),
    "select from a vector": (
        lambda: Margin().select([1.0, 2.0], 1),
        ValueError,
        "Expected 2D array",
    ),
    "select with a seed as text": (
        lambda: Random().select(good, 1, "a"),
        ValueError,
        "cannot be used to seed",
    ),
    "unknown name": (lambda: get_strategy("best"), ValueError, "strategy='best'"),
    "a class": (lambda: get_strategy(Margin), TypeError, "class Margin"),
    "no strategy": (lambda: get_strategy(3), TypeError, "strategy=3"),
    "GraDS at zero": (
        lambda: GraDS(temperature=0.0).select(good, 1),
        ValueError,
        "temperature=0.0",
    ),
    "CLUE at less": (
        lambda: CLUE(temperature=-1).select(good, 1),
        ValueError,
        "temperature=-1",
    ),
    "CLUE on no rows": (
        lambda: CLUE(max_rows=0).select(good, 1),
        ValueError,
        "max_rows=0",
    ),
    "share above 1": (lambda: Energy(1.5).select(good, 1), ValueError, "share=1.5"),
    "part below 0": (lambda: EADA(-0.1).select(good, 1), ValueError, "kept=-0.1"),
    "factor below 1": (
        lambda: ClusterMargin(0.5).select(good, 1),
        ValueError,
        "factor=0.5",
    ),
    "clusters of nobody": (
        lambda: ClusterMargin(cluster_size=0).fit(good),
        ValueError,
        "cluster_size=0",
    ),
    "nobody to cluster": (
        lambda: ClusterMargin(max_clustered=1.5).fit(good),
        ValueError,
        "max_clustered=1.5",
    ),
    "fitted on other embeddings": (
        lambda: ClusterMargin().fit(good).select(PoolView(good, three), 1),
        ValueError,
        "4 columns",
    ),
    "clusters of nothing": (
        lambda: ClusterMargin().fit(PoolView(np.empty((0, 2)))),
        ValueError,
        "no sample to cluster",
    ),
    "a table for a strategy": (
        lambda: get_strategy(pd.DataFrame()),
        TypeError,
        "of type DataFrame",
    ),
    "no mixture": (
        lambda: Mixture(None).select(good, 1),
        ValueError,
        "strategies=None",
    ),
    "a mixture of nothing": (
        lambda: Mixture([]).select(good, 1),
        ValueError,
        "strategies=",
    ),
    "a mixture of letters": (
        lambda: Mixture("margin").select(good, 1),
        ValueError,
        "strategies='margin'",
    ),
    "too few quotas": (
        lambda: Mixture(["margin", "random"], [1]).select(good, 1),
        ValueError,
        "quotas has shape",
    ),
    "negative quota": (
        lambda: Mixture(["margin", "random"], [1, -1]).select(good, 1),
        ValueError,
        "quotas contains -1",
    ),
    "quotas of nothing": (
        lambda: Mixture(["margin", "random"], [0, 0]).select(good, 1),
        ValueError,
        "quotas",
    ),
    # streams
    "no block": (lambda: select_streamed("margin", [], 1), ValueError, "no block"),
    "one array for blocks": (
        lambda: select_streamed("margin", good, 1),
        TypeError,
        "blocks is one ndarray",
    ),
    "a domain that is not there": (
        lambda: select_streamed(
            "margin", [PoolView(good, domains=[1, 2, 2])], {"1": 1}
        ),
        ValueError,
        r"domain '1', .* are \[1, 2\]",
    ),
    "blocks of different names": (
        lambda: select_streamed(
            "margin",
            [PoolView(good, domains=[1, 2, 2]), PoolView(good, domains=list("abc"))],
            {1: 1},
        ),
        TypeError,
        "domains is text",
    ),
    "nothing kept": (
        lambda: select_streamed("margin", [good], 1, keep=0),
        ValueError,
        "keep=0",
    ),
    "negative threshold": (
        lambda: select_streamed("margin", [good], 1, threshold=-1),
        ValueError,
        "threshold=-1",
    ),
    "streams without domains": (
        lambda: select_streamed("margin", [good], {"a": 1}),
        ValueError,
        "no domains",
    ),
    "negative number for a domain": (
        lambda: select_streamed("margin", [good], {"a": -1}),
        ValueError,
        r"n\['a'\]=-1",
    ),
    "blocks of different kinds": (
        lambda: select_streamed("margin", [PoolView(good, three), good], 1),
        ValueError,
        "embedding is missing in some blocks",
    ),
    "blocks of different classes": (
        lambda: select_streamed("margin", [good, three], 1),
        ValueError,
        "logits has 4 columns",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case):
    call, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("wrong", [[[nan, 1.0]] * 3, [1.0, 2.0], [["a", "b"]]])
def test_a_failed_fit_or_selection_leaves_a_strategy_as_it_was(wrong):
    for strategy in (Margin(), ClusterMargin(random_state=0), Mixture()):
        strategy.fit(good)
        before = pickle.dumps(vars(strategy))
        for call in (strategy.fit, lambda X: strategy.select(X, 1)):  # noqa: B023
            with pytest.raises(ValueError):
                call(wrong)
        assert pickle.dumps(vars(strategy)) == before


def test_a_failed_clustering_leaves_the_clusters_as_they_were():
    strategy = ClusterMargin(random_state=0).fit(good)
    strategy.set_params(cluster_size=-1)
    before = pickle.dumps(vars(strategy))
    with pytest.raises(ValueError, match="cluster_size=-1"):
        strategy.fit(three)
    assert pickle.dumps(vars(strategy)) == before


@pytest.mark.parametrize(
    ("utilities", "message"),
    [
        ([1.0, 2.0], "shape .* for 3 samples"),
        ([[1.0]] * 3, "shape"),
        ([nan, 1.0, 2.0], "NaN"),
        (["a", "b", "c"], "number"),
        (3.0, "shape"),
    ],
)
def test_wrong_utilities_of_ones_own_are_named(utilities, message):
    class Own(ScoreStrategy):
        def utilities(self, view):
            return utilities

    with pytest.raises(ValueError, match=message):
        Own().select(good, 1)


@pytest.mark.parametrize(
    "form",
    [good.tolist(), pd.DataFrame(good), good.astype(np.float16), good.astype(object)],
    ids=["list", "DataFrame", "float16", "object"],
)
def test_other_forms_of_arrays_are_legal(form):
    assert Margin().select(form, 3).tolist() == [2, 0, 1]
    assert CoreSet().select(PoolView(form), 1).tolist() == [1]


def test_a_screen_of_ones_own_is_checked():
    class Own(CoreSet):
        def screen(self, view, luck):
            return luck

    with pytest.raises(ValueError, match="screen returned an array of shape"):
        select_streamed(Own(), [good], 1)


def test_the_order_of_an_array_in_memory_changes_no_pick():
    logits = np.asfortranarray(
        np.tile(np.linspace(0, 1, 17, dtype=np.float32), (12, 1))
    )
    blocks = [logits[:5], logits[5:6], logits[6:]]
    for name in ("margin", "entropy", "least_confidence", "egl"):
        rows = get_strategy(name).select(PoolView(logits), 3)
        assert rows.tolist() == [0, 1, 2]
        assert select_streamed(name, blocks, 3).tolist() == [0, 1, 2]


def test_nothing_is_a_legal_pool():
    nothing = PoolView(np.empty((0, 2)), np.empty((0, 3)), available=[])
    assert BADGE().transform(nothing).shape == (0, 6)
    assert Margin().select(np.empty((0, 2)), 0).tolist() == []


def test_tiny_outlier_scores_still_compare():
    view = PoolView(good.astype(np.float32), outlier=[1e-60, 2e-60, 1e-50])
    assert GraDS().select(view, 1, 0).tolist() == [2]


def test_whole_numbers_are_legal_logits():
    assert Margin().select([[3, 0], [1, 0]], 1).tolist() == [1]
    assert margin([[1, 0]]).tolist() == [1.0]
