"""The engine of all searches: it fits candidates, scores them, and hides failures.

A candidate that fails has no values, whatever the records hold; its search counts it as the worst
score. A record that cannot be scored gets the worst value, without an effect on others. Warnings,
logs and prints are dropped, since they depend on the data.
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
    """The result of fitting and scoring one candidate.

    Attributes
    ----------
    model : estimator
        The fitted model, unless there is an `error`; without the seed of its fit.
    values : ndarray or None
        One value per scored record; None if the candidate failed.
    further : tuple of ndarray
        The values by each further metric.
    error : BaseException or None
        Exception with which the candidate failed; secret.
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
    """Fit models in place, and return for each one value per record of `scored`.

    Parameters
    ----------
    models : sequence of estimator
        They are fitted together if their class supports that, with the same result.
    seeds : sequence of SeedSequence or None
        One per model.
    train, scored : Data
        Records for fitting and for scoring.
    scorer : BoundedScorer
    further : sequence of BoundedScorer, default=()
        Further metrics. A record that one of them cannot score is the worst by this metric only.
    raises : bool, default=False
        Whether exceptions are raised, which reveals them.
    tries_one : bool, default=False
        Whether a model must first score a record on which it was trained, so that a model whose
        scoring always fails is found at once. That record then influences the result, which its
        training pays for.

    Notes
    -----
    Theorem F4. Given the trained models, one record of `scored` changes only its own value.
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
    """Fit models in place; return None or the exception of each fit."""
    if can_be_together(models, train):
        try:
            arguments = (train.X,) if train.y is None else (train.X, train.y)
            kind = type(models[0])
            # Theorem H4: the search pays for it.
            with paid_for(*models):
                outcomes = kind.fit_many(list(models), *arguments, return_exceptions=True)
            return [one if isinstance(one, BaseException) else None for one in outcomes]
        except BaseException as problem:
            # A failing fit must not make the others fail.
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
    """Return whether all estimators have one class that fits many at once.

    Such a class has a class method ``fit_many(estimators, X, y, *, return_exceptions=False)``, see
    `skdptune.base.protocol`.
    """
    kinds = {type(estimator) for estimator in estimators}
    if len(kinds) != 1 or data.per_record or data.constant:
        return False
    # A subclass with its own fit may do things that the inherited fit_many does not know.
    first = next((one for one in next(iter(kinds)).__mro__ if _FITS & set(vars(one))), object)
    return "fit_many" in vars(first)


def is_failure(problem: BaseException) -> bool:
    """Return whether an exception comes from a fit, and not from the user's wish to stop.

    A model that ends by `SystemExit` must not publish a record's text with it.
    """
    return not isinstance(problem, KeyboardInterrupt | GeneratorExit)


def values_of(scorer: BoundedScorer, model: Any, scored: Data, raises: bool = False) -> Values:
    """Return one value per record of `scored`; improper or failing records get the worst value.

    No record may change the values of others. A record that makes the model fail is therefore
    searched for by halving, and fails separately (Theorem D2).
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
