"""Distributions of the number of runs of a private search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy import special

from skdptune._validation import FloatArray, check_integer, check_real
from skdptune.accounting import _negative_binomial as negative_binomial
from skdptune.accounting._negative_binomial import IntArray, draw_truncated_negative_binomial
from skdptune.accounting._run_counts import RunCountDistribution

# Up to here, floats represent all integers, and numpy's samplers accept the parameter.
_LARGEST_COUNT = 2**53


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
            lower=negative_binomial.SMALLEST_GAMMA,
            upper=1,
            upper_open=True,
        )
        object.__setattr__(self, "gamma", gamma)

    @classmethod
    def from_mean(cls, mean: float, eta: float) -> TruncatedNegativeBinomial:
        """Return the distribution of shape ``eta`` with the given mean, which must exceed 1."""
        eta = _check_eta(eta)
        return TruncatedNegativeBinomial(eta, negative_binomial.gamma_from_mean(mean, eta))

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
        return negative_binomial.mean(self.eta, self.gamma)

    def _pgf(self, x: FloatArray) -> FloatArray:
        return negative_binomial.pgf(self.eta, self.gamma, x)

    def _pgf_derivative(self, x: FloatArray) -> FloatArray:
        return negative_binomial.pgf_derivative(self.eta, self.gamma, x)

    def _pgf_second_derivative(self, x: FloatArray) -> FloatArray:
        return negative_binomial.pgf_second_derivative(self.eta, self.gamma, x)

    def _probability_at_most(self, count: int) -> float:
        return negative_binomial.probability_at_most(self.eta, self.gamma, count)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray:
        return draw_truncated_negative_binomial(rng, self.eta, self.gamma, shape)


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
        return Geometric(negative_binomial.gamma_from_mean(mean, 1.0))


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
        return Logarithmic(negative_binomial.gamma_from_mean(mean, 0.0))


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
    largest = negative_binomial.LARGEST_ETA
    return check_real(eta, name="eta", lower=-1, lower_open=True, upper=largest)


def _check_rate(rate: float, *, name: str) -> float:
    return check_real(rate, name=name, lower=0, lower_open=True, upper=_LARGEST_COUNT)


def _check_trials(trials: int) -> int:
    trials = check_integer(trials, name="trials", lower=1)
    if trials > _LARGEST_COUNT:
        raise ValueError(f"trials must be at most {_LARGEST_COUNT}; got {trials}.")
    return trials
