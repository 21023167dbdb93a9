"""Findings about steps of pipelines: what they keep, whom they tell, and what they must not do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune.base import ADD_OR_REMOVE, neighbouring_of
from skdptune.checks._finding import Finding, issue, tip
from skdptune.checks._subject import ANY_FEATURES, Part, Subject
from skdptune.preprocessing import as_schema

_FEW_ROWS = 4


def findings_of_steps(subject: Subject) -> Iterator[Finding]:
    """Find what steps keep, show or read beside what they are paid for."""
    for part in subject.parts:
        if isinstance(part.estimator, FunctionTransformer):
            yield from _of_function(part, subject.n_features)
        if part.is_composition:
            yield from _of_composition(part, subject.is_search)
    for part in subject.private_parts:
        yield from _of_labels(part, subject)
        yield from _of_bounds(part, subject)
        yield from _of_repetition(part)
        yield from _of_neighbours(part)
    yield from _of_schema(subject)


def _of_function(part: Part, n_features: int | None) -> Iterator[Finding]:
    """SKP018: a function is tried on made-up rows, and is otherwise taken at the user's word."""
    function = part.own["func"]
    if function is None or isinstance(function, np.ufunc):
        return
    name = getattr(function, "__name__", type(function).__name__)
    if _mixes_rows(part.estimator, n_features or ANY_FEATURES):
        found = f"{name} changes a made-up row by what other rows hold"
        yield issue("SKP018", part.at("func"), found, "FunctionTransformer(np.log1p)")
        return
    found = f"nobody can vouch that {name} treats each record by itself"
    fix = "a NumPy ufunc, such as np.log1p, or look whether it uses a mean, a rank or an order"
    yield tip("SKP018", part.at("func"), found, fix)


def _mixes_rows(step: Any, n_features: int) -> bool:
    """Return whether a function gives made-up rows other values together than one by one."""
    rows = np.random.default_rng(0).uniform(0.5, 2.0, size=(_FEW_ROWS, n_features))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = clone(step)
            together = np.asarray(made.transform(rows.copy()), dtype=float)
            single = [np.asarray(made.transform(row[None].copy()), dtype=float) for row in rows]
            alone = np.concatenate(single)
            return together.shape != alone.shape or not np.allclose(
                together, alone, equal_nan=True
            )
    except Exception:
        # It takes something else, such as a table with names: nothing is known.
        return False


def _of_composition(part: Part, in_search: bool) -> Iterator[Finding]:
    """SKP015: caches of transformed records, and times."""
    # A search fits copies without a cache.
    if (
        isinstance(part.estimator, Pipeline)
        and part.estimator.memory is not None
        and not in_search
    ):
        found = "transformed records are kept on disk, for everybody who may read the folder"
        yield issue("SKP015", part.at("memory"), found, "memory=None")
    if part.own.get("verbose") is True:
        found = "how long each step takes is printed, and can depend on a record"
        yield tip("SKP015", part.at("verbose"), found, "verbose=False")


def _of_labels(part: Part, subject: Subject) -> Iterator[Finding]:
    """SKP008: labels that nobody declares, or others than those of the schema."""
    if "classes" not in part.own or not is_classifier(part.estimator):
        return
    labels = None if subject.schema is None else subject.schema.target_labels
    fix = f"classes={labels if labels is not None else '[...]'}"
    declared = part.own["classes"]
    is_random = any(owner.own.get("n_public") is not None for owner in (part, subject.whole))
    if declared is None and is_random:
        found = "none are declared, and which labels a random part of others has is secret"
        yield issue("SKP008", part.at("classes"), found, fix)
    elif declared is None:
        found = "the labels are read off the data, and taken to be public"
        yield tip("SKP008", part.at("classes"), found, fix)
    elif labels is not None and {*map(str, declared)} != {*map(str, labels)}:
        found = "the schema names other labels; records with undeclared ones count for nothing"
        yield tip("SKP008", part.at("classes"), found, fix)


def _of_bounds(part: Part, subject: Subject) -> Iterator[Finding]:
    """SKP002: bounds that a step needs, where nothing refuses it before it is fitted."""
    known = {place for place, _ in (*subject.errors, *subject.refusals)}
    is_open = "bounds" in part.own and part.own["bounds"] is None
    if is_open and part.own.get("schema") is None and part.place not in known:
        found = "no bounds are given; the step must not read them off the data"
        yield issue("SKP002", part.at("bounds"), found, "bounds=(0, 120)")


def _of_repetition(part: Part) -> Iterator[Finding]:
    """SKP017: fits that go on from the last one."""
    if part.own.get("warm_start") is True:
        found = "each fit goes on from the last one, and costs as much again"
        yield issue("SKP017", part.at("warm_start"), found, "warm_start=False")
    elif hasattr(part.estimator, "partial_fit"):
        found = "each call of partial_fit costs as much as a fit, and no report adds them"
        fix = "fit, once; or PrivacyLedger(...).reserve before each call"
        yield tip("SKP017", part.at("partial_fit"), found, fix)


def _of_neighbours(part: Part) -> Iterator[Finding]:
    """SKP012: a relation other than adding or removing one record."""
    try:
        relation = neighbouring_of(part.estimator)
    except TypeError:
        return
    if relation != ADD_OR_REMOVE:
        found = f"the guarantee is about neighbours that {relation}"
        fix = "compare its epsilon with others of the same neighbours alone"
        yield tip("SKP012", part.place, found, fix)


def _of_schema(subject: Subject) -> Iterator[Finding]:
    """SKP009: a schema that is given and that no step uses, or another than a step has."""
    if subject.schema is None:
        return
    used = [part for part in subject.parts if part.own.get("schema") is not None]
    if not used:
        found = "no step uses the schema: words, dates and gaps of the table are not encoded by it"
        fix = "make_private_pipeline(estimator, schema)"
        yield tip("SKP009", subject.name, found, fix)
    for part in used:
        try:
            is_same = as_schema(part.own["schema"]) == subject.schema
        except (TypeError, ValueError):
            continue
        if not is_same:
            found = "it has another schema than the one that is given here"
            yield tip("SKP009", part.at("schema"), found, "TableEncoder(schema)")
