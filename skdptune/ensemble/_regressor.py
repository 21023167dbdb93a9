"""The explainable boosting machine for regression, with differential privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from skdptune._docstrings import with_shared_text
from skdptune.base._shared import arguments_of, middle_and_half, target_range
from skdptune.ensemble._boosting import BoundedResiduals, RateRule, Residuals
from skdptune.ensemble._private_boosting import TEXT, Interactions, PrivateExplainableBoosting
from skdptune.ledger import PrivacyLedger
from skdptune.preprocessing._shared import as_schema


@with_shared_text(TEXT)
class DPExplainableBoostingRegressor(RegressorMixin, PrivateExplainableBoosting):
    """Regression of small trees with differential privacy: a curve for every column, and pairs.

    {summary}

    Parameters
    ----------
    {budget}
    {columns}
    target_bound : float or tuple (lower, upper), optional
        Bound on the absolute value of a target, or its public range; values beyond it are clipped.
        Required, unless the schema describes the target.
    {boosting}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    {notes}

    Targets are divided by half of their range, and residuals clipped to 1 of these units.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.ensemble import DPExplainableBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(5000, 2))
    >>> y = np.abs(X[:, 0] - 0.5)
    >>> model = DPExplainableBoostingRegressor(
    ...     bounds=(0, 1), target_bound=(0, 1), random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.7
    True
    """

    # In units of half of the targets' range.
    _rate_rule = RateRule(noise=0.08, largest=0.3, growth=0.2)
    target_bound: float | tuple[float, float] | None

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        schema: Any = None,
        target_bound: float | tuple[float, float] | None = None,
        max_bins: int = 32,
        max_rounds: int = 100,
        max_leaves: int = 3,
        learning_rate: float | None = None,
        bin_share: float = 0.1,
        interactions: Interactions = "auto",
        monotonic_cst: Any = None,
        noise_multiplier: float | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions that a fit's report will state, from parameters and public sizes.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns.

        Returns
        -------
        tuple of str
        """
        low, high = self._target_range()
        sentence = f"targets are clipped to [{low:.4g}, {high:.4g}]"
        return (*super().privacy_assumptions(n_samples, n_features), sentence)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._target_range()

    def _target_range(self) -> tuple[float, float]:
        """Return the public range of targets, or raise."""
        bound = self.target_bound
        if bound is None and self.schema is not None:
            bound = as_schema(self.schema).target_bounds
        if bound is None:
            raise ValueError(
                "target_bound must be given, or the target's range in schema; got neither. It "
                "limits the influence of a record: give the largest absolute value that a target "
                "is known to have, or a pair (lower, upper)."
            )
        return target_range(bound)

    def _residuals(self, targets: NDArray[Any], shares: NDArray[np.float64] | None) -> Residuals:
        centre, half = self._centre_and_half()
        return BoundedResiduals(np.clip((targets - centre) / half, -1.0, 1.0), shares)

    def _centre_and_half(self) -> tuple[float, float]:
        return middle_and_half(*self._target_range())

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scores(X)

    def _boost(self, *arguments: Any) -> None:
        super()._boost(*arguments)
        # Scores are converted to the units of targets.
        centre, half = self._centre_and_half()
        for name in ("term_scores_", "term_deviations_", "pair_scores_", "pair_deviations_"):
            setattr(self, name, [scores * half for scores in getattr(self, name)])
        self.intercept_ = centre + half * self.intercept_

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy regression, for scikit-learn."""
        tags = super().__sklearn_tags__()
        # In the tests' few dozen records, noise dominates any private model.
        tags.regressor_tags.poor_score = True
        return tags
