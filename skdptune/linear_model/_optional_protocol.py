"""The optional methods of the private estimator protocol, as linear classifiers implement them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skdptune._validation import check_integer
from skdptune.linear_model._defaults import (
    AUTO,
    CLIPPING_SOLVERS,
    batch_size_of,
    follows_noise,
    solver_of,
    strength_of,
)
from skdptune.linear_model._parameters import LARGEST_C, takes_most_steps
from skdptune.linear_model._solvers import OPTIMIZERS, SGD_LEARNING_RATE
from skdptune.linear_model._suggested_space import SuggestedSpaceMixin

_BUDGET = frozenset({"solver", "epsilon", "delta", "noise_multiplier"})
# These let "auto" choose another solver.
_CHOOSING = frozenset({"batch_size", "sampling", "epochs"})
_DESCENT = _BUDGET | {"epochs", "batch_size", "sampling", "n_public"}
_COST_PARAMETERS = {
    # The determinants that are paid for depend on the rows' norm and the regularization.
    "objective": _BUDGET | {"C", "data_norm", "fit_intercept", "classes"},
    # Its cost needs no data_norm, but asks for it where the number of features is not known.
    "output": _BUDGET | {"data_norm", "classes"},
    # All but the budget decide which steps are too long, and whether the run is possible.
    "psgd": _BUDGET
    | {"C", "data_norm", "fit_intercept", "classes", "batch_size", "learning_rate", "n_public"},
    "preconditioned": _BUDGET | {"epochs"},
    "sgd": _DESCENT,
    "adam": _DESCENT,
}


class OptionalProtocolMixin(SuggestedSpaceMixin):
    """Noise, cost parameters and extrapolation of a classifier, from its parameters alone."""

    solver: str
    C: float | None
    batch_size: int | float | None
    delta: float
    learning_rate: float | None
    get_params: Callable[..., dict[str, Any]]
    _check_parameters: Callable[[], None]
    _plan_before_data: Callable[[int, int | None], Any]

    @property
    def noise_parameter(self) -> str | None:
        """Name of the parameter that sets the noise of a fit and changes nothing else, or None.

        Given in place of `epsilon`, the same noise makes the same fit: "objective" raises its
        regularization by `epsilon`, and "psgd" plans its steps. With "max" epochs the noise sets
        the number of steps instead, and `epsilon` the cost.
        """
        if takes_most_steps(self):
            return None
        return "noise_multiplier" if solver_of(self) in (*CLIPPING_SOLVERS, "output") else None

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends, with the present solver.

        Two estimators that differ in other parameters alone, each valid by itself, have one cost.
        """
        # An unknown solver is refused when its cost is computed.
        names = _COST_PARAMETERS.get(solver_of(self), frozenset(self.get_params(deep=False)))
        return names | _CHOOSING if self.solver == AUTO and self.delta != 0.0 else names

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in units of a record's influence.

        Given as ``noise_multiplier`` instead of a budget, it makes the same noise.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Number of features; needed where ``data_norm`` is, as for `privacy_profile`.

        Returns
        -------
        float
            Standard deviation of the noise over the largest clipped gradient ("objective", "sgd",
            "adam") or over the sensitivity of the weights ("output", "psgd"); the scale of the
            noise's norm over the same where ``delta`` is 0.
        """
        return float(self._plan_before_data(n_samples, n_features).noise_multiplier)

    def fixed_epochs(self, n_samples: int, n_features: int | None = None) -> dict[str, float]:
        """Return the number that "max" epochs stand for, under the name of their parameter.

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
        if not takes_most_steps(self):
            return {}
        return {"epochs": float(self._plan_before_data(n_samples, n_features).epochs)}

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return parameters with which a fit on fewer records resembles the final fit.

        Parameters
        ----------
        n_tune : int
            Number of records, or its public expectation, that the search fits on.
        n_final : int
            Number of records, or its public expectation, of the final fit of this estimator.

        Returns
        -------
        dict
            To be set by ``set_params`` on a copy that is fitted on `n_tune` records.

        Notes
        -----
        *C* is multiplied by ``n_final / n_tune``. Every solver adds ``norm(weights)**2 / (2 C)``
        to the *sum* of the losses, so this keeps the regularization per record, ``1 / (C n)``.

        *batch_size* becomes the share of the records that it is of `n_final`: the sampling rate
        stays, and with it the number of steps, the noise multiplier and the cost.

        *learning_rate* of "sgd" is multiplied by ``n_tune / n_final`` (Koskela and Kulkarni 2023,
        arXiv:2301.11989, section 3.2; van der Veen et al. 2018). A step divides noise of a fixed
        size by the batch, so this keeps the noise of a step on the weights, ``rate * noise / B``.
        "adam" divides each step by its own size and keeps its rate; "psgd" keeps it too, since
        its steps follow the mean of the losses; and what "preconditioned" multiplies by it
        follows the number of records by itself.

        "objective" and "output" add noise of a size that does not depend on the number of
        records: on fewer records they have more noise for their signal, and no parameter
        changes that.

        Examples
        --------
        >>> from skdptune.linear_model import DPLogisticRegression
        >>> model = DPLogisticRegression(solver="sgd", batch_size=100, learning_rate=4.0, C=0.5)
        >>> model.tuning_parameters(n_tune=500, n_final=2000)
        {'C': 2.0, 'batch_size': 0.05, 'learning_rate': 1.0}
        """
        self._check_parameters()
        n_tune = check_integer(n_tune, name="n_tune", lower=1)
        n_final = check_integer(n_final, name="n_final", lower=1)
        values: dict[str, Any] = {}
        solver = solver_of(self)
        if not follows_noise(self):
            values["C"] = min(strength_of(self) * (n_final / n_tune), LARGEST_C)
        if solver in OPTIMIZERS or solver == "psgd":
            share = batch_size_of(self)
            values["batch_size"] = share if isinstance(share, float) else min(share / n_final, 1.0)
        if solver == "sgd":
            rate = SGD_LEARNING_RATE if self.learning_rate is None else self.learning_rate
            values["learning_rate"] = rate * (n_tune / n_final)
        return values
