"""The generator of noise: its distribution, its seed, and how much of its state is filled."""

import numpy as np
import pytest
import torch
from scipy import stats

from skdptune.neural_network import _noise_source
from skdptune.neural_network._noise_source import noise_source


def test_noise_is_standard_normal():
    draws = torch.randn(200_000, generator=noise_source(np.random.default_rng(0))).numpy()
    assert stats.kstest(draws, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.01


def test_seed_repeats_and_entropy_does_not():
    def draw(rng):
        return torch.randn(4, generator=noise_source(rng))

    assert torch.equal(draw(np.random.default_rng(1)), draw(np.random.default_rng(1)))
    assert not torch.equal(draw(np.random.default_rng(1)), draw(np.random.default_rng(2)))
    assert not torch.equal(draw(np.random.default_rng()), draw(np.random.default_rng()))


def test_whole_state_is_filled_where_a_seed_of_32_bits_would_not():
    class Stuck(np.random.Generator):
        """Gives the same seed each time, so that only the rest of the state differs."""

        def integers(self, low, high=None, size=None, **settings):
            return 7 if size is None else super().integers(low, high, size=size, **settings)

    def draw(seed):
        return torch.randn(4, generator=noise_source(Stuck(np.random.PCG64(seed))))

    assert not torch.equal(draw(0), draw(1))


def test_the_layout_of_the_state_is_known():
    generator = torch.Generator()
    generator.manual_seed(5)
    start = _noise_source._OFFSET
    found = generator.get_state().numpy()[start : start + 8 * 624].view(np.uint64)
    # NumPy's twister of the same seed and initialisation.
    np.testing.assert_array_equal(found, np.random.RandomState(5).get_state()[1])


def test_an_unknown_state_is_refused(monkeypatch):
    monkeypatch.setattr(_noise_source, "_OFFSET", 20)
    with pytest.raises(RuntimeError, match="must have the known layout"):
        noise_source(np.random.default_rng(0))
