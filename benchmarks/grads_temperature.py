"""Which temperature GraDS should have by default, on development images.

RotatingMNIST-D6 as in ``rotating_mnist.py``, on its development split: the pool is the
first 50,000 training images, accuracy is measured on the others, and no test image is
read. Each seed begins with 25 random labels per domain and CAL's training; then, twice,
each strategy picks 25 samples per domain by what the last net says, and CAL is trained
anew. All strategies share the first net.

    python benchmarks/grads_temperature.py --data FOLDER

runs what is missing and prints the table. Each finished run is a line in
``records/grads_temperature.jsonl``. On two cores it takes about an hour.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from rotating_mnist import N_DOMAINS, SETTINGS, load

from mdal.net import CompositeNet
from mdal.strategies import BADGE, GraDS, PoolView, Random

RECORDS = Path(__file__).parent / "records" / "grads_temperature.jsonl"
SEEDS = range(100, 104)
PER_DOMAIN = 25
STRATEGIES = {
    "GraDS, T = 0.5": GraDS(temperature=0.5),
    "GraDS, T = 1": GraDS(temperature=1.0),
    "GraDS, T = 0.25": GraDS(temperature=0.25),
    "BADGE": BADGE(),
    "random": Random(),
}


def trained(X, partly, domains, seed):
    """Return CAL's net, trained on what is labelled."""
    net = CompositeNet("cal", **SETTINGS, random_state=seed)
    return net.fit(X, partly, domains=domains)


def accuracy(net, X, y, domains):
    """Return the mean accuracy over domains."""
    right = net.predict(X) == y
    return float(np.mean([right[domains == i].mean() for i in range(N_DOMAINS)]))


def queried(said, strategy, partly, domains, seed):
    """Return the rows that a strategy picks, as many in each domain."""
    picked = []
    for domain in range(N_DOMAINS):
        rows = np.flatnonzero((domains == domain) & (partly < 0))
        view = PoolView(
            said.logits[rows],
            embedding=said.penultimate[rows],
            outlier=said.outlier[rows],
        )
        picked.append(rows[strategy.select(view, PER_DOMAIN, seed)])
    return np.concatenate(picked)


def run(folder, seed, names):
    """Run some strategies with one seed, and write their records."""
    torch.set_num_threads(1)
    (X, y, domains), test = load(folder, "development", seed)
    rng = np.random.default_rng(seed)
    start = np.full_like(y, -1)
    for domain in range(N_DOMAINS):
        rows = rng.permutation(np.flatnonzero(domains == domain))[:PER_DOMAIN]
        start[rows] = y[rows]
    net = trained(X, start, domains, seed)
    first, said_first = accuracy(net, *test), net.observe(X, domains)
    for name in names:
        partly, said, accuracies = start.copy(), said_first, [first]
        for _ in range(2):
            rows = queried(said, STRATEGIES[name], partly, domains, seed)
            partly[rows] = y[rows]
            net = trained(X, partly, domains, seed)
            accuracies.append(accuracy(net, *test))
            said = net.observe(X, domains)
        record = {"strategy": name, "seed": seed, "accuracies": accuracies}
        with RECORDS.open("a") as file:
            file.write(json.dumps({**record, "settings": SETTINGS}) + "\n")
        print(name, seed, np.round(accuracies, 3), flush=True)


def read():
    """Return all records, by strategy and seed."""
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    records = [json.loads(line) for line in lines]
    return {(r["strategy"], r["seed"]): r for r in records}


def table(records):
    """Return accuracies in per cent, mean and standard deviation over the seeds."""
    lines = ["| | 150 labels | 300 labels | 450 labels |", "| --- | --- | --- | --- |"]
    for name in STRATEGIES:
        runs = [records[name, s]["accuracies"] for s in SEEDS if (name, s) in records]
        if len(runs) == len(SEEDS):
            runs = 100 * np.array(runs)
            cells = [f"{a.mean():.1f} ± {a.std(ddof=1):.1f}" for a in runs.T]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of MNIST's gzipped IDX files")
    options = parser.parse_args()
    done = read()
    todo = {s: [n for n in STRATEGIES if (n, s) not in done] for s in SEEDS}
    todo = {seed: names for seed, names in todo.items() if names}
    if todo and options.data is None:
        parser.error(f"runs of {len(todo)} seeds are missing; pass --data to make them")
    RECORDS.parent.mkdir(exist_ok=True)
    Parallel(n_jobs=2)(
        delayed(run)(options.data, seed, names) for seed, names in todo.items()
    )
    print(table(read()))


if __name__ == "__main__":
    main()
