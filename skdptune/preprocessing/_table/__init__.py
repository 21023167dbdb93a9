"""Tables with a public schema: their columns and cells, and lists of mistakes in them."""

from skdptune.preprocessing._table._columns import (
    CLIPPED,
    FITS,
    MISSING,
    UNMATCHED,
    CategoryColumn,
    DroppedColumn,
    NumberColumn,
    Outcomes,
    UsedColumn,
    is_missing,
)
from skdptune.preprocessing._table._frames import (
    Problems,
    cells_of,
    cells_of_column,
    check_form,
    check_types,
    compare,
    describe,
    has_names,
    misfit,
    parse_columns,
    parse_target,
)
