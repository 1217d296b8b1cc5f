"""Devices that this machine does not have.

Whole steps run on torch's device "meta", where every operation checks shapes and mixed
devices but nothing is computed; forward passes run on a CUDA device that torch makes
believe in.
"""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from mdal.modules import (
    CompositeClassifier,
    ConditionalDiscriminator,
    SharedPrivateClassifier,
)
from mdal.net import CompositeNet
from mdal.objectives import CAL, Batch, Task, get_objective, objective_names
from mdal.objectives import _cal as cal_module
from mdal.tables import DomainTables

N, N_CLASSES = 4, 3
TASK = Task((1, 12, 12), N_CLASSES, np.array([3, 1, 2, 2]), np.array([9, 9, 9, 9]))


def batch_on(device):
    def whole(n, high):
        return torch.arange(n, device=device) % high

    return Batch(
        torch.zeros(8, 1, 12, 12, device=device),
        whole(8, N_CLASSES),
        whole(8, N),
        torch.zeros(10, 1, 12, 12, device=device),
        whole(10, N),
    )


def built(objective):
    return objective.build(lambda name, default, **settings: default(**settings), TASK)


@pytest.fixture
def tables_stay_behind(monkeypatch):
    """A meta tensor has no numbers to hand over: chance takes their place."""

    def chance(sums, counts, kind):
        shapes = [tuple(part.shape) for part in sums.means()]
        assert shapes[:2] == [(N,), (N, N)]
        assert all(part.device.type == "meta" for part in sums)
        return DomainTables(np.full(N, 0.5), np.full((N, N), 0.5), counts)

    monkeypatch.setattr(cal_module, "_handed_over", chance)
    monkeypatch.setattr(
        cal_module.Surrogates, "forward", lambda self: np.full((N, N), 1 / N)
    )
    # Nor can its rows be dealt out to encoders by domain: all see all of them.
    monkeypatch.setattr(
        SharedPrivateClassifier,
        "private_features",
        lambda self, X, domains: sum(encoder(X) for encoder in self.private),
    )


@pytest.mark.parametrize("batch_norm", ["separate", "together"])
@pytest.mark.parametrize("max_pairs", [2000, 10])
@pytest.mark.parametrize("method", objective_names())
def test_a_whole_step_stays_on_its_device(
    method, max_pairs, batch_norm, tables_stay_behind
):
    objective = get_objective(method)
    base = getattr(objective, "base", objective)
    if isinstance(base, CAL):
        base.set_params(max_pairs=max_pairs, batch_norm=batch_norm, alpha_from=0.0)
    nets = {name: net.to("meta") for name, net in built(objective).items()}
    objective.start(nets, nets, TASK)
    groups = objective.groups(nets)
    seen = set()
    for name, named in objective.losses(nets, batch_on("meta"), nets):
        parameters = [p for _, p in groups[name].parameters]
        sum(named.values()).backward(inputs=parameters)
        assert all(p.grad is None or p.grad.device.type == "meta" for p in parameters)
        if name != "alpha":
            torch.optim.Adam(parameters, foreach=False).step()
        seen.add(name)
    assert seen == set(groups)


def test_a_tensor_on_another_device_would_be_noticed(tables_stay_behind):
    objective = CAL(alpha_from=0.0)
    nets = {name: net.to("meta") for name, net in built(objective).items()}
    objective.start(nets, nets, TASK)
    objective.beta_ = torch.ones(N)
    objective.gamma_ = torch.ones(N)
    with pytest.raises(RuntimeError, match="devic"):
        for _ in objective.losses(nets, batch_on("meta"), nets):
            pass


class Calls(torch.nn.Module):
    """Calls any method of a network, so that its weights can be replaced."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, name, *inputs):
        return getattr(self.net, name)(*inputs)


@pytest.mark.parametrize("shape", [(1, 12, 12), (7,)])
@pytest.mark.parametrize("index", ["scalar", "one_hot"])
def test_forward_passes_stay_on_a_gpu(shape, index):
    module = CompositeClassifier(shape, N_CLASSES, N).eval()
    f = ConditionalDiscriminator(module.n_features, N, index=index).eval()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():

        def on_gpu(tensor):
            return torch.empty(tensor.shape, dtype=tensor.dtype, device="cuda")

        def call(net, *inputs):
            net = Calls(net)
            parts = [*net.named_parameters(), *net.named_buffers()]
            weights = {name: on_gpu(part) for name, part in parts}
            return torch.func.functional_call(net, weights, inputs)

        X = torch.empty(5, *shape, device="cuda")
        domains = torch.empty(5, dtype=torch.long, device="cuda")
        z = call(module, "embed", X)
        outputs = [
            call(module, "forward", X),
            call(module, "all_logits", z),
            call(f, "forward", z, domains),
        ]
    assert [tuple(o.shape) for o in outputs] == [(5, 3), (5, 5, 3), (5,)]
    assert {o.device.type for o in outputs} == {"cuda"}


def test_auto_takes_a_gpu_where_there_is_one(monkeypatch):
    net = CompositeNet()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert net._resolved_device() == torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert net._resolved_device() == torch.device("cpu")
    assert net.get_params()["device"] == "auto"


def test_a_device_that_is_not_there_is_an_error_and_changes_nothing(two_far_domains):
    if torch.cuda.is_available():
        return  # then it is there
    X, y, domains = two_far_domains
    net = CompositeNet(device="cuda")
    with pytest.raises(ValueError, match="device='cuda', and torch sees no GPU"):
        net.fit(X, y, domains=domains)
    assert not net.initialized_
