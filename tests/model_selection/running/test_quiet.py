"""Silence, however often it is entered."""

from __future__ import annotations

import logging
import threading
import warnings

import pytest

from skdptune.model_selection._running._quiet import Quiet


def make_noise() -> None:
    warnings.warn("noise", UserWarning, stacklevel=1)
    logging.getLogger("noise").critical("noise")
    print("noise")


def test_nothing_is_heard_inside(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with Quiet():
        make_noise()
        with Quiet():
            make_noise()
        make_noise()
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []
    with pytest.warns(UserWarning, match="noise"):
        make_noise()
    assert capsys.readouterr().out == "noise\n"
    assert [record.getMessage() for record in caplog.records] == ["noise"]


def test_last_to_leave_restores_what_the_first_found(capsys: pytest.CaptureFixture[str]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with Quiet():
            entered.set()
            leave.wait(10.0)

    thread = threading.Thread(target=other)
    with Quiet():
        thread.start()
        assert entered.wait(10.0)
    print("still silent")
    leave.set()
    thread.join()
    print("heard")
    assert capsys.readouterr().out == "heard\n"
    assert logging.root.manager.disable == logging.NOTSET


def test_exceptions_pass() -> None:
    with pytest.raises(ValueError, match="loud"), Quiet():
        raise ValueError("loud")
    assert logging.root.manager.disable == logging.NOTSET
