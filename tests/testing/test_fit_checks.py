"""Wrong reports, leaks and randomness are caught, each by the check for it."""

from __future__ import annotations

import pytest

from skdptune.testing import check_private_estimator
from tests.testing import estimators as toys


@pytest.mark.parametrize(
    ("wrong", "check", "message"),
    [
        (toys.ReportsLess, "report", "announced before the fit"),
        (toys.ReportsNothing, "report", "without privacy_"),
        (toys.ReturnsAnother, "report", "must return the estimator itself"),
        (toys.ReportsWhatItSaw, "report_ignores_values", "must not depend on the values"),
        (
            toys.CostsMoreForLargeValues,
            "report_ignores_values",
            "must not depend on the values",
        ),
        (toys.CostsByTheRealSize, "n_public", "must not depend on n_samples"),
        (toys.ShowsTheRealSize, "n_public", "['n_samples_seen_'] do"),
        (toys.IgnoresItsSeed, "random_state", "random_state=7 must repeat itself"),
        (toys.IsAlwaysSeeded, "random_state", "must draw fresh noise"),
        (
            toys.SharesAGenerator,
            "random_state",
            "clones with a Generator as random_state",
        ),
        (toys.FitsCopies, "fit_many", "fitted in place"),
        (toys.CannotBeSent, "pickle", "pickle"),
    ],
)
def test_wrong_estimator_is_caught_by_the_check_for_it(wrong, check, message) -> None:
    # Checks stop at the first that fails: those before it pass.
    with pytest.raises(AssertionError) as caught:
        check_private_estimator(wrong())
    assert str(caught.value).startswith(f"{wrong.__name__} fails check_{check}: ")
    assert message in str(caught.value)
