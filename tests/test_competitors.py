"""Methods of other papers: their formulas, and whether they do what they are for."""

import math
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objective_cases import COUNTS, LR, N_CLASSES, N_INPUTS, SIZES, N, all_data, built
from scipy.special import logsumexp
from scipy.stats import entropy
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from skorch.dataset import ValidSplit

from mdal.experiment import run
from mdal.losses import domain_mean, v_h
from mdal.modules import CompositeClassifier
from mdal.net import CompositeNet
from mdal.objectives import (
    DANN,
    MAN,
    METHODS,
    EnergyAlignment,
    MinimaxEntropy,
    Objective,
    Task,
    free_energy,
    get_objective,
    mean_entropy,
    ramp,
    reversed_gradient,
)

# Formulas


def test_a_reversed_gradient_changes_nothing_but_the_gradient():
    z = torch.tensor([1.0, -2.0], requires_grad=True)
    passed = reversed_gradient(z, 0.25)
    assert torch.equal(passed, z)
    (passed**2).sum().backward()
    assert z.grad.tolist() == [-0.5, 1.0]


def test_the_ramp_by_hand():
    assert ramp(0.0) == 0.0
    assert ramp(0.5) == pytest.approx((1 - math.exp(-5)) / (1 + math.exp(-5)))
    assert ramp(0.3, steepness=0.0) == 0.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 50))
def test_the_ramp_rises_from_0_towards_1(early, late, steepness):
    early, late = sorted([early, late])
    assert 0 <= ramp(early, steepness) <= ramp(late, steepness) <= 1


LOGITS = st.lists(
    st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=6
)


@given(LOGITS)
def test_entropies_and_energies_are_scipys(logits):
    tensor = torch.tensor(logits, dtype=torch.float64)
    p = tensor.softmax(1).numpy()
    assert mean_entropy(tensor).item() == pytest.approx(entropy(p, axis=1).mean())
    energies = -logsumexp(logits, axis=1)
    np.testing.assert_allclose(free_energy(tensor), energies, rtol=1e-9, atol=1e-12)


def test_extreme_logits_have_an_entropy_and_a_gradient():
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    value = mean_entropy(logits)
    value.backward()
    assert value.item() == 0.0
    assert torch.isfinite(logits.grad).all()


def test_domains_weigh_the_same_whatever_their_labels():
    batch, rng = all_data(), np.random.default_rng(1)
    losses = torch.tensor(rng.uniform(size=COUNTS.sum()))
    beta = torch.tensor(COUNTS / COUNTS.sum())
    by_hand = [losses[batch.domains == j].mean() for j in range(N)]
    found = domain_mean(losses, batch.domains, beta)
    assert found.item() == pytest.approx(sum(by_hand).item() / N)
    uniform = torch.full((N, N), 1 / N, dtype=torch.float64)
    torch.testing.assert_close(found, v_h(losses, batch.domains, uniform, beta))
    # Domains without labels do not count.
    more = torch.cat([beta, torch.zeros(2)])
    torch.testing.assert_close(domain_mean(losses, batch.domains, more), found)


# Each method against its definition, sample by sample


def slow_class_loss(logits, batch):
    """The mean over domains of their mean cross-entropies."""
    total = 0.0
    for j in range(N):
        rows = torch.nonzero(batch.domains == j).flatten().tolist()
        for k in rows:
            p = torch.exp(logits[k]) / torch.exp(logits[k]).sum()
            total = total - torch.log(p[batch.y[k]]) / len(rows)
    return total / N


def slow_domain_loss(guess, z, domains):
    total = 0.0
    for features, domain in zip(z, domains.tolist(), strict=True):
        logits = guess(features[None])[0]
        total = total - torch.log(torch.softmax(logits, 0)[domain])
    return total / len(domains)


def lively(objective):
    """Networks whose answers differ from sample to sample."""
    nets = built(objective)
    with torch.no_grad():
        for net in nets.values():
            for name, weight in net.named_parameters():
                if name.endswith("weight") and weight.ndim == 2:
                    weight *= 3
    return nets


def one_by_one(module, X):
    """Features and logits of the shared classifier, for each sample alone."""
    z = torch.cat([module.embed(x[None]) for x in X])
    return z, torch.cat([module.shared_logits(module.penultimate(f[None])) for f in z])


def gradients(loss, parameters):
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return [
        torch.zeros_like(p) if g is None else g
        for p, g in zip(parameters, found, strict=True)
    ]


def step(parameters, loss, lr):
    with torch.no_grad():
        for p, g in zip(parameters, gradients(loss, parameters), strict=True):
            p -= lr * g


def played(objective, nets, batch):
    """Take plain gradient steps as the net would, and return all losses by name."""
    groups, values = objective.groups(nets), {}
    for name, named in objective.losses(nets, batch, nets):
        parameters = [p for _, p in groups[name].parameters]
        values |= {key: value.item() for key, value in named.items()}
        step(parameters, sum(named.values()), LR[name])
    return values


def assert_same_weights(nets, others):
    for name, net in nets.items():
        for (key, ours), theirs in zip(
            net.named_parameters(), others[name].parameters(), strict=True
        ):
            torch.testing.assert_close(
                ours, theirs, rtol=1e-7, atol=1e-10, msg=f"{name}.{key}"
            )


def test_dann_is_its_formula():
    objective, batch = DANN(weight=0.7, steepness=4), all_data()
    nets, theirs = lively(objective), lively(objective)
    values = played(objective, nets, batch)

    module, guess = theirs["module"], theirs["domain_classifier"]
    _, logits = one_by_one(module, batch.X)
    pool_z, _ = one_by_one(module, batch.pool_X)
    class_loss = slow_class_loss(logits, batch)
    domain_loss = slow_domain_loss(guess, pool_z, batch.pool_domains)
    assert values["v_h"] == pytest.approx(class_loss.item())
    assert values["domain_loss"] == pytest.approx(domain_loss.item())
    weight = 0.7 * (2 / (1 + math.exp(-4 * 0.25)) - 1)  # a quarter is over
    of_module, of_guess = list(module.parameters()), list(guess.parameters())
    down = gradients(class_loss - weight * domain_loss, of_module)
    up = gradients(domain_loss, of_guess)
    assert max(g.abs().max() for g in gradients(domain_loss, of_module)) > 1e-3
    with torch.no_grad():
        for p, g in zip(of_module + of_guess, down + up, strict=True):
            p -= LR["module"] * g
    assert_same_weights(nets, theirs)


def test_dann_without_weight_is_erm():
    batch = all_data()
    nets, plain = built(DANN(weight=0.0)), built(get_objective("erm"))
    plain["module"].load_state_dict(nets["module"].state_dict())
    for objective, networks in ((DANN(0.0), nets), (get_objective("erm"), plain)):
        objective.start(networks, networks, Task((N_INPUTS,), N_CLASSES, COUNTS, SIZES))
        played(objective, networks, batch)
    assert_same_weights({"module": nets["module"]}, plain)


def test_minimax_entropy_is_its_formula():
    objective, batch = MinimaxEntropy(weight=0.6), all_data()
    nets, theirs = lively(objective), lively(objective)
    values = played(objective, nets, batch)

    module = theirs["module"]
    last = list(module.heads.parameters())
    before = [*module.encoder.parameters(), *module.trunk.parameters()]
    _, logits = one_by_one(module, batch.X)
    _, pool_logits = one_by_one(module, batch.pool_X)
    p = torch.softmax(pool_logits, 1)
    spread = -(p * torch.log(p)).sum() / len(p)
    assert values["entropy"] == pytest.approx(-0.6 * spread.item())
    class_loss = slow_class_loss(logits, batch)
    down = gradients(class_loss + 0.6 * spread, before)
    up = gradients(class_loss - 0.6 * spread, last)
    assert max(g.abs().max() for g in gradients(spread, before)) > 1e-3
    with torch.no_grad():
        for parameter, gradient in zip(before + last, down + up, strict=True):
            parameter -= LR["module"] * gradient
    assert_same_weights(nets, theirs)


def test_energy_alignment_is_its_formula():
    objective = EnergyAlignment(weight=0.8, decay=0.75)
    nets, theirs = lively(objective), lively(objective)
    margin, above = None, []
    for seed in (0, 1, 2):
        batch = all_data(seed)
        values = played(objective, nets, batch)
        module = theirs["module"]
        _, logits = one_by_one(module, batch.X)
        _, pool_logits = one_by_one(module, batch.pool_X)
        energy = -torch.log(torch.exp(logits).sum(1)).mean().item()
        margin = energy if margin is None else 0.75 * margin + 0.25 * energy
        excess = -torch.log(torch.exp(pool_logits).sum(1)) - margin
        above += (excess > 0).tolist()
        excess = torch.where(excess > 0, excess, 0 * excess).mean()
        assert values["excess_energy"] == pytest.approx(0.8 * excess.item())
        loss = slow_class_loss(logits, batch) + 0.8 * excess
        step(list(module.parameters()), loss, LR["module"])
    assert set(above) == {False, True}  # both sides of the corner were seen
    assert objective.margin_.item() == pytest.approx(margin)
    assert_same_weights(nets, theirs)


def test_the_energies_of_another_fit_are_forgotten():
    objective = EnergyAlignment()
    nets = lively(objective)
    played(objective, nets, all_data(0))
    objective.start(nets, nets, Task((N_INPUTS,), N_CLASSES, COUNTS, SIZES))
    _, logits = one_by_one(nets["module"], all_data(1).X)
    played(objective, nets, all_data(1))
    energies = -logsumexp(logits.detach(), axis=1)
    assert objective.margin_.item() == pytest.approx(energies.mean())


def test_man_is_its_formula():
    objective, batch = MAN(weight=0.3), all_data()
    nets, theirs = lively(objective), lively(objective)
    played(objective, nets, batch)

    module, guess = theirs["module"], theirs["domain_classifier"]
    pool_z = torch.cat([module.embed(x[None]) for x in batch.pool_X])
    loss = slow_domain_loss(guess, pool_z.detach(), batch.pool_domains)
    step(list(guess.parameters()), loss, LR["domain_classifier"])
    logits = []
    for x, domain in zip(batch.X, batch.domains.tolist(), strict=True):
        both = [module.encoder(x[None]), module.private[domain](x[None])]
        hidden = module.trunk(torch.cat(both, dim=1))
        logits.append(module.heads(hidden))
    loss = slow_class_loss(torch.cat(logits), batch)
    loss = loss - 0.3 * slow_domain_loss(guess, pool_z, batch.pool_domains)
    step(list(module.parameters()), loss, LR["module"])
    assert_same_weights(nets, theirs)


@pytest.mark.parametrize("objective", [EnergyAlignment(), MinimaxEntropy(), DANN()])
def test_classes_are_learned_from_labelled_samples_alone(objective):
    # Batch normalisation in the classifier would let the pool have a say.
    nets, batch = built(objective), all_data()
    nets["module"].trunk.train()
    values = []
    for pool_X in (batch.pool_X, 3 * batch.pool_X + 1):
        _, named = next(objective.losses(nets, batch._replace(pool_X=pool_X), nets))
        values.append(named["v_h"].item())
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("name", ["dann", "man", "energy_alignment", "minimax_entropy"])
def test_the_pool_normalises_labelled_samples_in_one_batch_only(name):
    batch = all_data()
    for how, depends in (("separate", False), ("together", True)):
        objective = get_objective(name, batch_norm=how)
        nets = built(objective)
        nets["module"].encoder.train()
        values = []
        for pool_X in (batch.pool_X, 3 * batch.pool_X + 1):
            these = batch._replace(pool_X=pool_X)
            *_, (_, named) = objective.losses(nets, these, nets)
            values.append(named["v_h"].item())
        assert (abs(values[0] - values[1]) > 1e-9) == depends


@pytest.mark.parametrize("name", ["cal", "erm", "dann", "energy_alignment"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8])
def test_shares_do_not_depend_on_the_type_of_an_encoder(name, dtype):
    class Frozen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            weight = torch.eye(4).to(dtype)
            self.weight = torch.nn.Parameter(weight, requires_grad=False)

        def forward(self, x):
            return x @ self.weight.float()

    X = np.random.default_rng(0).normal(size=(390, 4))
    net = CompositeNet(name, max_epochs=1, steps_per_epoch=1, module__encoder=Frozen())
    net.fit(X, X[:, 0] > 0, domains=np.arange(390) >= 200)
    np.testing.assert_allclose(net.objective_.beta_, [200 / 390, 190 / 390], rtol=1e-6)


def test_half_precision_has_the_energies_and_entropies_of_single_precision():
    logits = torch.tensor([[5.125, -3.0, 1.5], [0.25, 9.0, 8.5]])
    half = logits.bfloat16()
    assert torch.equal(free_energy(half), free_energy(logits))
    assert torch.equal(mean_entropy(half), mean_entropy(logits))


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (DANN(weight=-1), "weight=-1"),
        (DANN(steepness=float("nan")), "steepness"),
        (MAN(weight="1"), "weight"),
        (MinimaxEntropy(weight=None), "weight"),
        (EnergyAlignment(weight=-0.1), "weight=-0.1"),
        (EnergyAlignment(decay=1.5), "decay=1.5"),
        (DANN(batch_norm="no"), "batch_norm='no'"),
        (MAN(batch_norm="no"), "batch_norm='no'"),
        (MinimaxEntropy(batch_norm="no"), "batch_norm='no'"),
        (EnergyAlignment(batch_norm="no"), "batch_norm='no'"),
    ],
)
def test_wrong_settings_are_named(objective, message, two_far_domains):
    X, y, domains = two_far_domains
    with pytest.raises((TypeError, ValueError), match=message):
        CompositeNet(objective).fit(X, y, domains=domains)


# What they are for


@pytest.fixture(scope="module")
def shifted():
    """Three domains, two of them moved along features that say nothing of the class."""
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b", "c"], 300)
    y = rng.integers(2, size=900)
    X = rng.normal(size=(900, 6))
    X[:, 0] += 3 * (2 * y - 1)
    X[:, 1:3] += 3.0 * np.stack([domains == "b", domains == "c"], axis=1)
    seen = rng.uniform(size=900) < 0.15
    return X, np.where(seen, y, -1), domains, y


def trained(method, data, max_epochs=8, **settings):
    X, y, domains, _ = data
    net = CompositeNet(
        method,
        max_epochs=max_epochs,
        random_state=0,
        module__width=64,
        **settings,
    )
    return net.fit(X, y, domains=domains)


def telling_domains(net, data):
    """How well a new classifier tells the domain by the features of held-out rows."""
    X, _, domains, _ = data
    features = net.observe(X).features
    return cross_val_score(LogisticRegression(max_iter=2000), features, domains).mean()


def test_the_features_of_dann_do_not_tell_the_domain(shifted):
    plain, aligned = trained("erm", shifted), trained("dann", shifted, 30)
    assert telling_domains(plain, shifted) > 0.8
    assert telling_domains(aligned, shifted) < 0.6  # by chance it is 0.33
    # Its own classifier is reduced to a guess among three: ln 3 is 1.099.
    assert aligned.history[-1, "domain_loss"] > 0.95
    X, _, _, truth = shifted
    assert np.mean(aligned.predict(X) == truth) > 0.9


def test_the_gap_of_energy_closes(shifted):
    X, y, _, _ = shifted

    def gap(net):
        energies = -logsumexp(net.observe(X).logits, axis=1)
        return energies[y < 0].mean() - energies[y >= 0].mean()

    plain = trained("energy_alignment", shifted, method__weight=0.0)
    aligned = trained("energy_alignment", shifted, method__weight=1.0)
    assert gap(plain) > 0
    assert gap(aligned) < gap(plain) / 2


def test_minimax_entropy_moves_the_boundary_to_where_nobody_is():
    accuracy, spread = {0.0: [], 0.1: []}, {0.0: [], 0.1: []}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        domains, y = np.repeat(["a", "b"], 400), rng.integers(2, size=800)
        X = rng.normal(size=(800, 3))
        X[:, 0] = X[:, 0] / 2 + 2 * (2 * y - 1) + 2 * (domains == "b")
        seen = (domains == "a") & (rng.uniform(size=800) < 0.2)  # b has no label
        for weight in accuracy:
            net = CompositeNet(
                "minimax_entropy",
                method__weight=weight,
                max_epochs=10,
                random_state=0,
                module__width=64,
                module__depth=2,
            ).fit(X, np.where(seen, y, -1), domains=domains)
            p = net.predict_proba(X[domains == "b"]).astype(float)
            accuracy[weight].append(np.mean(p.argmax(1) == y[domains == "b"]))
            spread[weight].append(entropy(p, axis=1).mean())
    assert np.mean(accuracy[0.1]) > np.mean(accuracy[0.0]) + 0.05
    assert np.mean(spread[0.1]) < np.mean(spread[0.0]) / 2


def test_man_learns_what_is_particular_to_a_domain():
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b"], 300)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] > 0) ^ (domains == "b")  # the other way round in b
    mask = np.where(rng.uniform(size=600) < 0.3, y, -1)
    net = CompositeNet("man", max_epochs=8, random_state=0)
    net.fit(X, mask, domains=domains)
    assert np.mean(net.predict(X, domains) == y) > 0.9
    assert np.mean(net.predict(X) == y) < 0.7


def test_held_out_samples_are_judged_with_their_domains():
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b"], 200)
    X = rng.normal(size=(400, 4))
    y = ((X[:, 0] > 0) ^ (domains == "b")).astype(int)
    net = CompositeNet(
        "man", max_epochs=6, random_state=0, train_split=ValidSplit(0.3, random_state=0)
    ).fit(X, y, domains=domains)
    assert net.history[-1, "valid_accuracy"] > 0.85


def test_private_encoders_have_to_differ():
    X, domains = np.eye(8), np.arange(8) % 2
    frozen = torch.nn.Linear(8, 3).requires_grad_(False)
    shared = torch.nn.Linear(8, 3)
    for encoder in (frozen, lambda: shared):
        net = CompositeNet("man", module__encoder=encoder)
        with pytest.raises(ValueError, match="private features would be the same"):
            net.fit(X, domains, domains=domains)
    with pytest.raises(TypeError, match="CompositeClassifier without private_features"):
        CompositeNet("man", CompositeClassifier).fit(X, domains, domains=domains)


def test_one_row_of_a_domain_passes_any_encoder():
    X, domains = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) == 0
    layers = [torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU()]
    net = CompositeNet(
        "man", module__encoder=torch.nn.Sequential(*layers), max_epochs=1
    )
    net.fit(X, X[:, 0] > 0, domains=domains)
    assert np.isfinite(net.predict_proba(X, domains)).all()


@pytest.mark.parametrize("method", ["erm", "cal", "dann", "minimax_entropy"])
def test_a_search_over_methods_may_set_networks_that_some_have(method):
    X = np.eye(8)
    settings = {"domain_classifier__width": 8, "optimizer_domain_classifier__lr": 0.1}
    net = CompositeNet(method, max_epochs=1, steps_per_epoch=1, **settings)
    assert net.fit(X, np.arange(8) % 2).predict(X).shape == (8,)


class Critic(torch.nn.Linear):
    def __init__(self, n_features, strength=1.0):
        super().__init__(n_features, 1)


class Criticised(Objective):
    """A method of somebody's own, with a network of a kind that nobody else has."""

    networks: ClassVar = {"critic": Critic}

    def build(self, make, task):
        nets = super().build(make, task)
        critic = make("critic", Critic, n_features=nets["module"].n_features)
        return {**nets, "critic": critic}

    def losses(self, nets, batch, averaged):
        module = nets["module"]
        z = module.embed(batch.X)
        yield "critic", {"norm": nets["critic"](z.detach()).square().mean()}
        errors = torch.nn.functional.cross_entropy
        yield "module", {"v_h": errors(module.shared_logits(z), batch.y)}


def test_a_method_with_a_name_has_its_networks_in_searches_and_experiments(
    monkeypatch, tmp_path
):
    monkeypatch.setitem(METHODS, "criticised", (Criticised, {}))
    settings = {"critic__strength": 2.0, "optimizer_critic__lr": 0.1}
    for method in ("criticised", "erm", "cal"):
        net = CompositeNet(method, max_epochs=1, steps_per_epoch=1, **settings)
        net.set_params(module__depth=0).fit(np.eye(8), np.arange(8) % 2)
        assert hasattr(net, "critic_") == (method == "criticised")
    experiment = {
        "dataset": {"name": "shifted_domains", "n_per_domain": 60},
        **{"budget": 9, "rounds": 0, "seeds": [0]},
        "net": {"max_epochs": 1, "steps_per_epoch": 1, **settings},
        "methods": {
            name: {"method": name, "strategy": "random", "allocation": "separate"}
            for name in ("criticised", "erm")
        },
    }
    assert len(run(experiment, tmp_path, progress=False)) == 2


def test_without_a_domain_man_uses_shared_features_alone():
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(90, 4)), np.repeat(["a", "b", "c"], 30)
    y = np.where(domains == "c", -1, X[:, 0] > 0)  # nobody has labelled c
    net = CompositeNet("man", max_epochs=1, random_state=0).fit(X, y, domains=domains)
    told, untold = net.predict_proba(X, domains), net.predict_proba(X)
    labelled = domains != "c"
    assert np.array_equal(told[~labelled], untold[~labelled])
    assert (told[labelled] != untold[labelled]).any(axis=1).all()


def test_a_sample_gets_the_same_private_features_in_any_company():
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(60, 4)), rng.choice(["a", "b", "c"], 60)
    net = CompositeNet("man", max_epochs=1, random_state=0)
    net.fit(X, X[:, 0] > 0, domains=domains)
    whole = net.observe(X, domains).logits
    for rows in (np.arange(7), rng.permutation(60)[:23]):
        part = net.observe(X[rows], domains[rows]).logits
        assert np.array_equal(part, whole[rows])
