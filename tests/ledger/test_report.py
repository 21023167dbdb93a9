"""The report of a ledger, as text and as HTML."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml

from skdptune.accounting import PrivacyProfile
from skdptune.inspection import LedgerDisplay
from skdptune.ledger import LedgerError, PrivacyLedger
from tests.accounting.statement.registry import SCHEMA

PURE = PrivacyProfile.pure(0.5)
PERSON = "add or remove one person with all of their rows"


def test_fresh_ledger_has_all_left(ledger):
    words = str(ledger.report())
    assert words == "PrivacyLedger patients: ε = 3.000 at δ = 1e-05, spent 0.000 (one record)"


def test_records_are_listed_with_their_costs():
    ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5, who="ana@lab")
    with ledger.reserve(PURE, name="search", assumptions=["n is public"]):
        pass
    ledger.reserve(PURE, name="left", note="study 7")
    ledger.reserve(PURE, name="given up").cancel("no file")
    lines = str(ledger.report()).splitlines()
    assert re.fullmatch(r"PrivacyLedger patients: ε = 3\.000 at δ = 1e-05, spent .*", lines[0])
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ; by ana@lab"
    assert re.fullmatch(rf"├─ 1\. search \({stamp}\) +ε = 0\.500, 16\.7 %", lines[1])
    assert re.search(rf"2\. left \({stamp}; study 7\) \[not confirmed\]", lines[2])
    assert re.fullmatch(rf"└─ 3\. given up \({stamp}; no file\) +cancelled", lines[3])
    assert "33.3 % of the budget is used" in lines[4]
    assert "guarantees the whole budget" in lines[4]
    assert lines[-1] == "- n is public"


def test_html_is_escaped(ledger):
    ledger.reserve(PURE, name="<b>bold</b>")
    html = ledger._repr_html_()
    assert "&lt;b&gt;bold" in html and "<b>" not in html
    assert repr(ledger.report()).startswith("LedgerReport('PrivacyLedger patients', spent=0.5")


@pytest.mark.parametrize(
    ("value", "shown"), [(0.99999, "0.999"), (0.0, "0"), (1.23456e-9, "1.23e-9"), (12.3, "12.3")]
)
def test_what_is_left_is_shown_from_below(value, shown):
    usage = {name: [] for name in ("time", "event", "name", "used", "confirmed")}
    words = LedgerDisplay(usage, epsilon=20.0, delta=0.0, remaining=value).in_words
    assert words.endswith(f"a pure release of up to ε = {shown} still fits.")


# What is shown of one reservation ------------------------------------------------------------


@pytest.fixture
def record(ledger):
    ledger.reserve(PrivacyProfile.pure(0.5), name="a fit", assumptions=["n is public"])
    return ledger.history()[0]


def test_record_is_plain_json(record):
    content = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert content["name"] == "a fit"
    assert content["assumptions"] == ["n is public"]
    assert replace(record, epsilon=math.inf).to_dict()["epsilon"] == "inf"


@pytest.mark.parametrize(
    ("status", "is_spent"),
    [("reserved", True), ("read", True), ("confirmed", True), ("cancelled", False)],
)
def test_all_but_the_cancelled_is_spent(record, status, is_spent):
    """Theorem H3."""
    assert replace(record, status=status).is_spent == is_spent


# what a ledger states to auditors ------------------------------------------------------------


def test_ledger_states_its_budget_and_all_that_was_spent() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5, unit="one visit")
    for name in ("mean age", "DPGridSearchCV"):
        with ledger.reserve(PrivacyProfile.pure(0.5), name=name, assumptions=["a", name]):
            pass
    ledger.reserve(PrivacyProfile.pure(0.5), name="never", assumptions=["b"]).cancel("no file")
    statement = ledger.statement()
    assert (statement.facts.epsilon, statement.facts.delta) == (3.0, 1e-5)
    assert statement.facts.assumptions == ("a", "mean age", "DPGridSearchCV")
    assert "never" in statement.facts.tree
    assert statement.tuning.startswith("Yes, fully by DPGridS")
    assert statement.answer("unit") == "one visit"
    assert ": 2. All past and future releases" in statement.facts.other_releases


@pytest.mark.parametrize(
    ("unit", "shown"), [(None, "one person with all of their rows"), ("one visit", "one visit")]
)
def test_a_ledger_of_persons_says_so(unit: str | None, shown: str) -> None:
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    ledger = PrivacyLedger(":memory:", "visits", epsilon=3.0, delta=1e-5, unit=unit)
    assert f"({unit or 'one record'})" in str(ledger.report())
    with ledger.reserve(PrivacyProfile.pure(0.5), name="mean age", neighbouring=PERSON):
        pass
    report = ledger.report()
    assert f"({shown})" in str(report) and shown in report._repr_html_()
    assert "record" not in str(report)
    assert repr(ledger).endswith(f"unit={shown!r})")


def test_a_ledger_of_persons_opens_with_the_terms_that_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = PrivacyLedger.create(path, "visits", epsilon=3.0, delta=1e-5)
    with ledger.reserve(PrivacyProfile.pure(0.5), name="mean age", neighbouring=PERSON):
        pass
    shown = repr(PrivacyLedger(path, "visits"))
    assert "unit='one person with all of their rows'" in shown
    assert eval(shown) == ledger
    with pytest.raises(LedgerError, match="unit must be 'one record'"):
        PrivacyLedger(path, "visits", unit="one visit")


def test_record_follows_the_schema() -> None:
    ledger = PrivacyLedger(":memory:", "patients: all", epsilon=3.0, delta=1e-5)
    for _ in range(2):
        read = yaml.safe_load(ledger.to_registry_yaml(unit="one patient"))
        assert read == ledger.statement(unit="one patient").to_dict()
        jsonschema.validate(read, SCHEMA, cls=jsonschema.Draft7Validator)
        deployment = read["deployment"]
        assert deployment["deployment_model"]["release_type"] == "Many releases"
        assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 3.0, "delta": 1e-5}
        with ledger.reserve(PrivacyProfile.pure(0.5), name="mean age"):
            pass
