"""What every estimator here must do to be one: scikit-learn's checks, and metadata."""

import pickle
from inspect import isabstract
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import skactiveml.pool as pool
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mdal
from mdal import CompositeActiveLearner
from mdal.bounds import DomainBound
from mdal.budget import _Budget
from mdal.divergence import DomainDivergence
from mdal.model_selection import ActivePipeline, DomainScorer
from mdal.net import CompositeNet
from mdal.objectives import Objective
from mdal.similarity import AdversarialSimilarity, KernelMeanSimilarity
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
    GraDS,
    LeastConfidence,
    Margin,
    Mixture,
    Random,
    SkactivemlStrategy,
)
from mdal.svm_text import SVMText

ESTIMATORS = [
    AdversarialSimilarity(),
    DomainBound(),
    DomainDivergence(),
    KernelMeanSimilarity(),
]


class FirstRows:
    """A strategy that is a function, with the same name in every process."""

    def __call__(self, view, n, rng):
        return range(n)

    def __repr__(self):
        return "first_rows"

    def __eq__(self, other):
        return isinstance(other, FirstRows)

    __hash__ = None


first_rows = FirstRows()


STRATEGIES = [
    BADGE(),
    CLUE(),
    CallableStrategy(first_rows),
    ClusterMargin(),
    CoreSet(),
    EADA(),
    Energy(),
    Entropy(),
    ExpectedGradientLength(),
    GraDS(),
    LeastConfidence(),
    Margin(),
    Mixture(),
    Random(),
    SkactivemlStrategy(pool.UncertaintySampling()),
]


def public_estimators():
    found = [getattr(mdal, name) for name in mdal.__all__]
    modules = [module for module in found if isinstance(module, ModuleType)]
    public = {getattr(module, name) for module in modules for name in module.__all__}
    return {c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)}


def test_every_estimator_is_checked():
    # A budget is a rule and an objective a method: they have parameters and can be
    # cloned, which their tests show, but there is nothing to fit.
    without_data = {
        c for c in public_estimators() if issubclass(c, _Budget | Objective)
    }
    assert not any(hasattr(c, "fit") for c in without_data)
    # A scorer has something to judge and nothing to learn.
    without_data.add(DomainScorer)
    # A pipeline is scikit-learn's, which has tests of its own for it.
    without_data.add(ActivePipeline)
    # A skorch net is no scikit-learn estimator in every detail (it takes its parameters
    # by prefix); test_net shows what holds: clone, pickle, parameters, errors.
    nets = {CompositeNet}
    unfinished = {c for c in public_estimators() if isabstract(c)}
    checked = {type(e) for e in ESTIMATORS + STRATEGIES}
    checked |= {CompositeActiveLearner, SVMText}
    assert checked == (public_estimators() - without_data - nets - unfinished)


@parametrize_with_checks([*ESTIMATORS, *STRATEGIES, SVMText()])
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


@parametrize_with_checks([CompositeActiveLearner()])
@pytest.mark.filterwarnings("ignore::mdal.learner.MinusOneIsAClassWarning")
def test_the_default_learner_is_compatible(estimator, check, monkeypatch):
    # A hundred fits: the same steps as by default, but fewer of them.
    monkeypatch.setitem(CompositeNet.__init__.__kwdefaults__, "max_epochs", 1)
    check(estimator)


@parametrize_with_checks([CompositeActiveLearner(LogisticRegression())])
@pytest.mark.filterwarnings("ignore::mdal.learner.MinusOneIsAClassWarning")
def test_a_learner_without_torch_is_compatible(estimator, check):
    check(estimator)


@pytest.fixture(params=ESTIMATORS, ids=lambda e: type(e).__name__)
def estimator(request):
    estimator = clone(request.param).set_params(random_state=0)
    if isinstance(estimator, AdversarialSimilarity):
        estimator.set_params(n_steps=3)
    return estimator


def learned(estimator):
    """The fitted tables of an estimator, as one array."""
    alpha = np.ravel(estimator.alpha_)
    if hasattr(estimator, "bound_"):
        return np.r_[alpha, estimator.bound_.u_e]
    if hasattr(estimator, "distances_"):
        return np.r_[alpha, estimator.distances_]
    return alpha


def transform(estimator, X, domains):
    similarity = isinstance(estimator, AdversarialSimilarity | KernelMeanSimilarity)
    return estimator.transform(X, **({"domains": domains} if similarity else {}))


def test_a_pickled_copy_gives_the_same_answers(estimator, two_far_domains):
    X, y, domains = two_far_domains
    estimator.fit(X, y, domains=domains)
    copy = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(transform(estimator, X, domains), transform(copy, X, domains))


def test_refitting_with_the_same_seed_repeats_bit_by_bit(estimator, two_far_domains):
    X, y, domains = two_far_domains
    first = learned(clone(estimator).fit(X, y, domains=domains))
    np.random.seed(123)
    again = learned(clone(estimator).fit(X, y, domains=domains))
    assert np.array_equal(first, again)


def test_fitting_reads_no_global_generator(estimator, two_far_domains):
    X, y, domains = two_far_domains
    for random_state in (0, None):
        before = repr(np.random.get_state())
        estimator.set_params(random_state=random_state).fit(X, y, domains=domains)
        assert repr(np.random.get_state()) == before


def test_all_marks_of_a_missing_label_are_one(estimator, two_far_domains):
    X, y, domains = two_far_domains
    expected = learned(clone(estimator).fit(X, y, domains=domains))
    missing = y == -1
    names = np.array(["no", "yes", ""], dtype=object)[y]
    names[missing] = None
    forms = [
        y.tolist(),
        np.where(missing, np.nan, y),
        np.ma.masked_array(np.where(missing, 0, y), mask=missing),
        pd.Series(y).astype("Int64").mask(missing),
        names,
        pd.Series(names, dtype="category"),
        [None if value == -1 else value for value in y.tolist()],
    ]
    for form in forms:
        found = learned(clone(estimator).fit(X, form, domains=domains))
        assert np.array_equal(expected, found)


def test_domains_may_have_any_names(estimator, two_far_domains):
    X, y, domains = two_far_domains
    expected = learned(clone(estimator).fit(X, y, domains=domains))
    codes = (domains == "off").astype(int)
    forms = [codes, codes.tolist(), codes + 0.5, [("site", code) for code in codes]]
    forms += [pd.Series(domains, dtype="category"), domains.astype(object)]
    forms += [[*domains[:200], *domains[200:].tolist()]]  # np.str_ and str
    for form in forms:
        fitted = clone(estimator).fit(X, y, domains=form)
        assert np.array_equal(expected, learned(fitted))
        assert len(fitted.domains_) == 2


def test_pipelines_route_domains(estimator, two_far_domains):
    X, y, domains = two_far_domains
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), clone(estimator))
        pipe.fit(X, y, domains=domains)
        routed = learned(pipe[-1])
    direct = clone(estimator).fit(StandardScaler().fit_transform(X), y, domains=domains)
    assert np.array_equal(routed, learned(direct))
    pipe = make_pipeline(StandardScaler(), clone(estimator))
    step = pipe.steps[-1][0]
    pipe.fit(X, y, **{f"{step}__domains": domains})
    assert np.array_equal(routed, learned(pipe[-1]))


def test_global_settings_do_not_change_what_is_learned(estimator, two_far_domains):
    X, y, domains = two_far_domains
    plain = clone(estimator).fit(X, y, domains=domains)
    with config_context(transform_output="pandas"):
        fitted = clone(estimator).fit(X, y, domains=domains)
        table = transform(fitted, X, domains)
    assert np.array_equal(learned(plain), learned(fitted))
    assert np.array_equal(transform(plain, X, domains), table.to_numpy())


@pytest.mark.parametrize("routing", [False, True])
def test_a_calibrated_discriminator_works_with_and_without_routing(
    routing, two_far_domains
):
    X, y, domains = two_far_domains
    discriminator = CalibratedClassifierCV(LinearSVC(), cv=3)
    with config_context(enable_metadata_routing=routing):
        fitted = DomainDivergence(discriminator, cv=2, random_state=0)
        fitted.fit(X, y, domains=domains)
    assert fitted.distances_.min() > 0.7


def test_parameters_are_stored_as_given(estimator):
    for name, value in estimator.get_params().items():
        assert getattr(estimator, name) is value


def test_a_failed_fit_leaves_the_fitted_state(estimator, two_far_domains):
    X, y, domains = two_far_domains
    estimator.fit(X, y, domains=domains)
    state = pickle.dumps(vars(estimator))
    for wrong in ({"domains": domains[:5]}, {"domains": [domains]}):
        with pytest.raises(ValueError):
            estimator.fit(X[:, :2], y, **wrong)
    assert pickle.dumps(vars(estimator)) == state
