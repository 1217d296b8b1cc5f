"""The command line: what people type, and what they read."""

import ast
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.metadata import entry_points

import pytest

from mdal._commands import _demo, main
from mdal.datasets import dataset_names
from mdal.experiment import resolve
from mdal.strategies import strategy_names

COMMANDS = ["allocate", "datasets", "demo", "plot", "run", "strategies", "table"]

EXPERIMENT = {
    "dataset": {"name": "shifted_domains", "n_per_domain": 60},
    "budget": 12,
    "rounds": 1,
    "seeds": [0, 1],
    "net": {"kind": "logistic_regression"},
    "methods": {
        "CAL": {"strategy": "badge"},
        "random": {"strategy": "random", "allocation": "separate"},
    },
}


@pytest.fixture
def records(tmp_path, capsys):
    (tmp_path / "it.json").write_text(json.dumps(EXPERIMENT))
    assert main(["run", str(tmp_path / "it.json"), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "| CAL | 2 |" in shown and str(tmp_path / "it") in shown
    return tmp_path / "it"


def test_the_script_is_the_command_line():
    (script,) = entry_points(group="console_scripts", name="mdal")
    assert script.load() is main
    shown = subprocess.run(
        [sys.executable, "-m", "mdal", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert all(command in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as done:
        main([command, "--help"])
    assert done.value.code == 0
    shown = capsys.readouterr().out
    assert "usage: mdal" in shown and len(shown.splitlines()) > 4
    assert "example" in shown or command in ("datasets", "strategies")


def test_a_budget_is_split(capsys):
    arguments = "allocate --budget 60 --weights 0.5 0.3 0.2 --spent 20 20 20"
    assert main([*arguments.split(), "--names", "shop", "site", "ward"]) == 0
    assert capsys.readouterr().out == "shop  40\nsite  16\nward  4\n"


def test_all_names_are_listed(capsys):
    assert main(["datasets"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{name}\n" in shown for name in dataset_names())
    assert "ranges = 'D6'" in shown
    assert main(["strategies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == strategy_names()
    assert all(len(line.split()) > 3 for line in lines)


def test_what_is_listed_of_a_data_set_can_be_set_in_an_experiment(capsys):
    main(["datasets"])
    lines = capsys.readouterr().out.splitlines()
    for name, options in zip(lines[::2], lines[1::2], strict=True):
        listed = dict(re.findall(r"(\w+)(?: = ('\w*'|[^,]+))?", options))
        given = {"folder": "somewhere"} if "folder" in listed else {}
        values = {k: ast.literal_eval(v) for k, v in listed.items() if v}
        dataset = {"name": name, **values, **given}
        [config] = resolve({**EXPERIMENT, "dataset": dataset, "methods": {"a": {}}})
        assert config["dataset"] == dataset  # and nothing is missing in the list


def test_tables_compare(records, capsys):
    arguments = ["--methods", "random", "CAL", "--against", "random", "--reach", "0.1"]
    assert main(["table", str(records), *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| random | 2 |") and lines[3].startswith("| CAL")
    assert lines[5].startswith("CAL against random, averaged over rounds: ")
    assert lines[7:] == ["random, 10%: 12 ± 0 labels", "CAL, 10%: 12 ± 0 labels"]
    assert main(["table", str(records), "--metric", "worst", "--reach", "1"]) == 0
    assert "not reached" in capsys.readouterr().out


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.images, self.text = [], []

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.images.append(dict(attributes))

    def handle_data(self, data):
        self.text.append(data)


def test_figures_are_drawn(records, tmp_path, capsys):
    assert main(["plot", str(records), "--output", str(tmp_path / "out")]) == 0
    assert str(tmp_path / "out" / "index.html") in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    pictures = {"curves.png", "domains.png", "budgets.png", "alpha.png", "bound.png"}
    assert names == {"index.html"} | pictures
    page = Page()
    page.feed((tmp_path / "out" / "index.html").read_text())
    assert len(page.images) == 5
    assert all(
        image["src"].startswith("data:") and image["alt"] for image in page.images
    )
    assert "CAL" in page.text


def test_methods_without_alpha_have_figures_too(tmp_path):
    one = {"random": EXPERIMENT["methods"]["random"]}
    changed = {**EXPERIMENT, "methods": one, "seeds": [0]}
    changed["net"] = {"max_epochs": 1, "steps_per_epoch": 2}
    changed["methods"]["random"] = {**one["random"], "method": "erm"}
    (tmp_path / "it.json").write_text(json.dumps(changed))
    assert main(["run", str(tmp_path / "it.json"), "--quiet"]) == 0
    out = tmp_path / "out"
    assert main(["plot", str(tmp_path / "it"), "--output", str(out)]) == 0
    assert {path.stem for path in out.glob("*.png")} == {"curves", "domains"}


def test_the_demo_tells_a_story(tmp_path, capsys, monkeypatch):
    made = _demo.experiment

    def shorter(rounds, seeds):
        changed = made(rounds, seeds)
        changed["net"] = {"max_epochs": 1, "steps_per_epoch": 5}
        return changed

    monkeypatch.setattr(_demo, "experiment", shorter)
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--rounds", "1", "--seeds", "1", "--jobs", "1"]) == 0
    shown = capsys.readouterr()
    assert "| CAL | 1 |" in shown.out and "CAL against uniform-random" in shown.out
    assert "4/4" in shown.err
    assert os.path.join("mdal-demo", "index.html") in shown.out
    assert (tmp_path / "mdal-demo" / "index.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["allocate", "--budget", "-5", "--weights", "1"], "budget=-5"),
        (
            ["allocate", "--budget", "5", "--weights", "1", "--names", "a", "b"],
            "2 values for 1 domains",
        ),
        (["run", "missing.toml"], "missing.toml does not exist"),
        (["table", "missing"], "missing does not exist"),
        (["plot", "missing"], "missing does not exist"),
        (["demo", "--rounds", "-1"], "rounds=-1"),
        (["demo", "--seeds", "0"], "seeds="),
    ],
)
def test_wrong_input_is_named(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_has_no_records(tmp_path, capsys):
    assert main(["table", str(tmp_path)]) == 2
    assert "no records" in capsys.readouterr().err


def test_an_interruption_says_that_nothing_is_lost(monkeypatch, capsys, tmp_path):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "run", interrupted)
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 130
    assert "what is finished is kept" in capsys.readouterr().err
