"""An adaptive search in progress, for which the caller may choose the candidates."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from skdptune._formatting import shown
from skdptune._running_budget import one_at_a_time
from skdptune.base._shared import nested_estimators, own_parameters
from skdptune.model_selection._adaptive import (
    PRUNERS,
    AdaptiveTrial,
    Allowance,
    Race,
    Races,
    Studies,
    Told,
)
from skdptune.model_selection._cost import CurveSetting, FitSize, copied
from skdptune.model_selection._running import Result, Run, child_stream, spawned
from skdptune.model_selection._space import AdaptiveSpace
from skdptune.model_selection._strategies._full_table import own_place, row_of
from skdptune.model_selection._strategies._running_search import RunningSearch, SearchSession
from skdptune.model_selection._strategies._strategy import Choice
from skdptune.model_selection._study import Journal, stored

if TYPE_CHECKING:
    from skdptune.model_selection._strategies._adaptive_trials import AdaptiveTrials

_EPOCHS = ("epochs", "max_epochs")


def with_share(
    estimator: Any, candidate: dict[str, Any], share: Fraction, size: FitSize
) -> dict[str, Any]:
    """Return a candidate with a share of its epochs, if one of its steps has epochs.

    If no step has epochs, or their number follows from the budget, the candidate is returned
    unchanged. Its fit then has correspondingly more noise.
    """
    if share == 1:
        return candidate
    made = clone(estimator).set_params(**copied(candidate))
    found = dict(candidate)
    for prefix, step in nested_estimators(made):
        known = own_parameters(step)
        for name in _EPOCHS:
            epochs = _epochs_of(step, name, known.get(name), size)
            if epochs is not None:
                found[f"{prefix}{name}"] = _shortened(epochs, share)
    return found


def _epochs_of(step: Any, name: str, given: Any, size: FitSize) -> Any:
    """Return the number of epochs of a step; None if the step has no known number."""
    if isinstance(given, numbers.Real) and not isinstance(given, bool):
        return given
    # Text values refer to the budget, from which the number of epochs follows.
    is_by_size = isinstance(given, str) and given == "auto"
    if not is_by_size or not hasattr(step, "tuning_parameters"):
        return None
    found = step.tuning_parameters(size.n_samples, size.n_final).get(name)
    return found if isinstance(found, numbers.Real) else None


def _shortened(epochs: Any, share: Fraction) -> Any:
    if isinstance(epochs, numbers.Integral):
        return max(1, round(int(epochs) * float(share)))
    return float(epochs) * float(share)


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
        Number of further trials that are paid for now. With a pruner it may grow, since pruned
        trials leave budget for others.
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
        self._shares, self._prunes = plan.model.solved.shares, plan.model.solved.prunes
        self._allowance = Allowance(plan.model.n_runs, self._shares)
        space = AdaptiveSpace(strategy.searched(plan))
        own = strategy.own_first(search.estimator, space) or {}
        scorer, self._metrics = running.scorer, tuple(running.scorers)
        self._journal: Journal | None = None
        self._studies = Studies(
            space,
            own,
            strategy.pruner,
            [int(share / self._shares[0]) for share in self._shares],
            strategy.storage,
            strategy.study_name,
            (scorer.lower, scorer.upper),
        )
        # Trials returned by `ask` and not yet passed to `tell`, by their numbers.
        self._asked: dict[int, AdaptiveTrial] = {}
        self._told: list[Told] = []
        self._next_number = 0
        self._should_stop = False
        if strategy.storage is not None:
            self._resume()
        seeds = child_stream(running.streams.draw, len(self._told))
        seed = None if seeds is None else int(seeds.generate_state(1)[0] >> 1)
        self._studies.choosing.sampler = strategy.make_sampler(
            self._model.n_runs, search.n_jobs, seed
        )
        last = len(self._shares) - 1
        told = [one.params for one in self._told if one.place == last]
        # The trial of the estimator's own values may have been completed before a crash.
        self._own = {} if own_place(search.estimator, told) is not None else own
        self._races: Races | None = None
        if strategy.pruner in PRUNERS:
            self._races = Races(strategy.pruner, self._allowance, has_own=bool(self._own))

    def _resume(self) -> None:
        """Resume the stored study, and count as spent what was begun."""
        self._journal = Journal(self._studies.released)
        self._journal.open(self._strategy.public_plan(self._running.search, self._running.plan))
        ended = self._studies.runs()
        for begun in self._journal.begun():
            self._allowance.count(begun.shares)
            # Do not reuse a number: its noise would equal that of the earlier trial.
            self._next_number = max(self._next_number, begun.number + 1)
            if begun.run not in ended:
                self._studies.lose(begun, self._journal.scores(begun.run))
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
        race = None if self._races is None else self._races.enter()
        if race is None:
            self._allowance.ask()
        is_own = bool(self._own) and not given
        if is_own:
            trial = self._studies.ask_own(self._next_number)
        else:
            trial = self._studies.ask(self._next_number, given)
        trial._is_own, trial._race = is_own, race
        trial._start = 0 if race is None else race.bracket.start
        self._asked[trial.number] = trial
        self._next_number += 1
        self._own = {}
        return trial

    @one_at_a_time
    def tell(self, trial: AdaptiveTrial) -> float:
        """Fit and score a trial, and return its noisy score; with several metrics, the main one.

        With a pruner the trial is fitted repeatedly with less noise, until the pruner ends it.
        With "halving" and "hyperband" it first waits for all trials of its race. The best third is
        fitted again within the `tell` of the last of them, or within `finish`.

        Parameters
        ----------
        trial : AdaptiveTrial
            A trial that `ask` has returned.

        Returns
        -------
        float
            The latest of its noisy scores.
        """
        self._check_open()
        if not isinstance(trial, AdaptiveTrial):
            raise TypeError(f"trial must be one that ask has returned; got {shown(trial)}.")
        # Require the same object: a copy could be run a second time.
        if self._asked.get(trial.number) is not trial:
            raise ValueError(
                f"trial must belong to this session and be reported once; got {shown(trial)}."
            )
        self._run([trial])
        return trial.scores[-1]

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
            left = self.n_left if self._races is None else self._races.n_together
            count = min(self._strategy.n_at_once(self._running.search.n_jobs), left)
            self._run([self.ask() for _ in range(count)])

    @property
    @one_at_a_time
    def n_left(self) -> int:
        """Number of further trials that are paid for now."""
        left = self._allowance if self._races is None else self._races
        return max(left.n_left, 0)

    @property
    def study(self) -> Any:
        """The study with all released values."""
        return self._studies.released

    # Fits -----------------------------------------------------------------------------------

    def _run(self, trials: Sequence[AdaptiveTrial]) -> None:
        """Run trials in parallel, each until it ends or has to wait for others."""
        for trial in trials:
            del self._asked[trial.number]
            trial.is_told = True
        self._running.mark_read()
        if self._races is None:
            self._climb(trials)
            return
        races: dict[int, Race] = {}
        for place in range(len(self._shares)):
            starting = [trial for trial in trials if trial._start == place]
            self._arrive(starting, place)
            races |= {id(trial._race): trial._race for trial in starting}
        for race in races.values():
            self._go_on(race)

    def _climb(self, trials: Sequence[AdaptiveTrial]) -> None:
        """Run trials rung by rung, until each is pruned or complete."""
        going = list(trials)
        for place in range(len(self._shares)):
            staying = []
            for trial, result in zip(going, self._scored(going, place), strict=True):
                is_last = place == len(self._shares) - 1
                # The estimator's own values are the reference for the others: they are never
                # pruned.
                trial.is_pruned = not (is_last or trial._is_own) and self._studies.prunes(trial)
                if is_last or trial.is_pruned:
                    self._allowance.close(place + 1)
                    self._end(trial, result, place)
                else:
                    staying.append(trial)
            going = staying
            if not going:
                return

    def _arrive(self, trials: Sequence[AdaptiveTrial], place: int) -> None:
        """Run trials at a rung, where they then wait for the others of their races."""
        if trials:
            for trial, result in zip(trials, self._scored(trials, place), strict=True):
                trial._race.arrive(trial, result)

    def _go_on(self, race: Race) -> None:
        """Run the best third of each complete race at the next rung, and so on."""
        n_rungs = len(self._shares)
        while self._races is not None and race.is_complete:
            place = race.place
            going, ending = race.divide(n_rungs)
            for trial, result in ending:
                trial.is_pruned = place < n_rungs - 1
                self._end(trial, result, place)
            self._arrive(going, place + 1)
            if not going:
                self._races.end(race)

    def _scored(self, trials: Sequence[AdaptiveTrial], place: int) -> list[Result]:
        """Fit and score trials at a rung, and store the noisy scores."""
        # Theorem G6: a fit that has begun is spent before data are read.
        runs = [self._run_of(trial, place) for trial in trials]
        for trial in trials:
            self._begin(trial, place)
        ratio = self._material.scoring.ratio / math.sqrt(self._shares[place])
        noisier = replace(self._material.scoring, ratio=ratio)
        results = self._running.perform(runs, replace(self._material, scoring=noisier))
        for trial, result in zip(trials, results, strict=True):
            trial.scores += (result.score,)
            means = (float(np.mean(splits)) for splits in result.by_metric)
            trial.metrics = dict(zip(self._metrics, means, strict=True))
            self._studies.report(trial, result.score, place)
            if self._journal is not None and place < len(self._shares) - 1:
                self._journal.note_score(trial._run, place, stored(result.by_metric))
        return results

    def _run_of(self, trial: AdaptiveTrial, place: int) -> Run:
        """Return the run of a trial, whose cost is known to equal the amount paid."""
        model, rungs, share = self._model, self._model.solved, self._shares[place]
        costs, size = model.fit_costs, rungs.size(model, share)
        setting = rungs.setting(model, self._running.plan.cost.run_setting, share)
        candidate = with_share(costs.estimator, trial.params, share / self._shares[-1], size)
        if rungs.prunes and isinstance(setting, CurveSetting):
            costs.check_below(candidate, setting, size)
        else:
            costs.check([candidate], setting, size)
        made = costs.configured(candidate, setting, size)
        seeds = child_stream(child_stream(self._running.streams.runs, trial.number), place)
        return Run(made, *spawned(seeds, 2))

    def _begin(self, trial: AdaptiveTrial, place: int) -> None:
        if self._races is None:
            self._allowance.begin(place)
        else:
            self._races.begin(trial._race, place)
        if self._journal is not None:
            begun = self._studies.begun(trial, self._shares[trial._start : place + 1])
            self._journal.begin(begun, self._allowance.n_trials)

    def _end(self, trial: AdaptiveTrial, result: Result, place: int) -> None:
        details = result.seconds, result.error
        self._told.append(
            Told(trial.params, result.splits, place, trial.is_pruned, result.further, details)
        )
        released = self._studies.tell(trial, stored(result.by_metric))
        self._show_count()
        count = f"{len(self._told)}" + ("" if self._prunes else f"/{self._model.n_runs}")
        ending = ", pruned" if trial.is_pruned else ""
        self._running.show_line(count, trial.params, trial.scores[-1], ending)
        with self._running.tasks.task("candidate"):
            # Callbacks are called for completed trials.
            pass
        for callback in self._strategy.callbacks or ():
            self._should_stop |= self._studies.call(callback, released)

    def _show_count(self) -> None:
        progress, done = self._running.progress, len(self._told)
        if self._prunes:
            progress.phase(f"{done} candidates, {self.n_left} left")
        else:
            progress.count(done, self._model.n_runs)

    # The choice -----------------------------------------------------------------------------

    @one_at_a_time
    def choice(self) -> Choice:
        """Return the choice among the trials that came furthest, with the rows of all trials."""
        for race in [] if self._races is None else self._races.closed():
            self._go_on(race)
        if not self._told:
            raise RuntimeError("tell must be called before finish; got no trial to choose from.")
        furthest = max(one.place for one in self._told)
        places = [i for i, one in enumerate(self._told) if one.place == furthest]
        last = [self._told[i] for i in places]
        results = [Result(None, one.score, *one.details, one.splits, one.further) for one in last]
        params = [one.params for one in last]
        found = self._strategy.chosen(self._running, params, results)
        deviation = self._strategy.deviation(self._running.plan)
        rungs = self._shares
        rows = [
            row_of(one.params, one, deviation * math.sqrt(rungs[-1] / rungs[one.place]))
            for one in self._told
        ]
        shares = np.array([float(rungs[one.place] / rungs[-1]) for one in self._told])
        return replace(
            found,
            rows=rows,
            index=places[found.index],
            columns={"resource": shares} if self._prunes else {},
            attributes={"study_": self._studies.released},
            before_final=None if self._journal is None else self._journal.begin_final,
        )

    def __repr__(self) -> str:
        """Show the state of the search, all of which is public."""
        return f"AdaptiveSearchSession(n_told={len(self._told)}, n_left={self.n_left})"
