"""Bounds on private selection, by name, and the profile of the selection's result.

Every bound here takes one run's profile and the law of the number of runs, and
says per direction what the best run costs, for every epsilon >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skdptune._validation import FloatArray, check_kind, check_option
from skdptune.accounting._losses import LARGEST_LOSS, LossDistribution
from skdptune.accounting._losses import curves as _curves
from skdptune.accounting._losses import renyi as _renyi
from skdptune.accounting._profile import PrivacyProfile
from skdptune.accounting._run_counts import (
    Binomial,
    Poisson,
    RunCountDistribution,
    TruncatedNegativeBinomial,
)
from skdptune.accounting._selection._envelope import Envelope, hockey_stick

Curve = Callable[[FloatArray], FloatArray]
BOUNDS = ("envelope", "profile", "rdp", "best")
_POINTS = 2**14
# A pure run's curve is correlated point by point, and has few bends.
_PURE_POINTS = 2**12
_NEGLIGIBLE = 1e-17


class BoundNotApplicableError(ValueError):
    """A bound was asked for a law or a profile that its theorem does not cover."""


def selected_profile(
    profile: PrivacyProfile, distribution: RunCountDistribution, bound: str
) -> PrivacyProfile:
    """Return the profile of the best of a random number of runs, under one bound."""
    # Theorem S5.
    check_kind(
        distribution,
        name="distribution",
        kind=RunCountDistribution,
        domain="a distribution such as Geometric(0.1)",
    )
    check_option(bound, name="bound", options=BOUNDS)
    renyi = _renyi.RenyiSelected(profile._renyi, distribution)
    names = (
        [bound]
        if bound != "best"
        else [n for n in BOUNDS[:-1] if _applies(n, profile, distribution)]
    )
    makers = [_MAKERS[name] for name in names]
    sides = [profile._sides(direction) for direction in ("remove", "add")]
    curves = [[make(profile, own, other, distribution) for make in makers] for own, other in sides]
    top = max(min(curve.top for curve in side) for side in curves)
    is_pure = profile._remove.infinity == profile._add.infinity == 0.0
    step = _grid_step(top, profile._remove.step, _PURE_POINTS if is_pure else _POINTS)
    # One step more: a bend between two points of the grid counts at the lower one as well.
    size = math.ceil(min(top, LARGEST_LOSS) / step - 1e-9) + 2
    halves = [np.min([curve.half(step, size) for curve in side], axis=0) for side in curves]
    return PrivacyProfile._from_halves(step, halves[0], halves[1], renyi)


def selection_delta(
    profile: PrivacyProfile,
    distribution: RunCountDistribution,
    epsilons: FloatArray,
    direction: str,
    bound: str,
) -> FloatArray:
    """Return one bound in one direction at single points, without a grid in between."""
    own, other = profile._sides(direction)
    curve = _MAKERS[bound](profile, own, other, distribution)
    return np.minimum(curve.delta(np.asarray(epsilons, dtype=np.float64)), 1.0)


class _EnvelopeCurve:
    """The envelope, with the end of its useful range found."""

    def __init__(
        self, own: LossDistribution, other: LossDistribution, distribution: RunCountDistribution
    ) -> None:
        self._envelope = Envelope(own, other, distribution)
        self._is_pure = own.infinity == 0.0
        self.delta = self._envelope.delta
        residue = distribution.mean * own.infinity
        self.top = useful_end(self.delta, residue, self._envelope.top)

    def half(self, step: float, size: int) -> FloatArray:
        # The end of a pure guarantee's curve is a figure of its own: no rounding there.
        return self._envelope.half(step, size, stride=1 if self._is_pure else 4)


class _PointCurve:
    """A bound given by a function of epsilon."""

    def __init__(self, delta: Curve, residue: float, end: float) -> None:
        self.delta = delta
        self.top = useful_end(delta, residue, end)

    def half(self, step: float, size: int) -> FloatArray:
        return self.delta(step * np.arange(size))


def useful_end(delta: Curve, residue: float, end: float) -> float:
    """Return an epsilon from which on nothing but the residue is left."""
    if residue == 0.0 and end < LARGEST_LOSS:
        return max(end, 1e-9)
    enough = residue * 1.001 + _NEGLIGIBLE
    point = min(1e-3, end)
    while point < min(end, LARGEST_LOSS) and float(delta(np.array([point]))[0]) > enough:
        point *= 1.5
    return max(min(point, end, LARGEST_LOSS), 1e-9)


def _grid_step(top: float, finest: float, points: int) -> float:
    """Return a step that resolves [0, top], and no finer than the run's own where that helps."""
    step = _curves.step_at_most(top / points)
    own = _curves.step_at_most(finest)
    return own if step < own <= 2.0 * step else step


def _envelope(
    profile: PrivacyProfile,
    own: LossDistribution,
    other: LossDistribution,
    distribution: RunCountDistribution,
) -> _EnvelopeCurve:
    return _EnvelopeCurve(own, other, distribution)


def _profile(
    profile: PrivacyProfile,
    own: LossDistribution,
    other: LossDistribution,
    distribution: RunCountDistribution,
) -> _PointCurve:
    """Koskela, Redberg and Wang (2024), Theorem 5.2 and relatives: ``mean * delta(e - shift)``."""
    # Theorem S3.
    shift = _shift(own, other, distribution)
    if shift is None:
        raise BoundNotApplicableError(
            f"bound must be 'envelope' for {distribution}; got 'profile', whose theorem "
            "excludes it."
        )

    def delta(epsilons: FloatArray) -> FloatArray:
        return distribution.mean * hockey_stick(own, other, epsilons - shift)

    return _PointCurve(delta, distribution.mean * own.infinity, own.highest * own.step + shift)


def _shift(
    own: LossDistribution, other: LossDistribution, distribution: RunCountDistribution
) -> float | None:
    """Return by how much epsilon grows before the factor E[K], at the best of the helpers."""
    # Theorem S3.
    hats = own.step * np.arange(max(own.highest, other.highest) + 1)
    if isinstance(distribution, TruncatedNegativeBinomial):
        # The other direction's delta: the same direction's would be unsound.
        odds = (1.0 - distribution.gamma) / distribution.gamma
        log_ratio = np.log(np.exp(hats) + odds * other.delta(hats))
        return (1.0 + distribution.eta) * float(np.min(log_ratio))
    if isinstance(distribution, Poisson):
        return distribution.mean * float(own.curve[0])
    if isinstance(distribution, Binomial) and distribution.probability < 1.0:
        chance = distribution.probability
        gain = chance * (np.expm1(hats) + own.delta(hats) / (1.0 - chance))
        return (distribution.trials - 1) * float(np.min(np.log1p(gain)))
    return None


def _rdp(
    profile: PrivacyProfile,
    own: LossDistribution,
    other: LossDistribution,
    distribution: RunCountDistribution,
) -> _PointCurve:
    """Papernot and Steinke (2022), Theorems 2 and 6."""
    # Theorem S3.
    if not _applies("rdp", profile, distribution):
        raise BoundNotApplicableError(
            f"bound must be 'envelope' or 'profile' here; got 'rdp', but no Rényi bound is known "
            f"for {distribution} and this run. Profiles made by from_event, pure or gaussian have "
            "one."
        )
    orders = _renyi.ORDERS
    table = _renyi.RenyiTable(
        tuple(orders.tolist()),
        tuple(_renyi.RenyiSelected(profile._renyi, distribution).at(orders).tolist()),
    )
    return _PointCurve(lambda points: table.delta(points), 0.0, LARGEST_LOSS)


def _applies(name: str, profile: PrivacyProfile, distribution: RunCountDistribution) -> bool:
    """Say whether a bound covers the law and the run."""
    if name == "rdp":
        known = profile._renyi.at(np.array([2.0, 8.0]))
        covered = isinstance(distribution, TruncatedNegativeBinomial) or (
            isinstance(distribution, Poisson) and distribution.mean >= 1.0
        )
        return covered and bool(np.isfinite(known).any())
    if name == "profile":
        return not (isinstance(distribution, Binomial) and distribution.probability == 1.0)
    return True


_MAKERS: dict[str, Callable[..., _EnvelopeCurve | _PointCurve]] = {
    "envelope": _envelope,
    "profile": _profile,
    "rdp": _rdp,
}
