"""The filter of threshold rounds, and common properties of filters that add up costs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import (
    BudgetExceededError,
    BudgetFilter,
    GaussianFilter,
    PrivacyProfile,
    RenyiFilter,
)
from tests.accounting.budgets.interactions import filled
from tests.accounting.cases import few

deterministic = settings(derandomize=True, deadline=None, max_examples=25)
# Sixty outcomes, as the bits of a number: drawing a list takes ten times as long.
outcomes = st.integers(0, 2**60 - 1).map(lambda bits: [bits >> i & 1 == 1 for i in range(60)])
decimals = st.integers(1, 5000).map(lambda n: n / 1000)


def cost_of(history, round_epsilon):
    """Return what a search has cost, added up one round at a time."""
    return sum((round_epsilon if hit else round_epsilon / 2 for hit in history), Fraction(0))


def run(budget_filter, hits):
    """Record outcomes until the filter stops or they run out."""
    for hit in hits:
        if not budget_filter.may_continue:
            break
        budget_filter.record(hit)
    return budget_filter


class TestAgainstExactArithmetic:
    """Theorem N4."""

    @given(st.fractions(Fraction(1, 100), 5), st.fractions(1, 12), outcomes)
    @deterministic
    def test_goes_on_exactly_while_a_hit_still_fits(self, round_epsilon, factor, hits):
        budget = factor * round_epsilon
        budget_filter = BudgetFilter(round_epsilon, budget)
        for hit in hits:
            cost = cost_of(budget_filter.history, round_epsilon)
            assert cost <= budget
            assert budget_filter.may_continue == (cost + round_epsilon <= budget)
            if not budget_filter.may_continue:
                break
            budget_filter.record(hit)
        assert not budget_filter.may_continue

    @given(decimals, decimals, st.integers(1, 12), outcomes)
    @deterministic
    def test_cap_and_budget_stop_at_the_first_of_both(self, size, extra, cap, hits):
        budget = size + extra
        both = run(BudgetFilter(size, budget, cap), hits)
        alone = run(BudgetFilter(size, budget), hits)
        assert both.history == alone.history[:cap]
        assert both.rounds <= both.max_possible_rounds <= cap

    @given(st.floats(1e-6, 5), st.floats(1, 20), outcomes)
    @deterministic
    def test_float_spending_never_passes_the_float_budget(self, size, factor, hits):
        budget = size * factor
        budget_filter = run(BudgetFilter(size, budget), hits)
        assert budget_filter.spent <= budget_filter.max_possible_spent <= budget
        shares = Fraction(budget_filter.spent) / Fraction(size) * 2
        assert float(shares) == pytest.approx(round(shares), rel=1e-15)


class TestRounding:
    @pytest.mark.parametrize(
        ("round_epsilon", "budget", "hits"),
        [(0.1, 1.0, 10), (0.1, 0.3, 3), (0.01, 0.29, 29), (0.7, 4.9, 7), (1e-5, 1e-3, 100)],
    )
    def test_typed_numbers_divide_as_they_read(self, round_epsilon, budget, hits):
        # Sums of floats, or their exact binary values, would lose a round in these.
        budget_filter = run(BudgetFilter(round_epsilon, budget), itertools.repeat(True, 1000))
        assert budget_filter.rounds == hits
        assert budget_filter.spent == budget

    def test_a_budget_a_trifle_short_loses_the_round(self):
        exact = Fraction(3, 10)
        assert run(BudgetFilter(Fraction(1, 10), exact), [True] * 9).rounds == 3
        short = exact - Fraction(1, 10**30)
        assert run(BudgetFilter(Fraction(1, 10), short), [True] * 9).rounds == 2
        assert run(BudgetFilter(0.1, math.nextafter(0.3, 0.0)), [True] * 9).rounds == 2


class TestLargestNumbers:
    """Theorem N4."""

    @pytest.mark.parametrize(("halves", "cap"), few(12, range(2, 13), [None, 1, 2, 3, 5, 8]))
    def test_bounds_are_attained_over_all_searches(self, halves, cap):
        def stopped_after(history):
            budget_filter = run(BudgetFilter(Fraction(1, 3), Fraction(halves, 6), cap), history)
            if not budget_filter.may_continue:
                return [budget_filter]
            return stopped_after((*history, True)) + stopped_after((*history, False))

        stopped = stopped_after(())
        assert max(each.rounds for each in stopped) == stopped[0].max_possible_rounds
        assert max(each.spent for each in stopped) == stopped[0].max_possible_spent


class TestRefusals:
    def test_a_round_too_many_is_refused_and_leaves_no_trace(self):
        budget_filter = run(BudgetFilter(0.25, 0.5), [True, True])
        message = (
            r"spent must leave 0\.25 of the budget .*; got 0\.5 spent of 0\.5\. Check may_con"
        )
        with pytest.raises(BudgetExceededError, match=message):
            budget_filter.record(False)
        assert budget_filter.history == (True, True)
        assert budget_filter.spent == 0.5

    def test_the_cap_is_named(self):
        budget_filter = run(BudgetFilter(0.1, 5.0, 2), [True, False])
        with pytest.raises(BudgetExceededError, match="rounds must be at most 2; got one more"):
            budget_filter.record(True)


class TestState:
    def test_the_history_that_is_shown_cannot_change_the_filter(self):
        budget_filter = BudgetFilter(0.1, 1.0)
        budget_filter.record(True)
        shown = budget_filter.history
        budget_filter.record(False)
        assert shown == (True,)
        assert budget_filter.history == (True, False)
        for name in ("history", "spent", "rounds", "may_continue", "max_possible_rounds", "other"):
            with pytest.raises(AttributeError):
                setattr(budget_filter, name, 0)


# Filters that add up what releases cost --------------------------------------------------

MAKERS = {
    "gaussian": GaussianFilter,
    "renyi": lambda epsilon, delta, **more: RenyiFilter(epsilon, delta, 8.0, **more),
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def test_a_release_too_many_is_refused_and_leaves_no_trace(make):
    total = filled(make(1.0, 1e-3), PrivacyProfile.gaussian(0.1))
    before = (total.spent, total.n_parts)
    with pytest.raises(BudgetExceededError, match="part must fit into the remaining budget"):
        total.record(PrivacyProfile.gaussian(0.1))
    assert (total.spent, total.n_parts) == before
    # What is smaller may still fit.
    total.record(PrivacyProfile.pure(0.0))
    assert total.n_parts == before[1] + 1


def test_infinite_cost_never_fits(make):
    total = make(5.0, 1e-3, failure=9e-4)
    assert not total.fits(PrivacyProfile.approximate(0.0, 1.0))
    assert not total.fits(PrivacyProfile.pure(500.0))


@pytest.mark.parametrize("count", [2, 3, 7])
def test_several_fit_if_they_can_be_recorded_one_by_one(make, count):
    part = PrivacyProfile.gaussian(0.2)
    total = make(1.0, 1e-3)
    total.record(PrivacyProfile.gaussian(0.1))
    fits = total.fits(part, count)
    assert fits is (filled(total, part).n_parts >= count + 1)


def test_an_emptied_filter_is_another_one_of_the_same_total(make):
    total = make(2.0, 1e-5)
    before = repr(total)
    total.record(PrivacyProfile.pure(0.1))
    other = total.emptied()
    assert repr(other) == before != repr(total)
    assert other.profile == total.profile
    other.record(PrivacyProfile.pure(0.1))
    other.record(PrivacyProfile.pure(0.1))
    assert (total.n_parts, other.n_parts) == (1, 2)


def test_attributes_are_read_only(make):
    total = make(2.0, 1e-5)
    for name in ("budget", "profile", "spent", "spent_failure", "n_parts", "failure", "other"):
        with pytest.raises(AttributeError):
            setattr(total, name, 0)
