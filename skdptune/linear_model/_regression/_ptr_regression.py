"""One posterior sample whose bounds are released first, with a curve or a test of its own."""

from __future__ import annotations

from typing import Any, ClassVar

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_option, check_real
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._regression._posterior_sampling import (
    LARGEST_LEVERAGE,
    PosteriorPlan,
    PosteriorSampleRegressor,
    adaptive_plan,
    proposal_plan,
)
from skdptune.linear_model._regression._private_regressor import REGRESSOR_TEXT
from skdptune.linear_model._regression._sufficient_statistics import RidgeProblem

MODES = ("adaptive", "propose-test-release")
CALIBRATIONS = ("exact", "closed-form")


@with_shared_text(REGRESSOR_TEXT)
class PTRLinearRegression(PosteriorSampleRegressor):
    r"""Differentially private ridge regression by one posterior sample, at bounds released first.

    The weights are one draw of ``Normal(t, (precision H)^-1)`` with ``H = X'X + ridge I`` and the
    ridge solution t. How precise the draw may be depends on the least eigenvalue of ``X'X`` and on
    how large residuals can be; noisy bounds on both are released before it. For comparison with
    the literature; `NoisyStatisticsRidge` is more accurate on most data.

    Parameters
    ----------
    {epsilon}
    {delta}
    alpha : float, optional
        Regularization strength, as of scikit-learn's ``Ridge``. Mode "adaptive" raises it to what
        `max_leverage` needs beyond the released eigenvalue; None stands for just that. Mode
        "propose-test-release" uses it as it is, and has no rule for None.
    {bounds_and_intercept}
    mode : {"adaptive", "propose-test-release"}, default="adaptive"
        "adaptive" fixes the privacy curve of the sample beforehand, and raises the regularization
        so far that it holds: the whole profile is known and composes well. In the paper's
        "propose-test-release" the test fails if no precision is safe at the released bounds.
    calibration : {"exact", "closed-form"}, default="exact"
        "closed-form" finds the precision by the formula printed in the paper, which understates
        the cost. It is for comparison, in mode "adaptive"; `privacy_` then states what the fit
        really costs, which may exceed `epsilon`.
    max_leverage : float, optional
        In mode "adaptive", the largest influence of a row on its own fit. A small one needs much
        regularization, a large one much noise. None chooses a share of what the budget allows.
    {failure_probability}
    {randomness_and_size}

    Attributes
    ----------
    {shared_attributes}
    released_ : bool
        Whether the test passed. Where it did not, `coef_` is zero and `intercept_` the middle of
        `target_bound` (0 of a number): a data-independent model. Always True in mode "adaptive".

    See Also
    --------
    NoisyStatisticsRidge : Noise on the sums instead of on the weights; usually more accurate.
    skdptune.accounting.posterior_sample : The cost of the sample.

    Notes
    -----
    Theorem L5.

    Neighbours differ by adding or removing one record. Koskela, Redberg and Wang (2024, arXiv
    2402.06701), section 6.1, after Wang (2018), with the exact profile of the sample in place of
    the printed bound. The bounds are released with Gaussian noise; the probability that one does
    not hold is added to delta.

    *Adaptive.* Once the least eigenvalue is bounded, the largest leverage that remains is known; a
    sample for a smaller leverage is made as precise as its curve can be below the fixed one.

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
        super().__init__(
            epsilon,
            delta,
            alpha=alpha,
            data_norm=data_norm,
            target_bound=target_bound,
            fit_intercept=fit_intercept,
            failure_probability=failure_probability,
            random_state=random_state,
            n_public=n_public,
            ledger=ledger,
        )
        self.mode = mode
        self.calibration = calibration
        self.max_leverage = max_leverage

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.mode, name="mode", options=MODES)
        check_option(self.calibration, name="calibration", options=CALIBRATIONS)
        if self.calibration == "closed-form" and self.mode != "adaptive":
            raise ValueError(
                "calibration must be 'exact' in mode 'propose-test-release', whose test would "
                "otherwise pass where it must fail; got 'closed-form'."
            )
        if self.alpha is None and self.mode != "adaptive":
            raise ValueError(
                "alpha must be given in mode 'propose-test-release', which uses it as it is; got "
                "None. Mode 'adaptive' chooses it."
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
        # Slightly more, so that no rounding leaves the box.
        return max(problem.alpha, problem.radius2 / plan.leverage * (1.0 + 1e-8) - least)
