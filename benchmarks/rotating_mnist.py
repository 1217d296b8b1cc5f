"""What Composite Active Learning's training is worth on RotatingMNIST-D6.

60,000 MNIST images fall into six domains at random; an image of domain i (from 0) is
rotated by an angle between 30 i and 30 (i + 1) degrees. Of each domain 25, 75 or 150
random images are labelled, the same for every method with the same seed. All methods
train the same networks (width 64) for 1,500 steps with the defaults of the library,
and the averaged weights after the last step are tested on 10,000 test images that were
made in the same way. The figure is the mean accuracy over domains.

    python benchmarks/rotating_mnist.py --data FOLDER

runs what is missing and prints the tables; FOLDER has MNIST's four gzipped IDX files.
Everything that had to be chosen was chosen on the development split

    python benchmarks/rotating_mnist.py --data FOLDER --development

which divides the training images: the first 50,000 are the pool, the others are tested
on, with other seeds. Each finished run is a line in ``records/rotating_mnist.jsonl``
beside this file, and is not repeated. On two cores the runs take about an hour and a
half, the development an hour.
"""

import argparse
import gzip
import json
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from torch.nn import functional

from mdal.net import CompositeNet

RECORDS = Path(__file__).parent / "records" / "rotating_mnist.jsonl"
N_DOMAINS = 6
SEEDS = {"test": range(3), "development": range(100, 102)}
OWN = ("lr", "max_epochs", "steps_per_epoch", "batch_size", "average_decay")
SETTINGS = {"module__width": 64, "max_epochs": 30, "steps_per_epoch": 50, "lr": 1e-3}

METHODS = {
    "ERM": {"method": "erm"},
    "CAL-FA": {"method": "cal_fa"},
    "CAL": {"method": "cal"},
    "CAL-alpha": {"method": "cal_alpha"},
    "each domain aligned": {"method": "cal_identity"},
    "CAL without 2nd term": {"method": "cal_without_second"},
    "CAL without 3rd term": {"method": "cal_without_third"},
    "CAL without both": {"method": "cal_without_both"},
    "CAL-FA++": {"method": "cal_fa++"},
    "CAL++": {"method": "cal++"},
}
_SEPARATE = {"method__batch_norm": "separate"}
_TOGETHER = {"method__batch_norm": "together"}
CHOICES = {
    "ERM": {"method": "erm"},
    "CAL, separate, constant": {**_SEPARATE, "method__fade_from": 1.0},
    "CAL, separate, fading from half": {**_SEPARATE, "method__fade_from": 0.5},
    "CAL, separate, fading": {**_SEPARATE, "method__fade_from": 0.0},
    "CAL, together, constant": {**_TOGETHER, "method__fade_from": 1.0},
    "CAL, together, fading": {**_TOGETHER, "method__fade_from": 0.0},
    "CAL-alpha, separate": {"method": "cal_alpha", **_SEPARATE},
    "CAL-alpha, together": {"method": "cal_alpha", **_TOGETHER},
}
JOBS = {
    "test": [(name, n) for n in (150, 900) for name in list(METHODS)[:3]]
    + [(name, 450) for name in METHODS],
    "development": [(name, 150) for name in CHOICES if "CAL-alpha" not in name]
    + [(name, 450) for name in CHOICES if "half" not in name],
}


def read_idx(path):
    """Return the array in a gzipped IDX file."""
    content = gzip.decompress(path.read_bytes())
    n_dimensions = content[3]
    shape = np.frombuffer(content, ">i4", n_dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)


def rotated(images, degrees):
    """Return images of bytes rotated about their centres, as numbers from 0 to 1."""
    images = torch.tensor(images)[:, None].float() / 255
    angles = torch.tensor(np.deg2rad(degrees)).float()
    cos, sin, zero = angles.cos(), angles.sin(), torch.zeros(len(angles))
    turn = torch.stack([cos, -sin, zero, sin, cos, zero], dim=1).view(-1, 2, 3)
    parts = []
    for part, rotation in zip(images.split(5000), turn.split(5000), strict=True):
        grid = functional.affine_grid(rotation, part.shape, align_corners=False)
        parts.append(functional.grid_sample(part, grid, align_corners=False))
    return torch.cat(parts)


def domains_of(images, y, rng):
    """Return the rotated images, their labels and their domains."""
    domains = np.empty(len(y), dtype=int)
    domains[rng.permutation(len(y))] = np.arange(len(y)) * N_DOMAINS // len(y)
    degrees = (domains + rng.uniform(size=len(y))) * 180 / N_DOMAINS
    return rotated(images, degrees), y.astype(int), domains


def load(folder, split, seed):
    """Return what to train and what to test on, each as images, labels, domains."""
    train, test = (
        [read_idx(folder / f"{part}-{kind}-ubyte.gz") for kind in kinds]
        for part, kinds in (
            ("train", ("images-idx3", "labels-idx1")),
            ("t10k", ("images-idx3", "labels-idx1")),
        )
    )
    if split == "development":
        train, test = zip(*[(a[:50_000], a[50_000:]) for a in train], strict=True)
    rng = np.random.default_rng(seed)
    return domains_of(*train, rng), domains_of(*test, rng)


def run(folder, split, name, labels, seed):
    """Return the record of one run."""
    torch.set_num_threads(1)
    (X, y, domains), (test_X, test_y, test_domains) = load(folder, split, seed)
    rng = np.random.default_rng([seed, labels])
    partly = np.full_like(y, -1)
    for domain in range(N_DOMAINS):
        rows = rng.permutation(np.flatnonzero(domains == domain))[: labels // N_DOMAINS]
        partly[rows] = y[rows]
    chosen = (METHODS if split == "test" else CHOICES)[name]
    start = time.perf_counter()
    net = CompositeNet(**SETTINGS, **chosen, random_state=seed)
    net.fit(X, partly, domains=domains)
    seconds = time.perf_counter() - start
    right = net.predict(test_X) == test_y
    last, resolved = net.history[-1], net.objective_.get_params()
    return {
        "split": split,
        "method": name,
        "labels": labels,
        "seed": seed,
        "accuracy": float(np.mean([right[test_domains == i].mean() for i in range(6)])),
        "by_domain": [float(right[test_domains == i].mean()) for i in range(6)],
        "seconds": seconds,
        "settings": {**SETTINGS, **chosen},
        "objective": {k: v for k, v in resolved.items() if v is not None},
        "net": {name: getattr(net, name) for name in OWN},
        "losses": {k: last[k] for k in ("v_h", "v_d", "v_lambda") if k in last},
        "alpha": net.alpha_.round(4).tolist(),
        "versions": {p: version(p) for p in ("mdal-learn", "torch", "skorch", "numpy")},
    }


def read():
    """Return all records, by split, method, number of labels and seed."""
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    records = [json.loads(line) for line in lines]
    return {(r["split"], r["method"], r["labels"], r["seed"]): r for r in records}


def accuracies(records, split, name, labels):
    """Return the accuracies of all seeds in per cent, or None if one is missing."""
    runs = [records.get((split, name, labels, seed)) for seed in SEEDS[split]]
    return None if None in runs else 100 * np.array([r["accuracy"] for r in runs])


def table(records, split="test"):
    """Return the table of one split: mean and standard deviation over the seeds."""
    lines = ["| | 150 labels | 450 labels | 900 labels |", "| --- | --- | --- | --- |"]
    for name in METHODS if split == "test" else CHOICES:
        found = [accuracies(records, split, name, n) for n in (150, 450, 900)]
        cells = [
            "" if a is None else f"{a.mean():.1f} ± {a.std(ddof=1):.1f}" for a in found
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of MNIST's gzipped IDX files")
    parser.add_argument("--development", action="store_true")
    options = parser.parse_args()
    split = "development" if options.development else "test"
    RECORDS.parent.mkdir(exist_ok=True)
    jobs = [(split, *job, seed) for job in JOBS[split] for seed in SEEDS[split]]
    todo = [job for job in jobs if job not in read()]
    if todo and options.data is None:
        parser.error(f"{len(todo)} runs are missing; pass --data to make them")
    results = Parallel(n_jobs=2, return_as="generator_unordered")(
        delayed(run)(options.data, *job) for job in todo
    )
    for number, record in enumerate(results, 1):
        with RECORDS.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(
            f"{number} of {len(todo)}: {record['method']}, {record['labels']} labels, "
            f"{record['accuracy']:.3f}",
            flush=True,
        )
    print(table(read(), split))


if __name__ == "__main__":
    main()
