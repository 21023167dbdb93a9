"""From fits to findings: which fits choose, and which are counted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.audit._analyses import METHODS, Findings, analysis
from skdptune.audit._bounds import ClaimCurve
from skdptune.audit._games import Outcome, Trials

CLAIM = ClaimCurve(PrivacyProfile.gaussian(1.0), 1e-5)


def findings(
    method: str, shift: float, n_pairs: int = 300, width: int = 1
) -> tuple[Findings, Trials]:
    rng, trials = np.random.default_rng(0), Trials(width)

    def play(number: int) -> None:
        for _ in range(number):
            for present in (True, False):
                numbers = rng.normal(size=width)
                numbers[0] += shift * present
                trials.add(present, Outcome(False, numbers))

    return analysis(method, CLAIM, 0.05)(trials, n_pairs, play), trials


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("method", METHODS)
def test_methods_agree_where_it_is_clear(method: str, width: int) -> None:
    allowed, _ = findings(method, 0.8, width=width)
    assert not allowed.is_refuted
    assert allowed.epsilon_lower <= CLAIM.epsilon
    refuted, trials = findings(method, 2.5, width=width)
    assert refuted.is_refuted
    assert len(trials) <= 300
    assert len(refuted.together) <= len(trials)


def test_fits_that_chose_a_direction_are_not_counted() -> None:
    found, _ = findings("counts", 0.0, n_pairs=100, width=200)
    # Chosen and counted on the same fits, 200 numbers would always tell two sides apart.
    assert found.together.size == 70
    assert found.gaussian is None and not found.is_refuted
    assert abs(found.together.mean() - found.without.mean()) < found.without.std()


def test_bets_are_recorded() -> None:
    found, trials = findings("sequential", 2.5)
    assert found.capital[0] == (0, 0.0)
    assert found.capital[-1][0] == len(trials)
    assert found.capital[-1][1] >= found.goal
    assert findings("counts", 2.5)[0].capital == ()


def test_the_power_is_known_later() -> None:
    found, _ = findings("gaussian", 0.8)
    again = pickle.loads(pickle.dumps(found.power))
    assert again() == found.power()


def test_normal_noise_has_no_epsilon_without_delta() -> None:
    pure = ClaimCurve(PrivacyProfile.pure(1.0), 0.0)
    with pytest.raises(ValueError, match='method must be "auto", "counts" or "sequential"'):
        analysis("gaussian", pure, 0.05)
