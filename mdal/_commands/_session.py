"""Labelling sessions: each step can be repeated, and nothing is lost in between."""

from argparse import RawDescriptionHelpFormatter
from pathlib import Path

from .._pools import read_pool
from ..labels import RULES
from ..session import NETS, Session

_RULE = "what to do when annotators disagree (raise an error)"

_EPILOG = """a session, from the first sample to the last label:
  mdal session init reviews --data reviews.csv --domain shop --text review \\
      --classes good bad --budget 40
  mdal session query reviews              pick samples, write reviews/tasks/round-0.*
  mdal session import reviews labels.csv  what people have labelled
  mdal session status reviews             where it stands
  mdal session export reviews             all labels as CSV

Tasks come as .json for Label Studio (with label_studio_config.xml beside them), as .csv
with an empty column for labels, and as .jsonl; labels come back in the same forms.
"""


def add_to(commands) -> None:
    """Add the command, with its own commands, to a parser."""
    session = commands.add_parser(
        "session",
        help="label over days, with people and their tools",
        description="A labelling session in a folder: which samples to label next, and "
        "every label ever given. An interrupted step can be given again.",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    steps = session.add_subparsers(dest="step", required=True)
    _add_init(steps)
    for name, run, words in (
        ("query", _query, "train on the labels so far, and pick the next samples"),
        ("import", _import, "add the labels in a file, all or none"),
        ("status", _status, "show labels by domain and round"),
        ("export", _export, "write all labels as CSV"),
        ("report", _report, "write a page with tables and figures"),
    ):
        step = steps.add_parser(name, help=words, description=f"{words.capitalize()}.")
        step.add_argument("folder", type=Path, help="the session")
        step.set_defaults(run=run)
        if name == "query":
            step.add_argument("--n", type=int, help="labels in this round")
            step.add_argument(
                "--new-round",
                action="store_true",
                help="begin a new round though samples of the last one are open",
            )
            step.add_argument("--images", type=Path, help="where image files are now")
        elif name == "import":
            step.add_argument("file", type=Path, help=".json, .jsonl or .csv")
            step.add_argument(
                "--annotator", default="", help="who, where the file does not say"
            )
        elif name in ("export", "report"):
            step.add_argument("--output", type=Path, help="by default in the folder")
        if name == "export":
            step.add_argument(
                "--votes", action="store_true", help="every vote ever given instead"
            )
        if name != "import":
            step.add_argument("--rule", choices=RULES, help=_RULE)


def _add_init(steps) -> None:
    init = steps.add_parser(
        "init",
        help="make a session of a table of samples",
        description="Make a session. The table (CSV or Parquet) has a column with ids "
        "and one with domains. People see texts or images of it; the learner sees "
        "columns of numbers, an array, the words of texts, or small images.",
        epilog="example: mdal session init birds --data birds.csv --domain site "
        "--image file --classes owl wren --budget 50",
    )
    init.add_argument("folder", type=Path, help="where; made if it is not there")
    init.add_argument("--data", type=Path, required=True, help="the table")
    init.add_argument("--id", default="id", help="its column of ids (id)")
    init.add_argument("--domain", default="domain", help="of domains (domain)")
    init.add_argument("--label", help="of labels that are known already")
    init.add_argument("--text", help="of texts to show")
    init.add_argument("--image", help="of images to show: files below its folder, URLs")
    init.add_argument(
        "--size", type=int, default=32, help="pixels that images get (32)"
    )
    init.add_argument("--features", nargs="+", help="of numbers to learn from")
    init.add_argument(
        "--array",
        type=Path,
        help="a .npy file in the table's order, to learn from; by default the words of "
        "texts, small images, or all columns of numbers",
    )
    init.add_argument("--classes", nargs="+", help="all classes; by default any label")
    init.add_argument("--name", help="by default that of the folder")
    init.add_argument("--budget", type=int, default=20, help="labels in a round (20)")
    init.add_argument("--total", type=int, help="labels in all; rounds end there")
    init.add_argument("--strategy", default="grads", help="mdal strategies lists them")
    init.add_argument("--allocation", default="optimal", help="optimal, separate, ...")
    init.add_argument(
        "--method",
        default="auto",
        help="what a net is trained for (auto: cal, with consistency for images)",
    )
    init.add_argument("--net", choices=NETS, default="composite")
    init.add_argument("--max-epochs", type=int, default=30, help="of the net (30)")
    init.add_argument("--rule", choices=RULES, default="raise", help=_RULE)
    init.add_argument("--threads", type=int, help="that compute (all)")
    init.add_argument("--seed", type=int, default=0)
    init.set_defaults(run=_init)


_OF_THE_TABLE = ("id", "domain", "label", "text", "image", "size", "features", "array")
_OF_THE_SESSION = (
    *("classes", "name", "budget", "total", "strategy", "allocation", "method"),
    *("net", "max_epochs", "rule", "threads", "seed"),
)


def _init(options) -> int:
    chosen = vars(options)
    pool = read_pool(options.data, **{name: chosen[name] for name in _OF_THE_TABLE})
    Session.create_from(
        options.folder,
        pool,
        images=options.data.resolve().parent,
        **{name: chosen[name] for name in _OF_THE_SESSION},
    )
    domains = sorted(set(pool.domains))
    print(f"{len(pool.ids)} samples of {len(domains)} domains: {', '.join(domains)}")
    print(f"the learner sees arrays of shape {pool.X.shape[1:]}", end="")
    print(f"; people see, first: {pool.shown[0][:80]}" if pool.shown[0] else "")
    print(f"session: {options.folder}\nnext: mdal session query {options.folder}")
    return 0


def _query(options) -> int:
    settings = {"rule": options.rule, "images": options.images}
    with Session(options.folder, **settings) as session:
        before = len(session.store.rounds())
        labels = sum(session.status()["labelled"].values())
        print(f"{labels} labels so far; picking the next samples ...", flush=True)
        asked = session.query(options.n, new_round=options.new_round)
        if not asked.rows:
            left = session.status()["budget_left"]
            if left is not None and left <= 0:
                print("the total is spent; give --n to go on")
            else:
                print("everything is labelled or skipped; there is nothing to pick")
            return 0
        if len(session.store.rounds()) == before:
            left = len(session.open_rows(asked))
            print(
                f"{left} of the {len(asked.rows)} samples of round {asked.number} are "
                "open: label them and import the labels, or give --new-round to go on "
                "without"
            )
        else:
            print(f"round {asked.number}:")
            for domain, n in asked.about["budget"].items():
                print(f"  {domain}  {n}")
        tasks = options.folder / "tasks" / f"round-{asked.number}"
        print(f"tasks: {tasks}.json (Label Studio), .csv, .jsonl")
    return 0


def _import(options) -> int:
    with Session(options.folder) as session:
        before = sum(map(len, session.store.standing().values()))
        new = session.add_file(options.file, annotator=options.annotator)
        changed = new - sum(map(len, session.store.standing().values())) + before
        rounds = session.store.rounds()
        left = len(session.open_rows(rounds[-1])) if rounds else 0
    print(f"{new} new votes; {left} samples of the last round are open")
    if not new:
        print(
            "what the file says is known, or this very file was imported before: who "
            "returns to an earlier opinion has to give its time"
        )
    if changed:
        print(
            f"{changed} of them take the place of earlier votes by the same annotator: "
            "if others have labelled, say who with --annotator"
        )
    return 0


def _status(options) -> int:
    with Session(options.folder, rule=options.rule) as session:
        print(_aligned(session.status_rows()))
        status = session.status()
    print(f"\n{status['open']} samples of the last round are open")
    if any(status["disputed"].values()):
        print("annotators disagree on some: choose a --rule, or import ground truth")
    print(f"{status['spent']} labels were given by people", end="")
    left = status["budget_left"]
    print("" if left is None else f"; {left} of the total are left")
    if status["bought"] is not None:
        print(f"\nat the last query:\n{status['bought']}")
    return 0


def _aligned(rows: list[dict]) -> str:
    """Return a table as text: names on the left, numbers on the right."""
    lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if not n else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _export(options) -> int:
    output = options.output or options.folder / "exported.csv"
    with Session(options.folder, rule=options.rule) as session:
        number = session.export(output, votes=options.votes)
    print(f"{number} {'votes' if options.votes else 'labels'}: {output}")
    return 0


def _report(options) -> int:
    output = options.output or options.folder / "report.html"
    with Session(options.folder, rule=options.rule) as session:
        print(f"page: {session.write_report(output)}")
    return 0
