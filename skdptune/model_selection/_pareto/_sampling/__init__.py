"""Proposals of points to evaluate: search spaces, surrogates, acquisition functions, samplers."""

from skdptune.model_selection._pareto._sampling._fronts import (
    front,
    hypervolume_history,
    non_dominated,
)
from skdptune.model_selection._pareto._sampling._samplers import (
    EVALUATION,
    NUMBER,
    PROPOSAL,
    REFUSED,
    WITHDRAWN,
    SamplerSettings,
    check_sampler,
    evaluation_numbers,
    feature_groups,
    make_sampler,
    predictions,
    proposal_numbers,
)
from skdptune.model_selection._pareto._sampling._spaces import SearchSpace
from skdptune.model_selection._pareto._sampling._surrogates import Scales, Surrogate

__all__ = [
    "EVALUATION",
    "NUMBER",
    "PROPOSAL",
    "REFUSED",
    "SamplerSettings",
    "Scales",
    "SearchSpace",
    "Surrogate",
    "WITHDRAWN",
    "check_sampler",
    "evaluation_numbers",
    "feature_groups",
    "front",
    "hypervolume_history",
    "make_sampler",
    "non_dominated",
    "predictions",
    "proposal_numbers",
]
