"""A learner as a folder of files without code."""

import uuid
from dataclasses import asdict, replace
from pathlib import Path

import torch

from .. import persistence
from ..net import CompositeNet
from ..streams import Rows
from ._pool import Pool
from ._rounds import Allocation, Round
from ._samples import check_samples, take
from ._training import bound_of, trained

_LEARNER = "learner.safetensors"
_ATTEMPTS = 5
_ARRAYS = ("domains", "labels", "excluded")
_VALUES = (
    "seeds_",
    "errors_",
    "alpha_",
    "n_features_in_",
    "feature_names_in_",
    "_n_features_out",
)


def save(learner, folder) -> None:
    """Write a fitted learner; the file that names the others comes last."""
    folder = Path(folder)
    net = getattr(learner, "net_", None)
    shallow = net is not None and not isinstance(net, CompositeNet)
    net = None if shallow else net  # it has to be trained again
    parameters, others = {}, []
    for name, value in learner.get_params(deep=False).items():
        if name == "net" and net is not None:
            continue  # the trained one has its parameters
        try:
            persistence.to_plain(value)
        except TypeError:
            others.append(name)
        else:
            parameters[name] = value
    own_net = None
    if net is not None and learner.net is not None:
        own_net = _plain_parameters(learner.net)
    pool = learner.pool_
    header = {
        "parameters": parameters,
        "others": others,
        "classes": pool.classes,
        "names": pool.names,
        "shape": pool.shape,
        "values": {n: getattr(learner, n) for n in _VALUES if hasattr(learner, n)},
        "budget": None if learner.budget_ is None else list(learner.budget_.items()),
        "history": [_written(each) for each in learner.history_],
        "own_net": own_net,
        "shallow": shallow,
        "net": None if net is None else f"net-{uuid.uuid4().hex}.safetensors",
    }
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; pass a folder")
    folder.mkdir(parents=True, exist_ok=True)
    last = None
    if (folder / _LEARNER).exists():
        last = persistence.load(folder / _LEARNER, "learner")[1]["net"]
    if net is not None:
        net.save(folder / header["net"])
    arrays = {name: torch.as_tensor(getattr(pool, name)) for name in _ARRAYS}
    persistence.save(folder / _LEARNER, "learner", arrays, header)
    if last is not None:
        (folder / last).unlink(missing_ok=True)


def _plain_parameters(net: CompositeNet) -> dict:
    """Return the parameters of a net that can be written; the others come with it."""
    plain = {}
    for name, value in net.get_params(deep=False).items():
        try:
            persistence.to_plain(value)
        except TypeError:
            continue
        if not name.startswith("_"):
            plain[name] = value
    return plain


def _written(each: Round) -> dict:
    values = asdict(each)
    values["by_domain"] = list(each.by_domain.items())
    return values


def load(cls, folder, X, others: dict):
    """Return the learner in a folder, with samples if they are given."""
    folder, net = Path(folder), None
    of_net = {
        name.removeprefix("net__"): value
        for name, value in others.items()
        if name.startswith("net__")
    }
    own = {n: value for n, value in others.items() if not n.startswith("net__")}
    for attempt in range(_ATTEMPTS):
        arrays, header = persistence.load(folder / _LEARNER, "learner")
        _check_others(folder, header, own)
        if header["net"] is None:
            break
        try:
            net = CompositeNet.load(folder / header["net"], **of_net)
            break
        except FileNotFoundError:  # somebody has saved a newer one in between
            if attempt == _ATTEMPTS - 1:
                raise
    learner = cls(**{**header["parameters"], **own})
    arrays = {name: arrays[name].numpy() for name in _ARRAYS}
    known = {name: header[name] for name in ("shape", "names", "classes")}
    learner.pool_ = Pool(None, **known, **arrays)
    learner.classes_, learner.domains_ = header["classes"], header["names"]
    vars(learner).update(header["values"])
    budget = header["budget"]
    learner.budget_ = None if budget is None else Allocation(budget)
    learner.history_ = [
        Round(**{**each, "by_domain": dict(each["by_domain"])})
        for each in header["history"]
    ]
    if X is not None:
        learner.pool_ = replace(learner.pool_, X=_check_same(learner, X, folder))
    if net is not None and "net" not in own and header["own_net"] is not None:
        learner.net = CompositeNet(**{**header["own_net"], **of_net})
    if header["shallow"]:
        net = _trained_again(learner, folder)
    if net is not None:
        learner.net_, learner.bound_ = net, bound_of(net, learner.domains_)
    return learner


def _check_others(folder: Path, header: dict, own: dict) -> None:
    missing = sorted(set(header["others"]) - set(own))
    if missing:
        raise ValueError(
            f"{folder} was saved without {', '.join(missing)}, which cannot be written "
            f"to a file; pass load(folder, X, {missing[0]}=..., ...)"
        )


def _check_same(learner, X, folder: Path):
    """Return samples of the number and shape that the learner was fitted to."""
    X = check_samples(learner, X, fitted=True)
    shape = (len(learner.pool_.labels), *learner.pool_.shape)
    found = (len(X), *Rows(take(X, [0])).shape)
    if found != shape:
        raise ValueError(
            f"X has {found[0]} samples of shape {found[1:]}, but the learner "
            f"in {folder} was fitted to {shape[0]} of shape {shape[1:]}; pass "
            "the same ones"
        )
    return X


def _trained_again(learner, folder: Path):
    """Return the classifier, trained with the same labels and seed as before."""
    if learner.pool_.X is None:
        raise ValueError(
            f"X is missing; {folder} has the labels of a scikit-learn classifier, "
            "which is trained again: pass load(folder, X, net=...)"
        )
    return trained(learner, learner.pool_, learner.seeds_[0], learner.pool_.labels)
