"""Additive models of many small trees, with differential privacy: explainable boosting machines.

They fit with what the package itself needs. The extra ``ebm`` installs interpret-core, whose
pictures and explanations `to_interpret` leads to.
"""

from skdptune.ensemble._classifier import DPExplainableBoostingClassifier
from skdptune.ensemble._regressor import DPExplainableBoostingRegressor

__all__ = ["DPExplainableBoostingClassifier", "DPExplainableBoostingRegressor"]
