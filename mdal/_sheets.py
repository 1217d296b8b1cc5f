"""Sheets that people and their spreadsheets write: CSV, checked as a whole."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path


def read_sheet(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and rows of a CSV file; commas or semicolons, in UTF-8."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error}); save it so") from None
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    try:
        lines = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
        names, *rows = [line for line in lines if line] or [[]]
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from None
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{path} needs a first line with a different name per column")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise ValueError(
                f"{path}, row {number}, has {len(row)} cells for {len(names)} columns"
            )
    return names, [dict(zip(names, row, strict=True)) for row in rows]


def sheet(rows: Sequence[dict], columns: Sequence[str]) -> str:
    """Return rows as CSV in which no cell is a formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _no_formula(row.get(name)) for name in columns})
    written = text.getvalue()
    # By this mark spreadsheets know that it is UTF-8.
    return written if written.isascii() else f"\ufeff{written}"


def _no_formula(value):
    """Return a cell that a spreadsheet takes for text, or for a number."""
    return f"'{value}" if isinstance(value, str) and is_formula(value) else value


def check_name(value, what: str) -> str:
    """Return a name that every tool can keep: printable, and no formula."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r:.80}; pass a string")
    if not value.strip() or not value.isprintable():
        raise ValueError(f"{what} is {value!r:.80}; pass a printable name")
    if is_formula(value):
        raise ValueError(
            f"{what} is {value!r:.80}, which a spreadsheet would run as a formula; "
            "let it begin with a letter or a digit"
        )
    return value


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet would run a text."""
    return text[:1] in ("=", "+", "-", "@", "\t", "\r") and not is_number(text)


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
