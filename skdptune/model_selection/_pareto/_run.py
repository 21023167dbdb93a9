"""The run of a Pareto search on the data: evaluations, and the final fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from skdptune.base import forget_seeds, own_seeds, set_seeds
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._pareto._checks import third_objective_of
from skdptune.model_selection._pareto._evaluation import (
    ExactEvaluator,
    NoisyEvaluator,
    score_of_all,
)
from skdptune.model_selection._pareto._plan import ParetoPlan, ProposalFilter
from skdptune.model_selection._pareto._release import ReleasePlan
from skdptune.model_selection._pareto._settings import ParetoSettings
from skdptune.model_selection._pareto._study import Evaluation, ParetoOptimizer, Record
from skdptune.model_selection._running import (
    N_TRIED,
    ONE_FIT,
    Data,
    Fold,
    Material,
    Quiet,
    Scoring,
    Streams,
    check_fits,
    data_independent_model,
    disjoint_folds,
    generator_of,
    is_failure,
    random_split,
)


class ParetoRun:
    """Runs a Pareto search on the data, within its plan.

    Parameters
    ----------
    settings : ParetoSettings
    plan : ParetoPlan
    scorer : BoundedScorer
    streams : Streams
        Of all random numbers.
    """

    def __init__(
        self, settings: ParetoSettings, plan: ParetoPlan, scorer: BoundedScorer, streams: Streams
    ) -> None:
        self.settings, self.plan = settings, plan
        self.scorer, self.streams = scorer, streams

    def evaluate(self, data: Data, public: Data | None) -> tuple[list[Record], Any]:
        """Return the evaluations and their optuna study, None if that must not be shown."""
        exact = self._exact_evaluator(data, public)
        if self.plan.release is None:
            optimizer = self._exact_optimizer(exact, data, public)
            study = optimizer.run()
            return optimizer.records(), study
        optimizer = self._released_optimizer(exact, self.plan.release)
        optimizer.run()
        return [_without_seconds(record) for record in optimizer.records()], None

    def check_fits(self, data: Data) -> None:
        """Raise if the fits of a released front all fail on made-up data, whatever is searched."""
        space, costs = self.plan.families.space, self.plan.costs
        cube = np.random.default_rng(0).random((N_TRIED, len(space.names)))
        made = (costs.configured(space.from_unit(unit), costs.final_size) for unit in cube)
        check_fits(made, data, self.plan.layout.n_samples, self.scorer.response_method)

    def _exact_evaluator(self, data: Data, public: Data | None) -> ExactEvaluator:
        """Return the evaluator of parameters, with all records split."""
        settings, layout = self.settings, self.plan.layout
        rng = generator_of(self.streams.random_split)
        folds: Sequence[Fold] = ONE_FIT
        validation = public
        if layout.folds:
            folds = disjoint_folds(data.n_samples, layout.folds, rng)
        elif not layout.public:
            split = random_split(data.n_samples, layout.validation, None, 1, rng)
            data, validation = data.take(split.tuning), data.take(split.validation)
        scoring = Scoring(self.scorer, None, 0.0, 0.0, "none")
        return ExactEvaluator(
            self.plan.costs,
            # Nothing of it is released: failures are shown.
            Material(data, folds, validation, scoring, raises=True),
            settings.n_repeats,
            settings.random_state is not None,
            third_objective_of(settings),
        )

    def _exact_optimizer(
        self, evaluator: ExactEvaluator, data: Data, public: Data | None
    ) -> ParetoOptimizer:
        settings, third = self.settings, evaluator.third
        is_stored = settings.storage is not None
        return ParetoOptimizer(
            evaluator,
            self.plan.families.space,
            n_initial=settings.n_initial,
            n_iter=settings.n_iter,
            third=None if third is None else third.name,
            storage=settings.storage,
            study_name=settings.study_name,
            n_jobs=settings.n_jobs,
            fingerprint=self._fingerprint(data, public) if is_stored else "",
            **self._common_arguments(),
        )

    def _released_optimizer(
        self, evaluator: ExactEvaluator, release: ReleasePlan
    ) -> ParetoOptimizer:
        settings = self.settings
        scoring = score_of_all(self.plan.layout, self.scorer, settings.n_repeats, release.noise)
        material = replace(evaluator.material, scoring=scoring, raises=False)
        n_initial = min(settings.n_initial, release.n_evaluations)
        return ParetoOptimizer(
            NoisyEvaluator(replace(evaluator, material=material), settings.n_jobs),
            self.plan.families.space,
            n_initial=n_initial,
            n_iter=release.n_evaluations - n_initial,
            # Which of several evaluations ends first depends on the data.
            n_jobs=1,
            proposal_filter=ProposalFilter(self.plan),
            **self._common_arguments(),
        )

    def _common_arguments(self) -> dict[str, Any]:
        settings, draw = self.settings, self.streams.draw
        return {
            "batch_size": settings.batch_size,
            "sampler": settings.sampler,
            "reference_point": tuple(settings.reference_point),
            "epsilon_scale": settings.epsilon_scale,
            "random_state": None if draw is None else int(draw.generate_state(1)[0] >> 1),
        }

    def _fingerprint(self, data: Data, public: Data | None) -> str:
        """Return a hash of all that evaluations depend on beside their parameters."""
        split = self.streams.random_split
        found: str = joblib.hash(
            (
                [clone(estimator) for estimator in self.plan.families],
                self.plan.layout,
                self.plan.delta,
                self.settings.privacy,
                self.settings.n_repeats,
                self.scorer.name,
                data,
                public,
                # With a seed all processes split the records alike; without, each for itself.
                None if split is None else split.generate_state(4),
            )
        )
        return found

    def best_index(self, records: Sequence[Record]) -> int | None:
        """Return the index of the record whose parameters get the final fit, None for none."""
        refit = self.settings.refit
        if refit is False:
            return None
        limit = np.inf if refit is True else float(refit)
        within = [
            index
            for index, record in enumerate(records)
            if record.evaluation.failure is None and self._cost_of_final_fit(record) <= limit
        ]
        if not within:
            warnings.warn(
                "refit must be at least the smallest epsilon that was evaluated; got "
                f"{refit!r}. No model is fitted.",
                UserWarning,
                stacklevel=4,
            )
            return None
        return max(within, key=lambda index: float(np.mean(records[index].evaluation.utilities)))

    def _cost_of_final_fit(self, record: Record) -> float:
        if self.plan.release is None:
            return record.evaluation.epsilon
        # At the half of delta that is kept for it.
        return self.plan.costs.of_final_fit(record.params).epsilon(self.plan.release.delta)

    def fit_final(self, record: Record, data: Data) -> Any:
        """Return a model fitted to all records; a released one shows no failure."""
        costs = self.plan.costs
        model = costs.configured(record.params, costs.final_size)
        own = own_seeds(model)
        set_seeds(model, self.streams.final)
        try:
            with Quiet(), np.errstate(all="ignore"):
                data.fit(model)
        except BaseException as problem:
            if self.plan.release is None or not is_failure(problem):
                raise
            model = data_independent_model(model, data, self.plan.layout.n_samples)
        # Theorem F9.
        return forget_seeds(model, own)


def _without_seconds(record: Record) -> Record:
    """Return a record without the time of the evaluation, which is not charged."""
    found = record.evaluation
    return Record(record.number, record.params, Evaluation(found.epsilon, found.utilities))
