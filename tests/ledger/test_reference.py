"""Copies and pickles of a ledger draw from the same budget."""

from __future__ import annotations

import copy
import pickle

import pytest
from sklearn.base import BaseEstimator, clone

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger, _reference
from tests.ledger.children import spend_in_processes

PURE = PrivacyProfile.pure(0.5)


class Estimator(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger


def test_copies_and_clones_are_the_ledger_itself(ledger):
    assert copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    assert clone(Estimator(ledger)).ledger is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger


def test_pickle_is_a_reference(shared):
    again = pickle.loads(pickle.dumps(shared))
    assert again == shared and again is not shared
    again.reserve(PURE, name="a fit")
    assert len(shared.history()) == 1
    assert isinstance(again, PrivacyLedger)


def test_pickle_in_memory_is_the_ledger_itself_within_its_process(ledger, monkeypatch):
    pickled = pickle.dumps(ledger)
    assert pickle.loads(pickled) is ledger
    # As it is in another process.
    monkeypatch.setattr(_reference, "_IN_MEMORY", {})
    # What refers to it can be loaded, but not spent from.
    again = pickle.loads(pickled)
    assert again == ledger and again.dataset == "patients"
    for use in (again.history, again.remaining, lambda: again.reserve(PURE, name="a fit")):
        with pytest.raises(LedgerError, match="must be used in the process that made it"):
            use()
    assert pickle.loads(pickle.dumps(again)) == ledger


def test_other_processes_spend_from_the_same_budget(shared):
    """Theorem H3."""
    assert spend_in_processes(shared, 2, 2, PURE) == [2, 2]
    assert [record.status for record in shared.history()] == ["confirmed"] * 4
    assert len({record.details["process"] for record in shared.history()}) == 2


def test_ledgers_of_other_names_differ(ledger):
    assert ledger != PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    assert ledger != "patients"
