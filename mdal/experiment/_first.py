"""First nets, which methods share that differ only in how they pick."""

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from ..learner import CompositeActiveLearner
from ._config import config_hash

# What has no part in the first net: it is trained before anything is picked.
_AFTER_TRAINING = {"allocation", "name", "strategy"}


def first_net(folder, config: dict, seed: int) -> Path | None:
    """Return where a first net is to be kept; None if it is not to be shared.

    Nets that are not deep are trained in no time, and with an error-driven budget
    another one is trained as well.
    """
    if config["net"]["kind"] != "composite" or config["allocation"]["name"] == "error":
        return None
    training = {k: v for k, v in config.items() if k not in _AFTER_TRAINING}
    return Path(folder) / f"{config_hash(training)}-{seed}"


def fitted(learner: CompositeActiveLearner, given: tuple, kept: Path | None):
    """Return a fitted learner; its net may be one that another method has trained.

    Parameters
    ----------
    learner : CompositeActiveLearner
        With the parameters that it is to have.
    given : tuple
        What to fit it to: X, domains and y_mask.
    kept : Path or None
        Where the net is, or will be for others.

    Returns
    -------
    learner : CompositeActiveLearner
    trained : bool
        Whether it was trained here.
    """
    if kept is not None and kept.exists():
        own = learner.get_params(deep=False)
        return CompositeActiveLearner.load(kept, given[0], **own), False
    learner.fit(*given)
    # On another machine, or after the end of the experiment, there is no such folder.
    if kept is not None and kept.parent.is_dir():
        _keep(learner, kept)
    return learner, True


def _keep(learner: CompositeActiveLearner, path: Path) -> None:
    """Write a trained learner for others, which see all of it or nothing.

    Where that fails, the disk is full, or another process was first with the same net:
    the others then train one themselves, or have that one.
    """
    unfinished = path.with_name(f"{path.name}-{uuid4().hex}")
    with suppress(OSError):
        learner.save(unfinished)
        unfinished.rename(path)
