"""The table of bounds."""

import dataclasses
import math
import pickle

import pandas as pd
import pytest
from dp_accounting import dp_event

from skdptune.accounting import (
    Binomial,
    BoundComparison,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    compare_bounds,
    selection_lower_bound,
)
from skdptune.accounting._tuning._comparison import two_thresholds

NAMES = ["one run", "composition", "rdp", "profile", "two thresholds", "envelope", "lower bound"]
RUN = PrivacyProfile.from_event(dp_event.GaussianDpEvent(4.0), discretization=0.01)
POINTS = PrivacyProfile.from_curve([0.5, 1.0], [1e-3, 1e-6], discretization=0.01)


def figures(table):
    return {row.name: row.epsilon for row in table.rows}


@pytest.fixture(scope="module")
def table():
    return compare_bounds(RUN, Geometric(0.1), 1e-6)


def test_rows_are_what_they_say(table):
    assert isinstance(table, BoundComparison)
    assert [row.name for row in table.rows] == NAMES
    assert (table.distribution, table.delta) == (Geometric(0.1), 1e-6)
    assert figures(table) == {
        "one run": RUN.epsilon(1e-6),
        "composition": (10 * RUN).epsilon(1e-6),
        "rdp": RUN.selected(Geometric(0.1), "rdp").epsilon(1e-6),
        "profile": RUN.selected(Geometric(0.1), "profile").epsilon(1e-6),
        "two thresholds": two_thresholds(RUN, Geometric(0.1), 1e-6).selected(Geometric(0.1))[0],
        "envelope": RUN.selected(Geometric(0.1), "envelope").epsilon(1e-6),
        "lower bound": selection_lower_bound(RUN, Geometric(0.1), 1e-6),
    }


def test_bounds_are_ordered_as_the_theory_says(table):
    found = figures(table)
    assert found["one run"] < found["lower bound"] < found["envelope"]
    assert found["envelope"] < found["profile"] < found["rdp"]
    # Both directions of a Gaussian run agree: of one profile two points say as much as all.
    assert found["two thresholds"] == pytest.approx(found["profile"], rel=1e-3)


def test_rows_carry_their_time_and_note(table):
    for row in table.rows:
        assert row.seconds >= 0.0 and math.isfinite(row.seconds)
        assert row.note and row.note != "does not apply"


def test_composition_publishes_the_expected_number_rounded_up():
    found = figures(compare_bounds(PrivacyProfile.pure(0.1), Poisson(2.2), 1e-6))
    assert found["composition"] == (3 * PrivacyProfile.pure(0.1)).epsilon(1e-6)


def test_text_has_a_line_for_every_bound(table):
    lines = str(table).splitlines()
    assert lines[0] == "Best of K runs, K ~ Geometric(gamma=0.1) (mean 10), at δ = 1e-06"
    assert len(lines) == 2 + len(NAMES)
    for name, line in zip(NAMES, lines[2:], strict=True):
        assert line.startswith(name)
        shown = float(line[len(name) :].split()[0])
        assert shown == pytest.approx(figures(table)[name], abs=5.1e-4)


def test_pandas_gets_the_same_table(table):
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame.index.tolist() == NAMES and frame.index.name == "name"
    assert frame.columns.tolist() == ["epsilon", "seconds", "note"]
    assert frame["epsilon"].to_dict() == figures(table)
    assert frame["note"].tolist() == [row.note for row in table.rows]


def test_missing_pandas_is_named(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        table.to_pandas()


INAPPLICABLE = [
    (RUN, Binomial(6, 0.5), {"rdp", "two thresholds"}),
    (RUN, Binomial(6, 1.0), {"rdp", "profile", "two thresholds"}),
    (POINTS, Geometric(0.2), {"rdp"}),
    (POINTS, Binomial(3, 1.0), {"rdp", "profile", "two thresholds"}),
    (PrivacyProfile.approximate(0.3, 1e-9), Poisson(3.0), {"rdp", "two thresholds"}),
    (PrivacyProfile.pure(0.3), Logarithmic(0.1), set()),
]


@pytest.mark.parametrize(("profile", "distribution", "left_out"), INAPPLICABLE)
def test_bounds_that_do_not_apply_have_infinity_and_say_so(profile, distribution, left_out):
    table = compare_bounds(profile, distribution, 1e-4)
    for row in table.rows:
        assert not math.isnan(row.epsilon)
        assert (row.note == "does not apply") == (row.name in left_out)
        assert math.isfinite(row.epsilon) == (row.name not in left_out)
    assert "does not apply" in str(table) or not left_out
    found = figures(table)
    upper = ("rdp", "profile", "two thresholds", "envelope")
    assert found["lower bound"] <= min(found[name] for name in upper) + 1e-9


@pytest.mark.parametrize("distribution", [Poisson(15.0), Logarithmic(0.01), Geometric(0.01)])
def test_a_residue_above_delta_is_infinite_everywhere(distribution):
    """Fifteen runs, each of which reveals all with probability 1e-6: no epsilon has delta 1e-5."""
    found = figures(compare_bounds(POINTS, distribution, 1e-5))
    assert found["one run"] == pytest.approx(POINTS.epsilon(1e-5))
    for name in ("composition", "profile", "two thresholds", "envelope"):
        assert found[name] == math.inf
    assert not math.isnan(found["lower bound"])


def test_a_release_of_nothing_costs_nothing():
    found = figures(compare_bounds(PrivacyProfile.pure(0.0), Geometric(0.1), 1e-6))
    for name in ("one run", "composition", "two thresholds", "envelope", "lower bound"):
        assert found[name] <= 1e-6


def test_rows_and_tables_are_values(table):
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.delta = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.rows[0].epsilon = 0.5


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, math.nan, math.inf])
def test_delta_must_leave_something_to_say(delta):
    with pytest.raises(ValueError, match=r"^delta must be a number in \(0, 1\); got "):
        compare_bounds(RUN, Geometric(0.1), delta)


def test_other_kinds_are_refused():
    with pytest.raises(TypeError, match="^profile must be a PrivacyProfile; got int"):
        compare_bounds(3, Geometric(0.1), 1e-6)
    with pytest.raises(
        TypeError, match="^distribution must be a distribution of the number of runs.*; got float"
    ):
        compare_bounds(RUN, 0.1, 1e-6)
