"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.preprocessing._private_pipeline import PersonPipeline
from skdptune.preprocessing._schema import as_schema, ids_in, range_of_targets
from skdptune.preprocessing._schema_quality import PUBLIC_SCHEMA
from skdptune.preprocessing._stateless import bounds_per_feature, check_bounds
from skdptune.preprocessing._table import (
    FITS,
    CategoryColumn,
    NumberColumn,
    cells_of,
    cells_of_column,
    check_form,
    check_types,
    misfit,
)
