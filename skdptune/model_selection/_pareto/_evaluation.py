"""Evaluations of a search over estimators: what parameters cost, and how well they do."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.accounting import PrivacyProfile
from skdptune.base import (
    check_secret_size,
    cost_of,
    nested_estimators,
    replaces_records,
)
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._cost import FitCosts, FitSize, Layout, ScoreNoise
from skdptune.model_selection._pareto._families import Families
from skdptune.model_selection._pareto._study import Evaluation
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
# Of the moments accountant: its paper, and the search's, count in whole moments.
_MOMENTS = np.arange(2.0, 257.0)


@dataclass(frozen=True)
class EvaluationCosts:
    """What parameters cost: as an objective of the search, and as a fit of an evaluation.

    Parameters
    ----------
    families : Families
    layout : Layout
        Sizes of the fits; public.
    delta : float
    privacy : {"profile", "moments"}
        By which bound the objective is found.
    classes : sequence or None
        The public label set.
    """

    families: Families
    layout: Layout
    delta: float
    privacy: str = "profile"
    classes: Any = None

    def __call__(self, params: dict[str, Any]) -> float:
        """Return the epsilon of a fit on all records."""
        profile = self.final(params)
        if self.privacy == "moments":
            return moments_epsilon(profile, self.delta)
        return profile.epsilon(self.delta)

    def final(self, params: dict[str, Any]) -> PrivacyProfile:
        """Return what a fit on all records costs."""
        size = self.final_size
        return cost_of(self.configured(params, size), size.n_samples, size.n_features)

    def of_evaluation(self, params: dict[str, Any]) -> PrivacyProfile:
        """Return what a fit of an evaluation costs; raise if that hangs on a secret size."""
        size = self.train_size
        made = self.configured(params, size)
        check_relation(made)
        if size.is_secret:
            check_secret_size(made, size.n_samples, size.n_features)
        return cost_of(made, size.n_samples, size.n_features)

    def configured(self, params: dict[str, Any], size: FitSize) -> Any:
        """Return the estimator for one fit; seeds are left to the fit."""
        family, own = self.families.split(params)
        fit_costs = FitCosts(self.families.members[family], (), "auto", self.classes)
        return fit_costs.configured(own, None, size)

    @property
    def train_size(self) -> FitSize:
        """The records of one fit of an evaluation."""
        layout = self.layout
        return FitSize(layout.n_train, layout.n_final, layout.n_features, layout.train_is_random)

    @property
    def final_size(self) -> FitSize:
        """All records."""
        layout = self.layout
        return FitSize(layout.n_final, layout.n_final, layout.n_features, layout.final_is_random)


def check_relation(estimator: Any) -> None:
    """Refuse a guarantee that is about other neighbours than the price of a release is."""
    if any(replaces_records(part) for _, part in nested_estimators(estimator)):
        raise TypeError(
            "estimator must have a guarantee about adding or removing a record with release; "
            "got one about replacing."
        )


def moments_epsilon(profile: PrivacyProfile, delta: float) -> float:
    """Return the epsilon that the moments accountant finds, for comparison.

    Notes
    -----
    Abadi et al. (2016), Theorem 2: the least of ``divergence(order) + log(1/delta) / (order - 1)``
    over whole orders.
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


@dataclass(frozen=True)
class Trial:
    """Everything that an evaluation needs, as a function of parameters.

    Parameters
    ----------
    costs : EvaluationCosts
    material : Material
        Data, folds and scoring.
    n_repeats : int
    is_seeded : bool
        Whether fits and noise follow the evaluation's seed, or the system's entropy.
    third : None, "time" or (str, callable)
        See `DParetoSearchCV`.
    """

    costs: EvaluationCosts
    material: Material
    n_repeats: int
    is_seeded: bool
    third: Any = None

    def __call__(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Evaluation:
        """Return exact utilities: for the eyes of the curator alone."""
        epsilon = self.costs(params)
        estimator = self.costs.configured(params, self.costs.train_size)
        repeats = [self._repeat(estimator, self.stream(seed, r)) for r in range(self.n_repeats)]
        utilities, thirds = zip(*repeats, strict=True)
        third = None if self.third is None else float(np.mean(thirds))
        return Evaluation(epsilon, utilities, third)

    def stream(self, seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence | None:
        """Return a numbered stream of an evaluation's randomness, None for the system's."""
        return child_stream(seed, number) if self.is_seeded else None

    def _repeat(self, estimator: Any, seed: np.random.SeedSequence | None) -> tuple[float, float]:
        """Return the utility of one repeat, and its third objective."""
        started = time.perf_counter()
        values, thirds = [], []
        for place, fold in enumerate(self.material.folds):
            outcome = fit_on_fold((fold, child_stream(seed, place)), self.material, estimator)
            values.append(values_of_success(outcome))
            if isinstance(self.third, tuple):
                held = self.material.scored(fold)
                with Quiet(), np.errstate(all="ignore"):
                    thirds.append(float(self.third[1](outcome.model, held.X, held.y)))
        score = self.scorer.score(np.concatenate(values), max(sum(map(len, values)), 1))
        third = np.mean(thirds) if thirds else time.perf_counter() - started
        return unit_utility(score, self.scorer), float(third)

    @property
    def scorer(self) -> BoundedScorer:
        """The score of an evaluation."""
        return self.material.scoring.scorer


@dataclass(frozen=True)
class PrivateTrial:
    """An evaluation of which nothing is seen but a noisy utility; no data can make it fail.

    Parameters
    ----------
    trial : Trial
        Its material has the noise of a score of all repeats together, and hides failures.
    n_jobs : int or None
        Workers for the fits of one evaluation.
    """

    trial: Trial
    n_jobs: int | None = None

    def __call__(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Evaluation:
        """Return the epsilon and one utility with noise."""
        trial, costs = self.trial, self.trial.costs
        estimator = costs.configured(params, costs.train_size)
        tasks = [
            (fold, child_stream(trial.stream(seed, repeat), place))
            for repeat in range(trial.n_repeats)
            for place, fold in enumerate(trial.material.folds)
        ]
        noise = noise_random(trial.stream(seed, trial.n_repeats))
        score = trial.material.scoring.released(self._values(tasks, estimator), noise)
        return Evaluation(costs(params), (unit_utility(score, trial.scorer),))

    def _values(self, tasks: list[Task], estimator: Any) -> Values | None:
        """Return the values of all folds and repeats, None if one of the fits failed."""
        try:
            values = perform_all(
                _values_on_fold,
                tasks,
                self.trial.material,
                estimator,
                n_jobs=self.n_jobs,
                pre_dispatch="2*n_jobs",
            )
        except BaseException as problem:
            if not is_failure(problem):
                raise
            # Fits that take their workers with them depend on the data as well.
            return None
        found = [some for some in values if some is not None]
        return np.concatenate(found) if len(found) == len(tasks) else None


def fit_on_fold(task: Task, material: Material, estimator: Any) -> Outcome:
    """Fit a copy of an estimator to a fold, and score it."""
    fold, seed = task
    # Threads share what they are given; and nothing may be carried from fold to fold.
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
    """Return the values alone: models stay where they were fitted."""
    return fit_on_fold(task, material, estimator).values


def values_of_success(outcome: Outcome) -> Values:
    """Return the values of a fit that did not fail."""
    if outcome.values is None:
        raise outcome.error or RuntimeError("the fit gave no values")
    return outcome.values


def score_of_all(
    layout: Layout, scorer: BoundedScorer, n_repeats: int, noise: ScoreNoise
) -> Scoring:
    """Return how the values of all repeats make one score.

    Their mean is the mean of the repeats' scores, and one record moves it by no more than it may
    move any of these.
    """
    if layout.public:
        return Scoring(scorer, None, 0.0, noise.ratio, noise.kind)
    size = layout.n_score * n_repeats
    return Scoring(scorer, size, layout.sensitivity(scorer), noise.ratio, noise.kind)


def unit_utility(score: float, scorer: BoundedScorer) -> float:
    """Return a score on the scale from the worst, 0, to the best, 1."""
    return min(max((score - scorer.lower) / (scorer.upper - scorer.lower), 0.0), 1.0)
