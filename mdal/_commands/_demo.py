"""Shows the whole thing on data that need no download."""

from pathlib import Path

from ..experiment import run
from ._figures import compared, shown, write_figures

CAL, RANDOM = "CAL", "uniform-random"
_WORDS = (
    "Six cameras see the same digits at different angles: six domains of small images, "
    "of which a few more are labelled in each round. Composite Active Learning (CAL) "
    "decides how many labels each camera gets and which images, and trains on all "
    "cameras together; its rival labels random images, as many for each camera, and "
    "trains on the labelled ones alone. Both begin with the same labels, train the "
    "same classifier for as many steps, and are tested on images that neither has seen."
)


def experiment(rounds: int, seeds: int) -> dict:
    """Return the demo's experiment."""
    return {
        "dataset": {"name": "rotating_digits", "ranges": "D6"},
        "budget": 60,
        "rounds": rounds,
        "seeds": list(range(seeds)),
        "net": {"max_epochs": 10},
        "methods": {
            CAL: {"method": "cal", "strategy": "grads", "allocation": "optimal"},
            RANDOM: {"method": "erm", "strategy": "random", "allocation": "separate"},
        },
    }


def add_to(commands) -> None:
    """Add the command to a parser."""
    command = commands.add_parser(
        "demo",
        help="see it work on digits, in about a minute",
        description="Label digits of six cameras in rounds, with CAL and with random "
        "labels; then show a table, and write figures and a page. No download.",
        epilog="example: mdal demo --output mdal-demo --seeds 5",
    )
    command.add_argument("--output", type=Path, default=Path("mdal-demo"))
    command.add_argument("--rounds", type=int, default=2, help="after the first one")
    command.add_argument("--seeds", type=int, default=2, help="runs of each method")
    command.add_argument("--jobs", type=int, default=2, help="runs at a time")
    command.set_defaults(run=_run)


def _run(options) -> int:
    print("Six cameras, ten digits, 60 labels a round: who learns more from them?")
    records = run(
        experiment(options.rounds, options.seeds),
        options.output / "records",
        n_jobs=options.jobs,
    )
    print(f"\n{shown(records, 'accuracy', [CAL, RANDOM])}\n")
    print(compared(records, CAL, RANDOM))
    last = [r for r in records if r["name"] == CAL and r["budget"] is not None][-1:]
    for record in last:
        print("\nCAL's last split of a round's labels:")
        for domain, labels in record["budget"].items():
            print(f"  {domain} degrees  {labels:>3}")
    page = write_figures(records, options.output, "Labels for six cameras", _WORDS)
    print(f"\nfigures: {options.output}\npage: {page}")
    return 0
