"""What a whole search costs at a given budget of a fit, and the budget that meets a total."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from skdptune.accounting import (
    PrivacyProfile,
    PrivacyReport,
    RunCountDistribution,
    calibrate,
    mixture,
    search_on_split,
)
from skdptune.base import Budget, budget_owners
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection._cost._fit_costs import FitCosts, FitSize
from skdptune.model_selection._cost._layout import Layout

# Share of the total epsilon that may be left unspent; a finer solution is not worth its time.
_TOLERANCE = 4e-3
# A solution that spends less than this share of it has failed.
_ENOUGH = 0.95
_LARGEST_BUDGET = 500.0
# Chances below this are not told from none, like the tails of all profiles.
_NEVER = 1e-16
_USUAL_DELTA = 1e-5
# With a tuning fraction the scores cost extra; this much of a fit's epsilon at least, and at most.
_SCORE_SHARES = (0.03, 0.05)
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
    fit, run : PrivacyProfile
        One fit of a run, and a whole run: its fits and its score.
    trained, scored : PrivacyProfile
        The selection, as seen by records that train and by those that are scored on (None if
        none are kept for that).
    final : PrivacyProfile or None
        The final fit.
    score_noise : ScoreNoise
        The noise on each score.
    budget : Budget or None
        What each fit may spend, if the search sets it.
    """

    total: PrivacyProfile
    fit: PrivacyProfile
    run: PrivacyProfile
    trained: PrivacyProfile
    scored: PrivacyProfile | None
    final: PrivacyProfile | None
    score_noise: ScoreNoise
    budget: Budget | None


@dataclass(frozen=True)
class CostModel:
    """The price of a search as a function of what a fit may spend.

    Parameters
    ----------
    layout : Layout
        Parts of the data.
    prices : FitCosts
        Prices of fits.
    select : callable
        From the profile of one run to that of the selection.
    delta : float
        At which figures are stated.
    score_epsilon : float or None
        What a score may spend; None lets the search choose.
    note, bound : str
        Words for the report.
    tuning_bound : {"profile", "rdp"}
        See `skdptune.accounting.tune_then_fit`.
    law : RunCountDistribution, optional
        Of the number of runs, where that is random.
    """

    layout: Layout
    fit_costs: FitCosts
    select: Callable[[PrivacyProfile], PrivacyProfile]
    delta: float
    score_epsilon: float | None
    note: str
    bound: str | None
    tuning_bound: str = "profile"
    n_iter_distribution: RunCountDistribution | None = None

    def at(self, budget: Budget | None) -> Cost:
        """Return the cost where each fit may spend `budget`, or what the estimator says."""
        layout = self.layout
        fit = self.fit_costs.profile(budget, self.train_size)
        noise = self._score_noise(fit, budget)
        final = self.fit_costs.profile(budget, self.final_size) if layout.final else None
        run, trained, scored = self.selections(fit, noise, budget)
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
        return Cost(total, fit, run, trained, scored, final, noise, budget)

    def selections(
        self, fit: PrivacyProfile, noise: ScoreNoise, budget: Budget | None
    ) -> tuple[PrivacyProfile, PrivacyProfile, PrivacyProfile | None]:
        """Return a run, and the selection for records that train and for those that score."""
        if self.layout.validation > 0.0:
            return fit | noise.profile, self.select(fit), self.select(noise.profile)
        run = fit * max(self.layout.folds - 1, 1)
        run = run if noise.kind == "none" else run + noise.profile
        return run, self.select(run), None

    @property
    def train_size(self) -> FitSize:
        """The records of one fit of a run."""
        layout = self.layout
        return FitSize(layout.n_train, layout.n_final, layout.n_features, layout.train_is_random)

    @property
    def final_size(self) -> FitSize:
        """The records of the final fit."""
        layout = self.layout
        return FitSize(layout.n_final, layout.n_final, layout.n_features, layout.final_is_random)

    def _score_noise(self, fit: PrivacyProfile, budget: Budget | None) -> ScoreNoise:
        if self.layout.public:
            return NO_NOISE
        epsilon = self.score_epsilon
        if epsilon is None:
            spent = budget.epsilon if budget is not None else fit.epsilon(self.delta)
            epsilon = spent * self._score_share(spent)
        if not 0.0 < epsilon < math.inf:
            # A fit that costs nothing or everything says nothing of what a score may cost.
            epsilon = 1.0
        ratio, profile = noise_for_budget(min(epsilon, _LARGEST_BUDGET), self.delta)
        return ScoreNoise(ratio, "gaussian" if self.delta > 0.0 else "laplace", profile)

    def _score_share(self, epsilon: float) -> float:
        """Return a score's part of a fit's epsilon, from public numbers."""
        if self.layout.folds:
            return _FOLDS_SHARE
        if self.layout.tuning is None:
            # Validation records pay for scores alone, others for fits alone: the worse counts.
            return 1.0
        wanted = _SCORE_NOISE * math.sqrt(self.layout.n_score)
        unit, _ = noise_for_budget(min(max(epsilon, 1e-3), _LARGEST_BUDGET), self.delta)
        low, high = _SCORE_SHARES
        return min(max(unit / wanted, low), high)

    def parts_of(self, cost: Cost) -> tuple[PrivacyReport, ...]:
        """Return the parts of the report's tree: the selection with its run, the final fit."""
        layout = self.layout
        folds = f"{layout.folds - 1} of {layout.folds} folds see a record" if layout.folds else ""
        of_run = [PrivacyReport(cost.fit, self.delta, name="fit", note=folds)]
        if cost.score_noise.kind != "none":
            of_run.append(PrivacyReport(cost.score_noise.profile, self.delta, name="score"))
        notes = [self.note]
        if layout.tuning is not None:
            notes.append(f"on {layout.tuning:.3g} of the records")
        selection = PrivacyReport(
            self.selection_of(cost),
            self.delta,
            name="selection",
            note=", ".join(notes),
            bound=self.bound,
            parts=[PrivacyReport(cost.run, self.delta, name="one run", parts=of_run)],
        )
        if cost.final is None:
            return (selection,)
        note = f"on {layout.final_share:.3g} of the records"
        return selection, PrivacyReport(cost.final, self.delta, name="final fit", note=note)

    def selection_of(self, cost: Cost) -> PrivacyProfile:
        """Return what the selection costs by itself, if on all records."""
        if cost.scored is None:
            return cost.trained
        share = self.layout.validation
        return mixture([cost.scored, cost.trained], [share, 1.0 - share])

    def within(self, epsilon: float | None) -> Cost:
        """Return the cost within a total, or with the estimator's own budgets if there is none."""
        return self.at(None) if epsilon is None else self.solved(epsilon)

    def guess(self, epsilon: float) -> Budget:
        """Return about what each fit may spend of a total."""
        return Budget(epsilon * (0.95 if self.layout.tuning is not None else 0.4), self.delta)

    def solved(self, epsilon: float) -> Cost:
        """Return the cost with the largest budget of a fit that keeps within a total."""
        if not budget_owners(self.fit_costs.estimator):
            raise ValueError(
                "epsilon must be None for an estimator whose noise no epsilon sets; got "
                f"{epsilon:g}. Give the estimator epsilon instead of a noise parameter, or leave "
                "its own noise and let the search report the total."
            )
        guess = self.guess(epsilon)
        first = self.at(guess)
        if math.isinf(first.total.epsilon(self.delta)):
            return self._solved(epsilon, self._delta_of_many(), {})
        found = self._solved(epsilon, self.delta, {guess.epsilon: first})
        if found.total.epsilon(self.delta) >= _ENOUGH * epsilon:
            return found
        # A guarantee at one delta alone, and all of it used up: now rounding decides what fits.
        return self._solved(epsilon, self._delta_of_many(), {})

    def _solved(self, epsilon: float, delta: float, costs: dict[float, Cost]) -> Cost:
        """Return the cost of the largest budget at a given delta of a fit."""

        def total(part: float) -> PrivacyProfile:
            if part not in costs:
                costs[part] = self.at(Budget(part, delta))
            return costs[part].total

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
        return costs[found.value] if found.value in costs else self.at(Budget(found.value, delta))

    def _delta_of_many(self) -> float:
        """Return a delta for fits whose guarantee is known at one delta alone, and adds up.

        Noise whose whole curve is known costs no more for being stated at a large delta, so that
        fits are calibrated at the search's own delta wherever that can be.
        """
        share = self.select(PrivacyProfile.approximate(0.0, 1e-6)).delta(0.0) / 1e-6
        steps = len(budget_owners(self.fit_costs.estimator))
        fits = max(self.layout.folds - 1, 1) * max(share, 1.0) + 1.0
        return self.delta / (4.0 * max(steps, 1) * fits)


def own_delta(estimator: object) -> float:
    """Return the largest delta of an estimator's private steps."""
    deltas = [owner.delta for owner in budget_owners(estimator) if owner.delta]
    return max(deltas, default=_USUAL_DELTA if not budget_owners(estimator) else 0.0)
