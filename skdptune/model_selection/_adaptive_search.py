"""Search whose candidates are chosen by the noisy scores of those before."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection._adaptive import (
    PRUNERS,
    AdaptiveChoice,
    AdaptiveCostModel,
    AdaptiveSearchSession,
    Allowance,
    Races,
    check_pruner,
    check_sampler,
    described,
    make_sampler,
)
from skdptune.model_selection._choosing import TableOutlook
from skdptune.model_selection._cost import Candidates, Cost, CostModel, FitCosts, Layout, Plan
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._other_ways import WAYS, one_space
from skdptune.model_selection._space import AdaptiveSpace
from skdptune.model_selection._study import StorageParameter, optuna
from skdptune.model_selection._table_search import TableSearch, own_place
from skdptune.model_selection._tuning_search import Choice, SearchState

# Parameters that must be the same when a search is resumed, beside the space and the sizes.
_OF_PLAN = (
    *("estimator", "epsilon", "delta", "n_trials", "pruner", "noise_limit", "tuning_fraction"),
    *("cv", "score_epsilon", "n_public"),
)


@with_shared_text(SHARED_TEXT)
class DPAdaptiveSearchCV(TableSearch):
    """Bayesian optimisation with differential privacy: each candidate follows from earlier scores.

    A fixed number of candidates is fitted and scored with a lot of noise, one after the other,
    by an optuna sampler that sees the noisy scores of those before. All of that is paid for and
    shown; the chosen candidate is then fitted on all records with nearly all of the budget. The
    search takes 2 to 5 % more noise than a fit without tuning.

    Use it where parameters have ranges, or more values than a grid can try. It needs optuna,
    which the extra ``pareto`` brings.

    Parameters
    ----------
    {estimator}
    param_space : dict, optional
        From parameter names to lists or arrays (categories), tuples ``(low, high)`` or
        ``(low, high, "log")`` (integers if both ends are), frozen scipy distributions, or optuna
        distributions.

        {no_space}
    {budget}
    n_trials : int, default=20
        Number of candidates; with a pruner, how many can be fitted to the end.
    sampler : {"auto", "tpe", "gp", "random"} or optuna sampler, default="auto"
        Which candidate is next. "gp" is the expected improvement of a Gaussian process, which
        needs torch, "tpe" are tree-structured Parzen estimators, and "random" draws from the
        space. "auto" is "gp" where torch is installed and nothing is pruned, else "tpe". One of
        your own must choose by the study alone, which holds no times.
    pruner : {"halving", "hyperband"} or optuna pruner, optional
        Ends candidates early. Each is fitted with a ninth, a third and all of its epochs where
        it counts these (``epochs``, ``max_epochs``), else with less and less noise, and each fit
        has a noisy score, for which as large a share of the candidate's budget is used. With
        "halving" up to 27 candidates race each other, of which the third with the best scores
        goes on each time; with "hyperband" by turns 9, or 5 that start with a third, or 3 that
        start with all of their epochs. A pruner of optuna's decides without waiting for others.
        What ended candidates leave is used for others, some ``4 * n_trials`` of them in all; the
        total stays what it was. The estimator's own values are never ended. Needs `epsilon`,
        and an estimator whose noise can be set.
    batch_size : int, optional
        Candidates that are chosen and fitted at the same time. None is the number of workers, so
        that results then depend on `n_jobs`.
    noise_limit : "auto" or float, default="auto"
        The noise of the final fit over that of a fit without tuning, more than 1: what the search
        may cost. "auto" is 1 + n_trials / 500, between 1.02 and 1.05.
    tuning_fraction : "auto", float or None, default="auto"
        The chance of each record to be used for the candidates' fits; None for all that are not
        held out for validation. "auto" is None up to 25 candidates. A smaller part saves time
        alone: candidates can be told apart best on all records, with more noise.
    try_own_values : bool, default=True
        Whether the estimator's own values are the first candidate, also where `param_space` does
        not hold them: what a table full of noise falls back to.
    choose : {"posterior", "max"}, default="posterior"
        How the winner is chosen: by the posterior mean of a Gaussian process over the parameters,
        that knows the noise of the scores and falls back to the estimator's own values where the
        noise hides which is better; or the largest score.
    {scoring}
    cv : float or int, default=0.2
        A fraction holds each record out for validation with that chance, by a random draw of its
        own. An integer asks for folds, which each record joins by a random draw of its own.
    refit : {"winner", True, False} or callable, default="winner"
        "winner" and True fit the winner on all records, False returns no model. A callable
        chooses: it gets ``cv_results_`` of those that were not pruned, which is paid for, and
        returns the index of one.
    score_epsilon : float, optional
        What a score may cost at `delta`.
    storage : None, str or optuna storage, default=None
        A path (SQLite file), a URL or an optuna storage keeps the search, so that it can be
        resumed after a crash by the same parameters and data: what was begun is spent, and is not
        made again. One process at a time may use it. Its user alone may read the file, which
        holds noisy scores, and no times. A password in a URL stays in this process. Since a
        resumed search splits the records anew, every record pays for fits and scores, which
        takes more noise. Needs `param_space`.
    study_name : str, optional
        Name in the storage. A study of this name is resumed.
    callbacks : sequence of callable, optional
        Called as ``callback(study, trial)`` after each candidate, as by optuna, with what is
        released; ``study.stop()`` ends the search.
    n_jobs : int, optional
        Number of parallel workers, as in scikit-learn.
    {parameters_but_n_jobs}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        The posterior mean of the chosen candidate's score, or its noisy score with
        ``choose="max"``. Not available where `refit` is a callable.
    best_score_std_ : float
        Standard deviation of that posterior; with ``choose="posterior"``.
    cv_results_ : dict
        One row for each candidate, as in scikit-learn but for times, which can depend on a
        record: parameters, noisy scores (of each fold, if there are folds), and in
        ``std_test_score`` the deviation of the noise, or of the folds' noisy scores. With a
        pruner, ``resource`` is the share of a whole fit that the scores are of.
    best_index_ : int
        The winner's row of `cv_results_`.
    study_ : optuna.Study
        The candidates with their noisy scores, for optuna's visualisation and analysis. All trials
        have the same date, since times can depend on a record. The estimator's own values, where
        `param_space` does not hold them, are a trial without parameters, which optuna counts as
        pruned, so that its analysis passes over it. Not there where no search was made.
    {common_attributes}

    See Also
    --------
    AdaptiveSearchSession : The search driven from outside, by `start`.
    DPGridSearchCV : The same cost for a list of candidates.
    DPRandomSearchCV : A random number of candidates, of which the best alone is shown.

    Notes
    -----
    Theorem G6. Neighbours differ by adding or removing one record. All fits and scores are
    composed, so that each candidate may be chosen by any rule from the noisy scores before it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPAdaptiveSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=20_000) > 0
    >>> search = DPAdaptiveSearchCV(
    ...     DPLogisticRegression(solver="output"), {"C": (1e-5, 10.0, "log")}, epsilon=1.0,
    ...     delta=1e-5, n_trials=10, random_state=0,
    ... )
    >>> round(search.plan(20_000, 3, compare=False).epsilon, 2)
    1.0
    >>> search.fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_space: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        n_trials: int = 20,
        sampler: Any = "auto",
        pruner: Any = None,
        batch_size: int | None = None,
        noise_limit: Any = "auto",
        tuning_fraction: Any = "auto",
        try_own_values: bool = True,
        choose: str = "posterior",
        scoring: Any = None,
        cv: Any = 0.2,
        refit: Any = "winner",
        score_epsilon: float | None = None,
        storage: Any = None,
        study_name: str | None = None,
        callbacks: Sequence[Callable[[Any, Any], Any]] | None = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        pre_dispatch: Any = "2*n_jobs",
        error_score: str = "worst",
        random_state: Any = None,
        diagnostics: bool = False,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_space = param_space
        self.epsilon = epsilon
        self.delta = delta
        self.n_trials = n_trials
        self.sampler = sampler
        self.pruner = pruner
        self.batch_size = batch_size
        self.noise_limit = noise_limit
        self.tuning_fraction = tuning_fraction
        self.try_own_values = try_own_values
        self.choose = choose
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.score_epsilon = score_epsilon
        self.storage = storage
        self.study_name = study_name
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.random_state = random_state
        self.diagnostics = diagnostics
        self.n_public = n_public
        self.ledger = ledger

    storage = StorageParameter()
    # Which candidates are tried, and who hears of them, costs the same.
    _neutral = ("sampler", "batch_size", "choose", "study_name", "callbacks")

    # Candidates -----------------------------------------------------------------------------

    def _space(self) -> tuple[Any, str, bool]:
        if self.param_space is None:
            return None, "param_space", True
        space = AdaptiveSpace(self.param_space)
        own = self._own_first(space)
        if own is None or space.holds(own):
            return space.costed(), "param_space", True
        # Drawn from by nobody: both are costed.
        own_space = {name: [value] for name, value in own.items()}
        return [own_space, space.costed()], "param_space", True

    def _own_first(self, space: AdaptiveSpace) -> dict[str, Any] | None:
        """Return the estimator's own values if they are to be tried, in the space or not."""
        if not check_flag(self.try_own_values, name="try_own_values"):
            return None
        known = self._known_values()
        inside = {name: known[name] for name in space.names if name in known}
        return inside if space.holds(inside) else self._own_values(space.names)

    def _has_own(self, candidates: Sequence[dict[str, Any]]) -> bool:
        """Return whether the estimator's own values are among some candidates."""
        return own_place(self.estimator, candidates) is not None

    def _candidates(self, n_samples: int, n_features: int | None) -> Candidates:
        found = super()._candidates(n_samples, n_features)
        if found.suggestion is None:
            return found
        # All combinations of what is suggested: few of them are tried.
        product = Candidates(
            {name: list(values) for name, values in found.suggestion.items()},
            name=found.name,
            drawn=True,
        )
        product.suggestion = found.suggestion
        return product

    def _searched(self, plan: Plan) -> Mapping[str, Any]:
        """Return the space: what was given, or what is suggested."""
        suggestion = plan.candidates.suggestion
        if suggestion is None:
            space: Mapping[str, Any] = self.param_space
            return space
        return {name: list(values) for name, values in suggestion.items()}

    def _suggestion_in_words(self, plan: Plan) -> str:
        return super()._suggestion_in_words(plan).replace(", one parameter at a time", "")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_table_parameters()
        check_flag(self.try_own_values, name="try_own_values")
        check_integer(self.n_trials, name="n_trials", lower=1)
        if self.batch_size is not None:
            check_integer(self.batch_size, name="batch_size", lower=1)
        check_sampler(self.sampler)
        check_pruner(self.pruner)
        self._check_callbacks()
        if self.storage is None:
            return
        if self.param_space is None:
            raise ValueError("param_space must be given with a storage; got None.")
        if self.tuning_fraction not in ("auto", None):
            raise ValueError(
                "tuning_fraction must be None with a storage, since a resumed search splits the "
                f"records anew; got {shown(self.tuning_fraction)}."
            )

    def _check_callbacks(self) -> None:
        given = self.callbacks
        if given is None:
            return
        if not isinstance(given, Sequence) or not all(map(callable, given)):
            raise TypeError(
                "callbacks must be a list of functions of a study and a trial; got "
                f"{shown(given)}."
            )

    def _check_arguments(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        # Raises where there is none.
        optuna()
        super()._check_arguments(X, y, params)

    def _refit(self) -> Any:
        is_winner = isinstance(self.refit, str) and self.refit == "winner"
        return True if is_winner or callable(self.refit) else self.refit

    # Cost -----------------------------------------------------------------------------------

    def _tuning_fraction(self, candidates: Candidates, n_samples: int, replaces: bool) -> Any:
        if self.storage is not None:
            return None
        return self._fraction_of_table(self.n_trials, n_samples, replaces)

    def _variant(self) -> int:
        # The part is seen with much noise alone.
        return 2

    def _cost(self, layout: Layout, fit_costs: FitCosts, delta: float) -> tuple[CostModel, Cost]:
        is_resumable = self.storage is not None
        # Where records are split anew, each of them trains and scores.
        of_noise = replace(layout, validation=0.0) if is_resumable else layout
        words = "trials" if self.pruner is None else "trials to the end, or more that are pruned"
        model = replace(
            self._table_model(of_noise, fit_costs, delta, self.n_trials, AdaptiveCostModel),
            layout=layout,
            note=f"{self.n_trials} {words}, all scores published",
            prunes=self.pruner is not None,
            is_resumable=is_resumable,
            asked=self.epsilon if layout.final else None,
        )
        if self.epsilon is not None and layout.final and not (model.prunes or is_resumable):
            return model.solved(self.epsilon, self._limit(self.epsilon, layout))
        # Nothing is solved for: trials have no less noise than the final fit.
        noise = max(model.fit_noise, 1.0), max(model.score_noise, 1.0)
        model = replace(model, fit_noise=noise[0], score_noise=noise[1])
        return model, model.within(self.epsilon)

    def _way_in_words(self, plan: Plan) -> str:
        return _WAY

    def _shows(self, plan: Plan) -> str:
        return "all scores"

    def _number_of_fits(self, plan: Plan) -> tuple[float, float]:
        fits = float(self.n_trials * max(plan.layout.folds, 1))
        return fits, fits

    def _public_count(self, plan: Plan) -> int:
        if not isinstance(plan.model, AdaptiveCostModel):
            return 0
        allowance = Allowance(self.n_trials, plan.model.rungs)
        if self.pruner not in PRUNERS:
            return allowance.most_trials
        has_own = self._own_first(AdaptiveSpace(self._searched(plan))) is not None
        return Races(self.pruner, allowance, has_own=has_own).n_left

    def _public_plan(self, plan: Plan) -> dict[str, str]:
        """Return what must be the same when the search is resumed, in words."""
        given = {name: described(getattr(self, name)) for name in _OF_PLAN}
        given |= {
            "param_space": AdaptiveSpace(self._searched(plan)).describe(),
            "n_samples": str(plan.layout.n_samples),
            "n_features": str(plan.layout.n_features),
            "scoring": self._scorer().name,
            "public validation data": str(plan.layout.public),
            "total": f"{plan.total.epsilon(plan.delta):.6g}",
            # How it is divided: what was paid for before must be what was planned for it.
            "final fit": str(plan.layout.final),
            "cost of a fit": f"{plan.cost.fit.epsilon(plan.delta):.6g}",
            "noise of a score": f"{plan.cost.score_noise.ratio:.6g}",
        }
        return given

    # Run and choose -------------------------------------------------------------------------

    def start(
        self, X: Any, y: Any = None, *, X_val: Any = None, y_val: Any = None, **params: Any
    ) -> AdaptiveSearchSession:
        """Return a session that fits what it is told to, in place of `fit`.

        Parameters
        ----------
        X, y, X_val, y_val, **params
            As for `fit`.

        Returns
        -------
        AdaptiveSearchSession
            Costs what the search costs; its `finish` fits the search.
        """
        if self.param_space is None:
            raise ValueError(
                "param_space must be given for a session; got None. It says what its candidates "
                "may cost."
            )
        return AdaptiveSearchSession(self, self._started(X, y, X_val, y_val, params))

    def _choose(self, state: SearchState) -> Choice:
        session = AdaptiveSearchSession(self, state)
        session.run_all()
        return session.choice()

    def _deviation(self, plan: Plan) -> float:
        return super()._deviation(plan) / math.sqrt(_last_share(plan))

    def _outlook(self, plan: Plan, n_score: int | None = None) -> TableOutlook:
        found = super()._outlook(plan, n_score)
        return replace(found, noise_ratio=found.noise_ratio / math.sqrt(_last_share(plan)))

    def _make_sampler(self, seed: int | None) -> Any:
        prunes = self.pruner is not None
        return make_sampler(self.sampler, self.n_trials, seed, self._n_at_once(), prunes=prunes)

    def _n_at_once(self) -> int:
        """Return the number of candidates that are chosen and fitted side by side."""
        if self.batch_size is not None:
            return int(self.batch_size)
        return int(effective_n_jobs(self.n_jobs))

    def _final_model(self, state: SearchState, choice: Choice) -> Any:
        if isinstance(choice, AdaptiveChoice) and choice.journal is not None:
            if self._refit() is not False:
                choice.journal.begin_final()
        return super()._final_model(state, choice)

    def _publish(self, plan: Plan, choice: Choice, model: Any) -> None:
        # Theorem G6.
        super()._publish(plan, choice, model)
        if isinstance(choice, AdaptiveChoice):
            self.study_ = choice.study
            if choice.shares is not None:
                self.cv_results_["resource"] = np.array(choice.shares)


def _last_share(plan: Plan) -> float:
    """Return the share of a trial's budget that its last fit and score have."""
    return float(plan.model.rungs[-1]) if isinstance(plan.model, AdaptiveCostModel) else 1.0


def _as_adaptive(
    estimator: Any, candidates: Candidates, count: int, shared: dict[str, Any]
) -> DPAdaptiveSearchCV | None:
    """Return the search of as many candidates, if a space holds all of them."""
    space = one_space(estimator, candidates)
    return (
        None if space is None else DPAdaptiveSearchCV(estimator, space, n_trials=count, **shared)
    )


_WAY = "adaptive (DPAdaptiveSearchCV)"
WAYS[_WAY] = _as_adaptive
