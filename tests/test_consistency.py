"""Consistency training: its formula, its parts, and what it is for."""

import math
import pickle

import numpy as np
import pytest
import torch
from objective_cases import COUNTS, N_CLASSES, N_INPUTS, SIZES, N, all_data, built
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import make_moons

from mdal import CompositeActiveLearner
from mdal.net import CompositeNet
from mdal.objectives import (
    CAL,
    MAN,
    Consistency,
    Task,
    balanced,
    centred,
    consistency_losses,
    get_objective,
    objective_names,
)

MOVED = {"perturb": lambda X: X + 0.3, "threshold": 0.4, "temperature": 0.0}


def losses_of_module(objective, nets, batch, averaged):
    steps = dict(objective.losses(nets, batch, averaged))
    return steps["module"]


@pytest.mark.parametrize("base", [CAL(), CAL(second_term=False), MAN()])
@pytest.mark.parametrize("progress", [0.05, 0.25])
@pytest.mark.parametrize("centre", [False, True])
def test_values_and_gradients_are_those_of_a_slow_form(base, progress, centre):
    settings = {"weight": 0.7, "ramp": 0.2, "label_weight": 0.6, "centre": centre}
    settings.update(MOVED)
    objective = Consistency(clone(base), **settings)
    nets, batch = built(objective), all_data()._replace(progress=progress)
    teacher = built(Consistency(clone(base), **MOVED), seed=1)
    with torch.no_grad():  # so that it is sure of some samples, and not of others
        for weight in teacher["module"].parameters():
            weight *= 1.5
    found = losses_of_module(objective, nets, batch, teacher)

    def logits(these, x, d):
        return objective.base.observe(these, x[None], d[None])["logits"][0]

    def loss(x, d, label, move=0.0):
        return -torch.log_softmax(logits(nets, x + 0.3, d) - move, 0)[label]

    def says(x, d):
        return logits(teacher, x, d).detach()

    pool = list(zip(batch.pool_X, batch.pool_domains, strict=True))
    sure = [(x, d) for x, d in pool if softmax(says(x, d).numpy()).max() >= 0.4]
    move = 0.0
    if centre:
        moves = [logits(nets, x + 0.3, d) - says(x, d) for x, d in sure]
        move = sum(moves) / len(sure)
    slow, labelled = 0.0, 0.0
    for i in range(N):
        for x, d in sure:
            if d == i:
                label = int(says(x, d).argmax())
                slow = slow + loss(x, d, label, move) / SIZES[i] / N
        for x, label, d in zip(batch.X, batch.y, batch.domains, strict=True):
            if d == i:
                labelled = labelled + loss(x, d, int(label)) / COUNTS[i] / N
    assert 0 < len(sure) < SIZES.sum()
    by_hand = {
        "consistency": 0.7 * min(progress / 0.2, 1) * slow,
        "perturbed_v_h": 0.6 * labelled,
    }
    parameters = [p for p in nets["module"].parameters() if p.requires_grad]
    for name, expected in by_hand.items():
        assert found[name].item() == pytest.approx(expected.item())
        fast, exact = (
            torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
            for value in (found[name], expected)
        )
        assert any(gradient is not None for gradient in fast)
        for one, two in zip(fast, exact, strict=True):
            zero = torch.zeros(())
            one, two = (zero if g is None or not g.any() else g for g in (one, two))
            torch.testing.assert_close(one, two)


def test_losses_by_hand():
    taught = torch.tensor([[math.log(9.0), 0.0], [0.0, math.log(3.0)], [0.0, 9.0]])
    logits = torch.tensor([[0.0, 0.0], [0.0, 0.0], [math.log(3.0), 0.0]])
    found = consistency_losses(logits, taught, 0.9)
    expected = [math.log(2), 0.0, math.log(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_losses_against_sharpened_targets_are_those_of_a_slow_form(temperature):
    rng = np.random.default_rng(0)
    logits, taught = rng.normal(size=(2, 20, 4))
    p = softmax(taught, axis=1)
    targets = p ** (1 / temperature)
    targets /= targets.sum(axis=1, keepdims=True)
    slow = -(targets * np.log(softmax(logits, axis=1))).sum(axis=1)
    sure = p.max(axis=1) >= 0.5
    found = consistency_losses(*map(torch.tensor, (logits, taught)), 0.5, temperature)
    assert 0 < sure.sum() < 20
    np.testing.assert_allclose(found, np.where(sure, slow, 0.0))


def test_the_temperature_of_targets_reaches_the_loss_of_the_pool():
    nets, batch = built(Consistency(CAL(), **MOVED)), all_data()
    found = {}
    for temperature in (0.0, 0.5, 1.0):
        settings = {**MOVED, "temperature": temperature, "centre": False}
        objective = Consistency(CAL(), **settings)
        built(objective)
        named = losses_of_module(objective, nets, batch, nets)
        found[temperature] = named["consistency"].item()
        taught = objective.predictions(nets, batch.pool_X)["logits"]
        moved = objective.predictions(nets, batch.pool_X + 0.3)["logits"]
        losses = consistency_losses(moved, taught, 0.4, temperature)
        means = [losses[batch.pool_domains == i].sum() / SIZES[i] for i in range(N)]
        assert found[temperature] == pytest.approx(sum(means).item() / N)
    assert len(set(found.values())) == 3


@pytest.mark.parametrize(
    ("shape", "given", "expected"),
    [
        ((1, 8, 8), {}, (0.8, 0.0, False)),
        ((8, 8), {"temperature": 0.5}, (0.0, 0.5, True)),
        ((8, 8), {"threshold": 0.9}, (0.9, 0.0, False)),
        ((8, 8), {"centre": True}, (0.8, 0.0, True)),
        ((N_INPUTS,), {}, (0.0, 1.0, True)),
        ((N_INPUTS,), {"threshold": 0.9}, (0.9, 1.0, True)),
        ((N_INPUTS,), {"temperature": 0.0}, (0.8, 0.0, False)),
        ((N_INPUTS,), {"centre": False}, (0.0, 1.0, False)),
        ((N_INPUTS,), {"balance": 0.5}, (0.0, 1.0, False)),
        ((N_INPUTS,), {"balance": 0.5, "centre": True}, (0.0, 1.0, True)),
    ],
)
def test_targets_suit_the_shape_of_samples_unless_they_are_given(
    shape, given, expected
):
    objective = Consistency(CAL(), **given)
    task = Task(shape, N_CLASSES, COUNTS, SIZES)
    objective.build(lambda name, default, **settings: default(**settings), task)
    names = ("threshold", "temperature", "centre")
    assert objective.targets_ == dict(zip(names, expected, strict=True))
    for name in names:  # what the user has set, or has not, stays as it is
        assert getattr(objective, name) == given.get(name)


def test_vectors_are_taught_all_that_the_teacher_says():
    objective = Consistency(CAL(), perturb=MOVED["perturb"])
    nets, batch = built(objective), all_data()
    found = losses_of_module(objective, nets, batch, nets)["consistency"]
    with torch.no_grad():
        said, learned = (
            objective.predictions(nets, X)["logits"].numpy()
            for X in (batch.pool_X, batch.pool_X + 0.3)
        )
    for c in range(N_CLASSES):  # no class is more frequent, by logits, than it was
        learned[:, c] -= learned[:, c].mean() - said[:, c].mean()
    slow = -(softmax(said, axis=1) * log_softmax(learned, axis=1)).sum(axis=1)
    means = [slow[batch.pool_domains.numpy() == i].sum() / SIZES[i] for i in range(N)]
    assert found.item() == pytest.approx(np.mean(means))


def test_centred_logits_are_those_of_a_slow_form():
    rng = np.random.default_rng(0)
    logits, taught = rng.normal(size=(2, 5, 3))
    sure = [True, False, True, True, False]
    slow = logits.copy()
    for c in range(3):
        slow[:, c] += sum(taught[i, c] - logits[i, c] for i in (0, 2, 3)) / 3
    found = centred(*map(torch.tensor, (logits, taught, sure)))
    np.testing.assert_allclose(found, slow)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_centred_losses_ignore_samples_of_which_the_teacher_is_not_sure(temperature):
    rng = np.random.default_rng(0)
    logits, taught = torch.tensor(rng.normal(size=(2, 20, 3)))
    logits.requires_grad_()
    sure = taught.softmax(dim=1).amax(dim=1) >= 0.6
    losses = consistency_losses(logits, taught, 0.6, temperature, centre=True)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    assert 0 < sure.sum() < 20
    assert not gradient[~sure].any()
    assert (gradient[sure].abs().amax(dim=1) > 1e-3).all()
    nobody = consistency_losses(logits, taught, 1.0, temperature, centre=True)
    (gradient,) = torch.autograd.grad(nobody.sum(), logits)
    assert not nobody.any() and not gradient.any()


def test_centred_losses_leave_half_precision():
    logits, taught = torch.randn(2, 200, 3, generator=torch.Generator().manual_seed(0))
    found, exact = (
        consistency_losses(logits.to(kind), taught.to(kind), 0.0, 1.0, centre=True)
        for kind in (torch.bfloat16, torch.float32)
    )
    assert found.dtype == torch.float32
    rounded = (part.bfloat16().float() for part in (logits, taught))
    expected = consistency_losses(*rounded, 0.0, 1.0, centre=True)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found, exact, atol=0.05, rtol=0)


@pytest.mark.parametrize("centre", [True, False])
def test_centred_targets_move_no_class_for_all_samples(centre):
    """Consistency then does not reach the bias of the last layer."""
    settings = {**MOVED, "temperature": 1.0, "threshold": 0.0}
    objective = Consistency(CAL(), centre=centre, **settings)
    nets, batch = built(objective), all_data()
    averaged = built(clone(objective), seed=1)
    named = losses_of_module(objective, nets, batch, averaged)
    heads = nets["module"].heads
    bias, weight = torch.autograd.grad(
        named["consistency"], [heads.bias, heads.weight], retain_graph=True
    )
    assert weight.abs().max() > 1e-5
    assert bias.abs().max() < 1e-12 if centre else bias.abs().max() > 1e-5
    (bias,) = torch.autograd.grad(named["perturbed_v_h"], heads.bias)
    assert bias.abs().max() > 1e-3


def normalised_over_batches(method, **settings):
    """Losses of a classifier whose batch normalisation is in training."""
    objective = Consistency(get_objective(method, **settings), **MOVED)
    nets, batch = built(objective), all_data()
    nets["module"].train()
    averaged = built(clone(objective))
    return losses_of_module(objective, nets, batch, averaged)


def test_plain_training_normalises_labelled_samples_with_the_pool_if_there_is_one():
    together = normalised_over_batches("erm")
    beside_a_discriminator = normalised_over_batches("cal_fa", lambda_d=0.0)
    for name, value in together.items():
        assert value.item() == pytest.approx(beside_a_discriminator[name].item())
    apart = normalised_over_batches("erm", batch_norm="separate")
    base = get_objective("erm")
    nets, batch = built(base), all_data()
    nets["module"].train()
    alone = batch._replace(pool_X=None, pool_domains=None)
    expected = losses_of_module(base, nets, alone, nets)["v_h"].item()
    assert apart["v_h"].item() == pytest.approx(expected)
    assert together["v_h"].item() != pytest.approx(expected, rel=1e-3)


def test_balanced_targets_are_those_of_a_slow_form():
    objective = Consistency(CAL(), balance=0.7, **MOVED)
    nets, batch = built(objective), all_data()
    taught = objective.predictions(nets, batch.pool_X)["logits"].detach()
    means = np.full((N, 3), 1 / 3)
    for _ in range(2):  # the second step sees the means of the first
        found = objective._balanced(taught, batch.pool_domains)
        p = softmax(taught.numpy(), axis=1)
        for i in range(N):
            own = batch.pool_domains.numpy() == i
            means[i] = 0.95 * means[i] + 0.05 * p[own].mean(axis=0)
        slow = p / means[batch.pool_domains.numpy()] ** 0.7
        slow /= slow.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.softmax(1), slow)
    assert objective.means_.shape == (N, 3)
    objective._balanced(taught[:1], torch.tensor([1]))  # others are as they were
    np.testing.assert_allclose(objective.means_[0], means[0])


def test_balancing_takes_a_class_that_is_predicted_too_often_down():
    logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.5, 0.0]], dtype=torch.float64)
    means = logits.softmax(1).mean(dim=0).expand(3, 2)
    even = balanced(logits, means, 1.0).softmax(1).mean(dim=0)
    assert abs(even[0] - 0.5) < abs(means[0, 0] - 0.5)
    assert torch.equal(balanced(logits, means, 0.0), logits)


def test_the_teacher_learns_nothing_and_the_base_keeps_its_losses():
    base = get_objective("cal_fa")
    objective = Consistency(clone(base), **MOVED)
    nets, batch = built(objective), all_data()
    averaged = built(clone(objective), seed=1)
    named = losses_of_module(objective, nets, batch, averaged)
    named["consistency"].backward()
    assert all(p.grad is None for p in averaged["module"].parameters())
    alone = built(base)
    expected = losses_of_module(base, alone, batch, averaged)
    assert list(named) == [*expected, "consistency", "perturbed_v_h"]
    for name, value in expected.items():
        assert named[name].item() == pytest.approx(value.item())


@pytest.mark.parametrize(
    ("setting", "progress"),
    [({"weight": 0.0}, 0.5), ({"threshold": 0.999}, 0.5), ({"ramp": 0.1}, 0.0)],
)
def test_without_weight_or_certainty_or_progress_there_is_no_loss(setting, progress):
    objective = Consistency(CAL(), **{**MOVED, **setting})
    nets, batch = built(objective), all_data()._replace(progress=progress)
    named = losses_of_module(objective, nets, batch, built(clone(objective), seed=1))
    assert named["consistency"].item() == 0.0


@pytest.fixture
def two_moons():
    """Two classes that only the pool's shape connects: three labels in each."""
    X, truth = make_moons(600, noise=0.06, random_state=0)
    X = X.astype("float32")
    y = np.full(600, -1)
    for label in (0, 1):
        rows = np.flatnonzero(truth == label)
        ends = rows[np.argsort(X[rows, 0])][[0, 150, 299]]
        y[ends] = label
    return X, y, truth


def test_the_pool_teaches_what_few_labels_do_not(two_moons):
    X, y, truth = two_moons
    accuracies = {}
    for method in ("erm", "erm_consistency"):
        scores = []
        for seed in range(2):
            net = CompositeNet(method, max_epochs=8, random_state=seed)
            # A net of many narrow layers, which has much to learn from the pool.
            net.set_params(module__width=64, module__depth=2)
            if method != "erm":
                net.set_params(
                    method__perturb={"name": "features", "drop": 0.0},
                    method__threshold=0.95,
                    method__temperature=0.0,
                )
            scores.append(np.mean(net.fit(X, y).predict(X) == truth))
        accuracies[method] = np.mean(scores)
    assert accuracies["erm_consistency"] > accuracies["erm"] + 0.02


def test_every_method_can_have_it_and_be_saved(two_far_domains, tmp_path):
    X, y, domains = two_far_domains
    for name in objective_names():
        if not name.endswith("_consistency"):
            assert f"{name}_consistency" in objective_names()
            continue
        net = CompositeNet(name, max_epochs=1, steps_per_epoch=2, random_state=0)
        net.set_params(method__threshold=0.6, method__centre=True)
        net.fit(X, y, domains=domains)
        assert "consistency" in net.history[-1]
        path = tmp_path / "net.safetensors"
        net.save(path)
        loaded = CompositeNet.load(path)
        assert loaded.get_params()["method__threshold"] == 0.6
        assert loaded.objective_.targets_["centre"] is True
        np.testing.assert_array_equal(loaded.predict_proba(X), net.predict_proba(X))


def moved(X):
    return X + 0.1


@pytest.mark.parametrize("perturb", ["auto", moved])
def test_a_trained_net_can_be_pickled(perturb, two_far_domains):
    X, y, domains = two_far_domains
    net = CompositeNet("cal_consistency", method__perturb=perturb, random_state=0)
    net.set_params(max_epochs=1, steps_per_epoch=2).fit(X, y, domains=domains)
    copied = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(copied.predict_proba(X), net.predict_proba(X))


def test_the_learners_lambda_d_reaches_the_base(two_far_domains):
    X, y, domains = two_far_domains
    learner = CompositeActiveLearner(method="cal_consistency", lambda_d=0.25)
    learner.set_params(net__max_epochs=1, net__steps_per_epoch=2)
    net = learner.fit(X, domains, y).net_
    assert net.objective_.base.lambda_d == 0.25
    assert len(learner.query(4)) == 4


def test_repetition_is_exact(two_far_domains):
    X, y, domains = two_far_domains
    before = torch.get_rng_state()
    found = [
        CompositeNet("cal_consistency", max_epochs=1, random_state=3)
        .fit(X, y, domains=domains)
        .predict_proba(X)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*found)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"weight": -1}, ValueError, "weight=-1 is out of range"),
        ({"threshold": 2}, ValueError, "threshold=2 is out of range"),
        ({"temperature": -1}, ValueError, "temperature=-1 is out of range"),
        ({"centre": "yes"}, TypeError, "centre='yes'; pass True"),
        ({"balance": 1.5}, ValueError, "balance=1.5 is out of range"),
        ({"label_weight": -1}, ValueError, "label_weight=-1 is out of range"),
        ({"ramp": "slow"}, TypeError, "ramp='slow' is of type str"),
        ({"perturb": "blur"}, ValueError, "perturb='blur' is unknown"),
        ({"base": "cal"}, TypeError, "base='cal' is no objective"),
    ],
)
def test_wrong_parameters_are_named_before_training(
    setting, error, message, two_far_domains
):
    X, y, domains = two_far_domains
    net = CompositeNet(Consistency(CAL()).set_params(**setting))
    with pytest.raises(error, match=message):
        net.fit(X, y, domains=domains)
    assert not net.initialized_
