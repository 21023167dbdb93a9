"""Boosting on rows in parts: the bits of a fit in memory, for any parts (Theorem R10)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from skdptune import PrivacyLedger, PrivateRows
from skdptune.ensemble import DPExplainableBoostingClassifier as Classifier
from skdptune.ensemble import DPExplainableBoostingRegressor as Regressor
from skdptune.testing import replay_neighbours
from tests.ensemble.tables import SCHEMA, people
from tests.parts import in_chunks, in_parts

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (3000, 3))
CROSSED = X[:, 0] * X[:, 1] > 0
X[4, 1] = np.nan
MANY = CROSSED + 2 * (X[:, 2] > 0.5)
PERSONS = RNG.integers(0, 1500, 3000).astype(float)
PERSONS[::50] = np.nan
SETTINGS = {"bounds": (-1, 1), "max_rounds": 10, "random_state": 0}
MODELS = {
    "two": (Classifier(9.0, 1e-6, classes=[False, True], **SETTINGS), CROSSED),
    "four": (Classifier(9.0, 1e-6, classes=range(4), interactions=[(0, 1)], **SETTINGS), MANY),
    "numbers": (
        Regressor(9.0, 1e-6, target_bound=1.0, interactions=None, **SETTINGS),
        X[:, 2] + CROSSED,
    ),
}


def learned(model):
    """Return what a fit learned, as text of all its digits."""
    names = sorted(name for name in vars(model) if name.endswith("_") and name != "privacy_")
    with np.printoptions(floatmode="unique", threshold=10**6):
        return {name: repr(getattr(model, name)) for name in names} | {"cost": str(model.privacy_)}


@pytest.mark.parametrize("ids", [None, PERSONS], ids=["rows", "persons"])
@pytest.mark.parametrize("name", MODELS)
def test_any_parts_give_the_bits_of_a_fit_in_memory(name, ids):
    # Theorem R10, Theorem P14.
    model, targets = MODELS[name]
    whole = clone(model).fit(X, targets, groups=ids)
    assert ((0, 1) in whole.pairs_) == (name != "numbers")
    for cuts in ([], [0, 1, 700, 700, 3000]):
        order = np.random.default_rng(len(cuts)).permutation(3000)
        groups = None if ids is None else ids[order]
        found = clone(model).fit(in_chunks(X, targets, cuts, order), groups=groups)
        assert learned(found) == learned(whole)


@pytest.mark.parametrize("name", ["two", "numbers"])
def test_dask_gives_the_bits_of_a_fit_in_memory(name):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    da = pytest.importorskip("dask.array")
    model, targets = MODELS[name]
    found = clone(model).fit(da.from_array(X, chunks=(1400, 2)), targets)
    assert learned(found) == learned(clone(model).fit(X, targets))


def test_tables_with_text_in_files(tmp_path):
    # Theorem R10, Theorem R7.
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table, targets = people(500)
    model = Classifier(1.0, 1e-6, schema=SCHEMA, max_rounds=5, random_state=0)
    whole = learned(clone(model).fit(table, targets))
    made = pa.Table.from_pandas(table.assign(target=targets))
    pq.write_table(made, tmp_path / "rows.parquet", row_group_size=99)
    rows = PrivateRows.from_parquet(tmp_path / "rows.parquet", "target")
    assert learned(clone(model).fit(rows)) == whole
    # A wrong column shows in the files, before a ledger pays.
    other = made.rename_columns([f"{name}s" for name in made.column_names])
    pq.write_table(other, tmp_path / "other.parquet")
    ledger = PrivacyLedger(":memory:", "people", epsilon=9.0, delta=1e-5)
    with ledger, pytest.raises(ValueError, match="column"):
        rows = PrivateRows.from_parquet(tmp_path / "other.parquet", "targets")
        clone(model).fit(rows)
    assert not ledger.history()


def test_replayed_neighbours_differ_as_they_may():
    # Theorem R10, Theorem B1.
    model = in_parts(Regressor)(
        1.0, 1e-6, target_bound=1.0, max_leaves=2, max_rounds=2, bounds=(-1, 1)
    )
    for record in ((np.array([1e9, 0.3, -1.0]), 5.0), (np.array([np.nan, 0.3, -1.0]), np.nan)):
        replay_neighbours(model, X[10:70], X[10:70, 0], record, n_repeats=6).assert_passes()


def test_without_rows_only_noise_is_fitted():
    rows = PrivateRows.from_arrays(X[:0], CROSSED[:0])
    model = clone(MODELS["two"][0])
    with pytest.raises(ValueError, match="must have records"):
        model.fit(rows)
    model.set_params(n_public=50).fit(rows)
    assert learned(model) == learned(clone(model).fit(X[:0], CROSSED[:0]))


def test_what_cannot_be_fitted_in_parts_is_refused_for_free():
    def unread():
        raise AssertionError("read")

    ledger = PrivacyLedger(":memory:", "people", epsilon=9.0, delta=1e-5)
    rows = PrivateRows.from_chunks(unread)
    with ledger:
        with pytest.raises(TypeError, match="Declare the labels"):
            Classifier(bounds=(-1, 1)).fit(rows)
        with pytest.raises(ValueError, match="X must be readable again"):
            clone(MODELS["two"][0]).fit(iter([(X, CROSSED)]))
        with pytest.raises(ValueError, match="X must be readable again"):
            clone(MODELS["numbers"][0]).set_params(n_public=9).fit(iter([(X, CROSSED)]))
        with pytest.raises(ValueError, match="y must be given"):
            clone(MODELS["numbers"][0]).fit(PrivateRows.from_arrays(X))
    assert not ledger.history()
