"""Steps of several members: batches, noise, what is watched, and who ends when."""

import numpy as np
import pytest
import torch

from skdptune.neural_network._noisy_steps import NotPrivateError
from skdptune.neural_network._population._net_batch import Crew, Member
from skdptune.neural_network._population._stacked_gradients import stacked_gradients
from tests.neural_network.nets import data, net_of, weights_of

X, Y = data(90)


def members_of(nets):
    made = []
    for net in nets:
        course = net._course(X, Y)
        with net._torch_seeded(course.rng):
            net._start(course)
        made.append(Member(net, course))
    return made


def crew_of(members, length=10**9):
    first = members[0]
    gradients = stacked_gradients(
        [member.net.module_ for member in members],
        first.net._losses,
        torch.rand(4),
        torch.zeros((), dtype=torch.long),
    )
    return Crew(members, first.course.X, gradients, lambda size: length)


def test_batches_are_those_of_the_course():
    (some,) = members_of([net_of(batch_size=30)])
    some.begin()
    assert some.goes_on()
    assert some.indices().tolist() == some.rows.tolist()
    (everyone,) = members_of([net_of(batch_size=1.0, max_epochs=1)])
    everyone.begin()
    assert everyone.goes_on() and everyone.indices().tolist() == list(range(90))
    assert not everyone.goes_on()


@pytest.mark.parametrize("length", [1, 7, 10**9])
def test_members_end_when_their_course_does(length):
    nets = [net_of(random_state=seed, max_epochs=seed + 1) for seed in range(3)]
    members = members_of(nets)
    crew_of(members, length).run()
    assert [member.taken for member in members] == [member.course.plan.steps for member in members]
    for seed, net in enumerate(nets):
        alone = net_of(random_state=seed, max_epochs=seed + 1).fit(X, Y)
        assert np.allclose(weights_of(net), weights_of(alone), atol=1e-5)


def test_members_may_have_targets_of_their_own():
    nets = [net_of(random_state=seed) for seed in range(2)]
    members = members_of(nets)
    flipped = members[1].course.__class__(
        **{**vars(members[1].course), "targets": 1 - members[1].course.targets}
    )
    members[1].course = flipped
    crew_of(members).run()
    alone = net_of(random_state=1)
    course = alone._course(X, 1 - Y)
    alone._fit_course(course)
    assert np.allclose(weights_of(nets[1]), weights_of(alone), atol=1e-5)


def test_steps_are_watched_at_powers_of_two(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "skdptune.neural_network._population._net_batch.check_step",
        lambda *arguments: seen.append(arguments[-1]),
    )
    members = members_of([net_of(batch_size=10, max_epochs=1)])
    crew_of(members).run()
    assert members[0].taken == 9
    # Steps 1, 2, 4 and 8.
    assert len(seen) == 4


def test_weights_are_wiped_if_a_step_is_not_private(monkeypatch):
    def refuse(*arguments):
        raise NotPrivateError("no")

    monkeypatch.setattr("skdptune.neural_network._population._net_batch.check_step", refuse)
    members = members_of([net_of(random_state=seed) for seed in range(2)])
    with pytest.raises(NotPrivateError):
        crew_of(members).run()
    assert not any(weights_of(member.net).any() for member in members)


def test_end_comes_once():
    (member,) = members_of([net_of()])
    member.end()
    before = member.parameters[0].data_ptr()
    member.end()
    assert member.parameters[0].data_ptr() == before
