"""Small data and small nets, for tests of all private nets."""

import numpy as np
import torch

from skdptune.neural_network import MLP, DPNeuralNetClassifier, DPNeuralNetRegressor

DELTA = 1e-4
MODES = ["hooks", "functorch", "ghost"]
KINDS = [DPNeuralNetClassifier, DPNeuralNetRegressor]


def data(size=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(size, 4))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def net_of(kind=DPNeuralNetClassifier, **settings):
    given = {"delta": DELTA, "max_epochs": 2, "batch_size": 50, "random_state": 0, "lr": 0.1}
    if kind is not DPNeuralNetRegressor:
        given["optimizer"] = torch.optim.SGD
    return kind(**{**given, "module": MLP(hidden=(5,)), **settings})


def weights_of(net):
    return np.concatenate([p.detach().numpy().ravel() for p in net.module_.parameters()])
