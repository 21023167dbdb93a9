"""Hold out records for validation by a public rule, such as "the newest ones"."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._compat import number_of_samples
from skdptune._formatting import shown, shown_names
from skdptune._validation import NamedArguments, check_kind, check_option, check_share
from skdptune.base._shared import as_table, table_shape
from skdptune.model_selection._running import Quiet, made_up_like
from skdptune.preprocessing._shared import (
    FITS,
    CategoryColumn,
    NumberColumn,
    cells_of_column,
    misfit,
)

COMPARISONS = (">=", ">", "<=", "<", "==", "in")
# Number of made-up records on which a callable is tried.
_N_TRIED = 18


@dataclass(frozen=True)
class HoldOut(NamedArguments):
    """Hold out the records that a public rule selects for validation, such as the newest ones.

    Pass it to a search as `cv`. Whether a record is held out depends on that record only, and on
    no other. "From 2024 on" is such a rule; "the last fifth" is not.

    Parameters
    ----------
    column : str, int or callable
        A column of X: its name, or its position counted from 0. Alternatively a function that
        takes a table with the columns of X and returns True or False for each row. The function is
        called with one row at a time, which can take a millisecond per row. A column is compared
        all at once.
    comparison : {">=", ">", "<=", "<", "==", "in"}, optional
        How the column is compared with `value`.
    value : number, date, str or list, optional
        A date may be written as "2024-01-31"; times with a zone are compared in UTC. Text is
        compared with "==" or "in". "in" needs a list.
    share : float
        The share of the records that you expect the rule to hold out. Take it from public
        knowledge, not from these records: the number of held-out records is secret. Scores are
        noisy sums divided by `share` times the public number of records. If the true share
        differs, the scores of all candidates are scaled alike around the middle of their range.
        This does not harm the choice, but ``best_score_`` is then not the mean. The utilities of
        `NoisyMaximum` and `DoublingThresholdSearchCV` are limited to 1: for these, a share that is
        too large is better than one that is too small.

    See Also
    --------
    DPRandomSearchCV, DPGridSearchCV, DPAdaptiveSearchCV : Searches that accept it as `cv`.

    Notes
    -----
    Theorem T9. Neighbours differ by adding or removing one record.

    The rule must be public: choose it without looking at the records. A record is not held out if
    its cell is missing or cannot be compared, or if the function raises for it or returns neither
    True nor False. The pandas index is not a column, and a function cannot see it.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdptune.model_selection import HoldOut
    >>> visits = pd.DataFrame(
    ...     {"date": ["2023-05-01", "2024-02-01", None], "site": ["B", "A", "B"]}
    ... )
    >>> HoldOut("date", ">=", "2024-01-01", share=0.2).held_out(visits)
    array([False,  True, False])
    >>> HoldOut(lambda rows: rows["site"] == "B", share=0.5).held_out(visits)
    array([ True, False,  True])
    """

    column: str | int | Callable[[Any], Any]
    comparison: str | None = None
    value: Any = None
    _: KW_ONLY
    share: float

    def __post_init__(self) -> None:
        """Validate the rule."""
        check_share(self.share, name="share")
        if not callable(self.column):
            domain = "the name or the position of a column, or a function of a table"
            check_kind(self.column, name="column", kind=str | int, domain=domain)
            check_option(self.comparison, name="comparison", options=COMPARISONS)
            self._wanted()
        elif self.comparison is not None:
            got = shown(self.comparison)
            raise ValueError(f"comparison must be None with a function; got {got}.")

    @property
    def in_words(self) -> str:
        """Description of the rule, as one sentence."""
        if callable(self.column):
            rule = f"of which {getattr(self.column, '__name__', 'a function')} is True"
        else:
            name = self.column if isinstance(self.column, str) else f"column {self.column}"
            values = self.value if self.comparison == "in" else [self.value]
            rule = f"with {name} {self.comparison} {shown_names(values)}"
        return f"Validation: the records {rule}, expected to be {self.share:.3g} of all."

    def held_out(self, X: Any) -> NDArray[np.bool_]:
        """Return which records are held out.

        Parameters
        ----------
        X : array-like
            A table.

        Returns
        -------
        ndarray of bool of shape (n_samples,)

        Notes
        -----
        Theorem T9.
        """
        X = as_table(X)
        self.check_form(X)
        return self.held_out_of_chunk(X)

    def held_out_of_chunk(self, X: Any) -> NDArray[np.bool_]:
        """Return which records of a table are held out, whatever the types of its columns.

        Notes
        -----
        Theorem T9, Theorem R11. A record may decide the types of a chunk.
        """
        if callable(self.column):
            return _answers(self.column, X)
        cells = cells_of_column(self._column_of(X))
        # Theorem R7: the value read from a cell does not depend on any other cell.
        found = [wanted.outcomes(cells) == FITS for wanted in self._wanted()]
        return np.asarray(np.any(found, axis=0))

    def check_form(self, X: Any) -> None:
        """Check that the rule suits the columns of a table and their types; read no cell.

        A function is tried on made-up rows.

        Parameters
        ----------
        X : array-like
        """
        if callable(self.column):
            _check_answers(self.column, X)
            return
        dtype = getattr(self._column_of(X), "dtype", object)
        found = [misfit(wanted, dtype) for wanted in self._wanted()]
        if None not in found:
            raise TypeError(
                f"cv must compare column {shown(self.column)} with a value of its type; got "
                f"{shown(self.value)}, and the column holds {found[0]} (type {dtype})."
            )

    def _wanted(self) -> list[NumberColumn | CategoryColumn]:
        """Return the values of which a cell must match one; raise if none could match."""
        values = self.value if self.comparison == "in" else [self.value]
        is_list = isinstance(values, list | tuple)
        found = [_to_fit(self.comparison, value) for value in values] if is_list else []
        wanted = [each for each in found if each is not None]
        if not wanted or len(wanted) < len(found):
            raise ValueError(
                "value must be a number, a date such as '2024-01-31', with '==' also a string, "
                f"and with 'in' a list; got {shown(self.value)} with {shown(self.comparison)}."
            )
        return wanted

    def _column_of(self, X: Any) -> Any:
        """Return the rule's column of a table, or raise if the table has no such column."""
        names, shape = _names_of(X), table_shape(X) if hasattr(X, "__array__") else ()
        if isinstance(self.column, str) and names.count(self.column) == 1:
            return X[self.column]
        if isinstance(self.column, int) and len(shape) == 2 and 0 <= self.column < shape[1]:
            if hasattr(X, "iloc"):
                return X.iloc[:, self.column]
            return X[names[self.column]] if names else np.asarray(X)[:, self.column]
        raise ValueError(
            f"cv must name a column of X; got {shown(self.column)}, and X has "
            f"{shown_names(names) or 'no names'}, as {shown(X)}. An index is not a column: "
            "X.reset_index() turns it into one."
        )


def _to_fit(comparison: str | None, value: Any) -> NumberColumn | CategoryColumn | None:
    """Return what a cell must match to satisfy a comparison; None if no cell could."""
    cell = np.empty(1, dtype=object)
    cell[0] = value
    largest = sys.float_info.max
    for is_date in (False, True):
        point = float(NumberColumn("", 0.0, 0.0, is_date=is_date).read(cell)[0][0])
        ends = {
            ">=": (point, largest),
            ">": (math.nextafter(point, largest), largest),
            "<=": (-largest, point),
            "<": (-largest, math.nextafter(point, -largest)),
        }
        if not math.isnan(point):
            return NumberColumn("", *ends.get(str(comparison), (point, point)), is_date=is_date)
    word = CategoryColumn("", (value,))
    has_order = comparison not in ("==", "in")
    return None if has_order or word.outcomes(cell)[0] != FITS else word


def _names_of(X: Any) -> list[Any]:
    """Return the column names of a table; empty if it has none."""
    of_array = getattr(getattr(X, "dtype", None), "names", None)
    found = getattr(X, "column_names", getattr(X, "columns", of_array))
    return [] if found is None else list(found)


# Functions of a record --------------------------------------------------------------------------


def _answers(rule: Callable[[Any], Any], X: Any) -> NDArray[np.bool_]:
    """Return for which records a function is True; it sees one record at a time."""
    # Theorem T9: a record for which the function fails is not held out.
    found = np.zeros(number_of_samples(X), dtype=bool)
    # The pandas index would reveal how many records come before this one.
    rows = X.set_axis(np.zeros(found.size, dtype=int)).iloc if hasattr(X, "iloc") else X
    with Quiet():
        for place in range(found.size):
            try:
                answer = np.asarray(rule(copy(rows[place : place + 1])))
                found[place] = answer.size == 1 and _is_true(answer.item())
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException:
                # A library may panic, and a rule may call exit: catch everything.
                continue
    return found


def _is_true(answer: Any) -> bool:
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _check_answers(rule: Callable[[Any], Any], X: Any) -> None:
    """Check that a function returns the same for many made-up rows as for single rows."""
    problems = []
    for with_words in (True, False):
        made = made_up_like(X, _N_TRIED, with_words=with_words)
        if made is None:
            return
        try:
            with Quiet():
                answers = np.ravel(np.asarray(rule(copy(made)), dtype=object))
        except Exception as problem:
            # Text where numbers are expected, or the reverse, as far as dtypes reveal it.
            problems.append(problem)
            continue
        is_suited = answers.size == _N_TRIED and any(isinstance(each, bool) for each in answers)
        if not is_suited or (_answers(rule, made) != [*map(_is_true, answers)]).any():
            raise ValueError(
                "cv must be a function that returns True or False for each row, independently "
                f"of other rows; on {_N_TRIED} made-up rows it did not. Quantiles, ranks and "
                "row numbers depend on other rows."
            )
    if len(problems) == 2:
        raise ValueError(
            "cv must be a function that takes a table of this form; on made-up rows it raised "
            f"{type(problems[0]).__name__}: {problems[0]}"
        ) from problems[0]
