"""Random search: a random number of independent candidates, of which the best wins."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._validation import check_flag, check_option
from skdptune.accounting import (
    BOUNDS,
    PrivacyProfile,
    RunCountDistribution,
    UnreachableBudgetError,
)
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection._cost import (
    DEFAULT_SHARE,
    Candidates,
    Cost,
    CostModel,
    FitCosts,
    Layout,
    Plan,
    PlanRow,
    candidate_distributions,
    runs_at_most,
    split_of,
)
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._other_ways import WAYS, listed
from skdptune.model_selection._running import generator_of, spawned
from skdptune.model_selection._tuning_search import Choice, SearchState, TuningSearch

# Distributions whose totals differ by less than this share cost the same.
_TIE = 1e-2
_RARELY = 0.05


@with_shared_text(SHARED_TEXT)
class DPRandomSearchCV(TuningSearch):
    """Randomized search with differential privacy: one (epsilon, delta) for tuning and training.

    A random number of candidates, drawn independently, are trained and scored privately; the
    one of highest noisy score wins. By default they are trained on a small random part of the
    data, and the winner on the rest, which costs hardly more than a single untuned fit.

    Use it by default.

    Parameters
    ----------
    {estimator}
    param_distributions : dict or list of dicts, optional
        From parameter names to lists or distributions (objects with ``rvs``). Every candidate is
        drawn afresh, from lists with replacement, as the theorems require. The values are those
        of the model that is returned; runs on fewer records scale them, see `extrapolate`.

        {no_space}

        A third of the draws are then the estimator as it is. That it is among the candidates is
        not certain, as their number is random: with 10 of them on average and "auto", the chance
        is 90 %. `plan` states it.
    n_iter : float, default=10
        Mean number of candidates. Other than in scikit-learn the number itself is random and
        stays secret: that is what makes the search cheap.
    n_iter_distribution : str or RunCountDistribution, default="auto"
        Distribution of the number of candidates: "geometric", "logarithmic", "negative_binomial",
        "concentrated", "poisson", "binomial", or a distribution of `skdptune.accounting`. "auto"
        takes, of those that make less than a tenth of the mean in 5 % of cases at most, the one
        that leaves most to the fits, and of those within one percent the one that is least likely
        to make few runs. "poisson" never makes few, and costs a little more.
    bound : {"envelope", "profile", "rdp", "best"}, default="envelope"
        The theorem by which the cost of the selection is computed; the others are there for
        comparison.
    tuning_fraction : "auto", float or None, default="auto"
        Chance of each record to be used for tuning. "auto" takes the least of 5 and 10 % that
        leaves 1,000 records, by the public number of records, else 20 % if that leaves 200, else
        None. None tunes on all records that are not held out for validation.
    variant : {1, 2}, default=1
        With a `tuning_fraction`: the final fit leaves out the tuning records (1), or uses all (2).
    extrapolate : {"auto", "linear"}, None or callable, default="auto"
        How a candidate's parameters are changed for runs on fewer records than the final fit
        has. Batches keep their share of the records. "linear" is the rule of the subsampling
        paper: the learning rate of noisy gradient descent shrinks in proportion to the records,
        that of Adam stays. "auto" shrinks it by the root of that, which did better (see the
        benchmarks). A callable ``rule(params, n_tune, n_final)`` returns further parameters
        for the runs.
    {budget}
    at_least : tuple of (int, float), optional
        ``(k, chance)``: instead of `n_iter`, at least k candidates with this chance.
    warm_start : bool, default=False
        Whether the final fit starts from the winning run's model, for estimators that can.
    {scoring}
    cv : float or int, default=0.2
        A fraction holds each record out for validation with that chance, by a random draw of its
        own; an integer asks for folds. Other than in scikit-learn there are no splitters: a split
        that depends on other records could not be charged for.
    refit : {"winner", True, False}, default="winner"
        "winner" returns the winning run's own model, at no further cost; True fits it once more on
        all records; False returns none. With a `tuning_fraction`, "winner" and True both
        mean the final fit that `variant` describes.
    score_epsilon : float, optional
        What a score may cost at `delta`. By default as much as makes its noise half of what
        chance makes of a score, between 3 and 20 % of what a fit may cost.
    {common_parameters}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        The winning run's noisy score.
    cv_results_ : dict
        The one row that was paid for: the winner's.
    best_index_ : int
        Its row, 0.
    {common_attributes}

    See Also
    --------
    DPGridSearchCV : A fixed list of candidates.
    skdptune.accounting.search_on_split : The cost.

    Notes
    -----
    Neighbours differ by adding or removing one record. The selection costs what the envelope bound
    gives for one run (fit and noisy score) and for the distribution of the number of runs; the
    tuning records are a Poisson sample (Koskela and Kulkarni 2023, variants 1 and 2). The number
    of runs is secret: it is shown nowhere, and how long a fit took must not be published either.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPRandomSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> search = DPRandomSearchCV(
    ...     DPLogisticRegression(), {"C": loguniform(1e-3, 1e2)}, epsilon=1.0, delta=1e-5,
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
        param_distributions: Any = None,
        *,
        n_iter: float = 10,
        n_iter_distribution: str | RunCountDistribution = "auto",
        bound: str = "envelope",
        tuning_fraction: Any = "auto",
        variant: int = 1,
        extrapolate: Any = "auto",
        epsilon: float | None = None,
        delta: float | None = None,
        at_least: tuple[int, float] | None = None,
        warm_start: bool = False,
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
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.n_iter_distribution = n_iter_distribution
        self.bound = bound
        self.tuning_fraction = tuning_fraction
        self.variant = variant
        self.extrapolate = extrapolate
        self.epsilon = epsilon
        self.delta = delta
        self.at_least = at_least
        self.warm_start = warm_start
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
        return self.param_distributions, "param_distributions", True

    def _tuning_fraction(self, candidates: Candidates, n_samples: int, replaces: bool) -> Any:
        return self.tuning_fraction

    def _variant(self) -> int:
        return self.variant

    def _extrapolate(self) -> Any:
        return self.extrapolate

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.bound, name="bound", options=BOUNDS)
        candidate_distributions(self.n_iter_distribution, self.n_iter, self.at_least)
        rule = self.extrapolate
        is_named = isinstance(rule, str) and rule in ("auto", "linear")
        if not (rule is None or is_named or callable(rule)):
            raise ValueError(
                f"extrapolate must be 'auto', 'linear', None or a callable; got {shown(rule)}."
            )
        check_flag(self.warm_start, name="warm_start")
        if self.warm_start and _names_of_start(self.estimator) is None:
            raise TypeError(
                "warm_start must be False for an estimator whose fit takes no coef_init; got "
                f"True for {type(self.estimator).__name__}."
            )

    # Cost -----------------------------------------------------------------------------------

    def _cost(self, layout: Layout, fit_costs: FitCosts, delta: float) -> tuple[CostModel, Cost]:
        distributions = candidate_distributions(
            self.n_iter_distribution, self.n_iter, self.at_least
        )
        if self.at_least is None:
            steady = [one for one in distributions if not _is_erratic(one)]
            distributions = steady or distributions
        models = [self._model(one, layout, fit_costs, delta) for one in distributions]
        model = models[0] if len(models) == 1 else _best_of(models, self.epsilon)
        return model, model.within(self.epsilon)

    def _model(
        self,
        distribution: RunCountDistribution,
        layout: Layout,
        fit_costs: FitCosts,
        delta: float,
    ) -> CostModel:
        def select(run: PrivacyProfile) -> PrivacyProfile:
            return run.selected(distribution, self.bound)

        return CostModel(
            layout,
            fit_costs,
            select,
            delta,
            self.score_epsilon,
            note=f"mean {distribution.mean:.4g} runs, {_name_of(distribution)} distribution",
            bound=self.bound,
            tuning_bound="rdp" if self.bound == "rdp" else "profile",
            n_iter_distribution=distribution,
        )

    def _number_of_fits(self, plan: Plan) -> tuple[float, float]:
        distribution, folds = _distribution_of(plan.model), max(plan.layout.folds, 1)
        return distribution.mean * folds, float(runs_at_most(distribution, 0.99) * folds)

    def _runs_in_words(self, plan: Plan) -> str:
        distribution = _distribution_of(plan.model)
        return f"{_name_of(distribution)} distribution of mean {distribution.mean:.4g}"

    def _way_in_words(self, plan: Plan) -> str:
        return _WAY

    def _shows(self, plan: Plan) -> str:
        return "the winner and its score"

    def _default_in_words(self, plan: Plan) -> str:
        never = float(_distribution_of(plan.model).pgf(1.0 - DEFAULT_SHARE))
        return f"is a third of the draws, and tried with chance {1.0 - never:.2g}"

    def _alternatives(self, plan: Plan, n_samples: int) -> list[PlanRow]:
        on_all = {"tuning_fraction": None, "refit": self._refit_on_all()}
        rows = super()._alternatives(plan, n_samples)
        for name, changes in (
            ("variant 2", {"variant": 2}),
            ("tuning on all records", on_all),
            ("Rényi bound of the subsampling paper", {"bound": "rdp"}),
            ("Rényi bound, tuning on all records", {"bound": "rdp", **on_all}),
        ):
            rows += self._row_with(name, plan, n_samples, changes)
        return rows

    def _refit_on_all(self) -> Any:
        return self.refit if not split_of(self.cv)[1] or self.refit != "winner" else True

    def _row_with(
        self, name: str, plan: Plan, n_samples: int, changes: dict[str, Any]
    ) -> list[PlanRow]:
        """Return the row of the same search with other parameters, if it can meet the total."""
        layout = plan.layout
        if "variant" in changes and (layout.tuning is None or self.variant == 2):
            return []
        if changes.get("tuning_fraction", 0) is None and layout.tuning is None:
            return []
        distribution = _distribution_of(plan.model)
        other = clone(self).set_params(n_iter_distribution=distribution, **changes)
        try:
            found = other._make_plan(n_samples, layout.n_features, is_public=layout.public)
        except (UnreachableBudgetError, ValueError):
            return []
        # Of the search, even where it is not worth it.
        return [other._row(found.declined or found, name)]

    # Run and choose -------------------------------------------------------------------------

    def _choose(self, state: SearchState) -> Choice:
        draw = state.streams.draw
        count = int(_distribution_of(state.plan.model).sample(generator_of(draw)))
        seeds = spawned(draw, 1)[0]
        drawn = state.plan.candidates.draw_each(spawned(seeds, max(count, 1)))
        if count == 0:
            # No run: a candidate that nobody tried, and the worst score.
            worst = self._scorer().lower
            untried = state.plan.candidates.default or drawn[0]
            return Choice(untried, worst, None, [{"params": untried, "score": worst}])
        results = self._fit_and_score(state, drawn)
        best = self._highest(results, state.streams)
        details = {}
        if self.diagnostics:
            details = {
                "n_runs": count,
                "params": drawn,
                "scores": np.array([result.score for result in results]),
                "seconds": [result.seconds for result in results],
                "errors": [result.error for result in results],
            }
        winner = results[best]
        row = {"params": drawn[best], "score": winner.score}
        return Choice(drawn[best], winner.score, winner.model, [row], diagnostics=details)

    # Refit ----------------------------------------------------------------------------------

    def _keeps_models(self, plan: Plan) -> bool:
        return self.warm_start or super()._keeps_models(plan)

    def _start_from(self, model: Any) -> dict[str, Any]:
        names = _names_of_start(self.estimator) if self.warm_start else None
        if model is None or names is None:
            return {}
        last = model[-1] if isinstance(model, Pipeline) else model
        return {names[0]: last.coef_, names[1]: last.intercept_}


_WAY = "random number of runs (DPRandomSearchCV)"
WAYS[_WAY] = lambda estimator, candidates, count, shared: DPRandomSearchCV(
    estimator, listed(candidates, count), n_iter=float(count), **shared
)


def _distribution_of(model: CostModel) -> RunCountDistribution:
    if model.n_iter_distribution is None:
        raise TypeError("model must be of a random number of runs; got a fixed number.")
    return model.n_iter_distribution


def _is_erratic(distribution: RunCountDistribution) -> bool:
    """Return whether a search makes less than a tenth of the mean too often to rely on it."""
    return distribution.probability_at_most(int(distribution.mean / 10.0)) > _RARELY


def _best_of(models: list[CostModel], epsilon: float | None) -> CostModel:
    """Return the cheapest; where hardly anything is between them, that with fewest short runs.

    With a total, they are compared at one curve: which is cheapest hardly depends on estimators.
    """
    costs = []
    for model in models:
        setting = None if epsilon is None else model.rough_setting(epsilon)
        costs.append(model.at(setting).total.epsilon(model.delta))
    close = [m for m, c in zip(models, costs, strict=True) if c <= min(costs) * (1.0 + _TIE)]

    def chance_of_few(model: CostModel) -> float:
        distribution = _distribution_of(model)
        return distribution.probability_at_most(int(distribution.mean / 2))

    return min(close, key=chance_of_few)


def _name_of(distribution: RunCountDistribution) -> str:
    return str(distribution.to_dict()["distribution"]).replace("_", " ")


def _names_of_start(estimator: Any) -> tuple[str, str] | None:
    """Return what the estimator's fit calls its starting values, None if it takes none."""
    prefix, last = "", estimator
    if isinstance(estimator, Pipeline):
        prefix, last = f"{estimator.steps[-1][0]}__", estimator.steps[-1][1]
    # A step may be left to the space.
    if not hasattr(last, "fit") or "coef_init" not in inspect.signature(last.fit).parameters:
        return None
    return f"{prefix}coef_init", f"{prefix}intercept_init"
