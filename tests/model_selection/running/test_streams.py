"""Streams of randomness: from the seed alone, one for each use and run."""

import numpy as np

from skdptune._secure_random import SecureGenerator
from skdptune.model_selection._running._quiet import Streams, generator_of, spawned


def test_streams_depend_on_the_seed_alone():
    one, two = Streams.of(3), Streams.of(3)
    assert one.runs.generate_state(2).tolist() == two.runs.generate_state(2).tolist()
    words = {tuple(part.generate_state(2)) for part in vars(one).values()}
    assert len(words) == 5
    assert set(vars(Streams.of(None)).values()) == {None}


def test_runs_have_streams_of_their_own():
    # Assumption S0.
    seeds = np.random.SeedSequence(0)
    draws = {generator_of(one).random() for one in spawned(seeds, 3)}
    assert len(draws) == 3
    assert spawned(None, 3) == [None, None, None]
    assert generator_of(None).random() != generator_of(None).random()


def test_what_is_not_seeded_is_cryptographic():
    # Assumption E0.
    assert isinstance(generator_of(None), SecureGenerator)
    assert not isinstance(generator_of(np.random.SeedSequence(0)), SecureGenerator)
