"""Programs of extreme numbers: for all operations, the result is a curve, and it is not too low.

Rates next to 0 and 1, up to a million runs and copies, masses at infinity from 0 to 1, and losses
from almost 0 to above the largest one. The outcomes of every mechanism are known exactly. If there
are too many, some of them are merged, which can only lower the cost.
"""

from __future__ import annotations

import functools
import itertools
import pickle

import numpy as np
import pytest

from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    TruncatedNegativeBinomial,
)
from tests.accounting import small_mechanisms as small
from tests.accounting.cases import few
from tests.accounting.small_mechanisms import EXACT, ZERO, Mechanism, Pair

DIGITS = 700
FEW = 6
EPSILONS = np.array([0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 7.0, 30.0, 200.0, 599.0, 700.0])
DELTAS = (0.0, 1e-300, 1e-17, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.87, 1.0 - 1e-12, 1.0)
SHARES = (1e-25, 1e-12, 1e-6, 0.01, 0.3, 0.87, 1.0 - 1e-6, 1.0 - 1e-12, 1.0 - 2.0**-53)
LOST = (0.0, 0.0, 0.0, 1e-300, 1e-17, 1e-12, 1e-5, *SHARES[3:], 1.0)
LARGE = (0.0, 1e-12, 1e-6, 0.01, 0.3, 1.0, 5.0, 40.0, 300.0, 600.0)
COUNTS = (2, 3, 36, 693, 10_000, 10**6)
QUICK, BATCHES, BATCH = 8, 10, 400


def drawn(rng, values):
    return values[int(rng.integers(len(values)))]


def shortened(pair: Pair) -> Pair:
    """Return few outcomes, in which those with neighbouring losses are merged."""
    while len(pair) > FEW:
        keys = sorted(range(len(pair)), key=lambda i: EXACT.atan2(pair.p[i], pair.q[i]))
        order = [(pair.p[i], pair.q[i]) for i in keys]
        gaps = [abs(EXACT.atan2(*a) - EXACT.atan2(*b)) for a, b in itertools.pairwise(order)]
        least = gaps.index(min(gaps))
        both = tuple(x + y for x, y in zip(order[least], order[least + 1], strict=True))
        order[least : least + 2] = [both]
        pair = Pair(*map(tuple, zip(*order, strict=True)))
    return pair


# Releases -----------------------------------------------------------------------------------


def response(rng) -> Mechanism:
    epsilon, delta = drawn(rng, LARGE), drawn(rng, LOST)
    lost = EXACT.mpf(delta)
    lie = (1 - lost) / (1 + EXACT.exp(EXACT.mpf(epsilon)))
    pair = Pair((lost, 1 - lost - lie, lie, ZERO), (ZERO, lie, 1 - lost - lie, lost))
    claim = PrivacyProfile.approximate(epsilon, delta)
    return Mechanism(claim, (pair,), f"approximate({epsilon!r}, {delta!r})")


def gaussian(rng) -> Mechanism:
    shift = float(drawn(rng, (1e-12, 1e-6, 1e-2, 0.3, 1.0, 4.0, 12.0, 30.0)))
    mu = EXACT.mpf(shift)
    cuts = [mu / 2 + EXACT.mpf(float(z)) for z in sorted(rng.uniform(-4.0, 4.0, 4))]
    p, q = ([ZERO, *(EXACT.ncdf(cut - mean) for cut in cuts), EXACT.mpf(1)] for mean in (mu, 0))
    pair = Pair(*(tuple(b - a for a, b in itertools.pairwise(side)) for side in (p, q)))
    return Mechanism(PrivacyProfile.gaussian(shift), (pair,), f"gaussian({shift!r})")


def of_points(rng) -> Mechanism:
    known = response(rng)
    points = np.unique(np.append(rng.choice(EPSILONS[EPSILONS <= 600.0], 3), 0.0))
    deltas = [min(small.rounded_up(known.delta(float(e), "remove")), 1.0) for e in points]
    claim = PrivacyProfile.from_curve(points, deltas)
    return Mechanism(claim, known.pairs, f"from_curve({points.tolist()}, {deltas})")


# Operators ----------------------------------------------------------------------------------


def repeated(a: Mechanism, b: Mechanism, rng) -> Mechanism:
    """Return many copies, of which no more is seen than whether all had one outcome, or none."""
    pair, count = a.pairs[0], drawn(rng, COUNTS)
    index = int(rng.integers(len(pair)))
    sides = []
    for side in (pair.p, pair.q):
        all_of_it, none_of_it = side[index] ** count, (1 - side[index]) ** count
        sides.append((all_of_it, none_of_it, 1 - all_of_it - none_of_it))
    return Mechanism(count * a.claim, (Pair(*sides),), f"{count} * {a.words}")


def kept(a: Mechanism, b: Mechanism, rng) -> Mechanism:
    claim = pickle.loads(pickle.dumps(a.claim))
    return Mechanism(claim, a.pairs, f"unpickled({a.words})")


def number_of_runs(rng):
    match int(rng.integers(5)):
        case 0:
            return Binomial(drawn(rng, (1, *COUNTS)), float(drawn(rng, (*SHARES, 0.74, 1.0))))
        case 1:
            return Poisson(float(drawn(rng, (1e-12, 1e-3, 0.5, 1.0, 30.0, 1e3, 1e6))))
        case 2:
            return Geometric(float(drawn(rng, SHARES)))
        case 3:
            return Logarithmic(float(drawn(rng, SHARES)))
    eta = float(drawn(rng, (-1.0 + 1e-9, -0.5, 0.3, 6.0, 1e3)))
    return TruncatedNegativeBinomial(eta, float(drawn(rng, (1e-6, 0.01, 0.3, 1.0 - 1e-12))))


OPERATORS = (*small.OPERATORS, repeated, repeated, kept)


def random_program(rng) -> Mechanism:
    made = drawn(rng, (response, response, gaussian, of_points))(rng)
    for _ in range(int(rng.integers(1, 5))):
        other = drawn(rng, (response, gaussian))(rng)
        operator = drawn(rng, OPERATORS)
        if operator is small.repeated:
            operator = repeated
        if operator in (small.tuned, small.composed) and rng.random() < 0.5:
            made, other = other, made
        made = operator(made, other, rng)
        made = Mechanism(made.claim, tuple(map(shortened, made.pairs[:4])), made.words)
    return made


@pytest.fixture
def extremes(monkeypatch):
    monkeypatch.setattr(EXACT, "dps", DIGITS)
    monkeypatch.setattr(small, "fraction", lambda rng: float(drawn(rng, SHARES[1:])))
    monkeypatch.setattr(small, "number_of_runs", number_of_runs)


def faults(made: Mechanism) -> list[str]:
    """Return a description of the error in a claim."""
    found = []
    for direction in small.DIRECTIONS:
        deltas = made.claim.delta(EPSILONS, direction)
        if not np.all((deltas >= 0.0) & (deltas <= 1.0)):
            found.append(f"{direction}: deltas {deltas.tolist()}")
        if np.any(np.diff(deltas) > 1e-15):
            found.append(f"{direction}: deltas rise, {deltas.tolist()}")
        for epsilon, delta in zip(EPSILONS, deltas, strict=True):
            truth = made.delta(float(epsilon), direction)
            if not truth * (1 - EXACT.mpf(1e-11)) <= EXACT.mpf(float(delta)) + 1e-13:
                found.append(f"{direction}: delta({epsilon}) is {float(truth)}, not {delta}")
    epsilons = np.array([made.claim.epsilon(delta) for delta in DELTAS])
    if not np.all(epsilons >= 0.0) or np.any(epsilons[1:] > epsilons[:-1]):
        found.append(f"epsilons {epsilons.tolist()}")
    for delta, epsilon in zip(DELTAS, epsilons, strict=True):
        if np.isfinite(epsilon) and not made.claim.delta(epsilon) <= delta * (1 + 1e-9) + 1e-15:
            found.append(f"epsilon({delta}) is {epsilon}, where delta is larger")
    return found


def assert_no_faults(seeds: range) -> None:
    for seed in seeds:
        made = random_program(np.random.default_rng(seed))
        assert faults(made) == [], (seed, made.words)


def test_no_program_of_extreme_numbers_ends_in_nonsense(extremes) -> None:
    # Theorem S1, Theorem P4, Theorem P7, Theorem T1.
    assert_no_faults(range(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(1, BATCHES + 1))
def test_none_of_many_programs_ends_in_nonsense(extremes, batch) -> None:
    assert_no_faults(range(BATCH * batch, BATCH * (batch + 1)))


@pytest.mark.parametrize(
    ("runs", "lost", "bound"),
    few(
        4,
        [Binomial(693, 0.74), Binomial(36, 1.0), Poisson(1e6)],
        [0.87, 1.0 - 1e-12, 1.0],
        ["envelope", "best"],
    ),
    ids=str,
)
def test_the_best_of_hopeless_runs_is_hopeless(runs, lost, bound) -> None:
    # Theorem S1, Theorem S6.
    for run in (PrivacyProfile.approximate(1.0, lost), PrivacyProfile.approximate(300.0, lost)):
        total = run.selected(runs, bound)
        assert total.epsilon(0.5) == np.inf
        assert total.delta([0.0, 1.0, 700.0]).tolist() == [1.0] * 3


REST = (2.0**-53, 1e-16, 1e-12, 1e-8, 1e-4, 0.1)
RATES = tuple(1.0 - rest for rest in REST) + (0.5, 1e-4, 1e-8, 1e-12)


@pytest.mark.parametrize(
    ("direction", "rate", "release"),
    few(10, small.DIRECTIONS, RATES, ["pure", "approximate", "gaussian"]),
)
def test_no_rate_of_sampling_cancels(extremes, release, rate, direction) -> None:
    # Theorem P7: the curve of a release on a Poisson sample.
    q = EXACT.mpf(rate)
    for size in (0.3, 4.0, 25.0):
        delta = 1e-5 if release == "approximate" else 0.0
        if release == "gaussian":
            profile = PrivacyProfile.gaussian(size).subsampled(rate)
        else:
            profile = PrivacyProfile.approximate(size, delta).subsampled(rate)
        curve = functools.partial(exact_curve, release, size, delta)
        points = np.concatenate([[0.0], np.geomspace(1e-13, 1.2 * size, 12)])
        claims = profile.delta(points, direction)
        for epsilon, claim in zip(points, claims, strict=True):
            alpha = EXACT.exp(EXACT.mpf(float(epsilon)))
            if direction == "remove":
                truth = q * curve(1 + (alpha - 1) / q)
            else:
                kept = 1 - (1 - q) * alpha
                truth = kept * curve(q * alpha / kept) if kept > 0 else ZERO
            assert EXACT.mpf(float(claim)) >= truth * (1 - EXACT.mpf(1e-14)), (size, epsilon)
            # The grid's chords are above the curve.
            assert rate < 0.5 or claim <= truth + 2e-3 * profile.delta(0.0), (size, epsilon)


def exact_curve(release: str, size: float, delta: float, alpha):
    if release != "gaussian":
        lost, top = EXACT.mpf(delta), EXACT.exp(EXACT.mpf(size))
        return lost + (1 - lost) * max(top - alpha, ZERO) / (1 + top)
    mu = EXACT.mpf(size)
    place = EXACT.log(alpha) / mu
    return EXACT.ncdf(mu / 2 - place) - alpha * EXACT.ncdf(-mu / 2 - place)
