"""Pools in files: a table with ids and domains, and what samples are."""

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

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
    """Read a pool from a table; `text` to `features` say what samples are."""
    path = Path(path)
    table = read_table(path)
    given = [name for name in (id, domain, text, image, label) if name is not None]
    for name in [*given, *(features or [])]:
        if name not in table:
            raise ValueError(
                f"{path} has no column {name!r}; it has {', '.join(table)}: name "
                "columns with --id, --domain, --text, --image, --features or --label"
            )
    if sum(part is not None for part in (text, image, array, features)) > 1:
        raise ValueError("pass one of --text, --image, --array and --features")
    ids = [_word(value) for value in table[id]]
    shown, kind = [""] * len(ids), "features"
    if text is not None:
        shown, kind = [_word(value) for value in table[text]], "text"
        X = text_features(shown)
    elif image is not None:
        shown, kind = [_word(value) for value in table[image]], "image"
        X = np.stack([_image(name, path.parent, size) for name in shown])
    elif array is not None:
        X = read_array(array)
        kind = "image" if X.ndim > 2 else "features"
    else:
        columns = features or [
            c for c in table if c not in given and _numeric(table[c])
        ]
        X, shown = _columns(table, columns, path), _lines(table, columns, len(ids))
    if len(X) != len(ids):
        raise ValueError(f"{array} has {len(X)} samples, but {path} {len(ids)} ids")
    X = np.ascontiguousarray(X, dtype=np.float32)
    if not np.isfinite(X).all():
        raise ValueError("samples contain NaN or infinity; replace it by a number")
    labels = [None] * len(ids) if label is None else [_word(v) for v in table[label]]
    domains = [_word(value) for value in table[domain]]
    return NewPool(ids, domains, shown, X, kind, [value or None for value in labels])


def read_table(path: Path) -> dict[str, list]:
    """Return the columns of a CSV or Parquet file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a CSV or Parquet file")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.suffix != ".csv":
        raise ValueError(f"{path} ends in {path.suffix!r}; pass .csv or .parquet")
    try:
        reader = csv.reader(io.StringIO(path.read_text("utf-8-sig")), strict=True)
        names, *rows = [row for row in reader if row] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as CSV in UTF-8: {error}") from None
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise ValueError(
                f"{path}, row {number}, has {len(row)} cells for {len(names)} columns"
            )
    if len(set(names)) < len(names) or not rows:
        raise ValueError(f"{path} needs a line of different names, and rows below it")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


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
    except (ValueError, EOFError, OSError, SyntaxError, MemoryError) as error:
        raise ValueError(f"{path} cannot be read as an array: {error}") from None
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
    """Return a cell as text; whole numbers have no point."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def _numeric(values: list) -> bool:
    try:
        np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _columns(table: dict, columns: list[str], path: Path) -> NDArray:
    if not columns:
        raise ValueError(
            f"{path} has no column of numbers; say what samples are with --text, "
            "--image, --array or --features"
        )
    for name in columns:
        if not _numeric(table[name]):
            raise ValueError(f"column {name!r} of {path} has cells that are no numbers")
    return np.array([table[name] for name in columns], dtype=np.float64).T


def _lines(table: dict, columns: list[str], n: int) -> list[str]:
    """Return what there is to see of samples that are numbers."""
    return [", ".join(f"{c} {table[c][i]}" for c in columns[:20]) for i in range(n)]


def image_file(name: str, folder: Path) -> Path:
    """Return the file of an image, which is below the folder of its table."""
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
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError) as error:
        raise ValueError(f"image {path} cannot be read: {error}") from None
    return np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255
