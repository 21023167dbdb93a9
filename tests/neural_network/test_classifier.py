"""Private nets for classification, as scikit-learn estimators and on handwritten digits."""

import warnings

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from skdptune.base import profile_of
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    LogisticHead,
    SmallCNN,
)
from skdptune.testing import replay_neighbours
from tests.tables import rare_class

DELTA = 1e-4
SGD = {"optimizer": torch.optim.SGD, "lr": 2.0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16.0, y, random_state=0)


@pytest.mark.parametrize(
    ("module", "settings", "least"),
    [
        ("auto", {}, 0.90),
        (SmallCNN(), {**SGD, "max_epochs": 20}, 0.80),
        (LogisticHead, {**SGD, "max_epochs": 20, "lr": 4.0}, 0.86),
        (MLP, {"optimizer": torch.optim.Adam, "max_epochs": 20, "lr": 0.01}, 0.84),
    ],
)
def test_digits_are_classified_at_epsilon_4(digits, module, settings, least):
    X, X_test, y, y_test = digits
    net = DPNeuralNetClassifier(module, epsilon=4.0, delta=DELTA, random_state=0, **settings).fit(
        X, y
    )
    assert net.privacy_.profile.epsilon(DELTA) <= 4.0
    assert net.score(X_test, y_test) > least


def plain_opacus(X, y, *, noise, lr, epochs, batch_size):
    """Train by Opacus as its tutorial does, and return the module."""
    module = MLP(hidden=(120,), input_shape=64, n_outputs=10)
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(X).float(), torch.from_numpy(y))
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch_size)
    module, optimizer, loader = PrivacyEngine().make_private(
        module=module,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=1.0,
    )
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            criterion(module(inputs), targets).backward()
            optimizer.step()
    return module


def test_no_worse_than_plain_opacus(digits):
    X, X_test, y, y_test = digits
    ours, theirs = [], []
    for seed in range(2):
        net = DPNeuralNetClassifier(
            epsilon=3.0, delta=DELTA, max_epochs=5, batch_size=128, random_state=seed, **SGD
        ).fit(X, y)
        ours.append(net.score(X_test, y_test))
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = plain_opacus(
                X, y, noise=net.plan_.noise_multiplier, lr=2.0, epochs=5, batch_size=128
            )
        found = module(torch.from_numpy(X_test).float()).argmax(dim=1).numpy()
        theirs.append((found == y_test).mean())
    assert np.mean(ours) > np.mean(theirs) - 0.03
    assert np.mean(theirs) > 0.5


@pytest.mark.parametrize("kind", [DPNeuralNetClassifier, DPNeuralNetBinaryClassifier])
@pytest.mark.parametrize("labels", [["no", "yes"], [3, -1], [False, True], [1.0, 2.0]])
def test_predictions_are_the_given_labels(kind, labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    net = kind(LogisticHead, delta=DELTA, epsilon=5.0, random_state=0).fit(X, y)
    assert net.score(X, y) > 0.9
    assert net.predict(X).dtype == net.classes_.dtype
    np.testing.assert_array_equal(net.classes_, np.unique(labels))
    np.testing.assert_allclose(net.predict_proba(X).sum(axis=1), 1.0, atol=1e-5)


def test_bad_labels_are_refused():
    X = np.zeros((20, 2))
    with pytest.raises(ValueError, match="at least two classes"):
        DPNeuralNetClassifier(delta=1e-2).fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="classes must be at least two different labels"):
        DPNeuralNetClassifier(classes=[1, 1]).privacy_profile(100)


# Class weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DPNeuralNetClassifier, DPNeuralNetBinaryClassifier])
@pytest.mark.parametrize("max_grad_norm", [0.05, 1.0])
def test_class_weights_find_more_of_a_rare_class(kind, max_grad_norm):
    # Also where all gradients are clipped.
    X, y = rare_class(2000)
    rate = 0.5 / max_grad_norm
    settings = {"max_grad_norm": max_grad_norm, "optimizer": torch.optim.SGD, "lr": rate}
    settings |= {"classes": [0, 1], "random_state": 0}
    net = kind(LogisticHead, epsilon=8.0, delta=DELTA, **settings).fit(X, y)
    weighted = kind(LogisticHead, epsilon=8.0, delta=DELTA, class_weight={1: 8.0}, **settings).fit(
        X, y
    )
    before, after = net.predict(X), weighted.predict(X)
    assert before[y == 1].mean() < 0.6
    assert after[y == 1].mean() > before[y == 1].mean() + 0.2
    assert weighted.privacy_.profile == net.privacy_.profile
    (more,) = set(weighted.privacy_.assumptions) - set(net.privacy_.assumptions)
    assert more == "class weights are public, not computed from the data"
    assert profile_of(weighted, 2000, 3) == profile_of(net, 2000, 3)
    assert clone(weighted).get_params()["class_weight"] == {1: 8.0}


def test_weighted_nets_come_out_alike_together_and_alone():
    # Theorem U2: nets trained together are as if trained one by one.
    X, y = rare_class(600)
    nets = [
        DPNeuralNetClassifier(
            LogisticHead, epsilon=4.0, delta=DELTA, class_weight=weights, random_state=seed
        )
        for seed, weights in enumerate([None, {1: 8.0}, {0: 1.0, 1: 3.0}])
    ]
    alone = [clone(net).fit(X, y) for net in nets]
    for one, other in zip(alone, DPNeuralNetClassifier.fit_many(nets, X, y), strict=True):
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "mode", "label"),
    [
        (DPNeuralNetClassifier, "ghost", 1),
        (DPNeuralNetBinaryClassifier, "hooks", 1),
        (DPNeuralNetClassifier, "hooks", "none of these"),
    ],
)
def test_weighted_neighbours_are_not_told_apart(kind, mode, label):
    # Theorem U1, Theorem M0.
    X, y = rare_class(127)
    y[:9] = 1
    net = kind(
        LogisticHead,
        delta=1e-3,
        max_epochs=3,
        batch_size=40,
        classes=[0, 1],
        class_weight={0: 0.1, 1: 3.0},
        grad_sample_mode=mode,
    )
    replay = replay_neighbours(net, X, y, ([100.0, -100.0, 0.0], label), n_repeats=6)
    assert replay.findings == [], str(replay)


@pytest.mark.parametrize("given", ["balanced", {}, {2: 1.0}, {0: 0.0}], ids=str)
def test_class_weights_that_are_not_public_numbers_are_refused(given):
    X, y = rare_class(100)
    net = DPNeuralNetClassifier(LogisticHead, class_weight=given)
    with pytest.raises((TypeError, ValueError), match="^class_weight"):
        net.fit(X, y)
    with pytest.raises((TypeError, ValueError), match="^class_weight"):
        net.set_params(classes=[0, 1]).privacy_profile(100)
