"""What is particular to the random search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import uniform

from skdptune.accounting import Binomial, Poisson
from skdptune.model_selection import DPRandomSearchCV
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
X, Y = table(400)


def search(**more: object) -> DPRandomSearchCV:
    values = {"quality": uniform()}
    usual = {"random_state": 0, "tuning_fraction": None, "n_iter_distribution": "geometric"}
    return flat(DPRandomSearchCV, Scripted(delta=DELTA), values, **{**usual, **more})


def test_no_run_gives_the_worst_score_and_an_untried_candidate() -> None:
    found = search(n_iter_distribution=Poisson(1e-6), refit=True).fit(X, Y)
    assert found.best_score_ == 0.0
    assert 0.0 <= found.best_params_["quality"] <= 1.0
    assert found.best_estimator_.quality == found.best_params_["quality"]
    winner = search(n_iter_distribution=Poisson(1e-6)).fit(X, Y)
    assert winner.cv_results_["params"] == [winner.best_params_]


def test_fixed_number_of_runs_is_made() -> None:
    found = search(n_iter_distribution=Binomial(6, 1.0), diagnostics=True).fit(X, Y)
    kept = found.diagnostics_
    assert kept["n_runs"] == 6
    assert len({params["quality"] for params in kept["params"]}) == 6
    assert found.best_score_ == kept["scores"].max()
    assert found.best_params_ == kept["params"][int(np.argmax(kept["scores"]))]


def test_more_runs_cost_more() -> None:
    costs = [search(n_iter=n).privacy_profile(400, 3).epsilon(DELTA) for n in (2, 8, 32)]
    assert costs[0] < costs[1] < costs[2]


def test_envelope_costs_no_more_than_the_others() -> None:
    costs = {
        bound: search(bound=bound).privacy_profile(400, 3).epsilon(DELTA)
        for bound in ("envelope", "rdp")
    }
    assert costs["envelope"] < costs["rdp"]


def test_plan_lists_alternatives() -> None:
    plan = search(tuning_fraction=0.2, n_iter=3).plan(2000, 3)
    names = [row.name for row in plan.alternatives]
    assert names[0] == "one fit, untuned"
    assert "tuning on all records" in names
    assert plan.row.expected_fits == pytest.approx(3)
    assert plan.tuning_fraction == 0.2


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"n_iter_distribution": "gauss"}, ValueError, "n_iter_distribution must be"),
        ({"bound": "tight"}, ValueError, "bound must be"),
        ({"n_iter": 0}, ValueError, "n_iter must be"),
        (
            {"extrapolate": "no"},
            ValueError,
            "extrapolate must be 'auto', 'linear', None or a callable",
        ),
        ({"warm_start": 1}, TypeError, "warm_start must be"),
        ({"warm_start": True}, TypeError, "takes no coef_init"),
        ({"tuning_fraction": 0.9}, ValueError, "tuning_fraction must be"),
    ],
)
def test_bad_parameters(settings: dict[str, object], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        search(**settings).privacy_profile(400, 3)
