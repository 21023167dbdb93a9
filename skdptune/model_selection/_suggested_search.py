"""Searches that take what the estimator suggests, where the user gives no space."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any

from sklearn.base import clone, is_classifier

from skdptune.accounting import PrivacyReport, UnreachableBudgetError
from skdptune.base import Budget, set_budget, suggested_space
from skdptune.model_selection._base import BasePrivateSearch
from skdptune.model_selection._cost import (
    FEW_COLUMNS,
    Candidates,
    ExpectedGain,
    FitCosts,
    Plan,
    PlanRow,
    SearchPlan,
    own_delta,
    untuned_model,
)

_NOT_WORTH_IT = "A search of the suggested space cannot be expected to help here"
_ONE_FIT = "the estimator is fitted once, as it is, with all of ε."
_ALL_THE_SAME = "To search all the same"
# So many values of one parameter make an example of a space.
_SHOWN = 3


class SuggestingSearch(BasePrivateSearch[Plan]):
    """Base of searches that may be given no space.

    What the estimator suggests is searched then, one parameter at a time, the estimator as it is
    among the candidates. Where that cannot be expected to help, by public numbers alone (see
    `ExpectedGain`), the estimator is fitted once, as it is, on all records with all of the budget.

    Notes
    -----
    Theorem F12.
    """

    epsilon: float | None

    # What a subclass implements -------------------------------------------------------------

    @abstractmethod
    def _space(self) -> tuple[Any, str, bool]:
        """Return what the user gave to search, its parameter's name, and whether it is drawn."""

    @abstractmethod
    def _number_of_fits(self, plan: Plan) -> tuple[float, float]:
        """Return the expected number of candidates' fits, and the one exceeded with 1 % chance."""

    def _shows(self, plan: Plan) -> str:
        """Return what a search publishes of its candidates, in words for a plan's table."""
        return "the winner"

    def _default_in_words(self, plan: Plan) -> str:
        """Return how a search of a suggested space treats the estimator as it is."""
        return "is always tried"

    def _score_deviation(self, plan: Plan) -> float:
        """Return the deviation of the noise on a score, in units of its range."""
        scorer, noise = self._scorer(), plan.cost.score_noise
        if noise.kind == "none":
            return 0.0
        deviation = noise.ratio * plan.layout.sensitivity(scorer)
        return deviation / (scorer.upper - scorer.lower)

    # Candidates -----------------------------------------------------------------------------

    def _given(self) -> Candidates | None:
        """Return what the user gave to search, if anything."""
        space, name, drawn = self._space()
        return None if space is None else Candidates(space, name=name, drawn=drawn)

    def _candidates(self, n_samples: int, n_features: int | None) -> Candidates:
        """Return what is searched: what the user gave, or what the estimator suggests."""
        # Theorem F12.
        given = self._given()
        if given is not None:
            return given
        _, name, drawn = self._space()
        model = clone(self.estimator)
        if self.epsilon is not None:
            delta = own_delta(model) if self.delta is None else float(self.delta)
            set_budget(model, Budget(self.epsilon, delta))
        suggestion = suggested_space(model, n_samples, n_features)
        if not suggestion:
            raise self._no_suggestion()
        return Candidates.suggested(suggestion, name=name, drawn=drawn)

    def _no_suggestion(self) -> ValueError:
        name, missing = self._missing()
        return ValueError(
            f"{name} must be given for an estimator that suggests nothing to search over; got "
            f"{missing} for {type(self.estimator).__name__}. An estimator suggests it by "
            "suggested_space, for some only where n_features is known."
        )

    def _missing(self) -> tuple[str, str]:
        """Return what the user may give to search, and what there is in its place."""
        return self._space()[1], "None"

    # The plan -------------------------------------------------------------------------------

    def _worth_it(self, plan: Plan, *, has_model: bool) -> Plan:
        """Return the plan of a search of a suggested space, or of what takes its place."""
        untuned = self._untuned_row(plan)
        if untuned is None:
            return plan
        reason = "there is nothing else to try"
        if len(plan.candidates.grid()) > 1:
            reason = self._reason_against(plan, untuned)
        plan = replace(plan, advice=reason)
        # Without a model to return, nothing could take the place of the search.
        return self._declined(plan) if plan.advice and has_model else plan

    def _reason_against(self, plan: Plan, untuned: PlanRow) -> str:
        """Return why a search cannot be expected to help, by public numbers; empty if it can."""
        return self._expected_gain(plan, untuned).reason_against

    def _expected_gain(self, plan: Plan, untuned: PlanRow) -> ExpectedGain:
        """Return what decides whether the search of a suggested space is made."""
        layout = plan.layout
        return ExpectedGain(
            layout.n_samples,
            plan.total.epsilon(plan.delta) if plan.asked is None else plan.asked,
            _noise_ratio(self._row(plan, ""), untuned, layout.final_share),
            # How many public records there will be is not known yet.
            max(layout.n_samples // 5, 1) if layout.public else layout.n_score,
            self._score_deviation(plan),
            is_classifier(self.estimator)
            and layout.n_features is not None
            and layout.n_features <= FEW_COLUMNS,
        )

    def _declined(self, plan: Plan) -> Plan:
        """Return the plan of one fit of the estimator as it is, in place of a search."""
        # Theorem F12.
        own = Candidates(
            {name: [value] for name, value in (plan.candidates.default or {}).items()},
            name=plan.candidates.name,
            drawn=False,
        )
        own.suggestion = plan.candidates.suggestion
        costs = plan.model.fit_costs
        fit_costs = FitCosts(self.estimator, own, costs.extrapolate, costs.classes, costs.is_pure)
        model = untuned_model(replace(plan.model, fit_costs=fit_costs))
        cost = model.within(plan.asked)
        model.check(cost)
        fit = PrivacyReport(cost.fit, model.delta, name="the only fit", note="on all records")
        return Plan(own, model, cost, (fit,), plan.asked, plan.advice, declined=plan)

    def _row(self, plan: Plan, name: str, fits: tuple[float, float] | None = None) -> PlanRow:
        """Return the row of a plan's table."""
        layout, cost = plan.layout, plan.cost
        expected, worst = self._number_of_fits(plan) if fits is None else fits
        noise = plan.noise_of_final()
        work = expected * layout.n_train / layout.n_samples
        work += layout.final_share if layout.final else 0.0
        return PlanRow(
            name,
            cost.total.epsilon(plan.delta),
            cost.fit_epsilon,
            noise,
            None if noise is None else noise / layout.final_share,
            expected,
            worst,
            work,
            "" if fits is not None or plan.declined is not None else self._shows(plan),
        )

    def _untuned_row(self, plan: Plan) -> PlanRow | None:
        """Return the row of one fit of the estimator, without tuning, for the same total."""
        model = untuned_model(plan.model)
        try:
            cost = model.within(plan.asked)
        except UnreachableBudgetError:
            return None
        return self._row(replace(plan, model=model, cost=cost), "one fit, untuned", (1.0, 1.0))

    def _summary_of_declined(self, plan: Plan, searched: Plan, compare: bool) -> SearchPlan:
        """Return the plan of one fit as it is shown, beside the search that is not made."""
        row = self._row(searched, f"{type(self).__name__}, if it searched")
        return SearchPlan(
            self._report(plan),
            self._row(plan, "one fit, untuned", (1.0, 1.0)),
            (row,) if compare else (),
            None,
            "",
            0.0,
            suggestion=self._suggestion_in_words(plan),
            advice=f"{_NOT_WORTH_IT}, since {plan.advice}: {_ONE_FIT} {self._how_to(searched)}",
            uses={"final fit": (0.0, 1.0)},
        )

    def _advice_in_words(self, plan: Plan) -> str:
        return f"{_NOT_WORTH_IT}, since {plan.advice}." if plan.advice else ""

    def _how_to(self, searched: Plan) -> str:
        """Return how to search all the same, with a space that may be given as it is."""
        suggestion = searched.candidates.suggestion or {}
        several = {name: values for name, values in suggestion.items() if len(values) > 1}
        name = searched.candidates.name
        if not several:
            return f"{_ALL_THE_SAME}, give a space as {name}."
        key = min(several)
        values = ", ".join(_written(value) for value in several[key][:_SHOWN])
        space = f'{name}={{"{key}": [{values}]}}'
        return (
            f"{_ALL_THE_SAME}, give a space such as {space}, or {self._what_would_help(searched)}."
        )

    def _what_would_help(self, plan: Plan) -> str:
        """Return what makes the search of a suggested space worth it in the end."""
        return "more records"

    def _suggestion_in_words(self, plan: Plan) -> str:
        suggestion = plan.candidates.suggestion
        if suggestion is None:
            return ""
        lists = "; ".join(
            f"{name}: {', '.join(_shown(value) for value in values)}"
            for name, values in sorted(suggestion.items())
        )
        words = f"Suggested, one parameter at a time: {lists}."
        if plan.declined is not None:
            return words
        return f"{words} The estimator as it is {self._default_in_words(plan)}."


def _noise_ratio(row: PlanRow, untuned: PlanRow, final_share: float) -> float:
    """Return the noise beside the records of a fit, over that of one fit without tuning."""
    if row.effective_noise is not None and untuned.effective_noise:
        return row.effective_noise / untuned.effective_noise
    # Noise falls in proportion to epsilon, about.
    epsilons = 1.0
    if row.fit_epsilon is not None and untuned.fit_epsilon is not None:
        # At a large delta a fit may have an epsilon of 0, from which no noise follows.
        epsilons = untuned.fit_epsilon / row.fit_epsilon if row.fit_epsilon else math.inf
    return epsilons / final_share


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _written(value: Any) -> str:
    return repr(value) if isinstance(value, str) else _shown(value)
