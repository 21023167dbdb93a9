"""Private neural networks: skorch nets that Opacus trains, and modules that need no torch code.

torch, skorch and Opacus are loaded when one of the names is first asked for; the extra ``nn``
brings them.
"""

from typing import Any

__all__ = [
    "DPNeuralNetBinaryClassifier",
    "DPNeuralNetClassifier",
    "DPNeuralNetRegressor",
    "LogisticHead",
    "MLP",
    "PopulationTrainer",
    "SmallCNN",
]

_MODULES = {
    "DPNeuralNetBinaryClassifier": "_binary_classifier",
    "DPNeuralNetClassifier": "_classifier",
    "DPNeuralNetRegressor": "_regressor",
    "LogisticHead": "_modules",
    "MLP": "_modules",
    "PopulationTrainer": "_population",
    "SmallCNN": "_modules",
}


def __getattr__(name: str) -> Any:
    """Load a public name, and with it torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        module = importlib.import_module(f"skdptune.neural_network.{_MODULES[name]}")
    except ModuleNotFoundError as problem:
        missing = (problem.name or "").partition(".")[0]
        if missing not in {"torch", "skorch", "opacus"}:
            raise
        raise ModuleNotFoundError(
            f"{name} needs {missing}, which is not installed. "
            "The extra 'nn' brings it: pip install 'skdptune[nn]'.",
            name=missing,
        ) from problem
    return getattr(module, name)


def __dir__() -> list[str]:
    """List what can be asked for."""
    return sorted({*globals(), *__all__})
