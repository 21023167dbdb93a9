"""Numbers of a fitted estimator that one record moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

# What scalers learn, summed over features: a record at the bounds moves all of them alike.
_LEARNT = ("mean_", "var_", "data_min_", "data_max_", "center_", "scale_")
# Odds beyond these are rounded away.
_LEAST_CHANCE = 1e-300


def numbers_of(fitted: Any, row: np.ndarray, target: Any) -> np.ndarray:
    """Return the numbers of a fit that an extreme record moves, as a vector.

    Parameters
    ----------
    fitted : estimator
        After its fit; of a pipeline those of all steps, of a search its scores, too.
    row : ndarray
        The record.
    target : object
        Its label or target; not used where it has none.

    Returns
    -------
    ndarray
        Not empty; numbers that are not finite are 0.
    """
    found = np.array(list(_numbers(fitted, row[None], target)), dtype=np.float64)
    if found.size == 0:
        raise TypeError(
            f"estimator must have coef_, a response or what a scaler learns after its fit; got "
            f"{type(fitted).__name__}. Give the audit a statistic."
        )
    return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)


def _numbers(fitted: Any, rows: Any, target: Any) -> Iterator[float]:
    if isinstance(fitted, Pipeline):
        yield from _of_steps(fitted, rows, target)
        return
    results = getattr(fitted, "cv_results_", None)
    if results is not None and "mean_test_score" in results:
        yield float(np.sum(results["mean_test_score"]))
    best = getattr(fitted, "best_score_", None)
    if best is not None:
        yield float(best)
    if hasattr(fitted, "best_estimator_"):
        yield from _numbers(fitted.best_estimator_, rows, target)
    elif not hasattr(fitted, "predict"):
        for name in _LEARNT:
            if getattr(fitted, name, None) is not None:
                yield float(np.sum(getattr(fitted, name)))
    else:
        yield response(fitted, rows, [target])[0]


def _of_steps(fitted: Pipeline, rows: Any, target: Any) -> Iterator[float]:
    for _, step in fitted.steps:
        if step in (None, "passthrough"):
            continue
        yield from _numbers(step, rows, target)
        if hasattr(step, "transform"):
            rows = step.transform(rows)


def response(fitted: Any, rows: Any, targets: Any) -> np.ndarray:
    """Return how strongly a model says what each record does: the larger, the better it knows it.

    Parameters
    ----------
    fitted : estimator
    rows : array-like
    targets : sequence
        Labels of a classifier. What a regression predicts is taken as it is.

    Returns
    -------
    ndarray of shape (n_rows,)
        For classifiers the margin of a decision function or of a net's outputs, the label's less
        the mean of the others', or the same of logarithms of probabilities; for others the
        prediction.
    """
    classes = getattr(fitted, "classes_", None)
    if classes is None:
        return np.ravel(np.asarray(fitted.predict(rows), dtype=np.float64))
    places = np.searchsorted(np.asarray(classes), np.asarray(targets))
    if hasattr(fitted, "decision_function"):
        return margins(np.asarray(fitted.decision_function(rows), dtype=np.float64), places)
    chances = np.asarray(fitted.predict_proba(rows), dtype=np.float64)
    with np.errstate(divide="ignore"):
        return margins(np.log(np.maximum(chances, _LEAST_CHANCE)), places)


def margins(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return each row's score of one class, less the mean of the others.

    It is linear in the scores, so that noise on them stays what it is.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        One number per row is the second of two classes' score less the first one's.
    places : ndarray of int
        The class of each row.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.where(places == 1, 1.0, -1.0) * scores.reshape(len(scores))
    own = scores[np.arange(len(scores)), places]
    return np.asarray(own - (scores.sum(axis=1) - own) / (scores.shape[1] - 1))
