"""Common properties of searches for one model: the choice, the final fit, the output."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from skdptune.ledger import LedgerError, PrivacyLedger, config_context
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.metrics import (
    accuracy,
    balanced_accuracy,
    neg_brier_score,
    neg_log_loss,
    neg_squared_error,
)
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    _choosing,
)
from skdptune.model_selection._strategies import _random_runs
from skdptune.model_selection._strategies._full_table import own_place
from tests.flat import changed, flat
from tests.model_selection.learners import Loud, Scripted, Unread, table
from tests.model_selection.ways import USUAL, WAYS
from tests.testing.public_estimators import HAS_OPTUNA

DELTA = 1e-5
X, Y = table(600)


def search(estimator: Any = None, **more: Any) -> DPRandomSearchCV:
    settings = {"delta": DELTA, "random_state": 0, "tuning_fraction": None, **more}
    return flat(DPRandomSearchCV, estimator or Scripted(), {"quality": [0.2, 0.8]}, **settings)


def of_kind(kind: str, own: float, values: list[float], seed: int, **more: Any) -> Any:
    """Return a fitted search of an estimator with this share of correct predictions."""
    kinds = {"random": DPRandomSearchCV, "adaptive": DPAdaptiveSearchCV}
    if kind == "compose":
        values, more = [own, *values], {"strategy": "compose", **more}
    if kind == "adaptive":
        more = {"sampler": "random", "n_trials": 4, **more}
    made = flat(
        kinds.get(kind, DPGridSearchCV), Scripted(own, delta=DELTA), {"quality": values},
        epsilon=4.0, delta=DELTA, random_state=seed, **more,
    )  # fmt: skip
    return made.fit(*table(8000))


@pytest.mark.parametrize(
    "kind", ["random", "table", "compose", *(["adaptive"] if HAS_OPTUNA else [])]
)
class TestKeepsTheDefault:
    """Theorem N6: whole searches return what is worse than the estimator as it is rarely."""

    def test_what_is_no_better_is_not_returned(self, kind: str) -> None:
        found = [of_kind(kind, 0.7, [0.7 - 1e-9, 0.69], seed).best_params_ for seed in range(6)]
        # With a chance of 5 % for each, more than two are seen once in 450 times.
        assert sum(params["quality"] != 0.7 for params in found) <= 2

    @pytest.mark.slow
    def test_it_is_returned_by_one_search_of_twenty_at_most(self, kind: str) -> None:
        found = [of_kind(kind, 0.7, [0.7 - 1e-9, 0.69], seed).best_params_ for seed in range(100)]
        wrong = sum(params["quality"] != 0.7 for params in found)
        # Above it once in a thousand times, if the chance is 5 %.
        assert wrong <= stats.binom(100, 0.05).ppf(0.999)

    def test_what_is_much_better_is_returned(self, kind: str) -> None:
        found = of_kind(kind, 0.6, [0.8, 0.59], 0)
        assert found.best_params_ == {"quality": 0.8}
        assert {"quality": 0.6} in list(found.cv_results_["params"])


def targets(kind: str, seed: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return records, and targets in [-1, 1], of which errors are clipped at .5 by default."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n_samples, 3))
    y = {
        "errors at the end": 0.5 * np.sign(rng.normal(size=n_samples)) + 0.2 * X[:, 0],
        "two ends": np.sign(rng.normal(size=n_samples) + X[:, 0]),
        "heavy tails": 0.6 * X[:, 0] + 0.1 * rng.standard_t(2, size=n_samples),
        "skewed": 0.2 * rng.exponential(size=n_samples) - 1.0,
    }[kind]
    return X, np.clip(y, -1.0, 1.0)


@pytest.mark.parametrize("kind", ["errors at the end", "two ends", "heavy tails", "skewed"])
@pytest.mark.parametrize("n_samples", [3000, 20_000])
def test_clipped_errors_do_not_decide(kind: str, n_samples: int) -> None:
    """Theorem N6: candidates of equal settings, with scores that noise changes to the first order.

    Without the condition, up to 36 % of these searches chose another candidate.
    """
    budget, wrong, count = {"epsilon": 2.0, "delta": DELTA}, 0, 25
    start = DPRidge(**budget, data_norm=1.0, target_bound=1.0, alpha=1.0)
    listed = {"alpha": [1.0 + 1e-3 * step for step in range(5)]}
    with config_context(ledger=False):
        for seed in range(count):
            made = DPGridSearchCV(start, listed, **budget, strategy="table", random_state=seed)
            found = made.fit(*targets(kind, seed, n_samples))
            wrong += found.best_params_ != {"alpha": 1.0}
    assert wrong <= stats.binom(count, 0.05).ppf(0.999)


def test_the_condition_is_in_the_plan_and_leaves_clear_gains() -> None:
    """Theorem N6: it concerns scores of clipped errors alone, and is checked by the own score."""
    X, y = targets("heavy tails", 0, 20_000)
    budget = {"epsilon": 4.0, "delta": DELTA}
    start = DPRidge(**budget, data_norm=1.0, target_bound=1.0, alpha=1e6)
    made = DPGridSearchCV(start, {"alpha": [1e6, 100.0]}, **budget, random_state=0)
    words = "kept if their own score is in the lower half"
    assert words in made.plan(*X.shape, compare=False).keeps
    assert made.fit(X, y).best_params_ == {"alpha": 100.0}
    # Nearly all errors are clipped: the same gain is not trusted.
    tight = made.set_params(scoring=neg_squared_error(1e-4)).fit(X, y)
    assert tight.best_params_ == {"alpha": 1e6}
    random = DPRandomSearchCV(start, {"alpha": [100.0]}, **budget, random_state=0)
    assert random.fit(X, y).best_params_ == {"alpha": 100.0}
    tight = random.set_params(scoring=neg_squared_error(1e-4)).fit(X, y)
    assert tight.best_params_ == {"alpha": 1e6}
    assert words not in search(epsilon=2.0).plan(600, 3, compare=False).keeps


def test_listed_steps_are_compared_with_the_step_as_it_is() -> None:
    """Theorem N6: the unchanged step is known by its parameters; a plan speaks of it if listed."""
    others = [Scripted(0.7 - 1e-9, delta=DELTA), Scripted(0.69, delta=DELTA)]
    whole = Pipeline([("model", Scripted(0.7, delta=DELTA))])

    def of(listed: list[Any], seed: int) -> DPGridSearchCV:
        settings = {"epsilon": 4.0, "delta": DELTA, "random_state": seed}
        return DPGridSearchCV(whole, {"model": listed}, **settings)

    listed = [others[0], Scripted(0.7, delta=DELTA), others[1]]
    found = [of(listed, seed).fit(*table(8000)).best_index_ for seed in range(6)]
    assert sum(index != 1 for index in found) <= 2
    words = "own parameters are kept unless another candidate scores higher"
    assert words in str(of(listed, 0).plan(8000, 3, compare=False))
    assert words not in str(of(others, 0).plan(8000, 3, compare=False))


@pytest.mark.parametrize(
    ("own", "other", "is_same"),
    [
        (1.0, np.float64(1.0), True),
        (1.0, 1, True),
        (1.0, True, False),
        (np.zeros(2), np.zeros(2), True),
        (np.zeros(1), np.zeros(2), False),
        (np.zeros(0), np.ones(1), False),
        ([Scripted(0.5)], [Scripted(0.5)], True),
        ([Scripted(0.5)], [Scripted(0.6)], False),
    ],
    ids=str,
)
def test_values_are_those_of_the_unchanged_estimator(own: Any, other: Any, is_same: bool) -> None:
    """Theorem N6: no other candidate is taken for it."""
    place = own_place(Scripted(mark=own), [{"mark": "none"}, {"mark": other}])
    assert place == (1 if is_same else None)


def test_without_the_margin_what_is_no_better_is_often_returned(monkeypatch) -> None:
    """Theorem N6: the test of whole searches can fail."""
    monkeypatch.setattr(_choosing, "margin", lambda rivals: 0.0)
    monkeypatch.setattr(_random_runs, "margin", lambda rivals: 0.0)
    found = [of_kind("random", 0.7, [0.7 - 1e-9, 0.69], seed).best_params_ for seed in range(12)]
    assert sum(params["quality"] != 0.7 for params in found) > 3


def test_ties_are_broken_without_the_data() -> None:
    # On public data scores are exact: the last three candidates are as good as each other.
    listed = [{"quality": [0.1], "mark": ["a"]}, {"quality": [0.7], "mark": ["b", "c", "d"]}]
    found = {
        flat(
            DPGridSearchCV, Scripted(), listed, delta=DELTA, strategy="compose", random_state=seed
        )
        .fit(X, Y, X_val=X[:50], y_val=Y[:50])
        .best_index_
        for seed in range(12)
    }
    assert found == {1, 2, 3}


def test_a_final_fit_that_fails_gives_a_model_that_no_record_influenced() -> None:
    """Theorem F4: it shows what a failing fit of other data would have shown."""
    found = []
    for seed in (0, 1):
        rows, labels = table(600, seed=seed)
        grid = {"quality": [0.1]}
        one = DPGridSearchCV(Loud(0.1, mark="secret"), grid, delta=DELTA, random_state=0)
        changed(one, tuning_estimator=Scripted()).fit(rows, labels)
        found.append(vars(one.best_estimator_))
    assert found[0].keys() == found[1].keys()
    assert not any("secret" in str(value) for name, value in found[0].items() if name != "mark")


class Seeing(Scripted):
    """Notes the records that it is fitted to and predicts, told apart by their last column."""

    trained: list[list[float]] = []
    scored: list[list[float]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        Seeing.trained.append(np.asarray(X)[:, 2].tolist())
        return super().fit(X, y)

    def predict(self, X: Any) -> Any:
        Seeing.scored.append(np.asarray(X)[:, 2].tolist())
        return super().predict(X)


def test_validation_data_are_those_of_the_split_or_public() -> None:
    """Theorem F1: no record both trains and scores."""
    for seed in range(2):
        Seeing.trained, Seeing.scored = [], []
        one = search(Seeing(), cv=0.25, random_state=seed).fit(X, Y)
        (split,) = {frozenset(rows) for rows in Seeing.scored if len(rows) > 9}
        assert 110 < len(split) < 190
        fitted = [rows for rows in Seeing.trained if len(rows) > 9]
        assert all(set(rows) == set(X[:, 2]) - split for rows in fitted) and fitted
        Seeing.trained, Seeing.scored = [], []
        one.fit(X, Y, X_val=X[:9], y_val=Y[:9])
        assert {len(rows) for rows in Seeing.scored if len(rows) > 6} == {9}
        assert {len(rows) for rows in Seeing.trained if len(rows) > 6} == {600}


class Knows(Scripted):
    """Takes its label set, and keeps which one it had."""

    def __init__(self, quality: float = 0.5, classes: Any = None) -> None:
        super().__init__(quality)
        self.classes = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Knows:
        super().fit(X, y)
        self.knew_ = self.classes
        return self


def test_steps_that_are_left_to_the_space() -> None:
    """The label set of a classifier among them is found once, and not by each fit."""
    unset = None
    pipeline = Pipeline([("before", Normalizer()), ("last", unset)])
    values = {"last": [Knows(), Knows(0.9)], "last__quality": [0.3, 0.8]}
    for found in (
        DPGridSearchCV(pipeline, values, delta=DELTA, random_state=0, strategy="table"),
        DPRandomSearchCV(pipeline, values, delta=DELTA, random_state=0),
    ):
        found.fit(X, Y)
        assert found.scorer_.name == "accuracy"
        last = found.best_estimator_["last"]
        assert last.knew_ == [0, 1]
        assert last.quality == found.best_params_["last__quality"]
        assert any("label set" in sentence for sentence in found.privacy_.assumptions)
    assert values["last"][0].quality == 0.5 and pipeline["last"] == unset


def adaptive_session() -> tuple[Any, Any]:
    started = DPAdaptiveSearchCV(
        Scripted(), {"quality": [0.2, 0.8]}, epsilon=4.0, delta=DELTA, n_trials=2, random_state=0
    ).start(X, Y)
    return lambda: started.tell(started.ask()), started.finish


def doubling_session() -> tuple[Any, Any]:
    started = DoublingThresholdSearchCV(
        Scripted(), {"quality": [0.2, 0.8]}, epsilon=4.0, delta=DELTA, random_state=0
    ).start(X, Y)
    return lambda: started.propose([{"quality": 0.2}]), started.finish


needs_optuna = pytest.mark.skipif(not HAS_OPTUNA, reason="optuna is not installed")


@pytest.mark.parametrize(
    "start", [pytest.param(adaptive_session, marks=needs_optuna), doubling_session]
)
def test_session_that_was_started_without_a_ledger_reads_nothing_under_one(start: Any) -> None:
    """Theorem H4: what it reads would be recorded nowhere."""
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=DELTA)
    go_on, finish = start()
    for refusing in (ledger, config_context(require_ledger=True)):
        with refusing, pytest.raises(LedgerError, match="ledger must be"):
            go_on()
    assert ledger.history() == []
    with ledger:
        go_on, finish = start()
        assert [record.status for record in ledger.history()] == ["reserved"]
    # It goes on where its ledger is no longer in use.
    go_on()
    finish()
    assert [record.status for record in ledger.history()] == ["confirmed"]


def test_scores_weigh_the_classes_of_the_estimator() -> None:
    # Records of a class that is misspelt would weigh nothing, or 1, in silence.
    model = DPLogisticRegression(classes=["ill", "well"])
    three = {"ill": 1.0, "well": 2.0, "dead": 1.0}
    for scoring, words in (
        (balanced_accuracy({"sick": 0.5, "well": 0.5}), "got 'sick', which are not among them"),
        (accuracy({"well": 2.0}), "got 1 too few"),
        (neg_log_loss(3.0, {"Ill": 1.0, "well": 2.0}), "got 'Ill', which are not among them"),
        (neg_brier_score(three), "got 'dead', which are not among them"),
    ):
        search = DPGridSearchCV(model, {"C": [0.1, 1.0]}, epsilon=1.0, scoring=scoring)
        with pytest.raises(ValueError, match=f"scoring must name each of the.* {words}"):
            search.plan(9000, 3)
    right = balanced_accuracy({"ill": 0.1, "well": 0.9})
    search.set_params(scoring=right).plan(9000, 3, compare=False)


@pytest.mark.parametrize("way", [name for name in USUAL if not WAYS[name].needs_total])
def test_a_search_without_a_total_needs_noise_in_its_fits(way: str) -> None:
    values: Any = {"C": (0.1, 1.0) if way == "adaptive" else [0.1, 1.0]}
    search = WAYS[way].make(DPLogisticRegression(epsilon=math.inf), values, delta=1e-5)
    with pytest.raises(ValueError, match="epsilon must be given for .* that adds no noise; got"):
        search.privacy_profile(2000, 3)
    # Before data are read.
    with pytest.raises(ValueError, match="epsilon must be given for"):
        search.fit(*UNREAD)
    assert np.isfinite(search.set_params(epsilon=2.0).privacy_profile(2000, 3).epsilon(1e-5))
    own = search.set_params(epsilon=None, estimator__epsilon=0.1, estimator__delta=1e-8)
    assert np.isfinite(own.privacy_profile(2000, 3).epsilon(1e-5))


UNREAD = np.zeros((2000, 3)).view(Unread), np.arange(2000) % 2
