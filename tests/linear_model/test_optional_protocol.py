"""What a search may ask of a classifier: cost parameters, noise, and fits on fewer records."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._solvers import _objective, _output, _permutation

CLASSES = [DPLogisticRegression, DPLinearSVC]
SOLVERS = ["objective", "output", "psgd", "sgd", "adam"]
DELTA = 1e-4
# For every parameter another valid value than in any of the cases below.
OTHERS = {
    "epsilon": 2.0,
    "delta": 1e-5,
    "solver": "other",
    "C": 0.02,
    "data_norm": 7.0,
    "classes": ["a", "b", "c"],
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
    assert set(OTHERS) == set(kind().get_params())
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


def test_cost_of_an_unknown_solver_depends_on_everything():
    model = DPLogisticRegression(solver="newton")
    assert model.cost_parameters == set(model.get_params())


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
        clone(model).fit(X, y).coef_, given.fit(X, y).coef_, rtol=1e-6, atol=1e-9
    )
    assert model.fit(X, y).plan_.noise_multiplier == level


def test_noise_level_of_one_gaussian_release():
    model = DPLogisticRegression(0.8, DELTA, solver="output")
    level = model.noise_level(300, 3)
    assert PrivacyProfile.gaussian(1 / level).epsilon(DELTA) == pytest.approx(0.8, rel=1e-2)
    everything = DPLogisticRegression(0.8, DELTA, solver="sgd", batch_size=1.0, epochs=1)
    assert everything.noise_level(300) == pytest.approx(level, rel=1e-2)


def test_noise_level_is_that_of_the_public_size():
    model = DPLogisticRegression(solver="sgd", delta=DELTA)
    expected = model.noise_level(500)
    assert model.set_params(n_public=500).noise_level(10**6) == expected
    assert model.set_params(n_public=5000).noise_level(10**6) < expected


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


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", CLASSES)
def test_regularization_per_record_is_that_of_the_final_fit(kind, solver, monkeypatch):
    # The final data repeat the tuning data, so means, and the model without noise, are the same.
    for module in (_objective, _output, _permutation):
        monkeypatch.setattr(module, "draw_noise", lambda rng, width, *rest: np.zeros(width))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = (X @ [1.0, -2.0] + rng.normal(size=60) > 0).astype(int)
    budget = {"epsilon": math.inf} if solver in ("sgd", "adam") else {"noise_multiplier": 1.0}
    final = kind(
        delta=1e-6,
        solver=solver,
        C=0.05,
        batch_size=1.0,
        epochs=3000,
        max_grad_norm=100.0,
        random_state=0,
        learning_rate=0.05 if solver == "adam" else 0.15,
        **budget,
    )
    tuned = clone(final).set_params(**final.tuning_parameters(60, 240))
    final.fit(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    tuned.fit(X, y)
    assert np.abs(final.coef_).max() > 0.1
    np.testing.assert_allclose(tuned.coef_, final.coef_, rtol=1e-6)
    unscaled = clone(tuned).set_params(C=0.05).fit(X, y)
    assert np.abs(unscaled.coef_ - final.coef_).max() > 0.05


@pytest.mark.parametrize(
    ("solver", "names"),
    [
        ("objective", {"C"}),
        ("output", {"C"}),
        ("psgd", {"C", "batch_size"}),
        ("sgd", {"C", "batch_size", "learning_rate"}),
        ("adam", {"C", "batch_size"}),
    ],
)
def test_other_parameters_stay(solver, names):
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


def test_scaled_parameters_are_valid():
    model = DPLogisticRegression(C=1e15, solver="output")
    model.set_params(**model.tuning_parameters(1, 1000)).privacy_profile(100, 2)
    assert model.C == 1e15


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((0, 10), "n_tune must be"), ((10, 0), "n_final must be")],
)
def test_impossible_sizes_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        DPLogisticRegression().tuning_parameters(*sizes)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="C must be"):
        DPLogisticRegression(C=-1.0).tuning_parameters(10, 100)
