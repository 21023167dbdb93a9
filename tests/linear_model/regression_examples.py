"""Data and classes for the tests of the private linear regressions."""

import numpy as np
import pytest

from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
)

KINDS = [
    PTRLinearRegression,
    OPSLinearRegression,
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPRidge,
    OutputPerturbationLinearRegression,
]
DELTA = 1e-5
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(4000, 3))
Y = X @ [0.8, -0.5, 0.2] + 0.3 + 0.05 * rng.normal(size=4000)


def name_of(kind):
    return kind.__name__


every_kind = pytest.mark.parametrize("kind", KINDS, ids=name_of)
