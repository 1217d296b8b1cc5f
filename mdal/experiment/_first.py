"""First nets, which methods share that differ only in how they pick."""

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from ..learner import CompositeActiveLearner
from ._config import config_hash

# What has no part in the first net: it is trained before anything is picked.
_AFTER_TRAINING = {"allocation", "budget", "name", "rounds", "strategy"}


def first_net(folder, config: dict, seed: int) -> Path | None:
    """Return where a first net is to be kept; None if it is nobody else's.

    Nets that are not deep are trained in no time, and an error-driven budget trains
    another one.
    """
    if config["net"]["kind"] != "composite" or config["allocation"]["name"] == "error":
        return None
    training = {k: v for k, v in config.items() if k not in _AFTER_TRAINING}
    return Path(folder) / f"{config_hash(training)}-{seed}"


def keep(learner: CompositeActiveLearner, path: Path) -> None:
    """Write a trained learner for others, which see all of it or nothing."""
    unfinished = path.with_name(f"{path.name}-{uuid4().hex}")
    learner.save(unfinished)
    with suppress(OSError):  # another process was first, with the same net
        unfinished.rename(path)


def taken_over(learner: CompositeActiveLearner, path: Path, X):
    """Return a learner with its own parameters and a net that another one trained."""
    own = learner.get_params(deep=False)
    return CompositeActiveLearner.load(path, X, **own)
