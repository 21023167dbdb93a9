"""Bounds on the privacy cost of the best of a random number of private runs."""

from skdptune.accounting._selection._bounds import (
    BOUNDS,
    BoundNotApplicableError,
    RenyiSelected,
    selected_halves,
    useful_end,
)
