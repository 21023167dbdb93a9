"""The template of every private search: price, deal, run, select, refit, report."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import (
    process_routing,
)

from skdptune._compat import (
    CallbackSupportMixin,
    Tasks,
    number_of_features,
    number_of_samples,
    tasks_of_fit,
)
from skdptune._validation import check_integer, check_kind, check_option, check_real
from skdptune.accounting import PrivacyProfile, PrivacyReport, UnreachableBudgetError
from skdptune.base._configuring import (
    BUDGET_PARAMETERS,
    RESERVED,
    check_fit_parameters,
    cost_parameters,
    nested,
    own_parameters,
    set_seeds,
)
from skdptune.base._costs import cost_of, has_cost, replaces_records
from skdptune.base._mixin import PUBLIC_LABELS, PUBLIC_SIZE, SEEDED, warn_of_large_delta
from skdptune.metrics import BoundedScorer, get_bounded_scorer
from skdptune.model_selection._cost import (
    COMPOSITIONS,
    Candidates,
    Choice,
    Cost,
    CostModel,
    FitCosts,
    Layout,
    Plan,
    PlanRow,
    SearchPlan,
    copied,
    is_finite,
    make_layout,
    named_in,
    own_delta,
    plan_cache,
    split_for,
)
from skdptune.model_selection._running import (
    PUBLIC_VALIDATION,
    Data,
    Progress,
    Quiet,
    RandomSplit,
    Result,
    Run,
    Scoring,
    Streams,
    WinnerMethods,
    can_be_together,
    check_domain,
    check_form,
    data_independent_model,
    generator_of,
    is_failure,
    is_search,
    parts,
    perform,
    perform_all,
    perform_together,
    public_labels,
    results_of,
    spawned,
)

_NOT_PRIVATE = (
    "NOT PRIVATE: diagnostics=True keeps what no budget pays for; publish nothing of this object"
)
_ADD_OR_REMOVE = "add or remove one record"
_REPLACE = "replace one of a public number of records"
# Parameters that change neither the price nor what is priced.
_IDLE = (
    "n_jobs",
    "pre_dispatch",
    "verbose",
    "random_state",
    "error_score",
    "diagnostics",
)


class BasePrivateSearch(CallbackSupportMixin, MetaEstimatorMixin, WinnerMethods):
    """What all private searches share; subclasses say what is tried, how one wins, and the price.

    A subclass supplies `_candidates`, `_solved_cost` (the price), `_choose` (run and pick) and
    `_runs_of_fits`.
    """

    _is_private_search = True

    # What a subclass supplies ---------------------------------------------------------------

    @abstractmethod
    def _candidates(self) -> Candidates:
        """Return what is searched."""

    @abstractmethod
    def _solved_cost(
        self, layout: Layout, fit_costs: FitCosts, delta: float
    ) -> tuple[CostModel, Cost]:
        """Return the cost model and the cost that meets the budget."""

    @abstractmethod
    def _choose(
        self,
        plan: Plan,
        data: Data,
        split: RandomSplit,
        public: Data | None,
        streams: Streams,
    ) -> Choice:
        """Run the candidates and pick one."""

    @abstractmethod
    def _runs_of_fits(self, plan: Plan) -> tuple[float, float]:
        """Return the expected number of candidates' fits, and the 99 % worst."""

    def _alternatives(self, plan: Plan, n_samples: int) -> list[PlanRow]:
        """Return rows of other ways for the same total: one fit without tuning, if it meets it."""
        row = _untuned_row(plan, self)
        return [] if row is None else [row]

    def _distribution_in_words(self, plan: Plan) -> str:
        return ""

    def _tuning_fraction(self) -> Any:
        return None

    def _variant(self) -> int:
        return 1

    def _extrapolate(self) -> Any:
        return "auto"

    # The price, before data ---------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what the whole search costs, from parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns; needed where the estimator's price depends on it.
        """
        return self._prepare(n_samples, n_features).cost.total

    def plan(
        self,
        n_samples: int,
        n_features: int | None = None,
        *,
        public_validation: bool = False,
        compare: bool = True,
    ) -> SearchPlan:
        """Return what the search will do and cost, before any data are seen.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns; needed where the estimator's price depends on it.
        public_validation : bool, default=False
            Whether public validation data will be given to `fit`.
        compare : bool, default=True
            Whether to solve for the alternatives, too, which takes some seconds.

        Returns
        -------
        SearchPlan
            Prints as a table.
        """
        plan = self._prepare(n_samples, n_features, public=public_validation)
        warn_of_large_delta(plan.delta, plan.layout.n_samples, stacklevel=3)
        others = self._alternatives(plan, n_samples) if compare else []
        layout, noise = plan.layout, plan.cost.score_noise
        scale = 0.0
        if noise.kind != "none":
            scale = noise.ratio * layout.sensitivity(self._scorer())
        return SearchPlan(
            self._report(plan),
            self.row_of(plan, type(self).__name__),
            tuple(others),
            layout.tuning,
            self._distribution_in_words(plan),
            scale,
        )

    def row_of(self, plan: Plan, name: str, runs: tuple[float, float] | None = None) -> PlanRow:
        """Return the plan's row of a search that was solved."""
        layout, cost = plan.layout, plan.cost
        fits, worst = self._runs_of_fits(plan) if runs is None else runs
        noise = _noise_of_final(plan)
        work = fits * layout.n_train / layout.n_samples
        work += layout.final_share if layout.final else 0.0
        return PlanRow(
            name,
            cost.total.epsilon(plan.delta),
            None if cost.budget is None else cost.budget.epsilon,
            noise,
            None if noise is None else noise / layout.final_share,
            fits,
            worst,
            work,
        )

    def _prepare(
        self,
        n_samples: int,
        n_features: int | None,
        *,
        classes: Any = None,
        public: bool = False,
    ) -> Plan:
        """Check all parameters and solve for the budget; nothing here sees data."""
        size = n_samples if self.n_public is None else self.n_public
        settings = {
            name: value for name, value in self.get_params(deep=False).items() if name not in _IDLE
        }
        try:
            found_in = named_in((type(self), settings))
            key = joblib.hash((found_in, settings, size, n_features, classes, public))
        except Exception:
            # What cannot be pickled is solved anew each time.
            key = None
        found = plan_cache.get(key)
        if found is None:
            # Of copies: what a plan holds must stay what it was priced for.
            found = clone(self)._solve(size, n_features, classes, public)
            plan_cache.put(key, found)
        return found

    def _solve(self, n_samples: int, n_features: int | None, classes: Any, public: bool) -> Plan:
        self._check_parameters()
        candidates = self._candidates()
        candidates.check_names(self.estimator)
        self._check_searched(candidates)
        layout = make_layout(
            n_samples,
            n_features,
            cv=self.cv,
            public=public,
            tuning_fraction=self._tuning_fraction(),
            variant=self._variant(),
            refit=self._refit(),
            is_random=self.n_public is not None,
            replaces=self._replaces(candidates, n_samples, n_features),
        )
        delta = own_delta(self.estimator) if self.delta is None else float(self.delta)
        fit_costs = FitCosts(self.estimator, candidates, self._extrapolate(), classes)
        model, cost = self._solved_cost(layout, fit_costs, delta)
        report = model.parts_of(cost)
        plan = Plan(layout, candidates, model, cost, report, self.epsilon, delta)
        self._check_plan(plan)
        return plan

    def _check_plan(self, plan: Plan) -> None:
        """Refuse what can be known to fail before the data are read; a subclass may add to it."""

    def _refit(self) -> Any:
        return self.refit

    def _check_parameters(self) -> None:
        """Refuse bad parameters; a subclass adds its own."""
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise TypeError(
                f"estimator must be an estimator with fit; got {self.estimator!r:.60}."
            )
        if self.epsilon is not None:
            check_real(self.epsilon, name="epsilon", lower=0.0, lower_open=True, upper=500.0)
        if self.delta is not None:
            check_real(self.delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
        if self.score_epsilon is not None:
            check_real(self.score_epsilon, name="score_epsilon", lower=0.0, lower_open=True)
        if self.n_public is not None:
            check_integer(self.n_public, name="n_public", lower=1)
        check_kind(self.diagnostics, name="diagnostics", kind=bool, domain="True or False")
        if self.error_score == "raise" and not self.diagnostics:
            raise ValueError(
                "error_score must be 'worst' unless diagnostics=True; got 'raise'. An exception "
                "tells of the data."
            )
        check_option(self.error_score, name="error_score", options=("worst", "raise"))
        if not isinstance(self.random_state, np.random.Generator | np.random.RandomState):
            Streams.of(self.random_state)
        scorer = self._scorer()
        if not hasattr(self.estimator, scorer.response_method):
            raise TypeError(
                f"scoring must suit the estimator; got {scorer.name!r}, which asks for "
                f"{scorer.response_method}, and {type(self.estimator).__name__} has none."
            )

    def _check_searched(self, candidates: Candidates) -> None:
        for space in candidates:
            for name in space:
                last = name.rpartition("__")[2]
                if last in RESERVED or (last in BUDGET_PARAMETERS and self.epsilon is not None):
                    raise ValueError(
                        f"{candidates.name} must leave {name!r} to the search; got values for it."
                    )

    def _scorer(self) -> BoundedScorer:
        if self.scoring is not None:
            return get_bounded_scorer(self.scoring)
        if is_classifier(self.estimator):
            return get_bounded_scorer("accuracy")
        raise ValueError(
            "scoring must be given for an estimator that is no classifier; got None. R² is not "
            "bounded: use skdptune.metrics.neg_squared_error(bound=...)."
        )

    # Fitting --------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, *, X_val: Any = None, y_val: Any = None, **params: Any
    ) -> Any:
        """Search, and fit the winner.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        y : array-like of shape (n_samples,)
            Targets.
        X_val, y_val : array-like, optional
            Public validation data, whose scores are free; `cv` is then ignored.
        **params
            Passed to the estimator's ``fit``; what has one entry per record is divided with the
            records.

        Returns
        -------
        self
        """
        plan, data, public = self._opened(X, y, X_val, y_val, params)
        with (
            Progress(type(self).__name__, bool(self.verbose)) as progress,
            tasks_of_fit(self, 2, data.X, data.y) as tasks,
        ):
            self._fit(plan, data, public, progress, tasks)
        return self

    def _opened(
        self, X: Any, y: Any, X_val: Any, y_val: Any, params: dict[str, Any]
    ) -> tuple[Plan, Data, Data | None]:
        """Return what is settled beforehand, the data and public validation data, all checked."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together; got one of them.")
        X, y = indexable(X, y)
        self._check_parameters()
        if not _routing_is_on():
            check_fit_parameters(self.estimator, params)
        check_form(self.estimator, X)
        n_samples, n_features = number_of_samples(X), number_of_features(X)
        is_public = X_val is not None
        needs_labels = self._labels_set_the_cost()
        if not needs_labels:
            # Priced before a single record is read.
            plan = self._prepare(n_samples, n_features, public=is_public)
        classes = public_labels(self, y, n_samples)
        if needs_labels:
            plan = self._prepare(n_samples, n_features, classes=classes, public=is_public)
        plan = plan.with_classes(classes)
        check_domain(self, X, y)
        warn_of_large_delta(plan.delta, plan.layout.n_samples, stacklevel=4)
        public = None if X_val is None else Data(X_val, y_val, {}, {})
        return plan, self._data(X, y, params), public

    def _fit(
        self,
        plan: Plan,
        data: Data,
        public: Data | None,
        progress: Progress,
        tasks: Tasks,
    ) -> None:
        streams = Streams.of(self.random_state)
        split = split_for(plan, data, streams)
        progress.phase("trying candidates")
        with tasks.task("search"):
            choice = self._choose(plan, data, split, public, streams)
        progress.phase("fitting the winner")
        with tasks.task("final fit"):
            model = self._final_model(plan, data, split, choice, streams)
        self._publish(plan, choice, model)

    def _final_model(
        self, plan: Plan, data: Data, split: RandomSplit, choice: Choice, streams: Streams
    ) -> Any:
        """Return the model to publish; one that no data touched where a fit failed."""
        if self._refit() is False:
            return None
        size, budget = plan.model.final_size, plan.cost.budget
        if not plan.layout.final:
            if choice.model is not None:
                return choice.model
            size = plan.model.train_size
        plan.model.fit_costs.check([choice.candidate], budget, size)
        made = plan.model.fit_costs.configured(choice.candidate, budget, size)
        set_seeds(made, streams.final)
        if plan.layout.final:
            try:
                with Quiet(), np.errstate(all="ignore"):
                    data.take(split.final).fit(made, **self._start_from(choice.model))
                return made
            except BaseException as problem:
                if self.error_score == "raise" or not is_failure(problem):
                    raise
        return data_independent_model(made, data)

    def _start_from(self, model: Any) -> dict[str, Any]:
        return {}

    def _publish(self, plan: Plan, choice: Choice, model: Any) -> None:
        """Set what may be seen, and forget what an earlier fit left."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.scorer_ = self._scorer()
        self.multimetric_ = False
        self.n_splits_ = plan.layout.folds or 1
        # Copies: what plans were priced for stays out of reach.
        self.best_params_ = copied(choice.candidate)
        self.best_index_ = choice.index
        self.best_score_ = choice.score
        self.cv_results_ = results_of(
            [{**row, "params": copied(row["params"])} for row in choice.rows]
        )
        if model is not None:
            self.best_estimator_ = model
            if hasattr(model, "feature_names_in_"):
                self.feature_names_in_ = model.feature_names_in_
        self.privacy_ = self._report(plan)
        if self.diagnostics:
            self.diagnostics_ = deepcopy(choice.diagnostics)

    def run_all(
        self,
        plan: Plan,
        candidates: list[dict[str, Any]],
        data: Data,
        split: RandomSplit,
        public: Data | None,
        streams: Streams,
    ) -> list[Result]:
        """Fit and score candidates in parallel; the results are in their order."""
        layout, model, cost = plan.layout, plan.model, plan.cost
        model.fit_costs.check(candidates, cost.budget, model.train_size)
        runs = []
        for candidate, seeds in zip(
            candidates, spawned(streams.runs, len(candidates)), strict=True
        ):
            made = model.fit_costs.configured(candidate, cost.budget, model.train_size)
            of_fit, of_noise = spawned(seeds, 2)
            runs.append(Run(made, of_fit, of_noise))
        tuning = data.take(split.tuning) if layout.train_share < 1.0 or layout.folds else data
        folds: list[tuple[Any, Any]] = [(None, None)]
        if layout.folds:
            rng = generator_of(spawned(streams.random_split, 1)[0])
            held = parts(np.arange(split.tuning.size), layout.folds, rng)
            everyone = np.arange(split.tuning.size)
            folds = [(np.setdiff1d(everyone, part), part) for part in held]
        validation = public if layout.public else data.take(split.validation)
        noise = cost.score_noise
        scoring = Scoring(
            self._scorer(),
            None if layout.public else layout.n_score,
            0.0 if layout.public else layout.sensitivity(self._scorer()),
            noise.ratio,
            noise.kind,
        )
        keep = not layout.folds and self._keeps_models(plan)
        raises = self.error_score == "raise"
        if can_be_together([run.estimator for run in runs], tuning):
            return perform_together(runs, tuning, folds, validation, scoring, keep, raises)
        return perform_all(
            perform,
            runs,
            tuning,
            folds,
            validation,
            scoring,
            keep,
            raises,
            n_jobs=self.n_jobs,
            pre_dispatch=self.pre_dispatch,
        )

    def highest(self, results: list[Result], streams: Streams) -> int:
        """Return the index of the highest score; ties are broken by marks that no data touched."""
        marks = generator_of(streams.pick).random(len(results))
        return int(np.lexsort((marks, [result.score for result in results]))[-1])

    def _keeps_models(self, plan: Plan) -> bool:
        return self.refit is not False and not plan.layout.final

    def _labels_set_the_cost(self) -> bool:
        """Say whether the price may depend on a label set that nobody has named yet."""
        unnamed = [
            part
            for _, part in nested(self.estimator)
            if own_parameters(part).get("classes", ()) is None
        ]
        candidates = self._candidates()
        if any("classes" in getattr(part, "cost_parameters", ("classes",)) for part in unnamed):
            return True
        # Other values of what sets the price may make it depend on the labels, too.
        varied = any(cost_parameters(self.estimator, list(space)) for space in candidates)
        return varied and (bool(unnamed) or self._searches_steps(candidates))

    def _searches_steps(self, candidates: Candidates) -> bool:
        own = self.estimator.get_params(deep=True)
        return any(hasattr(own.get(name), "get_params") for space in candidates for name in space)

    def _replaces(self, candidates: Candidates, n_samples: int, n_features: int | None) -> bool:
        """Say whether neighbours differ by replacing a record; refuse a mixture of relations."""
        steps = [
            step
            for space in candidates
            for values in space.values()
            if is_finite(values)
            for step in values
            if hasattr(step, "get_params")
        ]
        parts = [part for step in (self.estimator, *steps) for _, part in nested(step)]
        kinds = {replaces_records(part) for part in parts}
        if True not in kinds:
            return False
        # What costs nothing is of either kind, and compositions are what they hold.
        if any(_adds_records(part, n_samples, n_features) for part in parts):
            raise TypeError(
                "estimator must hold private steps of one kind; got some whose guarantee is about "
                "adding or removing a record, and some about replacing one."
            )
        return True

    def _data(self, X: Any, y: Any, params: dict[str, Any]) -> Data:
        """Return the data, with what is passed on to the estimator's fit."""
        if _routing_is_on():
            params = dict(process_routing(self, "fit", **params).estimator.fit)
        n_samples = number_of_samples(X)
        per_record = {
            name: value
            for name, value in params.items()
            if hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n_samples
        }
        constant = {name: value for name, value in params.items() if name not in per_record}
        return Data(X, y, per_record, constant)

    # The report -----------------------------------------------------------------------------

    def _report(self, plan: Plan) -> PrivacyReport:
        cost = plan.cost
        return PrivacyReport(
            cost.total,
            plan.delta,
            epsilon=plan.asked,
            name=type(self).__name__,
            parts=plan.parts,
            assumptions=self._assumptions(plan),
            neighbouring=_REPLACE if plan.layout.replaces else _ADD_OR_REMOVE,
            bound=plan.model.bound,
        )

    def _assumptions(self, plan: Plan) -> tuple[str, ...]:
        sentences = [PUBLIC_SIZE]
        if is_classifier(self.estimator):
            sentences.append(PUBLIC_LABELS)
        if plan.layout.public:
            sentences.append(PUBLIC_VALIDATION)
        if self.random_state is not None:
            sentences.append(SEEDED)
        if self.diagnostics:
            sentences.insert(0, _NOT_PRIVATE)
        return tuple(sentences)


def _adds_records(part: Any, n_samples: int, n_features: int | None) -> bool:
    """Say whether a part has a price that is about adding or removing a record."""
    if replaces_records(part) or not has_cost(part) or isinstance(part, COMPOSITIONS):
        return False
    if is_search(part):
        return False
    try:
        return cost_of(part, n_samples, n_features).epsilon(0.0) > 0.0
    except (TypeError, ValueError):
        # Its parameters may be what is searched.
        return True


def _routing_is_on() -> bool:
    from sklearn import get_config

    return bool(get_config()["enable_metadata_routing"])


def _noise_of_final(plan: Plan) -> float | None:
    """Return the noise of the returned model's fit, if the estimator tells."""
    model = plan.model
    size = model.final_size if plan.layout.final else model.train_size
    made = model.fit_costs.configured({}, plan.cost.budget, size)
    tell = getattr(made, "noise_level", None)
    return None if tell is None else float(tell(size.n_samples, size.n_features))


def _untuned_row(plan: Plan, search: BasePrivateSearch) -> PlanRow | None:
    """Return the row of one fit of the estimator, without tuning, for the same total."""
    layout = replace(plan.layout, validation=0.0, folds=0, public=True, tuning=None, final=False)
    model = CostModel(layout, plan.model.fit_costs, lambda run: run, plan.delta, None, "", None)
    try:
        cost = model.within(plan.asked)
    except UnreachableBudgetError:
        return None
    alone = replace(plan, layout=layout, model=model, cost=cost)
    return search.row_of(alone, "one fit, untuned", (1.0, 1.0))
