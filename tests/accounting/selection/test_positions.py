"""Bounds in which every position is used only once: against every order, and beside the envelope.

Theorem S6.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdptune.accounting import (
    Binomial,
    Geometric,
    Poisson,
    PrivacyProfile,
    TruncatedNegativeBinomial,
    selection_lower_bound,
)
from skdptune.accounting._profile import sides_of
from skdptune.accounting._selection import _bounds
from skdptune.accounting._selection._envelope import Envelope, PricedEnvelope, _best_path, _Edges
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
    """Return what Theorem S1 says by itself, the worse of both directions."""
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
    """Runs that cost as much as the first column says under the envelope alone.

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
            (Binomial(10, 1.0), 0.288, 0.985),
            (Binomial(100, 1.0), 0.136, 0.90),
            (Binomial(100, 0.5), 0.188, 0.97),
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
        compared, worst = violations(np.random.default_rng(20250611), 36)
        assert compared > 5000
        assert worst <= ROUNDING

    @pytest.mark.slow
    def test_a_hundred_thousand_orders(self):
        compared, worst = violations(np.random.default_rng(606), 240)
        assert compared > 10**5
        assert worst <= ROUNDING

    @given(oracles.pairs_on_grid(), crowded)
    @settings(max_examples=30)
    def test_every_order_of_halves_on_the_grid(self, pair, distribution):
        halves = oracles.split(pair, 2 if pair.p.size <= 3 else 1)
        profile = oracles.profile_of(pair, STEP)
        for direction in DIRECTIONS:
            exact = oracles.deltas_of_all_orders(halves.one_way(direction), distribution, EPSILONS)
            bound = oracles.selection_delta(profile, distribution, EPSILONS, direction, "envelope")
            assert (exact.max(axis=0) * (1 - 1e-9) - ROUNDING <= bound).all()

    @pytest.mark.parametrize("distribution", [Poisson(100.0), Binomial(30, 1.0)], ids=str)
    @pytest.mark.parametrize("mu", [0.05, 0.3])
    def test_gaussian_runs_whose_output_is_only_seen_in_bins(self, mu, distribution):
        edges = np.concatenate([[np.inf], np.linspace(mu + 9.0, -9.0, 3000), [-np.inf]])
        p, q = (-np.diff(stats.norm.cdf(edges - shift)) for shift in (mu, 0.0))
        bins = Pair(p / p.sum(), q / q.sum())
        found = oracles.epsilon_under_adversary(bins, distribution, 1e-4)
        claimed = PrivacyProfile.gaussian(mu).selected(distribution).epsilon(1e-4)
        assert 0.7 * claimed < found <= claimed

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
    @settings(max_examples=60)
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

    @given(
        oracles.pairs_on_grid(),
        crowded,
        st.lists(st.floats(-6.0, 4.0), min_size=1, max_size=6),
    )
    @settings(max_examples=40)
    def test_the_integral_of_the_prices_is_not_below_a_dense_sum(self, pair, distribution, logs):
        profile = oracles.profile_of(pair, STEP)
        envelope = Envelope(*oracles.directed(profile, "remove"), distribution)
        slopes = np.sort(np.exp(logs))
        parts = np.full(slopes.size, distribution.mean / slopes.size)
        edges = _Edges(*(np.append(0.0, np.cumsum(part)) for part in (parts, parts * slopes)))
        got = envelope.positions()._integrand.of(edges, math.inf)
        shares = (np.arange(200) + 0.5) / 200
        total = 0.0
        for a0, a1, b0, b1 in envelope._cells.T:
            x = distribution.pgf_derivative(np.minimum(a0 + shares * (a1 - a0), 1.0))
            y = distribution.pgf_derivative(np.minimum(b0 + shares * (b1 - b0), 1.0))
            prices = np.maximum(x - np.interp(y, edges.y, edges.x), 0.0)
            total += float(prices.mean()) * (a1 - a0)
        assert total * (1 - 1e-5) - 1e-12 <= got <= 1.02 * total + 1e-6

    @pytest.mark.parametrize("distribution", CROWDED, ids=str)
    def test_no_prices_give_the_envelope(self, distribution):
        own, other = sides_of(PrivacyProfile.gaussian(0.4))
        envelope = Envelope(own, other, distribution)
        hull = envelope.positions()._hull
        assert envelope.positions()._integrand.of(hull, 0.0) <= 1e-15
        # Where outcomes want all positions, what is rounded up is all there is.
        assert envelope.positions()._integrand.of(hull, math.inf) <= 2e-3 * distribution.mean
        logs = np.log(np.maximum(np.diff(hull.y) / np.diff(hull.x), 1e-300))
        free = PricedEnvelope(0.0, 0.0, logs, np.diff(hull.x), own, other)
        expected = envelope.delta(EPSILONS)
        got = free.delta(EPSILONS)
        assert (got >= expected * (1 - 1e-9)).all()
        assert (got <= expected * (1 + 2e-3) + 1e-15).all()


class TestInvariants:
    """Theorem S6: never worse than the envelope, and a curve like any other."""

    RUNS = {
        "gaussian": PrivacyProfile.gaussian(0.2),
        "approximate": PrivacyProfile.approximate(0.5, 1e-7),
        "pure": PrivacyProfile.pure(0.3),
        "sampled": PrivacyProfile.gaussian(1.2).subsampled(0.1),
    }

    @pytest.mark.parametrize(("name", "distribution"), few(12, RUNS, CROWDED))
    def test_never_worse_than_the_envelope(self, name, distribution, monkeypatch):
        run = self.RUNS[name]
        selected = run.selected(distribution)
        monkeypatch.setattr(_bounds, "_is_crowded", lambda _: False)
        alone = run.selected(distribution)
        for direction in DIRECTIONS:
            got = selected.delta(EPSILONS, direction=direction)
            most = alone.delta(EPSILONS, direction=direction)
            assert (got <= most * (1 + 1e-9) + 1e-12).all()

    @pytest.mark.parametrize("name", RUNS)
    @pytest.mark.parametrize("distribution", [Poisson(60.0), Binomial(20, 1.0)], ids=str)
    def test_falls_and_is_convex_in_the_exponential_of_epsilon(self, name, distribution):
        selected = self.RUNS[name].selected(distribution)
        alphas = np.linspace(0.02, 8.0, 400)
        for direction in DIRECTIONS:
            heights = selected.delta(np.log(alphas), direction=direction)
            assert np.diff(heights).max() <= 1e-7
            assert np.diff(heights, 2).min() >= -1e-7

    def test_the_end_of_a_pure_guarantee_stays(self):
        run, distribution = PrivacyProfile.pure(0.3), Poisson(20.0)
        curve = Envelope(*sides_of(run), distribution)
        got = run.selected(distribution).epsilon(0.0)
        assert got == pytest.approx(curve.top, rel=2e-3)

    @pytest.mark.parametrize(
        ("run", "distribution"),
        few(
            12,
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

    def test_heavy_tails_are_spared_the_search(self):
        """Prices save nothing there, and nothing is spent on them."""
        assert not _bounds._is_crowded(Geometric(0.05))
        assert not _bounds._is_crowded(TruncatedNegativeBinomial(0.5, 0.01))
        assert _bounds._is_crowded(TruncatedNegativeBinomial(60.0, 0.5))


class TestSearch:
    """The search for good prices, which no guarantee depends on."""

    def test_best_path_is_the_best_of_all(self):
        rng = np.random.default_rng(5)
        worth = rng.random((4, 3, 5))
        found = _best_path(worth)
        rows = np.arange(4)
        for column in range(3):
            every = [
                sum(worth[rows, column, path])
                for path in itertools.combinations_with_replacement(range(5), 4)
            ]
            path = found[:, column]
            assert (np.diff(path) >= 0).all()
            assert sum(worth[rows, column, path]) == pytest.approx(max(every))

    @given(
        st.lists(
            st.integers(-8000, 8000).map(lambda step: step / 1000.0),
            min_size=1,
            max_size=30,
            unique=True,
        ),
        st.lists(st.floats(1e-3, 1.0), min_size=30, max_size=30),
    )
    def test_fewer_lines_lie_just_below_all(self, logs, parts):
        slopes, widths = np.sort(np.exp(logs)), np.array(parts[: len(logs)])
        x, y = (np.append(0.0, np.cumsum(part)) for part in (widths, widths * slopes))
        fewer = _Edges.around(slopes, widths)
        points = np.linspace(0.0, x[-1], 500)
        got, exact = fewer.at(points), np.interp(points, x, y)
        assert (got <= exact * (1 + 1e-9)).all()
        assert (got >= exact * (1 - 0.03)).all()
        assert (np.diff(np.diff(fewer.y) / np.diff(fewer.x)) >= 0.0).all()
