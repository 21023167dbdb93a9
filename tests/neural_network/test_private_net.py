"""What all private nets promise: the cost, fresh noise, and what is not published."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from opacus.accountants import PRVAccountant
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from skorch import NeuralNet
from torch import nn

from skdptune.base import PrivacyWarning, privacy_of, profile_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
)
from skdptune.neural_network._gradient_noise import GradientNoise
from skdptune.neural_network._noisy_steps import GRAD_SAMPLE_MODES
from tests.base.nasty_records import (
    EXTREME,
    FORMS,
    IMPROPER,
    InterruptingGenerator,
    as_column,
    as_list,
    nasty_rows,
    with_record,
)
from tests.neural_network.nets import DELTA, KINDS, data, net_of, weights_of

# Privacy cost ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", ["poisson", "fixed", "allocation"])
def test_cost_equals_the_report_of_the_fit(kind, sampling):
    X, y = data()
    net = net_of(kind, epsilon=0.7, sampling=sampling)
    profile = profile_of(net, *X.shape)
    net.fit(X, y)
    assert privacy_of(net).profile == net.privacy_.profile == profile
    assert 0.99 * 0.7 <= profile.epsilon(DELTA) <= 0.7
    assert net.privacy_.epsilon == 0.7
    assert net.privacy_.delta == DELTA


@pytest.mark.parametrize(("batch_size", "epochs"), [(64, 1), (0.05, 7.5), (5000, 7.5)])
def test_plan_is_that_of_private_logistic_regression(batch_size, epochs):
    linear = DPLogisticRegression(
        1.5, 1e-5, solver="sgd", epochs=epochs, batch_size=batch_size, max_grad_norm=0.5
    )
    net = net_of(epsilon=1.5, delta=1e-5, max_epochs=epochs, batch_size=batch_size)
    assert net.privacy_profile(3000) == linear.privacy_profile(3000, 4)
    assert net.noise_level(3000) == linear.noise_level(3000, 4)


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 1.0, 1000), (0.05, 2.0, 400)])
def test_cost_agrees_with_the_accountant_of_opacus(rate, noise, steps):
    # Theorem U1.
    accountant = PRVAccountant()
    accountant.history = [(noise, rate, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = accountant.get_epsilon(1e-5)
    net = net_of(noise_multiplier=noise, batch_size=rate, max_epochs=steps * rate)
    assert net.privacy_profile(10_000).epsilon(1e-5) == pytest.approx(theirs, rel=0.02)


@pytest.mark.parametrize("n_public", [200, 450])
def test_public_constant_replaces_the_number_of_records(n_public, batches):
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


# Randomness ------------------------------------------------------------------------------


def test_seed_repeats_a_fit_and_is_reported():
    X, y = data()
    first, second = (net_of(random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(weights_of(first), weights_of(second))
    assert any("drawn from a seed" in sentence for sentence in first.privacy_.assumptions)


def test_clones_and_repeated_fits_draw_fresh_noise():
    X, y = data()
    net = net_of(random_state=None)
    found = []
    for other in (net, clone(net), net):
        # What seeds torch's own generator must not seed the noise.
        torch.manual_seed(0)
        np.random.seed(0)
        found.append(weights_of(other.fit(X, y)))
    assert not np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[2])
    assert not any("seed" in sentence for sentence in net.privacy_.assumptions)


def test_global_generators_are_restored():
    X, y = data()
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    net_of().fit(X, y)
    assert torch.equal(torch.rand(2), wanted)


# What is not published -------------------------------------------------------------------


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_nothing_without_a_cost_is_kept(mode):
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


# What is refused -------------------------------------------------------------------------


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="sample_weight is not supported"):
        net_of().fit(*data(), sample_weight=np.ones(300))
    with pytest.raises(TypeError, match=r"must be X and y; got \['epochs'\]"):
        net_of().fit(*data(), epochs=3)


def test_a_fit_that_fails_leaves_no_report_of_an_earlier_one():
    net = net_of().fit(*data())
    net.set_params(lr=3e38, epsilon=0.01)
    with pytest.raises(FloatingPointError, match="diverged"):
        net.fit(*data())
    assert not hasattr(net, "privacy_") and not hasattr(net, "max_epochs_")
    with pytest.raises(NotFittedError):
        net.predict(data()[0])


@pytest.mark.parametrize("kind", KINDS)
def test_training_that_diverges_is_an_error(kind):
    with pytest.raises(FloatingPointError, match="The training diverged: lower lr"):
        net_of(kind, lr=1e38, max_grad_norm=100.0).fit(*data())


# scikit-learn ----------------------------------------------------------------------------


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
def test_types_of_input_give_the_same_net(kind, convert):
    X, y = data()
    wanted = net_of(kind).fit(X, y)
    targets = torch.from_numpy(y) if isinstance(convert(X), torch.Tensor) else y
    found = net_of(kind).fit(convert(X), targets)
    np.testing.assert_array_equal(weights_of(found), weights_of(wanted))
    np.testing.assert_array_equal(found.predict(convert(X)), wanted.predict(X))


# Whatever a record holds --------------------------------------------------------------------


ROWS = np.random.default_rng(4).normal(size=(12, 3))
LABELS = np.resize([0, 1], 12)
STRANGE_LABELS = [7, -1, 0.5, "maybe", *IMPROPER]
TARGETS = [*IMPROPER, *EXTREME, 0.5]
# Every public class, with what its records may have for a target.
NETS = {
    "classifier": (DPNeuralNetClassifier, {"classes": [0, 1]}, STRANGE_LABELS),
    "binary": (DPNeuralNetBinaryClassifier, {"classes": [0, 1]}, STRANGE_LABELS),
    "regressor": (DPNeuralNetRegressor, {}, TARGETS),
}


def any_net(name, **settings):
    kind, more, _ = NETS[name]
    return net_of(kind, module=MLP(hidden=(4,)), n_public=100, **more, **settings)


def reaching(net, X, y):
    """Return the records and targets that are trained on."""
    run = net._training_run(X, y)
    return run.X.numpy(), run.targets.numpy(), run.plan, run.sizes


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETS)
def test_a_record_changes_its_own_row_alone(name, form):
    # Theorem R5.
    net = any_net(name)
    before = reaching(net, FORMS[form](ROWS), LABELS)
    strange = NETS[name][2]
    label = 1
    records = [(row, label) for row in nasty_rows(form, 3)]
    records += [([1.0, 1.0, 1.0], target) for target in strange]
    for row, target in records:
        after = reaching(net, *with_record(ROWS, LABELS, row, target, form))
        for old, new in zip(before[:2], after[:2], strict=True):
            np.testing.assert_array_equal(new[:-1], old)
            assert np.isfinite(new).all()
        assert before[2:] == after[2:]
        is_strange = strange is STRANGE_LABELS and target is not label
        if is_strange or any(value is one for value in (*row, target) for one in IMPROPER):
            assert not after[0][-1].any()
            assert not after[1][-1].any()


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
@pytest.mark.parametrize("name", NETS)
def test_no_record_makes_a_fit_fail(name, mode):
    # Theorem R5.
    for form in ("objects", "doubles"):
        rows = [*as_list(ROWS), *nasty_rows(form, 3), *as_list(np.full((3, 3), 3e38))]
        targets = np.resize(as_column([*LABELS, *NETS[name][2]]), len(rows))
        net = any_net(name, grad_sample_mode=mode, batch_size=30)
        net.fit(FORMS[form](rows), targets)
        assert np.isfinite(weights_of(net)).all()
        assert np.isfinite(net.predict(ROWS)).all()


class Choosy(nn.Module):
    """Raises on batches with a large number in their first column."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, X):
        if bool((X.detach()[:, 0] > 50.0).any()):
            raise RuntimeError("a record's text")
        return self.layer(X)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "auto"])
def test_a_record_that_the_module_refuses_trains_nothing(mode):
    # Theorem U1.
    X, y = data()
    X[7, 0], found = 60.0, []
    for others in (-1.0, 5.0):
        X[7, 1:] = others
        net = net_of(module=Choosy, grad_sample_mode=mode)
        found.append(weights_of(net.fit(X, y)))
    np.testing.assert_array_equal(*found)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
def test_no_record_makes_a_fit_of_many_fail():
    # Theorem R5.
    rows = [*as_list(ROWS), *nasty_rows("objects", 3), *as_list(np.full((3, 3), 3e38))]
    for name, (kind, _, strange) in NETS.items():
        targets = np.resize(as_column([*LABELS, *strange]), len(rows))
        nets = [any_net(name, random_state=seed, batch_size=30) for seed in range(3)]
        for net in kind.fit_many(nets, FORMS["objects"](rows), targets):
            assert np.isfinite(weights_of(net)).all()


def test_several_targets_are_zeros_together():
    y = np.array([[1.0, 2.0], [np.nan, 1.0], [1e200, 1.0]])
    rows, targets, _, sizes = reaching(any_net("regressor"), np.ones((3, 2)), y)
    np.testing.assert_array_equal(rows, [[1, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(targets, [[1, 2], [0, 0], [0, 0]])
    assert sizes["n_outputs"] == 2


@pytest.mark.parametrize("name", NETS)
def test_an_interrupted_fit_leaves_nothing_of_the_data(name):
    left = []
    for rows in (ROWS, -3.0 * ROWS):
        net = any_net(name, random_state=InterruptingGenerator())
        with pytest.raises(KeyboardInterrupt):
            net.fit(rows, LABELS)
        with pytest.raises(NotFittedError):
            net.predict(rows)
        left.append(sorted(vars(net)))
    assert left[0] == left[1]
    assert "module_" not in left[0]


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
@pytest.mark.parametrize("name", NETS)
def test_a_step_interrupted_before_its_noise_leaves_nothing_of_the_data(name, mode, monkeypatch):
    def added_to(self, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(GradientNoise, "added_to", added_to)
    left = []
    for rows in (ROWS, -3.0 * ROWS):
        net = any_net(name, grad_sample_mode=mode, batch_size=100).fit(rows, LABELS)
        assert all(not vars(p) and p.grad is None for p in net.module_.parameters())
        left.append(weights_of(net))
    np.testing.assert_array_equal(*left)
