"""Shims for different versions of scikit-learn and joblib, and all uses of their private names.

No other module imports a private name of these libraries or checks their version.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib.externals.loky.backend.reduction import dumps as dumps_for_workers
from sklearn.base import _clone_parametrized as clone_parametrized
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_features, _num_samples, validate_data

from skdptune._formatting import shown

try:  # since 1.9
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback._callback_support import callback_management_context
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replacement for versions of scikit-learn without callbacks."""

    callback_management_context = None

try:  # since 1.7
    from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
except ImportError:
    from sklearn.utils._estimator_html_repr import _VisualBlock as VisualBlock

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

try:  # a separate package since joblib 1.6
    import cloudpickle
except ImportError:
    from joblib.externals import cloudpickle

# Prefixes of those error messages of scikit-learn that do not show any value of the rows.
_HARMLESS = (
    *("X has ", "Input ", "Found array ", "The feature names ", "Feature names are only "),
    *("Sparse ", "A sparse "),
)
# Checks that leave an array of finite numbers of the right type as it is.
_PLAIN_CHECKS = {"reset", "dtype", "accept_sparse"}


def validated_rows(estimator: Any, X: Any, **checks: Any) -> Any:
    """Validate rows with scikit-learn's `validate_data`, but show no values in errors."""
    if _are_valid(estimator, X, checks):
        return X
    try:
        return validate_data(estimator, X, **checks)
    except (TypeError, ValueError) as error:
        text = str(error)
        if text.startswith(_HARMLESS):
            raise
    if "Reshape your data" in text:
        raise ValueError(
            f"X must be a table of rows and columns; got {shown(X)}. Reshape your data: "
            "reshape(1, -1) makes a table of one row."
        )
    if "Complex data" in text:
        raise ValueError("Complex data not supported: X must hold real numbers.")
    number_of_samples(X)
    raise ValueError(f"X must hold numbers; got others in {shown(X)}.")


def _are_valid(estimator: Any, X: Any, checks: dict[str, Any]) -> bool:
    """Return whether `validate_data` is certain to return rows as they are."""
    if checks.get("reset", True) or not checks.keys() <= _PLAIN_CHECKS:
        return False
    if type(X) is not np.ndarray or X.ndim != 2 or 0 in X.shape:
        return False
    types = checks.get("dtype", object)
    is_typed = X.dtype in (types if type(types) is list else [types])
    is_known = X.shape[1] == getattr(estimator, "n_features_in_", None)
    if not (is_typed and is_known) or hasattr(estimator, "feature_names_in_"):
        return False
    # Infinite also if finite numbers have an infinite sum.
    with np.errstate(all="ignore"):
        return bool(np.isfinite(X.sum()))


def number_of_samples(X: Any, name: str = "X") -> int:
    """Return the number of records in an array-like; a text has a length, but no records."""
    if not isinstance(X, str | bytes):
        with contextlib.suppress(TypeError):
            return int(_num_samples(X))
    raise TypeError(
        f"{name} must be an array-like, such as a table in memory; got {type(X).__name__}."
    )


def number_of_features(X: Any) -> int | None:
    """Return the number of columns, or None if it is unknown."""
    try:
        return int(_num_features(X))
    except (TypeError, ValueError, LookupError):
        # A column of a table has no entry 0 if its index has none.
        return None


def remove_callbacks(estimator: Any) -> None:
    """Remove an estimator's callbacks: a clone would keep them, and they would count the runs."""
    vars(estimator).pop("_skl_callbacks", None)


def routing_is_enabled() -> bool:
    """Return whether scikit-learn's metadata routing is enabled."""
    from sklearn import get_config

    return bool(get_config()["enable_metadata_routing"])


class Tasks:
    """The tasks of a fit, as reported to scikit-learn's callbacks.

    The number of tasks is fixed, so callbacks do not learn the number of runs where it is secret.
    """

    def __init__(self, estimator: Any, context: Any, data: dict[str, Any]) -> None:
        self._estimator, self._context, self._data = estimator, context, data

    @contextlib.contextmanager
    def task(self, name: str, n_subtasks: int = 0) -> Iterator[Tasks]:
        """Report the start and the end of a task around a block, and yield the task's subtasks."""
        if self._context is None:
            yield self
            return
        inner = self._context.subcontext(task_name=name, max_subtasks=n_subtasks)
        inner.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        yield Tasks(self._estimator, inner, self._data)
        inner.call_on_fit_task_end(estimator=self._estimator, **self._data)


# Used if the estimator has no callbacks.
NO_TASKS = Tasks(None, None, {})


@contextlib.contextmanager
def tasks_of_fit(
    estimator: Any, n_tasks: int, X: Any, y: Any, sample_weight: Any = None
) -> Iterator[Tasks]:
    """Report a fit and its fixed number of tasks to the estimator's callbacks, if any."""
    if callback_management_context is None or not getattr(estimator, "_skl_callbacks", None):
        yield Tasks(estimator, None, {})
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    data = {"X": X, "y": y, "metadata": metadata}
    with callback_management_context(estimator):
        context = estimator._init_callback_context(max_subtasks=n_tasks)
        context.call_on_fit_task_begin(estimator=estimator, **data)
        yield Tasks(estimator, context, data)
        context.call_on_fit_task_end(estimator=estimator, **data)
