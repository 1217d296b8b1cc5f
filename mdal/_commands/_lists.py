"""Lists what there is: data sets and strategies."""

from inspect import Parameter

from ..datasets import dataset_names
from ..experiment import settable_options
from ..strategies import get_strategy, strategy_names


def add_to(commands) -> None:
    """Add the commands to a parser."""
    for name, run, what in (
        ("datasets", _datasets, "data sets, with what an experiment can set of each"),
        ("strategies", _strategies, "strategies, and how each picks samples"),
    ):
        command = commands.add_parser(
            name, help=f"list the {what}", description=f"List the {what}."
        )
        command.set_defaults(run=run)


def _datasets(options) -> int:
    for name in dataset_names():
        known = ", ".join(
            key if default is Parameter.empty else f"{key} = {default!r}"
            for key, default in settable_options(name).items()
        )
        print(f"{name}\n    {known}")
    return 0


def _strategies(options) -> int:
    width = max(map(len, strategy_names()))
    for name in strategy_names():
        summary = type(get_strategy(name)).__doc__.strip().splitlines()[0]
        print(f"{name:<{width}}  {summary}")
    return 0
