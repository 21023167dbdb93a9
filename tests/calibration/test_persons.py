"""Thresholds, curves and intervals by persons: one person's influence, and coverage."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from skdptune.base import privacy_of
from skdptune.base._shared import Persons, persons_of
from skdptune.calibration import (
    PrivateConformalClassifier,
    PrivateConformalRegressor,
    PrivateScoreCurves,
    PrivateThreshold,
)
from skdptune.calibration import _private_conformal as module
from skdptune.calibration._private_conformal import expected_loss, quantile_level
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.ledger._shared import PERSON, PERSON_ZEROED
from skdptune.linear_model import DPLogisticRegression, DPRidge, PTRLinearRegression
from skdptune.mechanisms._quantiles import counts_of_points, ranked_runs
from skdptune.preprocessing import DPStandardScaler, Schema, make_private_pipeline
from skdptune.testing import replay_neighbours
from tests.auditing import measured
from tests.calibration.models import Told, ToldChances
from tests.calibration.test_release import Fixed

SIZES = [1, 2, 50, 5000]
P = 60
rng = np.random.default_rng(0)
PEOPLE = np.repeat(np.arange(P), rng.integers(1, 7, size=P))
X = rng.uniform(-1.0, 1.0, size=(PEOPLE.size, 3))
TARGETS = np.clip(X[:, 0] + 0.2 * rng.normal(size=PEOPLE.size), -1.0, 1.0)
LABELS = (TARGETS > 0.0).astype(int)
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
RIDGE = DPRidge(target_bound=1.0)
LOGISTIC = DPLogisticRegression(classes=[0, 1])
CONFORMAL = {
    "regressor": (PrivateConformalRegressor(RIDGE, coverage=0.5, **BUDGET), TARGETS),
    "classifier": (PrivateConformalClassifier(LOGISTIC, coverage=0.5, **BUDGET), LABELS),
    "pipeline": (
        PrivateConformalClassifier(
            make_pipeline(DPStandardScaler(bounds=(-1, 1)), LOGISTIC), coverage=0.5, **BUDGET
        ),
        LABELS,
    ),
}
HISTOGRAMS = {
    "curves": (PrivateScoreCurves(LOGISTIC, insist=True, **BUDGET), LABELS),
    "threshold": (PrivateThreshold(LOGISTIC, at_least=0.8, insist=True, **BUDGET), LABELS),
    "replacing": (
        PrivateScoreCurves(
            DPLogisticRegression(solver="psgd", classes=[0, 1]), insist=True, **BUDGET
        ),
        LABELS,
    ),
}
ALL = CONFORMAL | HISTOGRAMS


def released(model: Any) -> np.ndarray:
    """Return everything that a fit releases in addition to its model."""
    found = getattr(model, "histogram_", None)
    return np.ravel(model.quantile_) if found is None else np.ravel(found.counts)


def frozen(**settings: Any) -> PrivateScoreCurves:
    """Return a histogram of a model that was fitted before, without noise by default."""
    settings = {"epsilon": math.inf, "n_bins": 8, "insist": True} | settings
    return PrivateScoreCurves(FrozenEstimator(Fixed().fit(X, LABELS)), **settings)


def weigh_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: each row counts as a record."""
    full = property(lambda self: np.full(self.codes.size, 2**30))
    monkeypatch.setattr(Persons, "weights", full)
    monkeypatch.setattr(Persons, "shares", property(lambda self: np.ones(self.codes.size)))


# The histogram ----------------------------------------------------------------------------------


def change_of_counts(k: int, kind: str) -> tuple[float, float]:
    """Return the norm of the change of counts by a person of k rows, and its sum."""
    rows, labels = np.full((k, 3), 0.9), np.ones(k, dtype=int)
    if kind == "different":
        generator = np.random.default_rng(k)
        rows, labels = generator.uniform(-1.0, 1.0, (k, 3)), generator.integers(0, 2, k)
    less = frozen().fit(X, LABELS, groups=PEOPLE).histogram_
    order = np.random.default_rng(1).permutation(PEOPLE.size + k)
    together = np.concatenate([X, rows])[order], np.concatenate([LABELS, labels])[order]
    more = frozen().fit(*together, groups=np.append(PEOPLE, np.full(k, P))[order]).histogram_
    assert_array_equal(more.edges, less.edges)
    change = more.counts - less.counts
    return float(np.linalg.norm(change)), float(change.sum())


@pytest.mark.parametrize("k", SIZES)
def test_one_person_changes_counts_by_one_record_at_most(k: int) -> None:
    # Theorem Q1, Theorem P14: exact sums, whatever the order of rows.
    for kind in ("same", "different"):
        norm, total = change_of_counts(k, kind)
        assert norm <= 1.0
        assert 1.0 - k * 2.0**-26 <= total <= 1.0
    assert change_of_counts(k, "same")[0] >= 1.0 - k * 2.0**-26


def test_the_oracle_finds_counts_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    weigh_rows(monkeypatch)
    assert change_of_counts(50, "same")[0] == 50.0


def test_a_row_without_an_id_is_counted_nowhere() -> None:
    # Theorem Q1, Theorem P14: an improper row keeps its share, which is counted nowhere.
    given = frozen().fit(X, LABELS, groups=PEOPLE).histogram_
    ids = [*PEOPLE.tolist(), None, math.nan]
    rows, labels = np.concatenate([X, X[:2]]), np.append(LABELS, [0, 1])
    both = frozen().fit(rows, labels, groups=ids).histogram_
    assert_array_equal(both.counts, given.counts)
    assert given.counts.sum() == pytest.approx(P, abs=1e-5)
    gaps = X.copy()
    gaps[0] = np.nan
    lost = frozen().fit(gaps, LABELS, groups=PEOPLE).histogram_.counts.sum()
    n_rows = np.count_nonzero(PEOPLE == PEOPLE[0])
    assert given.counts.sum() - lost == pytest.approx(1.0 / n_rows, abs=1e-6)


def counts_of_label(n_fits: int, *, epsilon: float) -> list[np.ndarray]:
    """Return released numbers of positive persons, with and without a person of 50 rows."""
    rows, labels = np.full((50, 3), 0.9), np.ones(50, dtype=int)
    sides = [
        (np.concatenate([X, rows]), np.append(LABELS, labels), np.append(PEOPLE, [P] * 50)),
        (X, LABELS, PEOPLE),
    ]
    found = []
    for side, (table, y, people) in enumerate(sides):
        fits = (
            frozen(epsilon=epsilon, delta=1e-6, n_bins=2, n_public=P, random_state=2 * seed + side)
            for seed in range(n_fits)
        )
        found.append(
            np.array([one.fit(table, y, groups=people).histogram_.counts[1].sum() for one in fits])
        )
    return found


def test_an_audit_refutes_counts_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(*counts_of_label(60, epsilon=4.0), 1e-6) <= 4.0
    weigh_rows(monkeypatch)
    assert measured(*counts_of_label(60, epsilon=4.0), 1e-6) > 8.0


@pytest.mark.slow
def test_many_fits_of_persons_show_no_more_than_is_claimed() -> None:
    assert 0.5 < measured(*counts_of_label(2000, epsilon=4.0), 1e-6) <= 4.0


# Intervals and sets -----------------------------------------------------------------------------


def covered_by_persons(bag: Any, steps: int, level: float, epsilon: float) -> float:
    """Return the chance that a row of a person of a bag is at most the others' quantile.

    The person is drawn at random, and the row among this person's: counted one by one.
    """
    points = np.arange(steps + 1)
    sharpness = epsilon / (2.0 * max(level, 1.0 - level))
    chances = []
    for place, left_out in enumerate(bag):
        others = [one for other, one in enumerate(bag) if other != place]
        below, up_to = np.zeros(points.size), np.zeros(points.size)
        for rows in others:
            below += (rows[None, :] < points[:, None]).mean(axis=1)
            up_to += (rows[None, :] <= points[:, None]).mean(axis=1)
        target = level * len(others)
        utility = -np.maximum(np.maximum(below - target, target - up_to), 0.0)
        weights = np.exp(sharpness * utility)
        reached = (points[:, None] >= left_out[None, :]).mean(axis=1)
        chances.append((weights * reached).sum() / weights.sum())
    return float(np.mean(chances))


@pytest.mark.parametrize("steps", [1, 2])
def test_no_small_bag_of_persons_is_covered_less_than_stated(steps: int) -> None:
    # Theorem I2: all bags of four persons with one or two rows each.
    points = range(steps + 1)
    pairs = itertools.combinations_with_replacement(points, 2)
    lists = [np.array(one) for one in (*((point,) for point in points), *pairs)]
    for bag in itertools.combinations_with_replacement(lists, 4):
        for level, epsilon in ((0.5, 1.0), (0.9, 4.0)):
            stated = (3 * level - expected_loss(level, epsilon, steps)) / 4
            assert covered_by_persons(bag, steps, level, epsilon) >= stated - 1e-12


def test_ranks_of_persons_are_means_of_the_ranks_of_their_rows() -> None:
    # Theorem I2: the utilities in the proof are those of the mechanism.
    points = rng.integers(0, 9, size=PEOPLE.size)
    starts, utilities = ranked_runs(
        counts_of_points(points, persons_of(PEOPLE, X).weights), 0.8, 8
    )
    up_to = [
        sum((points[PEOPLE == person] <= start).mean() for person in range(P)) for start in starts
    ]
    below = [
        sum((points[PEOPLE == person] < start).mean() for person in range(P)) for start in starts
    ]
    wanted = -np.maximum(np.maximum(np.array(below) - 0.8 * P, 0.8 * P - np.array(up_to)), 0.0)
    np.testing.assert_allclose(utilities, wanted, atol=1e-6)


class TellsPersons(Told):
    """Remembers the persons of its fit, too."""

    def _input_refusal(self, form: str) -> None:
        return None

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Any:
        super().fit(X, y)
        self.persons_ = groups
        self.privacy_ = self._make_report(self.privacy_profile(1), (), groups)
        return self


def test_a_person_is_held_out_or_fitted_to_with_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    # Theorem I1, Theorem P14 (ii).
    seen: list[Any] = []

    def quantile(values: Any, *others: Any, weights: Any, **more: Any) -> float:
        seen.append((values, weights))
        return 0.5

    monkeypatch.setattr(module, "private_quantile", quantile)
    rows = X.copy()
    rows[:, 1] = PEOPLE
    sizes = np.bincount(PEOPLE)
    fitted_to: set[float] = set()
    for seed in range(5):
        model = PrivateConformalRegressor(
            TellsPersons(), target_bound=1.0, coverage=0.5, random_state=seed
        ).fit(rows, TARGETS, groups=PEOPLE)
        found = model.estimator_.rows_[:, 1].astype(int)
        chosen = np.unique(found)
        fitted_to |= set(chosen.tolist())
        # All rows of each person or none; the others are scored, with the weights of persons.
        assert_array_equal(np.bincount(found, minlength=P)[chosen], sizes[chosen])
        assert_array_equal(model.estimator_.persons_.counts, sizes[chosen])
        held = np.setdiff1d(np.arange(P), chosen)
        values, weights = seen[-1]
        assert values.size == sizes[held].sum()
        assert_array_equal(np.sort(weights), np.sort(np.repeat(2**30 // sizes[held], sizes[held])))
    assert len(fitted_to) > P / 2


def test_rows_of_new_persons_are_covered() -> None:
    # Theorem I2: persons with more rows have larger residuals, and count as much as others.
    generator = np.random.default_rng(3)

    def visits(n_persons: int) -> tuple[Any, Any, Any]:
        counts = generator.choice([1, 30], size=n_persons)
        people = np.repeat(np.arange(n_persons), counts)
        rows = generator.uniform(-1.0, 1.0, size=(people.size, 2))
        spread = np.where(counts[people] == 30, 0.3, 0.1)
        return rows, np.clip(rows[:, 0] + generator.normal(0.0, spread), -2, 2), people

    rows, targets, people = visits(4000)
    model = PrivateConformalRegressor(
        DPRidge(target_bound=2.0), epsilon=2.0, coverage=0.8, random_state=0
    ).fit(rows, targets, groups=people)
    rows, targets, people = visits(2000)
    low, high = model.predict_interval(rows).T
    is_covered = (low <= targets) & (targets <= high)
    shares = persons_of(people, rows).shares
    assert 0.79 < np.sum(shares * is_covered) / np.sum(shares) < 0.84
    # A random row of the table belongs to a person with many rows.
    assert is_covered.mean() < 0.75


def test_levels_follow_the_number_of_persons() -> None:
    model = PrivateConformalRegressor(RIDGE, coverage=0.5, random_state=0, **BUDGET)
    fitted = clone(model).fit(X, TARGETS, groups=PEOPLE)
    assert quantile_level(0.5, P, 0.5, 1.0, 64) is not None
    assert fitted.privacy_.profile == model.privacy_profile(P, 3)
    sure = PrivateConformalRegressor(RIDGE, coverage=0.99, random_state=0, **BUDGET)
    with pytest.warns(UserWarning, match=f"cannot be guaranteed for {P} persons"):
        sure.fit(X, TARGETS, groups=PEOPLE)


# Both -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_with_one_row_for_each_person_nothing_changes(name: str) -> None:
    # Theorem P14: the same bits, and the same cost.
    model, y = ALL[name]
    alone = clone(model).set_params(random_state=0).fit(X, y)
    ids = [f"person {place}" for place in rng.permutation(len(X))]
    by_persons = clone(model).set_params(random_state=0).fit(X, y, groups=ids)
    assert_array_equal(released(by_persons), released(alone))
    assert_array_equal(by_persons.predict(X), alone.predict(X))
    assert by_persons.privacy_.profile == alone.privacy_.profile
    relation = PERSON_ZEROED if name == "replacing" else PERSON
    assert by_persons.privacy_.neighbouring == relation
    assert "person" not in alone.privacy_.neighbouring


@pytest.mark.parametrize("name", ALL)
def test_neither_ids_nor_the_order_of_rows_matter(name: str) -> None:
    model, y = ALL[name]
    given = clone(model).set_params(random_state=0).fit(X, y, groups=PEOPLE)
    renamed = [f"{(7 * one) % 61}x" for one in PEOPLE]
    again = clone(model).set_params(random_state=0).fit(X, y, groups=renamed)
    assert_array_equal(released(again), released(given))
    # Persons keep the order of their first rows, in which coins are drawn.
    first = np.unique(PEOPLE, return_index=True)[1]
    others = np.random.default_rng(1).permutation(np.delete(np.arange(len(X)), first))
    order = np.concatenate([first, others])
    moved = clone(model).set_params(random_state=0).fit(X[order], y[order], groups=PEOPLE[order])
    np.testing.assert_allclose(released(moved), released(given), atol=1e-5)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "k", [50, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 5000))]
)
def test_no_person_shows_more_than_is_claimed(name: str, k: int) -> None:
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    model, y = ALL[name]
    target = -4.0 if y is TARGETS else 1
    person = np.tile([[5.0, -5.0, 5.0]], (k, 1)), np.full(k, target)
    replay = replay_neighbours(model, X, y, person, groups=PEOPLE, n_repeats=6, random_state=1)
    assert replay.findings == []


@pytest.mark.parametrize("name", ALL)
def test_reports_and_ledgers_say_persons(name: str) -> None:
    model, y = ALL[name]
    ledger = PrivacyLedger(":memory:", "visits", epsilon=9.0, delta=1e-3)
    with ledger:
        fitted = clone(model).fit(X, y, groups=PEOPLE)
        with pytest.raises(LedgerError, match="person"):
            clone(model).fit(X, y)
    (record,) = ledger.history()
    assert record.neighbouring == fitted.privacy_.neighbouring
    assert record.details["n_samples"] == P
    text = str(fitted.privacy_)
    assert "the number of persons is public" in text
    assert "of the records" not in text and "the number of records is public" not in text


def test_what_cannot_protect_persons_refuses() -> None:
    ledger = PrivacyLedger(":memory:", "visits", epsilon=9.0, delta=1e-3)
    refused = [
        (PrivateConformalRegressor(PTRLinearRegression(target_bound=1.0)), "Use DPRidge"),
        (PrivateScoreCurves(DPLogisticRegression(solver="objective")), "Use solver='output'"),
        (
            PrivateConformalClassifier(
                make_pipeline(
                    DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(solver="objective")
                )
            ),
            "Use solver='output'",
        ),
    ]
    with ledger:
        for model, words in refused:
            with pytest.raises(TypeError, match=f"groups must be None .*{words}"):
                model.fit(X, LABELS, groups=PEOPLE)
        for groups in (PEOPLE[1:], [None] * len(X)):
            with pytest.raises(ValueError, match="groups must"):
                CONFORMAL["regressor"][0].fit(X, TARGETS, groups=groups)
    assert not list(ledger.history())


class Divided(ToldChances):
    """A private classifier that uses groups for something else than persons."""

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Any:
        return super().fit(X, y)


class Unmixed(ClassifierMixin, BaseEstimator):
    """A private classifier with the methods only, which also uses groups for something else."""

    def __init__(self, epsilon: float = 1.0, delta: float = 0.0) -> None:
        self.epsilon = epsilon
        self.delta = delta

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
        return Divided().privacy_profile(n_samples, n_features)

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Any:
        self.classes_, self.privacy_ = np.array([0, 1]), Divided().fit(X, y).privacy_
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), 2), 0.5)


@pytest.mark.parametrize("model", [Divided(), Unmixed()])
def test_a_class_with_its_own_use_for_groups_is_not_said_to_protect_persons(model: Any) -> None:
    # Theorem P14: only a class that says so protects persons.
    around = PrivateConformalClassifier(model, coverage=0.5, **BUDGET)
    after = make_pipeline(DPStandardScaler(bounds=(-1, 1)), model)
    models = [around, PrivateConformalClassifier(after, coverage=0.5, **BUDGET)]
    for each in [*models, PrivateScoreCurves(model, insist=True, **BUDGET)]:
        with pytest.raises(TypeError, match="which protects single records; got ids of persons"):
            each.fit(X, LABELS, groups=PEOPLE)
        assert not hasattr(each, "privacy_")


class DearerByPersons(DPLogisticRegression):
    """A classifier whose fits by persons have another cost."""

    def _by_persons(self) -> Any:
        return clone(self).set_params(epsilon=2.0 * self.epsilon)


def test_another_cost_by_persons_is_refused_and_never_understated() -> None:
    # Theorem M8: the cost of both parts is computed from that of single records.
    ledger = PrivacyLedger(":memory:", "visits", epsilon=9.0, delta=1e-3)
    pure = PrivateConformalClassifier(DPLogisticRegression(delta=1e-5), delta=0.0, coverage=0.5)
    models = [
        PrivateScoreCurves(DearerByPersons(classes=[0, 1]), insist=True),
        PrivateConformalClassifier(DearerByPersons(classes=[0, 1]), coverage=0.5),
        # A delta of 0 chooses objective perturbation.
        pure,
    ]
    with ledger:
        for model in models:
            with pytest.raises(TypeError, match=r"groups must be None .*Use solver='output'"):
                model.fit(X, LABELS, groups=PEOPLE)
    assert not list(ledger.history())


# From a schema ---------------------------------------------------------------------------------

TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    patient=[f"P-{one}" for one in PEOPLE], word="unused"
)
COLUMNS = {"a": (-1, 1), "b": (-1, 1), "c": (-1, 1), "word": "drop"}
OF_NUMBERS = Schema(COLUMNS, target=(-1, 1), person="patient")
OF_LABELS = Schema(COLUMNS, target={"categories": [0, 1]}, person="patient")


def test_a_pipeline_gets_persons_with_scikit_learns_routing_as_without() -> None:
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    steps = DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression()
    model = PrivateConformalClassifier(
        make_pipeline(*steps), coverage=0.5, random_state=0, **BUDGET
    )
    with config_context(enable_metadata_routing=True):
        routed = clone(model).fit(X, LABELS, groups=PEOPLE)
    plain = clone(model).fit(X, LABELS, groups=PEOPLE)
    for step, other in zip(routed.estimator_, plain.estimator_, strict=True):
        assert step.privacy_.neighbouring == other.privacy_.neighbouring == PERSON
    np.testing.assert_array_equal(routed.estimator_[-1].coef_, plain.estimator_[-1].coef_)
    assert routed.quantile_ == plain.quantile_


@pytest.mark.parametrize("routing", [False, True])
def test_the_schema_names_persons_inside_and_around_scikit_learns_routing(routing: bool) -> None:
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    inside = make_private_pipeline(DPRidge(), OF_NUMBERS)
    settings: dict[str, Any] = {"coverage": 0.5, "random_state": 0, **BUDGET}
    around = make_private_pipeline(PrivateConformalRegressor(DPRidge(), **settings), OF_NUMBERS)
    curves = make_private_pipeline(
        PrivateScoreCurves(DPLogisticRegression(), insist=True, **BUDGET), OF_LABELS
    )
    with config_context(enable_metadata_routing=routing):
        one = PrivateConformalRegressor(inside, **settings).fit(TABLE, TARGETS)
        two = around.fit(TABLE, TARGETS)
        three = curves.fit(TABLE, LABELS)
    assert one.half_width_ == two[-1].half_width_
    for found in (one, two, three):
        assert privacy_of(found).neighbouring == PERSON
    assert three[-1].histogram_.counts.shape[0] == 2
    with pytest.raises(TypeError, match="groups must be left out"):
        PrivateConformalRegressor(inside, **settings).fit(TABLE, TARGETS, groups=PEOPLE)
    with pytest.raises(ValueError, match="X must be a DataFrame with the column 'patient'"):
        PrivateConformalRegressor(inside, **settings).fit(X, TARGETS)


def test_a_fitted_pipeline_has_curves_by_persons() -> None:
    model = make_private_pipeline(DPLogisticRegression(random_state=0), OF_LABELS)
    held = FrozenEstimator(model.fit(TABLE, LABELS))
    curves = PrivateScoreCurves(held, insist=True, **BUDGET).fit(TABLE, LABELS)
    assert curves.privacy_.neighbouring == PERSON


@pytest.mark.parametrize(
    ("kind", "more"),
    [(PrivateScoreCurves, {}), (PrivateThreshold, {"metric": "recall", "at_least": 0.5})],
)
def test_a_threshold_around_a_pipeline_with_persons_says_what_to_write(
    kind: Any, more: dict[str, Any]
) -> None:
    model = make_private_pipeline(DPLogisticRegression(random_state=0), OF_LABELS)
    words = f"make_private_pipeline({kind.__name__}(DPLogisticRegression(...), ...), schema)"
    with pytest.raises(TypeError, match=f"names their column.*{re.escape(words)}"):
        kind(model, epsilon=1.0, **more).fit(TABLE, LABELS)
    inside = make_private_pipeline(
        kind(DPLogisticRegression(random_state=0), insist=True, **BUDGET, **more),
        OF_LABELS,
    )
    assert inside.fit(TABLE, LABELS)[-1].privacy_.neighbouring == PERSON
