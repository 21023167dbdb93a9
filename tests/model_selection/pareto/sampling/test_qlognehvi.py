"""BoTorch's acquisition, where it is installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("moocore")

from skdptune.model_selection._pareto._sampling._qlognehvi import noisy_improvement  # noqa: E402
from skdptune.model_selection._pareto._sampling._surrogates import Scales  # noqa: E402

SCALES = Scales((10.0, 1.0))


def front_of(noise: np.ndarray) -> np.ndarray:
    """A mechanism whose error rises with its noise while epsilon falls."""
    return np.column_stack([2.0 / noise, noise / (1.0 + noise)])


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botorch", None)
    none = np.empty((0, 1))
    with pytest.raises(ModuleNotFoundError, match="sampler='qlognehvi' needs botorch"):
        noisy_improvement(none, none, np.empty((0, 2)), SCALES, 0)


def test_gaps_of_the_front_promise_more_than_its_points() -> None:
    pytest.importorskip("botorch")
    features = np.linspace(0.0, 1.0, 9)[[0, 1, 2, 6, 7, 8], np.newaxis]
    values = front_of(10.0 ** (2 * features[:, 0] - 1))
    score = noisy_improvement(features, np.empty((0, 1)), values, SCALES, 0)
    gap, known = score(np.array([[0.45], [0.25]]))
    assert gap > 10 * known
    pending = noisy_improvement(features, np.array([[0.45]]), values, SCALES, 0)
    assert pending(np.array([[0.45]]))[0] < 0.2 * gap
