"""Images of digits whose domains are ranges of angles."""

import numpy as np
from sklearn.datasets import load_digits

from .._validation import check_option
from ._bunch import SUBSETS, dataset, generator, wanted
from ._mnist import mnist
from ._rotation import angle_ranges, rotated
from ._split import check_share, held_out

_DIGITS = """Rotating digits: 1,797 images of 8 x 8 digits in {n} domains.

scikit-learn's digits are split at random into domains of equal size, and each is
rotated by an angle drawn uniformly from the range of its domain, as in RotatingMNIST.

Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI, 1998.
Hao et al., "Composite Active Learning", AAAI 2024.
"""

_MNIST = """RotatingMNIST: MNIST's images of 28 x 28 digits in {n} domains.

The 60,000 training images, and the 10,000 test images, are split at random into domains
of equal size, and each is rotated by an angle drawn uniformly from the range of its
domain.

LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998.
Hao et al., "Composite Active Learning", AAAI 2024.
"""


def load_rotating_digits(
    ranges="D6",
    *,
    test_size=0.25,
    flat=False,
    subset="all",
    random_state=0,
    return_X_y_domains=False,
):
    """Return scikit-learn's digits, rotated by a range of angles in each domain.

    A small RotatingMNIST that needs no download: 1,797 images.

    Parameters
    ----------
    ranges : str or array-like of shape (n_domains, 2), default="D6"
        See :func:`fetch_rotating_mnist`.
    test_size : float, default=0.25
        Share of each domain's images that is for tests, stratified by class.
    flat : bool, default=False
        Whether an image is a vector.
    subset : {"all", "train", "test"}, default="all"
        Which rows to return.
    random_state : int, RandomState or None, default=0
        Seed of domains, angles and split.
    return_X_y_domains : bool, default=False
        Whether to return ``(X, y, domains)`` alone.

    Returns
    -------
    Bunch
        See :mod:`mdal.datasets`. ``X`` is float32 from 0 to 1, of shape (n, 1, 8, 8) or
        (n, 64). It has also ``degrees``, the angle of each image.

    Examples
    --------
    >>> from mdal.datasets import load_rotating_digits
    >>> digits = load_rotating_digits()
    >>> digits.X.shape
    (1797, 1, 8, 8)
    >>> digits.names[:3].tolist()
    ['000-030', '030-060', '060-090']
    """
    check_option(subset, "subset", SUBSETS)
    test_size, ranges = check_share(test_size), angle_ranges(ranges)
    names, rng = ranges.names(), generator(random_state)
    digits = load_digits()
    codes, degrees = ranges.draw(len(digits.target), rng)
    X = rotated(digits.images / 16, degrees)
    data = dataset(
        X.reshape(len(X), -1) if flat else X,
        digits.target.astype(np.int64),
        codes,
        names=names,
        classes=np.arange(10),
        test=held_out(codes, digits.target, None, test_size, rng),
        DESCR=_DIGITS.format(n=len(names)),
        degrees=degrees,
    )
    return wanted(data, subset, return_X_y_domains)


def fetch_rotating_mnist(
    ranges="D6",
    *,
    data_home=None,
    download_if_missing=True,
    flat=False,
    subset="all",
    random_state=0,
    return_X_y_domains=False,
):
    """Return RotatingMNIST: MNIST, rotated by a range of angles in each domain.

    Parameters
    ----------
    ranges : str or array-like of shape (n_domains, 2), default="D6"
        ``"D<N>"``, such as "D2", "D6", "D30", "D50" or "D150", is N equal parts of 180
        degrees; ``"D<N>-<S>"``, such as "D6-90", N equal parts of S degrees; "D1&5" is
        0 to 2 degrees and five ranges from 86 to 96, "D3&3" three from 0 to 6 and three
        from 90 to 96. Other ranges are given as pairs of the lowest and the highest
        angle in degrees, from 0 to 360.
    data_home : path, default=None
        Folder of MNIST's four IDX files, gzipped or not, or with a folder ``mnist`` of
        them; None is the folder ``mdal`` in scikit-learn's data folder. The files are
        checked by their SHA-256.
    download_if_missing : bool, default=True
        Whether to get MNIST from OpenML if the files are not there. It is kept in
        `data_home`.
    flat : bool, default=False
        Whether an image is a vector.
    subset : {"all", "train", "test"}, default="all"
        Which rows to return; the same seed gives the same images with each.
    random_state : int, RandomState or None, default=0
        Seed of domains and angles.
    return_X_y_domains : bool, default=False
        Whether to return ``(X, y, domains)`` alone.

    Returns
    -------
    Bunch
        See :mod:`mdal.datasets`. ``X`` is float32 from 0 to 1, of shape (n, 1, 28, 28)
        or (n, 784); the training images come first. It has also ``degrees``, the angle
        of each image.

    References
    ----------
    Hao et al., "Composite Active Learning", AAAI 2024.

    Examples
    --------
    >>> from mdal.datasets import fetch_rotating_mnist
    >>> data = fetch_rotating_mnist("D1&5")  # doctest: +SKIP
    >>> data.names.tolist()  # doctest: +SKIP
    ['00-02', '86-88', '88-90', '90-92', '92-94', '94-96']
    >>> fetch_rotating_mnist("D0")
    Traceback (most recent call last):
    ...
    ValueError: ranges='D0' is unknown; choose 'D6' (or another number of parts of \
180 degrees), 'D6-90' (of 90 degrees), 'D1&5' or 'D3&3', or pass pairs of degrees
    """
    check_option(subset, "subset", SUBSETS)
    ranges = angle_ranges(ranges)
    names, rng = ranges.names(), generator(random_state)
    parts = mnist(data_home, download_if_missing)
    # Both are drawn, so that the test images are the same with and without the others.
    drawn = [ranges.draw(len(y), rng) for _, y in parts]
    chosen = {"all": (0, 1), "train": (0,), "test": (1,)}[subset]
    images, y = (np.concatenate([parts[i][k] for i in chosen]) for k in (0, 1))
    codes, degrees = (np.concatenate([drawn[i][k] for i in chosen]) for k in (0, 1))
    X = rotated(images, degrees)
    data = dataset(
        X.reshape(len(X), -1) if flat else X,
        y.astype(np.int64),
        codes,
        names=names,
        classes=np.arange(10),
        test=np.repeat([i == 1 for i in chosen], [len(parts[i][1]) for i in chosen]),
        DESCR=_MNIST.format(n=len(names)),
        degrees=degrees,
    )
    return wanted(data, "all", return_X_y_domains)
