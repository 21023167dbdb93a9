"""A search in progress: fit and score candidates, make the final fit, and publish."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdptune._compat import Tasks
from skdptune._formatting import shown
from skdptune._progress import Progress
from skdptune._running_budget import RunningBudget
from skdptune._version import __version__
from skdptune.accounting import BudgetExceededError, PrivacyReport
from skdptune.base._shared import is_paid, ledger_for
from skdptune.ledger import LedgerError, Reservation
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._adaptive import described
from skdptune.model_selection._cost import FitSetting, copied
from skdptune.model_selection._running import (
    ONE_FIT,
    Data,
    Fold,
    Material,
    OnResult,
    RandomSplit,
    Result,
    Run,
    RunFile,
    Scoring,
    Streams,
    clipped_deviation,
    disjoint_folds,
    final_model,
    generator_of,
    perform_runs,
    results_by_metric,
    spawned,
)
from skdptune.model_selection._strategies._strategy import Choice, Plan, Strategy
from skdptune.model_selection._study import fingerprint_of

# Parameters of a search that do not change its runs, or are described elsewhere.
_NOT_OF_RUNS = ("strategy", "scoring", "n_jobs", "verbose", "ledger")
# Draws with a fixed seed, which represent the distribution.
_DRAWS = 8


@dataclass(frozen=True)
class RunningSearch:
    """One fit of a search in progress, as strategies and sessions see it.

    Attributes
    ----------
    search : estimator
        The search that is being fitted.
    plan : Plan
    strategy : Strategy
        The strategy of the plan, with the callbacks and the storage of the search's own strategy.
    data : Data
    split : RandomSplit
        How the records are divided.
    public : Data or None
        Public validation data.
    streams : Streams
        Streams of seeds.
    progress : Progress
    tasks : Tasks
        Tasks for callbacks.
    reservation : Reservation or None
        Reservation of a session, which reads the data while it is driven.
    file : RunFile or None
        The file that stores the runs.
    is_recorded : bool
        False for a session that was started without a ledger.
    made : list of int
        Numbers of candidates fitted and scored so far.
    folds : list
        The split into folds, once it is drawn; there is only one.
    """

    search: Any
    plan: Plan
    strategy: Strategy
    data: Data
    split: RandomSplit
    public: Data | None
    streams: Streams
    progress: Progress
    tasks: Tasks
    file: RunFile | None = None
    reservation: Reservation | None = None
    is_recorded: bool = True
    made: list[int] = field(default_factory=list)
    folds: list[Sequence[Fold]] = field(default_factory=list)

    @property
    def scorer(self) -> BoundedScorer:
        """How candidates are scored; with several metrics, the main one."""
        found: BoundedScorer = self.search._scorer()
        return found

    @property
    def scorers(self) -> dict[str, BoundedScorer]:
        """The scorers of all metrics by their names, with the main metric first."""
        found: dict[str, BoundedScorer] = self.search._scorers()
        return found

    @property
    def validation(self) -> Data:
        """The records on which candidates are scored, unless folds are used."""
        return self.data.take(self.split.validation) if self.public is None else self.public

    # Candidates -------------------------------------------------------------------------------

    def fit_and_score(
        self, candidates: Sequence[dict[str, Any]], on_result: OnResult | None = None
    ) -> list[Result]:
        """Fit and score candidates in parallel; results are in the order of the candidates.

        All calls share one split into folds, and at most the paid number of candidates is fitted.
        """
        model, setting = self.plan.model, self.plan.cost.run_setting
        self.made.append(len(candidates))
        is_fixed = self.strategy.run_counts(self.plan) is None
        if is_fixed and sum(self.made) > model.n_runs:
            raise BudgetExceededError(
                f"choose must fit at most the {model.n_runs} candidates that are paid for (n_runs "
                f"of the cost); got {sum(self.made)}."
            )
        size = model.train_size
        model.fit_costs.check(candidates, setting, size)
        runs = []
        seeds = spawned(self.streams.runs, len(candidates))
        for candidate, seed in zip(candidates, seeds, strict=True):
            made = model.fit_costs.configured(candidate, setting, size)
            runs.append(Run(made, *spawned(seed, 2)))
        # Theorem F13: nobody has seen anything of a run that is missing in the file.
        first, stored = sum(self.made) - len(runs), {} if self.file is None else self.file.results
        # The file also has the runs of other calls.
        places = range(len(runs))
        known = {place: stored[first + place] for place in places if first + place in stored}
        left = [place for place in places if place not in known]
        if on_result is not None:
            for place, result in known.items():
                on_result(place, result)

        def note(place: int, result: Result) -> None:
            # Store before showing: a run that was shown is not made again.
            if self.file is not None:
                self.file.note(first + left[place], result)
            if on_result is not None:
                on_result(left[place], result)

        made = self.perform([runs[place] for place in left], self.material(), note)
        known |= dict(zip(left, made, strict=True))
        return [result for _, result in sorted(known.items())]

    def perform(
        self, runs: Sequence[Run], material: Material, on_result: OnResult | None = None
    ) -> list[Result]:
        """Fit and score runs in parallel."""
        return perform_runs(
            runs,
            material,
            n_jobs=self.search.n_jobs,
            pre_dispatch=self.strategy.pre_dispatch,
            on_result=on_result,
        )

    def material(self) -> Material:
        """Return the data shared by all runs: the records, and how they are scored."""
        layout, noise = self.plan.layout, self.plan.cost.score_noise
        public, splits = layout.public, layout.folds > 0 and self.strategy.splits_scores
        n_score = layout.n_score_of_fold if splits else layout.n_score
        scorers = list(self.scorers.values())
        if len(scorers) > noise.n_metrics and not public:
            raise BudgetExceededError(
                f"scoring must be of the {noise.n_metrics} metrics that are paid for (metrics of "
                f"the cost); got {len(scorers)}."
            )
        sensitivities = [
            0.0 if public else layout.sensitivity(scorer, n_score) for scorer in scorers
        ]
        scoring = Scoring(
            scorers[0],
            None if public else n_score,
            sensitivities[0],
            noise.ratio,
            noise.kind,
            tuple(zip(scorers[1:], sensitivities[1:], strict=True)),
            # With more records than expected, clipped scores of all candidates may be equal.
            clips=not layout.by_rule,
        )
        if layout.folds and not self.folds:
            # Theorem F7: split only once, since each split may leave a fit without a record.
            rng = generator_of(spawned(self.streams.random_split, 1)[0])
            self.folds.append(disjoint_folds(self.split.tuning.size, layout.folds, rng))
        is_part = layout.train_share < 1.0 or layout.folds
        return Material(
            self.data.take(self.split.tuning) if is_part else self.data,
            self.folds[0] if layout.folds else ONE_FIT,
            None if layout.folds else self.validation,
            scoring,
            keeps_models=not layout.folds and self.strategy.keeps_models(self.plan),
            raises=self.strategy.error_score == "raise",
            splits_scores=splits,
        )

    def highest(self, results: Sequence[Result]) -> int:
        """Return the index of the highest score; ties are broken by data-independent marks."""
        # Theorem F4: a failure scores the worst, with noise.
        marks = generator_of(self.streams.pick).random(len(results))
        scores = np.array([result.score for result in results])
        return int(np.lexsort((marks, scores))[-1])

    def show_line(self, count: str, params: Mapping[str, Any], score: float) -> None:
        """Show the noisy score of a candidate, if the user asks for lines."""
        if (self.search.verbose or 0) > 1:
            clipped = float(np.clip(score, self.scorer.lower, self.scorer.upper))
            words = ", ".join(f"{name}={value}" for name, value in params.items())
            self.progress.line(f"[{count}] {words}; score={clipped:.3f}")

    # The ledger -------------------------------------------------------------------------------

    def mark_read(self) -> None:
        """Record that the data are read from now on; raise if an active ledger lacks it."""
        if self.reservation is not None:
            self.reservation.mark_read()
        elif not self.is_recorded and not is_paid(self.search):
            # Theorem H4: the ledger records a read before it happens.
            ledger = ledger_for(self.search)
            if ledger is not None:
                raise LedgerError(
                    "ledger must be active when a session is started, to reserve its cost; got "
                    f"{shown(ledger)} after the start of {type(self.search).__name__}. Start it "
                    "again in `with ledger:`. Nothing was read."
                )

    # The end ----------------------------------------------------------------------------------

    def finish(self, choice: Choice) -> Any:
        """Fit the winner of a session, publish the results, and return the fitted search."""
        self.mark_read()
        self.publish(choice, self.final_model(choice))
        if self.reservation is not None:
            self.reservation.confirm()
        return self.search

    def final_model(self, choice: Choice) -> Any:
        """Return the model to publish; if a fit failed, one that does not depend on data."""
        plan, model = self.plan, self.plan.model
        if plan.request.refit is False:
            return None
        if choice.before_final is not None:
            choice.before_final()
        if not plan.layout.final and choice.model is not None:
            return choice.model
        setting: FitSetting | None = plan.cost.setting
        size = model.final_size if plan.layout.final else model.train_size
        model.fit_costs.check([choice.candidate], setting, size)
        made = model.fit_costs.configured(choice.candidate, setting, size)
        return final_model(
            made,
            self.data.take(self.split.final),
            self.streams.final,
            plan.layout.n_samples,
            raises=self.strategy.error_score == "raise",
            tries=plan.layout.final or plan.declined is not None,
            **self.strategy.start_from(plan.request.estimator, choice.model),
        )

    def publish(self, choice: Choice, model: Any) -> None:
        """Set the public attributes of the search."""
        search, scorers, scorer = self.search, self.scorers, self.scorer
        is_multimetric = self.plan.request.is_multimetric
        rows = [{**row, "params": copied(row["params"])} for row in choice.rows]
        found: dict[str, Any] = {"cv_results_": results_by_metric(rows, scorers) | choice.columns}
        # As in scikit-learn: without a metric to choose by, no candidate is the best.
        if search.refit is not False or not is_multimetric:
            # Copies: the objects for which plans were costed stay out of reach.
            found |= {"best_params_": copied(choice.candidate), "best_index_": choice.index}
            # Noise may exceed the bounds; clipping reads no data.
            if not callable(search.refit):
                found["best_score_"] = float(np.clip(choice.score, scorer.lower, scorer.upper))
            if choice.deviation is not None:
                deviation = clipped_deviation(choice.deviation, scorer.lower, scorer.upper)
                found["best_score_std_"] = float(deviation)
        if self.strategy.diagnostics:
            found["diagnostics_"] = deepcopy(choice.diagnostics)
        shown = scorers if is_multimetric else scorer
        search._publish(self.plan, shown, model, found | choice.attributes)


class SearchSession(RunningBudget):
    """Base of searches in progress that the caller drives."""

    def __init__(self, running: RunningSearch) -> None:
        super().__init__()
        self._running, self._strategy, self._is_open = running, running.strategy, True
        self._report: PrivacyReport = running.search._report(running.plan)

    @abstractmethod
    def choice(self) -> Choice:
        """Return the winner so far."""

    @property
    def privacy(self) -> PrivacyReport:
        """The cost of the whole search, as a report."""
        return self._report

    def _finished(self) -> Any:
        """Fit the winner, and return the fitted search."""
        self._check_open()
        choice = self.choice()
        # Close the session first: the final fit is paid for only once.
        self._is_open = False
        return self._running.finish(choice)

    def _check_open(self) -> None:
        if not self._is_open:
            raise RuntimeError(
                "session must be used before finish; got a call after it. Start a new session, "
                "at the full cost again."
            )


def run_file(search: Any, plan: Plan, data: Data, public: Data | None) -> RunFile | None:
    """Return the file that stores the runs of a search; None if there is none.

    Raises ValueError if the file belongs to another search, to other data, or to an ended search.
    """
    path, candidates = search._strategy().path_of_runs(), plan.candidates
    if path is None:
        return None
    strategy, parameters = plan.strategy.of_plan()
    own = {
        name: described(value)
        for name, value in search.get_params(deep=False).items()
        if name not in (*_NOT_OF_RUNS, search._space()[1])
    }
    seeds = np.random.SeedSequence(0).spawn(_DRAWS)
    drawn = candidates.draw_each(seeds) if candidates.drawn else list(candidates.grid())
    words = (__version__, strategy.__name__, described(sorted(parameters.items())), own)
    scoring = plan.request.scoring_in_words
    identity = fingerprint_of(words, scoring, described(drawn), data, public)
    return RunFile(path, identity, keeps_all=plan.strategy.run_counts(plan) is None)
