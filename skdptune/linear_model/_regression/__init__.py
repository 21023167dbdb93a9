"""Private linear regressions, and the sums over the data to which they are fitted."""

from skdptune.linear_model._regression._private_regressor import check_models, copy_features
from skdptune.linear_model._regression._regressions import (
    AdaOPSLinearRegression,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
)
from skdptune.linear_model._regression._ridge import (
    AdaSSPLinearRegression,
    DPRidge,
)
from skdptune.linear_model._regression._sufficient_statistics import (
    SufficientStatistics,
    squared_radius,
)
