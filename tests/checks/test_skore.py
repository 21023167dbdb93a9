"""The checks for a report of skore say what `check` says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdptune.checks import check, skore_checks
from skdptune.linear_model import DPLogisticRegression
from tests.checks.examples import random_search


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), DPLogisticRegression(epsilon=20.0, random_state=0)),
        DPLogisticRegression(classes=[0, 1]),
        random_search(),
    ],
    ids=["leaks", "plain", "search"],
)
def test_each_code_shows_its_findings(estimator: Any) -> None:
    # A report of skore keeps much more; only its estimator may be used.
    report = SimpleNamespace(estimator_=estimator)
    shown = {each.code: each.check_function(report) for each in skore_checks()}
    found = check(estimator)
    assert {code for code, text in shown.items() if text} == {each.code for each in found}
    for each in found:
        assert f"{each.place}: {each.found}. {each.fix}" in (shown[each.code] or "")


def test_only_what_harms_privacy_is_an_issue() -> None:
    severities = {each.code: each.severity for each in skore_checks()}
    assert severities["SKP001"] == "issue" and severities["SKP013"] == "tip"
    assert all(each.docs_url.endswith(each.code.lower()) for each in skore_checks())
