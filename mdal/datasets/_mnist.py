"""MNIST's images and labels, from files or from OpenML."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

from ._files import content, data_folder, located, missing, verified

N_TRAIN = 60_000  # of OpenML's rows, the first

# Of the unzipped files.
SHA256 = {
    "train-images-idx3-ubyte": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "train-labels-idx1-ubyte": (
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
    "t10k-images-idx3-ubyte": (
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "t10k-labels-idx1-ubyte": (
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
}


def mnist(data_home, download_if_missing: bool):
    """Return the images (n, 28, 28) and labels of the training and the test part."""
    home = data_folder(data_home)
    folders = (home, home / "mnist")
    paths = {name: located(folders, (name, f"{name}.gz")) for name in SHA256}
    lacking = [name for name, path in paths.items() if path is None]
    if not lacking:
        arrays = [
            _idx(verified(content(path), SHA256[name], path))
            for name, path in paths.items()
        ]
        return tuple(arrays[:2]), tuple(arrays[2:])
    if not download_if_missing:
        raise missing(
            "MNIST",
            lacking,
            home,
            "put MNIST's four IDX files there, gzipped or not, or pass "
            "download_if_missing=True",
        )
    return _from_openml(home)


def _idx(data: bytes) -> NDArray[np.uint8]:
    """Return the array in an IDX file of bytes."""
    n_dimensions = data[3]
    shape = np.frombuffer(data, ">i4", n_dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)


def _from_openml(home: Path):
    # The faster of its two parsers needs pandas, which this package does not.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        found = fetch_openml(
            "mnist_784", version=1, as_frame=False, data_home=str(home), parser=parser
        )
    except OSError as error:
        raise OSError(
            f"MNIST is not in {home}, and OpenML did not send it ({error}); put "
            "MNIST's four IDX files there, gzipped or not"
        ) from error
    images = found.data.astype(np.uint8).reshape(-1, 28, 28)
    labels = found.target.astype(np.uint8)
    parts = slice(None, N_TRAIN), slice(N_TRAIN, None)
    return tuple((images[part], labels[part]) for part in parts)
