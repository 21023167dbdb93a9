"""Private models of a table whose family follows from public numbers, or from paid scores.

`make_private_pipeline` returns them for "classifier", "regressor" and "auto".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import number_of_samples
from skdptune._formatting import shown
from skdptune._validation import check_integer, check_option
from skdptune.accounting import PrivacyProfile, PrivacyReport, calibrate
from skdptune.base import NoProfileError, PrivateEstimatorMixin
from skdptune.base._shared import (
    GROUPS,
    LOSS_OF_DOUBLING,
    Persons,
    Refusal,
    assumptions_of,
    check_target_type,
    cost_of,
    forget_seeds,
    groups_of_steps,
    hold_persons,
    once,
    own_seeds,
    paid_for,
    persons_of,
    private_steps,
    refused_groups,
    report_of,
    set_public_size,
    set_seeds,
    target_array,
)
from skdptune.calibration._shared import AnswersForFitted
from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.mechanisms import noise_for_budget
from skdptune.mechanisms._shared import check_seed
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._base import squared_error_in
from skdptune.model_selection._choosing import target_in_words
from skdptune.model_selection._cost import PlanRow, SearchPlan
from skdptune.model_selection._grid_search import DPGridSearchCV
from skdptune.model_selection._strategies import FullTable
from skdptune.preprocessing import BoundedScaler, DPStandardScaler, make_private_pipeline
from skdptune.preprocessing._shared import (
    PersonPipeline,
    as_schema,
    check_form,
    check_types,
    ids_in,
)

# The rule -----------------------------------------------------------------------------------
#
# `benchmarks/one_call.py` judges these figures; docs/choosing.md explains them. The strength of a
# signal is the number of records divided by the noise of one Gaussian release of the budget.


class FamilyRule(NamedTuple):
    """The rule by which a family is chosen.

    Attributes
    ----------
    first : str
        The family that is fitted where scores would cost more than they gain.
    others : dict of str to float
        The families that are compared with it, and the least strength of a signal, divided by the
        number of pairs of classes, from which on they are.
    weakest : float
        With a weaker signal, the linear family is fitted.
    records : int
        With fewer records, scores cannot tell families apart.
    per_column : float
        The least strength for each column and pair of classes.
    """

    first: str
    others: Mapping[str, float]
    weakest: float
    records: int
    per_column: float


# Of two classifiers that differ by one point, scores find the better one about three times out of
# four at the least strength and number of records.
RULES = {
    "classifier": FamilyRule("linear", {"net": 1300.0, "boosting": 20_000.0}, 0.0, 2800, 50.0),
    "regressor": FamilyRule("net", {"boosting": 20_000.0, "linear": 20_000.0}, 50.0, 0, 0.0),
}
# Ranges of a linear model are cut at five knots from this number of records on if it predicts
# numbers, and from this strength of the signal on, for each weight, if it predicts classes.
_KNOTS_FROM, _SIGNAL_PER_WEIGHT = 2500, 3.0
# A net learns slowly from columns that fill little of their range. This share of the squared shift
# of the budget pays for the means and scales of columns. Columns of numbers get a standard
# deviation of 1, and are clipped at this many deviations. Indicators are only centred, and are
# multiplied by this size: divided by their deviation, rare categories would have large noise.
# Scales are left out if their epsilon is below the last number, since they would be only noise.
_SHARE_OF_SCALES, _WIDEST, _SIZE_OF_INDICATORS, _LEAST_FOR_SCALES = 0.03, 4.0, 0.5, 1e-4
# If a target range is wide, errors of a net are small in its units. At a clipping norm of 1, its
# noise would hide their gradients. Adam ignores the norm itself.
_CLIPPING = 0.1
# With many columns for each record and unit of noise, a net follows the noise. Its weights then
# decay: by this rate at one column, and at most by the second one.
_DECAY, _LARGEST_DECAY = 20.0, 0.2
# Points that a final fit of a classifier may lose by the noise of a comparison of families, and
# the largest number of doublings of its noise.
_LOSS_OF_COMPARISON, _MOST_DOUBLINGS = 0.35, 0.5
# A search takes no larger one.
_LARGEST_EPSILON = 500.0
_WORDS = {"linear": "a linear model", "boosting": "boosting", "net": "a neural net"}
_NO_TARGET = (
    'schema must describe the target of a {task}, such as target=["no", "yes"] for a classifier '
    "or target=(0, 100) for a regressor; got no target."
)
_TORCH = ("torch", "skorch", "opacus")
_NO_TORCH = "A neural net was left out, since the extra 'nn' is not installed: "
_LOST = {
    "classifier": "if classes have curved boundaries, others classify up to 10 % fewer correctly.",
    "regressor": "on curved targets a linear model explains up to 40 % less of the variance.",
}


def families_for(
    task: str, n_samples: int, shift: float, n_columns: int, n_classes: int = 2, *, has_nets: bool
) -> tuple[tuple[str, ...], str]:
    """Return the families to compare, the preferred one first, and the reasons as a sentence.

    Parameters
    ----------
    task : {"classifier", "regressor"}
    n_samples : int
        Public number of records.
    shift : float
        Inverse noise of one Gaussian release of the budget.
    n_columns : int
        Number of columns of the schema.
    n_classes : int, default=2
        Number of labels; 2 for numbers.
    has_nets : bool
        Whether the packages of the nets are installed.

    Notes
    -----
    Theorem F12.
    """
    rule, strength = RULES[task], n_samples * shift
    least = {
        family: max(needed, rule.per_column * n_columns) * n_classes / 2.0
        for family, needed in rule.others.items()
    }
    others = [family for family in least if strength >= least[family]]
    wanted = (rule.first, *(others if n_samples >= rule.records else ()))
    found = tuple(dict.fromkeys("linear" if each == "net" else each for each in wanted))
    found = wanted if has_nets else found
    lacks_nets = "" if found == wanted else f" {_NO_TORCH}{_LOST[task]}"
    signal = f"the signal is {strength:,.0f} (records divided by the noise of the budget)"
    if strength < rule.weakest:
        why = f"{signal}, and other families need at least {rule.weakest:g}"
        return ("linear",), f"Family: a linear model is fitted, since {why}.{lacks_nets}"
    if len(found) > 1:
        names = ", ".join(_WORDS[family] for family in found)
        why = f"{names} are compared by noisy scores; {signal}, so that they cost little"
        return found, f"Families: {why}.{lacks_nets}"
    why = f"{signal}, and families are compared from {min(least.values()):,.0f} on"
    if n_samples < rule.records:
        why = f"scores of fewer than {rule.records:,} records cannot tell families apart"
    elif len(wanted) > 1:
        why = "nothing else can be fitted"
    return found, f"Family: {_WORDS[found[0]]} is fitted, since {why}.{lacks_nets}"


# The models ---------------------------------------------------------------------------------


class PrivateTableModel(AnswersForFitted, PrivateEstimatorMixin, BaseEstimator):
    """Base class of private models of a table that choose their own family.

    Neighbours differ by adding or removing one record, or one person if the schema names them.

    Notes
    -----
    Theorem F12: only public numbers decide which families are compared. Theorem T8 is the cost of
    a comparison. A single family costs what its fit costs. Theorem P14: persons are passed on to
    the model or to the search.
    """

    _task: ClassVar[str]
    _inside = "model_"

    def __init__(
        self,
        schema: Any,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        family: str = "auto",
        random_state: int | None = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.family = family
        self.random_state = random_state
        self.n_public = n_public
        self.ledger = ledger

    # The choice, before data ----------------------------------------------------------------

    def check_parameters(self) -> None:
        """Validate all parameters; errors say what to write."""
        schema, is_classifier = as_schema(self.schema), self._task == "classifier"
        if schema.target is None:
            raise ValueError(_NO_TARGET.format(task=self._task))
        if len(schema.targets) > 1:
            raise ValueError(
                f"schema must describe one target for a model of a word; got "
                f"{len(schema.targets)} targets. Use make_private_pipeline(DPRidge(), schema)."
            )
        if self.epsilon is None:
            raise ValueError(
                "epsilon must be given, such as epsilon=1.0; got None. It is the total cost of "
                "the model, and a search replaces it by its own total."
            )
        _, delta = self._checked_budget()
        if delta == 0.0:
            raise ValueError(
                "delta must be positive for a model that chooses its family; got 0. Use "
                "DPLogisticRegression or OutputPerturbationLinearRegression for delta=0."
            )
        check_option(self.family, name="family", options=("auto", *_WORDS))
        # The pipeline explains which target suits the task.
        make_private_pipeline(DPLogisticRegression() if is_classifier else DPRidge(), schema)

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the cost of a fit, including the comparison of families if there is one.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of columns.

        Returns
        -------
        PrivacyProfile
        """
        size = self._public_size(check_integer(n_samples, name="n_samples", lower=1))
        return cost_of(self._unfitted(size), size, n_features)

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
        return once(assumptions_of(self._unfitted(size), size, n_features))

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return the families of the task, with the current value of `family` first.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns.

        Returns
        -------
        dict of lists
        """
        usable = [each for each in _WORDS if each != "net" or _has_nets()]
        return {"family": list(dict.fromkeys([self.family, *usable]))}

    def plan(self, n_samples: int, n_features: int | None = None) -> SearchPlan:
        """Return which families are tried, why, and what that costs, before any data are seen.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns.

        Returns
        -------
        SearchPlan
            Prints as a table; its last sentences are about the families.
        """
        size = self._public_size(check_integer(n_samples, name="n_samples", lower=1))
        families, why = self._families(size)
        model = self._unfitted(size)
        schema = as_schema(self.schema)
        target = ""
        if schema.target_bounds is not None:
            n_columns = len(schema.of_features().columns)
            target = target_in_words(schema.target_bounds, size, n_columns, self._checked_budget())
        if len(families) > 1:
            return replace(model.plan(size, n_features, compare=False), advice=why, target=target)
        assumed = assumptions_of(model, size, n_features)
        is_by_persons = self._person_column is not None
        report = self._make_report(cost_of(model, size, n_features), assumed, is_by_persons)
        name, cost = f"one fit: {_WORDS[families[0]]}", report.epsilon_spent
        row = PlanRow(name, cost, cost, None, None, 1.0, 1.0, 1.0)
        uses = {"final fit": (0.0, 1.0)}
        return SearchPlan(report, row, (), None, "", 0.0, advice=why, uses=uses, target=target)

    def _families(self, size: int) -> tuple[tuple[str, ...], str]:
        """Return the families to compare, and why."""
        self.check_parameters()
        if self.family != "auto":
            return (self.family,), f"Family: {_WORDS[self.family]}, as given."
        epsilon, delta = self._checked_budget()
        if epsilon > _LARGEST_EPSILON:
            return ("linear",), "Family: a linear model is fitted, since ε hides nothing."
        schema = as_schema(self.schema)
        sizes = len(schema.of_features().used), len(schema.target_labels or (0, 1))
        shift = 1.0 / noise_for_budget(epsilon, delta)[0]
        return families_for(self._task, size, shift, *sizes, has_nets=_has_nets())

    def _unfitted(self, size: int) -> Any:
        """Return the model of one family, or the search that compares several."""
        families, _ = self._families(size)
        epsilon, delta = self._checked_budget()
        several = [self._of_family(family, (epsilon, delta), size) for family in families]
        model = several[0]
        if len(several) > 1:
            steps, person, scoring = [("family", model)], self._person_column, self._scorer()
            whole = Pipeline(steps) if person is None else PersonPipeline(steps, person=person)
            model = DPGridSearchCV(
                whole, {"family": several}, epsilon=epsilon, delta=delta, scoring=scoring,
                strategy=self._comparison(epsilon, size),
            )  # fmt: skip
        if self.n_public is not None:
            set_public_size(model, size)
        return model

    def _of_family(self, family: str, budget: tuple[float, float], size: int) -> Any:
        raise NotImplementedError

    def _scorer(self) -> BoundedScorer | None:
        return None

    def _comparison(self, epsilon: float, size: int) -> FullTable:
        """Return the table of noisy scores by which families are compared."""
        # The noisy fits of a comparison prefer the family that noise harms least. In a regression,
        # another family than the first one must therefore be better by a margin.
        return FullTable()

    # Fitting and using ----------------------------------------------------------------------

    @property
    def _person_column(self) -> str | None:
        return as_schema(self.schema).person

    def ids_of(self, X: Any, params: Mapping[str, Any]) -> Any:
        """Return the column of ids; raise if arguments of a fit hold groups, too."""
        return ids_in(X, self._person_column, params)

    def _input_refusal(self, form: str) -> str | None:
        return None if form == GROUPS else super()._input_refusal(form)

    def _check_fit(self, given: Mapping[str, Any]) -> None:
        """Refuse a table or targets of another form than the schema's."""
        schema, X, y = as_schema(self.schema), given["X"], given.get("y")
        check_form(X, schema.columns, schema.target_names)
        check_types(X, schema.columns)
        if y is not None:
            labels = schema.target_labels
            check_target_type(y, labels, is_classifier=labels is not None)
            target_array(y)

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Choose the family and fit it privately.

        Parameters
        ----------
        X : DataFrame, ndarray or list of rows
            A table with the columns of the schema.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row, if the schema names no column with them. The
            guarantee is then about adding or removing one person with all of their rows (Theorem
            P14), and all numbers of records are numbers of persons.

        Returns
        -------
        self
        """
        # An interrupted fit leaves no model, nor that of an earlier fit.
        for name in ("privacy_", "model_", "family_"):
            self.__dict__.pop(name, None)
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        if persons is None and self._person_column is not None:
            raise TypeError(refused_groups("a fit inside of another one"))
        size = self._public_size(number_of_samples(X) if persons is None else persons.size)
        if size < 1:
            raise ValueError("X must have records; got 0 sample(s), and at least 1 is needed.")
        self._warn_of_large_delta(size)
        model = self._unfitted(size)
        own, seed = own_seeds(model), check_seed(self.random_state)
        if seed is not None:
            set_seeds(model, np.random.SeedSequence(seed))
        # Theorem H4: the ledger records the whole fit.
        with paid_for(model):
            model.fit(X, y, **_groups_for(model, persons))
        inner = report_of(model, size)
        # Theorem F9: models forget the seeds of their fits.
        self.model_ = model if seed is None else forget_seeds(model, own)
        self.family_ = _family_of(model)
        self.privacy_ = self._around(inner)
        return self

    def _around(self, inner: PrivacyReport) -> PrivacyReport:
        """Return the report of the whole, with that of the model or search as its part."""
        whole = self._make_report(inner.profile)
        has_spent_all = whole.epsilon_spent <= (self.epsilon or 0.0)
        return PrivacyReport(
            inner.profile,
            whole.delta,
            epsilon=self.epsilon if has_spent_all else None,
            name=type(self).__name__,
            note=f"family: {self.family_}",
            parts=(inner,),
            neighbouring=inner.neighbouring,
            bound=inner.bound,
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted targets.

        Parameters
        ----------
        X : table
            With the columns of the schema.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        found = np.asarray(self.model_.predict(X))
        bounds = self._task == "regressor" and self.schema.target_bounds
        # No target lies outside its range, whatever the family predicts.
        return np.clip(found, *bounds) if bounds else found

    def __sklearn_tags__(self) -> Any:
        """Declare that any cell is accepted, and that fits are noisy."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


class PrivateTableClassifier(ClassifierMixin, PrivateTableModel):
    """Private classifier of a table that chooses its own family.

    Create it by ``make_private_pipeline("classifier", schema, epsilon=..., delta=...)``.

    Parameters
    ----------
    schema : Schema
        Description of the columns, and of the labels as the target.
    epsilon, delta : float
        Total budget of the fit and of the comparison of families.
    family : {"auto", "linear", "boosting", "net"}, default="auto"
        "auto" follows a rule of public numbers. Where the signal is strong, it compares families
        by noisy scores, which are paid for. Nets need the extra ``nn``.
    random_state : int, optional
        Seed of all noise, for research only.
    n_public : int, optional
        Public constant in place of the number of records.
    ledger : PrivacyLedger, optional
        Ledger that records the fit.

    Attributes
    ----------
    family_ : str
        The chosen family.
    model_ : estimator
        The fitted model: a pipeline, boosting, or the search that compared families.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    privacy_ : PrivacyReport
        The cost of all.

    Notes
    -----
    Neighbours differ by adding or removing one record, or one person with all of their rows if
    the schema names a column of persons. Theorem F12, Theorem T8, Theorem P14.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdptune.preprocessing import Schema, make_private_pipeline
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 80, 2000)})
    >>> y = np.where(people.age > 50, "yes", "no")
    >>> schema = Schema({"age": (18, 80)}, target=["no", "yes"])
    >>> model = make_private_pipeline("classifier", schema, epsilon=2.0, random_state=0)
    >>> model.fit(people, y).family_, model.score(people, y) > 0.9
    ('linear', True)
    """

    _task = "classifier"

    @property
    def classes(self) -> list[Any] | None:
        """The labels of the schema."""
        return as_schema(self.schema).target_labels

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        labels: NDArray[Any] = self._fitted("classes_")
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the labels.

        Parameters
        ----------
        X : table
            With the columns of the schema.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self.model_.predict_proba(X))

    def _comparison(self, epsilon: float, size: int) -> FullTable:
        # Noise harms nets more than linear models: the largest score seldom prefers a net wrongly.
        # With three times the noise, scores often miss that a net is better, with twice seldom.
        doublings = min(_LOSS_OF_COMPARISON * epsilon * size / LOSS_OF_DOUBLING, _MOST_DOUBLINGS)
        return FullTable(choose_by="max", noise_limit=2.0**doublings)

    def _of_family(self, family: str, budget: tuple[float, float], size: int) -> Any:
        schema = as_schema(self.schema).of_features()
        if family == "boosting":
            return DPExplainableBoostingClassifier(*budget, schema=schema)
        if family == "linear":
            model = DPLogisticRegression(*budget)
            made = make_private_pipeline(model, schema)
            weights = made[0].n_features_out * len(self.classes or (0, 1)) / 2.0
            if size >= _SIGNAL_PER_WEIGHT * weights * noise_for_budget(*budget)[0]:
                return made
            return make_private_pipeline(model, schema, n_knots=None)
        from skdptune.neural_network import DPNeuralNetClassifier as Net

        net = Net(epsilon=budget[0], delta=budget[1])
        return _with_scales(make_private_pipeline(net, schema, n_knots=None), budget, size)


class PrivateTableRegressor(RegressorMixin, PrivateTableModel):
    """Private regression of a table that chooses its own family.

    Create it by ``make_private_pipeline("regressor", schema, epsilon=..., delta=...)``.

    Parameters
    ----------
    schema : Schema
        Description of the columns, and of the range of the target.
    epsilon, delta : float
        Total budget of the fit and of the comparison of families.
    family : {"auto", "linear", "boosting", "net"}, default="auto"
        "auto" follows a rule of public numbers. Where the signal is strong, it compares families
        by noisy scores, which are paid for. Nets need the extra ``nn``.
    random_state : int, optional
        Seed of all noise, for research only.
    n_public : int, optional
        Public constant in place of the number of records.
    ledger : PrivacyLedger, optional
        Ledger that records the fit.

    Attributes
    ----------
    family_ : str
        The chosen family.
    model_ : estimator
        The fitted model: a pipeline, boosting, or the search that compared families.
    privacy_ : PrivacyReport
        The cost of all.

    Notes
    -----
    Neighbours differ by adding or removing one record, or one person with all of their rows if
    the schema names a column of persons. Theorem F12, Theorem T8, Theorem P14.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.preprocessing import Schema, make_private_pipeline
    >>> X = np.random.default_rng(0).uniform(0.0, 1.0, size=(200, 2))
    >>> schema = Schema({"a": (0, 1), "b": (0, 1)}, target=(0, 2))
    >>> model = make_private_pipeline("regressor", schema, epsilon=0.7, random_state=0)
    >>> model.fit(X, X.sum(axis=1)).family_, model.score(X, X.sum(axis=1)) > 0.5
    ('linear', True)
    """

    _task = "regressor"

    def _scorer(self) -> BoundedScorer:
        return squared_error_in(as_schema(self.schema).target_bounds or 1.0)

    def _of_family(self, family: str, budget: tuple[float, float], size: int) -> Any:
        schema = as_schema(self.schema).of_features()
        if family == "boosting":
            return DPExplainableBoostingRegressor(*budget, schema=schema)
        if family == "linear":
            n_knots = 5 if size >= _KNOTS_FROM else None
            return make_private_pipeline(DPRidge(*budget), schema, n_knots=n_knots)
        from skdptune.neural_network import DPNeuralNetRegressor as Net

        net = Net(epsilon=budget[0], delta=budget[1], max_grad_norm=_CLIPPING)
        made = make_private_pipeline(net, schema, n_knots=None)
        columns_of_noise = made[0].n_features_out * noise_for_budget(*budget)[0]
        decay = min(_LARGEST_DECAY, _DECAY * columns_of_noise / size)
        made[-1].set_params(optimizer__weight_decay=decay)
        return _with_scales(made, budget, size)


def _with_scales(made: Pipeline, budget: tuple[float, float], size: int) -> Pipeline:
    """Return a pipeline that also scales encoded columns, within the budget of its net.

    Notes
    -----
    Theorem R3, Theorem C1.
    """
    epsilon, delta = budget
    of_scales = math.inf
    if math.isfinite(epsilon):
        shift = math.sqrt(_SHARE_OF_SCALES) / noise_for_budget(epsilon, delta)[0]
        of_scales = PrivacyProfile.gaussian(shift).epsilon(delta)
    if of_scales < _LEAST_FOR_SCALES:
        return made
    # Which columns are indicators is public, as the schema is.
    is_number = made[0].is_number
    scaler = DPStandardScaler(of_scales, delta, bounds=(-1.0, 1.0), with_std=is_number)
    ends = np.where(is_number, _WIDEST, _WIDEST / _SIZE_OF_INDICATORS)
    clipped = BoundedScaler((-ends, ends), feature_range=(-_WIDEST, _WIDEST))
    made.steps[-1:-1] = [("dpstandardscaler", scaler), ("boundedscaler", clipped)]
    net = made[-1]
    if math.isinf(epsilon):
        return made

    def cost(of_net: float) -> PrivacyProfile:
        net.set_params(epsilon=of_net)
        return cost_of(made, size, None)

    found = calibrate(cost, epsilon, delta, parameter="budget", guess=epsilon, stride=0.02)
    net.set_params(epsilon=found.value)
    return made


_MODELS = {"classifier": PrivateTableClassifier, "regressor": PrivateTableRegressor}
_BAD_WORD = 'Use "classifier", "regressor", "auto" for the task of the schema, or an estimator.'


def table_model(word: str, schema: Any, **settings: Any) -> PrivateTableModel:
    """Return the model of a word that `make_private_pipeline` was given, after all checks."""
    given = as_schema(schema)
    if word == "auto":
        word = "regressor" if given.target_bounds is not None else "classifier"
    if word not in _MODELS:
        raise NoProfileError(
            Refusal(
                shown(word), "it has no fit", _BAD_WORD, demand="estimator must be an estimator"
            )
        )
    model = _MODELS[word](given, **settings)
    model.check_parameters()
    return model


def _groups_for(model: Any, persons: Persons | None) -> dict[str, Any]:
    """Return the argument with which a model, or a step of it, gets persons."""
    if persons is None or hold_persons([getattr(model, "estimator", None)]):
        return {}
    if isinstance(model, Pipeline):
        return groups_of_steps(private_steps(model), persons)
    return {"groups": persons}


def _has_nets() -> bool:
    return all(find_spec(name) is not None for name in _TORCH)


def _family_of(model: Any) -> str:
    """Return the family of a fitted model."""
    while isinstance(model, Pipeline | DPGridSearchCV):
        model = model[-1] if isinstance(model, Pipeline) else model.best_estimator_
    kinds = {"Boosting": "boosting", "Net": "net"}
    return next((kinds[each] for each in kinds if each in type(model).__name__), "linear")
