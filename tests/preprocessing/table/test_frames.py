"""The columns of a table: found by name, refused by type, described by a public sample."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skdptune.preprocessing import Schema, TableEncoder
from tests.base.nasty_records import as_column

SCHEMA = Schema({"a": (0, 4), "b": "drop", "c": ["x", "y", "z"]})
FRAME = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": ["x", "y"]})


def encoded(table: Any) -> list[list[float]]:
    return TableEncoder(SCHEMA, None).fit(table).transform(table).tolist()


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        FRAME[["c", "b", "a"]],
        FRAME[["c", "a"]],
        FRAME.set_axis([0, 1, 2], axis=1),
        FRAME.to_numpy(),
        FRAME.to_numpy().tolist(),
        tuple(map(tuple, FRAME.to_numpy().tolist())),
        list(FRAME.to_numpy()),
        FRAME.convert_dtypes(),
    ],
    ids=range(9),
)
def test_columns_are_found(table) -> None:
    assert encoded(table) == [[-0.5, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


def test_names_of_two_kinds_are_refused_as_such() -> None:
    with pytest.raises(TypeError, match="^Feature names are only supported if all"):
        encoded(FRAME.set_axis(["a", "b", 2], axis=1))


def test_a_cell_may_be_a_list() -> None:
    # Theorem R7: it does not change the table's shape.
    found = encoded([[1, 2, [3]], [[1, 2, 3], None, "x"]])
    assert found == [[-0.5, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]


def test_times_of_other_libraries_are_not_integers() -> None:
    class Column:
        """As polars does it."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            times = np.array(["1970-01-02", "1970-01-03"], "datetime64[ns]")
            return times if dtype is None else times.astype(dtype)

    class Frame:
        columns = ["t"]
        shape = (2, 1)

        def __len__(self) -> int:
            return 2

        def __getitem__(self, name: str) -> Column:
            return Column()

    encoder = TableEncoder({"t": ("1970-01-01", "1970-01-03")}, None)
    assert encoder.transform(Frame()).tolist() == [[0.0], [1.0]]


# Types of columns -------------------------------------------------------------------------------

KINDS = {
    "range": (0, 120),
    "log": {"range": (1, 1e6), "scale": "log", "missing": True},
    "dates": ("1990-01-01", "2030-01-01"),
    "words": {"categories": ["farm", "office", "mill"], "other": True, "missing": "?"},
    "codes": {"categories": [0, 1, 2]},
    "boolean": "boolean",
}
WORDS = ["1", "farm", "2020-01-01"]
TIMES = ["2020-01-01", "2021-06-01"]


def of_pandas(values: Any, dtype: Any) -> Callable[[str], Any]:
    return lambda name: pd.DataFrame({name: pd.Series(values, dtype=dtype)})


def of_arrow(values: Any, kind: Callable[[Any], Any]) -> Callable[[str], Any]:
    def made(name: str) -> Any:
        arrow = pytest.importorskip("pyarrow")
        return pd.DataFrame({name: pd.Series(values, dtype=pd.ArrowDtype(kind(arrow)))})

    return made


def of_polars(values: Any, kind: Callable[[Any], Any]) -> Callable[[str], Any]:
    def made(name: str) -> Any:
        polars = pytest.importorskip("polars")
        return polars.DataFrame({name: polars.Series(name, values, dtype=kind(polars))})

    return made


DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 6, 1)]
SPANS = [datetime.timedelta(1), datetime.timedelta(2)]
HOURS = [datetime.time(1), datetime.time(2)]
# For each type, cells that fit a column if cells of that type can, and the columns that they fit.
NUMBERS_FIT = "range log codes boolean"
ALL_FIT = "range log dates words codes boolean"
COLUMN_TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    "float64": (of_pandas([1.0, None], "float64"), NUMBERS_FIT),
    "float16": (of_pandas([1.0], "float16"), NUMBERS_FIT),
    "int8": (of_pandas([1], "int8"), NUMBERS_FIT),
    "uint64": (of_pandas([1], "uint64"), NUMBERS_FIT),
    "bool": (of_pandas([True], "bool"), NUMBERS_FIT),
    "complex": (of_pandas([1.0, 1j], None), NUMBERS_FIT),
    "object": (of_pandas(WORDS, "object"), ALL_FIT),
    "datetime": (of_pandas(TIMES, "datetime64[ns]"), "dates"),
    "datetime s": (of_pandas(TIMES, "datetime64[s]"), "dates"),
    "datetime tz": (of_pandas(pd.to_datetime(TIMES, utc=True), None), "dates"),
    "timedelta": (of_pandas([1, 2], "timedelta64[ns]"), ""),
    "Int64": (of_pandas([1, None], "Int64"), NUMBERS_FIT),
    "Float32": (of_pandas([1, None], "Float32"), NUMBERS_FIT),
    "boolean": (of_pandas([True, None], "boolean"), NUMBERS_FIT),
    "string": (of_pandas(WORDS, "string"), ALL_FIT),
    "str": (of_pandas(WORDS, "str"), ALL_FIT),
    "category": (of_pandas(WORDS, "category"), ALL_FIT),
    "category, others": (of_pandas(["Farm", "x"], "category"), ""),
    "category, farm": (of_pandas(["farm", "x"], "category"), "words"),
    "category, numbers": (of_pandas([1, 2], "category"), NUMBERS_FIT),
    "category, dates": (of_pandas(pd.to_datetime(TIMES), "category"), "dates"),
    "category, far": (of_pandas([-5, 1e9], "category"), ""),
    "category, intervals": (of_pandas(pd.interval_range(0, 2), "category"), ""),
    "Sparse": (of_pandas([1, 0], "Sparse[int64]"), NUMBERS_FIT),
    "period": (of_pandas(TIMES, "period[D]"), ""),
    "interval": (of_pandas(pd.interval_range(0, 2), None), ""),
    "arrow int": (of_arrow([1, None], lambda a: a.int64()), NUMBERS_FIT),
    "arrow double": (of_arrow([1.0, None], lambda a: a.float64()), NUMBERS_FIT),
    "arrow bool": (of_arrow([True, None], lambda a: a.bool_()), NUMBERS_FIT),
    "arrow string": (of_arrow(WORDS, lambda a: a.string()), ALL_FIT),
    "arrow binary": (of_arrow([w.encode() for w in WORDS], lambda a: a.binary()), ALL_FIT),
    "arrow decimal": (of_arrow([Decimal(1)], lambda a: a.decimal128(5, 2)), NUMBERS_FIT),
    "arrow date": (of_arrow(DAYS, lambda a: a.date32()), "dates"),
    "arrow timestamp": (of_arrow(DAYS, lambda a: a.timestamp("us")), "dates"),
    "arrow duration": (of_arrow(SPANS, lambda a: a.duration("s")), ""),
    "arrow time": (of_arrow(HOURS, lambda a: a.time64("us")), ""),
    "arrow list": (of_arrow([[1], [2]], lambda a: a.list_(a.int64())), ""),
    "arrow struct": (of_arrow([{"a": 1}], lambda a: a.struct([("a", a.int64())])), ""),
    "arrow dictionary": (
        of_arrow(WORDS, lambda a: a.dictionary(a.int32(), a.string())),
        ALL_FIT,
    ),
    "polars int": (of_polars([1, None], lambda p: p.Int8), NUMBERS_FIT),
    "polars float": (of_polars([1.0, None], lambda p: p.Float32), NUMBERS_FIT),
    "polars boolean": (of_polars([True, None], lambda p: p.Boolean), NUMBERS_FIT),
    "polars string": (of_polars(WORDS, lambda p: p.String), ALL_FIT),
    "polars categorical": (of_polars(WORDS, lambda p: p.Categorical), ALL_FIT),
    "polars enum": (of_polars(WORDS, lambda p: p.Enum(WORDS)), ALL_FIT),
    "polars enum, others": (of_polars(["x"], lambda p: p.Enum(["x"])), ""),
    "polars binary": (of_polars([w.encode() for w in WORDS], lambda p: p.Binary), ALL_FIT),
    "polars decimal": (of_polars([Decimal(1)], lambda p: p.Decimal(5, 2)), NUMBERS_FIT),
    "polars date": (of_polars(DAYS, lambda p: p.Date), "dates"),
    "polars datetime": (of_polars(DAYS, lambda p: p.Datetime("ns")), "dates"),
    "polars datetime tz": (of_polars(DAYS, lambda p: p.Datetime("us", "UTC")), "dates"),
    "polars duration": (of_polars(SPANS, lambda p: p.Duration), ""),
    "polars time": (of_polars(HOURS, lambda p: p.Time), ""),
    "polars list": (of_polars([[1], [2]], lambda p: p.List(p.Int64)), ""),
    "polars object": (of_polars(WORDS, lambda p: p.Object), ALL_FIT),
    "array": (lambda name: np.array([[1.0]]), NUMBERS_FIT),
    "array of words": (lambda name: np.array([[word] for word in WORDS]), ALL_FIT),
    "array of times": (lambda name: np.array([["2020"]], dtype="M8[s]"), "dates"),
    "array of objects": (lambda name: np.array([[word] for word in WORDS], object), ALL_FIT),
    "list": (lambda name: [[word] for word in WORDS], ALL_FIT),
    "numbered": (lambda name: pd.DataFrame([[1.5], [2.5]]), "range log"),
}


def is_refused(table: Any, schema: Schema) -> bool:
    try:
        TableEncoder(schema).fit(table)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("dtype", COLUMN_TYPES)
def test_types_are_refused_where_no_cell_of_theirs_fits(dtype: str) -> None:
    """Theorem R7: a fit refuses a type that no cell of it fits, and no other, cells unseen."""
    make, fitting = COLUMN_TYPES[dtype]
    for name, described in KINDS.items():
        table, schema = make(name), Schema({name: described})
        # The numbers 1.5 and 2.5 are not codes, but their type can hold codes.
        can_fit = name in (NUMBERS_FIT if dtype == "numbered" else fitting).split()
        assert is_refused(table, schema) != can_fit, name
        if can_fit:
            counts = schema.quality(table, epsilon=math.inf).counts
            n_wrong = sum(each.count for each in counts)
            assert (n_wrong < len(table)) == (name in fitting.split()), name


def test_types_that_say_nothing_pass() -> None:
    tables = [pd.DataFrame({"x": pd.Series([None, None], dtype="category")})]
    tables += [pd.DataFrame({"x": pd.Series(["?", None], dtype="category")}), [[None]]]
    tables += [np.array([[None]]), of_pandas([None], "object")("x")]
    for table in tables:
        for described in KINDS.values():
            is_gap = "?" in str(described) or "?" not in str(table)
            assert is_refused(table, Schema({"x": described})) != is_gap


@pytest.mark.parametrize(
    ("dtype", "described", "fits"),
    [
        ("int8", (1000, 2000), False),
        ("int16", (1000, 2000), True),
        ("int8", (-1000, 5), True),
        ("int64", (0.2, 0.8), False),
        ("float32", (0.2, 0.8), True),
        ("bool", (18, 90), False),
        ("bool", (-1, 0), True),
        ("bool", {"categories": ["yes", "no"]}, False),
        ("bool", {"categories": ["true", "false"]}, True),
        ("bool", {"categories": [1, 2, 3]}, True),
        ("bool", {"categories": [2, 3]}, False),
        ("uint8", {"categories": [-1, 300]}, False),
        ("int64", {"categories": [0.5, 1.5]}, False),
        ("int64", {"categories": ["1", "farm"]}, True),
        ("int64", {"categories": ["a", "b"], "missing": -1, "other": True}, False),
    ],
    ids=str,
)
def test_numbers_fit_as_far_as_their_type_reaches(dtype: str, described: Any, fits: bool) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    table = pd.DataFrame({"x": pd.Series([0, 1], dtype=dtype)})
    assert is_refused(table, Schema({"x": described})) != fits


def test_all_types_that_do_not_fit_are_listed_with_what_to_do() -> None:
    # Theorem R7: categories of a type may be those of records, and are not shown.
    table = pd.DataFrame(
        {
            "age": pd.Series([1], dtype="timedelta64[s]"),
            "sector": pd.Series(["secret"], dtype="category"),
            "since": [2020],
            "fine": [1],
            "gone": pd.Series([1], dtype="timedelta64[s]"),
        }
    )
    described = {"age": (0, 9), "sector": ["a", "b"], "since": ("2020-01-01", "2030-01-01")}
    schema = Schema({**described, "fine": (0, 1)}, drop=["gone"])
    with pytest.raises(ValueError) as refusal:
        TableEncoder(schema).fit(table)
    head, *lines = str(refusal.value).splitlines()
    assert head == "X must have columns whose types fit the schema; 3 problems:"
    assert lines == [
        "- age: holds durations (type timedelta64[s]), none of which can be a number: convert it "
        "to numbers with .dt.total_seconds()",
        "- sector: holds categories (CategoricalDtype), none of which can be a category: compare "
        "them with the schema: spelling, capitals, language",
        "- since: holds numbers (type int64), none of which can be a date: convert it to dates "
        "with pandas.to_datetime(column, unit=...)",
    ]


# Descriptions read off a public sample -------------------------------------------------------


_MISSING = "1 of 3 cells are missing, but 'missing' is not declared: "


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ([1, 5, 3], {"range": [1, 5]}),
        ([1.5, None, 3], {"range": [1.5, 3], "missing": True}),
        (["1.5", "", "3"], {"range": [1.5, 3], "missing": True}),
        ([1.0, np.inf, 3], {"range": [1, 3]}),
        ([True, False, None], {"type": "boolean", "missing": True}),
        (["True", "false"], {"type": "boolean"}),
        ([0, 1], {"range": [0, 1]}),
        (["b", "a", "b "], {"categories": ["a", "b"]}),
        (["b", None, "a"], {"categories": ["a", "b"], "missing": True}),
        (["b", "b"], {"categories": ["b"], "other": True}),
        (["a", 1], {"categories": ["1", "a"]}),
        (["2020-01-01", "2021-01-01"], {"range": ["2020-01-01", "2021-01-01"]}),
        (
            [pd.Timestamp("2020-01-01"), pd.NaT, pd.Timestamp("2020-01-02T12:00")],
            {"range": ["2020-01-01", "2020-01-02T12:00:00"], "missing": True},
        ),
        (
            np.array(["2020-01-01", "2020-01-03"], "M8[ns]"),
            {"range": ["2020-01-01", "2020-01-03"]},
        ),
    ],
    ids=range(14),
)
def test_descriptions(cells, wanted) -> None:
    column = cells if isinstance(cells, np.ndarray) else pd.Series(cells, dtype=object)
    schema = Schema.from_public_sample(pd.DataFrame({"x": column}))
    assert schema.to_dict()["columns"]["x"] == wanted


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], "no values"),
        ([None, np.nan, ""], "no values"),
        ([3, 3], "a single value, which is not a range"),
        ([f"word {i}" for i in range(30)], "30 different words in 30 rows look like free text"),
        ([f"w{i % 60}" for i in range(200)], "60 different words in 200 rows"),
    ],
    ids=range(5),
)
def test_what_the_sample_does_not_say(cells, words) -> None:
    with pytest.raises(ValueError, match="public_sample must show") as refusal:
        Schema.from_public_sample(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
    for expected in (words, "columns=", "drop="):
        assert expected in str(refusal.value)


NUMBER, DATE, WORD = (0, 9), ("1970-01-01", "1970-01-10"), ["a", "b", "q"]
GAPS = {"range": NUMBER, "missing": True}


@pytest.mark.parametrize(
    ("described", "cells", "found"),
    [
        (NUMBER, [1, "2", True], []),
        (NUMBER, [1, "two", {}], ["2 of 3 cells are not numbers: 'two', {}"]),
        (NUMBER, [1, "two", None], ["1 of 3 cells are not numbers: 'two'", _MISSING + "None"]),
        (NUMBER, [-1, 9.5, 1], ["2 of 3 cells are outside of the range, and clipped: -1, 9.5"]),
        ({**GAPS, "missing": ["-", -1]}, [None, "-", -1.0, ""], []),
        (GAPS, ["-"], ["1 of 1 cells are not numbers: '-'"]),
        (DATE, ["1970-01-02", np.datetime64("1970-01-03")], []),
        (
            DATE,
            ["x", 3, "2020-01-01"],
            ["2 of 3 cells are not dates: 'x', 3", "1 of 3 cells are o"],
        ),
        (WORD, ["a", " b"], []),
        (
            WORD,
            list("cdefgcc"),
            ["7 of 7 cells are in no category, but 'other' is not declared: 'c', 'd'"],
        ),
        (WORD, ["a", "b", np.nan], [_MISSING + "nan"]),
        ({"categories": WORD, "missing": True, "other": True}, ["c", None], []),
    ],
    ids=range(12),
)
def test_what_does_not_fit(described, cells, found) -> None:
    table, schema = pd.DataFrame({"x": as_column(cells)}), Schema({"x": described})
    if not found:
        schema.check_public_sample(table)
        return
    with pytest.raises(ValueError) as refusal:
        schema.check_public_sample(table)
    _, *problems = str(refusal.value).splitlines()
    for problem, words in zip(problems, found, strict=True):
        assert problem.startswith(f"- x: {words}")
