"""The lifetime budget of a data set: what was released from it, and what may still be released."""

from skdptune.ledger._context import config_context, get_config, set_config
from skdptune.ledger._ledger import PrivacyLedger, Reservation
from skdptune.ledger._report import LedgerPlan, LedgerRecord, LedgerReport
from skdptune.ledger._storage import LedgerError

__all__ = [
    "LedgerError",
    "LedgerPlan",
    "LedgerRecord",
    "LedgerReport",
    "PrivacyLedger",
    "Reservation",
    "config_context",
    "get_config",
    "set_config",
]
