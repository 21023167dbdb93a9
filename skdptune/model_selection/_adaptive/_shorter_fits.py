"""Fits of fewer epochs, for the first rungs of a trial."""

from __future__ import annotations

import numbers
from fractions import Fraction
from typing import Any

from sklearn.base import clone

from skdptune.base import nested_estimators, own_parameters
from skdptune.model_selection._cost import FitSize, copied

_EPOCHS = ("epochs", "max_epochs")


def with_share(
    estimator: Any, candidate: dict[str, Any], share: Fraction, size: FitSize
) -> dict[str, Any]:
    """Return a candidate with a share of its epochs, where a step counts these.

    Where none does, or their number follows from the budget, it is returned as it is: its fit
    then has as much more noise.
    """
    if share == 1:
        return candidate
    made = clone(estimator).set_params(**copied(candidate))
    found = dict(candidate)
    for prefix, step in nested_estimators(made):
        known = own_parameters(step)
        for name in _EPOCHS:
            epochs = _epochs_of(step, name, known.get(name), size)
            if epochs is not None:
                found[f"{prefix}{name}"] = _shortened(epochs, share)
    return found


def _epochs_of(step: Any, name: str, given: Any, size: FitSize) -> Any:
    """Return the number of epochs of a step, None if it has none that is known."""
    if isinstance(given, numbers.Real) and not isinstance(given, bool):
        return given
    # Other words are about the budget, from which the number follows.
    is_by_size = isinstance(given, str) and given == "auto"
    if not is_by_size or not hasattr(step, "tuning_parameters"):
        return None
    found = step.tuning_parameters(size.n_samples, size.n_final).get(name)
    return found if isinstance(found, numbers.Real) else None


def _shortened(epochs: Any, share: Fraction) -> Any:
    if isinstance(epochs, numbers.Integral):
        return max(1, round(int(epochs) * float(share)))
    return float(epochs) * float(share)
