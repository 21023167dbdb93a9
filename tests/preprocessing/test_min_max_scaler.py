"""A private range of quantiles: its place, its cost, and its result in unlucky draws."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.preprocessing import DPMinMaxScaler
from skdptune.preprocessing import _private_scalers as module
from tests.accounting.cases import few
from tests.base.nasty_records import FORMS
from tests.preprocessing import conventions

BOUNDS = (-3.0, 3.0)


@pytest.fixture
def asked(monkeypatch):
    """Record the budgets of quantiles, and return them as planned."""
    calls: list[tuple] = []
    answers: list[float] = []

    def quantile(counts, level, low, high, epsilon, random_state):
        calls.append((level, low, high, epsilon))
        return answers.pop(0) if answers else low + level * (high - low)

    monkeypatch.setattr(module, "quantile_of_counts", quantile)
    return calls, answers


def test_scikit_learn_checks() -> None:
    scaler = DPMinMaxScaler(1.0, bounds=(-20, 20), random_state=0)
    conventions.check_scikit_learn(scaler, at_least=44)


@pytest.mark.parametrize("check", conventions.OF_NOISE)
@pytest.mark.parametrize("clip", [True, False])
def test_convention(check, clip) -> None:
    check(DPMinMaxScaler(1.0, bounds=BOUNDS, clip=clip, random_state=0))


@pytest.mark.parametrize("n_features", [1, 3, 7])
def test_shares_of_the_budget_add_up(asked, n_features) -> None:
    # Theorem R1: noise of the scalers.
    rows = np.random.default_rng(0).normal(size=(30, n_features))
    lower = -np.arange(1.0, n_features + 1)
    scaler = DPMinMaxScaler(0.8, bounds=(lower, 3.0), quantile_range=(10, 80)).fit(rows)
    calls, _ = asked
    assert sum(call[3] for call in calls) == pytest.approx(0.8)
    assert len({call[3] for call in calls}) == 1
    assert [call[0] for call in calls] == [0.1, 0.8] * n_features
    assert [call[1] for call in calls] == np.repeat(lower, 2).tolist()
    assert scaler.privacy_.profile == PrivacyProfile.pure(0.8)
    assert (scaler.privacy_.epsilon, scaler.privacy_.delta) == (0.8, 0.0)
    assert "the number of records is public" in scaler.privacy_.assumptions


def test_quantiles_are_found_in_far_too_wide_bounds() -> None:
    rows = np.random.default_rng(1).uniform([10, -5], [20, 5], size=(4000, 2))
    scaler = DPMinMaxScaler(2.0, bounds=(-1e4, 1e4), random_state=0).fit(rows)
    np.testing.assert_allclose(scaler.data_min_, [10.5, -4.5], atol=0.3)
    np.testing.assert_allclose(scaler.data_max_, [19.5, 4.5], atol=0.3)
    np.testing.assert_allclose(
        scaler.transform([scaler.data_min_, scaler.data_max_]), [[0, 0], [1, 1]], atol=1e-9
    )


def test_without_privacy_it_is_the_quantile_itself() -> None:
    rows = np.random.default_rng(2).uniform(-1, 1, size=(101, 1))
    scaler = DPMinMaxScaler(math.inf, bounds=BOUNDS, quantile_range=(10, 80)).fit(rows)
    low, high = np.quantile(rows, [0.1, 0.8], axis=0, method="inverted_cdf")
    np.testing.assert_allclose(scaler.data_min_, low, atol=1e-5)
    np.testing.assert_allclose(scaler.data_max_, high, atol=1e-5)
    assert math.isinf(scaler.privacy_.epsilon)


def test_reversed_quantiles_are_swapped(asked) -> None:
    asked[1].extend([2.0, -1.0])
    scaler = DPMinMaxScaler(1.0, bounds=BOUNDS).fit(np.zeros((3, 1)))
    assert (scaler.data_min_.tolist(), scaler.data_max_.tolist()) == ([-1.0], [2.0])


@pytest.mark.parametrize("distance", [0.0, 1e-6])
def test_quantiles_that_coincide_give_way_to_the_bounds(asked, distance) -> None:
    asked[1].extend([1.0, 1.0 + distance, -1.0, 1.0])
    scaler = DPMinMaxScaler(1.0, bounds=BOUNDS).fit(np.zeros((3, 2)))
    assert scaler.data_min_.tolist() == [-3.0, -1.0]
    assert scaler.data_max_.tolist() == [3.0, 1.0]


@pytest.mark.parametrize("clip", [True, False])
def test_clip_decides_what_lies_beyond(clip) -> None:
    rows = np.random.default_rng(3).uniform(-3, 3, size=(500, 1))
    scaler = DPMinMaxScaler(bounds=BOUNDS, clip=clip, feature_range=(-1, 2), random_state=0)
    result = scaler.fit_transform(rows)
    inside = (result >= -1) & (result <= 2)
    assert inside.all() == clip
    back = scaler.inverse_transform(result)
    np.testing.assert_allclose(
        back[inside & (np.abs(result - 0.5) < 1.4)],
        rows[inside & (np.abs(result - 0.5) < 1.4)],
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("parameters", "kind", "complaint"),
    [
        ({"bounds": None}, ValueError, "known without looking at the data"),
        ({"bounds": (-1.7e308, 1.7e308)}, ValueError, "finite distance apart"),
        ({"epsilon": 0}, ValueError, "epsilon must be"),
        ({"quantile_range": (5, 5)}, ValueError, "quantile_range must be"),
        ({"quantile_range": (-1, 5)}, ValueError, "quantile_range must be"),
        ({"quantile_range": (5, 101)}, ValueError, "quantile_range must be"),
        ({"quantile_range": None}, ValueError, "quantile_range must be"),
        ({"feature_range": (1, 0)}, ValueError, "feature_range must be"),
        ({"clip": "no"}, TypeError, "clip must be True or False"),
    ],
)
def test_bad_parameters_are_refused_before_the_data_is_read(parameters, kind, complaint) -> None:
    scaler = DPMinMaxScaler(**{"bounds": BOUNDS, **parameters})
    with pytest.raises(kind, match=complaint):
        scaler.fit(object())
    with pytest.raises(kind, match=complaint):
        scaler.privacy_profile(100)


def test_nothing_public_hangs_on_the_size_of_the_part() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    scaler = DPMinMaxScaler(1.0, bounds=BOUNDS, random_state=0, n_public=100)
    for size in (0, 1, 2, 300):
        part = scaler.fit(rows[:size])
        assert part.n_samples_seen_ == 100
        assert part.privacy_.profile == scaler.privacy_profile(10**6)
        assert np.isfinite(part.transform(rows)).all()


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize(
    ("form", "bounds"), few(4, FORMS, [BOUNDS, (0.0, 1e308), (1e300, 1.1e300)])
)
def test_any_record(form, bounds, monkeypatch) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    def rows_at(scaler, X):
        found, on_grid = [], module.on_grid
        with monkeypatch.context() as patched:
            patched.setattr(
                module, "on_grid", lambda *given: found.append(given[0]) or on_grid(*given)
            )
            scaler.fit(X)
        return np.column_stack(found)

    conventions.check_any_record(DPMinMaxScaler(bounds=bounds, random_state=0), form, rows_at)


EXTREMES = [0.0, 1.0, 1e-310, 1e-20, 1e20, 1e300, -1e300, 8e307, -1e308]


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
def test_no_range_makes_a_scale_infinite() -> None:
    rows = np.array([[0.0], [1e300], [-1e300]])
    n_fitted = n_refused = 0
    pairs = list(itertools.combinations(sorted(EXTREMES), 2))
    for place in np.random.default_rng(0).choice(len(pairs) ** 2, 200, replace=False):
        bounds, ends = pairs[place // len(pairs)], pairs[place % len(pairs)]
        scaler = DPMinMaxScaler(bounds=bounds, feature_range=ends, random_state=0)
        try:
            scaler.privacy_profile(10)
        except ValueError as problem:
            assert re.search("must (be|give)", str(problem))
            n_refused += 1
            continue
        # What is refused follows from parameters, so that no fit raises.
        conventions.check_finite(scaler.fit(rows))
        assert (scaler.scale_ > 0.0).all()
        n_fitted += 1
    assert min(n_fitted, n_refused) > 40
