"""Validators: accepted values, and the messages for all others."""

import math
from fractions import Fraction

import numpy as np
import pytest

from skdptune._validation import (
    check_flag,
    check_integer,
    check_n_jobs,
    check_private_numbers,
    check_real,
    check_vector,
)


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float64(2.0), np.longdouble(2.0), np.int64(2), Fraction(2)]
)
def test_a_real_number_of_any_kind_comes_back_as_a_float(value):
    number = check_real(value, name="x", lower=2.0, upper=2.0)
    assert type(number) is float and number == 2.0


@pytest.mark.parametrize("value", ["2", None, True, np.True_, 2j, [2.0], np.array([2.0])])
def test_what_is_no_real_number_is_a_type_error_naming_the_kind(value):
    with pytest.raises(TypeError, match="^x must be a number; got " + type(value).__name__):
        check_real(value, name="x")


INTERVALS = [
    ({}, "a number", [np.nan]),
    ({"lower": 0.0}, r"a number in \[0, inf\)", [-1e-300, -np.inf, np.nan]),
    ({"lower": 0.0, "lower_open": True}, r"a number in \(0, inf\)", [0.0, -0.0, -1, np.nan]),
    ({"upper": 1.0}, r"a number in \(-inf, 1\]", [1.0000000000000002, np.inf, np.nan]),
    ({"lower": 0.0, "upper": 1.0}, r"a number in \[0, 1\]", [-1, 2, np.nan, np.inf]),
    ({"lower": 0, "upper": 1, "upper_open": True}, r"a number in \[0, 1\)", [1.0, np.nan]),
    (
        {"lower": 0, "upper": 0.25, "lower_open": True, "upper_open": True},
        r"a number in \(0, 0.25\)",
        [0, 0.25, np.nan],
    ),
]


@pytest.mark.parametrize(("limits", "domain", "outside"), INTERVALS)
def test_numbers_outside_the_interval_are_named(limits, domain, outside):
    for value in outside:
        with pytest.raises(ValueError, match=f"^rate must be {domain}; got ") as caught:
            check_real(value, name="rate", **limits)
        assert str(caught.value).endswith(f"got {value!r}.")
        if "upper_open" in limits:
            continue
        with pytest.raises(ValueError, match=f"^rate must be {domain} throughout; got "):
            check_vector([0.1, value, 0.1], name="rate", **limits)


def test_closed_ends_belong_and_open_ends_do_not():
    assert check_real(0, name="x", lower=0, upper=1, upper_open=True) == 0.0
    assert check_real(1, name="x", lower=0, upper=1, lower_open=True) == 1.0
    inside = check_vector([0.0, 1.0], name="x", lower=0.0, upper=1.0)
    assert inside.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="got another number in place 1"):
        check_vector([0.5, 0.0], name="x", lower=0.0, lower_open=True)


@pytest.mark.parametrize(
    "value", [np.float16(2), np.float32(2), np.uint8(2), np.int32(2)], ids=str
)
def test_numbers_of_few_bits_are_refused(value):
    # Assumption F6. Kept as they are, products with them wrap around or lose digits.
    words = f"got {value.item()} as a {type(value).__name__}.*: pass its .item()"
    with pytest.raises(TypeError, match=words):
        check_real(value, name="x")
    if isinstance(value, np.integer):
        with pytest.raises(TypeError, match=words):
            check_integer(value, name="x")


def test_a_vector_is_one_dimensional_and_of_numbers():
    vector = check_vector((1, 2.5), name="x")
    assert vector.dtype == np.float64 and vector.tolist() == [1.0, 2.5]
    assert check_vector([], name="x").shape == (0,)
    with pytest.raises(ValueError, match=r"^x must be one-dimensional; got 0 dimensions\.$"):
        check_vector(1.0, name="x")
    with pytest.raises(ValueError, match=r"^x must be one-dimensional; got 2 dimensions\.$"):
        check_vector([[1.0]], name="x")
    for values in (["a"], [[1], [1, 2]], [object()]):
        with pytest.raises(TypeError, match="^x must be an array of numbers; got "):
            check_vector(values, name="x")


HUGE = [10**400, -(10**400), Fraction(10**400), Fraction(-(10**5000))]


@pytest.mark.parametrize("value", HUGE, ids=["integer", "negative", "fraction", "unprintable"])
def test_what_no_double_comes_near_is_a_value_error(value):
    with pytest.raises(ValueError, match=r"^x must be a number in \[0, 1\]; got \w"):
        check_real(value, name="x", lower=0.0, upper=1.0)
    # Not converted to infinity, even if infinity is allowed.
    with pytest.raises(ValueError, match="^x must be a number; got "):
        check_real(value, name="x")


def test_counts_fit_in_64_bits_unless_seeds():
    assert check_integer(2**63 - 1, name="n") == 2**63 - 1
    with pytest.raises(ValueError, match=r"an integer of at least 1 and at most 2\*\*63 - 1; got"):
        check_integer(2**63, name="n", lower=1)
    with pytest.raises(ValueError, match=r"^n must be an integer of at most 7; got 8\.$"):
        check_integer(8, name="n", upper=7)
    assert check_integer(2**200, name="seed", upper=None) == 2**200


@pytest.mark.parametrize("value", [1, 0, 0.5, "no", None, np.nan], ids=repr)
def test_a_flag_is_true_or_false_and_nothing_like_it(value):
    assert check_flag(np.True_, name="f") is True and check_flag(False, name="f") is False
    with pytest.raises(TypeError, match="^f must be True or False; got "):
        check_flag(value, name="f")


class Rude:
    """Fails for every request."""

    def __float__(self):
        raise RuntimeError("a secret")

    def __repr__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "values",
    [Rude(), [Rude()], "a secret", [[1], [2, 3]], 10**400],
    ids=["object", "objects", "text", "ragged", "huge"],
)
def test_errors_of_private_numbers_show_none_of_them(values):
    assert check_private_numbers([1, 2.5], name="x").tolist() == [1.0, 2.5]
    with pytest.raises((TypeError, ValueError), match=r"^x must be .*; got something else\.$"):
        check_private_numbers(values, name="x")
    with pytest.raises((TypeError, ValueError), match=r"^n must be an integer; got \w+\.$"):
        check_integer(Rude(), name="n")


@pytest.mark.parametrize("value", [math.nan, 2.0, "2", True])
def test_a_number_of_workers_is_an_integer_or_none(value):
    # With NaN as their number, workers were waited for without end.
    with pytest.raises(TypeError, match="^n_jobs must be an integer; got "):
        check_n_jobs(value)
