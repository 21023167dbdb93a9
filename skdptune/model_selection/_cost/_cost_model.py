"""What a whole search costs at a given setting of its fits, and the setting that meets a total."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from skdptune._formatting import shown
from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    PrivacyReport,
    RunCountDistribution,
    SharedCurve,
    TruncatedNegativeBinomial,
    calibrate,
    check_distribution,
    mixture,
    search_on_split,
)
from skdptune.base import DEFAULT_DELTA, budget_owners
from skdptune.base.protocol import Parametrized
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._fit_costs import (
    BudgetSetting,
    CurveSetting,
    FitCosts,
    FitSetting,
    FitSize,
    NoiseSetting,
)
from skdptune.model_selection._cost._layout import Layout

_MOST_RUNS = 1e9


def _binomial(mean: float) -> RunCountDistribution:
    # Half of the trials run, which spreads less than Poisson, and costs more.
    return Binomial.from_mean(mean, max(1, math.ceil(2.0 * mean)))


_MAKERS: dict[str, Callable[[float], RunCountDistribution]] = {
    "geometric": Geometric.from_mean,
    "logarithmic": Logarithmic.from_mean,
    "negative_binomial": lambda mean: TruncatedNegativeBinomial.from_mean(mean, 0.5),
    # Rarely makes few runs, for little more.
    "concentrated": lambda mean: TruncatedNegativeBinomial.from_mean(mean, 3.0),
    "poisson": Poisson.from_mean,
    "binomial": _binomial,
}
# Those among which "auto" picks: the others never cost less for the same mean.
_CHOICE = ("geometric", "logarithmic", "negative_binomial", "concentrated", "poisson")
DISTRIBUTIONS = ("auto", *_MAKERS)


def candidate_distributions(
    n_iter_distribution: str | RunCountDistribution,
    n_iter: float,
    at_least: tuple[int, float] | None,
) -> list[RunCountDistribution]:
    """Return the distributions that a search may use; it takes the cheapest.

    Parameters
    ----------
    n_iter_distribution : str or RunCountDistribution
        A name, "auto" for several, or the distribution itself.
    n_iter : float
        Mean number of runs.
    at_least : tuple of int and float, or None
        ``(k, chance)``: instead of the mean, ask for at least k runs with that chance.
    """
    if isinstance(n_iter_distribution, RunCountDistribution):
        return [check_distribution(n_iter_distribution)]
    check_option(n_iter_distribution, name="n_iter_distribution", options=DISTRIBUTIONS)
    names = _CHOICE if n_iter_distribution == "auto" else (n_iter_distribution,)
    if at_least is not None:
        count, chance = _checked_wish(at_least)
        made = [_distribution_of_chance(_MAKERS[name], count, chance) for name in names]
        # Some make few runs too often, whatever their mean.
        found = [each for each in made if each is not None]
        if not found:
            raise ValueError(
                "at_least must be attainable with n_iter_distribution="
                f"{shown(n_iter_distribution)}; got {shown((count, chance))}. "
                "n_iter_distribution='poisson' rarely makes few runs."
            )
        return found
    mean = check_real(n_iter, name="n_iter", lower=1.0, upper=_MOST_RUNS)
    if mean == 1.0:
        return [Binomial(1, 1.0)]
    return [_MAKERS[name](mean) for name in names]


def _checked_wish(at_least: tuple[int, float]) -> tuple[int, float]:
    try:
        count, chance = at_least
    except (TypeError, ValueError):
        raise ValueError(
            f"at_least must be (number of runs, chance); got {shown(at_least)}."
        ) from None
    check_integer(count, name="at_least[0]", lower=1)
    return count, check_real(
        chance, name="at_least[1]", lower=0.0, upper=1.0, lower_open=True, upper_open=True
    )


def _distribution_of_chance(
    make: Callable[[float], RunCountDistribution], count: int, chance: float
) -> RunCountDistribution | None:
    """Return the distribution of least mean with at least `count` runs at the wanted chance.

    None where no mean is enough.
    """

    def is_enough(mean: float) -> bool:
        return 1.0 - make(mean).probability_at_most(count - 1) >= chance

    low, high = 1.0 + 1e-9, 2.0
    while not is_enough(high):
        low, high = high, 2.0 * high
        if high > _MOST_RUNS:
            return None
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return make(high)


def runs_at_most(n_iter_distribution: RunCountDistribution, chance: float) -> int:
    """Return the least number of runs that is not exceeded with the given chance."""
    high = 1
    while n_iter_distribution.probability_at_most(high) < chance:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if n_iter_distribution.probability_at_most(middle) >= chance
            else (middle, high)
        )
    return high


@dataclass(frozen=True)
class Plan:
    """All that is decided before the data are read.

    Attributes
    ----------
    candidates : Candidates
    model : CostModel
    cost : Cost
        The cost of everything, at the setting that meets the budget.
    components : tuple of PrivacyReport
        Of the report's tree.
    asked : float or None
        The total epsilon that the user gave.
    advice : str
        Why a search of a suggested space cannot be expected to help; empty if it can.
    declined : Plan or None
        The search that is not made, where the estimator is fitted once, as it is, instead.
    """

    candidates: Candidates
    model: CostModel
    cost: Cost
    components: tuple[PrivacyReport, ...]
    asked: float | None
    advice: str = ""
    declined: Plan | None = None

    @property
    def layout(self) -> Layout:
        """How the records are divided."""
        return self.model.layout

    @property
    def delta(self) -> float:
        """At which the total is stated."""
        return self.model.delta

    @property
    def total(self) -> PrivacyProfile:
        """What everything costs that the fitted search shows."""
        return self.cost.total

    def with_classes(self, classes: Any) -> Plan:
        """Return the same plan with estimators that are given the label set."""
        fit_costs = replace(self.model.fit_costs, classes=classes)
        return replace(self, model=replace(self.model, fit_costs=fit_costs))

    @cached_property
    def calibration_in_words(self) -> str:
        """How the noise of the fits was found, and what that loses; empty if it is given.

        Whether candidates differ in what sets their cost decides.
        """
        setting = self.cost.setting
        if isinstance(setting, NoiseSetting):
            return "One noise for all candidates, from the exact cost of the search."
        if isinstance(setting, CurveSetting):
            return (
                "Each candidate's own noise, so that its cost stays below one curve for all; this "
                f"uses {max(self.model.loss(self.cost), 0.0):.1%} of ε."
            )
        if setting is None:
            return ""
        if self.model.fit_costs.is_held_to_budget:
            return (
                "Each candidate's own noise for the ε of a fit; where their costs differ, the "
                "worst cost of such a fit is assumed."
            )
        return "Each candidate's own noise for the ε of a fit, from the exact cost of the search."

    def noise_of_final(self) -> float | None:
        """Return the noise of the returned model's fit, if the estimator has a `noise_level`."""
        model = self.model
        size = model.final_size if self.layout.final else model.train_size
        made = model.fit_costs.configured({}, self.cost.setting, size)
        level = getattr(made, "noise_level", None)
        return None if level is None else float(level(size.n_samples, size.n_features))


ProfileOfFit = Callable[[FitSetting | None, FitSize], PrivacyProfile]

# Share of the total epsilon that may be left; a finer solution is not worth its time.
_TOLERANCE = 4e-3
# A solution that uses less than this share of it has failed.
_ENOUGH = 0.95
_LARGEST_BUDGET = 500.0
_LEAST_NOISE, _LARGEST_NOISE = 0.05, 1e6
# Mass at infinity of a shared curve: this much, or this share of delta if that is less.
_FAILURE, _FAILURES = 1e-7, 100.0
_LEAST_SHIFT, _LARGEST_SHIFT = 1e-4, 30.0
# Where the search for a noise starts, and how often that is improved by one fit alone.
_USUAL_NOISE, _GUESSES = 2.0, 2
# Smaller chances count as none, like the tails of all profiles.
_NEVER = 1e-16
# With a tuning fraction the scores cost extra; this much of a fit's epsilon at least, and at most.
_SCORE_SHARES = (0.03, 0.2)
_FOLDS_SHARE = 0.25
# Wanted noise of a score, in units of half the range over the root of the number of records.
_SCORE_NOISE = 0.5


@dataclass(frozen=True)
class ScoreNoise:
    """The noise on a score.

    Attributes
    ----------
    ratio : float
        Its scale in units of the score's sensitivity; 0 for none.
    kind : {"gaussian", "laplace", "none"}
        "none" for public validation data.
    profile : PrivacyProfile
        What a score costs.
    """

    ratio: float
    kind: str
    profile: PrivacyProfile


NO_NOISE = ScoreNoise(0.0, "none", PrivacyProfile.pure(0.0))


@dataclass(frozen=True)
class Cost:
    """What a search costs, and what it is made of.

    Attributes
    ----------
    total : PrivacyProfile
        Everything together.
    fit : PrivacyProfile
        One fit of a run.
    trained, scored : PrivacyProfile
        The selection, as seen by records that train and by those that are scored on (None if
        none are held out for that).
    final : PrivacyProfile or None
        The final fit.
    score_noise : ScoreNoise
        The noise on each score.
    setting : FitSetting or None
        What the returned model's fit is set to, if the search sets it.
    run_setting : FitSetting or None
        What the fits of the runs are set to; the same, unless the search says otherwise.
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
        """What one fit may cost at the search's delta, if the search sets it."""
        return None if self.setting is None else self.setting.epsilon


@dataclass(frozen=True)
class CostModel:
    """The cost of a search as a function of what its fits are set to.

    Parameters
    ----------
    layout : Layout
        How the records are divided.
    fit_costs : FitCosts
        Costs of fits.
    select : callable
        From the profile of one run to that of the selection.
    delta : float
        At which figures are stated.
    score_epsilon : float or None
        What a score may cost; None lets the search choose.
    note, bound : str
        Words for the report.
    tuning_bound : {"profile", "rdp"}
        See `skdptune.accounting.tune_then_fit`.
    n_iter_distribution : RunCountDistribution, optional
        Of the number of runs, where that is random.

    Notes
    -----
    Theorem F0.
    """

    layout: Layout
    fit_costs: FitCosts
    select: Callable[[PrivacyProfile], PrivacyProfile]
    delta: float
    score_epsilon: float | None = None
    note: str = ""
    bound: str | None = None
    tuning_bound: str = "profile"
    n_iter_distribution: RunCountDistribution | None = None

    # The cost at a setting ----------------------------------------------------------------------

    def at(self, setting: FitSetting | None) -> Cost:
        """Return the cost at a setting of all fits, None for what the estimator itself says."""
        return self._of_fits(self.fit_costs.profile, setting)

    def _of_fits(self, profile_of: ProfileOfFit, setting: FitSetting | None) -> Cost:
        layout, of_runs = self.layout, self.setting_of_runs(setting)
        fit = profile_of(of_runs, self.train_size)
        noise = self._score_noise(fit, setting)
        final = profile_of(setting, self.final_size) if layout.final else None
        trained, scored = self.selections(fit, noise, of_runs)
        total = search_on_split(
            trained,
            scored,
            final,
            validation_fraction=layout.validation,
            tuning_fraction=layout.tuning,
            variant=layout.variant,
            bound=self.tuning_bound if final is not None else "profile",
        )
        if layout.chance_of_nothing > _NEVER:
            total = total + PrivacyProfile.approximate(0.0, min(layout.chance_of_nothing, 1.0))
        return Cost(total, fit, trained, scored, final, noise, setting, of_runs)

    def setting_of_runs(self, setting: FitSetting | None) -> FitSetting | None:
        """Return what the fits of the runs are set to, beside a setting of the final fit."""
        return setting

    def selections(
        self, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
    ) -> tuple[PrivacyProfile, PrivacyProfile | None]:
        """Return the selection for records that train, and for those that score if others do."""
        # Theorem F1.
        if self.layout.validation > 0.0:
            return self.select(fit), self.select(noise.profile)
        return self.select(self._run(fit, noise)), None

    def _run(self, fit: PrivacyProfile, noise: ScoreNoise) -> PrivacyProfile:
        """Return what a whole run costs: its fits and its score."""
        if self.layout.validation > 0.0:
            return fit | noise.profile
        run = fit * max(self.layout.folds - 1, 1)
        return run if noise.kind == "none" else run + noise.profile

    @property
    def train_size(self) -> FitSize:
        """The records of one fit of a run."""
        layout = self.layout
        return FitSize(layout.n_train, layout.n_final, layout.n_features, layout.train_is_random)

    @property
    def _stated_size(self) -> FitSize:
        """The records of the fit whose cost is stated as that of one fit."""
        return self.train_size

    @property
    def final_size(self) -> FitSize:
        """The records of the final fit."""
        layout = self.layout
        return FitSize(layout.n_final, layout.n_final, layout.n_features, layout.final_is_random)

    def _score_noise(self, fit: PrivacyProfile, setting: FitSetting | None) -> ScoreNoise:
        if self.layout.public:
            return NO_NOISE
        epsilon = self.score_epsilon
        if epsilon is None:
            of_fit = fit.epsilon(self.delta) if setting is None else setting.epsilon
            epsilon = of_fit * self._score_share(of_fit)
        if not 0.0 < epsilon < math.inf:
            # A fit that costs nothing or everything does not say what a score may cost.
            epsilon = 1.0
        ratio, profile = noise_for_budget(min(epsilon, _LARGEST_BUDGET), self.delta)
        return ScoreNoise(ratio, "gaussian" if self.delta > 0.0 else "laplace", profile)

    def _score_share(self, epsilon: float) -> float:
        """Return a score's share of a fit's epsilon, from public numbers."""
        if self.layout.folds:
            return _FOLDS_SHARE
        if self.layout.tuning is None:
            # Validation records are charged for scores alone, others for fits alone.
            return 1.0
        wanted = _SCORE_NOISE * math.sqrt(self.layout.n_score)
        unit, _ = noise_for_budget(min(max(epsilon, 1e-3), _LARGEST_BUDGET), self.delta)
        low, high = _SCORE_SHARES
        return min(max(unit / wanted, low), high)

    # The setting that meets a total -------------------------------------------------------------

    def within(self, epsilon: float | None) -> Cost:
        """Return the cost with the least noise that keeps within a total.

        Without a total, each fit keeps the estimator's own budget.
        """
        if epsilon is None:
            return self.at(None)
        if not budget_owners(self.fit_costs.estimator):
            # Reports what is not private at all.
            self.fit_costs.first_profile(None, self.final_size)
            raise ValueError(
                "epsilon must be None for an estimator whose noise no epsilon sets; got "
                f"{epsilon:g}. Give the estimator epsilon instead of a noise parameter, or leave "
                "its own noise and let the search report the total."
            )
        parameter = self.fit_costs.noise_parameter(self.final_size)
        if parameter is not None:
            return self._solved_noise(epsilon, *parameter)
        if self.delta > 0.0 and self.fit_costs.can_share_a_curve(
            self._curve(self._shift_guess(epsilon)), self.final_size
        ):
            return self._solved_curve(epsilon)
        return self._solved_budget(epsilon)

    def loss(self, cost: Cost) -> float:
        """Return the share of epsilon that the shared curve, if there is one, loses.

        Beside what the same search costs if all its candidates are like the first one.
        """
        if not isinstance(cost.setting, CurveSetting):
            return 0.0
        alone = self._of_fits(self.fit_costs.first_profile, cost.setting).total
        return 1.0 - alone.epsilon(self.delta) / cost.total.epsilon(self.delta)

    def check(self, cost: Cost) -> None:
        """Raise unless the fits of all candidates can be costed at the setting that was found."""
        self.fit_costs.check_spaces(cost.run_setting, self.train_size)
        if self.layout.final:
            self.fit_costs.check_spaces(cost.setting, self.final_size)

    def guess(self, epsilon: float) -> BudgetSetting:
        """Return about what each fit may cost of a total."""
        share = 0.95 if self.layout.tuning is not None else 0.4
        return BudgetSetting(epsilon * share, self.delta)

    def _solved_noise(self, epsilon: float, prefix: str, name: str) -> Cost:
        """Return the cost of the least noise that keeps within a total.

        Each evaluation costs one profile of a fit: no estimator solves for anything.
        """
        setting = NoiseSetting(prefix, name, 1.0, epsilon, self.delta)
        costs: dict[float, Cost] = {}

        def total(noise: float) -> PrivacyProfile:
            tried = replace(setting, noise=noise)
            fit = self.fit_costs.profile(tried, self._stated_size)
            costs[noise] = self.at(replace(tried, epsilon=fit.epsilon(self.delta)))
            return costs[noise].total

        found = calibrate(
            total,
            epsilon,
            self.delta,
            lower=_LEAST_NOISE,
            upper=_LARGEST_NOISE,
            guess=self._noise_guess(epsilon, setting),
            tolerance=_TOLERANCE,
        )
        return costs[found.value]

    def _noise_guess(self, epsilon: float, setting: NoiseSetting) -> float:
        """Return roughly the noise with which one fit alone costs its share of a total."""
        # A share of the least doubles is none.
        wanted = max(self.guess(epsilon).epsilon, sys.float_info.min)
        noise = _USUAL_NOISE
        for _ in range(_GUESSES):
            fit = self.fit_costs.profile(replace(setting, noise=noise), self._stated_size)
            # Where noise is large, epsilon falls in proportion to it.
            ratio = min(max(fit.epsilon(self.delta) / wanted, 0.1), 10.0)
            noise = min(max(noise * ratio, _LEAST_NOISE), _LARGEST_NOISE)
        return noise

    def _solved_curve(self, epsilon: float) -> Cost:
        """Return the cost of the highest curve of all fits that keeps within a total.

        Theorem T4. No fit is costed here: each candidate is calibrated to the curve by itself.
        """
        costs: dict[float, Cost] = {}

        def total(shift: float) -> PrivacyProfile:
            costs[shift] = self.at(self._curve(shift))
            return costs[shift].total

        found = calibrate(
            total,
            epsilon,
            self.delta,
            parameter="budget",
            lower=_LEAST_SHIFT,
            upper=_LARGEST_SHIFT,
            guess=self._shift_guess(epsilon),
            tolerance=_TOLERANCE,
        )
        return costs[found.value]

    def rough_setting(self, epsilon: float) -> FitSetting:
        """Return about what each fit may cost of a total, costed without the estimator."""
        if self.delta == 0.0:
            return self.guess(epsilon)
        return self._curve(self._shift_guess(epsilon))

    def _curve(self, shift: float) -> CurveSetting:
        failure = min(_FAILURE, self.delta / _FAILURES)
        return CurveSetting(SharedCurve(shift, failure), self.delta)

    def _shift_guess(self, epsilon: float) -> float:
        noise, _ = noise_for_budget(self.guess(epsilon).epsilon, self.delta)
        return min(max(1.0 / noise, _LEAST_SHIFT), _LARGEST_SHIFT)

    def _solved_budget(self, epsilon: float) -> Cost:
        """Return the cost of the largest budget of a fit that keeps within a total."""
        guess = self.guess(epsilon)
        first = self.at(guess)
        if math.isinf(first.total.epsilon(self.delta)):
            return self._largest_budget(epsilon, self._delta_of_many(), {})
        found = self._largest_budget(epsilon, self.delta, {guess.epsilon: first})
        if found.total.epsilon(self.delta) >= _ENOUGH * epsilon:
            return found
        # A guarantee at one delta alone, and all of it used up: now rounding decides what fits.
        return self._largest_budget(epsilon, self._delta_of_many(), {})

    def _largest_budget(self, epsilon: float, delta: float, costs: dict[float, Cost]) -> Cost:
        """Return the cost of the largest budget at a given delta of a fit."""

        def total(budget: float) -> PrivacyProfile:
            if budget not in costs:
                costs[budget] = self.at(BudgetSetting(budget, delta))
            return costs[budget].total

        found = calibrate(
            total,
            epsilon,
            self.delta,
            parameter="budget",
            lower=1e-4 * epsilon,
            upper=_LARGEST_BUDGET,
            guess=self.guess(epsilon).epsilon,
            tolerance=_TOLERANCE,
        )
        if found.value not in costs:
            return self.at(BudgetSetting(found.value, delta))
        return costs[found.value]

    def _delta_of_many(self) -> float:
        """Return a delta for fits whose guarantee is known at one delta alone, and adds up.

        Noise whose whole curve is known costs no more for being stated at a large delta, so that
        fits are calibrated at the search's own delta wherever that can be.
        """
        share = self.select(PrivacyProfile.approximate(0.0, 1e-6)).delta(0.0) / 1e-6
        steps = len(budget_owners(self.fit_costs.estimator))
        fits = max(self.layout.folds - 1, 1) * max(share, 1.0) + 1.0
        return self.delta / (4.0 * max(steps, 1) * fits)

    # The report -----------------------------------------------------------------------------

    def components(self, cost: Cost) -> tuple[PrivacyReport, ...]:
        """Return the components of the report's tree: the selection with its run, the last fit."""
        layout = self.layout
        folds = f"{layout.folds - 1} of {layout.folds} folds see a record" if layout.folds else ""
        of_run = [PrivacyReport(cost.fit, self.delta, name="fit", note=folds)]
        if cost.score_noise.kind != "none":
            of_run.append(PrivacyReport(cost.score_noise.profile, self.delta, name="score"))
        notes = [self.note]
        if layout.tuning is not None:
            notes.append(f"on {layout.tuning:.3g} of the records")
        run = self._run(cost.fit, cost.score_noise)
        selection = PrivacyReport(
            self.selection(cost),
            self.delta,
            name="selection",
            note=", ".join(notes),
            bound=self.bound,
            parts=[PrivacyReport(run, self.delta, name="one run", parts=of_run)],
        )
        if cost.final is None:
            return (selection,)
        note = layout.final_in_words
        return selection, PrivacyReport(cost.final, self.delta, name="final fit", note=note)

    def selection(self, cost: Cost) -> PrivacyProfile:
        """Return what the selection costs by itself, if on all records."""
        if cost.scored is None:
            return cost.trained
        share = self.layout.validation
        return mixture([cost.scored, cost.trained], [share, 1.0 - share])


def untuned_model(model: CostModel) -> CostModel:
    """Return the cost model of one fit on all records, without a search."""
    layout = replace(model.layout, validation=0.0, folds=0, public=True, tuning=None, final=False)
    return CostModel(layout, model.fit_costs, lambda run: run, model.delta)


def own_delta(estimator: Parametrized) -> float:
    """Return the largest delta of an estimator's private steps."""
    owners = budget_owners(estimator)
    deltas = [owner.delta for owner in owners if owner.delta]
    return max(deltas, default=0.0 if owners else DEFAULT_DELTA)


# From epsilon, the number of partitions and of scored records (None if these are public) to the
# cost of a choice, for records that train and for records that score.
ChoiceCost = Callable[[float, int, int | None], tuple[PrivacyProfile, PrivacyProfile]]
# Share of a fit's epsilon that choosing its parameters may cost.
_CHOICE_SHARE = 0.25


def free_choice(
    epsilon: float, n_partitions: int, n_score: int | None
) -> tuple[PrivacyProfile, PrivacyProfile]:
    """Return the cost of a choice that looks at no data."""
    return PrivacyProfile.pure(0.0), PrivacyProfile.pure(0.0)


@dataclass(frozen=True)
class ChoiceCostModel(CostModel):
    """The cost of a choice by utilities on partitions, and of one fit on all records.

    Parameters
    ----------
    choice_epsilon : float
        What the choice may cost.
    choice : callable
        See `ChoiceCost`.
    n_partitions : int
        Number of disjoint partitions.
    """

    choice_epsilon: float = 0.0
    choice: ChoiceCost = free_choice
    n_partitions: int = 0

    def _of_fits(self, profile_of: ProfileOfFit, setting: FitSetting | None) -> Cost:
        layout = self.layout
        fit = profile_of(setting, self.final_size)
        trained, scored = self.choice(self.choice_epsilon, self.n_partitions, self.n_score)
        final = fit if layout.final else None
        total = search_on_split(trained, scored, final, validation_fraction=layout.validation)
        return Cost(total, fit, trained, scored, final, NO_NOISE, setting, setting)

    @property
    def n_score(self) -> int | None:
        """Public constant for the number of records that a score averages; None if public."""
        return None if self.layout.public else self.layout.n_score

    def check(self, cost: Cost) -> None:
        """Raise unless the final fit of every candidate can be costed."""
        self.fit_costs.check_spaces(cost.setting, self.final_size)

    def components(self, cost: Cost) -> tuple[PrivacyReport, ...]:
        """Return the components of the report's tree: the choice and the fit."""
        choice = PrivacyReport(
            self.selection(cost),
            self.delta,
            name="selection",
            note=f"{self.note}, {self.n_partitions} disjoint partitions",
        )
        if cost.final is None:
            return (choice,)
        final = PrivacyReport(cost.final, self.delta, name="final fit", note="on all records")
        return choice, final


def default_choice_epsilon(total: float | None, model: CostModel) -> float:
    """Return what a choice may cost by default: a share of the total, or of the fit."""
    if total is None:
        own = model.fit_costs.profile(None, model.final_size).epsilon(model.delta)
        total = own if 0.0 < own < math.inf else 1.0
    return _CHOICE_SHARE * total
