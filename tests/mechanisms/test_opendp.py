"""OpenDP's samplers: the right distribution, and no trace in the user's session."""

from __future__ import annotations

import numpy as np
import pytest
from opendp import mod
from scipy import stats

from skdptune.mechanisms import _opendp


@pytest.mark.parametrize(
    ("add", "distribution"),
    [(_opendp.add_gaussian, stats.norm), (_opendp.add_laplace, stats.laplace)],
)
@pytest.mark.parametrize("scale", [1e-9, 2.5, 1e9])
def test_noise_has_its_distribution(add, distribution, scale) -> None:
    noisy = add(np.full(4000, 3.0 * scale), scale)
    assert stats.kstest(noisy / scale - 3.0, distribution.cdf).pvalue > 1e-6


@pytest.mark.parametrize("before", [set(), {"contrib"}, {"floating-point"}])
def test_features_stay_as_the_user_left_them(monkeypatch, before) -> None:
    features = set(before)
    monkeypatch.setattr(mod, "GLOBAL_FEATURES", features)
    monkeypatch.setattr("opendp.mod.GLOBAL_FEATURES", features)
    _opendp._sampler.cache_clear()
    _opendp._selector.cache_clear()
    _opendp.add_gaussian(np.zeros(1), 1.0)
    _opendp.noisy_max(np.zeros(2), 1.0)
    assert features == before


def test_features_stay_when_making_fails(monkeypatch) -> None:
    features: set[str] = set()
    monkeypatch.setattr(mod, "GLOBAL_FEATURES", features)
    with pytest.raises(mod.OpenDPException):
        _opendp.add_gaussian(np.zeros(1), -1.0)
    assert features == set()


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_opendp_states_the_same_cost_of_its_samplers(scale) -> None:
    gaussian, laplace = (_opendp._sampler(noise, scale) for noise in ("gaussian", "laplace"))
    assert gaussian.map(1.0) == pytest.approx(0.5 / scale**2, rel=1e-9)
    assert laplace.map(1.0) == pytest.approx(1.0 / scale, rel=1e-9)
