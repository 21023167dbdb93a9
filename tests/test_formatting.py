"""Displayed figures: never below the exact number, and not far above."""

from __future__ import annotations

import decimal
import math
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skdptune._formatting import shown_delta, shown_number

numbers = st.one_of(
    st.floats(min_value=0.0, allow_infinity=False, allow_subnormal=False),
    st.floats(0.0, 20.0, allow_subnormal=False),
    st.integers(0, 10**7).map(lambda thousandths: thousandths / 1000),
)


@given(numbers)
@example(sys.float_info.min)
@example(sys.float_info.max)
@example(math.nextafter(1.0, 2.0))
@example(math.nextafter(0.1, 0.0))
@example(math.nextafter(1e6, 0.0))
@example(math.nextafter(1e-4, 0.0))
def test_number_is_shown_rounded_up_and_close(value: float) -> None:
    shown = shown_number(value)
    assert float(shown) >= value
    # One unit of the third decimal, or of the third digit; and half an ulp for the decimal's sake.
    exact = Decimal(value)
    unit = Decimal("0.001") if 0.1 <= value < 1e6 else exact / 100
    assert Decimal(shown) - exact <= unit + exact * Decimal("1e-15")
    assert len(shown) <= len("1000000.000")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.000"),
        (1.0, "1.000"),
        (1.1, "1.100"),
        (0.4111, "0.412"),
        (math.nextafter(1.0, 2.0), "1.001"),
        (0.0999999, "0.100"),
        (0.01234, "0.0124"),
        (0.02, "0.02"),
        (0.00012345, "0.000124"),
        (1.001e-5, "1.01e-5"),
        (999999.9999, "1000000.000"),
        (1234567.0, "1.24e+6"),
        (math.inf, "inf"),
        (np.float64(2.5), "2.500"),
    ],
)
def test_number_examples(value: float, shown: str) -> None:
    assert shown_number(value) == shown


@given(st.floats(0.0, 1.0, allow_subnormal=False))
@example(sys.float_info.min)
@example(math.nextafter(1.0, 0.0))
def test_delta_is_shown_rounded_up_and_short(value: float) -> None:
    shown = shown_delta(value)
    assert float(shown) >= value
    assert float(shown) <= 1.01 * value
    assert len(Decimal(shown).normalize().as_tuple().digits) <= 3


@pytest.mark.parametrize("value", [5e-324, 4e-310])
def test_subnormal_is_shown_rounded_up(value: float) -> None:
    assert Decimal(shown_number(value)) >= Decimal(value)
    assert float(shown_delta(value)) >= value


def test_user_decimal_context_is_of_no_consequence() -> None:
    with decimal.localcontext() as context:
        context.prec = 2
        context.rounding = decimal.ROUND_FLOOR
        context.traps[decimal.Inexact] = True
        assert shown_number(12.34567) == "12.346"
        assert shown_number(0.0123456) == "0.0124"
        assert shown_delta(1.23456e-5) == "1.24e-05"
