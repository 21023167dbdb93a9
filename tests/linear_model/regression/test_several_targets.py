"""Ridge regression of several targets in one fit."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.utils import get_tags

from skdptune import DPRandomSearchCV
from skdptune.linear_model import AdaSSPLinearRegression, DPRidge, SufficientStatistics
from skdptune.testing import replay_neighbours
from tests.auditing import watched_releases
from tests.linear_model.regression_examples import KINDS, name_of

DELTA = 1e-4
N_STEPS = 5
RANGES = [(-1.0, 1.0), (90.0, 110.0), 3.0]
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(3000, 4))
Y = np.column_stack([X @ [0.5, -0.4, 0.1, 0.0], 100.0 + 5.0 * X[:, 0], X @ [0.0, 0.0, 1.0, -1.0]])


def model(epsilon=1.0, **settings):
    settings = {"data_norm": 2.0, "target_bound": RANGES, "random_state": 0} | settings
    return DPRidge(epsilon, DELTA, **settings)


# What comes out --------------------------------------------------------------------------------


def test_shapes_are_those_of_scikit_learn():
    ridge = model(epsilon=20.0).fit(X, Y)
    assert (ridge.coef_.shape, ridge.intercept_.shape) == ((3, 4), (3,))
    assert ridge.predict(X[:7]).shape == (7, 3)
    assert ridge.score(X, Y) == pytest.approx(r2_score(Y, ridge.predict(X)))
    assert ridge.score(X, Y) > 0.95
    assert ridge.n_iter_ == N_STEPS
    assert get_tags(ridge).target_tags.multi_output
    assert "targets are clipped to absolute value 1, [90, 110], absolute value 3" in (
        ridge.privacy_.assumptions
    )


@pytest.mark.parametrize("alpha", [None, 5.0])
def test_one_column_is_fitted_as_one_target(alpha):
    # Theorem L11: the root of 1 is 1.
    ridge = model(target_bound=(90, 110), alpha=alpha)
    flat, column = (clone(ridge).fit(X, y) for y in (Y[:, 1], Y[:, 1:2]))
    np.testing.assert_array_equal(column.coef_, [flat.coef_])
    np.testing.assert_array_equal(column.intercept_, [flat.intercept_])
    np.testing.assert_array_equal(column.predict(X), flat.predict(X)[:, None])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 50.0])
def test_without_noise_each_target_has_the_ridge_of_its_own(intercept, alpha):
    targets = Y - [0.0, 100.0, 0.0]
    ridge = model(math.inf, alpha=alpha, fit_intercept=intercept, target_bound=[1.0, (-10, 10), 3])
    ridge.fit(X, targets)
    rows = np.column_stack([X, np.ones(len(X))]) if intercept else X
    # The constant of rows is half of their norm: 1.
    free = Ridge(alpha, fit_intercept=False).fit(rows, targets)
    np.testing.assert_allclose(ridge.coef_, free.coef_[:, :4], atol=1e-4)
    wanted = free.coef_[:, 4] if intercept else np.zeros(3)
    np.testing.assert_allclose(ridge.intercept_, wanted, atol=1e-4)


def test_one_range_serves_all_targets():
    one, three = (model(target_bound=bound).fit(X, Y) for bound in (110.0, [(-110.0, 110.0)] * 3))
    np.testing.assert_array_equal(one.coef_, three.coef_)


@pytest.mark.parametrize("form", ["frame", "list"])
def test_containers_make_no_difference(form):
    given = pd.DataFrame(Y, columns=list("abc")) if form == "frame" else Y.tolist()
    np.testing.assert_array_equal(model().fit(X, given).coef_, model().fit(X, Y).coef_)


@pytest.mark.filterwarnings("ignore::skdptune.base.PrivacyWarning")
def test_improper_record_is_one_of_zeros_in_all_targets():
    # Theorem R5, Theorem L11.
    odd, zeros = Y[:50].copy(), Y[:50].copy()
    odd[3, 1], odd[9, 0], odd[11, 2] = np.nan, np.inf, -np.inf
    zeros[[3, 9, 11]] = 0.0
    rows = X[:50].copy()
    rows[[3, 9, 11]] = 0.0
    fits = [model().fit(*data) for data in ((X[:50], odd), (rows, zeros))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_sums_in_chunks_are_those_of_all_records():
    sums = SufficientStatistics(2.0, RANGES)
    for start in range(0, 3000, 700):
        sums.update(X[start : start + 700], Y[start : start + 700])
    whole = SufficientStatistics(2.0, RANGES).update(X, Y)
    np.testing.assert_array_equal(sums.gram_and_moment[1], whole.gram_and_moment[1])
    assert model().fit_statistics(sums).n_iter_ == 0
    assert model().fit_statistics(sums).coef_.shape == (3, 4)


# What it costs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [None, 10.0])
def test_releases_cost_what_those_of_one_target_cost(alpha):
    # Theorem L11: the joint norm of k targets is the root of k.
    with watched_releases() as several:
        ridge = model(alpha=alpha).fit(X, Y)
    with watched_releases() as one:
        single = model(alpha=alpha, target_bound=(90, 110)).fit(X, Y[:, 1])
    assert ridge.privacy_.profile == single.privacy_.profile == ridge.privacy_profile(*X.shape)
    assert [len(several), len(one)] == [2 if alpha else 1 + N_STEPS] * 2
    for many, single_release in zip(several, one, strict=True):
        assert many.shift == pytest.approx(single_release.shift, rel=1e-12)
    # One release of the rows' products serves all targets, with the noise of one target.
    assert several[0].scale == one[0].scale
    np.testing.assert_array_equal(several[0].value, one[0].value)
    if alpha:
        assert several[1].scale == pytest.approx(math.sqrt(3.0) * one[1].scale, rel=1e-12)


def test_joint_bound_is_reached():
    # Theorem L11: a record at all ends moves the sums by the whole sensitivity.
    ends = np.array([[1.0, 110.0, -3.0]])
    sums = SufficientStatistics(2.0, RANGES).update(np.array([[2.0, 0.0, 0.0, 0.0]]), ends)
    moved = np.linalg.norm(sums.gram_and_moment[1])
    assert moved == pytest.approx(math.sqrt(3.0 * 1.25), rel=1e-5)
    # What rounding adds is allowed for.
    assert moved <= math.sqrt(3.0 * 1.25 * (1.0 + 1e-6))


@pytest.mark.parametrize("alpha", [None, 1.0])
@pytest.mark.filterwarnings("ignore::skdptune.base.PrivacyWarning")
def test_neighbours_are_not_told_apart(alpha):
    # Theorem L11: k targets of a record cost one, with noise larger by √k.
    few = 0.05 * np.random.default_rng(0).uniform(-1.0, 1.0, size=(127, 3))
    ridge = DPRidge(0.5, 1e-3, data_norm=2.0, alpha=alpha, target_bound=[(96.0, 104.0), 2.0])
    targets = np.tile([100.0, 0.0], (127, 1))
    for record in (([1e9, -1.0, 0.0], [104.0, -2.0]), ([1.0, 1.0, 1.0], [np.nan, 1e9])):
        replay = replay_neighbours(ridge, few, targets, record, n_repeats=20)
        assert replay.findings == [], str(replay)


# What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not DPRidge], ids=name_of)
def test_other_regressions_take_one_target(kind):
    with pytest.raises(ValueError, match=r"y must have one target per record; got an array of"):
        kind(target_bound=1.0).fit(X, Y)
    sums = SufficientStatistics(2.0, 1.0).update(X, Y)
    with pytest.raises(ValueError, match="statistics must be of one target for"):
        kind(data_norm=2.0, target_bound=1.0).fit_statistics(sums)
    with pytest.raises((TypeError, ValueError), match="target_bound must be"):
        kind(target_bound=RANGES).privacy_profile(100, 3)
    assert not get_tags(kind()).target_tags.multi_output


def test_ranges_for_other_targets_are_refused():
    for bound in (RANGES[:2], [*RANGES, 1.0]):
        with pytest.raises(ValueError, match="target_bound must be one range, or one for each"):
            model(target_bound=bound).fit(X, Y)
    with pytest.raises(ValueError, match="target_bound must be one range, or one for each"):
        model().fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="lower end below"):
        model(target_bound=[(0, 1), (1, 0)]).privacy_profile(100)
    with pytest.raises(ValueError, match="targets of shape"):
        SufficientStatistics(2.0, 1.0).update(X, Y).update(X, Y[:, 0])


def test_fits_of_many_are_those_of_each():
    models = [model(random_state=seed, alpha=alpha) for seed, alpha in ((0, None), (1, 2.0))]
    together = DPRidge.fit_many([clone(one) for one in models], X, Y)
    for one, other in zip(models, together, strict=True):
        np.testing.assert_array_equal(one.fit(X, Y).coef_, other.coef_)
    mixed = [model(target_bound=1.0), AdaSSPLinearRegression(target_bound=1.0, data_norm=2.0)]
    found = DPRidge.fit_many(mixed, X, Y, return_exceptions=True)
    assert found[0].coef_.shape == (3, 4)
    assert "one target per record" in str(found[1])


# In searches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [110.0, RANGES], ids=["one range", "a range for each"])
def test_search_scores_the_mean_of_bounded_squared_errors(bound):
    search = DPRandomSearchCV(
        model(target_bound=bound), {"alpha": [1.0, 10.0]}, epsilon=4.0, delta=DELTA, n_iter=2
    )
    assert search.set_params(random_state=0).fit(X, Y).predict(X).shape == Y.shape
    assert search.best_estimator_.coef_.shape == (3, 4)
    wanted = 55.0**2 if bound == 110.0 else (0.5**2 + 5.0**2 + 1.5**2) / 3.0
    assert -search._scorer().lower == pytest.approx(wanted)
