"""The plan of DP-SGD: sampling, number of steps, noise and cost, from public numbers only."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from dp_accounting import dp_event

from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import (
    PrivacyProfile,
    UnreachableBudgetError,
    calibrate,
    random_allocation,
)
from skdptune.mechanisms._batches import Batch, allocation_batches, fixed_batches, poisson_batches
from skdptune.mechanisms._noise import gaussian_shift

SAMPLINGS = ("poisson", "fixed", "allocation")
# Instead of a number of epochs: the largest number of steps that the budget allows.
MAX_EPOCHS = "max"
# Profiles contain no losses beyond 600, and the guarantee is meaningless long before.
_LARGEST_EPSILON = 500.0
# Less noise guarantees nothing, and its losses would need too much memory.
_LEAST_NOISE = 1.0 / 30.0
# Share of epsilon that may remain unused: a smaller one is not worth another evaluation.
_TOLERANCE = 2e-3
# Batches are drawn at once for as many steps as have so many rows or numbers. If that is all
# rows, the number of draws decides.
_ROWS_AHEAD, _NUMBERS_AHEAD, _DRAWS_AHEAD = 1 << 20, 1 << 25, 1 << 22
# Smallest share of the records in a batch of an allocation.
_LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class NoisyGradientPlan:
    """Sampling, number of steps and noise of DP-SGD, and the privacy profile of all steps.

    Attributes
    ----------
    n_samples : int
        The public number of records.
    batch_size : int
        The expected batch size (for "fixed", the batch size), by which sums are divided.
    sampling : {"poisson", "fixed", "allocation"}
        How batches are drawn.
    rate : float
        ``batch_size / n_samples``; for "allocation", 1 over the number of batches in a round.
    steps : int
        Number of steps: ``ceil(epochs / rate)``, or as many as the budget pays for.
    noise_multiplier : float
        Standard deviation of the noise on a clipped sum, in units of the clipping norm.
    profile : PrivacyProfile
        The privacy cost of all steps together.
    """

    n_samples: int
    batch_size: int
    sampling: str
    rate: float
    steps: int
    noise_multiplier: float
    profile: PrivacyProfile

    @property
    def epochs(self) -> float:
        """Expected number of times that a record is used, over all steps."""
        # Remove the last digits, which come from rounding the rate, so that integers are exact.
        return float(f"{self.steps * self.rate:.14g}")

    def batches(self, n_samples: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Return the batches of all steps, drawn from the actual records.

        Parameters
        ----------
        n_samples : int
            Actual number of records, which may differ from the public one.
        rng : numpy.random.Generator
            Generator of the draws.

        Returns
        -------
        iterator of ndarray of int or slice
            Increasing indices of records, for each step.
        """
        if self.sampling == "fixed":
            return fixed_batches(n_samples, self.batch_size, self.steps, rng)
        if self.sampling == "allocation":
            return allocation_batches(n_samples, round(1.0 / self.rate), self.steps, rng)
        return poisson_batches(n_samples, self.rate, self.steps, rng)

    def batches_ahead(
        self, n_samples: int, width: int, rng: np.random.Generator
    ) -> Iterator[list[Batch]]:
        """Yield the batches of as many steps as are drawn at once, a public number.

        Parameters
        ----------
        n_samples, rng
            See `batches`.
        width : int
            Number of columns of a record.

        Yields
        ------
        list of ndarray of int or slice
        """
        rows = min(_ROWS_AHEAD, _NUMBERS_AHEAD // width)
        # Few rows are all in memory, however often they are drawn.
        count = max(1, (rows if rows < self.n_samples else _DRAWS_AHEAD) // self.batch_size)
        batches = self.batches(n_samples, rng)
        # All steps on all rows read them once.
        while drawn := list(itertools.islice(batches, self.steps if self.rate == 1.0 else count)):
            yield drawn


def plan_noisy_gradient(
    n_samples: int,
    *,
    epochs: float | Literal["max"],
    batch_size: int,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_multiplier: float | None = None,
    sampling: str = "poisson",
) -> NoisyGradientPlan:
    r"""Return the plan of a DP-SGD training within a budget.

    Parameters
    ----------
    n_samples : int
        The public number of records.
    epochs : float or "max"
        Expected number of times that a record is used; the number of steps is ``epochs * n_samples
        / batch_size``, rounded up. "max" means the largest number of steps with
        `noise_multiplier` that the budget allows.
    batch_size : int
        Expected number of records in a batch, at most `n_samples`.
    epsilon, delta : float
        The budget. Infinite epsilon means no noise; of a finite epsilon above 500, only 500 are
        used. Ignored if `noise_multiplier` is given, unless `epochs` is "max".
    noise_multiplier : float, optional
        The noise, instead of a budget; 0 for none. With "max" epochs, it is given in addition to a
        budget.
    sampling : {"poisson", "fixed", "allocation"}, default="poisson"
        "poisson": each record is in each batch independently. "fixed": each batch is a uniform set
        of `batch_size` records. "allocation": an epoch has ``n_samples / batch_size`` batches
        (rounded), and each record is in one of them, drawn at random; the last epoch may be
        incomplete.

    Returns
    -------
    NoisyGradientPlan
        Its cost at `delta` never exceeds `epsilon`, and is at least 99 % of it (up to 500). With
        "max" epochs, the unused budget is less than the cost of one more step.

    Notes
    -----
    Theorem M5, Theorem M6.

    The neighbouring relation is adding or removing one record. Sampling rate, number of steps,
    divisor and noise are constants: they do not change with the size of the neighbouring data set.

    *Poisson.* The Poisson-sampled Gaussian with this noise multiplier, composed over the steps
    (Abadi et al. 2016; Zhu, Dong and Wang 2022).

    *Fixed size.* The additional record *replaces* another one in the batch, so the noise counts as
    half: the Poisson-sampled Gaussian with half the noise multiplier, in both directions. This
    needs about twice the noise of Poisson batches.

    *Allocation.* A record is in one batch of an epoch, drawn independently of everything else.
    Therefore the batch sizes are as random as those of Poisson batches. For 20 to 1,000 batches, 1
    to 10 epochs and epsilon from 0.5 to 4, it needs 1 to 13 % less noise than Poisson batches.

    As usual in the literature, sums of clipped gradients are treated as real numbers: the effect
    of rounding is not part of the theorem.

    Examples
    --------
    >>> plan = plan_noisy_gradient(1000, epochs=10, batch_size=100, epsilon=1.0, delta=1e-5)
    >>> plan.steps, plan.rate
    (100, 0.1)
    >>> 0.99 < plan.profile.epsilon(1e-5) <= 1.0
    True
    """
    n_samples, batch_size = _checked_sizes(n_samples, batch_size)
    check_option(sampling, name="sampling", options=SAMPLINGS)
    rate = batch_size / n_samples
    if sampling == "allocation":
        rate = 1.0 / round(n_samples / batch_size)
        batch_size = max(1, round(n_samples * rate))
    if isinstance(epochs, str) and epochs == MAX_EPOCHS:
        noise, *limits = check_noise_and_budget(noise_multiplier, epsilon, delta)
        steps, profile = _most_steps(rate, noise, sampling, *limits)
        return NoisyGradientPlan(n_samples, batch_size, sampling, rate, steps, noise, profile)
    epochs = check_real(epochs, name="epochs", lower=0.0, lower_open=True, upper=1e9)
    # The factor compensates for a rounding error that would cost a step.
    steps = max(1, math.ceil(epochs / rate * (1.0 - 1e-12)))
    if noise_multiplier is None:
        budget = _checked_budget(epsilon, delta)
        noise, profile = _calibrated(rate, steps, sampling, *budget)
    else:
        noise = check_real(noise_multiplier, name="noise_multiplier", lower=0.0, upper=1e9)
        profile = _profile(rate, steps, sampling, noise)
    return NoisyGradientPlan(n_samples, batch_size, sampling, rate, steps, noise, profile)


def steps_for_budget(
    noise_multiplier: float,
    sampling_rate: float,
    epsilon: float,
    delta: float,
    *,
    sampling: str = "poisson",
) -> int:
    """Return the largest number of noisy gradient steps that a budget pays for.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on a clipped sum, in units of the clipping norm.
    sampling_rate : float
        Share of the records in a batch, in (0, 1].
    epsilon, delta : float
        The budget, finite and positive.
    sampling : {"poisson", "fixed", "allocation"}, default="poisson"
        "poisson": each record is in each batch independently. "fixed": batches have a fixed size.
        "allocation": each record is in one batch of an epoch, at random; the rate is rounded to 1
        over a number of batches.

    Returns
    -------
    int
        This many steps cost at most `epsilon` at `delta`, and one more would cost more. Above
        10,000 steps, the number is accurate to four digits; the maximum is one billion.

    Raises
    ------
    UnreachableBudgetError
        If a single step costs more than the budget.

    See Also
    --------
    noise_for_budget : Returns the noise for a single release.

    Notes
    -----
    Theorem M5, Theorem M6.

    This is the other way to spend a budget on candidates of any rate and noise (Koskela and
    Kulkarni 2023, arXiv:2301.11989, appendix D.1). Neighbours differ by one record, added or
    removed.

    Examples
    --------
    >>> from skdptune.mechanisms import steps_for_budget
    >>> steps_for_budget(noise_multiplier=2.0, sampling_rate=0.01, epsilon=1.0, delta=1e-5)
    2433
    """
    noise, *limits = check_noise_and_budget(noise_multiplier, epsilon, delta)
    rate = check_real(sampling_rate, name="sampling_rate", lower=0.0, upper=1.0, lower_open=True)
    check_option(sampling, name="sampling", options=SAMPLINGS)
    if sampling == "allocation":
        check_real(rate, name="sampling_rate", lower=_LEAST_SHARE, upper=1.0)
    return _most_steps(rate, noise, sampling, *limits)[0]


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


def check_noise_and_budget(
    noise_multiplier: float | None, epsilon: float | None, delta: float | None
) -> tuple[float, float, float]:
    """Return noise, epsilon and delta if they determine a number of steps, or raise."""
    hint = "The number of steps follows from noise_multiplier, epsilon and delta together."
    noise = check_real(
        noise_multiplier, name="noise_multiplier", lower=0.0, lower_open=True, upper=1e9, hint=hint
    )
    epsilon = check_real(
        epsilon, name="epsilon", lower=0.0, lower_open=True, upper_open=True, hint=hint
    )
    delta = check_real(
        delta, name="delta", lower=0.0, lower_open=True, upper=1.0, upper_open=True, hint=hint
    )
    return noise, epsilon, delta


@functools.lru_cache(maxsize=64)
def _most_steps(
    rate: float, noise: float, sampling: str, epsilon: float, delta: float
) -> tuple[int, PrivacyProfile]:
    """Return the largest number of steps within the budget, and their profile."""
    epsilon = min(epsilon, _LARGEST_EPSILON)
    shift = gaussian_shift(epsilon, delta) or 1.0
    of_one = _shift_of_steps(rate, 1, noise / (2.0 if sampling == "fixed" else 1.0))
    # For very small sampling rates, it is rounded to 0.
    guess = (shift / max(of_one, 1e-100)) ** 2

    # Not cached: most intermediate profiles are not needed again.
    def profile_of(steps: int) -> PrivacyProfile:
        return _profile.__wrapped__(rate, steps, sampling, noise)

    return most_steps(profile_of, epsilon, delta, guess)


@functools.lru_cache(maxsize=64)
def _calibrated(
    rate: float, steps: int, sampling: str, epsilon: float, delta: float
) -> tuple[float, PrivacyProfile]:
    """Return the smallest noise within the budget, and its profile."""
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
    if sampling == "allocation":
        return random_allocation(noise, round(1.0 / rate), steps)
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    return PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, steps))


def _shift_of_steps(rate: float, steps: int, noise: float) -> float:
    """Return the shift of the Gaussian release that approximates a number of steps.

    This is the central limit theorem of composition (Bu, Dong, Long and Su 2020).
    """
    # For smaller noise, the square is above 50 and may exceed all doubles.
    square = noise**-2 if noise > 0.1 else 50.0
    return rate * math.sqrt(steps * math.expm1(min(square, 50.0)))


def _noise_guess(rate: float, steps: int, sampling: str, epsilon: float, delta: float) -> float:
    """Return the approximate noise for a budget: the inverse of `_shift_of_steps`.

    A single step at rate 1 has exactly the shift ``1/noise``.
    """
    shift = gaussian_shift(epsilon, delta)
    if shift is None:
        return 1.0
    share = shift / math.sqrt(steps) / rate
    noise = 1.0 / share if rate == 1.0 else 1.0 / math.sqrt(math.log1p(share**2))
    return min(max(noise * (2.0 if sampling == "fixed" else 1.0), 0.3), 1e6)


# The largest number of equal steps that a budget pays for --------------------------------

# More steps are never needed.
LARGEST_COUNT = 10**9
# Relative precision of a large number of steps: closer numbers differ in cost only by rounding.
_PRECISION = 1e-4
# Number of evaluations by interpolation; after that, the bracket is bisected.
_INTERPOLATIONS = 12


def most_steps(
    profile_of: Callable[[int], PrivacyProfile], epsilon: float, delta: float, guess: float
) -> tuple[int, PrivacyProfile]:
    """Return the largest number of steps whose cost is within a budget, and their profile.

    Parameters
    ----------
    profile_of : callable
        Maps a number of steps to their total cost; more steps cost more.
    epsilon, delta : float
        The budget.
    guess : float
        Approximate number of steps; a good guess saves evaluations.

    Returns
    -------
    steps, profile : int, PrivacyProfile
        At least 1 and at most `LARGEST_COUNT` steps. They cost at most `epsilon` at `delta`, and
        one more step would cost more (above 10,000 steps, a ten-thousandth more steps).

    Raises
    ------
    UnreachableBudgetError
        If a single step costs more than the budget.

    Notes
    -----
    Theorem C1.

    Bisection between a number that fits and one that does not, accelerated by the central limit
    theorem: the cost is approximately that of Gaussian noise whose squared shift grows linearly
    with the steps. Only a number that fits is ever returned.
    """
    target = _squared_shift(epsilon, delta)
    low, high, tried = 0, LARGEST_COUNT + 1, list[tuple[int, float]]()
    best, least = None, math.inf
    trial = _clipped(guess, low, high)
    while high - low > max(1.0, _PRECISION * low):
        profile = profile_of(trial)
        cost = profile.epsilon(delta)
        if cost <= epsilon:
            low, best = trial, profile
        else:
            high, least = trial, cost
        tried.append((trial, _squared_shift(cost, delta)))
        trial = _next(low, high, tried, target)
    if best is None:
        raise UnreachableBudgetError(
            f"epsilon must be at least {least:.4g} at delta={delta:g}, the cost of a single step; "
            f"got {epsilon:g}. Or make noise_multiplier larger, or batches smaller.",
            least,
        )
    return low, best


def _squared_shift(epsilon: float, delta: float) -> float:
    """Return the square of `gaussian_shift`; NaN if it does not exist."""
    shift = gaussian_shift(epsilon, delta) if 0.0 < epsilon < math.inf else None
    return math.nan if shift is None else shift * shift


def _next(low: int, high: int, tried: list[tuple[int, float]], target: float) -> int:
    """Return a number of steps between one that fits and one that does not.

    It is where the line through two points meets the target. These are the ends of the bracket if
    both are known; otherwise, the latest two, or 0 and the latest one.
    """
    known = [point for point in tried if math.isfinite(point[1])]
    if len(tried) > _INTERPOLATIONS or not known or math.isnan(target):
        return _clipped(_middle(low, high), low, high)
    ends = [point for point in known if point[0] in (low, high)]
    first, second = ends if len(ends) == 2 else [(0, 0.0), *known][-2:]
    slope = (second[1] - first[1]) / (second[0] - first[0])
    if slope <= 0.0:
        return _clipped(_middle(low, high), low, high)
    return _clipped(second[0] + (target - second[1]) / slope, low, high)


def _middle(low: int, high: int) -> float:
    """Return the middle of a bracket, on a logarithmic scale if the bracket is wide."""
    return math.sqrt(max(low, 1) * high) if high > 4 * low else (low + high) / 2


def _clipped(value: float, low: int, high: int) -> int:
    """Return an integer near the value, rounded down and strictly inside the bracket."""
    margin = max(1, math.floor(_PRECISION * low))
    # With tiny noise or a tiny rate, a guess may be infinite.
    return int(min(max(math.floor(min(value, high)), low + margin), max(high - margin, low + 1)))
