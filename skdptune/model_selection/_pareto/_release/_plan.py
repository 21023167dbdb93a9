"""The plan of a released search: what it may cost, and how the costs of evaluations are composed.

All evaluations share one random split of the records. Which evaluations are made may depend on the
noisy scores of earlier ones, and so may their costs.

* Where all cost the same, their number is fixed beforehand and their exact curves are composed.
* Where proposals do not depend on scores (random or grid), all evaluations are fixed before the
  data are seen, and their exact curves are composed as well.
* Otherwise a `GaussianFilter` or a `RenyiFilter`, whichever admits more, decides which further
  evaluations may be made.

The scores of all evaluations cost what one Gaussian release would: each of N scores has the noise
of that release times the root of N. With a validation part, shared by all evaluations, a record
pays for the scores or for the fits: the mixture over where it went (see
`skdptune.accounting.search_on_split`). With folds it pays for both.

Theorem G3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skdptune.accounting import (
    GaussianFilter,
    PrivacyProfile,
    PrivacyReport,
    RenyiFilter,
    search_on_split,
    with_failure,
)
from skdptune.model_selection._cost import NO_NOISE, Layout, ScoreNoise

NOTHING = PrivacyProfile.pure(0.0)
_ROUNDING = 1e-6
# Smaller probabilities are rounding errors.
_NEGLIGIBLE = 1e-16


@dataclass(frozen=True)
class ReleasePlan:
    """How many evaluations a released search makes, and what they cost, fixed before the data.

    Attributes
    ----------
    layout : Layout
    epsilon, delta : float
        For everything that the search shows, except for the final fit.
    final : PrivacyProfile
        The most that the final fit may cost; nothing without one.
    n_evaluations : int
        The most evaluations.
    n_fits : int
        Fits of an evaluation that see the same record.
    trained : PrivacyProfile
        Cost for a record that is trained on: of all fits, and with folds of all scores.
    scores : PrivacyProfile
        Cost of all scores.
    shift : float
        Of the Gaussian release that all scores are together.
    kind : {"equal", "known", "filter"}
        How costs of fits are composed.
    empty_filter : GaussianFilter, RenyiFilter or None
        The filter, with nothing recorded.
    fit : PrivacyProfile or None
        Cost of each fit, where all cost the same.
    n_guaranteed : int
        Each of so many evaluations gets an equal share of what is left for them.

    Notes
    -----
    Theorem G3.
    """

    layout: Layout
    epsilon: float
    delta: float
    final: PrivacyProfile
    n_evaluations: int
    n_fits: int
    trained: PrivacyProfile
    scores: PrivacyProfile
    shift: float
    kind: str
    empty_filter: GaussianFilter | RenyiFilter | None = None
    fit: PrivacyProfile | None = None
    n_guaranteed: int = 1

    @property
    def total(self) -> PrivacyProfile:
        """Cost of everything that the search shows."""
        share, chance = self.layout.validation, chance_of_empty_fit(self.layout)
        scored = self.scores if share > 0.0 else None
        total = search_on_split(self.trained, scored, validation_fraction=share)
        return (with_failure(total, chance) if chance > 0.0 else total) + self.final

    @property
    def usable_delta(self) -> float:
        """Delta less the probability that some fit has no record."""
        # A little less, so that rounding does not make sums of curves that use it up too large.
        return (self.delta - chance_of_empty_fit(self.layout)) * (1.0 - _ROUNDING)

    def allows(self, trained: PrivacyProfile) -> bool:
        """Return whether a record that is trained on is charged no more than the total.

        One that is scored on is charged the scores instead, whose noise was chosen for the total.
        """
        return trained.epsilon(self.usable_delta) <= self.epsilon

    @property
    def noise(self) -> ScoreNoise:
        """Noise of one score."""
        if self.layout.public:
            return NO_NOISE
        ratio = math.sqrt(self.n_evaluations) / self.shift
        return ScoreNoise(ratio, "gaussian", PrivacyProfile.gaussian(1.0 / ratio))

    def filter(self) -> GaussianFilter | RenyiFilter | None:
        """Return a filter in which only scores that a trained record pays for are recorded."""
        total = None if self.empty_filter is None else self.empty_filter.emptied()
        if total is not None and self.layout.folds:
            # Together the scores are one Gaussian release, wherever they come between fits.
            total.record(self.scores)
        return total

    @property
    def parts(self) -> tuple[PrivacyReport, ...]:
        """The parts of the report's tree."""
        note = {
            "equal": f"{self.n_evaluations} evaluations of equal cost",
            "known": "evaluations that do not depend on scores",
            "filter": f"evaluations chosen by scores, {_filter_name(self.empty_filter)}",
        }[self.kind]
        fits = PrivacyReport(self.trained, self.delta, name="evaluations", note=note)
        if self.layout.public:
            return (fits,)
        whose = "" if self.layout.folds else "; for a record that is scored on and not trained on"
        note = f"at most {self.n_evaluations}, with noise{whose}"
        scores = PrivacyReport(self.scores, self.delta, name="scores", note=note)
        return fits, scores


def _filter_name(total: GaussianFilter | RenyiFilter | None) -> str:
    if isinstance(total, RenyiFilter):
        return f"Rényi filter of order {total.order:g}"
    return "Gaussian filter"


def chance_of_empty_fit(layout: Layout) -> float:
    """Return the probability that some fit has no record, which no noise hides.

    Notes
    -----
    Theorem F7.
    """
    chance = min(layout.chance_of_nothing, 1.0)
    return chance if chance > _NEGLIGIBLE else 0.0


FloatArray = NDArray[np.float64]

# An evaluation after the first ones must leave room for another like it.
_LATER = 2
# Divergences of whole orders are computed fastest.
_QUICK_ORDERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)


@dataclass
class ReleaseBudget:
    """Decides which further evaluations of a released search may be made.

    Public numbers alone decide: costs, and how many evaluations were made. Where costs differ,
    each of the first evaluations may take at most an equal share of what is left for them, and a
    later one half of it.

    Parameters
    ----------
    plan : ReleasePlan

    Notes
    -----
    Theorem G3.
    """

    plan: ReleasePlan
    n_charged: int = 0
    # Exact curves are added up only when they are needed: of `_pending` fits not yet.
    _spent: PrivacyProfile = field(default=NOTHING, repr=False)
    _pending: list[PrivacyProfile] = field(default_factory=list, repr=False)
    _spent_divergences: FloatArray = field(init=False, repr=False)
    _refused: FloatArray | None = field(default=None, repr=False)
    _filter: GaussianFilter | RenyiFilter | None = field(init=False, repr=False)
    # The last fit that was composed, and the composition.
    _composed: tuple[PrivacyProfile, PrivacyProfile] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Set the cost of the scores aside, where a record that is trained on pays for them."""
        plan = self.plan
        self._filter = plan.filter()
        if self._filter is None and plan.layout.folds:
            self._spent = plan.scores
        self._spent_divergences = _divergences(self._spent)

    def charge(self, fit: PrivacyProfile) -> bool:
        """Charge an evaluation whose fits have a cost; return whether it may be made."""
        plan = self.plan
        if self.n_charged >= plan.n_evaluations:
            return False
        # An estimator may be wrong about the parameters that set its cost.
        is_admitted = fit == plan.fit if plan.kind == "equal" else self._is_admitted(fit)
        if not is_admitted:
            return False
        self.n_charged += 1
        return True

    def _is_admitted(self, fit: PrivacyProfile) -> bool:
        if self._is_like_refused(fit):
            return False
        if not self.pays(fit, self._n_sharing()):
            self._refused = _divergences(fit)
            return False
        self._record(fit)
        self._refused = None
        return True

    def _is_like_refused(self, fit: PrivacyProfile) -> bool:
        """Return whether fits cost at least as much as the last refused ones, at all orders.

        Then exact curves need not be added up to refuse them. A filter needs no such shortcut.
        """
        if self._filter is not None or self._refused is None:
            return False
        divergences = _divergences(fit)
        return bool(np.isfinite(divergences).all() and (divergences >= self._refused).all())

    def _n_sharing(self) -> int:
        """Return how many evaluations of the next one's cost must fit into what is left."""
        n_guaranteed = self.plan.n_guaranteed
        n_missing = n_guaranteed - self.n_charged
        return n_missing if n_missing > 0 else min(n_guaranteed, _LATER)

    def pays(self, fit: PrivacyProfile, count: int) -> bool:
        """Return whether ``count`` more evaluations, of equal fits, fit into what is left."""
        n_fits = self.plan.n_fits * count
        if self._filter is not None:
            part, number = self._parts_of(fit)
            return self._filter.fits(part, number * count)
        if _renyi_allows(self.plan, self._spent_divergences + n_fits * _divergences(fit)):
            return True
        # Exact curves are smaller than the quick bound.
        self._spent = sum((one * self.plan.n_fits for one in self._pending), self._spent)
        self._pending = []
        return self.plan.allows(self._spent + fit * n_fits)

    def _record(self, fit: PrivacyProfile) -> None:
        n_fits = self.plan.n_fits
        if self._filter is None:
            self._pending.append(fit)
            self._spent_divergences = self._spent_divergences + n_fits * _divergences(fit)
            return
        part, number = self._parts_of(fit)
        for _ in range(number):
            self._filter.record(part)

    def _parts_of(self, fit: PrivacyProfile) -> tuple[PrivacyProfile, int]:
        """Return the parts that a filter is charged for an evaluation, and their number.

        Several fits together are more like a Gaussian release than each of them; divergences are
        added up either way.
        """
        n_fits = self.plan.n_fits
        if n_fits == 1 or not isinstance(self._filter, GaussianFilter):
            return fit, n_fits
        if self._composed is None or self._composed[0] is not fit:
            self._composed = fit, fit * n_fits
        return self._composed[1], 1


def _divergences(part: PrivacyProfile) -> FloatArray:
    divergences: FloatArray = part.rdp(np.array(_QUICK_ORDERS))
    return divergences


def _renyi_allows(plan: ReleasePlan, divergences: FloatArray) -> bool:
    """Return whether sums of Rényi divergences prove that the plan allows the fits."""
    orders = np.array(_QUICK_ORDERS)
    # The conversion of `RenyiFilter`.
    offsets = (math.log(plan.usable_delta) + np.log(orders)) / (orders - 1.0)
    return bool(np.min(divergences + np.log1p(-1.0 / orders) - offsets) <= plan.epsilon)
