"""A public constant in place of the number of records, where the real number is secret.

Theorem F3.
"""

from __future__ import annotations

from skdptune.base._costs import cost_of
from skdptune.base._nested_parameters import nested_estimators, own_parameters
from skdptune.base.protocol import Parametrized


def set_public_size(estimator: Parametrized, size: int) -> None:
    """Set ``n_public`` wherever it is a parameter, for fits on a random part of the records."""
    for prefix, part in nested_estimators(estimator):
        if "n_public" in own_parameters(part):
            estimator.set_params(**{f"{prefix}n_public": size})


def check_secret_size(estimator: Parametrized, size: int, n_features: int | None) -> None:
    """Raise if the cost of a fit depends on its number of records, which is secret.

    Raises
    ------
    TypeError
        With what to do about it.
    """
    if cost_of(estimator, size, n_features) != cost_of(estimator, 2 * size + 1, n_features):
        raise TypeError(
            "estimator must have a parameter n_public, or a cost that does not depend on the "
            f"number of records; got {type(estimator).__name__}. Random parts of the data have a "
            "secret size; public validation data (X_val, y_val) and tuning_fraction=None avoid "
            "them."
        )
