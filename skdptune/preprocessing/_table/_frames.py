"""Columns of a table as arrays of cells, found only by their names or positions.

Theorem R7: errors depend only on names, shapes and types of columns. This module also reads public
samples and describes their columns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any

import numpy as np
from scipy import sparse

from skdptune._formatting import nearest_name, shown, shown_names
from skdptune.base._shared import mixes_text, table_of, table_shape
from skdptune.preprocessing._table._columns import (
    CLIPPED,
    FITS,
    LENGTHS,
    MISSING,
    MOMENTS,
    NUMBERS,
    NUMERIC,
    SPANS,
    TIMES,
    UNMATCHED,
    CategoryColumn,
    Cells,
    Column,
    DroppedColumn,
    NumberColumn,
    Outcomes,
    UsedColumn,
    as_cells,
    day_of,
    days_of,
    key_of,
    listed,
    number_of,
    numbers_of,
)

# Strict parsing of a user's descriptions of columns: all mistakes are listed at once ------------

_KEYS = ("type", "range", "categories", "missing", "other", "scale")
_TYPES = ("number", "integer", "date", "category", "boolean")
_BOOLEAN = ("boolean", "bool", bool)
_TEXTS = ("text", "id", "string", str)
_FORMS = (
    "a range such as (0, 120), categories such as ['farm', 'office'], 'boolean', 'drop', or a "
    "dict with 'range' or 'categories'"
)
# At most this many problems are listed: a column passed instead of a list has one in each row.
_MOST_LINES = 40
# At most this many equal categories are named: more of them look like the cells of a column.
_MOST_PAIRS = 3
_NO_TEXT = (
    "free text and identifiers have no public range: set the column to 'drop', or turn it into "
    "numbers first, with a step that treats each record separately, such as HashingVectorizer"
)


class Problems(list[str]):
    """A list of problems, one per line."""

    def say(self, subject: Any, problem: str) -> None:
        """Add a problem of a column."""
        self.append(f"{subject}: {problem}")

    def check(self, head: str) -> None:
        """Raise ValueError with all problems, if there are any."""
        if self:
            lines = "".join(f"\n- {line}" for line in self[:_MOST_LINES])
            if len(self) > _MOST_LINES:
                lines += f"\n- and {len(self) - _MOST_LINES} more"
            raise ValueError(f"{head}; {len(self)} problem{'s' * (len(self) > 1)}:{lines}")


def parse_columns(columns: Any, problems: Problems) -> list[Column]:
    """Return the valid columns among those that a mapping describes."""
    if not isinstance(columns, Mapping) or not columns:
        problems.append(f"columns must be a dict from names to {_FORMS}; got {shown(columns)}")
        return []
    found: list[Column] = []
    for name, given in columns.items():
        if not isinstance(name, str):
            advice = "names of columns must be strings; use df.columns.astype(str)"
            problems.say(shown(name), advice)
            continue
        if _is_word(given, "drop"):
            found.append(DroppedColumn(name))
            continue
        column = parse_column(name, given, problems)
        if column is not None:
            found.append(column)
    if found and all(isinstance(column, DroppedColumn) for column in found) and not problems:
        problems.append("columns must not all be dropped: no feature would be left")
    return found


def parse_target(given: Any, problems: Problems) -> UsedColumn | tuple[UsedColumn, ...] | None:
    """Return the target, or several, from a description; None if it is missing or invalid."""
    if given is None:
        return None
    if isinstance(given, list | tuple) and any(
        isinstance(entry, Mapping | list | tuple) for entry in given
    ):
        # Its entries are descriptions of columns, and no categories.
        names = (f"target_{number}" for number in range(len(given)))
        found = [_target(*pair, problems) for pair in zip(names, given, strict=True)]
        if len(given) == 1:
            problems.say("target", "a list must describe two targets or more; got one")
        for column in found:
            if column is not None and not isinstance(column, NumberColumn):
                problems.say(column.name, "each of several targets must be a range of numbers")
        return tuple(column for column in found if column is not None)
    return _target("target", given, problems)


def _target(default: str, given: Any, problems: Problems) -> UsedColumn | None:
    named = dict(given) if isinstance(given, Mapping) else None
    name = default if named is None else named.pop("name", default)
    if not isinstance(name, str):
        problems.say("target", f"its name must be a string; got {shown(name)}")
        return None
    if named is None and _is_word(given, "drop"):
        problems.say(name, f"a target must be {_FORMS}; got 'drop'")
        return None
    for key in ("missing", "other", "scale"):
        if named and named.get(key):
            problems.say(name, f"{shown(key)} has no meaning for a target; leave it out")
    labels = given if named is None else named.get("categories")
    if isinstance(labels, list | tuple | np.ndarray) and len(labels) == 1:
        problems.say(name, "a target must have two labels or more; got one")
        return None
    column = parse_column(name, given if named is None else named, problems)
    if isinstance(column, NumberColumn) and column.is_date:
        problems.say(name, "a target must be numbers or categories; turn dates into days")
    if mixes_text(getattr(column, "categories", ())):
        problems.say(name, "labels must be all text or all numbers")
    return column


def parse_column(name: str, given: Any, problems: Problems) -> UsedColumn | None:
    """Return a column from its description, or None if it is invalid."""
    n_before = len(problems)
    settings = _as_settings(name, given, problems)
    if settings is None:
        return None
    unknown = [key for key in settings if key not in _KEYS]
    for key in unknown:
        problems.say(
            name, f"unknown key {shown(key)}{_meant(key, _KEYS)}; known are {shown_names(_KEYS)}"
        )
    column = _column_of(name, settings, problems)
    return column if len(problems) == n_before else None


def _column_of(name: str, settings: dict[str, Any], problems: Problems) -> UsedColumn | None:
    kind = settings.get("type")
    if _is_word(kind, *_BOOLEAN):
        _refuse_keys(name, settings, ("range", "categories", "scale"), "a boolean", problems)
        return _category(name, {**settings, "categories": [False, True]}, problems)
    if _is_word(kind, *_TEXTS):
        problems.say(name, _NO_TEXT)
        return None
    if kind is not None and not _is_word(kind, *_TYPES):
        problems.say(
            name, f"type must be {shown_names(_TYPES)}; got {shown(kind)}{_meant(kind, _TYPES)}"
        )
        return None
    if ("range" in settings) == ("categories" in settings):
        got = "both" if "range" in settings else "neither"
        problems.say(name, f"must have either 'range' or 'categories'; got {got}")
        return None
    if "range" in settings:
        if _is_word(kind, "category"):
            problems.say(name, "a category must have 'categories'; got 'range'")
        _refuse_keys(name, settings, ("other",), "a range, whose values are clipped,", problems)
        return _number(name, settings, problems)
    if _is_word(kind, "number", "integer", "date"):
        problems.say(name, f"a {kind} must have 'range'; got 'categories'")
    _refuse_keys(name, settings, ("scale",), "categories", problems)
    return _category(name, settings, problems)


def _as_settings(name: str, given: Any, problems: Problems) -> dict[str, Any] | None:
    """Return the description of a column as a dict, also if it was given in a short form."""
    if isinstance(given, Mapping):
        return dict(given)
    if _is_word(given, *_BOOLEAN, *_TEXTS):
        return {"type": given}
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if _is_pair_of_words(given):
        low, high = map(number_of, given)
        problems.say(
            name,
            f"a tuple must hold two numbers or dates; got {shown(given)}. For a range "
            f"write ({low:.15g}, {high:.15g}), for categories a list",
        )
        return None
    if isinstance(given, tuple) and len(given) == 2 and sum(map(_is_date, given)) == 1:
        problems.say(
            name,
            f"a tuple must hold two numbers or dates; got {shown(given)}, of which one is a date. "
            "For categories write a list",
        )
        return None
    if isinstance(given, list | tuple) and len(given):
        # Two numbers or dates are the ends of a range, and not categories.
        is_range = len(given) == 2 and (all(map(_is_number, given)) or all(map(_is_date, given)))
        return {"range" if is_range else "categories": list(given)}
    problems.say(name, f"must be {_FORMS}; got {shown(given)}")
    return None


def _is_pair_of_words(given: Any) -> bool:
    """Return whether a value looks like the ends of a range, written as strings."""
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and any(isinstance(end, str) for end in given)
        and all(isinstance(end, str) or _is_number(end) for end in given)
        and not any(math.isnan(number_of(end)) for end in given)
    )


def _is_date(value: Any) -> bool:
    # Strings that are numbers, such as "2020", are not meant as dates.
    return not math.isnan(day_of(value)) and math.isnan(number_of(value))


def _number(name: str, settings: Mapping[str, Any], problems: Problems) -> UsedColumn | None:
    ends = settings["range"]
    scale = settings.get("scale", "linear")
    if not _is_word(scale, "linear", "log"):
        problems.say(name, f"scale must be 'linear' or 'log'; got {shown(scale)}")
    gaps, has_gaps = _gaps(name, settings, problems)
    is_sequence = isinstance(ends, list | tuple | np.ndarray) and len(ends) == 2
    got = shown(tuple(ends) if is_sequence else ends)
    # Times are strings, or objects such as pandas creates.
    is_date = is_sequence and not any(_is_number(end) for end in ends)
    if is_date != _is_word(settings.get("type"), "date") and "type" in settings:
        problems.say(name, f"range must suit the type {shown(settings['type'])}; got {got}")
        return None
    read = day_of if is_date else number_of
    low, high = (read(end) for end in ends) if is_sequence else (math.nan, math.nan)
    if not (low < high and math.isfinite(low) and math.isfinite(high)):
        kind = "dates" if is_date else "finite numbers"
        problems.say(
            name,
            f"range must be two {kind}, the first smaller; got {got}. If a number has no "
            "natural bounds, choose some: values are clipped to them",
        )
        return None
    column = NumberColumn(name, low, high, _is_word(scale, "log"), is_date, gaps, has_gaps)
    if column.is_log and (low < 0.0 or is_date):
        problems.say(name, f"scale 'log' needs a range of numbers from 0 or above; got {got}")
        return None
    if not _is_wide(column):
        problems.say(name, f"range must be wider than rounding errors; got {got}")
    return column


def _is_wide(column: NumberColumn) -> bool:
    try:
        with np.errstate(all="ignore"):
            ends = column.shares(np.array([column.low, column.high]))
    except ZeroDivisionError:
        return False
    return ends.tolist() == [0.0, 1.0]


def _category(name: str, settings: Mapping[str, Any], problems: Problems) -> UsedColumn | None:
    categories = settings["categories"]
    if isinstance(categories, np.ndarray):
        categories = categories.tolist()
    if isinstance(categories, str) or not isinstance(categories, Sequence) or not len(categories):
        problems.say(
            name, f"categories must be a list of strings or numbers; got {shown(categories)}"
        )
        return None
    other = settings.get("other", False)
    if not isinstance(other, bool):
        problems.say(name, f"other must be True or False; got {shown(other)}")
    gaps, has_gaps = _gaps(name, settings, problems)
    seen: dict[Any, str] = {}
    same: list[str] = []
    for place, value in enumerate((*categories, *gaps)):
        is_gap = place >= len(categories)
        where = f"missing[{place - len(categories)}]" if is_gap else f"categories[{place}]"
        key = key_of(value)
        if key is None:
            if not is_gap:
                # These cannot be a record's value; other objects might be.
                is_missing = value is None or isinstance(value, str | float)
                got = shown(value) if is_missing else type(value).__name__
                problems.say(
                    name,
                    f"{where} must be a string or a number; got {got}. Declare missing values "
                    "by 'missing': True",
                )
        elif key in seen:
            same.append(f"{seen[key]} and {where} are the same to the encoder")
        else:
            seen[key] = where
    if len(same) > _MOST_PAIRS:
        # Do not reveal which cells of a private column are equal.
        same = [f"categories must be named once each; got {len(categories)} with repetitions"]
    for each in same:
        problems.say(name, each)
    boolean = _is_word(settings.get("type"), *_BOOLEAN)
    categories = tuple(map(_python, categories))
    # A single category is only informative compared to others.
    if len(categories) == 1 and not (other or has_gaps):
        problems.say(
            name, "a single category needs 'other' or 'missing': True; otherwise 'drop' the column"
        )
    return CategoryColumn(name, categories, gaps, has_gaps, bool(other), boolean)


def _gaps(
    name: str, settings: Mapping[str, Any], problems: Problems
) -> tuple[tuple[Any, ...], bool]:
    """Return the values that stand for missing ones, and whether values may be missing at all."""
    given = settings.get("missing", False)
    if isinstance(given, bool):
        return (), given
    values = given if isinstance(given, list | tuple) else [given]
    if not values or not all(isinstance(v, str | date) or _is_number(v) for v in values):
        problems.say(
            name,
            "missing must be True, False, or the mark of missing values, such as '?'; got "
            f"{shown(given)}",
        )
        return (), True
    return tuple(map(_python, values)), True


def _refuse_keys(
    name: str, settings: Mapping[str, Any], keys: Sequence[str], what: str, problems: Problems
) -> None:
    for key in keys:
        if key in settings and settings[key] not in (False, None):
            problems.say(name, f"{shown(key)} has no meaning for {what}; leave it out")


def _python(value: Any) -> Any:
    """Return a value in a form that JSON can store."""
    if isinstance(value, date):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_word(value: Any, *words: Any) -> bool:
    """Return whether a value is one of some strings, without comparing arbitrary objects."""
    return isinstance(value, str | type) and value in words


def _meant(word: Any, known: Sequence[str]) -> str:
    near = nearest_name(word, known)
    return f" (did you mean {near}?)" if near else ""


# The content of a column, by the class of cells that its type implies; the first match counts.
_WHAT: Mapping[str, tuple[type, ...]] = {
    "durations": LENGTHS,
    "dates": MOMENTS,
    "times of day": (time,),
    "numbers": NUMERIC,
    "words": (str, bytes),
    "lists": (list, tuple, np.ndarray),
    "structs": (dict,),
}
_NAMED = {"Period": "periods", "Interval": "intervals"}
_READ_AS = {"a number": ("numbers", "words"), "a date": ("dates", "words")}
_READ_AS["a category"] = _READ_AS["a number"]
_DATES = "describe dates by a range of dates, such as ('1990-01-01', '2030-01-01')"
_TO_WORDS = "for categories convert it to text with .astype(str)"
_OTHERWISE = "set it to 'drop', or convert it to numbers or text"
# Advice, by the content of a column and what the schema expects.
_HINTS = {
    ("durations", "a number"): "convert it to numbers with .dt.total_seconds()",
    ("dates", "a number"): _DATES,
    ("dates", "a category"): f"{_DATES}; {_TO_WORDS}",
    ("periods", "a number"): f"convert it to dates with .dt.to_timestamp(), and {_DATES}",
    ("periods", "a date"): "convert it to dates with .dt.to_timestamp()",
    ("periods", "a category"): _TO_WORDS,
    ("intervals", "a category"): _TO_WORDS,
    ("numbers", "a number"): "give the range in the units of the column",
    ("numbers", "a date"): "convert it to dates with pandas.to_datetime(column, unit=...)",
    ("numbers", "a category"): (
        "declare the numbers, such as {'categories': [0, 1]}, or map them to the categories of "
        "the schema. If the column is empty, use .astype(object)"
    ),
    ("categories", "a number"): "convert them to numbers, or declare them as categories",
    ("categories", "a date"): "convert them to dates with pandas.to_datetime(column)",
    ("categories", "a category"): "compare them with the schema: spelling, capitals, language",
}


def has_names(X: Any) -> bool:
    """Return whether all columns of a table have strings as names."""
    return hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)


def check_form(X: Any, columns: Sequence[Column], targets: Collection[str] = ()) -> None:
    """Raise unless a table has the columns of a schema; no cell is read.

    Parameters
    ----------
    X : DataFrame, ndarray or list of rows
        Columns without names are in the order of the schema.
    columns : sequence of Column
    targets : collection of str, optional
        Names of targets, which must not be among the columns.

    Notes
    -----
    Theorem R7.
    """
    if hasattr(X, "collect_schema") and not hasattr(X, "__len__"):
        raise TypeError(
            f"X must be a DataFrame, or rows of cells; got {type(X).__name__}. Give X.collect()."
        )
    if has_names(X):
        _check_names(list(X.columns), columns, targets)
        return
    if sparse.issparse(X) or not (isinstance(X, list | tuple) or hasattr(X, "shape")):
        kind = "a sparse matrix" if sparse.issparse(X) else type(X).__name__
        raise TypeError(f"X must be a DataFrame, or rows of cells; got {kind}.")
    try:
        shape = table_shape(X)
    except ValueError:
        # A list whose entries are not rows.
        shape = (len(X),)
    if len(shape) != 2 or shape[1] != len(columns):
        raise ValueError(
            f"X must have the {len(columns)} columns of the schema, in their order, or names; got "
            f"shape {shape}."
        )


def check_types(X: Any, columns: Sequence[Column]) -> None:
    """Raise if a column's type rules out that any of its cells fits; no cell is read.

    Parameters
    ----------
    X : DataFrame, ndarray or list of rows
        A table of the right form. Columns of objects, strings and complex numbers are accepted:
        one record can turn a column of numbers into one of these, and its other cells are then
        read as before.
    columns : sequence of Column

    Notes
    -----
    Theorem R7.
    """
    problems = Problems()
    for column, dtype in _types_of(X, columns):
        what = misfit(column, dtype)
        if what is not None:
            wanted = _wanted_in(column)
            hint = _HINTS.get((what, wanted), _OTHERWISE)
            shown = type(dtype).__name__ if what == "categories" else f"type {dtype}"
            problems.say(
                column.name, f"holds {what} ({shown}), none of which can be {wanted}: {hint}"
            )
    problems.check("X must have columns whose types fit the schema")


def _types_of(X: Any, columns: Sequence[Column]) -> Iterator[tuple[UsedColumn, Any]]:
    """Yield the used columns with their types, as far as the table has types."""
    types = list(getattr(X, "dtypes", ()))
    if has_names(X):
        by_name = dict(zip(X.columns, types, strict=bool(types)))
        found = [by_name.get(column.name, object) for column in columns]
    else:
        found = types or [getattr(X, "dtype", object)] * len(columns)
    for column, dtype in zip(columns, found, strict=True):
        if not isinstance(column, DroppedColumn):
            yield column, dtype


def _wanted_in(column: UsedColumn) -> str:
    if isinstance(column, NumberColumn):
        return "a date" if column.is_date else "a number"
    return "a category"


def misfit(column: UsedColumn, dtype: Any) -> str | None:
    """Return the content that a column's type implies, or None if it may fit or is unknown."""
    categories: Any = getattr(dtype, "categories", None)
    if hasattr(categories, "__len__"):
        outcomes = column.outcomes(as_cells(list(categories)))
        is_gap = outcomes == MISSING
        return None if is_gap.all() or (outcomes == FITS).any() else "categories"
    kind = dtype.to_python() if hasattr(dtype, "to_python") else getattr(dtype, "type", object)
    if not isinstance(kind, type):
        return None
    what = next((name for name, kinds in _WHAT.items() if issubclass(kind, kinds)), None)
    what = what or _NAMED.get(kind.__name__)
    if what is None or what == "words":
        return None
    if what in _READ_AS[_wanted_in(column)] and (what != "numbers" or _has_number(column, kind)):
        return None
    return what


def _has_number(column: UsedColumn, kind: type) -> bool:
    """Return whether any number of a class fits a column."""
    low, high, is_whole = -math.inf, math.inf, issubclass(kind, int | np.integer | np.bool_)
    if issubclass(kind, bool | np.bool_):
        low, high = 0.0, 1.0
    elif issubclass(kind, np.integer):
        low, high = float(np.iinfo(kind).min), float(np.iinfo(kind).max)
    if isinstance(column, NumberColumn):
        least, most = max(column.low, low), min(column.high, high)
        return (math.ceil(least) if is_whole else least) <= most
    keys = [key_of(each) for each in column.categories]
    return any(
        isinstance(key, float) and low <= key <= high and not (is_whole and key % 1.0)
        for key in keys
    )


def cells_of(X: Any, columns: Sequence[Column]) -> list[Cells]:
    """Return the cells of each used column of a table of the right form.

    Notes
    -----
    Theorem R7.
    """
    wanted = [column for column in columns if not isinstance(column, DroppedColumn)]
    if has_names(X):
        return [cells_of_column(X[column.name]) for column in wanted]
    places = [columns.index(column) for column in wanted]
    if hasattr(X, "iloc"):
        return [cells_of_column(X.iloc[:, place]) for place in places]
    table = np.asarray(X) if hasattr(X, "shape") else table_of(X, (len(columns),))
    return [_cells_of_array(table[:, place]) for place in places]


def _check_names(names: list[str], columns: Sequence[Column], targets: Collection[str]) -> None:
    known = {column.name for column in columns}
    wanted = [column.name for column in columns if not isinstance(column, DroppedColumn)]
    absent = [name for name in wanted if name not in names]
    problems = Problems(f"{shown(name)} is missing" for name in absent)
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.append(f"{shown(name)} occurs {names.count(name)} times")
    for name in names:
        if name in targets:
            problems.append(f"{shown(name)} is the target, which X must not hold")
        elif name not in known:
            near = nearest_name(name, absent)
            meant = f"did you mean {near}? Otherwise describe" if near else "describe"
            problems.append(f"{shown(name)} is not in the schema: {meant} it, or set it to 'drop'")
    problems.check("X must have the columns of the schema")


def cells_of_column(column: Any) -> Cells:
    """Return the cells of a column of a DataFrame."""
    # If asked for objects, some libraries return times as integers.
    return _cells_of_array(np.asarray(column))


def _cells_of_array(cells: Any) -> Cells:
    return cells if cells.dtype.kind in (*NUMBERS, TIMES, SPANS) else cells.astype(object)


# Public samples ------------------------------------------------------------------------------

_FEW = 20
_MOST_READ = 1000
_MOST_QUOTED = 3
_ANSWER = "give the column in columns=, or in drop="


def describe(name: str, cells: Cells, most: int, problems: Problems) -> Any:
    """Return the description that a user would write for a column, or None if it is unclear.

    Parameters
    ----------
    name : str
    cells : ndarray
        Cells of a public sample.
    most : int
        Largest allowed number of categories.
    problems : Problems
        Everything that is unclear is added to it.
    """
    days = days_of(cells)
    if cells.size and not np.isnan(days).all() and np.isnan(numbers_of(cells)).all():
        return _described_range(name, days, True, problems)
    present = [cell for cell in listed(cells) if key_of(cell) is not None]
    if not present:
        problems.say(name, f"the sample has no values; {_ANSWER}")
        return None
    gaps = {"missing": True} if len(present) < cells.size else {}
    if all(_is_boolean(cell) for cell in present):
        return {"type": "boolean", **gaps}
    if all(not math.isnan(number_of(cell)) for cell in present):
        return _described_range(name, numbers_of(cells), False, problems)
    found = dict.fromkeys(str(cell).strip() for cell in present)
    if len(found) > most or len(found) == len(present) > _FEW:
        problems.say(
            name,
            f"{len(found)} different words in {len(present)} rows look like free text or "
            f"identifiers; {_ANSWER}",
        )
        return None
    gaps = gaps or ({"other": True} if len(found) == 1 else {})
    return {"categories": sorted(found), **gaps}


def compare(column: UsedColumn, cells: Cells, outcomes: Outcomes, problems: Problems) -> None:
    """Report those cells of a public sample that a column cannot read, or changes.

    Parameters
    ----------
    column : UsedColumn
    cells : ndarray
        Cells of a public sample, since they are quoted.
    outcomes : ndarray
        The outcome of each cell.
    problems : Problems
    """
    unread = "in no category, but 'other' is not declared"
    if isinstance(column, NumberColumn):
        unread = "not dates" if column.is_date else "not numbers"
    _quote(column, cells, outcomes, UNMATCHED, unread, problems)
    _quote(column, cells, outcomes, CLIPPED, "outside of the range, and clipped", problems)
    _quote(column, cells, outcomes, MISSING, "missing, but 'missing' is not declared", problems)


def _quote(
    column: UsedColumn,
    cells: Cells,
    outcomes: Outcomes,
    outcome: int,
    what: str,
    problems: Problems,
) -> None:
    chosen = cells[outcomes == outcome]
    if not chosen.size or column.announces(outcome):
        return
    # NumPy lists times as integers.
    first = chosen[:_MOST_READ].astype(str if chosen.dtype.kind in TIMES + SPANS else object)
    quoted = list(dict.fromkeys(map(repr, first.tolist())))
    shown = ", ".join(quoted[:_MOST_QUOTED]) + ", ..." * (len(quoted) > _MOST_QUOTED)
    problems.say(column.name, f"{chosen.size} of {cells.size} cells are {what}: {shown}")


def _described_range(name: str, values: Any, is_date: bool, problems: Problems) -> Any:
    known = values[np.isfinite(values)]
    if not known.size or known.min() == known.max():
        problems.say(name, f"the sample has a single value, which is not a range; {_ANSWER}")
        return None
    has_gaps = bool(np.isnan(values).any())
    ends = float(known.min()), float(known.max())
    return NumberColumn(name, *ends, is_date=is_date, has_gaps=has_gaps).to_dict()


def _is_boolean(cell: Any) -> bool:
    return isinstance(cell, bool | np.bool_) or str(cell).strip().lower() in ("true", "false")
