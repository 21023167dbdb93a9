"""Exact draws from the truncated negative binomial, in a time that no parameter changes."""

from __future__ import annotations

import math
import numbers
import sys

import numpy as np
from numpy.typing import NDArray

from skdptune._secure_random import SecureGenerator, secure_generator
from skdptune._validation import FloatArray, check_integer, check_kind

IntArray = NDArray[np.int64]
RandomState = int | np.random.Generator | np.random.RandomState | None

# Sums of two draws below this stay below the largest int64.
_LARGEST_DRAW = 2**61


def make_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator: of a cryptographic source for None, a stream for a seed."""
    if isinstance(random_state, np.random.Generator | SecureGenerator):
        return random_state
    check_kind(
        random_state,
        name="random_state",
        kind=(type(None), numbers.Integral, np.random.RandomState),
        domain="None, an integer, a numpy Generator or a numpy RandomState",
    )
    if random_state is None:
        # Assumption E0.
        return secure_generator()
    if isinstance(random_state, np.random.RandomState):
        # Drawing the seed advances the legacy stream, so that two calls give two samples.
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    seed = check_integer(random_state, name="random_state", lower=0, upper=None)
    return np.random.default_rng(seed)


def draw_truncated_negative_binomial(
    rng: np.random.Generator, eta: float, gamma: float, shape: tuple[int, ...]
) -> IntArray:
    """Return independent draws; numbers of runs beyond 2**61 are cut there.

    For ``eta >= 0`` the negative binomial distribution of shape ``eta`` is that of a process at
    the time ``eta`` that jumps at rate ``span = -log gamma`` by logarithmic numbers. Given that it
    jumps at all, the first jump falls at an exponential time cut at ``eta``, is logarithmic, and
    what follows is negative binomial of the shape that is left.

    For ``eta < 0`` the tail ``P(K > k)`` (see `probability_at_most`) is the mean of
    ``(v (1 - e^-z))^k`` with ``v ~ Beta(1 + eta, -eta)`` and ``z`` of density proportional to
    ``e^(-eta z)`` on ``[0, span]``: a mixture of geometric distributions.
    """
    span = -math.log(gamma)
    if eta < 0.0:
        return _draw_geometric_mixture(rng, eta, span, shape)
    first = _draw_logarithmic(rng, span, shape)
    shape_left = np.maximum(eta - _draw_cut_exponential(rng, span, eta, shape), 0.0)
    rate = rng.standard_gamma(shape_left) * ((1.0 - gamma) / gamma)
    return _cut(_cut(first) + rng.poisson(np.minimum(rate, float(_LARGEST_DRAW))))


def _draw_logarithmic(rng: np.random.Generator, span: float, shape: tuple[int, ...]) -> IntArray:
    """Return geometric draws of success ``e^-z``, ``z`` uniform on ``[0, span]``."""
    return rng.geometric(np.exp(-span * rng.random(shape)))


def _draw_geometric_mixture(
    rng: np.random.Generator, eta: float, span: float, shape: tuple[int, ...]
) -> IntArray:
    z = span - _draw_cut_exponential(rng, -eta, span, shape)
    # 1 - v is drawn itself: the success 1 - v (1 - e^-z) may be far below the spacing at 1.
    complement = rng.beta(-eta, 1.0 + eta, shape)
    success = np.exp(-z) + complement * -np.expm1(-z)
    return _cut(rng.geometric(np.minimum(success, 1.0)))


def _draw_cut_exponential(
    rng: np.random.Generator, rate: float, end: float, shape: tuple[int, ...]
) -> FloatArray:
    """Return exponential draws given that they fall in ``[0, end]``."""
    uniform = rng.random(shape)
    extent = rate * end
    if extent < sys.float_info.min:
        return np.asarray(uniform * end)
    return np.asarray(np.log1p(uniform * math.expm1(-extent)) * (-end / extent))


def _cut(draws: IntArray) -> IntArray:
    return np.minimum(draws, _LARGEST_DRAW)
