"""Profiles as plain values: nothing is lost, nothing broken is let in."""

import base64
import json
import math
import zlib

import numpy as np
import pytest
from dp_accounting import dp_event

from skdptune.accounting import PrivacyProfile
from skdptune.accounting._losses import ORDERS

SAMPLED = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))
PROFILES = {
    "gaussian": PrivacyProfile.gaussian(0.8),
    "pure": PrivacyProfile.pure(1 / 3),
    "approximate": PrivacyProfile.approximate(0.5, 1e-5),
    "nothing": PrivacyProfile.pure(0.0),
    "everything": PrivacyProfile.approximate(1.0, 1.0),
    "not private": PrivacyProfile.from_event(dp_event.NonPrivateDpEvent()),
    "curve": PrivacyProfile.from_curve([0.5, 1], [1e-3, 1e-6], deltas_add=[1e-4, 1e-7]),
    "sampled": PrivacyProfile.gaussian(0.5).subsampled(0.1),
    "event": PrivacyProfile.from_event(SAMPLED, discretization=1e-3),
    "composed": PrivacyProfile.gaussian(0.5) + PrivacyProfile.pure(0.5),
    "repeated": 30 * PrivacyProfile.pure(0.1),
}
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())


def through_json(profile):
    text = json.dumps(profile.to_dict(), allow_nan=False)
    return PrivacyProfile.from_dict(json.loads(text))


@every_profile
def test_the_curve_survives_json_to_the_last_digit(profile):
    copy = through_json(profile)
    assert copy == profile and hash(copy) == hash(profile)
    points = np.linspace(-2.0, 5.0, 50)
    for direction in ("remove", "add"):
        assert copy.delta(points, direction).tolist() == profile.delta(points, direction).tolist()
    assert copy.to_dict()["remove"] == profile.to_dict()["remove"]


@every_profile
def test_the_renyi_curve_survives_json_as_an_upper_bound(profile):
    copy = through_json(profile)
    known = ORDERS[np.isfinite(profile.rdp(ORDERS))]
    np.testing.assert_allclose(copy.rdp(known), profile.rdp(known), rtol=1e-12)
    # An order at which the accountant gave up says nothing of the orders around it.
    orders = np.array([1.15, 2.5, 57.0, 150.0, 700.0, 1024.0, 1025.0])
    before = np.where(orders > 2.0, profile.rdp(orders), 0.0)
    assert np.all(copy.rdp(orders) >= before * (1.0 - 1e-12))


def test_the_renyi_curve_survives_twice():
    copy = through_json(PrivacyProfile.gaussian(1.0))
    again = through_json(copy)
    np.testing.assert_allclose(again.rdp(ORDERS), copy.rdp(ORDERS), rtol=1e-12)
    assert copy.rdp(2.0) == pytest.approx(1.0, rel=1e-12)


def test_a_curve_of_points_has_no_renyi_curve_after_json_either():
    assert through_json(PROFILES["curve"]).rdp([2.0, 5.0]).tolist() == [math.inf, math.inf]


def test_what_was_read_is_immutable():
    copy = through_json(PROFILES["gaussian"])
    with pytest.raises(ValueError, match="read-only"):
        copy._remove.masses[0] = 1.0


def broken(**changes):
    content = PrivacyProfile.approximate(0.5, 1e-5).to_dict()
    content["remove"] = {**content["remove"], **changes}
    return content


def packed(masses):
    raw = np.array(masses, dtype="<f8").tobytes()
    return base64.b64encode(zlib.compress(raw)).decode("ascii")


BROKEN = {
    "no dict": 3,
    "nothing": None,
    "empty": {},
    "of the future": {**PROFILES["pure"].to_dict(), "format": 99},
    "without remove": {k: v for k, v in PROFILES["pure"].to_dict().items() if k != "remove"},
    "without rdp": {k: v for k, v in PROFILES["pure"].to_dict().items() if k != "rdp"},
    "no step": broken(step=None),
    "zero step": broken(step=0.0),
    "negative step": broken(step=-0.5),
    "NaN step": broken(step=math.nan),
    "fractional start": broken(lowest=0.5),
    "NaN at infinity": broken(infinity=math.nan),
    "negative at infinity": broken(infinity=-1e-5),
    "garbage": broken(masses="!!!"),
    "no text": broken(masses=[0.5, 0.5]),
    "cut off": broken(masses=base64.b64encode(zlib.compress(b"\0" * 9)).decode()),
    "no masses": broken(masses=packed([])),
    "NaN mass": broken(masses=packed([0.5, math.nan, 0.5])),
    "negative mass": broken(masses=packed([0.5, -0.1, 0.6])),
    "infinite mass": broken(masses=packed([math.inf])),
    "too little mass": broken(masses=packed([0.1, 0.1, 0.1])),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_broken_content_is_refused(content):
    with pytest.raises((ValueError, TypeError), match="must "):
        PrivacyProfile.from_dict(content)


def test_directions_on_different_grids_are_refused():
    content = PrivacyProfile.gaussian(1.0).to_dict()
    content["add"] = PrivacyProfile.gaussian(0.1).to_dict()["remove"]
    with pytest.raises(ValueError, match="must "):
        PrivacyProfile.from_dict(content)


@pytest.mark.parametrize(
    "table",
    [
        {"orders": [2.0, 3.0], "values": [1.0]},
        {"orders": [3.0, 2.0], "values": [1.0, 1.0]},
        {"orders": [0.5], "values": [1.0]},
        {"orders": [2.0], "values": [math.nan]},
        {"orders": [2.0], "values": [-1.0]},
        {"orders": ["two"], "values": [1.0]},
    ],
)
def test_a_broken_renyi_table_is_refused(table):
    content = {**PrivacyProfile.pure(0.5).to_dict(), "rdp": table}
    with pytest.raises((ValueError, TypeError), match="must "):
        PrivacyProfile.from_dict(content)


def test_content_is_compact():
    """Equal directions are written once."""
    content = PrivacyProfile.pure(1.0).to_dict()
    assert content["add"] is None and len(json.dumps(content)) < 10_000
