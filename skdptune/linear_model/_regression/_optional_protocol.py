"""The optional methods of the private estimator protocol, as the regressions implement them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from skdptune._validation import check_integer
from skdptune.linear_model._regression._suggested_space import SuggestedSpaceMixin

# Bounds on alpha within which nothing overflows.
LEAST_ALPHA, LARGEST_ALPHA = 1e-9, 1e15


class OptionalProtocolMixin(SuggestedSpaceMixin):
    """Noise, cost parameters and extrapolation of a regression, from its parameters alone."""

    alpha: float | None
    # Names of the parameters on which the cost depends.
    _cost_parameters: ClassVar[frozenset[str]] = frozenset({"epsilon", "delta"})
    _least_alpha: ClassVar[float] = LEAST_ALPHA
    _plan_before_data: Callable[[int, int | None], Any]

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends."""
        return self._cost_parameters

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return parameters with which a fit on fewer records resembles the final fit.

        Parameters
        ----------
        n_tune, n_final : int
            Numbers of records, or their public expectations.

        Returns
        -------
        dict
            The regularization per record is kept. The noise does not depend on the number of
            records, so that on fewer of them it is larger than the signal's share; no parameter
            changes that.
        """
        n_tune = check_integer(n_tune, name="n_tune", lower=1)
        n_final = check_integer(n_final, name="n_final", lower=1)
        if self.alpha is None:
            return {}
        alpha = self.alpha * (n_tune / n_final)
        return {"alpha": min(max(alpha, self._least_alpha), LARGEST_ALPHA)}

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in units of a record's influence.

        Parameters
        ----------
        n_samples, n_features : int
            As for `privacy_profile`.

        Returns
        -------
        float
        """
        return float(self._plan_before_data(n_samples, n_features).noise_multiplier)
