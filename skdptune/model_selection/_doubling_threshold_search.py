"""Search by a doubling threshold: any number of candidates at one constant cost."""

from __future__ import annotations

from typing import Any

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import DoublingThreshold
from skdptune.model_selection._cost import Cost, CostModel, FitCosts, Layout, Plan
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._doubling import (
    DoublingThresholdSession,
    ThresholdChoice,
    batches_of,
)
from skdptune.model_selection._partition_search import PartitionSearch, choice_model_of
from skdptune.model_selection._running import noise_random
from skdptune.model_selection._tuning_search import Choice, SearchState

NOISES = ("sparse", "per-round")
# Share of delta that a search with noise per round may fail with.
_DELTA_SHARE = 0.1


@with_shared_text(SHARED_TEXT)
class DoublingThresholdSearchCV(PartitionSearch):
    """Search with a doubling threshold: any number of candidates for one constant privacy cost.

    Candidates are scored on disjoint partitions of the data, where one record counts for little.
    In rounds, the search asks through noise for a candidate that is a step better than the best so
    far; it doubles the step after a hit and halves it after a miss. The last candidate that
    passed is trained privately on all records. The cost depends neither on the number of
    candidates nor on the number of rounds.

    Use it to reproduce the papers, or with `start` where another optimiser is to propose the
    candidates; with a fixed list of candidates `DPGridSearchCV` chooses with less noise.

    Parameters
    ----------
    {estimator}
    param_grid : dict or list of dicts, optional
        From parameter names to lists of values: the candidates, in the order of each round.

        {no_space}

        On the default number of partitions that is always so, since the noise of the choice is
        larger than what suggested values gain; a larger `n_partitions` lessens it.
    param_distributions : dict or list of dicts, optional
        Instead of `param_grid`: each round draws `batch_size` fresh candidates from lists or
        distributions.
    batch_size : int, default=16
        Number of candidates of a round with `param_distributions`.
    {budget}
    selection_epsilon : float, optional
        What the threshold search may cost; by default a quarter of the total, or all
        of it with ``refit=False``.
    n_partitions : "auto" or int, default="auto"
        Number of disjoint partitions. "auto" follows from the budget (at least 5 / epsilon, as the
        papers advise) and from the public number of records.
    granularity : float, default=0.01
        The least gain in utility that counts; a utility is a score scaled to [0, 1]. A coarser
        one (0.1, say) means fewer hits to pay for, and so less noise.
    initial_utility : float, default=0.0
        Utility that can be reached without the data, such as that of guessing.
    noise : {"sparse", "per-round"}, default="sparse"
        "sparse" draws the threshold's noise once and pays for hits alone; "per-round" draws all
        noise afresh and pays for each round, as the papers do.
    max_rounds, max_hits : int, optional
        Most rounds and hits; fewer mean less noise ("per-round": rounds, "sparse": hits). The
        default is what a search without noise needs.
    tuning_estimator : estimator, optional
        Surrogate that is trained on the partitions in place of `estimator`, with the same searched
        parameters. It need not be private. The default is `estimator` with the noise that the
        final fit will have relative to its signal.
    {scoring}
    cv : float, default=0.2
        Chance of each record to be held out for validation. Folds are not needed: the partitions
        take their place.
    refit : {"winner", True, False}, default="winner"
        "winner" and True fit the winner on all records; False returns no model.
    {common_parameters}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters: those of the last candidate that passed. If none did, they are the first
        candidate's (of the grid, or drawn), which does not depend on the data.
    best_score_ : float
        The score that was reached, a noisy level.
    trace_ : tuple of ThresholdRound
        Utility, step and outcome of every round: paid for, so that it may be published. Not
        there where no search was made.
    cv_results_ : dict
        The one row that was paid for: the winner's.
    best_index_ : int
        Its row, 0.
    {common_attributes}

    See Also
    --------
    DoublingThresholdSession : The search driven from outside, by `start`.
    skdptune.mechanisms.DoublingThreshold : The mechanism itself.
    DPGridSearchCV : Chooses from the same utilities by permute-and-flip, with less noise.

    Notes
    -----
    Theorem D0.

    Neighbours differ by adding or removing one record. One record changes a utility by at
    most ``1 / n_partitions`` if it trains, and by ``1 / n_score`` if it is scored on. The papers
    charge the rounds that were made, whose number depends on the data; here the cost is
    fixed before.

    References
    ----------
    Ding, Wu, Xu, Pan: Constant-overhead Differentially Private Hyperparameter Tuning.
    Ding, Wu: Revisiting Hyperparameter Tuning with Differential Privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DoublingThresholdSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> search = DoublingThresholdSearchCV(
    ...     DPLogisticRegression(), {"C": [1e-3, 1e-1, 10.0]}, epsilon=2.0, delta=1e-5,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> search.privacy_.epsilon
    2.0
    >>> search.trace_[0].step
    1
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        param_distributions: Any = None,
        batch_size: int = 16,
        epsilon: float | None = None,
        delta: float | None = None,
        selection_epsilon: float | None = None,
        n_partitions: Any = "auto",
        granularity: float = 0.01,
        initial_utility: float = 0.0,
        noise: str = "sparse",
        max_rounds: int | None = None,
        max_hits: int | None = None,
        tuning_estimator: Any = None,
        scoring: Any = None,
        cv: float = 0.2,
        refit: Any = "winner",
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
        self.param_grid = param_grid
        self.param_distributions = param_distributions
        self.batch_size = batch_size
        self.epsilon = epsilon
        self.delta = delta
        self.selection_epsilon = selection_epsilon
        self.n_partitions = n_partitions
        self.granularity = granularity
        self.initial_utility = initial_utility
        self.noise = noise
        self.max_rounds = max_rounds
        self.max_hits = max_hits
        self.tuning_estimator = tuning_estimator
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.random_state = random_state
        self.diagnostics = diagnostics
        self.n_public = n_public
        self.ledger = ledger

    # Candidates -----------------------------------------------------------------------------

    # Scores are never published one by one.
    score_epsilon = None

    def _space(self) -> tuple[Any, str, bool]:
        if self.param_distributions is None:
            return self.param_grid, "param_grid", False
        if self.param_grid is not None:
            raise ValueError(
                "param_grid or param_distributions must be given, and not both; got both."
            )
        return self.param_distributions, "param_distributions", True

    def _missing(self) -> tuple[str, str]:
        return "param_grid or param_distributions", "neither"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_partition_parameters()
        check_option(self.noise, name="noise", options=NOISES)
        check_integer(self.batch_size, name="batch_size", lower=1)
        check_real(self.granularity, name="granularity", lower=0.0, lower_open=True, upper=1.0)

    # Cost -----------------------------------------------------------------------------------

    def _cost(self, layout: Layout, fit_costs: FitCosts, delta: float) -> tuple[CostModel, Cost]:
        def choice(
            epsilon: float, n_partitions: int, n_score: int | None
        ) -> tuple[PrivacyProfile, PrivacyProfile]:
            rounds = self._rounds(epsilon, delta, n_partitions, n_score, None)
            return rounds.profile, rounds.profile

        note = f"doubling threshold, {self.noise} noise"
        model = self._choice_model(layout, fit_costs, delta, choice, note)
        return model, model.within(self.epsilon)

    def _rounds(
        self, epsilon: float, delta: float, n_partitions: int, n_score: int | None, random: Any
    ) -> DoublingThreshold:
        """Return a threshold search whose noise covers records that train and that score."""
        # Theorem D1.
        return DoublingThreshold(
            sensitivity=max(1.0 / n_partitions, 0.0 if n_score is None else 1.0 / n_score),
            granularity=self.granularity,
            initial_utility=self.initial_utility,
            noise=self.noise,
            epsilon=epsilon,
            delta=_DELTA_SHARE * delta if self.noise == "per-round" else 0.0,
            max_rounds=self.max_rounds,
            max_hits=self.max_hits,
            random_state=random,
        )

    def _rounds_of(self, plan: Plan, random: Any) -> DoublingThreshold:
        model = choice_model_of(plan)
        return self._rounds(
            model.choice_epsilon, plan.delta, model.n_partitions, model.n_score, random
        )

    def _number_of_fits(self, plan: Plan) -> tuple[float, float]:
        # A fit on each of k partitions is the work of one fit on all of them.
        if not plan.candidates.drawn:
            fits = float(len(plan.candidates.grid()))
            return fits, fits
        rounds = self._rounds_of(plan, None)
        # A search misses less often than it hits, before its last hit.
        limits = (rounds.max_rounds, None if rounds.max_hits is None else 2 * rounds.max_hits - 1)
        fits = float(min(limit for limit in limits if limit is not None) * self.batch_size)
        return fits, fits

    # Run and choose -------------------------------------------------------------------------

    def start(
        self, X: Any, y: Any = None, *, X_val: Any = None, y_val: Any = None, **params: Any
    ) -> DoublingThresholdSession:
        """Return a session that is offered candidates by whoever drives it, in place of `fit`.

        Parameters
        ----------
        X, y, X_val, y_val, **params
            As for `fit`.

        Returns
        -------
        DoublingThresholdSession
            Costs what the search costs; its `finish` fits the search.
        """
        if self._given() is None:
            raise ValueError(
                "param_grid or param_distributions must be given for a session; got neither. They "
                "say what its candidates may cost."
            )
        return self._start(self._started(X, y, X_val, y_val, params, tries=False))

    def _start(self, state: SearchState) -> DoublingThresholdSession:
        random = noise_random(state.streams.pick)
        return DoublingThresholdSession(self, self._rounds_of(state.plan, random), state)

    def _choose(self, state: SearchState) -> Choice:
        session = self._start(state)
        batches = batches_of(state.plan.candidates, self.batch_size, state.streams.draw)
        while not session.finished:
            session.propose(next(batches))
        return session.choice()

    def _publish(self, plan: Plan, choice: Choice, model: Any) -> None:
        # Theorem D4.
        super()._publish(plan, choice, model)
        if isinstance(choice, ThresholdChoice):
            self.trace_ = choice.trace
