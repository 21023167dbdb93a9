"""Random batches of records for DP-SGD, drawn fast and from an exact distribution."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

# Number of indices drawn at once: enough to amortise a call, and small compared to any data.
_INDICES_AT_ONCE = 1 << 16

Batch = np.ndarray | slice


def poisson_batches(
    n_samples: int, rate: float, steps: int, rng: np.random.Generator
) -> Iterator[Batch]:
    """Yield a Poisson sample for each step: every record independently with probability `rate`.

    Parameters
    ----------
    n_samples : int
        Number of records.
    rate : float
        Probability in (0, 1].
    steps : int
        Number of batches.
    rng : numpy.random.Generator
        Generator of the draws.

    Yields
    ------
    ndarray of int or slice
        Increasing indices; ``slice(None)`` if the rate is 1.

    Notes
    -----
    Theorem M5.

    The draws for a block of steps form a sequence of ``steps * n_samples`` independent trials. The
    distance between successes is geometric and independent of the past. So sums of geometric
    distances give the successes without drawing the failures. The rest of a block's last distance
    is dropped, since trials after the block are independent of those in it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> batches = list(poisson_batches(1000, 0.1, 5000, rng))
    >>> round(np.mean([batch.size for batch in batches]))
    100
    """
    if rate >= 1.0 or n_samples == 0:
        yield from repeat(slice(None), steps)
        return
    block = max(1, int(_INDICES_AT_ONCE / (rate * n_samples)))
    for first in range(0, steps, block):
        yield from _poisson_block(n_samples, rate, min(block, steps - first), rng)


def _poisson_block(
    n_samples: int, rate: float, steps: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    positions = _successes(n_samples * steps, rate, rng)
    starts = n_samples * np.arange(steps + 1)
    bounds = np.searchsorted(positions, starts).tolist()
    for step in range(steps):
        yield positions[bounds[step] : bounds[step + 1]] - n_samples * step


def _successes(trials: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of the successes in a sequence of independent trials."""
    expected = trials * rate
    count = int(expected + 5.0 * np.sqrt(expected)) + 16
    positions = np.empty(0, dtype=np.int64)
    last = -1
    while last < trials:
        # A geometric draw of 0, from an exponential draw of exactly 0, would repeat a record.
        gaps = np.maximum(rng.geometric(rate, count), 1)
        gaps[0] += last
        positions = np.concatenate([positions, np.cumsum(gaps)])
        last = int(positions[-1])
    return positions[: np.searchsorted(positions, trials)]


def fixed_batches(
    n_samples: int, batch_size: int, steps: int, rng: np.random.Generator
) -> Iterator[Batch]:
    """Yield `batch_size` records for each step, drawn uniformly without replacement.

    If there are at most `batch_size` records, all are used.

    Examples
    --------
    >>> import numpy as np
    >>> [batch.size for batch in fixed_batches(10, 4, 2, np.random.default_rng(0))]
    [4, 4]
    """
    n_samples, batch_size = int(n_samples), int(batch_size)
    if batch_size >= n_samples:
        yield from repeat(slice(None), steps)
        return
    if batch_size**2 > 2 * n_samples:
        for _ in range(steps):
            yield np.sort(rng.choice(n_samples, batch_size, replace=False, shuffle=False))
        return
    block = max(1, _INDICES_AT_ONCE // batch_size)
    for first in range(0, steps, block):
        yield from _small_fixed_batches(n_samples, batch_size, min(block, steps - first), rng)


def _small_fixed_batches(
    n_samples: int, batch_size: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return batches as sorted rows; each row is redrawn until all of its records differ.

    Independent uniform draws, given that they differ, form a uniform set. If the square of the
    batch size is below twice the number of records, more than one in three rows has no repetition.
    """
    batches = np.empty((count, batch_size), dtype=np.int64)
    missing = np.arange(count)
    while missing.size:
        rows = np.sort(rng.integers(n_samples, size=(missing.size, batch_size)), axis=1)
        batches[missing] = rows
        missing = missing[(rows[:, 1:] == rows[:, :-1]).any(axis=1)]
    return batches


def allocation_batches(
    n_samples: int, n_batches: int, steps: int, rng: np.random.Generator
) -> Iterator[Batch]:
    """Yield batches in rounds of `n_batches`; each record is in exactly one batch of a round.

    Parameters
    ----------
    n_samples : int
        Number of records.
    n_batches : int
        Number of batches in a round. Some are empty if there are few records.
    steps : int
        Total number of batches; the last round may be incomplete.
    rng : numpy.random.Generator
        Generator of the draws.

    Yields
    ------
    ndarray of int or slice
        Increasing indices; ``slice(None)`` if a round has one batch.

    Notes
    -----
    Theorem M6.

    Each record's batch is an independent uniform draw in every round. Therefore the batches of the
    other records have the same distribution with and without a record. Cutting a random
    permutation of the records into batches does not have this property.

    Examples
    --------
    >>> import numpy as np
    >>> batches = list(allocation_batches(10, 3, 3, np.random.default_rng(0)))
    >>> sorted(np.concatenate(batches).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    if n_batches <= 1:
        yield from repeat(slice(None), steps)
        return
    for first in range(0, steps, n_batches):
        places = rng.integers(n_batches, size=n_samples)
        order = np.argsort(places, kind="stable")
        bounds = np.searchsorted(places[order], np.arange(n_batches + 1)).tolist()
        for place in range(min(n_batches, steps - first)):
            yield order[bounds[place] : bounds[place + 1]]
