r"""How well alpha is recovered when the truth is known.

Four labelled domains have known distributions :math:`P_j`; original domain i is a
sample of the mixture :math:`\sum_j A_{ij} P_j` with a random matrix A, 2,000 samples
each. In domain i the samples that came from :math:`P_i` are the labelled ones, so the
labelled domains are samples of :math:`P_1, \dots, P_4` and A is the true alpha. The
figure is the mean absolute error of ``alpha_`` over its 16 entries. A second table
keeps only 10, 40 or 160 of the labels in each domain, or 10, 20, 40 and 80 in the four,
which of them how many being random.

Every estimator sees the same data in one run, and runs with the defaults of the
library. Those were chosen on seeds 100 to 105, after a first look at seeds 0 to 2 had
shown that a linear discriminator does not do; the table is made from seeds 0 to 4.
Eight ways to make kernel means even were compared; a second one was run on seeds 0 to 4
as well, before the present one was chosen (error 0.0673 with 10 to 80 labels).

    python benchmarks/planted_mixtures.py

runs what is missing and prints the table. Each finished run is a line in
``records/planted_mixtures.jsonl`` beside this file, and is not repeated.
"""

import json
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mdal.similarity import AdversarialSimilarity, KernelMeanSimilarity

RECORDS = Path(__file__).parent / "records" / "planted_mixtures.jsonl"
SEEDS = range(5)
SHAPES = ("shifted", "heavy-tailed", "stretched", "clusters")
UNEVEN = "10 to 80"
FEW_LABELS = (10, 40, 160, UNEVEN)
FEW_LABELS_METHODS = ("uniform", "kernel mean", "zero_one", "cross_entropy")
N_DOMAINS, N_SAMPLES, N_FEATURES = 4, 2000, 10

METHODS = {
    "uniform": None,
    "as drawn": None,
    "kernel mean": KernelMeanSimilarity(),
    "zero_one": AdversarialSimilarity("zero_one"),
    "probability": AdversarialSimilarity("probability"),
    "cross_entropy": AdversarialSimilarity("cross_entropy"),
    "zero_one, classifier": AdversarialSimilarity(
        "zero_one", classifier=LogisticRegression()
    ),
    "probability, classifier": AdversarialSimilarity(
        "probability", classifier=LogisticRegression()
    ),
    "cross_entropy, classifier": AdversarialSimilarity(
        "cross_entropy", classifier=LogisticRegression()
    ),
    "zero_one, U_E": AdversarialSimilarity(
        "zero_one", classifier=LogisticRegression(), lambda_d=2, complexity="mean"
    ),
    "zero_one, row": AdversarialSimilarity("zero_one", complexity="row"),
    "zero_one, linear": AdversarialSimilarity(
        "zero_one",
        discriminator=make_pipeline(StandardScaler(), LogisticRegression(C=0.01)),
    ),
}


def planted(shape, seed):
    """Return features, labels (-1 where there is none), domains, true alpha, shares.

    The shares are those of the samples as drawn: no estimator can do much better.
    """
    rng = np.random.default_rng(seed)
    truth = 0.2 * np.eye(N_DOMAINS) + 0.8 * rng.dirichlet(np.ones(N_DOMAINS), N_DOMAINS)
    centres = 0.75 * rng.normal(size=(N_DOMAINS, N_FEATURES))
    scales = np.exp(0.8 * rng.normal(size=(N_DOMAINS, N_FEATURES)))
    modes = 2.0 * rng.normal(size=(N_DOMAINS, 3, N_FEATURES))
    modes -= modes.mean(axis=1, keepdims=True)

    def draw(j, n):
        size = (n, N_FEATURES)
        if shape == "shifted":  # Gaussians around different centres
            return centres[j] + rng.normal(size=size)
        if shape == "heavy-tailed":  # the same with a Student t of 3 degrees
            return centres[j] + rng.standard_t(3, size=size)
        if shape == "stretched":  # one centre, different spreads
            return scales[j] * rng.normal(size=size)
        # "clusters": one centre, three clusters each, in different places
        return modes[j, rng.integers(3, size=n)] + rng.normal(size=size)

    source = [
        np.repeat(np.arange(N_DOMAINS), rng.multinomial(N_SAMPLES, row))
        for row in truth
    ]
    counts = np.array([np.bincount(s, minlength=N_DOMAINS) for s in source])
    X = np.concatenate([draw(j, n) for row in counts for j, n in enumerate(row)])
    domains = np.repeat(np.arange(N_DOMAINS), N_SAMPLES)
    classes = (X @ rng.normal(size=N_FEATURES) > 0).astype(int)
    y = np.where(np.concatenate(source) == domains, classes, -1)
    return X, y, domains, truth, counts / N_SAMPLES


def keep_labels(y, domains, n, seed):
    """Return the labels with all but n in each domain taken away."""
    rng = np.random.default_rng(seed)
    numbers = rng.permutation([10, 20, 40, 80]) if n == UNEVEN else [n] * N_DOMAINS
    few = np.full_like(y, -1)
    for domain, number in enumerate(numbers):
        rows = rng.permutation(np.flatnonzero((domains == domain) & (y >= 0)))[:number]
        few[rows] = y[rows]
    return few


def run(shape, seed, name, labels):
    """Return the record of one run with so many labels per domain, None being all."""
    X, y, domains, truth, shares = planted(shape, seed)
    if labels is not None:
        y = keep_labels(y, domains, labels, seed)
    start = time.perf_counter()
    if METHODS[name] is None:
        alpha = shares if name == "as drawn" else np.full_like(truth, 1 / N_DOMAINS)
    else:
        estimator = clone(METHODS[name]).set_params(random_state=seed)
        with threadpool_limits(1):
            alpha = estimator.fit(X, y, domains=domains).alpha_
    return {
        "shape": shape,
        "seed": seed,
        "method": name,
        "labels": labels,
        "error": float(np.abs(alpha - truth).mean()),
        "seconds": time.perf_counter() - start,
        "alpha": alpha.round(6).tolist(),
        "truth": truth.round(6).tolist(),
        "versions": {p: version(p) for p in ("mdal-learn", "numpy", "scikit-learn")},
    }


def read():
    """Return all records, by shape, seed, method and labels per domain."""
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    records = [json.loads(line) for line in lines]
    return {(r["shape"], r["seed"], r["method"], r["labels"]): r for r in records}


def cell(errors):
    """Return mean and standard deviation over seeds, the last axis."""
    return f"{errors.mean():.4f} ± {errors.std(ddof=1):.4f}"


def table(records):
    """Return the table by shape, with all labels."""
    rows = [["", *SHAPES, "all", "seconds"]]
    for name in METHODS:
        runs = [[records[s, seed, name, None] for seed in SEEDS] for s in SHAPES]
        errors = np.array([[r["error"] for r in shape] for shape in runs])
        seconds = np.mean([[r["seconds"] for r in shape] for shape in runs])
        cells = [*map(cell, errors), cell(errors.mean(axis=0)), f"{seconds:.1f}"]
        rows.append([name, *cells])
    return markdown(rows)


def few_labels_table(records):
    """Return the table by labels per domain, means over the shapes."""
    rows = [["labels per domain", *map(str, FEW_LABELS)]]
    for name in FEW_LABELS_METHODS:
        errors = [
            [[records[s, seed, name, n]["error"] for seed in SEEDS] for s in SHAPES]
            for n in FEW_LABELS
        ]
        rows.append([name, *map(cell, np.mean(errors, axis=1))])
    return markdown(rows)


def markdown(rows):
    """Return rows of cells as a Markdown table, the first being its head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    """Run what is missing and print the tables."""
    RECORDS.parent.mkdir(exist_ok=True)
    done = read()
    kinds = [(name, None) for name in METHODS]
    kinds += [(name, n) for name in FEW_LABELS_METHODS for n in FEW_LABELS]
    jobs = [(s, seed, *kind) for kind in kinds for s in SHAPES for seed in SEEDS]
    todo = [job for job in jobs if job not in done]
    results = Parallel(n_jobs=2, return_as="generator_unordered")(
        delayed(run)(*job) for job in todo
    )
    for number, record in enumerate(results, 1):
        with RECORDS.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(f"{number} of {len(todo)}: {record['method']}, {record['shape']}")
    print(table(read()), few_labels_table(read()), sep="\n\n")


if __name__ == "__main__":
    main()
