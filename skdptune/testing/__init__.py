"""Checks of private estimators, for those who write their own."""

from skdptune.testing._check_private_estimator import check_private_estimator

__all__ = ["check_private_estimator"]
