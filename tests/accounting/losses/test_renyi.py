"""Rényi curves of profiles: against naive transcriptions in many digits."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp import rdp_privacy_accountant as reference

from skdptune.accounting import BoundNotApplicableError, Geometric, PrivacyProfile
from tests.accounting.cases import few, steps
from tests.accounting.oracles_profile import (
    gaussian_delta,
    renyi_of_response,
    renyi_of_sampled_gaussian,
)

from_event = PrivacyProfile.from_event


def curve_of(event):
    return from_event(event, discretization=0.1)


@pytest.mark.parametrize(
    ("epsilon", "order"),
    few(12, [1e-6, 1e-4, 1e-3, 0.1, 1.0, 10.0, 100.0], [1.001, 1.1, 1.5, 2.0, 10.0, 1e3, 1e6]),
)
def test_pure_divergence_is_that_of_randomised_response(epsilon, order):
    exact = renyi_of_response(epsilon, order)
    value = PrivacyProfile.pure(epsilon).rdp(order)
    assert exact * (1.0 - 1e-9) <= value <= exact * (1.0 + 1e-9)


def test_event_divergence_is_the_accountants():
    # Theorem P9: curves from Rényi divergences, and divergences between orders.
    event = steps(0.01, 2.0, 100)
    profile = curve_of(event)
    orders = np.array([2.0, 3.0, 17.0, 64.0])
    accountant = RdpAccountant(orders).compose(event)
    np.testing.assert_allclose(profile.rdp(orders), accountant.rdp, rtol=1e-9)
    others = np.array([1.5, 2.5, 5000.0])
    assert profile.rdp(others).tolist() == list(RdpAccountant(others).compose(event).rdp)
    # What was said cannot be overwritten, and no order changes another.
    profile.rdp(orders)[:] = 0.0
    assert profile.rdp([2.5, 3.0])[1] == profile.rdp(orders)[1]
    exact = [100 * renyi_of_sampled_gaussian(0.5, 0.01, int(order)) for order in orders]
    np.testing.assert_allclose(profile.rdp(orders), exact, rtol=1e-9)


@pytest.mark.parametrize(
    ("rate", "noise"), few(8, [1e-9, 1e-4, 0.05, 0.9, 1.0 - 1e-9], [0.02, 0.5, 4.0, 1e3, 1e6])
)
def test_divergence_of_a_sampled_gaussian_is_rounded_up(rate, noise):
    # Theorem P9: curves from Rényi divergences, and divergences between orders.
    profile = curve_of(steps(rate, noise, 7))
    for order in (2, 3, 17, 300):
        with mpmath.workdps(60):
            q, s = mpmath.mpf(rate), mpmath.mpf(noise)
            moment = mpmath.fsum(
                mpmath.binomial(order, k) * q**k * (1 - q) ** (order - k)
                * mpmath.exp((k * k - k) / (2 * s * s))
                for k in range(order + 1)
            )  # fmt: skip
            exact = 7 * mpmath.log(moment) / (order - 1)
            assert exact <= profile.rdp(float(order)) <= exact * (1 + mpmath.mpf(1e-9))


@pytest.mark.parametrize("name", ["gaussian", "pure", "strong"])
def test_a_table_is_an_upper_bound_between_its_orders(name):
    # Theorem P9: what is written keeps the divergences of some orders.
    profile = {
        "gaussian": PrivacyProfile.gaussian(0.7),
        "pure": PrivacyProfile.pure(0.5),
        "strong": PrivacyProfile.pure(3.0),
    }[name]
    table = PrivacyProfile.from_dict(profile.to_dict())
    between = np.append(np.linspace(1.01, 20.0, 400), [50.5, 777.7, 1024.0])
    assert np.all(table.rdp(between) >= profile.rdp(between) * (1.0 - 1e-12))
    above = between[between > 2.0]
    assert np.all(table.rdp(above) <= profile.rdp(above) * 1.3)
    assert table.rdp(1024.001) == math.inf


@pytest.mark.parametrize(("fraction", "mu"), few(6, [1e-4, 0.01, 0.3, 0.9], [0.2, 1.0, 2.0]))
def test_sampling_of_anything_bounds_the_sampled_gaussian(mu, fraction):
    # Theorem P10: rényi divergences of any release on a Poisson sample.
    sampled = PrivacyProfile.gaussian(mu).subsampled(fraction)
    for order in (2, 3, 5, 17, 64, 128):
        exact = renyi_of_sampled_gaussian(mu, fraction, order)
        assert sampled.rdp(float(order)) >= exact * (1.0 - 1e-9)
        assert order > 2 or sampled.rdp(2.0) == pytest.approx(exact, rel=1e-9, abs=1e-20)


@pytest.mark.parametrize(
    ("fraction", "mu"), few(8, [1e-9, 1e-4, 0.01, 0.3, 0.999], [1e-12, 1e-8, 0.2, 1.0, 6.0])
)
def test_sampling_follows_the_printed_theorem(mu, fraction):
    """Zhu and Wang (2019), Theorem 5, rounded up."""
    # Theorem P10: rényi divergences of any release on a Poisson sample.
    sampled, whole = PrivacyProfile.gaussian(mu).subsampled(fraction), PrivacyProfile.gaussian(mu)
    for order in (2, 3, 10, 128):
        with mpmath.workdps(60):
            q, exact = mpmath.mpf(fraction), (1 - mpmath.mpf(fraction)) ** (order - 1)
            exact *= 1 + (order - 1) * q
            for k in range(2, order + 1):
                weight = mpmath.binomial(order, k) * q**k * (1 - q) ** (order - k)
                moment = mpmath.exp((k - 1) * mpmath.mpf(whole.rdp(float(k))))
                exact += (3 if k > 2 else 1) * weight * moment
            exact = mpmath.log(exact) / (order - 1)
            found = sampled.rdp(float(order))
            assert exact <= found <= exact * (1 + 1e-9) + 1e-14 * fraction


@pytest.mark.parametrize("rho", [1e-3, 0.1, 2.0])
def test_deltas_are_the_references(rho):
    # Theorem P9: for a release of which only the divergences are known.
    profile = from_event(dp_event.ZCDpEvent(rho, 0.0), discretization=1e-3)
    orders = np.concatenate([np.linspace(1.01, 10.0, 2000), np.geomspace(10.0, 1024.0, 2000)])
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0, 7.0):
        least, _ = reference.compute_delta(orders, orders * rho, epsilon)
        found = profile.delta(epsilon)
        assert found <= least * 1.02 + 1e-12
        # Convexity proves more than the orders do, and never more than the Gaussian has.
        assert found >= gaussian_delta(math.sqrt(2.0 * rho), epsilon)
    unknown = PrivacyProfile.from_curve([1.0], [1e-5])
    with pytest.raises(BoundNotApplicableError):
        unknown.selected(Geometric(0.1), "rdp")
