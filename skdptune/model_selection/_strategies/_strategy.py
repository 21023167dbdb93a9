"""Base class of strategies (candidates, cost, choice), and the plan that results from one."""

from __future__ import annotations

import copy
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, clone, is_classifier

from skdptune._formatting import shown
from skdptune._validation import NamedArguments, check_flag, check_kind, check_option, check_real
from skdptune.accounting import PrivacyProfile, PrivacyReport, RunCountDistribution
from skdptune.base._shared import change_parameters
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._choosing import TableOutlook, kept_in_words, tail_factor
from skdptune.model_selection._cost import (
    BudgetSetting,
    Candidates,
    Cost,
    CostModel,
    CurveSetting,
    FitCosts,
    Layout,
    NoiseSetting,
    check_left_to_search,
    make_layout,
    neighbours_replace,
)
from skdptune.model_selection._running import clipped_deviation

if TYPE_CHECKING:
    from skdptune.model_selection._strategies._running_search import RunningSearch

# A classification of at most so many columns is narrow.
_FEW_COLUMNS = 150


@dataclass(frozen=True)
class PlanRequest:
    """The parameters and public numbers from which a strategy makes its plan.

    Attributes
    ----------
    estimator : estimator
        The estimator whose parameters are searched.
    candidates : Candidates
        The candidates that are searched.
    scorers : mapping of str to BoundedScorer
        Scorers by the names of metrics, with the main metric first. A single scorer has the name
        "score".
    epsilon : float or None
        The total; with None each fit keeps the estimator's own budget.
    delta : float
    cv, refit
        As the parameters of the search.
    n_candidates : float or None
        The requested number of candidates, if these are drawn.
    n_samples : int
    n_features : int or None
    classes : sequence or None
        The public label set, if the cost may depend on it.
    is_public : bool
        Whether there are public validation data.
    is_random : bool
        Whether `n_samples` is a public constant for a secret number.
    given : object
        The space as the user gave it; None if it is suggested.
    is_multimetric : bool
        Whether the metrics have names, under which their scores are shown.
    own : dict or None
        The estimator's own values, if they are tried in addition to drawn candidates.
    """

    estimator: Any
    candidates: Candidates
    scorers: Mapping[str, BoundedScorer]
    epsilon: float | None
    delta: float
    cv: Any
    refit: Any
    n_candidates: float | None
    n_samples: int
    n_features: int | None
    classes: Any = None
    is_public: bool = False
    is_random: bool = False
    given: Any = None
    is_multimetric: bool = False
    own: dict[str, Any] | None = None

    @property
    def scorer(self) -> BoundedScorer:
        """The main metric of the search."""
        return next(iter(self.scorers.values()))

    @property
    def scoring_in_words(self) -> str:
        """The names of all metrics, with the main one first."""
        if not self.is_multimetric:
            return self.scorer.name
        return ", ".join(
            f"{name}={one.name} in {shown((one.lower, one.upper))}"
            for name, one in self.scorers.items()
        )

    @property
    def is_pure(self) -> bool:
        """Whether all fits are set to a delta of 0, even if the estimator's own delta differs."""
        return self.epsilon is not None and self.delta == 0.0

    @cached_property
    def replaces(self) -> bool:
        """Whether neighbours differ by replacing a record."""
        return neighbours_replace(self.estimator, self.candidates, self.n_samples, self.n_features)

    def layout(self, tuning_fraction: Any, variant: int, refit: Any) -> Layout:
        """Return how the records are divided."""
        return make_layout(
            self.n_samples,
            self.n_features,
            cv=self.cv,
            public=self.is_public,
            tuning_fraction=tuning_fraction,
            variant=variant,
            refit=refit,
            is_random=self.is_random,
            replaces=self.replaces,
        )

    def fit_costs(self, extrapolate: Any) -> FitCosts:
        """Return the costs of the candidates' fits."""
        candidates = self.candidates if self.own is None else self.candidates.beside(self.own)
        return FitCosts(self.estimator, candidates, extrapolate, self.classes, self.is_pure)


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the data are read.

    Attributes
    ----------
    strategy : Strategy
    request : PlanRequest
        The request, with the candidates that are searched.
    model : CostModel
    cost : Cost
        The cost of the whole search, at the setting that meets the budget.
    components : tuple of PrivacyReport
        Parts of the report's tree.
    advice : str
        Reason why a search of a suggested space cannot be expected to help; empty if it can.
    declined : Plan or None
        The search that is not made, if the unchanged estimator is fitted once instead.
    by_persons : bool
        Whether records are persons.
    """

    strategy: Strategy
    request: PlanRequest
    model: CostModel
    cost: Cost
    components: tuple[PrivacyReport, ...]
    advice: str = ""
    declined: Plan | None = None
    by_persons: bool = False

    @property
    def candidates(self) -> Candidates:
        """The candidates that are searched."""
        return self.request.candidates

    @property
    def asked(self) -> float | None:
        """The total epsilon that the user gave."""
        return self.request.epsilon

    @property
    def layout(self) -> Layout:
        """How the records are divided."""
        return self.model.layout

    @property
    def delta(self) -> float:
        """Delta at which the total is stated."""
        return self.model.delta

    @property
    def total(self) -> PrivacyProfile:
        """The cost of everything that the fitted search shows."""
        return self.cost.total

    @property
    def bound(self) -> str | None:
        """The theorem by which the cost of the selection is computed."""
        return self.model.bound

    def variants(self) -> list[Any]:
        """Return estimators with all assumptions of those that the search may fit."""
        return self.model.fit_costs.variants()

    def with_classes(self, classes: Any) -> Plan:
        """Return the same plan with estimators that have the label set."""
        fit_costs = replace(self.model.fit_costs, classes=classes)
        return replace(self, model=replace(self.model, fit_costs=fit_costs))

    def with_seeds(self, seeds: Mapping[str, Any]) -> Plan:
        """Return the same plan with estimators that have these seeds."""

        def seeded(estimator: Any) -> Any:
            return change_parameters(clone(estimator), seeds)

        costs = self.model.fit_costs
        model = replace(self.model, fit_costs=replace(costs, estimator=seeded(costs.estimator)))
        request = replace(self.request, estimator=seeded(self.request.estimator))
        return replace(self, request=request, model=model)

    @property
    def n_score(self) -> int:
        """Number of records that a score averages; a guess if it is public but not known yet."""
        layout = self.layout
        return max(layout.n_samples // 5, 1) if layout.public else layout.n_score

    @cached_property
    def calibration_in_words(self) -> str:
        """How the noise of the fits was found, and the loss this causes; empty if it is given.

        This depends on whether candidates differ in parameters that set their cost.
        """
        setting = self.cost.setting
        if isinstance(setting, NoiseSetting):
            return "All candidates have the same noise, from the exact cost of the search."
        if isinstance(setting, CurveSetting):
            return (
                "Each candidate has its own noise, so that its cost stays below one curve for "
                f"all; this uses {max(self.model.loss(self.cost), 0.0):.1%} of ε."
            )
        if not isinstance(setting, BudgetSetting):
            return ""
        if self.model.fit_costs.is_held_to_budget:
            return (
                "Each candidate has its own noise for the ε of a fit; if their costs differ, "
                "the worst cost of such a fit is assumed."
            )
        return (
            "Each candidate has its own noise for the ε of a fit, from the exact cost of the "
            "search."
        )

    def noise_of_final(self) -> float | None:
        """Return the noise of the returned model's fit, if the estimator has a `noise_level`."""
        model = self.model
        size = model.final_size if self.layout.final else model.train_size
        made = model.fit_costs.configured({}, self.cost.setting, size)
        level = getattr(made, "noise_level", None)
        return None if level is None else float(level(size.n_samples, size.n_features))

    def score_deviation(self) -> float:
        """Return the scale of the noise on a score, in units of its range."""
        noise, scorer = self.cost.score_noise, self.request.scorer
        if noise.kind == "none":
            return 0.0
        scale = noise.ratio * self.layout.sensitivity(scorer)
        return scale / (scorer.upper - scorer.lower)

    def noise_by_metric(self) -> dict[str, tuple[float, float]]:
        """Return the scale of the noise on a score for each of several metrics.

        Each comes with the scale that it would have if the search had only this metric.
        """
        noise, scorers = self.cost.score_noise, self.request.scorers
        if noise.n_metrics == 1:
            return {}
        found = {}
        for name, scorer in scorers.items():
            scale = noise.ratio * self.layout.sensitivity(scorer)
            both = clipped_deviation([scale, scale / noise.growth], scorer.lower, scorer.upper)
            found[name] = (float(both[0]), float(both[1]))
        return found


@dataclass
class Choice:
    """The winner, and the rows that may be shown.

    Attributes
    ----------
    candidate : dict
        The winner's parameters.
    score : float
        Its noisy score; NaN if none is published.
    model : estimator or None
        Its fitted model, if the selection made one.
    rows : list of dict
        Rows of what was paid for: ``params`` and ``score``; with one noisy score per fold also
        ``splits``, and ``deviation`` of the noise on one of them.
    index : int
        The winner's row.
    diagnostics : dict
        Values that must stay secret.
    deviation : float or None
        Standard deviation of the posterior of the winner's score, if the search has one.
    columns, attributes : dict
        Additional columns of ``cv_results_`` and attributes of the search, all paid for.
    before_final : callable, optional
        Called before the final fit.
    """

    candidate: dict[str, Any]
    score: float
    model: Any
    rows: list[dict[str, Any]]
    index: int = 0
    diagnostics: dict[str, Any] = field(default_factory=dict)
    deviation: float | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    before_final: Any = None


class BaseStrategy(NamedArguments, BaseEstimator):
    """The parameters of one kind of search, in addition to those that all searches have.

    A plan is made of copies. Parameters that influence the cost stay as planned, even if the user
    changes the strategy object.
    """

    # Parameters that change neither the cost nor which values are covered by it.
    neutral: tuple[str, ...] = ()
    # Parameters for which a planned strategy must use the user's own objects, not copies.
    objects: tuple[str, ...] = ()

    def of_plan(self) -> tuple[type, dict[str, Any]]:
        """Return what determines a plan: the class, and parameters that may have a cost."""
        # A parameter that is neutral in a class of this package need not be so in a subclass.
        is_ours = type(self).__module__.startswith("skdptune.")
        neutral = self.neutral if is_ours else ()
        own = self.get_params(deep=False).items()
        return type(self), {name: value for name, value in own if name not in neutral}

    def with_objects_of(self, live: BaseStrategy) -> Self:
        """Return a planned strategy with the objects that the user's strategy holds."""
        made = copy.copy(self)
        if type(live) is type(self):
            planned = [name for name in self.objects if getattr(self, name) is not None]
            for name in (*self.neutral, *planned):
                setattr(made, name, getattr(live, name))
        return made


class Strategy(BaseStrategy, ABC):
    """How a search tries candidates, what that costs, and how the winner is chosen.

    A search asks its strategy for a plan before it reads the data, and then for a choice. The
    strategy never sees a record: it asks the running search for noisy scores, or for utilities
    that the strategy's own mechanism releases.

    Parameters
    ----------
    diagnostics : bool, default=False
        Whether to keep values that must stay secret in ``diagnostics_``. The fitted search is then
        **not private**.
    error_score : {"worst", "raise"}, default="worst"
        "worst" gives a candidate whose fit fails the worst score, with the same noise as any other
        candidate. Unlike in scikit-learn, failures cause no warning and cannot get a number, since
        one record can decide whether a fit fails. "raise" needs `diagnostics`.
    pre_dispatch : int or str, default="2*n_jobs"
        As in scikit-learn.

    Notes
    -----
    Theorem F0.
    """

    diagnostics: bool
    error_score: str
    pre_dispatch: Any

    neutral: tuple[str, ...] = ("diagnostics", "error_score", "pre_dispatch")
    # Kinds of spaces: "grid" (lists), "distribution" (draws), "space" (ranges).
    kinds: tuple[str, ...] = ("grid",)
    # Texts of a plan's table: the name among other searches, and what is published of candidates.
    name: str = ""
    shows: str = "the winner"
    # What would make a search of a suggested space worthwhile, as text.
    what_would_help: str = "more records"
    # Whether the winner is fitted once more by default, and whether a callable or one of several
    # metrics may choose it, from a table of scores that are all paid for.
    always_refits: bool = True
    takes_callable: bool = False
    # Whether rows may lie in parts (Theorem R11).
    takes_parts: bool = True
    # Whether each fold has a separate noisy score.
    splits_scores: bool = False
    # How a candidate's parameters are changed for fits on fewer records.
    extrapolate: Any = "auto"

    # What a strategy implements ---------------------------------------------------------------

    @abstractmethod
    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost model, and the cost that meets the budget."""

    @abstractmethod
    def choose(self, run: RunningSearch) -> Choice:
        """Try the candidates and choose one."""

    @abstractmethod
    def number_of_fits(self, plan: Plan) -> tuple[float, float]:
        """Return the expected number of fits, and the one exceeded with 1 % probability."""

    # What a strategy may change -------------------------------------------------------------

    def check(self, search: Any) -> None:
        """Validate the parameters, also in combination with those of the search."""
        check_flag(self.diagnostics, name="diagnostics")
        score_epsilon, path = getattr(self, "score_epsilon", None), self.path_of_runs()
        if score_epsilon is not None:
            check_real(score_epsilon, name="score_epsilon", lower=0.0, lower_open=True)
        domain = "None or a path"
        check_kind(path, name="storage", kind=str | os.PathLike | None, domain=domain)
        if "://" in str(path):
            raise ValueError(
                "storage must be the path of a file for this search; got a URL. "
                "DPAdaptiveSearchCV(strategy=AdaptiveTrials(storage=...)) takes one."
            )
        check_option(self.error_score, name="error_score", options=("worst", "raise"))
        if self.error_score == "raise" and not self.diagnostics:
            raise ValueError(
                "error_score must be 'worst' unless diagnostics=True; got 'raise'. An "
                "exception shows values of the data."
            )

    def split(self, request: PlanRequest) -> tuple[Any, int]:
        """Return the share of the records for candidates' fits, and the variant for the rest."""
        return None, 1

    def spaces(self, estimator: Any, given: Any) -> Any:
        """Return the spaces that are searched, given those of the user."""
        return given

    def suggested(self, candidates: Candidates) -> Candidates:
        """Return the candidates of a search of a suggested space."""
        return candidates

    def check_candidates(self, request: PlanRequest) -> None:
        """Refuse parameters that must not be searched."""
        candidates, estimator = request.candidates, request.estimator
        candidates.check_names(estimator)
        for name in chain.from_iterable(candidates):
            has_total = request.epsilon is not None
            check_left_to_search(name, estimator, sets_budget=has_total, where=candidates.name)

    def with_own(self, request: PlanRequest) -> PlanRequest:
        """Return the request, with the estimator's own values if they must be tried as well."""
        return request

    def plan(self, request: PlanRequest) -> Plan:
        """Return the plan, with the estimator's own values if possible."""
        with_own = self.with_own(request)
        if with_own is not request:
            try:
                return self._planned(with_own)
            except ValueError:
                # Some estimators cannot be fitted with their own values.
                pass
        return self._planned(request)

    def _planned(self, request: PlanRequest) -> Plan:
        refit = request.refit
        is_winner = isinstance(refit, str) and refit == "winner"
        if (is_winner and self.always_refits) or (callable(refit) and self.takes_callable):
            refit = True
        layout = request.layout(*self.split(request), refit)
        model, cost = self.cost(request, layout)
        model.check(cost)
        return Plan(self, request, model, cost, model.components(cost))

    def run_counts(self, plan: Plan) -> RunCountDistribution | None:
        """Return the distribution of the number of runs; None if it is fixed.

        If it is fixed, at most the paid number of candidates is fitted and scored. If it is
        random, the cost is that of choosing the best of them.
        """
        return None

    def own_in_words(self, plan: Plan) -> str:
        """Return how a search of a suggested space treats the unchanged estimator."""
        return "is always tried"

    def deviation(self, plan: Plan) -> float:
        """Return the standard deviation of the noise on the main score of one split."""
        layout, noise = plan.layout, plan.cost.score_noise
        if noise.kind == "none":
            return 0.0
        n_score = layout.n_score_of_fold if self.splits_scores else layout.n_score
        scale = noise.ratio * layout.sensitivity(plan.request.scorer, n_score)
        return scale if noise.kind == "gaussian" else scale * math.sqrt(2.0)

    def score_deviation(self, plan: Plan) -> float:
        """Return the standard deviation of the noise on a mean score, in units of its range."""
        scorer, n_splits = plan.request.scorer, plan.layout.folds if self.splits_scores else 1
        of_mean = self.deviation(plan) / math.sqrt(max(n_splits, 1))
        return of_mean / (scorer.upper - scorer.lower) * tail_factor(plan.cost.score_noise.kind)

    def rivals(self, plan: Plan) -> Any:
        """Return how many candidates the unchanged estimator is compared with; see `margin`."""
        return len(plan.candidates.grid()) - 1

    def outlook(self, plan: Plan, n_score: int | None = None) -> TableOutlook:
        """Return what the plan's scores can be expected to show."""
        n_features = plan.layout.n_features
        has_few_columns = n_features is not None and n_features <= _FEW_COLUMNS
        return TableOutlook(
            plan.layout.n_samples,
            plan.total.epsilon(plan.delta) if plan.asked is None else plan.asked,
            (plan.model.fit_noise or 1.0) / plan.layout.train_share,
            # The number of public records is not known before `fit`.
            plan.n_score if n_score is None else n_score,
            self.score_deviation(plan),
            self.rivals(plan),
            plan.request.scorer.name.removeprefix("balanced_"),
            has_few_columns and is_classifier(plan.request.estimator),
        )

    def reason_against(self, plan: Plan, noise_ratio: float) -> str:
        """Return why a search cannot be expected to help, by public numbers; empty if it can.

        Parameters
        ----------
        plan : Plan
        noise_ratio : float
            Effective noise of the returned model's fit divided by that of a fit without tuning.
        """
        outlook = self.outlook(plan)
        reasons = (outlook.reason_by_noise(noise_ratio), outlook.reason_by_deviation)
        return ", and ".join(filter(None, reasons))

    def reason_never(self, plan: Plan) -> str:
        """Return why the unchanged estimator is always kept; empty if it can be replaced."""
        outlook = self.outlook(plan)
        is_kept = self.compares(plan) and outlook.smallest_gain >= 1.0
        return outlook.reason_against if is_kept else ""

    def advice(self, plan: Plan) -> str:
        """Return further advice on a search that is made."""
        return ""

    def compares(self, plan: Plan) -> bool:
        """Return whether the unchanged estimator is kept unless another is better by the test."""
        # Theorem N6: a worse candidate is rarely chosen.
        return False

    def keeps(self, plan: Plan) -> str:
        """Return when a candidate other than the unchanged estimator is returned."""
        return kept_in_words(self.outlook(plan)) if self.compares(plan) else ""

    def variations(self, plan: Plan) -> Iterator[tuple[str, Strategy, dict[str, Any]]]:
        """Iterate over variations of the search with other parameters, for a plan's table.

        Each has a name, a strategy, and the changes to the request.
        """
        return iter(())

    def public_count(self, plan: Plan) -> int:
        """Return the number of candidates' fits that callbacks are called for; 0 if it is secret.

        It does not influence the cost.
        """
        return 0

    def path_of_runs(self) -> Any:
        """Return the file that stores the runs of a search to resume it; None without one."""
        return getattr(self, "storage", None)

    def keeps_models(self, plan: Plan) -> bool:
        """Return whether the models of runs are needed, in addition to their scores."""
        return plan.request.refit is not False and not plan.layout.final

    def start_from(self, estimator: Any, model: Any) -> dict[str, Any]:
        """Return arguments of the final fit that start it from the winner's model."""
        return {}


def name_of(counts: RunCountDistribution) -> str:
    """Return the name of a distribution of the number of runs, as text."""
    return str(counts.to_dict()["distribution"]).replace("_", " ")
