"""Distributions of the number of runs of a private search.

With ``a = 1 - gamma`` and ``w(x) = 1 - a x``, every quantity of the truncated negative binomial
distribution is expressed in terms of

* ``span = -log gamma``, the value of ``-log w`` at ``x = 1``,
* ``exprel(t) = (e^t - 1) / t``, which is 1 at ``t = 0``.

So ``eta = 0`` (the logarithmic distribution) needs no special case, and nothing overflows.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy import optimize, special

from skdptune._validation import FloatArray, check_integer, check_real
from skdptune.accounting._run_counts import IntArray, RunCountDistribution

# Up to here, floats represent all integers, and numpy's samplers accept the parameter.
_LARGEST_COUNT = 2**53
# Within these limits, the mean and both derivatives of the pgf are finite in double precision.
_SMALLEST_GAMMA = 1e-140
_LARGEST_GAMMA = 1.0 - sys.float_info.epsilon / 2
_LARGEST_ETA = 1e6
# From this shape on, the incomplete beta function is accurate; near 0 it is a ratio of zeros.
_BETA_FROM_ETA = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Sums of two draws up to this stay below the largest int64.
_LARGEST_DRAW = 2**61


@dataclass(frozen=True, eq=False)
class TruncatedNegativeBinomial(RunCountDistribution):
    """Negative binomial number of runs, given that there is at least one run.

    Parameters
    ----------
    eta : float
        Shape, in (-1, 1e6]. The geometric distribution has shape 1, the logarithmic one has shape
        0.
    gamma : float
        Stopping probability, in [1e-140, 1). Smaller values mean more runs.

    Notes
    -----
    Theorem K1.

    ``pgf(x) = ((1 - (1 - gamma) x)^-eta - 1) / (gamma^-eta - 1)``, and its limit ``log(1 - (1 -
    gamma) x) / log(gamma)`` at ``eta = 0``. These are the distributions of Papernot and Steinke,
    "Hyperparameter Tuning with Renyi Differential Privacy" (ICLR 2022), Definition 1. The ranges
    of the two parameters keep all values finite in double precision. Two distributions with the
    same ``eta`` and ``gamma`` are equal, so ``Geometric(g) == TruncatedNegativeBinomial(1, g)``.

    Examples
    --------
    >>> from skdptune.accounting import TruncatedNegativeBinomial
    >>> distribution = TruncatedNegativeBinomial(eta=0.5, gamma=0.01)
    >>> round(distribution.mean, 6)
    55.0
    >>> round(distribution.probability_at_most(100), 4)
    0.8281
    """

    eta: float
    gamma: float
    _name: ClassVar[str] = "truncated_negative_binomial"

    def __post_init__(self) -> None:
        """Validate the parameters and store them as floats."""
        object.__setattr__(self, "eta", _check_eta(self.eta))
        gamma = check_real(
            self.gamma,
            name="gamma",
            lower=_SMALLEST_GAMMA,
            upper=1,
            upper_open=True,
        )
        object.__setattr__(self, "gamma", gamma)

    @classmethod
    def from_mean(cls, mean: float, eta: float) -> TruncatedNegativeBinomial:
        """Return the distribution of shape ``eta`` with the given mean, which must exceed 1."""
        eta = _check_eta(eta)
        return TruncatedNegativeBinomial(eta, _gamma_from_mean(mean, eta))

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is the same distribution, even if its class differs."""
        if not isinstance(other, TruncatedNegativeBinomial):
            return NotImplemented
        return (self.eta, self.gamma) == (other.eta, other.gamma)

    def __hash__(self) -> int:
        """Return a hash that agrees with equality."""
        return hash((TruncatedNegativeBinomial, self.eta, self.gamma))

    @property
    def mean(self) -> float:
        """Expected number of runs."""
        if self.eta == 1.0:
            return 1.0 / self.gamma  # the same number, and free of rounding for round means
        return _mean_of_span(self._span, self.eta)

    @property
    def _span(self) -> float:
        return -math.log(self.gamma)

    def _pgf(self, x: FloatArray) -> FloatArray:
        """Return ``(w(x)^-eta - 1) / (gamma^-eta - 1)``, or its limit at ``eta = 0``."""
        eta, gamma = self.eta, self.gamma
        below = (1.0 - gamma) * x
        # 1 - below loses the digits of a small `below`, and log1p(-below) those of a small w.
        decay = np.where(
            below < 0.5,
            -np.log1p(-np.minimum(below, 0.5)),
            -np.log((1.0 - x) + gamma * x),
        )
        # expm1(eta decay) / expm1(eta span), with the large factor separated if eta > 0.
        ratio = decay / self._span * special.exprel(-abs(eta) * decay)
        ratio = ratio / special.exprel(-abs(eta) * self._span)
        value: FloatArray = ratio * np.exp(-max(eta, 0.0) * self._log_growth(x))
        return np.minimum(value, 1.0)

    def _pgf_derivative(self, x: FloatArray) -> FloatArray:
        """Return ``E[K] (gamma / w(x))^(eta + 1)``."""
        return _scaled_decay(self.mean, (self.eta + 1.0) * self._log_growth(x))

    def _pgf_second_derivative(self, x: FloatArray) -> FloatArray:
        scale = self.mean * (self.eta + 1.0) * ((1.0 - self.gamma) / self.gamma)
        return _scaled_decay(scale, (self.eta + 2.0) * self._log_growth(x))

    def _log_growth(self, x: FloatArray) -> FloatArray:
        """Return ``log(w(x) / gamma)`` with full relative accuracy near ``x = 1``."""
        return np.log1p((1.0 - x) * ((1.0 - self.gamma) / self.gamma))

    def _probability_at_most(self, count: int) -> float:
        """Return ``P(K <= count)``.

        Taylor's theorem with integral remainder, for the pgf at 0 evaluated at 1, gives for every
        ``eta > -1``::

            P(K > k) = Gamma(k + 1 + eta) / (Gamma(k + 1) Gamma(eta + 1))
                       * integral over [0, span] of (1 - e^-z)^k e^(-eta z) dz
                       / integral over [0, span] of e^(-eta z) dz,

        which for ``eta > 0`` is an incomplete beta function.
        """
        eta, gamma = self.eta, self.gamma
        if count == 0:
            return 0.0
        number = float(min(count, 10**300))
        if eta < _BETA_FROM_ETA:
            return 1.0 - min(self._exceedance_by_quadrature(number), 1.0)
        log_none = eta * math.log(gamma)  # log P(K = 0) before the truncation
        some = -math.expm1(log_none)
        exceedance = float(special.betaincc(eta, number + 1.0, gamma)) / some
        if exceedance <= 0.5:
            return 1.0 - exceedance
        at_most = float(special.betainc(eta, number + 1.0, gamma)) - math.exp(log_none)
        return max(at_most, 0.0) / some

    def _exceedance_by_quadrature(self, count: float) -> float:
        """Return ``P(K > count)`` for ``eta`` near 0 or below, with an error of about 1e-11.

        The integrand is smooth on the scale of 1 for any count: a step near ``z = log count``
        times an exponential. Therefore panels of at most that width need no adaptation. The
        accuracy is limited by the ratio of gamma functions.
        """
        eta, span = self.eta, self._span
        edges = np.linspace(0.0, span, math.ceil(span) + 1)
        half = span / (edges.size - 1) / 2
        z = (edges[:-1, np.newaxis] + half * (1.0 + _NODES)).ravel()
        # log(1 - e^-z) in the form that keeps its digits: the first one for small z.
        log_step = np.where(z < 0.7, np.log(-np.expm1(-z)), np.log1p(-np.exp(-np.maximum(z, 0.7))))
        integral = np.exp(count * log_step - eta * z) @ np.tile(_WEIGHTS, edges.size - 1) * half
        scale = special.poch(count + 1.0, eta) / special.gamma(1.0 + eta)
        return float(scale * integral / (span * special.exprel(-eta * span)))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray:
        """Return exact draws, in a time that does not depend on the parameters.

        Numbers of runs above 2**61 are clipped.

        For ``eta >= 0``, the negative binomial distribution of shape ``eta`` is that of a process
        at time ``eta`` that jumps at rate ``span = -log gamma`` by logarithmic numbers. Given that
        it jumps at all, the first jump is at an exponential time truncated at ``eta``, and has a
        logarithmic size. The rest is negative binomial with the remaining shape.

        For ``eta < 0``, the tail ``P(K > k)`` (see `_probability_at_most`) is the mean of ``(v (1
        - e^-z))^k`` with ``v ~ Beta(1 + eta, -eta)`` and ``z`` with a density proportional to
        ``e^(-eta z)`` on ``[0, span]``: a mixture of geometric distributions.
        """
        eta, span = self.eta, self._span
        if eta < 0.0:
            z = span - _draw_cut_exponential(rng, -eta, span, shape)
            # Draw 1 - v directly: the success 1 - v (1 - e^-z) may be far below the float spacing
            # at 1.
            complement = rng.beta(-eta, 1.0 + eta, shape)
            success = np.exp(-z) + complement * -np.expm1(-z)
            return np.minimum(rng.geometric(np.minimum(success, 1.0)), _LARGEST_DRAW)
        # Geometric draws with success probability e^-z, z uniform on [0, span].
        first = rng.geometric(np.exp(-span * rng.random(shape)))
        shape_left = np.maximum(eta - _draw_cut_exponential(rng, span, eta, shape), 0.0)
        rate = rng.standard_gamma(shape_left) * ((1.0 - self.gamma) / self.gamma)
        more = rng.poisson(np.minimum(rate, float(_LARGEST_DRAW)))
        return np.minimum(np.minimum(first, _LARGEST_DRAW) + more, _LARGEST_DRAW)


@dataclass(frozen=True, eq=False)
class Geometric(TruncatedNegativeBinomial):
    """Geometric number of runs: after each run, stop with a fixed probability.

    Parameters
    ----------
    gamma : float
        Stopping probability, in [1e-140, 1). The mean is ``1 / gamma``.

    Examples
    --------
    >>> from skdptune.accounting import Geometric
    >>> distribution = Geometric.from_mean(20)
    >>> distribution
    Geometric(gamma=0.05)
    >>> distribution.mean
    20.0
    """

    eta: float = field(default=1.0, init=False, repr=False)
    gamma: float
    _name: ClassVar[str] = "geometric"

    @classmethod
    def from_mean(cls, mean: float) -> Geometric:  # type: ignore[override]  # eta is fixed
        """Return the geometric distribution with the given mean, which must exceed 1."""
        return Geometric(_gamma_from_mean(mean, 1.0))


@dataclass(frozen=True, eq=False)
class Logarithmic(TruncatedNegativeBinomial):
    """Logarithmic number of runs: ``P(K = k)`` is proportional to ``(1 - gamma)^k / k``.

    Parameters
    ----------
    gamma : float
        Stopping probability, in [1e-140, 1). Smaller values mean more runs.

    Examples
    --------
    >>> from skdptune.accounting import Logarithmic
    >>> distribution = Logarithmic(gamma=0.01)
    >>> round(distribution.mean, 4)
    21.4976
    >>> round(distribution.probability_at_most(1), 4)
    0.215
    """

    eta: float = field(default=0.0, init=False, repr=False)
    gamma: float
    _name: ClassVar[str] = "logarithmic"

    @classmethod
    def from_mean(cls, mean: float) -> Logarithmic:  # type: ignore[override]  # eta is fixed
        """Return the logarithmic distribution with the given mean, which must exceed 1."""
        return Logarithmic(_gamma_from_mean(mean, 0.0))


@dataclass(frozen=True)
class Poisson(RunCountDistribution):
    """Poisson number of runs, which may be zero.

    Parameters
    ----------
    rate : float
        The mean, above 0. With probability ``exp(-rate)``, the search makes no run and returns a
        result that does not depend on the data.

    Notes
    -----
    Theorem K1.

    Examples
    --------
    >>> from skdptune.accounting import Poisson
    >>> distribution = Poisson(rate=15)
    >>> distribution.mean
    15.0
    >>> round(distribution.probability_at_most(20), 4)
    0.917
    """

    rate: float
    _name: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        """Validate the rate and store it as a float."""
        object.__setattr__(self, "rate", _check_rate(self.rate, name="rate"))

    @classmethod
    def from_mean(cls, mean: float) -> Poisson:
        """Return the Poisson distribution with the given mean."""
        return Poisson(_check_rate(mean, name="mean"))

    @property
    def mean(self) -> float:
        """Expected number of runs."""
        return self.rate

    def _pgf(self, x: FloatArray) -> FloatArray:
        return np.exp(-self.rate * (1.0 - x))

    def _pgf_derivative(self, x: FloatArray) -> FloatArray:
        return self.rate * self._pgf(x)

    def _pgf_second_derivative(self, x: FloatArray) -> FloatArray:
        return self.rate**2 * self._pgf(x)

    def _probability_at_most(self, count: int) -> float:
        return float(special.gammaincc(float(min(count, 10**300)) + 1.0, self.rate))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray:
        return np.asarray(rng.poisson(self.rate, shape), dtype=np.int64)


@dataclass(frozen=True)
class Binomial(RunCountDistribution):
    """Binomial number of runs: each of a fixed number of trials is run or left out.

    Parameters
    ----------
    trials : int
        Number of trials, at least 1.
    probability : float
        Probability that a trial is run, in (0, 1]. If it is 1, the number of runs is fixed.

    Notes
    -----
    Theorem K1.

    Examples
    --------
    >>> from skdptune.accounting import Binomial
    >>> distribution = Binomial(trials=10, probability=0.5)
    >>> distribution.mean
    5.0
    >>> distribution.probability_of_none == 0.5**10
    True
    """

    trials: int
    probability: float
    _name: ClassVar[str] = "binomial"

    def __post_init__(self) -> None:
        """Validate the parameters and store them as an int and a float."""
        object.__setattr__(self, "trials", _check_trials(self.trials))
        probability = check_real(
            self.probability, name="probability", lower=0, lower_open=True, upper=1
        )
        object.__setattr__(self, "probability", probability)

    @classmethod
    def from_mean(cls, mean: float, trials: int) -> Binomial:
        """Return the binomial distribution with the given mean, which is at most ``trials``."""
        trials = _check_trials(trials)
        mean = check_real(mean, name="mean", lower=0, lower_open=True, upper=trials)
        return Binomial(trials, mean / trials)

    @property
    def mean(self) -> float:
        """Expected number of runs."""
        return self.trials * self.probability

    def _pgf(self, x: FloatArray) -> FloatArray:
        return self._power(x, self.trials)

    def _pgf_derivative(self, x: FloatArray) -> FloatArray:
        return self.mean * self._power(x, self.trials - 1)

    def _pgf_second_derivative(self, x: FloatArray) -> FloatArray:
        scale = self.mean * (self.trials - 1) * self.probability
        return scale * self._power(x, max(self.trials - 2, 0))

    def _probability_at_most(self, count: int) -> float:
        if count >= self.trials:
            return 1.0
        left = float(self.trials - count)
        return float(special.betaincc(count + 1.0, left, self.probability))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray:
        return np.asarray(rng.binomial(self.trials, self.probability, shape), dtype=np.int64)

    def _power(self, x: FloatArray, exponent: int) -> FloatArray:
        # (1 - p + p x)^n; the base is computed directly near 0, and by its distance from 1 near 1.
        # Both functions return 0^0 = 1, which occurs for n = 0 at p = 1 and x = 0.
        base = (1.0 - self.probability) + self.probability * x
        far = special.xlogy(float(exponent), base)
        near = special.xlog1py(float(exponent), -self.probability * (1.0 - x))
        return np.exp(np.where(base < 0.5, far, near))


def _check_eta(eta: float) -> float:
    return check_real(eta, name="eta", lower=-1, lower_open=True, upper=_LARGEST_ETA)


def _check_rate(rate: float, *, name: str) -> float:
    return check_real(rate, name=name, lower=0, lower_open=True, upper=_LARGEST_COUNT)


def _check_trials(trials: int) -> int:
    trials = check_integer(trials, name="trials", lower=1)
    if trials > _LARGEST_COUNT:
        raise ValueError(f"trials must be at most {_LARGEST_COUNT}; got {trials}.")
    return trials


# Functions of the truncated negative binomial distribution -----------------------------------


def _gamma_from_mean(target: float, eta: float) -> float:
    """Return the stopping probability for which shape ``eta`` has the mean ``target``."""
    target = check_real(target, name="mean", lower=1, lower_open=True)
    end = -math.log(_SMALLEST_GAMMA)
    hint = "A larger eta allows a larger mean."
    target = check_real(
        target, name="mean", lower=1, lower_open=True, upper=_mean_of_span(end, eta), hint=hint
    )
    if eta == 1.0:
        return min(1.0 / target, _LARGEST_GAMMA)

    def excess(span: float) -> float:
        return math.log(_mean_of_span(span, eta)) - math.log(target)

    start = -math.log(_LARGEST_GAMMA)
    if excess(start) >= 0.0:  # the mean is 1 up to rounding
        return _LARGEST_GAMMA
    rtol = 4 * sys.float_info.epsilon
    span = optimize.brentq(excess, start, end, xtol=1e-300, rtol=rtol, maxiter=1000)
    return max(math.exp(-float(span)), _SMALLEST_GAMMA)


def _mean_of_span(span: float, eta: float) -> float:
    return float(special.exprel(span) / special.exprel(-eta * span))


def _scaled_decay(scale: float, exponent: FloatArray) -> FloatArray:
    """Return ``scale e^-exponent``, even if the exponential itself would underflow."""
    root = np.exp(-exponent / 2)
    return np.asarray(scale * root * root)


def _draw_cut_exponential(
    rng: np.random.Generator, rate: float, end: float, shape: tuple[int, ...]
) -> FloatArray:
    """Return exponential draws, given that they are in ``[0, end]``."""
    uniform = rng.random(shape)
    extent = rate * end
    if extent < sys.float_info.min:
        return np.asarray(uniform * end)
    return np.asarray(np.log1p(uniform * math.expm1(-extent)) * (-end / extent))
