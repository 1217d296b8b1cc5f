"""The net: training, streams of data, devices, failures, and what it says."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from skorch.callbacks import Checkpoint, EarlyStopping, GradientNormClipping
from skorch.dataset import ValidSplit
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from mdal.divergence import DomainDivergence
from mdal.net import CompositeNet
from mdal.objectives import CAL, METHODS
from mdal.streams import Rows, draws

SMALL = {"module__width": 16, "discriminator__width": 32, "random_state": 0}


def small_net(method="cal", **settings):
    return CompositeNet(method, **{**SMALL, "max_epochs": 2, **settings})


def weights(net):
    return torch.cat([p.flatten() for p in net.averaged_.module.parameters()]).detach()


def same_weights(one, other):
    return torch.equal(weights(one), weights(other))


# Learning


def test_the_discriminator_beats_chance_on_domains_that_can_be_told_apart():
    """Labels from a part of the domain only: f knows which part that is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] > 0.5, (X[:, 1] > 0).astype(int), -1)
    net = small_net("cal_alpha", max_epochs=6).fit(X, y)
    outlier = net.observe(X, np.zeros(600, int)).outlier
    assert outlier[X[:, 0] < 0].mean() > 0.95
    # Where labels are, densities are p and p / P(labelled), so f tends to
    # 1 / (1 + 1 / P(labelled)).
    share = (y >= 0).mean()
    assert outlier[y >= 0].mean() == pytest.approx(1 / (1 + 1 / share), abs=0.08)
    misses, hits = net.tables_.misses[0], net.tables_.hits[0, 0]
    assert (misses + hits) / 2 < 0.3


def test_the_discriminator_falls_to_chance_on_identical_domains():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.where(rng.uniform(size=3000) < 0.5, (X[:, 1] > 0).astype(int), -1)
    domains = np.arange(3000) % 2
    net = small_net("cal_fa", max_epochs=6, method__alignment=False)
    net.fit(X, y, domains=domains)
    assert net.history[-1, "v_d"] > 0.66  # log 2 is 0.693
    assert np.abs(net.observe(X, domains).outlier - 0.5).mean() < 0.1


def test_alignment_reduces_the_divergence_of_features():
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b"], 600)
    X = rng.normal(size=(1200, 6))
    X[domains == "b", 3:] += 2.0
    y = np.where(rng.uniform(size=1200) < 0.3, (X[:, 0] > 0).astype(int), -1)
    distances = {}
    for lambda_d in (0.0, 1.0):
        net = small_net("cal_fa", max_epochs=10, method__lambda_d=lambda_d)
        features = net.fit(X, y, domains=domains).observe(X).features
        divergence = DomainDivergence(random_state=0).fit(features, y, domains=domains)
        distances[lambda_d] = divergence.distances_.mean()
    assert distances[1.0] < 0.6 * distances[0.0]


@pytest.fixture(scope="module")
def rotated_digits():
    """scikit-learn's digits as they are and turned by 90 degrees, and their classes."""
    images, y = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8).astype(np.float32) / 16
    order = np.random.default_rng(0).permutation(len(y))
    images, y = images[order], y[order]
    return images, np.rot90(images, axes=(1, 2)), y


@pytest.mark.parametrize("upright", [[0], [0, 1, 2]])  # the paper's D1&5 and D3&3
def test_alpha_finds_the_planted_groups_of_domains(rotated_digits, upright):
    images, turned, y = rotated_digits
    domains = np.arange(len(y)) % 6
    is_upright = np.isin(domains, upright)
    X = np.where(is_upright[:, None, None], images, turned)
    labels = np.where(np.arange(len(y)) % 4 == 0, y, -1)
    net = CompositeNet(
        "cal_alpha", module__width=32, max_epochs=8, optimizer_alpha__lr=0.2,
        random_state=0,
    )  # fmt: skip
    alpha = net.fit(X, labels, domains=domains).alpha_
    same = np.equal.outer(np.isin(range(6), upright), np.isin(range(6), upright))
    assert (alpha * same).sum(axis=1).min() > 0.8


def test_every_method_learns(two_far_domains):
    X, y, domains = two_far_domains
    labelled = y >= 0
    for method in ("cal_consistency", "man_consistency", *METHODS):
        net = small_net(method, max_epochs=4).fit(X, y, domains=domains)
        assert (net.predict(X, domains) == y)[labelled].mean() > 0.9, method
        assert hasattr(net, "alpha_") == net.objective_.has_alpha
        assert np.shape(getattr(net, "alpha_", np.eye(2))) == (2, 2)


# The same answer twice


def test_the_same_seed_gives_the_same_weights_in_a_fresh_process():
    code = """
import numpy as np, torch
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4)); y = np.where(np.arange(80) % 3 == 0, X[:, 0] > 0, -1)
from mdal.net import CompositeNet
net = CompositeNet(max_epochs=2, module__width=8, random_state=5)
net.fit(X, y, domains=np.arange(80) % 2)
total = sum(p.double().sum() for p in net.averaged_.parameters())
print(repr(total.item()), repr(net.alpha_.tolist()), repr(net.history[-1, "v_d"]))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1


def test_other_seeds_give_other_weights(two_far_domains):
    X, y, domains = two_far_domains
    one = small_net(max_epochs=1).fit(X, y, domains=domains)
    other = small_net(max_epochs=1, random_state=1).fit(X, y, domains=domains)
    assert not same_weights(one, other)


def test_global_generators_are_left_alone(two_far_domains):
    X, y, domains = two_far_domains
    encoder = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2))
    torch.manual_seed(3)
    np.random.seed(3)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    for seed in (0, None):
        net = small_net(max_epochs=1, module__encoder=encoder, random_state=seed)
        net.fit(X, y, domains=domains).predict(X)
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])


def test_dropout_follows_the_seed(two_far_domains):
    X, y, domains = two_far_domains
    encoder = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2))
    nets = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        net = small_net(max_epochs=1, module__encoder=encoder)
        nets.append(net.fit(X, y, domains=domains))
    assert same_weights(*nets)


def test_threads_give_the_same_weights_and_leave_the_generator_alone(two_far_domains):
    X, y, domains = two_far_domains
    torch.manual_seed(3)
    before, interval = torch.get_rng_state(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns as often as can be
    try:
        results = [
            joblib.Parallel(n_jobs=4, backend=backend)(
                joblib.delayed(_alpha_of)(seed, X, y, domains) for seed in range(8)
            )
            for backend in ("threading", "sequential")
        ]
    finally:
        sys.setswitchinterval(interval)
    np.testing.assert_array_equal(*results)
    assert torch.equal(before, torch.get_rng_state())


def _alpha_of(seed, X, y, domains):
    net = small_net(max_epochs=1, steps_per_epoch=5, random_state=seed)
    return net.fit(X, y, domains=domains).predict_proba(X)


# Data of every kind


class Sliceable:
    """Nothing but a length and slices, as some files have."""

    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, where):
        assert isinstance(where, slice)
        return self.X[where]


class Items(Dataset):
    """A dataset of pairs."""

    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, row):
        return torch.tensor(self.X[row]), 0


def memmap(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


@pytest.mark.parametrize(
    "kind", ["memmap", "sliceable", "items", "tensors", "tensor", "frame", "list"]
)
def test_streams_train_the_same_net_as_arrays(kind, two_far_domains, tmp_path):
    X, y, domains = two_far_domains
    X = X.astype(np.float32)
    source = {
        "memmap": lambda: memmap(X, tmp_path),
        "sliceable": lambda: Sliceable(X),
        "items": lambda: Items(X),
        "tensors": lambda: TensorDataset(torch.tensor(X)),
        "tensor": lambda: torch.tensor(X),
        "frame": lambda: pd.DataFrame(X),
        "list": lambda: X.tolist(),
    }[kind]()
    streamed = kind in ("memmap", "sliceable", "items", "tensors")
    assert Rows(source).in_memory != streamed
    ours = small_net(max_epochs=1).fit(source, y, domains=domains)
    theirs = small_net(max_epochs=1).fit(X, y, domains=domains)
    assert same_weights(ours, theirs)
    np.testing.assert_array_equal(ours.predict_proba(source), theirs.predict_proba(X))


def test_bytes_stay_bytes_until_they_are_used():
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8)).astype(np.uint8)
    rows = Rows(images)
    assert rows._source.dtype == torch.uint8
    np.testing.assert_array_equal(rows[[3, 1]], images[[3, 1]].astype(np.float32))
    np.testing.assert_array_equal(next(rows.blocks(4)), images[:4].astype(np.float32))


def test_arrays_that_are_turned_round_are_taken():
    images = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for X in (images[:, ::-1], images[::-1], np.rot90(images, axes=(1, 2))):
        np.testing.assert_array_equal(Rows(X)[[1]], X[[1]])


def test_predictions_leave_the_samples_as_they_are():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    before = X.copy()
    encoder = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 4))
    net = small_net(module__encoder=encoder, max_epochs=1).fit(X, np.arange(20) % 2)
    net.predict(X)
    np.testing.assert_array_equal(X, before)


def test_read_only_arrays_are_copied_and_others_shared():
    X = np.ones((4, 2), dtype=np.float32)
    assert Rows(X)._source.data_ptr() == X.__array_interface__["data"][0]
    X.setflags(write=False)
    assert Rows(X)[[0]].tolist() == [[1, 1]]


def test_every_row_is_drawn_once_before_any_comes_again():
    rows = np.array([3, 5, 8, 9, 11, 12, 20])
    stream = draws(rows, 3, torch.Generator().manual_seed(0))
    drawn = torch.cat([next(stream) for _ in range(7)]).view(3, 7)
    for order in drawn:
        assert sorted(order.tolist()) == rows.tolist()
    few = draws(rows, 100, torch.Generator())
    assert sorted(next(few).tolist()) == rows.tolist()


@pytest.mark.parametrize("n_labelled", [1, 2, 101])
def test_any_number_of_labels_will_do(n_labelled):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.full(150, -1)
    y[:n_labelled] = np.arange(n_labelled) % 2
    net = small_net(max_epochs=1).fit(X, y, domains=np.arange(150) % 2)
    assert set(net.predict(X)) <= {0, 1}


def test_one_domain_one_row_in_a_batch():
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = (X[:, 0] > 0).astype(int)
    net = small_net(batch_size=1, max_epochs=1).fit(X, y)
    assert net.alpha_.tolist() == [[1.0]]
    assert np.isfinite(net.predict_proba(X)).all()


def test_a_domain_without_labels_is_part_of_the_pool(two_far_domains):
    X, y, domains = two_far_domains
    y = np.where(domains == "near", y, -1)
    net = small_net().fit(X, y, domains=domains)
    np.testing.assert_array_equal(net.alpha_, [[1, 0], [1, 0]])


def test_a_pass_over_the_labels_can_be_an_epoch():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(np.arange(60) < 25, (X[:, 0] > 0).astype(int), -1)
    net = small_net(steps_per_epoch=None, batch_size=10).fit(X, y)
    assert [len(epoch["batches"]) for epoch in net.history] == [3, 3]


# What it says


def test_the_history_has_the_losses_alpha_and_the_tables(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(max_epochs=3).fit(X, y, domains=domains)
    assert len(net.history) == 3
    for epoch in net.history:
        for name in ("v_h", "v_d", "v_lambda"):
            values = [batch[name] for batch in epoch["batches"]]
            assert epoch[name] == pytest.approx(np.mean(values))
        assert np.sum(epoch["alpha"], axis=1) == pytest.approx([1, 1])
        assert np.shape(epoch["tables"]["errors"]) == (3, 2)
    np.testing.assert_allclose(net.history[-1, "alpha"], net.alpha_)
    np.testing.assert_allclose(net.history[-1, "tables"]["hits"], net.tables_.hits)


def test_it_is_silent_unless_asked(two_far_domains, capsys):
    X, y, domains = two_far_domains
    small_net().fit(X, y, domains=domains)
    assert capsys.readouterr() == ("", "")
    small_net(verbose=1).fit(X, y, domains=domains)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4  # head, rule, and a line for each epoch
    assert "v_lambda" in out
    assert "alpha " not in out
    assert "50/50" in err or "it/s" in err


def test_observations_are_of_one_pass(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net().fit(X, y, domains=domains)
    seen = net.observe(X, domains)
    assert seen.logits.shape == (400, 2)
    assert seen.features.shape == seen.penultimate.shape == (400, 100)
    assert seen.outlier.shape == (400,)
    assert ((seen.outlier >= 0) & (seen.outlier <= 1)).all()
    assert net.observe(X).outlier is None
    np.testing.assert_array_equal(
        net.predict(X), net.classes_[seen.logits.argmax(axis=1)]
    )
    assert net.predict_proba(X).dtype == np.float32
    np.testing.assert_allclose(net.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


def test_predictions_come_from_the_averaged_net(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net().fit(X, y, domains=domains)
    last = small_net(average_decay=0.0).fit(X, y, domains=domains)
    for name in ("module", "discriminator", "surrogates"):
        for raw, averaged in zip(
            getattr(last, f"{name}_").state_dict().values(),
            last.averaged_.module[name].state_dict().values(),
            strict=True,
        ):
            torch.testing.assert_close(raw, averaged)
    assert not same_weights(net, last)
    torch.testing.assert_close(  # training itself is the same
        net.module_.heads.weight, last.module_.heads.weight
    )


def test_the_average_is_that_of_the_weights_over_time():
    """A net that forgets nothing of its first steps is not far from their mean."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    seen = []

    class Watch(CompositeNet):
        def train_step(self, batch, **params):
            step = super().train_step(batch, **params)
            seen.append(self.module_.heads.weight.detach().clone())
            return step

    net = Watch("erm", average_decay=0.8, steps_per_epoch=30, max_epochs=1, **SMALL)
    net.fit(X, y)
    expected = seen[0].clone()  # the first update copies
    for n, weight in enumerate(seen[1:], 1):
        share = max(0.2, 9 / (n + 10))
        expected += share * (weight - expected)
    torch.testing.assert_close(
        net.averaged_.module["module"].heads.weight, expected, rtol=1e-4, atol=1e-6
    )
    raw, averaged = (
        nets["module"].encoder[2].running_mean
        for nets in (net._nets(), net.averaged_.module)
    )
    assert 0 < (raw - averaged).abs().max() < 0.5  # buffers are averaged, too


# A scikit-learn estimator


def test_it_can_be_cloned_pickled_and_dumped(two_far_domains, tmp_path):
    X, y, domains = two_far_domains
    net = small_net(method__lambda_d=0.5).fit(X, y, domains=domains)
    copied = clone(net)
    assert copied.get_params()["method__lambda_d"] == 0.5
    assert same_weights(copied.fit(X, y, domains=domains), net)
    joblib.dump(net, tmp_path / "net.joblib")
    for other in (
        pickle.loads(pickle.dumps(net)),
        joblib.load(tmp_path / "net.joblib"),
        copy.deepcopy(net),
    ):
        np.testing.assert_array_equal(other.predict_proba(X), net.predict_proba(X))
        assert other.device == "auto"
        assert same_weights(other.fit(X, y, domains=domains), net)


def test_everything_has_a_nested_name(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(
        max_epochs=1,
        optimizer__weight_decay=0.01,
        optimizer_discriminator=torch.optim.SGD,
        optimizer_discriminator__lr=0.5,
        optimizer_alpha__lr=0.3,
        discriminator__index="one_hot",
        method__third_term=False,
    ).fit(X, y, domains=domains)
    assert net.optimizer_.param_groups[0]["weight_decay"] == 0.01
    assert isinstance(net.optimizer_discriminator_, torch.optim.SGD)
    assert net.optimizer_discriminator_.param_groups[0]["lr"] == 0.5
    assert net.optimizer_alpha_.param_groups[0]["lr"] == 0.3
    assert net.discriminator_.table.shape == (2, 2)
    assert net.module_.n_heads == 1
    net.set_params(method__lambda_d=0.2, module__width=8, max_epochs=2)
    net.fit(X, y, domains=domains)
    assert net.objective_.lambda_d == 0.2
    assert net.module_.encoder[1].out_features == 8
    net.set_params(optimizer_alpha__lr=0.7)
    assert net.optimizer_alpha_.param_groups[0]["lr"] == 0.7


def test_parts_of_the_encoder_can_have_a_learning_rate_of_their_own(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(
        max_epochs=1, optimizer__param_groups=[("encoder*", {"lr": 0.0})]
    ).fit(X, y, domains=domains)
    assert [g["lr"] for g in net.optimizer_.param_groups] == [0.0, 1e-3]


def test_another_method_leaves_nothing_of_the_last_one(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(max_epochs=1).fit(X, y, domains=domains)
    net.set_params(method="erm").fit(X, y, domains=domains)
    assert not hasattr(net, "discriminator_")
    assert not hasattr(net, "optimizer_alpha_")
    fresh = small_net("erm", max_epochs=1).fit(X, y, domains=domains)
    assert same_weights(pickle.loads(pickle.dumps(net)), fresh)
    net.set_params(method="cal").fit(X, y, domains=domains)
    assert net.observe(X, domains).outlier is not None


def test_unknown_parameters_are_named(two_far_domains):
    X, y, domains = two_far_domains
    with pytest.raises(ValueError, match="widht"):
        small_net(widht=3).fit(X, y, domains=domains)
    with pytest.raises(ValueError, match="lambda"):
        small_net(method__lambda=3).fit(X, y, domains=domains)


def test_gradients_can_be_clipped_and_training_stopped_early(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(
        max_epochs=40,
        steps_per_epoch=10,
        train_split=ValidSplit(0.25, stratified=True, random_state=0),
        callbacks=[
            EarlyStopping(patience=2, sink=lambda text: None),
            GradientNormClipping(0.1),
        ],
    ).fit(X, y, domains=domains)
    assert len(net.history) < 40
    assert np.isfinite(net.history[:, "valid_loss"]).all()
    assert net.history[-1, "valid_accuracy"] > 0.8


class HoldOut:
    """Holds out the rows of one class."""

    def __init__(self, held_out):
        self.held_out = held_out

    def __call__(self, dataset, y):
        return [
            torch.utils.data.Subset(dataset, np.flatnonzero(part))
            for part in (y != self.held_out, y == self.held_out)
        ]


def test_held_out_rows_are_not_trained_on():
    """A class that is only in the held-out rows stays unknown."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.repeat([0, 1], 30)
    net = small_net("erm", max_epochs=5, train_split=HoldOut(1))
    net.fit(X, y, domains=np.arange(60) % 3 // 2)
    assert set(net.predict(X)) == {0}
    assert net.task_.counts.tolist() == [20, 10]
    with torch.no_grad():  # of the averaged net
        logits = net.averaged_.module["module"](torch.tensor(X[30:]).float())
    expected = nn.functional.cross_entropy(logits, torch.ones(30).long()).item()
    assert net.history[-1, "valid_loss"] == pytest.approx(expected, rel=1e-5)
    assert net.history[-1, "valid_accuracy"] == 0


def test_a_split_may_hold_nothing_out_but_has_to_be_one(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(max_epochs=1, train_split=lambda dataset, y: (dataset, None))
    assert "valid_loss" not in net.fit(X, y, domains=domains).history[-1]
    for wrong in (5, lambda dataset, y: dataset):
        with pytest.raises(TypeError, match="ValidSplit"):
            small_net(train_split=wrong).fit(X, y, domains=domains)


def test_callbacks_that_bring_back_weights_are_refused(two_far_domains):
    X, y, domains = two_far_domains
    for callback in (EarlyStopping(load_best=True), ("c", Checkpoint(load_best=True))):
        net = small_net(callbacks=[callback], train_split=ValidSplit(2))
        with pytest.raises(ValueError, match="leave load_best=False"):
            net.fit(X, y, domains=domains)
    with pytest.raises(TypeError, match="use save"):
        small_net().load_params("x")


# Going on, and failing


def test_a_warm_start_goes_on_from_the_last_weights(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(warm_start=True).fit(X, y, domains=domains)
    first = net.module_.heads.weight.detach().clone()
    n_epochs = len(net.history)
    net.fit(X, y, domains=domains)
    assert len(net.history) == 2 * n_epochs
    assert (net.module_.heads.weight - first).abs().max() < 0.2
    cold = small_net().fit(X, y, domains=domains)
    cold.fit(X, y, domains=domains)
    torch.testing.assert_close(cold.module_.heads.weight, first)


def test_a_warm_start_needs_the_same_classes_and_domains(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net().fit(X, y, domains=domains)
    before = weights(net).clone()
    for wrong, match in (
        ({"y": np.where(y >= 0, y + 1, -1)}, "classes"),
        ({"domains": np.char.add(domains, "x")}, "domains"),
        ({"X": X[:, :2]}, "shape"),
    ):
        changed = {"X": X, "y": y, "domains": domains, **wrong}
        with pytest.raises(ValueError, match=match):
            net.partial_fit(changed["X"], changed["y"], domains=changed["domains"])
    assert torch.equal(weights(net), before)


class Spoiled(CAL):
    """Loses its head in the 60th step of its life."""

    steps = 0

    def losses(self, nets, batch, averaged):
        self.steps += 1
        factor = torch.nan if self.steps == 60 else 1.0
        return super().losses(nets, batch._replace(X=factor * batch.X), averaged)


@pytest.mark.parametrize("go_on", [False, True])
def test_a_loss_that_explodes_leaves_the_previous_state(go_on, two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(Spoiled(), max_epochs=1, warm_start=go_on)
    net.fit(X, y, domains=domains)
    state, history = copy.deepcopy(net.module_.state_dict()), copy.deepcopy(net.history)
    before = net.predict_proba(X)
    net.set_params(max_epochs=2)
    with pytest.raises(FloatingPointError, match="lower learning rate"):
        net.fit(X, y, domains=domains)
    np.testing.assert_array_equal(net.predict_proba(X), before)
    for name, value in net.module_.state_dict().items():
        assert torch.equal(value, state[name])
    assert net.history == history
    net.set_params(max_epochs=1)
    net.objective_.steps = 0
    net.fit(X, y, domains=domains)  # and it can be trained again


def test_a_last_step_that_explodes_is_noticed(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net("erm", lr=1e38, max_epochs=1, steps_per_epoch=1)
    with pytest.raises(FloatingPointError, match="lower learning rate"):
        net.fit(X, y, domains=domains)
    assert not net.initialized_


def test_an_interrupt_ends_the_training_and_keeps_what_was_learned(two_far_domains):
    X, y, domains = two_far_domains

    class Interrupted(CompositeNet):
        def train_step(self, batch, **params):
            if len(self.history) == 3:
                raise KeyboardInterrupt
            return super().train_step(batch, **params)

    net = Interrupted(max_epochs=9, **SMALL).fit(X, y, domains=domains)
    assert (net.predict(X) == y)[y >= 0].mean() > 0.9
    assert net.tables_.hits.shape == (2, 2)


def test_a_domain_that_gets_its_first_label_later_is_trained_on():
    rng = np.random.default_rng(0)
    domains = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 2)) + 6.0 * domains[:, None]
    truth = (X[:, 0] > 6.0 * domains) ^ (domains == 1)
    for method in ("erm", "cal"):
        net = small_net(method, max_epochs=4, warm_start=True)
        net.fit(X, np.where(domains == 0, truth, -1), domains=domains)
        assert net.alpha_[:, 1].tolist() == [0, 0]
        net.fit(X, truth.astype(int), domains=domains)
        assert net.alpha_[1, 1] > 0.4
        assert (net.predict(X) == truth)[domains == 1].mean() > 0.9


def test_going_on_draws_other_rows(two_far_domains):
    X, y, domains = two_far_domains
    seen = []

    class Watch(CompositeNet):
        def train_step(self, batch, **params):
            seen.append(tuple(batch.pool_X[:, 0].tolist()))
            return super().train_step(batch, **params)

    net = Watch(max_epochs=1, steps_per_epoch=2, batch_size=10, **SMALL)
    for _ in range(3):
        net.partial_fit(X, y, domains=domains)
    assert len(set(seen)) == 6


def test_the_progress_goes_from_nothing_to_all(two_far_domains):
    X, y, domains = two_far_domains
    seen = []

    class Watch(CompositeNet):
        def train_step(self, batch, **params):
            seen.append(batch.progress)
            return super().train_step(batch, **params)

    Watch("erm", max_epochs=2, steps_per_epoch=4, **SMALL).fit(X, y, domains=domains)
    np.testing.assert_allclose(seen, np.arange(8) / 8)


def test_settings_of_a_warm_start_take_effect(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(max_epochs=1, warm_start=True).fit(X, y, domains=domains)
    net.set_params(average_decay=0.0, precision="float16").fit(X, y, domains=domains)
    torch.testing.assert_close(
        net.averaged_.module["module"].heads.weight, net.module_.heads.weight
    )
    assert net.scaler_.is_enabled()


def test_setting_a_width_leaves_the_global_generator_alone(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(max_epochs=1).fit(X, y, domains=domains)
    before = torch.get_rng_state()
    net.set_params(module__width=4)
    assert torch.equal(before, torch.get_rng_state())


def test_few_labels_of_long_vectors_go_as_far_as_with_a_linear_classifier():
    rng = np.random.default_rng(1)
    y = rng.integers(5, size=600)
    X = 0.35 * rng.normal(size=(5, 200))[y] + rng.normal(size=(600, 200))
    labelled = np.arange(600) < 40
    linear = LogisticRegression().fit(X[labelled], y[labelled])
    net = CompositeNet("erm", max_epochs=8, random_state=0)
    for scale in (1.0, 100.0):
        net.fit(scale * X, np.where(labelled, y, -1))
        right = net.predict(scale * X[~labelled]) == y[~labelled]
        assert right.mean() > linear.score(X[~labelled], y[~labelled]) - 0.03


def test_a_frozen_encoder_stays_frozen(two_far_domains):
    X, y, domains = two_far_domains
    encoder = nn.Linear(3, 8).requires_grad_(False)
    net = small_net(module__encoder=encoder).fit(X, y, domains=domains)
    assert torch.equal(net.module_.encoder.weight, encoder.weight)
    assert (net.predict(X) == y)[y >= 0].mean() > 0.9


def test_nothing_can_be_asked_of_a_net_that_is_not_fitted():
    X = np.ones((2, 3))
    for ask in (
        lambda net: net.predict(X),
        lambda net: net.observe(X),
        lambda net: net.alpha_,
        lambda net: net.save("nowhere"),
    ):
        with pytest.raises(NotFittedError):
            ask(CompositeNet())
    with pytest.raises(TypeError, match="call fit"):
        CompositeNet().initialize()


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"y": [-1] * 8}, "no label at all"),
        ({"y": [0] * 7}, "7 values for 8"),
        ({"domains": ["a"] * 7}, "7 values for 8"),
        ({"X": np.full((8, 2), np.nan)}, "NaN"),
        ({"X": np.ones(8)}, "shape"),
        ({"X": np.ones((0, 2))}, "0 sample"),
        ({"X": np.ones((8, 2)) * 1j}, "omplex"),
        ({"X": Sliceable(np.full((8, 2), np.nan))}, "NaN"),
        ({"X": Sliceable(np.ones(8))}, "shape"),
        ({"X": Items(np.ones((8, 2)) * 1j)}, "omplex"),
    ],
)
def test_wrong_data_are_named(wrong, match):
    data = {"X": np.ones((8, 2)), "y": [0, 1] * 4, "domains": ["a", "b"] * 4, **wrong}
    net = CompositeNet()
    with pytest.raises(ValueError, match=match):
        net.fit(data["X"], data["y"], domains=data["domains"])
    assert not net.initialized_


class Dicts(Items):
    def __getitem__(self, row):
        return {"image": self.X[row]}


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (None, "NoneType"),
        ({"a": 1}, "dict"),
        (torch.ones(8, 2).to_sparse(), "to_dense"),
        (Dicts(np.ones((8, 2))), "image"),
    ],
)
def test_data_of_wrong_types_are_named(X, match):
    with pytest.raises(TypeError, match=match):
        CompositeNet().fit(X, [0, 1] * 4)


def test_methods_that_yield_nonsense_are_named():
    class Elsewhere(CAL):
        def losses(self, nets, batch, averaged):
            yield "elsewhere", {"loss": nets["module"](batch.X).mean()}

    class Nowhere(CAL):
        def losses(self, nets, batch, averaged):
            yield "discriminator", {"loss": nets["discriminator"].layers[-1].bias.sum()}

    X, y = np.ones((8, 2)), [0, 1] * 4
    with pytest.raises(ValueError, match="'elsewhere'; its groups are module"):
        small_net(Elsewhere()).fit(X, y)
    with pytest.raises(ValueError, match="no loss of group 'module'"):
        small_net(Nowhere()).fit(X, y)
    with pytest.raises(TypeError, match="pass a class"):
        small_net(module=nn.Linear(2, 2)).fit(X, y)


@pytest.mark.parametrize(
    "name", ["max_epochs", "batch_size", "pool_batch_size", "steps_per_epoch"]
)
def test_counts_are_ints(name):
    with pytest.raises(TypeError, match=rf"{name}=2\.0 is no int; pass 2"):
        CompositeNet(**{name: 2.0}).fit(np.ones((4, 2)), [0, 1, 0, 1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_epochs": -1},
        {"batch_size": 0},
        {"pool_batch_size": 0},
        {"steps_per_epoch": 0},
        {"average_decay": 2.0},
        {"precision": "float8"},
    ],
)
def test_wrong_parameters_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        CompositeNet(**wrong).fit(np.ones((4, 2)), [0, 1, 0, 1])


def test_predictions_for_other_samples_are_refused(two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(max_epochs=1).fit(X, y, domains=domains)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        net.predict(X[:, :2])
    with pytest.raises(ValueError, match="'moon'"):
        net.observe(X, ["moon"] * 400)


# Precision and compilation


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_learns(precision, two_far_domains):
    X, y, domains = two_far_domains
    net = small_net(max_epochs=4, precision=precision).fit(X, y, domains=domains)
    assert (net.predict(X) == y)[y >= 0].mean() > 0.9
    assert net.module_.heads.weight.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch's own
def test_compiled_parts_keep_the_names_of_their_weights(two_far_domains):
    X, y, domains = two_far_domains
    settings = {"compile": True, "compile__backend": "eager"}
    net = small_net(max_epochs=1, **settings).fit(X, y, domains=domains)
    plain = small_net(max_epochs=1).fit(X, y, domains=domains)
    assert list(net.module_.state_dict()) == list(plain.module_.state_dict())
    torch.testing.assert_close(weights(net), weights(plain))


def test_sparse_samples_are_the_same_as_dense_ones():
    X = np.random.default_rng(0).normal(size=(30, 4)).round().astype(np.float32)
    y = np.arange(30) % 2
    nets = [
        CompositeNet(max_epochs=1, steps_per_epoch=5, random_state=0).fit(form, y)
        for form in (X, csr_array(X))
    ]
    assert np.array_equal(nets[0].predict_proba(X), nets[1].predict_proba(csr_array(X)))


@pytest.mark.parametrize("shape", [(5,), (1, 8, 8)])
def test_a_sample_gets_the_same_answer_in_any_company(shape):
    X = np.random.default_rng(0).normal(size=(43, *shape)).astype(np.float32)
    y, domains = np.arange(43) % 3, np.arange(43) % 2
    net = CompositeNet(max_epochs=1, steps_per_epoch=5, random_state=0)
    net.fit(X, y, domains=domains)
    whole = net.observe(X, domains)
    for rows in ([0], [42], [7, 3], list(range(5, 30))):
        part = net.observe(X[rows], domains[rows])
        for name in ("logits", "penultimate", "features", "outlier"):
            expected = getattr(whole, name)[rows]
            assert np.array_equal(getattr(part, name), expected), name
