"""Regressions by one posterior sample: at released bounds, or for any possible data."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_option, check_real
from skdptune.accounting import PrivacyProfile, calibrate, posterior_sample
from skdptune.base._shared import arguments_of
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._regression._posterior_sampling import (
    LARGEST_LEVERAGE,
    PosteriorPlan,
    PosteriorSampleRegressor,
    adaptive_plan,
    margin,
    posterior_draw,
    proposal_plan,
    single_release_shift,
)
from skdptune.linear_model._regression._private_regressor import (
    REGRESSOR_TEXT,
    PrivateLinearRegressor,
)
from skdptune.linear_model._regression._sufficient_statistics import (
    LARGEST_EPSILON,
    RIDGES,
    RidgeProblem,
    squared_radius,
)
from skdptune.linear_model._solvers import add_noise, additive_noise
from skdptune.mechanisms._shared import nonprivate_profile

MODES = ("adaptive", "propose-test-release")
CALIBRATIONS = ("exact", "closed-form")


@with_shared_text(REGRESSOR_TEXT)
class PTRLinearRegression(PosteriorSampleRegressor):
    r"""Differentially private ridge regression by one posterior sample, at bounds released first.

    The weights are one draw of ``Normal(t, (precision H)^-1)`` with ``H = X'X + ridge I`` and the
    ridge solution t. How precise the draw may be depends on the least eigenvalue of ``X'X`` and on
    how large residuals can be; noisy bounds on both are released before it. It exists for
    comparison with the literature; `DPRidge` is more accurate on most data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as in scikit-learn's ``Ridge``. Mode "adaptive" raises it to what
        `max_leverage` needs in addition to the released eigenvalue; None means exactly that. Mode
        "propose-test-release" uses it unchanged, and has no rule for None.
    {bounds_and_intercept}
    mode : {"adaptive", "propose-test-release"}, default="adaptive"
        "adaptive" fixes the privacy curve of the sample in advance, and raises the regularization
        until it holds: the whole profile is known and composes well. In the paper's
        "propose-test-release" the test fails if no precision is safe at the released bounds.
    calibration : {"exact", "closed-form"}, default="exact"
        "closed-form" computes the precision by the formula printed in the paper, which understates
        the cost. It is for comparison, in mode "adaptive"; `privacy_` then states the true cost of
        the fit, which may exceed `epsilon`.
    max_leverage : float, optional
        In mode "adaptive", the largest influence of a row on its own fit. A small value needs much
        regularization, a large value much noise. None chooses a share of what the budget allows.
    {failure_probability}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}
    released_ : bool
        Whether the test passed. If it did not, `coef_` is zero and `intercept_` the middle of
        `target_bound` (0 for a number): a data-independent model. Always True in mode "adaptive".

    See Also
    --------
    DPRidge : Noise on the sums instead of on the weights; usually more accurate.
    skdptune.accounting.posterior_sample : The cost of the sample.

    Notes
    -----
    Theorem L5.

    Neighbours differ by adding or removing one record. Koskela, Redberg and Wang (2024, arXiv
    2402.06701), section 6.1, after Wang (2018), with the exact profile of the sample in place of
    the printed bound. The bounds are released with Gaussian noise; the probability that a bound
    does not hold is added to delta.

    *Adaptive.* Once the least eigenvalue is bounded, the largest remaining leverage is known. A
    sample for a smaller leverage is made as precise as possible with a curve below the fixed one.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import PTRLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> model = PTRLinearRegression(1.0, 1e-6, data_norm=1.8, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).coef_.round(1)
    array([ 0.5, -0.3,  0.1])
    >>> print(model.privacy_.epsilon, model.released_)
    1.0 True
    """

    cost_parameters: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "mode", "calibration", "max_leverage", "failure_probability"}
    )
    mode: str
    calibration: str
    max_leverage: float | None

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        alpha: float | None = None,
        data_norm: float | None = None,
        target_bound: float | tuple[float, float] | None = None,
        fit_intercept: bool = True,
        mode: str = "adaptive",
        calibration: str = "exact",
        max_leverage: float | None = None,
        failure_probability: float | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.mode, name="mode", options=MODES)
        check_option(self.calibration, name="calibration", options=CALIBRATIONS)
        if self.calibration == "closed-form" and self.mode != "adaptive":
            raise ValueError(
                "calibration must be 'exact' in mode 'propose-test-release', whose test would "
                "otherwise pass when it must fail; got 'closed-form'."
            )
        if self.alpha is None and self.mode != "adaptive":
            raise ValueError(
                "alpha must be given in mode 'propose-test-release', which uses it unchanged; "
                "got None. Mode 'adaptive' chooses it."
            )
        if self.max_leverage is not None:
            check_real(self.max_leverage, name="max_leverage", lower=1e-9, upper=LARGEST_LEVERAGE)

    def _plan(self, n_public: int, n_features: int | None) -> PosteriorPlan:
        epsilon, delta = self._checked_budget()
        if self.mode == "adaptive":
            return adaptive_plan(
                epsilon, delta, self.max_leverage, self.failure_probability, self.calibration
            )
        return proposal_plan(epsilon, delta, self.failure_probability)

    def _ridge(self, plan: PosteriorPlan, problem: RidgeProblem, least: float) -> float:
        if plan.leverage == 0.0:
            return problem.alpha
        # Slightly more, so that rounding does not leave the box.
        return max(problem.alpha, problem.radius2 / plan.leverage * (1.0 + 1e-8) - least)


# Above this share of one Gaussian release's shift, the leverage would already cost too much.
_LEVERAGE_SHARE = 0.08


@with_shared_text(REGRESSOR_TEXT)
class AdaOPSLinearRegression(PosteriorSampleRegressor):
    r"""Differentially private ridge regression by one posterior sample that adapts to the data.

    A bound on the least eigenvalue of ``X'X`` is released, and the regularization that balances
    noise and bias follows from it. Then a bound on residuals and the sample are released. It
    exists for comparison with the literature; `DPRidge` is more accurate on most
    data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as in scikit-learn's ``Ridge``, which the rule never goes below.
        None has the same effect as 0.
    {bounds_and_intercept}
    {failure_probability}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}
    released_ : bool
        Whether some precision was safe. If none was, `coef_` is zero and `intercept_` the middle
        of `target_bound` (0 for a number): a data-independent model.

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
        shift = single_release_shift(plan.epsilon, plan.delta)
        needed = problem.radius2 / (_LEVERAGE_SHARE * min(shift, 3.0))
        ridges = np.maximum(np.maximum(RIDGES, needed) - least, problem.alpha)
        leverage = problem.radius2 / (ridges + least)
        # Margin of the residuals' bound, which is released with this noise.
        exponent = 2.0 * margin(plan.failure) * np.log1p(leverage) / plan.norm_shift
        squared = (1.0 + leverage) ** 2 * np.exp(np.minimum(exponent, 600.0))
        loss = problem.moment.size * squared * leverage / shift**2 + ridges
        return float(ridges[np.argmin(loss)])


def residual_bound(radius2: float, ridge: Any, n_public: int) -> Any:
    """Return a bound on every residual that holds for any data with this number of records.

    With targets in [-1, 1], each eigenvalue's part of the solution is at most
    ``sqrt(value) / (value + ridge) <= 1 / (2 sqrt(ridge))`` of the targets' norm.

    Notes
    -----
    Theorem L6.
    """
    return 1.0 + math.sqrt(radius2 * n_public) / (2.0 * np.sqrt(ridge))


@dataclass(frozen=True)
class BalancedPlan:
    """A ridge, the squared residual that the budget allows with it, and the total cost."""

    ridge: float
    squared_residual: float
    profile: PrivacyProfile
    noise_multiplier: float


@functools.lru_cache(maxsize=256)
def balanced_plan(
    epsilon: float, delta: float, ridge: float | None, radius2: float, n_public: int, width: int
) -> BalancedPlan:
    """Return the plan of a posterior sample whose bounds do not need data.

    Parameters
    ----------
    epsilon, delta : float
        The budget; an infinite epsilon means no noise.
    ridge : float or None
        For rows of norm 1; None balances noise and bias.
    radius2, n_public, width : float, int, int
        Bound on a row's squared norm; number of records and of weights.
    """
    if math.isinf(epsilon):
        least = 1e-2 if ridge is None else ridge
        return BalancedPlan(least, math.inf, nonprivate_profile(), 0.0)
    epsilon = min(epsilon, LARGEST_EPSILON)
    shift = single_release_shift(epsilon, delta)
    least = radius2 / (_LEVERAGE_SHARE * min(shift, 3.0))
    if ridge is None:
        chosen = _balanced(shift, least, radius2, n_public, width)
    else:
        chosen = max(ridge, least)
    leverage = radius2 / chosen
    found = calibrate(
        lambda residual: posterior_sample(leverage, residual),
        epsilon,
        delta,
        parameter="budget",
        lower=1e-9,
        upper=1e6,
        guess=min(max(shift**2 / leverage, 1e-9), 1e6),
        tolerance=1e-3,
    )
    influence = math.sqrt(leverage * found.value)
    return BalancedPlan(chosen, found.value, found.profile, 1.0 / influence)


def _balanced(shift: float, least: float, radius2: float, n_public: int, width: int) -> float:
    """Return the ridge, from `least` upwards, that minimises the sum of bounds on noise and bias.

    The sample's squared error in the training loss is about its number of weights divided by the
    precision. The bias is at most the ridge times the squared norm of the best weights, which is
    assumed to be that of targets divided by that of rows.
    """
    ridges = np.maximum(RIDGES, least)
    residuals = residual_bound(radius2, ridges, n_public)
    loss = width * residuals**2 * radius2 / (shift**2 * ridges) + ridges
    return float(ridges[np.argmin(loss)])


@with_shared_text(REGRESSOR_TEXT)
class OPSLinearRegression(PrivateLinearRegressor):
    r"""Differentially private ridge regression by one posterior sample, safe for any data.

    The precision of the sample is set for the worst possible data, so nothing has to be released
    before it. It exists for comparison with the literature; `DPRidge` is more
    accurate on most data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as in scikit-learn's ``Ridge``, raised to what the budget needs.
        None balances bounds on the noise and on the bias, from public sizes only.
    {bounds_and_intercept}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Neighbours differ by adding or removing one record. "OPS-balanced" of Wang (2018, arXiv
    1803.02596), with the exact profile of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import OPSLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(50_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = OPSLinearRegression(2.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(X, y).privacy_.epsilon
    2.0
    """

    cost_parameters: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "alpha", "data_norm", "fit_intercept", "n_public"}
    )

    def _plan(self, n_public: int, n_features: int | None) -> BalancedPlan:
        epsilon, delta = self._checked_budget()
        ridge = self._scaled_alpha(n_features)
        width = (1 if n_features is None else n_features) + int(self.fit_intercept)
        if n_features is None and ridge is None:
            raise ValueError("n_features must be given if alpha is not; got None.")
        radius2 = squared_radius(self.fit_intercept)
        return balanced_plan(epsilon, delta, ridge, radius2, n_public, width)

    def _weights(
        self, plan: BalancedPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        bound = residual_bound(problem.radius2, plan.ridge, problem.n_public)
        solution = problem.solution(plan.ridge)
        precision = plan.squared_residual / bound**2
        return posterior_draw(problem, solution, plan.ridge, precision, rng)


# Output perturbation of a ridge regression: the exact solution, then noise on the weights -------


@dataclass(frozen=True)
class OutputRegressionPlan:
    """A ridge, the noise on its weights, and its cost.

    Attributes
    ----------
    ridge : float
        For rows of norm 1.
    noise_multiplier : float
        Noise over sensitivity.
    noise_scale : float
        Standard deviation of the noise, or the scale of its norm if `is_pure`.
    is_pure : bool
        Whether the noise gives delta = 0.
    profile : PrivacyProfile
        Cost of the fit.
    """

    ridge: float
    noise_multiplier: float
    noise_scale: float
    is_pure: bool
    profile: PrivacyProfile


@functools.lru_cache(maxsize=256)
def output_regression_plan(
    epsilon: float, delta: float, ridge: float | None, radius2: float, n_public: int
) -> OutputRegressionPlan:
    """Return the noise that meets a budget.

    Parameters
    ----------
    epsilon, delta : float
        Normal noise if delta is positive; an infinite epsilon means no noise.
    ridge : float or None
        For rows of norm 1; None balances noise and bias.
    radius2, n_public : float, int
        Bound on a row's squared norm, and on the number of records.
    """
    if math.isinf(epsilon):
        multiplier, profile = 0.0, nonprivate_profile()
    else:
        multiplier, profile = additive_noise(min(epsilon, LARGEST_EPSILON), delta, None, 1)
    if ridge is None:
        # Noise moves each record's prediction by its size, and the bias is at most the ridge.
        noise = multiplier * weights_sensitivity(radius2, RIDGES, n_public)
        ridge = float(RIDGES[np.argmin(n_public * radius2 * noise**2 + RIDGES)])
    scale = multiplier * float(weights_sensitivity(radius2, ridge, n_public))
    return OutputRegressionPlan(ridge, multiplier, scale, delta == 0.0, profile)


def weights_sensitivity(radius2: float, ridge: Any, n_public: int) -> Any:
    """Return the largest distance by which one record moves the solution of a ridge regression.

    In units of the bounds. Let r be the residual of the record under the smaller set's solution,
    and H the matrix of the larger set. The solution moves by ``H^-1 z r``, and
    ``norm(H^-1 z) <= norm(z) / ridge``.

    Notes
    -----
    Theorem L7.
    """
    return math.sqrt(radius2) * residual_bound(radius2, ridge, n_public) / ridge


@with_shared_text(REGRESSOR_TEXT)
class OutputPerturbationLinearRegression(PrivateLinearRegressor):
    r"""Differentially private ridge regression that adds noise to the weights.

    The noise is calibrated to the worst possible data. It is the only one of these regressions for
    ``delta=0``; with a positive `delta`, `DPRidge` is more accurate on most data.

    Parameters
    ----------
    {epsilon}
    delta : float, default=1e-5
        Delta of the budget, far below 1 over the number of records. The noise is normal if it is
        positive; 0 gives pure differential privacy.
    alpha : float, optional
        Regularization strength, as in scikit-learn's ``Ridge``. None balances bounds on the noise
        and on the bias, from public sizes only.
    {bounds_and_intercept}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Neighbours differ by adding or removing one record. Chaudhuri, Monteleoni and Sarwate (2011),
    for the squared loss, whose slope is bounded through the norm of a ridge solution:
    ``sqrt(n) target_bound / (2 sqrt(alpha))`` at most, with half of the range of a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import OutputPerturbationLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 2))
    >>> model = OutputPerturbationLinearRegression(1.0, 0.0, target_bound=1.0, random_state=0)
    >>> model.fit(X, X @ [0.5, -0.5]).privacy_.delta
    0.0
    """

    _can_be_pure: ClassVar[bool] = True
    _holds_for_persons: ClassVar[bool] = True

    def _plan(self, n_public: int, n_features: int | None) -> OutputRegressionPlan:
        epsilon, delta = self._checked_budget()
        # The number of features, through the default norm, changes only the noise.
        ridge = self._scaled_alpha(1 if n_features is None else n_features)
        radius2 = squared_radius(self.fit_intercept)
        return output_regression_plan(epsilon, delta, ridge, radius2, n_public)

    def _weights(
        self, plan: OutputRegressionPlan, problem: RidgeProblem, rng: np.random.Generator
    ) -> np.ndarray:
        weights = problem.vectors @ problem.solution(plan.ridge)
        if plan.noise_scale == 0.0:
            return weights
        # Theorem E1: real noise plus the value, rounded to a public grid.
        return add_noise(weights, plan.noise_scale, plan.is_pure, rng)
