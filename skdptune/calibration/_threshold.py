"""Threshold of a private classifier, chosen from a noisy histogram of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._validation import check_option, check_real
from skdptune.base._shared import arguments_of
from skdptune.calibration._curves import SCORES_TEXT, PrivateScoreCurves
from skdptune.ledger import PrivacyLedger

_METRICS = ("recall", "precision", "cost")


@with_shared_text(SCORES_TEXT)
class PrivateThreshold(PrivateScoreCurves):
    """Private binary classifier with a threshold for a given recall, precision or cost.

    It resembles scikit-learn's `TunedThresholdClassifierCV`. One fit trains the classifier and
    releases a noisy histogram of its scores by label, within one budget; the threshold follows
    from the histogram. It is the recommended way to detect a rare class: weights of classes cost
    more accuracy.

    Parameters
    ----------
    {shared_parameters}
    metric : {"recall", "precision", "cost"}, default="recall"
        How the threshold is chosen. "recall": the highest threshold with a recall of `at_least`.
        "precision": the lowest one with a precision of `at_least`, or the one of the highest
        precision if none reaches it. "cost": the one with the least mean cost.
    at_least : float, optional
        The required recall or precision, in (0, 1].
    costs : tuple (false_positive, false_negative), optional
        Cost of each kind of mistake, for "cost".
    {more_parameters}

    Attributes
    ----------
    best_threshold_ : float
        The probability of the positive label, or the decision, from which on this label is
        predicted.
    best_score_ : float
        The recall, the precision, or the mean cost of a record, computed from the histogram.
    best_score_std_ : float
        Its standard deviation: of the noise, and of sampling (not for "cost"). If it is too large,
        as with few records of a label, use a larger `share`, such as 0.2.
    {shared_attributes}

    See Also
    --------
    PrivateScoreCurves : Curves without a choice; all its results are available here as well.

    Notes
    -----
    {notes}

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.calibration import PrivateThreshold
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = np.where(X[:, 0] + rng.normal(size=20_000) > 1.5, "ill", "well")
    >>> model = PrivateThreshold(
    ...     DPLogisticRegression(), at_least=0.8, pos_label="ill", epsilon=2.0, random_state=0
    ... )
    >>> found = (model.fit(X, y).predict(X)[y == "ill"] == "ill").mean()
    >>> bool(abs(found - 0.8) < 2 * model.best_score_std_ < 0.1)
    True
    """

    metric: str
    at_least: float | None
    costs: Sequence[float] | None

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        metric: str = "recall",
        at_least: float | None = None,
        costs: Sequence[float] | None = None,
        share: float = 0.03,
        n_bins: int | None = None,
        pos_label: Any = None,
        insist: bool = False,
        random_state: int | None = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.metric, name="metric", options=_METRICS)
        is_cost = self.metric == "cost"
        for name, value, is_wanted in (
            ("at_least", self.at_least, not is_cost),
            ("costs", self.costs, is_cost),
        ):
            if (value is not None) != is_wanted:
                demand = "be given" if is_wanted else "be None"
                raise ValueError(
                    f"{name} must {demand} with metric={shown(self.metric)}; got {shown(value)}."
                )
        if not is_cost:
            check_real(self.at_least, name="at_least", lower=0.0, lower_open=True, upper=1.0)
            return
        if not isinstance(self.costs, tuple | list) or len(self.costs) != 2:
            raise ValueError(
                "costs must be a pair, of a false positive and of a false negative; got "
                f"{shown(self.costs)}."
            )
        for cost in self.costs:
            check_real(cost, name="each of costs", lower=0.0, upper=1e100)

    def _release(self, *arguments: Any, **named: Any) -> None:
        super()._release(*arguments, **named)
        choose = {"recall": self._for_recall, "precision": self._for_precision}
        found = choose.get(self.metric, self._for_cost)()
        score, self.best_score_, self.best_score_std_ = found
        self.best_threshold_ = float(self._thresholds(score))

    def _for_recall(self) -> tuple[float, float, float]:
        """Return the highest score above which the required share of positive records lies."""
        recall = self.histogram_.above()[1]
        # Of several edges with the same recall, use the highest: interpolation needs increasing
        # numbers.
        recall, places = np.unique(recall, return_index=True)
        edges = self.histogram_.edges[::-1][places]
        score = float(np.interp(float(self.at_least or 0.0), recall, edges))
        if score <= self.histogram_.edges[0]:
            return -np.inf, 1.0, 0.0
        spread = self.histogram_.above_std(1)[::-1]
        recall_there = self.histogram_.share_above(1, score)
        return score, recall_there, float(np.interp(score, self.histogram_.edges, spread))

    def _for_precision(self) -> tuple[float, float, float]:
        """Return the lowest score above which the required share of records is positive."""
        wanted = float(self.at_least or 0.0)
        precision, spread, is_known = self.histogram_.precision_above()
        reaches = np.flatnonzero(is_known & (precision >= wanted))
        place = int(reaches[-1] if reaches.size else np.where(is_known, precision, -1.0).argmax())
        if not reaches.size or place == self.histogram_.n_bins:
            return self._at_edge(place), float(precision[place]), float(spread[place])
        # As for a recall, the records of a bin are taken to be evenly spread over it.
        false, true = (self.histogram_.above() * self.histogram_.sizes[:, None])[:, place:][:, :2]
        surplus = (1.0 - wanted) * true - wanted * false
        share = float(np.clip(surplus[0] / max(surplus[0] - surplus[1], 1e-12), 0.0, 1.0))
        edges = self.histogram_.edges[::-1][place:]
        between = [(1.0 - share) * each[0] + share * each[1] for each in (edges, spread[place:])]
        return float(between[0]), max(wanted, float(precision[place + 1])), float(between[1])

    def _for_cost(self) -> tuple[float, float, float]:
        false_positive, false_negative = (float(cost) for cost in self.costs or (1.0, 1.0))
        negative, positive = self.histogram_.sizes
        above = self.histogram_.above()
        costs = false_positive * negative * above[0] + false_negative * positive * (1.0 - above[1])
        costs = costs / (negative + positive)
        place = int(costs.argmin())
        n_below = self.histogram_.n_bins - place
        squares = place * false_positive**2 + n_below * false_negative**2
        spread = self.histogram_.scale * squares**0.5 / (negative + positive)
        return self._at_edge(place), float(costs[place]), float(spread)

    def _at_edge(self, place: int) -> float:
        """Return an edge, counted from above; the ends lie beyond all scores."""
        ends = {0: np.inf, self.histogram_.n_bins: -np.inf}
        return float(ends.get(place, self.histogram_.edges[::-1][place]))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the positive label if its probability reaches the threshold, else the other one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        is_positive = self._responses(X) >= self.best_threshold_
        negative = self.classes_[self.classes_ != self._positive][0]
        return np.where(is_positive, self._positive, negative).astype(self.classes_.dtype)

    def _default_threshold(self) -> float:
        return self.best_threshold_
