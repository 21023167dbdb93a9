"""Arguments outside of their domains are refused by name, before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event

from skdptune.accounting import (
    Binomial,
    BudgetFilter,
    GaussianFilter,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    PrivacyReport,
    RenyiFilter,
    RunCountDistribution,
    SharedCurve,
    TruncatedNegativeBinomial,
    above_threshold,
    calibrate,
    compare_bounds,
    doubling_threshold,
    exponential_mechanism,
    mixture,
    permute_and_flip,
    posterior_sample,
    random_allocation,
    report_noisy_max,
    search_on_split,
    selection_lower_bound,
    sparse_vector,
    sparse_vector_split,
    suitable_order,
    tune_then_fit,
    with_failure,
)

PURE, GAUSSIAN = PrivacyProfile.pure(1.0), PrivacyProfile.gaussian(0.5)
from_curve, from_event = PrivacyProfile.from_curve, PrivacyProfile.from_event
V, T = ValueError, TypeError
Refusal = tuple[Callable[[], Any], type[Exception], str]


def each(
    make: Callable[[Any], Any], values: list[Any], error: type, message: str
) -> list[Refusal]:
    """Return one refusal for each value of an argument."""
    return [(lambda value=value: make(value), error, message) for value in values]


PROFILES: list[Refusal] = [
    *each(PrivacyProfile.pure, [math.nan, math.inf], V, "epsilon must be a number in "),
    (lambda: PrivacyProfile.gaussian(31.0), V, "mu must be a number in "),
    (lambda: PrivacyProfile.approximate(1.0, 1.5), V, r"delta must be a number in \[0, 1\]; got "),
    *each(PURE.subsampled, [0.0, 1.1, math.nan], V, r"fraction must be a number in \(0, 1\]; got"),
    *each(GAUSSIAN.rdp, [1.0, math.nan], V, r"orders must be a number in \(1, inf\)"),
    *each(
        lambda value: GAUSSIAN.delta(0.5, value),
        ["both", "", 1],
        V,
        "direction must be one of 'remove', 'add'; got ",
    ),
    *each(GAUSSIAN.epsilon, [math.nan, -1e-9, 1.0 + 1e-9], V, r"delta must be .* \[0, 1\]"),
    *each(GAUSSIAN.epsilon, ["1e-5", None, [1e-5], True], T, r"delta must be .* \[0, 1\]"),
    (lambda: from_event(1.0), T, "event must be a dp_accounting.DpEvent; got float"),
    *each(
        lambda step: from_event(dp_event.GaussianDpEvent(1.0), discretization=step),
        [0.0, 1.5, math.nan, 5e-324],
        V,
        r"discretization must be a number in \[1e-05, 1\]",
    ),
    (lambda: from_curve([], []), V, "epsilons must be increasing and not empty"),
    (lambda: from_curve([1.0, 1.0], [0.1, 0.1]), V, "epsilons must be increasing"),
    (lambda: from_curve([1.0, 2.0], [0.1]), V, "deltas must have as many entries as epsilons"),
    (lambda: from_curve([math.nan], [0.1]), V, r"epsilons must be a number in \[0, 600\]"),
    (lambda: from_curve([1.0], [-1e-9]), V, r"deltas must be a number in \[0, 1\]"),
    (lambda: from_curve([[1.0]], [[0.1]]), V, "epsilons must be one-dimensional"),
    (lambda: from_curve("one", [0.1]), T, "epsilons must be an array of numbers"),
    (lambda: from_curve([1.0], [0.1], deltas_add=[0.1, 0.0]), V, "deltas must have as many"),
    (lambda: from_curve([1.0], [0.1], deltas_add=[2.0]), V, r"deltas_add must be .* \[0, 1\]"),
    *each(GAUSSIAN.to_dict, [[-0.1], [1.5], [math.nan]], V, r"deltas must be .* \[0, 1\]"),
    (lambda: with_failure(PURE, 1.5), V, "probability must be"),
    (lambda: with_failure(1.0, 0.1), T, "profile must be"),
    (lambda: SharedCurve(31.0, 1e-9), V, r"shift must be a number in \(0, 30\]; got 31"),
    (lambda: GAUSSIAN.selected(10), T, "distribution must be .*the number of runs, such as"),
    *each(
        lambda bound: GAUSSIAN.selected(Geometric(0.1), bound),
        ["envelop", None],
        V,
        "bound must be one of 'envelope', 'profile', 'rdp', 'best'; got ",
    ),
]


def calibrated(**changes: Any) -> Any:
    def make(noise: float) -> PrivacyProfile:
        raise AssertionError("Nothing is computed.")

    return calibrate(make, **{"epsilon": 1.0, "delta": 1e-5, **changes})


CALIBRATION: list[Refusal] = [
    (lambda: calibrated(epsilon=0.0), V, "epsilon must be"),
    (lambda: calibrated(delta=1.5), V, r"delta must be a number in \[0, 1\]"),
    (lambda: calibrated(parameter="sigma"), V, "parameter must be one of 'noise', 'budget'; got"),
    (lambda: calibrated(lower=0.0), V, "lower must be"),
    (lambda: calibrated(lower=2.0, upper=1.0), V, "upper must be"),
    (lambda: calibrated(guess=1e7), V, "guess must be"),
    (lambda: calibrated(tolerance=0.9), V, "tolerance must be"),
    *(
        (lambda name=name: calibrated(**{name: "1"}), T, f"{name} must be a number")
        for name in ("epsilon", "delta", "lower", "upper", "guess", "tolerance")
    ),
]

SEARCHES: list[Refusal] = [
    *(
        (lambda call=call, delta=delta: call(PURE, Geometric(0.1), delta), V, "delta must be")
        for call in (compare_bounds, selection_lower_bound)
        for delta in (0.0, 1.0, math.nan)
    ),
    *(
        (lambda call=call: call(3, Geometric(0.1), 1e-6), T, "profile must be .*; got int")
        for call in (compare_bounds, selection_lower_bound)
    ),
    (lambda: compare_bounds(PURE, 0.1, 1e-6), T, "distribution must be .*; got float"),
    (lambda: mixture([], []), V, "weights must sum to 1"),
    (lambda: mixture([PURE, PURE], [1.5, -0.5]), V, "each of weights must be"),
    (lambda: mixture([1.0], [1.0]), T, "profiles must be"),
    (lambda: mixture([PURE, PURE], [1.0]), V, "weights must have as many entries as profiles"),
    (lambda: search_on_split(PURE, validation_fraction=0.2), V, "scored must be given"),
    (lambda: search_on_split(PURE, validation_fraction=1.0), V, "validation_fraction must be"),
    (lambda: search_on_split(PURE, None, PURE, bound="x"), V, "bound must be"),
    (lambda: search_on_split(PURE, tuning_fraction=1.0), V, "tuning_fraction must be"),
    (lambda: search_on_split(PURE, variant=3), V, "variant must be"),
    (
        lambda: search_on_split(PURE, PURE, PURE, validation_fraction=0.4, tuning_fraction=0.6),
        V,
        "tuning_fraction must be .*leave records for the final fit",
    ),
    *each(lambda q: tune_then_fit(PURE, PURE, q), [0.0, 1.0], V, r"fraction must be .* \(0, 1\)"),
    (lambda: tune_then_fit(PURE, PURE, 0.1, 3), V, "variant must be one of 1, 2; got 3"),
    (
        lambda: tune_then_fit(PURE, PURE, 0.1, bound="envelope"),
        V,
        "bound must be one of 'profile'",
    ),
]

MECHANISMS: list[Refusal] = [
    (lambda: report_noisy_max(0, 1.0), V, "n_candidates must be an integer of at least 1; got 0"),
    (lambda: report_noisy_max(2.0, 1.0), T, "n_candidates must be an integer"),
    *each(
        lambda x: report_noisy_max(2, x), [0.0, math.inf, math.nan], V, r"scale must be .*inf\)"
    ),
    (lambda: report_noisy_max(2, 1.0, sensitivity=-1.0), V, r"sensitivity .* \[0, inf\); got -1"),
    (lambda: report_noisy_max(2, 1.0, noise="gumbel"), V, "noise must be one of 'gaussian', 'lap"),
    (lambda: report_noisy_max(2, 1.0, monotone="yes"), T, "monotone must be True or False; got"),
    *each(permute_and_flip, [-0.1, 601.0], V, r"epsilon must be a number in \[0, 600\]; got"),
    *each(exponential_mechanism, [-0.1, 601.0], V, r"epsilon must be a number in \[0, 600\]; got"),
    (lambda: exponential_mechanism("1"), T, "epsilon must be a number"),
    (lambda: above_threshold(0.0, 1.0), V, r"epsilon_threshold must be .* \(0, 600\]; got 0\.0"),
    (lambda: sparse_vector(1.0, -1.0, 2), V, r"epsilon_queries must be .* \(0, 600\]; got -1\.0"),
    (lambda: sparse_vector(400, 300, 2), V, r"epsilon_threshold \+ epsilon_queries must be"),
    (lambda: sparse_vector(1.0, 1.0, 0), V, "max_hits must be an integer"),
    (lambda: sparse_vector_split(1.0, 1.0), T, "max_hits must be an integer"),
    (lambda: sparse_vector_split(0.0, 1), V, r"epsilon must be a number in \(0, 600\]; got 0"),
    (lambda: sparse_vector_split(1.0, 1, 1), T, "monotone must be True or False; got 1"),
    (lambda: doubling_threshold(0.1), V, "budget must be given if max_rounds is not; got neither"),
    (lambda: doubling_threshold(0.1, budget=0.05), V, "budget must be at least round_epsilon"),
    (lambda: doubling_threshold(0.0, budget=1.0), V, "round_epsilon must be a number in"),
    (
        lambda: doubling_threshold(0.1, max_rounds=0),
        V,
        "max_rounds must be an integer of at least",
    ),
    (lambda: doubling_threshold(0.1, max_rounds=1.5), T, "max_rounds must be an integer"),
    *each(lambda x: posterior_sample(x, 1.0), [0.0, -1.0], V, "leverage must be"),
    (lambda: posterior_sample(1.0, -1.0), V, "squared_residual must be"),
    *each(lambda x: random_allocation(x, 10), [0.01, math.inf], V, "noise_multiplier must be"),
    (lambda: random_allocation("much", 10), T, "noise_multiplier must be a number"),
    (lambda: random_allocation(1.0, 0), V, "n_batches must be an integer of at least 1"),
    (lambda: random_allocation(1.0, 2.5), T, "n_batches must be an integer"),
    (lambda: random_allocation(1.0, 5, 0), V, "n_steps must be an integer of at least 1"),
    (lambda: random_allocation(1.0, 10, spread=0.5), V, "spread must be"),
]

FILTERS: list[Refusal] = [
    (lambda: BudgetFilter(math.nan, 1.0), V, "round_epsilon must be a number"),
    (lambda: BudgetFilter("0.1", 1.0), T, "round_epsilon must be a number .* got str"),
    *each(
        lambda x: BudgetFilter(0.1, x), [-1.0, math.inf, 601.0], V, r"budget must be .* \(0, 600"
    ),
    (lambda: BudgetFilter(0.1, 0.09), V, r"budget must be at least round_epsilon \(0\.1\).*0\.09"),
    *each(BudgetFilter(0.1, 1.0).record, [1, 0, None, "hit", 0.5], T, "hit must be True or False"),
    *(
        (lambda make=make, given=given: make(*given), error, message)
        for make in (
            lambda epsilon, delta, failure=0.0: GaussianFilter(epsilon, delta, failure=failure),
            lambda epsilon, delta, failure=0.0: RenyiFilter(epsilon, delta, 8.0, failure=failure),
        )
        for given, error, message in (
            ((0.0, 1e-5), V, r"epsilon must be a number in \(0, inf\)"),
            ((1.0, 0.0), V, r"delta must be a number in \(0, 1\); got 0\.0"),
            (("1", 1e-5), T, "epsilon must be"),
            ((1.0, 1e-5, 1e-5), V, r"failure must be a number in \[0, 1e-05\)"),
            ((1.0, 1e-5, -0.1), V, "failure must be"),
        )
    ),
    (lambda: RenyiFilter(1.0, 1e-5, 1.0), V, r"order must be a number in \(1, 1e\+06\]; got 1\.0"),
    (lambda: RenyiFilter(1.0, 1e-5, "2"), T, "order must be"),
    (lambda: suitable_order(1.0, 1e-3, []), V, "parts must hold a profile at least"),
    (lambda: GaussianFilter(1.0, 1e-3).fits(0.5), T, "part must be a PrivacyProfile; got float"),
    (lambda: GaussianFilter(1.0, 1e-3).fits(PURE, 0), V, "count must be"),
]

REALS = [
    (lambda value: TruncatedNegativeBinomial(value, 0.5), "eta"),
    (lambda value: TruncatedNegativeBinomial.from_mean(3, value), "eta"),
    (lambda value: TruncatedNegativeBinomial(1, value), "gamma"),
    (Geometric, "gamma"),
    (Logarithmic, "gamma"),
    (lambda value: TruncatedNegativeBinomial.from_mean(value, 1), "mean"),
    (Geometric.from_mean, "mean"),
    (Logarithmic.from_mean, "mean"),
    (Poisson, "rate"),
    (Poisson.from_mean, "mean"),
    (lambda value: Binomial(3, value), "probability"),
    (lambda value: Binomial.from_mean(value, 3), "mean"),
]
NUMBERS_OF_RUNS: list[Refusal] = [
    *(
        refusal
        for make, name in REALS
        for refusal in (
            *each(make, [-1, math.nan, math.inf], V, f"{name} must be a number"),
            *each(make, ["0.5", None, True], T, f"{name} must be a number"),
        )
    ),
    (lambda: Geometric(0.0), V, r"gamma must be a number in \[1e-140, 1\); got 0.0"),
    (lambda: Geometric.from_mean(1.0), V, r"mean must be a number in \(1, inf\); got 1.0"),
    (lambda: TruncatedNegativeBinomial(1e7, 0.5), V, "eta must be"),
    (lambda: TruncatedNegativeBinomial.from_mean(1e6, -0.99), V, "mean must be .* larger eta"),
    *each(lambda p: Binomial(3, p), [0.0, 1.1], V, "probability must be"),
    (lambda: Binomial(0, 0.5), V, "trials must be an integer of at least 1"),
    (lambda: Binomial(2**60, 0.5), V, "trials must be at most"),
    (lambda: Binomial.from_mean(3.5, 3), V, r"mean must be a number in \(0, 3\]; got 3.5"),
    (lambda: Binomial.from_mean(3.5, 0), V, "trials must be"),
    *(
        (lambda name=name, x=x: getattr(Poisson(1), name)(x), V, r"x must be a number in \[0, 1\]")
        for name in ("pgf", "pgf_derivative", "pgf_second_derivative")
        for x in (-1e-9, 1.1, np.nan, [0.5, 1.5], [[0.5], [np.nan]])
    ),
    (lambda: Poisson(1).pgf([0.1, [0.2]]), T, "x must be a number"),
    (lambda: Poisson(1).probability_at_most(-1), V, "count must be an integer"),
    *each(Poisson(1).probability_at_most, [1.0, True], T, "count must be an integer"),
    *each(
        lambda size: Poisson(1).sample(0, size=size),
        [-1, (2, -1)],
        V,
        "size must be an integer of at least 0",
    ),
    (lambda: Poisson(1).sample(0, size=1.5), T, "size must be an integer"),
    *each(Poisson(1).sample, ["seed", True], T, "random_state must be"),
    (lambda: Poisson(1).sample(-1), V, "random_state must be an integer of at least 0"),
    *(
        (lambda values=values: RunCountDistribution.from_dict(values), V, message)
        for values, message in (
            ({}, r"distribution must be one of .*'geometric'.*; got None\."),
            ({"distribution": "uniform", "trials": 3}, "distribution must be .*; got 'uniform'"),
            ({"distribution": "poisson"}, r"parameters must be rate; got none\."),
            (
                {"distribution": "binomial", "trials": 3},
                r"parameters must be trials, probability; got trials",
            ),
            (
                {"distribution": "geometric", "gamma": 0.5, "eta": 1},
                "parameters must be gamma; got gamma, eta",
            ),
        )
    ),
    (
        lambda: Geometric.from_dict(Poisson(3).to_dict()),
        V,
        "distribution must be one of 'geometric'; got 'poisson'",
    ),
    (lambda: RunCountDistribution.from_dict("geometric"), T, "values must be a mapping"),
]


def reported(profile: Any = PURE, delta: Any = 1e-5, **more: Any) -> PrivacyReport:
    return PrivacyReport(profile, delta, **more)


REPORTS: list[Refusal] = [
    (lambda: reported(1.0), T, "profile must be a PrivacyProfile; got float"),
    (lambda: reported(delta=1.5), V, r"delta must be a number in \[0, 1\]; got 1\.5"),
    (lambda: reported(epsilon=-1.0), V, r"epsilon must be a number in \[0, inf\); got -1\.0"),
    (lambda: reported(epsilon="1"), T, r"epsilon must be a number in \[0, inf\); got str"),
    (lambda: reported(name=""), V, "name must be a str with visible characters; got ''"),
    (lambda: reported(note=None), T, "note must be a str; got NoneType"),
    (lambda: reported(bound=""), V, "bound must be a str with visible characters"),
    (lambda: reported(neighbouring=""), V, "neighbouring must be a str with visible characters"),
    (lambda: reported(parts=reported()), T, "parts must be .*Put it in a list"),
    (lambda: reported(assumptions="n is public"), T, "assumptions must be .*Put it in a list"),
    (lambda: reported().statement(curator="A"), T, "about must have keys"),
    (lambda: reported().statement(curators="A"), T, "curators must be .*Put it in a list"),
    (lambda: reported().statement(unit=" "), V, "unit must be .*Leave it out"),
    (lambda: reported().statement(sector="Sports"), V, "sector must be one of"),
    (
        lambda: reported().statement(publication_date="31.5.2026"),
        V,
        "publication_date must be a date as in 2026-05-31",
    ),
    (lambda: reported(GAUSSIAN, 0.0).statement(), V, "epsilon must be .*released without privacy"),
]


@pytest.mark.parametrize(
    "refusals",
    [PROFILES, CALIBRATION, SEARCHES, MECHANISMS, FILTERS, NUMBERS_OF_RUNS, REPORTS],
    ids=["profiles", "calibration", "searches", "mechanisms", "filters", "runs", "reports"],
)
def test_wrong_arguments_are_refused_by_name(refusals: list[Refusal]) -> None:
    for call, error, message in refusals:
        with pytest.raises(error, match=f"^{message}"):
            call()
