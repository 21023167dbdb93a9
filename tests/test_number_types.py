"""Numbers of NumPy's narrow types, which wrap around or have few digits, do not change the noise.

Squares and products of a user's numbers determine the noise, and in 8 bits the square of 200 is
64. Such a number is refused, or converted exactly.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.fuzz import recipes

NARROW = [np.uint8(200), np.int16(3), np.float16(0.25), np.float32(0.1)]
ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, size=(40, 2)) * 300.0
LABELS = np.arange(40) % 2


def estimators() -> Iterator[Any]:
    for name, thing in recipes.public_callables():
        if recipes.is_estimator(thing) and hasattr(thing, "privacy_profile"):
            yield pytest.param(name, thing, id=name)


def numeric_parameters(thing: Any, given: dict[str, Any]) -> Iterator[str]:
    skipped = {"random_state", "verbose", "n_jobs", "failure_probability"}
    for name, parameter in inspect.signature(thing).parameters.items():
        value = given.get(name, parameter.default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        may_be = value is None and "float" in str(parameter.annotation)
        may_be |= value is None and "int" in str(parameter.annotation)
        if (is_number or may_be) and name not in skipped:
            yield name


def fitted(thing: Any, given: dict[str, Any]) -> Any:
    """Return the attributes of a fitted estimator, or the type of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = thing(**given | {"random_state": 0}).fit(ROWS, LABELS)
        except (TypeError, ValueError) as error:
            return type(error)
    state = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, np.ndarray | float | int)
    }
    curve = model.privacy_.profile.delta(np.array([0.0, 0.1, 1.0, 5.0]))
    return state | {"curve": curve}


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one is other
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )


# Every parameter gets one of the types; in the nightly run, all of them.
@pytest.mark.parametrize("share", [len(NARROW), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "thing"), list(estimators()))
def test_narrow_numbers_change_nothing(name, thing, share):
    # Assumption F6: timing, seeds, diagnostics, floating point.
    given = {key: values[0] for key, values in recipes.recipe(name, thing).items()}
    wrong = []
    for place, parameter in enumerate(numeric_parameters(thing, given)):
        for value in NARROW[(place + len(name)) % share :: share]:
            narrow = fitted(thing, given | {parameter: value})
            if narrow is not TypeError and not same(
                narrow, fitted(thing, given | {parameter: value.item()})
            ):
                wrong.append((parameter, type(value).__name__))
    assert wrong == []
