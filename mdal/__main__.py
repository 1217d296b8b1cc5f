"""The command line: ``mdal``, or ``python -m mdal``."""

import argparse
import sys

from ._version import __version__
from .budget import allocate


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status: 0, or 2 for a wrong input."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (TypeError, ValueError) as error:
        print(f"mdal {options.command}: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mdal", description="Multi-domain active learning."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "allocate",
        help="split a labelling budget between domains",
        description="Split a labelling budget between domains so that the error bound "
        "is least. Give one value for each domain, in the same order everywhere.",
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
    command.set_defaults(run=_allocate)
    return parser


def _allocate(options) -> int:
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


if __name__ == "__main__":
    sys.exit(main())
