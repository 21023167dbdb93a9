"""Strict parsing of a user's descriptions of columns: all mistakes are listed at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Any

import numpy as np

from skdptune._formatting import shown, shown_names
from skdptune.preprocessing._table._columns import (
    CategoryColumn,
    Column,
    DroppedColumn,
    NumberColumn,
    day_of,
    key_of,
    number_of,
)

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
    found = []
    for name, given in columns.items():
        if not isinstance(name, str):
            advice = "names of columns must be strings; use df.columns.astype(str)"
            problems.say(shown(name), advice)
            continue
        column = parse_column(name, given, problems)
        if column is not None:
            found.append(column)
    if found and all(isinstance(column, DroppedColumn) for column in found) and not problems:
        problems.append("columns must not all be dropped: no feature would be left")
    return found


def parse_target(given: Any, problems: Problems) -> Column | None:
    """Return the target from its description, or None if it is missing or invalid."""
    if given is None:
        return None
    named = dict(given) if isinstance(given, Mapping) else None
    name = "target" if named is None else named.pop("name", "target")
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
    return parse_column(name, given if named is None else named, problems)


def parse_column(name: str, given: Any, problems: Problems) -> Column | None:
    """Return a column from its description, or None if it is invalid."""
    n_before = len(problems)
    if _is_word(given, "drop"):
        return DroppedColumn(name)
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


def _column_of(name: str, settings: dict[str, Any], problems: Problems) -> Column | None:
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
        return {"range" if _is_pair(given) else "categories": list(given)}
    problems.say(name, f"must be {_FORMS}; got {shown(given)}")
    return None


def _is_pair(given: Sequence[Any]) -> bool:
    """Return whether two values are the ends of a range, and not categories."""
    return len(given) == 2 and (all(map(_is_number, given)) or all(map(_is_date, given)))


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


def _number(name: str, settings: Mapping[str, Any], problems: Problems) -> Column | None:
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


def _category(name: str, settings: Mapping[str, Any], problems: Problems) -> Column | None:
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
    close = get_close_matches(str(word), known, n=1)
    return f" (did you mean {shown(close[0])}?)" if close else ""
