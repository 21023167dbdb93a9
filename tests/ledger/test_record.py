"""What is shown of one reservation."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from skdptune.accounting import PrivacyProfile


@pytest.fixture
def record(ledger):
    ledger.reserve(PrivacyProfile.pure(0.5), name="a fit", assumptions=["n is public"])
    return ledger.history()[0]


def test_record_is_plain_json(record):
    content = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert content["name"] == "a fit"
    assert content["assumptions"] == ["n is public"]
    assert replace(record, epsilon=math.inf).to_dict()["epsilon"] == "inf"


def test_cost_without_an_epsilon_at_the_delta_is_infinite(ledger):
    ledger.reserve(PrivacyProfile.pure(0.0), name="nothing")
    ledger.reserve(PrivacyProfile.approximate(0.1, 4e-6), name="fits by its share")
    assert [record.is_spent for record in ledger.history()] == [True, True]


@pytest.mark.parametrize(
    ("status", "is_spent"),
    [("reserved", True), ("read", True), ("confirmed", True), ("cancelled", False)],
)
def test_all_but_the_cancelled_is_spent(record, status, is_spent):
    """Theorem H3."""
    assert replace(record, status=status).is_spent == is_spent
