"""Checks of an estimator inside pipelines and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from skdptune.base import (
    BUDGET_PARAMETERS,
    RESERVED_PARAMETERS,
    budget_owners,
    check_secret_size,
    privacy_of,
    replaces_records,
    set_public_size,
)
from skdptune.linear_model import DPLogisticRegression
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.testing._subject import CheckDoesNotApply, Subject, require, same_profile

_EPSILON = 2.0
_SLACK = 1.0 + 1e-6


def check_pipeline(subject: Subject) -> None:
    """Check that a pipeline with a step that learns nothing costs what the estimator costs."""
    own, free = ("own", subject.fresh()), ("free", Normalizer())
    is_transformer = hasattr(subject.estimator, "transform")
    pipeline = Pipeline([own, free] if is_transformer else [free, own])
    require(
        same_profile(subject.profile(pipeline), subject.profile()),
        "a pipeline with a free step must cost what the estimator costs; it does not.",
    )
    fitted = subject.fitted(pipeline)
    require(
        same_profile(privacy_of(fitted, n_samples=subject.n_samples).profile, subject.profile()),
        "the report of a pipeline must have the estimator's profile; it has another.",
    )
    if is_transformer:
        require(
            np.shape(fitted.transform(subject.X))[0] == subject.n_samples,
            "transform must return one row per record; it does not.",
        )


def check_grid_search(subject: Subject) -> None:
    """Check that a grid search tunes the estimator within its budget."""
    tuned, y = _tuned(subject)
    name, values = _candidates(tuned)
    search = DPGridSearchCV(tuned, {name: values}, n_partitions=2, **_settings(tuned))
    _check_search(subject, search, y)


def check_random_search(subject: Subject) -> None:
    """Check that a random search tunes the estimator as it is, on random parts of the records."""
    tuned, y = _tuned(subject)
    name, values = _candidates(tuned)
    # Guarantees about replacing a record do not grow by sampling.
    replaces = replaces_records(subject.estimator)
    # The grid search sets a budget; here the estimator keeps its own, which is faster.
    search = DPRandomSearchCV(
        tuned,
        {name: values},
        n_iter=2,
        n_iter_distribution="geometric",
        tuning_fraction=0.5 if _hides_size(subject) and not replaces else None,
        **_settings(tuned) | {"epsilon": None},
    )
    _check_search(subject, search, y)


def _check_search(subject: Subject, search: Any, y: Any) -> None:
    if _hides_size(subject):
        announced = search.privacy_profile(subject.n_samples, subject.n_features)
        search.fit(subject.X, y)
        require(
            same_profile(search.privacy_.profile, announced),
            "a search must cost what it announced; it does not.",
        )
    else:
        # No part of the records may be random, so the scores are on data that are public.
        search.fit(subject.X, y, X_val=subject.X, y_val=y)
    report = search.privacy_
    require(
        search.epsilon is None or report.epsilon_spent <= search.epsilon * _SLACK,
        f"a search must keep its epsilon={search.epsilon}; it costs {report.epsilon_spent:.6g}.",
    )
    response = np.asarray(search.predict(subject.X))
    require(
        response.shape[0] == subject.n_samples,
        f"predict must return one value per record; it returns shape {response.shape}.",
    )


def _tuned(subject: Subject) -> tuple[Any, Any]:
    """Return what is searched, and its targets: a transformer is tuned before a classifier."""
    if subject.y is not None:
        return subject.fresh(), subject.y
    if not hasattr(subject.estimator, "transform"):
        raise CheckDoesNotApply("is neither a classifier, a regressor nor a transformer")
    if replaces_records(subject.estimator):
        raise CheckDoesNotApply(
            "is about replacing a record, and cannot be tuned with models about adding one"
        )
    y = np.arange(subject.n_samples) % 2
    # The number of columns that a transformer returns is not known beforehand.
    classifier = DPLogisticRegression(delta=subject.delta, solver="output", data_norm=1.0)
    return Pipeline([("own", subject.fresh()), ("classifier", classifier)]), y


def _candidates(tuned: Any) -> tuple[str, list[Any]]:
    """Return a parameter of the estimator with the one value that it has, twice."""
    parameters = tuned.get_params(deep=True)
    names = sorted(
        name
        for name, value in parameters.items()
        if name.rpartition("__")[2] not in (*BUDGET_PARAMETERS, *RESERVED_PARAMETERS)
        and isinstance(value, bool | int | float | str | None)
    )
    if not names:
        raise CheckDoesNotApply("has no parameter to search, beside its budget")
    return names[0], [parameters[names[0]]] * 2


def _settings(tuned: Any) -> dict[str, Any]:
    """Return parameters of a search that lets failures of fits be seen."""
    return {
        "epsilon": _EPSILON if budget_owners(tuned) else None,
        "scoring": neg_squared_error(bound=4.0) if is_regressor(tuned) else None,
        "diagnostics": True,
        "error_score": "raise",
        "random_state": 0,
    }


def _hides_size(subject: Subject) -> bool:
    """Return whether the estimator can be fitted to a random part, whose size is secret."""
    sized = subject.fresh()
    set_public_size(sized, subject.n_samples)
    try:
        check_secret_size(sized, subject.n_samples, subject.n_features)
    except (TypeError, ValueError):
        return False
    return True
