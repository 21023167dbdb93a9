"""Searches on one random split: small mechanisms enumerated, limits, and invariants."""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import (
    Binomial,
    Geometric,
    Poisson,
    PrivacyProfile,
    TruncatedNegativeBinomial,
    mixture,
    search_on_split,
    tune_then_fit,
)
from tests.accounting import oracles, oracles_profile
from tests.accounting.cases import few
from tests.accounting.oracles import Pair

DIRECTIONS = ("remove", "add")
EPSILONS = np.array([0.0, 0.01, 0.1, 0.3, 0.7, 1.2, 2.0, 3.5])
ALL_EPSILONS = np.concatenate([-EPSILONS[:0:-1], EPSILONS])
POINTS = np.concatenate([np.linspace(0.0, 4.0, 161), np.linspace(4.1, 14.0, 100)])
DISTRIBUTIONS = [
    Binomial(1, 1.0),
    Binomial(3, 0.5),
    Geometric(0.2),
    Poisson(2.0),
    TruncatedNegativeBinomial(-0.5, 0.05),
]
ROUNDING = 1e-12


def response_delta(epsilon, e):
    """Return randomised response's curve at any e, the worst of a pure guarantee."""
    return max((np.exp(epsilon) - np.exp(e)) / (1.0 + np.exp(epsilon)), 0.0, 1.0 - np.exp(e))


@functools.cache
def lopsided():
    """Return a profile whose two directions are far apart."""
    return oracles.profile_by_curve(Pair(np.array([0.9, 0.1]), np.array([1.0, 0.0])), POINTS, 1e-3)


# A whole search, enumerated --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Stage:
    """What one stage of a search reveals about a record, for each result of the stages before.

    ``seen[i]`` holds the masses of its outcomes if the record is used, ``unseen[i]`` if it is not.
    """

    seen: np.ndarray
    unseen: np.ndarray

    def curve(self):
        """Return (remove, add) hockey-stick curves on POINTS, the worst over what came before."""
        pairs = [Pair(p, q) for p, q in zip(self.seen, self.unseen, strict=True)]
        sides = (pairs, [pair.mirrored for pair in pairs])
        return [
            np.max([oracles.hockey_sticks(pair, POINTS) for pair in side], axis=0)
            for side in sides
        ]


@dataclasses.dataclass(frozen=True)
class World:
    """One split of all other records: a fit, a score given the fit, a final fit given both."""

    fit: Stage
    score: Stage
    final: Stage


def masses_of_run(world, trains, scores):
    """Return the masses of (model, score) of a run; the score of model m is column s."""
    models = (world.fit.seen if trains else world.fit.unseen)[0]
    noisy = world.score.seen if scores else world.score.unseen
    return models[:, None] * noisy


def masses_of_search(world, distribution, trains, scores):
    """Return the masses of what wins, by score; the last entry is the empty search."""
    run = masses_of_run(world, trains, scores)
    levels = run.sum(axis=0)
    cumulated = np.clip(np.concatenate([[0.0], np.cumsum(levels)]), 0.0, 1.0)
    wins = np.diff(distribution.pgf(cumulated))
    shares = np.divide(run, levels, out=np.zeros_like(run), where=levels > 0.0)
    return np.append((shares * wins).ravel(), distribution.pgf(0.0))


def masses_published(world, distribution, place, final_uses, ends_in_fit):
    """Return the masses of all that is published, for a place of the record (None: nowhere)."""
    found = masses_of_search(world, distribution, place == "tuning", place == "validation")
    if not ends_in_fit:
        return found
    stage = world.final.seen if place in final_uses else world.final.unseen
    return (found[:, None] * stage).ravel()


def exact_pair(worlds, distribution, validation, tuning, variant, ends_in_fit):
    """Return the pair for everything published; the split is secret, its probabilities public."""
    places = {"validation": validation, "tuning": 1.0 - validation, "neither": 0.0}
    final_uses = {"validation", "neither", "tuning"}
    if tuning is not None:
        places |= {"tuning": tuning, "neither": 1.0 - validation - tuning}
        if variant == 1:
            final_uses.remove("tuning")
    with_record, without = 0.0, 0.0
    for weight, world in worlds:
        for place, probability in places.items():
            shown = masses_published(world, distribution, place, final_uses, ends_in_fit)
            with_record = with_record + weight * probability * shown
        without = without + weight * masses_published(
            world, distribution, None, final_uses, ends_in_fit
        )
    return Pair(with_record, without)


def proven(stages):
    """Return the profile of a stage, whatever the other records and what came before."""
    curves = [stage.curve() for stage in stages]
    remove, add = (np.max([curve[side] for curve in curves], axis=0) for side in (0, 1))
    return PrivacyProfile.from_curve(POINTS, remove, deltas_add=add, discretization=1e-2)


def bound_of(worlds, distribution, validation, tuning, variant, ends_in_fit, by_rule=False):
    fit, score, final = (
        proven([getattr(world, name) for _, world in worlds]) for name in ("fit", "score", "final")
    )
    return search_on_split(
        fit.selected(distribution),
        score.selected(distribution),
        final if ends_in_fit else None,
        validation_fraction=validation,
        tuning_fraction=tuning,
        variant=variant,
        by_rule=by_rule,
    )


def random_stage(rng, inputs, outcomes, strength, p_zero=0.0):
    unseen = rng.dirichlet(np.ones(outcomes), size=inputs)
    tilt = np.exp(strength * rng.uniform(-1.0, 1.0, size=unseen.shape))
    tilt[rng.random(tilt.shape) < p_zero] = 0.0
    seen = unseen * tilt + 1e-9 * unseen
    return Stage(seen / seen.sum(axis=1, keepdims=True), unseen)


def random_worlds(rng, strengths, p_zero=0.0, count=2):
    """Return weighted worlds: which one it is depends on the places of other records."""
    weights = rng.dirichlet(np.ones(count))
    models, levels = 2, 3
    results = models * levels + 1
    return [
        (
            weight,
            World(
                random_stage(rng, 1, models, strengths[0], p_zero),
                random_stage(rng, models, levels, strengths[1], p_zero),
                random_stage(rng, results, 3, strengths[2], p_zero),
            ),
        )
        for weight in weights
    ]


def assert_bounded(pair, bound):
    for direction in DIRECTIONS:
        exact = np.array([oracles.hockey_stick(pair.one_way(direction), e) for e in ALL_EPSILONS])
        excess = exact - bound.delta(ALL_EPSILONS, direction)
        assert excess.max() <= ROUNDING, (direction, ALL_EPSILONS[excess.argmax()], excess.max())


LAYOUTS = [
    # validation, tuning, variant, ends in a fit
    (0.3, None, 1, False),
    (0.3, None, 1, True),
    (0.2, 0.1, 1, True),
    (0.2, 0.75, 1, True),
    (0.2, 0.1, 2, True),
    (0.2, 0.4, 1, False),
    (0.0, 0.3, 1, True),
    (0.0, 0.3, 2, True),
    (0.0, None, 1, True),
    (0.9, 0.05, 1, True),
]


@pytest.mark.parametrize(
    ("layout", "distribution"), few(10, LAYOUTS, DISTRIBUTIONS[1:4:2]), ids=str
)
def test_an_enumerated_search_lies_below_the_bound_in_both_directions(layout, distribution):
    # Theorem T3: validation, tuning and rest by one random split.
    rng = np.random.default_rng(11)
    worlds = random_worlds(rng, (1.0, 0.4, 0.8))
    assert_bounded(
        exact_pair(worlds, distribution, *layout), bound_of(worlds, distribution, *layout)
    )


fractions = st.floats(0.05, 0.9)


ANY_SEARCH = {
    "seed": st.integers(0, 2**32 - 1),
    "distribution": st.sampled_from(DISTRIBUTIONS),
    "strengths": st.tuples(*[st.floats(0.0, 2.5)] * 3),
    "p_zero": st.sampled_from([0.0, 0.0, 0.3]),
    "share": st.one_of(st.none(), fractions),
    "variant": st.sampled_from([1, 2]),
    "ends_in_fit": st.booleans(),
}


@settings(max_examples=8)
@given(validation=st.one_of(st.just(0.0), fractions), **ANY_SEARCH)
def test_any_small_search_lies_below_the_bound(
    seed, distribution, strengths, p_zero, validation, share, variant, ends_in_fit
):
    # Theorem T3: validation, tuning and rest by one random split.
    worlds = random_worlds(np.random.default_rng(seed), strengths, p_zero)
    tuning = None if share is None else share * (1.0 - validation)
    layout = (validation, tuning, variant, ends_in_fit)
    assert_bounded(
        exact_pair(worlds, distribution, *layout), bound_of(worlds, distribution, *layout)
    )


def test_the_fresh_split_s_mixture_would_be_wrong_for_a_shared_split():
    # Theorem T3: validation, tuning and rest by one random split.
    # Mixed before the selection, the record would have a new place in every run.
    rng = np.random.default_rng(0)
    distribution, broken = Geometric(0.02), False
    for _ in range(6):
        worlds = random_worlds(rng, (3.0, 0.0, 0.0), p_zero=0.2, count=1)
        layout = (0.9, None, 1, False)
        fit = proven([worlds[0][1].fit])
        fresh = mixture([PrivacyProfile.pure(0.0), fit], [0.9, 0.1]).selected(distribution)
        pair = exact_pair(worlds, distribution, *layout)
        for direction in DIRECTIONS:
            exact = oracles.hockey_stick(pair.one_way(direction), 0.3)
            broken |= exact > fresh.delta(0.3, direction) + 1e-6
        assert_bounded(pair, bound_of(worlds, distribution, *layout))
    # If this fails, the enumeration cannot distinguish the two, and proves little.
    assert broken


# Where a rule says which records are in validation ---------------------------------------


def pairs_by_rule(worlds, distribution, validation, tuning, variant, ends_in_fit):
    """Return the pair of a record that the rule holds out, and that of one that it does not."""
    layout = (distribution, 0.0, None, variant, ends_in_fit)
    share = None if tuning is None else tuning / (1.0 - validation)
    kept = exact_pair(worlds, distribution, 0.0, share, variant, ends_in_fit)
    uses = {"validation", "neither", "tuning"} - ({"tuning"} if share and variant == 1 else set())
    held_out = sum(
        weight * masses_published(world, distribution, "validation", uses, ends_in_fit)
        for weight, world in worlds
    )
    return Pair(held_out, exact_pair(worlds, *layout).q), kept


BY_RULE = [layout for layout in LAYOUTS if layout[0] > 0.0]


@pytest.mark.parametrize(
    ("layout", "distribution"), few(7, BY_RULE, DISTRIBUTIONS[1:4:2]), ids=str
)
def test_an_enumerated_search_by_a_rule_lies_below_the_bound(layout, distribution):
    # Theorem T9: a public rule decides for each record whether it is held out for validation.
    worlds = random_worlds(np.random.default_rng(11), (1.0, 0.4, 0.8))
    bound = bound_of(worlds, distribution, *layout, by_rule=True)
    for pair in pairs_by_rule(worlds, distribution, *layout):
        assert_bounded(pair, bound)


@settings(max_examples=8)
@given(validation=fractions, **ANY_SEARCH)
def test_any_small_search_by_a_rule_lies_below_the_bound(
    seed, distribution, strengths, p_zero, validation, share, variant, ends_in_fit
):
    # Theorem T9: a public rule decides for each record whether it is held out for validation.
    worlds = random_worlds(np.random.default_rng(seed), strengths, p_zero)
    tuning = None if share is None else share * (1.0 - validation)
    layout = (validation, tuning, variant, ends_in_fit)
    bound = bound_of(worlds, distribution, *layout, by_rule=True)
    for pair in pairs_by_rule(worlds, distribution, *layout):
        assert_bounded(pair, bound)


@pytest.mark.parametrize(
    ("place", "strengths", "validation"), [(0, (0.1, 2.5, 0.0), 0.2), (1, (2.5, 0.1, 0.0), 0.8)]
)
def test_the_mixture_of_a_random_split_would_be_wrong_for_a_rule(place, strengths, validation):
    # Theorem T9: a public rule decides for each record whether it is held out for validation.
    # No coin hides the part of a record, so the more expensive part determines the cost.
    worlds = random_worlds(np.random.default_rng(0), strengths, count=1)
    layout = (Binomial(1, 1.0), validation, None, 1, False)
    mixed = bound_of(worlds, *layout)
    pair = pairs_by_rule(worlds, *layout)[place]
    assert_bounded(pair, bound_of(worlds, *layout, by_rule=True))
    for direction in DIRECTIONS:
        exact = oracles.hockey_stick(pair.one_way(direction), 0.1)
        assert exact > 4.0 * mixed.delta(0.1, direction)


def test_a_rule_costs_the_worst_of_the_two_parts_in_each_direction():
    # Theorem T9: a public rule decides for each record whether it is held out for validation.
    scored, fit = lopsided(), PrivacyProfile.gaussian(0.4)
    trained, final = fit.selected(Geometric(0.2)), PrivacyProfile.pure(0.2)
    total = search_on_split(
        trained, scored, final, validation_fraction=0.3, tuning_fraction=0.1, by_rule=True
    )
    parts = scored + final, tune_then_fit(trained, final, 0.1 / 0.7)
    for direction in DIRECTIONS:
        deltas = [part.delta(EPSILONS, direction) for part in parts]
        np.testing.assert_allclose(
            total.delta(EPSILONS, direction), np.max(deltas, axis=0), rtol=2e-2, atol=2e-4
        )


@pytest.mark.parametrize(
    ("layout", "charged"),
    [
        # Each forgets something that the published result depends on.
        ((0.9, None, 1, False), (0.0, None, 1, False)),
        ((0.0, 0.3, 1, False), (0.0, 0.01, 1, False)),
        ((0.2, 0.1, 1, True), (0.2, 0.1, 1, False)),
    ],
)
def test_the_enumeration_catches_costs_that_forget_something(layout, charged):
    rng, distribution, caught = np.random.default_rng(5), Geometric(0.1), False
    strengths = (0.3, 2.5, 2.0) if layout[0] > 0.5 else (2.5, 0.3, 2.0)
    for _ in range(4):
        worlds = random_worlds(rng, strengths, count=1)
        low = bound_of(worlds, distribution, *charged)
        pair = exact_pair(worlds, distribution, *layout)
        for direction in DIRECTIONS:
            exact = np.array([oracles.hockey_stick(pair.one_way(direction), e) for e in EPSILONS])
            caught |= bool(np.any(exact > low.delta(EPSILONS, direction) + 1e-6))
    assert caught


# Limits ----------------------------------------------------------------------------------


def test_a_mixture_of_gaussian_releases_is_the_sum_of_their_curves():
    mus, weights = (0.1, 1.0), (0.8, 0.2)
    mixed = mixture([PrivacyProfile.gaussian(mu) for mu in mus], weights)
    for e in (0.0, 0.3, 1.0, 3.0, 4.5):
        exact = sum(
            w * float(oracles_profile.gaussian_delta(mu, e))
            for mu, w in zip(mus, weights, strict=True)
        )
        assert exact <= mixed.delta(e) * (1.0 + 1e-9)
        assert mixed.delta(e) == pytest.approx(exact, rel=5e-3, abs=1e-14)


def test_the_directions_are_mixed_apart():
    one, other = lopsided(), PrivacyProfile.pure(0.3)
    mixed = mixture([one, other], [0.4, 0.6])
    for direction in DIRECTIONS:
        exact = 0.4 * one.delta(EPSILONS, direction) + 0.6 * other.delta(EPSILONS, direction)
        np.testing.assert_allclose(mixed.delta(EPSILONS, direction), exact, atol=2e-4)
        assert np.all(mixed.delta(EPSILONS, direction) >= exact - 1e-12)
    assert mixed.delta(2.0, "remove") > 0.03 > mixed.delta(2.0, "add") == 0.0


@pytest.mark.parametrize("variant", [1, 2])
def test_without_validation_it_is_tuning_then_a_fit(variant):
    fit = PrivacyProfile.gaussian(0.4)
    search = fit.selected(Geometric(0.1))
    total = search_on_split(search, None, fit, tuning_fraction=0.2, variant=variant)
    assert total == tune_then_fit(search, fit, 0.2, variant)
    # A score that nobody pays for changes nothing.
    assert total == search_on_split(
        search, PrivacyProfile.pure(5.0), fit, tuning_fraction=0.2, variant=variant
    )


def test_without_tuning_records_or_final_fit_less_is_paid():
    search, score = PrivacyProfile.pure(1.0), PrivacyProfile.pure(0.25)
    assert search_on_split(search) == search
    assert search_on_split(search, final=score) == search + score
    assert search_on_split(search, tuning_fraction=0.3) == search.subsampled(0.3)
    nothing = PrivacyProfile.pure(0.0)
    assert search_on_split(nothing, final=nothing).delta(0.0) == 0.0
    mixed = search_on_split(search, score, validation_fraction=0.2)
    for e in (0.0, 0.1, 0.5, 0.9):
        exact = 0.2 * response_delta(0.25, e) + 0.8 * response_delta(1.0, e)
        assert mixed.delta(e) == pytest.approx(exact, rel=1e-3)


# Invariants ------------------------------------------------------------------------------
