"""The examples run, and say what their comments promise."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdal._commands import main
from mdal.session import Session

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *arguments, answers="", folder=None):
    result = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments],
        input=answers,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error::UserWarning"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_example_is_run_here():
    tested = {"label_by_hand", "grid_search", "frozen_embeddings", "split_a_budget"}
    tested |= {"custom_encoder", "custom_strategy", "session_on_digits"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested


def test_labelling_by_hand_loses_no_answer(tmp_path):
    arguments = ["--per-round", "4", "--labels", "mine.csv"]
    answers = ["1", "2", "", "nine", "3", "4", "q"]
    run("label_by_hand", *arguments, answers="\n".join(answers), folder=tmp_path)
    with (tmp_path / "mine.csv").open(newline="") as file:
        written = list(csv.reader(file))
    assert [label for _, label in written] == ["1", "2", "skipped", "3", "4"]
    assert len({row for row, _ in written}) == 5
    shown = run("label_by_hand", *arguments, answers="5\nq", folder=tmp_path)
    assert "4 labels" in shown
    assert len((tmp_path / "mine.csv").read_text().splitlines()) == 6


def test_a_grid_search_chooses():
    shown = run("grid_search")
    assert "lambda_d 0.1" in shown and shown.split()[-2:] == ["total", "50"]


def test_frozen_embeddings_need_few_labels():
    lines = run("frozen_embeddings").splitlines()
    accuracies = [float(line.split()[-1]) for line in lines[:5]]
    assert accuracies[-1] > accuracies[0] and accuracies[-1] > 0.8


def test_a_budget_is_split_between_cameras():
    lines = run("split_a_budget").splitlines()
    optimal, uniform = (
        [int(part.split()[-1]) for part in line.split(": ")[1].split(", ")]
        for line in lines[-2:]
    )
    assert sum(optimal) == sum(uniform) == 120
    assert optimal[0] < uniform[0]  # "all three", which the others cover


def test_a_session_on_digits_has_somebody_who_labels(tmp_path):
    run("session_on_digits", "make", folder=tmp_path)
    place, table = str(tmp_path / "digits"), str(tmp_path / "digits.csv")
    classes = [str(digit) for digit in range(10)]
    pool = ["--array", str(tmp_path / "digits.npy"), "--domain", "camera"]
    assert not main(
        ["session", "init", place, "--data", table, *pool, "--classes", *classes]
    )
    assert not main(["session", "query", place])
    run("session_on_digits", "label", "digits/tasks/round-0.csv", folder=tmp_path)
    labelled = str(tmp_path / "digits/tasks/round-0-labelled.csv")
    assert not main(["session", "import", place, labelled])
    with Session(place) as session:
        assert sum(session.status()["labelled"].values()) == 20


@pytest.mark.parametrize("name", ["custom_encoder", "custom_strategy"])
def test_ones_own_parts_work(name):
    assert "labels" in run(name)
