"""Neighbouring data sets for which the estimator's claim is nearly attained.

The record, called the *canary*, is chosen by the estimator's family, from parameters and the form
of the data only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from skdptune._compat import number_of_samples, safe_indexing
from skdptune._validation import check_integer, check_option
from skdptune.audit._games import numbers_of
from skdptune.base import profile_of
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    REPLACE,
    ZERO_OUT,
    declared_labels,
    expected_refits,
    middle_and_half,
    neighbouring_of,
    nested_estimators,
    own_parameters,
    set_seeds,
    table_shape,
    target_range,
)
from skdptune.ledger._shared import BY_PERSON
from skdptune.linear_model import AdaSSPLinearRegression, DPRidge
from skdptune.testing._shared import Data, with_public_size, with_rows

# Length of the row in clipping norms. Gradients at such rows are clipped, and the row's own margin
# stays small for many steps. A longer row would be learned, and then have less influence.
_IN_CLIPPING_NORMS = {"sgd": 3.0, "adam": 3.0}
# For nets, whose slope in the first weights is smaller; and a target that predictions never reach.
_OF_NETS, _FAR_TARGET = 10.0, 100.0
_BOUNDS = ("bounds", "bounds_X")
_IS_CLIPPED = "a row whose gradient is clipped"
_AT_BOUNDS = "a row at the upper ends of "
# With released moments: a row so long that its gradient is clipped wherever the weights are, and
# how strongly all short rows together pull the weights away from it, in clipped gradients.
_OF_MOMENTS, _PULL = 30.0, 5.0
# Solvers that clip rows. All others clip gradients instead.
_NOT_CLIPPING = frozenset({"objective", "output", "psgd"})


@dataclass(frozen=True, eq=False)
class Extremes:
    """An extreme record, and the other records of its data set.

    Attributes
    ----------
    row, opposite : ndarray
        The record, and the row farthest from it.
    others : ndarray of shape (n, ...)
        Rows of the other records, used in turn.
    target : object
        The record's label or target; None if there is none.
    other_targets : tuple
        Targets of the other records, used in turn; empty if there are none.
    reason : str
    is_at_bounds : bool
        Whether `row` is at the upper ends of bounds, and `opposite` at the lower ends.
    """

    row: np.ndarray
    opposite: np.ndarray
    others: np.ndarray
    target: Any
    other_targets: tuple[Any, ...]
    reason: str
    is_at_bounds: bool = False

    def at_corners(self) -> Iterator[Extremes]:
        """Iterate over variants with all other records at one corner of the bounds."""
        for corner, where in ((self.opposite, "lower"), (self.row, "upper")):
            beside = f", with all other records at the {where} ends"
            yield replace(self, others=corner[None], reason=f"{self.reason}{beside}")
        # The record is at the lower ends, and its opposite at the upper ends.
        swapped = replace(self, row=self.opposite, opposite=self.row)
        yield replace(swapped, reason=self.reason.replace("upper ends", "lower ends", 1))

    def background(self, size: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return `size` other records and their targets."""
        rows = self.others[np.arange(size) % len(self.others)]
        known = self.other_targets
        return rows, np.resize(np.asarray(known), size) if known else None


def last_step(estimator: Any) -> Any:
    """Return the estimator that learns from targets: a pipeline's last step, for example."""
    return [estimator, *_parts(estimator)][-1]


def known_extremes(
    estimator: Any, shape: tuple[int, ...], y: Any, others: Any = None
) -> Extremes | None:
    """Return the extreme record for an estimator's family, or None for unknown families.

    Parameters
    ----------
    estimator : estimator
    shape : tuple of int
        Shape of the data.
    y : array-like or None
        Used for labels if the estimator declares none.
    others : array-like, optional
        The other records; the record should differ from them in direction.
    """
    rows = next(filter(None, (_rows_of(part, shape, others) for part in _parts(estimator))), None)
    if rows is None:
        return None
    row, opposite, beside, why = rows
    target, other_targets, and_why = _targets_of(estimator, y)
    is_at_bounds = why.startswith(_AT_BOUNDS)
    return Extremes(row, opposite, beside, target, other_targets, f"{why}{and_why}", is_at_bounds)


def generic_extremes(estimator: Any, X: Any, y: Any, factor: float) -> Extremes:
    """Return a distant record with a contradicting target, for any estimator.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
        Data of the right form.
    factor : float
        Length of the row, in units of the longest row of `X`.
    """
    table = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    lengths = np.linalg.norm(table.reshape(len(table), -1), axis=1)
    length = float(np.max(lengths, initial=0.0)) or 1.0
    row = factor * length * _quiet_direction(table.shape, table)
    target, other_targets, why = _targets_of(estimator, y)
    reason = f"a row {factor:g} times as long as the longest one, where others vary least"
    return Extremes(row, -row, np.zeros_like(row)[None], target, other_targets, reason + why)


def among_worst(found: Extremes, estimator: Any, n_samples: int) -> Extremes:
    """Return the extreme record among others that let a linear model show more of it.

    Parameters
    ----------
    found : Extremes
        Returned for other estimators, and for pipelines and searches.
    estimator : estimator
    n_samples : int
        Number of records.
    """
    given, targets = own_parameters(estimator), found.other_targets
    why = f"{found.reason}, which pull the weights away"
    has_moments = given.get("solver") in ("auto", "preconditioned") and given["delta"] != 0.0
    if has_moments and given["batch_size"] is None:
        # Half of the rows fix the released coordinates and are soon classified correctly. The
        # others are short, and pull at the same strength for long.
        lengths = np.tile([1.0, min(1.0, _PULL / n_samples)], n_samples)
        row, others = _OF_MOMENTS * found.row, lengths[:, None] * found.row
        found = replace(found, row=row, opposite=-row, reason=why)
        return replace(found, others=others, other_targets=targets[:1])
    if not isinstance(estimator, (AdaSSPLinearRegression, DPRidge)):
        return found
    # A residual of twice the bound: the record's products with itself and with its target move the
    # weights the same way. Where steps are taken, all residuals stay clipped, and most cancel.
    low, high = target_range(given["target_bound"])
    takes_steps = isinstance(estimator, DPRidge) and estimator.alpha is None
    pulls = [low, high, low, high, low] if takes_steps else [low]
    turns, width = np.arange(max(n_samples - 1, 1)), found.row.size
    axes = np.where(turns % 2, 1 + turns // 2 % max(width - 1, 1), 0) % width
    others = np.linalg.norm(found.row) * np.eye(width)[axes]
    in_turn = tuple(target for pull in pulls for target in (pull, targets[0]))
    return replace(found, others=others, other_targets=in_turn, reason=why)


def orthogonal_rows(
    estimator: Any, shape: tuple[int, ...], size: int, others: Any = None
) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Return many extreme rows in different directions, their opposites, and the reason.

    Parameters
    ----------
    estimator : estimator
    shape : tuple of int
        Shape of the data.
    size : int
        Number of rows; if there are fewer columns, rows share them.
    others : array-like, optional
        Other records; directions with the smallest variation come first.
    """
    for part in _parts(estimator):
        given = own_parameters(part)
        ends = _ends_of(given, shape)
        if ends is not None:
            _, low, high = ends
            signs = np.random.default_rng(0).integers(0, 2, (size, *shape[1:])) == 1
            return np.where(signs, high, low), np.where(signs, low, high), "corners of the bounds"
        length, _ = _length(given, shape)
        if length is not None:
            rows = length * _axes(shape, size, others)
            return rows, -rows, "rows along separate axes, of the largest norm that is not clipped"
    return None


def _axes(shape: tuple[int, ...], size: int, others: Any) -> np.ndarray:
    width = math.prod(shape[1:])
    axes = np.eye(width)
    if others is not None:
        table = np.asarray(others, dtype=np.float64).reshape(-1, width)
        axes = np.linalg.eigh(table.T @ table)[1].T
    elif len(shape) > 2:
        # A net for images reads only a few pixels at once.
        axes = np.linalg.qr(np.random.default_rng(0).normal(size=(width, width)))[0]
    return axes[np.arange(size) % width].reshape(size, *shape[1:])


def labels_of(estimator: Any, y: Any) -> np.ndarray | None:
    """Return the sorted labels of a classifier, declared or found in `y`; None for others.

    Parameters
    ----------
    estimator : estimator
    y : array-like or None
    """
    if not is_classifier(last_step(estimator)):
        return None
    labels = declared_labels(estimator)
    if labels is None and y is not None:
        labels = np.unique(np.asarray(y)).tolist()
    if not labels or len(labels) < 2:
        raise ValueError("y must hold two labels where estimator declares none in classes.")
    return np.unique(np.asarray(labels))


def _parts(estimator: Any) -> Iterator[Any]:
    """Iterate over the estimators through which rows pass, in order."""
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            if step not in (None, "passthrough"):
                yield from _parts(step)
        return
    inner = own_parameters(estimator).get("estimator")
    if inner is None:
        yield estimator
    else:
        yield from _parts(inner)


_Rows = tuple[np.ndarray, np.ndarray, np.ndarray, str]


def _rows_of(part: Any, shape: tuple[int, ...], others: Any) -> _Rows | None:
    """Return the extreme row, its opposite, rows of other records, and the reason."""
    given = own_parameters(part)
    ends = _ends_of(given, shape)
    if ends is not None:
        name, low, high = ends
        middle = low / 2 + high / 2
        if "quantile_range" in given:
            # A record at one end has all values on one side, so no rank is preferred.
            beside = np.stack([low, high])
            return middle, high.copy(), beside, f"a row between others at both {name}"
        return high.copy(), low.copy(), middle[None], f"{_AT_BOUNDS}{name}"
    length, why = _length(given, shape)
    if length is None:
        return None
    row = length * _quiet_direction(shape, others)
    return row, -row, np.zeros_like(row)[None], why


def _ends_of(
    given: dict[str, Any], shape: tuple[int, ...]
) -> tuple[str, np.ndarray, np.ndarray] | None:
    """Return the name of the bounds among an estimator's parameters, and both ends of a row."""
    for name in _BOUNDS:
        bounds = given.get(name)
        if bounds is not None and not isinstance(bounds, dict):
            low, high = (np.broadcast_to(np.asarray(b, dtype=float), shape[1:]) for b in bounds)
            return name, low, high
    return None


def _length(given: dict[str, Any], shape: tuple[int, ...]) -> tuple[float | None, str]:
    """Return the length of the extreme row, from the estimator's own parameters."""
    width = math.prod(shape[1:])
    if "module" in given and "max_grad_norm" in given:
        norm = given["max_grad_norm"]
        # A row of this length has gradients beyond all norms that "auto" may be.
        return _OF_NETS * (1.0 if norm == "auto" else float(norm)), _IS_CLIPPED
    if "norm" in given and "estimator" not in given and len(given) <= 2:
        return float(given["norm"]), "a row of the largest norm that norm allows"
    if "data_norm" not in given:
        return None, ""
    if "solver" in given and given["solver"] not in _NOT_CLIPPING and given.get("delta") != 0.0:
        norm = given.get("max_grad_norm") or 1.0
        factor = _IN_CLIPPING_NORMS.get(given["solver"], 1.0)
        return factor * float(norm), _IS_CLIPPED
    norm = given["data_norm"]
    length = math.sqrt(width) if norm is None else float(norm)
    return length, "a row of the largest norm that data_norm allows"


def _quiet_direction(shape: tuple[int, ...], others: Any) -> np.ndarray:
    """Return a unit row along which other records vary least; the first column without records.

    Images have equal brightness everywhere instead, since a net may read any part of them.
    """
    if len(shape) > 2:
        return np.full(shape[1:], 1.0 / math.sqrt(math.prod(shape[1:])))
    row = np.zeros(shape[1])
    row[0] = 1.0
    if others is None or sparse.issparse(others):
        return row
    squares = np.asarray(others, dtype=np.float64)
    squares = squares.T @ squares
    return row if not np.isfinite(squares).all() else np.linalg.eigh(squares)[1][:, 0]


def _targets_of(estimator: Any, y: Any) -> tuple[Any, tuple[Any, ...], str]:
    """Return the record's target, the targets of the other records, and the reason."""
    model = last_step(estimator)
    given = own_parameters(model)
    labels = labels_of(estimator, y)
    if labels is not None:
        known = labels.tolist()
        return known[-1], (known[0], known[-1]), ", with a label that contradicts others"
    bound = given.get("target_bound", given.get("bounds_y"))
    if bound is not None:
        low, high = target_range(bound)
        middle = middle_and_half(low, high)[0]
        return high, (middle,), ", and the largest target"
    if y is None and "criterion" not in given:
        return None, (), ""
    return _FAR_TARGET, (0.0,), ", and a target far from all predictions"


BACKGROUNDS = ("made-up", "given")
# Number of other records if none are given; two labels occur equally often.
N_BESIDE = 4
# Lengths of rows to try, in units of the longest given row, and the number of fits for each.
_FACTORS = (1.0, 10.0, 100.0)
_N_TRIED = 8


@dataclass(frozen=True, eq=False)
class Canary:
    """Neighbouring data sets, and numbers of a fit that distinguish them.

    It is usually made by `worst_canary`. Audits also accept your own.

    Attributes
    ----------
    X_with, y_with : array-like
        Data with the record; `y_with` is None without targets.
    X_without, y_without : array-like
        Data without the record. If records are replaced, another extreme record takes its place.
    neighbouring : str
        The neighbouring relation, as worded in reports.
    statistic : callable
        Function from a fitted estimator to a number or a vector. For a vector, an audit chooses a
        direction, using fits that it does not count.
    n_public : int or None
        Constant used as the number of records of both data sets, wherever an estimator has such a
        parameter without a value. None if it has no such parameter, or does not accept it with its
        other parameters.
    reason : str
        Why this record was chosen.
    groups_with, groups_without : array-like or None
        The person of each row, if the canary is a person with all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.audit import Canary
    >>> without = np.zeros((4, 1))
    >>> Canary(
    ...     np.vstack([without, [[1.0]]]),
    ...     None,
    ...     without,
    ...     None,
    ...     "add or remove one record",
    ...     statistic=lambda fitted: fitted.mean_,
    ...     reason="a record at the bound",
    ... )
    Canary('a record at the bound', 5 and 4 records)
    """

    X_with: Any
    y_with: Any
    X_without: Any
    y_without: Any
    neighbouring: str
    statistic: Callable[[Any], Any] = field(repr=False)
    n_public: int | None = None
    reason: str = ""
    groups_with: Any = None
    groups_without: Any = None

    @property
    def sides(self) -> tuple[Data, Data]:
        """The data with the record, and without it."""
        return (
            Data(self.X_with, self.y_with, self.groups_with),
            Data(self.X_without, self.y_without, self.groups_without),
        )

    def of_persons(self, n_rows: int) -> Canary:
        """Return a canary whose every record is a person, and whose last one has several rows.

        Parameters
        ----------
        n_rows : int
            Number of copies of the last record of the data with it, which is the canary's own.
        """
        size = number_of_samples(self.X_with)
        places = np.append(np.arange(size), np.full(n_rows - 1, size - 1))
        return replace(
            self,
            X_with=safe_indexing(self.X_with, places),
            y_with=None if self.y_with is None else safe_indexing(self.y_with, places),
            neighbouring=BY_PERSON[self.neighbouring],
            reason=f"{self.reason}, {n_rows} times as the rows of one person",
            groups_with=places,
            groups_without=np.arange(number_of_samples(self.X_without)),
        )

    def __repr__(self) -> str:
        """Return the reason and the sizes, but no data."""
        sizes = number_of_samples(self.X_with), number_of_samples(self.X_without)
        return f"Canary({self.reason!r}, {sizes[0]} and {sizes[1]} records)"

    def prepared(self, estimator: Any) -> Any:
        """Return a copy of an estimator with the public constant as its number of records.

        Parameters
        ----------
        estimator : estimator
            It is not changed.

        Returns
        -------
        estimator
        """
        return with_public_size(estimator, self.n_public)

    @expected_refits()
    def fit(self, estimator: Any, present: bool, random_state: int | None = None) -> Any:
        """Return a copy that is fitted with or without the record.

        Parameters
        ----------
        estimator : estimator
            It is not changed.
        present : bool
            Whether the data contain the record.
        random_state : int, optional
            Seed of the fit's noise; None keeps the estimator's own setting.

        Returns
        -------
        estimator
        """
        made = self.prepared(estimator)
        if random_state is not None:
            set_seeds(made, np.random.SeedSequence(random_state))
        return self.sides[0 if present else 1].fit(made)


def worst_canary(
    estimator: Any, X: Any, y: Any = None, *, background: str = "made-up", random_state: int = 0
) -> Canary:
    """Choose neighbouring data sets for which an estimator's noise hides the difference least.

    They differ in one record: the longest row that clipping or bounds allow, in a direction in
    which the other records do not resist, with a label or target that contradicts them. It follows
    from the estimator's parameters and the form of the data, for

    * linear models and nets, by ``data_norm``, ``max_grad_norm`` and ``target_bound``; with
      ``solver="preconditioned"``, and for regressions on noisy sums, among other records that pull
      the weights away from it;
    * scalers and boosting, by ``bounds``;
    * pipelines, by the first step that bounds rows, and the last one's targets;
    * searches, as for the estimator that they tune; the record changes its score as well as its
      fit;
    * diffprivlib's models, by the parameters of the same names. Their guarantee is about replacing
      records, so an opposite record takes the canary's place.

    For bounds of another library's estimator, three positions of the other records are tried: in
    the middle, at all lower ends, and at all upper ends of the bounds. The case in which a few
    fits differ most is used. For all other estimators, rows of several lengths are added to the
    given data, and selected in the same way.

    Parameters
    ----------
    estimator : estimator
        Unfitted; it is not changed.
    X : array-like of shape (n_samples, ...)
        Public or made-up data. Only their shape is used, unless ``background="given"`` makes them
        the other records.
    y : array-like, optional
        Targets; their labels are used if `estimator` declares none.
    background : {"made-up", "given"}, default="made-up"
        The other records. "made-up" means a few rows in the middle of the allowed range, among
        which the canary stands out: an audit is about the mechanism. "given" means `X` and `y`.
    random_state : int, default=0
        Seed of the trial fits.

    Returns
    -------
    Canary
        The data with and without the record, for the neighbouring relation of the estimator's
        guarantee; a statistic, and the reason for the choice.

    Notes
    -----
    Theorem A7: the returned data sets are neighbours. They are not claimed to be the worst ones,
    and the validity of bounds does not depend on that.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.audit import worst_canary
    >>> from skdptune.linear_model import DPLinearSVC
    >>> svc = DPLinearSVC(solver="output", classes=[0, 1], data_norm=2.0, fit_intercept=False)
    >>> canary = worst_canary(svc, np.zeros((100, 3)))
    >>> canary.X_with
    array([[0., 0., 0.],
           [0., 0., 0.],
           [0., 0., 0.],
           [0., 0., 0.],
           [2., 0., 0.]])
    >>> canary.y_with, len(canary.X_without), canary.n_public
    (array([0, 1, 0, 1, 1]), 4, 100)
    """
    check_option(background, name="background", options=BACKGROUNDS)
    check_integer(random_state, name="random_state", lower=0)
    check_instance(estimator)
    check_targets(X, y)
    setting = _Setting.of(estimator, X, y, background)
    found = known_extremes(estimator, setting.shape, y, setting.others)
    if found is not None and not (found.is_at_bounds and _is_of_others(estimator)):
        if background == "made-up":
            found = among_worst(found, estimator, setting.shape[0])
        return setting.canary(found)
    if found is not None:
        tried = [found, *found.at_corners()]
    else:
        setting = _Setting.of(estimator, X, y, "given")
        tried = [generic_extremes(estimator, X, y, factor) for factor in _FACTORS]
    seeds = np.random.SeedSequence(random_state).generate_state(_N_TRIED)
    return max(
        map(setting.canary, tried), key=lambda canary: _separation(canary, estimator, seeds)
    )


@dataclass(frozen=True)
class _Setting:
    """The properties of neighbouring data sets for an estimator.

    Attributes
    ----------
    shape : tuple of int
        Shape of the given data.
    relation : str
    n_public : int or None
    others, targets : array-like or None
        The given records, if they are the background.
    """

    shape: tuple[int, ...]
    relation: str
    n_public: int | None
    others: Any
    targets: Any

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, background: str) -> _Setting:
        """Create the setting for an estimator and data."""
        shape = check_table(X)
        relation = relation_of(estimator)
        is_given = background == "given"
        n_public = public_constant(estimator, shape) if relation == ADD_OR_REMOVE else None
        return cls(shape, relation, n_public, X if is_given else None, y if is_given else None)

    def canary(self, extremes: Extremes) -> Canary:
        """Return the data sets with and without an extreme record.

        Notes
        -----
        Theorem A7.
        """
        others, targets = self.others, self.targets
        if others is None:
            least = N_BESIDE if self.n_public is not None else self.shape[0]
            n_others = max(least, len(extremes.others))
            others, targets = extremes.background(n_others)
        without = others, targets
        if self.relation == REPLACE:
            without = _with_record(others, targets, extremes.opposite, extremes.target)
        elif self.relation == ZERO_OUT:
            nothing = np.zeros_like(extremes.row)
            without = _with_record(others, targets, nothing, extremes.target)
        return Canary(
            *_with_record(others, targets, extremes.row, extremes.target),
            *without,
            self.relation,
            lambda fitted: numbers_of(fitted, extremes.row, extremes.target),
            self.n_public,
            extremes.reason,
        )


def _with_record(rows: Any, targets: Any, row: np.ndarray, target: Any) -> tuple[Any, Any]:
    return with_rows(rows, [row]), None if targets is None else with_rows(targets, [target])


def check_instance(estimator: Any) -> None:
    """Raise for an estimator's class, and for objects that are not estimators."""
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance; got the class {estimator.__name__}.")
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"estimator must have fit and get_params; got {type(estimator).__name__}.")


def check_table(X: Any) -> tuple[int, ...]:
    """Return the shape of a table, or raise if it has no records."""
    shape = tuple(int(length) for length in table_shape(X))
    if len(shape) < 2 or shape[0] < 1:
        raise ValueError(f"X must be a table with records; got shape {shape}.")
    return shape


def check_targets(X: Any, y: Any) -> None:
    """Raise unless there is one target for each record."""
    if y is None:
        return
    shape = table_shape(X)
    if np.ndim(y) < 1 or (shape and len(np.asarray(y)) != shape[0]):
        raise ValueError(
            f"y must hold a target for each of {shape[0] if shape else 0} records; got shape "
            f"{np.shape(y)}."
        )


def relation_of(estimator: Any) -> str:
    """Return the neighbouring relation; raise if no record without influence is known."""
    relation = neighbouring_of(estimator)
    if relation == ZERO_OUT and own_parameters(estimator).get("fit_intercept") is not False:
        # For other steps, and for an intercept, a row of zeros has an influence like any other
        # row.
        raise ValueError(
            "estimator must be a linear model with fit_intercept=False if its guarantee is "
            "about removing a contribution at its place, so that a row of zeros contributes "
            "nothing; got another one. Create the data yourself, as a Canary."
        )
    return relation


def public_constant(estimator: Any, shape: tuple[int, ...]) -> int | None:
    """Return a constant that may replace the number of records, or None."""
    if not any("n_public" in own_parameters(part) for _, part in nested_estimators(estimator)):
        return None
    try:
        profile_of(with_public_size(estimator, shape[0]), shape[0], shape[1])
    except (TypeError, ValueError):
        return None
    return shape[0]


def _is_of_others(estimator: Any) -> bool:
    """Return whether a nested estimator is neither of this package nor of scikit-learn."""
    return any(
        type(part).__module__.partition(".")[0] not in ("skdptune", "sklearn")
        for _, part in nested_estimators(estimator)
    )


def _separation(canary: Canary, estimator: Any, seeds: np.ndarray) -> float:
    """Return the separation of a few fits with and without a record.

    It is in standard deviations, or the logarithm of the ratio of their spreads if that is larger:
    without the only record that spans a column, a regression may vary a thousandfold.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sides = [
            np.array([canary.statistic(canary.fit(estimator, present, int(s))) for s in seeds])
            for present in (True, False)
        ]
    shift = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0))
    spread = np.sqrt(sum(side.var(axis=0, ddof=1) for side in sides))
    middle = [np.median(np.abs(side - np.median(side, axis=0)), axis=0) for side in sides]
    wider = np.abs(np.log(np.maximum(middle[0], 1e-12) / np.maximum(middle[1], 1e-12)))
    return float(np.max([shift / np.maximum(spread, 1e-12), wider]))
