"""Run candidates on the data: the only code that fits and scores, and hides failures."""

from skdptune.model_selection._running._data import (
    Data,
    Door,
    RandomSplit,
    disjoint_folds,
    disjoint_partitions,
    expected_size,
    random_split,
    rows_of_persons,
)
from skdptune.model_selection._running._engine import (
    N_TRIED,
    Outcome,
    Values,
    check_fits,
    check_fits_of_nothing,
    final_model,
    fit_and_score,
    is_failure,
)
from skdptune.model_selection._running._made_up import (
    PUBLIC_RULE,
    PUBLIC_VALIDATION,
    check_form,
    check_targets,
    is_search,
    made_up_like,
    public_labels,
)
from skdptune.model_selection._running._parallel import perform_all
from skdptune.model_selection._running._quiet import (
    Quiet,
    Streams,
    child_stream,
    generator_of,
    noise_random,
    spawned,
)
from skdptune.model_selection._running._record_by_record import (
    check_persons,
    check_steps,
    check_takes_parts,
    protects_persons,
    refusal_of_parts,
)
from skdptune.model_selection._running._run_file import RunFile
from skdptune.model_selection._running._runs import (
    ONE_FIT,
    Fold,
    Material,
    OnResult,
    Result,
    Run,
    Scoring,
    auto_partitions,
    choice_noise,
    clipped_deviation,
    partition_utilities,
    perform_runs,
    permute_and_flip_cost,
    results_by_metric,
)
