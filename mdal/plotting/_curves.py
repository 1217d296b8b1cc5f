"""Curves by labels and by round: how accurate methods are, and the bound's terms."""

import numpy as np

from .._validation import check_number
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

_TERMS = {"lambda_": "λ"}


def learning_curves(records, *, metric: str = "accuracy", ax=None):
    """Draw a metric against labels: by method the mean and standard deviation.

    Parameters
    ----------
    records : list of dict
        With `name`, `seed`, `round`, `labels` and the metric.
    metric : str, default="accuracy"
        Key of a share from 0 to 1, shown in per cent, or "worst": the least accuracy
        of `by_domain`.
    ax : Axes, default=None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes
        The legend has the methods in the order of the last means.

    Examples
    --------
    >>> from mdal.plotting import learning_curves
    >>> run = {"name": "CAL", "seed": 0}
    >>> records = [
    ...     {**run, "round": 0, "labels": 150, "accuracy": 0.5},
    ...     {**run, "round": 1, "labels": 300, "accuracy": 0.75},
    ... ]
    >>> learning_curves(records).lines[0].get_ydata()
    array([50., 75.])
    """
    if metric == "worst":
        records = [
            {**record, metric: min(record["by_domain"].values())}
            for record in check_records(records, "by_domain")
        ]
    records = check_records(records, "labels", metric)
    methods = by_name(records)
    curves = {name: _curve(by_round(mine), metric) for name, mine in methods.items()}
    ax = canvas.axes_or_new(ax, 8, 4.5)
    many = len(curves) > 6
    lines = {}
    for number, (name, (labels, mean, deviation)) in enumerate(curves.items()):
        style = canvas.line(number)
        opacity = 0.06 if many else 0.16
        canvas.band(ax, labels, mean, deviation, colour=style["color"], opacity=opacity)
        (lines[name],) = ax.plot(
            labels, mean, markersize=5, linewidth=1.4 if many else 1.8, **style
        )
    what = "accuracy of the worst domain" if metric == "worst" else metric
    title = f"{what.capitalize()} by labels"
    y = f"{what} (%)\n{canvas.SPREAD}"
    canvas.dress(ax, title=title, x="labels", y=y, grid="y")
    ranked = sorted(curves, key=lambda name: -curves[name][1][-1])
    canvas.legend_beside(ax, [lines[name] for name in ranked], ranked)
    return ax


def _curve(rounds, metric):
    """Return the mean labels by round, and the metric's mean and deviation."""
    labels = [
        np.mean([check_number(run["labels"], "labels") for run in runs])
        for runs in rounds.values()
    ]
    return np.array(labels), *_per_cent(rounds, metric)


def _per_cent(rounds, metric):
    """Return the metric's mean and standard deviation by round."""
    shares = [
        [
            check_number(run[metric], f"{metric} of {run['name']!r}", high=1)
            for run in runs
        ]
        for runs in rounds.values()
    ]
    return mean_and_deviation(100 * np.transpose(shares))


def bound_by_round(records, *, name: str | None = None):
    """Draw the terms of a method's error bound by round, and its accuracy beside.

    Parameters
    ----------
    records : list of dict
        With `name`, `seed`, `round`, `accuracy` and `bound`. Rounds in which a run has
        no bound have no bar.
    name : str, default=None
        The method; None if records are of one only.

    Returns
    -------
    Figure
        On the left stacked means of the terms, on the right the accuracy.

    Examples
    --------
    >>> from mdal.plotting import bound_by_round
    >>> bound = {"labelled_error": 0.25, "divergence": 0.5, "lambda_": 0.125}
    >>> record = {"name": "CAL", "seed": 0, "round": 0, "accuracy": 0.5, "bound": bound}
    >>> left, right = bound_by_round([record]).axes
    >>> [bars.datavalues.tolist() for bars in left.containers]
    [[0.25], [0.5], [0.125]]
    """
    records = check_records(records, "accuracy", "bound")
    name, records = of_name(records, name)
    rounds = by_round(records, "bound")
    terms = common_keys([run for runs in rounds.values() for run in runs], "bound")
    heights = np.array(
        [table(runs, "bound", terms).mean(axis=0) for runs in rounds.values()]
    )
    figure = canvas.new_figure(8, 3.6)
    left, right = figure.subplots(1, 2)
    bottom = np.zeros(len(heights))
    colours = canvas.colours(len(terms))
    for term, values, colour in zip(terms, heights.T, colours, strict=True):
        label = _TERMS.get(term, term.replace("_", " "))
        left.bar(
            list(rounds),
            values,
            0.75,
            bottom=bottom,
            color=colour,
            edgecolor=left.get_facecolor(),
            linewidth=0.8,
            label=label,
        )
        bottom += values
    canvas.dress(left, title=f"Bound of {name}", x="round", y="error bound", grid="y")
    canvas.legend_beneath(left, *left.get_legend_handles_labels(), columns=3)
    reached = by_round(records)
    mean, deviation = _per_cent(reached, "accuracy")
    right.errorbar(list(reached), mean, deviation, capsize=3, **canvas.line(0))
    y = f"accuracy (%)\n{canvas.SPREAD}"
    canvas.dress(right, title=f"Accuracy of {name}", x="round", y=y, grid="y")
    for ax in (left, right):
        canvas.whole_ticks(ax.xaxis)
    return figure
