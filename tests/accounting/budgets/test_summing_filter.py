"""Filters that add up what releases cost: what is recorded, refused and kept."""

from __future__ import annotations

import pytest

from skdptune.accounting import BudgetExceededError, GaussianFilter, PrivacyProfile, RenyiFilter
from tests.accounting.budgets.interactions import filled

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
    with pytest.raises(BudgetExceededError, match="part must fit into what is left"):
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


def test_parts_are_profiles(make):
    with pytest.raises(TypeError, match="part must be a PrivacyProfile; got float"):
        make(1.0, 1e-3).fits(0.5)
    with pytest.raises(ValueError, match="count must be"):
        make(1.0, 1e-3).fits(PrivacyProfile.pure(0.1), 0)
