"""Many canaries of one fit, and a model's response to each."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.audit._one_run_audit import (
    given_canaries,
    mislabelled_canaries,
    orthogonal_canaries,
    scores_of,
    seeded_fit,
    untrained,
)
from skdptune.base._shared import ADD_OR_REMOVE, REPLACE, ZERO_OUT
from skdptune.linear_model import DPLogisticRegression
from tests.testing.public_estimators import HAS_NETS

MODEL = DPLogisticRegression(solver="output", classes=["a", "b", "c"], data_norm=2.0)
X = np.random.default_rng(0).normal(size=(30, 4))
Y = np.array(["a", "b", "c"])[np.arange(30) % 3]


def orthogonal(size=6, data=None, model=MODEL, y=Y):
    return orthogonal_canaries(model, X.shape, y, size, data, np.random.default_rng(0))


def all_canaries():
    return {
        "orthogonal": orthogonal(),
        "given": orthogonal(data=(X, Y)),
        "mislabelled": mislabelled_canaries(MODEL, X, Y, 6, np.random.default_rng(0)),
        "by hand": given_canaries((X[:6] + 1.0, Y[:6]), X, Y),
    }


def records(made, is_in, relation):
    rows, targets = made.data(is_in, relation)
    return sorted((*row.tolist(), target) for row, target in zip(rows, targets, strict=True))


@pytest.mark.parametrize("relation", [ADD_OR_REMOVE, REPLACE, ZERO_OUT])
@pytest.mark.parametrize("name", all_canaries())
def test_coins_that_differ_in_one_make_neighbours(name, relation):
    # Theorem A6: an audit by one fit refutes no true claim.
    made = all_canaries()[name]
    rng = np.random.default_rng(1)
    for place in range(len(made)):
        first = rng.integers(0, 2, len(made)) == 1
        second = first.copy()
        first[place], second[place] = True, False
        with_it, without = records(made, first, relation), records(made, second, relation)
        both = [each for each in with_it if each in without]
        assert len(with_it) == len(both) + 1
        if relation == ADD_OR_REMOVE:
            assert len(without) == len(with_it) - 1
        else:
            assert len(without) == len(with_it)
            (other,) = [each for each in without if each not in with_it] or [None]
            if relation == ZERO_OUT and other is not None:
                assert other[:-1] == (0.0,) * 4 and other[-1] == made.targets[place]


def test_axes_are_orthogonal_and_as_long_as_clipping_lets_through():
    made = orthogonal(4)
    np.testing.assert_allclose(made.rows @ made.rows.T, 4.0 * np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(made.instead_rows, -made.rows)
    assert made.has_opposites and set(made.targets) <= {"a", "b", "c"}
    shared = orthogonal(6).rows
    np.testing.assert_array_equal(shared[4:], shared[:2])
    beside = orthogonal(4, data=(X * [1.0, 1.0, 0.01, 1.0], Y)).rows
    assert abs(beside[0, 2]) > 1.99


def test_wrong_labels_are_wrong_and_the_others_stay():
    made = mislabelled_canaries(MODEL, X, Y, 12, np.random.default_rng(0))
    assert len(made) == 12 and len(made.others) == 18
    assert (made.targets != made.instead_targets).all()
    whole = np.concatenate([made.others, made.rows])
    assert sorted(map(tuple, whole.tolist())) == sorted(map(tuple, X.tolist()))


SEED = np.random.SeedSequence(0)
LOGISTIC = DPLogisticRegression(8.0, solver="sgd", classes=[0, 1], n_public=20)
ROWS, LABELS = np.random.default_rng(0).normal(size=(20, 6)), np.arange(20) % 2


def axes(model=LOGISTIC, y=LABELS):
    return orthogonal_canaries(model, ROWS.shape, y, 6, None, np.random.default_rng(0))


def test_a_linear_model_knows_a_row_by_its_weights_in_the_direction_of_its_label():
    made = axes()
    fitted = seeded_fit(LOGISTIC, *made.data(np.ones(6, dtype=bool), LOGISTIC.neighbouring), SEED)
    found, words = scores_of(None, fitted, LOGISTIC, made, 20, SEED)
    expected = 2.0 * np.where(made.targets == 1, 1.0, -1.0) * (made.rows @ fitted.coef_[0])
    np.testing.assert_allclose(found, expected)
    assert "opposite row" in words


@pytest.mark.skipif(not HAS_NETS, reason="needs torch, skorch and opacus")
def test_a_net_before_training_has_the_weights_that_it_starts_from():
    # Theorem A6: they follow only from the seed, and do not depend on any record.
    from skdptune.neural_network import MLP, DPNeuralNetClassifier

    net = DPNeuralNetClassifier(
        MLP(hidden=(4,)), epsilon=8.0, classes=[0, 1], max_epochs=2, lr=1e-6, n_public=20
    )
    made = given_canaries(
        (ROWS[:5].astype(np.float32), LABELS[:5]), ROWS.astype(np.float32), LABELS
    )
    before = untrained(net, made, SEED)
    after = seeded_fit(net, made.others[:7], made.other_targets[:7], SEED)
    for first, last in zip(before.module_.parameters(), after.module_.parameters(), strict=True):
        np.testing.assert_allclose(
            first.detach().numpy(), last.detach().numpy(), rtol=0.0, atol=1e-5
        )
    other = untrained(net, made, np.random.SeedSequence(1))
    assert before.predict_proba(made.rows)[0, 0] != other.predict_proba(made.rows)[0, 0]
