"""A public description of a table: ranges of numbers, categories, and missing values."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sklearn.compose import TransformedTargetRegressor

from skdptune._formatting import shown, shown_names
from skdptune._validation import NamedArguments
from skdptune.base._shared import names_persons, nested_estimators, own_parameters
from skdptune.ledger import PrivacyLedger
from skdptune.preprocessing._schema_quality import (
    SchemaQuality,
    SchemaQualityRelease,
    checked_table,
    outcomes_of_targets,
    split_targets,
)
from skdptune.preprocessing._table import (
    CategoryColumn,
    DroppedColumn,
    NumberColumn,
    Problems,
    UsedColumn,
    cells_of,
    cells_of_column,
    check_form,
    check_types,
    compare,
    describe,
    has_names,
    parse_columns,
    parse_target,
)

_HEAD = "schema must describe every column"
_KEYS = {"columns", "target", "person"}
_WIDTH = 79


class Schema(NamedArguments):
    """A public description of a table, by which it is encoded without learning from its rows.

    scikit-learn's encoders and scalers learn categories and ranges from the data. In a schema,
    these come from public knowledge: a questionnaire, a code book, the law, or common sense.
    Values seen in the private rows, such as their largest age, must not be used.

    Parameters
    ----------
    columns : dict
        Maps the name of each column to a description of its values:

        * ``(0, 120)``: numbers in a range; values outside of it are clipped. Dates are numbers,
          too: ``("1990-01-01", "2030-01-01")``.
        * ``["farm", "office"]``: categories, which are strings or numbers. Two numbers or dates
          are a range; two numeric categories are written ``{"categories": [0, 1]}``.
        * ``"boolean"``: true or false, also written 1 and 0; other strings, such as yes and no,
          are categories.
        * ``"drop"``: an unused column, such as a name or an identifier. Free text has no range and
          no categories, and is refused.
        * a dict with ``"range"`` or ``"categories"``, and optional keys: ``"missing": True`` adds
          an indicator for missing values; ``"missing": "?"`` also states how they are written;
          ``"scale": "log"`` is for a range over orders of magnitude, such as an income;
          ``"other": True`` adds an indicator for unknown categories; ``"type"``.
    target : optional
        Description of the target, in the same forms: a range bounds the targets of a regression,
        categories are the labels of a classifier. A dict may contain its ``"name"``. A list of
        ranges or of such dicts describes several targets of a regression, in the order of y.
    drop : sequence of str, optional
        Further unused columns, as if described by ``"drop"``.
    person : str, optional
        Name of the column with the id of each row's person. This column is not a feature. The
        pipeline of `make_private_pipeline` then protects persons with all of their rows.
        Estimators that protect single rows refuse such a schema.

    Attributes
    ----------
    columns : tuple
        The validated descriptions of the columns, in order.
    target : object
        The validated description of the target; a tuple of several; None if there is none.
    person : str or None
        Name of the column with ids of persons.

    See Also
    --------
    TableEncoder : Encodes a table as features, according to its schema.
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
    ValueError: schema must describe every column; 3 problems:
    - age: range must be two finite numbers, the first smaller; got (120, 0). If a number \
has no natural bounds, choose some: values are clipped to them
    - sector: categories[0] and categories[1] are the same to the encoder
    - note: free text and identifiers have no public range: set the column to 'drop', or turn it \
into numbers first, with a step that treats each record separately, such as HashingVectorizer
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        target: Any = None,
        drop: Sequence[str] = (),
        *,
        person: str | None = None,
    ) -> None:
        problems = Problems()
        if isinstance(columns, Mapping):
            columns = {**columns, **_dropped(columns, drop, problems)}
            columns = {**columns, **_ids(columns, person, problems)}
        self.person = person
        self.columns = tuple(parse_columns(columns, problems))
        self.target = parse_target(target, problems)
        for name in dict.fromkeys(self.target_names):
            if name in self.names:
                problems.say(name, "is the target, and must not be a column, too")
            elif self.target_names.count(name) > 1:
                problems.say(name, "is the name of two targets")
        problems.check(_HEAD)

    def check_unit(self, name: str) -> Self:
        """Return the schema for something that protects rows; raise if it names persons."""
        if self.person is not None:
            raise TypeError(
                f"schema must not name a person for {name}, which protects single records; got "
                f"person={shown(self.person)}. make_private_pipeline(DPLogisticRegression(), "
                "schema) protects persons, and so do DPLinearSVC and DPRidge in its place."
            )
        return self

    def of_features(self) -> Self:
        """Return the schema without the person, whose column stays unused."""
        found = copy.copy(self)
        found.person = None
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in order, including dropped ones."""
        return tuple(column.name for column in self.columns)

    @property
    def targets(self) -> tuple[UsedColumn, ...]:
        """Descriptions of all targets: none, one or several."""
        target = self.target
        return target if isinstance(target, tuple) else () if target is None else (target,)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of all targets."""
        return tuple(column.name for column in self.targets)

    @property
    def target_bounds(self) -> Any:
        """Range of the target, or a tuple of ranges; None unless targets are described numbers."""
        ranges = tuple(
            (one.low, one.high) for one in self.targets if isinstance(one, NumberColumn)
        )
        return ranges if isinstance(self.target, tuple) else ranges[0] if ranges else None

    @property
    def target_labels(self) -> list[Any] | None:
        """Labels of the target; None if the target has no labels or is not described."""
        target = self.target
        return list(target.categories) if isinstance(target, CategoryColumn) else None

    # Other forms --------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """Create a schema from a dict, as returned by `to_dict`.

        Parameters
        ----------
        description : dict
            It has the key "columns", and optionally "target" and "person".
        """
        is_one = isinstance(description, Mapping) and "columns" in description
        if not is_one or not set(description) <= _KEYS:
            is_dict = isinstance(description, Mapping)
            got = f"the keys {shown_names(description)}" if is_dict else shown(description)
            raise ValueError(
                f"description must be a dict with 'columns', and maybe 'target'; got {got}."
            )
        columns, target = description["columns"], description.get("target")
        return cls(columns, target, person=description.get("person"))

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Read a schema from JSON, as written by `to_json`.

        Parameters
        ----------
        source : str or Path
            Name of a file, or the JSON text itself, which begins with a brace.
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
        """Create a schema from the ranges and categories of a *public* table.

        **Never pass a private table.** The schema shows its minima, maxima and rarest categories.
        Each may be one person's value, and no privacy cost is charged for it. A table is public if
        anybody may see it: an open data set, a synthetic one, or records of people who agreed.

        Parameters
        ----------
        public_sample : DataFrame
            Public rows with the columns of the private table. Numeric columns get their minimum
            and maximum as a range, other columns get their categories. Columns with missing values
            are described as such.
        columns : dict, optional
            Better descriptions of some columns than the sample gives, as in `Schema`.
        target : str, optional
            Name of the target column.
        drop : sequence of str, optional
            Unused columns.
        max_categories : int, default=50
            A column with more different strings than this is refused as free text.

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
                "public_sample must be a DataFrame whose column names are strings; got "
                f"{type(public_sample).__name__}."
            )
        problems = Problems()
        given = {**dict(columns or {}), **dict.fromkeys(drop, "drop")}
        found: dict[str, Any] = {}
        cells = {name: cells_of_column(public_sample[name]) for name in public_sample.columns}
        for name in (*given, *filter(None, [target])):
            if name not in cells:
                problems.say(name, "is not a column of the sample")
        for name, column in cells.items():
            found[name] = given.get(name)
            if name not in given:
                found[name] = describe(name, column, max_categories, problems)
        problems.check("public_sample must show the content of every column")
        about_target = found.pop(target, None) if target is not None else None
        if isinstance(about_target, Mapping):
            about_target = {"name": target, **about_target}
            about_target.pop("missing", None)
        return cls(found, about_target)

    def check_public_sample(self, public_sample: Any, targets: Any = None) -> None:
        """Raise if cells of a *public* table do not fit the schema, and list them.

        An encoder accepts any cell, and does not report cells that it cannot read, since an error
        would reveal something about a private record. Therefore mistakes in a schema, such as a
        misspelt category, are best found on public or made-up rows. **Never pass a private
        table:** the error quotes cells that do not fit.

        Parameters
        ----------
        public_sample : DataFrame, ndarray or list of rows
            Public rows with the columns of the schema.
        targets : array-like, optional
            Their public targets. If a label in the schema is misspelt, every record with the
            correct label is silently replaced by a constant row.

        Raises
        ------
        ValueError
            Lists everything that does not fit: column names, strings that are not numbers, numbers
            outside of their range, unknown categories, and missing values that are not declared.

        Examples
        --------
        >>> from skdptune.preprocessing import Schema
        >>> schema = Schema({"age": (0, 120), "sector": ["farm", "office", "school"]})
        >>> schema.check_public_sample([[30, "farm"], ["old", "Farm"], [130, None]])
        Traceback (most recent call last):
            ...
        ValueError: schema must fit the public sample; 4 problems:
        - age: 1 of 3 cells are not numbers: 'old'
        - age: 1 of 3 cells are outside of the range, and clipped: 130
        - sector: 1 of 3 cells are in no category, but 'other' is not declared: 'Farm'
        - sector: 1 of 3 cells are missing, but 'missing' is not declared: None
        """
        check_form(public_sample, self.columns, self.target_names)
        check_types(public_sample, self.columns)
        problems = Problems()
        for column, cells in zip(self.used, cells_of(public_sample, self.columns), strict=True):
            compare(column, cells, column.outcomes(cells), problems)
        if targets is not None:
            if not self.targets:
                raise ValueError("targets must be left out if the schema has no target.")
            for column, cells in zip(self.targets, split_targets(self, targets), strict=True):
                compare(column, cells.astype(object), outcomes_of_targets(column, cells), problems)
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
        """Count cells of a *private* table that do not fit, with noise and at a privacy cost.

        An encoder does not report cells that it cannot read. This release estimates, for each
        column and the target, how many cells are unmatched (in no category, or not a number),
        clipped (outside of the range) or missing. It also shows which columns look wrong.

        Parameters
        ----------
        X : DataFrame, ndarray or list of rows
            Private rows with the columns of the schema. A DataFrame may also contain the target.
            If the schema names a person, each of a person's k rows counts as 1/k of a person, and
            a row without a proper id is not counted.
        y : array-like, optional
            Private targets. Records with undeclared labels, which a fit ignores, are counted.
        epsilon : float, default=0.02
            Budget for all counts together. A small budget is enough to find mistakes that affect
            many records: the noise grows with the number of columns, but not with the number of
            records.
        delta : float, default=0.0
            Failure probability of the budget. A positive value permits Gaussian noise, which is
            used if it is smaller than Laplace noise: usually if there are many columns.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default=None
            None uses the operating system's entropy. A seed makes research runs reproducible, but
            gives no privacy against anyone who knows it.
        ledger : PrivacyLedger, optional
            Ledger in which the cost is reserved before the data are read. None means the active
            ledger, if there is one.

        Returns
        -------
        SchemaQuality
            It prints as a table; `to_frame` returns it as a DataFrame, and `privacy_` reports the
            cost.

        Raises
        ------
        ValueError, TypeError
            Before anything is spent, if the table does not have the columns of the schema, or if a
            column has a type that cannot hold the described values.

        Notes
        -----
        Theorem R8. The guarantee is (`epsilon`, `delta`)-differential privacy for tables that
        differ by one record, added or removed, with the number of records and the schema public.
        If the schema names a person, it is for one person with all of their rows (Theorem P14).

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
        # Data that are rejected for their form cost nothing.
        table, targets = checked_table(self, X, y)
        release = SchemaQualityRelease(self, epsilon, delta, random_state, ledger)
        groups = {} if self.person is None else {"groups": ids_in(X, self.person, {})}
        return release.fit(table, targets, **groups).quality_

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as nested dicts and lists that can be stored as JSON."""
        found: dict[str, Any] = {"columns": {one.name: one.to_dict() for one in self.columns}}
        more = {"target": self._described_target(), "person": self.person}
        return found | {key: value for key, value in more.items() if value is not None}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the schema as JSON text, and write it to a file if a path is given.

        Parameters
        ----------
        path : str or Path, optional
        """
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text + "\n", "utf-8")
        return text

    def _described_target(self) -> Any:
        found = [{"name": one.name, **one.to_dict()} for one in self.targets]
        return found if isinstance(self.target, tuple) else found[0] if found else None

    @property
    def used(self) -> tuple[UsedColumn, ...]:
        """The columns that are encoded as features."""
        return tuple(one for one in self.columns if not isinstance(one, DroppedColumn))

    def __eq__(self, other: object) -> bool:
        """Return whether two schemas describe the same columns in the same order."""
        if not isinstance(other, Schema):
            return NotImplemented
        return (self.columns, self.target, self.person) == (
            other.columns,
            other.target,
            other.person,
        )

    def __hash__(self) -> int:
        """Return a hash; equal schemas have equal hashes."""
        return hash((self.names, repr(self)))

    def __repr__(self) -> str:
        """Return the schema as Python code, with one line per column."""
        about_target = self._described_target()
        lines = [f"        {one.name!r}: {one.to_dict()!r}," for one in self.columns]
        body = "\n".join(["    {", *lines, "    },"])
        if about_target is not None:
            body += f"\n    target={about_target!r},"
        if self.person is not None:
            body += f"\n    person={self.person!r},"
        return f"Schema(\n{body}\n)"


def as_schema(schema: Any) -> Schema:
    """Return a schema from a Schema, a dict or the name of a JSON file."""
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
        # A column may have one of these names, but then its description has none of these keys.
        if set(schema) <= _KEYS:
            return Schema.from_dict(schema)
    if isinstance(schema, Mapping):
        return Schema(schema)
    raise TypeError(
        "schema must be a Schema, a dict from names of columns to what they hold, or a JSON file; "
        f"got {type(schema).__name__}."
    )


def range_of_targets(estimator: Any) -> Any:
    """Return the public range of the targets that a fit gets, or several; None without one.

    The estimator states it, or a nested one that gets the same targets, or a schema of one.
    """
    parts = list(nested_estimators(estimator))
    kinds = ((prefix, type(part)) for prefix, part in parts)
    changed = tuple(prefix for prefix, of in kinds if issubclass(of, TransformedTargetRegressor))
    told = [own_parameters(part) for prefix, part in parts if not prefix.startswith(changed)]
    bounds = [own["target_bound"] for own in told if own.get("target_bound") is not None]
    schemas = [own["schema"] for own in told if own.get("schema") is not None]
    of_schemas = [as_schema(schema).target_bounds for schema in schemas if not bounds]
    return next((one for one in (*bounds, *of_schemas) if one is not None), None)


def _dropped(
    columns: Mapping[str, Any], drop: Sequence[str], problems: Problems
) -> dict[str, str]:
    if isinstance(drop, str) or not isinstance(drop, Sequence):
        problems.append(f"drop must be a list of names; got {shown(drop)}")
        return {}
    for place, name in enumerate(drop):
        if not isinstance(name, str):
            problems.say(f"drop[{place}]", f"must be a string; got {type(name).__name__}")
        elif name in columns:
            problems.say(name, "is both dropped and described")
    return {name: "drop" for name in drop if isinstance(name, str)}


def ids_in(X: Any, person: str | None, params: Mapping[str, Any]) -> Any:
    """Return a table's column of ids; raise if arguments of a fit hold groups, too."""
    if names_persons(params):
        raise TypeError(
            "groups must be left out, since the schema names the column of persons, "
            f"{shown(person)}; got both."
        )
    if person not in list(getattr(X, "columns", ())):
        raise ValueError(
            f"X must be a DataFrame with the column {shown(person)}, in which the schema says "
            f"whose row each is; got {type(X).__name__} without it."
        )
    return X[person]


def _ids(columns: Mapping[str, Any], person: Any, problems: Problems) -> dict[str, str]:
    if person is None:
        return {}
    if not isinstance(person, str):
        problems.append(f"person must be the name of a column; got {shown(person)}")
        return {}
    if columns.get(person, "drop") != "drop":
        problems.say(person, "contains the ids of persons, and must not be a feature as well")
    return {} if person in columns else {person: "drop"}


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names must be unique in a JSON file; got {shown_names(twice)} twice.")
    return dict(pairs)
