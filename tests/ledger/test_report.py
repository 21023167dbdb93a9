"""The report of a ledger, as text and as HTML."""

from __future__ import annotations

import re

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import shown_below

PURE = PrivacyProfile.pure(0.5)


def test_fresh_ledger_has_all_left(ledger):
    words = str(ledger.report())
    assert words == "PrivacyLedger patients: ε = 3.000 at δ = 1e-05, spent 0.000 (one record)"


def test_records_are_listed_with_their_costs(ledger, monkeypatch):
    monkeypatch.setattr("skdptune.ledger._ledger.now", lambda: "2026-01-02T03:04:05.678+00:00")
    monkeypatch.setattr("skdptune.ledger._ledger.who_records", lambda given: "ana@lab")
    with ledger.reserve(PURE, name="search", assumptions=["n is public"]):
        pass
    ledger.reserve(PURE, name="left", note="study 7")
    ledger.reserve(PURE, name="given up").cancel("no file")
    lines = str(ledger.report()).splitlines()
    assert re.fullmatch(r"PrivacyLedger patients: ε = 3\.000 at δ = 1e-05, spent .*", lines[0])
    stamp = "2026-01-02T03:04:05Z; by ana@lab"
    assert re.fullmatch(rf"├─ 1\. search \({stamp}\) +ε = 0\.500", lines[1])
    assert f"4. left ({stamp}; study 7) [not confirmed]" in lines[2]
    assert re.fullmatch(rf"└─ 5\. given up \({stamp}; no file\) +cancelled", lines[3])
    assert "33.3 % of the budget is used" in lines[4]
    assert "guarantees the whole budget" in lines[4]
    assert lines[-1] == "- n is public"


def test_only_the_latest_are_listed(ledger):
    for number in range(5):
        ledger.reserve(PrivacyProfile.pure(0.1), name=f"fit {number}")
    words = str(ledger.report(2))
    assert "3 earlier records" in words and "fit 3" in words and "fit 2" not in words
    assert "5 earlier records" in str(ledger.report(0))
    with pytest.raises(ValueError, match="n_records must be"):
        ledger.report(-1)


def test_html_is_escaped(ledger):
    ledger.reserve(PURE, name="<b>bold</b>")
    html = ledger._repr_html_()
    assert "&lt;b&gt;bold" in html and "<b>" not in html
    assert repr(ledger.report()).startswith("LedgerReport('PrivacyLedger patients', spent=0.5")


@pytest.mark.parametrize(
    ("value", "shown"), [(0.99999, "0.999"), (0.0, "0"), (1.23456e-9, "1.23e-9"), (12.3, "12.3")]
)
def test_what_is_left_is_shown_from_below(value, shown):
    assert shown_below(value) == shown
    assert float(shown) <= value
