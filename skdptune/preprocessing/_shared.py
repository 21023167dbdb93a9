"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.preprocessing._schema import as_schema
from skdptune.preprocessing._schema_quality import PUBLIC_SCHEMA
from skdptune.preprocessing._stateless import bounds_per_feature, check_bounds
from skdptune.preprocessing._table import (
    CategoryColumn,
    NumberColumn,
    cells_of,
    check_form,
    check_types,
)

__all__ = [
    "CategoryColumn",
    "NumberColumn",
    "PUBLIC_SCHEMA",
    "as_schema",
    "bounds_per_feature",
    "cells_of",
    "check_bounds",
    "check_form",
    "check_types",
]
