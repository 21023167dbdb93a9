"""One of each public estimator and search, for tests that none may dodge."""

from __future__ import annotations

from importlib.util import find_spec

from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    NoisyStatisticsRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
)
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
)
from skdptune.preprocessing import (
    BoundedScaler,
    DPMinMaxScaler,
    DPStandardScaler,
    RowNormClipper,
    TableEncoder,
)
from tests.testing import estimators as toys

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
    NoisyStatisticsRidge(target_bound=1.0),
    OPSLinearRegression(target_bound=1.0),
    OutputPerturbationLinearRegression(target_bound=1.0),
    PTRLinearRegression(target_bound=1.0),
    DPExplainableBoostingClassifier(bounds=BOUNDS, max_rounds=5, max_bins=8),
    DPExplainableBoostingRegressor(bounds=BOUNDS, target_bound=1.0, max_rounds=5, max_bins=8),
    BoundedScaler(bounds=BOUNDS),
    DPMinMaxScaler(bounds=BOUNDS),
    DPStandardScaler(bounds=BOUNDS),
    DPStandardScaler(delta=0.0, bounds=BOUNDS),
    RowNormClipper(),
    TableEncoder({f"x{place}": BOUNDS for place in range(3)}),
]
CANDIDATES = {"clip": [0.1, 1.0]}
SEARCHES = [
    DPGridSearchCV(toys.Right(), CANDIDATES, n_partitions=2, epsilon=1.0),
    DPRandomSearchCV(
        toys.Right(), CANDIDATES, n_iter=2, n_iter_distribution="geometric", epsilon=1.0
    ),
    DoublingThresholdSearchCV(toys.Right(), CANDIDATES, n_partitions=2, epsilon=1.0),
]
if find_spec("optuna"):
    SEARCHES.append(DPAdaptiveSearchCV(toys.Right(), CANDIDATES, n_trials=2, epsilon=1.0))
