"""Figures without pyplot, and the colours, marks and text sizes of all of them."""

from importlib import import_module

import numpy as np

# Points; at 100 pixels per inch the smallest text is 11 pixels high.
SMALL, NORMAL, LARGE = 8, 9, 10

# Okabe and Ito's colours for all kinds of vision, without the yellow: too pale a line.
COLOURS = [
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
]
MARKERS = "osD^vPX<>*h"
LINES = ["-", "--", ":", "-."]
UNKNOWN = "#CCCCCC"

# Under the name of what is shown, on the axis.
SPREAD = "mean ± standard deviation"


def load(module: str):
    """Return a module of matplotlib, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            'figures need matplotlib; install it by pip install "mdal-learn[plot]"'
        ) from error


def new_figure(width: float, height: float):
    """Return an empty figure, in inches, which pyplot does not know."""
    figure = load("matplotlib.figure").Figure
    return figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax, width: float, height: float):
    """Return the axes, or new ones on a figure of this size."""
    return new_figure(width, height).subplots() if ax is None else ax


def line(number: int) -> dict:
    """Return the colour, marker and line style of the n-th line: 308 differ."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number // len(COLOURS) % len(LINES)],
    }


def colours(n: int) -> list:
    """Return n colours: of Okabe and Ito, Petroff's ten, or a ramp, as n grows."""
    matplotlib = load("matplotlib")
    if n <= len(COLOURS):
        return COLOURS[:n]
    if n <= 10:
        return list(matplotlib.color_sequences["petroff10"][:n])
    return list(matplotlib.colormaps["viridis"](np.linspace(0, 1, n)))


def band(ax, x, mean, deviation, *, colour, opacity: float) -> None:
    """Shade the mean plus and minus the standard deviation, if there is one."""
    if np.any(deviation):
        low, high = mean - deviation, mean + deviation
        ax.fill_between(x, low, high, color=colour, alpha=opacity, linewidth=0)


def rgba(colour) -> tuple:
    """Return a colour as four numbers."""
    return load("matplotlib.colors").to_rgba(colour)


def dot(color, marker):
    """Return a mark for a legend."""
    line_2d = load("matplotlib.lines").Line2D
    return line_2d([], [], color=color, marker=marker, linestyle="none", markersize=5)


def thinned(n: int, most: int) -> list[int]:
    """Return positions from 0 to n - 1, evenly spaced, at most `most` of them."""
    return list(range(0, n, max(1, -(-n // most))))


def words(text) -> str:
    """Return a text in which a dollar sign begins no formula."""
    return str(text).replace("$", r"\$")


def dress(ax, *, title: str = "", x: str = "", y: str = "", grid: str | None = None):
    """Give axes a title, labels and readable ticks, and take away the box."""
    ax.set_title(words(title), fontsize=LARGE)
    ax.set_xlabel(words(x), fontsize=NORMAL)
    ax.set_ylabel(words(y), fontsize=NORMAL)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, color="#DDDDDD", linewidth=0.8)


def whole_ticks(axis) -> None:
    """Let an axis of rounds have ticks at whole numbers only."""
    ticker = load("matplotlib.ticker")
    axis.set_major_locator(ticker.MaxNLocator(integer=True, min_n_ticks=1))


def name_ticks(ax, which: str, names: list[str], *, most: int, room: int = 50) -> None:
    """Write names at positions 0, 1, ..., with gaps where there are more than `most`.

    Those of the x axis are turned where they have more letters than there is room for.
    """
    shown = thinned(len(names), most)
    texts = [words(names[position]) for position in shown]
    turned = which == "x" and sum(map(len, texts)) > room
    turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    getattr(ax, f"set_{which}ticks")(shown, texts, fontsize=SMALL, **turn)


def text_on(colour) -> str:
    """Return black or white, whichever can be read on a colour."""
    # Relative luminance; at 0.18 both have the same contrast.
    luminance = np.dot(np.power(rgba(colour)[:3], 2.2), [0.2126, 0.7152, 0.0722])
    return "black" if luminance > 0.18 else "white"


def legend_beside(ax, handles, labels) -> None:
    """Put a legend to the right of the axes, where it covers no data."""
    _legend(ax, handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def legend_beneath(ax, handles, labels, *, columns: int) -> None:
    """Put a legend under the axes, where the right is taken."""
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18)}
    _legend(ax, handles, labels, ncols=columns, **place)


def _legend(ax, handles, labels, **place) -> None:
    labels = [words(label) for label in labels]
    ax.legend(handles, labels, fontsize=SMALL, frameon=False, **place)
