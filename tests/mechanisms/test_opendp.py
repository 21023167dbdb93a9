"""OpenDP's noisy maximum: the right distribution, and no trace in the user's session."""

from __future__ import annotations

import numpy as np
import pytest
from opendp import mod
from scipy import stats

from skdptune.mechanisms import _noisy_max


@pytest.mark.parametrize("scale", [1e-9, 2.5, 1e9])
def test_exponential_noise_has_its_distribution(scale) -> None:
    # Theorem N2: of two candidates the worse wins with half the probability of the noise's tail.
    wins = sum(_noisy_max.noisy_max(np.array([0.0, scale]), scale) == 0 for _ in range(4000))
    assert stats.binomtest(wins, 4000, 0.5 * np.exp(-1.0)).pvalue > 1e-6


@pytest.mark.parametrize("before", [set(), {"contrib"}, {"floating-point"}])
def test_features_stay_as_the_user_left_them(monkeypatch, before) -> None:
    features = set(before)
    monkeypatch.setattr(mod, "GLOBAL_FEATURES", features)
    monkeypatch.setattr("opendp.mod.GLOBAL_FEATURES", features)
    _noisy_max._selector.cache_clear()
    _noisy_max.noisy_max(np.zeros(2), 1.0)
    assert features == before


def test_features_stay_when_making_fails(monkeypatch) -> None:
    features: set[str] = set()
    monkeypatch.setattr(mod, "GLOBAL_FEATURES", features)
    with pytest.raises(mod.OpenDPException):
        _noisy_max.noisy_max(np.zeros(2), -1.0)
    assert features == set()


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_opendp_states_the_same_cost_of_its_maximum(scale) -> None:
    # Theorem N2: scores that move by 1, in any direction, cost 2 / scale.
    assert _noisy_max._selector(scale).map(1.0) == pytest.approx(2.0 / scale, rel=1e-9)
