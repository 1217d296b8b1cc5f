"""Features that somebody saved as six arrays in a folder."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._validation import check_domains, check_labels, check_option
from ._bunch import SUBSETS, dataset, wanted
from ._files import missing

_PARTS = {"train": "tr", "test": "te"}
_BLOCK_ELEMENTS = 2**22  # looked at a time, so that a file need not fit into memory


def load_feature_folder(
    folder,
    *,
    domain_names=None,
    mmap=False,
    subset="all",
    return_X_y_domains=False,
):
    """Return features, classes and domains from the NumPy files of a folder.

    Features of Office-Home, ImageCLEF and others are kept in this form: ``X_tr.npy``,
    ``Y_tr.npy`` and ``dm_tr.npy`` are features, classes and domains of the training
    samples, ``X_te.npy``, ``Y_te.npy`` and ``dm_te.npy`` those of the test samples.

    Parameters
    ----------
    folder : path
        Where the six files are.
    domain_names : sequence of str, default=None
        Names of the domains, in the order of the sorted values in the files; None makes
        names of these values.
    mmap : bool, default=False
        Whether the features stay on the disk and are read when they are used. Then
        `subset` has to be "train" or "test", which are one file each.
    subset : {"all", "train", "test"}, default="all"
        Which rows to return.
    return_X_y_domains : bool, default=False
        Whether to return ``(X, y, domains)`` alone.

    Returns
    -------
    Bunch
        See :mod:`mdal.datasets`. The training samples come first.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from mdal.datasets import load_feature_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part, n in ("tr", 4), ("te", 2):
    ...         np.save(Path(folder) / f"X_{part}.npy", np.ones((n, 3)))
    ...         np.save(Path(folder) / f"Y_{part}.npy", np.arange(n) % 2)
    ...         np.save(Path(folder) / f"dm_{part}.npy", np.arange(n) // 2)
    ...     data = load_feature_folder(folder, domain_names=["art", "photo"])
    >>> data.domains.tolist()
    ['art', 'art', 'photo', 'photo', 'art', 'art']
    >>> data.test
    array([4, 5])
    """
    check_option(subset, "subset", SUBSETS)
    if mmap and subset == "all":
        raise ValueError(
            "mmap=True with subset='all', which is made of two files; pass "
            "subset='train' or 'test'"
        )
    parts = _read(Path(folder).expanduser())
    y, domains = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    classes, y = check_labels(y, len(y), "Y")
    if (y < 0).any():
        raise ValueError(
            "Y_tr.npy or Y_te.npy has -1 or NaN, which means no label; a data set "
            "needs all classes: drop these rows"
        )
    if classes.dtype.kind == "f":
        classes = classes.astype(np.int64)
    values, codes = check_domains(domains, len(domains))
    names = _names(values, domain_names)
    of_test = np.repeat([False, True], [len(part[0]) for part in parts])
    rows = slice(None) if subset == "all" else of_test == (subset == "test")
    data = dataset(
        _features(parts, subset, mmap),
        y[rows].astype(np.int64),
        codes[rows],
        names=names,
        classes=classes,
        test=of_test[rows],
        DESCR=f"Features of the folder {Path(folder).name}, as they were saved there.",
    )
    data.names = np.unique(names)
    return wanted(data, "all", return_X_y_domains)


def _read(folder: Path) -> list[tuple]:
    """Return features, classes and domains of both parts; nothing large is read."""
    files = [
        f"{kind}_{part}.npy" for part in _PARTS.values() for kind in ("X", "Y", "dm")
    ]
    lacking = [file for file in files if not (folder / file).is_file()]
    if lacking:
        raise missing(
            "The data set", lacking, folder, f"save all of {', '.join(files)}"
        )
    arrays = [_opened(folder / file) for file in files]
    for number in (0, 3):
        X, y, domains = arrays[number : number + 3]
        _check_features(X, arrays[0], folder / files[number])
        for offset, array in ((1, y), (2, domains)):
            arrays[number + offset] = _column(
                array, len(X), folder / files[number + offset]
            )
    return [tuple(arrays[:3]), tuple(arrays[3:])]


def _opened(path: Path) -> NDArray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (EOFError, ValueError) as error:
        raise ValueError(
            f"{path} is no file of numbers or strings ({error}); save it again with "
            "numpy.save"
        ) from error


def _check_features(X: NDArray, first: NDArray, path: Path) -> None:
    if X.ndim < 2 or X.dtype.kind not in "iuf":
        raise ValueError(
            f"{path} has shape {X.shape} and holds {X.dtype} values; save numbers, one "
            "row per sample"
        )
    if X.shape[1:] != first.shape[1:]:
        raise ValueError(
            f"{path} has rows of shape {X.shape[1:]}, X_tr.npy of {first.shape[1:]}; "
            "save the same features for both parts"
        )
    if X.dtype.kind != "f":
        return
    step = max(1, _BLOCK_ELEMENTS * len(X) // max(1, X.size))
    for start in range(0, len(X), step):
        finite = np.isfinite(X[start : start + step]).reshape(-1, X[0].size).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"{path} contains NaN or infinity in row {start + finite.argmin()}; "
                "replace it by a number or drop the row"
            )


def _column(array: NDArray, n_samples: int, path: Path) -> NDArray:
    """Return the values of one column, one for each sample."""
    column = np.array(array)
    if column.shape == (n_samples, 1):
        column = column[:, 0]
    if column.shape != (n_samples,):
        raise ValueError(
            f"{path} has shape {array.shape} for {n_samples} samples; save one value "
            "per sample"
        )
    return column


def _names(values: NDArray, domain_names) -> NDArray:
    """Return the names of sorted values, whole numbers padded by zeros."""
    if domain_names is None:
        if values.dtype.kind not in "iuf":
            return values.astype(str)
        texts = [f"{value:g}" for value in values]
        return np.array([text.zfill(max(map(len, texts))) for text in texts])
    names = np.array(list(domain_names), dtype=str)
    if len(names) != len(values) or len(set(names.tolist())) != len(names):
        raise ValueError(
            f"domain_names={names.tolist()} for the domains {values.tolist()}; pass "
            "one name for each, all different"
        )
    return names


def _features(parts: list[tuple], subset: str, mmap: bool) -> NDArray:
    if subset == "all":
        return np.concatenate([part[0] for part in parts])
    X = parts[subset == "test"][0]
    return X if mmap else np.array(X)
