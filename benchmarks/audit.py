"""Audits of every estimator and search, as they are and with faults planted in them.

    python benchmarks/audit.py [--trials 2000] [--only NAME ...] [--no-faults] [--seed 0]

Printed is, for each, the claimed epsilon, the lower bound that counts give whatever the estimator
does, the one that follows if the statistic is normal, the power (noise of at most this factor
would have been found), and the seconds that the audit took. Then which planted faults are found:

less noise       all noise 30 % too small: the estimator has the budget of noise 0.7 times its own,
                 and claims its own
unclipped        a record whose influence is not limited: it counts three times
free scaler      scikit-learn's StandardScaler before the estimator, which nobody pays for
unpaid score     the exact score on the training records is published with the model

A number is that of the fits after which bets found it, whatever the statistic is; "normal" means
that it is found if the statistic is normal, which the fits do not contradict; "no" that it is not
found. Nets, and searches, are fitted a tenth, and a fourth, as often.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdptune.accounting import PrivacyProfile
from skdptune.audit import Canary, audit_epsilon, worst_canary
from skdptune.base import privacy_of
from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
)
from skdptune.model_selection import (
    AdaptiveTrials,
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
)
from skdptune.preprocessing import DPMinMaxScaler, DPStandardScaler

LESS_NOISE, COPIES = 0.7, 3
FAULTS = ("less noise", "unclipped", "free scaler", "unpaid score")
X = np.zeros((50, 2))
CLASSIFIER = {"classes": [0, 1], "data_norm": 1.0, "fit_intercept": False, "epsilon": 8.0}
ONE_STEP = {"epochs": 1, "batch_size": 50, "learning_rate": 1.0}
STEPS = {"epochs": 20}
REGRESSION = {"data_norm": 1.0, "target_bound": 1.0, "fit_intercept": False, "epsilon": 8.0}
BOOSTING = {"bounds": (0.0, 1.0), "max_bins": 2, "max_rounds": 1, "epsilon": 8.0}
RESPONSES = ("predict", "predict_proba", "decision_function", "classes_", "privacy_")
# By name: what makes the estimator, and for how many fits in place of one it stands.
Subject = tuple[Callable[[], Any], float]


class ShowsScore(BaseEstimator):
    """Publishes the exact score on the training records, and claims nothing for it."""

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None) -> ShowsScore:
        """Fit the estimator, and score it on what it was fitted to."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.score_ = float(self.estimator_.score(X, y))
        return self

    def __getattr__(self, name: str) -> Any:
        """Respond as the estimator does."""
        if name in RESPONSES and "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        raise AttributeError(name)


def linear_models() -> dict[str, Subject]:
    """Return classifiers and regressions by name."""
    found: dict[str, Subject] = {}
    for kind in (DPLinearSVC, DPLogisticRegression):
        for solver in ("objective", "output", "psgd", "sgd", "adam", "preconditioned"):
            settings = CLASSIFIER | ({"C": 0.01} if solver in ("objective", "output") else {})
            # Gradients are clipped, not rows: the logistic loss is steep enough for longer rows.
            settings |= ONE_STEP | {"data_norm": None} if solver in ("sgd", "adam") else {}
            settings |= STEPS if solver == "preconditioned" else {}
            found[f"{kind.__name__}, {solver}"] = (
                lambda kind=kind, solver=solver, more=settings: kind(solver=solver, **more),
                1.0,
            )
    kinds = (DPRidge, AdaSSPLinearRegression, OutputPerturbationLinearRegression)
    kinds += (OPSLinearRegression, PTRLinearRegression, AdaOPSLinearRegression)
    for kind in kinds:
        # With little regularization, bounds that are released first err on the safe side by much.
        strong = kind not in (DPRidge, AdaSSPLinearRegression, PTRLinearRegression)
        more = {"alpha": 1e5} if strong else {}
        more |= {"max_leverage": 0.005} if kind is PTRLinearRegression else {}
        found[kind.__name__] = (lambda kind=kind, more=more: kind(**REGRESSION | more), 1.0)
    return found


def other_models() -> dict[str, Subject]:
    """Return scalers and boosting by name."""
    return {
        "DPStandardScaler": (lambda: DPStandardScaler(8.0, bounds=(-1.0, 1.0)), 1.0),
        "DPMinMaxScaler": (lambda: DPMinMaxScaler(8.0, bounds=(-1.0, 1.0)), 1.0),
        "DPExplainableBoostingClassifier": (
            lambda: DPExplainableBoostingClassifier(classes=[0, 1], **BOOSTING),
            0.5,
        ),
        "DPExplainableBoostingRegressor": (
            lambda: DPExplainableBoostingRegressor(target_bound=1.0, **BOOSTING),
            0.5,
        ),
    }


def searches() -> dict[str, Subject]:
    """Return searches by name."""
    # A model of which one record shows all that it may.
    model = DPLinearSVC(solver="output", C=0.01, **CLASSIFIER | {"epsilon": 1.0})
    space = {"C": [0.01, 0.02]}
    kinds: dict[str, Any] = {
        "DPGridSearchCV": DPGridSearchCV,
        "DPRandomSearchCV": DPRandomSearchCV,
        "DoublingThresholdSearchCV": DoublingThresholdSearchCV,
    }
    if find_spec("optuna"):
        kinds["DPAdaptiveSearchCV"] = lambda *args, **more: DPAdaptiveSearchCV(
            *args, n_trials=3, strategy=AdaptiveTrials(sampler="random"), **more
        )
    return {
        name: (lambda kind=kind: kind(model, space, epsilon=8.0, delta=1e-5), 0.25)
        for name, kind in kinds.items()
    }


def nets() -> dict[str, Subject]:
    """Return nets by name, if there are any."""
    if not all(map(find_spec, ("torch", "skorch", "opacus"))):
        return {}
    from torch.optim import SGD

    from skdptune.neural_network import DPNeuralNetBinaryClassifier, DPNeuralNetRegressor

    settings = {"epsilon": 8.0, "max_epochs": 1, "batch_size": 50}
    return {
        "DPNeuralNetBinaryClassifier": (
            lambda: DPNeuralNetBinaryClassifier(_layer, optimizer=SGD, classes=[0, 1], **settings),
            0.1,
        ),
        "DPNeuralNetRegressor": (
            lambda: DPNeuralNetRegressor(_layer, optimizer=SGD, **settings),
            0.1,
        ),
    }


def _layer() -> Any:
    import torch

    # Weights that are drawn hide the record as well.
    layer = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(layer.weight)
    return layer


# Faults -------------------------------------------------------------------------------------


def faults(estimator: Any, canary: Canary, claim: Any) -> Iterator[tuple[str, Any, Canary]]:
    """Iterate over faulty estimators, on data that show the fault."""
    louder = clone(estimator).set_params(epsilon=with_less_noise(claim))
    yield "less noise", louder, canary
    copies = COPIES - 1
    more = {"X_with": np.concatenate([canary.X_with, np.repeat(canary.X_with[-1:], copies, 0)])}
    if canary.y_with is not None:
        more["y_with"] = np.append(canary.y_with, np.repeat(canary.y_with[-1:], copies))
    yield "unclipped", estimator, replace(canary, **more)
    yield "free scaler", make_pipeline(StandardScaler(), clone(estimator)), canary
    # Scalers have no score.
    if canary.y_with is not None:
        yield "unpaid score", ShowsScore(clone(estimator)), canary


def with_less_noise(report: Any) -> float:
    """Return the epsilon of this factor less noise than that of a report."""
    if report.delta == 0.0:
        return float(report.epsilon) / LESS_NOISE
    low, high = 0.0, 20.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        is_less = PrivacyProfile.gaussian(middle).epsilon(report.delta) < report.epsilon
        low, high = (middle, high) if is_less else (low, middle)
    return PrivacyProfile.gaussian(high / LESS_NOISE).epsilon(report.delta)


def finding(faulty: Any, y: Any, **settings: Any) -> str:
    """Return after how many fits a fault is found, or how else."""
    result = audit_epsilon(faulty, X, y, method="sequential", **settings)
    if result.is_refuted:
        return str(result.n_trials)
    if settings["delta"] == 0.0:
        return "no"
    result = audit_epsilon(faulty, X, y, method="gaussian", **settings)
    return "normal" if result.is_refuted else "no"


def audited(name: str, make: Callable[[], Any], trials: int, seed: int, plants: bool) -> str:
    """Return a line of the table."""
    estimator = make()
    y = None if "Scaler" in name else np.zeros(len(X), dtype=int)
    canary = worst_canary(estimator, X, y)
    began = time.perf_counter()
    result = audit_epsilon(estimator, X, y, canary=canary, n_trials=trials, random_state=seed)
    seconds = time.perf_counter() - began
    normal = "–" if result.gaussian is None else f"{result.gaussian.epsilon_lower:.2f}"
    if result.gaussian is not None and not result.gaussian.is_plausible:
        normal = f"({normal})"
    factor = result.power.noise_factor
    row = [
        f"{result.claimed_epsilon:.2f}",
        f"{result.epsilon_lower:.2f}{'!' if result.is_refuted else ''}",
        normal,
        "–" if factor is None else f"{factor:.2f}",
        f"{seconds:.0f}",
    ]
    found = {}
    if plants:
        report = privacy_of(canary.fit(estimator, True, seed), n_samples=len(canary.X_with))
        for fault, faulty, data in faults(estimator, canary, report):
            found[fault] = finding(
                faulty,
                y,
                canary=data,
                claim=report.profile,
                delta=report.delta,
                n_trials=trials,
                random_state=seed + 1,
            )
    row += [found.get(fault, "–") for fault in FAULTS]
    return f"| {name} | {trials} | " + " | ".join(row) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["what", "fits", "claimed", "at least", "if normal", "power", "seconds", *FAULTS]
    print("| " + " | ".join(heads) + " |")
    print("|" + len(heads) * "---|")
    for name, (make, share) in (other_models() | linear_models() | nets() | searches()).items():
        if options.only and not any(word in name for word in options.only):
            continue
        trials = max(int(share * options.trials), 40)
        print(audited(name, make, trials, options.seed, not options.no_faults), flush=True)


if __name__ == "__main__":
    main()
