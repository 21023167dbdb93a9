"""Searches that score candidates on disjoint partitions of the data and publish their choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune._compat import remove_callbacks
from skdptune._validation import check_integer, check_real
from skdptune.base import (
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
from skdptune.model_selection._cost import (
    Candidates,
    ChoiceCost,
    ChoiceCostModel,
    CostModel,
    FitCosts,
    FitSize,
    Layout,
    Plan,
    as_budget,
    default_choice_epsilon,
    split_of,
)
from skdptune.model_selection._running import (
    Values,
    auto_partitions,
    disjoint_partitions,
    expected_size,
    partition_utilities,
)
from skdptune.model_selection._tuning_search import SearchState, TuningSearch

# The least noise that every estimator of ours can be given.
_LEAST_NOISE = 0.05
# Of a total: rounding must not exceed it.
_NEARLY_ALL = 1.0 - 1e-9


class PartitionSearch(TuningSearch):
    """Base of the searches that choose by utilities: mean scores over disjoint partitions.

    On a partition a *surrogate estimator* is trained: what the choice costs covers whatever is
    done there, so that it may be any estimator, private or not.
    """

    n_partitions: int | str
    tuning_estimator: Any
    selection_epsilon: float | None

    def _refit(self) -> Any:
        # No candidate has a model on all records, so the winner is always fitted once more.
        return True if isinstance(self.refit, str) and self.refit == "winner" else self.refit

    def _check_partition_parameters(self, *, folds: bool = False) -> None:
        """Refuse bad values of the parameters about partitions, and folds unless allowed."""
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
        if not folds and split_of(self.cv)[1]:
            raise ValueError(
                "cv must be a fraction for scores on disjoint partitions; got folds. The "
                "partitions take the place of folds."
            )
        if self.tuning_estimator is not None:
            if isinstance(self.tuning_estimator, type) or not hasattr(
                self.tuning_estimator, "fit"
            ):
                raise TypeError(
                    "tuning_estimator must be an estimator with fit; got "
                    f"{type(self.tuning_estimator).__name__}."
                )
            given = self._given()
            if given is not None:
                given.check_names(self.tuning_estimator)

    def _check_searched(self, candidates: Candidates) -> None:
        super()._check_searched(candidates)
        if self.tuning_estimator is not None:
            candidates.check_names(self.tuning_estimator)

    def _score_deviation(self, plan: Plan) -> float:
        model = plan.model
        if not isinstance(model, ChoiceCostModel):
            # All candidates are published, with noisy scores.
            return super()._score_deviation(plan)
        # Of one-sided exponential noise; a comparison with a threshold has more.
        return 2.0 * _sensitivity_of(model) / model.choice_epsilon

    def _what_would_help(self, plan: Plan) -> str:
        more = super()._what_would_help(plan)
        # On the default number of partitions a score deviates alike at any size.
        is_choice = isinstance(plan.model, ChoiceCostModel)
        return f"{more} in more parts (n_partitions)" if is_choice else more

    def _choice_model(
        self, layout: Layout, fit_costs: FitCosts, delta: float, choice: ChoiceCost, note: str
    ) -> ChoiceCostModel:
        """Return the cost model of a choice and a final fit."""
        epsilon = self.selection_epsilon
        if epsilon is None and self.epsilon is not None and not layout.final:
            # There is no fit to leave anything for.
            epsilon = self.epsilon * _NEARLY_ALL
        elif epsilon is None:
            plain = CostModel(layout, fit_costs, lambda run: run, delta)
            epsilon = default_choice_epsilon(self.epsilon, plain)
        count = self.n_partitions
        if isinstance(count, str):
            count = auto_partitions(epsilon, layout.n_train)
        if count > max(layout.n_samples, 2):
            raise ValueError(
                f"n_partitions must be at most the number of records; got {count} partitions of "
                f"{layout.n_samples}."
            )
        return ChoiceCostModel(
            layout,
            fit_costs,
            lambda run: run,
            delta,
            note=note,
            choice_epsilon=epsilon,
            choice=choice,
            n_partitions=count,
        )

    # Running --------------------------------------------------------------------------------

    def _utilities(
        self,
        state: SearchState,
        candidates: Sequence[dict[str, Any]],
        rng: np.random.Generator,
        seeds: Sequence[Any],
    ) -> Values:
        """Return the utilities of candidates: mean scores over the search's partitions."""
        model = choice_model_of(state.plan)
        records = state.split.tuning
        return partition_utilities(
            [self._surrogate(state.plan, candidate) for candidate in candidates],
            seeds,
            state.data,
            disjoint_partitions(records, model.n_partitions, rng),
            state.validation,
            self._scorer(),
            model.n_score,
            n_jobs=self.n_jobs,
            pre_dispatch=self.pre_dispatch,
            raises=self.error_score == "raise",
        )

    def _surrogate(self, plan: Plan, candidate: dict[str, Any]) -> Any:
        """Return what is trained on a partition in place of a candidate's final fit.

        The estimator gets the noise that the final fit will have relative to its signal: in
        proportion to the records. What has no noise to set is trained without noise.
        """
        model, layout = choice_model_of(plan), plan.layout
        if self.tuning_estimator is not None:
            return _configured_surrogate(self.tuning_estimator, candidate)
        size = expected_size(layout.n_samples, layout.train_share / model.n_partitions)
        final = model.final_size
        made = model.fit_costs.configured(candidate, plan.cost.setting, final)
        budgeted = model.fit_costs.configured(candidate, as_budget(plan.cost.setting), final)
        alike = without_noise(budgeted, size, final.n_features)
        alike = _with_public_size(alike, size, final.n_features)
        for prefix, step in _scalable_steps(made):
            _scale_to_partition(alike, prefix, step, size, final)
        return alike

    def _check_surrogate(self, plan: Plan, candidate: dict[str, Any]) -> None:
        """Raise if what is to be trained on the partitions cannot be: its fits would all fail."""
        if self.tuning_estimator is not None:
            return
        alike = self._surrogate(plan, candidate)
        try:
            cost_of(alike, plan.layout.n_samples, plan.layout.n_features)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "tuning_estimator must be given for an estimator that cannot be fitted without "
                f"noise (epsilon=inf); got None for {type(self.estimator).__name__}: {error}"
            ) from error


def _sensitivity_of(model: ChoiceCostModel) -> float:
    """Return the most by which one record changes a utility."""
    of_score = 0.0 if model.n_score is None else 1.0 / model.n_score
    return max(1.0 / model.n_partitions, of_score)


def choice_model_of(plan: Plan) -> ChoiceCostModel:
    """Return the plan's cost model, of a search that chooses by utilities."""
    if not isinstance(plan.model, ChoiceCostModel):
        raise TypeError(f"plan must be of a choice; got a {type(plan.model).__name__}.")
    return plan.model


def _configured_surrogate(estimator: Any, candidate: dict[str, Any]) -> Any:
    made = change_parameters(clone(estimator), candidate)
    disable_caching(made)
    for _, step in nested_estimators(made):
        remove_callbacks(step)
    return made


def _scalable_steps(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over steps with `tuning_parameters`; a search sets those inside it by itself."""
    owners = [owner.prefix for owner in budget_owners(estimator)]
    for prefix, step in nested_estimators(estimator):
        inside = any(prefix.startswith(outer) and prefix != outer for outer in owners)
        if not inside and hasattr(step, "tuning_parameters"):
            yield prefix, step


def _scale_to_partition(alike: Any, prefix: str, step: Any, size: int, final: FitSize) -> None:
    """Give a surrogate the parameters, and the noise, that suit a partition's records."""
    # The step size that suits a noise is the same where noise and signal are.
    rules = step.tuning_parameters(size, final.n_samples)
    settings = {name: rules[name] for name in rules if name not in LEARNING_RATES}
    has_noise = hasattr(step, "noise_level") and "noise_multiplier" in own_parameters(step)
    if has_noise:
        level = step.noise_level(final.n_samples, final.n_features)
        if hasattr(step, "fixed_epochs"):
            # A surrogate has no budget from which steps could follow.
            settings |= step.fixed_epochs(final.n_samples, final.n_features)
        settings |= {"noise_multiplier": level * size / final.n_samples, "epsilon": None}
    change_parameters(alike, {f"{prefix}{name}": value for name, value in settings.items()})
    if not has_noise:
        return
    try:
        cost_of(alike, size, final.n_features)
    except ValueError:
        # Less than the estimator can have.
        alike.set_params(**{f"{prefix}noise_multiplier": _LEAST_NOISE})


def _with_public_size(estimator: Any, size: int, n_features: int | None) -> Any:
    """Return the estimator with one public size for all partitions, if it takes one.

    It then solves for its noise once.
    """
    made = clone(estimator)
    set_public_size(made, size)
    try:
        cost_of(made, size, n_features)
    except ValueError:
        return estimator
    return made
