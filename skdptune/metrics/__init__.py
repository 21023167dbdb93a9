"""Scorers with a known sensitivity: means of bounded values, one per record.

Areas under curves, R², F scores and the like are not means over records. One record can change
them by 1 where a class has few records, or by any amount, and so they are refused, with what to
use instead.
"""

from skdptune.metrics._bounded import BoundedScorer, make_bounded_scorer
from skdptune.metrics._scorers import (
    accuracy,
    balanced_accuracy,
    get_bounded_scorer,
    neg_absolute_error,
    neg_brier_score,
    neg_log_loss,
    neg_squared_error,
)

__all__ = [
    "BoundedScorer",
    "accuracy",
    "balanced_accuracy",
    "get_bounded_scorer",
    "make_bounded_scorer",
    "neg_absolute_error",
    "neg_brier_score",
    "neg_log_loss",
    "neg_squared_error",
]
