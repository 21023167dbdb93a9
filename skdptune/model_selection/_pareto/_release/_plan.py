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

import copy
import math
from dataclasses import dataclass

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
        total = copy.copy(self.empty_filter)
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
