"""What all private nets promise: the price, the steps, the batches, what is not shown."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from opacus.accountants import PRVAccountant
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping, LRScheduler
from torch import nn

from skdptune.base import PrivacyWarning, privacy_of, profile_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.neural_network import DPNeuralNetClassifier, _private_net
from skdptune.neural_network._noisy_steps import GRAD_SAMPLE_MODES, NotPrivateError
from tests.neural_network.nets import DELTA, KINDS, data, net_of, weights_of


@pytest.fixture
def batches(monkeypatch):
    """Return the inputs of every step that is taken."""
    seen = []
    step = _private_net.NoisySteps.step

    def recorded(engine, inputs, targets):
        seen.append(inputs.clone())
        step(engine, inputs, targets)

    monkeypatch.setattr(_private_net.NoisySteps, "step", recorded)
    return seen


class CountingSGD(torch.optim.SGD):
    """Counts its steps, over all optimizers."""

    steps = 0

    def step(self, closure=None):
        type(self).steps += 1
        return super().step(closure)


# Price ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", [True, False])
def test_price_equals_what_the_fit_reports(kind, sampling):
    X, y = data()
    net = net_of(kind, epsilon=0.7, poisson_sampling=sampling)
    cost_of = profile_of(net, *X.shape)
    net.fit(X, y)
    assert privacy_of(net).profile == net.privacy_.profile == cost_of
    assert 0.99 * 0.7 <= cost_of.epsilon(DELTA) <= 0.7
    assert net.privacy_.epsilon == 0.7
    assert net.privacy_.delta == DELTA


@pytest.mark.parametrize("batch_size", [64, 0.05, 5000])
@pytest.mark.parametrize("epochs", [1, 7.5])
def test_plan_is_that_of_private_logistic_regression(batch_size, epochs):
    linear = DPLogisticRegression(
        1.5, 1e-5, solver="sgd", epochs=epochs, batch_size=batch_size, max_grad_norm=0.5
    )
    net = net_of(epsilon=1.5, delta=1e-5, max_epochs=epochs, batch_size=batch_size)
    assert net.privacy_profile(3000) == linear.privacy_profile(3000, 4)
    assert net.noise_level(3000) == linear.noise_level(3000, 4)


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 1.0, 1000), (0.05, 2.0, 400)])
def test_price_agrees_with_opacus_accountant(rate, noise, steps):
    # Theorem U1.
    accountant = PRVAccountant()
    accountant.history = [(noise, rate, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = accountant.get_epsilon(1e-5)
    net = net_of(noise_multiplier=noise, batch_size=rate, max_epochs=steps * rate)
    assert net.privacy_profile(10_000).epsilon(1e-5) == pytest.approx(theirs, rel=0.02)


@pytest.mark.parametrize("n_public", [200, 450])
def test_public_constant_stands_for_the_number_of_records(n_public, batches):
    X, y = data()
    net = net_of(n_public=n_public, epsilon=1.0, classes=[0, 1]).fit(X, y)
    assert net.plan_.n_samples == n_public
    assert net.plan_.rate == 50 / n_public
    assert len(batches) == net.plan_.steps == 2 * n_public // 50
    assert net.privacy_.profile == net.privacy_profile(17)


def test_large_delta_warns():
    X, y = data(50)
    with pytest.warns(PrivacyWarning, match="at least 1/n_samples"):
        net_of(delta=0.05).fit(X, y)


# Steps and batches ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "batch_size", "epochs", "steps"),
    [(300, 50, 2, 12), (300, 70, 1, 5), (300, 0.1, 1.5, 15), (30, 50, 3, 3), (300, 300, 0.2, 1)],
)
@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_the_optimizer_takes_exactly_the_planned_steps(size, batch_size, epochs, steps, mode):
    X, y = data(size)
    CountingSGD.steps = 0
    net = net_of(
        optimizer=CountingSGD,
        batch_size=batch_size,
        max_epochs=epochs,
        grad_sample_mode=mode,
        max_physical_batch_size=9,
    ).fit(X, y)
    assert CountingSGD.steps == net.plan_.steps == steps
    assert len(net.history_) == max(1, int(np.ceil(epochs)))


def test_batches_are_drawn_record_by_record(batches):
    X, y = data()
    net_of(max_epochs=200, batch_size=60).fit(X, y)
    assert len(batches) == 1000
    sizes = np.array([len(batch) for batch in batches])
    # Binomial of 300 records at rate 0.2.
    assert abs(sizes.mean() - 60.0) < 5 * np.sqrt(48 / 1000)
    assert sizes.var() == pytest.approx(48.0, rel=0.25)
    first = np.array([float(X[0].astype(np.float32)[0]) in batch[:, 0] for batch in batches])
    assert abs(first.mean() - 0.2) < 5 * np.sqrt(0.16 / 1000)


def test_batches_of_fixed_size(batches):
    X, y = data()
    net_of(poisson_sampling=False, batch_size=70, max_epochs=3).fit(X, y)
    assert {len(batch) for batch in batches} == {70}
    assert all(len(np.unique(batch[:, 0])) == 70 for batch in batches)


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_empty_batches_are_steps_too(mode, batches):
    X, y = data()
    net = net_of(batch_size=1, max_epochs=0.1, grad_sample_mode=mode, epsilon=None)
    net.set_params(noise_multiplier=1.0).fit(X, y)
    assert 0 in {len(batch) for batch in batches}
    assert len(batches) == net.plan_.steps == 30


@pytest.mark.parametrize("kind", KINDS)
def test_no_records_at_all_are_a_fit_where_the_number_is_secret(kind):
    X, y = data()
    public = {"classes": [0, 1]} if kind is DPNeuralNetClassifier else {}
    net = net_of(kind, n_public=300, **public).fit(X[:0], y[:0])
    assert net.predict(X).shape == (300,)


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_law_of_weights_that_saw_no_records(mode):
    """Without records a net is a sum of noise, whose size follows from the plan alone."""
    module = nn.Linear(50, 40, bias=False)
    nn.init.zeros_(module.weight)
    net = net_of(
        module=module,
        classes=list(range(40)),
        n_public=300,
        max_grad_norm=0.3,
        lr=0.7,
        grad_sample_mode=mode,
    ).fit(np.zeros((0, 50)), np.zeros(0, dtype=int))
    step = 0.7 * net.plan_.noise_multiplier * 0.3 / 50
    found = weights_of(net) / (step * np.sqrt(net.plan_.steps))
    assert stats.kstest(found, "norm").pvalue > 1e-3
    assert found.std() == pytest.approx(1.0, abs=4.0 / np.sqrt(2 * 2000))


def test_virtual_steps_change_nothing_but_the_memory():
    X, y = data()
    whole = net_of(epsilon=np.inf).fit(X, y)
    parts = net_of(epsilon=np.inf, max_physical_batch_size=7).fit(X, y)
    np.testing.assert_allclose(weights_of(whole), weights_of(parts), atol=1e-5)


@pytest.mark.parametrize("mode", ["functorch", "ghost"])
def test_modes_agree_without_noise(mode):
    X, y = data()
    hooks = net_of(epsilon=np.inf).fit(X, y)
    other = net_of(epsilon=np.inf, grad_sample_mode=mode).fit(X, y)
    np.testing.assert_allclose(weights_of(hooks), weights_of(other), atol=1e-5)


# Randomness -------------------------------------------------------------------------------


def test_seed_repeats_a_fit_and_is_told():
    X, y = data()
    first, second = (net_of(random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(weights_of(first), weights_of(second))
    assert any("drawn from a seed" in sentence for sentence in first.privacy_.assumptions)


def test_clones_and_repeated_fits_draw_fresh_noise():
    X, y = data()
    net = net_of(random_state=None)
    found = []
    for other in (net, clone(net), net):
        # Whatever seeds torch's own generator must not seed the noise.
        torch.manual_seed(0)
        np.random.seed(0)
        found.append(weights_of(other.fit(X, y)))
    assert not np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[2])
    assert not any("seed" in sentence for sentence in net.privacy_.assumptions)


def test_generators_of_the_caller_are_not_moved():
    X, y = data()
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    net_of().fit(X, y)
    assert torch.equal(torch.rand(2), wanted)


# What is not shown ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_nothing_uncharged_is_kept(mode):
    X, y = data()
    net = net_of(grad_sample_mode=mode).fit(X, y)
    assert isinstance(net, NeuralNet)
    assert [sorted(epoch) for epoch in net.history_] == [["batches", "epoch"]] * 2
    assert all(batch == {} for epoch in net.history_ for batch in epoch["batches"])
    for parameter in net.module_.parameters():
        assert vars(parameter) == {}
        assert parameter.grad is None
    restored = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(restored.predict(X), net.predict(X))
    assert restored.privacy_.profile == net.privacy_.profile
    assert restored._engine is None


# Training stops early -----------------------------------------------------------------------


class Stopping(Callback):
    """Stops after so many steps, as a person at the keyboard would."""

    data_independent = True

    def __init__(self, steps=3):
        self.steps = steps

    def on_batch_end(self, net, batch=None, training=None, **others):
        assert batch is None
        if len(net.history_[-1]["batches"]) == self.steps:
            raise KeyboardInterrupt


def test_training_that_stops_early_costs_all_and_says_so():
    X, y = data()
    CountingSGD.steps = 0
    net = net_of(callbacks=[Stopping()], optimizer=CountingSGD).fit(X, y)
    assert CountingSGD.steps == 3
    assert net.privacy_.profile == net.privacy_profile(300)
    assert "training stopped after 3 of 12 steps; the price is that of all" in (
        net.privacy_.assumptions
    )


@pytest.mark.parametrize("every", ["epoch", "batch"])
def test_schedule_of_the_learning_rate(every):
    X, y = data()
    schedule = LRScheduler("StepLR", step_size=1, gamma=0.5, step_every=every)
    net = net_of(callbacks=[schedule]).fit(X, y)
    steps = 2 if every == "epoch" else 12
    assert net.optimizer_.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**steps)


# What is refused ----------------------------------------------------------------------------


def test_wrong_kinds_are_refused():
    with pytest.raises(TypeError, match="poisson_sampling must be a bool"):
        net_of(poisson_sampling="yes").privacy_profile(100)
    with pytest.raises(TypeError, match="sample_weight is not supported"):
        net_of().fit(*data(), sample_weight=np.ones(300))
    with pytest.raises(TypeError, match=r"X and y alone; got \['epochs'\]"):
        net_of().fit(*data(), epochs=3)


def test_callback_put_in_place_of_another_is_refused():
    net = net_of(callbacks=[("own", Stopping())], callbacks__own=EarlyStopping())
    with pytest.raises(ValueError, match="callbacks must not depend on the data"):
        net.fit(*data())


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_engine_that_does_not_attach_is_noticed_and_leaves_no_weights(monkeypatch, mode):
    from skdptune.neural_network import _noisy_steps

    class Plain(_noisy_steps.DPOptimizer):
        """Passes Opacus's place, and steps on bare gradients."""

        def step(self, closure=None):
            return self.original_optimizer.step()

    monkeypatch.setattr(_noisy_steps, "DPOptimizer", Plain)
    monkeypatch.setattr(_noisy_steps, "DPOptimizerFastGradientClipping", Plain)
    net = net_of(grad_sample_mode=mode)
    with pytest.raises(NotPrivateError, match="one noisy step"):
        net.fit(*data())
    assert not weights_of(net).any()
    with pytest.raises(NotFittedError):
        net.predict(data()[0])


def test_a_fit_that_fails_leaves_no_report_of_an_earlier_one():
    net = net_of().fit(*data())
    net.set_params(lr=3e38, epsilon=0.01)
    with pytest.raises(FloatingPointError, match="diverged"):
        net.fit(*data())
    assert not hasattr(net, "privacy_")
    with pytest.raises(NotFittedError):
        net.predict(data()[0])


@pytest.mark.parametrize("kind", KINDS)
def test_training_that_diverges_is_an_error(kind):
    with pytest.raises(FloatingPointError, match="The training diverged: lower lr"):
        net_of(kind, lr=1e38, max_grad_norm=100.0).fit(*data())


# scikit-learn -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(np.float32),
        lambda X: pd.DataFrame(X),
        lambda X: torch.from_numpy(X),
        lambda X: torch.from_numpy(X).float().requires_grad_(),
        lambda X: X.tolist(),
        np.asfortranarray,
    ],
)
def test_kinds_of_input_are_alike(kind, convert):
    X, y = data()
    wanted = net_of(kind).fit(X, y)
    targets = torch.from_numpy(y) if isinstance(convert(X), torch.Tensor) else y
    found = net_of(kind).fit(convert(X), targets)
    np.testing.assert_array_equal(weights_of(found), weights_of(wanted))
    np.testing.assert_array_equal(found.predict(convert(X)), wanted.predict(X))


@pytest.mark.gpu
@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_fit_on_a_gpu(mode):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    X, y = data(3000)
    net = net_of(device="cuda", grad_sample_mode=mode, max_epochs=10, epsilon=8.0).fit(X, y)
    assert next(net.module_.parameters()).is_cuda
    assert net.score(X, y) > 0.8
    on_cpu = net_of(epsilon=np.inf, random_state=1).fit(X, y)
    on_gpu = net_of(epsilon=np.inf, random_state=1, device="cuda").fit(X, y)
    np.testing.assert_allclose(on_gpu.predict_proba(X), on_cpu.predict_proba(X), atol=1e-3)
