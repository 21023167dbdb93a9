"""Transformers that are private, or learn nothing from the data and so cost nothing.

What scikit-learn's scalers and encoders read off the data is given here, as bounds or as a public
schema of the whole table, or released with noise. Every transformer has `privacy_profile` and,
after ``fit``, `privacy_`.
"""

from skdptune.preprocessing._min_max_scaler import DPMinMaxScaler
from skdptune.preprocessing._private_pipeline import make_private_pipeline
from skdptune.preprocessing._schema import Schema
from skdptune.preprocessing._schema_quality import SchemaQuality
from skdptune.preprocessing._standard_scaler import DPStandardScaler
from skdptune.preprocessing._stateless import BoundedScaler, RowNormClipper
from skdptune.preprocessing._table_encoder import TableEncoder

# isort: split
# For the other folders of this package.
from skdptune.preprocessing._schema import as_schema as as_schema
from skdptune.preprocessing._schema_quality import PUBLIC_SCHEMA as PUBLIC_SCHEMA
from skdptune.preprocessing._stateless import bounds_per_feature as bounds_per_feature
from skdptune.preprocessing._stateless import check_bounds as check_bounds
from skdptune.preprocessing._table import CategoryColumn as CategoryColumn
from skdptune.preprocessing._table import NumberColumn as NumberColumn
from skdptune.preprocessing._table import cells_of as cells_of
from skdptune.preprocessing._table import check_form as check_form
from skdptune.preprocessing._table import check_types as check_types

__all__ = [
    "BoundedScaler",
    "DPMinMaxScaler",
    "DPStandardScaler",
    "RowNormClipper",
    "Schema",
    "SchemaQuality",
    "TableEncoder",
    "make_private_pipeline",
]
