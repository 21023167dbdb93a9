"""What a session needs of its search is there."""

from __future__ import annotations

from skdptune.model_selection import DPAdaptiveSearchCV
from skdptune.model_selection._adaptive._settings import AdaptiveSettings


def test_a_search_has_all_settings() -> None:
    search = DPAdaptiveSearchCV(None, {"quality": (0.1, 0.9)})
    assert set(AdaptiveSettings.__annotations__) <= set(search.get_params(deep=False))
    methods = [
        name for name in vars(AdaptiveSettings) if callable(getattr(AdaptiveSettings, name))
    ]
    steps = [name for name in methods if name.startswith("_") and not name.startswith("__")]
    assert {"_material", "_chosen"} <= set(steps)
    for name in steps:
        assert name in {"_proto_hook", "_no_init_or_replace_init"} or hasattr(search, name), name
