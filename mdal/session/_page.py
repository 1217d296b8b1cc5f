"""The page of a session: where it stands, and what rounds have bought."""

from pathlib import Path

from .. import plotting, report
from ..labels import Asked
from ..learner import Round


def write_page(session, path) -> Path:
    """Write the status of a session, and what rounds have bought, as one HTML page."""
    rounds, status = session.store.rounds(), session.status()
    where = [report.table(session.status_rows())]
    if status["open"]:
        where.append(f"{status['open']} samples of the last round are open.")
    where.append(f"{status['spent']} labels were given by people.")
    if status["budget_left"] is not None:
        where.append(f"{status['budget_left']} of the total are left.")
    sections = [("", [f"{len(session.store)} samples."]), ("Labels", where)]
    bought = [Round(**each.about["bought"]) for each in rounds]
    rows = [
        {
            "round": number,
            "labels": each.labels,
            "foreseen (%)": _percent(each.accuracy_on_new),
            "as before (%)": _percent(each.agreement),
            **{
                name.rstrip("_").replace("_", " "): f"{value:.3f}"
                for name, value in (each.bound or {}).items()
            },
        }
        for number, each in enumerate(bought)
    ]
    if rows:
        columns = {name: "" for row in rows for name in row}
        parts = [report.table([{**columns, **row} for row in rows]), _BOUGHT]
        sections.append(("What labels have bought", parts))
    if annotators := _annotators(session):
        sections.append(("Who has labelled", [report.table(annotators)]))
    sections += _pictures(session, rounds, status["by_round"])
    return report.write_page(path, f"Labelling session {session.name}", sections)


_BOUGHT = (
    "Labels are those before the round. Foreseen: new ones that the classifier before "
    "them had predicted; picked samples are difficult ones. As before: predictions "
    "that the last labels have not changed. The others are terms of the error bound."
)


def _annotators(session) -> list[dict]:
    """Return how many votes everybody has given, and when the last one."""
    rows = {}
    for vote in session.store.votes():
        row = rows.setdefault(vote["annotator"], {"votes": 0, "skipped": 0, "last": ""})
        row["votes"] += 1
        row["skipped"] += vote["label"] is None
        row["last"] = max(row["last"], vote["time"][:16].replace("T", " "))
    return [
        {"annotator": name or "(nobody named)", **row}
        for name, row in sorted(rows.items())
    ]


def _pictures(session, rounds: list[Asked], by_round: list[dict]) -> list[tuple]:
    records, spent = [], {}
    for each, labels in zip(rounds, by_round, strict=True):
        for domain, n in labels.items():
            spent[domain] = spent.get(domain, 0) + n
        records.append(
            {"name": session.name, "seed": 0, "round": each.number}
            | {"labels": sum(spent.values()), "spent": dict(spent)}
        )
    parts = []
    if records:
        words = "Labels of each round, by domain."
        figure = plotting.budgets_by_round(records, name=session.name)
        parts.append(report.picture(figure, words, caption=words))
    alpha = rounds[-1].about["alpha"] if rounds else None
    if alpha is not None:
        words = (
            "Alpha: how much the labels of a domain (columns) have to say about a "
            "domain (rows). Its column means decide the budget."
        )
        names = sorted(set(session.store.domains))
        figure = plotting.alpha_heat_map(alpha, names)
        parts.append(report.picture(figure, words, caption=words))
    return [("Where the labels go", parts)] if parts else []


def _percent(share) -> str:
    return "" if share is None else f"{100 * share:.1f}"
