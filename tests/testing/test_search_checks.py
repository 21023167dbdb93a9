"""What fails in a pipeline or a search alone is caught there."""

from __future__ import annotations

import pytest

from skdptune.testing import check_private_estimator
from tests.testing import estimators as toys


@pytest.mark.parametrize(
    ("wrong", "check", "message"),
    [
        (toys.DropsRecords, "pipeline", "one row per record"),
        (toys.PredictsPairs, "grid_search", "one predict per record"),
        (toys.NeedsManyRecords, "random_search", "at least 80"),
    ],
)
def test_wrong_estimator_is_caught_by_the_check_for_it(wrong, check, message) -> None:
    # Checks stop at the first that fails: those before it pass.
    with pytest.raises(AssertionError) as caught:
        check_private_estimator(wrong())
    assert str(caught.value).startswith(f"{wrong.__name__} fails check_{check}: ")
    assert message in str(caught.value)
