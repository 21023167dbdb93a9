"""How well a fitted model knows each canary."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.audit._one_run_audit import (
    given_canaries,
    orthogonal_canaries,
    scores_of,
    seeded_fit,
    untrained,
)
from skdptune.linear_model import DPLogisticRegression, NoisyStatisticsRidge
from tests.testing.public_estimators import HAS_NETS

SEED = np.random.SeedSequence(0)
MODEL = DPLogisticRegression(8.0, solver="sgd", classes=[0, 1], n_public=20)
X, Y = np.random.default_rng(0).normal(size=(20, 6)), np.arange(20) % 2


def axes(model=MODEL, y=Y):
    return orthogonal_canaries(model, X.shape, y, 6, None, np.random.default_rng(0))


def test_a_linear_model_knows_a_row_by_its_weights_in_the_direction_of_its_label():
    made = axes()
    fitted = seeded_fit(MODEL, *made.data(np.ones(6, dtype=bool), MODEL.neighbouring), SEED)
    found, words = scores_of(None, fitted, MODEL, made, 20, SEED)
    expected = 2.0 * np.where(made.targets == 1, 1.0, -1.0) * (made.rows @ fitted.coef_[0])
    np.testing.assert_allclose(found, expected)
    assert "opposite row" in words


def test_a_regression_knows_a_row_by_what_it_predicts_in_the_direction_of_its_target():
    ridge = NoisyStatisticsRidge(8.0, data_norm=1.0, target_bound=1.0)
    made = axes(ridge, X[:, 0])
    fitted = seeded_fit(ridge, *made.data(np.ones(6, dtype=bool), ridge.neighbouring), SEED)
    found, _ = scores_of(None, fitted, ridge, made, 20, SEED)
    np.testing.assert_allclose(found, 2.0 * made.targets * (made.rows @ fitted.coef_))


def test_what_is_said_of_given_rows_is_compared_with_a_model_without_them():
    made = given_canaries((X[:5] + 3.0, 1 - Y[:5]), X, Y)
    fitted = seeded_fit(MODEL, *made.data(np.ones(5, dtype=bool), MODEL.neighbouring), SEED)
    found, words = scores_of(None, fitted, MODEL, made, 20, SEED)
    margin = np.where(made.targets == 1, 1.0, -1.0) * fitted.decision_function(made.rows)
    assert "without noise and canaries" in words
    assert np.abs(found - margin).max() > 0.1


def test_a_seeded_fit_repeats_itself_and_changes_nothing():
    first, second = (seeded_fit(MODEL, X, Y, SEED).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert MODEL.random_state is None and not hasattr(MODEL, "coef_")
    assert untrained(MODEL, axes(), SEED) is None


def test_a_score_is_one_number_for_each_canary():
    made = axes()
    found, words = scores_of(lambda fitted, rows, targets: targets, None, MODEL, made, 20, SEED)
    np.testing.assert_array_equal(found, made.targets)
    with pytest.raises(ValueError, match="score"):
        scores_of(lambda *each: [1.0], None, MODEL, made, 20, SEED)


@pytest.mark.skipif(not HAS_NETS, reason="needs torch, skorch and opacus")
def test_a_net_before_training_has_the_weights_that_it_starts_from():
    # Theorem A6: they follow from the seed alone, and no record has part in them.
    from skdptune.neural_network import MLP, DPNeuralNetClassifier

    net = DPNeuralNetClassifier(
        MLP(hidden=(4,)), epsilon=8.0, classes=[0, 1], max_epochs=2, lr=1e-6, n_public=20
    )
    made = given_canaries((X[:5].astype(np.float32), Y[:5]), X.astype(np.float32), Y)
    before = untrained(net, made, SEED)
    after = seeded_fit(net, made.others[:7], made.other_targets[:7], SEED)
    for first, last in zip(before.module_.parameters(), after.module_.parameters(), strict=True):
        np.testing.assert_allclose(
            first.detach().numpy(), last.detach().numpy(), rtol=0.0, atol=1e-5
        )
    other = untrained(net, made, np.random.SeedSequence(1))
    assert before.predict_proba(made.rows)[0, 0] != other.predict_proba(made.rows)[0, 0]
