"""The lower bound on a selection: real, below every bound, and near the envelope."""

import math

import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    TruncatedNegativeBinomial,
    selection_lower_bound,
)
from tests.accounting import oracles
from tests.accounting.cases import trained
from tests.accounting.oracles import DISTRIBUTIONS, STEP


def coarse_gaussian(mu):
    """Return a Gaussian run on so few losses that many orders are tried fast."""
    return PrivacyProfile.from_event(dp_event.GaussianDpEvent(1.0 / mu), mu / 25.0)


def bracket(profile, distribution, delta):
    """Return the lower bound and the envelope."""
    return selection_lower_bound(profile, distribution, delta), profile.selected(
        distribution
    ).epsilon(delta)


class TestReferenceValues:
    """Theorem S4."""

    @pytest.mark.parametrize(
        ("mu", "distribution", "expected"),
        [
            (1 / 2, Geometric(0.1), 3.247),
            (1.0, Logarithmic(0.01), 6.994),
            *(
                pytest.param(*each, marks=pytest.mark.slow)
                for each in [
                    (1 / 4, Geometric(0.01), 2.026),
                    (1 / 8, TruncatedNegativeBinomial(0.5, 0.01), 0.878),
                ]
            ),
        ],
        ids=str,
    )
    def test_published_table_and_one_percent_below_the_envelope(self, mu, distribution, expected):
        low, high = bracket(coarse_gaussian(mu), distribution, 1e-6)
        assert low == pytest.approx(expected, rel=5e-3)
        assert low <= high <= 1.01 * low

    @pytest.mark.parametrize(
        ("distribution", "least", "most"),
        [
            (Binomial(10, 1.0), 0.06, 0.12),
            *(
                pytest.param(*each, marks=pytest.mark.slow)
                for each in [(Poisson(45.0), 0.02, 0.07), (Poisson(100.0), 0.05, 0.12)]
            ),
        ],
        ids=str,
    )
    def test_open_gaps_are_as_wide_as_documented(self, distribution, least, most):
        low, high = bracket(coarse_gaussian(0.5), distribution, 1e-6)
        assert 1.0 + least < high / low < 1.0 + most

    def test_training_with_subsampled_noise(self):
        low, high = bracket(trained(0.01, 2.0, 5000, 4e-3), Geometric(0.1), 1e-5)
        assert 0.99 * high < low <= high


class TestBelowEveryBound:
    """Theorem S4."""

    @given(oracles.pairs_on_grid(), st.sampled_from(DISTRIBUTIONS), st.floats(-8.0, -0.5))
    @settings(max_examples=6)
    def test_small_discrete_runs_have_it_under_one_of_their_orders(
        self, pair, distribution, log_delta
    ):
        delta = 10.0**log_delta
        profile = oracles.profile_of(pair, STEP)
        low, high = bracket(profile, distribution, delta)
        # At 0 nothing is claimed, and what is infinite has no delta.
        if 0.0 < low < 600.0:
            assert low <= high * (1 + 1e-6) + 1e-9
            reached = max(
                oracles.deltas_of_all_orders(side, distribution, [low * (1 - 1e-6)]).max()
                for side in (pair, pair.mirrored)
            )
            # By rounding, the profile has 1e-12 of an outcome of loss zero.
            assert reached >= delta * (1 - 1e-6) - 1e-12 * max(distribution.mean, 1.0)

    @pytest.mark.parametrize(
        ("mu", "distribution", "delta"),
        [
            (1.0, Poisson(0.5), 1e-12),
            (12.0, Binomial(4, 1.0), 1e-2),
        ],
        ids=str,
    )
    def test_runs_of_large_epsilon(self, mu, distribution, delta):
        """Differences of the generating function near 1 must not be taken for certainty."""
        run = coarse_gaussian(mu)
        low, high = bracket(run, distribution, delta)
        assert 0.5 * run.epsilon(delta) < low <= high * (1 + 1e-6)

    def test_many_runs_at_a_tiny_delta(self):
        """A rounding error of 1e-16 in a rank counts 1e5 times, against a delta of 1e-12."""
        low, high = bracket(PrivacyProfile.gaussian(1.0), Geometric(1e-5), 1e-12)
        assert 0.9 * high < low <= high


class TestExactCases:
    def test_one_run_by_chance_costs_a_share_of_its_delta(self):
        run = coarse_gaussian(0.3)
        low = selection_lower_bound(run, Binomial(1, 0.2), 1e-5)
        exact = run.epsilon(1e-5 / 0.2)
        assert exact * (1 - 1e-3) <= low <= exact * (1 + 1e-6)

    def test_the_worse_direction_counts(self):
        # Seen for sure only when the record is absent.
        pair = oracles.pair_on_grid([STEP], [1.0])
        profile = oracles.profile_of(pair, STEP)
        assert pair.p.sum() == pytest.approx(1.0)
        assert math.isinf(selection_lower_bound(profile, Geometric(0.5), 1e-3))
