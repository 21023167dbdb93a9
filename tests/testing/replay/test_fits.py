"""Neighbouring data sets, seeded fits to them, and what is claimed of these."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPRandomSearchCV
from skdptune.preprocessing import DPStandardScaler, RowNormClipper
from skdptune.testing._published import (
    error_of,
    fit,
    has_returned,
    neighbours,
    same,
    with_public_size,
)
from skdptune.testing._replay_neighbours import make_setting
from tests.testing.replay import leaks

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 0, 1])
SEED = np.random.SeedSequence(0)


def test_data_sets_differ_in_one_record() -> None:
    data = neighbours(X, Y, ([7.0, 8.0, 9.0], 1))
    assert data.without.X.tolist() == X.tolist()
    assert data.added.X.tolist() == [*X.tolist(), [7.0, 8.0, 9.0]]
    assert data.added.y.tolist() == [0, 1, 0, 1, 1]
    # A record with another label stands in the place.
    assert data.replaced.X.tolist() == [*X.tolist(), [0.0, 1.0, 2.0]]
    assert data.replaced.y.tolist() == [0, 1, 0, 1, 0]
    assert data.constant.X.tolist() == [[0.0, 1.0, 2.0]] * 5
    assert (data.n_samples, data.n_features, len(data.rows)) == (4, 3, 5)


def test_records_may_be_images() -> None:
    images = np.arange(24.0).reshape(3, 2, 4)
    data = neighbours(images, None, images[1])
    assert data.added.X.shape == (4, 2, 4) and data.rows.shape == (4, 2, 4)
    with pytest.raises(ValueError, match="shape of a row of X, \\(2, 4\\)"):
        neighbours(images, None, images[1].T)


@pytest.mark.parametrize("form", ["array", "frame", "list", "sparse", "words"])
def test_forms_are_kept(form) -> None:
    table = {
        "array": lambda: X.astype(np.float32),
        "frame": lambda: pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]}),
        "list": X.tolist,
        "sparse": lambda: sparse.csr_matrix(X),
        "words": lambda: np.array([["a", "b", "c"], ["d", "e", "f"]]),
    }[form]()
    record = {"frame": [3, "z", 2.5], "words": ["x", "yy", "z"]}.get(form, [1.0, 2.0, 3.0])
    data = neighbours(table, None, record)
    for part in (data.without, data.added, data.replaced):
        assert type(part.X) is type(table)
        assert getattr(part.X, "dtype", None).__class__ is getattr(table, "dtype", None).__class__
    if form == "frame":
        assert data.added.X.dtypes.tolist() == table.dtypes.tolist()
        assert data.added.X.iloc[-1].tolist() == record
        assert data.without.X.equals(table)


def test_a_record_of_another_type_changes_the_type_of_all_data_sets() -> None:
    data = neighbours(X, None, ["a", 1.0, 2.0])
    assert data.without.X.dtype == data.added.X.dtype == object
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    mixed = neighbours(frame, pd.Series([0, 1], name="t"), (["x", 2], 1))
    assert mixed.added.X["a"].tolist() == [1, 2, "x"]
    assert mixed.without.X.dtypes.tolist() == mixed.added.X.dtypes.tolist()
    assert mixed.added.y.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X, Y, [1.0, 2.0, 3.0]), "record must be a pair"),
        ((X, None, [98765.0]), "record must have the shape of a row"),
        ((X[0], None, [1.0]), "X must be a table"),
        ((X[:1], None, X[0]), "at least two records"),
    ],
)
def test_wrong_data_are_refused_without_quoting_them(arguments, words) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        neighbours(*arguments)
    assert "98765" not in str(caught.value)


class DrawsEverywhere(BaseEstimator):
    """Has no parameter for a seed, and draws from generators of all libraries."""

    def fit(self, X, y=None):
        self.draws_ = [random.random(), float(np.random.random())]
        return self


def test_global_generators_are_seeded_and_come_back() -> None:
    data = neighbours(X, None, X[0])
    before = random.getstate(), np.random.get_state()[1].tolist()
    one, again = (fit(DrawsEverywhere(), data.without, data.rows, SEED) for _ in range(2))
    other = fit(DrawsEverywhere(), data.without, data.rows, np.random.SeedSequence(1))
    assert same(one["draws_"], again["draws_"])
    assert not same(one["draws_"], other["draws_"])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_seeds_reach_all_steps() -> None:
    data = neighbours(X, Y, (X[0], 1))
    steps = make_pipeline(DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(solver="output"))
    one, again = (fit(steps, data.without, data.rows, SEED) for _ in range(2))
    assert all(same(one[place], again[place]) for place in one)
    assert steps[0].random_state is None


def test_errors_and_warnings_are_published_without_their_words() -> None:
    class Fails(BaseEstimator):
        def fit(self, X, y=None):
            raise KeyError("98765")

    data = neighbours(X, None, X[0])
    leaves = fit(Fails(), data.without, data.rows, SEED)
    assert not has_returned(leaves) and error_of(leaves) == "KeyError"
    assert "98765" not in repr(leaves)


def test_public_sizes_are_set_where_they_are_open() -> None:
    steps = make_pipeline(
        DPStandardScaler(bounds=(-1, 1), n_public=7), DPLogisticRegression(solver="output")
    )
    made = with_public_size(steps, 50)
    assert (made[0].n_public, made[1].n_public, steps[1].n_public) == (7, 50, None)


ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, size=(60, 3))
LABELS = np.arange(60) % 2


def setting_of(estimator):
    data = neighbours(ROWS, LABELS, (ROWS[0], 1))
    setting = make_setting(estimator, data, 10)
    leaves = fit(setting.sized, data.without, data.rows, np.random.SeedSequence(0))
    return setting, setting.claim(leaves)


@pytest.mark.parametrize("free", [Normalizer(), RowNormClipper()], ids=["normalizer", "clipper"])
def test_free_steps_need_no_public_size(free) -> None:
    right = make_pipeline(free, DPLogisticRegression(solver="output", data_norm=2.0))
    assert not setting_of(right)[1].size_is_public
    mixed = make_pipeline(DPStandardScaler(bounds=(-1, 1)), leaks.NoisyMean())
    # The second step has no constant, and the first one's report states what it needs.
    assert setting_of(mixed)[1].size_is_public


def test_a_public_size_that_is_refused_is_not_set() -> None:
    classifier = DPLogisticRegression(solver="output", data_norm=2.0)
    search = DPRandomSearchCV(classifier, {"C": [1.0]}, n_iter=1, epsilon=1.0)
    setting, claim = setting_of(search)
    assert setting.sized is search
    assert claim.size_is_public


def test_chances_and_shifts_follow_from_the_profile() -> None:
    setting, claim = setting_of(leaks.NoisyMean())
    # Theorem V1.
    assert claim.shift == pytest.approx(0.25, rel=0.05)
    assert claim.allowed("record replaced") == 2.0 * claim.allowed("record added")
    # Theorem V2.
    assert 0.5**9 < claim.chances["record added"] < claim.chances["record replaced"] < 0.02
    result = setting.result([])
    assert (result.estimator, result.n_repeats, result.delta) == ("NoisyMean", 10, 1e-5)
    assert result.epsilon == pytest.approx(setting.profile.epsilon(1e-5))
