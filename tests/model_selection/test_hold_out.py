"""Validation by a public rule of each record: places, costs, texts, and refused arguments."""

from __future__ import annotations

import datetime
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import skdptune
from skdptune import config_context
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import gaussian_profile
from skdptune.model_selection import (
    AdaptiveTrials,
    Composition,
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    HoldOut,
    NoisyMaximum,
    ParetoFront,
    RandomRuns,
)
from skdptune.preprocessing import make_private_pipeline
from skdptune.testing import replay_neighbours
from tests.model_selection.learners import Scripted, table
from tests.testing.public_estimators import HAS_OPTUNA, HAS_PARETO

DELTA = 1e-6
SINCE = HoldOut("date", ">=", "2024-01-01", share=0.2)


def visits(n_samples: int = 300, seed: int = 0) -> pd.DataFrame:
    """Return a table with dates, some of which are missing, strings, numbers and booleans."""
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 900, n_samples), unit="D")
    found = pd.DataFrame(
        {
            "date": pd.Timestamp("2022-01-01") + days,
            "site": rng.choice(["A", "B", "C", None], n_samples),
            "age": rng.normal(50.0, 20.0, n_samples),
            "flag": rng.choice([True, False], n_samples),
        }
    )
    found.loc[rng.random(n_samples) < 0.1, "date"] = pd.NaT
    found.loc[rng.random(n_samples) < 0.1, "age"] = np.nan
    return found


def newest(rows: Any) -> Any:
    return rows["date"] >= "2024-01-01"


# Which records are held out ----------------------------------------------------------------------


def test_in_any_container_the_same_records_are_held_out() -> None:
    frame = visits()
    rows = frame.to_numpy(dtype=object)
    words = frame.assign(date=frame["date"].dt.strftime("%Y-%m-%d"))
    at_place = HoldOut(0, ">=", datetime.date(2024, 1, 1), share=0.2)
    after = HoldOut("date", ">", "2023-12-31T23:59:59.999999", share=0.2)
    by_function = HoldOut(newest, share=0.2)
    in_column = HoldOut(1, ">=", np.datetime64("2024-01-01"), share=0.2)
    for rule, X in (
        *((SINCE, frame), (SINCE, words), (SINCE, frame.convert_dtypes())),
        (SINCE, frame.assign(date=frame["date"].dt.tz_localize("UTC"))),
        (SINCE, frame[["date", "age"]].to_records(index=False)),
        *((at_place, frame), (at_place, rows), (at_place, rows.tolist())),
        (in_column, np.stack([frame["date"].to_numpy()] * 2, axis=1)),
        *((after, frame), (by_function, frame), (by_function, words)),
    ):
        np.testing.assert_array_equal(rule.held_out(X), frame["date"] >= "2024-01-01")


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries(library: str) -> None:
    pytest.importorskip("pyarrow")
    frame = visits()
    wanted = frame["date"] >= "2024-01-01"
    if library == "polars":
        polars = pytest.importorskip("polars")
        X = polars.from_pandas(frame)
        by_function = HoldOut(
            lambda rows: rows["date"] >= datetime.datetime(2024, 1, 1), share=0.2
        )
        np.testing.assert_array_equal(by_function.held_out(X), wanted)
    else:
        X = frame.convert_dtypes(dtype_backend="pyarrow")
    np.testing.assert_array_equal(SINCE.held_out(X), wanted)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        (("site", "==", "B"), lambda rows: rows["site"] == "B"),
        (("site", "in", ["B", "C"]), lambda rows: rows["site"].isin(["B", "C"])),
        (("flag", "==", True), lambda rows: rows["flag"]),
        (("age", "<", 30), lambda rows: rows["age"] < 30),
        (("age", "<=", 30), lambda rows: rows["age"] <= 30),
        (("age", ">", 30.0), lambda rows: rows["age"] > 30),
        (("date", "<", pd.Timestamp("2022-06-01")), lambda rows: rows["date"] < "2022-06-01"),
        (("date", "==", "2022-02-01"), lambda rows: rows["date"] == "2022-02-01"),
        (("date", "in", ["2022-02-01", "x"]), lambda rows: rows["date"] == "2022-02-01"),
    ],
)
def test_comparisons_are_those_of_pandas(rule: Any, wanted: Any) -> None:
    X = visits(2000)
    found = HoldOut(*rule, share=0.2).held_out(X)
    np.testing.assert_array_equal(found, wanted(X))
    assert 0 < found.sum() < 2000


ODD = [
    None,
    float("nan"),
    pd.NaT,
    "no date",
    "",
    b"\xff",
    [1],
    {},
    10**400,
    np.timedelta64(1, "D"),
]


@pytest.mark.parametrize("rule", [SINCE, HoldOut(newest, share=0.2)], ids=["column", "function"])
def test_an_odd_cell_is_not_held_out_and_moves_no_other(rule: HoldOut) -> None:
    """Theorem T9."""
    dates = ["2023-01-01", "2024-01-01", "2025-01-01"]
    for odd in ODD:
        column = np.empty(4, dtype=object)
        column[:] = [*dates[:2], None, dates[2]]
        column[2] = odd
        found = rule.held_out(pd.DataFrame({"date": column}))
        if not isinstance(odd, str | bytes):
            # As a string, "no date" comes after all dates: a function may compare in any way.
            assert not found[2]
        np.testing.assert_array_equal(found[[0, 1, 3]], [False, True, True])


def test_a_place_does_not_depend_on_other_records() -> None:
    """Theorem T9."""
    X = visits(60).astype({"date": object})
    X.loc[7, "date"] = "2024-05-05"
    X.loc[8, "date"] = "nothing"
    for rule in (SINCE, HoldOut("site", "in", ["A", "B"], share=0.5), HoldOut(newest, share=0.2)):
        whole = rule.held_out(X)
        for left_out in (0, 7, 8, 59):
            others = X.drop(index=left_out)
            np.testing.assert_array_equal(rule.held_out(others), np.delete(whole, left_out))


def test_a_function_sees_one_record_at_a_time_and_no_index() -> None:
    """Theorem T9."""
    seen = []

    def rule(rows: pd.DataFrame) -> Any:
        seen.append((len(rows), list(rows.index)))
        if (rows["age"] > 60.0).any():
            raise ValueError("too old")
        found = rows["flag"].to_numpy()
        rows["flag"] = True
        return found

    X = visits(40)
    kept = X.copy()
    found = HoldOut(rule, share=0.5).held_out(X)
    np.testing.assert_array_equal(found, X["flag"] & ~(X["age"] > 60.0))
    assert set(map(str, seen[-40:])) == {"(1, [0])"}
    pd.testing.assert_frame_equal(X, kept)


# Searches ----------------------------------------------------------------------------------------

# Which rows fits and predictions were given, by their last column.
SEEN: dict[str, list[np.ndarray]] = {"fit": [], "predict": []}


class Watched(ClassifierMixin, BaseEstimator):
    """A private sum that notes the rows that it is given."""

    cost_parameters = frozenset({"noise"})

    def __init__(self, noise: float = 5.0, C: float = 1.0, n_public: Any = None) -> None:
        self.noise = noise
        self.C = C
        self.n_public = n_public

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
        return gaussian_profile(1.0, self.noise)

    def fit(self, X: Any, y: Any) -> Watched:
        SEEN["fit"].append(X[:, -1].copy())
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        SEEN["predict"].append(X[:, -1].copy())
        return np.zeros(len(X), dtype=int)


def searches(estimator: Any, values: Any, **more: Any) -> dict[str, Any]:
    """Return a search of each kind over `C`."""
    space = {"C": values}
    made = {
        "random": DPRandomSearchCV(estimator, space, n_iter=2, **more),
        "random, a part": DPRandomSearchCV(
            estimator, space, n_iter=2, strategy=RandomRuns(tuning_fraction=0.2), **more
        ),
        "table": DPGridSearchCV(estimator, space, strategy="table", **more),
        "composition": DPGridSearchCV(estimator, space, strategy=Composition(), **more),
        "noisy maximum": DPGridSearchCV(
            estimator, space, strategy=NoisyMaximum(n_partitions=2), **more
        ),
        "doubling": DoublingThresholdSearchCV(estimator, space, **more),
    }
    if HAS_OPTUNA:
        made["adaptive"] = DPAdaptiveSearchCV(
            estimator, space, n_trials=2, strategy=AdaptiveTrials(sampler="random"), **more
        )
    return made


NAMES = list(searches(Watched(), [1.0]))
RECORDS = np.column_stack([np.arange(200) % 3, np.arange(200.0), np.arange(200.0)])
LATE = HoldOut(1, ">=", 150, share=0.25)


@pytest.mark.parametrize("name", NAMES)
def test_candidates_are_fitted_and_scored_on_the_parts_of_the_rule(name: str) -> None:
    search = searches(Watched(), [1.0, 2.0], cv=LATE, delta=DELTA, random_state=0)[name]
    with config_context(ledger=False):
        search.set_params(refit=False)
        for seen in SEEN.values():
            seen.clear()
        search.fit(RECORDS, np.arange(200) % 2)
    # Made-up data have other rows.
    trained, scored = (
        [rows for rows in SEEN[use] if rows.size and np.isin(rows, RECORDS[:, 2]).all()]
        for use in ("fit", "predict")
    )
    assert trained
    assert max(map(np.max, trained)) < 150
    of_one_record = [rows for rows in scored if rows.size == 1]
    whole = [rows for rows in scored if rows.size > 1]
    assert whole
    assert min(map(np.min, whole)) == 150
    # A fit on a partition is first tried on a single record.
    assert not of_one_record or name in ("noisy maximum", "doubling")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("table", "random, a part") else pytest.mark.slow)
        for name in NAMES
    ],
)
def test_all_searches_take_a_rule_of_a_messy_table(name: str) -> None:
    X = visits(400)
    y = np.where(X["age"].fillna(50.0) > 50.0, "old", "young")
    schema = {"date": "drop", "site": ["A", "B", "C"], "age": (0, 100), "flag": "boolean"}
    estimator = make_private_pipeline(DPLogisticRegression(classes=["old", "young"]), schema)
    search = searches(estimator, [0.1], cv=SINCE, epsilon=8.0, delta=DELTA, random_state=0)[name]
    space = {"dplogisticregression__C": [0.01, 1.0]}
    given = search.get_params(deep=False)
    (kind,) = (key for key in given if key.startswith("param_") and given[key] is not None)
    search.set_params(**{kind: space})
    plan = search.plan(*X.shape, compare=False)
    words = "Validation: the records with date >= '2024-01-01', expected to be 0.2 of all."
    assert words in str(plan)
    with config_context(ledger=False):
        search.fit(X, y)
    assert search.privacy_.epsilon_spent == plan.epsilon <= 8.0
    assert any("rule that holds records out" in each for each in search.privacy_.assumptions)
    assert search.score(X, y) > 0.7


@pytest.mark.skipif(not HAS_PARETO, reason="needs the extra pareto")
def test_a_released_front_by_a_rule() -> None:
    """Theorem T9."""
    search = DParetoSearchCV(
        Watched(),
        {"noise": [5.0, 10.0]},
        n_iter=0,
        release=2.0,
        cv=LATE,
        delta=DELTA,
        strategy=ParetoFront(n_initial=2),
        random_state=0,
    )
    assert "column 1 >= 150" in str(search.plan(200, 3))
    for seen in SEEN.values():
        seen.clear()
    with config_context(ledger=False):
        search.fit(RECORDS, np.arange(200) % 2)
    trained = [rows for rows in SEEN["fit"] if np.isin(rows, RECORDS[:, 2]).all() and rows.size]
    assert trained
    assert max(map(np.max, trained)) < 150
    release = search._make_plan(200, 3).release
    by_hand = release.trained | release.scores
    assert release.total.epsilon(DELTA) == by_hand.epsilon(DELTA)


# Sizes that nobody may know ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "edge"),
    [
        # All are held out, or none.
        (DPLogisticRegression(classes=[0, 1]), -1.0),
        (DPLogisticRegression(classes=[0, 1], solver="sgd", epochs=2), -1.0),
        (make_pipeline(Normalizer(), DPLogisticRegression(classes=[0, 1])), 1e6),
    ],
    ids=["default", "sgd", "pipeline"],
)
def test_a_part_without_records_does_not_fail(estimator: Any, edge: float) -> None:
    """Theorem T9."""
    name = "C" if not hasattr(estimator, "steps") else "dplogisticregression__C"
    search = DPGridSearchCV(
        estimator,
        {name: [0.1, 1.0]},
        epsilon=8.0,
        delta=DELTA,
        cv=HoldOut(1, ">=", edge, share=0.3),
        strategy=Composition(diagnostics=True),
        random_state=0,
    )
    with config_context(ledger=False):
        search.fit(RECORDS, np.arange(200) % 2)
    assert search.diagnostics_["errors"] == [None, None]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(RECORDS).shape == (200,)


def test_estimators_that_fail_without_records_are_refused_before_the_data() -> None:
    """Theorem T9."""
    X, y = table(200)
    pipeline = make_pipeline(Normalizer(), Scripted())
    # One of several estimators is enough.
    several = {"scripted": [DPLogisticRegression(classes=[0, 1]), Scripted()]}
    for estimator, space in [
        (Scripted(), {"quality": [0.5, 0.9]}),
        (pipeline, {"scripted__quality": [0.5, 0.9]}),
        (pipeline, several),
    ]:
        search = DPRandomSearchCV(estimator, space, epsilon=1.0, delta=DELTA)
        search.set_params(cv=HoldOut(2, ">=", 0.8, share=0.2), strategy=RandomRuns())
        with (
            skdptune.PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-5) as ledger,
            pytest.raises(ValueError, match="a fit of none must not fail; it raised ValueError"),
        ):
            search.fit(X, y)
        assert ledger.spent() == 0.0


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([0.9, 0.0, -0.3], id="scored"),
        pytest.param([-0.9, 0.0, 0.3], id="trained", marks=pytest.mark.slow),
    ],
)
def test_neighbours_on_either_side_pass(value: list[float]) -> None:
    """Theorem T9."""
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1.0, 1.0, size=(100, 3)), np.arange(100) % 2
    search = DPGridSearchCV(
        DPLogisticRegression(solver="output", classes=[0, 1], data_norm=2.0),
        {"C": [0.01, 0.1]},
        epsilon=1.0,
        delta=DELTA,
        cv=HoldOut(0, ">=", 0.6, share=0.2),
        strategy=Composition(),
        n_public=100,
    )
    result = replay_neighbours(search, X, y, (value, 1), n_repeats=6)
    assert result.findings == [], str(result)


# What users meet ---------------------------------------------------------------------------------


def test_copies_are_equal_and_pickles_as_well() -> None:
    search = DPRandomSearchCV(DPLogisticRegression(), {"C": [0.1]}, epsilon=1.0, cv=SINCE)
    assert clone(search).cv == SINCE == pickle.loads(pickle.dumps(search)).cv
    by_function = clone(search).set_params(cv=HoldOut(newest, share=0.2))
    assert clone(by_function).cv.column is newest
    assert pickle.loads(pickle.dumps(by_function)).cv.column is newest
    words = str(by_function.plan(10_000, 4, compare=False))
    assert "Validation: the records of which newest is True, expected to be 0.2 of all." in words
    assert by_function.privacy_profile(1000, 4) == search.privacy_profile(1000, 4)
    assert skdptune.check(search.set_params(random_state=None)).issues == ()


def test_bad_rules_are_refused() -> None:
    for arguments, words in (
        (("date", ">=", "x"), "value must be a number, a date .* got 'x' with '>='"),
        (("date", ">=", None), "value must be a number, a date"),
        (("date", ">=", float("nan")), "value must be a number, a date"),
        (("date", ">=", [1, 2]), "got list of length 2 with '>='"),
        (("date", "==", object()), "got object with '=='"),
        (("date", "in", "B"), "with 'in' a list; got 'B'"),
        (("date", "in", []), "got list of length 0"),
        (("date", "=>", 2), "comparison must be one of"),
        (("date",), "comparison must be one of"),
        ((newest, ">="), "comparison must be None with a function"),
        ((1.5, ">=", 2), "column must be the name or the position of a column"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            HoldOut(*arguments, share=0.2)
    for share in (1.0, True):
        with pytest.raises((TypeError, ValueError), match=r"share must be a number in \(0, 1\)"):
            HoldOut("age", ">=", 2, share=share)


MIXED = "True or False for each row, independently of other rows; on 18 made-up rows it did not"


def last_fifth(rows: Any) -> Any:
    return rows["date"] >= rows["date"].quantile(0.8)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (("dat", ">=", 2), "cv must name a column of X; got 'dat', and X has 'date', 'site'"),
        ((-1, ">=", 2), "cv must name a column of X; got -1"),
        ((4, ">=", 2), "cv must name a column of X; got 4, and X has 'date', 'site'"),
        (
            ("date", ">=", 2024),
            "column 'date' with a value of its type; got 2024, and .* holds dates",
        ),
        (("age", ">=", "2024-01-01"), "column 'age' .* and the column holds numbers"),
        ((last_fifth,), MIXED),
        ((lambda rows: rows["age"].rank() > 3,), MIXED),
        ((lambda rows: rows.index % 5 == 0,), MIXED),
        ((lambda rows: np.arange(len(rows)) % 5 == 0,), MIXED),
        ((lambda rows: rows["dat"] > 3,), "on made-up rows it raised KeyError: 'dat'"),
        ((lambda rows: [True, False],), MIXED),
        ((lambda rows: rows["age"],), MIXED),
    ],
)
def test_rules_that_do_not_suit_the_table_are_refused_before_it_is_read(
    rule: Any, words: str
) -> None:
    X = visits(100)
    search = DPRandomSearchCV(
        DPLogisticRegression(), {"C": [0.1]}, epsilon=1.0, cv=HoldOut(*rule, share=0.2)
    )
    estimator = make_private_pipeline(
        DPLogisticRegression(classes=[0, 1]),
        {"date": "drop", "site": ["A", "B", "C"], "age": (0, 100), "flag": "boolean"},
    )
    search.set_params(estimator=estimator, param_distributions={"tableencoder__n_knots": [3, 5]})
    with (
        skdptune.PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-5) as ledger,
        pytest.raises((TypeError, ValueError), match=words),
    ):
        search.fit(X, np.arange(100) % 2)
    assert ledger.spent() == 0.0
