"""Arguments are found by name or by place, and in methods that say nothing of them."""

from __future__ import annotations

import inspect

import pytest

from skdptune.base._charges import arguments_of, signature_of, signature_with_object

ROWS, LABELS = [[1.0], [2.0]], [0, 1]


def usual(self, X, y=None, sample_weight=None): ...


def anything(self, *args, **kwargs): ...


def others(self, data, target=None, *, mode="a"): ...


def without_y(self, X, copy=None): ...


def statistics(self, statistics): ...


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "found"),
    [
        (usual, (ROWS, LABELS), {}, {"X": ROWS, "y": LABELS}),
        (usual, (ROWS,), {"sample_weight": LABELS}, {"X": ROWS, "sample_weight": LABELS}),
        (usual, (), {"y": LABELS, "X": ROWS}, {"X": ROWS, "y": LABELS}),
        (anything, (ROWS, LABELS), {}, {"X": ROWS, "y": LABELS}),
        (anything, (ROWS,), {"y": LABELS}, {"X": ROWS, "y": LABELS}),
        (anything, (), {"X": ROWS, "y": LABELS}, {"X": ROWS, "y": LABELS}),
        (others, (ROWS, LABELS), {"mode": "b"}, {"X": ROWS, "y": LABELS, "mode": "b"}),
        (others, (), {"data": ROWS, "target": LABELS}, {"X": ROWS, "y": LABELS}),
        (without_y, (ROWS, True), {}, {"X": ROWS, "copy": True}),
        (statistics, ("sums",), {}, {"statistics": "sums"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_records_and_targets_are_found(method, args, kwargs, found):
    """Theorem H4."""
    known = arguments_of(signature_of(method).bind(None, *args, **kwargs))
    assert {name: known.get(name) for name in found} == found
    assert ("y" in known) == ("y" in found)


def test_code_that_does_not_tell_takes_anything():
    assert list(signature_of(dict.update).parameters) in (
        ["args", "kwargs"],
        ["self", "args", "kwargs"],
    )
    bound = signature_with_object(lambda X, y=None: None).bind("object", ROWS)
    assert arguments_of(bound)["X"] is ROWS
    assert isinstance(signature_of(usual), inspect.Signature)
