"""scikit-learn's own tests of its searches, with ours in their place.

All of them are run but those that make no grid search and no randomized search. Those that fail
are listed below, each with its reason: one that is not listed must pass, one that is must fail.
"""

from __future__ import annotations

from typing import Any

import pytest
import sklearn
from packaging.version import Version

from tests.model_selection.scikit_learn_searches import Case, cases_of, give_costs, load_tests

# Where the lists below are known to be complete.
KNOWN = Version("1.7") <= Version(sklearn.__version__) < Version("1.10")
MODULE = load_tests() if KNOWN else None
CASES = [] if MODULE is None else cases_of(MODULE)

# By reasons: tests, or single ones of a parametrization.
REASONS: dict[str, tuple[str, ...]] = {
    # A search shows only values that it pays for.
    "train scores would have to be paid for": (
        "test_custom_run_search",
        "test_grid_search_cv_results",
        "test_search_default_iid[GridSearchCV-dict0]",
    ),
    "times can depend on a record": (
        "test_grid_search_cv_results_multimetric",
        "test_search_cv_timing",
    ),
    "scorers of known sensitivity take no metadata": (
        "test_multi_metric_search_forwards_metadata",
    ),
    "a random search shows only its winner": (
        "test_random_search_cv_results",
        "test_random_search_cv_results_multimetric",
        "test_refit_callable_out_bound[RandomizedSearchCV--1]",
        "test_refit_callable_out_bound[RandomizedSearchCV-2]",
        "test_search_default_iid[RandomizedSearchCV-dict1]",
        "test_search_with_2d_array",
    ),
    "how many candidates a random search tries is secret": (
        "test_search_callbacks_no_propagation[RandomizedSearchCV1-False]",
        "test_search_callbacks_no_propagation[RandomizedSearchCV1-True]",
        "test_search_callbacks_propagation[RandomizedSearchCV1-False]",
        "test_search_callbacks_propagation[RandomizedSearchCV1-True]",
    ),
    "callbacks inside fits would see what is not paid for": (
        "test_search_callbacks_propagation[GridSearchCV0-False]",
        "test_search_callbacks_propagation[GridSearchCV0-True]",
    ),
    "scores are noisy": (
        "test_gridsearch_no_predict",
        "test_search_cv_results_rank_tie_breaking",
    ),
    # Whether a fit fails can depend on a record.
    "neither a warning nor a special score may show that a fit or a score failed": (
        "test_callable_multimetric_error_failing_clf",
        "test_grid_search_failing_classifier",
        "test_search_callbacks_with_partial_fit_failures",
        "test_searchcv_raise_warning_with_non_finite_score",
        "test_unsupported_sample_weight_scorer",
    ),
    # A record must not decide where another one goes, or what becomes of it.
    "each record draws its own fold, at random": (
        "test_grid_search_correct_score_results",
        "test_grid_search_with_multioutput_data",
        "test_search_cv_sample_weight_equivalence",
    ),
    "splitters by other records, labels or groups are refused, and so are lists of splits": (
        "test_empty_cv_iterator_error",
        "test_grid_search_cv_splits_consistency",
        "test_grid_search_groups",
        "test_random_search_bad_cv",
    ),
    "in a matrix of all pairs, no row is about only one record": (
        "test_grid_search_precomputed_kernel",
        "test_search_cv_pairwise_property_equivalence_of_precomputed",
    ),
    "improper records are replaced one by one, so that estimators are handed arrays": (
        "test_X_as_list",
        "test_pandas_input",
        "test_y_as_list",
    ),
    "a step that fails for a value that it has not seen would fail for one record": (
        "test_search_with_estimators_issue_29157",
    ),
    # What would be paid for in vain is refused before.
    "targets of a shape that the estimator's tags exclude would fail every fit": (
        "test_gridsearch_nd",
    ),
    "seeds are drawn by the search, one for each fit": (
        "test_search_cv_results_none_param",
        "test_unsupervised_grid_search",
    ),
    # The same behaviour with another message, or tested elsewhere.
    "the same errors are worded otherwise": (
        "test_callable_multimetric_clf_all_fits_fail",
        "test_grid_search_bad_param_grid",
        "test_grid_search_classifier_all_fits_fail",
        "test_grid_search_no_score",
    ),
    "what is shown on the way goes to standard error, since prints of fits are dropped": (
        "test_search_cv_verbose_3",
    ),
    "tasks have other names, and the test has too few records": (
        "test_search_callbacks_receive_sample_weight",
    ),
}
LISTED = {name: reason for reason, names in REASONS.items() for name in names}
# On one core; this one starts processes.
SLOW = ("test_search_with_2d_array",)
SINCE_1_9 = (
    "test_search_callbacks_",
    "test_unsupported_sample_weight_scorer",
    "test_search_cv_sample_weight_equivalence",
)


def _parameter(case: Case) -> Any:
    plain = case.name.partition("[")[0]
    reason = LISTED.get(case.name, LISTED.get(plain))
    marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
    if plain in SLOW:
        marks.append(pytest.mark.slow)
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.skipif(not CASES, reason="scikit-learn's tests are missing, or of another version")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
def test_of_scikit_learn(
    case: Case, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_costs(monkeypatch)
    fixtures = {name: request.getfixturevalue(name) for name in case.fixtures}
    case.function(**case.arguments, **fixtures)


@pytest.mark.skipif(not CASES, reason="scikit-learn's tests are missing, or of another version")
def test_the_list_names_tests() -> None:
    known = {case.name for case in CASES} | {case.name.partition("[")[0] for case in CASES}
    missing = sorted(set(LISTED) - known)
    if Version(sklearn.__version__) < Version("1.9"):
        missing = [name for name in missing if not name.startswith(SINCE_1_9)]
    assert missing == []
    assert sum(len(names) for names in REASONS.values()) == len(LISTED)
