"""Checks of single fits, of fits on neighbouring data, in pipelines and in searches."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import EstimatorCheckFailedWarning
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from skdptune._compat import cloudpickle, safe_indexing
from skdptune._formatting import shown
from skdptune._validation import check_option
from skdptune.accounting import PrivacyReport
from skdptune.base import privacy_of
from skdptune.base._shared import (
    BUDGET_PARAMETERS,
    RESERVED_PARAMETERS,
    budget_owners,
    check_secret_size,
    expected_refits,
    replaces_records,
    set_public_size,
)
from skdptune.linear_model import DPLogisticRegression
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV, NoisyMaximum, RandomRuns
from skdptune.testing import _profile_checks
from skdptune.testing._profile_checks import (
    SLACK,
    CheckDoesNotApply,
    Subject,
    fitted_values,
    made_up_data,
    other_values,
    require,
    same_profile,
)
from skdptune.testing._replay_neighbours import replay_neighbours
from skdptune.testing._replay_result import NeighbourReplay

# Two noisy fits may by chance agree in a few predictions, but not in this many attempts.
_ATTEMPTS = 3


def check_report(subject: Subject) -> None:
    """Check that after ``fit``, ``privacy_`` has the announced profile and delta."""
    estimator = subject.fresh()
    fitted = subject.fitted(estimator)
    require(fitted is estimator, "fit must return the estimator itself; it did not.")
    report = _report(subject, fitted)
    require(
        same_profile(report.profile, subject.profile()),
        f"privacy_ must have the profile that was announced before the fit; it costs "
        f"{report.profile.epsilon(subject.delta):.6g}, announced were "
        f"{subject.profile().epsilon(subject.delta):.6g} (at delta={subject.delta:g}).",
    )
    asked = subject.parameters.get("delta")
    require(
        asked is None or report.delta == asked,
        f"privacy_ must state the cost at delta={asked}; it does at {report.delta:g}.",
    )


def check_report_ignores_values(subject: Subject) -> None:
    """Check that data with the same form but other values get the same report."""
    reports = [
        _report(subject, subject.fitted(X=X, y=y))
        for X, y in ((subject.X, subject.y), other_values(subject))
    ]
    require(
        same_profile(reports[0].profile, reports[1].profile)
        and reports[0].to_dict() == reports[1].to_dict(),
        "privacy_ must not depend on the values of the data; it does.",
    )


def check_n_public(subject: Subject) -> None:
    """Check that a fit with ``n_public`` does not show the real number of records."""
    subject.needs("n_public")
    size = subject.n_samples - 20
    sized = subject.fresh(n_public=size)
    try:
        first = subject.profile(sized)
    except ValueError as problem:
        raise CheckDoesNotApply(f"refuses n_public with these parameters: {problem}") from problem
    for n_samples in (size, 2 * subject.n_samples, 10 * subject.n_samples):
        require(
            same_profile(first, subject.profile(sized, n_samples)),
            f"the profile must not depend on n_samples where n_public is given; it differs for "
            f"{n_samples} and {subject.n_samples} records.",
        )
    fitted = subject.fitted(sized)
    require(
        same_profile(_report(subject, fitted).profile, first),
        "privacy_ must have the profile of n_public records; it has another.",
    )
    shows_size = [
        name
        for name, value in fitted_values(fitted).items()
        if isinstance(value, numbers.Integral) and value == subject.n_samples
    ]
    require(
        not shows_size,
        f"a fit with n_public must not show the real number of records; {shows_size} do.",
    )


def check_random_state(subject: Subject) -> None:
    """Check that seeded fits repeat, unseeded ones do not, and clones share no generator."""
    subject.needs("random_state")
    seeded = [subject.fitted(subject.fresh(random_state=7)) for _ in range(2)]
    require(
        _all_equal(*map(subject.responses, seeded)),
        "a fit with random_state=7 must repeat itself; it does not.",
    )
    epsilon = subject.parameters.get("epsilon")
    is_noiseless = isinstance(epsilon, numbers.Real) and math.isinf(epsilon)
    if subject.profile().epsilon(0.0) == 0.0 or is_noiseless:
        return
    for _ in range(_ATTEMPTS):
        free = [subject.fitted(subject.fresh(random_state=None)) for _ in range(2)]
        if not (_all_equal(*map(subject.responses, free)) and _all_equal(*map(_arrays, free))):
            break
    else:
        require(False, "a fit with random_state=None must draw fresh noise; it repeats itself.")
    for generator in (np.random.default_rng(7), np.random.RandomState(7)):
        _check_generator(subject, generator)


def _check_generator(subject: Subject, generator: Any) -> None:
    """Check that a generator is refused, or that clones with it draw different noise."""
    made = subject.fresh(random_state=generator)
    try:
        pair = [subject.fitted(clone(made)) for _ in range(2)]
    except (TypeError, ValueError):
        return
    require(
        not (_all_equal(*map(subject.responses, pair)) and _all_equal(*map(_arrays, pair))),
        f"clones with a {type(generator).__name__} as random_state must not share their noise; "
        "they fit alike. Refuse generators, as skdptune.mechanisms.fit_generator does.",
    )


def check_fit_many(subject: Subject) -> None:
    """Check that ``fit_many`` fits estimators in place, each at the cost of one ``fit``."""
    subject.needs_member("fit_many")
    models = [subject.fresh(), subject.fresh()]
    arguments = (subject.X,) if subject.y is None else (subject.X, subject.y)
    found = type(models[0]).fit_many(models, *arguments, return_exceptions=True)
    require(
        len(found) == 2 and all(a is b for a, b in zip(found, models, strict=True)),
        f"fit_many must return the estimators, fitted in place; it returned {shown(found)}.",
    )
    for model in models:
        require(
            same_profile(_report(subject, model).profile, subject.profile()),
            "fit_many must give each estimator the report of its fit; it did not.",
        )


def check_pickle(subject: Subject) -> None:
    """Check that unfitted and fitted estimators can be pickled, which parallel workers need."""
    for estimator in (subject.fresh(), subject.fitted()):
        again = cloudpickle.loads(cloudpickle.dumps(estimator))
        require(
            same_profile(subject.profile(again), subject.profile()),
            "a pickled estimator must keep its profile; it did not.",
        )
    require(
        _all_equal(subject.responses(estimator), subject.responses(again)),
        "a pickled model must respond like the original; it does not.",
    )


def _report(subject: Subject, fitted: Any) -> PrivacyReport:
    report = privacy_of(fitted, n_samples=subject.n_samples)
    own = getattr(fitted, "privacy_", report)
    require(
        isinstance(own, PrivacyReport),
        f"privacy_ must be a PrivacyReport; got {type(own).__name__}.",
    )
    return report


def _arrays(fitted: Any) -> list[np.ndarray]:
    """Return the numbers that a fit learned."""
    values = [value for _, value in sorted(fitted_values(fitted).items())]
    return [np.asarray(v) for v in values if isinstance(v, np.ndarray | float | np.floating)]


def _all_equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


_REPEATS = 6


# Numbers of rows of a person who is added and removed: no number may matter.
_ROWS_OF_A_PERSON = (1, 2, 50, 5000)


def check_neighbours(subject: Subject) -> None:
    """Check that one record changes published values by no more than the profile allows."""
    if math.isinf(subject.profile().epsilon(0.5)):
        raise CheckDoesNotApply("claims no privacy with these parameters")
    last = _farthest(subject.X)
    if subject.groups is not None:
        _check_persons(subject, last)
        return
    others = np.delete(np.arange(subject.n_samples), last)
    record = _at(subject.X, last)
    targets = None
    if subject.y is not None:
        targets, record = safe_indexing(subject.y, others), (record, _at(subject.y, last))
    rows = safe_indexing(subject.X, others)
    replay = replay_neighbours(subject.estimator, rows, targets, record, n_repeats=_REPEATS)
    _require_no_findings(replay, "a record")


def _check_persons(subject: Subject, place: int) -> None:
    """Check that a person with any number of copies of a row changes no more than is claimed."""
    for count in _ROWS_OF_A_PERSON:
        rows = safe_indexing(subject.X, np.full(count, place))
        targets = None if subject.y is None else np.full(count, _at(subject.y, place))
        replay = replay_neighbours(
            subject.estimator,
            subject.X,
            subject.y,
            rows if subject.y is None else (rows, targets),
            groups=subject.groups,
            n_repeats=_REPEATS,
        )
        _require_no_findings(replay, f"a person with {count} rows")


def _require_no_findings(replay: NeighbourReplay, unit: str) -> None:
    found = [f"{finding.attribute} {finding.message}" for finding in replay.findings]
    require(not found, f"{unit} must change no more than the profile allows; {'; '.join(found)}.")


def _farthest(rows: Any) -> int:
    """Return the position of the longest record, or of the last one if rows are not numeric."""
    kind = getattr(getattr(rows, "dtype", None), "kind", "")
    if kind not in tuple("iuf") or not isinstance(rows, np.ndarray):
        return -1
    return int(np.argmax((rows.reshape(len(rows), -1).astype(np.float64) ** 2).sum(axis=1)))


def _at(rows: Any, place: int) -> Any:
    return rows.iloc[place] if hasattr(rows, "iloc") else rows[place]


_EPSILON = 2.0


def check_pipeline(subject: Subject) -> None:
    """Check that adding a step that learns nothing does not change the cost."""
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


# Makes errors of fits visible.
_RAISES: dict[str, Any] = {"diagnostics": True, "error_score": "raise"}


def check_grid_search(subject: Subject) -> None:
    """Check that a grid search can tune the estimator within its budget."""
    tuned, y = _tuned(subject)
    name, values = _candidates(tuned)
    search = DPGridSearchCV(
        tuned,
        {name: values},
        strategy=NoisyMaximum(n_partitions=2, **_RAISES),
        **_settings(tuned),
    )
    _check_search(subject, search, y)


def check_random_search(subject: Subject) -> None:
    """Check that a random search can tune the estimator, on random parts of the records."""
    tuned, y = _tuned(subject)
    name, values = _candidates(tuned)
    # Guarantees about replacing a record are not amplified by sampling.
    replaces = replaces_records(subject.estimator)
    # The grid search sets a budget. Here the estimator keeps its own, which is faster.
    search = DPRandomSearchCV(
        tuned,
        {name: values},
        n_iter=2,
        strategy=RandomRuns(
            n_iter_distribution="geometric",
            **_RAISES,
            tuning_fraction=0.5 if _hides_size(subject) and not replaces else None,
        ),
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
        # No part of the records may be random, so scores are computed on public data.
        search.fit(subject.X, y, X_val=subject.X, y_val=y)
    report = search.privacy_
    require(
        search.epsilon is None or report.epsilon_spent <= search.epsilon * SLACK,
        f"a search must keep its epsilon={search.epsilon}; it costs {report.epsilon_spent:.6g}.",
    )
    response = np.asarray(search.predict(subject.X))
    require(
        response.shape[0] == subject.n_samples,
        f"predict must return one value per record; it returns shape {response.shape}.",
    )


def _tuned(subject: Subject) -> tuple[Any, Any]:
    """Return the estimator to search and its targets; a transformer gets a classifier after it."""
    if subject.y is not None:
        return subject.fresh(), subject.y
    if not hasattr(subject.estimator, "transform"):
        raise CheckDoesNotApply("is neither a classifier, a regressor nor a transformer")
    if replaces_records(subject.estimator):
        raise CheckDoesNotApply(
            "is about replacing a record, and cannot be tuned with models about adding one"
        )
    y = np.arange(subject.n_samples) % 2
    # The number of columns returned by a transformer is not known beforehand.
    classifier = DPLogisticRegression(delta=subject.delta, solver="output", data_norm=1.0)
    return Pipeline([("own", subject.fresh()), ("classifier", classifier)]), y


def _candidates(tuned: Any) -> tuple[str, list[Any]]:
    """Return a parameter of the estimator, and its current value twice."""
    parameters = tuned.get_params(deep=True)
    names = sorted(
        name
        for name, value in parameters.items()
        if name.rpartition("__")[2] not in (*BUDGET_PARAMETERS, *RESERVED_PARAMETERS)
        and isinstance(value, bool | int | float | str | None)
    )
    if not names:
        raise CheckDoesNotApply("has no parameter to search apart from its budget")
    return names[0], [parameters[names[0]]] * 2


def _settings(tuned: Any) -> dict[str, Any]:
    """Return parameters for a search."""
    return {
        "epsilon": _EPSILON if budget_owners(tuned) else None,
        "scoring": neg_squared_error(bound=4.0) if is_regressor(tuned) else None,
        "random_state": 0,
    }


def _hides_size(subject: Subject) -> bool:
    """Return whether the estimator can be fitted to a random part of secret size."""
    sized = subject.fresh()
    set_public_size(sized, subject.n_samples)
    try:
        check_secret_size(sized, subject.n_samples, subject.n_features)
    except (TypeError, ValueError):
        return False
    return True


# All checks of the contract of private estimators, run in order, with their results -------------

# Checks without data come first, those with searches last.
# Every function of both modules up to here whose name begins with "check", in order.
_CHECKS: list[Callable[[Subject], None]] = [
    check
    for module in (vars(_profile_checks), dict(globals()))
    for name, check in module.items()
    if name.startswith("check_") and check.__module__ == module["__name__"]
]


class CheckResult(NamedTuple):
    """The result of one check.

    Attributes
    ----------
    name : str
        Name of the check, such as ``"check_profile"``.
    passed : bool or None
        None if the estimator does not have the checked feature.
    message : str
        The problem, or why the check does not apply.
    """

    name: str
    passed: bool | None
    message: str


# These compose or tune what protects records; a guarantee about persons is checked by the others.
_OF_RECORDS = (
    check_fit_many,
    check_pipeline,
    check_grid_search,
    check_random_search,
)


def check_private_estimator(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    groups: Any = None,
    on_fail: str | None = "raise",
) -> list[CheckResult]:
    """Check that an estimator satisfies the contract of private estimators.

    Use it for your own estimators, in addition to scikit-learn's ``check_estimator``. The contract
    is stated in `skdptune.base.protocol`. The privacy profile depends only on parameters and
    public sizes, and the report after a fit agrees with it. Optional members work as searches
    assume, and pipelines and searches can contain the estimator. One check is a short
    `replay_neighbours`, which detects much that is published without noise. These checks cannot
    show that the noise is sufficient: that needs a proof.

    Parameters
    ----------
    estimator : estimator
        An instance with everything that its fit needs. It is not changed.
    X, y : array-like, optional
        Suitable data, some hundred records. By default, data are made up: 3 numeric columns in
        [-1, 1], and labels or numbers as targets. There is no `y` if the estimator is neither a
        classifier nor a regressor.
    groups : array-like of shape (n_rows,), optional
        The id of the person of each row of `X`, passed to ``fit``. Neighbours are then whole
        persons with 1, 2, 50 and 5,000 rows. Checks in pipelines and searches, and of
        ``fit_many``, stay about records.
    on_fail : {"raise", "warn"} or None, default="raise"
        What to do if a check fails: raise an AssertionError at the first failure, give a warning
        for each failure, or only return the results.

    Returns
    -------
    list of CheckResult
        One triple ``(name, passed, message)`` per check; ``passed`` is None if the check does not
        apply to the estimator.

    Raises
    ------
    AssertionError
        With ``on_fail="raise"``, at the first check that fails.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.testing import check_private_estimator
    >>> results = check_private_estimator(DPLogisticRegression(solver="output", data_norm=2.0))
    >>> len(results), all(result.passed is not False for result in results)
    (21, True)
    """
    check_option(on_fail or "none", name="on_fail", options=("raise", "warn", "none"))
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance; got the class {estimator.__name__}.")
    if groups is not None and X is None:
        raise ValueError("X must be given with groups, the persons of its rows; got None.")
    if X is None:
        X, y = made_up_data(estimator)
    results = []
    for check in _CHECKS:
        of_check = None if check in _OF_RECORDS else groups
        result, problem = _run(check, estimator, X, y, of_check)
        results.append(result)
        if result.passed is False and on_fail is not None:
            _report_failure(estimator, result, problem, on_fail)
    return results


@expected_refits()
def _run(
    check: Callable[[Subject], None], estimator: Any, X: Any, y: Any, groups: Any
) -> tuple[CheckResult, Exception | None]:
    """Run a check on a fresh copy; return the result, and the exception if it fails."""
    name = check.__name__
    try:
        with warnings.catch_warnings():
            # So few records cause many warnings, which are not what is checked.
            warnings.simplefilter("ignore")
            check(Subject(clone(estimator), X, y, groups))
    except CheckDoesNotApply as reason:
        return CheckResult(name, None, f"{type(estimator).__name__} {reason}."), None
    except AssertionError as problem:
        return CheckResult(name, False, str(problem)), problem
    # An error in the estimator is a failed check; the other checks still run.
    except Exception as problem:
        return CheckResult(name, False, f"raised {type(problem).__name__}: {problem}"), problem
    return CheckResult(name, True, ""), None


def _report_failure(
    estimator: Any, result: CheckResult, problem: Exception | None, on_fail: str
) -> None:
    error = AssertionError(f"{type(estimator).__name__} fails {result.name}: {result.message}")
    if on_fail == "raise":
        raise error from problem
    warnings.warn(
        EstimatorCheckFailedWarning(
            estimator=estimator,
            check_name=result.name,
            exception=error,
            status="failed",
            expected_to_fail=False,
            expected_to_fail_reason=None,
        ),
        stacklevel=3,
    )
