"""The trade-off curve in cells: never above the run's own, and close to it.

Theorem S2.
"""

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdptune.accounting import Binomial, Geometric, Logarithmic, Poisson, PrivacyProfile
from skdptune.accounting._losses import least_errors
from skdptune.accounting._profile import sides_of
from skdptune.accounting._selection import _bounds, _tradeoff
from skdptune.accounting._selection._tradeoff import refined, tradeoff_cells
from tests.accounting import oracles
from tests.accounting.oracles import DISTRIBUTIONS, STEP

POWERS = np.concatenate(
    [np.geomspace(1e-9, 0.1, 60), np.linspace(0.1, 0.9, 60), 1.0 - np.geomspace(0.1, 1e-9, 60)]
)


def read(cells, powers):
    """Return the least error that the cells allow: each bounds the curve by itself."""
    a0, a1, b0, b1 = cells[:, cells[1] > cells[0]]
    inside = (a0 <= powers[:, None]) & (powers[:, None] <= a1)
    share = (powers[:, None] - a0) / (a1 - a0)
    values = np.where(inside, b0 + share * (b1 - b0), -np.inf)
    return values.max(axis=1)


def sampled_gaussian():
    step = dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(4.0))
    return PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, 400))


@pytest.mark.parametrize("mu", [0.05, 0.5, 3.0])
def test_gaussian_cells_lie_just_below_the_closed_form(mu):
    """Theorem S2."""
    remove, add = sides_of(PrivacyProfile.gaussian(mu))
    exact = stats.norm.cdf(stats.norm.ppf(POWERS) - mu)
    got = read(tradeoff_cells(remove, add), POWERS)
    assert (got <= exact * (1 + 1e-9) + 1e-14).all()
    assert (got >= exact * (1 - 1e-3) - 1e-14).all()


@pytest.mark.parametrize("make", [sampled_gaussian, lambda: 60 * PrivacyProfile.pure(0.07)])
def test_coarser_cells_are_at_most_what_the_curve_proves(make):
    """Theorem S2: least errors are read from every single dot of the curve."""
    sides = sides_of(make())
    for own, other in (sides, sides[::-1]):
        exact = least_errors(own, other, 1.0 - POWERS)
        got = read(tradeoff_cells(own, other), POWERS)
        assert (got <= exact + 1e-12).all()
        assert (got >= exact - 1e-5).all()


@given(oracles.pairs_on_grid(), st.sampled_from(DISTRIBUTIONS))
@settings(max_examples=40)
def test_cells_cover_all_powers_and_refining_keeps_their_lines(pair, distribution):
    profile = oracles.profile_of(pair, STEP)
    sides = sides_of(profile)
    powers = np.linspace(0.0, 1.0, 201)
    for own, other in (sides, sides[::-1]):
        cells = tradeoff_cells(own, other)
        finer = refined(cells, distribution)
        exact = least_errors(own, other, 1.0 - powers)
        for each in (cells, finer):
            # The middle of a small mechanism's curve may be random: its cells may overlap.
            assert np.abs(read(each, powers) - exact).max() <= 1e-9
        assert finer.shape[1] >= cells.shape[1]


def test_the_largest_loss_of_a_pure_guarantee_stays():
    run = 400 * PrivacyProfile.pure(0.0123)
    remove, add = sides_of(run)
    cells = tradeoff_cells(remove, add)
    first = cells[:, cells[0] == 0.0]
    loss = np.log((first[1] / first[3]).max())
    assert loss == pytest.approx(remove.highest * remove.step, rel=1e-9)


@pytest.mark.parametrize(
    "run",
    [
        PrivacyProfile.gaussian(0.3),
        PrivacyProfile.approximate(1.0, 1e-6),
        PrivacyProfile.approximate(1.0, 1e-7) | PrivacyProfile.gaussian(0.4),
        sampled_gaussian(),
    ],
    ids=["gaussian", "approximate", "mixture", "sampled"],
)
@pytest.mark.parametrize(
    "distribution",
    [Geometric(0.05), Logarithmic(0.02), Poisson(20.0), Binomial(20, 0.5), Binomial(10, 1.0)],
    ids=str,
)
def test_cells_that_are_eight_times_as_fine_save_next_to_nothing(run, distribution, monkeypatch):
    """Theorem S2: at most 0.05 % of epsilon, on the whole grid of the result."""
    # Prices of positions (Theorem S6) are sought roughly, on grids of their own.
    monkeypatch.setattr(_bounds, "_is_crowded", lambda _: False)
    deltas = [1e-1, 1e-2, 1e-3, 1e-4] + [1e-6, 1e-8] * (run.epsilon(1e-9) < np.inf)
    quick = np.array([run.selected(distribution).epsilon(delta) for delta in deltas])
    for name in ("_MOST_LOSSES", "_FEW_CELLS", "_MORE_CELLS"):
        monkeypatch.setattr(_tradeoff, name, 8 * getattr(_tradeoff, name))
    slow = np.array([run.selected(distribution).epsilon(delta) for delta in deltas])
    assert (quick <= slow * (1 + 5e-4) + 1e-6).all()
    assert (quick >= slow * (1 - 5e-4) - 1e-6).all()


def test_one_outcome_of_large_mass_does_not_make_the_tangents_meet_far_below():
    """A cell of most of the mass, among many others, is cut as it would be alone."""
    alone = PrivacyProfile.approximate(1.0, 1e-7)
    among_others = alone | PrivacyProfile.gaussian(0.4)
    for distribution in (Poisson(100.0), Poisson(20.0), Geometric(0.01)):
        expected = alone.selected(distribution).epsilon(1e-2)
        got = among_others.selected(distribution).epsilon(1e-2)
        assert expected * (1 - 2e-3) <= got <= 1.05 * expected
