"""Grid search: a fixed public list of candidates, all released or one chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_option
from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms import permute_and_flip_release
from skdptune.model_selection._cost import (
    Cost,
    CostModel,
    CurveSetting,
    FitCosts,
    FitSetting,
    Layout,
    Plan,
    ScoreNoise,
)
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._partition_search import PartitionSearch, choice_model_of
from skdptune.model_selection._running import (
    choice_noise,
    generator_of,
    noise_random,
    permute_and_flip_cost,
    spawned,
)
from skdptune.model_selection._tuning_search import Choice, SearchState

SELECTIONS = ("noisy_max", "compose")


@dataclass(frozen=True)
class CompositionCostModel(CostModel):
    """The cost of fitting and scoring every candidate of a grid, and showing all of it."""

    n_candidates: int = 1

    def selections(
        self, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
    ) -> tuple[PrivacyProfile, PrivacyProfile | None]:
        """Return all runs, for records that train, and for those that score if others do."""
        if isinstance(setting, CurveSetting):
            fits = fit * self.n_candidates
        else:
            fits = self.fit_costs.composed(setting, self.train_size)
        scores = noise.profile * self.n_candidates
        if self.layout.validation > 0.0:
            return fits, scores
        every = fits * max(self.layout.folds - 1, 1)
        return every if noise.kind == "none" else every + scores, None


@with_shared_text(SHARED_TEXT)
class DPGridSearchCV(PartitionSearch):
    """Grid search with differential privacy: one (epsilon, delta) for tuning and training.

    By default the candidates are scored on disjoint partitions of the data, where one record
    counts for little; the best one is chosen through noise, and nothing else is published; and the
    winner is trained privately on all records. The cost does not depend on the number of
    candidates.

    Use it for a fixed list of candidates; `DPRandomSearchCV` mostly tunes at a lower cost.

    Parameters
    ----------
    {estimator}
    param_grid : dict or list of dicts, optional
        From parameter names to lists of values, of the model that is returned.

        {no_space}

        On the default number of partitions that is always so, since the noise of the choice is
        larger than what suggested values gain; a larger `n_partitions` lessens it.
    {budget}
    selection : {"noisy_max", "compose"}, default="noisy_max"
        "noisy_max" publishes the winner alone; "compose" trains every candidate privately
        and publishes all, with their noisy scores, at the cost of all.
    n_partitions : "auto" or int, default="auto"
        Number of disjoint partitions of "noisy_max": more of them mean less noise and fewer
        records to train on. "auto" follows from the budget and the public number of records.
    tuning_estimator : estimator, optional
        Surrogate that is trained on the partitions in place of `estimator`, with the same searched
        parameters: for example scikit-learn's own model. It need not be private. The default is
        `estimator` with the noise that the final fit will have relative to its signal.
    selection_epsilon : float, optional
        What the choice of "noisy_max" may cost; by default a quarter of the total, or all of it
        with ``refit=False``.
    {scoring}
    cv : float or int, default=0.2
        A fraction holds each record out for validation with that chance, by a random draw of its
        own; an integer asks for folds, with "compose" alone. Other than in scikit-learn there are
        no splitters: a split that depends on other records could not be charged for.
    refit : {"winner", True, False}, default="winner"
        With "compose", "winner" returns the winner's own model, at no further cost, and True fits
        it once more on all records. With "noisy_max" both mean the one private fit on all records.
        False returns no model.
    score_epsilon : float, optional
        What a score of "compose" may cost at `delta`.
    {common_parameters}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        The winner's noisy score; NaN with "noisy_max", which publishes no score.
    cv_results_ : dict
        The rows that were paid for: all with "compose", else the winner's parameters.
    best_index_ : int
        The winner's row of `cv_results_`.
    {common_attributes}

    See Also
    --------
    DPRandomSearchCV : Random candidates; tuning on a part of the data costs least of all.

    Notes
    -----
    Neighbours differ by adding or removing one record. The choice is permute-and-flip (McKenna and
    Sheldon 2020), noisy maximum with one-sided exponential noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {"C": [1e-3, 1e-1, 10.0]}, epsilon=1.0, delta=1e-5,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> search.privacy_.epsilon
    1.0
    >>> search.score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        selection: str = "noisy_max",
        n_partitions: Any = "auto",
        tuning_estimator: Any = None,
        selection_epsilon: float | None = None,
        scoring: Any = None,
        cv: Any = 0.2,
        refit: Any = "winner",
        score_epsilon: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: str = "worst",
        random_state: Any = None,
        diagnostics: bool = False,
        n_public: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.selection = selection
        self.n_partitions = n_partitions
        self.tuning_estimator = tuning_estimator
        self.selection_epsilon = selection_epsilon
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.score_epsilon = score_epsilon
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.random_state = random_state
        self.diagnostics = diagnostics
        self.n_public = n_public

    # Candidates -----------------------------------------------------------------------------

    def _space(self) -> tuple[Any, str, bool]:
        return self.param_grid, "param_grid", False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.selection, name="selection", options=SELECTIONS)
        if self._chooses:
            self._check_partition_parameters()
        elif self.tuning_estimator is not None:
            raise ValueError(
                "tuning_estimator must be None with selection='compose', which publishes the "
                "candidates' own models."
            )

    @property
    def _chooses(self) -> bool:
        return self.selection == "noisy_max"

    def _refit(self) -> Any:
        return super()._refit() if self._chooses else self.refit

    # Cost -----------------------------------------------------------------------------------

    def _cost(self, layout: Layout, fit_costs: FitCosts, delta: float) -> tuple[CostModel, Cost]:
        make = self._noisy_max_model if self._chooses else self._composition_model
        model = make(layout, fit_costs, delta)
        return model, model.within(self.epsilon)

    def _noisy_max_model(self, layout: Layout, fit_costs: FitCosts, delta: float) -> CostModel:
        def choice(
            epsilon: float, n_partitions: int, n_score: int | None
        ) -> tuple[PrivacyProfile, PrivacyProfile]:
            noise = choice_noise(epsilon, n_partitions, n_score, monotone=not layout.replaces)
            return permute_and_flip_cost(noise.epsilon), permute_and_flip_cost(noise.of_score)

        note = f"the best of {len(fit_costs.candidates.grid())}, permute-and-flip"
        return self._choice_model(layout, fit_costs, delta, choice, note)

    def _composition_model(self, layout: Layout, fit_costs: FitCosts, delta: float) -> CostModel:
        count = len(fit_costs.candidates.grid())
        return CompositionCostModel(
            layout,
            fit_costs,
            lambda run: run * count,
            delta,
            self.score_epsilon,
            note=f"{count} candidates, all published",
            n_candidates=count,
        )

    def _check_plan(self, plan: Plan) -> None:
        if self._chooses:
            self._check_surrogate(plan, plan.candidates.grid()[0])

    def _number_of_fits(self, plan: Plan) -> tuple[float, float]:
        # A fit on each of k partitions is the work of one fit on all of them.
        fits = float(len(plan.candidates.grid()) * max(plan.layout.folds, 1))
        return fits, fits

    # Run and choose -------------------------------------------------------------------------

    def _choose(self, state: SearchState) -> Choice:
        candidates = list(state.plan.candidates.grid())
        choose = self._noisy_max if self._chooses else self._release_all
        return choose(state, candidates)

    def _release_all(self, state: SearchState, candidates: list[dict[str, Any]]) -> Choice:
        results = self._fit_and_score(state, candidates)
        best = self._highest(results, state.streams)
        rows = [
            {"params": candidate, "score": result.score}
            for candidate, result in zip(candidates, results, strict=True)
        ]
        details = {
            "seconds": [result.seconds for result in results],
            "errors": [result.error for result in results],
        }
        winner = results[best]
        return Choice(candidates[best], winner.score, winner.model, rows, best, details)

    def _noisy_max(self, state: SearchState, candidates: list[dict[str, Any]]) -> Choice:
        model, streams = choice_model_of(state.plan), state.streams
        utilities = self._utilities(
            state,
            candidates,
            generator_of(spawned(streams.random_split, 1)[0]),
            spawned(streams.runs, len(candidates)),
        )
        noise = choice_noise(
            model.choice_epsilon,
            model.n_partitions,
            model.n_score,
            monotone=not state.plan.layout.replaces,
        )
        best = permute_and_flip_release(
            utilities,
            noise.sensitivity,
            model.choice_epsilon,
            random_state=noise_random(streams.pick),
        )
        row = {"params": candidates[best], "score": np.nan}
        return Choice(
            candidates[best], float("nan"), None, [row], diagnostics={"utilities": utilities}
        )
