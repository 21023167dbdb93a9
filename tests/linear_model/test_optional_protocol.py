"""What a search may ask of a classifier: cost parameters, noise, and fits on fewer records."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.mechanisms import steps_for_budget

CLASSES = [DPLogisticRegression, DPLinearSVC]
SOLVERS = ["auto", "preconditioned", "objective", "output", "psgd", "sgd", "adam"]
DELTA = 1e-4
# For every parameter another valid value than in any of the cases below.
OTHERS = {
    "epsilon": 2.0,
    "delta": 1e-5,
    "solver": "other",
    "C": 0.02,
    "data_norm": 7.0,
    "classes": ["a", "b", "c"],
    "class_weight": {0: 2.0, 1: 1.0},
    "fit_intercept": True,
    "epochs": 3.0,
    "batch_size": 15,
    "sampling": "fixed",
    "learning_rate": 50.0,
    "max_grad_norm": 0.3,
    "noise_multiplier": 4.5,
    "tol": 1e-3,
    "max_iter": 1000,
    "random_state": 1,
    "n_public": 70,
}


def outcome(model, n_features):
    """Return the cost, or the kind of error in its place."""
    try:
        return model.privacy_profile(100, n_features)
    except ValueError as error:
        return type(error)


def cases(kind, solver):
    """Yield models and numbers of features that together show which parameters change the cost."""
    base = kind(1.0, DELTA, solver=solver, C=0.1, data_norm=2.0, fit_intercept=False)
    if solver != "auto":
        base.set_params(batch_size=50)
    yield base, 3
    yield clone(base).set_params(noise_multiplier=2.0), 3
    yield clone(base).set_params(data_norm=None), 3
    # The longest step that is allowed, so that a parameter that lowers the limit raises an error.
    if solver == "psgd":
        longest = float(base._plan(100, 3, 2).learning_rates[0, 0])
        yield clone(base).set_params(learning_rate=longest), 3
    if solver == "output":
        yield base.set_params(data_norm=None), None
        yield clone(base).set_params(data_norm=1.0), None
    if solver in ("sgd", "adam"):
        yield clone(base).set_params(n_public=90), 3


# Of the solvers, "objective" alone has a cost that depends on the loss.
@pytest.mark.parametrize(
    ("kind", "solver"),
    [*((DPLogisticRegression, solver) for solver in SOLVERS), (DPLinearSVC, "objective")],
)
def test_cost_changes_through_the_named_parameters_and_no_others(kind, solver):
    # A ledger records the cost, and does not change it.
    assert {*OTHERS, "ledger"} == set(kind().get_params())
    changing = set()
    for model, n_features in cases(kind, solver):
        before = outcome(model, n_features)
        for name, other in OTHERS.items():
            if name == "solver":
                other = "output" if solver == "objective" else "objective"
            if name == "data_norm" and model.data_norm == 1.0:
                other = None
            changed = clone(model).set_params(**{name: other})
            if outcome(changed, n_features) != before:
                changing.add(name)
        assert model.cost_parameters == kind(solver=solver).cost_parameters
    assert changing == kind(solver=solver).cost_parameters


@pytest.mark.parametrize(
    ("solver", "delta"),
    [
        *((solver, DELTA) for solver in SOLVERS),
        *((solver, 0.0) for solver in ("objective", "output", "psgd")),
    ],
)
@pytest.mark.parametrize("kind", CLASSES)
def test_noise_level_makes_the_noise_of_the_budget(kind, delta, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.arange(300) % 3
    model = kind(0.8, delta, solver=solver, C=0.01, classes=range(3), random_state=0)
    level = model.noise_level(300, 3)
    given = clone(model).set_params(noise_multiplier=level)
    asked, cost = (m.privacy_profile(300, 3).epsilon(delta) for m in (model, given))
    # A pure "objective" sets aside a little less for the minimisation if the noise is given.
    assert 0.999 * asked < cost <= asked * (1 + 1e-9)
    assert given.noise_level(300, 3) == pytest.approx(level, rel=1e-12)
    np.testing.assert_allclose(
        clone(model).fit(X, y).coef_, given.fit(X, y).coef_, rtol=1e-5, atol=1e-9
    )
    assert model.fit(X, y).plan_.noise_multiplier == level


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


@pytest.mark.parametrize(
    ("solver", "names"),
    [
        ("auto", {"C"}),
        ("preconditioned", {"C"}),
        ("objective", {"C"}),
        ("output", {"C"}),
        ("psgd", {"C", "batch_size"}),
        ("sgd", {"C", "batch_size", "learning_rate"}),
        ("adam", {"C", "batch_size"}),
    ],
)
def test_other_parameters_stay(solver, names):
    assert set(DPLinearSVC(solver=solver, C=1.0).tuning_parameters(10, 100)) == names
    # A regularization that the noise chooses does so on fewer records, too.
    if solver in ("auto", "preconditioned", "objective", "output"):
        names = names - {"C"}
    assert set(DPLinearSVC(solver=solver).tuning_parameters(10, 100)) == names


@pytest.mark.parametrize(
    ("batch_size", "n_final", "share"),
    [(256, 1024, 0.25), (256, 100, 1.0), (0.3, 1024, 0.3), (1, 1, 1.0)],
)
def test_batch_becomes_a_share_of_the_final_records(batch_size, n_final, share):
    model = DPLogisticRegression(solver="sgd", batch_size=batch_size)
    found = model.tuning_parameters(10, n_final)["batch_size"]
    assert isinstance(found, float)
    assert found == share


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
    "changes", [{}, {"noise_multiplier": 1.2, "batch_size": 0.01}, {"sampling": "fixed"}]
)
def test_cost_of_most_steps_grows_with_epsilon_and_stays_below(changes):
    """Theorem C1: what a search that solves for epsilon relies on."""
    model = most_steps_of(DPLogisticRegression, **changes)
    budgets = np.geomspace(1.5, 30.0, 12)
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
