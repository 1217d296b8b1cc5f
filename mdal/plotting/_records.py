"""What the figures read: records by method and round, with means over seeds."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_alpha, check_count, check_finite


def check_records(records, *keys: str) -> list[Mapping]:
    """Return records as a list if each has the keys and no round is there twice."""
    if isinstance(records, Mapping):
        raise TypeError("records is a single dict; pass a list of them, one per round")
    records = list(records)
    if not records:
        raise ValueError("records is empty; pass one dict for each round of each run")
    seen = set()
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise TypeError(
                f"record {number} is of type {type(record).__name__}; pass a dict"
            )
        needed = ("name", "seed", "round", *keys)
        missing = [key for key in needed if key not in record]
        if missing:
            raise ValueError(
                f"record {number} has no {missing[0]!r}; this figure needs "
                f"{', '.join(needed)} in every record"
            )
        check_count(record["round"], f"the round of record {number}")
        run = (record["name"], record["seed"], record["round"])
        if run in seen:
            raise ValueError(
                f"record {number} is the second of {run[0]!r} with seed {run[1]!r} in "
                f"round {run[2]}; pass one record for each round of a run"
            )
        seen.add(run)
    return records


def by_name(records: list[Mapping]) -> dict[str, list[Mapping]]:
    """Return the records of each method, in the order in which methods appear."""
    methods = {}
    for record in records:
        methods.setdefault(record["name"], []).append(record)
    return methods


def of_name(records: list[Mapping], name) -> tuple[str, list[Mapping]]:
    """Return a method's name and records; None is the only method that there is."""
    methods = by_name(records)
    known = ", ".join(map(repr, methods))
    if name is None:
        if len(methods) > 1:
            raise ValueError(
                f"records are of {len(methods)} methods; choose one by name=: {known}"
            )
        (name,) = methods
    if name not in methods:
        raise ValueError(f"name={name!r} is not in records; choose one of {known}")
    return name, methods[name]


def by_round(records: list[Mapping], key: str | None = None) -> dict[int, list]:
    """Return the rounds that every seed has reached, in order, with their records.

    With `key`, also left out are rounds in which the value of some seed is None.
    """
    rounds = {}
    for record in records:
        if key is None or record[key] is not None:
            rounds.setdefault(record["round"], []).append(record)
    n_seeds = len({record["seed"] for record in records})
    rounds = {n: rounds[n] for n in sorted(rounds) if len(rounds[n]) == n_seeds}
    if not rounds:
        what = "reached" if key is None else f"a value of {key!r}"
        raise ValueError(
            f"no round has {what} in all {n_seeds} runs of {records[0]['name']!r}; "
            "pass the records of runs that have one in common"
        )
    return rounds


def common_keys(records: list[Mapping], key: str) -> list[str]:
    """Return the keys of a dict in each record, the same ones in all of them."""
    names = list(records[0][key])
    for record in records:
        if set(record[key]) != set(names):
            raise ValueError(
                f"{key} has {list(record[key])} in round {record['round']} of "
                f"{record['name']!r} and {names} in another record; pass records that "
                "have the same ones"
            )
    return names


def table(records: list[Mapping], key: str, names: list[str]) -> NDArray:
    """Return values of a dict in each record, shape (n_records, n_names)."""
    rows = [[record[key][name] for name in names] for record in records]
    return check_finite(rows, key, (len(records), len(names))).astype(np.float64)


def mean_and_deviation(values: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return the mean and sample standard deviation over rows; 0 for a single one."""
    values = np.asarray(values, dtype=np.float64)
    mean = values.mean(axis=0)
    return mean, values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)


def check_rounded_alpha(alpha: ArrayLike, n_domains: int | None = None) -> NDArray:
    """Return alpha (N, N) as float64; records may have rounded it."""
    alpha = check_finite(alpha, "alpha", (n_domains, n_domains)).astype(np.float64)
    sums = alpha.sum(axis=1, keepdims=True)
    near = np.abs(sums - 1) < 0.01
    check_alpha(alpha / np.where(near, sums, 1), n_domains)
    return alpha
