"""What a fit publishes without noise is caught, on the data of the check or one's own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.testing import check_private_estimator
from skdptune.testing._fit_checks import check_neighbours
from skdptune.testing._subject import CheckDoesNotApply, Subject, made_up_data
from tests.testing import estimators as toys


def test_wrong_estimator_is_caught_by_the_check_for_it() -> None:
    # Checks stop at the first that fails: those before it pass.
    with pytest.raises(AssertionError) as caught:
        check_private_estimator(toys.CountsForFree())
    assert str(caught.value).startswith("CountsForFree fails check_neighbours: ")
    assert "n_kept_ differs when a record is" in str(caught.value)


def test_own_data_of_any_form_are_used() -> None:
    X, y = made_up_data(toys.Right())
    for rows, labels in (
        (X, y),
        (X, y.tolist()),
        (X.astype(np.float32), np.asarray(y, dtype=object)),
    ):
        check_neighbours(Subject(toys.Right(), rows, labels))
        with pytest.raises(AssertionError, match="n_kept_"):
            check_neighbours(Subject(toys.CountsForFree(), rows, labels))
    check_neighbours(Subject(toys.RightTransformer(), pd.DataFrame(X), None))


def test_it_does_not_apply_without_a_claim() -> None:
    class ClaimsNothing(toys.Right):
        def privacy_profile(self, n_samples, n_features=None):
            return PrivacyProfile.approximate(0.0, 1.0)

    with pytest.raises(CheckDoesNotApply, match="claims no privacy"):
        check_neighbours(Subject(ClaimsNothing(), *made_up_data(ClaimsNothing())))
