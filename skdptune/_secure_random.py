"""The source of all randomness that nobody has seeded: AES with a key of the operating system."""

from __future__ import annotations

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
# What is encrypted, at most so much at once.
_ZEROS = memoryview(bytes(1 << 17))
_ALL_WORDS = 1 << 64
# Doubles have 53 binary digits.
_SPARE_BITS, _DIGIT = np.uint64(11), 2.0**-53
_LARGEST_GAP = 2.0**62
# Counts of up to so many trials are made trial by trial.
_FEW_TRIALS = 1 << 12
# How many forks lie between the first process and this one.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def secure_generator(key: bytes | None = None) -> np.random.Generator:
    """Return a generator of which no one can compute a draw from the others.

    Parameters
    ----------
    key : bytes, optional
        16 bytes; by default fresh ones from the operating system.

    Returns
    -------
    SecureGenerator
        It has those methods of ``numpy.random.Generator`` that this package draws with, and no
        others.

    Notes
    -----
    Assumption E0.

    Examples
    --------
    >>> from skdptune._secure_random import secure_generator
    >>> secure_generator().random() == secure_generator().random()
    False
    """
    # NumPy cannot read words from Python, hence no subclass: a method that is missing here must
    # fail, and never draw from anything else.
    return cast(np.random.Generator, SecureGenerator(key))


def independent_generator(generator: np.random.Generator) -> np.random.Generator:
    """Return a generator that tells nothing of what the given one draws, nor the reverse.

    Parameters
    ----------
    generator : numpy.random.Generator or SecureGenerator
        If it repeats itself, so does the result, whose key is drawn from it.
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

    The words are the encrypted counters 0, 1, 2, ... (NIST SP 800-38A). Whoever tells them from
    random ones, or finds the key from them, breaks AES. NumPy's own bit generators promise no
    such thing: theirs are functions that can be inverted from a few outputs. All methods take
    arguments of the same names as those of ``numpy.random.Generator`` and draw from the same
    distributions.

    A child process draws from a key of its own. So do copies and what is read from a pickle: no
    key is ever copied. Threads may share a generator.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self.repeats = key is not None
        self._source = _Source(os.urandom(_KEY_BYTES) if key is None else key)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a copy: a generator with a fresh key."""
        return SecureGenerator, ()

    def _words(self, count: int) -> Words:
        """Return so many words of 64 random bits."""
        # One block is two words. The cipher's buffer may be a block longer than what is written.
        words = np.empty(count + 3, dtype=np.uint64)
        view = words.view(np.uint8).data
        size, done = 8 * (count + count % 2), 0
        source = self._source
        if source.forks != _forks:
            # A child process must not repeat what its parent draws.
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
            # Words beyond the largest multiple of span are drawn again: no rest is favoured.
            excess = _ALL_WORDS % span
            if excess:
                beyond = np.flatnonzero(words >= np.uint64(_ALL_WORDS - excess))
                while beyond.size:
                    words[beyond] = self._words(beyond.size)
                    beyond = beyond[words[beyond] >= np.uint64(_ALL_WORDS - excess)]
            words %= np.uint64(span)
        if first:
            # Adding wraps around, and so does what a signed integer is.
            words += np.uint64(first % _ALL_WORDS)
        kind = np.dtype(dtype)
        wide = words.view(np.int64 if kind.kind == "i" else np.uint64)
        return _shaped(wide.astype(kind, copy=False), size)

    def random(self, size: Size = None) -> Any:
        """Return multiples of 2**-53 in [0, 1)."""
        numbers = _shaped((self._words(_count(size)) >> _SPARE_BITS) * _DIGIT, size)
        return float(numbers) if size is None else numbers

    def standard_exponential(self, size: Size = None) -> Any:
        """Return numbers of density ``exp(-x)``, up to 45."""
        uniforms = (self._words(_count(size)) + 0.5) * (1.0 / _ALL_WORDS)
        return _shaped(-np.log(uniforms), size)

    def geometric(self, p: Any, size: Size = None) -> Any:
        """Return the numbers of trials up to the first success, of probability p; at most 2**62.

        An exponential number in units of ``-log(1 - p)``, rounded up: it exceeds k units with
        probability ``(1 - p)**k``.
        """
        exponential = self.standard_exponential(np.shape(p) if size is None else size)
        with np.errstate(divide="ignore", over="ignore"):
            gaps = np.floor(exponential / -np.log1p(-np.asarray(p))) + 1.0
        return np.minimum(gaps, _LARGEST_GAP).astype(np.int64)

    def permutation(self, x: int) -> NDArray[np.int64]:
        """Return ``range(x)`` in random order: that of random words, all of them different."""
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
            raise ValueError("choice must be of a set, of no more numbers than there are.")
        if 2 * size > a:
            is_left = np.ones(a, dtype=np.bool_)
            is_left[self.choice(a, a - size)] = False
            return np.flatnonzero(is_left).astype(np.int64)
        # The first different ones of a sequence are a uniform set.
        drawn = np.empty(0, dtype=np.int64)
        firsts = np.empty(0, dtype=np.int64)
        while firsts.size < size:
            drawn = np.concatenate([drawn, self.integers(a, size=size + size // 2 + 8)])
            firsts = np.sort(np.unique(drawn, return_index=True)[1])
        return np.sort(drawn[firsts[:size]])

    def standard_gamma(self, shape: Any) -> Any:
        """Return gamma numbers of the given shapes, by inverting their distribution function."""
        shapes = np.asarray(shape, dtype=np.float64)
        numbers = special.gammaincinv(np.maximum(shapes, 1e-300), self._open(shapes.shape))
        return np.where(shapes > 0.0, numbers, 0.0)

    def beta(self, a: float, b: float, size: Size = None) -> Any:
        """Return beta numbers, by inverting their distribution function."""
        return special.betaincinv(a, b, self._open(size))

    def poisson(self, lam: Any, size: Size = None) -> Any:
        """Return Poisson numbers."""
        means = np.broadcast_to(lam, np.shape(lam) if size is None else size)
        counts = [self._poisson(float(mean)) for mean in means.ravel()]
        return _shaped(np.array(counts, dtype=np.int64), means.shape)

    def binomial(self, n: int, p: float, size: Size = None) -> Any:
        """Return numbers of successes in n trials of probability p."""
        counts = [self._binomial(int(n), p) for _ in range(_count(size))]
        return _shaped(np.array(counts, dtype=np.int64), size)

    def _open(self, size: Size) -> Any:
        """Return uniform numbers in (0, 1)."""
        # Half a step above 0; what would round to 1 is cut.
        uniforms = np.asarray(self.random(size)) + 0.5 * _DIGIT
        return np.minimum(uniforms, 1.0 - _DIGIT)

    def _poisson(self, mean: float) -> int:
        """Return how many arrivals of rate 1 there are up to the time `mean`."""
        found = 0
        while mean > _FEW_TRIALS:
            # The time of one arrival before the end splits the rest off, or it comes too late.
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
        """Return how many of so many uniform numbers are below a probability."""
        found = 0
        while trials > _FEW_TRIALS and 0.0 < probability < 1.0:
            # Given the middle one, those on either side of it are uniform there.
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
    """AES in counter mode, its lock, and the process that it belongs to, by its forks."""

    def __init__(self, key: bytes, counter: bytes = bytes(_BLOCK_BYTES)) -> None:
        self.forks = _forks
        self.lock = threading.Lock()
        # What it makes of zeros is the encrypted counters.
        self.cipher = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()


def _count(size: Size) -> int:
    return 1 if size is None else math.prod((size,) if isinstance(size, int) else size)


def _shaped(flat: NDArray[Any], size: Size) -> Any:
    return flat.reshape(() if size is None else size)[()]
