"""A fitted model handed to interpret-core."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from skdptune.ensemble import DPExplainableBoostingClassifier as Classifier
from skdptune.ensemble import DPExplainableBoostingRegressor as Regressor
from tests.ensemble.tables import SCHEMA, people

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (500, 2))
QUICK = {"bounds": (0, 1), "max_rounds": 20, "random_state": 0}


def test_without_interpret_the_extra_is_named(monkeypatch):
    model = Classifier(**QUICK).fit(X, X[:, 0] > 0.5)
    for name in ("interpret", "interpret.glassbox", "interpret.privacy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'skdptune\[ebm\]'"):
        model.to_interpret()


@pytest.fixture
def interpret():
    return pytest.importorskip("interpret")


def test_two_classes_are_predicted_the_same(interpret):
    model = Classifier(**QUICK).fit(X, X[:, 0] > 0.5)
    found = model.to_interpret()
    assert type(found).__name__ == "DPExplainableBoostingClassifier"
    assert found.predict_proba(X) == pytest.approx(model.predict_proba(X))
    assert np.array_equal(found.predict(X), model.predict(X))
    assert found.explain_global().data(0)["type"] == "univariate"
    assert found.explain_local(X[:2]).data(0)["names"] == ["x0", "x1"]


def test_more_classes_are_predicted_the_same(interpret):
    y = (X[:, 0] * 3).astype(int)
    model = Classifier(**QUICK).fit(X, y)
    assert model.to_interpret().predict_proba(X) == pytest.approx(model.predict_proba(X))


def test_numbers_are_predicted_the_same(interpret):
    model = Regressor(target_bound=(5, 7), **QUICK).fit(X, 5 + X[:, 0])
    found = model.to_interpret()
    assert type(found).__name__ == "DPExplainableBoostingRegressor"
    assert found.predict(X) == pytest.approx(model.predict(X))
    found.explain_global()


def test_words_and_gaps_are_predicted_the_same(interpret):
    table, labels = people(500)
    model = Classifier(4.0, schema=SCHEMA, random_state=0).fit(table, labels)
    found = model.to_interpret()
    rows = table.drop(columns="name").astype({"paid": str})
    rows.loc[0, "sector"] = None
    rows.loc[1, "sector"] = "unheard of"
    assert found.predict_proba(rows) == pytest.approx(model.predict_proba(rows.assign(name="x")))
    names = found.explain_global().data(2)["names"]
    assert names[:4] == ["farm", "mill", "office", "rare"]


def test_it_shows_no_number_of_records(interpret):
    model = Classifier(**QUICK).fit(X, X[:, 0] > 0.5)
    found = model.to_interpret()
    assert found.bag_weights_.tolist() == [1.0]
    assert not hasattr(found, "histogram_weights_")


def test_pairs_are_predicted_the_same(interpret):
    table, labels = people(500)
    pairs = [("age", "sector"), ("age", "pay")]
    model = Classifier(4.0, schema=SCHEMA, interactions=pairs, random_state=0).fit(table, labels)
    found = model.to_interpret()
    rows = table.drop(columns="name").astype({"paid": str})
    rows.loc[0, "sector"] = None
    rows.loc[1, "sector"] = "unheard of"
    assert found.predict_proba(rows) == pytest.approx(model.predict_proba(rows.assign(name="x")))
    assert found.term_names_[4:] == ["age & sector", "age & pay"]
    assert found.standard_deviations_[4].max() > 0.0
    assert found.explain_global().data(4)["type"] == "interaction"
    found.explain_local(rows[:2])
