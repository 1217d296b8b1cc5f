"""The protocol: rounds of training, testing and picking, resumed where they stopped."""

import time
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np
from filelock import FileLock, Timeout
from joblib import Parallel, delayed
from sklearn.utils import Bunch
from tqdm.auto import tqdm

from .._threads import computing_with
from ..budget import get_budget
from ..datasets import dataset_options, development_split, get_dataset
from ..learner import CompositeActiveLearner
from ..similarity import KernelMeanSimilarity
from ..strategies import get_strategy
from ._config import config_hash, made, new_net, resolve, seeds_of
from ._first import first_net, fitted
from ._records import (
    append,
    forget_unfinished_line,
    n_rounds_in,
    read_records,
    rounds_in,
    seed_file,
    write_config,
)

_PACKAGES = ("mdal-learn", "numpy", "scikit-learn", "scipy", "skorch", "torch")


def run(experiment: dict, folder, *, data_home=None, n_jobs=1, progress=True):
    """Run all methods of an experiment with all its seeds, and write records.

    Each run starts with the same number of random labels in each domain, the same for
    all methods. In each round a learner is trained from new weights on all rows of the
    training part and the labels so far, tested on the rows held out, and picks the next
    rows. Nothing is chosen by the rows that are tested on, and the net that is tested
    is the last one.

    Finished rounds are never repeated: after an interruption call it again. Methods
    that differ only in how they pick begin with the same net, and share it.

    Parameters
    ----------
    experiment : dict
        See :func:`resolve`.
    folder : str or path-like
        For the records: a folder for each configuration, named by its hash.
    data_home : str or path-like, default=None
        Where the files of the data set are, and the folders that an experiment names;
        None is the loader's own place, and the present folder.
    n_jobs : int, default=1
        Runs at a time, in the processes of whichever joblib backend is active.
    progress : bool, default=True
        Whether to show a bar of finished rounds.

    Returns
    -------
    list of dict
        The records of the experiment, see :func:`read_records`.

    Examples
    --------
    >>> import tempfile
    >>> from mdal.experiment import run
    >>> experiment = {
    ...     "dataset": {"name": "shifted_domains", "n_per_domain": 60},
    ...     "budget": 9, "rounds": 1, "seeds": [0],
    ...     "net": {"kind": "logistic_regression"},
    ...     "methods": {"CAL": {}, "random": {"strategy": "random"}},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = run(experiment, folder, progress=False)
    >>> [(r["name"], r["round"], r["labels"]) for r in records]
    [('CAL', 0, 9), ('CAL', 1, 18), ('random', 0, 9), ('random', 1, 18)]
    """
    configs, seeds = resolve(experiment), seeds_of(experiment)
    for config in configs:
        write_config(folder, config)
    runs = [(config, seed) for seed in seeds for config in configs]
    paths = [seed_file(folder, *each) for each in runs]
    todo = [
        each
        for each, path in zip(runs, paths, strict=True)
        if n_rounds_in(path) <= each[0]["rounds"]
    ]
    total = sum(config["rounds"] + 1 for config, _ in runs)
    with _bar(paths, total, progress), TemporaryDirectory() as first_nets:
        Parallel(n_jobs=n_jobs)(
            delayed(run_seed)(config, seed, folder, data_home, first_nets)
            for config, seed in todo
        )
    wanted = {(config_hash(config), seed) for config, seed in runs}
    return [r for r in read_records(folder) if (r["config"], r["seed"]) in wanted]


@contextmanager
def _bar(paths, total: int, shown: bool):
    """Show how many rounds are in the files, whoever writes them."""
    stop = Event()
    with tqdm(total=total, unit="round", disable=not shown) as bar:

        def watch():
            while True:
                stopped = stop.wait(0.5)
                finished = sum(map(n_rounds_in, paths))
                if finished > bar.n:
                    bar.update(finished - bar.n)
                if stopped:
                    return

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()


def run_seed(config: dict, seed: int, folder, data_home, first_nets) -> None:
    """Run what is missing of one configuration with one seed."""
    path = seed_file(folder, config, seed)
    lock = FileLock(path.with_suffix(".lock"))
    try:
        with lock.acquire(timeout=0), computing_with(config["threads"]):
            forget_unfinished_line(path)
            _rounds(config, seed, path, data_home, first_nets)
    except Timeout:
        raise RuntimeError(
            f"another process is writing {path}; wait until it has finished"
        ) from None


def _rounds(config: dict, seed: int, path, data_home, first_nets) -> None:
    """Append the rounds that are missing to a file."""
    data = _loaded(config, seed, data_home)
    X, truth, domains = (data[name][data.train] for name in ("X", "y", "domains"))
    y_mask = np.full(len(truth), None, dtype=object)
    cold = _learner(config, seed, 0).fit(X, domains, y_mask)
    rows = cold.query(config["first_budget"])
    y_mask[rows] = truth[rows]
    done = rounds_in(path)
    for record in done:
        y_mask[record["rows"]] = truth[record["rows"]]
    for number in range(len(done), config["rounds"] + 1):
        kept = None if number else first_net(first_nets, config, seed)
        given = X, domains, y_mask
        record, rows = _round(config, seed, number, data, given, kept)
        append(path, record)
        y_mask[rows] = truth[rows]


def _loaded(config: dict, seed: int, data_home):
    """Return the data: drawn with the seed unless the configuration says how."""
    options = dict(config["dataset"])
    known = dataset_options(options["name"])
    if "data_home" in known:
        options["data_home"] = data_home
    if "random_state" in known:
        options.setdefault("random_state", seed)
    if data_home is not None and "folder" in options:
        options["folder"] = Path(data_home, options["folder"])
    data = get_dataset(**options)
    if "domains" in config:
        data = _of_domains(data, config["domains"])
    return development_split(data) if config["split"] == "development" else data


def _of_domains(data, names: list):
    """Return the data with rows of some domains only to train and to test on."""
    unknown = [name for name in names if name not in data.names.tolist()]
    if unknown:
        raise ValueError(
            f"domains contains {unknown[0]!r}, which the data set does not have; it "
            f"has {data.names.tolist()}"
        )
    kept = np.isin(data.domains, names)
    parts = {part: data[part][kept[data[part]]] for part in ("train", "test")}
    return Bunch(**{**data, **parts, "names": np.unique(data.domains[kept])})


def _learner(config: dict, seed: int, number: int) -> CompositeActiveLearner:
    """Return the learner of a round, with a seed of its own."""
    state = np.random.SeedSequence([seed, number]).generate_state(1)
    similarity = config.get("similarity")
    return CompositeActiveLearner(
        new_net(config),
        method=config["method"]["name"],  # which a classifier that is not deep asks for
        strategy=made(config["strategy"], get_strategy),
        allocation=made(config["allocation"], get_budget),
        first_round=made(config["first_round"], get_strategy),
        similarity=None if similarity is None else KernelMeanSimilarity(**similarity),
        budget_per_round=config["budget"],
        random_state=int(state[0]),
    )


def _round(
    config: dict, seed: int, number: int, data, given, kept
) -> tuple[dict, list]:
    """Return the record of a round, and the rows to label for the next."""
    clock = _Clock()
    learner, trained = fitted(_learner(config, seed, number), given, kept)
    fit, test = clock.lap(), data.test
    right = learner.predict(data.X[test], data.domains[test]) == data.y[test]
    by_domain = {
        name: float(right[data.domains[test] == name].mean())
        for name in data.names.tolist()
    }
    predict, rows, budget = clock.lap(), [], None
    if number < config["rounds"]:
        rows, budget = learner.query().tolist(), dict(learner.allocate_budget())
    now = learner.history_[-1]
    record = {
        "seed": seed,
        "round": number,
        "labels": now.labels,
        "accuracy": float(np.mean(list(by_domain.values()))),
        "by_domain": by_domain,
        "spent": now.by_domain,
        "budget": budget,
        "rows": rows,
        "alpha": None if learner.alpha_ is None else learner.alpha_.round(4).tolist(),
        "bound": now.bound,
        "seconds": {
            "fit": fit if trained else None,
            "predict": predict,
            "query": clock.lap(),
        },
        "versions": {package: version(package) for package in _PACKAGES},
    }
    return record, rows


class _Clock:
    """Seconds since the last lap."""

    def __init__(self):
        self.last = time.perf_counter()

    def lap(self) -> float:
        before, self.last = self.last, time.perf_counter()
        return round(self.last - before, 2)
