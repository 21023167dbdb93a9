"""The lower bound on a selection: real, below every bound, and near the envelope."""

import math

import numpy as np
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
from tests.accounting.oracles import LAWS, STEP


def bracket(profile, law, delta):
    """Return the lower bound and the envelope."""
    return selection_lower_bound(profile, law, delta), profile.selected(law).epsilon(delta)


class TestReferenceValues:
    @pytest.mark.parametrize(
        ("mu", "law", "expected"),
        [
            (1 / 2, Geometric(0.1), 3.247),
            (1 / 4, Geometric(0.01), 2.026),
            (1.0, Logarithmic(0.01), 6.994),
            (1 / 8, TruncatedNegativeBinomial(0.5, 0.01), 0.878),
        ],
        ids=str,
    )
    def test_published_table_and_one_percent_below_the_envelope(self, mu, law, expected):
        low, high = bracket(PrivacyProfile.gaussian(mu), law, 1e-6)
        assert low == pytest.approx(expected, rel=5e-3)
        assert low <= high <= 1.01 * low

    @pytest.mark.parametrize(
        ("law", "least", "most"),
        [
            (Poisson(45.0), 0.02, 0.07),
            (Poisson(100.0), 0.08, 0.20),
            (Binomial(10, 1.0), 0.06, 0.12),
        ],
        ids=str,
    )
    def test_open_gaps_are_as_wide_as_documented(self, law, least, most):
        low, high = bracket(PrivacyProfile.gaussian(0.5), law, 1e-6)
        assert 1.0 + least < high / low < 1.0 + most

    def test_training_with_subsampled_noise(self):
        step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(2.0))
        run = PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, 5000), 1e-3)
        low, high = bracket(run, Geometric(0.1), 1e-5)
        assert 0.99 * high < low <= high


class TestBelowEveryBound:
    @given(oracles.pairs_on_grid(), st.sampled_from(LAWS), st.floats(-8.0, -0.5))
    @settings(max_examples=15)
    def test_small_discrete_runs(self, pair, law, log_delta):
        delta = 10.0**log_delta
        profile = oracles.profile_of(pair, STEP)
        low = selection_lower_bound(profile, law, delta)
        # No clipping at 0 of what nobody claims: at 0 the claim is empty.
        if 0.0 < low < 600.0:
            for bound in ("envelope", "best"):
                assert low <= profile.selected(law, bound).epsilon(delta) * (1 + 1e-6) + 1e-9

    @given(oracles.pairs_on_grid(), st.sampled_from(LAWS), st.floats(-8.0, -0.5))
    @settings(max_examples=15)
    def test_is_the_epsilon_of_one_of_the_orders(self, pair, law, log_delta):
        """Among all orders of all outcomes, one must really have the claimed epsilon."""
        delta = 10.0**log_delta
        low = selection_lower_bound(oracles.profile_of(pair, STEP), law, delta)
        if 0.0 < low < 600.0:
            at = [low * (1 - 1e-6)]
            # Outcome zero has been added to the profile by rounding: 1e-12 of mass at most.
            reached = max(
                oracles.deltas_of_all_orders(oracles.split(side, 1), law, at).max()
                for side in (pair, pair.mirrored)
            )
            assert reached >= delta * (1 - 1e-6) - 1e-12 * max(law.mean, 1.0)

    @pytest.mark.parametrize(
        "event",
        [
            dp_event.LaplaceDpEvent(2.0),
            dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0)),
            dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(10.0), 20),
        ],
        ids=lambda event: type(event).__name__,
    )
    @pytest.mark.parametrize("law", [Geometric(1e-3), Poisson(5.0)], ids=str)
    def test_events(self, event, law):
        low, high = bracket(PrivacyProfile.from_event(event, 1e-3), law, 1e-5)
        assert low <= high

    @pytest.mark.parametrize(
        ("mu", "law", "delta"),
        [
            (1.0, Poisson(0.5), 1e-12),
            (2.0, Binomial(1, 1.0), 1e-6),
            (2.0, Poisson(5.0), 1e-12),
            (3.0, Binomial(1, 1.0), 1e-6),
            (3.0, Geometric(0.1), 1e-6),
            (6.0, Geometric(0.1), 1e-2),
        ],
        ids=str,
    )
    def test_runs_of_large_epsilon(self, mu, law, delta):
        """Differences of the generating function near 1 must not be taken for certainty."""
        run = PrivacyProfile.gaussian(mu)
        low, high = bracket(run, law, delta)
        assert 0.5 * run.epsilon(delta) < low <= high * (1 + 1e-6)

    @pytest.mark.parametrize("law", [Geometric(0.1), Poisson(3.0), Binomial(3, 1.0)], ids=str)
    def test_pure_runs(self, law):
        for delta in (0.1, 1e-3, 1e-9):
            low, high = bracket(PrivacyProfile.pure(0.5), law, delta)
            assert low <= high


class TestExactCases:
    @pytest.mark.parametrize("mu", [0.1, 1.0])
    def test_a_single_run_costs_itself(self, mu):
        run = PrivacyProfile.gaussian(mu)
        low = selection_lower_bound(run, Binomial(1, 1.0), 1e-5)
        assert run.epsilon(1e-5) * (1 - 1e-3) <= low <= run.epsilon(1e-5) * (1 + 1e-6)

    def test_a_single_run_by_chance_costs_a_share_of_its_delta(self):
        run = PrivacyProfile.gaussian(0.5)
        low = selection_lower_bound(run, Binomial(1, 0.2), 1e-5)
        assert low == pytest.approx(run.epsilon(5e-5), rel=1e-3)

    def test_the_worse_direction_counts(self):
        # Seen for sure only when the record is absent.
        pair = oracles.pair_on_grid([STEP], [1.0])
        profile = oracles.profile_of(pair, STEP)
        assert pair.p.sum() == pytest.approx(1.0)
        assert math.isinf(selection_lower_bound(profile, Geometric(0.5), 1e-3))

    def test_nothing_to_see(self):
        assert selection_lower_bound(PrivacyProfile.pure(0.0), Geometric(0.1), 1e-6) == 0.0

    def test_larger_deltas_give_smaller_epsilons(self):
        run = PrivacyProfile.gaussian(0.5)
        figures = [selection_lower_bound(run, Poisson(5.0), delta) for delta in (1e-8, 1e-5, 1e-2)]
        assert np.all(np.diff(figures) < 0.0)


class TestArguments:
    run = PrivacyProfile.gaussian(0.5)

    @pytest.mark.parametrize("delta", [0.0, 1.0, -1e-3, math.nan])
    def test_delta_outside_its_domain(self, delta):
        with pytest.raises(ValueError, match=r"delta must be a number in \(0, 1\)"):
            selection_lower_bound(self.run, Geometric(0.1), delta)

    def test_profile_of_another_kind(self):
        with pytest.raises(TypeError, match="profile must be a PrivacyProfile; got float"):
            selection_lower_bound(0.5, Geometric(0.1), 1e-6)

    def test_law_of_another_kind(self):
        with pytest.raises(TypeError, match="law must be a run law"):
            selection_lower_bound(self.run, 10, 1e-6)
