"""Ranges of targets: what stands for one, and what does not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from skdptune.base import middle_and_half, target_range


@pytest.mark.parametrize(
    ("bound", "wanted", "halves"),
    [
        (2, (-2.0, 2.0), (0.0, 2.0)),
        (1e100, (-1e100, 1e100), (0.0, 1e100)),
        ((100, 140), (100.0, 140.0), (120.0, 20.0)),
        ([-3.0, 9.0], (-3.0, 9.0), (3.0, 6.0)),
        ((-1e100, 1e100), (-1e100, 1e100), (0.0, 1e100)),
    ],
    ids=["number", "far", "pair", "list", "far pair"],
)
def test_a_bound_is_a_number_or_a_pair(
    bound: Any, wanted: tuple[float, float], halves: tuple[float, float]
) -> None:
    # Theorem L0.
    assert target_range(bound) == wanted
    assert middle_and_half(*wanted) == halves


@pytest.mark.parametrize(
    "bound",
    [0.0, -1.0, math.nan, math.inf, (1, 0), (0, 0), (0, math.inf), (1,), (0, 1, 2), (0, 1e-101)],
    ids=str,
)
def test_what_is_no_range_is_refused(bound: Any) -> None:
    with pytest.raises(ValueError, match="target_bound must"):
        target_range(bound)


@pytest.mark.parametrize("bound", ["1", None, ("a", "b")], ids=str)
def test_what_is_no_number_is_refused(bound: Any) -> None:
    with pytest.raises(TypeError, match="target_bound must"):
        target_range(bound)
