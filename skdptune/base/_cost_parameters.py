"""Which parameters the privacy cost of an estimator depends on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from skdptune.base._nested_parameters import nested_estimators
from skdptune.base.protocol import Parametrized


def cost_parameters(estimator: Parametrized, names: Iterable[str]) -> set[str]:
    """Return those of the named parameters on which the cost may depend.

    An estimator's own ``cost_parameters`` are taken at their word; of an estimator without them,
    all parameters count.

    Notes
    -----
    Theorem F2.
    """
    return {
        name
        for name, declared in declared_cost_parameters(estimator, names)
        if declared is None or name.rpartition("__")[2] in declared
    }


def declared_cost_parameters(
    estimator: Parametrized, names: Iterable[str]
) -> Iterator[tuple[str, Collection[str] | None]]:
    """Iterate over parameters and the ``cost_parameters`` of their owners, None without any."""
    parts = dict(nested_estimators(estimator))
    for name in names:
        prefix = name.rpartition("__")[0]
        owner = parts.get(f"{prefix}__" if prefix else "")
        yield name, getattr(owner, "cost_parameters", None)
