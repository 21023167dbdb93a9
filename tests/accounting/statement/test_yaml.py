"""Tests of how plain values are written as YAML."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting._statement import to_yaml

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(TEXTS, st.floats(allow_nan=False, allow_infinity=False), st.integers())


@given(st.dictionaries(st.from_regex(r"[a-z_]{3,9}", fullmatch=True), VALUES, min_size=1))
def test_what_is_written_is_read(content: dict[str, object]) -> None:
    content.pop("yes", None)
    content.pop("null", None)
    content.pop("true", None)
    content.pop("false", None)
    content.pop("off", None)
    if content:
        assert yaml.safe_load(to_yaml({"inside": content, "last": "x"}))["inside"] == content


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "No",
        "null",
        "1e5",
        "~",
        "- a",
        "a: b",
        "2026-05-31",
        "0x1",
        "",
        " a",
        "a\n",
        "a\n\nb",
    ],
)
def test_texts_stay_texts(text: str) -> None:
    assert yaml.safe_load(to_yaml({"key": text, "keys": [text]})) == {"key": text, "keys": [text]}


def test_texts_of_many_lines_can_be_read_by_people() -> None:
    assert to_yaml({"key": "one\n two"}) == "key: |-\n  one\n   two\n"
