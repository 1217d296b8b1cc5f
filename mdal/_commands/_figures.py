"""Pictures and a page of an experiment, from its records alone."""

from pathlib import Path

from .. import plotting, report
from ..experiment import area_under_curve, markdown, paired, table, with_deviation

_DPI = 130


def write_figures(records: list[dict], folder: Path, title: str, words: str) -> Path:
    """Write every figure as PNG and all of them as one page; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for name, figure, caption in _figures(records):
        figure.get_figure(root=True).savefig(folder / f"{name}.png", dpi=_DPI)
        pictures[name] = report.picture(figure, caption, caption=caption)
    curves, domains = pictures.pop("curves"), pictures.pop("domains")
    sections = [
        ("", words),
        ("Accuracy", [_table(records), *_comparison(records), curves]),
        ("By domain", domains),
    ]
    if pictures:
        sections.append(("Where the labels went, and why", pictures.values()))
    return report.write_page(folder / "index.html", title, sections)


def _figures(records: list[dict]):
    """Yield names, figures and what they show; of alpha only where there is one."""
    yield (
        "curves",
        plotting.learning_curves(records),
        "Accuracy by labels, for each method.",
    )
    yield (
        "domains",
        plotting.accuracy_by_domain(records),
        "Accuracy in each domain after the last round, for each method.",
    )
    name = _with_alpha(records)
    if name is None:
        return
    yield (
        "budgets",
        plotting.budgets_by_round(records, name=name),
        f"New labels of {name} in each round, by domain.",
    )
    yield (
        "alpha",
        plotting.alpha_by_round(records, name=name),
        f"Alpha of {name} in each round: how much the labels of a domain (columns) "
        "have to say about a domain (rows). Its column means decide the next budget.",
    )
    if any(r["name"] == name and r["bound"] is not None for r in records):
        yield (
            "bound",
            plotting.bound_by_round(records, name=name),
            f"The terms of the error bound of {name} by round, and its accuracy.",
        )


def _with_alpha(records: list[dict]) -> str | None:
    """Return the best method whose budget follows alpha."""
    weighed = {
        record["name"]
        for record in records
        if record["alpha"] is not None
        and any(max(row) - min(row) > 1e-3 for row in record["alpha"])
    }
    ranked = [row["method"] for row in table(records) if row["method"] in weighed]
    return ranked[0] if ranked else None


def _table(records: list[dict]):
    rows, areas = table(records), area_under_curve(records)
    cells = [
        {
            (f"{key} labels" if isinstance(key, int) else key): (
                with_deviation(value, row["seeds"])
                if isinstance(value, tuple)
                else value
            )
            for key, value in {**row, "area": areas[row["method"]]}.items()
        }
        for row in rows
    ]
    header = list(dict.fromkeys(key for row in cells for key in row))
    caption = (
        "Accuracy in per cent, mean over domains; mean ± standard deviation over "
        "seeds. The average is over rounds, the area that under the learning curve."
    )
    return report.table(cells, header=header, caption=caption)


def _comparison(records: list[dict]) -> list[str]:
    """Return a sentence about the first two methods, if there are two."""
    names = [row["method"] for row in table(records)]
    return [] if len(names) < 2 else [compared(records, *names[:2])]


def compared(records: list[dict], first: str, second: str, metric="accuracy") -> str:
    """Return a sentence about two methods."""
    found = paired(records, first, second, metric)
    spread = ""
    if found["error"] is not None:
        spread = f" ± {found['error']:.1f} (standard error, p = {found['p']:.2g})"
    return (
        f"{first} against {second}, averaged over rounds: {found['difference']:+.1f}"
        f"{spread} points, over {found['seeds']} seeds."
    )


def shown(records: list[dict], metric: str, names=None) -> str:
    """Return the table of an experiment as text."""
    return markdown(table(records, metric, names))
