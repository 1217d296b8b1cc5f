"""A small task for objectives, exact enough for comparisons with slow forms."""

import numpy as np
import torch

from mdal.objectives import Batch, Task

N, N_CLASSES, N_INPUTS = 3, 3, 4
COUNTS, SIZES = np.array([2, 7, 3]), np.array([9, 5, 16])
LR = {"module": 0.1, "discriminator": 0.01, "alpha": 0.3, "domain_classifier": 0.05}


def all_data(seed=0):
    """A batch of all labelled rows and of the whole pool, in double precision."""
    rng = np.random.default_rng(seed)
    domains, pool_domains = np.repeat(range(N), COUNTS), np.repeat(range(N), SIZES)
    return Batch(
        torch.tensor(rng.normal(size=(COUNTS.sum(), N_INPUTS))),
        torch.tensor(rng.integers(N_CLASSES, size=COUNTS.sum())),
        torch.tensor(domains),
        torch.tensor(rng.normal(size=(SIZES.sum(), N_INPUTS))),
        torch.tensor(pool_domains),
        progress=0.25,
        generator=torch.Generator().manual_seed(seed),
    )


def built(objective, seed=0, n_domains=N, counts=COUNTS, sizes=SIZES):
    """The objective's networks, frozen batch normalisation, double precision."""
    torch.manual_seed(seed)
    task = Task((N_INPUTS,), N_CLASSES, counts, sizes)
    small = {
        "module": {"width": 5, "depth": 2},
        "discriminator": {"width": 6},
        "domain_classifier": {"width": 7},
    }
    nets = objective.build(
        lambda name, default, **settings: default(**settings, **small.get(name, {})),
        task,
    )
    for net in nets.values():
        net.double().eval()
        for part in net.modules():
            if isinstance(part, torch.nn.BatchNorm1d):
                for buffer in (part.running_mean, part.running_var):
                    buffer.add_(torch.linspace(0, 0.2, len(buffer)))
                part.bias.data += 0.5  # or few units behind it would be alive
    seen = nets["module"].penultimate(nets["module"].embed(all_data().X))
    assert (seen.std(dim=0) > 0).sum() > 1, "with dead units all samples are alike"
    if "discriminator" in nets:
        _make_decided(nets)
    objective.start(nets, nets, task)
    return nets


@torch.no_grad()
def _make_decided(nets):
    """Let f take some samples for original and some not, in every domain."""
    f, z = nets["discriminator"], nets["module"].embed(all_data().X)
    for layer in (f.layers[0], f.layers[-1]):
        layer.weight *= 20
    f.layers[-1].bias -= f(z, torch.zeros(len(z), dtype=torch.long)).median()


def play(objective, nets, batch):
    """Take plain gradient steps, as the net would; return the groups in order."""
    order = []
    groups = objective.groups(nets)
    for name, named in objective.losses(nets, batch, nets):
        parameters = [p for _, p in groups[name].parameters]
        kind = groups[name].optimizer or torch.optim.SGD
        optimizer = kind(parameters, lr=LR[name])
        optimizer.zero_grad()
        sum(named.values()).backward(inputs=parameters)
        optimizer.step()
        order.append(name)
    return order
