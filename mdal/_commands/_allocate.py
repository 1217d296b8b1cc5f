"""Splits a budget by given weights."""

from ..budget import allocate


def add_to(commands) -> None:
    """Add the command to a parser."""
    command = commands.add_parser(
        "allocate",
        help="split a labelling budget between domains",
        description="Split a labelling budget between domains so that the error bound "
        "is least. Give one value for each domain, in the same order everywhere.",
        epilog="example: mdal allocate --budget 60 --weights 0.5 0.3 0.2 "
        "--spent 20 20 20 --names shop site ward",
    )
    command.add_argument("--budget", type=int, required=True, help="labels to give out")
    command.add_argument(
        "--weights",
        type=float,
        nargs="+",
        required=True,
        help="importance of each domain: alpha's column means, or any other",
    )
    command.add_argument("--spent", type=int, nargs="+", help="labels so far")
    command.add_argument(
        "--capacity", type=int, nargs="+", help="samples left to label"
    )
    command.add_argument("--names", nargs="+", help="names of the domains")
    command.set_defaults(run=_run)


def _run(options) -> int:
    new = allocate(
        options.weights, options.budget, spent=options.spent, capacity=options.capacity
    )
    names = options.names or [str(domain) for domain in range(len(new))]
    if len(names) != len(new):
        raise ValueError(f"names has {len(names)} values for {len(new)} domains")
    width = max(map(len, names))
    for name, count in zip(names, new, strict=True):
        print(f"{name:<{width}}  {count}")
    return 0
