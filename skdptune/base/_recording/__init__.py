"""Fits of private estimators record themselves in the ledger that is in use."""

from skdptune.base._recording._carrying import carry_settings
from skdptune.base._recording._charges import Charge, charge_of_fit
from skdptune.base._recording._hooks import (
    announce_search,
    is_paid,
    ledger_for,
    record_fits,
    recorded_together,
    watch,
)
from skdptune.base._recording._payments import paid_for
from skdptune.base._recording._refits import PrivacyWarning, count_fit, expected_refits

__all__ = [
    "Charge",
    "PrivacyWarning",
    "carry_settings",
    "charge_of_fit",
    "announce_search",
    "expected_refits",
    "is_paid",
    "ledger_for",
    "count_fit",
    "paid_for",
    "record_fits",
    "recorded_together",
    "watch",
]
