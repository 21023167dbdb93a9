"""The optimiser of a Pareto search: an optuna study that it fills and that survives crashes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from joblib import effective_n_jobs

from skdptune._formatting import shown
from skdptune._validation import check_integer, check_n_jobs, check_option
from skdptune.model_selection._pareto._sampling import SamplerSettings, SearchSpace, make_sampler
from skdptune.model_selection._pareto._study._loop import (
    Evaluate,
    EvaluationLoop,
    Heartbeat,
    LoopSettings,
    Record,
    Workers,
    records_of,
)
from skdptune.model_selection._pareto._study._storage import (
    StudySeeds,
    open_study,
    quiet_optuna,
    study_seeds,
)

EPSILON_SCALES = ("linear", "log")


class ParetoOptimizer:
    """Propose, evaluate and store parameters until a study holds all evaluations.

    Parameters
    ----------
    evaluate : callable ``(params, number, seed) -> Evaluation``
        Evaluates parameters (dict) once. ``number`` counts the study's evaluations from 0,
        ``seed`` is the evaluation's own :class:`numpy.random.SeedSequence`; the number is the same
        when an evaluation is repeated after a crash, and in a seeded study the seed is. An
        evaluation that raises has failed. It runs in a worker: with processes it is pickled.
    space : SearchSpace
    n_initial, n_iter, batch_size, sampler, reference_point, epsilon_scale, storage, study_name, \
n_jobs, random_state
        As :func:`pareto_search` has them.
    third : str or None
        Name of the third objective, if there is one.
    proposal_filter : callable ``(params) -> bool`` or None
        Returns whether proposed parameters may be evaluated, from public facts alone. After more
        than ``max_refusals`` refusals in a row the search stops.
    max_refusals : int
        See ``proposal_filter``.
    fingerprint : str
        Identifies what is evaluated: a study of another fingerprint is not resumed. A stored study
        keeps a salted hash of it.

    Attributes
    ----------
    study : optuna.Study
        After ``run``.
    seeds : StudySeeds
        After ``run``.
    """

    seeds: StudySeeds

    def __init__(
        self,
        evaluate: Evaluate,
        space: SearchSpace,
        *,
        n_initial: int = 16,
        n_iter: int = 256,
        batch_size: int = 1,
        sampler: Any = "auto",
        reference_point: tuple[float, ...] = (10.0, 1.0),
        epsilon_scale: str = "linear",
        third: str | None = None,
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        proposal_filter: Callable[[dict[str, Any]], bool] | None = None,
        max_refusals: int = 100,
        fingerprint: str = "",
    ) -> None:
        self.n_initial = check_integer(n_initial, name="n_initial", lower=1)
        self.n_iter = check_integer(n_iter, name="n_iter", lower=0)
        self.batch_size = check_integer(batch_size, name="batch_size", lower=1)
        self.evaluate, self.space, self.sampler = evaluate, space, sampler
        self.reference_point = check_reference_point(reference_point, third)
        self.epsilon_scale = check_epsilon_scale(epsilon_scale)
        self.third, self.storage, self.study_name = third, storage, study_name
        self.n_jobs = check_n_jobs(n_jobs)
        self.random_state = random_state
        self.proposal_filter, self.max_refusals = proposal_filter, max_refusals
        self.fingerprint = fingerprint
        self.study: Any = None

    def run(self) -> Any:
        """Fill the study and return it (optuna.Study).

        Evaluations of processes that died are repeated first. Raises ValueError if all of the
        first ``n_initial`` evaluations failed.
        """
        wants_workers = self.n_jobs is not None and effective_n_jobs(self.n_jobs) > 1
        if wants_workers and self.batch_size == 1:
            warnings.warn(
                "batch_size must be above 1 for evaluations to run at the same time; got 1, and "
                f"n_jobs={self.n_jobs}.",
                UserWarning,
                stacklevel=4,
            )
        with quiet_optuna():
            self._open()
            workers = Workers(self.evaluate, self.n_jobs, self.batch_size)
            with Heartbeat(self.study) as heartbeat:
                try:
                    EvaluationLoop(self.study, self._loop_settings(), heartbeat, workers).run()
                finally:
                    workers.close()
        return self.study

    def _open(self) -> None:
        objectives = ["epsilon", "error", *([self.third] if self.third else [])]
        space = self.space.describe()
        self.study = open_study(self.storage, self.study_name, objectives, space, self.fingerprint)
        self.seeds = study_seeds(self.study, self.random_state)
        settings = SamplerSettings(
            self.reference_point,
            self.seeds.proposals,
            self.n_initial,
            self.n_initial + self.n_iter,
            self.third == "time",
            self.epsilon_scale,
        )
        self.study.sampler = make_sampler(self.sampler, self.space, settings)

    def _loop_settings(self) -> LoopSettings:
        return LoopSettings(
            self.space,
            self.seeds.evaluations,
            self.n_initial,
            self.n_initial + self.n_iter,
            self.batch_size,
            self.proposal_filter,
            self.max_refusals,
        )

    def records(self) -> list[Record]:
        """Return the finished evaluations in order of completion."""
        return [] if self.study is None else records_of(self.study, self.space)


def check_epsilon_scale(epsilon_scale: Any) -> str:
    """Return the scale of epsilon in the hypervolume, or raise."""
    return str(check_option(epsilon_scale, name="epsilon_scale", options=EPSILON_SCALES))


def check_reference_point(reference_point: Any, third: str | None) -> tuple[float, ...]:
    """Return the reference point as floats, or raise."""
    wanted = 3 if third else 2
    try:
        point = tuple(map(float, reference_point))
    except (TypeError, ValueError):
        point = ()
    if len(point) != wanted:
        raise ValueError(
            f"reference_point must be {wanted} numbers, the worst epsilon, error"
            f"{f' and {third}' if third else ''} that count; got {shown(reference_point)}."
        )
    if not (
        0.0 < point[0] < math.inf and 0.0 < point[1] <= 1.0 and all(map(math.isfinite, point))
    ):
        raise ValueError(
            "reference_point must be a finite epsilon above 0, an error in (0, 1]"
            f"{' and a finite number' if third else ''}; got {shown(reference_point)}."
        )
    return point
