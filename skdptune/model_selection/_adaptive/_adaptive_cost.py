"""The cost of a search whose candidates are chosen by the noisy scores of earlier ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from skdptune._formatting import shown
from skdptune.accounting import (
    PrivacyProfile,
    SharedCurve,
    UnreachableBudgetError,
    with_failure,
)
from skdptune.mechanisms import gaussian_profile
from skdptune.model_selection._adaptive._allowance import RUNGS, WHOLE
from skdptune.model_selection._cost import (
    Cost,
    CurveSetting,
    FitSetting,
    FitSize,
    ScoreNoise,
    TableCostModel,
)

# Squared shifts may exceed their sum by rounding.
_SLACK = 1.0 + 1e-12
_NEVER = 1e-16


@dataclass(frozen=True)
class AdaptiveCostModel(TableCostModel):
    """The cost of a number of fits and scores, whichever candidates they are of.

    Parameters
    ----------
    prunes : bool
        Whether trials climb `RUNGS`, and may be stopped on the way.
    is_resumable : bool
        Whether the records may be split anew while the search goes on.
    asked : float or None
        The total, where a final fit follows.

    Notes
    -----
    Theorem G6.
    """

    prunes: bool = False
    is_resumable: bool = False
    asked: float | None = None

    @property
    def rungs(self) -> tuple[Fraction, ...]:
        """Shares of the fits of one trial."""
        return RUNGS if self.prunes else WHOLE

    def rung_size(self, share: Fraction) -> FitSize:
        """Return the size of a fit of a share, whose learning rates suit its noise."""
        if self.asked is None or not (self.prunes or self.is_resumable):
            return self.train_size
        # What has more noise than the final fit would prefer shorter steps than that should have.
        factor = self.factor_of_rates(self.asked, float(share))
        return replace(self.train_size, rate_factor=factor)

    def rung_setting(self, setting: FitSetting | None, share: Fraction) -> FitSetting | None:
        """Return what a fit of a share is set to, beside the setting of all that one is paid."""
        if share == 1:
            return setting
        curve = _curve_of(setting)
        rung = SharedCurve(curve.shift * math.sqrt(share), curve.failure * float(share))
        return CurveSetting(rung, self.delta)

    def selections(
        self, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
    ) -> tuple[PrivacyProfile, PrivacyProfile | None]:
        """Return all fits and scores, for records that train, and for those that score."""
        n_fits = self.n_candidates * max(self.layout.folds - 1, 1)
        has_others = self.layout.validation > 0.0
        both = has_others and self.is_resumable
        if not self.prunes:
            fits, scores = fit * n_fits, noise.profile * self.n_candidates
            if has_others and not both:
                return fits, scores
            every = fits if noise.kind == "none" else fits + scores
            return every, every if both else None
        curve = _curve_of(setting)
        of_fits = n_fits * curve.shift**2
        of_scores = 0.0 if noise.kind == "none" else self.n_candidates / noise.ratio**2
        failure = n_fits * curve.failure
        if has_others and not both:
            return _within(of_fits, failure), _within(of_scores, 0.0)
        every = _within(of_fits + of_scores, failure)
        return every, every if both else None

    def _of_fits(self, profile_of: object, setting: FitSetting | None) -> Cost:
        cost = super()._of_fits(profile_of, setting)  # type: ignore[arg-type]
        chance = self.layout.chance_of_nothing
        if not self.is_resumable or chance <= _NEVER:
            return cost
        # Each fit may be on a split of its own (Theorem F7).
        most = self.n_candidates / float(min(self.rungs)) * chance
        extra = PrivacyProfile.approximate(0.0, min(most, 1.0))
        return replace(cost, total=cost.total + extra)

    def within(self, epsilon: float | None) -> Cost:
        """Return the cost with the least noise that keeps within a total."""
        if not self.prunes:
            return super().within(epsilon)
        if epsilon is None or self.delta == 0.0:
            raise ValueError(
                "pruner must be None without an epsilon and a delta above 0: the noise of its "
                f"fits follows from these; got epsilon={epsilon} and delta={self.delta:g}."
            )
        return self._solved_curve(epsilon)

    def check(self, cost: Cost) -> None:
        """Raise unless the fits of all candidates can be costed, at all rungs."""
        if self.prunes and not self._lies_below(cost):
            kind = type(self.fit_costs.estimator).__name__
            raise ValueError(
                "pruner must be None for an estimator whose cost no noise brings below the curve "
                f"of a Gaussian release, such as one that is known at one delta alone; got {kind}."
            )
        super().check(cost)
        if self.prunes:
            for share in self.rungs:
                setting = self.rung_setting(cost.run_setting, share)
                self.fit_costs.check_spaces(setting, self.rung_size(share))

    def _lies_below(self, cost: Cost) -> bool:
        """Return whether the first candidate's fit lies below the curve of its first rung."""
        setting = self.rung_setting(cost.run_setting, self.rungs[0])
        try:
            profile = self.fit_costs.first_profile(setting, self.train_size)
        except UnreachableBudgetError:
            return False
        return _curve_of(setting).covers(profile)


def _curve_of(setting: FitSetting | None) -> SharedCurve:
    if not isinstance(setting, CurveSetting):
        raise TypeError(f"setting must be a curve with a pruner; got {shown(setting)}.")
    return setting.curve


def _within(squared_shifts: float, failure: float) -> PrivacyProfile:
    """Return what all releases cost whose squared shifts and failures sum to no more."""
    # Theorem G4.
    gaussian = gaussian_profile(math.sqrt(squared_shifts) * _SLACK, 1.0)
    return with_failure(gaussian, min(failure * _SLACK, 1.0))
