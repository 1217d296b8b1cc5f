"""Every wrong input gives an error that names it, and every odd but legal one works."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron
from sklearn.neighbors import KNeighborsClassifier

from mdal.bounds import (
    DomainBound,
    compare_bounds,
    complexity,
    error_bound,
    lambda_bound,
    one_domain_bound,
)
from mdal.budget import (
    CallableBudget,
    ErrorBudget,
    JointBudget,
    OptimalBudget,
    SizeBudget,
    UniformBudget,
    allocate,
    get_budget,
)
from mdal.divergence import (
    DomainDivergence,
    hdh_distance,
    hdh_distances,
    proxy_a_distance,
)
from mdal.similarity import (
    AdversarialSimilarity,
    KernelMeanSimilarity,
    alpha_gradient,
    alpha_objective,
    alpha_step,
    mixture_weights,
    solve_alpha,
)
from mdal.tables import DomainTables, domain_tables

nan, inf = float("nan"), float("inf")
half = [[0.5, 0.5], [0.5, 0.5]]
tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20])
one_sided = DomainTables([0.2, 0.4], [[0.3, 0.0], [0.1, 0.0]], counts=[10, 0])

FUNCTIONS = {
    # budgets
    "negative budget": (lambda: allocate([1], -1), ValueError, "budget=-1"),
    "fractional budget": (lambda: allocate([1], 2.5), ValueError, "budget=2.5"),
    "budget beyond counting": (
        lambda: allocate([1, 1], 2**62),
        ValueError,
        "too large",
    ),
    "budget beyond 64 bits": (lambda: allocate([1], 10**30), ValueError, "too large"),
    "boolean budget": (lambda: allocate([1], True), TypeError, "budget=True"),
    "budget NaN": (lambda: allocate([1], nan), ValueError, "budget=nan"),
    "infinite budget": (lambda: allocate([1], inf), ValueError, "budget=inf"),
    "budget as text": (lambda: allocate([1], "10"), TypeError, "budget='10'"),
    "no budget": (lambda: allocate([1], None), TypeError, "budget=None"),
    "array of budgets": (lambda: allocate([1], [3, 4]), TypeError, "budget="),
    "no domain": (lambda: allocate([], 3), ValueError, "weights is empty"),
    "2-D weights": (lambda: allocate([[1, 2]], 3), ValueError, "weights has shape"),
    "scalar weights": (lambda: allocate(1.0, 3), ValueError, "weights has shape"),
    "negative weight": (lambda: allocate([1, -1], 3), ValueError, "contains -1.0"),
    "weight NaN": (lambda: allocate([1, nan], 3), ValueError, "weights contains NaN"),
    "infinite weight": (lambda: allocate([1, inf], 3), ValueError, "NaN or infinity"),
    "weights as text": (lambda: allocate(["a"], 3), TypeError, "weights holds"),
    "boolean weights": (lambda: allocate([True], 3), TypeError, "weights holds bool"),
    "complex weights": (lambda: allocate([1j], 3), TypeError, "weights holds complex"),
    "weights of mixed types": (lambda: allocate([1, "a"], 3), TypeError, "weights"),
    "missing weight": (lambda: allocate([1, None], 3), ValueError, "contains NaN"),
    "ragged weights": (lambda: allocate([1, [2]], 3), ValueError, "weights is ragged"),
    "spent too short": (
        lambda: allocate([1, 1], 3, spent=[1]),
        ValueError,
        "spent has shape",
    ),
    "spent negative": (
        lambda: allocate([1], 3, spent=[-1]),
        ValueError,
        "spent contains -1",
    ),
    "spent fractional": (
        lambda: allocate([1], 3, spent=[0.5]),
        ValueError,
        "spent contains 0.5",
    ),
    "spent NaN": (lambda: allocate([1], 3, spent=[nan]), ValueError, "spent contains"),
    "spent boolean": (lambda: allocate([1], 3, spent=[True]), TypeError, "spent holds"),
    "spent beyond counting": (
        lambda: allocate([1], 3, spent=[1e300]),
        ValueError,
        "too large",
    ),
    "capacity too long": (
        lambda: allocate([1], 3, capacity=[1, 2]),
        ValueError,
        "capacity has shape",
    ),
    "capacity infinite": (
        lambda: allocate([1], 3, capacity=[inf]),
        ValueError,
        "capacity contains",
    ),
    "spent above size": (
        lambda: UniformBudget().split(3, sizes=[5], spent=[6]),
        ValueError,
        "spent is 6 for domain 0",
    ),
    "capacity above what is left": (
        lambda: UniformBudget().split(3, sizes=[5], spent=[2], capacity=[4]),
        ValueError,
        "capacity is 4 for domain 0",
    ),
    "unknown number of domains": (
        lambda: UniformBudget().split(3),
        ValueError,
        "how many domains",
    ),
    "empty sizes": (
        lambda: UniformBudget().split(3, sizes=[]),
        ValueError,
        "no domain",
    ),
    "sizes of another length": (
        lambda: OptimalBudget().split(3, sizes=[5, 5, 5], alpha=half),
        ValueError,
        "alpha has shape",
    ),
    "optimal without alpha": (
        lambda: OptimalBudget().split(3, sizes=[5]),
        ValueError,
        "alpha is missing",
    ),
    "error-driven without errors": (
        lambda: ErrorBudget().split(3, sizes=[5]),
        ValueError,
        "errors is missing",
    ),
    "by size without sizes": (
        lambda: SizeBudget().split(3, spent=[5]),
        ValueError,
        "sizes is missing",
    ),
    "negative error": (
        lambda: ErrorBudget().split(3, errors=[-0.1]),
        ValueError,
        "errors contains",
    ),
    "share above one": (
        lambda: ErrorBudget(1.5).split(3, errors=[0.1]),
        ValueError,
        "uniform_share=1.5",
    ),
    "share that is no number": (
        lambda: ErrorBudget("a").split(3, errors=[0.1]),
        TypeError,
        "uniform_share='a'",
    ),
    "a class of budgets": (
        lambda: get_budget(UniformBudget),
        TypeError,
        "class UniformBudget",
    ),
    "sizes a number": (
        lambda: UniformBudget().split(3, sizes=5),
        ValueError,
        "sizes has shape",
    ),
    "unknown budget name": (lambda: get_budget("best"), ValueError, "budget='best'"),
    "budget of another type": (lambda: get_budget(3), TypeError, "budget=3"),
    "no groups": (lambda: JointBudget().groups(0), ValueError, "n_domains=0"),
    "a function that gives out too much": (
        lambda: CallableBudget(lambda b, **_: [b + 1]).split(3, sizes=[9]),
        ValueError,
        r"answer is \[4\]",
    ),
    "a function that gives out fractions": (
        lambda: CallableBudget(lambda b, **_: [b / 2, b / 2]).split(3, sizes=[9, 9]),
        ValueError,
        "answer contains 1.5",
    ),
    # alpha
    "rows that do not sum to one": (
        lambda: hdh_distances(tables, [[0.5, 0.6], [0.5, 0.5]]),
        ValueError,
        "row 0 of alpha sums to 1.1",
    ),
    "rows that nearly sum to one": (
        lambda: hdh_distances(tables, [[0.5, 0.501], [0.5, 0.5]]),
        ValueError,
        "row 0 of alpha sums to 1.001",
    ),
    "negative alpha": (
        lambda: hdh_distances(tables, [[1.5, -0.5], [0.5, 0.5]]),
        ValueError,
        "alpha contains -0.5",
    ),
    "alpha NaN": (
        lambda: hdh_distances(tables, [[nan, 1], [0.5, 0.5]]),
        ValueError,
        "alpha",
    ),
    "alpha of another size": (
        lambda: hdh_distances(tables, np.eye(3)),
        ValueError,
        "alpha has shape",
    ),
    "alpha not square": (
        lambda: OptimalBudget().split(3, alpha=[[0.5, 0.5]]),
        ValueError,
        "alpha has",
    ),
    "alpha 1-D": (lambda: lambda_bound([1.0], [[1.0]]), ValueError, "alpha has shape"),
    "weight on a domain without labels": (
        lambda: alpha_gradient(one_sided, half),
        ValueError,
        "domain 1, which has no",
    ),
    # tables
    "no labelled sample in the tables": (
        lambda: DomainTables([0.1], [[0.1]], counts=[0]),
        ValueError,
        "all 0",
    ),
    "tables of different sizes": (
        lambda: DomainTables([0.1], half, counts=[1]),
        ValueError,
        "hits has shape",
    ),
    "negative entry": (
        lambda: DomainTables([-0.1], [[0.1]], counts=[1]),
        ValueError,
        "misses spans",
    ),
    "errors without the shared row": (
        lambda: DomainTables([0.1], [[0.1]], counts=[1], errors=[[0.1]]),
        ValueError,
        "errors has shape",
    ),
    "scores above one": (
        lambda: domain_tables([1.5], [0], [[0.5]], [0]),
        ValueError,
        "pool_scores spans",
    ),
    "unknown domain code": (
        lambda: domain_tables([0.5], [1], [[0.5]], [0]),
        ValueError,
        "pool_domains",
    ),
    "fractional domain code": (
        lambda: domain_tables([0.5], [0.5], [[0.5]], [0]),
        ValueError,
        "pool_domains",
    ),
    "domain without a pool": (
        lambda: domain_tables([0.5], [0], [[0.5, 0.5]], [1]),
        ValueError,
        "domain 1 has",
    ),
    "unknown loss": (
        lambda: domain_tables([0.5], [0], [[0.5]], [0], loss="hinge"),
        ValueError,
        "loss='hinge'",
    ),
    "probabilities without labels": (
        lambda: domain_tables(
            [0.5], [0], [[0.5]], [0], probabilities=np.ones((2, 1, 1))
        ),
        ValueError,
        "go together",
    ),
    # distances and bounds
    "no sample on one side": (
        lambda: hdh_distance([], [0.5]),
        ValueError,
        "original is empty",
    ),
    "scores as text": (lambda: proxy_a_distance(["a"], [0.5]), TypeError, "original"),
    "scores NaN": (
        lambda: hdh_distance([0.5], [nan]),
        ValueError,
        "surrogate contains",
    ),
    "row that does not sum to one": (
        lambda: one_domain_bound([0.5], [0.1], 0.1, 0.1),
        ValueError,
        "sums to 0.5",
    ),
    "error above one": (
        lambda: one_domain_bound([1.0], [1.1], 0.1, 0.1),
        ValueError,
        "errors spans",
    ),
    "distance above two": (
        lambda: one_domain_bound([1.0], [0.1], 2.1, 0.1),
        ValueError,
        "distance=2.1",
    ),
    "dimension zero": (
        lambda: complexity([1.0], [5], vc_dimension=0),
        ValueError,
        "vc_dimension=0",
    ),
    "delta one": (
        lambda: complexity([1.0], [5], vc_dimension=2, delta=1),
        ValueError,
        "delta=1",
    ),
    "delta as text": (
        lambda: complexity([1.0], [5], vc_dimension=2, delta="a"),
        TypeError,
        "delta='a'",
    ),
    "no labels to count": (
        lambda: complexity([1.0], [0], vc_dimension=2),
        ValueError,
        "all 0",
    ),
    "complexity without a dimension": (
        lambda: error_bound(half, [0, 0], [0, 0], [0, 0], counts=[1, 1]),
        ValueError,
        "vc_dimension is missing",
    ),
    "too few names": (
        lambda: error_bound(half, [0, 0], [0, 0], [0, 0], domains=["a"]),
        ValueError,
        "domains has 1 names",
    ),
    "no such encoder": (
        lambda: compare_bounds([[[1.0]]], fixed_encoder=1),
        ValueError,
        "fixed_encoder=1",
    ),
    "bounds of one dimension": (
        lambda: compare_bounds([1.0]),
        ValueError,
        "totals has shape",
    ),
    "unknown complexity": (
        lambda: alpha_objective(tables, half, complexity="all"),
        ValueError,
        "complexity='all'",
    ),
    "negative lambda": (
        lambda: alpha_objective(tables, half, lambda_d=-1),
        ValueError,
        "lambda_d",
    ),
    "tolerance of zero": (
        lambda: solve_alpha(tables, complexity="row", tol=0),
        ValueError,
        "tol=0",
    ),
    "no vectors to mix": (
        lambda: mixture_weights(np.zeros((0, 0)), []),
        ValueError,
        "no vector",
    ),
    "not a Gram matrix": (
        lambda: mixture_weights([[1, 2], [2, 1]], [1, 1]),
        ValueError,
        "positive semi-definite",
    ),
    "Gram matrix that is not symmetric": (
        lambda: mixture_weights([[1, 0.5], [0, 1]], [1, 1]),
        ValueError,
        "not symmetric",
    ),
    "a step from no alpha": (
        lambda: alpha_step([[0.0]], [[0.0]]),
        ValueError,
        "row 0 of alpha",
    ),
    "a gradient with NaN": (
        lambda: alpha_step([[1.0]], [[nan]]),
        ValueError,
        "gradient contains",
    ),
    "a step upwards": (
        lambda: alpha_step([[1.0]], [[0.0]], step_size=-1),
        ValueError,
        "step_size=-1",
    ),
    "an average of more than one": (
        lambda: alpha_step([[1.0]], [[0.0]], average=[[1.0]], average_weight=2),
        ValueError,
        "average_weight=2",
    ),
    "tables of another type": (
        lambda: hdh_distances([[0.1]], [[1.0]]),
        TypeError,
        "tables is of type list",
    ),
    "distance from cross-entropies": (
        lambda: hdh_distances(
            DomainTables([2.0], [[3.0]], counts=[1], loss="cross_entropy"), [[1.0]]
        ),
        ValueError,
        "'cross_entropy', which give no distance",
    ),
    "distance of a domain without labels": (
        lambda: hdh_distances(one_sided, half),
        ValueError,
        "domain 1, which has no",
    ),
    "probabilities that do not sum to one": (
        lambda: domain_tables(
            [0.5], [0], [[0.5]], [0], probabilities=[[[0.9, 0.9]]] * 2, labels=[0]
        ),
        ValueError,
        "sum to 1.8",
    ),
    "Gram matrix of another size": (
        lambda: mixture_weights(np.eye(3), [1, 2]),
        ValueError,
        "gram has shape",
    ),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions_name_what_is_wrong(case):
    call, error, message = FUNCTIONS[case]
    with pytest.raises(error, match=message):
        call()


rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = np.where(np.arange(40) % 2 == 0, np.arange(40) % 4 // 2, -1)
domains = np.repeat(["a", "b"], 20)
infinite = np.where(np.arange(120).reshape(40, 3) == 7, inf, X)
no_a = np.where(domains == "a", -1, y)

DATA = {
    "X with NaN": ((X * nan, y, domains), ValueError, "NaN"),
    "X with infinity": ((infinite, y, domains), ValueError, "infinity"),
    "X 1-D": ((X[:, 0], y, domains), ValueError, "1D array"),
    "X 3-D": ((X[None], y, domains), ValueError, "dim"),
    "X empty": ((X[:0], y[:0], domains[:0]), ValueError, "0 sample"),
    "X of one sample": ((X[:1], y[:1], domains[:1]), ValueError, "1 sample"),
    "X ragged": (([[1, 2], [3]], y, domains), ValueError, "inhomogeneous|ragged"),
    "X as text": (
        (X.astype(str).astype(object) + "a", y, domains),
        ValueError,
        "float",
    ),
    "no y": ((X, None, domains), ValueError, "requires y"),
    "y too short": ((X, y[:-1], domains), ValueError, "y has 39 values for 40 samples"),
    "y 2-D": ((X, np.column_stack([y, y]), domains), ValueError, "y has shape"),
    "y continuous": ((X, y + 0.5, domains), ValueError, "Unknown label type"),
    "y infinite": ((X, np.where(y < 0, inf, y), domains), ValueError, "y contains inf"),
    "y of mixed types": ((X, [1, "b"] * 20, domains), TypeError, "y mixes types"),
    "y of dates": (
        (X, np.full(40, "2024-01-01", "M8[D]"), domains),
        TypeError,
        "y holds",
    ),
    "y of lists": ((X, [[1, 2]] * 40, domains), TypeError, "cannot be hashed"),
    "y with -1 as text": ((X, y.astype(str), domains), ValueError, "the text '-1'"),
    "y with NaN as text": (
        (X, np.array(["cat", nan] * 20), domains),
        ValueError,
        "the text 'nan'",
    ),
    "y a number": ((X, 3, domains), TypeError, "y is of type int"),
    "no label at all": ((X, np.full(40, -1), domains), ValueError, "no label at all"),
    "domains too long": ((X, y, [*domains, "c"]), ValueError, "domains has 41 values"),
    "domains 2-D": ((X, y, np.c_[domains, domains]), ValueError, "domains has shape"),
    "domains a column": ((X, y, domains[:, None]), ValueError, "domains has shape"),
    "domains of lists": ((X, y, [["a"]] * 40), TypeError, "cannot be hashed"),
    "domains of mixed types": ((X, y, ["a", 1] * 20), TypeError, "domains mixes types"),
    "domains with None": ((X, y, ["a", None] * 20), ValueError, "no value in row 1"),
    "domains with NaN": ((X, y, [1.0, nan] * 20), ValueError, "no value in row 1"),
    "domains with NA": (
        (X, y, pd.array([1, pd.NA] * 20)),
        ValueError,
        "no value in row",
    ),
    "domains infinite": ((X, y, np.array([1, inf] * 20)), ValueError, "infinity"),
    "domains infinite in a list": ((X, y, [1, inf] * 20), ValueError, "infinity"),
    "domains a number": ((X, y, 3), TypeError, "domains is of type int"),
}

PARAMETERS = {
    "one fold": (DomainDivergence(cv=1), ValueError, "cv=1"),
    "fractional folds": (DomainBound(cv=2.5), ValueError, "cv=2.5"),
    "folds as text": (AdversarialSimilarity(cv="a"), TypeError, "cv='a'"),
    "alpha of another size": (DomainBound(alpha=np.eye(3)), ValueError, "alpha has"),
    "unknown alpha": (DomainDivergence(alpha="best"), ValueError, "alpha='best'"),
    "classifier without weights": (
        DomainBound(KNeighborsClassifier()),
        ValueError,
        "takes no sample_weight",
    ),
    "classifier without probabilities": (
        AdversarialSimilarity(classifier=Perceptron()),
        ValueError,
        "has no predict_proba",
    ),
    "discriminator that is none": (
        DomainDivergence("tree"),
        TypeError,
        "discriminator='tree'",
    ),
    "unknown loss": (AdversarialSimilarity("hinge"), ValueError, "loss='hinge'"),
    "unknown complexity": (
        AdversarialSimilarity(complexity="all"),
        ValueError,
        "complexity='all'",
    ),
    "negative lambda_d": (
        AdversarialSimilarity(lambda_d=-1),
        ValueError,
        "lambda_d=-1",
    ),
    "no step": (AdversarialSimilarity(n_steps=0), ValueError, "n_steps=0"),
    "step of no size": (AdversarialSimilarity(step_size=0), ValueError, "step_size=0"),
    "gamma of zero": (KernelMeanSimilarity(0), ValueError, "gamma=0"),
    "gamma NaN": (KernelMeanSimilarity(nan), ValueError, "gamma=nan"),
    # Half of this delta would be legal: rows are bounded at delta / N.
    "delta for rows": (
        AdversarialSimilarity(complexity="row", delta=1.5),
        ValueError,
        "delta=1.5",
    ),
    "delta for a bound": (DomainBound(delta=1.5), ValueError, "delta=1.5"),
    "dimension of zero": (DomainBound(vc_dimension=0), ValueError, "vc_dimension=0"),
    "unknown seed": (
        DomainBound(random_state="a"),
        ValueError,
        "cannot be used to seed",
    ),
}

ESTIMATORS = [
    AdversarialSimilarity(n_steps=2, random_state=0),
    DomainBound(cv=2, random_state=0),
    DomainDivergence(cv=2, random_state=0),
    KernelMeanSimilarity(random_state=0),
]


@pytest.fixture(params=ESTIMATORS, ids=lambda e: type(e).__name__)
def fitted(request):
    return clone(request.param).fit(X, y, domains=domains)


def assert_fit_changes_nothing(estimator, arguments, error, message):
    before = pickle.dumps(vars(estimator))
    with pytest.raises(error, match=message):
        estimator.fit(*arguments[:2], domains=arguments[2])
    assert pickle.dumps(vars(estimator)) == before


@pytest.mark.parametrize("case", DATA)
def test_wrong_data_is_named_and_changes_nothing(fitted, case):
    assert_fit_changes_nothing(fitted, *DATA[case])


@pytest.mark.parametrize("case", PARAMETERS)
def test_wrong_parameters_are_named_and_change_nothing(case):
    estimator, error, message = PARAMETERS[case]
    assert_fit_changes_nothing(estimator, (X, y, domains), error, message)


def test_a_domain_without_labels_cannot_have_weight():
    for estimator in (DomainBound(alpha="identity"), DomainDivergence(alpha=half)):
        with pytest.raises(ValueError, match="domain 0, which has no labelled"):
            estimator.fit(X, no_a, domains=domains)


def test_a_domain_without_labels_is_legal(fitted):
    fitted.fit(X, no_a, domains=domains)
    assert fitted.alpha_.tolist() == [[0, 1], [0, 1]]


def test_one_domain_and_one_class_are_legal(fitted):
    fitted.fit(X, np.where(y < 0, -1, 3))
    assert fitted.alpha_.tolist() == [[1]]


def test_constant_features_are_legal(fitted):
    fitted.fit(np.ones((40, 2)), y, domains=domains)
    assert np.isfinite(fitted.alpha_).all()


def test_unseen_domains_are_named():
    similarity = KernelMeanSimilarity().fit(X, y, domains=domains)
    with pytest.raises(ValueError, match="domains contains 'c'"):
        similarity.transform(X[:2], domains=["a", "c"])
    with pytest.raises(ValueError, match="domains is missing"):
        similarity.transform(X)
    with pytest.raises(NotFittedError):
        KernelMeanSimilarity().transform(X, domains=domains)
