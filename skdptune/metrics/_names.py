"""Scorers by name, and why others are refused."""

from __future__ import annotations

from typing import Any, NoReturn

from skdptune._formatting import shown, shown_names
from skdptune.metrics._bounded import BoundedScorer
from skdptune.metrics._scorers import accuracy, neg_brier_score

_NAMED = {"accuracy": accuracy, "neg_brier_score": neg_brier_score}
# What one record may change a score by, and why noise then hides the score as well.
_OF_FEW = (
    "is a {} in [{}, 1], and no mean of one value per record: where a class has few records, a "
    "single one can change it by {}. How many a class has is private, so that the noise would "
    "have to hide such a change."
)
_RANKS = _OF_FEW.format("share of pairs of records", 0, "up to 1")
_AREA = _OF_FEW.format("mean of precisions", 0, "nearly 1")
_COUNTS = _OF_FEW.format("ratio of counts", 0, "up to 1")
_CORRELATION = _OF_FEW.format("ratio of counts", -1, "1 and more")
_UNBOUNDED = (
    "is made of unbounded values: one record can change it by any amount, by a far-away target, "
    "so that no noise makes it private."
)
_MEDIAN = (
    "is a median: where errors are few or far apart, one record can change it from one error to "
    "the next, by any amount, so that no noise makes it private."
)
_BY_PROBABILITIES = "Use 'neg_brier_score' or neg_log_loss(bound=...)."
_BY_CLASSES = (
    "Use accuracy(class_weight={...}), or balanced_accuracy(class_frequencies={...}), with public "
    "numbers."
)
_SQUARES = "Use neg_squared_error(bound=...)"
_ABSOLUTE = "Use neg_absolute_error(bound=...)."
_INSTEAD = {
    "balanced_accuracy": (
        "weighs records by class counts of the data: where a class has few records, a single one "
        "can change it by up to one over the number of classes. Use "
        "balanced_accuracy(class_frequencies={...}) with public frequencies."
    ),
    "neg_log_loss": (
        "is made of unbounded values: one record can change it by any amount, where the model is "
        "sure of a wrong label, so that no noise makes it private. Use neg_log_loss(bound=...)."
    ),
    "neg_mean_squared_error": f"{_UNBOUNDED} {_SQUARES}.",
    "neg_root_mean_squared_error": f"{_UNBOUNDED} {_SQUARES}, which ranks the same.",
    "neg_mean_absolute_error": f"{_UNBOUNDED} {_ABSOLUTE}",
    "neg_max_error": f"{_UNBOUNDED} {_ABSOLUTE}",
    "neg_median_absolute_error": f"{_MEDIAN} {_ABSOLUTE}",
    "r2": f"{_UNBOUNDED} {_SQUARES}, which ranks the same.",
    "explained_variance": f"{_UNBOUNDED} {_SQUARES}, which ranks the same.",
    "average_precision": f"{_AREA} {_BY_PROBABILITIES}",
    "matthews_corrcoef": f"{_CORRELATION} {_BY_CLASSES}",
    **{
        f"roc_auc{average}": f"{_RANKS} {_BY_PROBABILITIES}"
        for average in ("", "_ovr", "_ovo", "_ovr_weighted", "_ovo_weighted")
    },
    **{
        name + average: f"{_COUNTS} {_BY_CLASSES}"
        for name in ("f1", "precision", "recall", "jaccard")
        for average in ("", "_macro", "_weighted", "_samples")
    },
    **{
        f"{name}_micro": (
            "is the accuracy, or ranks as it does, where each record has one label: one record "
            "can change it by about one over the number of records. Use accuracy()."
        )
        for name in ("f1", "precision", "recall", "jaccard")
    },
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
        If the name is of a score that one record may change too much; it says by how much, and
        what to use.
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
    reason = f"{shown(name)} {_INSTEAD[name]}" if name in _INSTEAD else _GENERAL
    raise ValueError(
        f"scoring must be one of {shown_names(_NAMED)}, or a BoundedScorer; got {shown(name)}. "
        f"{reason}"
    )
