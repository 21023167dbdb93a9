"""What is claimed, and whether the number of records may be used, is read off the estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPRandomSearchCV
from skdptune.preprocessing import DPStandardScaler, RowNormClipper
from skdptune.testing._published import fit, neighbours, same
from skdptune.testing._replay_neighbours import make_setting
from tests.testing.replay import leaks

X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(60, 3))
Y = np.arange(60) % 2


def setting_of(estimator):
    data = neighbours(X, Y, (X[0], 1))
    setting = make_setting(estimator, data, 10)
    leaves = fit(setting.sized, data.without, data.rows, np.random.SeedSequence(0))
    return setting, setting.claim(leaves), setting.claim_of_given(leaves)


def test_open_public_sizes_are_set_and_nothing_may_follow_from_the_real_one() -> None:
    setting, claim, of_given = setting_of(DPLogisticRegression(solver="output"))
    assert setting.sized.n_public == 60 and setting.given.n_public is None
    assert not claim.size_is_public and of_given.size_is_public
    assert claim.compares_sizes and claim.adds and claim.replacing == 2


def test_the_users_public_size_stays() -> None:
    setting, claim, of_given = setting_of(DPLogisticRegression(solver="output", n_public=50))
    assert setting.sized is setting.given or setting.sized.n_public == 50
    assert claim == of_given and not claim.size_is_public
    assert all(same(*pair) for pair in setting.announced().values())


def test_guarantees_at_a_public_size_compare_records_in_their_places() -> None:
    for estimator in (DPLogisticRegression(solver="psgd"), Replaces()):
        setting, claim, _ = setting_of(estimator)
        assert setting.sized is estimator
        assert claim.size_is_public and not claim.adds and not claim.compares_sizes
    assert claim.replacing == 1


class Replaces(leaks.NoisyMean):
    neighbouring = "replace one of a public number of records"


def test_without_a_public_constant_the_words_of_the_report_decide() -> None:
    assert not setting_of(leaks.NoisyMean())[1].size_is_public
    assert setting_of(leaks.NoisyMean())[1].compares_sizes

    class States(leaks.HasPublicSize):
        def __init__(self, noise=4.0, random_state=None):
            super().__init__(noise, random_state)
            del self.n_public

        n_public = None

    _, claim, _ = setting_of(States())
    assert claim.size_is_public and not claim.compares_sizes


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
    setting, claim, _ = setting_of(search)
    assert setting.sized is search
    assert claim.size_is_public


def test_chances_and_shifts_follow_from_the_profile() -> None:
    setting, claim, _ = setting_of(leaks.NoisyMean())
    # Theorem V1.
    assert claim.shift == pytest.approx(0.25, rel=0.05)
    assert claim.allowed("record replaced") == 2.0 * claim.allowed("record added")
    # Theorem V2.
    assert 0.5**9 < claim.chances["record added"] < claim.chances["record replaced"] < 0.02
    result = setting.result([])
    assert (result.estimator, result.n_repeats, result.delta) == ("NoisyMean", 10, 1e-5)
    assert result.epsilon == pytest.approx(setting.profile.epsilon(1e-5))


def test_claims_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="must claim some privacy; got ClaimsNothing"):
        setting_of(leaks.ClaimsNothing())
