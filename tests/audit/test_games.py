"""Fits of an audit: their seeds and failures, the numbers read from them, and directions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdptune.audit._games import (
    Direction,
    learnt_direction,
    margins,
    numbers_of,
    response,
)

X = np.random.default_rng(0).normal(size=(40, 2))
ROW = np.array([2.0, -1.0])


def test_a_margin_is_the_score_of_a_class_over_the_mean_of_the_others():
    np.testing.assert_array_equal(margins(np.array([1.0, -2.0]), np.array([1, 0])), [1.0, 2.0])
    scores = np.array([[1.0, 4.0, 2.0], [5.0, 1.0, 3.0]])
    np.testing.assert_array_equal(margins(scores, np.array([1, 2])), [2.5, 0.0])
    np.testing.assert_array_equal(margins(scores[:, :1], np.array([0, 1])), [-1.0, 5.0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_responses_grow_with_what_is_said_of_the_label(n_classes):
    y = np.arange(40) % n_classes
    for model in (LogisticRegression(), GaussianNB()):
        fitted = model.fit(X, y)
        chances = np.log(fitted.predict_proba(X))
        own = chances[np.arange(40), y]
        expected = own - (chances.sum(axis=1) - own) / (n_classes - 1)
        found = response(fitted, X, y)
        assert np.corrcoef(found, expected)[0, 1] > 0.99
    regression = LinearRegression().fit(X, y)
    np.testing.assert_array_equal(response(regression, X, y), regression.predict(X))


def test_all_steps_and_scores_are_looked_at():
    y = np.arange(40) % 2
    pipeline = make_pipeline(FunctionTransformer(), StandardScaler(), LogisticRegression())
    fitted = pipeline.fit(X, y)
    found = numbers_of(fitted, ROW, 1)
    scaler = fitted[1]
    learnt = [scaler.mean_.sum(), scaler.var_.sum(), scaler.scale_.sum()]
    np.testing.assert_allclose(found, [*learnt, fitted.decision_function(ROW[None])[0]])
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, y)
    found = numbers_of(search, ROW, 1)
    assert found.size == 6
    assert found[0] == pytest.approx(search.cv_results_["mean_test_score"].sum())
    assert found[1] == pytest.approx(search.best_score_)


def separation(direction: Direction, together: np.ndarray, without: np.ndarray) -> float:
    sides = direction.of(together), direction.of(without)
    return float((sides[0].mean() - sides[1].mean()) / sides[1].std())


def rows(shift: np.ndarray, size: int, seed: int, mixing: np.ndarray | None = None) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(size, shift.size))
    return shift + (noise if mixing is None else noise @ mixing)


def judged(
    shift: np.ndarray, mixing: np.ndarray | None = None, n_first: int | None = None
) -> float:
    zero = np.zeros(shift.size)
    found = learnt_direction(rows(shift, 200, 0, mixing), rows(zero, 200, 1, mixing), n_first)
    return separation(found, rows(shift, 1000, 2, mixing), rows(zero, 1000, 3, mixing))


@pytest.mark.parametrize("place", [0, 7])
def test_one_number_among_many_is_found(place: int) -> None:
    assert judged(2.0 * (np.arange(100) == place)) > 1.6


def test_common_noise_is_subtracted() -> None:
    # Alone, the second number tells nothing; with it the noise of the first is known.
    mixing = np.array([[1.0, 1.0], [0.1, 0.0]])
    assert judged(np.array([1.0, 0.0]), mixing) > 8.0


def test_what_has_no_noise_outweighs_all_else() -> None:
    sides = [
        np.column_stack([np.full(40, value), rows(np.zeros(3), 40, 0)]) for value in (1.0, 2.0)
    ]
    direction = learnt_direction(*sides)
    assert direction.of(sides[0]).min() > direction.of(sides[1]).max() or (
        direction.of(sides[0]).max() < direction.of(sides[1]).min()
    )


def either_way(size: int, seed: int, jump: float) -> np.ndarray:
    """Return rows whose fourth number jumps up or down, beside three of noise."""
    noise = rows(np.zeros(4), size, seed)
    noise[:, 3] = 0.5 + 0.001 * noise[:, 3]
    noise[:, 3] += jump * np.random.default_rng(seed).choice([-1.0, 1.0], size)
    return noise


@pytest.mark.parametrize("is_swapped", [False, True])
def test_what_moves_a_number_either_way_is_found(is_swapped: bool) -> None:
    # The means are the same.
    sides, others = (
        [either_way(100, seed, 0.01), either_way(100, seed + 1, 0.0)][:: -1 if is_swapped else 1]
        for seed in (0, 2)
    )
    found = learnt_direction(*sides)
    assert np.quantile(found.of(others[0]), 0.05) > np.quantile(found.of(others[1]), 0.95)
