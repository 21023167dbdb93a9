"""The optional protocol of a classifier: cost parameters, noise, and fits on fewer records."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.mechanisms import steps_for_budget

CLASSES = [DPLogisticRegression, DPLinearSVC]
DELTA = 1e-4


# Extrapolation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "rate"), [("sgd", 0.7), ("sgd", None), ("adam", 0.7), ("adam", None)]
)
def test_noise_of_a_step_on_the_weights_is_that_of_the_final_fit(solver, rate):
    # Without records nothing but the noise moves the weights.
    X, y = np.empty((0, 3)), np.empty(0)
    final = DPLogisticRegression(
        1.0,
        DELTA,
        solver=solver,
        learning_rate=rate,
        batch_size=100,
        C=1e15,
        classes=[0, 1],
        random_state=5,
        n_public=2000,
    )
    tuned = clone(final).set_params(n_public=400, **final.tuning_parameters(400, 2000))
    final.fit(X, y), tuned.fit(X, y)
    assert tuned.plan_.rate == final.plan_.rate == 0.05
    assert tuned.plan_.steps == final.plan_.steps
    assert tuned.privacy_.profile == final.privacy_.profile
    assert np.abs(final.coef_).max() > 0.0
    np.testing.assert_allclose(tuned.coef_, final.coef_, rtol=1e-5)


# As many steps as the budget pays for ------------------------------------------------------


def most_steps_of(kind, solver="sgd", **changes):
    settings = {"epochs": "max", "noise_multiplier": 3.0, "batch_size": 0.05, **changes}
    return kind(1.0, DELTA, solver=solver, random_state=0, **settings)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
@pytest.mark.parametrize("kind", CLASSES)
def test_most_steps_of_plan_and_fit_agree_and_spend_the_budget(kind, solver):
    """Theorem M5."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    model = most_steps_of(kind, solver).fit(X, X[:, 0] > 0.0)
    assert model.plan_.steps == steps_for_budget(3.0, 0.05, 1.0, DELTA) > 100
    assert model.privacy_.profile == model.privacy_profile(400)
    assert model.privacy_.epsilon == 1.0
    assert 0.97 <= model.privacy_.epsilon_spent <= 1.0
    assert model.noise_level(400) == 3.0
    # The very same fit, by the number of its epochs, whatever epsilon is.
    fixed = clone(model).set_params(**model.fixed_epochs(400), epsilon=None)
    assert fixed.fixed_epochs(400) == {} and fixed.noise_parameter == "noise_multiplier"
    np.testing.assert_array_equal(fixed.fit(X, X[:, 0] > 0.0).coef_, model.coef_)
    assert fixed.privacy_.profile == model.privacy_.profile


def test_noise_of_most_steps_does_not_set_the_cost():
    """It sets the steps, so that a search has to solve for epsilon."""
    model = most_steps_of(DPLogisticRegression)
    assert model.noise_parameter is None
    assert {"epochs", "epsilon", "noise_multiplier", "batch_size"} <= model.cost_parameters
    for noise in (2.0, 4.0):
        cost = model.set_params(noise_multiplier=noise).privacy_profile(400).epsilon(DELTA)
        assert 0.97 <= cost <= 1.0


@pytest.mark.parametrize(
    "changes", [{"noise_multiplier": 1.2, "batch_size": 0.01}, {"sampling": "fixed"}]
)
def test_cost_of_most_steps_grows_with_epsilon_and_stays_below(changes):
    """Theorem C1: what a search that solves for epsilon relies on."""
    model = most_steps_of(DPLogisticRegression, **changes)
    budgets = np.geomspace(1.5, 30.0, 7)
    profiles = [model.set_params(epsilon=epsilon).privacy_profile(400) for epsilon in budgets]
    costs = [profile.epsilon(DELTA) for profile in profiles]
    assert np.all(np.diff(costs) > 0.0) and np.all(costs <= budgets)
    epsilons = np.linspace(0.0, 5.0, 20)
    for first, second in itertools.pairwise(profiles):
        assert np.all(first.delta(epsilons) <= second.delta(epsilons) * (1.0 + 1e-6) + 1e-12)


def test_most_steps_on_fewer_records_are_as_many():
    model = most_steps_of(DPLogisticRegression, batch_size=100)
    fewer = clone(model).set_params(**model.tuning_parameters(n_tune=200, n_final=2000))
    assert fewer.privacy_profile(200) == model.privacy_profile(2000)
