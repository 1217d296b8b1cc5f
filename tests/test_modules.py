"""The networks."""

import numpy as np
import pytest
import torch
from torch import nn

from mdal.modules import (
    SIZES,
    BatchNorm,
    CompositeClassifier,
    ConditionalDiscriminator,
    ImageEncoder,
    SharedPrivateClassifier,
    Surrogates,
    default_encoder,
)


def n_parameters(module):
    return sum(p.numel() for p in module.parameters())


def test_the_encoder_for_mnist_is_that_of_the_papers_table():
    ours = ImageEncoder(1, 28, 28, width=256)
    papers = nn.Sequential(
        nn.Conv2d(1, 256, 3, 2, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 2, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 2, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU(),
        nn.Conv2d(256, 100, 4, 1, 0), nn.ReLU(), nn.Flatten(),
    )  # fmt: skip
    assert n_parameters(ours) == n_parameters(papers)
    with torch.no_grad():
        for theirs, mine in zip(papers.parameters(), ours.parameters(), strict=True):
            theirs.copy_(mine.view(theirs.shape))
    images = torch.rand(3, 1, 28, 28)
    torch.testing.assert_close(ours(images), papers(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "shape",
    [(1,), (800,), (8, 8), (3, 5), (1, 8, 8), (3, 32, 32), (3, 64, 48), (1, 1, 1)],
)
def test_there_is_an_encoder_for_every_vector_and_image(shape):
    encoder = default_encoder(shape, width=8)
    assert encoder(torch.rand(2, *shape)).shape == (2, 100)
    net = CompositeClassifier(shape, n_classes=3, n_domains=2, width=8)
    assert net(torch.rand(2, *shape)).shape == (2, 3)


@pytest.mark.parametrize(
    ("settings", "depth"),
    [
        ({}, 0),
        ({"depth": 1}, 1),
        ({"encoder": nn.Flatten()}, 2),
        ({"shape": (8, 8)}, 2),
    ],
)
def test_the_trunk_has_as_many_layers_as_the_samples_call_for(settings, depth):
    settings = {"shape": (6,), "n_classes": 3, "n_domains": 2, "width": 5, **settings}
    for kind in (CompositeClassifier, SharedPrivateClassifier):
        if "encoder" in settings and kind is SharedPrivateClassifier:
            continue  # which would have nothing to train
        net = kind(**settings).eval()
        assert sum(isinstance(layer, nn.Linear) for layer in net.trunk) == depth
        X = torch.rand(4, *settings["shape"])
        hidden = net.penultimate(net.embed(X))
        assert net.shared_logits(hidden).shape == (4, 3)
        if depth == 0 and kind is CompositeClassifier:
            assert torch.equal(hidden, net.embed(X))


def test_sizes_are_those_that_configurations_of_experiments_have():
    vectors = CompositeClassifier((6,), n_classes=3)
    assert vectors.encoder[1].out_features == SIZES["vectors"]["width"]
    assert len(vectors.trunk) == SIZES["vectors"]["depth"] == 0
    images = CompositeClassifier((1, 8, 8), n_classes=3)
    assert images.encoder[0].out_channels == SIZES["images"]["width"]
    assert images.trunk[0].out_features == SIZES["images"]["width"]
    assert len(images.trunk) == 3 * SIZES["images"]["depth"]


def test_other_shapes_need_an_encoder_of_ones_own():
    with pytest.raises(ValueError, match="pass an encoder of your own"):
        default_encoder((3, 4, 5, 6))
    net = CompositeClassifier((3, 4, 5, 6), 2, encoder=nn.Flatten())
    assert net.n_features == 360


@pytest.mark.parametrize("shape", [(1, 4), (1, 4, 1, 1)])
def test_a_batch_of_one_value_is_normalised_as_in_prediction(shape):
    norm = BatchNorm(4)
    norm.running_mean += 1.0
    x = torch.rand(shape)
    out = norm(x)
    torch.testing.assert_close(out, norm.eval()(x))
    assert norm.running_mean.tolist() == [1.0] * 4  # nothing was learned from it


def test_batch_normalisation_is_otherwise_that_of_torch():
    x = torch.rand(7, 4, 3, 3)
    torch.testing.assert_close(BatchNorm(4)(x), nn.BatchNorm2d(4)(x))


def test_heads_are_one_matrix_whose_first_block_predicts():
    net = CompositeClassifier((6,), n_classes=3, n_domains=4).eval()
    X = torch.rand(5, 6)
    logits = net.all_logits(net.embed(X))
    assert logits.shape == (5, 5, 3)
    assert net.heads.weight.shape == (15, 100)
    torch.testing.assert_close(logits[:, 0], net(X))


def test_a_given_encoder_is_copied_and_made_anew_by_a_function():
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(12, 7))
    net = CompositeClassifier((3, 4), n_classes=2, encoder=encoder)
    assert net.n_features == 7
    with torch.no_grad():
        net.encoder[1].weight.zero_()
    assert encoder[1].weight.abs().sum() > 0
    made = CompositeClassifier((3, 4), n_classes=2, encoder=lambda: encoder)
    assert made.encoder is encoder


def test_finding_the_length_of_features_leaves_an_encoder_as_it_was():
    encoder = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Dropout())
    net = CompositeClassifier((3,), n_classes=2, encoder=encoder)
    assert net.encoder.training
    assert net.encoder[1].num_batches_tracked == 0


def test_an_encoder_must_give_one_row_for_each_sample():
    class Total(nn.Module):
        def forward(self, x):
            return x.sum()

    with pytest.raises(ValueError, match="one row for each sample"):
        CompositeClassifier((3,), n_classes=2, encoder=Total())


@pytest.mark.parametrize(("index", "n_inputs"), [("scalar", 4), ("one_hot", 8)])
def test_the_discriminator_sees_the_domain(index, n_inputs):
    f = ConditionalDiscriminator(3, 5, width=16, index=index).eval()
    assert f.layers[0].in_features == n_inputs
    logits = f(torch.ones(5, 3), torch.arange(5))
    assert len(set(logits.tolist())) == 5


def test_scalar_indices_are_normalised():
    f = ConditionalDiscriminator(3, 4)
    assert f.table.flatten().tolist() == [0, 0.25, 0.5, 0.75]


def test_unknown_indices_are_named():
    with pytest.raises(ValueError, match="index='two'"):
        ConditionalDiscriminator(3, 4, index="two")


def test_surrogates_are_rows_on_the_simplex():
    rng = np.random.default_rng(0)
    alpha = rng.dirichlet(np.ones(150), 150)
    read = Surrogates(alpha)()
    np.testing.assert_allclose(read.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(read, alpha, atol=1e-7)
    with pytest.raises(ValueError, match="row 0 of alpha"):
        Surrogates([[1.0, 1.0], [0.0, 1.0]])
