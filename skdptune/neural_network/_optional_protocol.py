"""The optional methods of the private estimator protocol, as nets implement them."""

from __future__ import annotations

from typing import Any

import torch

from skdptune._validation import check_integer
from skdptune.neural_network._parameters import NetParameters

_COST_PARAMETERS = frozenset(
    {
        "batch_size",
        "delta",
        "epsilon",
        "max_epochs",
        "n_public",
        "noise_multiplier",
        "sampling",
    }
)


# Beside the present value, in units of it.
_SUGGESTED = (1.0 / 3.0, 3.0)


class OptionalProtocolMixin(NetParameters):
    """Noise, cost parameters and extrapolation of a net, from its parameters alone."""

    @property
    def noise_parameter(self) -> str | None:
        """Name of the parameter that sets the noise of a fit and changes nothing else, or None.

        Given in place of `epsilon`, the same noise makes the same fit. With "max" epochs it sets
        the number of steps instead.
        """
        return None if self._takes_most_steps() else "noise_multiplier"

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends."""
        return _COST_PARAMETERS

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in units of the clipping norm.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        float
            The noise multiplier.
        """
        return float(self._plan_before_data(n_samples).noise_multiplier)

    def fixed_epochs(self, n_samples: int, n_features: int | None = None) -> dict[str, float]:
        """Return the number that "auto" or "max" stands for, under the name of the parameter.

        Set beside the same ``noise_multiplier`` it makes the same fit, whatever ``epsilon`` is.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        dict
            Empty where the number of epochs is given.
        """
        if not isinstance(self.max_epochs, str):
            return {}
        return {"max_epochs": self._epochs_of(self._plan_before_data(n_samples))}

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return the parameters with which a fit on fewer records resembles the final fit.

        Parameters
        ----------
        n_tune : int
            Number of records, or its public expectation, that the search fits on.
        n_final : int
            Number of records, or its public expectation, of the final fit of this net.

        Returns
        -------
        dict
            To be set by ``set_params`` on a copy that is fitted on `n_tune` records.

        Notes
        -----
        *batch_size* becomes a share of the records, as large as it is of `n_final`. That keeps the
        sampling rate, the number of steps, the noise multiplier and the privacy cost.

        *max_epochs* of "auto" becomes the number that it is for `n_final`, for the same reason.

        *lr* of plain SGD is multiplied by ``n_tune / n_final`` (Koskela and Kulkarni 2023,
        arXiv:2301.11989, section 3.2), which keeps the size of the noise that a step adds to the
        weights. Other optimizers keep their learning rate: Adam divides each step by its size.
        """
        self._check_parameters()
        n_tune = check_integer(n_tune, name="n_tune", lower=1)
        n_final = check_integer(n_final, name="n_final", lower=1)
        share = self.batch_size
        values: dict[str, Any] = {
            "batch_size": share if isinstance(share, float) else min(share / n_final, 1.0)
        }
        if self._takes_default_epochs():
            values["max_epochs"] = self._epochs_for(self._public_size(n_final))
        if self.optimizer is torch.optim.SGD:
            values[self._rate_name] = getattr(self, self._rate_name) * (n_tune / n_final)
        return values

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[float]]:
        """Return values of the learning rate and the clipping norm that are worth searching.

        Parameters
        ----------
        n_samples, n_features : int
            Not used.

        Returns
        -------
        dict of lists
            The present value of each, a third and three times of it. A search varies one
            parameter at a time.
        """
        self._check_parameters()
        present = {name: getattr(self, name) for name in (self._rate_name, "max_grad_norm")}
        return {
            name: [value, *(value * factor for factor in _SUGGESTED)]
            for name, value in present.items()
            if value > 0.0
        }

    @property
    def _rate_name(self) -> str:
        # skorch prefers the one with the prefix.
        return "optimizer__lr" if hasattr(self, "optimizer__lr") else "lr"
