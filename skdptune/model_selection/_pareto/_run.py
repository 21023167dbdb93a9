"""One fit of a Pareto search: its evaluations, and the model that is fitted at the end."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from skdptune.base import set_seeds
from skdptune.model_selection._pareto._checks import third_name
from skdptune.model_selection._pareto._evaluation import PrivateTrial, Trial, score_of_all
from skdptune.model_selection._pareto._plan import Affordable, Study
from skdptune.model_selection._pareto._study import Evaluation, ParetoOptimizer, Record
from skdptune.model_selection._running import (
    ONE_FIT,
    Data,
    Fold,
    Material,
    Quiet,
    Scoring,
    Streams,
    data_independent_model,
    disjoint_folds,
    generator_of,
    is_failure,
    random_split,
)


class ParetoRun:
    """What one fit of a `DParetoSearchCV` does with the records, within what was settled.

    Parameters
    ----------
    search : DParetoSearchCV
        Its parameters, which were checked.
    study : Study
    streams : Streams
        Of all that is random.
    """

    def __init__(self, search: Any, study: Study, streams: Streams) -> None:
        self.search, self.study, self.streams = search, study, streams

    def evaluated(self, data: Data, public: Data | None) -> tuple[list[Record], Any]:
        """Return the evaluations, and optuna's study of them unless it must not be seen."""
        engine = self._engine(self._trial(data, public))
        engine.run()
        records = engine.records()
        if self.study.plan is None:
            return records, engine.study
        return [_without_traces(record) for record in records], None

    def _trial(self, data: Data, public: Data | None) -> Trial:
        """Return the evaluation of parameters, with all records split."""
        search, layout = self.search, self.study.costs.layout
        rng = generator_of(self.streams.random_split)
        folds: Sequence[Fold] = ONE_FIT
        validation = public
        if layout.folds:
            folds = disjoint_folds(data.n_samples, layout.folds, rng)
        elif not layout.public:
            split = random_split(data.n_samples, layout.validation, None, 1, rng)
            data, validation = data.take(split.tuning), data.take(split.validation)
        scoring = Scoring(search._scorer(), None, 0.0, 0.0, "none")
        return Trial(
            self.study.costs,
            # Exact evaluations are the curator's: what fails is named.
            Material(data, folds, validation, scoring, raises=True),
            search.n_repeats,
            search.random_state is not None,
            search.third_objective,
        )

    def _engine(self, trial: Trial) -> ParetoOptimizer:
        """Return what proposes and evaluates, held to the plan of a release."""
        search = self.search
        draw = self.streams.draw
        seed = None if draw is None else int(draw.generate_state(1)[0] >> 1)
        common: dict[str, Any] = {
            "batch_size": search.batch_size,
            "sampler": search.sampler,
            "reference_point": tuple(search.reference_point),
            "verbose": search.verbose,
            "random_state": seed,
        }
        space, plan = self.study.costs.families.space, self.study.plan
        if plan is None:
            return ParetoOptimizer(
                trial,
                space,
                n_initial=search.n_initial,
                n_iter=search.n_iter,
                third=third_name(search.third_objective),
                storage=search.storage,
                study_name=search.study_name,
                n_jobs=search.n_jobs,
                fingerprint=""
                if search.storage is None
                else _fingerprint(search, self.study, trial),
                **common,
            )
        scoring = score_of_all(trial.costs.layout, trial.scorer, search.n_repeats, plan.noise)
        material = replace(trial.material, scoring=scoring, raises=False)
        n_initial = min(search.n_initial, plan.n_evaluations)
        return ParetoOptimizer(
            PrivateTrial(replace(trial, material=material), search.n_jobs),
            space,
            n_initial=n_initial,
            n_iter=plan.n_evaluations - n_initial,
            n_jobs=1,
            proposal_filter=Affordable(self.study),
            **common,
        )

    def best(self, records: list[Record]) -> int | None:
        """Return the place of the record that is to be fitted again, None for none."""
        refit = self.search.refit
        if refit is False:
            return None
        limit = np.inf if refit is True else float(refit)
        places = [
            place
            for place, record in enumerate(records)
            if record.evaluation.failure is None and self._costs(record) <= limit
        ]
        if not places:
            warnings.warn(
                "refit must be at least the least epsilon that was evaluated; got "
                f"{refit!r}. No model is fitted.",
                UserWarning,
                stacklevel=4,
            )
            return None
        return max(places, key=lambda place: float(np.mean(records[place].evaluation.utilities)))

    def _costs(self, record: Record) -> float:
        if self.study.plan is None:
            return record.evaluation.epsilon
        # At the half of delta that is kept for it.
        return self.study.costs.final(record.params).epsilon(self.study.plan.delta)

    def final(self, record: Record, data: Data) -> Any:
        """Return the model on all records; of a release, one that no failure tells of."""
        made = self.study.costs.configured(record.params, self.study.costs.final_size)
        set_seeds(made, self.streams.final)
        try:
            with Quiet(), np.errstate(all="ignore"):
                data.fit(made)
            return made
        except BaseException as problem:
            if self.study.plan is None or not is_failure(problem):
                raise
            return data_independent_model(made, data)


def warn_of_one_cost(records: list[Record]) -> None:
    """Warn where nothing of the space changes epsilon."""
    found = [record.evaluation for record in records if record.evaluation.failure is None]
    if len(found) > 1 and len({evaluation.epsilon for evaluation in found}) == 1:
        warnings.warn(
            f"All evaluations cost epsilon={found[0].epsilon:.4g}, so that the front is a single "
            "point. Let param_space hold what sets the noise, such as epsilon or "
            "noise_multiplier.",
            UserWarning,
            stacklevel=5,
        )


def warn_of_few(count: int, wanted: int) -> None:
    """Warn where a budget was too small to start a search with, as public numbers say."""
    if count < wanted:
        warnings.warn(
            f"release paid for {count} evaluations of {wanted} and more that were wanted. Search "
            "a space of smaller epsilons, or give more.",
            UserWarning,
            stacklevel=5,
        )


def _fingerprint(search: Any, study: Study, trial: Trial) -> str:
    """Return a short name of all that evaluations follow from beside their parameters."""
    told = (
        [clone(member) for member in study.costs.families],
        study.costs.layout,
        study.costs.delta,
        search.privacy,
        search.n_repeats,
        trial.scorer.name,
        trial.material.data.X,
        trial.material.data.y,
    )
    return joblib.hash(told) or ""


def _without_traces(record: Record) -> Record:
    """Return a record with what was charged, and without what was not: the time it took."""
    found = record.evaluation
    return Record(record.number, record.params, Evaluation(found.epsilon, found.utilities))
