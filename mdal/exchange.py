"""Tasks for the tools that people label with, and what those tools give back.

Label Studio reads and writes JSON; everybody else gets JSON lines or CSV. What is read
is checked as a whole before any of it is used: files come from elsewhere.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from .labels import Vote, check_name

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
_COLUMNS = ("id", "domain", "round", "rank", "shown", "prediction", "label")
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
            votes.append(_vote(id, annotation))
    return votes


def _field(table, name: str, kind: type, what: str):
    value = table.get(name) if isinstance(table, dict) else None
    if not isinstance(value, kind):
        raise ValueError(
            f"{what} has no {name} of type {kind.__name__}; nothing was imported: "
            "export as JSON from the project that the tasks were imported to"
        )
    return value


def _vote(id: str, annotation) -> Vote:
    result = _field(annotation, "result", list, f"an annotation of {id!r:.80}")
    answers = []
    for part in result:
        if not isinstance(part, dict) or part.get("from_name") != "label":
            continue
        value = part.get("value")
        value = value if isinstance(value, dict) else {}
        answers += value.get("choices") or value.get("text") or []
    if len(answers) > 1:
        raise ValueError(f"sample {id!r:.80} has several labels, {answers}; keep one")
    who = annotation.get("completed_by", "")
    if isinstance(who, dict):
        who = who.get("email") or who.get("id", "")
    skipped = bool(annotation.get("was_cancelled")) or not answers
    return Vote(
        id,
        None if skipped else answers[0],
        str(who),
        annotation.get("updated_at") or annotation.get("created_at"),
        bool(annotation.get("ground_truth")),
    )


def task_lines(tasks: Sequence[Task]) -> str:
    """Return tasks as JSON lines, one for each sample.

    Parameters
    ----------
    tasks : sequence of Task

    Returns
    -------
    str

    Examples
    --------
    >>> from mdal.exchange import Task, task_lines
    >>> print(task_lines([Task("s1", "shop", 0, 1, "A kettle.")]), end="")
    {"id": "s1", "domain": "shop", "round": 0, "rank": 1, "shown": "A kettle.", \
"prediction": null, "label": null}
    """
    return "".join(
        json.dumps({**task._asdict(), "label": None}, allow_nan=False) + "\n"
        for task in tasks
    )


def task_sheet(tasks: Sequence[Task]) -> str:
    """Return tasks as CSV with an empty column for labels.

    A text that a spreadsheet would run as a formula gets an apostrophe before it.

    Parameters
    ----------
    tasks : sequence of Task

    Returns
    -------
    str

    Examples
    --------
    >>> from mdal.exchange import Task, task_sheet
    >>> print(task_sheet([Task("s1", "shop", 0, 1, "=1+1")]), end="")
    id,domain,round,rank,shown,prediction,label
    s1,shop,0,1,'=1+1,,
    """
    rows = [{**task._asdict(), "label": ""} for task in tasks]
    return sheet(rows, _COLUMNS)


def sheet(rows: Sequence[dict], columns: Sequence[str]) -> str:
    """Return rows as CSV in which no cell is a formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _no_formula(row.get(name)) for name in columns})
    return text.getvalue()


def _no_formula(value):
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def read_votes(path, *, session: str, annotator: str = "") -> list[Vote]:
    r"""Return the votes in a file, by its ending.

    ``.json`` is what Label Studio exports. ``.jsonl`` (or ``.ndjson``) and ``.csv``
    have ``id`` and ``label`` and may have ``annotator``, ``time``, ``skipped`` and
    ``ground_truth``; a line without a label that is not skipped says nothing.

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
    ...     read_votes(path, session="kettles", annotator="Ann")
    [Vote(id='s1', label='good', annotator='Ann', time=None, ground_truth=False)]
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; pass a file of labels")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error}); save it so") from None
    if path.suffix == ".json":
        return label_studio_votes(_json(text, path), session=session)
    if path.suffix in (".jsonl", ".ndjson"):
        lines = [line for line in text.splitlines() if line.strip()]
        rows = [_json(line, f"{path}, line {n}") for n, line in enumerate(lines, 1)]
    elif path.suffix == ".csv":
        rows = _table(text, path)
    else:
        raise ValueError(f"{path} ends in {path.suffix!r}; pass .json, .jsonl or .csv")
    return _votes(rows, path, annotator)


def _json(text: str, where):
    def refuse(number):
        raise ValueError(f"{number} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} cannot be read as JSON: {error}") from None


def _table(text: str, path) -> list[dict]:
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    try:
        rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from None
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(
                f"{path}, line {number}, has not as many cells as the first"
            )
    return rows


def _votes(rows: list, path, annotator: str) -> list[Vote]:
    votes, seen = [], set()
    for number, row in enumerate(rows, start=1):
        where = f"{path}, entry {number},"
        if not isinstance(row, dict) or not {"id", "label"} <= set(row):
            raise ValueError(f"{where} has no id or no label; name the columns so")
        skipped = _flag(row.get("skipped"), where, "skipped")
        label = row["label"]
        label = label.strip() if isinstance(label, str) else label
        if label in ("", None) and not skipped:
            continue
        vote = Vote(
            row["id"],
            None if skipped else label,
            row.get("annotator") or annotator,
            row.get("time") or None,
            _flag(row.get("ground_truth"), where, "ground_truth"),
        )
        if not isinstance(vote.id, str):
            raise ValueError(f"{where} has the id {vote.id!r:.80}; pass a string")
        if (key := (vote.id, vote.annotator, vote.time)) in seen:
            raise ValueError(
                f"{where} is the second about {vote.id!r:.80} by the same annotator; "
                "keep one of them"
            )
        seen.add(key)
        votes.append(vote)
    return votes


def _flag(value, where: str, name: str) -> bool:
    text = str(value).strip().lower() if value is not None else ""
    if text not in _YES | _NO:
        raise ValueError(f"{where} has {name}={value!r:.80}; pass true or false")
    return text in _YES
