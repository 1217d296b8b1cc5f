"""Tasks for the tools that people label with, and what those tools give back.

Label Studio reads and writes JSON; everybody else gets JSON lines or CSV. What is read
is checked as a whole before any of it is used: files come from elsewhere.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from ._sheets import check_name, read_sheet, sheet
from .labels import Vote

__all__ = [
    "Task",
    "label_studio_config",
    "label_studio_tasks",
    "label_studio_votes",
    "read_votes",
    "task_lines",
    "task_sheet",
]

KINDS = {"text": "Text", "image": "Image", "features": "Text"}
_COLUMNS = (
    *("mdal_id", "domain", "round", "rank", "shown", "prediction", "session", "label"),
)
_LONGEST = 30_000  # characters that a cell of a spreadsheet can have, and a few less
_YES = {"1", "true", "yes", "y", "x"}
_NO = {"", "0", "false", "no", "n"}


class Task(NamedTuple):
    """One sample to label.

    Attributes
    ----------
    id, domain : str
        The sample.
    round, rank : int
        In which round it was picked, and as the how-manieth, from 1.
    shown : str
        What people see: a text, or the address of an image.
    prediction : str or None
        What the classifier takes it for.

    Examples
    --------
    >>> from mdal.exchange import Task
    >>> Task("s1", "shop", 0, 1, "A fine kettle.").prediction is None
    True
    """

    id: str
    domain: str
    round: int
    rank: int
    shown: str
    prediction: str | None = None


def label_studio_config(kind: str, classes: Sequence[str] | None) -> str:
    """Return the labelling configuration of a Label Studio project.

    Parameters
    ----------
    kind : {"text", "image", "features"}
        What samples are; of features, people see what was chosen to be shown.
    classes : sequence of str or None
        The choices; None is a field for any text.

    Returns
    -------
    str
        XML.

    Examples
    --------
    >>> from mdal.exchange import label_studio_config
    >>> print(label_studio_config("text", ["good", "bad"]))
    <View>
      <Text name="item" value="$shown"/>
      <Choices name="label" toName="item" choice="single" showInline="true">
        <Choice value="good"/>
        <Choice value="bad"/>
      </Choices>
    </View>
    """
    lines = ["<View>", f'  <{KINDS[kind]} name="item" value="$shown"/>']
    if classes is None:
        lines.append('  <TextArea name="label" toName="item" maxSubmissions="1"/>')
    else:
        lines.append(
            '  <Choices name="label" toName="item" choice="single" showInline="true">'
        )
        lines += [f"    <Choice value={quoteattr(name)}/>" for name in classes]
        lines.append("  </Choices>")
    return "\n".join([*lines, "</View>"])


def label_studio_tasks(
    tasks: Sequence[Task], *, session: str, classes: Sequence[str] | None
) -> list[dict]:
    """Return tasks as Label Studio imports them.

    Its server takes wrong tasks without complaint, so they are checked here. The score
    of a prediction is rank / n: its ordering by uncertainty, which begins with the
    lowest score, then is the order in which samples were picked.

    Parameters
    ----------
    tasks : sequence of Task
        The samples of one round.
    session : str
        The session's name, by which :func:`label_studio_votes` knows its own.
    classes : sequence of str or None
        As in :func:`label_studio_config`.

    Returns
    -------
    list of dict

    Examples
    --------
    >>> from mdal.exchange import Task, label_studio_tasks
    >>> [task] = label_studio_tasks(
    ...     [Task("s1", "shop", 0, 1, "A fine kettle.", "good")],
    ...     session="kettles", classes=["good", "bad"])
    >>> task["data"]["mdal_id"], task["predictions"][0]["score"]
    ('s1', 1.0)
    """
    made = []
    for task in tasks:
        check_name(task.id, "the id of a task")
        check_name(task.domain, f"the domain of {task.id!r}")
        if task.prediction is not None:
            check_name(task.prediction, f"the prediction of {task.id!r}")
            if classes is not None and task.prediction not in classes:
                raise ValueError(
                    f"the prediction of {task.id!r} is {task.prediction!r}, which is "
                    f"none of {', '.join(classes)}"
                )
        if not 1 <= task.rank <= len(tasks):
            raise ValueError(f"{task.id!r} has rank {task.rank} of {len(tasks)}")
        made.append(
            {
                "data": {
                    "mdal_id": task.id,
                    "domain": task.domain,
                    "round": task.round,
                    "session": session,
                    "shown": task.shown or task.id,
                },
                "predictions": [
                    {
                        "model_version": f"mdal round {task.round}",
                        "score": task.rank / len(tasks),
                        "result": _result(task.prediction, classes),
                    }
                ],
            }
        )
    json.dumps(made, allow_nan=False)
    return made


def _result(prediction: str | None, classes) -> list[dict]:
    if prediction is None:
        return []
    kind, value = "choices", {"choices": [prediction]}
    if classes is None:
        kind, value = "textarea", {"text": [prediction]}
    return [{"from_name": "label", "to_name": "item", "type": kind, "value": value}]


def label_studio_votes(exported: list, *, session: str) -> list[Vote]:
    """Return the votes in what Label Studio exports as JSON.

    A cancelled annotation is a skipped sample, as is one without a choice. Drafts are
    not looked at.

    Parameters
    ----------
    exported : list of dict
        Tasks with their annotations.
    session : str
        The session's name. Tasks of another one are an error.

    Returns
    -------
    list of Vote

    Examples
    --------
    >>> from mdal.exchange import label_studio_votes
    >>> annotation = {"completed_by": 1, "updated_at": "2026-01-01T10:00:00Z", "result":
    ...     [{"from_name": "label", "type": "choices", "value": {"choices": ["bad"]}}]}
    >>> task = {"data": {"mdal_id": "s1", "session": "kettles"},
    ...         "annotations": [annotation]}
    >>> label_studio_votes([task], session="kettles")[0].label
    'bad'
    """
    if not isinstance(exported, list):
        raise ValueError(
            "this is no export of Label Studio, a list of tasks; export as JSON"
        )
    votes = []
    for number, task in enumerate(exported):
        data = _field(task, "data", dict, f"task {number}")
        id = _field(data, "mdal_id", str, f"task {number}")
        if data.get("session") != session:
            raise ValueError(
                f"task {number}, sample {id!r:.80}, is of the session "
                f"{data.get('session')!r:.80}, not of {session!r}; nothing was imported"
            )
        for annotation in _field(task, "annotations", list, f"sample {id!r:.80}"):
            votes.append(_vote(id, annotation, data))
    return votes


def _field(table, name: str, kind: type, what: str):
    value = table.get(name) if isinstance(table, dict) else None
    if not isinstance(value, kind):
        raise ValueError(
            f"{what} has no {name} of type {kind.__name__}; nothing was imported: "
            "export as JSON from the project that the tasks were imported to"
        )
    return value


def _vote(id: str, annotation, data: dict) -> Vote:
    what = f"an annotation of {id!r:.80}"
    result = _field(annotation, "result", list, what)
    for flag in ("was_cancelled", "ground_truth"):
        if not isinstance(annotation.get(flag), bool | None):
            raise ValueError(f"{what} has {flag}={annotation[flag]!r:.80}; pass a flag")
    answers = [answer for part in result for answer in _answers(part, what)]
    if len(answers) > 1:
        raise ValueError(f"sample {id!r:.80} has several labels, {answers}; keep one")
    if result and not answers and not annotation.get("was_cancelled"):
        raise ValueError(
            f"{what} says nothing about 'label'; nothing was imported: set the project "
            "up with label_studio_config.xml"
        )
    skipped = annotation.get("was_cancelled") or not answers
    return Vote(
        id,
        None if skipped else answers[0],
        _annotator(annotation.get("completed_by"), what),
        annotation.get("updated_at") or annotation.get("created_at"),
        bool(annotation.get("ground_truth")),
        _number(data.get("round"), what),
    )


def _answers(part, what: str) -> list[str]:
    """Return the labels in one part of an annotation's result."""
    if not isinstance(part, dict) or part.get("from_name") != "label":
        return []
    value = part.get("value")
    value = value if isinstance(value, dict) else {}
    answers = value.get("choices") or value.get("text") or []
    if not isinstance(answers, list) or not all(isinstance(a, str) for a in answers):
        raise ValueError(f"{what} has the value {value!r:.80}; nothing was imported")
    return answers


def _annotator(who, what: str) -> str:
    """Return a name: a person's number or email address, or that of nobody."""
    if isinstance(who, dict):  # some exports have the number alone
        who = who.get("id") or who.get("email")
    if who is None:
        return ""
    if isinstance(who, bool) or not isinstance(who, str | int):
        raise ValueError(f"{what} is by {who!r:.80}; pass a name or a number")
    return str(who)


def _number(value, what: str) -> int | None:
    """Return the number of a round, if there is one."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isdecimal() or len(str(value)) > 9:
        raise ValueError(f"{what} has the round {value!r:.80}; pass its number")
    return int(value)


def task_lines(
    tasks: Sequence[Task],
    *,
    session: str,
    kind: str = "text",
    classes: Sequence[str] | None = None,
) -> str:
    """Return tasks as JSON lines, one for each sample.

    What people see is called ``text`` or ``image``, and the choices are ``options``, as
    Prodigy has it.

    Parameters
    ----------
    tasks : sequence of Task
        The samples of one round.
    session : str
        The session's name, by which :func:`read_votes` knows its own.
    kind, classes
        As in :func:`label_studio_config`.

    Returns
    -------
    str

    Examples
    --------
    >>> from mdal.exchange import Task, task_lines
    >>> print(task_lines([Task("s1", "shop", 0, 1, "A cup.")], session="x"), end="")
    {"mdal_id": "s1", "domain": "shop", "round": 0, "rank": 1, "prediction": null, \
"session": "x", "label": null, "text": "A cup."}
    """
    lines = []
    for task in tasks:
        line = {"mdal_id": task.id, **task._asdict(), "session": session, "label": None}
        del line["id"]
        line["image" if kind == "image" else "text"] = line.pop("shown")
        if classes is not None:
            line["options"] = [{"id": name, "text": name} for name in classes]
        lines.append(json.dumps(line, allow_nan=False) + "\n")
    return "".join(lines)


def task_sheet(tasks: Sequence[Task], *, session: str) -> str:
    """Return tasks as CSV with an empty column for labels.

    A text that a spreadsheet would run as a formula gets an apostrophe before it, and
    a very long one is cut off.

    Parameters
    ----------
    tasks, session
        As in :func:`task_lines`.

    Returns
    -------
    str

    Examples
    --------
    >>> from mdal.exchange import Task, task_sheet
    >>> print(task_sheet([Task("s1", "shop", 0, 1, "=1+1")], session="x"), end="")
    mdal_id,domain,round,rank,shown,prediction,session,label
    s1,shop,0,1,'=1+1,,x,
    """
    rows = [
        {
            **task._asdict(),
            "mdal_id": task.id,
            "shown": task.shown[:_LONGEST],
            "session": session,
        }
        for task in tasks
    ]
    return sheet(rows, _COLUMNS)


def read_votes(path, *, session: str, annotator: str = "") -> list[Vote]:
    r"""Return the votes in a file, by its ending.

    ``.json`` is what Label Studio exports. ``.jsonl`` (or ``.ndjson``) and ``.csv``
    have ``mdal_id`` (or ``id``, if nothing has the other name: tools number lines by
    it) and ``label``, a name or a list with one, and may have ``annotator``, ``time``,
    ``skipped``, ``ground_truth``, ``round`` and ``session``. A line without a label
    that is not skipped says nothing. Lines may also have Prodigy's ``answer`` and
    ``accept``, and sheets Label Studio's ``updated_at``.

    Parameters
    ----------
    path : str or path-like
        The file, in UTF-8.
    session : str
        As in :func:`label_studio_votes`.
    annotator : str, default=""
        Who has labelled, where the file does not say.

    Returns
    -------
    list of Vote

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mdal.exchange import read_votes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.csv")
    ...     _ = path.write_text("id,label\ns1,good\ns2,\n")
    ...     [vote] = read_votes(path, session="kettles", annotator="Ann")
    >>> vote.id, vote.label, vote.annotator
    ('s1', 'good', 'Ann')
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a file of labels")
    kind = path.suffix.lower()
    if kind == ".csv":
        names, rows = read_sheet(path)
        _check_names(names, f"{path}")
        return _votes(enumerate(rows, start=2), path, session, annotator)
    if kind not in (".json", ".jsonl", ".ndjson"):
        raise ValueError(f"{path} ends in {path.suffix!r}; pass .json, .jsonl or .csv")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error}); save it so") from None
    if kind == ".json":
        return label_studio_votes(_json(text, path), session=session)
    rows = [
        (number, _json(line, f"{path}, line {number}"))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    return _votes(rows, path, session, annotator)


def _json(text: str, where):
    def refuse(number):
        raise ValueError(f"{number} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} cannot be read as JSON: {error}") from None


def _check_names(names, where: str) -> None:
    names = set(names)
    if not names & {"mdal_id", "id"} or not names & {"label", "accept"}:
        raise ValueError(
            f"{where} has no mdal_id or id, or no label; name the columns so"
        )


def _votes(rows, path, session: str, annotator: str) -> list[Vote]:
    votes, seen = [], set()
    for number, row in rows:
        where = f"{path}, line {number},"
        _check_names(row if isinstance(row, dict) else (), where)
        if row.get("session") not in (None, "", session):
            raise ValueError(
                f"{where} is of the session {row['session']!r:.80}, not of "
                f"{session!r}; nothing was imported"
            )
        vote = _row_vote(row, where, annotator)
        if vote is None:
            continue
        if (key := (vote.id, vote.annotator, vote.time)) in seen:
            raise ValueError(
                f"{where} is the second about {vote.id!r:.80} by the same annotator; "
                "keep one of them"
            )
        seen.add(key)
        votes.append(vote)
    return votes


def _row_vote(row: dict, where: str, annotator: str) -> Vote | None:
    """Return what a row says, if it says anything."""
    name = "mdal_id" if "mdal_id" in row else "id"
    id, time = row[name], row.get("time") or row.get("updated_at") or None
    for value, what in ((id, name), (time or "", "time")):
        if not isinstance(value, str):
            raise ValueError(f"{where} has {what}={value!r:.80}; pass a string")
    label, ignored = _said(row, where)
    skipped = _flag(row.get("skipped"), where, "skipped") or ignored
    if label and skipped:
        raise ValueError(
            f"{where} has the label {label!r:.80} and is skipped; keep one"
        )
    if not label and not skipped:
        return None
    who = row.get("annotator")
    return Vote(
        id,
        label or None,
        annotator if who in (None, "") else _annotator(who, where),
        time,
        _flag(row.get("ground_truth"), where, "ground_truth"),
        _number(row.get("round"), where),
    )


def _said(row: dict, where: str) -> tuple[str, bool]:
    """Return the label of a row, "" for none, and whether a tool calls it ignored."""
    answer = row.get("answer")
    if answer == "ignore":
        return "", True
    if answer not in (None, "", "accept"):
        raise ValueError(
            f"{where} has answer={answer!r:.80}, which names no class; remove it, or "
            "say what the sample is"
        )
    label = row.get("label") or row.get("accept") or ""
    if isinstance(label, list) and len(label) == 1:
        [label] = label
    if not isinstance(label, str):
        raise ValueError(f"{where} has label={label!r:.80}; pass one string")
    return label.strip(), False


def _flag(value, where: str, name: str) -> bool:
    text = str(value).strip().lower() if value is not None else ""
    if text not in _YES | _NO:
        raise ValueError(f"{where} has {name}={value!r:.80}; pass true or false")
    return text in _YES
