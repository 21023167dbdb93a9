"""Claims as lines, lower bounds on epsilon, and the power of audits."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.audit import _bounds as bounds
from skdptune.audit._bounds import AuditPower, ClaimCurve, gaussian_shift, power_of, read_claim
from tests.auditing import counted_epsilon, gaussian_epsilon


def stating(profile: PrivacyProfile, delta: float = 1e-5) -> Any:
    """Return what looks like a fitted estimator with a report."""
    return SimpleNamespace(privacy_=PrivacyReport(profile, delta, name="fit"))


def test_without_a_claim_the_larger_of_what_fits_state_is_tested() -> None:
    small, large = PrivacyProfile.gaussian(0.5), PrivacyProfile.gaussian(1.0)
    profile, delta = read_claim([stating(small), stating(large)], 10, None, None)
    assert delta == 1e-5
    assert profile.epsilon(1e-5) >= large.epsilon(1e-5)
    assert read_claim([stating(small)], 10, None, 1e-3) == (small, 1e-3)


RISK = 1e-5
BOUNDS = {"counts": counted_epsilon, "gaussian": gaussian_epsilon}


def normal_sides(mu: float, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(mu, 1.0, size), rng.normal(0.0, 1.0, size)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("mu", [0.0, 1.0, 2.0])
def test_bounds_are_below_the_truth_of_a_known_release(bound: str, mu: float) -> None:
    # Theorem A1, Theorem A2.
    truth = PrivacyProfile.gaussian(mu).epsilon(0.01)
    for seed in range(5):
        found = BOUNDS[bound](*normal_sides(mu, 2000, seed), 0.01, RISK)
        assert found <= truth
        assert found > (0.6 if bound == "gaussian" else 0.25) * truth or mu == 0.0


@pytest.mark.parametrize("size", [3, 40, 400])
@pytest.mark.parametrize("risk", [0.3, 0.05])
def test_a_normal_bound_is_that_of_the_noncentral_t_distribution(size: int, risk: float) -> None:
    # Theorem A2: a lower bound on ε where a statistic is normal.
    together, without = normal_sides(2.5, size, 1)
    found = gaussian_shift(together, without, risk)
    error, degrees = math.sqrt(2.0 / size), 2 * size - 2
    deviation = math.sqrt(0.5 * (together.var(ddof=1) + without.var(ddof=1)))
    seen = (together.mean() - without.mean()) / (deviation * error)
    # The tails of that distribution, by integrating over the estimated deviation: those of scipy
    # are not numbers at some places.
    law = stats.chi(degrees, scale=degrees**-0.5)

    def density(root: float) -> float:
        tails = stats.norm.cdf([found / error - seen * root, -found / error - seen * root])
        return float(law.pdf(root) * tails.sum())

    chance, _ = integrate.quad(density, 0.0, law.isf(1e-12), limit=200)
    assert chance == pytest.approx(risk, rel=1e-6)
    assert gaussian_shift(without, together, risk) == found
    assert gaussian_shift(together, together, risk) == 0.0


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("mu", "size", "delta"), [(1.0, 40, 0.1), (0.0, 400, 0.0)])
def test_bounds_hold_as_often_as_stated(bound: str, mu: float, size: int, delta: float) -> None:
    # Theorem A1, Theorem A2. At a risk that can be counted: three in ten. Where there is nothing,
    # an event that is counted on the fits that chose it shows, and so does a sign looked at.
    truth, n_audits = PrivacyProfile.gaussian(mu).epsilon(delta), 100
    wrong = sum(
        BOUNDS[bound](*normal_sides(mu, size, seed), delta, 0.3) > truth
        for seed in range(n_audits)
    )
    assert stats.binomtest(wrong, n_audits, 0.3, alternative="greater").pvalue > 1e-3


def test_intervals_are_those_of_binomial_tests() -> None:
    # Theorem A1: at the bound, this number of hits or more has half of the risk.
    likely, unlikely, n, risk = np.arange(0, 21, 4), np.arange(0, 21, 4)[::-1], 20, 0.1
    sizes = np.full(likely.size, n)
    found = bounds.intervals(bounds.Counts(likely, sizes, unlikely, sizes), risk)
    for hits, low in zip(likely, found.likely, strict=True):
        assert low == 0.0 if hits == 0 else stats.binom.sf(hits - 1, n, low) == pytest.approx(0.05)
    for hits, high in zip(unlikely, found.unlikely, strict=True):
        assert high == 1.0 if hits == n else stats.binom.cdf(hits, n, high) == pytest.approx(0.05)


def refutes(claim: ClaimCurve, sides: tuple[np.ndarray, np.ndarray], risk: float) -> bool:
    first, rest = [side[::2] for side in sides], [side[1::2] for side in sides]
    event = bounds.best_event(*first, risk, claim.deltas, claim.epsilons)
    return bounds.refutation_by(event, *rest, claim, risk) is not None


def test_a_true_claim_is_refuted_no_more_often_than_stated() -> None:
    # Theorem A1: however many points of the profile are compared.
    claim, n_audits = ClaimCurve(PrivacyProfile.gaussian(1.0), 1e-5), 200
    wrong = sum(refutes(claim, normal_sides(1.0, 100, seed), 0.2) for seed in range(n_audits))
    assert stats.binomtest(wrong, n_audits, 0.2, alternative="greater").pvalue > 1e-3


def test_a_whole_profile_is_refuted_where_its_epsilon_is_far_away() -> None:
    # Noise 40 % too small: epsilon at 1e-5 would take more fits than there are.
    claim, sides = ClaimCurve(PrivacyProfile.gaussian(1.0), 1e-5), normal_sides(1 / 0.6, 1500, 0)
    assert counted_epsilon(*sides, 1e-5, 0.05) < claim.epsilon
    assert refutes(claim, sides, 0.05)
    points = claim.deltas, claim.epsilons
    event = bounds.best_event(sides[0][::2], sides[1][::2], 0.05, *points)
    found = bounds.refutation_by(event, sides[0][1::2], sides[1][1::2], claim, 0.05)
    assert found is not None and found.delta > 0.01 and found.epsilon > found.claimed
    # It is a point of the claim.
    assert found.claimed == pytest.approx(claim.profile.epsilon(found.delta))


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("swap", [False, True])
def test_the_event_may_be_on_either_end_and_side(flip: bool, swap: bool) -> None:
    rare, common = np.zeros(1000), (np.arange(1000) % 4 < 2).astype(float)
    sides = (1.0 - rare, 1.0 - common) if flip else (rare, common)
    found = counted_epsilon(*(sides[::-1] if swap else sides), 0.0, RISK)
    assert 2.0 < found < math.log(500.0)


NOT_NORMAL: dict[str, Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    "other spread": lambda rng: (rng.normal(0, 2, 1000), rng.normal(0, 1, 1000)),
    "heavy tails": lambda rng: (rng.laplace(size=1000), rng.laplace(size=1000)),
    "few values": lambda rng: (rng.integers(0, 2, 1000) * 1.0, rng.integers(0, 2, 1000) * 1.0),
    "failures": lambda rng: (np.append(rng.normal(size=99), -math.inf), rng.normal(size=99)),
}


@pytest.mark.parametrize("kind", NOT_NORMAL)
def test_what_is_not_normal_is_noticed(kind: str) -> None:
    # Theorem A2: a lower bound on ε where a statistic is normal.
    with np.errstate(invalid="ignore"):
        assert bounds.normality(*NOT_NORMAL[kind](np.random.default_rng(0))) < 1e-6


def test_what_is_normal_is_rarely_doubted() -> None:
    doubted = sum(bounds.normality(*normal_sides(1.0, 200, seed)) < 0.05 for seed in range(200))
    assert stats.binomtest(doubted, 200, 0.05, alternative="greater").pvalue > 1e-3


CLAIM = ClaimCurve(PrivacyProfile.gaussian(1.0), 1e-5)


def sides(shift: float, size: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(shift, 1.0, size), rng.normal(0.0, 1.0, size)


def refutes_if_normal(together: np.ndarray, without: np.ndarray) -> bool:
    """The audit of a normal statistic."""
    return gaussian_shift(together, without, 0.05) > 1.0


def found(shift: float, n_pairs: int) -> AuditPower:
    return power_of(*sides(shift), n_pairs, CLAIM, refutes_if_normal)


def share_of_audits(factor: float, n_pairs: int) -> float:
    rng, hits = np.random.default_rng(1), 0
    for _ in range(200):
        together = rng.normal(1.0, factor, n_pairs)
        hits += refutes_if_normal(together, rng.normal(0.0, factor, n_pairs))
    return hits / 200


@pytest.mark.parametrize("n_pairs", [100, 400])
def test_noise_of_that_factor_is_found_about_as_often(n_pairs: int) -> None:
    factor = found(1.0, n_pairs).noise_factor
    assert factor is not None
    assert share_of_audits(0.9 * factor, n_pairs) > 0.8
    assert share_of_audits(min(1.25 * factor, 1.0), n_pairs) < 0.9
