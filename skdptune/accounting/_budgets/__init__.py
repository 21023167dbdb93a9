"""Filters that keep adaptively chosen releases within a total budget."""

from skdptune.accounting._budgets._budget_filter import BudgetExceededError, BudgetFilter
from skdptune.accounting._budgets._gaussian_filter import GaussianFilter, charge_of
from skdptune.accounting._budgets._renyi_filter import RenyiFilter, suitable_order
