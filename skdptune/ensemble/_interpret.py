"""Export of a fitted model to interpret-core, by filling in the attributes of its objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.ensemble._boosting import CategoryTerm, NumberTerm, Term

_NEEDED = (
    "to_interpret needs interpret, which is not installed. Install the extra 'ebm': "
    "pip install 'skdptune[ebm]'."
)


def model_of_interpret(model: Any, terms: Sequence[Term]) -> Any:
    """Return the same model as an object of interpret-core.

    Parameters
    ----------
    model : DPExplainableBoostingClassifier or DPExplainableBoostingRegressor
        A fitted model.
    terms : sequence of Term
        Terms of its columns.
    """
    found = _empty_model(model)
    parts = [_part(term, model, place) for place, term in enumerate(terms)]
    n_terms = len(parts)
    found.n_features_in_ = n_terms
    found.feature_names_in_ = list(model.term_names_)
    found.feature_types_in_ = [
        "continuous" if isinstance(term, NumberTerm) else "nominal" for term in terms
    ]
    found.term_names_ = list(model.term_names_)
    found.term_features_ = [(place,) for place in range(n_terms)]
    found.bins_ = [[bins] for bins, _, _ in parts]
    found.bin_weights_ = [weights for _, weights, _ in parts]
    found.term_scores_ = [scores for _, _, scores in parts]
    found.bagged_scores_ = [scores[None] for scores in found.term_scores_]
    found.standard_deviations_ = [np.zeros_like(scores) for scores in found.term_scores_]
    found.feature_bounds_ = np.array([_range(term) for term in terms])
    _set_intercept(found, model.intercept_.copy(), is_regressor=not hasattr(model, "classes_"))
    found.best_iteration_ = np.array([[model.max_rounds * n_terms]])
    # A public number in place of the number of records.
    found.bag_weights_ = np.array([1.0])
    found.has_fitted_ = True
    return found


def _empty_model(model: Any) -> Any:
    """Return an object of interpret-core of the right class, with its link."""
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
        from interpret.privacy import (
            DPExplainableBoostingClassifier,
            DPExplainableBoostingRegressor,
        )
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(_NEEDED, name=problem.name) from problem
    if not hasattr(model, "classes_"):
        found = DPExplainableBoostingRegressor()
        found.min_target_, found.max_target_ = model._target_range()
        found.link_, found.link_param_ = "identity", np.nan
        return found
    is_binary = model.classes_.size == 2
    kind = DPExplainableBoostingClassifier if is_binary else ExplainableBoostingClassifier
    found = kind()
    found.classes_ = model.classes_
    found.link_, found.link_param_ = "logit" if is_binary else "mlogit", np.nan
    return found


def _set_intercept(found: Any, intercept: NDArray[np.float64], *, is_regressor: bool) -> None:
    found.intercept_ = float(intercept[0]) if is_regressor else intercept
    found.bagged_intercept_ = intercept[None] if intercept.size > 1 else intercept.copy()


def _part(term: Term, model: Any, place: int) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """Return bins, weights and scores; the first are for missing, the last for unknown values."""
    of_cells, weights = model.bins_[place], model.bin_weights_[place]
    scores = model.term_scores_[place]
    if isinstance(term, CategoryTerm):
        size = len(term.column.categories)
        # A bin of several categories becomes several bins, which share its records.
        cells = np.array([size + 1, *range(size), size])
        shares = weights / np.bincount(of_cells, minlength=weights.size)
        bins = {str(word): 1 + place for place, word in enumerate(term.column.categories)}
        return bins, shares[of_cells[cells]], scores[of_cells[cells]]
    grid = of_cells[: term.n_grid]
    ends = np.flatnonzero(np.diff(grid)) + 1
    cuts = np.array([term.value_at(end) for end in ends.tolist()])
    gap = of_cells[term.n_grid] if term.column.has_gaps else grid[term.n_grid // 2]
    shown = grid[np.array([0, *ends])]
    return (
        cuts,
        np.concatenate([[0.0], weights[shown], [0.0]]),
        scores[np.array([gap, *shown, gap])],
    )


def _range(term: Term) -> tuple[float, float]:
    if isinstance(term, NumberTerm):
        return term.column.low, term.column.high
    return np.nan, np.nan
