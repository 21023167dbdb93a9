"""Seeds for the separate uses of randomness of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune._validation import check_integer
from skdptune.mechanisms import secure_generator


@dataclass(frozen=True)
class Streams:
    """Seeds for the separate uses of randomness; None everywhere if nothing is seeded."""

    random_split: Any
    draw: Any
    runs: Any
    pick: Any
    final: Any

    @classmethod
    def of(cls, random_state: Any) -> Streams:
        """Return streams that depend on the seed alone."""
        if random_state is None:
            return cls(None, None, None, None, None)
        if isinstance(random_state, np.random.RandomState):
            root = np.random.SeedSequence(random_state.randint(0, 2**31 - 1, size=4).tolist())
        elif isinstance(random_state, np.random.Generator):
            root = np.random.SeedSequence(random_state.integers(0, 2**31 - 1, size=4).tolist())
        else:
            root = np.random.SeedSequence(
                check_integer(random_state, name="random_state", lower=0, upper=None)
            )
        return cls(*root.spawn(5))


def generator_of(seeds: Any) -> np.random.Generator:
    """Return a generator from a stream, or of a cryptographic source if nothing is seeded."""
    # Assumption E0: who is in which part of the data must stay secret, too.
    return secure_generator() if seeds is None else np.random.default_rng(seeds)


def spawned(seeds: Any, count: int) -> list[Any]:
    """Return independent streams, one per run."""
    return [None] * count if seeds is None else list(seeds.spawn(count))


def child_stream(
    seed: np.random.SeedSequence | None, number: int
) -> np.random.SeedSequence | None:
    """Return a numbered descendant of a stream, the same whoever asks and how often."""
    if seed is None:
        return None
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))


def noise_random(seed: np.random.SeedSequence | None) -> np.random.Generator | None:
    """Return what noise is drawn from: a stream, or None for the system's safe samplers."""
    return None if seed is None else np.random.default_rng(seed)
