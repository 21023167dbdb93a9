"""What the transformers share that learn nothing from data."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdptune._validation import check_integer
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import rows_with_gaps, validate_rows

FLOATS = ("float64", "float32")


class FreeTransformer(TransformerMixin, BaseEstimator):
    """A transformer that treats each record by itself, at no cost."""

    # No parameter changes a cost of zero.
    cost_parameters: frozenset[str] = frozenset()

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what fitting costs: nothing, whatever the data.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns.
        """
        check_integer(n_samples, name="n_samples", lower=1)
        return PrivacyProfile.pure(0.0)


class StatelessTransformer(OneToOneFeatureMixin, FreeTransformer):
    """A transformer of numbers, column by column, at no cost.

    A subclass checks its parameters in ``_check_parameters``, and works in ``transform``.
    """

    _accept_sparse: Any = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the form of the table; no entry is looked at.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._check_parameters()
        # Theorem R5. A cost of nothing follows from nothing, not even from what is finite.
        rows, _ = validate_rows(self, X, accept_sparse=bool(self._accept_sparse))
        self._check_width(rows.shape[1])
        self.privacy_ = PrivacyReport(
            self.privacy_profile(rows.shape[0]), 0.0, name=type(self).__name__
        )
        return self

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _check_width(self, n_features: int) -> None:
        """Raise if the parameters do not suit the number of features."""

    def _rows(self, X: Any) -> Any:
        # Theorem R5.
        return rows_with_gaps(self, X, accept_sparse=bool(self._accept_sparse))

    def __sklearn_tags__(self) -> Any:
        """Declare that fitting is optional."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.transformer_tags.preserves_dtype = list(FLOATS)
        return tags
