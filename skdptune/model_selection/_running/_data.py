"""The data of a search, and the records of them that a fit takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._compat import number_of_samples, safe_indexing
from skdptune.model_selection._running._record_by_record import fit_record_by_record

Records = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Data:
    """Records and targets, and the further arguments of `fit`.

    Attributes
    ----------
    X, y : array-like
        As given to the search.
    per_record : dict
        Arguments of `fit` with one entry per record.
    constant : dict
        Other arguments of `fit`.
    """

    X: Any
    y: Any
    per_record: dict[str, Any] = field(default_factory=dict)
    constant: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def with_arguments(cls, X: Any, y: Any, arguments: dict[str, Any]) -> Data:
        """Return data with arguments of `fit`; what has one entry per record is divided with X."""
        n_samples = number_of_samples(X)
        per_record = {
            name: value
            for name, value in arguments.items()
            if hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n_samples
        }
        constant = {name: value for name, value in arguments.items() if name not in per_record}
        return cls(X, y, per_record, constant)

    @property
    def n_samples(self) -> int:
        """Number of records; secret for a random part of the data."""
        return number_of_samples(self.X)

    def take(self, records: Records | None) -> Data:
        """Return the given records, all of them for None."""
        if records is None:
            return self
        chosen = {name: safe_indexing(value, records) for name, value in self.per_record.items()}
        y = None if self.y is None else safe_indexing(self.y, records)
        return Data(safe_indexing(self.X, records), y, chosen, self.constant)

    def fit(self, estimator: Any, **more: Any) -> Any:
        """Fit an estimator to the records, none of which can make the fit fail (Theorem R6)."""
        arguments = {**self.per_record, **self.constant, **more}
        return fit_record_by_record(estimator, self.X, self.y, **arguments)
