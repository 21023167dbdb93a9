"""The noise of a net's training, added to sums of clipped gradients."""

from __future__ import annotations

import numpy as np
import torch

from skdptune.mechanisms import NormalNoise, independent_generator


class GradientNoise:
    """Normal noise for one sum of gradients after another.

    Parameters
    ----------
    deviation : float
        Standard deviation; 0 for no noise.
    rng : numpy.random.Generator
        Its own draws are independent of the noise.
    device : torch.device or str, default="cpu"
        Where the sums are.

    Notes
    -----
    Theorem E1, for sums on a CPU: the sum plus real noise is rounded to a grid that no data
    choose, and then to the sum's precision. Assumption F6, for sums on another device: there torch
    draws the noise, in the sum's precision, from a generator that keeps all 64 bits of its seed.
    """

    def __init__(
        self, deviation: float, rng: np.random.Generator, device: torch.device | str = "cpu"
    ) -> None:
        self._deviation = deviation
        self._device = torch.device(device)
        source = independent_generator(rng)
        if self._device.type != "cpu":
            self._generator = torch.Generator(device=device)
            self._generator.manual_seed(int(source.integers(0, 2**63 - 1)))
        elif deviation > 0.0:
            self._noise = NormalNoise(deviation, source)

    def added_to(self, total: torch.Tensor) -> torch.Tensor:
        """Return a sum with noise, a tensor of its own."""
        total = total.detach()
        if self._deviation == 0.0:
            return total.clone()
        if self._device.type == "cpu":
            noisy = self._noise.added_to(total.numpy().astype(np.float64))
            return torch.from_numpy(noisy).to(total.dtype)
        return total + torch.normal(
            0.0,
            self._deviation,
            size=total.shape,
            generator=self._generator,
            device=self._device,
            dtype=total.dtype,
        )
