"""Private estimators: what they promise, what any estimator costs, and what a fitted one has cost.

An estimator is *private* if it has ``privacy_profile(n_samples, n_features=None)``, which follows
from its parameters and public sizes alone, and after ``fit`` a ``privacy_`` report; the module
`protocol` states the whole contract. `profile_of` returns the cost of any estimator before it sees
data: of a private one by its own word, of a pipeline by composing its steps, of another library's
model through `register_profile`.
"""

from skdptune.base._costs import privacy_of, profile_of, register_profile
from skdptune.base._mixin import PrivateEstimatorMixin
from skdptune.base._recording import PrivacyWarning
from skdptune.base._refusals import NoProfileError
from skdptune.base._scikit_learn import HOLDERS as HOLDERS  # and registers its objects

# isort: split
# For the other folders of this package.
from skdptune.base._charges import Charge as Charge
from skdptune.base._charges import charge_of_fit as charge_of_fit
from skdptune.base._costs import DEFAULT_DELTA as DEFAULT_DELTA
from skdptune.base._costs import SEEDED as SEEDED
from skdptune.base._costs import assumptions_in as assumptions_in
from skdptune.base._costs import assumptions_of as assumptions_of
from skdptune.base._costs import beside_refusals as beside_refusals
from skdptune.base._costs import cost_of as cost_of
from skdptune.base._costs import has_cost as has_cost
from skdptune.base._costs import neighbouring_of as neighbouring_of
from skdptune.base._costs import once as once
from skdptune.base._costs import refusals_of as refusals_of
from skdptune.base._costs import replaces_records as replaces_records
from skdptune.base._costs import report_of as report_of
from skdptune.base._costs import weakest as weakest
from skdptune.base._mixin import PUBLIC_LABELS as PUBLIC_LABELS
from skdptune.base._mixin import PUBLIC_SIZE as PUBLIC_SIZE
from skdptune.base._mixin import PUBLIC_WEIGHTS as PUBLIC_WEIGHTS
from skdptune.base._mixin import advised_delta as advised_delta
from skdptune.base._mixin import warn_of_large_delta as warn_of_large_delta
from skdptune.base._parameters import RESERVED_PARAMETERS as RESERVED_PARAMETERS
from skdptune.base._parameters import change_parameters as change_parameters
from skdptune.base._parameters import check_fit_parameters as check_fit_parameters
from skdptune.base._parameters import cost_parameters as cost_parameters
from skdptune.base._parameters import declared_cost_parameters as declared_cost_parameters
from skdptune.base._parameters import declared_labels as declared_labels
from skdptune.base._parameters import disable_caching as disable_caching
from skdptune.base._parameters import forget_seeds as forget_seeds
from skdptune.base._parameters import legacy_generator as legacy_generator
from skdptune.base._parameters import nested_estimators as nested_estimators
from skdptune.base._parameters import own_parameters as own_parameters
from skdptune.base._parameters import own_seeds as own_seeds
from skdptune.base._parameters import set_seeds as set_seeds
from skdptune.base._payments import carry_settings as carry_settings
from skdptune.base._payments import paid_for as paid_for
from skdptune.base._reading import as_table as as_table
from skdptune.base._reading import by_halves as by_halves
from skdptune.base._reading import finite_rows as finite_rows
from skdptune.base._reading import first_step as first_step
from skdptune.base._reading import kind_of_list as kind_of_list
from skdptune.base._reading import named_like as named_like
from skdptune.base._reading import reads_numbers as reads_numbers
from skdptune.base._reading import table_of as table_of
from skdptune.base._reading import table_shape as table_shape
from skdptune.base._reading import zeroed as zeroed
from skdptune.base._recording import announce_search as announce_search
from skdptune.base._recording import count_fit as count_fit
from skdptune.base._recording import expected_refits as expected_refits
from skdptune.base._recording import is_paid as is_paid
from skdptune.base._recording import ledger_for as ledger_for
from skdptune.base._recording import recorded_together as recorded_together
from skdptune.base._records import Records as Records
from skdptune.base._records import check_class_weight as check_class_weight
from skdptune.base._records import check_classes as check_classes
from skdptune.base._records import check_rows_form as check_rows_form
from skdptune.base._records import check_target_shape as check_target_shape
from skdptune.base._records import check_target_type as check_target_type
from skdptune.base._records import checked_class_weight as checked_class_weight
from skdptune.base._records import kind_of_targets as kind_of_targets
from skdptune.base._records import labels_in as labels_in
from skdptune.base._records import middle_and_half as middle_and_half
from skdptune.base._records import proper_targets as proper_targets
from skdptune.base._records import read_targets as read_targets
from skdptune.base._records import rows_with_gaps as rows_with_gaps
from skdptune.base._records import sorted_labels as sorted_labels
from skdptune.base._records import target_array as target_array
from skdptune.base._records import target_range as target_range
from skdptune.base._records import validate_records as validate_records
from skdptune.base._records import validate_rows as validate_rows
from skdptune.base._records import weights_of_classes as weights_of_classes
from skdptune.base._refusals import Refusal as Refusal
from skdptune.base._refusals import distrusted as distrusted
from skdptune.base._refusals import no_profile as no_profile
from skdptune.base._refusals import together as together
from skdptune.base._tuning import BUDGET_PARAMETERS as BUDGET_PARAMETERS
from skdptune.base._tuning import LEARNING_RATES as LEARNING_RATES
from skdptune.base._tuning import LOSS_OF_DOUBLING as LOSS_OF_DOUBLING
from skdptune.base._tuning import Budget as Budget
from skdptune.base._tuning import BudgetOwner as BudgetOwner
from skdptune.base._tuning import budget_owners as budget_owners
from skdptune.base._tuning import check_secret_size as check_secret_size
from skdptune.base._tuning import is_set_by_budget as is_set_by_budget
from skdptune.base._tuning import scale_to_tuning as scale_to_tuning
from skdptune.base._tuning import set_budget as set_budget
from skdptune.base._tuning import set_public_size as set_public_size
from skdptune.base._tuning import suggested_space as suggested_space
from skdptune.base._tuning import suggests_a_space as suggests_a_space
from skdptune.base._tuning import without_noise as without_noise
from skdptune.base._tuning import worst_cost_of_budget as worst_cost_of_budget
from skdptune.ledger import ADD_OR_REMOVE as ADD_OR_REMOVE
from skdptune.ledger import REPLACE as REPLACE
from skdptune.ledger import ZERO_OUT as ZERO_OUT

__all__ = [
    "NoProfileError",
    "PrivacyWarning",
    "PrivateEstimatorMixin",
    "privacy_of",
    "profile_of",
    "register_profile",
]
