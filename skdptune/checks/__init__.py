"""Checks of what an estimator or a search would leak or lose, and a page about a fitted model."""

from skdptune.checks._check import check
from skdptune.checks._model_report import ModelReport, report
from skdptune.checks._report import CheckReport, Finding
from skdptune.checks._skore import SkoreCheck, skore_checks

__all__ = [
    "CheckReport",
    "Finding",
    "ModelReport",
    "SkoreCheck",
    "check",
    "report",
    "skore_checks",
]
