"""The cost of searches that release every candidate they try, with its noisy score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError, calibrate
from skdptune.mechanisms import gaussian_profile, laplace_profile, noise_for_budget
from skdptune.model_selection._cost._cost_model import (
    NO_NOISE,
    Cost,
    CostModel,
    ScoreNoise,
    untuned_model,
)
from skdptune.model_selection._cost._expected_gain import expected_loss
from skdptune.model_selection._cost._fit_costs import (
    BudgetSetting,
    CurveSetting,
    FitSetting,
    FitSize,
    NoiseSetting,
)

_LARGEST_BUDGET = 500.0
# Noise of runs over that of the final fit, and the share of epsilon that a solution may leave.
_LEAST_RATIO, _LARGEST_RATIO, _TOLERANCE = 0.1, 1e5, 2e-3
# Share of the total that is left to the final fit, about.
_SHARE_OF_FINAL = 0.95


@dataclass(frozen=True)
class CompositionCostModel(CostModel):
    """The cost of fitting and scoring every candidate of a grid, and showing all of it.

    Parameters
    ----------
    n_candidates : int
    """

    n_candidates: int = 1

    def selections(
        self, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
    ) -> tuple[PrivacyProfile, PrivacyProfile | None]:
        """Return all runs, for records that train, and for those that score if others do."""
        if isinstance(setting, CurveSetting):
            fits = fit * self.n_candidates
        else:
            fits = self.fit_costs.composed(setting, self.train_size)
        scores = noise.profile * self.n_candidates
        if self.layout.validation > 0.0:
            return fits, scores
        every = fits * max(self.layout.folds - 1, 1)
        return every if noise.kind == "none" else every + scores, None


@dataclass(frozen=True)
class TableCostModel(CompositionCostModel):
    """The cost of a full table of noisy scores, and of one fit of the chosen candidate.

    Parameters
    ----------
    fit_noise : float
        Noise of each candidate's fit over that of the final fit.
    score_noise : float
        Noise of each score over that of the final fit, both in units of a record's influence.
    rate_factor : float
        By which learning rates of candidates' fits are multiplied.

    Notes
    -----
    Theorem T8.
    """

    fit_noise: float = 1.0
    score_noise: float = 1.0
    rate_factor: float = 1.0

    @property
    def train_size(self) -> FitSize:
        """The records of one candidate's fit, and by what its learning rates are multiplied."""
        return replace(super().train_size, rate_factor=self.rate_factor)

    def solved(self, epsilon: float, limit: float) -> tuple[TableCostModel, Cost]:
        """Return the model with the least noise of runs, and its cost within a total.

        Parameters
        ----------
        epsilon : float
            The total.
        limit : float
            Noise of the final fit over that of an untuned fit for the same total.

        Notes
        -----
        Scores and fits are of different records, so that either may use what the final fit leaves.
        Where no noise of the runs is enough, they keep theirs, and the final fit gets more.
        """
        untuned = untuned_model(self).within(epsilon).setting
        if untuned is None:
            return self, self.within(epsilon)
        setting = self._stated(untuned.noisier(limit, 1))
        try:
            of_score = self._least(self._total_of_scores(setting), epsilon, self.score_noise)
            with_scores = replace(self, score_noise=of_score)
            of_fit = self._least(with_scores._total_of_fits(setting), epsilon, self.fit_noise)
        except UnreachableBudgetError:
            return self, self.within(epsilon)
        model = replace(with_scores, fit_noise=of_fit)
        model = replace(model, rate_factor=model.factor_of_rates(epsilon))
        return model, model.at(setting)

    def factor_of_rates(self, epsilon: float, share: float = 1.0) -> float:
        """Return by what learning rates suit the noise of candidates' fits.

        Parameters
        ----------
        epsilon : float
            The total.
        share : float, default=1.0
            Of what a fit is paid, where it has more noise than others.

        Notes
        -----
        Where noise decides which steps are best, they shrink by the root of it; where it does not,
        shorter steps would hide that a candidate's are too long for the final fit. Which is the
        case is what the noise of these fits is expected to lose, in points of accuracy.
        """
        layout, noise = self.layout, self.fit_noise / math.sqrt(share)
        loss = expected_loss(noise / layout.train_share, epsilon, layout.n_samples)
        return float(noise ** (-0.5 * min(loss, 1.0)))

    def _least(
        self, total: Callable[[float], PrivacyProfile], epsilon: float, guess: float
    ) -> float:
        found = calibrate(
            total,
            epsilon,
            self.delta,
            lower=_LEAST_RATIO,
            upper=_LARGEST_RATIO,
            guess=min(max(guess, _LEAST_RATIO), _LARGEST_RATIO),
            tolerance=_TOLERANCE,
        )
        return found.value

    def _total_of_scores(self, setting: FitSetting) -> Callable[[float], PrivacyProfile]:
        """Return what a record costs that is scored on, by the noise of scores."""
        final = self.fit_costs.profile(setting, self.final_size)
        has_others = self.layout.validation > 0.0
        # With folds the same records train and score, and each of the two gets half.
        count = self.n_candidates * (1 if has_others else 2)

        def total(noise: float) -> PrivacyProfile:
            model = replace(self, score_noise=noise)
            return model._score_noise(final, setting).profile * count + final

        return total

    def _total_of_fits(self, setting: FitSetting) -> Callable[[float], PrivacyProfile]:
        return lambda noise: replace(self, fit_noise=noise).at(setting).total

    def _stated(self, setting: FitSetting) -> FitSetting:
        """Return a setting that says what the final fit costs."""
        if not isinstance(setting, NoiseSetting):
            return setting
        final = self.fit_costs.profile(setting, self.final_size)
        return replace(setting, epsilon=final.epsilon(self.delta))

    def setting_of_runs(self, setting: FitSetting | None) -> FitSetting | None:
        """Return the setting of candidates' fits, which have more noise than the final one."""
        return None if setting is None else setting.noisier(self.fit_noise, self.n_candidates)

    def guess(self, epsilon: float) -> BudgetSetting:
        """Return about what the final fit may cost of a total."""
        return BudgetSetting(epsilon * _SHARE_OF_FINAL, self.delta)

    @property
    def _stated_size(self) -> FitSize:
        return self.final_size if self.layout.final else self.train_size

    def _score_noise(self, fit: PrivacyProfile, setting: FitSetting | None) -> ScoreNoise:
        if self.layout.public:
            return NO_NOISE
        if self.score_epsilon is not None:
            return super()._score_noise(fit, setting)
        epsilon = fit.epsilon(self.delta) if setting is None else setting.epsilon
        if not 0.0 < epsilon < math.inf:
            epsilon = 1.0
        unit, _ = noise_for_budget(min(max(epsilon, 1e-6), _LARGEST_BUDGET), self.delta)
        ratio = unit * self.score_noise
        if self.delta > 0.0:
            return ScoreNoise(ratio, "gaussian", gaussian_profile(1.0, ratio))
        return ScoreNoise(ratio, "laplace", laplace_profile(1.0, ratio))
