"""Scorers by name, and why others are refused."""

from __future__ import annotations

from typing import Any, NoReturn

from skdptune.metrics._bounded import BoundedScorer
from skdptune.metrics._scorers import accuracy, neg_brier_score

_NAMED = {"accuracy": accuracy, "neg_brier_score": neg_brier_score}
_NOT_A_MEAN = (
    "is not a mean of one value per record: one record can change it by any amount, so no noise "
    "makes it private."
)
_UNBOUNDED = (
    "is a mean of unbounded values: one record can change it by any amount, so no noise makes it "
    "private."
)
_INSTEAD = {
    "balanced_accuracy": (
        "weighs records by class counts of the data. Use "
        "balanced_accuracy(class_frequencies={...}) with public frequencies."
    ),
    "neg_log_loss": f"{_UNBOUNDED} Use neg_log_loss(bound=...).",
    "neg_mean_squared_error": f"{_UNBOUNDED} Use neg_squared_error(bound=...).",
    "neg_root_mean_squared_error": (
        f"{_UNBOUNDED} Use neg_squared_error(bound=...), which ranks the same."
    ),
    "neg_mean_absolute_error": f"{_UNBOUNDED} Use neg_absolute_error(bound=...).",
    "r2": f"{_NOT_A_MEAN} Use neg_squared_error(bound=...), which ranks the same.",
    "roc_auc": f"{_NOT_A_MEAN} Use 'neg_brier_score' or neg_log_loss(bound=...).",
    "average_precision": f"{_NOT_A_MEAN} Use 'neg_brier_score' or neg_log_loss(bound=...).",
}
# Ratios of counts: a class that is rare in the data makes them as sensitive as one likes.
_INSTEAD |= {
    name + average: (
        f"{_NOT_A_MEAN} Use accuracy(class_weight={{...}}), or "
        "balanced_accuracy(class_frequencies={...})."
    )
    for name in ("f1", "precision", "recall", "jaccard")
    for average in ("", "_macro", "_micro", "_weighted", "_samples")
}
_INSTEAD |= {
    name: _INSTEAD["roc_auc"]
    for name in ("roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "roc_auc_ovo_weighted")
}
_INSTEAD |= {
    "matthews_corrcoef": _INSTEAD["f1"],
    "explained_variance": _INSTEAD["r2"],
    "neg_median_absolute_error": f"{_NOT_A_MEAN} Use neg_absolute_error(bound=...).",
    "neg_max_error": f"{_NOT_A_MEAN} Use neg_absolute_error(bound=...).",
}
_GENERAL = (
    "A private score must be a mean of bounded values, one per record; make one from such a "
    "function by make_bounded_scorer(loss, lower, upper)."
)


def get_bounded_scorer(scoring: Any) -> BoundedScorer:
    """Return the scorer that a name stands for, or the scorer itself.

    Parameters
    ----------
    scoring : {"accuracy", "neg_brier_score"} or BoundedScorer

    Returns
    -------
    BoundedScorer

    Raises
    ------
    ValueError
        If the name is of a score whose sensitivity is not bounded; it says why, and what to use.
    TypeError
        If it is neither a name nor a `BoundedScorer`.

    Examples
    --------
    >>> from skdptune.metrics import get_bounded_scorer
    >>> get_bounded_scorer("accuracy").upper
    1.0
    """
    if isinstance(scoring, BoundedScorer):
        return scoring
    if not isinstance(scoring, str):
        kind = "None" if scoring is None else type(scoring).__name__
        raise TypeError(f"scoring must be a name or a BoundedScorer; got {kind}. {_GENERAL}")
    if scoring not in _NAMED:
        _refuse(scoring)
    return _NAMED[scoring]()


def _refuse(name: str) -> NoReturn:
    listed = ", ".join(repr(known) for known in _NAMED)
    reason = f"{name!r} {_INSTEAD[name]}" if name in _INSTEAD else _GENERAL
    raise ValueError(
        f"scoring must be one of {listed}, or a BoundedScorer; got {name!r}. {reason}"
    )
