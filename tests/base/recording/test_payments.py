"""A payment pays for its estimator, its steps and clones of these, and nothing else."""

from __future__ import annotations

import contextlib
import contextvars
import copy
import os
import pickle
import signal
import sys
import threading
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier
from sklearn.pipeline import make_pipeline

from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin, _payments, register_profile
from skdptune.base._payments import (
    carried_by,
    carried_settings,
    current_payment,
    is_pledged,
    payment_for,
)
from skdptune.base._shared import paid_for
from skdptune.ledger import LedgerError, PrivacyLedger, config_context
from skdptune.preprocessing import DPStandardScaler
from tests.base.counted import LABELS, ROWS, Counted, cloudpickle, count_of
from tests.forked import Forked


def names_of(ledger):
    return [record.name for record in ledger.history()]


class Bagged(Counted):
    """Says what it costs, and holds what it fits copies of."""

    def __init__(self, base=None, many=(), epsilon=0.25, delta=0.0, ledger=None):
        super().__init__(epsilon=epsilon, delta=delta, ledger=ledger)
        self.base, self.many = base, many

    def privacy_profile(self, n_samples, n_features=None):
        return 3 * PrivacyProfile.pure(0.25) + PrivacyProfile.pure(0.25)

    def fit(self, X, y):
        self.models_ = [clone(self.base).fit(X, y) for _ in range(3)]
        self.models_ += [each.fit(X, y) for each in clone(list(self.many))]
        return super().fit(X, y)


class TestWhatItPaysFor:
    """Theorem H4: for its estimator, its steps, and clones of these."""

    def test_steps_and_clones_of_steps(self, ledger):
        with ledger:
            Bagged(Counted(), [Counted(C=2.0)]).fit(ROWS, LABELS)
            Bagged(make_pipeline(DPStandardScaler(bounds=(-3, 3)), Counted())).fit(ROWS, LABELS)
        assert names_of(ledger) == ["Bagged", "Bagged"]

    def test_other_models_are_fits_of_their_own(self, ledger):
        class Greedy(Counted):
            def fit(self, X, y):
                self.models_ = [Counted().fit(X, y) for _ in range(5)]
                return super().fit(X, y)

        with ledger:
            Greedy().fit(ROWS, LABELS)
        assert names_of(ledger) == ["Greedy", *["Counted"] * 5]
        # Also if only the model has the ledger.
        Greedy(ledger=ledger).fit(ROWS, LABELS)
        assert names_of(ledger)[6:] == ["Greedy", *["Counted"] * 5]

    def test_clones_of_the_model_itself_are_other_models(self, ledger):
        class Again(Counted):
            def fit(self, X, y):
                if self.C > 0:
                    clone(self).set_params(C=0.0).fit(X, y)
                return super().fit(X, y)

        with ledger:
            Again().fit(ROWS, LABELS)
        assert names_of(ledger) == ["Again", "Again"]

    def test_class_that_says_what_all_of_it_costs_is_believed(self, ledger):
        class Twice(Counted):
            def privacy_profile(self, n_samples, n_features=None):
                return 2 * super().privacy_profile(n_samples, n_features)

            def fit(self, X, y):
                super().fit(X, y)
                return super().fit(X, y)

        Twice(ledger=ledger).fit(ROWS, LABELS)
        assert names_of(ledger) == ["Twice"]

    def test_method_that_calls_itself_on_the_way_is_charged_again(self, ledger):
        class Resumed(Counted):
            def partial_fit(self, X, y, classes=None):
                super().partial_fit(X, y)
                if self.C > 0:
                    self.C = 0.0
                    self.partial_fit(X, y)
                return self

        Resumed(ledger=ledger).partial_fit(ROWS, LABELS)
        assert names_of(ledger) == ["Resumed", "Resumed"]

    def test_search_pays_for_its_estimator_alone(self, ledger):
        pipeline = make_pipeline(make_column_transformer((Scaled(), [0])), Counted())
        with ledger, paid_for(pipeline):
            pipeline.fit(ROWS, LABELS)
            assert ledger.history() == []
            Counted().fit(ROWS, LABELS)
        assert names_of(ledger) == ["Counted"]

    def test_no_payment_is_for_nothing(self):
        with pytest.raises(TypeError, match="estimators must be"):
            paid_for()


class Scaled(DPStandardScaler):
    """Is cloned by what holds it."""

    def __init__(self, epsilon=0.25, *, bounds=(-3, 3), delta=0.0, random_state=0, ledger=None):
        super().__init__(
            epsilon, bounds=bounds, delta=delta, random_state=random_state, ledger=ledger
        )


def forks(test):
    """Mark a test that forks this process; Python and jax warn of that."""
    for warning in ("RuntimeWarning", "DeprecationWarning"):
        test = pytest.mark.filterwarnings(f"ignore::{warning}")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")(test)


class TestHowLongItPays:
    """Theorem H4: while its fit goes on, in its process."""

    def test_until_the_block_ends(self):
        model = Counted()
        with paid_for(model) as outer:
            assert current_payment() is payment_for(model) is outer
            with paid_for(clone(model)) as inner:
                assert current_payment() is inner
            assert current_payment() is outer and not inner.pays
        assert current_payment() is payment_for(model) is None and not outer.pays

    def test_until_an_exception(self):
        with pytest.raises(ZeroDivisionError), paid_for(Counted()):
            raise ZeroDivisionError
        assert current_payment() is None

    @forks
    def test_not_in_a_forked_process(self):
        with paid_for(Counted()):
            child = os.fork()
            if child == 0:
                os._exit(0 if current_payment() is None else 1)
            assert os.waitpid(child, 0)[1] == 0

    def test_not_where_its_context_was_copied(self):
        with paid_for(Counted()) as payment:
            kept = contextvars.copy_context()
            assert kept.run(current_payment) is payment
        assert kept.run(current_payment) is None


def pay(end, number):
    """Pledge a payment, tell where, and leave or wait to be killed."""
    with paid_for(BaseEstimator()) as payment:
        os.write(number, f"{payment.pledge}\n".encode())
        if end == "kill":
            signal.pause()
        signal.sigwait([signal.SIGTERM])


@forks
class TestPledges:
    """Theorem H4: other processes know whether a payment is open."""

    @pytest.mark.parametrize("end", ["exit", "kill"])
    def test_it_is_void_with_its_payer(self, end):
        read, write = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        payer = Forked(lambda: pay(end, write))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(write)
        with open(read) as told:
            path = told.readline().strip()
        assert is_pledged(path) and is_pledged(path)
        os.kill(payer.process.pid, signal.SIGKILL if end == "kill" else signal.SIGTERM)
        payer.exit()
        assert not is_pledged(path)
        assert not os.path.exists(path)

    def test_nothing_is_pledged_unasked(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with paid_for(BaseEstimator()) as payment:
            assert list(tmp_path.iterdir()) == []
            assert Path(payment.pledge).parent == tmp_path
        assert list(tmp_path.iterdir()) == []


def test_an_estimator_that_cannot_name_its_parameters_disturbs_no_other():
    # Another thread may be in the middle of changing it.
    class Half(BaseEstimator):
        def __init__(self, base=None):
            pass

        def fit(self, X, y):
            return self

    with paid_for(Half()):
        Counted().fit(ROWS, LABELS)


# What copies, clones and pickles take with them, here and in other processes -----------------


cloudpickle.register_pickle_by_value(sys.modules[__name__])


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
    # In its own process, it is active without further action, while it exists.
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
    with pytest.raises(LedgerError, match="must be used in the process that created it"):
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

    @forks
    def test_it_is_recorded_if_its_fit_was_killed(self, on_disk, tmp_path):
        saved = tmp_path / "saved"

        def die(model):
            saved.write_bytes(pickle.dumps(clone(model.base)))
            os.kill(os.getpid(), signal.SIGKILL)

        def fit():
            with PrivacyLedger(on_disk.path, "patients"):
                Holding(Scaled(), die).fit(ROWS, LABELS)

        assert Forked(fit).exit() == -signal.SIGKILL
        assert names_of(on_disk) == ["Holding"]
        pickle.loads(saved.read_bytes()).fit(ROWS, LABELS)
        assert names_of(on_disk) == ["Holding", "Scaled"]


class Fitting:
    __slots__ = ()

    def fit(self, X, y=None):
        return self


class WithOwnRestore(Fitting, BaseEstimator):
    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        self.__dict__ = {"a": state["a"]}


class WithTupleState(Fitting, BaseEstimator):
    def __getstate__(self):
        return (1,)

    def __setstate__(self, state):
        self.a = state[0]


class WithReduce(Fitting, BaseEstimator):
    def __reduce__(self):
        return WithReduce, ()


class WithStrictRestore(Fitting, BaseEstimator):
    def __setstate__(self, state):
        self.__dict__ = {name: state[name] for name in vars(WithStrictRestore())}


class WithReduceOfState(Fitting, BaseEstimator):
    def __reduce_ex__(self, protocol):
        return WithReduceOfState, (), {"a": 1}


class WithOwnCopy(Fitting, BaseEstimator):
    def __deepcopy__(self, memo):
        made = WithOwnCopy()
        made.__dict__.update(self.__dict__)
        return made


class WithSlots(Fitting):
    __slots__ = ("__dict__", "a")

    def __init__(self):
        self.a = 1


class WithWeakSlots(Fitting):
    __slots__ = ("__weakref__", "a")


class WithSlotsAlone(Fitting):
    __slots__ = ("a",)

    def __init__(self):
        self.a = 1


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
            with pytest.raises(LedgerError, match="without a place for it"):
                elsewhere(model)


class Odd(BaseEstimator, PrivateEstimatorMixin):
    """Has the mixin after scikit-learn's base class, and its own state."""

    def __getstate__(self):
        return {**super().__getstate__(), "odd": True}


def test_any_order_of_bases_carries(on_disk, elsewhere):
    with on_disk:
        there = elsewhere(Odd())
    assert there.odd and carried_settings(clone(there)).ledger == on_disk
