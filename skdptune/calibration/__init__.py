"""Thresholds, curves and intervals of private models, within the budget of the fit."""

from skdptune.calibration._conformal import PrivateConformalClassifier, PrivateConformalRegressor
from skdptune.calibration._curves import PrivateScoreCurves
from skdptune.calibration._threshold import PrivateThreshold

__all__ = [
    "PrivateConformalClassifier",
    "PrivateConformalRegressor",
    "PrivateScoreCurves",
    "PrivateThreshold",
]
