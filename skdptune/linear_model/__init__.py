"""Private linear models."""

from skdptune.linear_model._classifiers import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._noisy_statistics import AdaSSPLinearRegression, NoisyStatisticsRidge
from skdptune.linear_model._ops_regression import AdaOPSLinearRegression, OPSLinearRegression
from skdptune.linear_model._output_regression import OutputPerturbationLinearRegression
from skdptune.linear_model._ptr_regression import PTRLinearRegression
from skdptune.linear_model._sufficient_statistics import SufficientStatistics

__all__ = [
    "AdaOPSLinearRegression",
    "AdaSSPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "NoisyStatisticsRidge",
    "OPSLinearRegression",
    "OutputPerturbationLinearRegression",
    "PTRLinearRegression",
    "SufficientStatistics",
]
