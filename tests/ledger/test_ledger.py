"""A ledger as its user meets it: made, opened, spent from, read; and by many processes at once."""

from __future__ import annotations

import getpass
import math
import os
import pickle
import platform
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import BudgetExceededError, PrivacyProfile, calibrate
from skdptune.ledger import LedgerError, PrivacyLedger, _reference
from skdptune.linear_model import DPLogisticRegression
from tests.ledger.children import spend_in_processes

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
            with pytest.raises(LedgerError, match="must be that of a ledger; there is none"):
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
        with pytest.raises(ValueError, match="path_or_url must be that of a file or a server"):
            PrivacyLedger.create(":memory:", "patients", epsilon=3.0, delta=1e-5)

    def test_repr_shows_what_was_registered(self, ledger):
        assert repr(ledger) == (
            "PrivacyLedger(':memory:', 'patients', epsilon=3.0, delta=1e-05, unit='one record')"
        )


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

    def test_remaining_gaussian_release_fits(self, ledger):
        for _ in range(3):
            ledger.reserve(GAUSSIAN, name="a fit")
        left = ledger.remaining()
        rest = calibrate(
            PrivacyProfile.gaussian, left, 1e-5, parameter="budget", lower=1e-3, upper=3.0
        )
        ledger.reserve(rest.profile, name="the rest")
        assert ledger.remaining() < 0.01 * left

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

    def test_tiny_cost_is_not_lost_beside_a_large_one(self, ledger):
        ledger.reserve(PrivacyProfile.pure(2.0), name="large")
        before = ledger.to_dict()["totals"]["share"]
        for _ in range(50):
            ledger.reserve(PrivacyProfile.pure(1e-17), name="tiny")
        assert ledger.to_dict()["totals"]["share"] > before
        ledger.spent()

    def test_what_is_kept_is_what_was_given(self, ledger):
        ledger.reserve(
            PURE,
            name="DPLogisticRegression",
            assumptions=["the number of records is public"],
            details={"rows": 1000, "space": ["C", None, True]},
            note="for the second study",
        )
        (record,) = ledger.history()
        assert record.name == "DPLogisticRegression"
        assert record.assumptions == ("the number of records is public",)
        assert record.details == {"rows": 1000, "space": ["C", None, True]}
        assert record.note == "for the second study"
        assert record.status == "reserved"
        assert record.epsilon == PURE.epsilon(1e-5)

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

    def test_user_without_a_name_is_a_number(self, ledger, monkeypatch):
        def fail():
            raise KeyError("no such user")

        monkeypatch.setattr(getpass, "getuser", fail)
        monkeypatch.setattr(platform, "node", lambda: "a\x1bb")
        ledger.reserve(PURE, name="a fit")
        assert re.fullmatch(r"(user \d+|a user)@a\?b", ledger.history()[0].who)

    @pytest.mark.parametrize("given", [{"who": ""}, {"who": "a\nb"}, {"note": " "}])
    def test_who_and_note_are_visible_words(self, given):
        with pytest.raises(ValueError, match=f"{next(iter(given))} must be a str of visible"):
            PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=0.0, **given)

    def test_fits_carry_the_words_of_their_ledger(self):
        given = {"epsilon": 1.0, "delta": 1e-5, "who": "Ana", "note": "study 7"}
        ledger = PrivacyLedger(":memory:", "patients", **given)
        X = np.random.default_rng(0).normal(size=(200, 2))
        with ledger:
            DPLogisticRegression(epsilon=0.1).fit(X, X[:, 0] > 0)
        (record,) = ledger.history()
        assert (record.who, record.note) == ("Ana", "study 7")

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"profile": 0.5}, TypeError, "profile must be a PrivacyProfile; got float"),
            ({"name": " "}, ValueError, "name must be a str of visible characters"),
            ({"name": 3}, TypeError, "name must be a str"),
            ({"assumptions": "one"}, TypeError, "Put it in a list"),
            ({"assumptions": [1]}, TypeError, r"assumptions\[0\] must be a str"),
            ({"details": {"x": math.nan}}, ValueError, "details must be fit for strict JSON"),
            ({"details": {"x": object}}, ValueError, "details must be fit for strict JSON"),
            ({"details": {1: 2}}, TypeError, "details must be a mapping from str"),
            ({"details": [1]}, TypeError, "details must be a mapping from str; got list"),
            ({"note": ""}, ValueError, "note must be a str of visible characters"),
            ({"note": 3}, TypeError, "note must be a str"),
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
        check_load(path, 4, 200)

    def test_spends_of_two_processes_are_all_recorded(self, server):
        check_load(server.url(), 2, 40)

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


def test_paths_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger.create("here.ledger", "patients", epsilon=1.0, delta=0.0)
    monkeypatch.chdir("/")
    assert ledger.path == str(tmp_path / "here.ledger")
    assert ledger.remaining() == 1.0
    assert _reference.check_path(":memory:") == ":memory:"
