"""Audits by a single fit that many canaries are in or not, each by a coin of its own."""

from skdptune.audit._one_run._one_run_audit import one_run_audit
from skdptune.audit._one_run._result import OneRunResult

__all__ = ["OneRunResult", "one_run_audit"]
