"""Data sets: their form, their files, their angles, their splits.

With the environment variable MDAL_DATA the tests read the real files in that folder;
without it they write small files in the same formats.
"""

import gzip
import hashlib
import importlib.util
import io
import os
import pickle
import random
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils import Bunch

from mdal.datasets import (
    _files,
    _mnist,
    _office,
    _text,
    dataset_names,
    development_split,
    fetch_office_caltech,
    fetch_rotating_mnist,
    fetch_vader4,
    get_dataset,
    load_feature_folder,
    load_rotating_digits,
    make_shifted_domains,
    rotated,
)
from mdal.datasets._bunch import generator
from mdal.datasets._rotation import angle_ranges
from mdal.datasets._split import held_out

ROOT = Path(__file__).parent.parent
RANGES = ("D2", "D6", "D30", "D50", "D150", "D6-90", "D1&5", "D3&3")
RANDOM = [name for name in dataset_names() if name != "feature_folder"]


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def write_mnist(folder, n_train=3000, n_test=600):
    """Write random images as MNIST's files; return their hashes."""
    rng, hashes = np.random.default_rng(0), {}
    folder.mkdir(parents=True)
    for part, n in ("train", n_train), ("t10k", n_test):
        for kind, array in (
            ("images-idx3", rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)),
            ("labels-idx1", rng.integers(0, 10, n, dtype=np.uint8)),
        ):
            shape = np.array(array.shape, ">i4").tobytes()
            content = bytes([0, 0, 8, array.ndim]) + shape + array.tobytes()
            hashes[f"{part}-{kind}-ubyte"] = sha256(content)
            packed = gzip.compress(content, compresslevel=1)
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(packed)
    return hashes


def write_office(folder):
    """Write random counts as Office-Caltech's files; return files and hashes."""
    rng, files = np.random.default_rng(1), {}
    folder.mkdir(parents=True)
    sizes = zip((120, 143, 60, 80), _office.FILES.items(), strict=True)
    for n, (domain, (file, _)) in sizes:
        counts = rng.poisson(rng.gamma(1.0, size=800), (n, 800)).astype(np.uint8)
        counts[:, 7] = 0
        labels = np.arange(n, dtype=np.uint8)[:, None] % 10 + 1
        savemat(folder / file, {"fts": counts, "labels": labels})
        files[domain] = file, sha256((folder / file).read_bytes())
    return files


def write_vader(folder):
    """Write random sentences as VADER's files; return files and hashes."""
    rng, files = np.random.default_rng(2), {}
    words = np.array([f"word{i}" for i in range(150)])
    folder.mkdir(parents=True)
    for domain, (file, _) in _text.FILES.items():
        lines = []
        for row in range(400):
            document = f"{row // 8}_{row % 8}" if domain < "f" else str(row)
            rating = rng.choice([-1.5, -0.25, 0.0, 0.5, 2.0])
            lines.append(f"{document}\t{rating}\t{' '.join(rng.choice(words, 12))} é")
        content = "\r\n".join([*lines, "400\t1.0\t!"]).encode()
        files[domain] = file, sha256(content)
        (folder / f"{file}.gz").write_bytes(gzip.compress(content))
    return files


@pytest.fixture(scope="module")
def data_home(tmp_path_factory):
    """A folder with all files, the real ones if there are."""
    if "MDAL_DATA" in os.environ:
        yield Path(os.environ["MDAL_DATA"])
        return
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_mnist, "SHA256", write_mnist(folder / "mnist"))
        patch.setattr(_office, "FILES", write_office(folder / "office_caltech_surf"))
        patch.setattr(_text, "FILES", write_vader(folder / "vader4"))
        yield folder


def write_features(folder, n_train=60, n_test=30, n_domains=12):
    rng = np.random.default_rng(3)
    folder.mkdir(parents=True, exist_ok=True)
    for part, n in ("tr", n_train), ("te", n_test):
        np.save(folder / f"X_{part}.npy", rng.normal(size=(n, 5)).astype(np.float32))
        np.save(folder / f"Y_{part}.npy", 1 + np.arange(n) % 3)
        np.save(folder / f"dm_{part}.npy", np.arange(n) % n_domains)
    return folder


@pytest.fixture(scope="module")
def load(data_home, tmp_path_factory):
    """Load a data set by name, without a second reading of what was read before."""
    folder = write_features(tmp_path_factory.mktemp("features"))
    options = {
        "feature_folder": {"folder": folder},
        "office_caltech": {"data_home": data_home},
        "rotating_mnist": {"data_home": data_home, "download_if_missing": False},
        "vader4": {"data_home": data_home, "features": "hashed"},
    }
    known = {}

    def loaded(name, again=False, **others):
        key = name, tuple(others.items())
        if again or key not in known:
            data = get_dataset(name, **{**options.get(name, {}), **others})
            if again:
                return data
            known[key] = data
        return known[key]

    return loaded


def equal(a, b):
    if sparse.issparse(a):
        return a.shape == b.shape and (a != b).nnz == 0
    return np.array_equal(a, b)


# The form


@pytest.mark.parametrize("name", dataset_names())
def test_every_data_set_has_the_same_form(load, name):
    data = load(name)
    n_samples = data.X.shape[0]
    assert isinstance(data, Bunch)
    assert len(data.y) == len(data.domains) == n_samples
    assert data.names.tolist() == sorted(set(data.domains.tolist()))
    assert data.names.dtype.kind == data.domains.dtype.kind == "U"
    assert data.classes.tolist() == sorted(data.classes.tolist())
    assert data.y.dtype == np.int64
    assert np.unique(data.y).tolist() == list(range(len(data.classes)))
    assert isinstance(data.DESCR, str)
    for rows in data.train, data.test:
        assert len(rows) > 0
        assert (np.diff(rows) > 0).all()
    both = np.concatenate([data.train, data.test])
    assert np.sort(both).tolist() == list(range(n_samples))


@pytest.mark.parametrize("name", dataset_names())
@pytest.mark.parametrize("subset", ["train", "test"])
def test_a_subset_has_these_rows_of_the_whole(load, name, subset):
    data, part = load(name), load(name, subset=subset)
    rows = data[subset]
    for key in ("X", "y", "domains", "groups", "degrees"):
        if data.get(key) is not None:
            assert equal(part[key], data[key][rows]), key
    assert part[subset].tolist() == list(range(len(rows)))
    assert len(part["test" if subset == "train" else "train"]) == 0
    assert part.names.tolist() == data.names.tolist()


@pytest.mark.parametrize("name", dataset_names())
def test_the_arrays_can_be_had_alone(load, name):
    data = load(name, subset="test")
    arrays = load(name, again=True, subset="test", return_X_y_domains=True)
    assert len(arrays) == 3
    for array, key in zip(arrays, ("X", "y", "domains"), strict=True):
        assert equal(array, data[key])


@pytest.mark.parametrize("name", RANDOM)
def test_the_seed_decides_and_nothing_global_does(load, name):
    def states():
        return (
            repr(np.random.get_state()),
            torch.get_rng_state().tolist(),
            random.getstate(),
        )

    first, before = load(name), states()
    again = load(name, again=True)
    other = load(name, again=True, random_state=1)
    assert states() == before
    for key in ("X", "y", "domains", "train", "test"):
        assert equal(first[key], again[key])
    assert not all(
        equal(first[key], other[key]) for key in ("X", "domains", "train", "test")
    )


def test_a_generator_is_used_and_none_is_new():
    seeds = [np.random.RandomState(3) for _ in range(2)]
    a, b = (load_rotating_digits(random_state=seed) for seed in seeds)
    assert equal(a.X, b.X)
    assert not equal(generator(None).random(5), generator(None).random(5))


@pytest.mark.parametrize("name", dataset_names())
def test_an_unknown_subset_is_named(load, name):
    with pytest.raises(
        ValueError, match=r"subset='some' is unknown; choose one of all"
    ):
        load(name, subset="some")


def test_an_unknown_name_is_named():
    with pytest.raises(ValueError, match=r"name='mnist' is unknown; .*rotating_mnist"):
        get_dataset("mnist")


def test_importing_brings_no_plots_and_no_tables():
    code = (
        "import skorch, sys; before = set(sys.modules); import mdal.datasets; "
        "print({'matplotlib', 'pandas'} & (set(sys.modules) - before))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


# Rotations


@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_quarter_turns_are_those_of_numpy(size, quarters):
    images = np.random.default_rng(0).random((5, size, size))
    turned = rotated(images, np.full(5, 90.0 * quarters))
    expected = np.rot90(images, quarters, axes=(1, 2))  # counterclockwise
    np.testing.assert_allclose(turned[:, 0], expected, atol=1e-5)


def test_an_image_does_not_depend_on_its_company():
    images = np.random.default_rng(0).integers(0, 256, (7001, 8, 8), dtype=np.uint8)
    degrees = np.random.default_rng(1).uniform(0, 180, 7001)
    together = rotated(images, degrees)
    assert together.dtype == np.float32
    for rows in slice(0, 3), slice(4998, 5003), slice(7000, None):
        np.testing.assert_array_equal(
            together[rows], rotated(images[rows], degrees[rows])
        )


def test_bytes_are_scaled_numbers_are_not_and_channels_turn_alike():
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 6, 6), dtype=np.uint8)
    degrees = [10, 20, 30, 40]
    of_bytes = rotated(images, degrees)
    np.testing.assert_allclose(
        of_bytes * 255, rotated(images * 1.0, degrees), rtol=1e-4
    )
    np.testing.assert_array_equal(of_bytes[:, 1], rotated(images[:, 1], degrees)[:, 0])


@pytest.mark.parametrize(
    ("images", "degrees", "message"),
    [
        (np.zeros((2, 4, 5)), [0, 0], r"shape \(2, 1, 4, 5\); pass square images"),
        (np.zeros((2, 4)), [0, 0], r"shape \(2, 4\); pass square images"),
        (np.zeros((2, 4, 4)), [0], "degrees has shape"),
        (np.zeros((2, 4, 4)), [0, np.nan], "degrees contains NaN"),
        (np.full((2, 4, 4), np.nan), [0, 0], "images contains NaN"),
    ],
)
def test_wrong_images_and_angles_are_named(images, degrees, message):
    with pytest.raises(ValueError, match=message):
        rotated(images, degrees)


@pytest.mark.parametrize("ranges", RANGES)
def test_angles_lie_within_the_domain_that_is_named_after_them(load, ranges):
    data = load("rotating_mnist", ranges=ranges)
    low, high = np.array([name.split("-") for name in data.domains], dtype=float).T
    assert (low - 1e-9 <= data.degrees).all()
    assert (data.degrees < high).all()
    for rows in data.train, data.test:
        _, sizes = np.unique(data.domains[rows], return_counts=True)
        assert len(sizes) == len(data.names)
        assert np.ptp(sizes) <= 1
    # Uniform within the range: quarters are equally full.
    u = (data.degrees - low) / (high - low)
    quarters = np.bincount((4 * u).astype(int).clip(0, 3)) / len(u)
    np.testing.assert_allclose(quarters, 0.25, atol=0.03)


@pytest.mark.parametrize(
    ("ranges", "n_domains", "names"),
    [
        ("D2", 2, ["000-090", "090-180"]),
        ("D6", 6, ["000-030", "150-180"]),
        ("D30", 30, ["000-006", "174-180"]),
        ("D50", 50, ["000.0-003.6", "176.4-180.0"]),
        ("D150", 150, ["000.0-001.2", "178.8-180.0"]),
        ("D6-90", 6, ["00-15", "75-90"]),
        ("D1&5", 6, ["00-02", "94-96"]),
        ("D3&3", 6, ["00-02", "94-96"]),
        ("D7", 7, ["000.00-025.71", "154.29-180.00"]),
        ([(350, 360), (0, 10)], 2, ["000-010", "350-360"]),
    ],
)
def test_ranges_have_the_names_of_the_paper(ranges, n_domains, names):
    found = angle_ranges(ranges).names().tolist()
    assert len(found) == n_domains
    assert [found[0], found[-1]] == names
    assert found == sorted(found)


def test_the_two_clusters_of_ranges_are_those_of_the_paper():
    assert angle_ranges("D1&5").names().tolist() == (
        ["00-02", "86-88", "88-90", "90-92", "92-94", "94-96"]
    )
    assert angle_ranges("D3&3").names().tolist() == (
        ["00-02", "02-04", "04-06", "90-92", "92-94", "94-96"]
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 60)),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    st.integers(0, 2**32 - 1),
)
def test_angles_lie_within_any_ranges(pairs, seed):
    ranges = angle_ranges([(low, low + width) for low, width in pairs])
    domains, degrees = ranges.draw(50, np.random.default_rng(seed))
    edges = np.array([name.split("-") for name in ranges.names()], dtype=float)
    low, high = edges[domains].T
    assert (low - 1e-9 <= degrees).all()
    assert (degrees <= high + 1e-9).all()


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ("D0", "ranges='D0' is unknown; choose 'D6'"),
        ("D6-400", "ranges='D6-400' is unknown"),
        ("E6", "ranges='E6' is unknown"),
        ([(30, 10)], "not in order; pass pairs with 0 <= low < high <= 360"),
        ([(-10, 10)], "not in order"),
        ([(0, 10), (0, 10)], "the domain 00-10 twice"),
        ([0, 10], "ranges has shape"),
        ("D2000", "2000 domains for 1797 images"),
    ],
)
def test_wrong_ranges_are_named(ranges, message):
    with pytest.raises(ValueError, match=message):
        load_rotating_digits(ranges)


def test_digits_are_images_or_vectors_from_0_to_1():
    images, vectors = (load_rotating_digits(flat=flat) for flat in (False, True))
    assert images.X.shape == (1797, 1, 8, 8)
    assert images.X.dtype == np.float32
    assert 0 <= images.X.min() < images.X.max() <= 1 + 1e-6
    assert equal(vectors.X, images.X.reshape(1797, 64))


# MNIST's files


@pytest.mark.parametrize("seed", [0, 1])
def test_images_are_those_of_the_benchmark_to_the_last_bit(data_home, load, seed):
    path = ROOT / "benchmarks" / "rotating_mnist.py"
    spec = importlib.util.spec_from_file_location("rotating_mnist", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    parts = script.load(data_home / "mnist", "test", seed)
    data = load("rotating_mnist", random_state=seed)
    codes = np.searchsorted(data.names, data.domains)
    for rows, (X, y, domains) in zip((data.train, data.test), parts, strict=True):
        assert equal(data.X[rows], X.numpy())
        assert equal(data.y[rows], y)
        assert equal(codes[rows], domains)


@pytest.fixture
def forty_images(tmp_path, monkeypatch):
    """A folder of 40 + 10 images in MNIST's form."""
    monkeypatch.setattr(_mnist, "SHA256", write_mnist(tmp_path / "mnist", 40, 10))
    return tmp_path


def test_files_may_be_unzipped_and_in_the_folder_itself(forty_images):
    before = fetch_rotating_mnist("D2", data_home=forty_images)
    for path in (forty_images / "mnist").iterdir():
        (forty_images / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    shutil.rmtree(forty_images / "mnist")
    after = fetch_rotating_mnist("D2", data_home=str(forty_images))
    assert equal(before.X, after.X)
    assert equal(before.y, after.y)


def test_openml_is_asked_for_what_is_missing(forty_images, tmp_path, monkeypatch):
    expected = fetch_rotating_mnist("D2", data_home=forty_images)
    (train, train_y), (test, test_y) = _mnist.mnist(forty_images, False)
    asked = []

    def fetch_openml(name, **options):
        asked.append((name, options))
        pixels = np.concatenate([train, test]).reshape(50, 784).astype(float)
        target = np.concatenate([train_y, test_y]).astype(str).astype(object)
        return Bunch(data=pixels, target=target)

    monkeypatch.setattr(_mnist, "fetch_openml", fetch_openml)
    monkeypatch.setattr(_mnist, "N_TRAIN", 40)
    (forty_images / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    data = fetch_rotating_mnist("D2", data_home=forty_images)
    for key in ("X", "y", "domains", "train", "test"):
        assert equal(data[key], expected[key])
    ((name, options),) = asked
    assert name == "mnist_784"
    assert options["version"] == 1
    assert options["as_frame"] is False
    assert options["data_home"] == str(forty_images)


def test_no_answer_from_openml_is_named_with_the_remedy(tmp_path, monkeypatch):
    def fetch_openml(name, **options):
        raise ConnectionError("nobody home")

    monkeypatch.setattr(_mnist, "fetch_openml", fetch_openml)
    with pytest.raises(OSError, match=r"\(nobody home\); put MNIST's four IDX files"):
        fetch_rotating_mnist(data_home=tmp_path)


def test_missing_and_damaged_images_are_named_with_the_remedy(forty_images):
    options = {"data_home": forty_images, "download_if_missing": False}
    path = forty_images / "mnist" / "train-labels-idx1-ubyte.gz"
    content = path.read_bytes()
    path.write_bytes(gzip.compress(b"other"))
    with pytest.raises(
        ValueError, match=r"labels-idx1-ubyte.gz has SHA-256 .* expected"
    ):
        fetch_rotating_mnist(**options)
    path.write_bytes(content[:-10])
    with pytest.raises(ValueError, match=r"cannot be unzipped .* get it again"):
        fetch_rotating_mnist(**options)
    path.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"no train-labels-idx1-ubyte; put .*if_missing=True"
    ):
        fetch_rotating_mnist(**options)


@pytest.mark.parametrize(
    "fetch",
    [
        lambda: fetch_rotating_mnist(download_if_missing=False),
        fetch_office_caltech,
        fetch_vader4,
    ],
)
def test_the_default_folder_is_named_and_not_made(fetch, tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError) as caught:
        fetch()
    assert str(tmp_path / "nowhere" / "mdal") in str(caught.value)
    assert not (tmp_path / "nowhere").exists()


# Splits


@pytest.mark.parametrize(
    ("name", "share"),
    [("office_caltech", 0.2), ("rotating_digits", 0.25), ("shifted_domains", 0.25)],
)
def test_every_class_of_every_domain_has_its_share(load, name, share):
    data = load(name)
    tested = np.isin(np.arange(len(data.y)), data.test)
    for domain in data.names:
        mine = data.domains == domain
        assert abs(tested[mine].sum() - share * mine.sum()) <= 0.5
        for label in range(len(data.classes)):
            cell = mine & (data.y == label)
            assert abs(tested[cell].sum() - share * cell.sum()) < 1.5


def test_documents_are_never_on_both_sides_and_have_their_share(load):
    data = load("vader4")
    assert not set(data.groups[data.train]) & set(data.groups[data.test])
    for domain in data.names:
        mine = data.domains == domain
        tested = np.isin(np.unique(data.groups[mine]), data.groups[data.test])
        assert abs(tested.sum() - 0.2 * len(tested)) <= 0.5
        assert abs(np.isin(np.flatnonzero(mine), data.test).mean() - 0.2) < 0.03
        # As many as there should be of those that are mostly positive.
        _, document = np.unique(data.groups[mine], return_inverse=True)
        positive = np.bincount(document, data.y[mine]) > np.bincount(document) / 2
        assert abs(tested[positive].sum() - 0.2 * positive.sum()) < 1.5
    for domain in ("amazon", "editorials"):
        mine = data.domains == domain
        assert len(set(data.groups[mine])) < mine.sum() / 4


@given(st.data())
def test_any_split_leaves_documents_whole_and_no_domain_without_rows(data):
    n_samples = data.draw(st.integers(1, 60))

    def draw(largest):
        codes = st.lists(
            st.integers(0, largest), min_size=n_samples, max_size=n_samples
        )
        return np.array(data.draw(codes))

    groups = draw(20)
    domains, labels = groups % 3, draw(4) - 1
    share = data.draw(st.floats(0.01, 0.99))
    seed = data.draw(st.integers(0, 2**32 - 1))
    documents = data.draw(st.sampled_from([groups, None]))
    test = held_out(domains, labels, documents, share, np.random.default_rng(seed))
    units = np.arange(n_samples) if documents is None else documents
    assert not set(units[test]) & set(units[~test])
    for domain in np.unique(domains):
        mine = domains == domain
        n_units, n_tested = len(set(units[mine])), len(set(units[mine & test]))
        assert n_tested <= max(n_units - 1, 0)
        if n_units > 1:
            assert n_tested >= 1
            assert abs(n_tested - share * n_units) <= 1


def test_a_document_of_two_domains_stays_whole():
    domains, groups = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 2, 3, 4])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        test = held_out(domains, np.zeros(6, dtype=int), groups, 0.4, rng)
        assert test[2] == test[3]


@pytest.mark.parametrize("name", dataset_names())
def test_the_development_split_has_no_test_row(load, name):
    data = load(name)
    part = development_split(data, test_size=0.3)
    assert equal(part.X, data.X[data.train])
    assert equal(part.y, data.y[data.train])
    assert equal(part.domains, data.domains[data.train])
    both = np.concatenate([part.train, part.test])
    assert np.sort(both).tolist() == list(range(len(data.train)))
    assert part.names.tolist() == data.names.tolist()
    for domain in data.names:
        mine = np.flatnonzero(part.domains == domain)
        share = len(np.intersect1d(mine, part.test)) / len(mine)
        assert abs(share - 0.3) < 0.15
    if data.groups is not None:
        assert not set(part.groups[part.train]) & set(part.groups[part.test])


def test_the_development_split_leaves_its_input_alone_and_follows_its_seed(load):
    data = load("shifted_domains")
    before = data.train.copy(), data.X.copy()
    parts = [development_split(data, random_state=seed) for seed in (0, 0, 1)]
    assert equal(data.train, before[0])
    assert equal(data.X, before[1])
    assert equal(parts[0].test, parts[1].test)
    assert not equal(parts[0].test, parts[2].test)


def test_the_development_split_names_what_it_cannot_divide(load):
    with pytest.raises(TypeError, match="dataset is of type list"):
        development_split([1, 2])
    with pytest.raises(TypeError, match="has no X, y, domains and train"):
        development_split(Bunch(X=np.zeros((2, 1))))
    with pytest.raises(ValueError, match=r"train is empty; load it with subset='all'"):
        development_split(load("shifted_domains", subset="test"))
    with pytest.raises(ValueError, match="test_size=0 is out of range"):
        development_split(load("shifted_domains"), test_size=0)


# Office-Caltech


def test_office_features_are_scaled_over_training_rows_alone(load):
    data, counts = load("office_caltech"), load("office_caltech", scaled=False).X
    assert data.X.dtype == np.float32
    assert np.isfinite(data.X).all()
    train = data.X[data.train].astype(float)
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-4)
    used = counts[data.train].any(axis=0)
    np.testing.assert_allclose(train.std(axis=0)[used], 1, atol=1e-4)
    assert (data.X[:, ~used] == 0).all() or counts[:, ~used].any()
    # By hand, for one number.
    shares = counts / counts.sum(axis=1, keepdims=True)
    column = shares[data.train, 3]
    expected = (shares[data.test[0], 3] - column.mean()) / column.std()
    assert data.X[data.test[0], 3] == pytest.approx(expected, rel=1e-4)


def test_office_has_ten_named_classes_in_four_named_domains(load):
    data = load("office_caltech")
    assert data.names.tolist() == ["amazon", "caltech", "dslr", "webcam"]
    assert len(data.classes) == 10
    assert data.classes[[0, 9]].tolist() == ["backpack", "projector"]


def test_missing_and_damaged_office_files_are_named(data_home, tmp_path):
    shutil.copytree(data_home / "office_caltech_surf", tmp_path / "copy")
    path = tmp_path / "copy" / "dslr_SURF_L10.mat"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match=r"dslr_SURF_L10.mat has SHA-256 .* expected"):
        fetch_office_caltech(data_home=tmp_path / "copy")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"no dslr_SURF_L10.mat; put its four"):
        fetch_office_caltech(data_home=tmp_path / "copy")


# Sentences


@pytest.fixture
def archive(data_home, tmp_path):
    """The source package of vaderSentiment in a folder of its own."""

    def packed(members):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return file.getvalue()

    inner = {
        f"hutto_ICWSM_2014/{file}": _files.content(data_home / "vader4" / f"{file}.gz")
        for file, _ in _text.FILES.values()
    }
    name = "vaderSentiment-3.3.2"
    resources = f"{name}/additional_resources/hutto_ICWSM_2014.tar.gz"
    path = tmp_path / f"{name}.tar.gz"
    path.write_bytes(packed({resources: packed(inner)}))
    return path


def test_the_source_package_holds_the_same_sentences(load, archive):
    expected = load("vader4", features="text")
    data = fetch_vader4(data_home=archive.parent, features="text")
    for key in ("X", "y", "domains", "groups", "train", "test"):
        assert equal(data[key], expected[key])
    archive.rename(archive.parent / archive.name.lower())
    again = fetch_vader4(data_home=archive.parent, features="text")
    assert equal(again.X, expected.X)


def test_a_damaged_source_package_is_named(archive):
    archive.write_bytes(archive.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"3.3.2.tar.gz does not hold the four files"):
        fetch_vader4(data_home=archive.parent)


def test_missing_and_damaged_sentences_are_named(data_home, tmp_path):
    shutil.copytree(data_home / "vader4", tmp_path / "vader4")
    path = tmp_path / "vader4" / "tweets_GroundTruth.txt.gz"
    path.write_bytes(gzip.compress(b"1\t1.0\tother"))
    with pytest.raises(ValueError, match=r"tweets_GroundTruth.txt.gz has SHA-256"):
        fetch_vader4(data_home=tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        fetch_vader4(data_home=tmp_path)
    command = "pip download --no-deps --no-binary :all: vaderSentiment==3.3.2 -d"
    assert "no tweets_GroundTruth.txt;" in str(caught.value)
    assert f'{command} "{tmp_path}"' in str(caught.value)


def test_the_class_is_the_sign_of_the_rating_and_zeros_are_dropped(data_home, load):
    data, rows = load("vader4", features="text"), 0
    for domain, (file, _) in _text.FILES.items():
        text = _files.content(data_home / "vader4" / f"{file}.gz").decode()
        lines = [line.split("\t") for line in text.split("\r\n")]
        lines = [line for line in lines if float(line[1]) != 0]
        mine = slice(rows, rows + len(lines))
        assert (data.domains[mine] == domain).all()
        assert data.X[mine].tolist() == [line[2] for line in lines]
        assert data.y[mine].tolist() == [int(float(line[1]) > 0) for line in lines]
        rows += len(lines)
    assert rows == len(data.y)
    assert data.classes.tolist() == ["negative", "positive"]


def test_features_have_their_forms_and_lengths(load):
    n_samples = len(load("vader4").y)
    words = load("vader4", features="tfidf")
    few = load("vader4", features="tfidf", n_features=50)
    hashed = load("vader4", features="hashed")
    lsa = load("vader4", features="lsa", n_features=20)
    assert few.X.shape == (n_samples, 50)
    assert hashed.X.shape == (n_samples, 2**14)
    assert lsa.X.shape == (n_samples, 20)
    assert isinstance(lsa.X, np.ndarray)
    known = words.X.getnnz(axis=1) > 0
    assert not known.all()
    np.testing.assert_allclose(np.linalg.norm(lsa.X, axis=1), known, atol=1e-5)
    for data in (words, few, hashed):
        assert data.X.format == "csr"
    for data in (words, few, hashed, lsa):
        assert data.X.dtype == np.float32
        assert equal(data.train, words.train)


def test_words_of_test_sentences_alone_are_not_known(load):
    data = load("vader4", features="tfidf")
    # Each column is a word or pair that two training sentences have.
    assert (data.X[data.train].getnnz(axis=0) >= 2).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "words"}, "features='words' is unknown; choose one of hashed"),
        ({"features": "text", "n_features": 5}, "n_features=5 with features='text'"),
        ({"n_features": 0}, "n_features=0 is not a whole number of at least 1"),
        ({"features": "lsa", "n_features": 10**6}, "n_features=1000000 exceeds the"),
        ({"test_size": 1.0}, "test_size=1.0 is out of range"),
        ({"random_state": -1}, "random_state=-1 is not a whole number"),
    ],
)
def test_wrong_options_of_sentences_are_named(load, options, message):
    with pytest.raises(ValueError, match=message):
        load("vader4", **options)


# Folders of features


def test_a_folder_is_read_as_it_was_saved(tmp_path):
    folder = write_features(tmp_path)
    data = load_feature_folder(folder)
    for key, file in ("X", "X"), ("y", "Y"), ("domains", "dm"):
        saved = [np.load(folder / f"{file}_{part}.npy") for part in ("tr", "te")]
        found = data.domains.astype(int) if key == "domains" else data[key]
        assert equal(
            data.classes[found] if key == "y" else found, np.concatenate(saved)
        )
    assert data.names.tolist() == [f"{i:02d}" for i in range(12)]
    assert data.classes.tolist() == [1, 2, 3]
    assert data.test.tolist() == list(range(60, 90))


def test_domains_of_a_folder_get_the_names_that_are_given(tmp_path):
    folder = write_features(tmp_path, n_domains=3)
    data = load_feature_folder(str(folder), domain_names=["real", "art", "clip"])
    assert data.domains[:3].tolist() == ["real", "art", "clip"]
    assert data.names.tolist() == ["art", "clip", "real"]
    with pytest.raises(ValueError, match=r"domain_names=\['a'\] for the domains"):
        load_feature_folder(folder, domain_names=["a"])


def test_names_and_whole_numbers_in_other_types_are_read(tmp_path):
    folder = write_features(tmp_path, n_domains=2)
    for part in ("tr", "te"):
        labels = np.load(folder / f"Y_{part}.npy")
        np.save(folder / f"Y_{part}.npy", labels[:, None].astype(float))
        domains = np.load(folder / f"dm_{part}.npy")
        np.save(folder / f"dm_{part}.npy", np.array(["photo", "art"])[domains])
    data = load_feature_folder(folder)
    assert data.classes.dtype == np.int64
    assert data.domains[:2].tolist() == ["photo", "art"]


def test_features_can_stay_on_the_disk(tmp_path):
    folder = write_features(tmp_path)
    data = load_feature_folder(folder, mmap=True, subset="train")
    assert isinstance(data.X, np.memmap)
    assert equal(data.X, np.load(folder / "X_tr.npy"))
    with pytest.raises(ValueError, match="pass subset='train' or 'test'"):
        load_feature_folder(folder, mmap=True)


@pytest.mark.parametrize(
    ("file", "array", "message"),
    [
        ("X_te", np.zeros((30, 4)), r"X_te.npy has rows of shape \(4,\), X_tr.npy of"),
        ("X_tr", np.zeros(60), r"X_tr.npy has shape \(60,\) and holds float64"),
        ("X_tr", np.full((60, 5), "a"), "X_tr.npy .* holds <U1 values; save numbers"),
        ("X_te", np.where(np.eye(30, 5, -2), np.nan, 0), "NaN or infinity in row 2"),
        ("Y_tr", np.zeros(59), r"Y_tr.npy has shape \(59,\) for 60 samples"),
        ("Y_te", np.zeros((30, 2)), r"Y_te.npy has shape \(30, 2\) for 30 samples"),
        ("Y_te", np.full(30, -1), "has -1 or NaN, which means no label"),
        ("dm_te", np.zeros(31), r"dm_te.npy has shape \(31,\) for 30 samples"),
        ("dm_tr", np.full(60, np.nan), "domains has no value in row 0"),
    ],
)
def test_wrong_arrays_in_a_folder_are_named(tmp_path, file, array, message):
    folder = write_features(tmp_path)
    np.save(folder / f"{file}.npy", array)
    with pytest.raises(ValueError, match=message):
        load_feature_folder(folder)


def test_missing_files_and_python_objects_in_a_folder_are_named(tmp_path):
    folder = write_features(tmp_path)
    np.save(folder / "Y_tr.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"Y_tr.npy is no file of numbers or strings"):
        load_feature_folder(folder)
    (folder / "Y_tr.npy").write_bytes(pickle.dumps(np.arange(60)))
    with pytest.raises(ValueError, match=r"Y_tr.npy is no file of numbers or strings"):
        load_feature_folder(folder)
    (folder / "Y_tr.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"Y_tr.npy is no file of numbers or strings"):
        load_feature_folder(folder)
    (folder / "Y_tr.npy").unlink()
    (folder / "dm_te.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"no Y_tr.npy, dm_te.npy; save all of"):
        load_feature_folder(folder)


# Made-up domains


def told_apart(data, i, j):
    """How well two domains can be told apart: 0.5 is not at all."""
    rows = np.isin(data.domains, data.names[[i, j]])
    model = LogisticRegression()
    return cross_val_score(model, data.X[rows], data.domains[rows], cv=3).mean()


def test_domains_of_a_group_are_nearer_than_others():
    data = make_shifted_domains(300, 4, groups=[[0, 2], [1, 3]])
    assert max(told_apart(data, 0, 2), told_apart(data, 1, 3)) < 0.6
    for i, j in ((0, 1), (0, 3), (2, 1), (2, 3)):
        assert told_apart(data, i, j) > 0.85
        assert data.similarity[i, j] == 0
    assert data.similarity[0].tolist() == [0.5, 0, 0.5, 0]


def test_a_boundary_holds_within_its_group_alone():
    data = make_shifted_domains(500, 4, groups=[[0, 2], [1, 3]])
    # Centred, so that the turned boundary alone makes the difference.
    X = data.X.copy()
    for name in data.names:
        X[data.domains == name] -= X[data.domains == name].mean(axis=0)
    first = data.domains == "d0"
    model = LogisticRegression().fit(X[first], data.y[first])
    scores = [model.score(X[d], data.y[d]) for d in data.domains == data.names[:, None]]
    assert min(scores[0], scores[2]) > 0.95
    assert max(scores[1], scores[3]) < 0.7


@pytest.mark.parametrize("groups", ["line", "circle"])
def test_neighbours_are_nearer_than_domains_two_steps_off(groups):
    data = make_shifted_domains(300, 6, groups=groups, shift=1.0, separation=0.5)
    assert told_apart(data, 0, 1) + 0.05 < told_apart(data, 0, 2)
    assert data.similarity[0, 1] > data.similarity[0, 2]
    ends_meet = data.similarity[0, 5] == pytest.approx(data.similarity[0, 1])
    assert ends_meet == (groups == "circle")


def test_places_are_at_the_distance_that_is_asked_for():
    for groups in ([[0], [1], [2]], "circle", "line"):
        data = make_shifted_domains(
            4000, 3, groups=groups, shift=5.0, separation=0.0, spread=0.0
        )
        means = [data.X[data.domains == name].mean(axis=0) for name in data.names]
        assert np.linalg.norm(means[0] - means[1]) == pytest.approx(5.0, abs=0.2)


@pytest.mark.parametrize("groups", [None, "line", "circle", [[0], [1, 2, 3, 4]]])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_made_up_domains_are_of_equal_size_and_balanced(groups, n_classes):
    data = make_shifted_domains(30, 5, 4, n_classes, groups=groups)
    assert data.X.shape == (150, 4)
    np.testing.assert_allclose(data.similarity.sum(axis=1), 1)
    for name in data.names:
        assert np.bincount(data.y[data.domains == name]).tolist() == (
            [30 // n_classes] * n_classes
        )


def test_there_may_be_one_domain_and_more_groups_than_features():
    for groups in (None, "line", "circle"):
        assert make_shifted_domains(10, 1, groups=groups).similarity.tolist() == [[1.0]]
    data = make_shifted_domains(10, 12, 3, groups=[[i] for i in range(12)])
    assert data.names.tolist() == [f"d{i:02d}" for i in range(12)]
    assert np.isfinite(data.X).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": "ring"}, "groups='ring' is unknown; choose one of circle, line"),
        ({"groups": [[0], [1]]}, r"groups=\[\[0\], \[1\]\] does not name each of 4"),
        ({"groups": [0, 1, 2, 3]}, "pass lists of the numbers from 0 to 3"),
        ({"groups": [[0, 1], [1, 2, 3]]}, "does not name each of 4 domains once"),
        ({"n_features": 1}, "n_features=1 is not a whole number of at least 2"),
        ({"n_per_domain": 1}, "n_per_domain=1 is not a whole number of at least 2"),
        ({"shift": -1.0}, "shift=-1.0 is out of range"),
    ],
)
def test_wrong_options_of_made_up_domains_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_shifted_domains(**options)
