""" """

from skdptune.model_selection._running._domain import (
    PUBLIC_VALIDATION,
    check_domain,
    check_form,
    is_search,
    public_labels,
)
from skdptune.model_selection._running._progress import Progress
from skdptune.model_selection._running._quiet import Quiet
from skdptune.model_selection._running._random_split import (
    RandomSplit,
    expected_size,
    parts,
    random_split,
)
from skdptune.model_selection._running._results import data_independent_model, results_of
from skdptune.model_selection._running._runs import (
    Data,
    Result,
    Run,
    Scoring,
    can_be_together,
    child_stream,
    is_failure,
    noise_random,
    perform,
    perform_all,
    perform_together,
    values_of,
)
from skdptune.model_selection._running._streams import Streams, generator_of, spawned
from skdptune.model_selection._running._utilities import (
    auto_partitions,
    pick_noise,
    pure_pick,
    utilities_of,
)
from skdptune.model_selection._running._winner import WinnerMethods

__all__ = [
    "Data",
    "RandomSplit",
    "PUBLIC_VALIDATION",
    "Progress",
    "Quiet",
    "Result",
    "Run",
    "Scoring",
    "Streams",
    "WinnerMethods",
    "auto_partitions",
    "can_be_together",
    "check_domain",
    "check_form",
    "child_stream",
    "random_split",
    "expected_size",
    "generator_of",
    "is_failure",
    "is_search",
    "noise_random",
    "parts",
    "perform",
    "perform_all",
    "perform_together",
    "pick_noise",
    "public_labels",
    "pure_pick",
    "results_of",
    "spawned",
    "data_independent_model",
    "utilities_of",
    "values_of",
]
