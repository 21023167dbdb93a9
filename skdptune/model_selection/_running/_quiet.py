"""Silence while candidates are fitted: the number of warnings, logs or prints reveals the runs."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune._progress import muted
from skdptune._secure_random import secure_generator
from skdptune.mechanisms._shared import check_seed


@dataclass(frozen=True)
class Streams:
    """Seeds for the separate uses of randomness; all None if nothing is seeded."""

    random_split: Any
    draw: Any
    runs: Any
    pick: Any
    final: Any

    @classmethod
    def of(cls, random_state: Any) -> Streams:
        """Return streams that depend only on the seed."""
        seed = check_seed(random_state)
        if seed is None:
            return cls(None, None, None, None, None)
        return cls(*np.random.SeedSequence(seed).spawn(5))


def generator_of(seeds: Any) -> np.random.Generator:
    """Return a generator for a stream, or a cryptographic one if nothing is seeded."""
    # Assumption E0: which record is in which part must stay secret, too.
    return secure_generator() if seeds is None else np.random.default_rng(seeds)


def spawned(seeds: Any, count: int) -> list[Any]:
    """Return independent streams, one per run."""
    return [None] * count if seeds is None else list(seeds.spawn(count))


def child_stream(
    seed: np.random.SeedSequence | None, number: int
) -> np.random.SeedSequence | None:
    """Return a numbered descendant of a stream, the same for every call."""
    if seed is None:
        return None
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))


def noise_random(seed: np.random.SeedSequence | None) -> np.random.Generator | None:
    """Return the source of noise: a stream, or None for the system's safe samplers."""
    return None if seed is None else np.random.default_rng(seed)


class Quiet:
    """A context without warnings, log records and prints of this process.

    It may be nested, by searches in other threads or inside a search. The last one to leave
    restores what the first one found.

    Notes
    -----
    Theorem F4.
    """

    _lock = threading.Lock()
    _depth = 0
    _stack = contextlib.ExitStack()

    def __enter__(self) -> Quiet:
        """Silence the process."""
        with Quiet._lock:
            if Quiet._depth == 0:
                Quiet._stack = self._silence()
            Quiet._depth += 1
        return self

    def __exit__(self, *problem: object) -> None:
        """Restore warnings, logs and prints, unless another context is still active."""
        with Quiet._lock:
            Quiet._depth -= 1
            if Quiet._depth == 0:
                Quiet._stack.close()

    @staticmethod
    def _silence() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        stack.enter_context(contextlib.redirect_stdout(nowhere))
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        stack.enter_context(muted())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        return stack
