"""The explainable boosting machine for numbers."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.ensemble import DPExplainableBoostingRegressor as Regressor
from skdptune.preprocessing import Schema

SCHEMA = Schema({"a": (0, 1), "b": (0, 1)}, target=(100, 100.5))
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (3000, 2))
Y = 100.0 + np.abs(X[:, 0] - 0.5)


def test_it_learns_targets_in_their_units():
    model = Regressor(4.0, bounds=(0, 1), target_bound=(100, 100.5), random_state=0)
    assert model.fit(X, Y).score(X, Y) > 0.7
    assert model.predict(X).mean() == pytest.approx(100.25, abs=0.05)


def test_predictions_reach_the_mean_of_the_targets_at_any_rate():
    settings = {"bounds": (0, 1), "target_bound": (0, 1), "learning_rate": 1e-4}
    model = Regressor(1.0, random_state=0, **settings).fit(X, np.full(3000, 0.9))
    assert model.intercept_ == pytest.approx(0.9, abs=0.03)


def test_units_of_targets_make_no_difference():
    first = Regressor(bounds=(0, 1), target_bound=1.0, max_rounds=3, random_state=0)
    second = Regressor(bounds=(0, 1), target_bound=(992, 1008), max_rounds=3, random_state=0)
    z = Y - 100.25
    one, other = first.fit(X, z).predict(X), second.fit(X, 8 * z + 1000).predict(X)
    assert 8 * one + 1000 == pytest.approx(other)


def test_targets_beyond_their_bound_are_clipped():
    model = Regressor(bounds=(0, 1), target_bound=1.0, max_rounds=3, random_state=0)
    far = np.where(np.arange(3000) % 2, 1e300, -5.0)
    clipped = model.fit(X, np.clip(far, -1, 1)).predict(X)
    assert np.array_equal(model.fit(X, far).predict(X), clipped)


def test_a_target_that_is_no_number_makes_a_row_of_zeros():
    model = Regressor(bounds=(-1, 1), target_bound=1.0, max_rounds=3, random_state=0)
    z, zeros = Y - 100.25, X.copy()
    z[5], zeros[5] = 0.0, 0.0
    expected = model.fit(zeros, z).predict(X)
    for wrong in (np.nan, np.inf):
        z[5] = wrong
        assert np.array_equal(model.fit(X, z).predict(X), expected)


def test_the_schema_may_know_the_range_of_targets():
    model = Regressor(schema=SCHEMA, max_rounds=3, random_state=0).fit(X, Y)
    given = Regressor(bounds=(0, 1), target_bound=(100, 100.5), max_rounds=3, random_state=0)
    assert np.array_equal(model.predict(X), given.fit(X, Y).predict(X))
    assert "targets are clipped to [100, 100.5]" in model.privacy_.assumptions
    with pytest.raises(ValueError, match="target_bound must be given, or the target's range"):
        Regressor(schema={"a": (0, 1), "b": (0, 1)}).fit(X, Y)
