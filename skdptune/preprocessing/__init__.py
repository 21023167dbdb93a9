"""Transformers that are private, or learn nothing from the data and so cost nothing.

What scikit-learn's scalers read off the data is given here as bounds, or released with noise.
Every transformer has `privacy_profile` and, after ``fit``, `privacy_`.
"""

from skdptune.preprocessing._bounded_scaler import BoundedScaler
from skdptune.preprocessing._min_max_scaler import DPMinMaxScaler
from skdptune.preprocessing._row_norm_clipper import RowNormClipper
from skdptune.preprocessing._standard_scaler import DPStandardScaler

__all__ = ["BoundedScaler", "DPMinMaxScaler", "DPStandardScaler", "RowNormClipper"]
