"""Grid search: a fixed public list of candidates, all released or one chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._validation import check_flag, check_option
from skdptune.accounting import PrivacyProfile
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import permute_and_flip_release
from skdptune.model_selection._cost import (
    Candidates,
    ChoiceCostModel,
    CompositionCostModel,
    Cost,
    CostModel,
    FitCosts,
    Layout,
    Plan,
    TableCostModel,
    split_of,
    table_noise,
)
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._other_ways import WAYS, MakeSearch, listed
from skdptune.model_selection._partition_search import PartitionSearch, choice_model_of
from skdptune.model_selection._running import (
    choice_noise,
    generator_of,
    noise_random,
    permute_and_flip_cost,
    spawned,
)
from skdptune.model_selection._table_search import TableSearch
from skdptune.model_selection._tuning_search import Choice, SearchState

_TABLE = "full table (DPGridSearchCV)"
_NOISY_MAX = "noisy maximum (DPGridSearchCV)"
SELECTIONS = ("auto", "table", "noisy_max", "compose")
# Noise of a table's fits beside their records, over that of the final fit: with more noise than
# this they say little of the candidates.
_LARGEST_NOISE = 40.0


@with_shared_text(SHARED_TEXT)
class DPGridSearchCV(TableSearch, PartitionSearch):
    """Grid search with differential privacy: one (epsilon, delta) for tuning and training.

    By default every candidate is fitted and scored with a lot of noise, all noisy scores are
    shown, and the chosen candidate is fitted on all records with nearly all of the budget: the
    table takes 2 to 5 % more noise. With very many candidates, or where none can be fitted with
    more noise, they are scored on disjoint partitions of the data, and the best one is chosen
    through noise; nothing else is published then.

    Parameters
    ----------
    {estimator}
    param_grid : dict or list of dicts, optional
        From parameter names to lists of values, of the model that is returned.

        {no_space}
    {budget}
    selection : {"auto", "table", "noisy_max", "compose"}, default="auto"
        "table" publishes the noisy scores of all candidates, whose fits get as much more noise as
        `noise_limit` asks for, and then fits the chosen one. "noisy_max" publishes the choice
        alone, whose cost does not depend on the number of candidates. "compose" gives
        each candidate's fit the same noise, and publishes all models that way.
        "auto" is "table" where that can tell candidates apart, by public numbers; it is
        "noisy_max" where not, without `epsilon`, without a delta, and where `n_partitions`,
        `tuning_estimator` or `selection_epsilon` is given.
    noise_limit : "auto" or float, default="auto"
        With "table", the noise of the final fit over that of a fit without tuning, more than 1:
        what the table may cost. "auto" follows from epsilon and the public number of records,
        between 1.02 on few and 1.05 on many, where that little noise loses nothing.
    tuning_fraction : "auto", float or None, default="auto"
        With "table", the chance of each record to be used for the candidates' fits; None for all
        that are not held out for validation. "auto" is None up to 25 candidates. A smaller part
        saves time alone: candidates can be told apart best on all records, with more noise.
    try_own_values : bool, default=True
        With "table", whether the estimator's own values of the searched parameters are tried as
        well, in the first row of ``cv_results_``, where `param_grid` lacks them: what a table full
        of noise falls back to. Not where `refit` is a callable.
    choose : {"posterior", "max"}, default="posterior"
        How "table" chooses: by the posterior mean of a Gaussian process over the parameters,
        that knows the noise of the scores and falls back to the estimator's own values where
        the noise hides which is better; or the largest score. Without a space the largest score
        decides either way, since all suggested values are safe ones.
    n_partitions : "auto" or int, default="auto"
        Number of disjoint partitions of "noisy_max": more of them mean less noise and fewer
        records to train on. "auto" follows from the budget and the public number of records.
    tuning_estimator : estimator, optional
        With "noisy_max", a surrogate that is trained on the partitions in place of `estimator`,
        with the same searched parameters: for example scikit-learn's own model. It need not be
        private. The default is `estimator` with the noise that the final fit will have relative
        to its signal.
    selection_epsilon : float, optional
        What the choice of "noisy_max" may cost; by default a quarter of the total, or all of it
        with ``refit=False``.
    {scoring}
    cv : float, int or splitter, default=0.2
        A fraction holds each record out for validation with that chance, by a random draw of its
        own. An integer asks for folds, which each record joins by a random draw of its own; not
        with "noisy_max". Of scikit-learn's splitters, KFold is taken for its number of folds and
        ShuffleSplit with one split for its fraction; a split that depends on other records could
        not be charged for.
    refit : {"winner", True, False} or callable, default="winner"
        "winner" and True mean the one fit of the chosen candidate on all records. With "compose",
        "winner" returns the candidate's own model, at no further cost. False returns no model. A
        callable chooses, with "table" and "compose": it gets ``cv_results_``, which is paid for,
        and returns the index of a candidate.
    score_epsilon : float, optional
        What a score of "table" or "compose" may cost at `delta`.
    {common_parameters}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        With "table", the posterior mean of the chosen candidate's score, or its noisy score with
        ``choose="max"``; its noisy score with "compose"; NaN with "noisy_max", which publishes no
        score. Not available where `refit` is a callable.
    best_score_std_ : float
        Standard deviation of that posterior; with "table" and ``choose="posterior"``.
    cv_results_ : dict
        With "table" and "compose", one row for each candidate, as in scikit-learn but for times,
        which can depend on a record: parameters, noisy scores (of each fold, if there are folds),
        and in ``std_test_score`` the deviation of the noise, or of the folds' noisy scores. With
        "noisy_max", the winner's parameters.
    best_index_ : int
        The winner's row of `cv_results_`.
    {common_attributes}

    See Also
    --------
    DPRandomSearchCV : A random number of candidates, of which the best alone is shown.

    Notes
    -----
    Neighbours differ by adding or removing one record. Theorem T8 for "table". The choice of
    "noisy_max" is permute-and-flip (McKenna and Sheldon 2020), noisy maximum with one-sided
    exponential noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=20_000) > 0
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {"C": [1e-5, 1e-1, 10.0]}, epsilon=1.0, delta=1e-5,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> search.privacy_.epsilon
    1.0
    >>> search.cv_results_["param_C"].tolist()
    [None, 1e-05, 0.1, 10.0]
    >>> search.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        selection: str = "auto",
        noise_limit: Any = "auto",
        tuning_fraction: Any = "auto",
        try_own_values: bool = True,
        choose: str = "posterior",
        n_partitions: Any = "auto",
        tuning_estimator: Any = None,
        selection_epsilon: float | None = None,
        scoring: Any = None,
        cv: Any = 0.2,
        refit: Any = "winner",
        score_epsilon: float | None = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        pre_dispatch: Any = "2*n_jobs",
        error_score: str = "worst",
        random_state: Any = None,
        diagnostics: bool = False,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.selection = selection
        self.noise_limit = noise_limit
        self.tuning_fraction = tuning_fraction
        self.try_own_values = try_own_values
        self.choose = choose
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
        self.ledger = ledger

    # Candidates -----------------------------------------------------------------------------

    def _space(self) -> tuple[Any, str, bool]:
        return self.param_grid, "param_grid", False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.selection, name="selection", options=SELECTIONS)
        self._check_table_parameters()
        check_flag(self.try_own_values, name="try_own_values")
        chooses = self.selection == "noisy_max" or self._asks_for_partitions()
        self._check_partition_parameters(folds=not chooses)
        if self.tuning_estimator is not None and self.selection in ("table", "compose"):
            raise ValueError(
                f"tuning_estimator must be None with selection={shown(self.selection)}, which "
                "fits the candidates themselves."
            )
        if callable(self.refit) and chooses:
            raise ValueError(
                "refit must be 'winner', True or False with selection='noisy_max', which "
                "publishes no scores; got a callable."
            )

    def _asks_for_partitions(self) -> bool:
        """Return whether "auto" is the choice by partitions, by its own parameters."""
        return self.selection == "auto" and not (
            isinstance(self.n_partitions, str)
            and self.tuning_estimator is None
            and self.selection_epsilon is None
        )

    def _refit(self) -> Any:
        if callable(self.refit):
            return True
        return self.refit if self.selection == "compose" else super()._refit()

    # Cost -----------------------------------------------------------------------------------

    # What "auto" is, in the copy that makes a plan.
    _way = ""

    def _plan_of(
        self,
        candidates: Candidates,
        n_samples: int,
        n_features: int | None,
        classes: Any,
        is_public: bool,
    ) -> Plan:
        sizes = n_samples, n_features, classes, is_public
        self._way = "table"
        if self.selection == "table" or (self.selection == "auto" and self._can_be_table()):
            plan = self._plan_of_table(candidates, *sizes)
            if plan is not None:
                return plan
        self._way = "noisy_max" if self.selection == "auto" else self.selection
        if self.selection == "auto":
            self._check_partition_parameters()
        return super()._plan_of(candidates, *sizes)

    def _plan_of_table(
        self,
        candidates: Candidates,
        n_samples: int,
        n_features: int | None,
        classes: Any,
        is_public: bool,
    ) -> Plan | None:
        """Return the plan of a table, None where "auto" is something else."""
        layout = self._layout_of(candidates, n_samples, n_features, is_public)
        is_asked_for = self.selection == "table" or layout.folds > 0 or callable(self.refit)
        if not is_asked_for and not self._tells_apart(layout, len(candidates.grid())):
            return None
        problem: ValueError | None = None
        tries_own = self.try_own_values and not callable(self.refit)
        with_own = self._with_own(candidates) if tries_own else candidates
        # Some estimators cannot be fitted with that much noise, or not with their own values.
        for tried in [with_own, candidates] if with_own is not candidates else [candidates]:
            try:
                return super()._plan_of(tried, n_samples, n_features, classes, is_public)
            except ValueError as error:
                problem = error
        if is_asked_for and problem is not None:
            raise problem
        return None

    def _can_be_table(self) -> bool:
        if self._asks_for_partitions():
            return False
        has_total = self.epsilon is not None and self._delta() > 0.0
        return has_total or bool(split_of(self.cv)[1]) or callable(self.refit)

    def _tells_apart(self, layout: Layout, n_candidates: int) -> bool:
        """Return whether a table's scores say something of candidates, by public numbers."""
        if self.epsilon is None or not layout.final:
            return True
        noise = table_noise(
            self.epsilon, self._delta(), n_candidates, layout, self._limit(self.epsilon, layout)
        )
        return noise is not None and noise.fit / layout.train_share <= _LARGEST_NOISE

    def _tuning_fraction(self, candidates: Candidates, n_samples: int, replaces: bool) -> Any:
        if self._way != "table":
            return None
        return self._fraction_of_table(len(candidates.grid()), n_samples, replaces)

    def _variant(self) -> int:
        # Of a table, the part is seen with much noise alone.
        return 2

    def _cost(self, layout: Layout, fit_costs: FitCosts, delta: float) -> tuple[CostModel, Cost]:
        model: CostModel
        if self._way == "table":
            count = len(fit_costs.candidates.grid())
            table = self._table_model(layout, fit_costs, delta, count, TableCostModel)
            if self.epsilon is not None and layout.final:
                return table.solved(self.epsilon, self._limit(self.epsilon, layout))
            model = table
        elif self._way == "compose":
            model = self._composition_model(layout, fit_costs, delta)
        else:
            model = self._noisy_max_model(layout, fit_costs, delta)
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

    def _way_in_words(self, plan: Plan) -> str:
        return _NOISY_MAX if isinstance(plan.model, ChoiceCostModel) else _TABLE

    def _shows(self, plan: Plan) -> str:
        if isinstance(plan.model, ChoiceCostModel):
            return "the winner"
        return "all scores" if isinstance(plan.model, TableCostModel) else "all scores and models"

    def _check_plan(self, plan: Plan) -> None:
        if isinstance(plan.model, ChoiceCostModel):
            self._check_surrogate(plan, plan.candidates.grid()[0])

    def _number_of_fits(self, plan: Plan) -> tuple[float, float]:
        # A fit on each of k partitions is the work of one fit on all of them.
        fits = float(len(plan.candidates.grid()) * max(plan.layout.folds, 1))
        return fits, fits

    # Run and choose -------------------------------------------------------------------------

    def _choose(self, state: SearchState) -> Choice:
        candidates = list(state.plan.candidates.grid())
        if isinstance(state.plan.model, ChoiceCostModel):
            return self._noisy_max(state, candidates)
        results = self._fit_and_show(state, candidates)
        return self._chosen(state, candidates, results)

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


def _as_grid(selection: str) -> MakeSearch:
    def make(estimator: Any, candidates: Candidates, count: int, shared: dict[str, Any]) -> Any:
        return DPGridSearchCV(estimator, listed(candidates, count), selection=selection, **shared)

    return make


WAYS[_TABLE], WAYS[_NOISY_MAX] = _as_grid("table"), _as_grid("noisy_max")
