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
from collections.abc import Callable

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
    hockey_stick,
    largest_loss,
    pair_masses,
    regridded,
    step_at_most,
)
from skdptune.accounting._profile import (
    PrivacyProfile,
    profile_from_halves,
    profile_from_renyi,
    renyi_of,
    sides_of,
)
from skdptune.accounting._selection import BoundNotApplicableError, useful_end
from skdptune.accounting._tuning._renyi import RenyiTuneThenFit

VARIANTS = (1, 2)
TUNING_BOUNDS = ("profile", "rdp")
_SEARCH_POINTS = 2**10
_CURVE_POINTS = 2**11
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
        return tune.subsampled(fraction) + fit
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
    """Return variant 1 on a grid of epsilon, through its formula in each direction."""
    sides, fit_sides = sides_of(tune), sides_of(fit)
    tops = largest_loss(sides), largest_loss(fit_sides)
    thinned = step_at_most(max(tops[0], 1e-6) / _SEARCH_POINTS)
    search = regridded(*sides, thinned) if sides[0].step < thinned else sides
    remove = _remove_direction(search, fit_sides, fraction)
    add = _add_direction(search[::-1], fit_sides[::-1], fraction)
    # Outcomes of the search that only one data set gives move by at most the log of the rest.
    last = sum(tops) - math.log1p(-fraction)
    rest = 1.0 - fraction
    residue = fraction * sides[0].infinity + rest * fit_sides[0].infinity
    end = max(
        useful_end(remove, residue, last),
        useful_end(add, rest * fit_sides[1].infinity, last),
    )
    step = step_at_most(max(end, 1e-6) / _CURVE_POINTS)
    grid = step * np.arange(math.ceil(min(end, LARGEST_LOSS) / step) + 1)
    renyi = RenyiTuneThenFit(renyi_of(tune), renyi_of(fit), fraction)
    return profile_from_halves(Halves(step, remove(grid), add(grid)), renyi)


def _remove_direction(
    search: Sides, fit: Sides, fraction: float
) -> Callable[[FloatArray], FloatArray]:
    # Theorem T2.
    losses, _, weights = pair_masses(*search)
    # Outcomes that only the smaller data set can give have likelihood ratio 0.
    ratios = np.append(np.exp(losses), 0.0)
    weights = np.append(weights, search[1].infinity)
    rest = 1.0 - fraction

    def delta(epsilons: FloatArray) -> FloatArray:
        def of(chunk: FloatArray) -> FloatArray:
            alphas = (np.exp(chunk)[:, None] - fraction * ratios) / rest
            return rest * (_height(fit, alphas) @ weights)

        return fraction * search[0].infinity + _in_chunks(of, epsilons, ratios.size)

    return delta


def _add_direction(
    search: Sides, fit: Sides, fraction: float
) -> Callable[[FloatArray], FloatArray]:
    # Theorem T2.
    losses, weights, _ = pair_masses(*search)
    inverse_ratios = np.append(np.exp(-losses), 0.0)
    weights = np.append(weights, search[0].infinity)

    def delta(epsilons: FloatArray) -> FloatArray:
        def of(chunk: FloatArray) -> FloatArray:
            kept = np.maximum(1.0 - fraction * np.exp(chunk)[:, None] * inverse_ratios, 0.0)
            logs = chunk[:, None] + math.log1p(-fraction) - np.log(np.maximum(kept, 1e-300))
            heights = hockey_stick(*fit, logs.ravel()).reshape(kept.shape)
            return (kept * heights) @ weights

        return _in_chunks(of, epsilons, inverse_ratios.size)

    return delta


def _height(fit: Sides, alphas: FloatArray) -> FloatArray:
    """Return the fit's curve at any real alpha."""
    logs = np.log(np.maximum(alphas, 1e-300)).ravel()
    heights = hockey_stick(*fit, logs).reshape(alphas.shape)
    return np.where(alphas > 0.0, heights, 1.0 - alphas)


def _in_chunks(
    function: Callable[[FloatArray], FloatArray], points: FloatArray, width: int
) -> FloatArray:
    """Evaluate at many points in bounded memory."""
    size = max(_CHUNK // width, 1)
    parts = [function(points[start : start + size]) for start in range(0, points.size, size)]
    return np.concatenate(parts)
