"""The source of all randomness that nobody has seeded: AES with a key of the operating system."""

from __future__ import annotations

import os

import numpy as np
from randomgen import AESCounter


def secure_generator(key: bytes | None = None) -> np.random.Generator:
    """Return a NumPy generator of which no one can compute a draw from the others.

    Parameters
    ----------
    key : bytes, optional
        16 bytes; by default fresh ones from the operating system.

    Returns
    -------
    numpy.random.Generator
        All of its methods may be used, as those of ``numpy.random.default_rng()``.

    Notes
    -----
    Assumption E0.

    Words are AES-128 in counter mode, so whoever tells them from random ones, or finds the state
    from them, breaks AES. NumPy's own bit generators promise no such thing: theirs are functions
    that can be inverted from a few outputs. On processors that have instructions for AES it is
    as fast as PCG64.

    Examples
    --------
    >>> from skdptune._secure_random import secure_generator
    >>> secure_generator().random() == secure_generator().random()
    False
    """
    words = os.urandom(16) if key is None else key
    return np.random.Generator(AESCounter(key=int.from_bytes(words, "little")))
