"""Choose each candidate by the noisy scores of earlier candidates; searches in progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._running_budget import one_at_a_time
from skdptune._validation import check_integer
from skdptune.accounting import BudgetExceededError
from skdptune.base._shared import arguments_of
from skdptune.model_selection._adaptive import (
    SAMPLERS,
    AdaptiveTrial,
    Studies,
    Told,
    described,
    make_sampler,
)
from skdptune.model_selection._cost import Candidates, Cost, CostModel, Layout, copied
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._running import Result, Run, child_stream, spawned
from skdptune.model_selection._space import AdaptiveSpace
from skdptune.model_selection._strategies._full_table import (
    FullTable,
    all_together,
    factor_of_rates,
    known_values,
    own_place,
    own_values,
    solved_table,
)
from skdptune.model_selection._strategies._running_search import RunningSearch, SearchSession
from skdptune.model_selection._strategies._strategy import Choice, Plan, PlanRequest, Strategy
from skdptune.model_selection._study import Journal, StorageParameter, check_sampler, stored

# Besides the space and the sizes, parameters that must be the same when a search is resumed.
_OF_SEARCH = ("estimator", "epsilon", "delta", "n_trials", "cv", "n_public")
_OF_STRATEGY = ("noise_limit", "tuning_fraction", "score_epsilon")


@with_shared_text(SHARED_TEXT)
class AdaptiveTrials(FullTable):
    """Choose each candidate by the noisy scores of earlier candidates, with an optuna sampler.

    The strategy of `DPAdaptiveSearchCV`, with the options that most users do not need.

    Parameters
    ----------
    sampler : {"auto", "tpe", "gp", "random"} or optuna sampler, default="auto"
        How the next candidate is chosen. "gp" is the expected improvement of a Gaussian process,
        which needs torch; "tpe" are tree-structured Parzen estimators; "random" draws from the
        space. "auto" is "gp" if torch is installed, else "tpe". Your own sampler must choose by
        the study only, which holds no times.
    batch_size : int, optional
        Number of candidates that are chosen and fitted at the same time. None is the number of
        workers; results then depend on `n_jobs`.
    callbacks : sequence of callable, optional
        Called as ``callback(study, trial)`` after each candidate, as by optuna, with released
        values only; ``study.stop()`` ends the search.
    storage : None, str or optuna storage, default=None
        A path (SQLite file), a URL or an optuna storage in which the search is stored. After a
        crash it can be resumed with the same parameters and data: fits that had begun are spent,
        and are not made again. One process at a time may use it. Only its owner may read the file,
        which holds noisy scores and no times. A password in a URL stays in this process. Since a
        resumed search splits the records again, every record pays for fits and scores, which needs
        more noise. Needs a space.
    study_name : str, optional
        Name in the storage. A study of this name is resumed.
    noise_limit : "auto" or float, default="auto"
        The noise of the final fit divided by that of a fit without tuning, more than 1: the price
        of the search. "auto" is between 1.02 on few records and 1.05 on many.
    tuning_fraction : "auto", float or None, default="auto"
        The probability that a record is used for the candidates' fits; None for all records that
        are not held out for validation. "auto" is None up to 25 candidates. A smaller part only
        saves time: candidates can be distinguished best on all records, with more noise.
    try_own_values : bool, default=True
        Whether the estimator's own values are the first candidate, even if the space does not hold
        them. If noise hides which candidate is best, the search returns these values.
    choose_by : {"posterior", "max"}, default="posterior"
        "posterior" is the posterior mean of a Gaussian process over the parameters. It knows the
        noise of the scores, and returns the estimator's own values if the noise hides which
        candidate is better. "max" is the largest score.
    score_epsilon : float, optional
        Cost of a candidate's score at `delta`; with several metrics, of its scores together.
    {of_every_strategy}

    See Also
    --------
    DPAdaptiveSearchCV : The search.

    Notes
    -----
    Theorem G6.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import AdaptiveTrials, DPAdaptiveSearchCV
    >>> search = DPAdaptiveSearchCV(
    ...     DPLogisticRegression(solver="sgd"), {"C": (1e-3, 1.0, "log")}, epsilon=1.0, delta=1e-6,
    ...     n_trials=9, strategy=AdaptiveTrials(sampler="tpe"),
    ... )
    >>> search.plan(20_000, 5).row.shows
    'all scores'
    """

    storage = StorageParameter()
    # The choice of candidates, and the callbacks, do not change the cost.
    neutral = (
        *Strategy.neutral,
        *("sampler", "batch_size", "choose_by", "study_name", "callbacks"),
    )
    objects = ("storage",)
    kinds = ("space",)
    name = "adaptive (DPAdaptiveSearchCV)"

    def __init__(
        self,
        *,
        sampler: Any = "auto",
        batch_size: int | None = None,
        callbacks: Sequence[Callable[[Any, Any], Any]] | None = None,
        storage: Any = None,
        study_name: str | None = None,
        noise_limit: Any = "auto",
        tuning_fraction: Any = "auto",
        try_own_values: bool = True,
        choose_by: str = "posterior",
        score_epsilon: float | None = None,
        diagnostics: bool = False,
        error_score: str = "worst",
        pre_dispatch: Any = "2*n_jobs",
    ) -> None:
        self.__dict__.update(arguments_of(locals()))
        self.storage = storage

    def check(self, search: Any) -> None:
        """Validate the parameters."""
        super().check(search)
        check_integer(search.n_trials, name="n_trials", lower=1)
        if self.batch_size is not None:
            check_integer(self.batch_size, name="batch_size", lower=1)
        check_sampler(self.sampler, SAMPLERS)
        given = () if self.callbacks is None else self.callbacks
        if not isinstance(given, Sequence) or not all(map(callable, given)):
            raise TypeError(
                "callbacks must be a list of functions of a study and a trial; got "
                f"{shown(given)}."
            )
        if self.storage is None:
            return
        if search.param_space is None:
            raise ValueError("param_space must be given with a storage; got None.")
        if self.tuning_fraction not in ("auto", None):
            raise ValueError(
                "tuning_fraction must be None with a storage, since a resumed search splits the "
                f"records anew; got {shown(self.tuning_fraction)}."
            )

    # Candidates -------------------------------------------------------------------------------

    def spaces(self, estimator: Any, given: Any) -> Any:
        """Return the spaces that are costed: the given one, and the estimator's own values."""
        space = AdaptiveSpace(given)
        own = self.own_first(estimator, space)
        if own is None or space.holds(own):
            return space.costed()
        # Nothing is drawn from these spaces; all are costed.
        return [{name: [value] for name, value in own.items()}, *space.costed()]

    def own_first(self, estimator: Any, space: AdaptiveSpace) -> dict[str, Any] | None:
        """Return the estimator's own values if they should be tried, in the space or not."""
        if not self.try_own_values:
            return None
        inside = space.own(known_values(estimator))
        return own_values(estimator, space.names) if inside is None else inside

    def suggested(self, candidates: Candidates) -> Candidates:
        """Return all combinations of the suggested values; few of them are tried."""
        found = Candidates(_lists(candidates), name=candidates.name, drawn=True)
        found.suggestion = candidates.suggestion
        return found

    def searched(self, plan: Plan) -> Any:
        """Return the searched space: the given or the suggested one."""
        if plan.candidates.suggestion is not None:
            return _lists(plan.candidates)
        return plan.request.given

    def path_of_runs(self) -> None:
        """Return None: `storage` holds the study, not the runs."""

    def n_runs(self, request: PlanRequest) -> int:
        """Return the number of candidates that are paid for."""
        return int(request.n_candidates or 1)

    # Cost -------------------------------------------------------------------------------------

    def with_own(self, request: PlanRequest) -> PlanRequest:
        """Return the request, whose candidates already hold the estimator's own values."""
        return request

    def split(self, request: PlanRequest) -> tuple[Any, int]:
        """Return the share of the records for candidates' fits; None if records are resplit."""
        return (None, 2) if self.storage is not None else super().split(request)

    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost of all trials, whichever candidates they try."""
        resumes = self.storage is not None
        # If records are split again, each of them is used for training and for scoring.
        model = self.table_model(request, replace(layout, validation=0.0) if resumes else layout)
        model = replace(
            model,
            layout=layout,
            # Theorem G6: any candidate may follow from the noisy scores before it.
            selections=all_together(model.n_runs, resumes=resumes),
            note=f"{model.n_runs} trials, all scores published",
            n_splits=1.0 + model.n_runs if resumes else 1.0,
        )
        asked = request.epsilon if layout.final else None
        if asked is not None and not resumes:
            return solved_table(model, asked, self.limit(asked, layout))
        # Nothing is solved for: trials have at least the noise of the final fit.
        model = replace(
            model,
            fit_noise=max(model.fit_noise or 1.0, 1.0),
            score_noise=max(model.score_noise or 1.0, 1.0),
        )
        if asked is not None:
            model = replace(model, rate_factor=factor_of_rates(model, asked))
        return model, model.within(request.epsilon)

    def public_count(self, plan: Plan) -> int:
        """Return the number of trials: callbacks are called for each."""
        return plan.model.n_runs

    def public_plan(self, search: Any, plan: Plan) -> dict[str, str]:
        """Return descriptions of all that must be the same when the search is resumed."""
        given = {name: described(getattr(search, name)) for name in _OF_SEARCH}
        given |= {name: described(getattr(self, name)) for name in _OF_STRATEGY}
        given |= {
            # Earlier versions could end trials early; such a search cannot be resumed.
            "pruner": "None",
            "param_space": AdaptiveSpace(self.searched(plan)).describe(),
            "n_samples": str(plan.layout.n_samples),
            "n_features": str(plan.layout.n_features),
            "scoring": plan.request.scoring_in_words,
            "public validation data": str(plan.layout.public),
            "total": f"{plan.total.epsilon(plan.delta):.6g}",
            # How the cost is divided: what was paid for before must be what was planned for it.
            "final fit": str(plan.layout.final),
            "cost of a fit": f"{plan.cost.fit.epsilon(plan.delta):.6g}",
            "noise of a score": f"{plan.cost.score_noise.ratio:.6g}",
        }
        # Theorem P14: trials by records say nothing about persons.
        return given | {"unit": "a person"} if plan.by_persons else given

    # Run and choose ---------------------------------------------------------------------------

    def choose(self, run: RunningSearch) -> Choice:
        """Run trials until the budget is used."""
        session = AdaptiveSearchSession(run)
        session.run_all()
        return session.choice()

    def make_sampler(
        self, n_trials: int, n_jobs: int | None, seed: int | None, has_conditions: bool
    ) -> Any:
        """Return the sampler for a study."""
        n_at_once = self.n_at_once(n_jobs)
        return make_sampler(self.sampler, n_trials, seed, n_at_once, has_conditions)

    def n_at_once(self, n_jobs: int | None) -> int:
        """Return the number of candidates that are chosen and fitted in parallel."""
        return int(effective_n_jobs(n_jobs) if self.batch_size is None else self.batch_size)


class AdaptiveSearchSession(SearchSession):
    """An adaptive search in progress, to be driven by your own loop or optimiser.

    `DPAdaptiveSearchCV.start` makes one. `ask` returns a trial, with parameters that you or the
    search's sampler have chosen. `tell` fits it privately and returns its noisy score. `finish`
    chooses a candidate from the table, fits it, and returns the fitted search.

    The cost is that of the search, whichever candidates are asked for and however many trials are
    run. It is owed from the first `tell` on, whether or not the session is finished. Condition:
    candidates are chosen by the values that the session has returned, by chance or by public
    knowledge, and by nothing else that was learned from the data. Threads may share a session and
    take turns; a forked process may not use it.

    Attributes
    ----------
    n_left : int
        Number of further trials that are paid for.
    privacy : PrivacyReport
        The cost of the whole search, as a report.
    study : optuna.Study
        The completed trials, with their noisy scores.

    See Also
    --------
    DPAdaptiveSearchCV : The search itself; its `fit` drives a session for you.

    Notes
    -----
    Theorem G6.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPAdaptiveSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> session = DPAdaptiveSearchCV(
    ...     DPLogisticRegression(solver="output"), {"C": (1e-4, 10.0, "log")}, epsilon=2.0,
    ...     delta=1e-5, n_trials=3, random_state=0,
    ... ).start(X, y)
    >>> while session.n_left:
    ...     score = session.tell(session.ask({"C": 10.0 ** rng.uniform(-4, 1)}))
    >>> session.finish().privacy_.epsilon
    2.0
    """

    _instead = (
        "It also holds records. The search that finish returns may be kept, and with a storage "
        "a search can be resumed."
    )

    def __init__(self, running: RunningSearch) -> None:
        super().__init__(running)
        strategy: AdaptiveTrials = running.strategy
        plan, search = running.plan, running.search
        self._model, self._material = plan.model, running.material()
        space = AdaptiveSpace(strategy.searched(plan))
        own = strategy.own_first(search.estimator, space) or {}
        scorer, self._metrics = running.scorer, tuple(running.scorers)
        self._journal: Journal | None = None
        self._studies = Studies(
            space, own, strategy.storage, strategy.study_name, (scorer.lower, scorer.upper)
        )
        # Trials returned by `ask` and not yet passed to `tell`, by their numbers.
        self._asked: dict[int, AdaptiveTrial] = {}
        self._told: list[Told] = []
        # Theorem G6: a trial is counted when `ask` returns it, or once it has begun before.
        self._n_asked = self._next_number = 0
        self._should_stop = False
        if strategy.storage is not None:
            self._resume()
        seeds = child_stream(running.streams.draw, len(self._told))
        seed = None if seeds is None else int(seeds.generate_state(1)[0] >> 1)
        self._studies.choosing.sampler = strategy.make_sampler(
            self._model.n_runs, search.n_jobs, seed, space.has_conditions
        )
        # The trial of the estimator's own values may have been completed before a crash.
        told = [params for params, _ in self._told]
        self._own = {} if own_place(search.estimator, told) is not None else own

    def _resume(self) -> None:
        """Resume the stored study, and count as spent what was begun."""
        self._journal = Journal(self._studies.released)
        self._journal.open(self._strategy.public_plan(self._running.search, self._running.plan))
        ended = self._studies.runs()
        for begun in self._journal.begun():
            self._n_asked += 1
            # Do not reuse a number: its noise would equal that of the earlier trial.
            self._next_number = max(self._next_number, begun.number + 1)
            if begun.run not in ended:
                self._studies.lose(begun)
        self._told = self._studies.told()

    # Driving --------------------------------------------------------------------------------

    @one_at_a_time
    def ask(self, params: Mapping[str, Any] | None = None) -> AdaptiveTrial:
        """Return a trial to be passed to `tell`.

        Parameters
        ----------
        params : dict, optional
            Values of the search's space. The search's sampler chooses the others.

        Returns
        -------
        AdaptiveTrial

        Raises
        ------
        BudgetExceededError
            If no further trial is paid for.
        """
        self._check_open()
        given = {} if params is None else copied(params)
        if given:
            self._studies.space.check(given)
        if self._n_asked >= self._model.n_runs:
            raise BudgetExceededError(
                f"ask must be called at most as often as is paid for; got a call after "
                f"{self._n_asked} trials. Give more n_trials to start with."
            )
        self._n_asked += 1
        if self._own and not given:
            trial = self._studies.ask_own(self._next_number)
        else:
            trial = self._studies.ask(self._next_number, given)
        self._asked[trial.number] = trial
        self._next_number += 1
        self._own = {}
        return trial

    @one_at_a_time
    def tell(self, trial: AdaptiveTrial) -> float:
        """Fit and score a trial, and return its noisy score; with several metrics, the main one.

        Parameters
        ----------
        trial : AdaptiveTrial
            A trial that `ask` has returned.

        Returns
        -------
        float
            Its noisy score.
        """
        self._check_open()
        if not isinstance(trial, AdaptiveTrial):
            raise TypeError(f"trial must be one that ask has returned; got {shown(trial)}.")
        # Require the same object: a copy could be run a second time.
        if self._asked.get(trial.number) is not trial:
            raise ValueError(
                f"trial must belong to this session and be reported once; got {shown(trial)}."
            )
        (result,) = self._run([trial])
        return result.score

    @one_at_a_time
    def finish(self) -> Any:
        """Choose from the table, fit the winner, and return the fitted search.

        Returns
        -------
        DPAdaptiveSearchCV
            The search that was started, now fitted.
        """
        return self._finished()

    @one_at_a_time
    def run_all(self) -> None:
        """Run trials until the budget is used, or until a callback stops the search."""
        self._show_count()
        while self.n_left > 0 and not self._should_stop:
            count = min(self._strategy.n_at_once(self._running.search.n_jobs), self.n_left)
            self._run([self.ask() for _ in range(count)])

    @property
    @one_at_a_time
    def n_left(self) -> int:
        """Number of further trials that are paid for."""
        return max(self._model.n_runs - self._n_asked, 0)

    @property
    def study(self) -> Any:
        """The study with all released values."""
        return self._studies.released

    # Fits -----------------------------------------------------------------------------------

    def _run(self, trials: Sequence[AdaptiveTrial]) -> list[Result]:
        """Fit and score trials in parallel, and return their results."""
        for trial in trials:
            del self._asked[trial.number]
            trial.is_told = True
        self._running.mark_read()
        runs = [self._run_of(trial) for trial in trials]
        for trial in trials:
            # Theorem G6: a fit that has begun is spent before data are read.
            if self._journal is not None:
                self._journal.begin(self._studies.begun(trial), self._model.n_runs)
        results = self._running.perform(runs, self._material)
        for trial, result in zip(trials, results, strict=True):
            self._end(trial, result)
        return results

    def _run_of(self, trial: AdaptiveTrial) -> Run:
        """Return the run of a trial, whose cost is known to equal the amount paid."""
        costs, size = self._model.fit_costs, self._model.train_size
        setting = self._running.plan.cost.run_setting
        costs.check([trial.params], setting, size)
        made = costs.configured(trial.params, setting, size)
        seeds = child_stream(child_stream(self._running.streams.runs, trial.number), 0)
        return Run(made, *spawned(seeds, 2))

    def _end(self, trial: AdaptiveTrial, result: Result) -> None:
        trial.score = result.score
        means = (float(np.mean(splits)) for splits in result.by_metric)
        trial.metrics = dict(zip(self._metrics, means, strict=True))
        self._told.append((trial.params, result))
        released = self._studies.tell(trial, stored(result.by_metric))
        self._show_count()
        count = f"{len(self._told)}/{self._model.n_runs}"
        self._running.show_line(count, trial.params, result.score)
        with self._running.tasks.task("candidate"):
            # Callbacks are called for completed trials.
            pass
        for callback in self._strategy.callbacks or ():
            self._should_stop |= self._studies.call(callback, released)

    def _show_count(self) -> None:
        self._running.progress.count(len(self._told), self._model.n_runs)

    # The choice -----------------------------------------------------------------------------

    @one_at_a_time
    def choice(self) -> Choice:
        """Return the choice among the completed trials."""
        if not self._told:
            raise RuntimeError("tell must be called before finish; got no trial to choose from.")
        params, results = zip(*self._told, strict=True)
        return replace(
            self._strategy.chosen(self._running, params, results),
            attributes={"study_": self._studies.released},
            before_final=None if self._journal is None else self._journal.begin_final,
        )

    def __repr__(self) -> str:
        """Show the state of the search, all of which is public."""
        return f"AdaptiveSearchSession(n_told={len(self._told)}, n_left={self.n_left})"


def _lists(candidates: Candidates) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in (candidates.suggestion or {}).items()}
