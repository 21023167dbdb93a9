"""What a search's plan takes in a fresh process; `accounting.py search-costs` asks for it.

    python benchmarks/search_costs.py random sgd [--compare] [--epsilon 1.0]

Prints JSON: seconds of the processor for the first plan of the process, for a second search's, and
for the peer, which is the least of several: dp_accounting's epsilon of a run of 10,000 steps.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from scipy.stats import loguniform
from sklearn.pipeline import Pipeline

import skdptune
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression, DPRidge
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
)
from skdptune.preprocessing import DPStandardScaler

DELTA = 1e-5
N_SAMPLES, N_FEATURES = 30_000, 100
LOW, HIGH = 1e-2, 1e2

# Estimators ---------------------------------------------------------------------------------


def net() -> Any:
    """Return a small net."""
    from skdptune.neural_network import MLP, DPNeuralNetClassifier

    return DPNeuralNetClassifier(MLP)


def pipeline() -> Pipeline:
    """Return a private scaler with a private classifier."""
    scaler = DPStandardScaler(bounds=(-3.0, 3.0))
    return Pipeline([("scale", scaler), ("model", DPLogisticRegression())])


def regression() -> Any:
    """Return a private ridge regression."""
    return DPRidge(data_norm=1.0, target_bound=1.0)


# Of each: how to make it, which parameter is searched, and which set its budget.
ESTIMATORS: dict[str, tuple[Callable[[], Any], str, tuple[str, ...]]] = {
    "logistic": (DPLogisticRegression, "C", ("epsilon",)),
    "objective": (lambda: DPLogisticRegression(solver="objective"), "C", ("epsilon",)),
    "sgd": (lambda: DPLogisticRegression(solver="sgd"), "learning_rate", ("epsilon",)),
    "svm": (DPLinearSVC, "C", ("epsilon",)),
    "net": (net, "lr", ("epsilon",)),
    "regression": (regression, "alpha", ("epsilon",)),
    "pipeline": (pipeline, "model__C", ("model__epsilon", "scale__epsilon")),
}

# Searches -----------------------------------------------------------------------------------


def _pareto(
    estimator: Any, name: str, budgets: tuple[str, ...], epsilon: float, **more: Any
) -> Any:
    space = {name: (LOW, HIGH, "log")} | {budget: (0.05, 5.0, "log") for budget in budgets}
    return DParetoSearchCV(estimator, space, release=epsilon, **more)


def _listed(name: str) -> dict[str, list[float]]:
    return {name: np.geomspace(LOW, HIGH, 10).tolist()}


SEARCHES: dict[str, Callable[..., Any]] = {
    "random": lambda estimator, name, _, **more: DPRandomSearchCV(
        estimator, {name: loguniform(LOW, HIGH)}, **more
    ),
    "grid": lambda estimator, name, _, **more: DPGridSearchCV(estimator, _listed(name), **more),
    "doubling": lambda estimator, name, _, **more: DoublingThresholdSearchCV(
        estimator, _listed(name), **more
    ),
    "pareto": _pareto,
}


def default_search(search: str, estimator: str, epsilon: float) -> Any:
    """Return a search with its defaults over one parameter, and a Pareto search's over epsilon."""
    make, name, budgets = ESTIMATORS[estimator]
    settings: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
    if estimator == "regression":
        settings["scoring"] = neg_squared_error(bound=1.0)
    return SEARCHES[search](make(), name, budgets, **settings)


# Times --------------------------------------------------------------------------------------


def seconds_of(function: Callable[[], Any]) -> float:
    """Return the seconds of the processor that one call takes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def peer_seconds(repetitions: int = 3) -> float:
    """Return the least that dp_accounting takes for epsilon of one run of 10,000 steps."""

    def epsilon() -> float:
        step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
        accountant = PLDAccountant()
        accountant.compose(dp_event.SelfComposedDpEvent(step, 10_000))
        return accountant.get_epsilon(DELTA)

    return min(seconds_of(epsilon) for _ in range(repetitions))


def load_everything() -> None:
    """Import what a first plan would import, so that its time is that of the plan."""
    for name in dir(skdptune):
        getattr(skdptune, name)


def measure(search: str, estimator: str, epsilon: float, compare: bool) -> dict[str, Any]:
    """Return the times of one search's plans, its total, and the peer's time."""
    first, second = (default_search(search, estimator, epsilon) for _ in range(2))
    load_everything()
    found: list[Any] = []

    def plan(search: Any) -> None:
        found.append(search.plan(N_SAMPLES, N_FEATURES, compare=compare))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cold, warm = seconds_of(lambda: plan(first)), seconds_of(lambda: plan(second))
    return {
        "search": search,
        "estimator": estimator,
        "compare": compare,
        "epsilon": found[0].row.epsilon,
        "cold": cold,
        "warm": warm,
        "peer": peer_seconds(),
    }


def main() -> None:
    """Measure one search in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("search", choices=SEARCHES)
    parser.add_argument("estimator", choices=ESTIMATORS)
    parser.add_argument("--compare", action="store_true", help="with alternatives")
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    print(json.dumps(measure(options.search, options.estimator, options.epsilon, options.compare)))


if __name__ == "__main__":
    main()
