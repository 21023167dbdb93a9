"""Audits: lower bounds on epsilon from fits on neighbouring data, compared with the claim."""

from skdptune.audit._audit import audit_epsilon
from skdptune.audit._canaries import Canary, worst_canary
from skdptune.audit._one_run_audit import one_run_audit
from skdptune.audit._result import AuditResult, OneRunResult

__all__ = [
    "AuditResult",
    "Canary",
    "OneRunResult",
    "audit_epsilon",
    "one_run_audit",
    "worst_canary",
]
