"""Run candidates on the data: the only code that fits and scores, and hides failures."""

from skdptune.model_selection._running._data import Data, Door, Records
from skdptune.model_selection._running._domain import (
    PUBLIC_RULE,
    PUBLIC_VALIDATION,
    check_form,
    check_targets,
    is_search,
    public_labels,
)
from skdptune.model_selection._running._engine import Outcome, Values, fit_and_score, is_failure
from skdptune.model_selection._running._made_up import made_up_like
from skdptune.model_selection._running._made_up_fits import (
    N_TRIED,
    check_fits,
    check_fits_of_nothing,
    data_independent_model,
)
from skdptune.model_selection._running._parallel import perform_all
from skdptune.model_selection._running._partition_utilities import (
    auto_partitions,
    choice_noise,
    partition_utilities,
    permute_and_flip_cost,
)
from skdptune.model_selection._running._quiet import (
    Quiet,
    Streams,
    child_stream,
    generator_of,
    noise_random,
    spawned,
)
from skdptune.model_selection._running._random_split import (
    RandomSplit,
    disjoint_folds,
    disjoint_partitions,
    expected_size,
    random_split,
)
from skdptune.model_selection._running._record_by_record import check_steps
from skdptune.model_selection._running._run_file import RunFile
from skdptune.model_selection._running._runs import (
    ONE_FIT,
    Fold,
    Material,
    OnResult,
    Result,
    Run,
    Scoring,
    perform_runs,
    results_by_metric,
)
from skdptune.model_selection._running._winner import WinnerMethods

__all__ = [
    "Data",
    "Door",
    "Fold",
    "Material",
    "N_TRIED",
    "ONE_FIT",
    "OnResult",
    "Outcome",
    "PUBLIC_RULE",
    "PUBLIC_VALIDATION",
    "Quiet",
    "RandomSplit",
    "Records",
    "Result",
    "Run",
    "RunFile",
    "Scoring",
    "Streams",
    "Values",
    "WinnerMethods",
    "auto_partitions",
    "check_fits",
    "check_fits_of_nothing",
    "check_form",
    "check_steps",
    "check_targets",
    "child_stream",
    "choice_noise",
    "data_independent_model",
    "disjoint_folds",
    "disjoint_partitions",
    "expected_size",
    "fit_and_score",
    "generator_of",
    "made_up_like",
    "is_failure",
    "is_search",
    "noise_random",
    "partition_utilities",
    "perform_all",
    "perform_runs",
    "permute_and_flip_cost",
    "public_labels",
    "random_split",
    "results_by_metric",
    "spawned",
]
