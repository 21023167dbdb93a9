"""Parameters of private nets: names, domains, defaults, costs, and how they are described."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    LRScheduler,
    PassthroughScoring,
)
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from skdptune import neural_network
from skdptune.base import profile_of
from skdptune.mechanisms import steps_for_budget
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
    LogisticHead,
)
from tests.neural_network.nets import data, net_of, weights_of


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"train_split": 5}, "train_split must be None"),
        ({"callbacks": [EarlyStopping()]}, "callbacks must not depend on the data"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be"),
        ({"max_grad_norm": 0.0}, "max_grad_norm must be"),
        ({"max_epochs": 0}, "max_epochs must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": 1.5}, "batch_size must be"),
        ({"max_physical_batch_size": 0}, "max_physical_batch_size must be"),
        ({"grad_sample_mode": "exact"}, "grad_sample_mode must be one of 'auto', 'hooks'"),
        ({"n_public": 0}, "n_public must be"),
        ({"sampling": "shuffle"}, "sampling must be one of 'poisson', 'fixed', 'allocation'"),
        ({"n_public": 9, "sampling": "fixed"}, "n_public must be None with sampling='fixed'"),
        ({"lr": -1.0}, "lr must be"),
        ({"lr": math.nan}, "lr must be"),
        (
            {"optimizer": "adam"},
            "optimizer must be one of 'auto'; got 'adam'. Others are given as",
        ),
        ({"device": "nowhere"}, "device must be one that torch knows"),
        ({"iterator_train__shuffle": True}, "iterator_train__shuffle must not be given"),
    ],
)
def test_bad_parameters_are_refused_before_data_are_read(settings, complaint):
    net = net_of(**settings)
    with pytest.raises(ValueError, match=complaint):
        net.privacy_profile(100)
    with pytest.raises(ValueError, match=complaint):
        net.fit("neither", "read")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_absent_device_is_refused():
    with pytest.raises(ValueError, match="got CUDA without one"):
        net_of(device="cuda").privacy_profile(100)


def test_parameters_come_back_and_can_be_set():
    net = net_of(module__hidden=(3,), module=MLP, optimizer__momentum=0.5)
    params = net.get_params()
    assert params["module__hidden"] == (3,)
    assert params["optimizer__momentum"] == 0.5
    assert params["classes"] is None
    assert not any(name.startswith("_") for name in params)
    assert clone(net).get_params() == params
    assert net.set_params(module__hidden=(4, 4), lr=0.2).lr == 0.2
    net.fit(*data())
    assert [layer.out_features for layer in net.module_.layers[1::2]] == [4, 4, 2]
    with pytest.raises(ValueError, match="Invalid parameter 'wrong'"):
        net.set_params(wrong=1)


def test_subclass_keeps_its_parameters():
    class Mine(DPNeuralNetClassifier):
        def __init__(self, module=LogisticHead, *, extra=1, **parameters):
            super().__init__(module, **parameters)
            self.extra = extra

    net = clone(Mine(extra=3, epsilon=2.0, classes=[0, 1], module__bias=False))
    assert (net.extra, net.epsilon, net.classes) == (3, 2.0, [0, 1])
    assert len(list(net.fit(*data()).module_.parameters())) == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"noise_multiplier": None}, "noise_multiplier must be a number.*follows from"),
        ({"epsilon": None}, "epsilon must be a number.*follows from noise_multiplier, epsilon"),
        ({"epsilon": float("inf")}, "epsilon must be a number"),
        ({"delta": 0.0}, "delta must be a number"),
        ({"max_epochs": "most"}, "max_epochs must be a number.*Or 'max', with a noise_multiplier"),
    ],
)
def test_most_steps_need_a_noise_and_a_budget(settings, complaint):
    net = net_of(**{"max_epochs": "max", "noise_multiplier": 2.0, **settings})
    with pytest.raises((ValueError, TypeError), match=complaint):
        net.privacy_profile(100)


class Vouched(Callback):
    data_independent = True


class Unknown(Callback):
    pass


class OwnSchedule(LRScheduler):
    """A subclass may do anything."""


@pytest.mark.parametrize(
    "callbacks",
    [
        None,
        "disable",
        [],
        [LRScheduler],
        [LRScheduler(policy=StepLR, step_size=1)],
        [("schedule", LRScheduler(policy="StepLR", step_size=1)), Vouched, Vouched()],
        [("removed", None)],
    ],
)
def test_callbacks_without_data_pass(callbacks):
    net_of(callbacks=callbacks).privacy_profile(100)


@pytest.mark.parametrize(
    "callback",
    [
        EarlyStopping(),
        EarlyStopping,
        EpochScoring("accuracy"),
        PassthroughScoring("train_loss"),
        Checkpoint(),
        Unknown(),
        OwnSchedule(),
        LRScheduler(policy=ReduceLROnPlateau),
        LRScheduler(policy="ReduceLROnPlateau"),
    ],
)
def test_callbacks_that_read_data_are_refused(callback):
    for given in (callback, ("name", callback)):
        with pytest.raises(ValueError, match="callbacks must not depend on the data; got .*charg"):
            net_of(callbacks=[given]).privacy_profile(100)


def test_most_steps_of_plan_and_fit_agree_and_spend_the_budget():
    """Theorem M5."""
    X, y = data(200)
    net = net_of(epsilon=2.0, max_epochs="max", noise_multiplier=2.0, batch_size=0.1)
    net.fit(X, y)
    steps = steps_for_budget(2.0, 0.1, 2.0, net.delta)
    assert net.plan_.steps == steps > 50
    assert len(net.history) == math.ceil(steps / 10)
    assert net.privacy_.profile == profile_of(net, 200)
    assert 0.97 * 2.0 <= net.privacy_.epsilon_spent <= 2.0 == net.privacy_.epsilon
    assert net.noise_parameter is None
    fixed = clone(net).set_params(**net.fixed_epochs(200), epsilon=None)
    assert fixed.fixed_epochs(200) == {} and fixed.noise_parameter == "noise_multiplier"
    assert profile_of(fixed, 200) == profile_of(net, 200)


NETS = [DPNeuralNetBinaryClassifier, DPNeuralNetClassifier, DPNeuralNetRegressor]
# Where the number of epochs of at least one kind of net changes, and what it is for each.
SIZES = [3_999, 4_000, 15_999, 16_000]
EPOCHS = dict(zip(NETS, ([20, 30, 30, 30], [10] * 4, [10, 10, 10, 20]), strict=True))


@pytest.fixture
def few(monkeypatch):
    """Change the number of epochs at 100 and 200 records, which are quick to train on."""
    for kind in NETS:
        monkeypatch.setattr(kind, "_epochs_by_size", {0: 1, 100: 2, 200: 3})


@pytest.mark.parametrize("kind", NETS)
def test_cost_and_noise_are_those_of_the_number(kind):
    first = EPOCHS[kind][0]
    # The default of a regressor is another optimizer, with a number of steps instead.
    default = kind(optimizer=torch.optim.SGD)
    for size, epochs in zip([1, 300, *SIZES], [first, first, *EPOCHS[kind]], strict=True):
        assert default.fixed_epochs(size) == {"max_epochs": epochs}
        given = kind(optimizer=torch.optim.SGD, max_epochs=epochs)
        assert profile_of(default, size) == profile_of(given, size)
        assert default.noise_level(size) == given.noise_level(size)
        assert given.fixed_epochs(size) == {}


@pytest.mark.parametrize(
    ("kind", "sampling"), [*zip(NETS, ["poisson", "fixed", "allocation"], strict=True)]
)
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


def test_package_lists_its_classes_alone():
    names = dir(neural_network)
    assert names == neural_network.__all__
    assert all(isinstance(getattr(neural_network, name), type) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'importlib'"):
        _ = neural_network.importlib


def test_a_callback_outside_of_a_list_is_refused():
    with pytest.raises(TypeError, match="callbacks must be a list, or None; got LRScheduler"):
        net_of(callbacks=LRScheduler()).privacy_profile(100)


@pytest.mark.parametrize("kind", [DPNeuralNetClassifier, DPNeuralNetRegressor])
def test_rate_and_norm_are_suggested_around_the_present_ones(kind):
    space = kind(lr=0.6, max_grad_norm=1.5).suggested_space(1000, 3)
    assert space == {
        "lr": [0.6, pytest.approx(0.2), pytest.approx(1.8)],
        "max_grad_norm": [1.5, pytest.approx(0.5), pytest.approx(4.5)],
    }
    assert not set(space) & kind().cost_parameters
    prefixed = kind(optimizer__lr=0.3, lr=0.6).suggested_space(1000)
    assert set(prefixed) == {"optimizer__lr", "max_grad_norm"}
    assert set(kind(lr=0.0).suggested_space(1000)) == {"max_grad_norm"}


@pytest.mark.parametrize("kind", NETS)
def test_a_fit_on_fewer_records_takes_the_final_number(few, kind):
    net = kind(batch_size=20)
    values = net.tuning_parameters(n_tune=50, n_final=200)
    assert values["max_epochs"] == 3
    fewer = clone(net).set_params(**values)
    assert profile_of(fewer, 50) == profile_of(net, 200)
    assert net.set_params(n_public=120).tuning_parameters(50, 200)["max_epochs"] == 2
    assert "max_epochs" not in kind(max_epochs=4).tuning_parameters(50, 200)


# The learning rate by rule ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DPNeuralNetClassifier, DPNeuralNetBinaryClassifier])
def test_default_rate_moves_weights_by_a_known_noise(kind):
    rates = []
    for epsilon in np.geomspace(0.01, 100.0, 9):
        net = kind(LogisticHead, epsilon=epsilon, max_epochs=10, optimizer=torch.optim.SGD)
        plan = net._settings_before_data(3000).plan
        rate = net.suggested_space(3000)["lr"][1] * 3.0
        noise = rate * plan.noise_multiplier * math.sqrt(plan.steps) / plan.batch_size
        assert rate in (0.5, 2.0) or noise == pytest.approx(0.18)
        rates.append(rate)
    assert rates == sorted(rates)
    assert (rates[0], rates[-1]) == (0.5, 2.0)


@pytest.mark.parametrize("kind", [DPNeuralNetClassifier, DPNeuralNetBinaryClassifier])
def test_default_rate_makes_the_fit_of_the_number_it_stands_for(kind):
    X, y = data()
    settings = {"max_epochs": 2, "random_state": 0, "classes": [0, 1]}
    given = kind(LogisticHead, delta=1e-3, optimizer=torch.optim.SGD, **settings)
    net = clone(given).fit(X, y)
    assert net.lr == "auto" and 0.5 <= net.lr_ <= 2.0
    other = clone(given).set_params(lr=net.lr_).fit(X, y)
    np.testing.assert_array_equal(weights_of(net), weights_of(other))
    space = given.suggested_space(len(X))["lr"]
    assert space == ["auto", pytest.approx(net.lr_ / 3.0), pytest.approx(net.lr_ * 3.0)]
    tuned = given.tuning_parameters(len(X) // 4, len(X))["lr"]
    assert tuned == pytest.approx(net.lr_ * (len(X) // 4) / len(X))
    together = kind.fit_many([clone(given), clone(given).set_params(lr=net.lr_)], X, y)
    assert together[0].lr_ == together[1].lr_ == net.lr_


def test_default_rate_of_sgd_is_a_number_for_a_regressor():
    X, y = data()
    net = net_of(DPNeuralNetRegressor, optimizer=torch.optim.SGD, lr="auto").fit(X, y)
    assert net.lr_ == 0.5
    with pytest.raises(TypeError, match="lr must be"):
        DPNeuralNetClassifier(lr="fast").privacy_profile(100)
