"""What is written about the benchmarks is what their records say."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def planted_mixtures():
    path = ROOT / "benchmarks" / "planted_mixtures.py"
    spec = importlib.util.spec_from_file_location("planted_mixtures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
