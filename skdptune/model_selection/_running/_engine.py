"""The engine of all searches: it fits candidates, scores them, and hides failures.

A candidate that fails has no values, whatever the records hold; its search counts it as the worst
score. A record that cannot be scored gets the worst value, without an effect on others. Warnings,
logs and prints are dropped, since they depend on the data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdptune.base._shared import (
    by_halves,
    forget_seeds,
    is_about_parts,
    nested_estimators,
    own_seeds,
    paid_for,
    set_seeds,
    without_secrets,
)
from skdptune.metrics import BoundedScorer
from skdptune.metrics._shared import ScoreSum
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._made_up import made_up_sizes
from skdptune.model_selection._running._quiet import Quiet
from skdptune.model_selection._running._record_by_record import last_step, steps_before_last

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
    sums : tuple of ScoreSum
        The exact sum of the values of the scored records by each metric; empty if the candidate
        failed.
    error : BaseException or None
        Exception with which the candidate failed; secret.
    """

    model: Any
    sums: tuple[ScoreSum, ...]
    error: BaseException | None = None


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
    """Fit models in place, and return for each the sums of one value per record of `scored`.

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
        if tries_one:
            # There may be no record.
            first = cache(partial(train.take, np.arange(1)))
            fitted = [
                problem or _problem_of(model, scorer, first, raises)
                for model, problem in zip(models, fitted, strict=True)
            ]
        going = [model for model, problem in zip(models, fitted, strict=True) if problem is None]
        # Theorem R10: the user's own seed is not sent to workers.
        sent = [without_secrets(model) if scored.is_in_parts else model for model in going]
        sums = iter(scored.total(partial(_sums_of, sent, (scorer, *further), raises)))
        return [
            Outcome(model, () if problem else tuple(next(sums)), problem)
            for model, problem in zip(models, fitted, strict=True)
        ]


def _fitted(models: Sequence[Any], train: Data, raises: bool) -> list[BaseException | None]:
    """Fit models in place; return None or the exception of each fit."""
    if can_be_together(models, train):
        try:
            # Theorem H4: the search pays for it.
            with paid_for(*models):
                last, arguments = train.for_last_steps(models)
                outcomes = type(last[0]).fit_many(
                    last, *arguments, return_exceptions=True, **_groups_of(train)
                )
            found = [one if isinstance(one, BaseException) else None for one in outcomes]
            for problem in found:
                if problem is not None and (raises or not is_failure(problem)):
                    raise problem
            return found
        except BaseException as problem:
            # A failing fit must not make the others fail.
            if raises or not is_failure(problem):
                raise
    problems: list[BaseException | None] = [None] * len(models)
    for place, model in enumerate(models):
        try:
            train.fit(model)
        except BaseException as problem:
            if raises or not is_failure(problem):
                raise
            problems[place] = problem
    return problems


def _problem_of(
    model: Any, scorer: BoundedScorer, first: Callable[[], Data], raises: bool
) -> BaseException | None:
    """Return the exception with which scoring the first record fails, or None."""
    try:
        scorer.per_record(model, first().X, first().y)
    except BaseException as error:
        if raises or not is_failure(error):
            raise
        return error
    return None


def _sums_of(
    models: Sequence[Any], scorers: Sequence[BoundedScorer], raises: bool, scored: Data
) -> NDArray[Any]:
    """Return the sum of values of records, for each model by each scorer.

    Theorem R10: these sums of parts of the records add up to those of all.
    """
    sums = np.empty((len(models), len(scorers)), dtype=object)
    # On a worker, too, warnings would depend on the records.
    with Quiet(), np.errstate(all="ignore"):
        for place in np.ndindex(sums.shape):
            model, scorer = models[place[0]], scorers[place[1]]
            sums[place] = scorer.sum_of(values_of(scorer, model, scored, raises))
    return sums


def can_be_together(estimators: Sequence[Any], data: Data) -> bool:
    """Return whether all estimators are of one company."""
    companies = {company_of(estimator, data) for estimator in estimators}
    return len(companies) == 1 and None not in companies


def company_of(estimator: Any, data: Data) -> Hashable:
    """Return a key that is equal for estimators which can be fitted together; None for no such.

    Their class has a class method ``fit_many(estimators, X, y, *, return_exceptions=False)``, see
    `skdptune.base.protocol`. It takes ``groups``, too, if records are persons. An estimator whose
    ``shares_passes`` is False gains nothing from it. Pipelines are fitted together if their last
    steps share passes and get the same rows.
    """
    last = last_step(estimator)
    if data.per_record or data.constant or not shares_passes(estimator, last is estimator):
        return None
    # A subclass with its own fit may do things that the inherited fit_many does not know.
    first = next((one for one in type(last).__mro__ if _FITS & set(vars(one))), object)
    many = vars(first).get("fit_many")
    takes = inspect.signature(many.__func__).parameters if isinstance(many, classmethod) else {}
    if many is None or not _groups_of(data).keys() <= takes.keys():
        return None
    before = "" if last is estimator else steps_before_last(estimator)
    return None if before is None else (type(last), before)


def shares_passes(estimator: Any, default: bool = False) -> bool:
    """Return whether the fit of the last step is the same in any company, to the last bit."""
    return bool(getattr(last_step(estimator), "shares_passes", default))


def _groups_of(data: Data) -> dict[str, Any]:
    """Return the argument of a fit that names persons, if records are persons."""
    return {} if data.persons is None else {"groups": data.persons}


def is_failure(problem: BaseException) -> bool:
    """Return whether an exception comes from a fit, and must not be shown.

    The user's wish to stop, and rows in parts that cannot be read, end the search. A model that
    ends by `SystemExit` must not publish a record's text with it.
    """
    # Theorem R11: an error about parts does not follow from what their rows hold.
    return not (isinstance(problem, KeyboardInterrupt | GeneratorExit) or is_about_parts(problem))


def values_of(scorer: BoundedScorer, model: Any, scored: Data, raises: bool = False) -> Values:
    """Return one value per record of `scored`; that of a person is the mean over their rows.

    One record does not change the values of others (Theorem D2).
    """
    persons = scored.persons
    values = _values_of_rows(scorer, model, scored.by_persons(None), raises)
    if persons is None or persons.size == values.size:
        return values
    # Theorem P14: a mean of bounded values has the same bounds.
    half = 0.5 * (scorer.upper - scorer.lower)
    middle = scorer.lower + half
    means = middle + half * persons.means((values - middle) / half)
    # Means are cut, values of one row are not: no other person's rows may decide which it is.
    alone = np.flatnonzero(persons.counts == 1)
    means[alone] = values[persons.rows_of(alone)]
    return means


def _values_of_rows(
    scorer: BoundedScorer, model: Any, scored: Data, raises: bool = False
) -> Values:
    """Return one value per row of `scored`; improper or failing rows get the worst value.

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
    return np.concatenate([_values_of_rows(scorer, model, half) for half in halves])


# Largest number of a search's estimators that are tried; one must suit the form of the data.
N_TRIED = 16
_PER_LABEL = 3


def final_model(
    made: Any,
    data: Data,
    seed: Seed,
    n_samples: int,
    *,
    raises: bool,
    tries: bool = True,
    **more: Any,
) -> Any:
    """Return a model to publish; if its fit fails, one that does not depend on the data.

    Parameters
    ----------
    made : estimator
    data : Data
    seed : SeedSequence or None
    n_samples : int
        Public number of records.
    raises : bool
        Whether an exception is raised, which reveals it.
    tries : bool, default=True
        Whether the estimator is fitted to the data at all.
    **more
        Further arguments of ``fit``.
    """
    own = own_seeds(made)
    set_seeds(made, seed)
    try:
        if tries:
            with Quiet(), np.errstate(all="ignore"):
                data.fit(made, **more)
    except BaseException as problem:
        if raises or not is_failure(problem):
            raise
        tries = False
    # Theorem F9: published models hold the seeds of the given estimator.
    return forget_seeds(made if tries else data_independent_model(made, data, n_samples), own)


def data_independent_model(estimator: Any, data: Data, n_samples: int) -> Any:
    """Return a data-independent model, fitted to made-up data with the form of the given data.

    Parameters
    ----------
    estimator : estimator
    data : Data
        Only its form is used: columns, names and types.
    n_samples : int
        Public number of records.

    Returns
    -------
    estimator
        A fitted copy; it is not fitted if no made-up data can be fitted.

    Notes
    -----
    Theorem R6.
    """
    try:
        return _fitted_to_made_up(estimator, data, n_samples)
    except BaseException as problem:
        if not is_failure(problem):
            raise
        return clone(estimator)


def check_fits(estimators: Iterable[Any], data: Data, n_samples: int, response: str) -> None:
    """Raise if no estimator can be fitted to made-up data and then predict.

    In that case the final fit would fail as well, whatever the real data hold, and be paid for.

    Parameters
    ----------
    estimators : iterable of estimators
        They are tried in turn, until one can be fitted.
    data : Data
        Only its form is used: columns, names and types.
    n_samples : int
        Public number of records.
    response : str
        Method whose output the scores need.

    Notes
    -----
    Theorem R6: the exception is about made-up data.
    """
    first: BaseException | None = None
    # Further arguments of `fit` cannot be made up.
    if data.per_record or data.constant:
        return
    for estimator in estimators:
        try:
            _fitted_to_made_up(estimator, data, n_samples, response)
            return
        except BaseException as problem:
            if not is_failure(problem):
                raise
            first = first or problem
    if first is not None:
        raise ValueError(
            "estimator must be one that can be fitted to data of this form; on made-up data it "
            f"raised {type(first).__name__}: {first}"
        ) from first


def check_fits_of_nothing(estimators: Iterable[Any], data: Data, *, varies: bool) -> None:
    """Raise if estimators of some kind cannot be fitted without any record.

    A public rule may hold out all records, and noise does not hide a failure.

    Parameters
    ----------
    estimators : iterable of estimators
        Of the estimators whose steps have the same classes, one must be fitted.
    data : Data
        Only its form is used.
    varies : bool
        Whether the steps of estimators may have different classes.

    Notes
    -----
    Theorem T9.
    """
    nothing = data.without_records()
    problems: dict[Any, BaseException | None] = {}
    for estimator in estimators:
        kind = tuple(type(step) for _, step in nested_estimators(estimator))
        if problems.get(kind, "untried") is None:
            continue
        try:
            with Quiet(), np.errstate(all="ignore"):
                nothing.fit(clone(estimator))
            problems[kind] = None
            if not varies:
                return
        except BaseException as problem:
            if not is_failure(problem):
                raise
            problems.setdefault(kind, problem)
    for failure in filter(None, problems.values()):
        raise ValueError(
            "cv must be a fraction for this estimator; got HoldOut. A rule may hold out all "
            f"records, and a fit of none must not fail; it raised {type(failure).__name__}: "
            f"{failure}"
        ) from failure


def _fitted_to_made_up(
    estimator: Any, data: Data, n_samples: int, response: str | None = None
) -> Any:
    """Return a copy that is fitted to few made-up records, or to more if that fails."""
    n_labels = len(data.door.labels or [0.0, 1.0])
    sizes = made_up_sizes(data.X, _PER_LABEL * n_labels, n_samples)
    *others, last = ((size, with_words) for size in sizes for with_words in (True, False))
    for size, with_words in others:
        try:
            return _fitted_to(estimator, data, size, with_words, response)
        except BaseException as problem:
            if not is_failure(problem):
                raise
    return _fitted_to(estimator, data, *last, response)


def _fitted_to(
    estimator: Any, data: Data, size: int, with_words: bool, response: str | None
) -> Any:
    # The estimator must tolerate an improper record, as the user's data may hold one.
    made = clone(estimator)
    blank = data.made_up(size, with_words=with_words, has_gap=response is not None)
    if blank is None:
        return made
    with Quiet(), np.errstate(all="ignore"):
        blank.fit(made)
        if response is not None:
            method = getattr(made, response)
            # Single records that cannot be predicted get the worst score.
            if all(result is None for _, result in by_halves(method, blank.X, lambda _: None)):
                method(blank.X)
    return made
