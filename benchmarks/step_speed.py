"""How long one step of CAL takes.

    python benchmarks/step_speed.py [--threads 2]

prints four tables of ratios; in each the contenders take turns in one run:

1. a step against its limit, one forward and backward pass of encoder and heads over
   both batches plus one of the discriminator, and against the published procedure, as
   re-written here: every update passes encoder, heads and discriminator anew, and that
   of the discriminator goes back through the encoder, whose gradient is thrown away;
2. a step within the skorch net against a bare loop of the same sub-steps;
3. a step with 150 domains against one with 6;
4. a step of CAL with consistency training against one of CAL.

Sizes are the published ones: 6 domains, 100 + 100 images, width 256, discriminator 512.
"""

import argparse
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from mdal import losses as terms
from mdal.net import CompositeNet
from mdal.objectives import CAL, Task
from mdal.streams import Batches, Rows

SIZES = {"published": (256, 512), "small": (64, 256)}
N_ROUNDS, N_CLASSES, BATCH = 5, 10, 100


def data(n_domains, seed=0):
    """Return images, labels and domains: noise, which takes as long as digits."""
    rng = np.random.default_rng(seed)
    n = 20 * BATCH
    X = rng.uniform(size=(n, 1, 28, 28)).astype(np.float32)
    y = np.where(np.arange(n) < n // 4, rng.integers(N_CLASSES, size=n), -1)
    domains = rng.integers(n_domains, size=n)
    domains[:n_domains] = np.arange(n_domains)
    return X, y, domains


def composite_net(size, n_domains, n_steps, method="cal"):
    """Return a net, and a function that trains it for some steps."""
    width, discriminator_width = SIZES[size]
    X, y, domains = data(n_domains)
    base = "" if method == "cal" else "base__"
    net = CompositeNet(
        method,
        module__width=width,
        discriminator__width=discriminator_width,
        **{f"method__{base}alpha_from": 0.0},
        max_epochs=1,
        steps_per_epoch=n_steps,
        random_state=0,
    ).fit(X, y, domains=domains)
    return net, lambda: net.partial_fit(X, y, domains=domains)


class Bare:
    """The sub-steps of CAL in a plain loop, without skorch, history or checks."""

    def __init__(self, net, n_domains, n_steps):
        X, y, domains = data(n_domains)
        self.objective, self.n_steps = CAL(alpha_from=0.0), n_steps
        labelled = np.flatnonzero(y >= 0)
        counts = np.bincount(domains[labelled], minlength=n_domains)
        sizes = np.bincount(domains, minlength=n_domains)
        self.nets = net._nets()
        self.objective.start(
            self.nets, self.nets, Task(X.shape[1:], N_CLASSES, counts, sizes)
        )
        self.groups = {
            name: [p for _, p in group.parameters]
            for name, group in self.objective.groups(self.nets).items()
        }
        self.optimizers = {
            name: torch.optim.Adam(parameters, fused=True)
            for name, parameters in self.groups.items()
            if name != "alpha"
        }
        self.optimizers["alpha"] = type(net.optimizer_alpha_)(self.groups["alpha"])
        self.averaged = AveragedModel(
            nn.ModuleDict(self.nets),
            multi_avg_fn=net.averaged_.multi_avg_fn,
            use_buffers=True,
        )
        self.batches = Batches(
            Rows(X),
            y,
            domains,
            labelled,
            n_steps=n_steps,
            n_epochs=1,
            batch_size=BATCH,
            pool_batch_size=BATCH,
            generator=torch.Generator(),
        )

    def __call__(self):
        """Train for some steps."""
        for batch in self.batches:
            for name, named in self.objective.losses(
                self.nets, batch, self.averaged.module
            ):
                self.optimizers[name].zero_grad()
                sum(named.values()).backward(inputs=self.groups[name])
                self.optimizers[name].step()
            self.averaged.update_parameters(nn.ModuleDict(self.nets))


class Passes:
    """The limit and the published procedure, on the same networks and batches."""

    def __init__(self, net, n_domains, n_steps):
        self.bare = Bare(net, n_domains, n_steps)
        self.module, self.f = net.module_, net.discriminator_
        self.alpha = torch.zeros(n_domains, n_domains, requires_grad=True)
        self.optimizers = [
            torch.optim.Adam(parameters, fused=True)
            for parameters in (
                self.f.parameters(),
                [self.alpha],
                self.module.parameters(),
            )
        ]
        self.beta, self.gamma = self.bare.objective.beta_, self.bare.objective.gamma_

    def judge(self, z, pool_z, batch):
        """Return the discriminator's logits on the pool and on all pairs."""
        pairs = terms.all_pairs(len(z), len(self.beta), z)
        inputs = torch.cat([pool_z, z[pairs.rows]])
        logits = self.f(inputs, torch.cat([batch.pool_domains, pairs.domains]))
        return (*logits.split([len(pool_z), len(pairs.rows)]), pairs)

    def limit(self):
        """One forward and backward pass of everything, and nothing else."""
        for batch in self.bare.batches:
            z = self.module.embed(torch.cat([batch.X, batch.pool_X]))
            labelled, pool = z.split(BATCH)
            logits = self.module.all_logits(z)
            pool_logits, pair_logits, _ = self.judge(labelled, pool, batch)
            self.optimizers[0].zero_grad()
            self.optimizers[2].zero_grad()
            (logits.mean() + pool_logits.mean() + pair_logits.mean()).backward()

    def passed(self, batch, kind, heads=True):
        """Pass everything anew; return V_h - V_d + V_lambda, or V_d alone."""
        alpha = torch.softmax(10 * self.alpha, dim=1)
        z, pool_z = self.module.embed(batch.X), self.module.embed(batch.pool_X)
        pool, labelled, pairs = self.judge(z, pool_z, batch)
        v_d = terms.v_d(
            terms.pair_losses(pool, True, kind),
            batch.pool_domains,
            terms.pair_losses(labelled, False, kind),
            batch.domains,
            pairs,
            alpha,
            self.beta,
            self.gamma,
        )
        if not heads:
            return v_d
        losses = terms.class_losses(self.module.all_logits(z), batch.y, kind)
        weights = batch.domains, alpha, self.beta
        v_h = terms.v_h(losses[:, 0], *weights)
        return v_h - v_d + terms.v_lambda(losses[:, 1:], *weights)

    def published(self):
        """Three updates, each with passes of its own."""
        for batch in self.bare.batches:
            for optimizer, kind, heads in zip(
                self.optimizers,
                ("cross_entropy", "zero_one", "cross_entropy"),
                (False, True, True),
                strict=True,
            ):
                for each in self.optimizers:
                    each.zero_grad()
                self.passed(batch, kind, heads).backward()
                optimizer.step()


def seconds(contenders, n_steps):
    """Return seconds a step of each contender in each round; they take turns."""
    times = []
    for number in range(N_ROUNDS + 1):
        times.append([])
        for contender in contenders:
            start = time.perf_counter()
            contender()
            times[-1].append((time.perf_counter() - start) / n_steps)
        print(f"\rround {number} of {N_ROUNDS}", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    return np.array(times[1:])  # the first round warms up


def report(names, times):
    """Print medians, and the median over rounds of the ratio to the first."""
    for name, column in zip(names, times.T, strict=True):
        ratios = column / times[:, 0]
        print(
            f"{name:<28} {1e3 * np.median(column):8.1f} ms  {np.median(ratios):6.2f}"
            f"  ({np.quantile(ratios, 0.25):.2f} to {np.quantile(ratios, 0.75):.2f})"
        )
    print()


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    for size, n_steps in (("published", 8), ("small", 40)):
        width, discriminator_width = SIZES[size]
        print(f"width {width}, discriminator {discriminator_width}: time of a step,")
        print("median, ratio to the first row and its quartiles over rounds\n")
        net, step = composite_net(size, 6, n_steps)
        passes = Passes(net, 6, n_steps)
        names = ("limit", "CompositeNet", "published procedure")
        times = seconds((passes.limit, step, passes.published), n_steps)
        report(names, times)
        print(f"{np.median(times[:, 2] / times[:, 1]):.2f} x faster than published\n")
        report(
            ("bare loop", "CompositeNet"),
            seconds((Bare(net, 6, n_steps), step), n_steps),
        )
        _, many = composite_net(size, 150, n_steps)
        report(("6 domains", "150 domains"), seconds((step, many), n_steps))
        _, consistent = composite_net(size, 6, n_steps, "cal_consistency")
        report(("CAL", "CAL with consistency"), seconds((step, consistent), n_steps))


if __name__ == "__main__":
    main()
