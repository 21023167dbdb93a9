"""A filter by Gaussian curves for releases that are chosen one by one."""

from __future__ import annotations

import math

import numpy as np

from skdptune._validation import check_real
from skdptune.accounting._budgets._gaussian_shift import LARGEST_SHIFT, charge_of
from skdptune.accounting._budgets._summing_filter import SLACK, SummingFilter
from skdptune.accounting._losses import gaussian_delta
from skdptune.accounting._profile import Calibration, PrivacyProfile, calibrate, with_failure

# Chords of the total are this close to it.
_TOLERANCE = 1e-5
_LEAST_SHIFT = 1e-9


class GaussianFilter(SummingFilter):
    r"""Keeps adaptively chosen releases within a total (epsilon, delta), by Gaussian curves.

    Check `fits` and call `record` before each release. Which release comes next, what it costs
    and when to stop may depend on everything that was released before. Whatever is chosen, all
    of it together costs at most `profile`, which is known beforehand: each release is charged the
    square of the shift of a Gaussian release that costs more.

    Use it where releases are Gaussian or like it, such as noisy gradient descent, of which it
    admits more than a `RenyiFilter`; use that one for pure guarantees, and where no delta is to
    be set aside.

    Parameters
    ----------
    epsilon, delta : float
        The total for everything that is released. Delta is greater than 0.
    failure : float, default=0.0
        Part of `delta` that is set aside for what releases have above a Gaussian curve. Without,
        only Gaussian releases and those of bounded losses fit. A tenth of delta is a good choice,
        and more where releases have a guarantee at one (epsilon, delta) alone.

    Attributes
    ----------
    failure : float
        As given.
    budget : float
        What the squares of the shifts may sum to.
    profile : PrivacyProfile
        What all releases cost together.
    spent, spent_failure : float
        What the releases so far have used of `budget` and `failure`. These depend on what was
        chosen, and are no guarantee: `profile` is.
    n_parts : int
        Number of releases so far.

    Raises
    ------
    BudgetExceededError
        By `record`, for a release that does not fit. The filter is left as it was.

    See Also
    --------
    RenyiFilter : The same by Rényi divergences of one order.
    SharedCurve : One Gaussian curve for candidates that can all be calibrated to it.

    Notes
    -----
    Theorem G4.

    *Statement* (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023, for Gaussian pairs;
    here with failures). Fix numbers ``B, D >= 0``. Release ``t`` of at most T is chosen as a
    function of the releases before it, the same function for both data sets. Given these, its
    curve is at most ``g(s_t) + d_t`` at every epsilon >= 0, in both directions, with ``g(s)`` the
    curve of a Gaussian release of shift s. The interaction stops before ``sum s_t^2 > B^2`` or
    ``sum d_t > D``. Then the whole has at most the curve ``g(B) + D``, in both directions.

    *Proof.* Write ``H(a; P, Q) = integral of (dP - a dQ)_+``, also for measures P of a mass below
    1, and ``g(a; s)`` for a Gaussian pair. By induction over the number of rounds left: whatever
    was released, the rest, which may still use ``b^2`` and ``d``, has
    ``H(a) <= g(a; b) + d`` for all ``a > 0``. With no round left, or at a stop,
    ``H(a) = (1 - a)_+ <= g(a; b)``.

    Let the next release be y, from p or q, and let it be charged s and f. So the rest after it has
    ``H(a) <= g(a; b') + d - f`` with ``b'^2 = b^2 - s^2``, for **every** y: a rest that will use
    less is below as well, as g grows with the shift. For ``a >= 1``, ``h(a) = H(a; p, q)`` is at
    most ``g(a; s) + f`` by assumption; for ``a < 1`` it is
    ``1 - a + a H(1/a; q, p) <= g(a; s) + a f`` by the other direction. As g vanishes at infinity,
    there is c, perhaps infinite, with ``h(c) = f``. Let ``p' = min(p, c q)``: it lacks a mass of
    f, and ``H(a; p', q) = (h(a) - f)_+ <= g(a; s)`` for all ``a > 0``. The lacking mass adds at
    most f to H of the whole, so that

        H(a) <= f + integral of p'(y) H(a q(y) / p'(y); the rest after y)
             <= f + d - f + integral of p'(y) g(a q(y) / p'(y); b').

    With a Gaussian pair G, G' of shift b', the last integral is that of
    ``(p'(y) G(z) - a q(y) G'(z))_+`` over y and z. Done over y first, it is the integral of
    ``G(z) H(a G'(z) / G(z); p', q) <= G(z) g(a G'(z) / G(z); s)`` over z: the curve of the
    composition of two Gaussian pairs, of shifts b' and s, which is ``g(a; b)``. ∎

    *What is charged* (Theorem G5): Gaussian releases, and compositions of them, the square of
    their shift exactly. Any other release is charged the square of the least shift s that was
    found to lie above its curve, and as failure what it reveals everything with and the share
    ``s^2 / budget`` of `failure`: so both totals run out together. The least shift depends on
    public numbers alone.

    Examples
    --------
    >>> from skdptune.accounting import GaussianFilter, PrivacyProfile
    >>> total = GaussianFilter(epsilon=2.0, delta=1e-6)
    >>> part = PrivacyProfile.gaussian(0.1)
    >>> while total.fits(part):
    ...     total.record(part)
    >>> total.n_parts
    20
    >>> round(total.profile.epsilon(1e-6), 3)
    2.0
    """

    __slots__ = ()

    _unit = "squared shifts"

    def __init__(self, epsilon: float, delta: float, *, failure: float = 0.0) -> None:
        epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True, upper_open=True)
        delta = check_real(
            delta, name="delta", lower=0.0, upper=1.0, lower_open=True, upper_open=True
        )
        failure = check_real(failure, name="failure", lower=0.0, upper=delta, upper_open=True)
        found = _solved(epsilon, delta, failure)
        super().__init__(found.value**2, failure, found.profile)

    def _charge(self, part: PrivacyProfile) -> tuple[float, float]:
        shift, failure = charge_of(part, self._failure, math.sqrt(self._budget))
        return shift * shift, failure

    def __repr__(self) -> str:
        """Show the parameters and the state."""
        return self._shown("")


def _solved(epsilon: float, delta: float, failure: float) -> Calibration:
    """Return the largest shift that a total allows, and the profile of all releases."""

    def make_profile(shift: float) -> PrivacyProfile:
        # The sums may exceed their totals by rounding.
        gaussian = PrivacyProfile.gaussian(min(shift * (1.0 + SLACK), LARGEST_SHIFT))
        return with_failure(gaussian, failure * (1.0 + 2.0 * SLACK))

    guess = _largest_shift(epsilon, delta - failure)
    return calibrate(
        make_profile,
        epsilon,
        delta,
        parameter="budget",
        lower=guess * 1e-3,
        upper=min(guess * 1.1, LARGEST_SHIFT * (1.0 - 2.0 * SLACK)),
        guess=guess * (1.0 - 0.5 * _TOLERANCE),
        tolerance=_TOLERANCE,
    )


def _largest_shift(epsilon: float, delta: float) -> float:
    """Return the shift of the Gaussian release that is (epsilon, delta)-private."""
    low, high = math.log(_LEAST_SHIFT), math.log(LARGEST_SHIFT)
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        is_larger = float(gaussian_delta(math.exp(middle), np.array([epsilon]))[0]) > delta
        low, high = (low, middle) if is_larger else (middle, high)
    return math.exp(low)
