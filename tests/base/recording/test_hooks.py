"""Every fit is recorded: single ones, those of scikit-learn's tools, in threads and processes."""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
import warnings

import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.metaestimators import available_if

from skdptune.accounting import BudgetExceededError, PrivacyProfile
from skdptune.base import PrivateEstimatorMixin, register_profile
from skdptune.ledger import LedgerError, PrivacyLedger, config_context
from skdptune.linear_model import DPRidge
from skdptune.preprocessing import DPStandardScaler
from tests.base.counted import LABELS, ROWS, Counted, cloudpickle, count_of, sizes_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def grid(model, n_jobs):
    return GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2, n_jobs=n_jobs).fit(ROWS, LABELS)


def pipelines(model, n_jobs):
    search = GridSearchCV(
        make_pipeline(Normalizer(), model), {"counted__C": [0.1, 1.0]}, cv=2, n_jobs=n_jobs
    )
    return search.fit(ROWS, LABELS)


def voting(model, n_jobs):
    pair = [("a", model), ("b", clone(model))]
    return VotingClassifier(pair, n_jobs=n_jobs).fit(ROWS, LABELS)


def bagging(model, n_jobs):
    # Without repetitions: what a fit costs is about one row for each record.
    bag = BaggingClassifier(model, n_estimators=3, bootstrap=False, n_jobs=n_jobs, random_state=0)
    return bag.fit(ROWS, LABELS)


def scores(model, n_jobs):
    return cross_val_score(model, ROWS, LABELS, cv=3, n_jobs=n_jobs)


TOOLS = {
    "GridSearchCV": (grid, 5),
    "Pipeline": (pipelines, 5),
    "VotingClassifier": (voting, 2),
    "BaggingClassifier": (bagging, 3),
    "cross_val_score": (scores, 3),
}
AT_WORK = {"one": ("loky", 1), "threads": ("threading", 2), "loky": ("loky", 2)}


# Of tools with workers in other processes one: the others start them in the same way.
CASES = [
    pytest.param(tool, workers, marks=[pytest.mark.slow] if workers == "loky" else [])
    if tool != "GridSearchCV"
    else (tool, workers)
    for tool in TOOLS
    for workers in AT_WORK
]


@pytest.mark.parametrize("way", ["parameter", "block"])
@pytest.mark.parametrize(("tool", "workers"), CASES)
def test_tools_of_scikit_learn_record_every_fit(on_disk, counts, tool, workers, way):
    """Theorem H4."""
    (run, n_fits), (backend, n_jobs) = TOOLS[tool], AT_WORK[workers]
    with parallel_backend(backend):
        if way == "parameter":
            run(Counted(str(counts), ledger=on_disk), n_jobs)
        else:
            with on_disk:
                run(Counted(str(counts)), n_jobs)
    assert sizes_of(on_disk) == count_of(counts)
    assert len(on_disk.history()) == n_fits
    assert {record.status for record in on_disk.history()} == {"confirmed"}


class TestOneFit:
    """Theorem H4."""

    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_methods_that_read_data_are_recorded_once(self, ledger, counts, method):
        model = Counted(str(counts), ledger=ledger)
        getattr(model, method)(ROWS, LABELS)
        (record,) = ledger.history()
        assert (record.name, record.status) == ("Counted", "confirmed")
        assert record.epsilon == pytest.approx(model.privacy_.profile.epsilon(1e-5))

    def test_pipeline_records_each_step(self, ledger):
        with ledger:
            make_pipeline(DPStandardScaler(bounds=(-3, 3)), Counted()).fit(ROWS, LABELS)
        assert [record.name for record in ledger.history()] == ["DPStandardScaler", "Counted"]

    def test_override_that_calls_its_base_is_one_fit(self, ledger):
        class Cleaning(Counted):
            def fit(self, X, y):
                return super().fit(np.nan_to_num(X), y)

        Cleaning(ledger=ledger).fit(ROWS, LABELS)
        assert [record.name for record in ledger.history()] == ["Cleaning"]

    def test_what_one_holds_is_paid_for_by_it(self, ledger):
        class Ensemble(Counted):
            def __init__(self, base=None, epsilon=0.25, delta=0.0):
                super().__init__(epsilon=epsilon, delta=delta)
                self.base = base

            def fit(self, X, y):
                with parallel_backend("threading"):
                    self.votes_ = voting(self.base, 2)
                return super().fit(X, y)

        with ledger:
            ensemble = Ensemble(Counted()).fit(ROWS, LABELS)
            assert [record.name for record in ledger.history()] == ["Ensemble"]
            # Nothing that it has stored is paid for later.
            clone(ensemble.votes_.estimators_[0]).fit(ROWS, LABELS)
            ensemble.votes_.estimators_[0].fit(ROWS, LABELS)
        assert len(ledger.history()) == 3

    def test_many_that_are_fitted_together_are_recorded_one_by_one(self, ledger):
        other = PrivacyLedger(":memory:", "others", epsilon=9.0, delta=1e-5)
        models = [
            DPRidge(epsilon=each, data_norm=1.0, target_bound=1.0, ledger=used)
            for each, used in ((0.5, ledger), (0.25, other), (0.75, None))
        ]
        DPRidge.fit_many(iter(models), ROWS, ROWS[:, 0])
        assert [len(ledger.history()), len(other.history())] == [1, 1]
        with ledger:
            DPRidge.fit_many([models[0], models[2]], ROWS, ROWS[:, 0])
        assert [record.status for record in ledger.history()] == ["confirmed"] * 3

    def test_many_of_which_one_does_not_fit_cost_nothing(self, counts):
        small = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=1e-5)
        models = [
            DPRidge(epsilon=each, data_norm=1.0, target_bound=1.0, ledger=small)
            for each in (0.5, 0.9)
        ]
        with pytest.raises(BudgetExceededError):
            DPRidge.fit_many(models, ROWS, ROWS[:, 0])
        assert [record.status for record in small.history()] == ["cancelled"]
        assert not hasattr(models[0], "privacy_")


class TestRefusals:
    """Theorem H4: what is refused has read nothing, and what has read is spent."""

    def test_budget_that_is_exceeded_reads_nothing(self, counts):
        small = PrivacyLedger(":memory:", "patients", epsilon=0.4, delta=0.0)
        model = Counted(str(counts), ledger=small).fit(ROWS, LABELS)
        with pytest.raises(BudgetExceededError, match="'Counted'"):
            model.fit(ROWS, LABELS)
        assert len(count_of(counts)) == len(small.history()) == 1

    @pytest.mark.parametrize(
        ("changes", "arguments", "error"),
        [
            ({}, (ROWS,), TypeError),
            ({}, (ROWS, None), ValueError),
            ({}, (ROWS, LABELS[:3]), ValueError),
            ({}, (ROWS, LABELS, 1), TypeError),
            ({"epsilon": -1.0}, (ROWS, LABELS), ValueError),
            ({"ledger": "path"}, (ROWS, LABELS), TypeError),
        ],
        ids=["no y", "y is None", "lengths", "one more", "epsilon", "ledger"],
    )
    def test_calls_that_cannot_be_made_cost_nothing(
        self, ledger, counts, changes, arguments, error
    ):
        with ledger, pytest.raises(error):
            Counted(str(counts)).set_params(**changes).fit(*arguments)
        assert ledger.history() == count_of(counts) == []

    def test_exception_leaves_the_cost_spent(self, ledger, counts):
        with ledger, pytest.raises(RuntimeError, match="the fit failed"):
            Counted(str(counts), C="fails").fit(ROWS, LABELS)
        (record,) = ledger.history()
        assert record.status == "read" and record.is_spent

    def test_two_ledgers_are_refused_and_one_twice_is_not(self, ledger, counts):
        other = PrivacyLedger(":memory:", "others", epsilon=9.0, delta=1e-5)
        with ledger:
            with pytest.raises(ValueError, match="stand for different data sets"):
                Counted(str(counts), ledger=other).fit(ROWS, LABELS)
            assert count_of(counts) == []
            Counted(ledger=ledger).fit(ROWS, LABELS)
        assert [len(ledger.history()), len(other.history())] == [1, 0]

    def test_required_ledger_refuses_a_fit_without(self, ledger, counts):
        with config_context(require_ledger=True):
            with pytest.raises(LedgerError, match="ledger must be given"):
                Counted(str(counts)).fit(ROWS, LABELS)
            Counted(ledger=ledger).fit(ROWS, LABELS)
            with ledger:
                Counted().fit(ROWS, LABELS)
        assert count_of(counts) == [] and len(ledger.history()) == 2

    @pytest.mark.slow
    def test_required_ledger_is_required_of_workers(self, counts):
        with config_context(require_ledger=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(LedgerError, match="ledger must be given"):
                cross_val_score(
                    Counted(str(counts)), ROWS, LABELS, cv=2, n_jobs=2, error_score="raise"
                )
        assert count_of(counts) == []

    @pytest.mark.slow
    def test_worker_that_is_killed_leaves_the_cost_spent(self, on_disk, counts):
        with on_disk, pytest.raises(RuntimeError):
            cross_val_score(
                Counted(str(counts), C="dies"), ROWS, LABELS, cv=2, n_jobs=2, error_score="raise"
            )
        assert sizes_of(on_disk) == count_of(counts) != []
        assert {record.status for record in on_disk.history()} == {"read"}

    @pytest.mark.slow
    def test_ledger_in_memory_does_not_reach_workers(self, ledger, counts):
        with ledger, pytest.raises(LedgerError, match="in a file for workers"):
            cross_val_score(
                Counted(str(counts)), ROWS, LABELS, cv=2, n_jobs=2, error_score="raise"
            )
        assert ledger.history() == count_of(counts) == []

    def test_no_ledger_by_request_records_nothing(self, ledger):
        with ledger, config_context(ledger=False):
            Counted().fit(ROWS, LABELS)
        assert ledger.history() == []


def _read(estimator, X):
    estimator.mean_ = np.mean(X)
    return estimator


class Bound:
    """Gives a function of two arguments, as compiled classes and decorators may."""

    def __get__(self, estimator, owner=None):
        return self if estimator is None else lambda X, y: _read(estimator, X)


def _as_available_if():
    @available_if(lambda self: True)
    def fit(self, X, y):
        return _read(self, X)

    return fit


def _as_partial_method():
    def fit(self, mode, X, y):
        return _read(self, X)

    return functools.partialmethod(fit, "mode")


def _as_copy_of_words():
    @functools.wraps(Counted.fit)
    def fit(self, X, y):
        return _read(self, X)

    return fit


def _as_class_method():
    return classmethod(lambda cls, X, y: _read(cls, X))


def _as_any_arguments():
    def fit(self, *args, **kwargs):
        return Counted.fit(self, *args, **kwargs)

    return fit


def _as_other_names():
    return lambda self, data, target: _read(self, data)


class TestFormsOfMethods:
    """Theorem H4: whatever a method that reads data is made of, its calls are recorded."""

    FORMS = {
        "available_if": _as_available_if,
        "partialmethod": _as_partial_method,
        "descriptor": Bound,
        "wraps": _as_copy_of_words,
        "classmethod": _as_class_method,
        "arguments": _as_any_arguments,
        "names": _as_other_names,
    }

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("name", ["fit", "partial_fit", "fit_predict"])
    def test_it_is_recorded_once(self, ledger, form, name):
        kind = type("Formed", (Counted,), {name: self.FORMS[form]()})
        with ledger:
            getattr(kind(), name)(ROWS, LABELS)
        (record,) = ledger.history()
        assert (record.name, record.status) == ("Formed", "confirmed")
        assert record.details["n_samples"] == 24
        getattr(kind(), name)(ROWS, LABELS)
        assert len(ledger.history()) == 1

    @pytest.mark.parametrize("form", ["available_if", "partialmethod", "wraps"])
    def test_call_of_the_class_is_recorded(self, ledger, form):
        kind = type("Formed", (Counted,), {"fit": self.FORMS[form]()})
        with ledger:
            kind.fit(kind(), ROWS, LABELS)
        assert len(ledger.history()) == 1

    def test_call_of_a_class_without_an_object_is_refused(self, ledger):
        kind = type("Formed", (Counted,), {"fit": _as_class_method()})
        with ledger, pytest.raises(TypeError):
            kind.fit(ROWS, LABELS)
        assert not hasattr(kind, "mean_") and ledger.history() == []

    def test_property_that_is_not_offered_stays_so(self):
        def partial_fit(self):
            raise AttributeError("not offered")

        kind = type("Formed", (Counted,), {"partial_fit": property(partial_fit)})
        assert not hasattr(kind(), "partial_fit")

    def test_class_that_cannot_be_changed_is_not_registered(self):
        class Fixed(type):
            def __setattr__(cls, name, value):
                raise TypeError("immutable type")

        class Closed(metaclass=Fixed):
            def fit(self, X, y=None):
                return self

        with pytest.raises(TypeError, match="Register a subclass"):
            register_profile(Closed)(lambda *of_fit: PrivacyProfile.pure(0.5))

    def test_fit_of_another_ledger_within_is_refused(self, ledger, counts):
        """Theorem H4: two that are named and differ."""
        other = PrivacyLedger(":memory:", "others", epsilon=9.0, delta=1e-5)

        class Outer(Counted):
            def fit(self, X, y):
                Counted(str(counts), ledger=self.inner).fit(X, y)
                return self

        with ledger:
            outer = Outer()
            outer.inner = other
            with pytest.raises(ValueError, match="stand for different data sets"):
                outer.fit(ROWS, LABELS)
            assert count_of(counts) == other.history() == []
            outer.inner = ledger
            outer.fit(ROWS, LABELS)
        assert [record.name for record in ledger.history()] == ["Outer", "Outer", "Counted"]


class TestClasses:
    """Methods are wrapped once, and look as before."""

    def test_methods_keep_their_signature_and_words(self):
        assert list(inspect.signature(Counted.fit).parameters) == ["self", "X", "y"]
        assert DPRidge.fit.__doc__.startswith("Fit the model privately.")
        assert DPRidge.fit_many.__func__.__name__ == "fit_many"
        assert pickle.loads(pickle.dumps(Counted.fit)) is Counted.fit

    def test_inherited_fit_of_a_class_that_is_not_private_is_recorded(self, ledger):
        class Plain(BaseEstimator):
            def fit(self, X, y=None):
                return self

        class Private(PrivateEstimatorMixin, Plain):
            epsilon, delta, random_state = 0.5, 0.0, None

            def privacy_profile(self, n_samples, n_features=None):
                return PrivacyProfile.pure(0.5)

        with ledger:
            Plain().fit(ROWS)
            Private().fit(ROWS)
        assert [record.name for record in ledger.history()] == ["Private"]


class Strange(BaseEstimator):
    def fit(self, X, y=None):
        self.mean_ = np.mean(X)
        return self


class StrangeHeir(Strange):
    def fit(self, X, y=None):
        return super().fit(X, y)


@pytest.fixture(scope="module")
def _registered():
    @register_profile(Strange)
    def cost_of_strange(estimator, n_samples, n_features):
        return PrivacyProfile.pure(0.5)


@pytest.mark.usefixtures("_registered")
class TestRegisteredClasses:
    """Theorem H4: classes of others are recorded once they are registered."""

    def test_they_and_their_heirs_are_recorded(self, ledger):
        class Later(StrangeHeir):
            def fit(self, X, y=None):
                return super().fit(X, y)

        with ledger:

            class Alone(Strange):
                def fit(self, X, y=None):
                    return self

            for kind in (Strange, StrangeHeir, Later, Alone):
                kind().fit(ROWS)
        names = [record.name for record in ledger.history()]
        assert names == ["Strange", "StrangeHeir", "Later", "Alone"]
        assert Strange().fit(ROWS).fit(ROWS).mean_ == ROWS.mean()

    def test_they_are_recorded_in_workers(self, on_disk):
        with on_disk:
            cross_val_score(
                make_pipeline(Strange()), ROWS, cv=2, n_jobs=2, scoring=lambda *of_model: 0.0
            )
        assert len(on_disk.history()) == 2

    def test_they_need_not_be_estimators_of_scikit_learn(self, ledger):
        class Bare:
            def fit(self, records):
                return self

        class Private(PrivateEstimatorMixin, Bare):
            epsilon, delta, random_state = 0.5, 0.0, None

            def privacy_profile(self, n_samples, n_features=None):
                return PrivacyProfile.pure(0.5)

        register_profile(Bare)(lambda model, n_samples, width: PrivacyProfile.pure(1 / n_samples))
        with ledger:
            Bare().fit(ROWS)
            Private().fit(records=ROWS)
        assert [record.name for record in ledger.history()] == ["Bare", "Private"]
        assert sizes_of(ledger) == [24, 24]
