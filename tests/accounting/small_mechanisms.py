"""Random small mechanisms: their exact output distributions, and the claims of the package.

A mechanism is an expression, such as the composition of a search on a sample with a fit. Its
output distributions on two neighbouring data sets are enumerated in 250 digits, with generating
functions that are computed here. Its claim is the profile that the package's operators return.
Only the claims come from the package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from skdptune.accounting import (
    Binomial,
    BoundNotApplicableError,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    RunCountDistribution,
    TruncatedNegativeBinomial,
    mixture,
    search_on_split,
    tune_then_fit,
    with_failure,
)

EXACT = mpmath.MPContext()
# Far more than sixty: masses may be 100 orders of magnitude apart, and their sums must hold both.
EXACT.dps = 250
ZERO, ONE = EXACT.mpf(0), EXACT.mpf(1)
MOST_OUTCOMES = 150
# A choice of few outcomes: all orders of their scores are tried.
FEW_OUTCOMES = 4
DIRECTIONS = ("remove", "add")
DISTRIBUTIONS = (
    Geometric(0.5),
    Geometric(0.1),
    Geometric(0.01),
    Logarithmic(0.02),
    TruncatedNegativeBinomial(0.5, 0.05),
    TruncatedNegativeBinomial(-0.5, 0.01),
    TruncatedNegativeBinomial(3.0, 0.2),
    Poisson(0.4),
    Poisson(3.0),
    Poisson(30.0),
    Poisson(200.0),
    Binomial(1, 0.4),
    Binomial(2, 1.0),
    Binomial(12, 0.6),
    Binomial(60, 1.0),
)

BOUNDS = ("envelope", "envelope", "envelope", "profile", "rdp", "best")

Number = Any  # of EXACT
Masses = tuple[Number, ...]


@dataclass(frozen=True)
class Pair:
    """Masses of the same outcomes with the record (``p``) and without it (``q``)."""

    p: Masses
    q: Masses

    def __len__(self) -> int:
        return len(self.p)

    def delta(self, epsilon: float, direction: str) -> Number:
        """Return the hockey-stick divergence, for epsilon of any sign."""
        one, other = (self.p, self.q) if direction == "remove" else (self.q, self.p)
        alpha = EXACT.exp(EXACT.mpf(epsilon))
        return EXACT.fsum(max(a - alpha * b, ZERO) for a, b in zip(one, other, strict=True))

    def losses(self) -> list[float]:
        """Return the finite losses of the remove direction, as floats."""
        return [float(EXACT.log(a / b)) for a, b in zip(self.p, self.q, strict=True) if a and b]


@dataclass(frozen=True)
class Mechanism:
    """What the package claims, some pairs that the claim is about, and how it was made."""

    claim: PrivacyProfile
    pairs: tuple[Pair, ...]
    words: str

    def __len__(self) -> int:
        return max(map(len, self.pairs))

    def delta(self, epsilon: float, direction: str) -> Number:
        """Return the largest delta among the pairs."""
        return max(pair.delta(epsilon, direction) for pair in self.pairs)


# The number of runs -------------------------------------------------------------------------


def generating_function(distribution: Any, x: Number) -> Number:
    """Return ``E[x**K]``, from the formula of the distribution."""
    match distribution:
        case Poisson():
            return EXACT.exp(EXACT.mpf(distribution.mean) * (x - 1))
        case Binomial():
            chance = EXACT.mpf(distribution.probability)
            return (1 - chance + chance * x) ** distribution.trials
    eta, gamma = EXACT.mpf(distribution.eta), EXACT.mpf(distribution.gamma)
    if eta == 0:
        return EXACT.log(1 - (1 - gamma) * x) / EXACT.log(gamma)
    return ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


# Releases -----------------------------------------------------------------------------------


def scaled(weights: Sequence[Number]) -> Masses:
    total = EXACT.fsum(weights)
    return tuple(weight / total for weight in weights)


def rounded_up(number: Number) -> float:
    found = float(number)
    return found if EXACT.mpf(found) >= number else math.nextafter(found, math.inf)


def released(rng: np.random.Generator) -> Mechanism:
    """Return one of the simplest mechanisms."""
    return (response, whole_weights, rare_outcomes, on_a_grid)[rng.integers(4)](rng)


def response(rng: np.random.Generator) -> Mechanism:
    """Return randomised response that may give everything away."""
    epsilon = float(rng.choice([0.0, 0.01, 0.1, 0.5, 1.0, 3.0]) * rng.choice([1.0, rng.random()]))
    delta = float(rng.choice([0.0, 0.0, 1e-9, 1e-3, 0.2]))
    lost = EXACT.mpf(delta)
    truth = (1 - lost) / (1 + EXACT.exp(-EXACT.mpf(epsilon)))
    pair = Pair((lost, truth, 1 - lost - truth, ZERO), (ZERO, 1 - lost - truth, truth, lost))
    claim = PrivacyProfile.approximate(epsilon, delta)
    return Mechanism(claim, (pair,), f"approximate({epsilon!r}, {delta!r})")


def whole_weights(rng: np.random.Generator) -> Mechanism:
    """Return a release with rational masses, some outcomes being impossible on one side."""
    size = rng.integers(2, 5)
    sides = [rng.integers(0, 10, size) * rng.integers(0, 4, size) for _ in range(2)]
    p, q = (scaled([EXACT.mpf(int(w)) for w in side + (not side.any())]) for side in sides)
    return from_points(Pair(p, q), rng, "whole_weights")


def rare_outcomes(rng: np.random.Generator) -> Mechanism:
    """Return a release of which some outcomes are rare, and their losses large or small."""
    size = rng.integers(2, 5)
    weights = [EXACT.mpf(10) ** -int(power) for power in rng.integers(0, 10, size)]
    strength = float(rng.choice([0.01, 0.3, 2.0]))
    tilts = [EXACT.exp(EXACT.mpf(float(x))) for x in strength * rng.normal(size=size)]
    p = scaled([weight * tilt for weight, tilt in zip(weights, tilts, strict=True)])
    return from_points(Pair(p, scaled(weights)), rng, "rare_outcomes")


def on_a_grid(rng: np.random.Generator) -> Mechanism:
    """Return a release whose losses lie on the grid of its profile, so that the claim is tight."""
    step = 1e-4 * 2.0 ** int(rng.integers(4, 12))
    rises, falls = (rng.choice(np.arange(1, 13), 2, replace=False) for _ in range(2))
    losses = [step * int(n) for n in rises] + [-step * int(n) for n in falls]
    weights = [EXACT.mpf(float(x)) for x in np.exp(rng.uniform(-10.0, 0.0, 4))]
    ratios = [EXACT.exp(EXACT.mpf(loss)) for loss in losses]
    # The two totals must be 1: what one sign has too much, the other makes up for.
    gains = [w * (r - 1) for w, r in zip(weights, ratios, strict=True)]
    balance = -(gains[0] + gains[1]) / (gains[2] + gains[3])
    weights = [weights[0], weights[1], weights[2] * balance, weights[3] * balance]
    q = scaled(weights)
    pair = Pair(tuple(mass * ratio for mass, ratio in zip(q, ratios, strict=True)), q)
    points = step * np.arange(14)
    return from_points(pair, rng, "on_a_grid", points, step)


def from_points(
    pair: Pair,
    rng: np.random.Generator,
    words: str,
    points: np.ndarray | None = None,
    step: float | None = None,
) -> Mechanism:
    """Return a mechanism whose claim knows a few points of its curve."""
    if points is None:
        ends = [abs(loss) for loss in pair.losses()]
        top = max(ends, default=0.0) + 0.1
        points = np.unique(np.round([0.0, *ends, *(top * rng.random(8)), top], 9))
        step = (None, 1e-2, 1e-3)[rng.integers(3)]
    remove, add = ([rounded_up(pair.delta(e, side)) for e in points] for side in DIRECTIONS)
    claim = PrivacyProfile.from_curve(
        points, np.minimum(remove, 1.0), deltas_add=np.minimum(add, 1.0), discretization=step
    )
    return Mechanism(claim, (pair,), f"{words}(step={step})")


# Operators ----------------------------------------------------------------------------------


def one_of(mechanism: Mechanism, rng: np.random.Generator) -> Pair:
    return mechanism.pairs[rng.integers(len(mechanism.pairs))]


def joint(first: Masses, second: Iterator[Masses]) -> Masses:
    """Return the masses of two outcomes, the second of which may depend on the first."""
    return tuple(a * b for a, others in zip(first, second, strict=True) for b in others)


def weighted(parts: Sequence[tuple[Number, Masses]]) -> Masses:
    """Return a mixture whose component stays hidden."""
    columns = zip(*(masses for _, masses in parts), strict=True)
    shares = [share for share, _ in parts]
    return tuple(
        EXACT.fsum(share * mass for share, mass in zip(shares, column, strict=True))
        for column in columns
    )


def adaptive(mechanism: Mechanism, count: int, rng: np.random.Generator) -> list[Pair]:
    """Return one pair of this size for each result of the previous step."""
    pairs = [one_of(mechanism, rng) for _ in range(count)]
    size = max(map(len, pairs))
    return [
        Pair(*((*side, *([ZERO] * (size - len(side)))) for side in (pair.p, pair.q)))
        for pair in pairs
    ]


def composed(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    first = one_of(a, rng)
    then = adaptive(b, len(first), rng)
    pair = Pair(joint(first.p, (t.p for t in then)), joint(first.q, (t.q for t in then)))
    return Mechanism(a.claim + b.claim, (pair,), f"({a.words} + {b.words})")


def repeated(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    pair = one_of(a, rng)
    count = int(rng.integers(2, 7 if len(pair) <= 3 else 4))
    masses: tuple[list[Number], list[Number]] = ([], [])
    for outcomes in itertools.combinations_with_replacement(range(len(pair)), count):
        ways = math.factorial(count)
        for outcome in set(outcomes):
            ways //= math.factorial(outcomes.count(outcome))
        for found, side in zip(masses, (pair.p, pair.q), strict=True):
            found.append(ways * EXACT.fprod(side[outcome] for outcome in outcomes))
    both = Pair(tuple(masses[0]), tuple(masses[1]))
    return Mechanism(count * a.claim, (both,), f"{count} * {a.words}")


def sampled(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    share = fraction(rng)
    pairs = tuple(
        Pair(weighted([(EXACT.mpf(share), pair.p), (1 - EXACT.mpf(share), pair.q)]), pair.q)
        for pair in a.pairs
    )
    return Mechanism(a.claim.subsampled(share), pairs, f"{a.words}.subsampled({share!r})")


def mixed(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    share = fraction(rng)
    one, other = one_of(a, rng), one_of(b, rng)
    shares = EXACT.mpf(share), 1 - EXACT.mpf(share)
    # Which of the two it was may be seen.
    pair = Pair(
        *(
            tuple(shares[0] * mass for mass in x) + tuple(shares[1] * mass for mass in y)
            for x, y in ((one.p, other.p), (one.q, other.q))
        )
    )
    claim = mixture([a.claim, b.claim], [share, 1.0 - share])
    return Mechanism(claim, (pair,), f"mixture({a.words}, {b.words}, {share!r})")


def either(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    return Mechanism(a.claim | b.claim, a.pairs + b.pairs, f"({a.words} | {b.words})")


def failing(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    chance = float(rng.choice([1e-9, 1e-4, 0.1]))
    lost = EXACT.mpf(chance)
    pair = one_of(a, rng)
    p, q = (tuple((1 - lost) * mass for mass in side) for side in (pair.p, pair.q))
    shown = Pair((*p, lost, ZERO), (*q, ZERO, lost))
    return Mechanism(with_failure(a.claim, chance), (shown,), f"with_failure({a.words}, {chance})")


def carried(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    claim = PrivacyProfile.from_dict(a.claim.to_dict())
    return Mechanism(claim, a.pairs, f"from_dict({a.words})")


def fraction(rng: np.random.Generator) -> float:
    return float(rng.choice([1e-3, 0.05, 0.3, 0.5, 0.9]))


# Searches -----------------------------------------------------------------------------------


def number_of_runs(rng: np.random.Generator) -> RunCountDistribution:
    return DISTRIBUTIONS[rng.integers(len(DISTRIBUTIONS))]


def selected(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    """Return the best of a random number of runs, for many scores of the outcomes."""
    distribution = number_of_runs(rng)
    run = one_of(a, rng)
    pairs = tuple(
        Pair(*(winner_masses(side, levels, distribution) for side in (run.p, run.q)))
        for levels in score_levels(run, rng)
    )
    bound = BOUNDS[rng.integers(len(BOUNDS))]
    try:
        claim = a.claim.selected(distribution, bound)
    except BoundNotApplicableError:
        claim = a.claim.selected(distribution)
    return Mechanism(claim, pairs, f"{a.words}.selected({distribution}, {bound!r})")


def score_levels(run: Pair, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return scores of each outcome: all orders of few, else by loss, and some at random."""
    size = len(run)
    tied = [tuple(int(n) for n in rng.integers(0, size, size)) for _ in range(2)]
    if size <= FEW_OUTCOMES:
        return list(itertools.permutations(range(size))) + tied
    by_loss = sorted(range(size), key=lambda i: run.p[i] / (run.q[i] or EXACT.mpf("1e-50")))
    # Lowest: large losses but not the largest, then the largest, then the rest.
    top, middle = int(rng.integers(1, size)), int(rng.integers(1, size))
    falling = by_loss[::-1]
    adversary = falling[top : top + middle] + falling[:top] + falling[top + middle :]
    orders = [by_loss, falling, adversary, adversary[::-1]]
    return [tuple(order.index(i) for i in range(size)) for order in orders] + tied


def winner_masses(masses: Masses, levels: Sequence[int], distribution: Any) -> Masses:
    """Return the masses of what wins, and last that of no run; runs of one score share a win."""
    found = [ZERO] * len(masses)
    below, passed = ZERO, generating_function(distribution, ZERO)
    none = passed
    for level in sorted(set(levels)):
        members = [i for i, own in enumerate(levels) if own == level]
        mass = EXACT.fsum(masses[i] for i in members)
        below = min(below + mass, ONE)
        reached = generating_function(distribution, below)
        for i in members:
            found[i] = (reached - passed) * masses[i] / mass if mass else ZERO
        passed = reached
    return (*found, none)


def tuned(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    """Return a search on a sample, and the fit that follows it."""
    share, variant = fraction(rng), int(rng.integers(1, 3))
    search = one_of(a, rng)
    fits = adaptive(b, len(search), rng)
    seen, unseen = [fit.p for fit in fits], [fit.q for fit in fits]
    weight = EXACT.mpf(share)
    in_sample = joint(search.p, iter(unseen if variant == 1 else seen))
    outside = joint(search.q, iter(seen))
    pair = Pair(
        weighted([(weight, in_sample), (1 - weight, outside)]), joint(search.q, iter(unseen))
    )
    claim = tune_then_fit(a.claim, b.claim, share, variant)
    words = f"tune_then_fit({a.words}, {b.words}, {share!r}, {variant})"
    return Mechanism(claim, (pair,), words)


def on_split(a: Mechanism, b: Mechanism, rng: np.random.Generator) -> Mechanism:
    """Return a search on one split; a record that is scored on is seen by another mechanism."""
    validation = float(rng.choice([0.05, 0.3, 0.8]))
    tuning = (None, 0.5 * (1.0 - validation))[rng.integers(2)]
    variant = int(rng.integers(1, 3))
    trained = one_of(a, rng)
    # The same outcomes without the record, and other ones of it where it is scored on.
    tilts = [ONE + EXACT.mpf(float(x)) for x in rng.uniform(-0.1, 0.1, len(trained))]
    scored_p = scaled([mass * tilt for mass, tilt in zip(trained.q, tilts, strict=True)])
    scored = from_points(Pair(scored_p, trained.q), rng, "scored")
    fits = adaptive(b, len(trained), rng)
    seen, unseen = [fit.p for fit in fits], [fit.q for fit in fits]
    v = EXACT.mpf(validation)
    t = 1 - v if tuning is None else EXACT.mpf(tuning)
    leaves_out = tuning is not None and variant == 1
    places = [
        (v, joint(scored_p, iter(seen))),
        (t, joint(trained.p, iter(unseen if leaves_out else seen))),
        (1 - v - t, joint(trained.q, iter(seen))),
    ]
    pair = Pair(weighted(places), joint(trained.q, iter(unseen)))
    claim = search_on_split(
        a.claim,
        scored.claim,
        b.claim,
        validation_fraction=validation,
        tuning_fraction=tuning,
        variant=variant,
    )
    words = f"search_on_split({a.words}, {b.words}, {validation}, {tuning}, {variant})"
    return Mechanism(claim, (pair,), words)


# At random ----------------------------------------------------------------------------------

Operator = Callable[[Mechanism, Mechanism, np.random.Generator], Mechanism]
OPERATORS: tuple[Operator, ...] = (
    selected,
    selected,
    selected,
    composed,
    repeated,
    sampled,
    mixed,
    either,
    failing,
    carried,
    tuned,
    tuned,
    on_split,
)


def random_mechanism(rng: np.random.Generator, most_operators: int = 3) -> Mechanism:
    """Return a release to which at most this number of operators was applied."""
    found = released(rng)
    for _ in range(rng.integers(0, most_operators + 1)):
        operator = OPERATORS[rng.integers(len(OPERATORS))]
        other = released(rng) if rng.random() < 0.7 else selected(released(rng), found, rng)
        a, b = (found, other) if rng.random() < 0.7 else (other, found)
        made = operator(a, b, rng)
        if len(made) <= MOST_OUTCOMES:
            found = made
    return found
