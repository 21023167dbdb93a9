"""The privacy cost of diffprivlib's models: their parameter epsilon."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from skdptune._validation import check_real
from skdptune.accounting import PrivacyProfile
from skdptune.accounting._shared import LARGEST_LOSS
from skdptune.base._costs import assumption_registry, register_profile
from skdptune.base._refusals import NoProfileError, Refusal, distrusted, refusal_of_distrusted

_RELATION = (
    "diffprivlib's epsilon is assumed to be pure, for replacing one of a public number of "
    "records (its docstrings do not define neighbours; its noise fits these); its bounds are "
    "given and not computed from the data; its minimisers are exact, so a ConvergenceWarning "
    "voids the guarantee"
)
# If these parameters are missing, diffprivlib reads their values from the data and only warns.
_KNOWLEDGE = ("bounds", "bounds_X", "bounds_y", "data_norm", "classes")


@functools.cache
def register() -> None:
    """Register diffprivlib's models, when one is encountered or when a ledger is in use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Import all model classes before their fits are wrapped.
        import diffprivlib.models  # noqa: F401
        from diffprivlib.validation import DiffprivlibMixin

    register_profile(DiffprivlibMixin)(_cost_of)
    assumption_registry.register(DiffprivlibMixin, _assumptions)


def _cost_of(model: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    # Assumption R4: the model's own statement of its epsilon is assumed.
    parameters = model.get_params(deep=False)
    epsilon = check_real(
        parameters.get("epsilon"), name="epsilon", lower=0.0, lower_open=True, upper=LARGEST_LOSS
    )
    missing = [
        name for name in _KNOWLEDGE if name in parameters and _is_missing(model, parameters, name)
    ]
    refusals = []
    fault = distrusted(model)
    if fault is not None:
        refusals.append(refusal_of_distrusted(fault))
    if missing:
        refusals.append(
            Refusal(
                f"{type(model).__name__} without {' and '.join(missing)}",
                "diffprivlib would compute it from the data, at an unstated cost",
                settings=tuple((name, "...") for name in missing),
                demand="estimator must be given all values that it must not learn",
            )
        )
    if refusals:
        raise NoProfileError(*refusals)
    return PrivacyProfile.pure(epsilon)


def _is_missing(model: Any, parameters: dict[str, Any], name: str) -> bool:
    # Centred data have a known mean, so PCA needs no bounds.
    is_needed = not (name == "bounds" and parameters.get("centered"))
    return is_needed and parameters[name] is None


def _assumptions(model: Any, n_samples: int, n_features: int | None) -> tuple[str, ...]:
    fault = distrusted(model)
    return (_RELATION,) if fault is None else (fault.assumption,)
