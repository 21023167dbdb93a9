"""The one engine of all searches: it fits candidates, scores them, and hides what fails.

Whatever the records hold, a candidate that fails has no values, which its search counts as the
worst score; a record that cannot be scored gets the worst value, by itself. Warnings, logs and
prints are dropped, since they depend on the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.base._shared import forget_seeds, own_seeds, paid_for, set_seeds
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._quiet import Quiet

Seed = np.random.SeedSequence | None
Values = NDArray[np.float64]
_FITS = {"fit", "fit_many"}


@dataclass(frozen=True)
class Outcome:
    """What fitting and scoring one candidate gave.

    Attributes
    ----------
    model : estimator
        Fitted, unless there is an `error`; without the seed of its fit.
    values : ndarray or None
        One value per scored record; None if the candidate failed.
    further : tuple of ndarray
        The same by each further metric.
    error : BaseException or None
        With which it failed; secret.
    """

    model: Any
    values: Values | None
    error: BaseException | None = None
    further: tuple[Values, ...] = ()


def fit_and_score(
    models: Sequence[Any],
    seeds: Sequence[Seed],
    train: Data,
    scored: Data,
    scorer: BoundedScorer,
    *,
    further: Sequence[BoundedScorer] = (),
    raises: bool = False,
    tries_one: bool = False,
) -> list[Outcome]:
    """Fit models in place and return one value per record of `scored` for each.

    Parameters
    ----------
    models : sequence of estimator
        They are fitted together where their class can do that, with the same result.
    seeds : sequence of SeedSequence or None
        One per model.
    train, scored : Data
        Records to fit and to score on.
    scorer : BoundedScorer
    further : sequence of BoundedScorer, default=()
        Of further metrics: a record that one of them cannot score is the worst by this one alone.
    raises : bool, default=False
        Whether failures are raised, which shows them.
    tries_one : bool, default=False
        Whether a model must first score a record that it was trained on, so that one whose scoring
        always fails is found at once. That record then decides, as its training pays for.

    Notes
    -----
    Theorem F4. Given the trained models, one record of `scored` changes its own value alone.
    """
    own = [own_seeds(model) for model in models]
    for model, seed in zip(models, seeds, strict=True):
        set_seeds(model, seed)
    with Quiet(), np.errstate(all="ignore"):
        fitted = _fitted(models, train, raises)
        # Theorem F9: models forget the seeds of their fits.
        for model, known in zip(models, own, strict=True):
            forget_seeds(model, known)
        probed = train if tries_one else None
        return [
            _scored(model, problem, probed, scored, (scorer, *further), raises)
            for model, problem in zip(models, fitted, strict=True)
        ]


def _fitted(models: Sequence[Any], train: Data, raises: bool) -> list[BaseException | None]:
    """Fit models in place; return for each None, or the exception of its fit."""
    if can_be_together(models, train):
        try:
            arguments = (train.X,) if train.y is None else (train.X, train.y)
            kind = type(models[0])
            # Theorem H4: the search pays for it.
            with paid_for(*models):
                outcomes = kind.fit_many(list(models), *arguments, return_exceptions=True)
            return [one if isinstance(one, BaseException) else None for one in outcomes]
        except BaseException as problem:
            # One that fails must not fail the others.
            if raises or not is_failure(problem):
                raise
    return [_fitted_alone(model, train, raises) for model in models]


def _fitted_alone(model: Any, train: Data, raises: bool) -> BaseException | None:
    try:
        train.fit(model)
    except BaseException as problem:
        if raises or not is_failure(problem):
            raise
        return problem
    return None


def _scored(
    model: Any,
    problem: BaseException | None,
    probed: Data | None,
    scored: Data,
    scorers: Sequence[BoundedScorer],
    raises: bool,
) -> Outcome:
    try:
        if problem is not None:
            raise problem
        if probed is not None:
            probe = probed.take(np.arange(1))
            scorers[0].per_record(model, probe.X, probe.y)
        values, *further = (values_of(scorer, model, scored, raises) for scorer in scorers)
        return Outcome(model, values, further=tuple(further))
    except BaseException as error:
        if raises or not is_failure(error):
            raise
        return Outcome(model, None, error)


def can_be_together(estimators: Sequence[Any], data: Data) -> bool:
    """Return whether all estimators are of one class that fits many at once.

    Such a class has a class method ``fit_many(estimators, X, y, *, return_exceptions=False)``, see
    `skdptune.base.protocol`.
    """
    kinds = {type(estimator) for estimator in estimators}
    if len(kinds) != 1 or data.per_record or data.constant:
        return False
    # A subclass with a fit of its own does what the inherited fit_many does not know of.
    first = next((one for one in next(iter(kinds)).__mro__ if _FITS & set(vars(one))), object)
    return "fit_many" in vars(first)


def is_failure(problem: BaseException) -> bool:
    """Return whether an exception is a fit's own, and not the user's wish to stop.

    A model that ends by `SystemExit` must not publish a record's text with it.
    """
    return not isinstance(problem, KeyboardInterrupt | GeneratorExit)


def values_of(scorer: BoundedScorer, model: Any, scored: Data, raises: bool = False) -> Values:
    """Return one value per record of `scored`; an improper one, or one that fails, the worst.

    No record may change the values of others, so one that makes the model fail is searched for
    by halving, and fails by itself (Theorem D2).
    """
    size = scored.n_samples
    try:
        values = np.asarray(scorer.per_record(model, scored.X, scored.y), dtype=np.float64)
        return (
            values if scored.improper is None else np.where(scored.improper, scorer.lower, values)
        )
    except BaseException as problem:
        if raises or not is_failure(problem):
            raise
    if size <= 1:
        return np.full(size, scorer.lower)
    halves = scored.take(np.arange(size // 2)), scored.take(np.arange(size // 2, size))
    return np.concatenate([values_of(scorer, model, half) for half in halves])
