"""A public constant in place of a secret number of records."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.pipeline import make_pipeline

from skdptune.accounting import PrivacyProfile
from skdptune.base import check_secret_size, set_public_size
from tests.model_selection.learners import Centroids, Scripted


def test_public_size_is_set_or_must_not_matter() -> None:
    # Theorem F3.
    pipeline = make_pipeline(Scripted(), Centroids())
    set_public_size(pipeline, 77)
    check_secret_size(pipeline, 77, 3)
    assert pipeline[0].n_public == pipeline[1].n_public == 77

    class Sized(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            return PrivacyProfile.pure(1.0 / n_samples)

    with pytest.raises(TypeError, match="must have a parameter n_public.*got Sized"):
        check_secret_size(Sized(), 77, 3)
