"""Special features of the random search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.pipeline import Pipeline, make_pipeline

from skdptune.accounting import Binomial, Poisson
from skdptune.model_selection import DPRandomSearchCV
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
X, Y = table(400)


def search(**more: object) -> DPRandomSearchCV:
    values = {"quality": uniform()}
    usual = {"random_state": 0, "tuning_fraction": None, "n_iter_distribution": "geometric"}
    usual |= {"try_own_values": False}
    return flat(DPRandomSearchCV, Scripted(delta=DELTA), values, **{**usual, **more})


def test_no_run_gives_the_worst_score_and_an_untried_candidate() -> None:
    found = search(n_iter_distribution=Poisson(1e-6), refit=True).fit(X, Y)
    assert found.best_score_ == 0.0
    assert 0.0 <= found.best_params_["quality"] <= 1.0
    assert found.best_estimator_.quality == found.best_params_["quality"]
    winner = search(n_iter_distribution=Poisson(1e-6)).fit(X, Y)
    assert winner.cv_results_["params"] == [winner.best_params_]


def test_one_more_run_is_planned_and_shown() -> None:
    """Theorem F14."""
    made = search(n_iter=3, try_own_values=True)
    plan = made.plan(400, 3)
    assert plan.row.expected_fits == pytest.approx(4)
    assert "and one run of the unchanged estimator" in str(plan.report)
    assert "are kept unless another candidate scores higher by" in str(plan)
    made.fit(X, Y)
    assert [row["quality"] for row in made.cv_results_["params"]][0] == 0.5
    assert len(made.cv_results_["params"]) == 2
    assert made.best_params_ == made.cv_results_["params"][made.best_index_]
    # What the estimator itself cannot be has no run.
    model = Scripted(delta=DELTA)
    steps = DPRandomSearchCV(Pipeline([("m", model)]), {"m": [model]}, epsilon=1.0, delta=DELTA)
    assert "one run of" not in str(steps.plan(400, 3, compare=False).report)


def test_fixed_number_of_runs_is_made() -> None:
    found = search(n_iter_distribution=Binomial(6, 1.0), diagnostics=True).fit(X, Y)
    kept = found.diagnostics_
    assert kept["n_runs"] == 6
    assert len({params["quality"] for params in kept["params"]}) == 6
    assert found.best_score_ == kept["scores"].max()
    assert found.best_params_ == kept["params"][int(np.argmax(kept["scores"]))]


BAD = {
    "n_iter_distribution": ["gauss"],
    "bound": ["tight"],
    "n_iter": [0],
    "at_least": [5, (2, 1.0)],
    "extrapolate": ["no"],
    "warm_start": [1],
    "tuning_fraction": [0.9],
}


def test_bad_parameters() -> None:
    for name, values in BAD.items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=rf"{name}(\[1\])? must be"):
                search(**{name: value}).privacy_profile(400, 3)
    with pytest.raises(TypeError, match="takes no coef_init"):
        search(warm_start=True).privacy_profile(400, 3)


def test_the_parameter_that_was_meant_is_named() -> None:
    # scikit-learn's own message shows the whole pipeline, and no parameter of its steps.
    for name in ("quality", "scriptd__quality", "scripted__qualty"):
        with pytest.raises(ValueError, match="must name parameters of Pipeline") as refusal:
            DPRandomSearchCV(make_pipeline(Scripted()), {name: [1.0]}).plan(400, 3)
        assert str(refusal.value).endswith("Did you mean 'scripted__quality'?")
