"""No message shows the content of an argument, since a table may be passed as any of them.

The source of the package is read for texts that quote an object, and every public callable is
given tables in place of each argument.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import logging
import math
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skdptune
from skdptune._formatting import shown, shown_names, shown_params
from tests.fuzz import recipes, run
from tests.structure import Module, our_modules

# The content of a record, as text and as a number; composed here, so that it is in no source file.
WORD, NUMBER = "SECRET-" + "7731", float("771.2" + "345")
SIZE = 30


# How a value is shown --------------------------------------------------------------------------


VALUES: list[tuple[Any, str]] = [
    *((None, "None"), (True, "True"), (-1.5, "-1.5"), (3, "3"), ("max", "'max'")),
    (np.str_("max"), "'max'"),
    ((1.0, 0.0), "(1.0, 0.0)"),
    ((0.1, 10, "log"), "(0.1, 10, 'log')"),
    ((7,), "(7,)"),
    ((), "tuple of length 0"),
    ((1, 2, 3, 4), "tuple of length 4"),
    ((1, [WORD]), "tuple of length 2"),
    ([WORD, NUMBER], "list of length 2"),
    ({"a": WORD}, "dict of length 1"),
    ({WORD}, "set of length 1"),
    (np.full((3, 2), NUMBER), "ndarray of shape (3, 2)"),
    (np.array(NUMBER), "ndarray of shape ()"),
    (pd.Series([NUMBER]), "Series of shape (1,)"),
    (pd.DataFrame({"a": [WORD]}), "DataFrame of shape (1, 1)"),
    (sparse.eye(2).tocsr(), "csr_matrix of shape (2, 2)"),
    (WORD * 50, "str of 550 characters"),
    (f"{WORD}\n{WORD}", "str of 23 characters"),
    (WORD.encode(), "bytes of length 11"),
    (np.bytes_(WORD), "bytes_ of shape ()"),
    (10**5000, "int"),
    (ValueError(WORD), "ValueError"),
    (ValueError, "the class ValueError"),
    (lambda: WORD, "function"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[text for _, text in VALUES])
def test_a_value_is_shown_without_what_it_holds(value: Any, text: str) -> None:
    assert shown(value) == text


class Rude:
    """An object whose every attribute contains a record, or fails."""

    shape = property(lambda self: 1 / 0)

    def __repr__(self) -> str:
        return WORD

    __str__ = __repr__

    def __len__(self) -> int:
        raise ValueError(WORD)


def test_an_object_is_not_asked_what_it_is() -> None:
    assert shown(Rude()) == "Rude"
    assert shown_params({"C": 1.0, "step": Rude()}) == "C=1.0, step=Rude"
    assert shown_names(["C", Rude()]) == "'C', Rude"
    assert shown_names(range(1000)).endswith("38, 39, and 960 more")


# The source ------------------------------------------------------------------------------------

# Methods that show an object to its owner, and names of attributes.
OWN_TEXTS = {"__repr__", "__str__", "__get__", "__getattr__", "__setattr__", "__delattr__"}
# Texts that quote something other than an argument, by module and expression, with the reason.
ALLOWED = {
    ("skdptune._formatting", "repr"): "of numbers and short words, which it has checked",
    ("skdptune.accounting._statement", "repr"): "of a number, in a file that is asked for",
    ("skdptune.inspection._grid_scores", "repr"): "a key, which is not shown",
    ("skdptune.linear_model._private_classifier", "repr"): "a key, which is not shown",
    ("skdptune.model_selection._adaptive", "repr"): "of settings, in the user's storage",
    ("skdptune.model_selection._choosing", "value"): "a key, which is not shown",
    ("skdptune.model_selection._cost._candidates", "repr"): "a key, which is not shown",
    ("skdptune.model_selection._space", "repr"): "of settings, in the storage",
    ("skdptune.model_selection._running._runs", "repr"): "of an error, for diagnostics=True",
    ("skdptune.model_selection._search", "repr"): "of words that an estimator suggests",
    ("skdptune.preprocessing._schema", "repr"): "a key, which is not shown",
    ("skdptune.model_selection._pareto._result", "self"): "two numbers, checked",
    ("skdptune.testing._published", "repr"): "a key, which is not shown",
    ("skdptune.preprocessing._table._frames", "repr"): "of cells that the user says are public",
}
# The place of a ledger is a str, checked, and as long as paths are.
PLACES = {"location", "path", "self.path", "self.location", "self._location", "storage.location"}
# Types whose values cannot contain a record.
PLAIN = {
    "str",
    "int",
    "float",
    "bool",
    "None",
    "RunCountDistribution",
    "tuple[int, ...]",
    "tuple[int, int]",
}


def quotes(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the expression of every text in a module that may quote an object."""
    for node, parents in _with_parents(module.tree):
        functions = [each for each in parents if isinstance(each, ast.FunctionDef)]
        if any(each.name in OWN_TEXTS for each in functions):
            continue
        if isinstance(node, ast.FormattedValue):
            text = ast.unparse(node.value)
            is_message = any(map(_is_message, parents))
            if node.conversion != -1 and not text.strip("_").isupper() and text != "__name__":
                yield node.lineno, text
            elif is_message and node.format_spec is None and _is_raw(node.value, parents):
                yield node.lineno, text
        elif isinstance(node, ast.Name) and node.id in ("repr", "ascii", "reprlib"):
            around = parents[-2] if isinstance(parents[-1], ast.Call) else None
            # The shortest decimal that reads back as a number.
            if not (isinstance(around, ast.Call) and _name(around) in ("Decimal", "Fraction")):
                yield node.lineno, node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_docstring = isinstance(parents[-1], ast.Expr)
            if not is_docstring and any(each in node.value for each in ("%r", "!r}", "!s}")):
                yield node.lineno, node.value


def _with_parents(
    node: ast.AST, parents: tuple[ast.AST, ...] = ()
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    yield node, parents
    for child in ast.iter_child_nodes(node):
        yield from _with_parents(child, (*parents, node))


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _is_message(node: ast.AST) -> bool:
    """Return whether a node raises, warns, or makes an error or a line of a log."""
    if isinstance(node, ast.Raise):
        return True
    logs = ("warn", "say", "debug", "info", "warning", "error", "exception", "Refusal")
    return isinstance(node, ast.Call) and (_name(node) in logs or _name(node).endswith("Error"))


def _is_raw(value: ast.expr, parents: tuple[ast.AST, ...]) -> bool:
    """Return whether an expression is an argument of no plain type, as it was given."""
    if isinstance(value, ast.Name):
        functions = [each for each in parents if isinstance(each, ast.FunctionDef)]
        return any(_takes(each, value.id) for each in functions[-1:])
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self":
        classes = [each for each in parents if isinstance(each, ast.ClassDef)]
        made = [each for one in classes[-1:] for each in one.body if _is_init(each)]
        return any(_takes(each, value.attr) for each in made)
    return False


def _is_init(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def _takes(function: ast.AST, name: str) -> bool:
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if each.arg == name:
            words = ast.unparse(each.annotation).split(" | ") if each.annotation else ["Any"]
            return not set(words) <= PLAIN
    return False


def complaints(name: str, module: Module) -> list[str]:
    return [
        f"{name}:{line}: {text}"
        for line, text in quotes(module)
        if (name, text) not in ALLOWED
        and not (name.startswith("skdptune.ledger.") and text in PLACES)
    ]


def test_messages_quote_no_argument() -> None:
    found = [line for name, each in our_modules().items() for line in complaints(name, each)]
    assert found == [], "use skdptune._formatting.shown"


def test_every_exception_is_needed() -> None:
    found = {(name, text) for name, module in our_modules().items() for _, text in quotes(module)}
    assert set(ALLOWED) <= found


@pytest.mark.parametrize(
    "line",
    [
        'raise ValueError(f"x must be a number; got {x!r}.")',
        'raise ValueError(f"x must be a number; got {x!r:.60}.")',
        'raise ValueError(f"x must be a number; got {x}.")',
        'warnings.warn(f"got {x}")',
        'text = "got " + repr(x)',
        'text = ", ".join(map(repr, x))',
        'text = "got %r" % x',
        'text = "got {!r}".format(x)',
    ],
)
def test_a_line_that_quotes_an_argument_is_found(line: str) -> None:
    assert complaints("m", Module(Path("m.py"), ast.parse(f"def f(x: Any):\n    {line}\n")))
    safe = line.replace("{x!r:.60}", "{shown(x)}").replace("{x!r}", "{shown(x)}")
    safe = safe.replace("{x}", "{shown(x)}").replace("repr(x)", "shown(x)")
    safe = safe.replace("map(repr, x)", "map(shown, x)").replace("%r", "%d").replace("!r", "")
    assert not complaints("m", Module(Path("m.py"), ast.parse(f"def f(x: Any):\n    {safe}\n")))


# Errors, warnings and output -----------------------------------------------------------


def tables() -> dict[str, Any]:
    """Return tables of all kinds, in which every record contains the secret word or number."""
    mixed = [WORD if place % 2 else NUMBER for place in range(SIZE)]
    columns = {"name": [WORD] * SIZE, "income": [NUMBER] * SIZE}
    return {
        "frame": pd.DataFrame(columns),
        "words": pd.Series([WORD] * SIZE),
        "numbers": pd.Series([NUMBER] * SIZE),
        "array": np.array([[WORD, NUMBER]] * SIZE, dtype=object),
        "vector": np.full(SIZE, NUMBER),
        "labels": [WORD] * SIZE,
        "values": [NUMBER] * SIZE,
        "rows": [[WORD, NUMBER]] * SIZE,
        "records": [(WORD, NUMBER)] * SIZE,
        "columns": columns,
        "by index": dict(enumerate(mixed)),
    }


# Every argument and method gets one kind of table in turn; in the nightly run, all eleven.
SHARES = pytest.mark.parametrize("share", [11, pytest.param(1, marks=pytest.mark.slow)])


def tables_in_turn(place: int, share: int) -> dict[str, Any]:
    """Return every table of this share, from a place on."""
    return dict(list(tables().items())[place % share :: share])


@contextlib.contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the errors of a call (including chained ones), its warnings, output and logs."""
    texts: list[str] = []
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),
        ):
            warnings.simplefilter("always")
            try:
                yield texts
            except Exception as error:
                texts.append("".join(traceback.format_exception(error)))
    finally:
        logging.getLogger().removeHandler(handler)
    texts += [str(each.message) for each in caught]
    texts.append(stream.getvalue())


def leaks(call: Callable[[], Any]) -> list[str]:
    """Return the lines of a call's messages that contain the secret word or number."""
    with heard() as texts:
        call()
    lines = "\n".join(texts).splitlines()
    return [line for line in lines if WORD in line or str(NUMBER) in line]


def proper_arguments(name: str, thing: Any) -> dict[str, Any]:
    """Return valid arguments of a public callable."""
    found = recipes.recipe(name, thing)
    return {key: run._fresh(key, values[0]) for key, values in found.items()}


def proper_data() -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(0).normal(size=(24, 2)), np.arange(24) % 2


def use(name: str, thing: Any, given: dict[str, Any]) -> None:
    """Call something with arguments; fit, plan, check and draw the result if possible."""
    made = run.made_of(thing, given)
    uses: list[Callable[[], Any]] = []
    if recipes.is_estimator(thing):
        uses += [
            lambda: made.plan(24, 2),
            lambda: skdptune.check(made, n_samples=24),
            lambda: made.privacy_profile(24, 2),
            lambda: made.fit(*proper_data()),
        ]
    if hasattr(made, "plot"):
        uses.append(lambda: made.plot())
    for each in uses:
        # After an error, the others are still tried.
        with heard() as texts:
            each()
        print("\n".join(texts))


NAMES = sorted(name for name, _ in recipes.public_callables())


@SHARES
@pytest.mark.parametrize("name", NAMES)
def test_no_message_shows_a_table_that_lands_in_an_argument(
    name: str, share: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    thing = dict(recipes.public_callables())[name]
    for place, key in enumerate(inspect.signature(thing).parameters):
        for kind, table in tables_in_turn(NAMES.index(name) + place, share).items():
            given = proper_arguments(name, thing) | {key: table}
            assert leaks(lambda given=given: use(name, thing, given)) == [], (key, kind)


ESTIMATORS = [pair for pair in recipes.public_callables() if recipes.is_estimator(pair[1])]


@SHARES
@pytest.mark.parametrize(("name", "thing"), ESTIMATORS, ids=[name for name, _ in ESTIMATORS])
def test_no_message_shows_a_table_that_lands_in_a_method(
    name: str, thing: Any, share: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = proper_data()
    fitted = run.made_of(thing, proper_arguments(name, thing))
    with heard():
        fitted.fit(X, y)
    for kind, table in tables().items():
        made = run.made_of(thing, proper_arguments(name, thing))
        calls: dict[str, Callable[[], Any]] = {
            "X": lambda made=made, table=table: made.fit(table, y),
            "y": lambda made=made, table=table: made.fit(X, table),
            "table": lambda made=made, table=table: made.fit(table),
            "groups": lambda made=made, table=table: made.fit(X, y, groups=table),
            "X_val": lambda made=made, table=table: made.fit(X, y, X_val=table, y_val=table),
            "n_samples": lambda made=made, table=table: made.privacy_profile(table),
            "plan": lambda made=made, table=table: made.plan(table, table),
            "check": lambda made=made, table=table: skdptune.check(made, n_samples=table),
            "unknown": lambda made=made, table=table: made.set_params(unknown=table),
            "predict": lambda table=table: fitted.predict(table),
            "transform": lambda table=table: fitted.transform(table),
            "score": lambda table=table: fitted.score(X, table),
        }
        for place, (way, call) in enumerate(calls.items()):
            if kind in tables_in_turn(NAMES.index(name) + place, share):
                assert leaks(call) == [], (way, kind)


# Tracebacks ------------------------------------------------------------------------------------


class _WrongCall(skdptune.DPRidge):
    def _check_parameters(self, *_: Any) -> None:
        """Fail like a bug of the package."""
        math.sqrt("no number")  # type: ignore[arg-type]


class _OwnRegression(skdptune.DPRidge):
    def fit(self, X: Any, y: Any, groups: Any = None) -> Any:
        """Fail in code that is not the package's."""
        json.loads("no json")
        return self


@pytest.mark.parametrize(
    ("estimator", "text", "n_frames"),
    [
        (skdptune.DPLogisticRegression(epsilon="1", delta=1e-5), "epsilon must be", 1),
        (skdptune.DPRidge(epsilon=1.0, delta=1e-5), "target_bound must be", 1),
        (skdptune.DPStandardScaler(epsilon=1.0, delta=2.0, bounds=(0, 1)), "delta must be", 1),
        (
            skdptune.DPRandomSearchCV(skdptune.DPLogisticRegression(), epsilon=1.0, delta=True),
            "delta must be",
            1,
        ),
        (
            skdptune.DPGridSearchCV(
                skdptune.DPLogisticRegression(), {"Q": [1]}, epsilon=1.0, delta=1e-5
            ),
            "must name parameters",
            1,
        ),
        # If the failure is not that of a check, all frames are needed.
        (_OwnRegression(), "Expecting value", 2),
        (_WrongCall(), "must be real number", 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_about_an_argument_shows_one_frame(
    estimator: Any, text: str, n_frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(SIZE, 3))

    def frames_of_ours() -> int:
        with pytest.raises((TypeError, ValueError), match=text) as caught:
            estimator.fit(X, (X[:, 0] > 0).astype(int))
        here = Path(skdptune.__file__).parent
        return sum(here in frame.path.parents for frame in caught.traceback)  # type: ignore[union-attr]

    monkeypatch.delenv("SKDPTUNE_TRACEBACKS", raising=False)
    assert frames_of_ours() == n_frames
    monkeypatch.setenv("SKDPTUNE_TRACEBACKS", "full")
    assert frames_of_ours() >= 2


TABLE = pd.DataFrame({"age": [30.0, 40.0] * 20, "ward": ["surgery", "medicine"] * 20})
SCHEMA = {"age": (0, 100), "ward": ["surgery", "medicine"]}
ENCODED = skdptune.make_private_pipeline(skdptune.DPLogisticRegression(), SCHEMA)
SEARCH = skdptune.DPRandomSearchCV(ENCODED, epsilon=1.0, delta=1e-5)
LABELS = np.array([0, 1] * 20)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: SEARCH.fit("a table", LABELS),
            "^X must be an array-like, such as a table in memory; got str",
        ),
        (lambda: SEARCH.fit(TABLE, "outcome"), "^y must be an array-like, .*; got str"),
        (
            lambda: SEARCH.fit(7, LABELS),
            "^X must be an array-like, such as a table in memory; got int",
        ),
        (lambda: SEARCH.fit(TABLE, LABELS[1:]), "^y must be as long as X; got 39 targets for 40"),
        (lambda: SEARCH.plan(TABLE), "^n_samples must be an integer"),
        (lambda: ENCODED.fit(TABLE.rename(columns={"age": "aeg"}), LABELS), "did you mean 'age'"),
        (lambda: ENCODED.fit("a table", LABELS), "^X must be a DataFrame"),
        (
            lambda: skdptune.make_private_pipeline("classifier", SCHEMA),
            "^schema must describe the target",
        ),
        (
            lambda: skdptune.PrivateThreshold(skdptune.DPLogisticRegression(), at_least=0.8).fit(
                "a table", LABELS
            ),
            "^X must be an array-like",
        ),
    ],
)
def test_a_wrong_table_or_target_shows_one_frame(
    call: Callable[[], object], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SKDPTUNE_TRACEBACKS", raising=False)
    with pytest.raises((TypeError, ValueError), match=text) as caught:
        call()
    here = Path(skdptune.__file__).parent
    ours = [here in frame.path.parents for frame in caught.traceback]  # type: ignore[union-attr]
    assert sum(ours) == 1
