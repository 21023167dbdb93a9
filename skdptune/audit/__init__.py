"""Audits: fits on neighbouring data, and what they show of one record beside what is claimed."""

from skdptune.audit._canaries import Canary, worst_canary

__all__ = ["Canary", "worst_canary"]
