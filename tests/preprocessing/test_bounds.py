"""Bounds and ranges: what is taken, and what is refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.preprocessing import bounds_per_feature, check_bounds
from skdptune.preprocessing._stateless import check_feature_range


@pytest.mark.parametrize(
    ("bounds", "lower", "upper"),
    [
        ((0, 1), [0, 0], [1, 1]),
        (([0, 1], [2, 3]), [0, 1], [2, 3]),
        ((0, [2, 3]), [0, 0], [2, 3]),
        (np.array([[0.0, 1.0], [2.0, 3.0]]), [0, 1], [2, 3]),
    ],
)
def test_bounds_reach_every_feature(bounds, lower, upper) -> None:
    low, high = bounds_per_feature(bounds, 2)
    assert (low.tolist(), high.tolist()) == (lower, upper)
    low[0] = 7.0
    assert bounds_per_feature(bounds, 2)[0].tolist() == lower


@pytest.mark.parametrize(
    ("bounds", "complaint"),
    [
        (None, "got None. Bounds must be known without looking at the data, such as"),
        (3, "got 3"),
        ((0, 1, 2), r"got \(0, 1, 2\)"),
        (("a", 1), "got"),
        ((1, 1), "lower below upper"),
        ((2, 1), "lower below upper"),
        ((0, np.inf), "must be finite"),
        ((np.nan, 1), "must be finite"),
        (([0, 0], [1, 1, 1]), r"shapes \(2,\) and \(3,\)"),
        (([[0]], [[1]]), "shapes"),
        (([0, 5], [1, 4]), "lower below upper"),
    ],
)
def test_bad_bounds_are_refused(bounds, complaint) -> None:
    with pytest.raises(ValueError, match=complaint):
        check_bounds(bounds)


def test_bounds_of_another_number_of_features_are_refused() -> None:
    with pytest.raises(ValueError, match="of 3 features; got 2 numbers"):
        bounds_per_feature(([0, 0], [1, 1]), 3)


@pytest.mark.parametrize("given", [None, 1, (1, 1), (2, 1), (0, np.inf), (0, 1, 2), "ab"])
def test_bad_feature_range_is_refused(given) -> None:
    with pytest.raises(ValueError, match="feature_range must be a pair of finite numbers"):
        check_feature_range(given)


def test_feature_range_is_returned_as_floats() -> None:
    assert check_feature_range([-1, 1]) == (-1.0, 1.0)
