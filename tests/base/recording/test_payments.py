"""A payment pays for its estimator, its steps and clones of these, and nothing else."""

from __future__ import annotations

import contextvars
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

from skdptune.accounting import PrivacyProfile
from skdptune.base import paid_for
from skdptune.base._payments import current_payment, is_pledged, payment_for
from skdptune.preprocessing import DPStandardScaler
from tests.base.counted import LABELS, ROWS, Counted

ROOT = Path(__file__).resolve().parents[3]


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

    def test_clones_of_steps_in_a_thread(self, ledger):
        class Threaded(Bagged):
            def privacy_profile(self, n_samples, n_features=None):
                return PrivacyProfile.pure(1.0)

            def fit(self, X, y):
                made = clone(self.base)
                thread = threading.Thread(target=lambda: made.fit(X, y))
                thread.start()
                thread.join()
                return Counted.fit(self, X, y)

        with ledger:
            Threaded(Counted()).fit(ROWS, LABELS)
        assert names_of(ledger) == ["Threaded"]

    def test_other_models_are_fits_of_their_own(self, ledger):
        class Greedy(Counted):
            def fit(self, X, y):
                self.models_ = [Counted().fit(X, y) for _ in range(5)]
                return super().fit(X, y)

        with ledger:
            Greedy().fit(ROWS, LABELS)
        assert names_of(ledger) == ["Greedy", *["Counted"] * 5]
        # Also where the ledger is that of the model alone.
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

    def test_override_that_keeps_three_models_costs_three(self, ledger):
        class Three(Counted):
            def fit(self, X, y):
                return [super(Three, self).fit(X, y) for _ in range(3)][0]

        Three(ledger=ledger).fit(ROWS, LABELS)
        assert names_of(ledger) == ["Three"] * 3

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

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
    # A warning of Python and jax: here the child does nothing but look.
    @pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
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


PAYER = """
import sys
from skdptune.base._payments import paid_for
from sklearn.base import BaseEstimator
with paid_for(BaseEstimator()) as payment:
    print(payment.pledge, flush=True)
    sys.stdin.readline()
    raise SystemExit(0)
"""


class TestPledges:
    """Theorem H4: other processes know whether a payment is open."""

    @pytest.mark.parametrize("end", ["exit", "kill"])
    def test_it_is_void_with_its_payer(self, end):
        with subprocess.Popen(
            [sys.executable, "-c", PAYER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as payer:
            path = payer.stdout.readline().strip()
            assert is_pledged(path) and is_pledged(path)
            if end == "kill":
                payer.send_signal(signal.SIGKILL)
            else:
                payer.stdin.write("\n")
                payer.stdin.close()
            payer.wait()
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
