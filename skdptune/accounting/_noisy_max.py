"""Privacy costs of publishing which candidate is best, and nothing else.

Every function here returns the cost of publishing one index. "Sensitivity" is the largest change
of any candidate's score when one record is added or removed. Scores are *monotone* if one record
changes all of them in the same direction: all up (or not at all), or all down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from skdptune._validation import FloatArray, check_flag, check_integer, check_option, check_real
from skdptune.accounting._curves import Halves, step_at_most
from skdptune.accounting._loss_distribution import LARGEST_LOSS
from skdptune.accounting._profile import Numbers, PrivacyProfile
from skdptune.accounting._renyi import RenyiCurve

NOISES = ("gaussian", "laplace")
# Finer losses are lost in the rounding of exp(epsilon); smaller epsilons are charged as this one.
_FINEST = 1e-6
# At this many deviations, a Gaussian curve is 1 to the last digit.
_SATURATED = -9.0


def report_noisy_max(
    n_candidates: int,
    scale: float,
    *,
    sensitivity: float = 1.0,
    noise: str = "gaussian",
    monotone: bool = False,
) -> PrivacyProfile:
    r"""Return the profile of report noisy max with Gaussian or Laplace noise.

    The mechanism adds independent noise, ``Normal(0, scale**2)`` or ``Laplace(scale)``, to each
    score and publishes the index of the largest sum; the noisy scores stay secret. The profile
    holds, in both directions, for data sets that differ in one record, added or removed.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, at least 1.
    scale : float
        Standard deviation of the Gaussian noise; parameter ``b`` of the Laplace density
        ``exp(-abs(x) / b) / (2 b)``.
    sensitivity : float, default=1.0
        Largest change of any single score by one record.
    noise : {"gaussian", "laplace"}, default="gaussian"
    monotone : bool, default=False
        Whether one record changes all scores in the same direction.

    Returns
    -------
    PrivacyProfile

    See Also
    --------
    permute_and_flip : Uses one-sided exponential noise; better at the same pure epsilon.
    exponential_mechanism : Uses Gumbel noise; composes better.

    Notes
    -----
    Theorem N1.

    Koskela, Redberg and Wang (2024, arXiv 2402.06701), Theorem 3.2: with ``m`` candidates,
    sensitivity ``D`` and the curve ``delta_s`` of the noise shifted by ``s``, ``delta(epsilon) <=
    m * sup delta_s(epsilon)`` over ``abs(s) <= 2 D`` (monotone: ``D``).

    Two more bounds hold, and the smallest one is used at every epsilon. Convexity in
    ``exp(epsilon)`` is applied to the result, which lowers it further where two bounds cross:

    * *Gaussian, all scores at once.* The index depends only on deviations from the mean, which are
      a Gaussian release of sensitivity ``2 D sqrt(a (m - a) / m)``, ``a = floor(m / 2)``
      (monotone: half of it). It is exact for two candidates, and the smaller bound at every
      epsilon for up to four.
    * *Laplace, pure.* The release is ``s / scale``-differentially private (Dwork and Roth 2014,
      Claim 3.9), which is always the smaller bound.

    A single candidate reveals nothing.

    Examples
    --------
    >>> from skdptune.accounting import report_noisy_max
    >>> round(report_noisy_max(100, scale=10.0).epsilon(1e-6), 3)
    1.021
    >>> report_noisy_max(100, scale=10.0, noise="laplace", monotone=True).epsilon(0)
    0.1
    """
    count = check_integer(n_candidates, name="n_candidates", lower=1)
    spread = check_real(
        scale, name="scale", lower=0.0, lower_open=True, upper=math.inf, upper_open=True
    )
    influence = check_real(
        sensitivity, name="sensitivity", lower=0.0, upper=math.inf, upper_open=True
    )
    check_option(noise, name="noise", options=NOISES)
    check_flag(monotone, name="monotone")
    if count == 1 or influence == 0.0:
        return PrivacyProfile.pure(0.0)
    shift = influence / spread * (1.0 if monotone else 2.0)
    if noise == "gaussian":
        return PrivacyProfile._of(_gaussian_noisy_max, count, shift)
    if shift <= LARGEST_LOSS:
        return PrivacyProfile.pure(shift)
    # An epsilon beyond the grid becomes a failure probability.
    return PrivacyProfile.approximate(LARGEST_LOSS, -math.expm1(LARGEST_LOSS - shift))


def permute_and_flip(epsilon: float) -> PrivacyProfile:
    r"""Return the profile of permute-and-flip, which is pure.

    The mechanism goes through the candidates in random order and stops at candidate ``j`` with
    probability ``exp(epsilon * (u_j - max(u)) / (2 * sensitivity))``. Equivalently, it adds
    exponential noise with mean ``2 * sensitivity / epsilon`` to each score ``u``, and publishes
    the index of the largest sum. For monotone scores, the factor 2 is dropped in both forms. The
    mechanism is `epsilon`-differentially private for data sets that differ in one record, added or
    removed.

    Parameters
    ----------
    epsilon : float
        In [0, 600]; 0 selects a candidate at random.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem N2.

    McKenna and Sheldon (2020) for the first form; Ding, Kifer, Saghaian, Steinke, Wang, Xiao and
    Zhang (2021, arXiv 2105.07260) for the second. For the same epsilon, its expected error is
    never larger than that of the exponential mechanism.

    Examples
    --------
    >>> from skdptune.accounting import permute_and_flip
    >>> permute_and_flip(0.5).epsilon(0)
    0.5
    """
    return PrivacyProfile.pure(_checked_epsilon(epsilon))


def exponential_mechanism(epsilon: float) -> PrivacyProfile:
    r"""Return the exact worst-case profile of the exponential mechanism.

    The mechanism publishes candidate ``j`` with probability proportional to ``exp(epsilon * u_j /
    (2 * sensitivity))``; for monotone scores ``u``, proportional to ``exp(epsilon * u_j /
    sensitivity)``. It is `epsilon`-differentially private, and has a stronger guarantee than that,
    for data sets that differ in one record, added or removed.

    Parameters
    ----------
    epsilon : float
        In [0, 600]; 0 selects a candidate at random.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem N2.

    Durfee and Rogers (2019): the mechanism has *bounded range*. Between any two neighbouring data
    sets, the privacy losses of all candidates lie in one interval ``[t - epsilon, t]``, ``0 <= t
    <= epsilon``. The largest curve over ``t``, at ``t = (epsilon + e) / 2``, is (Dong, Durfee and
    Rogers 2020)

    ``delta(e) = (exp(epsilon / 2) - exp(e / 2))^2 / (exp(epsilon) - 1)``.

    Two candidates attain it at each ``e``, but with different probabilities, so no single instance
    has this curve. A pair with this curve dominates every instance, so adaptive compositions are
    covered, too. They need not be optimal, since the losses of this pair spread over twice the
    range.

    The Rényi curve is also the largest one over ``t``; it is at most ``order * epsilon^2 / 8``.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, exponential_mechanism
    >>> profile = exponential_mechanism(0.1)
    >>> round(profile.epsilon(0), 6)
    0.1
    >>> round((100 * profile).epsilon(1e-6), 2)
    2.61
    >>> round((100 * PrivacyProfile.pure(0.1)).epsilon(1e-6), 2)
    4.77
    """
    bound = _checked_epsilon(epsilon)
    if bound == 0.0:
        return PrivacyProfile.pure(0.0)
    return PrivacyProfile._of(_of_bounded_range, max(bound, _FINEST))


def _of_bounded_range(bound: float) -> Numbers:
    # With a power of two of steps, the grid ends exactly at the bound, where the curve is zero.
    cells = 2**12
    step = bound / cells
    rest = np.expm1(0.5 * (step * np.arange(cells + 1) - bound))
    half = rest * rest / -math.expm1(-bound)
    return Halves(step, half, half), _RenyiOfBoundedRange(bound)


@dataclass(frozen=True)
class _RenyiOfBoundedRange(RenyiCurve):
    """Losses within a range of length epsilon around zero.

    Notes
    -----
    The pair with losses ``t`` and ``t - epsilon`` has ``E_Q[exp(a loss)] = A x^(a-1) - B x^a``,
    with ``x = exp(t)``, ``A = (1 - exp(-a epsilon)) / (1 - exp(-epsilon))`` and ``B =
    exp(-epsilon) A - exp(-a epsilon)``. It is largest at ``x = (a - 1) A / (a B)``, where it is
    ``A x^(a-1) / a``. Small divergences are lost in rounding; for these, ``a epsilon^2 / 8`` is
    used. It is a bound because ``log E_Q[exp(a loss)]`` is 0 at ``a = 0`` and ``a = 1``, and its
    second derivative, the variance of a loss with range epsilon, is at most ``epsilon^2 / 4``.
    """

    epsilon: float

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the exact worst-case divergences, or the concentrated bound if it is as good."""
        less = orders - 1.0
        ends = np.expm1(-orders * self.epsilon)
        log_a = np.log(ends / math.expm1(-self.epsilon))
        log_x = np.log(less / orders * ends / np.expm1(-less * self.epsilon)) + self.epsilon
        exact = log_x + (log_a - np.log(orders)) / less
        rounding = 1e-15 * (1.0 + self.epsilon + 1.0 / less)
        result: FloatArray = np.minimum(exact + rounding, orders * self.epsilon**2 / 8.0)
        return result


def _checked_epsilon(epsilon: float) -> float:
    return check_real(epsilon, name="epsilon", lower=0.0, upper=LARGEST_LOSS)


def _gaussian_noisy_max(count: int, shift: float) -> Numbers:
    """Return the smaller of the theorem's curve and that of all scores at once.

    Parameters
    ----------
    count : int
        Number of candidates, at least 2.
    shift : float
        Largest shift of one candidate's threshold, in standard deviations.
    """
    shift = max(shift, _FINEST)
    rising = count // 2
    joint = shift * math.sqrt(rising * (count - rising) / count)
    reach = 9.0 + math.sqrt(2.0 * math.log(count))
    top = min(shift * (shift / 2.0 + reach), LARGEST_LOSS)
    step = step_at_most(min(shift, 30.0) / 2000.0)
    epsilons = step * np.arange(math.ceil(top / step) + 1)
    each = count * _gaussian_curve(shift, epsilons)
    half = np.minimum(each, _gaussian_curve(joint, epsilons))
    return Halves(step, half, half), None


def _gaussian_curve(mu: float, epsilons: FloatArray) -> FloatArray:
    """Return the hockey-stick curve of a unit Gaussian shifted by ``mu``, of any size.

    Notes
    -----
    With ``x = e / mu - mu / 2``, the curve ``F(-x) - exp(e) F(-x - mu)`` is the density at ``x``
    times the difference of the Mills ratios at ``x`` and ``x + mu``. This avoids cancellation in
    the tail.
    """
    lower = epsilons / mu - mu / 2.0
    inside = lower > _SATURATED
    x = lower[inside]
    density = np.exp(-0.5 * x * x)
    ratios = 0.5 * (special.erfcx(x / math.sqrt(2.0)) - special.erfcx((x + mu) / math.sqrt(2.0)))
    result = np.ones_like(epsilons)
    result[inside] = np.minimum(density * ratios, 1.0)
    return result
