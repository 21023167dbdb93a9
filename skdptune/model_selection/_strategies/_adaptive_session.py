"""An adaptive search in progress, for which the caller may choose the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skdptune._formatting import shown
from skdptune._running_budget import one_at_a_time
from skdptune.accounting import BudgetExceededError
from skdptune.model_selection._adaptive import AdaptiveTrial, Studies, Told
from skdptune.model_selection._cost import copied
from skdptune.model_selection._running import Result, Run, child_stream, spawned
from skdptune.model_selection._space import AdaptiveSpace
from skdptune.model_selection._strategies._full_table import own_place
from skdptune.model_selection._strategies._running_search import RunningSearch, SearchSession
from skdptune.model_selection._strategies._strategy import Choice
from skdptune.model_selection._study import Journal, stored

if TYPE_CHECKING:
    from skdptune.model_selection._strategies._adaptive_trials import AdaptiveTrials


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
            self._model.n_runs, search.n_jobs, seed
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
