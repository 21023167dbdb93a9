"""Base class of the private linear classifiers: parameters, cost, fit and decisions."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import number_of_features, validated_rows
from skdptune._formatting import shown
from skdptune._validation import (
    check_flag,
    check_integer,
    check_option,
    check_real,
)
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    DECLARE_LABELS,
    PARTS,
    PUBLIC_LABELS,
    PUBLIC_SIZE,
    PUBLIC_WEIGHTS,
    ZERO_OUT,
    PrivateRows,
    Records,
    check_class_weight,
    check_classes,
    label_set,
    labels_of_chunk,
    persons_of,
    refuse_arguments,
    validate_records,
    weights_of_classes,
)
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._regression import check_models, copy_features
from skdptune.linear_model._solver_choice import (
    AUTO,
    CLIPPING_SOLVERS,
    PRECONDITIONED,
    SOLVERS,
    Fit,
    active_solver,
    batch_size_of,
    follows_noise,
    max_grad_norm_of,
    solver_of,
    strength_of,
)
from skdptune.linear_model._solvers import (
    OPTIMIZERS,
    PERMUTATION_ASSUMPTION,
    SGD_LEARNING_RATE,
    Design,
    DesignInParts,
    MarginLoss,
    default_learning_rate,
    initial_weights,
    margin_residuals,
    noise_generator,
    row_norm,
)
from skdptune.mechanisms._shared import MAX_EPOCHS, SAMPLINGS, check_noise_and_budget

# Bounds on C within which the regularization does not overflow.
LEAST_C, LARGEST_C = 1e-15, 1e15
# Values to search in addition to the current one, in units of it or of the value for None.
_RATES, _NORMS, _STRENGTHS = (0.5, 2.0), (1.0 / 3.0, 3.0), (0.1, 10.0)
# Values to search in addition to the rules of "preconditioned": they lost almost nothing on any
# data.
_RATES_BY_RULE, _NORMS_BY_RULE = (2.0,), (2.0,)
_BUDGET = frozenset({"solver", "epsilon", "delta", "noise_multiplier"})
# With these parameters "auto" may choose another solver.
_CHOOSING = frozenset({"batch_size", "sampling", "epochs"})
_DESCENT = _BUDGET | {"epochs", "batch_size", "sampling", "n_public"}
_COST_PARAMETERS = {
    # The cost includes determinants, which depend on the rows' norm and the regularization.
    "objective": _BUDGET | {"C", "data_norm", "fit_intercept", "classes"},
    # Its cost does not depend on data_norm, but needs it if the number of features is unknown.
    "output": _BUDGET | {"data_norm", "classes"},
    # All others decide which steps are too long, and whether the run is possible.
    "psgd": _BUDGET
    | {"C", "data_norm", "fit_intercept", "classes", "batch_size", "learning_rate", "n_public"},
    "preconditioned": _BUDGET | {"epochs"},
    "sgd": _DESCENT,
    "adam": _DESCENT,
}


class PrivateLinearClassifier(PrivateEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Base class of the private linear classifiers; a subclass defines the loss."""

    _loss: ClassVar[MarginLoss]
    # Whether the cost is that of a fit by persons: only in copies made by `_by_persons`.
    _is_by_persons = False
    # Initial intercepts of "preconditioned" for more than two classes.
    _first_intercept: ClassVar[float] = 0.0

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        solver: str = "auto",
        C: float | None = None,
        data_norm: float | None = None,
        classes: Sequence[Any] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        epochs: float | Literal["max"] | None = None,
        batch_size: int | float | None = None,
        sampling: str = "poisson",
        learning_rate: float | None = None,
        max_grad_norm: float | None = None,
        noise_multiplier: float | None = None,
        tol: float = 1e-12,
        max_iter: int = 300,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.C = C
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.epochs = epochs
        self.batch_size = batch_size
        self.sampling = sampling
        self.learning_rate = learning_rate
        self.max_grad_norm = max_grad_norm
        self.noise_multiplier = noise_multiplier
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_public = n_public
        self.ledger = ledger

    # The cost, before data ----------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the cost of a fit, from the parameters and public sizes only.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of features; needed by "objective" if ``data_norm`` is not given.

        Returns
        -------
        PrivacyProfile
        """
        return self._plan_before_data(n_samples, n_features).profile

    def _plan_before_data(self, n_samples: int, n_features: int | None) -> Any:
        """Return the solver's plan: its noise, its constants and their cost."""
        self._check_parameters()
        n_samples = self._public_size(check_integer(n_samples, name="n_samples", lower=1))
        n_classes = 2 if self.classes is None else len(self.classes)
        return active_solver(self).plan(self, n_samples, n_features, n_classes)

    def _by_persons(self) -> Self:
        """Return what states the cost of fits by persons: a copy if the cost is another one."""
        if solver_of(self) != "objective":
            return self
        made = copy.copy(self)
        made._is_by_persons = True
        return made

    def _check_parameters(self) -> None:
        """Validate the parameters, before any data are read."""
        check_option(self.solver, name="solver", options=(AUTO, *SOLVERS))
        check_option(self.sampling, name="sampling", options=SAMPLINGS)
        self._check_public_size()
        if self.noise_multiplier is not None:
            check_real(self.noise_multiplier, name="noise_multiplier", lower=0.0, lower_open=True)
        if self._takes_most_steps():
            self._check_most_steps()
        elif self.noise_multiplier is None:
            self._checked_budget()
        else:
            self._checked_delta()
        self._check_problem()
        self._check_iteration()

    def _takes_most_steps(self) -> bool:
        """Return whether a fit takes all steps of a given noise that its budget pays for."""
        return isinstance(self.epochs, str) and self.epochs == MAX_EPOCHS

    def _check_most_steps(self) -> None:
        """Refuse to find the number of steps without steps, noise or budget."""
        if solver_of(self) not in OPTIMIZERS:
            raise ValueError(
                f"epochs must be a number with solver={shown(self.solver)}; got "
                f"{MAX_EPOCHS!r}. Use solver='sgd' or 'adam', whose steps are paid for one by "
                "one."
            )
        check_noise_and_budget(self.noise_multiplier, self.epsilon, self.delta)

    def _check_problem(self) -> None:
        """Validate the parameters of the objective."""
        if self.C is not None:
            check_real(self.C, name="C", lower=LEAST_C, upper=LARGEST_C)
        # 0.5 would fit an intercept for which no noise is added.
        check_flag(self.fit_intercept, name="fit_intercept")
        if self.data_norm is not None:
            check_real(self.data_norm, name="data_norm", lower=1e-100, upper=1e7)
        check_classes(self.classes)
        check_class_weight(self.class_weight, self.classes)

    def _check_iteration(self) -> None:
        """Validate the parameters of the minimisation."""
        if self.max_grad_norm is not None:
            check_real(
                self.max_grad_norm, name="max_grad_norm", lower=0.0, lower_open=True, upper=1e100
            )
        if self.epochs is not None and not self._takes_most_steps():
            hint = f"Or {MAX_EPOCHS!r}, together with noise_multiplier and a budget."
            check_real(
                self.epochs, name="epochs", lower=0.0, lower_open=True, upper=1e9, hint=hint
            )
        check_real(self.tol, name="tol", lower=0.0, upper=1e-2)
        check_integer(
            self.max_iter,
            name="max_iter",
            lower=100,
            hint="The guarantee needs the minimum, so the iteration is never cut short.",
        )
        if self.learning_rate is not None:
            check_real(self.learning_rate, name="learning_rate", lower=0.0, lower_open=True)
        if isinstance(self.batch_size, float):
            check_real(self.batch_size, name="batch_size", lower=0.0, lower_open=True, upper=1.0)
        elif self.batch_size is not None:
            check_integer(self.batch_size, name="batch_size", lower=1)

    def _check_public_size(self) -> None:
        """Refuse to hide the number of records if a proof needs it."""
        if self.n_public is None:
            return
        check_integer(self.n_public, name="n_public", lower=1)
        if self.solver == "psgd":
            raise ValueError(
                "n_public must be None with solver='psgd', whose guarantee needs the number of "
                f"records; got {shown(self.n_public)}. Use another solver."
            )
        if solver_of(self) in OPTIMIZERS and self.sampling == "fixed":
            raise ValueError(
                "n_public must be None with sampling='fixed', whose cost depends on the share of "
                f"all records that a batch has; got {shown(self.n_public)}. Use "
                "sampling='poisson' or 'allocation'."
            )

    @property
    def noise_parameter(self) -> str | None:
        """Name of the parameter that sets the noise of a fit and changes nothing else, or None.

        If it is given in place of `epsilon`, the same noise gives the same fit. The name is None
        for "objective", which raises its regularization by `epsilon`, and for "psgd", which plans
        its steps. It is also None with "max" epochs: the noise then sets the number of steps
        instead, and `epsilon` the cost.
        """
        if self._takes_most_steps():
            return None
        return "noise_multiplier" if solver_of(self) in (*CLIPPING_SOLVERS, "output") else None

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends, with the current solver.

        Two estimators that are both valid and differ only in other parameters have the same cost.
        """
        # An unknown solver is refused when its cost is computed.
        names = _COST_PARAMETERS.get(solver_of(self), frozenset(self.get_params(deep=False)))
        return names | _CHOOSING if self.solver == AUTO and self.delta != 0.0 else names

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in units of a record's influence.

        If it is given as ``noise_multiplier`` instead of a budget, the noise is the same.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of features; needed if ``data_norm`` is, as for `privacy_profile`.

        Returns
        -------
        float
            Standard deviation of the noise divided by the largest clipped gradient ("objective",
            "sgd", "adam") or by the sensitivity of the weights ("output", "psgd"). If ``delta`` is
            0, the scale of the noise's norm divided by the same.
        """
        return float(self._plan_before_data(n_samples, n_features).noise_multiplier)

    def fixed_epochs(self, n_samples: int, n_features: int | None = None) -> dict[str, float]:
        """Return the number of epochs for "max", under the name of the parameter.

        Together with the same ``noise_multiplier`` it gives the same fit, whatever ``epsilon`` is.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        dict
            Empty if the number of epochs is given.
        """
        if not self._takes_most_steps():
            return {}
        return {"epochs": float(self._plan_before_data(n_samples, n_features).epochs)}

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return parameters with which a fit on fewer records resembles the final fit.

        Parameters
        ----------
        n_tune : int
            Number of records, or its public expectation, that the search fits on.
        n_final : int
            Number of records, or its public expectation, of the final fit of this estimator.

        Returns
        -------
        dict
            To be set by ``set_params`` on a copy that is fitted on `n_tune` records.

        Notes
        -----
        *C* is multiplied by ``n_final / n_tune``. Every solver adds ``norm(weights)**2 / (2 C)``
        to the *sum* of the losses, so this keeps the regularization per record, ``1 / (C n)``.

        *batch_size* becomes the share of the records that it has for `n_final`: the sampling rate
        stays the same, and with it the number of steps, the noise multiplier and the cost.

        *learning_rate* of "sgd" is multiplied by ``n_tune / n_final`` (Koskela and Kulkarni 2023,
        arXiv:2301.11989, section 3.2; van der Veen et al. 2018). A step divides noise of a fixed
        size by the batch, so this keeps the noise of a step on the weights, ``rate * noise / B``.
        "adam" divides each step by its own size and keeps its rate. "psgd" keeps it too, since its
        steps follow the mean of the losses. The rate that "preconditioned" multiplies by it
        already follows the number of records.

        "objective" and "output" add noise of a size that does not depend on the number of records.
        On fewer records they have more noise relative to their signal, and no parameter changes
        that.

        Examples
        --------
        >>> from skdptune.linear_model import DPLogisticRegression
        >>> model = DPLogisticRegression(solver="sgd", batch_size=100, learning_rate=4.0, C=0.5)
        >>> model.tuning_parameters(n_tune=500, n_final=2000)
        {'C': 2.0, 'batch_size': 0.05, 'learning_rate': 1.0}
        """
        self._check_parameters()
        n_tune = check_integer(n_tune, name="n_tune", lower=1)
        n_final = check_integer(n_final, name="n_final", lower=1)
        values: dict[str, Any] = {}
        solver = solver_of(self)
        if not follows_noise(self):
            values["C"] = min(strength_of(self) * (n_final / n_tune), LARGEST_C)
        if solver in OPTIMIZERS or solver == "psgd":
            share = batch_size_of(self)
            values["batch_size"] = share if isinstance(share, float) else min(share / n_final, 1.0)
        if solver == "sgd":
            rate = SGD_LEARNING_RATE if self.learning_rate is None else self.learning_rate
            values["learning_rate"] = rate * (n_tune / n_final)
        return values

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return values that are worth searching in addition to the current ones.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of features; without it the clipping norm of "preconditioned" is not searched if
            it follows a rule.

        Returns
        -------
        dict of lists
            By parameter. The first value is the current one, None if that follows a rule. A search
            varies one parameter at a time.

        Notes
        -----
        "preconditioned", in addition to its rules: twice the learning rate and twice the clipping
        norm. Half the rate and a regularization are omitted: they lost up to 3.6 and 16 points. In
        addition to given values, and with "sgd" and "adam": half and twice the rate, a third and
        three times the norm. In addition to `C` if it is given, and with the other solvers: a
        tenth and ten times of it. `docs/defaults.md` says what these gained and lost.

        Examples
        --------
        >>> from skdptune.linear_model import DPLogisticRegression
        >>> DPLogisticRegression(epsilon=1.0).suggested_space(n_samples=10_000)
        {'learning_rate': [None, 2.0]}
        """
        check_integer(n_samples, name="n_samples", lower=1)
        if n_features is not None:
            check_integer(n_features, name="n_features", lower=1)
        self._check_parameters()
        solver = solver_of(self)
        if solver == PRECONDITIONED:
            return self._around_rules(n_samples, n_features)
        if solver == "psgd" and self.learning_rate is not None:
            # With another regularization its steps may be too long.
            return {"C": [self.C]}
        if solver not in OPTIMIZERS:
            return {"C": _around(self.C, strength_of(self), _STRENGTHS, LEAST_C, LARGEST_C)}
        rate = default_learning_rate(solver, self._plan_before_data(n_samples, n_features).steps)
        return {
            "learning_rate": _around(self.learning_rate, rate, _RATES),
            "max_grad_norm": _around(self.max_grad_norm, max_grad_norm_of(self), _NORMS),
        }

    def _around_rules(self, n_samples: int, n_features: int | None) -> dict[str, list[Any]]:
        space: dict[str, list[Any]] = {}
        if self.C is not None:
            space["C"] = _around(self.C, self.C, _STRENGTHS, LEAST_C, LARGEST_C)
        # In units of the rule's value.
        rates = _RATES_BY_RULE if self.learning_rate is None else _RATES
        space["learning_rate"] = _around(self.learning_rate, 1.0, rates)
        if self.max_grad_norm is not None:
            space["max_grad_norm"] = _around(self.max_grad_norm, self.max_grad_norm, _NORMS)
        elif n_features is not None:
            plan = self._plan_before_data(n_samples, n_features)
            norm = plan.clipping_share(n_features + int(self.fit_intercept))
            space["max_grad_norm"] = _around(None, norm, _NORMS_BY_RULE)
        return space

    # Fitting --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        *,
        groups: Any = None,
        **refused: Any,
    ) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features), or PrivateRows
            Rows longer than ``data_norm`` are shortened to it. A record with entries that are not
            finite numbers, or whose label is missing or not among ``classes``, counts as a row of
            zeros with the first label: it cannot make the fit fail. With "preconditioned", "sgd"
            or "adam", and given ``classes``, rows may lie in parts: see `PrivateRows`.
        y : array-like of shape (n_samples,)
            Labels; None with `PrivateRows`.
        coef_init : array-like of the shape of ``coef_``, optional
            Starting values of "preconditioned", "sgd" and "adam"; zeros by default. They must not
            depend on the data, except through a release that is charged separately, such as an
            earlier private fit.
        intercept_init : array-like of the shape of ``intercept_``, optional
            The same for intercepts.
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row: text or whole numbers. The guarantee is then about
            adding or removing one person with all of their rows (Theorem P14), and all numbers of
            records are numbers of persons. Each clipped gradient of a row counts by one over the
            number of its person's rows. A row without a proper id is left out. The proof of
            "objective" is another one (Theorem M8), and costs more noise if `C` is large.

        Returns
        -------
        self
        """
        self._check_parameters()
        given = {"coef_init": coef_init, "intercept_init": intercept_init, "refused": refused}
        self._check_fit({"X": X, **given})
        # An interrupted fit leaves no model, nor that of an earlier fit.
        self.__dict__.pop("privacy_", None)
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        rows, fit = self._begun(X, y, persons, given, {})
        # A warning of overflow would reveal something about the data.
        with np.errstate(all="ignore"):
            _fit_together(rows, [(0, fit)], [self], return_exceptions=False)
        return self

    @classmethod
    def fit_many(
        cls,
        estimators: Sequence[PrivateLinearClassifier],
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Fit many classifiers, with shared passes over the data for "preconditioned".

        Each fit is the same as a separate one with the same seed. Their joint cost is the
        composition of their costs, unless only a selection among them is shown.

        Parameters
        ----------
        estimators : sequence of private linear classifiers
            They may differ in all parameters.
        X, y, groups
            As for `fit`.
        return_exceptions : bool, default=False
            Whether the exception of a failing fit is put in the result instead of raised.

        Returns
        -------
        list
            The estimators, fitted in place.
        """
        models = check_models(estimators, PrivateLinearClassifier, "a private linear classifier")
        for model in models:
            model._check_fit({"X": X})
        for model in models:
            model.__dict__.pop("privacy_", None)
        persons = persons_of(groups, X, may_be_empty=True)
        known: dict[str, _Read] = {}
        outcomes = list(models)
        # Fits that read the same design, with one loss, share their passes.
        together: dict[Any, tuple[_Read, list[tuple[int, Fit]]]] = {}
        with np.errstate(all="ignore"):
            for place, model in enumerate(models):
                try:
                    rows, fit = model._begun(X, y, persons, {}, known)
                except Exception as problem:
                    if not return_exceptions:
                        raise
                    outcomes[place] = problem
                    continue
                key = type(model), id(rows), None if model.shares_passes else place
                together.setdefault(key, (rows, []))[1].append((place, fit))
            for rows, chosen in together.values():
                _fit_together(rows, chosen, outcomes, return_exceptions)
        return outcomes

    @property
    def shares_passes(self) -> bool:
        """Whether `fit_many` reads the records for several fits at the same time."""
        return solver_of(self) == PRECONDITIONED

    def _begun(
        self,
        X: Any,
        y: Any,
        persons: Any,
        given: Mapping[str, Any],
        known: dict[str, _Read],
    ) -> tuple[_Read, Fit]:
        """Return the rows as the solver, or an equal fit before, reads them, and the fit."""
        key = repr(
            (
                None if self.classes is None else list(self.classes),
                None if self.class_weight is None else dict(self.class_weight),
                *(self.data_norm, self.fit_intercept, self.n_public is None, solver_of(self)),
            )
        )
        if key not in known:
            known[key] = self._read(X, y, persons)
        rows = known[key]
        copy_features(rows.reader, self)
        self.classes_ = rows.reader.classes_
        n_features, n_samples = self.n_features_in_, self._public_size(rows.size)
        self._warn_of_large_delta(n_samples)
        planned = self if persons is None else self._by_persons()
        plan = active_solver(self).plan(planned, n_samples, n_features, len(self.classes_))
        start = self._start(given, n_features, len(self.classes_))
        return rows, Fit(self, plan, noise_generator(self.random_state), start)

    def _read(self, X: Any, y: Any, persons: Any) -> _Read:
        """Return the rows, with the labels of `classes_`."""
        read: Any = None
        if isinstance(X, PrivateRows):
            X.check_columns(self)
            size = X.size_of_fit(self.n_public)
        else:
            read = self._validated(X, y)
            if persons is not None:
                read = Records(*map(persons.select, read))
            size = read.X.shape[0] if persons is None else persons.size
        self.classes_ = self._label_set(None if read is None else read.y)
        bounded = _Bounded(
            self.classes_,
            weights_of_classes(self.class_weight, self.classes_),
            self._row_bound(self.n_features_in_),
            self.fit_intercept,
        )
        if read is None:
            width = self.n_features_in_ + int(self.fit_intercept)
            design: Any = DesignInParts(X, bounded.of_chunk, width, self.fit_intercept)
            return _Read(self, persons, size, design, None)
        with np.errstate(all="ignore"):
            design, codes = bounded(read)
        return _Read(self, persons, size, design.by_persons(persons), codes)

    def _ended(self, rows: _Read, plan: Any, weights: np.ndarray) -> None:
        """Keep the weights, shape (width, n_outputs), and report their cost."""
        self._set_weights(weights.T)
        self.plan_ = plan
        self.solver_ = solver_of(self)
        n_samples = self._public_size(rows.size)
        assumptions = self.privacy_assumptions(n_samples, self.n_features_in_)
        self.privacy_ = self._make_report(plan.profile, assumptions, rows.persons)

    def _input_refusal(self, form: str) -> str | None:
        if form == PARTS and solver_of(self) not in CLIPPING_SOLVERS:
            return "Use solver='preconditioned', 'sgd' or 'adam'."
        if form == PARTS and self.classes is None:
            return DECLARE_LABELS
        return None

    def _check_fit(self, given: Mapping[str, Any]) -> None:
        """Refuse arguments that `fit` cannot use, before any data are read or paid for."""
        refuse_arguments(given.get("refused", ()), "X, y, coef_init, intercept_init and groups")
        solver = solver_of(self)
        if solver in OPTIMIZERS and isinstance(given.get("X"), PrivateRows):
            # Theorem R10: batches are drawn by the numbers of rows.
            given["X"].check_order("solver must be 'preconditioned'", shown(solver))
        starts = [name for name in ("coef_init", "intercept_init") if given.get(name) is not None]
        if starts and solver not in CLIPPING_SOLVERS:
            raise ValueError(
                f"{starts[0]} must be None with solver={shown(solver)}, which has no starting "
                "point; got weights. Use solver='sgd' or 'adam'."
            )
        if starts:
            n_classes = None if self.classes is None else len(self.classes)
            self._start(given, number_of_features(given["X"]), n_classes)

    def _start(
        self, given: Mapping[str, Any], n_features: int | None, n_classes: int | None
    ) -> np.ndarray | None:
        """Return starting weights; None stands for a number that is not known yet."""
        return initial_weights(
            given.get("coef_init"),
            given.get("intercept_init"),
            n_outputs=1 if n_classes == 2 else n_classes,
            n_features=n_features,
            fit_intercept=self.fit_intercept,
        )

    def _validated(self, X: Any, y: Any) -> Records:
        # Theorem R5: an improper record becomes a constant row, and no other row changes.
        return validate_records(
            self,
            X,
            y,
            labels=self.classes,
            is_classifier=True,
            accept_sparse=True,
            # An error must not reveal that a random subset is empty.
            min_samples=1 if self.n_public is None else 0,
        )

    def _row_bound(self, n_features: int | None) -> float:
        # Clipped gradients need no bound on rows.
        if solver_of(self) in CLIPPING_SOLVERS and self.data_norm is None:
            return math.inf
        return row_norm(self.data_norm, n_features)

    def _label_set(self, y: Any) -> np.ndarray:
        """Return the labels: the public ones, or those that occur."""
        found = label_set(y, self.classes)
        if self.classes is None and found.size > 2 and self._is_binary_only():
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}. Name the labels in classes=, so that the cost is known "
                "before the fit, or use delta > 0 and solver='auto'."
            )
        return found

    def _is_binary_only(self) -> bool:
        return self.classes is None and solver_of(self) not in CLIPPING_SOLVERS

    @classmethod
    def _residuals_and_targets(cls, codes: np.ndarray, outputs: int) -> tuple[Any, np.ndarray]:
        """Return the derivative of a record's loss by its outputs, and the loss's targets."""
        positive = codes == 1 if outputs == 1 else codes[:, None] == np.arange(outputs)
        return margin_residuals(cls._loss.derivative), np.where(positive, 1.0, -1.0)

    def _set_weights(self, weights: np.ndarray) -> None:
        # A descent that diverged gives a bad model, not an error: errors would leak the data.
        weights = np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0)
        features = weights[:, :-1] if self.fit_intercept else weights
        self.coef_ = np.ascontiguousarray(features, dtype=np.float64)
        self.intercept_ = (
            weights[:, -1].astype(np.float64) if self.fit_intercept else np.zeros(len(weights))
        )

    @property
    def neighbouring(self) -> str:  # type: ignore[override]
        """How neighbouring data sets differ, in the words of reports."""
        return ZERO_OUT if self.solver == "psgd" else ADD_OR_REMOVE

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions that a fit's report will state, from parameters and public sizes.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns; without it a bound on rows may be missing.

        Returns
        -------
        tuple of str
        """
        # Theorem F11: the report carries the assumptions of its parts.
        is_known = n_features is not None or self.data_norm is not None
        bound = self._row_bound(n_features) if is_known else math.inf
        sentences = [PUBLIC_SIZE]
        if self.classes is None:
            sentences.append(PUBLIC_LABELS)
        if self.class_weight is not None:
            sentences.append(PUBLIC_WEIGHTS)
        if math.isfinite(bound):
            sentences.append(f"rows are clipped to Euclidean norm {bound:.4g}")
        if self.solver == "psgd":
            sentences.append(PERMUTATION_ASSUMPTION)
        return tuple(sentences)

    # Using ----------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the linear scores: (n_samples,) for two classes, (n_samples, n_classes) else.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        check_is_fitted(self)
        X = validated_rows(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the highest score.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0.0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy linear classifier, for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = not self._is_binary_only()
        # In the tests' few dozen records, noise dominates any private model.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags


def _fit_together(
    rows: _Read, chosen: Sequence[tuple[int, Fit]], outcomes: list[Any], return_exceptions: bool
) -> None:
    """Fit models to the same rows together; keep those that fail as exceptions if asked to.

    Each fit comes with its place among the outcomes.
    """
    fits = [fit for _, fit in chosen]
    solver: Any = active_solver(fits[0].model)
    try:
        for fit, weights in zip(fits, solver.weights(fits, rows.design, rows.codes), strict=True):
            fit.model._ended(rows, fit.plan, weights)
    except Exception as problem:
        if not return_exceptions:
            raise
        if len(chosen) == 1:
            outcomes[chosen[0][0]] = problem
            return
        for place, fit in chosen:
            # From the first random number again.
            again = replace(fit, rng=noise_generator(fit.model.random_state))
            _fit_together(rows, [(place, again)], outcomes, return_exceptions)


@dataclass(frozen=True)
class _Read:
    """Rows and labels as a solver reads them, shared by fits with equal bounds.

    Attributes
    ----------
    reader : PrivateLinearClassifier
        The classifier that read them, which knows the columns and the labels.
    persons : Persons or None
    size : int
        Number of records.
    design : Design or DesignInParts
    codes : ndarray or None
        Labels 0, 1, ...; None if they come with rows in parts.
    """

    reader: Any
    persons: Any
    size: int
    design: Any
    codes: Any


@dataclass(frozen=True)
class _Bounded:
    """Makes designs of proper records, from public values.

    Attributes
    ----------
    classes : ndarray
    class_weights : ndarray or None
        Weight of each class.
    bound : float
        Norm to which rows are shortened.
    intercept : bool
    """

    classes: np.ndarray
    class_weights: np.ndarray | None
    bound: float
    intercept: bool

    def __call__(self, records: Records) -> tuple[Design, np.ndarray]:
        """Return the design of rows, and labels as numbers 0, 1, ..."""
        codes = np.zeros(0, dtype=np.intp)
        if records.y.size:
            codes = np.searchsorted(self.classes, records.y)
        weights = None if self.class_weights is None else self.class_weights[codes]
        return Design.clipped(records.X, self.bound, self.intercept).weighted(weights), codes

    def of_chunk(self, X: Any, y: Any) -> tuple[Design, np.ndarray]:
        """Return the same for a chunk, whose columns were checked before."""
        # Theorem R5: no record decides the type in which others are read.
        labels = labels_of_chunk(y, self.classes)
        return self(
            validate_records(
                BaseEstimator(),
                X,
                labels,
                labels=list(self.classes),
                is_classifier=True,
                min_samples=0,
            )
        )


def _around(
    present: float | None,
    centre: float,
    factors: tuple[float, ...],
    least: float = 0.0,
    largest: float = 1e30,
) -> list[Any]:
    """Return the current value, and multiples of it, or of the value for None."""
    centre = centre if present is None else present
    values = [min(max(centre * factor, least), largest) for factor in factors]
    return [present, *(value for value in values if value not in (present, 0.0))]
