"""Checks of scripts and notebooks: their code is read, and never run.

The reader follows the values of names through assignments and calls. A *mark* is something that
would leak if it met a private model: a scaler, or the largest value of a column. It becomes a
finding when it is part of a private pipeline, of a public schema, or of rows that a private model
is fitted to. Code without private models has no findings.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from skdptune._formatting import shown
from skdptune.base._shared import Refusal, distrusted_name, refusal_of_name
from skdptune.checks._check import (
    LARGE_DELTA,
    LARGE_EPSILON,
    PERSONS_UNNAMED,
    code_of_refusal,
    is_of_scores,
    looks_like_a_person,
)

_PRIVATE = re.compile(r"(DP\w+|Private\w+|\w+LinearRegression|\w+SearchCV|make_private_pipeline)$")
_NOT_MODELS = ("skdptune.accounting", "skdptune.audit", "skdptune.inspection", "skdptune.testing")
# Calls whose result depends on all records, by the code of what it becomes part of.
_NAMES = {
    "SKP001": "mean std var median nanmean nanstd nanmedian cov corr corrcoef scale fit_resample",
    "SKP002": "min max amin amax nanmin nanmax ptp quantile percentile nanquantile nanpercentile "
    "describe qcut norm minmax_scale",
    "SKP009": "unique value_counts get_dummies factorize mode set",
    "SKP018": "rank rolling expanding ewm cumsum shift interpolate ffill bfill",
}
_STATISTICS = {name: code for code, names in _NAMES.items() for name in names.split()}
_REMEDIES = {
    "SKP001": ("is a statistic of private rows", "Use TableEncoder(schema) or DPStandardScaler."),
    "SKP002": ("reads a bound off private rows", "Give a range from public knowledge."),
    "SKP009": ("reads categories off private rows", "List them from public knowledge."),
    "SKP018": ("makes rows depend on other rows", "Compute each row from its own values."),
}
# Steps that learn nothing with this parameter, unless it has one of the values below.
_DECLARED = {
    "OneHotEncoder": "categories",
    "OrdinalEncoder": "categories",
    "CountVectorizer": "vocabulary",
    "TfidfVectorizer": "vocabulary",
    "TfidfTransformer": "use_idf",
    "GaussianRandomProjection": "n_components",
    "SparseRandomProjection": "n_components",
    "SplineTransformer": "knots",
    "RBFSampler": "gamma",
    "SimpleImputer": "strategy",
}
_LEARNT = ("auto", "mean", "median", "most_frequent", "uniform", "quantile", "scale", True, None)
# Functions of scikit-learn that return exact scores, by the beginning of their names.
_SCORING = ("cross_val", "learning_curve", "validation_curve", "permutation_")
# Values that an enclosing search of this package replaces.
_SET_BY_SEARCH = ("SKP005", "SKP015")
_SEARCH_ONCE = "Use a search of skdptune, which pays for all fits and scores."


@dataclass(frozen=True, order=True)
class SourceFinding:
    """A finding in a script or a notebook.

    Attributes
    ----------
    place : str
        The file, and the cell of a notebook.
    line, column : int
        Where it is, counted from 1.
    code : str
        Its code.
    message : str
        What was found, and what to do.
    """

    place: str
    line: int
    column: int
    code: str
    message: str

    def __str__(self) -> str:
        """Return the finding in one line, in the manner of ruff."""
        return f"{self.place}:{self.line}:{self.column}: {self.code} {self.message}"


@dataclass(frozen=True)
class _Value:
    """The known facts about a value: its kinds, its marks, and the rows that it was fitted to.

    Marks of a frozen step count only where it meets the rows that it was fitted to.
    """

    kinds: frozenset[str] = frozenset()
    marks: frozenset[SourceFinding] = frozenset()
    rows: frozenset[str] = frozenset()
    frozen: frozenset[tuple[str, SourceFinding]] = frozenset()

    def __or__(self, other: _Value) -> _Value:
        rows, frozen = self.rows | other.rows, self.frozen | other.frozen
        return _Value(self.kinds | other.kinds, self.marks | other.marks, rows, frozen)

    @property
    def is_private(self) -> bool:
        return "private" in self.kinds

    def recoded(self, codes: Collection[str], code: str) -> _Value:
        """Return the value with another code for some marks."""
        marks = {replace(m, code=code) if m.code in codes else m for m in self.marks}
        return replace(self, marks=frozenset(marks))


class _Reader(ast.NodeVisitor):
    """Reads statements in their order, and collects findings."""

    def __init__(self) -> None:
        self.place = ""
        self.found: set[SourceFinding] = set()
        # Marks that are findings unless a search of this package contains them.
        self.open: set[SourceFinding] = set()
        self.has_ledger = False
        self._names: dict[str, _Value] = {}
        self._nodes: dict[str, ast.expr] = {}
        self._origins: dict[str, str] = {}
        self._stars: list[str] = []
        self._loops = 0
        self._returned = _Value()

    def read(self, place: str, tree: ast.AST) -> None:
        self.place = place
        self.visit(tree)

    def mark(self, node: ast.AST, code: str, found: str, fix: str) -> SourceFinding:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        return SourceFinding(self.place, line, column, code, f"{found}. {fix}")

    def report(self, node: ast.AST, code: str, found: str, fix: str) -> None:
        self.found.add(self.mark(node, code, found, fix))

    # Statements -------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name if alias.asname else alias.name.partition(".")[0]
            self._origins[alias.asname or root] = root

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            # Only modules of these two are imported to find their names.
            if alias.name == "*" and str(node.module).partition(".")[0] in ("sklearn", "skdptune"):
                self._stars.append(str(node.module))
            self._origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer = self._names, self._loops, self._returned
        self._names, self._loops, self._returned = dict(self._names), 0, _Value()
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                self._assign(ast.Name(argument.arg), _Value())
        for statement in node.body:
            self.visit(statement)
        found = self._returned
        self._names, self._loops, self._returned = outer
        self._names[node.name] = found

    def visit_Return(self, node: ast.Return) -> None:
        # The value is read first: it may be a fit, which changes what is returned.
        value = self.value(node.value)
        self._returned |= value

    def visit_For(self, node: ast.For) -> None:
        self._assign(node.target, self.value(node.iter))
        self._looped(node.body)

    def visit_While(self, node: ast.While) -> None:
        self.value(node.test)
        self._looped(node.body)

    def _looped(self, body: Sequence[ast.AST]) -> None:
        self._loops += 1
        for statement in body:
            self.visit(statement)
        self._loops -= 1

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._assign(target, value, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._assign(node.target, self.value(node.value), node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._assign(node.target, self.value(node.target) | self.value(node.value))

    def visit_withitem(self, node: ast.withitem) -> None:
        value = self.value(node.context_expr)
        if node.optional_vars is not None:
            self._assign(node.optional_vars, value)

    def generic_visit(self, node: ast.AST) -> None:
        """Read an expression as a value; visit the parts of other statements."""
        if isinstance(node, ast.expr):
            self.value(node)
        else:
            super().generic_visit(node)

    def _assign(self, target: ast.AST, value: _Value, node: ast.expr | None = None) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
            self._nodes.pop(target.id, None)
            if node is not None:
                self._nodes[target.id] = node
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._assign(each, value)
        elif (name := _root(target)) is not None:
            # A column or an attribute is set: the rest of the object stays as it is.
            self._names[name] = self._names.get(name, _Value()) | value

    # Values -----------------------------------------------------------------------------------

    def value(self, node: ast.AST | None) -> _Value:
        """Return what is known of an expression; report what its calls show."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, _Value())
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Attribute):
            value = self.value(node.value)
            return _Value(frozenset({"released"})) if value.is_private else value
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self._comprehended(node)
        inside = self._together(ast.iter_child_nodes(node)) if node is not None else _Value()
        if isinstance(node, ast.NamedExpr):
            self._assign(node.target, inside, node.value)
        return inside

    def _comprehended(self, node: Any) -> _Value:
        for each in node.generators:
            self._assign(each.target, self.value(each.iter))
        self._loops += 1
        found = self._together(ast.iter_child_nodes(node))
        self._loops -= 1
        return found

    def _together(self, nodes: Iterable[ast.AST]) -> _Value:
        found = _Value()
        for node in nodes:
            found |= self.value(node)
        return found

    def origin(self, node: ast.AST) -> str:
        """Return the dotted name of what an expression refers to; "" if it is a value."""
        if isinstance(node, ast.Attribute):
            root = self.origin(node.value)
            return f"{root}.{node.attr}" if root else ""
        if not isinstance(node, ast.Name) or node.id in self._names:
            return ""
        if node.id in self._origins:
            return self._origins[node.id]
        homes = (module for module in self._stars if node.id in _names_in(module))
        home = next(homes, "")
        return f"{home}.{node.id}" if home else ""

    def _resolved(self, node: ast.expr) -> ast.expr:
        """Return the expression that a name was last assigned."""
        return self._nodes.get(node.id, node) if isinstance(node, ast.Name) else node

    def _constant(self, node: ast.expr) -> Any:
        """Return a literal, or infinity; a value that equals nothing for other expressions."""
        node = self._resolved(node)
        if ast.unparse(node) in ("np.inf", "numpy.inf", "math.inf", "float('inf')"):
            return math.inf
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            return math.nan

    # Calls ------------------------------------------------------------------------------------

    def _called(self, node: ast.Call) -> _Value:
        origin, name = self.origin(node.func), _last(node.func)
        arguments = self._together(node.args)
        for keyword in node.keywords:
            value = self.value(keyword.value)
            is_label = keyword.arg in ("classes", "labels", "target")
            arguments |= value.recoded(("SKP009",), "SKP008") if is_label else value
            self.has_ledger |= keyword.arg == "ledger"
        self.has_ledger |= name == "PrivacyLedger"
        if isinstance(node.func, ast.Attribute) and not origin:
            return self._method(node, node.func, arguments)
        if self._is_statistic(node, origin, name):
            return arguments | self._statistic(node, name)
        if not origin:
            # A function of the script: it may return, or fit, a private model.
            self._check_repeated(node, self.value(node.func), name)
            return arguments | self._without_fits(self.value(node.func))
        return self._made(node, origin, name, arguments)

    def _method(self, node: ast.Call, method: ast.Attribute, arguments: _Value) -> _Value:
        owner, name = self.value(method.value), method.attr
        rows = ast.dump(node.args[0]) if node.args else ""
        if rows:
            arguments |= _Value(marks=frozenset(m for learnt, m in owner.frozen if learnt == rows))
        if owner.is_private and name in ("fit", "partial_fit", "fit_transform", "fit_predict"):
            self._report_marks(arguments)
            self._returned |= _Value(frozenset({"fits"}))
            if self._loops and not self.has_ledger:
                found = "a private model is fitted in a loop: each fit costs its epsilon again"
                self.report(node, "SKP010", found, f"{_SEARCH_ONCE} Or use a PrivacyLedger.")
            if name == "partial_fit":
                found = "each call of partial_fit costs as much as a fit"
                self.report(node, "SKP017", found, "Fit once, or reserve calls in a ledger.")
            fitted = replace(owner, rows=owner.rows | {rows})
            self._assign(method.value, fitted)
            return fitted
        if owner.is_private:
            return self._response(node, owner, name, rows)
        if "fits" in arguments.kinds and name in ("optimize", "map", "minimize"):
            self._check_repeated(node, arguments, name, is_repeated=True)
        if name.startswith("fit"):
            # A fitted object stays marked; rows that it transforms are marked as well.
            owner = replace(owner | arguments, rows=owner.rows | {rows})
            self._assign(method.value, owner)
        if "released" not in owner.kinds and self._is_statistic(node, "method", name):
            return owner | arguments | self._statistic(node, name)
        return owner | arguments

    def _response(self, node: ast.Call, owner: _Value, name: str, rows: str) -> _Value:
        """Return the value of a private model's method other than a fit."""
        if name in ("set_params", "set_fit_request"):
            return owner
        found = "an exact score on the rows of the fit is not paid for"
        mark = self.mark(node, "SKP006", found, "Publish best_score_ of a private search instead.")
        is_of_fit = bool(rows) and rows in owner.rows
        if name == "score" and is_of_fit:
            self.found.add(mark)
        return _Value(frozenset({"released"}), frozenset({mark} if is_of_fit else ()))

    def _made(self, node: ast.Call, origin: str, name: str, arguments: _Value) -> _Value:
        """Return the value of a call of something imported."""
        root = origin.partition(".")[0]
        is_ours = root == "skdptune" and not origin.startswith(_NOT_MODELS)
        if is_ours or root in ("diffprivlib", "interpret"):
            return self._of_private_library(node, origin, name, arguments)
        if ".metrics" in origin and not arguments.is_private:
            self.found |= {m for m in arguments.marks if m.code == "SKP006"}
            return _Value(frozenset({"released"}))
        if arguments.is_private and root != "skdptune":
            self._report_marks(arguments)
            if is_of_scores(name) or name.startswith(_SCORING):
                found = f"{name} around a private model: its scores and choices are not paid for"
                self.report(node, "SKP006", found, _SEARCH_ONCE)
            marks = [m for key in node.keywords if (m := self._cache(key)) is not None]
            self.open |= set(marks)
            return arguments | _Value(marks=frozenset(marks))
        refusal = refusal_of_name(name)
        if refusal is not None and root != "skdptune" and not self._is_declared(node, name):
            code = code_of_refusal(refusal)
            arguments |= _Value(marks=frozenset({self._refused(node, code, refusal)}))
        if name == "FrozenEstimator":
            # Its content was learnt from public rows, as the reports of fits say, unless it
            # meets the same rows again.
            pairs = itertools.product(arguments.rows, arguments.marks)
            return _Value(arguments.kinds, frozen=arguments.frozen.union(pairs))
        if name == "FunctionTransformer":
            arguments = arguments.recoded(("SKP001", "SKP002", "SKP009"), "SKP018")
        return arguments

    def _of_private_library(
        self, node: ast.Call, origin: str, name: str, arguments: _Value
    ) -> _Value:
        self._report_marks(arguments)
        if name.endswith("SearchCV"):
            self.open -= arguments.marks
        root = origin.partition(".")[0]
        is_model = _PRIVATE.match(name) is not None or origin.startswith("diffprivlib.models")
        given = {key.arg: key.value for key in node.keywords if key.arg}
        marks = set()
        seed = self._resolved(given.get("random_state", ast.Constant(None)))
        # An unknown name may be None.
        if is_model and isinstance(seed, ast.Constant | ast.Call) and ast.unparse(seed) != "None":
            found = "random_state is given, which determines all noise"
            marks.add(self.mark(node, "SKP005", found, "Leave random_state=None."))
        self.open |= marks
        for keyword, value in given.items():
            self._check_number(value, keyword, name)
        if name == "Schema" and "person" not in given:
            self._check_persons(given.get("columns", next(iter(node.args), node)))
        plain = {key: self._constant(value) for key, value in given.items()}
        fault = distrusted_name(root, name, plain)
        if fault is not None:
            self.report(node, "SKP020", f"{name}: {fault.reason}", fault.instead)
        kinds = frozenset({"private"} if is_model else ())
        return arguments | _Value(kinds, frozenset(marks))

    def _check_persons(self, columns: ast.expr) -> None:
        """Report columns of a schema that hold ids, where no person is named."""
        found = self._resolved(columns)
        for key in found.keys if isinstance(found, ast.Dict) else ():
            name = None if key is None else self._constant(key)
            if key is not None and looks_like_a_person(name):
                fix = f"If persons recur, write Schema(..., person={shown(name)})."
                self.report(key, "SKP012", f"the column {shown(name)} {PERSONS_UNNAMED}", fix)

    def _check_number(self, node: ast.expr, name: str, owner: str) -> None:
        """Report settings that break or weaken the guarantee."""
        value, text = self._constant(node), ast.unparse(self._resolved(node))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        found, code, fix = "", "SKP016", ""
        if name == "epsilon" and is_number and value > LARGE_EPSILON:
            code = "SKP007" if math.isinf(value) else code
            found, fix = f"epsilon is {value:g}", "Use epsilon=1.0."
        elif name == "delta" and is_number and value >= LARGE_DELTA:
            found, fix = f"delta is {value:g}", "Use 1/(10 n) for n records, or less."
        elif name == "delta" and re.match(rf"1(\.0)? / {_SIZE}$", text):
            code, found = "SKP004", f"delta is {text}, one over the number of records"
            fix = "Use 1/(10 n) for n records, or less."
        elif name == "n_public" and re.match(f"{_SIZE}$", text):
            code, found = "SKP003", f"n_public is {text}, the number of records itself"
            fix = "Give the expected number, from public knowledge."
        elif (name, value) in (("diagnostics", True), ("error_score", "raise")):
            code, found = "SKP011", f"{name}={text} keeps or shows what no budget pays for"
            fix = "Use it only on public data."
        elif (name, value) == ("warm_start", True) and owner != "RandomRuns":
            code, found = "SKP017", "each fit with warm_start costs its epsilon again"
            fix = "Use warm_start=False."
        if found:
            self.report(node, code, found, fix)

    # Marks ------------------------------------------------------------------------------------

    def _report_marks(self, value: _Value) -> None:
        self.found |= {m for m in value.marks if m.code not in _SET_BY_SEARCH}

    def _refused(self, node: ast.AST, code: str, refusal: Refusal) -> SourceFinding:
        return self.mark(node, code, f"{refusal.got}: {refusal.reason}", refusal.remedy)

    def _is_declared(self, node: ast.Call, name: str) -> bool:
        given = [key.value for key in node.keywords if key.arg == _DECLARED.get(name, "")]
        return any(self._constant(value) not in _LEARNT for value in given)

    def _cache(self, keyword: ast.keyword) -> SourceFinding | None:
        if keyword.arg != "memory" or self._constant(keyword.value) is None:
            return None
        return self.mark(keyword.value, "SKP015", "memory keeps records on disk", "Leave it out.")

    def _is_statistic(self, node: ast.Call, origin: str, name: str) -> bool:
        """Return whether a call is a statistic of all rows, rather than one for each row."""
        is_builtin = not origin and hasattr(builtins, name)
        is_known = bool(origin) and not origin.startswith("skdptune")
        if name not in _STATISTICS or not (is_known or (is_builtin and len(node.args) == 1)):
            return False
        axes = [self._constant(key.value) for key in node.keywords if key.arg == "axis"]
        return not any(axis in (1, -1, "columns") for axis in axes)

    def _statistic(self, node: ast.Call, name: str) -> _Value:
        code = _STATISTICS[name]
        what, fix = _REMEDIES[code]
        return _Value(marks=frozenset({self.mark(node, code, f"{name}() {what}", fix)}))

    def _check_repeated(
        self, node: ast.Call, function: _Value, name: str, *, is_repeated: bool = False
    ) -> None:
        if "fits" in function.kinds and (is_repeated or self._loops) and not self.has_ledger:
            what = name or "a function"
            found = f"{what} is called many times, and fits a private model each time"
            self.report(node, "SKP006" if is_repeated else "SKP010", found, _SEARCH_ONCE)

    def _without_fits(self, value: _Value) -> _Value:
        # Calling a function that fits is itself a fit of the calling function.
        self._returned |= _Value(value.kinds & {"fits"})
        return replace(value, kinds=value.kinds - {"fits"})


_SIZE = r"(len\([^()]*\)|[\w.]+\.shape\[0\])"


def _last(node: ast.AST) -> str:
    """Return the last name of a dotted name; "" for other expressions."""
    return getattr(node, "attr", "") or getattr(node, "id", "")


def _root(node: ast.AST) -> str | None:
    """Return the variable that an attribute or an item belongs to."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


# Files ----------------------------------------------------------------------------------------

_NOQA = re.compile(r"#\s*noqa(?::\s*(?P<codes>[A-Z0-9, ]+))?", re.IGNORECASE)
_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w, ]+=\s*[%!].*|[\w.]+\?{1,2})$")


def check_source(path: Path) -> list[SourceFinding]:
    """Return the findings in a script or a notebook; its code is read, and not run.

    Parameters
    ----------
    path : Path
        A file whose name ends in ``.py`` or ``.ipynb``.

    Returns
    -------
    list of SourceFinding
        In the order of the lines, without those that ``# noqa: SKP001`` switches off.

    Raises
    ------
    ValueError
        If the file is not Python, or not a notebook.
    """
    reader, lines = _Reader(), {}
    for place, text in _cells(path):
        lines[place] = text.splitlines()
        try:
            reader.read(place, ast.parse(text))
        except (SyntaxError, RecursionError) as error:
            reason = getattr(error, "msg", "it is too deep")
            raise ValueError(f"{place} must be Python; got an error: {reason}.") from None
    order = {place: number for number, place in enumerate(lines)}
    found = sorted(reader.found | reader.open, key=lambda one: (order[one.place], one))
    return [one for one in found if not _is_off(one, lines[one.place])]


def _cells(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the code of a script, or of each cell of a notebook."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(
            f"{shown(str(path))} must be text in UTF-8; got something else."
        ) from None
    if path.suffix != ".ipynb":
        yield str(path), text
        return
    try:
        cells = [
            (cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]
        ]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{shown(str(path))} must be a notebook; got something else.") from None
    for number, (kind, code) in enumerate(cells, 1):
        if kind == "code" and not code.startswith("%%"):
            yield f"{path}:cell {number}", _without_magic(code)


def _without_magic(code: str) -> str:
    """Return the code of a cell without the lines that only notebooks understand."""
    try:
        ast.parse(code)
    except SyntaxError:
        return "\n".join(_MAGIC.sub(r"\1pass", line) for line in code.splitlines())
    return code


def _is_off(one: SourceFinding, lines: Sequence[str]) -> bool:
    comment = _NOQA.search(lines[one.line - 1]) if one.line <= len(lines) else None
    return comment is not None and (not comment["codes"] or one.code in comment["codes"].upper())


def _names_in(module: str) -> list[str]:
    """Return the names in a module; none if it cannot be imported."""
    try:
        return dir(import_module(module))
    except ImportError:
        return []
