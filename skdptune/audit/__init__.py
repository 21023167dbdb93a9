"""Audits: fits on neighbouring data, and what they show of one record beside what is claimed."""

from skdptune.audit._canaries import Canary, worst_canary
from skdptune.audit._one_run import OneRunResult, one_run_audit

__all__ = ["Canary", "OneRunResult", "one_run_audit", "worst_canary"]
