"""Private principal components: their noise, their sensitivity, their cost, their directions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.decomposition import PCA

from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms import noise_for_budget
from skdptune.preprocessing import DPPCA
from tests.auditing import watched_releases
from tests.preprocessing import conventions

BOUNDS = (-3.0, 3.0)


def correlated(n: int, d: int = 6, seed: int = 0) -> np.ndarray:
    """Return rows whose first two directions have most of the variance."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(d, d)))[0]
    rows = rng.normal(size=(n, d)) * np.array([1.0, 0.6, *[0.1] * (d - 2)])
    return np.clip(rows @ directions + 0.3, *BOUNDS)


def test_scikit_learn_checks() -> None:
    pca = DPPCA(epsilon=1.0, delta=1e-6, bounds=(-20, 20), random_state=0)
    conventions.check_scikit_learn(pca, at_least=40)


# Its columns are components, not features.
OF_NOISE = [check for check in conventions.OF_NOISE if check is not conventions.check_frames]


@pytest.mark.parametrize("check", OF_NOISE)
def test_convention(check) -> None:
    check(DPPCA(epsilon=1.0, delta=1e-6, bounds=BOUNDS, random_state=0))


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_sensitivity_is_attained_and_never_exceeded(n_features) -> None:
    # Theorem R9: principal components of noisy second moments.
    rng = np.random.default_rng(0)
    rows = rng.uniform(-4, 4, size=(6, n_features))
    corners = np.array(list(itertools.product([-9.0, 3.0], repeat=n_features)))
    records = [*corners, *rng.uniform(-4, 4, size=(60, n_features))]
    pca = DPPCA(epsilon=1.0, delta=1e-6, bounds=BOUNDS, random_state=0)
    with watched_releases() as releases:
        for record in records:
            pca.fit(rows)
            pca.fit(np.vstack([rows, record]))
    moved = [
        np.linalg.norm(after.value - before.value)
        for before, after in zip(releases[::2], releases[1::2], strict=True)
    ]
    (claimed,) = {release.shift * release.scale for release in releases}
    assert max(moved) <= claimed
    assert max(moved) == pytest.approx(claimed, rel=1e-5)


def test_cost_is_one_gaussian_release_that_meets_the_budget() -> None:
    # Theorem R9: principal components of noisy second moments.
    pca = DPPCA(epsilon=1.5, delta=1e-6, bounds=BOUNDS, random_state=0)
    with watched_releases() as releases:
        pca.fit(correlated(50))
    (release,) = releases
    profile = pca.privacy_.profile
    assert profile == pca.privacy_profile(50)
    assert 1.49 < profile.epsilon(1e-6) <= 1.5
    exact = PrivacyProfile.gaussian(release.shift)
    assert exact.epsilon(1e-6) <= profile.epsilon(1e-6) * (1 + 1e-9)


def test_without_noise_it_is_scikit_learn() -> None:
    X = correlated(500)
    private = DPPCA(3, epsilon=math.inf, bounds=BOUNDS).fit(X)
    plain = PCA(3).fit(X / 3.0)
    signs = np.sign(np.sum(private.components_ * plain.components_, axis=1))
    assert private.components_ == pytest.approx(signs[:, None] * plain.components_, abs=1e-4)
    assert private.explained_variance_ == pytest.approx(
        plain.explained_variance_ * 499 / 500, abs=1e-6
    )
    ratio = plain.explained_variance_ratio_
    assert private.explained_variance_ratio_ == pytest.approx(ratio, abs=1e-5)
    assert private.transform(X) == pytest.approx(plain.transform(X / 3.0) * signs, abs=1e-3)
    back = plain.inverse_transform(plain.transform(X / 3.0)) * 3.0
    assert private.inverse_transform(private.transform(X)) == pytest.approx(back, abs=1e-3)


def test_bounds_of_each_feature_are_its_scale() -> None:
    X = correlated(300)
    units, offsets = np.array([1.0, 10.0, 1e-3, 1.0, 5.0, 2.0]), np.arange(6.0)
    ends = [end * units + offsets for end in BOUNDS]
    plain = DPPCA(2, epsilon=1.0, bounds=BOUNDS, random_state=0).fit(X)
    scaled = DPPCA(2, epsilon=1.0, bounds=ends, random_state=0).fit(X * units + offsets)
    assert scaled.components_ == pytest.approx(plain.components_, abs=1e-6)
    assert scaled.transform(X * units + offsets) == pytest.approx(plain.transform(X), abs=1e-6)


def test_noise_of_an_entry_is_as_stated() -> None:
    # The covariance of zeros is only noise, with the stated scale on the diagonal and less
    # elsewhere.
    X, found = np.zeros((400, 3)), []
    for seed in range(150):
        pca = DPPCA(epsilon=2.0, delta=1e-5, bounds=BOUNDS, random_state=seed).fit(X)
        found.append(pca.explained_variance_[0])
    ratio = noise_for_budget(2.0, 1e-5)[0]
    assert pca.noise_scale_ == pytest.approx(3 / 400 * math.sqrt(1.0625) * ratio, rel=1e-4)
    # The largest eigenvalue of three: of the order of the noise.
    assert 0.5 * pca.noise_scale_ < np.mean(found) < 3.0 * pca.noise_scale_


def test_directions_are_found_and_whitened() -> None:
    X = correlated(20_000)
    pca = DPPCA(2, epsilon=1.0, delta=1e-6, bounds=BOUNDS, whiten=True, random_state=0).fit(X)
    plain = PCA(2).fit(X)
    overlap = np.linalg.svd(pca.components_ @ plain.components_.T)[1]
    assert overlap.min() > 0.98
    assert pca.transform(X).std(axis=0) == pytest.approx(1.0, abs=0.15)
    framed = pca.set_output(transform="pandas").transform(X)
    assert list(framed.columns) == ["dppca0", "dppca1"]


def test_persons_count_once() -> None:
    # Theorem R9, Theorem P14: a person with many equal rows counts as one row.
    X = correlated(60)
    settings = {"epsilon": 1.0, "delta": 1e-5, "bounds": BOUNDS, "random_state": 0}
    once = DPPCA(**settings).fit(X)
    repeated = np.repeat(np.arange(60), 1 + np.arange(60) % 7)
    by_person = DPPCA(**settings).fit(X[repeated], groups=repeated)
    assert by_person.components_ == pytest.approx(once.components_, abs=1e-6)
    assert by_person.n_samples_seen_ == 60
    assert "person" in by_person.privacy_.neighbouring


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"bounds": None}, "bounds must"),
        ({"n_components": 0}, "n_components must"),
        ({"n_components": 0.9}, "Shares of the variance are not supported"),
        ({"n_components": 7}, "at most the number of features, 6"),
        ({"whiten": "yes"}, "whiten must"),
    ],
)
def test_wrong_settings(settings, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        DPPCA(**{"bounds": BOUNDS, **settings}).fit(correlated(20))
