"""Why an estimator is refused, what to use instead, and models whose stated guarantee fails.

Those models' own word is not taken (Assumption R4). A fault counts for every release but those
that come after the one that mends it, so that a new release is distrusted until somebody has
looked at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from skdptune._formatting import shown

_DEMAND = "estimator must be private or learn nothing"
DISTRUSTED_DEMAND = "estimator must keep to the guarantee that its library states"
_NOT_PRIVATE = "this model is not private"
_LEARNS = "it learns"
_PARAMETER = "a parameter"
_REGISTER = "If you know its cost, pass it to register_profile."
_LINEAR = "skdptune.linear_model."
_LOGISTIC = f"{_LINEAR}DPLogisticRegression"
_SVC = f"{_LINEAR}DPLinearSVC"
_RIDGE = f"{_LINEAR}NoisyStatisticsRidge(target_bound=...)"
_NET = "skdptune.neural_network.DPNeuralNet"
_TREES = "skdptune.ensemble.DPExplainableBoosting"
_TREES_FOR = {
    "Classifier": f"{_TREES}Classifier(bounds=...)",
    "Regressor": f"{_TREES}Regressor(bounds=..., target_bound=...)",
}
_SEARCHES = "skdptune.model_selection."
_TABLE = "skdptune.preprocessing.TableEncoder(schema)"
_HASHING = "HashingVectorizer"

# The private counterpart of a model, and beside what words it is named.
_MODELS = {
    "LogisticRegression": _LOGISTIC,
    "LogisticRegressionCV": f"{_SEARCHES}DPRandomSearchCV({_LOGISTIC}(), ...)",
    "SGDClassifier": f"{_LOGISTIC}(solver='sgd')",
    "Perceptron": _LOGISTIC,
    "RidgeClassifier": _LOGISTIC,
    "LinearSVC": _SVC,
    "SVC": _SVC,
    "LinearRegression": _RIDGE,
    "Ridge": _RIDGE,
    "RidgeCV": _RIDGE,
    "Lasso": _RIDGE,
    "ElasticNet": _RIDGE,
    "SGDRegressor": _RIDGE,
    "LinearSVR": _RIDGE,
    "MLPClassifier": f"{_NET}Classifier",
    "MLPRegressor": f"{_NET}Regressor",
    "NeuralNetClassifier": f"{_NET}Classifier",
    "NeuralNetBinaryClassifier": f"{_NET}BinaryClassifier",
    "NeuralNetRegressor": f"{_NET}Regressor",
    "GridSearchCV": f"{_SEARCHES}DPGridSearchCV",
    "RandomizedSearchCV": f"{_SEARCHES}DPRandomSearchCV",
    **{
        f"{family}{kind}": counterpart
        for family in (
            *("DecisionTree", "ExtraTrees", "RandomForest", "GradientBoosting", "AdaBoost"),
            *("HistGradientBoosting", "XGB", "LGBM", "CatBoost", "ExplainableBoosting"),
        )
        for kind, counterpart in _TREES_FOR.items()
    },
}
# Models of others that are private by their own word: what that does not cover, and what to use.
_LEAKING = {
    f"DPExplainableBoosting{kind}": (
        "its fit shows the number of records, and labels and categories that a single one has",
        counterpart,
    )
    for kind, counterpart in _TREES_FOR.items()
}
# What a transformer learns, and what to use instead.
_TRANSFORMERS = {
    "StandardScaler": (
        "means and deviations",
        f"skdptune.preprocessing.DPStandardScaler(bounds=...) or {_TABLE}",
    ),
    "MinMaxScaler": (
        "extreme values",
        f"skdptune.preprocessing.BoundedScaler(bounds), DPMinMaxScaler(bounds=...) or {_TABLE}",
    ),
    "MaxAbsScaler": (
        "extreme values",
        f"skdptune.preprocessing.BoundedScaler(bounds) or {_TABLE}",
    ),
    "RobustScaler": (
        "quantiles",
        f"skdptune.preprocessing.DPMinMaxScaler(bounds=...) or {_TABLE}",
    ),
    "QuantileTransformer": ("quantiles", _TABLE),
    "PowerTransformer": ("exponents", f'{_TABLE}, whose columns take "scale": "log"'),
    "KBinsDiscretizer": ("bins", _TABLE),
    "SplineTransformer": ("knots", _TABLE),
    "TargetEncoder": ("targets of categories", _TABLE),
    "TableVectorizer": ("columns and their categories", _TABLE),
    "GaussianRandomProjection": ("the number of records", "a number of components"),
    "SparseRandomProjection": ("the number of records", "a number of components"),
    "RBFSampler": ("a variance", "a number for gamma"),
    "Nystroem": ("records as landmarks", "FrozenEstimator of one fitted to public data"),
    "MissingIndicator": ("which columns have gaps", _TABLE),
    "TfidfTransformer": ("frequencies of words", "use_idf=False"),
    "AdditiveChi2Sampler": ("whether a value is negative, which raises,", "RBFSampler"),
    "SkewedChi2Sampler": ("whether a value is too small, which raises,", "RBFSampler"),
    "CountVectorizer": ("words", _HASHING),
    "TfidfVectorizer": ("words and their frequencies", _HASHING),
    "DictVectorizer": ("names and values", "FeatureHasher"),
    "OneHotEncoder": ("categories", _TABLE),
    "OrdinalEncoder": ("categories", _TABLE),
    "SimpleImputer": ("what fills gaps", _TABLE),
    "KNNImputer": ("what fills gaps", _TABLE),
    "IterativeImputer": ("what fills gaps", _TABLE),
    **dict.fromkeys(
        ("SelectKBest", "SelectPercentile", "SelectFromModel", "RFE", "VarianceThreshold"),
        ("which columns stay", "ColumnTransformer with the names of public columns"),
    ),
}
_COUNTERPARTS = {
    "classifier": f"{_LOGISTIC} or {_NET}Classifier",
    "regressor": f"{_RIDGE} or {_NET}Regressor",
}


@dataclass(frozen=True)
class Refusal:
    """One thing that keeps an estimator from having a privacy cost.

    Attributes
    ----------
    got : str
        What was met: mostly the name of a class.
    reason : str
        Why that is refused.
    advice : str
        What to do instead, in whole sentences.
    settings : tuple of (str, str)
        Parameters, and the values that they must be set to, as the user would write them.
    steps : tuple of str
        Names of the steps that lead there.
    demand : str
        What the estimator must be.
    """

    got: str
    reason: str
    advice: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    steps: tuple[str, ...] = ()
    demand: str = _DEMAND

    @property
    def path(self) -> str:
        """The step's name as ``set_params`` knows it."""
        return "__".join(self.steps)

    @property
    def line(self) -> str:
        """The refusal in the words of a list."""
        place = f"{self.path}: " if self.steps else ""
        return f"{place}{self.got}: {self._why}"

    @property
    def sentence(self) -> str:
        """The refusal by itself."""
        place = f" (step {shown(self.path)})" if self.steps else ""
        return f"{self.demand}; got {self.got}{place}: {self._why}"

    @property
    def remedy(self) -> str:
        """What to do instead, in whole sentences; empty where nothing is known."""
        prefix = f"{self.path}__" if self.steps else ""
        settings = " and ".join(f"{prefix}{name}={value}" for name, value in self.settings)
        if settings and self.advice:
            return f"Set {settings}, or {self.advice[0].lower()}{self.advice[1:]}"
        return f"Set {settings}." if settings else self.advice

    @property
    def is_of_parameter(self) -> bool:
        """Whether it is about a wrong parameter of an estimator that has a cost."""
        return self.got == _PARAMETER

    @property
    def is_of_distrusted(self) -> bool:
        """Whether it is about a model whose stated guarantee is known not to hold."""
        return self.demand == DISTRUSTED_DEMAND

    @property
    def learns_features(self) -> bool:
        """Whether it is about a step that learns features, and not about a model."""
        return self.reason.startswith(_LEARNS)

    @property
    def _why(self) -> str:
        return " ".join(filter(None, (f"{self.reason}.", self.remedy)))


class NoProfileError(TypeError):
    """An estimator learns from data, and nothing says what that costs.

    Parameters
    ----------
    *refusals : Refusal
        All that was found.

    Attributes
    ----------
    refusals : tuple of Refusal
        Each with the step that it is about, the reason, and what to use instead.
    """

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(*refusals)
        self.refusals = refusals

    def __str__(self) -> str:
        """Return what is wrong with each step, and what to use instead."""
        if len(self.refusals) == 1:
            return self.refusals[0].sentence
        lines = "".join(f"\n- {refusal.line}" for refusal in self.refusals)
        return f"{_DEMAND}; {len(self.refusals)} things wrong:{lines}"

    def within(self, step: str) -> NoProfileError:
        """Return the error as seen from a composition around it."""
        return NoProfileError(
            *(replace(each, steps=(step, *each.steps)) for each in self.refusals)
        )


def no_profile(estimator: object, settings: Sequence[tuple[str, str]] = ()) -> NoProfileError:
    """Return the error that names an estimator without a profile, and what to use instead.

    Parameters
    ----------
    estimator : object
    settings : sequence of (str, str)
        Parameters with which the estimator would learn nothing, and their values as written.
    """
    if isinstance(estimator, type):
        return NoProfileError(
            Refusal(
                f"the class {estimator.__name__}",
                "a class cannot be fitted",
                f"Use {estimator.__name__}(...).",
                demand="estimator must be an instance",
            )
        )
    if estimator is None or isinstance(estimator, str):
        return NoProfileError(
            Refusal(
                shown(estimator),
                "it has no fit",
                demand="estimator must be an estimator",
            )
        )
    name = type(estimator).__name__
    reason, advice = _why(estimator, name)
    return NoProfileError(Refusal(name, reason, advice, tuple(settings)))


def together(errors: Sequence[tuple[str, Exception]]) -> Exception:
    """Return one error for all that is wrong with the steps of a composition.

    Parameters
    ----------
    errors : sequence of (str, Exception)
        Steps by name, and what each raised: at least one.
    """
    found = [
        error.within(name) if isinstance(error, NoProfileError) else error
        for name, error in errors
    ]
    if len(found) == 1:
        return found[0]
    if any(isinstance(error, NoProfileError) for error in found):
        return NoProfileError(
            *(
                each
                for (name, _), error in zip(errors, found, strict=True)
                for each in _refusals_of(name, error)
            )
        )
    kind = type(found[0])
    if kind not in (TypeError, ValueError):
        return found[0]
    lines = "".join(f"\n- {name}: {error}" for name, error in errors)
    return kind(f"estimator must have proper parameters; {len(found)} things wrong:{lines}")


def refusal_of(error: Exception, *steps: str) -> Refusal:
    """Return what an error says of a parameter as one refusal among others."""
    return Refusal(_PARAMETER, str(error).removesuffix("."), steps=steps)


def _refusals_of(name: str, error: Exception) -> Sequence[Refusal]:
    return error.refusals if isinstance(error, NoProfileError) else (refusal_of(error, name),)


def _why(estimator: object, name: str) -> tuple[str, str]:
    """Return why an estimator is refused, and what to use instead."""
    if name in _MODELS:
        return _NOT_PRIVATE, f"Use {_MODELS[name]}."
    if name in _LEAKING:
        why, instead = _LEAKING[name]
        return why, f"Use {instead}."
    if name in _TRANSFORMERS:
        what, instead = _TRANSFORMERS[name]
        return f"{_LEARNS} {what} from private rows", f"Use {instead}."
    kind = _kind_of(estimator)
    if kind:
        instead = _COUNTERPARTS.get(kind, "")
        return _NOT_PRIVATE, f"Use {instead}. {_REGISTER}" if instead else _REGISTER
    return f"{_LEARNS} from private rows, at an unknown cost", _REGISTER


def _kind_of(estimator: object) -> str:
    """Return what kind of model an estimator is; nothing for transformers and strangers."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return ""
    kinds = {
        "classifier": is_classifier,
        "regressor": is_regressor,
        "outlier_detector": is_outlier_detector,
    }
    for kind, is_kind in kinds.items():
        if is_kind(estimator):
            return kind
    return ""


# Models of other libraries whose stated guarantee fails, or lacks a proof --------------------

_ISSUES = "https://github.com/IBM/differential-privacy-library/issues/"
_READ = "its source, and tests/base/test_distrusted.py"
_MOVED = (
    "a record that changes its {0} changes two, of which each has the whole epsilon; and it "
    "changes a sum by its whole value, where the noise is that of the bounds' width, which can be "
    "less if 0 is outside them"
)
_REPLACED = "one that is replaced changes two leaves, or two counts of one, and costs 2 epsilon"


@dataclass(frozen=True)
class DistrustedModel:
    """A model whose stated epsilon is refuted for replacing a record, or not proven for it.

    Attributes
    ----------
    library, name : str
        Package and class.
    fault : str
        What is wrong, in the words of a sentence without its full stop.
    source : str
        Who says so: an address, or where it is shown.
    seen_in : str
        Release in which the fault was found.
    mended_in : str or None
        First release without it; None while there is none.
    settings : tuple of (str, str)
        Parameters with which the guarantee holds, as the user would write them.
    holds : callable or None
        Whether it holds with some parameters; None if it holds with none.
    instead : str
        What to use, in a sentence.
    """

    library: str
    name: str
    fault: str
    source: str
    seen_in: str
    mended_in: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    holds: Callable[[Mapping[str, Any]], bool] | None = None
    instead: str = ""

    @property
    def concerns_installed(self) -> bool:
        """Whether the installed release has the fault."""
        if self.mended_in is None:
            return True
        try:
            installed = version(self.library)
        except PackageNotFoundError:
            # Its class is there, whatever release it is of.
            return True
        return _numbers(installed) < _numbers(self.mended_in)

    @property
    def reason(self) -> str:
        """Why it is not taken at its word."""
        return (
            f"the epsilon of {self.library} {self.seen_in} is too small for replacing a record, "
            f"or not proven for it: {self.fault} ({self.source})"
        )

    @property
    def assumption(self) -> str:
        """What a report says of a model that is used nonetheless."""
        return (
            f"the registered cost of {self.library}'s {self.name} covers its known fault: "
            f"{self.fault} ({self.source})"
        )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", release)[:3])


def _charges_enough(parameters: Mapping[str, Any]) -> bool:
    # Assumption R4. Per record the loss has gradients of at most r = data_norm and curvature of at
    # most c r^2 with c = 1/4; a is the whole penalty, and noise of scale 2 r / e has a loss of e
    # when a record is replaced. Given a curvature of at least a in all directions, which an
    # intercept does not have, the determinant changes by a factor of at most 1 + c r^2 / a. What
    # is charged is epsilon - e = 2 log(1 + c r / a), enough for all a if r is at most 2.
    # Workers would copy the generator, so that fits and classes share their noise. None is not 1:
    # it follows joblib's context. The proof is about minimisers, so none may be coarser than
    # those of the defaults.
    names = ("fit_intercept", "data_norm", "n_jobs", "tol", "max_iter")
    has_intercept, norm, n_jobs, tol, most = (parameters.get(name) for name in names)
    return (
        has_intercept is False
        and n_jobs == 1
        and isinstance(norm, int | float)
        and 0.0 < norm <= 2.0
        and isinstance(tol, int | float)
        and tol <= 1e-4
        and isinstance(most, int)
        and most >= 100
    )


def _of_diffprivlib(name: str, fault: str, source: str = _READ, **more: Any) -> DistrustedModel:
    return DistrustedModel("diffprivlib", name, fault, source, "0.6.6", **more)


_USE_TREES = "Use skdptune.ensemble.DPExplainableBoostingClassifier(bounds=...)."
DISTRUSTED: tuple[DistrustedModel, ...] = (
    _of_diffprivlib(
        "LinearRegression",
        "the noise on a column's sum of squares follows from its lower bound and not from its "
        "upper one; the means that an intercept needs spend epsilon / (n_features + 1) more than "
        "epsilon; and rows are not clipped without an intercept",
        f"{_ISSUES}105",
        instead="Use skdptune.linear_model.NoisyStatisticsRidge(target_bound=...).",
    ),
    _of_diffprivlib(
        "LogisticRegression",
        "the change of curvature is charged in proportion to data_norm and not to its square; an "
        "intercept has no penalty, on which the proof rests; and worker processes draw the same "
        "noise for all classes, and for fits one after another",
        settings=(
            ("fit_intercept", "False"),
            ("data_norm", "2.0 or less"),
            ("n_jobs", "1"),
            ("tol", "1e-4 or less"),
            ("max_iter", "100 or more"),
        ),
        holds=_charges_enough,
        instead="Use skdptune.linear_model.DPLogisticRegression.",
    ),
    _of_diffprivlib("GaussianNB", _MOVED.format("class")),
    _of_diffprivlib(
        "KMeans",
        "labels_ and inertia_ are computed without noise, and an empty cluster is left as it was, "
        f"which shows that it is empty; {_MOVED.format('cluster')}; and from 5 columns on the "
        "shares of all steps add up to more than epsilon",
    ),
    _of_diffprivlib(
        "DecisionTreeClassifier",
        f"its epsilon is right for adding or removing a record, but {_REPLACED}",
        instead=_USE_TREES,
    ),
    _of_diffprivlib(
        "RandomForestClassifier",
        "a record that is added or removed moves others from tree to tree, and " + _REPLACED,
        instead=_USE_TREES,
    ),
    _of_diffprivlib(
        "PCA",
        "eigenvectors are drawn from a narrower distribution than the one that the proof is "
        "about; the loss of the first one can exceed its share of epsilon from 10 columns on, and "
        "is 2.5 times that share with 100",
    ),
)
_BY_CLASS = {(one.library, one.name): one for one in DISTRUSTED}


def distrusted_class(kind: type) -> DistrustedModel | None:
    """Return the entry of the list that a class is, or descends from; None if there is none."""
    for each in kind.__mro__:
        found = _BY_CLASS.get((each.__module__.partition(".")[0], each.__name__))
        if found is not None and found.concerns_installed:
            return found
    return None


def distrusted(estimator: Any) -> DistrustedModel | None:
    """Return the entry of the list that an estimator with its parameters is about, if any.

    Notes
    -----
    Assumption R4.
    """
    found = distrusted_class(type(estimator))
    if found is None or found.holds is None:
        return found
    return None if found.holds(estimator.get_params(deep=False)) else found


def refusal_of_distrusted(found: DistrustedModel) -> Refusal:
    """Return why such a model is refused, and what to do instead."""
    insist = "If you know what it costs nonetheless, pass that to register_profile(insist=True)."
    return Refusal(
        found.name,
        found.reason,
        " ".join(filter(None, (found.instead, insist))),
        found.settings,
        demand=DISTRUSTED_DEMAND,
    )
