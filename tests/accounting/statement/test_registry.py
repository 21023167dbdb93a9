"""Tests of records for OpenDP's registry of deployments."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from skdptune.accounting import PrivacyReport, PrivacyStatement
from tests.accounting.statement.registry import SCHEMA
from tests.accounting.statement.test_statement import ABOUT, FIT, SEARCH

ODD = "a: b # c\n\n  d\te \U0001f600 \x85 \u2028 'x' \"y\" \\ \\n"
FULL = ABOUT | {
    **{"name": "1e5", "authors": ["~", "no"], "notes": ODD, "sources": "https://example.org"},
    **{"sector": "Healthcare", "data_source": "Static", "justification": "0x1"},
    **{"product_type": "Summary statistics", "publication_date": "2026-05-31"},
}


def statements(about: dict[str, Any]) -> list[PrivacyStatement]:
    return [report.statement(**about) for report in (SEARCH, FIT)]


@pytest.mark.parametrize("about", [{}, ABOUT, FULL], ids=["nothing", "answers", "all"])
def test_records_follow_the_schema(about: dict[str, Any]) -> None:
    for statement in statements(about):
        text = statement.to_registry_yaml()
        read = yaml.safe_load(text)
        assert read == statement.to_dict()
        checker = jsonschema.Draft7Validator.FORMAT_CHECKER
        jsonschema.validate(read, SCHEMA, cls=jsonschema.Draft7Validator, format_checker=checker)
        assert read["tier"] == (3 if about else 1)


def test_parameters_are_exact_numbers() -> None:
    read = yaml.safe_load(SEARCH.to_registry_yaml())["deployment"]
    assert read["privacy_loss"]["privacy_parameters"] == {"epsilon": SEARCH.epsilon, "delta": 1e-5}
    assert read["dp_variant"]["variant_name"] == "Approximate DP"
    pure = yaml.safe_load(FIT.to_registry_yaml())["deployment"]
    assert pure["privacy_loss"]["privacy_parameters"] == {"epsilon": FIT.epsilon}
    assert pure["dp_variant"]["variant_name"] == "Pure DP"


def test_a_release_is_one() -> None:
    for statement in statements({}):
        model = statement.to_dict()["deployment"]["deployment_model"]
        assert model["release_type"] == "One release"


def test_address_is_that_of_the_registry() -> None:
    report = PrivacyReport(FIT.profile, 0.0, name="Risk, by age")
    about = {"curators": ["A hospital", "B"], "publication_date": "2026-05-31"}
    assert report.statement(**about).to_dict()["url_slug"] == "risk-by-age-a-hospital-b-2026"
