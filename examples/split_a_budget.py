"""How to split a labelling budget between four cameras that see the same digits.

The cameras stand at different angles: one upright, one tilted a little, one on its
side; the images of the fourth come from all three positions. A few images of each are
labelled. Which cameras should the next 120 labels go to?

    python examples/split_a_budget.py
"""

import numpy as np
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mdal.bounds import DomainBound
from mdal.budget import OptimalBudget, UniformBudget
from mdal.divergence import DomainDivergence
from mdal.similarity import AdversarialSimilarity, KernelMeanSimilarity

CAMERAS = {"upright": [0], "tilted": [30], "sideways": [90], "all three": [0, 30, 90]}
LABELS_SO_FAR = 40
BUDGET = 120


def load(rng):
    """Return features, labels (-1 where there is none yet) and the cameras' names."""
    images, digits = load_digits(return_X_y=True)
    domains = rng.permutation(np.resize(list(CAMERAS), len(images)))
    angles = [rng.choice(CAMERAS[camera]) for camera in domains]
    rotated = [
        rotate(image.reshape(8, 8), angle, reshape=False, order=1).ravel()
        for image, angle in zip(images, angles, strict=True)
    ]
    labels = np.full(len(digits), -1)
    for camera in CAMERAS:
        rows = rng.permutation(np.flatnonzero(domains == camera))[:LABELS_SO_FAR]
        labels[rows] = digits[rows]
    return PCA(10, random_state=0).fit_transform(rotated), labels, domains


def show(title, rows, columns, matrix):
    """Print a matrix with names for its rows and columns."""
    print(f"\n{title}\n" + " " * 10 + "".join(f"{name:>10}" for name in columns))
    for name, row in zip(rows, np.atleast_2d(matrix), strict=True):
        print(f"{name:<10}" + "".join(f"{value:10.2f}" for value in row))


def main():
    """Estimate alpha, its distances and bounds, and split the budget by it."""
    X, labels, domains = load(np.random.default_rng(0))
    data = {"X": X, "y": labels, "domains": domains}

    kernel = KernelMeanSimilarity(random_state=0).fit(**data)
    game = AdversarialSimilarity(random_state=0).fit(**data)
    names = game.domains_
    print("Alpha: whose labels (columns) speak for which camera (rows); rows sum to 1.")
    show("By kernel means:", names, names, kernel.alpha_)
    show("By the game against a discriminator:", names, names, game.alpha_)

    print(
        "\nDistance of each camera from the labels that speak for it (0: cannot be"
        "\ntold apart, 2: nothing in common), and the bound on the error. Bounds are"
        "\nabove 1: compare them with each other."
    )
    for title, alpha in (("uniform alpha", None), ("the game's alpha", game.alpha_)):
        divergence = DomainDivergence(alpha=alpha, random_state=0).fit(**data)
        bound = DomainBound(alpha=alpha, random_state=0).fit(**data).bound_
        show(f"With {title}: distances", [""], names, divergence.distances_)
        print(bound)

    sizes = [int((domains == name).sum()) for name in names]
    known = {"alpha": game.alpha_, "sizes": sizes, "spent": game.counts_}
    print(
        f"\nThe next {BUDGET} labels. Three cameras cover the fourth, which needs none"
        "\nof its own; the uniform budget does not know that."
    )
    for title, rule in (("optimal", OptimalBudget()), ("uniform", UniformBudget())):
        split = zip(names, rule.split(BUDGET, **known), strict=True)
        print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in split))


if __name__ == "__main__":
    main()
