"""Searches that publish every candidate's noisy score, and fit the one they choose from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from skdptune._validation import check_option, check_real
from skdptune.model_selection._choosing import TableChoice, TableOutlook, choose_from_table, encode
from skdptune.model_selection._cost import (
    Candidates,
    CompositionCostModel,
    FitCosts,
    Layout,
    Plan,
    PlanRow,
    TableCostModel,
    holds_step,
    noise_limit,
    table_noise,
    tuning_fraction_of_table,
)
from skdptune.model_selection._running import Result, results_of
from skdptune.model_selection._tuning_search import Choice, SearchState, TuningSearch

_SAYS_LITTLE = "The table cannot be expected to tell the candidates apart"
_KEEP_OWN = (
    "With the estimator's own parameters among the candidates, these are kept unless another is "
    "clearly better."
)
_LARGEST_LIMIT = 100.0

ModelT = TypeVar("ModelT", bound=TableCostModel)


class TableSearch(TuningSearch):
    """Base of the searches that pay for all that they try, and so may show it.

    Notes
    -----
    Theorem T8.
    """

    noise_limit: float | str
    tuning_fraction: Any
    choose: str

    def _check_table_parameters(self) -> None:
        """Refuse bad values of the parameters about tables."""
        check_option(self.choose, name="choose", options=("posterior", "max"))
        if not (isinstance(self.noise_limit, str) and self.noise_limit == "auto"):
            check_real(
                self.noise_limit,
                name="noise_limit",
                lower=1.0,
                lower_open=True,
                upper=_LARGEST_LIMIT,
                hint="It is the noise of the final fit over that of a fit without tuning.",
            )
        if not isinstance(self.tuning_fraction, str) and self.tuning_fraction is not None:
            check_real(
                self.tuning_fraction,
                name="tuning_fraction",
                lower=0.0,
                upper=1.0,
                lower_open=True,
                upper_open=True,
            )
        elif self.tuning_fraction is not None:
            check_option(self.tuning_fraction, name="tuning_fraction", options=("auto",))

    # Candidates -----------------------------------------------------------------------------

    def _with_own(self, candidates: Candidates) -> Candidates:
        """Return the candidates of a grid and, before them, the estimator's own values."""
        listed = list(candidates.grid())
        if own_place(self.estimator, listed) is not None:
            return candidates
        own = self._own_values(sorted({name for each in listed for name in each}))
        if own is None:
            return candidates
        own_space = {name: [value] for name, value in own.items()}
        return Candidates([own_space, *candidates.spaces], name=candidates.name, drawn=False)

    def _own_values(self, names: Sequence[str]) -> dict[str, Any] | None:
        """Return the estimator's own values of parameters, None where they are no candidate."""
        known = self._known_values()
        own = {name: known[name] for name in names if name in known}
        # Placeholders of steps are no candidates.
        has_placeholders = any(holds_step([value]) for value in own.values())
        return None if len(own) < len(names) or has_placeholders else own

    def _known_values(self) -> dict[str, Any]:
        """Return the estimator's parameters, none of what is no estimator."""
        is_estimator = hasattr(self.estimator, "get_params") and not isinstance(
            self.estimator, type
        )
        return dict(self.estimator.get_params(deep=True)) if is_estimator else {}

    # Cost -----------------------------------------------------------------------------------

    def _fraction_of_table(self, n_candidates: int, n_samples: int, replaces: bool) -> Any:
        """Return the share of the records for candidates' fits, None for all of them."""
        if self.tuning_fraction != "auto":
            return self.tuning_fraction
        return None if replaces else tuning_fraction_of_table(n_candidates, n_samples)

    def _limit(self, epsilon: float, layout: Layout) -> float:
        """Return the noise of the final fit over that of an untuned fit."""
        if isinstance(self.noise_limit, str):
            return noise_limit(epsilon, layout.n_samples)
        return float(self.noise_limit)

    def _table_model(
        self,
        layout: Layout,
        fit_costs: FitCosts,
        delta: float,
        n_candidates: int,
        kind: type[ModelT],
    ) -> ModelT:
        """Return the cost model, of some kind, of a table and of one fit after it."""
        noise = None
        if self.epsilon is not None and layout.final:
            limit = self._limit(self.epsilon, layout)
            noise = table_noise(self.epsilon, delta, n_candidates, layout, limit)
        return kind(
            layout,
            fit_costs,
            lambda run: run * n_candidates,
            delta,
            self.score_epsilon,
            note=f"{n_candidates} candidates, all scores published",
            n_candidates=n_candidates,
            fit_noise=1.0 if noise is None else noise.fit,
            score_noise=1.0 if noise is None else noise.score,
        )

    # Run and choose -------------------------------------------------------------------------

    def _fit_and_show(
        self, state: SearchState, candidates: Sequence[dict[str, Any]]
    ) -> list[Result]:
        """Fit and score candidates, and show each noisy score as soon as it is known."""
        count = len(candidates)
        scorer = self._scorer()
        state.progress.count(0, count)

        def show(place: int, result: Result) -> None:
            state.progress.count(place + 1, count)
            for _ in range(max(state.plan.layout.folds, 1)):
                with state.tasks.task("candidate"):
                    pass
            if (self.verbose or 0) > 1:
                score = float(np.clip(result.score, scorer.lower, scorer.upper))
                words = ", ".join(f"{name}={value}" for name, value in candidates[place].items())
                state.progress.line(f"[{place + 1}/{count}] {words}; score={score:.3f}")

        return self._fit_and_score(state, candidates, show)

    def _public_count(self, plan: Plan) -> int:
        model = plan.model
        if not isinstance(model, CompositionCostModel):
            return 0
        return model.n_candidates * max(plan.layout.folds, 1)

    def _splits_scores(self, plan: Plan) -> bool:
        return isinstance(plan.model, TableCostModel)

    def _chosen(
        self, state: SearchState, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> Choice:
        """Return the choice from a table of results, by nothing but what is published of it."""
        # Theorem T8.
        scorer = self._scorer()
        rows = [
            {
                "params": candidate,
                "score": result.score,
                "splits": result.splits,
                "deviation": self._deviation(state.plan),
            }
            for candidate, result in zip(candidates, results, strict=True)
        ]
        best, deviation = self._highest(results, state.streams), None
        score = results[best].score
        if callable(self.refit):
            table = results_of(rows, scorer.lower, scorer.upper)
            best = _index_from(self.refit, table, len(rows))
            score = results[best].score
        elif self._has_posterior(state.plan):
            found = self._posterior(state, candidates, results)
            # What estimators suggest is near their own values, and safe: there the largest score
            # gains more, and loses nothing (docs/defaults.md).
            best = found.index if state.plan.candidates.suggestion is None else best
            score, deviation = float(found.mean[best]), float(found.std[best])
        details = {}
        if self.diagnostics:
            details = {
                "seconds": [result.seconds for result in results],
                "errors": [result.error for result in results],
            }
        return Choice(candidates[best], score, results[best].model, rows, best, details, deviation)

    def _has_posterior(self, plan: Plan) -> bool:
        return self.choose == "posterior" and isinstance(plan.model, TableCostModel)

    def _posterior(
        self, state: SearchState, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> TableChoice:
        """Return what the scores say of all candidates, and which to fit."""
        # Theorem N5.
        plan, scorer = state.plan, self._scorer()
        own = plan.candidates.default
        n_score = None if state.public is None else state.public.n_samples
        outlook = self._outlook(plan, n_score)
        return choose_from_table(
            encode(candidates),
            np.array([result.score for result in results]),
            self._deviation_of_mean(plan),
            own_place(self.estimator, candidates)
            if own is None or own not in candidates
            else candidates.index(own),
            run_deviation=outlook.run_deviation * (scorer.upper - scorer.lower),
        )

    def _outlook(self, plan: Plan, n_score: int | None = None) -> TableOutlook:
        """Return what the plan's scores can be expected to show."""
        layout, model = plan.layout, plan.model
        times = model.fit_noise if isinstance(model, TableCostModel) else 1.0
        scorer = self._scorer()
        spread = scorer.upper - scorer.lower
        # How many public records there are is not known before `fit`.
        guess = max(layout.n_samples // 5, 1) if layout.public else layout.n_score
        return TableOutlook(
            layout.n_samples,
            plan.total.epsilon(plan.delta) if plan.asked is None else plan.asked,
            times / layout.train_share,
            guess if n_score is None else n_score,
            self._deviation_of_mean(plan) / spread,
        )

    def _reason_against(self, plan: Plan, untuned: PlanRow) -> str:
        if isinstance(plan.model, TableCostModel):
            return self._outlook(plan).reason_against
        return super()._reason_against(plan, untuned)

    def _advice_in_words(self, plan: Plan) -> str:
        words = super()._advice_in_words(plan)
        if words or not isinstance(plan.model, TableCostModel):
            return words
        outlook, is_given = self._outlook(plan), plan.candidates.suggestion is None
        # What is suggested is chosen from by the largest score.
        reason = outlook.reason_to_keep if is_given else outlook.reason_against
        return f"{_SAYS_LITTLE}, since {reason}. {_KEEP_OWN}" if reason else ""

    def _deviation_of_mean(self, plan: Plan) -> float:
        """Return the standard deviation of the noise on the mean over splits."""
        return self._deviation(plan) / math.sqrt(max(plan.layout.folds, 1))

    def _deviation(self, plan: Plan) -> float:
        """Return the standard deviation of the noise on the score of one split."""
        layout, noise, scorer = plan.layout, plan.cost.score_noise, self._scorer()
        if noise.kind == "none":
            return 0.0
        n_score = layout.n_score_of_fold if self._splits_scores(plan) else layout.n_score
        scale = noise.ratio * layout.sensitivity(scorer, n_score)
        return scale if noise.kind == "gaussian" else scale * float(np.sqrt(2.0))


def _index_from(refit: Callable[[dict[str, Any]], Any], table: dict[str, Any], count: int) -> int:
    """Return the index that the user's function chooses from a table."""
    index = refit(table)
    hint = "A callable must return the index of a candidate in cv_results_."
    # As in scikit-learn, in kinds of errors and in their words.
    if isinstance(index, bool) or not isinstance(index, int | np.integer):
        raise TypeError(
            f"refit: best_index_ returned is not an integer; got {type(index).__name__}. {hint}"
        )
    if not 0 <= index < count:
        raise IndexError(
            f"refit: best_index_ index out of range; got {index} of {count} candidates. {hint}"
        )
    return int(index)


def own_place(estimator: Any, candidates: Sequence[dict[str, Any]]) -> int | None:
    """Return which of the candidates is the estimator as it is, None if none is."""
    own = estimator.get_params(deep=True)
    for place, candidate in enumerate(candidates):
        if all(name in own and _is_same(value, own[name]) for name, value in candidate.items()):
            return place
    return None


def _is_same(first: Any, second: Any) -> bool:
    if first is second:
        return True
    try:
        return type(first) is type(second) and bool(first == second)
    except (TypeError, ValueError):
        return False
