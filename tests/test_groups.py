"""Fits by persons: one person with all of their rows moves a release by its sensitivity at most.

The oracle fixes the released values, so that all rounds of a fit have the same public state. It
compares the exact values with and without a whole person. It must detect fits that count by rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline

from skdptune import DPRandomSearchCV, RandomRuns
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin, privacy_of
from skdptune.base._shared import Persons, paid_for, persons_of
from skdptune.ensemble import (
    DPExplainableBoostingClassifier,
    DPExplainableBoostingRegressor,
    _boosting,
    _pairs,
)
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.ledger._shared import ADD_OR_REMOVE, PERSON, PERSON_ZEROED
from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
)
from skdptune.linear_model._regression import _regressions
from skdptune.linear_model._solvers import (
    LOGISTIC,
    Design,
    PublicProblem,
    _noisy_gradient,
    _output,
    margin_residuals,
    plan_objective,
)
from skdptune.mechanisms import _noise
from skdptune.mechanisms._quantiles import ROUNDING, counts_of_points, ranked_runs
from skdptune.preprocessing import BoundedScaler, DPMinMaxScaler, DPStandardScaler, Schema
from tests.parts import in_parts

WIDTH, P = 3, 30
SIZES = [1, 2, 50, 5000]
rng = np.random.default_rng(0)
PEOPLE = np.repeat(np.arange(P), rng.integers(1, 7, size=P))
X = rng.normal(size=(PEOPLE.size, WIDTH))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=PEOPLE.size) > 0, 1, 0)
T = np.clip(X @ [0.4, -0.3, 0.1], -1, 1)

BOUNDS = {"target_bound": 1.0, "random_state": 0}
LABELS = {"classes": [0, 1], "random_state": 0}


class InParts(in_parts(DPRidge)):
    """One that can be pickled."""


REGRESSORS = [
    DPRidge(**BOUNDS),
    DPRidge(alpha=1.0, fit_intercept=False, **BOUNDS),
    AdaSSPLinearRegression(**BOUNDS),
    OutputPerturbationLinearRegression(**BOUNDS),
    InParts(**BOUNDS),
]
CLASSIFIERS = [
    DPLogisticRegression(**LABELS),
    DPLogisticRegression(class_weight={0: 1.0, 1: 0.3}, **LABELS),
    DPLogisticRegression(classes=[0, 1, 2], random_state=0),
    DPLogisticRegression(max_grad_norm=0.01, C=1.0, **LABELS),
    DPLogisticRegression(solver="adam", batch_size=1.0, **LABELS),
    DPLinearSVC(**LABELS),
    DPLinearSVC(solver="output", **LABELS),
]
OBJECTIVES = [
    DPLogisticRegression(solver="objective", **LABELS),
    DPLogisticRegression(solver="objective", classes=[0, 1, 2], C=0.5, random_state=0),
    DPLinearSVC(delta=0.0, **LABELS),
]
BOOSTED = [
    DPExplainableBoostingClassifier(bounds=(-2, 2), max_rounds=9, interactions=1, **LABELS),
    DPExplainableBoostingClassifier(
        bounds=(-2, 2), max_rounds=5, classes=[0, 1, 2], class_weight={1: 0.3}, random_state=0
    ),
    DPExplainableBoostingRegressor(bounds=(-2, 2), max_rounds=5, **BOUNDS),
]
SCALERS = [
    DPStandardScaler(bounds=(-2, 2), random_state=0),
    DPStandardScaler(delta=0.0, bounds=(-2, 2), random_state=0),
    DPMinMaxScaler(bounds=(-2, 2), random_state=0),
]
SAMPLED = [
    DPLogisticRegression(solver="sgd", batch_size=8, epochs=2, **LABELS),
    DPLogisticRegression(solver="sgd", batch_size=8, epochs=2, sampling="allocation", **LABELS),
    DPLogisticRegression(solver="sgd", batch_size=8, epochs=2, sampling="fixed", **LABELS),
    DPLogisticRegression(solver="psgd", **LABELS),
]
ALONE = [*REGRESSORS, *CLASSIFIERS, *SCALERS, *SAMPLED, *BOOSTED]
ALL = [*ALONE, *OBJECTIVES]


def name_of(estimator):
    parameters = str(estimator).partition("(")[2][:50]
    return f"{type(estimator).__name__}-{parameters}"


def target_of(estimator, X=X, Y=Y, T=T):
    if isinstance(estimator, tuple(type(one) for one in SCALERS)):
        return None
    return T if hasattr(estimator, "target_bound") else Y


def learned(estimator):
    """Return everything that a fit publishes as one array."""
    names = ("coef_", "intercept_", "mean_", "scale_", "data_min_", "data_max_")
    found = [np.ravel(getattr(estimator, name)) for name in names if hasattr(estimator, name)]
    for name in ("term_scores_", "bin_weights_", "bins_", "pair_scores_"):
        found += [np.ravel(one) for one in getattr(estimator, name, ())]
    return np.concatenate(found)


# The oracle ------------------------------------------------------------------------------------


@contextmanager
def frozen_releases() -> Iterator[list[tuple[np.ndarray, float]]]:
    """Collect exact values with their sensitivities; what is published does not depend on them."""
    seen: list[tuple[np.ndarray, float]] = []

    def published(value: Any, scale: float) -> np.ndarray:
        generator = np.random.default_rng(len(seen))
        return scale * generator.normal(size=np.shape(value))

    def released(value: Any, sensitivity: float, scale: float, random: Any, noise: str) -> Any:
        exact = np.ravel(value)
        norm = np.linalg.norm(exact, 1 if noise == "laplace" else 2)
        assert np.isfinite(norm)
        made = published(value, scale)
        seen.append((exact.copy(), sensitivity))
        return float(made) if np.ndim(value) == 0 else made

    def step_noise(plans: Any, limits: Any, n_weights: int, rngs: Any) -> Any:
        (plan,), (limit,) = plans, limits

        def added(total: np.ndarray) -> np.ndarray:
            made = published(total, plan.noise_multiplier * limit)
            seen.append((total.ravel().copy(), limit))
            return made

        return added

    def weights_noise(values: np.ndarray, scale: float, is_pure: bool, rng: Any) -> np.ndarray:
        seen.append((values.copy(), scale))
        return published(values, scale)

    class Noise:
        """Boosting's noise, on counts and on sums of residuals."""

        def __init__(self, scale: float, rng: Any) -> None:
            self.scale = scale

        def added_to(self, values: np.ndarray) -> np.ndarray:
            # With three outputs, residuals have a norm of at most the root of 2.
            many = np.ndim(values) == 2 and len(values) > 1
            seen.append((np.ravel(values).copy(), np.sqrt(2.0) if many else 1.0))
            return published(values, self.scale)

    def counts(values: np.ndarray, scale: float, rng: Any) -> np.ndarray:
        return Noise(scale, rng).added_to(values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise, "_released", released)
        patch.setattr(_boosting, "NormalNoise", Noise)
        patch.setattr(_boosting, "add_gaussian", counts)
        patch.setattr(_pairs, "add_gaussian", counts)
        patch.setattr(_noisy_gradient, "noise_of_steps", step_noise)
        patch.setattr(_output, "add_noise", weights_noise)
        patch.setattr(_regressions, "add_noise", weights_noise)
        yield seen


def person_rows(k: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of one person: extreme copies of one row, or different rows."""
    generator = np.random.default_rng(k)
    if kind == "same":
        rows = np.tile([1e6, -1e6, 1e6], (k, 1))
        return rows, np.ones(k, dtype=int), np.full(k, 1e9)
    rows = generator.normal(size=(k, WIDTH)) * generator.choice([0.01, 1.0, 1e3], size=(k, 1))
    return rows, generator.integers(0, 2, size=k), generator.normal(size=k)


def change_of(estimator: Any, k: int, kind: str) -> float:
    """Return the largest change by one person of any value, in units of its sensitivity."""
    rows, labels, targets = person_rows(k, kind)
    public = clone(estimator).set_params(n_public=P)
    order = np.random.default_rng(1).permutation(PEOPLE.size + k)
    with frozen_releases() as seen:
        y = target_of(estimator)
        public.fit(X, y, groups=PEOPLE)
        before = list(seen)
        seen.clear()
        more = target_of(
            estimator, None, np.concatenate([Y, labels]), np.concatenate([T, targets])
        )
        people = np.append(PEOPLE, np.full(k, P))
        together = np.concatenate([X, rows])[order]
        public.fit(together, None if more is None else more[order], groups=people[order])
    assert len(seen) == len(before) > 0
    is_laplace = getattr(estimator, "delta", 1.0) == 0.0
    scale = 1.0
    if seen and getattr(estimator, "solver", "") == "output":
        plan = public.plan_
        scale = plan.sensitivity / plan.noise_scale
    elif isinstance(estimator, OutputPerturbationLinearRegression):
        scale = 1.0 / public._plan(public._size_bound(P), WIDTH).noise_multiplier
    changes = [
        np.linalg.norm(after - former, 1 if is_laplace else 2) / (sensitivity * scale)
        for (former, sensitivity), (after, _) in zip(before, seen, strict=True)
    ]
    return float(max(changes))


ORACLE = [*REGRESSORS, *CLASSIFIERS, *SCALERS, *BOOSTED]
ORACLE = [one for one in ORACLE if type(one) is not DPMinMaxScaler]


@pytest.mark.parametrize("estimator", ORACLE, ids=name_of)
def test_one_person_moves_every_release_by_its_sensitivity_at_most(estimator):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    for k in SIZES:
        for kind in ("same", "different"):
            assert change_of(estimator, k, kind) <= 1.0 + 1e-9


@pytest.mark.parametrize("estimator", ORACLE, ids=name_of)
def test_the_oracle_finds_fits_that_weigh_rows(estimator, monkeypatch):
    def all_rows(self, units):
        return units

    full = property(lambda self: np.full(self.codes.size, 2**30))
    monkeypatch.setattr(Persons, "weights", full)
    monkeypatch.setattr(Persons, "shares", property(lambda self: np.ones(self.codes.size)))
    monkeypatch.setattr(Persons, "means", all_rows)
    monkeypatch.setattr(Persons, "by_weight", lambda self: iter([(2**30, slice(None))]))
    assert change_of(estimator, 50, "same") > 2.0


def test_the_oracle_finds_weights_that_multiply_before_the_clip(monkeypatch):
    def scaled(self, persons):
        if persons is None:
            return self
        return Design.clipped(self.rows * persons.shares[:, None], np.inf, self.intercept)

    monkeypatch.setattr(Design, "by_persons", scaled)
    assert change_of(DPLogisticRegression(solver="adam", batch_size=1.0, **LABELS), 50, "same") > 2


@pytest.mark.parametrize("k", SIZES)
def test_batches_and_permutations_take_a_person_with_all_rows(k):
    # Theorem P14 (ii) and (iv): each person has one coin and one place.
    rows, labels, _ = person_rows(k, "different")
    people, table = np.append(PEOPLE, np.full(k, P)), np.concatenate([X, rows])
    signs = np.where(np.append(Y, labels) == 1, 1.0, -1.0)

    def design(size):
        made = persons_of(people[:size], table[:size])
        return Design.clipped(table[:size], 1.5, True).by_persons(made)

    whole, less = design(people.size), design(PEOPLE.size)
    residuals, generator = margin_residuals(LOGISTIC.derivative), np.random.default_rng(k)
    sums = [
        _noisy_gradient.ClippedGradients(one, signs[: one.n_samples], residuals, 0.1)
        for one in (whole, less)
    ]
    for _ in range(5):
        weights = generator.normal(size=(WIDTH + 1, 1))
        batch = np.flatnonzero(generator.random(P) < 0.3)
        both = [
            sums[0](weights, whole.rows_of(np.append(batch, P))),
            sums[1](weights, less.rows_of(batch)),
        ]
        assert np.linalg.norm(both[0] - both[1]) <= 0.1 * (1.0 + 1e-9)
    problem = PublicProblem(LOGISTIC, np.hypot(1.5, 1.0), 2.0, WIDTH + 1, P + 1)
    plan = _output.plan_permutation(problem, epsilon=1.0, delta=1e-5, batch_size=4)
    order = generator.permutation(P + 1)
    ends = [
        _output.last_weights(plan, one, signs[: one.n_samples], order) for one in (whole, less)
    ]
    assert 0.0 < np.linalg.norm(ends[0] - ends[1]) <= plan.sensitivity


@pytest.mark.parametrize("k", SIZES)
def test_one_person_moves_every_rank_by_at_most_one_record(k):
    # Theorem P14, Theorem R1.
    generator = np.random.default_rng(k)
    points = generator.integers(0, 101, size=PEOPLE.size + k)
    people = np.append(PEOPLE, np.full(k, P))
    grid = np.arange(101)
    for share in (0.05, 0.5, 0.9):
        found = []
        for size in (people.size, PEOPLE.size):
            weights = persons_of(people[:size], points[:size]).weights
            starts, utilities = ranked_runs(counts_of_points(points[:size], weights), share, 100)
            found.append(utilities[np.searchsorted(starts, grid, side="right") - 1])
        assert np.abs(found[0] - found[1]).max() <= max(share, 1.0 - share) + ROUNDING


# Changes without an effect
# --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ALONE, ids=name_of)
def test_with_one_row_for_each_person_nothing_changes(estimator):
    # Theorem P14: the results have the same bits and the same cost.
    y = target_of(estimator)
    alone = clone(estimator).fit(X, y)
    ids = [f"person {place}" for place in np.random.default_rng(0).permutation(len(X))]
    by_persons = clone(estimator).fit(X, y, groups=ids)
    assert_array_equal(learned(by_persons), learned(alone))
    assert by_persons.privacy_.profile == alone.privacy_.profile
    pair = {"psgd": PERSON_ZEROED}.get(getattr(estimator, "solver", ""), PERSON)
    assert by_persons.privacy_.neighbouring == pair
    assert "person" not in alone.privacy_.neighbouring


@pytest.mark.parametrize("estimator", ALONE, ids=name_of)
def test_a_row_that_is_there_many_times_is_there_once(estimator):
    y = target_of(estimator)
    alone = clone(estimator).fit(X, y)
    times = np.repeat(np.arange(len(X)), np.random.default_rng(0).choice([1, 2, 4, 7], len(X)))
    many = clone(estimator).fit(X[times], None if y is None else y[times], groups=times)
    assert_allclose(learned(many), learned(alone), rtol=1e-5, atol=1e-5)
    for name in ("n_iter_", "noise_scale_", "n_samples_seen_"):
        assert getattr(many, name, None) == getattr(alone, name, None)
    assert str(getattr(many, "plan_", "")) == str(getattr(alone, "plan_", ""))
    assert many.privacy_.profile == alone.privacy_.profile
    assert set(vars(many)) == set(vars(alone))


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_neither_ids_nor_the_order_of_rows_matter(estimator):
    y = target_of(estimator)
    given = clone(estimator).fit(X, y, groups=PEOPLE)
    renamed = clone(estimator).fit(X, y, groups=[f"{(7 * one) % 31}x" for one in PEOPLE])
    assert_array_equal(learned(renamed), learned(given))
    # Persons keep the order of their first rows, by which samplings draw them.
    first = np.unique(PEOPLE, return_index=True)[1]
    others = np.random.default_rng(1).permutation(np.delete(np.arange(len(X)), first))
    order = np.concatenate([first, others])
    moved = clone(estimator).fit(X[order], None if y is None else y[order], groups=PEOPLE[order])
    assert_allclose(learned(moved), learned(given), rtol=1e-6, atol=1e-6)
    if estimator in (REGRESSORS[1], REGRESSORS[2], *SCALERS):
        assert_array_equal(learned(moved), learned(given))


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_rows_without_an_id_have_no_effect_whatever_they_hold(estimator):
    y = target_of(estimator)
    given = clone(estimator).fit(X, y, groups=PEOPLE.astype(object))
    places = np.random.default_rng(0).permutation(len(X) + 3)
    for odd in (0.0, 1e300, np.nan):
        rows = np.concatenate([X, np.full((3, WIDTH), odd)])[np.sort(places)]
        more = None if y is None else np.append(y, [1, 0, 1])
        ids = [*PEOPLE.tolist(), None, np.nan, True]
        both = clone(estimator).fit(rows, more, groups=ids)
        assert_array_equal(learned(both), learned(given))


def test_improper_rows_count_among_the_rows_of_their_person():
    # Rule (b): a row that becomes constant still has its share.
    rows, labels, people = np.array([[1.0], [np.nan], [-1.0]]), [1, 1, 0], ["a", "a", "b"]
    model = DPLogisticRegression(epsilon=np.inf, solver="output", **LABELS)
    found = model.fit(rows, labels, groups=people).coef_
    constant = clone(model).fit(np.nan_to_num(rows), [1, 0, 0], groups=people)
    assert_array_equal(constant.coef_, found)
    dropped = clone(model).fit(rows[::2], labels[::2], groups=people[::2])
    assert not np.allclose(dropped.coef_, found)


def test_tables_of_any_kind_are_read_by_persons():
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(patient=PEOPLE)
    model = DPLogisticRegression(**LABELS)
    wanted = clone(model).fit(X, Y, groups=PEOPLE).coef_
    by_name = clone(model).fit(table[["a", "b", "c"]], Y, groups=table["patient"])
    assert_array_equal(by_name.coef_, wanted)
    assert by_name.feature_names_in_.tolist() == ["a", "b", "c"]
    thin = clone(model).fit(sparse.csr_matrix(X), Y, groups=PEOPLE)
    assert_allclose(thin.coef_, wanted, rtol=1e-9)
    several = DPRidge(target_bound=[(-1, 1), (-2, 2)], random_state=0)
    both = clone(several).fit(X, np.stack([T, 2 * T], axis=1), groups=PEOPLE)
    assert both.coef_.shape == (2, WIDTH)


def test_objective_perturbation_is_priced_for_persons():
    # Theorem M8: the same regularization, more noise, and the cost that a ledger records.
    model = DPLogisticRegression(solver="objective", C=1e-3, **LABELS)
    by_rows = clone(model).fit(X, Y)
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger:
        by_persons = clone(model).fit(X, Y, groups=np.arange(len(X)))
    assert by_persons.plan_.regularization == by_rows.plan_.regularization
    assert 1.0 < by_persons.plan_.noise_multiplier / by_rows.plan_.noise_multiplier < 1.02
    problem = by_persons.plan_.problem
    wanted = plan_objective(problem, epsilon=1.0, delta=1e-5, persons=True)
    assert by_persons.privacy_.profile == wanted.profile != by_rows.privacy_.profile
    # A cost that did not cover the fit would cause a second charge.
    assert len(ledger.history()) == 1
    assert clone(by_persons).privacy_profile(len(X), WIDTH) == by_rows.privacy_.profile
    several = DPLogisticRegression(solver="objective", classes=[0, 1, 2], random_state=0)
    report = several.fit(X, Y, groups=PEOPLE).privacy_
    assert 0.99 < report.epsilon_spent <= 1.0


def test_a_payer_that_knows_the_price_of_rows_cannot_fit_the_objective_by_persons():
    # Theorem M8: objective perturbation where one person has any number of rows.
    class Around(PrivateEstimatorMixin, BaseEstimator):
        epsilon, delta, random_state = 1.0, 1e-5, None

        def __init__(self, estimator=None):
            self.estimator = estimator

        def privacy_profile(self, n_samples, n_features=None):
            return self.estimator.privacy_profile(n_samples, n_features)

        def fit(self, X, y):
            with paid_for(self.estimator):
                self.estimator.fit(X, y, groups=PEOPLE)
            return self

    Around(DPLogisticRegression(**LABELS)).fit(X, Y)
    with pytest.raises(TypeError, match="Use solver='output', or a delta above 0"):
        Around(DPLogisticRegression(solver="objective", **LABELS)).fit(X, Y)


# Shown values and refused arguments -----------------------------------------------------------


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_a_fit_keeps_nothing_of_ids_and_numbers_of_rows(estimator):
    y = target_of(estimator)
    texts = []
    for times in (1, 3):
        ids = [f"patient-{one}" for one in PEOPLE] * times
        rows, more = np.tile(X, (times, 1)), None if y is None else np.tile(y, times)
        fitted = clone(estimator).fit(rows, more, groups=ids)
        stored = pickle.dumps(fitted)
        assert b"patient-" not in stored
        plan = str(getattr(fitted, "plan_", ""))
        texts.append((f"{fitted} {fitted.privacy_}", plan, len(stored), sorted(vars(fitted))))
    assert texts[0] == texts[1]
    assert "the number of persons is public" in texts[0][0]
    assert "the number of records is public" not in texts[0][0]
    assert PERSON in texts[0][0] or PERSON_ZEROED in texts[0][0]


REFUSING = [
    PTRLinearRegression(**BOUNDS),
    OPSLinearRegression(**BOUNDS),
    AdaOPSLinearRegression(**BOUNDS),
    DPRandomSearchCV(DPLogisticRegression(solver="objective"), {"C": [1.0]}, epsilon=1.0),
    DPRandomSearchCV(
        DPLogisticRegression(),
        {"solver": ["adam", "objective"]},
        epsilon=1.0,
        strategy=RandomRuns(),
    ),
    DPRandomSearchCV(PTRLinearRegression(**BOUNDS), {"failure_probability": [1e-9]}, epsilon=1.0),
]


@pytest.mark.parametrize("estimator", REFUSING, ids=name_of)
def test_what_cannot_protect_persons_says_what_can(estimator):
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger, pytest.raises(TypeError, match=r"groups must be None for .*(Ridge|output)"):
        estimator.fit(X, Y, groups=PEOPLE)
    assert not list(ledger.history())


def test_groups_inside_of_a_search_or_of_many_fits_are_refused():
    pipeline = make_pipeline(BoundedScaler(bounds=(-2, 2)), DPLogisticRegression(**LABELS))
    search = DPRandomSearchCV(
        pipeline, {"dplogisticregression__C": [1.0]}, epsilon=1.0, random_state=0
    )
    with pytest.raises(TypeError, match="a search gives the persons to all steps"):
        search.fit(X, Y, dplogisticregression__groups=PEOPLE)
    with pytest.raises(TypeError, match="groups must be None for PTRLinearRegression.fit_many"):
        DPRidge.fit_many([DPRidge(**BOUNDS), PTRLinearRegression(**BOUNDS)], X, T, groups=PEOPLE)


def test_many_regressions_by_persons_are_fitted_in_one_pass():
    # Theorem P14: each as alone, and for each of the bounds from the same rows.
    models = [
        *REGRESSORS,
        DPRidge(data_norm=0.5, **BOUNDS),
        DPRidge(data_norm=9.0, n_public=50, **BOUNDS),
    ]
    ledger = PrivacyLedger(":memory:", "visits", epsilon=99.0, delta=1e-2)
    with ledger:
        many = DPRidge.fit_many([clone(one) for one in models], X, T, groups=PEOPLE)
    assert [record.neighbouring for record in ledger.history()] == [PERSON] * len(models)
    for found, model in zip(many, models, strict=True):
        alone = clone(model).fit(X, T, groups=PEOPLE)
        assert_array_equal(found.coef_, alone.coef_)
        assert str(found.privacy_) == str(alone.privacy_)
    several = DPRidge(target_bound=[(-1, 1), (-2, 2)], random_state=0)
    both = DPRidge.fit_many([clone(several)], X, np.stack([T, 2 * T], axis=1), groups=PEOPLE)
    alone = clone(several).fit(X, np.stack([T, 2 * T], axis=1), groups=PEOPLE)
    assert_array_equal(both[0].coef_, alone.coef_)


class OwnGroups(PrivateEstimatorMixin):
    """A user's estimator that uses groups for something else."""

    epsilon, delta, random_state = 1.0, 0.0, None

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(1.0)

    def fit(self, X, y=None, groups=None):
        self.seen_ = groups
        return self


def test_groups_of_a_users_estimator_stay_its_own():
    assert OwnGroups().fit(X, groups=PEOPLE).seen_ is PEOPLE


@pytest.mark.parametrize("size", [4, 400])
def test_messages_do_not_say_how_many_rows_there_are(size):
    rows, ids = np.zeros((size, 2)), np.zeros(size, dtype=int)
    model = DPLogisticRegression(classes=[0, 1])
    wrong = [(rows, ids[1:], ids), (rows, ids, ids[1:]), (rows[:, 0], ids, ids)]
    wrong += [
        (rows[:, :0], ids, ids),
        (rows, ids, np.zeros((size, 2))),
        (rows, ids, [None] * size),
    ]
    for X, y, groups in wrong:
        with pytest.raises(ValueError, match="must") as error:
            model.fit(X, y, groups=groups)
        assert str(size)[1:] not in str(error.value) or size < 100


def test_bad_groups_are_refused_before_anything_is_spent():
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger:
        for groups in (PEOPLE[1:], [None] * len(X), PEOPLE.reshape(-1, 1)):
            with pytest.raises(ValueError, match="groups must"):
                DPLogisticRegression().fit(X, Y, groups=groups)
        with pytest.raises(TypeError, match="in memory"):
            DPRidge(n_public=10, **BOUNDS).fit(iter([(X, T)]), groups=PEOPLE)
    assert not list(ledger.history())


def test_a_ledger_holds_one_unit():
    # Rule (h).
    ledger = PrivacyLedger(":memory:", "visits", epsilon=9.0, delta=1e-3)
    with ledger:
        DPLogisticRegression(**LABELS).fit(X, Y, groups=PEOPLE)
        DPLogisticRegression(solver="psgd", **LABELS).fit(X, Y, groups=PEOPLE)
        with pytest.raises(LedgerError, match="one person with all of their rows|person"):
            DPLogisticRegression(**LABELS).fit(X, Y)
    records = ledger.history()
    assert [record.neighbouring for record in records] == [PERSON, PERSON_ZEROED]
    assert [record.details["n_samples"] for record in records] == [P, P]
    assert any("number of persons is public" in one for one in records[0].assumptions)
    other = PrivacyLedger(":memory:", "rows", epsilon=9.0, delta=1e-3)
    with other:
        DPLogisticRegression(**LABELS).fit(X, Y)
        with pytest.raises(LedgerError, match=ADD_OR_REMOVE):
            DPLogisticRegression(**LABELS).fit(X, Y, groups=PEOPLE)


def test_a_pipeline_with_persons_for_one_step_says_what_was_spent():
    steps = (
        DPStandardScaler(epsilon=0.5, delta=1e-5, bounds=(-2, 2)),
        DPLogisticRegression(**LABELS),
    )
    ledger = PrivacyLedger(":memory:", "visits", epsilon=9.0, delta=1e-3)
    with ledger, pytest.raises(LedgerError, match="STEP__groups=ids") as caught:
        make_pipeline(*steps).fit(X, Y, dplogisticregression__groups=PEOPLE)
    assert [record.name for record in ledger.history()] == ["DPStandardScaler"]
    used = str(ledger.report()).partition(" % of the budget is used")[0].split()[-1]
    assert f"{used} % of the budget was spent before it" in str(caught.value)


def test_a_ledger_of_persons_refuses_rows_before_anything_is_spent():
    steps = (
        DPStandardScaler(epsilon=0.5, delta=1e-5, bounds=(-2, 2)),
        DPLogisticRegression(**LABELS),
    )
    unit = "one person with all of their rows"
    ledger = PrivacyLedger(":memory:", "visits", epsilon=9.0, delta=1e-3, unit=unit)
    with ledger:
        with pytest.raises(LedgerError, match=f"{PERSON}; got '{ADD_OR_REMOVE}' of 'DPStandard"):
            make_pipeline(*steps).fit(X, Y, dplogisticregression__groups=PEOPLE)
        assert not list(ledger.history())
        named = {f"{type(step).__name__.lower()}__groups": PEOPLE for step in steps}
        make_pipeline(*steps).fit(X, Y, **named)
    assert [record.neighbouring for record in ledger.history()] == [PERSON, PERSON]


def test_persons_are_passed_on_by_pipelines():
    steps = DPStandardScaler(bounds=(-2, 2), random_state=0), DPLogisticRegression(**LABELS)
    both = {f"{type(step).__name__.lower()}__groups": PEOPLE for step in steps}
    pipeline = make_pipeline(*steps).fit(X, Y, **both)
    assert privacy_of(pipeline).neighbouring == PERSON
    half = make_pipeline(*map(clone, steps)).fit(X, Y, dplogisticregression__groups=PEOPLE)
    with pytest.raises(TypeError, match="different neighbours"):
        privacy_of(half)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = [clone(step).set_fit_request(groups=True) for step in steps]
        routed = make_pipeline(*asked).fit(X, Y, groups=PEOPLE)
        with pytest.raises(Exception, match="not explicitly set as requested"):
            make_pipeline(*map(clone, steps)).fit(X, Y, groups=PEOPLE)
    assert_array_equal(routed[-1].coef_, pipeline[-1].coef_)
    around = TransformedTargetRegressor(
        DPRidge(**BOUNDS), func=np.negative, inverse_func=np.negative, check_inverse=False
    )
    assert privacy_of(around.fit(X, T, groups=PEOPLE)).neighbouring == PERSON


def test_the_number_of_persons_sets_everything_public():
    few = DPLogisticRegression(delta=1e-3, solver="sgd", batch_size=0.5, **LABELS)
    plan = few.fit(X, Y, groups=PEOPLE).plan_
    assert (plan.n_samples, plan.batch_size) == (P, P // 2)
    hidden = clone(few).set_params(n_public=77).fit(X, Y, groups=PEOPLE).plan_
    assert hidden.n_samples == 77
    nobody = clone(few).set_params(n_public=5).fit(X, Y, groups=[None] * len(X))
    assert np.isfinite(nobody.coef_).all()
    with pytest.warns(UserWarning, match=f"at least 1/n_samples={1 / P:.3g}"):
        clone(few).set_params(delta=0.04).fit(X, Y, groups=PEOPLE)


def test_a_statement_says_the_unit():
    report = DPRidge(**BOUNDS).fit(X, T, groups=PEOPLE).privacy_
    page = str(report.statement())
    assert "likely with one person as without it" in page
    assert "One person, with all of their rows." in page and f"{PERSON}." in page
    assert "with one record" in str(DPRidge(**BOUNDS).fit(X, T).privacy_.statement())
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    with ledger:
        DPRidge(**BOUNDS).fit(X, T, groups=PEOPLE)
    assert "One person, with all of their rows." in str(ledger.statement())


def test_messages_about_shapes_show_no_number_of_rows() -> None:
    """Theorem P14: it is secret. What is refused by its shape costs nothing."""
    X, y = np.zeros((1377, 2)), np.zeros((1377, 2))
    ids = np.repeat(np.arange(459), 3)
    ledger = PrivacyLedger(":memory:", "a", epsilon=9.0, delta=1e-3)
    ridge = DPRidge(delta=1e-6, data_norm=1.0, target_bound=[(0, 1)] * 3, ledger=ledger)
    schema = Schema({"a": (0, 1)}, target=(0, 1), person="id")
    visits = pd.DataFrame({"a": X[:, 0], "id": ids})
    with pytest.raises(ValueError, match=r"got 3 for y of shape \(n_samples, 2\)"):
        ridge.fit(X, y, groups=ids)
    with pytest.raises(ValueError, match=r"got shape \(n_samples, 2, 1\)"):
        DPRidge(delta=1e-6, target_bound=1.0).fit(X[:, :, None], y[:, 0], groups=ids)
    with pytest.raises(ValueError, match="got inconsistent numbers of samples"):
        schema.quality(visits, y[:-1, 0], ledger=ledger)
    assert ledger.history() == []
