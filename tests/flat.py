"""Searches with flat settings: those of the strategy and those of the search in one list."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.base import clone

from skdptune import model_selection

_STRATEGIES = {
    "DPRandomSearchCV": ("RandomRuns",),
    "DPGridSearchCV": ("FullTable", "NoisyMaximum", "Composition", "LeastEpsilon"),
    "DoublingThresholdSearchCV": ("ThresholdRounds",),
    "DPAdaptiveSearchCV": ("AdaptiveTrials",),
    "DParetoSearchCV": ("ParetoFront",),
}
_SEARCH_IN_ANY_CASE = ("DPRandomSearchCV", "DPAdaptiveSearchCV")
_WORDS = {"table": "FullTable", "noisy_max": "NoisyMaximum", "compose": "Composition"}


def _names(kind: Any) -> set[str]:
    return set(inspect.signature(kind).parameters)


def flat(kind: Any, *args: Any, **settings: Any) -> Any:
    """Return a search; arguments that its constructor does not have go to its strategy.

    The strategy of a grid search may be given as a word, together with its settings.
    """
    known = _names(kind)
    own = {name: value for name, value in settings.items() if name in known}
    more = {name: value for name, value in settings.items() if name not in known}
    names = _STRATEGIES.get(kind.__name__, ())
    if own.get("strategy") in _WORDS:
        names = (_WORDS[own["strategy"]],)
    # A named strategy searches, even if no candidate could win.
    is_named = not more and "strategy" not in own and kind.__name__ in _SEARCH_IN_ANY_CASE
    if not names or not (more or is_named):
        return kind(*args, **settings)
    strategy = own.pop("strategy", None)
    if strategy is not None and not isinstance(strategy, str):
        return kind(*args, strategy=clone(strategy).set_params(**more), **own)
    made = [getattr(model_selection, name) for name in names]
    suited = next((one for one in made if set(more) <= _names(one)), made[0])
    return kind(*args, strategy=suited(**more), **own)


def changed(search: Any, **settings: Any) -> Any:
    """Set parameters of a search and of its strategy, and return the search."""
    known = _names(type(search))
    now = {name: value for name, value in search.get_params(deep=False).items() if name in known}
    strategy = now.get("strategy")
    if strategy is not None and not isinstance(strategy, str):
        usual = type(strategy)().get_params(deep=False)
        values = strategy.get_params(deep=False)
        now |= {name: value for name, value in values.items() if value is not usual[name]}
        words = {kind: word for word, kind in _WORDS.items()}
        now["strategy"] = words.get(type(strategy).__name__)
        if now["strategy"] is None:
            del now["strategy"]
    made = flat(type(search), **{**now, **settings})
    return search.set_params(**{name: getattr(made, name) for name in known})
