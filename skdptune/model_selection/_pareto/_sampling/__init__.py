""" """

from skdptune.model_selection._pareto._sampling._fronts import (
    front,
    hypervolume_history,
    non_dominated,
)
from skdptune.model_selection._pareto._sampling._samplers import (
    FOUND,
    NUMBER,
    REFUSED,
    TURN,
    WITHDRAWN,
    SamplerSettings,
    check_sampler,
    evaluation_numbers,
    feature_groups,
    make_sampler,
    predictions,
    turns,
)
from skdptune.model_selection._pareto._sampling._spaces import SearchSpace
from skdptune.model_selection._pareto._sampling._surrogates import Scales, Surrogate

__all__ = [
    "FOUND",
    "NUMBER",
    "REFUSED",
    "SamplerSettings",
    "Scales",
    "SearchSpace",
    "Surrogate",
    "TURN",
    "WITHDRAWN",
    "check_sampler",
    "evaluation_numbers",
    "feature_groups",
    "front",
    "hypervolume_history",
    "make_sampler",
    "non_dominated",
    "predictions",
    "turns",
]
