"""Runs experiments, and shows their records."""

from pathlib import Path

from ..experiment import labels_to_reach, read_config, read_records, run
from ._figures import compared, shown, write_figures


def add_to(commands) -> None:
    """Add the commands to a parser."""
    command = commands.add_parser(
        "run",
        help="run an experiment, or what is missing of it",
        description="Run all methods and seeds of an experiment, and write one record "
        "for each round. Finished rounds are never repeated: after an interruption "
        "give the same command again.",
        epilog="example: mdal run experiment.toml --records records --data files "
        "--jobs 2",
    )
    command.add_argument("config", type=Path, help="a TOML or JSON file")
    command.add_argument(
        "--records", type=Path, help="folder of records; by default beside the file"
    )
    command.add_argument("--data", type=Path, help="folder of the data set's files")
    command.add_argument("--jobs", type=int, default=1, help="runs at a time")
    command.add_argument("--quiet", action="store_true", help="show no progress")
    command.set_defaults(run=_run)

    command = commands.add_parser(
        "table",
        help="show accuracies by method and round",
        description="Show a table of records: mean and standard deviation over seeds, "
        "in per cent.",
        epilog='example: mdal table records --against "Random, separate" --reach 0.8',
    )
    command.add_argument("records", type=Path, help="folder of records")
    command.add_argument(
        "--metric",
        choices=("accuracy", "worst"),
        default="accuracy",
        help="mean over domains, or the worst domain",
    )
    command.add_argument("--methods", nargs="+", help="which ones, in this order")
    command.add_argument("--against", help="compare the others with this method")
    command.add_argument(
        "--reach", type=float, help="show the labels needed for this accuracy (0 to 1)"
    )
    command.set_defaults(run=_table)

    command = commands.add_parser(
        "plot",
        help="draw the figures of an experiment",
        description="Draw learning curves, accuracies by domain, budgets, alpha and "
        "the bound as PNG files, and all of them on one page.",
        epilog="example: mdal plot records --output figures",
    )
    command.add_argument("records", type=Path, help="folder of records")
    command.add_argument("--output", type=Path, default=Path("figures"))
    command.set_defaults(run=_plot)


def _run(options) -> int:
    folder = options.records or options.config.with_suffix("")
    records = run(
        read_config(options.config),
        folder,
        data_home=options.data,
        n_jobs=options.jobs,
        progress=not options.quiet,
    )
    print(shown(records, "accuracy"))
    print(f"\nrecords: {folder}")
    return 0


def _table(options) -> int:
    records = read_records(options.records)
    print(shown(records, options.metric, options.methods))
    names = options.methods or sorted({record["name"] for record in records})
    if options.against is not None:
        print()
        for name in names:
            if name != options.against:
                print(compared(records, name, options.against, options.metric))
    if options.reach is not None:
        print()
        needed = labels_to_reach(records, options.reach, options.metric)
        for name in names:
            words = "not reached with every seed"
            if needed[name] is not None:
                words = f"{needed[name][0]:.0f} ± {needed[name][1]:.0f} labels"
            print(f"{name}, {options.reach:.0%}: {words}")
    return 0


def _plot(options) -> int:
    page = write_figures(
        read_records(options.records),
        options.output,
        "What the records say",
        f"Drawn from the records in {options.records.name}.",
    )
    print(f"figures: {options.output}\npage: {page}")
    return 0
