"""Choose lambda_d by cross-validation on the few labels there are.

    python examples/grid_search.py

Two domains of digits, of which one in ten is labelled. Folds hold out labelled samples
alone, and the score is that of the worst domain; scikit-learn's own folds and scores
would count -1 as a class.
"""

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from mdal import CompositeActiveLearner
from mdal.model_selection import DomainScorer, LabelledKFold
from mdal.net import CompositeNet


def main():
    """Search, and show the scores."""
    sklearn.set_config(enable_metadata_routing=True)
    X, digits = load_digits(return_X_y=True)
    domains = np.where(np.arange(len(X)) % 2 == 0, "clear", "inverted")
    X = np.where((domains == "clear")[:, None], X, 16 - X) / 16
    rng = np.random.default_rng(0)
    y = np.where(rng.uniform(size=len(X)) < 0.1, digits, -1)
    search = GridSearchCV(
        CompositeActiveLearner(CompositeNet(max_epochs=2), random_state=0),
        {"lambda_d": [0.1, 1.0]},
        cv=LabelledKFold(3, random_state=0),
        scoring=DomainScorer("worst"),
    )
    search.fit(X, y, domains=domains)
    for lambda_d, score in zip(
        search.cv_results_["param_lambda_d"],
        search.cv_results_["mean_test_score"],
        strict=True,
    ):
        print(f"lambda_d {lambda_d}: accuracy of the worst domain {score:.2f}")
    print("\nThe best one asks for labels of")
    print(search.best_estimator_.allocate_budget(50))


if __name__ == "__main__":
    main()
