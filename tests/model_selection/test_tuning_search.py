"""What the searches for one tuned model share: choosing, the final fit, what is published."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.model_selection._running import Result, Streams
from tests.model_selection.learners import Loud, Scripted, table

DELTA = 1e-5
X, Y = table(600)


def search(estimator: Any = None, **more: Any) -> DPRandomSearchCV:
    settings = {"delta": DELTA, "random_state": 0, "tuning_fraction": None, **more}
    return DPRandomSearchCV(estimator or Scripted(), {"quality": [0.2, 0.8]}, **settings)


def test_ties_are_broken_without_the_data() -> None:
    results = [Result(None, score, 0.0, None) for score in (0.1, 0.7, 0.7, 0.7)]
    found = {search()._highest(results, Streams.of(seed)) for seed in range(40)}
    assert found == {1, 2, 3}


def test_a_second_fit_leaves_nothing_of_the_first() -> None:
    fitted = search(diagnostics=True).fit(X, Y)
    assert hasattr(fitted, "diagnostics_") and hasattr(fitted, "best_estimator_")
    fitted.set_params(diagnostics=False, refit=False).fit(X, Y)
    assert not hasattr(fitted, "diagnostics_") and not hasattr(fitted, "best_estimator_")


def test_a_final_fit_that_fails_gives_a_model_that_no_record_influenced() -> None:
    """Theorem F4: it shows what a failing fit of other data would have shown."""
    found = []
    for seed in (0, 1):
        rows, labels = table(600, seed=seed)
        grid = {"quality": [0.1]}
        one = DPGridSearchCV(Loud(0.1, mark="secret"), grid, delta=DELTA, random_state=0)
        one.set_params(tuning_estimator=Scripted()).fit(rows, labels)
        found.append(vars(one.best_estimator_))
    assert found[0].keys() == found[1].keys()
    assert not any("secret" in str(value) for name, value in found[0].items() if name != "mark")


def test_parameters_that_the_search_sets_may_not_be_searched() -> None:
    for name in ("random_state", "n_public"):
        with pytest.raises(ValueError, match=f"must leave '{name}' to the search"):
            DPGridSearchCV(Scripted(), {name: [1]}, delta=DELTA).privacy_profile(600)


def test_validation_data_are_those_of_the_split_or_public() -> None:
    one = search(cv=0.25)
    plan, data, public = one._opened(X, Y, None, None, {})
    state = one._state(plan, data, public)
    np.testing.assert_array_equal(state.validation.X, X[state.split.validation])
    plan, data, public = one._opened(X, Y, X[:9], Y[:9], {})
    assert one._state(plan, data, public).validation.n_samples == 9
