"""The doubling threshold search: by hand, by enumeration, and its budget."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from skdptune.accounting import doubling_threshold
from skdptune.mechanisms import DoublingThreshold, doubling_threshold_release
from skdptune.mechanisms import _doubling as module
from tests.accounting.cases import few
from tests.mechanisms.threshold_oracles import transcript_distribution

FINE = 1 / 128
SMALL = {"sensitivity": 0.3, "granularity": 0.25, "epsilon": 1.5}
NOISES = ["sparse", "per-round"]


def outcomes_up_to(levels: int) -> str:
    """Return hits and misses of a search without noise, for the level of its best candidate."""
    utilities = [levels * FINE / 2, levels * FINE, 0.0]
    winner, trace = doubling_threshold_release(
        utilities, sensitivity=1.0, granularity=FINE, noise=None
    )
    assert winner in ({None} if levels == 0 else {0, 1})
    return "".join("H" if made.hit else "M" for made in trace)


# Worked out by hand from Algorithm 1.
BY_HAND = {
    0: "M",
    1: "HMM",
    2: "HMHMM",
    3: "HHMMM",
    4: "HHMMHMM",
    5: "HHMHMMM",
    6: "HHMHMMHMM",
    7: "HHHMMMM",
    15: "HHHHMMMMM",
    16: "HHHHMMMMHMM",
    127: "HHHHHHHMMMMMMMM",
    # Utility 1 ends the search at once.
    128: "HHHHHHHMMMMMMMH",
}


@pytest.mark.parametrize(("levels", "expected"), BY_HAND.items())
def test_search_without_noise_is_that_worked_out_by_hand(levels, expected) -> None:
    assert outcomes_up_to(levels) == expected


@pytest.mark.parametrize("levels", [0, 1, 2, 3, 6, 7, 8, 62, 63, 64, 100, 127])
def test_rounds_without_noise_are_those_of_the_lemma(levels) -> None:
    doublings = (levels + 1).bit_length() - 1
    rest = levels + 1 - 2**doublings
    # The lemma says 2 m + 2 k; the miss at step 1 that ends the search is one more.
    assert len(outcomes_up_to(levels)) == 2 * rest.bit_count() + 2 * doublings + 1


def test_candidates_may_change_and_winner_names_the_round() -> None:
    search = DoublingThreshold(sensitivity=1.0, granularity=0.125, noise=None)
    assert search.winner is None
    assert search.propose([0.1, 0.2, 0.3]) == 1
    assert search.propose([0.0, 0.0]) is None
    assert (search.winner, search.utility, search.step) == ((0, 1), 0.125, 1)
    assert search.propose([0.25]) == 0
    assert (search.winner, search.threshold) == ((2, 0), 0.5)


def transcript(utilities, search: DoublingThreshold) -> tuple[int, ...]:
    """Return every round's index, a miss as the number of candidates."""
    outcomes = []
    while not search.finished:
        found = search.propose(utilities)
        outcomes.append(len(utilities) if found is None else found)
    assert [outcome < len(utilities) for outcome in outcomes] == [r.hit for r in search.trace]
    return tuple(outcomes)


@pytest.mark.parametrize(("noise", "state"), [("sparse", 0), ("per-round", None)])
def test_searches_follow_the_exact_distribution(noise, state) -> None:
    utilities = [0.3, 0.8]
    settings = {"noise": noise, "max_hits": 3, **SMALL}
    distribution = transcript_distribution(
        DoublingThreshold(**settings), utilities, SMALL["granularity"]
    )
    assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-9)
    generator = None if state is None else np.random.default_rng(state)
    runs = 1500
    counts = Counter(
        transcript(utilities, DoublingThreshold(**settings, random_state=generator))
        for _ in range(runs)
    )
    assert set(counts) <= set(distribution)
    common = [path for path, chance in distribution.items() if chance * runs >= 5.0]
    seen = np.array([counts[path] for path in common])
    expected = runs * np.array([distribution[path] for path in common])
    seen, expected = np.append(seen, runs - seen.sum()), np.append(expected, runs - expected.sum())
    assert stats.chisquare(seen, expected, sum_check=False).pvalue > 1e-9


NEIGHBOURS = [
    ((a, b), (a + s * 0.3, b + t * 0.3))
    for a, b in [(0.35, 0.65), (0.4, 0.4), (0.7, 0.3)]
    for s, t in itertools.product((-1, 0, 1), repeat=2)
    if (s, t) != (0, 0)
]


def worst_ratio(noise: str, shrink: float, **changes) -> float:
    """Return the largest privacy loss of any transcript of the small search."""
    search = DoublingThreshold(noise=noise, **{**SMALL, **changes})
    worst = 0.0
    for first, second in NEIGHBOURS:
        found = [
            transcript_distribution(search, utilities, SMALL["granularity"], shrink=shrink)
            for utilities in (first, second)
        ]
        p, q = (np.array(list(chances.values())) for chances in found)
        worst = max(worst, float(np.abs(np.log(p / q)).max()))
    return worst


@pytest.mark.parametrize(("noise", "hits"), [("sparse", 3), ("per-round", 3), ("sparse", 1)])
def test_no_transcript_costs_more_than_the_budget(noise, hits) -> None:
    # Theorem D0: a doubling threshold search is charged beforehand.
    worst = worst_ratio(noise, 1.0, max_hits=hits)
    assert 0.3 * SMALL["epsilon"] < worst <= SMALL["epsilon"] + 1e-9


@pytest.mark.parametrize("noise", NOISES)
def test_too_little_noise_is_caught_by_the_exact_distribution(noise) -> None:
    assert worst_ratio(noise, 1 / 3, max_hits=2) > SMALL["epsilon"]


class Scripted:
    """Stands for the noise: two candidates pass or fail together, as written."""

    def __init__(self, script) -> None:
        self.script = iter(script)

    def __call__(self, count, generator) -> np.ndarray:
        if count == 1:
            return np.zeros(1)
        return np.full(count, 1e9 if next(self.script) else -1e9)


def scripted_search(script, **settings) -> DoublingThreshold:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "standard_laplace", Scripted([*script, *[False] * 60]))
        search = DoublingThreshold(sensitivity=0.01, epsilon=1.0, **settings)
        while not search.finished:
            search.propose([0.0, 0.0])
    return search


@given(
    st.lists(st.booleans(), max_size=40),
    st.integers(1, 30),
    st.sampled_from([0.0, 1e-3]),
    st.sampled_from([None, 1, 4]),
)
# More hits in a row than the budget pays for, on levels so fine that utility 1 is far.
@example([True] * 40, 20, 0.0, None)
@example([True] * 40, 30, 1e-3, None)
def test_no_search_overruns_its_budget(script, max_rounds, delta, max_hits) -> None:
    search = scripted_search(
        script,
        noise="per-round",
        granularity=1e-9,
        delta=delta,
        max_rounds=max_rounds,
        max_hits=max_hits,
    )
    hits = sum(made.hit for made in search.trace)
    misses = len(search.trace) - hits
    spent = search._plan.round_epsilon * (2 * hits + misses) / 2
    assert spent <= search._plan.budget
    assert len(search.trace) <= search.max_rounds <= max_rounds
    assert hits <= (max_hits or math.inf)
    assert search.profile.epsilon(delta) <= 1.0 + 1e-9
    if delta == 0.0:
        assert spent <= 1


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 8))
def test_sparse_search_stops_at_its_last_hit(script, max_hits) -> None:
    search = scripted_search(script, noise="sparse", max_hits=max_hits)
    hits = [made.hit for made in search.trace]
    assert sum(hits) <= max_hits
    assert sum(hits) < max_hits or hits[-1]
    assert search.profile.epsilon(0.0) == pytest.approx(1.0)


# Three rounds are charged as hit, miss, and one of either kind: two hits leave too little for it.
@pytest.mark.parametrize(("noise", "rounds"), [("sparse", 3), (None, 3), ("per-round", 2)])
def test_rounds_are_capped_whatever_the_noise(noise, rounds) -> None:
    search = DoublingThreshold(
        sensitivity=1e-6, epsilon=1.0, noise=noise, max_rounds=3, random_state=0
    )
    while not search.finished:
        search.propose([0.9])
    assert [made.hit for made in search.trace] == [True] * rounds


@pytest.mark.parametrize("noise", NOISES)
def test_cost_is_the_same_whatever_happens(noise) -> None:
    # Theorem D0: a doubling threshold search is charged beforehand.
    search = DoublingThreshold(noise=noise, random_state=0, **SMALL)
    before = search.profile
    while not search.finished:
        search.propose(np.full(len(search.trace) + 1, 0.5))
    assert search.profile is before
    assert before.epsilon(0.0) == pytest.approx(SMALL["epsilon"])
    short = DoublingThreshold(noise=noise, random_state=1, **SMALL)
    short.propose(np.zeros(1000))
    assert short.profile.epsilon(0.0) == before.epsilon(0.0)


def audited(noise: str, shrink: float, monkeypatch) -> float:
    """Return a lower bound on epsilon, at 99.9 % confidence, from runs on neighbouring data."""
    drawn = module.standard_laplace
    monkeypatch.setattr(module, "standard_laplace", lambda n, g: shrink * drawn(n, g))
    settings = {"sensitivity": 0.5, "granularity": 0.25, "epsilon": 1.0, "noise": noise}
    generator, runs = np.random.default_rng(0), 600
    reached = []
    for utilities in ([0.25] * 3, [0.75] * 3):
        ends = [
            len(doubling_threshold_release(utilities, random_state=generator, **settings)[1])
            for _ in range(runs)
        ]
        # A first miss ends the search at once.
        reached.append(sum(end == 1 for end in ends))
    low, high = (
        stats.binomtest(count, runs).proportion_ci(0.998, method="exact") for count in reached
    )
    return math.log(low.low / high.high)


@pytest.mark.parametrize("noise", NOISES)
def test_audit_finds_nothing_and_finds_a_broken_search(noise, monkeypatch) -> None:
    assert audited(noise, 1.0, monkeypatch) <= 1.0
    assert audited(noise, 1 / 30, monkeypatch) > 1.0


def test_nothing_happens_after_the_end() -> None:
    search = DoublingThreshold(sensitivity=1.0, noise=None)
    assert search.propose([0.0]) is None
    assert search.finished
    with pytest.raises(RuntimeError, match="propose must be called while finished is False"):
        search.propose([1.0])
    assert (search.winner, search.trace) == (None, ((0.0, 1, False),))


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        ([], ValueError, "utilities must be one-dimensional and not empty"),
        ([[0.5]], ValueError, "utilities must be one-dimensional and not empty"),
        (["secret"], TypeError, "utilities must be an array of numbers; got something else"),
        ([[1], [1, 2]], TypeError, "utilities must be an array of numbers; got something else"),
    ],
)
def test_bad_batches_are_refused_unshown_and_cost_nothing(bad, kind, message) -> None:
    search = DoublingThreshold(sensitivity=0.1, epsilon=1.0)
    with pytest.raises(kind, match=message) as caught:
        search.propose(bad)
    assert "secret" not in str(caught.value)
    assert search.trace == ()


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ([0, 0], ValueError),
        ([0], ValueError),
        ([[0, 1]], ValueError),
        ([1, 2], ValueError),
        ([0.0, 1.0], TypeError),
    ],
)
def test_bad_orders_are_refused(bad, kind) -> None:
    search = DoublingThreshold(sensitivity=0.1, epsilon=1.0)
    with pytest.raises(kind, match="order must"):
        search.propose([0.1, 0.2], bad)


def test_secret_noise_is_not_shown() -> None:
    search = DoublingThreshold(sensitivity=0.1, epsilon=1.0, random_state=0)
    search.propose([0.9])
    assert str(search._lasting_noise) not in repr(search)
    while not search.finished:
        search.propose([0.9])
    assert search._lasting_noise is None


def search_of(noise, **changes) -> DoublingThreshold:
    return DoublingThreshold(noise=noise, **({"sensitivity": 0.1, "epsilon": 1.0} | changes))


def hits_without_noise(goal: int) -> tuple[int, int]:
    """Return hits and rounds of Algorithm 1 towards a level, step by step."""
    level, step, hits, rounds = 0, 1, 0, 0
    while step:
        rounds += 1
        if level + step <= goal:
            level, step, hits = level + step, 2 * step, hits + 1
        else:
            step //= 2
    return hits, rounds


def test_limits_are_those_of_the_worst_search_without_noise() -> None:
    searches = [hits_without_noise(goal) for goal in range(200)]
    for levels in range(1, 200, 3):
        most = search_of("sparse", granularity=1.0 / levels).max_hits
        assert most == max(hits for hits, _ in searches[: levels + 1])
        assert 2 * most + 1 == max(rounds for _, rounds in searches[: levels + 1])
    assert search_of("per-round").max_rounds == 23
    few_hits = search_of("per-round", max_rounds=20, max_hits=3)
    assert (few_hits.max_rounds, few_hits.max_hits) == (5, 3)


def test_sparse_noise_is_algorithm_7_of_lyu_su_and_li() -> None:
    search = search_of("sparse", max_hits=4)
    # Split 1 : 8^(2/3) = 1 : 4.
    assert search.threshold_scale == pytest.approx(0.1 / 0.2)
    assert search.candidate_scale == pytest.approx(2 * 4 * 0.1 / 0.8)
    assert search.profile.epsilon(0.0) == pytest.approx(1.0)


@pytest.mark.parametrize(("rounds", "halves"), [(1, 2), (2, 4), (3, 5), (23, 35)])
def test_noise_per_round_is_that_of_the_papers(rounds, halves) -> None:
    search = search_of("per-round", max_rounds=rounds)
    assert search.threshold_scale == pytest.approx(2 * 0.1 * halves / 2.0)
    assert search.candidate_scale == pytest.approx(4 * 0.1 * halves / 2.0)
    assert search.profile.epsilon(0.0) == pytest.approx(1.0)
    assert search.max_rounds == rounds


@pytest.mark.parametrize("rounds", [3, 30, 200])
def test_delta_allows_a_costlier_round_and_is_kept(rounds) -> None:
    pure, loose = (search_of("per-round", max_rounds=rounds, delta=d) for d in (0.0, 1e-5))
    assert loose.threshold_scale <= pure.threshold_scale * (0.4 if rounds == 200 else 1.0)
    assert 0.999 < loose.profile.epsilon(1e-5) <= 1.0
    each = 0.2 / loose.threshold_scale
    budget = each * (2 + math.ceil(3 * (rounds - 1) / 2)) / 2 * (1 + 1e-12)
    again = doubling_threshold(each, budget=budget, max_rounds=rounds)
    assert again.epsilon(1e-5) == pytest.approx(loose.profile.epsilon(1e-5), rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise"),
    few(8, [1e-6, 1e-2, 30.0, 600.0], [0.0, 1e-200, 1e-9, 0.9], NOISES),
)
def test_every_budget_is_kept(noise, epsilon, delta) -> None:
    search = search_of(noise, epsilon=epsilon, delta=delta)
    assert search.profile.epsilon(delta) <= epsilon * (1.0 + 1e-9)
    assert np.isfinite([search.threshold_scale, search.candidate_scale]).all()


def test_without_noise_nothing_is_promised() -> None:
    search = search_of(None, epsilon=None)
    assert (search.threshold_scale, search.candidate_scale) == (0.0, 0.0)
    assert search.profile.delta(10.0) == 1.0


@pytest.mark.parametrize(
    ("name", "bad", "kind"),
    [
        ("granularity", 0.0, ValueError),
        ("initial_utility", 1.0, ValueError),
        ("sensitivity", 0.0, ValueError),
        # Its parts would vanish in rounding.
        ("epsilon", 5e-324, ValueError),
        ("delta", 1.0, ValueError),
        ("max_rounds", 0, ValueError),
        ("max_hits", 2.0, TypeError),
    ],
)
def test_bad_settings_are_refused_by_name(name, bad, kind) -> None:
    for noise in NOISES:
        with pytest.raises(kind, match=f"{name} must be "):
            search_of(noise, **{name: bad})
