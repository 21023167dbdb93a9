"""All public estimators and searches: their places, examples of each, and installed extras.

`PUBLIC` is searched for and not listed by hand, so a test that compares with it covers new
classes.
"""

from __future__ import annotations

import importlib
import inspect
from importlib.util import find_spec
from typing import Any

from skdptune.calibration import (
    PrivateConformalClassifier,
    PrivateConformalRegressor,
    PrivateScoreCurves,
    PrivateThreshold,
)
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
    NoisyMaximum,
    RandomRuns,
    ThresholdRounds,
)
from skdptune.preprocessing import (
    DPPCA,
    BoundedScaler,
    DPMinMaxScaler,
    DPStandardScaler,
    RowNormClipper,
    TableEncoder,
)
from tests.testing import estimators as toys

_OPTIONAL = ("polars", "pyarrow", "torch", "skorch", "opacus", "optuna", "moocore")
HAS = {name: find_spec(name) is not None for name in _OPTIONAL}
HAS_NETS = HAS["torch"] and HAS["skorch"] and HAS["opacus"]
HAS_OPTUNA = HAS["optuna"]
HAS_PARETO = HAS["optuna"] and HAS["moocore"]
FOLDERS = (
    *("calibration", "ensemble", "linear_model", "model_selection", "preprocessing"),
    *(["neural_network"] if HAS_NETS else []),
)


def found_in(folder: str) -> dict[str, Any]:
    """Return the public estimators and searches of a folder by their names."""
    module = importlib.import_module(f"skdptune.{folder}")
    things = {name: getattr(module, name) for name in module.__all__}
    return {
        name: thing
        for name, thing in things.items()
        if inspect.isclass(thing) and hasattr(thing, "fit") and hasattr(thing, "get_params")
    }


# From the name of each to its folder; without torch no nets.
PUBLIC = {name: folder for folder in FOLDERS for name in found_in(folder)}

BOUNDS = (-1.0, 1.0)
SOLVERS = {
    "objective": {"data_norm": 2.0},
    "output": {},
    "psgd": {"epochs": 2},
    "sgd": {"epochs": 2, "batch_size": 0.2},
    "adam": {"epochs": 2, "batch_size": 0.2, "epsilon": None, "noise_multiplier": 2.0},
}
ESTIMATORS = [
    *(DPLogisticRegression(solver=solver, **more) for solver, more in SOLVERS.items()),
    DPLinearSVC(solver="output", delta=0.0),
    AdaOPSLinearRegression(target_bound=1.0),
    AdaSSPLinearRegression(target_bound=1.0),
    DPRidge(target_bound=1.0),
    OPSLinearRegression(target_bound=1.0),
    OutputPerturbationLinearRegression(target_bound=1.0),
    PTRLinearRegression(target_bound=1.0),
    DPExplainableBoostingClassifier(bounds=BOUNDS, max_rounds=5, max_bins=8),
    DPExplainableBoostingRegressor(bounds=BOUNDS, target_bound=1.0, max_rounds=5, max_bins=8),
    PrivateScoreCurves(DPLogisticRegression(), epsilon=1.0, insist=True),
    PrivateThreshold(DPLogisticRegression(), epsilon=1.0, at_least=0.5, insist=True),
    PrivateConformalClassifier(DPLogisticRegression(solver="output", data_norm=2.0), epsilon=2.0),
    PrivateConformalRegressor(AdaSSPLinearRegression(target_bound=1.0), coverage=0.5),
    BoundedScaler(bounds=BOUNDS),
    DPMinMaxScaler(bounds=BOUNDS),
    DPPCA(bounds=BOUNDS),
    DPStandardScaler(bounds=BOUNDS),
    DPStandardScaler(delta=0.0, bounds=BOUNDS),
    RowNormClipper(),
    TableEncoder({f"x{place}": BOUNDS for place in range(3)}),
]
CANDIDATES = {"clip": [0.1, 1.0]}
SEARCHES = [
    DPGridSearchCV(toys.Right(), CANDIDATES, epsilon=1.0, strategy=NoisyMaximum(n_partitions=2)),
    DPRandomSearchCV(
        toys.Right(),
        CANDIDATES,
        n_iter=2,
        epsilon=1.0,
        strategy=RandomRuns(n_iter_distribution="geometric"),
    ),
    DoublingThresholdSearchCV(
        toys.Right(), CANDIDATES, epsilon=1.0, strategy=ThresholdRounds(n_partitions=2)
    ),
]
if HAS_OPTUNA:
    adaptive = DPAdaptiveSearchCV(toys.Right(), CANDIDATES, n_trials=2, epsilon=1.0)
    SEARCHES.append(adaptive.set_params(strategy=AdaptiveTrials()))


def nets() -> list[Any]:
    """Return one of each net, of few steps; none without torch."""
    if not HAS_NETS:
        return []
    from skdptune.neural_network import (
        MLP,
        DPNeuralNetBinaryClassifier,
        DPNeuralNetClassifier,
        DPNeuralNetRegressor,
        LogisticHead,
    )

    short = {"max_epochs": 1, "batch_size": 0.3}
    return [
        DPNeuralNetBinaryClassifier(LogisticHead, **short),
        DPNeuralNetClassifier(LogisticHead, **short),
        DPNeuralNetRegressor(MLP, **short),
    ]
