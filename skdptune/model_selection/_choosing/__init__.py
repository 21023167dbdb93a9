"""Choosing a candidate from a table of noisy scores, by post-processing alone."""

from skdptune.model_selection._choosing._posterior import (
    TableChoice,
    TableOutlook,
    choose_from_table,
    encode,
)

__all__ = ["TableChoice", "TableOutlook", "choose_from_table", "encode"]
