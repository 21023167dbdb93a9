"""Whole searches: their plans cost slightly less than the requested total, and never more."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import loguniform
from sklearn.pipeline import make_pipeline

from skdptune import linear_model
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
)
from skdptune.preprocessing import DPMinMaxScaler, DPStandardScaler
from tests.flat import flat
from tests.model_selection.learners import Scripted

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0, 6.0, 20.0)
N_SAMPLES, N_FEATURES = 30_000, 100
REGRESSIONS = tuple(
    name for name in linear_model.__all__ if name.endswith(("LinearRegression", "Ridge"))
)


class OneDelta(Scripted):
    """A fit whose guarantee is known only at one delta."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return PrivacyProfile.approximate(self.epsilon, self.delta)


def net() -> Any:
    pytest.importorskip("opacus")
    from skdptune.neural_network import MLP, DPNeuralNetClassifier

    return DPNeuralNetClassifier(MLP)


# Of each: how to make it, a parameter that does not set its cost, and those that set its budget.
ESTIMATORS: dict[str, tuple[Callable[[], Any], str, tuple[str, ...]]] = {
    "logistic": (DPLogisticRegression, "learning_rate", ("epsilon",)),
    "objective": (lambda: DPLogisticRegression(solver="objective"), "C", ("epsilon",)),
    "sgd": (lambda: DPLogisticRegression(solver="sgd"), "learning_rate", ("epsilon",)),
    "output": (lambda: DPLogisticRegression(solver="output"), "C", ("epsilon",)),
    "svm": (DPLinearSVC, "C", ("epsilon",)),
    "net": (net, "lr", ("epsilon",)),
    "one delta": (OneDelta, "quality", ("epsilon",)),
    "scaled": (
        lambda: make_pipeline(DPStandardScaler(bounds=(-3.0, 3.0)), DPLogisticRegression()),
        "dplogisticregression__C",
        ("dpstandardscaler__epsilon", "dplogisticregression__epsilon"),
    ),
    "scaled, sgd": (
        lambda: make_pipeline(
            DPMinMaxScaler(bounds=(-1.0, 1.0)), DPLogisticRegression(solver="sgd")
        ),
        "dplogisticregression__learning_rate",
        ("dpminmaxscaler__epsilon", "dplogisticregression__epsilon"),
    ),
} | {
    name: (
        lambda name=name: getattr(linear_model, name)(data_norm=1.0, target_bound=1.0),
        "alpha",
        ("epsilon",),
    )
    for name in REGRESSIONS
}


def pareto(
    estimator: Any, name: str, budgets: tuple[str, ...], epsilon: float, **more: Any
) -> Any:
    pytest.importorskip("optuna")
    pytest.importorskip("moocore")
    space = {name: (1e-2, 1.0, "log")} | {
        budget: (0.05 * epsilon, 5.0 * epsilon, "log") for budget in budgets
    }
    return flat(DParetoSearchCV, estimator, space, release=epsilon, **more)


SEARCHES: dict[str, Callable[..., Any]] = {
    "random": lambda estimator, name, _, **more: flat(
        DPRandomSearchCV, estimator, {name: loguniform(1e-2, 1.0)}, **more
    ),
    "grid": lambda estimator, name, _, **more: flat(
        DPGridSearchCV, estimator, {name: [0.01, 0.1, 1.0]}, **more
    ),
    "doubling": lambda estimator, name, _, **more: flat(
        DoublingThresholdSearchCV, estimator, {name: [0.01, 0.1, 1.0]}, **more
    ),
    # Plans need no optuna.
    "adaptive": lambda estimator, name, _, **more: flat(
        DPAdaptiveSearchCV, estimator, {name: (1e-2, 1.0, "log")}, **more
    ),
    "pareto": pareto,
}
# One epsilon of each pair that is costed in a moment is enough for the ordinary run.
QUICK = {
    ("random", "logistic"): 1.0,
    ("grid", "objective"): 0.1,
    ("doubling", "objective"): 0.5,
    ("pareto", "objective"): 1.0,
    ("random", "output"): 6.0,
    ("adaptive", "output"): 6.0,
    ("adaptive", "sgd"): 0.5,
    ("grid", "sgd"): 0.5,
    ("doubling", "svm"): 20.0,
    ("doubling", "net"): 0.1,
    ("random", "one delta"): 6.0,
    ("grid", "one delta"): 0.1,
    ("doubling", "scaled"): 2.0,
    ("grid", "DPRidge"): 6.0,
    ("doubling", "PTRLinearRegression"): 2.0,
}
# One fit whose guarantee holds only at one delta uses up the delta of a release.
NO_PARETO = {"one delta", "AdaOPSLinearRegression"}


def search_of(search: str, estimator: str, epsilon: float, **changes: Any) -> Any:
    make, name, budgets = ESTIMATORS[estimator]
    settings: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
    if estimator in REGRESSIONS:
        settings["scoring"] = neg_squared_error(bound=1.0)
    return SEARCHES[search](make(), name, budgets, **settings | changes)


def default_searches() -> list[Any]:
    """Return all pairs of a search and an estimator, each with two of six epsilons in turn.

    Each epsilon then comes with each search, and with each estimator.
    """
    found = []
    for (i, search), (j, estimator) in itertools.product(
        enumerate(SEARCHES), enumerate(ESTIMATORS)
    ):
        if search == "pareto" and estimator in NO_PARETO:
            continue
        quick = QUICK.get((search, estimator))
        if quick is not None:
            found.append(pytest.param(search, estimator, quick))
        for place in (i + j, i + j + 3):
            epsilon = EPSILONS[place % len(EPSILONS)]
            if epsilon != quick:
                found.append(pytest.param(search, estimator, epsilon, marks=pytest.mark.slow))
    return found


def assert_all_is_spent(search: Any, epsilon: float) -> None:
    spent = search.privacy_profile(N_SAMPLES, N_FEATURES).epsilon(DELTA)
    assert 0.99 * epsilon <= spent <= epsilon
    plan = search.plan(N_SAMPLES, N_FEATURES, compare=False)
    assert plan.row.epsilon == plan.report.epsilon_spent == spent


@pytest.mark.parametrize(("search", "estimator", "epsilon"), default_searches())
def test_default_search_spends_what_it_was_asked_for(
    search: str, estimator: str, epsilon: float
) -> None:
    assert_all_is_spent(search_of(search, estimator, epsilon), epsilon)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:delta=0.1 is at least")
@pytest.mark.parametrize("delta", [1e-5, 0.1])
@pytest.mark.parametrize("limit", ["auto", 100.0], ids=str)
def test_very_large_totals_are_planned(limit: Any, delta: float) -> None:
    # Theorem T4: no curve is tried that has no digits, whatever the total.
    pytest.importorskip("optuna")
    model = DPLogisticRegression(solver="sgd", epochs=3)
    total = {"epsilon": 500.0, "delta": delta, "noise_limit": limit}
    for search in (
        flat(DPGridSearchCV, model, {"epochs": [2, 3, 4, 5, 6, 7]}, strategy="table", **total),
        flat(DPAdaptiveSearchCV, model, {"epochs": (2, 6)}, n_trials=5, **total),
    ):
        assert search.plan(2000, 3, compare=False).epsilon <= 500.0
