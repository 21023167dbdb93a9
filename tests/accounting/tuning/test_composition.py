"""Compositions on coarse grids: never below those on fine ones, hardly above."""

import numpy as np
import pytest

from skdptune.accounting import Geometric, PrivacyProfile, SharedCurve, with_failure
from skdptune.accounting._profile import sides_of
from skdptune.accounting._tuning._tune_then_fit import composed

DELTAS = np.geomspace(1e-12, 0.05, 30)
RUNS = Geometric.from_mean(20)
PAIRS = {
    "search and fit": (PrivacyProfile.gaussian(0.3).selected(RUNS), PrivacyProfile.gaussian(0.3)),
    "scores and fit": (PrivacyProfile.gaussian(0.05).selected(RUNS), PrivacyProfile.gaussian(0.3)),
    "next to nothing": (
        PrivacyProfile.gaussian(1e-3).selected(RUNS),
        PrivacyProfile.gaussian(2.0),
    ),
    "sampled approximate": (
        PrivacyProfile.approximate(0.5, 1e-13).subsampled(0.05),
        PrivacyProfile.gaussian(0.3).subsampled(0.5),
    ),
    "sampled search": (
        PrivacyProfile.gaussian(0.3).selected(RUNS).subsampled(0.05),
        PrivacyProfile.gaussian(0.3),
    ),
    "shared curves": (
        SharedCurve(0.3, 1e-15).profile.selected(RUNS),
        SharedCurve(0.3, 1e-15).profile,
    ),
    "pure and Gaussian": (PrivacyProfile.pure(0.2), PrivacyProfile.gaussian(0.3)),
    "approximate and Gaussian": (
        PrivacyProfile.approximate(0.2, 1e-14),
        PrivacyProfile.gaussian(0.3),
    ),
    "pure that may fail": (
        with_failure(PrivacyProfile.pure(0.3).selected(RUNS), 1e-14),
        PrivacyProfile.gaussian(0.3),
    ),
}


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS)
def test_a_coarse_grid_costs_hardly_more_and_never_less(first, second):
    # Theorem T6.
    coarse, fine = composed(first, second), first + second
    for delta in DELTAS:
        exact = fine.epsilon(delta)
        assert exact * (1.0 - 1e-9) <= coarse.epsilon(delta) <= exact * (1.0 + 2e-5)
    assert sum(side.masses.size for side in sides_of(coarse)) < 40_000


def test_sums_of_pure_guarantees_stay_as_they_are():
    first, second = PrivacyProfile.pure(0.5).selected(RUNS), PrivacyProfile.pure(0.25)
    assert composed(first, second) == first + second
    assert composed(PrivacyProfile.pure(0.5), second).epsilon(0.0) == 0.75


def test_what_has_no_finite_loss_is_composed_too():
    nothing, everything = PrivacyProfile.pure(0.0), PrivacyProfile.approximate(0.0, 1.0)
    assert composed(nothing, nothing).delta(0.0) == 0.0
    assert composed(nothing, everything).delta(5.0) == 1.0
    fails = composed(PrivacyProfile.approximate(0.0, 1e-3), PrivacyProfile.approximate(0.0, 1e-3))
    assert fails.delta(1.0) == pytest.approx(2e-3, rel=1e-3)


def test_renyi_divergences_are_those_of_both():
    first, second = PrivacyProfile.gaussian(0.3), PrivacyProfile.gaussian(0.4)
    orders = np.array([2.0, 8.0])
    total = composed(first, second).rdp(orders)
    assert total == pytest.approx(first.rdp(orders) + second.rdp(orders))
