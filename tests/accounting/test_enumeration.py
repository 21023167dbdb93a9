"""Random small mechanisms: no claim of the package is below the enumerated true value.

The ordinary run makes some hundred checks; the slow tests make 10^5. One check is one inequality:
delta at an epsilon in one direction, or the delta that is left at a claimed epsilon.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.accounting import small_mechanisms as small
from tests.accounting.small_mechanisms import DIRECTIONS, EXACT, Mechanism, Number

# What floats may lose: of masses up to 1, and of sums of some ten thousand of them.
ROUNDING, RELATIVE = 1e-14, 1e-11
READS = 12
DELTAS = (1e-9, 1e-5, 1e-2, 0.3)
QUICK, BATCHES, BATCH = 12, 12, 300


def epsilons_of(mechanism: Mechanism, rng: np.random.Generator) -> np.ndarray:
    """Return zero, bends of the true curve, and other epsilons of either sign."""
    bends = [loss for pair in mechanism.pairs for loss in pair.losses()] or [0.0]
    top = max(map(abs, bends)) + 0.2
    spread = rng.uniform(-top, top, READS)
    return np.concatenate([[0.0], rng.choice(bends, min(5, len(bends))), spread])[:READS]


def is_above(truth: Number, claim: float) -> bool:
    return truth * (1 - EXACT.mpf(RELATIVE)) > EXACT.mpf(claim) + ROUNDING


def violations(mechanism: Mechanism, rng: np.random.Generator) -> list[str]:
    """Return descriptions of the checks that fail."""
    found = []
    epsilons = epsilons_of(mechanism, rng)
    for direction in DIRECTIONS:
        claims = mechanism.claim.delta(epsilons, direction)
        for epsilon, claim in zip(epsilons, claims, strict=True):
            truth = mechanism.delta(float(epsilon), direction)
            if is_above(truth, float(claim)):
                found.append(f"delta({epsilon!r}, {direction}) is {float(truth)}, not {claim}")
    for delta in DELTAS:
        epsilon = mechanism.claim.epsilon(delta)
        if np.isinf(epsilon):
            continue
        truth = max(mechanism.delta(epsilon, direction) for direction in DIRECTIONS)
        if is_above(truth, delta):
            found.append(f"epsilon({delta}) is above {epsilon!r}, where delta is {float(truth)}")
    return found


def assert_none_below_the_truth(seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        mechanism = small.random_mechanism(rng)
        assert violations(mechanism, rng) == [], (seed, mechanism.words)


def test_no_claim_lies_below_the_truth() -> None:
    assert_none_below_the_truth(range(QUICK))


@pytest.mark.parametrize(
    ("operator", "forgotten"),
    [
        (small.selected, "the search"),
        (small.composed, "the second"),
        (small.repeated, "the others"),
        (small.failing, "the failure"),
        (small.mixed, "the first"),
        (small.tuned, "the search"),
        (small.on_split, "the search"),
    ],
)
def test_a_claim_that_forgets_something_is_found_out(operator, forgotten) -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(8):
        a, b = small.released(rng), small.released(rng)
        kept = b if operator in (small.mixed, small.tuned, small.on_split) else a
        made = operator(a, b, rng)
        found += violations(Mechanism(kept.claim, made.pairs, made.words), rng)
        if found:
            break
    assert found, f"nobody missed {forgotten}"


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(1, BATCHES + 1))
def test_no_claim_of_many_lies_below_the_truth(batch: int) -> None:
    assert_none_below_the_truth(range(BATCH * batch, BATCH * (batch + 1)))
