"""Training of many nets at once, which share arithmetic and nothing else."""

from skdptune.neural_network._population._trainer import PopulationTrainer
