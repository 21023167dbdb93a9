"""Rényi curves of tuning, then fitting: against a naive transcription in many digits."""

import numpy as np
import pytest
from dp_accounting import dp_event

from skdptune.accounting._losses import RenyiOfEvent, RenyiOfPure
from skdptune.accounting._tuning._tune_then_fit import RenyiTuneThenFit
from tests.accounting.oracles_profile import renyi_of_response, renyi_of_tune_then_fit


def gaussian(mu):
    return RenyiOfEvent(dp_event.GaussianDpEvent(1.0 / mu))


PARTS = {
    "gaussian, pure": (gaussian(1.4), RenyiOfPure(0.6)),
    "pure, gaussian": (RenyiOfPure(2.0), gaussian(0.5)),
    "alike": (gaussian(0.3), gaussian(0.3)),
}
EXACT = {
    "gaussian, pure": (lambda k: k * 0.98, lambda k: renyi_of_response(0.6, k)),
    "pure, gaussian": (lambda k: renyi_of_response(2.0, k), lambda k: k * 0.125),
    "alike": (lambda k: k * 0.045, lambda k: k * 0.045),
}


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.5, 0.95])
@pytest.mark.parametrize("parts", PARTS)
def test_tuning_then_fitting_follows_the_printed_theorem(parts, fraction):
    # Theorem T5.
    curve = RenyiTuneThenFit(*PARTS[parts], fraction)
    for order in (2, 3, 4, 11, 40, 128):
        printed = renyi_of_tune_then_fit(*EXACT[parts], fraction, order)
        assert curve.at(np.array([float(order)]))[0] == pytest.approx(printed, rel=1e-9, abs=0.0)


def test_tuning_then_fitting_approaches_its_parts():
    tune, fit = gaussian(1.4), gaussian(0.5)
    orders = np.array([2.0, 5.0, 20.0])
    almost_none = RenyiTuneThenFit(tune, fit, 1e-12).at(orders)
    almost_all = RenyiTuneThenFit(tune, fit, 1.0 - 1e-12).at(orders)
    np.testing.assert_allclose(almost_none, fit.at(orders), rtol=1e-6)
    np.testing.assert_allclose(almost_all, tune.at(orders), rtol=1e-6)
