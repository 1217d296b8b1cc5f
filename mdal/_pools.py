"""Pools in files: a table with ids and domains, and what samples are."""

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from ._sheets import is_number, read_sheet

_ARRAY = b"\x93NUMPY"
_COMPONENTS = 100  # of texts


class NewPool(NamedTuple):
    """Samples as a learner sees them, and as people do.

    Attributes
    ----------
    ids, domains, shown : list of str
    X : ndarray of float32
    kind : {"text", "image", "features"}
    labels : list of (str or None)
    """

    ids: list[str]
    domains: list[str]
    shown: list[str]
    X: NDArray
    kind: str
    labels: list[str | None]


def read_pool(
    path,
    *,
    id="id",
    domain="domain",
    text=None,
    image=None,
    array=None,
    features=None,
    label=None,
    size=32,
) -> NewPool:
    """Read a pool from a table.

    `array` or `features` is what the learner sees, `text` or `image` what people do;
    without the former, the learner sees the words of texts, or small images.
    """
    path = Path(path)
    table = read_table(path)
    given = [name for name in (id, domain, text, image, label) if name is not None]
    for name in [*given, *(features or [])]:
        if name not in table:
            raise ValueError(
                f"{path} has no column {name!r}; it has {', '.join(table)}: name "
                "columns with --id, --domain, --text, --image, --features or --label"
            )
    if (text is not None and image is not None) or (array and features):
        raise ValueError(
            "pass one of --text and --image, one of --array and --features"
        )
    ids, domains = (_names(table[name], name, path) for name in (id, domain))
    shown, kind = [""] * len(ids), "features"
    if text is not None or image is not None:
        kind = "image" if text is None else "text"
        shown = [_word(value) for value in table[text or image]]
    if array is not None:
        X = read_array(array)
        kind = "image" if kind == "features" and X.ndim > 2 else kind
        if len(X) != len(ids):
            raise ValueError(f"{array} has {len(X)} samples, but {path} {len(ids)} ids")
    elif features is not None or kind == "features":
        features = features or _number_columns(table, given, path)
        X = _columns(table, features, path)
        shown = shown if any(shown) else _lines(table, features, len(ids))
    elif kind == "text":
        X = text_features(shown)
    else:
        X = np.stack([_image(name, path.parent, size) for name in shown])
    X = np.ascontiguousarray(X, dtype=np.float32)
    if not np.isfinite(X).all():
        raise ValueError("samples contain NaN or infinity; replace it by a number")
    labels = [None] * len(ids) if label is None else [_word(v) for v in table[label]]
    return NewPool(ids, domains, shown, X, kind, [value or None for value in labels])


def _names(values: list, column: str, path: Path) -> list[str]:
    names = [_word(value) for value in values]
    if "" in names:
        raise ValueError(
            f"{path} has nothing in column {column!r} of sample {names.index('') + 1}; "
            "fill it in"
        )
    return names


def _number_columns(table: dict, given: list[str], path: Path) -> list[str]:
    """Return the columns that have numbers and no other name."""
    found = []
    for name, values in table.items():
        filled = [value for value in values if _word(value)]
        if name in given or not filled or not _numeric(filled):
            continue
        if name.lower() == "label":
            raise ValueError(
                f"column {name!r} of {path} may be the answer; name it with --label, "
                "or the columns to learn from with --features"
            )
        found.append(name)
    return found


def read_table(path: Path) -> dict[str, list]:
    """Return the columns of a CSV or Parquet file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a CSV or Parquet file")
    if path.suffix.lower() == ".parquet":
        table = _read_parquet(path)
    elif path.suffix.lower() == ".csv":
        names, rows = read_sheet(path)
        table = {name: [row[name] for row in rows] for name in names}
    else:
        raise ValueError(f"{path} ends in {path.suffix!r}; pass .csv or .parquet")
    if not table or not next(iter(table.values())):
        raise ValueError(f"{path} has no sample; pass at least one")
    return table


def _read_parquet(path: Path) -> dict[str, list]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "Parquet files need pyarrow; install mdal-learn[session], or pass a CSV"
        ) from None
    try:
        return pyarrow.parquet.read_table(path).to_pydict()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None


def read_array(path) -> NDArray:
    """Return the array in a .npy file, which can run no code."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a .npy file")
    with path.open("rb") as file:
        if file.read(len(_ARRAY)) != _ARRAY:
            raise ValueError(f"{path} is no .npy file; save one with numpy.save")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # whatever NumPy makes of a hostile header
        raise ValueError(
            f"{path} is damaged, or has more than plain numbers "
            f"({type(error).__name__}); save an array of numbers with numpy.save"
        ) from None
    if array.ndim < 2 or array.dtype.kind not in "fiub" or not array.size:
        raise ValueError(
            f"{path} has shape {array.shape} and type {array.dtype}; pass numbers, "
            "with samples along the first of at least two dimensions"
        )
    return array


def text_features(texts: list[str]) -> NDArray:
    """Return texts as directions in the space of their words (TF-IDF, then LSA)."""
    try:
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        counts = words.fit_transform(texts)
    except ValueError:
        raise ValueError(
            "no word is in two of the texts; pass more texts, or features of them"
        ) from None
    n = min(_COMPONENTS, min(counts.shape) - 1)
    if n < 1:
        raise ValueError("the texts have too few words; pass features of them")
    return normalize(TruncatedSVD(n, random_state=0).fit_transform(counts))


def _word(value) -> str:
    """Return a cell as text; whole numbers have no point, NaN is nothing."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def _numeric(values: list) -> bool:
    return all(
        isinstance(value, int | float) or (isinstance(value, str) and is_number(value))
        for value in values
    )


def _columns(table: dict, columns: list[str], path: Path) -> NDArray:
    if not columns:
        raise ValueError(
            f"{path} has no column of numbers; say what samples are with --text, "
            "--image, --array or --features"
        )
    for name in columns:
        if not _numeric(table[name]):
            wrong = next(value for value in table[name] if not _numeric([value]))
            raise ValueError(
                f"column {name!r} of {path} has the cell {wrong!r:.80}; fill in a "
                "number, or choose other columns with --features"
            )
    return np.array([table[name] for name in columns], dtype=np.float64).T


def _lines(table: dict, columns: list[str], n: int) -> list[str]:
    """Return what there is to see of samples that are numbers."""
    return [", ".join(f"{c} {table[c][i]}" for c in columns[:20]) for i in range(n)]


def image_file(name: str, folder: Path) -> Path:
    """Return the file of an image, which is below the folder of its table."""
    if "://" in name:
        raise ValueError(
            f"image {name!r:.80} is not on this machine; pass what the learner is to "
            "see with --array or --features"
        )
    if not name:
        raise ValueError("a sample has no image; fill in a file, or an address")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"image {name!r:.80} is outside of {folder}; keep them there")
    if not path.is_file():
        raise FileNotFoundError(f"image {path} does not exist")
    return path


def _image(name: str, folder: Path, size: int) -> NDArray:
    """Return an image as numbers from 0 to 1, of shape (3, size, size)."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ImportError("images need Pillow; install mdal-learn[session]") from None
    path = image_file(name, folder)
    try:
        with Image.open(path) as image:
            small = image.convert("RGB").resize((size, size))
    except (
        *(UnidentifiedImageError, Image.DecompressionBombError, OSError),
        *(SyntaxError, EOFError, ValueError, struct.error),
    ) as error:
        raise ValueError(f"image {path} cannot be read: {error}") from None
    return np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255
