"""Tests of what a statement takes from names."""

from __future__ import annotations

import pytest

from skdptune.accounting import includes_tuning


@pytest.mark.parametrize("name", ["DPGridSearchCV", "selection", "visit model: MySearchCV"])
def test_searches_are_known_by_their_names(name: str) -> None:
    assert includes_tuning(["scaling", name])


@pytest.mark.parametrize("name", ["DPLogisticRegression", "preselection", "", "one run"])
def test_other_names_are_no_searches(name: str) -> None:
    assert not includes_tuning([name])
