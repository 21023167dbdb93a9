"""The source of unseeded randomness: its output is AES in counter mode, exactly."""

from __future__ import annotations

import ast
import copy
import inspect
import multiprocessing
import os
import pickle
import re
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from skdptune._secure_random import (
    SecureGenerator,
    _Source,
    independent_generator,
    secure_generator,
)
from tests.structure import our_modules

# FIPS 197, Appendix B and C.1: key, block and its encryption by AES-128.
VECTORS = [
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "3243f6a8885a308d313198a2e0370734",
        "3925841d02dc09fbdc118597196a0b32",
    ),
    (
        "000102030405060708090a0b0c0d0e0f",
        "00112233445566778899aabbccddeeff",
        "69c4e0d86a7b0430d8cdb78070b4c55a",
    ),
]


def encrypted(key: bytes, block: bytes) -> bytes:
    """Return AES-128 of one block, separately and without a counter."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block) + encryptor.finalize()


@pytest.mark.parametrize(("key", "block", "cipher"), VECTORS)
def test_the_reference_is_aes(key, block, cipher) -> None:
    assert encrypted(bytes.fromhex(key), bytes.fromhex(block)).hex() == cipher


def test_the_cipher_is_that_of_nists_example() -> None:
    # Assumption E0. SP 800-38A, F.5.1, CTR-AES128.Encrypt: key, first counter, output blocks.
    expected = [
        "ec8cdf7398607cb0f2d21675ea9ea1e4",
        "362b7c3c6773516318a077d7fc5073ae",
        "6a2cc3787889374fbeb4c81b17ba6c44",
        "e89c399ff0f198c6d40a31db156cabfe",
    ]
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    cipher = _Source(key, bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")).cipher
    assert cipher.update(bytes(64)).hex() == "".join(expected)


@pytest.mark.parametrize("key", [bytes(16), bytes(range(16)), bytes.fromhex(VECTORS[0][0])])
def test_words_are_aes_in_counter_mode(key) -> None:
    # Assumption E0: the source of randomness, and the precision of logarithms.
    words = secure_generator(key).integers(0, 2**64, size=20, dtype=np.uint64)
    expected = b"".join(encrypted(key, number.to_bytes(16, "big")) for number in range(10))
    assert words.tobytes() == expected
    assert secure_generator(key).bytes(13) == expected[:13]
    doubles = secure_generator(key).random(20)
    assert doubles.tolist() == [(word >> 11) * 2.0**-53 for word in words.tolist()]


def test_no_word_is_given_twice() -> None:
    # Requests of all sizes, including those above the block that is encrypted at once, are parts
    # of one sequence.
    sizes = [1, 2, 3, 40_001, 1, 0, 5]
    generator = secure_generator(bytes(16))
    parts = [generator.integers(0, 2**64, size=size, dtype=np.uint64) for size in sizes]
    whole = secure_generator(bytes(16)).integers(0, 2**64, size=41_000, dtype=np.uint64)
    places = [np.flatnonzero(np.isin(whole, part)) for part in parts]
    assert [place.size for place in places] == sizes
    assert np.all(np.diff(np.concatenate(places)) > 0)
    np.testing.assert_array_equal(whole[places[3]], parts[3])


def test_every_generator_has_a_fresh_key_of_sixteen_bytes(monkeypatch) -> None:
    # Assumption E0: the source of randomness, and the precision of logarithms.
    keys = []

    def fake(count: int) -> bytes:
        keys.append(count)
        return bytes([len(keys)]) * count

    monkeypatch.setattr("skdptune._secure_random.os.urandom", fake)
    first, second = secure_generator(), secure_generator()
    assert keys == [16, 16]
    assert first.random() != second.random()
    assert secure_generator(bytes([1]) * 16).random() == SecureGenerator(b"\1" * 16).random()


@pytest.mark.parametrize("key", [None, bytes(16)])
def test_no_copy_holds_the_key(key) -> None:
    # Assumption E0: the source of randomness, and the precision of logarithms.
    generator = secure_generator(key)
    copies = [
        copy.copy(generator),
        copy.deepcopy(generator),
        pickle.loads(pickle.dumps(generator)),
    ]
    drawn = {one.random() for one in (generator, *copies, *map(copy.copy, copies))}
    assert len(drawn) == 7
    assert pickle.dumps(generator) == pickle.dumps(secure_generator())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("key", [None, bytes(16)])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_does_not_repeat_its_parent(key) -> None:
    # Assumption E0: the source of randomness, and the precision of logarithms.
    generator = secure_generator(key)
    generator.random(3)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def child() -> None:
        queue.put(generator.random(4).tolist())

    children = [context.Process(target=child) for _ in range(2)]
    for one in children:
        one.start()
    drawn = [*queue.get(), *queue.get(), *generator.random(4).tolist()]
    for one in children:
        one.join()
    assert len(set(drawn)) == 12


def test_threads_may_share_a_generator() -> None:
    generator, drawn = secure_generator(bytes(16)), []

    def draw() -> None:
        for _ in range(200):
            drawn.append(generator.integers(0, 2**64, size=50, dtype=np.uint64))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = secure_generator(bytes(16)).integers(0, 2**64, size=40_000, dtype=np.uint64)
    np.testing.assert_array_equal(np.sort(np.concatenate(drawn)), np.sort(expected))


def test_an_independent_generator_repeats_only_what_repeats() -> None:
    for make in (lambda: np.random.default_rng(0), lambda: secure_generator(bytes(16))):
        source = make()
        first = independent_generator(source).random()
        assert first == independent_generator(make()).random()
        assert first != independent_generator(source).random()
    source = secure_generator()
    assert independent_generator(source).random() != independent_generator(source).random()


def p_value(found: np.ndarray, probability) -> float:
    """Return the p-value of counts: probable values separately, all others together."""
    chances = probability(np.arange(100))
    likely = np.flatnonzero(chances * found.size >= 10)
    counts = np.array([np.count_nonzero(found == k) for k in likely])
    chances, others = chances[likely], found.size - counts.sum()
    rest = 1.0 - chances.sum()
    if rest < 1e-12:
        assert others == 0
    else:
        counts, chances = np.append(counts, others), np.append(chances, rest)
    return float(stats.chisquare(counts, found.size * chances / chances.sum()).pvalue)


@pytest.mark.parametrize(
    ("draw", "probability"),
    [
        (lambda rng: rng.integers(7, size=20_000), lambda k: np.where(k < 7, 1 / 7, 0.0)),
        (lambda rng: rng.integers(-2, 3, size=20_000) + 2, lambda k: np.where(k < 5, 0.2, 0.0)),
        (lambda rng: rng.integers(0, 4, 20_000, dtype=np.uint8), lambda k: (k < 4) * 0.25),
        (lambda rng: rng.integers(0, 3 << 62, size=20_000, dtype=np.uint64) >> np.uint64(62),
         lambda k: (k < 3) / 3.0),
        (lambda rng: rng.geometric(0.3, 20_000), stats.geom(0.3).pmf),
        (lambda rng: rng.geometric(np.full(20_000, 0.9)), stats.geom(0.9).pmf),
        (lambda rng: rng.poisson(2.5, 20_000), stats.poisson(2.5).pmf),
        (lambda rng: rng.poisson(np.full(20_000, 0.01)), stats.poisson(0.01).pmf),
        (lambda rng: rng.binomial(9, 0.3, 20_000), stats.binom(9, 0.3).pmf),
        (lambda rng: rng.binomial(2 << 13, 1e-4, 5_000), stats.binom(2 << 13, 1e-4).pmf),
    ],
)  # fmt: skip
def test_counts_have_their_distributions(draw, probability) -> None:
    # Assumption E0: the source of randomness, and the precision of logarithms.
    assert p_value(draw(secure_generator(bytes(16))), probability) > 1e-4


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (lambda rng: rng.random(20_000), stats.uniform),
        (lambda rng: rng.standard_exponential(20_000), stats.expon),
        (lambda rng: rng.standard_gamma(np.full(20_000, 0.2)), stats.gamma(0.2)),
        (lambda rng: rng.standard_gamma(np.full(20_000, 3e5)), stats.gamma(3e5)),
        (lambda rng: rng.beta(0.4, 0.6, 20_000), stats.beta(0.4, 0.6)),
        (lambda rng: rng.poisson(3e6, 2000) + rng.random(2000), stats.norm(3e6 + 0.5, 3e6**0.5)),
        (lambda rng: rng.poisson(1e14, 500), stats.norm(1e14, 1e7)),
        (lambda rng: rng.binomial(10**8, 0.3, 2000) + rng.random(2000),
         stats.norm(3e7 + 0.5, 2.1e7**0.5)),
        (lambda rng: rng.binomial(2**53, 0.5, 50), stats.norm(2.0**52, 2.0**25.5)),
        (lambda rng: rng.geometric(1e-9, 20_000), stats.expon(scale=1e9)),
    ],
)  # fmt: skip
def test_numbers_have_their_distributions(draw, distribution) -> None:
    assert stats.kstest(draw(secure_generator(bytes(16))), distribution.cdf).pvalue > 1e-4


def test_bounds_of_integers() -> None:
    rng = secure_generator(bytes(16))
    assert set(rng.integers(1, size=50)) == {0}
    assert set(rng.integers(-(2**63), 2 - 2**63, size=50)) == {-(2**63), 1 - 2**63}
    assert set(rng.integers(2**64 - 2, 2**64, size=50, dtype=np.uint64)) == {2**64 - 2, 2**64 - 1}
    assert rng.integers(2**63, size=(3, 0)).shape == (3, 0)
    assert rng.integers(5).shape == () and rng.integers(5).dtype == np.int64
    for bad in ((0,), (5, 5), (0, 2**64 + 1)):
        with pytest.raises(ValueError, match="high must be above low"):
            rng.integers(*bad)


def test_extreme_parameters() -> None:
    rng = secure_generator(bytes(16))
    assert set(rng.geometric(1.0, 50)) == {1}
    assert set(rng.geometric(np.array([1e-300, 1e-140]))) == {2**62}
    assert rng.geometric(0.5).shape == rng.poisson(3.0).shape == rng.random(()).shape == ()
    assert rng.standard_gamma(np.zeros(3)).tolist() == rng.poisson(np.zeros(3)).tolist() == [0] * 3
    assert set(rng.binomial(10**7, 1.0, 5)) == {10**7}
    assert rng.poisson(2.0, (0,)).shape == (0,)


def test_permutations_and_sets_are_uniform() -> None:
    rng = secure_generator(bytes(16))
    for draw, count in (
        (lambda: rng.permutation(4), 24),
        (lambda: rng.choice(6, 2), 15),
        (lambda: rng.choice(6, 4), 15),
        (lambda: rng.choice(6, 3), 20),
    ):
        found = np.unique([draw() for _ in range(4000)], axis=0, return_counts=True)[1]
        assert found.size == count
        assert stats.chisquare(found).pvalue > 1e-4
    assert np.array_equal(np.sort(rng.permutation(1000)), np.arange(1000))
    for size in (0, 1, 60, 99, 100):
        chosen = rng.choice(100, size)
        assert chosen.size == np.unique(chosen).size == size
    with pytest.raises(ValueError, match="choice must draw different numbers"):
        rng.choice(5, 6)


# In these modules all generators are NumPy's: public and made-up numbers, audits, a branch for
# seeds.
_OF_NUMPY = (".audit", ".testing", "._pareto", "._made_up", "mechanisms._randomness")


def _draws() -> Iterator[tuple[str, ast.Call, str]]:
    """Yield each call in the package of a method that NumPy's generators have, and its place."""
    methods = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    for module in our_modules().values():
        if any(word in module.name for word in _OF_NUMPY):
            continue
        for node in ast.walk(module.tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = ast.unparse(node.func.value)
            is_source = re.search(r"(rng|generator|_stream)s?(\[[^]]*\])?$", owner) is not None
            if is_source and node.func.attr in methods:
                yield node.func.attr, node, f"{module.file}:{node.lineno}"


def test_all_that_the_package_draws_can_be_drawn_without_a_seed() -> None:
    """A fit with a seed draws from NumPy's generator, which has more methods and arguments."""
    places, wrong = 0, []
    for name, call, place in _draws():
        places += 1
        method = getattr(SecureGenerator, name, None)
        if method is None:
            wrong.append(f"{place}: {name}")
            continue
        keywords = {keyword.arg: None for keyword in call.keywords if keyword.arg}
        try:
            inspect.signature(method).bind(None, *call.args, **keywords)
        except TypeError as error:
            wrong.append(f"{place}: {error}")
    assert not wrong
    assert places >= 20
