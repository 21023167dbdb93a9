"""What searches ask of the boosting machines beyond their cost."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.ensemble import DPExplainableBoostingClassifier as Classifier
from skdptune.ensemble import DPExplainableBoostingRegressor as Regressor
from tests.ensemble.tables import SCHEMA

QUICK = {"max_rounds": 5, "max_bins": 8}
CLASSIFIER = Classifier(bounds=(-1, 1), classes=[0, 1], random_state=0, **QUICK)
REGRESSOR = Regressor(bounds=(-1, 1), target_bound=2.0, random_state=0, **QUICK)
BOTH = pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=["classes", "numbers"])
X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
Y = (X[:, 0] > 0).astype(int)


@BOTH
def test_nothing_but_the_budget_changes_the_cost(model):
    # Theorem B1.
    cost = model.privacy_profile(100)
    changes = {
        "max_rounds": 1000,
        "max_bins": 3,
        "max_leaves": 9,
        "learning_rate": 0.7,
        "bin_share": 0.5,
        "bounds": ([0, 0], [1, 9]),
        "n_public": 7,
        "random_state": 3,
    }
    assert not model.cost_parameters & set(changes)
    for name, value in changes.items():
        assert clone(model).set_params(**{name: value}).privacy_profile(5000, 9) == cost


@BOTH
def test_its_noise_as_a_parameter_makes_the_same_fit(model):
    noise = model.noise_level(400)
    again = clone(model).set_params(epsilon=None, noise_multiplier=noise)
    assert np.array_equal(clone(model).fit(X, Y).predict(X), again.fit(X, Y).predict(X))
    assert np.array_equal(clone(model).fit(X, Y).intercept_, again.intercept_)
    assert again.privacy_.profile == model.privacy_profile(400)


@BOTH
def test_suggested_values_are_valid_and_begin_with_the_present_ones(model):
    for changes in ({}, {"learning_rate": 10.0}, {"max_leaves": 8}):
        model = clone(model).set_params(**changes)
        space = model.suggested_space(400, 2)
        assert set(space) == {"max_leaves", "learning_rate"}
        for name, (present, *others) in space.items():
            assert present == getattr(model, name)
            assert others and present not in others
            for value in others:
                clone(model).set_params(**{name: value}).privacy_profile(400)
    # Around the rate that the rule would take.
    fitted = clone(model).set_params(learning_rate=None).fit(X, Y)
    rates = fitted.suggested_space(400, 2)["learning_rate"]
    assert rates == [None, 2 * fitted.learning_rate_, fitted.learning_rate_ / 2]
    assert set(fitted.suggested_space(400)) == {"max_leaves"}
    if model is CLASSIFIER:
        of_schema = Classifier(schema=SCHEMA).suggested_space(400)
        assert len(of_schema["learning_rate"]) == 3


@BOTH
def test_fits_on_fewer_records_keep_their_parameters(model):
    assert model.tuning_parameters(n_tune=100, n_final=400) == {}
    for sizes in ((0, 400), (100, 0)):
        with pytest.raises(ValueError, match="n_(tune|final) must be"):
            model.tuning_parameters(*sizes)
