"""Shares and shifts: what is charged, and all courses of interactions that choose their parts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import Geometric, PrivacyProfile, calibrate
from skdptune.ledger._books import BEYOND, SLACK, Charges, Totals, Ways
from tests.accounting.budgets.interactions import (
    LEAKY,
    PURE,
    Interaction,
    adverse,
    chosen_by,
    greedy,
    leaky,
)


class Budget:
    """What a ledger admits, in the manner of a filter."""

    def __init__(self, ways):
        self.ways, self.totals = ways, Totals()

    def emptied(self):
        return Budget(self.ways)

    def _with(self, part):
        return self.totals.changed(self.ways.charges_of(part))

    def fits(self, part):
        return self.ways.admits(self._with(part))

    def record(self, part):
        self.totals = self._with(part)


def check_promise(epsilon, delta, ways, choose, parts):
    found = Interaction(Budget(ways), choose, parts)
    assert found.depth >= 1
    for mirrored in (False, True):
        assert found.delta(epsilon, mirrored) <= delta * (1.0 + 1e-9) + 1e-13
    return found


class TestShares:
    """Theorem H1."""

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 7.0])
    @pytest.mark.parametrize("delta", [0.0, 1e-5])
    def test_pure_release_takes_its_part_of_epsilon(self, epsilon, delta):
        ways = Ways.shares_alone(3.0, delta)
        share = ways.charges_of(PrivacyProfile.pure(epsilon)).share
        assert share <= epsilon / 3.0
        assert share == pytest.approx(epsilon / 3.0, rel=1e-3)

    @pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
    def test_equal_parts_of_the_budget_fit_as_often_as_there_are(self, count):
        ways = Ways.shares_alone(float(count), count * 1e-6)
        charges = ways.charges_of(PrivacyProfile.approximate(1.0, 1e-6))
        assert ways.copies(charges) == count

    def test_decimals_count_as_they_are_written(self):
        ways = Ways.shares_alone(1.0, 0.0)
        assert ways.copies(ways.charges_of(PrivacyProfile.pure(0.1))) == 10

    @given(
        epsilon=st.floats(0.01, 20.0),
        delta=st.floats(1e-12, 0.5),
        part=st.sampled_from(
            [
                PrivacyProfile.gaussian(0.05),
                PrivacyProfile.gaussian(1.0).subsampled(0.1),
                PrivacyProfile.approximate(0.5, 1e-7),
                PrivacyProfile.gaussian(0.3).selected(Geometric(0.1)),
                PrivacyProfile.pure(1e-9),
            ]
        ),
    )
    @settings(max_examples=30)
    def test_share_is_proven_by_the_profile(self, epsilon, delta, part):
        share = Ways.shares_alone(epsilon, delta).charges_of(part).share
        if share < BEYOND:
            assert part.delta(share * epsilon) <= min(share * delta, 1.0) * (1.0 + 1e-12)
            less = share * (1.0 - 1e-6)
            assert part.delta(less * epsilon) > less * delta or share <= 1e-18

    @pytest.mark.parametrize("choose", [greedy, adverse])
    def test_choices_that_follow_the_losses(self, choose):
        check_promise(2.0, 0.0, Ways.shares_alone(2.0, 0.0), choose, PURE)

    @given(seed=st.integers(0, 10**9))
    @settings(max_examples=10)
    def test_parts_that_may_tell_all(self, seed):
        check_promise(2.0, 0.02, Ways.shares_alone(2.0, 0.02), chosen_by(seed, 4), LEAKY)

    def test_the_guarantee_is_not_idle(self):
        """All of a budget is used by responses that compose to it, and one more breaks it."""
        parts = [leaky(0.5, 0.005)]
        found = check_promise(2.0, 0.02, Ways.shares_alone(2.0, 0.02), lambda past: 0, parts)
        assert found.delta(2.0 - 1e-9) > 0.0197
        beyond = Interaction(Budget(Ways.shares_alone(2.5, 0.025)), lambda past: 0, parts)
        assert beyond.delta(2.0) > 0.02

    def test_nothing_that_reveals_all_fits(self):
        ways = Ways.both(3.0, 1e-5)
        charges = ways.charges_of(PrivacyProfile.approximate(0.0, 1.0))
        assert not ways.admits(Totals().changed(charges))
        assert ways.copies(charges) == 0


class TestEither:
    """Theorem H2."""

    @pytest.mark.parametrize("choose", [greedy, adverse])
    @pytest.mark.parametrize("parts", [PURE, LEAKY], ids=["pure", "leaky"])
    def test_choices_that_follow_the_losses(self, choose, parts):
        check_promise(2.0, 0.05, Ways.both(2.0, 0.05), choose, parts)

    @given(seed=st.integers(0, 10**9), epsilon=st.sampled_from([1.0, 2.0, 3.0]))
    @settings(max_examples=20)
    def test_random_choices(self, seed, epsilon):
        ways = Ways.both(epsilon, 0.05)
        check_promise(epsilon, 0.05, ways, chosen_by(seed, 4), LEAKY)

    def test_delta_is_divided(self):
        ways = Ways.both(3.0, 1e-5)
        assert ways.share_delta == 5e-6
        assert ways.failure == pytest.approx(5e-7)
        assert 0.47 < ways.squared_shift < 0.49

    def test_both_ways_are_needed(self):
        ways = Ways.both(3.0, 1e-5)
        pure = ways.charges_of(PrivacyProfile.pure(2.9))
        assert ways.shares_admit(Totals().changed(pure))
        assert not ways.shifts_admit(Totals().changed(pure))
        many = Totals()
        for _ in range(40):
            many = many.changed(ways.charges_of(PrivacyProfile.gaussian(0.1)))
        assert ways.shifts_admit(many) and not ways.shares_admit(many)
        assert ways.admits(many)

    def test_a_first_release_of_everything_settles_shares_alone(self):
        everything = PrivacyProfile.approximate(1.0, 1e-6)
        assert Ways.settled(1.0, 1e-6, everything) == Ways.shares_alone(1.0, 1e-6)
        tuned = calibrate(
            lambda shift: PrivacyProfile.gaussian(shift).selected(Geometric(0.1)),
            *(1.0, 1e-6),
            parameter="budget",
            lower=1e-3,
            upper=3.0,
        ).profile
        for count in (1, 2, 5):
            ways = Ways.settled(count * 1.0, count * 1e-6, tuned)
            assert ways.copies(ways.charges_of(tuned)) >= count

    def test_gaussian_and_small_releases_settle_both(self):
        for first in (PrivacyProfile.gaussian(0.1), PrivacyProfile.pure(0.01)):
            assert Ways.settled(3.0, 1e-5, first) == Ways.both(3.0, 1e-5)

    @pytest.mark.parametrize("delta", [0.0, 1e-300, 5e-324])
    def test_no_delta_leaves_shares_alone(self, delta):
        ways = Ways.both(1e-6, delta)
        assert ways.squared_shift == 0.0 or delta > 0.0
        assert ways.admits(Totals().changed(ways.charges_of(PrivacyProfile.pure(1e-7))))


class TestTotals:
    @given(st.lists(st.floats(0.0, 1e6, allow_subnormal=True), min_size=1, max_size=8))
    @settings(max_examples=50)
    def test_sums_are_exact_and_shown_from_above(self, values):
        totals = Totals()
        for value in values:
            totals = totals.changed(Charges(value, 0.0, 0.0))
        exact = sum(map(Fraction, values))
        assert Fraction(totals.share, 1 << 1074) == exact
        shown = totals.as_floats().share
        assert Fraction(shown) >= exact
        assert shown == 0.0 or Fraction(math.nextafter(shown, 0.0)) < exact
        for value in values:
            totals = totals.changed(Charges(value, 0.0, 0.0), sign=-1)
        assert totals == Totals()

    def test_tiny_charge_beside_a_large_one_is_not_lost(self):
        # A double would stay at 1 for ever.
        totals = Totals().changed(Charges(1.0, 0.0, 0.0))
        for _ in range(1000):
            totals = totals.changed(Charges(5e-324, 0.0, 0.0))
        assert totals.share == (1 << 1074) + 1000
        assert totals.as_floats().share > 1.0

    def test_budget_is_refused_just_beyond_its_slack(self):
        ways = Ways.shares_alone(1.0, 0.0)
        for share, is_admitted in ((1.0 + SLACK, True), (1.0 + 2.0 * SLACK, False)):
            assert ways.admits(Totals().changed(Charges(share, 0.0, 0.0))) == is_admitted


class TestLeft:
    @pytest.mark.parametrize(
        ("ways", "spent"),
        list(
            itertools.product(
                [Ways.both(3.0, 1e-5), Ways.shares_alone(3.0, 1e-5)],
                [PrivacyProfile.pure(0.5), PrivacyProfile.gaussian(0.3), PrivacyProfile.pure(0.0)],
            )
        ),
        ids=[f"{way}-{part}" for way in ("both", "shares") for part in ("pure", "gauss", "none")],
    )
    def test_what_is_left_fits_and_no_more(self, ways, spent):
        totals = Totals().changed(ways.charges_of(spent))
        for delta in (1e-5, 1e-7):
            left = ways.largest_epsilon(totals, delta)
            for factor, fits in ((1.0, True), (1.002, False)):
                part = calibrate(
                    PrivacyProfile.gaussian,
                    *(factor * left, delta),
                    parameter="budget",
                    lower=1e-4,
                    upper=5.0,
                    tolerance=1e-6,
                ).profile
                assert ways.admits(totals.changed(ways.charges_of(part))) == fits
        pure = ways.largest_epsilon(totals, 0.0)
        for factor, fits in ((1.0 - 1e-9, True), (1.01, False)):
            charges = ways.charges_of(PrivacyProfile.pure(factor * pure))
            assert ways.admits(totals.changed(charges)) == fits

    def test_fresh_budget_is_left_whole(self):
        assert Ways.shares_alone(3.0, 1e-5).largest_epsilon(Totals(), 1e-5) == pytest.approx(3.0)
        assert Ways.shares_alone(3.0, 0.0).largest_epsilon(Totals(), 0.0) == 3.0

    def test_no_gaussian_release_fits_a_pure_budget(self):
        assert Ways.both(3.0, 0.0).largest_epsilon(Totals(), 1e-5) == 0.0

    def test_nothing_is_left_beyond_the_budget(self):
        totals = Totals().changed(Charges(BEYOND, BEYOND, 1.0))
        ways = Ways.both(3.0, 1e-5)
        assert ways.largest_epsilon(totals, 1e-5) == ways.largest_epsilon(totals, 0.0) == 0.0
        assert ways.used(totals) == 1.0


class TestComposed:
    """Theorem P4."""

    @pytest.mark.parametrize(
        "part",
        [PrivacyProfile.gaussian(0.1), PrivacyProfile.pure(0.1)],
        ids=["gaussian", "pure"],
    )
    @pytest.mark.parametrize("count", [1, 5, 20])
    def test_totals_prove_no_less_than_the_composition(self, part, count):
        ways, totals = Ways.both(3.0, 1e-5), Totals()
        for _ in range(count):
            totals = totals.changed(ways.charges_of(part))
        for delta in (1e-5, 1e-6):
            found = ways.composed_epsilon(totals, delta)
            assert found >= (count * part).epsilon(delta) * (1.0 - 1e-9)
        assert ways.composed_epsilon(totals, 1e-5) <= 3.0

    def test_charges_beyond_every_budget_prove_nothing(self):
        totals = Totals().changed(Charges(BEYOND, BEYOND, 1.0))
        assert ways_epsilon(totals) == math.inf


def ways_epsilon(totals):
    return Ways.both(3.0, 1e-5).composed_epsilon(totals, 1e-5)
