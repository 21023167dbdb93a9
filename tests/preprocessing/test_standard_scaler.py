"""Private means and deviations: their noise, their sensitivity, their cost."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms import unit_sum
from skdptune.preprocessing import DPStandardScaler, _private_scalers
from tests.accounting.cases import few
from tests.auditing import watched_releases
from tests.base.nasty_records import FORMS
from tests.preprocessing import conventions

BOUNDS = (-3.0, 3.0)


# The constant that is subtracted from squares of features, so that no record changes a pair by
# more than necessary.
CENTRES = {"gaussian": 1.0, "laplace": 0.875}


@pytest.fixture
def releases():
    """Record what is released, and with what noise."""
    with watched_releases() as seen:
        yield seen


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_scikit_learn_checks(delta) -> None:
    scaler = DPStandardScaler(1.0, delta, bounds=(-20, 20), random_state=0)
    conventions.check_scikit_learn(scaler, at_least=44)


@pytest.mark.parametrize("check", conventions.OF_NOISE)
@pytest.mark.parametrize(("delta", "with_std"), [(0.0, False), (1e-6, True)])
def test_convention(check, delta, with_std) -> None:
    check(DPStandardScaler(1.0, delta, bounds=BOUNDS, with_std=with_std, random_state=0))


# Sensitivity and cost ------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("with_std", [True, False])
@pytest.mark.parametrize("n_features", [1, 3])
def test_sensitivity_is_attained_and_never_exceeded(releases, delta, with_std, n_features) -> None:
    # Theorem R1: noise of the scalers.
    rng = np.random.default_rng(0)
    rows = rng.uniform(-4, 4, size=(6, n_features))
    grid = np.linspace(-3.2, 3.2, 33)
    records = [np.full(n_features, value) for value in grid]
    records += list(rng.uniform(-4, 4, size=(30, n_features)))
    scaler = DPStandardScaler(1.0, delta, bounds=BOUNDS, with_std=with_std, random_state=0)
    for record in records:
        scaler.fit(rows)
        scaler.fit(np.vstack([rows, record]))
    order = 2 if delta else 1
    moved = [
        np.linalg.norm(after.value - before.value, ord=order)
        for before, after in zip(releases[::2], releases[1::2], strict=True)
    ]
    (claimed,) = {release.shift * release.scale for release in releases}
    assert max(moved) <= claimed * (1 + 1e-12)
    assert max(moved) == pytest.approx(claimed, rel=1e-3)


def test_rounded_pairs_are_no_longer_than_the_sensitivity_to_the_last_bit() -> None:
    # Theorem R1: in units of 2^-26, whose squares are integers below 2^53.
    rng = np.random.default_rng(0)
    whole = np.concatenate([rng.integers(0, 2**26 + 1, 200), [0, 1, 2**25, 2**26 - 1, 2**26]])
    exact = whole * 2.0**-26
    units = np.concatenate([exact, np.nextafter(exact, 0), np.nextafter(exact, 1), [1e-9, 1e-300]])
    for centre, order in ((CENTRES["gaussian"], 2), (CENTRES["laplace"], 1)):
        lengths = []
        for unit in np.concatenate([units, -units]):
            pair = unit_sum(np.array([[unit, unit**2 - centre]])) * 2.0**26
            lengths.append(sum(abs(int(number)) ** order for number in pair))
        most = 2**52 if order == 2 else 9 * 2**23
        assert max(lengths) == most


@pytest.mark.parametrize("with_std", [True, False])
@pytest.mark.parametrize("n_features", [1, 2, 50])
def test_noise_over_sensitivity_is_what_the_cost_says(releases, with_std, n_features) -> None:
    rows = np.zeros((5, n_features))
    for delta in (0.0, 1e-6):
        scaler = DPStandardScaler(0.7, delta, bounds=BOUNDS, with_std=with_std, random_state=0)
        scaler.fit(rows)
        value, shift, scale, _ = releases[-1]
        assert value.size == n_features * (2 if with_std else 1)
        assert scale == scaler.noise_scale_
        if delta:
            exact = PrivacyProfile.gaussian(shift)
            points = np.linspace(0.0, 1.5, 20)
            difference = exact.delta(points) - scaler.privacy_.profile.delta(points)
            assert np.abs(difference).max() < 1e-9
        else:
            assert shift == pytest.approx(0.7)
            assert scaler.privacy_.profile == PrivacyProfile.pure(0.7)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_budget_is_spent_and_not_exceeded(delta) -> None:
    scaler = DPStandardScaler(0.5, delta, bounds=BOUNDS, random_state=1).fit(np.eye(3))
    report = scaler.privacy_
    assert (report.epsilon, report.delta) == (0.5, delta)
    assert 0.499 < report.epsilon_spent <= 0.5
    assert "the number of records is public" in report.assumptions
    assert any("seed" in words for words in report.assumptions)
    unseeded = DPStandardScaler(0.5, delta, bounds=BOUNDS).fit(np.eye(3)).privacy_
    assert not any("seed" in words for words in unseeded.assumptions)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_single_features_keep_their_size_at_the_same_noise(releases, delta) -> None:
    # Theorem R1: a scale of 1 in place of a released one.
    rows = np.random.default_rng(0).normal(size=(50, 3))
    some, all_of_them = (
        DPStandardScaler(1.0, delta, bounds=BOUNDS, with_std=with_std, random_state=0).fit(rows)
        for with_std in ([True, False, True], True)
    )
    np.testing.assert_array_equal(releases[0].value, releases[1].value)
    np.testing.assert_array_equal(some.mean_, all_of_them.mean_)
    np.testing.assert_array_equal(some.scale_, np.where([1, 0, 1], all_of_them.scale_, 1.0))
    assert some.privacy_.profile == all_of_them.privacy_.profile
    np.testing.assert_allclose(some.inverse_transform(some.transform(rows)), rows, atol=1e-12)
    none = DPStandardScaler(1.0, delta, bounds=BOUNDS, with_std=[False] * 3, random_state=0)
    assert none.fit(rows).scale_ is None
    assert releases[-1].value.size == 3
    with pytest.raises(ValueError, match="with_std must be True, False, or one"):
        none.fit(rows[:, :2])


def test_without_mean_and_deviation_nothing_is_released_or_spent(releases) -> None:
    rows = np.random.default_rng(0).normal(size=(9, 2))
    scaler = DPStandardScaler(bounds=BOUNDS, with_mean=False, with_std=False)
    np.testing.assert_array_equal(scaler.fit_transform(rows), rows)
    np.testing.assert_array_equal(scaler.inverse_transform(rows), rows)
    assert releases == []
    assert scaler.privacy_.profile == PrivacyProfile.pure(0.0)
    assert scaler.mean_ is scaler.var_ is scaler.scale_ is None


# Noise ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delta", "distribution"), [(0.0, stats.laplace), (1e-6, stats.norm)])
@pytest.mark.parametrize("seeded", [True, False])
def test_noise_of_the_mean_has_the_scale_and_shape_that_it_says(
    delta, distribution, seeded
) -> None:
    n_features = 3000
    rows = np.tile([[0.75], [-1.5], [2.25]], n_features)
    state = 3 if seeded else None
    scaler = DPStandardScaler(1.0, delta, bounds=BOUNDS, with_std=False, random_state=state)
    # So much budget that no mean is clipped.
    scaler.set_params(epsilon=1.0 if delta else 1e5).fit(rows)
    if delta:
        wide = DPStandardScaler(25.0, delta, bounds=BOUNDS, with_std=False, random_state=state)
        scaler = wide.fit(np.repeat(rows, 100, axis=0))
    noise = (scaler.mean_ - 0.5) / 3.0 * scaler.n_samples_seen_ / scaler.noise_scale_
    assert abs(noise).max() > 2.0
    assert stats.kstest(noise, distribution.cdf).pvalue > 1e-9


def test_moments_without_noise_are_those_of_clipped_features() -> None:
    rows = 2.0 * np.random.default_rng(3).normal(0.5, size=(500, 3))
    scaler = DPStandardScaler(math.inf, bounds=BOUNDS).fit(rows)
    clipped = np.clip(rows, *BOUNDS)
    np.testing.assert_allclose(scaler.mean_, clipped.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(scaler.scale_, clipped.std(axis=0), atol=1e-6)
    assert math.isinf(scaler.privacy_.epsilon)


# Data cannot crash it ----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 1e3, math.inf])
def test_constant_column_never_divides_by_nothing(epsilon) -> None:
    values = (0.0, -3.0, 3.0, 1e9, -1e300)
    for delta, value, n_samples in itertools.product((0.0, 1e-6), values, (1, 30)):
        rows = np.full((n_samples, 2), value)
        scaler = DPStandardScaler(epsilon, delta, bounds=BOUNDS, random_state=0).fit(rows)
        assert np.all(scaler.scale_ >= 1e-6 * 3.0)
        assert np.all(scaler.scale_ <= 3.0)
        assert np.all(np.abs(scaler.mean_) <= 3.0)
        clipped = np.clip(rows, *BOUNDS)
        assert np.abs(scaler.transform(clipped)).max() <= 6.0 / scaler.scale_.min()


def test_small_deviations_survive_single_precision() -> None:
    rows = np.linspace(-1e-42, 1e-42, 50, dtype=np.float32)[:, None]
    scaler = DPStandardScaler(math.inf, bounds=(-1e-42, 1e-42)).fit(rows)
    result = scaler.transform(rows)
    assert result.dtype == np.float32
    assert result.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("parameters", "kind", "complaint"),
    [
        ({"bounds": None}, ValueError, "known without looking at the data"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": None}, TypeError, "epsilon must be"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be"),
        ({"delta": 1.0}, ValueError, "delta must be"),
        ({"delta": -1e-9}, ValueError, "delta must be"),
        ({"with_std": "yes"}, TypeError, "with_std must be True or False"),
        ({"with_std": [True, 0]}, TypeError, "with_std must be True or False"),
        ({"with_mean": 1}, TypeError, "with_mean must be True or False"),
    ],
)
def test_bad_parameters_are_refused_before_the_data_is_read(parameters, kind, complaint) -> None:
    scaler = DPStandardScaler(**{"bounds": BOUNDS, **parameters})
    with pytest.raises(kind, match=complaint):
        scaler.fit(object())
    with pytest.raises(kind, match=complaint):
        scaler.privacy_profile(100)


# A random part of secret size ------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("with_std", [True, False])
def test_nothing_public_hangs_on_the_size_of_the_part(releases, delta, with_std) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    scaler = DPStandardScaler(1.0, delta, bounds=BOUNDS, with_std=with_std, random_state=0)
    whole = scaler.fit(rows[:100])
    expected = (whole.noise_scale_, whole.n_samples_seen_, whole.privacy_)
    scaler.set_params(n_public=100)
    for size in (0, 1, 2, 100, 300):
        part = scaler.fit(rows[:size])
        assert (part.noise_scale_, part.n_samples_seen_, part.privacy_) == expected
        assert np.isfinite(part.transform(rows)).all()
    assert len({(release.shift, release.scale) for release in releases}) == 1


@pytest.mark.parametrize(("delta", "noise"), [(1e-5, "gaussian"), (0.0, "laplace")])
def test_sums_are_divided_by_the_public_size(delta, noise) -> None:
    rows = np.random.default_rng(0).uniform(0, 1, size=(100, 2))
    scaler = DPStandardScaler(math.inf, delta, bounds=BOUNDS, with_std=False, n_public=400)
    np.testing.assert_allclose(scaler.fit(rows).mean_, rows.sum(axis=0) / 400, atol=1e-6)
    scaler.set_params(with_std=True).fit(rows)
    # Squares are centred before they are summed, so missing records count as the centre.
    centre = CENTRES[noise]
    squares = ((rows / 3) ** 2).sum(axis=0) / 400 + centre * 300 / 400
    means = rows.sum(axis=0) / 3 / 400
    np.testing.assert_allclose(scaler.var_, 9 * (squares - means**2), atol=1e-5)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize(
    ("form", "bounds"), few(4, FORMS, [BOUNDS, (-1e308, 1e308), (0.0, 5e-324), (1e300, 1.1e300)])
)
def test_any_record(form, bounds, monkeypatch) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    def rows_at(scaler, X):
        found = []

        def sums(rows, contributions, persons):
            found.extend(values[:, :3] for values in contributions(rows))
            return np.zeros(6)

        with monkeypatch.context() as patched:
            patched.setattr(_private_scalers, "unit_sums", sums)
            scaler.fit(X)
        assert np.abs(found[0]).max() <= 1.0
        return found[0]

    scaler = DPStandardScaler(1.0, 1e-6, bounds=bounds, random_state=0)
    conventions.check_any_record(scaler, form, rows_at)
