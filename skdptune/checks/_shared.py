"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.checks._check import check_plan
