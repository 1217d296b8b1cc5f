"""An encoder of your own in the net that a learner trains.

    python examples/custom_encoder.py

Any ``torch.nn.Module`` that maps samples to vectors will do.
"""

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

from mdal import CompositeActiveLearner
from mdal.net import CompositeNet


def small_convolutions(width=32):
    """Return an encoder of images of 8 x 8."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 16, width),
        nn.ReLU(),
    )


def main():
    """Train on two domains, ask for labels, and train again."""
    X, digits = load_digits(return_X_y=True)
    images = (X / 16).reshape(-1, 1, 8, 8).astype(np.float32)
    domains = np.where(np.arange(len(X)) % 2 == 0, "upright", "lying")
    lying = domains == "lying"
    images[lying] = np.rot90(images[lying], axes=(2, 3))
    y_mask = np.full(len(X), -1)
    learner = CompositeActiveLearner(
        CompositeNet(module__encoder=small_convolutions(), max_epochs=4),
        budget_per_round=60,
        random_state=0,
    )
    for _ in range(3):
        rows = learner.fit(images, domains, y_mask).query()
        y_mask[rows] = digits[rows]  # here people would label
    learner.fit(images, domains, y_mask)
    print(f"{(y_mask >= 0).sum()} labels: {learner.score(images, domains, digits):.3f}")
    print(f"alpha, {learner.domains_}:\n{learner.alpha_.round(2)}")


if __name__ == "__main__":
    main()
