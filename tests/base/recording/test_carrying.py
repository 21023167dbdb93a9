"""What copies, clones and pickles take with them, here and in other processes."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import BaggingClassifier
from sklearn.pipeline import make_pipeline

from skdptune._compat import cloudpickle
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin, _payments, register_profile
from skdptune.base._payments import carried_by, carried_settings
from skdptune.ledger import LedgerError, PrivacyLedger, config_context
from tests.base.counted import LABELS, ROWS, Counted, count_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def elsewhere(monkeypatch):
    """Return a function that sends an object to another process, and stays there."""

    def send(thing):
        pickled = pickle.dumps(thing)
        monkeypatch.setattr(_payments, "process_identity", lambda: "elsewhere")
        return pickle.loads(pickled)

    return send


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_nothing_is_carried_where_no_ledger_is_in_use():
    estimator = Counted()
    for other in (pickle.loads(pickle.dumps(estimator)), copy.copy(estimator), clone(estimator)):
        assert carried_by(other) is None and vars(other) == vars(estimator)


def test_settings_reach_another_process(on_disk, elsewhere):
    """Theorem H4."""
    with config_context(ledger=on_disk, require_ledger=True):
        pickled = pickle.dumps(Counted())
    # In its own process it is in force by itself, as long as it is.
    assert carried_settings(pickle.loads(pickled)) is None
    with config_context(ledger=on_disk, require_ledger=True):
        there = elsewhere(Counted())
    assert carried_settings(there).ledger == on_disk
    there.fit(ROWS, LABELS)
    assert len(on_disk.history()) == 1


def test_clones_carry_on_there(on_disk, elsewhere):
    """Theorem H4: a Pipeline clones its steps where it is fitted."""
    with on_disk:
        there = elsewhere(make_pipeline(Counted()))
    made = clone(there)
    assert carried_settings(made.steps[0][1]).ledger == on_disk
    again = pickle.loads(pickle.dumps(made))
    assert carried_settings(again.steps[0][1]).ledger == on_disk
    again.fit(ROWS, LABELS)
    assert len(on_disk.history()) == 1


def test_what_comes_back_carries_nothing(on_disk, monkeypatch):
    with monkeypatch.context() as patch, on_disk:
        pickled = pickle.dumps(Counted())
        patch.setattr(_payments, "process_identity", lambda: "elsewhere")
        returned = pickle.dumps(pickle.loads(pickled).fit(ROWS, LABELS))
    assert carried_by(pickle.loads(returned)) is None


def test_copy_within_a_block_does_not_outlive_it(on_disk, elsewhere):
    with on_disk:
        copied, cloned = copy.deepcopy(Counted()), clone(Counted())
    assert carried_by(cloned) is None and carried_settings(copied) is None
    for each in (pickle.loads(pickle.dumps(copied)), elsewhere(copied)):
        assert carried_by(each) is None and vars(each) == vars(Counted())


def test_loaded_model_predicts_where_its_ledger_is_lost(tmp_path, on_disk, elsewhere):
    own = pickle.dumps(Counted(ledger=on_disk).fit(ROWS, LABELS))
    with on_disk:
        carried = pickle.dumps(Counted().fit(ROWS, LABELS))
    for path in tmp_path.glob("budget.ledger*"):
        path.unlink()
    elsewhere(None)
    for pickled in (own, carried):
        loaded = pickle.loads(pickled)
        assert loaded.predict(ROWS).shape == (24,)
        with pytest.raises(LedgerError, match="there is none at"):
            loaded.fit(ROWS, LABELS)


def test_ledger_in_memory_refuses_fits_elsewhere(elsewhere, monkeypatch):
    from skdptune.ledger import _reference

    with PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=0.0):
        pickled = pickle.dumps(Counted().fit(ROWS, LABELS))
    monkeypatch.setattr(_reference, "_IN_MEMORY", {})
    elsewhere(None)
    loaded = pickle.loads(pickled)
    assert loaded.predict(ROWS).shape == (24,)
    with pytest.raises(LedgerError, match="must be used in the process that made it"):
        loaded.fit(ROWS, LABELS)


def test_thread_that_cannot_tell_sends_a_refusal(monkeypatch, elsewhere):
    def cannot(*carried):
        raise LedgerError("several ledgers")

    with monkeypatch.context() as patch:
        patch.setattr(_payments, "settings_in_force", cannot)
        there = elsewhere(Counted())
    assert carried_settings(there).require_ledger
    with pytest.raises(LedgerError, match="ledger must be given"):
        there.fit(ROWS, LABELS)


class Holding(Counted):
    """Fits clones of what it holds, or does something else in the middle of its fit."""

    def __init__(self, base=None, during=None, epsilon=0.25, delta=0.0, ledger=None):
        super().__init__(epsilon=epsilon, delta=delta, ledger=ledger)
        self.base, self.during = base, during

    def fit(self, X, y):
        self.during(self)
        return super().fit(X, y)


def names_of(ledger):
    return [record.name for record in ledger.history()]


class TestPayments:
    """Theorem H4: copies that are made on the way are paid for, and only as long as that lasts."""

    def test_clone_is_paid_for_while_the_payment_lasts(self, ledger):
        made = []
        with ledger:
            Holding(Counted(), lambda model: made.append(clone(model.base))).fit(ROWS, LABELS)
            made[0].fit(ROWS, LABELS)
        assert names_of(ledger) == ["Holding", "Counted"]

    def test_it_reaches_workers_while_the_fit_goes_on(self, on_disk, monkeypatch):
        def send(model):
            pickled = pickle.dumps(clone(model.base))
            with monkeypatch.context() as patch:
                patch.setattr(_payments, "process_identity", lambda: "elsewhere")
                there = pickle.loads(pickled)
                # Locks are a process's own: in this one it finds its own lock open.
                patch.setattr(_payments, "is_pledged", os.path.exists)
                in_a_thread(lambda: there.fit(ROWS, LABELS))
                in_a_thread(lambda: clone(there).fit(ROWS, LABELS))
                in_a_thread(lambda: pickle.loads(pickle.dumps(there)).fit(ROWS, LABELS))

        with on_disk:
            Holding(Counted(), send).fit(ROWS, LABELS)
        assert names_of(on_disk) == ["Holding"]

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_joblib_is_paid_for(self, on_disk, counts, n_jobs):
        """Theorem H4: by a fit that hands clones of its steps to other processes."""
        with on_disk:
            Bagging(Counted(str(counts)), n_jobs).fit(ROWS, LABELS)
        assert names_of(on_disk) == ["Bagging"]
        assert len(count_of(counts)) == 3


class Bagging(Counted):
    """Fits clones of what it holds in processes of joblib."""

    def __init__(self, base=None, n_jobs=1, epsilon=0.25, delta=0.0):
        super().__init__(epsilon=epsilon, delta=delta)
        self.base, self.n_jobs = base, n_jobs

    def fit(self, X, y):
        bag = BaggingClassifier(self.base, 3, bootstrap=False, n_jobs=self.n_jobs)
        self.bag_ = bag.fit(X, y)
        return super().fit(X, y)


class TestSavedOnTheWay:
    """Theorem H4: what a callback saves is paid for no longer than the fit goes on."""

    @pytest.mark.parametrize("ends", ["well", "badly"])
    @pytest.mark.parametrize("kind", ["file", "memory"])
    def test_it_is_recorded_after_the_fit(self, on_disk, ledger, monkeypatch, ends, kind):
        used, saved = {"file": on_disk, "memory": ledger}[kind], []

        def save(model):
            saved.append(pickle.dumps(clone(model.base)))
            if ends == "badly":
                raise RuntimeError("in the middle")

        with used, contextlib.suppress(RuntimeError):
            Holding(Counted(), save).fit(ROWS, LABELS)
        pickle.loads(saved[0]).fit(ROWS, LABELS)
        assert names_of(used) == ["Holding"]
        monkeypatch.setattr(_payments, "process_identity", lambda: "elsewhere")
        for _ in range(2):
            pickle.loads(saved[0]).fit(ROWS, LABELS)
        assert names_of(used) == ["Holding", "Counted", "Counted"]

    def test_it_is_recorded_if_its_fit_was_killed(self, on_disk, tmp_path):
        saved = tmp_path / "saved"
        code = (
            "import os, pickle, sys\n"
            "from sklearn.base import BaseEstimator, clone\n"
            "from skdptune.accounting import PrivacyProfile\n"
            "from skdptune.base import PrivateEstimatorMixin\n"
            "from skdptune.ledger import PrivacyLedger\n"
            "from skdptune.preprocessing import DPStandardScaler\n"
            "class Dying(PrivateEstimatorMixin, BaseEstimator):\n"
            "    def __init__(self, base=None): self.base = base\n"
            "    def privacy_profile(self, *sizes): return PrivacyProfile.pure(0.5)\n"
            "    def fit(self, X, y=None):\n"
            "        with open(sys.argv[2], 'wb') as file:\n"
            "            pickle.dump(clone(self.base), file)\n"
            "        os.kill(os.getpid(), 9)\n"
            "with PrivacyLedger(sys.argv[1], 'patients'):\n"
            "    Dying(DPStandardScaler(bounds=(-3, 3))).fit([[0.0]] * 9)\n"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "budget.ledger"), str(saved)]
        assert subprocess.run(command, cwd=ROOT).returncode == -9
        assert names_of(on_disk) == ["Dying"]
        pickle.loads(saved.read_bytes()).fit(ROWS, LABELS)
        assert names_of(on_disk) == ["Dying", "DPStandardScaler"]


class WithOwnRestore(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        self.__dict__ = {"a": state["a"]}


class WithTupleState(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def __getstate__(self):
        return (1,)

    def __setstate__(self, state):
        self.a = state[0]


class WithReduce(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def __reduce__(self):
        return WithReduce, ()


class WithStrictRestore(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def __setstate__(self, state):
        self.__dict__ = {name: state[name] for name in vars(WithStrictRestore())}


class WithReduceOfState(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def __reduce_ex__(self, protocol):
        return WithReduceOfState, (), {"a": 1}


class WithOwnCopy(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def __deepcopy__(self, memo):
        made = WithOwnCopy()
        made.__dict__.update(self.__dict__)
        return made


class WithSlots:
    __slots__ = ("__dict__", "a")

    def __init__(self):
        self.a = 1

    def fit(self, X, y=None):
        return self


class WithWeakSlots:
    __slots__ = ("__weakref__", "a")

    def fit(self, X, y=None):
        return self


class WithSlotsAlone:
    __slots__ = ("a",)

    def __init__(self):
        self.a = 1

    def fit(self, X, y=None):
        return self


def _cost(estimator, n_samples, n_features):
    return PrivacyProfile.pure(0.5)


OWN = (
    *(WithOwnRestore, WithTupleState, WithReduce, WithStrictRestore, WithReduceOfState),
    *(WithOwnCopy, WithSlots, WithWeakSlots),
)


class TestOwnPickling:
    """Theorem H4: classes of others may pickle themselves as they like."""

    @pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)
    def test_settings_reach_another_process(self, on_disk, elsewhere, kind):
        register_profile(kind)(_cost)
        model = kind()
        assert carried_by(pickle.loads(pickle.dumps(model))) is None
        with on_disk:
            assert carried_by(copy.deepcopy(model)) is None
            there = elsewhere(model)
        again = pickle.loads(pickle.dumps(there))
        made = [there, again, copy.copy(again), copy.deepcopy(again)]
        made += [clone(again)] if hasattr(kind, "get_params") else []
        for each in made:
            each.fit(ROWS)
        assert len(on_disk.history()) == len(made)

    def test_object_without_a_place_for_them_is_refused_elsewhere(self, on_disk, elsewhere):
        register_profile(WithSlotsAlone)(_cost)
        model = WithSlotsAlone()
        assert pickle.loads(pickle.dumps(model)).a == 1
        with on_disk:
            assert copy.deepcopy(model).a == pickle.loads(pickle.dumps(model)).a == 1
            with pytest.raises(LedgerError, match="no place for it"):
                elsewhere(model)


class Odd(BaseEstimator, PrivateEstimatorMixin):
    """Has the mixin behind scikit-learn's base, and a state of its own."""

    def __getstate__(self):
        return {**super().__getstate__(), "odd": True}


def test_any_order_of_bases_carries(on_disk, elsewhere):
    with on_disk:
        there = elsewhere(Odd())
    assert there.odd and carried_settings(clone(there)).ledger == on_disk
