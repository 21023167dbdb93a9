"""Tiny adaptive interactions by the hundred thousand, each against an independent oracle.

All outcomes of all policies of small pairs are enumerated by array operations over many cases at
once, and each statement breaks when it is changed a little. What the package decides, whether a
curve covers a profile and whether a release on parts fits, is compared with closed forms and exact
fractions. By day a few hundred cases run; ``-m slow`` runs 100,000 of each theorem.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile, SharedCurve
from skdptune.ledger._books import Charges, State, Ways

# An interaction stops after this many releases at most.
DEEPEST = 3
# Cases that are computed together, and their number by day and by night, in four shifts.
CHUNK, DAY, NIGHT, SHIFTS = 5_000, 400, 100_000, 4
POINTS = np.array([0.0, 0.2, 0.7, 1.5])
ALPHAS = np.exp(POINTS)

nights = [
    pytest.param(NIGHT // SHIFTS, 1 + each, marks=pytest.mark.slow) for each in range(SHIFTS)
]
sizes = pytest.mark.parametrize(("n_cases", "shift"), [(DAY, 0), *nights])


def chunks(n_cases, *seed):
    """Yield a generator and a number of cases for each chunk."""
    for index, start in enumerate(range(0, n_cases, CHUNK)):
        yield np.random.default_rng([*seed, index]), min(CHUNK, n_cases - start)


def drawn_pairs(rng, n_cases, n_outcomes):
    """Return distributions p and q over a few outcomes, some of them with infinite losses."""
    spread = rng.choice([0.3, 1.0, 5.0], size=(n_cases, 1))
    p, q = (rng.gamma(spread, size=(n_cases, n_outcomes)) + 1e-9 for _ in range(2))
    lost = rng.random((n_cases, n_outcomes)) < 0.05
    p, q = np.where(lost, 0.05 * p, p), np.where(lost, 0.0, q)
    q[:, 0] += 1e-6
    return p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)


def garbled(rng, pair):
    """Return what random functions make of pairs: never above them, by post-processing."""
    n_cases, n_outcomes = pair[0].shape
    noise = rng.gamma(0.5, size=(n_cases, n_outcomes, n_outcomes)) + 1e-12
    noise /= noise.sum(2, keepdims=True)
    return tuple(np.einsum("no,nom->nm", side, noise) for side in pair)


def hockey_stick(p, q, alphas):
    """Return the sum of the positive parts of p - alpha q: one row for each case."""
    return np.maximum(p[:, None, :] - alphas[..., None] * q[:, None, :], 0.0).sum(2)


def composed(pair, count):
    """Return the masses of independent copies: the product of all outcomes."""
    p, q = (np.ones((len(side), 1)) for side in pair)
    for _ in range(count):
        p, q = (
            np.einsum("na,nb->nab", mine, side).reshape(len(side), -1)
            for mine, side in zip((p, q), pair, strict=True)
        )
    return p, q


def worst(pairs, left, alphas):
    """Return the largest divergence over all policies: each choice follows the outcomes so far.

    ``alphas`` has a row for each case, and ``H_alpha`` of the rest after an outcome y is taken at
    ``alpha q(y) / p(y)``.
    """
    stopped = np.maximum(1.0 - alphas, 0.0)
    if left == 0:
        return stopped
    found = stopped
    for p, q in pairs:
        total = np.zeros_like(alphas)
        for a, b in zip(p.T, q.T, strict=True):
            ratio = np.divide(b, a, out=np.zeros_like(a), where=a > 0.0)
            total += a[:, None] * worst(pairs, left - 1, alphas * ratio[:, None])
        found = np.maximum(found, total)
    return found


def both(pair):
    """Return the pair and its mirror image: the two directions."""
    return pair, pair[::-1]


class TestCopies:
    """Theorem G7."""

    @sizes
    def test_no_policy_exceeds_the_copies(self, n_cases, shift):
        counted = 0
        for rng, size in chunks(n_cases, 1, shift):
            first = drawn_pairs(rng, size, 3)
            others = [garbled(rng, first) for _ in range(2)]
            alphas = np.tile(ALPHAS, (size, 1))
            count = int(rng.integers(1, DEEPEST + 1))
            for direction in range(2):
                pairs = [both(pair)[direction] for pair in (first, *others)]
                bound = hockey_stick(*composed(pairs[0], count), alphas)
                assert np.all(worst(pairs, count, alphas) <= bound + 1e-11)
                # Copies of the curve itself attain it.
                alone = worst(pairs[:1], count, alphas)
                assert np.allclose(alone, bound, rtol=1e-9, atol=1e-11)
            counted += size
        assert counted == n_cases

    def test_a_release_above_the_curve_breaks_the_bound(self):
        rng = np.random.default_rng(0)
        first, above = drawn_pairs(rng, DAY, 3), drawn_pairs(rng, DAY, 3)
        alphas = np.tile(ALPHAS, (DAY, 1))
        bound = hockey_stick(*composed(first, 2), alphas)
        assert np.mean(np.any(worst([first, above], 2, alphas) > bound + 1e-6, axis=1)) > 0.3


class TestSharedCurve:
    """Theorem T4."""

    @sizes
    def test_candidates_below_a_curve_cost_no_more_in_a_selection_or_a_composition(
        self, n_cases, shift
    ):
        """The best of K runs, K drawn first; which candidate runs may follow from K."""
        for rng, size in chunks(n_cases, 2, shift):
            curve = drawn_pairs(rng, size, 3)
            candidates = [garbled(rng, curve) for _ in range(2)]
            alphas = np.tile(ALPHAS, (size, 1))
            chances = rng.dirichlet([1.0, 1.0], size=size)
            for direction in range(2):
                above, *below = (both(pair)[direction] for pair in (curve, *candidates))
                # A public mixture over the number of runs bounds what only their best shows.
                bound = sum(
                    chances[:, [k - 1]] * hockey_stick(*composed(above, k), alphas) for k in (1, 2)
                )
                mixed = sum(chances[:, [k - 1]] * worst(below, k, alphas) for k in (1, 2))
                assert np.all(mixed <= bound + 1e-11)
                share = rng.uniform(0.05, 1.0, size=(size, 1))
                for p, q in below:
                    sampled = hockey_stick(share * p + (1.0 - share) * q, q, alphas)
                    p_above, q_above = above
                    limit = hockey_stick(
                        share * p_above + (1.0 - share) * q_above, q_above, alphas
                    )
                    assert np.all(sampled <= limit + 1e-11)
                    # Selection: the higher of two scores, which are the places of outcomes.
                    assert np.all(
                        hockey_stick(best_of_two(p), best_of_two(q), alphas)
                        <= hockey_stick(*composed(above, 2), alphas) + 1e-11
                    )

    @sizes
    def test_what_the_package_covers_lies_below_in_closed_form(self, n_cases, shift):
        """Fifty responses for each curve: none above it is covered, none below it refused."""
        rng, points = np.random.default_rng([4, shift]), np.linspace(0.0, 4.0, 401)
        seen = set()
        for index in range(n_cases // 50):
            failure = rng.choice([0.0, 1e-7, 1e-3])
            shape = PrivacyProfile.pure(rng.uniform(0.05, 2.0))
            if index % 2:
                epsilons = np.cumsum(rng.uniform(0.05, 1.0, 4))
                deltas = np.sort(rng.uniform(0.0, 0.3, 4))[::-1] * [1.0, 1.0, 1.0, 0.0]
                shape = PrivacyProfile.from_curve(epsilons, deltas, discretization=0.02)
            curve = SharedCurve(0.1, failure, shape)
            above = np.minimum(shape.delta(points) + failure, 1.0)
            for epsilon, delta in zip(
                rng.uniform(0.01, 2.0, 50), rng.choice([0.0, 1e-8, 1e-3, 2e-3], 50), strict=True
            ):
                found = curve.covers(PrivacyProfile.approximate(epsilon, delta))
                exact = delta + (1.0 - delta) * response(epsilon, points)
                is_below = np.all(exact * 1.001 + 1e-9 <= above)
                if found:
                    assert np.all(exact <= above * (1.0 + 1e-9) + 1e-13)
                else:
                    assert not is_below or delta > failure
                seen.add(found)
        assert seen == {True, False}

    def test_a_candidate_above_the_curve_breaks_the_bound(self):
        rng = np.random.default_rng(1)
        curve, above = drawn_pairs(rng, DAY, 3), drawn_pairs(rng, DAY, 3)
        alphas = np.tile(ALPHAS, (DAY, 1))
        bound = hockey_stick(*composed(curve, 2), alphas)
        assert np.mean(np.any(worst([above], 2, alphas) > bound + 1e-6, axis=1)) > 0.3


def response(epsilon, points):
    """Return the hockey-stick divergence of randomised response, in closed form."""
    high = 1.0 / (1.0 + np.exp(-epsilon))
    return np.maximum(high - np.exp(points) * (1.0 - high), 0.0)


def best_of_two(masses):
    """Return the distribution of the larger of two independent outcomes."""
    steps = np.cumsum(masses, axis=1) ** 2
    return np.diff(steps, axis=1, prepend=0.0)


class TestDisjointParts:
    """Theorem H5."""

    def spent(self, rng, size, n_paying):
        """Return the worst divergence of policies whose releases read parts, by the record's part.

        A release on another part has the same distribution on both data sets. It is free for the
        record, but its outcome may decide what follows.
        """
        costly = drawn_pairs(rng, size, 2)
        p, _ = drawn_pairs(rng, size, 2)
        alphas = np.tile(ALPHAS, (size, 1))
        return costly, worst_in_parts(costly, (p, p), (n_paying, 2), alphas)

    @sizes
    def test_a_record_pays_only_for_what_reads_its_part(self, n_cases, shift):
        for rng, size in chunks(n_cases, 3, shift):
            n_paying = int(rng.integers(0, 3))
            costly, found = self.spent(rng, size, n_paying)
            alphas = np.tile(ALPHAS, (size, 1))
            bound = hockey_stick(*composed(costly, n_paying), alphas)
            assert np.all(found <= bound + 1e-11)
            assert np.allclose(found, bound, rtol=1e-9, atol=1e-11)

    @sizes
    def test_books_admit_what_every_part_that_pays_can_bear(self, n_cases, shift):
        """Up to eight requests on random parts; the oracle adds exact fractions for each part."""
        rng, ways, names = np.random.default_rng([5, shift]), Ways.shares_alone(1.0, 0.0), "abc"
        refused = 0
        for _ in range(n_cases):
            state, sums = State(), dict.fromkeys([*names, "none"], Fraction(0))
            for share in rng.choice([0.25, 0.3, 0.5, 1.0], size=int(rng.integers(2, 9))):
                parts = [name for name in names if rng.random() < 0.4]
                paying = parts or list(sums)
                after = state.changed(Charges(float(share), 0.0, 0.0), parts)
                admitted = all(map(ways.admits, after.totals_in(parts)))
                exact = all(sums[name] + Fraction(float(share)) <= 1 for name in paying)
                assert admitted == exact
                if admitted:
                    state = after
                    for name in paying:
                        sums[name] += Fraction(float(share))
                else:
                    refused += 1
        assert refused > 0

    def test_parts_that_pay_for_one_release_less_break_the_bound(self):
        costly, found = self.spent(np.random.default_rng(2), DAY, 2)
        bound = hockey_stick(*composed(costly, 1), np.tile(ALPHAS, (DAY, 1)))
        assert np.mean(np.any(found > bound + 1e-6, axis=1)) > 0.3


def worst_in_parts(costly, free, left, alphas):
    """Return the largest divergence for numbers of releases on the record's and on other parts."""
    found = np.maximum(1.0 - alphas, 0.0)
    for place, (p, q) in enumerate((costly, free)):
        if left[place] == 0:
            continue
        after = tuple(number - (index == place) for index, number in enumerate(left))
        total = np.zeros_like(alphas)
        for a, b in zip(p.T, q.T, strict=True):
            ratio = np.divide(b, a, out=np.zeros_like(a), where=a > 0.0)
            total += a[:, None] * worst_in_parts(costly, free, after, alphas * ratio[:, None])
        found = np.maximum(found, total)
    return found
