"""Public weights of classes, relative to the largest, so that no record's influence grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown
from skdptune._validation import check_real

_DOMAIN = "class_weight must be a mapping of class to a positive public weight"


def check_class_weight(class_weight: Any, classes: Sequence[Any] | None) -> None:
    """Refuse weights that are no public numbers of known classes; no data are needed.

    Parameters
    ----------
    class_weight : mapping of class to float, or None
    classes : sequence or None
        The public labels, where they are declared.
    """
    if class_weight is None:
        return
    weights = checked_class_weight(class_weight)
    if classes is not None:
        _check_known(weights, np.unique(np.asarray(classes)))


def weights_of_classes(class_weight: Any, classes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the weight of each class over the largest, or None where all weigh the same.

    Parameters
    ----------
    class_weight : mapping of class to float, or None
        A class that is not named weighs 1, as in scikit-learn.
    classes : ndarray
        The labels of a model; public.

    Returns
    -------
    ndarray of numbers in [0, 1], or None

    Notes
    -----
    Theorem M0.

    Examples
    --------
    >>> import numpy as np
    >>> weights_of_classes({"ill": 10}, np.array(["ill", "well"])).tolist()
    [1.0, 0.1]
    """
    if class_weight is None:
        return None
    weights = checked_class_weight(class_weight)
    _check_known(weights, classes)
    found = np.array([weights.get(label, 1.0) for label in classes.tolist()])
    relative = found / found.max()
    return None if (relative == 1.0).all() else relative


def checked_class_weight(class_weight: Any) -> dict[Any, float]:
    """Return public weights of classes as positive numbers, or raise."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise TypeError(
            f"{_DOMAIN}; got 'balanced', which would count private labels. Give weights by public "
            "shares of the classes, such as {'ill': 1 / 0.02, 'well': 1 / 0.98}."
        )
    if not isinstance(class_weight, Mapping) or not class_weight:
        got = "an empty one" if isinstance(class_weight, Mapping) else shown(class_weight)
        raise TypeError(
            f"{_DOMAIN}; got {got}. Weights that are counted in the data are not public."
        )
    return {
        label: check_real(
            weight,
            name=f"class_weight[{shown(label)}]",
            lower=0.0,
            upper=1e9,
            lower_open=True,
            is_entry=True,
        )
        for label, weight in class_weight.items()
    }


def _check_known(weights: Mapping[Any, float], classes: NDArray[Any]) -> None:
    known = set(classes.tolist())
    unknown = [label for label in weights if label not in known]
    if unknown:
        raise ValueError(
            f"class_weight must name classes of the model alone; got {shown(unknown[0])}, which "
            f"is none of {shown(classes.tolist())}."
        )
