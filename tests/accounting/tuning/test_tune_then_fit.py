"""Tuning on a random sample of the data, then one fit."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from skdptune.accounting import (
    Binomial,
    BoundNotApplicableError,
    Geometric,
    Poisson,
    PrivacyProfile,
    SharedCurve,
    calibrate,
    mixture,
    tune_then_fit,
    with_failure,
)
from skdptune.accounting._losses import RenyiOfEvent, RenyiOfPure, largest_loss, pair_masses
from skdptune.accounting._profile import sides_of
from skdptune.accounting._shared import gaussian_delta
from skdptune.accounting._tuning._tune_then_fit import (
    RenyiTuneThenFit,
    composed,
    curves_through_dots,
    few_dots,
    few_outcomes,
)
from tests.accounting.cases import few
from tests.accounting.oracles_profile import renyi_of_response, renyi_of_tune_then_fit

DELTA = 1e-5
GAUSSIAN_PAIRS = [
    (1.0, 0.5, 0.1),
    (0.5, 0.5, 0.3),
    (2.0, 0.3, 0.05),
    (0.3, 1.5, 0.6),
    (3.0, 3.0, 0.9),
]


def dp_sgd(noise, sampling=0.01, steps=5000):
    step = dp_event.PoissonSampledDpEvent(sampling, dp_event.GaussianDpEvent(noise))
    return PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, steps))


@pytest.fixture(scope="module")
def run():
    return dp_sgd(2.0)


@pytest.fixture(scope="module")
def searched(run):
    return functools.cache(run.selected)


def integrated(tune_mu, fit_mu, fraction, epsilons, variant):
    """Return (remove, add) divergences of Gaussian search and fit by plain double sums."""
    z = np.linspace(-11.0, 11.0, 1601)
    weights = norm.pdf(z) * (z[1] - z[0])
    tune = np.exp(tune_mu * z - tune_mu**2 / 2.0)
    fit = np.exp(fit_mu * z - fit_mu**2 / 2.0)
    if variant == 1:
        ratio = fraction * tune[:, None] + (1.0 - fraction) * fit[None, :]
    else:
        ratio = (fraction * tune[:, None] + 1.0 - fraction) * fit[None, :]
    return [
        (
            weights @ np.maximum(ratio - alpha, 0.0) @ weights,
            weights @ np.maximum(1.0 - alpha * ratio, 0.0) @ weights,
        )
        for alpha in np.exp(epsilons)
    ]


@pytest.mark.parametrize("variant", [1, 2])
@pytest.mark.parametrize(("tune_mu", "fit_mu", "fraction"), GAUSSIAN_PAIRS)
def test_gaussian_search_and_fit_agree_with_integration_in_both_directions(
    tune_mu, fit_mu, fraction, variant
):
    # Theorem T2.
    tune, fit = PrivacyProfile.gaussian(tune_mu), PrivacyProfile.gaussian(fit_mu)
    profile = tune_then_fit(tune, fit, fraction, variant)
    epsilons = (0.1, 0.5, 1.0, 2.0)
    divergences = integrated(tune_mu, fit_mu, fraction, epsilons, variant)
    for epsilon, both in zip(epsilons, divergences, strict=True):
        for direction, exact in zip(("remove", "add"), both, strict=True):
            if exact < 1e-7:
                continue  # the double sum itself is no better
            claimed = profile.delta(epsilon, direction)
            assert claimed >= exact * (1.0 - 1e-4)
            assert claimed <= exact * (1.0 + 5e-3)


@pytest.mark.parametrize("variant", [1, 2])
def test_search_with_mass_at_infinity_is_paid_for(variant):
    # Theorem T2.
    # The search reveals everything with probability 0.01, the fit says nothing.
    tune, fit = PrivacyProfile.approximate(0.0, 0.01), PrivacyProfile.pure(0.0)
    profile = tune_then_fit(tune, fit, 0.25, variant)
    assert profile.delta(3.0, "remove") == pytest.approx(0.25 * 0.01, rel=1e-6)
    # Adding: what the sample hides of the smaller data set is 1 - exp(e) (1 - q) of that mass.
    assert profile.delta(0.1, "add") == pytest.approx(
        0.01 * (1.0 - 0.75 * math.exp(0.1)), rel=1e-3
    )
    assert profile.delta(0.5, "add") <= 1e-12


@pytest.mark.parametrize("variant", [1, 2])
def test_fit_with_mass_at_infinity_is_paid_for(variant):
    # Theorem T2.
    profile = tune_then_fit(
        PrivacyProfile.pure(0.0), PrivacyProfile.approximate(0.0, 0.01), 0.25, variant
    )
    share = 0.75 if variant == 1 else 1.0
    assert profile.delta(3.0, "remove") == pytest.approx(share * 0.01, rel=1e-6)


# The formula, evaluated outcome by outcome -------------------------------------------------

DIRECTIONS = ("remove", "add")


def by_formula(tune, fit, fraction, epsilons, direction):
    """Return Theorem T2's sum over all outcomes of the search, with the fit's own curve."""
    sides, rest = sides_of(tune), 1.0 - fraction
    if direction == "add":
        sides = sides[::-1]
    losses, own, other = pair_masses(*sides)

    def height(alphas):
        logs = np.log(np.maximum(alphas, 1e-300))
        return np.where(alphas > 0.0, fit.delta(logs, direction), 1.0 - alphas)

    values = []
    for alpha in np.exp(epsilons):
        if direction == "remove":
            ratios = np.append(np.exp(losses), 0.0)
            terms = rest * height((alpha - fraction * ratios) / rest)
            total = fraction * sides[0].infinity + np.append(other, sides[1].infinity) @ terms
        else:
            left = 1.0 - fraction * alpha * np.append(np.exp(-losses), 0.0)
            kept = np.maximum(left, 1e-30)
            terms = np.where(left > 0.0, kept * height(alpha * rest / kept), 0.0)
            total = np.append(own, sides[0].infinity) @ terms
        values.append(total)
    return np.array(values)


def assert_follows_the_formula(tune, fit, fraction):
    """Compare at many epsilons: never below, within 0.5 % of delta or 0.05 % of epsilon."""
    profile = tune_then_fit(tune, fit, fraction)
    highest = max(largest_loss(sides_of(part)) for part in (tune, fit))
    end = min(highest - math.log(min(fraction, 1.0 - fraction)) + 0.1, 600.0)
    epsilons = np.concatenate([np.linspace(0.0, end, 24), np.geomspace(1e-3, end, 16)])
    for direction in DIRECTIONS:
        exact = by_formula(tune, fit, fraction, epsilons, direction)
        # Where the curve has a corner, no share of delta is small enough beside it.
        shifted = by_formula(tune, fit, fraction, epsilons * (1.0 - 5e-4), direction)
        claimed = profile.delta(epsilons, direction)
        # The two directions of a part may differ by a rounding error where they meet.
        assert np.all(claimed >= exact * (1.0 - 1e-6) - 1e-15)
        assert np.all(claimed <= np.maximum(1.005 * exact, shifted) + 1e-12)


REVEALING_FITS = {
    "approximate": PrivacyProfile.approximate(1.0, 1e-6),
    "shared curve": SharedCurve(0.3, 1e-7).profile,
    "failing, else free": PrivacyProfile.approximate(0.0, 1e-3),
}
REVEALING_SEARCHES = {
    "Gaussian runs": PrivacyProfile.gaussian(0.3).selected(Geometric.from_mean(20)),
    "approximate": PrivacyProfile.approximate(0.5, 1e-4),
    "pure": PrivacyProfile.pure(1.5),
}


@pytest.mark.parametrize(
    ("fraction", "fit", "tune"),
    few(12, [0.05, 0.3, 0.9], REVEALING_FITS.values(), REVEALING_SEARCHES.values()),
)
def test_a_fit_that_may_reveal_all_is_followed_to_where_its_curve_ends(tune, fit, fraction):
    """Adding a record, an outcome of loss y adds to delta as far as log(1 / fraction) + y."""
    # Theorem T2.
    assert_follows_the_formula(tune, fit, fraction)


PARTS = {
    "pure": PrivacyProfile.pure(1.0),
    "nothing": PrivacyProfile.pure(0.0),
    "of pure parts": 10 * PrivacyProfile.pure(0.05),
    "approximate": PrivacyProfile.approximate(0.4, 1e-5),
    "Gaussian": PrivacyProfile.gaussian(0.5),
    "small Gaussian": PrivacyProfile.gaussian(0.02),
    "large Gaussian": PrivacyProfile.gaussian(3.0),
    "sampled": PrivacyProfile.gaussian(2.0).subsampled(0.1),
    "sampled steps": dp_sgd(4.0, sampling=0.05, steps=400),
    "shared curve": SharedCurve(0.3, 1e-7).profile,
    "lopsided": PrivacyProfile.from_curve([0.5, 1.0], [1e-3, 1e-5], deltas_add=[1e-4, 0.0]),
    "mixture": mixture([PrivacyProfile.pure(1.0), PrivacyProfile.gaussian(0.3)], [0.3, 0.7]),
}
parts_of_any_kind = st.sampled_from(sorted(PARTS))


@settings(max_examples=15)
@given(
    tune=parts_of_any_kind,
    fit=parts_of_any_kind,
    distribution=st.sampled_from([None, Geometric(0.05), Poisson(5.0), Binomial(4, 0.5)]),
    fraction=st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-4, 1.0 - 1e-4])),
)
def test_any_parts_follow_the_formula(tune, fit, distribution, fraction):
    # Theorem T2, Theorem T6.
    search = PARTS[tune] if distribution is None else PARTS[tune].selected(distribution)
    assert_follows_the_formula(search, PARTS[fit], fraction)


EXTREMES = {
    "nothing": PrivacyProfile.pure(0.0),
    "everything": PrivacyProfile.approximate(0.0, 1.0),
    "half of everything": PrivacyProfile.approximate(1.0, 0.5),
    "pure of the largest epsilon": PrivacyProfile.pure(600.0),
    "largest Gaussian": PrivacyProfile.gaussian(30.0),
    "tiny Gaussian": PrivacyProfile.gaussian(1e-6),
}


@pytest.mark.parametrize(
    ("fraction", "fit", "tune"), few(12, [1e-60, 0.3, 1.0 - 1e-16], EXTREMES, EXTREMES)
)
def test_extreme_parts_have_a_curve_between_the_least_and_the_mixture(tune, fit, fraction):
    """At epsilon 0 at most the mixture of both, at large epsilon at least what always stays."""
    # Theorem T2.
    profile = tune_then_fit(EXTREMES[tune], EXTREMES[fit], fraction)
    shown = EXTREMES[tune].delta(0.0), EXTREMES[fit].delta(0.0)
    most = fraction * shown[0] + (1.0 - fraction) * shown[1]
    assert profile.delta(0.0) <= most + 1e-8
    sides = sides_of(EXTREMES[tune]), sides_of(EXTREMES[fit])
    least = fraction * sides[0][0].infinity + (1.0 - fraction) * sides[1][0].infinity
    assert profile.delta(600.0, "remove") >= least * (1.0 - 1e-9) - 1e-15


@pytest.mark.parametrize("delta", [1e-10, 1e-7, 1e-5, 1e-2])
def test_few_outcomes_and_dots_add_little_to_epsilon(delta):
    """Against the sums over all outcomes: at most 0.05 % of epsilon."""
    # Theorem T6.
    run = headline_run(4.0)
    search = run.selected(N_RUNS)
    epsilon = tune_then_fit(search, run, 0.05).epsilon(delta)
    below = max(
        by_formula(search, run, 0.05, np.array([epsilon * (1.0 - 5e-4)]), direction)[0]
        for direction in DIRECTIONS
    )
    assert below > delta


REFERENCE = [
    (Poisson(15), 0.05, 1.440, 1.628),
    (Poisson(15), 0.1, 1.457, 1.950),
    (Poisson(15), 0.2, 1.832, 2.472),
    (Poisson(45), 0.05, 3.017, 3.349),
    (Poisson(45), 0.1, 3.850, 4.190),
    (Poisson(45), 0.2, 4.690, 5.043),
    (Geometric(1 / 15), 0.05, 1.435, 1.518),
    (Geometric(1 / 15), 0.1, 1.398, 1.632),
    (Geometric(1 / 15), 0.2, 1.393, 1.893),
]


@pytest.mark.parametrize(("distribution", "fraction", "first", "second"), REFERENCE)
def test_reference_figures(run, searched, distribution, fraction, first, second):
    # Theorem T1, Theorem T2.
    search = searched(distribution)
    # For Poisson numbers of runs the figures are those of a bound that has been improved since.
    lowest = 0.92 if isinstance(distribution, Poisson) else 0.995
    for variant, figure in ((1, first), (2, second)):
        found = tune_then_fit(search, run, fraction, variant).epsilon(DELTA)
        assert lowest * figure <= found <= 1.005 * figure


@pytest.mark.parametrize("mean", [15, 45])
@pytest.mark.parametrize(
    "fraction",
    [0.02, 0.1, 0.5, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.05, 0.2, 0.3))],
)
@pytest.mark.parametrize("variant", [1, 2])
def test_never_above_the_papers_bound_at_its_figure_1(run, searched, mean, fraction, variant):
    # Theorem T5.
    search = searched(Poisson(mean))
    ours = tune_then_fit(search, run, fraction, variant).epsilon(DELTA)
    theirs = tune_then_fit(search, run, fraction, variant, bound="rdp").epsilon(DELTA)
    assert ours <= theirs


@functools.cache
def effective_noise(cost, share, guess):
    """Return the noise that meets (1, 1e-5) in total, over the share of data in the final fit."""
    found = calibrate(cost, epsilon=1.0, delta=DELTA, guess=guess * share, tolerance=1e-3)
    assert 0.999 <= found.profile.epsilon(DELTA) <= 1.0
    return found.value / share


def headline_run(noise):
    return dp_sgd(noise, sampling=0.05, steps=400)


def honest_search(noise):
    run = headline_run(noise)
    return tune_then_fit(run.selected(N_RUNS), run, 0.05)


N_RUNS = Geometric.from_mean(20)


@pytest.mark.parametrize(
    ("cost", "share", "expected"),
    [
        pytest.param(headline_run, 1.0, 3.88, id="one untuned fit"),
        pytest.param(lambda s: 20 * headline_run(s), 1.0, 16.9, id="naive composition"),
        pytest.param(lambda s: headline_run(s).selected(N_RUNS, "rdp"), 1.0, 9.4, id="rdp"),
        pytest.param(
            lambda s: headline_run(s).selected(N_RUNS, "profile"), 1.0, 8.3, id="profile"
        ),
        pytest.param(lambda s: headline_run(s).selected(N_RUNS), 1.0, 6.34, id="envelope"),
        pytest.param(
            lambda s: tune_then_fit(
                headline_run(s).selected(N_RUNS), headline_run(s), 0.05, bound="rdp"
            ),
            0.95,
            4.63,
            id="the subsampling paper",
        ),
        pytest.param(honest_search, 0.95, 3.97, id="envelope on a twentieth of the data"),
    ],
)
def test_headline(cost, share, expected):
    assert effective_noise(cost, share, expected) == pytest.approx(expected, rel=2e-2)


def test_headline_honest_search_needs_at_most_three_percent_more_noise_than_no_search():
    untuned = effective_noise(headline_run, 1.0, 3.88)
    tuned = effective_noise(honest_search, 0.95, 3.97)
    assert 1.0 < tuned / untuned < 1.03


@settings(max_examples=8)
@given(
    tune_mu=st.floats(0.05, 3.0),
    fit_mu=st.floats(0.05, 3.0),
    fraction=st.floats(0.01, 0.99),
)
def test_variant_1_lies_between_its_parts_and_below_variant_2(tune_mu, fit_mu, fraction):
    # Theorem T1.
    tune, fit = PrivacyProfile.gaussian(tune_mu), PrivacyProfile.gaussian(fit_mu)
    first = tune_then_fit(tune, fit, fraction, 1).epsilon(1e-6)
    second = tune_then_fit(tune, fit, fraction, 2).epsilon(1e-6)
    # The record is in one part only, so at worst the costlier part is revealed in full.
    assert first <= max(tune.epsilon(1e-6), fit.epsilon(1e-6)) * (1.0 + 1e-3)
    assert first <= second * (1.0 + 1e-3)


def test_rdp_bound_of_variant_2_is_subsampling_plus_fit(run, searched):
    # Theorem T5.
    search = searched(Poisson(15))
    profile = tune_then_fit(search, run, 0.1, 2, bound="rdp")
    orders = np.array([2.0, 5.0, 16.0])
    expected = search.subsampled(0.1).rdp(orders) + run.rdp(orders)
    assert profile.rdp(orders) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fraction": 0.0}, r"fraction must be a number in \(0, 1\); got 0.0"),
        ({"fraction": 1.0}, "fraction must be"),
        ({"fraction": float("nan")}, "fraction must be"),
        ({"variant": 3}, "variant must be one of 1, 2; got 3"),
        ({"bound": "envelope"}, "bound must be one of 'profile', 'rdp'"),
    ],
)
def test_bad_values_are_refused_by_name(arguments, message):
    profile = PrivacyProfile.gaussian(0.5)
    with pytest.raises(ValueError, match=message):
        tune_then_fit(profile, profile, **({"fraction": 0.1} | arguments))


def test_bad_kinds_are_refused_by_name():
    profile = PrivacyProfile.gaussian(0.5)
    with pytest.raises(TypeError, match="fit must be a PrivacyProfile"):
        tune_then_fit(profile, 1.0, 0.1)


def test_rdp_bound_needs_a_renyi_curve():
    curve = PrivacyProfile.from_curve([1.0], [1e-6])
    with pytest.raises(BoundNotApplicableError, match="no Rényi bound is known"):
        tune_then_fit(curve, curve, 0.1, bound="rdp")


# The composition of a search with a fit --------------------------------------------------

DELTAS = np.geomspace(1e-12, 0.05, 30)
RUNS = Geometric.from_mean(20)
PAIRS = {
    "scores and fit": (PrivacyProfile.gaussian(0.05).selected(RUNS), PrivacyProfile.gaussian(0.3)),
    "next to nothing": (
        PrivacyProfile.gaussian(1e-3).selected(RUNS),
        PrivacyProfile.gaussian(2.0),
    ),
    "sampled approximate": (
        PrivacyProfile.approximate(0.5, 1e-13).subsampled(0.05),
        PrivacyProfile.gaussian(0.3).subsampled(0.5),
    ),
    "shared curves": (
        SharedCurve(0.3, 1e-15).profile.selected(RUNS),
        SharedCurve(0.3, 1e-15).profile,
    ),
    "pure and Gaussian": (PrivacyProfile.pure(0.2), PrivacyProfile.gaussian(0.3)),
    "pure that may fail": (
        with_failure(PrivacyProfile.pure(0.3).selected(RUNS), 1e-14),
        PrivacyProfile.gaussian(0.3),
    ),
}


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS)
def test_a_coarse_grid_costs_hardly_more_and_never_less(first, second):
    # Theorem T6.
    coarse, fine = composed(first, second), first + second
    for delta in DELTAS:
        exact = fine.epsilon(delta)
        assert exact * (1.0 - 1e-9) <= coarse.epsilon(delta) <= exact * (1.0 + 2e-5)
    assert sum(side.masses.size for side in sides_of(coarse)) < 40_000


def test_sums_of_pure_guarantees_stay_as_they_are():
    first, second = PrivacyProfile.pure(0.5).selected(RUNS), PrivacyProfile.pure(0.25)
    assert composed(first, second) == first + second
    assert composed(PrivacyProfile.pure(0.5), second).epsilon(0.0) == 0.75


# Under Rényi differential privacy --------------------------------------------------------


def gaussian(mu):
    return RenyiOfEvent(dp_event.GaussianDpEvent(1.0 / mu))


RENYI_PARTS = {
    "gaussian, pure": (gaussian(1.4), RenyiOfPure(0.6)),
    "pure, gaussian": (RenyiOfPure(2.0), gaussian(0.5)),
    "alike": (gaussian(0.3), gaussian(0.3)),
}
EXACT = {
    "gaussian, pure": (lambda k: k * 0.98, lambda k: renyi_of_response(0.6, k)),
    "pure, gaussian": (lambda k: renyi_of_response(2.0, k), lambda k: k * 0.125),
    "alike": (lambda k: k * 0.045, lambda k: k * 0.045),
}


@pytest.mark.parametrize(("fraction", "parts"), few(6, [0.01, 0.3, 0.5, 0.95], RENYI_PARTS))
def test_tuning_then_fitting_follows_the_printed_theorem(parts, fraction):
    # Theorem T5.
    curve = RenyiTuneThenFit(*RENYI_PARTS[parts], fraction)
    for order in (2, 3, 4, 11, 40, 128):
        printed = renyi_of_tune_then_fit(*EXACT[parts], fraction, order)
        assert curve.at(np.array([float(order)]))[0] == pytest.approx(printed, rel=1e-9, abs=0.0)


# Few dots of a convex curve --------------------------------------------------------------

STEP = 1e-4
KINDS = ("nothing", "of pure parts", "approximate", "large Gaussian", "sampled steps", "lopsided")
every_profile = pytest.mark.parametrize(
    "profile", [*map(PARTS.get, KINDS), REVEALING_SEARCHES["Gaussian runs"]]
)


def chords(dots, places):
    """Return the chords between dots, linear in exp(epsilon)."""
    return np.interp(np.exp(STEP * places), np.exp(STEP * dots.places), dots.heights)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
def test_chords_of_a_gaussian_curve_are_hardly_above_it(mu):
    # Theorem T6.
    end = math.ceil((mu * mu / 2.0 + 7.5 * mu) / STEP)
    dots = few_dots(lambda p: gaussian_delta(mu, STEP * p), np.array([0, end // 2, end]), STEP)
    places = np.arange(end + 1)
    exact, found = gaussian_delta(mu, STEP * places), chords(dots, places)
    assert dots.places.size < 600
    assert np.all(found >= exact * (1.0 - 1e-12))
    assert np.all(found <= 1.005 * exact + 1e-15)
    # As epsilon: the curve a share of epsilon before.
    shift = 3e-4 * np.maximum(STEP * places, 1e-3 * STEP * end)
    assert np.all(found <= gaussian_delta(mu, STEP * places - shift) + 1e-15)


def test_dots_gather_at_a_corner():
    # Theorem T6.
    def height(places):
        return np.maximum(1.0 - np.expm1(STEP * places) / math.expm1(0.7), 0.0)

    dots = few_dots(height, np.array([0, 10_000]), STEP)
    around = np.searchsorted(dots.places, 7000)
    assert np.diff(dots.places)[around - 1] <= 7
    assert dots.places.size < 80
    places = np.arange(10_001)
    assert np.all(chords(dots, places) >= height(places) - 1e-15)


@every_profile
def test_moved_outcomes_keep_the_masses_of_both_distributions(profile):
    # Theorem T6.
    sides = sides_of(profile)
    ratios, masses = few_outcomes(sides)
    assert np.all(masses > 0.0) and np.all(np.diff(np.sort(ratios)) > 0.0)
    # Directions read from dp_accounting agree to some 1e-8.
    assert masses.sum() == pytest.approx(1.0, abs=2e-8)
    assert ratios @ masses == pytest.approx(1.0 - sides[0].infinity, abs=2e-8)
    if sides[1].infinity > 0.0:
        assert (ratios[-1], masses[-1]) == (0.0, sides[1].infinity)


@every_profile
def test_moved_outcomes_have_a_curve_that_is_hardly_higher(profile):
    """Any convex function of the ratio gains by the moves; hockey sticks span them all."""
    # Theorem T6.
    sides = sides_of(profile)
    ratios, masses = few_outcomes(sides)
    losses, _, exact = pair_masses(*sides)
    alphas = np.exp(np.linspace(losses[-1] - 0.1, losses[0] + 0.1, 300))
    before = np.maximum(np.exp(losses) - alphas[:, None], 0.0) @ exact
    after = np.maximum(ratios - alphas[:, None], 0.0) @ masses
    assert np.all(after >= before * (1.0 - 1e-9) - 1e-15)
    assert np.all(after <= 1.005 * before + 1e-12)


@settings(max_examples=20)
@given(
    mu=st.floats(0.01, 3.0),
    other=st.floats(0.01, 3.0),
    stays=st.sampled_from([0.0, 1e-9, 1e-3]),
)
def test_two_curves_on_one_grid_are_never_below_themselves(mu, other, stays):
    # Theorem T6.
    curves = [lambda e, m=m: gaussian_delta(m, e) + stays for m in (mu, other)]
    ends = tuple(m * m / 2.0 + 8.0 * m for m in (mu, other))
    step, *halves = curves_through_dots(tuple(curves), ends)
    for half, curve, end in zip(halves, curves, ends, strict=True):
        grid = step * np.arange(half.size)
        assert grid[-1] >= end
        assert np.all(half >= curve(grid) * (1.0 - 1e-12))
        assert np.all(half <= 1.005 * curve(grid) + 1e-15)
