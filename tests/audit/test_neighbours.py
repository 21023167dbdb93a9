"""Neighbouring data sets from a record of the user's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile
from skdptune.audit import Canary
from skdptune.audit._audit import canary_for
from skdptune.base import REPLACE
from skdptune.linear_model import DPLinearSVC
from tests.audit.released import RECORD, RECORDS, NoisySum

SVC = DPLinearSVC(solver="output", classes=[0, 1], data_norm=1.0)
X, Y = np.zeros((6, 2)), np.array([0, 1, 0, 1, 0, 1])


def test_a_record_is_added() -> None:
    found = canary_for(SVC, X, Y, ([1.0, 0.0], 1))
    assert found.X_with.tolist() == [*X.tolist(), [1.0, 0.0]]
    assert found.y_with.tolist() == [*Y, 1]
    assert found.X_without is not None and len(found.X_without) == 6
    # The real number of records, which differs, is not used.
    assert found.n_public == 6
    assert found.prepared(SVC).n_public == 6


def test_a_record_takes_the_place_of_one_where_the_claim_is_about_that() -> None:
    class Replacing(NoisySum):
        neighbouring = REPLACE

    found = canary_for(Replacing(), RECORDS, None, RECORD)
    assert len(found.X_with) == len(found.X_without) == 4
    assert (found.X_with != found.X_without).sum() == 1
    assert found.n_public is None


def test_tables_stay_what_they_are() -> None:
    frame = pd.DataFrame({"a": [0.0, 0.0], "b": [1.0, 1.0]})
    found = canary_for(NoisySum(), frame, None, [5.0, 6.0])
    assert list(found.X_with.columns) == ["a", "b"]
    assert found.X_with.iloc[-1].tolist() == [5.0, 6.0]
    found = canary_for(NoisySum(), sparse.csr_matrix(RECORDS), None, RECORD)
    assert found.X_with.toarray()[-1].tolist() == [100.0]


def test_where_the_number_of_records_is_public_one_more_is_refused() -> None:
    class Counted(BaseEstimator):
        privacy_assumptions = staticmethod(lambda *args: ("the number of records is public",))

        def privacy_profile(self, n_samples, n_features=None):
            return PrivacyProfile.gaussian(1.0)

    with pytest.raises(ValueError, match="canary must be a Canary of two data sets of one size"):
        canary_for(Counted(), RECORDS, None, RECORD)


def test_a_canary_is_taken_as_it_is() -> None:
    given = Canary(X, Y, X, Y, "add or remove one record", abs)
    assert canary_for(SVC, X, Y, given) is given


@pytest.mark.parametrize(
    ("canary", "complaint"),
    [
        ([1.0, 0.0], "canary must be a pair"),
        (([1.0], 1), "canary must have a row of the shape"),
        ("worst", 'canary must be "auto"'),
    ],
)
def test_other_canaries_are_refused(canary: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        canary_for(SVC, X, Y, canary)
