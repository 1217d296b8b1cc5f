"""Kills a labelling session again and again, and looks for what was lost.

    python benchmarks/session_kills.py [--kills 200] [--imports 20]

Sessions of 5 rounds and 4 domains are made and played in child processes that are
killed (SIGKILL) at random moments; every third one trains a deep net. After every kill
the file must be whole, have every vote that was acknowledged and none twice; a finished
session must have asked for the same samples as one that nobody disturbed. Then single
imports are killed: all or nothing.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

from mdal.labels import LabelStore, Vote
from mdal.session import Session

DOMAINS, ROUNDS, BUDGET = ("clinic", "hospital", "lab", "ward"), 5, 12
CLASSES, NETS = ["no", "yes"], ("logistic_regression", "composite")


def samples():
    """Return features, ids, domains and the true classes of a small pool."""
    rng = np.random.default_rng(0)
    domains = np.repeat(DOMAINS, 40)
    X = rng.normal(size=(len(domains), 4)) + 2.0 * (domains == "lab")[:, None]
    ids = [f"s{row}" for row in range(len(domains))]
    return X, ids, domains.tolist(), np.where(X[:, 0] > X[:, 1], "yes", "no")


def play(folder, net, acknowledged=None):
    """Do all that is left of a session, as people would, three labels at a time."""
    X, ids, domains, truth = samples()
    if not (Path(folder) / "labels.sqlite").exists():
        settings = {"budget": BUDGET, "classes": CLASSES, "max_epochs": 1}
        Session.create(folder, X, ids, domains, name="kills", net=net, **settings)
    with Session(folder) as session:
        while True:
            rounds = session.store.rounds()
            left = session.open_rows(rounds[-1]) if rounds else []
            if len(rounds) == ROUNDS and not left:
                return
            if not left:
                session.query()
                continue
            votes = [
                {"id": session.store.ids[row], "label": truth[row], "annotator": "Ann"}
                for row in left[:3]
            ]
            path = Path(folder) / "votes.jsonl"
            path.write_text("".join(json.dumps(vote) + "\n" for vote in votes))
            session.add_file(path)
            if acknowledged is not None:
                with open(acknowledged, "a") as file:
                    file.write("".join(f"{vote['id']}\n" for vote in votes))


def in_child(work, kill_after=None) -> bool:
    """Run a function in a process of its own; return whether it was killed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()  # os._exit would say nothing
        finally:
            os._exit(status)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("a step of the session failed")
    return os.WIFSIGNALED(status)


def asked(folder) -> list[list[int]]:
    """Return the rows of all rounds."""
    with LabelStore(Path(folder) / "labels.sqlite") as store:
        return [each.rows for each in store.rounds()]


def check(folder, acknowledged: Path) -> int:
    """Raise an error if something is lost, doubled or damaged; return the votes."""
    if not (Path(folder) / "labels.sqlite").exists():
        if acknowledged.exists():
            raise AssertionError("the labels are gone")
        return 0  # killed before there was a session
    with LabelStore(Path(folder) / "labels.sqlite") as store:
        store.check_integrity()
        votes = Counter(vote["id"] for vote in store.votes())
    lines = acknowledged.read_text().splitlines() if acknowledged.exists() else []
    lost = set(lines) - set(votes)
    twice = [id for id, count in votes.items() if count > 1]
    if lost or twice:
        raise AssertionError(f"lost: {sorted(lost)}, twice: {twice}")
    return len(votes)


def kill_sessions(folder: Path, n_kills: int, rng: random.Random) -> int:
    """Kill sessions until there were as many kills; return how many were finished."""
    whole, expected = {}, {}
    for net in NETS:
        start = time.perf_counter()
        in_child(lambda net=net: play(folder / net, net))
        whole[net], expected[net] = time.perf_counter() - start, asked(folder / net)
    kills = finished = 0
    while kills < n_kills:
        net = NETS[finished % 3 == 2]
        place = folder / f"session-{finished}"
        acknowledged = folder / f"acknowledged-{finished}.txt"
        go_on = partial(play, place, net, acknowledged)
        killed = True
        while killed and kills < n_kills:
            killed = in_child(go_on, rng.uniform(0, whole[net] / 3))
            kills += killed
            check(place, acknowledged)
        in_child(go_on)
        if check(place, acknowledged) != ROUNDS * BUDGET:
            raise AssertionError("not every sample that was asked for has a vote")
        if asked(place) != expected[net]:
            raise AssertionError("a disturbed session has asked for other samples")
        finished += 1
    return finished


def kill_imports(folder: Path, n_kills: int, rng: random.Random) -> Counter:
    """Kill one import after another; return how many left nothing and how many all."""
    n = 20_000
    votes = [Vote(f"s{i}", "yes", "Ann") for i in range(n)]

    def new(name):
        LabelStore.create(folder / name, [vote.id for vote in votes], ["shop"] * n)
        return folder / name

    def add(path):
        with LabelStore(path) as store:
            store.add(votes)

    path = new("undisturbed.sqlite")
    start = time.perf_counter()
    in_child(lambda: add(path))
    whole, found = time.perf_counter() - start, Counter()
    while sum(found.values()) < n_kills:
        path = new(f"{rng.random()}.sqlite")
        if not in_child(lambda path=path: add(path), rng.uniform(0, whole)):
            continue
        with LabelStore(path) as store:
            store.check_integrity()
            kept = len(store.votes())
        if kept not in (0, n):
            raise AssertionError(f"{kept} of {n} votes were kept")
        found["all" if kept else "nothing"] += 1
    return found


def main():
    """Kill, look, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--imports", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        finished = kill_sessions(Path(folder), options.kills, rng)
        print(f"{options.kills} kills over {finished} sessions: nothing lost")
    with tempfile.TemporaryDirectory() as folder:
        found = kill_imports(Path(folder), options.imports, rng)
        print(f"{options.imports} kills of one import: {dict(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
