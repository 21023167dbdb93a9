"""The contract of every search: scikit-learn's conventions, its cost, and its output."""

from __future__ import annotations

import functools
import inspect
import math
import pickle
import re
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune.accounting import PrivacyReport, UnreachableBudgetError
from skdptune.base import PrivacyWarning, privacy_of, profile_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import NoisyMaximum, ThresholdRounds
from tests.conventions import check_as_scikit_learn_does
from tests.flat import changed
from tests.model_selection.learners import Centroids, Scripted, table
from tests.model_selection.ways import HAS_OPTUNA, USUAL, WAYS, Way, searchers

DELTA = 1e-5
VALUES = {"quality": [0.15, 0.55, 0.95]}
X, Y = table(600)
EXPECTED_FAILURES = {
    "check_dtype_object": "a record decides only its own place, and crashes nothing",
    "check_estimators_nan_inf": "a record that is not finite becomes a constant one",
    "check_supervised_y_2d": "warnings of the fits tell of the data, and are dropped",
}
# One way of each class, for what does not depend on its strategy.
BY_CLASS = ("random-part", "grid-table", "doubling", *(["adaptive"] if HAS_OPTUNA else []))
MAY_BE_SKIPPED = {"check_array_api_input", "check_readonly_memmap_input"}


@pytest.fixture(params=WAYS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def way(name: str) -> Way:
    return WAYS[name]


@pytest.fixture(params=USUAL)
def one_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def usual(one_name: str) -> Way:
    return WAYS[one_name]


@pytest.fixture(params=BY_CLASS)
def class_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def by_class(class_name: str) -> Way:
    return WAYS[class_name]


def quick(names: Any, few: Any) -> list[Any]:
    """Return ways of which few are run each time, and the others by the nightly."""
    return [pytest.param(name, marks=() if name in few else pytest.mark.slow) for name in names]


def made(way: Way, **more: Any) -> Any:
    """Return a search whose fits have their own budgets, so that nothing must be solved."""
    estimator = Scripted(epsilon=1.0, delta=DELTA)
    return way.make(estimator, VALUES, **{"delta": DELTA, **more})


@functools.cache
def fitted(name: str) -> Any:
    """Return a search that is fitted once for all tests that only look at it."""
    return made(WAYS[name]).fit(X, Y)


def same(one: Any, other: Any) -> None:
    """Raise unless two searches found the same, models included."""
    assert one.best_params_ == other.best_params_
    np.testing.assert_equal(one.best_score_, other.best_score_)
    np.testing.assert_equal(one.cv_results_["params"], other.cv_results_["params"])
    if "mean_test_score" in one.cv_results_:
        np.testing.assert_array_equal(
            one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
        )
    assert one.privacy_ == other.privacy_
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.best_estimator_.get_params() == other.best_estimator_.get_params()


def test_every_searcher_is_entered() -> None:
    assert searchers() == {way.kind for way in WAYS.values()}
    assert {WAYS[name].kind for name in USUAL} == searchers()
    assert {WAYS[name].kind for name in BY_CLASS} == searchers()


# scikit-learn's conventions ----------


@pytest.mark.parametrize(
    "name",
    quick(
        [name for name in USUAL if name != "random-part"],
        ("random", "grid-table", "doubling", "adaptive"),
    ),
)
def test_scikit_learns_checks(name: str) -> None:
    # Half the records score, so that the few records of the checks are enough; epsilon is each
    # fit's, so that nothing has to be solved for.
    search = WAYS[name].make(Centroids(epsilon=10.0), {"shrink": [0.0, 0.1]}, cv=0.5)
    found = check_as_scikit_learn_does(search, EXPECTED_FAILURES, 50, MAY_BE_SKIPPED)
    assert set(found["xfail"]) == set(EXPECTED_FAILURES)


def test_constructor_stores_what_it_is_given(usual: Way) -> None:
    search = made(usual)
    for key, value in search.get_params(deep=False).items():
        other = type(search)(**{**search.get_params(deep=False), key: (key, value)})
        assert getattr(other, key) == (key, value)
        assert other.get_params(deep=False)[key] is getattr(other, key)
    assert vars(search).keys() == search.get_params(deep=False).keys()


def test_every_parameter_and_attribute_is_documented(way: Way, name: str) -> None:
    documentation = inspect.getdoc(way.kind)
    search = fitted(name)
    # What docstrings share has been put in.
    assert not re.search(r"^\{\w+\}$", documentation, re.MULTILINE)
    heads = [line for line in documentation.splitlines() if re.match(r"\S.* : ", line)]
    described = {part.strip() for line in heads for part in line.split(" : ")[0].split(",")}
    assert set(inspect.signature(way.kind).parameters) <= described
    attributes = documentation.partition("Attributes\n")[2].partition("See Also")[0]
    for each in vars(search):
        assert not each.endswith("_") or each in attributes, each


def test_pickle_round_trip(name: str) -> None:
    search = fitted(name)
    stored = pickle.dumps(search)
    # Without the numbers of the profiles, which would be some megabytes.
    assert len(stored) < 50_000
    again = pickle.loads(stored)
    same(again, search)
    assert vars(again).keys() == vars(search).keys()


def test_plan_is_kept_for_what_it_was_solved_for(by_class: Way) -> None:
    """Changing an estimator in place does not change what an equal one costs or does."""
    estimator = Scripted(epsilon=1.0, delta=DELTA)
    one = by_class.make(estimator, VALUES).fit(X, Y)
    estimator.set_params(epsilon=5.0, mark="changed")
    other = by_class.make(Scripted(epsilon=1.0, delta=DELTA), VALUES).fit(X, Y)
    assert other.best_estimator_.epsilon == 1.0
    assert other.best_estimator_.mark is None
    assert other.privacy_ == one.privacy_
    assert one.fit(X, Y).best_estimator_.mark == "changed"
    assert one.privacy_.epsilon_spent > other.privacy_.epsilon_spent


def test_refit_forgets_the_last_fit(usual: Way) -> None:
    search = made(usual, diagnostics=True).fit(X, Y)
    assert hasattr(search, "diagnostics_")
    changed(search, diagnostics=False, refit=False).fit(X, Y)
    assert not hasattr(search, "diagnostics_") and not hasattr(search, "best_estimator_")


# Data of all kinds ----------


@pytest.mark.parametrize(
    "kind",
    [sparse.csr_matrix, sparse.coo_array, np.ndarray.tolist, pd.DataFrame],
    ids=["csr", "coo", "list", "frame"],
)
def test_other_forms_of_a_table_give_the_same(kind: Any) -> None:
    for name in ("random-part", "doubling") if kind is sparse.csr_matrix else ("grid-table",):
        same(made(WAYS[name]).fit(kind(X), Y.tolist()), fitted(name))


def test_labels_may_be_words(by_class: Way) -> None:
    words = np.array(["no", "yes"])[Y]
    search = made(by_class).fit(X, words)
    assert search.classes_.tolist() == ["no", "yes"]
    assert set(search.predict(X)) <= {"no", "yes"}
    assert is_classifier(search)


# Compositions ----------


def test_pipeline_inside(by_class: Way, class_name: str) -> None:
    values = {f"scripted__{name}": listed for name, listed in VALUES.items()}
    pipeline = make_pipeline(FunctionTransformer(), Scripted(epsilon=1.0, delta=DELTA))
    search = by_class.make(pipeline, values, delta=DELTA).fit(X, Y)
    plain = fitted(class_name)
    assert isinstance(search.best_estimator_, Pipeline)
    assert search.privacy_.profile == plain.privacy_.profile
    assert search.best_params_ == {
        f"scripted__{name}": value for name, value in plain.best_params_.items()
    }


def test_inside_a_pipeline(by_class: Way, class_name: str) -> None:
    pipeline = make_pipeline(FunctionTransformer(), made(by_class))
    cost_of = profile_of(pipeline, *X.shape)
    pipeline.fit(X, Y)
    assert privacy_of(pipeline).profile == cost_of == pipeline[-1].privacy_.profile
    np.testing.assert_array_equal(pipeline.predict(X), fitted(class_name).predict(X))
    scores = cross_val_score(made(by_class), X, Y, cv=2)
    assert np.all((scores > 0.1) & (scores <= 1.0))


def few_parts(search: Any) -> Any:
    """Return a search that fits few inner searches, where it fits one per part."""
    has_parts = isinstance(search._strategy(), NoisyMaximum | ThresholdRounds)
    return changed(search, n_partitions=4) if has_parts else search


@pytest.mark.parametrize(
    ("outer_name", "inner_name"),
    [
        *(("random-part", "random"), ("grid-table", "random"), ("random", "grid")),
        *(
            pytest.param(name, "random", marks=pytest.mark.slow)
            for name in USUAL
            if name not in ("random-part", "grid-table")
        ),
    ],
)
def test_search_inside_a_search_composes(outer_name: str, inner_name: str) -> None:
    usual = WAYS[outer_name]
    inner = WAYS[inner_name].make(Scripted(), VALUES, epsilon=1.0, delta=DELTA)
    outer = few_parts(usual.make(inner, {"estimator__mark": ["a", "b"]}, delta=DELTA))
    cost_of = outer.privacy_profile(*X.shape)
    outer.fit(X, Y)
    assert outer.privacy_.profile == cost_of

    # A scripted learner with the cost of the inner search leads to the same total.
    class Priced(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            size = inner.n_public if self.n_public is None else self.n_public
            sized = clone(inner).set_params(n_public=size)
            return sized.privacy_profile(n_samples, n_features)

    plain = few_parts(usual.make(Priced(), {"mark": ["a", "b"]}, delta=DELTA))
    assert plain.privacy_profile(*X.shape) == cost_of
    assert isinstance(outer.best_estimator_, type(inner))
    assert 0.98 <= outer.best_estimator_.privacy_.epsilon_spent <= 1.0


@pytest.mark.parametrize("name", quick(USUAL, ("random",)))
def test_total_for_a_search_inside_a_search(name: str) -> None:
    inner = WAYS["grid"].make(Scripted(), VALUES, epsilon=1.0)
    outer = WAYS[name].make(inner, {"estimator__mark": ["a", "b"]}, epsilon=2.0, delta=DELTA)
    outer = few_parts(outer)
    assert 0.98 * 2.0 <= outer.fit(X, Y).privacy_.epsilon_spent <= 2.0


# The price ----------


def test_price_plan_and_report_agree(way: Way) -> None:
    # Theorem F0: a search's cost follows from public numbers.
    epsilon = 1.5
    search = made(way, epsilon=epsilon)
    cost_of = search.privacy_profile(*X.shape)
    plan = search.plan(*X.shape, compare=False)
    search.fit(X, Y)
    assert search.privacy_.profile == cost_of
    assert plan.epsilon == search.privacy_.epsilon_spent == cost_of.epsilon(DELTA)
    assert plan.report == search.privacy_
    assert search.privacy_.epsilon == epsilon
    assert 0.99 * epsilon <= cost_of.epsilon(DELTA) <= epsilon
    assert plan.row.name == type(search).__name__


def test_price_ignores_what_is_not_its_business(usual: Way) -> None:
    way = usual
    cost_of = made(way).privacy_profile(*X.shape)
    others = {"random_state": None, "n_jobs": 3, "verbose": 2, "diagnostics": True}
    assert made(way, **others).privacy_profile(*X.shape) == cost_of
    assert made(way).privacy_profile(X.shape[0]) == cost_of


def test_without_epsilon_each_fit_keeps_its_own(way: Way, name: str) -> None:
    if way.needs_total:
        with pytest.raises(ValueError, match="epsilon must be given for LeastEpsilon"):
            made(way, epsilon=None).fit(X, Y)
        return
    search = fitted(name)
    told = search.best_estimator_
    assert (told.epsilon, told.delta) == (1.0, DELTA)
    # A record that may be in another part than that of the final fit pays less than the fit.
    assert search.privacy_.epsilon >= 0.9 * told.privacy_.epsilon_spent
    assert search.privacy_.delta == DELTA
    assert search.privacy_.profile == made(way).privacy_profile(600)


def test_unreachable_budget_names_the_least(usual: Way) -> None:
    # Scores (or the choice) have the given cost, for any remaining budget of the fits.
    picks = usual in (WAYS["grid"], WAYS["doubling"])
    name = "selection_epsilon" if picks else "score_epsilon"
    more = {name: 40.0} if usual is not WAYS["grid-least"] else {"epsilons": [1e-12]}
    search = made(usual, epsilon=0.1, **more)
    with pytest.raises(UnreachableBudgetError, match=r"epsilon must be at least [\d.]+"):
        search.fit(X, Y)
    assert not hasattr(search, "privacy_")


def test_epsilon_is_refused_where_nothing_follows_it(by_class: Way) -> None:
    class Fixed(Scripted):
        def __init__(self, quality: float = 0.5, random_state: Any = None) -> None:
            super().__init__(quality, random_state=random_state)

    with pytest.raises(ValueError, match="epsilon must be None for an estimator whose noise"):
        by_class.make(Fixed(), VALUES, epsilon=1.0, delta=DELTA).privacy_profile(600, 3)


def test_public_size_stands_for_the_number_of_records(usual: Way) -> None:
    # Assumption P0: what is public, and what neighbours are.
    cost_of = made(usual, n_public=600).privacy_profile(17, 3)
    assert cost_of == made(usual, n_public=600).privacy_profile(600, 3)
    search = made(usual, n_public=500).fit(X, Y)
    assert search.best_estimator_.n_public in (500, 400)


def test_large_delta_is_warned_of(by_class: Way) -> None:
    search = made(by_class, delta=0.01)
    for act in (lambda: search.fit(X, Y), lambda: search.plan(len(X), 3, compare=False)):
        with pytest.warns(PrivacyWarning, match="Choose delta=0.0001 or less") as caught:
            act()
        assert caught[0].filename == __file__


def test_pure_budget(way: Way) -> None:
    plan = way.make(Scripted(delta=0.0), VALUES, epsilon=2.0).plan(*X.shape, compare=False)
    assert plan.report.delta == 0.0
    assert 0.98 * 2.0 <= plan.report.profile.epsilon(0.0) <= 2.0


# Randomness and workers ----------


def test_generators_are_refused(by_class: Way) -> None:
    # Clones would copy it, and share the noise of two folds.
    for make in (np.random.default_rng, np.random.RandomState):
        with pytest.raises(TypeError, match="random_state must be an integer of at least 0; got"):
            made(by_class, random_state=make(3)).fit(X, Y)


def test_without_seed_nothing_repeats(by_class: Way) -> None:
    # A tiny budget, so that the winner is as good as drawn at random.
    values = {"mark": list(range(4))}
    # Few parts, or so little budget asks for many fits.
    few = {"n_partitions": 4} if by_class is WAYS["doubling"] else {}
    outcomes = set()
    # A doubling search has few outcomes, of which one has half of the chance.
    for _ in range(60):
        estimator = Scripted(epsilon=0.1, delta=DELTA)
        search = by_class.make(estimator, values, random_state=None, **few).fit(X, Y)
        assert search.best_estimator_.was_told_ is None
        outcomes.add((str(search.best_params_), repr(search.best_score_)))
        if len(outcomes) > 1:
            return
    pytest.fail("60 searches without a seed gave the same result.")


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        *(("threading", name) for name in USUAL),
        *(
            pytest.param("threading", name, marks=pytest.mark.slow)
            for name in WAYS
            if name not in USUAL
        ),
        ("loky", "grid-table"),
        *(
            pytest.param("loky", name, marks=pytest.mark.slow)
            for name in USUAL
            if name != "grid-table"
        ),
    ],
)
def test_a_seed_repeats_at_any_number_of_workers(backend: str, name: str) -> None:
    with joblib.parallel_backend(backend):
        same(made(WAYS[name], n_jobs=2).fit(X, Y), fitted(name))


# Using the winner ----------


def test_methods_are_those_of_the_winner(by_class: Way, class_name: str) -> None:
    search = made(by_class)
    for method in ("predict", "decision_function"):
        assert hasattr(search, method)
        with pytest.raises(NotFittedError):
            getattr(search, method)(X)
    for method in ("predict_proba", "predict_log_proba", "transform", "score_samples"):
        assert not hasattr(search, method)
        with pytest.raises(AttributeError, match=method):
            getattr(search, method)
    search = fitted(class_name)
    best = search.best_estimator_
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    np.testing.assert_array_equal(search.decision_function(X), best.decision_function(X))
    assert search.score(X, Y) == np.mean(best.predict(X) == Y)
    assert search.classes_.tolist() == [0, 1]
    assert search.n_features_in_ == 3


def test_without_refit_there_is_no_model(usual: Way) -> None:
    search = made(usual, refit=False).fit(X, Y)
    assert not hasattr(search, "best_estimator_")
    assert set(search.best_params_) == {"quality"}
    assert search.privacy_.profile == made(usual, refit=False).privacy_profile(600, 3)
    for name in ("predict", "decision_function", "classes_", "n_features_in_"):
        assert not hasattr(search, name)
    with pytest.raises(AttributeError, match="predict") as caught:
        _ = search.predict
    assert "`refit=False`. predict is available only after refitting" in str(
        caught.value.__cause__
    )
    with pytest.raises(AttributeError, match="refit=False"):
        search.score(X, Y)


def test_rows_are_those_that_are_charged(way: Way, name: str) -> None:
    search = fitted(name)
    results = search.cv_results_
    # The winner's, and where they are tried in addition the estimator's own values.
    few = 1 + bool(way.settings.get("try_own_values"))
    assert len(results["params"]) == (len(VALUES["quality"]) if way.shows_all else few)
    assert results["params"][search.best_index_] == search.best_params_
    assert results["param_quality"][search.best_index_] == search.best_params_["quality"]
    if "mean_test_score" in results:
        # Of a table the best score is a posterior mean, which may also rank another first.
        apart = 4.0 * getattr(search, "best_score_std_", 0.0)
        found = results["mean_test_score"][search.best_index_]
        assert abs(found - search.best_score_) <= apart
        first = int(np.argmin(results["rank_test_score"]))
        assert (
            results["params"][first] == search.best_params_
            or way.shows_all
            or (few > 1 and search.best_index_ == 0)
        )
    known = {"params", "param_quality", "mean_test_score", "rank_test_score", *way.columns}
    if way.shows_all:
        known |= {"std_test_score", *(f"split{place}_test_score" for place in range(3))}
    assert set(results) <= known


def test_clear_winner_wins_with_a_large_budget(usual: Way) -> None:
    way = usual
    values = {"quality": [0.05, 0.95]}
    # As many as surely draw both values.
    numbers = {"n_iter": 40, "n_trials": 20}
    known = way.kind(None, None).get_params()
    more = {name: number for name, number in numbers.items() if name in known}
    if way is WAYS["grid"]:
        more = {"selection_epsilon": 50.0}
    estimator = Scripted(epsilon=50.0, delta=DELTA)
    search = way.make(estimator, values, **more).fit(X, Y)
    assert search.best_params_ == {"quality": 0.95}
    assert search.score(X, Y) > 0.9


# Metadata ----------


@pytest.mark.filterwarnings("ignore:scoring does not support sample_weight")
@pytest.mark.parametrize("routing", [False, True])
def test_weights_go_with_their_records(by_class: Way, routing: bool) -> None:
    usual = by_class
    weights = np.linspace(0.0, 1.0, 600)
    with sklearn.config_context(enable_metadata_routing=routing):
        estimator = Scripted()
        if routing:
            estimator.set_fit_request(sample_weight=True)
        search = usual.make(estimator, VALUES)
        search.fit(X, Y, sample_weight=weights)
        assert 0.3 < search.best_estimator_.weight_ < 0.7
        if routing:
            unrequested = made(usual)
            with pytest.raises(Exception, match="sample_weight"):
                unrequested.fit(X, Y, sample_weight=weights)


# What is read ----------


def test_report_is_a_tree_that_adds_up(way: Way, name: str) -> None:
    report = fitted(name).privacy_
    assert report.name == way.kind.__name__
    assert report.parts[0].name == "selection"
    assert report.epsilon_spent <= math.fsum(
        part.profile.epsilon(DELTA / len(report.parts)) for part in report.parts
    )
    assert any("number of records is public" in words for words in report.assumptions)
    assert any("seed" in words for words in report.assumptions)
    unseeded = made(way, random_state=None).plan(*X.shape, compare=False).report
    assert not any("seed" in words for words in unseeded.assumptions)


def test_report_travels_as_little_text(by_class: Way) -> None:
    """Theorem P11."""
    estimator = DPLogisticRegression(delta=DELTA)
    search = by_class.make(estimator, {"C": [0.1, 1.0]}, delta=DELTA)
    report = search.plan(*X.shape, compare=False).report
    text = report.to_json()
    assert len(text) < 100_000
    again = PrivacyReport.from_json(text)
    assert str(again) == str(report) and again.to_json() == text
    for delta in (1e-9, 1e-7, 1e-3):
        exact = report.epsilon_at(delta)
        assert exact * (1.0 - 1e-12) <= again.epsilon_at(delta) <= exact * 1.001


def test_plan_asks_for_sizes_where_it_is_given_a_table(by_class: Way) -> None:
    hint = (
        "n_samples must be an integer of at least 1; got .* "
        r"For a DataFrame write plan\(\*df\.shape\)"
    )
    for given in (X, X.shape):
        with pytest.raises(TypeError, match=hint):
            made(by_class).plan(given)
