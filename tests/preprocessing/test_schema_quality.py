"""Noisy counts of the cells of a private table that do not fit its schema (Theorem R8)."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivacyWarning
from skdptune.ledger import LedgerError, PrivacyLedger, config_context
from skdptune.linear_model import DPRidge
from skdptune.preprocessing import Schema, make_private_pipeline
from tests.base.nasty_records import CELLS, IMPROPER, as_column

COLUMNS = {
    "age": (0, 120),
    "pay": {"range": (0, 1e6), "scale": "log", "missing": -1},
    "born": {"range": ("1900-01-01", "2030-01-01"), "missing": "?"},
    "sector": {"categories": ["a", "b", "c"], "missing": "?", "other": True},
    "grade": {"categories": [1, 2, 3, 5]},
    "paid": "boolean",
    "name": "drop",
}
LABELS = Schema(COLUMNS, {"name": "out", "categories": ["no", "yes"]})
NUMBERS = Schema(COLUMNS, {"name": "out", "range": (0, 9)})
ROWS = {
    "age": [0, 30, 121, "old"],
    "pay": [0, 999.5, -1, -2],
    "born": ["1950-06-01", "2000-01-31", "?", 1950],
    "sector": ["a", "x", "?", None],
    "grade": [1, 2, 4, "5"],
    "paid": [True, "false", "yes", 0],
    "name": ["Ada", None, 3, "Di"],
}
TARGETS: dict[Schema, list[Any]] = {LABELS: ["no", "yes", "No", None], NUMBERS: [0, 9, 10, None]}


def frame(rows: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(as_column(v), dtype=object) for name, v in rows.items()})


def exact(schema: Schema, X: Any, y: Any = None) -> dict[tuple[str, str], float]:
    """Return the counts without noise."""
    quality = schema.quality(X, y, epsilon=math.inf)
    return {(each.column, each.kind): each.count for each in quality.counts}


def nonzero(counts: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    return {key: count for key, count in counts.items() if count}


# What is counted ------------------------------------------------------------------------------


def test_each_cell_that_does_not_fit_is_counted_once() -> None:
    """Theorem R8."""
    counts = exact(LABELS, frame(ROWS), as_column(TARGETS[LABELS]))
    assert list(counts)[:6] == [
        *(("age", "unmatched"), ("age", "clipped"), ("age", "missing")),
        *(("pay", "unmatched"), ("pay", "clipped"), ("pay", "missing")),
    ]
    assert not {("sector", "clipped"), ("name", "missing"), ("out", "clipped")} & set(counts)
    of_columns = {
        **{("age", "unmatched"): 1, ("age", "clipped"): 1},
        **{("pay", "clipped"): 1, ("pay", "missing"): 1},
        **{("born", "unmatched"): 1, ("born", "missing"): 1},
        **{("sector", "unmatched"): 1, ("sector", "missing"): 2},
        **{("grade", "unmatched"): 1, ("paid", "unmatched"): 1},
    }
    of_labels = {("out", "unmatched"): 1, ("out", "missing"): 1}
    assert nonzero(counts) == of_columns | of_labels
    of_numbers = {("out", "clipped"): 1, ("out", "missing"): 1}
    found = exact(NUMBERS, frame(ROWS), as_column(TARGETS[NUMBERS]))
    assert nonzero(found) == of_columns | of_numbers
    assert nonzero(exact(LABELS, frame(ROWS))) == of_columns


@pytest.mark.parametrize("schema", [LABELS, NUMBERS], ids=["labels", "numbers"])
def test_a_record_is_in_one_count_of_each_column_at_most(schema: Schema) -> None:
    """Theorem R8: whatever it holds, the counts of all others stay as they are."""
    base = exact(schema, frame(ROWS), as_column(TARGETS[schema]))
    columns = [column for column in dict.fromkeys(name for name, _ in base)]
    assert len(columns) == 7
    largest = 0.0
    for cell in CELLS[schema is LABELS :: 2]:
        rows = {name: [*values, cell] for name, values in ROWS.items()}
        found = exact(schema, frame(rows), as_column([*TARGETS[schema], cell]))
        moved = {key: found[key] - base[key] for key in base}
        for column in columns:
            of_column = [change for (name, _), change in moved.items() if name == column]
            assert sorted(of_column)[:-1] == [0.0] * (len(of_column) - 1)
            assert max(of_column) in (0.0, 1.0)
        changes = np.array(list(moved.values()))
        assert np.abs(changes).sum() <= len(columns)
        assert np.linalg.norm(changes) <= math.sqrt(len(columns)) + 1e-12
        largest = max(largest, changes.sum())
        # Each cell is counted independently of the other cells.
        alone = {name: [cell] for name in ROWS}
        assert exact(schema, frame(alone), as_column([cell])) == moved
    assert largest == len(columns)


@pytest.mark.parametrize("k", [1, 3, 49, 5000])
def test_a_person_counts_once_in_each_column_at_most(k: int) -> None:
    """Theorem R8, Theorem P14: whatever their rows hold, all other counts stay as they are."""
    schema = Schema(COLUMNS, {"name": "out", "categories": ["no", "yes"]}, person="patient")
    rows = {**ROWS, "patient": ["p0", "p1", "p1", "p3"]}
    base = exact(schema, frame(rows), as_column(TARGETS[LABELS]))
    drawn = np.random.default_rng(k).integers(len(CELLS), size=k)
    for cells in ([CELLS[place] for place in drawn], ["wrong"] * k):
        more = {name: [*values, *cells] for name, values in ROWS.items()}
        more["patient"] = [*rows["patient"], *["q"] * k]
        found = exact(schema, frame(more), as_column([*TARGETS[LABELS], *cells]))
        moved = {key: found[key] - base[key] for key in base}
        assert min(moved.values()) >= 0.0
        for column in {name for name, _ in base}:
            of_column = [change for (name, _), change in moved.items() if name == column]
            assert sum(of_column) <= 1.0
        # Nobody's rows count nothing.
        more["patient"] = [*rows["patient"], *[None] * k]
        assert exact(schema, frame(more), as_column([*TARGETS[LABELS], *cells])) == base
    assert base["age", "clipped"] == 0.5


def test_counts_of_persons_say_so() -> None:
    """Theorem R8, Theorem P14."""
    schema = Schema({"age": (0, 120)}, person="patient")
    people = pd.DataFrame({"patient": np.arange(6000) // 3, "age": 400})
    ledger = PrivacyLedger(":memory:", "visits", epsilon=1.0, delta=1e-5)
    found = schema.quality(people, epsilon=0.1, random_state=0, ledger=ledger)
    (record,) = ledger.history()
    pair = "add or remove one person with all of their rows"
    assert found.privacy_.neighbouring == record.neighbouring == pair
    assert (found.n_samples, record.details["n_samples"]) == (2000, 2000)
    for text in (str(found), found._repr_html_()):
        assert "of 2000 persons" in text and "6000" not in text
    with pytest.raises(ValueError, match="X must be a DataFrame with the column 'patient'"):
        schema.quality(people[["age"]])


def test_all_cells_at_once_neither_raise_nor_warn() -> None:
    """Theorem R8."""
    table = frame({name: list(CELLS) for name in ROWS})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for schema in (LABELS, NUMBERS):
            warnings.filterwarnings("ignore", r"\w+ is fitted again")
            schema.quality(table, as_column(CELLS), epsilon=1.0)


def test_columns_of_any_type_are_counted_as_single_cells() -> None:
    """Theorem R8: one record may change the type of a column."""
    typed = pd.DataFrame(
        {
            "age": [0.0, 30.0, 121.0, np.nan],
            "pay": pd.array([0, 999, -1, -2], dtype="Int64"),
            "born": pd.to_datetime(["1950-06-01", "2000-01-31", None, "2050-01-01"]),
            "sector": pd.Categorical(["a", "x", "?", None]),
            "grade": [1, 2, 4, 5],
            "paid": pd.array([True, False, None, True], dtype="boolean"),
            "name": ["Ada", "Bob", "Cy", "Di"],
        }
    )
    forms = [typed, typed.astype(object), typed[list(COLUMNS)[::-1]], typed.drop(columns="name")]
    forms += [typed.to_numpy(dtype=object), typed.to_numpy(dtype=object).tolist()]
    forms += [pd.concat([typed, frame(dict.fromkeys(ROWS, ["odd"]))])[:4]]
    counts = [exact(LABELS, form) for form in forms]
    assert all(found == counts[0] for found in counts)
    assert nonzero(counts[0]) == {
        **{("age", "clipped"): 1, ("age", "missing"): 1, ("pay", "missing"): 1},
        **{("pay", "clipped"): 1, ("born", "missing"): 1, ("born", "clipped"): 1},
        **{("sector", "unmatched"): 1, ("sector", "missing"): 2},
        **{("grade", "unmatched"): 1, ("paid", "missing"): 1},
    }


def test_tables_of_polars() -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"age": [30, None], "sector": ["farm", "x"], "out": ["no", "No"]})
    schema = Schema({"age": (0, 9), "sector": ["farm", "mill"]}, LABELS.to_dict()["target"])
    assert nonzero(exact(schema, table)) == {
        **{("age", "clipped"): 1, ("age", "missing"): 1, ("sector", "unmatched"): 1},
        ("out", "unmatched"): 1,
    }


def test_labels_are_counted_as_classifiers_read_them() -> None:
    """Theorem R8: a fit ignores records with labels that it does not know."""
    schema = Schema({"age": (0, 9)}, target=["no", "yes"])
    labels = ["no", " yes", "No", "yes", None, np.nan, 3, "", [1], *IMPROPER]
    rows = [[1]] * len(labels)
    found = exact(schema, rows, as_column(labels))
    # All but the two that are declared.
    assert found[("target", "unmatched")] + found[("target", "missing")] == len(labels) - 2
    assert found[("target", "unmatched")] > found[("target", "missing")] > 0
    with pytest.raises(ValueError, match="target: 1 of 2 cells are in no category, .*: ' yes'"):
        schema.check_public_sample([[1], [1]], ["no", " yes"])


def test_cells_of_several_targets_are_counted_separately() -> None:
    """Theorem R8: a target is a column; a cell that makes a column text changes no other cell."""
    schema = Schema(
        {"a": (0, 9)}, [{"name": "high", "range": (60, 250)}, {"name": "low", "range": (30, 150)}]
    )
    table = pd.DataFrame({"a": [1, 2, 3], "high": [120, 300, 90], "low": [80, 60, np.nan]})
    expected = {("high", "clipped"): 1.0, ("low", "missing"): 1.0}
    assert nonzero(exact(schema, table)) == expected
    assert nonzero(exact(schema, table[["a"]], table[["high", "low"]].to_numpy())) == expected
    odd = pd.concat([table, pd.DataFrame({"a": [1], "high": ["x"], "low": [200]})])
    expected |= {("high", "unmatched"): 1.0, ("low", "clipped"): 1.0}
    assert nonzero(exact(schema, odd)) == expected
    with pytest.raises(ValueError, match="X must hold all targets or none; got 'low' alone"):
        exact(schema, table[["a", "low"]])
    with pytest.raises(ValueError, match="a column for each of the schema's 2 targets"):
        exact(schema, table[["a"]], table["high"])


# The noise --------------------------------------------------------------------------------------


def many(schema: Schema, X: Any, epsilon: float, delta: float, times: int) -> np.ndarray:
    releases = [
        schema.quality(X, epsilon=epsilon, delta=delta, random_state=seed).counts
        for seed in range(times)
    ]
    return np.array([[each.count for each in counts] for counts in releases])


HALF = pd.DataFrame({"a": [1, "x"] * 500, "b": ["p", "q"] * 500})


@pytest.mark.parametrize(("n_more", "delta", "noise"), [(0, 0.0, "laplace"), (9, 5e-4, "norm")])
def test_noise_has_the_stated_distribution(n_more: int, delta: float, noise: str) -> None:
    """Theorem R8: of scale k / epsilon, or of the Gaussian curve's times sqrt(k)."""
    more = {f"c{at}": ["p", "r"] for at in range(n_more)}
    schema = Schema({"a": (0, 9), "b": ["p", "r"], **more})
    table = HALF.assign(**dict.fromkeys(more, "p"))
    stated = schema.quality(table, epsilon=1.0, delta=delta).noise_std
    k = 2 + n_more
    if noise == "laplace":
        assert stated == pytest.approx(math.sqrt(2.0) * k)
    else:
        cost = PrivacyProfile.gaussian(math.sqrt(k) / stated)
        assert cost.epsilon(delta) == pytest.approx(1.0, rel=1e-3)
        assert stated < math.sqrt(2.0) * k
    errors = (many(schema, table, 1.0, delta, 80) - 500)[:, [0, 3]].ravel()
    scale = stated / math.sqrt(2.0) if noise == "laplace" else stated
    assert stats.kstest(errors, getattr(stats, noise)(scale=scale).cdf).pvalue > 0.01


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("n_columns", [1, 3, 40])
def test_the_smaller_noise_is_taken_and_paid_for(n_columns: int, delta: float) -> None:
    """Theorem R8."""
    schema = Schema({f"x{at}": (0, 1) for at in range(n_columns)})
    quality = schema.quality(np.zeros((50, n_columns)), epsilon=0.5, delta=delta)
    laplace = math.sqrt(2.0) * n_columns / 0.5
    assert quality.noise_std <= laplace * (1 + 1e-9)
    assert quality.privacy_.epsilon == 0.5
    assert quality.privacy_.delta == delta
    if quality.noise_std < 0.999 * laplace:
        assert delta > 0.0
        assert quality.privacy_.profile.epsilon(0.0) == math.inf
        gaussian = PrivacyProfile.gaussian(math.sqrt(n_columns) / quality.noise_std)
        assert gaussian.epsilon(delta) <= 0.5
    else:
        assert quality.privacy_.profile == PrivacyProfile.pure(0.5)


def test_counts_stay_between_zero_and_the_number_of_records() -> None:
    counts = many(Schema({"a": (0, 9), "b": ["p", "r"]}), HALF[:20], 0.05, 0.0, 20)
    assert counts.min() == 0.0
    assert counts.max() == 20.0
    shares = Schema({"a": (0, 9), "b": ["p", "r"]}).quality(HALF[:20], epsilon=0.05).to_frame()
    assert shares["share"].between(0.0, 1.0).all()


def test_a_right_schema_is_seldom_suspected() -> None:
    """Theorem R8: the noise exceeds its limit in at most one of 20 releases."""
    schema = Schema({f"x{at}": (0, 1) for at in range(8)})
    table = np.zeros((400, 8))
    for delta in (0.0, 1e-3):
        limits = [
            max(each.count for each in quality.counts) > quality.noise_limit
            for quality in (
                schema.quality(table, epsilon=2.0, delta=delta, random_state=seed)
                for seed in range(100)
            )
        ]
        assert stats.binomtest(sum(limits), 100, 0.05, alternative="greater").pvalue > 0.01
        assert sum(limits) > 0


# What is said -----------------------------------------------------------------------------------


def wrong_table(n: int = 3000) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [30, 40_000, 50] * (n // 3),
            "sector": ["Farm", "mill", "mill"] * (n // 3),
            "ward": ["x", "y", None] * (n // 3),
            "pay": [1.0, None, None] * (n // 3),
            "out": ["no", "No", "yes"] * (n // 3),
        }
    )


WRONG = Schema(
    {
        "age": (0, 120),
        "sector": ["farm", "mill"],
        "ward": {"categories": ["x", "z"], "other": True, "missing": True},
        "pay": {"range": (0, 9), "missing": True},
    },
    target={"name": "out", "categories": ["no", "yes"]},
)


def test_what_looks_wrong_is_named() -> None:
    quality = WRONG.quality(wrong_table(), epsilon=1.0, random_state=0)
    named = [(each.column, each.kind) for each in quality.suspects]
    # Announced cells do not look wrong.
    assert named == [("age", "clipped"), ("sector", "unmatched"), ("out", "unmatched")]
    lines = str(quality).splitlines()
    assert lines[0] == "Cells that do not fit the schema, of 3000 records"
    assert lines[1].split() == ["unmatched", "clipped", "missing"]
    assert lines[3].split()[0] == "sector"
    assert lines[3].split()[4] == "-"
    assert lines[8] == "3 counts are beyond the noise:"
    assert lines[9].startswith("- age: about 3")
    assert lines[9].endswith(
        " % of the cells are clipped; is the range too narrow, or the unit wrong?"
    )
    assert len(lines) == 12
    assert repr(quality) == str(quality)
    html = quality._repr_html_()
    assert html.count("<tr>") == 6
    assert "3 counts are beyond the noise" in html


def test_hints_suit_the_column() -> None:
    schema = Schema({"a": (0, 9), "b": ("2020-01-01", "2021-01-01"), "c": (0, 9)}, target=(0, 9))
    table = pd.DataFrame({"a": ["x"], "b": ["x"], "c": [None]}, dtype=object)
    rows = pd.concat([table] * 900)
    quality = schema.quality(rows, [None] * 900, epsilon=5.0, random_state=0)
    assert [each.hint for each in quality.suspects] == [
        "they are not numbers",
        "they are not dates",
        "declare them by 'missing': True",
        "a record without a target has no effect on a fit",
    ]
    one = Schema({"a": (0, 9)}).quality(table[["a"]], epsilon=99.0, random_state=0)
    assert "1 count is beyond" in str(one)


def test_names_are_escaped() -> None:
    quality = Schema({"<b>": (0, 9)}).quality(np.zeros((9, 1)), epsilon=1.0)
    assert "<b>" not in quality._repr_html_()


# What it costs ----------------------------------------------------------------------------------


@pytest.fixture
def ledger() -> PrivacyLedger:
    return PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=1e-5)


def test_the_report_states_cost_and_assumptions() -> None:
    """Theorem R8."""
    report = WRONG.quality(wrong_table(), epsilon=0.25).privacy_
    assert report.profile == PrivacyProfile.pure(0.25)
    assert (report.epsilon, report.delta) == (0.25, 0.0)
    assert report.neighbouring == "add or remove one record"
    assert len(report.assumptions) == 2
    assert "number of records is public" in report.assumptions[0]
    assert "schema of the table" in report.assumptions[1]
    seeded = WRONG.quality(wrong_table(), epsilon=0.25, random_state=0).privacy_
    assert "seed" in seeded.assumptions[2]
    assert WRONG.quality(wrong_table()).privacy_.epsilon == 0.02
    with pytest.warns(PrivacyWarning, match="delta=0.01 is at least 1/n_samples"):
        WRONG.quality(wrong_table(), delta=0.01)


@pytest.mark.parametrize("way", ["parameter", "block", "config"])
def test_a_release_is_recorded_once(ledger: PrivacyLedger, way: str) -> None:
    """Theorem H4."""
    if way == "parameter":
        quality = WRONG.quality(wrong_table(), epsilon=0.25, ledger=ledger)
    elif way == "block":
        with ledger:
            quality = WRONG.quality(wrong_table(), epsilon=0.25)
    else:
        with config_context(ledger=ledger):
            quality = WRONG.quality(wrong_table(), epsilon=0.25)
    (record,) = ledger.history()
    assert (record.name, record.status) == ("SchemaQualityRelease", "confirmed")
    assert record.details["n_samples"] == 3000
    assert set(record.assumptions) == set(quality.privacy_.assumptions)
    assert ledger.spent(0.0) == pytest.approx(0.25)
    WRONG.quality(wrong_table(), epsilon=0.25, ledger=ledger)
    assert ledger.spent(0.0) == pytest.approx(0.5)


def test_what_does_not_fit_into_the_ledger_is_not_released(ledger: PrivacyLedger) -> None:
    with pytest.raises(RuntimeError, match="must fit into what is left of 'patients'"):
        WRONG.quality(wrong_table(), epsilon=1.5, ledger=ledger)
    with config_context(require_ledger=True), pytest.raises(LedgerError, match="must be given"):
        WRONG.quality(wrong_table())
    assert ledger.history() == []


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": None}, TypeError, "epsilon must be"),
        ({"delta": 1.0}, ValueError, "delta must be"),
        ({"y": ["no"] * 3000}, ValueError, "y must be left out if X holds the target 'out'"),
        ({"X": wrong_table().drop(columns="age")}, ValueError, "- 'age' is missing"),
        ({"X": wrong_table()[:0]}, ValueError, "X must have records; got 0"),
        ({"X": 3}, TypeError, "X must be a DataFrame, or rows of cells; got int"),
        ({"X": wrong_table().assign(age=pd.Timedelta(1))}, ValueError, "- age: holds durations"),
        ({"X": wrong_table().assign(out=1.0)}, TypeError, "y must hold the labels"),
        (
            {"X": wrong_table().drop(columns="out"), "y": ["no"]},
            ValueError,
            "y must be as long as X; got 1 targets for 3000 records",
        ),
        (
            {"X": wrong_table().drop(columns="out"), "y": np.zeros((3000, 2), dtype=object)},
            ValueError,
            "y must have one target per record",
        ),
    ],
    ids=range(11),
)
def test_what_is_refused_costs_nothing(
    ledger: PrivacyLedger, change: dict[str, Any], kind: type, words: str
) -> None:
    arguments: dict[str, Any] = {"X": wrong_table(), "epsilon": 0.25, "ledger": ledger} | change
    with pytest.raises(kind, match=words):
        WRONG.quality(**arguments)
    assert ledger.history() == []


def test_targets_are_left_out_where_none_is_described() -> None:
    with pytest.raises(ValueError, match="y must be left out if the schema has no target"):
        Schema({"a": (0, 9)}).quality([[1]], [0])


def test_names_of_several_targets_are_those_of_the_schema() -> None:
    ranges = [{"name": "high", "range": (60, 250)}, {"name": "low", "range": (30, 150)}]
    schema = Schema({"a": (0, 9)}, ranges)
    table, y = pd.DataFrame({"a": [1]}), pd.DataFrame({"high": [120], "low": [80]})
    assert nonzero(exact(schema, table, y)) == {}
    words = "y must have the columns 'high', 'low', in this order"
    with pytest.raises(ValueError, match=words):
        exact(schema, table, y[["low", "high"]])
    ridge = make_private_pipeline(DPRidge(delta=1e-6), schema)
    with (
        PrivacyLedger(":memory:", "a", epsilon=9.0, delta=1e-3) as ledger,
        pytest.raises(ValueError, match=words),
    ):
        ridge.fit(table, y[["low", "high"]])
    assert ledger.history() == []


def test_the_noise_does_not_depend_on_the_number_of_records() -> None:
    schema = Schema({"a": (0, 9)})
    of_few, of_many = (
        schema.quality(np.zeros((n, 1)), epsilon=0.1, random_state=0) for n in (5, 5000)
    )
    assert of_few.noise_std == of_many.noise_std
    # Nothing to see: a larger epsilon is needed.
    assert "The noise hides everything here" in str(of_few)
    assert "No count is beyond the noise." in str(of_many)
