"""The optional members of the private estimator protocol, as boosting machines implement them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skdptune._validation import check_integer
from skdptune.ensemble._plan import BoostingPlan
from skdptune.preprocessing import as_schema


class OptionalProtocolMixin:
    """Noise, cost parameters and suggested values, from parameters and public numbers alone."""

    schema: Any
    max_leaves: int
    learning_rate: float | None
    _plan: Callable[[], BoostingPlan]
    _public_size: Callable[[int], int]
    _rate: Callable[[BoostingPlan, int, int], float]

    # Names of the parameters on which the cost depends: all others change no noise in all.
    cost_parameters = frozenset({"epsilon", "delta", "noise_multiplier"})
    # Name of the parameter that sets the noise and changes nothing else.
    noise_parameter = "noise_multiplier"

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in standard deviations per sensitivity of one release.

        Given as ``noise_multiplier`` instead of a budget, it makes the same noise.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Not used.

        Returns
        -------
        float
        """
        check_integer(n_samples, name="n_samples", lower=1)
        return self._plan().noise_multiplier

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return parameters with which a fit on fewer records resembles the final fit: none.

        Leaves hold means of residuals, so that rounds and rate suit any number of records.

        Parameters
        ----------
        n_tune, n_final : int
            Numbers of records.

        Returns
        -------
        dict
            Empty.
        """
        check_integer(n_tune, name="n_tune", lower=1)
        check_integer(n_final, name="n_final", lower=1)
        return {}

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return the values that are worth searching beside the present ones.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Number of columns; without it and a ``schema``, rates that follow a rule are left
            alone.

        Returns
        -------
        dict of lists
            By parameter, the present value first: twice and half the learning rate, and more
            leaves. A search varies one parameter at a time.
        """
        size = self._public_size(check_integer(n_samples, name="n_samples", lower=1))
        if n_features is not None:
            n_features = check_integer(n_features, name="n_features", lower=1, upper=2**53)
        plan = self._plan()
        space: dict[str, list[Any]] = {
            "max_leaves": [self.max_leaves, 5 if self.max_leaves < 5 else 3]
        }
        n_terms = n_features if self.schema is None else len(as_schema(self.schema).used)
        if self.learning_rate is not None or n_terms is not None:
            rate = self._rate(plan, n_terms or 1, size)
            rates = [self.learning_rate, min(2.0 * rate, 10.0), 0.5 * rate]
            space["learning_rate"] = list(dict.fromkeys(rates))
        return space
