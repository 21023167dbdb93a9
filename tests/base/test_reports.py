"""Reports of what was fitted, at its own delta and at others."""

from __future__ import annotations

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of, profile_of, register_profile
from tests.base.estimators import ROWS, Foreign, Private


def test_report_of_a_fitted_estimator_is_its_own() -> None:
    fitted = Private(0.5, 1e-6).fit(ROWS)
    assert privacy_of(fitted) is fitted.privacy_


def test_report_at_another_delta_keeps_everything_else() -> None:
    fitted = Private(0.5, 1e-6).fit(ROWS)
    report = privacy_of(fitted, delta=0.01)
    assert report.delta == 0.01
    assert report.epsilon == report.profile.epsilon(0.01) < fitted.privacy_.epsilon
    assert report.profile == fitted.privacy_.profile
    assert (report.name, report.assumptions) == ("Private", ("one",))
    assert privacy_of(fitted, delta=1e-6) is fitted.privacy_


@pytest.mark.parametrize("delta", [-1e-9, 1.5])
def test_delta_is_checked(delta) -> None:
    with pytest.raises(ValueError, match="delta must be"):
        privacy_of(Private().fit(ROWS), delta=delta)


def test_unfitted_estimator_has_no_report() -> None:
    with pytest.raises(ValueError, match="fitted must be fitted; got a Private without privacy_"):
        privacy_of(Private())
    with pytest.raises(ValueError, match="got a Private without privacy_"):
        privacy_of(make_pipeline(Normalizer(), Private()))


def test_what_learns_nothing_has_a_report_of_nothing() -> None:
    for fitted in (Normalizer(), Normalizer().fit(ROWS)):
        report = privacy_of(fitted)
        assert (report.epsilon, report.delta, report.name) == (0.0, 0.0, "Normalizer")


def test_report_of_what_learns_at_no_stated_cost_is_refused() -> None:
    with pytest.raises(NoProfileError, match="got StandardScaler"):
        privacy_of(StandardScaler().fit(ROWS))
    with pytest.raises(NoProfileError, match="got StandardScaler"):
        privacy_of(make_pipeline(StandardScaler()).fit(ROWS))


def test_report_of_a_registered_class_asks_for_the_size_it_depends_on(registry) -> None:
    register_profile(Foreign)(lambda e, n, d: PrivacyProfile.gaussian(n / 1000))
    pipeline = make_pipeline(Normalizer(), Foreign()).fit(ROWS)
    with pytest.raises(ValueError, match="n_samples must be given: the cost of Foreign"):
        privacy_of(pipeline)
    wanted = profile_of(pipeline, len(ROWS))
    assert privacy_of(pipeline, n_samples=len(ROWS)).profile == wanted
