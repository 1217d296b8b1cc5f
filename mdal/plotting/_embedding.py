"""Embeddings in two dimensions, by class and by domain."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA

from .._validation import (
    check_count,
    check_domains,
    check_labels,
    check_matrix,
    check_seed,
)
from . import _canvas as canvas

_MOST_IN_LEGEND = 12


def embedding_scatter(
    embedding: ArrayLike,
    classes: ArrayLike,
    domains: ArrayLike,
    *,
    max_points: int = 2000,
    random_state=0,
    ax=None,
):
    """Draw samples by their embedding twice: coloured by class and by domain.

    A good embedding has classes apart on the left and domains mixed on the right.

    Parameters
    ----------
    embedding : array-like of shape (n_samples, n_features)
        More than two features are projected on the first two principal components of
        all samples.
    classes : array-like of shape (n_samples,)
        Class of each sample; -1, NaN and None are unlabelled.
    domains : array-like of shape (n_samples,)
        Domain of each sample.
    max_points : int, default=2000
        At most so many samples are drawn, chosen at random.
    random_state : int, RandomState or None, default=0
        Seed or generator; which samples are drawn, and in which order, is random.
    ax : pair of Axes, default=None
        Where to draw; None is a new figure.

    Returns
    -------
    tuple of two Axes
        By class and by domain.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.plotting import embedding_scatter
    >>> embedding = np.random.default_rng(0).normal(size=(8, 5))
    >>> left, right = embedding_scatter(embedding, [0, 1] * 4, list("aaaabbbb"))
    >>> left.get_title(), right.get_title()
    ('By class', 'By domain')
    """
    embedding = check_matrix(embedding, "embedding")
    n_samples, width = embedding.shape
    if n_samples < 2 or width < 2:
        raise ValueError(
            f"embedding has shape {embedding.shape}; pass at least two samples and two "
            "features"
        )
    class_names, labels = check_labels(classes, n_samples, "classes")
    domain_names, codes = check_domains(domains, n_samples)
    max_points = check_count(max_points, "max_points", minimum=1)
    generator = check_seed(random_state)
    order = generator.permutation(n_samples)[:max_points]
    points, axis_names = _plane(embedding, generator)
    if ax is None:
        ax = canvas.new_figure(8, 4.8).subplots(1, 2)
    left, right = _pair(ax)
    _scatter(left, points[order], labels[order], class_names)
    _scatter(right, points[order], codes[order], domain_names)
    for axes, title in ((left, "By class"), (right, "By domain")):
        canvas.dress(axes, title=title, x=axis_names[0], y=axis_names[1])
        axes.set_aspect("equal", adjustable="datalim")
    return left, right


def _pair(ax):
    try:
        left, right = ax
    except (TypeError, ValueError):
        raise ValueError(f"ax={ax!r} is not a pair; pass two Axes") from None
    return left, right


def _plane(embedding, generator):
    """Return points in two dimensions and the names of these."""
    if embedding.shape[1] == 2:
        return embedding, ["feature 1", "feature 2"]
    pca = PCA(2, random_state=generator)
    with np.errstate(invalid="ignore"):  # samples that are all the same
        points = pca.fit_transform(embedding)
    shares = 100 * np.nan_to_num(pca.explained_variance_ratio_)
    names = [
        f"component {number} ({share:.0f} % of variance)"
        for number, share in enumerate(shares, start=1)
    ]
    return points, names


def _scatter(ax, points, codes, names) -> None:
    """Draw each group in its colour, and marker if they are few; -1 is unlabelled."""
    kinds = canvas.MARKERS if len(names) <= _MOST_IN_LEGEND else "o"
    colours = [*canvas.colours(len(names)), canvas.UNKNOWN]
    colours = np.array([canvas.rgba(colour) for colour in colours])
    markers = [kinds[number % len(kinds)] for number in range(len(names))]
    markers = np.array([*markers, "o"])
    # Group after group, the last would cover the first: a few of each in turn, above
    # those without a label.
    order = np.argsort(codes >= 0, kind="stable")
    for rows in np.array_split(order, 10):
        for marker in dict.fromkeys(markers[codes[rows]].tolist()):
            here = rows[markers[codes[rows]] == marker]
            ax.scatter(
                *points[here].T,
                s=14,
                c=colours[codes[here]],
                marker=marker,
                alpha=0.8,
                linewidths=0,
            )
    shown = canvas.thinned(len(names), _MOST_IN_LEGEND)
    texts = [names[position] for position in shown]
    if (codes < 0).any():
        shown, texts = [*shown, -1], [*texts, "unlabelled"]
    handles = [canvas.dot(colours[position], markers[position]) for position in shown]
    canvas.legend_beneath(ax, handles, texts, columns=4)
