"""Theorem H5: releases on disjoint parts of a data set do not add up."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest

from skdptune import DPLogisticRegression
from skdptune.accounting import BudgetExceededError, PrivacyProfile, PrivacyReport
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.ledger._books import State, Ways
from tests.accounting.budgets.interactions import LEAKY, Interaction, chosen_by

PURE = PrivacyProfile.pure(0.5)
REPLACE = "replace one of a public number of records"
ZERO_OUT = (
    "add or remove one record's contribution at its place, the public number of records unchanged"
)
SITES = ("north", "south", "west")
TERMS = {"epsilon": 1.0, "delta": 1e-5, "parts": SITES, "parts_by": "the column 'site'"}


@pytest.fixture
def sites(place):
    return PrivacyLedger.create(place, "patients", **TERMS)


def spend(ledger, count=1, profile=PURE):
    for _ in range(count):
        with ledger.reserve(profile, name="a fit"):
            pass


def test_each_part_has_the_whole_budget(sites):
    for name in SITES:
        spend(sites.part(name), 2)
        with pytest.raises(BudgetExceededError):
            sites.part(name).reserve(PURE, name="one more")
    with pytest.raises(BudgetExceededError):
        sites.reserve(PrivacyProfile.pure(0.1), name="on all")
    assert sites.used() == pytest.approx(1.0, abs=1e-4)
    assert sites.spent(0.0) == pytest.approx(1.0, abs=1e-4)
    assert len(sites.history()) == 6


def test_a_release_on_all_data_is_charged_to_every_part(sites):
    spend(sites)
    spend(sites.part("north"))
    assert sites.part("north").remaining(0.0) < 1e-4
    assert sites.part("south").remaining(0.0) == pytest.approx(0.5, abs=1e-4)
    assert sites.part("south", "west").used() == pytest.approx(0.5, abs=1e-4)
    assert sites.remaining(0.0) < 1e-4
    assert sites.part("south").spent(0.0) == pytest.approx(0.5, abs=1e-4)
    assert sites.part("north").spent(0.0) == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(BudgetExceededError):
        sites.part("north", "west").reserve(PURE, name="of two parts")
    spend(sites.part("south", "west"))
    assert sites.part("west").remaining(0.0) < 1e-4


def test_a_cancelled_release_is_given_back_to_its_parts(sites):
    reservation = sites.part("north").reserve(PrivacyProfile.pure(1.0), name="all of it")
    assert sites.part("north").used() == pytest.approx(1.0, abs=1e-4)
    reservation.cancel("no rows")
    spend(sites.part("north"), 2)
    assert sites.part("south").used() == 0.0


def test_it_goes_on_when_opened_anew_and_in_pickles(sites, place):
    spend(sites.part("north"))
    again = PrivacyLedger(place, "patients")
    assert again.parts == SITES and again.parts_by == TERMS["parts_by"]
    one = pickle.loads(pickle.dumps(again.part("north")))
    assert one == sites.part("north") and one != again and one != again.part("south")
    spend(one)
    with pytest.raises(BudgetExceededError):
        sites.part("north").reserve(PURE, name="one more")
    assert [record.parts for record in again.history()] == [("north",), ("north",)]
    assert [row["parts"] for row in again.to_dict()["records"]] == [["north"], ["north"]]
    assert again.usage()["used"] == pytest.approx([0.5, 0.5, 0.5, 1.0, 1.0, 1.0], abs=1e-4)


def test_in_memory_and_with_estimators():
    ledger = PrivacyLedger(":memory:", "patients", **TERMS | {"epsilon": 3.0})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] > 0
    for name in SITES:
        model = DPLogisticRegression(epsilon=2.5, delta=1e-5, ledger=ledger.part(name))
        model.fit(X, y)
        assert ledger.part(name).used() > 0.5
    with ledger.part("west"), pytest.raises(BudgetExceededError):
        DPLogisticRegression(epsilon=2.5, delta=1e-5).fit(X, y)
    copy = pickle.loads(pickle.dumps(ledger.part("west")))
    assert copy == ledger.part("west")
    text = str(ledger.report())
    assert "part west" in text and "in the part that has least left" in text
    assert str(ledger.part("west").report()).startswith("PrivacyLedger patients, west: ")
    assert "by the column 'site'" in str(ledger.statement())


@pytest.mark.parametrize("names", [("east",), (), ("north", "north"), ("North",)])
def test_unknown_parts_are_refused(sites, names):
    with pytest.raises(LedgerError, match=r"names must be different parts of 'patients'.*Nothing"):
        sites.part(*names)
    assert sites.history() == [] and sites.used() == 0.0


def test_a_ledger_without_parts_has_none(ledger):
    assert ledger.parts == () and ledger.parts_by == ""
    with pytest.raises(LedgerError, match="none, which PrivacyLedger.create registers"):
        ledger.part("north")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": ["a", "b", "a"]}, "parts must be disjoint"),
        ({"parts": ["a", "A "]}, "parts must be disjoint"),
        ({"parts": "north"}, "parts must be a sequence of str"),
        ({"parts_by": None}, "parts_by must be a str"),
        # A rule is a public text: no function that may look at other rows.
        ({"parts_by": lambda rows: rows["site"].mode()}, "parts_by must be a str"),
    ],
)
def test_bad_parts_are_refused(path, changes, words):
    with pytest.raises((TypeError, ValueError), match=words):
        PrivacyLedger.create(path, "patients", **TERMS | changes)


def test_other_parts_than_registered_are_refused(sites, place):
    with pytest.raises(LedgerError, match="parts must be"):
        PrivacyLedger(place, "patients", parts=["north"])


def test_a_replaced_record_may_change_its_part(sites):
    for ledger in (sites, sites.part("north")):
        with pytest.raises(LedgerError, match="a record that is replaced may change its part"):
            ledger.reserve(PURE, name="a fit", neighbouring=REPLACE)
    assert sites.history() == [] and sites.used() == 0.0
    sites.part("north").reserve(PURE, name="a fit", neighbouring=ZERO_OUT)


@pytest.mark.parametrize("parts", [["north", "south"], ["north", "south", "west", "east"]])
def test_parts_stay_as_registered(sites, place, parts):
    spend(sites.part("north"))
    with pytest.raises(LedgerError, match="parts must be"):
        PrivacyLedger(place, "patients", parts=parts)
    assert PrivacyLedger(place, "patients").parts == SITES
    assert sites.part("north").used() == pytest.approx(0.5, abs=1e-4)


def test_plans_record_nothing(sites):
    plan = sites.part("north").plan(PURE, count=3)
    assert (plan.n_more, plan.fits) == (2.0, False)
    assert "2 more of release" in str(plan) and "3 do not. Nothing was recorded" in str(plan)
    spend(sites.part("north"))
    report = PrivacyReport(PURE, 0.0, name="mean")
    assert sites.part("north").plan(report).n_more == sites.plan(report).n_more == 1.0
    assert sites.part("south").plan(report).n_more == 2.0
    assert sites.plan(PrivacyProfile.pure(0.0)).fits
    assert len(sites.history()) == 1
    with pytest.raises(TypeError, match="release must be a PrivacyReport or a PrivacyProfile"):
        sites.plan(0.5)
    with pytest.raises(ValueError, match="count must be"):
        sites.plan(PURE, count=0)


class Parts:
    """Budgets of two parts, as interactions use a filter; a release is a profile and its parts."""

    def __init__(self, ways, state=None):
        self.ways, self.state = ways, state or State()

    def after(self, release):
        profile, parts = release
        return self.state.changed(self.ways.charges_of(profile), parts)

    def fits(self, release):
        inside = self.after(release).totals_in(release[1])
        return all(map(self.ways.admits, inside))

    def record(self, release):
        self.state = self.after(release)

    def emptied(self):
        return type(self)(self.ways)


def releases(part_of_the_record):
    """Return releases on parts and on all; what does not see the record has equal outcomes."""
    found = []
    for (pair, profile), parts in itertools.product(LEAKY[:3], [("a",), ("b",), ()]):
        seen = not parts or part_of_the_record in parts
        outcomes = pair if seen else tuple((a, a) for a, _ in pair)
        found.append((outcomes, (profile, parts)))
    return found


@pytest.mark.parametrize(("record", "seed"), [("a", 0), ("b", 1), ("neither", 2), ("a", 3)])
def test_all_outcomes_of_adaptive_interactions(record, seed, monkeypatch):
    """The next release, and the parts that it uses, follow from the outcomes so far."""
    monkeypatch.setattr("tests.accounting.budgets.interactions.DEEPEST", 5)
    epsilon, delta = 1.5, 0.03
    first = LEAKY[seed % 4][1]
    ways = Ways.settled(epsilon, delta, first, json.dumps(first.to_dict()))
    found = Interaction(Parts(ways), chosen_by(seed, 9), releases(record))
    assert found.depth >= 2
    for mirrored in (False, True):
        assert found.delta(epsilon, mirrored) <= delta * (1.0 + 1e-9) + 1e-13


def test_a_budget_for_each_release_would_break_the_bound(monkeypatch):
    """The enumeration sees records that pay twice: here parts do not pay for releases on all."""
    monkeypatch.setattr("tests.accounting.budgets.interactions.DEEPEST", 6)

    class Wrong(Parts):
        def fits(self, release):
            inside = self.after(release)
            own = [inside.totals_of[part] for part in release[1]] or [inside.totals]
            return all(map(self.ways.admits, own))

    pure = Ways.shares_alone(1.0, 0.0)
    pairs = [releases("a")[0], releases("a")[2]]
    for kind, is_broken in ((Wrong, True), (Parts, False)):
        found = Interaction(kind(pure), lambda history: len(history) % 2, pairs)
        assert (found.delta(1.0) > 1e-6) == is_broken
