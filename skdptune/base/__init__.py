"""Private estimators: what they promise, what any estimator costs, and what a fitted one has cost.

An estimator is *private* if it has ``privacy_profile(n_samples, n_features=None)``, which follows
from its parameters and public sizes alone, and after ``fit`` a ``privacy_`` report; the module
`protocol` states the whole contract. `profile_of` returns the cost of any estimator before it sees
data: of a private one by its own word, of a pipeline by composing its steps, of another library's
model through `register_profile`.
"""

from skdptune.base._costs import privacy_of, profile_of, register_profile
from skdptune.base._mixin import PrivateEstimatorMixin
from skdptune.base._recording import PrivacyWarning
from skdptune.base._refusals import NoProfileError
from skdptune.base._scikit_learn import HOLDERS as _HOLDERS  # noqa: F401  registers its objects

__all__ = [
    "NoProfileError",
    "PrivacyWarning",
    "PrivateEstimatorMixin",
    "privacy_of",
    "profile_of",
    "register_profile",
]
