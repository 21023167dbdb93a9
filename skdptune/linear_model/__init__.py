"""Linear models with differential privacy: classifiers and ridge regressions."""

from skdptune.linear_model._classifiers import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._regression import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
    SufficientStatistics,
)

__all__ = [
    "AdaOPSLinearRegression",
    "AdaSSPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPRidge",
    "OPSLinearRegression",
    "OutputPerturbationLinearRegression",
    "PTRLinearRegression",
    "SufficientStatistics",
]
