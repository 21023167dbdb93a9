"""The command ``python -m skdptune.ledger``."""

from __future__ import annotations

import json
import runpy
import sys

import pytest

from skdptune.accounting import PrivacyProfile


def main(arguments):
    """Run the command in this process, and return its exit status."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["skdptune.ledger", *arguments])
        runpy.run_module("skdptune.ledger", run_name="__main__")
    return ended.value.code


@pytest.fixture
def spent(shared):
    with shared.reserve(PrivacyProfile.pure(0.5), name="search", note="study 7"):
        pass
    return shared


def test_show_prints_the_report(spent, place, capsys):
    assert main(["show", place, "patients"]) == 0
    assert capsys.readouterr().out == f"{spent.report()}\n"


def test_history_prints_a_line_for_each(spent, place, capsys):
    assert main(["history", place, "patients"]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split() == ["number", "time", "status", "epsilon", "who", "name:", "note"]
    assert line.split()[0:3:2] == ["1", "confirmed"]
    assert line.endswith(": study 7") and spent.history()[0].who in line
    assert main(["history", "--json", place, "patients"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["name"] == "search"


def test_export_prints_everything(spent, place, capsys):
    assert main(["export", place, "patients"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(spent.to_json())


def test_missing_ledger_is_said_in_one_line(place, capsys):
    assert main(["show", place, "patients"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("path_or_url must be the place of a ledger")
