"""A public description of a table: ranges of numbers, categories of words, missing or not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from skdptune._formatting import shown, shown_names
from skdptune.base._shared import target_array
from skdptune.ledger import PrivacyLedger
from skdptune.preprocessing._schema_quality import (
    SchemaQuality,
    SchemaQualityRelease,
    checked_table,
    outcomes_of_targets,
)
from skdptune.preprocessing._table import (
    CategoryColumn,
    Column,
    DroppedColumn,
    NumberColumn,
    Problems,
    cells_of,
    check_form,
    check_types,
    compare,
    describe,
    has_names,
    parse_columns,
    parse_target,
    sample_cells,
)

_HEAD = "schema must describe every column"
_WIDTH = 79


class Schema:
    """A public description of a table, from which it is encoded without a look at its rows.

    What scikit-learn's encoders and scalers learn from the data is written down here, from public
    knowledge: a questionnaire, a code book, the law, or common sense. What the private rows
    themselves show (their largest age, say) must not be used.

    Parameters
    ----------
    columns : dict
        From the name of each column to what it holds:

        * ``(0, 120)``: numbers in a range; what lies beyond is clipped. Dates are numbers, too:
          ``("1990-01-01", "2030-01-01")``.
        * ``["farm", "office"]``: categories, which are words or numbers. Two numbers or dates are
          a range; two categories that are numbers are written ``{"categories": [0, 1]}``.
        * ``"boolean"``: true or false, also written 1 and 0; other words, such as yes and no, are
          categories.
        * ``"drop"``: a column that is not used, such as a name or an identifier. Free text has no
          range and no categories, and is refused.
        * a dict with ``"range"`` or ``"categories"``, and more: ``"missing": True`` gives missing
          values an indicator, ``"missing": "?"`` also says what they are written as;
          ``"scale": "log"`` for a range over orders of magnitude, such as an income;
          ``"other": True`` gives an indicator to words that are in no list; ``"type"``.
    target : optional
        What the target holds, in the same forms: a range bounds the targets of a regression,
        categories are the labels of a classifier. A dict may have its ``"name"``.
    drop : sequence of str, optional
        More columns that are not used, as if described by ``"drop"``.

    Attributes
    ----------
    columns : tuple
        The columns' descriptions, checked, in order.
    target : object
        That of the target, None without one.

    See Also
    --------
    TableEncoder : Turns a table into features, by its schema.
    make_private_pipeline : An encoder and a private estimator in one step.

    Examples
    --------
    >>> from skdptune.preprocessing import Schema
    >>> schema = Schema(
    ...     {
    ...         "age": (0, 120),
    ...         "income": {"range": (0, 1_000_000), "scale": "log", "missing": True},
    ...         "sector": ["farm", "factory", "office"],
    ...         "name": "drop",
    ...     },
    ...     target=["no", "yes"],
    ... )
    >>> schema
    Schema(
        {
            'age': {'range': [0, 120]},
            'income': {'range': [0, 1000000], 'scale': 'log', 'missing': True},
            'sector': {'categories': ['farm', 'factory', 'office']},
            'name': 'drop',
        },
        target={'name': 'target', 'categories': ['no', 'yes']},
    )
    >>> Schema.from_json(schema.to_json()) == schema
    True
    >>> Schema({"age": (120, 0), "sector": ["farm", "farm"], "note": "text"})
    Traceback (most recent call last):
        ...
    ValueError: schema must describe every column; 3 things wrong:
    - age: range must be two finite numbers, the first smaller; got (120, 0). A number without \
bounds is clipped to those that you give
    - sector: categories[0] and categories[1] are the same to the encoder
    - note: free text and identifiers have no public range: set the column to 'drop', or turn it \
into numbers first, with a step that treats each record by itself, such as HashingVectorizer
    """

    def __init__(
        self, columns: Mapping[str, Any], target: Any = None, drop: Sequence[str] = ()
    ) -> None:
        problems = Problems()
        if isinstance(columns, Mapping):
            columns = {**columns, **_dropped(columns, drop, problems)}
        self.columns = tuple(parse_columns(columns, problems))
        self.target = parse_target(target, problems)
        if self.target is not None and self.target.name in self.names:
            problems.say(self.target.name, "is the target, and must not be a column, too")
        problems.check(_HEAD)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order, those that are dropped included."""
        return tuple(column.name for column in self.columns)

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """Range of the target, None where that is no number or not described."""
        target = self.target
        return (target.low, target.high) if isinstance(target, NumberColumn) else None

    @property
    def target_labels(self) -> list[Any] | None:
        """Labels of the target, None where it has none or is not described."""
        target = self.target
        return list(target.categories) if isinstance(target, CategoryColumn) else None

    # Other forms --------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """Return the schema that `to_dict` described.

        Parameters
        ----------
        description : dict
            With the key "columns", and maybe "target".
        """
        if not isinstance(description, Mapping) or not {"columns"} <= set(description) <= {
            "columns",
            "target",
        }:
            got = (
                sorted(map(str, description)) if isinstance(description, Mapping) else description
            )
            raise ValueError(
                f"description must be a dict with 'columns', and maybe 'target'; got {shown(got)}."
            )
        return cls(description["columns"], description.get("target"))

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Return the schema of a JSON file, in the form of `to_json`.

        Parameters
        ----------
        source : str or Path
            A file's name, or the JSON text itself, which begins with a brace.
        """
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        text = str(source) if is_text else Path(source).read_text("utf-8")
        return cls.from_dict(json.loads(text, object_pairs_hook=_without_repetitions))

    @classmethod
    def from_public_sample(
        cls,
        public_sample: Any,
        *,
        columns: Mapping[str, Any] | None = None,
        target: str | None = None,
        drop: Sequence[str] = (),
        max_categories: int = 50,
    ) -> Self:
        """Return a schema with the ranges and categories of a *public* table.

        **Never pass a private table.** The schema shows its extreme values and its rarest words,
        each of which may be one person's, and no privacy cost is charged for that. A public
        table is one that anybody may see: an open data set, a made-up one, or the records of
        people who agreed.

        Parameters
        ----------
        public_sample : DataFrame
            Public rows with the columns of the private table. Numbers get their least and largest
            value as a range, words their categories; a column with gaps is one with missing
            values.
        columns : dict, optional
            Columns that are known better than from the sample, described as in `Schema`.
        target : str, optional
            Name of the column that is the target.
        drop : sequence of str, optional
            Columns that are not used.
        max_categories : int, default=50
            A column with more words than these is refused as free text.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdptune.preprocessing import Schema
        >>> public = pd.DataFrame({"age": [17, 90], "sector": ["farm", None], "paid": [1.5, 9.0]})
        >>> Schema.from_public_sample(public, columns={"age": (0, 120)}, target="paid")
        Schema(
            {
                'age': {'range': [0, 120]},
                'sector': {'categories': ['farm'], 'missing': True},
            },
            target={'name': 'paid', 'range': [1.5, 9]},
        )
        """
        if not has_names(public_sample):
            raise TypeError(
                "public_sample must be a DataFrame whose columns have words for names; got "
                f"{type(public_sample).__name__}."
            )
        problems = Problems()
        given = {**dict(columns or {}), **dict.fromkeys(drop, "drop")}
        found: dict[str, Any] = {}
        cells = sample_cells(public_sample)
        for name in (*given, *filter(None, [target])):
            if name not in cells:
                problems.say(name, "is no column of the sample")
        for name, column in cells.items():
            found[name] = given.get(name)
            if name not in given:
                found[name] = describe(name, column, max_categories, problems)
        problems.check("public_sample must show what every column holds")
        about_target = found.pop(target, None) if target is not None else None
        if isinstance(about_target, Mapping):
            about_target = {"name": target, **about_target}
            about_target.pop("missing", None)
        return cls(found, about_target)

    def check_public_sample(self, public_sample: Any, targets: Any = None) -> None:
        """Raise if cells of a *public* table do not fit, and say which.

        An encoder reads any cell, and is silent about what it cannot read, since an error would
        show something of a private record. So mistakes in a schema, such as a misspelt category,
        are best found on some public or made-up rows. **Never pass a private table:** what does
        not fit is quoted.

        Parameters
        ----------
        public_sample : DataFrame, ndarray or list of rows
            Public rows with the columns of the schema.
        targets : array-like, optional
            Their public targets. A misspelt label makes a constant row of every record that has
            the right one, without a word.

        Raises
        ------
        ValueError
            With all that does not fit: names of columns, words that are no numbers, numbers
            beyond their range, words in no category, gaps that are not announced.

        Examples
        --------
        >>> from skdptune.preprocessing import Schema
        >>> schema = Schema({"age": (0, 120), "sector": ["farm", "office", "school"]})
        >>> schema.check_public_sample([[30, "farm"], ["old", "Farm"], [130, None]])
        Traceback (most recent call last):
            ...
        ValueError: schema must fit the public sample; 4 things wrong:
        - age: 1 of 3 cells are no numbers: 'old'
        - age: 1 of 3 cells are beyond the range, and clipped: 130
        - sector: 1 of 3 cells are in no category, and without 'other': 'Farm'
        - sector: 1 of 3 cells are missing, and without 'missing': None
        """
        check_form(public_sample, self.columns, None if self.target is None else self.target.name)
        check_types(public_sample, self.columns)
        problems = Problems()
        for column, cells in zip(self.used, cells_of(public_sample, self.columns), strict=True):
            compare(column, cells, column.outcomes(cells), problems)
        if targets is not None:
            if self.target is None:
                raise ValueError("targets must be left out where the schema has no target.")
            cells = target_array(targets).astype(object)
            compare(self.target, cells, outcomes_of_targets(self.target, targets), problems)
        problems.check("schema must fit the public sample")

    def quality(
        self,
        X: Any,
        y: Any = None,
        *,
        epsilon: float = 0.02,
        delta: float = 0.0,
        random_state: Any = None,
        ledger: PrivacyLedger | None = None,
    ) -> SchemaQuality:
        """Count the cells of a *private* table that do not fit, with noise and at a privacy cost.

        An encoder is silent about cells that it cannot read. This release tells, for each column
        and the target, about how many cells are unmatched (in no category, or no number),
        clipped (beyond the range) or missing, and which columns look wrong.

        Parameters
        ----------
        X : DataFrame, ndarray or list of rows
            Private rows with the columns of the schema. A DataFrame may hold the target, too.
        y : array-like, optional
            Private targets; those with undeclared labels, which a fit ignores, are counted.
        epsilon : float, default=0.02
            Budget for all counts together. Mistakes that concern many records show at a small
            one: the noise grows with the number of columns, and not with that of the records.
        delta : float, default=0.0
            Failure probability of the budget. A positive one permits Gaussian noise, which is
            taken where it is smaller than Laplace noise: mostly where there are many columns.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default=None
            None draws the noise from the operating system's entropy. A seed gives reproducible
            research runs, and no privacy against those who know it.
        ledger : PrivacyLedger, optional
            Where the cost is set aside before the data are read. None is the ledger in use, if
            any.

        Returns
        -------
        SchemaQuality
            Prints as a table; `to_frame` returns it as a DataFrame, and `privacy_` reports the
            cost.

        Raises
        ------
        ValueError, TypeError
            Before anything is spent: if the table does not have the columns of the schema, or
            types of columns that can hold what it says.

        Notes
        -----
        Theorem R8. The guarantee is (`epsilon`, `delta`)-differential privacy for tables that
        differ by one record, added or removed, with the number of records and the schema public.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdptune.preprocessing import Schema
        >>> people = pd.DataFrame({"sector": ["farm", "Office"] * 2000})
        >>> schema = Schema({"sector": ["farm", "office"]}, target=["no", "yes"])
        >>> quality = schema.quality(people, ["no", "yes"] * 2000, epsilon=0.1, random_state=0)
        >>> [(each.column, each.kind) for each in quality.suspects]
        [('sector', 'unmatched')]
        """
        # What is refused for its form costs nothing.
        table, targets = checked_table(self, X, y)
        release = SchemaQualityRelease(self, epsilon, delta, random_state, ledger)
        return release.fit(table, targets).quality_

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as nested dicts and lists, which JSON can hold."""
        found: dict[str, Any] = {"columns": {one.name: one.to_dict() for one in self.columns}}
        about_target = self._described_target()
        return found if about_target is None else {**found, "target": about_target}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the schema as JSON text, and write it to a file if there is one.

        Parameters
        ----------
        path : str or Path, optional
        """
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text + "\n", "utf-8")
        return text

    def _described_target(self) -> dict[str, Any] | None:
        if self.target is None:
            return None
        description = self.target.to_dict()
        return {"name": self.target.name, **description}  # type: ignore[dict-item]

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that become features."""
        return tuple(one for one in self.columns if not isinstance(one, DroppedColumn))

    def __eq__(self, other: object) -> bool:
        """Return whether two schemas describe the same columns in the same order."""
        if not isinstance(other, Schema):
            return NotImplemented
        return (self.columns, self.target) == (other.columns, other.target)

    def __hash__(self) -> int:
        """Return a hash that equal schemas share."""
        return hash((self.names, repr(self)))

    def __repr__(self) -> str:
        """Return the schema as it could be written, a line for each column."""
        about_target = self._described_target()
        lines = [f"        {one.name!r}: {one.to_dict()!r}," for one in self.columns]
        body = "\n".join(["    {", *lines, "    },"])
        if about_target is not None:
            body += f"\n    target={about_target!r},"
        return f"Schema(\n{body}\n)"


def as_schema(schema: Any) -> Schema:
    """Return a schema, given as such, as a dict or as the name of a JSON file."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        try:
            return Schema.from_json(schema)
        except OSError as error:
            raise ValueError(
                "schema must be a Schema, a dict from names of columns to what they hold, or the "
                f"name of a JSON file; got {shown(str(schema), longest=200)}: {error.strerror}."
            ) from None
    if isinstance(schema, Mapping) and isinstance(schema.get("columns"), Mapping):
        # A table may have a column of that name, but its description has none of these keys.
        if set(schema) <= {"columns", "target"}:
            return Schema.from_dict(schema)
    if isinstance(schema, Mapping):
        return Schema(schema)
    raise TypeError(
        "schema must be a Schema, a dict from names of columns to what they hold, or a JSON file; "
        f"got {type(schema).__name__}."
    )


def _dropped(
    columns: Mapping[str, Any], drop: Sequence[str], problems: Problems
) -> dict[str, str]:
    if isinstance(drop, str) or not isinstance(drop, Sequence):
        problems.append(f"drop must be a list of names; got {shown(drop)}")
        return {}
    for place, name in enumerate(drop):
        if not isinstance(name, str):
            problems.say(f"drop[{place}]", f"must be a word; got {type(name).__name__}")
        elif name in columns:
            problems.say(name, "is to be dropped, and described, too")
    return {name: "drop" for name in drop if isinstance(name, str)}


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"names must be given once in a JSON file; got {shown_names(twice)} again."
        )
    return dict(pairs)
