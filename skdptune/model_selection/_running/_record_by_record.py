"""Fits in which one record can only change its own row, whatever it holds.

**Guarantee.** Before the private steps of a composition, a record passes steps that do not learn
from data. Each of them is fitted to made-up data of the same form. It is then applied to all
records at once, or by halves if that fails. A single record on which it fails gets the value of a
made-up record. Private steps receive only finite numbers and proper targets (Theorem R5). So the
input of a private step on neighbouring data differs in one row, if each step treats records
independently, which is tested on made-up ones.

Theorem R6.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from skdptune._compat import number_of_samples, safe_indexing
from skdptune._formatting import shown
from skdptune.base._shared import (
    ADVICE,
    GROUPS,
    OTHER_SOLVER,
    OWN_USE,
    PARTS,
    as_table,
    by_halves,
    by_persons,
    cost_of,
    declared_labels,
    finite_rows,
    named_like,
    nested_estimators,
    own_seeds,
    paid_for,
    proper_targets,
    reads_numbers,
    refusal_of,
    refused_groups,
    zeroed,
)
from skdptune.ledger import LedgerError
from skdptune.model_selection._running._made_up import (
    check_not_pairwise,
    made_up_like,
    made_up_sizes,
)
from skdptune.model_selection._running._quiet import Quiet

_KEYWORDS = (None, "passthrough", "drop")
_ANY_SIZE = 1000
_N_COMPARED = 18
_N_MADE = 6


def fit_record_by_record(
    estimator: Any, X: Any, y: Any, improper: Any = None, persons: Any = None, /, **params: Any
) -> Any:
    """Fit an estimator in place so that no record can make its fit fail; return it.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a Pipeline that ends in one.
    X, y : array-like
        `y` may be None.
    improper : ndarray of bool, optional
        Which records are known to be improper.
    persons : Persons, optional
        The persons of the rows, for each step that learns from them.
    **params
        Arguments of ``fit``.

    Notes
    -----
    Theorem R6, Theorem P14.
    """
    check_not_pairwise(estimator)
    # Theorem H4: the search pays for it.
    with paid_for(estimator), _guarded(estimator, False, improper, persons) as guarded:
        arguments = (X,) if y is None else (X, y)
        guarded.fit(*arguments, **params)
    return estimator


def last_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline, or else the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def steps_before_last(pipeline: Any) -> str | None:
    """Return a key of the steps before the last if Pipelines with equal keys can share them.

    None if a step learns from the records or has a seed.

    Notes
    -----
    Theorem R6.
    """
    path, last = Pipeline(pipeline.steps[:-1]), last_step(pipeline)
    if type(pipeline) is not Pipeline or pipeline.memory is not None or own_seeds(path):
        return None
    steps = [step for _, step in path.steps if step not in _KEYWORDS]
    if not steps or hasattr(last, "transform") or not all(map(_learns_nothing, steps)):
        return None
    try:
        return joblib.hash((path.steps, declared_labels(last)))
    except Exception:
        # A step that cannot be pickled has no key, such as one with a function without a name.
        return None


def records_before_last(pipeline: Any, X: Any, y: Any, improper: Any = None) -> tuple[Any, Any]:
    """Fit the steps before the last in place; return the rows and targets that the last one gets.

    Notes
    -----
    Theorem R6.
    """
    check_not_pairwise(pipeline)
    with _guarded(pipeline) as guarded:
        rows = guarded[:-1].fit_transform(X, y)
    return ProperRecords(last_step(pipeline), improper).read(rows, y)


def check_steps(estimator: Any, X: Any, n_samples: int = _ANY_SIZE) -> None:
    """Raise if steps before the last fail on made-up records, or mix several records.

    Parameters
    ----------
    estimator : estimator
    X : array-like
        Only its form is used: columns, names and types.
    n_samples : int, default=1000
        Public number of records; steps that fail on fewer are tried with this many.

    Notes
    -----
    Theorem R6.
    """
    if not isinstance(estimator, Pipeline) or len(estimator.steps) < 2:
        return
    sizes = made_up_sizes(X, _N_COMPARED, n_samples)
    for size, with_words in itertools.product(sizes, (True, False)):
        records = made_up_like(X, size, with_words=with_words)
        if records is None:
            return
        path = clone(Pipeline(estimator.steps[:-1]))
        try:
            with (
                Quiet(),
                np.errstate(all="ignore"),
                paid_for(path),
                _guarded(path, True) as guarded,
            ):
                guarded.fit_transform(records, np.arange(number_of_samples(records)) % 2)
            return
        except (ValueError, TypeError, LedgerError):
            if size == sizes[-1] and not with_words:
                raise
        except Exception as problem:
            # Catch everything that a user's step may raise, such as Arrow's own errors for text.
            if size == sizes[-1] and not with_words:
                raise ValueError(
                    "estimator must be one whose steps accept data of this form; on made-up "
                    f"data one raised {type(problem).__name__}: {problem}"
                ) from problem


class RecordByRecord(BaseEstimator):
    """A transformer that replaces a record which its step cannot process by a made-up one.

    Parameters
    ----------
    step : transformer
    compares : bool, default=False
        Whether the step's output for a batch is compared with that for single records; only for
        made-up data.
    persons : Persons or None, default=None
        The persons of the rows of a fit.
    """

    def __init__(self, step: Any, compares: bool = False, persons: Any = None) -> None:
        self.step = step
        self.compares = compares
        self.persons = persons

    def fit(self, X: Any, y: Any = None, **params: Any) -> RecordByRecord:
        """Fit the step: to the data if it is private, else to made-up data."""
        learns_nothing = _learns_nothing(self.step)
        if not learns_nothing:
            self.step.fit(_numbers_for(self.step, X)[0], y, **_with(self.persons, params))
        for with_words in (True, False):
            made = made_up_like(X, _N_MADE, with_words=with_words)
            if made is None:
                break
            try:
                if learns_nothing:
                    # A frozen step also requires targets.
                    self.step.fit(made, None, **params)
                self.step.transform(made)
            except Exception:
                # Text where numbers are expected, or the reverse, as far as dtypes reveal it.
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
        """Apply the step, by halves if it fails."""
        if not number_of_samples(X):
            # Theorem T9: steps may refuse an empty table, and there may be no record.
            return safe_indexing(self.step.transform(self._replacement), np.arange(0))
        # Theorem R6: only a record on which a step fails is replaced.
        parts = by_halves(self._applied, X, lambda record: self.step.transform(self._replacement))
        if self.compares:
            self._compare(X, parts)
        return _stacked([result for _, result in parts], X)

    def _applied(self, X: Any) -> Any:
        result = self.step.transform(X)
        if number_of_samples(result) != number_of_samples(X):
            raise ValueError("A step must return one row for each record.")
        return result

    def _compare(self, X: Any, parts: list[tuple[Any, Any]]) -> None:
        whole = _stacked([result for _, result in parts], X)
        for place in range(min(number_of_samples(X), _N_COMPARED)):
            alone = self._applied(safe_indexing(X, np.array([place])))
            if not _same(safe_indexing(whole, np.array([place])), alone):
                raise ValueError(
                    f"estimator must not mix records before its private steps; got "
                    f"{shown(self.step)}, whose output for a record "
                    "depends on the others. Use a private transformer, such as DPStandardScaler."
                )

    # Methods of the step that the enclosing composition needs.

    @available_if(lambda guarded: hasattr(guarded.step, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the step's column names."""
        return self.step.get_feature_names_out(input_features)

    def set_output(self, *, transform: str | None = None) -> RecordByRecord:
        """Set the step's container of results."""
        if hasattr(self.step, "set_output"):
            self.step.set_output(transform=transform)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the step's metadata routing."""
        return self.step.get_metadata_routing()

    def __sklearn_tags__(self) -> Any:
        """Return the step's tags."""
        return get_tags(self.step)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` was called."""
        return hasattr(self, "_replacement")


class ProperRecords(BaseEstimator):
    """A private estimator that receives only finite numbers and proper targets.

    Parameters
    ----------
    step : estimator
    improper : ndarray of bool or None, default=None
        Which records are improper for a reason outside their row; None means none.
    persons : Persons or None, default=None
        The persons of the rows of a fit.
    """

    def __init__(self, step: Any, improper: Any = None, persons: Any = None) -> None:
        self.step = step
        self.improper = improper
        self.persons = persons

    def fit(self, X: Any, y: Any = None, **params: Any) -> ProperRecords:
        """Fit the estimator to proper records."""
        X, y = self.read(X, y)
        self.step.fit(*((X,) if y is None else (X, y)), **_with(self.persons, params))
        return self

    def read(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the proper records and targets to which the estimator is fitted."""
        # Theorem R5: an improper record becomes a row of zeros with a public target.
        rows, improper = _numbers_for(self.step, X, self.improper)
        is_labelled = is_classifier(self.step)
        if y is not None and y.ndim == 1 and (is_labelled or is_regressor(self.step)):
            labels = declared_labels(self.step) if is_labelled else None
            y, _ = proper_targets(y, improper, is_classifier=is_labelled, labels=labels)
        return rows, y

    def get_metadata_routing(self) -> Any:
        """Return the estimator's metadata routing."""
        return self.step.get_metadata_routing()

    def __sklearn_tags__(self) -> Any:
        """Return the estimator's tags."""
        return get_tags(self.step)


# Wrapping and unwrapping ----------------------------------------------------------------------


def _with(persons: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of a step's fit, with the persons of its rows."""
    # Theorem P14: a step that learns gets the persons, or its fit fails.
    return params if persons is None else {**params, "groups": persons}


@contextmanager
def _guarded(
    estimator: Any, compares: bool = False, improper: Any = None, persons: Any = None
) -> Iterator[Any]:
    """Yield the estimator with guarded steps; restore the original steps afterwards."""
    for _, step in nested_estimators(estimator):
        if isinstance(step, ColumnTransformer) and 0.0 < step.sparse_threshold < 1.0:
            # The number of zero entries is secret, and must not decide the container.
            later = [later for _, later in getattr(estimator, "steps", [])[1:]]
            takes = (get_tags(one).input_tags.sparse for one in later if one not in _KEYWORDS)
            step.sparse_threshold = float(all(takes))
    guarded = _guard(estimator, compares, improper, persons)
    try:
        yield guarded
    finally:
        _unguard(estimator)


def _guard(step: Any, compares: bool, improper: Any, persons: Any, is_last: bool = True) -> Any:
    """Return a step that no record makes fail; compositions are changed in place."""
    if isinstance(step, str) or step is None:
        return step
    if isinstance(step, Pipeline):
        last = len(step.steps) - 1
        step.steps = [
            (name, _guard(inner, compares, improper, persons, is_last and place == last))
            for place, (name, inner) in enumerate(step.steps)
        ]
        return step
    if isinstance(step, FeatureUnion):
        step.transformer_list = [
            (name, _guard(inner, compares, None, persons, is_last=False))
            for name, inner in step.transformer_list
        ]
        return step
    if isinstance(step, ColumnTransformer):
        step.transformers = [
            (name, _guard(inner, compares, None, persons, is_last=False), columns)
            for name, inner, columns in step.transformers
        ]
        step.remainder = _guard(step.remainder, compares, None, persons, is_last=False)
        return step
    if is_last and not hasattr(step, "transform"):
        return ProperRecords(step, improper, persons)
    return RecordByRecord(step, compares, persons)


def _unguard(step: Any) -> Any:
    """Return the original step; compositions are changed in place, with their fitted parts."""
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


def check_persons(estimators: Iterable[Any]) -> None:
    """Raise unless each step that learns from records protects persons.

    Notes
    -----
    Theorem P14.
    """
    for estimator in estimators:
        for _, part in nested_estimators(estimator):
            words = refusal_of(part, GROUPS)
            if words is None and by_persons(part) is not part:
                # A search states the costs of its fits as for records.
                words = OTHER_SOLVER
            is_composed = isinstance(part, Pipeline | FeatureUnion | ColumnTransformer)
            if words is not None and not is_composed and not _learns_nothing(part):
                raise TypeError(refused_groups(type(part).__name__, words))


def refusal_of_parts(estimator: Any) -> str | None:
    """Return None if each step of an estimator takes rows in parts, or else what to use instead.

    Notes
    -----
    Theorem R11.
    """
    if isinstance(estimator, str) or getattr(estimator, "_takes_parts", estimator is None):
        return None
    if getattr(estimator, "_person_column", None):
        return "Searches by persons need all rows of a person in one place."
    if isinstance(estimator, Pipeline):
        found = (refusal_of_parts(step) for _, step in estimator.steps)
        return next((words for words in found if words is not None), None)
    words = refusal_of(estimator, PARTS)
    return f"{type(estimator).__name__}: {words}" if words not in (None, OWN_USE) else words


def check_takes_parts(estimators: Iterable[Any]) -> None:
    """Raise unless each step of the estimators takes rows in parts."""
    for estimator in estimators:
        words = refusal_of_parts(estimator)
        if words is not None:
            raise TypeError(
                f"X must be a table in memory for {shown(estimator)}; got PrivateRows. "
                f"{ADVICE[PARTS] if words == OWN_USE else words}"
            )


def protects_persons(estimator: Any) -> bool:
    """Return whether each step of an estimator that learns from records protects persons."""
    try:
        check_persons([estimator])
    except TypeError:
        return False
    return True


def _learns_nothing(step: Any) -> bool:
    try:
        return cost_of(step, _ANY_SIZE, None).epsilon(0.0) == 0.0
    except (TypeError, ValueError):
        # A cost that depends on the number of columns is not zero.
        return False


# Records ---------------------------------------------------------------------------------------


def _numbers_for(step: Any, X: Any, known: Any = None) -> tuple[Any, Any]:
    """Return records in a form that a step can read, and which of them are improper."""
    if not reads_numbers(step):
        return X, np.zeros(number_of_samples(X), dtype=bool)
    rows, improper = finite_rows(X)
    if known is not None and known.any():
        improper = improper | known
        rows = zeroed(rows, improper)
    return named_like(X, rows), improper


def _stacked(parts: list[Any], X: Any) -> Any:
    """Return the results for parts of a table joined into one, in any kind of container."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    if all(hasattr(part, "iloc") for part in parts):
        import pandas as pd

        # Compositions align results of several steps by their index.
        stacked = pd.concat(parts, ignore_index=True)
        return stacked.set_axis(X.index) if hasattr(X, "iloc") else stacked
    if all(hasattr(part, "columns") for part in parts):
        import polars as pl

        return pl.concat(parts, how="vertical_relaxed")
    if all(isinstance(part, list) for part in parts):
        return list(itertools.chain.from_iterable(parts))
    arrays = [np.asarray(as_table(part)) for part in parts]
    if any(array.dtype.kind not in "fiub" for array in arrays):
        # NumPy would convert numbers to text.
        arrays = [array.astype(object) for array in arrays]
    return np.concatenate(arrays)


def _same(one: Any, other: Any) -> bool:
    one, other = (
        part.toarray() if sparse.issparse(part) else np.asarray(part) for part in (one, other)
    )
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9, equal_nan=True))
    return bool(np.all((one == other) | ((one != one) & (other != other))))
