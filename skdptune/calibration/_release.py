"""A private estimator and one more release on its training records, within one budget.

A subclass defines the cells in which records are counted. This module has the rest: noise of the
counts and a budget of the fit that together meet the total, the path of a record to its cell, and
the report.

**Guarantee.** A record's cell follows from that record and from what was released before
(Theorem Q1). The total cost is the composition of the costs of the fit and of the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import validate_data

from skdptune._compat import (
    number_of_features,
    number_of_samples,
    routing_is_enabled,
    safe_indexing,
)
from skdptune._formatting import shown
from skdptune._validation import check_integer, check_share
from skdptune.accounting import PrivacyProfile, PrivacyReport, calibrate
from skdptune.base import NoProfileError, PrivateEstimatorMixin
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    ADVICE,
    GROUPS,
    HOLDERS,
    OTHER_SOLVER,
    OWN_USE,
    PUBLIC_SIZE,
    SEEDED,
    Budget,
    Persons,
    Refusal,
    about_persons,
    as_table,
    assumptions_of,
    budget_owners,
    by_halves,
    by_persons,
    check_given,
    cost_of,
    finite_rows,
    hold_persons,
    named_like,
    neighbouring_of,
    no_profile,
    once,
    persons_of,
    reads_numbers,
    refusal_of,
    report_of,
    set_budget,
    set_public_size,
    set_seeds,
    without_noise,
)
from skdptune.mechanisms import fit_generator, gaussian_profile, noise_for_budget

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
# Predictions with and without other records differ by rounding, which is less than this.
_ROUNDING = 1e-3


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


class AnswersForFitted:
    """Columns and readiness of an estimator that answers for the model fitted inside it."""

    _inside: ClassVar[str] = "estimator_"

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self._fitted("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, if they had any."""
        names: NDArray[Any] = self._fitted("feature_names_in_")
        return names

    def _fitted(self, name: str) -> Any:
        if self._inside not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name} before its fit.")
        return getattr(getattr(self, self._inside), name)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return "privacy_" in vars(self)


class PrivateRelease(AnswersForFitted, PrivateEstimatorMixin, MetaEstimatorMixin, BaseEstimator):
    """Base class of private estimators with one more release; a subclass defines the release."""

    delta: float | None  # type: ignore[assignment]
    _release_name: ClassVar[str]
    # For `make_private_pipeline`: parameters of the model that a schema can set.
    _model_prefix = "estimator__"

    estimator: Any
    share: float

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

    def _is_precise(self, scale: float, n_samples: int) -> bool:
        """Return whether there are enough records for the noise; may raise an error if not."""
        return True

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

    # Fitting ------------------------------------------------------------------------------

    def _input_refusal(self, form: str) -> str | None:
        if form != GROUPS:
            return super()._input_refusal(form)
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
        return refusal_by_persons(self.estimator, self._checked_budget)

    def fit(self, X: Any, y: Any, *, groups: Any = None, **params: Any) -> Self:
        """Fit the estimator privately, then release what this class adds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            In the form that the estimator accepts. A record that the fitted estimator cannot
            predict, or whose target is improper, is not counted.
        y : array-like of shape (n_samples,)
            Targets.
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
        check_given(y, self)
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        n_samples = number_of_samples(X) if persons is None else persons.size
        plan = self._plan(self._public_size(n_samples), number_of_features(X))
        self._check_targets(y)
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

    def _check_targets(self, y: Any) -> None:
        """Refuse targets that the release cannot use, whatever their values are."""

    def _release(
        self,
        X: Any,
        y: Any,
        scale: float,
        generator: np.random.Generator,
        persons: Persons | None,
    ) -> None:
        """Release the counts of the records, or of the persons if there are any."""
        raise NotImplementedError

    def _report(self, plan: ReleasePlan, persons: Persons | None) -> PrivacyReport:
        epsilon, delta = self._checked_budget()
        relation, own = self.neighbouring, self._own_assumptions()
        if persons is not None:
            relation, own = about_persons(relation, own)
        part = PrivacyReport(
            plan.release,
            delta,
            name=self._release_name,
            note=self._note(plan),
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

    def _note(self, plan: ReleasePlan) -> str:
        """Return a public remark on the release, for the report."""
        return ""

    # For scikit-learn ---------------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: metadata are passed to the fit of the estimator."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(
            estimator=self.estimator,
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in (
            *("estimator_type", "target_tags", "classifier_tags", "regressor_tags"),
            *("input_tags", "non_deterministic"),
        ):
            setattr(tags, name, deepcopy(getattr(inner, name)))
        return tags


def _holds_others(model: Any) -> bool:
    """Return whether a model contains others, like a search or an ensemble."""
    return isinstance(model, HOLDERS) or getattr(type(model), "_is_private_search", False)


# Fits by persons ---------------------------------------------------------------------------


def private_steps(estimator: Pipeline) -> dict[str, Any]:
    """Return the steps of a pipeline that get the persons of a fit."""
    steps = estimator.steps
    return {name: step for name, step in steps if hasattr(step, "_input_refusal")}


def refusal_by_persons(estimator: Any, budget: Callable[[], tuple[float, float]]) -> str | None:
    """Return None if an estimator fits by persons at the cost of single records, or a message.

    The cost is that with the budget which the estimator is given: a delta of 0 may choose another
    solver. An estimator whose fits by persons have another cost is refused (Theorem M8).
    """
    inner = clone(estimator)
    parts = [inner]
    if isinstance(inner, Pipeline):
        parts = [*private_steps(inner).values(), inner.steps[-1][1]]

    def refused() -> str | None:
        answers = (refusal_of(part, GROUPS) for part in parts)
        words = next((words for words in answers if words is not None), None)
        # No class inside gets the groups for its own use.
        return ADVICE[GROUPS] if words == OWN_USE else words

    words = refused()
    if words is not None:
        return words
    given = Budget(*budget())
    if math.isfinite(given.epsilon):
        set_budget(inner, given)
    return OTHER_SOLVER if any(by_persons(part) is not part for part in parts) else refused()


# The path of one record to its cell --------------------------------------------------------


def values_of_records(
    model: Any, X: Any, value_of: Callable[[Any], NDArray[np.float64]]
) -> tuple[NDArray[np.float64], Callable[[int], float]]:
    """Return a number for each record, and a function that computes it without the other records.

    Parameters
    ----------
    model : estimator
        Fitted; its predictions depend on other records by rounding only.
    X : array-like
    value_of : callable
        Returns the numbers of records. A record for which it fails has NaN.

    Notes
    -----
    Theorem Q1, Theorem R5.
    """
    X = as_table(X)
    validate_data(model, X, reset=False, skip_check_array=True)
    size = number_of_samples(X)
    improper = np.zeros(size, dtype=bool)
    rows = X
    held = model.estimator if isinstance(model, FrozenEstimator) else model
    if reads_numbers(getattr(held, "best_estimator_", held)):
        numbers, improper = finite_rows(X)
        rows = named_like(X, numbers)
    if not size:
        return np.zeros(0), lambda place: math.nan
    # Warnings would reveal something about the data.
    with np.errstate(all="ignore"):
        parts = by_halves(value_of, rows, lambda record: np.array([math.nan]))
    values = np.concatenate([found for _, found in parts])
    values[improper] = math.nan

    def alone(place: int) -> float:
        with np.errstate(all="ignore"):
            record = safe_indexing(rows, np.array([place]))
            return float(by_halves(value_of, record, lambda one: np.array([math.nan]))[0][1][0])

    return values, alone


def cells_of(
    values: NDArray[np.float64], alone: Callable[[int], float], edges: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return the place of each number among inner edges, -1 for NaN.

    A number near an edge is computed again without the other records, so that their influence by
    rounding cannot change a cell.

    Notes
    -----
    Theorem Q1.
    """
    values = values.copy()
    above = np.clip(np.searchsorted(edges, values), 1, edges.size - 1)
    distance = np.minimum(np.abs(values - edges[above - 1]), np.abs(values - edges[above]))
    for place in np.flatnonzero(distance < _ROUNDING):
        values[place] = alone(int(place))
    cells = np.searchsorted(edges, values, side="right").astype(np.intp)
    return np.where(np.isnan(values), -1, cells)
