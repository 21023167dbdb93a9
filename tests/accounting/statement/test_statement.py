"""Statements for the people who assess a release: as a page, and as a registry's record."""

from __future__ import annotations

import math
import pickle
from datetime import date
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skdptune.accounting import PrivacyProfile, PrivacyReport, PrivacyStatement
from tests.accounting.statement.registry import SCHEMA

# The page --------------------------------------------------------------------------------

SELECTION = PrivacyReport(PrivacyProfile.gaussian(0.1), 1e-5, name="selection", note="3 runs")
FINAL = PrivacyReport(PrivacyProfile.gaussian(0.2), 1e-5, name="final fit")
PROFILE = SELECTION.profile + FINAL.profile
SEARCH = PrivacyReport(
    PROFILE,
    1e-5,
    name="DPGridSearchCV",
    parts=[SELECTION, FINAL],
    assumptions=["the number of records is public"],
)
FIT = PrivacyReport(PrivacyProfile.pure(0.5), 0.0, name="DPLogisticRegression")
ABOUT: dict[str, Any] = {
    **{"curators": ["A hospital"], "unit": "one patient", "description": "A model of risk"},
    **{"intended_use": "Planning", "region": "Norway", "domain": "Tables", "collection": "Forms"},
    **{"actors": "Doctors", "access": "Everybody", "security": "Encrypted", "utility": "Good"},
    **{"post_processing": "None", "justification": "By a committee"},
}


def answers(statement: PrivacyStatement) -> dict[str, str]:
    return {question: answer for _, question, answer in statement.questions()}


def test_page_states_the_guarantee_and_the_tree() -> None:
    page = str(SEARCH.statement(**ABOUT))
    assert f"ε = {math.ceil(1000 * SEARCH.epsilon) / 1000:.3f} at δ = 1e-05" in page
    assert str(SEARCH) in page
    assert "the number of records is public" in page
    assert "one patient" in page
    assert "Not stated" not in page


def test_tuning_is_answered_from_the_tree() -> None:
    question = "Was tuning accounted for?"
    assert answers(SEARCH.statement())[question].startswith("Yes.")
    assert "selection (3 runs); final fit" in answers(SEARCH.statement())[question]
    assert "not accounted for" in answers(FIT.statement())[question]
    pipeline = PrivacyReport(PROFILE, 1e-5, name="Pipeline", parts=[SEARCH])
    assert answers(pipeline.statement())[question].startswith("Yes.")


def test_what_nobody_counted_is_not_known() -> None:
    assert FIT.fits_seen is None
    assert "How many fits were made is not known" in FIT.statement().tuning
    assert "How many fits were made is not known" in FIT.statement().facts.other_releases


def test_fits_that_were_counted_are_stated() -> None:
    count = [1]
    part = PrivacyReport(PrivacyProfile.pure(0.5), 0.0, name="model")
    part.counted_by(lambda: count[0])
    assert part.fits_seen == 1 and "has seen 1 fit of model" in part.statement().tuning
    count[0] = 41
    report = PrivacyReport(PrivacyProfile.pure(0.5), 0.0, name="pipeline", parts=[part])
    assert report.fits_seen is None and "41 fits of model" in report.statement().tuning
    again = pickle.loads(pickle.dumps(part))
    assert again == part and again.fits_seen is None


def test_what_is_not_given_is_not_stated() -> None:
    statement = FIT.statement(unit="one patient")
    assert "unit" not in statement.unstated
    assert set(statement.unstated) == set(ABOUT) - {"unit"}
    assert answers(statement)["Who publishes it?"] == "Not stated by the curator."
    assert SEARCH.statement(**ABOUT).unstated == ()


def test_html_is_escaped() -> None:
    report = PrivacyReport(PrivacyProfile.pure(0.5), 0.0, name="<b>")
    shown = report.statement(unit="<i>")._repr_html_()
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert "&lt;i&gt;" in shown


def test_dates() -> None:
    for stated in ("2026-05-31", date(2026, 5, 31)):
        assert FIT.statement(publication_date=stated).about["publication_date"] == "2026-05-31"
    assert FIT.statement().about["publication_date"] >= "2026-11-01"


# The record ------------------------------------------------------------------------------

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


def test_address_is_that_of_the_registry() -> None:
    report = PrivacyReport(FIT.profile, 0.0, name="Risk, by age")
    about = {"curators": ["A hospital", "B"], "publication_date": "2026-05-31"}
    assert report.statement(**about).to_dict()["url_slug"] == "risk-by-age-a-hospital-b-2026"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@example("yes").via("a word of YAML")
@example("1e5").via("a number")
@example("2026-05-31").via("a date")
@example("a: b\n\n - ~").via("its signs")
@settings(max_examples=25)
def test_texts_stay_texts(text: str) -> None:
    statement = FIT.statement(notes=f"{text}.", curators=[f"x{text}"])
    assert yaml.safe_load(statement.to_registry_yaml()) == statement.to_dict()


def test_texts_of_many_lines_can_be_read_by_people() -> None:
    text = FIT.statement(notes="one\n two").to_registry_yaml()
    assert "notes: |-" in text and "one\n" in text


def test_a_name_that_only_sounds_like_a_search_is_none() -> None:
    for name in ("preselection", "SelectKBest", "selections", "one run"):
        part = PrivacyReport(PrivacyProfile.pure(0.1), 0.0, name=name)
        report = PrivacyReport(PrivacyProfile.pure(0.1), 0.0, name="model", parts=[part])
        assert report.statement().tuning.startswith("No search is part of this release.")
