"""Tables and statistics, from records alone."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._validation import check_number


def curves(records: list[dict], metric: str = "accuracy") -> dict[str, dict]:
    """Return the learning curve of every whole run.

    Parameters
    ----------
    records : list of dict
        From :func:`read_records`.
    metric : str, default="accuracy"
        A number in each record, or "worst": the accuracy of the worst domain.

    Returns
    -------
    dict of dict
        For each name and seed an array of shape (2, n_rounds): labels and the metric.
        A run with fewer rounds than the longest one of its name is left out.

    Examples
    --------
    >>> from mdal.experiment import curves
    >>> records = [{"name": "a", "seed": 0, "round": r, "labels": 10 * (r + 1),
    ...             "accuracy": 0.5 + r / 10} for r in range(2)]
    >>> curves(records)["a"][0]
    array([[10. , 20. ],
           [ 0.5,  0.6]])
    """
    if not records:
        raise ValueError("there are no records; run the experiment first")
    runs = defaultdict(lambda: defaultdict(dict))
    for record in records:
        value = (
            min(record["by_domain"].values()) if metric == "worst" else record[metric]
        )
        here = runs[record["name"]][record["seed"]]
        if here.setdefault(record["round"], (record["labels"], value)) != (
            record["labels"],
            value,
        ):
            raise ValueError(
                f"{record['name']!r} has two records of seed {record['seed']} and "
                f"round {record['round']}; pass those of one experiment"
            )
    found = {}
    for name, seeds in runs.items():
        longest = max(map(len, seeds.values()))
        found[name] = {
            seed: np.array([here[number] for number in sorted(here)]).T
            for seed, here in sorted(seeds.items())
            if len(here) == longest
        }
    return found


def table(records: list[dict], metric: str = "accuracy", names=None) -> list[dict]:
    """Return mean and standard deviation over seeds, by method and round.

    Parameters
    ----------
    records : list of dict
        From :func:`read_records`.
    metric : str, default="accuracy"
        See :func:`curves`.
    names : list of str, default=None
        Which methods, in this order; None is all, the best average first.

    Returns
    -------
    list of dict
        One row for each method: "method", "seeds", one entry for each number of labels
        and "average" over rounds, each ``(mean, standard deviation)`` in per cent.
        The deviation of a single seed is 0.

    Examples
    --------
    >>> from mdal.experiment import table
    >>> table([{"name": "a", "seed": s, "round": 0, "labels": 10,
    ...         "accuracy": 0.5 + s / 10} for s in range(2)])[0]["average"]
    (55.0, 7.0710678118654755)
    """
    found, rows = curves(records, metric), []
    for name in _known(names, found):
        runs = np.stack(list(found[name].values()))
        values = 100 * runs[:, 1]
        row = {"method": name, "seeds": len(runs)}
        for number, labels in enumerate(runs[0, 0].astype(int).tolist()):
            row[labels] = _spread(values[:, number])
        rows.append({**row, "average": _spread(values.mean(axis=1))})
    return rows if names else sorted(rows, key=lambda row: -row["average"][0])


def _known(names, found: dict) -> list[str]:
    unknown = [name for name in names or [] if name not in found]
    if unknown:
        raise ValueError(
            f"there are no records of {unknown[0]!r}; there are those of "
            f"{', '.join(map(repr, sorted(found)))}"
        )
    return list(names or found)


def _spread(values: NDArray) -> tuple[float, float]:
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return float(values.mean()), float(deviation)


def markdown(rows: list[dict]) -> str:
    """Return the rows of a table as Markdown.

    Parameters
    ----------
    rows : list of dict
        From :func:`table`; numbers of labels become headings.

    Returns
    -------
    str

    Examples
    --------
    >>> from mdal.experiment import markdown
    >>> print(markdown([{"method": "a", "seeds": 2, 10: (55.0, 7.1)}]))
    | method | seeds | 10 labels |
    | --- | --- | --- |
    | a | 2 | 55.0 ± 7.1 |
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    # Numbers of labels in their order, the others around them as they are.
    numbers = iter(sorted(c for c in columns if isinstance(c, int)))
    columns = [next(numbers) if isinstance(c, int) else c for c in columns]
    if "average" in columns:
        columns.remove("average")
        columns.append("average")
    heads = [f"{c} labels" if isinstance(c, int) else c for c in columns]
    lines = [heads, ["---"] * len(heads)]
    lines += [[_cell(row.get(column), row) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_deviation(value: tuple[float, float], seeds: int | None) -> str:
    """Return a mean and its deviation as text; a single seed has none.

    Parameters
    ----------
    value : tuple of float
        From :func:`table`.
    seeds : int or None
        Of how many seeds; None is several.

    Returns
    -------
    str

    Examples
    --------
    >>> from mdal.experiment import with_deviation
    >>> with_deviation((55.0, 7.07), 2), with_deviation((55.0, 0.0), 1)
    ('55.0 ± 7.1', '55.0')
    """
    mean, deviation = value
    return f"{mean:.1f}" if seeds == 1 else f"{mean:.1f} ± {deviation:.1f}"


def _cell(value, row: dict) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return with_deviation(value, row.get("seeds"))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def paired(records: list[dict], first: str, second: str, metric="accuracy") -> dict:
    r"""Compare two methods seed by seed, on their averages over rounds.

    With the differences :math:`d_s` of S common seeds: their mean, its standard error
    :math:`\operatorname{sd}(d) / \sqrt S`, and the p-value of Student's paired test.

    Parameters
    ----------
    records : list of dict
        From :func:`read_records`.
    first, second : str
        Names of methods.
    metric : str, default="accuracy"
        See :func:`curves`.

    Returns
    -------
    dict
        "difference" (first minus second, in points of a per cent), "error" and "p"
        (None where there is no spread to judge by), "seeds", and "by_round": the mean
        difference in each round.

    Examples
    --------
    >>> from mdal.experiment import paired
    >>> records = [{"name": n, "seed": s, "round": 0, "labels": 10, "accuracy": a}
    ...            for n, a in (("a", 0.75), ("b", 0.5)) for s in range(3)]
    >>> paired(records, "a", "b")["difference"]
    25.0
    """
    found = curves(records, metric)
    one, other = (found[name] for name in _known([first, second], found))
    seeds = sorted(set(one) & set(other))
    if not seeds:
        raise ValueError(f"{first!r} and {second!r} have no seed in common; run more")
    by_round = np.array([100 * (one[seed][1] - other[seed][1]) for seed in seeds])
    differences = by_round.mean(axis=1)
    error = p = None
    if np.ptp(differences) > 0:
        error = float(stats.sem(differences))
        p = float(stats.ttest_1samp(differences, 0.0).pvalue)
    return {
        "difference": float(differences.mean()),
        "error": error,
        "p": p,
        "seeds": len(seeds),
        "by_round": by_round.mean(axis=0).tolist(),
    }


def labels_to_reach(
    records: list[dict], level: float, metric: str = "accuracy"
) -> dict[str, tuple]:
    """Return how many labels each method needs to reach a level of accuracy.

    Parameters
    ----------
    records : list of dict
        From :func:`read_records`.
    level : float
        The accuracy to reach, from 0 to 1.
    metric : str, default="accuracy"
        See :func:`curves`.

    Returns
    -------
    dict of str to tuple
        Mean and standard deviation over seeds, by linear interpolation between rounds;
        None for a method that does not reach it with every seed. A curve that begins
        above the level counts with its first number of labels.

    Examples
    --------
    >>> from mdal.experiment import labels_to_reach
    >>> records = [{"name": "a", "seed": 0, "round": r, "labels": 10 * (r + 1),
    ...             "accuracy": 0.5 + r / 4} for r in range(2)]
    >>> labels_to_reach(records, 0.625)
    {'a': (15.0, 0.0)}
    """
    level = check_number(level, "level", high=1)
    needed = {}
    for name, runs in curves(records, metric).items():
        labels = [_first_crossing(*curve, level) for curve in runs.values()]
        needed[name] = None if None in labels else _spread(np.array(labels))
    return needed


def _first_crossing(labels: NDArray, values: NDArray, level: float) -> float | None:
    above = np.flatnonzero(values >= level)
    if len(above) == 0:
        return None
    i = above[0]
    if i == 0:
        return float(labels[0])
    part = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(labels[i - 1] + part * (labels[i] - labels[i - 1]))


def area_under_curve(records: list[dict], metric: str = "accuracy") -> dict[str, tuple]:
    r"""Return the area under the learning curve of each method, as a mean accuracy.

    .. math:: \frac{1}{m_R - m_0} \int_{m_0}^{m_R} a(m) \, dm

    with the accuracy a between numbers of labels :math:`m_0` and :math:`m_R`, by the
    trapezoidal rule.

    Parameters
    ----------
    records : list of dict
        From :func:`read_records`.
    metric : str, default="accuracy"
        See :func:`curves`.

    Returns
    -------
    dict of str to tuple
        Mean and standard deviation over seeds, in per cent.

    Examples
    --------
    >>> from mdal.experiment import area_under_curve
    >>> records = [{"name": "a", "seed": 0, "round": r, "labels": 10 * (r + 1),
    ...             "accuracy": 0.5 + r / 4} for r in range(2)]
    >>> area_under_curve(records)
    {'a': (62.5, 0.0)}
    """
    areas = {}
    for name, runs in curves(records, metric).items():
        values = [
            100 * np.trapezoid(a, m) / (m[-1] - m[0]) if len(m) > 1 else 100 * a[0]
            for m, a in runs.values()
        ]
        areas[name] = _spread(np.array(values))
    return areas
