"""One posterior sample of a ridge regression, at bounds that are released first."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdptune._validation import check_option, check_real
from skdptune.linear_model._regression._posterior_plan import (
    PosteriorPlan,
    adaptive_plan,
    proposal_plan,
)
from skdptune.linear_model._regression._private_regressor import PrivateLinearRegressor
from skdptune.linear_model._regression._released_bounds import (
    release_least_eigenvalue,
    release_residual_bound,
)
from skdptune.linear_model._regression._ridge_problem import LEAST_RIDGE, Noise, Problem

MODES = ("adaptive", "propose-test-release")
CALIBRATIONS = ("exact", "closed-form")
# No ridge in use exceeds this; a test that asks for more has failed.
_LARGEST_LEVERAGE = 1e3


class PosteriorSampleRegressor(PrivateLinearRegressor):
    """What regressions by one posterior sample share: two released bounds, then the draw."""

    def _ridge(self, plan: PosteriorPlan, problem: Problem, least: float) -> float:
        """Return the ridge, from public constants and the released eigenvalue."""
        raise NotImplementedError

    def _weights(self, plan: PosteriorPlan, problem: Problem, noise: Noise) -> np.ndarray:
        self.released_ = True
        least = release_least_eigenvalue(
            float(problem.values[0]),
            problem.radius2,
            plan.eigenvalue_shift,
            plan.failure,
            noise.scalars,
        )
        ridge = max(self._ridge(plan, problem, least), LEAST_RIDGE)
        leverage = problem.radius2 / (least + ridge)
        room = plan.largest_residual_at(leverage) if leverage <= _LARGEST_LEVERAGE else 0.0
        solution = problem.solution(ridge)
        bound = release_residual_bound(
            float(np.linalg.norm(solution)),
            problem.radius2,
            leverage,
            plan.norm_shift,
            plan.failure,
            noise.scalars,
        )
        if room == 0.0:
            self.released_ = False
            return np.zeros_like(solution)
        return posterior_draw(problem, solution, ridge, room / bound / bound, noise)


def posterior_draw(
    problem: Problem, solution: np.ndarray, ridge: float, precision: float, noise: Noise
) -> np.ndarray:
    """Return one draw of the posterior, in the problem's own basis.

    Parameters
    ----------
    problem : Problem
    solution : ndarray
        Its mean, in the basis of the eigenvectors.
    ridge : float
    precision : float
        The covariance is the inverse of ``precision * (gram + ridge)``; infinite for none.
    noise : Noise
    """
    scale = 0.0 if math.isinf(precision) else 1.0 / np.sqrt(precision * (problem.values + ridge))
    draw = solution + scale * noise.generator.standard_normal(solution.size)
    return np.asarray(problem.vectors @ draw)


class PTRLinearRegression(PosteriorSampleRegressor):
    r"""Private linear regression: one posterior sample, tested before it is released.

    The model is one draw of ``Normal(t, (precision H)^-1)`` with ``H = X'X + ridge I`` and the
    ridge solution t. How precise it may be depends on the least eigenvalue of ``X'X`` and on how
    large residuals can be; private bounds on both are released first. Everything is
    (`epsilon`, `delta`)-differentially private for data sets that differ in one record, added
    or removed.

    Parameters
    ----------
    epsilon, delta : float
        The budget of a fit; an infinite epsilon means no noise. `delta` is positive.
    alpha : float, default=1.0
        Ridge, as of scikit-learn's ``Ridge``: added to the sum of squares. In mode "adaptive" it
        is raised to ``radius**2 / leverage`` less the released eigenvalue, where that is more.
    data_norm : float, optional
        Bound on the Euclidean norm of a row; longer ones are shortened. The default is
        ``sqrt(n_features)``.
    target_bound : float
        Bound on the absolute value of a target; others are clipped to it. There is no default,
        since it must be known without looking at the data.
    mode : {"adaptive", "propose-test-release"}, default="adaptive"
        "adaptive" fixes the curve of the sample beforehand, and makes the ridge so large that it
        holds: the whole profile is known and composes well. "propose-test-release" is the paper's:
        `alpha` stands, and if no precision is safe at the released bounds, the test fails.
    calibration : {"exact", "closed-form"}, default="exact"
        "closed-form" finds the precision by the bound printed in the paper, which
        understates. It is for comparison, in mode "adaptive"; `privacy_` then tells what the
        fit really costs, which may exceed `epsilon`.
    leverage : float, optional
        Mode "adaptive": largest influence of a row on its own fit. A small one needs much ridge,
        a large one much noise. The default is a share of what the budget allows.
    fit_intercept : bool, default=True
        Whether rows end with a constant, half of `data_norm`, inside the guarantee. Its
        weight is regularised like the others.
    failure_probability : float, optional
        With which each released bound may not hold; twice that (and a little) is added to delta.
        The default is ``delta / 1000``: a search pays it once for every expected run.
    random_state : None, int, Generator or RandomState
        None draws from the operating system's entropy.
    n_public : int, optional
        A public constant in place of the number of records, for fits on random parts of the data.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    released_ : bool
        Whether the test passed. Where it did not, `coef_` and `intercept_` are zero: a model that
        no data touched. Always True in mode "adaptive".
    privacy_ : PrivacyReport
        What the fit costs.
    n_features_in_ : int

    See Also
    --------
    NoisyStatisticsRidge : Noise on the sums instead of on the weights; usually more accurate.
    skdptune.accounting.posterior_sample : The price of the sample.

    Notes
    -----
    Theorem L5.

    Koskela, Redberg and Wang (2024, arXiv 2402.06701), section 6.1, after Wang (2018), with the
    exact profile of the sample in place of the printed bound. The bounds are released with
    Gaussian noise; a bound that does not hold costs its probability, added to delta.

    *Adaptive.* Once the least eigenvalue is bounded, the largest leverage that remains is known; a
    sample for a smaller leverage is made as precise as lets its curve stay below the fixed one.

    The weights are drawn as floats.

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

    _fit_costs: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "mode", "calibration", "leverage", "failure_probability"}
    )

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        *,
        alpha: float = 1.0,
        data_norm: float | None = None,
        target_bound: float | None = None,
        mode: str = "adaptive",
        calibration: str = "exact",
        leverage: float | None = None,
        fit_intercept: bool = True,
        failure_probability: float | None = None,
        random_state: Any = None,
        n_public: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            alpha=alpha,
            data_norm=data_norm,
            target_bound=target_bound,
            fit_intercept=fit_intercept,
            random_state=random_state,
            n_public=n_public,
        )
        self.mode = mode
        self.calibration = calibration
        self.leverage = leverage
        self.failure_probability = failure_probability

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.mode, name="mode", options=MODES)
        check_option(self.calibration, name="calibration", options=CALIBRATIONS)
        if self.calibration == "closed-form" and self.mode != "adaptive":
            raise ValueError(
                "calibration must be 'exact' in mode 'propose-test-release', whose test would "
                "else pass where it must fail; got 'closed-form'."
            )
        if self.leverage is not None:
            check_real(self.leverage, name="leverage", lower=1e-9, upper=_LARGEST_LEVERAGE)
        check_failure(self.failure_probability, self.delta)

    def _plan(self, n_public: int, n_features: int | None) -> PosteriorPlan:
        epsilon, delta = self._checked_budget()
        if self.mode == "adaptive":
            return adaptive_plan(
                epsilon, delta, self.leverage, self.failure_probability, self.calibration
            )
        return proposal_plan(epsilon, delta, self.failure_probability)

    def _ridge(self, plan: PosteriorPlan, problem: Problem, least: float) -> float:
        if plan.leverage == 0.0:
            return problem.alpha
        # A hair more, so that no rounding leaves the box.
        return max(problem.alpha, problem.radius2 / plan.leverage * (1.0 + 1e-8) - least)


def check_failure(failure: float | None, delta: float) -> None:
    """Refuse a probability of failure that would use up delta."""
    if failure is not None:
        check_real(
            failure,
            name="failure_probability",
            lower=0.0,
            lower_open=True,
            upper=0.2 * delta,
            hint="It is added to delta about twice.",
        )
