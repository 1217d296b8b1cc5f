"""The form that every data set has, and parts of it."""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._validation import check_count, check_seed

SUBSETS = ("all", "train", "test")

# What has a value for each sample, if it is there at all.
_BY_SAMPLE = ("X", "y", "domains", "groups", "degrees")


def generator(random_state) -> np.random.Generator:
    """Return a generator; a whole number seeds it as NumPy does."""
    if isinstance(random_state, Integral):
        return np.random.default_rng(check_count(random_state, "random_state"))
    return np.random.default_rng(check_seed(random_state).randint(2**31, size=4))


def dataset(X, y, codes, *, names, classes, test, DESCR, groups=None, **others):
    """Return a data set; `codes` are positions in `names`, `test` is a mask."""
    return Bunch(
        X=X,
        y=y,
        domains=names[codes],
        names=names,
        classes=classes,
        train=np.flatnonzero(~test),
        test=np.flatnonzero(test),
        groups=groups,
        DESCR=DESCR,
        **others,
    )


def restricted(data: Bunch, rows: NDArray, test: NDArray) -> Bunch:
    """Return some rows of a data set; `test` is a mask over these."""
    part = Bunch(**data)
    for name in _BY_SAMPLE:
        if part.get(name) is not None:
            part[name] = part[name][rows]
    part.train, part.test = np.flatnonzero(~test), np.flatnonzero(test)
    return part


def wanted(data: Bunch, subset: str, return_X_y_domains: bool):
    """Return a data set, or its training or test rows, or their arrays alone."""
    if subset != "all":
        rows = data[subset]
        data = restricted(data, rows, np.full(len(rows), subset == "test"))
    return (data.X, data.y, data.domains) if return_X_y_domains else data
