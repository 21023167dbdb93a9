"""Epochs by default: a function of the public number of records, in plans, fits and searches."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.base import profile_of
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV
from skdptune.neural_network import (
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
    LogisticHead,
)
from skdptune.neural_network._defaults import (
    EPOCHS_FOR_CLASSES,
    EPOCHS_FOR_TARGETS,
    EPOCHS_FOR_TWO_CLASSES,
    default_epochs,
)
from tests.neural_network.nets import data, net_of, weights_of

NETS = [DPNeuralNetBinaryClassifier, DPNeuralNetClassifier, DPNeuralNetRegressor]
RULES = {
    "two classes": EPOCHS_FOR_TWO_CLASSES,
    "classes": EPOCHS_FOR_CLASSES,
    "targets": EPOCHS_FOR_TARGETS,
}
# Where the number of epochs of at least one kind of net changes.
SIZES = sorted({n + k for rule in RULES.values() for n in rule if n for k in (-1, 0)})


@pytest.fixture
def few(monkeypatch):
    """Change the number of epochs at 100 and 200 records, which are quick to train on."""
    for kind in NETS:
        monkeypatch.setattr(kind, "_epochs_by_size", {0: 1, 100: 2, 200: 3})


def test_a_step_holds_from_its_number_of_records_on():
    rule = {0: 1, 10: 5, 100: 9}
    found = [default_epochs(rule, n) for n in (1, 9, 10, 99, 100, 10**9)]
    assert found == [1, 1, 5, 5, 9, 9]


@pytest.mark.parametrize("name", RULES)
def test_more_records_are_never_used_less(name):
    rule = RULES[name]
    assert next(iter(rule)) == 0
    assert list(rule) == sorted(rule)
    assert list(rule.values()) == sorted(rule.values())
    assert all(isinstance(epochs, int) and epochs >= 1 for epochs in rule.values())


@pytest.mark.parametrize("kind", NETS)
def test_it_is_the_default_and_stays_what_was_asked_for(kind):
    assert kind().max_epochs == "auto"
    assert clone(kind()).get_params()["max_epochs"] == "auto"
    assert kind().set_params(max_epochs=3).set_params(max_epochs="auto").max_epochs == "auto"
    net = net_of(kind, max_epochs="auto").fit(*data(60))
    assert net.max_epochs == "auto" and clone(net).max_epochs == "auto"


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("size", [1, 300, *SIZES])
def test_cost_and_noise_are_those_of_the_number(kind, size):
    (epochs,) = kind().fixed_epochs(size).values()
    assert epochs == default_epochs(kind._epochs_by_size, size)
    given = kind(max_epochs=epochs)
    assert profile_of(kind(), size) == profile_of(given, size)
    assert kind().noise_level(size) == given.noise_level(size)
    assert given.fixed_epochs(size) == {}


@pytest.mark.parametrize("kind", NETS)
def test_the_number_does_not_depend_on_the_budget(kind):
    # A search solves for the noise, and sets it in place of epsilon.
    for size in SIZES:
        noise = kind(epsilon=0.5).noise_level(size)
        by_noise = kind(epsilon=None, noise_multiplier=noise)
        assert profile_of(by_noise, size) == profile_of(kind(epsilon=0.5), size)
        assert kind(epsilon=8.0).fixed_epochs(size) == by_noise.fixed_epochs(size)
    assert kind().noise_parameter == "noise_multiplier"


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "allocation"])
@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize(("size", "epochs"), [(99, 1), (100, 2), (230, 3)])
def test_a_fit_takes_the_steps_of_the_plan(few, kind, sampling, size, epochs):
    X, y = data(size)
    net = net_of(kind, max_epochs="auto", sampling=sampling, epsilon=2.0)
    profile = profile_of(net, size)
    net.fit(X, y)
    assert net.max_epochs_ == epochs == len(net.history)
    assert net.plan_.steps == math.ceil(epochs / net.plan_.rate * (1 - 1e-12))
    assert net.privacy_.profile == profile
    given = net_of(kind, max_epochs=epochs, sampling=sampling, epsilon=2.0).fit(X, y)
    np.testing.assert_array_equal(weights_of(net), weights_of(given))
    assert given.max_epochs_ == epochs


@pytest.mark.parametrize("n_public", [50, 150, 250])
def test_a_secret_number_of_records_has_no_influence(few, n_public):
    settings = {"max_epochs": "auto", "n_public": n_public, "classes": [0, 1]}
    nets = [net_of(**settings).fit(*data(size)) for size in (90, 110, 240)]
    assert {net.max_epochs_ for net in nets} == {1 + n_public // 100}
    assert len({net.plan_.steps for net in nets}) == 1
    assert all(net.privacy_.profile == profile_of(net, 1) for net in nets)


@pytest.mark.parametrize("kind", NETS)
def test_a_fit_on_fewer_records_takes_the_final_number(few, kind):
    net = kind(batch_size=20)
    values = net.tuning_parameters(n_tune=50, n_final=200)
    assert values["max_epochs"] == 3
    fewer = clone(net).set_params(**values)
    assert profile_of(fewer, 50) == profile_of(net, 200)
    assert net.set_params(n_public=120).tuning_parameters(50, 200)["max_epochs"] == 2
    assert "max_epochs" not in kind(max_epochs=4).tuning_parameters(50, 200)


def test_nets_that_are_trained_together_take_their_own_numbers(few):
    X, y = data(120)

    def nets():
        return [net_of(max_epochs=epochs, classes=[0, 1]) for epochs in ("auto", 1, "auto")]

    made = nets()
    made[2].set_params(n_public=250)
    DPNeuralNetClassifier.fit_many(made, X, y)
    assert [net.max_epochs_ for net in made] == [2, 1, 3]
    for net in made:
        alone = clone(net).fit(X, y)
        np.testing.assert_allclose(weights_of(net), weights_of(alone), atol=2e-5)


@pytest.mark.parametrize("kind", [DPRandomSearchCV, DPGridSearchCV])
def test_searches_try_it_beside_numbers_within_their_budget(few, kind):
    X, y = data(400)
    net = net_of(module=LogisticHead, classes=[0, 1], delta=1e-4)
    search = kind(
        net, {"max_epochs": ["auto", 1, 2]}, epsilon=2.0, delta=1e-4, random_state=0
    ).fit(X, y)
    assert search.privacy_.profile.epsilon(1e-4) <= 2.0
    wanted = {"auto": 3, 1: 1, 2: 2}[search.best_params_["max_epochs"]]
    assert search.best_estimator_.max_epochs_ == wanted


@pytest.mark.parametrize("value", ["Auto", "automatic", None, [10], True])
@pytest.mark.parametrize("kind", NETS)
def test_other_words_are_refused(kind, value):
    net = kind(max_epochs=value)
    with pytest.raises((ValueError, TypeError), match=r"max_epochs must be a number.*or 'auto'"):
        net.privacy_profile(100)
