"""Ledgers of other versions are refused."""

from __future__ import annotations

import pytest

from skdptune.ledger import LedgerError, PrivacyLedger


def set_version(ledger, version):
    statement = "PRAGMA user_version = "
    if "://" in ledger.path:
        statement = "UPDATE skdptune.ledger SET version = "
    with ledger._storage.transaction(write=True) as transaction:
        transaction._execute(f"{statement}{version}", {})


@pytest.mark.parametrize("version", [0, 3, 5])
def test_another_version_is_refused(shared, place, version):
    set_version(shared, version)
    for use in (lambda: PrivacyLedger(place, "patients"), shared.history):
        with pytest.raises(LedgerError, match=f"of version 4; got version {version} at"):
            use()
