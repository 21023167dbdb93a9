"""A private estimator for tables of one's own, in one step."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from skdptune.base import has_cost, no_profile, own_parameters, together
from skdptune.preprocessing._schema import Schema, as_schema
from skdptune.preprocessing._table_encoder import TableEncoder

_NO_BOUND = (
    "schema must describe the target of a regression by its range, such as target=(0, 100), or "
    "the estimator must have its target_bound; got neither."
)


def make_private_pipeline(estimator: Any, schema: Any, *, n_knots: int | None = 5) -> Pipeline:
    """Make a pipeline that encodes a table by its public schema and fits a private estimator.

    The estimator is told what the schema knows, where its own parameters do not say it: the bound
    on the norm of a row (``data_norm``), the labels (``classes``) and the bound on the targets of
    a regression (``target_bound``). The whole costs what the estimator costs.

    Parameters
    ----------
    estimator : estimator
        A private estimator; it is copied. Of a search, put the pipeline inside.
    schema : Schema, dict or str
        See `TableEncoder`.
    n_knots : int or None, default=5
        See `TableEncoder`.

    Returns
    -------
    Pipeline
        Of the steps "tableencoder" and the estimator's class in small letters, as
        scikit-learn's ``make_pipeline`` names them, so that a search over `C` is one over
        ``"dplogisticregression__C"``.

    Raises
    ------
    NoProfileError
        If the estimator is not private. The message names its private counterpart.
    ValueError
        If the schema is wrong, or a regression's target has no range.

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
    encoder = TableEncoder(schema, n_knots)
    # All that is wrong at once, with the names of the steps to come.
    problems: list[tuple[str, Exception]] = []
    known: dict[str, Any] = {}
    try:
        known = _known(as_schema(schema))
        known["data_norm"] = encoder.data_norm
    except (TypeError, ValueError) as error:
        problems.append(("tableencoder", error))
    name = type(estimator).__name__.lower()
    if not has_cost(estimator):
        problems.append((name, no_profile(estimator)))
        raise together(problems) from None
    missing = {
        name: value
        for name, value in own_parameters(estimator).items()
        if value is None and name in ("classes", "data_norm", "target_bound")
    }
    if "target_bound" in missing and "target_bound" not in known and known:
        problems.append((name, ValueError(_NO_BOUND)))
    if problems:
        raise together(problems) from None
    told = {parameter: known[parameter] for parameter in missing if parameter in known}
    return make_pipeline(encoder, clone(estimator).set_params(**told))


def _known(schema: Schema) -> dict[str, Any]:
    """Return parameters of estimators that a schema's target sets."""
    known: dict[str, Any] = {}
    if schema.target_bounds is not None:
        known["target_bound"] = max(map(abs, schema.target_bounds))
    if schema.target_labels is not None:
        known["classes"] = schema.target_labels
    return known
