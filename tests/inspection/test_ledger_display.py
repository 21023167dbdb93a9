"""Drawings of ledgers, read back from matplotlib's artists."""

from __future__ import annotations

from typing import Any

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.inspection import LedgerDisplay
from skdptune.ledger import PrivacyLedger

TIMES = [f"2026-03-{day:02d}T10:00:00.000+00:00" for day in (1, 1, 4, 4, 9, 12, 15)]
USAGE = {
    "time": TIMES,
    "event": [
        *("reserved", "confirmed", "reserved", "reserved", "cancelled", "confirmed", "reserved")
    ],
    "name": [
        *("scaler", "scaler", "DPGridSearchCV", "histogram", "histogram", "DPGridSearchCV"),
        "DPLogisticRegression",
    ],
    "used": [0.1, 0.1, 0.4, 0.6, 0.4, 0.4, 0.7],
    "confirmed": [0.0, 0.1, 0.1, 0.1, 0.1, 0.4, 0.4],
}


def display() -> LedgerDisplay:
    return LedgerDisplay(USAGE, epsilon=3.0, delta=1e-5, remaining=1.2345, dataset="patients")


def top(area: Any) -> Any:
    """Return the highest point of an area."""
    return max(path.vertices[:, 1].max() for path in area.get_paths())


def test_ledgers_are_drawn_by_their_own_sum() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    parts = []
    for number in range(4):
        with ledger.reserve(PrivacyProfile.gaussian(0.2), name=f"fit {number}"):
            parts.append(ledger.used())
    ledger.reserve(PrivacyProfile.gaussian(0.2), name="left open")
    found = LedgerDisplay.from_ledger(ledger)
    assert top(found.reserved_) == ledger.used()
    assert top(found.confirmed_) == parts[-1] < ledger.used()
    # Four fits of one size use more than one does, and less than four times its epsilon.
    assert ledger.used() * ledger.epsilon < 5 * PrivacyProfile.gaussian(0.2).epsilon(1e-5)
    assert found.remaining == ledger.remaining()
    labels = [text.get_text() for text in found.ax_.get_xticklabels()]
    assert labels == ["fit 0", "fit 1", "fit 2", "fit 3", "left open"]
    assert found.budget_.get_ydata()[0] == 1.0
    assert LedgerDisplay.from_ledger(ledger, x="time").ax_.get_xlabel() == "time (UTC)"


def test_what_is_used_and_left_is_said() -> None:
    assert display().in_words == (
        "70 % of ε = 3.000 at δ = 1e-05 is used; a Gaussian release of up to ε = 1.23 still fits."
    )
    empty = {name: [] for name in USAGE}
    assert LedgerDisplay(empty, epsilon=1.0, delta=0.0).in_words == (
        "0 % of ε = 1.000 at δ = 0 is used."
    )


def test_what_is_used_is_never_said_below_the_truth() -> None:
    for used, words in [(0.12341, "12.4 %"), (0.25, "25 %"), (1.0, "100 %"), (1e-7, "0.00001 %")]:
        usage = {name: [values[0]] for name, values in USAGE.items()} | {"used": [used]}
        usage["confirmed"] = [0.0]
        said = LedgerDisplay(usage, epsilon=1.0, delta=0.0).in_words
        assert said == f"{words} of ε = 1.000 at δ = 0 is used."


@pytest.mark.parametrize("x", ["releases", "time"])
def test_empty_ledgers_have_a_budget(x: str) -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    found = LedgerDisplay.from_ledger(ledger, x=x)
    assert top(found.reserved_) == 0.0
    assert found.ax_.get_title(loc="left").startswith("patients: 0 % of")


def test_what_is_no_ledger_is_refused() -> None:
    with pytest.raises(TypeError, match="ledger must be a PrivacyLedger; got int"):
        LedgerDisplay.from_ledger(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="usage must be what PrivacyLedger.usage returns"):
        LedgerDisplay({"used": []}, epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="used of usage must"):
        LedgerDisplay({**USAGE, "used": [2.0] * 7}, epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="x must be one of 'releases', 'time'"):
        display().plot(x="name")


def test_picture(check_picture: Any) -> None:
    check_picture(display().plot().figure_, "ledger")
