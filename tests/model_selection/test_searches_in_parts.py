"""Searches of rows in parts: the split, the scores and the model of a table (Theorem R11)."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdptune
from skdptune import (
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomSearchCV,
    DPRidge,
    DPStandardScaler,
    PrivacyLedger,
    PrivateRows,
    Schema,
    make_private_pipeline,
)
from skdptune.accounting import BudgetExceededError
from skdptune.model_selection import AdaptiveTrials, FullTable, HoldOut, RandomRuns
from tests.parts import in_chunks

N = 600
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3)) * rng.choice([0.1, 1.0, 30.0], size=(N, 1))
Y = np.clip(X @ [0.3, -0.2, 0.1] + 0.1 * rng.normal(size=N), -2, 2)
X[5, 1], Y[9] = np.nan, np.inf
TABLE = pd.DataFrame(
    {"age": rng.integers(18, 80, N), "sector": rng.choice(["farm", "office", None], N)}
)
PAID = np.where(TABLE.age > 40, 0.7, 0.2)
SCHEMA = Schema({"age": (18, 80), "sector": ["farm", "office"]}, target=(0, 1))
pytestmark = pytest.mark.filterwarnings("ignore:.* is fitted again")
TOTAL = {"epsilon": 3.0, "delta": 1e-6, "random_state": 0}
RIDGE = DPRidge(target_bound=2.0)

SEARCHES = {
    "grid": DPGridSearchCV(RIDGE, {"data_norm": [1.0, 3.0]}, strategy="table", **TOTAL),
    "folds": DPGridSearchCV(RIDGE, {"alpha": [0.1, 10.0]}, cv=3, strategy="table", **TOTAL),
    "random": DPRandomSearchCV(
        RIDGE, {"data_norm": [0.5, 1.0, 3.0]}, strategy=RandomRuns(), **TOTAL
    ),
    "secret size": DPGridSearchCV(
        RIDGE, {"alpha": [0.1, 10.0]}, n_public=500, strategy="table", **TOTAL
    ),
    "scaled": DPGridSearchCV(
        make_pipeline(DPStandardScaler(bounds=(-3, 3)), RIDGE),
        {"dpridge__alpha": [0.1, 10.0]},
        strategy="table",
        **TOTAL,
    ),
    "batches": DPGridSearchCV(
        DPLogisticRegression(classes=[False, True], solver="sgd", batch_size=40, epochs=3),
        {"learning_rate": [0.5, 2.0]},
        strategy="table",
        **TOTAL,
    ),
    "rule": DPGridSearchCV(
        RIDGE,
        {"data_norm": [1.0, 3.0]},
        cv=HoldOut(1, ">", 0.0, share=0.5),
        strategy="table",
        **TOTAL,
    ),
    "rule of words": DPRandomSearchCV(
        make_private_pipeline(DPRidge(), SCHEMA),
        {"dpridge__alpha": [0.1, 10.0]},
        cv=HoldOut("sector", "==", "farm", share=0.4),
        strategy=RandomRuns(),
        **TOTAL,
    ),
    "table": DPGridSearchCV(
        make_private_pipeline(DPRidge(), SCHEMA),
        {"dpridge__alpha": [0.1, 10.0]},
        strategy="table",
        **TOTAL,
    ),
}
if find_spec("optuna") is not None:
    SEARCHES["adaptive"] = DPAdaptiveSearchCV(
        RIDGE, {"data_norm": (0.5, 3.0)}, n_trials=3, strategy=AdaptiveTrials(), **TOTAL
    )


def data_of(name):
    if name == "scaled":
        # Each step replaces improper records for itself.
        return np.nan_to_num(X), np.nan_to_num(Y, posinf=0.0)
    if name == "batches":
        return X, Y > 0
    return (TABLE, PAID) if name in ("table", "rule of words") else (X, Y)


def learned(search):
    """Return what a search published of its scores and its model, with all digits."""
    best = search.best_estimator_
    last = best[-1] if hasattr(best, "steps") else best
    scores = np.ma.filled(search.cv_results_["mean_test_score"], np.nan)
    return (
        search.best_params_,
        scores.round(12).tobytes(),
        last.coef_.tobytes(),
        np.asarray(last.intercept_).tobytes(),
        str(search.privacy_),
    )


@pytest.fixture(scope="module")
def whole():
    return {name: learned(clone(made).fit(*data_of(name))) for name, made in SEARCHES.items()}


@pytest.mark.parametrize("name", SEARCHES)
@settings(max_examples=3)
@given(cuts=st.lists(st.integers(0, N), max_size=4))
def test_any_parts_give_the_search_of_a_table(name, whole, cuts):
    # Theorem R11: a search of rows in parts divides and scores them as those of a table.
    found = clone(SEARCHES[name]).fit(in_chunks(*data_of(name), cuts))
    assert learned(found) == whole[name]


def test_dask_gives_the_search_of_a_table(whole):
    # Theorem R11: a search of rows in parts divides and scores them as those of a table.
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(170, 2)), da.from_array(Y, chunks=200)
    assert learned(clone(SEARCHES["grid"]).fit(*lazy)) == whole["grid"]
    assert learned(clone(SEARCHES["grid"]).fit(PrivateRows.from_dask(*lazy))) == whole["grid"]


def test_a_classifier_is_nearly_that_of_a_table():
    # Theorem R11: a search of rows in parts divides and scores them as those of a table.
    made = DPGridSearchCV(
        DPLogisticRegression(classes=[False, True]),
        {"max_grad_norm": [0.1, 0.3]},
        strategy="table",
        **TOTAL,
    )
    rows, labels = np.nan_to_num(X), Y > 0
    memory = clone(made).fit(rows, labels)
    one, other = (
        clone(made).fit(in_chunks(rows, labels, cuts)) for cuts in ([], [1, 80, 80, 555])
    )
    assert learned(one) == learned(other)
    np.testing.assert_allclose(one.best_estimator_.coef_, memory.best_estimator_.coef_, rtol=1e-3)
    assert one.best_params_ == memory.best_params_


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, N), max_size=4), seed=st.integers(0, 2**32 - 1))
def test_each_row_is_in_one_part_of_a_split(cuts, seed):
    # Theorem R11: choices of rows, and choices of these, hold the rows of the same numbers.
    numbers = np.arange(N)
    rows = in_chunks(numbers[:, None], numbers, cuts)
    drawn = np.random.default_rng(seed).random(N)
    sides = [np.flatnonzero(drawn < 0.3), np.flatnonzero(drawn >= 0.3)]
    found = []
    for side in sides:
        half = rows.take(side)
        picked = np.random.default_rng(seed).permutation(side.size)[: side.size // 2]
        assert half.n_samples == side.size
        assert half.take(picked).total(kept_numbers) == tuple(side[np.sort(picked)])
        found += half.total(kept_numbers)
    assert sorted(found) == numbers.tolist()


def kept_numbers(rows, targets):
    assert (rows[:, 0] == targets).all()
    return tuple(rows[:, 0].tolist())


def test_rows_in_another_order_end_a_search():
    # Theorem R11: else a row could be fitted to in one pass, and scored in another one.
    passes = iter(range(1000))

    def chunks():
        order = np.arange(N) if next(passes) < 3 else np.arange(N)[::-1]
        yield X[order], Y[order]

    search = clone(SEARCHES["grid"])
    with pytest.raises(ValueError, match=r"same order in every pass.* part 0 of X"):
        search.fit(PrivateRows.from_chunks(chunks))
    assert not hasattr(search, "privacy_")


@pytest.mark.parametrize("cell", [10**5000, (), object], ids=["long", "deep", "address"])
def test_no_cell_ends_a_search(cell):
    # Theorem R11: neither if Python cannot write it, nor if its words differ by the pass.
    if cell == ():
        for _ in range(10**4):
            cell = (cell,)

    def chunks():
        rows, targets = X.astype(object), Y.astype(object)
        rows[7, 0] = targets[8] = cell() if callable(cell) else cell
        yield rows, targets

    found = clone(SEARCHES["grid"]).fit(PrivateRows.from_chunks(chunks))
    rows, targets = X.copy(), Y.copy()
    rows[7, 0] = targets[8] = np.nan
    assert learned(found) == learned(clone(SEARCHES["grid"]).fit(rows, targets))


def test_a_part_that_fails_ends_a_search_and_is_no_bad_candidate():
    # Theorem R11: a search of rows in parts divides and scores them as those of a table.
    passes = iter(range(1000))

    def chunks():
        if next(passes) > 4:
            raise OSError("row 17 holds 42")
        yield X, Y

    search = clone(SEARCHES["grid"])
    with pytest.raises(RuntimeError, match="part 0 of X must be readable; got OSError") as error:
        search.fit(PrivateRows.from_chunks(chunks))
    assert "42" not in str(error.value)
    assert not hasattr(search, "privacy_")


def test_a_rule_reads_no_row_before_the_ledger_has_the_cost():
    # Theorem R11, Theorem T9: what a cell holds ends no search.
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=1e-5)
    seen = []

    def chunks():
        seen.append(len(ledger.history()))
        table = TABLE.copy()
        table["age"] = np.where(table.index == 3, "unknown", table.age.astype(object))
        yield table[:4], PAID[:4]
        yield TABLE[4:], PAID[4:]

    made = clone(SEARCHES["table"]).set_params(
        cv=HoldOut("age", ">", 40, share=0.6), n_public=500, ledger=ledger
    )
    found = made.fit(PrivateRows.from_chunks(chunks))
    # Names and types are read before.
    assert set(seen[1:]) == {1} and len(seen) > 3
    assert found.privacy_.epsilon_spent <= 3.0


@pytest.mark.skipif(find_spec("optuna") is None, reason="needs optuna")
def test_a_session_reads_no_row_before_the_ledger_has_the_cost():
    # Theorem R11, Theorem T9.
    ledger = PrivacyLedger(":memory:", "patients", epsilon=3.5, delta=1e-5)
    seen = []

    def chunks():
        yield X[:4], Y[:4]
        seen.append(len(ledger.history()))
        yield X[4:], Y[4:]

    rule = HoldOut(1, ">", 0.0, share=0.5)
    made = clone(SEARCHES["adaptive"]).set_params(cv=rule, n_public=500, ledger=ledger)
    made.start(PrivateRows.from_chunks(chunks))
    assert set(seen) == {1}
    with pytest.raises(BudgetExceededError):
        made.start(PrivateRows.from_chunks(chunks))
    assert len(seen) == 2


def test_what_cannot_be_searched_is_refused_before_anything_is_read_or_spent():
    # Theorem R11: a search of rows in parts divides and scores them as those of a table.
    def unread():
        yield X[:0], Y[:0]
        raise AssertionError("read")

    rows = PrivateRows.from_chunks(unread)
    grid = {"alpha": [0.1, 10.0]}

    def made(estimator=RIDGE, space=grid, **more):
        more = {"n_public": 500, "strategy": "table", **more}
        return DPGridSearchCV(estimator, space, epsilon=1.0, delta=1e-6, **more)

    scaled = make_pipeline(StandardScaler(), RIDGE)
    labelled = DPLogisticRegression(classes=[0, 1])
    columns = {"age": (18, 80), "sector": ["farm", "office"]}
    personal = make_private_pipeline(DPRidge(), Schema(columns, target=(0, 1), person="patient"))
    refused = [
        (made(n_public=None), {}, "n_public must be given"),
        (made(), {"y": Y}, "y must be None"),
        (made(), {"groups": np.arange(N)}, "groups must be None"),
        (made(), {"sample_weight": np.ones(N)}, r"takes only X, X_val and y_val"),
        (made(strategy="noisy_max"), {}, "strategy='table'"),
        (made(strategy=FullTable(storage="runs")), {}, "storage of runs"),
        (made(cv=HoldOut(7, ">", 1.0, share=0.2)), {}, "cv must name a column of X"),
        # Theorem T9: one record may decide the types of its chunk.
        (made(cv=HoldOut(lambda row: row[:, 0] > 0.0, share=0.5)), {}, "cv must compare a column"),
        (made(DPLogisticRegression(), {"C": [1.0]}), {}, "Declare the labels"),
        (made(labelled, {"solver": ["sgd", "output"]}), {}, "preconditioned"),
        (made(scaled, {"dpridge__alpha": [1.0]}), {}, "table in memory"),
        (made(personal, {"dpridge__alpha": [1.0]}), {}, "rows of a person in one place"),
    ]
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=1e-5)
    with ledger:
        for search, arguments, message in refused:
            with pytest.raises((TypeError, ValueError), match=message):
                search.fit(rows, **arguments)
        once = PrivateRows.from_chunks(iter([(X, Y)]))
        with pytest.raises(ValueError, match="readable again"):
            made().fit(once)
        assert not ledger.history()
        made(n_public=None).fit(PrivateRows.from_arrays(X, Y))
        assert len(ledger.history()) == 1


CLUSTER = """
import os, sys, tempfile
import dask, dask.array as da, numpy as np
from distributed import Client, LocalCluster
from skdptune import DPGridSearchCV, DPRidge

def load(part, path):
    # The third reading of one part kills its worker.
    if part == 1:
        count = len(os.listdir(path))
        if count < 3:
            open(f"{path}/{count}", "w").close()
        if count == 2:
            os._exit(1)
    return np.random.default_rng(part).normal(size=(300, 3))

if __name__ == "__main__":
    made = lambda: DPGridSearchCV(
        DPRidge(target_bound=1.0), {"data_norm": [1.0, 3.0]}, epsilon=3.0, delta=1e-6,
        random_state=0,
    )
    with tempfile.TemporaryDirectory() as path:
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster), dask.annotate(retries=2):
                lazy = [dask.delayed(load)(part, path) for part in range(4)]
                X = da.concatenate([da.from_delayed(each, (300, 3), float) for each in lazy])
                found = made().fit(X, X[:, 0])
        assert len(os.listdir(path)) == 3
        rows = np.concatenate([load(part, path) for part in range(4)])
    wanted = made().fit(rows, rows[:, 0])
    assert found.best_estimator_.coef_.tobytes() == wanted.best_estimator_.coef_.tobytes()
    scores = [each.cv_results_["mean_test_score"].round(12).tolist() for each in (found, wanted)]
    assert scores[0] == scores[1]
    print("same search")
"""


@pytest.mark.slow
def test_a_lost_worker_changes_no_search(tmp_path):
    # Theorem R11: a search of rows in parts divides and scores them as those of a table.
    pytest.importorskip("distributed")
    (tmp_path / "script.py").write_text(CLUSTER)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "script.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(skdptune.__file__).parents[1])},
        timeout=300,
        check=False,
    )
    assert "same search" in run.stdout, run.stderr[-2000:]
