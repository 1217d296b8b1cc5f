"""A session in a folder: rounds, tasks and labels."""

import hashlib
import io
import json
import uuid
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from .._atomic import remove_unfinished, write_whole
from .._pools import NewPool, read_array
from .._sheets import check_name, sheet
from .._threads import computing_with
from .._validation import check_count, check_option
from ..exchange import (
    Task,
    label_studio_config,
    label_studio_tasks,
    read_votes,
    task_lines,
    task_sheet,
)
from ..labels import RULES, Asked, LabelStore, Vote
from ..learner import CompositeActiveLearner, Round
from ..net import CompositeNet
from ._page import write_page
from ._shown import check_shown, drawn, embedded

_STORE, _SAMPLES, _LEARNER, _TASKS = "labels.sqlite", "samples.npy", "learner", "tasks"
_GIVEN = "given"  # the annotator of labels that are known from the start
NETS = ("composite", "logistic_regression")


class Session:
    """A labelling session in a folder.

    Make a new one with :meth:`create`; the constructor opens one. As long as it is
    open, no other process can.

    Parameters
    ----------
    folder : str or path-like
        The folder.
    rule : {"raise", "majority", "latest", "leave"}, default=None
        If annotators disagree, see :meth:`mdal.labels.LabelStore.y_mask`. None is what
        the session was made with.
    images : str or path-like, default=None
        The folder to which addresses of images refer; None is what the session was
        made with.

    Attributes
    ----------
    store : mdal.labels.LabelStore
        All labels, and the rounds.
    settings : dict
        What the session was made with, and the above.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from mdal.labels import Vote
    >>> from mdal.session import Session
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> ids, domains = [f"s{i}" for i in range(60)], ["shop", "ward"] * 30
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Session.create(pathlib.Path(folder, "mine"), X, ids, domains,
    ...                    classes=["no", "yes"], budget=6, net="logistic_regression")
    ...     with Session(pathlib.Path(folder, "mine")) as session:
    ...         for _ in range(2):
    ...             asked = session.query()
    ...             _ = session.store.add(
    ...                 Vote(f"s{row}", "yes" if X[row, 0] > 0 else "no", "Ann")
    ...                 for row in asked.rows)
    ...         sum(session.status()["labelled"].values())
    12
    """

    def __init__(self, folder, *, rule=None, images=None):
        self.folder = Path(folder)
        if not (self.folder / _STORE).is_file():
            raise FileNotFoundError(
                f"{folder} has no session; make one with mdal session init"
            )
        self.store = LabelStore(self.folder / _STORE)
        try:
            self.settings = _check_whole(self.store)
        except ValueError:
            self.close()
            raise
        if rule is not None:
            self.settings["rule"] = check_option(rule, "rule", RULES)
        if images is not None:
            self.settings["images"] = str(images)
        for name in (_STORE, _SAMPLES):  # nobody else is writing now
            remove_unfinished(self.folder / name)

    @classmethod
    def create(
        cls,
        folder,
        X,
        ids,
        domains,
        *,
        classes=None,
        labels=None,
        shown=None,
        kind="features",
        images="",
        name=None,
        budget=20,
        total=None,
        strategy="grads",
        allocation="optimal",
        method="auto",
        net="composite",
        max_epochs=30,
        rule="raise",
        threads=None,
        seed=0,
    ) -> None:
        """Make the folder of a new session.

        Parameters
        ----------
        folder : str or path-like
            Where; it must have no session yet.
        X : array-like of shape (n_samples, ...)
            Samples, as the learner is to see them.
        ids, domains : sequence of str
            Of each sample.
        classes : sequence of str, default=None
            All classes; None is any.
        labels : sequence of (str or None), default=None
            Labels that are known already. They count as ground truth.
        shown : sequence of str, default=None
            What people see of each sample.
        kind : {"features", "text", "image"}, default="features"
            What that is. Images without an address are drawn from X.
        images : str or path-like, default=""
            The folder to which addresses of images refer.
        name : str, default=None
            Of the session; None is the folder's.
        budget : int, default=20
            Labels in a round.
        total : int, default=None
            Labels that people are to give in all; None is no limit. Rounds end where it
            is spent.
        strategy, allocation, method : str
            As of :class:`mdal.CompositeActiveLearner`.
        net : {"composite", "logistic_regression"}, default="composite"
            What is trained.
        max_epochs : int, default=30
            How long, for a composite net.
        rule : {"raise", "majority", "latest", "leave"}, default="raise"
            If annotators disagree, see :meth:`mdal.labels.LabelStore.y_mask`.
        threads : int, default=None
            That compute, in every round: sums depend on it a little, and so may picks.
            None is those that the machine has now.
        seed : int, default=0
            Where all randomness comes from.
        """
        folder = Path(folder)
        if (folder / _STORE).exists():
            raise FileExistsError(f"{folder} has a session already; choose another")
        X = np.ascontiguousarray(X, dtype=np.float32)
        if X.ndim < 2 or len(X) != len(ids) or not np.isfinite(X).all():
            raise ValueError(
                f"X has shape {X.shape} for {len(ids)} ids; pass finite numbers, with "
                "one sample for each id"
            )
        settings = {
            "name": check_name(folder.resolve().name if name is None else name, "name"),
            "kind": check_option(kind, "kind", {"features", "text", "image"}),
            "images": str(images),
            "budget": check_count(budget, "budget", minimum=1),
            "total": None if total is None else check_count(total, "total", minimum=1),
            "strategy": strategy,
            "allocation": allocation,
            "method": method,
            "net": check_option(net, "net", NETS),
            "max_epochs": check_count(max_epochs, "max_epochs", minimum=1),
            "rule": check_option(rule, "rule", RULES),
            "threads": check_count(threads or torch.get_num_threads(), "threads"),
            "seed": check_count(seed, "seed"),
            "token": uuid.uuid4().hex[:8],
        }
        content = io.BytesIO()
        np.save(content, X, allow_pickle=False)
        settings["sha256"] = hashlib.sha256(content.getvalue()).hexdigest()
        # What is wrong with the settings is to be said now, not at a later query.
        check_shown(X, settings, shown)
        nothing = np.full(len(X), None)
        _learner(settings, classes, 0).fit(X, np.array(domains, dtype=object), nothing)
        folder.mkdir(parents=True, exist_ok=True)
        samples = folder / _SAMPLES
        if samples.exists() and samples.read_bytes() != content.getvalue():
            raise FileExistsError(
                f"{samples} is another file; remove it, or choose another folder"
            )
        write_whole(samples, content.getvalue())
        known = [] if labels is None else zip(ids, labels, strict=True)
        try:
            LabelStore.create(
                folder / _STORE,
                ids,
                domains,
                classes=classes,
                shown=shown,
                votes=[
                    Vote(id, y, _GIVEN, None, True) for id, y in known if y is not None
                ],
                about=settings,
            )
        except BaseException:
            if not (folder / _STORE).exists():
                samples.unlink()
            raise

    @classmethod
    def create_from(cls, folder, pool: NewPool, **settings) -> None:
        """Make the folder of a new session from a pool that was read from a file."""
        parts = pool._asdict()
        cls.create(folder, parts.pop("X"), parts.pop("ids"), **parts, **settings)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Close the session, for others to open."""
        self.store.close()

    @property
    def name(self) -> str:
        """The session's name."""
        return self.settings["name"]

    @property
    def token(self) -> str:
        """What is in the session's tasks: its name, and what no other session has."""
        return f"{self.name} {self.settings['token']}"

    def samples(self) -> NDArray:
        """Return the samples, as the learner sees them.

        Returns
        -------
        ndarray of float32
        """
        path = self.folder / _SAMPLES
        X = read_array(path)
        if hashlib.sha256(path.read_bytes()).hexdigest() != self.settings["sha256"]:
            raise ValueError(
                f"{path} is not what the session was made with; restore it from a copy"
            )
        return np.array(X)

    def labels(self) -> NDArray:
        """Return the label of each sample by the session's rule, None without one.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.store.y_mask(self.settings["rule"])

    def query(self, n=None, *, new_round=False) -> Asked:
        """Fit the learner, and pick the samples of the next round.

        As long as samples of the last round have no vote, they are returned again.

        Parameters
        ----------
        n : int, default=None
            Labels in the round; None is the session's budget, or what is left of the
            total.
        new_round : bool, default=False
            Whether to begin a new round even so. What is open may be picked again.

        Returns
        -------
        Asked
            Its tasks are in the folder ``tasks``. Without rows if everything is
            labelled, or the total is spent.
        """
        rounds = self.store.rounds()
        if rounds and not new_round and self.open_rows(rounds[-1]):
            self.write_tasks(rounds[-1], replace=False)
            return rounds[-1]
        answered = self.store.answered()
        asked = min(self._wanted(n), int((~answered).sum()))
        if asked == 0:
            return Asked(len(rounds), [], [], {}, "")
        X, domains, labels = self.samples(), self.store.domains, self.labels()
        learner = self._last_learner(X, len(rounds))
        # What was skipped, or is disputed, was looked at: it is not asked for again.
        unlabelled = np.array([label is None for label in labels], dtype=bool)
        with computing_with(self.settings["threads"]):
            learner.fit(X, domains, labels, exclude=answered & unlabelled)
            rows, predictions = learner.query(asked).tolist(), [None] * asked
            if hasattr(learner, "net_"):
                predictions = learner.predict(X[rows], domains[rows]).tolist()
        about = {
            "budget": dict(sorted(Counter(domains[rows]).items())),
            "bought": _plain(asdict(learner.history_[-1])),
            "alpha": _plain(getattr(learner, "alpha_", None)),
        }
        self._shown(rows)  # what cannot be shown is to be said before it is asked for
        learner.save(self.folder / _LEARNER)
        self.store.add_round(rows, predictions, about=about)
        new = self.store.rounds()[-1]
        self.write_tasks(new)
        return new

    def _wanted(self, n) -> int:
        """Return the number of labels in the next round."""
        if n is not None:
            return check_count(n, "n", minimum=1)
        left = self.status()["budget_left"]
        budget = self.settings["budget"]
        return budget if left is None else max(min(budget, left), 0)

    def _last_learner(self, X, number: int) -> CompositeActiveLearner:
        """Return the learner of a round, which remembers the last one if it can."""
        new = _learner(self.settings, self.store.classes, number)
        # What there is before the first round is what a kill has left of it.
        if number == 0 or not (self.folder / _LEARNER).is_dir():
            return new
        try:
            others = {} if isinstance(new.net, CompositeNet) else {"net": new.net}
            last = CompositeActiveLearner.load(self.folder / _LEARNER, X, **others)
        except Exception as error:  # whatever a damaged file leads to
            warnings.warn(
                f"the learner of the last round cannot be read ({error}); this round "
                "is not compared with it, and nothing else is lost",
                stacklevel=3,
            )
            return new
        # What the session says counts, whatever the file says.
        return last.set_params(**new.get_params(deep=False))

    def open_rows(self, asked: Asked) -> list[int]:
        """Return those rows of a round that nobody has labelled or skipped.

        Parameters
        ----------
        asked : Asked
            The round.

        Returns
        -------
        list of int
        """
        answered = self.store.answered()
        return [row for row in asked.rows if not answered[row]]

    def tasks(self, asked: Asked, *, embedded=False) -> list[Task]:
        """Return the tasks of a round.

        Parameters
        ----------
        asked : Asked
            The round.
        embedded : bool, default=False
            Whether images are to be in the tasks themselves, and not their addresses.

        Returns
        -------
        list of Task
        """
        shown = self._shown(asked.rows) if embedded else self.store.shown(asked.rows)
        return [
            Task(
                self.store.ids[row], self.store.domains[row], asked.number, rank, *rest
            )
            for rank, (row, *rest) in enumerate(
                zip(asked.rows, shown, asked.predictions, strict=True), start=1
            )
        ]

    def _shown(self, rows) -> list[str]:
        shown = self.store.shown(rows)
        if self.settings["kind"] != "image":
            return shown
        X = self.samples() if "" in shown else None
        return [
            drawn(X[row]) if not text else embedded(text, self.settings["images"])
            for row, text in zip(rows, shown, strict=True)
        ]

    def write_tasks(self, asked: Asked, *, replace=True) -> None:
        """Write the tasks of a round, in every form, to the folder ``tasks``.

        Parameters
        ----------
        asked : Asked
            The round.
        replace : bool, default=True
            Whether to write what is there already: people may have filled it in.
        """
        folder = self.folder / _TASKS
        folder.mkdir(exist_ok=True)
        tasks, classes = self.tasks(asked), self.store.classes
        made = label_studio_tasks(
            self.tasks(asked, embedded=True), session=self.token, classes=classes
        )
        name = f"round-{asked.number}"
        for path, text in (
            (
                folder / "label_studio_config.xml",
                label_studio_config(self.settings["kind"], classes),
            ),
            (folder / f"{name}.json", json.dumps(made, allow_nan=False, indent=1)),
            (
                folder / f"{name}.jsonl",
                task_lines(
                    tasks,
                    session=self.token,
                    kind=self.settings["kind"],
                    classes=classes,
                ),
            ),
            (folder / f"{name}.csv", task_sheet(tasks, session=self.token)),
        ):
            if replace or not path.exists():
                write_whole(path, text.encode())

    def add_file(self, path, *, annotator: str = "") -> int:
        """Add the votes in a file, all or none; return how many of them are new.

        A file that was added before adds nothing.

        Parameters
        ----------
        path : str or path-like
            See :func:`mdal.exchange.read_votes`.
        annotator : str, default=""
            Who has labelled, where the file does not say.

        Returns
        -------
        int
        """
        votes = read_votes(path, session=self.token, annotator=annotator)
        content = hashlib.sha256(f"{annotator}\n".encode() + Path(path).read_bytes())
        return self.store.add(votes, source=Path(path).name, digest=content.hexdigest())

    def status(self) -> dict:
        """Return where the session stands.

        Returns
        -------
        dict
            ``labelled``, ``skipped``, ``disputed`` and ``left`` by domain, the labels
            of each round in ``by_round``, ``rounds``, ``open`` (of the last round),
            ``spent`` (labels that people gave), ``budget_left`` (of the total, or
            None), and ``bought``: a :class:`mdal.learner.Round` with what the
            labels before the last query have bought, or None.
        """
        rule = self.settings["rule"]
        labels = self.store.y_mask("leave" if rule == "raise" else rule)
        labelled = np.array([label is not None for label in labels], dtype=bool)
        skipped, answered = self.store.skipped(), self.store.answered()
        rounds = self.store.rounds()
        names = sorted(set(self.store.domains))

        def by_domain(mask) -> dict:
            return {d: int((mask & (self.store.domains == d)).sum()) for d in names}

        by_round, standing = [], self.store.standing()
        round_of = {row: votes[-1].round for row, votes in standing.items()}
        for each in rounds:
            here = np.zeros(len(self.store), dtype=bool)
            here[[row for row, number in round_of.items() if number == each.number]] = 1
            by_round.append(by_domain(here & labelled))
        total = self.settings["total"]
        given = [any(v.annotator != _GIVEN for v in standing[r]) for r in standing]
        spent = int(labelled[np.array(list(standing), dtype=int)[given]].sum())
        return {
            "labelled": by_domain(labelled),
            "skipped": by_domain(skipped),
            "disputed": by_domain(answered & ~labelled & ~skipped),
            "left": by_domain(~answered),
            "by_round": by_round,
            "rounds": len(rounds),
            "open": len(self.open_rows(rounds[-1])) if rounds else 0,
            "spent": spent,
            "budget_left": None if total is None else total - spent,
            "bought": Round(**rounds[-1].about["bought"]) if rounds else None,
        }

    def status_rows(self) -> list[dict]:
        """Return the status as rows of a table, one for each domain.

        Returns
        -------
        list of dict
        """
        status = self.status()
        names = ("labelled", "skipped", "disputed", "left")
        parts = {
            part: status[part]
            for part in names
            if part != "disputed" or any(status[part].values())
        }
        parts |= {f"round {n}": each for n, each in enumerate(status["by_round"])}
        rows = [
            {"domain": domain, **{name: part[domain] for name, part in parts.items()}}
            for domain in status["labelled"]
        ]
        total = {name: sum(part.values()) for name, part in parts.items()}
        return [*rows, {"domain": "all", **total}]

    def export(self, path, *, votes: bool = False) -> int:
        """Write all labels as CSV, with those who gave them; return their number.

        Parameters
        ----------
        path : str or path-like
            Where.
        votes : bool, default=False
            Whether to write every vote ever given, instead of one label a sample.

        Returns
        -------
        int
        """
        if votes:
            rows = self.store.votes()
            names = ("id", "domain", "label", "annotator", "time", "ground_truth")
            text = sheet(rows, (*names, "round", "source"))
            write_whole(Path(path), text.encode())
            return len(rows)
        standing, labels = self.store.standing(), self.labels()
        rounds = {row: each.number for each in self.store.rounds() for row in each.rows}
        rows = [
            {
                "id": self.store.ids[row],
                "domain": self.store.domains[row],
                "label": labels[row],
                "annotators": ", ".join(
                    sorted(v.annotator for v in votes if v.label == labels[row])
                ),
                "round": rounds.get(row),
            }
            for row, votes in sorted(standing.items())
            if labels[row] is not None
        ]
        columns = ("id", "domain", "label", "annotators", "round")
        write_whole(Path(path), sheet(rows, columns).encode())
        return len(rows)

    def write_report(self, path) -> Path:
        """Write the status, and what rounds have bought, as one HTML page.

        Parameters
        ----------
        path : str or path-like
            Where.

        Returns
        -------
        Path
        """
        return write_page(self, path)


_SETTINGS = {
    **dict.fromkeys(("name", "kind", "images", "strategy", "allocation"), str),
    **dict.fromkeys(("method", "net", "rule", "sha256", "token"), str),
    **dict.fromkeys(("budget", "max_epochs", "threads", "seed"), int),
    "total": int | None,
}


def _check_whole(store: LabelStore) -> dict:
    """Return the settings of a session, if they and its rounds are all there."""
    settings, rounds = store.about, [each.about for each in store.rounds()]
    if not (
        set(settings) >= set(_SETTINGS)
        and all(isinstance(settings[name], kind) for name, kind in _SETTINGS.items())
        and all(set(about) >= {"budget", "bought", "alpha"} for about in rounds)
    ):
        raise ValueError(
            f"{store.path} is not that of a session, or damaged; use a copy of it"
        )
    return dict(settings)


def _learner(settings: Mapping, classes, number: int) -> CompositeActiveLearner:
    """Return the learner of a round, with a seed of its own."""
    state = np.random.SeedSequence([settings["seed"], number]).generate_state(1)
    net = LogisticRegression(max_iter=1000)
    if settings["net"] == "composite":
        net = CompositeNet(max_epochs=settings["max_epochs"])
    return CompositeActiveLearner(
        net,
        strategy=settings["strategy"],
        allocation=settings["allocation"],
        method=settings["method"],
        classes=classes,
        budget_per_round=settings["budget"],
        random_state=int(state[0]),
    )


def _plain(value):
    """Return values as JSON has them."""
    if isinstance(value, np.ndarray):
        return value.round(6).tolist()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return value.item() if isinstance(value, np.generic) else value
