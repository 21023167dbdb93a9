"""What private explainable boosting machines share: parameters, cost, fit and scores."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import number_of_samples, validated_rows
from skdptune._validation import check_integer
from skdptune.accounting import PrivacyProfile
from skdptune.base import (
    PUBLIC_SIZE,
    PrivateEstimatorMixin,
    as_table,
    target_array,
    validate_rows,
    zeroed,
)
from skdptune.ensemble._bins import released_bins
from skdptune.ensemble._boosting import BinnedColumn, boosted_scores
from skdptune.ensemble._interpret import model_of_interpret
from skdptune.ensemble._optional_protocol import OptionalProtocolMixin
from skdptune.ensemble._parameters import check_parameters
from skdptune.ensemble._plan import BoostingPlan, RateRule, plan_of_budget, plan_of_noise
from skdptune.ensemble._residuals import Residuals
from skdptune.ensemble._terms import Places, Term, terms_of_bounds, terms_of_schema
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import fit_generator
from skdptune.preprocessing import (
    PUBLIC_SCHEMA,
    as_schema,
    cells_of,
    check_form,
    check_types,
)

# Cells of a range for each bin that is wanted: bins follow where the records are.
_CELLS_PER_BIN = 8


class PrivateExplainableBoosting(OptionalProtocolMixin, PrivateEstimatorMixin, BaseEstimator):
    """What classifier and regressor share; they bring targets and their residuals."""

    _rate_rule: ClassVar[RateRule]

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        schema: Any = None,
        max_bins: int = 32,
        max_rounds: int = 100,
        max_leaves: int = 3,
        learning_rate: float | None = None,
        bin_share: float = 0.1,
        noise_multiplier: float | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.max_bins = max_bins
        self.max_rounds = max_rounds
        self.max_leaves = max_leaves
        self.learning_rate = learning_rate
        self.bin_share = bin_share
        self.noise_multiplier = noise_multiplier
        self.random_state = random_state
        self.n_public = n_public
        self.ledger = ledger

    # The cost, before data ----------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what a fit costs, from the parameters alone.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Not used: noise grows with the number of columns, and the cost stays.

        Returns
        -------
        PrivacyProfile

        Notes
        -----
        Theorem B1.
        """
        check_integer(n_samples, name="n_samples", lower=1)
        return self._plan().profile

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return what a fit's report will assume, from parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns.

        Returns
        -------
        tuple of str
        """
        # Theorem F11.
        if self.schema is not None:
            return (PUBLIC_SIZE, PUBLIC_SCHEMA)
        return (PUBLIC_SIZE, "columns are clipped to the public bounds")

    def _plan(self) -> BoostingPlan:
        self._check_parameters()
        if self.noise_multiplier is not None:
            return plan_of_noise(float(self.noise_multiplier))
        return plan_of_budget(*self._checked_budget())

    def _check_parameters(self) -> None:
        """Refuse bad parameters, before any data are read."""
        if self.noise_multiplier is None or self.epsilon is not None:
            self._checked_budget()
        self._checked_delta()
        self._public_size(1)
        check_parameters(self)

    # Fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers beyond ``bounds`` are clipped to them; a record that holds anything but finite
            numbers counts as a row of zeros. With a ``schema``, a table with its columns, in which
            any cell may be anything.
        y : array-like of shape (n_samples,)
            Targets. One that is improper counts as the first label, or as 0.

        Returns
        -------
        self
        """
        plan = self._plan()
        # An interrupted fit leaves no model, and none of before.
        self.__dict__.pop("privacy_", None)
        cells, targets = self._validated(X, y)
        residuals = self._residuals(targets)
        size = self._public_size(targets.shape[0])
        self._warn_of_large_delta(size)
        generator = fit_generator(self.random_state)
        # A warning of overflow would tell of the data.
        with np.errstate(all="ignore"):
            self._boost(plan, cells, residuals, size, generator)
        self.privacy_ = self._make_report(plan.profile, self.privacy_assumptions(size))
        return self

    def _boost(
        self,
        plan: BoostingPlan,
        cells: list[Places],
        residuals: Residuals,
        size: int,
        generator: np.random.Generator,
    ) -> None:
        """Release bins and scores; all that is kept of them is noisy or public."""
        n_terms, share = len(cells), float(self.bin_share)
        self.learning_rate_ = self._rate(plan, n_terms, size)
        scale, least = plan.count_scale(n_terms, share), size / self.max_bins
        bins = [
            released_bins(term, places, scale, least, generator)
            for term, places in zip(self._terms, cells, strict=True)
        ]
        scores = boosted_scores(
            [
                BinnedColumn(each.of_cells[places], each, term.is_ordered)
                for term, places, each in zip(self._terms, cells, bins, strict=True)
            ],
            residuals,
            plan.step_scale(n_terms, self.max_rounds, share) * residuals.norm,
            generator,
            max_rounds=self.max_rounds,
            max_leaves=self.max_leaves,
            learning_rate=self.learning_rate_,
        )
        # As of interpret-core: the mean of a term's scores over the records goes to the intercept.
        means = [
            np.average(one, axis=1, weights=each.weights)
            for one, each in zip(scores, bins, strict=True)
        ]
        self.bins_ = [each.of_cells for each in bins]
        self.bin_weights_ = [each.weights for each in bins]
        self.term_names_ = [term.column.name for term in self._terms]
        centred = [one - mean[:, None] for one, mean in zip(scores, means, strict=True)]
        self.term_scores_ = [one[0] if len(one) == 1 else one.T for one in centred]
        self.intercept_ = np.sum(means, axis=0)

    def _rate(self, plan: BoostingPlan, n_terms: int, size: int) -> float:
        """Return the learning rate, by rule from public numbers where none is given."""
        if self.learning_rate is not None:
            return float(self.learning_rate)
        rounds, leaves = self.max_rounds, self.max_leaves
        return plan.learning_rate(size, n_terms, rounds, leaves, self._rate_rule)

    def _validated(self, X: Any, y: Any) -> tuple[list[Places], NDArray[Any]]:
        """Return the cells of each column and the targets, proper whatever the records hold.

        Notes
        -----
        Theorem R5, Theorem R7.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        targets = target_array(y, warns=True)
        if self.schema is None:
            # An error must not reveal that a random subset is empty.
            least = 1 if self.n_public is None else 0
            rows, improper = validate_rows(self, X, min_samples=least)
            self._check_length(rows.shape[0], targets)
            targets, improper = self._proper(targets, improper)
            rows = zeroed(rows, improper)
            self._terms = self._terms_of(rows.shape[1])
        else:
            self._check_table(X)
            validated_rows(self, as_table(X), skip_check_array=True)
            self._check_length(number_of_samples(X), targets)
            targets, _ = self._proper(targets, np.zeros(targets.shape[0], dtype=bool))
            self._terms = self._terms_of(self.n_features_in_)
            rows = X
        return self._cells(rows), targets

    def _check_length(self, n_samples: int, targets: NDArray[Any]) -> None:
        if targets.shape[0] != n_samples:
            raise ValueError(
                f"y must be as long as X; got {targets.shape[0]} targets for {n_samples} records: "
                "inconsistent numbers of samples."
            )
        if n_samples == 0 and self.n_public is None:
            raise ValueError(
                "X must have records; got 0 sample(s) while a minimum of 1 is required."
            )

    def _check_table(self, X: Any) -> None:
        """Refuse a table that does not have the columns of the schema, or not their types."""
        if self.schema is not None:
            self._check_columns(X)
            check_types(X, as_schema(self.schema).columns)

    def _check_columns(self, X: Any) -> None:
        schema = as_schema(self.schema)
        check_form(X, schema.columns, None if schema.target is None else schema.target.name)

    def _terms_of(self, n_features: int) -> list[Term]:
        n_grid = _CELLS_PER_BIN * self.max_bins
        if self.schema is not None:
            return terms_of_schema(as_schema(self.schema), n_grid)
        names = getattr(self, "feature_names_in_", [f"x{place}" for place in range(n_features)])
        return terms_of_bounds(self.bounds, list(names), n_grid)

    def _cells(self, X: Any) -> list[Places]:
        """Return the cell of each record, for each column."""
        if self.schema is None:
            columns = [X[:, place] for place in range(X.shape[1])]
        else:
            columns = cells_of(X, as_schema(self.schema).columns)
        return [term.cells(column) for term, column in zip(self._terms, columns, strict=True)]

    def _proper(
        self, targets: NDArray[Any], improper: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        raise NotImplementedError

    def _residuals(self, targets: NDArray[Any]) -> Residuals:
        raise NotImplementedError

    # Using ------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return sums of scores, of shape (n_samples,) or (n_samples, n_classes)."""
        check_is_fitted(self)
        if self.schema is None:
            X = validated_rows(self, X, dtype=np.float64, reset=False)
        else:
            self._check_columns(X)
        total: Any = self.intercept_ if self.intercept_.size > 1 else self.intercept_[0]
        for cells, bins, scores in zip(self._cells(X), self.bins_, self.term_scores_, strict=True):
            total = total + scores[bins[cells]]
        return np.asarray(total)

    def to_interpret(self) -> Any:
        """Return the model as one of interpret-core, for its pictures and explanations.

        It predicts the same, and has ``explain_global``, ``explain_local`` and ``to_json``. What
        it shows is what this model shows, and costs nothing more. Needs the extra ``ebm``.

        Returns
        -------
        DPExplainableBoostingClassifier or DPExplainableBoostingRegressor
            Of ``interpret.privacy``; with more than two classes the ExplainableBoostingClassifier
            of ``interpret.glassbox``. It is not to be fitted again: see the Notes of this class.
        """
        check_is_fitted(self)
        return model_of_interpret(self, self._terms)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy model, for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        if self.schema is not None:
            tags.input_tags.string = True
            tags.input_tags.categorical = True
            tags.input_tags.allow_nan = True
        return tags
