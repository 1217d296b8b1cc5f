"""What domains get and give: labels by round, accuracy by method."""

import numpy as np

from .._validation import check_table
from . import _canvas as canvas
from ._records import (
    by_name,
    by_round,
    check_records,
    common_keys,
    mean_and_deviation,
    of_name,
    table,
)

_FEW_DOMAINS = 12
_FEW_ROUNDS = 15


def budgets_by_round(
    records, *, name: str | None = None, shares: bool = False, ax=None
):
    """Draw the labels that a method buys in each domain, by round, as stacked bars.

    Parameters
    ----------
    records : list of dict
        With `name`, `seed`, `round` and `spent`. New labels are the differences of
        `spent` between rounds, so joint budgets have domains as well.
    name : str, default=None
        The method; None if records are of one only.
    shares : bool, default=False
        Draw the domains' shares of all labels so far, not the new labels.
    ax : Axes, default=None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes
        A container of bars for each domain, means over seeds.

    Examples
    --------
    >>> from mdal.plotting import budgets_by_round
    >>> records = [
    ...     {"name": "CAL", "seed": 0, "round": 0, "spent": {"lab": 10, "ward": 10}},
    ...     {"name": "CAL", "seed": 0, "round": 1, "spent": {"lab": 15, "ward": 25}},
    ... ]
    >>> lab, ward = budgets_by_round(records).containers
    >>> [float(bar.get_height()) for bar in ward]
    [10.0, 15.0]
    """
    name, records = of_name(check_records(records, "spent"), name)
    domains = common_keys(records, "spent")
    rounds = by_round(records)
    spent = np.array(
        [table(runs, "spent", domains).mean(axis=0) for runs in rounds.values()]
    )
    if shares:
        heights = 100 * spent / np.maximum(spent.sum(axis=1, keepdims=True), 1)
    else:
        heights = np.diff(spent, axis=0, prepend=0)
    ax = canvas.axes_or_new(ax, 8, 4)
    bars = _stack(ax, list(rounds), heights)
    title = f"{'Shares of labels' if shares else 'New labels'} of {name}"
    y = "share of labels so far (%)" if shares else "new labels"
    canvas.dress(ax, title=title, x="round", y=y, grid="y")
    canvas.whole_ticks(ax.xaxis)
    # From the top down, as the bars are stacked.
    shown = canvas.thinned(len(domains), 20)[::-1]
    handles = [bars[position] for position in shown]
    canvas.legend_beside(ax, handles, [domains[position] for position in shown])
    return ax


def _stack(ax, rounds, heights) -> list:
    """Stack bars, with numbers where there are few domains and a number has room."""
    n_domains = heights.shape[1]
    few = n_domains <= _FEW_DOMAINS
    stack = []
    bottom = np.zeros(len(heights))
    tallest = heights.sum(axis=1).max()
    for values, colour in zip(heights.T, canvas.colours(n_domains), strict=True):
        bars = ax.bar(
            rounds,
            values,
            0.75,
            bottom=bottom,
            color=colour,
            edgecolor=ax.get_facecolor(),
            linewidth=0.8 if few else 0,
        )
        stack.append(bars)
        bottom += values
        if few and len(rounds) <= _FEW_ROUNDS:
            texts = [f"{v:.0f}" if v > 0.05 * tallest else "" for v in values]
            ax.bar_label(
                bars,
                texts,
                label_type="center",
                fontsize=canvas.SMALL,
                color=canvas.text_on(colour),
            )
    return stack


def accuracy_by_domain(records, *, round: int | None = None, ax=None):
    """Draw the accuracy in each domain by method: means and standard deviations.

    Parameters
    ----------
    records : list of dict
        With `name`, `seed`, `round` and `by_domain`.
    round : int, default=None
        The round; None is the last one that all runs have reached.
    ax : Axes, default=None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from mdal.plotting import accuracy_by_domain
    >>> by_domain = {"clinic": 0.75, "lab": 0.5}
    >>> record = {"name": "CAL", "seed": 0, "round": 3, "by_domain": by_domain}
    >>> accuracy_by_domain([record]).lines[0].get_ydata()
    array([75., 50.])
    """
    records = check_records(records, "by_domain")
    domains = common_keys(records, "by_domain")
    methods = {name: by_round(mine) for name, mine in by_name(records).items()}
    round = _common_round(methods, round)
    ax = canvas.axes_or_new(ax, 8, 4.2)
    few = len(domains) <= _FEW_DOMAINS
    handles = []
    for number, rounds in enumerate(methods.values()):
        runs = table(rounds[round], "by_domain", domains)
        runs = check_table(runs, "by_domain", runs.shape, upper=1.0)
        mean, deviation = mean_and_deviation(100 * runs)
        where = np.arange(len(domains))
        style = canvas.line(number)
        if few:  # room for methods side by side
            where = where + 0.7 * ((number + 0.5) / len(methods) - 0.5)
            style["linestyle"] = "none"
            handles.append(ax.errorbar(where, mean, deviation, markersize=5, **style))
        else:
            handles.extend(ax.plot(where, mean, markersize=4, **style))
            colour = style["color"]
            canvas.band(ax, where, mean, deviation, colour=colour, opacity=0.12)
    y = f"accuracy (%)\n{canvas.SPREAD}"
    title = f"Accuracy by domain after round {round}"
    canvas.dress(ax, title=title, x="domain", y=y, grid="y")
    canvas.name_ticks(ax, "x", domains, most=20)
    ax.set_xlim(-0.5, len(domains) - 0.5)
    canvas.legend_beside(ax, handles, methods)
    return ax


def _common_round(methods: dict, round: int | None) -> int:
    """Return the round if every method has it, or the last that all have."""
    common = sorted(set.intersection(*(set(rounds) for rounds in methods.values())))
    if round is None and common:
        return common[-1]
    if round not in common:
        raise ValueError(
            f"round={round} is not in all runs; those in all are {common}: choose one "
            "of them, or pass records of runs that have one in common"
        )
    return round
