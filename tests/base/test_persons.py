"""Reading of persons: the person of each row, and the weight of each row."""

from __future__ import annotations

import re
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from skdptune.base._shared import ADVICE, GROUPS, Persons, persons_of, refusal_of, refused_groups
from skdptune.mechanisms import unit_sum
from skdptune.mechanisms._shared import UNIT, WHOLE
from tests.testing.public_estimators import ESTIMATORS, nets

KEY = uuid.UUID(int=7)
# Ids of one person each, in every form that means the same.
SAME = [
    [1, 1.0, "1", np.int8(1), np.float64(1.0), Decimal("1.0"), b"1", np.str_("1")],
    [0, -0.0, "0", Decimal("-0")],
    [0.5, "0.5", np.float64(0.5)],
    [2**53 - 1, str(2**53 - 1), Decimal(2**53 - 1), 2.0**53 - 1],
    [str(2**70)],
    ["01"],
    ["Ann"],
    [" Ann"],
    [str(KEY), KEY],
]
# None of these is an id.
IMPROPER = [
    None,
    np.nan,
    pd.NA,
    pd.NaT,
    np.inf,
    True,
    np.bool_(False),
    2.0**53,
    2**53,
    [1],
    (1,),
    {},
]
IMPROPER += [np.float32(1.0), 1j, Fraction(1, 2), Decimal("NaN"), Decimal("1e999999"), 2**2000]
IMPROPER += [np.datetime64("2020-01-01"), object(), np.array([1]), Decimal("0.5")]


def persons(ids):
    made = persons_of(ids, np.zeros((len(ids), 1)), may_be_empty=True)
    assert isinstance(made, Persons)
    return made


def whose(ids):
    """Return the person of each row, with -1 for nobody."""
    made = persons(ids)
    found = np.full(len(ids), -1)
    found[slice(None) if made.kept is None else made.kept] = made.codes
    return found.tolist()


def test_one_id_has_one_canonical_form():
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    ids = [each for same in SAME for each in same]
    wanted = [place for place, same in enumerate(SAME) for _ in same]
    assert whose(ids) == wanted


@pytest.mark.parametrize("odd", IMPROPER, ids=lambda odd: type(odd).__name__)
def test_a_row_without_an_id_is_nobodys_and_changes_no_other(odd):
    assert whose([odd, "a", odd, "b", "a"]) == [-1, 0, -1, 1, 0]
    assert whose([odd]) == [-1]


def test_ids_in_any_container_are_the_same():
    numbers = [3, 1, 3, 2, 1, 3]
    series = pd.Series(numbers)
    forms = [numbers, tuple(numbers), np.array(numbers), np.array(numbers, dtype=np.uint8), series]
    forms += [series.astype("Int64"), series.astype(str), series.astype("category")]
    forms += [series.astype(str).astype("category"), series.astype("string"), pd.Index(numbers)]
    forms += [np.array(numbers, dtype=float), np.array(numbers, dtype="U4")]
    forms += [np.array(numbers, dtype="S1"), np.ma.masked_array(numbers, mask=False)]
    for form in forms:
        assert whose(form) == [0, 1, 0, 2, 1, 0]


@given(st.data())
def test_integers_of_any_type_are_numbered_alike(data):
    kind = data.draw(st.sampled_from(["int8", "uint8", "int64", "uint64", "int32"]))
    low = max(np.iinfo(kind).min, 1 - 2**53)
    high = min(np.iinfo(kind).max, 2**53 - 1)
    near = st.integers(low, low + 3) | st.integers(high - 3, high)
    ids = data.draw(st.lists(near, min_size=1, max_size=80))
    order = list(dict.fromkeys(ids))
    assert whose(np.array(ids, dtype=kind)) == [order.index(one) for one in ids] == whose(ids)


def test_missing_ids_are_found_in_any_container():
    masked = np.ma.masked_array([3, 2**52, 2**52 + 1, 3], mask=[False, False, False, True])
    assert whose(masked) == [0, 1, 2, -1]
    series = pd.Series([3, None, 3])
    for form in (series, series.astype("Int64"), series.astype("category"), series.to_numpy()):
        assert whose(form) == [0, -1, 0]
    # A missing id turned integers into floats, in which these two would be one person.
    assert whose(pd.Series([2**53, 2**53 + 1, None])) == [-1, -1, -1]
    # The same without the missing id, whatever holds the others: it decides only its own row.
    for hold in (np.array, list, pd.Series, lambda ids: pd.array(ids, dtype="Int64")):
        assert whose(hold([2**53, 5, 2**53 + 1])) == [-1, 0, -1]
    assert whose([2**53, 5, None]) == [-1, 0, -1]
    assert whose([Decimal(2**53), Decimal(5)]) == [-1, 0]
    assert whose([str(2**53), str(2**53 + 1)]) == [0, 1]


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40))
def test_persons_are_numbered_by_their_first_rows_and_counted_with_all(letters):
    made = persons(letters)
    order = list(dict.fromkeys(letters))
    assert made.codes.tolist() == [order.index(letter) for letter in letters]
    assert made.counts.tolist() == [letters.count(letter) for letter in order]
    assert (made.size, made.n_rows) == (len(order), len(letters))
    # Ids may be renamed.
    assert_array_equal(persons([f"{ord(letter)}" for letter in letters]).codes, made.codes)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_integer_weights_of_a_person_never_sum_to_more_than_one_row(ids):
    made = persons(ids)
    sums = np.bincount(made.codes, made.weights)
    assert (sums <= WHOLE).all() and (sums > WHOLE - made.counts).all()
    assert (np.bincount(made.codes, made.shares) <= 1.0).all()
    seen = np.zeros(len(ids), dtype=np.int64)
    for weight, places in made.by_weight():
        seen[places] += weight
    assert_array_equal(seen, made.weights)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.data())
def test_a_batch_of_persons_has_exactly_their_rows(ids, data):
    made = persons(ids)
    batch = data.draw(st.lists(st.integers(0, made.size - 1), unique=True).map(sorted))
    places = made.rows_of(np.array(batch, dtype=np.intp))
    assert sorted(places.tolist()) == np.flatnonzero(np.isin(made.codes, batch)).tolist()
    assert made.rows_of(slice(None)) == slice(None)


@pytest.mark.parametrize("k", [1, 2, 7, 50, 5000])
def test_a_mean_is_within_the_bounds_of_rows_and_cut_towards_zero(k):
    # Theorem P14, Theorem R1.
    rng = np.random.default_rng(k)
    units = rng.uniform(-1, 1, size=(k + 3, 2))
    made = persons([0] * k + [1, 2, 3])
    means = made.means(units)
    assert_array_equal(means / UNIT, np.trunc(means / UNIT))
    whole = np.trunc(units[:k] / UNIT)
    exact = [int(sum(map(int, column))) for column in whole.T]
    wanted = [(abs(total) // k) * (1 if total > 0 else -1) for total in exact]
    assert (means[0] / UNIT).tolist() == wanted
    longest = np.linalg.norm(units[:k], axis=1).max()
    assert np.linalg.norm(means[0]) <= longest
    # The others are what they are without persons.
    assert_array_equal(means[1:], np.trunc(units[k:] / UNIT) * UNIT)
    assert_array_equal(persons(range(k + 3)).means(units), np.trunc(units / UNIT) * UNIT)
    order = rng.permutation(k)
    again = made.means(np.concatenate([units[:k][order], units[k:]]))
    assert_array_equal(again, means)
    assert made.means(units[:, 0]).tolist() == means[:, 0].tolist()
    assert np.isfinite(unit_sum(made.means(np.full((k + 3, 1), np.nan)))).all()


def test_rows_without_a_person_are_left_out():
    made = persons(["a", None, "b"])
    rows = np.arange(6.0).reshape(3, 2)
    assert made.select(rows).tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert made.select(sparse.csr_matrix(rows)).toarray().tolist() == [[0.0, 1.0], [4.0, 5.0]]
    whole = persons(["a", "b", "b"])
    assert whole.select(rows) is rows
    assert persons_of(whole, rows) is whole
    assert persons_of(None, rows) is None


@pytest.mark.parametrize(
    ("groups", "error", "words"),
    [
        (["a"], ValueError, "groups must be as long as X"),
        ([["a", "b"]] * 3, ValueError, "at least one person; got none"),
        (np.zeros((3, 1), int), ValueError, "one dimension; got 2 dimensions"),
        (pd.DataFrame({"id": [1, 2, 3]}), ValueError, "one dimension"),
        (np.array([True, False, True]), TypeError, "text or whole numbers; got bool"),
        (np.zeros(3, np.float32), TypeError, "got float32"),
        (pd.to_datetime(pd.Series(["2020"] * 3)), TypeError, "got datetime64"),
        ([None] * 3, ValueError, "at least one person; got none"),
        ("patient", TypeError, r"Schema\(..., person='patient_id'\)"),
        (7, TypeError, "got 7"),
    ],
)
def test_groups_of_a_wrong_form_are_refused(groups, error, words):
    with pytest.raises(error, match=words):
        persons_of(groups, np.zeros((3, 2)))


def test_nothing_of_ids_is_shown():
    made = persons(["Ann", "Ann", None])
    assert "Ann" not in f"{made!r} {made}"
    with pytest.raises(TypeError) as error:
        persons_of(["Ann"], iter([1]))
    assert "Ann" not in str(error.value) and "in memory" in str(error.value)


def test_the_page_names_what_takes_groups_and_what_does_not():
    # The messages of refused fits point to this table.
    page = (Path(__file__).parents[2] / "docs" / "persons.md").read_text(encoding="utf-8")
    table = page.partition("## What takes groups")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")]
    left, right = (
        set(re.findall(r"`(\w+)`", " ".join(cells))) for cells in zip(*rows, strict=True)
    )
    takes: dict[str, bool] = {}
    for estimator in (*ESTIMATORS, *nets()):
        if hasattr(estimator, "_input_refusal"):
            name = type(estimator).__name__
            takes[name] = takes.get(name, False) or refusal_of(estimator, GROUPS) is None
    assert {name for name, is_taken in takes.items() if is_taken} <= left
    # Boosting and nets are named by their kinds where they refuse.
    assert not left & {name for name, is_taken in takes.items() if not is_taken}
    refusing = {name for name, is_taken in takes.items() if not is_taken}
    assert {name for name in refusing if "Net" not in name and "Boosting" not in name} <= right


def test_a_refusal_is_a_link_that_exists():
    for words in (refused_groups("x"), *ADVICE.values()):
        name, anchor = re.search(r"/(\w+)\.html#([\w-]+)", words).groups()
        page = (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text(encoding="utf-8")
        heads = re.findall(r"^## (.*)$", page, re.MULTILINE)
        assert anchor in {head.lower().replace(" ", "-") for head in heads}
