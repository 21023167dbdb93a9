"""Compute the cost of a whole search, and solve for settings that meet a total."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from skdptune.accounting import (
    PrivacyProfile,
    PrivacyReport,
    SharedCurve,
    UnreachableBudgetError,
    calibrate,
    mixture,
    search_on_split,
)
from skdptune.base._shared import DEFAULT_DELTA, budget_owners
from skdptune.base.protocol import Parametrized
from skdptune.mechanisms import gaussian_profile, laplace_profile, noise_for_budget
from skdptune.model_selection._cost._fit_costs import (
    BudgetSetting,
    CurveSetting,
    FitCosts,
    FitSetting,
    FitSize,
    NoiseSetting,
)
from skdptune.model_selection._cost._layout import Layout

ProfileOfFit = Callable[[FitSetting | None, FitSize], PrivacyProfile]

# Share of the total epsilon that may stay unused; a finer solution is not worth the time.
_TOLERANCE = 4e-3
# A solution that uses less than this share of the total has failed.
_ENOUGH = 0.95
_LARGEST_BUDGET = 500.0
_LEAST_NOISE, _LARGEST_NOISE = 0.05, 1e6
# Mass at infinity of a shared curve: this much, or this share of delta if that is smaller.
_FAILURE, _FAILURES = 1e-7, 100.0
_LEAST_SHIFT, _LARGEST_SHIFT = 1e-4, 30.0
# Where the search for a noise starts, and how often a solution for a single fit improves that
# start.
_USUAL_NOISE, _GUESSES = 2.0, 2
# First step from there, in the logarithm of the noise.
_STRIDE = 0.2
# Rounding must not omit a share of a score's noise.
_SLACK = 1.0 + 1e-12
# Smaller probabilities count as zero, like the tails of all profiles.
_NEVER = 1e-16
# With a tuning fraction, scores cost extra: least and largest share of a fit's epsilon.
_SCORE_SHARES = (0.03, 0.2)
_FOLDS_SHARE = 0.25
# Target noise of a score, in units of half the range over the root of the number of records.
_SCORE_NOISE = 0.5
_RELEASES = {"gaussian": gaussian_profile, "laplace": laplace_profile}


@dataclass(frozen=True)
class ScoreNoise:
    """The noise on the scores of a candidate, one for each metric.

    Attributes
    ----------
    ratio : float
        Its scale in units of each score's own sensitivity; 0 for none.
    kind : {"gaussian", "laplace", "none"}
        "none" for public validation data.
    profile : PrivacyProfile
        Cost of all scores of a candidate together.
    n_metrics : int, default=1
        Number of scores of a candidate that the profile pays for.
    """

    ratio: float
    kind: str
    profile: PrivacyProfile
    n_metrics: int = 1

    @property
    def growth(self) -> float:
        """Factor of the noise on each score, relative to a single score of the same cost."""
        return math.sqrt(self.n_metrics) if self.kind == "gaussian" else float(self.n_metrics)

    @property
    def of_one(self) -> PrivacyProfile:
        """Cost of one of a candidate's scores."""
        if self.n_metrics == 1:
            return self.profile
        return _RELEASES[self.kind](1.0, self.ratio)

    def shared_by(self, n_metrics: int) -> ScoreNoise:
        """Return the noise of several scores that together cost as much as one.

        Notes
        -----
        Theorem T8: squared shifts of Gaussian noise add up, and shifts of Laplace noise add up.
        """
        if n_metrics == 1:
            return self
        shared = replace(self, n_metrics=n_metrics)
        return replace(shared, ratio=self.ratio * shared.growth * _SLACK)


NO_NOISE = ScoreNoise(0.0, "none", PrivacyProfile.pure(0.0))


@dataclass(frozen=True)
class Cost:
    """The cost of a search, and of its parts.

    Attributes
    ----------
    total : PrivacyProfile
        Everything together.
    fit : PrivacyProfile
        Cost of one fit of a run.
    trained, scored : PrivacyProfile
        The selection, for training records and for scoring records (None if no records are held
        out for scoring).
    final : PrivacyProfile or None
        The final fit.
    score_noise : ScoreNoise
        The noise on each score.
    setting : FitSetting or None
        Setting of the returned model's fit, if the search chooses it.
    run_setting : FitSetting or None
        Setting of the fits of the runs; the same unless the search chooses another.
    """

    total: PrivacyProfile
    fit: PrivacyProfile
    trained: PrivacyProfile
    scored: PrivacyProfile | None
    final: PrivacyProfile | None
    score_noise: ScoreNoise
    setting: FitSetting | None
    run_setting: FitSetting | None

    @property
    def fit_epsilon(self) -> float | None:
        """Epsilon that one fit may cost at the search's delta, if the search sets it."""
        return None if self.setting is None else self.setting.epsilon


# From a cost model, the profile of one fit, the noise of its score and the setting of the runs'
# fits, to the cost of the selection for training records, and for scoring records if they are
# others (else None).
Selections = Callable[
    ["CostModel", PrivacyProfile, ScoreNoise, FitSetting | None],
    tuple[PrivacyProfile, PrivacyProfile | None],
]


@dataclass(frozen=True)
class CostModel:
    """The cost of a search as a function of the setting of its fits.

    Parameters
    ----------
    layout : Layout
        How the records are divided.
    fit_costs : FitCosts
        Costs of fits.
    delta : float
        Delta at which figures are stated.
    select : callable
        From the profile of one run to that of the selection.
    selections : callable, optional
        Replaces `select` if the selection is not a function of one run; see `Selections`.
    solved : object, optional
        Values that the strategy has solved for before the noise.
    note, bound : str
        Texts for the report.
    score_epsilon : float or None
        Epsilon that a score may cost; None lets the search choose.
    n_runs : int, default=1
        Number of runs that are all released; no more are made. `select` or `selections` gives
        their joint cost.
    fit_noise : float or None
        Noise of each run's fit divided by that of the final fit; None for equal settings.
    score_noise : float or None
        Noise of each score divided by that of the final fit, both in units of a record's
        influence; None for a share of the cost of a fit.
    rate_factor : float, default=1.0
        Factor for the learning rates of runs' fits.
    releases_runs : bool, default=True
        Whether runs consist of released fits and scores. If not, the cost of the selection does
        not depend on the cost of fits.
    n_splits : float, default=1.0
        How often the records may be split again, each time with some probability of an empty fit.
    metrics : tuple of str, default=("score",)
        Metrics for which each candidate has a noisy score. They share the cost of one score
        equally.

    Notes
    -----
    Theorem F0.
    """

    layout: Layout
    fit_costs: FitCosts
    delta: float
    # The default is the cost of a selection that makes one run.
    select: Callable[[PrivacyProfile], PrivacyProfile] = field(default=lambda run: run)
    selections: Selections | None = None
    solved: Any = None
    note: str = ""
    bound: str | None = None
    score_epsilon: float | None = None
    n_runs: int = 1
    fit_noise: float | None = None
    score_noise: float | None = None
    rate_factor: float = 1.0
    releases_runs: bool = True
    n_splits: float = 1.0
    metrics: tuple[str, ...] = ("score",)

    # The cost at a setting ----------------------------------------------------------------------

    def at(self, setting: FitSetting | None) -> Cost:
        """Return the cost at a setting of all fits; None uses the estimator's own budget."""
        return self._of_fits(self.fit_costs.profile, setting)

    def _of_fits(self, profile_of: ProfileOfFit, setting: FitSetting | None) -> Cost:
        layout, of_runs = self.layout, setting
        if setting is not None and self.fit_noise is not None:
            of_runs = self.noisier(setting, self.fit_noise, self.n_runs)
        fit = profile_of(of_runs, self.train_size)
        noise = self.noise_of_scores(fit, setting)
        final = None
        if layout.final:
            is_alike = of_runs is setting and self.train_size == self.final_size
            final = fit if is_alike else profile_of(setting, self.final_size)
        trained, scored = (self.selections or _selected)(self, fit, noise, of_runs)
        total = search_on_split(
            trained,
            scored,
            final,
            validation_fraction=layout.validation,
            tuning_fraction=layout.tuning,
            variant=layout.variant,
            bound="rdp" if final is not None and self.bound == "rdp" else "profile",
            by_rule=layout.by_rule,
        )
        if self.releases_runs and layout.chance_of_nothing > _NEVER:
            # Theorem F7: a fit may have no record, on each new split.
            chance = min(self.n_splits * layout.chance_of_nothing, 1.0)
            total = total + PrivacyProfile.approximate(0.0, chance)
        return Cost(total, fit, trained, scored, final, noise, setting, of_runs)

    def noisier(self, setting: FitSetting, factor: float, n_fits: int) -> FitSetting:
        """Return the setting of each of `n_fits` fits with `factor` times the noise."""
        if isinstance(setting, CurveSetting) and setting.shape is not None:
            # Theorem T4: the same candidate's own cost at that noise is a curve as well.
            return self._shaped(setting.shape.noisier(factor, n_fits), n_fits)
        return setting.noisier(factor, n_fits)

    def run(self, fit: PrivacyProfile, noise: ScoreNoise) -> PrivacyProfile:
        """Return the cost of a whole run: its fits and its score."""
        if self.layout.validation > 0.0:
            return fit | noise.profile
        run = fit * max(self.layout.folds - 1, 1)
        return run if noise.kind == "none" else run + noise.profile

    @property
    def train_size(self) -> FitSize:
        """The records of a run's fit; those of the final fit if runs have no released fits."""
        if not self.releases_runs:
            return self.final_size
        layout = self.layout
        return FitSize(
            layout.n_train,
            layout.n_final,
            layout.n_features,
            layout.train_is_random,
            self.rate_factor,
        )

    @property
    def _stated_size(self) -> FitSize:
        """The records of the fit whose cost is reported as that of one fit."""
        is_final = self.fit_noise is not None and self.layout.final
        return self.final_size if is_final else self.train_size

    @property
    def final_size(self) -> FitSize:
        """The records of the final fit."""
        layout = self.layout
        return FitSize(layout.n_final, layout.n_final, layout.n_features, layout.final_is_random)

    def noise_of_scores(self, fit: PrivacyProfile, setting: FitSetting | None) -> ScoreNoise:
        """Return the noise on each score."""
        if self.layout.public or not self.releases_runs:
            return NO_NOISE
        return self._noise_of_one(fit, setting).shared_by(len(self.metrics))

    def _noise_of_one(self, fit: PrivacyProfile, setting: FitSetting | None) -> ScoreNoise:
        """Return the noise on a score that is the only one of its candidate."""
        of_fit = fit.epsilon(self.delta) if setting is None else setting.epsilon
        epsilon = self.score_epsilon
        if epsilon is None:
            share = 1.0 if self.score_noise is not None else self._score_share(of_fit)
            epsilon = of_fit * share
        if not 0.0 < epsilon < math.inf:
            # A fit that costs nothing or everything cannot set the cost of a score.
            epsilon = 1.0
        kind = "gaussian" if self.delta > 0.0 else "laplace"
        if self.score_noise is None or self.score_epsilon is not None:
            ratio, profile = noise_for_budget(min(epsilon, _LARGEST_BUDGET), self.delta)
            return ScoreNoise(ratio, kind, profile)
        unit, _ = noise_for_budget(min(max(epsilon, 1e-6), _LARGEST_BUDGET), self.delta)
        ratio = unit * self.score_noise
        return ScoreNoise(ratio, kind, _RELEASES[kind](1.0, ratio))

    def _score_share(self, epsilon: float) -> float:
        """Return a score's share of a fit's epsilon, from public numbers."""
        if self.layout.folds:
            return _FOLDS_SHARE
        if self.layout.tuning is None:
            # Validation records are charged only for scores, others only for fits.
            return 1.0
        return self.share_of_score(epsilon)

    def share_of_score(self, epsilon: float, most: float = _SCORE_SHARES[1]) -> float:
        """Return the share of a fit's epsilon for half of a score's sampling deviation."""
        wanted = _SCORE_NOISE * math.sqrt(self.layout.n_score)
        unit, _ = noise_for_budget(min(max(epsilon, 1e-3), _LARGEST_BUDGET), self.delta)
        return min(max(unit / wanted, _SCORE_SHARES[0]), most)

    # The setting that meets a total -------------------------------------------------------------

    def within(self, epsilon: float | None) -> Cost:
        """Return the cost with the least noise that stays within a total.

        Without a total, each fit keeps the estimator's own budget.
        """
        if epsilon is None:
            return self.at(None)
        if not budget_owners(self.fit_costs.estimator):
            # Raises an error for an estimator that is not private.
            self.fit_costs.first_profile(None, self.final_size)
            raise ValueError(
                "epsilon must be None for an estimator whose noise does not follow from an "
                f"epsilon; got {epsilon:g}. Set the estimator's epsilon instead of a noise "
                "parameter, or keep its noise: the search then reports the total."
            )
        parameter = self.fit_costs.noise_parameter(self.final_size)
        if parameter is not None:
            return self._solved_noise(epsilon, NoiseSetting(*parameter, 1.0, epsilon, self.delta))
        if self.delta > 0.0 and self.fit_costs.can_share_a_curve(
            self._curve(self._shift_guess(epsilon)), self.final_size
        ):
            few = self.fit_costs.few(self.final_size)
            return self._cheaper(epsilon, few) if few else self._shared(epsilon)
        return self._solved_budget(epsilon)

    def _cheaper(self, epsilon: float, few: list[dict[str, Any]]) -> Cost:
        """Return the exact cost of few candidates, or that of one curve, with less noise."""
        exact = self._solved_budget(epsilon)
        try:
            shared = self._shared(epsilon)
            is_cheaper = self._mean_of_logs(shared, few) > self._mean_of_logs(exact, few)
        except UnreachableBudgetError:
            return exact
        return shared if is_cheaper else exact

    def _shared(self, epsilon: float) -> Cost:
        """Return the cost of one curve of all candidates that stays within a total."""
        costliest = self.fit_costs.costliest(self._stated_size)
        if costliest is None:
            # Theorem T4. No fit is costed: each candidate is calibrated to the curve separately.
            return self._solved(
                epsilon,
                lambda shift: self.at(self._curve(shift)),
                parameter="budget",
                lower=_LEAST_SHIFT,
                upper=_LARGEST_SHIFT,
                guess=self._shift_guess(epsilon),
            )
        setting = NoiseSetting(*costliest[1:], 1.0, epsilon, self.delta)
        return self._solved_noise(epsilon, setting, costliest[0])

    def _mean_of_logs(self, cost: Cost, candidates: list[dict[str, Any]]) -> float:
        """Return the mean logarithm of the epsilon of the candidates' fits."""
        size = self._stated_size
        found = (self.fit_costs.profile_of(each, cost.setting, size) for each in candidates)
        least = sys.float_info.min
        logs = [math.log(max(fit.epsilon(self.delta), least)) for fit in found]
        return sum(logs) / len(logs)

    def loss(self, cost: Cost) -> float:
        """Return the share of epsilon that the shared curve, if any, loses.

        Compared with the same search whose candidates are all like the first one.
        """
        if not isinstance(cost.setting, CurveSetting):
            return 0.0
        alone = self._of_fits(self.fit_costs.first_profile, cost.setting).total
        return 1.0 - alone.epsilon(self.delta) / cost.total.epsilon(self.delta)

    def check(self, cost: Cost) -> None:
        """Raise unless the fits of all candidates can be costed at the setting that was found."""
        fits = [(cost.run_setting, self.train_size)] if self.releases_runs else []
        if self.layout.final or not self.releases_runs:
            fits.append((cost.setting, self.final_size))
        self.fit_costs.check_spaces(fits)

    def guess(self, epsilon: float) -> BudgetSetting:
        """Return an estimate of the epsilon of each fit within a total."""
        most = self.layout.tuning is not None or self.fit_noise is not None
        return BudgetSetting(epsilon * (0.95 if most else 0.4), self.delta)

    def _solved_noise(
        self, epsilon: float, setting: NoiseSetting, shape: dict[str, Any] | None = None
    ) -> Cost:
        """Return the cost of the least noise that stays within a total.

        Each evaluation computes one profile of a fit: no estimator solves for anything. If a
        candidate is given as shape, that is its profile, which is the curve of all candidates
        (Theorem T4). They are calibrated later.
        """

        def cost_at(noise: float) -> Cost:
            tried = self._at_noise(setting, noise, shape)
            return self.at(tried if shape is None else self._shaped(tried, 1))

        guess = self._noise_guess(epsilon, setting, shape)
        return self._solved(
            epsilon, cost_at, lower=_LEAST_NOISE, upper=_LARGEST_NOISE, guess=guess, stride=_STRIDE
        )

    def _solved(self, epsilon: float, cost_at: Callable[[float], Cost], **search: Any) -> Cost:
        """Return the cost at the value that meets a total."""
        cost = functools.cache(cost_at)
        found = calibrate(
            lambda value: cost(value).total, epsilon, self.delta, tolerance=_TOLERANCE, **search
        )
        return cost(found.value)

    def _at_noise(
        self, setting: NoiseSetting, noise: float, candidate: dict[str, Any] | None
    ) -> NoiseSetting:
        """Return the setting at another noise, with its cost for a candidate or for all."""
        tried, size = replace(setting, noise=noise), self._stated_size
        if candidate is None:
            fit = self.fit_costs.profile(tried, size)
        else:
            fit = self.fit_costs.profile_of(candidate, tried, size)
        return replace(tried, epsilon=fit.epsilon(self.delta))

    def _shaped(self, setting: NoiseSetting, n_fits: int) -> CurveSetting:
        """Return the setting for the curve of the costliest candidate at a noise."""
        size = self._stated_size
        costliest = self.fit_costs.costliest(size) or ({},)
        shape = self.fit_costs.profile_of(costliest[0], setting, size)
        curve = SharedCurve.of(shape, self._failure / n_fits)
        return CurveSetting(curve, self.delta, setting)

    def _noise_guess(
        self, epsilon: float, setting: NoiseSetting, candidate: dict[str, Any] | None
    ) -> float:
        """Return roughly the noise with which one fit costs its share of a total."""
        # A share of the smallest doubles is zero.
        wanted = max(self.guess(epsilon).epsilon, sys.float_info.min)
        noise = _USUAL_NOISE
        for _ in range(_GUESSES):
            # For large noise, epsilon falls in proportion to it; for small noise, as the shift of
            # a sampled release does.
            cost = self._at_noise(setting, noise, candidate).epsilon
            ratio = min(max(cost / wanted, 1e-3), 1e3)
            rise = math.log1p(math.expm1(noise**-2) / ratio**2)
            noise = min(max(rise**-0.5, _LEAST_NOISE), _LARGEST_NOISE)
        return noise

    def rough_setting(self, epsilon: float) -> FitSetting:
        """Estimate the epsilon of each fit within a total, without using the estimator."""
        if self.delta == 0.0:
            return self.guess(epsilon)
        return self._curve(self._shift_guess(epsilon))

    def _curve(self, shift: float) -> CurveSetting:
        return CurveSetting(SharedCurve(shift, self._failure), self.delta)

    @property
    def _failure(self) -> float:
        """Mass at infinity of a curve that candidates share."""
        return min(_FAILURE, self.delta / _FAILURES)

    def _shift_guess(self, epsilon: float) -> float:
        noise, _ = noise_for_budget(self.guess(epsilon).epsilon, self.delta)
        return min(max(1.0 / noise, _LEAST_SHIFT), _LARGEST_SHIFT)

    def _solved_budget(self, epsilon: float) -> Cost:
        """Return the cost of the largest budget of a fit that stays within a total."""
        guess = self.guess(epsilon)

        def largest(cost_at: Callable[[float], Cost]) -> Cost:
            return self._solved(
                epsilon,
                cost_at,
                parameter="budget",
                lower=1e-4 * epsilon,
                upper=_LARGEST_BUDGET,
                guess=guess.epsilon,
            )

        cost_at = functools.cache(lambda budget: self.at(BudgetSetting(budget, self.delta)))
        if not math.isinf(cost_at(guess.epsilon).total.epsilon(self.delta)):
            found = largest(cost_at)
            if found.total.epsilon(self.delta) >= _ENOUGH * epsilon:
                return found
        # A guarantee at a single delta uses up this delta, so rounding decides whether it fits.
        return largest(lambda budget: self.at(BudgetSetting(budget, self._delta_of_many())))

    def _delta_of_many(self) -> float:
        """Return a delta for fits whose guarantee is known at one delta only, and adds up.

        Noise with a known privacy curve costs no more if it is stated at a large delta. Fits are
        therefore calibrated at the search's own delta if possible.
        """
        share = self.select(PrivacyProfile.approximate(0.0, 1e-6)).delta(0.0) / 1e-6
        steps = len(budget_owners(self.fit_costs.estimator))
        fits = max(self.layout.folds - 1, 1) * max(share, 1.0) + 1.0
        return self.delta / (4.0 * max(steps, 1) * fits)

    # The report -----------------------------------------------------------------------------

    def components(self, cost: Cost) -> tuple[PrivacyReport, ...]:
        """Return the parts of the report's tree: the selection with its run, and the final fit."""
        layout, notes = self.layout, [self.note]
        if layout.tuning is not None:
            notes.append(f"on {layout.tuning:.3g} of the records")
        if layout.by_rule:
            notes.append("validation by a public rule")
        selection = PrivacyReport(
            self.selection(cost),
            self.delta,
            name="selection",
            note=", ".join(notes),
            bound=self.bound,
            parts=self._components_of_run(cost) if self.releases_runs else (),
        )
        if cost.final is None:
            return (selection,)
        share = layout.final_share
        note = "on all records" if share == 1.0 else f"on {share:.3g} of the records"
        final = self._of_some(cost.final, share)
        return selection, PrivacyReport(final, self.delta, name="final fit", note=note)

    def _components_of_run(self, cost: Cost) -> list[PrivacyReport]:
        folds = self.layout.folds
        note = f"{folds - 1} of {folds} folds see a record" if folds else ""
        fit, share = self._of_a_tuning_record(cost.fit), self.layout.validation
        # A record is in one part of the split: neither part of a run costs more than the run.
        of_fit = self._of_some(fit, 1.0 - share)
        of_run = [PrivacyReport(of_fit, self.delta, name="fit", note=note)]
        if cost.score_noise.kind != "none":
            of_run.append(self._component_of_score(cost.score_noise))
        run = self.run(fit, cost.score_noise)
        if share > 0.0 and not self.layout.by_rule:
            run = mixture([cost.score_noise.profile, fit], [share, 1.0 - share])
        return [PrivacyReport(run, self.delta, name="one run", parts=of_run)]

    def _component_of_score(self, noise: ScoreNoise) -> PrivacyReport:
        share = self.layout.validation or 1.0
        profile = self._of_some(noise.profile, share)
        if noise.n_metrics == 1:
            return PrivacyReport(profile, self.delta, name="score")
        one = self._of_some(noise.of_one, share)
        parts = [PrivacyReport(one, self.delta, name=name) for name in self.metrics]
        note = f"by {noise.n_metrics} metrics"
        return PrivacyReport(profile, self.delta, name="scores", note=note, parts=parts)

    def _of_some(self, profile: PrivacyProfile, share: float) -> PrivacyProfile:
        """Return the cost of a release that reads a secret random share of the records."""
        # Theorem P7: the split is drawn record by record, and is not shown. It is about adding or
        # removing a record.
        is_whole = self.layout.by_rule or self.layout.replaces
        return profile if is_whole else profile.subsampled(share)

    def selection(self, cost: Cost) -> PrivacyProfile:
        """Return the cost of the selection without the rest, for any record.

        With a tuning fraction, a record is rarely among those that tuning uses (Theorem P7).
        """
        trained = self._of_a_tuning_record(cost.trained)
        if cost.scored is None:
            return trained
        if self.layout.by_rule:
            return cost.scored | trained
        share = self.layout.validation
        return mixture([cost.scored, trained], [share, 1.0 - share])

    def _of_a_tuning_record(self, profile: PrivacyProfile) -> PrivacyProfile:
        """Return the cost of a release on the tuning part, for a record that may be in it."""
        if self.layout.tuning is None:
            return profile
        # Theorem T3: the share of the records that are not held out for scoring.
        outside = 1.0 - self.layout.validation
        return profile.subsampled(min(self.layout.tuning / outside, 1.0))


def _selected(
    model: CostModel, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
) -> tuple[PrivacyProfile, PrivacyProfile | None]:
    """Return the selection by `select`, for training records and for scoring records."""
    # Theorem F1: training records and scoring records are charged separately.
    if model.layout.validation > 0.0:
        return model.select(fit), model.select(noise.profile)
    return model.select(model.run(fit, noise)), None


def untuned_model(model: CostModel) -> CostModel:
    """Return the cost model of one fit on all records, without a search."""
    layout = replace(model.layout, validation=0.0, folds=0, public=True, tuning=None, final=False)
    layout = replace(layout, by_rule=False)
    return CostModel(layout, model.fit_costs, model.delta)


def own_delta(estimator: Parametrized) -> float:
    """Return the largest delta of an estimator's private steps."""
    owners = budget_owners(estimator)
    deltas = [owner.delta for owner in owners if owner.delta]
    return max(deltas, default=0.0 if owners else DEFAULT_DELTA)
