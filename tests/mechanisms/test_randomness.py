"""Seeds, generators, and uniform numbers that are never 0 or 1."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

from skdptune.mechanisms import _randomness, as_generator
from skdptune.mechanisms._randomness import open_uniforms, random_below, standard_laplace


def test_seed_gives_the_same_generator_each_time() -> None:
    draws = [as_generator(np.int64(5)).random(4) for _ in range(2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], np.random.default_rng(5).random(4))


@pytest.mark.parametrize(("bad", "kind"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_other_seeds_are_refused(bad, kind) -> None:
    with pytest.raises(kind, match="random_state must be an integer"):
        as_generator(bad)


@pytest.mark.parametrize("generator", [np.random.default_rng(0), None])
def test_uniforms_are_uniform(generator) -> None:
    draws = open_uniforms(20_000, generator)
    assert stats.kstest(draws, "uniform").pvalue > 1e-9


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_extreme_bits_give_neither_0_nor_1(monkeypatch, word) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: word.to_bytes(8, "little") * (size // 8))
    (draw,) = set(open_uniforms(5, None).tolist())
    assert 0.0 < draw < 1.0
    assert np.isfinite(-np.log(-np.log(draw)))


@pytest.mark.parametrize("generator", [np.random.default_rng(1), None])
def test_integers_are_uniform(generator) -> None:
    counts = np.bincount([random_below(7, generator) for _ in range(14_000)], minlength=7)
    assert counts.size == 7
    assert stats.chisquare(counts).pvalue > 1e-9


def test_biased_words_are_drawn_again(monkeypatch) -> None:
    words = [2**64 - 1, 4]
    monkeypatch.setattr(_randomness.os, "urandom", lambda size: words.pop(0).to_bytes(8, "little"))
    assert random_below(3, None) == 1
    assert words == []


@pytest.mark.parametrize("generator", [np.random.default_rng(0), None])
def test_laplace_numbers_have_their_distribution(generator) -> None:
    draws = standard_laplace(40_000, generator)
    assert stats.kstest(draws, stats.laplace.cdf).pvalue > 1e-9
    # Sign and size are drawn from the same bits, but are independent.
    assert stats.kstest(np.abs(draws[draws < 0.0]), stats.expon.cdf).pvalue > 1e-9
    assert stats.kstest(draws[draws > 0.0], stats.expon.cdf).pvalue > 1e-9


@pytest.mark.parametrize("zeros", [0, 1, 3])
def test_far_tails_are_reached(monkeypatch, zeros) -> None:
    words = iter([1, *[0] * zeros, 2**62])
    monkeypatch.setattr(os, "urandom", lambda size: next(words).to_bytes(8, "little"))
    (draw,) = standard_laplace(1, None)
    assert draw == pytest.approx((53 * zeros + 1) * np.log(2.0))


@pytest.mark.parametrize("word", [0, 1, 2**64 - 1, 2**64 - 2])
def test_extreme_bits_give_finite_laplace_numbers(monkeypatch, word) -> None:
    words = iter([word, 2**64 - 1])
    monkeypatch.setattr(os, "urandom", lambda size: next(words).to_bytes(8, "little"))
    (draw,) = standard_laplace(1, None)
    assert abs(draw) <= np.log(2.0)
    assert (np.copysign(1.0, draw) > 0.0) == bool(word & 1)
