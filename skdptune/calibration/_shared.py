"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.calibration._release import AnswersForFitted
