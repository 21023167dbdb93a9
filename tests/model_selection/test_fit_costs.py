"""Costs of fits, and the setting of each in a search: noise, a curve or a budget (Theorem F2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, profile_of
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.model_selection import (
    DPGridSearchCV,
    DPRandomSearchCV,
)
from tests.flat import changed, flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
REPLACE = "replace one of a public number of records"
# How the noise of fits is found, as plans say it.
ONE_NOISE, CURVE = "All candidates have the same noise", "stays below one curve"


def cost_of(epsilon: float) -> object:
    return Scripted(epsilon=epsilon, delta=DELTA).privacy_profile(100)


# What is not costed one by one, since what else is searched sets the cost, too.
DESCENT = DPLogisticRegression(solver="sgd", epochs=1, classes=[0, 1])
EPOCHS = {"clf__epochs": randint(1, 3)}
X, Y = table()


def of(estimator: object, values: object, **more: object) -> DPRandomSearchCV:
    settings = {"epsilon": 1.0, "delta": DELTA, "n_iter": 2, "random_state": 0} | more
    return flat(DPRandomSearchCV, estimator, values, **settings)


def test_free_parameters_do_not_count() -> None:
    # Theorem F2: one cost for all candidates.
    plan = of(Scripted(delta=DELTA), {"quality": uniform()}, epsilon=None)._make_plan(600, 3)
    assert plan.cost.fit == cost_of(1.0)


def test_worst_of_listed_values() -> None:
    # Theorem F2: one cost for all candidates.
    listed = {"epsilon": [0.5, 2.0, 1.0]}
    found = of(Scripted(delta=DELTA), listed, epsilon=None)._make_plan(600, 3).cost.fit
    for delta in (1e-3, 1e-5, 1e-7):
        assert found.epsilon(delta) == pytest.approx(cost_of(2.0).epsilon(delta), rel=1e-6)


def test_drawn_costs_need_a_budget() -> None:
    drawn = of(Scripted(), {"epsilon": uniform()}, epsilon=None)
    with pytest.raises(ValueError, match="must list few values of parameters that set the cost"):
        drawn.privacy_profile(600, 3)


def test_many_settings_are_held_to_the_budget() -> None:
    # Theorem F2: one cost for all candidates.
    class OneDelta(Scripted):
        cost_parameters = None

        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> object:
            return PrivacyProfile.approximate(self.epsilon, self.delta)

    space = {"quality": uniform(), "mark": uniform()}
    plan = of(OneDelta(), space, try_own_values=False)._make_plan(600, 3)
    budget = plan.cost.setting.epsilon
    assert plan.cost.fit.epsilon(DELTA) == pytest.approx(budget, rel=1e-3)
    assert 0.99 < plan.total.epsilon(DELTA) <= 1.0
    assert "the worst cost of such a fit is assumed" in plan.calibration_in_words


def test_a_step_that_learns_for_some_value_is_refused_before_the_data() -> None:
    imputer = SimpleImputer(strategy="constant", keep_empty_features=True)
    search = of(
        Pipeline([("fill", imputer), ("clf", DESCENT)]),
        {"fill__strategy": ["constant", "mean"], **EPOCHS},
    )
    with pytest.raises(NoProfileError, match="SimpleImputer"):
        search.privacy_profile(600, 3)


def test_a_step_that_learns_for_some_drawn_value_is_refused() -> None:
    class Strategies:
        def rvs(self, random_state: object) -> str:
            return "mean"

    imputer = SimpleImputer(strategy="constant", keep_empty_features=True)
    search = of(
        Pipeline([("fill", imputer), ("clf", DESCENT)]),
        {"fill__strategy": Strategies(), **EPOCHS},
    )
    with pytest.raises(NoProfileError, match="SimpleImputer"):
        search.fit(X, Y)


def test_steps_within_lists_are_costed() -> None:
    loud = DPLogisticRegression(
        solver="sgd", epochs=1, epsilon=None, noise_multiplier=0.06, classes=[0, 1]
    )
    search = of(Pipeline([("clf", DESCENT)]), {"steps": [[("clf", loud)]], **EPOCHS})
    with pytest.raises(ValueError, match="has no epsilon that limits its cost"):
        search.privacy_profile(600, 3)


@pytest.mark.parametrize("place", ["best_params_", "cv_results_"])
def test_what_is_published_does_not_lead_to_the_plan(place: str) -> None:
    values = {"clf": [Scripted(epsilon=0.1, delta=DELTA)]}
    search = of(Pipeline([("clf", Scripted())]), values, epsilon=None, tuning_fraction=None)
    search.fit(X, Y)
    shown = {"best_params_": search.best_params_, "cv_results_": search.cv_results_["params"][0]}
    shown[place]["clf"].set_params(epsilon=50.0)
    assert search.fit(X, Y).best_estimator_[-1].epsilon == 0.1


def test_runs_of_a_pipeline_share_no_cache(tmp_path: object) -> None:
    pipeline = make_pipeline(FunctionTransformer(), Scripted(), memory=str(tmp_path))
    of(pipeline, {"scripted__mark": [1]}, tuning_fraction=None).fit(X, Y)
    assert not list(tmp_path.iterdir())


def test_a_function_defined_anew_is_a_new_plan() -> None:
    found = []
    for shift in (1.0, 2.0):
        namespace = {"__name__": __name__, "shift": shift}
        exec("def prepare(X):\n    return X + shift", namespace)
        globals()["prepare"] = namespace["prepare"]
        pipeline = make_pipeline(FunctionTransformer(prepare), Scripted())  # noqa: F821
        search = of(pipeline, {"scripted__mark": [1]}).fit(X, Y)
        found.append(search.best_estimator_[0].transform(np.zeros((1, 1)))[0, 0])
    assert found == [1.0, 2.0]


def test_a_surrogate_is_checked_whatever_was_planned_before() -> None:
    class Finite(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> object:
            if self.epsilon > 5.0:
                raise ValueError("epsilon must be at most 5.")
            return super().privacy_profile(n_samples, n_features)

    search = DPGridSearchCV(Finite(), {"mark": [1, 2]}, epsilon=1.0, delta=DELTA)
    search.set_params(strategy="noisy_max")
    changed(search, tuning_estimator=Scripted()).privacy_profile(600, 3)
    with pytest.raises(ValueError, match="tuning_estimator must be given"):
        changed(search, tuning_estimator=None).privacy_profile(600, 3)


def test_relations_are_not_mixed_where_noise_is_given() -> None:
    # Theorem F8: searches over estimators whose guarantee is about replacing a record.
    replacing = type("Replacing", (Scripted,), {"neighbouring": REPLACE})
    noisy = DPLogisticRegression(
        solver="sgd", epochs=1, epsilon=None, noise_multiplier=2.0, classes=[0, 1]
    )
    mixed = Pipeline([("one", Normalizer()), ("clf", replacing())])
    search = of(mixed, {"clf__mark": [1]})
    report = search.plan(600, 3, compare=False).report
    assert "replace one" in report.neighbouring
    # Theorem F11: all parts are about the relation of the whole.
    assert {part.neighbouring for part in report.parts} == {report.neighbouring}
    assert "add or remove" not in str(report)
    search.set_params(param_distributions={"clf": [replacing(), noisy]}, epsilon=None)
    with pytest.raises(TypeError, match="must hold private steps of one kind"):
        search.privacy_profile(600, 3)


def test_an_estimator_that_costs_more_than_its_epsilon_is_not_held_by_it() -> None:
    class Expensive(Scripted):
        cost_parameters = None

        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> object:
            return PrivacyProfile.approximate(2.0 * self.epsilon, self.delta)

    search = of(Expensive(), {"quality": uniform()})
    with pytest.raises(ValueError, match="Expensive costs more than its own epsilon"):
        search.privacy_profile(600, 3)


def test_a_curve_counts_what_an_estimator_really_costs() -> None:
    class Expensive(Scripted):
        cost_parameters = None

        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> object:
            return 2 * super().privacy_profile(n_samples, n_features)

    plan = of(Expensive(), {"quality": uniform()})._make_plan(600, 3)
    made = plan.model.fit_costs.configured(
        {"quality": 0.3}, plan.cost.setting, plan.model.train_size
    )
    assert plan.cost.setting.curve.covers(made.privacy_profile(600))


@pytest.mark.parametrize(
    ("kind", "is_a_step"), [(DPLogisticRegression, True), (DPLinearSVC, False)]
)
def test_a_search_without_delta_costs_what_its_estimators_do(kind: type, is_a_step: bool) -> None:
    # Theorem F2: with the estimator's own delta another solver is chosen, and C sets no cost.
    name, estimator = "C", kind(data_norm=1.0)
    space: dict[str, list[Any]] = {"C": [0.01, 1.0, 100.0]}
    if is_a_step:
        estimator = Pipeline([("clf", kind(data_norm=1.0))])
        name, space = "clf__C", {"clf": [kind(data_norm=1.0)], "clf__C": space["C"]}
    search = DPGridSearchCV(estimator, space, epsilon=1.0, delta=0.0, strategy="table")
    plan = search._make_plan(3000, 2)
    assert plan.total.epsilon(0.0) <= 1.0
    model, cost = plan.model, plan.cost
    assert cost.final is not None
    for candidate in plan.candidates.grid():
        for setting, size, claimed in (
            (cost.run_setting, model.train_size, cost.fit),
            (cost.setting, model.final_size, cost.final),
        ):
            made = model.fit_costs.configured(candidate, setting, size)
            real = profile_of(made, size.n_samples, size.n_features)
            assert real.epsilon(0.0) <= claimed.epsilon(0.0) * (1.0 + 1e-9), candidate[name]


# What a search sets each fit to ------------------------------------------------------------------


TWO_EPOCHS = DPLogisticRegression(solver="sgd", epochs=2, batch_size=0.1, classes=[0, 1])
OTHER_EPOCHS = [clone(TWO_EPOCHS).set_params(epochs=epochs) for epochs in (1, 3, 4)]
ALLOCATION = DPLogisticRegression(
    solver="sgd", epochs=2, batch_size=0.1, classes=[0, 1], sampling="allocation"
)
RATES = {"learning_rate": loguniform(0.1, 10.0)}


def searches(estimator: object) -> list[object]:
    settings = {"epsilon": 1.0, "delta": DELTA}
    rates = {"learning_rate": [0.1, 1.0]}
    return [
        flat(DPRandomSearchCV, estimator, RATES, **settings),
        flat(DPRandomSearchCV, estimator, RATES, refit=True, tuning_fraction=None, **settings),
        flat(DPGridSearchCV, estimator, rates, **settings),
        flat(DPGridSearchCV, estimator, rates, strategy="compose", **settings),
    ]


@pytest.mark.parametrize(
    "search",
    [*searches(TWO_EPOCHS)[::2], *searches(ALLOCATION)[1::2]],
    ids=lambda search: f"{type(search).__name__}-{search.estimator.sampling}",
)
def test_one_noise_for_all_candidates_is_solved_for_itself(search: object) -> None:
    # Theorem F2: one cost for all candidates.
    plan = search._make_plan(4000, 3)
    setting = plan.cost.setting
    assert ONE_NOISE in plan.calibration_in_words
    assert 0.99 <= plan.total.epsilon(DELTA) <= 1.0
    # What is fitted has this noise, and the cost that the plan has for it.
    made = plan.model.fit_costs.configured({}, setting, plan.model.final_size)
    size = plan.model.final_size.n_samples
    assert made.noise_level(size, 3) == setting.noise
    assert made.privacy_profile(size, 3).epsilon(DELTA) == pytest.approx(setting.epsilon)


@pytest.mark.parametrize(
    ("estimator", "values"),
    [
        pytest.param(TWO_EPOCHS, {"epochs": [1, 2, 3, 4, 6]}, marks=pytest.mark.slow),
        (TWO_EPOCHS, {"epochs": randint(1, 6)}),
        (TWO_EPOCHS, {"sampling": ["poisson", "allocation"], "epochs": [1, 2, 4]}),
        (DPLogisticRegression(solver="objective", classes=[0, 1]), {"C": loguniform(1e-2, 1.0)}),
        (
            Pipeline([("clf", TWO_EPOCHS)]),
            {"clf": [TWO_EPOCHS, Scripted(), *OTHER_EPOCHS]},
        ),
    ],
)
def test_candidates_that_differ_in_cost_share_a_curve(estimator: object, values: object) -> None:
    """Theorem T4: each candidate's own profile lies below the curve of the plan."""
    # Theorem F2: one cost for all candidates.
    search = DPRandomSearchCV(estimator, values, epsilon=1.0, delta=DELTA, n_iter=20)
    changed(search, n_iter_distribution="geometric")
    plan = search._make_plan(4000, 3)
    setting = plan.cost.setting
    assert CURVE in plan.calibration_in_words
    assert 0.99 <= plan.total.epsilon(DELTA) <= 1.0
    model = plan.model
    for size in (model.train_size, model.final_size):
        for candidate in plan.candidates.draw_each(np.random.SeedSequence(0).spawn(4)):
            made = model.fit_costs.configured(candidate, setting, size)
            cost = profile_of(made, size.n_samples, 3)
            assert setting.curve.covers(cost)
            # And not by far: two percent less noise would not do.
            assert setting.curve.least_shift(cost) > 0.98 * setting.curve.shift


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(4.0, marks=pytest.mark.slow)])
def test_the_costliest_of_many_candidates_loses_nothing_to_the_curve(epsilon: float) -> None:
    """Theorem T4: its own cost is the shape of the curve, so others do not increase it."""
    # Theorem F2: one cost for all candidates.
    noises = []
    for values in ({"C": [1.0]}, {"epochs": [1, 2, 3, 5, 6]}):
        estimator = clone(TWO_EPOCHS).set_params(epochs=6)
        search = DPRandomSearchCV(estimator, values, epsilon=epsilon, delta=DELTA, n_iter=20)
        changed(search, n_iter_distribution="geometric", tuning_fraction=None)
        plan = search._make_plan(4000, 3, is_public=True)
        size = plan.model.train_size
        made = plan.model.fit_costs.configured({}, plan.cost.setting, size)
        noises.append(made.noise_level(size.n_samples, 3))
    assert noises[0] * (1.0 - 5e-3) <= noises[1] <= 1.01 * noises[0]


@pytest.mark.parametrize(
    ("fraction", "epsilon", "words"),
    [(None, 1.0, "from the exact cost"), (0.05, 4.0, CURVE)],
)
def test_few_candidates_take_the_cheaper_way(
    fraction: float | None, epsilon: float, words: str
) -> None:
    """Theorem T4: exact costs of one epsilon, or one curve, whichever leaves the larger ones."""
    # Theorem F2: one cost for all candidates.
    search = DPRandomSearchCV(
        TWO_EPOCHS, {"epochs": [5, 20]}, epsilon=epsilon, delta=DELTA, n_iter=20
    )
    changed(search, n_iter_distribution="geometric", tuning_fraction=fraction)
    plan = search._make_plan(30_000, 3)
    assert words in plan.calibration_in_words
    assert 0.99 * epsilon <= plan.total.epsilon(DELTA) <= epsilon
    model = plan.model

    def mean(cost: Any) -> float:
        size = model.train_size
        every = [{"epochs": 5}, {"epochs": 20}]
        made = [model.fit_costs.configured(each, cost.setting, size) for each in every]
        found = [profile_of(each, size.n_samples, 3).epsilon(DELTA) for each in made]
        return float(np.mean(np.log(found)))

    ways = [model._solved_budget(epsilon), model._shared(epsilon)]
    assert all(way.total.epsilon(DELTA) <= epsilon for way in ways)
    assert mean(plan.cost) == pytest.approx(max(map(mean, ways)), abs=1e-9)
    assert abs(mean(ways[0]) - mean(ways[1])) > 1e-3


def test_a_candidate_that_no_noise_brings_below_the_curve_is_refused_by_name() -> None:
    class Stubborn(Scripted):
        cost_parameters = frozenset({"epsilon", "delta", "mark"})

        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> object:
            if self.mark == 2:
                return PrivacyProfile.approximate(3.0, 1e-6)
            return super().privacy_profile(n_samples, n_features)

    search = DPRandomSearchCV(Stubborn(), {"mark": [1, 2, 3, 4, 5]}, epsilon=1.0, delta=DELTA)
    with pytest.raises(ValueError, match="no noise brings Stubborn with mark=2 below"):
        search.privacy_profile(4000, 3)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (DPGridSearchCV, {"noise_multiplier": [3.0, 6.0], "learning_rate": [0.1]}),
        pytest.param(
            DPRandomSearchCV,
            {"noise_multiplier": loguniform(3.0, 6.0), "batch_size": loguniform(0.05, 0.2)},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_noise_and_rate_may_be_drawn_and_the_budget_spent_on_steps(
    kind: type, values: dict[str, Any]
) -> None:
    # Koskela and Kulkarni (2023), appendix D.1.
    most = DPLogisticRegression(
        solver="sgd", epochs="max", noise_multiplier=4.0, batch_size=0.1, classes=[0, 1]
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    search = kind(most, values, epsilon=2.0, delta=DELTA, random_state=3)
    if kind is DPRandomSearchCV:
        changed(search, n_iter=3, n_iter_distribution="geometric")
    search.fit(X, (X[:, 0] > 0).astype(int))
    model = search.best_estimator_
    assert 0.97 * 2.0 <= search.privacy_.epsilon_spent <= 2.0
    assert model.noise_multiplier == search.best_params_["noise_multiplier"]
    assert model.plan_.steps > 1
