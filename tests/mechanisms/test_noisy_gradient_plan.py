"""The plan of DP-SGD and its batches: against dp_accounting, closed forms and themselves."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError, random_allocation
from skdptune.accounting._shared import gaussian_delta
from skdptune.mechanisms import steps_for_budget
from skdptune.mechanisms._batches import allocation_batches, fixed_batches, poisson_batches
from skdptune.mechanisms._noisy_gradient_plan import most_steps
from skdptune.mechanisms._shared import SAMPLINGS, plan_noisy_gradient


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "epochs", "epsilon", "sampling"),
    [
        (1000, 100, 5, 1.0, "fixed"),
        (1000, 1000, 3, 0.1, "poisson"),
        (200, 20, 2, 30.0, "poisson"),
        (2000, 20, 1, 0.5, "fixed"),
        (1000, 1000, 3, 0.1, "allocation"),
        (200, 20, 2.25, 30.0, "allocation"),
        (2000, 20, 1, 0.5, "allocation"),
    ],
)
def test_plan_spends_the_budget_and_no_more(n_samples, batch_size, epochs, epsilon, sampling):
    plan = plan_noisy_gradient(
        n_samples,
        epochs=epochs,
        batch_size=batch_size,
        epsilon=epsilon,
        delta=1e-5,
        sampling=sampling,
    )
    assert 0.99 * epsilon <= plan.profile.epsilon(1e-5) <= epsilon
    if sampling == "allocation":
        # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
        n_batches = n_samples // batch_size
        assert (plan.rate, plan.steps) == (1 / n_batches, math.ceil(epochs * n_batches))
        assert plan.profile == random_allocation(plan.noise_multiplier, n_batches, plan.steps)
        return
    noise = plan.noise_multiplier / (2.0 if sampling == "fixed" else 1.0)
    step = dp_event.PoissonSampledDpEvent(plan.rate, dp_event.GaussianDpEvent(noise))
    event = dp_event.SelfComposedDpEvent(step, plan.steps)
    fine = PrivacyProfile.from_event(event, discretization=2e-4).epsilon(1e-5)
    # The grid of the plan is coarse where that costs nothing.
    assert fine <= plan.profile.epsilon(1e-5) * (1 + 1e-6)
    assert plan.profile.epsilon(1e-5) <= fine * 1.002


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "epochs", "steps"),
    [(100, 10, 2, 20), (100, 30, 1, 4), (40_000, 256, 20, 3125), (30, 3, 0.1, 1), (7, 7, 0.01, 1)],
)
def test_steps_are_epochs_over_rate_rounded_up(n_samples, batch_size, epochs, steps):
    plan = plan_noisy_gradient(
        n_samples, epochs=epochs, batch_size=batch_size, noise_multiplier=0.0
    )
    assert plan.steps == steps
    assert plan.rate == batch_size / n_samples


def test_infinite_budget_means_no_noise_and_no_privacy():
    plan = plan_noisy_gradient(100, epochs=1, batch_size=10, epsilon=math.inf, delta=1e-5)
    assert plan.noise_multiplier == 0.0
    assert plan.profile.epsilon(1e-5) == math.inf


def test_absurd_budget_is_spent_in_part():
    plan = plan_noisy_gradient(10, epochs=1, batch_size=10, epsilon=1e5, delta=1e-5)
    assert 490 < plan.profile.epsilon(1e-5) <= 500


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "n_batches", "divisor"),
    [(1000, 300, 3, 333), (1000, 700, 1, 1000), (1000, 600, 2, 500), (7, 1, 7, 1), (10, 4, 2, 5)],
)
def test_batches_of_an_epoch_are_records_over_batch_size_rounded(
    n_samples, batch_size, n_batches, divisor
):
    plan = plan_noisy_gradient(
        n_samples, epochs=3, batch_size=batch_size, noise_multiplier=0.0, sampling="allocation"
    )
    assert (plan.rate, plan.batch_size, plan.steps) == (1 / n_batches, divisor, 3 * n_batches)
    assert plan.epochs == 3.0


def test_most_steps_may_end_within_an_epoch_of_an_allocation():
    options = {"batch_size": 50, "noise_multiplier": 1.5, "sampling": "allocation"}
    plan = plan_noisy_gradient(1000, epochs="max", epsilon=2.0, delta=1e-5, **options)
    assert plan.profile.epsilon(1e-5) <= 2.0
    more = plan_noisy_gradient(1000, epochs=(plan.steps + 1) / 20, **options)
    assert more.steps == plan.steps + 1 and more.profile.epsilon(1e-5) > 2.0
    assert steps_for_budget(1.5, 0.05, 2.0, 1e-5, sampling="allocation") == plan.steps


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_plan_draws_its_batches_from_any_number_of_records(sampling):
    plan = plan_noisy_gradient(
        60, epochs=2.5, batch_size=10, noise_multiplier=1.0, sampling=sampling
    )
    for size in (0, 59, 60, 75):
        batches = list(plan.batches(size, np.random.default_rng(0)))
        counts = [np.arange(size)[batch].size for batch in batches]
        assert len(counts) == plan.steps == 15
        if sampling == "fixed":
            assert set(counts) == {min(size, 10)}
        if sampling == "allocation":
            assert sum(counts[:6]) == sum(counts[6:12]) == size


def test_poisson_profile_is_that_of_the_sampled_gaussian():
    # Theorem M5: noisy clipped gradients on Poisson batches or batches of fixed size.
    plan = plan_noisy_gradient(10, epochs=0.3, batch_size=3, noise_multiplier=1.2)
    upper = stats.norm(1.0, 1.2)
    lower = stats.norm(0.0, 1.2)
    for epsilon in (0.0, 0.3, 1.0):
        exact = hockey_stick(lambda x: 0.3 * upper.pdf(x) + 0.7 * lower.pdf(x), lower.pdf, epsilon)
        assert plan.profile.delta(epsilon, "remove") == pytest.approx(exact, abs=2e-6)


def hockey_stick(p, q, epsilon):
    grid = np.linspace(-25.0, 25.0, 100_001)
    return integrate.trapezoid(np.maximum(p(grid) - math.exp(epsilon) * q(grid), 0.0), grid)


def batch_density(gradients, batch_size, noise):
    """Return the density of one step's noisy sum, by enumeration of the batches."""
    size = min(batch_size, len(gradients))
    sums = [sum(chosen) for chosen in combinations(gradients, size)]
    return lambda x: np.mean([stats.norm.pdf(x, total, noise) for total in sums], axis=0)


WORST = ([-1.0, -1.0], 1.0)
OTHERS = [([1.0, 1.0], -1.0), ([-1.0, 0.5], 1.0), ([0.0, 0.0], 1.0), ([0.3, -0.2], -0.7)]


@pytest.mark.parametrize(
    ("others", "extra", "batch_size"),
    [(*WORST, 1), (*WORST, 2), *((*each, 2) for each in OTHERS[:2]), (*OTHERS[3], 1)],
)
def test_fixed_size_profile_bounds_an_enumeration(batch_size, others, extra):
    # Theorem M5: noisy clipped gradients on Poisson batches or batches of fixed size.
    noise = 1.5
    plan = plan_noisy_gradient(
        3, epochs=batch_size / 3, batch_size=batch_size, noise_multiplier=noise, sampling="fixed"
    )
    assert plan.steps == 1
    larger = batch_density([*others, extra], batch_size, noise)
    smaller = batch_density(others, batch_size, noise)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 1.5):
        for direction, pair in (("remove", (larger, smaller)), ("add", (smaller, larger))):
            exact = hockey_stick(*pair, epsilon)
            claimed = plan.profile.delta(epsilon, direction)
            assert exact <= claimed + 1e-7
            if (others, extra) == WORST:
                # Nothing smaller would do.
                assert exact == pytest.approx(claimed, abs=2e-6)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"batch_size": 101}, ValueError, "batch_size must be at most"),
        ({"epochs": 0}, ValueError, "epochs must be"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": None}, TypeError, "epsilon must be a number.*noise_multiplier"),
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"sampling": "shuffle"}, ValueError, "sampling must be one of 'poisson', 'fixed'"),
        ({"noise_multiplier": -1.0}, ValueError, "noise_multiplier must be"),
    ],
)
def test_bad_parameters_are_refused(change, error, words):
    options = {"epochs": 1, "batch_size": 10, "epsilon": 1.0, "delta": 1e-5} | change
    with pytest.raises(error, match=words):
        plan_noisy_gradient(100, **options)


# As many steps as the budget pays for -------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "rate", "epsilon", "delta", "sampling"),
    [
        (2.0, 0.01, 1.0, 1e-5, "poisson"),
        (0.9, 0.01, 3.0, 1e-5, "fixed"),
        (3.0, 0.05, 0.5, 1e-6, "allocation"),
        (1.5, 0.2, 8.0, 1e-5, "allocation"),
        (20.0, 1.0, 1.0, 1e-5, "fixed"),
    ],
)
def test_so_many_steps_fit_and_one_more_does_not(noise, rate, epsilon, delta, sampling):
    """Theorem M5, Theorem M6, Theorem C1."""
    noise = 2.0 * noise if sampling == "fixed" else noise
    steps = steps_for_budget(noise, rate, epsilon, delta, sampling=sampling)
    for count, fits in ((steps, True), (steps + 1, False)):
        plan = plan_noisy_gradient(
            10_000,
            epochs=count * rate,
            batch_size=round(10_000 * rate),
            noise_multiplier=noise,
            sampling=sampling,
        )
        assert plan.steps == count
        assert (plan.profile.epsilon(delta) <= epsilon) == fits


@pytest.mark.parametrize(
    ("noise", "rate", "epsilon", "delta"), [(2.0, 0.01, 1.0, 1e-5), (3.0, 0.05, 4.0, 1e-5)]
)
def test_steps_agree_with_dp_accounting(noise, rate, epsilon, delta):
    """Theorem M5."""
    steps = steps_for_budget(noise, rate, epsilon, delta)

    def cost(count):
        step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
        accountant = PLDAccountant(value_discretization_interval=1e-4)
        return accountant.compose(step, count).get_epsilon(delta)

    # Grids differ, and with them a thousandth of the budget.
    assert cost(steps) <= epsilon * 1.0001
    assert cost(math.ceil(steps * 1.003) + 1) > epsilon


@pytest.mark.parametrize(("noise", "epsilon"), [(20.0, 1.0), (60.0, 0.4), (8.0, 6.0)])
def test_steps_on_all_records_agree_with_the_closed_form(noise, epsilon):
    """Theorem M5, Theorem P6."""
    steps = steps_for_budget(noise, 1.0, epsilon, 1e-5)
    exact = [gaussian_delta(math.sqrt(count) / noise, epsilon) for count in (steps, steps + 1)]
    assert exact[0] <= 1e-5 < exact[1]


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "allocation"])
def test_plan_of_most_epochs_is_that_of_its_steps(sampling):
    options = {"batch_size": 100, "noise_multiplier": 4.0, "sampling": sampling}
    budget = {"epsilon": 1.0, "delta": 1e-5}
    plan = plan_noisy_gradient(2000, epochs="max", **options, **budget)
    assert plan.steps == steps_for_budget(4.0, 0.05, 1.0, 1e-5, sampling=sampling)
    assert plan.epochs == plan.steps / 20 and plan.noise_multiplier == 4.0
    assert 0.97 <= plan.profile.epsilon(1e-5) <= 1.0
    # The same steps, asked for by their number.
    assert plan_noisy_gradient(2000, epochs=plan.epochs, **options) == plan


@pytest.mark.parametrize("noise", [1e-3, 0.5])
def test_a_step_that_costs_too_much_is_an_error_that_says_what_to_change(noise):
    words = "the cost of a single step; got 0.3. Or make noise_multiplier larger"
    with pytest.raises(UnreachableBudgetError, match=words) as raised:
        steps_for_budget(noise, 0.01, 0.3, 1e-5)
    assert raised.value.least_epsilon > 0.3


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"noise_multiplier": None}, TypeError, "noise_multiplier must be a number.*together"),
        ({"epsilon": None}, TypeError, "epsilon must be a number.*together"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be"),
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"sampling": "shuffle"}, ValueError, "sampling must be one of 'poisson', 'fixed'"),
    ],
)
def test_bad_parameters_of_most_steps_are_refused(change, error, words):
    options = {"noise_multiplier": 2.0, "epsilon": 1.0, "delta": 1e-5, **change}
    with pytest.raises(error, match=words):
        plan_noisy_gradient(100, epochs="max", batch_size=10, **options)
    with pytest.raises(error, match=words):
        steps_for_budget(sampling_rate=0.1, **options)


@pytest.mark.parametrize("rate", [0.0, 1.1, -0.1])
def test_rate_of_steps_is_a_share(rate):
    with pytest.raises(ValueError, match="sampling_rate must be a number in"):
        steps_for_budget(2.0, rate, 1.0, 1e-5)


@pytest.mark.parametrize("rate", [5e-324, 1e-200, 1e-17])
def test_rarest_samples_have_a_number_of_steps(rate):
    with pytest.raises(ValueError, match="sampling_rate must be a number in"):
        steps_for_budget(5.0, rate, 0.01, 1e-6, sampling="allocation")
    assert steps_for_budget(5.0, rate, 0.01, 1e-6) == 10**9


# The largest number of steps -------------------------------------------------------------


def solved(profile_of, epsilon, delta=0.0, guess=1.0):
    """Return the number of steps and how many profiles it took."""
    asked = []

    def counted(steps):
        asked.append(steps)
        return profile_of(steps)

    steps, profile = most_steps(counted, epsilon, delta, guess)
    assert steps in asked and profile == profile_of(steps)
    assert len(set(asked)) == len(asked)
    return steps, len(asked)


@given(st.integers(1, 10_000), st.floats(0.01, 0.99), st.floats(0.1, 1e6))
def test_any_number_is_found_from_any_guess(wanted, share, guess):
    """Theorem C1."""
    one = 2.0**-10
    found, _ = solved(
        lambda steps: PrivacyProfile.pure(min(one * steps, 500.0)),
        one * (wanted + share),
        0.0,
        guess,
    )
    assert found == wanted


# Batches ---------------------------------------------------------------------------------


def chi_square_p_value(counts, probabilities):
    total = sum(counts)
    return stats.chisquare(counts, [total * p for p in probabilities]).pvalue


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_poisson_batches_have_the_distribution_of_independent_draws(rate):
    # Theorem M5: noisy clipped gradients on Poisson batches or batches of fixed size.
    steps = 20_000
    batches = poisson_batches(3, rate, steps, np.random.default_rng(1))
    seen = Counter(tuple(batch.tolist()) for batch in batches)
    sets = [s for size in range(4) for s in combinations(range(3), size)]
    distribution = [rate ** len(s) * (1 - rate) ** (3 - len(s)) for s in sets]
    assert set(seen) <= set(sets)
    assert chi_square_p_value([seen[s] for s in sets], distribution) > 1e-3


def test_every_record_is_sampled_at_the_rate():
    counts = np.zeros(200)
    for batch in poisson_batches(200, 0.05, 10_000, np.random.default_rng(4)):
        assert (np.diff(batch) > 0).all()
        counts[batch] += 1
    scores = (counts - 500) / np.sqrt(10_000 * 0.05 * 0.95)
    assert np.abs(scores).max() < 4.5
    assert stats.kstest(scores, "norm").pvalue > 1e-3


def test_rate_one_takes_every_record_every_time():
    batches = list(poisson_batches(7, 1.0, 3, np.random.default_rng(0)))
    assert [np.arange(7)[batch].tolist() for batch in batches] == [list(range(7))] * 3


def test_an_exponential_draw_of_zero_does_not_repeat_a_record():
    class Stuck:
        def geometric(self, rate, count):
            return np.zeros(count, dtype=np.int64)

    (batch,) = poisson_batches(5, 0.5, 1, Stuck())
    assert batch.tolist() == [0, 1, 2, 3, 4]


def test_fixed_batches_are_uniform_sets_where_draws_collide():
    # 3 of 5 is drawn by rejection, 4 of 5 is not.
    for size, sets in ((3, 10), (4, 5)):
        batches = list(fixed_batches(5, size, 8000, np.random.default_rng(7)))
        assert all((np.diff(batch) > 0).all() for batch in batches)
        counts = np.array(list(Counter(tuple(batch) for batch in batches).values()))
        assert counts.size == sets
        assert stats.chisquare(counts).pvalue > 1e-4


def places_of(batches, n_samples, n_batches):
    """Return each record's place in each round."""
    places = np.full((len(batches) // n_batches, n_samples), -1)
    for step, batch in enumerate(batches):
        assert (places[step // n_batches, batch] == -1).all()
        places[step // n_batches, batch] = step % n_batches
    return places


def test_every_record_is_in_one_batch_of_a_round():
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    batches = list(allocation_batches(1000, 7, 21, np.random.default_rng(1)))
    assert all((np.diff(batch) > 0).all() for batch in batches)
    places = places_of(batches, 1000, 7)
    assert (places >= 0).all()
    # Every round draws its own places.
    assert 0.05 < np.mean(places[0] == places[1]) < 0.25


@pytest.mark.parametrize("n_batches", [2, 3])
def test_places_are_independent_and_uniform(n_batches):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    batches = list(allocation_batches(3, n_batches, 4000 * n_batches, np.random.default_rng(2)))
    places = places_of(batches, 3, n_batches)
    # All records of a round together with the first one of the next.
    joint = np.column_stack([places[:-1:2], places[1::2, 0]])
    counts = Counter(tuple(row) for row in joint.tolist())
    assert len(counts) == n_batches**4
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_neighbours_batches_differ_by_the_record_alone():
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    for seed in range(20):
        with_record, without = (
            list(allocation_batches(size, 5, 5, np.random.default_rng(seed))) for size in (41, 40)
        )
        changed = 0
        for larger, smaller in zip(with_record, without, strict=True):
            assert larger[larger != 40].tolist() == smaller.tolist()
            changed += larger.size - smaller.size
        assert changed == 1


def test_others_places_have_one_distribution_with_and_without_a_record():
    # Theorem M6. For every record; this would be false for a permutation that is cut into batches.
    rng = np.random.default_rng(3)
    sizes = {3: Counter(), 4: Counter()}
    for size, counter in sizes.items():
        for _ in range(5000):
            places = places_of(list(allocation_batches(size, 2, 2, rng)), size, 2)[0]
            counter[tuple(places[-3:].tolist())] += 1
    assert (
        stats.chi2_contingency([list(dict(sorted(c.items())).values()) for c in sizes.values()])[1]
        > 1e-3
    )
    assert stats.chisquare(list(sizes[4].values())).pvalue > 1e-3


def test_allocation_of_few_records_leaves_batches_empty():
    batches = list(allocation_batches(2, 9, 18, np.random.default_rng(6)))
    assert [sum(b.size for b in batches[:9]), sum(b.size for b in batches[9:])] == [2, 2]
    none = list(allocation_batches(0, 3, 5, np.random.default_rng(6)))
    assert [batch.size for batch in none] == [0] * 5
    whole = list(allocation_batches(4, 1, 3, np.random.default_rng(6)))
    assert [np.arange(4)[batch].tolist() for batch in whole] == [[0, 1, 2, 3]] * 3
