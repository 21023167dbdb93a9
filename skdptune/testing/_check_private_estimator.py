"""All checks of the contract of private estimators, run in order, with their results."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.exceptions import EstimatorCheckFailedWarning

from skdptune._validation import check_option
from skdptune.base._shared import expected_refits
from skdptune.testing import _fit_checks, _profile_checks
from skdptune.testing._profile_checks import CheckDoesNotApply, Subject, made_up_data

# Checks without data come first, those with searches last.
_CHECKS: tuple[Callable[[Subject], None], ...] = (
    _profile_checks.check_parameters,
    _profile_checks.check_constructor,
    _profile_checks.check_profile,
    _profile_checks.check_profile_within_budget,
    _profile_checks.check_profile_monotone_in_epsilon,
    _profile_checks.check_cost_parameters,
    _profile_checks.check_noise_level,
    _profile_checks.check_noise_parameter,
    _profile_checks.check_calibration_to_curve,
    _profile_checks.check_tuning_parameters,
    _profile_checks.check_suggested_space,
    _fit_checks.check_report,
    _fit_checks.check_report_ignores_values,
    _fit_checks.check_n_public,
    _fit_checks.check_random_state,
    _fit_checks.check_fit_many,
    _fit_checks.check_pickle,
    _fit_checks.check_neighbours,
    _fit_checks.check_pipeline,
    _fit_checks.check_grid_search,
    _fit_checks.check_random_search,
)


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


def check_private_estimator(
    estimator: Any, X: Any = None, y: Any = None, *, on_fail: str | None = "raise"
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
    if X is None:
        X, y = made_up_data(estimator)
    results = []
    for check in _CHECKS:
        result, problem = _run(check, estimator, X, y)
        results.append(result)
        if result.passed is False and on_fail is not None:
            _report_failure(estimator, result, problem, on_fail)
    return results


@expected_refits()
def _run(
    check: Callable[[Subject], None], estimator: Any, X: Any, y: Any
) -> tuple[CheckResult, Exception | None]:
    """Run a check on a fresh copy; return the result, and the exception if it fails."""
    name = check.__name__
    try:
        with warnings.catch_warnings():
            # So few records cause many warnings, which are not what is checked.
            warnings.simplefilter("ignore")
            check(Subject(clone(estimator), X, y))
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
