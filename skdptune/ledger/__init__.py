"""The lifetime budget of a data set: what was released from it, and what may still be."""

from skdptune.ledger._ledger import PrivacyLedger
from skdptune.ledger._record import LedgerRecord
from skdptune.ledger._report import LedgerReport
from skdptune.ledger._reservation import Reservation
from skdptune.ledger._storage import LedgerError

__all__ = ["LedgerError", "LedgerRecord", "LedgerReport", "PrivacyLedger", "Reservation"]
