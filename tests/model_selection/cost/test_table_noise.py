"""How the noise of a table's runs follows from what they may cost (Theorem T8)."""

from __future__ import annotations

import math

import pytest

from skdptune.accounting import PrivacyProfile, search_on_split
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection._cost._layout import Layout, make_layout
from skdptune.model_selection._cost._table_noise import (
    noise_limit,
    table_noise,
    tuning_fraction_of_table,
)

DELTA = 1e-5


def layout(**more: object) -> Layout:
    settings = {"cv": 0.2, "public": False, "tuning_fraction": None, "variant": 2, "refit": True}
    return make_layout(10_000, None, is_random=False, **{**settings, **more})


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("count", [2, 10, 40])
@pytest.mark.parametrize("part", [None, 0.1])
def test_the_final_fit_has_at_most_the_wanted_noise(
    epsilon: float, count: int, part: float | None
) -> None:
    """Theorem T8, for Gaussian fits; the noise is also the least that does it."""
    found, limit = layout(tuning_fraction=part), noise_limit(epsilon, 10_000)
    noise = table_noise(epsilon, DELTA, count, found, limit)
    assert noise is not None
    unit, _ = noise_for_budget(epsilon, DELTA)

    def total(fit_noise: float) -> float:
        fits, scores = (
            PrivacyProfile.gaussian(1.0 / (unit * limit * each)) * count
            for each in (fit_noise, noise.score)
        )
        final = PrivacyProfile.gaussian(1.0 / (unit * limit))
        return search_on_split(
            fits, scores, final, validation_fraction=0.2, tuning_fraction=part, variant=2
        ).epsilon(DELTA)

    assert total(noise.fit) <= epsilon
    assert total(0.98 * noise.fit) > 0.999 * epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_candidates_compare_best_on_all_records(epsilon: float) -> None:
    """Theorem T8: noise beside the records of a fit grows as the part shrinks."""
    parts = (None, 0.4, 0.2, 0.1, 0.05)
    found = [
        (table_noise(epsilon, DELTA, 20, made, 1.04), made.train_share)
        for made in (layout(tuning_fraction=part) for part in parts)
    ]
    ratios = [noise.fit / share for noise, share in found if noise is not None]
    assert len(ratios) == len(parts)
    assert ratios == sorted(ratios)


def test_on_all_records_squared_shifts_add_up() -> None:
    noise = table_noise(1.0, DELTA, 10, layout(), 1.02)
    assert noise is not None
    wanted = math.sqrt(10 / (1.02**2 - 1.0))
    assert noise.fit == pytest.approx(wanted, rel=0.01)
    assert noise.score == pytest.approx(wanted, rel=1e-12)


def test_with_folds_fits_and_scores_share_what_there_is() -> None:
    noise = table_noise(1.0, DELTA, 10, layout(cv=5), 1.02)
    assert noise is not None
    shifts = 40 / noise.fit**2 + 10 / noise.score**2
    assert shifts == pytest.approx(1.02**2 - 1.0, rel=0.05)
    assert 10 / noise.score**2 == pytest.approx(shifts / 2, rel=0.05)


def test_public_validation_data_leave_all_to_the_fits() -> None:
    noise = table_noise(1.0, DELTA, 10, layout(public=True), 1.02)
    assert noise is not None
    assert noise.fit == pytest.approx(math.sqrt(10 / (1.02**2 - 1.0)), rel=0.01)


def test_pure_guarantees_add_up_themselves() -> None:
    noise = table_noise(1.0, 0.0, 10, layout(), 1.05)
    assert noise is not None
    assert noise.score == pytest.approx(10 / 0.05)


def test_no_noise_is_enough_where_the_final_fit_takes_all() -> None:
    assert table_noise(1.0, DELTA, 10**9, layout(), 1.0 + 1e-9) is None


@pytest.mark.parametrize(
    ("epsilon", "n_samples", "wanted"),
    [(0.5, 100, 1.02), (1.0, 4000, 1.028), (1.0, 10_000, 1.05), (100.0, 10**9, 1.05)],
)
def test_a_table_may_cost_a_few_percent(epsilon: float, n_samples: int, wanted: float) -> None:
    assert noise_limit(epsilon, n_samples) == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize(
    ("count", "n_samples", "wanted"),
    [
        (25, 100, None),
        (26, 10_000, 0.5),
        (100, 10_000, 0.2),
        (5000, 100_000, 0.02),
        (60, 500, 0.5),
    ],
)
def test_a_part_saves_time_where_candidates_are_many(
    count: int, n_samples: int, wanted: float | None
) -> None:
    assert tuning_fraction_of_table(count, n_samples) == wanted
