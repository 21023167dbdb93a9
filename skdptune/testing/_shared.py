"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.testing._published import (
    Data,
    global_generators,
    neighbours,
    published,
    with_public_size,
    with_rows,
)
