"""Numbers of fits in one order, without clocks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from skdptune.audit._audit import PublishedNumbers
from tests.audit.released import RECORD, RECORDS, NoisySum, sum_of


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
