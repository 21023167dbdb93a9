"""Public descriptions of tables."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from skdptune.preprocessing import Schema, TableEncoder
from skdptune.preprocessing._shared import as_schema

COLUMNS = {
    "age": (0, 120),
    "pay": {"range": [0, 1.5e6], "scale": "log", "missing": -1},
    "born": {"range": ["1900-01-01", "2030-06-01T12:00:00"], "missing": True},
    "sector": {"categories": ["a", "b", "ü"], "missing": "?", "other": True},
    "grade": {"categories": [1, 2.5]},
    "paid": "boolean",
    "name": "drop",
}
TARGETS = [None, (0, 9), ["no", "yes"], {"name": "out", "categories": [0, 1]}, "boolean"]


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


def test_names() -> None:
    schema = Schema(COLUMNS)
    assert schema.names == tuple(COLUMNS)
    assert [column.name for column in schema.used] == list(COLUMNS)[:-1]


def test_columns_are_dropped_by_name() -> None:
    described = {name: column for name, column in COLUMNS.items() if name != "name"}
    assert Schema(described, drop=["name"]) == Schema(COLUMNS)
    with pytest.raises(ValueError, match="- age: is to be dropped, and described, too"):
        Schema(COLUMNS, drop=["age"])
    with pytest.raises(ValueError, match="drop must be a list of names; got 'name'"):
        Schema(described, drop="name")


def test_a_line_for_each_column() -> None:
    lines = repr(Schema(COLUMNS, (0, 9))).splitlines()
    assert lines[2] == "        'age': {'range': [0, 120]},"
    assert lines[-2] == "    target={'name': 'target', 'range': [0, 9]},"
    assert len(lines) == len(COLUMNS) + 5


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError) as refusal:
        Schema({"a": (1, 0), "b": "text", "c": ["x", "y"]}, target={"name": "c", "range": [0, 1]})
    head, *lines = str(refusal.value).splitlines()
    assert head == "schema must describe every column; 3 things wrong:"
    assert [line[:5] for line in lines] == ["- a: ", "- b: ", "- c: "]


@pytest.mark.parametrize("wrong", [3, [], {"column": {}}, {"columns": {}, "extra": 1}, None])
def test_wrong_descriptions_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="description must be a dict with 'columns', and maybe"):
        Schema.from_dict(wrong)


def test_names_are_given_once_in_a_file() -> None:
    with pytest.raises(ValueError, match=r"names must be given once .* got 'a' again"):
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
    assert lines[0] == "public_sample must show what every column holds; 4 things wrong:"
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
    with pytest.raises(ValueError, match="1 thing wrong:\n- age: 100 of 100 cells are beyond"):
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
    with pytest.raises(ValueError, match="- target: 1 of 1 cells are beyond the range"):
        ranged.check_public_sample([[1]], [11])
    with pytest.raises(ValueError, match="targets must be left out"):
        Schema({"age": (0, 120)}).check_public_sample([[1]], [1])


def test_only_tables_with_names_are_samples() -> None:
    with pytest.raises(TypeError, match="public_sample must be a DataFrame"):
        Schema.from_public_sample(np.zeros((3, 2)))


def test_warning_not_to_pass_private_tables() -> None:
    for method in (Schema.from_public_sample, Schema.check_public_sample):
        assert "Never pass a private table" in method.__doc__
