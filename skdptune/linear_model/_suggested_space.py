"""What is worth searching of the linear models' parameters, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from skdptune._validation import check_integer
from skdptune.linear_model._defaults import PRECONDITIONED, solver_of, strength_of
from skdptune.linear_model._parameters import LARGEST_C
from skdptune.linear_model._preconditioned import Basis, PreconditionedPlan, step_rule
from skdptune.linear_model._solvers import OPTIMIZERS

# Values beside the one that a parameter has, in units of it, or of what None stands for.
_FACTOR = 3.0
_FACTOR_OF_C = 10.0
# Strengths of "preconditioned", over the number of records: less than these lost everywhere.
_WEAK = 1e4


class SuggestedSpaceMixin:
    """The values that a search without a space tries."""

    C: float | None
    learning_rate: float | None
    max_grad_norm: float | None
    fit_intercept: bool
    classes: Any
    n_public: int | None
    _check_parameters: Callable[[], None]
    _plan_before_data: Callable[[int, int | None], Any]

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return the values that are worth searching, beside those that the model has.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Number of features; without it fewer values are suggested.

        Returns
        -------
        dict of lists
            By parameter; the first value of each is the present one, None included. A search
            varies one parameter at a time.

        Notes
        -----
        *Solver "preconditioned".* A clipping norm of a third and of three times that of
        `step_rule`, three times its learning rate, and a weak `C`. These
        were within .5 points of the default on breast_cancer, digits and a9a at epsilon 1 and 4
        (digits at 1: 1.5 above it with the larger norm); a third of the rate lost up to 9 points,
        ``C = 100 / n`` up to 8, so that they are not among the values. What the
        rule takes from the data is replaced by its largest value, the root of the number of
        weights; where the rule would not release second moments, `C` alone is suggested.

        *Other solvers.* A third and three times the learning rate and the clipping norm of "sgd"
        and "adam"; a tenth and ten times the `C` of the others, where it is given.

        Examples
        --------
        >>> from skdptune.linear_model import DPLogisticRegression
        >>> space = DPLogisticRegression(epsilon=1.0).suggested_space(10_000, 20)
        >>> sorted(space)
        ['C', 'learning_rate', 'max_grad_norm']
        >>> [values[0] for values in space.values()]
        [None, None, None]
        """
        n_samples = check_integer(n_samples, name="n_samples", lower=1)
        if n_features is not None:
            n_features = check_integer(n_features, name="n_features", lower=1)
        self._check_parameters()
        solver = solver_of(self)
        if solver == PRECONDITIONED:
            return self._around_rule(n_samples, n_features)
        if solver in OPTIMIZERS:
            return _around(self, ("learning_rate", "max_grad_norm"), _FACTOR)
        return {"C": _spread(self.C, strength_of(self), (1.0 / _FACTOR_OF_C, _FACTOR_OF_C))}

    def _around_rule(self, n_samples: int, n_features: int | None) -> dict[str, list[Any]]:
        size = n_samples if self.n_public is None else self.n_public
        if self.C is None:
            space = {"C": [None, min(_WEAK / size, LARGEST_C)]}
        else:
            space = {"C": _spread(self.C, self.C, (1.0 / _FACTOR_OF_C, _FACTOR_OF_C))}
        plan = self._plan_before_data(n_samples, n_features)
        return space
