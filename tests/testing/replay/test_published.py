"""Everything that an object holds is found, whatever it is made of, and nothing is shown."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdptune.accounting import PrivacyProfile
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


class Marked(list):
    """A list with an attribute."""

    def __init__(self, content, mark):
        super().__init__(content)
        self.mark = mark


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
    "large integer": (2**200, 2**200 + 1),
    "complex": (1j, 2j),
    "word": ("a", "b"),
    "bytes": (b"a", b"b"),
    "truth": (True, False),
    "type": (1, 1.5),
    "none": (None, 0),
    "array": (np.arange(3), np.array([0, 1, 3])),
    "complex array": (np.array([1j]), np.array([2j])),
    "single precision": (np.float32(1.0), np.float32(1.1)),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "kind": (np.zeros(2), np.zeros(2, dtype=int)),
    "words": (np.array(["a", "b"]), np.array(["a", "c"])),
    "objects": (np.array([1, "b", None], object), np.array([1, "c", None], object)),
    "dates": (np.array(["2020"], "M8[Y]"), np.array(["2021"], "M8[Y]")),
    "records": (np.zeros(1, "f8,i4"), np.ones(1, "f8,i4")),
    "list": ([1, [2, 3]], [1, [2, 4]]),
    "length": ([1.0, 2.0], [1.0, 2.0, 3.0]),
    "tuple": ((1, "a"), (1, "b")),
    "set": ({1, 2}, {1, 3}),
    "key": ({"a": 1}, {"b": 1}),
    "value": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}),
    "sparse": (sparse.eye(3).tocsr(), 2 * sparse.eye(3).tocsr()),
    "frame": (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
    "name": (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
    "column": (pd.Series(["a"]), pd.Series(["b"])),
    "slots": (Box(1), Box(2)),
    "mark": (Marked([1], 2), Marked([1], 3)),
    "slots of a base": (Both(1, 2), Both(3, 2)),
    "masked": (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 1])),
    "state": (partial(max, 1), partial(max, 2)),
    "generator": (np.random.default_rng(0), np.random.default_rng(1)),
    "old generator": (np.random.RandomState(0), np.random.RandomState(1)),
    "profile": (PrivacyProfile.pure(1.0), PrivacyProfile.pure(2.0)),
    "function": (len, max),
    "class": (int, float),
    "object": (Holder(Holder(1)), Holder(Holder(2))),
    "nan": (np.nan, 1.0),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_any_difference_is_found(name) -> None:
    one, other = CONTENTS[name]
    assert differences(one, other)
    assert not differences(one, one)


@pytest.mark.parametrize(
    "make",
    [
        KNeighborsClassifier,
        lambda: KNeighborsClassifier(algorithm="ball_tree"),
        lambda: DecisionTreeClassifier(random_state=0),
        lambda: RandomForestClassifier(2, random_state=0),
        lambda: make_pipeline(StandardScaler(), KNeighborsClassifier()),
    ],
    ids=["neighbours", "ball tree", "tree", "forest", "pipeline"],
)
def test_one_entry_of_the_data_is_found_in_compiled_objects(make) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0.0).astype(int)
    other, labels = X.copy(), y.copy()
    other[7, 0], labels[7] = 1.5, 1 - labels[7]
    assert differences(make().fit(X, y), make().fit(other, labels))
    assert not differences(make().fit(X, y), pickle.loads(pickle.dumps(make().fit(X, y))))


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


def test_places_name_attributes_and_number_entries() -> None:
    found = published(Holder({"a secret": [Slotted(1, "b")]}), ROWS)
    assert not any("secret" in place for place in found)
    assert {place.split("[")[0].split(" ")[0] for place in found} == {"(type)", "content"}


def test_responses_and_their_errors_are_published() -> None:
    class Model:
        def predict(self, X):
            return np.arange(len(X))

        def transform(self, X):
            raise ValueError("secret")

    found = published(Model(), ROWS)
    assert found["predict(X)"].tolist() == [0.0, 1.0]
    assert found["transform(X)"] == Whole("raises ValueError")
