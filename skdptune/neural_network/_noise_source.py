"""The torch generator that noise is drawn from, with its whole state from a safe source."""

from __future__ import annotations

import numpy as np
import torch

# Where the words of the Mersenne twister are in the state that torch returns: after the seed and
# three numbers of bookkeeping, in 16 bytes; each word takes 8 bytes.
_WORDS = 624
_OFFSET = 24


def noise_source(rng: np.random.Generator, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a generator of a device, started from `rng`.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the state; the operating system's entropy if it was made without a seed.
    device : torch.device or str, default="cpu"
        Device on which the noise is needed.

    Returns
    -------
    torch.Generator

    Notes
    -----
    On a CPU torch keeps only 32 bits of a seed, so few that all can be tried by someone who has
    seen the noisy result. The whole state is filled instead. Other devices use all 64 bits.
    """
    generator = torch.Generator(device=device)
    generator.manual_seed(int(rng.integers(0, 2**63 - 1)))
    if generator.device.type != "cpu":
        return generator
    state = generator.get_state()
    words = state.numpy()[_OFFSET : _OFFSET + 8 * _WORDS].view(np.uint64)
    if words.size != _WORDS or int(words.max()) >= 2**32 or np.unique(words).size < _WORDS - 8:
        raise RuntimeError(
            "the state of torch's CPU generator must have the known layout; got another. Use a "
            "version of torch that this package is tested with."
        )
    words[:] = rng.integers(0, 2**32, size=_WORDS, dtype=np.uint64)
    generator.set_state(state)
    return generator
