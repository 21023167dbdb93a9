"""Unexpected values: extreme numbers, other types, tables of all forms."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from tests.base.nasty_records import IMPROPER, as_column

Random = np.random.Generator

NUMBERS: list[Any] = [
    *(0, -0.0, 1, -1, 0.5, 2, -3.5, 1e-12, 1.0 - 1e-16, 1.0 + 1e-9, 5, 0.999999, 1e-5, 37.5),
    *(5e-324, 1e-300, -5e-324, 1e6, -1e6, 1e30, 1.7e308, -1.7e308, 2**31, 2**63, -(2**63)),
    *(10**400, -(10**400), float("nan"), float("inf"), -float("inf"), True, False, np.True_),
    *(np.float32(0.5), np.float64(1.0), np.float16(6e4), np.int64(3), np.uint8(255), np.int8(-1)),
    *(np.longdouble(0.25), Decimal("0.5"), Decimal("NaN"), Fraction(1, 3), 1 + 0j, np.array(0.5)),
]
# Numbers that may multiply the work without end: where they are valid, the user asked for it.
ENDLESS = 1000


class Broken:
    """An object whose length, truth, text and members all fail."""

    def __len__(self) -> int:
        raise TypeError("no length")

    def __bool__(self) -> bool:
        raise ValueError("no truth")

    def __repr__(self) -> str:
        return "Broken()"


def kinds() -> list[Any]:
    """Return fresh values of kinds that no parameter is said to take, or few are."""
    return [
        *(None, "", "auto", "max", "worst", "nan", "1", "\0", "ε" * 300, b"x", bytearray(b"x")),
        *([], (), {}, set(), frozenset(), [1, 2], (0.0, 1.0), (1.0, 0.0), (0, 0), [None], ["a"]),
        *("n" * 5000, [1.0, float("nan")], np.ma.masked_array([1.0, 2.0], [True, False])),
        *([[1.0]], [[1, 2], [3]], {"a": 1}, {1: "a"}, {"C": [1.0]}, {0.5}, range(3), range(0)),
        *(np.array([]), np.array([1.0, np.nan]), np.zeros((2, 2)), np.array(["a", "b"])),
        *(np.array([None, 1], dtype=object), np.zeros((0, 3)), np.ma.masked_array([1.0], [True])),
        *(pd.NA, pd.NaT, pd.Series([1.0, 2.0]), pd.DataFrame({"a": [1.0]}), sparse.eye(2).tocsr()),
        *(object(), object, Broken(), lambda *_: 0.5, lambda *_: float("nan"), print),
        *(datetime.date(2020, 1, 1), np.datetime64("2020"), np.dtype(float), Ellipsis, int, Any),
        *(iter([1, 2]), (n for n in range(2)), np.random.default_rng(0), np.random.RandomState(0)),
        *(LogisticRegression, LogisticRegression(), ValueError("x"), NotImplemented, slice(1)),
    ]


def pick(rng: Random, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def nasty(rng: Random) -> Any:
    """Return a number at some edge, or a value of another kind."""
    return pick(rng, NUMBERS) if rng.random() < 0.5 else pick(rng, kinds())


def table(rng: Random) -> Any:
    """Return a table: a small proper one more often than not, else anything."""
    shape = int(rng.integers(4, 25)), int(rng.integers(1, 4))
    proper = rng.normal(size=shape)
    if rng.random() < 0.6:
        return proper
    with np.errstate(all="ignore"):
        return pick(rng, TABLES)(rng, proper)


def _sprinkled(rng: Random, X: np.ndarray) -> np.ndarray:
    X = X.copy()
    values = [np.nan, np.inf, -np.inf, 1e200, -1.7e308, 5e-324, 0.0]
    for _ in range(int(rng.integers(1, X.size + 1))):
        X[tuple(rng.integers(X.shape))] = pick(rng, values)
    return X


def _objects(rng: Random, X: np.ndarray) -> np.ndarray:
    X = X.astype(object)
    for _ in range(int(rng.integers(1, X.size + 1))):
        X[tuple(rng.integers(X.shape))] = pick(rng, IMPROPER)
    return X


def _frame(rng: Random, X: np.ndarray) -> pd.DataFrame:
    names = [pick(rng, ["a", "b", "", 0, 1, ("x", 1), None, "a"]) for _ in range(X.shape[1])]
    return pd.DataFrame(pick(rng, [X, _objects(rng, X)]), columns=names)


def _text_frame(rng: Random, X: np.ndarray) -> pd.DataFrame:
    made = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    made["text"] = [pick(rng, ["red", "", "1.5", None]) for _ in range(len(X))]
    made["day"] = pd.Timestamp("2020-01-01")
    made["kind"] = pd.Categorical(["u"] * len(X))
    return made


def _typed_frame(rng: Random, X: np.ndarray) -> Any:
    """Return a table whose columns have types of every kind, some with missing values."""
    kinds = ["bool", "boolean", "Int64", "Float64", "float32", "category", "complex128", "object"]
    kinds += ["string", "datetime64[ns]", "timedelta64[ns]", "Sparse[float]", "float64[pyarrow]"]
    made = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    if rng.random() < 0.3:
        return pl.DataFrame(made.assign(b=X[:, 0] > 0.0).to_dict("list"))
    for name in made.columns:
        cells = pd.Series((X[:, 0] > 0.0).astype(int)).astype(pick(rng, kinds))
        if (
            rng.random() < 0.5
            and cells.dtype.kind not in "bi"
            and not isinstance(cells.dtype, pd.SparseDtype)
        ):
            cells.iloc[0] = None
        made[name] = cells
    return made


def _rows(rng: Random, X: np.ndarray) -> list[Any]:
    rows: list[Any] = X.tolist()
    for _ in range(int(rng.integers(1, 3))):
        rows[int(rng.integers(len(rows)))] = pick(rng, [None, [], [1.0], [[1.0]], "x", {}, 1.0])
    return rows


def _sparse(rng: Random, X: np.ndarray) -> Any:
    X = np.where(rng.random(X.shape) < 0.5, 0.0, pick(rng, [X, _sprinkled(rng, X)]))
    kind = pick(rng, [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array])
    made = kind(X)
    if made.nnz and rng.random() < 0.3:
        made.data[0] = np.nan
    return made


def _structured(rng: Random, X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X), dtype=[("a", float), ("b", int)])


TABLES: list[Callable[[Random, np.ndarray], Any]] = [
    *(_sprinkled, _objects, _frame, _text_frame, _sparse, _structured),
    *(_sprinkled, _objects, _typed_frame, _typed_frame, _rows),
    lambda rng, X: X[:1],
    lambda rng, X: X[:0],
    lambda rng, X: X[:, :0],
    lambda rng, X: X[:, [0] * 3],
    lambda rng, X: np.zeros_like(X),
    lambda rng, X: X[:, 0],
    lambda rng, X: X[None],
    lambda rng, X: X[0, 0],
    lambda rng, X: X.tolist(),
    lambda rng, X: [*X.tolist(), [1.0] * 7],
    lambda rng, X: (X * 1e3).astype(pick(rng, ["int8", "uint64", "float16", "float32", "bool"])),
    lambda rng, X: X.astype(pick(rng, ["complex128", "U8", "S4", "longdouble", "M8[s]"])),
    lambda rng, X: np.asfortranarray(X)[::-1],
    lambda rng, X: np.ma.masked_greater(X, 0.0),
    lambda rng, X: X * pick(rng, [1e-320, 1e30, 1e154, 1e308]),
    lambda rng, X: pick(rng, kinds()),
    lambda rng, X: np.broadcast_to(X[:1], X.shape),
    lambda rng, X: pd.Series(X[:, 0]),
]


def target(rng: Random, X: Any, classify: bool) -> Any:
    """Return targets for a table: proper ones more often than not, else anything."""
    size = _length(X)
    proper = np.arange(size) % 2 if classify else rng.uniform(-1.0, 1.0, size)
    if rng.random() < 0.65:
        return proper
    return pick(rng, TARGETS)(rng, proper)


def _length(X: Any) -> int:
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple):
        return int(shape[0]) if shape else 3
    return len(X) if isinstance(X, list | tuple) else 3


def _mixed(rng: Random, y: np.ndarray) -> np.ndarray:
    return as_column([pick(rng, [0, 1, "a", None, 1.5, *IMPROPER]) for _ in y])


TARGETS: list[Callable[[Random, np.ndarray], Any]] = [
    *(_mixed, _mixed),
    lambda rng, y: _mixed(rng, y).tolist(),
    lambda rng, y: [*y[:-1].tolist(), pick(rng, [None, "word", (0, 1), [1], 1j, np.nan])],
    lambda rng, y: np.ma.masked_equal(y, y[0]) if y.size else y,
    lambda rng, y: pd.Series(y > 0).astype(pick(rng, ["boolean", "category", "object"])),
    lambda rng, y: np.where(rng.random(y.size) < 0.3, pick(rng, [np.nan, np.inf, 1e300, -1]), y),
    lambda rng, y: np.array(["no", "yes"])[(y > 0).astype(int)],
    lambda rng, y: np.array(["no", "yes"], dtype=object)[(y > 0).astype(int)],
    lambda rng, y: y > 0,
    lambda rng, y: np.zeros_like(y),
    lambda rng, y: np.arange(y.size) % 3,
    lambda rng, y: np.arange(y.size),
    lambda rng, y: rng.normal(size=y.size) * pick(rng, [1.0, 1e300, 1e-320]),
    lambda rng, y: np.column_stack([y, y]),
    lambda rng, y: y[:, None],
    lambda rng, y: y[:-1],
    lambda rng, y: y[:0],
    lambda rng, y: y[None, :, None],
    lambda rng, y: None,
    lambda rng, y: 1.0,
    lambda rng, y: y.tolist(),
    lambda rng, y: pd.Series(y, index=np.arange(y.size)[::-1]),
    lambda rng, y: pd.Categorical(np.where(y > 0, "u", "v")),
    lambda rng, y: sparse.csr_matrix(y[:, None].astype(float)),
    lambda rng, y: y.astype(pick(rng, ["complex128", "U8", "float16", "int8", "M8[s]"])),
    lambda rng, y: [[0, 1]] * y.size,
    lambda rng, y: pick(rng, kinds()),
]
