"""Tuning on a random sample of the data, then one fit: what the two cost together.

**Setting.** ``X1`` is a Poisson sample of the data: each record enters with probability ``q``,
independently. A private search on ``X1`` gives the tuned values; one private fit follows, adapted
to them. Variant 1 fits on the other records, variant 2 on all of them.

**Conditions.** Sizes and members of the sample are never released or used: steps, rates, noise
denominators and extrapolation rules take the public expected sizes ``q n`` and ``(1 - q) n``. The
fit's profile holds for every value that the search may return.

**Guarantee, variant 1.** With ``T`` for the search, ``B`` for the fit and ``H_B(alpha)`` the fit's
curve (``1 - alpha`` for ``alpha <= 0``), the differing record is in the sample or not, and

    remove:  delta(e) = q P_T(inf) + (1-q) sum over l of Q_T(l) H_B((exp(e) - q l) / (1-q)),
    add:     delta(e) = sum over y of p_T(y) c H_B(exp(e) (1-q) / c),   c = 1 - q exp(e - y),

the first over the search's likelihood ratios ``l`` in the remove direction, the second over its
losses ``y`` in the add direction, where ``c <= 0`` adds nothing and loss infinity has ``c = 1``.
Both are divergences of mixtures, convex in either part, so a fit that adapts to the search is
covered.

Theorem T2.
"""

from __future__ import annotations

import math

import numpy as np

from skdptune._validation import FloatArray, check_kind, check_option, check_real
from skdptune.accounting._losses import (
    INTEGER_ORDERS,
    LARGEST_LOSS,
    Halves,
    RenyiCurve,
    RenyiSubsampled,
    RenyiSum,
    Sides,
)
from skdptune.accounting._profile import (
    PrivacyProfile,
    profile_from_halves,
    profile_from_renyi,
    renyi_of,
    sides_of,
)
from skdptune.accounting._selection import BoundNotApplicableError, useful_end
from skdptune.accounting._tuning._composition import composed
from skdptune.accounting._tuning._dots import curves_through_dots, dots_of_losses, few_outcomes
from skdptune.accounting._tuning._renyi import RenyiTuneThenFit

VARIANTS = (1, 2)
TUNING_BOUNDS = ("profile", "rdp")
# What may be left of a curve where its grid ends, and then counts as never coming down.
_CUT = 5e-15
# Where a curve ends that has no finite loss at all.
_SHORTEST = 1e-9
# Beyond any alpha.
_FAR = math.exp(1.1 * LARGEST_LOSS)
# Evaluated at once: what stays in a core's cache.
_CHUNK = 2**15


def tune_then_fit(
    tune: PrivacyProfile,
    fit: PrivacyProfile,
    fraction: float,
    variant: int = 1,
    bound: str = "profile",
) -> PrivacyProfile:
    """Return the profile of a search on a Poisson sample of the data, followed by one fit.

    Parameters
    ----------
    tune : PrivacyProfile
        The search, as if on all data; usually ``run.selected(distribution)``.
    fit : PrivacyProfile
        The final fit, for every value that the search may return.
    fraction : float
        Probability, in (0, 1), with which each record is used for tuning.
    variant : {1, 2}, default=1
        1 fits on the records outside the sample, 2 on all records.
    bound : {"profile", "rdp"}, default="profile"
        "rdp" is the subsampling paper's own bound, for comparison.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem T1.

    Neighbours differ by adding or removing one record. Variant 1: section 3 of Koskela and
    Kulkarni (2023) with hockey-stick curves in place of their Theorem 1. Variant 2: subsampling,
    then composition.

    Examples
    --------
    >>> from skdptune.accounting import Geometric
    >>> run = PrivacyProfile.gaussian(0.25)
    >>> search = run.selected(Geometric.from_mean(15))
    >>> round(run.epsilon(1e-5), 2), round(search.epsilon(1e-5), 2)
    (0.93, 1.52)
    >>> round(tune_then_fit(search, run, fraction=0.1).epsilon(1e-5), 2)
    0.9
    """
    for name, value in (("tune", tune), ("fit", fit)):
        check_kind(value, name=name, kind=PrivacyProfile, domain="a PrivacyProfile")
    fraction = check_real(
        fraction, name="fraction", lower=0.0, upper=1.0, lower_open=True, upper_open=True
    )
    check_option(variant, name="variant", options=VARIANTS)
    check_option(bound, name="bound", options=TUNING_BOUNDS)
    if bound == "rdp":
        return _by_renyi(tune, fit, fraction, variant)
    if variant == 2:
        return composed(tune.subsampled(fraction), fit)
    return _disjoint(tune, fit, fraction)


def _by_renyi(
    tune: PrivacyProfile, fit: PrivacyProfile, fraction: float, variant: int
) -> PrivacyProfile:
    # Theorem T5.
    renyi: RenyiCurve
    if variant == 1:
        renyi = RenyiTuneThenFit(renyi_of(tune), renyi_of(fit), fraction)
    else:
        renyi = RenyiSum((RenyiSubsampled(renyi_of(tune), fraction), renyi_of(fit)))
    if not np.isfinite(renyi.at(INTEGER_ORDERS)).any():
        raise BoundNotApplicableError(
            "bound must be 'profile' here; got 'rdp', but no Rényi bound is known for the "
            "search or the fit."
        )
    return profile_from_renyi(renyi)


def _disjoint(tune: PrivacyProfile, fit: PrivacyProfile, fraction: float) -> PrivacyProfile:
    """Return variant 1: its formula in each direction, at few points of all curves."""
    parts = _DisjointParts(sides_of(tune), sides_of(fit), fraction)
    halves = Halves(*curves_through_dots((parts.remove, parts.add), parts.ends))
    renyi = RenyiTuneThenFit(renyi_of(tune), renyi_of(fit), fraction)
    return profile_from_halves(halves, renyi)


class _DisjointParts:
    """Variant 1's curve in each direction, to be read at any epsilon >= 0.

    Parameters
    ----------
    search, fit : pair of LossDistribution
        Remove and add direction of either part.
    fraction : float
        Probability with which a record is used for the search.

    Notes
    -----
    Theorem T2, Theorem T6.

    Both directions are sums over the same outcomes, of positive terms alone. With ``H_T`` the
    search's curve and ``H_B(alpha) = 1`` where ``alpha`` is negative, the remove direction is
    ``q H_T(exp(e) / q) + (1-q) sum over l of Q_T(l) H_B((exp(e) - q l) / (1-q))``. With the fit's
    height above the least of any curve, ``E(alpha) = H_B(alpha) - (1 - alpha)`` and 0 where
    ``alpha`` is negative, the add direction is
    ``exp(e) (1-q) sum over l of Q_T(l) E((exp(-e) - q l) / (1-q))``.
    """

    def __init__(self, search: Sides, fit: Sides, fraction: float) -> None:
        self._search, self._fit, self._fraction = search, fit, fraction
        self._ratios, self._masses = few_outcomes(search)
        dots = dots_of_losses(search[0])
        self._searched = np.exp(search[0].step * dots.places), dots.heights
        self._alphas, self._heights, self._excesses = _whole_curve(fit)

    def remove(self, epsilons: FloatArray) -> FloatArray:
        """Return delta where a record is removed."""
        # Theorem T2.
        shifted = np.minimum(epsilons - math.log(self._fraction), math.log(_FAR))
        searched = np.interp(np.exp(shifted), *self._searched)
        sums = self._sums(np.exp(epsilons), self._heights)
        return self._fraction * searched + (1.0 - self._fraction) * sums

    def add(self, epsilons: FloatArray) -> FloatArray:
        """Return delta where a record is added."""
        # Theorem T2.
        sums = self._sums(np.exp(-epsilons), self._excesses)
        return np.exp(epsilons) * (1.0 - self._fraction) * sums

    @property
    def ends(self) -> tuple[float, float]:
        """For each direction an epsilon from which on next to nothing but what stays is left."""
        search, fit = ([side.infinity for side in part] for part in (self._search, self._fit))
        # The end of a pure guarantee's curve is a figure of its own.
        cut = _CUT if any(search) or any(fit) else 0.0
        removed = self._fraction * search[0] + (1.0 - self._fraction) * fit[0] + cut
        added = search[1] * fit[1] + cut
        return (
            useful_end(self.remove, removed, max(self._end_of_remove(), _SHORTEST)),
            useful_end(self.add, added, max(self._end_of_add(), _SHORTEST)),
        )

    def _end_of_remove(self) -> float:
        """Return the largest finite loss: that of the mixture where both parts have theirs."""
        tops = [side.highest * side.step for side in (self._search[0], self._fit[0])]
        return _mixed(tops[0], tops[1], self._fraction)

    def _end_of_add(self) -> float:
        """Return the largest finite loss, with one part's outcome that only P gives.

        Notes
        -----
        Theorem T2: an outcome of the search of loss y counts as far as ``c > 0``, that is up to
        ``y + log(1/q)``, if the fit's curve does not end before.
        """
        search, fit = self._search[1], self._fit[1]
        tops = search.highest * search.step, fit.highest * fit.step
        ends = [-_mixed(-tops[0], -tops[1], self._fraction)]
        if fit.infinity > 0.0:
            ends.append(tops[0] - math.log(self._fraction))
        if search.infinity > 0.0:
            ends.append(tops[1] - math.log1p(-self._fraction))
        return max(ends)

    def _sums(self, alphas: FloatArray, values: FloatArray) -> FloatArray:
        """Return the means, over the search's outcomes, of a function of the fit's alpha."""
        ratios, rest = self._fraction * self._ratios, 1.0 - self._fraction

        def of(chunk: FloatArray) -> FloatArray:
            points = (chunk[:, None] - ratios) / rest
            found = np.interp(points.ravel(), self._alphas, values).reshape(points.shape)
            return found @ self._masses

        size = max(_CHUNK // ratios.size, 1)
        return np.concatenate([of(alphas[i : i + size]) for i in range(0, alphas.size, size)])


def _mixed(first: float, second: float, fraction: float) -> float:
    """Return the loss of a mixture of outcomes with these losses."""
    return float(np.logaddexp(first + math.log(fraction), second + math.log1p(-fraction)))


def _whole_curve(fit: Sides) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return points ``alpha`` of a fit's curve, its heights there, and those above the least one.

    The curve is linear between the points, from 0 to where only the mass at infinity is left. The
    least height of any curve is ``1 - alpha``.
    """
    # Theorem P2.
    above, below = (dots_of_losses(side) for side in fit)
    rises, falls = fit[0].step * above.places, fit[1].step * below.places[:0:-1]
    # Where both directions meet they are one number, of which either is a bound.
    upper = np.maximum(above.heights, below.heights[0] * (above.places == 0))
    excesses = np.exp(-falls) * below.heights[:0:-1]
    alphas = np.concatenate([[0.0], np.exp(-falls), np.exp(rises), [_FAR]])
    heights = np.concatenate([[1.0], excesses - np.expm1(-falls), upper, upper[-1:]])
    above_least = np.concatenate([[0.0], excesses, upper + np.expm1(rises), [_FAR]])
    return alphas, heights, above_least
