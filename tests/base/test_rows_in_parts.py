"""Rows in parts: any parts give the same sums, and errors show no value (Theorem R10)."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdptune
from skdptune import (
    DPPCA,
    AdaSSPLinearRegression,
    DPExplainableBoostingRegressor,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMinMaxScaler,
    DPRandomSearchCV,
    DPRidge,
    DPStandardScaler,
    OutputPerturbationLinearRegression,
    PrivacyLedger,
    PrivateRows,
    PrivateScoreCurves,
    PTRLinearRegression,
    Schema,
    make_private_pipeline,
)
from skdptune.base._rows_in_parts import Tally, Task, merged, without_secrets
from skdptune.linear_model import SufficientStatistics
from skdptune.preprocessing import BoundedScaler, RowNormClipper
from skdptune.testing import replay_neighbours
from tests.parts import in_parts

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(900, 3)) * rng.choice([0.1, 1.0, 30.0], size=(900, 1))
TARGETS = np.clip(ROWS @ [0.3, -0.2, 0.1] + 0.1 * rng.normal(size=900), -2, 2)
ROWS[5, 1], TARGETS[9] = np.nan, np.inf
pytestmark = pytest.mark.filterwarnings("ignore:.* is fitted again")

MODELS = {
    "ridge": DPRidge(1.0, 1e-6, target_bound=1.0, random_state=0),
    "adassp": AdaSSPLinearRegression(1.0, 1e-6, target_bound=1.0, random_state=0),
    "ptr": PTRLinearRegression(1.0, 1e-6, target_bound=1.0, random_state=0),
    "scaler": DPStandardScaler(1.0, 1e-6, bounds=(-3, 3), random_state=0),
    "pure scaler": DPStandardScaler(1.0, 0.0, bounds=(-3, 3), random_state=0),
    "min and max": DPMinMaxScaler(1.0, bounds=(-3, 3), random_state=0),
    "pca": DPPCA(epsilon=1.0, delta=1e-6, bounds=(-3, 3), random_state=0),
}


def learned(model):
    """Return what a fit learned, as bytes."""
    names = sorted(name for name in vars(model) if name.endswith("_") and name != "privacy_")
    return {name: np.asarray(getattr(model, name)).tobytes() for name in names}


def chunk(places):
    return lambda: iter([(ROWS[places], TARGETS[places])])


def in_chunks(cuts, seed=0):
    """Return the rows in parts of other sizes and in another order."""
    order = np.random.default_rng(seed).permutation(len(ROWS))
    return PrivateRows.from_chunks([chunk(part) for part in np.split(order, sorted(cuts))])


@pytest.fixture(scope="module")
def whole():
    return {name: learned(fitted(model)) for name, model in MODELS.items()}


def fitted(model):
    return clone(model).fit(ROWS, TARGETS if hasattr(model, "predict") else None)


# Sums -------------------------------------------------------------------------------------------


def sums(places, **settings):
    made = SufficientStatistics(**{"data_norm": 1.0, "target_bound": 2.0, **settings})
    return made.update(ROWS[places], TARGETS[places]) if len(places) else made


@settings(max_examples=25)
@given(st.lists(st.integers(0, 900), max_size=6), st.integers(0, 2**32 - 1))
def test_merged_sums_are_those_of_one_pass(cuts, seed):
    # Theorem L9: sums that one record changes only by its own products.
    order = np.random.default_rng(seed).permutation(900)
    parts = [sums(part) for part in np.split(order, sorted(cuts))]
    added = parts[0]
    for part in parts[1:]:
        added = added + part
    whole = sums(np.arange(900))
    assert added.n_samples == 900
    for one, other in zip(added.gram_and_moment, whole.gram_and_moment, strict=True):
        assert one.tobytes() == other.tobytes()
    # Neither order nor grouping matters, and a sum may go on.
    back = parts[-1]
    for part in reversed(parts[:-1]):
        back = part.merge(back)
    assert back.spectrum[0].tobytes() == whole.spectrum[0].tobytes()


def test_merged_sums_are_those_of_whole_numbers():
    # Theorem L9: Python's fractions as an oracle.
    added = sums(np.arange(400)) + sums(np.arange(400, 900))
    total = np.zeros((5, 5), dtype=object)
    for place in range(900):
        for block in SufficientStatistics(1.0, 2.0).blocks(ROWS[[place]], TARGETS[[place]]):
            units = [Fraction(int(number)) / 2**20 for number in block[0]]
            total += np.outer(units, units)
    exact = np.array([[float(entry) for entry in row] for row in total])
    assert added.gram_and_moment[0].tobytes() == exact[:4, :4].tobytes()
    assert added.gram_and_moment[1].tobytes() == exact[:4, 4].tobytes()


def test_sums_that_do_not_match_are_not_merged():
    mine = sums(np.arange(9))
    for change, name in [({"data_norm": 2.0}, "data_norm"), ({"fit_intercept": False}, "fit_int")]:
        with pytest.raises(ValueError, match=name):
            mine.merge(sums(np.arange(9), **change))
    with pytest.raises(ValueError, match="n_features"):
        mine.merge(SufficientStatistics(1.0, 2.0).update(ROWS[:, :2], TARGETS))
    with pytest.raises(TypeError, match="other must be SufficientStatistics"):
        mine.merge(ROWS)
    assert mine.merge(SufficientStatistics(1.0, 2.0)).n_samples == 9


# Fits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cuts", [[], [400], [0, 1, 300, 300, 777, 900]], ids=len)
def test_any_parts_give_the_bits_of_a_fit_in_memory(name, cuts, whole):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    for seed in (0, 1):
        assert learned(clone(MODELS[name]).fit(in_chunks(cuts, seed))) == whole[name]


@pytest.mark.parametrize("name", MODELS)
def test_memory_maps_and_dask_give_the_bits_of_a_fit_in_memory(name, whole, tmp_path):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert learned(clone(MODELS[name]).fit(mapped, TARGETS)) == whole[name]
    da = pytest.importorskip("dask.array")
    for blocks in [(100, 2), (331, 3)]:
        rows = da.from_array(ROWS, chunks=blocks)
        for targets in (TARGETS, da.from_array(TARGETS, chunks=200)):
            assert learned(clone(MODELS[name]).fit(rows, targets)) == whole[name]


def test_reports_are_those_of_a_fit_in_memory():
    rows = PrivateRows.from_arrays(ROWS, TARGETS, rows_per_part=100)
    for model in MODELS.values():
        assert clone(model).fit(rows).privacy_.profile == fitted(model).privacy_.profile


def test_replayed_neighbours_differ_as_they_may():
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    model = in_parts(DPRidge)(1.0, 1e-6, data_norm=2.0, target_bound=1.0)
    record = (np.array([1e9, np.nan, -1.0]), 5.0)
    replay_neighbours(model, ROWS[10:70], TARGETS[10:70], record, n_repeats=6).assert_passes()


# Persons ----------------------------------------------------------------------------------------

# Persons with 1 to 42 rows each, in any order; some rows are nobody's.
PEOPLE = np.repeat(np.arange(45.0), np.arange(1, 46))[:900]
PEOPLE = np.random.default_rng(1).permutation(PEOPLE)
PEOPLE[::100] = np.nan
OF_PERSONS = {
    **{name: MODELS[name] for name in ("ridge", "adassp")},
    "output": OutputPerturbationLinearRegression(1.0, 1e-6, target_bound=1.0, random_state=0),
}


@pytest.mark.parametrize("name", OF_PERSONS)
def test_persons_may_lie_in_any_parts(name):
    # Theorem R10, Theorem P14: the bits of a fit in memory, whose rows are weighed after clipping.
    model = OF_PERSONS[name]
    alone = clone(model).fit(ROWS, TARGETS, groups=PEOPLE)
    for cuts in ([], [400], [0, 1, 300, 300, 777, 900]):
        order = np.random.default_rng(0).permutation(900)
        ids = PEOPLE[order]
        found = clone(model).fit(in_chunks(cuts), groups=ids)
        assert learned(found) == learned(alone)
        assert str(found.privacy_) == str(alone.privacy_)
        (many,) = DPRidge.fit_many([clone(model)], in_chunks(cuts), groups=ids)
        assert learned(many) == learned(alone)
    assert "one person with all of their rows" in found.privacy_.neighbouring


def test_persons_in_maps_dask_files_and_tables(files, tmp_path):
    # Theorem R10, Theorem P14.
    alone = learned(clone(MODELS["ridge"]).fit(ROWS, TARGETS, groups=PEOPLE))
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    rows = PrivateRows.from_parquet(files, target="y")
    for data in ((mapped, TARGETS), (rows,)):
        assert learned(clone(MODELS["ridge"]).fit(*data, groups=PEOPLE)) == alone
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(ROWS, chunks=(331, 3))
    assert learned(clone(MODELS["ridge"]).fit(lazy, TARGETS, groups=PEOPLE)) == alone
    frame = table()
    features, wages, ids = frame.drop(columns="wage"), frame["wage"], np.arange(600) % 77
    inside = pipeline().fit(features, wages, dpridge__groups=ids)
    parts = PrivateRows.from_chunks(lambda: [(features[:9], wages[:9]), (features[9:], wages[9:])])
    found = pipeline().fit(parts, dpridge__groups=ids)
    assert learned(found[-1]) == learned(inside[-1])


@pytest.mark.parametrize("count", [2, 300])
def test_replayed_persons_differ_as_they_may(count):
    # Theorem R10, Theorem P14.
    model = in_parts(DPRidge)(1.0, 1e-6, data_norm=2.0, target_bound=1.0)
    person = np.tile([[1e9, 3.0, -1.0]], (count, 1)), np.full(count, 5.0)
    ids = np.arange(60) // 3
    replay_neighbours(
        model, ROWS[10:70], TARGETS[10:70], person, groups=ids, n_repeats=6
    ).assert_passes()


def test_rows_that_change_between_passes_are_noticed():
    passes = iter([9, 9, 12])

    def chunks():
        places = slice(next(passes))
        return [(ROWS[places], TARGETS[places])]

    with pytest.raises(ValueError, match=r"same in every pass.* part 0 of X") as error:
        clone(MODELS["ridge"]).fit(PrivateRows.from_chunks(chunks), groups=np.arange(9))
    assert "12" not in str(error.value)


def test_another_order_of_rows_gives_nobody_the_weights_of_others():
    # Theorem R10: a dask collection that is not persisted, computed again in another order.
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    shifts = iter(range(900))

    def model():
        return clone(MODELS["ridge"])

    def load():
        return np.roll(np.column_stack([ROWS, TARGETS]), next(shifts), axis=0)

    loaded = da.from_delayed(dask.delayed(load)(), (900, 4), float)
    with pytest.raises(ValueError, match=r"same order in every pass.* part 0 of X") as error:
        model().fit(loaded[:, :3], loaded[:, 3], groups=PEOPLE)
    assert "1e" not in str(error.value)
    kept = dask.persist(loaded)[0]
    model().fit(kept[:, :3], kept[:, 3], groups=PEOPLE)


def test_a_row_of_dask_keeps_its_target_whatever_the_order(whole):
    # Theorem R10: one record counts once, though each time it is loaded it has another place.
    dask = pytest.importorskip("dask")
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    orders = np.random.default_rng(0)
    frame = pd.DataFrame(np.column_stack([ROWS, TARGETS]), columns=["a", "b", "c", "y"])

    def load(part):
        return frame.iloc[orders.permutation(900)]

    lazy = dd.from_map(load, [0], meta=frame[:0])
    array = da.from_delayed(dask.delayed(lambda: load(0).to_numpy())(), (900, 4), float)
    for rows in (
        PrivateRows.from_dask(lazy, "y"),
        PrivateRows.from_dask(lazy[["a", "b", "c"]], lazy["y"]),
        PrivateRows.from_dask(array[:, :3], array[:, 3].rechunk(100)),
    ):
        model = clone(MODELS["ridge"]).fit(rows)
        assert learned(model)["coef_"] == whole["ridge"]["coef_"]


# Tables -----------------------------------------------------------------------------------------


def table(size=600):
    made = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": made.integers(18, 80, size).astype(float),
            "sector": made.choice(["farm", "mill", None], size),
            "paid": made.choice([True, False], size),
        }
    )
    frame.loc[3, "age"] = np.nan
    frame["wage"] = 10.0 + 0.5 * frame["age"].fillna(40.0)
    return frame


def pipeline():
    columns = {"age": {"range": (18, 80), "missing": True}, "sector": ["farm", "mill"]}
    schema = Schema({**columns, "paid": "boolean"}, target=(0, 60))
    return make_private_pipeline(DPRidge(1.0, 1e-6, random_state=0), schema)


def test_tables_are_encoded_within_the_parts():
    # Theorem R10, Theorem R7.
    frame = table()
    features, wages = frame.drop(columns="wage"), frame["wage"]
    model = pipeline().fit(features, wages)
    parts = [slice(0, 1), slice(1, 4), slice(4, 4), slice(4, 600)]
    rows = PrivateRows.from_chunks(
        [lambda part=part: [(features[part], wages[part])] for part in parts]
    )
    found = pipeline().fit(rows)
    assert learned(found[-1]) == learned(model[-1])
    np.testing.assert_array_equal(found.predict(features), model.predict(features))
    polars = pytest.importorskip("polars")
    other = polars.from_pandas(features)
    rows = PrivateRows.from_chunks(lambda: [(other[:9], wages[:9]), (other[9:], wages[9:])])
    assert learned(pipeline().fit(rows)[-1]) == learned(model[-1])


def test_dask_frames_are_encoded_on_the_workers():
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    dd = pytest.importorskip("dask.dataframe")
    frame = table()
    model = pipeline().fit(frame.drop(columns="wage"), frame["wage"])
    lazy = dd.from_pandas(frame, npartitions=3)
    rows = PrivateRows.from_dask(lazy.drop(columns=["wage"]), lazy["wage"])
    found = pipeline().fit(rows)
    assert learned(found[-1]) == learned(model[-1])
    found = pipeline().fit(PrivateRows.from_dask(lazy, "wage"))
    assert learned(found[-1]) == learned(model[-1])


@pytest.mark.filterwarnings("ignore:.* is fitted again")
def test_dask_frames_are_read_by_models_that_need_a_table_in_memory():
    dd = pytest.importorskip("dask.dataframe")
    frame = table().drop(columns="wage").assign(ill=["no", "yes", "no"] * 200)
    schema = Schema(
        {"age": (18, 80), "sector": ["farm", "mill"], "paid": "boolean"}, target=["no", "yes"]
    )
    rows = frame.drop(columns="ill")
    linear = make_private_pipeline(DPLogisticRegression(delta=0, solver="output"), schema)
    for model in (
        make_private_pipeline("classifier", schema, epsilon=1.0, random_state=0),
        clone(linear).set_params(dplogisticregression__random_state=0),
        DPRandomSearchCV(linear, {"dplogisticregression__C": [0.1, 1.0]}, random_state=0),
    ):
        both = [
            clone(model).fit(given.drop(columns="ill"), given["ill"]).predict_proba(rows)
            for given in (frame, dd.from_pandas(frame, npartitions=2))
        ]
        assert both[0].tobytes() == both[1].tobytes()


@pytest.mark.parametrize(
    "scaler",
    [
        *(MODELS[name] for name in ("scaler", "min and max", "pca")),
        DPPCA(2, epsilon=1.0, delta=1e-6, bounds=(-3, 3), whiten=True, random_state=0),
        BoundedScaler(bounds=(-3, 3)),
        RowNormClipper(norm=2.0),
    ],
    ids=lambda scaler: type(scaler).__name__,
)
def test_scaled_rows_are_scaled_within_the_parts(scaler):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    def model():
        return make_pipeline(clone(scaler), clone(MODELS["ridge"]))

    inside = model().fit(in_chunks([300]))
    assert learned(inside[-1]) == learned(model().fit(ROWS, TARGETS)[-1])


# Secrets ----------------------------------------------------------------------------------------


def raise_a_row(kind=OSError):
    raise kind("row of Bob: 3.25")


def check_error(model, *data, kind=OSError):
    """Check that an error neither quotes a row nor refers to one that does."""
    with pytest.raises(RuntimeError, match=f"must be readable; got {kind.__name__}") as caught:
        clone(model).fit(*data)
    assert "Bob" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("name", MODELS)
def test_errors_of_loaders_show_no_value(name):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    # A library that panics, such as polars, raises no Exception.
    panic = type("Panic", (BaseException,), {})
    for kind in (OSError, SystemExit, panic):
        failing = functools.partial(raise_a_row, kind)
        for parts in ([chunk(slice(9)), failing], [failing]):
            check_error(MODELS[name], PrivateRows.from_chunks(parts), kind=kind)


def test_errors_of_loaders_on_dask_show_no_value():
    # Theorem R10: also if a model, or a search of it, needs a table in memory.
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    X = da.from_delayed(dask.delayed(raise_a_row)(), (900, 3), float)
    in_memory = DPLogisticRegression(classes=[False, True], delta=0, solver="output")
    boosting = DPExplainableBoostingRegressor(bounds=(-3, 3), target_bound=1.0)
    for model in (MODELS["ridge"], boosting, in_memory):
        check_error(model, X, TARGETS > 0)
    for model, grid in ((MODELS["ridge"], {"alpha": [0.1, 1.0]}), (in_memory, {"C": [0.1, 1.0]})):
        check_error(DPGridSearchCV(model, grid, epsilon=1.0), X, TARGETS > 0)


def test_tasks_hold_no_seed_and_their_names_no_choice_of_rows(monkeypatch):
    # Theorem R10: a task that is sent to a worker, byte by byte.
    cloudpickle = pytest.importorskip("cloudpickle")
    seed, sent, run = 1234567891, [], Task.__call__

    def record(self, *arguments):
        sent.append(self)
        return run(self, *arguments)

    monkeypatch.setattr(Task, "__call__", record)
    scaler = clone(MODELS["scaler"]).set_params(random_state=seed)
    ridge = clone(MODELS["ridge"]).set_params(random_state=seed)
    classifier = DPLogisticRegression(classes=[False, True], solver="sgd", random_state=seed)
    boosting = DPExplainableBoostingRegressor(
        bounds=(-3, 3), target_bound=1.0, max_rounds=1, random_state=seed
    )
    for model, y in (
        (make_pipeline(scaler, ridge), TARGETS),
        (boosting, TARGETS),
        (classifier, TARGETS > 0),
        (DPGridSearchCV(ridge, {"alpha": [0.1]}, random_state=seed), TARGETS),
    ):
        sent.clear()
        assert seed.to_bytes(4, "little") in cloudpickle.dumps(model)
        model.fit(PrivateRows.from_arrays(ROWS, y, rows_per_part=400))
        assert len(sent) > 2
        for task in sent:
            assert seed.to_bytes(4, "little") not in cloudpickle.dumps(task)
            assert "True" not in repr(task) and "Task object" in repr(task)


def test_copies_for_workers_are_without_secrets():
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    ledger = PrivacyLedger(":memory:", "rows", epsilon=5.0, delta=1e-2)
    inner = clone(MODELS["ridge"]).fit(ROWS, TARGETS)
    outer = make_pipeline(DPGridSearchCV(inner, {"alpha": [0.1]}, random_state=3, ledger=ledger))
    bare = without_secrets(outer)
    search = bare.steps[0][1]
    assert search.random_state is search.ledger is search.estimator.random_state is None
    assert search.estimator.privacy_ is None and learned(search.estimator) == learned(inner)
    # The user's own objects keep theirs.
    assert (inner.random_state, outer[0].random_state, outer[0].ledger) == (0, 3, ledger)


# Files ------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    paths = []
    for number, part in enumerate([slice(0, 500), slice(500, 500), slice(500, 900)]):
        columns = {f"x{place}": ROWS[part, place] for place in range(3)}
        path = tmp_path / f"rows{number}.parquet"
        made = pa.table({**columns, "y": TARGETS[part]})
        pq.write_table(made, path, row_group_size=128)
        paths.append(path)
    return paths


def test_parquet_files_give_the_bits_of_a_fit_in_memory(files, whole):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    datasets = pytest.importorskip("pyarrow.dataset")
    for paths in (files, files[0].parent, [str(path) for path in files], datasets.dataset(files)):
        rows = PrivateRows.from_parquet(paths, target="y")
        assert (rows.n_samples, rows.n_features) == (900, 3)
        assert learned(clone(MODELS["ridge"]).fit(rows)) == whole["ridge"]
    with pytest.raises(ValueError, match="y must be given"):
        clone(MODELS["ridge"]).fit(PrivateRows.from_parquet(files))


def test_single_precision_and_tables_are_read_as_such(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    single = ROWS.astype(np.float32)
    columns = {f"x{place}": single[:, place] for place in range(3)}
    pq.write_table(pa.table({**columns, "y": TARGETS}), tmp_path / "single.parquet")
    rows = PrivateRows.from_parquet(tmp_path / "single.parquet", "y")
    assert rows.form[0].dtype == np.float32
    model = clone(MODELS["ridge"])
    assert learned(model.fit(rows)) == learned(clone(model).fit(single, TARGETS))
    frame = table()
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "table.parquet", row_group_size=99)
    found = pipeline().fit(PrivateRows.from_parquet(tmp_path / "table.parquet", "wage"))
    assert learned(found[-1]) == learned(
        pipeline().fit(frame.drop(columns="wage"), frame["wage"])[-1]
    )


def test_files_that_are_wrong_are_refused_before_anything_is_spent(files, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    with pytest.raises(FileNotFoundError, match="as file 1, which is missing"):
        PrivateRows.from_parquet([files[0], tmp_path / "none.parquet"])
    for other in ({"x0": [1.0]}, {"x0": ["a"], "x1": [1.0], "x2": [1.0], "y": [1.0]}):
        pq.write_table(pa.table(other), tmp_path / "other.parquet")
        with pytest.raises(ValueError, match=r"each file must have .*other\.parquet"):
            PrivateRows.from_parquet([files[0], tmp_path / "other.parquet"], "y")
    with pytest.raises(ValueError, match=r"target must be a column.* got 'y0'. Did you mean 'y'"):
        PrivateRows.from_parquet(files, "y0")
    with pytest.raises(ValueError, match="at least one file"):
        PrivateRows.from_parquet([])
    with pytest.raises(TypeError, match="names of files"):
        PrivateRows.from_parquet(3)
    # The type of the column is public, so that no fit or search is made of it.
    words = pa.table({"x0": ROWS[:50, 0], "y": ["a", "b"] * 25})
    pq.write_table(words, tmp_path / "words.parquet")
    of_words, of_numbers = (
        PrivateRows.from_parquet(path, "y") for path in (tmp_path / "words.parquet", files[0])
    )
    labels = DPLogisticRegression(classes=["a", "b"], random_state=0)
    for model, grid, rows in (
        (MODELS["ridge"], {"alpha": [0.1]}, of_words),
        (labels, {"C": [0.1]}, of_numbers),
    ):
        for fitted in (clone(model), DPGridSearchCV(model, grid, epsilon=1.0)):
            with pytest.raises(TypeError, match="y must hold (numbers; got <U1|the labels 'a')"):
                fitted.fit(rows)
            assert not hasattr(fitted, "privacy_")
    assert list(clone(labels).fit(of_words).classes_) == ["a", "b"]


def test_files_that_change_publish_nothing(files):
    rows = PrivateRows.from_parquet(files, "y")
    model = clone(MODELS["ridge"]).fit(rows)
    os.utime(files[2], ns=(1, 1))
    with pytest.raises(ValueError, match=r"file that was changed.* part [45] of X"):
        model.fit(rows)
    assert not hasattr(model, "privacy_")
    files[2].unlink()
    with pytest.raises(ValueError, match="file that was changed"):
        model.fit(rows)


# Exactly once -----------------------------------------------------------------------------------


def test_a_part_that_is_counted_twice_or_not_at_all_is_an_error(monkeypatch):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    one, other = Tally(3, {0: 10}), Tally(4, {1: 7})
    assert merged(one, other) == merged(other, one) == Tally(7, {0: 10, 1: 7})
    assert "twice" in str(merged(one, merged(other, one)).failure)
    rows = in_chunks([300])
    total = rows._carrier.total
    monkeypatch.setattr(rows._carrier, "total", lambda task: total(task)._replace(sizes={0: 300}))
    with pytest.raises(RuntimeError, match="without one of them"):
        clone(MODELS["ridge"]).fit(rows)


def test_retried_parts_replace_and_never_add(whole):
    # Theorem R10: the first attempt of a part fails after it gave some of its rows.
    failures = [True]

    def flaky():
        yield ROWS[:100], TARGETS[:100]
        if failures and failures.pop():
            raise OSError("row of Bob: 3.25")
        yield ROWS[100:], TARGETS[100:]

    model = clone(MODELS["ridge"])
    with pytest.raises(RuntimeError, match="part 0 of X must be readable; got OSError") as raised:
        model.fit(PrivateRows.from_chunks(flaky))
    assert "Bob" not in str(raised.value) and not hasattr(model, "privacy_")
    assert learned(model.fit(PrivateRows.from_chunks(flaky))) == whole["ridge"]


CLUSTER = """
import os, sys, tempfile
import dask, dask.array as da, numpy as np
from distributed import Client, LocalCluster
from skdptune import DPExplainableBoostingRegressor, DPLogisticRegression, DPRidge
from skdptune.base import _rows_in_parts

def load(part, path):
    # The first attempt of one part kills its worker; that of another one fails.
    if part in (1, 2) and not os.path.exists(f"{path}/{part}"):
        open(f"{path}/{part}", "w").close()
        if part == 1:
            os._exit(1)
        raise OSError
    return np.random.default_rng(part).normal(size=(500, 3))

def blocks(path):
    lazy = [dask.delayed(load)(part, path) for part in range(5)]
    return da.concatenate([da.from_delayed(each, (500, 3), float) for each in lazy])

# A worker is lost in some pass over what the workers keep.
passes = iter(range(8))

class KilledOnce(_rows_in_parts.KeptParts):
    def total(self, function):
        if next(passes, None) == 7:
            os.kill(cluster.workers[0].pid, 9)
        return super().total(function)

if __name__ == "__main__":
    _rows_in_parts.KeptParts = KilledOnce
    settings = dict(target_bound=1.0, random_state=0)
    model, target = lambda: DPRidge(1.0, 1e-6, **settings), lambda X: X[:, 0]
    if sys.argv[1] == "batches":
        settings = dict(solver="sgd", classes=[False, True], epochs=5, random_state=0)
        model, target = lambda: DPLogisticRegression(1.0, 1e-6, **settings), lambda X: X[:, 0] > 0
    if sys.argv[1] == "boosting":
        settings |= dict(bounds=(-2, 2), max_rounds=4, interactions=[(0, 1)])
        model = lambda: DPExplainableBoostingRegressor(1.0, 1e-6, **settings)
    with tempfile.TemporaryDirectory() as path:
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster), dask.annotate(retries=2):
                X = blocks(path)
                found = model().fit(X, target(X))
        rows = np.concatenate([load(part, path) for part in range(5)])
    wanted = model().fit(rows, target(rows))
    assert found.predict(rows).tobytes() == wanted.predict(rows).tobytes()
    assert sys.argv[1] != "boosting" or next(passes, None) is None
    print("same bits")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ridge", "boosting", "batches"])
def test_lost_workers_count_no_row_twice(name, tmp_path):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    pytest.importorskip("distributed")
    (tmp_path / "script.py").write_text(CLUSTER)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "script.py"), name],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(skdptune.__file__).parents[1])},
        timeout=300,
        check=False,
    )
    assert "same bits" in run.stdout, run.stderr[-2000:]


# Bad input --------------------------------------------------------------------------------------


def pair(rows, targets=TARGETS):
    return lambda: [(rows, targets[: len(rows)])]


@pytest.mark.parametrize(
    ("second", "error", "message"),
    [
        (pair(ROWS[:, :2]), ValueError, "3 columns; got 2. This is part 1 of X"),
        (pair(ROWS[0]), ValueError, "two-dimensional; got 1 dimensions. This is part 1 of X"),
        (pair(ROWS.astype(np.float32)), TypeError, "types as the first one.* part 1 of X"),
        (pair(ROWS.astype(complex)), TypeError, "types as the first one.* part 1 of X"),
        (
            lambda: [(ROWS, TARGETS[:-1])],
            ValueError,
            "each chunk must have one target per row.* part 1 of X",
        ),
        (lambda: [(ROWS, None)], ValueError, "all chunks or none must have targets.* part 1 of X"),
        (lambda: [ROWS], TypeError, "must yield pairs.* part 1 of X"),
        (lambda: None, RuntimeError, "part 1 of X must be readable; got TypeError"),
        (lambda: iter([1 / 0]), RuntimeError, "part 1 of X must be readable; got ZeroDivision"),
    ],
)
def test_parts_that_differ_publish_nothing_and_show_no_value(second, error, message):
    for name in ("ridge", "scaler"):
        model = clone(MODELS[name])
        with pytest.raises(error, match=message):
            model.fit(PrivateRows.from_chunks([chunk(slice(None)), second]))
        assert not hasattr(model, "privacy_")


def test_targets_of_text_are_no_numbers():
    model = clone(MODELS["ridge"])
    parts = [pair(ROWS), pair(ROWS, TARGETS.astype(str))]
    for chunks, place in ((parts[1:], 0), (parts, 1)):
        with pytest.raises(TypeError, match=f"y must hold numbers; got .* part {place} of X"):
            model.fit(PrivateRows.from_chunks(chunks))
    assert not hasattr(model, "privacy_")


def test_parts_with_other_names_are_refused():
    frames = [pd.DataFrame(ROWS, columns=list(names)) for names in ("abc", "abd")]
    rows = PrivateRows.from_chunks([pair(frame) for frame in frames])
    with pytest.raises(ValueError, match="other names.* part 1 of X"):
        clone(MODELS["ridge"]).fit(rows)


def test_no_parts_and_no_rows_are_refused():
    for rows in ([], [lambda: []], [lambda: [(ROWS[:0], TARGETS[:0])]]):
        with pytest.raises(ValueError, match="at least one part|at least one chunk|have records"):
            clone(MODELS["ridge"]).fit(PrivateRows.from_chunks(rows))
    # A random part of the data may be empty, and nothing says so.
    empty = PrivateRows.from_arrays(ROWS[:0], TARGETS[:0])
    for name in ("ridge", "scaler", "pca"):
        model = clone(MODELS[name]).set_params(n_public=900)
        assert learned(model.fit(empty)) == learned(fitted_to_nothing(model))


def fitted_to_nothing(model):
    return clone(model).fit(ROWS[:0], TARGETS[:0] if hasattr(model, "predict") else None)


@pytest.mark.parametrize("given", [3, "rows", ROWS, [ROWS]], ids=["int", "str", "array", "list"])
def test_what_makes_no_chunks_is_refused(given):
    with pytest.raises(TypeError, match="chunks must be a function"):
        PrivateRows.from_chunks(given)


def test_lazy_objects_that_are_no_tables_are_refused():
    with pytest.raises(TypeError, match="dataset must be a ray dataset; got DataFrame"):
        PrivateRows.from_ray(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(TypeError, match="frame must be a Spark DataFrame; got DataFrame"):
        PrivateRows.from_spark(pd.DataFrame({"a": [1.0]}))
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    for lazy in (dask.delayed(ROWS), 3):
        with pytest.raises(TypeError, match="X must be a dask array or DataFrame"):
            PrivateRows.from_dask(lazy)
    with pytest.raises(ValueError, match="two-dimensional"):
        PrivateRows.from_dask(da.from_array(TARGETS))
    with pytest.raises(ValueError, match="column of X"):
        PrivateRows.from_dask(da.from_array(ROWS), "y")
    unknown = da.from_array(ROWS, chunks=100)
    unknown = unknown[unknown[:, 0] > -1e9]
    with pytest.raises(TypeError, match="y must be a dask object"):
        PrivateRows.from_dask(unknown, TARGETS)
    with pytest.raises(ValueError, match="9 blocks of X; got 3"):
        PrivateRows.from_dask(unknown, da.from_array(TARGETS, chunks=300))


def test_other_estimators_and_groups_are_refused_before_anything_is_read_or_spent():
    def unread():
        raise AssertionError("read")

    rows = PrivateRows.from_chunks(unread)
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=1e-5)
    with ledger:
        with pytest.raises(TypeError, match=r"a table in memory.*Use solver='preconditioned'"):
            DPRandomSearchCV(DPLogisticRegression(classes=[0, 1], solver="psgd")).fit(rows, None)
        ridge = clone(MODELS["ridge"])
        labelled = PrivateRows.from_chunks(unread)
        for solver in ("auto", "sgd"):
            with pytest.raises(TypeError, match="groups must be None with PrivateRows.*DPRidge"):
                classifier = DPLogisticRegression(classes=[0, 1], solver=solver)
                classifier.fit(labelled, groups=np.arange(900))
        with pytest.raises(TypeError, match="posterior sample needs one row per person"):
            clone(MODELS["ptr"]).fit(rows, groups=np.arange(900))
        with pytest.raises(TypeError, match="or readable again, if groups are given"):
            ridge.fit(iter([(ROWS, TARGETS)]), groups=np.arange(900))
        known = PrivateRows.from_arrays(ROWS, TARGETS)
        for model in (ridge, clone(ridge).set_params(n_public=50)):
            with pytest.raises(ValueError, match="groups must be as long as X"):
                model.fit(known, groups=np.arange(899))
        with pytest.raises(ValueError, match="y must be None"):
            ridge.fit(rows, TARGETS)
        with pytest.raises(ValueError, match="n_public must be given"):
            ridge.fit(rows)
        assert not ledger.history()
        ridge.fit(PrivateRows.from_arrays(ROWS, TARGETS))
        assert len(ledger.history()) == 1


def test_an_iterator_serves_for_one_sum():
    model = clone(MODELS["ridge"])
    assert model.fit(iter([(ROWS, TARGETS)])).n_iter_ == 0
    assert model.fit(PrivateRows.from_chunks(lambda: [(ROWS, TARGETS)])).n_iter_ == 5
    with pytest.raises(ValueError, match="X must be readable again"):
        clone(MODELS["scaler"]).fit(iter([(ROWS, None)]))


def test_a_part_that_grows_between_passes_is_an_error():
    sizes = iter(range(100, 200))
    rows = PrivateRows.from_chunks(lambda: [chunk(slice(next(sizes)))().__next__()])
    with pytest.raises(ValueError, match="same in every pass.* part 0 of X"):
        clone(MODELS["ridge"]).fit(rows)
    rows.counted()
    with pytest.raises(ValueError, match="same in every pass.* part 0 of X"):
        rows.kept(lambda X, y: len(X)).total(int)


def test_predictions_need_a_table_in_memory():
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, size=(40, 2))
    parts = PrivateRows.from_arrays(rows, rows[:, 0])
    model = DPRidge(1.0, data_norm=1.5, target_bound=1.0, random_state=0).fit(parts)
    search = DPGridSearchCV(model, {"alpha": [0.1]}, random_state=0).fit(parts)
    for use in (model.predict, search.predict, search.score):
        with pytest.raises(TypeError, match="such as a table in memory; got PrivateRows"):
            use(parts)
    with pytest.raises(ValueError, match="requires y to be passed"):
        search.score(rows)
    with pytest.raises(TypeError, match="Put it around the last step"):
        PrivateScoreCurves(make_pipeline(BoundedScaler((-1, 1)), DPLogisticRegression())).fit(
            parts
        )
