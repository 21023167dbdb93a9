"""The plan of DP-SGD: sampling, number of steps, noise and cost, from public numbers alone."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from dp_accounting import dp_event
from scipy import optimize

from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import PrivacyProfile, calibrate, gaussian_delta

SAMPLINGS = ("poisson", "fixed")
# A profile holds no losses beyond 600, and no guarantee is left long before.
_LARGEST_EPSILON = 500.0
# Less noise promises nothing, and its losses would fill any memory.
_LEAST_NOISE = 1.0 / 30.0
# Share of epsilon that may be left over: less is not worth another evaluation.
_TOLERANCE = 2e-3


@dataclass(frozen=True)
class NoisyGradientPlan:
    """Sampling, number of steps and noise of DP-SGD, and the privacy profile of all steps.

    Attributes
    ----------
    n_samples : int
        The public number of records.
    batch_size : int
        The expected batch size (for "fixed", the batch size), by which sums are divided.
    sampling : {"poisson", "fixed"}
        How batches are drawn.
    rate : float
        ``batch_size / n_samples``.
    steps : int
        Number of steps, ``ceil(epochs / rate)``.
    noise_multiplier : float
        Standard deviation of the noise on a clipped sum, in units of the clipping norm.
    profile : PrivacyProfile
        What all steps together cost.
    """

    n_samples: int
    batch_size: int
    sampling: str
    rate: float
    steps: int
    noise_multiplier: float
    profile: PrivacyProfile


def plan_noisy_gradient(
    n_samples: int,
    *,
    epochs: float,
    batch_size: int,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_multiplier: float | None = None,
    sampling: str = "poisson",
) -> NoisyGradientPlan:
    r"""Return the plan of a DP-SGD training that keeps within a budget.

    Parameters
    ----------
    n_samples : int
        The public number of records.
    epochs : float
        Expected number of times that a record is looked at; the number of steps is
        ``epochs * n_samples / batch_size``, rounded up.
    batch_size : int
        Expected number of records of a batch, at most `n_samples`.
    epsilon, delta : float
        The budget. Infinite epsilon stands for no noise; of a finite one above 500 only 500 are
        used. Ignored if `noise_multiplier` is given.
    noise_multiplier : float, optional
        The noise, in place of a budget; 0 for none.
    sampling : {"poisson", "fixed"}, default="poisson"
        "poisson": each record enters each batch independently. "fixed": each batch is a
        uniform set of `batch_size` records.

    Returns
    -------
    NoisyGradientPlan
        Its cost at `delta` never exceeds `epsilon`, and is at least 99 % of it (up to 500).

    Notes
    -----
    Theorem M5.

    The relation is adding or removing one record. Sampling rate, number of steps, divisor and
    noise are constants: they do not change with the neighbour's size. Write ``C`` for the
    clipping norm, ``s`` for the noise multiplier, and ``N(a)`` for the normal distribution of
    mean ``a`` and covariance ``(s C)^2 I``.

    *Poisson.* Couple the samples of all records but the extra one: given those, a step's output is
    ``N(a)`` without the record and ``(1 - q) N(a) + q N(a + g)``, ``|g| <= C``, with it. By joint
    convexity of the hockey-stick divergence the pair is dominated, in either direction, by the
    Poisson-sampled Gaussian of noise multiplier ``s`` (Abadi et al. 2016; Zhu, Dong and Wang
    2022); steps compose, since the bound holds whatever the steps before released.

    *Fixed size.* Let the larger set have ``m`` records, the extra one ``z``, and batches have
    ``b < m``. Draw ``T``, a uniform set of ``b - 1`` records other than ``z``, and ``y`` uniformly
    from those that are left, neither ``z`` nor in ``T``. Then ``T + y`` is a uniform batch of the
    smaller set. It is a uniform batch of the larger set given that ``z`` is out, which has
    probability ``1 - b/m``; given that ``z`` is in, ``T + z`` is one. So with ``a`` and ``c``
    the clipped sums over ``T + y`` and ``T + z``, the distributions of a step are averages over
    the same ``(T, y)``::

        smaller set: N(a)        larger set: (1 - b/m) N(a) + (b/m) N(c)

    The extra record *replaces* another: ``|a - c| <= 2 C``. Joint convexity bounds both
    ``H(larger | smaller)`` and ``H(smaller | larger)`` by the largest value over ``(T, y)``. A
    shift shorter than ``2 C`` is a randomised function of a shift of ``2 C`` (shrink, then add
    noise), applied to both alike; so each direction is dominated by the same direction
    of the Poisson-sampled Gaussian of rate ``b/m`` and noise multiplier ``s / 2``. A larger rate
    costs more, in both directions (a sample of a sample), so ``batch_size / n_samples`` covers
    all larger sets of ``m >= n_samples``, in particular ``n_samples`` and ``n_samples + 1``. Where
    the larger set has no more than ``b = n_samples`` records, all of each set are used: a shift of
    at most ``C`` at rate 1, which is covered. This takes about twice the noise of Poisson
    batches.

    The noise is drawn in double precision by NumPy: as everywhere in the field, the theorem is
    about real numbers.

    Examples
    --------
    >>> plan = plan_noisy_gradient(1000, epochs=10, batch_size=100, epsilon=1.0, delta=1e-5)
    >>> plan.steps, plan.rate
    (100, 0.1)
    >>> 0.99 < plan.profile.epsilon(1e-5) <= 1.0
    True
    """
    n_samples, batch_size = _checked_sizes(n_samples, batch_size)
    epochs = check_real(epochs, name="epochs", lower=0.0, lower_open=True, upper=1e9)
    check_option(sampling, name="sampling", options=SAMPLINGS)
    # The factor takes back a rounding error that would cost a step.
    steps = max(1, math.ceil(epochs * n_samples / batch_size * (1.0 - 1e-12)))
    rate = batch_size / n_samples
    if noise_multiplier is None:
        budget = _checked_budget(epsilon, delta)
        noise, profile = _calibrated(rate, steps, sampling, *budget)
    else:
        noise = check_real(noise_multiplier, name="noise_multiplier", lower=0.0, upper=1e9)
        profile = _profile(rate, steps, sampling, noise)
    return NoisyGradientPlan(n_samples, batch_size, sampling, rate, steps, noise, profile)


def _checked_sizes(n_samples: int, batch_size: int) -> tuple[int, int]:
    n_samples = check_integer(n_samples, name="n_samples", lower=1)
    batch_size = check_integer(batch_size, name="batch_size", lower=1)
    if batch_size > n_samples:
        raise ValueError(
            f"batch_size must be at most the number of records, {n_samples}; got {batch_size}. "
            "Make it the number of records to use all of them in each step."
        )
    return n_samples, batch_size


def _checked_budget(epsilon: float | None, delta: float | None) -> tuple[float, float]:
    hint = "Or give noise_multiplier."
    epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True, hint=hint)
    if math.isinf(epsilon):
        return epsilon, 0.0
    delta = check_real(
        delta, name="delta", lower=0.0, lower_open=True, upper=1.0, upper_open=True, hint=hint
    )
    return epsilon, delta


@functools.lru_cache(maxsize=64)
def _calibrated(
    rate: float, steps: int, sampling: str, epsilon: float, delta: float
) -> tuple[float, PrivacyProfile]:
    """Return the least noise that keeps within the budget, and its profile."""
    if math.isinf(epsilon):
        return 0.0, _profile(rate, steps, sampling, 0.0)
    found = calibrate(
        lambda noise: _profile(rate, steps, sampling, noise),
        min(epsilon, _LARGEST_EPSILON),
        delta,
        lower=1e-2,
        guess=_noise_guess(rate, steps, sampling, epsilon, delta),
        tolerance=_TOLERANCE,
    )
    return found.value, found.profile


@functools.lru_cache(maxsize=64)
def _profile(rate: float, steps: int, sampling: str, noise: float) -> PrivacyProfile:
    """Return the profile of all steps."""
    if sampling == "fixed":
        noise = noise / 2.0
    if noise < _LEAST_NOISE:
        return PrivacyProfile.from_event(dp_event.NonPrivateDpEvent())
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    event = dp_event.SelfComposedDpEvent(step, steps)
    return PrivacyProfile.from_event(event, _grid(rate, steps, noise))


def _grid(rate: float, steps: int, noise: float) -> float | None:
    """Return a grid of the losses that is as fine as their spread asks for; None if usual.

    A coarser grid errs on the safe side, and at 20,000 points to the spread by about 1e-4.
    """
    mu = rate * math.sqrt(steps * math.expm1(min(noise**-2, 50.0)))
    grid = min(mu * (mu / 2.0 + 4.0) / 20_000, 2.5e-3)
    return grid if grid > 1e-4 else None


def _noise_guess(rate: float, steps: int, sampling: str, epsilon: float, delta: float) -> float:
    """Return about the noise of a budget, by the central limit theorem of composition.

    Many steps are like one Gaussian release of ``mu = q sqrt(T (exp(1/s^2) - 1))`` (Bu, Dong,
    Long and Su 2020); a single one at rate 1 has ``mu = 1/s``.
    """
    low, high = 1e-6, 30.0
    at = np.asarray(epsilon)

    def excess(log_mu: float) -> float:
        return math.log(max(float(gaussian_delta(math.exp(log_mu), at)), 1e-300) / delta)

    ends = math.log(low), math.log(high)
    if excess(ends[0]) >= 0.0 or excess(ends[1]) <= 0.0:
        return 1.0
    share = math.exp(optimize.brentq(excess, *ends, xtol=1e-4)) / math.sqrt(steps) / rate
    noise = 1.0 / share if rate == 1.0 else 1.0 / math.sqrt(math.log1p(share**2))
    return min(max(noise * (2.0 if sampling == "fixed" else 1.0), 0.3), 1e6)
