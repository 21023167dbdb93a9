"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.base._charges import Charge, charge_of_fit
from skdptune.base._costs import (
    DEFAULT_DELTA,
    SEEDED,
    assumptions_in,
    assumptions_of,
    beside_refusals,
    cost_of,
    has_cost,
    neighbouring_of,
    once,
    refusals_of,
    replaces_records,
    report_of,
    weakest,
)
from skdptune.base._mixin import (
    PUBLIC_LABELS,
    PUBLIC_WEIGHTS,
    advised_delta,
    warn_of_large_delta,
)
from skdptune.base._parameters import (
    RESERVED_PARAMETERS,
    arguments_of,
    change_parameters,
    check_fit_parameters,
    cost_parameters,
    declared_cost_parameters,
    declared_labels,
    disable_caching,
    forget_seeds,
    legacy_generator,
    nested_estimators,
    own_parameters,
    own_seeds,
    set_seeds,
)
from skdptune.base._payments import carry_settings, paid_for
from skdptune.base._persons import (
    OTHER_SOLVER,
    PUBLIC_SIZE,
    Persons,
    about_persons,
    about_unit,
    by_persons,
    checked_persons,
    hold_persons,
    names_persons,
    persons_of,
    persons_refusal,
    refused_groups,
)
from skdptune.base._reading import (
    as_table,
    by_halves,
    finite_rows,
    first_step,
    kind_of_list,
    named_like,
    reads_numbers,
    table_of,
    table_shape,
    zeroed,
)
from skdptune.base._recording import (
    announce_search,
    count_fit,
    expected_refits,
    is_paid,
    ledger_for,
    recorded_together,
)
from skdptune.base._records import (
    Records,
    check_class_weight,
    check_classes,
    check_given,
    check_length,
    check_rows_form,
    check_target_shape,
    check_target_type,
    checked_class_weight,
    kind_of_targets,
    label_set,
    labels_in,
    middle_and_half,
    proper_targets,
    read_targets,
    rows_with_gaps,
    target_array,
    target_range,
    target_ranges,
    validate_records,
    validate_rows,
    weights_of_classes,
)
from skdptune.base._refusals import (
    Refusal,
    distrusted,
    distrusted_name,
    no_profile,
    refusal_of_name,
    together,
)
from skdptune.base._rows_in_parts import PrivateRows, check_in_memory, read_rows
from skdptune.base._scikit_learn import HOLDERS
from skdptune.base._tuning import (
    BUDGET_PARAMETERS,
    LEARNING_RATES,
    LOSS_OF_DOUBLING,
    Budget,
    BudgetOwner,
    budget_owners,
    check_secret_size,
    is_set_by_budget,
    scale_to_tuning,
    set_budget,
    set_public_size,
    suggested_space,
    suggests_a_space,
    without_noise,
    worst_cost_of_budget,
)
from skdptune.ledger._shared import ADD_OR_REMOVE, PERSON, PERSON_ZEROED, REPLACE, ZERO_OUT
