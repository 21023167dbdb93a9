"""Pickles of profiles contain how the numbers are made: few bytes, and the same numbers again."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from dp_accounting import dp_event

from skdptune.accounting import (
    Geometric,
    Poisson,
    PrivacyProfile,
    RunCountDistribution,
    SharedCurve,
    _profile,
    doubling_threshold,
    exponential_mechanism,
    mixture,
    permute_and_flip,
    posterior_sample,
    random_allocation,
    report_noisy_max,
    search_on_split,
    sparse_vector,
    tune_then_fit,
    with_failure,
)
from tests.accounting import small_mechanisms as small
from tests.accounting.cases import trained, without_form

EPSILONS = np.concatenate([np.linspace(-3.0, 3.0, 13), [1e-9, 20.0, 700.0]])
DELTAS = (0.0, 1e-12, 1e-6, 1e-3, 0.5)
ORDERS = np.array([1.5, 2.0, 16.0])
# Bytes. The numbers of most of these profiles have more than a hundred thousand.
FEW = 5000

run = PrivacyProfile.gaussian(0.5)
laplace = dp_event.LaplaceDpEvent(2.0)
MADE: dict[str, Callable[[], PrivacyProfile]] = {
    "gaussian": lambda: run,
    "pure": lambda: PrivacyProfile.pure(0.3),
    "approximate": lambda: PrivacyProfile.approximate(0.3, 1e-7),
    "training": lambda: trained(0.01, 1.0, 1000),
    "training on a grid": lambda: trained(0.1, 2.0, 10, 1e-3),
    "laplace": lambda: 5 * PrivacyProfile.from_event(laplace),
    "points": lambda: PrivacyProfile.from_curve([0.5, 1.0], [1e-3, 1e-6], deltas_add=[1e-4, 0.0]),
    "sum": lambda: run + PrivacyProfile.pure(0.1) + trained(0.1, 2.0, 10),
    "worst": lambda: run | PrivacyProfile.pure(1.0),
    "covered": lambda: run | PrivacyProfile.gaussian(0.4),
    "sampled": lambda: (run | PrivacyProfile.pure(1.0)).subsampled(0.1),
    "selected": lambda: run.selected(Geometric(0.1)),
    "by the literature": lambda: trained(0.01, 1.0, 100).selected(Poisson(5.0), "rdp"),
    "failing": lambda: with_failure(run, 1e-7),
    "mixture": lambda: mixture([run, PrivacyProfile.pure(0.2)], [0.25, 0.75]),
    "variant 1": lambda: tune_then_fit(run.selected(Geometric(0.1)), run, 0.1),
    "variant 2": lambda: tune_then_fit(run.selected(Geometric(0.1)), run, 0.1, 2),
    "variant 1 by rdp": lambda: tune_then_fit(run, run, 0.1, 1, "rdp"),
    "split": lambda: search_on_split(run, run, run, validation_fraction=0.2),
    "noisy maximum": lambda: report_noisy_max(20, 10.0),
    "one-sided noise": lambda: permute_and_flip(0.3),
    "exponential": lambda: 3 * exponential_mechanism(0.3),
    "sparse": lambda: sparse_vector(0.1, 0.2, max_hits=2),
    "doubling": lambda: doubling_threshold(0.1, budget=2.0, max_rounds=30),
    "posterior": lambda: posterior_sample(0.01, 4.0),
    "allocation": lambda: random_allocation(1.0, 10, 25),
    "shared curve": lambda: SharedCurve(0.3, 1e-7).profile,
}


def assert_same(one: PrivacyProfile, other: PrivacyProfile) -> None:
    """Raise unless two profiles have the same bits."""
    for direction in ("remove", "add"):
        mine, theirs = (each.delta(EPSILONS, direction) for each in (one, other))
        assert mine.tobytes() == theirs.tobytes()
    assert [one.epsilon(d) for d in DELTAS] == [other.epsilon(d) for d in DELTAS]
    assert one.rdp(ORDERS).tobytes() == other.rdp(ORDERS).tobytes()
    assert one == other and hash(one) == hash(other)


def used(profile: PrivacyProfile) -> PrivacyProfile:
    """Return something that is made of a profile by most operators."""
    search = (2 * profile + run).selected(Geometric(0.2))
    return tune_then_fit(search, profile.subsampled(0.2) | run, 0.1)


@pytest.mark.parametrize("name", MADE)
def test_few_bytes_and_the_same_numbers(name: str) -> None:
    profile = MADE[name]()
    stored = pickle.dumps(profile)
    assert len(stored) < FEW
    assert_same(pickle.loads(stored), profile)
    # Before anything else reads its numbers.
    assert_same(used(pickle.loads(stored)), used(profile))


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_the_same_numbers(seed: int) -> None:
    made = small.random_mechanism(np.random.default_rng(seed), most_operators=6)
    stored = pickle.dumps(made.claim)
    assert_same(pickle.loads(stored), made.claim)
    # What was read from a dict has only numbers.
    if "from_dict" not in made.words:
        assert len(stored) < FEW, made.words


def test_another_process_has_the_same_numbers(tmp_path) -> None:
    profiles = {name: make() for name, make in MADE.items()}
    (tmp_path / "profiles").write_bytes(pickle.dumps(profiles))
    code = (
        "import pickle, sys; "
        "profiles = pickle.load(open(sys.argv[1], 'rb')); "
        "print({name: [p.epsilon(1e-6), p.delta(0.7)] for name, p in profiles.items()})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "profiles")],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {name: [p.epsilon(1e-6), p.delta(0.7)] for name, p in profiles.items()}
    assert done.stdout.strip() == str(found)


def test_long_sums_and_bare_numbers_are_stored_as_numbers() -> None:
    bare = without_form(PrivacyProfile.gaussian(0.1))
    chain = one = PrivacyProfile.from_curve([0.1, 0.2], [1e-3, 1e-6], discretization=0.1)
    for _ in range(70):
        chain = chain + one
    for profile in (bare, bare + run, with_failure(bare, 1e-6), chain, chain + run):
        again = pickle.loads(pickle.dumps(profile))
        assert_same(again, profile)
        assert_same(again + run, profile + run)
        # The masses of both directions, and nothing that follows from them.
        size = sum(side.masses.nbytes for side in set(profile._sides))
        assert len(pickle.dumps(again)) < size + FEW


def test_later_changes_of_arguments_change_nothing() -> None:
    epsilons, deltas = np.array([0.5, 1.0]), np.array([1e-3, 1e-6])
    events = [dp_event.GaussianDpEvent(2.0), laplace]
    profiles = [
        PrivacyProfile.from_curve(epsilons, deltas),
        PrivacyProfile.from_event(dp_event.ComposedDpEvent(events)),
        PrivacyProfile.from_event(dp_event.ComposedDpEvent(events[:1])),
    ]
    stored = [pickle.dumps(profile) for profile in profiles]
    deltas[:] = 0.0
    events[0] = dp_event.GaussianDpEvent(1e9)
    for profile, kept in zip(profiles, stored, strict=True):
        assert_same(pickle.loads(kept), pickle.loads(pickle.dumps(profile)))
        assert profile.epsilon(1e-6) > 0.5


@dataclass(frozen=True, eq=False)
class Own(RunCountDistribution):
    """A user's distribution: a Poisson number, whose mean is in an array that can change."""

    means: np.ndarray

    @property
    def _same(self) -> Poisson:
        return Poisson(float(self.means[0]))

    @property
    def mean(self) -> float:
        return self._same.mean

    def _pgf(self, x):
        return self._same._pgf(x)

    def _pgf_derivative(self, x):
        return self._same._pgf_derivative(x)

    def _pgf_second_derivative(self, x):
        return self._same._pgf_second_derivative(x)

    def _probability_at_most(self, count):
        return self._same._probability_at_most(count)

    def _draw(self, rng, shape):
        return self._same._draw(rng, shape)


def test_later_changes_of_a_distribution_of_ones_own_change_nothing() -> None:
    # Assumption S0: runs are independent, their number is secret, ties are fair.
    means = np.array([20.0])
    profile, same = (run.selected(each) for each in (Own(means), Poisson(20.0)))
    means[:] = 0.1
    assert_same(pickle.loads(pickle.dumps(profile)), profile)
    assert profile == same


def test_profiles_of_one_report_are_made_once(monkeypatch) -> None:
    parts = [trained(0.02, 1.1, 500)]
    parts.append(parts[0].selected(Geometric(0.1)))
    parts.append(parts[1] + parts[0])
    stored, made, select = pickle.dumps(parts), [], _profile.selected_halves
    monkeypatch.setattr(
        _profile, "selected_halves", lambda *given: made.append(given) or select(*given)
    )
    again = pickle.loads(stored)
    assert not made
    for profile, kept in zip(parts[::-1], again[::-1], strict=True):
        assert_same(profile, kept)
    assert len(made) == 1
