"""What training together asks of a net, and that private nets have all of it."""

import pytest

from skdptune.neural_network._population import TrainableNet
from tests.neural_network.nets import KINDS, data, net_of


def test_a_net_without_all_pieces_cannot_be_made():
    class Partial(TrainableNet):
        def _check_parameters(self):
            pass

    with pytest.raises(TypeError, match="abstract"):
        Partial()


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_its_pieces_one_after_another(kind):
    net = net_of(kind)
    assert isinstance(net, TrainableNet)
    run = net._training_run(*data(60))
    with net._seeded_torch(run.rng):
        net._start(run)
    for name in ("callbacks_", "criterion_", "module_", "optimizer_"):
        assert hasattr(net, name)
    assert sum(1 for _ in net._batches(run)) == run.plan.steps
    assert net._finish(run.plan, run.plan.steps) is net
    assert net.privacy_.profile == run.plan.profile
    net._erase_weights()
    assert not any(bool(parameter.any()) for parameter in net.module_.parameters())
