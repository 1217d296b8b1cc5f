"""Files without code."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from mdal import persistence
from mdal.net import CompositeNet

SMALL = {"module__width": 8, "max_epochs": 1, "random_state": 0}


@pytest.fixture
def fitted(two_far_domains):
    X, y, domains = two_far_domains
    net = CompositeNet(method__lambda_d=0.5, optimizer_alpha__lr=0.2, **SMALL)
    return net.fit(X, y, domains=domains), X, y, domains


def test_a_net_is_read_back_as_it_was(fitted, tmp_path):
    net, X, _, domains = fitted
    net.save(tmp_path / "net.safetensors")
    back = CompositeNet.load(tmp_path / "net.safetensors")
    for ours, theirs in zip(
        back.observe(X, domains), net.observe(X, domains), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(back.alpha_, net.alpha_)
    np.testing.assert_array_equal(back.classes_, net.classes_)
    np.testing.assert_array_equal(back.domains_, net.domains_)
    assert back.history[:, "v_d"] == net.history[:, "v_d"]
    np.testing.assert_array_equal(back.tables_.hits, net.tables_.hits)
    assert back.get_params()["method__lambda_d"] == 0.5
    given = net.get_params(deep=False)
    given.pop("_params_to_validate")
    for name, value in given.items():
        assert back.get_params(deep=False)[name] == value


def test_a_net_that_was_read_back_can_go_on(fitted, tmp_path):
    net, X, y, domains = fitted
    net.save(tmp_path / "net")
    back = CompositeNet.load(tmp_path / "net").partial_fit(X, y, domains=domains)
    assert len(back.history) == 2
    assert (back.module_.heads.weight - net.module_.heads.weight).abs().max() < 0.2


def test_parts_that_are_no_plain_values_are_asked_for(two_far_domains, tmp_path):
    X, y, domains = two_far_domains
    encoder = nn.Linear(3, 5)
    net = CompositeNet(module__encoder=encoder, optimizer=torch.optim.SGD, **SMALL)
    net.fit(X, y, domains=domains).save(tmp_path / "net")
    with pytest.raises(ValueError, match="module__encoder, optimizer"):
        CompositeNet.load(tmp_path / "net")
    back = CompositeNet.load(
        tmp_path / "net", module__encoder=encoder, optimizer=torch.optim.SGD
    )
    np.testing.assert_array_equal(back.predict_proba(X), net.predict_proba(X))


@pytest.mark.parametrize(
    "names", [["b", "a"], [3, 1], [1.5, 0.5], [True, False], [("x", 2), ("w", 1)]]
)
def test_names_of_every_kind_survive(names, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = (X[:, 0] > 0).astype(int)
    net = CompositeNet(**SMALL).fit(X, y, domains=names * 10)
    net.save(tmp_path / "net")
    back = CompositeNet.load(tmp_path / "net")
    assert back.domains_.tolist() == net.domains_.tolist()
    assert back.domains_.dtype == net.domains_.dtype
    back.observe(X, names * 10)


def test_a_file_has_no_pickle_in_it(fitted, tmp_path):
    net, *_ = fitted
    net.save(tmp_path / "net")
    content = (tmp_path / "net").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert header["__metadata__"]["kind"] == "net"
    with pytest.raises((pickle.UnpicklingError, ValueError)):
        pickle.loads(content)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "state"
    persistence.save(path, "test", {"a": torch.ones(1)}, {"round": 1})

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        persistence.save(path, "test", {"a": torch.zeros(1)}, {"round": 2})
    with pytest.raises(TypeError, match="cannot be written"):
        persistence.save(path, "test", {}, {"round": object()})
    assert os.listdir(tmp_path) == ["state"]
    assert persistence.load(path, "test")[1] == {"round": 1}


def test_tensors_that_share_memory_are_written_whole(tmp_path):
    base = torch.arange(6.0).view(2, 3)
    persistence.save(tmp_path / "x", "test", {"a": base, "b": base.T}, {})
    tensors, _ = persistence.load(tmp_path / "x", "test")
    assert torch.equal(tensors["a"], base)
    assert torch.equal(tensors["b"], base.T)


def test_files_that_are_not_ours_are_named(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        persistence.load(path, "net")
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="not a file of this library"):
        persistence.load(path, "net")
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(ValueError, match="not a file of this library"):
        persistence.load(path, "net")
    persistence.save(path, "labels", {}, {})
    with pytest.raises(ValueError, match="holds a 'labels'"):
        CompositeNet.load(path)


def test_a_damaged_file_is_refused(fitted, tmp_path):
    net, *_ = fitted
    path = Path(tmp_path / "net")
    net.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a file of this library"):
        CompositeNet.load(path)


def test_files_of_later_versions_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(persistence, "FORMAT", 99)
    persistence.save(tmp_path / "x", "test", {}, {})
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"format 99.*upgrade"):
        persistence.load(tmp_path / "x", "test")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere; make it"):
        persistence.save(tmp_path / "nowhere" / "x", "test", {}, {})


def test_files_have_the_usual_permissions(tmp_path):
    persistence.save(tmp_path / "x", "test", {}, {})
    (tmp_path / "y").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode


SIMPLE = st.none() | st.booleans() | st.integers() | st.text() | st.floats()


@given(
    st.recursive(
        SIMPLE,
        lambda parts: (
            st.lists(parts)
            | st.lists(parts).map(tuple)
            | st.dictionaries(st.text().filter(lambda k: not k.startswith("$")), parts)
        ),
        max_leaves=10,
    )
)
def test_every_plain_value_is_read_back_as_it_was(value):
    text = json.dumps(persistence.to_plain(value), allow_nan=False)
    assert repr(persistence.from_plain(json.loads(text))) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array([0.5, np.inf]),
        np.array([np.float32(0.1)]),
        np.array(["a", "bc"]),
        np.array([True]),
        np.zeros((0, 3)),
    ],
)
def test_arrays_are_read_back_as_they_were(array):
    text = json.dumps(persistence.to_plain({"array": array}), allow_nan=False)
    back = persistence.from_plain(json.loads(text))["array"]
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
    assert persistence.from_plain(persistence.to_plain(array.dtype.type(1))) == (
        array.dtype.type(1).item()
    )


@pytest.mark.parametrize("value", [{1: 2}, {"$x": 1}, {"a": {1}}, print, [b"x"]])
def test_values_that_cannot_be_written_are_named(value):
    with pytest.raises(TypeError, match="cannot be written to a file; use"):
        persistence.to_plain(value)


def test_a_long_history_of_odd_values_is_kept(fitted, tmp_path):
    net, *_ = fitted
    net.history.record("score", np.float32(0.5))
    net.history.record("nothing", float("nan"))
    net.history.record("large", np.zeros((150, 150)))
    net.save(tmp_path / "net")
    last = CompositeNet.load(tmp_path / "net").history[-1]
    assert last["score"] == 0.5
    assert np.isnan(last["nothing"])
    assert last["large"].shape == (150, 150)


def test_results_of_a_search_can_be_written(two_far_domains, tmp_path):
    X, y, domains = two_far_domains
    settings = {
        "lr": np.float64(1e-3),
        "optimizer__betas": (0.8, 0.9),
        "method__alpha": np.eye(2),
        "max_epochs": np.int64(1),
    }
    net = CompositeNet(**{**SMALL, **settings}).fit(X, y, domains=domains)
    net.save(tmp_path / "net")
    back = CompositeNet.load(tmp_path / "net")
    assert back.optimizer__betas == (0.8, 0.9)
    np.testing.assert_array_equal(back.predict_proba(X), net.predict_proba(X))


def test_weights_of_another_net_are_refused(fitted, tmp_path):
    net, *_ = fitted
    net.save(tmp_path / "net")
    with pytest.raises(ValueError, match="are not those of this net"):
        CompositeNet.load(tmp_path / "net", module__width=4)


def test_a_net_whose_method_was_changed_is_not_written(fitted, tmp_path):
    net, X, y, domains = fitted
    net.set_params(method="erm")
    with pytest.raises(ValueError, match="fit again"):
        net.save(tmp_path / "net")
    net.fit(X, y, domains=domains).save(tmp_path / "net")
    assert CompositeNet.load(tmp_path / "net").method == "erm"


def test_a_damaged_file_is_never_taken_for_a_whole_one(tmp_path):
    path = tmp_path / "state"
    tensors = {"weights": torch.arange(60.0), "half": torch.ones(3).bfloat16()}
    persistence.save(path, "example", tensors, {"names": ["a", "b"]})
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole)
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        try:
            found, header = persistence.load(path, "example")
        except ValueError as error:
            assert "state" in str(error)
        else:  # what is not part of the content: the version that wrote it
            assert header == {"names": ["a", "b"]}
            assert all(torch.equal(found[name], tensors[name]) for name in tensors)
