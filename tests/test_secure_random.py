"""The source of unseeded randomness: its words are AES in counter mode, word for word."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import stats

from skdptune._secure_random import secure_generator

# FIPS 197, Appendix B and C.1: key, block and what AES-128 makes of it.
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


def times_two(byte: int) -> int:
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


def product(first: int, second: int) -> int:
    """Return the product in AES's field of 256 elements."""
    result = 0
    while second:
        result ^= first if second & 1 else 0
        first, second = times_two(first), second >> 1
    return result


def substitute(byte: int) -> int:
    """Return AES's substitution of a byte: its inverse, then an affine map of its bits."""
    inverse = next((b for b in range(256) if product(byte, b) == 1), 0)
    rotations = [((inverse << k) | (inverse >> (8 - k))) & 0xFF for k in range(5)]
    return np.bitwise_xor.reduce(rotations).item() ^ 0x63


SUBSTITUTE = [substitute(byte) for byte in range(256)]


def round_keys(key: bytes) -> list[list[int]]:
    words = [list(key[4 * k : 4 * k + 4]) for k in range(4)]
    constant = 1
    for k in range(4, 44):
        word = list(words[-1])
        if k % 4 == 0:
            word = [SUBSTITUTE[byte] for byte in word[1:] + word[:1]]
            word[0] ^= constant
            constant = times_two(constant)
        words.append([a ^ b for a, b in zip(words[-4], word, strict=True)])
    return [sum(words[4 * k : 4 * k + 4], []) for k in range(11)]


def encrypted(key: bytes, block: bytes) -> bytes:
    """Return AES-128 of one block, straight from FIPS 197."""
    keys = round_keys(key)
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for number in range(1, 11):
        state = [SUBSTITUTE[byte] for byte in state]
        state = [state[(4 * column + 5 * row) % 16] for column in range(4) for row in range(4)]
        # The place of row r in column c comes from column c + r.
        if number < 10:
            state = [
                product(2, state[4 * c + r])
                ^ product(3, state[4 * c + (r + 1) % 4])
                ^ state[4 * c + (r + 2) % 4]
                ^ state[4 * c + (r + 3) % 4]
                for c in range(4)
                for r in range(4)
            ]
        state = [a ^ b for a, b in zip(state, keys[number], strict=True)]
    return bytes(state)


@pytest.mark.parametrize(("key", "block", "cipher"), VECTORS)
def test_the_reference_is_aes(key, block, cipher) -> None:
    assert encrypted(bytes.fromhex(key), bytes.fromhex(block)).hex() == cipher


@pytest.mark.parametrize("key", [bytes(16), bytes(range(16)), bytes.fromhex(VECTORS[0][0])])
def test_words_are_aes_in_counter_mode(key) -> None:
    # Assumption E0.
    words = secure_generator(key).integers(0, 2**64, size=20, dtype=np.uint64)
    expected = b"".join(encrypted(key, number.to_bytes(16, "little")) for number in range(10))
    assert words.tobytes() == expected


def test_every_generator_has_a_fresh_key_of_sixteen_bytes(monkeypatch) -> None:
    # Assumption E0.
    keys = []

    def fake(count: int) -> bytes:
        keys.append(count)
        return bytes([len(keys)]) * count

    monkeypatch.setattr("skdptune._secure_random.os.urandom", fake)
    first, second = secure_generator(), secure_generator()
    assert keys == [16, 16]
    assert first.random() != second.random()
    assert first.random() == secure_generator(bytes([1]) * 16).random(2)[1]


def test_copies_go_on_from_where_the_original_is() -> None:
    generator = secure_generator()
    generator.random(3)
    assert copy.deepcopy(generator).random() == generator.random()


def test_methods_of_numpy_generators_work() -> None:
    generator = secure_generator(bytes(16))
    assert stats.kstest(generator.standard_normal(20_000), "norm").pvalue > 1e-4
    assert sorted(generator.permutation(50).tolist()) == list(range(50))
    assert generator.choice(100, 20, replace=False).size == 20
