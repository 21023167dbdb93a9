"""Costs about replacing a record and about adding one are never added up."""

from __future__ import annotations

import itertools

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import ADD_OR_REMOVE, REPLACE, ZERO_OUT, LedgerError, common_relation

PURE = PrivacyProfile.pure(0.1)
WORDS = {"added": ADD_OR_REMOVE, "at its place": ZERO_OUT, "replaced": REPLACE}


def spend(ledger, relation):
    with ledger.reserve(PURE, name="a fit", neighbouring=relation):
        pass


@pytest.mark.parametrize("kinds", list(itertools.product(WORDS, WORDS)), ids="-".join)
def test_first_reservation_settles_the_neighbours(on_disk, kinds):
    """Theorem F11."""
    first, second = (WORDS[kind] for kind in kinds)
    spend(on_disk, first)
    if (first == REPLACE) == (second == REPLACE):
        spend(on_disk, second)
        assert [record.neighbouring for record in on_disk.history()] == [first, second]
    else:
        with pytest.raises(LedgerError, match="Such costs must not be added up"):
            on_disk.reserve(PURE, name="another", neighbouring=second)
        assert len(on_disk.history()) == 1


def test_neighbours_are_settled_for_all_who_use_the_ledger(on_disk, path):
    on_disk.reserve(PURE, name="a fit", neighbouring=REPLACE).cancel("nothing was read")
    again = type(on_disk)(path, "patients")
    with pytest.raises(LedgerError, match="neighbours that replace one"):
        again.reserve(PURE, name="another")


def test_by_default_a_record_is_added(ledger):
    spend(ledger, ADD_OR_REMOVE)
    ledger.reserve(PURE, name="another")
    assert {record.neighbouring for record in ledger.history()} == {ADD_OR_REMOVE}


@pytest.mark.parametrize("relation", ["one user", "", None, 3], ids=repr)
def test_other_relations_are_refused(ledger, relation):
    with pytest.raises(ValueError, match="neighbouring must be one of"):
        ledger.reserve(PURE, name="a fit", neighbouring=relation)
    assert ledger.history() == []


def test_common_relation_is_the_weakest():
    """Theorem F11."""
    assert common_relation([]) == common_relation([ADD_OR_REMOVE]) == ADD_OR_REMOVE
    assert common_relation([ZERO_OUT, ADD_OR_REMOVE]) == ZERO_OUT
    assert common_relation([REPLACE]) == REPLACE
    assert common_relation([REPLACE, ADD_OR_REMOVE]) is None
    assert common_relation([REPLACE, ZERO_OUT]) is None
