"""Base class of searches that return one tuned model: plan, run, choose, refit, publish."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier

from skdptune._compat import NO_TASKS, Tasks
from skdptune._formatting import shown, shown_names
from skdptune._progress import current_progress
from skdptune._validation import check_estimator, check_flag, check_real
from skdptune.accounting import PrivacyReport, UnreachableBudgetError
from skdptune.base._shared import (
    OWN_USE,
    PARTS,
    Budget,
    announce_search,
    beside_refusals,
    own_seeds,
    set_budget,
    suggested_space,
    suggests_a_space,
    target_ranges,
)
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._base import BasePrivateSearch, several_scorers
from skdptune.model_selection._choosing import target_in_words
from skdptune.model_selection._cost import (
    Candidates,
    PlanRow,
    SearchPlan,
    distinct,
    is_finite,
    labels_set_the_cost,
    make_pure,
    own_delta,
    untuned_model,
)
from skdptune.model_selection._running import (
    N_TRIED,
    PUBLIC_VALIDATION,
    Data,
    RunFile,
    Streams,
    check_fits,
    check_fits_of_nothing,
    clipped_deviation,
    generator_of,
    random_split,
    refusal_of_parts,
)
from skdptune.model_selection._strategies import (
    AdaptiveTrials,
    Choice,
    FullTable,
    NoisyMaximum,
    Plan,
    PlanRequest,
    RandomRuns,
    RunningSearch,
    Strategy,
    name_of,
    run_file,
)
from skdptune.preprocessing._shared import range_of_targets

# Describe plans: a table of a search and its alternatives, and whether a search is worth it -----

_NOT_WORTH_IT = "A search cannot be expected to help here"
_ONE_FIT = "the unchanged estimator is fitted once, with the whole ε."
_ALL_THE_SAME = "To search anyway"
_UNTUNED = "one fit, untuned"
_MORE = "plan(..., compare=True) also shows alternatives with the same total."
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
    more = "" if compare else _MORE
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
            advice=_why_not(plan, searched),
            uses={"final fit": (0.0, 1.0)},
            target=_target_in_words(searched),
            more=more,
        )
    scorer, counts = plan.request.scorer, plan.strategy.run_counts(plan)
    number = f"{name_of(counts)} distribution of mean {counts.mean:.4g}" if counts else ""
    return SearchPlan(
        report,
        _row(plan, name),
        tuple(_alternatives(plan)) if compare else (),
        layout.tuning,
        number,
        float(clipped_deviation(plan.score_deviation()) * (scorer.upper - scorer.lower)),
        plan.calibration_in_words,
        _suggestion_in_words(plan),
        f"{_NOT_WORTH_IT}, since {plan.advice}." if plan.advice else plan.strategy.advice(plan),
        keeps=plan.strategy.keeps(plan),
        distribution=counts,
        uses=layout.uses,
        validation=plan.request.cv.in_words if layout.by_rule else "",
        metrics=plan.noise_by_metric(),
        target=_target_in_words(plan),
        more=more,
    )


def _target_in_words(plan: Plan) -> str:
    """Return how much noise predictions will have, if the range of one target is known."""
    estimator, layout = plan.request.estimator, plan.layout
    bounds = None if is_classifier(estimator) else range_of_targets(estimator)
    if bounds is None or layout.n_features is None or not layout.final:
        return ""
    ends: Any = target_ranges(bounds)
    if isinstance(ends[0], tuple):
        return ""
    budget = plan.total.epsilon(plan.delta), plan.delta
    return target_in_words(ends, layout.n_final, layout.n_features, budget)


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
    except ValueError:
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


# Whether a space is searched --------------------------------------------------------------------


def worth_it(plan: Plan) -> Plan:
    """Return the plan of a search, or of the fit that replaces it."""
    # Theorem F12: only public numbers decide whether the space is searched.
    if plan.candidates.suggestion is None:
        reason = plan.advice or plan.strategy.reason_never(plan)
    elif len(plan.candidates.grid()) == 1:
        reason = "there is nothing else to try"
    else:
        reason = plan.advice or _reason_against(plan)
    plan = replace(plan, advice=reason)
    # If no model is returned, nothing can replace the search.
    if not reason or plan.request.refit is False:
        return plan
    try:
        return _declined(plan)
    except ValueError:
        # Theorem N6: what chooses without a comparison must be asked for.
        if plan.candidates.suggestion is None and not plan.strategy.compares(plan):
            raise
        return plan


def _reason_against(plan: Plan) -> str:
    """Return why a search of a suggested space cannot be expected to help; empty if it can."""
    untuned = _untuned_row(plan)
    if untuned is None:
        return ""
    ratio = _noise_ratio(_row(plan, ""), untuned, plan.layout.final_share)
    return plan.strategy.reason_against(plan, ratio)


def _declined(plan: Plan) -> Plan:
    """Return the plan of one fit of the unchanged estimator, which replaces a search."""
    known = plan.request.estimator.get_params(deep=True)
    searched = {name for space in plan.candidates for name in space}
    own = Candidates(
        {name: [known[name]] for name in sorted(searched) if name in known},
        name=plan.candidates.name,
        drawn=False,
    )
    own.suggestion = plan.candidates.suggestion
    costs = plan.model.fit_costs
    fit_costs = replace(costs, candidates=own)
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


def _why_not(plan: Plan, searched: Plan) -> str:
    """Return why a search is not made, and how to make it."""
    return f"{_NOT_WORTH_IT}, since {plan.advice}: {_ONE_FIT} {_how_to(searched)}"


def _how_to(searched: Plan) -> str:
    """Return advice on how to search anyway, with an example of a space."""
    strategy, name = searched.strategy, searched.candidates.name
    named = f"strategy={type(strategy).__name__}()"
    suggestion = searched.candidates.suggestion
    if suggestion is None:
        return f"{_ALL_THE_SAME}, give {named}, or {strategy.what_would_help}."
    several = {name: values for name, values in suggestion.items() if len(values) > 1}
    if not several:
        return f"{_ALL_THE_SAME}, give a space as {name}, with {named}."
    key = min(several)
    values = ", ".join(_written(value) for value in several[key][:_SHOWN])
    space = f'{name}={{"{key}": [{values}]}}'
    also = f" with {named}" if strategy.reason_never(searched) else ""
    return f"{_ALL_THE_SAME}, give a space such as {space}{also}, or {strategy.what_would_help}."


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


# The package's strategies, by the kind of space that they search.
_TAKEN = {
    "grid": "FullTable, NoisyMaximum, Composition, LeastEpsilon",
    "distribution": "RandomRuns",
    "space": "AdaptiveTrials",
}
# Assumption F6: values that are kept for diagnosis are not private.
_NOT_PRIVATE = (
    "NOT PRIVATE: diagnostics=True keeps values that no budget pays for; publish nothing of "
    "this object"
)


class TuningSearch(BasePrivateSearch[Plan]):
    """Base class of the searches that return one tuned model.

    It handles parameters and records, but does not know how to search. Its strategy decides which
    candidates are tried, what that costs, and how the winner is chosen. If the user gives no
    space, the space that the estimator suggests is searched. If no search can be expected to help,
    or if no candidate of the user's space can win, the unchanged estimator is fitted once.

    Notes
    -----
    Theorem F12, Theorem N6.
    """

    epsilon: float | None

    # What a public search says of itself -------------------------------------------------------

    # The parameter of the space, and its kind; the parameter of the number of drawn candidates.
    _searched: ClassVar[tuple[str, str]]
    _counted: ClassVar[str] = ""

    def _space(self) -> tuple[Any, str, str]:
        """Return the user's space, the name of its parameter, and its kind."""
        return getattr(self, self._searched[0]), *self._searched

    def _missing(self) -> tuple[str, str]:
        """Return the names of the parameters for a space, and what was given instead."""
        return self._space()[1], "None"

    def _input_refusal(self, form: str) -> str | None:
        # Theorem R11: rows may lie in parts.
        if form != PARTS:
            return OWN_USE
        strategy = self._strategy()
        if strategy.path_of_runs() is not None:
            return "A storage of runs identifies the records by all of their cells."
        if not strategy.takes_parts:
            return "Use DPRandomSearchCV, DPGridSearchCV with strategy='table', or others."
        found = (refusal_of_parts(estimator) for estimator in self._estimators())
        return next((words for words in found if words is not None), None)

    # Parameters -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_estimator(self.estimator, name="estimator")
        if self.epsilon is not None:
            check_real(self.epsilon, name="epsilon", lower=0.0, lower_open=True, upper=500.0)
        strategy, kind = self._strategy(), self._space()[2]
        if not isinstance(strategy, Strategy) or kind not in strategy.kinds:
            raise TypeError(
                f"strategy must be {_TAKEN[kind]}, or one of your own that searches a {kind}; got "
                f"{shown(self.strategy)}."
            )
        strategy.check(self)
        self._check_common_parameters()
        if self._given() is None and not suggests_a_space(self.estimator):
            raise beside_refusals(self._no_suggestion(), [self.estimator])

    def _scorers(self) -> dict[str, BoundedScorer]:
        if not (self._is_multimetric and self._strategy().takes_callable):
            return super()._scorers()
        found = several_scorers(self.scoring)
        if callable(self.refit) or self.refit is False:
            return found
        if not isinstance(self.refit, str) or self.refit not in found:
            # The wording is that of scikit-learn.
            raise ValueError(
                f"refit must be {shown_names(found)}, a callable or False with several metrics; "
                f"got {shown(self.refit)}. For multi-metric scoring, the parameter refit must be "
                "set to a scorer key or a callable to refit the best candidate by."
            )
        return {self.refit: found[self.refit], **found}

    def _n_tasks(self) -> int:
        return 1 if self.refit is False else 2

    def _delta(self) -> float:
        return own_delta(self.estimator) if self.delta is None else float(self.delta)

    # Candidates -------------------------------------------------------------------------------

    def _estimators(self) -> Sequence[Any]:
        # A searched step may be a classifier where the estimator has none.
        given = self._given()
        return (self.estimator,) if given is None else given.with_steps(self.estimator)

    def _given(self) -> Candidates | None:
        """Return the user's space, if there is one."""
        space, name, kind = self._space()
        if space is None:
            return None
        space = self._strategy().spaces(self.estimator, space)
        return Candidates(space, name=name, drawn=kind != "grid")

    def _candidates(self, n_samples: int, n_features: int | None) -> Candidates:
        """Return the candidates of the user's space, or of the estimator's suggested space."""
        # Theorem F12: only public numbers decide what is searched.
        given = self._given()
        if given is not None:
            return given
        _, name, kind = self._space()
        model = clone(self.estimator)
        if self.epsilon is not None:
            set_budget(model, Budget(self.epsilon, self._delta()))
        suggestion = suggested_space(model, n_samples, n_features)
        if not suggestion:
            raise self._no_suggestion()
        found = Candidates.suggested(suggestion, name=name, drawn=kind != "grid")
        return self._strategy().suggested(found)

    def _no_suggestion(self) -> ValueError:
        name, missing = self._missing()
        return ValueError(
            f"{name} must be given for an estimator without a suggested space; got {missing} "
            f"for {type(self.estimator).__name__}. An estimator suggests a space by "
            "suggested_space; some need n_features for it."
        )

    # The plan ---------------------------------------------------------------------------------

    def _make_plan(self, n_samples: int, n_features: int | None, **given: Any) -> Plan:
        # Theorem F0: no cost depends on the seeds of the estimator, which each fit sets anew.
        is_estimator = hasattr(self.estimator, "fit") and not isinstance(self.estimator, type)
        found = own_seeds(self.estimator) if is_estimator else {}
        seeds = {name: seed for name, seed in found.items() if seed is not None}
        if not seeds:
            return super()._make_plan(n_samples, n_features, **given)
        nothing = {f"estimator__{name}": None for name in seeds}
        unseeded = clone(self).set_params(**nothing)
        return unseeded._make_plan(n_samples, n_features, **given).with_seeds(seeds)

    def _solve(
        self, n_samples: int, n_features: int | None, classes: Any, is_public: bool
    ) -> Plan:
        self._check_parameters()
        request = PlanRequest(
            self.estimator,
            self._candidates(n_samples, n_features),
            self._scorers(),
            self.epsilon,
            self._delta(),
            self.cv,
            # The name of a metric asks for a fit of the winner by that metric.
            True if self._is_multimetric and isinstance(self.refit, str) else self.refit,
            getattr(self, self._counted, None),
            n_samples,
            n_features,
            classes,
            is_public,
            is_random=self.n_public is not None,
            given=self._space()[0],
            is_multimetric=self._is_multimetric,
        )
        self._strategy().check_candidates(request)
        plan: Plan = self._strategy().plan(request)
        _check_noise(plan)
        # A named strategy and several metrics ask for a search of the given space.
        is_asked_for = self.strategy not in (None, "auto") or self._is_multimetric
        return plan if is_asked_for and self._space()[0] is not None else worth_it(plan)

    def _labels_set_the_cost(self, n_samples: int, n_features: int | None) -> bool:
        size = n_samples if self.n_public is None else self.n_public
        is_pure = self.epsilon is not None and self._delta() == 0.0
        estimator = make_pure(clone(self.estimator)) if is_pure else self.estimator
        return labels_set_the_cost(estimator, self._candidates(size, n_features))

    def _summary(self, plan: Plan, n_samples: int, compare: bool) -> SearchPlan:
        return summary_of(plan, self._report(plan), type(self).__name__, compare)

    # Running ----------------------------------------------------------------------------------

    def _prepared(self, plan: Plan, data: Data, public: Data | None) -> Callable[[Tasks], None]:
        searched = plan.declined
        if searched is not None and searched.candidates.suggestion is None:
            # Whoever gives a space expects a search. The words are those of the plan.
            warnings.warn(_why_not(plan, searched), UserWarning, stacklevel=3)
        self._check_fits(plan, data)
        file = run_file(self, plan, data, public)
        return partial(self._run, plan, data, public, file)

    def _check_fits(self, plan: Plan, data: Data) -> None:
        """Raise if the fits of several candidates fail on made-up data."""
        model, setting = plan.model, plan.cost.setting
        size = model.final_size if plan.layout.final else model.train_size
        candidates = distinct(plan.candidates.some(N_TRIED))
        made = [model.fit_costs.configured(each, setting, size) for each in candidates]
        for method in sorted({scorer.response_method for scorer in self._scorers().values()}):
            check_fits(made, data, plan.layout.n_samples, method)
        if plan.layout.by_rule and model.releases_runs:
            setting, size = plan.cost.run_setting, model.train_size
            tried = (model.fit_costs.configured(each, setting, size) for each in candidates)
            check_fits_of_nothing(tried, data, varies=self._replaces_steps())

    def _run(
        self, plan: Plan, data: Data, public: Data | None, file: RunFile | None, tasks: Tasks
    ) -> None:
        with nullcontext() if file is None else file:
            running = self._running(plan, data, public, file)
            if plan.declined is not None:
                (candidate,) = plan.candidates.grid()
                row = {"params": candidate, "score": math.nan}
                # As in scikit-learn, what has no score has the score nan.
                columns = {f"mean_test_{name}": np.array([math.nan]) for name in running.scorers}
                choice = Choice(candidate, math.nan, None, [row], columns=columns)
                running.progress.phase("fitting the unchanged estimator, instead of a search")
            else:
                running.progress.phase("trying candidates")
                with tasks.task("search", plan.strategy.public_count(plan)) as subtasks:
                    choice = running.strategy.choose(replace(running, tasks=subtasks))
            model = None
            if self.refit is not False:
                if plan.declined is None:
                    running.progress.phase("fitting the winner")
                with tasks.task("final fit"):
                    model = running.final_model(choice)
            if file is not None:
                file.end()
        running.publish(choice, model)

    def _running(
        self, plan: Plan, data: Data, public: Data | None, file: RunFile | None = None
    ) -> RunningSearch:
        streams, layout = Streams.of(self.random_state), plan.layout
        streams = streams if file is None else file.streams(streams)
        held_out = data.held_out
        if layout.by_rule and data.is_in_parts:
            held_out = data.held_out_by(self.cv.held_out_of_chunk)
        split = random_split(
            data.n_samples,
            layout.validation,
            layout.tuning,
            layout.variant,
            generator_of(streams.random_split),
            held_out,
        )
        strategy = plan.strategy.with_objects_of(self._strategy())
        return RunningSearch(
            self, plan, strategy, data, split, public, streams, current_progress(), NO_TASKS, file
        )

    def _started(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        params: dict[str, Any],
        *,
        tries: bool = True,
    ) -> RunningSearch:
        """Return the search of a new session, whose cost is reserved in the active ledger.

        With `tries`, fits on made-up data are tried first.
        """
        if self._space()[0] is None:
            name, missing = self._missing()
            raise ValueError(
                f"{name} must be given for a session; got {missing}. "
                f"{'They say' if ' ' in name else 'It says'} what its candidates may cost."
            )
        # Theorem H4: the ledger records the cost before the data are read.
        ledger = self._ledger_in_use()
        params = dict(params)
        X, y = self._in_parts(X, y, params, X_val, ledger)
        persons = self._persons(X, y, params.pop("groups", None), params)
        announce_search(self, X, warns=ledger is None, persons=persons)
        plan, data, public = self._opened(X, y, X_val, y_val, params, persons)
        # A session is made in any case.
        plan = plan.declined or plan
        if tries:
            self._check_fits(plan, data)
        reservation = None if ledger is None else self._charge(plan).reserved(ledger)
        if reservation is not None and data.is_in_parts:
            # Theorem R11: rows in parts are counted now, and a rule reads them.
            reservation.mark_read()
        running = self._running(plan, data, public)
        return replace(running, reservation=reservation, is_recorded=ledger is not None)

    # The report -------------------------------------------------------------------------------

    def _own_assumptions(self, plan: Plan) -> tuple[str, ...]:
        sentences = super()._own_assumptions(plan)
        if plan.declined is not None:
            # No data are held out, and no public data are read.
            sentences = tuple(one for one in sentences if one != PUBLIC_VALIDATION)
        keeps_all = check_flag(self._strategy().diagnostics, name="diagnostics")
        return (_NOT_PRIVATE, *sentences) if keeps_all else sentences


# For searches at a delta of 0: at this delta every mechanism with noise has a finite epsilon.
_SOME_DELTA = 0.05


def _check_noise(plan: Plan) -> None:
    """Refuse a search that has no total and whose fits have no noise: it would protect nothing."""
    if plan.asked is not None or math.isfinite(plan.total.epsilon(plan.delta or _SOME_DELTA)):
        return
    costs = plan.model.fit_costs
    if math.isinf(costs.profile(None, plan.model.final_size).epsilon(_SOME_DELTA)):
        raise ValueError(
            "epsilon must be given for an estimator that adds no noise; got None for "
            f"{type(costs.estimator).__name__}, whose fit has an infinite epsilon. Give the "
            "search a total, or use only finite epsilons in the estimator and the space."
        )
