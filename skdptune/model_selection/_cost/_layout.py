"""Division of the records in a search, described by public numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import (
    BaseCrossValidator,
    BaseShuffleSplit,
    KFold,
    ShuffleSplit,
)

from skdptune._formatting import shown
from skdptune._validation import check_integer, check_option, check_real, check_share
from skdptune.accounting._shared import VARIANTS
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._hold_out import HoldOut
from skdptune.model_selection._running import expected_size

# Fractions for tuning, and the number of records that each must leave. With fewer records,
# candidates are compared by noise, or by how well they suit few records. The largest fraction
# applies if there are few.
_FRACTIONS = {0.05: 1000, 0.1: 1000, 0.2: 200}
_FEWEST = 4


@dataclass(frozen=True)
class Layout:
    """How the records are divided, with expected sizes.

    Attributes
    ----------
    n_samples : int
        The public number of records.
    n_features : int or None
        Number of columns, if known.
    validation : float
        Probability that a record is held out for validation; 0 with folds or public validation
        data. With a rule, the share that it is expected to hold out.
    folds : int
        Number of folds; 0 for none.
    public : bool
        Whether validation data are public.
    tuning : float or None
        Probability that a record is used for tuning; None for all that are not in validation.
    variant : {1, 2}
        Whether the final fit leaves out the tuning records.
    final : bool
        Whether there is a final fit.
    is_random : bool
        Whether the number of records is itself a public constant in place of a secret number.
    replaces : bool
        Whether neighbours differ by replacing a record.
    by_rule : bool
        Whether a public rule for each record decides which ones are held out for validation.
    """

    n_samples: int
    n_features: int | None
    validation: float
    folds: int
    public: bool
    tuning: float | None
    variant: int
    final: bool
    is_random: bool = False
    replaces: bool = False
    by_rule: bool = False

    @property
    def train_share(self) -> float:
        """Expected share of the records on which one fit of a run is trained."""
        if self.tuning is not None:
            share = self.tuning
        else:
            share = 1.0 - self.validation
        return share * (1.0 - 1.0 / self.folds) if self.folds else share

    @property
    def n_train(self) -> int:
        """Public constant for the number of records of one fit of a run."""
        share = self.train_share
        if self.by_rule:
            # Theorem T9: a rule may hold out nothing, whatever is expected.
            share /= 1.0 - self.validation
        return expected_size(self.n_samples, share)

    @property
    def chance_of_nothing(self) -> float:
        """Probability that some fit has no record, with one record less than `n_samples`.

        A fit without records may fail, which no noise hides, so its probability is paid for as
        delta. With a rule there is nothing to pay for: an estimator that fails without records is
        refused.

        Notes
        -----
        Theorem F7, Theorem T9.
        """
        if self.by_rule:
            return 0.0
        others = max(self.n_samples - 1, 1)
        of_runs = max(self.folds, 1) * (1.0 - self.train_share) ** others
        return of_runs + (1.0 - self.final_share) ** others if self.final else of_runs

    @property
    def train_is_random(self) -> bool:
        """Whether the number of records of such a fit is secret."""
        return self.is_random or self.train_share < 1.0

    @property
    def score_share(self) -> float:
        """Expected share of the records that a score averages."""
        if self.folds:
            return 1.0 if self.tuning is None else self.tuning
        return self.validation

    @property
    def n_score(self) -> int:
        """Public constant for the number of records of a score."""
        return expected_size(self.n_samples, self.score_share)

    @property
    def n_score_of_fold(self) -> int:
        """Public constant for the number of records of the score of one fold."""
        return expected_size(self.n_samples, self.score_share / max(self.folds, 1))

    def sensitivity(self, scorer: BoundedScorer, n_score: int | None = None) -> float:
        """Return the largest change of a score by one record, given its number of records."""
        # Theorem F8: replacing a record means removing one and adding one.
        n_score = self.n_score if n_score is None else n_score
        return scorer.sensitivity(n_score) * (2.0 if self.replaces else 1.0)

    @property
    def final_share(self) -> float:
        """Expected share of the records on which the returned model was trained."""
        if not self.final:
            return self.train_share
        return 1.0 - self.tuning if self.tuning is not None and self.variant == 1 else 1.0

    @property
    def uses(self) -> dict[str, tuple[float, float]]:
        """Each use of the records with its part of them: an interval in [0, 1] of a random order.

        Validation records come after those on which candidates are fitted, and before those that
        only the final fit uses. The parts of two uses overlap if records are used for both.
        """
        others = 1.0 - self.validation if self.tuning is None else self.tuning
        uses = {"fits of candidates": (0.0, others)}
        if self.folds:
            uses["scores"] = uses["fits of candidates"]
        elif self.validation > 0.0:
            uses["scores"] = (others, min(others + self.validation, 1.0))
        if self.final:
            left_out = self.tuning if self.variant == 1 else None
            uses["final fit"] = (left_out or 0.0, 1.0)
        return uses

    @property
    def n_final(self) -> int:
        """Public constant for the number of records of the returned model's fit."""
        if not self.final:
            return self.n_train
        # Theorem T9: if a rule holds out most records, very few are drawn for tuning.
        return expected_size(self.n_samples, 1.0 if self.by_rule else self.final_share)

    @property
    def final_is_random(self) -> bool:
        """Whether the number of records of the final fit is secret."""
        return self.is_random or self.final_share < 1.0


def make_layout(
    n_samples: int,
    n_features: int | None,
    *,
    cv: Any,
    public: bool,
    tuning_fraction: Any,
    variant: int,
    refit: Any,
    is_random: bool,
    replaces: bool = False,
) -> Layout:
    """Return the layout for a search's parameters, or raise."""
    is_table = isinstance(n_samples, list | tuple) or bool(getattr(n_samples, "shape", ()))
    hint = "For a DataFrame write plan(*df.shape)." if is_table else ""
    check_integer(n_samples, name="n_samples", lower=1, hint=hint)
    if n_features is not None:
        check_integer(n_features, name="n_features", lower=1)
    check_option(variant, name="variant", options=VARIANTS)
    if not (refit is True or refit is False or (isinstance(refit, str) and refit == "winner")):
        raise ValueError(f"refit must be 'winner', True or False; got {shown(refit)}.")
    validation, folds = (0.0, 0) if public else split_of(cv)
    by_rule = isinstance(cv, HoldOut) and not public
    if replaces and by_rule:
        # Theorem T9: a record that is replaced may move to the other part.
        raise ValueError(
            "cv must be a fraction or a number of folds for this estimator; got HoldOut. Its "
            "guarantee is about replacing one of a public number of records, and a replaced "
            "record may move to the other part, so a fit may have one record more or fewer."
        )
    if replaces:
        _check_no_sampling(tuning_fraction, is_random)
        tuning_fraction = None
    tuning = _tuning_fraction(tuning_fraction, n_samples, validation)
    if folds and tuning is None and refit == "winner":
        raise ValueError(
            "refit must be True or False with folds, or without folds be 'winner'; got "
            f"'winner' and cv={folds}: a candidate has one model per fold, and none is fitted "
            "to all records."
        )
    if folds > n_samples:
        raise ValueError(
            f"cv must be at most the number of records; got {folds} folds of {n_samples}."
        )
    final = refit is True or (tuning is not None and refit == "winner")
    layout = Layout(
        n_samples,
        n_features,
        validation,
        folds,
        public,
        tuning,
        variant,
        final,
        is_random,
        replaces,
        by_rule,
    )
    _check_sizes(layout)
    return layout


def _check_no_sampling(wish: Any, is_random: bool) -> None:
    """Refuse to tune on a part of the data under a guarantee for replacing a record."""
    # Theorem F8: such a guarantee does not improve by sampling.
    if is_random or not (wish is None or (isinstance(wish, str) and wish == "auto")):
        raise ValueError(
            f"tuning_fraction must be None for this estimator; got {shown(wish)}. Its guarantee "
            "is about replacing one of a public number of records, and is not strengthened by "
            "sampling."
        )


def split_of(cv: Any) -> tuple[float, int]:
    """Return the share of records for validation and the number of folds, one of them 0.

    `HoldOut` provides a share. Of scikit-learn's splitters, those that treat records alike are
    accepted. Their random draws are not used: each record is placed by an independent draw.
    """
    hint = (
        "A fraction holds records out for validation, an integer asks for folds; HoldOut holds "
        "out those that a public rule names, such as the newest."
    )
    if isinstance(cv, HoldOut):
        return float(cv.share), 0
    if isinstance(cv, BaseCrossValidator | BaseShuffleSplit):
        return _split_of_splitter(cv, hint)
    if isinstance(cv, bool) or not isinstance(cv, int | float):
        raise TypeError(
            f"cv must be a fraction or a number of folds; got {type(cv).__name__}. {hint} Give "
            "public validation data to fit as X_val and y_val."
        )
    if isinstance(cv, int) or cv >= 2.0:
        return 0.0, check_integer(cv, name="cv", lower=2, hint=hint)
    return check_share(cv, name="cv", hint=hint), 0


def _split_of_splitter(cv: Any, hint: str) -> tuple[float, int]:
    if type(cv) is KFold:
        return 0.0, int(cv.n_splits)
    if type(cv) is ShuffleSplit and cv.n_splits == 1 and cv.train_size is None:
        # None means scikit-learn's default of a tenth.
        share = 0.1 if cv.test_size is None else cv.test_size
        if isinstance(share, float) and share < 1.0:
            return split_of(share)
    raise ValueError(
        "cv must be KFold, ShuffleSplit with one split and a test_size, a fraction or a number "
        f"of folds; got {shown(cv)}. The part to which a record belongs must not depend on "
        f"other records, their labels or their groups. {hint}"
    )


def _tuning_fraction(wish: Any, n_samples: int, validation: float) -> float | None:
    if wish is None:
        return None
    if isinstance(wish, str):
        check_option(wish, name="tuning_fraction", options=("auto",))
        enough = [q for q, least in _FRACTIONS.items() if q * n_samples >= least]
        return enough[0] if enough and enough[0] + validation < 1.0 else None
    return check_real(
        wish,
        name="tuning_fraction",
        lower=0.0,
        upper=1.0 - validation,
        lower_open=True,
        upper_open=True,
        hint=(
            "Together with the validation fraction it must leave records for the fits; None "
            "tunes on all data."
        ),
    )


def _check_sizes(layout: Layout) -> None:
    sizes = {"training": layout.n_samples * layout.train_share}
    if not layout.public:
        sizes["validation"] = layout.n_samples * layout.score_share
    if layout.final:
        sizes["the final fit"] = layout.n_samples * layout.final_share
    for use, size in sizes.items():
        if size < _FEWEST:
            # As a float, since a tiny fraction would overflow integers here.
            needed = float(np.ceil(_FEWEST * layout.n_samples / size))
            raise ValueError(
                f"n_samples must be at least {needed:.15g} to leave some records for {use}; got "
                f"n_samples={layout.n_samples}, of which {size:.3g} are expected there."
            )
