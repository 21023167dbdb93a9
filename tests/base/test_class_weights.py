"""Public weights of classes: what counts as such, and how much a record then weighs."""

from __future__ import annotations

from collections import UserDict
from typing import Any

import numpy as np
import pytest

from skdptune.base import check_class_weight, weights_of_classes


@pytest.mark.parametrize(
    ("given", "classes", "wanted"),
    [
        ({0: 1.0, 1: 4.0}, [0, 1], [0.25, 1.0]),
        ({1: 4}, [0, 1, 2], [0.25, 1.0, 0.25]),
        ({1: 0.25}, [0, 1], [1.0, 0.25]),
        ({"ill": 10.0}, ["ill", "well"], [1.0, 0.1]),
        ({True: 2.0}, [False, True], [0.5, 1.0]),
        ({1.0: 2.0}, [0, 1], [0.5, 1.0]),
        ({0: 1e-300, 1: 1e9}, [0, 1], [0.0, 1.0]),
        (UserDict({0: np.float64(3.0)}), [0, 1], [1.0, 1.0 / 3.0]),
    ],
    ids=["all", "missing", "less", "words", "truth", "float", "extreme", "mapping"],
)
def test_weights_are_relative_to_the_largest(
    given: Any, classes: list[Any], wanted: list[float]
) -> None:
    # Theorem M0: none is above 1.
    check_class_weight(given, classes)
    found = weights_of_classes(given, np.unique(np.asarray(classes)))
    assert found is not None
    assert found.max() == 1.0
    assert found == pytest.approx(np.array(wanted))


@pytest.mark.parametrize("given", [None, {0: 3.0, 1: 3.0}, {0: 1.0}], ids=["none", "same", "one"])
def test_equal_weights_are_none(given: Any) -> None:
    assert weights_of_classes(given, np.array([0, 1])) is None


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ("balanced", TypeError, "would count private labels. Give weights by public shares"),
        ("other", TypeError, "class_weight must be a mapping"),
        ({}, TypeError, "got an empty one"),
        ([1.0, 2.0], TypeError, "class_weight must be a mapping"),
        ({0: 0.0}, ValueError, r"class_weight\[0\] must be a number in \(0"),
        ({0: -1.0}, ValueError, r"class_weight\[0\]"),
        ({0: float("inf")}, ValueError, r"class_weight\[0\]"),
        ({0: float("nan")}, ValueError, r"class_weight\[0\]"),
        ({0: "1"}, TypeError, r"class_weight\[0\]"),
        ({2: 1.0}, ValueError, "got 2, which is none of"),
        ({"0": 1.0}, ValueError, "got '0', which is none of"),
    ],
    ids=["balanced", "word", "empty", "list", "zero", "minus", "inf", "nan", "text", "2", "'0'"],
)
def test_other_weights_are_refused(given: Any, kind: type[Exception], words: str) -> None:
    for refuse in (
        lambda: check_class_weight(given, [0, 1]),
        lambda: weights_of_classes(given, np.array([0, 1])),
    ):
        with pytest.raises(kind, match=words):
            refuse()


def test_classes_that_are_not_known_yet_are_looked_at_later() -> None:
    check_class_weight({2: 1.0}, None)
    with pytest.raises(ValueError, match="none of"):
        weights_of_classes({2: 1.0}, np.array([0, 1]))
