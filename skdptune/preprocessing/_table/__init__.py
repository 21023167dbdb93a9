"""Tables described by a public schema: columns, their cells, and what is wrong with either."""

from skdptune.preprocessing._table._columns import (
    CategoryColumn,
    Column,
    DroppedColumn,
    NumberColumn,
)
from skdptune.preprocessing._table._frames import cells_of, check_form, has_names, sample_cells
from skdptune.preprocessing._table._parsing import Problems, parse_columns, parse_target
from skdptune.preprocessing._table._samples import compare, describe

__all__ = [
    "CategoryColumn",
    "Column",
    "DroppedColumn",
    "NumberColumn",
    "Problems",
    "cells_of",
    "check_form",
    "compare",
    "describe",
    "has_names",
    "parse_columns",
    "parse_target",
    "sample_cells",
]
