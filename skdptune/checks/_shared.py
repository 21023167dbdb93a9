"""What other folders use of this one, beside its public names."""

from skdptune.checks._check import check_plan

__all__ = [
    "check_plan",
]
