"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.mechanisms._batches import Batch
from skdptune.mechanisms._exact_noise import (
    NoiseOfSeveral,
    NormalNoise,
    add_gaussian,
    add_spherical,
    draw_images,
    grid_of,
    spherical_spread,
)
from skdptune.mechanisms._noise import (
    UNIT,
    WHOLE,
    in_units,
    nonprivate_profile,
    of_unit_total,
    pure_profile,
    unit_total,
)
from skdptune.mechanisms._noisy_gradient_plan import (
    MAX_EPOCHS,
    SAMPLINGS,
    NoisyGradientPlan,
    check_noise_and_budget,
    plan_noisy_gradient,
)
from skdptune.mechanisms._quantiles import (
    STEPS,
    PointCounts,
    counts_of_grid,
    counts_of_points,
    on_grid,
    quantile_of_counts,
)
from skdptune.mechanisms._randomness import check_seed, repeatable_generator
