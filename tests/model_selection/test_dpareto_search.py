"""DParetoSearchCV: scikit-learn's conventions, its results, and its statements."""

from __future__ import annotations

import inspect
import math
import os
import pickle
import sys
import threading
import warnings
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import uniform
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError
from skdptune.base import NoProfileError, privacy_of, profile_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.metrics import make_bounded_scorer
from skdptune.model_selection import DParetoSearchCV, ParetoFront, RandomRuns
from tests.conventions import check_as_scikit_learn_does
from tests.flat import changed, flat
from tests.model_selection.learners import Centroids, Replacing, Scripted, Unread, table
from tests.model_selection.test_contract import EXPECTED_FAILURES, MAY_BE_SKIPPED

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

optuna = pytest.importorskip("optuna")

DELTA = 1e-5
X, Y = table(600)
SPACE = {"epsilon": (0.1, 5.0, "log"), "quality": (0.5, 0.95)}
FEW = {"n_initial": 4, "n_iter": 2, "sampler": "random", "random_state": 0}


class Trade(Scripted):
    """Has an accuracy of ``1 - 0.5 / (1 + epsilon)``."""

    def predict(self, X: Any) -> np.ndarray:
        X = self._table(X)
        right = X[:, 1] < 1.0 - 0.5 / (1.0 + self.epsilon)
        return self.classes_[np.where(right, X[:, 0] > 0, X[:, 0] <= 0).astype(int)]


class Picky(Scripted):
    """Refuses to be fitted with a quality below 0.7."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Picky:
        if self.quality < 0.7:
            raise ValueError(f"quality {self.quality:.3f} is too low")
        return super().fit(X, y)


def made(estimator: Any = None, space: Any = None, **more: Any) -> DParetoSearchCV:
    return flat(DParetoSearchCV, estimator or Scripted(), space or SPACE, **{**FEW, **more})


def released(**more: Any) -> DParetoSearchCV:
    return made(**{"release": 30.0, **more})


BOTH = [made, released]
TWO = [("a", Scripted(mark="kept")), ("b", Trade())]


class Sized(Scripted):
    """Its cost depends on the number of records, for which it has no parameter."""

    def __init__(self, quality: float = 0.5, epsilon: float = 1.0, random_state: Any = None):
        super().__init__(quality, epsilon=epsilon, random_state=random_state)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("quality", "epsilon", "random_state")}

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
        return PrivacyProfile.pure(100.0 / n_samples)


def same(one: Any, other: Any) -> None:
    pd.testing.assert_frame_equal(one.pareto_front_, other.pareto_front_)
    left, right = (
        search.evaluations_.drop(columns="seconds", errors="ignore") for search in (one, other)
    )
    pd.testing.assert_frame_equal(left, right)
    assert one.privacy_ == other.privacy_
    assert one.hypervolume_ == other.hypervolume_


# scikit-learn's conventions ----------


@pytest.mark.parametrize(
    "more",
    [
        {"release": 300.0, "refit": 60.0, "delta": 0.1},
        pytest.param({"refit": True}, marks=pytest.mark.slow),
    ],
)
def test_scikit_learns_checks(more: dict[str, Any]) -> None:
    space = {"epsilon": (5.0, 20.0), "shrink": [0.0, 0.1]}
    search = made(Centroids(), space, cv=0.5, n_initial=2, n_iter=1, **more)
    check_as_scikit_learn_does(search, EXPECTED_FAILURES, 50, MAY_BE_SKIPPED)


def test_every_parameter_and_attribute_is_documented() -> None:
    documentation = inspect.getdoc(DParetoSearchCV) or ""
    search = made(refit=4.0).fit(X, Y)
    attributes = documentation.partition("Attributes\n")[2].partition("See Also")[0]
    for name in search.get_params(deep=False):
        assert name in documentation.partition("Attributes\n")[0], name
    for name in vars(search):
        assert not name.endswith("_") or name in attributes, name


@pytest.mark.parametrize("make", BOTH)
def test_clone_and_pickle(make: Any) -> None:
    search = make(refit=4.0).fit(X, Y)
    copy = clone(search)
    assert not hasattr(copy, "privacy_")
    assert repr(copy) == repr(search)
    same(copy.fit(X, Y), search)
    again = pickle.loads(pickle.dumps(search))
    same(again, search)
    assert again.best_params_for(epsilon=2.0) == search.best_params_for(epsilon=2.0)
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_a_strategy_is_set_by_its_parameters_and_must_be_a_front() -> None:
    search = DParetoSearchCV(Scripted(), SPACE, n_iter=0, strategy=ParetoFront(), random_state=0)
    search.set_params(strategy__n_initial=3, strategy__sampler="random")
    assert len(search.fit(X, Y).evaluations_) == 3
    with pytest.raises(TypeError, match="strategy must be None or ParetoFront; got RandomRuns"):
        search.set_params(strategy=RandomRuns()).fit(X, Y)


class Meddling(Scripted):
    """Changes the strategy of its search as soon as it is fitted."""

    strategy: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        # Theorem G3: what is planned is what is run.
        Meddling.strategy.set_params(n_repeats=5, n_initial=50, reference_point=(1.0, 1.0))
        return super().fit(X, y)


def test_what_was_planned_is_run_whatever_becomes_of_the_strategy() -> None:
    space = {"epsilon": (0.2, 2.0, "log"), "quality": (0.5, 0.9)}

    def search(estimator: Any) -> Any:
        Meddling.strategy = ParetoFront(n_initial=3, sampler="random")
        more = {"strategy": Meddling.strategy, "release": 20.0, "random_state": 0}
        return DParetoSearchCV(estimator, space, n_iter=1, **more).fit(X, Y)

    same(search(Meddling()), search(Scripted()))


@pytest.mark.parametrize("make", BOTH)
def test_a_pickle_holds_no_records(make: Any) -> None:
    secret = X.copy()
    secret[:, 2] = 7.3421987654321
    search = make().fit(secret, Y)
    assert np.float64(7.3421987654321).tobytes() not in pickle.dumps(search)


def test_refit_forgets_the_last_fit() -> None:
    search = made(refit=True).fit(X, Y)
    changed(search, refit=False, release=30.0).fit(X, Y)
    for name in ("best_estimator_", "study_", "best_params_"):
        assert not hasattr(search, name)


def test_compositions() -> None:
    make = released
    inside = {f"scripted__{name}": values for name, values in SPACE.items()}
    piped = make(estimator=make_pipeline(FunctionTransformer(), Scripted()), space=inside)
    plain = make().fit(X, Y)
    pd.testing.assert_series_equal(piped.fit(X, Y).evaluations_.error, plain.evaluations_.error)
    pipeline = make_pipeline(FunctionTransformer(), make(refit=4.0))
    cost = profile_of(pipeline, *X.shape)
    pipeline.fit(X, Y)
    assert privacy_of(pipeline).profile == cost == pipeline[-1].privacy_.profile
    np.testing.assert_array_equal(pipeline.predict(X), pipeline[-1].predict(X))
    scores = cross_val_score(make(refit=4.0), X, Y, cv=2)
    assert np.all((scores > 0.3) & (scores <= 1.0))


def test_without_refit_there_is_no_model() -> None:
    search = made().fit(X, Y)
    for name in ("best_estimator_", "predict", "classes_", "n_features_in_"):
        assert not hasattr(search, name)
    with pytest.raises(AttributeError, match="predict") as caught:
        _ = search.predict
    assert "`refit=False`. predict is available only after refitting" in str(
        caught.value.__cause__
    )


@pytest.mark.filterwarnings("ignore:scoring does not support sample_weight")
@pytest.mark.parametrize("routing", [False, True])
def test_weights_go_with_their_records(routing: bool) -> None:
    weights = np.linspace(0.0, 1.0, 600)
    with sklearn.config_context(enable_metadata_routing=routing):
        estimator = Scripted()
        if routing:
            estimator.set_fit_request(sample_weight=True)
        search = made(estimator, refit=True).fit(X, Y, sample_weight=weights)
        assert search.best_estimator_.weight_ == pytest.approx(0.5)
        model = search.best_estimator_for(X, Y, epsilon=2.0, sample_weight=weights)
        assert model.weight_ == pytest.approx(0.5)
    with pytest.raises(TypeError, match=r"Scripted.fit does not support: 'weights'"):
        made().fit(X, Y, weights=weights)


# What it finds ----------


def test_points_have_the_cost_of_their_models() -> None:
    search = made(refit=True, n_repeats=2).fit(X, Y)
    for _, row in search.evaluations_.iterrows():
        model = Scripted(**row.params)
        assert row.epsilon == model.privacy_profile(600, 3).epsilon(DELTA)
        # Scripted's delta is smaller, so that its epsilon at the search's is, too.
        assert row.epsilon < row.params["epsilon"]
    front = search.pareto_front_
    assert (np.diff(front.epsilon) > 0).all() and (np.diff(front.error) < 0).all()
    assert {"param_epsilon", "param_quality", "params", "epsilon", "error"} == set(front.columns)


def test_errors_are_those_of_the_scores() -> None:
    search = made(n_repeats=3, cv=4).fit(X, Y)
    for _, row in search.evaluations_.iterrows():
        # Each record is scored once per repeat, and Scripted draws no random numbers.
        exact = np.mean(X[:, 1] >= row.params["quality"])
        assert row.error == pytest.approx(exact, abs=1e-12)
        assert len(row.utilities) == 3 and row.spread == pytest.approx(0.0, abs=1e-12)


def test_public_validation_data_score() -> None:
    X_val, y_val = table(300, seed=5)
    search = made().fit(X, Y, X_val=X_val, y_val=y_val)
    for _, row in search.evaluations_.iterrows():
        assert row.error == pytest.approx(np.mean(X_val[:, 1] >= row.params["quality"]))
    assert any("validation data are public" in words for words in search.privacy_.assumptions)
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        made().fit(X, Y, X_val=X_val)


def test_estimator_for_a_wanted_point() -> None:
    search = released(n_initial=6).fit(X, Y)
    model = search.best_estimator_for(X, Y, epsilon=1.2, random_state=3)
    assert model.privacy_.epsilon_at(DELTA) <= 1.2
    assert model.get_params()["quality"] == search.best_params_for(epsilon=1.2)["quality"]
    assert isinstance(model.was_told_, int)
    assert search.best_estimator_for(X, Y, epsilon=1.2).was_told_ is None
    with pytest.raises(ValueError, match="X must hold the 600 records"):
        search.best_estimator_for(X[:500], Y[:500], epsilon=1.2)
    with pytest.raises(ValueError, match="epsilon"):
        search.best_params_for(epsilon=1e-6)


def test_model_of_a_budget() -> None:
    search = made(refit=1.0, n_initial=8).fit(X, Y)
    table_ = search.evaluations_
    affordable = table_[table_.epsilon <= 1.0]
    assert search.best_index_ == affordable.error.idxmin()
    assert search.best_params_ == table_.params[search.best_index_]
    assert search.best_score_ == pytest.approx(1.0 - affordable.error.min())
    free = made(refit=True, n_initial=8).fit(X, Y)
    assert free.best_index_ == free.evaluations_.error.idxmin()
    with pytest.warns(UserWarning, match="refit must be at least the smallest epsilon"):
        none = made(refit=1e-3).fit(X, Y)
    assert not hasattr(none, "best_estimator_")


def test_moments_bound_is_the_papers() -> None:
    search = made(privacy="moments").fit(X, Y)
    tight = made().fit(X, Y)
    for _, row in search.evaluations_.iterrows():
        profile = Scripted(**row.params).privacy_profile(600)
        mu = math.sqrt(profile.rdp(2.0))
        # min over whole moments m of (m (m + 1) mu^2 / 2 + log(1/delta)) / m.
        moments = np.arange(1, 256)
        exact = np.min((moments * (moments + 1) * mu**2 / 2 - math.log(DELTA)) / moments)
        assert row.epsilon == pytest.approx(exact, rel=1e-9)
    assert (search.evaluations_.epsilon > tight.evaluations_.epsilon).all()


def test_families_are_chosen_among() -> None:
    families = [("plain", Scripted()), ("trade", Trade(mark="t"))]
    space = {"plain": SPACE, "trade": {"epsilon": uniform(0.1, 2.0)}}
    search = made(families, space, n_initial=12, refit=3.0).fit(X, Y)
    chosen = search.evaluations_.param_estimator
    assert set(chosen) == {"plain", "trade"}
    for _, row in search.evaluations_.iterrows():
        own = {"plain": {"plain__epsilon", "plain__quality"}, "trade": {"trade__epsilon"}}
        assert set(row.params) == {"estimator", *own[row.param_estimator]}
        kind = {"plain": Scripted, "trade": Trade}[row.param_estimator]
        values = {key.partition("__")[2]: row.params[key] for key in own[row.param_estimator]}
        assert row.epsilon == kind(**values).privacy_profile(600).epsilon(DELTA)
    assert isinstance(search.best_estimator_, Scripted)
    assert is_classifier(search) and "trade: Trade" in made(families, space)._repr_html_()
    assert set(search.best_params_for(epsilon=1.0)) >= {"estimator"}
    copy = clone(search)
    assert copy.estimator[1][1] is not families[1][1] and copy.estimator[1][1].mark == "t"


def test_failures_do_not_stop_the_search_and_are_named() -> None:
    with pytest.warns(FitFailedWarning, match="evaluations failed. The first"):
        search = made(Picky(), n_initial=8).fit(X, Y)
    low = search.evaluations_[search.evaluations_.param_quality < 0.7]
    assert len(low) and low.failure.str.contains("is too low").all()
    assert low.error.isna().all()
    assert (search.pareto_front_.param_quality >= 0.7).all()
    with pytest.raises(ValueError, match="All 4 evaluations failed"):
        made(Picky(), {"quality": (0.1, 0.2), "epsilon": (0.1, 1.0)}).fit(X, Y)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_release_is_the_same_at_any_number_of_workers(backend: str) -> None:
    alone = released(n_repeats=2).fit(X, Y)
    with joblib.parallel_backend(backend):
        same(released(n_repeats=2, n_jobs=2).fit(X, Y), alone)


class Deadly(Scripted):
    """Ends the process of a fit with the quality 0.7."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.quality == 0.7:
            os._exit(1)
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore:All evaluations cost")
def test_batches_are_run_by_workers_and_who_kills_one_has_failed() -> None:
    space, more = {"quality": [0.5, 0.6, 0.7, 0.8, 0.9]}, {"sampler": "grid", "n_iter": 1}
    with pytest.warns(FitFailedWarning, match="Terminated"):
        search = made(Deadly(), space, batch_size=2, n_jobs=2, **more).fit(X, Y)
    # The pool of processes is shared with joblib, which must be able to go on with it.
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(n) for n in (-1, -2)) == [1, 2]
    table_ = search.evaluations_.sort_values("number")
    failed = table_["failure"].notna().to_numpy()
    # One that ran at the same time may have failed as well.
    assert len(table_) == 5 and 1 <= failed.sum() <= 2
    assert 0.7 in set(table_.param_quality[failed])
    alone = made(space=space, **more).fit(X, Y).evaluations_
    np.testing.assert_array_equal(table_.error[~failed], alone.error.to_numpy()[~failed])


@pytest.mark.parametrize("make", BOTH)
def test_randomness(make: Any) -> None:
    same(make().fit(X, Y), make().fit(X, Y))
    with pytest.raises(TypeError, match="random_state must be an integer of at least 0; got"):
        make(random_state=np.random.default_rng(3)).fit(X, Y)
    other = make(random_state=1).fit(X, Y)
    assert (other.evaluations_.epsilon != make().fit(X, Y).evaluations_.epsilon).all()
    free = make(random_state=None, refit=3.0, n_initial=8).fit(X, Y)
    assert free.best_estimator_.was_told_ is None
    assert not any("seed" in words for words in free.privacy_.assumptions)


# Privacy ----------


def test_unreleased_search_is_not_private_and_says_so() -> None:
    search = made().fit(X, Y)
    assert math.isinf(search.privacy_.epsilon)
    assert search.privacy_.assumptions[0].startswith("NOT PRIVATE")
    for text in (str(search.privacy_), search._repr_html_(), search.privacy_._repr_html_()):
        assert "NOT PRIVATE" in text
    assert search.privacy_profile(600, 3) == search.privacy_.profile
    assert math.isinf(search.privacy_profile(600).epsilon(0.5))
    with pytest.raises(ValueError, match="release must be given for a plan"):
        made().plan(600, 3)


class NoisyAtItsDelta(Scripted):
    """Costs a Gaussian release at its own delta, and is pure where that is 0."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
        if self.delta == 0.0:
            return PrivacyProfile.pure(self.epsilon)
        return super().privacy_profile(n_samples, n_features)


@pytest.mark.filterwarnings("ignore:All evaluations cost")
@pytest.mark.parametrize("own", [0.0, 1e-6])
def test_at_delta_0_fits_cost_what_they_are_made_with(own: float) -> None:
    # Theorem F2: an estimator whose own delta is above 0 has no epsilon at 0.
    search = made(NoisyAtItsDelta(delta=own), delta=0.0, refit=own == 0.0).fit(X, Y)
    for _, row in search.evaluations_.iterrows():
        assert row.epsilon == (row.params["epsilon"] if own == 0.0 else math.inf)
    if own == 0.0:
        assert search.best_estimator_.delta == own


def test_exact_evaluations_may_use_batches_of_fixed_size() -> None:
    """Their cost depends on the number of records, which is not secret without a release."""
    model = DPLogisticRegression(solver="sgd", sampling="fixed", epochs=1, classes=[0, 1])
    search = made(model, {"epsilon": (0.5, 5.0, "log")}, n_initial=2, n_iter=1).fit(X, Y)
    assert search.evaluations_["failure"].isna().all()
    with pytest.raises(ValueError, match="n_public must be None with sampling='fixed'"):
        changed(search, release=4.0).privacy_profile(600, 3)


def test_report_of_a_release_is_a_tree() -> None:
    report = released(release=8.0, refit=1.0, delta=1e-5).plan(600, 3).report
    assert [part.name for part in report.parts] == ["evaluations", "scores", "final fit"]
    assert (report.epsilon, report.delta) == (9.0, 1e-5)
    assert report.epsilon_spent <= 9.0
    assert report.parts[2].profile == PrivacyProfile.approximate(1.0, 5e-6)
    assert "NOT PRIVATE" not in str(report)


# Refusals ----------


@pytest.mark.parametrize("more", [{}, {"release": 2.0, "refit": False}])
def test_a_bound_that_the_estimator_lacks_is_refused_before_any_fit(
    more: dict[str, Any],
) -> None:
    class WithoutDivergences(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
            return PrivacyProfile.approximate(1.0, DELTA / 100)

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            raise AssertionError("The data were read.")

    for call in (lambda search: search.plan(len(X)), lambda search: search.fit(X, Y)):
        search = made(privacy="moments", estimator=WithoutDivergences(), **more)
        with pytest.raises(ValueError, match="Rényi divergences are not known; got 'moments'"):
            call(search)


SPACES = {"a": SPACE, "b": SPACE}
STEPS = Pipeline([("clf", Scripted())])
OF_STEPS = {"estimator": STEPS, "scoring": "accuracy", "release": 9.0}
TIMED = {"third_objective": "time", "reference_point": (1.0, 1.0, 1.0)}
# Of one parameter, and of combinations.
BAD: dict[str, list[Any]] = {
    "delta": [1.0],
    "n_initial": [0],
    "n_iter": [1.5],
    "n_repeats": [0],
    "batch_size": [0],
    "sampler": ["best", Scripted],
    "privacy": ["rdp"],
    "reference_point": [(10.0,)],
    "epsilon_scale": ["ln"],
    "third_objective": ["size", ("size",), ("epsilon", len)],
    "refit": ["winner", -1.0],
    "cv": [1.0],
    "scoring": ["r2", "neg_brier_score"],
    "random_state": [-1],
    "n_public": [0],
    "estimator": [Scripted, [Scripted()]],
    "release": [0.0, 1e-4],
}
BAD_TOGETHER: list[tuple[dict[str, Any], str]] = [
    ({"third_objective": "time"}, "3 numbers, the worst epsilon, error and time"),
    ({"space": {"qualities": [1.0]}}, "must name parameters of Scripted; got 'q"),
    ({"space": {"n_public": [1]}}, "must leave 'n_public' to the search"),
    ({"space": {"random_state": [1]}}, "must leave 'random_state' to the"),
    ({"space": [1]}, "param_space must be a mapping"),
    ({"estimator": [("a__b", Scripted())]}, "different names without '__'"),
    ({"estimator": TWO, "space": SPACES, "sampler": "grid"}, "sampler must not be 'grid'"),
    ({"estimator": TWO, "space": {"c": SPACE}}, "families' names, 'a', 'b'; got"),
    ({"estimator": TWO, "space": {"a": 3, "b": 3}}, r"\['a'\] must be a mapping"),
    ({"sampler": optuna.samplers.RandomSampler(), "release": 9.0}, "sampler must be a name"),
    ({"estimator": Replacing(), "release": 9.0}, "about adding or removing"),
    ({"space": {"clf": [Scripted(), Replacing()]}, **OF_STEPS}, "got one about replacing"),
    ({"estimator": Sized(), "release": 9.0}, "must have a parameter n_public"),
    ({"release": 1.0, "delta": 0.0}, "delta must be above 0 with release"),
    ({"release": 1.0, "storage": "a.db"}, "storage must be None with release"),
    ({"release": 1.0, "refit": True}, "refit must be an epsilon or False"),
    ({"release": 1.0, **TIMED}, "third_objective must be None with release"),
    ({"space": {"epsilon": [math.inf]}, "release": 4.0}, "fits have no finite epsilon"),
]


def test_bad_parameters_are_refused_before_data() -> None:
    unread: Any = X.view(Unread)
    cases = [({name: value}, f"{name} must ") for name in BAD for value in BAD[name]]
    for more, message in [*cases, *BAD_TOGETHER]:
        with pytest.raises((TypeError, ValueError, UnreachableBudgetError), match=message):
            made(**more).fit(unread, Y)


def test_steps_without_a_profile_are_named() -> None:
    with pytest.raises(NoProfileError):
        made(LogisticRegression(), {"C": (0.1, 1.0)}).fit(X, Y)
    pipeline = make_pipeline(StandardScaler(), Scripted())
    search = made(pipeline, {"scripted__quality": (0.5, 0.9)}, release=10.0)
    with pytest.raises(NoProfileError, match="StandardScaler"):
        search.fit(X, Y)
    with pytest.raises(NoProfileError, match="StandardScaler"):
        search.set_params(release=None).fit(X, Y)


# Leaks between fits, searches and workers ----------


class Remembering(Scripted):
    """Stores all records of its fits, and predicts only these correctly."""

    seen: Any = frozenset()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Remembering:
        super().fit(X, y)
        self.seen = self.seen | set(map(float, X[:, 2]))
        return self

    def predict(self, X: Any) -> np.ndarray:
        right = [float(value) in self.seen for value in X[:, 2]]
        return self.classes_[np.where(right, X[:, 0] > 0, X[:, 0] <= 0).astype(int)]


@pytest.mark.filterwarnings("ignore:(All evaluations cost|batch_size must be)")
@pytest.mark.parametrize(("release", "n_jobs"), [(None, 1), (40.0, 2)])
def test_no_fold_starts_from_what_another_has_seen(release: float | None, n_jobs: int) -> None:
    search = made(
        Remembering(delta=1e-7), {"quality": (0.5, 0.9)}, release=release, cv=3, n_jobs=n_jobs
    )
    with joblib.parallel_config(backend="threading"):
        changed(search, n_repeats=2).fit(X, Y)
    assert search.evaluations_["error"].min() > 0.5


@pytest.mark.filterwarnings("ignore:All evaluations cost")
def test_what_is_returned_does_not_lead_to_later_searches() -> None:
    def search() -> DParetoSearchCV:
        step = Scripted(quality=0.9, epsilon=0.5, delta=1e-7)
        pipeline = Pipeline([("clf", Scripted(epsilon=0.5, delta=1e-7))])
        return made(pipeline, {"clf": [step]}, scoring="accuracy", release=9.0, refit=1.0)

    first = search().fit(X, Y)
    before = first.evaluations_["error"].tolist()
    first.best_params_["clf"].set_params(quality=0.1, epsilon=3.0)
    assert search().fit(X, Y).evaluations_["error"].tolist() == before
    first.best_params_for(epsilon=1.0)["clf"].set_params(quality=0.1)
    assert first.best_params_for(epsilon=1.0)["clf"].quality == 0.9


def test_work_that_cannot_be_pickled_is_refused_and_not_counted_as_failed() -> None:
    lock = threading.Lock()

    def locked(labels: Any, guesses: Any) -> Any:
        with lock:
            return (np.asarray(labels) == guesses).astype(float)

    scorer = make_bounded_scorer(locked, 0.0, 1.0, greater_is_better=True)
    search = released(n_jobs=2, scoring=scorer)
    with pytest.raises(TypeError, match="n_jobs must be 1 for .* cannot be pickled"):
        search.fit(X, Y)
    with joblib.parallel_config(backend="threading"):
        search.fit(X, Y)
    assert search.evaluations_["error"].min() < 0.5


@pytest.mark.filterwarnings("ignore:All evaluations cost")
def test_too_few_evaluations_are_warned_of() -> None:
    search = made(space={"epsilon": [2.0, 3.0, 4.0]}, release=4.5, n_initial=8)
    with pytest.warns(UserWarning, match="release must be larger.* n_initial=8.* it paid for ."):
        search.fit(X, Y)
    assert "evaluations" in repr(search.result_)


class Exiting(Scripted):
    """Exits the interpreter with a record in the message, unless the records are made up."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(X) <= 6:
            return super().fit(X, y)
        raise SystemExit(f"record {X[0]}")


def test_a_fit_that_exits_shows_nothing() -> None:
    search = released(estimator=Exiting(), refit=1.0).fit(X, Y)
    assert (search.evaluations_["error"] > 0.5).all()


class Full(Scripted):
    """Fails only on all records."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(X) == 600:
            raise ValueError("a record's text")
        return super().fit(X, y)


def test_failure_of_the_final_fit_is_shown_without_a_release_alone() -> None:
    with pytest.raises(ValueError, match="a record's text"):
        made(Full(), refit=True).fit(X, Y)
    search = released(estimator=Full(), refit=1.0).fit(X, Y)
    assert isinstance(search.best_estimator_, Full)
    assert set(search.predict(X)) <= {0, 1}


def test_a_stored_study_of_other_data_or_estimators_is_not_resumed() -> None:
    given = {"storage": optuna.storages.InMemoryStorage(), "random_state": 3}
    first = made(**given).fit(X, Y)
    more = made(**{**given, "n_iter": 4}).fit(X, Y)
    assert len(more.evaluations_) == len(first.evaluations_) + 2
    with pytest.raises(ValueError, match="of the same data, estimators and settings"):
        made(**given).fit(X[::-1], Y)
    with pytest.raises(ValueError, match="of the same data, estimators and settings"):
        made(Trade(), **given).fit(X, Y)


def test_a_stored_study_is_resumed_where_a_class_of_the_package_has_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"storage": optuna.storages.InMemoryStorage(), "random_state": 3}
    model = DPLogisticRegression(solver="output", data_norm=3.0, classes=[0, 1])
    space = {"epsilon": (0.5, 4.0), "C": [0.1, 1.0]}
    made(model, space, **given).fit(X, Y)
    here = DPLogisticRegression.__module__
    monkeypatch.setattr(DPLogisticRegression, "__module__", f"{here}_of_old")
    more = made(model, space, **{**given, "n_iter": 4}).fit(X, Y)
    assert len(more.evaluations_) == 8
    monkeypatch.setattr(DPLogisticRegression, "__module__", "skdptune.neural_network")
    with pytest.raises(ValueError, match="of the same data, estimators and settings"):
        made(model, space, **given).fit(X, Y)


def test_a_study_without_a_seed_is_resumed_on_the_same_data(tmp_path: Any) -> None:
    # Theorem F10: records and seeds in files.
    given = {"storage": str(tmp_path / "study.db"), "random_state": None}
    first = made(**given).fit(X, Y)
    more = made(**{**given, "n_iter": 4}).fit(X, Y)
    assert len(more.evaluations_) == len(first.evaluations_) + 2
    assert list(more.evaluations_["error"][: len(first.evaluations_)]) == list(
        first.evaluations_["error"]
    )
    with pytest.raises(ValueError, match="of the same data, estimators and settings"):
        made(**given).fit(X[::-1], Y)
    with pytest.raises(ValueError, match="of the same data, estimators and settings"):
        made(**{**given, "random_state": 3}).fit(X, Y)


def test_failures_are_warned_of_without_a_release_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released(estimator=Picky()).fit(X, Y)


def test_a_space_of_one_cost_is_warned_of() -> None:
    fitted = released(space={"quality": (0.5, 0.95)})
    with pytest.warns(UserWarning, match="^All evaluations cost epsilon=.*a single"):
        fitted.fit(X, Y)
    assert len(set(fitted.evaluations_["epsilon"])) == 1
    assert len(fitted.pareto_front_) == 1
