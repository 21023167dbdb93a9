"""The run of a Pareto search on the data: evaluations, and the final fit."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import clone

from skdptune._formatting import shown
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._shared import check_secret_size, cost_of
from skdptune.metrics import BoundedScorer
from skdptune.metrics._shared import ScoreSum
from skdptune.model_selection._cost import Candidates, FitCosts, FitSize, Layout, ScoreNoise
from skdptune.model_selection._pareto._families import Families, ThirdObjective, check_relation
from skdptune.model_selection._pareto._optimizer import Evaluation, ParetoOptimizer, Record
from skdptune.model_selection._pareto._released import ReleaseBudget, ReleasePlan, plan_release
from skdptune.model_selection._running import (
    N_TRIED,
    ONE_FIT,
    Data,
    Fold,
    Material,
    Outcome,
    Quiet,
    Scoring,
    Streams,
    check_fits,
    check_fits_of_nothing,
    child_stream,
    disjoint_folds,
    final_model,
    fit_and_score,
    generator_of,
    is_failure,
    noise_random,
    perform_all,
    random_split,
)
from skdptune.model_selection._study import fingerprint_of

if TYPE_CHECKING:
    from skdptune.model_selection._dpareto_search import DParetoSearchCV, ParetoFront


# The plan of a Pareto search: its cost, fixed before the data are read, and the cost's report ---

# Parameters are proposed one by one.
_NO_CANDIDATES = Candidates([{}], name="param_space", drawn=False)
# Orders of the moments accountant: the integers of its paper and of the Pareto front paper.
_MOMENTS = np.arange(2.0, 257.0)


@dataclass(frozen=True)
class ParameterCosts:
    """Privacy costs of parameters: of a fit on all records, and of the fits of an evaluation.

    Parameters
    ----------
    families : Families
    layout : Layout
        Sizes of the fits; public.
    delta : float
    privacy : {"profile", "moments"}
        The bound that the search minimises.
    classes : sequence or None
        The public label set.
    is_released : bool, default=True
        Whether anything is released. Exact evaluations may use the real size of a random part.
    """

    families: Families
    layout: Layout
    delta: float
    privacy: str = "profile"
    classes: Any = None
    is_released: bool = True

    def epsilon(self, params: dict[str, Any]) -> float:
        """Return the epsilon of a fit on all records, which the search minimises."""
        profile = self.of_final_fit(params)
        if self.privacy == "moments":
            return moments_epsilon(profile, self.delta)
        return profile.epsilon(self.delta)

    def of_final_fit(self, params: dict[str, Any]) -> PrivacyProfile:
        """Return the cost of a fit on all records."""
        size = self.final_size
        return cost_of(self.configured(params, size), size.n_samples, size.n_features)

    def of_evaluation(self, params: dict[str, Any]) -> PrivacyProfile:
        """Return the cost of one fit of an evaluation; raise if it depends on a secret size."""
        size = self.train_size
        made = self.configured(params, size)
        check_relation(made)
        if size.is_secret:
            check_secret_size(made, size.n_samples, size.n_features)
        return cost_of(made, size.n_samples, size.n_features)

    def configured(self, params: dict[str, Any], size: FitSize) -> Any:
        """Return the estimator for one fit, without its seed."""
        family, own = self.families.split(params)
        fit_costs = FitCosts(self.families.members[family], _NO_CANDIDATES, "auto", self.classes)
        return fit_costs.configured(own, None, size)

    @property
    def train_size(self) -> FitSize:
        """Size of one fit of an evaluation."""
        layout = self.layout
        is_secret = layout.train_is_random and (self.is_released or layout.is_random)
        return FitSize(layout.n_train, layout.n_final, layout.n_features, is_secret)

    @property
    def final_size(self) -> FitSize:
        """Size of a fit on all records."""
        layout = self.layout
        return FitSize(layout.n_final, layout.n_final, layout.n_features, layout.final_is_random)


def moments_epsilon(profile: PrivacyProfile, delta: float) -> float:
    """Return the epsilon of the moments accountant, for comparison.

    Notes
    -----
    Abadi et al. (2016), Theorem 2: the minimum of ``divergence(order) + log(1/delta) / (order -
    1)`` over integer orders.
    """
    divergences = profile.rdp(_MOMENTS)
    if not np.isfinite(divergences).any():
        raise ValueError(
            "privacy must be 'profile' for an estimator whose Rényi divergences are not known; "
            "got 'moments'."
        )
    if delta == 0.0:
        return math.inf
    return float(np.min(divergences - math.log(delta) / (_MOMENTS - 1.0)))


# Number of points of the space whose costs are computed to plan a release.
_N_SAMPLED = 16
_Found = TypeVar("_Found")
_UNPROTECTED = PrivacyProfile.approximate(0.0, 1.0)


@dataclass(frozen=True)
class ParetoPlan:
    """Everything that a Pareto search decides before it reads the data.

    Attributes
    ----------
    strategy : ParetoFront
        The strategy as it was when the plan was made.
    costs : ParameterCosts
    release : ReleasePlan or None
        None if nothing is released.
    asked : float or None
        The total epsilon of what is released.
    components : tuple of PrivacyReport
        Parts of the report's tree.
    by_persons : bool
        Whether records are persons.
    bound : None
        Every plan has one; see `Plan`.
    """

    strategy: ParetoFront
    costs: ParameterCosts
    release: ReleasePlan | None
    asked: float | None = None
    components: tuple[PrivacyReport, ...] = ()
    by_persons: bool = False
    bound: ClassVar[str | None] = None

    def with_classes(self, classes: Any) -> ParetoPlan:
        """Return the plan: it was solved with the labels, which its cost may need."""
        return self

    def variants(self) -> list[Any]:
        """Return estimators with all assumptions of those that the search may fit."""
        return list(self.families.variants)

    @property
    def families(self) -> Families:
        """Estimators and their spaces."""
        return self.costs.families

    @property
    def layout(self) -> Layout:
        """How the records are divided."""
        return self.costs.layout

    @property
    def delta(self) -> float:
        """Delta at which the total is stated."""
        return self.costs.delta

    @property
    def total(self) -> PrivacyProfile:
        """Cost of everything that the fitted search shows."""
        return _UNPROTECTED if self.release is None else self.release.total


def make_pareto_plan(
    search: DParetoSearchCV,
    strategy: ParetoFront,
    families: Families,
    layout: Layout,
    classes: Any,
) -> ParetoPlan:
    """Return the plan of a search, or raise if costs are unknown or above the budget."""
    costs = ParameterCosts(
        families,
        layout,
        float(search.delta),
        strategy.privacy,
        classes,
        is_released=search.release is not None,
    )
    if search.release is None or strategy.privacy == "moments":
        # Also refuses an estimator without the asked bound, before the data are read.
        with Quiet():
            _sampled_costs(families, costs.epsilon, 1)
    if search.release is None:
        return ParetoPlan(strategy, costs, None)
    n_sampled = _N_SAMPLED if families.costs_differ else 1
    # dp_accounting logs every fractional order.
    with Quiet():
        release = plan_release(
            layout,
            float(search.release),
            float(search.delta),
            strategy.n_initial + search.n_iter,
            strategy.n_repeats,
            _sampled_costs(families, costs.of_evaluation, n_sampled),
            n_initial=strategy.n_initial,
            is_equal=not families.costs_differ,
            follows_scores=strategy.sampler not in ("random", "grid"),
            final=None if search.refit is False else float(search.refit),
        )
    asked, parts = float(search.release), release.parts
    if search.refit is not False:
        asked += float(search.refit)
        parts = (*parts, PrivacyReport(release.final, costs.delta, name="final fit"))
    return ParetoPlan(strategy, costs, release, asked, parts)


def _sampled_costs(
    families: Families, cost_of: Callable[[dict[str, Any]], _Found], wanted: int
) -> list[_Found]:
    """Return costs of fits at some points of the space, always the same points."""
    found: list[_Found] = []
    problems: list[Exception] = []
    rng = np.random.default_rng(0)
    for _ in range(_N_SAMPLED):
        try:
            found.append(cost_of(families.space.sample(rng)))
        except Exception as problem:
            problems.append(problem)
        if len(found) == wanted:
            break
    if not found:
        raise problems[0]
    return found


def is_charged(costs: ParameterCosts, budget: ReleaseBudget, params: dict[str, Any]) -> bool:
    """Return whether parameters may be evaluated, and charge them to the budget if so."""
    with Quiet():
        try:
            costs.epsilon(params)
            fit = costs.of_evaluation(params)
        except Exception:
            # Costs do not depend on the data, and neither do errors in computing them.
            return False
        return budget.charge(fit)


# A fold, and the seed of its fit.
Task = tuple[Fold, np.random.SeedSequence | None]


@dataclass(frozen=True)
class ExactEvaluator:
    """Evaluate parameters exactly: the result is not private.

    Parameters
    ----------
    costs : ParameterCosts
    material : Material
        Data, folds and scoring.
    n_repeats : int
    is_seeded : bool
        Whether fits and noise use the evaluation's seed, or the system's entropy.
    third : ThirdObjective, optional
    """

    costs: ParameterCosts
    material: Material
    n_repeats: int
    is_seeded: bool
    third: ThirdObjective | None = None

    def __call__(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Evaluation:
        """Return the epsilon of parameters and the exact utility of each repeat."""
        epsilon = self.costs.epsilon(params)
        estimator = self.estimator(params)
        repeats = [self._repeat(estimator, self.stream(seed, r)) for r in range(self.n_repeats)]
        utilities, thirds = zip(*repeats, strict=True)
        third = None if self.third is None else float(np.mean(thirds))
        return Evaluation(epsilon, utilities, third)

    def estimator(self, params: dict[str, Any]) -> Any:
        """Return the estimator with the parameters, for a fit of an evaluation."""
        return self.costs.configured(params, self.costs.train_size)

    def stream(self, seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence | None:
        """Return a numbered random stream of an evaluation; None for the system's entropy."""
        return child_stream(seed, number) if self.is_seeded else None

    def _repeat(self, estimator: Any, seed: np.random.SeedSequence | None) -> tuple[float, float]:
        """Return the utility of one repeat, and its third objective."""
        started = time.perf_counter()
        sums: list[ScoreSum] = []
        thirds = []
        for place, fold in enumerate(self.material.folds):
            outcome = fit_on_fold((fold, child_stream(seed, place)), self.material, estimator)
            if outcome.error is not None:
                raise outcome.error
            sums += outcome.sums
            if self.third is not None and self.third.function is not None:
                scored = self.material.scored(fold)
                with Quiet(), np.errstate(all="ignore"):
                    thirds.append(float(self.third.function(outcome.model, scored.X, scored.y)))
        found = reduce(add, sums)
        score = self.scorer.score(found, max(found.size, 1))
        third = np.mean(thirds) if thirds else time.perf_counter() - started
        return unit_utility(score, self.scorer), float(third)

    @property
    def scorer(self) -> BoundedScorer:
        """The scorer of an evaluation."""
        return self.material.scoring.scorer


@dataclass(frozen=True)
class NoisyEvaluator:
    """Evaluate parameters by one noisy utility, and show nothing else; no data can make it fail.

    Parameters
    ----------
    exact : ExactEvaluator
        Its noise is that of one score of all repeats together, and it hides failures.
    n_jobs : int or None
        Workers for the fits of one evaluation.
    """

    exact: ExactEvaluator
    n_jobs: int | None = None

    def __call__(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Evaluation:
        """Return the epsilon of parameters and their noisy utility."""
        exact = self.exact
        tasks = [
            (fold, child_stream(exact.stream(seed, repeat), place))
            for repeat in range(exact.n_repeats)
            for place, fold in enumerate(exact.material.folds)
        ]
        found = self._sum(tasks, exact.estimator(params))
        noise = noise_random(exact.stream(seed, exact.n_repeats))
        score = exact.material.scoring.released(found, noise)
        return Evaluation(exact.costs.epsilon(params), (unit_utility(score, exact.scorer),))

    def _sum(self, tasks: list[Task], estimator: Any) -> ScoreSum | None:
        """Return the sum over all folds and repeats; None if one of the fits failed."""
        try:
            sums = perform_all(
                _sums_on_fold,
                tasks,
                self.exact.material,
                estimator,
                n_jobs=self.n_jobs,
                pre_dispatch="2*n_jobs",
            )
        except BaseException as problem:
            if not is_failure(problem):
                raise
            # Whether a fit makes its worker die depends on the data as well.
            return None
        return reduce(add, chain(*sums)) if all(sums) else None


def fit_on_fold(task: Task, material: Material, estimator: Any) -> Outcome:
    """Fit a copy of an estimator to a fold, and score it; all fits and scores are made here."""
    fold, seed = task
    # A copy: threads share the estimator, and a fit may not start from what another has learned.
    (outcome,) = fit_and_score(
        [clone(estimator)],
        [seed],
        material.data.take(fold[0]),
        material.scored(fold),
        material.scoring.scorer,
        raises=material.raises,
    )
    return outcome


def _sums_on_fold(task: Task, material: Material, estimator: Any) -> tuple[ScoreSum, ...]:
    """Return the sum of a fold, without the model, which need not be sent back."""
    return fit_on_fold(task, material, estimator).sums


def score_of_all(
    layout: Layout, scorer: BoundedScorer, n_repeats: int, noise: ScoreNoise
) -> Scoring:
    """Return the scoring of the values of all repeats together.

    Their mean is the mean of the repeats' scores, and one record changes it by no more than it may
    change each of these.
    """
    if layout.public:
        return Scoring(scorer, None, 0.0, noise.ratio, noise.kind)
    size = layout.n_score * n_repeats
    sensitivity, clips = layout.sensitivity(scorer), not layout.by_rule
    return Scoring(scorer, size, sensitivity, noise.ratio, noise.kind, clips=clips)


def unit_utility(score: float, scorer: BoundedScorer) -> float:
    """Return a score on a scale from 0 (the worst) to 1 (the best)."""
    return min(max((score - scorer.lower) / (scorer.upper - scorer.lower), 0.0), 1.0)


class ParetoRun:
    """Run a Pareto search on the data, within its plan.

    Parameters
    ----------
    search : DParetoSearchCV
    plan : ParetoPlan
    scorer : BoundedScorer
    streams : Streams
        Streams of all random numbers.
    """

    def __init__(
        self, search: DParetoSearchCV, plan: ParetoPlan, scorer: BoundedScorer, streams: Streams
    ) -> None:
        self.search, self.plan, self.strategy = search, plan, plan.strategy
        self.scorer, self.streams = scorer, streams

    def evaluate(self, data: Data, public: Data | None) -> tuple[list[Record], Any]:
        """Return the evaluations and their optuna study; None if it must not be shown."""
        exact, strategy, release = self._evaluator(data, public), self.strategy, self.plan.release
        n_jobs, space, draw = self.search.n_jobs, self.plan.families.space, self.streams.draw
        random_state = None if draw is None else int(draw.generate_state(1)[0] >> 1)
        if release is None:
            is_stored = strategy.storage is not None
            optimizer = ParetoOptimizer(
                exact,
                space,
                strategy,
                self.search.n_iter,
                None if exact.third is None else exact.third.name,
                n_jobs,
                random_state,
                fingerprint=self._fingerprint(data, public) if is_stored else "",
            )
            study = optimizer.run()
            return optimizer.records(), study
        scoring = score_of_all(self.plan.layout, self.scorer, strategy.n_repeats, release.noise)
        material = replace(exact.material, scoring=scoring, raises=False)
        n_initial = min(strategy.n_initial, release.n_evaluations)
        optimizer = ParetoOptimizer(
            NoisyEvaluator(replace(exact, material=material), n_jobs),
            space,
            replace(strategy, n_initial=n_initial),
            release.n_evaluations - n_initial,
            None,
            # The order in which evaluations end depends on the data.
            1,
            random_state,
            partial(is_charged, self.plan.costs, ReleaseBudget(release)),
        )
        optimizer.run()
        # The time of an evaluation is not charged.
        found = [
            replace(one, evaluation=replace(one.evaluation, third=None, failure=None, seconds=0.0))
            for one in optimizer.records()
        ]
        return found, None

    def check_fits(self, data: Data) -> None:
        """Raise if the fits of a released front all fail on made-up data, whatever is searched."""
        space, costs = self.plan.families.space, self.plan.costs
        cube = np.random.default_rng(0).random((N_TRIED, len(space.names)))
        made = (costs.configured(space.from_unit(unit), costs.final_size) for unit in cube)
        check_fits(made, data, self.plan.layout.n_samples, self.scorer.response_method)
        if self.plan.layout.by_rule:
            made = (costs.configured(space.from_unit(unit), costs.train_size) for unit in cube)
            check_fits_of_nothing(made, data, varies=True)

    def _evaluator(self, data: Data, public: Data | None) -> ExactEvaluator:
        """Return the evaluator of parameters, with all records split."""
        layout = self.plan.layout
        rng = generator_of(self.streams.random_split)
        folds: Sequence[Fold] = ONE_FIT
        validation = public
        if layout.folds:
            folds = disjoint_folds(data.n_samples, layout.folds, rng)
        elif not layout.public:
            split = random_split(data.n_samples, layout.validation, None, 1, rng, data.held_out)
            data, validation = data.take(split.tuning), data.take(split.validation)
        scoring = Scoring(self.scorer, None, 0.0, 0.0, "none")
        return ExactEvaluator(
            self.plan.costs,
            # Nothing is released, so failures are shown.
            Material(data, folds, validation, scoring, raises=True),
            self.strategy.n_repeats,
            self.search.random_state is not None,
            self.strategy.third(),
        )

    def _fingerprint(self, data: Data, public: Data | None) -> str:
        """Return a hash of everything that evaluations depend on, except for their parameters."""
        split = self.streams.random_split
        return fingerprint_of(
            [clone(estimator) for estimator in self.plan.families],
            self.plan.layout,
            self.plan.delta,
            self.strategy.privacy,
            self.strategy.n_repeats,
            self.scorer.name,
            data,
            public,
            # With a seed all processes split the records alike; without one, each splits
            # independently.
            None if split is None else split.generate_state(4),
        )

    def best_index(self, records: Sequence[Record]) -> int | None:
        """Return the index of the record whose parameters get the final fit, or None."""
        refit = self.search.refit
        if refit is False:
            return None
        limit = np.inf if refit is True else float(refit)
        costs, release = self.plan.costs, self.plan.release

        def cost(record: Record) -> float:
            if release is None:
                return record.evaluation.epsilon
            # At the half of delta that is reserved for the final fit.
            return costs.of_final_fit(record.params).epsilon(release.delta)

        within = [
            index
            for index, record in enumerate(records)
            if record.evaluation.failure is None and cost(record) <= limit
        ]
        if not within:
            warnings.warn(
                "refit must be at least the smallest epsilon that was evaluated; got "
                f"{shown(refit)}. No model is fitted.",
                UserWarning,
                stacklevel=4,
            )
            return None
        return max(within, key=lambda index: float(np.mean(records[index].evaluation.utilities)))

    def fit_final(self, record: Record, data: Data) -> Any:
        """Return a model fitted to all records; a released one reveals no failure."""
        costs = self.plan.costs
        model = costs.configured(record.params, costs.final_size)
        n_samples, raises = self.plan.layout.n_samples, self.plan.release is None
        return final_model(model, data, self.streams.final, n_samples, raises=raises)
