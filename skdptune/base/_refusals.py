"""What is said of estimators without a cost: all that is wrong, and what to use instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
