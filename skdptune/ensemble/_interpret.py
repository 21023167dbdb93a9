"""Export of a fitted model to interpret-core, by filling in the attributes of its objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._validation import installed
from skdptune.ensemble._boosting import CategoryTerm, NumberTerm, Term


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
    n_terms = len(terms)
    found.n_features_in_ = n_terms
    found.feature_names_in_ = list(model.term_names_)
    found.feature_types_in_ = [
        "continuous" if isinstance(term, NumberTerm) else "nominal" for term in terms
    ]
    # Bins of the column in its own curve, and those in its pairs, which all pairs share.
    in_pairs = {
        place: bins
        for pair, both in zip(model.pairs_, model.pair_bins_, strict=True)
        for place, bins in zip(pair, both, strict=True)
    }
    found.bins_, shown = [], []
    for place, (term, own) in enumerate(zip(terms, model.bins_, strict=True)):
        levels = [_level(term, bins) for bins in (own, in_pairs.get(place)) if bins is not None]
        found.bins_.append([bins for bins, _ in levels])
        shown.append([positions for _, positions in levels])
    found.term_features_ = [(place,) for place in range(n_terms)] + list(model.pairs_)
    names = model.term_names_
    found.term_names_ = [
        " & ".join(names[place] for place in places) for places in found.term_features_
    ]

    def spread(own: Sequence[Any], pairs: Sequence[Any]) -> list[NDArray[np.float64]]:
        """Return the entries of all positions: missing, shown and unknown values."""
        parts = [values[shown[place][0]] for place, values in enumerate(own)]
        return parts + [
            table[np.ix_(shown[one][-1], shown[other][-1])]
            for (one, other), table in zip(model.pairs_, pairs, strict=True)
        ]

    found.term_scores_ = spread(model.term_scores_, model.pair_scores_)
    found.standard_deviations_ = spread(model.term_deviations_, model.pair_deviations_)
    found.bin_weights_ = [
        _weights(term, model.bins_[place], model.bin_weights_[place], shown[place][0])
        for place, term in enumerate(terms)
    ]
    for one, other in model.pairs_:
        sizes = tuple(shown[place][-1].size for place in (one, other))
        # The number of records in each cell of a pair is not kept.
        found.bin_weights_.append(np.ones(sizes))
    found.bagged_scores_ = [scores[None] for scores in found.term_scores_]
    found.feature_bounds_ = np.array([_range(term) for term in terms])
    intercept = model.intercept_.copy()
    found.intercept_ = intercept if hasattr(model, "classes_") else float(intercept[0])
    found.bagged_intercept_ = intercept[None] if intercept.size > 1 else intercept.copy()
    found.best_iteration_ = np.array([[model.max_rounds * n_terms]])
    # A public number in place of the number of records.
    found.bag_weights_ = np.array([1.0])
    found.has_fitted_ = True
    return found


def _empty_model(model: Any) -> Any:
    """Return an object of interpret-core of the right class, with its link."""
    with installed("to_interpret needs", "ebm"):
        from interpret.glassbox import ExplainableBoostingClassifier
        from interpret.privacy import (
            DPExplainableBoostingClassifier,
            DPExplainableBoostingRegressor,
        )
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


def _level(term: Term, of_cells: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """Return bins, and the positions of missing values, of all bins, and of unknown values."""
    if isinstance(term, CategoryTerm):
        size = len(term.column.categories)
        # A bin of several categories becomes several bins, which share its records.
        cells = np.array([size + 1, *range(size), size])
        bins = {str(word): 1 + place for place, word in enumerate(term.column.categories)}
        return bins, of_cells[cells]
    grid = of_cells[: term.n_grid]
    ends = np.flatnonzero(np.diff(grid)) + 1
    cuts = np.array([term.value_at(end) for end in ends.tolist()])
    gap = of_cells[term.n_grid] if term.column.has_gaps else grid[term.n_grid // 2]
    return cuts, np.array([gap, *grid[np.array([0, *ends])], gap])


def _weights(
    term: Term, of_cells: NDArray[Any], weights: NDArray[np.float64], shown: NDArray[Any]
) -> NDArray[np.float64]:
    """Return noisy numbers of records of the bins that are shown."""
    if isinstance(term, CategoryTerm):
        return (weights / np.bincount(of_cells, minlength=weights.size))[shown]
    return np.concatenate([[0.0], weights[shown[1:-1]], [0.0]])


def _range(term: Term) -> tuple[float, float]:
    if isinstance(term, NumberTerm):
        return term.column.low, term.column.high
    return np.nan, np.nan
