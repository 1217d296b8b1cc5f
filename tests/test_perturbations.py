"""Perturbations: what they do, exactly, and what they leave as it is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from mdal.perturbations import (
    affine,
    dropped,
    erased,
    feature_jitter,
    get_perturbation,
    image_jitter,
    mixed,
    noisy,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def images(n=20, *shape):
    return torch.rand(n, *(shape or (1, 8, 8)), generator=seeded(1))


EVERY = {
    "affine": lambda X, g: affine(X, g, rotation=20, shift=0.1, scale=0.1),
    "noisy": noisy,
    "erased": erased,
    "dropped": dropped,
    "mixed": mixed,
    "image_jitter": image_jitter,
    "feature_jitter": feature_jitter,
}


@pytest.fixture(params=EVERY)
def perturb(request):
    return EVERY[request.param]


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (3, 6, 9)])
def test_the_seed_decides_and_no_global_generator_moves(perturb, shape):
    X = images(20, *shape)
    kept, before = X.clone(), torch.get_rng_state()
    once, again, other = (perturb(X, seeded(seed)) for seed in (3, 3, 4))
    assert once.shape == X.shape and once.dtype == X.dtype
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert not torch.equal(once, X)
    assert torch.equal(X, kept)
    assert torch.equal(torch.get_rng_state(), before)


def test_everything_stays_on_its_device(perturb):
    assert perturb(images().to("meta"), None).device.type == "meta"


def test_strengths_of_0_change_nothing():
    X = images(5, 3, 6, 9)
    settings = dict.fromkeys(image_jitter.__kwdefaults__, 0.0)
    torch.testing.assert_close(image_jitter(X, **settings), X)
    X = X.flatten(1)
    settings = dict.fromkeys(feature_jitter.__kwdefaults__, 0.0)
    assert torch.equal(feature_jitter(X, **settings), X)


@pytest.mark.parametrize("shape", [(8, 8), (6, 11)])
def test_affine_maps_are_scipys(shape):
    """The same draws, as a matrix of pixels about the centre."""
    X = images(6, *shape)
    strengths = {"rotation": 40.0, "shift": 0.2, "scale": 0.3}
    found = affine(X, seeded(5), **strengths).numpy()
    draws = seeded(5)
    angles = np.deg2rad(40) * (2 * torch.rand(6, generator=draws).numpy() - 1)
    sizes = 1 + 0.3 * (2 * torch.rand(6, generator=draws).numpy() - 1)
    moves = 0.2 * (2 * torch.rand(6, 2, generator=draws).numpy() - 1)
    for i, image in enumerate(X.numpy()):
        cos, sin = np.cos(angles[i]), np.sin(angles[i])
        # Rows and columns: the vertical coordinate comes first.
        matrix = sizes[i] * np.array([[cos, sin], [-sin, cos]])
        centre = (np.array(shape) - 1) / 2
        move = moves[i][::-1] * shape
        slow = ndimage.affine_transform(
            image, matrix, centre - matrix @ centre + move, order=1, mode="nearest"
        )
        np.testing.assert_allclose(found[i], slow, atol=1e-4)


def test_a_disc_stays_a_disc_however_it_is_turned():
    row, column = np.indices((31, 31)) - 15
    disc = torch.tensor((np.hypot(row, column) < 9).astype("float32"))
    turned = affine(disc.expand(30, 1, 31, 31), seeded(), rotation=180)
    assert ((turned > 0.5) != (disc > 0.5)).float().mean() < 0.02


def test_noise_is_in_proportion_to_the_spread():
    X = torch.randn(4000, 3, generator=seeded()) * torch.tensor([0.0, 1.0, 50.0])
    added = noisy(X, seeded(1), noise=0.2) - X
    assert added[:, 0].abs().max() == 0
    ratio = added[:, 1:].std(dim=0) / X[:, 1:].std(dim=0)
    np.testing.assert_allclose(ratio, 0.2, rtol=0.05)


@given(st.integers(0, 1000), st.floats(0, 1))
def test_what_is_erased_is_one_rectangle_with_the_mean(seed, erase):
    X = images(4, 2, 7, 5)
    after = erased(X, seeded(seed), erase=erase)
    for old, new in zip(X, after, strict=True):
        changed = (old != new).any(dim=0)
        rows, columns = changed.any(dim=1).nonzero(), changed.any(dim=0).nonzero()
        if len(rows):
            box = changed[
                rows.min() : rows.max() + 1, columns.min() : columns.max() + 1
            ]
            assert box.all() and box.sum() == changed.sum()
            assert len(rows) <= erase * 7 + 1 and len(columns) <= erase * 5 + 1
            mean = old.mean(dim=(1, 2))[:, None].expand(-1, int(changed.sum()))
            torch.testing.assert_close(new[:, changed], mean)


def test_erased_parts_reach_every_pixel_and_every_size():
    X = images(3000, 6, 6)
    changed = erased(X, seeded(), erase=0.5) != X
    assert changed.any(dim=0).all()
    assert set(changed.any(dim=2).sum(dim=1).tolist()) == {0, 1, 2, 3}


def test_dropped_features_are_0_and_the_others_as_they_were():
    X = 1 + images(500, 40)
    after = dropped(X, seeded(), drop=0.3)
    assert torch.equal(after[after != 0], X[after != 0])
    assert (after == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)


@given(st.integers(0, 1000), st.floats(0, 0.49))
def test_mixed_samples_are_on_the_way_to_another(seed, mix):
    X = images(12, 6)
    after = mixed(X, seeded(seed), mix=mix)
    other = X[torch.randperm(12, generator=seeded(seed))]
    way, gone = (other - X).norm(dim=1), (after - X).norm(dim=1)
    torch.testing.assert_close(gone + (other - after).norm(dim=1), way)
    assert (gone <= mix * way + 1e-6).all()


@pytest.mark.parametrize("kind", ["images", "features", "words"])
def test_digits_keep_their_class(kind):
    """Those who know perturbed digits can tell what others were."""
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X, dtype=torch.float32)
    shape = (64,)
    if kind == "images":
        X, shape = X.view(-1, 8, 8), (8, 8)
    perturb = get_perturbation(kind, shape)
    copies = [perturb(X, seeded(seed)).flatten(1).numpy() for seed in range(9)]
    known = np.concatenate([copy[::2] for copy in copies[1:]])
    judge = KNeighborsClassifier(5).fit(known, np.tile(y[::2], 8))
    assert judge.score(copies[0][1::2], y[1::2]) > 0.9


def test_names_and_shapes_choose_the_perturbation():
    X = images(6, 5)
    auto = get_perturbation("auto", (5,))(X, seeded())
    assert torch.equal(auto, feature_jitter(X, seeded()))
    X = images(6, 5, 5)
    auto = get_perturbation({"name": "auto", "rotation": 9}, (5, 5))(X, seeded())
    assert torch.equal(auto, image_jitter(X, seeded(), rotation=9))
    own = get_perturbation(lambda X: X + 1, (5, 5))
    assert torch.equal(own(X, None), X + 1)


@pytest.mark.parametrize(
    ("perturb", "shape", "message"),
    [
        ("blur", (5,), "perturb='blur' is unknown"),
        (3, (5,), "perturb=3 is unknown"),
        ("images", (5,), "for images, and samples have shape"),
        ({"name": "words", "noise": 0.1}, (5,), "'noise' is unknown; choose one of"),
        ({"name": "words", "drop": 1.5}, (5,), "drop=1.5 is out of range"),
        ({"name": "images", "rotation": -3}, (5, 5), "rotation=-3 is out of range"),
    ],
)
def test_wrong_perturbations_are_named(perturb, shape, message):
    with pytest.raises(ValueError, match=message):
        get_perturbation(perturb, shape)


@pytest.mark.parametrize("made", [lambda X: X[:2], lambda X: None])
def test_a_function_that_changes_the_shape_is_named(made):
    with pytest.raises(ValueError, match="return a tensor of the same shape"):
        get_perturbation(made, (5,))(images(6, 5), None)
