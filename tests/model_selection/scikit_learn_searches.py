"""scikit-learn's searches as its own tests make them, with ours in their place.

The tests of scikit-learn make searches by scikit-learn's arguments, of estimators that are not
private, on ten records. So that they say something about ours, arguments are translated to what
our searches take, estimators are given a cost of nearly nothing, scores get noise of nearly
nothing, and a few records are taken many times over.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, _testing

from skdptune.accounting import PrivacyProfile
from skdptune.metrics import BoundedScorer
from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV, FullTable, RandomRuns

TESTS = "sklearn.model_selection.tests.test_search"
# The epsilon of a score, which then has almost no noise.
_EPSILON = 1e6
_DELTA = 1e-6
# Fewer records leave none for some fold with a chance that matters.
_FEWEST = 100
_COMPOSITIONS = (Pipeline, ColumnTransformer, FeatureUnion)
_NO_COST = PrivacyProfile.pure(1e-9)


class AnyScorer(BoundedScorer):
    """A scorer of scikit-learn, whose number every record gets: its sensitivity is a lie."""

    @classmethod
    def of(cls, scoring: Any) -> AnyScorer:
        """Return the scorer of a name, a function, or (for None) an estimator's own."""
        # What every object has: such a scorer asks for no method of the estimator by name.
        loss = scoring if callable(scoring) else _Named(scoring)
        return cls(loss, -1.0, 1.0, "any", 1, response_method="__eq__")

    def __post_init__(self) -> None:
        """Check nothing."""

    def per_record(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        return self._bounded(np.full(_count(X), float(self(estimator, X, y))))

    def __call__(self, estimator: Any, X: Any, y: Any) -> Any:
        return self.loss(estimator, X, y) if y is not None else self.loss(estimator, X)


class _Part:
    """One number of a function that returns several."""

    def __init__(self, function: Any, name: str) -> None:
        self.function, self.name = function, name

    def __call__(self, estimator: Any, *data: Any) -> Any:
        return self.function(estimator, *data)[self.name]


class _Named:
    """A scorer by its name, or an estimator's own for None."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __call__(self, estimator: Any, *data: Any) -> Any:
        if self.name is None:
            return estimator.score(*data)
        return get_scorer(self.name)(estimator, *data)


def _scoring(scoring: Any, estimator: Any) -> Any:
    if isinstance(scoring, list | tuple | set) and all(isinstance(one, str) for one in scoring):
        is_plain = len(set(scoring)) == len(scoring) and set(scoring) <= set(get_scorer_names())
        scoring = {name: name for name in scoring} if is_plain else scoring
    if isinstance(scoring, dict):
        if all(isinstance(one, BoundedScorer) or one == "accuracy" for one in scoring.values()):
            # The very object, of which clones are made.
            return scoring
        return {name: _scoring(one, estimator) for name, one in scoring.items()}
    if isinstance(scoring, BoundedScorer | list | tuple | set) or scoring == "accuracy":
        return scoring
    if scoring is None and not hasattr(estimator, "score"):
        return None
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        return scoring
    return AnyScorer.of(scoring)


def _cv(cv: Any) -> Any:
    if cv is None:
        return 5
    if type(cv) is StratifiedKFold:
        return cv.n_splits
    if isinstance(cv, Iterable) and not isinstance(cv, BaseCrossValidator):
        # An empty one stays what is refused.
        return len(list(cv)) or 0.0
    return cv


def _strategy(error_score: Any) -> dict[str, Any]:
    # Else a fit that fails would only score the worst, and a test pass that has seen nothing.
    raises = error_score is np.nan or error_score == "raise"
    return {
        "error_score": "raise" if raises else "worst",
        "diagnostics": raises,
        "score_epsilon": _EPSILON,
    }


class _Translated:
    """What both searches share."""

    def _translate(self, refit: Any, scoring: Any, cv: Any) -> dict[str, Any]:
        is_name = isinstance(refit, str) and refit == scoring
        return {
            "refit": True if is_name else refit,
            "scoring": _scoring(scoring, self._of),
            "cv": _cv(cv),
            "delta": _DELTA,
        }

    def set_params(self, **params: Any) -> Any:
        if "scoring" in params:
            params["scoring"] = _scoring(params["scoring"], self.estimator)
        if "cv" in params:
            params["cv"] = _cv(params["cv"])
        return super().set_params(**params)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        self.scoring = _by_name(self.scoring, self.estimator, X, y)
        X, y, params = _repeated(X, y, params)
        return super().fit(X, y, **params)


class GridSearchCV(_Translated, DPGridSearchCV):
    """The grid search by scikit-learn's arguments."""

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: Any = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self._of = estimator
        translated, strategy = self._translate(refit, scoring, cv), _strategy(error_score)
        super().__init__(
            estimator,
            param_grid,
            # A row for each candidate that was asked for, and no other.
            strategy=FullTable(
                try_own_values=False, choose_by="max", pre_dispatch=pre_dispatch, **strategy
            ),
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=0,
            **translated,
        )
        self.pre_dispatch, self.error_score = pre_dispatch, error_score
        self.return_train_score = return_train_score


class RandomizedSearchCV(_Translated, DPRandomSearchCV):
    """The random search by scikit-learn's arguments."""

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: Any = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self._of = estimator
        translated, strategy = self._translate(refit, scoring, cv), _strategy(error_score)
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            strategy=RandomRuns(pre_dispatch=pre_dispatch, **strategy),
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=0 if random_state is None else random_state,
            **translated,
        )
        self.pre_dispatch, self.error_score = pre_dispatch, error_score
        self.return_train_score = return_train_score


def _by_name(scoring: Any, estimator: Any, X: Any, y: Any) -> Any:
    """Return the scorers of a function that returns several numbers: ours are named before."""
    function = getattr(scoring, "loss", None)
    if not inspect.isfunction(function) or "return {" not in inspect.getsource(function):
        return scoring
    found = function(clone(estimator).fit(X, y), X, y)
    return {name: AnyScorer.of(_Part(function, name)) for name in found}


def _count(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _repeated(X: Any, y: Any, params: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return a few records many times over, with what belongs to each."""
    count = _count(X)
    lengths = [_count(each) for each in (y,) if each is not None]
    if count >= _FEWEST or count < 2 or any(length != count for length in lengths):
        return X, y, params
    records = np.tile(np.arange(count), -(-_FEWEST // count))

    def taken(values: Any) -> Any:
        is_long = hasattr(values, "__len__") or hasattr(values, "shape")
        if not is_long or isinstance(values, str) or _count(values) != count:
            return values
        values = values.tocsr() if hasattr(values, "tocsr") else values
        return _safe_indexing(values, records)

    return taken(X), taken(y), {name: taken(value) for name, value in params.items()}


def give_costs(monkeypatch: Any) -> None:
    """Give every estimator that has no cost one of nearly nothing."""

    def given(name: str, value: Any) -> None:
        def of(estimator: Any) -> Any:
            if isinstance(estimator, _COMPOSITIONS):
                raise AttributeError(name)
            return value

        monkeypatch.setattr(BaseEstimator, name, property(of), raising=False)

    for name in ("MinimalClassifier", "MinimalRegressor", "MinimalTransformer"):
        # They descend from nothing.
        kind = getattr(_testing, name)
        monkeypatch.setattr(kind, "privacy_profile", lambda *sizes: _NO_COST, raising=False)
    given("privacy_profile", lambda n_samples, n_features=None: _NO_COST)
    given("cost_parameters", frozenset())


def load_tests() -> ModuleType | None:
    """Return scikit-learn's module of tests, in which our searches have the place of its own."""
    try:
        # The modules that it imports must find scikit-learn's own.
        original = importlib.import_module(TESTS)
    except ImportError:
        return None
    name = "scikit_learn_test_search"
    spec = importlib.util.spec_from_file_location(name, original.__file__)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    ours = {"GridSearchCV": GridSearchCV, "RandomizedSearchCV": RandomizedSearchCV}
    theirs = {each: getattr(model_selection, each) for each in ours}
    # By this name its classes are pickled.
    sys.modules[name] = module
    try:
        for each, search in ours.items():
            setattr(model_selection, each, search)
        spec.loader.exec_module(module)
    finally:
        for each, search in theirs.items():
            setattr(model_selection, each, search)
    return module


@dataclass(frozen=True)
class Case:
    """One test of scikit-learn, with its parameters."""

    name: str
    function: Any
    arguments: dict[str, Any]
    fixtures: tuple[str, ...]


def cases_of(module: ModuleType) -> list[Case]:
    """Return the tests that make one of our searches, each with all of its parameters."""
    return [
        case
        for name, function in vars(module).items()
        if name.startswith("test_") and callable(function)
        for case in _cases(name, function)
        if _is_ours(case)
    ]


def _cases(name: str, function: Any) -> Iterator[Case]:
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    wanted = tuple(inspect.signature(function).parameters)
    for combination in product(*[_values(mark) for mark in marks]):
        arguments = {key: value for _, values in combination for key, value in values.items()}
        label = "-".join(label for label, _ in combination)
        fixtures = tuple(each for each in wanted if each not in arguments)
        yield Case(f"{name}[{label}]" if label else name, function, arguments, fixtures)


def _values(mark: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return labels and values of a parametrization."""
    names, values = mark.args[0], list(mark.args[1])
    names = [each.strip() for each in names.split(",")] if isinstance(names, str) else names
    found = []
    for place, value in enumerate(values):
        value = (
            getattr(value, "values", value) if type(value).__name__ == "ParameterSet" else value
        )
        row = value if len(names) > 1 else _single(value)
        label = "-".join(_label(each, place) for each in row)
        found.append((label, dict(zip(names, row, strict=True))))
    return found


def _single(value: Any) -> tuple[Any]:
    is_wrapped = isinstance(value, tuple) and len(value) == 1
    return value if is_wrapped else (value,)


def _label(value: Any, place: int) -> str:
    if isinstance(value, type):
        return value.__name__
    if value is None or isinstance(value, str | int | float):
        return str(value)
    return f"{type(value).__name__}{place}"


def _is_ours(case: Case) -> bool:
    """Return whether a test makes one of our searches: by its code, or by a parameter."""
    for value in case.arguments.values():
        kind = value if isinstance(value, type) else type(value)
        if issubclass(kind, GridSearchCV | RandomizedSearchCV):
            return True
        if kind.__name__.startswith("Halving"):
            return False
    return bool(_names(_code(case.function)) & {"GridSearchCV", "RandomizedSearchCV"})


def _code(function: Any) -> CodeType:
    return inspect.unwrap(function).__code__


def _names(code: CodeType) -> set[str]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*(_names(each) for each in inner))
