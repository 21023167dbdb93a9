"""What results of audits say alike."""

from __future__ import annotations

import math

from skdptune.audit._result import as_html, as_text, bound_in_words, shown_bound

ROWS = [("fits", "100"), ("<b>", "a < b")]


def test_bounds_are_rounded_down() -> None:
    assert shown_bound(1.9999) == "1.999"
    assert shown_bound(math.inf) == "inf"


def test_bounds_are_stated_beside_the_claim() -> None:
    assert bound_in_words(1.9999, 4.0, "1e-05") == (
        "at δ = 1e-05, ε is at least 1.999 where 4.000 is claimed"
    )
    assert bound_in_words(math.inf, 4.0) == "ε is at least inf where 4.000 is claimed"


def test_rows_stand_below_the_verdict() -> None:
    text = as_text("Audit of one", "Consistent.", ROWS)
    assert text.splitlines() == [
        "Audit of one",
        "  Consistent.",
        "  fits:       100",
        "  <b>:        a < b",
    ]


def test_html_has_the_same_and_nothing_that_runs() -> None:
    html = as_html("Audit of <script>", "Refuted.", ROWS, is_refuted=True)
    assert "<script" not in html and "a &lt; b" in html and "#e03131" in html
    assert "#e03131" not in as_html("Audit", "Consistent.", ROWS)
