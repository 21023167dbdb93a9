"""Fits of private estimators record themselves in the ledger that is in use."""

from skdptune.base._recording._carrying import carry_settings
from skdptune.base._recording._charges import Charge, charge_of_fit
from skdptune.base._recording._hooks import (
    is_paid,
    ledger_for,
    record_fits,
    recorded_together,
    watch,
)
from skdptune.base._recording._payments import paid_for
from skdptune.base._recording._refits import PrivacyWarning, warn_of_refit

__all__ = [
    "Charge",
    "PrivacyWarning",
    "carry_settings",
    "charge_of_fit",
    "is_paid",
    "ledger_for",
    "paid_for",
    "record_fits",
    "recorded_together",
    "warn_of_refit",
    "watch",
]
