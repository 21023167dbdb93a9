"""Distributions of the number of runs of a private search."""

from skdptune.accounting._run_counts._base import RunCountDistribution, check_distribution
from skdptune.accounting._run_counts._distributions import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
)
