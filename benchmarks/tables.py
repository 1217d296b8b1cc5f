"""The tables of the benchmark page, from records and published numbers alone.

    python benchmarks/tables.py [EXPERIMENT ...]

prints the tables of the experiments whose records are in ``records/``, one folder each;
without a name, those of all. The files in ``experiments/`` say what was run, and

    mdal run benchmarks/experiments/NAME.toml --records RECORDS --data FOLDER

makes records, or what is missing of them; RECORDS is ``benchmarks/records/NAME``.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from mdal.experiment import markdown, paired, read_config, read_records, table

HERE = Path(__file__).parent
EXPERIMENTS = sorted(path.stem for path in (HERE / "experiments").glob("*.toml"))
# Experiments that share the records of another one: the same data and rounds.
TOGETHER = {"rotating_mnist_d6_ablations": "rotating_mnist_d6"}
# Which domains are alike, by construction.
GROUPS = {
    "rotating_mnist_d1_5": [[0], [1, 2, 3, 4, 5]],
    "rotating_mnist_d3_3": [[0, 1, 2], [3, 4, 5]],
}


def records_of(name):
    """Return the records of an experiment's methods and seeds, or none."""
    folder = HERE / "records" / TOGETHER.get(name, name)
    if not folder.is_dir():
        return []
    methods = read_config(HERE / "experiments" / f"{name}.toml")["methods"]
    return [record for record in read_records(folder) if record["name"] in methods]


def finished(name, records):
    """Return the records of runs that have all rounds."""
    rounds = read_config(HERE / "experiments" / f"{name}.toml")["rounds"]
    whole = {(r["name"], r["seed"]) for r in records if r["round"] == rounds}
    return [r for r in records if (r["name"], r["seed"]) in whole]


def accuracies(name, records):
    """Return the table of accuracies, beside published averages where there are any."""
    published = json.loads((HERE / "published.json").read_text())
    numbers = published.get(TOGETHER.get(name, name), {})
    rows = table(records)
    for row in rows:
        if numbers:
            known = numbers.get(row["method"])
            row["published"] = f"{known[-1]:.1f}" if known else ""
    return markdown(rows)


def best_rival(records):
    """Return the best method that is no form of CAL, by the average over rounds."""
    rivals = [r["method"] for r in table(records) if not r["method"].startswith("CAL")]
    return rivals[0] if rivals else None


def shares(name, records):
    """Return how much of alpha's weight is where it belongs, after each round.

    With planted groups, the weight inside each row's own group; otherwise that of the
    domain itself and its neighbours on the circle of angles (180 degrees turn a
    digit's picture almost into itself). Beside it what uniform weights would have.
    """
    lines = ["| labels | share of weight | if uniform |", "| --- | --- | --- |"]
    for labels in sorted({record["labels"] for record in records}):
        here = [r for r in records if r["labels"] == labels and r["alpha"]]
        if not here:
            continue
        near = _near(name, len(here[0]["alpha"]))
        found = [float((np.array(r["alpha"]) * near).sum(axis=1).mean()) for r in here]
        spread = f" ± {np.std(found, ddof=1):.2f}" if len(found) > 1 else ""
        lines.append(f"| {labels} | {np.mean(found):.2f}{spread} | {near.mean():.2f} |")
    return "\n".join(lines)


def _near(name, n_domains):
    near = np.zeros((n_domains, n_domains))
    if name in GROUPS:
        for group in GROUPS[name]:
            near[np.ix_(group, group)] = 1
        return near
    apart = np.abs(np.subtract.outer(np.arange(n_domains), np.arange(n_domains)))
    if not name.endswith("90"):
        apart = np.minimum(apart, n_domains - apart)
    return (apart <= 1).astype(float)


def main():
    """Print the tables of the experiments that have records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT")
    names = parser.parse_args().experiments or EXPERIMENTS
    for name in names:
        if name not in EXPERIMENTS:
            parser.error(f"{name} is unknown; there are {', '.join(EXPERIMENTS)}")
        records = finished(name, records_of(name))
        if not records:
            print(f"\n{name}: no finished run")
            continue
        print(f"\n{name}\n\n{accuracies(name, records)}")
        rival, methods = best_rival(records), {record["name"] for record in records}
        if rival and "CAL" in methods:
            print("\nCAL against the best rival:", rival, paired(records, "CAL", rival))
        cal = [r for r in records if r["name"] == "CAL"]
        if name.startswith("rotating") and cal:
            print(f"\nWeight of CAL's alpha near the diagonal:\n\n{shares(name, cal)}")


if __name__ == "__main__":
    main()
