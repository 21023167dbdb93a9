"""Starting weights: their shapes, and what is refused."""

import numpy as np
import pytest

from skdptune.linear_model._solvers._noisy_gradient import initial_weights


def made(coef, intercept, n_outputs=1, n_features=2, fit_intercept=True):
    return initial_weights(
        coef, intercept, n_outputs=n_outputs, n_features=n_features, fit_intercept=fit_intercept
    )


def test_nothing_given_is_nothing():
    assert made(None, None) is None


@pytest.mark.parametrize("coef", [[1.0, 2.0], [[1, 2]], np.array([[1.0, 2.0]], np.float32)])
@pytest.mark.parametrize("intercept", [3.0, [3], np.array([3.0])])
def test_one_output(coef, intercept):
    np.testing.assert_array_equal(made(coef, intercept), [[1.0], [2.0], [3.0]])


def test_many_outputs():
    coef = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(
        made(coef, [7.0, 8.0, 9.0], n_outputs=3), [[0, 2, 4], [1, 3, 5], [7, 8, 9]]
    )


def test_what_is_not_given_starts_at_zero():
    np.testing.assert_array_equal(made([1.0, 2.0], None), [[1.0], [2.0], [0.0]])
    np.testing.assert_array_equal(made(None, 3.0), [[0.0], [0.0], [3.0]])


def test_without_an_intercept_only_zeros_are_accepted_for_it():
    np.testing.assert_array_equal(made([1, 2], [0.0], fit_intercept=False), [[1.0], [2.0]])
    with pytest.raises(ValueError, match="intercept_init must be 0 or None"):
        made([1, 2], [0.5], fit_intercept=False)


@pytest.mark.parametrize(
    ("coef", "intercept", "n_outputs", "message"),
    [
        ([1.0], None, 1, r"coef_init must be of shape \(1, 2\); got shape \(1,\)"),
        ([1.0, 2.0], None, 2, r"coef_init must be of shape \(2, 2\)"),
        ([[1.0], [2.0]], None, 1, "coef_init must be of shape"),
        (None, [1.0, 2.0], 1, r"intercept_init must be of shape \(1,\)"),
        (None, 1.0, 3, r"intercept_init must be of shape \(3,\)"),
        ([1.0, np.nan], None, 1, "coef_init must be finite"),
        (None, np.inf, 1, "intercept_init must be finite"),
    ],
)
def test_bad_weights_are_refused(coef, intercept, n_outputs, message):
    with pytest.raises(ValueError, match=message):
        made(coef, intercept, n_outputs=n_outputs)


def test_integers_beyond_doubles_are_refused():
    with pytest.raises(ValueError, match="coef_init must be finite"):
        initial_weights([10**400], None, n_outputs=1, n_features=1, fit_intercept=True)


def test_given_arrays_are_not_changed():
    coef = np.array([[1.0, 2.0]])
    made(coef, None)[:] = 9.0
    np.testing.assert_array_equal(coef, [[1.0, 2.0]])
