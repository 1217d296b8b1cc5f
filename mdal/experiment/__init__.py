"""Experiments: a configuration in, records out, and tables from records alone.

:func:`run` runs the whole protocol for each method and seed of an experiment, which is
a dict or a file that :func:`read_config` reads. A configuration has its defaults
written out (:func:`resolve`) and a folder named by its hash, with one record a round;
what is there is never run again, so that an interrupted experiment goes on where it
stopped and a later change of a default makes no record wrong.
"""

from ._config import config_hash, read_config, resolve, settable_options
from ._records import read_records
from ._run import run
from ._statistics import (
    area_under_curve,
    curves,
    labels_to_reach,
    markdown,
    paired,
    table,
    with_deviation,
)

__all__ = [
    "area_under_curve",
    "config_hash",
    "curves",
    "labels_to_reach",
    "markdown",
    "paired",
    "read_config",
    "read_records",
    "resolve",
    "run",
    "settable_options",
    "table",
    "with_deviation",
]
