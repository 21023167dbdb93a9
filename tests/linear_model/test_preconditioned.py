"""The descent in coordinates of released second moments: its cost, its releases and its rules."""

import functools
import operator

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from skdptune import PrivateRows
from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import persons_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.linear_model._preconditioned import (
    _bounded_rows,
    _total_shares,
    _without_noise,
    plan_preconditioned,
    release_basis,
)
from skdptune.linear_model._regression import SufficientStatistics, squared_radius
from skdptune.linear_model._solvers import Design
from skdptune.mechanisms._shared import UNIT

DELTA = 1e-5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = (X @ [1.0, -1.0, 0.5, 0.0] > 0).astype(int)


# Cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_cost_is_that_of_all_gaussian_releases(steps):
    """Theorem M7."""
    plan = plan_preconditioned(50, steps=steps, epsilon=0.7, delta=DELTA)
    moments = PrivacyProfile.gaussian(1.0 / plan.moment_noise)
    step = PrivacyProfile.gaussian(1.0 / plan.noise_multiplier)
    composed = functools.reduce(operator.add, [step] * steps, moments)
    assert 0.99 * 0.7 <= plan.profile.epsilon(DELTA) <= 0.7
    assert composed.epsilon(DELTA) == pytest.approx(plan.profile.epsilon(DELTA), rel=1e-3)
    given = plan_preconditioned(
        50, steps=steps, delta=DELTA, noise_multiplier=plan.noise_multiplier
    )
    assert given.moment_noise == pytest.approx(plan.moment_noise, rel=1e-12)
    assert given.profile.epsilon(DELTA) == pytest.approx(plan.profile.epsilon(DELTA), rel=1e-6)


def test_fewer_steps_of_less_noise_cost_the_same():
    """Theorem M7."""
    plan = plan_preconditioned(50, steps=100, epsilon=0.7, delta=DELTA)
    shifts = []
    for steps in (100, 30, 1):
        descent = plan.descent(steps)
        assert descent.steps == steps and descent.profile == plan.profile
        shifts.append(descent.steps / descent.noise_multiplier**2)
    np.testing.assert_allclose(shifts, shifts[0])
    whole = PrivacyProfile.gaussian(np.sqrt(shifts[0] + plan.moment_noise**-2))
    assert whole.epsilon(DELTA) == pytest.approx(plan.profile.epsilon(DELTA), rel=1e-6)


# What is released -------------------------------------------------------------------------------


def moments_of(rows, norm, intercept):
    design = Design.clipped(rows, np.inf, intercept)
    pieces = list(_bounded_rows(design, norm))
    radius = norm * np.sqrt(1.0 + float(intercept) / 64)
    sums = SufficientStatistics(radius, 1.0, fit_intercept=False)
    for piece in pieces:
        sums.update(piece, np.zeros(len(piece)))
    return sums.gram_and_moment[0]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("norm", [1e-3, 2.0, 1e5])
@pytest.mark.parametrize("intercept", [True, False])
def test_one_record_moves_the_moments_by_the_sensitivity_at_most(intercept, norm):
    """Theorem M7."""
    before = moments_of(X, norm, intercept)
    upper = np.triu_indices(len(before))
    longest = 0.0
    for row in (np.zeros(4), X[0], 1e3 * X[1], 1e90 * X[2], 1e-200 * X[3]):
        moved = moments_of(np.vstack([X, row]), norm, intercept) - before
        longest = max(longest, np.linalg.norm(moved[upper]))
    assert 0.5 < longest <= squared_radius(False)


def test_moments_of_sparse_rows_are_those_of_dense_ones():
    for intercept in (True, False):
        dense = moments_of(X, 2.0, intercept)
        np.testing.assert_array_equal(moments_of(sparse.csr_matrix(X), 2.0, intercept), dense)


def test_wide_rows_take_no_square_matrix():
    rows = sparse.random(60, 200_000, density=1e-4, format="csr", random_state=0)
    model = DPLogisticRegression(random_state=0, classes=[0, 1], delta=1e-3)
    model.fit(rows, np.arange(60) % 2)
    assert model.coef_.shape == (1, 200_000)
    assert np.isfinite(model.coef_).all()


def test_coordinates_without_noise_have_second_moments_of_one():
    plan = plan_preconditioned(300, steps=100, epsilon=np.inf, delta=DELTA)
    rows = X * [1.0, 10.0, 0.1, 1.0] + [5.0, 0.0, 0.0, 0.0]
    design = Design.clipped(rows, np.inf, intercept=True)
    basis = release_basis(plan, design, 100.0, 1, np.random.default_rng(0))
    moved = np.column_stack([rows, np.ones(300)]) @ basis.matrix
    np.testing.assert_allclose(moved.T @ moved / 300, np.eye(5), atol=0.05)
    assert basis.usual_norm == pytest.approx(np.sqrt(5.0), rel=0.02)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_norms_are_nearly_right_if_rows_are_much_shorter_than_their_bound(epsilon):
    rows = np.random.default_rng(0).normal(size=(2000, 40)) / 10
    plan = plan_preconditioned(2000, steps=100, epsilon=epsilon, delta=DELTA)
    design = Design.clipped(rows, np.inf, intercept=True)
    basis = release_basis(plan, design, np.sqrt(40.0), 1, np.random.default_rng(0))
    of_rows = np.sqrt(np.mean(np.sum((rows @ basis.matrix[:-1]) ** 2, axis=1)))
    assert of_rows < basis.usual_norm < 2.5 * of_rows
    # The constant for the intercept stays short beside them.
    assert np.linalg.norm(basis.matrix[-1]) < 0.5 * of_rows


@pytest.mark.parametrize("noise", [0.2, 1.0, 5.0])
def test_eigenvalues_are_corrected_for_noise(noise):
    """What is found is nearly the true moment along each eigenvector of the noisy moments."""
    rng, width = np.random.default_rng(0), 150
    true = np.diag(np.concatenate([[40.0, 10.0], rng.uniform(0.2, 2.0, size=width - 2)]))
    upper = np.triu(rng.normal(size=true.shape))
    noisy = true + noise * (upper + np.triu(upper, 1).T) / np.sqrt(width)
    values, vectors = np.linalg.eigh(noisy)
    along = np.sum(vectors * (true @ vectors), axis=0)
    found = _without_noise(values, noise)
    assert np.mean((found - along) ** 2) < 0.1 * np.mean((np.maximum(values, 0) - along) ** 2)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("norm", [1e-3, 2.0, 1e5])
def test_one_record_moves_the_mean_by_the_sensitivity_at_most(norm):
    """Theorem M7: the mean row and the mean squared norm are one vector of length 1 at most."""

    def total(rows, ids):
        design = Design.clipped(rows, np.inf, intercept=True)
        design = design.by_persons(None if ids is None else persons_of(np.array(ids), rows))
        return _total_shares(norm, True, design, None)

    longest = 0.0
    for row in (np.zeros(4), X[0], 1e3 * X[1], 1e90 * X[2], 1e-200 * X[3]):
        # A record alone, and a person with three rows.
        for ids in (None, [*range(len(X)), -1, -1, -1]):
            added = np.tile(row, (1 if ids is None else 3, 1))
            moved = total(np.vstack([X, added]), ids)
            moved -= total(X, None if ids is None else ids[: len(X)])
            longest = max(longest, np.linalg.norm(moved * UNIT))
    assert 0.5 < longest <= 1.0


@pytest.mark.parametrize("ids", [None, RNG.integers(200, size=400)])
def test_one_record_does_not_decide_by_zeros_how_a_model_is_fitted(ids):
    """Theorem M7: a table is made sparse or dense by the number of its zeros."""
    rows = (RNG.normal(size=(400, 100)) + 3.0) * RNG.integers(2, size=(400, 100))
    rows[0] *= 1e40
    forms = [Design.clipped(kind(rows), np.inf, True) for kind in (np.asarray, sparse.csr_matrix)]
    persons = None if ids is None else persons_of(ids, rows)
    totals = [_total_shares(10.0, True, each.by_persons(persons), None) for each in forms]
    np.testing.assert_array_equal(*totals)
    assert np.abs(totals[0] * UNIT).max() > 5.0
    model = DPLogisticRegression(4.0, DELTA, classes=range(3), random_state=0)
    dense, other = (
        clone(model).fit(kind(rows), labels_of(rows), groups=ids)
        for kind in (np.asarray, sparse.csr_matrix)
    )
    np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(other.intercept_, dense.intercept_, atol=1e-6)


def labels_of(rows):
    weights = np.random.default_rng(1).normal(size=(rows.shape[1], 3))
    return np.argmax(rows @ weights, axis=1)


@pytest.mark.parametrize("in_parts", [False, True])
def test_what_all_rows_have_in_common_costs_no_accuracy(in_parts):
    # Noise along it would move the decisions of all records alike.
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, size=(2000, 300))
    labels, common = labels_of(rows), rng.uniform(2.0, 3.0, size=300)
    scores = []
    for given in (rows, rows + common):
        norm = float(np.linalg.norm(given, axis=1).max())
        model = DPLogisticRegression(4.0, DELTA, data_norm=norm, classes=range(3), random_state=0)
        if in_parts:
            chunks = [(given[k::2], labels[k::2]) for k in range(2)]
            model.fit(PrivateRows.from_chunks(lambda chunks=chunks: iter(chunks)))
        else:
            model.fit(given, labels)
        scores.append(model.score(given, labels))
    assert scores[0] > 0.6
    assert scores[1] > scores[0] - 0.05


def test_wide_steps_of_no_length_end_where_they_start():
    rows = RNG.normal(size=(400, 300)) + 2.0
    start = RNG.normal(size=(3, 300)), RNG.normal(size=3)
    model = DPLogisticRegression(4.0, DELTA, learning_rate=1e-12, random_state=0)
    model.fit(rows, labels_of(rows - 2.0), *start)
    np.testing.assert_allclose(model.coef_, start[0], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, start[1], atol=1e-6)


# The rules --------------------------------------------------------------------------------------


def test_without_noise_it_is_as_good_as_scikit_learn():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = scale(rows)
    peer = LogisticRegression(C=0.1).fit(rows, labels)
    model = DPLogisticRegression(np.inf, DELTA, C=0.1, epochs=1000, random_state=0)
    model.fit(rows, labels)
    agreement = (model.predict(rows) == peer.predict(rows)).mean()
    assert agreement > 0.98
    assert np.corrcoef(model.coef_.ravel(), peer.coef_.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("epsilon", [0.05, 5.0])
def test_rate_and_clipping_norm_are_in_units_of_the_rules(epsilon):
    model = DPLogisticRegression(epsilon, DELTA, random_state=0)
    usual = clone(model).fit(X, Y).coef_
    same = clone(model).set_params(learning_rate=1.0).fit(X, Y).coef_
    np.testing.assert_array_equal(same, usual)
    slow = clone(model).set_params(learning_rate=1e-9).fit(X, Y).coef_
    assert np.abs(slow).max() < 1e-6 * np.abs(usual).max()
    # Where noise sets the rate, it falls as gradients grow longer. A penalty would hide that.
    for share in (0.01, 1.0):
        spread = clone(model).set_params(max_grad_norm=share, C=1e6).fit(0.0 * X, Y).coef_
        assert 0.01 < np.abs(spread).max() < 100.0
