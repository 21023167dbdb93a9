""" """

from skdptune.accounting._selection._bounds import (
    BOUNDS,
    BoundNotApplicableError,
    selected_profile,
    useful_end,
)
from skdptune.accounting._selection._envelope import hockey_stick

__all__ = ["BOUNDS", "BoundNotApplicableError", "hockey_stick", "selected_profile", "useful_end"]
