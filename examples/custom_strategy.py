"""A strategy of your own, alone and in a learner.

    python examples/custom_strategy.py

The strategy picks samples about which the net is unsure and which the labelled data do
not stand for. The domains' budget does not depend on it.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from mdal import CompositeActiveLearner
from mdal.scores import entropy, softmax
from mdal.strategies import Mixture, ScoreStrategy


class DoubtfulOutliers(ScoreStrategy):
    """Uncertain samples that labelled ones do not stand for."""

    def utilities(self, view):
        """Return the outlier score times the entropy."""
        return view.outlier * entropy(softmax(view.logits))


def main():
    """Compare three strategies with the same labels to begin with."""
    X, digits = load_digits(return_X_y=True)
    X = X / 16
    domains = np.where(np.arange(len(X)) % 3 == 0, "small", "large")
    for strategy in (
        "random",
        DoubtfulOutliers(),
        Mixture([DoubtfulOutliers(), "random"], quotas=[20, 10]),
    ):
        learner = CompositeActiveLearner(
            LogisticRegression(max_iter=500),
            strategy=strategy,
            budget_per_round=30,
            random_state=0,
        )
        y_mask = np.full(len(X), -1)
        for _ in range(5):
            rows = learner.fit(X, domains, y_mask).query()
            y_mask[rows] = digits[rows]  # here people would label
        learner.fit(X, domains, y_mask)
        accuracy = learner.score(X, domains, digits)
        print(f"{strategy!r}: {(y_mask >= 0).sum()} labels, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
