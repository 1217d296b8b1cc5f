r"""The error bounds of Composite Active Learning, term by term.

Functions of small arrays first; :class:`DomainBound` estimates the terms from
features, labels and domains.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import DomainTransformer
from ._crossfit import (
    class_probabilities,
    resolve_classifier,
    row_folds,
    weighted_heads,
)
from ._validation import (
    PartlyLabelled,
    check_alpha,
    check_count,
    check_counts,
    check_number,
    check_seed,
    check_table,
    check_weights,
    resolve_alpha,
)
from .divergence import (
    conditional_discriminators,
    discriminator_tables,
    hdh_distances,
    prepare_discriminator,
)
from .tables import DomainTables, check_tables

__all__ = [
    "Bound",
    "DomainBound",
    "compare_bounds",
    "complexity",
    "error_bound",
    "lambda_bound",
    "one_domain_bound",
    "table_bound",
]


def one_domain_bound(
    alpha_row: ArrayLike, errors: ArrayLike, distance: float, lambda_: float
) -> float:
    r"""Return the bound on the error of one original domain (Lemma 4.1).

    .. math::

        \epsilon_{O_i}(h) \le \sum_j \alpha_{ij} \epsilon_{L_j}(h)
        + \tfrac{1}{2} d_{H \Delta H}(O_i, S_i) + \lambda_i

    Parameters
    ----------
    alpha_row : array-like of shape (n_domains,)
        Weights of the labelled domains in surrogate i, with sum 1.
    errors : array-like of shape (n_domains,)
        Error of h on each labelled domain.
    distance : float
        :math:`H \Delta H` distance between original domain i and its surrogate.
    lambda_ : float
        Least joint error of one classifier on original domain i and its surrogate,
        or a bound on it.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> from mdal.bounds import one_domain_bound
    >>> one_domain_bound([0.5, 0.5], [0.1, 0.3], distance=0.4, lambda_=0.05)
    0.45
    """
    alpha_row = check_weights(alpha_row, "alpha_row", None)
    if abs(alpha_row.sum() - 1) > 1e-6:
        raise ValueError(
            f"alpha_row sums to {alpha_row.sum():.6g}; it must sum to 1: divide it by "
            "its sum"
        )
    errors = check_table(errors, "errors", alpha_row.shape, upper=1.0)
    distance = check_number(distance, "distance", high=2)
    lambda_ = check_number(lambda_, "lambda_")
    return float(alpha_row @ errors + distance / 2 + lambda_)


def complexity(
    weights: ArrayLike,
    counts: ArrayLike,
    *,
    vc_dimension: int,
    delta: float = 0.05,
    printed: bool = False,
) -> float | NDArray:
    r"""Return the price of knowing the labelled errors from samples only.

    .. math::

        2 \sqrt{\Big(\sum_j \frac{\alpha_j^2}{\beta_j}\Big)
        \frac{2 d \log(2 (M + 1)) + \log(4 / \delta)}{M}}

    with the weights :math:`\alpha_j`, the shares :math:`\beta_j = n_j / M` of the
    M labels, the Vapnik-Chervonenkis dimension d and the probability
    :math:`\delta` that the bound fails. It is least for :math:`\beta = \alpha`.

    Parameters
    ----------
    weights : array-like of shape (n_domains,) or (n_rows, n_domains)
        Weights of the labelled domains; each row is taken by itself.
    counts : array-like of shape (n_domains,)
        Labels in each domain.
    vc_dimension : int
        The dimension d of the classifiers; n_features + 1 for linear ones.
    delta : float, default=0.05
        Probability that the bound fails, between 0 and 1.
    printed : bool, default=False
        Use the formula as the paper prints it, :math:`2 d \log(2 (M + 1) +
        \log(4 / \delta))`. There the parenthesis is misplaced: only the form above
        is the usual Vapnik-Chervonenkis one, and it is what is computed unless asked
        otherwise.

    Returns
    -------
    float or ndarray of shape (n_rows,)
        Infinite if a domain has a positive weight and no label.

    Examples
    --------
    >>> from mdal.bounds import complexity
    >>> round(complexity([0.5, 0.5], [500, 500], vc_dimension=3), 4)
    0.4472
    >>> round(complexity([0.5, 0.5], [100, 900], vc_dimension=3), 4)
    0.7453
    """
    counts = check_counts(counts, "counts", None)
    weights = np.asarray(weights)
    shape = (None, len(counts)) if weights.ndim == 2 else (len(counts),)
    weights = check_table(weights, "weights", shape)
    d = check_count(vc_dimension, "vc_dimension", minimum=1)
    delta = check_number(delta, "delta", high=1, strict=True)
    total = counts.sum()
    if total == 0:
        raise ValueError("counts are all 0; label at least one sample")

    share = np.where(counts > 0, counts, 1) / total
    terms = np.where(counts > 0, weights * (weights / share), np.inf)
    spread = np.where(weights > 0, terms, 0.0).sum(axis=-1)
    if printed:
        rate = 2 * d * np.log(2 * (total + 1) + np.log(4 / delta)) / total
    else:
        rate = (2 * d * np.log(2 * (total + 1)) + np.log(4 / delta)) / total
    result = 2 * np.sqrt(spread * rate)
    return result if result.ndim else float(result)


def lambda_bound(alpha: ArrayLike, head_errors: ArrayLike) -> NDArray:
    r"""Return an upper bound on each domain's :math:`\lambda_i`.

    .. math::

        \lambda_i = \min_{h_i} (\epsilon_{O_i}(h_i) + \epsilon_{S_i}(h_i))
        \le 1 + \sum_j \alpha_{ij} \epsilon_{L_j}(h_i)

    The error on the original domain is not known and bounded by 1, so only
    differences between these numbers say something.

    Parameters
    ----------
    alpha : array-like of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.
    head_errors : array-like of shape (n_domains, n_domains)
        ``head_errors[i, j]``: error of domain classifier :math:`h_i` on labelled
        domain j.

    Returns
    -------
    ndarray of shape (n_domains,)
        Bounds between 1 and 2.

    Examples
    --------
    >>> from mdal.bounds import lambda_bound
    >>> lambda_bound([[1.0, 0.0], [0.5, 0.5]], [[0.1, 0.4], [0.2, 0.1]])
    array([1.1 , 1.15])
    """
    alpha = check_alpha(alpha)
    errors = check_table(head_errors, "head_errors", alpha.shape, upper=1.0)
    return 1 + (alpha * errors).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Bound:
    r"""The terms of a bound on the mean error over all original domains.

    :math:`U` is the sum of the labelled error, the divergence and lambda;
    :math:`U_E` adds the complexity. Printing it gives a table. With lambda from
    :func:`lambda_bound` the total exceeds 1: it is the differences between rounds,
    between domains and between terms that inform.

    Attributes
    ----------
    labelled_error : float
        :math:`\sum_j \alpha_j \epsilon_{L_j}(h)`.
    complexity : float
        See :func:`complexity`; 0 for :math:`U`.
    divergence : float
        :math:`\frac{1}{N} \sum_i \frac{1}{2} d_{H \Delta H}(O_i, S_i)`.
    lambda_ : float
        :math:`\frac{1}{N} \sum_i \lambda_i`.
    per_domain : dict of str to ndarray of shape (n_domains,)
        The same terms for each original domain. There the complexity is that of the
        domain's own row of alpha, at :math:`\delta / N` so that all rows hold at
        once; its mean is at least the overall one.
    domains : tuple
        Names of the domains.

    See Also
    --------
    error_bound : Makes one from errors, distances and lambdas.

    Examples
    --------
    >>> from mdal.bounds import error_bound
    >>> bound = error_bound([[1.0]], errors=[0.1], distances=[0.4], lambdas=[1.2])
    >>> bound.divergence, round(bound.u, 3), bound.complexity
    (0.2, 1.5, 0.0)
    """

    labelled_error: float
    complexity: float
    divergence: float
    lambda_: float
    per_domain: dict
    domains: tuple

    @property
    def u(self) -> float:
        """The bound U: all terms but the complexity."""
        return self.labelled_error + self.divergence + self.lambda_

    @property
    def u_e(self) -> float:
        """The bound U_E: all terms."""
        return self.u + self.complexity

    def __str__(self) -> str:
        terms = ["labelled_error", "complexity", "divergence", "lambda_"]
        head = ["", "all", *map(str, self.domains)]
        rows = [
            [term.rstrip("_"), getattr(self, term), *self.per_domain[term]]
            for term in terms
        ]
        total = sum(self.per_domain[term] for term in terms)
        rows.append(["total", self.u_e, *total])
        cells = [head] + [[name] + [f"{x:.4f}" for x in xs] for name, *xs in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        )


def error_bound(
    alpha: ArrayLike,
    errors: ArrayLike,
    distances: ArrayLike,
    lambdas: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    vc_dimension: int | None = None,
    delta: float = 0.05,
    printed: bool = False,
    domains=None,
) -> Bound:
    r"""Return the bound on the mean error of all original domains (Theorem 4.1).

    .. math::

        \frac{1}{N} \sum_i \epsilon_{O_i}(h) \le
        \underbrace{\sum_j \alpha_j \epsilon_{L_j}(h)
        + \frac{1}{2N} \sum_i d_{H \Delta H}(O_i, S_i)
        + \frac{1}{N} \sum_i \lambda_i}_{U} \le U_E

    With true errors and without `counts` this is :math:`U`. With empirical errors,
    `counts` and `vc_dimension` it is :math:`U_E`, which adds :func:`complexity` and
    holds with probability :math:`1 - \delta`.

    Parameters
    ----------
    alpha : array-like of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.
    errors : array-like of shape (n_domains,)
        Error of the shared classifier h on each labelled domain.
    distances : array-like of shape (n_domains,)
        :math:`H \Delta H` distance of each original domain from its surrogate.
    lambdas : array-like of shape (n_domains,)
        :math:`\lambda_i`, or :func:`lambda_bound`.
    counts : array-like of shape (n_domains,), default=None
        Labels in each domain; None leaves the complexity out.
    vc_dimension : int, default=None
        Needed with `counts`.
    delta : float, default=0.05
        Probability that :math:`U_E` fails.
    printed : bool, default=False
        See :func:`complexity`.
    domains : sequence of shape (n_domains,), default=None
        Names for the table; None numbers them.

    Returns
    -------
    Bound
        All terms, together and per domain.

    Examples
    --------
    >>> from mdal.bounds import error_bound
    >>> alpha = [[0.8, 0.2], [0.4, 0.6]]
    >>> bound = error_bound(alpha, errors=[0.1, 0.2], distances=[0.3, 0.5],
    ...                     lambdas=[1.05, 1.1], counts=[60, 40], vc_dimension=3,
    ...                     domains=["amazon", "webcam"])
    >>> print(bound)
                       all  amazon  webcam
    labelled_error  0.1400  0.1200  0.1600
    complexity      1.2039  1.3127  1.3127
    divergence      0.2000  0.1500  0.2500
    lambda          1.0750  1.0500  1.1000
    total           2.6189  2.6327  2.8227
    """
    alpha = check_alpha(alpha)
    n = len(alpha)
    errors = check_table(errors, "errors", (n,), upper=1.0)
    distances = check_table(distances, "distances", (n,), upper=2.0)
    lambdas = check_table(lambdas, "lambdas", (n,))
    domains = tuple(range(n)) if domains is None else tuple(domains)
    if len(domains) != n:
        raise ValueError(
            f"domains has {len(domains)} names for {n} domains; pass one for each"
        )
    cost, row_costs = 0.0, np.zeros(n)
    if counts is not None:
        if vc_dimension is None:
            raise ValueError(
                "vc_dimension is missing; the complexity needs it: n_features + 1 for "
                "linear classifiers"
            )
        delta = check_number(delta, "delta", high=1, strict=True)
        options = {"vc_dimension": vc_dimension, "printed": printed}
        cost = complexity(alpha.mean(axis=0), counts, delta=delta, **options)
        row_costs = complexity(alpha, counts, delta=delta / n, **options)
    return Bound(
        labelled_error=float(alpha.mean(axis=0) @ errors),
        complexity=cost,
        divergence=float(distances.mean() / 2),
        lambda_=float(lambdas.mean()),
        per_domain={
            "labelled_error": alpha @ errors,
            "complexity": row_costs,
            "divergence": distances / 2,
            "lambda_": lambdas,
        },
        domains=domains,
    )


def table_bound(tables: DomainTables, alpha: ArrayLike, **options) -> Bound:
    """Return U_E for tables of 0/1 losses, with the upper bound for lambda.

    Parameters
    ----------
    tables : DomainTables
        Tables of 0/1 losses with errors of all classifiers.
    alpha : array-like of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.
    **options
        ``vc_dimension``, ``delta``, ``printed`` and ``domains`` of
        :func:`error_bound`.

    Returns
    -------
    Bound
        All terms, together and per domain.

    Examples
    --------
    >>> from mdal.bounds import table_bound
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20],
    ...                       errors=[[0.1, 0.2], [0.0, 0.3], [0.2, 0.1]])
    >>> round(table_bound(tables, [[0.5, 0.5], [0, 1]], vc_dimension=3).u, 4)
    1.525
    """
    alpha = check_tables(tables, alpha)
    return error_bound(
        alpha,
        tables.errors[0],
        hdh_distances(tables, alpha),
        lambda_bound(alpha, tables.errors[1:]),
        counts=tables.counts,
        **options,
    )


def compare_bounds(
    totals: ArrayLike, *, fixed_encoder: int = 0, fixed_alpha: int = 0
) -> dict[str, float]:
    r"""Return the four bounds that CAL, its two variants and ERM minimise.

    All four minimise the same :math:`U` over the classifiers; they differ in what
    else they may choose:

    .. math::

        \min_{h, e, \alpha} U \le
        \Big\{ \min_{h, \alpha} U \; (\text{CAL-}\alpha), \;
        \min_{h, e} U \; (\text{CAL-FA}) \Big\} \le \min_h U

    CAL-alpha keeps the encoder of the divergence, CAL-FA keeps alpha, ERM keeps
    both. The sets are nested, hence the order; CAL-alpha and CAL-FA are not ordered
    between themselves.

    Parameters
    ----------
    totals : array-like of shape (n_classifiers, n_encoders, n_alphas)
        U for every classifier (with the encoder that it uses), every encoder of the
        divergence, and every alpha.
    fixed_encoder : int, default=0
        The encoder that CAL-alpha and ERM have to take.
    fixed_alpha : int, default=0
        The alpha that CAL-FA and ERM have to take, the uniform one in the paper.

    Returns
    -------
    dict of str to float
        The bounds of "CAL", "CAL-alpha", "CAL-FA" and "ERM".

    Examples
    --------
    >>> from mdal.bounds import compare_bounds
    >>> compare_bounds([[[1.5, 1.3], [1.4, 1.1]]])
    {'CAL': 1.1, 'CAL-alpha': 1.3, 'CAL-FA': 1.4, 'ERM': 1.5}
    """
    totals = check_table(totals, "totals", (None, None, None))
    encoder = check_count(fixed_encoder, "fixed_encoder")
    alpha = check_count(fixed_alpha, "fixed_alpha")
    if 0 in totals.shape or encoder >= totals.shape[1] or alpha >= totals.shape[2]:
        raise ValueError(
            f"totals has shape {totals.shape}, so fixed_encoder={encoder} and "
            f"fixed_alpha={alpha} are not in it; pass positions that are"
        )
    return {
        "CAL": float(totals.min()),
        "CAL-alpha": float(totals[:, encoder].min()),
        "CAL-FA": float(totals[:, :, alpha].min()),
        "ERM": float(totals[:, encoder, alpha].min()),
    }


class DomainBound(DomainTransformer):
    r"""The bound :math:`U_E` and its terms, estimated on given features.

    The shared classifier h is trained on all labelled rows with the weights
    :math:`\alpha_j / n_j` and judged on the same rows: what that flatters is what
    the complexity term pays for. The domain classifiers :math:`h_i`, with the
    weights :math:`\alpha_{ij} / n_j`, and the discriminator are judged on held-out
    rows.

    Parameters
    ----------
    classifier : scikit-learn classifier, default=None
        For h and every :math:`h_i`; takes ``sample_weight`` and has
        `predict_proba`. None is a logistic regression on standardised features.
    discriminator : scikit-learn classifier, default=None
        See :class:`mdal.divergence.DomainDivergence`.
    alpha : array-like of shape (n_domains, n_domains) or "identity", default=None
        ``alpha[i, j]`` is the weight of labelled domain j in the surrogate of
        original domain i. None is uniform over the labelled domains.
    vc_dimension : int, default=None
        Of the classifiers; None is n_features + 1, that of linear ones.
    delta : float, default=0.05
        Probability that the bound fails.
    printed : bool, default=False
        See :func:`complexity`.
    cv : int, default=5
        Number of folds, at least 2; no more than there are samples are used.
    random_state : int, RandomState instance or None, default=None
        Decides the folds, and the randomness of classifiers and discriminators
        where they have a ``random_state`` of None.

    Attributes
    ----------
    bound_ : Bound
        All terms, together and per domain; print it for a table.
    tables_ : DomainTables
        The 0/1 errors that it was computed from.
    alpha_ : ndarray of shape (n_domains, n_domains)
        The mixture weights used.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    domains_ : ndarray of shape (n_domains,)
        Names of the domains, sorted.
    classifier_ : classifier
        The shared classifier h.
    domain_classifiers_ : list of list of classifiers
        :math:`h_i` for each domain and fold.

    Notes
    -----
    The theorem assumes classes 0 and 1 and independent samples; with more classes,
    or with samples that a query strategy has chosen, the number is a guide and not a
    guarantee. With one class only, all errors are 0. A domain classifier whose
    surrogate rests on a single labelled row is judged on that row.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.bounds import DomainBound
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.where(np.arange(400) % 4 == 0, X[:, 0] > 0, -1)
    >>> domains = np.repeat(["amazon", "webcam"], 200)
    >>> estimator = DomainBound(random_state=0).fit(X, y, domains=domains)
    >>> bool(estimator.bound_.divergence < 0.2)
    True
    """

    def __init__(
        self,
        classifier=None,
        discriminator=None,
        *,
        alpha=None,
        vc_dimension=None,
        delta=0.05,
        printed=False,
        cv=5,
        random_state=None,
    ):
        self.classifier = classifier
        self.discriminator = discriminator
        self.alpha = alpha
        self.vc_dimension = vc_dimension
        self.delta = delta
        self.printed = printed
        self.cv = cv
        self.random_state = random_state

    def _learn(self, data: PartlyLabelled) -> dict:
        alpha = resolve_alpha(self.alpha, data.counts)
        n_folds = check_count(self.cv, "cv", minimum=2)
        rng = check_seed(self.random_state)
        features, discriminator = prepare_discriminator(self.discriminator, data.X, rng)
        classifier = resolve_classifier(self.classifier, rng)
        folds = row_folds(data.domains, data.labelled, n_folds, rng)

        mapped = replace(data, X=features.transform(data.X))
        _, scores = conditional_discriminators(discriminator, mapped, alpha, folds)
        rows = np.flatnonzero(data.labelled)
        known = data.X[rows], data.labels[rows], data.domains[rows]
        shared, seen = weighted_heads(classifier, *known, alpha.mean(axis=0)[None])
        heads, unseen = weighted_heads(classifier, *known, alpha, folds[rows])
        tables = discriminator_tables(
            scores, data, probabilities=np.concatenate([seen, unseen]), labels=known[1]
        )
        dimension = self.vc_dimension
        bound = table_bound(
            tables,
            alpha,
            vc_dimension=data.X.shape[1] + 1 if dimension is None else dimension,
            delta=self.delta,
            printed=self.printed,
            domains=data.names.tolist(),
        )
        return {
            "bound_": bound,
            "tables_": tables,
            "alpha_": alpha,
            "classes_": data.classes,
            "classifier_": shared[0][0],
            "domain_classifiers_": heads,
        }

    def transform(self, X):
        r"""Return how far the shared and each domain's classifier disagree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_domains)
            Probability that h and :math:`h_i`, each drawing a class from its own
            probabilities, give different answers: the disagreement of hypotheses
            that the :math:`H \Delta H` distance is about, sample by sample.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        n_classes = len(self.classes_)
        shared = class_probabilities(self.classifier_, X, n_classes)
        return np.column_stack(
            [
                1 - (shared * _mean_probabilities(models, X, n_classes)).sum(axis=1)
                for models in self.domain_classifiers_
            ]
        )


def _mean_probabilities(models, X: NDArray, n_classes: int) -> NDArray:
    return np.mean([class_probabilities(m, X, n_classes) for m in models], axis=0)
