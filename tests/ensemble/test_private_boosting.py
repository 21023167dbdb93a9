"""Common properties of classifier and regressor, as private estimators."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.base import privacy_of
from skdptune.ensemble import DPExplainableBoostingClassifier as Classifier
from skdptune.ensemble import DPExplainableBoostingRegressor as Regressor
from skdptune.ledger import PrivacyLedger
from skdptune.preprocessing import make_private_pipeline
from skdptune.testing import replay_neighbours
from tests.base.nasty_records import FIT_TAKES_ANY_TARGET, IMPROPER, as_objects
from tests.conventions import check_as_scikit_learn_does
from tests.ensemble.tables import SCHEMA, people

QUICK = {"max_rounds": 5, "max_bins": 8}
CLASSIFIER = Classifier(bounds=(-1, 1), classes=[0, 1], random_state=0, **QUICK)
REGRESSOR = Regressor(bounds=(-1, 1), target_bound=2.0, random_state=0, **QUICK)
BOTH = pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=["classes", "numbers"])
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 2))
Y = (X[:, 0] > 0).astype(int)


def same_model(one, other):
    pairs = zip(one.term_scores_, other.term_scores_, strict=True)
    return all(np.array_equal(a, b) for a, b in pairs) and np.array_equal(
        one.intercept_, other.intercept_
    )


@BOTH
def test_scikit_learns_checks(model):
    wide = {"bounds": (-10, 10)} | ({"classes": None} if model is CLASSIFIER else {})
    model = clone(model).set_params(random_state=None, **wide)
    check_as_scikit_learn_does(model, FIT_TAKES_ANY_TARGET, 40)


@BOTH
def test_improper_records_are_rows_of_zeros(model):
    # Theorem R5: in the worst case a record becomes a constant row.
    for entry in IMPROPER:
        spoilt = as_objects(X[:50].tolist())
        spoilt[7, 1] = entry
        zeros = X[:50].copy()
        zeros[7] = 0.0
        targets = Y[:50].astype(float if model is REGRESSOR else int)
        targets[7] = 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".* is fitted again")
            found = clone(model).fit(spoilt, targets)
        assert same_model(found, clone(model).fit(zeros, targets))


@BOTH
def test_numbers_beyond_the_bounds_are_clipped(model):
    far = X.copy()
    far[::3] *= 1e200
    assert same_model(clone(model).fit(far, Y), clone(model).fit(np.clip(far, -1, 1), Y))


@BOTH
def test_nothing_published_holds_the_real_number_of_records(model):
    fits = [clone(model).set_params(n_public=400).fit(X[:n], Y[:n]) for n in (400, 399)]
    public = ("learning_rate_", "privacy_", "n_features_in_", "term_names_")
    for name in public:
        one, other = (getattr(fitted, name) for fitted in fits)
        assert (one.to_dict() if name == "privacy_" else one) == (
            other.to_dict() if name == "privacy_" else other
        )
    noisy = {"bins_", "bin_weights_", "term_scores_", "intercept_", "term_deviations_"}
    noisy |= {"pairs_", "pair_bins_", "pair_scores_", "pair_deviations_"}
    own = {name for name in vars(fits[0]) if name.endswith("_")}
    assert own - noisy - {"classes_"} == set(public)


@BOTH
def test_no_record_is_enough_for_a_random_part(model):
    model = clone(model).set_params(n_public=400)
    model.fit(X[:0], Y[:0])
    assert np.isfinite(model.term_scores_[0]).all()
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        clone(model).set_params(n_public=None).fit(X[:0], Y[:0])


def test_a_rare_category_shows_no_more_than_any_record():
    # Theorem B1: a declared category that only one record has.
    table, labels = people(300)
    record = table.iloc[0].copy()
    record["sector"] = "rare"
    model = Classifier(schema=SCHEMA, epsilon=0.5, **QUICK)
    replay_neighbours(model, table, labels, (record, "yes"), n_repeats=10).assert_passes()
    with_it = table.copy()
    with_it.loc[0, "sector"] = "rare"
    for seed in range(20):
        # Noise decides whether it has a separate bin, as for categories without records.
        fits = [
            clone(model).set_params(random_state=seed).fit(t, labels) for t in (table, with_it)
        ]
        assert fits[0].bins_[2].size == fits[1].bins_[2].size == 6


def test_any_cell_of_a_table_may_be_anything():
    # Theorem R7: a table with a public schema is encoded cell by cell.
    table, labels = people(60)
    model = Classifier(schema=SCHEMA, random_state=0, **QUICK)
    for entry in IMPROPER:
        spoilt = table.astype(object)
        for name in ("age", "pay", "sector", "paid"):
            spoilt.at[3, name] = entry
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".* is fitted again")
            model.fit(spoilt, labels).predict(spoilt)


def test_types_of_columns_that_fit_nothing_are_refused():
    # Theorem R7: a table with a public schema is encoded cell by cell.
    table, labels = people(60)
    model = Classifier(schema=SCHEMA, random_state=0, **QUICK)
    ledger = PrivacyLedger(":memory:", "people", epsilon=9.0, delta=1e-3)
    for wrong in (table.assign(age=np.timedelta64(1, "s")), table.rename(columns={"age": "Age"})):
        with ledger, pytest.raises(ValueError, match="X must have .*\n- '?age'?"):
            model.fit(wrong, labels)
    # What is refused for its form costs nothing.
    assert ledger.history() == []
    predicted = model.fit(table, labels).predict(table.assign(age=np.timedelta64(1, "s")))
    assert np.array_equal(predicted, model.predict(table.assign(age=np.nan)))


def test_tables_are_read_by_their_names():
    table, labels = people(100)
    model = Classifier(schema=SCHEMA, random_state=0, **QUICK).fit(table, labels)
    assert model.term_names_ == ["age", "pay", "sector", "paid"]
    shuffled = table[["paid", "sector", "name", "age", "pay"]]
    assert np.array_equal(model.predict_proba(shuffled), model.predict_proba(table))
    assert np.array_equal(model.predict_proba(table.values.tolist()), model.predict_proba(table))
    with pytest.raises(ValueError, match="'age' is missing"):
        model.predict(table.drop(columns="age"))
    with pytest.raises(ValueError, match="'age' is missing"):
        clone(model).fit(table.drop(columns="age"), labels)


def test_targets_must_be_as_many_as_records():
    table, labels = people(20)
    for model, rows in ((CLASSIFIER, X[:20]), (Classifier(schema=SCHEMA), table)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            clone(model).fit(rows, labels[:19])
        with pytest.raises(ValueError, match="requires y to be passed"):
            clone(model).fit(rows, None)


def test_private_pipelines_tell_it_bounds_and_labels():
    table, labels = people(300)
    pipeline = make_private_pipeline(Classifier(**QUICK), SCHEMA, n_knots=None)
    model = pipeline[-1]
    assert (model.bounds, model.classes) == ((-1.0, 1.0), ["no", "yes"])
    assert pipeline.fit(table, labels).predict(table).shape == (300,)
    assert privacy_of(pipeline).epsilon <= 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bounds": None}, r"bounds must be given, or schema; got neither\. .* public numbers"),
        ({"bounds": (1, 0)}, "bounds must be finite, lower below upper"),
        ({"schema": {"age": (0, 120)}}, "bounds must be None where schema is given"),
        ({"bounds": None, "schema": {"note": "text"}}, "schema must describe every column"),
        ({"bounds": None, "schema": {"name": "drop"}}, "columns must not all be dropped"),
        ({"delta": 0.0}, "delta must be positive"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"noise_multiplier": math.inf}, "noise_multiplier must be"),
        ({"max_bins": 1}, "max_bins must be"),
        ({"max_leaves": 1}, "max_leaves must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"bin_share": 1.0}, "bin_share must be"),
        ({"classes": [1, 1]}, "classes must be at least two different labels"),
        ({"epsilon": 10**400, "noise_multiplier": 1.0}, "epsilon must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    model = Classifier(**{"bounds": (0, 1), **parameters})
    for ask in (
        lambda: model.privacy_profile(100),
        lambda: model.noise_level(100),
        lambda: model.fit(np.zeros((5, 1)), [0, 1, 0, 1, 0]),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ask()


@pytest.mark.parametrize(
    ("bound", "ends"), [(2.5, "[-2.5, 2.5]"), ((0, 10), "[0, 10]"), ([-5.0, -1.0], "[-5, -1]")]
)
def test_a_bound_of_targets_is_a_number_or_a_pair(bound, ends):
    model = Regressor(bounds=(0, 1), target_bound=bound)
    assert f"targets are clipped to {ends}" in model.privacy_assumptions(10)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (None, r"target_bound must be given, or the target's range in schema; got neither"),
        (0.0, "target_bound must be"),
        (5e-324, "target_bound must be"),
        (math.inf, "target_bound must be"),
        ((1, 0), "target_bound must have a lower end below"),
        ((0, 5e-324), "target_bound must have a lower end below"),
        ((0, 1, 2), "target_bound must be a number or a pair"),
        (("a", 1), "each end of target_bound must be"),
        ("wide", "target_bound must be"),
    ],
)
def test_a_wrong_bound_of_targets_is_refused(bound, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Regressor(bounds=(0, 1), target_bound=bound).privacy_profile(10)
