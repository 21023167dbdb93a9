"""The cost of a released search, planned before the data, and the budget that keeps to it."""

from skdptune.model_selection._pareto._release._plan import ReleaseBudget, ReleasePlan
from skdptune.model_selection._pareto._release._planning import plan_release

__all__ = ["ReleaseBudget", "ReleasePlan", "plan_release"]
