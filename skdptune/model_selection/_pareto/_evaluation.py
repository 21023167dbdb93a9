"""Evaluations of the parameters of a Pareto search: exact, or one noisy utility each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.metrics import BoundedScorer
from skdptune.model_selection._cost import Layout, ScoreNoise
from skdptune.model_selection._pareto._costs import ParameterCosts
from skdptune.model_selection._pareto._study import Evaluation
from skdptune.model_selection._pareto._third_objective import ThirdObjective
from skdptune.model_selection._running import (
    Fold,
    Material,
    Outcome,
    Quiet,
    Scoring,
    Values,
    child_stream,
    fit_and_score,
    is_failure,
    noise_random,
    perform_all,
)

# A fold, and the seed of its fit.
Task = tuple[Fold, np.random.SeedSequence | None]


@dataclass(frozen=True)
class ExactEvaluator:
    """Evaluates parameters exactly: what it returns is not private.

    Parameters
    ----------
    costs : ParameterCosts
    material : Material
        Data, folds and scoring.
    n_repeats : int
    is_seeded : bool
        Whether fits and noise follow the evaluation's seed, or the system's entropy.
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
        """Return a numbered random stream of an evaluation, None for the system's entropy."""
        return child_stream(seed, number) if self.is_seeded else None

    def _repeat(self, estimator: Any, seed: np.random.SeedSequence | None) -> tuple[float, float]:
        """Return the utility of one repeat, and its third objective."""
        started = time.perf_counter()
        values, thirds = [], []
        for place, fold in enumerate(self.material.folds):
            outcome = fit_on_fold((fold, child_stream(seed, place)), self.material, estimator)
            values.append(values_of_success(outcome))
            if self.third is not None and self.third.function is not None:
                scored = self.material.scored(fold)
                with Quiet(), np.errstate(all="ignore"):
                    thirds.append(float(self.third.function(outcome.model, scored.X, scored.y)))
        score = self.scorer.score(np.concatenate(values), max(sum(map(len, values)), 1))
        third = np.mean(thirds) if thirds else time.perf_counter() - started
        return unit_utility(score, self.scorer), float(third)

    @property
    def scorer(self) -> BoundedScorer:
        """The scorer of an evaluation."""
        return self.material.scoring.scorer


@dataclass(frozen=True)
class NoisyEvaluator:
    """Evaluates parameters by one noisy utility, and shows nothing else; no data can make it fail.

    Parameters
    ----------
    exact : ExactEvaluator
        Its material has the noise of a score of all repeats together, and hides failures.
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
        values = self._values(tasks, exact.estimator(params))
        noise = noise_random(exact.stream(seed, exact.n_repeats))
        score = exact.material.scoring.released(values, noise)
        return Evaluation(exact.costs.epsilon(params), (unit_utility(score, exact.scorer),))

    def _values(self, tasks: list[Task], estimator: Any) -> Values | None:
        """Return the values of all folds and repeats, None if one of the fits failed."""
        try:
            values = perform_all(
                _values_on_fold,
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
        found = [some for some in values if some is not None]
        return np.concatenate(found) if len(found) == len(tasks) else None


def fit_on_fold(task: Task, material: Material, estimator: Any) -> Outcome:
    """Fit a copy of an estimator to a fold, and score it: the one place that fits and scores."""
    fold, seed = task
    # A copy: threads share the estimator, and no fit may start from what another has learned.
    (outcome,) = fit_and_score(
        [clone(estimator)],
        [seed],
        material.data.take(fold[0]),
        material.scored(fold),
        material.scoring.scorer,
        raises=material.raises,
    )
    return outcome


def _values_on_fold(task: Task, material: Material, estimator: Any) -> Values | None:
    """Return the values of a fold, without the model, which need not be sent back."""
    return fit_on_fold(task, material, estimator).values


def values_of_success(outcome: Outcome) -> Values:
    """Return the values of a fit that did not fail."""
    if outcome.values is None:
        raise outcome.error or RuntimeError("the fit gave no values")
    return outcome.values


def score_of_all(
    layout: Layout, scorer: BoundedScorer, n_repeats: int, noise: ScoreNoise
) -> Scoring:
    """Return the scoring of the values of all repeats together.

    Their mean is the mean of the repeats' scores, and one record changes it by no more than it may
    change any of these.
    """
    if layout.public:
        return Scoring(scorer, None, 0.0, noise.ratio, noise.kind)
    size = layout.n_score * n_repeats
    return Scoring(scorer, size, layout.sensitivity(scorer), noise.ratio, noise.kind)


def unit_utility(score: float, scorer: BoundedScorer) -> float:
    """Return a score on the scale from the worst, 0, to the best, 1."""
    return min(max((score - scorer.lower) / (scorer.upper - scorer.lower), 0.0), 1.0)
