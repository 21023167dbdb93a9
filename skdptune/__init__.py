"""Differentially private hyperparameter tuning with scikit-learn's interface.

All estimators, all searches, `Schema`, `make_private_pipeline`, the ledger and `check` can be
imported from here or from their own packages. Each is loaded when it is first used. Docstrings
cite the statements and proofs in docs/theorems.md by name, such as "Theorem S1".
"""

from typing import TYPE_CHECKING

from skdptune._version import __version__ as __version__

# The nets can be imported from here too, but they need torch. They are left out of `__all__`
# because ``from skdptune import *`` must work without torch.
__all__ = [
    "AdaOPSLinearRegression",
    "AdaSSPLinearRegression",
    "AdaptiveTrials",
    "BoundedScaler",
    "Composition",
    "DPAdaptiveSearchCV",
    "DPExplainableBoostingClassifier",
    "DPExplainableBoostingRegressor",
    "DPGridSearchCV",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPMinMaxScaler",
    "DPPCA",
    "DPRandomSearchCV",
    "DPRidge",
    "DPStandardScaler",
    "DParetoSearchCV",
    "DoublingThresholdSearchCV",
    "FullTable",
    "HoldOut",
    "NoisyMaximum",
    "OPSLinearRegression",
    "OutputPerturbationLinearRegression",
    "PTRLinearRegression",
    "ParetoFront",
    "PrivacyLedger",
    "PrivateConformalClassifier",
    "PrivateConformalRegressor",
    "PrivateRows",
    "PrivateScoreCurves",
    "PrivateThreshold",
    "RandomRuns",
    "RowNormClipper",
    "Schema",
    "TableEncoder",
    "ThresholdRounds",
    "check",
    "config_context",
    "get_config",
    "make_private_pipeline",
    "pareto_search",
    "report",
    "set_config",
]

if TYPE_CHECKING:
    from skdptune import accounting as accounting
    from skdptune import audit as audit
    from skdptune import base as base
    from skdptune import calibration as calibration
    from skdptune import checks as checks
    from skdptune import ensemble as ensemble
    from skdptune import inspection as inspection
    from skdptune import ledger as ledger
    from skdptune import linear_model as linear_model
    from skdptune import mechanisms as mechanisms
    from skdptune import metrics as metrics
    from skdptune import model_selection as model_selection
    from skdptune import neural_network as neural_network
    from skdptune import preprocessing as preprocessing
    from skdptune import testing as testing
    from skdptune.base import PrivateRows
    from skdptune.calibration import (
        PrivateConformalClassifier,
        PrivateConformalRegressor,
        PrivateScoreCurves,
        PrivateThreshold,
    )
    from skdptune.checks import check, report
    from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
    from skdptune.ledger import PrivacyLedger, config_context, get_config, set_config
    from skdptune.linear_model import (
        AdaOPSLinearRegression,
        AdaSSPLinearRegression,
        DPLinearSVC,
        DPLogisticRegression,
        DPRidge,
        OPSLinearRegression,
        OutputPerturbationLinearRegression,
        PTRLinearRegression,
    )
    from skdptune.model_selection import (
        AdaptiveTrials,
        Composition,
        DoublingThresholdSearchCV,
        DPAdaptiveSearchCV,
        DParetoSearchCV,
        DPGridSearchCV,
        DPRandomSearchCV,
        FullTable,
        HoldOut,
        NoisyMaximum,
        ParetoFront,
        RandomRuns,
        ThresholdRounds,
        pareto_search,
    )
    from skdptune.neural_network import DPNeuralNetBinaryClassifier as DPNeuralNetBinaryClassifier
    from skdptune.neural_network import DPNeuralNetClassifier as DPNeuralNetClassifier
    from skdptune.neural_network import DPNeuralNetRegressor as DPNeuralNetRegressor
    from skdptune.preprocessing import (
        DPPCA,
        BoundedScaler,
        DPMinMaxScaler,
        DPStandardScaler,
        RowNormClipper,
        Schema,
        TableEncoder,
        make_private_pipeline,
    )
else:
    # Hidden from type checkers: if they saw a module-level __getattr__, they would accept every
    # name.
    _NAMES = {
        "accounting": (),
        "audit": (),
        "base": ("PrivateRows",),
        "calibration": (
            "PrivateConformalClassifier",
            "PrivateConformalRegressor",
            "PrivateScoreCurves",
            "PrivateThreshold",
        ),
        "checks": ("check", "report"),
        "ensemble": ("DPExplainableBoostingClassifier", "DPExplainableBoostingRegressor"),
        "inspection": (),
        "ledger": ("PrivacyLedger", "config_context", "get_config", "set_config"),
        "linear_model": (
            "AdaOPSLinearRegression",
            "AdaSSPLinearRegression",
            "DPLinearSVC",
            "DPLogisticRegression",
            "DPRidge",
            "OPSLinearRegression",
            "OutputPerturbationLinearRegression",
            "PTRLinearRegression",
        ),
        "mechanisms": (),
        "metrics": (),
        "model_selection": (
            "AdaptiveTrials",
            "Composition",
            "FullTable",
            "HoldOut",
            "NoisyMaximum",
            "ParetoFront",
            "RandomRuns",
            "ThresholdRounds",
            "DPAdaptiveSearchCV",
            "DPGridSearchCV",
            "DPRandomSearchCV",
            "DParetoSearchCV",
            "DoublingThresholdSearchCV",
            "pareto_search",
        ),
        "neural_network": (
            "DPNeuralNetBinaryClassifier",
            "DPNeuralNetClassifier",
            "DPNeuralNetRegressor",
        ),
        "preprocessing": (
            "BoundedScaler",
            "DPMinMaxScaler",
            "DPPCA",
            "DPStandardScaler",
            "RowNormClipper",
            "Schema",
            "TableEncoder",
            "make_private_pipeline",
        ),
        "testing": (),
    }
    _FOLDERS = {name: folder for folder, names in _NAMES.items() for name in names}

    def __getattr__(name):
        """Import a package or a name on first use: accounting does not need scikit-learn."""
        from importlib import import_module

        if name in _NAMES:
            return import_module(f"skdptune.{name}")
        if name in _FOLDERS:
            return getattr(import_module(f"skdptune.{_FOLDERS[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        """List the packages, the names that can be imported from here, and the version."""
        return sorted({"__version__", *_NAMES, *_FOLDERS})
