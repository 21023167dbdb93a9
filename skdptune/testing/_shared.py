"""What other folders use of this one, beside its public names."""

from skdptune.testing._published import global_generators, published, with_public_size

__all__ = [
    "global_generators",
    "published",
    "with_public_size",
]
