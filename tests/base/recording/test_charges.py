"""What a fit is charged with is known before a record is read."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import PrivateEstimatorMixin, register_profile
from skdptune.base._charges import arguments_of, signature_of, signature_with_object
from skdptune.base._shared import Charge, charge_of_fit
from skdptune.ledger import PrivacyLedger
from skdptune.ledger._shared import ADD_OR_REMOVE
from skdptune.linear_model import (
    DPLogisticRegression,
    NoisyStatisticsRidge,
    OutputPerturbationLinearRegression,
    SufficientStatistics,
)
from tests.base.counted import LABELS, ROWS, Counted

THREE = np.arange(24) % 3


class Unreadable:
    """Has a form, and raises where an entry is asked for."""

    def __init__(self, *shape):
        self.shape, self.dtype = shape, np.dtype(float)

    def __len__(self):
        return self.shape[0]

    def __array__(self, *arguments, **settings):
        raise AssertionError("the data were read")

    __getitem__ = __iter__ = __array__


def test_charge_is_of_the_form_alone():
    """Theorem H4."""
    model = DPLogisticRegression(classes=[0, 1], solver="output", random_state=0)
    charge = charge_of_fit(model, {"X": Unreadable(24, 2), "y": Unreadable(24)})
    assert charge.profile == model.privacy_profile(24, 2)
    assert charge.name == "DPLogisticRegression"
    assert charge.neighbouring == ADD_OR_REMOVE
    assert charge.details["n_samples"] == 24
    assert any("seed" in sentence for sentence in charge.assumptions)
    assert not charge.is_free


@pytest.mark.parametrize(
    ("solver", "y"), [("output", LABELS), ("sgd", THREE)], ids=["two", "three"]
)
def test_labels_that_set_the_cost_are_counted_first(solver, y):
    """Theorem H4: which labels there are is public."""
    model = DPLogisticRegression(solver=solver, epochs=1 if solver == "sgd" else None)
    charge = charge_of_fit(model, {"X": Unreadable(24, 2), "y": y})
    assert charge.profile == model.fit(ROWS, y).privacy_.profile
    assert model.classes is None


def test_one_class_is_refused_as_the_fit_would():
    with pytest.raises(ValueError, match="at least two classes"):
        charge_of_fit(DPLogisticRegression(solver="output"), {"X": ROWS, "y": np.zeros(24)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": ROWS, "y": None}, "requires y to be passed"),
        ({"X": ROWS[0], "y": LABELS[:2]}, "two-dimensional"),
        ({"X": ROWS, "y": LABELS[:5]}, "inconsistent numbers of samples"),
    ],
    ids=["no targets", "one dimension", "lengths"],
)
def test_forms_that_no_fit_can_use_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        charge_of_fit(DPLogisticRegression(), arguments)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="data_norm must be"):
        charge_of_fit(DPLogisticRegression(data_norm=-1.0), {"X": ROWS, "y": LABELS})


def test_public_size_stands_for_the_real_one():
    model = Counted()
    model.n_public = 30
    assert charge_of_fit(model, {"X": ROWS, "y": LABELS}).details["n_samples"] == 30


def test_chunks_need_a_public_size():
    model = NoisyStatisticsRidge(data_norm=1.0, target_bound=1.0)
    chunks = iter([(ROWS, ROWS[:, 0])])
    with pytest.raises(ValueError, match="n_public must be given"):
        charge_of_fit(model, {"X": chunks, "y": None})
    model.set_params(n_public=24)
    charge = charge_of_fit(model, {"X": chunks, "y": None})
    assert charge.profile == model.fit(chunks).privacy_.profile


def test_sums_have_a_size(ledger):
    model = OutputPerturbationLinearRegression(data_norm=1.0, target_bound=1.0, ledger=ledger)
    sums = SufficientStatistics(*model._bounds(2)).update(ROWS, ROWS[:, 0])
    model.fit_statistics(sums)
    (record,) = ledger.history()
    assert record.details["n_samples"] == 24
    assert record.status == "confirmed"


class Understated(PrivateEstimatorMixin, BaseEstimator):
    """Costs more than it has announced."""

    epsilon, delta, random_state = 0.5, 0.0, None

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.pure(0.5)

    def fit(self, X, y=None):
        self.privacy_ = PrivacyReport(PrivacyProfile.pure(self.found), 0.0)
        return self


@pytest.mark.parametrize(("found", "charged"), [(0.5, 0.5), (0.4, 0.5), (0.75, 1.25)])
def test_what_was_not_announced_is_charged_as_well(ledger, found, charged):
    """Theorem H4."""
    model = Understated()
    model.found = found
    with ledger:
        model.fit(ROWS)
    assert sum(record.epsilon for record in ledger.history()) == pytest.approx(charged, rel=1e-3)


class NoEstimator:
    """Of no class of scikit-learn's, as registered ones may be."""

    classes = None

    def fit(self, data, target=None):
        return self


def test_class_that_knows_nothing_of_scikit_learn_is_charged(ledger):
    """Theorem H4."""
    register_profile(NoEstimator)(lambda *of_fit: PrivacyProfile.pure(0.5))
    with ledger:
        NoEstimator().fit(ROWS).fit(ROWS, LABELS).fit(data=ROWS, target=LABELS)
    assert [record.details["n_samples"] for record in ledger.history()] == [24] * 3


def test_report_that_costs_more_at_another_delta_is_charged_as_well(ledger):
    """Theorem H4: curves may cross, so that one delta says nothing of the others."""
    model = Understated()
    announced = Charge(PrivacyProfile.approximate(0.9, 1e-8), "Understated", (), ADD_OR_REMOVE, {})
    model.privacy_ = PrivacyReport(PrivacyProfile.gaussian(0.2), 1e-5)
    # Cheaper at the deltas of the ledger and of the report, and more expensive at a smaller one.
    assert model.privacy_.profile.epsilon(1e-5) < 0.9 < model.privacy_.profile.epsilon(1e-7)
    announced.check_covers(model, ledger)
    assert [record.name for record in ledger.history()] == ["Understated"]


def test_free_charges_are_free():
    assert Charge(PrivacyProfile.pure(0.0), "free", (), ADD_OR_REMOVE, {}).is_free
    small = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=0.0)
    assert small.history() == []


# Arguments are found by name or by place, and in methods that say nothing of them ------------


TABLE, TARGETS = [[1.0], [2.0]], [0, 1]


def usual(self, X, y=None, sample_weight=None): ...


def anything(self, *args, **kwargs): ...


def others(self, data, target=None, *, mode="a"): ...


def without_y(self, X, copy=None): ...


def statistics(self, statistics): ...


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "found"),
    [
        (usual, (TABLE, TARGETS), {}, {"X": TABLE, "y": TARGETS}),
        (usual, (TABLE,), {"sample_weight": TARGETS}, {"X": TABLE, "sample_weight": TARGETS}),
        (usual, (), {"y": TARGETS, "X": TABLE}, {"X": TABLE, "y": TARGETS}),
        (anything, (TABLE, TARGETS), {}, {"X": TABLE, "y": TARGETS}),
        (anything, (TABLE,), {"y": TARGETS}, {"X": TABLE, "y": TARGETS}),
        (anything, (), {"X": TABLE, "y": TARGETS}, {"X": TABLE, "y": TARGETS}),
        (others, (TABLE, TARGETS), {"mode": "b"}, {"X": TABLE, "y": TARGETS, "mode": "b"}),
        (others, (), {"data": TABLE, "target": TARGETS}, {"X": TABLE, "y": TARGETS}),
        (without_y, (TABLE, True), {}, {"X": TABLE, "copy": True}),
        (statistics, ("sums",), {}, {"statistics": "sums"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_records_and_targets_are_found(method, args, kwargs, found):
    """Theorem H4."""
    known = arguments_of(signature_of(method).bind(None, *args, **kwargs))
    assert {name: known.get(name) for name in found} == found
    assert ("y" in known) == ("y" in found)


def test_code_that_does_not_tell_takes_anything():
    assert list(signature_of(dict.update).parameters) in (
        ["args", "kwargs"],
        ["self", "args", "kwargs"],
    )
    bound = signature_with_object(lambda X, y=None: None).bind("object", TABLE)
    assert arguments_of(bound)["X"] is TABLE
    assert isinstance(signature_of(usual), inspect.Signature)
