"""Tests of what a ledger states to auditors."""

from __future__ import annotations

import jsonschema
import yaml

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import PrivacyLedger
from tests.accounting.statement.registry import SCHEMA


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
    assert statement.tuning.startswith("Yes, in full by DPGridS")
    assert statement.answer("unit") == "one visit"
    assert ": 2. All releases" in statement.facts.other_releases


def test_ledger_without_searches_says_so() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=0.0)
    assert ledger.statement().tuning.startswith("No release is a search")
    assert "variant_name: Pure DP" in ledger.to_registry_yaml()


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
