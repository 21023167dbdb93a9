"""Choose each candidate by the noisy scores of earlier candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from joblib import effective_n_jobs

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._validation import check_integer
from skdptune.accounting import PrivacyProfile, SharedCurve, UnreachableBudgetError, with_failure
from skdptune.mechanisms import gaussian_profile
from skdptune.model_selection._adaptive import (
    PRUNERS,
    RUNGS,
    WHOLE,
    Allowance,
    Races,
    check_pruner,
    check_sampler,
    described,
    make_sampler,
)
from skdptune.model_selection._choosing import TableOutlook
from skdptune.model_selection._cost import (
    Candidates,
    Cost,
    CostModel,
    CurveSetting,
    FitSetting,
    FitSize,
    Layout,
    ScoreNoise,
)
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._space import AdaptiveSpace
from skdptune.model_selection._strategies._adaptive_session import AdaptiveSearchSession
from skdptune.model_selection._strategies._full_table import (
    FullTable,
    factor_of_rates,
    known_values,
    own_values,
    solved_table,
)
from skdptune.model_selection._strategies._running_search import RunningSearch
from skdptune.model_selection._strategies._strategy import Choice, Plan, PlanRequest, Strategy
from skdptune.model_selection._study import StorageParameter

# Squared shifts may exceed their sum by rounding.
_SLACK = 1.0 + 1e-12
# Besides the space and the sizes, parameters that must be the same when a search is resumed.
_OF_SEARCH = ("estimator", "epsilon", "delta", "n_trials", "cv", "n_public")
_OF_STRATEGY = ("pruner", "noise_limit", "tuning_fraction", "score_epsilon")


@dataclass(frozen=True)
class Rungs:
    """How the fits of a trial share its cost: all at once, or in rungs with less and less noise.

    Attributes
    ----------
    shares : tuple of Fraction
        Shares of the cost of one trial, by fit.
    is_resumable : bool
        Whether the records may be split again while the search goes on.
    asked : float or None
        The total, if a final fit follows.

    Notes
    -----
    Theorem G6.
    """

    shares: tuple[Fraction, ...]
    is_resumable: bool
    asked: float | None

    @property
    def prunes(self) -> bool:
        """Whether trials climb rungs, and may be pruned on the way."""
        return self.shares != WHOLE

    def size(self, model: CostModel, share: Fraction) -> FitSize:
        """Return the size of a fit with a share of the cost; its learning rates suit its noise."""
        if self.asked is None or not (self.prunes or self.is_resumable):
            return model.train_size
        # A fit with more noise than the final fit would prefer steps shorter than that one's.
        factor = factor_of_rates(model, self.asked, float(share))
        return replace(model.train_size, rate_factor=factor)

    def setting(
        self, model: CostModel, setting: FitSetting | None, share: Fraction
    ) -> FitSetting | None:
        """Return the setting of a fit with a share of the cost, given that of a whole trial."""
        if share == 1:
            return setting
        curve = _curve_of(setting)
        rung = SharedCurve(curve.shift * math.sqrt(share), curve.failure * float(share))
        return CurveSetting(rung, model.delta)


@with_shared_text(SHARED_TEXT)
class AdaptiveTrials(FullTable):
    """Choose each candidate by the noisy scores of earlier candidates, with an optuna sampler.

    The strategy of `DPAdaptiveSearchCV`, with the options that most users do not need.

    Parameters
    ----------
    sampler : {"auto", "tpe", "gp", "random"} or optuna sampler, default="auto"
        How the next candidate is chosen. "gp" is the expected improvement of a Gaussian process,
        which needs torch; "tpe" are tree-structured Parzen estimators; "random" draws from the
        space. "auto" is "gp" if torch is installed and `pruner` is None, else "tpe". Your own
        sampler must choose by the study only, which holds no times.
    pruner : {"halving", "hyperband"} or optuna pruner, optional
        Ends candidates early. Each is fitted with a ninth, a third and all of its epochs if it has
        them (``epochs``, ``max_epochs``), else with less and less noise. Each fit has a noisy
        score, which uses the same share of the candidate's budget. With "halving" up to 27
        candidates race each other, and the third with the best scores continues each time.
        "hyperband" runs three kinds of races in turn: 9 candidates, 5 that start with a third of
        their epochs, or 3 that start with all of them. A pruner of optuna decides without waiting
        for others. The budget that pruned candidates leave is used for others, some
        ``4 * n_trials`` of them in all; the total stays the same. The estimator's own values are
        never pruned. Needs `epsilon`, and an estimator whose noise can be set.
    batch_size : int, optional
        Number of candidates that are chosen and fitted at the same time. None is the number of
        workers; results then depend on `n_jobs`.
    callbacks : sequence of callable, optional
        Called as ``callback(study, trial)`` after each candidate, as by optuna, with released
        values only; ``study.stop()`` ends the search.
    storage : None, str or optuna storage, default=None
        A path (SQLite file), a URL or an optuna storage in which the search is stored. After a
        crash it can be resumed with the same parameters and data: fits that had begun are spent,
        and are not made again. One process at a time may use it. Only its owner may read the file,
        which holds noisy scores and no times. A password in a URL stays in this process. Since a
        resumed search splits the records again, every record pays for fits and scores, which needs
        more noise. Needs a space.
    study_name : str, optional
        Name in the storage. A study of this name is resumed.
    noise_limit : "auto" or float, default="auto"
        The noise of the final fit divided by that of a fit without tuning, more than 1: the price
        of the search. "auto" is between 1.02 on few records and 1.05 on many.
    tuning_fraction : "auto", float or None, default="auto"
        The probability that a record is used for the candidates' fits; None for all records that
        are not held out for validation. "auto" is None up to 25 candidates. A smaller part only
        saves time: candidates can be distinguished best on all records, with more noise.
    try_own_values : bool, default=True
        Whether the estimator's own values are the first candidate, even if the space does not hold
        them. If noise hides which candidate is best, the search returns these values.
    choose_by : {"posterior", "max"}, default="posterior"
        "posterior" is the posterior mean of a Gaussian process over the parameters. It knows the
        noise of the scores, and returns the estimator's own values if the noise hides which
        candidate is better. "max" is the largest score.
    score_epsilon : float, optional
        Cost of a candidate's score at `delta`; with several metrics, of its scores together.
    {of_every_strategy}

    See Also
    --------
    DPAdaptiveSearchCV : The search.

    Notes
    -----
    Theorem G6.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import AdaptiveTrials, DPAdaptiveSearchCV
    >>> search = DPAdaptiveSearchCV(
    ...     DPLogisticRegression(solver="sgd"), {"C": (1e-3, 1.0, "log")}, epsilon=1.0, delta=1e-6,
    ...     n_trials=9, strategy=AdaptiveTrials(pruner="halving"),
    ... )
    >>> search.plan(20_000, 5, compare=False).row.shows
    'all scores'
    """

    storage = StorageParameter()
    # The choice of candidates, and the callbacks, do not change the cost.
    neutral = (
        *Strategy.neutral,
        *("sampler", "batch_size", "choose_by", "study_name", "callbacks"),
    )
    objects = ("storage",)
    kinds = ("space",)
    name = "adaptive (DPAdaptiveSearchCV)"

    def __init__(
        self,
        *,
        sampler: Any = "auto",
        pruner: Any = None,
        batch_size: int | None = None,
        callbacks: Sequence[Callable[[Any, Any], Any]] | None = None,
        storage: Any = None,
        study_name: str | None = None,
        noise_limit: Any = "auto",
        tuning_fraction: Any = "auto",
        try_own_values: bool = True,
        choose_by: str = "posterior",
        score_epsilon: float | None = None,
        diagnostics: bool = False,
        error_score: str = "worst",
        pre_dispatch: Any = "2*n_jobs",
    ) -> None:
        self.sampler = sampler
        self.pruner = pruner
        self.batch_size = batch_size
        self.callbacks = callbacks
        self.study_name = study_name
        super().__init__(
            noise_limit=noise_limit,
            tuning_fraction=tuning_fraction,
            try_own_values=try_own_values,
            choose_by=choose_by,
            score_epsilon=score_epsilon,
            storage=storage,
            diagnostics=diagnostics,
            error_score=error_score,
            pre_dispatch=pre_dispatch,
        )

    def check(self, search: Any) -> None:
        """Validate the parameters."""
        super().check(search)
        check_integer(search.n_trials, name="n_trials", lower=1)
        if self.batch_size is not None:
            check_integer(self.batch_size, name="batch_size", lower=1)
        check_sampler(self.sampler)
        check_pruner(self.pruner)
        given = () if self.callbacks is None else self.callbacks
        if not isinstance(given, Sequence) or not all(map(callable, given)):
            raise TypeError(
                "callbacks must be a list of functions of a study and a trial; got "
                f"{shown(given)}."
            )
        if self.storage is None:
            return
        if search.param_space is None:
            raise ValueError("param_space must be given with a storage; got None.")
        if self.tuning_fraction not in ("auto", None):
            raise ValueError(
                "tuning_fraction must be None with a storage, since a resumed search splits the "
                f"records anew; got {shown(self.tuning_fraction)}."
            )

    # Candidates -------------------------------------------------------------------------------

    def spaces(self, estimator: Any, given: Any) -> Any:
        """Return the spaces that are costed: the given one, and the estimator's own values."""
        space = AdaptiveSpace(given)
        own = self.own_first(estimator, space)
        if own is None or space.holds(own):
            return space.costed()
        # Nothing is drawn from these spaces; both are costed.
        return [{name: [value] for name, value in own.items()}, space.costed()]

    def own_first(self, estimator: Any, space: AdaptiveSpace) -> dict[str, Any] | None:
        """Return the estimator's own values if they should be tried, in the space or not."""
        if not self.try_own_values:
            return None
        known = known_values(estimator)
        inside = {name: known[name] for name in space.names if name in known}
        return inside if space.holds(inside) else own_values(estimator, space.names)

    def suggested(self, candidates: Candidates) -> Candidates:
        """Return all combinations of the suggested values; few of them are tried."""
        found = Candidates(_lists(candidates), name=candidates.name, drawn=True)
        found.suggestion = candidates.suggestion
        return found

    def searched(self, plan: Plan) -> Mapping[str, Any]:
        """Return the searched space: the given or the suggested one."""
        if plan.candidates.suggestion is not None:
            return _lists(plan.candidates)
        given: Mapping[str, Any] = plan.request.given
        return given

    def path_of_runs(self) -> None:
        """Return None: `storage` holds the study, not the runs."""

    def n_runs(self, request: PlanRequest) -> int:
        """Return the number of candidates that are paid for."""
        return int(request.n_candidates or 1)

    # Cost -------------------------------------------------------------------------------------

    def with_own(self, request: PlanRequest) -> PlanRequest:
        """Return the request, whose candidates already hold the estimator's own values."""
        return request

    def split(self, request: PlanRequest) -> tuple[Any, int]:
        """Return the share of the records for candidates' fits; None if records are resplit."""
        return (None, 2) if self.storage is not None else super().split(request)

    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost of all trials, whichever candidates they try."""
        # If records are split again, each of them is used for training and for scoring.
        resumes, prunes = self.storage is not None, self.pruner is not None
        of_noise = replace(layout, validation=0.0) if resumes else layout
        model = self.table_model(request, of_noise)
        asked = request.epsilon if layout.final else None
        rungs = Rungs(RUNGS if prunes else WHOLE, resumes, asked)
        words = "trials to the end, or more that are pruned" if prunes else "trials"
        times = 1.0 + model.n_runs / float(min(rungs.shares)) if resumes else 1.0
        model = replace(
            model,
            layout=layout,
            selections=_all_trials,
            solved=rungs,
            note=f"{model.n_runs} {words}, all scores published",
            n_splits=times,
        )
        if asked is not None and not (prunes or resumes):
            return solved_table(model, asked, self.limit(asked, layout))
        # Nothing is solved for: trials have at least the noise of the final fit.
        model = replace(
            model,
            fit_noise=max(model.fit_noise or 1.0, 1.0),
            score_noise=max(model.score_noise or 1.0, 1.0),
        )
        if not prunes:
            return model, model.within(request.epsilon)
        if request.epsilon is None or request.delta == 0.0:
            raise ValueError(
                "pruner must be None without an epsilon and a delta above 0: the noise of its "
                f"fits follows from these; got epsilon={request.epsilon} and "
                f"delta={request.delta:g}."
            )
        cost = model.solved_curve(request.epsilon)
        _check_rungs(model, cost)
        return model, cost

    def public_count(self, plan: Plan) -> int:
        """Return the number of fits of candidates that callbacks are called for."""
        allowance = Allowance(plan.model.n_runs, plan.model.solved.shares)
        if self.pruner not in PRUNERS:
            return allowance.most_trials
        own = self.own_first(plan.request.estimator, AdaptiveSpace(self.searched(plan)))
        return Races(self.pruner, allowance, has_own=own is not None).n_left

    def rivals(self, plan: Plan) -> int:
        """Return the largest number of candidates to compare with the unchanged estimator."""
        # Theorem N6: with pruning there are more of them than are paid for as whole fits.
        return max(self.public_count(plan) - 1, 0)

    def public_plan(self, search: Any, plan: Plan) -> dict[str, str]:
        """Return descriptions of all that must be the same when the search is resumed."""
        given = {name: described(getattr(search, name)) for name in _OF_SEARCH}
        given |= {name: described(getattr(self, name)) for name in _OF_STRATEGY}
        given |= {
            "param_space": AdaptiveSpace(self.searched(plan)).describe(),
            "n_samples": str(plan.layout.n_samples),
            "n_features": str(plan.layout.n_features),
            "scoring": plan.request.scoring_in_words,
            "public validation data": str(plan.layout.public),
            "total": f"{plan.total.epsilon(plan.delta):.6g}",
            # How the cost is divided: what was paid for before must be what was planned for it.
            "final fit": str(plan.layout.final),
            "cost of a fit": f"{plan.cost.fit.epsilon(plan.delta):.6g}",
            "noise of a score": f"{plan.cost.score_noise.ratio:.6g}",
        }
        # Theorem P14: trials by records say nothing about persons.
        return given | {"unit": "a person"} if plan.by_persons else given

    # Run and choose ---------------------------------------------------------------------------

    def choose(self, run: RunningSearch) -> Choice:
        """Run trials until the budget is used."""
        session = AdaptiveSearchSession(run)
        session.run_all()
        return session.choice()

    def deviation(self, plan: Plan) -> float:
        """Return the standard deviation of the noise on the last score of one split."""
        return super().deviation(plan) / math.sqrt(plan.model.solved.shares[-1])

    def outlook(self, plan: Plan, n_score: int | None = None) -> TableOutlook:
        """Return what the plan's scores can be expected to show."""
        found, last = super().outlook(plan, n_score), math.sqrt(plan.model.solved.shares[-1])
        return replace(found, noise_ratio=found.noise_ratio / last)

    def make_sampler(self, n_trials: int, n_jobs: int | None, seed: int | None) -> Any:
        """Return the sampler for a study."""
        prunes = self.pruner is not None
        return make_sampler(self.sampler, n_trials, seed, self.n_at_once(n_jobs), prunes=prunes)

    def n_at_once(self, n_jobs: int | None) -> int:
        """Return the number of candidates that are chosen and fitted in parallel."""
        return int(effective_n_jobs(n_jobs) if self.batch_size is None else self.batch_size)


def _lists(candidates: Candidates) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in (candidates.suggestion or {}).items()}


# The cost of all trials -------------------------------------------------------------------------


def _all_trials(
    model: CostModel, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
) -> tuple[PrivacyProfile, PrivacyProfile | None]:
    """Return all fits and scores, for records used for training and records used for scoring."""
    # Theorem G6: each candidate may be chosen by any rule from the noisy scores before it.
    layout, rungs, count = model.layout, model.solved, model.n_runs
    n_fits = count * max(layout.folds - 1, 1)
    has_others = layout.validation > 0.0
    both = has_others and rungs.is_resumable
    if not rungs.prunes:
        fits, scores = fit * n_fits, noise.profile * count
        if has_others and not both:
            return fits, scores
        every = fits if noise.kind == "none" else fits + scores
        return every, every if both else None
    curve = _curve_of(setting)
    of_fits = n_fits * curve.shift**2
    of_scores = 0.0 if noise.kind == "none" else count * noise.n_metrics / noise.ratio**2
    failure = n_fits * curve.failure
    if has_others and not both:
        return _within(of_fits, failure), _within(of_scores, 0.0)
    every = _within(of_fits + of_scores, failure)
    return every, every if both else None


def _check_rungs(model: CostModel, cost: Cost) -> None:
    """Check that the fits of all candidates can be costed, at all rungs."""
    rungs: Rungs = model.solved
    first = rungs.setting(model, cost.run_setting, rungs.shares[0])
    try:
        profile = model.fit_costs.first_profile(first, model.train_size)
        lies_below = _curve_of(first).covers(profile)
    except UnreachableBudgetError:
        lies_below = False
    if not lies_below:
        kind = type(model.fit_costs.estimator).__name__
        raise ValueError(
            "pruner must be None for an estimator whose cost exceeds the curve of a Gaussian "
            f"release at any noise, such as one that is known only at one delta; got {kind}."
        )
    for share in rungs.shares:
        setting = rungs.setting(model, cost.run_setting, share)
        model.fit_costs.check_spaces([(setting, rungs.size(model, share))])


def _curve_of(setting: FitSetting | None) -> SharedCurve:
    if not isinstance(setting, CurveSetting):
        raise TypeError(f"setting must be a curve with a pruner; got {shown(setting)}.")
    return setting.curve


def _within(squared_shifts: float, failure: float) -> PrivacyProfile:
    """Return the cost of releases whose squared shifts and failures sum to at most these."""
    # Theorem G4: adaptively chosen Gaussian releases add up in squared shifts.
    gaussian = gaussian_profile(math.sqrt(squared_shifts) * _SLACK, 1.0)
    return with_failure(gaussian, min(failure * _SLACK, 1.0))
