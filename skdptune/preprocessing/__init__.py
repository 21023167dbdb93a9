"""Transformers that are private, or learn nothing from the data and therefore cost nothing.

scikit-learn's scalers and encoders learn ranges and categories from the data. Here, these are
given as bounds or as a public schema of the whole table, or released with noise. Every transformer
has `privacy_profile`, and `privacy_` after ``fit``.
"""

from skdptune.preprocessing._private_pca import DPPCA
from skdptune.preprocessing._private_pipeline import make_private_pipeline
from skdptune.preprocessing._private_scalers import DPMinMaxScaler, DPStandardScaler
from skdptune.preprocessing._schema import Schema
from skdptune.preprocessing._schema_quality import SchemaQuality
from skdptune.preprocessing._stateless import BoundedScaler, RowNormClipper
from skdptune.preprocessing._table_encoder import TableEncoder

__all__ = [
    "BoundedScaler",
    "DPMinMaxScaler",
    "DPPCA",
    "DPStandardScaler",
    "RowNormClipper",
    "Schema",
    "SchemaQuality",
    "TableEncoder",
    "make_private_pipeline",
]
