"""State of a search: levels, steps, and the end."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.mechanisms._doubling import ThresholdState


@pytest.mark.parametrize(
    ("granularity", "start", "levels"),
    [(0.01, 0.0, 100), (0.1, 0.7, 3), (0.1, 0.4, 6), (0.3, 0.0, 4), (1.0, 0.0, 1), (1.0, 0.9, 1)],
)
def test_levels_are_counted_up_to_rounding(granularity, start, levels) -> None:
    assert ThresholdState(granularity, start).levels == levels


@given(st.lists(st.booleans(), max_size=60), st.sampled_from([0.01, 0.125, 1e-9]))
def test_hits_double_and_misses_halve(script, granularity) -> None:
    state = ThresholdState(granularity, 0.25)
    made = []
    for hit in script:
        if state.is_at_end:
            break
        made.append(hit)
        before, step = state.utility, state.step
        assert state.threshold == pytest.approx(before + step * granularity)
        state.record(hit)
        assert state.trace[-1] == (before, step, hit)
        gained = step * granularity if hit else 0.0
        assert state.utility == pytest.approx(min(before + gained, 1.0))
        assert state.step == (2 * step if hit else step // 2)
    assert [r.hit for r in state.trace] == made
    assert state.hits == sum(made)
    # Steps are powers of two: as many misses as hits, and one more, bring them to 0.
    exponent = sum(1 if hit else -1 for hit in made)
    assert state.step == (0 if exponent < 0 else 2**exponent)


def test_utility_one_is_the_end() -> None:
    state = ThresholdState(0.4, 0.0)
    state.record(True)
    assert not state.is_at_end
    state.record(True)
    assert state.is_at_end
    assert state.utility == 1.0


@pytest.mark.parametrize(
    ("granularity", "start", "name"),
    [
        (0.0, 0.0, "granularity"),
        (1.5, 0.0, "granularity"),
        (math.nan, 0.0, "granularity"),
        (0.1, 1.0, "initial_utility"),
        (0.1, -0.1, "initial_utility"),
    ],
)
def test_bad_numbers_are_refused(granularity, start, name) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a number in"):
        ThresholdState(granularity, start)
