"""The conventions of every transformer about scikit-learn and its cost, checked on one object."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from skdptune.base import privacy_of, profile_of
from tests.base.nasty_records import (
    FIT_TAKES_ANY_RECORD,
    FORMS,
    as_list,
    interrupted_draws,
    nasty_rows,
)

# Array API is checked where an environment variable of SciPy asks for it, and else skipped.
MAY_BE_SKIPPED = {"check_array_api_input", "check_readonly_memmap_input"}
DATA = np.random.default_rng(5).normal(size=(40, 3))


def check_scikit_learn(estimator: Any, at_least: int) -> None:
    """Run scikit-learn's own checks, and count those that ran."""
    results = check_estimator(
        estimator, expected_failed_checks=FIT_TAKES_ANY_RECORD, on_fail=None, on_skip=None
    )
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert failed == []
    assert skipped <= MAY_BE_SKIPPED
    assert sum(r["status"] in ("passed", "xfail") for r in results) >= at_least


def check_frames(estimator: Any) -> None:
    frame = pd.DataFrame(DATA, columns=["a", "b", "c"])
    plain = clone(estimator).fit(DATA).transform(DATA)
    fitted = clone(estimator).set_output(transform="pandas").fit(frame)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.get_feature_names_out().tolist() == ["a", "b", "c"]
    result = fitted.transform(frame)
    assert result.columns.tolist() == ["a", "b", "c"]
    # Columns in another order of memory are summed in another order.
    np.testing.assert_allclose(result.to_numpy(), plain, rtol=1e-14, atol=1e-15)


def check_copies(estimator: Any) -> None:
    fitted = clone(estimator).fit(DATA)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(DATA), fitted.transform(DATA))
    assert again.privacy_ == fitted.privacy_
    assert not hasattr(clone(fitted), "privacy_")


def check_cost(estimator: Any) -> None:
    """The cost before fit is the report after, whatever the number of features."""
    fitted = clone(estimator).fit(DATA)
    for n_features in (None, 1, 3, 100):
        assert profile_of(estimator, 40, n_features) == fitted.privacy_.profile
    pipeline = make_pipeline(clone(estimator))
    assert profile_of(pipeline, 40) == fitted.privacy_.profile
    assert privacy_of(pipeline.fit(DATA)).profile == fitted.privacy_.profile


def check_any_record(estimator: Any, form: str, rows_at: Any) -> None:
    """A record with any content only changes its own row of the noisy values (Theorem R5).

    `rows_at` is called with a scaler and data, and returns the rows that reach the noise.
    """
    make = FORMS[form]
    before = rows_at(clone(estimator), make(DATA))
    for row in nasty_rows(form, 3):
        after = rows_at(clone(estimator), make([*as_list(DATA), row]))
        np.testing.assert_array_equal(after[:-1], before)
        assert np.isfinite(after).all()
    everything = make([*as_list(DATA), *nasty_rows(form, 3)])
    check_finite(clone(estimator).fit(everything))


def check_finite(fitted: Any) -> None:
    for name, value in vars(fitted).items():
        if name.endswith("_") and isinstance(value, float | int | np.ndarray):
            if name != "feature_names_in_":
                assert np.isfinite(value).all(), name


def check_refusals(estimator: Any) -> None:
    """A private scaler takes no sparse table, and a public size that is one."""
    assert "epsilon" in estimator.cost_parameters
    with pytest.raises(TypeError, match="[Ss]parse"):
        clone(estimator).fit(sparse.eye(3).tocsr())
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        clone(estimator).fit(np.empty((0, 2)))
    for value, kind in ((0, ValueError), (1.5, TypeError)):
        wrong = clone(estimator).set_params(n_public=value)
        for ask, given in ((wrong.privacy_profile, 10), (wrong.fit, "no data at all")):
            with pytest.raises(kind, match="n_public must be"):
                ask(given)


def check_interrupt(estimator: Any) -> None:
    """An interrupted fit leaves nothing that depends on data."""
    left = []
    for rows in (DATA, -3.0 * DATA):
        again = clone(estimator).set_params(random_state=None)
        try:
            with interrupted_draws():
                again.fit(rows)
        except KeyboardInterrupt:
            left.append({**vars(again), "random_state": None})
        try:
            again.transform(rows)
        except NotFittedError:
            left.append("not fitted")
    assert str(left[0]) == str(left[2])
    assert left[1] == left[3] == "not fitted"


ALL = [check_frames, check_copies, check_cost]
OF_NOISE = [*ALL, check_refusals, check_interrupt]
