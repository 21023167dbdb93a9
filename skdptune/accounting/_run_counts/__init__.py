""" """

from skdptune.accounting._run_counts._distributions import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    RunCountDistribution,
    TruncatedNegativeBinomial,
)

__all__ = [
    "Binomial",
    "Geometric",
    "Logarithmic",
    "Poisson",
    "RunCountDistribution",
    "TruncatedNegativeBinomial",
]
