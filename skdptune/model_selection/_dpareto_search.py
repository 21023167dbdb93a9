"""Search for the Pareto front of privacy and utility over the parameters of estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import Tasks, VisualBlock, number_of_samples, routing_is_enabled
from skdptune._formatting import shown
from skdptune._validation import check_option, check_real
from skdptune.base._shared import (
    arguments_of,
    charge_of_fit,
    declared_labels,
    forget_seeds,
    own_seeds,
    set_seeds,
)
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection._base import BasePrivateSearch
from skdptune.model_selection._cost import PlanRow, SearchPlan, copied, make_layout
from skdptune.model_selection._pareto import (
    Families,
    ParetoPlan,
    ParetoResult,
    ParetoRun,
    ThirdObjective,
    check_picklable,
    check_relation,
    check_settings,
    check_third_objective,
    make_pareto_plan,
    warn_of_failures,
    warn_of_one_cost,
)
from skdptune.model_selection._running import Data, Door, Streams, rows_of_persons, spawned
from skdptune.model_selection._strategies import BaseStrategy
from skdptune.model_selection._study import StorageParameter


@dataclass(eq=False, repr=False, kw_only=True)
class ParetoFront(BaseStrategy):
    """Propose parameters by Bayesian optimisation of the front of epsilon and error.

    The strategy of `DParetoSearchCV`, with the options that most users do not need.

    Parameters
    ----------
    n_initial : int, default=16
        Number of first evaluations, which cover the space evenly, before surrogates are used.
    batch_size : int, default=1
        Number of evaluations that run at the same time. Each proposal takes the running
        evaluations into account.
    sampler : {"auto", "hvpoi", "random", "grid"} or optuna sampler, default="auto"
        How parameters are proposed.

        - "auto": the largest expected improvement of the hypervolume. Use it: it found the best
          fronts in our benchmarks. With three objectives it is "hvpoi".
        - "hvpoi": the improvement at the surrogates' means times the probability of one. Use it to
          reproduce the paper.
        - "random": independent draws from the space. Use it as a baseline. Use it also if a
          release should pay for more evaluations, since proposals do not depend on scores.
        - "grid": the finest grid of at most ``n_initial + n_iter`` points. Use it to cover one or
          two parameters evenly; proposals do not depend on scores either.
        - An optuna sampler proposes all points, including the first ones. Use it to compare.
    reference_point : tuple of float, default=(10.0, 1.0)
        The largest epsilon, error and third objective that count for the hypervolume.
    epsilon_scale : {"linear", "log"}, default="linear"
        The scale of epsilon in the hypervolume, which "auto" and "hvpoi" maximise. "linear" is the
        paper's: every unit of epsilon counts the same. With "log" every factor counts the same:
        use it if small epsilons matter as much as large ones. On the log scale, epsilons below a
        millionth of the reference point's count as that millionth.
    n_repeats : int, default=1
        Number of fits per evaluation (and fold). Their mean score is the utility.
    privacy : {"profile", "moments"}, default="profile"
        The bound that gives the epsilon of parameters: the estimator's tight profile, or, for
        comparison, the moments accountant. A release is always charged by profiles.
    third_objective : None, "time" or tuple of (str, callable), default=None
        A further objective to minimise: the seconds of a repeat, or a name and a function
        ``metric(model, X, y)`` of the fitted model and validation records. Not allowed with a
        release.
    storage : None, str or optuna storage, default=None
        A path (SQLite file), a URL or an optuna storage in which the study is stored. It can then
        be resumed after a crash and shared by several processes. Give all of them the same
        `random_state`, so that they split the records alike. Without one, each process, also one
        that resumes the study, splits them differently. Only its owner may read the file. It holds
        a seed only if you give one, and a salted hash of the data. A password in a URL stays in
        this process. None keeps the study in memory. Not allowed with a release.
    study_name : str, optional
        Name in the storage. A study of this name is resumed if its data, estimators and space are
        the same.

    See Also
    --------
    DParetoSearchCV : The search.

    Notes
    -----
    Avent, González, Diethe, Paleyes and Balle (2020), Automatic Discovery of Privacy-Utility
    Pareto Fronts.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DParetoSearchCV, ParetoFront
    >>> search = DParetoSearchCV(
    ...     DPLogisticRegression(solver="output"), {"epsilon": (0.05, 5.0, "log")}, n_iter=20,
    ...     release=8.0, strategy=ParetoFront(n_initial=4, sampler="random"),
    ... )
    >>> round(search.plan(20_000, 5).epsilon, 2) <= 8.0
    True
    """

    objects = ("sampler", "third_objective", "storage")

    n_initial: int = 16
    batch_size: int = 1
    sampler: Any = "auto"
    reference_point: tuple[float, ...] = (10.0, 1.0)
    epsilon_scale: str = "linear"
    n_repeats: int = 1
    privacy: str = "profile"
    third_objective: Any = None
    storage: Any = StorageParameter()
    study_name: str | None = None

    def check(self, search: Any, families: Families) -> None:
        """Validate the parameters, also in combination with those of the search."""
        check_real(search.delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
        check_option(self.privacy, name="privacy", options=("profile", "moments"))
        third = self.third()
        check_settings(self, search.n_iter, None if third is None else third.name)
        is_grid = isinstance(self.sampler, str) and self.sampler == "grid"
        if is_grid and not families.is_single:
            raise ValueError(
                "sampler must not be 'grid' for several families, whose grids would be "
                "multiplied; got 'grid'. Search each family separately."
            )
        if search.refit is True and search.release is not None:
            raise ValueError(
                "refit must be an epsilon or False with release; got True, whose cost is not "
                "known beforehand."
            )
        if not isinstance(search.refit, bool):
            hint = "It is the largest epsilon of the model; False fits none."
            _check_epsilon(search.refit, "refit", hint)
        if search.release is not None:
            self._check_release(search, families)

    def third(self) -> ThirdObjective | None:
        """Return the third objective, or raise."""
        return check_third_objective(self.third_objective, "(model, X, y)")

    def _check_release(self, search: Any, families: Families) -> None:
        _check_epsilon(search.release, "release")
        if search.delta == 0.0:
            raise ValueError("delta must be above 0 with release; got 0.")
        for name, why in _ALONE.items():
            given = getattr(self, name)
            if given is not None:
                raise ValueError(f"{name} must be None with release: {why}; got {shown(given)}.")
        if not isinstance(self.sampler, str):
            raise TypeError(
                "sampler must be a name with release; got an optuna sampler, which sees when "
                "evaluations started and ended."
            )
        for variant in families.variants:
            check_relation(variant)


def _check_epsilon(given: Any, name: str, hint: str = "") -> None:
    check_real(given, name=name, lower=0.0, lower_open=True, upper=500.0, hint=hint)


# Parameters that a release does not allow.
_ALONE = {
    "storage": "a storage keeps times, and a resumed study could exceed its budget",
    "third_objective": "the budget does not pay for its values",
}
_NOT_PRIVATE = (
    "NOT PRIVATE: the front and all evaluations are exact and not charged; only for those who "
    "may see the data. release=epsilon charges them"
)
_MODELS_COST_MORE = "the epsilon of a point is the cost of its model, in addition to this report"
# Columns of exact evaluations, which a release does not pay for.
_NOT_RELEASED = ("seconds", "spread", "utilities", "failure")


class DParetoSearchCV(BasePrivateSearch[ParetoPlan]):
    """Search for parameters on the Pareto front of privacy and utility.

    Epsilon and error are minimised together by multi-objective Bayesian optimisation. The front
    holds the parameters for which neither can be made smaller without making the other larger. It
    shows which accuracy can be reached at which epsilon, and with which parameters.

    Use it to choose an epsilon. For one private model at a given epsilon use `DPRandomSearchCV`.

    Parameters
    ----------
    estimator : estimator or list of (str, estimator)
        A private estimator, or a Pipeline of private estimators and of steps that do not learn
        from data. Alternatively a list of several families with their names; the search then also
        chooses the family.
    param_space : dict
        From parameter names to lists or arrays (categories), tuples ``(low, high)`` or
        ``(low, high, "log")`` (integers if both ends are), or frozen scipy distributions. With
        several families, from their names to such dicts. It must include a parameter that sets the
        noise.
    delta : float, default=1e-5
        The delta at which every epsilon is stated.
    n_iter : int, default=256
        Number of evaluations after the first ones. The first ones cover the space evenly; their
        number is `n_initial` of the strategy, 16 by default.
    scoring : str or BoundedScorer, optional
        A bounded score, see `skdptune.metrics`; accuracy for classifiers. The error is 1 minus
        the score, scaled to [0, 1].
    cv : float, int or HoldOut, default=0.2
        A fraction is the probability that a record is used for validation; an integer is a number
        of folds; `HoldOut` is a public rule for each record.
    release : float, optional
        The epsilon, at `delta`, of everything that the fitted search shows. By default nothing is
        released, and the search is **not private**. A few expensive points must not use all of it:
        each of the first evaluations may cost at most an equal share of the remaining epsilon, and
        each later one at most half of it.
    refit : False, True or float, default=False
        The largest epsilon of a model that is fitted to all records at the end, with the evaluated
        parameters of smallest error; True allows any epsilon. The search then has `predict` and so
        on.
    strategy : ParetoFront, optional
        How parameters are proposed and evaluated, with the less common options: the first
        evaluations, batches, the sampler, the scale of the hypervolume, repeats, a third
        objective, and a storage from which a study can be resumed.
    n_jobs : int, optional
        Workers for the evaluations of a batch, at most the strategy's `batch_size` of them; with a
        release, for the fits of one evaluation.
    verbose : int or None, default=None
        None shows the current phase and the elapsed time, once a call has taken a second, on a
        terminal or in a notebook. 0 shows nothing. A value above 0 shows them at once and leaves
        them on the screen.
    random_state : int or None, default=None
        None draws noise from the operating system's entropy; a seed gives reproducible research
        runs.
    n_public : int, optional
        Public constant used in place of the number of records. By default the number of records is
        public.
    ledger : PrivacyLedger, optional
        The ledger in which a fit reserves its cost before it reads the data. None uses the active
        ledger, if any: that of ``with ledger:`` or `skdptune.config_context`.

    Attributes
    ----------
    pareto_front_ : DataFrame, or dict of arrays without pandas
        The front in order of increasing epsilon: ``epsilon``, ``error``, the third objective, the
        parameters. With a release also ``study_epsilon``, the cost of all points together.
    evaluations_ : DataFrame, or dict of arrays without pandas
        All evaluations; without a release also the spread of repeats, seconds and failures.
    hypervolume_ : float
        Volume between the front and the reference point.
    hypervolume_history_ : ndarray of shape (n_evaluations,)
        The hypervolume after each evaluation.
    fronts_ : dict of str to ndarray
        The fronts of the ``"mean"``, ``"best"`` and ``"worst"`` of the repeats; with a release,
        only that of the mean.
    result_ : ParetoResult
        All of this as one object.
    study_ : optuna.Study
        The study; only without a release.
    privacy_ : PrivacyReport
        The cost of everything that is shown: that of the release, or a note that it is not
        private.
    best_estimator_, best_params_, best_score_, best_index_
        With `refit`: the model, its parameters, score and row of ``evaluations_``.
    scorer_, multimetric_, n_splits_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    ParetoFront : Its strategy.
    pareto_search : The same for any mechanism.
    DPRandomSearchCV : One private model for one budget.
    skdptune.inspection.ParetoFrontDisplay : Draws fronts.

    Notes
    -----
    Avent, González, Diethe, Paleyes and Balle (2020), Automatic Discovery of Privacy-Utility
    Pareto Fronts. Neighbours differ by adding or removing one record.

    *The epsilon of a point* is the cost of a fit of its parameters on all records. The search
    itself reads the data many times, and its exact scores depend on them. Without a release, it is
    only for people who may see the data.

    *A release* (Theorem G3) shows one noisy score per evaluation and nothing else: no spread, no
    time, no failure (a fit that fails has the worst score). Its cost is fixed before the data are
    read, and holds whichever evaluations the search chooses by earlier noisy scores. If all fits
    cost the same, or proposals do not depend on scores ("random", "grid"), exact curves are
    composed. Otherwise a filter (`skdptune.accounting.GaussianFilter`, or `RenyiFilter` if that
    admits more) admits the evaluations that still fit. Evaluations that are not paid for are not
    made; the search ends when no affordable evaluation is left in the space. Proposals are made
    one after the other, since the order in which evaluations end depends on the data. The time
    that a fit takes, and the progress bar, must not be published either. The model of `refit` is
    charged to the release, which reserves half of its delta for it. The model of
    `best_estimator_for` is not, and has its own cost in addition.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DParetoSearchCV, ParetoFront
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=1000) > 0
    >>> search = DParetoSearchCV(
    ...     DPLogisticRegression(solver="output", data_norm=3.0),
    ...     {"epsilon": (0.05, 5.0, "log"), "C": (1e-3, 1e2, "log")},
    ...     n_iter=2, strategy=ParetoFront(n_initial=8), random_state=0,
    ... ).fit(X, y)
    >>> bool(search.pareto_front_["error"].min() < 0.2)
    True
    >>> 0.05 <= search.best_params_for(epsilon=1.0)["epsilon"] <= 1.01
    True
    """

    delta: float
    param_space: Any
    n_iter: int
    release: float | None

    def __init__(
        self,
        estimator: Any,
        param_space: Any,
        *,
        delta: float = 1e-5,
        n_iter: int = 256,
        scoring: Any = None,
        cv: Any = 0.2,
        release: float | None = None,
        refit: Any = False,
        strategy: ParetoFront | None = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    # Parameters ---------------------------------------------------------------------------

    _default_strategy = ParetoFront

    def _families(self) -> Families:
        return Families(self.estimator, self.param_space)

    def _estimators(self) -> Sequence[Any]:
        return list(self._families())

    def _lead_estimator(self) -> Any:
        is_many = isinstance(self.estimator, list) and len(self.estimator) > 0
        return self.estimator[0][1] if is_many else self.estimator

    def _check_parameters(self) -> None:
        strategy = self._strategy()
        if not isinstance(strategy, ParetoFront):
            raise TypeError(f"strategy must be None or ParetoFront; got {shown(strategy)}.")
        strategy.check(self, self._families())
        self._check_common_parameters()

    def _check_arguments(self, X: Any, y: Any, params: dict[str, Any], n_samples: int) -> None:
        super()._check_arguments(X, y, params, n_samples)
        if len(self._estimators()) > 1 and params and routing_is_enabled():
            raise ValueError(
                "fit() takes only X and y for several families with metadata routing; got "
                f"{sorted(params)}."
            )

    # The plan -------------------------------------------------------------------------------

    def _solve(
        self, n_samples: int, n_features: int | None, classes: Any, is_public: bool
    ) -> ParetoPlan:
        self._check_parameters()
        layout = make_layout(
            n_samples,
            n_features,
            cv=self.cv,
            public=is_public,
            tuning_fraction=None,
            variant=1,
            refit=True,
            is_random=self.n_public is not None,
        )
        return make_pareto_plan(self, self._strategy(), self._families(), layout, classes)

    def _summary(self, plan: ParetoPlan, n_samples: int, compare: bool) -> SearchPlan:
        if plan.release is None:
            raise ValueError("release must be given for a plan of its cost; got None.")
        layout, noise = plan.layout, plan.release.noise
        # The largest possible number of fits.
        fits = float(plan.release.n_evaluations * plan.strategy.n_repeats * max(layout.folds, 1))
        work = fits * layout.n_train / layout.n_samples + (self.refit is not False)
        report = self._report(plan)
        name = type(self).__name__
        row = PlanRow(name, report.epsilon_spent, None, None, None, fits, fits, work)
        scale = 0.0
        if noise.kind != "none":
            scale = noise.ratio * layout.sensitivity(self._scorer())
        rule = self.cv.in_words if layout.by_rule else ""
        return SearchPlan(report, row, (), None, "", scale, uses=layout.uses, validation=rule)

    def _own_assumptions(self, plan: ParetoPlan) -> tuple[str, ...]:
        sentence = _NOT_PRIVATE if plan.release is None else _MODELS_COST_MORE
        return (sentence, *super()._own_assumptions(plan))

    # Running --------------------------------------------------------------------------------

    def _prepared(
        self, plan: ParetoPlan, data: Data, public: Data | None
    ) -> Callable[[Tasks], None]:
        strategy = plan.strategy.with_objects_of(self._strategy())
        # Copies: a change of the shown objects must not change the cached plan.
        costs = replace(plan.costs, families=clone(self)._families())
        plan = replace(plan, strategy=strategy, costs=costs)
        run = ParetoRun(self, plan, self._scorer(), Streams.of(self.random_state))
        if plan.release is not None:
            check_picklable(run.scorer, plan.families, self.n_jobs)
            run.check_fits(data)
        return partial(self._run, run, data, public)

    def _run(self, run: ParetoRun, data: Data, public: Data | None, tasks: Tasks) -> None:
        plan, strategy = run.plan, run.strategy
        with tasks.task("search"):
            records, study = run.evaluate(data, public)
            if plan.release is None:
                warn_of_failures(records, stacklevel=4)
        with tasks.task("final fit"):
            best = run.best_index(records)
            model = None if best is None else run.fit_final(records[best], data)
        if len(records) < strategy.n_initial:
            warnings.warn(
                "release must be larger, or param_space contain smaller epsilons, for "
                f"n_initial={strategy.n_initial} evaluations; it paid for {len(records)}.",
                UserWarning,
                stacklevel=3,
            )
        warn_of_one_cost(records, stacklevel=4)
        third = strategy.third()
        result = ParetoResult(
            records,
            plan.families.space,
            reference_point=tuple(strategy.reference_point),
            epsilon_scale=strategy.epsilon_scale,
            third=None if third is None else third.name,
            study=study,
            privacy=plan.costs.epsilon,
        )
        found = {"result_": result, "_costs": plan.costs, **self._shown(plan, result)}
        if best is not None:
            record, scorer = records[best], run.scorer
            utility = float(np.mean(record.evaluation.utilities))
            found |= {
                "best_index_": best,
                "best_score_": scorer.lower + utility * (scorer.upper - scorer.lower),
                "best_params_": copied(plan.families.selected(record.params)),
            }
        self._publish(plan, run.scorer, model, found)

    def _shown(self, plan: ParetoPlan, result: ParetoResult) -> dict[str, Any]:
        """Return the attributes of a result that may be shown."""
        front, table = map(
            plan.families.without_unselected, (result.pareto_front_, result.evaluations_)
        )
        shown = {name: getattr(result, name) for name in ("hypervolume_", "hypervolume_history_")}
        if plan.release is None:
            tables = {"pareto_front_": front, "evaluations_": table}
            return {**shown, **tables, "fronts_": result.fronts_, "study_": result.study_}
        front, table = front.copy(), table.copy()
        front["study_epsilon"] = np.full(len(front["epsilon"]), float(self.release or 0.0))
        for name in _NOT_RELEASED:
            table.pop(name)
        tables = {"pareto_front_": front, "evaluations_": table}
        return {**shown, **tables, "fronts_": {"mean": result.fronts_["mean"]}}

    # Using ----------------------------------------------------------------------------------

    def best_params_for(
        self, *, epsilon: float | None = None, error: float | None = None
    ) -> dict[str, Any]:
        """Return the best parameters within a bound on epsilon, on the error, or on both.

        Parameters
        ----------
        epsilon : float, optional
            The largest epsilon. Without `error`, the predicted error is minimised.
        error : float, optional
            The largest predicted error; epsilon is then minimised.

        Returns
        -------
        dict
            Parameters, evaluated or predicted by surrogates. Their epsilon is computed, and is
            never above the bound.
        """
        check_is_fitted(self)
        found = self.result_.best_params_for(epsilon=epsilon, error=error)
        return copied(self._families().selected(found))

    def best_estimator_for(
        self,
        X: Any,
        y: Any = None,
        *,
        epsilon: float | None = None,
        error: float | None = None,
        random_state: Any = None,
        groups: Any = None,
        **params: Any,
    ) -> Any:
        """Return a model with the parameters of `best_params_for`, fitted to all records.

        The search keeps no records, so they must be given again. The fit has its own cost, in
        addition to `privacy_`; its warnings and exceptions are not hidden, and may depend on the
        data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The records of the search.
        y : array-like of shape (n_samples,)
            Targets.
        epsilon, error : float, optional
            See `best_params_for`.
        random_state : int or None, default=None
            Random state of the fit.
        groups : array-like, optional
            See `fit`.
        **params
            Passed to the estimator's ``fit``.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        found = self.result_.best_params_for(epsilon=epsilon, error=error)
        costs = self._costs
        X, y, persons = rows_of_persons(X, y, self._persons(X, y, groups, params))
        size = number_of_samples(X) if persons is None else persons.size
        if self.n_public is None and size != costs.layout.n_samples:
            raise ValueError(
                f"X must hold the {costs.layout.n_samples} records of the search, to which the "
                f"epsilons belong; got {size}."
            )
        made = costs.configured(found, costs.final_size)
        own = own_seeds(made)
        set_seeds(made, spawned(Streams.of(random_state).final, 1)[0])
        ledger = self._ledger_in_use()
        paying: AbstractContextManager[Any] = nullcontext()
        if ledger is not None:
            # Theorem H4: the ledger records the final fit before it reads the data.
            paying = charge_of_fit(made, {"X": X, "y": y, "groups": persons}).reserved(ledger)
        with paying:
            door = Door.of([made], X, declared_labels(made), varies=False)
            # Theorem F9: published models hold no seed of their noise.
            data = door.open(X, y, self._routed(params)).by_persons(persons)
            return forget_seeds(data.fit(made), own)

    def _sk_visual_block_(self) -> Any:
        if not isinstance(self.estimator, list) or hasattr(self, "best_estimator_"):
            return super()._sk_visual_block_()
        names, members = zip(*self.estimator, strict=True)
        return VisualBlock(
            "parallel",
            [clone(member) for member in members],
            names=[f"{name}: {type(m).__name__}" for name, m in self.estimator],
            name_details=[str(member) for member in members],
        )
