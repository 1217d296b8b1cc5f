"""Label digits of two cameras in the terminal, a few at a time.

    python examples/label_by_hand.py [--labels labels.csv] [--per-round 10]

shows one image after the other and asks which digit it is; Enter leaves one out for
ever and q ends. Every answer is written at once, and the next start goes on with all
answers there are.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from mdal import CompositeActiveLearner

SHADES = " .:-=+*#%@"


def cameras():
    """Return images as vectors, and the camera of each: one is upside down."""
    X, _ = load_digits(return_X_y=True)
    domains = np.where(np.arange(len(X)) % 2 == 0, "upright", "upside down")
    return np.where((domains == "upright")[:, None], X, X[:, ::-1]) / 16, domains


def drawing(image):
    """Return an image as lines of text."""
    rows = (image.reshape(8, 8) * (len(SHADES) - 1)).astype(int)
    return "\n".join("".join(SHADES[shade] * 2 for shade in row) for row in rows)


def read(path, n_samples):
    """Return the labels, -1 where there is none, and the rows that were left out."""
    y_mask, skipped = np.full(n_samples, -1), []
    if path.exists():
        with path.open(newline="") as file:
            for row, label in csv.reader(file):
                if label == "skipped":
                    skipped.append(int(row))
                else:
                    y_mask[int(row)] = int(label)
    return y_mask, skipped


def main():
    """Ask, train, and ask again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=Path, default=Path("labels.csv"))
    parser.add_argument("--per-round", type=int, default=10)
    options = parser.parse_args()
    X, domains = cameras()
    learner = CompositeActiveLearner(
        LogisticRegression(max_iter=500),
        budget_per_round=options.per_round,
        random_state=0,
    )
    while True:
        y_mask, skipped = read(options.labels, len(X))
        learner.fit(X, domains, y_mask, exclude=skipped)
        print(f"\n{learner.history_[-1]}\nNext, by camera:\n{learner.budget_}")
        rows = learner.query(min(options.per_round, learner.pool_.free.sum()))
        if len(rows) == 0:
            print("everything is labelled")
            return
        for row in rows:
            print(f"\n{drawing(X[row])}\n")
            answer = input(f"{domains[row]}, which digit? ").strip()
            if answer == "q":
                return
            if answer and answer not in list("0123456789"):
                print("a digit, Enter to leave it out, or q; it will come again")
                continue
            with options.labels.open("a", newline="") as file:
                csv.writer(file).writerow([row, answer or "skipped"])


if __name__ == "__main__":
    main()
