"""Labelling sessions: rounds over days, files from elsewhere, kills in between."""

import base64
import importlib.util
import io
import json
import pickle
import random
import re
import sqlite3
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image

import mdal
from mdal import CompositeActiveLearner, persistence
from mdal._commands import main
from mdal._pools import read_pool
from mdal.labels import LabelStore, Vote
from mdal.session import Session

ROOT = Path(__file__).parent.parent
CLASSES = ["no", "yes"]


def pool(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    domains = ["shop", "ward"] * (n // 2)
    truth = np.where(X[:, 0] > 0, "yes", "no")
    return X, [f"s{i}" for i in range(n)], domains, truth


def create(folder, **settings):
    X, ids, domains, _ = pool()
    settings = {"classes": CLASSES, "net": "logistic_regression"} | settings
    Session.create(folder, X, ids, domains, **{"budget": 8, **settings})


@pytest.fixture
def folder(tmp_path):
    create(tmp_path / "mine")
    return tmp_path / "mine"


def answer(session, rows, who="Ann"):
    truth = pool()[3]
    return session.store.add(Vote(session.store.ids[r], truth[r], who) for r in rows)


def contents(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_session_goes_on_for_days(folder):
    asked = []
    for number in range(3):
        with Session(folder) as session:  # closed at night
            asked.append(session.query())
            assert asked[-1].number == number
        with Session(folder) as session:
            answer(session, asked[-1].rows)
    rows = [row for each in asked for row in each.rows]
    assert len(set(rows)) == 24
    assert asked[0].predictions == [None] * 8
    assert set(asked[1].predictions) <= set(CLASSES)
    with Session(folder) as session:
        status = session.status()
        assert sum(status["labelled"].values()) == 24
        assert status["rounds"] == 3 and status["open"] == 0
        assert [sum(each.values()) for each in status["by_round"]] == [8, 8, 8]
        assert status["bought"].labels == 16
        assert 0 < status["bought"].agreement <= 1
        *_, total = session.status_rows()
        assert total["labelled"] == 24 and total["left"] == 56
        learner = CompositeActiveLearner.load(
            folder / "learner", session.samples(), net=mdal_net()
        )
    assert learner.history_[-1].labels == 16


def mdal_net():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def test_a_round_stays_open_until_it_is_answered(folder):
    with Session(folder) as session:
        first = session.query()
        answer(session, first.rows[:5])
        again = session.query()
        assert again.rows == first.rows and len(session.store.rounds()) == 1
        assert session.open_rows(again) == first.rows[5:]
        session.store.add([Vote(session.store.ids[first.rows[5]], None, "Ann")])
        assert session.open_rows(again) == first.rows[6:]
        new = session.query(4, new_round=True)
        assert new.number == 1 and len(new.rows) == 4
        assert first.rows[5] not in new.rows  # it was skipped


def test_what_people_filled_in_is_not_written_over(folder):
    with Session(folder) as session:
        session.query()
        sheet, token = folder / "tasks/round-0.csv", session.token
        sheet.write_text(sheet.read_text().replace(f"{token},\n", f"{token},yes\n"))
        filled = sheet.read_text()
        session.query()
        assert sheet.read_text() == filled
        assert session.add_file(sheet) == 8


def test_people_who_disagree_block_nothing_but_the_query(folder, capsys):
    with Session(folder) as session:
        rows = session.query().rows
        answer(session, rows)
        other = {"yes": "no", "no": "yes"}
        truth = pool()[3]
        ids = session.store.ids
        session.store.add(Vote(ids[r], other[truth[r]], "Bob") for r in rows[:2])
        assert sum(session.status()["disputed"].values()) == 2
        assert session.status()["open"] == 0
        with pytest.raises(ValueError, match="annotators disagree on 2 samples"):
            session.query()
    assert main(["session", "status", str(folder)]) == 0
    assert "disputed" in capsys.readouterr().out
    assert main(["session", "query", str(folder)]) == 2
    assert main(["session", "query", str(folder), "--rule", "leave"]) == 0
    with Session(folder, rule="majority") as session:
        assert not set(rows) & set(session.store.rounds()[-1].rows)
        session.store.add([Vote(ids[rows[0]], truth[rows[0]], "Cy")])
        assert session.labels()[rows[0]] == truth[rows[0]]
        assert session.labels()[rows[1]] is None  # one against one


@pytest.mark.parametrize("classes", [["None", "nan"], ["-1", "1"]])
def test_classes_may_have_any_names(tmp_path, classes):
    create(tmp_path / "s", classes=classes)
    with Session(tmp_path / "s") as session:
        for _ in range(3):
            rows = session.query().rows
            truth = (pool()[0][:, 0] > 0).astype(int)
            session.store.add(
                Vote(session.store.ids[r], classes[truth[r]], "Ann") for r in rows
            )
        assert session.export(tmp_path / "out.csv") == 24
    exported = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert {line.split(",")[2] for line in exported} == set(classes)


def test_a_joint_budget_is_reported(tmp_path):
    create(tmp_path / "s", allocation="joint")
    with Session(tmp_path / "s") as session:
        for _ in range(2):
            answer(session, session.query().rows)
        assert set(session.store.rounds()[1].about["budget"]) <= {"shop", "ward"}
        assert session.write_report(tmp_path / "r.html").is_file()


def test_tasks_are_written_in_every_form(folder):
    with Session(folder) as session:
        asked = session.query()
        tasks = folder / "tasks"
        names = ["label_studio_config.xml", "round-0.csv", "round-0.json"]
        assert sorted(p.name for p in tasks.iterdir()) == [*names, "round-0.jsonl"]
        for path in tasks.glob("round-0.*"):
            path.unlink()
        session.query()  # as after a kill between the round and its tasks
        made = json.loads((tasks / "round-0.json").read_text())
        assert [task["data"]["mdal_id"] for task in made] == [
            session.store.ids[row] for row in asked.rows
        ]
        assert {task["data"]["session"] for task in made} == {session.token}
        assert session.token.startswith("mine ")


def test_the_same_labels_give_the_same_query(tmp_path):
    asked = []
    for name in ("one", "two"):
        create(tmp_path / name, net="composite", max_epochs=1, name="same")
        with Session(tmp_path / name) as session:
            answer(session, session.query().rows)
            asked.append(session.query().rows)
    assert asked[0] == asked[1]


def test_everything_may_be_labelled(tmp_path):
    truth = pool()[3]
    create(tmp_path / "all", labels=[*truth[:78], None, None], total=9)
    with Session(tmp_path / "all") as session:
        asked = session.query()
        assert sorted(asked.rows) == [78, 79]
        answer(session, asked.rows)
        assert session.query().rows == []
        status = session.status()
        assert (status["spent"], status["budget_left"]) == (2, 7)
        assert session.export(tmp_path / "labels.csv") == 80
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines[0] == "id,domain,label,annotators,round"
    assert lines[1] == f"s0,shop,{truth[0]},given,"
    assert lines[-1] == f"s79,ward,{truth[79]},Ann,0"


def test_rounds_end_where_the_total_is_spent(tmp_path, capsys):
    create(tmp_path / "s", budget=8, total=11)
    with Session(tmp_path / "s") as session:
        answer(session, session.query().rows)
        last = session.query().rows
        assert len(last) == 3
        answer(session, last)
        assert session.query().rows == []
    assert main(["session", "query", str(tmp_path / "s")]) == 0
    assert "the total is spent; give --n to go on" in capsys.readouterr().out
    with Session(tmp_path / "s") as session:
        assert len(session.query(2).rows) == 2


def test_labels_count_for_the_round_that_asked_for_them(folder, tmp_path):
    with Session(folder) as session:
        first = session.query()
        sheet = (folder / "tasks/round-0.csv").read_text()
        second = session.query(40, new_round=True)
        assert set(first.rows) & set(second.rows)
        path = tmp_path / "late.csv"
        path.write_text(sheet.replace(f"{session.token},\n", f"{session.token},yes\n"))
        assert session.add_file(path) == 8
        assert {vote["round"] for vote in session.store.votes()} == {0}
        counts = [sum(each.values()) for each in session.status()["by_round"]]
        assert counts == [8, 0]


def test_a_file_that_was_imported_before_says_nothing_new(folder, tmp_path):
    """Ann changes her mind; somebody imports her first file again."""
    with Session(folder) as session:
        for name, label in (("a.csv", "yes"), ("b.csv", "no"), ("a.csv", "yes")):
            (tmp_path / name).write_text(f"id,label\ns1,{label}\n")
            session.add_file(tmp_path / name, annotator="Ann")
        assert session.labels()[1] == "no"
        assert len(session.store.votes()) == 2


def test_tasks_of_a_session_with_the_same_name_are_refused(tmp_path):
    for parent in ("one", "two"):
        create(tmp_path / parent / "mine")
        with Session(tmp_path / parent / "mine") as session:
            session.query()
    sheet = tmp_path / "one/mine/tasks/round-0.csv"
    with Session(tmp_path / "two/mine") as session:
        assert session.name == "mine"
        with pytest.raises(ValueError, match="is of the session 'mine "):
            session.add_file(sheet)


def test_an_open_round_is_shown_whatever_annotators_say(folder):
    with Session(folder) as session:
        rows = session.query().rows
    with Session(folder) as session:
        id = session.store.ids[rows[0]]
        session.store.add([Vote(id, "yes", "Ann"), Vote(id, "no", "Bob")])
        assert session.query().rows == rows


def test_a_pool_that_was_corrected_can_be_tried_again(tmp_path):
    X, ids, domains, _ = pool()
    settings = {"net": "logistic_regression", "classes": ["no", "yes"]}
    with pytest.raises(ValueError, match="have the id 's1'"):
        Session.create(tmp_path / "s", X, ["s1", *ids[1:]], domains, **settings)
    Session.create(tmp_path / "s", X[1:], ids[1:], domains[1:], **settings)
    with Session(tmp_path / "s") as session:
        assert len(session.store) == len(ids) - 1


def test_images_that_are_not_there_are_named_at_once(tmp_path):
    X, ids, domains, _ = pool()
    settings = {"kind": "image", "net": "logistic_regression", "images": tmp_path}
    addresses = [f"s3://bucket/{id}.png" for id in ids]
    with pytest.raises(FileNotFoundError, match=r"gone\.png does not exist"):
        shown = ["gone.png", *addresses[1:]]
        Session.create(tmp_path / "s", X, ids, domains, shown=shown, **settings)
    Session.create(tmp_path / "s", X, ids, domains, shown=addresses, **settings)
    with Session(tmp_path / "s") as session:
        [task, *_] = session.tasks(session.query(), embedded=True)
        assert task.shown.startswith("s3://")


def test_files_of_others_in_the_folder_are_left_alone(folder):
    kept = folder / ".labels.sqlite.backup"
    kept.write_text("mine")
    left = folder / f".samples.npy.{'0' * 32}"
    left.write_text("what a kill has left")
    with Session(folder):
        assert kept.exists() and not left.exists()


def test_a_damaged_learner_costs_a_warning_and_changes_no_choice(tmp_path):
    """Its file may say what it likes: the session's settings count."""
    chosen = []
    for name, damage in (("whole", None), ("cut", b""), ("wrong", "strategy")):
        create(tmp_path / name, name="same")
        with Session(tmp_path / name) as session:
            answer(session, session.query().rows)
            path = tmp_path / name / "learner/learner.safetensors"
            if damage == "strategy":
                arrays, header = persistence.load(path, "learner")
                header["parameters"]["strategy"] = "margin"
                header["values"]["query"] = 3
                persistence.save(path, "learner", arrays, header)
            elif damage is not None:
                path.write_bytes(damage)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                chosen.append(session.query().rows)
            assert (len(caught) == 1) == (name == "cut")
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize("header", [{}, [], {"parameters": 3}])
def test_a_learner_without_its_parts_costs_a_warning(folder, header):
    with Session(folder) as session:
        answer(session, session.query().rows)
        path = folder / "learner/learner.safetensors"
        arrays, _ = persistence.load(path, "learner")
        persistence.save(path, "learner", arrays, header)
        with pytest.warns(UserWarning, match="nothing else is lost"):
            session.query()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE meta SET value = '{}' WHERE key = 'about'",
        "UPDATE rounds SET about = '{}'",
        "UPDATE votes SET row = 4000",
    ],
)
def test_a_store_with_wrong_content_is_named(folder, damage):
    with Session(folder) as session:
        answer(session, session.query().rows)
    connection = sqlite3.connect(folder / "labels.sqlite")
    connection.execute(damage)
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match="damaged"):
        Session(folder)


def test_the_number_of_threads_is_the_sessions(folder, monkeypatch):
    with Session(folder) as session:
        session.settings["threads"] = 3
        seen, fit = [], CompositeActiveLearner.fit

        def watched(*arguments, **named):
            seen.append(torch.get_num_threads())
            return fit(*arguments, **named)

        monkeypatch.setattr(CompositeActiveLearner, "fit", watched)
        before = torch.get_num_threads()
        session.query()
        assert seen == [3] and torch.get_num_threads() == before


def test_every_vote_can_be_exported(folder, tmp_path):
    with Session(folder) as session:
        session.store.add([Vote("s1", "yes", "Ann"), Vote("s2", None, "Bob")])
        session.store.add([Vote("s1", "no", "Ann")])
        assert session.export(tmp_path / "votes.csv", votes=True) == 3
    lines = (tmp_path / "votes.csv").read_text().splitlines()
    assert lines[0].startswith("id,domain,label,annotator,time,ground_truth")
    assert [line.split(",")[2] for line in lines[1:]] == ["yes", "", "no"]


def test_what_cannot_be_written_is_named(folder, tmp_path):
    with Session(folder) as session, pytest.raises(OSError, match="cannot be written"):
        session.export(tmp_path / "no/such/folder/labels.csv")


def test_a_report_shows_the_session(folder, tmp_path):
    with Session(folder) as session:
        assert "80 samples" in session.write_report(tmp_path / "0.html").read_text()
        answer(session, session.query().rows)
        answer(session, session.query().rows[:3])
        page = session.write_report(tmp_path / "1.html").read_text()
    assert "Labelling session mine" in page and "Ann" in page
    assert page.count("<img") == 2 and "5 samples of the last round are open" in page


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": "gradz"}, "strategy cannot be used"),
        ({"allocation": "best"}, "allocation"),
        ({"method": "dann", "net": "composite"}, "splits by alpha"),
        ({"budget": 0}, "budget=0"),
        ({"rule": "vote"}, "rule='vote' is unknown"),
        ({"net": "svm"}, "net='svm' is unknown"),
        ({"name": "=1"}, "formula"),
        ({"classes": ["yes"]}, "two or more"),
        ({"labels": ["maybe"] * 80}, "has the label 'maybe'"),
        ({"seed": -1}, "seed=-1"),
        ({"kind": "image"}, "pass images, or their addresses"),
    ],
)
def test_a_wrong_session_is_named_and_none_is_made(tmp_path, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        create(tmp_path / "wrong", **settings)
    with pytest.raises(FileNotFoundError, match="has no session; make one with mdal"):
        Session(tmp_path / "wrong")
    create(tmp_path / "wrong")  # nothing is in the way


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        ((4, 8, 8), {"net": "logistic_regression"}, "takes two dimensions"),
        ((4, 8, 8, 3), {}, "pass channels first"),
        ((4, 2, 2, 8, 8), {"kind": "image"}, "pass images, or their addresses"),
    ],
)
def test_shapes_that_will_not_do_are_named_at_once(tmp_path, shape, settings, message):
    with pytest.raises(ValueError, match=message):
        Session.create(tmp_path / "s", np.zeros(shape), "abcd", "xyxy", **settings)
    assert not (tmp_path / "s").exists()


def test_a_file_of_somebody_else_is_left_alone(tmp_path):
    np.save(tmp_path / "samples.npy", np.zeros(3))
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match="is another file"):
        create(tmp_path)
    assert contents(tmp_path) == before


def test_a_session_is_not_written_over(folder):
    before = contents(folder)
    with pytest.raises(FileExistsError, match="has a session already"):
        create(folder)
    assert contents(folder) == before


def test_other_samples_are_noticed(folder):
    np.save(folder / "samples.npy", np.zeros((80, 3), dtype=np.float32))
    with Session(folder) as session, pytest.raises(ValueError, match="is not what the"):
        session.query()


def test_a_damaged_learner_costs_a_comparison_and_nothing_else(folder):
    with Session(folder) as session:
        answer(session, session.query().rows)
        answer(session, session.query().rows)
        for path in (folder / "learner").iterdir():
            path.write_bytes(pickle.dumps(Canary(folder / "canary")))
        with pytest.warns(
            UserWarning, match="learner of the last round cannot be read"
        ):
            asked = session.query()
        assert len(asked.rows) == 8
        assert not (folder / "canary").exists()
        answer(session, asked.rows)
        session.query()
        assert session.status()["bought"].agreement is not None


# Pools in files


def table(path, **columns):
    names = list(columns)
    lines = [",".join(names)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_of_numbers_are_features(tmp_path):
    path = table(tmp_path / "t.csv", id=["a", "b"], domain="xy", f=[1, 2], g=[3, 4.5])
    found = read_pool(path)
    assert found.X.tolist() == [[1, 3], [2, 4.5]] and found.kind == "features"
    assert found.ids == ["a", "b"] and found.domains == ["x", "y"]
    assert found.shown == ["f 1, g 3", "f 2, g 4.5"]
    assert read_pool(path, features=["g"]).X.tolist() == [[3], [4.5]]
    columns = {"id": [7, 8], "site": ["x", "z"], "f": [1.0, 2.0], "y": ["no", None]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    found = read_pool(tmp_path / "t.parquet", domain="site", label="y")
    assert found.ids == ["7", "8"] and found.labels == ["no", None]
    assert found.X.tolist() == [[1], [2]]


def test_texts_are_alike_by_their_words(tmp_path):
    texts = ["a fine kettle", "one fine kettle", "the poor staff", "such poor staff"]
    path = table(tmp_path / "t.csv", id="abcd", domain="xxyy", words=texts)
    found = read_pool(path, text="words")
    alike = found.X @ found.X.T
    assert found.kind == "text" and found.shown == texts
    assert alike[0, 1] > 0.5 and alike[0, 2] < 0.1


def test_images_are_read_and_shown(tmp_path):
    for n, name in enumerate(("a.png", "b.png")):
        Image.new("L", (10, 20), 255 * n).save(tmp_path / name)
    path = table(tmp_path / "t.csv", id="ab", domain="xy", file=["a.png", "b.png"])
    found = read_pool(path, image="file", size=8)
    assert found.X.shape == (2, 3, 8, 8) and found.X[1].min() == 1.0
    Session.create_from(
        tmp_path / "s", found, images=tmp_path, net="composite", max_epochs=1, budget=2
    )
    with Session(tmp_path / "s") as session:
        asked = session.query()
        task = session.tasks(asked, embedded=True)[0]
        assert session.tasks(asked)[0].shown == f"{task.id}.png"  # in a sheet
    content = base64.b64decode(task.shown.removeprefix("data:image/png;base64,"))
    assert content == (tmp_path / f"{task.id}.png").read_bytes()


def test_people_may_see_something_else_than_the_learner(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(2))
    addresses = [f"https://example.com/{n}.png" for n in range(2)]
    path = table(tmp_path / "t.csv", id="ab", domain="xy", url=addresses, f=[1, 2])
    for learned in ({"array": tmp_path / "X.npy"}, {"features": ["f"]}):
        found = read_pool(path, image="url", **learned)
        assert found.kind == "image" and found.shown == addresses and found.X.ndim == 2
        assert read_pool(path, text="url", **learned).kind == "text"
    Session.create_from(tmp_path / "s", found, max_epochs=1, budget=2)
    with Session(tmp_path / "s") as session:
        assert session.tasks(session.query(), embedded=True)[0].shown in addresses
    with pytest.raises(ValueError, match="is not on this machine; pass what the lear"):
        read_pool(path, image="url")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"id": "ab", "domain": "xy", "f": [1, 2], "label": [0, 1]},
            "may be the answe",
        ),
        ({"id": "ab", "domain": "xy", "f": [1, ""]}, "has the cell ''"),
        ({"id": "ab", "domain": ["x", ""], "f": [1, 2]}, "'domain' of sample 2"),
        ({"id": ["a", ""], "domain": "xy", "f": [1, 2]}, "'id' of sample 2"),
        ({"id": "ab", "domain": "xy", "f": "pq"}, "no column of numbers"),
    ],
)
def test_tables_that_say_too_little_are_named(tmp_path, columns, message):
    with pytest.raises(ValueError, match=message):
        read_pool(table(tmp_path / "t.csv", **columns))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1], "domain": [float("nan")], "f": [1.0]}, "'domain' of sample 1"),
        ({"id": [1], "domain": ["x"], "f": [[1.0]]}, "no column of numbers"),
        ({"id": [], "domain": [], "f": []}, "has no sample"),
    ],
)
def test_parquet_tables_that_say_too_little_are_named(tmp_path, columns, message):
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=message):
        read_pool(tmp_path / "t.parquet")


def test_arrays_are_read_and_drawn(tmp_path):
    X = np.random.default_rng(0).uniform(size=(6, 12, 12))
    np.save(tmp_path / "X.npy", X)
    path = table(tmp_path / "t.csv", id="abcdef", domain="xyxyxy")
    found = read_pool(path, array=tmp_path / "X.npy")
    assert found.kind == "image" and found.X.shape == (6, 12, 12)
    Session.create_from(tmp_path / "s", found, max_epochs=1, budget=2)
    with Session(tmp_path / "s") as session:
        task = session.tasks(session.query(), embedded=True)[0]
    picture = Image.open(io.BytesIO(base64.b64decode(task.shown.split(",")[1])))
    assert picture.size == (224, 224) and np.ptp(np.asarray(picture)) > 200


class Canary:
    """Runs code when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


SHAPE = "{{'descr': '<f4', 'fortran_order': False, 'shape': {}}}"


def npy(header):
    """The beginning of an array with this header."""
    length = len(header).to_bytes(4, "little")
    return b"\x93NUMPY\x02\x00" + length + header.encode() + bytes(64)


def hostile(folder, canary):
    """Files that are not what they seem: the step that reads each, and its error."""
    evil = pickle.dumps(Canary(canary))
    objects = io.BytesIO()
    np.save(objects, np.array([Canary(canary)], dtype=object), allow_pickle=True)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(10**7))
    header = (2**62).to_bytes(8, "little") + b"{}"
    good = table(folder / "good.csv", id="ab", domain="xy", f=[1, 2])

    def file(name, content):
        (folder / name).write_bytes(content)
        return folder / name

    def array(name, content):
        return lambda: read_pool(good, array=file(name, content))

    def rows(name, text, **options):
        return lambda: read_pool(file(name, text), **options)

    def learner(content):
        file("learner.safetensors", content)
        return lambda: CompositeActiveLearner.load(folder)

    huge = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, "
    huge += b"'shape': (1000000000000, 10), }" + b" " * 20 + b"\n"
    return [
        (learner(evil), "not a file of this library, or damaged"),
        (learner(header), "not a file of this library, or damaged"),
        (array("pickle.npy", evil), "is no .npy file"),
        (array("objects.npy", objects.getvalue()), "has more than plain numbers"),
        (array("bomb.npy", bomb.getvalue()), "is no .npy file"),
        (array("huge.npy", huge), "has more than plain numbers"),
        (array("short.npy", b"\x93NUMPY\x01\x00"), "has more than plain numbers"),
        (array("open.npy", npy("((((")), "has more than plain numbers"),
        (array("quote.npy", npy('"""')), "has more than plain numbers"),
        (array("deep.npy", npy("1" + "+1" * 9000)), "has more than plain numbers"),
        (
            array("less.npy", npy(SHAPE.format("(-3, 2)"))),
            "has more than plain numbers",
        ),
        (rows("pickle.parquet", evil), "cannot be read as Parquet"),
        (rows("cut.csv", b"id,domain\na"), "has 1 cells for 2 columns"),
        (rows("bytes.csv", b"id,domain\n\xff,a"), "is no text in UTF-8"),
        (rows("nan.csv", b"id,domain,f\na,x,nan\n"), "NaN or infinity"),
        (rows("empty.csv", b""), "needs a first line"),
        (
            rows("out.csv", b"id,domain,i\na,x,../../etc/passwd\n", image="i"),
            "is outside of",
        ),
        (rows("page.html", b"<html>"), "pass .csv or .parquet"),
    ]


@pytest.mark.parametrize("number", range(18))
def test_hostile_files_run_nothing_and_are_named(tmp_path, number):
    canary = tmp_path / "canary"
    step, message = hostile(tmp_path, canary)[number]
    with pytest.raises(ValueError, match=message):
        step()
    assert not canary.exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.json", "[" * 100_000),
        (
            "unknown.jsonl",
            '{"id": "s0", "label": "yes"}\n{"id": "../x", "label": "no"}',
        ),
        ("formula.csv", "id,label\ns0,yes\ns1,=cmd()\n"),
        ("bytes.csv", b"id,label\ns0,\xff\n"),
        ("nan.json", '[{"data": NaN}]'),
        ("twice.csv", "id,label\ns0,yes\ns0,no\n"),
    ],
)
def test_hostile_labels_change_nothing(folder, tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = contents(folder)
    with Session(folder) as session, pytest.raises(ValueError):
        session.add_file(path)
    assert contents(folder) == before


def test_no_module_loads_what_can_run_code():
    risky = (
        r"pickle\.loads?\(|import (cloud)?pickle|from (cloud)?pickle|\bdill\b"
        r"|joblib\.load|torch\.load\(|allow_pickle\s*=\s*True|weights_only\s*=\s*False"
        r"|[^_a-z.](eval|exec)\("
    )
    for path in Path(mdal.__file__).parent.rglob("*.py"):
        assert not re.search(risky, path.read_text()), path


# Interruptions


def test_what_a_kill_leaves_of_the_first_learner_is_no_learner(folder):
    (folder / "learner").mkdir()  # and killed before there was a file in it
    with Session(folder) as session:
        assert len(session.query().rows) > 0  # warnings are errors


def test_kills_lose_nothing(tmp_path):
    spec = importlib.util.spec_from_file_location(
        "session_kills", ROOT / "benchmarks/session_kills.py"
    )
    kills = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kills)
    assert kills.kill_sessions(tmp_path, 6, random.Random(1)) >= 1
    found = kills.kill_imports(tmp_path, 2, random.Random(1))
    assert sum(found.values()) == 2


# On the command line


def test_a_session_on_the_command_line(tmp_path, capsys):
    X, ids, domains, truth = pool()
    table(tmp_path / "t.csv", id=ids, site=domains, f=X[:, 0], g=X[:, 1], h=X[:, 2])
    place = str(tmp_path / "mine")

    def step(name, *rest):
        assert main(["session", name, place, *rest]) == 0
        return capsys.readouterr().out

    made = step(
        *("init", "--data", str(tmp_path / "t.csv"), "--domain", "site"),
        *("--classes", "no", "yes", "--budget", "6", "--total", "20"),
        *("--net", "logistic_regression"),
    )
    assert "80 samples of 2 domains: shop, ward" in made
    assert "round 0:\n  shop  3\n  ward  3" in step("query")
    assert "6 of the 6 samples of round 0 are open" in step("query")
    sheet = (tmp_path / "mine/tasks/round-0.csv").read_text().splitlines()
    filled = [sheet[0]]
    for line in sheet[1:]:
        filled.append(line + truth[int(line.partition(",")[0][1:])])
    (tmp_path / "filled.csv").write_text("\n".join(filled) + "\n")
    names = (str(tmp_path / "filled.csv"), "--annotator", "Ann")
    assert "6 new votes; 0 samples of the last round are open" in step("import", *names)
    again = step("import", *names)
    assert "0 new votes" in again and "was imported before" in again
    assert "round 1:" in step("query")
    shown = step("status")
    assert re.search(r"all +6 +0 +74 +6 +0\n", shown)
    assert "6 labels were given by people; 14 of the total are left" in shown
    assert "6 labels" in step("export")
    assert "report.html" in step("report")
    with LabelStore(tmp_path / "mine/labels.sqlite") as store:
        assert {vote["annotator"] for vote in store.votes()} == {"Ann"}


def test_wrong_steps_are_named(tmp_path, folder, capsys):
    def fails(*arguments):
        assert main(["session", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    assert "has no session" in fails("query", tmp_path / "nothing")
    assert "does not exist" in fails("import", folder, tmp_path / "l.csv")
    path = table(tmp_path / "t.csv", name="ab", f=[1, 2])
    assert "has no column 'id'; it has name, f" in fails(
        "init", tmp_path / "new", "--data", path
    )
    with Session(folder):
        assert "another process is using" in fails("status", folder)
