"""Describe plans: a table of a search and its alternatives, and whether a search is worth it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from skdptune.accounting import PrivacyReport, UnreachableBudgetError
from skdptune.model_selection._cost import (
    Candidates,
    PlanRow,
    SearchPlan,
    is_finite,
    untuned_model,
)
from skdptune.model_selection._strategies import (
    AdaptiveTrials,
    FullTable,
    NoisyMaximum,
    Plan,
    PlanRequest,
    RandomRuns,
    Strategy,
)

_NOT_WORTH_IT = "A search of the suggested space cannot be expected to help here"
_ONE_FIT = "the unchanged estimator is fitted once, with the whole ε."
_ALL_THE_SAME = "To search anyway"
_UNTUNED = "one fit, untuned"
# Number of values of one parameter in an example of a space.
_SHOWN = 3

# The plan's table -------------------------------------------------------------------------------


def summary_of(plan: Plan, report: PrivacyReport, name: str, compare: bool) -> SearchPlan:
    """Return a plan in the form that is shown to the user.

    Parameters
    ----------
    plan : Plan
    report : PrivacyReport
        The future value of `privacy_`.
    name : str
        Name of the search.
    compare : bool
        Whether to compute other searches with the same total.
    """
    searched, layout = plan.declined, plan.layout
    if searched is not None:
        others = (_row(searched, f"{name}, if it did search"),) if compare else ()
        return SearchPlan(
            report,
            _row(plan, _UNTUNED, (1.0, 1.0)),
            others,
            None,
            "",
            0.0,
            suggestion=_suggestion_in_words(plan),
            advice=f"{_NOT_WORTH_IT}, since {plan.advice}: {_ONE_FIT} {_how_to(searched)}",
            uses={"final fit": (0.0, 1.0)},
        )
    scorer = plan.request.scorer
    return SearchPlan(
        report,
        _row(plan, name),
        tuple(_alternatives(plan)) if compare else (),
        layout.tuning,
        plan.strategy.in_words(plan),
        plan.score_deviation() * (scorer.upper - scorer.lower),
        plan.calibration_in_words,
        _suggestion_in_words(plan),
        f"{_NOT_WORTH_IT}, since {plan.advice}." if plan.advice else plan.strategy.advice(plan),
        keeps=plan.strategy.keeps(plan),
        distribution=plan.strategy.run_counts(plan),
        uses=layout.uses,
        validation=plan.request.cv.in_words if layout.by_rule else "",
        metrics=plan.noise_by_metric(),
    )


def _row(plan: Plan, name: str, fits: tuple[float, float] | None = None) -> PlanRow:
    """Return a plan's row of the table."""
    layout, cost, noise = plan.layout, plan.cost, plan.noise_of_final()
    expected, worst = plan.strategy.number_of_fits(plan) if fits is None else fits
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
        "" if fits is not None or plan.declined is not None else plan.strategy.shows,
    )


def _untuned_row(plan: Plan) -> PlanRow | None:
    """Return the row of one fit of the estimator, without tuning, with the same total."""
    model = untuned_model(plan.model)
    try:
        cost = model.within(plan.asked)
    except UnreachableBudgetError:
        return None
    return _row(replace(plan, model=model, cost=cost), _UNTUNED, (1.0, 1.0))


# Other searches of the same total ---------------------------------------------------------------


def _alternatives(plan: Plan) -> Iterator[PlanRow]:
    """Iterate over rows of other searches that can meet the same total.

    One fit without tuning comes first, then other strategies, then variations of this one.
    """
    untuned = _untuned_row(plan)
    if untuned is not None:
        yield untuned
    if plan.asked is not None:
        fits = plan.strategy.number_of_fits(plan)[0] / max(plan.layout.folds, 1)
        # One run of a random search uses the unchanged estimator; other strategies add it
        # themselves.
        fits -= 0 if plan.request.own is None else 1
        yield from _rows_of_others(plan, max(round(fits), 1))
    for name, strategy, changes in plan.strategy.variations(plan):
        try:
            yield _row(strategy.plan(replace(plan.request, **changes)), name)
        except (UnreachableBudgetError, ValueError):
            continue


def _rows_of_others(plan: Plan, count: int) -> Iterator[PlanRow]:
    """Iterate over rows of the other strategies, each with the given number of candidates."""
    own = plan.request
    request = replace(
        own,
        estimator=clone(own.estimator),
        cv=own.cv if plan.layout.folds == 0 else 0.2,
        refit="winner",
        own=None,
        n_candidates=float(count),
    )
    others: list[Strategy] = [AdaptiveTrials(), FullTable(), NoisyMaximum(), RandomRuns()]
    for strategy in others:
        if strategy.name == plan.strategy.name:
            continue
        try:
            found = _searched_by(strategy, request, count)
            if found is not None and not strategy.takes_callable:
                found = replace(found, scorers={"score": request.scorer})
            if found is None:
                continue
            strategy.check_candidates(found)
            yield _row(strategy.plan(found), strategy.name)
        except (TypeError, ValueError):
            continue


def _searched_by(strategy: Strategy, request: PlanRequest, count: int) -> PlanRequest | None:
    """Return a strategy's request for the same candidates; None if it cannot search them."""
    candidates = request.candidates
    if "space" in strategy.kinds:
        given = _one_space(request.estimator, candidates)
        if given is None:
            return None
        spaces = strategy.spaces(request.estimator, given)
        found = Candidates(spaces, name="param_space", drawn=True)
        return replace(request, candidates=found, given=given)
    is_grid = not candidates.drawn or candidates.suggestion is not None
    listed = list(candidates.grid()) if is_grid else candidates.some(count)
    spaces = [{name: [value] for name, value in each.items()} for each in listed]
    is_drawn = "grid" not in strategy.kinds
    return replace(request, candidates=Candidates(spaces, name=candidates.name, drawn=is_drawn))


def _one_space(estimator: Any, candidates: Candidates) -> dict[str, Any] | None:
    """Return the values of all parameters if they form one grid, else None.

    The estimator's own values, which searches add, do not count as another combination.
    """
    if candidates.suggestion is not None:
        return {name: list(values) for name, values in candidates.suggestion.items()}
    own = estimator.get_params(deep=True)
    others = [
        space
        for space in candidates
        if not all(
            is_finite(values) and len(values) == 1 and values[0] is own.get(name, values)
            for name, values in space.items()
        )
    ]
    return dict(others[0]) if len(others) == 1 else None


# Whether a suggested space is searched ----------------------------------------------------------


def worth_it(plan: Plan) -> Plan:
    """Return the plan of a search of a suggested space, or of the fit that replaces it."""
    # Theorem F12: only public numbers decide whether the space is searched.
    untuned = _untuned_row(plan)
    if untuned is None:
        return plan
    reason = "there is nothing else to try"
    if len(plan.candidates.grid()) > 1:
        ratio = _noise_ratio(_row(plan, ""), untuned, plan.layout.final_share)
        reason = plan.strategy.reason_against(plan, ratio)
    plan = replace(plan, advice=reason)
    # If no model is returned, nothing can replace the search.
    return _declined(plan) if plan.advice and plan.request.refit is not False else plan


def _declined(plan: Plan) -> Plan:
    """Return the plan of one fit of the unchanged estimator, which replaces a search."""
    own = Candidates(
        {name: [value] for name, value in (plan.candidates.default or {}).items()},
        name=plan.candidates.name,
        drawn=False,
    )
    own.suggestion = plan.candidates.suggestion
    costs = plan.model.fit_costs
    fit_costs = replace(costs, candidates=own, _combinations=[])
    model = untuned_model(replace(plan.model, fit_costs=fit_costs))
    cost = model.within(plan.asked)
    model.check(cost)
    request = replace(plan.request, candidates=own)
    fit = PrivacyReport(cost.fit, model.delta, name="the only fit", note="on all records")
    return Plan(plan.strategy, request, model, cost, (fit,), plan.advice, declined=plan)


def _noise_ratio(row: PlanRow, untuned: PlanRow, final_share: float) -> float:
    """Return the effective noise of a fit divided by that of a fit without tuning."""
    if row.effective_noise is not None and untuned.effective_noise:
        return row.effective_noise / untuned.effective_noise
    # Noise is about inversely proportional to epsilon.
    epsilons = 1.0
    if row.fit_epsilon is not None and untuned.fit_epsilon is not None:
        # At a large delta a fit may have an epsilon of 0, which says nothing about its noise.
        epsilons = untuned.fit_epsilon / row.fit_epsilon if row.fit_epsilon else math.inf
    return epsilons / final_share


# Suggestions ------------------------------------------------------------------------------------


def _how_to(searched: Plan) -> str:
    """Return advice on how to search anyway, with an example of a space."""
    suggestion = searched.candidates.suggestion or {}
    several = {name: values for name, values in suggestion.items() if len(values) > 1}
    name = searched.candidates.name
    if not several:
        return f"{_ALL_THE_SAME}, give a space as {name}."
    key = min(several)
    values = ", ".join(_written(value) for value in several[key][:_SHOWN])
    space = f'{name}={{"{key}": [{values}]}}'
    return (
        f"{_ALL_THE_SAME}, give a space such as {space}, or {searched.strategy.what_would_help}."
    )


def _suggestion_in_words(plan: Plan) -> str:
    suggestion, strategy = plan.candidates.suggestion, plan.strategy
    if suggestion is None:
        return ""
    lists = "; ".join(
        f"{name}: {', '.join(_shown(value) for value in values)}"
        for name, values in sorted(suggestion.items())
    )
    each = "" if "space" in strategy.kinds else ", one parameter at a time"
    words = f"Suggested{each}: {lists}."
    if plan.declined is not None:
        return words
    return f"{words} The unchanged estimator {strategy.own_in_words(plan)}."


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _written(value: Any) -> str:
    return repr(value) if isinstance(value, str) else _shown(value)
