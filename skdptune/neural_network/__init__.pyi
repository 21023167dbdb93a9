"""The public names of the folder, which `__init__.py` loads when they are first used."""

from skdptune.neural_network._binary_classifier import (
    DPNeuralNetBinaryClassifier as DPNeuralNetBinaryClassifier,
)
from skdptune.neural_network._classifier import DPNeuralNetClassifier as DPNeuralNetClassifier
from skdptune.neural_network._modules import MLP as MLP
from skdptune.neural_network._modules import LogisticHead as LogisticHead
from skdptune.neural_network._modules import SmallCNN as SmallCNN
from skdptune.neural_network._population import PopulationTrainer as PopulationTrainer
from skdptune.neural_network._regressor import DPNeuralNetRegressor as DPNeuralNetRegressor
