"""Tables encoded by their public schema."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, SplineTransformer

from skdptune.accounting import PrivacyProfile
from skdptune.base import privacy_of, profile_of
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPRandomSearchCV
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline
from tests.base.nasty_records import CELLS, as_column

SCHEMA = Schema(
    {
        "age": (0, 120),
        "pay": {"range": (0, 1e6), "scale": "log", "missing": -1},
        "born": {"range": ("1900-01-01", "2030-01-01"), "missing": True},
        "sector": {"categories": ["a", "b", "c"], "missing": "?", "other": True},
        "grade": {"categories": [1, 2, 3, 5]},
        "paid": "boolean",
        "sex": ["f", "m"],
        "name": "drop",
    }
)
PROPER: dict[str, list[Any]] = {
    "age": [0, 30, 120, 55],
    "pay": [0, 999.5, 1e6, -1],
    "born": ["1950-06-01", "2000-01-31", "2030-01-01", "1900-01-01"],
    "sector": ["a", "b", "c", "?"],
    "grade": [1, 2, 3, 5],
    "paid": [True, False, True, False],
    "sex": ["f", "m", "f", "m"],
    "name": ["Ada", "Bob", "Cy", "Di"],
}
FRAME = pd.DataFrame(PROPER).astype({"born": "datetime64[ns]"})
KNOTS = [None, 2, 5]


def of_objects(rows: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(as_column(v), dtype=object) for name, v in rows.items()})


def encoded(table: Any, n_knots: int | None = 5) -> np.ndarray:
    return TableEncoder(SCHEMA, n_knots).fit(table).transform(table)


# Single records --------------------------------------------------------------------------------


# Each column gets an eighth of the cells in turn, nightly all of them.
@pytest.mark.parametrize(
    ("n_knots", "share"), [(None, 8), (5, 8), pytest.param(5, 1, marks=pytest.mark.slow)]
)
def test_whatever_a_cell_holds_its_record_alone_changes(n_knots, share) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    wanted = encoded(FRAME, n_knots)
    for place, name in enumerate(SCHEMA.names):
        for cell in CELLS[(place + (n_knots is None)) % share :: share]:
            rows = {column: [*values, values[0]] for column, values in PROPER.items()}
            rows[name][-1] = cell
            found = encoded(of_objects(rows), n_knots)
            assert_array_equal(found[:-1], wanted)
            assert np.isfinite(found).all()
            alone = of_objects({column: values[-1:] for column, values in rows.items()})
            assert_array_equal(encoded(alone, n_knots)[0], found[-1])
            # At most the features of the cell's own column differ.
            blocks = columns_of_features(n_knots)
            assert_array_equal(found[-1][blocks != name], wanted[0][blocks != name])


def columns_of_features(n_knots: int | None) -> np.ndarray:
    widths = {one.name: len(one.feature_names(n_knots)) for one in SCHEMA.used}
    return np.repeat(list(widths), list(widths.values()))


@pytest.mark.parametrize("n_knots", KNOTS)
def test_row_is_no_longer_than_the_public_norm(n_knots) -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    encoder = TableEncoder(SCHEMA, n_knots)
    assert encoder.data_norm == math.sqrt(7)
    rng = np.random.default_rng(0)
    picked = [CELLS[at] for at in rng.integers(len(CELLS), size=300 * len(SCHEMA.names))]
    table = as_column(picked).reshape(300, -1)
    lengths = np.linalg.norm(encoded(table, n_knots), axis=1)
    assert lengths.max() <= encoder.data_norm * (1 + 1e-15)
    ends = FRAME.assign(age=[0, 120, 0, 120], pay=[-1, 0, 1e6, -1])
    assert np.linalg.norm(encoded(ends, n_knots), axis=1).max() >= 0.95 * encoder.data_norm


TYPES = {
    "objects": lambda: of_objects(PROPER),
    "words": lambda: FRAME.astype(str),
    "categories": lambda: FRAME.astype(str).astype("category"),
    "best": FRAME.convert_dtypes,
    "single": lambda: FRAME.astype({"age": "float32", "grade": "int8", "paid": "float16"}),
    "complex": lambda: FRAME.astype({"age": "complex128", "pay": "complex128"}),
    "seconds": lambda: FRAME.astype({"born": "datetime64[s]"}),
    "zoned": lambda: FRAME.assign(born=FRAME.born.dt.tz_localize("UTC")),
    "days": lambda: FRAME.assign(born=FRAME.born.dt.date),
    "array": lambda: FRAME.to_numpy(),
    "array of words": lambda: FRAME.astype(str).to_numpy(dtype="U"),
    "rows": lambda: FRAME.to_numpy().tolist(),
    "beside a word": lambda: pd.concat([FRAME, of_objects(dict.fromkeys(PROPER, ["q"]))])[:4],
    "beside a gap": lambda: pd.concat([FRAME, pd.DataFrame({"age": [np.nan]})])[:4],
    "numbered": lambda: FRAME.set_axis(range(8), axis=1),
    "in another order": lambda: FRAME[FRAME.columns[::-1]],
    "without what is dropped": lambda: FRAME.drop(columns="name"),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_columns_do_not_matter(name) -> None:
    # Theorem R7: one record may change them.
    for n_knots in KNOTS:
        assert_array_equal(encoded(TYPES[name](), n_knots), encoded(FRAME, n_knots))


def test_long_columns_are_encoded_as_single_cells() -> None:
    # Theorem R7: vectors of numbers are rounded like one number.
    rng = np.random.default_rng(0)
    rows = {
        "age": rng.normal(60, 40, 151),
        "pay": rng.lognormal(8, 4, 151),
        "born": rng.integers(-(10**15), 10**15, 151).astype("datetime64[us]"),
    }
    schema = {name: SCHEMA.to_dict()["columns"][name] for name in rows}
    for n_knots in KNOTS:
        encoder = TableEncoder(schema, n_knots)
        table = pd.DataFrame(rows)
        whole = encoder.fit(table).transform(table)
        alone = [encoder.transform(table.iloc[[at]])[0] for at in range(len(table))]
        assert_array_equal(whole, alone)
        assert_array_equal(encoder.transform(table.astype(object)), whole)
        assert_array_equal(encoder.transform(table[::-1])[::-1], whole)


class Hidden(pd.DataFrame):
    """A table of which only the form may be seen."""

    @property
    def _constructor(self) -> type:
        return Hidden

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("a cell was looked at")


def test_fit_looks_at_no_cell() -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    fitted = TableEncoder(SCHEMA).fit(Hidden(FRAME))
    assert fitted.n_features_in_ == 8
    assert fitted.feature_names_in_.tolist() == list(PROPER)
    assert fitted.privacy_.profile == PrivacyProfile.pure(0.0)


def test_an_array_is_not_read_in_another_order_than_a_table_was() -> None:
    schema = Schema({"a": (0, 1), "b": (0, 1)})
    table = pd.DataFrame({"b": [0.2, 0.9], "a": [0.5, 0.1]})
    encoder = TableEncoder(schema).fit(table)
    with pytest.raises(ValueError, match="X must be a table with column names, as in fit"):
        encoder.transform(table.to_numpy())
    expected = encoder.transform(table)
    encoder.fit(table[["a", "b"]])
    assert_array_equal(encoder.transform(table[["a", "b"]].to_numpy()), expected)


# Features --------------------------------------------------------------------------------------


def test_numbers_are_as_scikit_learn_makes_them() -> None:
    rows = np.random.default_rng(0).uniform(-10, 130, size=(200, 1))
    by_range = np.array([[0.0], [120.0]])
    schema = {"age": (0, 120)}
    wanted = MinMaxScaler((-1, 1), clip=True).fit(by_range).transform(rows)
    found = TableEncoder(schema, None).transform(rows)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    for n_knots in (2, 3, 6):
        splines = SplineTransformer(n_knots, degree=1).fit(by_range)
        found = TableEncoder(schema, n_knots).transform(rows)
        np.testing.assert_allclose(found, splines.transform(rows), atol=1e-12)


def test_logarithms_of_ranges_divide_them_into_equal_ratios() -> None:
    schema = {"a": {"range": (1, 1e4), "scale": "log"}, "b": {"range": (0, 1e4), "scale": "log"}}
    encoder = TableEncoder(schema, 5)
    assert encoder.get_feature_names_out()[:5].tolist() == [
        "a_1",
        "a_10",
        "a_100",
        "a_1000",
        "a_10000",
    ]
    rows = np.array([[1, 0], [10, 0], [1e4, 1e4], [-5, -5], [math.sqrt(10), 9], [np.inf, 1e9]])
    found = encoder.transform(rows)
    np.testing.assert_allclose(found[:3, :5], np.eye(5)[[0, 1, 4]], atol=1e-15)
    np.testing.assert_allclose(found[4, :5], [0.5, 0.5, 0, 0, 0], atol=1e-12)
    share = 4 * math.log(10) / math.log(10001)
    np.testing.assert_allclose(found[4, 5:7], [1 - share, share], atol=1e-12)
    assert_array_equal(found[3], found[0])
    assert_array_equal(found[5], found[2])


def test_numbers_beyond_their_range_are_clipped() -> None:
    found = TableEncoder({"age": (0, 10)}, None).transform([[-1], [np.inf], [-np.inf], ["11"]])
    assert found.ravel().tolist() == [-1.0, 1.0, -1.0, 1.0]


def test_widest_and_narrowest_ranges_do_not_overflow() -> None:
    wide = TableEncoder({"x": (-1.7e308, 1.7e308)}, None)
    assert wide.transform([[0.0], [1.7e308]]).ravel().tolist() == [0.0, 1.0]
    narrow = TableEncoder({"x": (1.0, np.nextafter(1.0, 2.0))})
    assert np.isfinite(narrow.transform([[1.0], [2.0]])).all()


def test_words_are_as_scikit_learn_makes_them() -> None:
    words = [["a"], ["b"], ["c"], ["q"]]
    encoder = OneHotEncoder(categories=[["a", "b", "c"]], handle_unknown="ignore")
    found = TableEncoder({"w": ["a", "b", "c"]}).transform(words)
    assert_array_equal(found, encoder.fit(words).transform(words).toarray())


def test_gaps_and_strangers() -> None:
    schema = {"w": {"categories": ["a", "b", "c"], "missing": "?", "other": True}, "n": (0, 1)}
    encoder = TableEncoder(schema, None)
    names = ["w_a", "w_b", "w_c", "w_other", "w_missing", "n"]
    assert encoder.get_feature_names_out().tolist() == names
    rows = [["b", 1], ["q", None], ["?", "nan"], [None, "word"], ["", pd.NA]]
    found = encoder.transform(rows)
    missing, other = [0, 0, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0]
    assert found.tolist() == [[0, 1, 0, 0, 0, 1], other, missing, missing, missing]
    # Gaps that the schema does not announce are zeros, too.
    silent = TableEncoder({"w": ["a", "b", "c"], "n": (0, 1)})
    assert silent.transform(rows[1:]).tolist() == [[0.0] * 8] * 4


def test_two_categories_are_one_feature() -> None:
    encoder = TableEncoder({"sex": ["f", "m"], "paid": {"type": "boolean", "missing": True}})
    assert encoder.get_feature_names_out().tolist() == ["sex_m", "paid", "paid_missing"]
    found = encoder.transform([["f", True], ["m", 0], ["x", "TRUE"], [None, None]])
    assert found.tolist() == [[-1, 1, 0], [1, -1, 0], [0, 1, 0], [0, 0, 1]]


def test_features_with_one_name_are_numbered() -> None:
    encoder = TableEncoder({"w": {"categories": ["a", "b", "missing"], "missing": True}})
    assert encoder.get_feature_names_out().tolist() == ["w_a", "w_b", "w_missing_2", "w_missing_3"]


def test_schema_says_which_features_are_numbers() -> None:
    encoder = TableEncoder(SCHEMA, n_knots=None)
    names = encoder.get_feature_names_out()
    assert names[encoder.is_number].tolist() == ["age", "pay", "born"]
    assert "pay_missing" in names
    assert TableEncoder(SCHEMA).is_number == [False] * TableEncoder(SCHEMA).n_features_out


# In compositions -------------------------------------------------------------------------------


def test_it_costs_nothing_and_says_what_it_assumes() -> None:
    encoder = TableEncoder(SCHEMA)
    assert profile_of(encoder, 100) == PrivacyProfile.pure(0.0)
    report = privacy_of(make_pipeline(encoder).fit(FRAME))
    assert report.epsilon == 0.0
    assert "schema of the table" in report.assumptions[0]
    assert encoder.cost_parameters == frozenset()
    with pytest.raises(ValueError, match="n_samples must be"):
        encoder.privacy_profile(0)


def test_frames_in_and_out() -> None:
    encoder = TableEncoder(SCHEMA).set_output(transform="pandas")
    table = FRAME.set_axis(list("wxyz"))
    result = encoder.fit_transform(table)
    assert result.columns.tolist() == encoder.get_feature_names_out().tolist()
    assert result.index.tolist() == list("wxyz")
    assert_array_equal(result.to_numpy(), encoded(FRAME))
    model = make_pipeline(TableEncoder(SCHEMA), LinearRegression()).fit(FRAME, [1, 2, 3, 4])
    assert len(model[:-1].get_feature_names_out()) == model[-1].n_features_in_


def test_no_records_have_no_rows() -> None:
    empty = FRAME[:0]
    assert encoded(empty).shape == (0, TableEncoder(SCHEMA).n_features_out)
    assert encoded(empty.to_numpy()).shape[0] == 0


# Refusals --------------------------------------------------------------------------------------


def test_all_wrong_names_are_listed() -> None:
    table = FRAME.rename(columns={"age": "Age", "sex": "gender"})
    schema = Schema({**SCHEMA.to_dict()["columns"]}, target={"name": "income", "range": (0, 9)})
    table = pd.concat([table, table["paid"], table["pay"].rename("income")], axis=1)
    for method in ("fit", "transform"):
        with pytest.raises(ValueError) as refusal:
            getattr(TableEncoder(schema), method)(table)
        assert str(refusal.value).splitlines() == [
            "X must have the columns of the schema; 6 problems:",
            "- 'age' is missing",
            "- 'sex' is missing",
            "- 'paid' occurs 2 times",
            "- 'Age' is not in the schema: did you mean 'age'? Otherwise describe it, or set it "
            "to 'drop'",
            "- 'gender' is not in the schema: describe it, or set it to 'drop'",
            "- 'income' is the target, which X must not hold",
        ]


@pytest.mark.parametrize(
    ("table", "kind", "words"),
    [
        (np.zeros((3, 2)), ValueError, r"the 8 columns .* got shape \(3, 2\)"),
        (np.zeros(8), ValueError, r"got shape \(8,\)"),
        ([[1, 2], [3]], ValueError, r"the 8 columns .* got shape \(2, 2\)"),
        ([1, 2], ValueError, "columns of the schema"),
        (sparse.eye(8).tocsr(), TypeError, "got a sparse matrix"),
        (FRAME["age"], ValueError, "columns of the schema"),
        ("table", TypeError, "got str"),
        (3, TypeError, "got int"),
    ],
    ids=str,
)
def test_what_is_no_such_table_is_refused(table, kind, words) -> None:
    with pytest.raises(kind, match=words):
        TableEncoder(SCHEMA).fit(table)


def test_a_lazy_frame_is_refused_without_a_look_at_its_columns() -> None:
    frame = pytest.importorskip("polars").LazyFrame({"age": [30.0]})
    with pytest.raises(TypeError, match=r"got LazyFrame\. Give X\.collect\(\)\."):
        TableEncoder({"age": (0, 120)}).fit(frame)


def test_fit_refuses_types_that_fit_nothing_and_transform_none() -> None:
    """Theorem R7: the missing value of a single record may have any type."""
    wrong = FRAME.assign(age=pd.Timedelta(1), sector=1.5)
    with pytest.raises(ValueError, match="whose types fit the schema; 2 problems") as seen:
        TableEncoder(SCHEMA).fit(Hidden(wrong))
    assert "- age: holds durations" in str(seen.value)
    assert "- sector: holds numbers (type float64)" in str(seen.value)
    encoder = TableEncoder(SCHEMA, None).fit(FRAME)
    of_gaps = encoder.transform(FRAME.assign(age=pd.NaT, sector=np.nan, born=np.nan))
    wanted = encoder.transform(FRAME.assign(age=None, sector=None, born=None))
    assert_array_equal(of_gaps, wanted)


@pytest.mark.parametrize("way", ["pipeline", "search"])
def test_types_are_refused_before_anything_is_spent(way: str) -> None:
    """Theorem R7, Theorem H4."""
    table = pd.DataFrame({"age": [1.0, 2.0] * 50, "sex": [0, 1] * 50})
    schema = Schema({"age": (0, 9), "sex": ["f", "m"]}, target=["no", "yes"])
    model = make_private_pipeline(DPLogisticRegression(epsilon=1.0, solver="output"), schema)
    if way == "search":
        model = DPRandomSearchCV(model, epsilon=1.0, delta=1e-5, n_iter=2)
    ledger = PrivacyLedger(":memory:", "people", epsilon=2.0, delta=1e-4)
    with ledger, pytest.raises(ValueError, match="- sex: holds numbers"):
        model.fit(table, ["no", "yes"] * 50)
    assert not any(record.is_spent for record in ledger.history())


@pytest.mark.parametrize("n_knots", [1, 0, -3])
def test_too_few_knots_are_refused(n_knots) -> None:
    for ask in (lambda e: e.fit(FRAME), lambda e: e.data_norm, lambda e: profile_of(e, 10)):
        with pytest.raises(ValueError, match="n_knots must be an integer of at least 2; got"):
            ask(TableEncoder(SCHEMA, n_knots))


def test_schema_is_checked_wherever_it_is_needed() -> None:
    for ask in (lambda e: e.fit(FRAME), lambda e: e.n_features_out, lambda e: profile_of(e, 10)):
        with pytest.raises(ValueError, match="schema must describe every column; 1 problem"):
            ask(TableEncoder({"age": (9, 1)}))
        with pytest.raises(TypeError, match="schema must be a Schema, a dict"):
            ask(TableEncoder(3))


def test_hostile_cells_warn_of_nothing() -> None:
    # Theorem R7: a table with a public schema is encoded cell by cell.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in SCHEMA.names:
            rows = {column: [values[0]] * len(CELLS) for column, values in PROPER.items()}
            encoded(of_objects({**rows, name: list(CELLS)}))
    assert caught == []


@pytest.mark.parametrize(("n_knots", "finer"), [(None, [5, 9]), (2, [3, 5]), (5, [9, 17])])
def test_finer_knots_are_suggested(n_knots: int | None, finer: list[int]) -> None:
    encoder = TableEncoder(SCHEMA, n_knots)
    assert encoder.suggested_space(1000, 8) == {"n_knots": [n_knots, *finer]}
    if n_knots is not None:
        # What the present knots can show, finer ones can: their knots are among those.
        coarse, fine = (
            set(np.linspace(0.0, 1.0, knots).round(9)) for knots in (n_knots, finer[1])
        )
        assert coarse <= fine


def test_tables_without_numbers_have_nothing_to_search() -> None:
    assert TableEncoder(Schema({"sex": ["f", "m"]})).suggested_space(1000, 1) == {}
