"""Scorers with a known sensitivity: averages of bounded values, one per record.

Areas under curves, R², F scores and similar scores are not averages over records. One record can
change them by 1 if a class has few records, or by any amount. Therefore they are refused, and the
error suggests an alternative.
"""

from skdptune.metrics._scorers import (
    BoundedScorer,
    accuracy,
    balanced_accuracy,
    get_bounded_scorer,
    make_bounded_scorer,
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
