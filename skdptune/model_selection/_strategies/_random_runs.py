"""Try a random number of independent candidates, and return the best one."""

from __future__ import annotations

import inspect
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer, check_option, check_real, check_share
from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    RunCountDistribution,
    TruncatedNegativeBinomial,
)
from skdptune.accounting._shared import BOUNDS, check_distribution
from skdptune.model_selection._choosing import advice_of, margin
from skdptune.model_selection._cost import DEFAULT_SHARE, Cost, CostModel, Layout, split_of
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._running import Result, generator_of, spawned
from skdptune.model_selection._strategies._full_table import factor_of_rates, own_values
from skdptune.model_selection._strategies._running_search import RunningSearch
from skdptune.model_selection._strategies._strategy import (
    Choice,
    Plan,
    PlanRequest,
    Strategy,
    name_of,
)

_MOST_RUNS = 1e9
# Distributions whose totals differ by less than this share count as equally expensive.
_TIE = 1e-2
_RARELY = 0.05
# For searches that try the estimator's own values and end with a final fit. The noise of runs
# divided by that of the final fit, at least and per share of the records; and the cost of a score
# as a share of a fit's epsilon, at most.
_NOISE_OF_RUNS, _NOISE_BY_SHARE = 1.5, 20.0
_LARGEST_SCORE_SHARE = 0.1
# In these searches a part of the records is used for tuning even if there are few: the final fit
# has all records, and nearly all of epsilon.
_FEW, _FEWEST, _SHARE_OF_FEW = 1000, 100, 0.2


@with_shared_text(SHARED_TEXT)
@dataclass(eq=False, repr=False, kw_only=True)
class RandomRuns(Strategy):
    """Try a random number of candidates, and show only the best one.

    The strategy of `DPRandomSearchCV`, with the options that most users do not need.

    Parameters
    ----------
    n_iter_distribution : str or RunCountDistribution, default="auto"
        Distribution of the number of candidates: "geometric", "logarithmic", "negative_binomial",
        "concentrated", "poisson", "binomial", or a distribution of `skdptune.accounting`. "auto"
        considers those that make less than a tenth of the mean in 5 % of cases at most. It chooses
        the one that leaves most of the budget to the fits; of those within one percent, the one
        that is least likely to make few runs. "poisson" never makes few, and costs a little more.
    at_least : tuple (k, chance), optional
        Alternative to the search's `n_iter`: at least k candidates with this probability.
    bound : {"envelope", "profile", "rdp", "best"}, default="envelope"
        The theorem by which the cost of the selection is computed; the alternatives exist for
        comparison.
    tuning_fraction : "auto", float or None, default="auto"
        The probability that a record is used for tuning. "auto" is the smaller of 5 and 10 % that
        leaves 1,000 records, by the public number of records, else 20 % if that leaves 200, else
        None. None tunes on all records that are not held out for validation.
    variant : {"auto", 1, 2}, default="auto"
        With a `tuning_fraction`, whether the final fit leaves out the tuning records (1) or uses
        all records (2). "auto" is 2 if the estimator's own values are tried, else 1.
    extrapolate : {"auto", "linear"}, None or callable, default="auto"
        How a candidate's parameters are changed for runs on fewer records than the final fit has.
        Batches keep their share of the records. "linear" is the rule of the subsampling paper: the
        learning rate of noisy gradient descent shrinks in proportion to the records, and that of
        Adam stays the same. "auto" shrinks it by the root of that factor, which did better (see
        the benchmarks). A callable ``rule(params, n_tune, n_final)`` returns further parameters
        for the runs.
    try_own_values : bool, default=True
        Whether the unchanged estimator is fitted and scored once in addition to the candidates. It
        is returned unless the winner's score is better by a margin that limits the probability of
        a mistake to 5 % (Theorem N6). This run is published and paid for: it is a row of
        ``cv_results_``. If a final fit follows, runs have more noise than that fit, so the
        additional run adds very little noise to it.
    warm_start : bool, default=False
        Whether the final fit starts from the winning run's model, for estimators that can.
    score_epsilon : float, optional
        Cost of a score at `delta`. By default, the noise of a score is half of its sampling
        deviation, within limits. With an `epsilon`, a final fit and `try_own_values`, a score
        costs 3 to 10 % of a fit. Otherwise it costs 3 to 20 % of a fit, or as much as a fit
        without a `tuning_fraction`.
    {storage_of_runs}
    {of_every_strategy}

    See Also
    --------
    DPRandomSearchCV : The search.

    Notes
    -----
    Theorem F1, Theorem F13, Theorem F14, Theorem N6.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPRandomSearchCV, RandomRuns
    >>> search = DPRandomSearchCV(
    ...     DPLogisticRegression(), {"C": [0.01, 0.1, 1.0]}, epsilon=1.0, delta=1e-6,
    ...     strategy=RandomRuns(n_iter_distribution="poisson", variant=2),
    ... )
    >>> search.plan(20_000, 5).n_iter_distribution
    'poisson distribution of mean 10'
    """

    neutral = (*Strategy.neutral, "storage")
    kinds = ("distribution",)
    name = "random number of runs (DPRandomSearchCV)"
    shows = "the winner and its score"
    always_refits = False

    n_iter_distribution: str | RunCountDistribution = "auto"
    at_least: tuple[int, float] | None = None
    bound: str = "envelope"
    tuning_fraction: Any = "auto"
    variant: Any = "auto"
    extrapolate: Any = "auto"
    try_own_values: bool = True
    warm_start: bool = False
    score_epsilon: float | None = None
    storage: Any = None
    diagnostics: bool = False
    error_score: str = "worst"
    pre_dispatch: Any = "2*n_jobs"

    def check(self, search: Any) -> None:
        """Validate the parameters."""
        super().check(search)
        check_option(self.bound, name="bound", options=BOUNDS)
        candidate_distributions(self.n_iter_distribution, search.n_iter, self.at_least)
        rule = self.extrapolate
        is_named = isinstance(rule, str) and rule in ("auto", "linear")
        if not (rule is None or is_named or callable(rule)):
            raise ValueError(
                f"extrapolate must be 'auto', 'linear', None or a callable; got {shown(rule)}."
            )
        check_flag(self.try_own_values, name="try_own_values")
        check_flag(self.warm_start, name="warm_start")
        if self.warm_start and _names_of_start(search.estimator) is None:
            raise TypeError(
                "warm_start must be False for an estimator whose fit takes no coef_init; got "
                f"True for {type(search.estimator).__name__}."
            )

    # Cost -------------------------------------------------------------------------------------

    def split(self, request: PlanRequest) -> tuple[Any, int]:
        """Return the share of the records for candidates' fits, and the variant for the rest."""
        variant, share = self.variant, self.tuning_fraction
        if variant == "auto":
            variant = 1 if request.own is None else 2
        is_auto = isinstance(share, str) and not request.replaces and request.own is not None
        if is_auto and _FEWEST <= request.n_samples < _FEW and request.refit is not False:
            validation = 0.0 if request.is_public else split_of(request.cv)[0]
            share = _SHARE_OF_FEW * (1.0 - validation)
        return share, variant

    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost with the cheapest distribution, and the cost within the budget."""
        distributions = candidate_distributions(
            self.n_iter_distribution, request.n_candidates, self.at_least
        )
        if self.at_least is None:
            # Others make less than a tenth of the mean too often to rely on them.
            steady = [
                one
                for one in distributions
                if one.probability_at_most(int(one.mean / 10.0)) <= _RARELY
            ]
            distributions = steady or distributions
        models = [self._model(one, request, layout) for one in distributions]
        model = models[0] if len(models) == 1 else _best_of(models, request.epsilon)
        if request.own is not None:
            model = _with_own_run(model, request.epsilon)
        return model, model.within(request.epsilon)

    def with_own(self, request: PlanRequest) -> PlanRequest:
        """Return the request with a run of the unchanged estimator."""
        own = request.candidates.default
        if own is None:
            names = sorted({name for space in request.candidates for name in space})
            own = own_values(request.estimator, names)
        tries_own = self.try_own_values and own is not None
        return replace(request, own=own) if tries_own else request

    def _model(
        self, distribution: RunCountDistribution, request: PlanRequest, layout: Layout
    ) -> CostModel:
        def select(run: PrivacyProfile) -> PrivacyProfile:
            return run.selected(distribution, self.bound)

        return CostModel(
            layout,
            request.fit_costs(self.extrapolate),
            request.delta,
            select,
            solved=distribution,
            score_epsilon=self.score_epsilon,
            note=f"mean {distribution.mean:.4g} runs, {name_of(distribution)} distribution",
            bound=self.bound,
        )

    # Texts ------------------------------------------------------------------------------------

    def number_of_fits(self, plan: Plan) -> tuple[float, float]:
        """Return the expected number of fits, and the one exceeded with 1 % probability."""
        distribution, folds = plan.model.solved, max(plan.layout.folds, 1)
        beside = 0 if plan.request.own is None else 1
        most = float((runs_at_most(distribution, 0.99) + beside) * folds)
        return (distribution.mean + beside) * folds, most

    def run_counts(self, plan: Plan) -> RunCountDistribution | None:
        """Return the distribution of the number of runs."""
        found: RunCountDistribution = plan.model.solved
        return found

    def own_in_words(self, plan: Plan) -> str:
        """Return how a search of a suggested space treats the unchanged estimator."""
        if plan.request.own is not None:
            return "is a third of the draws, and always tried"
        never = float(plan.model.solved.pgf(1.0 - DEFAULT_SHARE))
        return f"is a third of the draws, and tried with probability {1.0 - never:.2g}"

    def rivals(self, plan: Plan) -> Any:
        """Return the probability generating function of the number of candidates."""
        return plan.model.solved.pgf

    def reason_against(self, plan: Plan, noise_ratio: float) -> str:
        """Return why a search cannot be expected to help, by public numbers; empty if it can."""
        if plan.request.own is None:
            return super().reason_against(plan, noise_ratio)
        outlook = self.outlook(plan)
        reasons = (outlook.reason_by_noise(noise_ratio), outlook.reason_against)
        return ", and ".join(filter(None, reasons))

    def advice(self, plan: Plan) -> str:
        """Return a warning that scores say little, if that can be expected."""
        return "" if plan.request.own is None else advice_of(self.outlook(plan))

    def compares(self, plan: Plan) -> bool:
        """Return whether the unchanged estimator is kept unless another is better by the test."""
        return plan.request.own is not None

    def variations(self, plan: Plan) -> Iterator[tuple[str, Strategy, dict[str, Any]]]:
        """Iterate over variations of this search: the other variants of the subsampling paper."""
        request, layout = plan.request, plan.layout
        is_winner = isinstance(request.refit, str) and request.refit == "winner"
        on_all = {"refit": True if is_winner and split_of(request.cv)[1] else request.refit}

        def changed(**changes: Any) -> Strategy:
            distribution = plan.model.solved
            other: Strategy = clone(self)
            other.set_params(n_iter_distribution=distribution, **changes)
            return other

        if layout.tuning is not None:
            other = 3 - layout.variant
            yield f"variant {other}", changed(variant=other), {}
        if layout.tuning is not None:
            yield "tuning on all records", changed(tuning_fraction=None), on_all
        yield "Rényi bound of the subsampling paper", changed(bound="rdp"), {}
        if layout.tuning is not None:
            name = "Rényi bound, tuning on all records"
            yield name, changed(bound="rdp", tuning_fraction=None), on_all

    # Run and choose ---------------------------------------------------------------------------

    def choose(self, run: RunningSearch) -> Choice:
        """Fit and score a random number of candidates; the best wins if it is clearly better."""
        draw, candidates, own = run.streams.draw, run.plan.candidates, run.plan.request.own
        count = int(run.plan.model.solved.sample(generator_of(draw)))
        seeds = spawned(draw, 1)[0]
        drawn = candidates.draw_each(spawned(seeds, max(count, 1)))
        first = [] if own is None else [own]
        tried = [*first, *drawn[:count]]
        made = run.fit_and_score(tried) if tried else []
        beside, results = made[: len(first)], made[len(first) :]
        # Without a run: a candidate that was not tried, and the worst score.
        params = candidates.default or drawn[0]
        winner = Result(None, run.scorer.lower, math.nan, None)
        if results:
            best = run.highest(results)
            params, winner = drawn[best], results[best]
        pairs = list(zip([*first, params], [*beside, winner], strict=True))
        rows = [{"params": each, "score": result.score} for each, result in pairs]
        index = len(rows) - 1
        if beside and not (results and self._is_clear(run, winner.score, beside[0].score)):
            index = 0
        details = {}
        if self.diagnostics:
            details = {
                "n_runs": count,
                "params": drawn[:count],
                "scores": np.array([result.score for result in results]),
                "seconds": [result.seconds for result in results],
                "errors": [result.error for result in results],
            }
        params, chosen = pairs[index]
        return Choice(params, chosen.score, chosen.model, rows, index, diagnostics=details)

    def _is_clear(self, run: RunningSearch, best: float, own: float) -> bool:
        """Return whether the winner scores clearly better than the unchanged estimator."""
        # Theorem N6, for a random number of candidates.
        n_score = None if run.public is None else run.public.n_samples
        outlook, scorer = self.outlook(run.plan, n_score), run.scorer
        deviation = math.sqrt(2.0) * outlook.deviation * (scorer.upper - scorer.lower)
        if outlook.is_clipped(own, scorer.lower, scorer.upper):
            return False
        return best - own > margin(outlook.rivals) * deviation

    # Refit ------------------------------------------------------------------------------------

    def keeps_models(self, plan: Plan) -> bool:
        """Return whether the models of runs are needed, in addition to their scores."""
        return self.warm_start or super().keeps_models(plan)

    def start_from(self, estimator: Any, model: Any) -> dict[str, Any]:
        """Return arguments of the final fit that start it from the winner's model."""
        names = _names_of_start(estimator) if self.warm_start else None
        if model is None or names is None:
            return {}
        last = model[-1] if isinstance(model, Pipeline) else model
        return {names[0]: last.coef_, names[1]: last.intercept_}


def _binomial(mean: float) -> RunCountDistribution:
    # Half of the trials run: less spread than Poisson, but more expensive.
    return Binomial.from_mean(mean, max(1, math.ceil(2.0 * mean)))


_MAKERS: dict[str, Callable[[float], RunCountDistribution]] = {
    "geometric": Geometric.from_mean,
    "logarithmic": Logarithmic.from_mean,
    "negative_binomial": lambda mean: TruncatedNegativeBinomial.from_mean(mean, 0.5),
    # Rarely makes few runs, and costs little more.
    "concentrated": lambda mean: TruncatedNegativeBinomial.from_mean(mean, 3.0),
    "poisson": Poisson.from_mean,
    "binomial": _binomial,
}
# The distributions from which "auto" chooses: the others never cost less for the same mean.
_CHOICE = ("geometric", "logarithmic", "negative_binomial", "concentrated", "poisson")
DISTRIBUTIONS = ("auto", *_MAKERS)


def candidate_distributions(
    n_iter_distribution: str | RunCountDistribution,
    n_iter: float | None,
    at_least: tuple[int, float] | None,
) -> list[RunCountDistribution]:
    """Return the distributions that a search may use; it chooses the cheapest.

    Parameters
    ----------
    n_iter_distribution : str or RunCountDistribution
        A name, "auto" for several, or the distribution itself.
    n_iter : float
        Mean number of runs.
    at_least : tuple of int and float, or None
        ``(k, chance)``: at least k runs with that probability, in place of the mean.
    """
    if isinstance(n_iter_distribution, RunCountDistribution):
        return [check_distribution(n_iter_distribution)]
    check_option(n_iter_distribution, name="n_iter_distribution", options=DISTRIBUTIONS)
    names = _CHOICE if n_iter_distribution == "auto" else (n_iter_distribution,)
    if at_least is not None:
        count, chance = _checked_wish(at_least)
        made = [_distribution_of_chance(_MAKERS[name], count, chance) for name in names]
        # Some distributions make few runs too often, whatever their mean.
        found = [each for each in made if each is not None]
        if not found:
            raise ValueError(
                "at_least must be attainable with "
                f"n_iter_distribution={shown(n_iter_distribution)}; got "
                f"{shown((count, chance))}. With n_iter_distribution='poisson', few runs are "
                "rare."
            )
        return found
    mean = check_real(n_iter, name="n_iter", lower=1.0, upper=_MOST_RUNS)
    if mean == 1.0:
        return [Binomial(1, 1.0)]
    return [_MAKERS[name](mean) for name in names]


def _checked_wish(at_least: tuple[int, float]) -> tuple[int, float]:
    try:
        count, chance = at_least
    except (TypeError, ValueError):
        raise ValueError(
            f"at_least must be (number of runs, probability); got {shown(at_least)}."
        ) from None
    check_integer(count, name="at_least[0]", lower=1)
    return count, check_share(chance, name="at_least[1]")


def _distribution_of_chance(
    make: Callable[[float], RunCountDistribution], count: int, chance: float
) -> RunCountDistribution | None:
    """Return the distribution of least mean with at least `count` runs at the given probability.

    None if no mean is large enough.
    """

    def is_enough(mean: float) -> bool:
        return 1.0 - make(mean).probability_at_most(count - 1) >= chance

    low, high = 1.0 + 1e-9, 2.0
    while not is_enough(high):
        low, high = high, 2.0 * high
        if high > _MOST_RUNS:
            return None
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return make(high)


def runs_at_most(n_iter_distribution: RunCountDistribution, chance: float) -> int:
    """Return the least number of runs that is not exceeded with the given probability."""
    most = 1
    while n_iter_distribution.probability_at_most(most) < chance:
        most *= 2
    counts = range(most // 2 + 1, most + 1)
    return counts[bisect_left(counts, chance, key=n_iter_distribution.probability_at_most)]


def _with_own_run(model: CostModel, epsilon: float | None) -> CostModel:
    """Return the cost model of a selection, and of one more run whose score is published."""
    selected = model.select

    # Theorem F14: one more run, on the same records.
    def select(run: PrivacyProfile) -> PrivacyProfile:
        return selected(run) + run

    note = f"{model.note}, and one run of the unchanged estimator"
    layout = model.layout
    found = replace(model, select=select, note=note)
    if epsilon is None or not layout.final:
        return found
    fit_noise = max(_NOISE_OF_RUNS, _NOISE_BY_SHARE * (layout.tuning or 1.0))
    score_noise = 1.0 / model.share_of_score(epsilon, _LARGEST_SCORE_SHARE)
    found = replace(found, fit_noise=fit_noise, score_noise=score_noise)
    return replace(found, rate_factor=factor_of_rates(found, epsilon))


def _best_of(models: list[CostModel], epsilon: float | None) -> CostModel:
    """Return the cheapest distribution; of nearly equal ones, that with fewest short runs.

    With a total, distributions are compared at one privacy curve: the cheapest one depends very
    little on the estimator.
    """
    costs = []
    for model in models:
        setting = None if epsilon is None else model.rough_setting(epsilon)
        costs.append(model.at(setting).total.epsilon(model.delta))
    close = [m for m, c in zip(models, costs, strict=True) if c <= min(costs) * (1.0 + _TIE)]

    def chance_of_few(model: CostModel) -> float:
        return float(model.solved.probability_at_most(int(model.solved.mean / 2)))

    return min(close, key=chance_of_few)


def _names_of_start(estimator: Any) -> tuple[str, str] | None:
    """Return the starting-value arguments of the estimator's fit; None if it has none."""
    prefix, last = "", estimator
    if isinstance(estimator, Pipeline):
        prefix, last = f"{estimator.steps[-1][0]}__", estimator.steps[-1][1]
    # The space may provide a step.
    if not hasattr(last, "fit") or "coef_init" not in inspect.signature(last.fit).parameters:
        return None
    return f"{prefix}coef_init", f"{prefix}intercept_init"
