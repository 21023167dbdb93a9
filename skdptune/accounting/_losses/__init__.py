"""The numbers behind a profile: privacy loss distributions and Rényi curves."""

from skdptune.accounting._losses._closed_forms import ROUNDING, gaussian_delta, subsampled_halves
from skdptune.accounting._losses._composition import composed_sides, self_composed_sides
from skdptune.accounting._losses._curves import (
    MOST_POINTS,
    Halves,
    Sides,
    common_step,
    complete,
    connect_dots,
    half_through_points,
    halves_of_bound,
    hockey_stick,
    largest_loss,
    least_errors,
    pair_masses,
    step_at_most,
    upper_half,
    with_bounded_size,
    worst_of,
)
from skdptune.accounting._losses._distribution import (
    LARGEST_LOSS,
    LEAST_RATE,
    LossDistribution,
    cells_below,
    place_above,
)
from skdptune.accounting._losses._dp_accounting import is_renyi_supported, to_pld
from skdptune.accounting._losses._events import form_of_event, losses_of_event
from skdptune.accounting._losses._forms import Form, GaussianForm, ResponseForm
from skdptune.accounting._losses._renyi import (
    INTEGER_ORDERS,
    ORDERS,
    RenyiCurve,
    RenyiMaximum,
    RenyiMultiple,
    RenyiOfEvent,
    RenyiOfPure,
    RenyiSubsampled,
    RenyiSum,
    RenyiTable,
    log_binomial,
    table_of_integer_orders,
)
