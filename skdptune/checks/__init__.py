"""Checks that explain what an estimator or a search would leak or lose, before it sees data."""

from skdptune.checks._check import check
from skdptune.checks._report import CheckReport, Finding

__all__ = ["CheckReport", "Finding", "check"]
