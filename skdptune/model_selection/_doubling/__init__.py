""" """

from skdptune.model_selection._doubling._session import (
    DoublingThresholdSession,
    Material,
    batches_of,
)

__all__ = ["DoublingThresholdSession", "Material", "batches_of"]
