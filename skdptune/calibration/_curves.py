"""ROC and precision-recall curves, confusion matrix and reliability of a private classifier.

[shared_parameters]
estimator : estimator
    A private binary classifier with ``predict_proba`` or ``decision_function``; its ``epsilon``
    and ``delta`` are set so that the total is met. Alternatively a `FrozenEstimator` of a fitted
    model: then only the histogram is paid for here. In a pipeline, this object is the last step.
epsilon : float, default=1.0
    Privacy budget of the classifier and the histogram together; infinite for no noise.
delta : float, optional
    Delta of the budget; positive, and far below 1 over the number of records. None uses that of
    the estimator.

[more_parameters]
share : float, default=0.03
    Share of the budget (of its squared shift, see Notes) that pays for the histogram.
n_bins : int, optional
    Number of bins of scores. None uses 10 to 24: more if the noise is small compared with the
    number of records of the rarer label, which the coarse release of the range estimates.
pos_label : object, optional
    The label for which curves and thresholds are computed; by default the last of ``classes_``.
insist : bool, default=False
    Whether a histogram is released even if it has too few records for its noise. ``privacy_`` then
    says so. Searches set it in fits on a part of the records.
random_state : int or None, default=None
    None draws from the operating system's entropy; a seed gives reproducible research runs, and
    seeds the estimator as well.
{size_and_ledger}

[shared_attributes]
estimator_ : estimator
    The fitted classifier.
classes_ : ndarray of shape (2,)
    The labels.
histogram_ : ScoreHistogram
    The released counts: ``edges`` of the bins of scores, ``counts`` of the negative and the
    positive label, ``scale`` of the noise of each. Scores are logits of ``predict_proba``, or
    decisions if there is no such method.
privacy_ : PrivacyReport
    The cost of the fit, as a tree of the classifier and the histogram.
n_features_in_ : int
    Number of columns.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the columns, if they had any.

[notes]
Theorem Q1, Theorem Q2.

Neighbours differ by adding or removing one record, unless the estimator uses another relation. A
record is in one cell of the histogram (bin of its score, label), so that it changes one count by
1. With ``groups`` the rows of a person share this 1, and all numbers of records here and in
`histogram_` are numbers of persons.

Two Gaussian releases are made of the scores: a coarse one that finds the range of the bins, with a
tenth of the squared shift, and the histogram. Curves, areas, thresholds and bands follow from
these counts, at no further cost.

The counts are those of the training records. Scores of records to which a model was fitted are
somewhat too good. Under differential privacy this is bounded: in expectation, a rate exceeds that
of left-out records by at most the delta of the fit at an epsilon of 0, and the area by at most
twice that. A record that the classifier cannot predict, or whose label is not in ``classes_``, is
not counted.

A histogram of fewer than 230 records for each standard deviation of its noise is refused: about
5,000 at an epsilon of 1 with the default share. Areas would be wrong by more than 0.04.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.isotonic import isotonic_regression
from sklearn.utils import Bunch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown, shown_names
from skdptune._validation import check_flag, check_integer, check_real
from skdptune.base._shared import (
    Persons,
    arguments_of,
    check_length,
    declared_labels,
    labels_in,
    own_parameters,
    read_targets,
)
from skdptune.calibration._release import (
    PrivateRelease,
    ReleasePlan,
    cells_of,
    values_of_records,
)
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import gaussian_release

# Noisy counts of scores by label, and everything computed from them: curves, areas, bands -------
# Everything here is computed from the released counts and public numbers, at no further cost.

Floats = NDArray[np.float64]
# Confidence of the bands of whole histograms.
CONFIDENCE = 0.95
# Shares are not shown for sums that are smaller than this, in standard deviations of their noise.
_LEAST_DEVIATIONS = 3.0


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """Numbers of records by score and label, with noise.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ends of the bins of scores; scores beyond them are in the first and last bin.
    counts : ndarray of shape (2, n_bins)
        The released counts of the negative and the positive label; may be below 0.
    scale : float
        Standard deviation of the noise of each count.
    """

    edges: Floats
    counts: Floats
    scale: float

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.edges.size - 1)

    @property
    def sizes(self) -> Floats:
        """Numbers of negative and positive records, at least 1."""
        return np.maximum(self.counts.sum(axis=1), 1.0)

    def above(self) -> Floats:
        """Return the shares of each label's records above each edge, starting at the highest edge.

        They are the shares nearest to the released ones that never decrease, which undoes negative
        noise in empty bins.
        """
        sums = np.cumsum(self.counts[:, ::-1], axis=1) / self.sizes[:, None]
        inner = [isotonic_regression(row, y_min=0.0, y_max=1.0) for row in sums[:, :-1]]
        return np.concatenate([np.zeros((2, 1)), inner, np.ones((2, 1))], axis=1)

    @property
    def shares(self) -> Floats:
        """Shares of each label's records in the bins, from `above`."""
        return np.diff(self.above(), axis=1)[:, ::-1]

    def above_std(self, label: int) -> Floats:
        """Return standard deviations of `above` for one label, of noise and sampling."""
        share, size = self.above()[label], self.sizes[label]
        n_above = np.arange(self.n_bins + 1)
        noise = n_above * (1.0 - share) ** 2 + (self.n_bins - n_above) * share**2
        return np.sqrt(self.scale**2 * noise / size**2 + share * (1.0 - share) / size)

    def share_above(self, label: int, score: float) -> float:
        """Return the share of a label's records above a score, linear between edges."""
        # From the lowest edge upwards, as the interpolation requires.
        return float(np.interp(score, self.edges, self.above()[label, ::-1]))

    # Area under the ROC curve -------------------------------------------------------------

    def auc(self) -> float:
        """Return the area under the ROC curve; two scores in one bin count half."""
        negative, positive = self.shares
        return float(_auc_table(negative[None], positive[None])[0, 0])

    def auc_std(self) -> float:
        """Return the standard deviation of `auc`, of noise, sampling and bins.

        Notes
        -----
        The noise by propagation of errors; sampling by Hanley and McNeil (1982); and an eighth of
        the pairs in one bin, whose order is unknown.
        """
        (negative, positive), (n_negative, n_positive) = self.shares, self.sizes
        area = self.auc()
        below = np.cumsum(negative) - 0.5 * negative
        beyond = 1.0 - np.cumsum(positive) + 0.5 * positive
        noise = self.scale**2 * (
            ((below - area) ** 2).sum() / n_positive**2
            + ((beyond - area) ** 2).sum() / n_negative**2
        )
        wins = area / (2.0 - area) - area**2
        twice = 2.0 * area**2 / (1.0 + area) - area**2
        sampling = area * (1.0 - area) + (n_positive - 1.0) * wins + (n_negative - 1.0) * twice
        sampling = max(sampling, 0.0) / (n_positive * n_negative)
        bins = 0.125 * float((negative * positive).sum())
        return math.sqrt(noise + sampling + bins**2)

    def auc_band(self) -> tuple[float, float]:
        """Return the least and the largest area of counts that are possible given the noise.

        Notes
        -----
        Theorem Q2.
        """
        low, high = self.box()
        # The extreme has counts of one label at one end up to some bin, and at the other end
        # beyond.
        first = np.tri(self.n_bins + 1, self.n_bins, -1, dtype=bool)
        ends = []
        for is_least in (True, False):
            positive = np.where(first == is_least, high[1], low[1])
            negative = np.where(first == is_least, low[0], high[0])
            areas = _auc_table(negative, positive)
            ends.append(float(areas.min() if is_least else areas.max()))
        return ends[0], ends[1]

    def box(self) -> tuple[Floats, Floats]:
        """Return the least and largest counts that together contain all true ones.

        Notes
        -----
        Theorem Q2.
        """
        z = float(special.ndtri(1.0 - (1.0 - CONFIDENCE) / (2.0 * self.counts.size)))
        low, high = self.counts - z * self.scale, self.counts + z * self.scale
        return np.maximum(low, 0.0), np.maximum(high, 0.0)

    # Shares of labels -----------------------------------------------------------------------

    def precision_above(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return precision above each edge, its standard deviation, and where noise leaves any."""
        false, true = self.above() * self.sizes[:, None]
        total = false + true
        noise = self.scale * np.sqrt(np.arange(self.n_bins + 1))
        is_known = total > np.maximum(_LEAST_DEVIATIONS * noise, 1.0)
        total = np.maximum(total, 1.0)
        share = true / total
        return share, self._share_std(share, total, noise), is_known

    def reliability(self) -> Bunch:
        """Return the share of positive records by score, for bins with more records than noise."""
        negative, positive = self.shares * self.sizes[:, None]
        total = negative + positive
        is_known = total > max(_LEAST_DEVIATIONS * self.scale, 1.0)
        total = np.where(is_known, total, 1.0)
        share = positive / total
        centres = 0.5 * (self.edges[1:] + self.edges[:-1])
        return Bunch(
            prob_pred=special.expit(centres)[is_known],
            prob_true=share[is_known],
            prob_true_std=self._share_std(share, total, self.scale)[is_known],
            n_records=total[is_known],
        )

    def _share_std(self, share: Floats, total: Floats, noise: Any) -> Floats:
        """Return standard deviations of shares of positive records, of noise and sampling."""
        spread = noise**2 * (share**2 + (1.0 - share) ** 2) / total**2
        return np.asarray(np.sqrt(spread + share * (1.0 - share) / total))


def _auc_table(negative: Floats, positive: Floats) -> Floats:
    """Return the area for each pair of rows of counts; a half if a label has no record."""
    below = np.cumsum(negative, axis=1) - 0.5 * negative
    pairs = np.outer(negative.sum(axis=1), positive.sum(axis=1))
    areas = below @ positive.T
    return np.asarray(np.where(pairs > 0.0, areas / np.where(pairs > 0.0, pairs, 1.0), 0.5))


# Where scores lie -----------------------------------------------------------------------------

# Ends of the cells in which the range of scores is found.
RANGES = np.array([0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
COARSE = np.concatenate([-RANGES[::-1], [0.0], RANGES])
# Share of a label's records that may lie beyond an end of the bins.
_BEYOND = 0.02
# Bins for each 0.4th power of the records of the rarer label over the noise of a coarse count:
# errors by noise grow as the root of the number of bins, errors by width fall as its square.
_BINS = 2.8


def edges_for(counts: Floats, scale: float, n_bins: int | None) -> Floats:
    """Return edges of about equal bins, one of them 0, around nearly all records of each label.

    Parameters
    ----------
    counts : ndarray of shape (2, n_cells)
        Noisy numbers of records between the edges `COARSE`.
    scale : float
        Standard deviation of their noise.
    n_bins : int or None
        None for the number at which the errors by noise, which grow with it, and by coarseness are
        about equal.
    """
    if n_bins is None:
        n_fewest = max(float(counts.sum(axis=1).min()), 1.0)
        n_bins = round(min(max(_BINS * (n_fewest / max(scale, 1e-300)) ** 0.4, 10.0), 24.0))
    middle = RANGES.size + 1
    least = _BEYOND * counts.sum(axis=1)
    low = _end(counts[:, :middle][:, ::-1], least, scale)
    high = _end(counts[:, middle:], least, scale)
    n_low = min(max(round(n_bins * low / (low + high)), 1), n_bins - 1)
    lower, upper = np.linspace(-low, 0.0, n_low + 1), np.linspace(0.0, high, n_bins - n_low + 1)
    return np.concatenate([lower, upper[1:]])


def _end(counts: Floats, least: Floats, scale: float) -> float:
    """Return the nearest end of a range beyond which there are few records of either label."""
    for place, end in enumerate(RANGES):
        beyond = counts[:, place + 1 :]
        noise = _LEAST_DEVIATIONS * scale * math.sqrt(beyond.shape[1])
        if (beyond.sum(axis=1) <= np.maximum(least, noise)).all():
            return float(end)
    return float(RANGES[-1])


# Share of the release's squared shift that pays for the range of the scores.
_RANGE_SHARE = 0.1
# With fewer records per standard deviation of noise, areas are wrong by more than .04.
_LEAST_RECORDS = 230.0

SCORES_TEXT = __doc__


def _has(name: str) -> Any:
    def check(self: Any) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), name)

    return available_if(check)


@with_shared_text(SCORES_TEXT)
class PrivateScoreCurves(ClassifierMixin, PrivateRelease):
    """ROC and precision-recall curves of a private classifier, at 3 % of its budget.

    One fit trains the classifier and releases a noisy histogram of its scores by label, within
    one budget. The curves, the area under the ROC curve, confusion matrices and the reliability
    of probabilities are computed from the histogram.

    Parameters
    ----------
    {shared_parameters}
    {more_parameters}

    Attributes
    ----------
    {shared_attributes}

    See Also
    --------
    PrivateThreshold : Chooses the threshold from the same histogram.
    skdptune.inspection.ScoreCurvesDisplay : Draws the curves.

    Notes
    -----
    {notes}

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.calibration import PrivateScoreCurves
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + rng.normal(size=20_000) > 1
    >>> model = PrivateScoreCurves(DPLogisticRegression(), epsilon=1.0, random_state=0).fit(X, y)
    >>> bool(abs(model.roc_auc_ - 0.85) < 2 * model.roc_auc_std_ < 0.05)
    True
    >>> [part.name for part in model.privacy_.parts]
    ['DPLogisticRegression', 'score histogram']
    >>> model.privacy_.epsilon
    1.0
    """

    _release_name = "score histogram"
    n_bins: int | None
    pos_label: Any
    insist: bool

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        share: float = 0.03,
        n_bins: int | None = None,
        pos_label: Any = None,
        insist: bool = False,
        random_state: int | None = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    # Before data ----------------------------------------------------------------------------

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return parameters with which a fit on fewer records resembles the final fit.

        Parameters
        ----------
        n_tune, n_final : int
            Numbers of records.

        Returns
        -------
        dict
            Sets that the histogram is released, since candidates are not chosen by it.
        """
        check_integer(n_tune, name="n_tune", lower=1)
        check_integer(n_final, name="n_final", lower=1)
        return {"insist": True}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_bins is not None:
            check_integer(self.n_bins, name="n_bins", lower=2, upper=1000)
        check_flag(self.insist, name="insist")
        if not is_classifier(self.estimator):
            raise TypeError(
                f"estimator must be a classifier; got {type(self.estimator).__name__}."
            )
        labels = declared_labels(self.estimator)
        if labels is not None:
            self._check_labels(np.unique(np.asarray(labels)))

    def _check_labels(self, labels: NDArray[Any]) -> None:
        if labels.size != 2:
            got = "one class" if labels.size == 1 else f"{labels.size} classes"
            raise ValueError(
                f"estimator must have two classes; got {got}. Only binary "
                "classification is supported: fit one model against the rest for each class."
            )
        if self.pos_label is not None and self.pos_label not in labels.tolist():
            raise ValueError(
                f"pos_label must be one of {shown_names(labels.tolist())}; got "
                f"{shown(self.pos_label)}."
            )

    def _check_targets(self, y: Any) -> None:
        # The label set is taken to be public if none is declared, here or in a schema.
        own = own_parameters(self.estimator)
        if own.get("classes", ()) is None and own.get("schema") is None:
            targets, _ = read_targets(y, "any", None)
            self._check_labels(labels_in(targets))

    def _is_precise(self, scale: float, n_samples: int) -> bool:
        if n_samples >= _LEAST_RECORDS * scale:
            return True
        if self.insist:
            return False
        raise ValueError(
            f"n_samples must be at least {_LEAST_RECORDS * scale:,.0f} for a score histogram at "
            f"epsilon={shown(self.epsilon)}, of which it has share={self.share:g}; got "
            f"{n_samples:,}. Areas would be wrong by more than 0.04. Give more epsilon or a "
            "larger share; insist=True releases it anyway."
        )

    def _note(self, plan: ReleasePlan) -> str:
        return "" if plan.is_precise else "insist=True: areas may be wrong by more than 0.04"

    # The release ----------------------------------------------------------------------------

    def _release(
        self,
        X: Any,
        y: Any,
        scale: float,
        generator: np.random.Generator,
        persons: Persons | None,
    ) -> None:
        self._check_labels(self.estimator_.classes_)
        targets, improper = read_targets(y, "labels", self.estimator_.classes_)
        labels = np.where(targets == self._positive, 1, 0)
        labels[improper] = -1
        scores, alone = values_of_records(self.estimator_, X, self._scores)
        check_length(labels.size, scores.size)
        shares = None if persons is None else persons.shares_of_all
        # Theorem Q1: two Gaussian releases of squared shifts in this proportion.
        coarse = scale * _RANGE_SHARE**-0.5
        fine = scale * (1.0 - _RANGE_SHARE) ** -0.5
        counts = _counts(cells_of(scores, alone, COARSE), labels, COARSE.size + 1, shares)
        counts = gaussian_release(counts, 1.0, coarse, generator)
        edges = edges_for(counts, coarse, self.n_bins)
        counts = _counts(cells_of(scores, alone, edges[1:-1]), labels, edges.size - 1, shares)
        counts = gaussian_release(counts, 1.0, fine, generator)
        self.histogram_ = ScoreHistogram(edges, counts, fine)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        labels: NDArray[Any] = self._fitted("classes_")
        return labels

    @property
    def _positive(self) -> Any:
        return self.classes_[1] if self.pos_label is None else self.pos_label

    def _responses(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of the positive label, or the decision for it."""
        place = int(self.classes_[1] == self._positive)
        if self._has_probabilities():
            return np.asarray(self.estimator_.predict_proba(X)[:, place], dtype=np.float64)
        decisions = np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
        return decisions if place else -decisions

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores that the histogram counts."""
        found = self._responses(X)
        return np.asarray(special.logit(found)) if self._has_probabilities() else found

    def _has_probabilities(self) -> bool:
        return hasattr(self.estimator_, "predict_proba")

    def _thresholds(self, scores: Any) -> Any:
        """Return scores in the form of thresholds for users: probabilities, or decisions."""
        return special.expit(scores) if self._has_probabilities() else scores

    # Curves ---------------------------------------------------------------------------------

    @property
    def roc_curve_(self) -> Bunch:
        """False and true positive rates above each of the ``thresholds``, in decreasing order.

        With deviations of noise and sampling, ``fpr_std`` and ``tpr_std``.
        """
        fpr, tpr = self.histogram_.above()
        return Bunch(
            fpr=fpr,
            tpr=tpr,
            thresholds=self._edges_downwards(),
            fpr_std=self.histogram_.above_std(0),
            tpr_std=self.histogram_.above_std(1),
        )

    @property
    def precision_recall_curve_(self) -> Bunch:
        """Precision and recall above each of the decreasing ``thresholds``, where not mere noise.

        With deviations of noise and sampling, ``precision_std`` and ``recall_std``.
        """
        precision, spread, is_known = self.histogram_.precision_above()
        return Bunch(
            precision=precision[is_known],
            recall=self.histogram_.above()[1][is_known],
            thresholds=self._edges_downwards()[is_known],
            precision_std=spread[is_known],
            recall_std=self.histogram_.above_std(1)[is_known],
        )

    def _edges_downwards(self) -> NDArray[np.float64]:
        inner = self.histogram_.edges[-2:0:-1]
        ends = np.concatenate([[np.inf], inner, [-np.inf]])
        found = np.asarray(self._thresholds(ends))
        # As in scikit-learn: a threshold above all scores.
        found[0] = np.inf
        return found

    @property
    def roc_auc_(self) -> float:
        """Area under the ROC curve."""
        return self.histogram_.auc()

    @property
    def roc_auc_std_(self) -> float:
        """Standard deviation of `roc_auc_`: noise, sampling of the records, and bins."""
        return self.histogram_.auc_std()

    @property
    def roc_auc_band_(self) -> tuple[float, float]:
        """Least and largest area of these records' histogram, valid in 95 % of all releases."""
        return self.histogram_.auc_band()

    @property
    def reliability_(self) -> Bunch:
        """Share of positive records, ``prob_true``, by predicted probability, ``prob_pred``.

        With deviations ``prob_true_std`` and noisy numbers of records ``n_records``; bins that
        hold no more records than noise are left out.
        """
        if not self._has_probabilities():
            raise AttributeError(
                f"{type(self.estimator_).__name__} has no predict_proba, which a reliability "
                "curve needs."
            )
        return self.histogram_.reliability()

    def confusion(self, threshold: float | None = None) -> NDArray[np.float64]:
        """Return the noisy confusion matrix at a threshold.

        Parameters
        ----------
        threshold : float, optional
            Threshold for the probability of the positive label, or for its decision if there are
            no probabilities; by default the one that `predict` uses.

        Returns
        -------
        ndarray of shape (2, 2)
            Numbers of records, not integers: rows are true labels, columns predicted ones, in the
            order of ``classes_``. They are interpolated between the edges of bins.
        """
        if threshold is None:
            threshold = self._default_threshold()
        limit = check_real(threshold, name="threshold")
        if self._has_probabilities():
            limit = float(special.logit(check_real(limit, name="threshold", lower=0.0, upper=1.0)))
        above = np.array([self.histogram_.share_above(label, limit) for label in (0, 1)])
        matrix = np.stack([1.0 - above, above], axis=1) * self.histogram_.sizes[:, None]
        is_last = bool(self._positive == self.classes_[1])
        return matrix if is_last else matrix[::-1, ::-1]

    def _default_threshold(self) -> float:
        return 0.5 if self._has_probabilities() else 0.0

    # Using ----------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels that the classifier predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._method("predict")(X))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the classifier's probability of each class."""
        return np.asarray(self._method("predict_proba")(X))

    @_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`."""
        return np.asarray(self._method("predict_log_proba")(X))

    @_has("decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decisions of the classifier."""
        return np.asarray(self._method("decision_function")(X))

    def _method(self, name: str) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the classifier, for two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _counts(
    cells: NDArray[np.intp], labels: NDArray[np.intp], n_cells: int, shares: Floats | None
) -> Any:
    """Return the number of records of each label in each cell, without those in cell -1."""
    is_counted = (cells >= 0) & (labels >= 0)
    places = labels[is_counted] * n_cells + cells[is_counted]
    weights = None if shares is None else shares[is_counted]
    counts = np.bincount(places, weights, minlength=2 * n_cells)
    return counts.reshape(2, n_cells).astype(np.float64)
