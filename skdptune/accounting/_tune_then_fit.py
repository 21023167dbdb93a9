"""Tuning on a random sample of the data, followed by one fit: the total privacy cost.

**Setting.** ``X1`` is a Poisson sample of the data: each record is in it with probability ``q``,
independently. A private search on ``X1`` returns the tuned values; then one private fit uses them.
Variant 1 fits on the other records, variant 2 on all records.

**Conditions.** Size and members of the sample are never released or used: steps, rates, noise
denominators and extrapolation rules use the public expected sizes ``q n`` and ``(1 - q) n``. The
fit's profile holds for every value that the search may return.

**Guarantee, variant 1.** Let ``T`` be the search, ``B`` the fit and ``H_B(alpha)`` the fit's curve
(``1 - alpha`` for ``alpha <= 0``). The differing record is in the sample or not, and

    remove:  delta(e) = q P_T(inf) + (1-q) sum over l of Q_T(l) H_B((exp(e) - q l) / (1-q)),
    add:     delta(e) = sum over y of p_T(y) c H_B(exp(e) (1-q) / c),   c = 1 - q exp(e - y),

The first sum is over the search's likelihood ratios ``l`` in the remove direction, the second over
its losses ``y`` in the add direction, where ``c <= 0`` adds nothing and an infinite loss has ``c =
1``. Both are divergences of mixtures and convex in either part, so a fit that adapts to the search
is covered.

Theorem T2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from skdptune._validation import FloatArray, check_kind, check_option, check_real
from skdptune.accounting._curves import (
    Halves,
    Sides,
    halves_of_bound,
    largest_loss,
    step_at_most,
    upper_half,
)
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution
from skdptune.accounting._profile import Numbers, PrivacyProfile
from skdptune.accounting._renyi import (
    INTEGER_ORDERS,
    RenyiAtIntegers,
    RenyiCurve,
    RenyiOfParts,
    RenyiSubsampled,
    log_binomial,
)
from skdptune.accounting._selection_bounds import BoundNotApplicableError, useful_end

VARIANTS = (1, 2)
TUNING_BOUNDS = ("profile", "rdp")
# Value of a curve that may remain where its grid ends; it then counts as never decreasing.
_CUT = 5e-15
# End of a curve that has no finite losses.
_SHORTEST = 1e-9
# Beyond any alpha.
_FAR = math.exp(1.1 * LARGEST_LOSS)
# Number of values evaluated at once, which fit into a core's cache.
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
        Probability, in (0, 1), that each record is used for tuning.
    variant : {1, 2}, default=1
        Variant 1 fits on the records outside of the sample, variant 2 on all records.
    bound : {"profile", "rdp"}, default="profile"
        "rdp" is the subsampling paper's own bound, for comparison.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem T1.

    Neighbours differ by adding or removing one record. Variant 1 follows section 3 of Koskela and
    Kulkarni (2023), with hockey-stick curves in place of their Theorem 1. Variant 2 is subsampling
    followed by composition.

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
        return PrivacyProfile._of(_by_renyi, tune, fit, fraction, variant)
    if variant == 2:
        return composed(tune.subsampled(fraction), fit)
    return PrivacyProfile._of(_on_disjoint_parts, tune, fit, fraction)


def _on_disjoint_parts(tune: PrivacyProfile, fit: PrivacyProfile, fraction: float) -> Numbers:
    # Variant 1: its formula in each direction, with few points of all curves.
    parts = _DisjointParts(tune._finite_sides, fit._finite_sides, fraction)
    halves = Halves(*curves_through_dots((parts.remove, parts.add), parts.ends))
    return halves, RenyiTuneThenFit(tune._renyi, fit._renyi, fraction)


def _by_renyi(tune: PrivacyProfile, fit: PrivacyProfile, fraction: float, variant: int) -> Numbers:
    # Theorem T5: Rényi divergences of tuning on a part.
    renyi: RenyiCurve
    if variant == 1:
        renyi = RenyiTuneThenFit(tune._renyi, fit._renyi, fraction)
    else:
        renyi = RenyiOfParts(np.sum, (RenyiSubsampled(tune._renyi, fraction), fit._renyi))
    if not np.isfinite(renyi.at(INTEGER_ORDERS)).any():
        raise BoundNotApplicableError(
            "bound must be 'profile' here; got 'rdp', but no Rényi bound is known for the "
            "search or the fit."
        )
    return halves_of_bound(renyi.delta), renyi


class _DisjointParts:
    """The curve of variant 1 in each direction, as a function of epsilon >= 0.

    Parameters
    ----------
    search, fit : pair of LossDistribution
        Remove and add direction of either part.
    fraction : float
        Probability that a record is used for the search.

    Notes
    -----
    Theorem T2, Theorem T6.

    Both directions are sums of positive terms over the same outcomes. Let ``H_T`` be the search's
    curve, and ``H_B(alpha) = 1`` for negative ``alpha``. The remove direction is ``q H_T(exp(e) /
    q) + (1-q) sum over l of Q_T(l) H_B((exp(e) - q l) / (1-q))``. Let ``E(alpha) = H_B(alpha) - (1
    - alpha)`` be the fit's height above the lower limit of any curve, and 0 for negative
    ``alpha``. The add direction is ``exp(e) (1-q) sum over l of Q_T(l) E((exp(-e) - q l) /
    (1-q))``.
    """

    def __init__(self, search: Sides, fit: Sides, fraction: float) -> None:
        self._search, self._fit, self._fraction = search, fit, fraction
        self._ratios, self._masses = few_outcomes(search)
        dots = dots_of_losses(search[0])
        self._searched = np.exp(search[0].step * dots.places), dots.heights
        self._alphas, self._heights, self._excesses = _whole_curve(fit)

    def remove(self, epsilons: FloatArray) -> FloatArray:
        """Return delta for removing a record."""
        # Theorem T2: a record is in the tuned part or in the fitted one, never in both.
        shifted = np.minimum(epsilons - math.log(self._fraction), math.log(_FAR))
        searched = np.interp(np.exp(shifted), *self._searched)
        sums = self._sums(np.exp(epsilons), self._heights)
        return self._fraction * searched + (1.0 - self._fraction) * sums

    def add(self, epsilons: FloatArray) -> FloatArray:
        """Return delta for adding a record."""
        # Theorem T2: a record is in the tuned part or in the fitted one, never in both.
        sums = self._sums(np.exp(-epsilons), self._excesses)
        return np.exp(epsilons) * (1.0 - self._fraction) * sums

    @property
    def ends(self) -> tuple[float, float]:
        """For each direction, an epsilon above which almost only the constant rest remains."""
        search, fit = ([side.infinity for side in part] for part in (self._search, self._fit))
        # The end of a pure guarantee's curve is an exact number.
        cut = _CUT if any(search) or any(fit) else 0.0
        removed = self._fraction * search[0] + (1.0 - self._fraction) * fit[0] + cut
        added = search[1] * fit[1] + cut
        return (
            useful_end(self.remove, removed, max(self._end_of_remove(), _SHORTEST)),
            useful_end(self.add, added, max(self._end_of_add(), _SHORTEST)),
        )

    def _end_of_remove(self) -> float:
        """Return the largest finite loss: that of the mixture if both parts have their largest."""
        tops = [side.highest * side.step for side in (self._search[0], self._fit[0])]
        return _mixed(tops[0], tops[1], self._fraction)

    def _end_of_add(self) -> float:
        """Return the largest finite loss, including outcomes of one part that only P has.

        Notes
        -----
        Theorem T2: an outcome of the search with loss y counts as long as ``c > 0``, that is up to
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
    """Return points ``alpha`` of a fit's curve, its heights, and those above the lower limit.

    The curve is linear between the points, from 0 to where only the mass at infinity remains. The
    lower limit of any curve is ``1 - alpha``.
    """
    # Theorem P2: a direction below alpha = 1 is the other direction above it.
    above, below = (dots_of_losses(side) for side in fit)
    rises, falls = fit[0].step * above.places, fit[1].step * below.places[:0:-1]
    # Where both directions meet, they have the same value, and either one is a bound.
    upper = np.maximum(above.heights, below.heights[0] * (above.places == 0))
    excesses = np.exp(-falls) * below.heights[:0:-1]
    alphas = np.concatenate([[0.0], np.exp(-falls), np.exp(rises), [_FAR]])
    heights = np.concatenate([[1.0], excesses - np.expm1(-falls), upper, upper[-1:]])
    above_least = np.concatenate([[0.0], excesses, upper + np.expm1(rises), [_FAR]])
    return alphas, heights, above_least


# The composition of a search with a fit --------------------------------------------------

# Number of grid points up to the sum of the largest losses.
_POINTS = 2**12


def composed(first: PrivacyProfile, second: PrivacyProfile) -> PrivacyProfile:
    """Return the composition: never below, and only slightly above that on the parts' own grids.

    Notes
    -----
    Theorem T6.

    A curve that is read at every n-th point and connected by chords is an upper bound. The grid is
    fine compared to the spread of the sum: epsilon grows by a relative amount of about 1e-6.
    """
    extent = sum(largest_loss(part._finite_sides) for part in (first, second))
    if not extent > 0.0:
        return first + second
    step = step_at_most(extent / _POINTS)
    return _on_grid(first, step) + _on_grid(second, step)


def _on_grid(profile: PrivacyProfile, step: float) -> PrivacyProfile:
    """Return the profile on a coarser grid, or unchanged if its curves are not smooth."""
    sides = profile._finite_sides
    # The losses of a pure guarantee are exact numbers.
    is_pure = not any(side.infinity for side in sides)
    if is_pure or any(side.step >= step for side in sides):
        return profile
    return PrivacyProfile._of(_coarser, profile, step)


def _coarser(profile: PrivacyProfile, step: float) -> Numbers:
    halves = (upper_half(side, step) for side in profile._finite_sides)
    return Halves(step, *halves), profile._renyi


# Under Rényi differential privacy --------------------------------------------------------


@dataclass(frozen=True)
class RenyiTuneThenFit(RenyiAtIntegers):
    """Tuning on a Poisson sample, fit on the rest: Koskela and Kulkarni (2023), Theorem 1.

    Notes
    -----
    Theorem T5.
    """

    tune: RenyiCurve
    fit: RenyiCurve
    fraction: float

    def at_integers(self, integers: FloatArray) -> FloatArray:
        """Return the larger of the two directions' bounds at orders 2, 3, 4 and so on."""
        log_q, log_rest = math.log(self.fraction), math.log1p(-self.fraction)
        j = np.arange(0.0, integers[-1] + 1.0)
        tune, fit = (_moments(curve, j) for curve in (self.tune, self.fit))
        # One row for each order, one column for each term of its sums.
        order, k = integers[:, None], j[None, :]
        k, left = np.minimum(k, order), np.maximum(order - k, 0.0)
        term, other = k.astype(np.int64), left.astype(np.int64)
        # The distribution of the sampled record is the mixture, here in the first place ...
        remove = log_binomial(order, k) + left * log_q + k * log_rest + tune[other] + fit[term]
        # ... and here in the second, which leaves one factor of the fit's distribution.
        add = log_binomial(order - 1.0, np.minimum(k, order - 1.0)) + k * log_q
        add = add + (left - 1.0) * log_rest + tune[np.minimum(term + 1, j.size - 1)] + fit[other]
        worst = np.maximum(_log_sums(remove, j <= order), _log_sums(add, j < order))
        return worst / (integers - 1.0)


def _log_sums(terms: FloatArray, is_used: npt.NDArray[np.bool_]) -> FloatArray:
    sums: FloatArray = special.logsumexp(np.where(is_used, terms, -math.inf), axis=1)
    return sums


def _moments(curve: RenyiCurve, orders: FloatArray) -> FloatArray:
    """Return ``(order - 1) * divergence`` at 0, 1, 2, ...; zero at the first two."""
    moments = np.zeros_like(orders)
    moments[2:] = (orders[2:] - 1.0) * curve.at(orders[2:])
    return moments


# Few dots of a convex curve --------------------------------------------------------------

# A hockey-stick curve is convex in ``exp(epsilon)``. So chords between its dots are an upper
# bound, and dots are needed only where it bends. They are found by bisection: the distance between
# chord and curve is a concave function, so in a narrow cell it is nowhere much more than twice as
# large as in the middle.

IntArray = npt.NDArray[np.int64]

# Relative errors of epsilon and of delta that the chord of a cell may have in its middle. The
# middle becomes a dot in any case, so about a quarter of the error remains.
_SHARE_OF_EPSILON = 6e-4
_SHARE_OF_DELTA = 6e-3
# A cell this narrow need not be bisected even if the curve has a corner.
_NARROW = 5e-4
# Errors that are too small for any requested delta.
_NEGLIGIBLE = 1e-15
# For epsilons below this share of the largest one, relative errors refer to this share.
_SMALLEST_EPSILON = 1e-3
# The middle of a wider cell is not representative of the rest.
_WIDEST = 0.5
# Number of initial cells, and the number if all were as small as allowed.
_CELLS = 2**5
_FINEST = 2**14
# The same for the longer one of two curves.
_LONGEST = 2**16
# Smallest number of dots of a curve on a uniform grid.
_LEAST_DOTS = 2**11


class Dots(NamedTuple):
    """Heights of a curve at increasing grid numbers, the first of which is ``epsilon = 0``."""

    places: IntArray
    heights: FloatArray


def few_dots(height: Callable[[IntArray], FloatArray], places: IntArray, step: float) -> Dots:
    """Return dots of a decreasing convex curve, close enough for their chords.

    Parameters
    ----------
    height : callable
        Maps grid numbers to the curve at ``epsilon = step * place``.
    places : ndarray of int
        Increasing ends of the first cells.
    step : float
        Step of the grid of epsilon.

    Notes
    -----
    Theorem T6.
    """
    least = _SMALLEST_EPSILON * step * float(places[-1])
    heights = height(places)
    is_wide = np.diff(places) > 1
    while is_wide.any():
        left = np.flatnonzero(is_wide)
        start, stop = places[left], places[left + 1]
        middle, width = (start + stop) // 2, step * (stop - start)
        found = height(middle)
        drop = heights[left] - heights[left + 1]
        share = np.expm1(step * (middle - start)) / np.expm1(width)
        gap = heights[left] - share * drop - found
        epsilon = np.maximum(step * middle, least)
        # Increase of epsilon by this error, if the curve is as steep as its chord.
        allowed = np.minimum(_SHARE_OF_DELTA * found, _SHARE_OF_EPSILON * epsilon * drop / width)
        allowed[width <= _NARROW * epsilon] = np.inf
        is_far = (width > _WIDEST) & (drop > _NEGLIGIBLE)
        is_wide[left] = is_far | (gap > np.maximum(allowed, _NEGLIGIBLE))
        places = np.insert(places, left + 1, middle)
        heights = np.insert(heights, left + 1, found)
        # Both halves of a bisected cell are checked again.
        is_wide = np.insert(is_wide, left, is_wide[left]) & (np.diff(places) > 1)
    return Dots(places, heights)


def dots_of_losses(side: LossDistribution) -> Dots:
    """Return few dots of a direction's curve, including the first and the last one."""
    places = np.unique(np.linspace(0, side.highest, _CELLS + 1).astype(np.int64))
    curve = side.curve
    return few_dots(lambda place: curve[place], places, side.step)


def few_outcomes(sides: Sides) -> tuple[FloatArray, FloatArray]:
    """Return likelihood ratios of a pair and their masses under its second distribution.

    The pair's curve consists of the chords between few dots of the curve of ``sides`` (remove
    first). Masses of outcomes between two dots are moved to both, so that their means under either
    distribution are preserved. The ratio 0, which only the second distribution has, comes last.

    Notes
    -----
    Theorem T6.
    """
    remove, add = sides
    above, above_masses = _moved_masses(remove)
    below, below_masses = _moved_masses(add)
    # A mass under the second distribution is the add direction's mass of the mirrored loss.
    below_masses = below_masses * np.exp(below)
    totals = float(remove.weighted_tails[:1].sum()), float(add.positive_masses.sum())
    rest = max(1.0 - add.infinity - sum(totals), 0.0)
    # Mass that is missing from the sums is moved to loss zero; the total may slightly exceed 1.
    rest += max(totals[0] - float(above_masses.sum()), 0.0)
    rest += max(totals[1] - float(below_masses.sum()), 0.0)
    ratios = np.concatenate([np.exp(above), [1.0], np.exp(-below), [0.0]])
    masses = np.concatenate([above_masses, [rest], below_masses, [add.infinity]])
    return ratios[masses > 0.0], masses[masses > 0.0]


def _moved_masses(side: LossDistribution) -> tuple[FloatArray, FloatArray]:
    """Return positive losses of few dots, and masses under the other distribution of the pair.

    Along a chord, the curve decreases by the mass beyond it times the difference in
    ``exp(epsilon)``.
    """
    dots = dots_of_losses(side)
    losses = side.step * dots.places
    widths = np.exp(losses[:-1]) * np.expm1(np.diff(losses))
    beyond = np.append(-np.diff(dots.heights) / widths, 0.0)
    return losses[1:], np.maximum(-np.diff(beyond), 0.0)


def curves_through_dots(
    curves: tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]],
    ends: tuple[float, float],
) -> tuple[float, FloatArray, FloatArray]:
    """Return a step and two decreasing convex curves on its grid, computed at few dots.

    Parameters
    ----------
    curves : pair of callables
        Each maps epsilons to heights.
    ends : pair of float
        Epsilons from which on the curves are almost constant.

    Notes
    -----
    Theorem T6.
    """
    # One curve may end long before the other, and its dots must be close enough, too.
    step = step_at_most(max(min(ends) / _FINEST, max(ends) / _LONGEST))
    dots = [_dots_up_to(end, curve, step) for curve, end in zip(curves, ends, strict=True)]
    # All dots are on the grid of the smallest cell.
    stride = min(min(int(np.diff(found.places).min()) for found in dots), _FINEST // _LEAST_DOTS)
    remove, add = (_joined(found, step, stride) for found in dots)
    return stride * step, remove, add


def _dots_up_to(end: float, curve: Callable[[FloatArray], FloatArray], step: float) -> Dots:
    width = _FINEST // _CELLS
    places = width * np.arange(math.ceil(min(end, LARGEST_LOSS) / (width * step)) + 1)
    return few_dots(lambda place: curve(step * place), places, step)


def _joined(dots: Dots, step: float, stride: int) -> FloatArray:
    """Return the chords between dots, linear in exp(epsilon), at every ``stride``-th place."""
    grid = np.arange(0, dots.places[-1] + 1, stride)
    return np.interp(np.expm1(step * grid), np.expm1(step * dots.places), dots.heights)
