"""The lifetime budget of a data set: what was released from it, and what may still be."""

from skdptune.ledger._context import config_context, get_config, set_config
from skdptune.ledger._ledger import PrivacyLedger, Reservation
from skdptune.ledger._report import LedgerRecord, LedgerReport
from skdptune.ledger._storage import LedgerError

# isort: split
# For the other folders of this package.
from skdptune.ledger._books import ADD_OR_REMOVE as ADD_OR_REMOVE
from skdptune.ledger._books import RELATIONS as RELATIONS
from skdptune.ledger._books import REPLACE as REPLACE
from skdptune.ledger._books import ZERO_OUT as ZERO_OUT
from skdptune.ledger._books import common_relation as common_relation
from skdptune.ledger._context import LedgerSettings as LedgerSettings
from skdptune.ledger._context import checked_ledger as checked_ledger
from skdptune.ledger._context import prepare as prepare
from skdptune.ledger._context import process_identity as process_identity
from skdptune.ledger._context import settings_in_force as settings_in_force
from skdptune.ledger._context import settings_meant as settings_meant
from skdptune.ledger._context import when_used as when_used
from skdptune.ledger._report import shown_below as shown_below

__all__ = [
    "LedgerError",
    "LedgerRecord",
    "LedgerReport",
    "PrivacyLedger",
    "Reservation",
    "config_context",
    "get_config",
    "set_config",
]
