"""Alpha as a heat map: once, and by round."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from . import _canvas as canvas
from ._records import (
    by_round,
    check_records,
    check_rounded_alpha,
    common_keys,
    of_name,
)

# Perceptually uniform, and nearly white where there is nothing.
_COLOURS = "magma_r"
_MOST_NUMBERS = 12


def alpha_heat_map(alpha: ArrayLike, names: Sequence, *, ax=None):
    r"""Draw alpha, with the mean of each column beneath.

    The column means :math:`\alpha_j = \frac{1}{N} \sum_i \alpha_{ij}` are CAL's shares
    of the budget. Up to 12 domains, numbers stand in the cells and the means are one
    more row; with more domains the means are bars.

    Parameters
    ----------
    alpha : array-like of shape (n_domains, n_domains)
        ``alpha[i, j]`` is the weight of labelled domain j in the surrogate of original
        domain i.
    names : sequence of length n_domains
        Names of the domains.
    ax : Axes, default=None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes
        Its first child axes have the means, its second ones the colour bar.

    References
    ----------
    Hao et al., "Composite Active Learning", AAAI 2024, Figure 2.

    Examples
    --------
    >>> from mdal.plotting import alpha_heat_map
    >>> ax = alpha_heat_map([[0.8, 0.2], [0.4, 0.6]], ["clinic", "lab"])
    >>> means = ax.child_axes[0]
    >>> [text.get_text() for text in means.texts]
    ['0.60', '0.40']
    """
    alpha = check_rounded_alpha(alpha)
    names = _check_names(names, len(alpha))
    ax = canvas.axes_or_new(ax, 6.4, 6.4)
    image = _matrix(ax, alpha, alpha.max())
    canvas.dress(ax, title="Alpha and its column means", y="original domain")
    ax.spines[:].set_visible(False)
    canvas.name_ticks(ax, "y", names, most=15)
    ax.tick_params(bottom=False, labelbottom=False)
    _means(ax.inset_axes([0, -0.16, 1, 0.12]), alpha, names, image)
    bar = ax.figure.colorbar(image, cax=ax.inset_axes([1.04, 0, 0.04, 1]))
    _name_colours(bar)
    return ax


def _check_names(names, n_domains: int) -> list[str]:
    names = [str(name) for name in names]
    if len(names) != n_domains:
        raise ValueError(
            f"names has {len(names)} names for {n_domains} domains; pass one for each"
        )
    return names


def _matrix(ax, alpha, largest: float):
    """Draw numbers from 0 to `largest`, with text where there are few columns."""
    image = ax.imshow(alpha, cmap=_COLOURS, vmin=0, vmax=largest)
    if alpha.shape[1] <= _MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(alpha):
            ax.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=canvas.SMALL,
                color=canvas.text_on(image.to_rgba(value)),
            )
    return image


def _means(ax, alpha, names, image) -> None:
    means = alpha.mean(axis=0)
    if len(means) <= _MOST_NUMBERS:
        _matrix(ax, means[None], image.norm.vmax)
        ax.set_aspect("auto")
        canvas.dress(ax, x="labelled domain")
        ax.spines[:].set_visible(False)
        ax.set_yticks([0], ["mean"])
    else:
        ax.bar(range(len(means)), means, width=1.0, color=canvas.COLOURS[0])
        canvas.dress(ax, x="labelled domain", y="mean")
        ax.set_xlim(-0.5, len(means) - 0.5)
        ax.set_yticks([0, means.max()], ["0", f"{means.max():.2g}"])
    canvas.name_ticks(ax, "x", names, most=15)


def _name_colours(bar) -> None:
    bar.ax.tick_params(labelsize=canvas.SMALL)
    bar.outline.set_visible(False)
    bar.set_label("weight of labelled domain", fontsize=canvas.NORMAL)


def alpha_by_round(
    records, *, name: str | None = None, rounds: Sequence[int] | None = None
):
    """Draw a method's alpha by round, the mean over seeds, in one colour scale.

    Parameters
    ----------
    records : list of dict
        With `name`, `seed`, `round`, `spent` (for the domains' names) and `alpha`.
        Rounds in which a run has no alpha are left out.
    name : str, default=None
        The method; None if records are of one only.
    rounds : sequence of int, default=None
        Which rounds to draw; None is all.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from mdal.plotting import alpha_by_round
    >>> spent = {"clinic": 10, "lab": 10}
    >>> records = [
    ...     {"name": "CAL", "seed": 0, "round": r, "spent": spent, "alpha": alpha}
    ...     for r, alpha in enumerate([[[0.5, 0.5]] * 2, [[0.9, 0.1], [0.2, 0.8]]])
    ... ]
    >>> [ax.get_title() for ax in alpha_by_round(records).axes[:2]]
    ['round 0', 'round 1']
    """
    records = check_records(records, "spent", "alpha")
    name, records = of_name(records, name)
    domains = common_keys(records, "spent")
    known = {
        number: np.mean(
            [check_rounded_alpha(run["alpha"], len(domains)) for run in runs], axis=0
        )
        for number, runs in by_round(records, "alpha").items()
    }
    shown = list(known) if rounds is None else list(rounds)
    unknown = [number for number in shown if number not in known]
    if unknown or not shown:
        raise ValueError(
            f"rounds={shown} does not fit: rounds with alpha are {list(known)}; "
            "choose from these"
        )
    figure, panels = _panels(len(shown))
    largest = max(known[number].max() for number in shown)
    for ax, number in zip(panels, shown, strict=True):
        image = ax.imshow(known[number], cmap=_COLOURS, vmin=0, vmax=largest)
        canvas.dress(ax, title=f"round {number}")
        ax.spines[:].set_visible(False)
        canvas.name_ticks(ax, "x", domains, most=8, room=20)
        canvas.name_ticks(ax, "y", domains, most=8)
    figure.suptitle(f"Alpha of {name}", fontsize=canvas.LARGE)
    figure.supxlabel("labelled domain", fontsize=canvas.NORMAL)
    figure.supylabel("original domain", fontsize=canvas.NORMAL)
    _name_colours(figure.colorbar(image, ax=panels, shrink=0.8))
    return figure


def _panels(n: int):
    """Return a figure and n axes, with ticks at the outer ones."""
    n_columns = n if n < 4 else 2 if n == 4 else 3
    n_rows = -(-n // n_columns)
    figure = canvas.new_figure(1.2 + 2.3 * n_columns, 0.6 + 2.4 * n_rows)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for ax in panels[n:]:
        ax.remove()
    for position, ax in enumerate(panels[:n]):
        left, bottom = position % n_columns == 0, position + n_columns >= n
        ax.tick_params(left=left, labelleft=left, bottom=bottom, labelbottom=bottom)
    return figure, panels[:n]
