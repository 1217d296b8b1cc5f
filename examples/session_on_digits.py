"""A pool to try a labelling session on, and somebody who labels.

    python examples/session_on_digits.py make
    python examples/session_on_digits.py label digits/tasks/round-0.csv

The first writes digits.csv and digits.npy: digits that six cameras see at different
angles. The second fills in the labels of a round's tasks, in the place of people.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from mdal.datasets import load_rotating_digits


def make(folder):
    """Write the table of samples and the array of images."""
    data = load_rotating_digits(subset="train")
    np.save(folder / "digits.npy", data.X)
    with open(folder / "digits.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "camera"])
        table.writerows([f"digit-{i}", f"{d} deg"] for i, d in enumerate(data.domains))


def label(path):
    """Write a copy of a round's tasks with the right labels beside it."""
    data = load_rotating_digits(subset="train")
    labelled = path.with_name(f"{path.stem}-labelled.csv")
    with open(path, newline="") as tasks, open(labelled, "w", newline="") as file:
        rows = csv.DictReader(tasks)
        table = csv.DictWriter(file, rows.fieldnames)
        table.writeheader()
        for row in rows:
            number = int(row["mdal_id"].removeprefix("digit-"))
            table.writerow({**row, "label": data.classes[data.y[number]]})
    print(f"labels: {labelled}")


def main():
    """Make the pool, or label tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("make", "label"))
    parser.add_argument("path", type=Path, nargs="?", default=Path())
    options = parser.parse_args()
    {"make": make, "label": label}[options.step](options.path)


if __name__ == "__main__":
    main()
