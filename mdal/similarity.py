r"""Alpha: how much each labelled domain counts in the surrogate of each original one.

``alpha[i, j]`` is the weight of labelled domain j in surrogate i; every row is on
the simplex. The functions work on the small tables of :mod:`mdal.tables`; the
transformers estimate alpha from features.
"""

import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm import tqdm

from . import bounds
from ._crossfit import row_folds, weighted_heads
from ._validation import (
    PartlyLabelled,
    check_alpha,
    check_count,
    check_domains,
    check_finite,
    check_number,
    check_option,
    check_partly_labelled,
    resolve_alpha,
)
from .bounds import resolve_classifier
from .divergence import (
    conditional_discriminators,
    discriminator_tables,
    prepare_discriminator,
)
from .tables import LOSSES, DomainTables, check_tables

__all__ = [
    "AdversarialSimilarity",
    "KernelMeanSimilarity",
    "alpha_gradient",
    "alpha_objective",
    "alpha_step",
    "mixture_weights",
    "solve_alpha",
]

COMPLEXITIES = ("mean", "row")

# Kernel values that are held in memory at a time.
_BLOCK = 4_000_000


def alpha_objective(
    tables: DomainTables,
    alpha: ArrayLike,
    *,
    lambda_d: float = 1.0,
    complexity: str | None = None,
    vc_dimension: int = 1,
    delta: float = 0.05,
) -> float:
    r"""Return the objective that alpha minimises, for fixed networks.

    .. math::

        T(\alpha) = \sum_j \alpha_j \epsilon_j
        - \frac{\lambda_d}{2N} \sum_i \Big(m_i + \sum_j \alpha_{ij} H_{ij}\Big)
        + \frac{1}{N} \sum_{i,j} \alpha_{ij} E_{ij}

    the paper's :math:`V_h - \lambda_d V_d + V_\lambda`, with the tables' errors
    :math:`\epsilon_j` of the shared and :math:`E_{ij}` of the domains' classifiers,
    misses :math:`m_i` and hits :math:`H_{ij}`.

    Parameters
    ----------
    tables : DomainTables
        Mean losses by domain, of any of the three kinds.
    alpha : array-like of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.
    lambda_d : float, default=1.0
        Weight of the discriminator. With 0/1 losses the mean of
        :math:`\frac{1}{2} d_{H \Delta H}` is :math:`1 - 2 V_d`, so the bound itself
        corresponds to 2; the paper's objective has 1.
    complexity : {None, "mean", "row"}, default=None
        Adds a complexity term of the bound, see :func:`mdal.bounds.complexity`.
        "mean" is that of :math:`U_E`: it sees only alpha's column means, so it does
        not spread the rows. "row" is the looser
        :math:`\frac{1}{N} \sum_i 2 \sqrt{C \sum_j \alpha_{ij}^2 / \beta_j}` at
        :math:`\delta / N`, which does. ``lambda_d=2, complexity="mean"`` is
        :math:`U_E` up to constants.
    vc_dimension : int, default=1
        Of the classifiers, for the complexity.
    delta : float, default=0.05
        Probability that the bound fails, for the complexity.

    Returns
    -------
    float
        The value.

    Examples
    --------
    >>> from mdal.similarity import alpha_objective
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20])
    >>> alpha_objective(tables, [[0.5, 0.5], [0.0, 1.0]])
    -0.3875
    """
    alpha = check_tables(tables, alpha)
    n = tables.n_domains
    value = (alpha * _linear_part(tables, lambda_d)).sum()
    value -= lambda_d / (2 * n) * tables.misses.sum()
    if complexity is not None:
        _, term = _complexity_term(tables, alpha, complexity, vc_dimension, delta)
        value += np.mean(term)
    return float(value)


def alpha_gradient(
    tables: DomainTables,
    alpha: ArrayLike,
    *,
    lambda_d: float = 1.0,
    complexity: str | None = None,
    vc_dimension: int = 1,
    delta: float = 0.05,
) -> NDArray:
    r"""Return the gradient of :func:`alpha_objective` with respect to alpha.

    .. math::

        \frac{\partial T}{\partial \alpha_{ij}} = \frac{1}{N}
        \Big(\epsilon_j + E_{ij} - \frac{\lambda_d}{2} H_{ij}\Big)

    which does not depend on alpha, plus the gradient of the complexity term if there
    is one. Alpha moves towards labelled domains that are classified well and that the
    discriminator takes for original domain i.

    Parameters
    ----------
    tables, alpha, lambda_d, complexity, vc_dimension, delta
        As in :func:`alpha_objective`.

    Returns
    -------
    ndarray of shape (n_domains, n_domains)
        The gradient; 0 in the columns of domains without a label.

    Examples
    --------
    >>> from mdal.similarity import alpha_gradient
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20])
    >>> alpha_gradient(tables, [[0.5, 0.5], [0.0, 1.0]])
    array([[-0.075, -0.15 ],
           [-0.025, -0.125]])
    """
    alpha = check_tables(tables, alpha)
    gradient = _linear_part(tables, lambda_d)
    if complexity is not None:
        weights, term = _complexity_term(tables, alpha, complexity, vc_dimension, delta)
        labelled = tables.counts > 0
        # The term is c sqrt(sum_j w_j^2 / beta_j), so its slope is
        # term * (w_j / beta_j) / (sum_j w_j^2 / beta_j), and dw_j / dalpha_ij = 1 / N.
        ratio = np.where(labelled, weights / np.where(labelled, tables.beta, 1), 0.0)
        spread = (weights * ratio).sum(axis=-1)
        gradient += np.expand_dims(term / spread, -1) * ratio / tables.n_domains
    return gradient


def _complexity_term(tables, alpha, complexity, vc_dimension, delta):
    """Return the weights that the term is about, and its value for each row of them."""
    check_option(complexity, "complexity", COMPLEXITIES)
    delta = check_number(delta, "delta", high=1, strict=True)
    if complexity == "mean":
        weights = alpha.mean(axis=0)
    else:
        weights, delta = alpha, delta / tables.n_domains
    term = bounds.complexity(
        weights, tables.counts, vc_dimension=vc_dimension, delta=delta
    )
    return weights, term


def _linear_part(tables: DomainTables, lambda_d: float) -> NDArray:
    lambda_d = check_number(lambda_d, "lambda_d")
    terms = tables.errors[0] + tables.errors[1:] - lambda_d / 2 * tables.hits
    return np.where(tables.counts > 0, terms, 0.0) / tables.n_domains


def alpha_step(
    alpha: NDArray,
    gradient: NDArray,
    *,
    step_size: float = 1.0,
    average: NDArray | None = None,
    average_weight: float = 1.0,
) -> tuple[NDArray, NDArray]:
    r"""Take one multiplicative step and update the average of the iterates.

    .. math::

        \alpha_{ij} \leftarrow \frac{\alpha_{ij} e^{-\eta N g_{ij}}}
        {\sum_k \alpha_{ik} e^{-\eta N g_{ik}}}, \qquad
        \bar\alpha \leftarrow (1 - w) \bar\alpha + w \alpha

    Rows stay on the simplex, and weights of 0 stay 0. For fixed tables the objective
    is linear in alpha and its solution a corner; it is the average over a game
    against a discriminator that adapts which is a mixture. The factor N makes a step
    independent of the number of domains. With :math:`w = 1/t` in step t the average
    is that of all iterates; a constant w forgets old ones.

    Parameters
    ----------
    alpha : ndarray of shape (n_domains, n_domains)
        The current iterate.
    gradient : ndarray of shape (n_domains, n_domains)
        From :func:`alpha_gradient`.
    step_size : float, default=1.0
        The step :math:`\eta`.
    average : ndarray of shape (n_domains, n_domains), default=None
        The average so far; None starts with the new iterate.
    average_weight : float, default=1.0
        Weight w of the new iterate in the average.

    Returns
    -------
    alpha : ndarray of shape (n_domains, n_domains)
        The next iterate.
    average : ndarray of shape (n_domains, n_domains)
        The next average.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import alpha_step
    >>> alpha = np.full((2, 2), 0.5)
    >>> gradient = np.array([[0.0, -0.5], [0.0, 0.0]])
    >>> alpha, average = alpha_step(alpha, gradient, average=alpha, average_weight=0.5)
    >>> alpha.round(3)
    array([[0.269, 0.731],
           [0.5  , 0.5  ]])
    >>> average.round(3)
    array([[0.384, 0.616],
           [0.5  , 0.5  ]])
    """
    alpha = check_alpha(alpha)
    gradient = check_finite(gradient, "gradient", alpha.shape)
    step_size = check_number(step_size, "step_size")
    weight = check_number(average_weight, "average_weight", high=1)
    with np.errstate(divide="ignore"):
        logits = np.log(alpha) - step_size * len(alpha) * gradient
    alpha = softmax(logits, axis=1)
    if average is None:
        return alpha, alpha.copy()
    return alpha, (1 - weight) * check_alpha(average, len(alpha)) + weight * alpha


def solve_alpha(
    tables: DomainTables,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    **objective,
) -> NDArray:
    r"""Return the alpha that minimises :func:`alpha_objective` for fixed tables.

    Without a complexity term the solution is a corner: each row puts everything on
    one labelled domain (the lowest index among equals). With one, the problem is
    convex and solved by spectral projected gradients until the duality gap

    .. math:: \sum_i \Big(\sum_j \alpha_{ij} g_{ij} - \min_j g_{ij}\Big)

    which bounds the distance to the optimal value, is at most `tol` times one plus
    that value.

    Parameters
    ----------
    tables : DomainTables
        Mean losses by domain.
    tol : float, default=1e-6
        The gap to reach, relative to one plus the value.
    max_iter : int, default=10_000
        Steps after which to return what there is, with a ConvergenceWarning.
    **objective
        ``lambda_d``, ``complexity``, ``vc_dimension`` and ``delta`` of
        :func:`alpha_objective`.

    Returns
    -------
    ndarray of shape (n_domains, n_domains)
        The solution.

    References
    ----------
    Birgin, Martinez and Raydan, "Nonmonotone spectral projected gradient methods on
    convex sets", SIAM Journal on Optimization 2000.

    Examples
    --------
    >>> from mdal.similarity import solve_alpha
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.4, 0.1]], counts=[10, 20])
    >>> solve_alpha(tables)
    array([[0., 1.],
           [1., 0.]])
    >>> solve_alpha(tables, complexity="row").round(2)
    array([[0.31, 0.69],
           [0.36, 0.64]])
    """
    alpha = resolve_alpha(None, tables.counts)
    labelled = tables.counts > 0
    gradient = alpha_gradient(tables, alpha, **objective)
    if objective.get("complexity") is None:
        costs = np.where(labelled, gradient, np.inf)
        return np.eye(len(alpha))[costs.argmin(axis=1)]

    tol = check_number(tol, "tol", strict=True)
    values, step_size = [alpha_objective(tables, alpha, **objective)], 1.0
    for _ in range(check_count(max_iter, "max_iter", minimum=1)):
        least = np.where(labelled, gradient, np.inf).min(axis=1)
        gap = (alpha * gradient).sum() - least.sum()
        if gap <= tol * (1 + abs(values[-1])):
            return alpha
        target = np.where(labelled, alpha - step_size * gradient, -np.inf)
        direction = _nearest_on_simplex(target) - alpha
        slope, length = (direction * gradient).sum(), 1.0
        while True:  # halve the way until the value is below the worst of the last ten
            new = alpha + length * direction
            value = alpha_objective(tables, new, **objective)
            if value <= max(values[-10:]) + 1e-4 * length * slope or length < 1e-12:
                break
            length /= 2
        new_gradient = alpha_gradient(tables, new, **objective)
        moved, turned = new - alpha, new_gradient - gradient
        curvature = (moved * turned).sum()
        # The step that fits the curvature seen along the last move.
        step_size = np.clip((moved**2).sum() / max(curvature, 1e-18), 1e-6, 1e6)
        alpha, gradient = new, new_gradient
        values.append(value)
    warnings.warn(
        f"alpha is within {gap:.3g} of the best value after max_iter={max_iter} steps, "
        f"which misses tol={tol:g}; allow more steps or a larger gap",
        ConvergenceWarning,
        stacklevel=2,
    )
    return alpha


def _nearest_on_simplex(points: NDArray) -> NDArray:
    """Project each row onto the simplex; entries of -inf become 0."""
    ordered = -np.sort(-points, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1
    rank = np.arange(1, points.shape[1] + 1)
    kept = (ordered * rank > excess).sum(axis=1)
    threshold = excess[np.arange(len(points)), kept - 1] / kept
    return np.maximum(points - threshold[:, None], 0.0)


def mixture_weights(gram: ArrayLike, target: ArrayLike) -> NDArray:
    r"""Return the mixture of some vectors that is nearest to a target.

    .. math:: \min_{a \ge 0, \sum_j a_j = 1}
              \Big\| \mu - \sum_j a_j \mu_j \Big\|^2

    Parameters
    ----------
    gram : array-like of shape (n, n)
        Inner products :math:`\langle \mu_j, \mu_k \rangle`.
    target : array-like of shape (n,)
        Inner products :math:`\langle \mu, \mu_j \rangle`.

    Returns
    -------
    ndarray of shape (n,)
        The weights a.

    Notes
    -----
    On the simplex :math:`\mu - \sum_j a_j \mu_j = -\sum_j a_j (\mu_j - \mu)`, so this
    is the shortest vector in the convex hull of the differences. For a direction of
    a and its best length, the non-negative least squares problem :math:`\min_{a \ge
    0} \|\sum_j a_j (\mu_j - \mu)\|^2 + (\sum_j a_j - 1)^2` has a value that grows
    with that vector's length: its solution, scaled to sum 1, is the exact answer.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import mixture_weights
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> mixture_weights(points @ points.T, points @ [0.3, 0.2]).round(6)
    array([0.5, 0.3, 0.2])
    """
    target = check_finite(target, "target", (None,))
    n = len(target)
    gram = check_finite(gram, "gram", (n, n))
    if n == 0:
        raise ValueError(
            "there is no vector to mix; pass inner products of at least one"
        )
    values, vectors = np.linalg.eigh(gram)
    scale = np.abs(gram).max()
    if np.abs(gram - gram.T).max() > 1e-8 * scale or values[0] < -1e-8 * scale:
        raise ValueError(
            "gram is not symmetric and positive semi-definite; pass inner products of "
            "vectors"
        )
    spanned = values > values[-1] * n * np.finfo(np.float64).eps
    lengths = np.sqrt(values[spanned])
    # Coordinates in the span; what sticks out of it is the same for all weights.
    points = vectors[:, spanned] * lengths
    differences = points - (target @ vectors[:, spanned]) / lengths
    scale = np.linalg.norm(differences, axis=1).max(initial=0.0) or 1.0
    weights, _ = nnls(
        np.vstack([differences.T / scale, np.ones(n)]),
        np.r_[np.zeros(spanned.sum()), 1.0],
    )
    return weights / weights.sum()


class _Similarity(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the estimators of alpha share: `fit` around `_estimate`, and `transform`."""

    __metadata_request__fit: ClassVar = {"domains": True}
    __metadata_request__transform: ClassVar = {"domains": True}

    def fit(self, X, y, *, domains=None):
        """Estimate alpha.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of all samples of all domains.
        y : array-like of shape (n_samples,)
            Labels, with -1, NaN or None for samples that have none.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample; None is a single domain.

        Returns
        -------
        self
        """
        data = check_partly_labelled(self, X, y, domains)
        learned = self._estimate(data)
        validate_data(self, X, skip_check_array=True)  # records the features
        for name, value in learned.items():
            setattr(self, name, value)
        self.column_means_ = self.alpha_.mean(axis=0)
        self.domains_, self.counts_ = data.names, data.counts
        self._n_features_out = len(self.alpha_)
        return self

    def transform(self, X, *, domains=None):
        r"""Return the weight of each sample in each surrogate domain, once labelled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; only their number of rows and columns matters.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample, among those seen in `fit`; None is allowed if there
            was one only.

        Returns
        -------
        ndarray of shape (n_samples, n_domains)
            :math:`\alpha_{ij} / n_j` for a sample of domain j, with the :math:`n_j`
            labels that the domain had in `fit`; 0 if it had none. Over the labelled
            samples each column sums to 1.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        _, codes = check_domains(domains, len(X), self.domains_)
        return (self.alpha_ / np.maximum(self.counts_, 1)).T[codes]

    def fit_transform(self, X, y, *, domains=None):
        """Fit, and transform the same samples; see `fit` and `transform`."""
        return self.fit(X, y, domains=domains).transform(X, domains=domains)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class AdversarialSimilarity(_Similarity):
    r"""Alpha from a game between its rows and a discriminator that adapts.

    In every step the conditional discriminator is trained anew on the surrogates of
    the current alpha, its held-out losses become tables, and alpha takes one
    multiplicative step (:func:`alpha_step`) down the objective
    (:func:`alpha_objective`). The average of the second half of the iterates is the
    estimate: for fixed tables the objective is linear in alpha, so single iterates
    wander to corners, while the average approaches the balance of the game.

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
        the fewer labels there are: with only tens of labels per domain alpha is noisy
        without it. ``lambda_d=2, complexity="mean"`` with a classifier is the full
        :math:`U_E`, with held-out errors.
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
        All iterates; the first is uniform over the domains that have labels.
    tables_ : DomainTables
        The tables of the last step.
    domains_ : ndarray of shape (n_domains,)
        Names of the domains, sorted.
    counts_ : ndarray of shape (n_domains,)
        Labelled samples in each domain.

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
        rng = check_random_state(self.random_state)
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


class KernelMeanSimilarity(_Similarity):
    r"""Alpha by matching kernel means: a small quadratic programme per domain.

    .. math::

        \alpha_i = \arg\min_{a \ge 0, \sum_j a_j = 1}
        \Big\| \mu_{O_i} - \sum_j a_j \mu_{L_j} \Big\|^2

    with the mean embeddings :math:`\mu` of the original and labelled domains in the
    space of a Gaussian kernel on standardised features; see :func:`mixture_weights`.
    It needs no discriminator. The cost is one kernel value for each pair of a sample
    and a labelled sample, in blocks.

    Parameters
    ----------
    gamma : float, default=None
        The kernel is :math:`\exp(-\gamma \|x - x'\|^2)`. None takes one over the
        median squared distance of up to 1,000 samples that are not equal.
    random_state : int, RandomState instance or None, default=None
        Chooses the samples for gamma.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_domains, n_domains)
        ``alpha_[i, j]`` is the weight of labelled domain j in the surrogate of
        original domain i. The column of a domain without a label is 0.
    column_means_ : ndarray of shape (n_domains,)
        :math:`\alpha_j`, the weights of the domains in the labelling budget.
    gamma_ : float
        The kernel's parameter.
    domains_ : ndarray of shape (n_domains,)
        Names of the domains, sorted.
    counts_ : ndarray of shape (n_domains,)
        Labelled samples in each domain.

    See Also
    --------
    AdversarialSimilarity : The paper's game against a discriminator.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.similarity import KernelMeanSimilarity
    >>> rng = np.random.default_rng(0)
    >>> centre = np.repeat([[0.0, 0.0], [0.0, 0.0], [4.0, 4.0]], 200, axis=0)
    >>> X = centre + rng.normal(size=(600, 2))
    >>> domains = np.repeat(["clinic", "hospital", "ward"], 200)
    >>> y = np.where(np.arange(600) % 4 == 0, 0, -1)
    >>> similarity = KernelMeanSimilarity(random_state=0).fit(X, y, domains=domains)
    >>> similarity.alpha_[2].round(2)
    array([0., 0., 1.])
    """

    def __init__(self, gamma=None, *, random_state=None):
        self.gamma = gamma
        self.random_state = random_state

    def _estimate(self, data: PartlyLabelled) -> dict:
        X = StandardScaler().fit_transform(data.X)
        rng = check_random_state(self.random_state)
        if self.gamma is None:
            gamma = 1 / _median_squared_distance(X, rng)
        else:
            gamma = check_number(self.gamma, "gamma", strict=True)
        present = np.flatnonzero(data.counts)
        rows = np.flatnonzero(data.labelled)
        samples, known = (X, data.domains), (X[rows], data.domains[rows])
        gram = _kernel_means(known, known, gamma, len(data.names))
        # Among equally good weights, as for copies of a domain, the most even ones.
        gram += 1e-9 * np.eye(len(gram))
        targets = _kernel_means(samples, known, gamma, len(data.names))
        alpha = np.zeros_like(gram)
        for i, target in enumerate(targets):
            alpha[i, present] = mixture_weights(
                gram[np.ix_(present, present)], target[present]
            )
        return {"alpha_": alpha, "gamma_": gamma}


def _kernel_means(left, right, gamma: float, n_domains: int) -> NDArray:
    """Mean kernel value between the samples of every two domains, in blocks."""
    (X, domains), (X_other, other_domains) = left, right
    counts = np.bincount(domains, minlength=n_domains)
    other_counts = np.bincount(other_domains, minlength=n_domains)
    membership = (
        np.eye(n_domains)[other_domains]
        / np.maximum(other_counts, 1)[other_domains, None]
    )
    sums = np.zeros((n_domains, n_domains))
    for block in gen_batches(len(X), max(1, _BLOCK // len(X_other))):
        kernel = rbf_kernel(X[block], X_other, gamma=gamma)
        np.add.at(sums, domains[block], kernel @ membership)
    return sums / np.maximum(counts, 1)[:, None]


def _median_squared_distance(X: NDArray, rng) -> float:
    """Median squared distance of up to 1,000 samples; 1 if all are equal."""
    sample = X[rng.permutation(len(X))[:1000]]
    distances = euclidean_distances(sample, squared=True)
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0
