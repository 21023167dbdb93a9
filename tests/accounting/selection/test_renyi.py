"""Rényi curves of selections: against dp_accounting."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant

from skdptune.accounting import Binomial, Geometric, Logarithmic, Poisson
from skdptune.accounting._losses import ORDERS, RenyiOfEvent
from skdptune.accounting._selection._bounds import RenyiSelected, is_covered


@pytest.mark.parametrize(
    ("distribution", "shape"), [(Geometric(0.1), 1.0), (Poisson(12.0), math.inf)]
)
def test_selection_agrees_with_the_reference(distribution, shape):
    # Theorem S3.
    run = RenyiOfEvent(dp_event.GaussianDpEvent(2.0))
    event = dp_event.RepeatAndSelectDpEvent(
        dp_event.GaussianDpEvent(2.0), distribution.mean, shape
    )
    accountant = RdpAccountant(list(ORDERS)).compose(event)
    ours = RenyiSelected(run, distribution).at(ORDERS)
    theirs = np.array(accountant.rdp)
    assert np.all(ours <= theirs * (1.0 + 1e-9))
    np.testing.assert_allclose(ours[ORDERS >= 4.0], theirs[ORDERS >= 4.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("distribution", "covered"),
    [
        (Geometric(0.1), True),
        (Logarithmic(0.1), True),
        (Poisson(1.0), True),
        (Poisson(0.99), False),
        (Binomial(3, 0.5), False),
    ],
)
def test_numbers_of_runs_that_no_theorem_covers_have_infinite_divergences(distribution, covered):
    assert is_covered(distribution) is covered
    curve = RenyiSelected(RenyiOfEvent(dp_event.GaussianDpEvent(2.0)), distribution)
    assert np.isfinite(curve.at(np.array([1.5, 2.0, 32.0]))).all() == covered
