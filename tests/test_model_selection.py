"""Folds and scores of partly labelled samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score

from mdal.model_selection import (
    DomainScorer,
    DomainsUnknownWarning,
    LabelledKFold,
    domain_accuracy,
)


@st.composite
def partly_labelled(draw):
    n = draw(st.integers(12, 80))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    labels = np.where(rng.uniform(size=n) < 0.6, rng.integers(3, size=n), -1)
    labels[:6] = [0, 0, 0, 1, 1, 7]  # the last class has one sample only
    return labels, rng.choice(["a", "b"], size=n)


@given(partly_labelled(), st.integers(2, 4), st.integers(0, 99))
def test_folds_hold_out_labelled_samples_only(data, n_splits, seed):
    labels, domains = data
    folds = LabelledKFold(n_splits, random_state=seed)
    parts = list(folds.split(labels, labels, domains=domains))
    assert len(parts) == n_splits == folds.get_n_splits(labels, labels, domains)
    tested = np.concatenate([test for _, test in parts])
    several = [c for c in set(labels.tolist()) - {-1} if (labels == c).sum() > 1]
    lonely = [(domains == domain).sum() == 1 for domain in domains]
    expected = np.flatnonzero(np.isin(labels, several) & ~np.array(lonely))
    assert len(set(tested)) == len(tested) and set(tested) <= set(expected)
    if all((labels[domains == domain] == -1).any() for domain in domains):
        assert sorted(tested) == expected.tolist()
    for train, test in parts:
        assert sorted([*train, *test]) == list(range(len(labels)))
        assert set(domains[train]) == set(domains)
        assert set(labels[labels >= 0]) == set(labels[train]) - {-1}


@given(partly_labelled(), st.integers(2, 4))
def test_folds_are_stratified_by_class_and_domain(data, n_splits):
    labels, domains = data
    labels[5] = 0
    parts = list(LabelledKFold(n_splits, random_state=0).split(labels, labels, domains))
    for c in set(labels[labels >= 0].tolist()):
        if (labels == c).sum() > 1:
            counts = [(labels[test] == c).sum() for _, test in parts]
            assert max(counts) - min(counts) <= 1
            for d in ("a", "b"):
                here = [((labels[t] == c) & (domains[t] == d)).sum() for _, t in parts]
                assert max(here) - min(here) <= 1


def test_folds_repeat_with_their_seed_and_take_labels_in_any_form():
    labels = np.resize([0, 1, -1], 30)
    missing = [None if label < 0 else label for label in labels.tolist()]

    def folds(seed, *arguments, **named):
        split = LabelledKFold(3, random_state=seed).split(*arguments, **named)
        return [test.tolist() for _, test in split]

    expected = folds(0, labels, labels)
    assert folds(0, labels, missing) == expected
    assert folds(0, labels, y_mask=labels) == expected
    assert folds(0, labels, y=np.zeros(30), y_mask=labels) == expected
    assert folds(1, labels, labels) != expected
    domains = np.resize(["a", "b"], 30)
    by_domain = folds(0, labels, labels, domains=domains)
    assert folds(0, labels, labels, groups=domains) == by_domain


def test_accuracies_by_hand():
    y, predicted = [0, 0, 1, 1, -1, 1], [0, 0, 1, 0, 0, 1]
    domains = list("aaabbb")
    assert domain_accuracy(y, predicted) == 0.8
    assert domain_accuracy(y, predicted, domains=domains) == (1 + 0.5) / 2
    assert domain_accuracy(y, predicted, domains=domains, average="worst") == 0.5
    assert domain_accuracy(y, predicted, domains=domains, average="samples") == 0.8
    each = domain_accuracy(y, predicted, domains=domains, average=None)
    assert each == {"a": 1.0, "b": 0.5}
    by_weight = {"a": 3, "b": 1, "elsewhere": 9}
    assert domain_accuracy(y, predicted, domains=domains, average=by_weight) == 3.5 / 4
    weighted = domain_accuracy(y, predicted, sample_weight=[1, 1, 1, 4, 9, 1])
    assert weighted == 4 / 8
    assert domain_accuracy(["x", None], ["x", "y"]) == 1


@given(st.integers(0, 999))
def test_with_all_labels_and_one_domain_it_is_the_accuracy(seed):
    y, predicted = np.random.default_rng(seed).integers(3, size=(2, 20))
    for average in ("mean", "worst", "samples"):
        score = domain_accuracy(y, predicted, average=average)
        assert score == pytest.approx(accuracy_score(y, predicted))


def test_a_scorer_is_given_the_domains_by_routing():
    labels = np.resize([0, 0, 1], 60)
    domains = np.where(labels == 1, "hard", "easy")
    zeros = DummyClassifier(strategy="constant", constant=0)
    arguments = zeros, np.zeros((60, 1)), labels
    folds = LabelledKFold(3, random_state=0)
    with config_context(enable_metadata_routing=True):
        routed = {
            average: cross_val_score(
                *arguments,
                cv=folds,
                scoring=DomainScorer(average),
                params={"domains": domains},
            ).mean()
            for average in ("mean", "worst", "samples")
        }
    assert routed == {"mean": 0.5, "worst": 0.0, "samples": pytest.approx(2 / 3)}
    plain = cross_val_score(*arguments, cv=folds, scoring=DomainScorer("worst"))
    assert plain.mean() == pytest.approx(2 / 3)


def test_a_scorer_tells_the_domains_to_those_who_ask():
    class Knowing:
        def predict(self, X, domains=None):
            return np.zeros(len(X)) if domains is None else domains == "b"

    domains = np.array(["a", "b"])
    score = DomainScorer().score(Knowing(), [[0], [0]], [0, 1], domains=domains)
    assert score == 1.0


def test_minus_one_counts_where_it_is_a_class():
    y, predicted = [-1, -1, 1, 1], [-1, 1, 1, 1]
    assert domain_accuracy(y, predicted) == 1.0
    assert domain_accuracy(y, predicted, classes=[-1, 1]) == 0.75
    assert domain_accuracy(y, predicted, classes=[0, 1]) == 1.0
    folds = LabelledKFold(2, random_state=0)
    assert sum(len(test) for _, test in folds.split(y, y)) == 4
    assert sum(len(test) for _, test in folds.split(y, y_mask=y)) == 2


@pytest.mark.parametrize("seed", range(5))
def test_no_fold_holds_out_a_whole_domain(seed):
    domains = np.array(["a"] * 6 + ["b"] * 2 + ["a"] * 4 + ["c"])
    labels = np.array([0, 0, 0, 1, 1, 1, 0, 1, -1, -1, -1, -1, 0])
    for train, test in LabelledKFold(2, random_state=seed).split(
        labels, labels, domains=domains
    ):
        assert set(domains[train]) == {"a", "b", "c"}
        assert sorted([*train, *test]) == list(range(13)) and 12 not in test


def test_folds_know_declared_classes_as_the_learner_does():
    y = np.array([-1, -1, 1, 1, 2, 2])
    folds = LabelledKFold(2, classes=[-1, 1, 2], random_state=0)
    assert sum(len(test) for _, test in folds.split(y, y)) == 6
    folds = LabelledKFold(2, classes=[1, 2], random_state=0)
    assert sum(len(test) for _, test in folds.split(y, y)) == 4
    pair = np.array([-1, -1, 1, 1])
    folds = LabelledKFold(2, classes=[0, 1], random_state=0)
    assert sum(len(test) for _, test in folds.split(pair, pair)) == 2


def test_a_scorer_without_domains_says_what_it_scores():
    class Knowing:
        domains_ = np.array(["a", "b"])

        def predict(self, X):
            return np.ones(len(X))

    with pytest.warns(DomainsUnknownWarning, match="over samples and not the worst"):
        assert DomainScorer("worst").score(Knowing(), [[0], [0]], [0, 1]) == 0.5
    assert DomainScorer("samples").score(Knowing(), [[0], [0]], [0, 1]) == 0.5
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        DomainScorer({"a": 1, "b": 2}).score(Knowing(), [[0], [0]], [0, 1])


def test_text_is_not_compared_with_numbers():
    with pytest.raises(ValueError, match="pass text or numbers for both"):
        domain_accuracy(["1", "0"], [1, 0])
    with pytest.raises(ValueError, match=r"predicted has shape \(2, 2\)"):
        domain_accuracy([1, 0], [[1, 0], [0, 1]])


def test_folds_of_nothing_are_named():
    with pytest.raises(TypeError, match="X is None"):
        next(LabelledKFold(2).split(None, [0, 0, 1, 1]))
