"""Raise epsilon level by level, until a noisy score reaches a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom, laplace, norm

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown, shown_delta, shown_number
from skdptune._validation import check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import about_unit
from skdptune.ledger._shared import PERSON
from skdptune.model_selection._cost import (
    Candidates,
    Cost,
    CostModel,
    FitSetting,
    Layout,
    ScoreNoise,
    split_of,
)
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._strategies._full_table import (
    ScoreTable,
    all_released,
    fit_and_show,
    row_of,
)
from skdptune.model_selection._strategies._running_search import RunningSearch
from skdptune.model_selection._strategies._strategy import Choice, Plan, PlanRequest

# Default levels below the search's epsilon, as shares of it.
_SHARES = (0.125, 0.25, 0.5)
# The last level's share of delta. The others share the rest equally.
_SHARE_OF_LAST = 0.9


@with_shared_text(SHARED_TEXT)
@dataclass(eq=False, repr=False, kw_only=True)
class LeastEpsilon(ScoreTable):
    """Find the least epsilon of a list at which a model reaches a target score.

    A strategy of `DPGridSearchCV`. The first level fits and scores the candidates with the noise
    of the smallest epsilon. Each further level is made only if no noisy score before it reached
    the target. It is fitted with what its epsilon leaves after the levels before it. The best
    model of the last level that was made is returned. If no level reaches the target, this is the
    level of the search's own `epsilon`, and ``reached_`` is False.

    The fitted search states two guarantees. ``privacy_`` holds whatever happens: the search's
    (epsilon, delta). Ledgers count this. ``epsilon_`` is the epsilon of the level at which the
    search stopped, and covers all that was published up to there. This is known only after the
    search, and is called ex-post privacy.

    Parameters
    ----------
    target_score : float
        The score to reach on the validation records, in the units of `scoring`.
    epsilons : sequence of float, optional
        The levels below the search's `epsilon`, in increasing order. Each is the cost of all
        levels up to it. The last level is the search's `epsilon`. By default an eighth, a quarter
        and a half of it.
    confidence : float, default=0.95
        A score must be above the target by a margin for its noise, and for the number of held-out
        records, which is secret. With at least this probability, a model that is said to reach the
        target does so on the validation records without noise. `plan` prints the scores that are
        needed. With a `HoldOut`, or an `n_public` that is not the number of records, this is about
        the sum over the validation records, divided by their stated number.
    {storage_of_runs}
    {of_every_strategy}

    Attributes
    ----------
    epsilon_ : float
        Of the fitted search: the epsilon of the level at which it stopped.
    reached_ : bool
        Of the fitted search: whether a noisy score reached the target.
    ex_post_ : str
        Of the fitted search: both guarantees in a sentence each.

    See Also
    --------
    DPGridSearchCV : ``cv_results_`` has one row for each candidate at each level that was made.

    Notes
    -----
    Theorem F15. Neighbours differ by adding or removing one record, or by replacing one if the
    estimator says so. Of the search's delta, the last level has nine tenths.

    References
    ----------
    Ligett, Neel, Roth, Waggoner, Wu: Accuracy First.
    Ghazi, Kamath, Knop, Kumar, Manurangsi, Zhang: Private Hyperparameter Tuning with Ex-Post
    Guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV, LeastEpsilon
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=20_000) > 0
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {}, epsilon=4.0, delta=1e-5, random_state=0,
    ...     strategy=LeastEpsilon(target_score=0.85),
    ... ).fit(X, y)
    >>> search.epsilon_, search.reached_, search.privacy_.epsilon
    (0.5, True, 4.0)
    """

    name = "least epsilon (DPGridSearchCV)"
    shows = "scores and models of the levels that are made"
    always_refits = False
    takes_callable = False

    target_score: float | None = None
    epsilons: Sequence[float] | None = None
    confidence: float = 0.95
    storage: Any = None
    diagnostics: bool = False
    error_score: str = "worst"
    pre_dispatch: Any = "2*n_jobs"

    # Parameters -------------------------------------------------------------------------------

    def check(self, search: Any) -> None:
        """Validate the parameters, also in combination with those of the search."""
        super().check(search)
        if search.epsilon is None:
            raise ValueError(
                "epsilon must be given for LeastEpsilon, as its last level; got None."
            )
        self._levels(search.epsilon)
        check_real(self.confidence, name="confidence", lower=0.5, upper=1.0, upper_open=True)
        if split_of(search.cv)[1]:
            raise ValueError(
                "cv must be a fraction or a HoldOut for LeastEpsilon; got folds. The model that "
                "reaches the target is the one that is returned."
            )
        is_winner = isinstance(search.refit, str) and search.refit == "winner"
        if not is_winner and search.refit is not False:
            raise ValueError(
                f"refit must be 'winner' or False for LeastEpsilon; got {shown(search.refit)}. "
                "The model that reaches the target is the one that is returned."
            )

    def _levels(self, epsilon: float) -> tuple[float, ...]:
        """Return the total epsilon of each level, in increasing order."""
        if self.epsilons is None:
            return (*(share * epsilon for share in _SHARES), epsilon)
        given = self.epsilons
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
            raise TypeError(f"epsilons must be a sequence of numbers; got {shown(given)}.")
        levels = [check_real(one, name="epsilons[i]", lower=0.0, lower_open=True) for one in given]
        below = [0.0, *levels, float(epsilon)]
        if not levels or any(one >= other for one, other in zip(below, below[1:], strict=False)):
            raise ValueError(
                f"epsilons must increase, and end below the search's epsilon of {epsilon:g}, "
                f"which is the last level; got {shown(list(given))}."
            )
        return tuple(below[1:])

    def check_candidates(self, request: PlanRequest) -> None:
        """Refuse parameters that must not be searched, and targets that no score can reach."""
        super().check_candidates(request)
        scorer = request.scorer
        if self.target_score is None:
            raise ValueError("target_score must be given for LeastEpsilon; got None.")
        check_real(
            self.target_score,
            name="target_score",
            lower=scorer.lower,
            upper=scorer.upper,
            hint=f"These are the bounds of the score {shown(scorer.name)}.",
        )

    def suggested(self, candidates: Candidates) -> Candidates:
        """Return the unchanged estimator as the only candidate."""
        return Candidates([{}], name=candidates.name, drawn=False)

    # Cost -------------------------------------------------------------------------------------

    def split(self, request: PlanRequest) -> tuple[Any, int]:
        """Return that candidates are fitted on all records that are not held out."""
        return None, 2

    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost of all levels, each solved for what the levels before it leave."""
        levels, base = self._levels(request.epsilon or 0.0), self._of_level(request, layout)
        others = request.delta * (1.0 - _SHARE_OF_LAST) / (len(levels) - 1)
        deltas = [*[others] * (len(levels) - 1), request.delta * _SHARE_OF_LAST]
        costs: list[Cost] = []
        for epsilon, delta in zip(levels, deltas, strict=True):
            model = _after(replace(base, delta=delta), costs[-1] if costs else None)
            costs.append(model.within(epsilon))
            model.check(costs[-1])
        note, n_runs = f"up to {len(levels)} levels of {base.note}", base.n_runs * len(levels)
        model = replace(model, delta=request.delta, note=note, n_runs=n_runs, solved=tuple(costs))
        return model, costs[-1]

    def _of_level(self, request: PlanRequest, layout: Layout) -> CostModel:
        """Return the cost model of a single level."""
        return all_released(request, layout, self.n_runs(request), "candidates, all published")

    def _planned(self, request: PlanRequest) -> Plan:
        plan, parts = super()._planned(request), []
        level, levels = self._of_level(request, plan.layout), self._levels(request.epsilon or 0.0)
        for place, (cost, epsilon) in enumerate(zip(plan.model.solved, levels, strict=True), 1):
            every: Any = level.selections
            trained, scored = every(level, cost.fit, cost.score_noise, cost.run_setting)
            (part,) = level.components(replace(cost, trained=trained, scored=scored))
            note = f"ε = {shown_number(epsilon)} with the levels before it"
            parts.append(replace(part, name=f"level {place}", note=note))
        (selection,) = plan.components
        return replace(plan, components=(replace(selection, parts=tuple(parts)),))

    # The plan in words --------------------------------------------------------------------------

    def needed(self, plan: Plan) -> list[float]:
        """Return the noisy score that is needed at each level."""
        scorer, layout = plan.request.scorer, plan.layout
        centre = 0.5 * (scorer.lower + scorer.upper) if scorer.centred else scorer.lower
        above, risk = float(self.target_score or 0.0) - centre, 1.0 - self.confidence
        if not layout.public and not layout.by_rule:
            # Theorem F15: the sum of a score is divided by the expected number of held-out
            # records. All levels have the same ones. Half of the risk is for their number.
            risk *= 0.5
            number = binom(layout.n_samples, layout.validation)
            above *= float(number.isf(risk) if above > 0.0 else number.ppf(risk)) / layout.n_score
        # All scores of all levels have noise below their margin at once.
        tail = risk / plan.model.n_runs
        costs = plan.model.solved
        return [centre + above + _margin(replace(plan, cost=cost), tail) for cost in costs]

    def keeps(self, plan: Plan) -> str:
        """Return at which scores the search stops, and what it then costs."""
        levels, target = self._levels(plan.asked or 0.0), self.target_score
        each = "; ".join(
            f"ε = {shown_number(epsilon)} (ε of a fit {shown_number(cost.fit_epsilon)}, noisy "
            f"score {score:.3g})"
            for epsilon, cost, score in zip(
                levels, plan.model.solved, self.needed(plan), strict=True
            )
        )
        return (
            f"Stops at the first level with a noisy score that says, with {self.confidence:.3g} "
            f"confidence, that {target:g} is reached: {each}. After a stop, the guarantee has the "
            f"ε of that level; before the outcome is known, ε = {shown_number(levels[-1])}."
        )

    # Run and choose ---------------------------------------------------------------------------

    def choose(self, run: RunningSearch) -> Choice:
        """Make levels until a noisy score reaches the target; choose from the last one made."""
        plan, candidates = run.plan, list(run.plan.candidates.grid())
        levels, rows, epsilons = self._levels(plan.asked or 0.0), [], []
        for epsilon, cost, score in zip(levels, plan.model.solved, self.needed(plan), strict=True):
            # Theorem F15: only noisy scores decide whether another level is made.
            at_level = replace(run, plan=replace(plan, cost=cost))
            results = fit_and_show(at_level, candidates)
            deviation = self.deviation(at_level.plan)
            rows += [row_of(*each, deviation) for each in zip(candidates, results, strict=True)]
            epsilons += [epsilon] * len(results)
            best = at_level.highest(results)
            reached = results[best].score >= score
            if reached:
                break
        attributes = {
            "epsilon_": epsilon,
            "reached_": bool(reached),
            "ex_post_": _in_words(plan, epsilon, len(set(epsilons)), reached),
        }
        return Choice(
            candidates[best],
            results[best].score,
            results[best].model,
            rows,
            len(rows) - len(results) + best,
            columns={"epsilon": np.array(epsilons)},
            attributes=attributes,
        )


def _after(base: CostModel, before: Cost | None) -> CostModel:
    """Return the cost model of a level whose costs include those of the levels before it."""
    every: Any = base.selections

    # Theorem F15: a record is used for fits at every level, or for scores at every level.
    def selections(
        model: CostModel, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
    ) -> tuple[PrivacyProfile, PrivacyProfile | None]:
        trained, scored = every(model, fit, noise, setting)
        if before is None:
            return trained, scored
        if scored is None or before.scored is None:
            return before.trained + trained, None
        return before.trained + trained, before.scored + scored

    return replace(base, selections=selections)


def _margin(plan: Plan, tail: float) -> float:
    """Return what the noise on a score exceeds with a probability of `tail`."""
    noise = plan.cost.score_noise
    if noise.kind == "none":
        return 0.0
    scale = noise.ratio * plan.layout.sensitivity(plan.request.scorer)
    return scale * float((norm if noise.kind == "gaussian" else laplace).isf(tail))


def _in_words(plan: Plan, epsilon: float, n_made: int, reached: bool) -> str:
    """Return both guarantees in a sentence each."""
    n_levels, at_delta = len(plan.model.solved), f"at δ = {shown_delta(plan.delta)}"
    ending = "reached the target" if reached else "did not reach the target"
    words = (
        f"What was published reveals at most ε = {shown_number(epsilon)} about any record, "
        f"{at_delta}: the search stopped at level {n_made} of {n_levels}, which {ending}. "
        f"Before the outcome was known, the guarantee was ε = {shown_number(plan.asked or 0.0)}, "
        f"{at_delta}; a ledger counts this."
    )
    return about_unit(words, PERSON) if plan.by_persons else words
