"""Privacy costs of publishing a choice, threshold answers, a posterior sample, or noisy sums."""

from skdptune.accounting._mechanisms._noisy_max import (
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from skdptune.accounting._mechanisms._persons_minimum import persons_minimum_curves
from skdptune.accounting._mechanisms._posterior_sample import (
    covered_squared_residual,
    largest_squared_residual,
    posterior_sample,
    printed_posterior_epsilon,
)
from skdptune.accounting._mechanisms._random_allocation import random_allocation
from skdptune.accounting._mechanisms._thresholds import (
    above_threshold,
    doubling_threshold,
    sparse_vector,
    sparse_vector_split,
)
