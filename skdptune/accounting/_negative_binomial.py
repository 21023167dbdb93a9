"""Accurate functions and draws of the truncated negative binomial distribution.

With ``a = 1 - gamma`` and ``w(x) = 1 - a x``, every quantity is expressed in terms of

* ``span = -log gamma``, the value of ``-log w`` at ``x = 1``,
* ``exprel(t) = (e^t - 1) / t``, which is 1 at ``t = 0``.

So ``eta = 0`` (the logarithmic distribution) needs no special case, and nothing overflows.
"""

from __future__ import annotations

import math
import numbers
import sys

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from skdptune._secure_random import SecureGenerator, secure_generator
from skdptune._validation import FloatArray, check_integer, check_kind, check_real

# Within these limits, the mean and both derivatives of the pgf are finite in double precision.
SMALLEST_GAMMA = 1e-140
LARGEST_GAMMA = 1.0 - sys.float_info.epsilon / 2
LARGEST_ETA = 1e6

# From this shape on, the incomplete beta function is accurate; near 0 it is a ratio of zeros.
_BETA_FROM_ETA = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def mean(eta: float, gamma: float) -> float:
    """Return the expected number of runs."""
    if eta == 1.0:
        return 1.0 / gamma  # the same number, and free of rounding for round means
    return _mean_of_span(-math.log(gamma), eta)


def gamma_from_mean(target: float, eta: float) -> float:
    """Return the stopping probability for which shape ``eta`` has the mean ``target``."""
    target = check_real(target, name="mean", lower=1, lower_open=True)
    end = -math.log(SMALLEST_GAMMA)
    hint = "A larger eta allows a larger mean."
    target = check_real(
        target, name="mean", lower=1, lower_open=True, upper=_mean_of_span(end, eta), hint=hint
    )
    if eta == 1.0:
        return min(1.0 / target, LARGEST_GAMMA)

    def excess(span: float) -> float:
        return math.log(_mean_of_span(span, eta)) - math.log(target)

    start = -math.log(LARGEST_GAMMA)
    if excess(start) >= 0.0:  # the mean is 1 up to rounding
        return LARGEST_GAMMA
    rtol = 4 * sys.float_info.epsilon
    span = optimize.brentq(excess, start, end, xtol=1e-300, rtol=rtol, maxiter=1000)
    return max(math.exp(-float(span)), SMALLEST_GAMMA)


def pgf(eta: float, gamma: float, x: FloatArray) -> FloatArray:
    """Return ``(w(x)^-eta - 1) / (gamma^-eta - 1)``, or its limit at ``eta = 0``."""
    span = -math.log(gamma)
    below = (1.0 - gamma) * x
    # 1 - below loses the digits of a small `below`, and log1p(-below) those of a small w.
    decay = np.where(
        below < 0.5,
        -np.log1p(-np.minimum(below, 0.5)),
        -np.log((1.0 - x) + gamma * x),
    )
    # expm1(eta decay) / expm1(eta span), with the large factor separated if eta > 0.
    ratio = decay / span * special.exprel(-abs(eta) * decay) / special.exprel(-abs(eta) * span)
    value: FloatArray = ratio * np.exp(-max(eta, 0.0) * _log_growth(gamma, x))
    return np.minimum(value, 1.0)


def pgf_derivative(eta: float, gamma: float, x: FloatArray) -> FloatArray:
    """Return ``E[K] (gamma / w(x))^(eta + 1)``, the derivative of the pgf."""
    return _scaled_decay(mean(eta, gamma), (eta + 1.0) * _log_growth(gamma, x))


def pgf_second_derivative(eta: float, gamma: float, x: FloatArray) -> FloatArray:
    """Return the derivative of ``pgf_derivative``."""
    scale = mean(eta, gamma) * (eta + 1.0) * ((1.0 - gamma) / gamma)
    return _scaled_decay(scale, (eta + 2.0) * _log_growth(gamma, x))


def probability_at_most(eta: float, gamma: float, count: int) -> float:
    """Return ``P(K <= count)``.

    Taylor's theorem with integral remainder, for the pgf at 0 evaluated at 1, gives for every
    ``eta > -1``::

        P(K > k) = Gamma(k + 1 + eta) / (Gamma(k + 1) Gamma(eta + 1))
                   * integral over [0, span] of (1 - e^-z)^k e^(-eta z) dz
                   / integral over [0, span] of e^(-eta z) dz,

    which for ``eta > 0`` is an incomplete beta function.

    Notes
    -----
    Theorem K1.
    """
    if count == 0:
        return 0.0
    number = float(min(count, 10**300))
    if eta < _BETA_FROM_ETA:
        return 1.0 - min(_exceedance_by_quadrature(eta, gamma, number), 1.0)
    log_none = eta * math.log(gamma)  # log P(K = 0) before the truncation
    some = -math.expm1(log_none)
    exceedance = float(special.betaincc(eta, number + 1.0, gamma)) / some
    if exceedance <= 0.5:
        return 1.0 - exceedance
    at_most = float(special.betainc(eta, number + 1.0, gamma)) - math.exp(log_none)
    return max(at_most, 0.0) / some


def _mean_of_span(span: float, eta: float) -> float:
    return float(special.exprel(span) / special.exprel(-eta * span))


def _log_growth(gamma: float, x: FloatArray) -> FloatArray:
    """Return ``log(w(x) / gamma)`` with full relative accuracy near ``x = 1``."""
    return np.log1p((1.0 - x) * ((1.0 - gamma) / gamma))


def _scaled_decay(scale: float, exponent: FloatArray) -> FloatArray:
    """Return ``scale e^-exponent``, even if the exponential itself would underflow."""
    root = np.exp(-exponent / 2)
    return np.asarray(scale * root * root)


def _exceedance_by_quadrature(eta: float, gamma: float, count: float) -> float:
    """Return ``P(K > count)`` for ``eta`` near 0 or below, with an error of about 1e-11.

    The integrand is smooth on the scale of 1 for any count: a step near ``z = log count`` times an
    exponential. Therefore panels of at most that width need no adaptation. The accuracy is limited
    by the ratio of gamma functions.
    """
    span = -math.log(gamma)
    edges = np.linspace(0.0, span, math.ceil(span) + 1)
    half = span / (edges.size - 1) / 2
    z = (edges[:-1, np.newaxis] + half * (1.0 + _NODES)).ravel()
    # log(1 - e^-z) in the form that keeps its digits: the first one for small z.
    log_step = np.where(z < 0.7, np.log(-np.expm1(-z)), np.log1p(-np.exp(-np.maximum(z, 0.7))))
    integral = np.exp(count * log_step - eta * z) @ np.tile(_WEIGHTS, edges.size - 1) * half
    scale = special.poch(count + 1.0, eta) / special.gamma(1.0 + eta)
    return float(scale * integral / (span * special.exprel(-eta * span)))


# Exact draws, in a time that does not depend on parameters -------------------------------

IntArray = NDArray[np.int64]
RandomState = int | np.random.Generator | np.random.RandomState | None

# Sums of two draws up to this stay below the largest int64.
_LARGEST_DRAW = 2**61


def make_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator: from a cryptographic source for None, or seeded."""
    if isinstance(random_state, np.random.Generator | SecureGenerator):
        return random_state
    check_kind(
        random_state,
        name="random_state",
        kind=(type(None), numbers.Integral, np.random.RandomState),
        domain="None, an integer, a numpy Generator or a numpy RandomState",
    )
    if random_state is None:
        # Assumption E0: random bits from AES with a key from the operating system.
        return secure_generator()
    if isinstance(random_state, np.random.RandomState):
        # Drawing the seed advances the legacy generator, so that two calls give two samples.
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    seed = check_integer(random_state, name="random_state", lower=0, upper=None)
    return np.random.default_rng(seed)


def draw_truncated_negative_binomial(
    rng: np.random.Generator, eta: float, gamma: float, shape: tuple[int, ...]
) -> IntArray:
    """Return independent draws; numbers of runs above 2**61 are clipped.

    For ``eta >= 0``, the negative binomial distribution of shape ``eta`` is that of a process at
    time ``eta`` that jumps at rate ``span = -log gamma`` by logarithmic numbers. Given that it
    jumps at all, the first jump is at an exponential time truncated at ``eta``, and has a
    logarithmic size. The rest is negative binomial with the remaining shape.

    For ``eta < 0``, the tail ``P(K > k)`` (see `probability_at_most`) is the mean of ``(v (1 -
    e^-z))^k`` with ``v ~ Beta(1 + eta, -eta)`` and ``z`` with a density proportional to ``e^(-eta
    z)`` on ``[0, span]``: a mixture of geometric distributions.
    """
    span = -math.log(gamma)
    if eta < 0.0:
        return _draw_geometric_mixture(rng, eta, span, shape)
    # Geometric draws with success probability e^-z, z uniform on [0, span].
    first = rng.geometric(np.exp(-span * rng.random(shape)))
    shape_left = np.maximum(eta - _draw_cut_exponential(rng, span, eta, shape), 0.0)
    rate = rng.standard_gamma(shape_left) * ((1.0 - gamma) / gamma)
    return _cut(_cut(first) + rng.poisson(np.minimum(rate, float(_LARGEST_DRAW))))


def _draw_geometric_mixture(
    rng: np.random.Generator, eta: float, span: float, shape: tuple[int, ...]
) -> IntArray:
    z = span - _draw_cut_exponential(rng, -eta, span, shape)
    # Draw 1 - v directly: the success 1 - v (1 - e^-z) may be far below the float spacing at 1.
    complement = rng.beta(-eta, 1.0 + eta, shape)
    success = np.exp(-z) + complement * -np.expm1(-z)
    return _cut(rng.geometric(np.minimum(success, 1.0)))


def _draw_cut_exponential(
    rng: np.random.Generator, rate: float, end: float, shape: tuple[int, ...]
) -> FloatArray:
    """Return exponential draws, given that they are in ``[0, end]``."""
    uniform = rng.random(shape)
    extent = rate * end
    if extent < sys.float_info.min:
        return np.asarray(uniform * end)
    return np.asarray(np.log1p(uniform * math.expm1(-extent)) * (-end / extent))


def _cut(draws: IntArray) -> IntArray:
    return np.minimum(draws, _LARGEST_DRAW)
