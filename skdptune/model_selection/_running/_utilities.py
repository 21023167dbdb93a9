"""Utilities of candidates by subsample and aggregate: mean scores over disjoint parts.

Each record joins one part by its own draw. A candidate is trained on each part, with coins that
do not depend on the data; its utility is the mean over the parts of the part's score, scaled
to [0, 1]. One record changes one part's model, so a utility by at most ``1 / n_parts``; as a
validation record it changes every part's score by at most ``1 / n_score``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.accounting import PrivacyProfile, permute_and_flip
from skdptune.base._configuring import set_seeds
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._running._quiet import Quiet
from skdptune.model_selection._running._runs import (
    Data,
    can_be_together,
    child_stream,
    fit_together,
    is_failure,
    perform_all,
    values_of,
)

_CHUNK = 16
# The papers ask for at least 5 / epsilon parts; ten times as many make the noise small beside
# differences that matter, if parts stay large enough to train on.
_LEAST, _WANTED = 5.0, 50.0
_RECORDS_PER_PART = 100


@dataclass(frozen=True)
class PickNoise:
    """Noise for picking among utilities, and its price for either kind of record.

    Attributes
    ----------
    epsilon : float
        What the pick costs a record that trains.
    sensitivity : float
        For which the mechanism's noise is scaled.
    of_score : float
        What the pick costs a record that scores; 0 with public validation data.
    """

    epsilon: float
    sensitivity: float
    of_score: float


def pick_noise(
    epsilon: float, n_parts: int, n_score: int | None, *, monotone: bool = True
) -> PickNoise:
    """Return the noise with which neither kind of record pays more than `epsilon`.

    Notes
    -----
    With one-sided exponential noise of scale ``2 s / epsilon``, a record that changes utilities by
    at most ``1 / n_parts`` in any direction pays ``epsilon / (s n_parts)``. A validation record
    raises all of them (scores count from their lower bound), by at most ``1 / n_score``, and
    pays half of that for the same change, unless it replaces another (not `monotone`). So
    ``s = max(1 / n_parts, 1 / (2 n_score))``, and twice the second for replacements.
    """
    of_training = 1.0 / n_parts
    of_score = 0.0 if n_score is None else (0.5 if monotone else 1.0) / n_score
    sensitivity = max(of_training, of_score)
    return PickNoise(
        epsilon * of_training / sensitivity, sensitivity, epsilon * of_score / sensitivity
    )


def auto_partitions(epsilon: float, n_train: int) -> int:
    """Return a number of parts from public numbers: enough for little noise, if size permits."""
    affordable = n_train / _RECORDS_PER_PART
    wanted = max(_LEAST / epsilon, min(_WANTED / epsilon, affordable))
    return int(min(max(math.ceil(wanted), 2), max(n_train // 2, 2)))


def utilities_of(
    estimators: Sequence[Any],
    seeds: Sequence[Any],
    data: Data,
    parts: Sequence[np.ndarray],
    validation: Data,
    scorer: BoundedScorer,
    n_public: int | None,
    *,
    n_jobs: int | None,
    pre_dispatch: Any,
    raises: bool,
) -> np.ndarray:
    """Return the mean over the parts of each estimator's score, in [0, 1].

    Parameters
    ----------
    estimators : sequence of estimator
        One per candidate.
    seeds : sequence of SeedSequence or None
        One per candidate.
    data, validation : Data
        Records to train and to score on.
    parts : sequence of ndarray
        Records of each part.
    scorer : BoundedScorer
    n_public : int or None
        Stands for the number of validation records; None if they are public.
    n_jobs, pre_dispatch, raises
        As in the searches.

    Notes
    -----
    Parts on which a candidate fails, as those of one class, count as the worst score; so does a
    validation record that cannot be scored, by itself.
    """
    # A task carries its own candidates and records alone, or sending would cost their product.
    tasks = [
        _Task(part, records, estimators[chunk], seeds[chunk])
        for chunk in (slice(i, i + _CHUNK) for i in range(0, len(estimators), _CHUNK))
        for part, records in enumerate(parts)
    ]
    found = perform_all(
        _scores_on_part,
        tasks,
        data,
        validation,
        scorer,
        n_public,
        raises,
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
    )
    chunks = [found[i : i + len(parts)] for i in range(0, len(found), len(parts))]
    utilities = np.concatenate([np.sum(scores, axis=0) for scores in chunks])
    return np.clip(utilities / len(parts), 0.0, 1.0)


@dataclass(frozen=True)
class _Task:
    """Some candidates on one part."""

    part: int
    records: np.ndarray
    estimators: Sequence[Any]
    seeds: Sequence[Any]


def _scores_on_part(
    task: _Task,
    data: Data,
    validation: Data,
    scorer: BoundedScorer,
    n_public: int | None,
    raises: bool,
) -> np.ndarray:
    records = data.take(task.records)
    counted = scorer.uncentred()
    scores = np.zeros(len(task.estimators))
    with Quiet(), np.errstate(all="ignore"):
        fitted = _fitted(task, records, raises)
        for place, model in enumerate(fitted):
            try:
                if isinstance(model, BaseException):
                    raise model
                # A model that fails for good is found out by a record of its own part, which may
                # decide the part's score; a validation record may not.
                first = records.take(np.arange(1))
                counted.per_record(model, first.X, first.y)
                values = values_of(counted, model, validation, raises)
                score = counted.score(values, n_public or max(values.size, 1))
            except BaseException as problem:
                if raises or not is_failure(problem):
                    raise
                continue
            scores[place] = (score - scorer.lower) / (scorer.upper - scorer.lower)
    return scores


def _fitted(task: _Task, records: Data, raises: bool) -> list[Any]:
    """Return each candidate's model of the part, or the exception of its fit."""
    models = [clone(estimator) for estimator in task.estimators]
    for model, seed in zip(models, task.seeds, strict=True):
        set_seeds(model, child_stream(seed, task.part))
    if can_be_together(models, records):
        try:
            return fit_together(models, records)
        except BaseException as problem:
            # One that fails must not fail the others.
            if raises or not is_failure(problem):
                raise
    return [_fitted_alone(model, records) for model in models]


def _fitted_alone(model: Any, records: Data) -> Any:
    try:
        records.fit(model)
    except BaseException as problem:
        if not is_failure(problem):
            raise
        return problem
    return model


def pure_pick(epsilon: float) -> PrivacyProfile:
    """Return what permute-and-flip costs, or nothing where nothing is paid."""
    return permute_and_flip(epsilon) if epsilon > 0.0 else PrivacyProfile.pure(0.0)
