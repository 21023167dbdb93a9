"""Slow oracles: small discrete mechanisms, enumerated, and formulas as printed.

The only code shared with the package are the generating functions of the number of runs, and
functions that read a profile, or a bound at single points. Tests import these from here. A `Pair`
holds the
output distributions of one run on two neighbouring data sets; direction *remove* reads it as
``(P, Q)``, direction *add* as ``(Q, P)``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    TruncatedNegativeBinomial,
)
from skdptune.accounting._curves import Halves  # noqa: F401
from skdptune.accounting._envelope import Envelope
from skdptune.accounting._profile import as_given
from skdptune.accounting._renyi import ORDERS  # noqa: F401
from skdptune.accounting._selection_bounds import Run, bound_curves

# Distributions of every kind: heavy and light tails, with and without the empty search.
DISTRIBUTIONS = [
    Geometric(0.1),
    Geometric(0.01),
    Logarithmic(0.02),
    TruncatedNegativeBinomial(0.5, 0.05),
    TruncatedNegativeBinomial(-0.5, 0.01),
    TruncatedNegativeBinomial(3.0, 0.2),
    Poisson(0.4),
    Poisson(3.0),
    Poisson(20.0),
    Binomial(1, 0.4),
    Binomial(1, 1.0),
    Binomial(4, 1.0),
    Binomial(12, 0.6),
]


@dataclass(frozen=True)
class Pair:
    """Masses ``p`` and ``q`` of the same outcomes; either may be zero."""

    p: np.ndarray
    q: np.ndarray

    @property
    def mirrored(self):
        return Pair(self.q, self.p)

    def one_way(self, direction):
        return self if direction == "remove" else self.mirrored


def hockey_stick(pair, epsilon):
    """Return ``sum [p - exp(epsilon) q]_+``, epsilon of any sign."""
    return float(np.maximum(pair.p - np.exp(epsilon) * pair.q, 0.0).sum())


def hockey_sticks(pair, epsilons):
    """Return the same for several epsilons."""
    return np.maximum(pair.p - np.exp(epsilons)[:, None] * pair.q, 0.0).sum(axis=1)


def pair_on_grid(losses, weights, base=0.0):
    """Return a pair with these finite losses, the rest of each mass where the other has none.

    At least ``base`` of each is left for those two outcomes; with ``base = 0`` one is empty.
    """
    q = np.asarray(weights, dtype=float)
    p = q * np.exp(losses)
    scale = (1.0 - base) / max(p.sum(), q.sum())
    p, q = scale * p, scale * q
    only_p, only_q = max(1.0 - p.sum(), 0.0), max(1.0 - q.sum(), 0.0)
    return Pair(np.append(p, [only_p, 0.0]), np.append(q, [0.0, only_q]))


def pair_with_losses(rises, falls):
    """Return a pair without infinite losses, from weighted positive and negative losses.

    The weights of each sign keep their proportions; their totals follow from both sums being 1.
    """
    losses = np.concatenate([[loss for loss, _ in rises], [loss for loss, _ in falls]])
    weights = np.concatenate([[weight for _, weight in rises], [weight for _, weight in falls]])
    up = losses > 0.0
    sums = np.array(
        [
            [weights[up].sum(), weights[~up].sum()],
            [(weights * np.exp(losses))[up].sum(), (weights * np.exp(losses))[~up].sum()],
        ]
    )
    scale = np.linalg.solve(sums, [1.0, 1.0])
    q = weights * np.where(up, scale[0], scale[1])
    return Pair(q * np.exp(losses), q)


def randomised_response(epsilon):
    return pair_with_losses([(epsilon, 1.0)], [(-epsilon, 1.0)])


def profile_of(pair, step, size=None):
    """Return the least profile above the pair's hockey-stick curve that knows only a grid.

    It is the pair itself if all finite losses lie on the grid.
    """
    finite = (pair.p > 0.0) & (pair.q > 0.0)
    losses = np.log(pair.p[finite] / pair.q[finite])
    if size is None:
        size = int(np.ceil(np.abs(losses).max(initial=step) / step - 1e-9)) + 1
    grid = step * np.arange(size)
    halves = (hockey_sticks(side, grid) for side in (pair, pair.mirrored))
    return PrivacyProfile._of(as_given, Halves(step, *halves), None)


def profile_by_curve(pair, points, discretization):
    """Return the profile that the public constructor makes of exact values of the curve."""
    remove, add = (hockey_sticks(side, points) for side in (pair, pair.mirrored))
    return PrivacyProfile.from_curve(points, remove, deltas_add=add, discretization=discretization)


# Random pairs ----------------------------------------------------------------------------

# 1e-4 * 2**10: the grid of a selection's result contains it.
STEP = 0.1024


@st.composite
def pairs_on_grid(draw, step=STEP):
    """Draw up to five outcomes whose finite losses are multiples of the step."""
    steps = draw(st.lists(st.integers(-12, 12), min_size=1, max_size=3, unique=True))
    logs = draw(st.lists(st.floats(-14, 0), min_size=len(steps), max_size=len(steps)))
    base = draw(st.sampled_from([0.0, 0.0, 1e-4, 0.05, 0.4]))
    return pair_on_grid(step * np.array(steps), np.exp(logs), base)


@st.composite
def finite_pairs(draw, step=STEP):
    """Draw four outcomes with finite losses on the grid, of either sign, rare ones included."""
    rises, falls = (
        draw(st.lists(st.integers(1, 12), min_size=2, max_size=2, unique=True)) for _ in range(2)
    )
    logs = np.exp(draw(st.lists(st.floats(-12, 0), min_size=4, max_size=4)))
    return pair_with_losses(
        list(zip(step * np.array(rises), logs[:2], strict=True)),
        list(zip(-step * np.array(falls), logs[2:], strict=True)),
    )


@st.composite
def any_pairs(draw, size=4):
    """Draw outcomes of any masses; some are impossible under one of the two distributions."""
    entries = st.one_of(st.floats(1e-6, 1.0), st.just(0.0))
    masses = []
    for _ in range(2):
        values = draw(st.lists(entries, min_size=size, max_size=size))
        values = np.array(values) + (0.0 if any(values) else 1.0)
        masses.append(values / values.sum())
    return Pair(*masses)


# Selection, exactly ----------------------------------------------------------------------


def winner_masses(masses, distribution):
    """Return the probabilities of the outcomes to be returned, lowest score first.

    Ties are broken by a uniform mark that is not shown. The first entry is the empty search.
    """
    cumulated = np.concatenate([[0.0], np.cumsum(masses, axis=-1)])
    return np.concatenate(
        [[distribution.pgf(0.0)], np.diff(distribution.pgf(np.clip(cumulated, 0.0, 1.0)))]
    )


def winner_masses_by_counts(masses, count_masses):
    """Return the same by summing over the number of runs: P(all <= i) - P(all < i)."""
    cumulated = np.concatenate([[0.0], np.cumsum(masses)])
    counts = np.arange(len(count_masses))
    powers = cumulated[:, None] ** counts
    return np.concatenate([[count_masses[0]], np.diff(powers, axis=0) @ count_masses])


def selection_delta(profile, distribution, epsilons, direction, bound):
    """Return what a bound of the package says at single points, without a grid in between."""
    run = Run(*directed(profile, direction), profile._renyi)
    (curve,) = bound_curves(run, distribution, bound)
    return np.minimum(curve.delta(np.asarray(epsilons, dtype=float)), 1.0)


def envelope_alone(profile, distribution, epsilons, direction):
    """Return the bound of Theorem S1, without the reduction by Theorem S6."""
    curve = Envelope(*directed(profile, direction), distribution)
    return np.minimum(curve.delta(np.atleast_1d(epsilons)), 1.0)


def directed(profile, direction):
    """Return a direction's own loss distribution and that of the other direction."""
    remove, add = profile._finite_sides
    return (remove, add) if direction == "remove" else (add, remove)


def selection_delta_of_order(pair, order, distribution, epsilon):
    """Return the exact delta of the search whose scores sort the outcomes in this order."""
    chosen = Pair(*(winner_masses(side[list(order)], distribution) for side in (pair.p, pair.q)))
    return hockey_stick(chosen, epsilon)


def split(pair, pieces):
    """Return the pair with every outcome cut into equal ones that the output reveals."""
    return Pair(np.repeat(pair.p, pieces) / pieces, np.repeat(pair.q, pieces) / pieces)


def every_order(size):
    """Return all orders of the scores, one per row, lowest score first."""
    return np.array(list(itertools.permutations(range(size))))


def deltas_of_all_orders(pair, distribution, epsilons, orders=None):
    """Return the exact deltas, one row per order of the scores, one column per epsilon."""
    orders = every_order(pair.p.size) if orders is None else orders
    chosen = []
    for masses in (pair.p, pair.q):
        cumulated = np.cumsum(masses[orders], axis=1)
        cumulated = np.clip(np.pad(cumulated, ((0, 0), (1, 0))), 0.0, 1.0)
        chosen.append(np.diff(distribution.pgf(cumulated), axis=1))
    none = distribution.pgf(0.0)
    columns = [
        np.maximum(chosen[0] - np.exp(e) * chosen[1], 0.0).sum(axis=1)
        + none * max(-np.expm1(e), 0.0)
        for e in epsilons
    ]
    return np.stack(columns, axis=1)


# The statements, as printed --------------------------------------------------------------


def naive_envelope(pair, distribution, epsilon, cell_points=4000):
    """Return Theorem S1's bound by trying many tests ``a``: never more than the supremum."""
    p, q = pair.p, pair.q
    with np.errstate(divide="ignore"):
        ratios = np.where(q > 0.0, p / np.where(q > 0.0, q, 1.0), np.where(p > 0, np.inf, 0.0))
    falling = np.argsort(-ratios, kind="stable")
    powers = np.concatenate([[0.0], np.cumsum(p[falling])])
    errors = np.concatenate([[0.0], np.cumsum(q[falling])])
    shares = np.concatenate(
        [np.linspace(0.0, 1.0, cell_points), 1.0 - np.geomspace(1e-13, 1.0, cell_points)]
    )
    a = np.concatenate([low + shares * (high - low) for low, high in itertools.pairwise(powers)])
    b = np.concatenate([low + shares * (high - low) for low, high in itertools.pairwise(errors)])
    # A power of 1 is reached without the outcomes that P never shows.
    reached = a < 1.0 - 1e-15
    a = np.append(a[reached], 1.0)
    b = np.append(b[reached], q[p > 0.0].sum())
    x, y = (distribution.pgf_derivative(np.minimum(values, 1.0)) for values in (a, b))
    total = distribution.mean * p[q == 0.0].sum() + distribution.pgf(0.0) * max(
        -np.expm1(epsilon), 0.0
    )
    for mass, ratio in zip(q, ratios, strict=True):
        if 0.0 < mass and ratio > 0.0:
            total += mass * max(float(np.max(x * ratio - np.exp(epsilon) * y)), 0.0)
    return total


def negative_binomial_formula(pair, distribution, epsilon, helpers, inner="other"):
    """Return the bound of Koskela, Redberg and Wang (2024), Theorem 5.2: the best helper's.

    ``inner`` says from which direction its inner delta is taken; only "other" is right.
    """
    side = pair.mirrored if inner == "other" else pair
    odds = (1.0 - distribution.gamma) / distribution.gamma
    shifts = [
        (distribution.eta + 1.0) * np.log(np.exp(hat) + odds * hockey_stick(side, hat))
        for hat in helpers
    ]
    return min(distribution.mean * hockey_stick(pair, epsilon - shift) for shift in shifts)


def poisson_formula(pair, distribution, epsilon):
    return distribution.mean * hockey_stick(
        pair, epsilon - distribution.mean * hockey_stick(pair, 0.0)
    )


def binomial_formula(pair, distribution, epsilon, helpers):
    n, p = distribution.trials, distribution.probability
    shifts = [
        (n - 1) * np.log(1 + p * np.expm1(hat) + p * hockey_stick(pair, hat) / (1 - p))
        for hat in helpers
    ]
    return min(distribution.mean * hockey_stick(pair, epsilon - shift) for shift in shifts)


def renyi_divergence(pair, order):
    """Return the Rényi divergence of a pair; infinite if the second misses an outcome."""
    used = pair.p > 0.0
    p, q = pair.p[used], pair.q[used]
    if np.any(q == 0.0):
        return np.inf
    return float(np.log(np.sum(np.exp(order * np.log(p) + (1 - order) * np.log(q)))) / (order - 1))


def renyi_formula(pair, distribution, epsilon, orders):
    """Return the delta that Papernot and Steinke's theorems prove of a pair, both directions."""
    curve = np.array(
        [max(renyi_divergence(side, order) for side in (pair, pair.mirrored)) for order in orders]
    )
    if isinstance(distribution, Poisson):
        hats = np.log1p(1 / (orders - 1))
        extra = distribution.mean * np.array(
            [max(hockey_stick(side, hat) for side in (pair, pair.mirrored)) for hat in hats]
        )
    else:
        cost_of = (1 - 1 / orders) * curve - np.log(distribution.gamma) / orders
        extra = (1 + distribution.eta) * cost_of.min()
    selected = curve + extra + np.log(distribution.mean) / (orders - 1)
    log_deltas = (orders - 1) * (selected - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return float(np.exp(min(log_deltas.min(), 0.0)))


# An adversary against a long list of outcomes --------------------------------------------


def pair_of(profile, direction, outcomes=3000):
    """Return the discretised pair of a profile, largest loss first, neighbours merged."""
    own, other = directed(profile, direction)
    above, below = own.positive_masses, other.positive_masses
    p = np.concatenate([above[::-1], below * np.exp(-other.step * np.arange(1, below.size + 1))])
    q = np.concatenate([(above * np.exp(-own.step * np.arange(1, above.size + 1)))[::-1], below])
    p, q = (np.insert(side, above.size, max(1.0 - side.sum(), 0.0)) for side in (p, q))
    starts = np.arange(0, p.size, -(-p.size // outcomes))
    p, q = (np.add.reduceat(side, starts) for side in (p, q))
    return Pair(p / p.sum(), q / q.sum())


def epsilon_under_adversary(pair, distribution, delta, tails=12, remainders=30):
    """Return the largest epsilon of a search over a few hundred orders of falling-loss outcomes.

    Lowest score: all but the largest losses, up to a remainder; then the largest; then the rest.
    """
    cumulated = np.cumsum(pair.p)
    best = 0.0
    for tail in np.geomspace(delta / distribution.mean, 0.5, tails):
        for remainder in np.geomspace(1e-2 / distribution.mean, 1.0, remainders):
            start, stop = np.searchsorted(cumulated, [tail, 1.0 - remainder + tail])
            order = np.r_[start:stop, :start, stop : pair.p.size]
            if stop > start:
                best = max(best, _epsilon(pair, order, distribution, delta, best))
    return best


def _epsilon(pair, order, distribution, delta, low):
    chosen = Pair(*(winner_masses(side[order], distribution) for side in (pair.p, pair.q)))
    if hockey_stick(chosen, low) <= delta:
        return low
    high = low + 20.0
    while high - low > 1e-5:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if hockey_stick(chosen, middle) > delta else (low, middle)
    return low
