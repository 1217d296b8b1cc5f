"""What is written about the benchmarks is what their records say."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from mdal.experiment import config_hash, read_config, read_records, resolve, run
from mdal.net import CompositeNet
from mdal.objectives import get_objective
from mdal.strategies import GraDS

ROOT = Path(__file__).parent.parent


def script(name):
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def planted_mixtures():
    return script("planted_mixtures")


@pytest.fixture(scope="module")
def rotating_mnist():
    return script("rotating_mnist")


def test_every_loss_finds_planted_mixtures(planted_mixtures):
    records = planted_mixtures.read()
    errors = {
        name: np.mean(
            [
                records[shape, seed, name, None]["error"]
                for shape in planted_mixtures.SHAPES
                for seed in planted_mixtures.SEEDS
            ]
        )
        for name in ("zero_one", "probability", "cross_entropy")
    }
    assert max(errors.values()) <= 0.03
    assert min(errors.values()) == errors["zero_one"] <= 0.015


@pytest.mark.parametrize("page", ["README.md", "benchmarks/README.md"])
def test_the_pages_show_the_tables_of_the_records(planted_mixtures, page):
    text = (ROOT / page).read_text()
    records = planted_mixtures.read()
    head, _, *rows = planted_mixtures.table(records).splitlines()
    shown = rows if page.startswith("benchmarks") else rows[:6]
    for line in (head, *shown):
        assert line in text
    assert planted_mixtures.few_labels_table(records) in text


def test_a_record_can_be_made_again(planted_mixtures):
    record = planted_mixtures.read()["shifted", 0, "kernel mean", None]
    again = planted_mixtures.run("shifted", 0, "kernel mean", None)
    assert again["error"] == pytest.approx(record["error"], abs=1e-6)


def test_cal_is_worth_its_training(rotating_mnist):
    records = rotating_mnist.read()

    def accuracies(name, labels):
        return rotating_mnist.accuracies(records, "test", name, labels)

    erm, cal, cal_fa = (accuracies(name, 450) for name in ("ERM", "CAL", "CAL-FA"))
    assert cal.mean() >= erm.mean() + 8
    assert cal.mean() > cal_fa.mean()
    for labels in (150, 900):
        erm, cal = accuracies("ERM", labels), accuracies("CAL", labels)
        error = (cal - erm).std(ddof=1) / len(cal) ** 0.5
        assert cal.mean() >= erm.mean() - error


@pytest.mark.parametrize("page", ["README.md", "benchmarks/README.md"])
def test_the_pages_show_the_accuracies_of_the_records(rotating_mnist, page):
    text = (ROOT / page).read_text()
    assert rotating_mnist.table(rotating_mnist.read()) in text
    if page.startswith("benchmarks"):
        assert rotating_mnist.table(rotating_mnist.read(), "development") in text


def test_the_records_are_of_the_present_defaults(rotating_mnist):
    """A changed default would make the table one of settings that nobody has."""
    for record in rotating_mnist.read().values():
        if record["split"] == "test":
            net = CompositeNet(**record["settings"])
            objective = get_objective(net.method, **net.get_params_for("method"))
            assert plain(objective.get_params()) == record["objective"]
            own = {name: getattr(net, name) for name in rotating_mnist.OWN}
            assert own == record["net"]


@pytest.fixture(scope="module")
def grads_temperature():
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)  # it uses the data of another script
    try:
        return script("grads_temperature")
    finally:
        sys.path.remove(folder)


def test_the_temperature_of_grads_was_chosen_on_these_records(grads_temperature):
    text = (ROOT / "benchmarks/README.md").read_text()
    records = grads_temperature.read()
    table = grads_temperature.table(records)
    assert table in text and len(table.splitlines()) == 7
    assert f"GraDS, T = {GraDS().temperature}" in table


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "benchmarks/experiments").glob("*.toml")),
    ids=lambda p: p.stem,
)
def test_every_experiment_can_be_run(path):
    configs = resolve(read_config(path))
    assert len({config_hash(config) for config in configs}) == len(configs)


def test_records_stand_under_the_hash_of_what_was_run():
    folders = sorted((ROOT / "benchmarks/records").glob("*/*/config.json"))
    assert folders
    for path in folders:
        assert config_hash(json.loads(path.read_text())) == path.parent.name
    for record in read_records(ROOT / "benchmarks/records"):
        mean = np.mean(list(record["by_domain"].values()))
        assert record["accuracy"] == pytest.approx(mean)
        assert record["labels"] == sum(record["spent"].values())


def experiments(*names):
    """All methods of experiments, by name."""
    folder = ROOT / "benchmarks/experiments"
    found = [read_config(folder / f"{name}.toml")["methods"] for name in names]
    return {name for methods in found for name in methods}


def test_every_published_row_can_be_run_and_its_average_is_that_of_its_rounds():
    published = json.loads((ROOT / "benchmarks/published.json").read_text())
    parts = ("", "_ablations", "_others", "_variants")
    d6 = [f"rotating_mnist_d6{part}" for part in parts]
    for table, rows in published.items():
        if table not in ("source", "number_of_domains"):
            names = d6 if table == "rotating_mnist_d6" else [table]
            assert set(rows) <= experiments(*names)
            for name, (*rounds, average) in rows.items():
                assert np.mean(rounds) == pytest.approx(average, abs=0.11), name


def systems():
    return read_config(ROOT / "benchmarks/systems.toml")["methods"]


STRATEGIES = ("Random", "Margin", "BADGE", "Cluster-Margin", "Energy")
PAPER = {  # every system in the paper's tables
    "CAL",
    *(f"{s}, {a}" for s in (*STRATEGIES, "BvSB-DA") for a in ("joint", "separate")),
    *(f"{m} + {s}" for m in ("CAL", "CAL-alpha", "CAL-FA") for s in STRATEGIES),
    *(f"CAL, without {part}" for part in ("2nd term", "3rd term", "both terms")),
    *(f"CAL + Random, without {part}" for part in ("2nd term", "3rd term")),
    "CAL + Random, without optimal assignment",
    "Alignment in each domain + Random",
    *("CAL++ + Energy", "CAL-FA++ + Energy"),
    *("DANN", "CLUE", "EADA", "Heuristic", "SVM-Text"),
}


def test_every_system_of_the_paper_has_a_row():
    assert set(systems()) >= PAPER


@pytest.mark.parametrize("name", sorted(systems()))
def test_every_system_runs_two_rounds(name, tmp_path):
    experiment = {
        "dataset": {"name": "rotating_digits"},
        "budget": 12,
        "rounds": 2,
        "seeds": [0],
        "net": {"module__width": 8, "max_epochs": 1, "steps_per_epoch": 3},
        "methods": {name: systems()[name]},
    }
    records = run(experiment, tmp_path, progress=False)
    assert [record["labels"] for record in records] == [12, 24, 36]
    rows = [row for record in records for row in record["rows"]]
    assert len(set(rows)) == 24  # besides the first round's 12
    assert all(0 <= record["accuracy"] <= 1 for record in records)


def test_the_share_of_weight_near_the_diagonal_by_hand():
    tables = script("tables")
    records = [{"name": "CAL", "labels": 150, "alpha": np.eye(6).tolist()}]
    for name, uniform in (("d6", 0.5), ("d1_5", 26 / 36), ("d3_3", 0.5)):
        line = tables.shares(f"rotating_mnist_{name}", records).splitlines()[-1]
        assert line == f"| 150 | 1.00 | {uniform:.2f} |"
    for name, n, near in (("d6_90", 6, 16 / 36), ("d30", 30, 11 / 30)):
        even = {"labels": 150, "alpha": np.full((n, n), 1 / n).tolist()}
        both = [{"name": name, **even} for name in ("CAL", "CAL + Random")]
        *_, line = tables.shares(f"rotating_mnist_{name}", both).splitlines()
        assert line == f"| 150 | {near:.2f} | {near:.2f} | {near:.2f} |"


def test_labels_are_counted_up_to_the_first_round_that_is_good_enough():
    tables = script("tables")
    for means, needed in (
        ({150: 79.9, 300: 80.0, 450: 79.0}, "300"),
        ({150: 80.1}, "150"),
        ({150: 60.0, 300: 79.9}, "> 300"),
    ):
        assert tables._labels_needed(means) == needed


def test_the_pages_have_the_tables_of_the_records():
    tables = script("tables")
    for page in tables.PAGES:
        text = page.read_text()
        assert tables.filled(text) == text, "python benchmarks/tables.py --write"


def plain(settings):
    return {name: value for name, value in settings.items() if value is not None}
