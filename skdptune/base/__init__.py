"""What a private estimator promises, and what pipelines and other libraries keep of it.

An estimator is *private* if it has ``privacy_profile(n_samples, n_features=None)``, which follows
from its parameters and public sizes alone, and after ``fit`` a ``privacy_`` report. `profile_of`
prices any estimator before it sees data: private ones by their own word, pipelines by
composing their steps, other libraries' models through `register_profile`.
"""

# Registers scikit-learn's own objects.
from skdptune.base import _scikit_learn as _scikit_learn
from skdptune.base._costs import NoProfileError, privacy_of, profile_of, register_profile
from skdptune.base._mixin import PrivacyWarning, PrivateEstimatorMixin

__all__ = [
    "NoProfileError",
    "PrivacyWarning",
    "PrivateEstimatorMixin",
    "privacy_of",
    "profile_of",
    "register_profile",
]
