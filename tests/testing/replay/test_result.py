"""The result prints as a table, and fails a test where it should."""

from __future__ import annotations

import pytest

from skdptune.testing._replay_result import (
    COVERED,
    FIT,
    IDENTICAL,
    NOT_COMPARED,
    PRIVATE_SIZE,
    PUBLIC_SIZE,
    TOO_FAR,
    NeighbourReplay,
    Row,
)

ADDED = "record added"
FINE = (
    Row(FIT, ADDED, IDENTICAL),
    Row("plan_.noise", ADDED, IDENTICAL),
    Row("coef_", ADDED, COVERED, moved=0.25, allowed=1.04, replayed=True),
    Row("state_", ADDED, NOT_COMPARED),
    Row("(type)", ADDED, IDENTICAL),
    Row("coef_ (shape)", ADDED, IDENTICAL),
    Row("plan_.n_samples", ADDED, PUBLIC_SIZE),
)
WRONG = (
    Row("mean_", ADDED, TOO_FAR, moved=12.5, allowed=1.04, replayed=True, message="moves."),
    Row("size_", ADDED, PRIVATE_SIZE, message="follows from it."),
)


def result(*rows):
    return NeighbourReplay("Toy", 20, 1.0, 1e-5, "add or remove one record", rows)


def test_it_prints_as_a_table() -> None:
    assert (
        str(result(*FINE, *WRONG))
        == """\
Toy: epsilon = 1.000 at delta = 1e-05, add or remove one record; 20 seeds

value   neighbours    noise     moved  allowed  result
mean_   record added  replayed  12.5   1.04     moves too far
size_   record added  -         -      -        follows from the private size
coef_   record added  replayed  0.25   1.04     covered by noise
state_  record added  -         -      -        not compared

identical (4): fit, plan_
follows from the public size (1): plan_
2 findings:
- mean_ moves.
- size_ follows from it."""
    )
    assert repr(result(*FINE)) == "NeighbourReplay(Toy, findings=0, values=7, n_repeats=20)"
    assert str(result(*FINE)).endswith("\n0 findings")


def test_findings_fail_a_test() -> None:
    result(*FINE).assert_passes()
    with pytest.raises(AssertionError, match="Toy publishes more than it claims:\n- mean_ moves"):
        result(*FINE, *WRONG).assert_passes()


def test_noise_that_nothing_repeats_does_not_pass_in_silence() -> None:
    fresh = Row("coef_", ADDED, COVERED, moved=0.0, allowed=1.0, replayed=False)
    only_fresh = result(FINE[0], FINE[1], fresh)
    assert only_fresh.not_replayed == ["coef_"]
    assert "noise not replayed (1): coef_" in str(only_fresh)
    with pytest.raises(AssertionError, match="no seed repeats the noise"):
        only_fresh.assert_passes()
    only_fresh.assert_passes(needs_replay=False)
    # Where some of it is, the rest is listed.
    result(*FINE, fresh).assert_passes()


def test_too_few_fits_do_not_pass() -> None:
    empty = result(Row(FIT, ADDED, NOT_COMPARED))
    assert "nothing else was compared" in str(empty)
    with pytest.raises(AssertionError, match="nothing else was compared"):
        empty.assert_passes()
