"""Private nets for regression, as scikit-learn estimators."""

import numpy as np
import pytest
import torch
from torch import nn

from skdptune.ledger import PrivacyLedger
from skdptune.neural_network import MLP, DPNeuralNetRegressor, LogisticHead
from skdptune.testing import replay_neighbours

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


# The public range of targets ---------------------------------------------------------------------

FAR = (995.0, 1005.0)
# As long a training as tells wrong targets from right ones.
SHORT = {"epsilon": 8.0, "delta": DELTA, "lr": 0.3, "max_epochs": 4, "random_state": 0}


def far_net(**settings):
    return DPNeuralNetRegressor(LogisticHead, **{"target_bound": FAR, **SHORT, **settings})


def test_range_is_a_public_map_of_each_target():
    # Theorem U4: moving a target in its public range costs nothing.
    X, y = data()
    plain = far_net(target_bound=None).fit(X, 0.5 * y)
    far = far_net().fit(X, 1000.0 + y)
    assert far.predict(X) == pytest.approx(1000.0 + 2.0 * plain.predict(X), abs=1e-4)
    assert "targets are clipped to [995, 1005]" in far.privacy_.assumptions
    assert far.privacy_.profile == plain.privacy_.profile


def test_bound_on_absolute_values_is_an_even_range():
    # Theorem U4: moving a target in its public range costs nothing.
    X, y = data(200)
    one, other = (far_net(target_bound=bound).fit(X, y) for bound in (2.0, (-2.0, 2.0)))
    assert (one.predict(X) == other.predict(X)).all()


def test_far_and_improper_targets_count_as_ends_of_the_range():
    # Theorem U4. An improper record is one of zeros, with the target 0 before it is clipped.
    X, y = data(200)
    X[:3] = 0.0
    wild, tame = 1000.0 + y, 1000.0 + y
    wild[:6] = np.nan, np.inf, -np.inf, 1e300, -1e300, 1005.1
    tame[:6] = 995.0, 995.0, 995.0, 1005.0, 995.0, 1005.0
    nets = [far_net().fit(X, targets) for targets in (wild, tame)]
    assert (nets[0].predict(X) == nets[1].predict(X)).all()


def test_each_target_has_its_range():
    # Theorem U4. Each target is mapped as if it were the only one.
    X, y = data(200)
    two = np.column_stack([1000.0 + y, -7.0 + 0.1 * y])
    net = far_net(target_bound=[(995, 1005), (-7.5, -6.5)]).fit(X, two)
    same = far_net(target_bound=(-5, 5)).fit(X, np.column_stack([y, y]))
    units = (net.predict(X) - [1000.0, -7.0]) / [1.0, 0.1]
    assert units == pytest.approx(same.predict(X), abs=1e-3)
    assert "targets are clipped to [995, 1005], [-7.5, -6.5]" in net.privacy_.assumptions
    ledger = PrivacyLedger(":memory:", "a", epsilon=9.0, delta=1e-3)
    with pytest.raises(ValueError, match="one range, or one for each target; got 2"):
        far_net(target_bound=[(0, 1), (0, 1)], ledger=ledger).fit(X, y)
    assert ledger.history() == []


def test_default_net_learns_targets_far_from_zero():
    X, y = data()
    settings = {"epsilon": 3.0, "delta": DELTA, "random_state": 0}
    ranged = DPNeuralNetRegressor(target_bound=(10, 14), **settings)
    assert ranged.fit(X, 12.0 + y).score(X, 12.0 + y) > 0.4
    plain = DPNeuralNetRegressor(optimizer=torch.optim.SGD, **settings)
    assert plain.fit(X, 12.0 + y).score(X, 12.0 + y) < 0.0


def test_short_range_far_away_keeps_its_digits():
    X, y = data()
    net = far_net(target_bound=(1e9 - 2.0, 1e9 + 2.0), max_epochs="auto").fit(X, 1e9 + y)
    assert net.score(X, 1e9 + y) > 0.8


def test_range_at_a_fit_is_that_of_its_predictions():
    X, y = data(200)
    net = far_net().fit(X, 1000.0 + y)
    before = net.predict(X)
    assert (net.set_params(target_bound=None).predict(X) == before).all()


def test_predictions_stay_in_the_range():
    # Theorem U4. Far from the records a net predicts anything.
    X, y = data(200)
    net = far_net().fit(X, 1000.0 + y)
    for far in (-1e6, 1e6):
        found = net.predict(np.full((5, X.shape[1]), far))
        assert ((found >= FAR[0]) & (found <= FAR[1])).all()
    assert {*np.concatenate([net.predict(s * 1e6 * np.eye(X.shape[1])) for s in (-1, 1)])} & {*FAR}


def test_nets_of_other_ranges_are_trained_together_as_by_themselves():
    # Theorem U2, Theorem U4.
    X, y = data(300)
    ranges = (FAR, (990.0, 1020.0), None)
    together = DPNeuralNetRegressor.fit_many(
        [far_net(target_bound=one) for one in ranges], X, 1000.0 + y
    )
    for one, net in zip(ranges, together, strict=True):
        alone = far_net(target_bound=one).fit(X, 1000.0 + y)
        assert net.predict(X) == pytest.approx(alone.predict(X), rel=1e-5)


@pytest.mark.parametrize("target", [1e9, np.nan, -1e9], ids=str)
def test_neighbours_with_far_targets_are_not_told_apart(target):
    # Theorem U4, Theorem U1.
    X, y = data(127)
    net = far_net(delta=1e-3, epsilon=1.0, max_epochs=3, batch_size=40)
    replay = replay_neighbours(net, X, 1000.0 + y, ([1.0, -1.0], target), n_repeats=6)
    assert replay.findings == [], str(replay)


def test_ranges_that_are_none_are_refused():
    for bound in ((2.0, 1.0), (0.0, 1.0, 2.0), "wide", -1.0, np.inf):
        with pytest.raises((TypeError, ValueError), match="target_bound must"):
            DPNeuralNetRegressor(target_bound=bound).privacy_profile(100)
