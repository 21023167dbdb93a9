from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from skdptune.mechanisms._batches import allocation_batches, fixed_batches, poisson_batches


def chi_square_p_value(counts, probabilities):
    total = sum(counts)
    return stats.chisquare(counts, [total * p for p in probabilities]).pvalue


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_poisson_batches_have_the_distribution_of_independent_draws(rate):
    # Theorem M5.
    steps = 20_000
    batches = poisson_batches(3, rate, steps, np.random.default_rng(1))
    seen = Counter(tuple(batch.tolist()) for batch in batches)
    sets = [s for size in range(4) for s in combinations(range(3), size)]
    distribution = [rate ** len(s) * (1 - rate) ** (3 - len(s)) for s in sets]
    assert set(seen) <= set(sets)
    assert chi_square_p_value([seen[s] for s in sets], distribution) > 1e-3


def test_successive_poisson_batches_are_independent():
    batches = list(poisson_batches(2, 0.4, 40_000, np.random.default_rng(2)))
    last_then_first = Counter(
        (1 in first, 0 in second) for first, second in zip(batches, batches[1:], strict=False)
    )
    distribution = {
        (a, b): (0.4 if a else 0.6) * (0.4 if b else 0.6) for a in (0, 1) for b in (0, 1)
    }
    counts = [last_then_first[(bool(a), bool(b))] for a, b in distribution]
    # Neighbouring pairs overlap, but each uses draws of its own.
    assert chi_square_p_value(counts, list(distribution.values())) > 1e-3


def test_batch_sizes_are_binomial_across_blocks():
    # 66 batches to a block: the 1000 batches are spread over 16 of them.
    sizes = [b.size for b in poisson_batches(10_000, 0.1, 1000, np.random.default_rng(3))]
    assert len(sizes) == 1000
    assert abs(np.mean(sizes) - 1000) < 4 * np.sqrt(900 / 1000)
    assert stats.kstest(sizes, stats.binom(10_000, 0.1).cdf).pvalue > 1e-3


def test_every_record_is_sampled_at_the_rate():
    counts = np.zeros(200)
    for batch in poisson_batches(200, 0.05, 10_000, np.random.default_rng(4)):
        assert (np.diff(batch) > 0).all()
        counts[batch] += 1
    scores = (counts - 500) / np.sqrt(10_000 * 0.05 * 0.95)
    assert np.abs(scores).max() < 4.5
    assert stats.kstest(scores, "norm").pvalue > 1e-3


def test_rare_batches_are_mostly_empty():
    sizes = [b.size for b in poisson_batches(10, 1e-3, 5000, np.random.default_rng(5))]
    assert 0 < sum(sizes) < 100


def test_rate_one_takes_every_record_every_time():
    batches = list(poisson_batches(7, 1.0, 3, np.random.default_rng(0)))
    assert [np.arange(7)[batch].tolist() for batch in batches] == [list(range(7))] * 3


def test_no_records_make_empty_batches():
    batches = list(poisson_batches(0, 0.5, 3, np.random.default_rng(0)))
    assert [np.arange(0)[batch].size for batch in batches] == [0] * 3


def test_an_exponential_draw_of_zero_does_not_repeat_a_record():
    class Stuck:
        def geometric(self, rate, count):
            return np.zeros(count, dtype=np.int64)

    (batch,) = poisson_batches(5, 0.5, 1, Stuck())
    assert batch.tolist() == [0, 1, 2, 3, 4]


def test_fixed_batches_are_uniform_sets():
    batches = fixed_batches(5, 2, 20_000, np.random.default_rng(6))
    seen = Counter(tuple(batch.tolist()) for batch in batches)
    sets = list(combinations(range(5), 2))
    assert set(seen) == set(sets)
    assert chi_square_p_value([seen[s] for s in sets], [0.1] * 10) > 1e-3


def test_fixed_batches_of_too_few_records_take_all():
    (batch,) = fixed_batches(3, 4, 1, np.random.default_rng(0))
    assert np.arange(3)[batch].tolist() == [0, 1, 2]


def test_fixed_batches_are_uniform_sets_where_draws_collide():
    # 3 of 5 is drawn by rejection, 4 of 5 is not.
    for size, sets in ((3, 10), (4, 5)):
        batches = list(fixed_batches(5, size, 20_000, np.random.default_rng(7)))
        assert all((np.diff(batch) > 0).all() for batch in batches)
        counts = np.array(list(Counter(tuple(batch) for batch in batches).values()))
        assert counts.size == sets
        assert stats.chisquare(counts).pvalue > 1e-4


def test_as_many_fixed_batches_come_as_there_are_steps():
    # More than one block, the last of them not full.
    batches = list(fixed_batches(100, 10, 7001, np.random.default_rng(8)))
    assert len(batches) == 7001
    assert {batch.size for batch in batches} == {10}


def test_sizes_of_few_bits_do_not_overflow():
    (batch,) = fixed_batches(10**5, np.int32(60_000), 1, np.random.default_rng(9))
    assert batch.size == 60_000


def places_of(batches, n_samples, n_batches):
    """Return each record's place in each round."""
    places = np.full((len(batches) // n_batches, n_samples), -1)
    for step, batch in enumerate(batches):
        assert (places[step // n_batches, batch] == -1).all()
        places[step // n_batches, batch] = step % n_batches
    return places


def test_every_record_is_in_one_batch_of_a_round():
    # Theorem M6.
    batches = list(allocation_batches(1000, 7, 21, np.random.default_rng(1)))
    assert all((np.diff(batch) > 0).all() for batch in batches)
    places = places_of(batches, 1000, 7)
    assert (places >= 0).all()
    # Every round has places of its own.
    assert 0.05 < np.mean(places[0] == places[1]) < 0.25


@pytest.mark.parametrize("n_batches", [2, 3])
def test_places_are_independent_and_uniform(n_batches):
    # Theorem M6.
    batches = list(allocation_batches(3, n_batches, 9000 * n_batches, np.random.default_rng(2)))
    places = places_of(batches, 3, n_batches)
    # All records of a round together with the first one of the next.
    joint = np.column_stack([places[:-1:2], places[1::2, 0]])
    counts = Counter(tuple(row) for row in joint.tolist())
    assert len(counts) == n_batches**4
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_neighbours_batches_differ_by_the_record_alone():
    # Theorem M6.
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
    # Theorem M6. Whichever record it is: of a permutation that is cut into batches, not so.
    rng = np.random.default_rng(3)
    sizes = {3: Counter(), 4: Counter()}
    for size, counter in sizes.items():
        for _ in range(12_000):
            places = places_of(list(allocation_batches(size, 2, 2, rng)), size, 2)[0]
            counter[tuple(places[-3:].tolist())] += 1
    assert (
        stats.chi2_contingency([list(dict(sorted(c.items())).values()) for c in sizes.values()])[1]
        > 1e-3
    )
    assert stats.chisquare(list(sizes[4].values())).pvalue > 1e-3


def test_last_round_of_an_allocation_may_be_cut_short():
    batches = list(allocation_batches(100, 4, 10, np.random.default_rng(5)))
    assert len(batches) == 10
    assert sum(batch.size for batch in batches[:4]) == 100
    last = np.concatenate(batches[8:])
    assert 20 < last.size < 80 and np.unique(last).size == last.size


def test_allocation_of_few_records_leaves_batches_empty():
    batches = list(allocation_batches(2, 9, 18, np.random.default_rng(6)))
    assert [sum(b.size for b in batches[:9]), sum(b.size for b in batches[9:])] == [2, 2]
    none = list(allocation_batches(0, 3, 5, np.random.default_rng(6)))
    assert [batch.size for batch in none] == [0] * 5
    whole = list(allocation_batches(4, 1, 3, np.random.default_rng(6)))
    assert [np.arange(4)[batch].tolist() for batch in whole] == [[0, 1, 2, 3]] * 3
