"""Private linear models."""

from skdptune.linear_model._classifiers import DPLinearSVC, DPLogisticRegression

__all__ = ["DPLinearSVC", "DPLogisticRegression"]
