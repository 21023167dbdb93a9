"""The best of many candidates: the correct distribution, within its cost."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp import mod
from scipy import stats

from skdptune.accounting import permute_and_flip
from skdptune.mechanisms import _noisy_max, permute_and_flip_release
from tests.accounting.calls import calls_of
from tests.accounting.cases import few


def exact_distribution(scores, scale: float) -> np.ndarray:
    """Return each candidate's chance, from every order in which the candidates can be asked."""
    passing = np.exp((np.asarray(scores) - max(scores)) / scale)
    chances = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for index in order:
            chances[index] += left * passing[index]
            left *= 1.0 - passing[index]
    return chances / math.factorial(len(scores))


def counts(runs: int, scores, *settings, **more) -> np.ndarray:
    draws = [permute_and_flip_release(scores, *settings, **more) for _ in range(runs)]
    return np.bincount(draws, minlength=len(scores))


@pytest.mark.parametrize(
    ("scores", "monotone", "state"),
    [
        ([0.0, 0.3, 0.5, 1.0], False, None),
        ([0.0, 0.3, 0.5, 1.0], True, 0),
        ([2.0, 2.0, 1.9], False, 0),
        ([-1e6, -1e6 - 1], True, None),
    ],
)
def test_draws_follow_the_exact_distribution(scores, monotone, state) -> None:
    generator = None if state is None else np.random.default_rng(state)
    seen = counts(2000, scores, 0.5, 1.5, monotone=monotone, random_state=generator)
    expected = exact_distribution(scores, (0.5 if monotone else 1.0) / 1.5)
    assert stats.chisquare(seen, 2000 * expected).pvalue > 1e-9


def test_noise_a_tenth_too_small_would_be_seen() -> None:
    seen = counts(20_000, [0.0, 1.0], 0.5, 1.0, random_state=np.random.default_rng(0))
    p_values = [
        stats.chisquare(seen, 20_000 * exact_distribution([0.0, 1.0], scale)).pvalue
        for scale in (1.0, 0.9, 0.5)
    ]
    assert p_values[0] > 1e-3 and max(p_values[1:]) < 1e-6


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from([-1, 0, 1])), min_size=2, max_size=5))
def test_selection_keeps_its_cost(candidates) -> None:
    # Theorem N2: the index of the best score by permute-and-flip.
    scores, moves = np.array(candidates, dtype=float).T
    epsilon = permute_and_flip(0.7).epsilon(0.0)
    ratio = np.log(
        exact_distribution(scores, 2.0 / 0.7) / exact_distribution(scores + moves, 2.0 / 0.7)
    )
    assert np.abs(ratio).max() <= epsilon + 1e-9
    same = np.abs(moves)
    ratio = np.log(
        exact_distribution(scores, 1.0 / 0.7) / exact_distribution(scores + same, 1.0 / 0.7)
    )
    assert np.abs(ratio).max() <= epsilon + 1e-9


@pytest.mark.parametrize(
    ("state", "epsilon", "sensitivity"),
    few(8, [0, None], [1e-3, 1.0, 1e5, math.inf], [0.0, 1e-300, 1.0]),
)
def test_nan_and_minus_infinity_never_beat_a_number(state, epsilon, sensitivity) -> None:
    scores = [math.nan, -3.0, -math.inf, 1.0]
    generator = None if state is None else np.random.default_rng(state)
    seen = counts(40, scores, sensitivity, epsilon, random_state=generator)
    assert seen[0] == seen[2] == 0


@pytest.mark.parametrize("state", [0, None])
@pytest.mark.parametrize(
    ("scores", "settings", "best"),
    [
        ([math.nan, -math.inf, math.nan], (1.0, 1.0), {0, 1, 2}),
        ([math.inf, 5.0, math.inf], (1.0, 1.0), {0, 2}),
        ([1.0, 3.0, 3.0], (1.0, math.inf), {1, 2}),
        ([1.0, 3.0, 3.0], (0.0, 0.5), {1, 2}),
        ([1.0, 9.0, 3.0], (1.0, 0.0), {0, 1, 2}),
        ([1.0, 9.0, 3.0], (1e308, 1e-308), {0, 1, 2}),
    ],
)
def test_equals_have_equal_chances(scores, settings, best, state) -> None:
    generator = None if state is None else np.random.default_rng(state)
    seen = counts(300, scores, *settings, random_state=generator)
    assert set(np.flatnonzero(seen)) == best
    assert stats.chisquare(seen[sorted(best)]).pvalue > 1e-9


@pytest.mark.parametrize(("state", "calls_each"), [(0, 0), (None, 4)])
def test_hundred_thousand_candidates_take_few_calls_each(state, calls_each) -> None:
    scores = np.random.default_rng(0).random(100_000)
    scores[77_777] = 2.0
    found = []
    calls = calls_of(
        lambda: found.append(permute_and_flip_release(scores, 0.01, 1.0, random_state=state))
    )
    assert found == [77_777]
    # OpenDP copies the scores to C one by one.
    assert calls < calls_each * scores.size + 10_000


def test_seed_repeats_and_its_absence_does_not() -> None:
    scores = np.zeros(10**5)
    first, second = (permute_and_flip_release(scores, 1.0, 1.0, random_state=3) for _ in "ab")
    assert first == second
    assert len({permute_and_flip_release(scores, 1.0, 1.0) for _ in "abc"}) > 1


@pytest.mark.parametrize(
    ("scores", "kind", "message"),
    [
        ([], ValueError, "scores must be one-dimensional and not empty"),
        ([[1.0]], ValueError, "scores must be one-dimensional and not empty"),
        (3.0, ValueError, "scores must be one-dimensional and not empty"),
        (["secret"], TypeError, "scores must be an array of numbers; got something else"),
    ],
)
def test_bad_scores_are_refused_and_not_shown(scores, kind, message) -> None:
    with pytest.raises(kind, match=message) as caught:
        permute_and_flip_release(scores, 1.0, 1.0)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "kind", "name"),
    [
        ({"sensitivity": -1.0}, ValueError, "sensitivity"),
        ({"epsilon": -0.1}, ValueError, "epsilon"),
        ({"monotone": 1}, TypeError, "monotone"),
        ({"random_state": -1}, ValueError, "random_state"),
    ],
)
def test_bad_settings_are_refused(change, kind, name) -> None:
    with pytest.raises(kind, match=f"{name} must be"):
        permute_and_flip_release([0.0, 1.0], **{"sensitivity": 1.0, "epsilon": 1.0, **change})


# OpenDP's noisy maximum ------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_exponential_noise_has_its_distribution(scale) -> None:
    # Theorem N2: of two candidates the worse wins with half the probability of the noise's tail.
    wins = sum(_noisy_max.noisy_max(np.array([0.0, scale]), scale) == 0 for _ in range(2000))
    assert stats.binomtest(wins, 2000, 0.5 * np.exp(-1.0)).pvalue > 1e-9


@pytest.mark.parametrize("before", [set(), {"contrib"}, {"floating-point"}])
def test_features_stay_as_the_user_left_them(monkeypatch, before) -> None:
    features = set(before)
    monkeypatch.setattr(mod, "GLOBAL_FEATURES", features)
    monkeypatch.setattr("opendp.mod.GLOBAL_FEATURES", features)
    _noisy_max._selector.cache_clear()
    _noisy_max.noisy_max(np.zeros(2), 1.0)
    assert features == before
