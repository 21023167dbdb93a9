"""Base class of private explainable boosting machines: parameters, cost, fit and scores.

[summary]
The explainable boosting machine of interpret-core, for tables of numeric and categorical columns.
A prediction is the sum of one score for each column, and of one for each pair of columns that
interact. The scores of a column form a curve that can be plotted, those of a pair a table. It
needs no scaling, and learns steps and bends that linear models cannot.
`to_interpret` gives access to the plots and explanations of interpret-core.

[budget]
epsilon : float or None, default=1.0
    Privacy budget of a fit; infinite for no noise. Not used if `noise_multiplier` is given.
delta : float, default=1e-5
    Delta of the budget; positive, and far below 1 over the number of records.

[columns]
bounds : tuple (lower, upper), optional
    Range of the columns, for tables of numbers: two numbers, or two arrays with one number per
    column. It must be known without looking at the data; values beyond it are clipped.
schema : Schema, dict or str, optional
    Alternative to `bounds`, for tables with text and missing values: the range or the categories
    of every column, see `skdptune.preprocessing.Schema`. A column of text stays one column.

[boosting]
max_bins : int, default=32
    Approximate number of bins for a column of numbers, with about the same number of records in
    each.
max_rounds : int, default=100
    Rounds of boosting, each of which gives every column one tree. More rounds have more noise in
    each, at the same cost.
max_leaves : int, default=3
    Leaves of a tree.
learning_rate : float, optional
    Share of its mean residual by which a leaf moves. Its product with `max_rounds` sets how far
    scores can move and how much noise they have. None follows a rule from public numbers: the rate
    gives the noise of a prediction a fixed standard deviation, more if there are few records for
    the budget. That is 0.4 for a classifier (of a logit), at a rate of at most 1. It is 0.08 for a
    regressor (of half of the targets' range), at a rate of at most 0.3. ``docs/benchmarks.md``
    says on which data the rule was measured.
bin_share : float, default=0.1
    Share of the budget (of its squared shift, see Notes) that pays for the counts of records in
    bins; the rest pays for the boosting.
interactions : "auto", int, list of pairs or None, default="auto"
    Pairs of columns that get their own table of scores. "auto" looks for pairs if there are
    enough records for the budget, and learns those that clearly matter; often these are none. A
    whole number learns that many, and a list names pairs by name or place. None or 0 makes the
    model additive, and leaves the whole budget to the columns.
monotonic_cst : sequence of int or mapping of str to int, optional
    For each column 1 if predictions must not fall as it grows, -1 if they must not rise, or 0 for
    no constraint; for two classes, predictions of the second. A mapping has names as keys, and 0
    for all others. Such a column is in no pair, and must not have categories.
noise_multiplier : float, optional
    Noise of the whole fit, as standard deviations at a sensitivity of 1. If given, it replaces
    `epsilon`.
{randomness}
{size_and_ledger}

[shared_attributes]
term_names_ : list of str
    The column of each term.
term_scores_ : list of ndarray of shape (n_bins,) or (n_bins, n_classes)
    The scores of each term's bins, with mean zero.
term_deviations_ : list of ndarray, shaped as those of `term_scores_`
    Standard deviations of the noise that all steps together added to the scores.
pairs_ : list of tuple of int
    The places of both columns of each learned pair.
pair_scores_ : list of ndarray of shape (n_first, n_second) or (n_first, n_second, n_classes)
    The contribution of each pair in addition to the scores of its columns, which contain the means
    along both sides.
pair_bins_ : list of tuple of two ndarray of shape (n_cells,)
    For each pair, the row and the column of its table for each cell of both columns.
pair_deviations_ : list of ndarray, shaped as those of `pair_scores_`
    The same as `term_deviations_` for pairs, before means were moved to the columns.
bin_weights_ : list of ndarray of shape (n_bins,)
    Noisy numbers of records in the bins.
bins_ : list of ndarray of shape (n_cells,)
    For each term, the bin of each of its cells: equal parts of a range, or categories.
learning_rate_ : float
    The rate that was used.
intercept_ : ndarray of shape (1,) or (n_classes,)
    The mean prediction.
privacy_ : PrivacyReport
    The privacy cost of the fit.
n_features_in_ : int
    Number of columns.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the columns, if they had any.

[notes]
Theorem B1.

Neighbours differ by adding or removing one record. The algorithm is that of Nori et al. (2021,
arXiv 2106.09680), as in interpret-core. Noisy counts decide on bins. Then trees that are cut at
random move the scores of one column after another by noisy sums of residuals. With k columns and T
rounds a record changes k counts and k T sums. All are Gaussian releases, which compose to one of
squared shift ``1 / noise_multiplier**2``. So a fit costs exactly one Gaussian release, whatever
the other parameters are. interpret-core splits epsilon between both stages and adds it up again;
the same noise costs some 13 % less epsilon here.

Theorem B2.

With ``interactions`` two fifths of the rounds go to pairs instead: to random grids of two columns,
each with noisy sums of residuals and noisy counts of its cells. A cell moves by its mean residual,
shrunk by as much as the grid's noise explains. Looking for pairs takes 8 % of the squared shift.
All releases together still cost the same.

Noise, counts and sums are those of this package, since a fit of interpret-core (0.7.8) shows more
than its report says. It shows the number of records (``bag_weights_``, and the bins), and labels
and categories that only one record has (also with declared categories). In regressions it shows
residuals as long as the targets, while its noise suits the length of their range.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import number_of_samples, validated_rows
from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import (
    DECLARE_LABELS,
    PARTS,
    PUBLIC_SIZE,
    Persons,
    PrivateRows,
    as_table,
    check_given,
    check_has_records,
    check_length,
    labels_of_chunk,
    persons_of,
    proper_targets,
    target_array,
    validate_rows,
    without_secrets,
    zeroed,
)
from skdptune.ensemble._boosting import (
    BinnedColumn,
    Bins,
    BoostingPlan,
    NumberTerm,
    Piece,
    Places,
    RateRule,
    Records,
    Residuals,
    Scores,
    Table,
    Term,
    boosted_scores,
    counts_of_cells,
    in_bins,
    monotone,
    pairs_of,
    plan_of_budget,
    plan_of_noise,
    released_bins,
    signs_of,
    terms_of_bounds,
    terms_of_schema,
)
from skdptune.ensemble._interpret import model_of_interpret
from skdptune.ensemble._pairs import Pair, PairLearner, purified
from skdptune.mechanisms import fit_generator
from skdptune.mechanisms._shared import WHOLE
from skdptune.preprocessing._shared import (
    PUBLIC_SCHEMA,
    as_schema,
    cells_of,
    check_bounds,
    check_form,
    check_types,
)

TEXT = __doc__


_NO_RANGES = (
    "bounds must be given, or schema; got neither. They say between which public numbers a column "
    "lies, such as bounds=(0, 120), or bounds=([0, 0], [120, 1e6]) for two columns; columns of "
    "words take a schema with their categories."
)

# Number of cells of a range for each requested bin: bins follow the density of the records.
_CELLS_PER_BIN = 8


# Share of the squared shift of the grids in which pairs are looked for, and of the rounds that
# pairs get if there are any.
_SEARCH_SHARE, _PAIR_ROUNDS = 0.08, 0.4
# "auto" looks for pairs from this number of records on, for each column and unit of noise. With
# fewer records, the columns need the whole budget.
_RECORDS_PER_COLUMN = 180.0
Interactions = str | int | Sequence[tuple[Any, Any]] | None


def _outputs_last(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the only output, or all of them in the last dimension."""
    return scores[0] if len(scores) == 1 else np.moveaxis(scores, 0, -1)


class PrivateExplainableBoosting(PrivateEstimatorMixin, BaseEstimator):
    """Base class of classifier and regressor, which define targets and their residuals."""

    _takes_persons_in_parts: ClassVar[bool] = True
    _reads_again: ClassVar[bool] = True
    # Names of the parameters on which the cost depends: others leave the total noise unchanged.
    cost_parameters = frozenset({"epsilon", "delta", "noise_multiplier"})
    # Name of the parameter that sets the noise and changes nothing else.
    noise_parameter = "noise_multiplier"
    _rate_rule: ClassVar[RateRule]

    bounds: Any
    schema: Any
    max_bins: int
    max_rounds: int
    max_leaves: int
    learning_rate: float | None
    bin_share: float
    interactions: Interactions
    monotonic_cst: Any
    noise_multiplier: float | None

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the cost of a fit, which follows from the parameters.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Not used: noise grows with the number of columns, but the cost stays the same.

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
        """Return the assumptions that a fit's report will state, from parameters and public sizes.

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
        # Theorem F11: the report carries the assumptions of its parts.
        if self.schema is not None:
            return (PUBLIC_SIZE, PUBLIC_SCHEMA)
        return (PUBLIC_SIZE, "columns are clipped to the public bounds")

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in standard deviations per sensitivity of one release.

        If it is given as ``noise_multiplier`` instead of a budget, the noise is the same.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Not used.

        Returns
        -------
        float
        """
        check_integer(n_samples, name="n_samples", lower=1)
        return self._plan().noise_multiplier

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return parameters with which a fit on fewer records resembles the final fit: none.

        Leaves hold means of residuals, so that rounds and rate suit any number of records.

        Parameters
        ----------
        n_tune, n_final : int
            Numbers of records.

        Returns
        -------
        dict
            Empty.
        """
        check_integer(n_tune, name="n_tune", lower=1)
        check_integer(n_final, name="n_final", lower=1)
        return {}

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return values that are worth searching in addition to the current ones.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Number of columns; without it and without a ``schema``, rates that follow a rule are
            not searched.

        Returns
        -------
        dict of lists
            By parameter, with the current value first: twice and half the learning rate, and more
            leaves. A search varies one parameter at a time.
        """
        size = self._public_size(check_integer(n_samples, name="n_samples", lower=1))
        if n_features is not None:
            n_features = check_integer(n_features, name="n_features", lower=1, upper=2**53)
        plan = self._plan()
        space: dict[str, list[Any]] = {
            "max_leaves": [self.max_leaves, 5 if self.max_leaves < 5 else 3]
        }
        n_terms = n_features if self.schema is None else len(as_schema(self.schema).used)
        if self.learning_rate is not None or n_terms is not None:
            rate = self._rate(plan, n_terms or 1, size)
            rates = [self.learning_rate, min(2.0 * rate, 10.0), 0.5 * rate]
            space["learning_rate"] = list(dict.fromkeys(rates))
        return space

    def _plan(self) -> BoostingPlan:
        self._check_parameters()
        if self.noise_multiplier is not None:
            return plan_of_noise(float(self.noise_multiplier))
        return plan_of_budget(*self._checked_budget())

    def _check_parameters(self) -> None:
        """Validate the parameters, before any data are read."""
        if self.noise_multiplier is None or self.epsilon is not None:
            self._checked_budget()
        self._checked_delta()
        self._public_size(1)
        if self.delta == 0.0:
            raise ValueError(
                "delta must be positive, since normal noise is never purely private; got 0. Use "
                "DPLogisticRegression or OutputPerturbationLinearRegression for delta=0."
            )
        if self.noise_multiplier is not None:
            check_real(
                self.noise_multiplier,
                name="noise_multiplier",
                lower=0.0,
                lower_open=True,
                upper=1e9,
            )
        self._check_ranges()
        check_integer(self.max_bins, name="max_bins", lower=2, upper=4096)
        check_integer(self.max_rounds, name="max_rounds", lower=1, upper=10**9)
        check_integer(self.max_leaves, name="max_leaves", lower=2, upper=4096)
        check_real(self.bin_share, name="bin_share", lower=1e-6, upper=1.0 - 1e-6)
        if self.n_public is not None:
            check_integer(self.n_public, name="n_public", lower=1, upper=2**53)
        if self.learning_rate is not None:
            check_real(
                self.learning_rate, name="learning_rate", lower=0.0, lower_open=True, upper=10.0
            )
        if self.schema is not None:
            self._check_terms(self._terms_of(0))
        elif self.interactions is None or isinstance(self.interactions, str | numbers.Number):
            self._listed_pairs(())

    def _check_terms(self, terms: Sequence[Term]) -> None:
        """Refuse pairs and constraints of columns that there are not."""
        listed = self._listed_pairs(terms)
        constrained = np.flatnonzero(signs_of(self.monotonic_cst, terms)).tolist()
        if set(constrained) & {place for pair in listed or () for place in pair}:
            raise ValueError("interactions must not list a column of monotonic_cst; got both.")
        if listed and self.max_rounds < 2:
            raise ValueError("max_rounds must be at least 2 with listed interactions; got 1.")

    def _listed_pairs(self, terms: Sequence[Term]) -> list[tuple[int, int]] | None:
        """Return the pairs of `interactions`, or None if it lists none."""
        given = self.interactions
        if given is None or isinstance(given, str | numbers.Number):
            if isinstance(given, str):
                check_option(given, name="interactions", options=("auto",))
            elif given is not None:
                check_integer(given, name="interactions", lower=0, upper=10**6)
            return None
        return pairs_of(given, terms)

    def _check_ranges(self) -> None:
        """Refuse to fit without public ranges, or with both kinds of them."""
        if self.schema is None:
            if self.bounds is None:
                raise ValueError(_NO_RANGES)
            check_bounds(self.bounds)
            return
        if self.bounds is not None:
            raise ValueError(
                "bounds must be None where schema is given, which knows all ranges; got both."
            )
        as_schema(self.schema).check_unit(type(self).__name__)

    # Fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            Numbers beyond ``bounds`` are clipped to them. A record with entries that are not
            finite numbers counts as a row of zeros. With a ``schema``, a table with its columns,
            in which any cell may hold anything. Rows in parts are read once; then the bins of the
            records stay in memory where the parts lie.
        y : array-like of shape (n_samples,)
            Targets; None with `PrivateRows`. An improper target counts as the first label, or as
            0.
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row: text or whole numbers. The guarantee is then about
            adding or removing one person with all of their rows (Theorem P14), and all numbers of
            records are numbers of persons. In counts and sums of residuals, each row counts by
            one over the number of its person's rows. A row without a proper id is left out.

        Returns
        -------
        self
        """
        plan = self._plan()
        # An interrupted fit leaves no model, nor that of an earlier fit.
        self.__dict__.pop("privacy_", None)
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        # A warning of overflow would reveal something about the data.
        with np.errstate(all="ignore"):
            records, residuals, n_records = self._records(X, y, persons)
            size = self._public_size(n_records)
            self._warn_of_large_delta(size)
            self._boost(plan, records, residuals, size, fit_generator(self.random_state))
        self.privacy_ = self._make_report(plan.profile, self.privacy_assumptions(size), persons)
        return self

    def _input_refusal(self, form: str) -> str | None:
        needs_labels = form == PARTS and is_classifier(self) and self._labels() is None
        return DECLARE_LABELS if needs_labels else None

    def _records(self, X: Any, y: Any, persons: Persons | None) -> tuple[Records, Residuals, int]:
        """Return the records by their cells, residuals of any records, and the records' number."""
        if isinstance(X, PrivateRows):
            X.check_columns(self)
            size = X.size_of_fit(self.n_public)
            self._set_terms()
            rows = X if persons is None else X.by_persons(persons)
            kept = rows.kept(functools.partial(_piece_of, without_secrets(self)))
            residuals = self._residuals(np.zeros(0), None)
            return kept, residuals, size if persons is None else persons.size
        cells, targets = self._validated(X, y)
        shares = None
        if persons is not None:
            cells, targets = [persons.select(one) for one in cells], persons.select(targets)
            shares = persons.shares
        piece = Piece(cells, self._residuals(targets, shares), shares)
        return Table(piece), piece.residuals, piece.size if persons is None else persons.size

    def _boost(
        self,
        plan: BoostingPlan,
        records: Records,
        residuals: Residuals,
        size: int,
        generator: np.random.Generator,
    ) -> None:
        """Release bins and scores; everything that is kept of them is noisy or public."""
        n_terms, share = len(self._terms), float(self.bin_share)
        wanted = self._wanted_pairs(size, plan.noise_multiplier)
        # Theorem B2: grids in which pairs are looked for take their share first.
        search = plan.part(_SEARCH_SHARE).noise_multiplier
        if isinstance(wanted, int | str):
            plan = plan.part(1.0 - _SEARCH_SHARE)
        self.learning_rate_ = self._rate(plan, n_terms, size)
        scale, least = plan.count_scale(n_terms, share), size / self.max_bins
        sizes = [term.n_cells for term in self._terms]
        counts = records.total(functools.partial(counts_of_cells, sizes))
        bins = [
            released_bins(term, own, scale, least, generator)
            for term, own in zip(self._terms, np.split(counts, np.cumsum(sizes)[:-1]), strict=True)
        ]
        records = records.mapped(functools.partial(in_bins, [each.of_cells for each in bins]))
        columns = [
            BinnedColumn(each, term.is_ordered)
            for term, each in zip(self._terms, bins, strict=True)
        ]
        variances = [np.zeros((residuals.n_outputs, each.weights.size)) for each in bins]
        boost = functools.partial(
            boosted_scores,
            columns,
            records,
            residuals,
            plan.step_scale(n_terms, self.max_rounds, share) * residuals.norm,
            generator,
            max_leaves=self.max_leaves,
            learning_rate=self.learning_rate_,
            variances=variances,
        )
        n_left = 0 if wanted is None else round(_PAIR_ROUNDS * self.max_rounds)
        of_mean = None if is_classifier(self) else size
        scores = boost(max_rounds=self.max_rounds - n_left, size=of_mean)
        pairs: list[Pair] = []
        if wanted is not None:
            learner = PairLearner.after(columns, scores, records, residuals, size, generator)
            chosen = self._chosen_pairs(wanted, learner, search)
            left = plan.part((1.0 - share) * n_left / self.max_rounds / self.max_rounds)
            if chosen:
                pairs = learner.learn(chosen, left.noise_multiplier, self.max_rounds)
            else:
                scores = boost(max_rounds=n_left, start=scores)
        self._publish(bins, scores, variances, pairs)

    def _wanted_pairs(self, size: int, noise: float) -> list[tuple[int, int]] | int | str | None:
        """Return the listed pairs, how many to find, "auto", or None for none."""
        listed = self._listed_pairs(self._terms)
        if listed is not None:
            return listed or None
        given, n_terms = self.interactions, len(self._terms)
        if not isinstance(given, str | int) or not given or min(n_terms, self.max_rounds) < 2:
            return None
        is_enough = size >= _RECORDS_PER_COLUMN * noise * n_terms
        return given if isinstance(given, int) or is_enough else None

    def _chosen_pairs(
        self, wanted: list[tuple[int, int]] | int | str, learner: PairLearner, noise: float
    ) -> dict[tuple[int, int], float]:
        """Return the pairs to learn and their shares of the rounds."""
        if isinstance(wanted, list):
            return dict.fromkeys(wanted, 1.0 / len(wanted))
        signs = signs_of(self.monotonic_cst, self._terms)
        looked_at = learner.candidates([not sign for sign in signs])
        if not looked_at:
            return {}
        most = None if isinstance(wanted, str) else wanted
        return learner.choose(looked_at, noise * math.sqrt(len(looked_at)), most)

    def _publish(
        self,
        bins: list[Bins],
        scores: list[Scores],
        variances: list[Scores],
        pairs: list[Pair],
    ) -> None:
        """Set the learned attributes, all of which follow from noisy and public numbers."""
        for pair in pairs:
            for place, axis, moved in zip(pair.columns, pair.axes, purified(pair), strict=True):
                scores[place] = scores[place] + moved[:, axis.of_bins]
        signs = signs_of(self.monotonic_cst, self._terms)
        for place in np.flatnonzero(signs).tolist():
            increasing, term = signs[place] > 0, self._terms[place]
            if isinstance(term, NumberTerm):
                scores[place] = monotone(scores[place], bins[place], term, increasing=increasing)
        # As in interpret-core, the mean of a term's scores over the records goes to the intercept.
        means = [
            np.average(one, axis=1, weights=each.weights)
            for one, each in zip(scores, bins, strict=True)
        ]
        self.bins_ = [each.of_cells for each in bins]
        self.bin_weights_ = [each.weights for each in bins]
        self.term_names_ = [term.column.name for term in self._terms]
        centred = [one - mean[:, None] for one, mean in zip(scores, means, strict=True)]
        self.term_scores_ = [_outputs_last(one) for one in centred]
        self.term_deviations_ = [_outputs_last(np.sqrt(one)) for one in variances]
        self.intercept_ = np.sum(means, axis=0)
        self.pairs_ = [pair.columns for pair in pairs]
        self.pair_bins_ = [
            tuple(
                axis.of_bins[bins[place].of_cells]
                for place, axis in zip(pair.columns, pair.axes, strict=True)
            )
            for pair in pairs
        ]
        tables = [(-1, *pair.shape) for pair in pairs]
        self.pair_scores_ = [
            _outputs_last(pair.scores.reshape(table))
            for pair, table in zip(pairs, tables, strict=True)
        ]
        self.pair_deviations_ = [
            _outputs_last(np.sqrt(pair.variances).reshape(table))
            for pair, table in zip(pairs, tables, strict=True)
        ]

    def _rate(self, plan: BoostingPlan, n_terms: int, size: int) -> float:
        """Return the learning rate; without a given one, by a rule from public numbers."""
        if self.learning_rate is not None:
            return float(self.learning_rate)
        rounds, leaves = self.max_rounds, self.max_leaves
        return plan.learning_rate(size, n_terms, rounds, leaves, self._rate_rule)

    def _validated(self, X: Any, y: Any) -> tuple[list[Places], NDArray[Any]]:
        """Return the cells of each column and the targets, valid whatever the records hold.

        Notes
        -----
        Theorem R5, Theorem R7.
        """
        check_given(y, self)
        targets = target_array(y, warns=True)
        if self.schema is not None:
            self._check_fit({"X": X})
            validated_rows(self, as_table(X), skip_check_array=True)
        # An error must not reveal that a random subset is empty.
        rows, targets = self._proper_rows(X, targets, self, 1 if self.n_public is None else 0)
        self._set_terms()
        return self._cells(rows), targets

    def _proper_rows(
        self, X: Any, targets: NDArray[Any], owner: BaseEstimator, least: int
    ) -> tuple[Any, NDArray[Any]]:
        """Return rows and targets that are valid whatever the records hold."""
        if self.schema is not None:
            check_length(targets.shape[0], number_of_samples(X))
            check_has_records(targets.shape[0], least)
            return X, self._proper(targets, np.zeros(targets.shape[0], dtype=bool))[0]
        rows, improper = validate_rows(owner, X, min_samples=least)
        check_length(targets.shape[0], rows.shape[0])
        targets, improper = self._proper(targets, improper)
        return zeroed(rows, improper), targets

    def _set_terms(self) -> None:
        self._terms = self._terms_of(self.n_features_in_)
        self._check_terms(self._terms)

    def _check_fit(self, given: Mapping[str, Any]) -> None:
        """Refuse a table that lacks the columns of the schema, or has other types."""
        X = given["X"]
        # The form of chunks is not known before the first is read.
        X = X.known_rows if isinstance(X, PrivateRows) else X
        if self.schema is not None and X is not None:
            self._check_columns(X)
            check_types(X, as_schema(self.schema).columns)

    def _check_columns(self, X: Any) -> None:
        schema = as_schema(self.schema)
        check_form(X, schema.columns, schema.target_names)

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

    def _labels(self) -> Sequence[Any] | None:
        """Return the declared labels of a classifier."""
        return None

    def _proper(
        self, targets: NDArray[Any], improper: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        return proper_targets(
            targets, improper, is_classifier=is_classifier(self), labels=self._labels()
        )

    def _residuals(self, targets: NDArray[Any], shares: NDArray[np.float64] | None) -> Residuals:
        """Return the residuals of rows, times their shares if there are any."""
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
        cells = self._cells(X)
        for one, bins, scores in zip(cells, self.bins_, self.term_scores_, strict=True):
            total = total + scores[bins[one]]
        for pair, places, scores in zip(
            self.pairs_, self.pair_bins_, self.pair_scores_, strict=True
        ):
            one, other = (of_cells[cells[at]] for at, of_cells in zip(pair, places, strict=True))
            total = total + scores[one, other]
        return np.asarray(total)

    def to_interpret(self) -> Any:
        """Return the model as one of interpret-core, for its plots and explanations.

        It predicts the same, and has ``explain_global``, ``explain_local`` and ``to_json``. It
        shows the same values as this model, at no further cost. Needs the extra ``ebm``.

        Returns
        -------
        DPExplainableBoostingClassifier or DPExplainableBoostingRegressor
            A class of ``interpret.privacy``; with more than two classes the
            ExplainableBoostingClassifier of ``interpret.glassbox``. Do not fit it again: see the
            Notes of this class.
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


def _piece_of(
    estimator: PrivateExplainableBoosting,
    X: Any,
    y: Any,
    weights: NDArray[np.int64] | None = None,
) -> Piece:
    """Return the records of a chunk, whose columns were checked before, by their cells."""
    # Theorem R5: no record decides the type in which others are read.
    labels = estimator._labels()
    targets = np.asarray(y) if labels is None else labels_of_chunk(y, labels)
    shares = None if weights is None else weights / WHOLE
    # A warning of overflow would reveal something about the data.
    with np.errstate(all="ignore"):
        rows, targets = estimator._proper_rows(X, targets, BaseEstimator(), 0)
        terms = zip(estimator._terms, estimator._cells(rows), strict=True)
        cells = [one.astype(np.min_scalar_type(term.n_cells - 1)) for term, one in terms]
        return Piece(cells, estimator._residuals(targets, shares), shares)
