"""One posterior sample at a ridge that follows from a released eigenvalue."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune.linear_model._regression._posterior_sampling import (
    PosteriorPlan,
    PosteriorSampleRegressor,
    proposal_plan,
)
from skdptune.linear_model._regression._private_regressor import REGRESSOR_TEXT
from skdptune.linear_model._regression._sufficient_statistics import RIDGES, RidgeProblem
from skdptune.mechanisms import noise_for_budget

# Above this share of one Gaussian release's shift, the leverage alone would cost too much.
_LEVERAGE_SHARE = 0.08


@with_shared_text(REGRESSOR_TEXT)
class AdaOPSLinearRegression(PosteriorSampleRegressor):
    r"""Differentially private ridge regression by one posterior sample that adapts to the data.

    A bound on the least eigenvalue of ``X'X`` is released, and the regularization that balances
    noise and bias follows from it; then come a bound on residuals, and the sample. For comparison
    with the literature; `NoisyStatisticsRidge` is more accurate on most data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as of scikit-learn's ``Ridge``, below which the rule never goes.
        None leaves the rule alone, like 0.
    {bounds_and_intercept}
    {failure_probability}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}
    released_ : bool
        Whether some precision was safe. Where none was, `coef_` is zero and `intercept_` the
        middle of `target_bound` (0 of a number): a data-independent model.

    Notes
    -----
    Theorem L5.

    Neighbours differ by adding or removing one record. "AdaOPS" of Wang (2018, arXiv 1803.02596,
    Algorithm 3), with the exact costs of Gaussian noise and of the sample in place of tail bounds,
    and the bound on residuals of the smaller set.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import AdaOPSLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = AdaOPSLinearRegression(1.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).privacy_.epsilon
    1.0
    """

    cost_parameters: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "failure_probability"}
    )
    _least_alpha: ClassVar[float] = 0.0

    def _plan(self, n_public: int, n_features: int | None) -> PosteriorPlan:
        return proposal_plan(*self._checked_budget(), self.failure_probability)

    def _ridge(self, plan: PosteriorPlan, problem: RidgeProblem, least: float) -> float:
        """Return the ridge of least noise plus bias, given the released eigenvalue."""
        if math.isinf(plan.norm_shift):
            return problem.alpha
        shift = 1.0 / noise_for_budget(plan.epsilon, plan.delta)[0]
        needed = problem.radius2 / (_LEVERAGE_SHARE * min(shift, 3.0))
        ridges = np.maximum(np.maximum(RIDGES, needed) - least, problem.alpha)
        leverage = problem.radius2 / (ridges + least)
        # Of the margin of the residuals' bound, which is released with this much noise.
        exponent = 2.0 * plan.margin * np.log1p(leverage) / plan.norm_shift
        squared = (1.0 + leverage) ** 2 * np.exp(np.minimum(exponent, 600.0))
        loss = problem.moment.size * squared * leverage / shift**2 + ridges
        return float(ridges[np.argmin(loss)])
