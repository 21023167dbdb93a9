"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.metrics._scorers import ScoreSum
