"""Private neural networks: skorch nets that Opacus trains, and modules that need no torch code.

torch, skorch and Opacus are loaded when one of the names is first used; the extra ``nn`` installs
them.
"""

from typing import TYPE_CHECKING

__all__ = [
    "DPNeuralNetBinaryClassifier",
    "DPNeuralNetClassifier",
    "DPNeuralNetRegressor",
    "LogisticHead",
    "MLP",
    "PopulationTrainer",
    "SmallCNN",
]

# Type checkers and editors read these imports; at run time the names are loaded on demand.
if TYPE_CHECKING:
    from skdptune.neural_network._binary_classifier import DPNeuralNetBinaryClassifier
    from skdptune.neural_network._classifier import DPNeuralNetClassifier
    from skdptune.neural_network._modules import MLP, LogisticHead, SmallCNN
    from skdptune.neural_network._population import PopulationTrainer
    from skdptune.neural_network._regressor import DPNeuralNetRegressor
else:
    _MODULES = {
        "DPNeuralNetBinaryClassifier": "_binary_classifier",
        "DPNeuralNetClassifier": "_classifier",
        "DPNeuralNetRegressor": "_regressor",
        "LogisticHead": "_modules",
        "MLP": "_modules",
        "PopulationTrainer": "_population",
        "SmallCNN": "_modules",
    }

    def __getattr__(name: str) -> object:
        """Load a public name, which also loads torch."""
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
                "Install the extra 'nn': pip install 'skdptune[nn]'.",
                name=missing,
            ) from problem
        return getattr(module, name)


def __dir__() -> list[str]:
    """List the public classes."""
    return list(__all__)
