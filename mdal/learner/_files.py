"""A learner as a folder of files without code."""

import re
import uuid
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from .. import persistence
from .._validation import check_classes
from ..net import CompositeNet
from ..streams import Rows
from ._pool import Pool
from ._rounds import Allocation, Round
from ._samples import check_samples, fingerprint, take
from ._training import bound_of, settings, trained

_LEARNER = "learner.safetensors"
_ATTEMPTS = 5
_ARRAYS = ("domains", "labels", "excluded")
_KINDS = {
    "parameters": dict,
    "others": list,
    "own_net": dict | None,
    "own_others": list,
    "net_others": list,
    "classes": np.ndarray,
    "names": np.ndarray,
    "shape": tuple | list,
    "fingerprint": str | None,
    "values": dict,
    "budget": list | dict | None,
    "history": list,
    "shallow": bool,
    "net": str | None,
}
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
    folder, pool = Path(folder), learner.pool_
    net, own = getattr(learner, "net_", None), learner.net
    shallow = net is not None and not isinstance(net, CompositeNet)
    net = None if shallow else net  # a classifier has to be trained again
    parameters = learner.get_params(deep=False)
    if parameters["classes"] is not None:
        parameters["classes"] = check_classes(parameters["classes"])
    deep = isinstance(own, CompositeNet)
    if deep:
        del parameters["net"]
    values, others = _plain(parameters)
    own_values, own_others = _plain(_parameters_set(own)) if deep else (None, [])
    header = {
        "parameters": values,
        "others": others,
        "own_net": own_values,
        "own_others": own_others,
        "net_others": [] if net is None else _plain(_parameters_set(net))[1],
        "classes": pool.classes,
        "names": _check_names(pool.names),
        "shape": pool.shape,
        "fingerprint": pool.fingerprint,
        "values": {n: getattr(learner, n) for n in _VALUES if hasattr(learner, n)},
        "budget": None if learner.budget_ is None else list(learner.budget_.items()),
        "history": [_written(each) for each in learner.history_],
        "shallow": shallow,
        "net": None if net is None else f"net-{uuid.uuid4().hex}.safetensors",
    }
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; pass a folder")
    folder.mkdir(parents=True, exist_ok=True)
    last = _net_in(folder)
    if net is not None:
        net.save(folder / header["net"])
    arrays = {name: torch.as_tensor(getattr(pool, name)) for name in _ARRAYS}
    persistence.save(folder / _LEARNER, "learner", arrays, header)
    if last is not None:
        (folder / last).unlink(missing_ok=True)


def _plain(parameters: dict) -> tuple[dict, list[str]]:
    """Return the parameters that can be written, and the names of the others."""
    values, others = {}, []
    for name, value in parameters.items():
        try:
            persistence.to_plain(value)
        except TypeError:
            others.append(name)
        else:
            values[name] = value
    return values, others


def _parameters_set(net: CompositeNet) -> dict:
    """Return the parameters of a net that may differ from the default ones."""
    defaults = vars(CompositeNet())
    return {
        name: value
        for name, value in net.get_params(deep=False).items()
        if not name.startswith("_") and value is not defaults.get(name, net)
    }


def _check_names(names):
    """Return the domains' names if they can be written."""
    try:
        persistence.to_plain(names)
    except TypeError:
        raise TypeError(
            f"domains are of type {type(names[0]).__name__}, which cannot be written "
            "to a file; use strings, numbers or tuples of them"
        ) from None
    return names


def _net_in(folder: Path) -> str | None:
    """Return the net's file that a folder names, if it can be read and has one."""
    with suppress(FileNotFoundError, ValueError, KeyError):
        return _check_file(persistence.load(folder / _LEARNER, "learner")[1]["net"])
    return None


def _check_file(name):
    """Return the name of a net's file, which is in the folder itself."""
    if name is not None and not re.fullmatch(r"net-[0-9a-f]{32}\.safetensors", name):
        raise ValueError(f"the net's file is {name!r}; pass a folder that save wrote")
    return name


def _written(each: Round) -> dict:
    values = asdict(each)
    values["by_domain"] = list(each.by_domain.items())
    return values


def load(cls, folder, X, others: dict):
    """Return the learner in a folder, with samples if they are given."""
    folder = Path(folder)
    if folder.is_file():
        raise ValueError(f"{folder} is a file; pass the folder that save wrote")
    own = {n: value for n, value in others.items() if not n.startswith("net__")}
    of_net = {
        name.removeprefix("net__"): value
        for name, value in others.items()
        if name.startswith("net__")
    }
    for attempt in range(_ATTEMPTS):
        arrays, header = persistence.load(folder / _LEARNER, "learner")
        _check_header(arrays, header, folder)
        own_net, net_settings = _given(folder, header, own, of_net)
        file, net = _check_file(header["net"]), None
        try:
            if file is not None:
                net = CompositeNet.load(folder / file, **net_settings)
            break
        except FileNotFoundError:  # somebody has saved a newer one in between
            if attempt == _ATTEMPTS - 1:
                raise
    learner = cls(**{**header["parameters"], "net": own_net, **own})
    arrays = {name: arrays[name].numpy() for name in _ARRAYS}
    known = {n: header[n] for n in ("shape", "names", "classes", "fingerprint")}
    learner.pool_ = Pool(None, **known, **arrays)
    learner.classes_, learner.domains_ = header["classes"], header["names"]
    vars(learner).update({n: v for n, v in header["values"].items() if n in _VALUES})
    budget = header["budget"]
    learner.budget_ = None if budget is None else Allocation(budget)
    learner.history_ = [
        Round(**{**each, "by_domain": dict(each["by_domain"])})
        for each in header["history"]
    ]
    if X is not None:
        X = _check_same(learner, X, folder)
        learner.pool_ = replace(learner.pool_, X=X)
    if header["shallow"]:
        net = _trained_again(learner, folder)
    if net is not None:
        learner.net_, learner.bound_ = net, bound_of(net, learner.domains_)
        learner.settings_ = settings(learner)
    return learner


def _check_header(arrays: dict, header: dict, folder: Path) -> None:
    """Raise an error if a file has not what a learner is made of."""
    if not (
        set(arrays) >= set(_ARRAYS)
        and set(header) >= set(_KINDS)
        and all(isinstance(header[name], kind) for name, kind in _KINDS.items())
    ):
        raise ValueError(
            f"{folder / _LEARNER} is not what save wrote, or damaged; pass a folder "
            "that save wrote"
        )


def _given(folder: Path, header: dict, own: dict, of_net: dict):
    """Return the untrained net, and settings of the trained one that were no values."""
    known = dict(of_net)
    if isinstance(own.get("net"), CompositeNet):
        known = {**own["net"].get_params(deep=False), **known}
    trained = {"method": own["method"], **known} if "method" in own else known
    missing = [name for name in header["others"] if name not in own]
    missing += [f"net__{name}" for name in header["own_others"] if name not in known]
    missing += [f"net__{name}" for name in header["net_others"] if name not in trained]
    if missing:
        missing = list(dict.fromkeys(missing))
        raise ValueError(
            f"{folder} was saved without {', '.join(missing)}, which cannot be written "
            f"to a file; pass load(folder, X, {missing[0]}=..., ...)"
        )
    net = None
    if header["own_net"] is not None:
        needed = {name: known[name] for name in header["own_others"]}
        net = CompositeNet(**{**header["own_net"], **needed, **of_net})
    return net, {**{name: trained[name] for name in header["net_others"]}, **of_net}


def _check_same(learner, X, folder: Path):
    """Return samples that look like those which the learner was fitted to."""
    X = check_samples(learner, X, fitted=True)
    shape = (len(learner.pool_.labels), *learner.pool_.shape)
    found = (len(X), *Rows(take(X, [0])).shape)
    if found != shape:
        raise ValueError(
            f"X has {found[0]} samples of shape {found[1:]}, but the learner "
            f"in {folder} was fitted to {shape[0]} of shape {shape[1:]}; pass "
            "the same ones"
        )
    known = learner.pool_.fingerprint
    if known is not None and fingerprint(X, len(X)) not in (None, known):
        raise ValueError(
            f"X has other values than the samples that the learner in {folder} was "
            "fitted to; pass the same ones, in the same order"
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
