"""SVM-Text: the augmented features, the classifier, and the learner around it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from mdal import CompositeActiveLearner
from mdal.strategies import Energy
from mdal.svm_text import SVMText, augmented


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 99))
def test_a_product_counts_once_more_within_a_domain(n, width, n_domains, seed):
    # <phi(x, d), phi(x', d')> = <x, x'> (1 + [d = d'])
    rng = np.random.default_rng(seed)
    X, domains = rng.normal(size=(n, width)), rng.integers(-1, n_domains, size=n)
    phi = augmented(X, domains, n_domains)
    assert phi.shape == (n, width * (1 + n_domains))
    same = (domains[:, None] == domains) & (domains >= 0)
    np.testing.assert_allclose((phi @ phi.T).toarray(), (X @ X.T) * (1 + same))


def test_sparse_and_dense_samples_are_the_same():
    X = np.array([[0.0, 2.0], [3.0, 0.0]])
    domains = np.array([1, 0])
    whole = augmented(X, domains, 2).toarray()
    assert whole.tolist() == [[0, 2, 0, 0, 0, 2], [3, 0, 3, 0, 0, 0]]
    assert np.array_equal(augmented(csr_array(X), domains, 2).toarray(), whole)


@pytest.fixture
def opposed():
    """Two domains that agree on one feature and contradict each other on another."""
    rng = np.random.default_rng(0)
    domains = rng.choice(["a", "b"], 300)
    X = rng.normal(size=(300, 4))
    sign = np.where(domains == "a", 1, -1)
    y = np.select([X[:, 0] > 0.7, sign * X[:, 1] > 0], ["top", "up"], "down")
    return X, y, domains


def test_it_is_the_support_vector_machine_on_augmented_features(opposed):
    X, y, domains = opposed
    ours = SVMText(C=0.3, random_state=0).fit(X, y, domains=domains)
    own = np.hstack([X * (domains == "a")[:, None], X * (domains == "b")[:, None]])
    theirs = LinearSVC(C=0.3, random_state=0).fit(np.hstack([X, own]), y)
    expected = theirs.decision_function(np.hstack([X, own]))
    np.testing.assert_allclose(ours.decision_function(X, domains), expected, atol=1e-3)
    assert np.mean(ours.predict(X, domains) == y) > 0.8
    assert np.mean(ours.predict(X) == y) < 0.7  # what the domains share


def test_an_unknown_domain_has_what_all_share(opposed):
    X, y, domains = opposed
    machine = SVMText(random_state=0).fit(X, y, domains=domains)
    other = machine.decision_function(X, np.full(len(X), "c"))
    assert np.array_equal(other, machine.decision_function(X))


def test_one_class_is_predicted():
    machine = SVMText().fit([[1.0], [2.0]], ["x", "x"], domains=["a", "b"])
    assert machine.predict([[5.0]]).tolist() == ["x"]
    assert machine.decision_function([[5.0]]).shape == (1, 1)


def test_a_pipeline_routes_domains(opposed):
    X, y, domains = opposed
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(MaxAbsScaler(), SVMText(random_state=0))
        pipe.fit(X, y, domains=domains)
        told = pipe.predict(X, domains=domains)
    assert np.mean(told == y) > 0.8


def test_a_learner_tells_it_the_domains(opposed):
    X, y, domains = opposed
    mask = np.where(np.arange(300) < 120, y, None)
    learner = CompositeActiveLearner(
        SVMText(),
        strategy=Energy(share=0.0),
        allocation="joint",
        budget_per_round=10,
        random_state=0,
    ).fit(X, domains, mask)
    alone = SVMText(random_state=0).fit(X[:120], y[:120], domains=domains[:120])
    agree = learner.predict(X, domains) == alone.predict(X, domains)
    assert agree.mean() > 0.99
    values = np.sort(learner.net_.observe(X, domains).logits, axis=1)
    margins = values[:, -1] - values[:, -2]
    free = np.arange(120, 300)
    expected = free[np.argsort(margins[free])[:10]]
    assert sorted(learner.query()) == sorted(expected)
    assert learner.alpha_ is None and learner.bound_ is None
    assert learner.score(X, domains, y) > learner.score(X, None, y)


def test_two_classes_are_not_mixed_up(opposed):
    X, y, domains = opposed
    y = np.where(y == "top", "up", y)
    learner = CompositeActiveLearner(SVMText(), allocation="joint", strategy="margin")
    learner.fit(X, domains, y)
    alone = SVMText().fit(X, y, domains=domains)
    assert np.mean(learner.predict(X, domains) == alone.predict(X, domains)) > 0.99
    assert alone.score(X, y, domains=domains) > 0.8 > alone.score(X, y)


def test_errors_and_agreement_are_measured_with_the_domains(opposed):
    X, y, domains = opposed
    learner = CompositeActiveLearner(
        SVMText(), allocation="error", strategy="margin", random_state=0
    )
    learner.fit(X, domains, np.where(np.arange(300) < 150, y, None))
    last = learner.net_
    learner.fit(X, domains, np.where(np.arange(300) < 200, y, None))
    assert learner.errors_.max() < 0.35  # without domains, every third is wrong
    watched = np.random.RandomState(0).permutation(300)
    told = last.predict_proba(X, domains).argmax(1)
    now = learner.net_.predict_proba(X, domains).argmax(1)
    assert learner.history_[-1].agreement == np.mean((told == now)[watched])
    untold = last.predict_proba(X).argmax(1) == learner.net_.predict_proba(X).argmax(1)
    assert np.mean(untold) != np.mean(told == now)


def test_images_are_flattened_and_rounds_are_compared(opposed):
    X, y, domains = opposed
    learner = CompositeActiveLearner(
        SVMText(), allocation="separate", strategy="margin", random_state=0
    )
    images = X.reshape(-1, 2, 2)
    mask = np.where(np.arange(300) < 60, y, None)
    flat = learner.fit(X, domains, mask).predict(X, domains)
    assert np.array_equal(
        learner.fit(images, domains, mask).predict(images, domains), flat
    )
    learner.fit(images, domains, np.where(np.arange(300) < 90, y, None))
    last = learner.history_[-1]
    assert last.agreement > 0.5 and last.accuracy_on_new > 0.5


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"net": SVMText()}, "SVMText"),
        ({"method": "dann"}, "method='dann'"),
        ({"method": "man"}, "method='man'"),
    ],
)
def test_an_optimal_budget_without_alpha_is_refused_before_training(
    settings, what, opposed
):
    X, y, domains = opposed
    learner = CompositeActiveLearner(**settings)
    for mask in (y, np.full(len(y), None)):
        with pytest.raises(ValueError, match="allocation='optimal' splits by alpha"):
            learner.fit(X, domains, mask)
        with pytest.raises(ValueError, match=what):
            learner.fit(X, domains, mask)
    assert not hasattr(learner, "pool_")
