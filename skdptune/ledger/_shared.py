"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.ledger._books import (
    ADD_OR_REMOVE,
    BY_PERSON,
    PERSON,
    PERSON_ZEROED,
    RELATIONS,
    REPLACE,
    ZERO_OUT,
    common_relation,
)
from skdptune.ledger._context import (
    LedgerSettings,
    checked_ledger,
    prepare,
    process_identity,
    settings_in_force,
    settings_meant,
)
from skdptune.ledger._report import shown_below
