"""What is read from a ledger: history, what is spent, what is left, and all of it as JSON."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import PrivacyLedger

PURE, GAUSSIAN = PrivacyProfile.pure(0.5), PrivacyProfile.gaussian(0.1)


class TestReading:
    def test_history_is_in_the_order_of_events_whatever_clocks_say(self, shared, monkeypatch):
        ledger = shared
        times = (f"20{year}-01-01T00:00:00.000+00:00" for year in itertools.count(40, -1))
        for module in ("_ledger", "_reading"):
            monkeypatch.setattr(f"skdptune.ledger.{module}.now", lambda: next(times))
        for number in range(3):
            with ledger.reserve(PURE, name=f"fit {number}"):
                pass
        records = ledger.history()
        assert [record.name for record in records] == ["fit 0", "fit 1", "fit 2"]
        assert [record.sequence for record in records] == [1, 4, 7]
        assert records[0].time > records[1].time > records[2].time
        assert all(record.changed < record.time for record in records)

    def test_history_as_a_frame(self, ledger):
        assert ledger.history(as_frame=True).empty
        ledger.reserve(PURE, name="a fit")
        frame = ledger.history(as_frame=True)
        assert list(frame["name"]) == ["a fit"]
        assert set(frame.columns) == set(ledger.history()[0].to_dict())

    def test_usage_is_what_was_used_after_each_event(self, ledger):
        assert ledger.usage()["used"] == []
        first = ledger.reserve(GAUSSIAN, name="first")
        seen = [ledger.used()]
        first.mark_read()
        seen.append(ledger.used())
        second = ledger.reserve(PURE, name="second")
        seen.append(ledger.used())
        first.confirm()
        seen.append(ledger.used())
        second.cancel("not needed")
        seen.append(ledger.used())
        usage = ledger.usage()
        assert usage["used"] == seen
        assert usage["event"] == ["reserved", "read", "reserved", "confirmed", "cancelled"]
        assert usage["name"] == ["first", "first", "second", "first", "second"]
        assert usage["sequence"] == [1, 2, 3, 4, 5]
        assert usage["time"] == sorted(usage["time"])
        # One release is confirmed, and nothing else is left at the end.
        assert usage["confirmed"] == [0.0, 0.0, 0.0, seen[0], seen[0]]
        assert seen[-1] == seen[0] < seen[2]

    def test_spent_is_the_composition_of_few_costs_and_a_bound_on_many(self, ledger):
        assert ledger.spent() == 0.0
        for _ in range(10):
            ledger.reserve(GAUSSIAN, name="a fit")
        exact = (10 * GAUSSIAN).epsilon(1e-5)
        assert ledger.spent() == pytest.approx(exact, rel=1e-3)
        for number in range(10):
            ledger.reserve(PrivacyProfile.gaussian(0.01 + 1e-4 * number), name="another")
        assert exact < ledger.spent() < 1.1 * exact
        assert ledger.spent(1e-6) > ledger.spent()

    def test_what_was_cancelled_is_not_spent(self, ledger):
        ledger.reserve(PURE, name="a fit").cancel("no file")
        assert ledger.spent() == ledger.used() == 0.0
        assert ledger.remaining(delta=0) == 3.0
        assert ledger.history()[0].reason == "no file"

    def test_everything_is_exported_as_json(self, ledger):
        ledger.reserve(PURE, name="a fit")
        ledger.reserve(PURE, name="a fit")
        content = json.loads(ledger.to_json())
        assert content["dataset"] == "patients"
        assert [record["sequence"] for record in content["records"]] == [1, 2]
        (profile,) = content["profiles"].values()
        read = PrivacyProfile.from_dict(profile)
        assert read.epsilon(0.0) == 0.5

    def test_settled_ways_last(self, place):
        ledger = PrivacyLedger.create(place, "patients", epsilon=1.0, delta=1e-5)
        early = PrivacyLedger(place, "patients")
        ledger.reserve(PrivacyProfile.approximate(0.5, 5e-6), name="first")
        assert ledger.to_dict()["ways"]["squared_shift"] == 0.0
        # One that was opened before, and would have settled for both.
        early.reserve(PrivacyProfile.gaussian(0.01), name="second")
        assert early.to_dict()["ways"] == ledger.to_dict()["ways"]

    @pytest.mark.parametrize("method", ["remaining", "spent"])
    @pytest.mark.parametrize("delta", [-0.1, 1.5, math.nan])
    def test_delta_is_checked(self, ledger, method, delta):
        with pytest.raises(ValueError, match="delta must be"):
            getattr(ledger, method)(delta)
