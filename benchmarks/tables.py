"""The tables of the benchmark page, from records and published numbers alone.

    python benchmarks/tables.py [NAME ...]

prints the tables of the folders in ``records/``; without a name, those of all. With
``--write``, they are also put into the pages: between ``<!-- table: NAME -->`` and
``<!-- end -->``. The files in ``experiments/`` say what was run, and

    mdal run benchmarks/experiments/NAME.toml --records RECORDS --data FOLDER

makes records, or what is missing of them; RECORDS is ``benchmarks/records/NAME``. Those
whose name begins with that of another one (``rotating_mnist_d6_others``) have the same
data and rounds, share its records, and stand in one table with it.
"""

import argparse
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from mdal.experiment import markdown, paired, read_config, read_records, table

HERE = Path(__file__).parent
RECORDS = HERE / "records"
PAGES = (HERE / "README.md", HERE / "consistency.md", HERE.parent / "README.md")
BLOCK = re.compile(r"(<!-- table: ([^\n]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHARED = ("rotating_mnist_d6",)
EXPERIMENTS = sorted(
    path.stem
    for path in (HERE / "experiments").glob("*.toml")
    if path.stem.removesuffix("_90") in SHARED
    or not path.stem.startswith(tuple(f"{name}_" for name in SHARED))
)
# The paper's table of what CAL gains with more domains.
N_DOMAINS = (2, 6, 50, 150)
GAINS = ("Random, separate", "CAL-FA + Random", "CAL-alpha + Random")
SYSTEMS = read_config(HERE / "systems.toml")["methods"]
# The columns of the table of every system: the averages of these.
AVERAGED = {
    "rotating_mnist_d6": "RotatingMNIST-D6",
    "office_caltech": "Office-Caltech (SURF)",
    "vader4": "vader4",
}
PUBLISHED = {"rotating_mnist_d6": "RotatingMNIST-D6", "imageclef": "ImageCLEF"}
# Which domains are alike, by construction.
GROUPS = {
    "index_development": [[0, 2, 4], [1, 3, 5]],
    "rotating_mnist_d1_5": [[0], [1, 2, 3, 4, 5]],
    "rotating_mnist_d3_3": [[0, 1, 2], [3, 4, 5]],
}

# What stands beside consistency training, and the accuracy that labels are counted for.
WITHOUT_CONSISTENCY = ("CLUE", "CAL", "CAL + Random", "Random, separate")
ENOUGH = 80
ON_VECTORS = (
    "CAL + consistency",
    "CAL + consistency, not centred",
    "ERM + consistency",
    "ERM + consistency, not centred",
    "CAL",
    "Random, separate",
)
# Which pairs of them are compared.
AGAINST_ON_VECTORS = (
    ("CAL + consistency", "CAL"),
    ("CAL + consistency", "ERM + consistency"),
    ("CAL + consistency", "Random, separate"),
    ("CAL + consistency", "CAL + consistency, not centred"),
    ("CAL + consistency", "CAL + consistency, separate"),
    ("ERM + consistency", "Random, separate"),
    ("ERM + consistency", "ERM"),
    ("ERM + consistency", "ERM + consistency, not centred"),
)

# How many domains on each side are near otherwise, if not one: 30 degrees, as on D6.
NEIGHBOURS = {"rotating_mnist_d30": 5}
# Of which methods it is shown where alpha's weight is.
WEIGHED = (
    "CAL",
    "CAL + Random",
    "CAL + Random, cross-entropy alpha",
    "CAL, number",
    "CAL, vector",
)


def records_of(name):
    """Return the records of an experiment's runs that have all rounds."""
    folder = RECORDS / name
    records = read_records(folder) if folder.is_dir() else []
    rounds = read_config(HERE / "experiments" / f"{name}.toml")["rounds"]
    whole = {(r["name"], r["seed"]) for r in records if r["round"] == rounds}
    return [r for r in records if (r["name"], r["seed"]) in whole]


def accuracies(name, records):
    """Return the table of accuracies, beside published averages where there are any."""
    published = json.loads((HERE / "published.json").read_text())
    numbers = published.get(name, {})
    rows = table(records)
    for row in rows:
        if numbers:
            known = numbers.get(row["method"])
            row["published"] = f"{known[-1]:.1f}" if known else ""
    return markdown(rows)


def best_rival(records):
    """Return the best system of others, by the average over rounds."""
    names = [row["method"] for row in table(records)]
    own = ("CAL", "Alignment", "consistency")
    rivals = [name for name in names if not any(part in name for part in own)]
    return rivals[0] if rivals else None


def gains():
    """Return what CAL gains on average over rounds, by the number of domains.

    Published gains stand in brackets.
    """
    published = json.loads((HERE / "published.json").read_text())["number_of_domains"]
    lines = ["| domains | seeds | " + " | ".join(f"CAL - {m}" for m in GAINS) + " |"]
    lines.append("| --- " * (2 + len(GAINS)) + "|")
    for n in N_DOMAINS:
        records = records_of(f"rotating_mnist_d{n}")
        found = {r["name"] for r in records}
        if not found.issuperset(("CAL + Random", *GAINS)):
            continue
        pairs = [paired(records, "CAL + Random", rival) for rival in GAINS]
        cells = [
            f"{pair['difference']:.1f} ({known:.1f})"
            for pair, known in zip(pairs, published[str(n)], strict=True)
        ]
        lines.append(f"| {n} | {pairs[0]['seeds']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else None


def shares(name, records):
    """Return how much of alpha's weight is where it belongs, after each round.

    With planted groups, the weight inside each row's own group; otherwise that of the
    domain itself and its neighbours on the circle of angles (180 degrees turn a
    digit's picture almost into itself). Beside it what uniform weights would have.
    """
    weighed = [r for r in records if r["name"] in WEIGHED and r["alpha"]]
    if not weighed:
        return None
    near = _near(name, len(weighed[0]["alpha"]))
    names = [method for method in WEIGHED if any(r["name"] == method for r in weighed)]
    found = defaultdict(list)
    for record in weighed:
        share = float((np.array(record["alpha"]) * near).sum(axis=1).mean())
        found[record["labels"], record["name"]].append(share)
    lines = [f"| labels | {' | '.join(names)} | if uniform |"]
    lines.append("| --- " * (2 + len(names)) + "|")
    for labels in sorted({labels for labels, _ in found}):
        cells = [_with_spread(found[labels, method]) for method in names]
        lines.append(f"| {labels} | {' | '.join(cells)} | {near.mean():.2f} |")
    return "\n".join(lines)


def _with_spread(values):
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{spread}"


def _near(name, n_domains):
    near = np.zeros((n_domains, n_domains))
    if name in GROUPS:
        for group in GROUPS[name]:
            near[np.ix_(group, group)] = 1
        return near
    apart = np.abs(np.subtract.outer(np.arange(n_domains), np.arange(n_domains)))
    if not name.endswith("90"):
        apart = np.minimum(apart, n_domains - apart)
    return (apart <= NEIGHBOURS.get(name, 1)).astype(float)


def against_the_best_rival(records):
    """Return a sentence about CAL and the best method that is no form of it."""
    rival = best_rival(records)
    if rival is None or not any(record["name"] == "CAL" for record in records):
        return None
    return comparison(records, "CAL", rival)


def comparison(records, first, second):
    """Return a sentence about the paired difference between two methods."""
    found = paired(records, first, second)
    spread = ""
    if found["error"] is not None:
        spread = f" ± {found['error']:.1f} (standard error, p = {found['p']:.2g})"
    by_round = ", ".join(f"{difference:+.1f}" for difference in found["by_round"])
    return (
        f"{first} against {second}, averaged over rounds: {found['difference']:+.1f}"
        f"{spread} points (seeds: {found['seeds']}); by round {by_round}."
    )


def main_table():
    """Return the paper's main comparison, without the others in the same folder."""
    name = "rotating_mnist_d6"
    methods = read_config(HERE / "experiments" / f"{name}.toml")["methods"]
    records = [r for r in records_of(name) if r["name"] in methods]
    return f"{accuracies(name, records)}\n\n{against_the_best_rival(records)}"


def every_system():
    """Return the averages over rounds of every system, in the order of its file.

    Only of runs with all seeds; published averages stand beside them.
    """
    published = json.loads((HERE / "published.json").read_text())
    rows = {system: {"method": system} for system in SYSTEMS}
    for name, heading in AVERAGED.items():
        seeds = len(read_config(HERE / "experiments" / f"{name}.toml")["seeds"])
        found = {r["method"]: r for r in table(records_of(name))}
        for system, row in rows.items():
            whole = system in found and found[system]["seeds"] == seeds
            average = found[system]["average"] if whole else None
            row[f"{heading}, {seeds} seeds"] = average
    for name, heading in PUBLISHED.items():
        for system, row in rows.items():
            numbers = published[name].get(system)
            row[f"published, {heading}"] = f"{numbers[-1]:.1f}" if numbers else None
    return markdown(list(rows.values()))


def consistency():
    """Return consistency training beside training without, and what it saves.

    With the labels by which the mean accuracy has first reached 80 per cent, and the
    paired difference between CAL and plain training, in each run with both.
    """
    name = "rotating_mnist_d6"
    methods = read_config(HERE / "experiments" / f"{name}_consistency.toml")["methods"]
    shown = [*methods, *WITHOUT_CONSISTENCY]
    records = [r for r in records_of(name) if r["name"] in shown]
    published = json.loads((HERE / "published.json").read_text())[name]
    rows = table(records)
    for row in rows:
        means = {key: value[0] for key, value in row.items() if isinstance(key, int)}
        needed, *known = _labels_needed(means), *published.get(row["method"], ())
        if known:
            row["published"] = f"{known[-1]:.1f}"
            needed += f" ({_labels_needed(dict(zip(means, known, strict=False)))})"
        row[f"labels for {ENOUGH} % (published)"] = needed
    found = {row["method"] for row in rows}
    pairs = [(m, f"ERM{m.removeprefix('CAL')}") for m in methods if m.startswith("CAL")]
    compared = [comparison(records, *pair) for pair in pairs if found.issuperset(pair)]
    return "\n\n".join([markdown(rows), *compared])


def consistency_on_vectors():
    """Return consistency training beside training without, on the sets of features."""
    parts = []
    for name in ("office_caltech", "vader4"):
        records = [r for r in records_of(name) if r["name"] in ON_VECTORS]
        parts += [f"{AVERAGED[name]}:", markdown(table(records))]
        parts += against_each_other(records)
    return "\n\n".join(parts)


def against_each_other(records):
    """Return sentences about pairs of methods on vectors, of those that were run."""
    found = {record["name"] for record in records}
    pairs = [pair for pair in AGAINST_ON_VECTORS if found.issuperset(pair)]
    return [comparison(records, *pair) for pair in pairs]


def _labels_needed(means):
    """Return the first number of labels with which a mean accuracy is enough."""
    enough = [labels for labels, mean in sorted(means.items()) if mean >= ENOUGH]
    return str(enough[0]) if enough else f"> {max(means)}"


# Tables that are not those of one experiment: a part of one, or of several.
OTHERS = {
    "consistency": consistency,
    "consistency on vectors": consistency_on_vectors,
    "every system": every_system,
    "main table": main_table,
    "number of domains": gains,
}


def shown(name):
    """Return all that there is to show of an experiment, or one of the other tables."""
    if name in OTHERS:
        return OTHERS[name]() or "No finished run."
    records = records_of(name)
    if not records:
        return "No finished run."
    parts = [accuracies(name, records)]
    if name.endswith("_centre_development"):
        return "\n\n".join([*parts, *against_each_other(records)])
    parts.append(against_the_best_rival(records))
    if name.startswith(("rotating", "index")):
        parts += ["Share of alpha's weight that is near:", shares(name, records)]
    return "\n\n".join(filter(None, parts))


def filled(text):
    """Return a page with the tables of the records in their places."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{shown(m[2])}\n\n{m[3]}", text)


def main():
    """Print the tables of the experiments that have records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true", help="put them into the pages")
    options = parser.parse_args()
    known = [*EXPERIMENTS, *OTHERS]
    for name in options.names or known:
        if name not in known:
            parser.error(f"{name} is unknown; there are {', '.join(known)}")
        print(f"\n{name}\n\n{shown(name)}")
    if options.write:
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            page.write_text(filled(text), encoding="utf-8")


if __name__ == "__main__":
    main()
