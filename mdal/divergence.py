r"""How far each original domain is from its surrogate, as a discriminator sees it.

The functions turn a discriminator's predictions into distances. The transformer
:class:`DomainDivergence` trains a discriminator on features and applies them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import DomainTransformer
from ._crossfit import (
    check_classifier,
    class_probabilities,
    fit_weighted,
    row_folds,
    seeded_clone,
    surrogate_weights,
)
from ._validation import (
    PartlyLabelled,
    check_count,
    check_scores,
    check_seed,
    resolve_alpha,
)
from .tables import DomainTables, check_tables, domain_tables

__all__ = [
    "DomainDivergence",
    "hdh_distance",
    "hdh_distances",
    "proxy_a_distance",
]


def proxy_a_distance(original: ArrayLike, surrogate: ArrayLike) -> float:
    r"""Return the proxy A-distance between two samples, from a discriminator's scores.

    .. math:: \hat d_A = 2 (1 - 2 \epsilon)

    where :math:`\epsilon` is the discriminator's error over both samples taken
    together, clipped so that the distance is at least 0. Unlike
    :func:`hdh_distance` it lets the larger sample count for more; for samples of
    equal size the two are equal.

    Parameters
    ----------
    original : array-like of shape (n_original,)
        Scores f(z) of samples of the original domain, in [0, 1]; above 1/2 they are
        taken for original.
    surrogate : array-like of shape (n_surrogate,)
        Scores of samples of the surrogate domain.

    Returns
    -------
    float
        Distance between 0 (cannot be told apart) and 2.

    References
    ----------
    Ben-David et al., "Analysis of representations for domain adaptation",
    NeurIPS 2006.

    Examples
    --------
    >>> from mdal.divergence import proxy_a_distance
    >>> proxy_a_distance([0.9, 0.8, 0.7, 0.4], [0.1, 0.3, 0.2, 0.1])
    1.5
    """
    original, surrogate = _check_sides(original, surrogate)
    wrong = np.sum(original <= 0.5) + np.sum(surrogate > 0.5)
    return max(0.0, float(2 * (1 - 2 * wrong / (len(original) + len(surrogate)))))


def hdh_distance(original: ArrayLike, surrogate: ArrayLike) -> float:
    r"""Return the empirical :math:`H \Delta H` distance, from a discriminator's scores.

    .. math::

        \hat d(O_i, S_i) = 2 \Big(1 - \Big[
        \frac{1}{N_{O_i}} \sum_{z: f(z, i) = 0} [z \in O_i] +
        \frac{1}{N_{S_i}} \sum_{z: f(z, i) = 1} [z \in S_i] \Big] \Big)

    the share :math:`f = 0` of the original sample and the share :math:`f = 1` of the
    surrogate sample being the discriminator's errors. The paper's distance is the
    largest over all discriminators: that of one discriminator, judged on samples
    which it has not seen, is an estimate from below. Clipped at 0.

    Parameters
    ----------
    original : array-like of shape (n_original,)
        Scores f(z, i) of samples of original domain i, in [0, 1]; above 1/2 they
        are taken for original.
    surrogate : array-like of shape (n_surrogate,)
        Scores of samples of its surrogate domain.

    Returns
    -------
    float
        Distance between 0 (cannot be told apart) and 2.

    See Also
    --------
    hdh_distances : The same from labelled domains with weights alpha.

    Examples
    --------
    >>> from mdal.divergence import hdh_distance
    >>> hdh_distance([0.9, 0.8, 0.7, 0.4], [0.1, 0.3, 0.6])
    0.8333333333333335
    """
    original, surrogate = _check_sides(original, surrogate)
    errors = np.mean(original <= 0.5) + np.mean(surrogate > 0.5)
    return max(0.0, float(2 * (1 - errors)))


def hdh_distances(tables: DomainTables, alpha: ArrayLike) -> NDArray:
    r"""Return each domain's :math:`H \Delta H` distance, with weights alpha.

    .. math::

        \hat d(O_i, \{L_j\}, \{\alpha_{ij}\}) = 2 \Big(1 - \Big[ m_i +
        \sum_j \alpha_{ij} H_{ij} \Big] \Big)

    with the share :math:`m_i` of original domain i that the discriminator misses and
    the share :math:`H_{ij}` of labelled domain j that it takes for original domain i
    (0/1 losses). The surrogate is never sampled: its error is a mixture of the
    labelled domains' errors. Clipped at 0.

    Parameters
    ----------
    tables : DomainTables
        Tables of 0/1 losses, see :func:`mdal.tables.domain_tables`.
    alpha : array-like of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in surrogate i.

    Returns
    -------
    ndarray of shape (n_domains,)
        Distances between 0 and 2.

    Examples
    --------
    >>> from mdal.divergence import hdh_distances
    >>> from mdal.tables import DomainTables
    >>> tables = DomainTables([0.2, 0.4], [[0.3, 0.6], [0.1, 0.5]], counts=[10, 20])
    >>> hdh_distances(tables, [[0.5, 0.5], [0.0, 1.0]])
    array([0.7, 0.2])
    """
    alpha = check_tables(tables, alpha)
    if tables.loss != "zero_one":
        raise ValueError(
            f"tables hold losses of the kind {tables.loss!r}, which give no distance; "
            "make them with loss='zero_one'"
        )
    errors = tables.misses + (alpha * tables.hits).sum(axis=1)
    return np.maximum(0.0, 2 * (1 - errors))


def _check_sides(original, surrogate):
    sides = []
    for name, scores in (("original", original), ("surrogate", surrogate)):
        sides.append(check_scores(scores, name, (None,)))
        if len(sides[-1]) == 0:
            raise ValueError(f"{name} is empty; pass the scores of at least one sample")
    return sides


def kernel_features(X: NDArray, rng):
    """Fit the features on which the default discriminator is a linear one.

    A Nystroem approximation of a Gaussian kernel on the standardised input, its width
    the typical distance of two samples; standardised again. Unlike the input itself,
    they let a linear classifier see domains that differ in spread or shape only.
    """
    features = make_pipeline(
        StandardScaler(),
        # Standardised features have a mean squared distance of 2 n_features.
        Nystroem(
            gamma=0.5 / X.shape[1],
            n_components=min(100, len(X)),
            random_state=rng.randint(np.iinfo(np.int32).max),
        ),
        StandardScaler(),
    )
    return features.set_output(transform="default").fit(X)


def prepare_discriminator(discriminator, X: NDArray, rng):
    """Return fitted features and a seeded classifier for them; None is the default.

    The default's features use no labels and are fitted once on all rows, so that
    training a discriminator means fitting a logistic regression. It is strongly
    regularised, for the two sides are often nearly the same.
    """
    if discriminator is None:
        return kernel_features(X, rng), LogisticRegression(C=0.01, max_iter=1000)
    check_classifier(discriminator, "discriminator")
    identity = FunctionTransformer().set_output(transform="default").fit(X)
    return identity, seeded_clone(discriminator, rng)


def conditional_discriminators(
    discriminator, data: PartlyLabelled, alpha: NDArray, folds: NDArray
) -> tuple[list[list], NDArray]:
    r"""Train :math:`f(z, i)` for every domain and fold, with the surrogates' weights.

    For domain i, the rows of original domain i are the positive class, each with the
    weight :math:`1 / n_{O_i}`, and all labelled rows the negative class, a row of
    domain j with the weight :math:`\alpha_{ij} / n_{L_j}`. The two sides weigh the
    same, so :math:`f = O_i / (O_i + S_i)`. Where all labelled rows of a domain are
    held out its share goes to the others; where one side has no row left, the
    discriminator has seen only the other and always says so.

    Returns
    -------
    models : list of list
        ``models[i][k]`` was trained on all folds but k.
    scores : ndarray of shape (n_samples, n_domains)
        Held-out f(z, i), for labelled rows and for those of domain i; 0 elsewhere.
    """
    X, domains, labelled = data.X, data.domains, data.labelled
    n_domains, n_folds = len(alpha), int(folds.max()) + 1
    scores = np.zeros((len(X), n_domains))
    models = [[None] * n_folds for _ in range(n_domains)]
    for i in range(n_domains):
        original = domains == i
        mixed_in = labelled & (alpha[i, domains] > 0)
        for k in range(n_folds):
            seen = folds != k
            if not ((original | mixed_in) & seen).any():
                seen = folds >= 0  # one row only, on both sides
            positive = np.flatnonzero(original & seen)
            negative = np.flatnonzero(mixed_in & seen)
            models[i][k] = fit_weighted(
                clone(discriminator),
                X[np.r_[positive, negative]],
                np.repeat([1, 0], [len(positive), len(negative)]),
                np.r_[
                    np.full(len(positive), 1 / max(len(positive), 1)),
                    surrogate_weights(alpha[i], domains[negative]),
                ],
            )
            held_out = np.flatnonzero((original | labelled) & (folds == k))
            if len(held_out):
                scores[held_out, i] = class_probabilities(models[i][k], X[held_out], 2)[
                    :, 1
                ]
    return models, scores


def discriminator_tables(
    scores: NDArray, data: PartlyLabelled, loss: str = "zero_one", **classifiers
) -> DomainTables:
    """Return the tables for scores f(z, i) of shape (n_samples, n_domains)."""
    return domain_tables(
        scores[np.arange(len(scores)), data.domains],
        data.domains,
        scores[data.labelled],
        data.domains[data.labelled],
        loss=loss,
        **classifiers,
    )


class DomainDivergence(DomainTransformer):
    r"""Distance of every original domain from its surrogate, on given features.

    The original domain i is all rows of domain i, labelled or not; its surrogate
    :math:`S_i = \sum_j \alpha_{ij} L_j` mixes the labelled rows of all domains. A
    conditional discriminator (one classifier per domain) learns to tell them apart
    and is judged on held-out rows; both copies of a labelled row are held out
    together.

    Parameters
    ----------
    discriminator : scikit-learn classifier, default=None
        Takes ``sample_weight`` (a Pipeline: in its last step) and has
        `predict_proba`. None is a logistic regression on features of a Gaussian
        kernel: it fits in milliseconds, and sees differences that are not linear.
    alpha : array-like of shape (n_domains, n_domains) or "identity", default=None
        ``alpha[i, j]`` is the weight of labelled domain j in the surrogate of
        original domain i. None is uniform over the labelled domains.
    cv : int, default=5
        Number of folds, at least 2; no more than there are samples are used.
    random_state : int, RandomState instance or None, default=None
        Decides the folds, and the discriminator's randomness where it has a
        ``random_state`` of None.

    Attributes
    ----------
    distances_ : ndarray of shape (n_domains,)
        Empirical :math:`H \Delta H` distances in [0, 2], see :func:`hdh_distances`.
    tables_ : DomainTables
        The discriminator's 0/1 errors by domain, on held-out rows.
    alpha_ : ndarray of shape (n_domains, n_domains)
        The mixture weights used.
    domains_ : ndarray of shape (n_domains,)
        Names of the domains, sorted.
    features_ : transformer
        Maps X to the discriminators' input; the identity if one was given.
    discriminators_ : list of list of classifiers
        One for each domain and fold.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.divergence import DomainDivergence
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (200, 2)), rng.normal(3, 1, (200, 2))])
    >>> domains = np.repeat(["clinic", "hospital"], 200)
    >>> y = np.full(400, -1)
    >>> y[:100] = y[200:300] = 0
    >>> own = DomainDivergence(alpha="identity", random_state=0)
    >>> bool(own.fit(X, y, domains=domains).distances_.max() < 0.3)
    True
    >>> mixed = DomainDivergence(random_state=0).fit(X, y, domains=domains)
    >>> bool(mixed.distances_.min() > 0.8)
    True
    """

    def __init__(self, discriminator=None, *, alpha=None, cv=5, random_state=None):
        self.discriminator = discriminator
        self.alpha = alpha
        self.cv = cv
        self.random_state = random_state

    def _learn(self, data: PartlyLabelled) -> dict:
        alpha = resolve_alpha(self.alpha, data.counts)
        n_folds = check_count(self.cv, "cv", minimum=2)
        rng = check_seed(self.random_state)
        features, classifier = prepare_discriminator(self.discriminator, data.X, rng)
        folds = row_folds(data.domains, data.labelled, n_folds, rng)

        data = replace(data, X=features.transform(data.X))
        models, scores = conditional_discriminators(classifier, data, alpha, folds)
        tables = discriminator_tables(scores, data)
        return {
            "distances_": hdh_distances(tables, alpha),
            "tables_": tables,
            "alpha_": alpha,
            "features_": features,
            "discriminators_": models,
        }

    def transform(self, X):
        """Return f(z, i) of every sample for every domain.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_domains)
            Probability that the sample comes from original domain i rather than
            from its surrogate, averaged over the folds' discriminators.
        """
        check_is_fitted(self)
        X = self.features_.transform(validate_data(self, X, reset=False))
        return np.column_stack(
            [
                np.mean([class_probabilities(m, X, 2)[:, 1] for m in models], axis=0)
                for models in self.discriminators_
            ]
        )
