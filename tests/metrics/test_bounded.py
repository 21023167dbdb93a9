"""Means of bounded values: sensitivity by brute force, clipping, failures, pickling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from skdptune.metrics import BoundedScorer, make_bounded_scorer

GRID = [-3.0, -1.0, -0.3, 0.0, 0.7, 1.0, 4.0, math.nan]


class Echo:
    """Predicts what it is given."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return np.asarray(X)

    def predict_proba(self, X):
        column = np.asarray(X, dtype=float)
        return np.column_stack([1.0 - column, column])


def distance(y, prediction):
    return np.abs(y - prediction)


def make(centred=True, greater_is_better=False) -> BoundedScorer:
    return make_bounded_scorer(
        distance, -0.5, 2.0, centred=centred, greater_is_better=greater_is_better
    )


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("greater_is_better", [True, False])
@pytest.mark.parametrize("n_public", [1, 2, 5, 40])
def test_sensitivity_is_attained_and_never_exceeded(centred, greater_is_better, n_public) -> None:
    # Theorem R2: how far one record moves a bounded score.
    scorer = make(centred, greater_is_better)
    moves = []
    for size in range(4):
        for values in itertools.combinations_with_replacement(GRID, size):
            before = scorer.score(values, n_public)
            moves += [scorer.score((*values, more), n_public) - before for more in GRID]
    claimed = scorer.sensitivity(n_public)
    assert np.abs(moves).max() <= claimed * (1 + 1e-9)
    assert np.abs(moves).max() == pytest.approx(claimed)
    assert scorer.is_monotone == (not centred)
    if scorer.is_monotone:
        assert min(moves) >= 0.0
    else:
        assert min(moves) < 0.0 < max(moves)


@pytest.mark.parametrize("n_public", [100, 3000])
def test_sensitivity_holds_for_random_neighbours(n_public) -> None:
    # Theorem R2: how far one record moves a bounded score.
    rng = np.random.default_rng(0)
    for scorer in (make(), make().uncentred()):
        for _ in range(100):
            values = rng.uniform(-4, 4, size=rng.integers(1, 2 * n_public))
            chosen = rng.integers(values.size)
            moved = scorer.score(values, n_public) - scorer.score(
                rng.permutation(np.delete(values, chosen)), n_public
            )
            assert abs(moved) <= scorer.sensitivity(n_public) * (1 + 1e-9)


@pytest.mark.parametrize("centred", [True, False])
def test_with_the_true_number_the_score_is_the_mean(centred) -> None:
    values = np.random.default_rng(1).uniform(-2, 0.5, size=200)
    assert make(centred).score(values, 200) == pytest.approx(values.mean(), abs=1e-7)


@pytest.mark.parametrize(("centred", "empty"), [(True, -0.75), (False, -2.0)])
def test_score_of_nothing_is_what_values_count_from(centred, empty) -> None:
    assert make(centred).score([], 10) == empty
    assert make(centred)(Echo(), [], []) == empty


@pytest.mark.parametrize("centred", [True, False])
def test_score_stays_within_the_bounds(centred) -> None:
    scorer = make(centred)
    assert scorer.score(np.full(500, 0.5), 10) == 0.5
    low = scorer.score(np.full(500, -2.0), 10)
    assert low == -2.0


def test_sign_turns_values_and_bounds() -> None:
    loss, gain = make(), make(greater_is_better=True)
    assert (loss.lower, loss.upper) == (-2.0, 0.5)
    assert (gain.lower, gain.upper) == (-0.5, 2.0)
    y, X = np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.5, 9.0])
    assert loss.per_record(Echo(), X, y).tolist() == [0.0, -1.5, -2.0]
    assert gain.per_record(Echo(), X, y).tolist() == [0.0, 1.5, 2.0]
    assert loss(Echo(), X, y) == pytest.approx(-3.5 / 3, abs=1e-7)


@pytest.mark.parametrize("greater_is_better", [True, False])
@pytest.mark.parametrize("bad", [math.nan, None])
def test_nan_scores_the_worst(greater_is_better, bad) -> None:
    scorer = make(greater_is_better=greater_is_better)
    X = np.array([bad, 1.0], dtype=float)
    values = scorer.per_record(Echo(), X, np.array([1.0, 1.0]))
    assert values[0] == scorer.lower
    assert scorer.score([math.nan], 1) == scorer.lower


@pytest.mark.parametrize("column", ["X", "y", "both"])
def test_columns_do_not_broadcast_to_all_pairs(column) -> None:
    X, y = np.arange(4.0), np.arange(4.0) + 1.0
    X = X[:, None] if column in ("X", "both") else X
    y = y[:, None] if column in ("y", "both") else y
    assert make().per_record(Echo(), X, y).tolist() == [-1.0] * 4


def test_other_numbers_of_predictions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one predict per record, of shape \(3,\); got .*\(4,\)"):
        make().per_record(Echo(), np.zeros(4), np.zeros(3))
    scorer = make_bounded_scorer(lambda y, p, c: y, 0, 1, response_method="predict_proba")
    with pytest.raises(ValueError, match="one predict_proba per record"):
        scorer.per_record(Echo(), np.zeros(4), np.zeros(3))


def test_loss_that_averages_is_refused() -> None:
    scorer = make_bounded_scorer(lambda y, p: np.mean(y - p), 0, 1)
    with pytest.raises(ValueError, match="one number per record; got shape .* must not average"):
        scorer.per_record(Echo(), np.zeros(4), np.zeros(4))


def test_probabilities_come_with_the_classes() -> None:
    seen = []

    def loss(y, probabilities, classes):
        seen.append((probabilities.shape, classes.tolist()))
        return probabilities[:, 1]

    scorer = make_bounded_scorer(
        loss, 0, 1, greater_is_better=True, response_method="predict_proba", name="p"
    )
    assert scorer.per_record(Echo(), [0.25, 0.5], [0, 1]).tolist() == [0.25, 0.5]
    assert seen == [((2, 2), [0, 1])]
    with pytest.raises(TypeError, match="estimator must have predict_proba, which 'p' needs"):
        scorer.per_record(object(), [0.0], [0])


def test_bad_arguments_are_refused() -> None:
    for more, complaint in (
        ({"lower": 1.0}, "upper must be a number in"),
        ({"upper": math.inf}, "upper - lower must be finite"),
        ({"lower": math.nan}, "lower must be a number"),
        ({"lower": "0"}, "lower must be a number"),
        ({"loss": 3}, "loss must be callable; got int"),
        ({"greater_is_better": 1}, "greater_is_better must be True or False"),
        ({"centred": None}, "centred must be True or False"),
        ({"response_method": "transform"}, "response_method must be one of"),
        ({"name": 3}, "name must be a str"),
    ):
        given = {"loss": distance, "lower": 0.0, "upper": 1.0, **more}
        with pytest.raises((TypeError, ValueError), match=complaint):
            make_bounded_scorer(**given)


@pytest.mark.parametrize(("bad", "kind"), [(0, ValueError), (2.0, TypeError)])
def test_public_number_must_be_one(bad, kind) -> None:
    with pytest.raises(kind, match="n_public must be an integer of at least 1"):
        make().sensitivity(bad)
    with pytest.raises(kind, match="n_public must be an integer of at least 1"):
        make().score([0.0], bad)
