"""Special features of the grid search, and of the choice on disjoint partitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, ShuffleSplit

from skdptune import report
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPGridSearchCV,
    NoisyMaximum,
    RandomRuns,
)
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
X, Y = table(400)
TWO = {"quality": [0.1, 0.9]}


def search(values: object = None, **more: object) -> DPGridSearchCV:
    usual = {"random_state": 0}
    values = values or {"quality": [0.1, 0.5, 0.9]}
    return flat(DPGridSearchCV, Scripted(delta=DELTA), values, **{**usual, **more})


def test_pick_follows_the_law_of_permute_and_flip() -> None:
    # Theorem F5: an index chosen from mean scores over partitions.
    # Utilities 0 and 1 of two candidates at epsilon e: the worse wins with chance
    # exp(-n e / 2) / 2 for n parts, as its coin comes first half of the time.
    values = {"quality": [0.0, 1.1]}
    picks = [
        search(values, selection_epsilon=1.0, n_partitions=2, random_state=seed)
        .fit(X, Y)
        .best_params_["quality"]
        for seed in range(200)
    ]
    assert picks.count(0.0) == pytest.approx(200 * np.exp(-1.0) / 2, abs=4 * np.sqrt(30))


def test_bad_parameters() -> None:
    for settings, words in (
        ({"strategy": "best"}, "strategy must be"),
        ({"n_partitions": 1}, "n_partitions must be"),
        ({"n_partitions": "many"}, "n_partitions must be"),
        ({"selection_epsilon": 0.0}, "selection_epsilon must be"),
        ({"cv": 3, "strategy": "noisy_max"}, "cv must be a fraction for scores on disjoint"),
        ({"strategy": RandomRuns()}, "or one of your own that searches a grid"),
        ({"strategy": 3}, "or one of your own that searches a grid"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            search(**settings).privacy_profile(400, 3)


def test_bad_grids_are_named() -> None:
    for values, words in (
        (3, "param_grid must be a dict from parameter names"),
        ([3], "param_grid must hold dicts; got int"),
        ({3: [1]}, "the keys of param_grid must be names; got 3"),
        ({"quality": "abc"}, r"param_grid\['quality'\] must be a list; got str"),
        ({"quality": np.ones((2, 2))}, "must be a list; got ndarray"),
        ({"quality": uniform()}, "DPRandomSearchCV draws from distributions"),
    ):
        with pytest.raises(TypeError, match=words):
            DPGridSearchCV(Scripted(delta=DELTA), values).privacy_profile(400, 3)


def test_splitters_that_treat_records_alike_are_numbers() -> None:
    def costed(cv: object) -> object:
        return search(cv=cv, strategy="compose", refit=True, delta=DELTA).privacy_profile(400, 3)

    assert costed(KFold(3, shuffle=True, random_state=0)) == costed(3)
    assert costed(ShuffleSplit(1, test_size=0.3)) == costed(0.3)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"epsilon": 8.0, "cv": 5}, "candidates, all scores published"),
        ({"cv": 5}, "candidates, all scores published"),
        ({}, "candidates, all scores published"),
        ({"epsilon": 8.0, "delta": 0.0}, "candidates, all scores published"),
        ({"epsilon": 8.0, "tuning_estimator": Scripted()}, "permute-and-flip"),
    ],
)
def test_the_selection_is_a_table_unless_asked_for(
    settings: dict[str, object], wanted: str
) -> None:
    report = search(**{"delta": DELTA, **settings}).plan(40_000, 3, compare=False).report
    assert wanted in report.parts[0].note


def test_a_default_search_never_chooses_without_the_comparison() -> None:
    """Theorem N6: the plan promises the 5 %, or fits the unchanged estimator with all of it."""
    model = DPLogisticRegression(delta=DELTA, C=3.0)
    fitted_once = set()
    rng = np.random.default_rng(0)
    for _ in range(24):
        n_samples, count = int(10 ** rng.uniform(2, 6)), int(10 ** rng.uniform(0, 3))
        values = {"C": np.geomspace(1e-3, 1.0, count).tolist()}
        found = DPGridSearchCV(model, values, epsilon=float(2 ** rng.uniform(-2, 3)), cv=0.2)
        plan = found.set_params(delta=rng.choice([0.0, 1e-7])).plan(n_samples, 3, compare=False)
        is_once = plan.row.expected_fits == 1.0
        fitted_once.add(is_once)
        if is_once:
            assert plan.row.epsilon == plan.row.fit_epsilon > 0.99 * found.epsilon
            assert "To search anyway, give strategy=FullTable(), or more records" in plan.advice
        else:
            assert "the chance that a worse one is chosen is at most 5 %" in plan.keeps
            assert " 100 points" not in plan.keeps
            assert plan.row.fit_epsilon > 0.9 * found.epsilon
        found.strategy = "table"
        kept = found.plan(n_samples, 3, compare=False).keeps
        assert (" 100 points" in kept) == is_once
    assert fitted_once == {True, False}


def test_what_cannot_win_is_not_fitted() -> None:
    """Theorem F12, Theorem N6."""
    values = {"quality": np.linspace(0, 1, 200)}
    found = search(values, epsilon=0.5, delta=DELTA)
    with pytest.warns(UserWarning, match="A search cannot be expected to help") as caught:
        found.fit(X, Y)
    assert [str(each.message) for each in caught] == [found.plan(*X.shape).advice]
    assert caught[0].filename == __file__
    assert found.best_params_ == {"quality": Scripted().quality}
    assert [part.name for part in found.privacy_.parts] == ["the only fit"]
    assert np.isnan(found.best_score_) and len(found.cv_results_["params"]) == 1
    assert np.isnan(found.cv_results_["mean_test_score"]).all()
    assert "Noisy scores" not in str(report(found))
    asked = search(values, epsilon=0.5, delta=DELTA, strategy="table").fit(X, Y)
    assert len(asked.cv_results_["params"]) == 201


def test_candidates_that_cannot_have_more_noise_are_not_searched() -> None:
    class Quiet(Scripted):
        """A fit whose noise has an end."""

        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> object:
            if self.epsilon < 0.5:
                raise ValueError("epsilon must be at least 0.5.")
            return super().privacy_profile(n_samples, n_features)

    made = DPGridSearchCV(Quiet(), {"quality": [0.1, 0.9]}, epsilon=2.0, delta=DELTA)
    plan = made.plan(40_000, 3, compare=False)
    assert plan.row.expected_fits == 1.0
    assert "cannot be fitted with the noise of a table: the unchanged estimator" in plan.advice
    assert "To search anyway, give strategy=NoisyMaximum(), or" in plan.advice
    named = made.set_params(strategy="noisy_max").plan(40_000, 3, compare=False)
    assert "permute-and-flip" in named.report.parts[0].note
    with pytest.raises(ValueError, match=r"at least 0\.5"):
        made.set_params(strategy="auto", cv=3).plan(40_000, 3)
    # Theorem N6. Several metrics ask for a table, so nothing takes its place.
    made.set_params(cv=0.2, scoring={"one": "accuracy", "two": "accuracy"}, refit="one")
    with pytest.raises(ValueError, match=r"at least 0\.5"):
        made.plan(40_000, 3)


# Partitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "delta"), [(DPGridSearchCV, DELTA), (DoublingThresholdSearchCV, 0.0)]
)
def test_choice_alone_costs_the_total(kind: type, delta: float) -> None:
    total = {"epsilon": 6.0, "delta": delta, "refit": False}
    search = flat(kind, Scripted(), TWO, n_partitions=50, **total)
    assert 0.999 * 6.0 < search.privacy_profile(1000, 3).epsilon(delta) <= 6.0


def test_surrogate_may_be_anything_with_the_same_parameters() -> None:
    class Other(DummyClassifier):
        def __init__(self, quality: float = 0.5) -> None:
            super().__init__()
            self.quality = quality

    search = DPGridSearchCV(
        Scripted(delta=DELTA),
        TWO,
        strategy=NoisyMaximum(tuning_estimator=Other()),
    )
    search.strategy.tuning_estimator._skl_callbacks = ["callback"]
    made = search._strategy().surrogate(search._make_plan(1000, 3), {"quality": 0.9})
    assert (type(made), made.quality) == (Other, 0.9)
    assert not hasattr(made, "_skl_callbacks")


def test_surrogate_keeps_its_learning_rate_and_its_noise_beside_the_signal() -> None:
    model = DPLogisticRegression(solver="sgd", batch_size=0.1, classes=[0, 1])
    search = DPGridSearchCV(
        model,
        {"learning_rate": [0.3, 3.0]},
        epsilon=1.0,
        delta=DELTA,
        strategy=NoisyMaximum(n_partitions=5),
    )
    plan = search._make_plan(1000, 3)
    made = search._strategy().surrogate(plan, {"learning_rate": 3.0})
    assert made.learning_rate == 3.0
    final = plan.model.fit_costs.configured(
        {"learning_rate": 3.0}, plan.cost.setting, plan.model.final_size
    )
    share = 160 / plan.model.final_size.n_samples
    assert made.noise_multiplier == pytest.approx(final.noise_level(800, 3) * share, rel=0.3)


def test_surrogate_without_a_noise_parameter_is_scaled_and_has_no_noise() -> None:
    # A linear regression reports its noise, but takes none.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(400, 3))
    search = DPGridSearchCV(
        DPRidge(target_bound=1.0),
        {"alpha": [0.1, 10.0]},
        epsilon=1.0,
        delta=DELTA,
        scoring=neg_squared_error(bound=4.0),
        strategy=NoisyMaximum(n_partitions=4),
    )
    made = search._strategy().surrogate(search._make_plan(400, 3), {"alpha": 10.0})
    assert made.epsilon == np.inf
    # 400 records, of which 80 are kept for the scores.
    assert made.alpha == pytest.approx(10.0 * 80 / 400)
    assert search.fit(X, X[:, 0]).privacy_.epsilon == 1.0
