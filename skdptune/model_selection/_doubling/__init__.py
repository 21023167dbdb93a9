"""The session of a doubling threshold search: rounds over offered candidates."""

from skdptune.model_selection._doubling._session import (
    DoublingThresholdSession,
    ThresholdChoice,
    batches_of,
)

__all__ = ["DoublingThresholdSession", "ThresholdChoice", "batches_of"]
