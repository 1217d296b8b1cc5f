"""Alpha from features, by a game against a discriminator."""

from dataclasses import replace

import numpy as np
from tqdm import tqdm

from .._crossfit import resolve_classifier, row_folds, weighted_heads
from .._validation import (
    PartlyLabelled,
    check_count,
    check_number,
    check_option,
    check_seed,
    resolve_alpha,
)
from ..divergence import (
    conditional_discriminators,
    discriminator_tables,
    prepare_discriminator,
)
from ..tables import LOSSES
from ._objective import alpha_gradient, alpha_step
from ._transformer import Similarity


class AdversarialSimilarity(Similarity):
    r"""Alpha from a game between its rows and a discriminator that adapts.

    In every step the conditional discriminator is trained anew on the surrogates of
    the current alpha, its held-out losses become tables, and alpha takes one
    multiplicative step (:func:`alpha_step`) down the objective
    (:func:`alpha_objective`). The average of the second half of the iterates is the
    estimate: for fixed tables the objective is linear in alpha, so single iterates
    wander to corners, while the average approaches the balance of the game. With only
    tens of labels per domain the game is decided by noise;
    :class:`KernelMeanSimilarity` is the better choice there.

    Parameters
    ----------
    loss : {"zero_one", "probability", "cross_entropy"}, default="zero_one"
        The losses in the tables, see :func:`mdal.tables.domain_tables`. "zero_one" is
        the paper's choice.
    discriminator : scikit-learn classifier, default=None
        Takes ``sample_weight`` (a Pipeline: in its last step) and has
        `predict_proba`. None is a logistic regression on features of a Gaussian
        kernel.
    classifier : scikit-learn classifier or None, default=None
        For the shared and the domains' classifiers, trained anew in every step. None
        leaves the first and third term of the objective out, so that alpha depends
        on how similar domains are and not on how difficult they are.
    lambda_d : float, default=1.0
        Weight of the discriminator, see :func:`alpha_objective`.
    complexity : {None, "mean", "row"}, default=None
        Complexity term, see :func:`alpha_objective`. "row" spreads the rows, the more
        the fewer labels there are. ``lambda_d=2, complexity="mean"`` with a classifier
        is the full :math:`U_E`, with held-out errors.
    vc_dimension : int, default=None
        For the complexity; None is n_features + 1.
    delta : float, default=0.05
        For the complexity.
    n_steps : int, default=30
        Steps of the game.
    step_size : float, default=8.0
        First step of alpha; step t takes this divided by :math:`\sqrt t`.
    cv : int, default=2
        Number of folds, at least 2; no more than there are samples are used. Both
        copies of a labelled row, in its original and in its labelled domain, are held
        out together.
    random_state : int, RandomState instance or None, default=None
        Decides the folds, and the randomness of classifiers and discriminators where
        they have a ``random_state`` of None.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_domains, n_domains)
        ``alpha_[i, j]`` is the weight of labelled domain j in the surrogate of
        original domain i. The column of a domain without a label is 0.
    column_means_ : ndarray of shape (n_domains,)
        :math:`\alpha_j`, the weights of the domains in the labelling budget.
    history_ : ndarray of shape (n_steps + 1, n_domains, n_domains)
        All iterates; the first is uniform over the domains that have labels. If there
        is only one of those, there is one step.
    tables_ : DomainTables
        The tables of the last step.
    domains_ : ndarray of shape (n_domains,)
        Names of the domains, sorted.
    counts_ : ndarray of shape (n_domains,)
        Labelled samples in each domain.
    sizes_ : ndarray of shape (n_domains,)
        Samples in each domain, labelled ones included.

    See Also
    --------
    KernelMeanSimilarity : A convex alternative without a discriminator.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import AdversarialSimilarity
    >>> rng = np.random.default_rng(0)
    >>> centre = np.repeat([[0.0, 0.0], [0.0, 0.0], [4.0, 4.0]], 200, axis=0)
    >>> X = centre + rng.normal(size=(600, 2))
    >>> domains = np.repeat(["clinic", "hospital", "ward"], 200)
    >>> y = np.where(np.arange(600) % 4 == 0, 0, -1)
    >>> similarity = AdversarialSimilarity(random_state=0).fit(X, y, domains=domains)
    >>> bool(similarity.alpha_[2, 2] > 0.9)
    True
    >>> bool(similarity.alpha_[:2, :2].sum(axis=1).min() > 0.9)
    True
    """

    def __init__(
        self,
        loss="zero_one",
        *,
        discriminator=None,
        classifier=None,
        lambda_d=1.0,
        complexity=None,
        vc_dimension=None,
        delta=0.05,
        n_steps=30,
        step_size=8.0,
        cv=2,
        random_state=None,
        verbose=False,
    ):
        self.loss = loss
        self.discriminator = discriminator
        self.classifier = classifier
        self.lambda_d = lambda_d
        self.complexity = complexity
        self.vc_dimension = vc_dimension
        self.delta = delta
        self.n_steps = n_steps
        self.step_size = step_size
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def _estimate(self, data: PartlyLabelled) -> dict:
        check_option(self.loss, "loss", LOSSES)
        n_steps = check_count(self.n_steps, "n_steps", minimum=1)
        n_folds = check_count(self.cv, "cv", minimum=2)
        step_size = check_number(self.step_size, "step_size", strict=True)
        rng = check_seed(self.random_state)
        features, discriminator = prepare_discriminator(self.discriminator, data.X, rng)
        mapped = replace(data, X=features.transform(data.X))
        classifier = self.classifier
        if classifier is not None:
            classifier = resolve_classifier(classifier, rng)
        folds = row_folds(data.domains, data.labelled, n_folds, rng)
        dimension = self.vc_dimension
        objective = {
            "lambda_d": self.lambda_d,
            "complexity": self.complexity,
            "vc_dimension": data.X.shape[1] + 1 if dimension is None else dimension,
            "delta": self.delta,
        }
        alpha = average = resolve_alpha(None, data.counts)
        burn_in = n_steps // 2
        if (data.counts > 0).sum() == 1:
            n_steps = 1  # there is nothing to choose between
        history = [alpha]
        for step in tqdm(range(1, n_steps + 1), disable=not self.verbose):
            _, scores = conditional_discriminators(discriminator, mapped, alpha, folds)
            heads = {}
            if classifier is not None:
                heads = _held_out_heads(classifier, data, alpha, folds)
            tables = discriminator_tables(scores, data, self.loss, **heads)
            alpha, average = alpha_step(
                alpha,
                alpha_gradient(tables, alpha, **objective),
                step_size=step_size / np.sqrt(step),
                average=average,
                average_weight=1 / max(1, step - burn_in),
            )
            history.append(alpha)
        return {"alpha_": average, "history_": np.array(history), "tables_": tables}


def _held_out_heads(classifier, data: PartlyLabelled, alpha, folds) -> dict:
    """Train the shared and the domains' classifiers; return held-out predictions."""
    rows = np.flatnonzero(data.labelled)
    _, probabilities = weighted_heads(
        classifier,
        data.X[rows],
        data.labels[rows],
        data.domains[rows],
        np.vstack([alpha.mean(axis=0), alpha]),
        folds[rows],
    )
    return {"probabilities": probabilities, "labels": data.labels[rows]}
