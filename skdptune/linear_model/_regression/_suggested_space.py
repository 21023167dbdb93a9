"""What is worth searching of the regressions' parameters, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from skdptune._validation import check_integer
from skdptune.linear_model._regression._sufficient_statistics import squared_radius
from skdptune.linear_model._solvers import row_norm

_FACTORS = (0.1, 0.3, 3.0, 10.0)
_LARGEST_ALPHA = 1e15


class SuggestedSpaceMixin:
    """The values that a search without a space tries."""

    alpha: float | None
    data_norm: float | None
    fit_intercept: bool
    _least_alpha: ClassVar[float]
    _plan_before_data: Callable[[int, int | None], Any]

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return the values of `alpha` that are worth searching beside the present one.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Number of features; without it, nothing is suggested where `alpha` follows a rule.

        Returns
        -------
        dict of lists
            The first value is the present one, None if that follows a rule; the others are a
            tenth to ten times of it, or of what the noise moves the eigenvalues of ``X'X`` by.

        Examples
        --------
        >>> from skdptune.linear_model import NoisyStatisticsRidge
        >>> model = NoisyStatisticsRidge(alpha=2.0, data_norm=1.0, target_bound=1.0)
        >>> model.suggested_space(n_samples=1000)
        {'alpha': [2.0, 0.2, 0.6, 6.0, 20.0]}
        """
        check_integer(n_samples, name="n_samples", lower=1)
        if n_features is not None:
            check_integer(n_features, name="n_features", lower=1)
        if self.alpha is None and n_features is None:
            return {}
        plan = self._plan_before_data(n_samples, n_features)
        centre = self.alpha
        if centre is None:
            centre = self._alpha_by_rule(plan, n_features)
        if centre == 0.0:
            # No noise, and so no regularization by the rule.
            return {"alpha": [self.alpha]}
        values = [min(max(centre * f, self._least_alpha), _LARGEST_ALPHA) for f in _FACTORS]
        return {"alpha": [self.alpha, *values]}

    def _alpha_by_rule(self, plan: Any, n_features: Any) -> float:
        """Return about what None stands for, in units of the rows."""
        ridge = getattr(plan, "ridge", None)
        if ridge is None:
            width = n_features + int(self.fit_intercept)
            noise = math.sqrt(width) * plan.noise_multiplier
            ridge = noise * squared_radius(self.fit_intercept)
        return float(ridge) * row_norm(self.data_norm, n_features) ** 2
