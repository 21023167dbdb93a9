"""The sampled Gaussian mechanism's losses: dp_accounting's own, and the inverse of the loss."""

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld

from skdptune.accounting._losses._dp_accounting import losses_of_event
from skdptune.accounting._losses._sampled_gaussian import _before_sampling, sampled_gaussian_pld


@pytest.mark.parametrize("deviation", [0.15, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("rate", [1e-6, 2e-4, 0.01, 0.3, 0.999])
def test_losses_are_those_of_dp_accounting(deviation, rate):
    # Theorem P7.
    known = pld.from_gaussian_mechanism(
        deviation, value_discretization_interval=1e-3, sampling_prob=rate
    )
    found = sampled_gaussian_pld(deviation, rate, 1e-3)
    for side in ("_pmf_remove", "_pmf_add"):
        one, other = (getattr(each, side).to_dense_pmf() for each in (known, found))
        assert one._lower_loss == other._lower_loss
        assert other._infinity_mass == pytest.approx(one._infinity_mass, rel=1e-9, abs=1e-30)
        np.testing.assert_allclose(other._probs, one._probs, rtol=1e-6, atol=2e-11)


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 0.999])
def test_the_loss_before_sampling_has_the_loss_after_it(rate):
    before = np.concatenate([-np.geomspace(1e-6, 30.0, 50), [0.0], np.geomspace(1e-6, 700.0, 50)])
    after = np.logaddexp(np.log1p(-rate), np.log(rate) + before)
    again = _before_sampling(after, rate)
    # A loss after sampling of x says as much of the one before as its rounding leaves.
    error = 5e-14 * (1.0 + np.abs(after)) / (rate * np.exp(np.minimum(before - after, 0.0)))
    assert (np.abs(again - before) <= error + 1e-14 * np.abs(before)).all()


def test_losses_that_no_outcome_has_are_below_all():
    rate = 0.25
    least = np.log1p(-rate)
    found = _before_sampling(np.array([least - 1.0, least - 1e-12, 0.0]), rate)
    assert found.tolist() == [-np.inf, -np.inf, 0.0]


@pytest.mark.parametrize(
    "event",
    [
        dp_event.PoissonSampledDpEvent(0.0, dp_event.GaussianDpEvent(2.0)),
        dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(0.0)),
        dp_event.PoissonSampledDpEvent(1.0, dp_event.GaussianDpEvent(2.0)),
        dp_event.PoissonSampledDpEvent(0.1, dp_event.LaplaceDpEvent(2.0)),
        dp_event.ComposedDpEvent(
            [
                dp_event.GaussianDpEvent(3.0),
                dp_event.SelfComposedDpEvent(
                    dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(2.0)), 30
                ),
            ]
        ),
    ],
)
def test_events_cost_what_the_accountant_says(event):
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(event)
    remove, add = losses_of_event(event, 1e-3)
    for epsilon in (0.01, 0.3, 1.0, 2.0):
        found = max(_delta(side, epsilon) for side in (remove, add))
        assert found == pytest.approx(accountant.get_delta(epsilon), rel=1e-6, abs=1e-13)


def _delta(losses, epsilon):
    grid = (losses.lowest + np.arange(losses.masses.size)) * losses.step
    return losses.infinity - np.sum(losses.masses * np.minimum(np.expm1(epsilon - grid), 0.0))


@pytest.mark.parametrize("rest", [1e-6, 1e-12, 2.0**-53])
def test_a_rate_near_one_keeps_the_digits_of_what_is_left(rest):
    """Adding a record: the largest loss is -log(1 - rate), and is likely where noise is low."""
    with mpmath.workdps(50):
        for below in (1e-3, 0.1, 2.0):
            loss = float(np.log(rest)) + below
            found = float(_before_sampling(np.array([loss]), 1.0 - rest)[0])
            exact = mpmath.log(1 + mpmath.expm1(mpmath.mpf(loss)) / mpmath.mpf(1.0 - rest))
            # The loss itself is rounded, to 4e-15 near 36.
            assert found == pytest.approx(float(exact), abs=2e-14 + 1e-14 / below)


def test_rates_of_single_precision_cost_no_less():
    rate = np.float32(1.0 - 1e-6)
    exact = losses_of_event(_sampled(float(rate)), 1e-3)
    for found, known in zip(losses_of_event(_sampled(rate), 1e-3), exact, strict=True):
        np.testing.assert_array_equal(found.masses, known.masses)


def _sampled(rate):
    return dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(0.5))
