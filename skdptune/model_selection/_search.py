"""Base class of searches that return one tuned model: plan, run, choose, refit, publish."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.base import clone

from skdptune._compat import NO_TASKS, Tasks
from skdptune._formatting import shown, shown_names
from skdptune._progress import current_progress
from skdptune._validation import check_flag, check_real
from skdptune.accounting import PrivacyReport
from skdptune.base._shared import (
    REPLACE,
    Budget,
    announce_search,
    beside_refusals,
    set_budget,
    suggested_space,
    suggests_a_space,
)
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._base import BasePrivateSearch, several_scorers
from skdptune.model_selection._cost import (
    Candidates,
    SearchPlan,
    labels_set_the_cost,
    make_pure,
    own_delta,
)
from skdptune.model_selection._plan_in_words import summary_of, worth_it
from skdptune.model_selection._running import (
    N_TRIED,
    PUBLIC_VALIDATION,
    Data,
    RunFile,
    Streams,
    check_fits,
    check_fits_of_nothing,
    generator_of,
    random_split,
)
from skdptune.model_selection._strategies import (
    Choice,
    Plan,
    PlanRequest,
    RunningSearch,
    Strategy,
    run_file,
)

# The package's strategies, by the kind of space that they search.
_TAKEN = {
    "grid": "FullTable, NoisyMaximum, Composition",
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
    the unchanged estimator is fitted once.

    Notes
    -----
    Theorem F12.
    """

    epsilon: float | None
    refit: Any
    strategy: Any

    # What a public search says of itself -------------------------------------------------------

    @abstractmethod
    def _space(self) -> tuple[Any, str, str]:
        """Return the user's space, the name of its parameter, and its kind."""

    @abstractmethod
    def _strategy(self) -> Strategy:
        """Return the given or the default strategy."""

    def _plan_for(self, request: PlanRequest) -> Plan:
        """Return the plan of the strategy."""
        return self._strategy().plan(request)

    def _n_candidates(self) -> float | None:
        """Return the requested number of candidates, if these are drawn."""
        return None

    def _missing(self) -> tuple[str, str]:
        """Return the names of the parameters for a space, and what was given instead."""
        return self._space()[1], "None"

    # Parameters -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise TypeError(
                f"estimator must be an estimator with fit; got {shown(self.estimator)}."
            )
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
            self._n_candidates(),
            n_samples,
            n_features,
            classes,
            is_public,
            is_random=self.n_public is not None,
            given=self._space()[0],
            is_multimetric=self._is_multimetric,
        )
        self._strategy().check_candidates(request)
        plan = self._plan_for(request)
        _check_noise(plan)
        return plan if plan.candidates.suggestion is None else worth_it(plan)

    def _with_classes(self, plan: Plan, classes: Any) -> Plan:
        return plan.with_classes(classes)

    def _labels_set_the_cost(self, n_samples: int, n_features: int | None) -> bool:
        size = n_samples if self.n_public is None else self.n_public
        is_pure = self.epsilon is not None and self._delta() == 0.0
        estimator = make_pure(clone(self.estimator)) if is_pure else self.estimator
        return labels_set_the_cost(estimator, self._candidates(size, n_features))

    def _summary(self, plan: Plan, n_samples: int, compare: bool) -> SearchPlan:
        return summary_of(plan, self._report(plan), type(self).__name__, compare)

    # Running ----------------------------------------------------------------------------------

    def _prepared(self, plan: Plan, data: Data, public: Data | None) -> Callable[[Tasks], None]:
        self._check_fits(plan, data)
        file = run_file(self, plan, data, public)
        return partial(self._run, plan, data, public, file)

    def _check_fits(self, plan: Plan, data: Data) -> None:
        """Raise if the fits of several candidates fail on made-up data."""
        model, setting = plan.model, plan.cost.setting
        size = model.final_size if plan.layout.final else model.train_size
        candidates = plan.candidates.some(N_TRIED)
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
                candidate = plan.candidates.default or {}
                row = {"params": candidate, "score": math.nan}
                choice = Choice(candidate, math.nan, None, [row])
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
        split = random_split(
            data.n_samples,
            layout.validation,
            layout.tuning,
            layout.variant,
            generator_of(streams.random_split),
            data.held_out,
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
        # Theorem H4: the ledger records the cost before the data are read.
        ledger = self._ledger_in_use()
        announce_search(self, X, warns=ledger is None)
        plan, data, public = self._opened(X, y, X_val, y_val, params)
        if tries:
            self._check_fits(plan, data)
        running = self._running(plan, data, public)
        if ledger is None:
            return replace(running, is_recorded=False)
        return replace(running, reservation=self._charge(plan).reserved(ledger))

    # The report -------------------------------------------------------------------------------

    def _report(self, plan: Plan, model: Any = None) -> PrivacyReport:
        return PrivacyReport(
            plan.total,
            plan.delta,
            epsilon=plan.asked,
            name=type(self).__name__,
            parts=plan.components,
            assumptions=self._assumptions(plan, model),
            neighbouring=REPLACE if plan.layout.replaces else self._neighbouring(plan),
            bound=plan.model.bound,
        )

    def _variants(self, plan: Plan) -> Sequence[Any]:
        return plan.model.fit_costs.variants()

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
