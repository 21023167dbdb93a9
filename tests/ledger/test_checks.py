"""What is refused before a ledger is touched."""

from __future__ import annotations

import math

import pytest

from skdptune.ledger import PrivacyLedger


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"path_or_url": 3}, TypeError, "path_or_url must be a path, a URL or ':memory:'"),
        ({"path_or_url": ""}, ValueError, "path_or_url must be"),
        ({"path_or_url": "a\0b"}, ValueError, "path_or_url must be"),
        ({"path_or_url": b"bytes"}, TypeError, "path_or_url must be"),
        ({"path_or_url": "mysql://user:secret@server/ledgers"}, ValueError, "path_or_url must be"),
        ({"dataset": ""}, ValueError, "dataset must be a str of visible characters"),
        ({"dataset": "two\nlines"}, ValueError, "dataset must be a str of visible characters"),
        ({"dataset": None}, TypeError, "dataset must be a str"),
        ({"epsilon": 0.0}, ValueError, r"epsilon must be a number in \(0, 600\]"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be"),
        ({"epsilon": "1"}, TypeError, "epsilon must be"),
        ({"delta": 1.0}, ValueError, r"delta must be a number in \[0, 1\)"),
        ({"delta": None}, TypeError, "delta must be"),
        ({"unit": ""}, ValueError, "unit must be a str of visible characters"),
    ],
)
def test_arguments_are_checked(arguments, error, message):
    right = {"path_or_url": ":memory:", "dataset": "patients", "epsilon": 3.0, "delta": 1e-5}
    with pytest.raises(error, match=message):
        PrivacyLedger(**{**right, **arguments})


def test_zeros_have_no_sign():
    ledger = PrivacyLedger(":memory:", "patients", epsilon=1, delta=-0.0)
    assert math.copysign(1.0, ledger.delta) == 1.0
    assert isinstance(ledger.epsilon, float)
