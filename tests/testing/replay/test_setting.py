"""What is claimed, and whether the number of records may be used, is read off the estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPRandomSearchCV
from skdptune.preprocessing import DPStandardScaler, RowNormClipper
from skdptune.testing._published import fit, neighbours
from skdptune.testing._replay_neighbours import make_setting
from tests.testing.replay import leaks

X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(60, 3))
Y = np.arange(60) % 2


def setting_of(estimator):
    data = neighbours(X, Y, (X[0], 1))
    setting = make_setting(estimator, data, 10)
    leaves = fit(setting.sized, data.without, data.rows, np.random.SeedSequence(0))
    return setting, setting.claim(leaves)


@pytest.mark.parametrize("free", [Normalizer(), RowNormClipper()], ids=["normalizer", "clipper"])
def test_free_steps_need_no_public_size(free) -> None:
    right = make_pipeline(free, DPLogisticRegression(solver="output", data_norm=2.0))
    assert not setting_of(right)[1].size_is_public
    mixed = make_pipeline(DPStandardScaler(bounds=(-1, 1)), leaks.NoisyMean())
    # The second step has no constant, and the first one's report states what it needs.
    assert setting_of(mixed)[1].size_is_public


def test_a_public_size_that_is_refused_is_not_set() -> None:
    classifier = DPLogisticRegression(solver="output", data_norm=2.0)
    search = DPRandomSearchCV(classifier, {"C": [1.0]}, n_iter=1, epsilon=1.0)
    setting, claim = setting_of(search)
    assert setting.sized is search
    assert claim.size_is_public


def test_chances_and_shifts_follow_from_the_profile() -> None:
    setting, claim = setting_of(leaks.NoisyMean())
    # Theorem V1.
    assert claim.shift == pytest.approx(0.25, rel=0.05)
    assert claim.allowed("record replaced") == 2.0 * claim.allowed("record added")
    # Theorem V2.
    assert 0.5**9 < claim.chances["record added"] < claim.chances["record replaced"] < 0.02
    result = setting.result([])
    assert (result.estimator, result.n_repeats, result.delta) == ("NoisyMean", 10, 1e-5)
    assert result.epsilon == pytest.approx(setting.profile.epsilon(1e-5))
