"""Prediction intervals and sets around private models, with a stated coverage.

**Setting.** Each record is held out with a public probability, independently of all others. The
model is fitted to the others. A private quantile of the held-out records' scores is the half width
of intervals, or the threshold of sets.

**Cost.** A record is in one of the two parts, so the cost is a mixture of their costs
(Theorem I1).

**Coverage.** It holds on average over data, random splits and noise, for records that are
exchangeable with those of the fit. The level of the quantile is raised by what its noise may lose
(Theorem I2).

[budget]
epsilon : float, default=1.0
    Privacy budget of the fit and the quantile together; infinite for no noise.
delta : float, optional
    Delta of the budget, far below 1 over the number of records. By default, that of the estimator.
coverage : float, default=0.9
    Share of new records to cover, in (0, 1).
calibration_fraction : float, optional
    Probability that a record is held out, in (0, 1). None follows a rule from public numbers:
    about 2,000 records (more if epsilon is below 1), at least a tenth, at most a half.

[randomness_and_size]
random_state : int or None, default=None
    None draws from the operating system's entropy; a seed gives reproducible research runs.
{size_and_ledger}

[shared_attributes]
estimator_ : estimator
    The model, fitted to the records that were not held out.
coverage_ : float
    The stated coverage: the requested one, or 1.0 if every answer is the whole range.
quantile_ : float
    The released quantile of scores, rounded up.
privacy_ : PrivacyReport
    Joint cost of the fit and the quantile.
n_features_in_ : int
    Number of columns.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the columns, if they had any.

[notes]
Theorem I1, Theorem I2.

Neighbours differ by adding or removing one record, or with ``groups`` one person with all of their
rows. A record is either used for the fit or held out. Each part may therefore use the whole
epsilon, and the fit slightly more than the whole delta.

Coverage is marginal: an average over data, splits and noise, for new records that are exchangeable
with those of the fit. It is not a statement about groups of records, nor about one fit. Only the
quantile may have used the held-out records. A search, or a step that learns, such as
`DPStandardScaler`, therefore belongs inside this estimator. Around this estimator they make the
coverage approximate.

The level of the quantile lies above `coverage` by what its noise may lose in the worst case.
Coverage therefore exceeds the claim, by some ``8 / epsilon`` divided by the number of held-out
records.
"""

from __future__ import annotations

import copy
import functools
import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.base import (
    BaseEstimator,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import number_of_features, number_of_samples, safe_indexing
from skdptune._formatting import shown
from skdptune._secure_random import secure_generator
from skdptune._validation import check_integer, check_share
from skdptune.accounting import (
    PrivacyProfile,
    PrivacyReport,
    calibrate,
    search_on_split,
)
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import (
    GROUPS,
    PUBLIC_SIZE,
    REPLACE,
    Budget,
    Persons,
    as_table,
    assumptions_of,
    budget_owners,
    by_halves,
    check_given,
    check_secret_size,
    check_target_type,
    cost_of,
    first_step,
    forget_seeds,
    groups_of_steps,
    has_cost,
    named_like,
    neighbouring_of,
    no_profile,
    once,
    own_seeds,
    paid_for,
    persons_of,
    private_steps,
    read_targets,
    reads_numbers,
    refused_groups,
    report_of,
    set_budget,
    set_public_size,
    set_seeds,
    suggested_space,
    validate_rows,
    zeroed,
)
from skdptune.calibration._release import refusal_by_persons
from skdptune.ledger._shared import BY_PERSON
from skdptune.mechanisms import private_quantile, quantile_profile
from skdptune.mechanisms._shared import check_seed

_SLACK = 1e-9
# Share of epsilon for the fit: the largest with which both parts cost no more than the total.
_SHARES = (1.0, 0.9999, 0.999)
_LARGEST_DELTA = 1.0 - 1e-9

TEXT = __doc__


# What a fit does, and what it costs --------------------------------------------------------


@dataclass(frozen=True)
class ConformalPlan:
    """The plan of a fit; it follows from parameters and public sizes.

    Attributes
    ----------
    estimator : estimator
        The estimator, with its budget and its public size set.
    n_fitted : int
        Public constant for the number of records in its fit.
    quantile : PrivacyProfile
        Cost of the quantile.
    epsilon : float
        Epsilon of the quantile.
    total : PrivacyProfile
        Joint cost of the fit and the quantile.
    fraction : float
        Probability that a record is held out.
    level : float or None
        Level of the quantile; None if every answer is the whole range.
    steps : int
        Number of steps of the grid of scores.
    """

    estimator: Any
    n_fitted: int
    quantile: PrivacyProfile
    epsilon: float
    total: PrivacyProfile
    fraction: float
    level: float | None
    steps: int


def _foreign_step(estimator: Any) -> Any:
    """Return a step before the model that some record could make fail; None without one."""
    while isinstance(estimator, Pipeline):
        for _, step in estimator.steps[:-1]:
            is_ours = type(step).__module__.startswith("skdptune.")
            if not (is_ours or step is None or isinstance(step, str)):
                return step
        estimator = estimator.steps[-1][1]
    return None


class PrivateConformal(PrivateEstimatorMixin, BaseEstimator):
    """Base class of private intervals and sets: parameters, cost, fit.

    A subclass defines the scores of records and their range.
    """

    # Name of the estimator's kind, the method that scores need, and what the quantile measures.
    _kind: ClassVar[str]
    _response: ClassVar[str]
    _scored: ClassVar[str]
    # Where the parameters of the model are that a schema can set.
    _model_prefix: ClassVar[str] = "estimator__"

    estimator: Any
    delta: float | None  # type: ignore[assignment]
    coverage: float
    calibration_fraction: float | None

    # The cost, before data ------------------------------------------------------------------

    @property
    def neighbouring(self) -> str:  # type: ignore[override]
        """The neighbouring relation: that of the estimator."""
        return neighbouring_of(self.estimator)

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends."""
        return frozenset({"estimator", "epsilon", "delta", "calibration_fraction", "n_public"})

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the cost of a fit, from the parameters and public sizes.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of columns, if the estimator's cost needs it.

        Returns
        -------
        PrivacyProfile

        Notes
        -----
        Theorem I1.
        """
        return self._plan(n_samples, n_features).total

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
        size = self._public_size(n_samples)
        fitted = _expected_size(size, 1.0 - self._fraction(size))
        inner = assumptions_of(self._told(clone(self.estimator), None), fitted, n_features)
        # Theorem F11: the report carries the assumptions of its parts.
        return once((*self._assumptions(), *inner))

    def _assumptions(self) -> tuple[str, ...]:
        return (PUBLIC_SIZE,)

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return the values of the estimator's parameters that are worth searching.

        Parameters
        ----------
        n_samples, n_features : int
            See `privacy_profile`.

        Returns
        -------
        dict of lists
            Empty if the estimator suggests nothing.
        """
        plan = self._plan(n_samples, n_features)
        found = suggested_space(plan.estimator, plan.n_fitted, n_features)
        return {f"estimator__{name}": values for name, values in found.items()}

    def _fraction(self, size: int) -> float:
        """Return the probability that a record is held out."""
        if self.calibration_fraction is not None:
            return self.calibration_fraction
        return held_out_fraction(size, self._checked_budget()[0])

    def _plan(
        self, n_samples: int, n_features: int | None, labels: list[Any] | None = None
    ) -> ConformalPlan:
        """Return the plan of a fit; raise if the estimator cannot be held to the budget."""
        self._check_parameters()
        check_integer(n_samples, name="n_samples", lower=1)
        epsilon, delta = self._checked_budget()
        size = self._public_size(n_samples)
        fraction = self._fraction(size)
        inner = self._told(clone(self.estimator), labels)
        expected = _expected_size(size, 1.0 - fraction)
        set_public_size(inner, expected)
        check_secret_size(inner, expected, n_features)
        # The grid of a mixture needs some slack, so that the quantile's curve ends before epsilon.
        of_quantile = _SHARES[-1] * epsilon
        quantile = quantile_profile(of_quantile)
        for share in _SHARES:
            # Theorem I1: a held-out record is not used in the fit.
            whole = Budget(share * epsilon, min(delta / (1.0 - fraction), _LARGEST_DELTA))
            _share_budget(inner, whole, expected, n_features)
            fit = cost_of(inner, expected, n_features)
            total = _together(fit, quantile, fraction)
            if total.epsilon(delta) <= epsilon:
                break
        else:
            raise ValueError(
                "epsilon must be at least what the estimator costs with its own noise, "
                f"{total.epsilon(delta):.4g} at delta={delta:g}; got {epsilon:g}. Give the "
                "estimator, or the search, any epsilon: this one replaces it."
            )
        steps = grid_steps(size * fraction, of_quantile)
        level = quantile_level(self.coverage, size, fraction, of_quantile, steps)
        return ConformalPlan(inner, expected, quantile, of_quantile, total, fraction, level, steps)

    def _told(self, inner: Any, labels: list[Any] | None) -> Any:
        """Return the estimator with unset parameters filled in from this one."""
        return inner

    def _check_parameters(self) -> None:
        """Validate the parameters, before any data are read."""
        self._checked_budget()
        check_share(self.coverage, name="coverage")
        if self.calibration_fraction is not None:
            check_share(self.calibration_fraction, name="calibration_fraction")
        self._public_size(1)
        check_seed(self.random_state)
        self._check_estimator()

    def _check_estimator(self) -> None:
        estimator = self.estimator
        if not has_cost(estimator):
            raise no_profile(estimator)
        is_right = is_classifier if self._kind == "classifier" else is_regressor
        if not is_right(estimator) or not hasattr(estimator, self._response):
            raise TypeError(
                f"estimator must be a private {self._kind} with {self._response}; got "
                f"{shown(estimator)}."
            )
        step = _foreign_step(estimator)
        if step is not None:
            raise TypeError(
                "estimator must be a model, or a pipeline of steps that accept any record, as "
                f"created by make_private_pipeline; got one with {shown(step)}. Put that step "
                f"before: make_pipeline(step, {type(self).__name__}(model))."
            )
        if neighbouring_of(estimator) == REPLACE:
            raise TypeError(
                "estimator must have a guarantee about adding or removing a record, since "
                f"records are held out at random; got {shown(estimator)}, whose guarantee is "
                "about replacing one."
            )

    # Fitting ----------------------------------------------------------------------------------

    def _input_refusal(self, form: str) -> str | None:
        if form != GROUPS:
            return super()._input_refusal(form)
        # No other step learns from the records; see `_foreign_step`.
        if not isinstance(self.estimator, Pipeline) and not hasattr(
            self.estimator, "_input_refusal"
        ):
            # Searches raise their own errors; for other classes, the report is read after the fit.
            return None
        return refusal_by_persons(self.estimator, self._checked_budget)

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit the model to most records, and release a quantile of the others' scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            In the form that the estimator accepts. A record that the estimator cannot process
            counts as one with the worst score if it is held out: it cannot make the fit fail.
        y : array-like of shape (n_samples,)
            Targets or labels.
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row, if the estimator fits by persons. The guarantee is
            then about adding or removing one person with all of their rows (Theorem P14), and all
            numbers of records are numbers of persons, who are held out with all of their rows.
            Coverage is that of a random row of a new person. A row without a proper id is left
            out.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("privacy_", None)
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        rows, targets, improper, labels = self._read(X, y)
        if persons is not None and persons.kept is not None:
            rows = safe_indexing(rows, np.flatnonzero(persons.kept))
            targets, improper = persons.select(targets), persons.select(improper)
        n_samples = targets.shape[0] if persons is None else persons.size
        # A random part of the data may be empty.
        plan = self._plan(max(n_samples, 1), number_of_features(X), labels)
        self._warn_of_large_delta(self._public_size(n_samples))
        if plan.level is None:
            self._warn_of_few_records(self._public_size(n_samples), _unit(persons))
        # Without a seed, the operating system's entropy.
        seed = check_seed(self.random_state)
        streams = [None] * 3 if seed is None else np.random.SeedSequence(seed).spawn(3)
        coins, fits, noise = streams
        # Theorem I1: each record's part depends only on its own random draw.
        is_held = _generator(coins).random(n_samples) < plan.fraction
        held, of_held = _part(is_held, persons)
        fitted, of_fit = _part(~is_held, persons)
        model = _fitted(plan.estimator, rows, targets, fitted, of_fit, fits)
        scores = self._scores(model, rows, targets, held)
        # Theorem R5: an improper record has the worst score, and changes no other one.
        scores = np.where(improper[held] | np.isnan(scores), 1.0, scores)
        weights = None if of_held is None else of_held.weights
        self._publish(model, plan, self._released(scores, weights, plan, noise), labels, persons)
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], NDArray[np.bool_], Any]:
        """Return rows, targets, which records are improper, and the public labels if any."""
        check_given(y, self)
        labels = self._labels(y)
        check_target_type(y, labels, is_classifier=labels is not None)
        least = 1 if self.n_public is None else 0
        if _reads_numbers(self.estimator):
            takes = get_tags(self.estimator).input_tags
            rows, improper = validate_rows(
                self,
                X,
                accept_sparse=takes.sparse,
                allow_nd=takes.three_d_array,
                min_samples=least,
            )
        else:
            rows = as_table(X)
            improper = np.zeros(number_of_samples(rows), dtype=bool)
        check_consistent_length(rows, y)
        kind = "numbers" if labels is None else "labels"
        targets, improper = read_targets(y, kind, labels, improper)
        if targets.ndim != 1:
            raise ValueError(
                f"y should be a 1d array: y must have one target per record; got shape "
                f"{targets.shape}."
            )
        if _reads_numbers(self.estimator):
            rows = named_like(X, zeroed(rows, improper))
        return rows, targets, improper, labels

    def _labels(self, y: Any) -> list[Any] | None:
        """Return the public labels; None for targets that are numbers."""
        return None

    def _scores(self, model: Any, rows: Any, targets: Any, held: NDArray[Any]) -> NDArray[Any]:
        """Return the scores of the held-out records, in [0, 1] or NaN.

        No record changes the score of another.
        """

        def scores_of(records: NDArray[Any]) -> NDArray[Any]:
            return self._score(model, safe_indexing(rows, records), targets[records])

        def worst(records: NDArray[Any]) -> NDArray[Any]:
            return np.ones(records.size)

        # Overflows and warnings would reveal something about the data.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = by_halves(scores_of, held, worst) if held.size else []
        return np.concatenate([np.zeros(0), *(scores for _, scores in parts)])

    def _score(self, model: Any, rows: Any, targets: Any) -> NDArray[Any]:
        raise NotImplementedError

    def _released(
        self,
        scores: NDArray[Any],
        weights: NDArray[np.int64] | None,
        plan: ConformalPlan,
        noise: Stream,
    ) -> float:
        """Return the noisy quantile of scores, rounded up, in [0, 1]."""
        if plan.level is None:
            return 1.0
        random = _generator(noise)
        found = private_quantile(
            scores, plan.level, 0.0, 1.0, plan.epsilon, random, steps=plan.steps, weights=weights
        )
        # Theorem I2: scores were rounded to the nearest point.
        return min(found + (0.5 + _SLACK) / plan.steps, 1.0)

    def _publish(
        self,
        model: Any,
        plan: ConformalPlan,
        quantile: float,
        labels: Any,
        persons: Persons | None,
    ) -> None:
        self.estimator_ = model
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self.quantile_ = quantile
        self.coverage_ = self.coverage if plan.level is not None else 1.0
        relation = self.neighbouring if persons is None else BY_PERSON[self.neighbouring]
        quantile_part = PrivacyReport(
            plan.quantile,
            0.0,
            name=f"quantile of {self._scored}",
            note=f"coverage {self.coverage_:g}, {plan.fraction:.3g} of the {_unit(persons)}",
            neighbouring=relation,
        )
        parts = report_of(model, None), quantile_part
        self.privacy_ = self._make_report(
            plan.total, self._assumptions(), persons, parts=parts, bound="mixture"
        )

    def _warn_of_few_records(self, size: int, unit: str) -> None:
        enough = records_needed(self.coverage, self._checked_budget()[0], self._fraction(size))
        more = f"at least about {enough}" if enough < 1e12 else "many more"
        warnings.warn(
            f"coverage={self.coverage:g} cannot be guaranteed for {size} {unit} at "
            f"epsilon={self.epsilon:g}, so every answer is the whole range. Use {more} {unit}, "
            "a larger epsilon or less coverage.",
            UserWarning,
            stacklevel=5,
        )

    # Using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Return the model's predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator, for scikit-learn."""
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = copy.deepcopy(get_tags(self.estimator))
            first = first_step(self.estimator)
            tags.input_tags = inner.input_tags if first is None else get_tags(first).input_tags
            tags.regressor_tags = inner.regressor_tags or tags.regressor_tags
            tags.classifier_tags = inner.classifier_tags or tags.classifier_tags
            tags.non_deterministic = inner.non_deterministic or self.random_state is None
        return tags


@functools.lru_cache(maxsize=64)
def _together(fit: PrivacyProfile, quantile: PrivacyProfile, fraction: float) -> PrivacyProfile:
    """Return the joint cost of both parts, by Theorem T3."""
    return search_on_split(fit, quantile, validation_fraction=fraction)


def _reads_numbers(estimator: Any) -> bool:
    """Return whether rows are converted to numbers here; a search reads rows itself."""
    return not getattr(type(estimator), "_is_private_search", False) and reads_numbers(estimator)


def _expected_size(size: int, fraction: float) -> int:
    """Return the public constant for the number of records of a random part (Theorem F3)."""
    return max(1, round(size * fraction))


def _share_budget(inner: Any, budget: Budget, size: int, n_features: int | None) -> None:
    """Set the budget of an estimator, divided among its private steps."""
    owners = budget_owners(inner)
    if len(owners) < 2 or math.isinf(budget.epsilon):
        set_budget(inner, budget)
        return
    each = sum(owner.delta != 0.0 for owner in owners) or 1

    def cost(epsilon: float) -> PrivacyProfile:
        set_budget(inner, Budget(epsilon, budget.delta / each))
        return cost_of(inner, size, n_features)

    # The joint cost of steps is less than the sum of their budgets.
    found = calibrate(cost, budget.epsilon, budget.delta, parameter="budget", guess=budget.epsilon)
    cost(found.value)


Stream = np.random.SeedSequence | None


def _generator(stream: Stream) -> np.random.Generator:
    # Assumption E0: which records are held out must stay secret, too.
    return secure_generator() if stream is None else np.random.default_rng(stream)


def _unit(persons: Persons | None) -> str:
    return "records" if persons is None else "persons"


def _part(
    is_in: NDArray[np.bool_], persons: Persons | None
) -> tuple[NDArray[np.intp], Persons | None]:
    """Return the places of records, or of persons' rows and these persons."""
    places = np.flatnonzero(is_in)
    if persons is None:
        return places, None
    return np.asarray(persons.rows_of(places)), persons.part(places)


def _fitted(
    model: Any,
    rows: Any,
    targets: Any,
    records: NDArray[Any],
    persons: Persons | None,
    seeds: Stream,
) -> Any:
    """Return the model, fitted in place to the given records."""
    own = own_seeds(model)
    if seeds is not None:
        set_seeds(model, seeds)
    # Theorem H4: the ledger records the whole fit.
    with paid_for(model):
        _fit_by_persons(model, safe_indexing(rows, records), targets[records], persons)
    # Theorem F9: models forget the seeds of their fits.
    return model if seeds is None else forget_seeds(model, own)


def _fit_by_persons(model: Any, X: Any, y: Any, persons: Persons | None) -> None:
    if persons is None:
        model.fit(X, y)
    elif isinstance(model, Pipeline):
        # A pipeline that reads the ids from a table has no such column here.
        Pipeline.fit(model, X, y, **groups_of_steps(private_steps(model), persons))
    else:
        model.fit(X, y, groups=persons)
        if report_of(model, None).neighbouring not in BY_PERSON.values():
            # Theorem P14: a class that has another use for groups does not protect persons.
            raise TypeError(refused_groups(type(model).__name__))


# The level at which a private quantile of held-out scores gives a stated coverage ---------------
# **Guarantee.** Given the model, the held-out scores and that of a new record are exchangeable. So
# the new score is at most a quantile of level ``q`` of ``m`` scores with a probability of at least
# ``(q m - L) / (m + 1)``, where ``L`` bounds the ranks that the noise may lose (Theorem I2).

# Number of held-out records with which coverage exceeds the claim by less than 1 %, if epsilon is
# 1 or more.
_ENOUGH_HELD_OUT = 2000.0
_LEAST_FRACTION, _LARGEST_FRACTION = 0.1, 0.5
# Steps of the grid of scores.
_FEWEST_STEPS, _MOST_STEPS = 64, 4096
# Increase of the sensitivity of a rank by rounding (Theorem R1).
_ROUNDING = 2.0**-24
# Settings at which the bound on lost ranks is computed.
_POINTS = 2000


def expected_loss(level: float, epsilon: float, steps: int) -> float:
    """Return the largest number of ranks that a private quantile may lose, in terms of coverage.

    Parameters
    ----------
    level : float
        Level of the quantile, in [0, 1].
    epsilon : float
        Budget of the quantile.
    steps : int
        Number of steps of its grid.

    Notes
    -----
    Theorem I2. A point that is x ranks too low is drawn with a weight of ``exp(-k x)`` relative to
    that of the right one, where ``k`` is the sharpness. The bound is a maximum over the sum of the
    weights of all points that are too low.
    """
    sharpness = epsilon / (2.0 * (max(level, 1.0 - level) + _ROUNDING))
    if math.isinf(sharpness):
        return 0.0
    if sharpness < 1e-300:
        # Its inverse, and sums of it, may exceed all doubles.
        return math.inf
    rest, log_steps = -math.expm1(-sharpness), math.log(steps)
    log_mass = np.linspace(-20.0, log_steps, _POINTS)
    mass = np.exp(log_mass)
    others = 1.0 + (1.0 - rest) * mass
    growth = np.log1p(rest * mass / others)
    # Distance at which all points may lie, and the gain if some of them lie farther.
    reach = np.maximum(log_steps + np.log(others) - log_mass - np.log1p(mass), 0.0)
    loss = reach * mass / (1.0 + mass) + 2.0 * (growth + np.expm1(-growth)) / rest
    # Between two points the function exceeds both by less than a share of 1e-4.
    return min(1.0001 * float(loss.max()), math.log1p(steps)) / sharpness


@functools.lru_cache(maxsize=256)
def quantile_level(
    coverage: float, n_samples: int, fraction: float, epsilon: float, steps: int
) -> float | None:
    """Return the level of a private quantile with which the stated coverage holds.

    Parameters
    ----------
    coverage : float
        In (0, 1).
    n_samples : int
        Number of records; public.
    fraction : float
        Probability that a record is held out.
    epsilon, steps : float, int
        Budget and number of steps of the quantile.

    Returns
    -------
    float or None
        None if no level suffices.

    Notes
    -----
    Theorem I2.
    """
    # The mean of 1 / (m + 1), for the secret number m of records that are held out.
    share = -math.expm1((n_samples + 1) * math.log1p(-fraction)) / ((n_samples + 1) * fraction)

    def excess(level: float) -> float:
        lost = (level + expected_loss(level, epsilon, steps)) * share
        return level - lost - coverage

    if excess(1.0) < 0.0:
        return None
    return min(float(brentq(excess, coverage, 1.0)) + _SLACK, 1.0)


def records_needed(coverage: float, epsilon: float, fraction: float) -> int:
    """Return approximately the least number of records for which a coverage can be stated."""
    lost = expected_loss(1.0, epsilon, _FEWEST_STEPS)
    # It may exceed all doubles.
    return math.ceil(min((1.0 + lost) / (1.0 - coverage) / fraction, 1e18))


def held_out_fraction(n_samples: int, epsilon: float) -> float:
    """Return the probability that a record is held out, by a rule from public numbers."""
    wanted = _ENOUGH_HELD_OUT / (n_samples * min(epsilon, 1.0))
    return min(max(wanted, _LEAST_FRACTION), _LARGEST_FRACTION)


def grid_steps(n_held_out: float, epsilon: float) -> int:
    """Return the number of steps at which the grid costs about as much as the noise."""
    return int(min(max(n_held_out * epsilon, _FEWEST_STEPS), _MOST_STEPS))
