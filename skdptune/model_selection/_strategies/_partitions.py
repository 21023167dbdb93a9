"""Score candidates on disjoint partitions of the data, and publish only the choice."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune._compat import remove_callbacks
from skdptune._docstrings import with_shared_text
from skdptune._validation import check_estimator, check_integer, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import (
    LEARNING_RATES,
    budget_owners,
    change_parameters,
    cost_of,
    disable_caching,
    nested_estimators,
    own_parameters,
    set_public_size,
    without_noise,
)
from skdptune.mechanisms import permute_and_flip_release
from skdptune.model_selection._cost import (
    BudgetSetting,
    Cost,
    CostModel,
    FitSetting,
    FitSize,
    Layout,
    ScoreNoise,
    split_of,
)
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._running import (
    Values,
    auto_partitions,
    choice_noise,
    disjoint_partitions,
    expected_size,
    generator_of,
    noise_random,
    partition_utilities,
    permute_and_flip_cost,
    protects_persons,
    spawned,
)
from skdptune.model_selection._strategies._running_search import RunningSearch
from skdptune.model_selection._strategies._strategy import Choice, Plan, PlanRequest, Strategy

# The least noise that all private estimators of this package can be given.
_LEAST_NOISE = 0.05
# Share of a total: rounding must not exceed the total.
_NEARLY_ALL = 1.0 - 1e-9
_NOT_COMPARED = (
    "No score is published that compares the winner with the unchanged estimator, so the "
    "probability that the winner is worse is unknown. A full table or a random search states "
    "it."
)
# Share of a fit's epsilon that may be spent on choosing its parameters.
_CHOICE_SHARE = 0.25


@dataclass(frozen=True)
class Partitions:
    """Public numbers with which a choice by partitions is planned.

    Attributes
    ----------
    epsilon : float
        Epsilon of the choice.
    count : int
        Number of disjoint partitions.
    n_score : int or None
        Public constant for the number of records that a score averages; None if their number is
        public.
    """

    epsilon: float
    count: int
    n_score: int | None

    @property
    def sensitivity(self) -> float:
        """The largest change of a utility by one record."""
        return max(1.0 / self.count, 0.0 if self.n_score is None else 1.0 / self.n_score)


class PartitionStrategy(Strategy):
    """Base of the strategies that choose by utilities: mean scores over disjoint partitions.

    A *surrogate estimator* is trained on each partition. The cost of the choice covers any
    training there, so the surrogate may be any estimator, private or not.
    """

    n_partitions: int | str
    tuning_estimator: Any
    selection_epsilon: float | None

    # Each of many partitions would be a pass over all rows.
    takes_parts = False

    # With the default number of partitions, a score has the same deviation at any data size.
    what_would_help = "more records in more parts (n_partitions)"

    @abstractmethod
    def choice_cost(
        self, request: PlanRequest, layout: Layout, partitions: Partitions
    ) -> tuple[PrivacyProfile, PrivacyProfile]:
        """Return the cost of the choice for training records and for scoring records."""

    @abstractmethod
    def note(self, request: PlanRequest) -> str:
        """Return the note for the report."""

    def check(self, search: Any) -> None:
        """Validate the parameters, and refuse folds."""
        super().check(search)
        if not (isinstance(self.n_partitions, str) and self.n_partitions == "auto"):
            check_integer(self.n_partitions, name="n_partitions", lower=2)
        if self.selection_epsilon is not None:
            check_real(
                self.selection_epsilon,
                name="selection_epsilon",
                lower=0.0,
                lower_open=True,
                upper=500.0,
            )
        if split_of(search.cv)[1]:
            raise ValueError(
                "cv must be a fraction for scores on disjoint partitions; got folds. The "
                "partitions take the place of folds."
            )
        if self.tuning_estimator is not None:
            check_estimator(self.tuning_estimator, name="tuning_estimator")

    def check_candidates(self, request: PlanRequest) -> None:
        """Refuse parameters that must not be searched, or that the surrogate does not have."""
        super().check_candidates(request)
        if self.tuning_estimator is not None:
            request.candidates.check_names(self.tuning_estimator)

    # Cost -------------------------------------------------------------------------------------

    def cost(self, request: PlanRequest, layout: Layout) -> tuple[CostModel, Cost]:
        """Return the cost of a choice and a final fit."""
        partitions = self._partitions(request, layout)

        def selections(
            model: CostModel, fit: PrivacyProfile, noise: ScoreNoise, setting: FitSetting | None
        ) -> tuple[PrivacyProfile, PrivacyProfile]:
            return self.choice_cost(request, layout, partitions)

        model = CostModel(
            layout,
            request.fit_costs("auto"),
            request.delta,
            selections=selections,
            solved=partitions,
            note=f"{self.note(request)}, {partitions.count} disjoint partitions",
            releases_runs=False,
        )
        return model, model.within(request.epsilon)

    def _partitions(self, request: PlanRequest, layout: Layout) -> Partitions:
        """Return the default cost of the choice, and the number of partitions."""
        epsilon, count = self.selection_epsilon, self.n_partitions
        if epsilon is None and request.epsilon is not None:
            # Without a final fit, no budget has to be left over.
            share = _CHOICE_SHARE if layout.final else _NEARLY_ALL
            epsilon = request.epsilon * share
        elif epsilon is None:
            model = CostModel(layout, request.fit_costs("auto"), request.delta)
            own = model.fit_costs.profile(None, model.final_size).epsilon(model.delta)
            epsilon = _CHOICE_SHARE * (own if 0.0 < own < math.inf else 1.0)
        if isinstance(count, str):
            count = auto_partitions(epsilon, layout.n_train)
        if count > max(layout.n_samples, 2):
            raise ValueError(
                f"n_partitions must be at most the number of records; got {count} partitions of "
                f"{layout.n_samples}."
            )
        return Partitions(epsilon, count, None if layout.public else layout.n_score)

    def score_deviation(self, plan: Plan) -> float:
        """Return the standard deviation of the noise on a utility."""
        # For one-sided exponential noise; a comparison with a threshold has more noise.
        partitions: Partitions = plan.model.solved
        return 2.0 * partitions.sensitivity / partitions.epsilon

    def keeps(self, plan: Plan) -> str:
        """Return the sentence that the winner is not compared with the unchanged estimator."""
        return _NOT_COMPARED

    # Running ----------------------------------------------------------------------------------

    def utilities(
        self,
        run: RunningSearch,
        candidates: Sequence[dict[str, Any]],
        rng: np.random.Generator,
        seeds: Sequence[Any],
    ) -> Values:
        """Return the utilities of candidates: mean scores over the search's partitions."""
        partitions: Partitions = run.plan.model.solved
        return partition_utilities(
            [self.surrogate(run.plan, candidate) for candidate in candidates],
            seeds,
            run.data,
            disjoint_partitions(run.split.tuning, partitions.count, rng),
            run.validation,
            run.scorer,
            partitions.n_score,
            n_jobs=run.search.n_jobs,
            pre_dispatch=self.pre_dispatch,
            raises=self.error_score == "raise",
            by_rows=self.tuning_estimator is not None
            and not protects_persons(self.tuning_estimator),
        )

    def surrogate(self, plan: Plan, candidate: dict[str, Any]) -> Any:
        """Return the estimator that is trained on a partition in place of a candidate's final fit.

        The estimator gets the noise that the final fit will have relative to its signal, which is
        proportional to the number of records. An estimator whose noise cannot be set is trained
        without noise.
        """
        model, layout = plan.model, plan.layout
        if self.tuning_estimator is not None:
            return _configured_surrogate(self.tuning_estimator, candidate)
        share = layout.train_share / plan.model.solved.count
        size, final = expected_size(layout.n_samples, share), model.final_size
        made = model.fit_costs.configured(candidate, plan.cost.setting, final)
        setting = plan.cost.setting
        budget = None if setting is None else BudgetSetting(setting.epsilon, setting.delta)
        budgeted = model.fit_costs.configured(candidate, budget, final)
        alike = without_noise(budgeted, size, final.n_features)
        alike = _with_public_size(alike, size, final.n_features)
        for prefix, step in _scalable_steps(made):
            _scale_to_partition(alike, prefix, step, size, final)
        return alike


@with_shared_text(SHARED_TEXT)
@dataclass(eq=False, repr=False, kw_only=True)
class NoisyMaximum(PartitionStrategy):
    """Score candidates on disjoint partitions of the data, and choose one through noise.

    The other strategy of `DPGridSearchCV`. Its cost does not depend on the number of candidates,
    and only the choice is published.

    Parameters
    ----------
    n_partitions : "auto" or int, default="auto"
        Number of disjoint partitions: more partitions mean less noise, and fewer records to train
        on. "auto" follows from the budget and the public number of records.
    tuning_estimator : estimator, optional
        Surrogate that is trained on the partitions in place of the search's estimator, with the
        same searched parameters: for example scikit-learn's own model. It need not be private. The
        default is the estimator with the noise that the final fit will have relative to its
        signal.
    selection_epsilon : float, optional
        Cost of the choice; by default a quarter of the total, or all of it with ``refit=False``.
    {of_every_strategy}

    See Also
    --------
    FullTable : Shows all noisy scores.

    Notes
    -----
    Theorem F5. The choice is permute-and-flip (McKenna and Sheldon 2020): a noisy maximum with
    one-sided exponential noise.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV, NoisyMaximum
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {"C": [0.01, 1.0]}, epsilon=1.0, delta=1e-6,
    ...     strategy=NoisyMaximum(n_partitions=50, tuning_estimator=LogisticRegression()),
    ... )
    >>> search.plan(20_000, 5).row.shows
    'the winner'
    """

    name = "noisy maximum (DPGridSearchCV)"

    n_partitions: Any = "auto"
    tuning_estimator: Any = None
    selection_epsilon: float | None = None
    diagnostics: bool = False
    error_score: str = "worst"
    pre_dispatch: Any = "2*n_jobs"

    def check(self, search: Any) -> None:
        """Validate the parameters; refuse folds, and a callable that would choose."""
        super().check(search)
        if callable(search.refit):
            raise ValueError(
                "refit must be 'winner', True or False with a noisy maximum, which publishes no "
                "scores; got a callable."
            )

    def choice_cost(
        self, request: PlanRequest, layout: Layout, partitions: Partitions
    ) -> tuple[PrivacyProfile, PrivacyProfile]:
        """Return the cost of the choice for training records and for scoring records."""
        noise = _choice_noise(partitions, layout)
        return permute_and_flip_cost(noise.epsilon), permute_and_flip_cost(noise.of_score)

    def note(self, request: PlanRequest) -> str:
        """Return the note for the report."""
        return f"the best of {len(request.candidates.grid())}, permute-and-flip"

    def plan(self, request: PlanRequest) -> Plan:
        """Return the plan; raise if fits on the partitions would fail."""
        plan = super().plan(request)
        self._check_surrogate(plan, plan.candidates.grid()[0])
        return plan

    def _check_surrogate(self, plan: Plan, candidate: dict[str, Any]) -> None:
        if self.tuning_estimator is not None:
            return
        alike = self.surrogate(plan, candidate)
        try:
            cost_of(alike, plan.layout.n_samples, plan.layout.n_features)
        except (TypeError, ValueError) as error:
            kind = type(plan.request.estimator).__name__
            raise ValueError(
                "tuning_estimator must be given for an estimator that cannot be fitted without "
                f"noise (epsilon=inf); got None for {kind}: {error}"
            ) from error

    def number_of_fits(self, plan: Plan) -> tuple[float, float]:
        """Return the expected and largest number of fits; fits on k partitions count as one."""
        fits = float(len(plan.candidates.grid()))
        return fits, fits

    def choose(self, run: RunningSearch) -> Choice:
        """Choose one of all candidates by permute-and-flip."""
        candidates, streams = list(run.plan.candidates.grid()), run.streams
        partitions: Partitions = run.plan.model.solved
        utilities = self.utilities(
            run,
            candidates,
            generator_of(spawned(streams.random_split, 1)[0]),
            spawned(streams.runs, len(candidates)),
        )
        best = permute_and_flip_release(
            utilities,
            _choice_noise(partitions, run.plan.layout).sensitivity,
            partitions.epsilon,
            random_state=noise_random(streams.pick),
        )
        row = {"params": candidates[best], "score": np.nan}
        details = {"utilities": utilities}
        return Choice(candidates[best], float("nan"), None, [row], diagnostics=details)


def _choice_noise(partitions: Partitions, layout: Layout) -> Any:
    """Return the noise with which permute-and-flip chooses among utilities."""
    sizes = partitions.epsilon, partitions.count, partitions.n_score
    return choice_noise(*sizes, monotone=not layout.replaces)


def _configured_surrogate(estimator: Any, candidate: dict[str, Any]) -> Any:
    made = change_parameters(clone(estimator), candidate)
    disable_caching(made)
    for _, step in nested_estimators(made):
        remove_callbacks(step)
    return made


def _scalable_steps(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over steps with `tuning_parameters`, except for the steps inside a search."""
    owners = [owner.prefix for owner in budget_owners(estimator)]
    for prefix, step in nested_estimators(estimator):
        inside = any(prefix.startswith(outer) and prefix != outer for outer in owners)
        if not inside and hasattr(step, "tuning_parameters"):
            yield prefix, step


def _scale_to_partition(alike: Any, prefix: str, step: Any, size: int, final: FitSize) -> None:
    """Set the parameters and the noise of a surrogate so that they suit a partition's records."""
    # The best step size for a noise is the same if noise and signal scale alike.
    rules = step.tuning_parameters(size, final.n_samples)
    settings = {name: rules[name] for name in rules if name not in LEARNING_RATES}
    has_noise = hasattr(step, "noise_level") and "noise_multiplier" in own_parameters(step)
    if has_noise:
        level = step.noise_level(final.n_samples, final.n_features)
        if hasattr(step, "fixed_epochs"):
            # A surrogate has no budget from which the number of steps could follow.
            settings |= step.fixed_epochs(final.n_samples, final.n_features)
        settings |= {"noise_multiplier": level * size / final.n_samples, "epsilon": None}
    change_parameters(alike, {f"{prefix}{name}": value for name, value in settings.items()})
    if not has_noise:
        return
    try:
        cost_of(alike, size, final.n_features)
    except ValueError:
        # This is less noise than the estimator can have.
        alike.set_params(**{f"{prefix}noise_multiplier": _LEAST_NOISE})


def _with_public_size(estimator: Any, size: int, n_features: int | None) -> Any:
    """Return the estimator with one public size for all partitions, if it accepts one.

    The estimator then solves for its noise only once.
    """
    made = clone(estimator)
    set_public_size(made, size)
    try:
        cost_of(made, size, n_features)
    except ValueError:
        return estimator
    return made
