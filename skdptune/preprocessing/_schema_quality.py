"""Noisy counts of the cells of a private table that do not fit its schema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skdptune._compat import number_of_samples
from skdptune._formatting import shown, shown_names
from skdptune._html import box, title
from skdptune._validation import installed
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import (
    GROUPS,
    PUBLIC_SIZE,
    about_unit,
    check_has_records,
    check_length,
    check_target_type,
    persons_of,
    proper_targets,
    shown_shape,
    target_array,
)
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import gaussian_release, laplace_release, noise_for_budget
from skdptune.preprocessing._table import (
    CLIPPED,
    MISSING,
    UNMATCHED,
    CategoryColumn,
    NumberColumn,
    Outcomes,
    UsedColumn,
    cells_of,
    check_form,
    check_types,
    has_names,
    is_missing,
)

if TYPE_CHECKING:
    import pandas as pd

# An assumption stated in reports, from Assumption P0.
PUBLIC_SCHEMA = "the schema of the table (names, ranges and categories of its columns) is public"
KINDS = {UNMATCHED: "unmatched", CLIPPED: "clipped", MISSING: "missing"}
# Probability that noise makes any column of a correct schema look wrong.
_RISK = 0.05
# A column looks wrong if more than this share of its cells does not fit: the first number for
# undeclared cells, the second for declared ones.
_FEW, _MOST = 0.01, 0.5


@dataclass(frozen=True)
class CellCount:
    """A noisy count of the cells of a column that do not fit the schema.

    Attributes
    ----------
    column : str
    kind : {"unmatched", "clipped", "missing"}
    count : float
        The count with noise, limited to the range from 0 to the number of records.
    is_announced : bool
        Whether the schema declares such cells, by ``"missing"`` or ``"other"``.
    hint : str
        What to do if the count is large.
    """

    column: str
    kind: str
    count: float
    is_announced: bool
    hint: str


@dataclass(frozen=True, repr=False)
class SchemaQuality:
    """Noisy counts of cells that do not fit a schema, as returned by `Schema.quality`.

    Attributes
    ----------
    counts : tuple of CellCount
        For each used column and for the target, the numbers of cells that are *unmatched* (not a
        number or date, or in no category), *clipped* (outside of the range) and *missing*.
    n_samples : int
        Number of records, or of persons if the schema names them.
    noise_std : float
        Standard deviation of the noise on each count; public.
    noise_limit : float
        With a probability of 95 %, the noise on all counts is below this number.
    privacy_ : PrivacyReport
        The privacy cost of the counts.

    Notes
    -----
    Theorem R8. A record adds 1 to at most one count of each column. So over ``k`` columns,
    including the target, the counts have an L1 sensitivity of ``k`` and an L2 sensitivity of
    ``sqrt(k)``. Everything shown here depends only on the noisy counts and on public numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdptune.preprocessing import Schema
    >>> people = pd.DataFrame({"age": [30, 400] * 2000, "sector": ["farm", "Office"] * 2000})
    >>> schema = Schema({"age": (0, 120), "sector": ["farm", "office"]})
    >>> schema.quality(people, epsilon=0.1, random_state=0)
    Cells that do not fit the schema, of 4000 records
                 unmatched         clipped         missing
    age         64   1.6 %    1918  47.9 %       4   0.1 %
    sector    2002  50.0 %               -      10   0.2 %
    Each count has noise of standard deviation 28.3; in 19 of 20 releases all noise is below 78.2.
    2 counts are beyond the noise:
    - age: about 47.9 % of the cells are clipped; is the range too narrow, or the unit wrong?
    - sector: about 50.0 % of the cells are unmatched; compare spelling and type with the schema
    """

    counts: tuple[CellCount, ...]
    n_samples: int
    noise_std: float
    noise_limit: float
    privacy_: PrivacyReport

    @property
    def suspects(self) -> list[CellCount]:
        """Counts that are too large for a correct schema, beyond what noise explains.

        For undeclared cells, this means more than 1 % of the records. For cells in no category, if
        the schema has ``"other"``, it means more than half of the records.
        """
        return [each for each in self.counts if self._is_suspect(each)]

    def to_frame(self) -> pd.DataFrame:
        """Return the counts as a DataFrame with one row per count.

        Returns
        -------
        DataFrame
            The columns are "column", "kind", "count", "share" (of the records), "noise_std",
            "announced" (whether the schema declares such cells) and "suspect".
        """
        with installed("to_frame needs"):
            import pandas as pd
        rows = [
            {
                "column": each.column,
                "kind": each.kind,
                "count": each.count,
                "share": each.count / self.n_samples,
                "noise_std": self.noise_std,
                "announced": each.is_announced,
                "suspect": self._is_suspect(each),
            }
            for each in self.counts
        ]
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        """Return the counts as a table, followed by what looks wrong."""
        rows = self._rows()
        width = max(map(len, rows))
        lines = [self._heading(), " " * width + "".join(f"{kind:>16}" for kind in KINDS.values())]
        for name, cells in rows.items():
            lines.append(f"{name:<{width}}" + "".join(f"{cell:>16}" for cell in cells))
        return "\n".join([*lines, *self._sentences()])

    def __repr__(self) -> str:
        """Return the text that is printed, so that notebooks and terminals show the table."""
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{kind}</th>" for kind in ("", *KINDS.values()))
        rows = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
            for name, cells in self._rows().items()
        )
        lines = "".join(f"<div>{escape(line)}</div>" for line in self._sentences())
        table = f'<table style="text-align:right"><tr>{head}</tr>{rows}</table>'
        return box(title(escape(self._heading())) + table + lines, width="60em")

    def _is_suspect(self, each: CellCount) -> bool:
        if each.is_announced and each.kind == KINDS[MISSING]:
            return False
        share = _MOST if each.is_announced else _FEW
        return each.count - self.noise_limit > share * self.n_samples

    def _heading(self) -> str:
        text = f"Cells that do not fit the schema, of {self.n_samples} records"
        return about_unit(text, self.privacy_.neighbouring)

    def _rows(self) -> dict[str, list[str]]:
        """Return the counts of each column as text."""
        counts = {(each.column, each.kind): each.count for each in self.counts}
        found: dict[str, list[str]] = {each.column: [] for each in self.counts}
        for name, cells in found.items():
            for kind in KINDS.values():
                count = counts.get((name, kind))
                share = 0.0 if count is None else 100.0 * count / self.n_samples
                cells.append("-" if count is None else f"{count:.0f} {share:5.1f} %")
        return found

    def _sentences(self) -> list[str]:
        lines = [
            f"Each count has noise of standard deviation {self.noise_std:.3g}; in 19 of 20 "
            f"releases all noise is below {self.noise_limit:.3g}."
        ]
        if self.noise_limit >= (1.0 - _FEW) * self.n_samples:
            return [*lines, "The noise hides everything here: use a larger epsilon."]
        suspects = self.suspects
        if not suspects:
            return [*lines, "No count is beyond the noise."]
        verb = "count is" if len(suspects) == 1 else "counts are"
        lines.append(f"{len(suspects)} {verb} beyond the noise:")
        for each in suspects:
            share = 100.0 * each.count / self.n_samples
            what = f"about {share:.1f} % of the cells are {each.kind}"
            lines.append(f"- {each.column}: {what}; {each.hint}")
        return lines


class SchemaQualityRelease(PrivateEstimatorMixin):
    """The release made by `Schema.quality`, recorded in ledgers like a fit.

    Parameters
    ----------
    schema : Schema
    epsilon, delta, random_state, ledger
        See `Schema.quality`.
    """

    def __init__(
        self,
        schema: Any,
        epsilon: float,
        delta: float,
        random_state: Any = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.ledger = ledger

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the privacy cost of the counts, which depends on the budget and the schema."""
        return self._noise()[2]

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions of the guarantee."""
        return (PUBLIC_SIZE, PUBLIC_SCHEMA)

    def _input_refusal(self, form: str) -> str | None:
        return None if form == GROUPS else super()._input_refusal(form)

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Count the cells of a table whose form was already checked, and add noise.

        Notes
        -----
        Theorem R8, Theorem P14.
        """
        persons = persons_of(groups, X)
        n_samples = number_of_samples(X) if persons is None else persons.size
        shares = None if persons is None else persons.shares_of_all
        noise, ratio, profile = self._noise()
        self._warn_of_large_delta(n_samples)
        cells = cells_of(X, self.schema.columns)
        found = [
            (column, column.outcomes(each))
            for column, each in zip(self.schema.used, cells, strict=True)
        ]
        if y is not None:
            targets = split_targets(self.schema, y)
            for column, each in zip(self.schema.targets, targets, strict=True):
                found.append((column, outcomes_of_targets(column, each)))
        kinds = [
            (column, kind, outcomes)
            for column, outcomes in found
            for kind in KINDS
            if kind != CLIPPED or isinstance(column, NumberColumn)
        ]
        exact = np.array([_count(of == kind, shares) for _, kind, of in kinds])
        # Theorem R8: a record adds to at most one count of each column.
        is_gaussian = noise == "gaussian"
        sensitivity = math.sqrt(len(found)) if is_gaussian else float(len(found))
        release = gaussian_release if is_gaussian else laplace_release
        scale = ratio * sensitivity
        noisy = release(exact, sensitivity, scale, self.random_state)
        counts = (np.clip(noisy, 0.0, n_samples) + 0.0).tolist()
        shape = stats.norm if is_gaussian else stats.laplace
        self.privacy_ = self._make_report(profile, self.privacy_assumptions(n_samples), persons)
        self.quality_ = SchemaQuality(
            tuple(
                CellCount(
                    column.name,
                    KINDS[kind],
                    count,
                    column.announces(kind),
                    _hint(column, kind, is_target=column in self.schema.targets),
                )
                for (column, kind, _), count in zip(kinds, counts, strict=True)
            ),
            n_samples,
            scale if is_gaussian else math.sqrt(2.0) * scale,
            # By the union bound over all counts.
            scale * float(shape.isf(_RISK / len(kinds))),
            self.privacy_,
        )
        return self

    def _noise(self) -> tuple[str, float, PrivacyProfile]:
        """Return the noise with the smaller variance, its scale per sensitivity, and its cost."""
        epsilon, delta = self._checked_budget()
        n_columns = len(self.schema.used) + len(self.schema.targets)
        ratio, profile = noise_for_budget(epsilon, 0.0)
        if delta > 0.0:
            gaussian, cost = noise_for_budget(epsilon, delta)
            if gaussian < math.sqrt(2.0 * n_columns) * ratio:
                return "gaussian", gaussian, cost
        return "laplace", ratio, profile

    def _check_parameters(self) -> None:
        self._checked_budget()


def _count(is_counted: NDArray[np.bool_], shares: NDArray[np.float64] | None) -> float:
    """Return a number of rows, or of persons of whom each row has a share."""
    return float(np.count_nonzero(is_counted) if shares is None else shares[is_counted].sum())


def checked_table(schema: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Separate a table from its targets, or raise for their form; no cell is read."""
    names = list(schema.target_names)
    held = [name for name in names if has_names(X) and name in X.columns]
    if held:
        if y is not None:
            raise ValueError(f"y must be left out if X holds the target {shown(held[0])}.")
        if held != names:
            raise ValueError(f"X must hold all targets or none; got {shown_names(held)} alone.")
        y = X[names[0]] if len(names) == 1 else X[names]
        X = X[[name for name in X.columns if name not in names]]
    check_form(X, schema.columns)
    check_types(X, schema.columns)
    n_samples = number_of_samples(X)
    check_has_records(n_samples)
    if y is None:
        return X, None
    if not names:
        raise ValueError("y must be left out if the schema has no target.")
    labels = schema.target_labels
    check_target_type(y, labels, is_classifier=labels is not None)
    n_targets = split_targets(schema, y)[0].shape[0]
    if n_targets != n_samples and schema.person is not None:
        # The number of rows of persons is secret (Theorem P14).
        raise ValueError("y must be as long as X; got inconsistent numbers of samples.")
    check_length(n_targets, n_samples)
    return X, y


def split_targets(schema: Any, y: Any) -> list[NDArray[Any]]:
    """Return the cells of each target of a schema, or raise for their form."""
    check_target_names(schema, y)
    n_targets = len(schema.targets)
    targets = target_array(y, None if n_targets > 1 else 1)
    if n_targets == 1:
        return [targets]
    if targets.ndim != 2 or targets.shape[1] != n_targets:
        raise ValueError(
            f"y must have a column for each of the schema's {n_targets} targets; got shape "
            f"{shown_shape(targets.shape)}."
        )
    return list(targets.T)


def check_target_names(schema: Any, y: Any) -> None:
    """Raise if several targets have the names of the schema's, but in another order."""
    names, wanted = list(getattr(y, "columns", ())), list(schema.target_names)
    if len(wanted) > 1 and set(names) & set(wanted) and names != wanted:
        raise ValueError(f"y must have the columns {shown_names(wanted)}, in this order.")


def outcomes_of_targets(column: UsedColumn, y: Any) -> Outcomes:
    """Return for each target whether it fits, as read by estimators with the schema's labels.

    Notes
    -----
    Theorem R5, Theorem R8.
    """
    targets = target_array(y)
    labels = list(column.categories) if isinstance(column, CategoryColumn) else None
    nothing = np.zeros(targets.shape[0], dtype=bool)
    values, improper = proper_targets(
        targets, nothing, is_classifier=labels is not None, labels=labels
    )
    found = np.zeros(targets.shape[0], dtype=np.intp)
    if isinstance(column, NumberColumn):
        found[(values < column.low) | (values > column.high)] = CLIPPED
    found[improper] = [
        MISSING if is_missing(each) else UNMATCHED for each in list(targets[improper])
    ]
    return found


def _hint(column: UsedColumn, kind: int, *, is_target: bool) -> str:
    """Return advice about the cells of a column that do not fit."""
    if kind == CLIPPED:
        return "is the range too narrow, or the unit wrong?"
    if kind == MISSING:
        lost = "a record without a target has no effect on a fit"
        return lost if is_target else "declare them by 'missing': True"
    if isinstance(column, NumberColumn):
        return f"they are not {'dates' if column.is_date else 'numbers'}"
    return "compare spelling and type with the schema"
