"""What an experiment is: every value that its records depend on, and a hash of them."""

import hashlib
import inspect
import json
import tomllib
from pathlib import Path

import torch
from sklearn.linear_model import LogisticRegression

from .._validation import check_count, check_option
from ..budget import get_budget
from ..datasets import dataset_options
from ..modules import SIZES, CompositeClassifier, ConditionalDiscriminator
from ..net import CompositeNet
from ..objectives import default_targets, get_objective
from ..perturbations import default_strengths
from ..similarity import KernelMeanSimilarity
from ..strategies import get_strategy
from ..svm_text import SVMText

# To be raised when the same configuration would give other records.
PROTOCOL = 2

SPLITS = ("development", "test")
_EXPERIMENT = {
    *("budget", "dataset", "domains", "first_budget", "methods", "net", "objectives"),
    *("rounds", "seeds", "split", "strategies", "threads"),
}
# Parts of methods whose parameters can be set for all methods that have them.
_SHARED = {"objectives": get_objective, "strategies": get_strategy}
_METHOD = {"allocation", "first_round", "method", "net", "strategy"}
_NET = (
    *("average_decay", "batch_size", "lr", "max_epochs", "pool_batch_size"),
    *("precision", "steps_per_epoch"),
)
_CLASSIFIERS = {"logistic_regression": LogisticRegression, "svm_text": SVMText}
_NETWORKS = {"module": CompositeClassifier, "discriminator": ConditionalDiscriminator}
# Where files are is no part of a configuration.
_PLACES = {"data_home", "download_if_missing", "return_X_y_domains", "subset"}


def read_config(path) -> dict:
    """Return the experiment that a TOML or JSON file describes.

    Experiments can share methods: ``methods_from = "methods.toml"`` takes the table
    ``methods`` of another file, by its path from this one, and ``only = [...]`` those
    of these names. What the file itself has under ``methods`` is added, and replaces
    entries of the same name.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        What :func:`resolve` takes.

    Examples
    --------
    >>> from mdal.experiment import read_config
    >>> read_config("no_such_file.toml")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no_such_file.toml does not exist; pass a TOML or JSON file
    """
    experiment = _read(path)
    shared = experiment.pop("methods_from", None)
    only = experiment.pop("only", None)
    if shared is None:
        if only is not None:
            raise ValueError(f"{path} has only, but no methods_from to take them from")
        return experiment
    for value, kind, name in ((shared, str, "methods_from"), (only, list, "only")):
        if not isinstance(value, kind | None):
            raise TypeError(f"{path} has {name}={value!r}; pass a {kind.__name__}")
    methods = _read(Path(path).parent / shared).get("methods", {})
    for name in only or ():
        if name not in methods:
            known = ", ".join(map(repr, sorted(methods)))
            raise ValueError(f"{shared} has no method {name!r}; it has {known}")
    chosen = {name: methods[name] for name in (methods if only is None else only)}
    return {**experiment, "methods": {**chosen, **experiment.get("methods", {})}}


def _read(path) -> dict:
    """Return what is in a TOML or JSON file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a TOML or JSON file")
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def resolve(experiment: dict) -> list[dict]:
    """Return one configuration for each method, with every default written out.

    Parameters
    ----------
    experiment : dict
        ``dataset``: a table with ``name`` and options of its loader. One that is split
        at random has ``random_state`` (0), so that all seeds test on the same rows; one
        that has test rows of its own is drawn with the seed of each run. ``methods``: a
        table of tables, by the name that tables and figures will show, each with
        ``method``, ``strategy``, ``allocation``, ``first_round`` (names, or tables with
        ``name`` and parameters; the defaults of the learner where they are missing)
        and ``net``. ``net``: parameters of the net for all methods; its ``kind`` is
        "composite" (a :class:`mdal.net.CompositeNet`), "logistic_regression" or
        "svm_text". A method's own ``net`` goes before it, and one of another kind takes
        its place. ``strategies`` and ``objectives``: parameters of strategies and of
        trainings (``method``) by name, for all methods that use them. ``domains``:
        names of some of the data set's domains; all if it is missing. ``budget``:
        labels in a round. ``first_budget`` (the same): in the first. ``rounds`` (5):
        after the first. ``split`` ("test"): or "development", to test on a part of the
        training rows. ``threads`` (1): of each run. ``seeds`` is no part of a
        configuration.

    Returns
    -------
    list of dict
        Plain values, from which :func:`run` runs and which ``config_hash`` hashes.

    Examples
    --------
    >>> from mdal.experiment import resolve
    >>> [config] = resolve({
    ...     "dataset": {"name": "rotating_digits"},
    ...     "budget": 60,
    ...     "methods": {"CAL": {"method": "cal"}},
    ... })
    >>> config["strategy"]
    {'name': 'grads', 'temperature': 0.5}
    >>> config["dataset"]["ranges"]
    'D6'
    """
    _check_keys(experiment, _EXPERIMENT, "the experiment")
    for name in ("budget", "dataset", "methods"):
        if name not in experiment:
            raise ValueError(f"the experiment has no {name}; add it")
    if not isinstance(experiment["methods"], dict) or not experiment["methods"]:
        raise ValueError("methods has no method; add a table for each")
    budget = check_count(experiment["budget"], "budget", minimum=1)
    common = {
        "protocol": PROTOCOL,
        "dataset": _dataset(experiment["dataset"]),
        "split": check_option(experiment.get("split", "test"), "split", SPLITS),
        "rounds": check_count(experiment.get("rounds", 5), "rounds"),
        "budget": budget,
        "first_budget": check_count(
            experiment.get("first_budget", budget), "first_budget", minimum=1
        ),
        "threads": check_count(experiment.get("threads", 1), "threads", minimum=1),
    }
    for part, known in _SHARED.items():
        for name, settings in _table(experiment, part).items():
            known(name).set_params(**_table({name: settings}, name))
    if "domains" in experiment:
        common["domains"] = _domains(experiment["domains"])
    return [
        {"name": name, **common, **_method(name, table, experiment)}
        for name, table in experiment["methods"].items()
    ]


def seeds_of(experiment: dict) -> list[int]:
    """Return the seeds of an experiment, 0 to 2 if it names none."""
    seeds = experiment.get("seeds", [0, 1, 2])
    if not isinstance(seeds, list | tuple | range) or not seeds:
        raise TypeError(f"seeds={seeds!r} is no list of seeds; pass [0, 1, 2]")
    return [check_count(seed, "seeds") for seed in seeds]


def config_hash(config: dict) -> str:
    """Return a short name for a configuration: another value, another name.

    Parameters
    ----------
    config : dict
        From :func:`resolve`.

    Returns
    -------
    str
        Twelve hexadecimal digits.

    Examples
    --------
    >>> from mdal.experiment import config_hash
    >>> config_hash({"budget": 60}) == config_hash({"budget": 61})
    False
    """
    text = json.dumps(config, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _check_keys(table, known: set, what: str) -> None:
    if not isinstance(table, dict):
        raise TypeError(f"{what} is of type {type(table).__name__}; pass a table")
    unknown = sorted(set(table) - known)
    if unknown:
        raise ValueError(
            f"{what} has an unknown entry {unknown[0]!r}; known are "
            f"{', '.join(sorted(known))}"
        )


def _named(value, what: str) -> tuple[str, dict]:
    """Return the name and the parameters in "name" or {"name": ..., ...}."""
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, dict) or "name" not in value:
        raise TypeError(f"{what}={value!r}; pass a name, or a table with a name")
    return value["name"], _without(value, {"name"})


def settable_options(dataset: str) -> dict:
    """Return the options of a data set that an experiment can set, with defaults.

    Parameters
    ----------
    dataset : str
        A name of :func:`mdal.datasets.dataset_names`.

    Returns
    -------
    dict
        Where an option has no default, ``inspect.Parameter.empty`` stands for it.

    Examples
    --------
    >>> from mdal.experiment import settable_options
    >>> settable_options("rotating_mnist")
    {'ranges': 'D6', 'flat': False}
    """
    options = _without(dataset_options(dataset), _PLACES)
    if "test_size" not in options:  # its test rows are its own; each run draws the rest
        options.pop("random_state", None)
    return options


def _dataset(value) -> dict:
    """Return the name of a data set with all options that are plain values."""
    name, given = _named(value, "dataset")
    options = settable_options(name)
    unknown = sorted(set(given) - set(options))
    if unknown:
        raise ValueError(
            f"dataset {name!r} has no option {unknown[0]!r}; known are "
            f"{', '.join(sorted(options))}"
        )
    resolved = {"name": name, **options, **given}
    missing = [k for k, v in resolved.items() if v is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"dataset {name!r} needs {missing[0]}; add it")
    if "random_state" in resolved:
        state = check_count(resolved["random_state"], "random_state")
        resolved["random_state"] = state
    return resolved


def _table(tables: dict, name: str) -> dict:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise TypeError(f"{name}={table!r}; pass a table")
    return table


def _domains(names) -> list:
    text = isinstance(names, list) and all(isinstance(n, str | int) for n in names)
    if not text or not names or len(set(names)) < len(names):
        raise ValueError(f"domains={names!r}; pass a list of different names")
    return names


def _without(options: dict, left_out: set) -> dict:
    return {k: v for k, v in options.items() if k not in left_out}


def _method(name: str, table, experiment: dict) -> dict:
    _check_keys(table, _METHOD, f"method {name!r}")
    resolved = {}
    for what, default, part in (
        ("strategy", "grads", "strategies"),
        ("first_round", "random", "strategies"),
        ("method", "cal", "objectives"),
    ):
        chosen, settings = _named(table.get(what, default), what)
        shared = experiment.get(part, {}).get(chosen, {})
        given = {"name": chosen, **shared, **settings}
        resolved[what] = _resolved(given, what, _SHARED[part])
    resolved["allocation"] = _resolved(
        table.get("allocation", "optimal"), "allocation", get_budget
    )
    if "perturb" in resolved["method"]:
        resolved["perturbations"] = default_strengths()
        resolved["targets"] = default_targets()
    net, own = _table(experiment, "net"), _table(table, "net")
    if _kind(own, default=_kind(net)) != _kind(net):
        net = {}
    net = _net({**net, **own}, resolved["method"]["name"])
    if net["kind"] == "composite":
        resolved["sizes"] = SIZES
    elif net["kind"] != "svm_text" and resolved["method"].get("learn_alpha"):
        similarity = KernelMeanSimilarity().get_params()
        resolved["similarity"] = _without(similarity, {"random_state"})
    return {**resolved, "net": net}


def _resolved(value, what: str, known) -> dict:
    """Return a name with all its parameters."""
    name, settings = _named(value, what)
    made = known(name).set_params(**settings)
    parameters = {
        key: parameter
        for key, parameter in made.get_params().items()
        if not hasattr(parameter, "get_params")  # those of a part stand beside it
    }
    parameters = _without(parameters, {"random_state"})
    return {"name": name, **dict(sorted(parameters.items()))}


def _kind(settings: dict, default: str = "composite") -> str:
    kinds = {"composite", *_CLASSIFIERS}
    return check_option(settings.get("kind", default), "kind", kinds)


def _net(settings: dict, method: str) -> dict:
    kind, settings = _kind(settings), _without(settings, {"kind"})
    if kind in _CLASSIFIERS:
        parameters = _CLASSIFIERS[kind](**settings).get_params()
        return {"kind": kind, **_without(parameters, {"random_state"})}
    defaults = {name: getattr(CompositeNet(), name) for name in _NET}
    defaults["optimizer"] = CompositeNet().optimizer.__name__
    networks = {**_NETWORKS, **get_objective(method).networks}
    for prefix, network in networks.items():
        width = inspect.signature(network).parameters.get("width")
        if width is not None:
            defaults[f"{prefix}__width"] = width.default
    others = [k for k in settings if k not in defaults and "__" not in k]
    if others:
        raise ValueError(
            f"net has an unknown entry {others[0]!r}; known are "
            f"{', '.join(sorted(defaults))}, and those with the prefixes of a net"
        )
    return {"kind": kind, **dict(sorted({**defaults, **settings}.items()))}


def new_net(config: dict):
    """Return the untrained net of a configuration."""
    kind, settings = config["net"]["kind"], _without(config["net"], {"kind"})
    if kind in _CLASSIFIERS:
        return _CLASSIFIERS[kind](**settings)
    settings["optimizer"] = getattr(torch.optim, settings["optimizer"])
    return CompositeNet(made(config["method"], get_objective), **settings)


def made(resolved: dict, known):
    """Return what a name and its parameters stand for."""
    settings = _without(resolved, {"name"})
    return known(resolved["name"]).set_params(**settings)
