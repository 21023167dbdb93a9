"""Costs of whole searches: a selection, also with a random split and a final fit."""

from skdptune.accounting._tuning._comparison import BoundComparison, compare_bounds
from skdptune.accounting._tuning._lower_bound import selection_lower_bound
from skdptune.accounting._tuning._splitting import mixture, search_on_split
from skdptune.accounting._tuning._tune_then_fit import VARIANTS, tune_then_fit
