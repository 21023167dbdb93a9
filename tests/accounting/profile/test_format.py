"""Profiles as plain values: little is lost, only once, and damaged values are refused."""

from __future__ import annotations

import base64
import json
import math
import tracemalloc
import zlib

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import Geometric, Poisson, PrivacyProfile, tune_then_fit
from tests.accounting.cases import trained
from tests.accounting.oracles_profile import gaussian_delta

MOST_BYTES = 5_000
DELTAS = np.geomspace(1e-10, 1e-2, 100)


gaussian, pure = PrivacyProfile.gaussian, PrivacyProfile.pure
# Of few losses.
SHORT = {
    "pure": pure(1 / 3),
    "hardly pure": pure(600.0),
    "approximate": PrivacyProfile.approximate(0.5, 1e-5),
    "nothing": pure(0.0),
    "everything": PrivacyProfile.approximate(1.0, 1.0),
    "not private": PrivacyProfile.from_event(dp_event.NonPrivateDpEvent()),
    "repeated": 30 * pure(0.1),
    "far": 40 * pure(50.0),
}
LONG = {
    "gaussian": gaussian(0.8),
    "curve": PrivacyProfile.from_curve([0.5, 1], [1e-3, 1e-6], deltas_add=[1e-4, 1e-7]),
    "subsampled": gaussian(0.5).subsampled(0.1),
    "hardly sampled": gaussian(2.0).subsampled(0.01),
    "trained": trained(0.01, 2.0, 5000),
    "mass at infinity": gaussian(0.4) + PrivacyProfile.approximate(0.5, 1e-7),
    # A gap of 1e-6 that a mass of at most 1 at the first loss could not close.
    "one side without losses": gaussian(1e-12) | PrivacyProfile.approximate(1e-6, 0.999999),
    "many": 1000 * pure(0.3),
    "laplace": PrivacyProfile.from_event(dp_event.LaplaceDpEvent(2.0)),
    "selection of trained": trained(0.01, 2.0, 500).selected(Poisson(15)),
    "part": tune_then_fit(gaussian(0.5).selected(Geometric(0.1)), gaussian(0.5), 0.1),
}
PROFILES = SHORT | LONG
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())


def encoded(first, second):
    """Return two columns as the format writes them: bytes of one place value together."""
    raw = np.array([first, second], dtype="<f8").view(np.uint8).reshape(-1, 8).T.tobytes()
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def orders_of(content):
    """Return the orders of which a written profile has the Rényi divergences."""
    raw = zlib.decompress(base64.b64decode(content["rdp"]))
    return np.frombuffer(np.frombuffer(raw, np.uint8).reshape(8, -1).T.tobytes(), "<f8")[
        : len(raw) // 16
    ]


def through_json(profile, deltas=()):
    text = json.dumps(profile.to_dict(deltas), allow_nan=False)
    return PrivacyProfile.from_dict(json.loads(text))


def curves(first, second):
    """Yield both directions of two profiles on one fine grid of both signs."""
    points = np.concatenate([np.linspace(0.0, 30.0, 3001), np.geomspace(1e-7, 600.0, 500)])
    for direction in ("remove", "add"):
        grid = np.concatenate([-points, points])
        yield first.delta(grid, direction), second.delta(grid, direction)


def check_copy(profile, copy):
    """Check all that Theorem P11 says of a profile that was written and read."""
    for before, after in curves(profile, copy):
        # Reading the curve rounds once for each loss.
        assert np.all(after >= before * (1.0 - 1e-11))
    before, after = (
        np.array([each.epsilon(delta) for delta in DELTAS]) for each in (profile, copy)
    )
    finite = np.isfinite(before)
    assert np.array_equal(finite, np.isfinite(after))
    assert np.all(after[finite] <= before[finite] * 1.001)
    for direction in ("remove", "add"):
        assert copy.delta(math.inf, direction) == profile.delta(math.inf, direction)
    assert copy.epsilon(0.0) == profile.epsilon(0.0)
    assert len(json.dumps(profile.to_dict())) < MOST_BYTES


@every_profile
def test_a_copy_is_never_below_and_hardly_above(profile):
    """Theorem P11: also with deltas at which epsilon is kept."""
    deltas = (1e-5, 3.3e-8, 0.2)
    for asked in ((), deltas):
        copy = through_json(profile, asked)
        check_copy(profile, copy)
        for delta in asked:
            assert copy.epsilon(delta) == pytest.approx(profile.epsilon(delta), rel=1e-12)
            assert copy.epsilon(delta) >= profile.epsilon(delta) * (1.0 - 1e-13)
    assert len(json.dumps(profile.to_dict(deltas))) < MOST_BYTES


@every_profile
def test_what_was_read_is_written_again_as_it_is(profile):
    """Theorem P11."""
    for deltas in ((), (1e-5,), tuple(DELTAS)):
        content = profile.to_dict(deltas)
        copy = PrivacyProfile.from_dict(content)
        for more in ((), (1e-5,), (1e-7, 1e-3)):
            assert copy.to_dict(more) == content
        again = through_json(copy)
        assert again == copy and hash(again) == hash(copy)
        orders = orders_of(content)
        assert again.rdp(orders).tolist() == copy.rdp(orders).tolist()


@pytest.mark.parametrize("name", ["trained", "mass at infinity"])
def test_copies_go_on_like_the_profile(name):
    """Compositions, samples and selections of a copy cost only slightly more."""
    profile = PROFILES[name]
    copy = through_json(profile)
    for exact, bound in (
        (20 * profile, 20 * copy),
        (profile + gaussian(0.3), copy + gaussian(0.3)),
        (profile.subsampled(0.1), copy.subsampled(0.1)),
        (profile.selected(Geometric(0.1)), copy.selected(Geometric(0.1))),
    ):
        for delta in (1e-5, 1e-3):
            wanted = exact.epsilon(delta)
            # The profile's own masses may be more than one in all, which compositions show.
            assert wanted * (1.0 - 1e-5) <= bound.epsilon(delta) <= wanted * 1.002


@pytest.mark.parametrize(("mu", "count"), [(0.01, 30), (0.5, 5), (2.0, 1)])
def test_compositions_of_copies_are_upper_bounds(mu, count):
    """Theorem P11, against the closed form."""
    bound = count * through_json(gaussian(mu))
    together = mu * math.sqrt(count)
    points = np.linspace(0.0, together * (together / 2.0 + 7.0), 200)
    truth = np.array([gaussian_delta(together, point) for point in points])
    for direction in ("remove", "add"):
        assert np.all(bound.delta(points, direction) >= truth * (1.0 - 1e-9) - 1e-14)
        mirrored = -np.expm1(-points) + np.exp(-points) * truth
        assert np.all(bound.delta(-points, direction) >= mirrored * (1.0 - 1e-9))


def test_a_composition_of_a_copy_is_above_the_exact_sum():
    """Theorem P11, against all pairs of losses, in both directions and of both signs."""
    profile = trained(0.2, 1.0, 3)
    copy = through_json(profile)
    both = copy + gaussian(0.7)
    points = np.linspace(-3.0, 4.0, 40)
    z = np.linspace(-9.0, 9.0, 4001)
    weights = np.exp(-z * z / 2.0)
    weights /= weights.sum()
    for direction in ("remove", "add"):
        for point in points:
            # The Gaussian's own loss is of mean mu^2 / 2 and deviation mu.
            rest = point - (0.7 * z + 0.245)
            truth = float(weights @ profile.delta(rest, direction))
            assert both.delta(point, direction) >= truth * (1.0 - 1e-7) - 1e-9


@settings(max_examples=8)
@given(
    st.floats(1e-3, 8.0),
    st.sampled_from([None, 0.3, 0.01, 1e-3]),
    st.sampled_from([None, 0.05, 1.0]),
    st.sampled_from([0.0, 1e-12, 1e-9, 1e-5]),
)
def test_copies_of_any_profile(mu, fraction, epsilon, failure):
    """Theorem P11."""
    profile = gaussian(mu) if fraction is None else gaussian(mu).subsampled(fraction)
    if epsilon is not None:
        profile = profile + PrivacyProfile.approximate(epsilon, failure)
    check_copy(profile, through_json(profile))


@pytest.mark.parametrize("name", PROFILES)
def test_the_renyi_curve_survives_json_as_an_upper_bound(name):
    """Theorem P9."""
    profile = PROFILES[name]
    copy = through_json(profile)
    orders = orders_of(profile.to_dict())
    known = orders[np.isfinite(profile.rdp(orders))]
    before, after = profile.rdp(known), copy.rdp(known)
    assert np.all(after <= before * (1.0 + 2.0001e-3))
    # Bounds on selections need not be convex as the divergences are, so that chords may cut them.
    if name not in ("selection of trained", "part"):
        assert np.all(after >= before * (1.0 - 1e-12))
    # An order at which the accountant gave up says nothing of the orders around it.
    orders = np.array([1.15, 2.5, 57.0, 150.0, 700.0, 1024.0, 1025.0])
    before = np.where(orders > 2.0, profile.rdp(orders), 0.0)
    assert np.all(copy.rdp(orders) >= before * (1.0 - 2e-3))


def broken(profile, side="remove", **changes):
    """Return the content of a profile, changed in one direction."""
    content = profile.to_dict()
    return {**content, side: {**(content[side] or content["remove"]), **changes}}


def columns(places, masses):
    with np.errstate(invalid="ignore"):
        return encoded(np.diff(places, n=2, prepend=[0, 0]), masses)


def text_of(raw):
    return base64.b64encode(zlib.compress(raw)).decode("ascii")


KNOTS = PROFILES["approximate"]
BROKEN_MASSES = {
    "garbage": "!!!",
    "not compressed": "AAAA",
    "no text": [0.5, 0.5],
    "cut off": text_of(b"\0" * 24),
    "NaN mass": columns([1, 2], [0.5, math.nan]),
    "negative mass": columns([1, 2, 3], [0.5, -0.1, 0.6]),
    "infinite mass": columns([1], [math.inf]),
    "fractional place": columns([0.5], [1.0]),
    "NaN place": columns([math.nan], [1.0]),
    "infinite place": columns([math.inf], [1.0]),
    "falling places": columns([2, 1], [0.5, 0.5]),
    "one place twice": columns([1, 1], [0.5, 0.5]),
    "place out of reach": columns([0, 10**7], [0.5, 0.5]),
}
BROKEN = {
    "no dict": 3,
    "nothing": None,
    "empty": {},
    "of the past": {**KNOTS.to_dict(), "format": 3},
    "of the future": {**KNOTS.to_dict(), "format": 99},
    "one direction for both": {**KNOTS.to_dict(), "add": 3},
    **{
        f"without {key}": {k: v for k, v in KNOTS.to_dict().items() if k != key}
        for key in KNOTS.to_dict()
    },
    **{
        f"step {step}": {**KNOTS.to_dict(), "step": step}
        for step in (None, 0.0, -0.5, math.nan, math.inf, 1e9)
    },
    **{
        f"{value} at infinity": broken(KNOTS, infinity=value)
        for value in (None, math.nan, -1e-5, 1.5)
    },
    **{
        f"{name} of masses": broken(KNOTS, masses=masses) for name, masses in BROKEN_MASSES.items()
    },
    "no losses": broken(KNOTS, masses=columns([], [])),
    "too little mass": broken(KNOTS, masses=columns([1], [0.1])),
    "knots of negative losses": broken(KNOTS, masses=columns([-1, 1], [0.5, 0.5])),
    "a knot at zero": broken(KNOTS, masses=columns([0, 1], [0.5, 0.5])),
    "a direction without its losses": broken(KNOTS, "add", masses=columns([], [])),
    "a direction without its failures": broken(KNOTS, "add", infinity=0.0),
    "knots that are gone": {
        **KNOTS.to_dict(),
        "remove": {"infinity": 1e-5, "masses": columns([], [])},
        "add": None,
    },
    "fewer knots": broken(LONG["laplace"], masses=columns([5], [0.1])),
    "another total variation": {**KNOTS.to_dict(), "total_variation": 0.1},
    "no number": {**KNOTS.to_dict(), "total_variation": "0.1"},
    **{
        f"orders {orders}, divergences {values}": {
            **KNOTS.to_dict(),
            "rdp": encoded(orders, values),
        }
        for orders, values in (
            *(([2.0, 2.0], [1.0, 1.0]), ([0.5], [1.0]), ([math.nan], [1.0])),
            *(([2.0], [math.nan]), ([2.0], [-1.0])),
        )
    },
    "orders that are no table": {**KNOTS.to_dict(), "rdp": text_of(b"\0" * 24)},
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_broken_content_is_refused(content):
    with pytest.raises((ValueError, TypeError), match="must "):
        PrivacyProfile.from_dict(content)


@pytest.mark.parametrize("place", ["remove", "rdp"])
def test_what_would_fill_the_memory_is_refused_before_it_is_unpacked(place):
    # Theorem P11: a profile is written as a few kilobytes that are never below it.
    content = pure(0.5).to_dict()
    large = encoded(*np.zeros((2, 2**20)))
    assert len(large) < 2**17
    content = content | {place: {"infinity": 0.0, "masses": large} if place == "remove" else large}
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="two columns"):
            PrivacyProfile.from_dict(content)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


STRANGE = (None, True, -1, 0, 1e-300, 1e300, math.nan, math.inf, "", "AAAA", [], {}, [[]], b"x")


def damaged(content, rng):
    """Return a written profile of which one value, or one character of a text, is another."""
    content = content | {k: dict(v) for k, v in content.items() if isinstance(v, dict)}
    home = content
    key = list(home)[rng.integers(len(home))]
    if isinstance(home[key], dict) and rng.random() < 0.8:
        home = home[key]
        key = list(home)[rng.integers(len(home))]
    value, choice = home[key], rng.random()
    if choice < 0.1:
        del home[key]
    elif isinstance(value, str) and choice < 0.6 and value:
        place = int(rng.integers(len(value)))
        home[key] = value[:place] + "ABCxyz019+/= é"[rng.integers(14)] + value[place + 1 :]
    elif isinstance(value, float) and choice < 0.6:
        home[key] = value * float(rng.choice([0.5, 1.0 - 1e-6, 1.0 + 1e-6, 2.0, -1.0, 1e9]))
    else:
        home[key] = STRANGE[rng.integers(len(STRANGE))]
    return content, key


@pytest.mark.parametrize("name", ["approximate", "trained", "curve"])
def test_a_damaged_profile_is_refused_or_claims_no_less(name):
    # Theorem P11: a profile is written as a few kilobytes that are never below it.
    profile = PROFILES[name]
    whole = profile.to_dict()
    points = np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 30)])
    expected = PrivacyProfile.from_dict(whole).delta(points)
    refused, rng = 0, np.random.default_rng(7)
    for _ in range(100):
        content, key = damaged(whole, rng)
        try:
            found = PrivacyProfile.from_dict(content)
        except (ValueError, TypeError) as error:
            refused += 1
            assert " must " in str(error)
            continue
        assert np.all(found.delta(points) >= expected), key
    assert refused > 40
