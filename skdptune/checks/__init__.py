"""Checks that teach: what an estimator or a search would leak or lose, before it meets data."""

from skdptune.checks._check import check
from skdptune.checks._report import CheckReport, Finding

# isort: split
# For the other folders of this package.
from skdptune.checks._check import check_plan as check_plan
from skdptune.checks._report import CODES as CODES

__all__ = ["CheckReport", "Finding", "check"]
