"""The charge of a fit is known before a record is read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import PrivateEstimatorMixin, register_profile
from skdptune.linear_model import (
    DPLogisticRegression,
    DPRidge,
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


def spent(ledger, model, *data):
    """Return the one record of a fit, and the cost that it states."""
    model.set_params(ledger=ledger).fit(*data)
    (record,) = ledger.history()
    stored = PrivacyProfile.from_dict(ledger.to_dict()["profiles"][record.profile])
    return record, stored


def test_charge_is_of_the_form_alone(ledger):
    """Theorem H4."""
    model = DPLogisticRegression(classes=[0, 1], solver="output", random_state=0)
    with ledger, pytest.raises(AssertionError, match="the data were read"):
        model.fit(Unreadable(24, 2), Unreadable(24))
    (record,) = ledger.history()
    assert (record.name, record.status) == ("DPLogisticRegression", "read")
    cost = model.privacy_profile(24, 2)
    assert record.epsilon == pytest.approx(cost.epsilon(ledger.delta))
    assert record.neighbouring == "add or remove one record"
    assert record.details["n_samples"] == 24
    assert any("seed" in sentence for sentence in record.assumptions)


@pytest.mark.parametrize(
    ("solver", "y"), [("output", LABELS), ("sgd", THREE)], ids=["two", "three"]
)
def test_labels_that_set_the_cost_are_counted_first(ledger, solver, y):
    """Theorem H4: which labels there are is public."""
    model = DPLogisticRegression(solver=solver, epochs=1 if solver == "sgd" else None)
    with ledger, pytest.raises(AssertionError, match="the data were read"):
        model.fit(Unreadable(24, 2), y)
    (record,) = ledger.history()
    cost = DPLogisticRegression(**model.get_params()).fit(ROWS, y).privacy_.profile
    assert record.epsilon == pytest.approx(cost.epsilon(ledger.delta))
    assert model.classes is None


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({}, (ROWS, None), "requires y to be passed"),
        ({}, (ROWS[0], LABELS[:2]), "two-dimensional|2D"),
        ({}, (ROWS, LABELS[:5]), "inconsistent numbers of samples"),
        ({}, (ROWS, np.zeros(24)), "at least two classes"),
        ({"data_norm": -1.0}, (ROWS, LABELS), "data_norm must be"),
    ],
    ids=["no targets", "one dimension", "lengths", "one class", "parameter"],
)
def test_what_no_fit_can_use_costs_nothing(ledger, parameters, data, message):
    model = DPLogisticRegression(solver="output", **parameters)
    with ledger, pytest.raises(ValueError, match=message):
        model.fit(*data)
    assert ledger.history() == []


def test_public_size_stands_for_the_real_one(ledger):
    model = Counted()
    model.n_public = 30
    record, _ = spent(ledger, model, ROWS, LABELS)
    assert record.details["n_samples"] == 30


def test_chunks_need_a_public_size(ledger):
    model = DPRidge(data_norm=1.0, target_bound=1.0, ledger=ledger)
    with pytest.raises(ValueError, match="n_public must be given"):
        model.fit(iter([(ROWS, ROWS[:, 0])]))
    assert ledger.history() == []
    _, cost = spent(ledger, model.set_params(n_public=24), iter([(ROWS, ROWS[:, 0])]))
    assert cost.epsilon(1e-5) == pytest.approx(model.privacy_.profile.epsilon(1e-5))


def test_sums_have_a_size(ledger):
    model = OutputPerturbationLinearRegression(data_norm=1.0, target_bound=1.0, ledger=ledger)
    sums = SufficientStatistics(1.0, 1.0).update(ROWS, ROWS[:, 0])
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


class Crossing(Understated):
    """Announces a curve, and costs another that crosses it."""

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.approximate(0.9, 1e-8)

    def fit(self, X, y=None):
        self.privacy_ = PrivacyReport(PrivacyProfile.gaussian(0.2), 1e-5)
        return self


def test_report_that_costs_more_at_another_delta_is_charged_as_well(ledger):
    """Theorem H4: curves may cross, so that one delta says nothing of the others."""
    with ledger:
        model = Crossing().fit(ROWS)
    # Cheaper at the deltas of the ledger and of the report, and more expensive at a smaller one.
    assert model.privacy_.profile.epsilon(1e-5) < 0.9 < model.privacy_.profile.epsilon(1e-7)
    assert [record.name for record in ledger.history()] == ["Crossing", "Crossing"]


# Arguments are found by name or by place, and in methods that say nothing of them ------------


def usual(self, X, y=None, sample_weight=None):
    return self


def anything(self, *args, **kwargs):
    return self


def others(self, data, target=None, *, mode="a"):
    return self


def without_y(self, X, copy=None):
    return self


@pytest.mark.parametrize(
    ("method", "args", "kwargs"),
    [
        (usual, (ROWS, LABELS), {}),
        (usual, (ROWS,), {"sample_weight": LABELS}),
        (usual, (), {"y": LABELS, "X": ROWS}),
        (anything, (ROWS, LABELS), {}),
        (anything, (ROWS,), {"y": LABELS}),
        (anything, (), {"X": ROWS, "y": LABELS}),
        (others, (ROWS, LABELS), {"mode": "b"}),
        (others, (), {"data": ROWS, "target": LABELS}),
        (without_y, (ROWS, True), {}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_records_and_targets_are_found(ledger, method, args, kwargs):
    """Theorem H4."""
    model = type("Formed", (Understated,), {"fit": method})()
    with ledger:
        model.fit(*args, **kwargs)
    (record,) = ledger.history()
    assert record.details["n_samples"] == 24
    if "y" in kwargs or "target" in kwargs:
        short = {name: each[:5] if each is LABELS else each for name, each in kwargs.items()}
        with ledger, pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(*args, **short)
        assert len(ledger.history()) == 1
