"""The private linear regressions as scikit-learn estimators, and audits of their claims."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skdptune.base import profile_of
from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
    SufficientStatistics,
)
from skdptune.testing import replay_neighbours
from tests.accounting.cases import few
from tests.base.nasty_records import (
    EXTREME,
    FIT_TAKES_ANY_TARGET,
    FORMS,
    IMPROPER,
    as_column,
    as_list,
    nasty_rows,
    with_record,
)
from tests.conventions import check_as_scikit_learn_does, check_interrupted_fit
from tests.linear_model.regression_examples import DELTA, KINDS, X, Y, every_kind


@every_kind
def test_scikit_learns_checks(kind):
    check_as_scikit_learn_does(kind(target_bound=10.0), FIT_TAKES_ANY_TARGET, 45)


@every_kind
def test_without_noise_it_is_ridge_regression(kind):
    model = kind(math.inf, DELTA, alpha=2.0, data_norm=2.0, target_bound=2.0, fit_intercept=False)
    model.fit(X, Y)
    np.testing.assert_allclose(
        model.coef_, Ridge(alpha=2.0, fit_intercept=False).fit(X, Y).coef_, atol=1e-4
    )
    assert model.intercept_ == 0.0
    assert model.privacy_.epsilon == math.inf


@pytest.mark.parametrize("kind", [AdaOPSLinearRegression, AdaSSPLinearRegression])
def test_alpha_of_zero_leaves_the_rule_alone(kind):
    model = kind(1.0, DELTA, target_bound=1.5, random_state=0)
    by_rule = clone(model).fit(X, Y)
    np.testing.assert_array_equal(model.set_params(alpha=0.0).fit(X, Y).coef_, by_rule.coef_)


@every_kind
def test_targets_and_rows_beyond_their_bounds_are_clipped(kind):
    model = kind(5.0, DELTA, data_norm=1.0, target_bound=0.5, random_state=0)
    wild = clone(model).fit(1e6 * X, 1e9 * Y)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    tame = clone(model).fit(X / lengths, 0.5 * np.sign(Y))
    np.testing.assert_allclose(wild.coef_, tame.coef_, atol=1e-3)


@every_kind
def test_statistics_of_other_bounds_are_refused(kind):
    sums = SufficientStatistics(1.0, 1.0)
    with pytest.raises(ValueError, match="statistics must hold at least one chunk"):
        kind(data_norm=1.0, target_bound=1.0).fit_statistics(sums)
    sums.update(X, Y)
    assert kind(1.0, DELTA, data_norm=1.0, target_bound=1.0).fit_statistics(sums).coef_.size == 3
    for change in ({"data_norm": 1.1}, {"target_bound": 2.0}, {"fit_intercept": False}):
        settings = {"data_norm": 1.0, "target_bound": 1.0} | change
        with pytest.raises(ValueError, match="statistics must be made with the model's"):
            kind(1.0, DELTA, **settings).fit_statistics(sums)
    with pytest.raises(TypeError, match="statistics must be"):
        kind(target_bound=1.0).fit_statistics(X)


@every_kind
def test_bad_input_is_refused(kind):
    with pytest.raises(ValueError, match="target_bound must be given"):
        kind().fit(X, Y)
    with pytest.raises(ValueError, match="target_bound must be given"):
        kind().privacy_profile(100, 3)
    model = kind(target_bound=1.0)
    if kind is not DPRidge:
        with pytest.raises(ValueError, match="1d array"):
            model.fit(X, np.column_stack([Y, Y]))
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit(X, Y, sample_weight=np.ones(4000))
    for parameter, value in {
        "epsilon": -1.0,
        "delta": 1.0,
        "alpha": -1.0,
        "data_norm": 0.0,
        "target_bound": -1.0,
        "n_public": 0,
    }.items():
        with pytest.raises(ValueError, match=f"{parameter} must be"):
            clone(model).set_params(**{parameter: value}).fit(X, Y)
    with pytest.raises(TypeError, match="fit_intercept must be"):
        clone(model).set_params(fit_intercept="no").fit(X, Y)
    if kind is not OutputPerturbationLinearRegression:
        with pytest.raises(ValueError, match="delta must be positive"):
            clone(model).set_params(delta=0.0).fit(X, Y)


@every_kind
def test_secret_sizes(kind):
    model = kind(1.0, DELTA, target_bound=1.5, n_public=4000, random_state=0)
    cost = model.privacy_profile(3, 3)
    assert cost == model.privacy_profile(10**6, 3)
    for size in (0, 1, 3900):
        assert model.fit(X[:size], Y[:size]).privacy_.profile == cost
        assert np.isfinite(model.coef_).all()


@every_kind
def test_cost_without_the_number_of_features(kind):
    model = kind(1.0, DELTA, target_bound=1.0)
    if kind is OPSLinearRegression:
        with pytest.raises(ValueError, match="n_features must be given"):
            model.privacy_profile(100)
        with pytest.raises(ValueError, match="data_norm must be given"):
            model.set_params(alpha=10.0).privacy_profile(100)
        model.set_params(data_norm=2.0)
    assert model.privacy_profile(100).epsilon(DELTA) <= 1.0


# Records with any content --------------------------------------------------------------------


class Reached(Exception):
    """The sums have reached the noise."""


def sums_of(model, rows, targets, monkeypatch):
    """Return the exact sums that reach the noise, and the number of records."""
    found = []

    def fit_checked(self, statistics, n_samples, records=None, persons=None):
        sums = statistics._large + statistics._sums
        found.append((sums, statistics.n_samples, n_samples))
        raise Reached

    monkeypatch.setattr(type(model), "_fit_checked", fit_checked)
    with pytest.raises(Reached):
        model.fit(rows, targets)
    return found[0]


def in_one_piece(rows, targets):
    return rows, targets


def in_pieces(rows, targets):
    cut = len(rows) - 3
    return iter([(rows[:cut], targets[:cut]), (rows[cut:], targets[cut:])]), None


TARGETS = [*IMPROPER, *EXTREME, 0.5]


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize(
    ("form", "bound", "pieces"), few(4, FORMS, [1e-100, 1.5, 1e100], [in_pieces, in_one_piece])
)
def test_a_record_adds_its_own_products_alone(form, bound, pieces, monkeypatch):
    # Theorem L0, Theorem R5.
    model = OutputPerturbationLinearRegression(data_norm=bound, target_bound=2.0)
    rows, targets = X[:10], Y[:10]
    before, size, _ = sums_of(model, *pieces(FORMS[form](rows), targets), monkeypatch)
    records = list(nasty_rows(form, 3))
    for row, target in zip(records, np.resize(as_column(TARGETS), len(records)), strict=True):
        data = with_record(rows, targets, row, target, form)
        after, n_samples, n_public = sums_of(model, *pieces(*data), monkeypatch)
        # A single list of lists would be a table with three dimensions.
        form_alone = "objects" if form == "list" else form
        alone = with_record(rows[:0], targets[:0], row, target, form_alone)
        own = sums_of(model, *alone, monkeypatch)[0]
        np.testing.assert_array_equal(after - before, own)
        assert n_samples == n_public == size + 1
        assert 0 <= np.trace(own[:3, :3]) <= 2**40
        assert 0 <= own[-1, -1] <= 2**40


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
def test_a_target_that_is_no_number_counts_as_a_row_of_zeros(monkeypatch):
    # Theorem R5: in the worst case a record becomes a constant row.
    model = OutputPerturbationLinearRegression(data_norm=1.5, target_bound=2.0)
    zeros = sums_of(model, [[0.0, 0.0, 0.0]], [0.0], monkeypatch)[0]
    for target in IMPROPER:
        data = with_record(X[:0], Y[:0], [1.0, 1.0, 1.0], target, "doubles")
        np.testing.assert_array_equal(sums_of(model, *data, monkeypatch)[0], zeros)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize(("kind", "form"), few(8, KINDS, FORMS))
def test_no_record_makes_a_fit_fail(kind, form):
    # Theorem R5: in the worst case a record becomes a constant row.
    rows = [*as_list(X[:40]), *nasty_rows(form, 3)]
    targets = np.resize(as_column(TARGETS), len(rows))
    model = kind(1.0, 1e-6, data_norm=1.5, target_bound=2.0, random_state=0)
    for data in ((FORMS[form](rows), targets), (iter([(FORMS[form](rows), targets)]), None)):
        model.fit(*data)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_)


@every_kind
def test_an_interrupted_fit_leaves_nothing_of_the_data(kind):
    left = []
    for rows in (X, -3.0 * X):
        model = kind(1.0, DELTA, data_norm=1.5, target_bound=2.0, random_state=0).fit(X, Y)
        model.set_params(random_state=None)
        left.append(check_interrupted_fit(model, rows, Y))
    np.testing.assert_array_equal(*left)


# Targets far from 0 -----------------------------------------------------------------------------

FAR = (96.0, 104.0)


@every_kind
def test_a_range_of_targets_is_a_bound_on_shifted_ones(kind):
    # Theorem L0: what bounds a record's influence on a linear regression.
    y = np.round(Y * 2.0**12) / 2.0**12
    settings = {"delta": DELTA, "data_norm": 2.0, "random_state": 0}
    near = kind(5.0, target_bound=4.0, **settings).fit(X, y)
    far = kind(5.0, target_bound=FAR, **settings).fit(X, y + 100.0)
    np.testing.assert_array_equal(far.coef_, near.coef_)
    assert far.intercept_ == pytest.approx(100.0 + near.intercept_)
    np.testing.assert_allclose(far.predict(X), 100.0 + near.predict(X))
    assert far.privacy_.profile == near.privacy_.profile
    assert profile_of(far, *X.shape) == profile_of(near, *X.shape)
    assert "targets are clipped to [96, 104]" in far.privacy_.assumptions


@every_kind
@pytest.mark.parametrize("shift", [-64.0, 1024.0])
def test_adding_a_constant_moves_the_intercept_alone(kind, shift):
    y = np.round(Y * 2.0**12) / 2.0**12
    one, other = (
        kind(2.0, DELTA, data_norm=2.0, target_bound=(-1.0 + c, 3.0 + c), random_state=3)
        for c in (0.0, shift)
    )
    one.fit(X, y), other.fit(X, y + shift)
    np.testing.assert_array_equal(other.coef_, one.coef_)
    assert other.intercept_ - shift == pytest.approx(one.intercept_, abs=1e-9)


def replay_of_far_neighbours(kind, target):
    """Return the replay of one long record among others that say nothing."""
    few = 0.05 * np.random.default_rng(0).uniform(-1.0, 1.0, size=(127, 3))
    model = kind(0.1, 1e-3, data_norm=2.0, target_bound=FAR)
    record = ([1e9, -1.0, 0.0], target)
    return replay_neighbours(model, few, np.full(127, 100.0), record, n_repeats=20)


@every_kind
def test_neighbours_with_far_targets_are_not_told_apart(kind):
    # Theorem L0: what bounds a record's influence on a linear regression.
    # A target becomes a bounded number before the regressions differ.
    targets = (-1e9, 104.0, np.nan) if kind is OutputPerturbationLinearRegression else (104.0,)
    for target in targets:
        replay = replay_of_far_neighbours(kind, target)
        assert replay.findings == [], str(replay)


@pytest.mark.parametrize("kind", [DPRidge, OutputPerturbationLinearRegression])
def test_targets_beyond_their_bound_would_be_found(kind, monkeypatch):
    fit_checked = kind._fit_checked

    def with_long_targets(model, statistics, n_samples, records=None, persons=None):
        gram, moment = statistics.gram_and_moment
        vars(statistics)["gram_and_moment"] = gram, 8.0 * moment
        return fit_checked(model, statistics, n_samples)

    monkeypatch.setattr(kind, "_fit_checked", with_long_targets)
    assert replay_of_far_neighbours(kind, 104.0).findings


def test_statistics_of_the_same_range_are_taken():
    sums = SufficientStatistics(2.0, FAR).update(X, Y + 100.0)
    settings = {"delta": DELTA, "data_norm": 2.0, "random_state": 0}
    # With an alpha no steps are taken, which would read the records again.
    model = DPRidge(1.0, target_bound=list(FAR), alpha=1.0, **settings)
    expected = clone(model).fit(X, Y + 100.0)
    np.testing.assert_array_equal(model.fit_statistics(sums).coef_, expected.coef_)
    assert model.intercept_ == expected.intercept_
    with pytest.raises(ValueError, match="statistics must be made with the model's"):
        clone(model).set_params(target_bound=(96.0, 105.0)).fit_statistics(sums)
    both = DPRidge.fit_many([clone(model), clone(model)], X, Y + 100.0)
    np.testing.assert_array_equal(both[1].coef_, expected.coef_)


@every_kind
def test_fits_of_many_equal_fits_one_by_one(kind):
    models = [
        kind(1.0, DELTA, alpha=alpha, target_bound=1.5, random_state=seed, fit_intercept=flag)
        for seed, alpha in enumerate([0.1, 10.0, 1000.0])
        for flag in (True, False)
    ]
    together = PTRLinearRegression.fit_many([clone(model) for model in models], X, Y)
    for one, other in zip(models, together, strict=True):
        one.fit(X, Y)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.intercept_ == other.intercept_
        assert one.privacy_.profile == other.privacy_.profile


@pytest.mark.parametrize("bound", [(1.0, 0.0), (1.0,), (0.0, math.inf), "far"], ids=str)
def test_ranges_that_are_none_are_refused(bound):
    with pytest.raises((TypeError, ValueError), match="target_bound must"):
        DPRidge(target_bound=bound).privacy_profile(100, 3)


@every_kind
def test_extrapolation_keeps_the_ridge_per_record(kind):
    model = kind(alpha=100.0, target_bound=1.0)
    assert model.tuning_parameters(200, 1000) == {"alpha": pytest.approx(20.0)}
    assert model.noise_level(1000, 3) > 0.0


def test_default_ridges_need_no_extrapolation():
    for kind in (OPSLinearRegression, OutputPerturbationLinearRegression, DPRidge):
        assert kind(target_bound=1.0).tuning_parameters(200, 1000) == {}


def test_values_are_around_what_the_rule_takes() -> None:
    model = DPRidge(1.0, data_norm=3.0, target_bound=1.0, fit_intercept=False)
    noise = model.noise_level(1000, 4)
    # The rule in units of the rows: the root of the width, times the noise on X'X.
    rule = math.sqrt(4) * noise * 9.0
    factors = [value / rule for value in model.suggested_space(1000, 4)["alpha"][1:]]
    assert factors == pytest.approx([0.1, 0.3, 3.0, 10.0])
    ops = OPSLinearRegression(1.0, data_norm=3.0, target_bound=1.0)
    ridge = ops._plan_before_data(1000, 4).ridge * 9.0
    assert ops.suggested_space(1000, 4)["alpha"][3] == pytest.approx(3.0 * ridge)


def test_a_rule_needs_the_number_of_columns() -> None:
    assert DPRidge(target_bound=1.0).suggested_space(1000) == {}


def test_without_noise_there_is_nothing_to_multiply() -> None:
    model = DPRidge(math.inf, data_norm=1.0, target_bound=1.0)
    assert model.suggested_space(1000, 3) == {"alpha": [None]}
