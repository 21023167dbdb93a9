"""Every public estimator and search records the cost of its report, once (Theorem H4)."""

from __future__ import annotations

import importlib
import inspect
import warnings

import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.base import clone, is_regressor

from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.ledger import LedgerError, PrivacyLedger, config_context
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DParetoSearchCV, DPGridSearchCV
from tests.flat import flat
from tests.testing.public_estimators import (
    ESTIMATORS,
    HAS_NETS,
    HAS_OPTUNA,
    HAS_PARETO,
    PUBLIC,
    SEARCHES,
    nets,
)

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
TARGETS = ROWS[:, 0].clip(-1, 1)
DELTAS = (0.0, 1e-9, 1e-5, 1e-2)

INNER = DPLogisticRegression(solver="output", classes=[0, 1], data_norm=2.0)
GRID = {"C": [0.01, 1.0]}
# Their fits cost nothing.
NOT_RECORDED = {"BoundedScaler", "RowNormClipper", "TableEncoder"}
# One of each class.
EXAMPLES = {type(one).__name__: one for one in [*ESTIMATORS, *SEARCHES, *nets()]}
if HAS_PARETO:
    EXAMPLES["DParetoSearchCV"] = flat(
        DParetoSearchCV,
        INNER,
        {"C": (0.01, 1.0, "log"), "epsilon": (0.1, 0.5)},
        **{"n_initial": 2, "n_iter": 0, "sampler": "random"},
        **{"release": 4.0, "refit": 1.0, "delta": 1e-5},
    )
every_class = pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in NOT_RECORDED])


def made(name, **more):
    """Return a public estimator or search, and its targets."""
    estimator = clone(EXAMPLES[name]).set_params(random_state=0, **more)
    y = TARGETS if is_regressor(estimator) else LABELS
    is_float = name in ("DPNeuralNetBinaryClassifier", "DPNeuralNetRegressor")
    return estimator, y.astype(np.float32) if is_float else y


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:", "patients", epsilon=100.0, delta=1e-5)


def assumptions_in(report):
    yield from report.assumptions
    for part in report.parts:
        yield from assumptions_in(part)


def check_recorded(ledger, fitted):
    """The single record agrees with the report."""
    (record,) = ledger.history()
    assert (record.name, record.status) == (type(fitted).__name__, "confirmed")
    assert record.details["n_samples"] == len(ROWS)
    report = fitted.privacy_
    stored = PrivacyProfile.from_dict(ledger.to_dict()["profiles"][record.profile])
    for delta in DELTAS:
        spent = report.profile.epsilon(delta)
        if np.isfinite(stored.epsilon(delta)):
            assert stored.epsilon(delta) >= spent * (1 - 1e-9)
            assert delta != ledger.delta or stored.epsilon(delta) <= spent * (1 + 1e-3)
    assert record.neighbouring == report.neighbouring
    assert set(record.assumptions) <= set(assumptions_in(report))


def test_every_public_estimator_takes_a_ledger_unless_it_costs_nothing():
    without = {"DParetoSearchCV", *([] if HAS_OPTUNA else ["DPAdaptiveSearchCV"])} - {*EXAMPLES}
    assert EXAMPLES.keys() == PUBLIC.keys() - without
    for name in EXAMPLES:
        kind = getattr(importlib.import_module(f"skdptune.{PUBLIC[name]}"), name)
        assert ("ledger" in inspect.signature(kind).parameters) == (name not in NOT_RECORDED)
        assert not (name in NOT_RECORDED and issubclass(kind, PrivateEstimatorMixin))


@pytest.mark.parametrize("way", ["parameter", "block"])
@every_class
def test_fit_records_its_report_once(ledger, name, way):
    """Theorem H4."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == "parameter":
            estimator, y = made(name, ledger=ledger)
            fitted = estimator.fit(ROWS.astype(np.float32), y)
        else:
            estimator, y = made(name)
            with ledger, parallel_backend("threading", n_jobs=2):
                fitted = estimator.fit(ROWS.astype(np.float32), y)
    check_recorded(ledger, fitted)
    assert clone(estimator).ledger is estimator.ledger


@every_class
def test_refused_fit_reads_nothing(name):
    """Theorem H4."""
    small = PrivacyLedger(":memory:", "patients", epsilon=1e-3, delta=1e-9)
    estimator, y = made(name, ledger=small)
    with pytest.raises(RuntimeError, match="what is left of 'patients'"):
        estimator.fit(ROWS, y)
    assert small.history() == []
    estimator.set_params(ledger=None)
    with config_context(require_ledger=True), pytest.raises(LedgerError, match="must be given"):
        estimator.fit(ROWS, y)
    assert not hasattr(estimator, "privacy_")


class TestSearches:
    """Theorem H4: a search records its total, and its workers nothing."""

    def search(self, **more):
        more = {"strategy": "table", "random_state": 0, **more}
        return DPGridSearchCV(clone(INNER), GRID, epsilon=4.0, delta=1e-5, **more)

    def test_workers_in_other_processes_record_nothing(self, tmp_path):
        path = str(tmp_path / "budget.ledger")
        ledger = PrivacyLedger.create(path, "patients", epsilon=100.0, delta=1e-5)
        with ledger:
            fitted = self.search(n_jobs=2).fit(ROWS, LABELS)
        check_recorded(ledger, fitted)

    def test_ledger_of_what_it_holds_is_its_own(self, ledger):
        search = self.search().set_params(estimator__ledger=ledger)
        check_recorded(ledger, search.fit(ROWS, LABELS))
        # Its published model is recorded when it is fitted again.
        search.best_estimator_.fit(ROWS, LABELS)
        assert len(ledger.history()) == 2

    def test_two_ledgers_are_refused(self, ledger):
        other = PrivacyLedger(":memory:", "others", epsilon=9.0, delta=1e-5)
        search = self.search(ledger=ledger).set_params(estimator__ledger=other)
        with pytest.raises(ValueError, match="ledger must be a single one"):
            search.fit(ROWS, LABELS)
        with other, pytest.raises(ValueError, match="stand for different data sets"):
            self.search(ledger=ledger).fit(ROWS, LABELS)
        assert ledger.history() == other.history() == []

    def test_no_ledger_is_searched_over(self, ledger):
        search = self.search().set_params(param_grid={"ledger": [None, ledger]})
        with pytest.raises(ValueError, match="must leave 'ledger' to the search"):
            search.fit(ROWS, LABELS)

    def test_exception_leaves_the_total_spent(self, ledger, monkeypatch):
        def fails(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(DPGridSearchCV, "_run", fails)
        with pytest.raises(KeyboardInterrupt):
            self.search(ledger=ledger).fit(ROWS, LABELS)
        assert [record.status for record in ledger.history()] == ["read"]

    @pytest.mark.parametrize(
        "arguments", [(ROWS,), (ROWS, LABELS[:9]), (ROWS[0], LABELS)], ids=["no y", "y", "X"]
    )
    def test_wrong_forms_cost_nothing(self, ledger, arguments):
        with pytest.raises(ValueError):
            self.search(ledger=ledger).fit(*arguments)
        assert ledger.history() == []


class TestSessions:
    """Theorem H4: a session reserves when it starts, and reads when it is used."""

    def test_threshold_session(self, ledger):
        session = made("DoublingThresholdSearchCV", ledger=ledger)[0].start(ROWS, LABELS)
        assert [record.status for record in ledger.history()] == ["reserved"]
        session.propose([{"clip": 0.1}])
        assert [record.status for record in ledger.history()] == ["read"]
        check_recorded(ledger, session.finish())

    @pytest.mark.skipif(not HAS_OPTUNA, reason="needs the extra pareto")
    def test_adaptive_session(self, ledger):
        session = made("DPAdaptiveSearchCV", ledger=ledger)[0].start(ROWS, LABELS)
        assert [record.status for record in ledger.history()] == ["reserved"]
        session.tell(session.ask())
        assert [record.status for record in ledger.history()] == ["read"]
        check_recorded(ledger, session.finish())


@pytest.mark.skipif(not HAS_PARETO, reason="needs the extra pareto")
class TestParetoSearches:
    """Theorem H4."""

    def test_exact_front_fits_into_no_budget(self, ledger):
        search = made("DParetoSearchCV", ledger=ledger)[0].set_params(release=None, refit=False)
        with pytest.raises(RuntimeError, match="what is left"):
            search.fit(ROWS, LABELS)
        assert ledger.history() == []

    def test_model_of_a_point_is_recorded_beside_the_search(self, ledger):
        search = made("DParetoSearchCV", ledger=ledger)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(ROWS, LABELS)
        model = search.best_estimator_for(ROWS, LABELS, epsilon=0.6)
        first, second = ledger.history()
        assert (first.name, second.name) == ("DParetoSearchCV", "DPLogisticRegression")
        assert second.epsilon == pytest.approx(model.privacy_.profile.epsilon(1e-5))


@pytest.mark.skipif(not HAS_NETS, reason="needs the extra nn")
def test_nets_that_are_trained_together_are_recorded_one_by_one(ledger):
    """Theorem H4."""
    from skdptune.neural_network import PopulationTrainer

    nets = [made("DPNeuralNetClassifier", lr=lr, classes=[0, 1])[0] for lr in (0.1, 0.5)]
    with ledger:
        PopulationTrainer().fit(nets, ROWS.astype(np.float32), LABELS)
    assert [record.status for record in ledger.history()] == ["confirmed"] * 2


@pytest.mark.skipif(not HAS_NETS, reason="needs the extra nn")
def test_what_a_callback_fits_is_recorded_by_itself(ledger):
    """Theorem H4: it is not a part of the net's own fit."""
    from skorch.callbacks import Callback

    class Greedy(Callback):
        data_independent = True

        def on_train_end(self, net, **of_net):
            rows = ROWS.astype(np.float32)
            clone(net).set_params(callbacks=None).fit(rows, LABELS)
            clone(INNER).fit(rows, LABELS)
            net.set_params(callbacks=None).fit(rows, LABELS)

    net, _ = made("DPNeuralNetClassifier", callbacks=[Greedy()], classes=[0, 1], ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(ROWS.astype(np.float32), LABELS)
    name = "DPNeuralNetClassifier"
    assert [record.name for record in ledger.history()] == [name, name, type(INNER).__name__, name]
