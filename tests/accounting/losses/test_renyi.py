"""Rényi curves: against naive transcriptions in many digits."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp import rdp_privacy_accountant as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting._losses import (
    ORDERS,
    RenyiMaximum,
    RenyiMultiple,
    RenyiOfEvent,
    RenyiOfPure,
    RenyiSubsampled,
    RenyiSum,
    RenyiTable,
    RenyiUnknown,
)
from tests.accounting.cases import few
from tests.accounting.oracles_profile import (
    renyi_of_any_sample,
    renyi_of_response,
    renyi_of_sampled_gaussian,
)


def gaussian(mu):
    return RenyiOfEvent(dp_event.GaussianDpEvent(1.0 / mu))


def only(curve, order):
    return float(curve.at(np.array([float(order)]))[0])


@pytest.mark.parametrize(
    ("epsilon", "order"),
    few(12, [1e-6, 1e-4, 1e-3, 0.1, 1.0, 10.0, 100.0], [1.001, 1.1, 1.5, 2.0, 10.0, 1e3, 1e6]),
)
def test_pure_divergence_is_that_of_randomised_response(epsilon, order):
    exact = renyi_of_response(epsilon, order)
    value = only(RenyiOfPure(epsilon), order)
    assert exact * (1.0 - 1e-9) <= value <= exact * (1.0 + 1e-9)


def test_pure_divergence_at_the_ends():
    assert RenyiOfPure(0.0).at(np.array([1.5, 2.0, 1e6])).tolist() == [0.0, 0.0, 0.0]
    # The divergence of infinite order is the largest loss.
    assert only(RenyiOfPure(0.7), math.inf) == pytest.approx(0.7, rel=1e-12, abs=0.0)
    assert only(RenyiOfPure(0.0), math.inf) == 0.0
    assert only(RenyiOfPure(600.0), 1e300) == pytest.approx(600.0, rel=1e-9, abs=0.0)


def test_event_divergence_is_the_accountants():
    # Theorem P9.
    step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(2.0))
    event = dp_event.SelfComposedDpEvent(step, 100)
    orders = np.array([2.0, 3.0, 17.0, 64.0])
    accountant = RdpAccountant(orders).compose(event)
    np.testing.assert_allclose(RenyiOfEvent(event).at(orders), accountant.rdp, rtol=1e-9)
    others = np.array([1.5, 2.5, 5000.0])
    said = RdpAccountant(others).compose(event).rdp
    assert RenyiOfEvent(event).at(others).tolist() == list(said)
    assert RenyiOfEvent(event).at(np.array([2.5, 3.0]))[1] == RenyiOfEvent(event).at(orders)[1]
    exact = [100 * renyi_of_sampled_gaussian(0.5, 0.01, int(order)) for order in orders]
    np.testing.assert_allclose(RenyiOfEvent(event).at(orders), exact, rtol=1e-9)


@pytest.mark.parametrize(
    ("rate", "noise"), few(12, [1e-9, 1e-4, 0.05, 0.9, 1.0 - 1e-9], [0.02, 0.5, 4.0, 1e3, 1e6])
)
def test_divergence_of_a_sampled_gaussian_is_rounded_up(rate, noise):
    # Theorem P9.
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    for order in (2, 3, 17, 300):
        with mpmath.workdps(60):
            q, s = mpmath.mpf(rate), mpmath.mpf(noise)
            moment = mpmath.fsum(
                mpmath.binomial(order, k) * q**k * (1 - q) ** (order - k)
                * mpmath.exp((k * k - k) / (2 * s * s))
                for k in range(order + 1)
            )  # fmt: skip
            exact = 7 * mpmath.log(moment) / (order - 1)
            found = only(RenyiOfEvent(dp_event.SelfComposedDpEvent(step, 7)), order)
            assert exact <= found <= exact * (1 + mpmath.mpf(1e-9))


def test_what_an_event_said_cannot_be_overwritten():
    curve = gaussian(1.0)
    orders = np.array([2.0, 3.0])
    curve.at(orders)[:] = 0.0
    assert curve.at(orders).tolist() == [1.0, 1.5]


def test_sums_multiples_and_maxima_are_pointwise():
    orders = np.array([1.5, 2.0, 8.0, 100.0])
    first, second = gaussian(1.0), RenyiOfPure(0.3)
    a, b = first.at(orders), second.at(orders)
    assert RenyiSum((first, second, first)).at(orders) == pytest.approx(
        2 * a + b, rel=1e-15, abs=0.0
    )
    assert RenyiMultiple(7, second).at(orders) == pytest.approx(7 * b, rel=1e-15, abs=0.0)
    assert RenyiMaximum((first, second)).at(orders) == pytest.approx(
        np.maximum(a, b), rel=1e-15, abs=0.0
    )
    nothing = RenyiUnknown()
    for curve in (
        RenyiSum((first, nothing)),
        RenyiMultiple(2, nothing),
        RenyiMaximum((nothing, first)),
        RenyiSubsampled(nothing, 0.1),
        nothing,
    ):
        assert np.all(curve.at(orders) == math.inf)


@pytest.mark.parametrize(
    "curve", [gaussian(0.7), RenyiOfPure(0.5), RenyiOfPure(3.0)], ids=["gaussian", "0.5", "3"]
)
def test_a_table_is_an_upper_bound_between_its_orders(curve):
    # Theorem P9.
    known = np.array([1.5, 2.0, 3.0, 5.0, 20.0])
    table = RenyiTable(tuple(known), tuple(curve.at(known)))
    np.testing.assert_allclose(table.at(known), curve.at(known), rtol=1e-12)
    between = np.linspace(1.01, 20.0, 400)
    assert np.all(table.at(between) >= curve.at(between) * (1.0 - 1e-12))
    # ... and no worse than the next order that is known.
    assert np.all(
        table.at(between)
        <= curve.at(known[np.searchsorted(known, between)]) * (1.0 + 1e-12) + 1e-12
    )
    assert only(table, 20.000001) == math.inf


def test_a_table_leaves_out_what_is_infinite():
    table = RenyiTable((2.0, 3.0, 4.0), (1.0, math.inf, 3.0))
    # The chord of (order - 1) * divergence: from 1 at 2 to 9 at 4.
    assert only(table, 3.0) == pytest.approx(5.0 / 2.0)
    assert only(table, 1.2) == 1.0
    assert np.all(RenyiTable((2.0,), (math.inf,)).at(ORDERS) == math.inf)


@pytest.mark.parametrize("fraction", [1e-4, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_sampling_follows_the_printed_theorem(mu, fraction):
    # Theorem P10.
    curve = RenyiSubsampled(gaussian(mu), fraction)
    for order in (2, 3, 4, 10, 33, 128):
        printed = renyi_of_any_sample(lambda k: k * mu * mu / 2.0, fraction, order)
        assert only(curve, order) == pytest.approx(printed, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("fraction", [1e-4, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("mu", [0.2, 1.0, 2.0])
def test_sampling_of_anything_bounds_the_sampled_gaussian(mu, fraction):
    # Theorem P10.
    curve = RenyiSubsampled(gaussian(mu), fraction)
    for order in (2, 3, 5, 17, 64, 128):
        exact = renyi_of_sampled_gaussian(mu, fraction, order)
        assert only(curve, order) >= exact * (1.0 - 1e-9)
    assert only(curve, 2) == pytest.approx(
        renyi_of_sampled_gaussian(mu, fraction, 2), rel=1e-9, abs=0.0
    )


@pytest.mark.parametrize("fraction", [1e-9, 1e-4, 0.3, 0.999])
@pytest.mark.parametrize("mu", [1e-12, 1e-8, 1e-3, 1.0, 6.0])
def test_sampling_is_rounded_up(mu, fraction):
    # Theorem P10.
    curve = RenyiSubsampled(gaussian(mu), fraction)
    for order in (2, 3, 10, 128):
        with mpmath.workdps(60):
            q, exact = mpmath.mpf(fraction), (1 - mpmath.mpf(fraction)) ** (order - 1)
            exact *= 1 + (order - 1) * q
            for k in range(2, order + 1):
                weight = mpmath.binomial(order, k) * q**k * (1 - q) ** (order - k)
                moment = mpmath.exp((k - 1) * mpmath.mpf(only(gaussian(mu), k)))
                exact += (3 if k > 2 else 1) * weight * moment
            exact = mpmath.log(exact) / (order - 1)
            found = only(curve, order)
            assert exact <= found <= exact * (1 + 1e-9) + 1e-14 * fraction


def test_sampling_between_integers_and_outside():
    curve = RenyiSubsampled(gaussian(1.0), 0.1)
    divergences = {order: only(curve, order) for order in (2, 3, 4)}
    middle = only(curve, 3.5) * 2.5
    assert middle == pytest.approx(
        (2 * divergences[3] + 3 * divergences[4]) / 2.0, rel=1e-12, abs=0.0
    )
    assert only(curve, 1.1) == divergences[2]
    assert only(curve, 129.0) == math.inf
    assert only(curve, math.inf) == math.inf
    assert curve.at(np.array([])).size == 0
    # The value at one order must not depend on the other orders.
    many = curve.at(np.array([4.0, 2.5, 100.0]))
    assert many[0] == divergences[4] and many[1] == only(curve, 2.5)


@pytest.mark.parametrize(
    "curve",
    [gaussian(0.5), gaussian(3.0), RenyiOfPure(0.2), RenyiMultiple(50, RenyiOfPure(0.1))],
    ids=["0.5", "3", "pure", "50 pure"],
)
def test_deltas_are_the_references(curve):
    # Theorem P9.
    divergences = curve.at(ORDERS)
    epsilons = np.array([0.0, 1e-3, 0.1, 0.5, 1.0, 3.0, 7.0, 20.0])
    deltas = curve.delta(epsilons)
    for epsilon, delta in zip(epsilons, deltas, strict=True):
        theirs, _ = reference.compute_delta(ORDERS, divergences, epsilon)
        assert delta == pytest.approx(theirs, rel=1e-9, abs=1e-300)


def test_deltas_of_whole_numbers_are_not_rounded():
    curve = gaussian(0.5)
    assert curve.delta(np.array([1, 2])).tolist() == curve.delta(np.array([1.0, 2.0])).tolist()


def test_deltas_without_any_order_are_trivial():
    assert RenyiUnknown().delta(np.array([0.0, 5.0])).tolist() == [1.0, 1.0]


@settings(max_examples=30)
@given(st.floats(1e-3, 5.0), st.floats(1e-4, 0.999), st.integers(2, 60))
def test_sampling_costs_less_than_ever_larger_samples(mu, fraction, order):
    smaller = only(RenyiSubsampled(gaussian(mu), fraction / 2.0), order)
    larger = only(RenyiSubsampled(gaussian(mu), fraction), order)
    assert 0.0 <= smaller <= larger * (1.0 + 1e-9)
