"""Make a private estimator for tables with text, dates or missing values, in one step."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

from skdptune._formatting import shown_names
from skdptune._validation import with_one_frame
from skdptune.base import NoProfileError
from skdptune.base._shared import (
    GROUPS,
    declared_labels,
    groups_of_steps,
    has_cost,
    is_paid,
    no_profile,
    own_parameters,
    private_steps,
    refusal_of,
    refusals_of,
    refused_groups,
    together,
)
from skdptune.preprocessing._schema import Schema, as_schema, ids_in
from skdptune.preprocessing._table_encoder import TableEncoder

_COMPOSITIONS = (Pipeline, FeatureUnion, ColumnTransformer)
_BOUND = (
    "schema must describe the target of a regression by its range, such as target=(0, 100), or "
    "the estimator must have its target_bound; got "
)
_NO_BOUND = f"{_BOUND}neither."
_LABELS_FOR_NUMBERS = f"{_BOUND}labels. Take a classifier, or give the target's range."
_NO_LABELS = (
    "schema must name labels for a classifier; got the range {low:g} to {high:g}. Two numbers are "
    'a range; as labels they are written target={{"categories": [{low:g}, {high:g}]}}.'
)

_OTHER_LABELS = (
    "classes must contain the labels of the schema's target; {n_absent} of {n_labels} are "
    "missing. Leave classes out: the pipeline sets the labels of the schema."
)


# Above this folder, since it chooses among all families of models.
_TABLE_MODELS = "skdptune.model_selection._table_model"


@with_one_frame
def make_private_pipeline(
    estimator: Any, schema: Any, *, n_knots: int | None = 5, **settings: Any
) -> Any:
    """Make a private model of a table from its public schema, or a pipeline with an estimator.

    With the word "classifier", "regressor" or "auto", the model chooses its own family: linear,
    boosting, or a neural net. Otherwise the pipeline encodes the table and fits the estimator.

    Parameters of the estimator that are not set are taken from the schema. They are the bound on
    the norm of a row (``data_norm``), the labels (``classes``), and the range of the targets of a
    regression, a net or boosting (``target_bound``). For models of diffprivlib they are also the
    ranges of features and targets (``bounds``, ``bounds_X``, ``bounds_y``). The pipeline costs
    what the estimator costs.

    Parameters
    ----------
    estimator : estimator, "classifier", "regressor" or "auto"
        A private estimator; it is copied. For a search, make the pipeline its estimator. With
        "auto" the schema's target decides: labels mean a classifier, a range a regressor.
    schema : Schema, dict or str
        See `TableEncoder`. With a word, it must describe the target.
    n_knots : int or None, default=5
        See `TableEncoder`; not used with a word.
    **settings
        With a word: ``epsilon``, which must be given, ``delta`` (default 1e-5), and optionally
        ``family`` ("linear", "boosting" or "net"), ``random_state``, ``n_public`` and ``ledger``.

    Returns
    -------
    Pipeline or estimator
        With a word, an estimator with ``fit``, ``predict``, ``plan``, and ``privacy_`` and
        ``family_`` after the fit. Its ``plan(n_samples)`` says which families are tried, and why.
        Otherwise a pipeline with the steps "tableencoder" and the estimator's class name in lower
        case, as in scikit-learn's ``make_pipeline``. A search over `C` is then one over
        ``"dplogisticregression__C"``.

    Raises
    ------
    NoProfileError
        If the estimator, or one of its steps, is not private. The message names its private
        counterpart.
    ValueError
        If the schema is wrong or, with a word, lacks the target. If the target of a regression has
        no range (a net needs none), or that of a classifier without ``classes`` is a range.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.preprocessing import Schema, make_private_pipeline
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(
    ...     {"age": rng.integers(18, 80, 2000), "sector": rng.choice(["farm", "office"], 2000)}
    ... )
    >>> y = np.where(people.age + 20 * (people.sector == "farm") > 60, "yes", "no")
    >>> schema = Schema({"age": (18, 80), "sector": ["farm", "office"]}, target=["no", "yes"])
    >>> model = DPLogisticRegression(epsilon=2.0, solver="adam", random_state=0)
    >>> pipeline = make_private_pipeline(model, schema)
    >>> [name for name, _ in pipeline.steps]
    ['tableencoder', 'dplogisticregression']
    >>> pipeline.fit(people, y).score(people, y) > 0.9
    True
    >>> from skdptune.base import privacy_of
    >>> round(privacy_of(pipeline).epsilon, 1)
    2.0
    """
    if isinstance(estimator, str):
        settings = {"epsilon": None, **settings}
        return importlib.import_module(_TABLE_MODELS).table_model(estimator, schema, **settings)
    if settings:
        raise TypeError(
            f"make_private_pipeline must be given {shown_names(settings)} as parameters of the "
            'estimator; they are only accepted here with a word, such as "classifier".'
        )
    # Report all problems at once, with the names of the steps.
    problems: list[tuple[str, Exception]] = []
    person: str | None = None
    known: dict[str, Any] | None = None
    try:
        described = as_schema(schema)
        person = described.person
        encoder = TableEncoder(described.of_features(), n_knots)
        known = _known(encoder)
        _check_labels(estimator, encoder.schema)
    except (TypeError, ValueError) as error:
        problems.append(("tableencoder", error))
    told: dict[str, Any] = {}
    try:
        told = _told(estimator, known)
        # A step of a composition may learn from private rows.
        refusals = refusals_of(estimator) if isinstance(estimator, _COMPOSITIONS) else ()
        if refusals:
            raise NoProfileError(*refusals)
        if person is not None:
            _check_persons(estimator)
    except (TypeError, ValueError) as error:
        problems.append((type(estimator).__name__.lower(), error))
    if problems:
        raise together(problems) from None
    made = make_pipeline(encoder, clone(estimator).set_params(**told))
    return made if person is None else PersonPipeline(made.steps, person=person)


class PersonPipeline(Pipeline):
    """A pipeline that takes the persons of its last step from a column of the table.

    Made by `make_private_pipeline` with a schema that names a person.

    Parameters
    ----------
    steps, transform_input, memory, verbose
        See scikit-learn's ``Pipeline``.
    person : str
        Name of the column with the id of each row's person.

    Notes
    -----
    Theorem P14.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdptune.base import privacy_of
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.preprocessing import Schema, make_private_pipeline
    >>> rng = np.random.default_rng(0)
    >>> visits = pd.DataFrame(
    ...     {"patient": rng.integers(0, 900, size=4000), "age": rng.integers(18, 80, size=4000)}
    ... )
    >>> y = np.where(visits.age > 50, "yes", "no")
    >>> schema = Schema({"age": (18, 80)}, target=["no", "yes"], person="patient")
    >>> model = make_private_pipeline(DPLogisticRegression(random_state=0), schema)
    >>> privacy_of(model.fit(visits, y)).neighbouring
    'add or remove one person with all of their rows'
    """

    def __init__(
        self,
        steps: Any,
        *,
        person: str | None = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.person = person

    @property
    def _person_column(self) -> str | None:
        return self.person

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the pipeline privately for persons.

        Parameters
        ----------
        X : DataFrame
            A table with the columns of the schema, and with the ids of persons.
        y : array-like of shape (n_samples,)
            Targets.
        **params
            See scikit-learn's ``Pipeline``; without groups.

        Returns
        -------
        self
        """
        if self.person is None:
            return super().fit(X, y, **params)
        last, estimator = self.steps[-1]
        if is_paid(self):
            # A search has read the ids, and gives persons to the last step.
            while isinstance(estimator, Pipeline):
                estimator = estimator.steps[-1][1]
            if getattr(estimator, "persons", None) is None:
                raise TypeError(refused_groups("a fit inside another one"))
            return super().fit(X, y, **params)
        ids = self.ids_of(X, params)
        steps = {**private_steps(self), last: estimator}
        return super().fit(X, y, **{**params, **groups_of_steps(steps, ids)})

    def ids_of(self, X: Any, params: Mapping[str, Any]) -> Any:
        """Return the column of ids; raise if arguments of a fit hold groups, too."""
        return ids_in(X, self.person, params)


def _check_persons(estimator: Any) -> None:
    """Raise unless an estimator protects persons, whom the schema names."""
    words = refusal_of(estimator, GROUPS)
    if words is not None or not hasattr(estimator, "predict"):
        raise TypeError(refused_groups(type(estimator).__name__, words))


def _known(encoder: TableEncoder) -> dict[str, Any]:
    """Return parameters of estimators that follow from a schema."""
    known: dict[str, Any] = {"data_norm": encoder.data_norm}
    # Models of diffprivlib would otherwise read these from the data: no feature leaves this range.
    known["bounds"] = known["bounds_X"] = (-1.0, 1.0)
    schema: Schema = encoder.schema
    bounds = schema.target_bounds
    if bounds is not None:
        known["target_bound"] = known["bounds_y"] = bounds
        if len(schema.targets) > 1:
            # Models of diffprivlib take all lower ends, then all upper ones.
            known["bounds_y"] = tuple(zip(*bounds, strict=True))
    if schema.target_labels is not None:
        known["classes"] = schema.target_labels
    return known


def _check_labels(estimator: Any, schema: Schema) -> None:
    """Raise if a classifier lacks labels of the schema, or would read them from the targets."""
    if not has_cost(estimator) or not is_classifier(estimator):
        return
    declared, labels = declared_labels(estimator), schema.target_labels
    if declared is None and schema.target_bounds is not None:
        if len(schema.targets) > 1:
            raise ValueError(
                "schema must name labels for a classifier; got ranges of several targets."
            )
        low, high = schema.target_bounds
        raise ValueError(_NO_LABELS.format(low=low, high=high))
    if declared is not None and labels is not None:
        n_absent = sum(label not in declared for label in labels)
        if n_absent:
            raise ValueError(_OTHER_LABELS.format(n_absent=n_absent, n_labels=len(labels)))


def _told(estimator: Any, known: dict[str, Any] | None) -> dict[str, Any]:
    """Return the unset parameters of a private estimator that a schema can set, if any."""
    if not has_cost(estimator):
        raise no_profile(estimator)
    known = {"target_bound": None} if known is None else known
    # If an object wraps a model, the parameters of the model.
    prefix = getattr(type(estimator), "_model_prefix", "")
    own = own_parameters(getattr(estimator, prefix.removesuffix("__")) if prefix else estimator)
    is_open = {name for name, value in own.items() if value is None}
    if "target_bound" in is_open - set(known) and not hasattr(estimator, "_has_optional_bound"):
        has_labels = "classes" in known
        raise ValueError(_LABELS_FOR_NUMBERS if has_labels else _NO_BOUND)
    found = {f"{prefix}{name}": value for name, value in known.items() if name in is_open}
    if prefix:
        # Parameters that the wrapper leaves open, such as the range of intervals.
        outer = own_parameters(estimator).items()
        found |= {name: known[name] for name, value in outer if value is None and name in known}
    return found
