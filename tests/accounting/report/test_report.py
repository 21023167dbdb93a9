"""Reports: their content, refused arguments, and storage without changes."""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import Geometric, PrivacyProfile, PrivacyReport

HALF = PrivacyProfile.pure(0.5)
GAUSSIAN = PrivacyProfile.gaussian(0.3)
NOTHING = PrivacyProfile.approximate(0.0, 1.0)
TOTAL = GAUSSIAN + HALF


def make_report(**changes: Any) -> PrivacyReport:
    """Return a report in which every field is set."""
    settings: dict[str, Any] = {
        "epsilon": 2.5,
        "name": "DPRandomSearchCV",
        "note": "mean 20 runs",
        "parts": [
            PrivacyReport(GAUSSIAN, 1e-5, name="fit", assumptions=["n is public"]),
            PrivacyReport(HALF, 1e-5, name="score", note="accuracy", bound="exact"),
        ],
        "assumptions": ["the validation data are public"],
        "neighbouring": "add or remove one user",
        "bound": "envelope",
    }
    profile, delta = changes.pop("profile", TOTAL), changes.pop("delta", 1e-5)
    return PrivacyReport(profile, delta, **(settings | changes))


@functools.cache
def stored() -> dict[str, Any]:
    return make_report().to_dict()


# Content -----------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01, 1.0])
def test_epsilon_defaults_to_the_cost(delta: float) -> None:
    report = PrivacyReport(GAUSSIAN, delta)
    assert (report.name, report.note, report.bound) == ("release", "", None)
    assert (report.parts, report.assumptions) == ((), ())
    assert report.neighbouring == "add or remove one record"
    assert report.epsilon == report.epsilon_spent == GAUSSIAN.epsilon(delta)


# Claims ------------------------------------------------------------------------------------


def test_claim_below_the_cost_is_refused_with_both_numbers() -> None:
    cost = GAUSSIAN.epsilon(1e-5)
    with pytest.raises(ValueError, match="epsilon must be at least") as error:
        PrivacyReport(GAUSSIAN, 1e-5, epsilon=0.75)
    assert repr(cost) in str(error.value)
    assert "got 0.75." in str(error.value)


@given(st.floats(0.01, 10.0), st.integers(-40, 40).map(lambda tenths: tenths * 1e-10))
def test_claims_are_accepted_from_the_cost_up_to_rounding(cost: float, margin: float) -> None:
    profile = PrivacyProfile.pure(cost)
    epsilon = cost * (1.0 + margin)
    if margin < -1.1e-9:
        with pytest.raises(ValueError, match="epsilon must be at least"):
            PrivacyReport(profile, 0.0, epsilon=epsilon)
    elif margin > -0.9e-9:
        assert PrivacyReport(profile, 0.0, epsilon=epsilon).epsilon == epsilon


# Being an object ---------------------------------------------------------------------------


def test_copies_are_equal_and_attributes_cannot_be_set_or_deleted() -> None:
    report = make_report()
    for restored in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
        assert restored == report and hash(restored) == hash(report)
        assert str(restored) == str(report)
        for name in ("profile", "epsilon", "parts", "name", "epsilon_spent", "new"):
            with pytest.raises(AttributeError):
                setattr(restored, name, 0.0)
            with pytest.raises(AttributeError):
                delattr(restored, name)
        assert restored == report


def test_repr_is_one_short_line() -> None:
    report = PrivacyReport(HALF, 1e-5, name="x\ny" * 200, epsilon=0.70001, parts=[])
    assert repr(make_report()) == (
        "PrivacyReport('DPRandomSearchCV', epsilon=2.500, delta=1e-05, parts=2)"
    )
    assert len(repr(report).splitlines()) == 1
    assert len(repr(report)) < 100
    assert "…'" in repr(report)
    assert "epsilon=0.701," in repr(report)
    assert "epsilon=inf" in repr(PrivacyReport(NOTHING, 0.0))


@settings(max_examples=20)
@given(
    st.lists(st.floats(0.01, 5.0), min_size=1, max_size=4),
    st.sampled_from([0.0, 1e-8, 1e-5]),
    st.floats(1.0, 2.0),
)
def test_no_figure_shown_is_below_the_true_one(
    epsilons: list[float], delta: float, factor: float
) -> None:
    profiles = [PrivacyProfile.pure(epsilon) for epsilon in epsilons]
    parts = [PrivacyReport(profile, delta, name="part") for profile in profiles]
    worst = max(parts, key=lambda part: part.epsilon)
    report = PrivacyReport(worst.profile, delta, epsilon=worst.epsilon * factor, parts=parts)
    heading, *lines = str(report).splitlines()[: len(parts) + 1]
    for line, part in zip(lines, parts, strict=True):
        assert float(line.split(" = ")[1].split()[0]) >= part.epsilon_spent
    assert float(heading.split(" = ")[1].split()[0]) >= report.epsilon
    if "spent" in heading:
        assert float(heading.split("spent ")[1].split()[0]) >= report.epsilon_spent


# Storing -----------------------------------------------------------------------------------


def round_trip(report: PrivacyReport) -> PrivacyReport:
    text = json.dumps(report.to_dict(), allow_nan=False)
    return PrivacyReport.from_dict(json.loads(text))


@pytest.mark.parametrize(
    "report",
    [
        make_report(),
        PrivacyReport(HALF, 0.0),
        PrivacyReport(NOTHING, 1e-5),
        PrivacyReport(HALF, 0.0, epsilon=math.inf, parts=[PrivacyReport(NOTHING, 0.0)]),
        PrivacyReport(GAUSSIAN.selected(Geometric(0.1)), 1e-6),
    ],
    ids=["full", "bare", "not private", "infinite budget", "selected"],
)
def test_json_round_trip_keeps_all_that_is_shown(report: PrivacyReport) -> None:
    """Theorem P11: figures stay what they are, and what was read is written as it was."""
    for restored in (round_trip(report), PrivacyReport.from_json(report.to_json())):
        assert str(restored) == str(report) and repr(restored) == repr(report)
        assert restored._repr_html_() == report._repr_html_()
        assert restored.epsilon == report.epsilon and restored.delta == report.delta
        # Each part's own figure, and those at other deltas: never below what they were.
        for part, other in zip(walk(restored), walk(report), strict=True):
            assert str(part) == str(other)
            assert part.epsilon_spent == pytest.approx(other.epsilon_spent, rel=1e-11)
            for delta in (1e-9, 1e-4, 1e-2):
                before = other.epsilon_at(delta)
                assert before * (1.0 - 1e-12) <= part.epsilon_at(delta) <= before * 1.001
        assert restored.to_dict() == report.to_dict()
        assert round_trip(restored) == restored and hash(round_trip(restored)) == hash(restored)
    assert pickle.loads(pickle.dumps(report)) == report


def walk(report: PrivacyReport) -> list[PrivacyReport]:
    """Return a report and all below it."""
    return [report, *(below for part in report.parts for below in walk(part))]


def test_parts_keep_their_figures_at_the_deltas_above_them() -> None:
    """A part is shown at the delta of the report that is printed, whichever that is."""
    inner = PrivacyReport(GAUSSIAN, 1e-3, name="fit")
    middle = PrivacyReport(GAUSSIAN, 1e-6, parts=[inner])
    report = PrivacyReport(GAUSSIAN, 1e-9, parts=[middle])
    copies = walk(round_trip(report))
    for depth, deltas in enumerate(([1e-9], [1e-9, 1e-6], [1e-9, 1e-6, 1e-3])):
        for delta in deltas:
            kept = copies[depth].epsilon_at(delta)
            assert kept == pytest.approx(GAUSSIAN.epsilon(delta), rel=1e-12)


def test_report_is_a_few_kilobytes_a_part() -> None:
    parts = [PrivacyReport(GAUSSIAN, 1e-5, name=f"fit {index}") for index in range(10)]
    report = PrivacyReport(10 * GAUSSIAN, 1e-5, parts=parts)
    assert len(report.to_json()) < 11 * 5_300


words = st.text(st.characters(), min_size=1, max_size=10).map(lambda text: f"a{text}")


@st.composite
def reports(draw: st.DrawFn, depth: int = 2) -> PrivacyReport:
    profile = PrivacyProfile.approximate(
        draw(st.floats(0.0, 3.0)), draw(st.sampled_from([0.0, 1e-6, 1.0]))
    )
    delta = draw(st.floats(0.0, 1.0))
    extra = draw(st.one_of(st.none(), st.floats(0.0, allow_nan=False)))
    return PrivacyReport(
        profile,
        delta,
        epsilon=None if extra is None else profile.epsilon(delta) + extra,
        name=draw(words),
        note=draw(st.text(max_size=5)),
        bound=draw(st.one_of(st.none(), words)),
        neighbouring=draw(words),
        assumptions=draw(st.lists(words, max_size=2)),
        parts=draw(st.lists(reports(depth - 1), max_size=2)) if depth else (),
    )


@settings(max_examples=10)
@given(reports())
def test_any_report_survives_strict_json(report: PrivacyReport) -> None:
    # A profile is read with all of its figures, up to rounding of masses that no figure shows.
    again = round_trip(report)
    assert str(again) == str(report) and round_trip(again) == again


@pytest.mark.parametrize("version", [0, 2, 4, "3", None, True, 1.5])
def test_other_formats_are_refused(version: Any) -> None:
    content = stored() | {"format": version}
    with pytest.raises(ValueError, match="format must be 3; got .* Another version"):
        PrivacyReport.from_dict(content)


@pytest.mark.parametrize("key", sorted(set(stored()) - {"format"}))
def test_missing_key_is_named(key: str) -> None:
    content = copy.deepcopy(stored())
    del content[key]
    with pytest.raises(ValueError, match=f"missing keys \\['{key}'\\]"):
        PrivacyReport.from_dict(content)


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        ("epsilon", None, TypeError, "epsilon must be a number"),
        ("epsilon", "Infinity", TypeError, "epsilon must be a number"),
        ("epsilon", 0.1, ValueError, "epsilon must be at least"),
        ("delta", 2, ValueError, "delta must be"),
        ("parts", {}, TypeError, "parts must be a list of dicts; got dict"),
        ("parts", [3], TypeError, "content must be a dict written by to_dict; got int"),
        ("parts", [{"format": 7}], ValueError, "format must be 3; got 7"),
        ("assumptions", "n is public", TypeError, "Put it in a list."),
        ("profile", {"format": 99}, ValueError, "profile must be a dict written by Privacy"),
    ],
)
def test_damaged_values_are_refused(
    key: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        PrivacyReport.from_dict(stored() | {key: value})
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"format": 1'])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="text must be JSON written by to_json"):
        PrivacyReport.from_json(text)
