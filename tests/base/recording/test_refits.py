"""Repeated fits to data of one form are counted, and cause a warning without a ledger."""

from __future__ import annotations

import gc
import math
import pickle
import subprocess
import sys
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline

from skdptune.audit import audit_epsilon
from skdptune.base import PrivacyWarning, PrivateEstimatorMixin, privacy_of
from skdptune.ledger import config_context, set_config
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV, RandomRuns
from skdptune.preprocessing import DPStandardScaler
from skdptune.testing import check_private_estimator
from tests.base.counted import LABELS, ROWS, Counted

ROOT = Path(__file__).resolve().parents[3]
MESSAGE = "is fitted again to the same number of records with the same columns. The costs of fits"
GRID = {"C": [0.1, 1.0]}
MODEL = DPLogisticRegression(solver="output", data_norm=2.0, classes=[0, 1])
RNG = np.random.default_rng(1)
X = RNG.normal(size=(61, 2))
y = (X[:, 0] > 0).astype(int)


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def of_privacy(action):
    """Return all that an action warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in caught if issubclass(each.category, PrivacyWarning)]


def loop():
    # As a study of optuna does, or a person.
    for C in (0.01, 0.1, 1.0):
        clone(MODEL).set_params(C=C).fit(X[:40], y[:40]).score(X[40:], y[40:])


def fresh_objects():
    for C in (0.01, 0.1, 1.0):
        DPLogisticRegression(C=C, solver="output", data_norm=2.0, classes=[0, 1]).fit(X, y)


TUNING = {
    "GridSearchCV": lambda: GridSearchCV(MODEL, GRID, cv=2).fit(X, y),
    "GridSearchCV of a pipeline": lambda: GridSearchCV(
        make_pipeline(DPStandardScaler(bounds=(-3, 3)), MODEL),
        {"dplogisticregression__C": [0.1, 1.0]},
    ).fit(X, y),
    "GridSearchCV in threads": lambda: _in_threads(GridSearchCV(MODEL, GRID, n_jobs=2)),
    "HalvingGridSearchCV": lambda: HalvingGridSearchCV(
        MODEL, GRID, min_resources=30, cv=2, random_state=0
    ).fit(X, y),
    # Two folds of 61 records differ by one.
    "cross_val_score": lambda: cross_val_score(MODEL, X, y, cv=2),
    "loop": loop,
    "fresh objects": fresh_objects,
    "search after search": lambda: [_search(C).fit(X, y) for C in (0.1, 0.2)],
}


def _in_threads(search):
    with parallel_config(backend="threading"):
        search.fit(X, y)


def _search(C=0.1):
    grid = {"C": [C, 1.0]}
    budget = {"epsilon": 2.0, "delta": 1e-3, "random_state": 0}
    return DPRandomSearchCV(clone(MODEL), grid, n_iter=2, strategy=RandomRuns(), **budget)


@pytest.mark.parametrize("name", TUNING)
def test_tuning_that_nobody_adds_up_warns_once(name):
    (message,) = of_privacy(TUNING[name])
    assert MESSAGE in message


@pytest.mark.parametrize("name", TUNING)
def test_it_does_not_where_it_is_meant(ledger, name):
    is_recorded = list(TUNING).index(name) % 2 == 0
    with ledger if is_recorded else config_context(ledger=False):
        assert of_privacy(TUNING[name]) == []
    assert bool(ledger.history()) == is_recorded


def test_it_does_not_where_the_process_has_a_ledger(ledger):
    set_config(ledger=ledger)
    try:
        assert of_privacy(loop) == []
    finally:
        set_config(ledger=False)


def test_message_says_what_they_cost_and_what_to_do():
    Counted(epsilon=0.5, delta=1e-6).fit(ROWS, LABELS)
    with pytest.warns(PrivacyWarning, match=MESSAGE) as found:
        Counted(epsilon=0.25, delta=1e-6).fit(X=ROWS, y=LABELS)
    assert found[0].filename == __file__
    message = str(found[0].message)
    for words in (
        "Counted is fitted",
        "so far to ε = 0.750 at δ = 2e-06",
        "skdptune.DPRandomSearchCV",
        "ledger=PrivacyLedger",
        "config_context(ledger=False)",
    ):
        assert words in message
    assert "24" not in message


def test_message_counts_persons_where_they_are_the_unit():
    groups = np.repeat(np.arange(len(X) // 2 + 1), 2)[: len(X)]
    with pytest.warns(PrivacyWarning, match="same number of persons with the same columns"):
        for C in (0.01, 0.1):
            DPLogisticRegression(C=C, classes=[0, 1]).fit(X, y, groups=groups)


@pytest.mark.parametrize("wrong", [10**400, -1.0, math.nan], ids=["huge", "negative", "nan"])
def test_what_is_no_budget_is_refused_in_the_estimators_own_words(wrong):
    clone(MODEL).fit(X, y)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="epsilon must be"):
        warnings.simplefilter("ignore")
        clone(MODEL).set_params(epsilon=wrong).fit(X, y)


def test_refused_warning_has_read_nothing(tmp_path):
    counts = tmp_path / "counts"
    Counted(str(counts)).fit(ROWS, LABELS)
    with pytest.raises(PrivacyWarning):
        Counted(str(counts)).fit(ROWS, LABELS)
    assert counts.read_text("utf-8") == "24\n"


def test_other_sizes_columns_and_classes_do_not_warn():
    class Other(Counted):
        pass

    for kind in (Counted, Other):
        kind().fit(ROWS, LABELS)
        kind().fit(ROWS[:20], LABELS[:20])
        kind().fit(ROWS[:, :1], LABELS)
        kind().fit(pd.DataFrame(ROWS, columns=["a", "b"]), LABELS)
        kind().fit(pd.DataFrame(ROWS, columns=["a", "c"]), LABELS)
    pickle.loads(pickle.dumps(Counted())).fit(ROWS[:18], LABELS[:18])


def test_transformers_of_one_composition_do_not_warn():
    each = [(DPStandardScaler(bounds=(-3, 3)), [place]) for place in range(2)]
    make_pipeline(make_column_transformer(*each), MODEL).fit(X, y)
    scaler = DPStandardScaler(bounds=(-3, 3)).fit(X)
    with pytest.warns(PrivacyWarning, match=MESSAGE):
        scaler.fit(X)


def test_fit_that_fails_may_be_tried_again():
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the fit failed"):
            Counted(C="fails").fit(ROWS, LABELS)
    Counted().fit(ROWS, LABELS)


def test_methods_of_one_fit_are_one_fit():
    class Own(Counted):
        def fit(self, X, y):
            return super().fit(X, y)

    Own().partial_fit(ROWS, LABELS)
    with pytest.warns(PrivacyWarning, match=MESSAGE):
        Own().partial_fit(ROWS, LABELS)


def test_package_itself_fits_many_times():
    assert of_privacy(lambda: _search().fit(X, y)) == []
    grid = DPGridSearchCV(
        make_pipeline(DPStandardScaler(bounds=(-3, 3)), clone(MODEL)),
        {"dplogisticregression__C": [0.1, 1.0]},
        strategy="table",
        epsilon=4.0,
        delta=1e-3,
        random_state=0,
    )
    assert of_privacy(lambda: grid.fit(X, y)) == []
    assert of_privacy(lambda: audit_epsilon(MODEL, X, y, n_trials=40, random_state=0)) == []
    assert of_privacy(lambda: check_private_estimator(clone(MODEL))) == []
    models = [DPRidge(epsilon=epsilon, data_norm=1.0, target_bound=1.0) for epsilon in (0.5, 1.0)]
    assert of_privacy(lambda: DPRidge.fit_many(models, X, y)) == []
    assert len(of_privacy(lambda: DPRidge.fit_many(models, X, y))) == 1


def test_what_protects_nothing_does_not_warn():
    model = DPLogisticRegression(epsilon=math.inf, solver="output", classes=[0, 1])
    model.fit(X, y).fit(X, y)
    assert model.privacy_.fits_seen is None


def test_secret_size_is_not_compared():
    for size in (20, 24):
        estimator = Counted()
        estimator.n_public = 30 + size
        estimator.fit(ROWS[:size], LABELS[:size])
    with pytest.warns(PrivacyWarning, match=MESSAGE):
        estimator.fit(ROWS[:7], LABELS[:7])


def test_nothing_is_kept_in_the_object_nor_after_its_class():
    class Passing(Counted):
        pass

    estimator = Passing().fit(ROWS, LABELS)
    assert "24" not in repr(vars(estimator))
    kind = weakref.ref(Passing)
    del estimator, Passing
    gc.collect()
    assert kind() is None


class Odd(PrivateEstimatorMixin, BaseEstimator):
    """Accepts anything, and is not hashable."""

    epsilon, delta, random_state = 0.5, 0.0, None
    __hash__ = None

    def __eq__(self, other):
        return False

    def transform(self, X):
        return X

    def fit(self, X, y=None):
        return self


@pytest.mark.parametrize(
    "data", [iter(()), {"a": 1}, ["text", "text"], None], ids=lambda data: type(data).__name__
)
def test_data_of_any_kind_and_objects_without_identity_are_passed_over(data):
    Odd().fit(data).fit(data)


class TestStatements:
    """A report says how many fits it is one of, or that this is not known."""

    def answers(self, report):
        statement = report.statement()
        return f"{statement.tuning} {statement.facts.other_releases}"

    def test_fits_of_a_search_of_others(self):
        search = GridSearchCV(clone(MODEL), {"C": np.geomspace(0.1, 1.0, 8)}, cv=5)
        assert len(of_privacy(lambda: search.fit(X, y))) == 1
        report = search.best_estimator_.privacy_
        assert report.fits_seen == 41
        assert self.answers(report).count("41 fits of DPLogisticRegression") == 2
        assert "tunes nothing" not in self.answers(report)

    def test_later_fits_are_counted(self):
        report = Counted().fit(ROWS, LABELS).privacy_
        assert report.fits_seen == 1
        assert "has seen 1 fit of Counted" in self.answers(report)
        Counted().fit(ROWS[:9], LABELS[:9])
        Counted().fit(ROWS[:, :1], LABELS)
        assert report.fits_seen == 2

    def test_recorded_fits_are_counted(self, ledger):
        with ledger:
            models = [Counted().fit(ROWS, LABELS) for _ in range(3)]
        assert models[0].privacy_.fits_seen == 3

    def test_steps_of_a_pipeline_and_searches_count(self):
        pipeline = make_pipeline(DPStandardScaler(bounds=(-3, 3)), clone(MODEL)).fit(X, y)
        answers = self.answers(privacy_of(pipeline, 1e-3))
        assert "1 fit of DPStandardScaler, 1 fit of DPLogisticRegression" in answers
        search = _search().fit(X, y)
        assert search.privacy_.fits_seen == 1
        assert search.privacy_.statement().tuning.startswith("Yes.")
        assert search.best_estimator_.privacy_.fits_seen is None

    def test_what_was_loaded_does_not_know(self):
        model = Counted().fit(ROWS, LABELS)
        loaded = pickle.loads(pickle.dumps(model))
        assert loaded.privacy_ == model.privacy_
        for report in (loaded.privacy_, type(model.privacy_).from_json(model.privacy_.to_json())):
            assert report.fits_seen is None
            assert "How many fits were made is not known" in self.answers(report)
            assert "tunes nothing" not in self.answers(report)

    def test_threads_count_every_fit(self):
        with ThreadPoolExecutor(4) as pool, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = list(pool.map(lambda _: Counted().fit(ROWS, LABELS), range(40)))
        assert models[0].privacy_.fits_seen == 40


WORKERS = """
import sys
import numpy as np
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV
import skdptune
from skdptune.linear_model import DPLogisticRegression
X = np.random.default_rng(0).normal(size=(60, 2))
model = DPLogisticRegression(solver="output", data_norm=2.0, classes=[0, 1])
search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2, n_jobs=2)
with skdptune.config_context(ledger=False):
    search.fit(X, X[:, 0] > 0)
print("on from here", file=sys.stderr, flush=True)
search.fit(X, X[:, 0] > 0)
"""


# That threads warn is tested above, with every change.
@pytest.mark.slow
def test_each_worker_warns_for_itself():
    command = [sys.executable, "-c", WORKERS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    off, on = done.stderr.split("on from here")
    assert MESSAGE not in off and MESSAGE in on
