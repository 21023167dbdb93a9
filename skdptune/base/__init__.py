"""Private estimators: their protocol, and their privacy cost before and after a fit.

An estimator is *private* if it has ``privacy_profile(n_samples, n_features=None)``, which depends
only on its parameters and public sizes, and a ``privacy_`` report after ``fit``. The module
`protocol` states the whole contract. `profile_of` returns the cost of any estimator before it sees
data: a private estimator states its own cost, a pipeline's cost is composed from its steps, and
the cost of another library's model comes from `register_profile`.
"""

from skdptune.base._costs import privacy_of, profile_of, register_profile
from skdptune.base._mixin import PrivateEstimatorMixin
from skdptune.base._recording import PrivacyWarning
from skdptune.base._refusals import NoProfileError
from skdptune.base._rows_in_parts import PrivateRows
from skdptune.base._scikit_learn import HOLDERS as _HOLDERS  # noqa: F401  registers its objects

__all__ = [
    "NoProfileError",
    "PrivacyWarning",
    "PrivateEstimatorMixin",
    "PrivateRows",
    "privacy_of",
    "profile_of",
    "register_profile",
]
