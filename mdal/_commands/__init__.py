"""What people do with the library in a terminal, one file for each kind of command."""

import argparse
import sys

from .._version import __version__
from . import _allocate, _demo, _experiments, _lists, _session

_EPILOG = """examples:
  mdal demo                          see it work, in about a minute
  mdal session init --help           label samples of yours, over days
  mdal run experiment.toml --jobs 2  run an experiment, or what is missing of it
  mdal table records                 accuracies by method and round
  mdal allocate --budget 60 --weights 0.5 0.3 0.2 --spent 20 20 20
"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status: 0, or 2 for a wrong input."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (TypeError, ValueError, OSError, ImportError) as error:
        print(f"mdal {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            f"mdal {options.command}: interrupted; what is finished is kept",
            file=sys.stderr,
        )
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mdal",
        description="Multi-domain active learning: how many labels each domain gets, "
        "and which samples.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    for part in (_demo, _session, _experiments, _lists, _allocate):
        part.add_to(commands)
    return parser
