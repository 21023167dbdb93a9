"""The worst cost over all candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import randint, uniform
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError
from skdptune.base import _costs as costs
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    ThresholdRounds,
)
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._fit_costs import BudgetSetting, FitCosts, FitSize
from tests.flat import changed, flat
from tests.model_selection.learners import Scripted, table

SIZE = FitSize(100, 400, 3, False)
DELTA = 1e-5


def fit_costs(values: object, estimator: object = None) -> FitCosts:
    candidates = Candidates(values, name="param_distributions", drawn=True)
    return FitCosts(estimator or Scripted(delta=DELTA), candidates, "auto")


def cost_of(epsilon: float) -> object:
    return Scripted(epsilon=epsilon, delta=DELTA).privacy_profile(100)


def test_free_parameters_do_not_count() -> None:
    # Theorem F2.
    assert fit_costs({"quality": uniform()}).profile(None, SIZE) == cost_of(1.0)


def test_worst_of_listed_values() -> None:
    # Theorem F2.
    found = fit_costs({"epsilon": [0.5, 2.0, 1.0]}).profile(None, SIZE)
    for delta in (1e-3, 1e-5, 1e-7):
        assert found.epsilon(delta) == pytest.approx(cost_of(2.0).epsilon(delta), rel=1e-6)


def test_composition_counts_every_candidate() -> None:
    found = fit_costs({"epsilon": [0.5, 2.0], "mark": [1, 2, 3]}).composed(None, SIZE)
    assert found == cost_of(0.5) * 3 + cost_of(2.0) * 3


def test_drawn_costs_need_a_budget() -> None:
    with pytest.raises(ValueError, match="must list few values of parameters that set the cost"):
        fit_costs({"epsilon": uniform()}).profile(None, SIZE)


def test_many_settings_are_held_to_the_budget() -> None:
    # Theorem F2.
    class Silent(Scripted):
        cost_parameters = None

    values = {"quality": uniform(), "mark": uniform()}
    found = fit_costs(values, Silent(delta=DELTA)).profile(BudgetSetting(0.7, DELTA), SIZE)
    assert found.epsilon(DELTA) == pytest.approx(0.7)


def test_configured_is_a_fresh_estimator() -> None:
    pipeline = make_pipeline(Normalizer(), Scripted())
    made = fit_costs({"scripted__quality": [0.5]}, pipeline).configured(
        {"scripted__quality": 0.9}, BudgetSetting(3.0, 1e-4), FitSize(100, 400, 3, True)
    )
    assert (made[1].quality, made[1].epsilon, made[1].delta, made[1].n_public) == (
        0.9,
        3.0,
        1e-4,
        100,
    )
    assert (pipeline[1].quality, pipeline[1].n_public) == (0.5, None)


# What is not costed one by one, since what else is searched sets the cost, too.
DESCENT = DPLogisticRegression(solver="sgd", epochs=1, classes=[0, 1])
EPOCHS = {"clf__epochs": randint(1, 3)}
X, Y = table()


def of(estimator: object, values: object, **more: object) -> DPRandomSearchCV:
    settings = {"epsilon": 1.0, "delta": DELTA, "n_iter": 2, "random_state": 0} | more
    return flat(DPRandomSearchCV, estimator, values, **settings)


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
    with pytest.raises(ValueError, match="has no epsilon to hold it to"):
        search.privacy_profile(600, 3)


def test_drawn_lists_of_steps_are_refused() -> None:
    class Lists:
        def rvs(self, random_state: object) -> object:
            return [("clf", DESCENT)]

    search = of(Pipeline([("clf", DESCENT)]), {"steps": Lists(), **EPOCHS})
    with pytest.raises(ValueError, match="must list at most 64 combinations of estimators"):
        search.privacy_profile(600, 3)
    drawn = Candidates({"mark": Lists()}, name="param_distributions", drawn=True)
    with pytest.raises(TypeError, match="must draw plain values"):
        drawn.draw(np.random.RandomState(0))


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


def test_relations_are_not_mixed_where_noise_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    # Theorem F8.
    monkeypatch.setattr(costs, "_REPLACING", frozenset({"elsewhere"}))
    replacing = type("Replacing", (Scripted,), {"__module__": "elsewhere"})
    noisy = DPLogisticRegression(
        solver="sgd", epochs=1, epsilon=None, noise_multiplier=2.0, classes=[0, 1]
    )
    mixed = Pipeline([("one", Normalizer()), ("clf", replacing())])
    search = of(mixed, {"clf__mark": [1]})
    assert "replace one" in search.plan(600, 3, compare=False).report.neighbouring
    search.set_params(param_distributions={"clf": [replacing(), noisy]}, epsilon=None)
    with pytest.raises(TypeError, match="must hold private steps of one kind"):
        search.privacy_profile(600, 3)


@pytest.mark.parametrize("kind", ["list", "object", "nullable"])
def test_gaps_are_taken_in_any_form_of_table(kind: str) -> None:
    # Theorem R5.
    rows = X.copy()
    rows[7, 1] = np.nan
    made = {
        "list": rows.tolist(),
        "object": rows.astype(object),
        "nullable": pd.DataFrame(rows).astype("Float64"),
    }
    search = of(Scripted(), {"mark": [1]}).fit(made[kind], Y)
    assert search.best_estimator_.predict(X).shape == Y.shape


def test_labels_of_a_random_part_must_be_named() -> None:
    model = DPLogisticRegression(solver="sgd", epochs=1)
    search = of(model, {"C": [1.0]}, n_public=600)
    with pytest.raises(ValueError, match="classes must be named in the estimator"):
        search.fit(X, Y)
    search.set_params(estimator__classes=[0, 1]).fit(X, Y)


def test_what_is_offered_cannot_be_changed_after_it_was_costed() -> None:
    offered = {"clf": Scripted(quality=1.0, epsilon=0.1, delta=DELTA)}
    values = {"clf": [Scripted(quality=1.0, epsilon=0.1, delta=DELTA)]}
    session = DoublingThresholdSearchCV(
        Pipeline([("clf", Scripted())]),
        values,
        random_state=0,
        strategy=ThresholdRounds(
            selection_epsilon=50.0, tuning_estimator=Pipeline([("clf", Scripted())])
        ),
    ).start(X, Y)
    won = session.propose([offered])
    assert won is not None
    for shown in (offered, won, session.best_params):
        shown["clf"].set_params(epsilon=50.0)
    assert session.finish().best_estimator_[-1].epsilon == 0.1


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
    made = plan.model.fit_costs.configured({"quality": 0.3}, plan.cost.setting, SIZE)
    assert plan.cost.setting.curve.covers(made.privacy_profile(600))


def test_gaps_are_left_to_columns_that_fill_them() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::7, "c"] = np.nan
    fill = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
    columns = ColumnTransformer([("as_is", Normalizer(), ["a", "b"]), ("fill", fill, ["c"])])
    search = of(Pipeline([("columns", columns), ("clf", Scripted())]), {"clf__mark": [1]})
    search.fit(frame, Y)
    assert search.best_estimator_.predict(frame).shape == Y.shape
    frame.loc[3, "a"] = np.nan
    search.fit(frame, Y)


@pytest.mark.parametrize("is_a_step", [False, True])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
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
            real = costs.cost_of(made, size.n_samples, size.n_features)
            assert real.epsilon(0.0) <= claimed.epsilon(0.0) * (1.0 + 1e-9), candidate[name]
