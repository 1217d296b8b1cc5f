"""The learner: call forms, rounds, what it never does, and what it tells."""

import datetime
import enum
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import EarlyStopping
from torch.utils.data import TensorDataset

from mdal import CompositeActiveLearner, persistence
from mdal.budget import UniformBudget
from mdal.learner import Allocation, MinusOneIsAClassWarning, StartedAnewWarning
from mdal.learner._allocation import hold_out
from mdal.learner._pool import Pool
from mdal.model_selection import ActivePipeline, DomainScorer, LabelledKFold
from mdal.modules import CompositeClassifier
from mdal.net import CompositeNet
from mdal.objectives import CAL
from mdal.strategies import FewerSamplesWarning, Margin, Mixture, PoolView


def quick_net(**settings):
    return CompositeNet(max_epochs=1, steps_per_epoch=4, module__width=8, **settings)


NETS = {"deep": quick_net(), "shallow": LogisticRegression()}


def learner(net="deep", **settings):
    settings = {"budget_per_round": 12, "random_state": 0, **settings}
    return CompositeActiveLearner(clone(NETS[net]), **settings)


@pytest.fixture(params=NETS)
def net(request):
    return request.param


@pytest.fixture
def three_domains():
    """Features, domains, partial labels and all labels: 60 samples in each domain."""
    rng = np.random.default_rng(0)
    domains = np.repeat(["bay", "fen", "moor"], 60)
    X = rng.normal(size=(180, 4)) + (domains == "moor")[:, None]
    truth = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 1)
    y_mask = np.where(np.arange(180) % 6 == 0, truth, -1)
    return X, domains, y_mask, truth


# How it is called


def test_all_forms_of_fit_are_one(net, three_domains):
    X, domains, y_mask, _ = three_domains
    expected = learner(net).fit(X, domains, y_mask)
    forms = [
        learner(net).fit(X, domains=domains, y_mask=y_mask),
        learner(net).fit(X, y_mask=y_mask, domains=domains),
        learner(net).fit(X, y_mask, domains=domains),
        learner(net).fit(X, y=y_mask, domains=domains),
        learner(net).fit(X, domains.tolist(), y_mask.tolist()),
    ]
    for form in forms:
        assert np.array_equal(form.query(), expected.query())
        assert np.array_equal(form.predict_proba(X), expected.predict_proba(X))


def test_all_marks_of_a_missing_label_are_one(three_domains):
    X, domains, y_mask, _ = three_domains
    expected = learner("shallow").fit(X, domains, y_mask).query()
    missing = y_mask == -1
    text = np.array(["no", "yes", "both", ""], dtype=object)[y_mask]
    text[missing] = None
    for form in (
        np.where(missing, np.nan, y_mask),
        [None if m else v for v, m in zip(y_mask.tolist(), missing, strict=True)],
        pd.Series(y_mask).astype("Int64").mask(missing),
        np.ma.masked_array(np.where(missing, 0, y_mask), mask=missing),
    ):
        assert np.array_equal(
            learner("shallow").fit(X, domains, form).query(), expected
        )
    named = learner("shallow").fit(X, domains, text)
    assert set(named.predict(X)) <= {"no", "yes", "both"}


def test_all_kinds_of_samples_are_one(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    X = X.astype(np.float32)
    expected = learner().fit(X, domains, y_mask)
    memmap = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=X.shape)
    memmap[:] = X
    for form in (
        X.tolist(),
        pd.DataFrame(X),
        sparse.csr_matrix(X),
        sparse.coo_array(X),
        memmap,
        TensorDataset(torch.as_tensor(X)),
    ):
        found = learner().fit(form, domains, y_mask)
        assert np.array_equal(found.query(), expected.query()), type(form)
        assert np.array_equal(found.predict(form), expected.predict(X)), type(form)
        assert found.transform(form) == pytest.approx(expected.transform(X), abs=1e-6)


def test_images_work(three_domains):
    _, domains, y_mask, _ = three_domains
    X = np.random.default_rng(0).uniform(size=(180, 1, 8, 8)).astype(np.float32)
    found = learner().fit(X, domains, y_mask)
    assert found.query().shape == (12,) and found.predict(X).shape == (180,)


class Site(enum.Enum):
    BAY = "bay"
    FEN = "fen"
    MOOR = "moor"


@pytest.mark.parametrize(
    "name",
    [
        lambda d: Site(d),
        lambda d: frozenset(d),
        lambda d: (d, None if d == "fen" else 1),
        lambda d: pd.Timestamp(2020, 1, ord(d[0]) - 96),
        lambda d: ord(d[0]),
    ],
    ids=["enum", "frozenset", "tuple", "time", "number"],
)
def test_domains_may_have_any_hashable_names(net, name, three_domains):
    X, domains, y_mask, _ = three_domains
    plain = learner(net).fit(X, domains, y_mask)
    names = [name(domain) for domain in domains]
    found = learner(net).fit(X, names, y_mask)
    expected = {name(d): n for d, n in plain.allocate_budget().items()}
    assert found.allocate_budget() == expected
    assert np.array_equal(found.query(), plain.query())
    assert found.score(X, names, y_mask) == plain.score(X, domains, y_mask)


def test_times_in_nanoseconds_stay_times(three_domains):
    X, domains, y_mask, _ = three_domains
    days = pd.to_datetime([f"2020-01-0{1 + len(d) % 3}" for d in domains])
    budget = learner("shallow").fit(X, days.to_numpy(), y_mask).allocate_budget()
    assert {type(day) for day in budget} == {datetime.datetime}
    days = days.to_numpy().astype("datetime64[D]")
    budget = learner("shallow").fit(X, days, y_mask).allocate_budget()
    assert {type(day) for day in budget} == {datetime.date}


def test_yes_and_no_are_features_too(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net).fit(X > 0, domains, y_mask)
    assert len(found.query()) == 12
    sparse_X = sparse.csr_matrix(X > 0)
    assert len(learner(net).fit(sparse_X, domains, y_mask).query()) == 12


def test_texts_of_numpy_are_labels(three_domains):
    X, domains, y_mask, _ = three_domains
    texts = np.array([f"class {label}" for label in y_mask], dtype=object)
    texts[y_mask < 0] = None
    new = np.array(texts, dtype=np.dtypes.StringDType(na_object=None))
    found = learner("shallow").fit(X, domains, new)
    assert found.classes_.tolist() == ["class 0", "class 1", "class 2"]


def test_rows_may_come_in_any_collection(three_domains):
    X, domains, y_mask, _ = three_domains
    free = np.flatnonzero(y_mask < 0)
    expected = learner("shallow").fit(X, domains, y_mask, exclude=free[:90]).query()
    mask = np.isin(range(len(X)), free[:90])
    for rows in (set(free[:90].tolist()), iter(free[:90]), mask.astype(object)):
        found = learner("shallow").fit(X, domains, y_mask, exclude=rows)
        assert np.array_equal(found.query(), expected)


def test_a_single_domain_needs_no_name(net, three_domains):
    X, _, y_mask, _ = three_domains
    found = learner(net).fit(X, None, y_mask)
    assert found.allocate_budget() == {0: 12}
    assert found.alpha_.tolist() == [[1]]


def test_minus_one_is_a_class_only_through_y(three_domains):
    X = three_domains[0]
    y = np.where(X[:, 0] > 0, 1, -1)
    with pytest.warns(MinusOneIsAClassWarning, match="-1 is taken for a class"):
        both = learner("shallow").fit(X, y)
    assert both.classes_.tolist() == [-1, 1]
    assert both.score(X, y) == pytest.approx(np.mean(both.predict(X) == y))
    half = np.where(np.arange(180) % 2 == 0, y, np.nan)
    labelled = both.predict(X)[::2] == y[::2]
    assert both.score(X, half) == pytest.approx(labelled.mean())
    with pytest.warns(MinusOneIsAClassWarning) as caught:
        assert learner("shallow").fit(X, half).classes_.tolist() == [-1, 1]
    assert caught[0].filename == __file__
    assert both.score(sparse.csr_matrix(X), y) == pytest.approx(both.score(X, y))
    one = learner("shallow").fit(X, None, y)
    assert one.classes_.tolist() == [1]


def test_minus_one_is_a_class_where_it_is_declared(three_domains):
    X = three_domains[0]
    y = np.where(X[:, 0] > 0, 1, -1)
    found = learner("shallow", classes=[1, -1]).fit(X, y)
    assert found.classes_.tolist() == [-1, 1]
    only_minus_one = np.where(y == -1, -1, np.nan)
    assert (
        learner("shallow", classes=[1, -1]).fit(X, only_minus_one).predict(X)[0] == -1
    )
    assert learner("shallow", classes=[1, 2]).fit(X, y).classes_.tolist() == [1, 2]


def test_grid_searches_understand_minus_one_as_a_class(three_domains):
    X, domains, _, _ = three_domains
    y = np.where(X[:, 0] > 0, 1, -1)
    search = GridSearchCV(
        learner("shallow"),
        {"net__C": [0.1, 1.0]},
        cv=LabelledKFold(3, random_state=0),
        scoring=DomainScorer("samples"),
    )
    with pytest.warns(MinusOneIsAClassWarning):
        found = search.fit(X, y, groups=domains, domains=domains)
    assert found.best_score_ > 0.9  # half of it, if one class did not count
    folds = LabelledKFold(3, random_state=0).split(X, y)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(180))


def test_declared_classes_are_there_from_the_first_round_on(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net, classes=["both", "no", "other", "yes"])
    assert found.fit(X, domains, [None] * 180).classes_.tolist() == [
        *("both", "no", "other", "yes")
    ]
    text = np.array(["no", "yes", "both", ""], dtype=object)[y_mask]
    text[y_mask == -1] = None
    text[text == "both"] = None
    found.fit(X, domains, text)
    proba = found.predict_proba(X)
    assert proba.shape == (180, 4) and not proba[:, [0, 2]].any()
    assert proba.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert set(found.predict(X)) <= {"no", "yes"}
    plain = learner(net).fit(X, domains, text)
    assert np.array_equal(proba[:, [1, 3]], plain.predict_proba(X))
    assert np.array_equal(found.query(), plain.query())
    text[0] = "both"
    assert found.fit(X, domains, text).history_[-1].agreement > 0
    text[1] = "yess"
    with pytest.raises(ValueError, match="'yess' in row 1, which is none of the"):
        found.fit(X, domains, text)


# What it returns


def test_a_query_is_what_the_budget_says(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net).fit(X, domains, y_mask)
    budget = found.allocate_budget()
    rows = found.query()
    assert isinstance(budget, Allocation) and sum(budget.values()) == 12
    assert {d: int((domains[rows] == d).sum()) for d in budget} == budget
    assert len(set(rows.tolist())) == 12 and np.all(y_mask[rows] == -1)
    assert budget == found.budget_
    assert str(budget).splitlines()[-1].split() == ["total", "12"]


def test_asking_again_gives_the_same_answer(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net, random_state=None).fit(X, domains, y_mask)
    state = pickle.dumps(vars(found))
    assert np.array_equal(found.query(), found.query())
    assert found.allocate_budget(7) == found.allocate_budget(7)
    assert pickle.dumps(vars(found)) == state


def test_a_query_may_ask_for_another_number(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net, budget_per_round=None).fit(X, domains, y_mask)
    assert len(found.query(5)) == 5 and sum(found.allocate_budget(5).values()) == 5
    assert len(found.query(0)) == 0 and found.budget_ is None
    for ask in (found.query, found.allocate_budget):
        with pytest.raises(ValueError, match="n is missing"):
            ask()


@pytest.mark.parametrize(
    "allocation", ["optimal", "uniform", "separate", "size", "joint", "error"]
)
def test_every_allocation_works(net, allocation, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net, allocation=allocation).fit(X, domains, y_mask)
    assert len(set(found.query().tolist())) == 12
    budget = found.allocate_budget()
    assert sum(budget.values()) == 12
    assert list(budget) == (
        ["all domains"] if allocation == "joint" else ["bay", "fen", "moor"]
    )


@pytest.mark.parametrize(
    "strategy",
    [
        *("random", "margin", "badge", "coreset", "clue", "cluster_margin", "energy"),
        Mixture(["grads", "random"]),
        lambda view, n, rng: range(n),
    ],
)
def test_every_kind_of_strategy_works(net, strategy, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net, strategy=strategy).fit(X, domains, y_mask)
    rows = found.query()
    assert len(set(rows.tolist())) == 12 and np.all(y_mask[rows] == -1)


def test_margins_are_those_of_the_predictions(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net, strategy="margin", allocation="joint").fit(X, domains, y_mask)
    rows, utilities = found.query(return_utilities=True)
    ordered = np.sort(found.predict_proba(X), axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    free = np.flatnonzero(y_mask == -1)
    assert np.array_equal(np.flatnonzero(~np.isnan(utilities)), free)
    assert utilities[free] == pytest.approx(-margins[free], abs=1e-5)
    assert set(rows) == set(free[np.argsort(-utilities[free], kind="stable")[:12]])


def test_candidates_and_exclusions_are_kept(net, three_domains):
    X, domains, y_mask, _ = three_domains
    excluded = np.arange(100, 180)
    found = learner(net).fit(X, domains, y_mask, exclude=excluded)
    assert found.query().max() < 100
    as_mask = learner(net).fit(X, domains, y_mask, exclude=np.arange(180) >= 100)
    assert np.array_equal(found.query(), as_mask.query())
    rows = found.query(candidates=np.arange(50, 130))
    assert set(rows) <= set(range(50, 100))
    with pytest.warns(FewerSamplesWarning, match="n=12 exceeds the 2 samples"):
        assert sorted(found.query(candidates=[0, 1, 2, 150])) == [1, 2]


# Rounds


def test_the_loop_of_a_person(net, three_domains):
    X, domains, _, truth = three_domains
    y_mask = np.full(180, -1)
    found = learner(net, budget_per_round=30)
    for labels in (30, 60, 90, 120, 150, 180):
        rows = found.fit(X, domains, y_mask).query()
        assert np.all(y_mask[rows] == -1)
        y_mask[rows] = truth[rows]
        assert (y_mask >= 0).sum() == labels
    found.fit(X, domains, y_mask)
    with pytest.warns(FewerSamplesWarning, match="exceeds the 0 samples"):
        assert len(found.query()) == 0
    assert sum(found.allocate_budget().values()) == 0


@pytest.mark.parametrize("first_round", ["random", "coreset"])
def test_the_first_round_needs_no_label(net, first_round, three_domains):
    X, domains, y_mask, truth = three_domains
    cold = learner(net, first_round=first_round).fit(X, domains, np.full(180, -1))
    assert cold.allocate_budget() == {"bay": 4, "fen": 4, "moor": 4}
    rows = cold.query()
    assert np.unique(domains[rows], return_counts=True)[1].tolist() == [4, 4, 4]
    for method in ("predict", "predict_proba", "transform"):
        with pytest.raises(NotFittedError, match="nothing is labelled yet"):
            getattr(cold, method)(X)
    y_mask = np.full(180, -1)
    y_mask[rows] = truth[rows]
    assert cold.fit(X, domains, y_mask).predict(X).shape == (180,)
    cold.fit(X, domains, np.full(180, -1))
    assert not hasattr(cold, "net_") and not hasattr(cold, "alpha_")


def test_a_coreset_first_round_is_spread():
    X = np.repeat(np.arange(4.0), 25)[:, None] * 100 + np.random.default_rng(0).normal(
        size=(100, 1)
    )
    found = learner(first_round="coreset", budget_per_round=4)
    rows = found.fit(X, None, np.full(100, -1)).query()
    assert sorted(rows // 25) == [0, 1, 2, 3]


def test_classes_and_domains_may_come_later(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net).fit(X[:120], domains[:120], np.minimum(y_mask[:120], 1))
    assert found.classes_.tolist() == [0, 1] and len(found.domains_) == 2
    found.fit(X, domains, y_mask)
    assert found.classes_.tolist() == [0, 1, 2] and len(found.domains_) == 3
    assert len(found.query()) == 12 and len(found.history_) == 2
    assert found.history_[-1].by_domain["moor"] > 0
    assert found.history_[-1].accuracy_on_new is not None


def test_a_domain_without_labels_is_served(net, three_domains):
    X, domains, y_mask, _ = three_domains
    y_mask = np.where(domains == "fen", -1, y_mask)
    budget = learner(net).fit(X, domains, y_mask).allocate_budget()
    assert budget["fen"] > 0


def test_a_domain_that_is_used_up_gets_nothing(net, three_domains):
    X, domains, y_mask, truth = three_domains
    y_mask = np.where(domains == "bay", truth, y_mask)
    found = learner(net, allocation="uniform").fit(X, domains, y_mask)
    assert found.allocate_budget() == {"bay": 0, "fen": 6, "moor": 6}
    assert len(found.query()) == 12


def test_one_class_only_works(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net).fit(X, domains, np.where(y_mask >= 0, 3, -1))
    assert set(found.predict(X)) == {3} and len(found.query()) == 12


def test_the_error_budget_trains_on_all_labels_in_the_end(net, three_domains):
    X, domains, y_mask, _ = three_domains
    by_error = learner(net, allocation="error").fit(X, domains, y_mask)
    plain = learner(net).fit(X, domains, y_mask)
    assert np.array_equal(by_error.predict_proba(X), plain.predict_proba(X))
    assert by_error.errors_.shape == (3,) and by_error.errors_.min() >= 0
    few = np.where(np.arange(180) % 60 < 3, y_mask.clip(0), -1)
    assert learner(net, allocation="error").fit(X, domains, few).allocate_budget() == {
        "bay": 4,
        "fen": 4,
        "moor": 4,
    }


def test_groups_of_domains_are_named_by_them(three_domains):
    class Halves(UniformBudget):
        def groups(self, n_domains):
            return np.array([0, 0, 1])

        def _split(self, budget, sizes, spent, room, alpha, errors):
            return np.array([budget // 2, budget - budget // 2])

    X, domains, y_mask, _ = three_domains
    found = learner("shallow", allocation=Halves()).fit(X, domains, y_mask)
    assert found.allocate_budget() == {("bay", "fen"): 6, "moor": 6}
    assert (domains[found.query()] == "moor").sum() == 6


def test_samples_of_another_kind_leave_nothing_behind(three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner().fit(pd.DataFrame(X, columns=list("abcd")), domains, y_mask)
    wide = np.hstack([X, X]).astype(np.float32)
    found.fit(TensorDataset(torch.as_tensor(wide)), domains, y_mask)
    assert found.predict(wide).shape == (180,)
    assert not hasattr(found, "feature_names_in_")
    found.fit(X, domains, np.full(180, -1))
    assert not hasattr(found, "_n_features_out")


def test_warm_starts_go_on(three_domains):
    X, domains, y_mask, truth = three_domains
    warm = learner(warm_start=True).fit(X, domains, y_mask)
    first = warm.net_
    y_more = np.where(np.arange(180) % 5 == 0, truth, y_mask)
    warm.fit(X, domains, y_more)
    assert warm.net_ is not first and warm.net_.n_fits_ == 2
    assert first.n_fits_ == 1
    assert learner().fit(X, domains, y_mask).fit(X, domains, y_more).net_.n_fits_ == 1
    with pytest.warns(StartedAnewWarning, match="classes changed"):
        warm.fit(X, domains, np.where(y_more >= 0, y_more % 2, -1))
    assert warm.net_.n_fits_ == 1
    two = np.where(y_more >= 0, y_more % 2, -1)
    with pytest.warns(StartedAnewWarning, match="the net's parameters changed"):
        warm.set_params(lambda_d=0.5).fit(X, domains, two)
    with pytest.warns(StartedAnewWarning, match="the shape of samples changed"):
        warm.fit(X[:, :2], domains, two)
    assert warm.net_.objective_.lambda_d == 0.5
    with pytest.warns(StartedAnewWarning, match="parameters changed"):
        warm.set_params(net__module__width=9).fit(X[:, :2], domains, two)
    assert warm.net_.module_.encoder[1].out_features == 9
    warm.set_params(net=LogisticRegression()).fit(X, domains, two)


def test_warm_starts_go_on_with_parameters_that_are_objects(three_domains):
    X, domains, y_mask, truth = three_domains
    net = quick_net(callbacks=[EarlyStopping("v_h")])
    warm = CompositeActiveLearner(net, warm_start=True).fit(X, domains, y_mask)
    y_mask[1] = truth[1]
    assert warm.fit(X, domains, y_mask).net_.n_fits_ == 2
    weights = np.full((3, 3), 1 / 3)
    warm = learner(warm_start=True, method=CAL(alpha=weights)).fit(X, domains, y_mask)
    assert warm.fit(X, domains, y_mask).net_.n_fits_ == 2
    warm.method.set_params(lambda_d=0.25)
    with pytest.warns(StartedAnewWarning, match="the net's parameters changed"):
        assert warm.fit(X, domains, y_mask).net_.objective_.lambda_d == 0.25


def test_a_saved_learner_goes_on_from_its_weights(three_domains, tmp_path):
    X, domains, y_mask, truth = three_domains
    warm = learner(warm_start=True, lambda_d=0.5).fit(X, domains, y_mask)
    warm.save(tmp_path / "a")
    other = CompositeActiveLearner.load(tmp_path / "a", X)
    y_mask[1] = truth[1]
    assert other.fit(X, domains, y_mask).net_.n_fits_ == 2


def test_a_warm_start_notices_other_domains_and_numbers_of_classes(three_domains):
    X, domains, y_mask, _ = three_domains
    warm = learner(warm_start=True).fit(X, domains, y_mask)
    with pytest.warns(StartedAnewWarning, match="domains changed") as caught:
        warm.fit(X, np.where(domains == "bay", "cove", domains), y_mask)
    assert caught[0].filename == __file__
    warm = learner(warm_start=True).fit(X, domains, y_mask)
    with pytest.warns(StartedAnewWarning, match="classes changed"):
        warm.set_params(classes=[-5, 0, 1, 2]).fit(X, domains, y_mask)
    assert warm.fit(X, domains, y_mask).net_.n_fits_ == 2


def test_a_fit_that_fails_late_changes_nothing(net, three_domains):
    X, domains, y_mask, _ = three_domains
    rng = np.random.RandomState(0)
    found = learner(net, random_state=rng).fit(X, domains, y_mask)
    before, rows = pickle.dumps(vars(found)), found.query()
    mixed = pd.DataFrame(X, columns=["a", 1, "c", "d"])
    with pytest.raises(TypeError, match="Feature names"):
        found.fit(mixed, domains, y_mask)
    with pytest.raises(ValueError, match="scale X"):
        found.fit(np.full_like(X, 1e300), domains, y_mask)
    with pytest.raises(ValueError, match="Invalid parameter"):
        found.set_params(net__nonsense=1, budget_per_round=3)
    assert pickle.dumps(vars(found)) == before
    assert np.array_equal(found.query(), rows)
    alone = CompositeActiveLearner()
    with pytest.raises(ValueError, match="Invalid parameter"):
        alone.set_params(net__module=3, nonsense=1)
    assert alone.net is None


def test_a_generator_moves_with_every_fit(three_domains):
    X, domains, y_mask, _ = three_domains
    rng = np.random.RandomState(0)
    first = learner("shallow", random_state=rng).fit(X, domains, y_mask)
    second = learner("shallow", random_state=rng).fit(X, domains, y_mask)
    assert first.seeds_ != second.seeds_
    expected = np.random.RandomState(0).randint(2**31 - 1, size=6).tolist()
    assert first.seeds_ + second.seeds_ == expected


def test_blocks_make_no_difference(net, three_domains, monkeypatch):
    X, domains, y_mask, _ = three_domains
    found = learner(net, strategy="entropy").fit(X, domains, y_mask)
    rows, utilities = found.query(return_utilities=True)
    monkeypatch.setattr("mdal.learner._query._BLOCK", 7)
    again, in_blocks = found.query(return_utilities=True)
    assert np.array_equal(rows, again)
    assert np.array_equal(utilities, in_blocks, equal_nan=True)
    free = np.flatnonzero(y_mask == -1)
    ordered = free[np.argsort(-utilities[free], kind="stable")]
    for domain, n in found.allocate_budget().items():
        here = ordered[domains[ordered] == domain]
        assert set(rows[domains[rows] == domain]) == set(here[:n])


def test_random_picks_ask_no_net(net, three_domains, monkeypatch):
    X, domains, y_mask, _ = three_domains
    found = learner(net, strategy="random").fit(X, domains, y_mask)
    rows = found.query()
    monkeypatch.setattr(type(found.net_), "observe", None)
    assert np.array_equal(found.query(), rows)


def test_the_seed_decides_what_is_picked(three_domains):
    X, domains, y_mask, _ = three_domains
    picks = {
        tuple(
            learner("shallow", strategy="random", random_state=seed)
            .fit(X, domains, y_mask)
            .query()
        )
        for seed in range(3)
    }
    assert len(picks) == 3


def test_a_shallow_outlier_score_is_that_of_the_samples_own_domain(three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner("shallow").fit(X, domains, y_mask)
    scores = found.net_.divergence_.transform(X)
    own = [list(found.domains_).index(domain) for domain in domains]
    outlier = found.net_.observe(X, domains).outlier
    assert np.array_equal(outlier, scores[np.arange(180), own])
    assert len(np.unique(own)) == 3


def test_a_learner_of_classifiers_takes_all_kinds_of_samples(three_domains):
    X, domains, y_mask, _ = three_domains
    X = X.astype(np.float32)
    expected = learner("shallow").fit(X, domains, y_mask)
    for form in (TensorDataset(torch.as_tensor(X)), sparse.csr_matrix(X)):
        found = learner("shallow").fit(form, domains, y_mask)
        assert np.array_equal(found.query(), expected.query())
        assert found.predict_proba(form) == pytest.approx(expected.predict_proba(X))
    with pytest.raises(ValueError, match="reshape"):
        learner("shallow").fit(X[:, None], domains, y_mask)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_global_output_settings_change_no_query(net, output, three_domains):
    X, domains, y_mask, _ = three_domains
    expected = learner(net).fit(X, domains, y_mask).query()
    with config_context(transform_output=output):
        found = learner(net).fit(X, domains, y_mask)
        assert np.array_equal(found.query(), expected)


def test_errors_of_domains_by_hand(three_domains):
    X, domains, y_mask, _ = three_domains
    y_mask = np.where((domains == "fen") & (np.arange(180) > 75), -1, y_mask)
    found = learner("shallow", allocation="error").fit(X, domains, y_mask)
    held_out = hold_out(found.pool_, found.seeds_[2])
    assert np.all(y_mask[held_out] >= 0) and not held_out[domains == "fen"].any()
    kept = np.where(held_out, -1, y_mask)
    assert set(kept[kept >= 0]) == set(y_mask[y_mask >= 0])
    blind = learner("shallow").fit(X, domains, kept)
    wrong = blind.predict(X) != y_mask
    expected = [
        wrong[held_out & (domains == d)].mean()
        if (held_out & (domains == d)).any()
        else wrong[held_out].mean()
        for d in found.domains_
    ]
    assert found.errors_ == pytest.approx(expected)


def test_no_class_loses_its_last_label_to_measure_errors():
    labels = np.repeat([0, 1, 2, 3, 4], 2)
    pool = Pool(
        None, (1,), np.array(["a"]), np.zeros(10, int), np.arange(5), labels, None
    )
    for seed in range(20):
        kept = labels[~hold_out(pool, seed)]
        assert set(kept) == set(range(5))


def test_rounds_tell_what_they_have_bought(net, three_domains):
    X, domains, y_mask, truth = three_domains
    found = learner(net).fit(X, domains, y_mask)
    old = found.predict(X)
    rows = found.query()
    y_mask[rows] = truth[rows]
    found.fit(X, domains, y_mask)
    first, last = found.history_
    assert (first.labels, last.labels) == (30, 42)
    assert first.agreement is None and first.change is None
    assert last.agreement == np.mean(old == found.predict(X))
    assert last.accuracy_on_new == np.mean(old[rows] == truth[rows])
    assert last.bound["labelled_error"] == found.bound_.labelled_error
    change = last.bound["divergence"] - first.bound["divergence"]
    assert last.change["divergence"] == pytest.approx(change)
    assert "of the new labels" in str(last) and last.by_domain["bay"] >= 10


def test_a_fit_without_new_labels_is_no_round(net, three_domains):
    X, domains, y_mask, truth = three_domains
    found = learner(net).fit(X, domains, y_mask).fit(X, domains, y_mask)
    assert len(found.history_) == 1 and not found.history_[-1].settled
    y_mask[1] = truth[1]
    assert len(found.fit(X, domains, y_mask).history_) == 2


def test_a_fit_in_the_place_of_a_round_says_what_it_found(net, three_domains):
    X, domains, y_mask, _ = three_domains
    cold = learner(net).fit(X, domains, [-1] * 180).fit(X, domains, [-1] * 180)
    assert len(cold.history_) == 1
    found = learner(net).fit(X, domains, y_mask)
    found.set_params(random_state=5).fit(X, domains, y_mask)
    assert found.history_[-1].bound["divergence"] == found.bound_.divergence
    found.fit(X, np.where(domains == "bay", "cove", domains), y_mask)
    assert list(found.history_[-1].by_domain) == ["cove", "fen", "moor"]
    names = np.array(["no", "yes", "both", None], dtype=object)
    assert len(found.fit(X, domains, names[y_mask]).history_) == 2


def test_other_data_begin_a_new_history(net, three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner(net).fit(X, domains, y_mask)
    for other in (X[:, :2], X[:150], X[:150] + 1):
        found.fit(other, domains[: len(other)], y_mask[: len(other)])
        assert len(found.history_) == 1


# How it is made


def test_the_nets_own_settings_win(three_domains):
    X, domains, y_mask, _ = three_domains
    plain = learner(lambda_d=0.3, method="cal_fa").fit(X, domains, y_mask)
    assert plain.net_.method == "cal_fa" and plain.net_.objective_.lambda_d == 0.3
    own = CompositeActiveLearner(
        quick_net(method="erm", method__lambda_d=0.7, random_state=5),
        lambda_d=0.3,
        random_state=0,
    ).fit(X, domains, y_mask)
    assert own.net_.method == "erm" and own.net_.objective_.lambda_d == 0.7
    assert own.net_.random_state == 5


def test_parameters_of_the_default_net_can_be_set():
    found = CompositeActiveLearner().set_params(net__max_epochs=3, lambda_d=2.0)
    assert found.net.max_epochs == 3 and found.lambda_d == 2.0
    assert clone(found).net.max_epochs == 3
    assert CompositeActiveLearner().net is None
    assert found.set_params(net=None, net__max_epochs=5).net.max_epochs == 5


def test_what_was_given_is_not_trained(net, three_domains):
    X, domains, y_mask, _ = three_domains
    given = clone(NETS[net])
    found = CompositeActiveLearner(given, random_state=0).fit(X, domains, y_mask)
    assert found.net is given
    assert not hasattr(given, "classes_")


def test_a_shallow_net_weighs_domains_by_alpha(three_domains):
    X, domains, y_mask, _ = three_domains
    found = learner("shallow").fit(X, domains, y_mask)
    labelled = y_mask >= 0
    counts = {d: (domains[labelled] == d).sum() for d in found.domains_}
    shares = dict(zip(found.domains_, found.alpha_.mean(axis=0), strict=True))
    weights = np.array([shares[d] / counts[d] for d in domains[labelled]])
    expected = LogisticRegression().fit(
        X[labelled], y_mask[labelled], weights / weights.mean()
    )
    assert found.predict_proba(X) == pytest.approx(expected.predict_proba(X), abs=1e-4)


def test_erm_weighs_domains_the_same_without_torch_too(three_domains):
    X, domains, y_mask, _ = three_domains
    few = np.where((domains == "fen") & (np.arange(180) > 90), -1, y_mask)
    found = learner("shallow", method="erm").fit(X, domains, few)
    assert found.alpha_ == pytest.approx(np.full((3, 3), 1 / 3))
    labelled = few >= 0
    counts = {d: (domains[labelled] == d).sum() for d in found.domains_}
    weights = np.array([1 / counts[d] for d in domains[labelled]])
    expected = LogisticRegression().fit(
        X[labelled], few[labelled], weights / weights.mean()
    )
    assert found.predict_proba(X) == pytest.approx(expected.predict_proba(X), abs=1e-4)
    assert len(found.query()) == 12


@pytest.mark.parametrize("copied", ["pickle", "joblib"])
def test_copies_give_the_same_answers(net, copied, three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    found = learner(net).fit(X, domains, y_mask)
    if copied == "pickle":
        other = pickle.loads(pickle.dumps(found))
    else:
        joblib.dump(found, tmp_path / "learner")
        other = joblib.load(tmp_path / "learner")
    assert np.array_equal(other.query(), found.query())
    assert np.array_equal(other.predict_proba(X), found.predict_proba(X))


def test_a_saved_learner_goes_on(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    found = learner().fit(X, domains, y_mask)
    found.fit(X, domains, y_mask).save(tmp_path / "a")
    found.save(tmp_path / "a")  # again, over the first
    other = CompositeActiveLearner.load(tmp_path / "a", X)
    assert np.array_equal(other.query(), found.query())
    assert np.array_equal(other.predict_proba(X), found.predict_proba(X))
    assert np.array_equal(other.transform(X), found.transform(X))
    assert other.history_ == found.history_ and other.budget_ == found.budget_
    assert str(other.bound_) == str(found.bound_)
    assert other.allocate_budget(30) == found.allocate_budget(30)
    again = other.fit(X, domains, y_mask)
    assert np.array_equal(again.query(), found.query())
    assert len(list((tmp_path / "a").iterdir())) == 2


def test_a_loaded_learner_takes_parameters_as_before(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    learner().fit(X, domains, y_mask).save(tmp_path / "a" / "b")
    other = CompositeActiveLearner.load(tmp_path / "a" / "b", X)
    assert other.net.max_epochs == 1 and other.net.random_state is None
    other.set_params(lambda_d=9.0, method="cal_fa").fit(X, domains, y_mask)
    assert other.net_.objective_.lambda_d == 9.0 and other.net_.method == "cal_fa"
    with pytest.raises(ValueError, match="in the same order"):
        CompositeActiveLearner.load(tmp_path / "a" / "b", X[::-1])
    own = CompositeActiveLearner.load(tmp_path / "a" / "b", net=quick_net(lr=0.5))
    assert own.net.lr == 0.5
    with pytest.raises(ValueError, match="expecting 4 features"):
        CompositeActiveLearner.load(tmp_path / "a" / "b", np.zeros((180, 2)))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        other.save(tmp_path / "file")


def test_samples_are_known_again_after_any_number_of_files(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    learner().fit(X, domains, y_mask).save(tmp_path / "one")
    CompositeActiveLearner.load(tmp_path / "one").save(tmp_path / "two")
    with pytest.raises(ValueError, match="other values than the samples"):
        CompositeActiveLearner.load(tmp_path / "two", X + 1)
    assert len(CompositeActiveLearner.load(tmp_path / "two", X).query()) == 12
    with pytest.raises(ValueError, match="is a file; pass the folder"):
        CompositeActiveLearner.load(tmp_path / "two" / "learner.safetensors")


def test_a_saved_first_round_goes_on(three_domains, tmp_path):
    X, domains, _, _ = three_domains
    cold = CompositeActiveLearner(random_state=0).fit(X, domains, np.full(180, -1))
    cold.save(tmp_path / "a")
    other = CompositeActiveLearner.load(tmp_path / "a", X)
    assert np.array_equal(other.query(), cold.query())
    cold.set_params(net__max_epochs=2).fit(X, domains, np.full(180, -1))
    cold.save(tmp_path / "a")
    assert CompositeActiveLearner.load(tmp_path / "a", X).net.max_epochs == 2


def test_a_classifier_is_trained_again(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    found = learner("shallow", random_state=None).fit(X, domains, y_mask)
    found.save(tmp_path / "a")
    other = CompositeActiveLearner.load(tmp_path / "a", X, net=LogisticRegression())
    assert np.array_equal(other.pool_.labels, found.pool_.labels)
    assert np.array_equal(other.predict_proba(X), found.predict_proba(X))
    assert np.array_equal(other.query(), found.query())
    assert other.history_ == found.history_


def test_a_learner_can_be_read_while_it_is_written(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    found = learner().fit(X, domains, y_mask)
    found.save(tmp_path / "a")
    with ThreadPoolExecutor(1) as executor:
        writing = executor.submit(lambda: [found.save(tmp_path / "a") for _ in "12345"])
        while not writing.done():
            other = CompositeActiveLearner.load(tmp_path / "a", X)
        writing.result()
    assert np.array_equal(other.predict_proba(X), found.predict_proba(X))
    assert len(list((tmp_path / "a").iterdir())) == 2


def test_what_cannot_be_saved_is_named(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    learner("shallow").fit(X, domains, y_mask).save(tmp_path / "a")
    with pytest.raises(ValueError, match="saved without net"):
        CompositeActiveLearner.load(tmp_path / "a", X)
    with pytest.raises(ValueError, match="X is missing"):
        CompositeActiveLearner.load(tmp_path / "a", net=LogisticRegression())
    learner(strategy=Margin()).fit(X, domains, y_mask).save(tmp_path / "b")
    with pytest.raises(ValueError, match="saved without strategy"):
        CompositeActiveLearner.load(tmp_path / "b")
    other = CompositeActiveLearner.load(tmp_path / "b", strategy=Margin())
    assert other.predict(X).shape == (180,)
    with pytest.raises(ValueError, match="loaded without samples"):
        other.query()
    with pytest.raises(ValueError, match="X has 5 samples of shape"):
        CompositeActiveLearner.load(tmp_path / "b", X[:5], strategy=Margin())
    with pytest.raises(FileNotFoundError, match="does not exist"):
        CompositeActiveLearner.load(tmp_path / "c")
    (tmp_path / "b" / "learner.safetensors").write_bytes(b"{}")
    with pytest.raises(ValueError, match="not a file of this library, or damaged"):
        CompositeActiveLearner.load(tmp_path / "b", strategy=Margin())
    learner().fit(X, domains, y_mask).save(tmp_path / "b")  # over the damaged one
    assert CompositeActiveLearner.load(tmp_path / "b").predict(X).shape == (180,)


def test_parts_of_the_net_that_cannot_be_saved_are_named(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    encoder = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    net = quick_net(module__encoder=encoder)
    found = CompositeActiveLearner(net, random_state=0).fit(X, domains, y_mask)
    found.save(tmp_path / "a")
    with pytest.raises(
        ValueError, match=r"pass load\(folder, X, net__module__encoder="
    ):
        CompositeActiveLearner.load(tmp_path / "a", X)
    for others in ({"net__module__encoder": encoder}, {"net": net}):
        other = CompositeActiveLearner.load(tmp_path / "a", X, **others)
        assert np.array_equal(other.predict_proba(X), found.predict_proba(X))
        assert np.array_equal(other.fit(X, domains, y_mask).query(), found.query())
    own = learner(method=CAL(lambda_d=0.5)).fit(X, domains, y_mask)
    own.save(tmp_path / "b")
    with pytest.raises(ValueError, match="saved without method"):
        CompositeActiveLearner.load(tmp_path / "b", X)
    other = CompositeActiveLearner.load(tmp_path / "b", X, method=CAL(lambda_d=0.5))
    assert np.array_equal(other.predict_proba(X), own.predict_proba(X))


def test_a_saved_learner_keeps_exclusions_and_declared_classes(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    found = learner(classes=pd.Index([0, 1, 2, 9])).fit(
        X, domains, y_mask, exclude=np.arange(90)
    )
    found.save(tmp_path / "a")
    other = CompositeActiveLearner.load(tmp_path / "a", X)
    assert np.array_equal(other.query(60), found.query(60))
    assert other.query(50).min() >= 90
    assert other.classes.tolist() == [0, 1, 2, 9]
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[D]").astype(object)
    dated = learner("shallow").fit(X, np.repeat(days, 60), y_mask)
    with pytest.raises(TypeError, match="domains are of type date"):
        dated.save(tmp_path / "b")


def test_a_folder_can_name_no_file_outside(three_domains, tmp_path):
    X, domains, y_mask, _ = three_domains
    found = learner().fit(X, domains, y_mask)
    found.save(tmp_path / "a")
    (tmp_path / "precious").write_text("mine")
    path = tmp_path / "a" / "learner.safetensors"
    arrays, header = persistence.load(path, "learner")
    persistence.save(path, "learner", arrays, {**header, "net": "../precious"})
    with pytest.raises(ValueError, match=r"the net's file is '\.\./precious'"):
        CompositeActiveLearner.load(tmp_path / "a")
    found.save(tmp_path / "a")
    assert (tmp_path / "precious").read_text() == "mine"


REPEATED = """
import numpy as np, sys, torch
from mdal import CompositeActiveLearner
from mdal.net import CompositeNet
rng = np.random.default_rng(0)
X, domains = rng.normal(size=(60, 3)), np.repeat(["a", "b"], 30)
y = np.where(np.arange(60) % 3 == 0, X[:, 0] > 0, -1)
for seed in range(20):
    net = CompositeNet(max_epochs=1, steps_per_epoch=3, module__width=8)
    state = torch.get_rng_state().tolist(), repr(np.random.get_state())
    learner = CompositeActiveLearner(net, budget_per_round=6, random_state=seed)
    learner.fit(X, domains, y)
    sys.stdout.write(learner.predict_proba(X).tobytes().hex())
    sys.stdout.write(str(learner.query().tolist()))
    assert state == (torch.get_rng_state().tolist(), repr(np.random.get_state()))
"""


def test_every_seed_repeats_in_a_fresh_process():
    answers = {
        subprocess.run(
            [sys.executable, "-c", REPEATED], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(answers) == 1 and len(answers.pop()) > 1000


# In scikit-learn's tools


def grid(n_jobs=None, average="samples"):
    return GridSearchCV(
        learner("deep"),
        {"lambda_d": [0.1, 1.0]},
        cv=LabelledKFold(3, random_state=0),
        scoring=DomainScorer(average),
        n_jobs=n_jobs,
    )


def test_grid_searches_give_the_same_scores_in_all_ways(three_domains):
    X, domains, y_mask, _ = three_domains
    with config_context(enable_metadata_routing=True):
        routed = [grid(n_jobs).fit(X, y_mask, domains=domains) for n_jobs in (None, 2)]
    plain = [
        grid(n_jobs).fit(X, y_mask, groups=domains, domains=domains)
        for n_jobs in (None, 2)
    ]
    scores = [g.cv_results_["mean_test_score"] for g in routed + plain]
    for other in scores[1:]:
        assert np.array_equal(scores[0], other)
    assert len(routed[0].best_estimator_.query()) == 12


def test_a_grid_search_does_not_count_missing_labels(three_domains):
    X, domains, y_mask, _ = three_domains
    with config_context(enable_metadata_routing=True):
        found = grid(average="worst").fit(X, y_mask, domains=domains)
    folds = LabelledKFold(3, random_state=0).split(X, y_mask, domains=domains)
    by_hand = []
    for train, test in folds:
        fitted = learner("deep", lambda_d=1.0).fit(
            X[train], domains[train], y_mask[train]
        )
        right = fitted.predict(X[test]) == y_mask[test]
        by_hand.append(
            min(right[domains[test] == d].mean() for d in set(domains[test]))
        )
    assert found.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_learns_and_asks(net, routing, three_domains):
    X, domains, y_mask, _ = three_domains
    direct = learner(net).fit(StandardScaler().fit_transform(X), domains, y_mask)
    with config_context(enable_metadata_routing=routing):
        pipes = [
            ActivePipeline([("scale", StandardScaler()), ("learn", learner(net))])
            for _ in range(3)
        ]
        pipes[0].fit(X, domains, y_mask)
        pipes[1].fit(X, y_mask, domains=domains)
        pipes[2].fit(X, domains=domains, y_mask=y_mask)
        for pipe in pipes:
            assert np.array_equal(pipe.query(), direct.query())
            assert pipe.allocate_budget(9) == direct.allocate_budget(9)
            assert np.array_equal(pipe.predict(X), direct.predict(pipe[0].transform(X)))
            score = pipe.score(X, y_mask, domains=domains)
            assert pipe.score(X, domains, y_mask) == score
            assert score == direct.score(pipe[0].transform(X), y_mask, domains=domains)
        pipe = clone(pipes[0]).set_params(learn__budget_per_round=5)
        assert len(pipe.fit(X, domains, y_mask, exclude=[0, 1]).query()) == 5


@pytest.mark.parametrize("routing", [False, True])
def test_a_grid_search_looks_into_a_pipeline(routing, three_domains):
    X, domains, y_mask, _ = three_domains
    X = pd.DataFrame(X, columns=list("abcd"))
    pipe = ActivePipeline([("scale", StandardScaler()), ("learn", learner())])
    given = {"domains": domains} | ({} if routing else {"groups": domains})
    scores = []
    with config_context(enable_metadata_routing=routing):
        for n_jobs in (None, 2):
            search = GridSearchCV(
                pipe,
                {"learn__lambda_d": [0.1, 1.0]},
                cv=LabelledKFold(3, random_state=0),
                scoring=DomainScorer("samples"),
                n_jobs=n_jobs,
            ).fit(X, y_mask, **given)
            scores.append(search.cv_results_["mean_test_score"].tolist())
            assert len(search.best_estimator_.query()) == 12
    assert scores[0] == scores[1]
    folds = LabelledKFold(3, random_state=0).split(X, y_mask, domains=domains)
    by_hand = []
    for train, test in folds:
        scaler = StandardScaler().fit(X.iloc[train])
        fitted = learner(lambda_d=0.1).fit(
            scaler.transform(X.iloc[train]), domains[train], y_mask[train]
        )
        predicted = fitted.predict(scaler.transform(X.iloc[test]))
        by_hand.append(np.mean(predicted == y_mask[test]))
    assert scores[0][0] == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_transforms_what_it_has_learned(routing, three_domains):
    X, domains, y_mask, _ = three_domains
    with config_context(enable_metadata_routing=routing):
        pipe = ActivePipeline([("scale", StandardScaler()), ("learn", learner())])
        embedding = pipe.fit_transform(X, domains, y_mask)
        assert np.array_equal(embedding, pipe.transform(X))
        assert np.array_equal(
            embedding, clone(pipe).fit_transform(X, y_mask, domains=domains)
        )
        assert np.array_equal(pipe.predict(X, domains), pipe.predict(X))
        best = pipe.predict_proba(X, domains).argmax(axis=1)
        assert np.array_equal(pipe[-1].classes_[best], pipe.predict(X))


def test_a_pipeline_that_cannot_be_fitted_stays_as_it_was(three_domains):
    X, domains, y_mask, _ = three_domains
    inside = make_pipeline(StandardScaler(), "passthrough")
    pipe = ActivePipeline([("a", inside), ("b", None), ("learn", learner("shallow"))])
    pipe.fit(X, domains, y_mask)
    mean, rows = inside[0].mean_, pipe.query()
    with pytest.raises(ValueError, match="y_mask has 5 values"):
        pipe.fit(X + 7, domains, y_mask[:5])
    assert inside[0].mean_ is mean and np.array_equal(pipe.query(), rows)
    with pytest.raises(TypeError, match="the last step is LogisticRegression"):
        ActivePipeline([("a", LogisticRegression())]).fit(X, domains, y_mask)


def test_the_score_is_a_mean_over_domains_of_labelled_samples(net, three_domains):
    X, domains, y_mask, truth = three_domains
    found = learner(net).fit(X, domains, y_mask)
    right = found.predict(X) == truth
    by_domain = np.mean([right[domains == d].mean() for d in found.domains_])
    assert found.score(X, domains, truth) == pytest.approx(by_domain)
    assert found.score(X, truth, domains=domains) == pytest.approx(by_domain)
    labelled = y_mask >= 0
    assert found.score(X, y_mask) == pytest.approx(right[labelled].mean())
    weights = np.random.default_rng(0).uniform(size=180)
    weighted = np.mean(
        [
            np.average(right[domains == d], weights=weights[domains == d])
            for d in found.domains_
        ]
    )
    score = found.score(X, domains, truth, sample_weight=weights)
    assert score == pytest.approx(weighted) and score != pytest.approx(by_domain)


def test_a_score_by_y_mask_never_counts_minus_one(three_domains):
    X, domains, _, _ = three_domains
    y = np.where(X[:, 0] > 0, 1, -1)
    found = learner("shallow", classes=[-1, 1]).fit(X, y, domains=domains)
    right = found.predict(X)[y == 1] == 1
    assert found.score(X, None, y) == pytest.approx(right.mean())
    scorer = DomainScorer("samples")
    assert scorer.score(found, X, y_mask=y) == pytest.approx(right.mean())


def test_an_embedding_comes_with_every_form_of_fit(three_domains):
    X, domains, y_mask, _ = three_domains
    embedding = learner().fit_transform(X, domains, y_mask)
    assert np.array_equal(
        embedding, learner().fit_transform(X, y_mask, domains=domains)
    )
    assert embedding.shape == (180, 100)


def test_the_loop_of_the_documentation_runs_as_it_is_written():
    X, truth = load_digits(return_X_y=True)
    domains = np.where(np.arange(len(X)) % 3 == 0, "clear", "faint")
    X = np.where((domains == "clear")[:, None], X / 16, X / 32 + 0.2)
    y_mask, rounds = np.full(len(X), -1), 2

    def people_label(rows):
        return truth[rows]

    learner = CompositeActiveLearner(strategy="grads", budget_per_round=150)
    for _ in range(rounds):
        learner.fit(X, domains, y_mask)
        learner.allocate_budget()
        rows = learner.query()
        y_mask[rows] = people_label(rows)

    assert (y_mask >= 0).sum() == 300
    assert np.array_equal(y_mask[y_mask >= 0], truth[y_mask >= 0])
    assert learner.history_[-1].labels == 150
    assert learner.score(X, domains, truth) > 0.75


def test_views_are_built_as_strategies_expect(three_domains):
    X, domains, y_mask, _ = three_domains
    seen = []

    def look(view, n, rng):
        seen.append(view)
        return range(n)

    found = learner(strategy=look, allocation="joint").fit(X, domains, y_mask)
    found.query()
    (view,) = seen
    said = found.net_.observe(X, domains)
    free = y_mask == -1
    assert isinstance(view, PoolView)
    assert view.logits == pytest.approx(said.logits[free], abs=1e-5)
    assert view.outlier == pytest.approx(said.outlier[free], abs=1e-5)
    assert view.labelled_embedding == pytest.approx(said.penultimate[~free], abs=1e-5)
    assert np.array_equal(view.labels, y_mask[~free])


def test_no_warning_is_given_without_reason(net, three_domains):
    X, domains, y_mask, _ = three_domains
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner(net).fit(X, domains, y_mask).query()


class OwnClassifier(CompositeClassifier):
    """A network of the user's."""


class Pixels(torch.nn.Module):
    """An encoder of the user's."""

    n_features = 4

    def forward(self, x):
        return x.flatten(1)[:, :4]


@pytest.mark.parametrize(
    ("shape", "settings", "expected"),
    [
        ((1, 6, 6), {}, "cal_consistency"),
        ((6, 6), {}, "cal_consistency"),
        ((6,), {}, "cal"),
        ((6, 6), {"net__module__encoder": Pixels()}, "cal"),
        ((6, 6), {"net__module__encoder": None}, "cal_consistency"),
        ((6, 6), {"net__module": CompositeClassifier}, "cal_consistency"),
        ((6, 6), {"net__module": OwnClassifier}, "cal"),
        ((1, 2, 6, 6), {"net__module__encoder": Pixels()}, "cal"),
        ((6, 6), {"net__method__complexity": "mean"}, "cal"),
        ((6, 6), {"method": "cal"}, "cal"),
        ((6, 6), {"net__method": "erm", "allocation": "separate"}, "erm"),
    ],
)
def test_the_method_suits_the_samples_unless_it_is_given(shape, settings, expected):
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(24, *shape)).astype("f"), np.repeat([0, 1], 12)
    y_mask = np.where(np.arange(24) % 3 == 0, np.arange(24) % 2, -1)
    made = CompositeActiveLearner(quick_net(), lambda_d=0.25, random_state=0)
    made.set_params(**settings).fit(X, domains, y_mask)
    assert made.net_.method == expected
    if expected.startswith("cal"):
        objective = made.net_.objective_
        assert getattr(objective, "base", objective).lambda_d == 0.25
    assert made.get_params()["method"] == settings.get("method", "auto")
    assert len(made.query(4)) == 4


def test_samples_of_four_dimensions_are_told_to_bring_an_encoder():
    X = np.zeros((8, 1, 2, 6, 6), dtype="f")
    y_mask = np.where(np.arange(8) < 4, np.arange(8) % 2, -1)
    with pytest.raises(ValueError, match="pass an encoder of your own"):
        CompositeActiveLearner(quick_net()).fit(X, np.repeat([0, 1], 4), y_mask)
