"""The noise of training: its distribution, its source, and the grid that it lies on."""

import numpy as np
import pytest
import torch
from scipy import stats

from skdptune.mechanisms import grid_of
from skdptune.neural_network._gradient_noise import GradientNoise


def added(deviation, seed, total):
    return GradientNoise(deviation, np.random.default_rng(seed)).added_to(total)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_normal_with_the_deviation(dtype):
    draws = added(3.0, 0, torch.full((400, 500), 7.0, dtype=dtype))
    assert draws.dtype == dtype
    assert draws.shape == (400, 500)
    flat = (draws.double().numpy().ravel() - 7.0) / 3.0
    assert stats.kstest(flat, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(flat[:-1], flat[1:])[0, 1]) < 0.01


def test_seed_repeats_and_entropy_does_not():
    zeros = torch.zeros(4)
    assert torch.equal(added(1.0, 1, zeros), added(1.0, 1, zeros))
    assert not torch.equal(added(1.0, 1, zeros), added(1.0, 2, zeros))
    assert not torch.equal(added(1.0, None, zeros), added(1.0, None, zeros))


def test_sums_are_rounded_to_a_grid_that_no_data_choose():
    # Theorem E1.
    for value in (0.0, 1e-9, 0.3, 1234.5678):
        total = torch.full((1000,), value, dtype=torch.float64)
        steps = added(1.7, 0, total).numpy() / grid_of(1.7)
        np.testing.assert_array_equal(steps, np.rint(steps))


def test_no_noise_is_a_copy():
    total = torch.ones(3)
    noisy = added(0.0, 0, total)
    assert torch.equal(noisy, total)
    assert noisy.data_ptr() != total.data_ptr()


def test_sums_stay_as_they_were_and_no_gradient_flows():
    total = torch.ones(3, requires_grad=True)
    assert not added(1.0, 0, total).requires_grad
    assert torch.equal(total, torch.ones(3))


def test_a_sums_noise_does_not_depend_on_what_was_added_to_others():
    # Theorem E1: neighbouring data sets meet the same noise.
    first, second = (GradientNoise(1.0, np.random.default_rng(0)) for _ in range(2))
    for value in (0.0, 5.0, 1e6):
        first.added_to(torch.full((7,), value))
        second.added_to(torch.full((7,), -value))
    zeros = torch.zeros(50)
    assert torch.equal(first.added_to(zeros), second.added_to(zeros))


def test_on_other_devices_torch_draws_the_noise(monkeypatch):
    # Assumption F6. No other device is needed to see what would be asked of it.
    noise = GradientNoise(2.0, np.random.default_rng(0))
    noise._device = torch.device("meta")
    noise._generator = torch.Generator().manual_seed(0)
    drawn = []

    def normal(mean, deviation, *, size, generator, device, dtype):
        drawn.append((mean, deviation, tuple(size), device.type, dtype))
        return torch.ones(size, dtype=dtype)

    monkeypatch.setattr(torch, "normal", normal)
    assert torch.equal(noise.added_to(torch.zeros(2, 3)), torch.ones(2, 3))
    assert drawn == [(0.0, 2.0, (2, 3), "meta", torch.float32)]
