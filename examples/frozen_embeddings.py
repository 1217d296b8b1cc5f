"""A labelling loop on embeddings that stay as they are, with logistic regression.

    python examples/frozen_embeddings.py

No network is trained: alpha is estimated on the embeddings, and the labelled domains
are weighted by it. Here the embeddings are principal components of digits; in practice
they come from a network that somebody else has trained.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from mdal import CompositeActiveLearner


def main():
    """Label five rounds, and show how accuracy grows."""
    X, digits = load_digits(return_X_y=True)
    domains = np.array(["clear", "faint", "noisy"])[np.arange(len(X)) % 3]
    X[domains == "faint"] *= 0.5
    noise = np.random.default_rng(0).normal(0, 4, X.shape)
    X[domains == "noisy"] += noise[domains == "noisy"]
    embeddings = PCA(20, whiten=True, random_state=0).fit_transform(X)
    y_mask = np.full(len(X), -1)
    learner = CompositeActiveLearner(
        LogisticRegression(), strategy="badge", budget_per_round=45, random_state=0
    )
    for _ in range(5):
        rows = learner.fit(embeddings, domains, y_mask).query()
        y_mask[rows] = digits[rows]  # here people would label
        learner.fit(embeddings, domains, y_mask)
        accuracy = learner.score(embeddings, domains, digits)
        print(f"{(y_mask >= 0).sum()} labels: accuracy {accuracy:.3f}")
    print(f"\n{learner.history_[-1]}\n\nLabels of the next round:\n{learner.budget_}")


if __name__ == "__main__":
    main()
