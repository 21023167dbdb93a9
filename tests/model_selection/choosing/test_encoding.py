"""Candidates as points: values that are close are close, equal ones equal."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from skdptune.model_selection._choosing import distances, encode


def points_of(*values: Any) -> np.ndarray:
    return encode([{"a": value} for value in values])


def apart(*values: Any) -> np.ndarray:
    return distances(points_of(*values))


class TestNumbers:
    def test_positive_numbers_of_many_sizes_are_on_a_logarithmic_axis(self) -> None:
        assert points_of(1e-3, 1e-1, 10.0, 1e-2).ravel() == pytest.approx([0, 0.5, 1, 0.25])

    def test_a_factor_of_ten_and_less_is_linear(self) -> None:
        assert points_of(1, 4, 10).ravel() == pytest.approx([0, 1 / 3, 1])

    def test_negative_numbers_are_linear(self) -> None:
        assert points_of(-100.0, 0.0, 100.0).ravel() == pytest.approx([0, 0.5, 1])

    def test_zero_is_one_step_below_the_others(self) -> None:
        assert points_of(0, 1e-3, 1e-2, 1e-1).ravel() == pytest.approx([0, 1 / 3, 2 / 3, 1])

    def test_kinds_of_numbers_are_alike(self) -> None:
        same = points_of(1, 1.0, np.float32(1), np.int8(1), np.array([1])[0], Fraction(1), 2)
        assert np.unique(same[:-1]).size == 1

    def test_the_largest_doubles_stay_finite(self) -> None:
        assert points_of(-1.7e308, 0.0, 1.7e308).ravel() == pytest.approx([0, 0.5, 1])
        tiny = points_of(0.0, 5e-324, 1.0, 1.7e308)
        assert np.isfinite(tiny).all()
        assert np.unique(tiny).size == 4


class TestCategories:
    def test_different_ones_are_one_apart(self) -> None:
        found = apart("hinge", "log", None, True, False, "hinge")
        expected = 1.0 - np.eye(6)
        expected[0, 5] = expected[5, 0] = 0.0
        assert found == pytest.approx(expected)

    def test_a_truth_value_is_no_number(self) -> None:
        assert apart(True, 1)[0, 1] == pytest.approx(1.0)
        assert apart(np.True_, True)[0, 1] == 0.0

    def test_a_lacking_parameter_is_a_category_of_its_own(self) -> None:
        points = encode([{"a": "x"}, {"b": 1.0}, {"a": None, "b": 1.0}])
        assert distances(points)[np.triu_indices(3, 1)] == pytest.approx([2**0.5, 2**0.5, 1.0])

    def test_numbers_beside_words_keep_their_axis(self) -> None:
        found = apart(1.0, 2.0, None, None, "auto")
        assert found[0, 1] == pytest.approx(1.0)
        assert found[2, 3] == 0.0
        assert found[0, 2] == found[1, 2] == found[0, 4] > 1.0
        assert found[2, 4] == pytest.approx(1.0)

    def test_one_number_beside_words_is_a_category(self) -> None:
        assert apart(3.0, None)[0, 1] == pytest.approx(1.0)

    @pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf"), 10**400])
    def test_what_is_not_finite_is_a_category(self, odd: float) -> None:
        found = apart(odd, odd, 1.0, 2.0)
        assert found[0, 1] == 0.0
        assert found[2, 3] == pytest.approx(1.0)
        assert found[0, 2] == found[0, 3] > 1.0

    def test_arrays_and_sequences_are_compared_by_all_that_they_hold(self) -> None:
        long = np.zeros(5000)
        other = long.copy()
        other[2500] = 1.0
        assert apart(long, other, long.copy()).round(9).tolist() == [
            [0, 1, 0],
            [1, 0, 1],
            [0, 1, 0],
        ]
        nested = apart((1, long), (1, other), (1, long.copy()))
        assert nested[0].round(9).tolist() == [0, 1, 0]
        assert apart((1, 2), [1, 2])[0, 1] == pytest.approx(1.0)

    def test_estimators_are_compared_by_their_parameters(self) -> None:
        found = apart(LogisticRegression(C=2.0), LogisticRegression(C=2.0), LogisticRegression())
        assert found[0].round(9).tolist() == [0, 0, 1]


class TestShape:
    def test_what_all_share_has_no_column(self) -> None:
        assert encode([{"a": 1.0, "b": "x"}, {"a": 1.0, "b": "x"}]).shape == (2, 0)

    def test_no_parameters_and_no_candidates(self) -> None:
        assert encode([{}]).shape == (1, 0)
        assert encode([]).shape == (0, 0)

    def test_parameters_add_up(self) -> None:
        points = encode([{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}])
        assert distances(points)[0, 1] == pytest.approx(2**0.5)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.tuples(st.integers(0, 1), st.floats(0, 1)),
)
CANDIDATES = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=8)


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_any_candidates_are_finite_points_whatever_their_order(
    candidates: list[dict[str, Any]], random: Any
) -> None:
    points = encode(candidates)
    assert points.shape[0] == len(candidates)
    assert ((points >= 0.0) & (points <= 1.0)).all()
    order = list(range(len(candidates)))
    random.shuffle(order)
    shuffled = encode([candidates[place] for place in order])
    assert distances(shuffled) == pytest.approx(distances(points)[np.ix_(order, order)])
