"""The public names of the package, which `__init__.py` loads when they are first used.

To add one, import it here from its folder.
"""

from skdptune import accounting as accounting
from skdptune import audit as audit
from skdptune import base as base
from skdptune import calibration as calibration
from skdptune import checks as checks
from skdptune import ensemble as ensemble
from skdptune import inspection as inspection
from skdptune import ledger as ledger
from skdptune import linear_model as linear_model
from skdptune import mechanisms as mechanisms
from skdptune import metrics as metrics
from skdptune import model_selection as model_selection
from skdptune import neural_network as neural_network
from skdptune import preprocessing as preprocessing
from skdptune import testing as testing
from skdptune._version import __version__ as __version__
from skdptune.base import PrivateRows as PrivateRows
from skdptune.calibration import PrivateConformalClassifier as PrivateConformalClassifier
from skdptune.calibration import PrivateConformalRegressor as PrivateConformalRegressor
from skdptune.calibration import PrivateScoreCurves as PrivateScoreCurves
from skdptune.calibration import PrivateThreshold as PrivateThreshold
from skdptune.checks import check as check
from skdptune.checks import report as report
from skdptune.ensemble import DPExplainableBoostingClassifier as DPExplainableBoostingClassifier
from skdptune.ensemble import DPExplainableBoostingRegressor as DPExplainableBoostingRegressor
from skdptune.ledger import PrivacyLedger as PrivacyLedger
from skdptune.ledger import config_context as config_context
from skdptune.ledger import get_config as get_config
from skdptune.ledger import set_config as set_config
from skdptune.linear_model import AdaOPSLinearRegression as AdaOPSLinearRegression
from skdptune.linear_model import AdaSSPLinearRegression as AdaSSPLinearRegression
from skdptune.linear_model import DPLinearSVC as DPLinearSVC
from skdptune.linear_model import DPLogisticRegression as DPLogisticRegression
from skdptune.linear_model import DPRidge as DPRidge
from skdptune.linear_model import OPSLinearRegression as OPSLinearRegression
from skdptune.linear_model import (
    OutputPerturbationLinearRegression as OutputPerturbationLinearRegression,
)
from skdptune.linear_model import PTRLinearRegression as PTRLinearRegression
from skdptune.model_selection import AdaptiveTrials as AdaptiveTrials
from skdptune.model_selection import Composition as Composition
from skdptune.model_selection import DoublingThresholdSearchCV as DoublingThresholdSearchCV
from skdptune.model_selection import DPAdaptiveSearchCV as DPAdaptiveSearchCV
from skdptune.model_selection import DParetoSearchCV as DParetoSearchCV
from skdptune.model_selection import DPGridSearchCV as DPGridSearchCV
from skdptune.model_selection import DPRandomSearchCV as DPRandomSearchCV
from skdptune.model_selection import FullTable as FullTable
from skdptune.model_selection import HoldOut as HoldOut
from skdptune.model_selection import LeastEpsilon as LeastEpsilon
from skdptune.model_selection import NoisyMaximum as NoisyMaximum
from skdptune.model_selection import ParetoFront as ParetoFront
from skdptune.model_selection import RandomRuns as RandomRuns
from skdptune.model_selection import ThresholdRounds as ThresholdRounds
from skdptune.model_selection import pareto_search as pareto_search
from skdptune.neural_network import DPNeuralNetBinaryClassifier as DPNeuralNetBinaryClassifier
from skdptune.neural_network import DPNeuralNetClassifier as DPNeuralNetClassifier
from skdptune.neural_network import DPNeuralNetRegressor as DPNeuralNetRegressor
from skdptune.preprocessing import DPPCA as DPPCA
from skdptune.preprocessing import BoundedScaler as BoundedScaler
from skdptune.preprocessing import DPMinMaxScaler as DPMinMaxScaler
from skdptune.preprocessing import DPStandardScaler as DPStandardScaler
from skdptune.preprocessing import RowNormClipper as RowNormClipper
from skdptune.preprocessing import Schema as Schema
from skdptune.preprocessing import TableEncoder as TableEncoder
from skdptune.preprocessing import make_private_pipeline as make_private_pipeline
