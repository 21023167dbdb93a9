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
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import number_of_features, number_of_samples, routing_is_enabled
from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown, shown_names
from skdptune._validation import check_flag, check_integer, check_real, check_share
from skdptune.accounting import PrivacyProfile, PrivacyReport, calibrate
from skdptune.base import NoProfileError, PrivateEstimatorMixin
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    ADVICE,
    HOLDERS,
    OWN_USE,
    PARTS,
    PUBLIC_SIZE,
    SEEDED,
    Budget,
    Persons,
    PrivateRows,
    Refusal,
    about_persons,
    arguments_of,
    assumptions_of,
    budget_owners,
    check_given,
    check_length,
    cost_of,
    declared_labels,
    hold_persons,
    labels_in,
    neighbouring_of,
    no_profile,
    once,
    own_parameters,
    persons_of,
    read_targets,
    refusal_of,
    report_of,
    set_budget,
    set_public_size,
    set_seeds,
    shares_of,
    without_noise,
    without_secrets,
)
from skdptune.calibration._histogram import COARSE, Floats, ScoreHistogram, edges_for
from skdptune.calibration._release import (
    AnswersForFitted,
    cells_of,
    if_model_has,
    refusal_by_persons,
    values_of_records,
)
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import (
    fit_generator,
    gaussian_profile,
    gaussian_release,
    noise_for_budget,
)

_ALONE = (
    "this budget pays only for the release: the cost of the frozen model is additional, and is "
    "in its own report"
)
_NOT_LAST = Refusal(
    "a composition or a search inside",
    "a fit could not identify records that no step accepts",
    "Put it around the last step, such as make_pipeline(scaler, PrivateScoreCurves(model, "
    "...)), and the search around the pipeline. Wrap a fitted model in a FrozenEstimator.",
    demand="estimator must be a single model",
)
# Roots and quotients of the noise are rounded: their relative errors are some 1e-16.
_ROUNDED = 1.0 + 1e-12
# Share of the release's squared shift that pays for the range of the scores.
_RANGE_SHARE = 0.1
# With fewer records per standard deviation of noise, areas are wrong by more than .04.
_LEAST_RECORDS = 230.0

SCORES_TEXT = __doc__


@dataclass(frozen=True)
class ReleasePlan:
    """The plan of a fit with a release, from public numbers.

    Attributes
    ----------
    estimator : estimator
        A copy of the estimator, with its part of the budget.
    scale : float
        Standard deviation of the noise of the whole release, in units of a sensitivity of 1.
    release, profile : PrivacyProfile
        Cost of the release, and of the fit and the release together.
    is_precise : bool
        Whether there are enough records for the noise.
    """

    estimator: Any
    scale: float
    release: PrivacyProfile
    profile: PrivacyProfile
    is_precise: bool


@with_shared_text(SCORES_TEXT)
class PrivateScoreCurves(
    ClassifierMixin, AnswersForFitted, PrivateEstimatorMixin, MetaEstimatorMixin, BaseEstimator
):
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

    # For `make_private_pipeline`: parameters of the model that a schema can set.
    _model_prefix = "estimator__"

    estimator: Any
    delta: float | None  # type: ignore[assignment]
    share: float
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

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters that set the cost, except those of the estimator."""
        return frozenset({"estimator", "epsilon", "delta", "share"})

    @property
    def neighbouring(self) -> str:  # type: ignore[override]
        """The neighbouring relation in the wording of reports: that of the estimator."""
        return neighbouring_of(self.estimator)

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the cost of a fit including the release, from public numbers only.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of columns; the estimator may need it.

        Returns
        -------
        PrivacyProfile

        Notes
        -----
        Theorem Q1.
        """
        size = check_integer(n_samples, name="n_samples", lower=1)
        return self._plan(self._public_size(size), n_features).profile

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
        # Theorem F11: the report carries the assumptions of its parts.
        inner = assumptions_of(self.estimator, n_samples, n_features)
        return once((*inner, *self._own_assumptions()))

    def _own_assumptions(self) -> tuple[str, ...]:
        return (PUBLIC_SIZE, _ALONE) if self._is_frozen() else (PUBLIC_SIZE,)

    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _plan(self, n_samples: int, n_features: int | None) -> ReleasePlan:
        """Return the budget of the fit and the noise of the release.

        Notes
        -----
        Theorem Q1.
        """
        self._check_parameters()
        epsilon, delta = self._checked_budget()
        noise, whole = noise_for_budget(epsilon, delta)
        sensitivity = 1.0 if self.neighbouring == ADD_OR_REMOVE else math.sqrt(2.0)
        model = clone(self.estimator)
        if self.n_public is not None:
            set_public_size(model, n_samples)
        # The squared shift of a Gaussian release is one over its squared noise.
        scale = noise * sensitivity * _ROUNDED * (1.0 if self._is_frozen() else self.share**-0.5)
        is_precise = self._is_precise(scale, n_samples)
        if self._is_frozen():
            # A frozen model needs no data; raise if it is not fitted.
            cost_of(model, n_samples, n_features)
            return ReleasePlan(model, scale, whole, whole, is_precise)
        release = gaussian_profile(sensitivity, scale)
        if not budget_owners(model):
            raise ValueError(
                "estimator must have an epsilon, which is set so that the total is met; got "
                f"{shown(self.estimator)}. Set its epsilon, and noise_multiplier=None."
            )
        if math.isinf(epsilon):
            model = without_noise(model, n_samples, n_features)
            return ReleasePlan(model, scale, whole, whole, is_precise)

        def composed(budget: float) -> PrivacyProfile:
            # Theorem P4: the release may depend on what the fit has published.
            set_budget(model, Budget(budget, delta))
            return cost_of(model, n_samples, n_features) + release

        guess = epsilon * math.sqrt(1.0 - self.share)
        found = calibrate(
            composed,
            epsilon,
            delta,
            parameter="budget",
            lower=1e-3 * guess,
            upper=epsilon,
            guess=0.99 * guess,
        )
        set_budget(model, Budget(found.value, delta))
        return ReleasePlan(model, scale, release, found.profile, is_precise)

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
        """Validate the parameters, before any data are read."""
        model = self.estimator
        if not hasattr(model, "get_params") or isinstance(model, type):
            raise no_profile(model)
        if _holds_others(model):
            raise NoProfileError(_NOT_LAST)
        _, delta = self._checked_budget()
        self._public_size(1)
        if delta == 0.0:
            raise ValueError(
                "delta must be positive, since normal noise is never pure; got 0. None stands for "
                "that of the estimator: give another one here."
            )
        check_share(self.share, name="share")
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

    # Fitting ------------------------------------------------------------------------------

    def _input_refusal(self, form: str) -> str | None:
        # A frozen model reads nothing, and its own report says whom it protects.
        if self._is_frozen():
            return None
        if isinstance(self.estimator, Pipeline) and hold_persons([self.estimator]):
            model, name = type(self.estimator.steps[-1][1]).__name__, type(self).__name__
            return (
                f"Put it into the pipeline: make_private_pipeline({name}({model}(...), ...), "
                "schema), and put a search around that pipeline."
            )
        if _holds_others(self.estimator):
            return _NOT_LAST.remedy
        if form == PARTS:
            words = refusal_of(self.estimator, PARTS)
            # No class inside gets rows in parts for its own use.
            return ADVICE[PARTS] if words == OWN_USE else words
        return refusal_by_persons(self.estimator, self._checked_budget)

    @property
    def _takes_persons_in_parts(self) -> bool:
        return self._is_frozen() or getattr(self.estimator, "_takes_persons_in_parts", False)

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **params: Any) -> Self:
        """Fit the estimator privately, then release a histogram of its scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            In the form that the estimator accepts. A record that the fitted estimator cannot
            predict, or whose target is improper, is not counted. Rows in parts are read twice
            more than by the estimator.
        y : array-like of shape (n_samples,)
            Targets; None with `PrivateRows`.
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row, if the estimator fits by persons. The guarantee is
            then about adding or removing one person with all of their rows (Theorem P14), and all
            numbers of records are numbers of persons. Each row is counted by one over the number
            of its person's rows. A row without a proper id is left out.
        **params
            Passed to the estimator's ``fit``, by metadata routing if it is enabled.

        Returns
        -------
        self
        """
        self._check_parameters()
        if routing_is_enabled():
            params = dict(process_routing(self, "fit", **params).estimator.fit)
        # An interrupted fit leaves no release, nor that of an earlier fit.
        self.__dict__.pop("privacy_", None)
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        size: int
        width: int | None
        if isinstance(X, PrivateRows):
            size, width = X.size_of_fit(self.n_public), X.width
        else:
            check_given(y, self)
            size, width = number_of_samples(X), number_of_features(X)
        plan = self._plan(self._public_size(size if persons is None else persons.size), width)
        # The label set is taken to be public if none is declared, here or in a schema.
        declared = own_parameters(self.estimator)
        takes_labels = declared.get("classes", ()) is None and declared.get("schema") is None
        if takes_labels and y is not None:
            self._check_labels(labels_in(read_targets(y, "any", None)[0]))
        generator = fit_generator(self.random_state)
        if self.random_state is not None:
            inner, own = np.random.SeedSequence(self.random_state).spawn(2)
            set_seeds(plan.estimator, inner)
            generator = np.random.default_rng(own)
        if persons is not None:
            params["groups"] = persons
        self.estimator_ = plan.estimator.fit(X, y, **params)
        self._release(X, y, plan.scale, generator, persons)
        self.privacy_ = self._report(plan, persons)
        return self

    def _check_fit(self, given: Mapping[str, Any]) -> None:
        """Refuse arguments that the fit of the estimator cannot use, before a ledger pays."""
        if not self._is_frozen() and hasattr(self.estimator, "_check_fit"):
            self.estimator._check_fit(given)

    def _report(self, plan: ReleasePlan, persons: Persons | None) -> PrivacyReport:
        epsilon, delta = self._checked_budget()
        relation, own = self.neighbouring, self._own_assumptions()
        if persons is not None:
            relation, own = about_persons(relation, own)
        part = PrivacyReport(
            plan.release,
            delta,
            name="score histogram",
            note="" if plan.is_precise else "insist=True: areas may be wrong by more than 0.04",
            neighbouring=relation,
        )
        inner = report_of(self.estimator_, None)
        # Theorem F11: the assumptions of a part are stated with the part.
        stated = () if self._is_frozen() else inner.assumptions
        seeded = (SEEDED,) if self.random_state is not None else ()
        assumed = once((*inner.assumptions, *own, *seeded))
        return PrivacyReport(
            plan.profile,
            delta,
            epsilon=epsilon if plan.profile.epsilon(delta) <= epsilon < math.inf else None,
            name=type(self).__name__,
            parts=(part,) if self._is_frozen() else (inner, part),
            assumptions=tuple(one for one in assumed if one not in stated),
            neighbouring=relation,
        )

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
        counts_between = self._counter(X, y, persons)
        # Theorem Q1: two Gaussian releases of squared shifts in this proportion.
        coarse = scale * _RANGE_SHARE**-0.5
        fine = scale * (1.0 - _RANGE_SHARE) ** -0.5
        counts = gaussian_release(counts_between(COARSE), 1.0, coarse, generator)
        edges = edges_for(counts, coarse, self.n_bins)
        counts = gaussian_release(counts_between(edges[1:-1]), 1.0, fine, generator)
        self.histogram_ = ScoreHistogram(edges, counts, fine)

    def _counter(self, X: Any, y: Any, persons: Persons | None) -> Callable[[Floats], Any]:
        """Return a function that counts the records of each label between inner edges."""
        if not isinstance(X, PrivateRows):
            weights = None if persons is None else persons.weights_of_all
            return partial(_counts, *self._scored(X, y), weights)
        # Theorem R10: the cell of a record follows only from this record.
        rows = X if persons is None else X.by_persons(persons)
        bare = without_secrets(self)
        return lambda edges: rows.total(partial(_counts_of_chunk, bare, edges))

    def _scored(self, X: Any, y: Any) -> tuple[Floats, Callable[[int], float], NDArray[np.intp]]:
        """Return the scores of records, a function for those of single ones, and labels or -1."""
        targets, improper = read_targets(y, "labels", self.estimator_.classes_)
        labels = np.where(targets == self._positive, 1, 0)
        labels[improper] = -1
        scores, alone = values_of_records(self.estimator_, X, self._scores)
        check_length(labels.size, scores.size)
        return scores, alone, labels

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
        """Standard deviation of `roc_auc_`: noise, sampling of the records, and bins.

        It is conservative, up to twice the error: the order of scores in one bin is unknown.
        """
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

    def confusion(self, threshold: float | None = None, *, return_std: bool = False) -> Any:
        """Return the noisy confusion matrix at a threshold.

        Parameters
        ----------
        threshold : float, optional
            Threshold for the probability of the positive label, or for its decision if there are
            no probabilities; by default the one that `predict` uses.
        return_std : bool, default=False
            Whether to return the standard deviations of these numbers as well: those of the noise
            and of the interpolation, about the records of the fit.

        Returns
        -------
        matrix : ndarray of shape (2, 2)
            Numbers of records, not integers: rows are true labels, columns predicted ones, in the
            order of ``classes_``. They are interpolated between the edges of bins.
        std : ndarray of shape (2, 2)
            Only with `return_std`.
        """
        check_is_fitted(self)
        if threshold is None:
            threshold = self._default_threshold()
        limit = check_real(threshold, name="threshold")
        if self._has_probabilities():
            limit = float(special.logit(check_real(limit, name="threshold", lower=0.0, upper=1.0)))
        above = np.array([self.histogram_.share_above(label, limit) for label in (0, 1)])
        matrix = np.stack([1.0 - above, above], axis=1) * self.histogram_.sizes[:, None]
        step = 1 if self._positive == self.classes_[1] else -1
        found = (matrix, self.histogram_.confusion_std(limit)) if return_std else (matrix,)
        ordered = tuple(each[::step, ::step] for each in found)
        return ordered if return_std else ordered[0]

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

    @if_model_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the classifier's probability of each class."""
        return np.asarray(self._method("predict_proba")(X))

    @if_model_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`."""
        return np.asarray(self._method("predict_log_proba")(X))

    @if_model_has("decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decisions of the classifier."""
        return np.asarray(self._method("decision_function")(X))

    def _method(self, name: str) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)

    # For scikit-learn ---------------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: metadata are passed to the fit of the estimator."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(
            estimator=self.estimator,
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the classifier, for two classes."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in (
            *("estimator_type", "target_tags", "classifier_tags", "regressor_tags"),
            *("input_tags", "non_deterministic"),
        ):
            setattr(tags, name, deepcopy(getattr(inner, name)))
        tags.classifier_tags.multi_class = False
        return tags


def _holds_others(model: Any) -> bool:
    """Return whether a model contains others, like a search or an ensemble."""
    return isinstance(model, HOLDERS) or getattr(type(model), "_is_private_search", False)


def _counts(
    scores: Floats,
    alone: Callable[[int], float],
    labels: NDArray[np.intp],
    weights: NDArray[np.int64] | None,
    edges: Floats,
) -> Any:
    """Return the number of records of each label between inner edges, without improper ones."""
    cells, n_cells = cells_of(scores, alone, edges), edges.size + 1
    is_counted = (cells >= 0) & (labels >= 0)
    places = labels[is_counted] * n_cells + cells[is_counted]
    shares = None if weights is None else shares_of(weights)[is_counted]
    counts = np.bincount(places, shares, minlength=2 * n_cells)
    return counts.reshape(2, n_cells).astype(np.float64)


def _counts_of_chunk(
    curves: PrivateScoreCurves,
    edges: Floats,
    X: Any,
    y: Any,
    weights: NDArray[np.int64] | None = None,
) -> Any:
    """Return `_counts` of a chunk of rows in parts."""
    return _counts(*curves._scored(X, y), weights, edges)
