"""Additive models of many small trees, with differential privacy: explainable boosting machines.

Fitting needs only the package's own requirements. The extra ``ebm`` installs interpret-core, for
the plots and explanations after `to_interpret`.
"""

from skdptune.ensemble._classifier import DPExplainableBoostingClassifier
from skdptune.ensemble._regressor import DPExplainableBoostingRegressor

__all__ = ["DPExplainableBoostingClassifier", "DPExplainableBoostingRegressor"]
