"""What a table can be expected to show."""

from __future__ import annotations

import math

import pytest

from skdptune.model_selection._choosing import TableOutlook

CLEAR = {
    "n_samples": 40_000,
    "epsilon": 1.0,
    "noise_ratio": 16.0,
    "n_score": 8000,
    "score_noise": 0.004,
}


def test_four_doublings_on_forty_thousand_lose_one_point() -> None:
    outlook = TableOutlook(**CLEAR)
    assert outlook.loss == pytest.approx(1.0)
    assert outlook.run_deviation == pytest.approx(math.hypot(0.004, 0.25 / math.sqrt(8000)))
    assert outlook.deviation == pytest.approx(math.hypot(outlook.run_deviation, 0.004))
    assert outlook.smallest_gain == pytest.approx(3.0 * outlook.deviation)
    assert outlook.reason_against == ""


def test_runs_with_less_noise_than_a_fit_lose_nothing() -> None:
    assert TableOutlook(**{**CLEAR, "noise_ratio": 0.5}).loss == 0.0
    assert TableOutlook(**{**CLEAR, "epsilon": math.inf}).loss == 0.0


@pytest.mark.parametrize("changes", [{"n_samples": 4000}, {"epsilon": 0.1}])
def test_a_tenth_of_the_budget_or_of_the_records_is_too_little(changes: dict[str, float]) -> None:
    outlook = TableOutlook(**{**CLEAR, **changes})
    assert outlook.loss == pytest.approx(10.0)
    assert outlook.reason_against == "runs with 16 times the noise may lose 10 points of accuracy"
    assert outlook.reason_to_keep == outlook.reason_against
    # 0.4 of the loss at the limit, and then by the ninth power.
    assert outlook.run_deviation == pytest.approx(0.012 * (10.0 / 3.0) ** 9, rel=0.01)


def test_the_default_is_kept_before_a_table_is_of_no_use() -> None:
    outlook = TableOutlook(**{**CLEAR, "n_samples": 11_500})
    assert outlook.loss == pytest.approx(3.5, rel=0.01)
    assert outlook.reason_against == ""
    assert outlook.reason_to_keep.endswith("may lose 3 points of accuracy")
    assert outlook.run_deviation > 0.04
    assert TableOutlook(**CLEAR).reason_to_keep == ""


@pytest.mark.parametrize("name", ["n_samples", "epsilon", "n_score"])
def test_more_records_and_more_budget_never_deviate_more(name: str) -> None:
    found = [
        TableOutlook(**{**CLEAR, name: factor * CLEAR[name]}).deviation for factor in (0.5, 1, 2)
    ]
    assert found == sorted(found, reverse=True)


def test_the_least_budgets_deviate_by_a_number() -> None:
    outlook = TableOutlook(1, 1e-300, 1e5, 0)
    assert math.isfinite(outlook.deviation)
    assert outlook.deviation > 1e6
