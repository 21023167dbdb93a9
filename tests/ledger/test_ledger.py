"""A ledger as its user meets it: made, opened, spent from, read; and by many processes at once."""

from __future__ import annotations

import copy
import getpass
import itertools
import math
import os
import pickle
import platform
import random
import signal
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone

from skdptune.accounting import BudgetExceededError, PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger, _reference
from tests.ledger.children import confirm, finish, spend_in_processes, spend_until_killed, started

PURE, GAUSSIAN = PrivacyProfile.pure(0.5), PrivacyProfile.gaussian(0.1)


class TestCreation:
    def test_new_ledger_is_opened_again_with_what_was_registered(self, shared, place):
        again = PrivacyLedger(place, "patients")
        assert again == shared
        assert hash(again) == hash(shared)
        assert (again.epsilon, again.delta, again.unit) == (3.0, 1e-5, "one record")
        assert again.history() == []
        same = PrivacyLedger(place, "patients", epsilon=3, delta=1e-5, unit="one record")
        assert same.remaining() == pytest.approx(3.0)

    def test_ledger_is_created_once(self, shared, place):
        with pytest.raises(LedgerError, match="dataset must be one that is not registered"):
            PrivacyLedger.create(place, "patients", epsilon=3.0, delta=1e-5)

    def test_one_place_holds_several_data_sets(self, shared, place):
        other = PrivacyLedger.create(place, "visits", epsilon=1.0, delta=0.0, unit="one patient")
        shared.reserve(PURE, name="a fit")
        assert other.remaining() == 1.0
        assert other != shared
        with pytest.raises(LedgerError, match=r"'patients', 'visits'; got 'nobody'"):
            PrivacyLedger(place, "nobody")

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"epsilon": 4.0}, r"epsilon must be 3\.0, with which 'patients' .* got 4\.0"),
            ({"delta": 1e-6}, r"delta must be 1e-05, .* got 1e-06"),
            ({"unit": "one user"}, r"unit must be 'one record', .* got 'one user'"),
        ],
    )
    def test_another_budget_is_refused(self, shared, place, asked, message):
        with pytest.raises(LedgerError, match=message):
            PrivacyLedger(place, "patients", **asked)

    def test_missing_ledger_is_no_empty_one(self, place, tmp_path):
        for _ in range(2):
            with pytest.raises(LedgerError, match="must be the place of a ledger; there is none"):
                PrivacyLedger(place, "patients", epsilon=3.0, delta=1e-5)
        assert list(tmp_path.iterdir()) == []

    def test_ledger_that_was_deleted_is_an_error(self, on_disk, path):
        os.unlink(path)
        with pytest.raises(LedgerError, match="there is none"):
            on_disk.reserve(PURE, name="a fit")
        assert not os.path.exists(path)

    def test_memory_needs_a_budget_and_is_not_created(self):
        with pytest.raises(TypeError, match="epsilon must be"):
            PrivacyLedger(":memory:", "patients")
        with pytest.raises(
            ValueError, match="path_or_url must be the place of a file or a server"
        ):
            PrivacyLedger.create(":memory:", "patients", epsilon=3.0, delta=1e-5)


class TestReserving:
    """Theorem H3."""

    def test_reservation_is_spent_before_anything_is_read(self, ledger):
        ledger.reserve(PURE, name="a fit")
        assert ledger.remaining(delta=0) == pytest.approx(2.5, rel=1e-3)
        assert ledger.used() == pytest.approx(1 / 6, rel=1e-2)

    def test_budget_that_is_exceeded_is_refused_and_nothing_recorded(self, ledger):
        ledger.reserve(PrivacyProfile.pure(2.0), name="first")
        before = ledger.to_dict()
        with pytest.raises(BudgetExceededError, match=r"'patients' .* got ε = 1\.100 of 'second'"):
            ledger.reserve(PrivacyProfile.pure(1.1), name="second")
        assert ledger.to_dict() == before

    def test_release_without_a_guarantee_is_told_what_to_do(self, ledger):
        with pytest.raises(BudgetExceededError, match="no finite ε at that δ.*config_context"):
            ledger.reserve(PrivacyProfile.approximate(0.0, 1.0), name="a fit")
        assert ledger.history() == []

    def test_refusal_names_what_would_fit(self, ledger):
        ledger.reserve(PrivacyProfile.pure(2.0), name="first")
        with pytest.raises(BudgetExceededError) as error:
            ledger.reserve(PrivacyProfile.pure(2.0), name="second")
        words = str(error.value).split()
        gaussian, pure = (
            float(words[i + 3].rstrip(".")) for i, word in enumerate(words) if word == "to"
        )
        ledger.reserve(PrivacyProfile.pure(pure), name="what fits")
        assert 0.99 < pure <= 1.001
        assert 0.8 < gaussian <= 1.0

    @pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
    def test_one_release_of_all_of_the_budget_fits(self, delta):
        ledger = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=delta)
        ledger.reserve(PrivacyProfile.approximate(1.0, delta), name="all")
        assert ledger.used() == 1.0
        assert ledger.remaining() == ledger.remaining(delta=0) == 0.0
        with pytest.raises(BudgetExceededError):
            ledger.reserve(PrivacyProfile.pure(1e-3), name="more")
        ledger.reserve(PrivacyProfile.pure(0.0), name="what costs nothing")

    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=4)
    def test_total_never_exceeds_the_budget(self, seed):
        """Theorem P4: what was admitted composes to the budget at most, were it fixed."""
        rng = np.random.default_rng(seed)
        ledger = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=1e-4)
        kinds = PrivacyProfile.pure, PrivacyProfile.gaussian
        parts = [kinds[int(rng.integers(2))](float(rng.choice([0.05, 0.1]))) for _ in range(60)]
        admitted = []
        for part in parts:
            try:
                ledger.reserve(part, name="a fit")
            except BudgetExceededError:
                continue
            admitted.append(part)
        whole = sum(admitted, start=PrivacyProfile.pure(0.0))
        assert whole.epsilon(1e-4) <= 1.0 + 1e-9
        spent = ledger.spent()
        assert whole.epsilon(1e-4) * (1.0 - 1e-3) <= spent <= 1.0 + 1e-9

    def test_user_and_machine_are_kept_unless_a_name_is_given(self, shared, place):
        shared.reserve(PURE, name="a fit")
        named = PrivacyLedger(place, "patients", who="Ana", note="study 7")
        left = named.reserve(PURE, name="another")
        named.reserve(PURE, name="a third", note="study 8").cancel("no file")
        shared.reservation(left.identifier).cancel("not needed")
        own = f"{getpass.getuser()}@{platform.node()}"
        found = [(record.who, record.note) for record in shared.history()]
        assert found == [(own, ""), ("Ana", "study 7"), ("Ana", "study 8")]
        usage = shared.usage()
        assert usage["who"] == [own, "Ana", "Ana", "Ana", own]
        assert usage["note"] == ["", "study 7", "study 8", "study 8", "study 7"]
        assert list(shared.history(as_frame=True)["who"]) == [own, "Ana", "Ana"]
        again = pickle.loads(pickle.dumps(named))
        assert (again.who, again.note) == ("Ana", "study 7")
        assert again == shared and hash(again) == hash(shared)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"profile": 0.5}, TypeError, "profile must be a PrivacyProfile; got float"),
            ({"name": " "}, ValueError, "name must be a str of visible characters"),
            ({"assumptions": "one"}, TypeError, "Put it in a list"),
            ({"details": {"x": math.nan}}, ValueError, "details must be valid as strict JSON"),
            ({"note": ""}, ValueError, "note must be a str of visible characters"),
        ],
    )
    def test_arguments_are_checked(self, ledger, arguments, error, message):
        with pytest.raises(error, match=message):
            ledger.reserve(**{"profile": PURE, "name": "a fit", **arguments})
        assert ledger.history() == []


class TestManyProcesses:
    """Theorem H3."""

    def test_last_of_the_budget_is_never_overspent(self, place):
        ledger = PrivacyLedger.create(place, "patients", epsilon=1.0, delta=0.0)
        done = spend_in_processes(ledger, 8, 5, PrivacyProfile.pure(0.1))
        assert sum(done) == 10
        assert len(ledger.history()) == 10
        assert ledger.remaining() < 1e-9

    def test_spends_of_four_processes_are_all_recorded(self, path):
        check_load(path, 4, 50)

    def test_spends_of_two_processes_are_all_recorded(self, server):
        check_load(server.url(), 2, 20)

    @pytest.mark.slow
    def test_ten_thousand_spends_of_eight_processes_are_all_recorded(self, place):
        check_load(place, 8, 1250)


def check_load(place, n_processes, count):
    ledger = PrivacyLedger.create(place, "patients", epsilon=600.0, delta=0.0)
    done = spend_in_processes(ledger, n_processes, count, PrivacyProfile.pure(0.03125))
    assert done == [count] * n_processes
    records = ledger.history()
    assert len({record.reservation for record in records}) == n_processes * count
    assert {record.status for record in records} == {"confirmed"}
    assert ledger.to_dict()["totals"]["share"] == pytest.approx(
        n_processes * count * 0.03125 / 600.0, rel=1e-12
    )


# What is refused before a ledger is touched --------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"path_or_url": 3}, TypeError, "path_or_url must be a path, a URL or ':memory:'"),
        ({"path_or_url": "mysql://user:secret@server/ledgers"}, ValueError, "path_or_url must be"),
        ({"dataset": ""}, ValueError, "dataset must be a str of visible characters"),
        ({"epsilon": 0.0}, ValueError, r"epsilon must be a number in \(0, 600\]"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be"),
        ({"delta": 1.0}, ValueError, r"delta must be a number in \[0, 1\)"),
        ({"delta": None}, TypeError, "delta must be"),
        ({"unit": ""}, ValueError, "unit must be a str of visible characters"),
    ],
)
def test_arguments_are_checked(arguments, error, message):
    right = {"path_or_url": ":memory:", "dataset": "patients", "epsilon": 3.0, "delta": 1e-5}
    with pytest.raises(error, match=message):
        PrivacyLedger(**{**right, **arguments})


# Two phases: what was reserved stays spent unless it was proven that nothing was read --------


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

    def test_left_reservation_is_found_again(self, shared, place):
        left = shared.reserve(PURE, name="a fit").identifier
        found = PrivacyLedger(place, "patients").reservation(left)
        assert found.name == "a fit"
        found.cancel("the process was killed before it read")
        assert shared.used() == 0.0
        with pytest.raises(ValueError, match="identifier must be that of a record"):
            shared.reservation("nothing")


class TestPickles:
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

    def test_nothing_that_was_begun_is_lost_at_twelve_instants(self, path, tmp_path):
        check_kills(path, tmp_path / "log", 12, longest=0.02, seed=0)

    def test_nothing_that_was_begun_is_lost_on_a_server(self, server, tmp_path):
        check_kills(server.url(), tmp_path / "log", 4, longest=0.05, seed=0)

    @pytest.mark.slow
    def test_nothing_that_was_begun_is_lost_at_two_hundred_instants(self, place, tmp_path):
        check_kills(place, tmp_path / "log", 200, longest=0.05, seed=1)


# What is read from a ledger: history, what is spent, what is left, and all of it as JSON -----


class TestReading:
    def test_history_is_in_the_order_of_events_whatever_clocks_say(self, shared, monkeypatch):
        ledger = shared
        times = (f"20{year}-01-01T00:00:00.000+00:00" for year in itertools.count(40, -1))
        monkeypatch.setattr("skdptune.ledger._ledger.now", lambda: next(times))
        for number in range(3):
            with ledger.reserve(PURE, name=f"fit {number}"):
                pass
        records = ledger.history()
        assert [record.name for record in records] == ["fit 0", "fit 1", "fit 2"]
        assert [record.sequence for record in records] == [1, 4, 7]
        assert records[0].time > records[1].time > records[2].time
        assert all(record.changed < record.time for record in records)

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

    def test_settled_ways_last(self, place):
        ledger = PrivacyLedger.create(place, "patients", epsilon=1.0, delta=1e-5)
        early = PrivacyLedger(place, "patients")
        ledger.reserve(PrivacyProfile.approximate(0.5, 5e-6), name="first")
        assert ledger.to_dict()["ways"]["squared_shift"] == 0.0
        # One that was opened before, and would have settled for both.
        early.reserve(PrivacyProfile.gaussian(0.01), name="second")
        assert early.to_dict()["ways"] == ledger.to_dict()["ways"]


# Copies and pickles of a ledger draw from the same budget ------------------------------------


class Estimator(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger


def test_copies_and_clones_are_the_ledger_itself(ledger):
    assert copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    assert clone(Estimator(ledger)).ledger is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger


def test_pickle_in_memory_is_the_ledger_itself_within_its_process(ledger, monkeypatch):
    pickled = pickle.dumps(ledger)
    assert pickle.loads(pickled) is ledger
    # As it is in another process.
    monkeypatch.setattr(_reference, "_IN_MEMORY", {})
    # What refers to it can be loaded, but not spent from.
    again = pickle.loads(pickled)
    assert again == ledger and again.dataset == "patients"
    for use in (again.history, again.remaining, lambda: again.reserve(PURE, name="a fit")):
        with pytest.raises(LedgerError, match="must be used in the process that created it"):
            use()
    assert pickle.loads(pickle.dumps(again)) == ledger


def test_other_processes_spend_from_the_same_budget(shared):
    """Theorem H3."""
    assert spend_in_processes(shared, 2, 2, PURE) == [2, 2]
    assert [record.status for record in shared.history()] == ["confirmed"] * 4
    assert len({record.details["process"] for record in shared.history()}) == 2
