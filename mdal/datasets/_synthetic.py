"""Made-up domains whose similarity is known."""

import numpy as np
from numpy.typing import NDArray

from .._validation import check_count, check_number, check_option
from ._bunch import SUBSETS, dataset, generator, wanted
from ._split import check_share, held_out

_DESCR = """Shifted domains: made-up samples of {n} domains with planted similarity.

A class is a cloud; the clouds stand on a circle that is moved and turned by the domain.
"""


def make_shifted_domains(
    n_per_domain=200,
    n_domains=4,
    n_features=10,
    n_classes=2,
    *,
    groups=None,
    shift=3.0,
    rotation=90.0,
    separation=2.0,
    spread=0.05,
    test_size=0.25,
    subset="all",
    random_state=0,
    return_X_y_domains=False,
):
    r"""Make domains that are shifted against each other, with planted similarity.

    A sample of class c in domain i is

    .. math:: x = r \, (u \cos \varphi + v \sin \varphi) + s \, p_i + \varepsilon,
              \qquad \varphi = 2 \pi c / C + \theta_i,

    with orthogonal directions u and v, the `separation` r, the `shift` s, a place
    :math:`p_i` of the domain, an angle :math:`\theta_i` that turns the boundaries
    between classes, and standard normal noise :math:`\varepsilon`. Domains of one
    group have the same place and angle but for a little `spread`.

    Parameters
    ----------
    n_per_domain, n_domains : int, default=200 and 4
        Samples of each domain, and the number of domains.
    n_features : int, default=10
        Number of features, at least 2.
    n_classes : int, default=2
        Number of classes; each domain has equally many samples of each.
    groups : sequence of sequences of int, "line" or "circle", default=None
        Which domains are similar: numbers from 0 in groups, whose places are at
        distance 1 of each other; "line" or "circle" for places at distance 1 from the
        next. None leaves domain 0 alone and puts all others into one group.
    shift : float, default=3.0
        Distance between neighbouring places, in standard deviations of the noise.
    rotation : float, default=90.0
        Degrees between the first and the last group, or the ends of the line, or
        opposite places on the circle; those between are evenly spaced.
    separation : float, default=2.0
        Distance of each class from the centre of its domain.
    spread : float, default=0.05
        Standard deviation of the places' coordinates, before `shift`.
    test_size : float, default=0.25
        Share of each domain's samples that is for tests, stratified by class.
    subset : {"all", "train", "test"}, default="all"
        Which rows to return.
    random_state : int, RandomState or None, default=0
        Seed of everything.
    return_X_y_domains : bool, default=False
        Whether to return ``(X, y, domains)`` alone.

    Returns
    -------
    Bunch
        See :mod:`mdal.datasets`. It has also ``similarity`` of shape (n_domains,
        n_domains), whose rows sum to 1: equal within a group and 0 elsewhere, or
        proportional to :math:`e^{-d}` at d steps on the line or circle.

    Examples
    --------
    >>> from mdal.datasets import make_shifted_domains
    >>> data = make_shifted_domains(n_domains=3, groups=[[0, 2], [1]])
    >>> data.names.tolist()
    ['d0', 'd1', 'd2']
    >>> data.similarity
    array([[0.5, 0. , 0.5],
           [0. , 1. , 0. ],
           [0.5, 0. , 0.5]])
    """
    check_option(subset, "subset", SUBSETS)
    n_classes = check_count(n_classes, "n_classes", minimum=2)
    n_per_domain = check_count(n_per_domain, "n_per_domain", minimum=n_classes)
    n_domains = check_count(n_domains, "n_domains", minimum=1)
    n_features = check_count(n_features, "n_features", minimum=2)
    shift, separation = (
        check_number(shift, "shift"),
        check_number(separation, "separation"),
    )
    spread = check_number(spread, "spread")
    rotation = check_number(rotation, "rotation", low=-360, high=360)
    test_size, rng = check_share(test_size), generator(random_state)
    places, turns, similarity = _plan(groups, n_domains)

    codes = np.repeat(np.arange(n_domains), n_per_domain)
    y = np.concatenate(
        [rng.permutation(np.arange(n_per_domain) % n_classes) for _ in range(n_domains)]
    )
    centres = places @ _directions(places.shape[1], n_features, rng)
    centres = centres + spread * rng.normal(size=centres.shape)
    phi = 2 * np.pi * y / n_classes + np.deg2rad(rotation * turns[codes])
    X = (
        separation
        * np.stack([np.cos(phi), np.sin(phi)], axis=1)
        @ _directions(2, n_features, rng)
    )
    X += shift * centres[codes] + rng.normal(size=X.shape)

    width = len(str(n_domains - 1))
    data = dataset(
        X,
        y,
        codes,
        names=np.array([f"d{i:0{width}d}" for i in range(n_domains)]),
        classes=np.arange(n_classes),
        test=held_out(codes, y, None, test_size, rng),
        DESCR=_DESCR.format(n=n_domains),
        similarity=similarity,
    )
    return wanted(data, subset, return_X_y_domains)


def _plan(groups, n_domains: int) -> tuple[NDArray, NDArray, NDArray]:
    """Return the domains' places, turns from 0 to 1, and similarity."""
    steps = np.arange(n_domains)
    if isinstance(groups, str):
        check_option(groups, "groups", {"line", "circle"})
        apart = np.abs(steps[:, None] - steps)
        if groups == "line":
            places, turns = steps[:, None].astype(float), steps / max(1, n_domains - 1)
        else:
            apart = np.minimum(apart, n_domains - apart)
            places = _circle(n_domains)
            turns = apart[0] / max(1, n_domains // 2)
        similarity = np.exp(-apart)
    else:
        group = _group_of_each(groups, n_domains)
        # Unit vectors are at distance sqrt(2) of each other.
        places = np.eye(group.max() + 1)[group] / np.sqrt(2)
        turns = group / max(1, group.max())
        similarity = (group[:, None] == group).astype(float)
    return places, turns, similarity / similarity.sum(axis=1, keepdims=True)


def _circle(n_domains: int) -> NDArray:
    """Return places on a circle, at distance 1 from the next."""
    angles = 2 * np.pi * np.arange(n_domains) / n_domains
    radius = 0.5 / np.sin(np.pi / n_domains) if n_domains > 1 else 0.0
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _group_of_each(groups, n_domains: int) -> NDArray:
    """Return the number of each domain's group."""
    if groups is None:
        return np.minimum(np.arange(n_domains), 1)
    try:
        number_of = [(i, number) for number, group in enumerate(groups) for i in group]
    except TypeError:
        number_of = []
    if sorted(domain for domain, _ in number_of) != list(range(n_domains)):
        raise ValueError(
            f"groups={groups!r} does not name each of {n_domains} domains once; pass "
            f"lists of the numbers from 0 to {n_domains - 1}, each in one of them"
        )
    return np.array([number for _, number in sorted(number_of)])


def _directions(n_directions: int, n_features: int, rng) -> NDArray:
    """Return directions of length 1, orthogonal as long as the features suffice."""
    vectors = rng.normal(size=(n_directions, n_features))
    if n_directions <= n_features:
        return np.linalg.qr(vectors.T)[0].T
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
