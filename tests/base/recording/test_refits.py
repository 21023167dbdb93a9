"""A second fit of one object to as many records warns, once, where no ledger records it."""

from __future__ import annotations

import gc
import math
import pickle
import warnings

import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from skdptune.base import PrivacyWarning
from skdptune.base._recording import _refits
from skdptune.linear_model import DPLogisticRegression
from tests.base.counted import LABELS, ROWS, Counted

MESSAGE = "Counted is fitted again to as many records: costs of fits to the same data add up"


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_second_fit_warns_once_where_it_is_called():
    estimator = Counted().fit(ROWS, LABELS)
    with pytest.warns(PrivacyWarning, match=MESSAGE) as found:
        estimator.fit(X=ROWS, y=LABELS)
    assert found[0].filename == __file__
    estimator.fit(ROWS, LABELS)


def test_other_sizes_clones_and_copies_do_not():
    estimator = Counted().fit(ROWS, LABELS).fit(ROWS[:20], LABELS[:20])
    clone(estimator).fit(ROWS[:20], LABELS[:20])
    pickle.loads(pickle.dumps(estimator)).fit(ROWS[:20], LABELS[:20])
    cross_val_score(estimator, ROWS, LABELS, cv=3)


def test_fit_through_another_method_of_the_object_is_one_fit():
    estimator = Counted()
    estimator.partial_fit(ROWS, LABELS)
    with pytest.warns(PrivacyWarning, match=MESSAGE):
        estimator.partial_fit(ROWS, LABELS)


def test_recorded_fits_do_not(ledger):
    estimator = Counted(ledger=ledger)
    estimator.fit(ROWS, LABELS).fit(ROWS, LABELS)
    assert len(ledger.history()) == 2


def test_what_protects_nothing_does_not():
    model = DPLogisticRegression(epsilon=math.inf, solver="output")
    model.fit(ROWS, LABELS).fit(ROWS, LABELS)


def test_secret_size_is_not_compared():
    estimator = Counted().fit(ROWS, LABELS)
    estimator.n_public = 30
    estimator.fit(ROWS[:20], LABELS[:20])
    with pytest.warns(PrivacyWarning, match=MESSAGE):
        estimator.fit(ROWS[:21], LABELS[:21])


def test_no_size_is_kept_in_the_object_nor_after_it():
    estimator = Counted().fit(ROWS, LABELS)
    before = len(_refits._sizes)
    assert estimator in _refits._sizes
    assert "24" not in repr(vars(estimator))
    del estimator
    gc.collect()
    assert len(_refits._sizes) < before


def test_data_without_a_length_and_objects_without_identity_are_passed_over():
    _refits.warn_of_refit(Counted(), iter(()), stacklevel=1)
    _refits.warn_of_refit([], ROWS, stacklevel=1)
