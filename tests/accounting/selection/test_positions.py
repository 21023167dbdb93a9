"""Components of the envelope: cells of the trade-off curve, and positions used only once.

Theorem S2, Theorem S6.
"""

import itertools
import math

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
    selection_lower_bound,
)
from skdptune.accounting._envelope import Envelope, PricedEnvelope, _Edges
from tests.accounting import oracles
from tests.accounting.cases import few
from tests.accounting.oracles import STEP, Pair

DIRECTIONS = ("remove", "add")
CROWDED = [
    Poisson(0.7),
    Poisson(5.0),
    Poisson(30.0),
    Poisson(200.0),
    Binomial(2, 1.0),
    Binomial(5, 1.0),
    Binomial(40, 1.0),
    Binomial(150, 0.6),
    TruncatedNegativeBinomial(60.0, 0.5),
]
EPSILONS = np.concatenate([[0.0], np.geomspace(0.01, 8.0, 13)])
# Rounding of a mass by 1e-16 counts E[K] times, which is at most 200 here.
ROUNDING = 6e-14

crowded = st.sampled_from(CROWDED)


def envelope_epsilon(profile, distribution, delta):
    """Return the bound of Theorem S1, the worse of both directions."""
    found = 0.0
    for direction in DIRECTIONS:
        curve = Envelope(*oracles.directed(profile, direction), distribution)
        low, high = 0.0, curve.top
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            is_below = float(curve.delta(np.array([middle]))[0]) <= delta
            low, high = (low, middle) if is_below else (middle, high)
        found = max(found, high)
    return found


def random_pair(rng):
    """Return three to five outcomes of any masses, some of them in only one distribution."""
    size = int(rng.integers(3, 6))
    p = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])))
    q = p * np.exp(rng.normal(scale=rng.choice([0.02, 0.1, 0.5, 2.0]), size=size))
    if rng.random() < 0.3:
        q[rng.integers(size)] = 0.0
    if rng.random() < 0.3:
        p[rng.integers(size)] = 0.0
    return Pair(p / p.sum(), q / q.sum())


def violations(rng, pairs):
    """Return how many orders were compared with the bound, and by how much one lies above."""
    compared, worst = 0, -math.inf
    for number in range(pairs):
        pair, distribution = random_pair(rng), CROWDED[number % len(CROWDED)]
        profile = oracles.profile_of(pair, 0.01 if rng.random() < 0.5 else STEP, size=800)
        selected = profile.selected(distribution)
        # Shown marks let the score tell apart equal outputs: the strongest adversaries.
        pieces = 2 if pair.p.size == 3 else 1
        split = oracles.split(pair, pieces)
        for direction in DIRECTIONS:
            one_way = split.one_way(direction)
            exact = oracles.deltas_of_all_orders(one_way, distribution, EPSILONS)
            gridded = selected.delta(EPSILONS, direction=direction)
            direct = oracles.selection_delta(
                profile, distribution, EPSILONS, direction, "envelope"
            )
            for bound in (gridded, direct):
                worst = max(worst, float((exact * (1.0 - 1e-9) - bound).max()))
            compared += exact.shape[0]
    return compared, worst


class TestTable:
    """Runs whose cost under the envelope is in the first column.

    Theorem S6. The second column was found by linear programming.
    """

    @pytest.mark.parametrize(
        ("mean", "alone", "expected", "below"),
        [
            (30, 1.0, 1.0, 0.95),
            (100, 1.0, 0.916, 0.80),
            (100, 4.0, 3.719, 3.3),
            (300, 1.0, 0.834, 0.72),
        ],
    )
    def test_epsilon_of_poisson_many_gaussian_runs(self, mean, alone, expected, below):
        mu = {
            (30, 1.0): 0.0753729,
            (100, 1.0): 0.0424427,
            (100, 4.0): 0.1527057,
            (300, 1.0): 0.0304272,
        }[mean, alone]
        run, distribution = PrivacyProfile.gaussian(mu), Poisson(mean)
        assert envelope_epsilon(run, distribution, 1e-6) == pytest.approx(alone, rel=1e-3)
        got = run.selected(distribution).epsilon(1e-6)
        assert expected * (1 - 1e-3) <= got <= expected * (1 + 3e-3)
        assert below <= selection_lower_bound(run, distribution, 1e-6) <= got

    @pytest.mark.parametrize(
        ("distribution", "mu", "most"),
        [
            (Binomial(3, 1.0), 0.478, 0.993),
            (Binomial(100, 1.0), 0.136, 0.90),
            (TruncatedNegativeBinomial.from_mean(100, 100.0), 0.170, 0.97),
        ],
        ids=str,
    )
    def test_a_number_of_runs_that_hardly_varies_costs_less_than_the_envelope(
        self, distribution, mu, most
    ):
        run = PrivacyProfile.gaussian(mu)
        got = run.selected(distribution).epsilon(1e-6)
        alone = envelope_epsilon(run, distribution, 1e-6)
        assert alone == pytest.approx(4.0, rel=1e-2)
        assert selection_lower_bound(run, distribution, 1e-6) <= got <= most * alone


class TestCoversEverySelection:
    """No score, order or direction of a small mechanism costs more than the bound.

    Theorem S6.
    """

    def test_a_few_thousand_orders(self):
        compared, worst = violations(np.random.default_rng(20250611), 15)
        assert compared > 2000
        assert worst <= ROUNDING

    @pytest.mark.slow
    def test_a_hundred_thousand_orders(self):
        compared, worst = violations(np.random.default_rng(606), 240)
        assert compared > 10**5
        assert worst <= ROUNDING

    @given(oracles.pairs_on_grid(), crowded)
    @settings(max_examples=10)
    def test_every_order_of_halves_on_the_grid(self, pair, distribution):
        halves = oracles.split(pair, 2 if pair.p.size <= 3 else 1)
        profile = oracles.profile_of(pair, STEP)
        for direction in DIRECTIONS:
            exact = oracles.deltas_of_all_orders(halves.one_way(direction), distribution, EPSILONS)
            bound = oracles.selection_delta(profile, distribution, EPSILONS, direction, "envelope")
            assert (exact.max(axis=0) * (1 - 1e-9) - ROUNDING <= bound).all()

    def test_the_prices_are_charged_for(self):
        """Without the integral of the prices the bound would be too small."""
        pair, distribution = oracles.randomised_response(1.0), Poisson(30.0)
        profile = oracles.profile_of(pair, 1.0)
        curve = Envelope(*oracles.directed(profile, "remove"), distribution)
        epsilon = np.array([1.5])
        (priced,) = curve.positions().priced(epsilon, curve.delta(epsilon))
        split = oracles.split(pair, 4)
        orders = np.array(list(itertools.permutations(range(8))))[::7]
        exact = oracles.deltas_of_all_orders(split, distribution, epsilon, orders=orders).max()
        whole = float(priced.delta(epsilon)[0])
        assert whole - priced.constant < exact < whole < 0.5 * float(curve.delta(epsilon)[0])


class TestAnyPrices:
    """However prices are chosen, the bound holds.

    Theorem S6.
    """

    @given(
        oracles.pairs_on_grid(),
        crowded,
        st.lists(st.floats(-6.0, 4.0), min_size=1, max_size=6),
        st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6),
    )
    @settings(max_examples=12)
    def test_random_convex_functions(self, pair, distribution, logs, widths):
        profile = oracles.profile_of(pair, STEP)
        for direction in DIRECTIONS:
            own, other = oracles.directed(profile, direction)
            positions = Envelope(own, other, distribution).positions()
            slopes, parts = np.sort(np.exp(logs)), np.array(widths[: len(logs)])
            parts *= distribution.mean / parts.sum()
            edges = _Edges(*(np.append(0.0, np.cumsum(part)) for part in (parts, parts * slopes)))
            constant = positions._integrand.of(edges, math.inf)
            bound = PricedEnvelope(0.0, constant, np.log(slopes), parts, own, other)
            exact = oracles.deltas_of_all_orders(pair.one_way(direction), distribution, EPSILONS)
            short = exact.max(axis=0) * (1 - 1e-9) - ROUNDING - bound.delta(EPSILONS)
            assert short.max() <= 0.0


class TestInvariants:
    """Theorem S6: never worse than the envelope, and a curve like any other."""

    RUNS = {
        "gaussian": PrivacyProfile.gaussian(0.2),
        "approximate": PrivacyProfile.approximate(0.5, 1e-7),
        "pure": PrivacyProfile.pure(0.3),
        "sampled": PrivacyProfile.gaussian(1.2).subsampled(0.1),
    }

    @pytest.mark.parametrize(("name", "distribution"), few(9, RUNS, CROWDED))
    def test_never_worse_than_the_envelope(self, name, distribution, monkeypatch):
        run = self.RUNS[name]
        selected = run.selected(distribution)
        monkeypatch.setattr(Envelope, "positions", lambda self: None)
        alone = run.selected(distribution)
        for direction in DIRECTIONS:
            got = selected.delta(EPSILONS, direction=direction)
            most = alone.delta(EPSILONS, direction=direction)
            assert (got <= most * (1 + 1e-9) + 1e-12).all()

    @pytest.mark.parametrize(
        ("run", "distribution"),
        few(
            6,
            [
                PrivacyProfile.approximate(1.0, 1.0),
                PrivacyProfile.pure(0.0),
                PrivacyProfile.pure(600.0),
                PrivacyProfile.gaussian(1e-4),
                PrivacyProfile.from_curve([0.5, 1.0], [0.3, 1e-6], deltas_add=[1e-3, 0.0]),
            ],
            [
                Poisson(1e-6),
                Poisson(1e12),
                Binomial(1, 0.3),
                Binomial(10**9, 1.0),
                TruncatedNegativeBinomial(1e6, 0.5),
                TruncatedNegativeBinomial(50.0, 1e-100),
            ],
        ),
    )
    def test_extreme_runs_and_numbers_of_runs_have_a_curve(self, run, distribution):
        values = run.selected(distribution).delta([0.0, 1.0, 5.0])
        assert ((values >= 0.0) & (values <= 1.0)).all()
        assert (np.diff(values) <= 1e-12).all()


# Cells of the trade-off curve ------------------------------------------------------------


def test_one_outcome_of_large_mass_does_not_make_the_tangents_meet_far_below():
    """A cell with most of the mass is cut in the same way with and without many other cells."""
    alone = PrivacyProfile.approximate(1.0, 1e-7)
    among_others = alone | PrivacyProfile.gaussian(0.4)
    for distribution in (Poisson(100.0), Poisson(20.0), Geometric(0.01)):
        expected = alone.selected(distribution).epsilon(1e-2)
        got = among_others.selected(distribution).epsilon(1e-2)
        assert expected * (1 - 2e-3) <= got <= 1.05 * expected
