"""Utilities of candidates by subsample and aggregate: mean scores over disjoint partitions.

Each record joins one partition by its own random draw. A candidate is trained on each of them,
with seeds that do not depend on the data; its utility is the mean of the partitions' scores,
scaled to [0, 1]. One record changes the model of one partition, so a utility by at most
``1 / n_partitions``; as a validation record it changes every partition's score by at most
``1 / n_score`` (Theorem F5, Theorem D1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.accounting import PrivacyProfile, permute_and_flip
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._running._data import Data, Records
from skdptune.model_selection._running._engine import Seed, Values, fit_and_score
from skdptune.model_selection._running._parallel import perform_all
from skdptune.model_selection._running._quiet import child_stream

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

    Notes
    -----
    Theorem F5.

    A partition on which a candidate fails, such as one with a single class, counts as the worst
    score. A validation record that cannot be scored also counts as the worst, without an effect on
    others.
    """
    # A task contains only its own candidates and records, or sending would cost their product.
    tasks = [
        _Task(partition, records, estimators[chunk], seeds[chunk])
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


@dataclass(frozen=True)
class _Task:
    """Some candidates to be fitted on one partition."""

    partition: int
    records: Records
    estimators: Sequence[Any]
    seeds: Sequence[Seed]


def _scores_on_partition(
    task: _Task,
    data: Data,
    validation: Data,
    scorer: BoundedScorer,
    n_public: int | None,
    raises: bool,
) -> Values:
    """Return each candidate's score on a scale from 0 (the worst) to 1 (the best)."""
    counted = scorer.uncentred()
    outcomes = fit_and_score(
        [clone(estimator) for estimator in task.estimators],
        [child_stream(seed, task.partition) for seed in task.seeds],
        data.take(task.records),
        validation,
        counted,
        raises=raises,
        tries_one=True,
    )
    scores = np.zeros(len(outcomes))
    for place, outcome in enumerate(outcomes):
        if outcome.values is not None:
            score = counted.score(outcome.values, n_public or max(outcome.values.size, 1))
            scores[place] = (score - scorer.lower) / (scorer.upper - scorer.lower)
    return scores
