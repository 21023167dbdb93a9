"""Everything that an object holds is found, whatever it is made of, and nothing is shown."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skdptune.testing._published import MISSING, Whole, published, same
from tests.base.nasty_records import Stubborn
from tests.testing.replay.leaks import Box

ROWS = np.zeros((2, 3))


class Holder:
    def __init__(self, content):
        self.content = content


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left, right):
        self.left, self.right = left, right


class Both(Slotted):
    """Slots of a base class, and a dictionary."""

    def __init__(self, left, more):
        super().__init__(left, 0)
        self.more = more


def differences(one, other):
    first, second = published(Holder(one), ROWS), published(Holder(other), ROWS)
    places = first.keys() | second.keys()
    return {
        place
        for place in places
        if not same(first.get(place, MISSING), second.get(place, MISSING))
    }


CONTENTS = {
    "number": (1.0, 2.0),
    "last bit": (1.0, 1.0 + 2**-52),
    "word": ("a", "b"),
    "truth": (True, False),
    "type": (1, 1.5),
    "none": (None, 0),
    "array": (np.arange(3), np.array([0, 1, 3])),
    "complex array": (np.array([1j]), np.array([2j])),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "objects": (np.array([1, "b", None], object), np.array([1, "c", None], object)),
    "records": (np.zeros(1, "f8,i4"), np.ones(1, "f8,i4")),
    "list": ([1, [2, 3]], [1, [2, 4]]),
    "set": ({1, 2}, {1, 3}),
    "key": ({"a": 1}, {"b": 1}),
    "value": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}),
    "sparse": (sparse.eye(3).tocsr(), 2 * sparse.eye(3).tocsr()),
    "frame": (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
    "slots": (Box(1), Box(2)),
    "slots of a base": (Both(1, 2), Both(3, 2)),
    "masked": (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 1])),
    "state": (partial(max, 1), partial(max, 2)),
    "generator": (np.random.default_rng(0), np.random.default_rng(1)),
    "function": (len, max),
    "object": (Holder(Holder(1)), Holder(Holder(2))),
    "nan": (np.nan, 1.0),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_any_difference_is_found(name) -> None:
    one, other = CONTENTS[name]
    assert differences(one, other)
    assert not differences(one, one)


def test_circles_end() -> None:
    one, other = Holder(1), Holder(2)
    one.again, other.again = one, other
    assert len(differences(one, other)) == 1
    deep = []
    for _ in range(100):
        deep = [deep]
    assert not differences(deep, deep)


def test_objects_that_refuse_everything_are_taken() -> None:
    thing = Stubborn()
    assert not differences(thing, thing)
    assert Whole(thing) == Whole(thing)
    assert Whole(thing) != Whole(Stubborn())
