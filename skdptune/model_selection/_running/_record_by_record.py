"""Fits in which one record can do no more than change its own row, whatever it holds.

**Guarantee.** On its way to the private steps of a composition, a record passes steps that learn
nothing. Each of them is fitted to made-up data of the same form, and applied to all records at
once, or by halves where that fails; a record on which it fails alone takes the value of a made-up
record. What a private step is handed are finite numbers and proper targets (Theorem R5). So the
input of a private step on neighbouring data differs in one row, if each step treats records one by
one, which is tested on made-up ones.

Theorem R6.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from skdptune._compat import number_of_samples, safe_indexing
from skdptune.base import (
    by_halves,
    cost_of,
    declared_labels,
    finite_rows,
    paid_for,
    proper_targets,
    zeroed,
)
from skdptune.model_selection._running._domain import check_not_pairwise
from skdptune.model_selection._running._made_up import made_up_like
from skdptune.model_selection._running._quiet import Quiet

_KEYWORDS = (None, "passthrough", "drop")
_ANY_SIZE = 1000
_N_COMPARED = 6


def fit_record_by_record(estimator: Any, X: Any, y: Any, **params: Any) -> Any:
    """Fit an estimator in place so that no record can make its fit fail; return it.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a Pipeline that ends in one.
    X, y : array-like
        `y` may be None.
    **params
        Of ``fit``.

    Notes
    -----
    Theorem R6.
    """
    check_not_pairwise(estimator)
    # Theorem H4: the search pays for it.
    with paid_for(), _guarded(estimator) as guarded:
        arguments = (X,) if y is None else (X, y)
        guarded.fit(*arguments, **params)
    return estimator


def check_steps(estimator: Any, X: Any) -> None:
    """Raise if steps before the last fail on made-up records, or treat several as one.

    Parameters
    ----------
    estimator : estimator
    X : array-like
        Its form alone is used: columns, names and types.

    Notes
    -----
    Theorem R6.
    """
    if not isinstance(estimator, Pipeline) or len(estimator.steps) < 2:
        return
    for with_words in (True, False):
        records = made_up_like(X, 3 * _N_COMPARED, with_words=with_words)
        if records is None:
            return
        path = clone(Pipeline(estimator.steps[:-1]))
        try:
            with Quiet(), np.errstate(all="ignore"), paid_for(), _guarded(path, True) as guarded:
                guarded.fit_transform(records, np.arange(number_of_samples(records)) % 2)
            return
        except Exception:
            if not with_words:
                raise


class RecordByRecord(BaseEstimator):
    """A transformer to which a record that it cannot take is a made-up one.

    Parameters
    ----------
    step : transformer
    compares : bool, default=False
        Whether the step's output for a batch is compared with that for single records; for
        made-up data alone.
    """

    def __init__(self, step: Any, compares: bool = False) -> None:
        self.step = step
        self.compares = compares

    def fit(self, X: Any, y: Any = None, **params: Any) -> RecordByRecord:
        """Fit the step: to the data if it is private, to made-up ones if it learns nothing."""
        learns_nothing = _learns_nothing(self.step)
        if not learns_nothing:
            self.step.fit(*_proper(self.step, X, y), **params)
        for with_words in (True, False):
            made = made_up_like(X, _N_COMPARED, with_words=with_words)
            if made is None:
                break
            try:
                if learns_nothing:
                    self.step.fit(made, **params)
                self.step.transform(made)
            except Exception:
                # Words where numbers are wanted, or the reverse: for all that types show.
                if with_words:
                    continue
                raise
            self._replacement = safe_indexing(made, np.array([0]))
            return self
        raise TypeError(f"X must be a table, or a list of texts; got {type(X).__name__}.")

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit the step and apply it to the same records."""
        return self.fit(X, y, **params).transform(X)

    def transform(self, X: Any) -> Any:
        """Apply the step, by halves where it fails."""
        # Theorem R6.
        parts = by_halves(self._applied, X, self._replaced)
        if self.compares:
            self._compare(X, parts)
        return _stacked([result for _, result in parts])

    def _applied(self, X: Any) -> Any:
        result = self.step.transform(X)
        if number_of_samples(result) != number_of_samples(X):
            raise ValueError("A step must return one row for each record.")
        return result

    def _replaced(self, record: Any) -> Any:
        return self.step.transform(self._replacement)

    def _compare(self, X: Any, parts: list[tuple[Any, Any]]) -> None:
        whole = _stacked([result for _, result in parts])
        for place in range(number_of_samples(X)):
            alone = self._applied(safe_indexing(X, np.array([place])))
            if not _same(safe_indexing(whole, np.array([place])), alone):
                raise ValueError(
                    f"estimator must not mix records before its private steps; got "
                    f"{type(self.step).__name__} {self.step!r:.60}, whose output for a record "
                    "depends on the others. Use a private transformer, such as DPStandardScaler."
                )

    # Of the step, for the composition that holds it.

    @available_if(lambda guarded: hasattr(guarded.step, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the step's names of columns."""
        return self.step.get_feature_names_out(input_features)

    def set_output(self, *, transform: str | None = None) -> RecordByRecord:
        """Set the step's container of results."""
        if hasattr(self.step, "set_output"):
            self.step.set_output(transform=transform)
        return self

    def get_metadata_routing(self) -> Any:
        """Return where the step wants metadata."""
        return self.step.get_metadata_routing()

    def __sklearn_tags__(self) -> Any:
        """Return the step's tags."""
        return get_tags(self.step)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` was called."""
        return hasattr(self, "_replacement")


class ProperRecords(BaseEstimator):
    """A private estimator that is handed finite numbers and proper targets alone."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def fit(self, X: Any, y: Any = None, **params: Any) -> ProperRecords:
        """Fit the estimator to proper records (Theorem R5)."""
        X, y = _proper(self.step, X, y)
        arguments = (X,) if y is None else (X, y)
        self.step.fit(*arguments, **params)
        return self

    def get_metadata_routing(self) -> Any:
        """Return where the estimator wants metadata."""
        return self.step.get_metadata_routing()

    def __sklearn_tags__(self) -> Any:
        """Return the estimator's tags."""
        return get_tags(self.step)


# Wrapping and unwrapping ----------------------------------------------------------------------


@contextmanager
def _guarded(estimator: Any, compares: bool = False) -> Iterator[Any]:
    """Yield the estimator with guarded steps; afterwards it holds the steps themselves again."""
    guarded = _guard(estimator, compares)
    try:
        yield guarded
    finally:
        _unguard(estimator)


def _guard(step: Any, compares: bool, is_last: bool = True) -> Any:
    """Return a step that no record makes fail; compositions are changed in place."""
    if isinstance(step, str) or step is None:
        return step
    if isinstance(step, Pipeline):
        last = len(step.steps) - 1
        step.steps = [
            (name, _guard(inner, compares, is_last and place == last))
            for place, (name, inner) in enumerate(step.steps)
        ]
        return step
    if isinstance(step, FeatureUnion):
        step.transformer_list = [
            (name, _guard(inner, compares, False)) for name, inner in step.transformer_list
        ]
        return step
    if isinstance(step, ColumnTransformer):
        step.transformers = [
            (name, _guard(inner, compares, False), columns)
            for name, inner, columns in step.transformers
        ]
        step.remainder = _guard(step.remainder, compares, False)
        return step
    if is_last and not hasattr(step, "transform"):
        return ProperRecords(step)
    return RecordByRecord(step, compares)


def _unguard(step: Any) -> Any:
    """Return the step itself; compositions are changed in place, what they fitted included."""
    if isinstance(step, RecordByRecord | ProperRecords):
        return _unguard(step.step)
    if isinstance(step, Pipeline):
        step.steps = [(name, _unguard(inner)) for name, inner in step.steps]
    if isinstance(step, FeatureUnion):
        step.transformer_list = [(name, _unguard(inner)) for name, inner in step.transformer_list]
    if isinstance(step, ColumnTransformer):
        for attribute in ("transformers", "transformers_"):
            if hasattr(step, attribute):
                entries = [
                    (name, _unguard(inner), columns)
                    for name, inner, columns in getattr(step, attribute)
                ]
                setattr(step, attribute, entries)
        step.remainder = _unguard(step.remainder)
    return step


def _learns_nothing(step: Any) -> bool:
    try:
        return cost_of(step, _ANY_SIZE, None).epsilon(0.0) == 0.0
    except (TypeError, ValueError):
        # Where the cost depends on the number of columns, there is one.
        return False


# Records ---------------------------------------------------------------------------------------


def _proper(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the records as an estimator that takes finite numbers can read them."""
    # Theorem R5.
    if getattr(type(estimator), "_is_private_search", False):
        return X, y
    wrong = np.zeros(number_of_samples(X), dtype=bool)
    if _is_table(X):
        X, wrong = _finite(estimator, X)
    if y is None:
        return X, y
    targets = np.asarray(y)
    if targets.shape[0] != wrong.size or targets.ndim == 0:
        return X, y
    is_labelled = is_classifier(estimator)
    labels = declared_labels(estimator) if is_labelled else None
    proper, both = proper_targets(targets, wrong, is_classifier=is_labelled, labels=labels)
    if not both.any() and not is_labelled:
        return X, y
    if not is_labelled and not is_regressor(estimator):
        # Of a transformer: words are labels of a classifier after it, and say nothing of the row.
        return X, proper
    return _zeroed(X, both & ~wrong), proper


def _finite(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return a table of finite numbers in the form in which it came, and which rows were not."""
    tags = get_tags(estimator).input_tags
    takes_words = tags.string or tags.categorical
    is_numeric = _is_numeric(X)
    if tags.allow_nan or (takes_words and not is_numeric):
        return X, np.zeros(number_of_samples(X), dtype=bool)
    rows, wrong = finite_rows(X, np.float64)
    if is_numeric:
        return _zeroed(X, wrong), wrong
    return _like(X, rows), wrong


def _zeroed(X: Any, chosen: Any) -> Any:
    if not chosen.any() or not _is_table(X):
        return X
    if hasattr(X, "iloc"):
        X = X.copy()
        X.iloc[np.flatnonzero(chosen)] = 0
        return X
    return zeroed(X if sparse.issparse(X) else np.asarray(X), chosen)


def _like(X: Any, rows: Any) -> Any:
    """Return rows with the names of the table that they come from."""
    if not hasattr(X, "iloc"):
        return rows
    return type(X)(rows, columns=X.columns, index=X.index)


def _is_table(X: Any) -> bool:
    """Return whether records are rows of a table, and neither texts nor dicts."""
    if hasattr(X, "shape"):
        return len(X.shape) >= 2
    return number_of_samples(X) > 0 and isinstance(X[0], list | tuple | np.ndarray)


def _is_numeric(X: Any) -> bool:
    if hasattr(X, "dtypes") and hasattr(X, "iloc"):
        return all(getattr(kind, "kind", "O") in "fiub" for kind in X.dtypes)
    return getattr(getattr(X, "dtype", None), "kind", "O") in "fiub"


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    if all(hasattr(part, "iloc") for part in parts):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return np.concatenate([np.asarray(part) for part in parts])


def _same(one: Any, other: Any) -> bool:
    one, other = (
        part.toarray() if sparse.issparse(part) else np.asarray(part) for part in (one, other)
    )
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9, equal_nan=True))
    return bool(np.all((one == other) | ((one != one) & (other != other))))
