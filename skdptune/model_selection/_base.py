"""Base class of all private searches: plan, check the data, run, report."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import get_scorer_names
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import (
    CallbackSupportMixin,
    Tasks,
    VisualBlock,
    number_of_features,
    number_of_samples,
    routing_is_enabled,
    safe_indexing,
    tasks_of_fit,
)
from skdptune._formatting import shown, shown_names
from skdptune._progress import Progress, check_verbose, current_progress
from skdptune._validation import (
    NamedArguments,
    check_integer,
    check_n_jobs,
    check_real,
    drop_frames,
    with_one_frame,
)
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._shared import (
    PARTS,
    PUBLIC_LABELS,
    PUBLIC_SIZE,
    REPLACE,
    SEEDED,
    UNKNOWN_SIZE,
    Charge,
    Persons,
    PrivateRows,
    about_persons,
    about_unit,
    announce_search,
    as_table,
    assumptions_in,
    assumptions_of,
    beside_refusals,
    carry_settings,
    check_alone,
    check_fit_parameters,
    check_in_memory,
    check_length,
    checked_persons,
    computed,
    count_fit,
    declared_labels,
    has_images,
    hold_persons,
    is_dask,
    is_paid,
    ledger_for,
    names_persons,
    neighbouring_of,
    nested_estimators,
    once,
    own_parameters,
    refusal_of,
    refused_groups,
    report_of,
    target_ranges,
    warn_of_large_delta,
    weakest,
)
from skdptune.checks._shared import check_plan
from skdptune.ledger import PrivacyLedger
from skdptune.ledger._shared import checked_ledger
from skdptune.mechanisms._shared import check_seed
from skdptune.metrics import BoundedScorer, get_bounded_scorer, neg_squared_error
from skdptune.model_selection._cost import SearchPlan, plan_cache, plan_key, split_of
from skdptune.model_selection._hold_out import HoldOut
from skdptune.model_selection._running import (
    PUBLIC_RULE,
    PUBLIC_VALIDATION,
    Data,
    Door,
    check_form,
    check_persons,
    check_steps,
    check_takes_parts,
    check_targets,
    public_labels,
    rows_of_persons,
)
from skdptune.model_selection._strategies import BaseStrategy, Plan
from skdptune.preprocessing._shared import range_of_targets

if TYPE_CHECKING:
    from skdptune.model_selection._pareto import ParetoPlan

# The methods and attributes that a search delegates to its winner ------------------------------

_TAGGED = ("target", "classifier", "regressor", "transformer", "input")


def best_has(name: str) -> Any:
    """Return a check whether the winner has a method; it raises if the method is missing."""

    def check(search: Any) -> bool:
        if not hasattr(search, "best_estimator_") and search.refit is False:
            raise AttributeError(
                f"This {type(search).__name__} has `refit=False`. {name} is available only after "
                "refitting on the best parameters."
            )
        getattr(getattr(search, "best_estimator_", search._lead_estimator()), name)
        return True

    return check


def _delegated(name: str, what: str) -> Any:
    """Return a method that calls the winner's method with this name, where it has one."""

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    method.__name__, method.__qualname__ = name, f"BasePrivateSearch.{name}"
    method.__doc__ = f"Return {what}."
    return available_if(best_has(name))(method)


def check_no_metadata(search: Any, params: dict[str, Any]) -> None:
    """Refuse metadata for scores, as scikit-learn does; the names of metadata are public."""
    if not params:
        return
    if routing_is_enabled():
        # Raises, since no part of a search accepts metadata for its scores.
        process_routing(search, "score", **params)
    raise ValueError(
        f"score() takes only X and y; got {sorted(params)}. Passing more is only supported if "
        "enable_metadata_routing=True, and no scorer of known sensitivity accepts any."
    )


# The template ---------------------------------------------------------------------------------

# Parameters that change neither the cost nor which values are covered by it.
_NEUTRAL = ("n_jobs", "verbose", "random_state", "ledger")


# Errors are clipped at this share of the range of targets: few are larger, and the noise is a
# quarter of that at half of the range. At a sixth, clipping decides which candidate is best.
_LARGEST_ERROR = 0.25

_ONE_COLUMN = "All estimators must be pipelines whose schemas name the same column of persons."

_SPACES = ("param_grid", "param_distributions", "param_space")


PlanT = TypeVar("PlanT", bound="Plan | ParetoPlan")


@carry_settings
class BasePrivateSearch(
    CallbackSupportMixin, MetaEstimatorMixin, NamedArguments, BaseEstimator, ABC, Generic[PlanT]
):
    """Base of all private searches.

    A search first makes its plan, which contains the whole cost and follows only from parameters
    and public numbers. An active ledger records the plan. Then the search reads the data, runs,
    and publishes what the plan paid for. Subclasses implement the abstract methods below, and
    nothing else of the template.

    Notes
    -----
    Theorem F0.
    """

    _is_private_search = True

    estimator: Any
    delta: float | None
    scoring: Any
    cv: Any
    refit: Any
    strategy: Any
    n_jobs: int | None
    verbose: int | None
    random_state: Any
    n_public: int | None
    ledger: PrivacyLedger | None

    # What a subclass implements -------------------------------------------------------------

    _default_strategy: ClassVar[type[BaseStrategy]]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise for bad parameters, before any data are seen."""

    @abstractmethod
    def _solve(
        self, n_samples: int, n_features: int | None, classes: Any, is_public: bool
    ) -> PlanT:
        """Return the plan: the cost of everything, with the noise that meets the budget."""

    @abstractmethod
    def _summary(self, plan: PlanT, n_samples: int, compare: bool) -> SearchPlan:
        """Return the plan as it is shown to the user."""

    @abstractmethod
    def _prepared(self, plan: PlanT, data: Data, public: Data | None) -> Callable[[Tasks], None]:
        """Return a function that searches, fits the winner, and sets the public attributes.

        Checks that are possible before the ledger pays are made here, such as fits of made-up
        data.
        """

    def _estimators(self) -> Sequence[Any]:
        """Return the estimators that are searched over."""
        return (self.estimator,)

    def _strategy(self) -> Any:
        """Return the given or the default strategy."""
        return self._default_strategy() if self.strategy is None else self.strategy

    def _n_tasks(self) -> int:
        """Return the number of tasks that callbacks see, in addition to those of candidates."""
        return 2

    def _labels_set_the_cost(self, n_samples: int, n_features: int | None) -> bool:
        """Return whether the cost may depend on a label set that was not declared."""
        return True

    # The plan, before data --------------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the cost of the whole search, from parameters and public sizes only.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns; needed if the estimator's cost depends on it.

        Returns
        -------
        PrivacyProfile
        """
        with self._progress():
            return self._make_plan(n_samples, n_features).total

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions that a search will report, from parameters and public sizes only.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns; needed if the estimator's cost depends on it.

        Returns
        -------
        tuple of str
            The assumptions; a search that has this one as its estimator reports them, too.
        """
        found = self._report(self._make_plan(n_samples, n_features)).assumptions
        # An enclosing meta-estimator sets the seed of this search.
        return tuple(sentence for sentence in found if sentence != SEEDED)

    @with_one_frame
    def plan(
        self,
        n_samples: int,
        n_features: int | None = None,
        *,
        public_validation: bool = False,
        compare: bool = False,
        mute: Collection[str] = (),
    ) -> SearchPlan:
        """Return what the search will do and cost, before any data are seen.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns; needed if the estimator's cost depends on it.
        public_validation : bool, default=False
            Whether public validation data will be given to `fit`.
        compare : bool, default=False
            Whether to compute alternatives with the same total as well. This takes up to a few
            times as long as the plan.
        mute : collection of str, default=()
            Codes of findings to leave out, such as ``["SKP008"]``; see `skdptune.check`.

        Returns
        -------
        SearchPlan
            Prints as a table, with the findings of `skdptune.check` at the end.
        """
        with self._progress() as progress:
            plan = self._make_plan(n_samples, n_features, is_public=public_validation)
            warn_of_large_delta(plan.delta, plan.layout.n_samples, stacklevel=4)
            progress.phase("checking what could leak")
            findings = check_plan(
                self,
                plan.total,
                plan.delta,
                n_samples,
                n_features,
                has_public_validation=public_validation,
                mute=mute,
            )
            if compare:
                progress.phase("planning other searches, to compare")
            summary = self._summary(plan, n_samples, compare)
        return replace(summary, findings=findings)

    def _progress(self) -> Progress:
        return Progress(type(self).__name__, self.verbose)

    def _make_plan(
        self,
        n_samples: int,
        n_features: int | None,
        *,
        classes: Any = None,
        is_public: bool = False,
    ) -> PlanT:
        """Check all parameters and solve for the budget, or return the cached plan."""
        # Theorem F0: the plan follows from parameters and public numbers.
        size = n_samples if self.n_public is None else self.n_public
        settings = {
            name: value.of_plan() if isinstance(value, BaseStrategy) else value
            for name, value in self.get_params(deep=False).items()
            if name not in _NEUTRAL
        }
        if not is_public:
            # Some of the refused splitters cannot even be copied.
            split_of(self.cv)
        key = plan_key(type(self), settings, size, n_features, classes, is_public)
        plan: PlanT | None = plan_cache.get(key)
        if plan is None:
            current_progress().phase("planning, before any data are read")
            # Solve for a copy: the plan must keep the values for which its cost was computed.
            plan = clone(self)._solve(size, n_features, classes, is_public)
            plan_cache.keep(key, plan)
        return plan

    def _check_common_parameters(self) -> None:
        """Validate the parameters that all searches have."""
        if self.delta is not None:
            check_real(self.delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
        if self.n_public is not None:
            check_integer(self.n_public, name="n_public", lower=1)
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)
        check_seed(self.random_state)
        try:
            scorers = self._scorers()
        except (TypeError, ValueError) as error:
            raise beside_refusals(error, self._estimators()) from None
        for estimator, scorer in product(self._estimators(), scorers.values()):
            if not hasattr(estimator, scorer.response_method):
                raise TypeError(
                    f"scoring must suit the estimator; got {shown(scorer.name)}, which needs "
                    f"{scorer.response_method}, but {type(estimator).__name__} has none."
                )
            _check_scored_labels(scorer, estimator)

    @property
    def _is_multimetric(self) -> bool:
        """Whether `scoring` names its metrics, whether several or one."""
        return isinstance(self.scoring, list | tuple | Mapping)

    def _scorers(self) -> dict[str, BoundedScorer]:
        """Return the scorers by names of metrics, with the main metric first."""
        return {"score": self._scorer_of_one()}

    def _scorer(self) -> BoundedScorer:
        """Return the main scorer of the search."""
        return next(iter(self._scorers().values()))

    def _scorer_of_one(self) -> BoundedScorer:
        """Return the scorer of a search with one metric."""
        if self._is_multimetric:
            raise ValueError(
                "scoring must be one metric if the scores of all candidates are not paid for; "
                f"got {len(self.scoring)} for {type(self).__name__}. Several are paid for by "
                "DPAdaptiveSearchCV, and by DPGridSearchCV with FullTable or Composition."
            )
        if self.scoring is not None:
            return get_bounded_scorer(self.scoring)
        if is_classifier(self._lead_estimator()) or all(map(is_classifier, self._estimators())):
            return get_bounded_scorer("accuracy")
        ranges = [range_of_targets(estimator) for estimator in self._estimators()]
        scorers = [squared_error_in(each) for each in ranges if each is not None]
        if len(scorers) == len(ranges) and len({one.lower for one in scorers}) == 1:
            return scorers[0]
        raise ValueError(
            "scoring must be given for an estimator that is not a classifier and has no "
            "target_bound; got None. Give the estimator target_bound=(lower, upper), a public "
            "range of the targets: the score is then the bounded squared error. R² is not "
            "bounded. Otherwise use skdptune.metrics.neg_squared_error(bound=...)."
        )

    # Fitting --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        **params: Any,
    ) -> Self:
        """Run the search, and fit the winner.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            Records. They may lie in parts if the estimator's rows may, and if the search chooses
            by noisy scores of runs; the result is that for a table (Theorem R11).
        y : array-like of shape (n_samples,)
            Targets; None with `PrivateRows`.
        X_val, y_val : array-like, optional
            Public validation data, whose scores cost nothing; `cv` is then ignored.
        groups : array-like of shape (n_samples,), optional
            The id of each row's person. The guarantee is then about one person with all of their
            rows, and all numbers of records are numbers of persons. Parts are drawn person by
            person, and a person's score is the mean over their rows (Theorem P14).
        **params
            Passed to the estimator's ``fit``; arguments with one entry per record are divided with
            the records.

        Returns
        -------
        self
        """
        try:
            ledger = self._ledger_in_use()
            X, y = self._in_parts(X, y, {"groups": groups, **params}, X_val, ledger)
            persons = self._persons(X, y, groups, params)
            announced = announce_search(self, X, warns=ledger is None, persons=persons)
            with self._progress() as progress:
                plan, data, public = self._opened(X, y, X_val, y_val, params, persons)
                progress.phase("trying the estimator on made-up data")
                run = self._prepared(plan, data, public)
                weights = params.get("sample_weight")
                # Theorem H4: the ledger records the cost before the data are read.
                with nullcontext() if ledger is None else self._charge(plan).reserved(ledger):
                    with tasks_of_fit(self, self._n_tasks(), data.X, data.y, weights) as tasks:
                        run(tasks)
        except (TypeError, ValueError) as error:
            drop_frames(error)
            raise
        count_fit(self, announced)
        return self

    def _in_parts(
        self, X: Any, y: Any, given: Mapping[str, Any], X_val: Any, ledger: PrivacyLedger | None
    ) -> tuple[Any, Any]:
        """Return X and y, where rows that lie in parts are `PrivateRows`; or refuse these.

        Nothing is read but a number of rows that must be public, and that nothing records.
        """
        check_in_memory(self, X)
        named = sorted(name for name, value in given.items() if value is not None)
        lies_in_parts = is_dask(X) and not has_images(X)
        if lies_in_parts and not named and refusal_of(self, PARTS) is None:
            X, y = PrivateRows.from_dask(X, y), None
        if not isinstance(X, PrivateRows):
            return computed(X), computed(y)
        check_alone(y, "groups" in named)
        if named:
            raise TypeError(
                "fit() takes only X, X_val and y_val if rows lie in parts; got "
                f"{shown_names(named)}."
            )
        if isinstance(self.cv, HoldOut) and callable(self.cv.column) and X_val is None:
            # Theorem T9: a record may decide the types of its chunk, which a function sees.
            raise TypeError(
                "cv must compare a column if rows lie in parts; got a HoldOut with a function."
            )
        X.check_readable_again()
        X.check_order("X must be a table in memory for a search", "PrivateRows")
        if self.n_public is None and X.n_samples is None:
            if ledger is not None:
                raise ValueError(UNKNOWN_SIZE)
            X.counted()
        return X, None

    def _persons(self, X: Any, y: Any, groups: Any, params: Mapping[str, Any]) -> Persons | None:
        """Return the persons of the rows, from groups or from a column of the table."""
        estimators = self._estimators()
        is_held = hold_persons(estimators)
        if not (is_held or groups is not None or names_persons(params)):
            return None
        # Theorem P14: persons are never ignored, and no argument tells the number of rows.
        if params:
            raise TypeError(
                "fit() takes only X, y and groups if persons are named, by groups or by a schema: "
                f"a search gives the persons to all steps. Got {sorted(params)}."
            )
        check_persons(estimators)
        if is_held:
            columns = {getattr(one, "_person_column", None) for one in estimators}
            if None in columns or len(columns) > 1:
                raise TypeError(refused_groups(f"{type(self).__name__}.fit", _ONE_COLUMN))
            groups = estimators[0].ids_of(X, {"groups": groups})
        return checked_persons(self, groups, X, y)

    def _ledger_in_use(self) -> PrivacyLedger | None:
        """Return the ledger of the search or of its estimators, or else the active one."""
        if is_paid(self):
            return None
        self._check_parameters()
        given = {
            checked_ledger(ledger)
            for part in (self, *self._estimators())
            for _, step in nested_estimators(part)
            if (ledger := own_parameters(step).get("ledger")) is not None
        }
        if len(given) > 1:
            raise ValueError(
                "ledger must be a single one, which records the total of the search; got "
                f"{len(given)} of {type(self).__name__} and its estimators."
            )
        return ledger_for(self, next(iter(given), None))

    def _charge(self, plan: PlanT) -> Charge:
        """Return what a ledger records before the search reads the data."""
        report, kind = self._report(plan), type(self)
        details = {
            "estimator": f"{kind.__module__}.{kind.__qualname__}",
            "n_samples": plan.layout.n_samples,
            "parts": _parts_of(report, plan.delta),
        }
        return Charge(
            plan.total, kind.__name__, assumptions_in(report), report.neighbouring, details
        )

    def _opened(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        params: dict[str, Any],
        persons: Persons | None,
    ) -> tuple[PlanT, Data, Data | None]:
        """Return the plan, the data and the public validation data, all checked."""
        # Theorem F0: the data do not influence the cost.
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together; got one of them.")
        rows = X if isinstance(X, PrivateRows) else None
        # Of rows in parts, all checks see a table without rows.
        X, y = (as_table(X), y) if rows is None else rows.form
        if y is not None:
            check_length(number_of_samples(y, "y"), number_of_samples(X))
        X, y = indexable(X, y)
        X, y, persons = rows_of_persons(X, y, persons)
        n_rows, n_features = number_of_samples(X), number_of_features(X)
        n_samples = n_rows if persons is None else persons.size
        if rows is not None:
            # Without a number of rows, `n_public` is given, and the plan takes it.
            n_samples = rows.n_samples or 0
        self._check_parameters()
        target = None if rows is None else rows.made_up_target
        self._check_arguments(X, y if target is None else target, params, n_samples)
        is_public = X_val is not None
        if isinstance(self.cv, HoldOut) and not is_public:
            # A message shows the shape of the table, and the number of persons' rows is secret.
            self.cv.check_form(X if persons is None else safe_indexing(X, [0] if n_rows else []))
        needs_labels = self._labels_set_the_cost(n_samples, n_features)
        classes: Any = None
        if needs_labels:
            classes = self._public_labels(y, n_rows)
        # The whole cost is known before a single record is read, except for the public labels.
        found = self._make_plan(n_samples, n_features, classes=classes, is_public=is_public)
        if not needs_labels:
            classes = self._public_labels(y, n_rows)
        plan: Any = found.with_classes(classes)
        if persons is not None:
            check_persons(plan.variants())
            plan = replace(plan, by_persons=True)
        if rows is not None:
            check_takes_parts(plan.variants())
        warn_of_large_delta(plan.delta, plan.layout.n_samples, stacklevel=4)
        _warn_of_weights(params, self.scoring)
        door = Door.of(self._estimators(), X, classes, varies=self._replaces_steps())
        rule = self.cv.held_out if plan.layout.by_rule else None
        data = Data(rows, None, door=door)
        if rows is None:
            data = door.open(X, y, self._routed(params), rule).by_persons(persons)
        return plan, data, door.open(*indexable(X_val, y_val)) if is_public else None

    def _check_arguments(self, X: Any, y: Any, params: dict[str, Any], n_samples: int) -> None:
        """Refuse arguments of `fit` that no estimator could use, judged by their form only."""
        n_samples = n_samples if self.n_public is None else self.n_public
        for estimator in self._estimators():
            if not routing_is_enabled():
                check_fit_parameters(estimator, params)
            check_form(estimator, X)
            check_targets(estimator, y)
            try:
                check_steps(estimator, X, n_samples)
            except Exception as error:
                raise beside_refusals(error, [estimator]) from error.__cause__

    def _public_labels(self, y: Any, n_samples: int) -> Any:
        """Return the label set of a classifier's targets, which is assumed to be public."""
        found = [
            public_labels(estimator, y, n_samples, is_random=self.n_public is not None)
            for estimator in self._estimators()
        ]
        return next((labels for labels in found if labels is not None), None)

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that are passed on to the estimator's fit."""
        if routing_is_enabled():
            return dict(process_routing(self, "fit", **params).estimator.fit)
        return params

    def _replaces_steps(self) -> bool:
        """Return whether candidates may have steps that differ from the estimator's."""
        names = set(_names_in(own_parameters(self).get(name) for name in _SPACES))
        return any(
            hasattr(value, "fit") or (isinstance(value, str) and value in ("passthrough", "drop"))
            for estimator in self._estimators()
            for name, value in estimator.get_params().items()
            if name in names
        )

    def _publish(self, plan: PlanT, scorer: Any, model: Any, found: Mapping[str, Any]) -> None:
        """Set the public attributes, and delete those of an earlier fit."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        shown = {"scorer_": scorer, "multimetric_": isinstance(scorer, Mapping), **found}
        if model is not None:
            shown["best_estimator_"] = model
            if hasattr(model, "feature_names_in_"):
                shown["feature_names_in_"] = model.feature_names_in_
        for name, value in shown.items():
            setattr(self, name, value)
        self.n_splits_ = plan.layout.folds or 1
        self.privacy_ = self._report(plan, model)

    # The methods and attributes of the winner, and tags for scikit-learn ---------------------

    def _lead_estimator(self) -> Any:
        """Return the estimator whose type the search has for scikit-learn."""
        return self.estimator

    predict = _delegated("predict", "the winner's predictions")
    predict_proba = _delegated("predict_proba", "the winner's probabilities")
    predict_log_proba = _delegated("predict_log_proba", "the winner's logarithms of probabilities")
    decision_function = _delegated("decision_function", "the winner's decision function")
    score_samples = _delegated("score_samples", "the winner's scores of records")
    transform = _delegated("transform", "the records as transformed by the winner")
    inverse_transform = _delegated(
        "inverse_transform", "the inverse of the winner's transformation"
    )

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the winner's score on the given data, by the scorer of the search.

        With several metrics, the one that `refit` names is used. The score is exact: on sensitive
        data it is not private. Scorers take no metadata.
        """
        check_no_metadata(self, params)
        check_is_fitted(self)
        number_of_samples(X)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"This {type(self).__name__} has refit=False; it has no model.")
        scorer = self.scorer_
        if self.multimetric_ and callable(self.refit):
            raise AttributeError(
                f"This {type(self).__name__} has several metrics, and refit does not name one; "
                "use scorer_[name](best_estimator_, X, y)."
            )
        if self.multimetric_:
            scorer = scorer[self.refit]
        return float(scorer(self.best_estimator_, X, y))

    @property
    def classes_(self) -> Any:
        """The labels, for a classifier."""
        best_has("classes_")(self)
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen by the winner."""
        try:
            check_is_fitted(self)
        except ValueError as error:
            raise AttributeError(
                f"{type(self).__name__} object has no n_features_in_ attribute."
            ) from error
        return int(self.best_estimator_.n_features_in_)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a result."""
        return "privacy_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator that is tuned."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self._lead_estimator())
        for name in ("estimator_type", *(f"{part}_tags" for part in _TAGGED)):
            setattr(tags, name, deepcopy(getattr(inner, name)))
        tags.non_deterministic = self.random_state is None
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: metadata are passed to the fits of the estimator."""
        return MetadataRouter(owner=type(self).__name__).add(
            estimator=self._lead_estimator(),
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )

    def _sk_visual_block_(self) -> Any:
        shown = getattr(self, "best_estimator_", self._lead_estimator())
        label = "best_estimator_" if hasattr(self, "best_estimator_") else "estimator"
        return VisualBlock(
            "parallel",
            [clone(shown)],
            names=[f"{label}: {type(shown).__name__}"],
            name_details=[str(shown)],
        )

    def _repr_html_inner(self) -> str:
        shown = super()._repr_html_inner()
        return shown + self.privacy_._repr_html_() if hasattr(self, "privacy_") else shown

    # The report -----------------------------------------------------------------------------

    def _report(self, plan: PlanT, model: Any = None) -> PrivacyReport:
        """Return the value of `privacy_`, with the assumptions of the model if it is fitted."""
        relation = REPLACE if plan.layout.replaces else self._neighbouring(plan)
        assumptions = self._assumptions(plan, model)
        if plan.by_persons or hold_persons(self._estimators()):
            relation, assumptions = about_persons(relation, assumptions)
        return PrivacyReport(
            plan.total,
            plan.delta,
            epsilon=plan.asked,
            name=type(self).__name__,
            parts=_parts_about(plan.components, relation),
            assumptions=once(assumptions),
            neighbouring=relation,
            bound=plan.bound,
        )

    def _neighbouring(self, plan: PlanT) -> str:
        """Return the neighbouring relation for which the guarantees of all parts hold."""
        # Theorem F11: the weakest relation of all parts.
        return weakest(neighbouring_of(estimator) for estimator in plan.variants())

    def _assumptions(self, plan: PlanT, model: Any = None) -> tuple[str, ...]:
        """Return all assumptions, each once: of the search, of its parts, of its model."""
        # Theorem F11: all assumptions of all parts, once each.
        layout = plan.layout
        parts = [
            assumptions_of(estimator, layout.n_final, layout.n_features)
            for estimator in plan.variants()
        ]
        of_model = () if model is None else assumptions_of_model(model, layout.n_final)
        return once(chain(self._own_assumptions(plan), *parts, of_model))

    def _own_assumptions(self, plan: PlanT) -> tuple[str, ...]:
        sentences = [PUBLIC_SIZE]
        if any(is_classifier(estimator) for estimator in self._estimators()):
            sentences.append(PUBLIC_LABELS)
        if plan.layout.public:
            sentences.append(PUBLIC_VALIDATION)
        if plan.layout.by_rule:
            sentences.append(PUBLIC_RULE)
        if self.random_state is not None:
            sentences.append(SEEDED)
        return tuple(sentences)


def _names_in(spaces: Iterable[Any]) -> Iterator[str]:
    """Iterate over all parameter names in spaces, lists of spaces and families of them."""
    for space in spaces:
        if isinstance(space, Mapping):
            yield from space
            yield from _names_in(space.values())
        elif isinstance(space, list | tuple):
            yield from _names_in(one for one in space if isinstance(one, Mapping))


def squared_error_in(bound: Any) -> BoundedScorer:
    """Return the squared error, clipped where an error is a quarter of the range of targets.

    With several targets, the bound is the mean of theirs, as the error of a record is.
    """
    found: Any = target_ranges(bound)
    ranges = found if isinstance(found[0], tuple) else (found,)
    largest = sum((_LARGEST_ERROR * (high - low)) ** 2 for low, high in ranges) / len(ranges)
    return neg_squared_error(largest)


def _parts_about(parts: Sequence[PrivacyReport], relation: str) -> tuple[PrivacyReport, ...]:
    """Return the parts of a report as parts about the neighbouring relation of the whole."""
    return tuple(
        replace(
            part,
            neighbouring=relation,
            note=about_unit(part.note, relation),
            parts=_parts_about(part.parts, relation),
        )
        for part in parts
    )


def _parts_of(report: PrivacyReport, delta: float) -> list[dict[str, Any]]:
    """Return the parts of a release, as a tree for the ledger."""
    parts = []
    for part in report.parts:
        epsilon = part.profile.epsilon(delta)
        shown = "inf" if math.isinf(epsilon) else epsilon
        parts.append({"name": part.name, "epsilon": shown, "parts": _parts_of(part, delta)})
    return parts


def several_scorers(scoring: Any) -> dict[str, BoundedScorer]:
    """Return the scorers of several metrics by their names, or raise.

    Parameters
    ----------
    scoring : list or tuple of (str or BoundedScorer), or mapping from str to these
        A scorer in a list keeps its own name.
    """
    is_named = isinstance(scoring, Mapping)
    given = list(scoring.items()) if is_named else [(None, one) for one in scoring]
    if not given:
        raise ValueError(f"scoring must hold at least one metric; got {shown(scoring)}.")
    scorers = [(name, _scorer_in_list(one)) for name, one in given]
    found: list[tuple[Any, BoundedScorer]] = [
        (name if is_named else one.name, one) for name, one in scorers
    ]
    for name, count in Counter(name for name, _ in found).items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"scoring must name each metric by a str; got {shown(name)}.")
        if count > 1:
            raise ValueError(
                f"scoring must name each metric once; got {shown(name)} {count} times. Use a "
                "dict to name them yourself."
            )
    return dict(found)


def _scorer_in_list(given: Any) -> BoundedScorer:
    """Return one of several scorers; an unknown name may be a label, and is not shown."""
    try:
        return get_bounded_scorer(given)
    except ValueError:
        if given in get_scorer_names():
            raise
    raise ValueError(
        "scoring must hold names of metrics, or BoundedScorers; got a name that is not a metric."
    )


def _check_scored_labels(scorer: BoundedScorer, estimator: Any) -> None:
    """Refuse weights for other classes than the estimator's; these would weigh nothing."""
    if scorer.labels is None:
        return
    declared = declared_labels(estimator)
    if declared is None:
        return
    unknown = [label for label in scorer.labels if label not in declared]
    n_absent = sum(label not in scorer.labels for label in declared)
    if unknown or n_absent:
        others = (
            f"{shown_names(unknown)}, which are not among them"
            if unknown
            else f"{n_absent} too few"
        )
        raise ValueError(f"scoring must name each of the estimator's classes; got {others}.")


def _warn_of_weights(params: dict[str, Any], scoring: Any) -> None:
    """Warn if weights for the fit may be expected to weight scores as well."""
    if params.get("sample_weight") is not None and not routing_is_enabled():
        which = "scoring"
        if isinstance(scoring, list | tuple | Mapping):
            # The wording of scikit-learn.
            named = several_scorers(scoring).items()
            which = f"The scoring {', '.join(f'{name}={one.name}' for name, one in named)}"
        warnings.warn(
            f"{which} does not support sample_weight: all records have the same weight in the "
            "scores, also if they have different weights in the fits. class_weight of "
            "skdptune.metrics.accuracy weighs them by public numbers.",
            UserWarning,
            stacklevel=4,
        )


def assumptions_of_model(model: Any, n_samples: int) -> tuple[str, ...]:
    """Return the assumptions that a published model reports; empty for an unfitted model."""
    # The assumptions are as public as the model.
    try:
        return assumptions_in(report_of(model, n_samples))
    except (AttributeError, TypeError, ValueError):
        return ()
