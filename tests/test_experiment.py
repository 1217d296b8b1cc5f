"""Experiments: what is run, what is recorded, and what records say."""

import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from filelock import FileLock
from scipy import stats

from mdal.budget import get_budget
from mdal.datasets import development_split, get_dataset
from mdal.experiment import (
    area_under_curve,
    config_hash,
    curves,
    labels_to_reach,
    markdown,
    paired,
    read_config,
    read_records,
    resolve,
    run,
    table,
)
from mdal.experiment._run import _learner, _loaded
from mdal.learner import CompositeActiveLearner
from mdal.objectives import get_objective, objective_names
from mdal.objectives._consistency import _TARGETS
from mdal.perturbations import image_jitter
from mdal.strategies import get_strategy, strategy_names


def shallow(**changes):
    """A small experiment that trains nothing deep."""
    return {
        "dataset": {"name": "shifted_domains", "n_per_domain": 60},
        "budget": 12,
        "rounds": 2,
        "seeds": [0, 1],
        "net": {"kind": "logistic_regression"},
        "methods": {
            "CAL": {"strategy": "badge"},
            "random": {"strategy": "random", "allocation": "separate"},
            "joint": {"strategy": "margin", "allocation": "joint"},
        },
        **changes,
    }


def deep(**changes):
    return {
        **shallow(),
        "net": {"max_epochs": 1, "steps_per_epoch": 3, "module__width": 8},
        "methods": {"CAL": {}, "ERM": {"method": "erm", "strategy": "random"}},
        **changes,
    }


def without_times(records):
    return [{k: v for k, v in r.items() if k != "seconds"} for r in records]


def quietly(experiment, folder, **options):
    return run(experiment, folder, progress=False, **options)


# Configurations


def test_a_configuration_has_every_value_that_counts():
    [config, erm] = resolve(deep())
    assert config["method"] == {"name": "cal", **get_objective("cal").get_params()}
    assert config["strategy"] == {"name": "grads", "temperature": 0.5}
    assert config["allocation"] == {"name": "optimal"}
    assert config["sizes"]["vectors"] == {"width": 256, "depth": 0}
    assert config["dataset"]["n_classes"] == 2
    assert config["net"]["lr"] == 1e-3 and config["net"]["discriminator__width"] == 256
    assert config["first_budget"] == 12 and config["split"] == "test"
    assert erm["method"]["second_term"] is False
    assert "similarity" not in config and "sizes" not in resolve(shallow())[0]
    assert resolve(shallow())[0]["similarity"] == {"gamma": None}
    plain = {"methods": {"ERM": {"method": "erm"}}}
    assert "similarity" not in resolve(shallow(**plain))[0]
    json.dumps(config, allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 13},
        {"rounds": 3},
        {"first_budget": 6},
        {"split": "development"},
        {"threads": 2},
        {"dataset": {"name": "shifted_domains", "n_per_domain": 61}},
        {"net": {"kind": "logistic_regression", "C": 2.0}},
        {"methods": {"CAL": {"strategy": {"name": "badge"}, "allocation": "size"}}},
        {"methods": {"CAL": {"strategy": {"name": "grads", "temperature": 1.0}}}},
    ],
)
def test_every_value_changes_the_hash(change):
    before, after = (resolve(e)[0] for e in (shallow(), shallow(**change)))
    assert config_hash(before) != config_hash(after)


def test_a_default_that_is_written_out_changes_no_hash():
    explicit = deep()
    explicit["net"] |= {"lr": 1e-3, "average_decay": 0.99}
    explicit["methods"]["CAL"] = {"strategy": {"name": "grads", "temperature": 0.5}}
    assert config_hash(resolve(explicit)[0]) == config_hash(resolve(deep())[0])
    assert config_hash(resolve(deep(seeds=[7]))[0]) == config_hash(resolve(deep())[0])


def test_a_changed_default_changes_the_hash_and_leaves_records_alone(
    monkeypatch, tmp_path
):
    before = quietly(deep(seeds=[0], rounds=0), tmp_path)
    monkeypatch.setitem(
        get_objective.__globals__["CAL"].__init__.__kwdefaults__, "alpha_from", 0.3
    )
    after = resolve(deep(rounds=0))[0]
    assert after["method"]["alpha_from"] == 0.3
    assert config_hash(after) not in {record["config"] for record in before}
    assert without_times(read_records(tmp_path)) == without_times(before)


@pytest.mark.parametrize("name", objective_names())
def test_every_method_can_be_in_a_configuration(name):
    [config] = resolve(deep(methods={"it": {"method": name}}))
    assert config["method"]["name"] == name


@pytest.mark.parametrize(
    ("defaults", "name"),
    [(image_jitter.__kwdefaults__, "shift"), (_TARGETS["images"], "threshold")],
)
def test_other_defaults_of_consistency_are_another_configuration(
    defaults, name, monkeypatch
):
    methods = {"it": {"method": "cal_consistency"}, "plain": {"method": "cal"}}
    before = resolve(deep(methods=methods))
    monkeypatch.setitem(defaults, name, 0.3)
    after = resolve(deep(methods=methods))
    assert config_hash(before[0]) != config_hash(after[0])
    assert config_hash(before[1]) == config_hash(after[1])


@pytest.mark.parametrize("name", strategy_names())
def test_every_strategy_can_be_in_a_configuration(name):
    [config] = resolve(deep(methods={"it": {"strategy": name}}))
    assert config["strategy"]["name"] == name


def test_experiments_can_share_methods(tmp_path):
    shared = {"methods": {"a": {"strategy": "margin"}, "b": {}, "c": {}}}
    (tmp_path / "shared.json").write_text(json.dumps(shared))
    folder = tmp_path / "experiments"
    folder.mkdir()

    def read(**entries):
        path = folder / "one.json"
        path.write_text(json.dumps({"methods_from": "../shared.json", **entries}))
        return read_config(path)["methods"]

    assert read() == shared["methods"]
    own = {"b": {"strategy": "random"}, "d": {}}
    found = read(only=["c", "b"], methods=own)
    assert found == {"c": {}, "b": {"strategy": "random"}, "d": {}}
    assert list(found) == ["c", "b", "d"]
    with pytest.raises(ValueError, match="has no method 'x'; it has 'a', 'b', 'c'"):
        read(only=["x"])
    with pytest.raises(TypeError, match="only='a'; pass a list"):
        read(only="a")
    with pytest.raises(TypeError, match="methods_from=3; pass a str"):
        read(methods_from=3)
    with pytest.raises(FileNotFoundError, match=r"other\.json does not exist"):
        read(methods_from="../other.json")
    (folder / "two.json").write_text(json.dumps({"only": ["a"]}))
    with pytest.raises(ValueError, match="only, but no methods_from"):
        read_config(folder / "two.json")


def test_shared_parameters_hold_for_all_methods_that_use_them():
    methods = {
        "a": {"strategy": "energy"},
        "b": {"strategy": {"name": "energy", "share": 0.7}},
        "c": {"strategy": "margin"},
    }
    found = resolve(shallow(methods=methods, strategies={"energy": {"share": 0.2}}))
    assert [c["strategy"].get("share") for c in found] == [0.2, 0.7, None]
    for wrong, message in (
        ({"enregy": {"share": 0.2}}, "'enregy' is unknown"),
        ({"energy": {"shares": 0.2}}, "Invalid parameter 'shares'"),
        ({"energy": 0.2}, "energy=0.2; pass a table"),
        ("energy", "strategies='energy'; pass a table"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            resolve(shallow(methods=methods, strategies=wrong))
    methods = {
        "a": {"method": "dann", "allocation": "separate"},
        "b": {"method": {"name": "dann", "weight": 0.1}, "allocation": "separate"},
        "c": {"method": "cal"},
    }
    found = resolve(deep(methods=methods, objectives={"dann": {"weight": 0.2}}))
    assert [c["method"].get("weight") for c in found] == [0.2, 0.1, None]
    with pytest.raises(ValueError, match="Invalid parameter 'weigth'"):
        resolve(deep(methods=methods, objectives={"dann": {"weigth": 0.2}}))
    with pytest.raises(TypeError, match="net='svm_text'; pass a table"):
        resolve(shallow(methods={"a": {"net": "svm_text"}}))


def test_a_method_may_have_another_kind_of_net():
    methods = {"deep": {}, "svm": {"net": {"kind": "svm_text", "C": 2.0}}}
    nets = [c["net"] for c in resolve(deep(methods=methods))]
    assert nets[0]["module__width"] == 8
    assert nets[1] == {"kind": "svm_text", "C": 2.0}


def test_a_classifier_that_is_not_deep_is_told_the_method(tmp_path):
    experiment = {
        "dataset": {"name": "shifted_domains", "n_per_domain": 60},
        **{"budget": 30, "rounds": 0, "seeds": [0]},
        "net": {"kind": "logistic_regression"},
        "methods": {
            "even": {"method": "erm", "allocation": "separate"},
            "by alpha": {"method": "cal"},
        },
    }
    records = run(experiment, tmp_path, progress=False)
    alpha = {record["name"]: np.array(record["alpha"]) for record in records}
    assert np.ptp(alpha["even"]) == 0
    assert np.ptp(alpha["by alpha"]) > 0.01


def test_networks_of_a_method_are_in_its_configuration_alone():
    methods = {"a": {"method": "dann", "allocation": "separate"}, "b": {}}
    nets = [c["net"] for c in resolve(deep(methods=methods))]
    assert nets[0]["domain_classifier__width"] == 256
    assert "domain_classifier__width" not in nets[1]


def test_some_domains_can_be_left_out(tmp_path):
    names = get_dataset("shifted_domains").names.tolist()
    whole = resolve(shallow())[0]
    assert "domains" not in whole
    some = quietly(shallow(domains=names[:2], seeds=[0]), tmp_path)
    assert all(list(r["by_domain"]) == names[:2] for r in some)
    assert all(list(r["spent"]) == names[:2] for r in some)
    with pytest.raises(ValueError, match="contains 'x', which the data set does not"):
        quietly(shallow(domains=["x"]), tmp_path)
    for wrong in ([], "a", ["a", "a"], [["a"]]):
        with pytest.raises(ValueError, match="pass a list of different names"):
            resolve(shallow(domains=wrong))


def test_folders_are_looked_for_where_the_data_are(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "mine").mkdir()
    for part, n in (("tr", 60), ("te", 30)):
        y, domains = np.arange(n) % 2, np.arange(n) % 3
        X = rng.normal(size=(n, 4)) + y[:, None]
        for name, array in (("X", X), ("Y", y), ("dm", domains)):
            np.save(tmp_path / "mine" / f"{name}_{part}.npy", array)
    experiment = shallow(
        dataset={"name": "feature_folder", "folder": "mine"}, seeds=[0]
    )
    records = quietly(experiment, tmp_path / "records", data_home=tmp_path)
    assert len(records) == 9


def test_files_of_both_kinds_are_read(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(shallow()))
    assert read_config(tmp_path / "a.json") == shallow()
    (tmp_path / "a.toml").write_text(
        'budget = 12\n[dataset]\nname = "shifted_domains"\n[methods.CAL]\n'
    )
    assert resolve(read_config(tmp_path / "a.toml"))[0]["rounds"] == 5


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"budgets": 3}, ValueError, "unknown entry 'budgets'; known are allocation|b"),
        ({"budget": 0}, ValueError, "budget=0"),
        ({"budget": "12"}, TypeError, "budget='12'"),
        ({"rounds": -1}, ValueError, "rounds=-1"),
        ({"split": "best"}, ValueError, "split='best'"),
        ({"seeds": 3}, TypeError, "seeds=3"),
        ({"seeds": []}, TypeError, r"seeds=\[\]"),
        ({"seeds": [0.5]}, ValueError, "seeds=0.5"),
        ({"methods": {}}, ValueError, "no method"),
        ({"methods": {"a": {"strategi": "x"}}}, ValueError, "unknown entry 'strategi'"),
        ({"methods": {"a": {"strategy": "x"}}}, ValueError, "strategy='x'"),
        ({"methods": {"a": {"allocation": "x"}}}, ValueError, "budget='x'"),
        ({"methods": {"a": {"method": "x"}}}, ValueError, "method='x'"),
        ({"methods": {"a": {"method": {"x": 1}}}}, TypeError, "a table with a name"),
        ({"methods": {"a": 3}}, TypeError, "is of type int"),
        ({"dataset": "none"}, ValueError, "name='none'"),
        ({"dataset": {"name": "vader4", "x": 1}}, ValueError, "no option 'x'"),
        ({"dataset": {"name": "feature_folder"}}, ValueError, "needs folder"),
        (
            {"dataset": {"name": "shifted_domains", "random_state": None}},
            TypeError,
            "random_state=None",
        ),
        ({"net": {"kind": "forest"}}, ValueError, "kind='forest'"),
        ({"net": {"epochs": 3}}, ValueError, "unknown entry 'epochs'"),
    ],
)
def test_what_is_wrong_with_an_experiment_is_named(change, error, message, tmp_path):
    with pytest.raises(error, match=message):
        quietly(shallow(**change), tmp_path / "records")
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize("text", ["budget = ", "\x00", "[dataset"])
def test_a_file_that_is_no_configuration_is_named(text, tmp_path):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ValueError, match=r"a\.toml cannot be read"):
        read_config(tmp_path / "a.toml")


# Runs


def test_records_follow_the_protocol(tmp_path):
    """Every round by hand, with a learner of the same seed."""
    records = quietly(deep(), tmp_path)
    for seed in (0, 1):
        data = get_dataset("shifted_domains", n_per_domain=60)
        X, truth, domains = (data[k][data.train] for k in ("X", "y", "domains"))
        mine = [r for r in records if r["name"] == "CAL" and r["seed"] == seed]
        y_mask = np.full(len(X), -1)
        for number, record in enumerate(mine):
            if number == 0:
                spent = record["spent"]
                assert set(spent.values()) == {3} and len(spent) == 4
                first = CompositeActiveLearner(
                    random_state=int(state(seed, 0)), budget_per_round=12
                )
                rows = first.fit(X, domains, y_mask).query()
            else:
                rows = mine[number - 1]["rows"]
                budget = mine[number - 1]["budget"]
                counts = {d: int((domains[rows] == d).sum()) for d in budget}
                assert counts == budget and sum(budget.values()) == 12
            y_mask[rows] = truth[rows]
            assert record["labels"] == (y_mask >= 0).sum() == 12 * (number + 1)
        learner = CompositeActiveLearner(random_state=int(state(seed, 2)))
        learner.set_params(
            net__max_epochs=1, net__steps_per_epoch=3, net__module__width=8
        )
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        learner.fit(X, domains, y_mask)
        torch.set_num_threads(before)
        score = learner.score(
            data.X[data.test], data.domains[data.test], data.y[data.test]
        )
        assert mine[-1]["accuracy"] == pytest.approx(score)
        assert mine[-1]["alpha"] == learner.alpha_.round(4).tolist()
        assert mine[-1]["rows"] == [] and mine[-1]["budget"] is None
        assert mine[-1]["versions"]["torch"].startswith(torch.__version__.split("+")[0])


def state(seed, number):
    return np.random.SeedSequence([seed, number]).generate_state(1)[0]


def test_all_methods_begin_with_the_same_labels(tmp_path):
    records = quietly(shallow(), tmp_path)
    for seed in (0, 1):
        first = [r for r in records if r["round"] == 0 and r["seed"] == seed]
        assert len(first) == 3
        assert len({json.dumps(r["spent"]) for r in first}) == 1
    joint = next(r for r in records if r["name"] == "joint")
    assert joint["budget"] == {"all domains": 12}


def test_no_seed_develops_on_rows_that_another_is_tested_on(tmp_path, monkeypatch):
    hidden, used = [], []

    def images(X):  # not turned, or turned upside down: the same with every seed
        return {image.round(3).tobytes() for image in X}

    def watched(data):
        hidden.append(images(data.X[data.test]))
        part = development_split(data)
        used.append(images(part.X))
        return part

    monkeypatch.setattr("mdal.experiment._run.development_split", watched)
    digits = {
        "name": "rotating_digits",
        "flat": True,
        "ranges": [[0, 1e-6], [180, 181]],
    }
    changes = {"dataset": digits, "split": "development", "rounds": 0}
    one = {"random": {"strategy": "random", "allocation": "separate"}}
    quietly(shallow(**changes, methods=one, seeds=[0, 100]), tmp_path)
    assert len(used) == 2 and all(hidden) and all(used)
    assert not set.union(*hidden) & set.union(*used)


def test_data_that_are_split_at_random_are_the_same_for_all_seeds():
    [config, *_] = resolve(shallow())
    assert config["dataset"]["random_state"] == 0
    other = resolve(shallow(dataset={"name": "shifted_domains", "random_state": 1}))[0]
    drawn = [_loaded(c, seed, None).X for c in (config, other) for seed in (0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[2], drawn[3])
    assert drawn[0].shape != drawn[2].shape


def test_data_with_test_rows_of_their_own_are_drawn_with_the_seed(monkeypatch):
    [config] = resolve({**deep(), "dataset": "rotating_mnist", "methods": {"CAL": {}}})
    assert "random_state" not in config["dataset"]
    monkeypatch.setattr("mdal.experiment._run.get_dataset", lambda **options: options)
    assert [_loaded(config, seed, None)["random_state"] for seed in (3, 4)] == [3, 4]


def test_nothing_is_run_twice(tmp_path, monkeypatch):
    first = quietly(shallow(seeds=[0]), tmp_path)
    monkeypatch.setattr(CompositeActiveLearner, "fit", None)
    assert quietly(shallow(seeds=[0]), tmp_path) == first


def test_an_experiment_can_grow(tmp_path):
    few = quietly(shallow(seeds=[0]), tmp_path)
    more = shallow(seeds=[0, 5])
    more["methods"]["size"] = {"strategy": "random", "allocation": "size"}
    records = quietly(more, tmp_path)
    assert len(records) == 4 * 2 * 3
    assert all(record in records for record in few)
    # An experiment of other methods in the same folder sees its own records only.
    assert len(quietly(shallow(seeds=[0]), tmp_path)) == 9
    assert len(read_records(tmp_path)) == 24


def test_jobs_make_no_difference(tmp_path):
    one = quietly(deep(), tmp_path / "one")
    two = quietly(deep(), tmp_path / "two", n_jobs=2)
    assert without_times(one) == without_times(two)


def test_a_line_that_was_cut_off_is_written_again(tmp_path):
    whole = quietly(shallow(seeds=[0]), tmp_path)
    path = next(tmp_path.glob("*/seed-0.jsonl"))
    content = path.read_bytes()
    for length in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        again = quietly(shallow(seeds=[0]), tmp_path)
        assert without_times(again) == without_times(whole)


def test_methods_that_only_pick_differently_share_their_first_net(tmp_path):
    methods = {
        "grads": {},
        "badge": {"strategy": "badge", "allocation": "separate"},
        "by error": {"strategy": "random", "allocation": "error"},
        "fa": {"method": "cal_fa"},
    }
    together = quietly(deep(methods=methods, rounds=1), tmp_path / "together")
    for name, method in methods.items():
        quietly(deep(methods={name: method}, rounds=1), tmp_path / "alone" / name)
    alone = read_records(tmp_path / "alone")
    assert without_times(together) == without_times(alone)
    untrained = {r["name"] for r in together if r["seconds"]["fit"] is None}
    assert untrained == {"badge"}
    assert {r["round"] for r in together if r["seconds"]["fit"] is None} == {0}


def test_a_net_that_cannot_be_kept_costs_no_record(tmp_path, monkeypatch):
    def full_disk(learner, folder):
        raise OSError(28, "No space left on device")

    expected = quietly(deep(seeds=[0]), tmp_path / "kept")
    monkeypatch.setattr(CompositeActiveLearner, "save", full_disk)
    records = quietly(deep(seeds=[0]), tmp_path / "full")
    assert without_times(records) == without_times(expected)
    assert all(record["seconds"]["fit"] is not None for record in records)


def test_two_runners_do_not_write_the_same_file(tmp_path):
    experiment = shallow(seeds=[0], rounds=0, methods={"CAL": {}})
    quietly(experiment, tmp_path)
    path = next(tmp_path.glob("*/seed-0.jsonl"))
    path.unlink()
    with (
        FileLock(path.with_suffix(".lock")),
        pytest.raises(RuntimeError, match="another process is writing"),
    ):
        quietly(experiment, tmp_path)
    assert not path.exists()


KILLED = """
import json, sys
from mdal.experiment import run
run(json.loads(sys.argv[1]), sys.argv[2], progress=False)
"""


def killed_runs(folder, experiment, kills, seconds, seed=0):
    """Run in processes that are killed at random moments; return how many were."""
    chance, done = random.Random(seed), 0
    command = [sys.executable, "-c", KILLED, json.dumps(experiment), str(folder)]
    while True:
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            limit = chance.uniform(*seconds) if done < kills else 600
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            done += 1
            continue
        assert process.returncode == 0, errors.decode()
        return done


def test_a_killed_runner_goes_on_where_it_stopped(tmp_path):
    experiment = shallow(rounds=3)
    start = time.perf_counter()
    expected = quietly(experiment, tmp_path / "undisturbed")
    seconds = time.perf_counter() - start
    # Long enough to import and to finish a few rounds, too short for all of them.
    subprocess.run([sys.executable, "-c", "import mdal"], check=True)
    importing = time.perf_counter() - start - seconds
    limits = (importing, importing + 0.6 * seconds + 1)
    killed_runs(tmp_path / "killed", experiment, kills=3, seconds=limits)
    found = read_records(tmp_path / "killed")
    assert without_times(found) == without_times(expected)


def test_a_failed_run_keeps_what_is_finished(tmp_path, monkeypatch):
    fit, calls = CompositeActiveLearner.fit, []

    def failing(self, *arguments, **named):
        calls.append(1)
        if len(calls) == 4:
            raise MemoryError
        return fit(self, *arguments, **named)

    monkeypatch.setattr(CompositeActiveLearner, "fit", failing)
    with pytest.raises(MemoryError):
        quietly(shallow(seeds=[0]), tmp_path)
    assert len(read_records(tmp_path)) == 2
    monkeypatch.undo()
    assert len(quietly(shallow(seeds=[0]), tmp_path)) == 9


def test_progress_is_shown(tmp_path, capsys):
    run(shallow(seeds=[0], rounds=0), tmp_path)
    assert "3/3" in capsys.readouterr().err


def test_allocations_and_strategies_are_those_of_the_configuration(tmp_path):
    [config] = resolve(
        shallow(
            methods={
                "it": {
                    "strategy": {"name": "energy", "share": 0.2},
                    "allocation": {"name": "error", "uniform_share": 0.25},
                }
            }
        )
    )
    learner = _learner(config, 0, 0)
    assert repr(learner.strategy) == repr(get_strategy("energy").set_params(share=0.2))
    assert learner.allocation.uniform_share == 0.25
    assert type(learner.allocation) is type(get_budget("error"))


# What records say


def records_of(accuracies, labels=(10, 20, 30)):
    """Records of given accuracies: {name: rows of accuracies, one row a seed}."""
    return [
        {
            "name": name,
            "seed": seed,
            "round": number,
            "labels": labels[number],
            "accuracy": float(value),
            "by_domain": {"a": float(value), "b": float(value) / 2},
        }
        for name, runs in accuracies.items()
        for seed, run in enumerate(runs)
        for number, value in enumerate(run)
    ]


@pytest.fixture
def two_methods():
    rng = np.random.default_rng(0)
    return {
        "CAL": 0.6 + 0.05 * rng.normal(size=(5, 3)),
        "random": 0.5 + 0.05 * rng.normal(size=(5, 3)),
    }


def test_a_table_has_means_and_standard_deviations(two_methods):
    rows = table(records_of(two_methods))
    assert [row["method"] for row in rows] == ["CAL", "random"]
    for row in rows:
        runs = 100 * two_methods[row["method"]]
        assert row["seeds"] == 5
        for number, labels in enumerate((10, 20, 30)):
            expected = runs[:, number].mean(), np.std(runs[:, number], ddof=1)
            assert row[labels] == pytest.approx(expected)
        average = runs.mean(axis=1)
        assert row["average"] == pytest.approx((average.mean(), average.std(ddof=1)))
    worst = table(records_of(two_methods), "worst", ["random"])
    assert worst[0]["average"][0] == pytest.approx(50 * two_methods["random"].mean())


def test_a_run_that_is_not_finished_does_not_count(two_methods):
    records = records_of(two_methods)
    unfinished = [
        r for r in records if (r["name"], r["seed"], r["round"]) != ("CAL", 4, 2)
    ]
    assert list(curves(unfinished)["CAL"]) == [0, 1, 2, 3]
    assert paired(unfinished, "CAL", "random")["seeds"] == 4


def test_a_paired_comparison_is_students(two_methods):
    found = paired(records_of(two_methods), "CAL", "random")
    one, other = (100 * two_methods[name].mean(axis=1) for name in ("CAL", "random"))
    assert found["difference"] == pytest.approx((one - other).mean())
    assert found["p"] == pytest.approx(stats.ttest_rel(one, other).pvalue)
    assert found["error"] == pytest.approx((one - other).std(ddof=1) / 5**0.5)
    by_round = 100 * (two_methods["CAL"] - two_methods["random"]).mean(axis=0)
    assert found["by_round"] == pytest.approx(by_round.tolist())
    alone = paired(records_of({"a": [[0.5]], "b": [[0.25]]}), "a", "b")
    assert alone["difference"] == 25 and alone["p"] is None


def test_labels_needed_are_interpolated():
    accuracies = {"a": [[0.5, 0.7, 0.9], [0.5, 0.6, 0.8]], "b": [[0.9, 0.9, 0.9]]}
    needed = labels_to_reach(records_of(accuracies), 0.7)
    assert needed["a"] == pytest.approx((22.5, np.std([20, 25], ddof=1)))
    assert needed["b"] == (10, 0)
    assert labels_to_reach(records_of(accuracies), 0.85)["a"] is None


def test_a_curve_that_falls_again_counts_from_its_first_crossing():
    assert labels_to_reach(records_of({"a": [[0.5, 0.8, 0.6]]}), 0.65)["a"] == (
        pytest.approx(15),
        0,
    )


def test_areas_are_means_over_labels():
    records = records_of({"a": [[0.0, 1.0, 1.0]]}, labels=(10, 20, 50))
    assert area_under_curve(records)["a"] == pytest.approx((100 * (5 + 30) / 40, 0))
    assert area_under_curve(records_of({"a": [[0.4]]}))["a"] == (40, 0)


def test_markdown_has_labels_in_order():
    rows = table(records_of({"a": [[0.5, 0.6]], "b": [[0.1, 0.2, 0.3]]}))
    head = markdown(rows).splitlines()[0]
    assert head == "| method | seeds | 10 labels | 20 labels | 30 labels | average |"
    # A single seed has no deviation.
    assert markdown(rows).splitlines()[2] == "| a | 1 | 50.0 | 60.0 |  | 55.0 |"


def test_wrong_questions_to_records_are_named(two_methods):
    records = records_of(two_methods)
    for call, message in (
        (lambda: table([]), "no records"),
        (lambda: table(records, names=["x"]), "no records of 'x'"),
        (lambda: paired(records, "CAL", "x"), "no records of 'x'"),
        (lambda: labels_to_reach(records, 80), "level=80"),
        (lambda: table(records + records_of({"CAL": [[0.1]]})), "two records"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
