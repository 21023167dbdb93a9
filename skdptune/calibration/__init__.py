"""Thresholds, curves and intervals of private models."""

from skdptune.calibration._conformal import PrivateConformalClassifier, PrivateConformalRegressor

__all__ = ["PrivateConformalClassifier", "PrivateConformalRegressor"]
