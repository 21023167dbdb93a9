"""How well a fitted model knows each canary."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

from skdptune.audit._one_run._many_canaries import Canaries
from skdptune.audit._statistics import response
from skdptune.base import (
    expected_refits,
    nested_estimators,
    own_parameters,
    set_seeds,
    without_noise,
)


@expected_refits()
def seeded_fit(prepared: Any, X: Any, y: Any, seed: np.random.SeedSequence) -> Any:
    """Return a fitted copy, whose seeds all follow from one; it warns of nothing."""
    made = clone(prepared)
    set_seeds(made, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(X) if y is None else made.fit(X, y)


def scores_of(
    score: Any,
    fitted: Any,
    prepared: Any,
    made: Canaries,
    size: int,
    seed: np.random.SeedSequence,
) -> tuple[np.ndarray, str]:
    """Return how well a model knows each canary, and how that was found.

    Parameters
    ----------
    score : callable or None
        As the user has it.
    fitted, prepared : estimator
        After and before its fit.
    made : Canaries
    size : int
        Constant for the number of records.
    seed : SeedSequence
        Of the fit.
    """
    if score is not None:
        found = np.asarray(score(fitted, made.rows, made.targets), dtype=np.float64)
        if found.shape != (len(made),):
            raise ValueError(
                f"score must return one number for each of {len(made)} canaries; got shape "
                f"{found.shape}."
            )
        return found, str(getattr(score, "__name__", type(score).__name__))
    first, words = untrained(prepared, made, seed), "what the model says of a canary"
    known = _known(fitted, made.rows, made.targets)
    if first is not None:
        known -= _known(first, made.rows, made.targets)
        words += ", less what it said before training"
    if made.has_opposites:
        known -= _known(fitted, made.instead_rows, made.targets)
        if first is not None:
            known += _known(first, made.instead_rows, made.targets)
        return known, f"{words}, less the same of the opposite row"
    reference = without_noise(prepared, size, made.rows.shape[1])
    reference = seeded_fit(reference, made.others, made.other_targets, np.random.SeedSequence(0))
    known -= _known(reference, made.rows, made.targets)
    return known, f"{words}, less what a model without noise and canaries says"


def untrained(prepared: Any, made: Canaries, seed: np.random.SeedSequence) -> Any:
    """Return a net of this package with the weights with which its fit begins; None for others.

    Parameters
    ----------
    prepared : estimator
    made : Canaries
    seed : SeedSequence
        Of the fit.

    Notes
    -----
    Theorem A6. Others may draw their noise where they draw their first weights.
    """
    for prefix, part in nested_estimators(prepared):
        names = own_parameters(part)
        ours = type(part).__module__.startswith("skdptune.neural_network")
        if ours and {"module", "lr"} <= names.keys():
            return seeded_fit(
                clone(prepared).set_params(**{f"{prefix}lr": 0.0}),
                made.others,
                made.other_targets,
                seed,
            )
    return None


def _known(fitted: Any, rows: Any, targets: Any) -> np.ndarray:
    found = response(fitted, rows, targets)
    return np.sign(np.asarray(targets, dtype=float)) * found if is_regressor(fitted) else found
