"""Methods: CAL against Algorithm 1 step by step, its limits, and other methods."""

import numpy as np
import pytest
import torch
from objective_cases import (
    COUNTS,
    LR,
    N_CLASSES,
    N_INPUTS,
    SIZES,
    N,
    all_data,
    built,
    play,
)
from sklearn.base import clone
from torch import nn
from torch.nn import functional

from mdal.objectives import (
    CAL,
    Consistency,
    MultiplicativeWeights,
    Objective,
    Task,
    get_objective,
    objective_names,
)
from mdal.similarity import alpha_step


def slow_value(nets, batch, alpha, lambda_d, third_term=True, fixed_z=False):
    """V_h, V_d and V_lambda from their definitions, sample by sample."""
    module, f = nets["module"], nets["discriminator"]

    def e(x):
        z = module.embed(x[None])
        return z.detach() if fixed_z else z

    def label_loss(head, row):
        logits = module.all_logits(e(batch.X[row]))[0, head]
        return functional.cross_entropy(logits[None], batch.y[row : row + 1])

    def domain_loss(x, i, target):
        logit = f(e(x), torch.tensor([i]))[0]
        p = torch.sigmoid(logit)
        return -torch.log(p if target == 1 else 1 - p)

    def rows_of(domains, domain):
        return torch.nonzero(domains == domain).flatten().tolist()

    v_h = v_d = v_lambda = 0.0
    for i in range(N):
        pool = rows_of(batch.pool_domains, i)
        v_d += sum(domain_loss(batch.pool_X[k], i, 1) for k in pool) / len(pool)
        for j in range(N):
            rows, weight = rows_of(batch.domains, j), alpha[i, j] / COUNTS[j]
            v_h += weight * sum(label_loss(0, k) for k in rows) / N
            v_d += weight * sum(domain_loss(batch.X[k], i, 0) for k in rows)
            if third_term:
                v_lambda += weight * sum(label_loss(1 + i, k) for k in rows) / N
    v_d = v_d / (2 * N)
    return v_h - lambda_d * v_d + v_lambda, v_d


def slow_alpha_gradient(nets, batch, lambda_d, third_term=True):
    """Derivative of the objective with 0/1 losses, counted sample by sample."""
    gradient = np.zeros((N, N))
    with torch.no_grad():
        z = nets["module"].embed(batch.X)
        wrong = nets["module"].all_logits(z).argmax(2) != batch.y[:, None]
        for i in range(N):
            taken = nets["discriminator"](z, torch.full((len(z),), i)) > 0
            for j in range(N):
                rows = batch.domains == j
                hits = taken[rows].double().mean()
                error = wrong[rows, 0].double().mean()
                own = wrong[rows, 1 + i].double().mean() if third_term else 0.0
                gradient[i, j] = (error + own - lambda_d / 2 * hits) / N
    return gradient


def slow_step(nets, group, loss):
    parameters = list(nets[group].parameters())
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                parameter -= LR[group] * gradient


@pytest.mark.parametrize("batch_norm", ["together", "separate"])
@pytest.mark.parametrize("two_updates", [False, True])
@pytest.mark.parametrize("lambda_d", [1.0, 0.4])
def test_a_step_is_that_of_algorithm_1(lambda_d, two_updates, batch_norm):
    objective = CAL(
        lambda_d,
        two_updates=two_updates,
        table_decay=0.0,
        alpha_from=0.0,
        fade_from=1.0,
        batch_norm=batch_norm,
    )
    nets, batch = built(objective), all_data()
    order = play(objective, nets, batch)
    extra = ["discriminator"] if two_updates else []
    assert order == ["discriminator", "alpha", *extra, "module"]

    theirs = built(clone(objective))
    alpha = theirs["surrogates"].alpha.detach().numpy()  # 1 / N in single precision
    np.testing.assert_allclose(alpha, 1 / N, rtol=1e-7)
    _, v_d = slow_value(theirs, batch, alpha, lambda_d, fixed_z=True)
    slow_step(theirs, "discriminator", v_d)
    gradient = slow_alpha_gradient(theirs, batch, lambda_d)
    hits = gradient - slow_alpha_gradient(theirs, batch, 0.0)
    assert np.ptp(hits, axis=1).min() > 0  # or lambda_d would not matter to alpha
    alpha = alpha * np.exp(-LR["alpha"] * N * gradient)
    alpha /= alpha.sum(axis=1, keepdims=True)
    if two_updates:
        _, v_d = slow_value(theirs, batch, alpha, lambda_d, fixed_z=True)
        slow_step(theirs, "discriminator", v_d)
    value, _ = slow_value(theirs, batch, alpha, lambda_d)
    slow_step(theirs, "module", value)

    np.testing.assert_allclose(nets["surrogates"](), alpha, atol=1e-12)
    for name in ("module", "discriminator"):
        for ours, other in zip(
            nets[name].parameters(), theirs[name].parameters(), strict=True
        ):
            torch.testing.assert_close(ours, other, rtol=1e-7, atol=1e-10)


def test_sampled_pairs_play_the_same_game_on_average():
    """With as many draws as it takes, the discriminator's gradient is the exact one."""
    batch = all_data()
    exact = CAL()
    nets = built(exact)
    _, named = next(exact.losses(nets, batch, nets))
    parameters = list(nets["discriminator"].parameters())
    wanted = torch.autograd.grad(named["v_d"], parameters)
    sampled = CAL(max_pairs=20_000)
    sampled.start(nets, nets, Task((N_INPUTS,), N_CLASSES, COUNTS, SIZES))
    sampled.max_pairs = 35  # of 36
    draws = []
    for _ in range(400):
        _, named = next(sampled.losses(nets, batch, nets))
        drawn = torch.autograd.grad(named["v_d"], parameters)
        draws.append(torch.cat([g.flatten() for g in drawn]))
    draws = torch.stack(draws)
    error = draws.mean(0) - torch.cat([g.flatten() for g in wanted])
    assert (error.abs() <= 5 * draws.std(0) / 20 + 1e-12).all()


def test_the_shares_are_those_of_all_data_not_of_the_batch():
    """The mean of the losses over batches of one row each is that on all data."""
    objective = CAL(learn_alpha=False, fade_from=1.0)
    nets, batch = built(objective), all_data()

    def losses(batch):
        return {
            name: value.item()
            for _, named in objective.losses(nets, batch, nets)
            for name, value in named.items()
        }

    whole = losses(batch)
    labelled = [
        losses(batch._replace(X=x[None], y=y[None], domains=d[None]))
        for x, y, d in zip(batch.X, batch.y, batch.domains, strict=True)
    ]
    for name in ("v_h", "v_lambda", "v_d"):
        assert np.mean([part[name] for part in labelled]) == pytest.approx(whole[name])
    pool = [
        losses(batch._replace(pool_X=x[None], pool_domains=d[None]))
        for x, d in zip(batch.pool_X, batch.pool_domains, strict=True)
    ]
    assert np.mean([part["v_d"] for part in pool]) == pytest.approx(whole["v_d"])


@pytest.mark.parametrize(
    "changed",
    [
        {"lambda_d": 0.2},
        {"alpha_loss": "cross_entropy"},
        {"alpha_loss": "probability"},
        {"complexity": "row"},
        {"table_decay": 0.0},
        {"alpha_from": 0.9},
    ],
)
def test_what_alpha_looks_at_makes_a_difference(changed):
    batch, alphas = all_data(), []
    for settings in ({}, changed):
        objective = CAL(**{"alpha_from": 0.0, **settings})
        nets = built(objective)
        for seed in (0, 1):
            play(objective, nets, all_data(seed)._replace(progress=batch.progress))
        alphas.append(nets["surrogates"]())
    assert np.abs(np.subtract(*alphas)).max() > 1e-4


def test_batches_are_normalised_together_or_apart():
    batch = all_data()
    features = {}
    for how in ("together", "separate"):
        objective = CAL(batch_norm=how)
        nets = built(objective)
        nets["module"].train()
        features[how] = objective._features(nets["module"], batch)
        if how == "together":
            both = nets["module"].embed(torch.cat([batch.X, batch.pool_X]))
            expected = both.split([len(batch.X), len(batch.pool_X)])
        else:
            expected = nets["module"].embed(batch.X), nets["module"].embed(batch.pool_X)
        for ours, theirs in zip(features[how], expected, strict=True):
            torch.testing.assert_close(ours, theirs)
    assert (features["together"][0] - features["separate"][0]).abs().max() > 0.01


def module_gradient(objective):
    nets = built(objective)
    for name, named in objective.losses(nets, all_data(), nets):
        if name == "module":
            encoder = list(nets["module"].encoder.parameters())
            return torch.cat(
                [g.flatten() for g in torch.autograd.grad(sum(named.values()), encoder)]
            )


def test_without_weight_the_second_term_does_nothing_to_the_encoder():
    fixed = {"learn_alpha": False}
    torch.testing.assert_close(
        module_gradient(CAL(0.0, **fixed)),
        module_gradient(CAL(second_term=False, **fixed)),
    )


def test_fading_is_a_smaller_lambda_d():
    fixed = {"learn_alpha": False}
    torch.testing.assert_close(  # a quarter of the training is over
        module_gradient(CAL(1.0, fade_from=0.0, **fixed)),
        module_gradient(CAL(0.75, fade_from=1.0, **fixed)),
    )
    torch.testing.assert_close(
        module_gradient(CAL(1.0, fade_from=0.5, **fixed)),
        module_gradient(CAL(1.0, fade_from=1.0, **fixed)),
    )


def test_cal_alpha_trains_the_encoder_as_if_there_were_no_discriminator():
    fixed = {"learn_alpha": False}
    torch.testing.assert_close(
        module_gradient(CAL(alignment=False, **fixed)),
        module_gradient(CAL(second_term=False, **fixed)),
    )


def test_erm_is_the_mean_of_the_domains_mean_losses():
    objective = get_objective("erm")
    nets, batch = built(objective), all_data()
    assert set(nets) == {"module", "surrogates"}
    assert not objective.needs_pool
    ((group, named),) = objective.losses(
        nets, batch._replace(pool_X=None, pool_domains=None), nets
    )
    losses = functional.cross_entropy(
        nets["module"](batch.X), batch.y, reduction="none"
    )
    means = [losses[batch.domains == j].mean() for j in range(N)]
    assert group == "module"
    assert named["v_h"].item() == pytest.approx(sum(means).item() / N)


def test_aligning_each_domain_is_cal_with_the_identity():
    objective = get_objective("cal_identity")
    nets = built(objective)
    np.testing.assert_array_equal(nets["surrogates"](), np.eye(N))
    order = play(objective, nets, all_data())
    assert order == ["discriminator", "module"]
    np.testing.assert_array_equal(nets["surrogates"](), np.eye(N))


def test_with_one_domain_alpha_is_one_and_heads_learn_the_same():
    objective = CAL()
    counts, sizes = np.array([12]), np.array([30])
    nets = built(objective, counts=counts, sizes=sizes)
    batch = all_data()
    batch = batch._replace(
        domains=torch.zeros_like(batch.domains),
        pool_domains=torch.zeros_like(batch.pool_domains),
    )
    with torch.no_grad():  # both heads start alike
        for part in (nets["module"].heads.weight, nets["module"].heads.bias):
            part[N_CLASSES:] = part[:N_CLASSES]
    play(objective, nets, batch)
    assert nets["surrogates"]().tolist() == [[1.0]]
    weight = nets["module"].heads.weight
    torch.testing.assert_close(weight[:N_CLASSES], weight[N_CLASSES:])


def test_a_domain_without_labels_gets_no_weight():
    counts = np.array([5, 0, 7])
    objective = CAL()
    nets = built(objective, counts=counts)
    batch = all_data()
    batch = batch._replace(domains=torch.tensor(np.repeat([0, 2], [5, 7])))
    play(objective, nets, batch)
    assert np.isfinite(nets["surrogates"]()).all()
    assert nets["surrogates"]()[:, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("learn_alpha", [True, False])
def test_alpha_starts_anew_when_a_domain_gets_its_first_label(learn_alpha):
    objective = CAL(learn_alpha=learn_alpha)
    nets = built(objective, counts=np.array([5, 0, 7]))
    objective.start(nets, nets, Task((N_INPUTS,), N_CLASSES, COUNTS, SIZES))
    np.testing.assert_allclose(nets["surrogates"](), np.full((N, N), 1 / N))


def test_multiplicative_weights_take_the_steps_of_similarity():
    rng = np.random.default_rng(0)
    alpha, gradient = rng.dirichlet(np.ones(4), 4), rng.normal(size=(4, 4))
    parameter = nn.Parameter(torch.tensor(alpha))
    parameter.grad = torch.tensor(gradient)
    MultiplicativeWeights([parameter], lr=0.7).step()
    expected, _ = alpha_step(alpha, gradient, step_size=0.7)
    np.testing.assert_allclose(parameter.detach(), expected)


def test_names_stand_for_settings_which_can_be_changed():
    assert "cal_fa++" in objective_names()
    for name in objective_names():
        objective = get_objective(name)
        assert isinstance(objective, Consistency) == name.endswith("_consistency")
        objective = getattr(objective, "base", objective)
        variant = name.startswith(("cal", "erm"))
        assert isinstance(objective, CAL) == variant
    assert get_objective("cal++").two_updates
    given = CAL(0.5)
    copied = get_objective(given, third_term=False)
    assert copied.lambda_d == 0.5
    assert not copied.third_term
    assert given.third_term
    with pytest.raises(ValueError, match="method='dal' is unknown; choose one of cal"):
        get_objective("dal")


@pytest.mark.parametrize(
    "wrong",
    [
        {"lambda_d": -1},
        {"fade_from": 2},
        {"alpha_loss": "hinge"},
        {"batch_norm": "no"},
        {"max_pairs": 0},
        {"table_decay": 1.5},
        {"index": "binary"},
    ],
)
def test_wrong_settings_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=name) as error:
        built(CAL(**wrong))
    assert str(value) in str(error.value)


def test_a_method_without_losses_says_so():
    with pytest.raises(TypeError, match="losses"):
        Objective()
