"""Training of many nets at once, which share arithmetic and nothing else."""

from skdptune.neural_network._population._stacked_gradients import has_only_linear_layers
from skdptune.neural_network._population._trainer import PopulationTrainer
