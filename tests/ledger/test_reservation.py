"""Two phases: what was reserved stays spent unless it was proven that nothing was read."""

from __future__ import annotations

import os
import pickle
import random
import signal
import time

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger
from tests.ledger.children import confirm, finish, spend_until_killed, started

PURE = PrivacyProfile.pure(0.5)


class TestTwoPhases:
    """Theorem H3."""

    def test_context_is_read_and_then_confirmed(self, ledger):
        reservation = ledger.reserve(PURE, name="a fit")
        assert reservation.status == "reserved"
        with reservation as same:
            assert same is reservation
            assert reservation.status == "read"
        assert reservation.status == "confirmed"

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
    def test_exception_leaves_it_spent(self, ledger, error):
        reservation = ledger.reserve(PURE, name="a fit")
        with pytest.raises(error), reservation:
            raise error("a word of the data")
        assert reservation.status == "read"
        assert ledger.used() > 0.0
        assert "a word of the data" not in ledger.to_json()

    @pytest.mark.parametrize("last", ["mark_read", "confirm"])
    def test_what_was_read_is_not_cancelled(self, ledger, last):
        reservation = ledger.reserve(PURE, name="a fit")
        getattr(reservation, last)()
        with pytest.raises(LedgerError, match="its cost stays spent"):
            reservation.cancel("changed my mind")
        assert ledger.used() > 0.0

    @pytest.mark.parametrize("step", ["mark_read", "confirm", "__enter__"])
    def test_what_was_cancelled_is_not_read(self, ledger, step):
        reservation = ledger.reserve(PURE, name="a fit")
        reservation.cancel("no file")
        with pytest.raises(LedgerError, match="Reserve again before anything is read"):
            getattr(reservation, step)()
        assert reservation.status == "cancelled"

    def test_steps_may_be_repeated(self, ledger):
        reservation = ledger.reserve(PURE, name="a fit")
        for step in (reservation.mark_read, reservation.confirm):
            step()
            step()
        assert reservation.status == "confirmed"
        other = ledger.reserve(PURE, name="a fit")
        other.cancel("no file")
        other.cancel("no file")
        assert [record.status for record in ledger.history()] == ["confirmed", "cancelled"]
        assert ledger.spent(0.0) == pytest.approx(0.5)

    def test_one_reservation_is_for_one_release(self, ledger):
        reservation = ledger.reserve(PURE, name="a fit")
        with reservation:
            with pytest.raises(LedgerError, match="Reserve again: a second release costs as much"):
                reservation.__enter__()
        for step in (reservation.mark_read, reservation.__enter__):
            with pytest.raises(LedgerError, match="Reserve again: a second release costs as much"):
                step()
        assert reservation.status == "confirmed"

    def test_reason_is_checked(self, ledger):
        reservation = ledger.reserve(PURE, name="a fit")
        with pytest.raises(ValueError, match="reason must say why"):
            reservation.cancel(" ")
        with pytest.raises(TypeError, match="reason must be a str"):
            reservation.cancel(None)

    def test_left_reservation_is_found_again(self, shared, place):
        left = shared.reserve(PURE, name="a fit").identifier
        found = PrivacyLedger(place, "patients").reservation(left)
        assert found.name == "a fit"
        found.cancel("the process was killed before it read")
        assert shared.used() == 0.0
        with pytest.raises(ValueError, match="identifier must be that of a record"):
            shared.reservation("nothing")

    def test_reservation_of_no_ledger_is_refused(self, shared):
        reservation = shared.reserve(PURE, name="a fit")
        reservation.identifier = "another"
        with pytest.raises(LedgerError, match="reservation must be one of 'patients'"):
            reservation.confirm()

    def test_repr_shows_what_it_is_for(self, ledger):
        reservation = ledger.reserve(PURE, name="a fit")
        assert repr(reservation).startswith("Reservation('a fit', dataset='patients', '")


class TestPickles:
    def test_pickled_reservation_is_the_same(self, shared):
        reservation = shared.reserve(PURE, name="a fit")
        pickle.loads(pickle.dumps(reservation)).mark_read()
        assert reservation.status == "read"

    def test_another_process_confirms(self, shared):
        reservation = shared.reserve(PURE, name="a fit")
        finish(started(confirm, reservation))
        assert reservation.status == "confirmed"


# An identifier, and the end of its line.
LINE = 33


def check_kills(place, log, count, longest, seed):
    """Kill children that spend, at random instants, and look whether all that began is there."""
    ledger = PrivacyLedger.create(place, "patients", epsilon=600.0, delta=0.0)
    open(log, "w").close()
    rng, records = random.Random(seed), 0
    for _ in range(count):
        child = started(spend_until_killed, ledger, log)
        # Some are killed before they begin, others after a few, at any instant of the next.
        expected = os.path.getsize(log) + rng.randrange(6) * LINE
        while os.path.getsize(log) < expected:
            time.sleep(0.002)
        time.sleep(longest * rng.random())
        child.kill()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        with open(log) as lines:
            begun = [line.strip() for line in lines]
        again = PrivacyLedger(place, "patients")
        status = {record.reservation: record.status for record in again.history()}
        assert len(status) >= len(begun), "less is spent than was begun"
        assert all(status[each] in ("read", "confirmed") for each in begun)
        assert len(status) >= records, "what was spent before is gone"
        records = len(status)
    assert records >= count
    share = ledger.to_dict()["totals"]["share"]
    assert share == pytest.approx(records * 0.001 / 600.0, rel=1e-9)


class TestKilled:
    """Theorem H3."""

    def test_nothing_that_was_begun_is_lost_at_thirty_instants(self, path, tmp_path):
        check_kills(path, tmp_path / "log", 30, longest=0.02, seed=0)

    def test_nothing_that_was_begun_is_lost_on_a_server(self, server, tmp_path):
        check_kills(server.url(), tmp_path / "log", 8, longest=0.05, seed=0)

    @pytest.mark.slow
    def test_nothing_that_was_begun_is_lost_at_two_hundred_instants(self, place, tmp_path):
        check_kills(place, tmp_path / "log", 200, longest=0.05, seed=1)
