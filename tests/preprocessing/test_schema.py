"""Public descriptions of tables."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skdptune.preprocessing import DPMinMaxScaler, Schema, TableEncoder, make_private_pipeline

COLUMNS = {
    "age": (0, 120),
    "pay": {"range": [0, 1.5e6], "scale": "log", "missing": -1},
    "born": {"range": ["1900-01-01", "2030-06-01T12:00:00"], "missing": True},
    "sector": {"categories": ["a", "b", "ü"], "missing": "?", "other": True},
    "grade": {"categories": [1, 2.5]},
    "paid": "boolean",
    "name": "drop",
}


def as_schema(form: Any) -> Schema:
    """Return what a private pipeline makes of a schema in any form."""
    return make_private_pipeline(DPMinMaxScaler(bounds=(0, 1)), form)[0].schema


TARGETS = [None, (0, 9), ["no", "yes"], {"name": "out", "categories": [0, 1]}, "boolean"]
PRESSURES = [{"name": "high", "range": [60, 250]}, {"name": "low", "range": [30, 150]}]
TARGETS += [PRESSURES, [(0, 1), {"range": (2, 3)}, (4, 5)]]


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_every_form_is_the_same_schema(target, tmp_path) -> None:
    schema = Schema(COLUMNS, target)
    path = tmp_path / "schema.json"
    text = schema.to_json(path)
    assert json.loads(text) == schema.to_dict()
    others = [Schema.from_dict(schema.to_dict()), Schema.from_json(text), Schema.from_json(path)]
    others += [as_schema(form) for form in (schema, schema.to_dict(), str(path), text)]
    others += [copy.deepcopy(schema), pickle.loads(pickle.dumps(schema)), eval(repr(schema))]
    for other in others:
        assert other == schema
        assert hash(other) == hash(schema)
        assert repr(other) == repr(schema)
    assert as_schema(COLUMNS) == Schema(COLUMNS)
    assert schema != Schema({"age": (0, 121)})
    assert schema != "schema"


def test_what_is_known_of_the_target() -> None:
    assert Schema(COLUMNS).target_bounds is None
    assert Schema(COLUMNS).target_labels is None
    assert Schema(COLUMNS, (-3, 9)).target_bounds == (-3.0, 9.0)
    assert Schema(COLUMNS, ["no", "yes"]).target_labels == ["no", "yes"]
    assert Schema(COLUMNS, "boolean").target_labels == [False, True]
    several = Schema(COLUMNS, PRESSURES)
    assert several.target_names == ("high", "low")
    assert several.target_bounds == ((60.0, 250.0), (30.0, 150.0))
    assert several.target_labels is None
    assert Schema(COLUMNS, [(0, 1), (2, 3)]).target_names == ("target_0", "target_1")


def test_columns_are_dropped_by_name() -> None:
    described = {name: column for name, column in COLUMNS.items() if name != "name"}
    assert Schema(described, drop=["name"]) == Schema(COLUMNS)
    with pytest.raises(ValueError, match="- age: is both dropped and described"):
        Schema(COLUMNS, drop=["age"])
    with pytest.raises(ValueError, match="drop must be a list of names; got 'name'"):
        Schema(described, drop="name")


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError) as refusal:
        Schema({"a": (1, 0), "b": "text", "c": ["x", "y"]}, target={"name": "c", "range": [0, 1]})
    head, *lines = str(refusal.value).splitlines()
    assert head == "schema must describe every column; 3 problems:"
    assert [line[:5] for line in lines] == ["- a: ", "- b: ", "- c: "]


@pytest.mark.parametrize("wrong", [3, [], {"column": {}}, {"columns": {}, "extra": 1}, None])
def test_wrong_descriptions_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="description must be a dict with 'columns', and maybe"):
        Schema.from_dict(wrong)


def test_names_are_given_once_in_a_file() -> None:
    with pytest.raises(ValueError, match=r"names must be unique .* got 'a' twice"):
        Schema.from_json('{"columns": {"a": [0, 1], "a": [0, 2]}}')


@pytest.mark.parametrize("name", ["", ".", "no such file", "x" * 5000], ids=range(4))
def test_files_that_cannot_be_read_are_named(name) -> None:
    with pytest.raises(ValueError, match="schema must be a Schema, .* or the name of a JSON file"):
        as_schema(name)


def test_a_table_may_have_a_column_named_columns() -> None:
    assert as_schema({"columns": (0, 1), "a": (0, 1)}).names == ("columns", "a")
    assert as_schema({"columns": {"range": (0, 1)}, "a": (0, 1)}).names == ("columns", "a")


def sample() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, 100),
            "pay": rng.choice([1e3, 2.5e4, np.nan], 100),
            "sector": pd.Categorical(rng.choice(["farm", "office"], 100)),
            "since": pd.date_range("2020-01-01", periods=100),
            "paid": rng.choice([True, False], 100),
            "name": [f"person {i}" for i in range(100)],
            "out": rng.choice(["no", "yes"], 100),
        }
    )


def test_sample_shows_ranges_and_categories() -> None:
    public = sample()
    schema = Schema.from_public_sample(
        public, columns={"age": (0, 120)}, target="out", drop=["name"]
    )
    assert schema == Schema(
        {
            "age": (0, 120),
            "pay": {"range": (1e3, 2.5e4), "missing": True},
            "sector": ["farm", "office"],
            "since": {"range": ("2020-01-01", "2020-04-09")},
            "paid": "boolean",
            "name": "drop",
        },
        target={"name": "out", "categories": ["no", "yes"]},
    )
    assert TableEncoder(schema).fit_transform(public.drop(columns="out")).shape[0] == 100


def test_sample_that_leaves_something_open_is_refused() -> None:
    public = sample().assign(empty=None, constant=3)
    with pytest.raises(ValueError) as refusal:
        Schema.from_public_sample(public, drop=["nmae"])
    lines = str(refusal.value).splitlines()
    assert lines[0] == "public_sample must show the content of every column; 4 problems:"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "- nmae",
        "- name",
        "- empty",
        "- constant",
    ]


def test_sample_that_made_a_schema_fits_it() -> None:
    public = sample()
    schema = Schema.from_public_sample(public, drop=["name"])
    schema.check_public_sample(public)
    schema.check_public_sample(public.to_numpy())
    schema.check_public_sample(public.drop(columns="name").astype(str))
    with pytest.raises(ValueError, match="'age' is missing"):
        schema.check_public_sample(public.drop(columns="age"))
    with pytest.raises(ValueError, match="1 problem:\n- age: 100 of 100 cells are outside"):
        schema.check_public_sample(public.assign(age=5))


def test_public_targets_are_compared_with_the_schema() -> None:
    schema = Schema({"age": (0, 120)}, target=["ill", "well"])
    schema.check_public_sample([[1], [2]], np.array(["ill", "well"]))
    with pytest.raises(ValueError, match="- target: 1 of 2 cells are in no category.*'Ill'"):
        schema.check_public_sample([[1], [2]], ["Ill", "well"])
    with pytest.raises(ValueError, match="- target: 2 of 2 cells are in no category"):
        schema.check_public_sample([[1], [2]], [0, 1])
    numbers = Schema({"age": (0, 120)}, target={"categories": [0, 1]})
    numbers.check_public_sample([[1], [2]], np.array([0.0, 1.0]))
    ranged = Schema({"age": (0, 120)}, target=(0, 10))
    with pytest.raises(ValueError, match="- target: 1 of 1 cells are outside of the range"):
        ranged.check_public_sample([[1]], [11])
    with pytest.raises(ValueError, match="targets must be left out"):
        Schema({"age": (0, 120)}).check_public_sample([[1]], [1])


def test_only_tables_with_names_are_samples() -> None:
    with pytest.raises(TypeError, match="public_sample must be a DataFrame"):
        Schema.from_public_sample(np.zeros((3, 2)))


# What a user writes about columns, and what is said about mistakes ---------------------------


DATES = {"range": ["1970-01-01", "1970-01-02"]}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((0, 9), {"range": [0, 9]}),
        (np.array([0, 9]), {"range": [0, 9]}),
        ({"range": (0, np.int64(9)), "scale": "linear", "missing": False}, {"range": [0, 9]}),
        ({"type": "integer", "range": [0, 9]}, {"range": [0, 9]}),
        ({"range": [0, 9], "scale": "log"}, {"range": [0, 9], "scale": "log"}),
        ({"range": [0, 9], "missing": -1}, {"range": [0, 9], "missing": [-1]}),
        (["1970-01-01", "1970-01-02"], DATES),
        (["1970", "1971"], {"categories": ["1970", "1971"]}),
        ((datetime.date(1970, 1, 1), datetime.datetime(1970, 1, 2)), DATES),
        ({"type": "date", "range": (pd.Timestamp(0), np.datetime64("1970-01-02"))}, DATES),
        (("a", "b"), {"categories": ["a", "b"]}),
        (["18", "100"], {"categories": ["18", "100"]}),
        ({"categories": np.array(["a", "b"])}, {"categories": ["a", "b"]}),
        ({"categories": ["a"], "other": True}, {"categories": ["a"], "other": True}),
        ({"categories": ["a", "b"], "missing": ["?", "-"]}, None),
        (bool, {"type": "boolean"}),
        ({"type": "bool"}, {"type": "boolean"}),
    ],
    ids=repr,
)
def test_right_columns(given, wanted) -> None:
    schema = Schema({"x": given})
    assert schema.to_dict()["columns"]["x"] == (given if wanted is None else wanted)
    # What is written down again is read as the same.
    assert Schema.from_dict(schema.to_dict()) == schema


WRONG: list[tuple[Any, str]] = [
    (None, "must be a range such as"),
    ((9, 0), "range must be two finite numbers, the first smaller; got (9, 0)"),
    (("18", "100"), "got ('18', '100'). For a range write (18, 100), for categories a list"),
    ((0, " 1.5"), "For a range write (0, 1.5), for categories a list"),
    (("2020-13-01", "2021-01-01"), "of which one is a date. For categories write a list"),
    ((0, np.inf), "range must be two finite numbers, the first smaller; got (0, inf). If a "),
    ({"range": [0, 1, 2]}, "range must be two"),
    ({"range": ["2020-02-01", "2020-01-01"]}, "range must be two dates, the first smaller"),
    ({"type": "date", "range": [0, 1]}, "range must suit the type 'date'"),
    ({"range": [0, 5e-324]}, "range must be wider than rounding errors"),
    ({"range": [1e300, np.nextafter(1e300, 2e300)], "scale": "log"}, "wider than rounding"),
    ({"range": [-1, 5], "scale": "log"}, "scale 'log' needs a range of numbers from 0"),
    ({"range": [0, 5], "scale": "cubic"}, "scale must be 'linear' or 'log'; got 'cubic'"),
    ({"range": [0, 5], "other": True}, "'other' has no meaning for a range"),
    ({"range": [0, 5], "missing": []}, "missing must be True, False, or the mark"),
    ({"range": [0, 5], "scal": "log"}, "unknown key 'scal' (did you mean 'scale'?); known are"),
    ({"range": [0, 5], "categories": ["a"]}, "must have either 'range' or 'categories'; got both"),
    ({"type": "category", "range": [0, 5]}, "a category must have 'categories'"),
    ({"type": "categroy"}, "type must be 'number', 'integer', 'date', 'category', 'boolean'; got"),
    ({"type": "boolean", "range": [0, 1]}, "'range' has no meaning for a boolean"),
    ("text", "free text and identifiers have no public range: set the column to 'drop'"),
    (["a", "b", " a"], "categories[0] and categories[2] are the same to the encoder"),
    ({"categories": ["a", "?"], "missing": "?"}, "categories[1] and missing[0] are the same"),
    (["a", None], "categories[1] must be a string or a number; got None"),
    ({"categories": "abc"}, "categories must be a list of strings or numbers; got 'abc'"),
    (["a"], "a single category needs 'other' or 'missing'"),
    ({"categories": ["a", "b"], "other": 1}, "other must be True or False; got 1"),
    ({"categories": ["a", "b"], "scale": "log"}, "'scale' has no meaning for categories"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=range(len(WRONG)))
def test_wrong_columns(given, words) -> None:
    with pytest.raises(ValueError) as refusal:
        Schema({"x": given})
    head, line = str(refusal.value).splitlines()
    assert head == "schema must describe every column; 1 problem:"
    assert line.startswith("- x: ") and words in line


def test_a_column_of_the_table_in_place_of_a_list_is_not_told() -> None:
    # Which rows are the same is as private as what they hold.
    with pytest.raises(ValueError, match="got 5000 with repetitions") as refusal:
        Schema({"x": (0, 1)}, target=np.array(["ill", "well"] * 2500))
    assert "[0]" not in str(refusal.value)
    with pytest.raises(ValueError, match="300 problems") as refusal:
        Schema({"x": [None] * 300})
    assert str(refusal.value).count("\n") == 41


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (None, "columns must be a dict from names to"),
        ({}, "columns must be a dict from names to"),
        ({"a": "drop"}, "must not all be dropped"),
        ({3: (0, 1)}, "- 3: "),
    ],
    ids=str,
)
def test_columns_must_be_a_dict_that_leaves_some(columns, words) -> None:
    with pytest.raises(ValueError, match=words):
        Schema(columns)


@pytest.mark.parametrize(
    "target",
    [
        *("drop", {"name": 3, "range": [0, 1]}, {"range": [0, 9], "missing": True}, (9, 0), ["a"]),
        *(("2020-01-01", "2021-01-01"), ["a", 1], [(0, 1)]),
        [(0, 1), ["no", "yes"]],
        [(0, 1), (3, 2)],
        [(0, 1), "drop"],
        [(0, 1), {"name": "x", "range": (0, 1)}],
        [{"name": "y", "range": (0, 1)}, {"name": "y", "range": (0, 1)}],
    ],
    ids=str,
)
def test_wrong_targets(target) -> None:
    with pytest.raises(ValueError, match="schema must describe every column; 1 problem:"):
        Schema({"x": (0, 1)}, target=target)


def test_public_targets_of_several_ranges_are_compared_each() -> None:
    schema = Schema({"x": (0, 1)}, PRESSURES)
    schema.check_public_sample([[1]], [[120, 80]])
    with pytest.raises(ValueError) as refusal:
        schema.check_public_sample([[1], [0]], [[120, 20], ["x", 80]])
    _, high, low = str(refusal.value).splitlines()
    assert high.startswith("- high: 1 of 2 cells are not numbers: 'x'")
    assert low.startswith("- low: 1 of 2 cells are outside of the range")


@pytest.mark.parametrize("column", ["high", "low"])
def test_features_hold_no_target_of_several(column) -> None:
    schema = Schema({"x": (0, 1)}, PRESSURES)
    with pytest.raises(ValueError, match=f"'{column}' is the target, which X must not hold"):
        schema.check_public_sample(pd.DataFrame({"x": [1], column: [100]}))
