"""Sources of randomness: the operating system by default, or a seed for reproducible runs."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdptune._secure_random import SecureGenerator, secure_generator
from skdptune._validation import check_integer

# Types of ``random_state``: None for the operating system's entropy, or a reproducible source.
RandomState = int | np.random.Generator | np.random.RandomState | None

_BITS = 53


def as_generator(random_state: RandomState) -> np.random.Generator | None:
    """Return a NumPy generator for a seed, and None without a seed.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None means the operating system's entropy. An int gives the same generator at every call. A
        Generator is returned itself, and a RandomState is used to draw a seed: both advance.

    Returns
    -------
    numpy.random.Generator or None

    Examples
    --------
    >>> from skdptune.mechanisms import as_generator
    >>> as_generator(None) is None
    True
    >>> as_generator(7).integers(100, size=3) - as_generator(7).integers(100, size=3)
    array([0, 0, 0])
    """
    if random_state is None or isinstance(random_state, np.random.Generator | SecureGenerator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    seed = check_integer(
        random_state,
        name="random_state",
        lower=0,
        upper=None,
        hint="None, a numpy.random.Generator or a RandomState will also do.",
    )
    return np.random.default_rng(seed)


def fit_generator(random_state: int | None) -> np.random.Generator:
    """Return the generator of a fit's noise, from the ``random_state`` of an estimator.

    Parameters
    ----------
    random_state : int or None
        None means a cryptographic source with a fresh key; an int means the same generator at
        every call.

    Raises
    ------
    TypeError
        If `random_state` is a Generator or a RandomState.

    Notes
    -----
    Assumption E0, Theorem F9.

    Examples
    --------
    >>> from skdptune.mechanisms import fit_generator
    >>> fit_generator(None).random() == fit_generator(None).random()
    False
    """
    seed = check_seed(random_state)
    return secure_generator() if seed is None else np.random.default_rng(seed)


def repeatable_generator(random_state: int | None) -> Callable[[], np.random.Generator]:
    """Return a function that returns `fit_generator`, in the same initial state at every call.

    It is used by fits that may have to restart with the same draws.
    """
    seed = check_seed(random_state)
    if seed is None:
        return functools.partial(secure_generator, os.urandom(16))
    return functools.partial(np.random.default_rng, seed)


def check_seed(random_state: object) -> int | None:
    """Return the ``random_state`` of an estimator if it is None or an integer, or raise.

    Clones, folds and workers have copies of an estimator. A generator would be copied with its
    state, so all copies would draw the same noise, and the difference between two folds would have
    none.

    Notes
    -----
    Theorem F9.
    """
    if random_state is None:
        return None
    return check_integer(
        random_state,
        name="random_state",
        lower=0,
        upper=None,
        hint="None, the default, draws fresh noise in each fit. An int repeats it, for research. "
        "Generators are refused: clones would copy them and share their noise.",
    )


def open_uniforms(count: int, generator: np.random.Generator | None) -> NDArray[np.float64]:
    """Return numbers in (0, 1), never 0 or 1, from the generator or the operating system."""
    if generator is None:
        words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    else:
        words = generator.integers(0, 2**64, size=count, dtype=np.uint64)
    # Odd multiples of 2^-54 are symmetric in the interval. They are exact in double precision
    # except for the last bit of those next to 1, which is why they are cut there.
    odd = 2.0 * (words >> np.uint64(64 - _BITS)).astype(np.float64) + 1.0
    return np.minimum(odd * 2.0 ** -(_BITS + 1), 1.0 - 2.0**-_BITS)


def random_below(count: int, generator: np.random.Generator | None) -> int:
    """Return an integer of ``range(count)``, all with the same probability."""
    if generator is not None:
        return int(generator.integers(count))
    # Values beyond the largest multiple of count are redrawn, so that no remainder is favoured.
    limit = 2**64 - 2**64 % count
    while (word := int.from_bytes(os.urandom(8), "little")) >= limit:
        pass
    return word % count


def standard_laplace(count: int, generator: np.random.Generator | None) -> NDArray[np.float64]:
    """Return numbers with density ``exp(-abs(x)) / 2``, from the generator or the system.

    Numbers from the operating system reach as far as the distribution does: all tail probabilities
    are correct up to a *relative* error of about 1e-15. Logarithms of uniform floats end at 37.
    """
    if generator is not None:
        return generator.laplace(size=count)
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    # The exponential distribution is memoryless: it is a geometric number of half-lives plus an
    # independent rest shorter than one half-life.
    places = (words >> np.uint64(64 - _BITS)).astype(np.float64) * 2.0**-_BITS
    magnitudes = math.log(2.0) * _half_lives(count) - np.log1p(-0.5 * places)
    return np.where(words & np.uint64(1), magnitudes, -magnitudes)


def _half_lives(count: int) -> NDArray[np.float64]:
    """Return numbers of failures before the first success of fair coin flips, drawn exactly."""
    failures = np.zeros(count)
    open_places = np.arange(count)
    while open_places.size:
        words = np.frombuffer(os.urandom(8 * open_places.size), dtype=np.uint64)
        bits = (words >> np.uint64(64 - _BITS)).astype(np.float64)
        # The exponent is the position of the highest set bit; it is 0 for zero.
        failures[open_places] += _BITS - np.frexp(bits)[1]
        open_places = open_places[bits == 0.0]
    return failures
