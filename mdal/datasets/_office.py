"""Office-Caltech-10 in its SURF form."""

import io

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from .._validation import check_option
from ._bunch import SUBSETS, dataset, generator, wanted
from ._files import content, data_folder, located, missing, verified
from ._split import check_share, held_out

# By domain, the file and its SHA-256.
FILES = {
    "amazon": (
        "amazon_SURF_L10.mat",
        "df32548b994e18d364c99e1f317e1fae100597259f0423a41b90f4f68187bb1f",
    ),
    "caltech": (
        "Caltech10_SURF_L10.mat",
        "4f9334c8ced489d5054de97a5fd51a61f017f3bcd1f38c9a85c6d78cb9d7bda5",
    ),
    "dslr": (
        "dslr_SURF_L10.mat",
        "44d673c68e1d07b837893aa74dba3b986e4a6cc3fd66f0dd357683bdef059216",
    ),
    "webcam": (
        "webcam_SURF_L10.mat",
        "a6a9c78b4b7181dfbb58bcfd351d4ebd737f171c31247b8884948aa156d3f700",
    ),
}
_CLASSES = (
    "backpack",
    "bike",
    "calculator",
    "headphones",
    "keyboard",
    "laptop",
    "monitor",
    "mouse",
    "mug",
    "projector",
)
_DESCR = """Office-Caltech-10: ten kinds of objects, photographed in four domains.

2,533 images as histograms of 800 visual words (SURF): Amazon's shop (958), Caltech-256
(1,123), a DSLR camera (157) and a webcam (295).

Gong et al., "Geodesic Flow Kernel for Unsupervised Domain Adaptation", CVPR 2012.
Saenko et al., "Adapting Visual Category Models to New Domains", ECCV 2010.
"""


def fetch_office_caltech(
    *,
    data_home=None,
    test_size=0.2,
    scaled=True,
    subset="all",
    random_state=0,
    return_X_y_domains=False,
):
    """Return Office-Caltech-10's SURF features: ten classes in four domains.

    Parameters
    ----------
    data_home : path, default=None
        Folder of ``amazon_SURF_L10.mat``, ``Caltech10_SURF_L10.mat``,
        ``dslr_SURF_L10.mat`` and ``webcam_SURF_L10.mat``, or with a folder
        ``office_caltech_surf`` of them; None is the folder ``mdal`` in scikit-learn's
        data folder. The files are checked by their SHA-256; there is no download.
    test_size : float, default=0.2
        Share of each domain's images that is for tests, stratified by class.
    scaled : bool, default=True
        Whether each row is divided by its sum, and then each column scaled to mean 0
        and variance 1 over the training rows; otherwise ``X`` has counts.
    subset : {"all", "train", "test"}, default="all"
        Which rows to return.
    random_state : int, RandomState or None, default=0
        Seed of the split.
    return_X_y_domains : bool, default=False
        Whether to return ``(X, y, domains)`` alone.

    Returns
    -------
    Bunch
        See :mod:`mdal.datasets`. ``X`` is float32, of shape (2533, 800).

    Examples
    --------
    >>> from mdal.datasets import fetch_office_caltech
    >>> data = fetch_office_caltech(data_home="data")  # doctest: +SKIP
    >>> data.names.tolist()  # doctest: +SKIP
    ['amazon', 'caltech', 'dslr', 'webcam']
    >>> fetch_office_caltech(test_size=1)
    Traceback (most recent call last):
    ...
    ValueError: test_size=1 is out of range; pass a number between 0 and 1, both \
excluded
    """
    check_option(subset, "subset", SUBSETS)
    test_size, rng = check_share(test_size), generator(random_state)
    parts = _read(data_folder(data_home))
    counts, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    codes = np.repeat(np.arange(len(parts)), [len(labels) for _, labels in parts])
    test = held_out(codes, y, None, test_size, rng)
    data = dataset(
        _scaled(counts, ~test) if scaled else counts.astype(np.float32),
        y,
        codes,
        names=np.array(list(FILES)),
        classes=np.array(_CLASSES),
        test=test,
        DESCR=_DESCR,
    )
    return wanted(data, subset, return_X_y_domains)


def _read(home):
    """Return counts of visual words and class numbers, for each domain."""
    folders = (home, home / "office_caltech_surf")
    paths = {file: located(folders, (file,)) for file, _ in FILES.values()}
    lacking = [file for file, path in paths.items() if path is None]
    if lacking:
        raise missing(
            "Office-Caltech-10",
            lacking,
            home,
            "put its four SURF files (Gong et al., 2012) there, or pass their folder "
            "as data_home",
        )
    parts = []
    for file, sha256 in FILES.values():
        path = paths[file]
        found = loadmat(io.BytesIO(verified(content(path), sha256, path)))
        parts.append((found["fts"], found["labels"].ravel().astype(np.int64) - 1))
    return parts


def _scaled(counts: NDArray, train: NDArray) -> NDArray[np.float32]:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True, dtype=float), 1)
    deviation = shares[train].std(axis=0)
    deviation[deviation == 0] = 1
    return ((shares - shares[train].mean(axis=0)) / deviation).astype(np.float32)
