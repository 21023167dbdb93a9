"""Descents in other coordinates than the weights."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skdptune.linear_model._solvers._clipped_gradients import (
    ClippedGradients,
    margin_residuals,
    softmax_residuals,
)
from skdptune.linear_model._solvers._coordinates import Coordinates
from skdptune.linear_model._solvers._design import Design

logistic = margin_residuals(lambda margins: -expit(-margins))
RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(40, 3))
BASES = {
    "full": RNG.normal(size=(4, 4)) + 2.0 * np.eye(4),
    "diagonal": np.array([2.0, 0.1, 30.0, 0.5]),
}
FORMS = {
    "dense": lambda rows: rows,
    "float32": lambda rows: rows.astype(np.float32),
    "sparse": sparse.csr_matrix,
}


def coordinates_of(name, form="dense", norm=1.5, shrinkage=0.0):
    design = Design.clipped(FORMS[form](ROWS), norm, intercept=True)
    return design, Coordinates(BASES[name], design, np.full((4, 1), shrinkage))


def matrix(name):
    basis = BASES[name]
    return np.diag(basis) if basis.ndim == 1 else basis


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BASES)
def test_squared_norms_are_those_of_the_moved_rows(name, form):
    design, coordinates = coordinates_of(name, form)
    dense = design.rows.toarray() if sparse.issparse(design.rows) else design.rows
    rows = np.column_stack([dense * design.scale[:, None], np.ones(len(ROWS))])
    expected = ((rows @ matrix(name)) ** 2).sum(axis=1)
    np.testing.assert_allclose(coordinates.squared_norms, expected, rtol=1e-6)
    if form == "dense":
        assert np.all(coordinates.squared_norms >= expected)


@pytest.mark.parametrize("name", BASES)
def test_weights_and_coordinates_are_inverse_and_gradients_transposed(name):
    _, coordinates = coordinates_of(name)
    point = RNG.normal(size=(4, 2))
    weights = coordinates.weights(point)
    np.testing.assert_allclose(weights, matrix(name) @ point)
    np.testing.assert_allclose(coordinates.of(weights), point)
    np.testing.assert_allclose(coordinates.gradient(weights), matrix(name).T @ weights)


@pytest.mark.parametrize("name", BASES)
def test_shrinking_solves_the_implicit_step(name):
    _, coordinates = coordinates_of(name, shrinkage=0.7)
    point = RNG.normal(size=(4, 2))
    shrunk = coordinates.shrunk(point)
    np.testing.assert_allclose(
        shrunk + 0.7 * coordinates.gradient(coordinates.weights(shrunk)), point
    )


def test_without_a_basis_nothing_changes():
    design = Design.clipped(ROWS, 1.5, intercept=True)
    coordinates = Coordinates(None, design, np.zeros((4, 1)))
    point = RNG.normal(size=(4, 2))
    assert coordinates.squared_norms is None
    for same in (coordinates.weights, coordinates.of, coordinates.gradient):
        assert same(point) is point


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BASES)
def test_no_record_moves_a_clipped_sum_by_more_than_the_limit(name, form, n_outputs):
    """Theorem M5, Theorem M7."""
    design, coordinates = coordinates_of(name, form)
    targets = np.where(ROWS[:, 0] > 0, 1.0, -1.0) if n_outputs == 1 else np.arange(40) % 3
    residuals = logistic if n_outputs == 1 else softmax_residuals
    sums = ClippedGradients(design, targets, residuals, 0.3, coordinates.squared_norms)
    longest = 0.0
    for scale in (0.0, 1.0, 50.0):
        weights = coordinates.weights(scale * RNG.normal(size=(4, n_outputs)))
        for index in range(40):
            moved = coordinates.gradient(sums(weights, np.array([index])))
            longest = max(longest, float(np.linalg.norm(moved)))
    assert 0.29 < longest <= 0.3 * (1.0 + (1e-6 if form == "float32" else 0.0))


def test_rows_whose_norm_overflows_move_nothing():
    rows = np.array([[1e99, -1e99, 0.0], [1.0, 0.0, 0.0]])
    design = Design.clipped(rows, np.inf, intercept=True)
    coordinates = Coordinates(1e80 * BASES["full"], design, np.zeros((4, 1)))
    assert coordinates.squared_norms[0] > 1e300
    sums = ClippedGradients(design, np.ones(2), logistic, 0.3, coordinates.squared_norms)
    assert np.abs(coordinates.gradient(sums(np.zeros((4, 1)), np.array([0])))).max() <= 0.3


def test_a_basis_of_another_shape_is_refused():
    design = Design.clipped(ROWS, 1.5, intercept=True)
    with pytest.raises(ValueError, match=r"basis must be of shape \(4,\) or \(4, 4\)"):
        Coordinates(np.eye(3), design, np.zeros((4, 1)))
