"""The active ledger, by block of code, thread and process."""

from __future__ import annotations

import os
import threading

import pytest

from skdptune.ledger import LedgerError, PrivacyLedger, config_context, get_config, set_config
from skdptune.ledger._shared import (
    LedgerSettings,
    checked_ledger,
    process_identity,
    settings_in_force,
    settings_meant,
)

NOTHING = {"ledger": None, "require_ledger": False}


def memory(name="others"):
    return PrivacyLedger(":memory:", name, epsilon=3.0, delta=1e-5)


def in_a_thread(function):
    """Return a function's result or error in a thread without its own context."""
    found = []

    def run():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture(autouse=True)
def _as_before():
    yield
    set_config(ledger=False, require_ledger=False)
    assert get_config() == in_a_thread(get_config) == NOTHING


class TestBlocks:
    """Theorem H4."""

    def test_innermost_is_in_use_and_what_is_not_given_stays(self, ledger):
        other = memory()
        with config_context(require_ledger=True), ledger:
            assert get_config() == {"ledger": ledger, "require_ledger": True}
            with config_context(ledger=other):
                assert get_config() == {"ledger": other, "require_ledger": True}
            with config_context(require_ledger=False):
                assert get_config() == {"ledger": ledger, "require_ledger": False}
            with config_context(ledger=False):
                assert get_config() == {"ledger": None, "require_ledger": True}
            assert get_config()["ledger"] is ledger

    def test_blocks_that_end_out_of_turn(self, ledger):
        other = memory()
        first, second = config_context(ledger=ledger), config_context(ledger=other)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert get_config()["ledger"] is other
        second.__exit__(None, None, None)
        assert get_config() == NOTHING

    def test_process_is_set_until_it_is_set_back(self, ledger):
        set_config(ledger=ledger, require_ledger=True)
        assert get_config() == {"ledger": ledger, "require_ledger": True}
        set_config(require_ledger=False)
        with memory() as other:
            assert get_config() == {"ledger": other, "require_ledger": False}
        set_config(ledger=False)
        assert get_config() == NOTHING

    @pytest.mark.parametrize("wrong", ["path", 1, True, PrivacyLedger], ids=repr)
    def test_what_is_no_ledger_is_refused(self, wrong):
        with pytest.raises(TypeError, match="ledger must be a PrivacyLedger"):
            checked_ledger(wrong)
        with pytest.raises(TypeError, match="ledger must be a PrivacyLedger"):
            set_config(ledger=wrong)
        with (
            pytest.raises(TypeError, match="ledger must be a PrivacyLedger"),
            config_context(ledger=wrong),
        ):
            pass
        with pytest.raises(TypeError, match="require_ledger"):
            set_config(require_ledger="yes")


class TestThreads:
    """Theorem H4: joblib's threads do not have their own context."""

    def test_thread_uses_that_of_the_process(self, ledger):
        with config_context(ledger=ledger, require_ledger=True):
            assert in_a_thread(get_config) == {"ledger": ledger, "require_ledger": True}

    def test_thread_of_its_own_context_uses_that(self, ledger):
        def use():
            with memory() as own:
                return get_config()["ledger"] is own

        with ledger:
            assert in_a_thread(use) is True

    @pytest.mark.parametrize("off", [False, True], ids=["another", "none"])
    def test_thread_that_cannot_tell_is_refused(self, ledger, off):
        with ledger, config_context(ledger=False if off else memory()):
            error = in_a_thread(get_config)
            assert isinstance(error, LedgerError)
            assert "several ledgers" in str(error)
            # What others have entered says nothing of what this one was meant to use.
            assert in_a_thread(settings_meant) == LedgerSettings()

    def test_same_ledger_twice_is_one(self, on_disk, path):
        with on_disk, PrivacyLedger(path, "patients"):
            assert in_a_thread(get_config)["ledger"] == on_disk

    def test_requirement_holds_for_all(self):
        with config_context(require_ledger=True), memory() as other:
            assert in_a_thread(get_config) == {"ledger": other, "require_ledger": True}


class TestProcesses:
    """Theorem H4: what was carried here from another process."""

    def test_carried_settings_come_after_those_of_the_thread(self, ledger):
        carried = LedgerSettings(memory())
        assert settings_in_force(carried) is carried
        assert settings_meant(carried) is carried
        with ledger:
            assert settings_in_force(carried).ledger is ledger
        with carried.ledger:
            assert in_a_thread(lambda: settings_in_force(carried)) is carried

    @pytest.mark.parametrize("way", ["block", "process", "off"])
    def test_carried_ledger_beside_another_is_not_guessed(self, ledger, way):
        """Theorem H4: a model of an earlier session, which brings the ledger of other data."""
        carried = LedgerSettings(memory())
        if way == "process":
            set_config(ledger=ledger)
            with pytest.raises(LedgerError, match="brings this ledger"):
                settings_in_force(carried)
        with config_context(ledger=False if way == "off" else ledger):
            assert isinstance(in_a_thread(lambda: settings_in_force(carried)), LedgerError)

    def test_carried_demand_is_met_by_the_ledger_of_the_process(self, ledger):
        set_config(ledger=ledger)
        found = settings_in_force(LedgerSettings(None, require_ledger=True))
        assert found == LedgerSettings(ledger, require_ledger=True)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_forked_process_is_another_and_keeps_what_was_in_use(self, ledger):
        carried, here = LedgerSettings(memory()), process_identity()
        assert process_identity() == here
        with ledger:
            child = os.fork()
            if child == 0:
                is_right = (
                    process_identity() != here
                    and settings_in_force().ledger is ledger
                    and settings_in_force(carried) is carried
                )
                os._exit(0 if is_right else 1)
            assert os.waitpid(child, 0)[1] == 0
