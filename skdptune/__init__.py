"""Differentially private hyperparameter tuning in the manner of scikit-learn.

The searches, the ledger and `check` are here, too. They and the packages are loaded when they are
first asked for.
Docstrings cite the statements and proofs of docs/theorems.md by name, such as "Theorem S1".
"""

from typing import TYPE_CHECKING

from skdptune._version import __version__ as __version__

__all__ = [
    "DPAdaptiveSearchCV",
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DParetoSearchCV",
    "DoublingThresholdSearchCV",
    "PrivacyLedger",
    "check",
    "config_context",
    "get_config",
    "pareto_search",
    "set_config",
]

if TYPE_CHECKING:
    from skdptune import accounting as accounting
    from skdptune import audit as audit
    from skdptune import base as base
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
    from skdptune.checks import check as check
    from skdptune.ledger import PrivacyLedger as PrivacyLedger
    from skdptune.ledger import config_context as config_context
    from skdptune.ledger import get_config as get_config
    from skdptune.ledger import set_config as set_config
    from skdptune.model_selection import DoublingThresholdSearchCV as DoublingThresholdSearchCV
    from skdptune.model_selection import DPAdaptiveSearchCV as DPAdaptiveSearchCV
    from skdptune.model_selection import DParetoSearchCV as DParetoSearchCV
    from skdptune.model_selection import DPGridSearchCV as DPGridSearchCV
    from skdptune.model_selection import DPRandomSearchCV as DPRandomSearchCV
    from skdptune.model_selection import pareto_search as pareto_search
else:
    # Type checkers must not see this, or no name would be unknown to them.
    _PACKAGES = frozenset(
        {
            "accounting",
            "audit",
            "base",
            "checks",
            "ensemble",
            "inspection",
            "ledger",
            "linear_model",
            "mechanisms",
            "metrics",
            "model_selection",
            "neural_network",
            "preprocessing",
            "testing",
        }
    )

    _OF_LEDGER = frozenset({"PrivacyLedger", "config_context", "get_config", "set_config"})

    def __getattr__(name):
        """Load what is asked for: who wants the accounting alone needs no scikit-learn."""
        from importlib import import_module

        if name in _PACKAGES:
            return import_module(f"skdptune.{name}")
        if name in _OF_LEDGER:
            return getattr(import_module("skdptune.ledger"), name)
        if name == "check":
            return import_module("skdptune.checks").check
        if name in __all__:
            return getattr(import_module("skdptune.model_selection"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        """List the packages, the searches, the ledger, `check` and the version."""
        return sorted({"__version__", *_PACKAGES, *__all__})
