"""Show a noisy score of every candidate, and fit the candidate chosen from these scores."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_flag, check_option, check_real, check_share
from skdptune.accounting import PrivacyProfile, UnreachableBudgetError, calibrate, search_on_split
from skdptune.base._shared import LOSS_OF_DOUBLING, is_same
from skdptune.mechanisms import gaussian_profile, laplace_profile, noise_for_budget
from skdptune.model_selection._choosing import (
    TableChoice,
    advice_of,
    choose_from_table,
    encode,
    expected_loss,
)
from skdptune.model_selection._cost import (
    Cost,
    CostModel,
    CurveSetting,
    FitSetting,
    Layout,
    NoiseSetting,
    ScoreNoise,
    Selections,
    holds_step,
    untuned_model,
)
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._running import Result, results_by_metric
from skdptune.model_selection._strategies._running_search import RunningSearch
from skdptune.model_selection._strategies._strategy import (
    Choice,
    Plan,
    PlanRequest,
    Strategy,
)

_LARGEST_LIMIT = 100.0
# Noise of runs divided by that of the final fit, and the share of epsilon that may stay unused:
# for the fits' own profiles, and for Gaussian ones.
_LEAST_RATIO, _LARGEST_RATIO, _TOLERANCE, _TOLERANCE_OF_GUESS = 0.1, 1e5, 2e-3, 1e-3
# Points of accuracy that the final fit may lose by the table's cost, and limits of its noise.
_LOSS, _LIMITS = 0.1, (1.02, 1.05)
# About the largest number of fits on all records in a table; larger tables fit on a part.
_MOST_WORK = 25.0
_PARTS = (0.5, 0.2, 0.1, 0.05, 0.02)
_FEWEST_RECORDS = 200


class ScoreTable(Strategy):
    """Base of the strategies that pay for all their fits and scores, and so may show them.

    Notes
    -----
    Theorem T8.
    """

    neutral = (*Strategy.neutral, "storage")
    shows = "all scores"
    takes_callable = True

    score_epsilon: float | None
    storage: Any

    # Cost -------------------------------------------------------------------------------------

    def n_runs(self, request: PlanRequest) -> int:
        """Return the number of candidates that are paid for."""
        return len(request.candidates.grid())

    def number_of_fits(self, plan: Plan) -> tuple[float, float]:
        """Return the expected and the largest number of candidates' fits, which are equal."""
        fits = float(plan.model.n_runs * max(plan.layout.folds, 1))
        return fits, fits

    def public_count(self, plan: Plan) -> int:
        """Return the number of fits of candidates that callbacks are called for."""
        return int(self.number_of_fits(plan)[0])

    # Run and choose ---------------------------------------------------------------------------

    def choose(self, run: RunningSearch) -> Choice:
        """Fit and score all candidates, and choose from the table."""
        candidates = list(run.plan.candidates.grid())
        return self.chosen(run, candidates, fit_and_show(run, candidates))

    def chosen(
        self, run: RunningSearch, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> Choice:
        """Return the choice from a table of results, by published values only."""
        # Theorem T8: a choice from the table of noisy scores has no additional cost.
        refit = run.search.refit
        deviation_of_one = self.deviation(run.plan)
        rows = [
            row_of(candidate, result, deviation_of_one)
            for candidate, result in zip(candidates, results, strict=True)
        ]
        if callable(refit):
            best = _index_from(refit, results_by_metric(rows, run.scorers), len(rows))
            score, deviation = results[best].score, None
        else:
            best, score, deviation = self.best(run, candidates, results)
        details = {}
        if self.diagnostics:
            details = {
                "seconds": [result.seconds for result in results],
                "errors": [result.error for result in results],
            }
        return Choice(candidates[best], score, results[best].model, rows, best, details, deviation)

    def best(
        self, run: RunningSearch, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> tuple[int, float, float | None]:
        """Return the winner's index, its score, and that score's standard deviation if known."""
        best = run.highest(results)
        return best, results[best].score, None

    def _posterior(
        self, run: RunningSearch, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> TableChoice:
        """Return the posterior of all candidates' scores, and which candidate to fit."""
        # Theorem N5: the choice follows from noisy scores and public numbers.
        plan, scorer, own = run.plan, run.scorer, run.plan.candidates.default
        outlook = self.outlook(plan, None if run.public is None else run.public.n_samples)
        unit = scorer.upper - scorer.lower
        is_known = own is not None and own in candidates
        place = (
            candidates.index(own) if is_known else own_place(plan.request.estimator, candidates)
        )
        found = choose_from_table(
            encode(candidates),
            np.array([result.score for result in results]),
            outlook.score_noise * unit,
            place,
            run_deviation=outlook.run_deviation * unit,
            n_rivals=self.rivals(plan),
        )
        if place is None:
            return found
        is_clipped = outlook.is_clipped(results[place].score, scorer.lower, scorer.upper)
        return replace(found, index=place) if is_clipped else found

    def rivals(self, plan: Plan) -> int:
        """Return the number of candidates that are compared with the unchanged estimator."""
        return plan.model.n_runs - 1


@with_shared_text(SHARED_TEXT)
@dataclass(eq=False, repr=False, kw_only=True)
class Composition(ScoreTable):
    """Fit all candidates with the same noise, and publish all scores; any model may be kept.

    A strategy of `DPGridSearchCV`: each candidate costs as much as a whole fit. The largest score
    wins. If the estimator's own values are listed, they are kept unless another score is clearly
    larger.

    Parameters
    ----------
    score_epsilon : float, optional
        Cost of a candidate's score at `delta`; with several metrics, of its scores together.
    {storage_of_runs}
    {of_every_strategy}

    See Also
    --------
    FullTable : A table that costs little more than the final fit.

    Notes
    -----
    Theorem T8.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import Composition, DPGridSearchCV
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {"C": [0.01, 1.0]}, epsilon=1.0, delta=1e-6,
    ...     strategy=Composition(score_epsilon=0.1),
    ... )
    >>> search.plan(20_000, 5).row.shows
    'all scores and models'
    """

    name = "full table (DPGridSearchCV)"
    shows = "all scores and models"
    always_refits = False

    score_epsilon: float | None = None
    storage: Any = None
    diagnostics: bool = False
    error_score: str = "worst"
    pre_dispatch: Any = "2*n_jobs"

    def split(self, request: PlanRequest) -> tuple[Any, int]:
        """Return that candidates are fitted on all records that are not held out."""
        return None, 2

    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost of all candidates' fits and scores."""
        model = all_released(request, layout, self.n_runs(request), "candidates, all published")
        model = replace(model, score_epsilon=self.score_epsilon)
        return model, model.within(request.epsilon)

    def best(
        self, run: RunningSearch, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> tuple[int, float, float | None]:
        """Return the winner's index: the unchanged estimator, if listed, unless one is better."""
        if own_place(run.plan.request.estimator, candidates) is None:
            return super().best(run, candidates, results)
        best = self._posterior(run, candidates, results).index
        return best, results[best].score, None


@with_shared_text(SHARED_TEXT)
@dataclass(eq=False, repr=False, kw_only=True)
class FullTable(ScoreTable):
    """Fit and score every candidate with a lot of noise, and then fit the chosen one again.

    The default strategy of `DPGridSearchCV`, with the options that most users do not need.

    Parameters
    ----------
    noise_limit : "auto" or float, default="auto"
        The noise of the final fit divided by that of a fit without tuning, more than 1: the price
        of the table. "auto" follows from epsilon and the public number of records. It is between
        1.02 on few records and 1.05 on many, for which so little noise loses nothing.
    tuning_fraction : "auto", float or None, default="auto"
        The probability that a record is used for the candidates' fits; None for all records that
        are not held out for validation. "auto" is None up to 25 candidates. A smaller part only
        saves time: candidates can be distinguished best on all records, with more noise.
    try_own_values : bool, default=True
        Whether the estimator's own values of the searched parameters are tried as well, in the
        first row of ``cv_results_``, if the grid lacks them. If noise hides which candidate is
        best, the search returns these values. Ignored if `refit` is a callable.
    choose_by : {"posterior", "max"}, default="posterior"
        "posterior" is the posterior mean of a Gaussian process over the parameters, which knows
        the noise of the scores. The estimator's own values are kept unless a candidate's score is
        better by a margin that limits the probability of a mistake to 5 % (Theorem N6). "max" is
        the largest score.
    score_epsilon : float, optional
        Cost of a candidate's score at `delta`; with several metrics, of its scores together.
    {storage_of_runs}
    {of_every_strategy}

    See Also
    --------
    NoisyMaximum : The other strategy of `DPGridSearchCV`, for very many candidates.

    Notes
    -----
    Theorem T8.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV, FullTable
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {"C": [0.01, 1.0]}, epsilon=1.0, delta=1e-6,
    ...     strategy=FullTable(noise_limit=1.1),
    ... )
    >>> search.plan(20_000, 5).row.expected_fits
    3.0
    """

    name = "full table (DPGridSearchCV)"
    splits_scores = True

    noise_limit: Any = "auto"
    tuning_fraction: Any = "auto"
    try_own_values: bool = True
    choose_by: str = "posterior"
    score_epsilon: float | None = None
    storage: Any = None
    diagnostics: bool = False
    error_score: str = "worst"
    pre_dispatch: Any = "2*n_jobs"

    def check(self, search: Any) -> None:
        """Validate the parameters."""
        super().check(search)
        check_option(self.choose_by, name="choose_by", options=("posterior", "max"))
        check_flag(self.try_own_values, name="try_own_values")
        if not (isinstance(self.noise_limit, str) and self.noise_limit == "auto"):
            check_real(
                self.noise_limit,
                name="noise_limit",
                lower=1.0,
                lower_open=True,
                upper=_LARGEST_LIMIT,
                hint="It is the noise of the final fit over that of a fit without tuning.",
            )
        if isinstance(self.tuning_fraction, str):
            check_option(self.tuning_fraction, name="tuning_fraction", options=("auto",))
        elif self.tuning_fraction is not None:
            check_share(self.tuning_fraction, name="tuning_fraction")

    # Candidates -------------------------------------------------------------------------------

    def with_own(self, request: PlanRequest) -> PlanRequest:
        """Return the request with the estimator's own values in the first row, if they are not."""
        candidates, estimator = request.candidates, request.estimator
        listed = list(candidates.grid())
        own = own_values(estimator, sorted({name for each in listed for name in each}))
        is_listed = own_place(estimator, listed) is not None
        if not self.try_own_values or callable(request.refit) or is_listed or own is None:
            return request
        return replace(request, candidates=candidates.beside(own))

    # Cost -------------------------------------------------------------------------------------

    def split(self, request: PlanRequest) -> tuple[Any, int]:
        """Return the share of the records for candidates' fits; these are all used again."""
        if self.tuning_fraction != "auto":
            return self.tuning_fraction, 2
        if request.replaces:
            return None, 2
        return tuning_fraction_of_table(self.n_runs(request), request.n_samples), 2

    def limit(self, epsilon: float, layout: Layout) -> float:
        """Return the limit on the noise of the final fit divided by that of an untuned fit."""
        if isinstance(self.noise_limit, str):
            return noise_limit(epsilon, layout.n_samples)
        return float(self.noise_limit)

    def _noise(self, request: PlanRequest, layout: Layout) -> tuple[float, float] | None:
        """Return the noise of fits and of scores, divided by that of the final fit."""
        if request.epsilon is None or not layout.final:
            return None
        limit, count = self.limit(request.epsilon, layout), self.n_runs(request)
        return table_noise(request.epsilon, request.delta, count, layout, limit)

    def table_model(self, request: PlanRequest, layout: Layout) -> CostModel:
        """Return the cost model of a table followed by one fit."""
        of_fit, of_score = self._noise(request, layout) or (1.0, 1.0)
        words = "candidates, all scores published"
        return replace(
            all_released(request, layout, self.n_runs(request), words),
            score_epsilon=self.score_epsilon,
            fit_noise=of_fit,
            score_noise=of_score,
        )

    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost with the least noise of the table, and that of the final fit."""
        model = self.table_model(request, layout)
        if request.epsilon is not None and layout.final:
            return solved_table(model, request.epsilon, self.limit(request.epsilon, layout))
        return model, model.within(request.epsilon)

    # Choose -----------------------------------------------------------------------------------

    def best(
        self, run: RunningSearch, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> tuple[int, float, float | None]:
        if self.choose_by != "posterior":
            return super().best(run, candidates, results)
        found = self._posterior(run, candidates, results)
        return found.index, float(found.mean[found.index]), float(found.std[found.index])

    def reason_against(self, plan: Plan, noise_ratio: float) -> str:
        """Return why the table cannot be expected to help; empty if it can."""
        return self.outlook(plan).reason_against

    def advice(self, plan: Plan) -> str:
        """Return a warning that the table says little, if that can be expected."""
        return advice_of(self.outlook(plan))

    def compares(self, plan: Plan) -> bool:
        """Return whether the unchanged estimator is kept unless another is better by the test."""
        keeps_own = self.choose_by == "posterior" and self.try_own_values
        if not keeps_own or callable(plan.request.refit) or not self.rivals(plan):
            return False
        candidates, estimator = plan.candidates, plan.request.estimator
        is_listed = candidates.default is not None or candidates.drawn
        # Steps of a pipeline are not tried on their own: only listed ones are.
        return is_listed or own_place(estimator, list(candidates.grid())) is not None


def row_of(params: dict[str, Any], result: Result, deviation: float) -> dict[str, Any]:
    """Return the row of a candidate, with its noisy scores and the deviation of their noise."""
    scores = {name: getattr(result, name) for name in ("score", "splits", "further")}
    return {"params": params, **scores, "deviation": deviation}


# The cost of all candidates ---------------------------------------------------------------------


def all_released(request: PlanRequest, layout: Layout, count: int, words: str) -> CostModel:
    """Return the cost model of a number of candidates' fits and scores that are all shown.

    If as many as are listed, each listed candidate counts once. Otherwise any candidates may be
    fitted.
    """
    n_listed = 0 if request.candidates.drawn else len(request.candidates.grid())
    return CostModel(
        layout,
        request.fit_costs("auto"),
        request.delta,
        lambda run: run * count,
        all_together(count, n_listed),
        note=f"{count} {words}",
        n_runs=count,
        metrics=tuple(request.scorers),
    )


def all_together(count: int, n_listed: int = 0, *, resumes: bool = False) -> Selections:
    """Return the cost of all fits and scores, for training records and for scoring records.

    Parameters
    ----------
    count : int
        Number of candidates.
    n_listed : int, default=0
        If as many are listed, each of these is fitted once. Otherwise any candidates may be.
    resumes : bool, default=False
        Whether the records may be split again, so that each of them pays for fits and scores.
    """

    # Theorem T8: the costs of all fits and scores are composed.
    def selections(
        model: CostModel, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
    ) -> tuple[PrivacyProfile, PrivacyProfile | None]:
        if isinstance(setting, CurveSetting) or count != n_listed:
            fits = fit * count
        else:
            # Each listed candidate once, at its own cost.
            fits = model.fit_costs.composed(setting, model.train_size)
        fits, scores = fits * max(model.layout.folds - 1, 1), noise.profile * count
        has_others = model.layout.validation > 0.0
        if has_others and not resumes:
            return fits, scores
        every = fits if noise.kind == "none" else fits + scores
        return every, every if has_others else None

    return selections


def noise_limit(epsilon: float, n_samples: int) -> float:
    """Return the default of the final fit's noise divided by that of an untuned fit.

    Notes
    -----
    The value that loses a tenth of a point of accuracy, as far as this is known before the data,
    limited to 1.02 and 1.05. On many records a little more noise loses nothing, and this little
    extra cost is what distinguishes the candidates.
    """
    low, high = _LIMITS
    doublings = _LOSS / LOSS_OF_DOUBLING * epsilon * n_samples
    return float(min(max(2.0 ** min(doublings, 1.0), low), high))


def tuning_fraction_of_table(n_candidates: int, n_samples: int) -> float | None:
    """Return the share of the records on which a table's candidates are fitted; None for all.

    Notes
    -----
    The effective noise of a fit decides how well candidates can be compared. At the same cost it
    is lowest on all records, with correspondingly more noise: a part only saves time.
    """
    if n_candidates <= _MOST_WORK:
        return None
    for part in _PARTS:
        if part * n_candidates <= _MOST_WORK or part * n_samples < 2 * _FEWEST_RECORDS:
            return part
    return _PARTS[-1]


@functools.lru_cache(maxsize=256)
def table_noise(
    epsilon: float, delta: float, n_candidates: int, layout: Layout, limit: float
) -> tuple[float, float] | None:
    """Return the least noise of the runs that keeps the noise of the final fit within a limit.

    Noise is divided by that of the final fit, both in units of a record's influence.

    Parameters
    ----------
    epsilon, delta : float
        The total budget.
    n_candidates : int
        Number of candidates, all released with their scores.
    layout : Layout
        How the records are divided.
    limit : float
        Largest noise of the final fit divided by that of one fit with the whole total.

    Returns
    -------
    tuple of float or None
        Noise of a candidate's fit and of a score; None if no noise is large enough.

    Notes
    -----
    Solved for Gaussian fits, which all others resemble. The result is a choice and not a claim: in
    any case the total is computed from the fits' own profiles (Theorem T8).
    """
    unit, _ = noise_for_budget(epsilon, delta)
    final = _release(1.0 / (unit * limit), delta)
    n_fits = n_candidates * max(layout.folds - 1, 1)
    has_others = layout.validation > 0.0
    # With folds the same records are used for training and scoring, and each gets half.
    n_scores = n_candidates if has_others else 2 * n_candidates
    of_score = _noise_of_all(n_scores, limit, delta)
    scores = _release(1.0 / (unit * limit * of_score), delta) * n_candidates

    def total(noise: float) -> PrivacyProfile:
        fits = _release(1.0 / (unit * limit * noise), delta) * n_fits
        return search_on_split(
            fits if has_others or layout.public else fits + scores,
            scores if has_others else None,
            final if layout.final else None,
            validation_fraction=layout.validation,
            tuning_fraction=layout.tuning,
            variant=layout.variant,
            by_rule=layout.by_rule,
        )

    try:
        guess = _noise_of_all(n_fits, limit, delta)
        return _least(total, epsilon, delta, guess, _TOLERANCE_OF_GUESS), of_score
    except UnreachableBudgetError:
        return None


def _noise_of_all(n_releases: int, limit: float, delta: float) -> float:
    """Return the noise of `n_releases` releases that, with a fit, cost `limit` times the fit.

    Squared shifts add up if there is a delta, and shifts if there is none.
    """
    if delta > 0.0:
        return math.sqrt(n_releases / (limit**2 - 1.0))
    return n_releases / (limit - 1.0)


def _release(shift: float, delta: float) -> PrivacyProfile:
    return gaussian_profile(shift, 1.0) if delta > 0.0 else laplace_profile(shift, 1.0)


def solved_table(model: CostModel, epsilon: float, limit: float) -> tuple[CostModel, Cost]:
    """Return the model with the least noise of the candidates' fits, and its cost within a total.

    Parameters
    ----------
    model : CostModel
        Cost model of a table and a final fit.
    epsilon : float
        The total.
    limit : float
        Noise of the final fit divided by that of an untuned fit for the same total.

    Notes
    -----
    Theorem T8.

    Scores and fits use different records, so each of them may use the budget that the final fit
    leaves. If no noise of the runs is enough, the runs keep theirs, and the final fit gets more.
    """
    untuned = untuned_model(model).within(epsilon).setting
    if untuned is None:
        return model, model.within(epsilon)
    setting = _stated(model, model.noisier(untuned, limit, 1))
    try:
        total = _total_of_scores(model, setting)
        of_score = _least(total, epsilon, model.delta, model.score_noise)
        scored = replace(model, score_noise=of_score)
        of_fit = _least(
            lambda noise: replace(scored, fit_noise=noise).at(setting).total,
            epsilon,
            model.delta,
            model.fit_noise,
        )
    except UnreachableBudgetError:
        return model, model.within(epsilon)
    found = replace(scored, fit_noise=of_fit)
    found = replace(found, rate_factor=factor_of_rates(found, epsilon))
    return found, found.at(setting)


def factor_of_rates(model: CostModel, epsilon: float) -> float:
    """Return the factor by which learning rates are adapted to the noise of candidates' fits.

    If noise decides which steps are best, steps shrink by its root. If it does not, shorter steps
    would hide that a candidate's steps are too long for the final fit. The expected loss of these
    fits by noise, in points of accuracy, decides between the two.
    """
    layout, noise = model.layout, model.fit_noise or 1.0
    loss = expected_loss(noise / layout.train_share, epsilon, layout.n_samples)
    return float(noise ** (-0.5 * min(loss, 1.0)))


def _least(
    total: Callable[[float], PrivacyProfile],
    epsilon: float,
    delta: float,
    guess: float | None,
    tolerance: float = _TOLERANCE,
) -> float:
    """Return the least noise of runs, divided by that of the final fit, within a total."""
    found = calibrate(
        total,
        epsilon,
        delta,
        lower=_LEAST_RATIO,
        upper=_LARGEST_RATIO,
        guess=min(max(guess or 1.0, _LEAST_RATIO), _LARGEST_RATIO),
        tolerance=tolerance,
    )
    return found.value


def _total_of_scores(model: CostModel, setting: FitSetting) -> Callable[[float], PrivacyProfile]:
    """Return the cost for a record that is used for scoring, by the noise of scores."""
    final = model.fit_costs.profile(setting, model.final_size)
    # With folds the same records are used for training and scoring, and each gets half.
    count = model.n_runs * (1 if model.layout.validation > 0.0 else 2)

    def total(noise: float) -> PrivacyProfile:
        of_score = replace(model, score_noise=noise).noise_of_scores(final, setting)
        return of_score.profile * count + final

    return total


def _stated(model: CostModel, setting: FitSetting) -> FitSetting:
    """Return a setting that states the cost of the final fit."""
    if not isinstance(setting, NoiseSetting):
        return setting
    final = model.fit_costs.profile(setting, model.final_size)
    return replace(setting, epsilon=final.epsilon(model.delta))


# Candidates, and the choice ---------------------------------------------------------------------


def fit_and_show(run: RunningSearch, candidates: Sequence[dict[str, Any]]) -> list[Result]:
    """Fit and score candidates, and show each noisy score as soon as it is known."""
    count = len(candidates)
    run.progress.count(0, count)

    def show(place: int, result: Result) -> None:
        run.progress.count(place + 1, count)
        for _ in range(max(run.plan.layout.folds, 1)):
            with run.tasks.task("candidate"):
                pass
        run.show_line(f"{place + 1}/{count}", candidates[place], result.score)

    return run.fit_and_score(candidates, show)


def own_values(estimator: Any, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the estimator's own values of parameters; None if they are not a candidate."""
    known = known_values(estimator)
    own = {name: known[name] for name in names if name in known}
    # Placeholders of steps are not candidates.
    has_placeholders = any(holds_step([value]) for value in own.values())
    return None if len(own) < len(names) or has_placeholders else own


def known_values(estimator: Any) -> dict[str, Any]:
    """Return the estimator's parameters; empty for objects that are not estimators."""
    is_estimator = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    return dict(estimator.get_params(deep=True)) if is_estimator else {}


def _index_from(refit: Callable[[dict[str, Any]], Any], table: dict[str, Any], count: int) -> int:
    """Return the index that the user's function chooses from a table."""
    index = refit(table)
    hint = "A callable must return the index of a candidate in cv_results_."
    # The kinds of errors and their texts are those of scikit-learn.
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
    """Return the index of the unchanged estimator among the candidates; None if it is missing."""
    own = estimator.get_params(deep=True)
    for place, candidate in enumerate(candidates):
        if all(name in own and is_same(value, own[name]) for name, value in candidate.items()):
            return place
    return None
