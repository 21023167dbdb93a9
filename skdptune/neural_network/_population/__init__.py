"""Training of many nets at once, as searches over nets want it."""

from skdptune.neural_network._population._stacked_layers import StackedConv2d, layers_of
from skdptune.neural_network._population._trainer import PopulationTrainer
from skdptune.neural_network._population._training_run import (
    BatchTrainable,
    Course,
    steps_of_epochs,
)

__all__ = [
    "BatchTrainable",
    "Course",
    "PopulationTrainer",
    "StackedConv2d",
    "layers_of",
    "steps_of_epochs",
]
