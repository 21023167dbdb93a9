"""The runs of a search: each fits one candidate on all folds, and gives one noisy score.

A run that fails has the worst score with the same noise as any other, so that a failure reveals no
more than a bad score does (Theorem F4).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import clone

from skdptune.accounting import PrivacyProfile, permute_and_flip
from skdptune.mechanisms import gaussian_release, laplace_release
from skdptune.metrics import BoundedScorer
from skdptune.metrics._shared import ScoreSum
from skdptune.model_selection._running._data import Data, Records
from skdptune.model_selection._running._engine import (
    Seed,
    Values,
    can_be_together,
    company_of,
    fit_and_score,
    shares_passes,
)
from skdptune.model_selection._running._parallel import perform_all
from skdptune.model_selection._running._quiet import child_stream, noise_random


def clipped_deviation(deviation: Any, lower: float = 0.0, upper: float = 1.0) -> Any:
    """Return the standard deviation of a score, at most half of its public range.

    Scores are clipped to their range, and no number in a range deviates by more (Popoviciu).
    """
    return np.minimum(deviation, 0.5 * (upper - lower))


def results_of(
    rows: Sequence[dict[str, Any]],
    lower: float = -np.inf,
    upper: float = np.inf,
    metric: str = "score",
) -> dict[str, Any]:
    """Return rows of parameters and noisy scores in the form of scikit-learn's ``cv_results_``.

    Parameters
    ----------
    rows : list of dict
        ``params`` and ``score``. If they are published, also ``splits``, the noisy scores of all
        folds, and ``deviation``, of the noise on a single score.
    lower, upper : float
        Bounds of scores, to which they are clipped; ranks use the unclipped scores.
    metric : str, default="score"
        Name of the columns of scores.
    """
    results: dict[str, Any] = {"params": [row["params"] for row in rows]}
    for name in sorted({name for row in rows for name in row["params"]}):
        results[f"param_{name}"] = _column([row["params"] for row in rows], name)
    scores = np.array([row["score"] for row in rows], dtype=np.float64)
    if not np.isfinite(scores).any():
        return results
    if all("splits" in row for row in rows):
        splits = np.array([row["splits"] for row in rows], dtype=np.float64)
        for place, column in enumerate(splits.T):
            results[f"split{place}_test_{metric}"] = np.clip(column, lower, upper)
        deviations = splits.std(axis=1)
        if splits.shape[1] == 1:
            deviations = np.array([row["deviation"] for row in rows], dtype=np.float64)
        results[f"std_test_{metric}"] = clipped_deviation(deviations, lower, upper)
    results[f"mean_test_{metric}"] = np.clip(scores, lower, upper)
    results[f"rank_test_{metric}"] = rankdata(-scores, method="min").astype(np.int32)
    return results


def results_by_metric(
    rows: Sequence[dict[str, Any]], scorers: Mapping[str, BoundedScorer]
) -> dict[str, Any]:
    """Return the results for all metrics, the first of which is that of the rows' ``score``.

    Parameters
    ----------
    rows : list of dict
        As in `results_of`; ``further`` are the noisy scores of all folds by the other metrics.
    scorers : mapping of str to BoundedScorer
    """
    (name, lead), *others = scorers.items()
    results = results_of(rows, lead.lower, lead.upper, name)
    if not all(len(row.get("further", ())) == len(others) for row in rows):
        # A candidate that was not scored.
        return results
    for place, (name, scorer) in enumerate(others):
        # Noise is proportional to the sensitivity.
        scale = scorer.sensitivity(1) / lead.sensitivity(1)
        own = [
            {
                **row,
                "splits": row["further"][place],
                "score": float(np.mean(row["further"][place])),
                "deviation": row["deviation"] * scale,
            }
            for row in rows
        ]
        results |= results_of(own, scorer.lower, scorer.upper, name)
    return results


def _column(params: Sequence[dict[str, Any]], name: str) -> Any:
    """Return the values of a parameter, masked for candidates that lack it."""
    known = {place: each[name] for place, each in enumerate(params) if name in each}
    try:
        found = np.array(list(known.values()))
        # As in scikit-learn: no strings of fixed length, and sequences stay unchanged.
        kind = found.dtype if found.ndim == 1 and found.dtype.kind != "U" else np.dtype(object)
    except (ValueError, TypeError):
        kind = np.dtype(object)
    column: Any = np.ma.MaskedArray(np.empty(len(params), dtype=kind), mask=True)
    for place, value in known.items():
        column[place] = value
    return column


# Records for training and for scoring; None for all of the data, and for the validation data.
Fold = tuple[Records | None, Records | None]
ONE_FIT: tuple[Fold, ...] = ((None, None),)


@dataclass(frozen=True)
class Scoring:
    """How a run is scored.

    Attributes
    ----------
    scorer : BoundedScorer
        The mean of bounded values; with several metrics, the main one.
    n_public : int or None
        Public constant for the number of records; None for the size of public data.
    sensitivity : float
        Largest change of the score by one record.
    ratio : float
        Noise in units of the sensitivity.
    kind : {"gaussian", "laplace", "none"}
        Distribution of the noise.
    further : tuple of (BoundedScorer, float)
        Scorers of further metrics, each with the largest change of its score by one record.
    clips : bool, default=True
        Whether a score is clipped to its bounds before the noise is added.
    """

    scorer: BoundedScorer
    n_public: int | None
    sensitivity: float
    ratio: float
    kind: str
    further: tuple[tuple[BoundedScorer, float], ...] = ()
    clips: bool = True

    def released(
        self, values: Values | ScoreSum | None, random: np.random.Generator | None
    ) -> float:
        """Return the noisy score of values or of their sum, or the noisy worst score for None."""
        # Theorem F4: a failure gets the worst score, with noise.
        return self._noisy(self.scorer, self.sensitivity, values, random)

    def all_released(
        self, sums: Sequence[ScoreSum], random: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Return the noisy scores by all metrics, given the sums by each; none for a failure."""
        # Theorem T8: each score has noise for its own sensitivity.
        metrics = ((self.scorer, self.sensitivity), *self.further)
        known: Sequence[ScoreSum | None] = sums or [None] * len(metrics)
        pairs = zip(metrics, known, strict=True)
        return tuple(self._noisy(*metric, own, random) for metric, own in pairs)

    def _noisy(
        self,
        scorer: BoundedScorer,
        sensitivity: float,
        values: Values | ScoreSum | None,
        random: np.random.Generator | None,
    ) -> float:
        exact = scorer.lower
        if values is not None:
            size = self.n_public or max(values.size, 1)
            exact = scorer.score(values, size, clip=self.clips)
        if self.kind == "none":
            return exact
        release = gaussian_release if self.kind == "gaussian" else laplace_release
        return float(release(exact, sensitivity, self.ratio * sensitivity, random))


@dataclass(frozen=True)
class Run:
    """One candidate to be fitted and scored.

    Attributes
    ----------
    estimator : estimator
        The estimator, with its parameters and budget set.
    fit_seed : SeedSequence or None
        Seed of its fits, one for each fold.
    noise_seed : SeedSequence or None
        Seed of the score's noise.
    """

    estimator: Any
    fit_seed: Seed
    noise_seed: Seed


@dataclass(frozen=True)
class Result:
    """The result of a run: its model (None if it failed), its noisy score, and secret details.

    The score is the mean of `splits`: the folds' noisy scores if these are released, else one
    score. `further` are the corresponding scores by each further metric.
    """

    model: Any
    score: float
    seconds: float
    error: str | None
    splits: tuple[float, ...] = ()
    further: tuple[tuple[float, ...], ...] = ()

    @property
    def by_metric(self) -> tuple[tuple[float, ...], ...]:
        """The noisy scores of all metrics, the main one first."""
        return self.splits, *self.further


@dataclass(frozen=True)
class Material:
    """The data and settings that all runs of a search share.

    Attributes
    ----------
    data : Data
        Records for the fits.
    folds : sequence of Fold
        `ONE_FIT` without folds.
    validation : Data or None
        Records for scoring, if folds have none.
    scoring : Scoring
    keeps_models : bool
        Whether results hold the fitted models.
    raises : bool
        Whether exceptions are raised, which reveals them.
    splits_scores : bool
        Whether each fold has a separate noisy score; `scoring` is then that of one fold.
    """

    data: Data
    folds: Sequence[Fold]
    validation: Data | None
    scoring: Scoring
    keeps_models: bool = False
    raises: bool = False
    splits_scores: bool = False

    def scored(self, fold: Fold) -> Data:
        """Return the records on which a fold's models are scored."""
        if fold[1] is not None:
            return self.data.take(fold[1])
        if self.validation is None:
            raise ValueError("validation must be given if a fold has no records to score on.")
        return self.validation


# Called with the number of a run and its result.
OnResult = Callable[[int, Result], None]


def perform_runs(
    runs: Sequence[Run],
    material: Material,
    *,
    n_jobs: int | None,
    pre_dispatch: Any,
    on_result: OnResult | None = None,
) -> list[Result]:
    """Fit and score runs, all at once if their class supports that, else in parallel.

    `on_result` is called with the number and the result of each run, as soon as it is known.
    """
    together = can_be_together([run.estimator for run in runs], material.data)
    numbers = [list(range(len(runs)))]
    if not together or all(shares_passes(run.estimator) for run in runs):
        # Such fits are the same in any company, to the last bit, so that workers divide them.
        workers = 1 if material.data.is_in_parts else effective_n_jobs(n_jobs)
        numbers, together = _companies(runs, material.data, workers), False
    batches = [[runs[number] for number in batch] for batch in numbers]

    def on_batch(place: int, results: list[Result]) -> None:
        if on_result is not None:
            for number, result in zip(numbers[place], results, strict=True):
                on_result(number, result)

    lists: list[list[Result]] = []
    if material.data.is_in_parts:
        # A cluster computes the parts of a sum at the same time, and repeats lost ones.
        for place, batch in enumerate(batches):
            lists.append(perform(batch, material))
            on_batch(place, lists[-1])
    else:
        lists = perform_all(
            perform,
            batches,
            material,
            n_jobs=1 if together else n_jobs,
            pre_dispatch=pre_dispatch,
            on_result=on_batch,
        )
    found = dict(zip(chain.from_iterable(numbers), chain.from_iterable(lists), strict=True))
    return [found[number] for number in range(len(runs))]


def _companies(runs: Sequence[Run], data: Data, n_workers: int) -> list[list[int]]:
    """Return the numbers of the runs in batches; those of a batch share their passes."""
    groups: dict[Any, list[int]] = {}
    for number, run in enumerate(runs):
        company = company_of(run.estimator, data) if shares_passes(run.estimator) else None
        groups.setdefault(number if company is None else company, []).append(number)
    batches = []
    for group in groups.values():
        size = min(math.ceil(len(group) / n_workers), _CHUNK)
        batches += [group[start : start + size] for start in range(0, len(group), size)]
    return batches


def perform(runs: Sequence[Run], material: Material) -> list[Result]:
    """Fit and score runs in this process."""
    started = time.perf_counter()
    sums: list[list[tuple[ScoreSum, ...]]] = [[] for _ in runs]
    errors: list[BaseException | None] = [None] * len(runs)
    for number, fold in enumerate(material.folds):
        going = [place for place, error in enumerate(errors) if error is None]
        models = [runs[place].estimator for place in going]
        if len(material.folds) > 1:
            # A separate model for each fold: none may start from what another has learned.
            models = [clone(model) for model in models]
        outcomes = fit_and_score(
            models,
            [child_stream(runs[place].fit_seed, number) for place in going],
            material.data.take(fold[0]),
            material.scored(fold),
            material.scoring.scorer,
            further=[scorer for scorer, _ in material.scoring.further],
            raises=material.raises,
        )
        for place, outcome in zip(going, outcomes, strict=True):
            errors[place] = outcome.error
            if outcome.error is None:
                sums[place].append(outcome.sums)
    seconds = (time.perf_counter() - started) / max(len(runs), 1)
    return [
        _result(run, sums[place], errors[place], material, seconds)
        for place, run in enumerate(runs)
    ]


def _result(
    run: Run,
    sums: list[tuple[ScoreSum, ...]],
    error: BaseException | None,
    material: Material,
    seconds: float,
) -> Result:
    known = [()] * len(material.folds) if error is not None else sums
    if not material.splits_scores:
        known = [tuple(reduce(add, of_metric) for of_metric in zip(*known, strict=True))]
    random = noise_random(run.noise_seed)
    released = [material.scoring.all_released(one, random) for one in known]
    splits, *further = zip(*released, strict=True)
    keeps = material.keeps_models and error is None and len(material.folds) == 1
    return Result(
        run.estimator if keeps else None,
        float(np.mean(splits)),
        seconds,
        None if error is None else repr(error),
        splits,
        tuple(further),
    )


# Utilities by subsample and aggregate ------------------------------------------------------------
# Each record joins one partition by its own random draw. A candidate is trained on each of them,
# with seeds that do not depend on the data; its utility is the mean of the partitions' scores,
# scaled to [0, 1]. One record changes the model of one partition, so a utility by at most
# 1 / n_partitions; as a validation record it changes every partition's score by at most
# 1 / n_score (Theorem F5, Theorem D1).

_CHUNK = 16
# The papers ask for at least 5 / epsilon partitions. Ten times that number makes the noise small
# compared with differences that matter, if partitions stay large enough for training.
_LEAST, _WANTED = 5.0, 50.0
_RECORDS_PER_PARTITION = 100


@dataclass(frozen=True)
class ChoiceNoise:
    """Noise for choosing among utilities, and its cost for either kind of record.

    Attributes
    ----------
    epsilon : float
        Cost of the choice for a training record.
    sensitivity : float
        Sensitivity for which the mechanism's noise is scaled.
    of_score : float
        Cost of the choice for a scoring record; 0 with public validation data.
    """

    epsilon: float
    sensitivity: float
    of_score: float


def choice_noise(
    epsilon: float, n_partitions: int, n_score: int | None, *, monotone: bool = True
) -> ChoiceNoise:
    """Return the noise with which no kind of record costs more than `epsilon`.

    Notes
    -----
    Theorem F8.

    Theorem F5. With one-sided exponential noise of scale ``2 s / epsilon``, a record that changes
    utilities by at most ``1 / n_partitions`` in any direction costs
    ``epsilon / (s n_partitions)``. A validation record raises all of them (scores count from
    their lower bound), by at most ``1 / n_score``, and costs half of that for the same change,
    unless it replaces another (not `monotone`). So
    ``s = max(1 / n_partitions, 1 / (2 n_score))``, and twice the second for replacements.
    """
    of_training = 1.0 / n_partitions
    of_score = 0.0 if n_score is None else (0.5 if monotone else 1.0) / n_score
    sensitivity = max(of_training, of_score)
    return ChoiceNoise(
        epsilon * of_training / sensitivity, sensitivity, epsilon * of_score / sensitivity
    )


def permute_and_flip_cost(epsilon: float) -> PrivacyProfile:
    """Return the cost of permute-and-flip; nothing for an epsilon of 0."""
    return permute_and_flip(epsilon) if epsilon > 0.0 else PrivacyProfile.pure(0.0)


def auto_partitions(epsilon: float, n_train: int) -> int:
    """Return a number of partitions from public numbers: little noise, if size permits."""
    affordable = n_train / _RECORDS_PER_PARTITION
    wanted = max(_LEAST / epsilon, min(_WANTED / epsilon, affordable))
    return int(min(max(math.ceil(wanted), 2), max(n_train // 2, 2)))


def partition_utilities(
    estimators: Sequence[Any],
    seeds: Sequence[Seed],
    data: Data,
    partitions: Sequence[Records],
    validation: Data,
    scorer: BoundedScorer,
    n_public: int | None,
    *,
    n_jobs: int | None,
    pre_dispatch: Any,
    raises: bool,
    by_rows: bool = False,
) -> Values:
    """Return the mean over the partitions of each estimator's score, in [0, 1].

    Parameters
    ----------
    estimators : sequence of estimator
        One per candidate.
    seeds : sequence of SeedSequence or None
        One per candidate.
    data, validation : Data
        Records for training and for scoring.
    partitions : sequence of ndarray
        Records of each partition.
    scorer : BoundedScorer
    n_public : int or None
        Public constant for the number of validation records; None if they are public.
    n_jobs, pre_dispatch, raises
        As in the searches.
    by_rows : bool, default=False
        Whether the estimators are fitted to the rows of persons alike, and get no persons. The
        cost of the choice covers any training on a partition.

    Notes
    -----
    Theorem F5.

    A partition on which a candidate fails, such as one with a single class, counts as the worst
    score. A validation record that cannot be scored also counts as the worst, without an effect on
    others.
    """
    # A task contains only its own candidates and records, or sending would cost their product.
    tasks = [
        (partition, records, estimators[chunk], seeds[chunk], by_rows)
        for chunk in (slice(i, i + _CHUNK) for i in range(0, len(estimators), _CHUNK))
        for partition, records in enumerate(partitions)
    ]
    found = perform_all(
        _scores_on_partition,
        tasks,
        data,
        validation,
        scorer,
        n_public,
        raises,
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
    )
    count = len(partitions)
    chunks = [found[i : i + count] for i in range(0, len(found), count)]
    utilities = np.concatenate([np.sum(scores, axis=0) for scores in chunks])
    return np.asarray(np.clip(utilities / count, 0.0, 1.0))


def _scores_on_partition(
    task: tuple[int, Records, Sequence[Any], Sequence[Seed], bool],
    data: Data,
    validation: Data,
    scorer: BoundedScorer,
    n_public: int | None,
    raises: bool,
) -> Values:
    """Return each candidate's score on a scale from 0 (the worst) to 1 (the best)."""
    partition, records, estimators, seeds, by_rows = task
    train, counted = data.take(records), scorer.uncentred()
    outcomes = fit_and_score(
        [clone(estimator) for estimator in estimators],
        [child_stream(seed, partition) for seed in seeds],
        train.by_persons(None) if by_rows else train,
        validation,
        counted,
        raises=raises,
        tries_one=True,
    )
    scores = np.zeros(len(outcomes))
    for place, outcome in enumerate(outcomes):
        if outcome.error is None:
            (found,) = outcome.sums
            score = counted.score(found, n_public or max(found.size, 1))
            scores[place] = (score - scorer.lower) / (scorer.upper - scorer.lower)
    return scores
