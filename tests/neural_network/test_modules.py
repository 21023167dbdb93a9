"""Ready modules: their sizes, their settings, and their outputs."""

import numpy as np
import pytest
import torch

from skdptune.neural_network import MLP, LogisticHead, SmallCNN

READY = [MLP, LogisticHead, SmallCNN]


@pytest.mark.parametrize("kind", READY)
@pytest.mark.parametrize("shape", [64, (64,), (8, 8), (1, 8, 8)])
def test_one_row_of_outputs_per_record(kind, shape):
    sides = (shape,) if isinstance(shape, int) else shape
    module = kind(input_shape=shape, n_outputs=3)
    assert module(torch.zeros(5, *sides)).shape == (5, 3)


@pytest.mark.parametrize("kind", READY)
def test_module_without_sizes_has_nothing_and_says_so(kind):
    module = kind()
    assert list(module.parameters()) == []
    with pytest.raises(ValueError, match="input_shape and n_outputs must be given"):
        module(torch.zeros(1, 64))


def test_mlp_computes_what_numpy_does():
    module = MLP(hidden=(6,), input_shape=4, n_outputs=2)
    first, start, second, end = (p.detach().numpy().astype(float) for p in module.parameters())
    X = np.random.default_rng(0).normal(size=(9, 4))
    wanted = np.tanh(X @ first.T + start) @ second.T + end
    found = module(torch.from_numpy(X).float()).detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_small_cnn_is_the_network_of_the_paper():
    module = SmallCNN(input_shape=784, n_outputs=10)
    sizes = [tuple(p.shape) for p in module.parameters() if p.ndim > 1]
    # 16 filters of 8x8, 32 of 4x4, then 32 x 4 x 4 features: as in the paper's table.
    assert sizes == [(16, 1, 8, 8), (32, 16, 4, 4), (32, 512), (10, 32)]
    assert sum(p.numel() for p in module.parameters()) == 26_010


@pytest.mark.parametrize("side", [6, 7, 8, 12, 13, 28, 32])
def test_small_cnn_takes_images_of_any_size(side):
    assert SmallCNN(input_shape=(3, side, side + 1), n_outputs=2)(
        torch.zeros(2, 3, side, side + 1)
    ).shape == (2, 2)


def test_bad_settings_are_refused():
    for make, complaint in (
        (lambda: MLP(hidden=(0,)), "each of hidden must be an integer of at least 1; got another"),
        (lambda: MLP(hidden=8), r"hidden must be a sequence.*Try \(8,\)"),
        (lambda: MLP(scale=0.0), "scale must be"),
        (lambda: MLP(input_shape=0, n_outputs=1), "input_shape must be an integer of at least 1"),
        (lambda: MLP(input_shape=(), n_outputs=1), "input_shape must have at least one size"),
        (lambda: MLP(input_shape=3, n_outputs=0), "n_outputs must be an integer of at least 1"),
        (lambda: SmallCNN(channels=(1,)), "channels must be two numbers; got "),
        (lambda: SmallCNN(input_shape=65, n_outputs=2), "a square number of pixels; got"),
        (lambda: SmallCNN(input_shape=25, n_outputs=2), "at least 6 pixels a side"),
    ):
        with pytest.raises((TypeError, ValueError), match=complaint):
            make()
