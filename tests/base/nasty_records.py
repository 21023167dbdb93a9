"""Values of improper records, and neighbouring data sets that differ in one such record."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from skdptune._secure_random import SecureGenerator


class Stubborn:
    """Refuses all that is asked of it."""

    def __float__(self) -> float:
        raise RuntimeError("secret")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret")

    __hash__ = None  # type: ignore[assignment]


PROPER = [0, 1.5, -3, 2**40, True, "2.5", np.float32(0.25), Decimal("0.5"), np.int8(3)]
IMPROPER: list[Any] = [
    *(np.nan, np.inf, -np.inf, None, "word", "", b"x", pd.NA, pd.NaT, 10**400, 1j, {}, (1, 2)),
    *(datetime.date(2020, 1, 1), np.datetime64("2020"), Stubborn(), "nan", "-inf", object()),
]
# Numbers whose squares, sums or differences overflow, or have few digits.
EXTREME = [1e200, -1e200, 1.7e308, -1.7e308, 5e-324, -1e-310, 1e39, "1e300", 2**200]
IMPROPER_NUMBERS = [np.nan, np.inf, -np.inf]
EXTREME_NUMBERS = [float(value) for value in EXTREME]

# Checks of scikit-learn that ask `fit` to refuse what a record holds.
FIT_TAKES_ANY_RECORD = {
    "check_estimators_nan_inf": "a record that is not finite counts as zeros and fails no fit",
    "check_dtype_object": "an entry that is not a number makes its record zeros and fails no fit",
}
FIT_TAKES_ANY_TARGET = {
    **FIT_TAKES_ANY_RECORD,
    "check_supervised_y_no_nan": "a target that is not finite makes its record zeros",
}


def as_objects(table: Any) -> np.ndarray:
    made = np.empty((len(table), len(table[0])), dtype=object)
    for i, row in enumerate(table):
        for j, entry in enumerate(row):
            made[i, j] = entry
    return made


def as_frame(table: Any) -> pd.DataFrame:
    names = [f"x{j}" for j in range(len(table[0]))]
    return pd.DataFrame(as_objects(table), columns=names, dtype=object)


def as_list(table: Any) -> list[list[Any]]:
    return [list(row) for row in table]


def as_doubles(table: Any) -> np.ndarray:
    return np.array(as_list(table), dtype=np.float64)


FORMS = {"objects": as_objects, "frame": as_frame, "list": as_list, "doubles": as_doubles}
# Values that each form can hold.
VALUES = {
    name: ([*IMPROPER_NUMBERS, *EXTREME_NUMBERS] if name == "doubles" else [*IMPROPER, *EXTREME])
    for name in FORMS
}


def nasty_rows(form: str, width: int, seed: int = 0) -> Iterator[list[Any]]:
    """Yield rows with one value of each kind, in a random place, and rows full of it."""
    rng = np.random.default_rng(seed)
    for value in VALUES[form]:
        row = rng.normal(size=width).tolist()
        row[int(rng.integers(width))] = value
        yield row
        yield [value] * width


# Cells of a table of numbers, strings and times: the possible readings of each, and invalid cells.
CELLS: list[Any] = [
    *(*PROPER, *IMPROPER, *EXTREME),
    *("a", " a ", "A", b"a", np.str_("a"), "missing", "other", "?", "a\x00", "\ud800", "１"),
    *("True", "true", False, np.bool_(True), "1", "1.0", "01", "1e0", "1_0", "0x1", "-0.0"),
    *("2020-02-30", "2020-01-01", "20200101", "2020-01-01T00:00:00+14:00", "9999-12-31"),
    *(datetime.datetime(1, 1, 1), datetime.datetime.max, datetime.time(1), datetime.timedelta(1)),
    *(np.datetime64("NaT"), np.datetime64(10**15, "s"), np.timedelta64(1, "D")),
    *(pd.Timestamp("2020", tz="Asia/Tokyo"), pd.Timedelta(1, "D"), pd.Interval(0, 1)),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Fraction(1, 3), np.complex64(1j)),
    *([], [1.0], {"a"}, frozenset(), np.array([1.0]), np.array(2.0), np.array([]), len, int, ...),
]


def as_column(values: Any) -> np.ndarray:
    """Return values of any type as an array of objects."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def with_record(rows: Any, targets: Any, row: Any, target: Any, form: str) -> tuple[Any, Any]:
    """Return a data set with one record more at its end, its targets as objects."""
    return FORMS[form]([*as_list(rows), row]), as_column([*targets, target])


@contextmanager
def interrupted_draws() -> Iterator[None]:
    """Press Ctrl-C at the first draw of a fit without a seed."""

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    system = SimpleNamespace(urandom=interrupt)
    with (
        mock.patch.object(SecureGenerator, "_words", interrupt),
        mock.patch("skdptune.mechanisms._randomness.os", system),
    ):
        yield
