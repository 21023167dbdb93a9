"""Valid calls of every public constructor and function, with the values of each parameter.

The fuzz starts from a valid call and corrupts some of its arguments. Parameters that are not named
here keep their defaults until they are corrupted.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdptune import accounting, linear_model, metrics, preprocessing
from skdptune.accounting import Binomial, Geometric, Logarithmic, Poisson, PrivacyProfile
from skdptune.accounting import TruncatedNegativeBinomial as NegativeBinomial
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import ThresholdRound
from skdptune.model_selection import (
    AdaptiveTrials,
    Composition,
    FullTable,
    LeastEpsilon,
    NoisyMaximum,
    ParetoFront,
    PlanRow,
    RandomRuns,
    ThresholdRounds,
)
from tests.testing.public_estimators import HAS_NETS, HAS_OPTUNA, HAS_PARETO

Values = dict[str, list[Any]]

FOLDERS = [
    *("accounting", "audit", "base", "calibration", "ensemble", "inspection", "ledger"),
    *("linear_model", "mechanisms", "checks", "metrics", "model_selection", "preprocessing"),
    *(["neural_network"] if HAS_NETS else []),
]
# Objects without their own constructor or call, or that only call others of this list.
LEFT_OUT = {
    *("BoundNotApplicableError", "BudgetExceededError", "NoProfileError", "PrivacyWarning"),
    "LedgerError",
    # It draws a fitted estimator, and estimators are cloned for each call.
    "ScoreCurvesDisplay",
    *("UnreachableBudgetError", "RunCountDistribution", "PrivateEstimatorMixin"),
    # Made by searches, of private objects.
    *("AdaptiveSearchSession", "AdaptiveTrial"),
    *("BoundComparison", "DoublingThresholdSession", "ParetoResult", "PlanRow", "SearchPlan"),
    *("Calibration", "PopulationTrainer"),
    # Made by worst_canary, and by one_run_audit.
    *("Canary", "OneRunResult"),
    # Made by audits.
    "AuditResult",
    # Made by skore_checks.
    "SkoreCheck",
    # Made by check.
    *("CheckReport", "Finding"),
    # It shows a fitted estimator, and estimators are cloned for each call; made by it.
    *("report", "ModelReport"),
    # Made by its class methods.
    "PrivateRows",
    # Made by Schema.quality.
    "SchemaQuality",
    # Made by a ledger.
    *("LedgerPlan", "LedgerRecord", "LedgerReport", "PrivacyStatement", "Reservation"),
    # These change the process, or a block of code.
    *("config_context", "get_config", "set_config"),
    # Made by its named constructors, which are in the list.
    "PrivacyProfile",
    # A decorator without checks.
    "register_profile",
    # Without Pareto's packages.
    *([] if HAS_PARETO else ["DParetoSearchCV", "pareto_search"]),
    *([] if HAS_OPTUNA else ["DPAdaptiveSearchCV"]),
}
# Where valid, these multiply the work or the memory as far as the user wants.
ENDLESS = {
    *("epochs", "max_epochs", "max_iter", "n_iter", "n_initial", "n_repeats", "n_jobs", "hidden"),
    *("channels", "input_shape", "n_outputs", "trials", "count", "n_steps", "n_batches"),
    *("max_rounds", "max_hits", "module__hidden", "n_trials"),
}
EPSILONS: list[Any] = [0.1, 1.0, 8.0, math.inf]
SEEDS: list[Any] = [0, 7]
SCHEMA: dict[str, Any] = {
    "x0": (-1.0, 1.0),
    "text": {"categories": ["red", "1.5"], "missing": True, "other": True},
    "day": {"range": ["1990-01-01", "2030-01-01"]},
    "kind": "drop",
}


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public class and function, and the named constructors of profiles."""
    for folder in FOLDERS:
        module = importlib.import_module(f"skdptune.{folder}")
        for name in module.__all__:
            if name not in LEFT_OUT:
                yield name, getattr(module, name)
    for name, thing in vars(PrivacyProfile).items():
        if isinstance(thing, classmethod) and not name.startswith("_"):
            yield f"PrivacyProfile.{name}", getattr(PrivacyProfile, name)


def is_estimator(thing: Any) -> bool:
    return inspect.isclass(thing) and hasattr(thing, "fit")


def classifiers() -> Values:
    return {
        "epsilon": EPSILONS,
        "delta": [1e-5, 0.0, 1e-3],
        "solver": ["auto", "preconditioned", "objective", "output", "psgd", "sgd", "adam"],
        "C": [None, 1.0, 1e-3, 50.0],
        "data_norm": [1.0, 2.5, None],
        "classes": [None, [0, 1], [0, 1, 2], ["no", "yes"]],
        "epochs": [None, 2, 1, 0.5],
        "batch_size": [None, 4, 0.5, 256],
        "sampling": ["poisson", "poisson", "allocation", "fixed"],
        "max_iter": [100],
        "random_state": SEEDS,
        "n_public": [None, None, 20],
    }


def regressions() -> Values:
    return {
        "epsilon": EPSILONS,
        "delta": [1e-5, 1e-3],
        "alpha": [None, 1.0, 1e-6],
        "data_norm": [1.0, 2.0, None],
        "target_bound": [1.0, 3.0],
        "random_state": SEEDS,
        "n_public": [None, 20],
    }


def curves() -> Values:
    return {
        "estimator": [linear_model.DPLogisticRegression(solver="output", classes=[0, 1])],
        "epsilon": EPSILONS,
        "delta": [None, 1e-5],
        "metric": ["recall", "precision"],
        "at_least": [0.5, 1.0],
        "share": [0.03, 0.5],
        "n_bins": [None, 5],
        "pos_label": [None, 0],
        "insist": [True],
        "random_state": SEEDS,
        "n_public": [None, 20],
    }


def boosting() -> Values:
    return {
        "epsilon": EPSILONS,
        "delta": [1e-5, 1e-3],
        "bounds": [(-1.0, 1.0), (0.0, 5.0)],
        "classes": [None, [0, 1], [0, 1, 2], ["no", "yes"]],
        "target_bound": [1.0, (0.0, 3.0)],
        "max_bins": [4, 32],
        "max_rounds": [2, 1],
        "max_leaves": [3, 5],
        "learning_rate": [None, 0.1, 2.0],
        "noise_multiplier": [None, None, 2.0],
        "random_state": SEEDS,
        "n_public": [None, 20],
    }


def scalers() -> Values:
    return {
        "epsilon": EPSILONS,
        "bounds": [(-1.0, 1.0), (0.0, 5.0)],
        "random_state": SEEDS,
        "n_public": [None, 20],
    }


def nets() -> Values:
    from skdptune.neural_network import MLP, LogisticHead

    return {
        "module": [MLP, LogisticHead, MLP(hidden=(3,))],
        "epsilon": EPSILONS,
        "max_epochs": [1, 2],
        "batch_size": [4, 0.5],
        "sampling": ["poisson", "allocation"],
        "random_state": SEEDS,
    }


def mostly(right: Any, *odd: Any) -> list[Any]:
    """Return values of which the first is drawn far more often than all others together."""
    return [*[right] * (4 * len(odd)), *odd]


def learners() -> list[Any]:
    """Return what a search may be given, some of it wrongly."""
    from skdptune.linear_model import DPLogisticRegression as Logistic

    scaler, stateless = preprocessing.DPStandardScaler(bounds=(-1, 1)), FunctionTransformer(np.abs)
    return mostly(
        Logistic(solver="output", data_norm=1.0, classes=[0, 1]),
        make_pipeline(scaler, Logistic(data_norm=1.0)),
        make_pipeline(stateless, Logistic(solver="sgd", epochs=1)),
        linear_model.OutputPerturbationLinearRegression(data_norm=1.0, target_bound=1.0),
        *(LogisticRegression(), DummyClassifier(), make_pipeline(StandardScaler(), Logistic())),
        Logistic,
    )


def _made(kind: Any, **values: Any) -> list[Any]:
    """Return all objects of a class with these values of its parameters."""
    return [
        kind(**dict(zip(values, each, strict=True)))
        for each in itertools.product(*values.values())
    ]


def searches() -> Values:
    grid: dict[str, list[Any]] = {"C": [0.1, 1.0]}
    return {
        "estimator": learners(),
        "param_grid": mostly(grid, [grid], {"epsilon": [0.5, 1.0]}, {"none": [1]}, {"C": []}, {}),
        "epsilon": mostly(None, 4.0, 0.5),
        "scoring": mostly(None, "accuracy", metrics.accuracy(), "neg_mean_squared_error"),
        "cv": mostly(0.3, 0.5, 2),
        "refit": mostly("winner", True, False),
        "strategy": mostly(None, "table", 3),
        "random_state": SEEDS,
        "n_public": mostly(None, 20),
    }


def grid_searches() -> Values:
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

    found = searches()
    splitters = KFold(2), ShuffleSplit(1, test_size=0.3), StratifiedKFold(2)
    return found | {
        "strategy": [
            *("auto", "table", "noisy_max", "compose") * 8,
            *_made(
                FullTable,
                noise_limit=["auto", 1.5, 1.0, 1.001],
                tuning_fraction=["auto", None, 0.3],
                choose_by=["posterior", "max"],
            ),
            *_made(NoisyMaximum, n_partitions=["auto", 2, 3], selection_epsilon=[None, 1.0]),
            *_made(Composition, score_epsilon=[None, 1.0]) * 3,
            *_made(
                LeastEpsilon,
                target_score=[0.5, -1.0],
                epsilons=[None, (0.1, 0.2), (2.0, 1.0)],
                confidence=[0.5, 0.9],
            ),
            3,
        ],
        "cv": mostly(0.3, 0.5, 2, *splitters),
        "refit": mostly("winner", True, False, lambda table: 0, lambda table: "0", lambda: 0),
        "verbose": mostly(0, 2),
    }


def random_searches() -> Values:
    found = searches()
    del found["param_grid"]
    counts = "auto", "geometric", "poisson", "logarithmic", Geometric(0.5)
    uniform: dict[str, Any] = {"C": stats.loguniform(0.1, 10)}
    return found | {
        "param_distributions": mostly(uniform, {"C": [1.0]}, [{"C": [2.0]}], {}),
        "n_iter": [2, 3.5],
        "strategy": [
            *_made(
                RandomRuns,
                n_iter_distribution=counts,
                tuning_fraction=[None, "auto", 0.3],
                score_epsilon=[None, 1.0],
            ),
            None,
            3,
        ],
    }


def doubling_searches() -> Values:
    rounds = _made(
        ThresholdRounds,
        noise=["sparse", "per-round"],
        batch_size=[1, 2],
        n_partitions=["auto", 2, 3],
        selection_epsilon=[None, 1.0],
    )
    return searches() | {"strategy": [*rounds, None, FullTable()]}


def adaptive_searches() -> Values:
    found = searches()
    del found["param_grid"]
    trials = _made(
        AdaptiveTrials,
        sampler=["random", "tpe"],
        batch_size=[None, 2],
        score_epsilon=[None, 1.0],
    )
    ranges: dict[str, Any] = {"C": (0.1, 10.0, "log")}
    return found | {
        "param_space": mostly(ranges, {"C": [0.1, 1.0]}, {"C": stats.uniform(0.1, 1.0)}, {}),
        "n_trials": [2, 3],
        "strategy": [*trials, None],
        "refit": mostly(True, "winner", False),
    }


def pareto_searches() -> Values:
    return {
        "estimator": learners(),
        "param_space": mostly(
            {"C": (0.1, 10.0, "log")}, {"epsilon": (0.1, 2.0)}, {"none": (1, 3)}
        ),
        "n_iter": [1, 0],
        "strategy": _made(
            ParetoFront,
            n_initial=[2],
            sampler=["random", "grid"],
            n_repeats=[1, 2],
            epsilon_scale=["linear", "log"],
            privacy=["profile", "moments"],
        ),
        "release": mostly(None, 5.0),
        "random_state": SEEDS,
    }


def pareto_functions() -> Values:
    wrong = {"a": ("u", "v")}
    return {
        "privacy_oracle": mostly(lambda p: p["a"], lambda p: math.nan, lambda p: None),
        "utility_oracle": mostly(lambda p: 0.5, lambda p: math.inf, lambda p: "x", lambda: 0),
        "param_space": mostly({"a": (0.1, 0.9)}, {"a": (1, 3)}, wrong, {"a": (1e-3, 1, "log")}),
        "n_initial": [2],
        "n_iter": [1, 0],
        "sampler": ["random", "grid"],
        "random_state": SEEDS,
    }


def mechanisms() -> Values:
    """Return arguments by their names, which mean the same in all mechanisms."""
    return {
        "value": [1.0, [1.0, 2.0], np.zeros((2, 2))],
        "values": [[1.0, 2.0, 3.0], np.zeros(5), []],
        "scores": [[0.1, 0.7, 0.7], [0.5]],
        "utilities": [[0.1, 0.7], [0.5]],
        "units": [np.array([1.0, -0.5])],
        "sensitivity": [1.0, 0.01],
        "scale": [1.0, 0.0],
        "epsilon": [1.0, 0.01, 50.0],
        "delta": [0.0, 1e-6],
        "quantile": [0.5, 0.0, 1.0],
        "lower": [-1.0, 0.0],
        "upper": [1.0, 5.0],
        "random_state": SEEDS,
        "noise_multiplier": [1.0, 5.0],
        "sampling_rate": [0.1, 1.0],
        "sampling": ["poisson", "allocation"],
        "settings": [{"sensitivity": 0.1, "epsilon": 1.0}],
        "utility": [0.5],
        "step": [1],
        "hit": [True],
    }


def profiles() -> list[PrivacyProfile]:
    return [
        *(PrivacyProfile.pure(1.0), PrivacyProfile.gaussian(0.5), PrivacyProfile.pure(0.0)),
        *(PrivacyProfile.approximate(0.5, 1e-6), PrivacyProfile.gaussian(0.2).subsampled(0.1)),
        *(PrivacyProfile.approximate(0.0, 1.0), PrivacyProfile.gaussian(20.0)),
    ]


def make_profiles() -> list[Any]:
    return [
        lambda noise: PrivacyProfile.pure(1.0 / noise),
        lambda noise: PrivacyProfile.gaussian(1.0 / noise),
        lambda noise: PrivacyProfile.pure(1.0),
        *(lambda noise: None, lambda noise: math.nan, lambda: PrivacyProfile.pure(1.0)),
    ]


def accounts() -> Values:
    """Return arguments by their names, which mean the same in all of the accounting."""
    some = profiles()
    runs = [Geometric(0.3), Poisson(4.0), Logarithmic(0.1), Binomial(5, 0.5)]
    return {
        "profile": some,
        "trained": some,
        "scored": [None, *some],
        "final": [None, *some],
        "tune": some,
        "fit": some,
        "profiles": [some[:2], some[2:4]],
        "parts": [(), [some[1], some[4]], some[1:2]],
        "weights": [[0.5, 0.5], [0.2, 0.8]],
        "distribution": [*runs, NegativeBinomial(0.5, 0.1), NegativeBinomial(-0.5, 0.5)],
        "bound": ["profile", "profile", "rdp"],
        "variant": [1, 2],
        "fraction": [0.1, 0.5],
        "tuning_fraction": [None, 0.2],
        "validation_fraction": [0.0, 0.2],
        "probability": [0.1, 1e-9, 1.0],
        "gamma": [0.1, 0.9, 1e-4],
        "eta": [0.5, -0.5, 2.0],
        "rate": [4.0, 0.1],
        "trials": [5, 1],
        "epsilon": [1.0, 0.3, 20.0],
        "epsilons": [[0.5, 1.0]],
        "deltas": [[1e-3, 1e-6]],
        "delta": [1e-6, 1e-10, 1e-2],
        "mu": [0.5, 0.0, 5.0],
        "shift": [0.5],
        "failure": [0.0, 1e-7],
        "order": [8.0, 2.5],
        "make_profile": make_profiles(),
        "curve": [accounting.SharedCurve(0.5, 1e-7)],
        "round_epsilon": [0.1, 1.0],
        "budget": [2.0, None],
        "max_rounds": [None, 5],
        "epsilon_threshold": [0.25, 1.0],
        "epsilon_queries": [0.5],
        "max_hits": [1, 4],
        "n_candidates": [3, 100],
        "scale": [10.0, 1.0],
        "leverage": [0.01, 0.5],
        "squared_residual": [4.0, 0.0],
        "noise_multiplier": [1.0, 3.0],
        "n_batches": [10],
        "content": [some[0].to_dict(), some[4].to_dict(), {"epsilon": 1.0}],
        "event": events(),
    }


def ledgers() -> Values:
    return {
        "path_or_url": [":memory:"],
        "dataset": ["patients"],
        "epsilon": [1.0, 0.01, 600.0],
        "delta": [1e-6, 0.0, 0.5],
        "unit": [None, "one patient"],
    }


def events() -> list[Any]:
    import dp_accounting as dp

    gaussian = dp.GaussianDpEvent(1.0)
    return [
        *(gaussian, dp.LaplaceDpEvent(2.0), dp.PoissonSampledDpEvent(0.1, gaussian)),
        *(dp.GaussianDpEvent(math.nan), dp.LaplaceDpEvent(-1.0), dp.GaussianDpEvent(0.0)),
        *(dp.SelfComposedDpEvent(gaussian, 10), dp.SelfComposedDpEvent(gaussian, -1)),
        *(dp.NonPrivateDpEvent(), dp.NoOpDpEvent(), dp.ComposedDpEvent([])),
        *(dp.PoissonSampledDpEvent(2.0, gaussian), dp.ComposedDpEvent([gaussian, None])),
    ]


def canaries() -> Values:
    table = np.linspace(-1.0, 1.0, 40).reshape(20, 2)
    labels = np.arange(20) % 2
    return {
        "estimator": learners()[:16] + learners()[-2:],
        "X": [table, np.zeros((20, 2))],
        "y": [labels, np.linspace(-1.0, 1.0, 20)],
        "background": ["made-up", "given"],
        "random_state": SEEDS,
    }


def one_run_audits() -> Values:
    from skdptune.linear_model import DPLogisticRegression

    model = DPLogisticRegression(solver="sgd", classes=[0, 1], epochs=1, batch_size=20)
    table, labels = np.eye(20), np.arange(20) % 2
    return {
        "estimator": [model],
        "X": [table],
        "y": [labels],
        "canaries": ["auto", "orthogonal", "mislabelled", (table, labels)],
        "n_canaries": [12, 20],
        "n_guesses": [None, 8, (4, 2)],
        "background": ["made-up", "given"],
        "form": ["fdp", "dp"],
        "claim": [None, 1.0],
        "delta": [None, 1e-5],
        "confidence": [0.95],
        "score": [None],
        "random_state": SEEDS,
    }


def others() -> Values:
    fitted = linear_model.DPLogisticRegression(solver="output", classes=[0, 1], random_state=0)
    return {
        "loss": [lambda y, p: np.zeros(len(y)), lambda y, p: "x", lambda y, p: 5.0],
        "lower": [0.0],
        "upper": [1.0],
        "name": ["miss"],
        "class_frequencies": [{0: 0.5, 1: 0.5}, {"a": 0.1, "b": 0.9}],
        "scoring": ["accuracy", None, metrics.accuracy()],
        "bound": [1.0],
        "fitted": [fitted.fit([[0.0], [1.0]], [0, 1])],
        "estimator": learners(),
        "n_samples": [20],
        "n_features": [2, None],
        "fronts": [{"front": [[0.1, 0.2], [0.2, 0.1]]}, {}],
        "data_norm": [1.0, 2.0],
        "target_bound": [1.0],
        "columns": [SCHEMA, {"a": [1, 2, 3]}],
        "target": [None, ["no", "yes"], (0, 1)],
        "schema": [SCHEMA, preprocessing.Schema(SCHEMA, target=["no", "yes"]), {"a": "text"}],
        "n_knots": [5, None],
        "hidden": [(3,), 4],
        "channels": [(2, 3)],
        "input_shape": [3, (1, 16, 16)],
        "n_outputs": [2],
        "mute": [(), ["SKP008"]],
    }


def audits() -> Values:
    model = preprocessing.DPStandardScaler(1.0, bounds=(-1.0, 1.0), n_public=10)
    return {
        "estimator": [model],
        "X": [np.zeros((10, 2))],
        "canary": ["auto", [1.0, 1.0]],
        "n_trials": [40],
        "confidence": [0.9, 0.95],
        "statistic": ["auto", "response", "direction"],
        "method": ["auto", "counts", "gaussian", "sequential"],
        "claim": [None, 1.0, PrivacyProfile.gaussian(1.0)],
        "delta": [None, 1e-5],
        "random_state": SEEDS,
    }


SPECIAL: dict[str, Callable[[], Values]] = {
    **dict.fromkeys(("DPLogisticRegression", "DPLinearSVC"), classifiers),
    **dict.fromkeys(("BoundedScaler", "DPMinMaxScaler", "DPPCA", "DPStandardScaler"), scalers),
    "RowNormClipper": lambda: {"norm": [1.0, 0.1]},
    "DPGridSearchCV": grid_searches,
    "DPRandomSearchCV": random_searches,
    "DoublingThresholdSearchCV": doubling_searches,
    "DPAdaptiveSearchCV": adaptive_searches,
    "DParetoSearchCV": pareto_searches,
    "pareto_search": pareto_functions,
    "worst_canary": canaries,
    "one_run_audit": one_run_audits,
    "audit_epsilon": audits,
    "AuditDisplay": lambda: {"statistic_with": [[1.0, 2.0]], "statistic_without": [[0.0, 0.5]]},
    "DoublingRoundsDisplay": lambda: {
        "rounds": [[(0.0, 1, True)], [ThresholdRound(0.5, 2, False)]],
        "granularity": [0.01, 0.25],
    },
    "HoldOut": lambda: {
        "column": [0, "age"],
        "comparison": ["==", ">="],
        "value": [1.0, 30],
        "share": [0.2],
    },
    "LedgerDisplay": lambda: {
        "usage": [PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=0.0).usage()],
        "epsilon": [1.0],
        "delta": [0.0, 1e-5],
        "remaining": [None, 0.5],
    },
    "EpsilonCurveDisplay": lambda: {
        "epsilons": [[0.5, 2.0]],
        "scores": [[0.6, 0.8], [[0.6, 0.7], [0.8, 0.9]]],
        "no_privacy": [None, 0.9],
        "delta": [None, 0.0, 1e-5],
        "privacy": [None],
    },
    "GridScoresDisplay": lambda: {
        "candidates": [[{"C": 0.1}, {"C": 1.0}]],
        "scores": [[0.5, 0.75]],
        "noise": [None, [0.1, 0.1]],
        "chosen": [None, 1],
        "n_folds": [1, 3],
    },
    "PrivacyProfileDisplay": lambda: {
        "epsilons": [[0.0, 1.0]],
        "deltas": [[0.1, 0.0]],
        "asked": [None, (1.0, 1e-5)],
        "label": [None, "one run"],
    },
    "BudgetDisplay": lambda: {
        "names": [["search", "selection", "final fit"]],
        "levels": [[0, 1, 1]],
        "alone": [[1.0, 0.3, 0.9]],
        "added": [[math.nan, 0.1, 0.9]],
        "delta": [1e-5],
        "asked": [None, 1.0],
        "composed": [None, 1.0],
    },
    "SearchPlanDisplay": lambda: {
        "rows": [[PlanRow("search", 1.0, 0.9, 2.0, 2.1, 10.0, 30.0, 1.5, "all scores")]],
        "uses": [None, {"final fit": (0.1, 1.0)}],
        "epsilon": EPSILONS,
        "delta": [1e-5],
    },
    "TuningCostDisplay": lambda: {
        "epsilons": [{"no tuning": [1.0, 1.0], "envelope": [1.1, math.inf]}],
        "means": [[2.0, 10.0]],
        "delta": [1e-5],
        "highlighted": [None, "envelope"],
    },
    "TradeOffDisplay": lambda: {
        "false_positive_rates": [[0.0, 1.0]],
        "true_positive_rates": [[0.1, 1.0]],
        "marked": [(), [(0.01, 0.1)]],
        "neighbouring": ["add or remove one record"],
        "label": [None, "one run"],
    },
}
_CACHE: dict[str, Values] = {}


def recipe(name: str, thing: Any) -> Values:
    """Return the right values of those parameters that the callable has."""
    if name not in _CACHE:
        given = _given(name, thing)
        parameters = inspect.signature(thing).parameters
        _CACHE[name] = {key: given[key] for key in given if key in parameters}
    return _CACHE[name]


def _given(name: str, thing: Any) -> Values:
    if name in SPECIAL:
        return SPECIAL[name]()
    folder = "accounting" if name.startswith("PrivacyProfile") else thing.__module__.split(".")[1]
    if is_estimator(thing):
        kinds = {
            "calibration": curves,
            "ensemble": boosting,
            "linear_model": regressions,
            "neural_network": nets,
        }
        return kinds.get(folder, others)()
    if thing is ThresholdRound or folder == "mechanisms":
        return mechanisms()
    if folder == "ledger":
        return ledgers()
    return accounts() if folder == "accounting" else others()
