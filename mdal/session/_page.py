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
    if status["budget_left"] is not None:
        where.append(f"{status['budget_left']} labels of the budget are left.")
    sections = [("", [f"{len(session.store)} samples."]), ("Labels", where)]
    bought = [Round(**each.about["bought"]) for each in rounds]
    rows = [
        {
            "round": number,
            "labels before it": each.labels,
            "new labels foreseen (%)": _percent(each.accuracy_on_new),
            "predictions as before (%)": _percent(each.agreement),
        }
        for number, each in enumerate(bought)
    ]
    if rows:
        sections.append(("What labels have bought", [report.table(rows)]))
    sections += _pictures(session, rounds)
    return report.write_page(path, f"Labelling session {session.name}", sections)


def _pictures(session, rounds: list[Asked]) -> list[tuple]:
    records, spent = [], {}
    for each in rounds:
        for domain, n in each.about["budget"].items():
            spent[domain] = spent.get(domain, 0) + n
        records.append(
            {"name": session.name, "seed": 0, "round": each.number}
            | {"labels": sum(spent.values()), "spent": dict(spent)}
        )
    parts = []
    if records:
        words = "Samples asked for in each round, by domain."
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
