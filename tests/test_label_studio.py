"""A session with the real Label Studio: import, label, export, read back.

It is installed apart from this library (its requirements are its own):

    python3 -m venv ls && ls/bin/pip install label-studio==1.23.0
    MDAL_LABEL_STUDIO=ls/bin/label-studio .venv/bin/pytest tests/test_label_studio.py
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import numpy as np
import pytest

from mdal.exchange import read_votes
from mdal.session import Session

PROGRAM = os.environ.get("MDAL_LABEL_STUDIO")
pytestmark = pytest.mark.skipif(
    not PROGRAM, reason="MDAL_LABEL_STUDIO does not name a label-studio program"
)
USER, PASSWORD = "ann@example.com", "a long password 1"
CLASSES = ["good & cheap", "bad"]


class Server:
    """Label Studio on loopback, spoken to as a browser would."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.cookies = CookieJar()
        self.browser = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPCookieProcessor(self.cookies),
        )
        command = [PROGRAM, "start", "--no-browser", "--internal-host", "127.0.0.1"]
        command += ["--port", str(port), "--username", USER, "--password", PASSWORD]
        environment = {**os.environ, "LABEL_STUDIO_BASE_DATA_DIR": str(folder)}
        environment |= {"COLLECT_ANALYTICS": "false", "SENTRY_DSN": ""}
        environment.pop("PYTHONPATH", None)
        self.log = open(folder / "log.txt", "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, env=environment, stdout=self.log, stderr=self.log
        )
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise
        self.ask("/user/login/")
        form = {"email": USER, "password": PASSWORD}
        form["csrfmiddlewaretoken"] = self.token
        self.send("/user/login/", urllib.parse.urlencode(form).encode())

    @property
    def token(self):
        return next(c.value for c in self.cookies if c.name == "csrftoken")

    def wait(self):
        for _ in range(600):
            try:
                return json.loads(self.ask("/health"))
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, "the server has stopped"
                time.sleep(0.5)
        raise TimeoutError("the server does not answer")

    def ask(self, path):
        with self.browser.open(self.address + path, timeout=60) as answer:
            return answer.read()

    def send(self, path, body, kind="application/x-www-form-urlencoded"):
        request = urllib.request.Request(self.address + path, body)
        request.add_header("Content-Type", kind)
        request.add_header("X-CSRFToken", self.token)
        request.add_header("Referer", self.address + path)
        with self.browser.open(request, timeout=60) as answer:
            return answer.read()

    def api(self, path, value=None):
        if value is None:
            return json.loads(self.ask(path))
        body = json.dumps(value).encode()
        return json.loads(self.send(path, body, "application/json"))

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("label_studio"))
    yield server
    server.stop()


def texts(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) + 3 * (np.arange(n) % 2)[:, None]
    shown = [f"sample {i}: <b>{'fine' if i % 2 else 'poor'}</b>" for i in range(n)]
    return X, [f"s{i}" for i in range(n)], ["shop", "ward"] * (n // 2), shown


@pytest.fixture
def session(tmp_path):
    X, ids, domains, shown = texts()
    Session.create(
        tmp_path / "kettles",
        X,
        ids,
        domains,
        shown=shown,
        kind="text",
        classes=CLASSES,
        budget=6,
        net="logistic_regression",
        rule="majority",
    )
    with Session(tmp_path / "kettles") as session:
        yield session


def choice(label):
    value = {"choices": [label]}
    return [
        {"from_name": "label", "to_name": "item", "type": "choices", "value": value}
    ]


def project(server, session, asked):
    folder = session.folder / "tasks"
    config = (folder / "label_studio_config.xml").read_text()
    made = server.api(
        "/api/projects/",
        {"title": f"round {asked.number}", "label_config": config}
        | {"sampling": "Uncertainty sampling", "show_collab_predictions": True},
    )
    tasks = (folder / f"round-{asked.number}.json").read_bytes()
    done = server.send(f"/api/projects/{made['id']}/import", tasks, "application/json")
    assert json.loads(done)["task_count"] == len(asked.rows)
    return made["id"]


def label(server, number, how):
    """Label the tasks one by one as they are offered; return the ids in that order."""
    order = []
    while True:
        try:
            task = server.api(f"/api/projects/{number}/next")
        except urllib.error.HTTPError as error:
            assert error.code == 404  # nothing is left
            return order
        order.append(task["data"]["mdal_id"])
        answer = how(task)
        server.api(f"/api/tasks/{task['id']}/annotations/", answer)


def test_a_session_goes_through_label_studio(server, session, tmp_path):
    truth = dict(zip(texts()[1], [CLASSES[i % 2] for i in range(40)], strict=True))
    for number in range(3):
        asked = session.query()
        assert asked.number == number
        ids = [session.store.ids[row] for row in asked.rows]
        project_id = project(server, session, asked)
        skipped = ids[2]

        def how(task, skipped=skipped):
            id = task["data"]["mdal_id"]
            cancelled = id == skipped
            result = [] if cancelled else choice(truth[id])
            return {"result": result, "was_cancelled": cancelled}

        # Offered by uncertainty, which is the order in which they were picked.
        assert label(server, project_id, how) == ids
        exported = server.ask(f"/api/projects/{project_id}/export?exportType=JSON")
        path = tmp_path / f"exported-{number}.json"
        path.write_bytes(exported)
        assert session.add_file(path) == len(ids)
        assert session.add_file(path) == 0
        path = path.with_suffix(".csv")  # where tasks have numbers of their own
        path.write_bytes(
            server.ask(f"/api/projects/{project_id}/export?exportType=CSV")
        )
        votes = read_votes(path, session=session.token)
        labelled = {id: truth[id] for id in ids if id != skipped}
        assert {vote.id: vote.label for vote in votes if vote.label} == labelled
        labels = session.labels()
        for row, id in zip(asked.rows, ids, strict=True):
            assert labels[row] == (None if id == skipped else truth[id])
        assert session.store.skipped().sum() == number + 1
        assert not session.open_rows(asked)
    assert session.status()["bought"].labels == 10
    annotators = {vote["annotator"] for vote in session.store.votes()}
    assert len(annotators) == 1 and annotators != {""}


def test_drafts_do_not_count_and_wrong_projects_are_refused(server, session, tmp_path):
    asked = session.query()
    project_id = project(server, session, asked)
    task = server.api(f"/api/projects/{project_id}/next")
    server.api(f"/api/tasks/{task['id']}/drafts", {"result": choice("bad")})
    path = tmp_path / "exported.json"
    path.write_bytes(
        server.ask(
            f"/api/projects/{project_id}/export?exportType=JSON&download_all_tasks=true"
        )
    )
    assert session.add_file(path) == 0
    exported = json.loads(path.read_text())
    exported[0]["data"]["session"] = "another"
    path.write_text(json.dumps(exported))
    with pytest.raises(ValueError, match="of the session 'another'"):
        session.add_file(path)


ORACLE = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface
config, tasks = sys.argv[1:]
interface = LabelInterface(open(config).read())
for task in json.load(open(tasks)):
    interface.validate_task({"data": task["data"]})
    for prediction in task["predictions"]:
        assert interface.validate_prediction(prediction), prediction
print("valid")
"""


def test_its_own_checks_find_nothing_wrong(session):
    asked = session.query()
    from mdal.labels import Vote

    session.store.add(Vote(session.store.ids[r], CLASSES[r % 2]) for r in asked.rows)
    session.query()
    folder = session.folder / "tasks"
    python = Path(PROGRAM).parent / Path(sys.executable).name
    for number in (0, 1):
        found = subprocess.run(
            [
                *(python, "-c", ORACLE, folder / "label_studio_config.xml"),
                folder / f"round-{number}.json",
            ],
            capture_output=True,
            text=True,
        )
        assert found.stdout.strip() == "valid", found.stderr
