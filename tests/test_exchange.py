"""Tasks out, votes in: what tools are given, and what may come back."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdal.exchange import (
    Task,
    label_studio_config,
    label_studio_tasks,
    label_studio_votes,
    read_votes,
    task_lines,
    task_sheet,
)
from mdal.labels import Vote

TASKS = [
    Task("s1", "shop", 2, 1, 'A "fine" kettle,\nhe said.', "good"),
    Task("s2", "ward", 2, 2, "=cmd()", None),
    Task("s3", "shop", 2, 3, "", "bad & ugly"),
]
CLASSES = ["good", "bad & ugly"]


def test_label_studio_is_told_what_to_show_and_what_to_ask():
    view = ElementTree.fromstring(label_studio_config("image", CLASSES))
    image, choices = view
    assert (image.tag, image.get("value")) == ("Image", "$shown")
    assert choices.get("toName") == image.get("name")
    assert [choice.get("value") for choice in choices] == CLASSES
    free = ElementTree.fromstring(label_studio_config("text", None))
    assert [part.tag for part in free] == ["Text", "TextArea"]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True))
def test_any_class_name_is_well_formed(classes):
    classes = [name for name in classes if name.isprintable() and name.strip()]
    view = ElementTree.fromstring(label_studio_config("text", classes))
    assert [choice.get("value") for choice in view[1]] == classes


def test_tasks_have_their_order_as_a_score():
    tasks = label_studio_tasks(TASKS, session="kettles", classes=CLASSES)
    predictions = [task["predictions"][0] for task in tasks]
    assert [p["score"] for p in predictions] == pytest.approx([1 / 3, 2 / 3, 1])
    assert predictions[0]["result"][0]["value"] == {"choices": ["good"]}
    assert predictions[1]["result"] == []
    assert tasks[0]["data"] == {
        "mdal_id": "s1",
        "domain": "shop",
        "round": 2,
        "session": "kettles",
        "shown": TASKS[0].shown,
    }
    assert tasks[2]["data"]["shown"] == "s3"  # something has to be seen


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (TASKS[0]._replace(prediction="cow"), "'cow', which is none of good, bad & u"),
        (TASKS[0]._replace(prediction=3), "is 3; pass a string"),
        (TASKS[0]._replace(rank=0), "rank 0 of 1"),
        (TASKS[0]._replace(rank=7), "rank 7 of 1"),
        (TASKS[0]._replace(round=float("nan")), "not JSON compliant"),
    ],
)
def test_wrong_tasks_are_not_written(task, message):
    with pytest.raises((TypeError, ValueError), match=message):
        label_studio_tasks([task], session="kettles", classes=CLASSES)


def annotated(label=None, **changes):
    value = {"choices": [label]}
    result = [{"from_name": "label", "type": "choices", "value": value}]
    return {
        "completed_by": {"id": 4, "email": "ann@example.com"},
        "result": [] if label is None else result,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-02T00:00:00Z",
        **changes,
    }


def labelled(value, name="label"):
    return annotated(result=[{"from_name": name, "value": value}])


def exported(*annotations, **data):
    data = {"mdal_id": "s1", "session": "kettles", **data}
    return [{"id": 9, "data": data, "annotations": list(annotations), "drafts": [{}]}]


def test_annotations_become_votes():
    votes = label_studio_votes(
        exported(
            annotated("good"),
            annotated("bad", completed_by=7, ground_truth=True),
            annotated("bad", was_cancelled=True, completed_by=None),
            annotated(completed_by=0),
        ),
        session="kettles",
    )
    time = "2026-01-02T00:00:00Z"
    assert votes == [
        Vote("s1", "good", "4", time),
        Vote("s1", "bad", "7", time, True),
        Vote("s1", None, "", time),
        Vote("s1", None, "0", time),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "no export of Label Studio"),
        ([3], "task 0 has no data"),
        ([{"data": {}}], "task 0 has no mdal_id"),
        (exported(mdal_id=["s1"]), "task 0 has no mdal_id of type str"),
        (exported(session="other"), "of the session 'other', not of 'kettles'"),
        ([{"data": exported()[0]["data"]}], "has no annotations"),
        (exported({"result": None}), "an annotation of 's1' has no result"),
        (exported(labelled({"choices": ["a", "b"]})), "several labels"),
        (exported(labelled({"choices": "yes"})), "has the value"),
        (exported(labelled({"choices": 5})), "has the value"),
        (exported(labelled({"choices": [5]})), "has the value"),
        (exported(labelled({"rating": 5})), "says nothing about 'label'"),
        (exported(labelled({"choices": ["a"]}, "mood")), "says nothing about 'label'"),
        (exported(annotated("a", was_cancelled="false")), "was_cancelled='false'"),
        (exported(annotated("a", completed_by={"email": ["a"]})), "is by"),
    ],
)
def test_what_is_no_export_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        label_studio_votes(wrong, session="kettles")


def test_lines_and_sheets_have_all_tasks():
    lines = [json.loads(line) for line in task_lines(TASKS, session="k").splitlines()]
    rows = list(csv.DictReader(io.StringIO(task_sheet(TASKS, session="k"))))
    assert (
        [line["mdal_id"] for line in lines]
        == [row["mdal_id"] for row in rows]
        == [task.id for task in TASKS]
    )
    assert lines[1]["text"] == "=cmd()"
    assert rows[1]["shown"] == "'=cmd()"  # no formula in a spreadsheet
    assert rows[0]["shown"] == TASKS[0].shown
    assert {row["label"] for row in rows} == {""}
    assert (
        {row["session"] for row in rows} == {line["session"] for line in lines} == {"k"}
    )


def test_numbers_are_no_formulas_and_long_texts_fit_into_a_cell():
    tasks = [Task("-1", "shop", 0, 1, "x" * 200_000, "-1")]
    [row] = csv.DictReader(io.StringIO(task_sheet(tasks, session="k")))
    assert row["mdal_id"] == row["prediction"] == "-1"
    assert len(row["shown"]) == 30_000


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_sheet_that_people_filled_in_is_read(tmp_path, delimiter, mark):
    lines = ["id,label,skipped,time,annotator", "s1,good,,,", "s2,,yes,,Bob", "s3,,,,"]
    text = mark + "\r\n".join(lines).replace(",", delimiter)
    votes = read_votes(
        written(tmp_path / "l.csv", text), session="kettles", annotator="Ann"
    )
    assert votes == [Vote("s1", "good", "Ann"), Vote("s2", None, "Bob")]


def test_lines_are_read(tmp_path):
    text = '{"id": "s1", "label": "good", "ground_truth": true}\n\n{"id": "s2",'
    text += ' "label": null, "skipped": true, "time": "2026-01-01"}\n'
    text += '{"id": "s3", "label": "a\u2028b", "annotator": 0, "session": "kettles"}\n'
    *votes, last = read_votes(written(tmp_path / "l.JSONL", text), session="kettles")
    assert last == Vote("s3", "a\u2028b", "0")
    assert votes == [
        Vote("s1", "good", "", None, True),
        Vote("s2", None, "", "2026-01-01"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.json", "[" * 100_000, "cannot be read as JSON"),
        ("l.json", "[NaN]", "NaN is no JSON"),
        ("l.json", "[", "cannot be read as JSON"),
        ("l.json", b"\xff\xfe[]", "no text in UTF-8"),
        ("l.jsonl", '{"id": "s1"}', "line 1, has no mdal_id or id, or no label"),
        ("l.jsonl", "\n[1]", "line 2, has no mdal_id or id, or no label"),
        ("l.jsonl", '{"id": 1, "label": "a"}', "has id=1; pass a string"),
        ("l.jsonl", '{"id": null, "label": "a"}', "has id=None; pass a string"),
        ("l.jsonl", '{"id": "a", "label": 1}', "has label=1; pass one string"),
        ("l.jsonl", '{"id": "a", "label": "b", "time": ["x"]}', "has time="),
        ("l.jsonl", '{"id": "a", "label": "b", "annotator": ["x"]}', "is by"),
        ("l.jsonl", '{"id": "a", "label": "b", "session": "x"}', "of the session 'x'"),
        ("l.csv", "id,label,skipped\ns1,good,yes\n", "and is skipped; keep one"),
        ("l.csv", "", "needs a first line"),
        ("l.csv", "id,id,label\ns1,s1,good\n", "needs a first line"),
        ("l.csv", "name,label\n", "no mdal_id or id, or no label"),
        ("l.jsonl", '{"id": "a", "label": "b", "skipped": "maybe"}', "skipped='maybe'"),
        ("l.csv", "id,text\ns1,good\n", "no mdal_id or id, or no label"),
        ("l.csv", "id,label\ns1,good\ns1,bad\n", "line 3, is the second about 's1'"),
        ("l.csv", "id,label\ns1\n", "row 2, has 1 cells for 2 columns"),
        ("l.csv", "id,label\ns1,good,3\n", "row 2, has 3 cells for 2 columns"),
        ("l.csv", 'id,label\n"s1,good', "cannot be read as CSV"),
        ("l.csv", "id,label\ns1," + "a" * 200_000, "cannot be read as CSV"),
        ("l.xlsx", "PK", "ends in '.xlsx'; pass .json, .jsonl or .csv"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        read_votes(written(tmp_path / name, text), session="kettles")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_votes(tmp_path / "nothing.csv", session="kettles")


def test_numbers_that_tools_give_lines_are_not_taken_for_ids(tmp_path):
    """As Label Studio's sheets and doccano's lines have them."""
    path = written(
        tmp_path / "l.csv",
        "id,mdal_id,label,annotator,updated_at\n7,s1,good,3,2026-01-02T00:00:00Z\n",
    )
    [vote] = read_votes(path, session="k")
    assert vote == Vote("s1", "good", "3", "2026-01-02T00:00:00Z")
    path = written(tmp_path / "l.jsonl", '{"id": 7, "mdal_id": "s1", "label": ["bad"]}')
    assert read_votes(path, session="k") == [Vote("s1", "bad")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"accept": ["good"], "answer": "accept"}, [Vote("s1", "good")]),
        ({"label": "good", "answer": "accept"}, [Vote("s1", "good")]),
        ({"accept": [], "answer": "ignore"}, [Vote("s1", None)]),
        ({"accept": [], "answer": "accept"}, []),
        ({"label": "good", "answer": "reject"}, "answer='reject', which names no"),
        ({"accept": ["good", "bad"], "answer": "accept"}, "pass one string"),
    ],
)
def test_answers_of_prodigy_are_understood(tmp_path, line, expected):
    path = written(tmp_path / "l.jsonl", json.dumps({"mdal_id": "s1", **line}))
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            read_votes(path, session="k")
    else:
        assert read_votes(path, session="k") == expected


def test_lines_have_what_tools_look_for():
    lines = task_lines(TASKS, session="k", kind="image", classes=["good", "bad"])
    line = json.loads(lines.splitlines()[0])
    assert line["image"] == TASKS[0].shown and "text" not in line
    assert line["options"] == [{"id": n, "text": n} for n in ("good", "bad")]


@pytest.mark.parametrize("wrong", [{"id": 7}, {"domain": 3}, {"id": ""}])
def test_tasks_without_names_are_refused(wrong):
    task = TASKS[0]._replace(rank=1, **wrong)
    with pytest.raises((TypeError, ValueError), match="pass a"):
        label_studio_tasks([task], session="k", classes=None)


def test_sheets_that_need_it_say_that_they_are_utf_8():
    [plain, other] = (
        task_sheet([Task("s1", "shop", 0, 1, text)], session="k")
        for text in ("cup", "café")
    )
    assert not plain.startswith("\ufeff") and other.startswith("\ufeff")


def test_a_person_is_the_same_in_every_export():
    short, long = (
        label_studio_votes(
            exported(annotated("good", completed_by=who)), session="kettles"
        )
        for who in (4, {"id": 4, "email": "ann@example.com"})
    )
    assert short == long
