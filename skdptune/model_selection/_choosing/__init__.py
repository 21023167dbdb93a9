"""Choosing a candidate from a table of noisy scores, by post-processing alone."""

from skdptune.model_selection._choosing._encoding import encode
from skdptune.model_selection._choosing._outlook import TableOutlook
from skdptune.model_selection._choosing._posterior import TableChoice, choose_from_table

__all__ = ["TableChoice", "TableOutlook", "choose_from_table", "encode"]
