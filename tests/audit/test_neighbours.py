"""Neighbouring data sets from a user's record, and the numbers that fits to them publish."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile
from skdptune.audit import Canary
from skdptune.audit._audit import PublishedNumbers, canary_for
from skdptune.base._shared import REPLACE
from skdptune.linear_model import DPLinearSVC
from tests.audit.released import RECORD, RECORDS, NoisySum, sum_of

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


def test_named_numbers_come_first() -> None:
    fitted = [NoisySum(random_state=seed).fit(RECORDS) for seed in (0, 1)]
    numbers = PublishedNumbers(sum_of, RECORD[None], fitted)
    found = numbers(fitted[0])
    assert numbers.n_first == 1
    assert found[0] == fitted[0].sum_
    assert found.size == numbers(fitted[1]).size
    # Parameters, and the sum once more among all that is published.
    assert (found[1:] == fitted[0].sum_).sum() == 1


def test_places_that_a_fit_lacks_are_missing() -> None:
    first, other = (SimpleNamespace(weights_=np.ones(size), bias_=2.0) for size in (3, 4))
    numbers = PublishedNumbers(None, RECORD, [first])
    assert numbers(first).tolist() == [1.0, 1.0, 1.0, 2.0]
    assert np.isnan(numbers(other)).tolist() == [True, True, True, False]
    # What not both examples have is not looked at.
    assert PublishedNumbers(None, RECORD, [first, other])(other).tolist() == [2.0]


def test_clocks_are_not_looked_at() -> None:
    results = {"mean_fit_time": np.array([1.0]), "mean_test_score": np.array([0.5])}
    search = SimpleNamespace(cv_results_=results, refit_time_=3.0, best_score_=0.5)
    # The number of columns, and both scores.
    assert PublishedNumbers(None, RECORD, [search])(search).tolist() == [2.0, 0.5, 0.5]


def test_of_very_many_numbers_some_are_looked_at() -> None:
    large = SimpleNamespace(weights_=np.arange(100_000.0))
    found = PublishedNumbers(None, RECORD, [large])(large)
    assert found.size == 4096
    assert (found[0], found[-1]) == (0.0, 99_999.0)
