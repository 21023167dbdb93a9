"""The price of searches that score on disjoint parts, publish an index, and train the winner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune._compat import remove_callbacks
from skdptune._validation import check_integer, check_real
from skdptune.accounting import PrivacyReport, search_on_split
from skdptune.base import (
    LEARNING_RATES,
    Budget,
    cost_of,
    disable_caching,
    nested_estimators,
    set_public_size,
    without_noise,
)
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._cost._cost_model import NO_NOISE, Cost, CostModel
from skdptune.model_selection._cost._layout import Layout
from skdptune.model_selection._running import (
    Data,
    auto_partitions,
    expected_size,
    parts,
    utilities_of,
)

# Share of a fit's epsilon that picking its parameters may cost.
_PICK_SHARE = 0.25
# The least noise that every estimator of ours can be given.
_LEAST_NOISE = 0.05


@dataclass(frozen=True)
class PickCostModel(CostModel):
    """The price of a pick and of one fit on all records.

    Parameters
    ----------
    pick_epsilon : float
        What the pick may cost.
    pick : callable
        From that, the number of parts and of scored records (None if public) to the profiles
        of a pick, for records that train and for those that score.
    n_partitions : int
        Number of disjoint parts.
    """

    pick_epsilon: float = 0.0
    pick: Any = None
    n_partitions: int = 0

    def at(self, budget: Budget | None) -> Cost:
        """Return the cost where the fit may spend `budget`."""
        layout = self.layout
        fit = self.fit_costs.profile(budget, self.final_size)
        trained, scored = self.pick(self.pick_epsilon, self.n_partitions, self.n_score)
        final = fit if layout.final else None
        total = search_on_split(trained, scored, final, validation_fraction=layout.validation)
        return Cost(total, fit, trained | scored, trained, scored, final, NO_NOISE, budget)

    @property
    def n_score(self) -> int | None:
        """Public constant for the number of records that a score averages; None if public."""
        return None if self.layout.public else self.layout.n_score

    def parts_of(self, cost: Cost) -> tuple[PrivacyReport, ...]:
        """Return the parts of the report's tree: the pick and the fit."""
        pick = PrivacyReport(
            self.selection_of(cost),
            self.delta,
            name="selection",
            note=f"{self.note}, {self.n_partitions} disjoint parts",
        )
        if cost.final is None:
            return (pick,)
        return pick, PrivacyReport(cost.final, self.delta, name="final fit", note="on all records")


def check_pick_parameters(search: Any) -> None:
    """Refuse bad parameters of a search that picks by scores on parts."""
    if search.n_partitions != "auto":
        check_integer(search.n_partitions, name="n_partitions", lower=2)
    if search.selection_epsilon is not None:
        check_real(
            search.selection_epsilon,
            name="selection_epsilon",
            lower=0.0,
            lower_open=True,
            upper=500.0,
        )
    if isinstance(search.cv, int):
        raise ValueError(
            "cv must be a fraction for scores on disjoint parts; got folds. The parts take the "
            "place of folds."
        )
    if search.tuning_estimator is not None:
        search._candidates().check_names(search.tuning_estimator)


def make_pick_model(
    search: Any, layout: Layout, fit_costs: Any, delta: float, pick: Any, note: str
) -> PickCostModel:
    """Return the cost model of a pick and a final fit, with a search's parameters."""
    epsilon = search.selection_epsilon
    if epsilon is None:
        plain = CostModel(layout, fit_costs, lambda run: run, delta, None, "", None)
        epsilon = _usual_pick_epsilon(search.epsilon, plain)
    n_parts = search.n_partitions
    if n_parts == "auto":
        n_parts = auto_partitions(epsilon, layout.n_train)
    return PickCostModel(
        layout,
        fit_costs,
        lambda run: run,
        delta,
        None,
        note=note,
        bound=None,
        pick_epsilon=epsilon,
        pick=pick,
        n_partitions=n_parts,
    )


def _usual_pick_epsilon(total: float | None, model: CostModel) -> float:
    """Return what a pick may cost where nobody says: a share of the total, or of the fit."""
    if total is None:
        own = model.fit_costs.profile(None, model.final_size).epsilon(model.delta)
        total = own if 0.0 < own < math.inf else 1.0
    return _PICK_SHARE * total


def utilities_on_parts(
    search: Any,
    plan: Any,
    candidates: Sequence[dict[str, Any]],
    data: Data,
    records: np.ndarray,
    validation: Data,
    rng: np.random.Generator,
    seeds: Sequence[Any],
) -> np.ndarray:
    """Return the utilities of candidates, of mean scores over the search's disjoint parts."""
    model = plan.model
    scorer: BoundedScorer = search._scorer()
    estimators = [surrogate_estimator(search, plan, candidate) for candidate in candidates]
    return utilities_of(
        estimators,
        seeds,
        data,
        parts(records, model.n_partitions, rng),
        validation,
        scorer,
        model.n_score,
        n_jobs=search.n_jobs,
        pre_dispatch=search.pre_dispatch,
        raises=search.error_score == "raise",
    )


def surrogate_estimator(search: Any, plan: Any, candidate: dict[str, Any]) -> Any:
    """Return what is trained on a part in place of a candidate's final fit.

    The pick is charged for whatever is done on the parts, so the noise there is free to choose.
    The estimator gets the noise that the final fit will have beside its signal: in proportion
    to the records. What has no noise to set is trained without noise.
    """
    model, layout = plan.model, plan.layout
    size = expected_size(layout.n_samples, layout.train_share / model.n_partitions)
    if search.tuning_estimator is not None:
        made = clone(search.tuning_estimator).set_params(**candidate)
        disable_caching(made)
        for _, part in nested_estimators(made):
            remove_callbacks(part)
        return made
    final = model.final_size
    made = model.fit_costs.configured(candidate, plan.cost.budget, final)
    alike = without_noise(made, size, final.n_features)
    alike = _of_public_size(alike, size, final.n_features)
    for prefix, part in list(nested_estimators(made)):
        if not {"noise_level", "tuning_parameters"} <= set(dir(part)):
            continue
        level = part.noise_level(final.n_samples, final.n_features)
        settings = {"noise_multiplier": level * size / final.n_samples, "epsilon": None}
        # The step that suits a noise is the same where noise and signal are.
        rules = part.tuning_parameters(size, final.n_samples)
        settings |= {name: value for name, value in rules.items() if name not in LEARNING_RATES}
        alike.set_params(**{f"{prefix}{name}": value for name, value in settings.items()})
        try:
            cost_of(alike, size, final.n_features)
        except ValueError:
            # Less than the estimator can have.
            alike.set_params(**{f"{prefix}noise_multiplier": _LEAST_NOISE})
    return alike


def _of_public_size(estimator: Any, size: int, n_features: int | None) -> Any:
    """Return the estimator told of one size for all parts, if it can be: it then plans once."""
    told = clone(estimator)
    set_public_size(told, size)
    try:
        cost_of(told, size, n_features)
    except ValueError:
        return estimator
    return told


def check_surrogate_estimator(search: Any, plan: Any, candidate: dict[str, Any]) -> None:
    """Raise if what is to be trained on the parts cannot be: its fits would all fail."""
    if search.tuning_estimator is not None:
        return
    alike = surrogate_estimator(search, plan, candidate)
    try:
        cost_of(alike, plan.layout.n_samples, plan.layout.n_features)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "tuning_estimator must be given for an estimator that cannot be fitted without noise "
            f"(epsilon=inf); got None for {type(search.estimator).__name__}: {error}"
        ) from error
