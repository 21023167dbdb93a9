"""Searches by persons: parts, scores, fits, reports, and refused arguments (Theorem P14)."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdptune import PrivateConformalRegressor, config_context
from skdptune.accounting import Geometric
from skdptune.base._shared import Persons, persons_of
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.ledger._shared import PERSON
from skdptune.linear_model import DPLogisticRegression, DPRidge, PTRLinearRegression
from skdptune.metrics import make_bounded_scorer
from skdptune.model_selection import (
    AdaptiveTrials,
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    FullTable,
    HoldOut,
    NoisyMaximum,
    ParetoFront,
    RandomRuns,
    ThresholdRounds,
)
from skdptune.model_selection._running import Data
from skdptune.model_selection._running._engine import values_of
from skdptune.model_selection._table_model import RULES
from skdptune.preprocessing import DPStandardScaler, Schema, make_private_pipeline
from skdptune.testing import replay_neighbours
from tests.model_selection.learners import PersonCut, PersonSum
from tests.model_selection.test_audit import MIDDLE, N_PUBLIC, PUBLIC, lower_bound, of_sum
from tests.testing.public_estimators import HAS_NETS, HAS_OPTUNA, HAS_PARETO

DELTA = 1e-5
SIZES = [1, 2, 50, 5000]
rng = np.random.default_rng(0)
P = 240
PEOPLE = np.repeat(np.arange(P), rng.integers(1, 7, size=P))
X = np.column_stack([PEOPLE, rng.uniform(-1.0, 1.0, size=(PEOPLE.size, 2))])
Y = (X[:, 1] + 0.3 * rng.normal(size=PEOPLE.size) > 0.0).astype(int)
IDS = np.array([f"p{one}" for one in PEOPLE])


@pytest.fixture(autouse=True)
def many_fits():
    """Fit the same data again and again without a warning."""
    with config_context(ledger=False):
        yield


MODEL = DPLogisticRegression(classes=[0, 1])
BUDGET = {"epsilon": 2.0, "delta": DELTA, "random_state": 0}
C = {"C": [0.01, 1.0]}
SEARCHES: dict[str, Any] = {
    "table": DPGridSearchCV(MODEL, C, strategy="table", **BUDGET),
    "table with folds": DPGridSearchCV(MODEL, C, cv=3, refit=True, strategy="table", **BUDGET),
    "maximum": DPGridSearchCV(MODEL, C, strategy=NoisyMaximum(n_partitions=3), **BUDGET),
    "random": DPRandomSearchCV(
        MODEL, C, scoring="neg_brier_score", strategy=RandomRuns(), **BUDGET
    ),
    "on a part": DPRandomSearchCV(MODEL, C, strategy=RandomRuns(tuning_fraction=0.3), **BUDGET),
    "threshold": DoublingThresholdSearchCV(
        MODEL, C, strategy=ThresholdRounds(n_partitions=3), **BUDGET
    ),
    "scaled": DPGridSearchCV(
        make_pipeline(DPStandardScaler(bounds=(-1.0, 1.0)), MODEL),
        {"dplogisticregression__C": [0.01, 1.0]},
        strategy="table",
        **BUDGET,
    ),
    "regression": DPGridSearchCV(
        DPRidge(target_bound=1.0), {"alpha": [0.1, 1.0]}, strategy="table", **BUDGET
    ),
}
if HAS_OPTUNA:
    SEARCHES["adaptive"] = DPAdaptiveSearchCV(
        MODEL, {"C": (0.01, 1.0)}, n_trials=2, strategy=AdaptiveTrials(), **BUDGET
    )
ROWS = X[:, 1:]


def found_by(search: Any, X: Any = ROWS, y: Any = Y, **more: Any) -> list[Any]:
    """Return what a search publishes of its choice and of its model."""
    fitted = clone(search).fit(X, y, **more)
    model = getattr(fitted.best_estimator_, "steps", [("", fitted.best_estimator_)])[-1][1]
    scores = np.ravel(fitted.cv_results_.get("mean_test_score", []))
    return [*np.ravel(model.coef_), *np.ravel(model.intercept_), *scores, fitted.best_index_]


@pytest.mark.parametrize("name", SEARCHES)
def test_persons_of_one_row_are_records(name):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    by_persons = found_by(SEARCHES[name], groups=np.arange(len(X))[::-1])
    assert_array_equal(by_persons, found_by(SEARCHES[name]))


@pytest.mark.parametrize("name", ["table with folds", "maximum", "scaled", "regression"])
def test_names_of_persons_and_orders_of_their_rows_change_nothing(name):
    search = SEARCHES[name]
    wanted = found_by(search, groups=IDS)
    firsts = np.unique(PEOPLE, return_index=True)[1]
    # The first rows of persons stay in order; all their other rows come later.
    others = np.random.default_rng(1).permutation(np.setdiff1d(np.arange(len(X)), firsts))
    order = np.concatenate([firsts, others])
    for places, ids in (
        (np.arange(len(X)), 1000 - 3 * PEOPLE),
        (order, IDS[order]),
        (order, pd.Series(PEOPLE[order], index=order)),
    ):
        assert_allclose(found_by(search, ROWS[places], Y[places], groups=ids), wanted, atol=1e-9)


@pytest.mark.parametrize("name", ["table", "maximum"])
def test_rows_without_an_id_are_left_out(name):
    wanted = found_by(SEARCHES[name], groups=IDS)
    rows = np.vstack([[[np.nan, 1e9]], ROWS, [[5.0, 5.0]]])
    ids = np.array([None, *IDS, np.nan], dtype=object)
    assert_array_equal(found_by(SEARCHES[name], rows, [1, *Y, 7], groups=ids), wanted)
    assert_array_equal(
        found_by(SEARCHES[name], rows.tolist(), [1, *Y, 7], groups=ids.tolist()), wanted
    )


# Parts and scores -------------------------------------------------------------------------------

SCORED: list[Any] = []


def noted(y, prediction):
    SCORED.append(np.array(y))
    return np.zeros(len(y))


PERSON_OF_TARGET = make_bounded_scorer(noted, 0.0, 1.0)
QUICK = {"delta": DELTA, "scoring": PERSON_OF_TARGET, "random_state": 3}


class Numbered(PersonSum):
    """A regression, so that targets may tell the person."""

    _estimator_type = "regressor"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "regressor", None
        tags.regressor_tags = sklearn.utils.RegressorTags()
        return tags

    def predict(self, X):
        return X[:, -1]


@pytest.mark.parametrize(
    "search",
    [
        DPGridSearchCV(
            Numbered(noise=9.0), {"cut": [0.5]}, cv=0.3, strategy=FullTable(), refit=True, **QUICK
        ),
        DPGridSearchCV(Numbered(noise=9.0), {"cut": [0.5]}, cv=4, refit=True, **QUICK),
        DPRandomSearchCV(
            Numbered(noise=9.0),
            {"cut": [0.5]},
            strategy=RandomRuns(tuning_fraction=0.4, n_iter_distribution=Geometric(0.5)),
            **QUICK,
        ),
        DoublingThresholdSearchCV(
            Numbered(noise=9.0), {"cut": [0.5]}, strategy=ThresholdRounds(n_partitions=3), **QUICK
        ),
    ],
    ids=["validation", "folds", "part", "partitions"],
)
def test_each_person_is_in_one_part_with_all_rows(search):
    # Theorem P14: one private place for each person.
    PersonSum.heard.clear()
    SCORED.clear()
    search.fit(X, PEOPLE.astype(float), groups=IDS)
    # Made-up rows contain no whole numbers, and a partition first scores one of its persons.
    fits = [(rows, persons) for rows, persons in PersonSum.heard if np.all(rows[:, 0] % 1 == 0)]
    *runs, (final_rows, final) = fits
    assert (final.size, len(final_rows)) == (P, len(X))
    scored = [targets for targets in SCORED if len(set(targets)) > 1 and len(targets) > 50]
    assert len(runs) == len(scored) > 0
    everyone = np.bincount(PEOPLE)
    for rows, persons in runs:
        trained = np.bincount(rows[:, 0].astype(int), minlength=P)
        assert_array_equal(trained, np.where(trained, everyone, 0))
        assert persons.size == np.count_nonzero(trained) < P
        assert_array_equal(np.bincount(persons.codes), everyone[trained > 0])
    for targets in scored:
        found = np.bincount(targets.astype(int), minlength=P)
        assert_array_equal(found, np.where(found, everyone, 0))
    for (rows, _), targets in zip(runs, scored, strict=True):
        assert not set(rows[:, 0]) & set(targets)


def test_a_score_is_the_mean_over_persons_of_the_mean_over_their_rows():
    # Theorem P14: with this epsilon scores have almost no noise.
    search = DPGridSearchCV(
        PersonSum(noise=0.05, cut=0.0),
        {"cut": [0.0, 0.5]},
        cv=3,
        refit=True,
        delta=DELTA,
        strategy=FullTable(choose_by="max", score_epsilon=400.0, try_own_values=False),
        random_state=0,
    ).fit(X[:, 2:], Y, groups=IDS)
    for place, cut in enumerate((0.0, 0.5)):
        right = (X[:, 2] > cut).astype(int) == Y
        by_person = np.bincount(PEOPLE, right) / np.bincount(PEOPLE)
        found = search.cv_results_["mean_test_score"][place]
        assert abs(found - by_person.mean()) < 0.01
        assert abs(by_person.mean() - right.mean()) > 1e-4


class Told:
    """A model with given predictions."""

    def predict(self, X):
        return X[:, 0]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("centred", [True, False])
def test_the_values_of_persons_do_not_depend_on_the_number_of_rows_of_others(count, centred):
    # Theorem P14: else one person with two rows moves the value of everybody by a rounding.
    told = np.random.default_rng(0).uniform(0.0, 0.42, size=1000)
    scorer = make_bounded_scorer(lambda y, found: found, -0.37, 0.05, centred=centred)
    table = np.append(told, np.full(count, 0.42))[:, None]
    ids = np.append(np.arange(1000), np.full(count, 1000))
    less = Data(told[:, None], np.zeros(1000)).by_persons(persons_of(ids[:1000], told))
    more = Data(table, np.zeros(len(table))).by_persons(persons_of(ids, table))
    found, wanted = (values_of(scorer, Told(), data) for data in (more, less))
    assert_array_equal(found[:1000], wanted)
    change = scorer.score(found, 1000, clip=False) - scorer.score(wanted, 1000, clip=False)
    assert abs(change) <= scorer.sensitivity(1000) * (1.0 + 1e-9)


# Whole persons in and out -----------------------------------------------------------------------

FEW = {"delta": DELTA}
REPLAYED: dict[str, Any] = {
    "table": DPGridSearchCV(
        PersonSum(noise=2.0), {"cut": [0.2, 0.5]}, strategy=FullTable(score_epsilon=1.0), **FEW
    ),
    "random": DPRandomSearchCV(
        PersonSum(noise=2.0),
        {"cut": [0.2, 0.5]},
        strategy=RandomRuns(score_epsilon=1.0, n_iter_distribution=Geometric(0.5)),
        **FEW,
    ),
    "threshold": DoublingThresholdSearchCV(
        PersonSum(noise=2.0), {"cut": [0.2, 0.5]}, strategy=ThresholdRounds(n_partitions=3), **FEW
    ),
}
if HAS_OPTUNA:
    REPLAYED["adaptive"] = DPAdaptiveSearchCV(
        PersonSum(noise=2.0), {"cut": (0.2, 0.5)}, n_trials=2, strategy=AdaptiveTrials(), **FEW
    )


@pytest.mark.parametrize("count", [2, 5000])
@pytest.mark.parametrize("name", REPLAYED)
def test_searches_protect_whole_persons(name, count):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    small = PEOPLE < 80
    person = np.full((count, 1), 9.0), np.zeros(count, dtype=int)
    replay = replay_neighbours(
        REPLAYED[name], X[small][:, 2:], Y[small], person, groups=PEOPLE[small], n_repeats=6
    )
    assert replay.findings == []
    assert replay.neighbouring == PERSON


# Audits: what is published of 50 rows of one person ----------------------------------------------

EVERYONE = np.zeros((N_PUBLIC, 1)), np.arange(N_PUBLIC) % 2, np.arange(N_PUBLIC)
NEIGHBOUR = tuple(
    np.concatenate([one, more])
    for one, more in zip(
        EVERYONE, (np.ones((50, 1)), np.ones(50, dtype=int), np.full(50, 99)), strict=True
    )
)
SETTINGS = {"delta": DELTA, "n_public": N_PUBLIC}
BY_SCORES = {"scoring": MIDDLE, "cv": 0.7, **SETTINGS}


def of_scores(search):
    return float(np.mean(search.cv_results_["mean_test_score"]))


def _random(estimator, cuts, **more):
    strategy = RandomRuns(
        n_iter_distribution=Geometric(0.5), tuning_fraction=None, score_epsilon=0.3
    )
    return DPRandomSearchCV(estimator, {"cut": cuts}, strategy=strategy, **more)


def _table(estimator, cuts, **more):
    strategy = FullTable(
        tuning_fraction=None, try_own_values=False, choose_by="max", score_epsilon=0.3
    )
    return DPGridSearchCV(estimator, {"cut": cuts}, strategy=strategy, **more)


# Name: search, statistic, arguments of fit.
AUDITED: dict[str, Any] = {
    "fits of a random search": (_random(PersonSum(12.0), [10.0], **SETTINGS), of_sum, PUBLIC),
    "scores of a random search": (_random(PersonCut(12.0), [0.5], **BY_SCORES), of_scores, {}),
    "fits of a table": (_table(PersonSum(12.0), [10.0], **SETTINGS), of_sum, PUBLIC),
    "scores of a table": (_table(PersonCut(12.0), [0.5], **BY_SCORES), of_scores, {}),
    "fits of a threshold search": (
        DoublingThresholdSearchCV(
            PersonSum(12.0),
            {"cut": [10.0]},
            strategy=ThresholdRounds(n_partitions=2, tuning_estimator=PersonSum()),
            **SETTINGS,
        ),
        of_sum,
        {},
    ),
    "fits of a noisy maximum": (
        DPGridSearchCV(
            PersonSum(12.0),
            {"cut": [9.0, 10.0]},
            strategy=NoisyMaximum(n_partitions=2, tuning_estimator=PersonSum()),
            **SETTINGS,
        ),
        of_sum,
        {},
    ),
}
if HAS_OPTUNA:
    AUDITED["scores of an adaptive search"] = (
        DPAdaptiveSearchCV(PersonCut(12.0), {"cut": (0.4, 0.6)}, n_trials=2, **BY_SCORES),
        of_scores,
        {},
    )


def audited(name, n_trials):
    """Return what is refuted about the presence of a person with 50 rows, and the claim."""
    search, statistic, more = AUDITED[name]
    sides = []
    for side, (rows, labels, ids) in enumerate((NEIGHBOUR, EVERYONE)):
        values = np.empty(n_trials)
        for trial in range(n_trials):
            search.set_params(random_state=2 * trial + side)
            values[trial] = statistic(search.fit(rows, labels, groups=ids, **more))
        sides.append(values)
    return lower_bound(*sides), search.privacy_.epsilon_spent


@pytest.fixture
def weighs_rows(monkeypatch):
    """Give each row the weight of a person, as a build does that protects rows."""
    monkeypatch.setattr(Persons, "shares", property(lambda self: np.ones(self.codes.size)))
    monkeypatch.setattr(Persons, "means", lambda self, units: np.asarray(units))


@pytest.mark.parametrize("name", ["fits of a noisy maximum"])
def test_no_claim_about_persons_is_refuted(name):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    found, claimed = audited(name, 80)
    assert found <= claimed


@pytest.mark.parametrize("name", ["fits of a noisy maximum"])
def test_a_build_that_weighs_rows_is_refuted(name, weighs_rows):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    found, claimed = audited(name, 80)
    assert found > claimed


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
def test_no_claim_about_persons_is_refuted_by_many_searches(name):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    found, claimed = audited(name, 2000)
    assert found <= claimed


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in AUDITED if name.startswith("fits")])
def test_every_search_that_weighs_rows_is_refuted(name, weighs_rows):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    found, claimed = audited(name, 2000)
    assert found > claimed


# What is shown ----------------------------------------------------------------------------------


def visits() -> pd.DataFrame:
    """Return a table with strings, booleans, missing values, dates and ids of text."""
    generator = np.random.default_rng(2)
    days = pd.to_timedelta(generator.integers(0, 700, PEOPLE.size), unit="D")
    found = pd.DataFrame(
        {
            "patient": IDS,
            "age": np.where(generator.random(PEOPLE.size) < 0.1, np.nan, 50.0 + 30.0 * X[:, 1]),
            "ward": generator.choice(["north", "south", None], size=PEOPLE.size),
            "urgent": X[:, 2] > 0.0,
            "day": pd.Timestamp("2023-01-01") + days,
        }
    )
    found.loc[generator.random(PEOPLE.size) < 0.1, "day"] = pd.NaT
    return found


COLUMNS = {
    "age": {"range": (18, 90), "missing": True},
    "ward": {"categories": ["north", "south"], "missing": True},
    "urgent": "boolean",
    "day": {"range": ("2023-01-01", "2024-12-31"), "missing": True},
}
SCHEMA = Schema(COLUMNS, target=["no", "yes"], person="patient")
ANSWERS = np.where(Y, "yes", "no")
PIPELINE = make_private_pipeline(DPLogisticRegression(), SCHEMA)
GRID = {"dplogisticregression__C": [0.01, 1.0]}


def test_a_schema_names_the_persons_of_a_search_with_scikit_learns_routing():
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    table = visits()
    search = DPGridSearchCV(PIPELINE, GRID, strategy="table", **BUDGET)
    plan = search.plan(P, 5, compare=False)
    assert plan.report.neighbouring == PERSON
    for shown in (str(plan), plan._repr_html_()):
        assert "in fits on all persons" in shown and "number of persons" in shown
        assert "records" not in shown
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger:
        search.fit(table, ANSWERS)
        with pytest.raises(LedgerError, match="person"):
            DPLogisticRegression(classes=[0, 1]).fit(ROWS, Y)
    (record,) = ledger.history()
    assert (record.neighbouring, record.details["n_samples"]) == (PERSON, P)
    text = str(search.privacy_)
    assert search.privacy_.neighbouring == PERSON
    assert "the number of persons is public" in text
    assert "one record" not in text
    assert "number of records is public" not in text
    assert "on all persons" in text and "of the records" not in text
    assert "one person" in str(search.privacy_.statement())
    assert b"p17" not in pickle.dumps(search)
    plain = make_private_pipeline(DPLogisticRegression(), Schema(COLUMNS, target=["no", "yes"]))
    rows = table.drop(columns="patient")
    by_groups = DPGridSearchCV(plain, GRID, strategy="table", **BUDGET)
    by_groups.fit(rows, ANSWERS, groups=table["patient"])
    assert_array_equal(by_groups.predict_proba(rows), search.predict_proba(table))
    with sklearn.config_context(enable_metadata_routing=True):
        again = clone(search).fit(table, ANSWERS)
    assert_array_equal(again.predict_proba(rows), search.predict_proba(table))


NETS = [pytest.param(word, "net", marks=pytest.mark.slow) for word in ("classifier", "regressor")]
FAMILIES = [("classifier", "linear"), ("classifier", "boosting"), *(NETS if HAS_NETS else [])]


@pytest.mark.parametrize(("word", "family"), FAMILIES)
def test_a_schema_names_the_persons_of_a_model_that_chooses_its_family(word, family):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    table, is_regression = visits(), word == "regressor"
    target, y = ((0, 1), 1.0 * Y) if is_regression else (["no", "yes"], ANSWERS)
    settings = {"epsilon": 1.0, "delta": 1e-3, "family": family, "random_state": 0}
    model = make_private_pipeline(word, Schema(COLUMNS, target, person="patient"), **settings)
    assert model.plan(P).report.neighbouring == PERSON
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-2)
    with ledger:
        model.fit(table, y)
    (record,) = ledger.history()
    assert (record.neighbouring, record.details["n_samples"]) == (PERSON, P)
    assert (model.family_, model.privacy_.neighbouring) == (family, PERSON)
    assert "record" not in str(model.privacy_)
    # An id as a pickled string, and in an array: the numbers of a profile may contain "p17".
    pickled = pickle.dumps(model)
    assert b"\x03p17" not in pickled and "p17".encode("utf-32-le") not in pickled
    rows = table.drop(columns="patient")
    by_groups = make_private_pipeline(word, Schema(COLUMNS, target), **settings)
    by_groups.fit(rows, y, groups=table["patient"])
    assert_array_equal(by_groups.predict(rows), model.predict(table))


def test_families_are_compared_by_persons(monkeypatch):
    # Theorem F12, Theorem P14.
    # Few persons get a linear model, and the signal of these a net, without a comparison.
    others = dict.fromkeys(RULES["regressor"].others, 300.0)
    rule = RULES["regressor"]._replace(others=others)
    monkeypatch.setitem(RULES, "regressor", rule)
    table = pd.concat([visits(), visits().assign(patient=[f"{one} too" for one in IDS])])
    y = np.tile(1.0 * Y, 2)
    schema = Schema(COLUMNS, target=(0, 1), person="patient")
    settings = {"epsilon": 40.0, "delta": 1e-3, "random_state": 0}
    model = make_private_pipeline("regressor", schema, **settings)
    assert model.plan(2 * P).report.neighbouring == PERSON
    model.fit(table, y)
    assert isinstance(model.model_, DPGridSearchCV)
    assert model.privacy_.neighbouring == PERSON
    assert "records" not in str(model.plan(2 * P)) + str(model.privacy_)
    model.set_params(family="linear")
    search = DPGridSearchCV(model, {"family": ["linear", "boosting"]}, **BUDGET)
    assert search.fit(table, y).privacy_.neighbouring == PERSON
    intervals = PrivateConformalRegressor(model, epsilon=1.0)
    assert intervals.fit(table, y).privacy_.neighbouring == PERSON
    for wrong, groups in ((table, np.tile(IDS, 2)), (table.drop(columns="patient"), None)):
        with pytest.raises((TypeError, ValueError), match="schema"):
            clone(model).fit(wrong, y, groups=groups)


def test_the_number_of_rows_is_shown_nowhere():
    texts = []
    for times in (1, 3):
        search = DPRandomSearchCV(MODEL, C, strategy=RandomRuns(), **BUDGET)
        search.fit(np.tile(ROWS, (times, 1)), np.tile(Y, times), groups=np.tile(IDS, times))
        texts.append((str(search), str(search.privacy_), sorted(vars(search))))
    assert texts[0] == texts[1]
    # A model learns the mean of a person's rows, however often each of them occurs.
    one = found_by(SEARCHES["table"], groups=IDS)
    three = found_by(
        SEARCHES["table"], np.tile(ROWS, (3, 1)), np.tile(Y, 3), groups=np.tile(IDS, 3)
    )
    assert_allclose(one, three, atol=1e-5)


def test_a_rule_holds_out_whole_persons():
    # Theorem T9, Theorem P14.
    table = visits()
    since = HoldOut("day", ">=", "2024-06-01", share=0.6)
    held = np.bincount(PEOPLE, table["day"] >= "2024-06-01") > 0
    search = DPGridSearchCV(PIPELINE, GRID, cv=since, strategy="table", **BUDGET).fit(
        table, ANSWERS
    )
    # Which rows of a held-out person the rule selects changes nothing.
    moved = table.copy()
    moved.loc[held[PEOPLE], "day"] = pd.Timestamp("2024-07-01")
    columns = {name: COLUMNS[name] for name in ("age", "ward", "urgent")}
    model = make_private_pipeline(
        DPLogisticRegression(),
        Schema(columns, target=["no", "yes"], person="patient", drop=["day"]),
    )
    alone = DPGridSearchCV(model, GRID, cv=since, strategy="table", **BUDGET)
    found = [clone(alone).fit(each, ANSWERS).predict_proba(table) for each in (table, moved)]
    assert_array_equal(*found)
    assert 0 < held.sum() < P
    assert search.privacy_.neighbouring == PERSON
    with pytest.raises(ValueError, match="cv must name a column") as error:
        clone(search).set_params(cv=HoldOut("no", "==", 1, share=0.5)).fit(table, ANSWERS)
    assert str(len(table)) not in str(error.value)


def test_a_session_protects_persons():
    search = SEARCHES["threshold"]
    session = clone(search).start(ROWS, Y, groups=IDS)
    while not session.finished:
        session.propose([{"C": 0.01}, {"C": 1.0}])
    fitted = session.finish()
    assert fitted.privacy_.neighbouring == PERSON
    assert fitted.best_params_ == clone(search).fit(ROWS, Y, groups=IDS).best_params_


def test_a_surrogate_of_another_library_needs_no_groups():
    strategy = NoisyMaximum(n_partitions=3, tuning_estimator=LogisticRegression())
    search = DPGridSearchCV(MODEL, C, strategy=strategy, **BUDGET).fit(ROWS, Y, groups=IDS)
    assert search.privacy_.neighbouring == PERSON


def test_a_search_that_was_interrupted_continues_by_persons(tmp_path):
    strategy = FullTable(storage=tmp_path / "runs")
    search = DPGridSearchCV(MODEL, C, strategy=strategy, **BUDGET)
    wanted = found_by(SEARCHES["table"], groups=IDS)
    assert_array_equal(found_by(search, groups=IDS), wanted)
    with pytest.raises(ValueError, match="storage"):
        clone(search).fit(ROWS, Y)


@pytest.mark.skipif(not HAS_PARETO, reason="needs optuna and the libraries of the samplers")
def test_a_front_protects_persons():
    search = DParetoSearchCV(
        DPLogisticRegression(solver="output", classes=[0, 1]),
        {"epsilon": (0.1, 2.0, "log"), "C": (1e-3, 1.0, "log")},
        n_iter=0,
        release=1.0,
        refit=1.0,
        strategy=ParetoFront(n_initial=2, sampler="random"),
        random_state=0,
    ).fit(ROWS, Y, groups=IDS)
    assert search.privacy_.neighbouring == PERSON
    model = search.best_estimator_for(ROWS, Y, epsilon=2.0, groups=IDS)
    assert model.privacy_.neighbouring == PERSON
    with pytest.raises(ValueError, match=f"X must hold the {P} records"):
        search.best_estimator_for(ROWS, Y, epsilon=2.0)


# What is refused ---------------------------------------------------------------------------------


def test_wrong_calls_are_refused_before_anything_is_spent():
    table = visits()
    named, given = DPGridSearchCV(PIPELINE, GRID, **BUDGET), SEARCHES["table"]
    of_rows = PTRLinearRegression(target_bound=1.0)
    in_steps = make_pipeline(DPStandardScaler(bounds=(-1, 1)), of_rows)
    around = make_pipeline(PIPELINE)
    wrong: list[tuple[Any, Any, str]] = [
        (named, lambda s: s.fit(table, ANSWERS, groups=IDS), "names the column of persons"),
        (named, lambda s: s.fit(table.drop(columns="patient"), ANSWERS), "with the column"),
        (named, lambda s: s.fit(table.assign(patient=None), ANSWERS), "at least one person"),
        (given, lambda s: s.fit(ROWS, Y, groups=IDS[1:]), "groups must be as long as X"),
        (given, lambda s: s.fit(ROWS, Y, groups=IDS.reshape(-1, 1)), "in one dimension"),
        (given, lambda s: s.fit(ROWS, Y[1:], groups=IDS), "y must be as long as X"),
        (given, lambda s: s.fit(ROWS, np.c_[Y, Y], groups=IDS), "y"),
        (given, lambda s: s.fit(ROWS, Y, groups="patient"), "name it in the schema"),
        (given, lambda s: s.fit(ROWS, Y, groups=IDS, sample_weight=Y), "only X, y and groups"),
        (
            DPGridSearchCV(of_rows, {"data_norm": [1.0]}, epsilon=1.0),
            lambda s: s.fit(ROWS, Y, groups=IDS),
            "groups must be None for PTRLinearRegression",
        ),
        (
            DPGridSearchCV(
                MODEL, {"solver": ["adam", "objective"]}, epsilon=1.0, strategy="table"
            ),
            lambda s: s.fit(ROWS, Y, groups=IDS),
            "Use solver='output'",
        ),
        (
            DPGridSearchCV(in_steps, None, epsilon=1.0),
            lambda s: s.fit(ROWS, Y, groups=IDS),
            "groups must be None for PTRLinearRegression",
        ),
        (
            DPGridSearchCV(around, {"personpipeline__dplogisticregression__C": [1.0]}, epsilon=1),
            lambda s: s.fit(table, ANSWERS),
            "pipelines whose schemas name the same column",
        ),
    ]
    ledger = PrivacyLedger(":memory:", "visits", epsilon=50.0, delta=1e-3)
    with ledger:
        for search, call, message in wrong:
            with pytest.raises((TypeError, ValueError), match=message) as error:
                call(clone(search))
            assert str(len(X)) not in str(error.value)
    assert not list(ledger.history())
