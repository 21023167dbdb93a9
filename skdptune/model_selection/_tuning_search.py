"""Searches that return one tuned model: candidates, cost, run, choose, refit, publish."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune._compat import NO_TASKS, Tasks
from skdptune._formatting import shown
from skdptune._progress import Progress, current_progress
from skdptune._validation import check_flag, check_option, check_real
from skdptune.accounting import PrivacyReport
from skdptune.base import (
    REPLACE,
    RESERVED_PARAMETERS,
    announce_search,
    beside_refusals,
    forget_seeds,
    is_paid,
    is_set_by_budget,
    ledger_for,
    own_seeds,
    set_seeds,
    suggests_a_space,
)
from skdptune.ledger import LedgerError, Reservation
from skdptune.model_selection._cost import (
    Candidates,
    Cost,
    CostModel,
    FitCosts,
    Layout,
    Plan,
    PlanRow,
    SearchPlan,
    copied,
    labels_set_the_cost,
    make_layout,
    make_pure,
    neighbours_replace,
    own_delta,
)
from skdptune.model_selection._other_ways import rows_of_other_ways
from skdptune.model_selection._running import (
    N_TRIED,
    ONE_FIT,
    PUBLIC_VALIDATION,
    Data,
    Fold,
    Material,
    OnResult,
    Quiet,
    RandomSplit,
    Result,
    Run,
    Scoring,
    Streams,
    check_fits,
    data_independent_model,
    disjoint_folds,
    generator_of,
    is_failure,
    perform_runs,
    random_split,
    results_of,
    spawned,
)
from skdptune.model_selection._suggested_search import SuggestingSearch

# Assumption F6.
_NOT_PRIVATE = (
    "NOT PRIVATE: diagnostics=True keeps what no budget pays for; publish nothing of this object"
)


@dataclass(frozen=True)
class SearchState:
    """One fit in progress: the plan, the data, their random split, the seeds, the progress."""

    plan: Plan
    data: Data
    split: RandomSplit
    public: Data | None
    streams: Streams
    progress: Progress
    tasks: Tasks
    # Of a session, which reads the data when it is driven.
    reservation: Reservation | None = None
    # The search whose session was started where no ledger was in use.
    unrecorded: Any = None

    def mark_read(self) -> None:
        """Record that the data are read from now on, or refuse what a ledger should have."""
        if self.reservation is not None:
            self.reservation.mark_read()
        elif self.unrecorded is not None and not is_paid(self.unrecorded):
            _check_unrecorded(self.unrecorded)

    def confirm(self) -> None:
        """Record that the search has come to its end."""
        if self.reservation is not None:
            self.reservation.confirm()

    @property
    def validation(self) -> Data:
        """The records that candidates are scored on, where there are no folds."""
        return self.data.take(self.split.validation) if self.public is None else self.public


def _check_unrecorded(search: Any) -> None:
    """Refuse to go on with a session that a ledger, in use by now, knows nothing of."""
    # Theorem H4.
    ledger = ledger_for(search)
    if ledger is not None:
        raise LedgerError(
            "ledger must be in use when a session is started, to set its cost aside; got "
            f"{shown(ledger)} after the start of {type(search).__name__}. Start it again in "
            "`with ledger:`. Nothing was read."
        )


@dataclass
class Choice:
    """The winner, and the rows that may be shown.

    Attributes
    ----------
    candidate : dict
        The winner's parameters.
    score : float
        Its noisy score; NaN where none is published.
    model : estimator or None
        Its fitted model, where the selection made one.
    rows : list of dict
        ``params`` and ``score`` of what was paid for.
    index : int
        The winner's row.
    diagnostics : dict
        What must stay secret.
    deviation : float or None
        Of the posterior of the winner's score, where the search has one.
    """

    candidate: dict[str, Any]
    score: float
    model: Any
    rows: list[dict[str, Any]]
    index: int = 0
    diagnostics: dict[str, Any] = field(default_factory=dict)
    deviation: float | None = None


class TuningSearch(SuggestingSearch):
    """Base of the searches that return one tuned model.

    Read a search from top to bottom in its own file: candidates, cost, run, choose; what all of
    them share (the final fit, what is published, the report) is here.
    """

    epsilon: float | None
    score_epsilon: float | None
    refit: Any
    pre_dispatch: Any
    error_score: str
    diagnostics: bool

    # What a subclass implements -------------------------------------------------------------

    @abstractmethod
    def _cost(self, layout: Layout, fit_costs: FitCosts, delta: float) -> tuple[CostModel, Cost]:
        """Return the cost model, and the cost that meets the budget."""

    @abstractmethod
    def _choose(self, state: SearchState) -> Choice:
        """Run the candidates and choose one."""

    def _alternatives(self, plan: Plan, n_samples: int) -> list[PlanRow]:
        """Return rows of other ways for the same total that can meet it.

        One fit without tuning comes first, and then other searches of the candidates.
        """
        row, rows = self._untuned_row(plan), []
        if plan.asked is not None:
            count = round(self._number_of_fits(plan)[0] / max(plan.layout.folds, 1))
            rows = list(rows_of_other_ways(self, plan, n_samples, max(count, 1)))
        return rows if row is None else [row, *rows]

    def _way_in_words(self, plan: Plan) -> str:
        """Return what this search is called among the other ways."""
        return ""

    def _runs_in_words(self, plan: Plan) -> str:
        """Return the distribution of the number of runs in words, empty if it is fixed."""
        return ""

    def _check_plan(self, plan: Plan) -> None:
        """Refuse what is known to fail before the data are read."""

    # How the data are used: a subclass may change it ------------------------------------------

    def _tuning_fraction(self, candidates: Candidates, n_samples: int, replaces: bool) -> Any:
        return None

    def _variant(self) -> int:
        return 1

    def _extrapolate(self) -> Any:
        return "auto"

    def _refit(self) -> Any:
        return self.refit

    def _n_tasks(self) -> int:
        return 1 if self._refit() is False else 2

    # Parameters -----------------------------------------------------------------------------

    def _estimators(self) -> Sequence[Any]:
        # A step that is searched over may be a classifier in place of none.
        given = self._given()
        return (self.estimator,) if given is None else given.with_steps(self.estimator)

    def _check_parameters(self) -> None:
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise TypeError(
                f"estimator must be an estimator with fit; got {shown(self.estimator)}."
            )
        if self.epsilon is not None:
            check_real(self.epsilon, name="epsilon", lower=0.0, lower_open=True, upper=500.0)
        if self.score_epsilon is not None:
            check_real(self.score_epsilon, name="score_epsilon", lower=0.0, lower_open=True)
        check_flag(self.diagnostics, name="diagnostics")
        check_option(self.error_score, name="error_score", options=("worst", "raise"))
        if self.error_score == "raise" and not self.diagnostics:
            raise ValueError(
                "error_score must be 'worst' unless diagnostics=True; got 'raise'. An exception "
                "shows what the data hold."
            )
        self._check_common_parameters()
        if self._given() is None and not suggests_a_space(self.estimator):
            raise beside_refusals(self._no_suggestion(), [self.estimator])

    def _check_searched(self, candidates: Candidates) -> None:
        candidates.check_names(self.estimator)
        has_budget = self.epsilon is not None
        for space in candidates:
            for name in space:
                is_reserved = name.rpartition("__")[2] in RESERVED_PARAMETERS
                if is_reserved or (has_budget and is_set_by_budget(self.estimator, name)):
                    raise ValueError(
                        f"{candidates.name} must leave {shown(name)} to the search; got values "
                        "for it."
                    )

    # The plan -------------------------------------------------------------------------------

    def _solve(
        self, n_samples: int, n_features: int | None, classes: Any, is_public: bool
    ) -> Plan:
        self._check_parameters()
        candidates = self._candidates(n_samples, n_features)
        self._check_searched(candidates)
        plan = self._plan_of(candidates, n_samples, n_features, classes, is_public)
        if candidates.suggestion is None:
            return plan
        return self._worth_it(plan, has_model=self._refit() is not False)

    def _plan_of(
        self,
        candidates: Candidates,
        n_samples: int,
        n_features: int | None,
        classes: Any,
        is_public: bool,
    ) -> Plan:
        """Return the plan of a search over candidates."""
        layout = self._layout_of(candidates, n_samples, n_features, is_public)
        delta = self._delta()
        fit_costs = FitCosts(
            self.estimator, candidates, self._extrapolate(), classes, self._is_pure()
        )
        model, cost = self._cost(layout, fit_costs, delta)
        model.check(cost)
        plan = Plan(candidates, model, cost, model.components(cost), self.epsilon)
        self._check_plan(plan)
        return plan

    def _delta(self) -> float:
        return own_delta(self.estimator) if self.delta is None else float(self.delta)

    def _is_pure(self) -> bool:
        """Return whether all fits are set to a delta of 0, whatever the estimator's own is."""
        return self.epsilon is not None and self._delta() == 0.0

    def _layout_of(
        self, candidates: Candidates, n_samples: int, n_features: int | None, is_public: bool
    ) -> Layout:
        """Return how a search over candidates divides the records."""
        replaces = neighbours_replace(self.estimator, candidates, n_samples, n_features)
        return make_layout(
            n_samples,
            n_features,
            cv=self.cv,
            public=is_public,
            tuning_fraction=self._tuning_fraction(candidates, n_samples, replaces),
            variant=self._variant(),
            refit=self._refit(),
            is_random=self.n_public is not None,
            replaces=replaces,
        )

    def _with_classes(self, plan: Plan, classes: Any) -> Plan:
        return plan.with_classes(classes)

    def _labels_set_the_cost(self, n_samples: int, n_features: int | None) -> bool:
        size = n_samples if self.n_public is None else self.n_public
        estimator = make_pure(clone(self.estimator)) if self._is_pure() else self.estimator
        return labels_set_the_cost(estimator, self._candidates(size, n_features))

    def _summary(self, plan: Plan, n_samples: int, compare: bool) -> SearchPlan:
        layout, noise = plan.layout, plan.cost.score_noise
        if plan.declined is not None:
            return self._summary_of_declined(plan, plan.declined, compare)
        scale = 0.0
        if noise.kind != "none":
            scale = noise.ratio * layout.sensitivity(self._scorer())
        return SearchPlan(
            self._report(plan),
            self._row(plan, type(self).__name__),
            tuple(self._alternatives(plan, n_samples)) if compare else (),
            layout.tuning,
            self._runs_in_words(plan),
            scale,
            plan.calibration_in_words,
            self._suggestion_in_words(plan),
            self._advice_in_words(plan),
            distribution=plan.model.n_iter_distribution,
            uses=layout.uses,
        )

    # Running --------------------------------------------------------------------------------

    def _run(self, plan: Plan, data: Data, public: Data | None, tasks: Tasks) -> None:
        if plan.declined is not None:
            self._run_untuned(plan, data, public, tasks)
            return
        state = self._state(plan, data, public)
        state.progress.phase("trying candidates")
        with tasks.task("search", self._public_count(plan)) as subtasks:
            choice = self._choose(replace(state, tasks=subtasks))
        model = None
        if self._refit() is not False:
            state.progress.phase("fitting the winner")
            with tasks.task("final fit"):
                model = self._final_model(state, choice)
        self._publish(plan, choice, model)

    def _run_untuned(self, plan: Plan, data: Data, public: Data | None, tasks: Tasks) -> None:
        candidate = plan.candidates.default or {}
        choice = Choice(candidate, math.nan, None, [{"params": candidate, "score": math.nan}])
        current_progress().phase("fitting the estimator as it is, in place of a search")
        with tasks.task("final fit"):
            model = self._final_model(self._state(plan, data, public), choice)
        self._publish(plan, choice, model)

    def _started(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        params: dict[str, Any],
        *,
        tries: bool = True,
    ) -> SearchState:
        """Return the state of a session, whose cost is set aside in the ledger in use.

        With `tries`, fits are tried on made-up data first.
        """
        # Theorem H4.
        ledger = self._ledger_in_use()
        announce_search(self, X, warns=ledger is None)
        plan, data, public = self._opened(X, y, X_val, y_val, params)
        if tries:
            self._check_fits(plan, data)
        state = self._state(plan, data, public)
        if ledger is None:
            return replace(state, unrecorded=self)
        return replace(state, reservation=self._charge(plan).reserved(ledger))

    def _check_fits(self, plan: Plan, data: Data) -> None:
        """Raise if the fits of several candidates fail on made-up data."""
        model, setting = plan.model, plan.cost.setting
        size = model.final_size if plan.layout.final else model.train_size
        candidates = plan.candidates.some(N_TRIED)
        made = (model.fit_costs.configured(each, setting, size) for each in candidates)
        response = self._scorer().response_method
        check_fits(made, data, plan.layout.n_samples, response)

    def _state(self, plan: Plan, data: Data, public: Data | None) -> SearchState:
        streams = Streams.of(self.random_state)
        layout = plan.layout
        split = random_split(
            data.n_samples,
            layout.validation,
            layout.tuning,
            layout.variant,
            generator_of(streams.random_split),
        )
        return SearchState(plan, data, split, public, streams, current_progress(), NO_TASKS)

    def _fit_and_score(
        self,
        state: SearchState,
        candidates: Sequence[dict[str, Any]],
        on_result: OnResult | None = None,
    ) -> list[Result]:
        """Fit and score candidates in parallel; the results are in their order."""
        plan, streams = state.plan, state.streams
        model, setting = plan.model, plan.cost.run_setting
        model.fit_costs.check(candidates, setting, model.train_size)
        runs = []
        for candidate, seeds in zip(
            candidates, spawned(streams.runs, len(candidates)), strict=True
        ):
            made = model.fit_costs.configured(candidate, setting, model.train_size)
            of_fit, of_noise = spawned(seeds, 2)
            runs.append(Run(made, of_fit, of_noise))
        return perform_runs(
            runs,
            self._material(state),
            n_jobs=self.n_jobs,
            pre_dispatch=self.pre_dispatch,
            on_result=on_result,
        )

    def _material(self, state: SearchState) -> Material:
        layout, noise = state.plan.layout, state.plan.cost.score_noise
        scorer, public = self._scorer(), layout.public
        splits = layout.folds > 0 and self._splits_scores(state.plan)
        n_score = layout.n_score_of_fold if splits else layout.n_score
        scoring = Scoring(
            scorer,
            None if public else n_score,
            0.0 if public else layout.sensitivity(scorer, n_score),
            noise.ratio,
            noise.kind,
        )
        data, split = state.data, state.split
        folds: Sequence[Fold] = ONE_FIT
        if layout.folds:
            rng = generator_of(spawned(state.streams.random_split, 1)[0])
            folds = disjoint_folds(split.tuning.size, layout.folds, rng)
        return Material(
            data.take(split.tuning) if layout.train_share < 1.0 or layout.folds else data,
            folds,
            None if layout.folds else state.validation,
            scoring,
            keeps_models=not layout.folds and self._keeps_models(state.plan),
            raises=self.error_score == "raise",
            splits_scores=splits,
        )

    def _public_count(self, plan: Plan) -> int:
        """Return how many fits of candidates callbacks hear of, 0 where it is secret."""
        return 0

    def _splits_scores(self, plan: Plan) -> bool:
        """Return whether each fold has a noisy score of its own."""
        return False

    def _highest(self, results: Sequence[Result], streams: Streams) -> int:
        """Return the index of the highest score; ties are broken by data-independent marks."""
        # Theorem F4.
        marks = generator_of(streams.pick).random(len(results))
        scores = np.array([result.score for result in results])
        return int(np.lexsort((marks, scores))[-1])

    def _keeps_models(self, plan: Plan) -> bool:
        return self.refit is not False and not plan.layout.final

    def _final_model(self, state: SearchState, choice: Choice) -> Any:
        """Return the model to publish; a data-independent one where a fit failed."""
        if self._refit() is False:
            return None
        plan, model, setting = state.plan, state.plan.model, state.plan.cost.setting
        if not plan.layout.final and choice.model is not None:
            return choice.model
        size = model.final_size if plan.layout.final else model.train_size
        model.fit_costs.check([choice.candidate], setting, size)
        made = model.fit_costs.configured(choice.candidate, setting, size)
        own = own_seeds(made)
        set_seeds(made, state.streams.final)
        # Theorem F9.
        return forget_seeds(self._fitted_final(made, state, choice), own)

    def _fitted_final(self, made: Any, state: SearchState, choice: Choice) -> Any:
        if state.plan.layout.final or state.plan.declined is not None:
            try:
                with Quiet(), np.errstate(all="ignore"):
                    state.data.take(state.split.final).fit(made, **self._start_from(choice.model))
                return made
            except BaseException as problem:
                if self.error_score == "raise" or not is_failure(problem):
                    raise
        return data_independent_model(made, state.data, state.plan.layout.n_samples)

    def _start_from(self, model: Any) -> dict[str, Any]:
        """Return arguments of the final fit that start it from the winner's model."""
        return {}

    # Publishing -----------------------------------------------------------------------------

    def _publish(self, plan: Plan, choice: Choice, model: Any) -> None:
        """Set what may be seen, and delete what an earlier fit left."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.scorer_ = self._scorer()
        self.multimetric_ = False
        self.n_splits_ = plan.layout.folds or 1
        # Copies: what plans were costed for stays out of reach.
        self.best_params_ = copied(choice.candidate)
        self.best_index_ = choice.index
        # Noise may lead out of the bounds; clipping reads no data.
        lower, upper = self.scorer_.lower, self.scorer_.upper
        if not callable(self.refit):
            self.best_score_ = float(np.clip(choice.score, lower, upper))
        if choice.deviation is not None:
            self.best_score_std_ = choice.deviation
        rows = [{**row, "params": copied(row["params"])} for row in choice.rows]
        self.cv_results_ = results_of(rows, lower, upper)
        if model is not None:
            self.best_estimator_ = model
            if hasattr(model, "feature_names_in_"):
                self.feature_names_in_ = model.feature_names_in_
        self.privacy_ = self._report(plan, model)
        if self.diagnostics:
            self.diagnostics_ = deepcopy(choice.diagnostics)

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
            # No data are held out, and no public ones are read.
            sentences = tuple(one for one in sentences if one != PUBLIC_VALIDATION)
        keeps_all = check_flag(self.diagnostics, name="diagnostics")
        return (_NOT_PRIVATE, *sentences) if keeps_all else sentences
