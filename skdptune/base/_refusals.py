"""Reasons for refusing an estimator, alternatives to it, and models whose stated guarantee fails.

The stated cost of those models is not trusted (Assumption R4). A fault is assumed in every
release. So a new release is distrusted until somebody has reviewed it and changed the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from skdptune._formatting import shown
from skdptune._validation import FOR_A_WORD

_DEMAND = "estimator must be private or learn nothing"
DISTRUSTED_DEMAND = "estimator must meet the guarantee that its library states"
_NOT_PRIVATE = "this model is not private"
_LEARNS = "it learns"
_PARAMETER = "a parameter"
_REGISTER = "If you know its cost, pass it to register_profile."
_LINEAR = "skdptune.linear_model."
_LOGISTIC = f"{_LINEAR}DPLogisticRegression"
_SVC = f"{_LINEAR}DPLinearSVC"
_RIDGE = f"{_LINEAR}DPRidge(target_bound=...)"
_THRESHOLD = "skdptune.calibration.PrivateThreshold, around the last step of a pipeline"
_NET = "skdptune.neural_network.DPNeuralNet"
_KERNEL = f"{_NET}Classifier, or RBFSampler(gamma=0.1), for a kernel, before {_SVC}"
_TREES = "skdptune.ensemble.DPExplainableBoosting"
_TREES_FOR = {
    "Classifier": f"{_TREES}Classifier(bounds=...)",
    "Regressor": f"{_TREES}Regressor(bounds=..., target_bound=...)",
}
_SEARCHES = "skdptune.model_selection."
_TABLE = "skdptune.preprocessing.TableEncoder(schema)"
_HASHING = "HashingVectorizer"

# Private counterparts of models, and how they are named in advice.
_MODELS = {
    "LogisticRegression": _LOGISTIC,
    "LogisticRegressionCV": f"{_SEARCHES}DPRandomSearchCV({_LOGISTIC}(), ...)",
    "SGDClassifier": f"{_LOGISTIC}(solver='sgd')",
    "Perceptron": _LOGISTIC,
    "RidgeClassifier": _LOGISTIC,
    "LinearSVC": _SVC,
    "SVC": _KERNEL,
    "NuSVC": _KERNEL,
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
    "TunedThresholdClassifierCV": _THRESHOLD,
    **dict.fromkeys(("GridSearchCV", "HalvingGridSearchCV"), f"{_SEARCHES}DPGridSearchCV"),
    **dict.fromkeys(
        ("RandomizedSearchCV", "HalvingRandomSearchCV"), f"{_SEARCHES}DPRandomSearchCV"
    ),
    **{
        f"{family}{kind}": counterpart
        for family in (
            *("DecisionTree", "ExtraTrees", "RandomForest", "GradientBoosting", "AdaBoost"),
            *("HistGradientBoosting", "XGB", "LGBM", "CatBoost", "ExplainableBoosting"),
        )
        for kind, counterpart in _TREES_FOR.items()
    },
}
# Private models of other libraries: what their guarantee does not cover, and alternatives.
_LEAKING = {
    f"DPExplainableBoosting{kind}": (
        "its fit reveals the number of records, and labels and categories of a single record",
        counterpart,
    )
    for kind, counterpart in _TREES_FOR.items()
}
# What each transformer learns from data, and alternatives to it.
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
    "PCA": ("directions of variance", "skdptune.preprocessing.DPPCA(bounds=...)"),
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
    "MissingIndicator": ("which columns have missing values", _TABLE),
    "TfidfTransformer": ("frequencies of words", "use_idf=False"),
    "AdditiveChi2Sampler": ("whether a value is negative (which raises an error)", "RBFSampler"),
    "SkewedChi2Sampler": ("whether a value is too small (which raises an error)", "RBFSampler"),
    "CountVectorizer": ("words", _HASHING),
    "TfidfVectorizer": ("words and their frequencies", _HASHING),
    "DictVectorizer": ("names and values", "FeatureHasher"),
    "OneHotEncoder": ("categories", _TABLE),
    "OrdinalEncoder": ("categories", _TABLE),
    "SimpleImputer": ("replacements for missing values", _TABLE),
    "KNNImputer": ("replacements for missing values", _TABLE),
    "IterativeImputer": ("replacements for missing values", _TABLE),
    **dict.fromkeys(
        ("SelectKBest", "SelectPercentile", "SelectFromModel", "RFE", "VarianceThreshold"),
        ("which columns to keep", "ColumnTransformer with the names of public columns"),
    ),
}
_COUNTERPARTS = {
    "classifier": f"{_LOGISTIC} or {_NET}Classifier",
    "regressor": f"{_RIDGE} or {_NET}Regressor",
}


@dataclass(frozen=True)
class Refusal:
    """A reason why an estimator has no privacy cost.

    Attributes
    ----------
    got : str
        What was found: usually the name of a class.
    reason : str
        Why it is refused.
    advice : str
        What to do instead, in full sentences.
    settings : tuple of (str, str)
        Parameters, and the values to which they must be set, as the user would write them.
    steps : tuple of str
        Names of the steps that lead to the refused estimator.
    demand : str
        What the estimator must be instead.
    """

    got: str
    reason: str
    advice: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    steps: tuple[str, ...] = ()
    demand: str = _DEMAND

    @property
    def path(self) -> str:
        """The step's name in the syntax of ``set_params``."""
        return "__".join(self.steps)

    @property
    def line(self) -> str:
        """The refusal as one line of a list."""
        place = f"{self.path}: " if self.steps else ""
        return f"{place}{self.got}: {self._why}"

    @property
    def sentence(self) -> str:
        """The refusal as a separate sentence."""
        place = f" (step {shown(self.path)})" if self.steps else ""
        return f"{self.demand}; got {self.got}{place}: {self._why}"

    @property
    def remedy(self) -> str:
        """What to do instead, in full sentences; empty if no alternative is known."""
        prefix = f"{self.path}__" if self.steps else ""
        settings = " and ".join(f"{prefix}{name}={value}" for name, value in self.settings)
        if settings and self.advice:
            return f"Set {settings}, or {self.advice[0].lower()}{self.advice[1:]}"
        return f"Set {settings}." if settings else self.advice

    @property
    def is_of_parameter(self) -> bool:
        """Whether it concerns an invalid parameter of an estimator that has a cost."""
        return self.got == _PARAMETER

    @property
    def is_of_distrusted(self) -> bool:
        """Whether it concerns a model whose stated guarantee is known to fail."""
        return self.demand == DISTRUSTED_DEMAND

    @property
    def learns_features(self) -> bool:
        """Whether it concerns a step that learns features, rather than a model."""
        return self.reason.startswith(_LEARNS)

    @property
    def _why(self) -> str:
        return " ".join(filter(None, (f"{self.reason}.", self.remedy)))


class NoProfileError(TypeError):
    """Raised if an estimator learns from data and its privacy cost is unknown.

    Parameters
    ----------
    *refusals : Refusal
        All refusals that were found.

    Attributes
    ----------
    refusals : tuple of Refusal
        Each states the step, the reason and the alternative.
    """

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(*refusals)
        self.refusals = refusals

    def __str__(self) -> str:
        """Return the reason for each refused step, and the alternative."""
        if len(self.refusals) == 1:
            return self.refusals[0].sentence
        lines = "".join(f"\n- {refusal.line}" for refusal in self.refusals)
        return f"{_DEMAND}; {len(self.refusals)} problems:{lines}"

    def within(self, step: str) -> NoProfileError:
        """Return the error with the name of the composition's step added."""
        return NoProfileError(
            *(replace(each, steps=(step, *each.steps)) for each in self.refusals)
        )


def no_profile(estimator: object, settings: Sequence[tuple[str, str]] = ()) -> NoProfileError:
    """Return the error for an estimator without a profile, with an alternative to it.

    Parameters
    ----------
    estimator : object
    settings : sequence of (str, str)
        Parameters with which the estimator would learn nothing from data, and their values as
        code.
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
                FOR_A_WORD if isinstance(estimator, str) else "",
                demand="estimator must be an estimator",
            )
        )
    name = type(estimator).__name__
    reason, advice = _why(estimator, name)
    return NoProfileError(Refusal(name, reason, advice, tuple(settings)))


def refusal_of_name(name: str) -> Refusal | None:
    """Return why a class of this name is refused, if the name is known; no instance is needed."""
    if name not in _MODELS and name not in _TRANSFORMERS:
        return None
    return Refusal(name, *_why(None, name))


def together(errors: Sequence[tuple[str, Exception]]) -> Exception:
    """Return one error for everything that is wrong with the steps of a composition.

    Parameters
    ----------
    errors : sequence of (str, Exception)
        The name of each step and the error that it raised; at least one.
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
    return kind(f"estimator must have proper parameters; {len(found)} problems:{lines}")


def refusal_of(error: Exception, *steps: str) -> Refusal:
    """Convert an error about a parameter into a refusal."""
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
    """Return the kind of model of an estimator, or "" for transformers and unknown objects."""
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

# The library, and its release in which the faults were found.
LIBRARY, _SEEN_IN = "diffprivlib", "0.6.6"
_ISSUES = "https://github.com/IBM/differential-privacy-library/issues/"
_READ = "its source, and tests/base/test_distrusted.py"
_MOVED = (
    "a record that changes its {0} affects two of them, and each one uses the whole epsilon; it "
    "also changes a sum by its whole value, but the noise follows from the width of the bounds, "
    "which can be less if 0 is outside them"
)
_REPLACED = "a replaced record changes two leaves, or two counts in one leaf, and costs 2 epsilon"


@dataclass(frozen=True)
class DistrustedModel:
    """A model whose stated epsilon is refuted or unproven for replacing a record.

    Attributes
    ----------
    name : str
        Its class, of diffprivlib.
    fault : str
        What is wrong, as a sentence without a full stop.
    source : str
        Reference: an address, or where the fault is shown.
    settings : tuple of (str, str)
        Parameters with which the guarantee holds, as the user would write them.
    holds : callable or None
        Whether the guarantee holds for the parameters that are given, and the library's defaults
        for the others; None if it never holds.
    instead : str
        An alternative, in a sentence.
    """

    name: str
    fault: str
    source: str = _READ
    settings: tuple[tuple[str, str], ...] = ()
    holds: Callable[[Mapping[str, Any]], bool] | None = None
    instead: str = ""

    @property
    def reason(self) -> str:
        """Why its stated guarantee is not trusted."""
        return (
            f"the epsilon of {LIBRARY} {_SEEN_IN} is too small for replacing a record, "
            f"or not proven for it: {self.fault} ({self.source})"
        )

    @property
    def assumption(self) -> str:
        """The assumption in the report of a model that is used nonetheless."""
        return (
            f"the registered cost of {LIBRARY}'s {self.name} covers its known fault: "
            f"{self.fault} ({self.source})"
        )


# The defaults of diffprivlib's LogisticRegression.
_TOLERANCE, _STEPS = 1e-4, 100


def _charges_enough(parameters: Mapping[str, Any]) -> bool:
    # Assumption R4. Per record, the loss has gradients of at most r = data_norm and curvature of
    # at most c r^2 with c = 1/4. Let a be the total penalty. Noise of scale 2 r / e has a privacy
    # loss of e when a record is replaced. If the curvature is at least a in all directions, which
    # an intercept violates, the determinant changes by a factor of at most 1 + c r^2 / a. The
    # model charges epsilon - e = 2 log(1 + c r / a) for this, which is enough for all a if r is at
    # most 2.
    #
    # With several workers, the generator would be copied, so that fits and classes share their
    # noise. None is not the same as 1: it follows joblib's context. The proof is about exact
    # minimisers, so tolerances must be no coarser than the defaults.
    given = {"tol": _TOLERANCE, "max_iter": _STEPS, **parameters}
    norm, tol, most = given.get("data_norm"), given["tol"], given["max_iter"]
    return (
        given.get("fit_intercept") is False
        and given.get("n_jobs") == 1
        and isinstance(norm, int | float)
        and 0.0 < norm <= 2.0
        and isinstance(tol, int | float)
        and tol <= _TOLERANCE
        and isinstance(most, int)
        and most >= _STEPS
    )


_USE_TREES = "Use skdptune.ensemble.DPExplainableBoostingClassifier(bounds=...)."
DISTRUSTED: tuple[DistrustedModel, ...] = (
    DistrustedModel(
        "LinearRegression",
        "the noise on a column's sum of squares follows from its lower bound and not from its "
        "upper one; the means for the intercept spend epsilon / (n_features + 1) in addition "
        "to epsilon; and rows are not clipped without an intercept",
        f"{_ISSUES}105",
        instead="Use skdptune.linear_model.DPRidge(target_bound=...).",
    ),
    DistrustedModel(
        "LogisticRegression",
        "the change of curvature is charged in proportion to data_norm instead of its square; "
        "the intercept is not penalised, as the proof requires; and worker processes draw the "
        "same noise for all classes, and for successive fits",
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
    DistrustedModel("GaussianNB", _MOVED.format("class")),
    DistrustedModel(
        "KMeans",
        "labels_ and inertia_ are computed without noise, and an empty cluster is left as it was, "
        f"which shows that it is empty; {_MOVED.format('cluster')}; and from 5 columns on the "
        "shares of all steps add up to more than epsilon",
    ),
    DistrustedModel(
        "DecisionTreeClassifier",
        f"its epsilon is right for adding or removing a record, but {_REPLACED}",
        instead=_USE_TREES,
    ),
    DistrustedModel(
        "RandomForestClassifier",
        "adding or removing a record moves other records from tree to tree, and " + _REPLACED,
        instead=_USE_TREES,
    ),
    DistrustedModel(
        "PCA",
        "eigenvectors are drawn from a narrower distribution than the one in the proof; with "
        "10 or more columns the loss of the first eigenvector can exceed its share of epsilon, "
        "and with 100 it is 2.5 times that share",
    ),
)
_BY_CLASS = {(LIBRARY, one.name): one for one in DISTRUSTED}


def distrusted_name(library: str, name: str, given: Mapping[str, Any]) -> DistrustedModel | None:
    """Return the list's entry that applies to a call of a class with some parameters, or None."""
    return _unless_held(_BY_CLASS.get((library, name)), given)


def distrusted_class(kind: type) -> DistrustedModel | None:
    """Return the list's entry for a class or one of its parents, or None."""
    for each in kind.__mro__:
        found = _BY_CLASS.get((each.__module__.partition(".")[0], each.__name__))
        if found is not None:
            return found
    return None


def distrusted(estimator: Any) -> DistrustedModel | None:
    """Return the list's entry that applies to an estimator with its parameters, or None.

    Notes
    -----
    Assumption R4.
    """
    found = distrusted_class(type(estimator))
    return None if found is None else _unless_held(found, estimator.get_params(deep=False))


def _unless_held(
    found: DistrustedModel | None, given: Mapping[str, Any]
) -> DistrustedModel | None:
    if found is None or found.holds is None:
        return found
    return None if found.holds(given) else found


def refusal_of_distrusted(found: DistrustedModel) -> Refusal:
    """Return the refusal of a distrusted model, with an alternative."""
    insist = "If you know its cost, pass it to register_profile(insist=True)."
    return Refusal(
        found.name,
        found.reason,
        " ".join(filter(None, (found.instead, insist))),
        found.settings,
        demand=DISTRUSTED_DEMAND,
    )
