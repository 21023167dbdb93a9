"""Evaluations: prices, exact utilities, and noisy ones that no data can stop."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLogisticRegression
from skdptune.metrics import accuracy, neg_brier_score
from skdptune.model_selection._cost._cost_model import NO_NOISE, ScoreNoise
from skdptune.model_selection._cost._layout import make_layout
from skdptune.model_selection._pareto._evaluation import (
    EvaluationCosts,
    PrivateTrial,
    Trial,
    moments_epsilon,
    score_of_all,
    unit_utility,
)
from skdptune.model_selection._pareto._families import Families
from skdptune.model_selection._running._runs import Data
from tests.model_selection.learners import Loud, Scripted, Told, table

DELTA = 1e-5
X, Y = table(400)
SPACE = {"quality": (0.0, 1.0), "epsilon": (0.1, 5.0)}
SEED = np.random.SeedSequence(0)


def layout(**more: Any) -> Any:
    settings = {"cv": 0.25, "public": False, "is_random": False, **more}
    return make_layout(400, 3, tuning_fraction=None, variant=1, refit=True, **settings)


def costs(estimator: Any = None, space: Any = None, **more: Any) -> EvaluationCosts:
    families = Families(estimator or Scripted(), space or SPACE)
    return EvaluationCosts(families, more.pop("layout", None) or layout(), DELTA, **more)


def trial(estimator: Any = None, n_repeats: int = 2, **more: Any) -> Trial:
    settings = {"is_seeded": True, "third": None, **more}
    train, held = np.arange(300), np.arange(300, 400)
    data = Data(X, Y, {}, {})
    return Trial(
        costs(estimator),
        data.take(train),
        [(None, None)],
        data.take(held),
        accuracy(),
        n_repeats,
        **settings,
    )


def private(of: Trial, ratio: float = 0.0) -> PrivateTrial:
    kind = "gaussian" if ratio else "none"
    noise = ScoreNoise(ratio, kind, PrivacyProfile.pure(0.0))
    return PrivateTrial(of, score_of_all(of.costs.layout, of.scorer, of.n_repeats, noise))


# Prices ----------


def test_moments_bound_against_the_moments() -> None:
    mu = 0.8
    found = moments_epsilon(PrivacyProfile.gaussian(mu), DELTA)
    # alpha(m) = log E exp(m * loss) of a Gaussian, integrated numerically for some moments.
    bounds = []
    for m in range(1, 40):
        log_moment = mpmath.log(
            mpmath.quad(
                lambda x, m=m: mpmath.npdf(x, mu, 1) * mpmath.exp(m * (mu * x - mu * mu / 2)),
                [-10, 0, 10, 60],
            )
        )
        bounds.append((log_moment - math.log(DELTA)) / m)
    assert found == pytest.approx(float(min(bounds)), rel=1e-6)
    assert found > PrivacyProfile.gaussian(mu).epsilon(DELTA)


def test_moments_bound_is_refused_where_unknown() -> None:
    with pytest.raises(ValueError, match="privacy must be 'profile' for an estimator whose"):
        moments_epsilon(PrivacyProfile.approximate(1.0, 1e-6), DELTA)
    assert math.isinf(moments_epsilon(PrivacyProfile.gaussian(1.0), 0.0))


def test_prices_of_evaluations_and_of_points() -> None:
    model = DPLogisticRegression(
        solver="sgd", epsilon=None, noise_multiplier=1.0, batch_size=40, epochs=2
    )
    fit_costs = costs(model, {"noise_multiplier": (0.5, 5.0)})
    params = {"noise_multiplier": 2.0}
    final = model.set_params(**params).privacy_profile(400, 3)
    assert fit_costs.final(params) == final
    assert fit_costs(params) == final.epsilon(DELTA)
    # On three quarters of the records, the batch is the same share of them.
    assert fit_costs.of_evaluation(params).epsilon(DELTA) == pytest.approx(
        fit_costs(params), rel=1e-6
    )
    made = fit_costs.configured(params, fit_costs.train_size)
    assert (made.n_public, made.batch_size) == (300, 0.1)
    assert fit_costs.configured(params, fit_costs.final_size).n_public is None


def test_price_that_hangs_on_a_secret_size_is_refused() -> None:
    class Sized(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            return PrivacyProfile.pure(100.0 / n_samples)

    params = {"quality": 0.5, "epsilon": 1.0}
    with pytest.raises(TypeError, match="estimator must have a parameter n_public"):
        costs(Sized()).of_evaluation(params)
    public = costs(Sized(), layout=layout(public=True))
    assert public.of_evaluation(params).epsilon(0.0) == 0.25


# Exact evaluations ----------


def test_utilities_are_those_of_the_repeats() -> None:
    found = trial()({"quality": 0.7, "epsilon": 1.0}, 0, SEED)
    exact = np.mean(X[300:, 1] < 0.7)
    assert found.utilities == (exact, exact)
    assert found.epsilon == Scripted(epsilon=1.0).privacy_profile(400).epsilon(DELTA)
    assert (found.extra, found.error) == (None, None)


def test_each_fit_is_told_a_seed_of_its_own() -> None:
    told: list[Any] = []

    def note(model: Any, X: Any, y: Any) -> float:
        told.append(model.was_told_)
        return 1.0

    params = {"quality": 0.7, "epsilon": 1.0}
    for _ in range(2):
        assert trial(third=("note", note))(params, 0, SEED).extra == 1.0
    assert len(set(told)) == 2 and told[:2] == told[2:]
    told.clear()
    trial(third=("note", note), is_seeded=False)(params, 0, SEED)
    assert told == [None, None]


def test_data_errors_reach_the_curator() -> None:
    with pytest.raises(ValueError, match="exception of here"):
        trial(Loud(mark="here"))({"quality": 0.1, "epsilon": 1.0}, 0, SEED)


def test_time_is_a_third_objective() -> None:
    found = trial(third="time")({"quality": 0.7, "epsilon": 1.0}, 0, SEED)
    assert found.extra is not None and 0.0 < found.extra < 10.0


# Private evaluations ----------


def test_private_score_without_noise_is_the_mean_of_the_repeats() -> None:
    exact = trial()
    found = private(exact)({"quality": 0.7, "epsilon": 1.0}, 0, SEED)
    # 100 records are expected to score, and are there.
    assert found.utilities == (pytest.approx(np.mean(X[300:, 1] < 0.7)),)
    assert found.extra is None and found.error is None


@pytest.mark.parametrize("n_repeats", [1, 4])
def test_one_record_moves_the_score_by_no_more_than_its_sensitivity(n_repeats: int) -> None:
    of = trial(n_repeats=n_repeats)
    scoring = private(of).scoring
    assert scoring.sensitivity == accuracy().sensitivity(100)
    values = np.tile(np.ones(100), n_repeats)
    fewer = np.tile(np.ones(99), n_repeats)
    moved = abs(scoring.released(values, None) - scoring.released(fewer, None))
    assert moved == pytest.approx(scoring.sensitivity)


def test_noise_has_the_planned_scale_and_follows_the_seed() -> None:
    of = private(trial(), ratio=10.0)
    params = {"quality": 0.5, "epsilon": 1.0}
    seeds = np.random.SeedSequence(1).spawn(150)
    found = np.array([of(params, 0, seed).utilities[0] for seed in seeds])
    scale = 10.0 * accuracy().sensitivity(100)
    assert np.std(found) == pytest.approx(scale, rel=0.2)
    assert of(params, 0, seeds[0]).utilities == of(params, 1, seeds[0]).utilities
    free = private(trial(is_seeded=False), ratio=10.0)
    assert free(params, 0, SEED).utilities != free(params, 0, SEED).utilities


def test_failing_fit_scores_the_worst_of_every_record() -> None:
    found = private(trial(Loud()))({"quality": 0.1, "epsilon": 1.0}, 0, SEED)
    assert found.utilities == (0.0,) and found.error is None


def test_lost_workers_score_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr("skdptune.model_selection._pareto._evaluation.perform_all", lost)
    found = private(trial(), ratio=4.0)({"quality": 0.9, "epsilon": 1.0}, 0, SEED)
    assert found.error is None and found.utilities[0] < 0.2


def test_record_that_cannot_be_scored_fails_alone() -> None:
    class Brittle(Scripted):
        def predict(self, X: Any) -> np.ndarray:
            if (np.asarray(X)[:, 1] > 0.99).any():
                raise ValueError("a record")
            return super().predict(X)

    of = trial(Brittle())
    bad = int((X[300:, 1] > 0.99).sum())
    found = private(of)({"quality": 1.0, "epsilon": 1.0}, 0, SEED)
    assert bad >= 1 and found.utilities[0] == pytest.approx(1.0 - bad / 100)


def test_folds_score_every_record_once_per_repeat() -> None:
    parts = np.array_split(np.arange(400), 4)
    folds = [(np.setdiff1d(np.arange(400), part), part) for part in parts]
    of = Trial(costs(layout=layout(cv=4)), Data(X, Y, {}, {}), folds, None, accuracy(), 2, True)
    params = {"quality": 0.7, "epsilon": 1.0}
    exact = np.mean(X[:, 1] < 0.7)
    assert of(params, 0, SEED).utilities == pytest.approx((exact, exact))
    assert private(of)(params, 0, SEED).utilities == pytest.approx((exact,))


def test_fits_are_told_public_sizes() -> None:
    Told.heard.clear()
    private(trial(Told()))({"quality": 0.7, "epsilon": 1.0}, 0, SEED)
    assert {size for size, _ in Told.heard} == {300}


def test_public_scores_are_plain_means() -> None:
    scoring = score_of_all(layout(public=True), accuracy(), 3, NO_NOISE)
    assert scoring.n_public is None
    assert scoring.released(np.array([1.0, 1.0, 0.0]), None) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("score", "utility"), [(-1.0, 0.0), (-0.25, 0.75), (0.0, 1.0), (0.4, 1.0), (-3.0, 0.0)]
)
def test_utility_lies_between_the_worst_and_the_best_score(score: float, utility: float) -> None:
    assert unit_utility(score, neg_brier_score()) == utility
