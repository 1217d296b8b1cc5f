"""How long it takes to pick samples, and how much memory.

    python benchmarks/selection_speed.py

prints four tables. Every figure is measured in a process of its own, with the inputs
made before the clock starts and one small selection before it; memory is the peak above
what the process holds then. Contenders take turns.

1. BADGE and GraDS against ``Badge`` of scikit-activeml, on the same float64 inputs: the
   same logits as probabilities, the same embeddings, nothing to fit. With one thread
   and with two.
2. A million samples, 1,000 picks, for every strategy.
3. Time by the number of samples, and by the number of picks, with the exponent that
   fits best.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

N_ROUNDS = 3
STRATEGIES = (
    "random",
    "margin",
    "entropy",
    "least_confidence",
    "egl",
    "energy",
    "eada",
    "badge",
    "grads",
    "cluster_margin",
    "clue",
    "coreset",
)


def inputs(n, n_classes, width, dtype):
    """Return logits, embeddings of at least 0 and outlier scores."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((n, n_classes), dtype=dtype)
    logits *= 2
    embedding = rng.standard_normal((n, width), dtype=dtype)
    np.maximum(embedding, 0, out=embedding)
    return logits, embedding, rng.uniform(size=n)


def ours(name, logits, embedding, outlier):
    """Return a function of n that picks with one of our strategies."""
    from mdal.strategies import PoolView, get_strategy

    view = PoolView(
        logits, embedding, outlier=outlier, labelled_embedding=embedding[:500]
    )
    return lambda n: get_strategy(name).select(view, n, 0)


def streamed(name, logits, embedding, outlier):
    """Return a function of n that picks from blocks of 50,000 samples."""
    from mdal.strategies import PoolView, select_streamed

    def blocks():
        for start in range(0, len(logits), 50_000):
            rows = slice(start, start + 50_000)
            yield PoolView(logits[rows], embedding[rows], outlier=outlier[rows])

    return lambda n: select_streamed(name, blocks(), n, random_state=0)


def scikit_activeml(logits, embedding, outlier):
    """Return a function of n that picks with scikit-activeml's Badge."""
    from skactiveml.base import SkactivemlClassifier
    from skactiveml.pool import Badge

    from mdal.scores import softmax

    class Predictions(SkactivemlClassifier):
        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return probabilities[: len(X)]

    probabilities = softmax(logits)
    classifier = Predictions(classes=list(range(logits.shape[1])))

    def pick(n):
        unlabelled = np.full(len(embedding), np.nan)
        badge = Badge(random_state=0)
        return badge.query(
            embedding, unlabelled, classifier, fit_clf=False, batch_size=n
        )

    return pick


def status(field):
    """Return a line of this process's memory in MB."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return int(line.split()[1]) / 1024


def measure(job):
    """Measure one selection in this process, and print seconds and MB."""
    data = inputs(job["n"], job["classes"], job["width"], job["dtype"])
    small = tuple(array[:2000].copy() for array in data)
    contender, *arguments = job["contender"]
    maker = {"ours": ours, "streamed": streamed, "skactiveml": scikit_activeml}
    maker[contender](*arguments, *small)(5)
    pick = maker[contender](*arguments, *data)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = status("VmRSS")
    start = time.perf_counter()
    picked = pick(job["k"])
    seconds = time.perf_counter() - start
    assert len(set(np.asarray(picked).tolist())) == job["k"]
    print(json.dumps({"seconds": seconds, "mb": status("VmHWM") - before}))


def run(contender, n, k, *, classes=10, width=64, dtype="float32", threads=2):
    """Return seconds and MB of one selection, measured in a new process."""
    job = {
        "contender": contender,
        "n": n,
        "k": k,
        "classes": classes,
        "width": width,
        "dtype": dtype,
    }
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    output = subprocess.run(
        [sys.executable, __file__, "--measure", json.dumps(job)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    print(".", end="", file=sys.stderr, flush=True)
    return json.loads(output)


def against_scikit_activeml():
    """Print times of BADGE and GraDS, and ratios to scikit-activeml's Badge."""
    print("n, classes, width, picks     threads             seconds      MB   ratio")
    contenders = {
        "skactiveml Badge": ["skactiveml"],
        "BADGE": ["ours", "badge"],
        "GraDS": ["ours", "grads"],
    }
    for n, classes, width, k in ((20_000, 10, 256, 100), (10_000, 65, 256, 50)):
        for threads in (1, 2):
            rounds = [
                {
                    name: run(
                        contender,
                        n,
                        k,
                        classes=classes,
                        width=width,
                        dtype="float64",
                        threads=threads,
                    )
                    for name, contender in contenders.items()
                }
                for _ in range(N_ROUNDS)
            ]
            for name in contenders:
                seconds = np.median([each[name]["seconds"] for each in rounds])
                ratio = np.median(
                    [
                        each["skactiveml Badge"]["seconds"] / each[name]["seconds"]
                        for each in rounds
                    ]
                )
                mb = np.median([each[name]["mb"] for each in rounds])
                size = f"{n:,}, {classes}, {width}, {k}"
                print(
                    f"{size:<28} {threads}  {name:<17} {seconds:7.3f} {mb:7.0f} "
                    f"{ratio:7.0f}"
                )
    print()


def a_million():
    """Print time and memory of 1,000 picks among a million samples."""
    print("1,000 of 1,000,000 samples, 10 classes, width 64, float32, two threads")
    print("                            seconds      MB")
    jobs = {name: ["ours", name] for name in STRATEGIES}
    jobs["grads, in blocks of 50,000"] = ["streamed", "grads"]
    for name, contender in jobs.items():
        found = run(contender, 10**6, 1000)
        print(f"{name:<27} {found['seconds']:7.2f} {found['mb']:7.0f}")
    print()


def exponent(sizes, seconds):
    """Return the slope of log time over log size."""
    return np.polyfit(np.log(sizes), np.log(seconds), 1)[0]


def growth():
    """Print times by n and by k, medians over rounds, and the exponents."""
    sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    picks = [100, 200, 400, 800, 1600]
    for what, values, jobs in (
        ("samples, 100 picks", sizes, [(n, 100) for n in sizes]),
        ("picks among 100,000 samples", picks, [(100_000, k) for k in picks]),
    ):
        print(f"{what:<28}" + "".join(f"{v:>10,}" for v in values) + "  exponent")
        for name in ("badge", "grads"):
            times = np.median(
                [
                    [run(["ours", name], n, k)["seconds"] for n, k in jobs]
                    for _ in range(N_ROUNDS)
                ],
                axis=0,
            )
            cells = "".join(f"{seconds:>10.3f}" for seconds in times)
            print(f"{name + ', seconds':<28}{cells} {exponent(values, times):9.2f}")
        print()


def main():
    """Print the tables, or measure one selection."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(json.loads(options.measure))
        return
    against_scikit_activeml()
    a_million()
    growth()


if __name__ == "__main__":
    main()
