"""The door: what users may pass for counts, weights, alpha, domains and labels.

Each function takes what a user gave and the name of the argument, and returns
a clean array or raises an error that names the value, what was expected and
what to do. Nothing is computed here; what a module checks beside this is how its
own arguments fit together.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state, column_or_1d

# Sums of as many as a thousand such counts still fit into 64 bits.
LARGEST = 2**53

# The default of y_mask: with None, domains that are given alone would be labels.
NOT_GIVEN = object()


_FINE = ("ns", "ps", "fs", "as")  # units of time that Python's own do not have


def check_count(value, name: str, *, minimum: int = 0) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(
            f"{name}={value!r} is of type {type(value).__name__}; pass a whole number"
        )
    if not math.isfinite(value) or value != int(value) or value < minimum:
        raise ValueError(
            f"{name}={value!r} is not a whole number of at least {minimum}; "
            "pass one that is"
        )
    if value > LARGEST:
        raise ValueError(f"{name}={value!r} is too large to count; pass less")
    return int(value)


def check_number(
    value, name: str, *, low: float = 0.0, high: float = np.inf, strict: bool = False
) -> float:
    """Return `value` as a float if it is from low to high, or strictly between."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(
            f"{name}={value!r} is of type {type(value).__name__}; pass a number"
        )
    inside = low < value < high if strict else low <= value <= high
    if not inside or not math.isfinite(value):
        raise ValueError(
            f"{name}={value!r} is out of range; pass a number between {low:g} and "
            f"{high:g}{', both excluded' if strict else ''}"
        )
    return float(value)


def check_seed(random_state) -> np.random.RandomState:
    """Return a generator; None is a new one, so the global one is left alone."""
    if random_state is None:
        return np.random.RandomState()
    return check_random_state(random_state)


def check_option(value, name: str, options) -> str:
    """Return `value` if it is one of the strings in `options`."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(
            f"{name}={value!r} is unknown; choose one of {', '.join(sorted(options))}"
        )
    return value


def _regular(values: ArrayLike, name: str) -> NDArray:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is ragged; pass a regular array") from error


def check_finite(values: ArrayLike, name: str, shape: tuple) -> NDArray:
    """Return a copy as finite numbers of the shape, in which None is any length."""
    array = np.array(_regular(values, name))
    if array.dtype == object and not any(
        isinstance(value, bool | np.bool_ | str) for value in array.flat
    ):
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} holds {array.dtype} values; pass real numbers")
    if array.ndim != len(shape) or any(
        expected is not None and expected != length
        for expected, length in zip(shape, array.shape, strict=False)
    ):
        expected = " x ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} has shape {array.shape}; pass an array of {expected}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity; replace it by a number")
    return array


def check_matrix(values: ArrayLike, name: str, n_rows: int | None = None) -> NDArray:
    """Return finite float32 or float64 numbers in two dimensions, row after row.

    Such an array is not copied; other real numbers and orders are converted.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values; fill them or drop their rows")
    array = values
    if not (isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64)):
        array = check_finite(values, name, (None,) * np.ndim(_regular(values, name)))
        small = array.dtype in (np.float16, np.float32)
        array = array.astype(np.float32 if small else np.float64, copy=False)
    if array.ndim != 2:
        raise ValueError(
            f"{name} has shape {array.shape}; pass two dimensions, one row per sample"
        )
    array = np.ascontiguousarray(array)
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(
            f"{name} has {len(array)} rows for {n_rows} samples; pass one row for each"
        )
    # The sum is finite if every number is, unless it overflows, and takes no memory.
    with np.errstate(all="ignore"):
        finite = np.isfinite(array.sum())
    if not finite:
        for number, row in enumerate(array):
            if not np.isfinite(row).all():
                raise ValueError(
                    f"{name} contains NaN or infinity in row {number}; replace it by a "
                    "number or drop the row"
                )
    return array


def check_probabilities(values: ArrayLike, name: str = "probabilities") -> NDArray:
    """Return class probabilities (n, C): at least 0, every row with sum 1."""
    probabilities = check_matrix(values, name)
    if probabilities.shape[1] == 0:
        raise ValueError(f"{name} has no column; pass one for each class")
    if len(probabilities) == 0:
        return probabilities
    if probabilities.min() < 0:
        raise ValueError(
            f"{name} contains {probabilities.min():.6g}; pass numbers of at least 0, "
            "or take the softmax of logits first"
        )
    sums = probabilities.sum(axis=1)
    row = int(np.abs(sums - 1).argmax())
    # Single precision may have come from half precision, double from single.
    if abs(sums[row] - 1) > (2e-3 if sums.dtype == np.float32 else 1e-5):
        raise ValueError(
            f"row {row} of {name} sums to {sums[row]:.6g}; every row must sum to 1: "
            "take the softmax of logits first"
        )
    return probabilities


def check_counts(values: ArrayLike, name: str, n_domains: int | None) -> NDArray:
    """Return whole numbers of at least 0, one for each domain, as int64."""
    counts = check_finite(values, name, (n_domains,))
    wrong = (counts < 0) | (counts != np.floor(counts))
    if wrong.any():
        raise ValueError(
            f"{name} contains {counts[wrong][0]}, which is not a whole number of at "
            "least 0; pass counts of samples"
        )
    if (counts > LARGEST).any():
        raise ValueError(f"{name} contains {counts.max()}, which is too large to count")
    return counts.astype(np.int64)


def check_weights(values: ArrayLike, name: str, n_domains: int | None) -> NDArray:
    """Return numbers of at least 0, one for each domain, as float64."""
    weights = check_finite(values, name, (n_domains,)).astype(np.float64)
    if len(weights) == 0:
        raise ValueError(f"{name} is empty; pass one number for each domain")
    if (weights < 0).any():
        raise ValueError(f"{name} contains {weights.min()}; pass numbers of at least 0")
    return weights


def check_table(
    values: ArrayLike, name: str, shape: tuple, *, upper: float = np.inf
) -> NDArray:
    """Return numbers between 0 and `upper` in a table of the given shape."""
    table = check_finite(values, name, shape).astype(np.float64)
    if table.size and (table.min() < 0 or table.max() > upper):
        raise ValueError(
            f"{name} spans [{table.min()}, {table.max()}]; "
            f"pass numbers between 0 and {upper}"
        )
    return table


def check_alpha(alpha: ArrayLike, n_domains: int | None = None) -> NDArray:
    """Return alpha (N, N) as float64 if each of its rows is on the simplex."""
    alpha = check_finite(alpha, "alpha", (n_domains, n_domains)).astype(np.float64)
    if len(alpha) == 0 or alpha.shape[0] != alpha.shape[1]:
        raise ValueError(
            f"alpha has shape {alpha.shape}; pass a square matrix with one row for "
            "each original domain and one column for each labelled domain"
        )
    if (alpha < 0).any():
        raise ValueError(f"alpha contains {alpha.min()}; pass weights of at least 0")
    sums = alpha.sum(axis=1)
    off = np.abs(sums - 1) > 1e-6
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise ValueError(
            f"row {row} of alpha sums to {sums[row]:.6g}; every row must sum to 1: "
            "divide each by its sum"
        )
    return alpha


def resolve_alpha(alpha, counts: NDArray) -> NDArray:
    """Return the matrix that `alpha` stands for, given labelled samples by domain.

    None is uniform over the labelled domains, "identity" makes every domain its
    own surrogate; an array is checked.
    """
    n_domains = len(counts)
    labelled = counts > 0
    if not labelled.any():
        raise ValueError(
            "no sample is labelled; label at least one, or use uniform weights"
        )
    if alpha is None:
        alpha = np.tile(labelled / labelled.sum(), (n_domains, 1))
    elif isinstance(alpha, str):
        check_option(alpha, "alpha", {"identity"})
        alpha = np.eye(n_domains)
    alpha = check_alpha(alpha, n_domains)
    weightless = np.flatnonzero(~labelled & (alpha.sum(axis=0) > 0))
    if len(weightless):
        raise ValueError(
            f"alpha gives weight to domain {weightless[0]}, which has no labelled "
            "sample; label one there or set that column to 0"
        )
    return alpha


def check_scores(values: ArrayLike, name: str, shape: tuple) -> NDArray:
    """Return a discriminator's probabilities, finite and between 0 and 1."""
    scores = np.asarray(values)
    if scores.dtype == bool:
        scores = scores.astype(np.float64)
    return check_table(scores, name, shape, upper=1.0)


def check_codes(values: ArrayLike, name: str, n_samples: int, n_codes: int) -> NDArray:
    """Return integer codes 0 .. n_codes - 1, one for each sample."""
    codes = check_finite(values, name, (n_samples,))
    wrong = (codes != np.floor(codes)) | (codes < 0) | (codes >= n_codes)
    if wrong.any():
        raise ValueError(
            f"{name} contains {codes[wrong][0]}; "
            f"pass whole numbers from 0 to {n_codes - 1}"
        )
    return codes.astype(np.intp)


def _as_array(values, name: str) -> NDArray:
    """Return a 1-D array; a list becomes an object array, so no value is converted."""
    if hasattr(values, "dtype") or hasattr(values, "__array__"):
        array = np.asarray(values)
        if np.ma.isMaskedArray(values):
            array = np.asarray(values.data).astype(object)
            array[np.ma.getmaskarray(values)] = None
        if array.dtype.kind == "T":  # NumPy's strings of any length
            array = array.astype(object)
    else:
        try:
            values = list(values)
        except TypeError:
            raise TypeError(
                f"{name} is of type {type(values).__name__}; pass one value per sample"
            ) from None
        array = np.empty(len(values), dtype=object)
        for row, value in enumerate(values):
            array[row] = value
    if array.ndim == 2 and array.shape[1] == 1 and name != "domains":
        array = column_or_1d(array, warn=True)
    if array.ndim != 1:
        raise ValueError(
            f"{name} has shape {array.shape}; pass one dimension, one value per sample"
        )
    return array


def _is_missing(values: NDArray) -> NDArray:
    """Tell which values are None, NaN, NaT or pandas NA: nothing that equals itself."""
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype != object:
        return np.zeros(len(values), dtype=bool)

    def missing(value):
        if value is None:
            return True
        equal = value == value
        return not (isinstance(equal, bool | np.bool_) and bool(equal))

    return _where(values, missing)


def _encode(values: NDArray, name: str) -> tuple[NDArray, NDArray]:
    """Return the distinct values and each value's position among them.

    They are sorted; names of domains that have no order come as they first appear.
    """
    if values.dtype != object:
        return np.unique(values, return_inverse=True)
    try:
        distinct = set(values)
    except TypeError as error:
        raise TypeError(
            f"{name} contains a value that cannot be hashed ({error}); "
            "pass strings, numbers or tuples"
        ) from None
    kinds = {_kind(value) for value in distinct}
    if len(kinds) > 1:
        raise TypeError(
            f"{name} mixes types ({', '.join(sorted(kinds))}); convert all to one type"
        )
    try:
        if "frozenset" in kinds:  # "less" means "part of" there
            raise TypeError
        ordered = sorted(distinct)
    except TypeError:
        if name != "domains":
            raise TypeError(
                f"{name} contains values of type {', '.join(kinds)}, which have no "
                "order; pass strings, numbers or tuples"
            ) from None
        ordered = list(dict.fromkeys(values))
    position = {value: code for code, value in enumerate(ordered)}
    codes = np.fromiter((position[value] for value in values), np.intp, len(values))
    names = np.empty(len(ordered), dtype=object)
    names[:] = ordered
    return (np.array(ordered) if kinds <= {"number", "str"} else names), codes


def _kind(value) -> str:
    """Name the type of a label, without regard to how NumPy would store it."""
    if isinstance(value, Real):
        return "number"
    return "str" if isinstance(value, str) else type(value).__name__


def _check_length(array: NDArray, name: str, n_samples: int) -> None:
    if len(array) != n_samples:
        raise ValueError(
            f"{name} has {len(array)} values for {n_samples} samples; "
            "pass one value per sample"
        )


def check_domains(domains, n_samples: int, known: NDArray | None = None):
    """Return the domains' names, sorted, and each sample's position among them.

    Parameters
    ----------
    domains : array-like of shape (n_samples,) or None
        Hashable labels of one type: strings, numbers, tuples, dates, members of an
        enumeration, ... None puts all samples into one domain, 0.
    n_samples : int
        How many samples there are.
    known : ndarray of shape (n_domains,), default=None
        The names that a fitted estimator knows: other names are an error, and
        positions refer to these.
    """
    if domains is None:
        if known is not None and len(known) > 1:
            raise ValueError(
                f"domains is missing; this estimator was fitted with {len(known)} "
                "domains: pass domains=, one name per sample"
            )
        names = np.array([0]) if known is None else known
        return names, np.zeros(n_samples, dtype=np.intp)
    array = _as_array(domains, "domains")
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in _FINE:
        array = array.astype("datetime64[us]")  # finer ones would become numbers
    _check_length(array, "domains", n_samples)
    missing = _is_missing(array)
    if missing.any():
        raise ValueError(
            f"domains has no value in row {int(np.flatnonzero(missing)[0])}; "
            "every sample needs a domain: give it a name or drop the row"
        )
    if np.isinf(array[_is_float(array)].astype(np.float64)).any():
        raise ValueError("domains contains infinity; give that domain a name")
    names, codes = _encode(array, "domains")
    if known is None:
        return names, codes
    position = {name: code for code, name in enumerate(known.tolist())}
    unseen = [name for name in names.tolist() if name not in position]
    if unseen:
        raise ValueError(
            f"domains contains {unseen[0]!r}, which was not there in fit; "
            f"known domains are {known.tolist()}: fit again with all of them"
        )
    return known, np.array([position[name] for name in names.tolist()])[codes]


def check_labels(y, n_samples: int, name: str = "y", *, minus_one: bool = False):
    """Return the classes, sorted, and each sample's class position, -1 if unlabelled.

    Unlabelled are -1 (unless `minus_one` says that it is a class), NaN, None, pandas NA
    and masked entries.
    """
    array = _as_array(y, name)
    _check_length(array, name, n_samples)
    if array.dtype.kind not in "biufUSO":
        raise TypeError(f"{name} holds {array.dtype} values; pass integers or strings")
    _check_no_missing_text(array, name)
    missing = _is_missing(array)
    if not minus_one:
        missing |= _is_minus_one(array)
    present = array[~missing]
    floats = present[_is_float(present)].astype(np.float64)
    odd = floats[np.isinf(floats) | (floats != np.floor(floats))]
    if len(odd):
        raise ValueError(
            f"{name} contains {odd[0]}. Unknown label type: continuous; classes "
            "are whole numbers or strings, unlabelled samples -1 or NaN"
        )
    codes = np.full(n_samples, -1, dtype=np.intp)
    classes, codes[~missing] = _encode(present, name)
    return classes, codes


def check_classes(classes) -> NDArray:
    """Return the classes that a user declares, sorted; all are distinct."""
    if isinstance(classes, str):
        raise TypeError(f"classes={classes!r} is one string; pass a list of classes")
    array = _as_array(classes, "classes")
    found, codes = check_labels(array, len(array), "classes", minus_one=True)
    if len(found) == 0 or (codes < 0).any() or len(found) < len(array):
        raise ValueError(
            f"classes={array.tolist()!r} has missing or equal values, or none; pass "
            "each class once"
        )
    return found


def declared(classes: NDArray, labels: NDArray, known: NDArray, name: str):
    """Return the known classes, and labels as positions among them."""
    position = {value: code for code, value in enumerate(known.tolist())}
    unknown = [c for c, value in enumerate(classes.tolist()) if value not in position]
    if unknown:
        row = int(np.flatnonzero(np.isin(labels, unknown))[0])
        raise ValueError(
            f"{name} contains {classes[labels[row]].item()!r} in row {row}, which is "
            f"none of the classes {known.tolist()}; correct the label, or add it to "
            "classes"
        )
    codes = np.array([*(position[value] for value in classes.tolist()), -1])
    return known, codes[labels]


def minus_one_is_a_class(y, classes: NDArray | None = None) -> bool:
    """Tell whether -1 is a class in y: one of the classes, if they are known.

    Otherwise if all labels are -1 or 1, both are there, and missing ones, if there are
    any, are marked by something else.
    """
    if classes is not None:
        return -1 in classes.tolist()
    values = _as_array(y, "y")
    values = values[~_is_missing(values)]
    if values.dtype == object and all(_kind(value) == "number" for value in values):
        values = values.astype(np.float64)
    return values.dtype.kind in "if" and np.unique(values).tolist() == [-1, 1]


def only_domains(second, domains):
    """Return the domains, which are the second argument where y_mask is given."""
    if second is not None and domains is not None:
        raise TypeError(
            "got domains twice: with y_mask the second argument is the domains; pass "
            "(X, domains, y_mask)"
        )
    return second if domains is None else domains


def _check_no_missing_text(values: NDArray, name: str) -> None:
    """Refuse what NumPy makes of -1, NaN and None in an array of strings."""
    if values.dtype.kind not in "US":
        return
    found = np.intersect1d(values.astype(str), ["-1", "nan", "None"])
    if len(found):
        raise ValueError(
            f"{name} is an array of strings with the text {str(found[0])!r}, which "
            "NumPy makes of a missing label; pass a list or an array of dtype object, "
            "with None for missing labels"
        )


def _is_minus_one(values: NDArray) -> NDArray:
    if values.dtype.kind in "US":
        return np.zeros(len(values), dtype=bool)
    if values.dtype != object:
        return values == -1
    return _where(values, lambda value: isinstance(value, Real) and value == -1)


def _is_float(values: NDArray) -> NDArray:
    if values.dtype != object:
        return np.full(len(values), values.dtype.kind == "f")
    return _where(values, lambda value: isinstance(value, float | np.floating))


def _where(values: NDArray, condition) -> NDArray:
    return np.fromiter((condition(value) for value in values), bool, len(values))


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """Features of all samples of all domains, some of them labelled.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    domains : ndarray of shape (n_samples,)
        Position of each sample's domain in `names`.
    labels : ndarray of shape (n_samples,)
        Position of each sample's class in `classes`, -1 where there is no label.
    names : ndarray of shape (n_domains,)
    classes : ndarray of shape (n_classes,)
    """

    X: NDArray
    domains: NDArray
    labels: NDArray
    names: NDArray
    classes: NDArray

    @property
    def labelled(self) -> NDArray:
        """Whether each sample has a label."""
        return self.labels >= 0

    @property
    def counts(self) -> NDArray:
        """Labelled samples in each domain."""
        return np.bincount(self.domains[self.labelled], minlength=len(self.names))


def check_partly_labelled(estimator, X, y, domains) -> PartlyLabelled:
    """Return what a transformer was given in `fit`, with at least one label.

    The estimator is not touched: it records the features when its fit has succeeded.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None; mark unlabelled samples by -1"
        )
    X = check_array(X, ensure_min_samples=2, estimator=estimator)
    names, domains = check_domains(domains, len(X))
    classes, labels = check_labels(y, len(X))
    if not (labels >= 0).any():
        raise ValueError(
            "y has no label at all, and nothing can be estimated without one; label "
            "at least one sample, or split the first budget by 'uniform'"
        )
    return PartlyLabelled(X, domains, labels, names, classes)
