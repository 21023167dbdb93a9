"""Private nets for regression, as scikit-learn estimators."""

import numpy as np
import pytest
from torch import nn

from skdptune.neural_network import MLP, DPNeuralNetRegressor, LogisticHead

DELTA = 1e-4


def data(size=2000):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(size, 2))
    return X, X @ [1.0, -0.5] + 0.3


@pytest.mark.parametrize("module", [LogisticHead, MLP(hidden=(10,))])
def test_linear_function_is_learned(module):
    X, y = data()
    net = DPNeuralNetRegressor(module, epsilon=3.0, delta=DELTA, lr=0.3, random_state=0).fit(X, y)
    assert net.privacy_.profile.epsilon(DELTA) <= 3.0
    assert net.score(X, y) > 0.9


def test_several_targets():
    X, y = data()
    Y = np.column_stack([y, -y, 0.5 * y])
    net = DPNeuralNetRegressor(LogisticHead, epsilon=5.0, delta=DELTA, lr=0.5, random_state=0)
    assert net.fit(X, Y).predict(X).shape == Y.shape
    assert net.score(X, Y) > 0.8


def test_column_of_targets_gives_a_column_of_predictions():
    X, y = data(200)
    net = DPNeuralNetRegressor(delta=1e-3, random_state=0)
    assert net.fit(X, y[:, None]).predict(X).shape == (200, 1)
    assert net.fit(X, y).predict(X).shape == (200,)


class Squeezed(nn.Linear):
    """Returns one number per record, without an axis for it."""

    def forward(self, inputs):
        return super().forward(inputs)[:, 0]


def test_outputs_without_an_axis_are_not_broadcast_over_records():
    X, y = data()
    net = DPNeuralNetRegressor(
        Squeezed, module__in_features=2, module__out_features=1, epsilon=3.0, delta=DELTA, lr=0.3
    )
    assert net.set_params(random_state=0).fit(X, y).score(X, y) > 0.9


def test_wrong_number_of_outputs_is_refused():
    X, y = data(200)
    net = DPNeuralNetRegressor(LogisticHead(n_outputs=3), delta=1e-3)
    with pytest.raises(ValueError, match=r"must return 1 outputs per record; got shape \(3,\)"):
        net.fit(X, y)
