"""For each code, objects with and without it: (code, kind, place, wrong, right, sizes)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)

from skdptune import DPGridSearchCV, DPRandomSearchCV
from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.preprocessing import BoundedScaler, DPStandardScaler, Schema, make_private_pipeline
from tests.checks.estimators import Private, Replacing, Sized
from tests.flat import flat

SCHEMA = Schema({"age": (0, 120), "sector": ["farm", "office"]}, target=["no", "yes"])
FEW, MANY = {"n_samples": 500}, {"n_samples": 50_000}


def model(**parameters: Any) -> DPLogisticRegression:
    return DPLogisticRegression(**{"classes": [0, 1], **parameters})


def named(step: Any, **parameters: Any) -> Pipeline:
    return Pipeline([("scale", step), ("fit", model(**parameters))])


def random_search(estimator: Any = None, space: Any = None, **parameters: Any) -> Any:
    given = {"epsilon": 1.0, **parameters}
    return flat(DPRandomSearchCV, model() if estimator is None else estimator, space, **given)


def centred(X: Any) -> Any:
    return X - X.mean(axis=0)


def squared(X: Any) -> Any:
    return X**2


def chosen(X: Any) -> list[int]:
    return [0]


@dataclass(frozen=True)
class Example:
    """What a check finds in one thing, and no more in another."""

    code: str
    kind: str
    place: str
    wrong: Any
    right: Any
    sizes: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.code}-{self.place}"


STEP = 'Pipeline.steps["scale"]'
SPACE = 'DPRandomSearchCV.param_distributions["C"]'
EXAMPLES = [
    Example(*name.split(), *case)
    for name, cases in {
        "SKP001 issue": [
            (STEP, named(StandardScaler()), named(DPStandardScaler(bounds=(0, 9)))),
            (
                'ColumnTransformer.transformers["a"]',
                ColumnTransformer([("a", SelectKBest(), ["x"])]),
                ColumnTransformer([("a", Normalizer(), ["x"])]),
            ),
            (
                'FeatureUnion.transformer_list["u"].steps["scale"]',
                FeatureUnion([("u", Pipeline([("scale", StandardScaler())]))]),
                FeatureUnion([("u", Pipeline([("scale", Normalizer())]))]),
            ),
            (
                'DPRandomSearchCV.estimator.steps["scale"]',
                random_search(named(StandardScaler())),
                random_search(named(Normalizer())),
            ),
            (
                'DPRandomSearchCV.param_distributions["scale"]',
                random_search(named(Normalizer()), {"scale": [Normalizer(), StandardScaler()]}),
                random_search(named(Normalizer()), {"scale": [Normalizer(), "passthrough"]}),
            ),
        ],
        "SKP002 issue": [
            (STEP, named(KBinsDiscretizer()), named(Normalizer())),
            ("BoundedScaler.bounds", BoundedScaler(), BoundedScaler(bounds=(0, 1))),
            ("DPRidge.target_bound", DPRidge(), DPRidge(target_bound=1.0)),
            (
                "DPExplainableBoostingClassifier.bounds",
                DPExplainableBoostingClassifier(classes=[0, 1]),
                DPExplainableBoostingClassifier(classes=[0, 1], bounds=(0, 1)),
            ),
        ],
        "SKP003 issue": [
            (
                "DPRandomSearchCV.estimator",
                random_search(Sized(), {"epsilon": [0.5, 1.0]}, epsilon=None, n_public=100),
                random_search(Private(), {"epsilon": [0.5, 1.0]}, epsilon=None, n_public=100),
            )
        ],
        "SKP003 tip": [
            ("DPLogisticRegression.n_public", model(n_public=100), model(n_public=60_000), MANY)
        ],
        "SKP004 issue": [
            ("DPLogisticRegression.delta", model(delta=2e-5), model(), MANY),
            (
                "DPRandomSearchCV.delta",
                random_search(
                    Private(),
                    {"epsilon": [0.5, 1.0]},
                    epsilon=None,
                    delta=2e-3,
                    tuning_fraction=None,
                ),
                random_search(
                    Private(),
                    {"epsilon": [0.5, 1.0]},
                    epsilon=None,
                    delta=1e-3,
                    tuning_fraction=None,
                ),
                FEW,
            ),
        ],
        "SKP005 issue": [
            ("DPLogisticRegression.random_state", model(random_state=0), model()),
            (
                "DPRandomSearchCV.random_state",
                random_search(random_state=5),
                # A search sets the seeds of its steps.
                random_search(model(random_state=0)),
            ),
        ],
        "SKP006 issue": [
            (
                "GridSearchCV",
                GridSearchCV(model(), {"C": [1.0]}),
                DPGridSearchCV(model(), {"C": [0.1, 1.0]}, epsilon=1.0),
            )
        ],
        "SKP007 issue": [
            ("LogisticRegression", LogisticRegression(), model()),
            ("DPLogisticRegression.epsilon", model(epsilon=math.inf), model()),
        ],
        "SKP008 tip": [
            ("DPLogisticRegression.classes", DPLogisticRegression(), model()),
            (
                "DPLogisticRegression.classes",
                model(),
                model(classes=["yes", "no"]),
                {"schema": SCHEMA, "mute": ["SKP009"]},
            ),
        ],
        "SKP008 issue": [
            (
                "DPRandomSearchCV.estimator.classes",
                random_search(DPLogisticRegression(), n_public=100),
                random_search(model(), n_public=100),
            )
        ],
        "SKP009 issue": [
            (
                STEP,
                named(OneHotEncoder()),
                named(OneHotEncoder(categories=[["a"]], handle_unknown="ignore")),
            ),
            (STEP, named(SimpleImputer()), named(Normalizer())),
            (
                'ColumnTransformer.transformers["a"]',
                ColumnTransformer([("a", Normalizer(), chosen)]),
                ColumnTransformer([("a", Normalizer(), [0])]),
            ),
        ],
        "SKP009 tip": [
            (
                "DPLogisticRegression",
                model(classes=["no", "yes"]),
                make_private_pipeline(DPLogisticRegression(), SCHEMA),
                {"schema": SCHEMA},
            )
        ],
        "SKP010 tip": [
            ("DPLogisticRegression", model(C=0.5), model(class_weight={0: 2.0, 1: 1.0}))
        ],
        "SKP011 issue": [
            (
                "DPRandomSearchCV.strategy.diagnostics",
                random_search(diagnostics=True),
                random_search(),
            ),
            ("DPRandomSearchCV.error_score", random_search(error_score="raise"), random_search()),
        ],
        "SKP012 tip": [("Replacing", Replacing(), Private())],
        "SKP012 issue": [
            (
                "Pipeline",
                make_pipeline(DPStandardScaler(bounds=(0, 1)), Replacing()),
                make_pipeline(DPStandardScaler(bounds=(0, 1)), Private()),
            )
        ],
        "SKP013 tip": [("DPLogisticRegression.epsilon", model(), model(epsilon=5.0), FEW)],
        "SKP014 tip": [
            (
                "DPRandomSearchCV.param_distributions",
                random_search(space={"C": [1.0]}),
                random_search(space={"C": [None, 1.0]}),
            ),
            (
                SPACE,
                random_search(space={"C": [1.0], "tol": [1e-12, 1e-3]}),
                random_search(space={"tol": [1e-12, 1e-3]}),
            ),
            (
                'DPGridSearchCV.param_grid["C"]',
                DPGridSearchCV(model(), {"C": [0.1, 1.0]}, epsilon=1.0, strategy="compose"),
                # A table tries the estimator's own values in addition.
                DPGridSearchCV(model(), {"C": [0.1, 1.0]}, epsilon=1.0),
            ),
        ],
        "SKP015 issue": [
            (
                "Pipeline.memory",
                make_pipeline(Normalizer(), model(), memory="cache"),
                # A search fits copies without a cache.
                random_search(make_pipeline(Normalizer(), model(), memory="cache")),
            )
        ],
        "SKP015 tip": [
            (
                "Pipeline.verbose",
                make_pipeline(Normalizer(), model(), verbose=True),
                make_pipeline(Normalizer(), model()),
            )
        ],
        "SKP016 issue": [
            ("DPLogisticRegression.epsilon", model(epsilon=10.5), model(epsilon=10.0)),
            ("DPRandomSearchCV.epsilon", random_search(epsilon=20.0), random_search()),
            # Steps add up.
            (
                'Pipeline.steps["fit"].epsilon',
                named(DPStandardScaler(bounds=(0, 1), epsilon=6.0), epsilon=9.0),
                named(DPStandardScaler(bounds=(0, 1), epsilon=1.0), epsilon=9.0),
            ),
            ("DPLogisticRegression.delta", model(delta=1e-3), model(delta=1e-5)),
        ],
        "SKP017 issue": [("Private.warm_start", Private(warm_start=True), Private())],
        "SKP018 issue": [
            (
                f"{STEP}.func",
                named(FunctionTransformer(centred)),
                named(FunctionTransformer(np.log1p)),
            )
        ],
        "SKP018 tip": [
            (f"{STEP}.func", named(FunctionTransformer(squared)), named(FunctionTransformer()))
        ],
        "SKP019 issue": [
            ("DPLogisticRegression.tol", model(tol=-1.0), model(tol=1e-6)),
            ("DPRandomSearchCV.n_iter", random_search(n_iter=-1), random_search(n_iter=5)),
        ],
    }.items()
    for case in cases
]
try:
    from diffprivlib.models import LogisticRegression as TheirLogisticRegression
except ImportError:
    # It does not import on the newest scikit-learn.
    HAS_DIFFPRIVLIB = False
else:
    HAS_DIFFPRIVLIB = True
    EXAMPLES.append(
        Example(
            "SKP020",
            "issue",
            "LogisticRegression",
            TheirLogisticRegression(data_norm=1.0),
            TheirLogisticRegression(data_norm=1.0, fit_intercept=False, n_jobs=1),
        )
    )
