"""Scores of private classifiers: curves, areas, confusion and thresholds, at a small budget.

Everything is computed from one noisy histogram of scores by label, which is released with the fit
and paid for within its budget.
"""

from skdptune.calibration._curves import PrivateScoreCurves
from skdptune.calibration._threshold import PrivateThreshold

__all__ = ["PrivateScoreCurves", "PrivateThreshold"]
