"""The contract of estimators is complete, and the estimators of the package meet it."""

from __future__ import annotations

import inspect

from skdptune.base import protocol
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.preprocessing import DPStandardScaler
from tests.testing.estimators import Right


def members(kind: type) -> set[str]:
    """Return what a protocol and those that it extends ask for."""
    found = set()
    for base in kind.__mro__:
        if base.__module__ == protocol.__name__:
            found |= {*vars(base), *inspect.get_annotations(base)}
    return {name for name in found if not name.startswith("_")}


def kinds() -> list[type]:
    return [getattr(protocol, name) for name in protocol.__all__]


def test_every_protocol_is_in_the_tables() -> None:
    for kind in kinds():
        assert members(kind)
        for name in members(kind):
            assert f"``{name}" in protocol.__doc__, name


def test_our_estimators_offer_what_they_say() -> None:
    # A search tries values for all of ours.
    never = {"CalibratesToCurve"}
    X, y = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], [0, 1, 0]
    fitted = DPLogisticRegression(data_norm=2.0, delta=1e-9).fit(X, y)
    offered = {
        kind.__name__
        for kind in kinds()
        for one in (fitted, DPRidge(), DPStandardScaler())
        if all(hasattr(one, name) for name in members(kind))
    }
    assert offered == {kind.__name__ for kind in kinds()} - never
    taken = set(inspect.signature(fitted.fit).parameters) | {"self"}
    assert set(inspect.signature(protocol.StartsFromWeights.fit).parameters) <= taken


def test_protocols_need_no_inheritance() -> None:
    assert not any(kind in type(Right()).__mro__ for kind in kinds())
