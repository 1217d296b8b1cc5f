"""Pages of text, tables and figures: one HTML file that needs nothing else.

A page is made of sections, a section of a heading and parts: a string is a paragraph,
:func:`table` and :func:`picture` make the other two. All text is escaped. There is no
script, and nothing is loaded from elsewhere.
"""

import base64
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path

from ._atomic import write_whole
from ._validation import check_count, check_number

__all__ = ["page", "picture", "table", "write_page"]

# Also means with deviations and shares: "94.1 ± 0.3", "12 %".
_NUMBER = re.compile(r"[-+\u2212]?\d[\d.,]*(\s?±\s?\d[\d.,]*)?(\s?%)?")

_STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --faint: #5c5c5c; --line: #d5d5d5;
  --page: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --faint: #a8a8a8; --line: #444444; --page: #161616; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem 1rem 3rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 0.75rem; }
p { max-width: 42rem; margin: 0 0 1rem; }
.scroll { overflow-x: auto; margin: 0 0 1.5rem; }
table { border-collapse: collapse; font-size: 0.9rem; overflow-wrap: normal; }
caption, figcaption { color: var(--faint); font-size: 0.9rem; text-align: left; }
caption { padding-bottom: 0.4rem; }
th, td { padding: 0.35rem 0.8rem 0.35rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
figure { margin: 0 0 1.5rem; }
img { display: block; max-width: 100%; height: auto; background: #ffffff;
  border-radius: 4px; }
figure .scroll { margin: 0; }
figure .scroll img { min-width: 36rem; }
figcaption { margin-top: 0.4rem; }
""".strip()


@dataclass(frozen=True)
class _Part:
    """A part of a page that is HTML already."""

    html: str


def page(title: str, sections: Iterable, *, language: str = "en") -> str:
    """Return a page as HTML.

    Parameters
    ----------
    title : str
        Title and first heading.
    sections : iterable of (str, parts)
        Heading and parts of each section. Parts are one or several of: a string, which
        is a paragraph, a :func:`table`, a :func:`picture`. With the heading "" the
        parts have none, as an introduction.
    language : str, default="en"
        Language of the text, as in HTML.

    Returns
    -------
    str

    Examples
    --------
    >>> from mdal.report import page, table
    >>> rows = [{"method": "CAL", "accuracy (%)": 91.5}]
    >>> html = page("A comparison", [("Results", ["After 5 rounds:", table(rows)])])
    >>> "<h2>Results</h2>" in html
    True
    """
    body = "\n".join(_section(number, part) for number, part in enumerate(sections))
    return f"""<!DOCTYPE html>
<html lang="{escape(str(language))}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(str(title))}</title>
<link rel="icon" href="data:,">
<style>
{_STYLE}
</style>
</head>
<body>
<main>
<h1>{escape(str(title))}</h1>
{body}
</main>
</body>
</html>
"""


def _section(number: int, section) -> str:
    if not isinstance(section, tuple | list) or len(section) != 2:
        raise TypeError(
            f"section {number} is {section!r:.60}; pass pairs of a heading and parts"
        )
    heading, parts = section
    parts = [parts] if isinstance(parts, str | _Part) else parts
    if not isinstance(parts, Iterable):
        raise TypeError(
            f"section {heading!r} has parts of type {type(parts).__name__}; pass a list"
        )
    lines = [f"<h2>{escape(str(heading))}</h2>"] if heading else []
    for part in parts:
        if isinstance(part, str):
            lines.append(f"<p>{escape(part)}</p>")
        elif isinstance(part, _Part):
            lines.append(part.html)
        else:
            raise TypeError(
                f"section {heading!r} has a part of type {type(part).__name__}; pass "
                "strings, table(...) or picture(...)"
            )
    return "\n".join(["<section>", *lines, "</section>"])


def table(
    rows: Iterable,
    *,
    header: Sequence | None = None,
    caption: str | None = None,
    decimals: int = 2,
):
    """Return a table as a part of a page; numbers stand on the right.

    Parameters
    ----------
    rows : iterable of dict or of sequences
        With dicts, the header is the first one's keys, and what a dict does not have
        is an empty cell, as None is.
    header : sequence, default=None
        Names of the columns; needed where rows are sequences.
    caption : str, default=None
        What the table shows.
    decimals : int, default=2
        Digits after the point of numbers that are not whole.

    Returns
    -------
    part
        For :func:`page`.

    Examples
    --------
    >>> from mdal.report import table
    >>> part = table([["CAL", 900, "91.5 ± 0.4"]], header=["method", "labels", "%"])
    >>> '<td class="number">91.5 ± 0.4</td>' in part.html
    True
    """
    decimals = check_count(decimals, "decimals")
    header, rows = _grid(list(rows), header)
    texts = [[_text(cell, decimals) for cell in row] for row in rows]
    columns = list(zip(*texts, strict=True))
    numeric = [_is_numeric(column) for column in columns]
    lines = [
        '<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(str(caption or "table"))}">',
        "<table>",
    ]
    if caption:
        lines.append(f"<caption>{escape(str(caption))}</caption>")
    head = _row(header, numeric, "th")
    lines.extend([f"<thead>{head}</thead>", "<tbody>"])
    lines.extend(_row(row, numeric, "td") for row in texts)
    lines.extend(["</tbody>", "</table>", "</div>"])
    return _Part("\n".join(lines))


def _grid(rows: list, header) -> tuple[list[str], list[list]]:
    """Return the header and the cells, as many in each row."""
    if not rows:
        raise ValueError("rows is empty; pass at least one row")
    if header is None:
        if not isinstance(rows[0], Mapping):
            raise ValueError("header is missing; pass header= or rows that are dicts")
        header = list(rows[0])
    cells = []
    for number, row in enumerate(rows):
        if isinstance(row, Mapping):
            unknown = [key for key in row if key not in header]
            if unknown:
                raise ValueError(
                    f"row {number} has {unknown[0]!r}, which is not a column; columns "
                    f"are {list(header)}: pass header= with all of them"
                )
            row = [row.get(key) for key in header]
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise TypeError(
                f"row {number} is of type {type(row).__name__}; pass a dict or a list"
            )
        row = list(row)
        if len(row) != len(header):
            raise ValueError(
                f"row {number} has {len(row)} cells for {len(header)} columns; pass "
                "one for each, None where there is nothing"
            )
        cells.append(row)
    return [str(name) for name in header], cells


def _text(cell, decimals: int) -> str:
    if cell is None or (isinstance(cell, Real) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool) or not isinstance(cell, Real):
        return str(cell)
    return f"{cell:,}" if isinstance(cell, Integral) else f"{cell:,.{decimals}f}"


def _is_numeric(column: Sequence[str]) -> bool:
    filled = [text for text in column if text]
    return bool(filled) and all(_NUMBER.fullmatch(text) for text in filled)


def _row(cells, numeric, tag: str) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    marks = [f'{scope} class="number"' if right else scope for right in numeric]
    inside = "".join(
        f"<{tag}{mark}>{escape(cell)}</{tag}>"
        for cell, mark in zip(cells, marks, strict=True)
    )
    return f"<tr>{inside}</tr>"


def picture(figure, alt: str, *, caption: str | None = None, dpi: float = 200):
    """Return a matplotlib figure as a part of a page.

    It is embedded as SVG, sharp at any size, or as PNG where that is smaller. The same
    figure gives the same bytes.

    Parameters
    ----------
    figure : Figure or Axes
        What to show; of axes, the figure that they are on.
    alt : str
        What the figure says, for those who do not see it.
    caption : str, default=None
        Text beneath.
    dpi : float, default=200
        Pixels per inch of PNG.

    Returns
    -------
    part
        For :func:`page`.

    Examples
    --------
    >>> from mdal.plotting import alpha_heat_map
    >>> from mdal.report import picture
    >>> ax = alpha_heat_map([[0.8, 0.2], [0.4, 0.6]], ["clinic", "lab"])
    >>> 'alt="The clinic speaks' in picture(ax, "The clinic speaks for both").html
    True
    """
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt={alt!r} says nothing; describe the figure in a sentence")
    if not hasattr(figure, "get_figure"):
        raise TypeError(
            f"figure is of type {type(figure).__name__}; pass a matplotlib Figure or "
            "Axes"
        )
    dpi = check_number(dpi, "dpi", strict=True)
    figure = figure.get_figure(root=True)
    kinds = {
        "svg+xml": _saved(figure, "svg", dpi, ["Creator", "Date", "Format", "Type"]),
        "png": _saved(figure, "png", dpi, ["Software"]),
    }
    kind = min(kinds, key=lambda kind: len(kinds[kind]))
    width, height = (round(100 * inches) for inches in figure.get_size_inches())
    lines = [
        "<figure>",
        # On a phone, figures that shrink cannot be read: they scroll like tables.
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(alt)}">',
        f'<img alt="{escape(alt)}" width="{width}" height="{height}" '
        f'src="data:image/{kind};base64,{base64.b64encode(kinds[kind]).decode()}">',
        "</div>",
    ]
    if caption:
        lines.append(f"<figcaption>{escape(str(caption))}</figcaption>")
    return _Part("\n".join([*lines, "</figure>"]))


def _saved(figure, kind: str, dpi: float, without: list[str]) -> bytes:
    """Return a figure as a file, without what differs between two savings."""
    file = io.BytesIO()
    same = {"svg.hashsalt": "mdal", "svg.fonttype": "path", "savefig.bbox": None}
    with import_module("matplotlib").rc_context(same):
        figure.savefig(file, format=kind, dpi=dpi, metadata=dict.fromkeys(without))
    return file.getvalue()


def write_page(path, title: str, sections: Iterable, **options) -> Path:
    """Write a page to a file, which is there as a whole or not at all.

    Parameters
    ----------
    path : str or path-like
        Where to write; an existing file is replaced.
    title, sections, **options
        As in :func:`page`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mdal.report import write_page
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_page(Path(folder, "page.html"), "A page", [("", "Text.")])
    ...     path.read_text()[:15]
    '<!DOCTYPE html>'
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it first")
    write_whole(path, page(title, sections, **options).encode())
    return path
