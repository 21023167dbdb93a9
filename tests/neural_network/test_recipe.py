"""The default training of a net: all records, Adam, a decreasing rate."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from skdptune.accounting import PrivacyProfile
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
    LogisticHead,
)
from skdptune.testing import replay_neighbours
from tests.neural_network.nets import weights_of

DELTA = 1e-4


def data(size=60, columns=3):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(size, columns)).astype(np.float32)
    return X, (np.sin(3.0 * X[:, 0]) + X[:, 1]).astype(np.float32)


def start():
    """Return a net with the same weights in each call."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))


def gradients(module, X, y, norm):
    """Return the clipped gradients, record by record."""
    found = []
    for row, target in zip(X, y, strict=True):
        loss = (module(torch.tensor(row, dtype=torch.float64)) - float(target)).square().sum()
        parts = torch.autograd.grad(loss, list(module.parameters()))
        length = math.sqrt(sum(float(part.square().sum()) for part in parts))
        found.append([part * min(1.0, norm / length) for part in parts])
    return found


@pytest.mark.parametrize("steps", [1, 10, 300, 1000])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_steps_on_all_records_cost_one_gaussian_release(steps, epsilon):
    # Theorem U6: steps of a net on all records are one Gaussian release.
    net = DPNeuralNetRegressor(epsilon=epsilon, delta=DELTA, max_epochs=steps)
    shift = math.sqrt(steps) / net.noise_level(500)
    one = PrivacyProfile.gaussian(shift)
    found = net.privacy_profile(500)
    for delta in (1e-3, DELTA, 1e-6):
        assert found.epsilon(delta) == pytest.approx(one.epsilon(delta), rel=1e-3)
    # However many steps there are, and whatever the number of records is.
    other = DPNeuralNetRegressor(epsilon=epsilon, delta=DELTA).noise_level(10_000)
    assert math.sqrt(300) / other == pytest.approx(shift, rel=5e-3)


@pytest.mark.parametrize("norm", [0.2, 1.0, 50.0])
def test_fit_without_noise_is_the_naive_descent(norm):
    # Theorem U6: steps of a net on all records are one Gaussian release.
    X, y = data()
    steps = 5
    net = DPNeuralNetRegressor(
        start(), epsilon=np.inf, max_epochs=steps, max_grad_norm=norm, random_state=0
    ).fit(X, y)
    module = start().double()
    rate = 0.05 * math.sqrt(300 / steps)
    first = [module[0].weight, module[0].bias]
    # Four inputs of a unit: three columns and the intercept.
    groups = [
        {"params": first, "lr": rate * math.sqrt(12 / 4)},
        {"params": list(module[2].parameters())},
    ]
    adam = torch.optim.Adam(groups, lr=rate)
    rates = [group["lr"] for group in adam.param_groups]
    for step in range(steps):
        for group, full in zip(adam.param_groups, rates, strict=True):
            group["lr"] = full * (1.0 - step / steps)
        sums = [
            torch.stack(same).sum(0) for same in zip(*gradients(module, X, y, norm), strict=True)
        ]
        for parameter, total in zip(module.parameters(), sums, strict=True):
            parameter.grad = total / len(X)
        adam.step()
    wanted = np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])
    np.testing.assert_allclose(weights_of(net), wanted, atol=2e-4)
    assert net.lr_ == pytest.approx(rate)


def one_step(X, y, **settings):
    """Return the sum that a step on all records releases, as weights moved by it."""
    module = start()
    before = np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])
    given = {"optimizer": torch.optim.SGD, "lr": 1.0, "batch_size": 1.0, "max_epochs": 1}
    given |= {"n_public": 60, "random_state": 0, "noise_multiplier": 2.0}
    net = DPNeuralNetRegressor(module, **{**given, **settings}).fit(X, y)
    return 60.0 * (before - weights_of(net))


@pytest.mark.parametrize("norm", [0.5, 3.0])
def test_one_record_moves_the_sum_of_all_by_no_more_than_the_norm(norm):
    # Theorem U6: the same noise, with and without one record.
    X, y = data()
    records = [([9.0, -9.0, 9.0], 100.0), ([0.1, 0.2, 0.3], 0.1), ([np.nan, 1.0, 1.0], 2.0)]
    records += [([1e30, 0.0, 0.0], 1.0), ([0.0, 0.0, 0.0], np.inf)]
    reached = []
    without = one_step(X, y, max_grad_norm=norm)
    for row, target in records:
        more = np.vstack([X, np.float32(row)]), np.append(y, np.float32(target))
        moved = np.linalg.norm(one_step(*more, max_grad_norm=norm) - without)
        assert moved <= norm * (1.0 + 1e-3) + 1e-4
        reached.append(moved)
    assert max(reached) == pytest.approx(norm, rel=1e-3)


def test_noise_of_a_step_has_the_planned_deviation():
    # Theorem U6: steps of a net on all records are one Gaussian release.
    X, y = data()
    drawn = [one_step(X, y, random_state=seed, max_grad_norm=0.5) for seed in range(40)]
    exact = one_step(X, y, noise_multiplier=None, epsilon=np.inf, max_grad_norm=0.5)
    noise = np.ravel([one - exact for one in drawn])
    assert stats.kstest(noise, stats.norm(scale=2.0 * 0.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    "record", [([9.0, 9.0, -9.0], 1e9), ([np.inf, 0.0, 0.0], 1.0), ([0.0, 0.0, 0.0], np.nan)]
)
def test_neighbours_of_the_default_are_not_told_apart(record):
    # Theorem U6, Theorem U1.
    X, y = data(40)
    net = DPNeuralNetRegressor(delta=1e-3, target_bound=2.0, max_epochs=4, n_public=40)
    replay = replay_neighbours(net, X, y, record, n_repeats=6)
    assert replay.findings == [], str(replay)


@pytest.mark.parametrize("n_public", [None, 1000])
def test_training_follows_from_public_numbers(n_public):
    # Theorem U6: steps of a net on all records are one Gaussian release.
    X, y = data(200)
    given = DPNeuralNetRegressor(
        epsilon=1.0,
        delta=DELTA,
        max_epochs=20,
        target_bound=3.0,
        n_public=n_public,
        random_state=0,
    )
    nets = [copy.deepcopy(given).fit(X, y), copy.deepcopy(given).fit(-9.0 * X, 5.0 - y)]
    assert nets[0].plan_ == nets[1].plan_
    assert nets[0].lr_ == nets[1].lr_ and nets[0].max_epochs_ == nets[1].max_epochs_ == 20
    size = n_public or 200
    signal = size * math.sqrt(20) / nets[0].plan_.noise_multiplier
    assert nets[0].lr_ == pytest.approx(0.05 * math.sqrt(signal / 1000) * math.sqrt(300 / 20))


def test_large_tables_are_trained_in_batches():
    # Theorem U6: steps of a net on all records are one Gaussian release.
    net = DPNeuralNetRegressor(epsilon=1.0, delta=1e-7)
    for size, batch in ((30_000, 10_000), (200_000, 20_000), (2_000_000, 30_000)):
        plan = net._settings_before_data(size).plan
        assert (plan.batch_size, plan.steps, plan.sampling) == (batch, 300, "poisson")
        assert plan.profile.epsilon(1e-7) <= 1.0
    whole = DPNeuralNetRegressor(epsilon=1.0, delta=1e-7, batch_size=1.0, max_epochs=300)
    # Drawing a tenth of the records for each step costs this much noise.
    for size, batch in ((30_000, 10_000), (300_000, 30_000)):
        noise = [one.noise_level(size) / share for one, share in ((net, batch), (whole, size))]
        assert 1.0 <= noise[0] / noise[1] < 1.05


def test_decay_spares_the_bias_of_the_output():
    # Theorem U6: without noise and gradients, the rest falls by the rates of all steps.
    X, y = data()
    steps, decay = 4, 0.5
    net = DPNeuralNetRegressor(
        start(), epsilon=np.inf, max_epochs=steps, lr=0.1, optimizer__weight_decay=decay
    )
    net.set_params(max_grad_norm=1e-20, optimizer__eps=1.0, random_state=0).fit(X, y)
    kept = math.prod(1.0 - decay * 0.1 * (1.0 - step / steps) for step in range(steps))
    slow = math.prod(
        1.0 - decay * 0.1 * math.sqrt(12 / 4) * (1.0 - step / steps) for step in range(steps)
    )
    factors = [slow, slow, kept, 1.0]
    for found, before, factor in zip(
        net.module_.parameters(), start().parameters(), factors, strict=True
    ):
        torch.testing.assert_close(found.detach(), factor * before.detach())


def test_settings_that_are_given_are_kept():
    net = DPNeuralNetRegressor(optimizer=torch.optim.SGD)
    plan = net._settings_before_data(5000).plan
    assert (plan.batch_size, plan.steps) == (256, math.ceil(10 * 5000 / 256))
    assert net.suggested_space(5000)["lr"][1] == pytest.approx(0.5 / 3.0)
    plan = DPNeuralNetRegressor(batch_size=100)._settings_before_data(5000).plan
    assert (plan.batch_size, plan.epochs) == (100, 10.0)
    plan = DPNeuralNetRegressor(max_epochs=7)._settings_before_data(5000).plan
    assert (plan.batch_size, plan.steps) == (5000, 7)
    X, y = data()
    short = DPNeuralNetRegressor(delta=1e-3, max_epochs=2, random_state=0, lr=0.25)
    assert short.fit(X, y).lr_ == 0.25
    assert short.module_.layers[1].out_features == 32
    assert short.set_params(module__hidden=(5, 4)).fit(X, y).module_.layers[1].out_features == 5


def test_tuning_on_fewer_records_keeps_the_plan():
    net = DPNeuralNetRegressor(epsilon=1.0, delta=1e-7)
    for size in (2000, 100_000):
        few = DPNeuralNetRegressor(
            epsilon=1.0, delta=1e-7, **net.tuning_parameters(size // 10, size)
        )
        plans = few._settings_before_data(size // 10).plan, net._settings_before_data(size).plan
        assert plans[0].rate == plans[1].rate and plans[0].steps == plans[1].steps
        assert plans[0].noise_multiplier == plans[1].noise_multiplier


def test_default_nets_are_trained_together_as_by_themselves():
    # Theorem U2, Theorem U6.
    X, y = data()
    nets = [
        DPNeuralNetRegressor(delta=1e-3, max_epochs=5, lr=lr, random_state=seed, target_bound=2.0)
        for seed, lr in enumerate(("auto", 0.02, 0.1))
    ]
    alone = [copy.deepcopy(net).set_params(grad_sample_mode="ghost").fit(X, y) for net in nets]
    for one, other in zip(DPNeuralNetRegressor.fit_many(nets, X, y), alone, strict=True):
        np.testing.assert_allclose(weights_of(one), weights_of(other), atol=1e-4)


def test_curve_is_learned_and_fits_can_be_stored():
    X, y = data(1500)
    net = DPNeuralNetRegressor(epsilon=2.0, delta=DELTA, target_bound=2.5, random_state=0)
    net.fit(X, y)
    assert net.score(X, y) > 0.8
    assert (pickle.loads(pickle.dumps(net)).predict(X) == net.predict(X)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_rule_for_classes_follows_from_public_numbers(n_classes):
    # Theorem U6: steps of a net on all records are one Gaussian release.
    found = []
    for size in (100, 2000, 8000, 200_000):
        net = DPNeuralNetClassifier(epsilon=1.0, delta=1e-6, classes=range(n_classes))
        settings = net._settings_before_data(size)
        plan = settings.plan
        assert (plan.steps, plan.batch_size) == (300, min(size, 10_000))
        assert plan.profile.epsilon(1e-6) <= 1.0
        signal = plan.batch_size * math.sqrt(300) / plan.noise_multiplier * 2.0 / n_classes
        assert settings.lr == pytest.approx(0.05 * min(1.0, max(0.5, math.sqrt(signal / 1000))))
        assert settings.max_grad_norm == pytest.approx(min(10.0, max(3.0, signal / 2500)))
        assert settings.width == (32 if signal >= 1000 else 120)
        space = net.suggested_space(size)
        assert space["lr"][:2] == ["auto", pytest.approx(settings.lr / 3.0)]
        assert space["max_grad_norm"][1] == pytest.approx(settings.max_grad_norm / 3.0)
        found.append((settings.lr, settings.max_grad_norm))
    assert found == sorted(found)
    given = DPNeuralNetClassifier(lr=0.1, max_grad_norm=2.0)._settings_before_data(2000)
    assert (given.lr, given.max_grad_norm, given.plan.steps) == (0.1, 2.0, 300)


@pytest.mark.parametrize("kind", [DPNeuralNetBinaryClassifier, DPNeuralNetClassifier])
def test_classifier_uses_the_rule(kind):
    X, y = data(800)
    labels = y > 0.0
    given = kind(classes=[False, True], epsilon=2.0, delta=DELTA, random_state=0)
    settings = given._settings_before_data(800)
    net = copy.deepcopy(given).fit(X, labels)
    assert (net.plan_, net.lr_) == (settings.plan, settings.lr)
    assert net.max_grad_norm_ == settings.max_grad_norm == 3.0
    assert net.module_.layers[1].out_features == settings.width == 120
    assert net.score(X, labels) > 0.8
    # Weights decay by public numbers, and by what is given.
    shift = math.sqrt(300) / net.plan_.noise_multiplier
    decay = min(0.1 * shift, 10.0 * X.shape[1] / (800 * shift))
    found = [group["weight_decay"] for group in net.optimizer_.param_groups]
    assert found == pytest.approx([decay, decay, 0.0])
    own = copy.deepcopy(given).set_params(optimizer__weight_decay=0.0).fit(X, labels)
    assert {group["weight_decay"] for group in own.optimizer_.param_groups} == {0.0}
    values = {"lr": net.lr_, "max_grad_norm": net.max_grad_norm_}
    other = copy.deepcopy(given).set_params(**values)
    together = kind.fit_many([copy.deepcopy(given), other], X, labels)
    np.testing.assert_allclose(*map(weights_of, together), atol=1e-4)


@pytest.mark.parametrize("kind", [DPNeuralNetBinaryClassifier, DPNeuralNetClassifier])
def test_a_module_of_the_users_own_is_trained_by_sgd(kind):
    settings = kind(MLP, epsilon=2.0, delta=DELTA)._settings_before_data(8000)
    same = kind(MLP, epsilon=2.0, delta=DELTA, optimizer=torch.optim.SGD)
    assert settings == same._settings_before_data(8000)
    assert (settings.plan.batch_size, settings.max_grad_norm) == (256, 1.0)


@pytest.mark.parametrize(
    ("name", "value"), [("optimizer", "adam"), ("batch_size", "all"), ("module", "mlp")]
)
def test_other_words_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be"):
        DPNeuralNetRegressor(**{name: value}).privacy_profile(100)


def test_linear_module_has_one_layer_to_slow():
    X, y = data()
    net = DPNeuralNetRegressor(LogisticHead, delta=1e-3, max_epochs=3, random_state=0).fit(X, y)
    assert [len(group["params"]) for group in net.optimizer_.param_groups if group["params"]] == [
        2
    ]
    assert net.optimizer_.param_groups[-1]["lr"] == pytest.approx(net.lr_ * math.sqrt(3.0))
