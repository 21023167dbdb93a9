"""Displays that plot the results and the privacy costs of searches, and the results of audits.

matplotlib is loaded when something is drawn; install it with the extra ``plot``.
"""

from skdptune.inspection._audit_display import AuditDisplay
from skdptune.inspection._budget import BudgetDisplay
from skdptune.inspection._doubling_rounds import DoublingRoundsDisplay
from skdptune.inspection._epsilon_curve import EpsilonCurveDisplay
from skdptune.inspection._grid_scores import GridScoresDisplay
from skdptune.inspection._ledger_display import LedgerDisplay
from skdptune.inspection._pareto_front import ParetoFrontDisplay
from skdptune.inspection._privacy_profile import PrivacyProfileDisplay, TradeOffDisplay
from skdptune.inspection._score_curves import ScoreCurvesDisplay
from skdptune.inspection._search_plan import SearchPlanDisplay, TuningCostDisplay

__all__ = [
    "AuditDisplay",
    "BudgetDisplay",
    "DoublingRoundsDisplay",
    "EpsilonCurveDisplay",
    "GridScoresDisplay",
    "LedgerDisplay",
    "ParetoFrontDisplay",
    "PrivacyProfileDisplay",
    "ScoreCurvesDisplay",
    "SearchPlanDisplay",
    "TradeOffDisplay",
    "TuningCostDisplay",
]
