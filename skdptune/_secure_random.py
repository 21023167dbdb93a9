"""The source of all unseeded randomness: AES with a key from the operating system."""

from __future__ import annotations

import functools
import math
import os
import threading
from typing import Any, cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import DTypeLike, NDArray
from scipy import special

Size = int | tuple[int, ...] | None
Words = NDArray[np.uint64]

_KEY_BYTES, _BLOCK_BYTES = 16, 16
# At most this many bytes are encrypted at once.
_ZEROS = memoryview(bytes(1 << 17))
_ALL_WORDS = 1 << 64
# A double has 53 binary digits.
_SPARE_BITS, _DIGIT = np.uint64(11), 2.0**-53
_LARGEST_GAP = 2.0**62
# Up to this many trials, a binomial count is drawn trial by trial.
_FEW_TRIALS = 1 << 12
# Number of forks between the first process and this one.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def secure_generator(key: bytes | None = None) -> np.random.Generator:
    """Return a generator whose draws cannot be computed from its other draws.

    Parameters
    ----------
    key : bytes, optional
        16 bytes; by default, a fresh key from the operating system.

    Returns
    -------
    SecureGenerator
        It has only those methods of ``numpy.random.Generator`` that this package uses.

    Notes
    -----
    Assumption E0.

    Examples
    --------
    >>> from skdptune._secure_random import secure_generator
    >>> secure_generator().random() == secure_generator().random()
    False
    """
    # Not a subclass: NumPy cannot read random bits from Python code. A method that is missing here
    # must fail, and never draw from another source.
    return cast(np.random.Generator, SecureGenerator(key))


def independent_generator(generator: np.random.Generator) -> np.random.Generator:
    """Return a generator whose draws reveal nothing about those of the given one, and vice versa.

    Parameters
    ----------
    generator : numpy.random.Generator or SecureGenerator
        If its draws are repeatable, so are those of the result, whose key is drawn from it.
    """
    if isinstance(generator, SecureGenerator) and not generator.repeats:
        return secure_generator()
    return secure_generator(generator.bytes(_KEY_BYTES))


class SecureGenerator:
    """Random numbers from AES-128 in counter mode, as OpenSSL computes it.

    Parameters
    ----------
    key : bytes, optional
        16 bytes; by default fresh ones from the operating system.

    Attributes
    ----------
    repeats : bool
        Whether the key was given, so that another generator can draw the same numbers.

    Notes
    -----
    Assumption E0.

    The output consists of the encrypted counters 0, 1, 2, ... (NIST SP 800-38A). Anyone who could
    distinguish it from random bits, or find the key from it, would have broken AES. NumPy's
    own bit generators give no such guarantee: their functions can be inverted from a few outputs.
    All methods have the same argument names as those of ``numpy.random.Generator``, and draw from
    the same distributions.

    A child process draws with a fresh key. So do copies and unpickled generators, since keys are
    never copied. Threads may share a generator.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self.repeats = key is not None
        self._source = _Source(os.urandom(_KEY_BYTES) if key is None else key)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as a generator with a fresh key."""
        return SecureGenerator, ()

    def _words(self, count: int) -> Words:
        """Return `count` integers of 64 random bits each."""
        # One block is two integers. The cipher may need a buffer one block longer than its output.
        words = np.empty(count + 3, dtype=np.uint64)
        view = words.view(np.uint8).data
        size, done = 8 * (count + count % 2), 0
        source = self._source
        if source.forks != _forks:
            # A child process must not repeat the draws of its parent.
            source = self._source = _Source(os.urandom(_KEY_BYTES))
        with source.lock:
            while done < size:
                portion = min(size - done, len(_ZEROS))
                source.cipher.update_into(_ZEROS[:portion], view[done:])
                done += portion
        return words[:count]

    def bytes(self, length: int) -> bytes:
        """Return random bytes."""
        return self._words(-(-length // 8)).tobytes()[:length]

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Size = None,
        dtype: DTypeLike = np.int64,
    ) -> Any:
        """Return integers of ``range(low, high)`` or ``range(low)``, all equally likely."""
        first, end = (0, int(low)) if high is None else (int(low), int(high))
        span = end - first
        if not 0 < span <= _ALL_WORDS:
            raise ValueError(f"high must be above low, by 2**64 at most; got {low} and {high}.")
        count = _count(size)
        words = self._words(count)
        if span < _ALL_WORDS:
            # Integers beyond the largest multiple of span are redrawn, so that no remainder is
            # favoured.
            excess = _ALL_WORDS % span
            if excess:
                beyond = np.flatnonzero(words >= np.uint64(_ALL_WORDS - excess))
                while beyond.size:
                    words[beyond] = self._words(beyond.size)
                    beyond = beyond[words[beyond] >= np.uint64(_ALL_WORDS - excess)]
            words %= np.uint64(span)
        if first:
            # The addition wraps around, as conversion to a signed integer does.
            words += np.uint64(first % _ALL_WORDS)
        kind = np.dtype(dtype)
        wide = words.view(np.int64 if kind.kind == "i" else np.uint64)
        return _shaped(wide.astype(kind, copy=False), size)

    def random(self, size: Size = None) -> Any:
        """Return uniform multiples of 2**-53 in [0, 1)."""
        numbers = _shaped((self._words(_count(size)) >> _SPARE_BITS) * _DIGIT, size)
        return float(numbers) if size is None else numbers

    def standard_exponential(self, size: Size = None) -> Any:
        """Return exponential numbers with density ``exp(-x)``, up to 45."""
        uniforms = (self._words(_count(size)) + 0.5) * (1.0 / _ALL_WORDS)
        return _shaped(-np.log(uniforms), size)

    def geometric(self, p: Any, size: Size = None) -> Any:
        """Return numbers of trials until the first success, of probability p; at most 2**62.

        Computed as an exponential number in units of ``-log(1 - p)``, rounded up: it exceeds k
        units with probability ``(1 - p)**k``.
        """
        exponential = self.standard_exponential(np.shape(p) if size is None else size)
        with np.errstate(divide="ignore", over="ignore"):
            gaps = np.floor(exponential / -np.log1p(-np.asarray(p))) + 1.0
        return np.minimum(gaps, _LARGEST_GAP).astype(np.int64)

    def permutation(self, x: int) -> NDArray[np.int64]:
        """Return ``range(x)`` in random order: the order of distinct random integers."""
        while True:
            words = self._words(x)
            order = np.argsort(words)
            ordered = words[order]
            if np.all(ordered[1:] != ordered[:-1]):
                return order.astype(np.int64)

    def choice(
        self, a: int, size: int, replace: bool = False, shuffle: bool = False
    ) -> NDArray[np.int64]:
        """Return a random set of `size` numbers of ``range(a)``, in increasing order."""
        if replace or shuffle or size > a:
            raise ValueError(
                "choice must draw different numbers in order, and no more than there are."
            )
        if 2 * size > a:
            is_left = np.ones(a, dtype=np.bool_)
            is_left[self.choice(a, a - size)] = False
            return np.flatnonzero(is_left).astype(np.int64)
        # The first distinct values of a sequence form a uniformly distributed set.
        drawn = np.empty(0, dtype=np.int64)
        firsts = np.empty(0, dtype=np.int64)
        while firsts.size < size:
            drawn = np.concatenate([drawn, self.integers(a, size=size + size // 2 + 8)])
            firsts = np.sort(np.unique(drawn, return_index=True)[1])
        return np.sort(drawn[firsts[:size]])

    def standard_gamma(self, shape: Any) -> Any:
        """Return gamma numbers of the given shapes, by inverting the distribution function."""
        shapes = np.asarray(shape, dtype=np.float64)
        numbers = special.gammaincinv(np.maximum(shapes, 1e-300), self._open(shapes.shape))
        return np.where(shapes > 0.0, numbers, 0.0)

    def beta(self, a: float, b: float, size: Size = None) -> Any:
        """Return beta numbers, by inverting the distribution function."""
        return special.betaincinv(a, b, self._open(size))

    def poisson(self, lam: Any, size: Size = None) -> Any:
        """Return Poisson numbers."""
        means = np.broadcast_to(lam, np.shape(lam) if size is None else size)
        counts = [self._poisson(float(mean)) for mean in means.ravel()]
        return _shaped(np.array(counts, dtype=np.int64), means.shape)

    def binomial(self, n: int, p: float, size: Size = None) -> Any:
        """Return binomial numbers: successes in n trials of probability p."""
        counts = [self._binomial(int(n), p) for _ in range(_count(size))]
        return _shaped(np.array(counts, dtype=np.int64), size)

    def _open(self, size: Size) -> Any:
        """Return uniform numbers in (0, 1)."""
        # Shifted up by half a step from 0; values that would round to 1 are cut.
        uniforms = np.asarray(self.random(size)) + 0.5 * _DIGIT
        return np.minimum(uniforms, 1.0 - _DIGIT)

    def _poisson(self, mean: float) -> int:
        """Return the number of arrivals of a process with rate 1 up to the time `mean`."""
        found = 0
        while mean > _FEW_TRIALS:
            # Draw the time of a late arrival. If it is before the end, only the rest remains; if
            # not, the earlier arrivals are binomial.
            number = int(0.875 * mean)
            time = float(self.standard_gamma(float(number)))
            if time > mean:
                return found + self._binomial(number - 1, mean / time)
            found, mean = found + number, mean - time
        gaps = int(mean + 6.0 * math.sqrt(mean)) + 16
        while True:
            times = np.cumsum(self.standard_exponential(gaps))
            if times[-1] > mean:
                return found + int(np.searchsorted(times, mean))
            found, mean = found + gaps, mean - float(times[-1])

    def _binomial(self, trials: int, probability: float) -> int:
        """Return how many of `trials` uniform numbers are below a probability."""
        found = 0
        while trials > _FEW_TRIALS and 0.0 < probability < 1.0:
            # Given the middle one, the numbers on either side of it are uniform on that side.
            middle = trials // 2 + 1
            value = float(self.beta(float(middle), float(trials + 1 - middle)))
            if value <= probability:
                found, trials = found + middle, trials - middle
                probability = (probability - value) / (1.0 - value)
            else:
                trials, probability = middle - 1, probability / value
        if not 0.0 < probability < 1.0:
            return found + (trials if probability >= 1.0 else 0)
        return found + int(np.count_nonzero(self.random(trials) < probability))


class _Source:
    """AES in counter mode, its lock, and the number of forks before its process."""

    def __init__(self, key: bytes, counter: bytes = bytes(_BLOCK_BYTES)) -> None:
        self.forks = _forks
        self.lock = threading.Lock()
        self._start = key, counter

    @functools.cached_property
    def cipher(self) -> Any:
        """The cipher, made when first used: few sources of further digits are ever used."""
        key, counter = self._start
        # Encrypting zeros returns the encrypted counters.
        return Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()


def _count(size: Size) -> int:
    return 1 if size is None else math.prod((size,) if isinstance(size, int) else size)


def _shaped(flat: NDArray[Any], size: Size) -> Any:
    return flat.reshape(() if size is None else size)[()]
