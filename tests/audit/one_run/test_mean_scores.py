"""Bounds on the rise of the mean score of many canaries, and their conclusions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from skdptune.accounting import PrivacyProfile
from skdptune.audit import one_run_audit
from skdptune.audit._one_run_bounds import ScaledClaim, mean_verdict, score_shift
from skdptune.linear_model import DPLinearSVC

CLAIMS = {
    "pure": [(1.0, 0.0)],
    "approximate": [(0.5, 1e-2)],
}


def largest_mean(points: list[tuple[float, float]], edges: np.ndarray) -> float:
    """Return the largest mean of a score that is normal before, by linear programming.

    A mechanism is a table of probabilities of intervals; each counts with its lower end.
    """
    before = np.diff(stats.norm.cdf(edges), prepend=0.0)[1:]
    before /= before.sum()
    size = before.size
    rows, limits = [], []
    for place, (epsilon, delta) in enumerate(points):
        # Excesses over both lines, which add up to at most delta.
        for kind, growth in ((0, 1.0), (1, -np.exp(epsilon))):
            first = size * (1 + 2 * place + kind)
            block = np.zeros((size + 1, size * (1 + 2 * len(points))))
            block[:size, :size] = growth * np.eye(size)
            block[:size, first : first + size] = -np.eye(size)
            block[size, first : first + size] = 1.0
            rows.append(block)
            bound = np.exp(epsilon) * before if kind == 0 else -before
            limits += [*bound, delta]
    values = np.zeros(size * (1 + 2 * len(points)))
    values[:size] = -edges[:-1]
    total = np.zeros((1, values.size))
    total[0, :size] = 1.0
    solved = linprog(
        values, A_ub=np.concatenate(rows), b_ub=limits, A_eq=total, b_eq=[1.0], method="highs"
    )
    assert solved.status == 0
    return float(-solved.fun)


@pytest.mark.parametrize("name", CLAIMS)
def test_no_mechanism_raises_the_mean_of_a_normal_score_more(name: str) -> None:
    # Theorem A8: how far the mean score of canaries may rise, if scores are independent.
    ((epsilon, delta),) = CLAIMS[name]
    profile = PrivacyProfile.approximate(epsilon, delta)
    allowed = ScaledClaim.of(profile).mean_shift(1.0)
    step = 0.1
    best = largest_mean(CLAIMS[name], np.arange(-7.5, 7.5 + step, step))
    # Lower ends of intervals are at most a step too low.
    assert best <= allowed < best + 1.1 * step


@pytest.mark.parametrize("mu", [0.25, 1.5])
def test_gaussian_claims_raise_it_by_their_shift(mu: float) -> None:
    # Theorem A8: how far the mean score of canaries may rise, if scores are independent.
    claim = ScaledClaim.of(PrivacyProfile.gaussian(mu))
    for factor in (0.5, 1.0, 2.0):
        assert factor * mu <= claim.mean_shift(factor) < 1.003 * factor * mu


def laplace_like(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return scores that attain a pure claim of 1: normal ones, likelier where they are high."""
    rate = np.exp(0.5)
    high = rng.random(size) < rate / (1.0 + rate)
    return np.where(high, 1.0, -1.0) * np.abs(rng.normal(size=size))


TRUE: dict[str, tuple[PrivacyProfile, Callable[[np.random.Generator, int], np.ndarray]]] = {
    "gaussian": (PrivacyProfile.gaussian(1.0), lambda rng, size: rng.normal(1.0, 1.0, size)),
    "tilted": (PrivacyProfile.pure(0.5), laplace_like),
    "rare": (
        PrivacyProfile.approximate(0.0, 0.02),
        lambda rng, size: np.where(rng.random(size) < 0.02, 50.0, rng.normal(size=size)),
    ),
}


@pytest.mark.parametrize("name", TRUE)
@pytest.mark.parametrize("size", [40, 400])
def test_true_claims_are_refuted_no_more_often_than_stated(name: str, size: int) -> None:
    # Theorem A8: exactly private scores that come near to what is allowed, at a risk of a fifth.
    profile, included = TRUE[name]
    allowed, n_audits = ScaledClaim.of(profile).mean_shift(1.0), 400
    wrong = 0
    for seed in range(n_audits):
        rng = np.random.default_rng(seed)
        wrong += score_shift(included(rng, size), rng.normal(size=size), 0.2) > allowed
    assert stats.binomtest(wrong, n_audits, 0.2, alternative="greater").pvalue > 1e-3


def test_half_of_the_noise_is_found_by_mean_scores() -> None:
    # Theorem A8: how far the mean score of canaries may rise, if scores are independent.
    claim, size = PrivacyProfile.gaussian(1.666), 392
    for seed in range(3):
        rng = np.random.default_rng(seed)
        before = rng.normal(size=size)
        honest = mean_verdict(rng.normal(1.666, 1.0, size), before, claim, 1e-5, 0.01)
        assert honest is not None and not honest.refutes
        assert 0.7 * 8.0 < honest.epsilon_lower < 8.0
        broken = mean_verdict(rng.normal(3.332, 1.0, size), before, claim, 1e-5, 0.01)
        assert broken is not None and broken.refutes and broken.epsilon_lower > 12.0


def test_scores_that_are_few_or_not_normal_show_nothing() -> None:
    claim, rng = PrivacyProfile.gaussian(1.0), np.random.default_rng(0)
    normal, few = rng.normal(size=200), rng.normal(size=19)
    assert mean_verdict(normal + 3.0, few, claim, 1e-5, 0.05) is None
    assert mean_verdict(few + 3.0, normal, claim, 1e-5, 0.05) is None
    assert mean_verdict(np.append(normal, np.inf), normal, claim, 1e-5, 0.05) is None
    for before in (rng.standard_t(2, 200), np.zeros(200), np.arange(200) % 2.0):
        found = mean_verdict(normal + 50.0, before, claim, 1e-5, 0.05)
        assert found is not None and not found.refutes
    assert score_shift(normal - 3.0, normal, 0.05) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_an_audit_finds_most_of_the_claim_and_half_of_the_noise(seed: int) -> None:
    # Theorem A8: how far the mean score of canaries may rise, if scores are independent.
    table = np.zeros((300, 300))
    model = DPLinearSVC(
        solver="output", epsilon=8.0, classes=[0, 1], data_norm=1.0, fit_intercept=False
    )
    honest = one_run_audit(model, table, random_state=seed)
    assert honest.gaussian is not None and honest.gaussian.is_plausible
    assert not honest.gaussian.refutes and not honest.is_refuted
    assert 0.6 * 8.0 < honest.gaussian.epsilon_lower
    claim = model.privacy_profile(300, 300)
    level = model.noise_level(300, 300)
    model.set_params(epsilon=None, noise_multiplier=0.5 * level)
    broken = one_run_audit(model, table, claim=claim, delta=1e-5, random_state=seed)
    assert broken.gaussian is not None and broken.gaussian.refutes
    assert broken.is_refuted or "But if scores are independent" in broken.verdict
    assert "if normal:" in str(broken) and broken.to_dict()["gaussian"]["is_refuted"]
