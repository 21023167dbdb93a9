"""What transformers share that learn nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.accounting import PrivacyProfile
from skdptune.preprocessing import BoundedScaler, RowNormClipper
from tests.base.nasty_records import FORMS, nasty_rows

EVERY = [RowNormClipper(), BoundedScaler((-3, 3))]


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_nothing_is_spent(transformer) -> None:
    assert transformer.privacy_profile(10) == PrivacyProfile.pure(0.0)
    report = transformer.fit(np.eye(3)).privacy_
    assert (report.epsilon, report.delta) == (0.0, 0.0)
    assert report.profile == PrivacyProfile.pure(0.0)
    assert report.name == type(transformer).__name__


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_no_parameter_changes_the_cost(transformer) -> None:
    assert transformer.cost_parameters == frozenset()


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_number_of_records_is_checked(transformer) -> None:
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1; got 0"):
        transformer.privacy_profile(0)


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_nothing_is_learnt(transformer) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 20, 3))
    states = []
    for rows in (one, other):
        fitted = vars(transformer.fit(rows)).copy()
        fitted["privacy_"] = fitted["privacy_"].to_json()
        states.append(fitted)
    assert states[0] == states[1]


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_each_record_is_treated_by_itself(transformer) -> None:
    rows = 3.0 * np.random.default_rng(1).normal(size=(10, 3))
    together = transformer.fit(rows).transform(rows)
    alone = np.vstack([transformer.fit(row[None]).transform(row[None]) for row in rows])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_transform_needs_no_fit(transformer) -> None:
    assert type(transformer)(**transformer.get_params()).transform(np.eye(3)).shape == (3, 3)


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_input_is_left_alone(transformer) -> None:
    rows = np.full((2, 2), 5.0)
    transformer.fit(rows).transform(rows)
    np.testing.assert_array_equal(rows, 5.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_fit_looks_at_no_entry(transformer, form) -> None:
    # Theorem R5.
    for row in nasty_rows(form, 3):
        fitted = clone(transformer).fit(FORMS[form]([[1.0, 2.0, 3.0], row]))
        assert fitted.n_features_in_ == 3
        assert fitted.privacy_.epsilon == 0.0
