"""Adding the probability of failure to a profile."""

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile, posterior_sample, with_failure

PROFILES = {
    "pure": PrivacyProfile.pure(1.0),
    "gaussian": PrivacyProfile.gaussian(0.7),
    "two-sided": posterior_sample(0.3, 3.0),
}


@pytest.mark.parametrize("probability", [1e-12, 1e-6, 0.01])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_probability_is_added_at_every_epsilon(profile, probability):
    # Theorem L3: a premise that fails with probability p costs δ = p.
    failing = with_failure(profile, probability)
    epsilons = np.linspace(0.0, 5.0, 101)
    for direction in ("remove", "add"):
        plain = profile.delta(epsilons, direction)
        shown = failing.delta(epsilons, direction)
        assert (shown <= (plain + probability) * (1.0 + 1e-6) + 1e-14).all()
        # Convexity proves a little less than the sum, around 0 and where a curve is a line.
        far = epsilons > 1.2
        assert (shown[far] >= plain[far] + probability * (1.0 - 1e-6)).all()
        assert (shown >= plain * (1.0 - 1e-9) + 0.2 * probability).all()


def test_it_covers_a_release_that_fails():
    # Theorem L3: a premise that fails with probability p costs δ = p.
    # Randomised response that with probability 0.01 publishes the record instead.
    p, failure = 1.0 / (1.0 + np.exp(-1.0)), 0.01
    first = np.array([(1 - failure) * p, (1 - failure) * (1 - p), failure, 0.0])
    second = np.array([(1 - failure) * (1 - p), (1 - failure) * p, 0.0, failure])
    failing = with_failure(PrivacyProfile.pure(1.0), failure)
    for epsilon in np.linspace(-2.0, 3.0, 51):
        true = np.maximum(first - np.exp(epsilon) * second, 0.0).sum()
        assert failing.delta(epsilon, "remove") >= true - 1e-12


def test_extreme_failures():
    profile = PrivacyProfile.pure(0.5)
    assert with_failure(profile, 1e-6).epsilon(0.9e-6) == np.inf
    assert with_failure(profile, 1e-6).epsilon(1.1e-6) <= 0.5
    assert with_failure(profile, 1.0).delta(3.0) == pytest.approx(1.0)
    assert with_failure(profile, 0.0) is profile
