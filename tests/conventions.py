"""What every estimator must do: scikit-learn's checks, and what an interrupted fit leaves."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from tests.base.nasty_records import interrupted_draws


def check_as_scikit_learn_does(
    estimator: Any, expected: Mapping[str, str], least: int, skipped: Collection[str] | None = None
) -> dict[str, list[str]]:
    """Return the names of scikit-learn's checks by their status; none fails unexpectedly.

    Parameters
    ----------
    estimator : estimator
    expected : mapping
        From the names of checks that fail to the reason.
    least : int
        At least so many checks pass.
    skipped : collection of str, optional
        The checks that may be skipped; by default all.
    """
    with warnings.catch_warnings():
        # The checks fit a few dozen records, for which delta is too large.
        warnings.simplefilter("ignore")
        results = check_estimator(
            estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
        )
    failures = [result for result in results if result["status"] == "failed"]
    assert [f"{one['check_name']} {one['exception']!r:.900}" for one in failures] == []
    found: dict[str, list[str]] = {"passed": [], "skipped": [], "xfail": []}
    for result in results:
        found[result["status"]].append(result["check_name"])
    assert skipped is None or set(found["skipped"]) <= set(skipped)
    assert len(found["passed"]) >= least
    return found


def check_interrupted_fit(fitted: Any, X: Any, y: Any) -> Any:
    """Return what an interrupted fit leaves of a linear model, which is what was there before."""
    before = set(vars(fitted)) - {"privacy_"}
    with pytest.raises(KeyboardInterrupt), interrupted_draws():
        fitted.fit(X, y)
    assert set(vars(fitted)) == before
    with pytest.raises(NotFittedError):
        fitted.predict(X)
    return np.array(fitted.coef_)
