"""Wrong input for the learner is named, and changes nothing."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from mdal import CompositeActiveLearner
from mdal.model_selection import (
    ActivePipeline,
    DomainScorer,
    LabelledKFold,
    domain_accuracy,
)
from mdal.net import CompositeNet
from mdal.strategies import FewerSamplesWarning

nan, inf = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
domains = np.repeat(["a", "b"], 20)
y = np.where(np.arange(40) % 4 == 0, X[:, 0] > 0, -1)
holes = X.copy()
holes[3, 1] = nan


class Absurd(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are no numbers."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), nan)


def fit(*arguments, **named):
    return lambda learner: learner.fit(*arguments, **named)


class Made:
    """A fit after some parameters were set, which alone is no error."""

    def __init__(self, labels=y, **settings):
        self.labels, self.settings = labels, settings

    def __call__(self, learner):
        return learner.fit(X, domains, self.labels)


def made(**settings):
    return Made(**settings)


def cold(**settings):
    return Made(labels=[-1] * 40, **settings)


WRONG = {
    # samples
    "domains too short": (fit(X, domains[:5], y), ValueError, "domains has 5 values"),
    "domains too long": (fit(X, list(domains) * 2, y), ValueError, "domains has 80"),
    "labels too short": (fit(X, domains, y[:5]), ValueError, "y_mask has 5 values"),
    "labels through y too short": (
        fit(X, y[:5], domains=domains),
        ValueError,
        "y has 5 values",
    ),
    "X too short": (fit(X[:9], domains, y), ValueError, "40 values for 9 samples"),
    "no sample": (fit(X[:0], domains[:0], y[:0]), ValueError, "0 sample"),
    "no feature": (fit(X[:, :0], domains, y), ValueError, "0 feature"),
    "X of one dimension": (fit(X[:, 0], domains, y), ValueError, "Reshape your data"),
    "X a number": (fit(3.0, domains, y), ValueError, "Expected 2D array"),
    "no X": (fit(None, domains, y), ValueError, "NoneType|2D array"),
    "X as text": (fit("abc", domains, y), ValueError, "Expected 2D array"),
    "X of text": (fit([["a"]] * 40, domains, y), ValueError, "string|convert"),
    "X a dict": (fit({"a": 1}, domains, y), (TypeError, ValueError), "dict|2D|float"),
    "X NaN": (fit(holes, domains, y), ValueError, "NaN"),
    "X infinite": (fit(np.where(X > 2, inf, X), domains, y), ValueError, "infinity"),
    "X complex": (fit(X + 1j, domains, y), ValueError, "Complex"),
    "X ragged": (
        fit([[1.0], [1.0, 2.0]] * 20, domains, y),
        ValueError,
        "inhomogeneous",
    ),
    "X of objects": (fit([[{}]] * 40, domains, y), TypeError, "float|argument"),
    # labels
    "y_mask of two dimensions": (fit(X, domains, y[None]), ValueError, "one dimension"),
    "y_mask missing": (fit(X, domains, None), TypeError, "y_mask"),
    "y missing": (fit(X), ValueError, "requires y"),
    "y missing with domains": (fit(X, domains=domains), ValueError, "requires y"),
    "no label through y": (fit(X, [-1] * 40), ValueError, "no label at all"),
    "labels between classes": (
        fit(X, domains, np.where(y < 0, -1, 0.5)),
        ValueError,
        "Unknown label type",
    ),
    "labels infinite": (
        fit(X, domains, np.where(y < 0, -1, inf)),
        ValueError,
        "Unknown label type",
    ),
    "labels of mixed types": (
        fit(X, domains, ["a", 1] + [-1] * 38),
        TypeError,
        "mixes types",
    ),
    "labels as lists": (fit(X, domains, [[1]] + [None] * 39), TypeError, "hashed"),
    "labels as text of -1": (
        fit(X, domains, y.astype(str)),
        ValueError,
        "missing label",
    ),
    "labels as dates": (
        fit(X, domains, np.array(["2020-01-01"] * 40, "M8[D]")),
        TypeError,
        "integers or strings",
    ),
    "domains twice": (
        fit(X, domains, y, domains=domains),
        TypeError,
        "domains twice",
    ),
    # domains
    "a domain missing": (
        fit(X, [None, *domains[1:]], y),
        ValueError,
        "no value in row 0",
    ),
    "a domain NaN": (fit(X, [nan] * 40, y), ValueError, "no value in row 0"),
    "a domain infinite": (fit(X, [inf] * 40, y), ValueError, "infinity"),
    "domains in a list": (fit(X, [domains], y), ValueError, "domains has 1 values"),
    "domains of mixed types": (fit(X, ["a", 1] * 20, y), TypeError, "mixes types"),
    "domains a number": (fit(X, 3, y), TypeError, "domains is of type int"),
    # rows
    "rows to exclude outside": (
        fit(X, domains, y, exclude=[40]),
        ValueError,
        "exclude contains 40",
    ),
    "rows to exclude negative": (
        fit(X, domains, y, exclude=[-1]),
        ValueError,
        "exclude contains -1",
    ),
    "rows to exclude fractional": (
        fit(X, domains, y, exclude=[0.5]),
        ValueError,
        "exclude contains 0.5",
    ),
    "a mask of other samples": (
        fit(X, domains, y, exclude=[True]),
        ValueError,
        "exclude has shape",
    ),
    "a mask of numbers": (
        fit(X, domains, y, exclude=[0, 1] * 20),
        ValueError,
        "exclude has a 0 or 1 for each of the 40 samples",
    ),
    "rows as text": (fit(X, domains, y, exclude=["a"]), TypeError, "exclude="),
    # parameters
    "budget negative": (made(budget_per_round=-1), ValueError, "budget_per_round=-1"),
    "budget fractional": (made(budget_per_round=2.5), ValueError, "=2.5"),
    "budget true": (made(budget_per_round=True), TypeError, "budget_per_round=True"),
    "budget NaN": (made(budget_per_round=nan), ValueError, "budget_per_round=nan"),
    "budget as text": (made(budget_per_round="10"), TypeError, "='10'"),
    "unknown strategy": (made(strategy="best"), ValueError, "strategy='best'"),
    "no strategy": (made(strategy=None), TypeError, "strategy=None"),
    "unknown first round": (made(first_round="x"), ValueError, "first_round cannot"),
    "first round by margins": (
        made(first_round="margin"),
        ValueError,
        "first_round='margin' is unknown",
    ),
    "unknown allocation": (made(allocation="x"), ValueError, "budget='x'"),
    "allocation a class": (made(allocation=dict), TypeError, "class dict"),
    "net without weights": (
        made(net=KNeighborsClassifier()),
        ValueError,
        "takes no sample_weight",
    ),
    "net that is none": (made(net="deep"), TypeError, "net='deep'"),
    "net a class": (made(net=LogisticRegression), TypeError, "net is the class"),
    "net of absurd answers": (made(net=Absurd()), ValueError, "NaN"),
    "unknown method": (made(net=None, method="x"), ValueError, "method='x'"),
    "method of networks": (made(method="cal_fa"), ValueError, "method='cal_fa' trains"),
    "unknown method, no net": (made(method="call"), ValueError, "method='call'"),
    "negative lambda": (made(net=None, lambda_d=-1.0), ValueError, "lambda_d=-1.0"),
    "lambda as text": (made(net=None, lambda_d="1"), TypeError, "lambda_d='1'"),
    "unknown method, no label": (cold(net=None, method="x"), ValueError, "method='x'"),
    "negative lambda, no label": (
        cold(net=None, lambda_d=-1.0),
        ValueError,
        "lambda_d=-1.0",
    ),
    "lambda NaN": (made(lambda_d=nan), ValueError, "lambda_d=nan"),
    "net without weights, no label": (
        cold(net=KNeighborsClassifier()),
        ValueError,
        "takes no sample_weight",
    ),
    "epochs as text": (
        cold(net=CompositeNet(max_epochs="3")),
        TypeError,
        "max_epochs='3'",
    ),
    "a label that was not declared": (
        made(classes=[0, 2]),
        ValueError,
        r"y_mask contains 1 in row 0, which is none of the classes \[0, 2\]",
    ),
    "a class twice": (made(classes=[0, 0, 1]), ValueError, "each class once"),
    "no class": (made(classes=[]), ValueError, "each class once"),
    "a class that is none": (made(classes=[0, None]), ValueError, "each class once"),
    "classes of mixed types": (made(classes=[0, "1"]), TypeError, "mixes types"),
    "classes as text": (made(classes="ab"), TypeError, "classes='ab' is one string"),
    "classes as a number": (made(classes=2), TypeError, "classes is of type int"),
    "warm start as text": (made(warm_start="yes"), TypeError, "warm_start='yes'"),
    "seed as text": (made(random_state="a"), ValueError, "cannot be used to seed"),
    "unknown parameter": (
        lambda learner: learner.set_params(nets=1),
        ValueError,
        "Invalid parameter 'nets'",
    ),
    # questions
    "query a negative number": (lambda e: e.query(-1), ValueError, "n=-1"),
    "query a fraction": (lambda e: e.query(2.5), ValueError, "n=2.5"),
    "query true": (lambda e: e.query(True), TypeError, "n=True"),
    "query NaN": (lambda e: e.query(nan), ValueError, "n=nan"),
    "query text": (lambda e: e.query("10"), TypeError, "n='10'"),
    "query a list": (lambda e: e.query([10]), TypeError, "n="),
    "candidates outside": (
        lambda e: e.query(candidates=[99]),
        ValueError,
        "candidates contains 99",
    ),
    "allocate a fraction": (lambda e: e.allocate_budget(0.5), ValueError, "n=0.5"),
    "predict other features": (lambda e: e.predict(X[:, :2]), ValueError, "2 features"),
    "predict other domains": (
        lambda e: e.predict(X, domains[:3]),
        ValueError,
        "domains has 3 values",
    ),
    "predict NaN": (lambda e: e.predict(holes), ValueError, "NaN"),
    "predict a vector": (lambda e: e.predict(X[0]), ValueError, "Reshape your data"),
    "score without labels": (
        lambda e: e.score(X, [-1] * 40),
        ValueError,
        "no label to compare",
    ),
    "score domains twice": (
        lambda e: e.score(X, domains, y, domains=domains),
        TypeError,
        "domains twice",
    ),
    "score other lengths": (lambda e: e.score(X, y[:5]), ValueError, "5 values"),
}


@pytest.fixture
def fitted():
    learner = CompositeActiveLearner(
        LogisticRegression(), budget_per_round=4, random_state=0
    )
    return learner.fit(X, domains, y)


def state(learner):
    return {name: pickle.dumps(value) for name, value in vars(learner).items()}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_and_changes_nothing(case, fitted):
    call, error, message = WRONG[case]
    fitted.set_params(**getattr(call, "settings", {}))
    before = state(fitted)
    with pytest.raises(error, match=message):
        call(fitted)
    assert state(fitted) == before


@pytest.mark.parametrize(
    "ask",
    [
        lambda e: e.query(),
        lambda e: e.allocate_budget(),
        lambda e: e.predict(X),
        lambda e: e.predict_proba(X),
        lambda e: e.transform(X),
        lambda e: e.score(X, y),
        lambda e: e.save("nowhere"),
    ],
)
def test_nothing_is_answered_before_fit(ask):
    with pytest.raises(NotFittedError):
        ask(CompositeActiveLearner())


def test_unseen_domains_are_named_where_they_matter(fitted):
    assert fitted.predict(X, domains).shape == (40,)
    deep = CompositeActiveLearner(CompositeNet(max_epochs=1), random_state=0)
    deep.fit(X, domains, y)
    with pytest.raises(ValueError, match="domains contains 'z'"):
        deep.predict(X[:1], ["z"])


@pytest.mark.parametrize("net", [CompositeNet(max_epochs=1), LogisticRegression()])
@pytest.mark.parametrize("row", [0, 30])
def test_numbers_too_large_are_named(net, row):
    large = X.astype(float)
    large[row, 0] = -1e300
    learner = CompositeActiveLearner(net, random_state=0)
    with pytest.raises(ValueError, match=r"X contains -1e\+300.*scale X"):
        learner.fit(large, domains, y)
    assert not hasattr(learner, "classes_")


class Wrong(torch.nn.Module):
    """An encoder whose features are no numbers, in training or afterwards."""

    def __init__(self, training):
        super().__init__()
        self.layer, self.when = torch.nn.Linear(X.shape[1], 8), training

    def forward(self, x):
        return self.layer(x) * (float("nan") if self.training == self.when else 1.0)


@pytest.mark.parametrize("training", [True, False])
def test_a_net_that_gives_no_numbers_is_named(training, fitted):
    before = pickle.dumps(vars(fitted))
    net = CompositeNet(max_epochs=1, steps_per_epoch=2)
    learner = clone(fitted).set_params(net=net, net__module__encoder=Wrong(training))
    with pytest.raises(ValueError, match=r"no finite number|are not finite"):
        learner.fit(X, domains, y)
    assert not hasattr(learner, "classes_")
    assert pickle.dumps(vars(fitted)) == before


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"net__lr": -1}, ValueError, "lr=-1 is out of range"),
        ({"net__lr": "fast"}, TypeError, "lr='fast' is of type str"),
        ({"similarity": "near"}, TypeError, "similarity='near' estimates no alpha"),
        ({"similarity": LogisticRegression}, TypeError, "estimates no alpha"),
    ],
)
def test_wrong_settings_are_named_before_the_first_label(settings, error, message):
    learner = CompositeActiveLearner().set_params(**settings)
    with pytest.raises(error, match=message):
        learner.fit(X, domains, np.full(len(X), -1))
    with pytest.raises(ValueError, match="device='gpu9' is unknown"):
        learner.set_params(net__device="gpu9")


@pytest.mark.parametrize(
    ("net", "settings"),
    [
        (LogisticRegression(), {"net__C": 5, "net__nonsense": 1}),
        (CompositeNet(), {"net__max_epochs": 7, "net__nonsense": 1}),
        (CompositeNet(), {"net__max_epochs": 7, "nonsense": 1}),
    ],
)
def test_wrong_parameters_of_the_net_change_nothing(net, settings):
    learner = CompositeActiveLearner(net)
    before = pickle.dumps(vars(learner))
    with pytest.raises(ValueError, match="nonsense"):
        learner.set_params(**settings)
    assert pickle.dumps(vars(learner)) == before
    with pytest.raises(TypeError, match="net='x' has no parameters"):
        learner.set_params(net="x", net__max_epochs=1)
    assert pickle.dumps(vars(learner)) == before


def test_samples_without_a_length_or_of_several_shapes_are_named():
    class Endless(IterableDataset):
        def __iter__(self):
            yield torch.zeros(3)

    class Ragged(Dataset):
        def __len__(self):
            return len(X)

        def __getitem__(self, row):
            return torch.zeros(4 + row % 2)

    for data, error, message in (
        (Endless(), TypeError, "Endless, which has no length"),
        (Ragged(), ValueError, "items of X have shapes"),
        (np.ma.masked_greater(X, 1), ValueError, "X has masked values"),
    ):
        with pytest.raises(error, match=message):
            CompositeActiveLearner().fit(data, domains, y)


def test_a_dataset_of_another_length_is_named():
    dataset = TensorDataset(torch.as_tensor(X[:9]))
    with pytest.raises(ValueError, match="for 9 samples"):
        CompositeActiveLearner().fit(dataset, domains, y)


def test_a_budget_above_the_pool_is_all_that_is_left(fitted):
    with pytest.warns(FewerSamplesWarning, match="n=99 exceeds the 30 samples"):
        rows = fitted.query(99)
    assert sorted(rows) == np.flatnonzero(y == -1).tolist()
    assert sum(fitted.allocate_budget(99).values()) == 30


def test_a_budget_of_nothing_is_nothing(fitted):
    assert fitted.set_params(budget_per_round=0).fit(X, domains, y).query().size == 0


# Folds and scores


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: next(LabelledKFold(1).split(X, y)), "n_splits=1"),
        (lambda: next(LabelledKFold(2.5).split(X, y)), "n_splits=2.5"),
        (lambda: next(LabelledKFold(11).split(X, y)), "n_splits=11 exceeds the 10"),
        (lambda: next(LabelledKFold().split(X)), "y is missing"),
        (lambda: next(LabelledKFold().split(X, [-1] * 40)), "exceeds the 0 labelled"),
        (lambda: next(LabelledKFold().split(X, y[:3])), "y has 3 values"),
        (lambda: next(LabelledKFold().split(X, y, domains[:3])), "domains has 3"),
        (lambda: domain_accuracy(y, y, average="best"), "average='best'"),
        (lambda: domain_accuracy(y, y, average={1: 1}), "no weight for domain 0"),
        (lambda: domain_accuracy(y, y, average={0: 0}), "no weight to any domain"),
        (lambda: domain_accuracy(y, y, average={0: -1}), r"average\[0\]=-1"),
        (lambda: domain_accuracy(y, y[:3]), "40 values for 3 samples"),
        (lambda: domain_accuracy(y, y, domains=domains[:3]), "domains has 3"),
        (lambda: domain_accuracy([-1], [0]), "no label to compare"),
        (lambda: domain_accuracy([1], [0], sample_weight=[-1.0]), "sample_weight"),
        (
            lambda: DomainScorer("x")(LogisticRegression().fit(X, y), X, y),
            "average='x'",
        ),
    ],
)
def test_wrong_folds_and_scores_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_pipeline_names_what_is_wrong():
    pipe = ActivePipeline([("learn", CompositeActiveLearner(LogisticRegression()))])
    with pytest.raises(ValueError, match="domains has 3 values"):
        pipe.fit(X, domains[:3], y)
    with pytest.raises(TypeError, match="y_mask"):
        pipe.fit(X, domains, None)
    with pytest.raises(TypeError, match="domains twice"):
        pipe.fit(X, domains, y, domains=domains)
    with pytest.raises(NotFittedError):
        pipe.query()
