"""Where numbers begin to be a finding."""

from __future__ import annotations

import math

import pytest

from skdptune import check
from skdptune.preprocessing import DPStandardScaler
from tests.checks.estimators import Private
from tests.checks.examples import model, random_search


@pytest.mark.parametrize("n_samples", [10, 1000, 32_561, 10**6])
def test_delta_is_large_from_one_over_the_number_of_records_on(n_samples: int) -> None:
    for delta, is_large in (
        (1.0 / n_samples, True),
        (math.nextafter(1.0 / n_samples, 0.0), False),
    ):
        report = check(Private(), n_samples=n_samples, delta=delta)
        assert ("SKP004" in report.codes) == is_large


def test_advised_delta_is_a_tenth_of_what_is_large() -> None:
    (finding,) = check(Private(), n_samples=20_000, delta=1e-3)
    assert finding.fix == "delta=5e-06"


def test_total_that_is_asked_for_counts_and_not_its_rounding() -> None:
    assert check(Private(epsilon=10.0)).codes == ()
    assert check(Private(epsilon=10.001)).codes == ("SKP016",)
    assert check(model(epsilon=math.inf)).codes == ("SKP007",)


def test_delta_of_a_pure_budget_is_no_finding() -> None:
    assert check(Private(), n_samples=10**6, delta=0.0).codes == ()


@pytest.mark.parametrize(
    ("n_public", "is_far"), [(50, False), (49, True), (200, False), (201, True), (100, False)]
)
def test_constant_is_far_from_twice_on(n_public: int, is_far: bool) -> None:
    report = check(model(n_public=n_public), n_samples=100, delta=1e-6)
    assert ("SKP003" in report.codes) == is_far


def test_few_records_are_told_by_epsilon_times_their_number() -> None:
    for epsilon, n_samples, is_few in ((1.0, 2000, True), (1.0, 2001, False), (4.0, 500, True)):
        assert ("SKP013" in check(Private(epsilon), n_samples=n_samples).codes) == is_few
    # A scaler has no accuracy to lose.
    assert check(DPStandardScaler(bounds=(0, 1)), n_samples=10).codes == ()


def test_budget_of_a_step_counts_for_nothing_where_the_search_sets_it() -> None:
    large = model(epsilon=50.0, delta=0.1)
    assert check(random_search(large, {"C": [None, 1.0]})).codes == ()
    own = random_search(Private(epsilon=20.0), {"warm_start": [False]}, epsilon=None, delta=1e-6)
    assert "SKP016" in check(own, n_samples=10_000).codes
