"""Laws by name, mean and chance."""

from __future__ import annotations

import pytest

from skdptune.accounting import Geometric, Poisson
from skdptune.model_selection._strategies._random_runs import (
    DISTRIBUTIONS,
    candidate_distributions,
    runs_at_most,
)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_mean_is_as_wanted(name: str) -> None:
    distributions = candidate_distributions(name, 7, None)
    assert [distribution.mean for distribution in distributions] == pytest.approx(
        [7.0] * len(distributions), rel=1e-6
    )
    assert len(distributions) == (5 if name == "auto" else 1)


@pytest.mark.parametrize("name", ["geometric", "poisson", "logarithmic", "negative_binomial"])
def test_at_least_is_met_and_hardly_more(name: str) -> None:
    (distribution,) = candidate_distributions(name, 1, (5, 0.9))
    assert 0.9 <= 1.0 - distribution.probability_at_most(4) <= 0.903


def test_auto_leaves_out_what_attains_no_such_chance() -> None:
    # A logarithmic number of runs is 1 too often, whatever its mean.
    with pytest.raises(ValueError, match=r"with n_iter_distribution='logarithmic'; got \(5, 0.99"):
        candidate_distributions("logarithmic", 1, (5, 0.99))
    found = candidate_distributions("auto", 1, (5, 0.99))
    assert any(isinstance(each, Poisson) for each in found)
    assert all(1.0 - each.probability_at_most(4) >= 0.99 for each in found)


def test_one_run_is_one_run() -> None:
    (distribution,) = candidate_distributions("auto", 1, None)
    assert distribution.probability_at_most(0) == 0.0
    assert distribution.probability_at_most(1) == 1.0


def test_law_itself_is_taken() -> None:
    distribution = Poisson.from_mean(3)
    assert candidate_distributions(distribution, 99, None) == [distribution]


@pytest.mark.parametrize(
    ("distribution", "n_iter", "at_least", "words"),
    [
        ("gauss", 3, None, "n_iter_distribution must be"),
        ("geometric", 0.5, None, "n_iter must be"),
        ("geometric", float("nan"), None, "n_iter must be"),
        ("geometric", 3, 5, r"at_least must be \(number of runs, chance\); got 5"),
        ("geometric", 3, (0, 0.5), r"at_least\[0\] must be"),
        ("geometric", 3, (2, 1.0), r"at_least\[1\] must be"),
    ],
)
def test_bad_wishes(distribution: str, n_iter: float, at_least: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        candidate_distributions(distribution, n_iter, at_least)  # type: ignore[arg-type]


@pytest.mark.parametrize("distribution", [Geometric.from_mean(20), Poisson.from_mean(20)])
def test_runs_at_most_is_the_quantile(distribution: object) -> None:
    found = runs_at_most(distribution, 0.99)
    assert (
        distribution.probability_at_most(found)
        >= 0.99
        > distribution.probability_at_most(found - 1)
    )
