"""Searches with a release follow their plan, and show nothing else."""

from __future__ import annotations

import math
import pickle
import sys
import time
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

from skdptune.accounting import GaussianFilter, PrivacyProfile, RenyiFilter
from skdptune.metrics import BoundedScorer, accuracy
from skdptune.model_selection import DParetoSearchCV
from tests.flat import flat
from tests.model_selection.learners import Private, Scripted, Told, table
from tests.model_selection.pareto.plans import (
    DELTA,
    gaussian_epsilon,
    largest_mu,
)
from tests.model_selection.test_release import numbers, visible

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytest.importorskip("optuna")

X, Y = table(600)


class Failing(Scripted):
    """Fails below a quality of 0.6, with a record in its message."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Failing:
        if self.quality < 0.6:
            raise ValueError(f"secret exception about {X[0, 1]}")
        return super().fit(X, y)


class Coarse(Failing):
    """Has few different costs, which are cached."""

    def _checked_budget(self) -> tuple[float, float]:
        epsilon, delta = super()._checked_budget()
        return float(f"{epsilon:.1g}"), delta


def search(sampler: Any = "random", estimator: Any = Coarse, **more: Any) -> DParetoSearchCV:
    settings: dict[str, Any] = {
        "n_initial": 6,
        "n_iter": 6,
        "release": 12.0,
        "random_state": 0,
        "sampler": sampler,
        **more,
    }
    space = {"epsilon": (0.2, 6.0, "log"), "quality": (0.4, 0.9417)}
    return flat(DParetoSearchCV, estimator(delta=1e-7), space, **settings)


def squares_of(fitted: Any) -> np.ndarray:
    """Return the squared shifts of the evaluated fits, computed only from their parameters."""
    return np.array(
        [
            fitted.estimator.set_params(**row).privacy_profile(600).rdp(2.0)
            for row in fitted.evaluations_.params
        ]
    )


@pytest.mark.parametrize("cv", [0.2, 3])
def test_everything_that_was_done_fits_the_total(cv: Any) -> None:
    # Theorem G3: a released Pareto front.
    fitted = search(cv=cv, n_repeats=2).fit(X, Y)
    fits = 2 * (2 if cv == 3 else 1)
    trained = fits * squares_of(fitted).sum()
    plan = fitted._make_plan(600, 3, classes=[0, 1]).release
    scored = len(fitted.hypervolume_history_) and plan.n_evaluations / plan.noise.ratio**2
    exact = gaussian_epsilon(math.sqrt(trained + (scored if cv == 3 else 0.0)))
    assert exact <= 12.0
    assert fitted.privacy_.epsilon == 12.0
    assert fitted.privacy_.epsilon_spent <= 12.0
    assert fitted.privacy_.profile == fitted.privacy_profile(600, 3)
    assert not any("NOT PRIVATE" in words for words in fitted.privacy_.assumptions)


def test_adaptive_search_of_many_costs_keeps_to_its_budget() -> None:
    """Proposals follow the good scores, which here are expensive."""
    fitted = search("auto", Failing, n_iter=20, release=8.0)
    fitted.fit(X, Y)
    total = fitted._make_plan(600, 3, classes=[0, 1]).release.filter()
    assert isinstance(total, GaussianFilter)
    budget = largest_mu(8.0, DELTA * (1 - 1e-6) * 0.999) ** 2
    # Beside cheap ones, at least one of the expensive.
    assert 0.1 * budget < squares_of(fitted).sum() <= budget
    assert fitted.privacy_.epsilon_spent <= 8.0


class Pure(Failing):
    """Has pure guarantees, of which divergences admit more."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        return PrivacyProfile.pure(self.epsilon)


def test_adaptive_search_of_pure_costs_keeps_to_its_order() -> None:
    """Proposals follow the good scores, which here are expensive."""
    fitted = search("auto", Pure, n_iter=6, release=8.0)
    fitted.fit(X, Y)
    total = fitted._make_plan(600, 3, classes=[0, 1]).release.filter()
    assert isinstance(total, RenyiFilter)
    order, left = total.order, DELTA * (1 - 1e-6)
    budget = 8.0 + (math.log(left * (order - 1)) - order * math.log(1 - 1 / order)) / (order - 1)
    spent = 0.0
    for row in fitted.evaluations_.params:
        # Randomised response.
        high, low = -np.logaddexp(0.0, [-row["epsilon"], row["epsilon"]])
        a = order
        spent += np.logaddexp(a * high + (1 - a) * low, a * low + (1 - a) * high) / (a - 1)
    assert 0.3 * budget < spent <= budget
    assert fitted.privacy_.epsilon_spent <= 8.0


@pytest.mark.filterwarnings("ignore:All evaluations cost")
def test_equal_costs_are_composed() -> None:
    fitted = flat(
        DParetoSearchCV,
        Failing(epsilon=0.5, delta=1e-7),
        {"quality": (0.6, 0.9)},
        n_initial=4,
        n_iter=100,
        sampler="random",
        release=3.0,
        random_state=0,
    ).fit(X, Y)
    mu = squares_of(fitted)[0] ** 0.5
    count = len(fitted.evaluations_)
    assert gaussian_epsilon(mu * math.sqrt(count)) <= 3.0
    assert gaussian_epsilon(mu * math.sqrt(count + 1)) > 3.0 * 0.998
    assert f"{count} evaluations of equal cost" in str(fitted.privacy_)


@pytest.mark.filterwarnings("ignore:All evaluations cost")
def test_estimator_that_hides_what_sets_its_cost_is_not_believed() -> None:
    class Lying(Scripted):
        cost_parameters = frozenset({"delta"})

    fitted = flat(
        DParetoSearchCV,
        Lying(delta=1e-7),
        {"epsilon": [0.5, 4.0], "quality": (0.6, 0.9)},
        n_initial=4,
        n_iter=20,
        sampler="random",
        release=12.0,
        random_state=0,
    ).fit(X, Y)
    # Only the cost that the plan knows of is paid.
    assert len({row["epsilon"] for row in fitted.evaluations_.params}) == 1
    assert gaussian_epsilon(math.sqrt(squares_of(fitted).sum())) <= 12.0


def test_final_model_keeps_to_its_half_of_delta() -> None:
    fitted = search(refit=2.0, n_initial=12).fit(X, Y)
    model = fitted.best_estimator_
    assert model.privacy_.epsilon_at(DELTA / 2) <= 2.0
    assert fitted.privacy_.epsilon == 14.0
    assert fitted.privacy_.parts[-1].name == "final fit"
    costs = [
        Coarse(**row, delta=1e-7).privacy_profile(600).epsilon(DELTA / 2)
        for row in fitted.evaluations_.params
    ]
    errors = np.where(np.array(costs) <= 2.0, fitted.evaluations_.error, np.inf)
    assert fitted.best_index_ == int(np.argmin(errors))


def test_plan_has_the_noise_and_the_cost() -> None:
    made = search(n_repeats=2)
    plan = made.plan(600, 3)
    made.fit(X, Y)
    assert plan.report == made.privacy_
    assert plan.epsilon == made.privacy_.epsilon_spent <= 12.0
    assert plan.row.expected_fits == 24.0
    ratio = math.sqrt(12) / largest_mu(12.0)
    assert plan.score_noise == pytest.approx(ratio * accuracy().sensitivity(120), rel=1e-2)
    assert "DParetoSearchCV" in str(plan)


# What is not charged is not shown ----------


def test_scores_have_the_noise_that_was_planned() -> None:
    scale = search(release=9.0, n_iter=8).plan(600, 3).score_noise
    found = []
    for seed in range(4):
        fitted = search(release=9.0, n_iter=8, random_state=seed).fit(X, Y)
        table_ = fitted.evaluations_
        good = table_[table_.param_quality.between(0.7, 0.9)]
        # The split is secret: the exact score on all records is near enough.
        exact = [np.mean(X[:, 1] >= quality) for quality in good.param_quality]
        found += (good.error - np.array(exact)).tolist()
    spread = math.hypot(scale, math.sqrt(0.2 * 0.8 / 120))
    assert len(found) > 12
    assert 0.6 * spread < np.std(found) < 1.6 * spread


def test_failing_looks_like_scoring_the_worst() -> None:
    fitted = search(release=5.0, n_iter=20).fit(X, Y)
    failed = fitted.evaluations_[fitted.evaluations_.param_quality < 0.6]
    assert len(failed) >= 3
    # Noised around the worst, and clipped there: the half below 0 utility is at error 1.
    assert (failed.error > 0.5).all()
    assert (failed.error < 1.0).any()
    assert not fitted.evaluations_.error.isna().any()
    assert "failure" not in fitted.evaluations_.columns


@pytest.mark.parametrize("sampler", ["random", "auto"])
def test_nothing_else_is_found(
    sampler: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    exact: list[float] = []
    times = iter(range(10**9))
    score = BoundedScorer.score

    def noting(*given: Any, **more: Any) -> float:
        exact.append(score(*given, **more))
        return exact[-1]

    monkeypatch.setattr(BoundedScorer, "score", noting)
    monkeypatch.setattr(time, "perf_counter", lambda: next(times) * 98765.25)
    fitted = search(sampler, n_repeats=2, verbose=0, refit=3.0).fit(X, Y)
    # Those whose fits fail have none.
    assert len(set(exact)) > 3
    captured = capfd.readouterr()
    everything = visible(fitted) + captured.out + captured.err
    for word in ("secret exception", "Traceback", "datetime", "TrialState"):
        assert word not in everything
    secret = {*exact, *(1.0 - np.array(exact)).tolist(), 98765.25}
    # A utility of 0 or 1 is what the noise is clipped to as well.
    shown = numbers(fitted) - {0.0, 1.0}
    assert secret & shown == set()
    content = pickle.dumps(fitted)
    for value in {*exact, 98765.25} - {0.0, 1.0}:
        # Numbers are pickled big end first, arrays as they are.
        stored = np.float64(value).tobytes()
        assert stored not in content and stored[::-1] not in content
    assert not hasattr(fitted, "study_") and fitted.result_.study_ is None
    assert set(fitted.fronts_) == {"mean"}
    hidden = {"seconds", "spread", "utilities", "failure"}
    assert not hidden & set(fitted.evaluations_.columns)


def test_the_guard_finds_what_is_shown_without_a_release() -> None:
    with pytest.warns(FitFailedWarning, match="secret exception"):
        fitted = search(release=None).fit(X, Y)
    assert "secret exception" in visible(fitted)
    assert {"seconds", "spread", "utilities", "failure"} <= set(fitted.evaluations_.columns)


def test_one_record_moves_an_error_by_no_more_than_its_sensitivity() -> None:
    """The same noise and the same points; the record is scored wrong by all repeats."""

    class Odd(Scripted):
        def predict(self, X: Any) -> np.ndarray:
            if (np.asarray(X)[:, 2] == 7.0).any():
                raise ValueError("a record")
            return super().predict(X)

    more = np.vstack([X, [1.0, 0.0, 7.0]]), np.append(Y, 1)
    few = {"n_initial": 4, "n_iter": 0, "n_repeats": 3, "n_public": 600, "release": 40.0}
    moved = []
    for seed in range(6):
        made = [
            search(estimator=Odd, random_state=seed, **few).fit(*data).evaluations_["error"]
            for data in ((X, Y), more)
        ]
        moved.append(np.abs(made[0] - made[1]).max())
    limit = accuracy().sensitivity(120)
    assert max(moved) == pytest.approx(limit) and min(moved) == 0.0


def test_fits_are_told_public_sizes() -> None:
    Told.heard.clear()
    search(estimator=Told, refit=2.0, n_initial=3, n_iter=0).fit(X, Y)
    assert {size for size, _ in Told.heard} <= {480, None}


class Slow(Private):
    """Takes its time: what ends first would depend on it."""

    def __init__(self, wait: float = 0.0, epsilon: float = 1.0, delta: float = 1e-7) -> None:
        self.wait = wait
        self.epsilon = epsilon
        self.delta = delta
        self.n_public = None

    random_state = None

    def fit(self, X: Any, y: Any) -> Slow:
        self._start(X, y)
        time.sleep(self.wait)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self._table(X)[:, 0] > 0).astype(int)]


def test_what_ends_first_changes_nothing() -> None:
    found = []
    for wait in (0.0, 0.05):
        search = flat(
            DParetoSearchCV,
            Slow(wait),
            {"epsilon": (0.2, 6.0, "log")},
            n_initial=3,
            n_iter=3,
            batch_size=2,
            n_jobs=2,
            release=12.0,
            random_state=0,
            sampler="hvpoi",
        )
        with joblib.parallel_config(backend="threading"):
            fitted = search.fit(X, Y)
        found.append(fitted.evaluations_)
    np.testing.assert_array_equal(found[0].error, found[1].error)
    np.testing.assert_array_equal(found[0].epsilon, found[1].epsilon)
