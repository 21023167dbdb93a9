"""The methods and attributes that a search delegates to its winner."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import VisualBlock, routing_is_enabled

_TAGGED = ("target", "classifier", "regressor", "transformer", "input")


def best_has(name: str) -> Any:
    """Return a check whether the winner has a method; it raises if the method is missing."""

    def check(search: Any) -> bool:
        if not hasattr(search, "best_estimator_") and search.refit is False:
            raise AttributeError(
                f"This {type(search).__name__} has `refit=False`. {name} is available only after "
                "refitting on the best parameters."
            )
        getattr(getattr(search, "best_estimator_", search._lead_estimator()), name)
        return True

    return check


def _delegated(name: str, what: str) -> Any:
    """Return a method that calls the winner's method with this name, where it has one."""

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    method.__name__, method.__qualname__ = name, f"WinnerMethods.{name}"
    method.__doc__ = f"Return {what}."
    return available_if(best_has(name))(method)


def check_no_metadata(search: Any, params: dict[str, Any]) -> None:
    """Refuse metadata for scores, as scikit-learn does; the names of metadata are public."""
    if not params:
        return
    if routing_is_enabled():
        # Raises, since no part of a search accepts metadata for its scores.
        process_routing(search, "score", **params)
    raise ValueError(
        f"score() takes only X and y; got {sorted(params)}. Passing more is only supported if "
        "enable_metadata_routing=True, and no scorer of known sensitivity accepts any."
    )


class WinnerMethods(BaseEstimator):
    """Methods that a search delegates to `best_estimator_`, and its tags for scikit-learn."""

    def _lead_estimator(self) -> Any:
        """Return the estimator whose type the search has for scikit-learn."""
        return self.estimator

    predict = _delegated("predict", "the winner's predictions")
    predict_proba = _delegated("predict_proba", "the winner's probabilities")
    predict_log_proba = _delegated("predict_log_proba", "the winner's logarithms of probabilities")
    decision_function = _delegated("decision_function", "the winner's decision function")
    score_samples = _delegated("score_samples", "the winner's scores of records")
    transform = _delegated("transform", "the records as transformed by the winner")
    inverse_transform = _delegated(
        "inverse_transform", "the inverse of the winner's transformation"
    )

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the winner's score on the given data, by the scorer of the search.

        With several metrics, the one that `refit` names is used. The score is exact: on sensitive
        data it is not private. Scorers take no metadata.
        """
        check_no_metadata(self, params)
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"This {type(self).__name__} has refit=False; it has no model.")
        scorer = self.scorer_
        if self.multimetric_ and callable(self.refit):
            raise AttributeError(
                f"This {type(self).__name__} has several metrics, and refit does not name one; "
                "use scorer_[name](best_estimator_, X, y)."
            )
        if self.multimetric_:
            scorer = scorer[self.refit]
        return float(scorer(self.best_estimator_, X, y))

    @property
    def classes_(self) -> Any:
        """The labels, for a classifier."""
        best_has("classes_")(self)
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen by the winner."""
        try:
            check_is_fitted(self)
        except ValueError as error:
            raise AttributeError(
                f"{type(self).__name__} object has no n_features_in_ attribute."
            ) from error
        return int(self.best_estimator_.n_features_in_)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a result."""
        return "privacy_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator that is tuned."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self._lead_estimator())
        for name in ("estimator_type", *(f"{part}_tags" for part in _TAGGED)):
            setattr(tags, name, deepcopy(getattr(inner, name)))
        tags.non_deterministic = self.random_state is None
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: metadata are passed to the fits of the estimator."""
        return MetadataRouter(owner=type(self).__name__).add(
            estimator=self._lead_estimator(),
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )

    def _sk_visual_block_(self) -> Any:
        shown = getattr(self, "best_estimator_", self._lead_estimator())
        label = "best_estimator_" if hasattr(self, "best_estimator_") else "estimator"
        return VisualBlock(
            "parallel",
            [clone(shown)],
            names=[f"{label}: {type(shown).__name__}"],
            name_details=[str(shown)],
        )

    def _repr_html_inner(self) -> str:
        shown = super()._repr_html_inner()
        return shown + self.privacy_._repr_html_() if hasattr(self, "privacy_") else shown
